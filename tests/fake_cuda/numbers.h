#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace fake_cuda {

// What the tensor cores keep of a float: 10 bits of the mantissa, rounded to nearest, ties to even.
inline float to_tf32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, sizeof bits);
  if ((bits & 0x7f800000U) != 0x7f800000U) {
    bits += 0xfffU + (bits >> 13 & 1U);
    bits &= ~0x1fffU;
  }
  std::memcpy(&x, &bits, sizeof bits);
  return x;
}

// sum of a[i] * b[i], in eight partial sums as vector code has them.
inline float dot(const float* a, const float* b, size_t n) {
  float partial[8] = {};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) {
      partial[j] += a[i + j] * b[i + j];
    }
  }
  float sum = 0.0F;
  for (; i < n; ++i) {
    sum += a[i] * b[i];
  }
  for (const float part : partial) {
    sum += part;
  }
  return sum;
}

}  // namespace fake_cuda
