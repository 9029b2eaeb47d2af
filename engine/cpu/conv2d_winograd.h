#pragma once

// Convolution by a 3x3 kernel of stride 1 in the way of Winograd, F(m x m, 3x3): outputs in squares of m x m from
// inputs in squares of m + 2. m = 2 takes 16 multiplications where the definition takes 36, and its additions add a few
// roundings, no more. m = 4 takes 36 where the definition takes 144 and rounds about twice as much as the definition;
// its kernels are four times the weights. So it serves inference, which keeps them.

#include "engine/cpu/conv2d_kernels.h"

namespace gle::cpu::GLE_ISA {

// Few channels do not pay for the transformations.
GLE_INLINE bool winograd_suits(const ConvShape& s) {
  return s.r == 3 && s.s == 3 && s.stride_h == 1 && s.stride_w == 1 && s.c >= 32 && s.k >= 32;
}

// For the gradient of the weights, whose ordinary kernel wins if a fifth of the squares lies outside.
GLE_INLINE bool winograd_suits_weights(const ConvShape& s) {
  return winograd_suits(s) && 5 * s.p * s.q >= 4 * ((s.p + 1) / 2 * 2) * ((s.q + 1) / 2 * 2);
}

GLE_INLINE int winograd_side(const ConvShape& s) { return s.weights == Weights::kept ? 4 : 2; }

int64_t winograd_packed_floats(int m, int64_t c, int64_t k);
// Of the kernel u[k,r,s,c] that the input is to meet: w[k,r,s,c] as it is,
void winograd_pack(ThreadPool& pool, int m, int64_t c, int64_t k, const float* w, float* packed);
// or w[c,r,s,k] turned around, u[k,r,s,c] = w[c,2-r,2-s,k], for the gradient of an input, m = 2.
void winograd_pack_turned(ThreadPool& pool, int64_t c, int64_t k, const float* w, float* packed);

// As conv2d_forward(), y (+)=.
int64_t winograd_scratch_floats(const ConvShape& shape, int threads);
void winograd(ThreadPool& pool, const ConvShape& shape, const float* x, const float* packed, const float* bias,
              float slope, Accumulate mode, float* y, float* scratch);

// As conv2d_backward_weights().
int64_t winograd_weights_scratch_floats(const ConvShape& shape, int threads);
void winograd_weights(ThreadPool& pool, const ConvShape& shape, const float* x, const float* dy, Accumulate mode,
                      float* dw, float* scratch);

}  // namespace gle::cpu::GLE_ISA
