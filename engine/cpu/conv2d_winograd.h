#pragma once

// Convolution by a 3x3 kernel of stride 1 in the way of Winograd, F(2x2, 3x3): outputs in squares of 2x2 from inputs in
// squares of 4x4, with 16 multiplications where the definition takes 36. Its additions add a few roundings, no more.

#include "engine/cpu/conv2d_kernels.h"

namespace gle::cpu {

// y[n,p,q,k] = f(bias[k] + sum over r,s,c of x[n, p + r - pad_h, q + s - pad_w, c] * u[k,r,s,c])
struct WinogradShape {
  int64_t n, h, w, c;
  int64_t p, q, k;
  int64_t pad_h, pad_w;
  int64_t x_pitch, y_pitch;
};

inline WinogradShape winograd_shape(const ConvShape& s) {
  return {.n = s.n,
          .h = s.h,
          .w = s.w,
          .c = s.c,
          .p = s.p,
          .q = s.q,
          .k = s.k,
          .pad_h = s.pad_h,
          .pad_w = s.pad_w,
          .x_pitch = s.x_pitch,
          .y_pitch = s.y_pitch};
}

namespace GLE_ISA {

// Few channels do not pay for the transformations.
GLE_INLINE bool winograd_suits(const ConvShape& s) {
  return s.r == 3 && s.s == 3 && s.stride_h == 1 && s.stride_w == 1 && s.c >= 32 && s.k >= 32;
}

// For the gradient of the weights, whose ordinary kernel wins if a fifth of the squares lies outside.
GLE_INLINE bool winograd_suits_weights(const ConvShape& s) {
  return winograd_suits(s) && 5 * s.p * s.q >= 4 * ((s.p + 1) / 2 * 2) * ((s.q + 1) / 2 * 2);
}

int64_t winograd_packed_floats(int64_t c, int64_t k);
// u[k,r,s,c] = w[k,r,s,c].
void winograd_pack(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed);
// The same of w[c,r,s,k] turned around, u[k,r,s,c] = w[c,2-r,2-s,k]: for the gradient of the input.
void winograd_pack_turned(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed);

int64_t winograd_scratch_floats(const WinogradShape& shape, int threads);
void winograd(ThreadPool& pool, const WinogradShape& shape, const float* x, const float* packed, const float* bias,
              float slope, Accumulate mode, float* y, float* scratch);

// dw[k,r,s,c] (+)= the gradient of u, from x and the gradient dy of y.
int64_t winograd_weights_scratch_floats(const WinogradShape& shape, int threads);
void winograd_weights(ThreadPool& pool, const WinogradShape& shape, const float* x, const float* dy, Accumulate mode,
                      float* dw, float* scratch);

}  // namespace GLE_ISA
}  // namespace gle::cpu
