// Pictures from bytes: y = (x - shift[c]) * factor[c], a rectangle of each erased. A difference times a factor cannot
// be fused, so every instruction set and every device gives the same bits.

#include <cstring>

#include "engine/cpu/cpu_backend.h"
#include "engine/cpu/partition.h"

namespace gle::cpu::GLE_ISA {

namespace {

constexpr int64_t kPeriod = 3 * kLanes;  // vectors of all three beginnings

using Bytes [[gnu::vector_size(kLanes)]] = uint8_t;

struct Pattern {
  float shift[kPeriod];
  float factor[kPeriod];
};

void convert(const uint8_t* x, int64_t n, const Pattern& pattern, float* y) {
  int64_t i = 0;
  for (; i + kPeriod <= n; i += kPeriod) {
    for (int64_t j = 0; j < kPeriod; j += kLanes) {
      Bytes bytes;
      std::memcpy(&bytes, x + i + j, sizeof bytes);
      store(y + i + j,
            (to_float(__builtin_convertvector(bytes, vi)) - load(pattern.shift + j)) * load(pattern.factor + j));
    }
  }
  for (int64_t j = 0; i < n; ++i, ++j) {
    y[i] = (static_cast<float>(x[i]) - pattern.shift[j]) * pattern.factor[j];
  }
}

}  // namespace

void CpuBackend::images_from_bytes(const Tensor& x, const PixelScale& scale, const Tensor& erased, const Tensor& y) {
  Pattern pattern;
  for (int64_t i = 0; i < kPeriod; ++i) {
    pattern.shift[i] = scale.shift[i % 3];
    pattern.factor[i] = scale.factor[i % 3];
  }
  const int64_t height = y.shape()[1];
  const int64_t values = y.shape()[2] * 3;
  for_row_ranges(runtime_.pool, cut_rows(y.shape()[0] * height, values), [&](int64_t begin, int64_t end) {
    for (int64_t line = begin; line < end; ++line) {
      float* out = y.data() + line * values;
      convert(x.bytes() + line * values, values, pattern, out);
      const int32_t* r = erased ? erased.ints() + line / height * 4 : nullptr;
      const int64_t at = line % height;
      if (r && at >= r[1] && at < int64_t{r[1]} + r[3]) {
        for (int64_t i = int64_t{r[0]} * 3; i < (int64_t{r[0]} + r[2]) * 3; ++i) {
          out[i] = scale.erased;
        }
      }
    }
  });
}

}  // namespace gle::cpu::GLE_ISA
