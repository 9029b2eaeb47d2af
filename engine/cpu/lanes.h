#pragma once

// Loops over the channels of a row in vectors, the tail included: the body is written once and compiled for a full
// vector and for a partial one. And the three ways in which a result reaches its place.

#include <cstdint>

#include "engine/cpu/simd.h"
#include "engine/options.h"

namespace gle::cpu::GLE_ISA {

// `stream` writes past the caches. It saves the read of a line about to be overwritten, a third of the traffic of a
// pass over one tensor into another, but whoever comes next finds nothing in the caches.
enum class Put { overwrite, add, stream };

// Results of this size are beyond most caches by the time the next kernel wants them.
inline constexpr int64_t kStreamFloats = int64_t{4} << 20;

GLE_INLINE Put put_mode(const Tensor& y) {
  // A streamed line must be written whole.
  const bool whole_lines = (reinterpret_cast<uintptr_t>(y.data()) % 64 | static_cast<uintptr_t>(y.pitch() % 16) |
                            static_cast<uintptr_t>(y.channels() % 16)) == 0;
  return whole_lines && y.rows() * y.channels() >= kStreamFloats ? Put::stream : Put::overwrite;
}

GLE_INLINE Put put_mode(const GradTarget& y) { return y.mode == Accumulate::add ? Put::add : put_mode(y.grad); }

struct FullLanes {
  GLE_INLINE vf load(const float* p) const { return GLE_ISA::load(p); }
  GLE_INLINE vi loadi(const int32_t* p) const { return GLE_ISA::loadi(p); }
  GLE_INLINE vi load_bytes(const uint8_t* p) const { return GLE_ISA::load_bytes(p); }
  GLE_INLINE void store(float* p, vf a) const { GLE_ISA::store(p, a); }
  GLE_INLINE void storei(int32_t* p, vi a) const { GLE_ISA::storei(p, a); }
  GLE_INLINE void store_bytes(uint8_t* p, vi a) const { GLE_ISA::store_bytes(p, a); }
  // `a` in the lanes that exist, `other` in the rest.
  GLE_INLINE vf keep(vf a, vf) const { return a; }
  GLE_INLINE void put(float* p, vf a, Put mode) const {
    if (mode == Put::stream) {
      stream(p, a);
    } else {
      store(p, mode == Put::add ? load(p) + a : a);
    }
  }
};

struct PartialLanes {
  int64_t n;
  GLE_INLINE vf load(const float* p) const { return load_partial(p, n); }
  GLE_INLINE vi loadi(const int32_t* p) const { return loadi_partial(p, n); }
  GLE_INLINE vi load_bytes(const uint8_t* p) const { return load_bytes_partial(p, n); }
  GLE_INLINE void store(float* p, vf a) const { store_partial(p, a, n); }
  GLE_INLINE void storei(int32_t* p, vi a) const { storei_partial(p, a, n); }
  GLE_INLINE void store_bytes(uint8_t* p, vi a) const { store_bytes_partial(p, a, n); }
  GLE_INLINE vf keep(vf a, vf other) const {
    return select(lti(lane_numbers(), set1i(static_cast<int32_t>(n))), a, other);
  }
  GLE_INLINE void put(float* p, vf a, Put mode) const { store(p, mode == Put::add ? load(p) + a : a); }
};

// body(c, lanes) for vectors at c = 0, kLanes, ...
template <class Body>
GLE_INLINE void for_vectors(int64_t channels, const Body& body) {
  int64_t c = 0;
  for (; c + kLanes <= channels; c += kLanes) {
    body(c, FullLanes{});
  }
  if (c < channels) {
    body(c, PartialLanes{channels - c});
  }
}

// The vectors that a kernel keeps in registers side by side while it walks down rows.
inline constexpr int kBlockVectors = 4;

template <int n>
struct Vectors {
  static constexpr int count = n;
};

// body(c, Vectors<n>, lanes) for blocks of n vectors of channels; n is 1 where they do not fill a block.
template <int n = kBlockVectors, class Body>
GLE_INLINE void for_channel_blocks(int64_t channels, const Body& body) {
  int64_t c = 0;
  if constexpr (n > 1) {
    for (; c + n * kLanes <= channels; c += n * kLanes) {
      body(c, Vectors<n>{}, FullLanes{});
    }
  }
  for (; c + kLanes <= channels; c += kLanes) {
    body(c, Vectors<1>{}, FullLanes{});
  }
  if (c < channels) {
    body(c, Vectors<1>{}, PartialLanes{channels - c});
  }
}

// f(v) and its derivative, given v or f(v): both have the same sign.
GLE_INLINE vf activate(vf v, vf slope) { return leaky_relu(v, slope); }
GLE_INLINE vf activation_gradient(vf v, vf slope, vf dy) { return select(le(v, zero()), dy * slope, dy); }

}  // namespace gle::cpu::GLE_ISA
