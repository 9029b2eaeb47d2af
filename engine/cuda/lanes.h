#pragma once

// Floats of a row side by side in one thread: four by a 16-byte access where pointer and pitch allow, else one. Kernels
// are written once for both widths.

#include <cstdint>
#include <initializer_list>

#include "engine/cuda/kernel.h"
#include "engine/options.h"
#include "engine/tensor.h"

namespace gle::cuda {

template <int kWidth>
struct Floats {
  float at[kWidth];
};

template <int kWidth>
struct Width {
  static constexpr int count = kWidth;
};

template <int kWidth>
__device__ inline Floats<kWidth> load(const float* p) {
  if constexpr (kWidth == 4) {
    const float4 v = *reinterpret_cast<const float4*>(p);
    return {{v.x, v.y, v.z, v.w}};
  } else {
    return {{*p}};
  }
}

template <int kWidth>
__device__ inline void store(float* p, const Floats<kWidth>& v) {
  if constexpr (kWidth == 4) {
    *reinterpret_cast<float4*>(p) = make_float4(v.at[0], v.at[1], v.at[2], v.at[3]);
  } else {
    *p = v.at[0];
  }
}

// One value of f(0), f(1), ... for each lane.
template <int kWidth, class F>
__device__ inline Floats<kWidth> each(const F& f) {
  Floats<kWidth> result;
  for (int i = 0; i < kWidth; ++i) {
    result.at[i] = f(i);
  }
  return result;
}

// How a result reaches its place.
template <int kWidth>
__device__ inline void put(float* p, const Floats<kWidth>& v, Accumulate mode) {
  if (mode == Accumulate::overwrite) {
    store<kWidth>(p, v);
    return;
  }
  const Floats<kWidth> before = load<kWidth>(p);
  store<kWidth>(p, each<kWidth>([&](int i) { return before.at[i] + v.at[i]; }));
}

// A tensor to read.
struct In {
  const float* data;
  int64_t pitch;

  In(const float* from, int64_t distance) : data(from), pitch(distance) {}
  In(const Tensor& t) : data(t.data()), pitch(t.pitch()) {}

  template <int kWidth>
  __device__ Floats<kWidth> load(int64_t row, int64_t column) const {
    return cuda::load<kWidth>(data + row * pitch + column);
  }
  __device__ float at(int64_t row, int64_t column) const { return data[row * pitch + column]; }
};

// A tensor to write.
struct Out {
  float* data;
  int64_t pitch;
  Accumulate mode = Accumulate::overwrite;

  Out(float* to, int64_t distance) : data(to), pitch(distance) {}
  Out(const Tensor& t) : data(t.data()), pitch(t.pitch()) {}
  Out(const GradTarget& t) : data(t.grad.data()), pitch(t.grad.pitch()), mode(t.mode) {}

  template <int kWidth>
  __device__ void put(int64_t row, int64_t column, const Floats<kWidth>& v) const {
    cuda::put<kWidth>(data + row * pitch + column, v, mode);
  }
};

using Tensors = std::initializer_list<const Tensor*>;

// Whether all of them, or every row of all of them, begin at a multiple of 16 bytes. An empty one is no obstacle.
inline bool begin_in_fours(Tensors tensors) {
  for (const Tensor* t : tensors) {
    if (reinterpret_cast<uintptr_t>(t->data()) % 16 != 0) {
      return false;
    }
  }
  return true;
}

inline bool in_fours(Tensors tensors) {
  for (const Tensor* t : tensors) {
    if (t->rows() > 1 && t->pitch() % 4 != 0) {
      return false;
    }
  }
  return begin_in_fours(tensors);
}

inline int64_t pieces_of(int64_t total, int64_t piece) { return (total + piece - 1) / piece; }
inline unsigned dim(int64_t size) { return static_cast<unsigned>(size); }

// f(v) and its derivative, given v or f(v): both have the same sign.
__device__ inline float activate(float v, float slope) { return v < 0.0F ? v * slope : v; }
__device__ inline float activation_gradient(float v, float slope, float dy) { return v <= 0.0F ? dy * slope : dy; }

}  // namespace gle::cuda
