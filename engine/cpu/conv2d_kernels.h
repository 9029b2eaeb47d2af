#pragma once

// Two-dimensional convolution, fp32, channels innermost, any kernel and stride, padding below the kernel, no dilation,
// one group:
//   y[n,p,q,k] = leaky_relu(bias[k] + sum over r,s,c of x[n, p*stride_h + r - pad_h, q*stride_w + s - pad_w, c] *
//                           w[k,r,s,c], slope),
// x being 0 outside of the image. No kernel allocates: scratch comes from the caller, its size in floats from the
// function beside. All results are the same bits for any number of threads. x, y, dx and dy may be slices of the
// channels of a wider buffer (the pitches); weights are dense. Pointers need no alignment, 64 bytes is fastest.

#include <cstdint>

#include "engine/cpu/isa.h"
#include "engine/modes.h"
#include "engine/thread_pool.h"

namespace gle::cpu {

// Packed for one call, or for many in which no gradient is wanted: forward may then round more for fewer
// multiplications.
enum class Weights { once, kept };

struct ConvShape {
  int64_t n, h, w, c;  // x and dx: [n, h, w, c]
  int64_t k, r, s;     // weights: [k, r, s, c]
  int64_t p, q;        // y and dy: [n, p, q, k]
  int stride_h, stride_w, pad_h, pad_w;
  int64_t x_pitch, y_pitch;  // floats from one pixel to the next: >= c for x and dx, >= k for y and dy
  Weights weights = Weights::once;
};

namespace GLE_ISA {

// Forward. The packed weights hold for any n, h, w, padding and pitch of the same Weights; pack again when they change.
int64_t conv2d_forward_packed_floats(const ConvShape& shape);
void conv2d_forward_pack(ThreadPool& pool, const ConvShape& shape, const float* w, float* packed);
int64_t conv2d_forward_scratch_floats(const ConvShape& shape, int threads);
// bias: [k] or null. slope: 1 for no activation, 0 for ReLU.
void conv2d_forward(ThreadPool& pool, const ConvShape& shape, const float* x, const float* packed, const float* bias,
                    float slope, float* y, float* scratch);

// dx (+)= the gradient of x. The packed weights hold for any n, h, w, padding and pitch.
int64_t conv2d_backward_data_packed_floats(const ConvShape& shape);
void conv2d_backward_data_pack(ThreadPool& pool, const ConvShape& shape, const float* w, float* packed);
int64_t conv2d_backward_data_scratch_floats(const ConvShape& shape, int threads);
void conv2d_backward_data(ThreadPool& pool, const ConvShape& shape, const float* packed, const float* dy,
                          Accumulate mode, float* dx, float* scratch);

// dw (+)= the gradient of w.
int64_t conv2d_backward_weights_scratch_floats(const ConvShape& shape, int threads);
void conv2d_backward_weights(ThreadPool& pool, const ConvShape& shape, const float* x, const float* dy, Accumulate mode,
                             float* dw, float* scratch);

}  // namespace GLE_ISA
}  // namespace gle::cpu
