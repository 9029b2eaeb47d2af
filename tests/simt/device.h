#pragma once

// CUDA C++ for a host compiler, as far as engine/cuda/*.cu need it. One thread of a block is a fiber (fiber.h); what
// threads do together goes through the functions of kernel_call.h, which know where they were called from.

#include <vector_functions.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <tuple>
#include <type_traits>

#include "simt/kernel_call.h"

#undef __launch_bounds__
#define __launch_bounds__(...)

namespace simt {

template <class... Parameters>
cudaError_t launch(const char* op, cudaStream_t stream, void (*kernel)(Parameters...), dim3 grid, dim3 block,
                   size_t shared_bytes, const std::type_identity_t<Parameters>&... arguments) {
  using Tuple = std::tuple<Parameters...>;
  auto kept = std::make_shared<const Tuple>(arguments...);
  auto body = [kernel, values = kept.get()] { std::apply(kernel, *values); };
  return enqueue(stream,
                 {op, reinterpret_cast<const void*>(kernel), grid, block, shared_bytes, body, kept, sizeof(Tuple)});
}

template <class T>
T shuffle(unsigned mask, T value, int source, Site site) {
  static_assert(std::is_trivially_copyable_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  collective(Collective::shuffle, mask, &value, sizeof(T), source, site);
  return value;
}

// The lane whose value a lane gets; its own where the other lies outside of its group of `width` lanes.
inline int xor_source(int distance, int width) {
  const int source = lane() ^ distance;
  return source < (lane() & ~(width - 1)) + width ? source : lane();
}
inline int down_source(unsigned distance, int width) {
  const int offset = static_cast<int>(distance);
  return (lane() & (width - 1)) + offset < width ? lane() + offset : lane();
}
inline int up_source(unsigned distance, int width) {
  const int offset = static_cast<int>(distance);
  return (lane() & (width - 1)) >= offset ? lane() - offset : lane();
}
inline int index_source(int index, int width) { return (lane() & ~(width - 1)) + (index & (width - 1)); }

inline unsigned ballot(unsigned mask, bool predicate, Site site) {
  unsigned value = predicate ? 1 : 0;
  collective(Collective::ballot, mask, &value, sizeof value, 0, site);
  return value;
}

// Fibers take turns only in collectives, so plain loads and stores make an atomic; the checker hears of it as one.
template <class T, class F>
__attribute__((noinline, no_sanitize("thread"))) T atomic(T* at, const F& next) {
  static_assert(std::is_integral_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  note_atomic(at, sizeof(T));
  const T old = *at;
  *at = next(old);
  return old;
}

}  // namespace simt

#define SIMT_HERE \
  simt::Site { __FILE__, __LINE__ }

#define threadIdx (simt::thread_index())
#define blockIdx (simt::block_index())
#define blockDim (simt::block_size())
#define gridDim (simt::grid_size())
inline constexpr int warpSize = 32;

#define __syncthreads() static_cast<void>(simt::barrier(simt::Vote::none, 0, SIMT_HERE))
#define __syncthreads_count(p) simt::barrier(simt::Vote::count, (p) != 0, SIMT_HERE)
#define __syncthreads_and(p) simt::barrier(simt::Vote::all, (p) != 0, SIMT_HERE)
#define __syncthreads_or(p) simt::barrier(simt::Vote::any, (p) != 0, SIMT_HERE)

#define SIMT_FIRST(first, ...) (first)
#define __syncwarp(...)                                                                                           \
  simt::collective(simt::Collective::syncwarp, SIMT_FIRST(__VA_ARGS__ __VA_OPT__(, ) 0xffffffffU), nullptr, 0, 0, \
                   SIMT_HERE)
#define SIMT_WIDTH(...) SIMT_FIRST(__VA_ARGS__ __VA_OPT__(, ) 32)
#define __shfl_sync(mask, value, index, ...) \
  simt::shuffle(mask, value, simt::index_source(index, SIMT_WIDTH(__VA_ARGS__)), SIMT_HERE)
#define __shfl_up_sync(mask, value, distance, ...) \
  simt::shuffle(mask, value, simt::up_source(distance, SIMT_WIDTH(__VA_ARGS__)), SIMT_HERE)
#define __shfl_down_sync(mask, value, distance, ...) \
  simt::shuffle(mask, value, simt::down_source(distance, SIMT_WIDTH(__VA_ARGS__)), SIMT_HERE)
#define __shfl_xor_sync(mask, value, distance, ...) \
  simt::shuffle(mask, value, simt::xor_source(distance, SIMT_WIDTH(__VA_ARGS__)), SIMT_HERE)
#define __ballot_sync(mask, predicate) simt::ballot(mask, (predicate) != 0, SIMT_HERE)
#define __any_sync(mask, predicate) (simt::ballot(mask, (predicate) != 0, SIMT_HERE) != 0)
#define __all_sync(mask, predicate) (simt::ballot(mask, (predicate) == 0, SIMT_HERE) == 0)
#define __activemask() simt::active_mask()

#define SIMT_SHARED(T, name, count)         \
  static const char simt_key_of_##name = 0; \
  T* const name = static_cast<T*>(simt::static_shared(&simt_key_of_##name, sizeof(T) * (count)))
#define SIMT_DYNAMIC_SHARED(T, name) T* const name = static_cast<T*>(simt::dynamic_shared())

template <class T>
T atomicAdd(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T old) { return static_cast<T>(old + value); });
}
template <class T>
T atomicMax(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T old) { return old < value ? value : old; });
}
template <class T>
T atomicMin(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T old) { return value < old ? value : old; });
}
template <class T>
T atomicOr(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T old) { return static_cast<T>(old | value); });
}
template <class T>
T atomicExch(T* at, std::type_identity_t<T> value) {
  return simt::atomic(at, [value](T) { return value; });
}
template <class T>
T atomicCAS(T* at, std::type_identity_t<T> expected, std::type_identity_t<T> value) {
  return simt::atomic(at, [expected, value](T old) { return old == expected ? value : old; });
}
inline void __threadfence() {}
inline void __threadfence_block() {}

template <class T>
inline T __ldg(const T* at) {
  return *at;
}

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return x == 0 ? 32 : __builtin_clz(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((static_cast<uint64_t>(a) * b) >> 32); }
inline int __float_as_int(float x) {
  int bits;
  std::memcpy(&bits, &x, sizeof bits);
  return bits;
}
inline unsigned __float_as_uint(float x) { return static_cast<unsigned>(__float_as_int(x)); }
inline float __int_as_float(int bits) {
  float x;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}
inline float __uint_as_float(unsigned bits) { return __int_as_float(static_cast<int>(bits)); }

inline float rsqrtf(float x) { return 1.0F / std::sqrt(x); }
inline float __expf(float x) { return std::exp(x); }
inline float __logf(float x) { return std::log(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fsqrt_rn(float x) { return std::sqrt(x); }
inline float __frcp_rn(float x) { return 1.0F / x; }
inline float __saturatef(float x) { return std::fmin(std::fmax(x, 0.0F), 1.0F); }

template <class A, class B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  return b < a ? b : a;
}
template <class A, class B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  return a < b ? b : a;
}
