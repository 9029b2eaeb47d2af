#pragma once

// One float vector `vf` and one int32 vector `vi` of kLanes lanes, the widest the instruction set has: 16 with AVX-512,
// 8 with AVX2+FMA, 4 with SSE2. Both are GNU vectors: + - * / & | << >> and [] work lane by lane. Named here is only
// what the operators cannot say. All loads and stores are unaligned. No function may be emitted out of line.

#include <immintrin.h>

#include <cstdint>

#include "engine/cpu/isa.h"

namespace gle::cpu::GLE_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

using vf [[gnu::vector_size(4 * kLanes)]] = float;
using vi [[gnu::vector_size(4 * kLanes)]] = int32_t;
#if defined(__AVX512F__)
using vmask = __mmask16;
#else
using vmask = vi;  // all bits of a lane, or none
#endif

#if defined(__AVX512F__)

// The zero-masking forms below compile to the plain instructions; g++ 12 warns of the plain forms' undefined operand.
inline constexpr __mmask16 kAll = 0xffff;

GLE_INLINE vf set1(float a) { return _mm512_set1_ps(a); }
GLE_INLINE vi set1i(int32_t a) { return (vi)_mm512_set1_epi32(a); }
GLE_INLINE vf load(const float* p) { return _mm512_loadu_ps(p); }
GLE_INLINE vi loadi(const int32_t* p) { return (vi)_mm512_loadu_si512(p); }
GLE_INLINE void store(float* p, vf a) { _mm512_storeu_ps(p, a); }
GLE_INLINE void storei(int32_t* p, vi a) { _mm512_storeu_si512(p, (__m512i)a); }
GLE_INLINE __mmask16 first_lanes(int64_t n) { return static_cast<__mmask16>((1U << n) - 1U); }
GLE_INLINE vf load_partial(const float* p, int64_t n) { return _mm512_maskz_loadu_ps(first_lanes(n), p); }
GLE_INLINE void store_partial(float* p, vf a, int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a); }
GLE_INLINE vi loadi_partial(const int32_t* p, int64_t n) { return (vi)_mm512_maskz_loadu_epi32(first_lanes(n), p); }
GLE_INLINE void storei_partial(int32_t* p, vi a, int64_t n) { _mm512_mask_storeu_epi32(p, first_lanes(n), (__m512i)a); }
GLE_INLINE vf fma(vf a, vf b, vf c) { return _mm512_fmadd_ps(a, b, c); }
GLE_INLINE vf max(vf a, vf b) { return _mm512_maskz_max_ps(kAll, a, b); }  // b where either is NaN
GLE_INLINE vf min(vf a, vf b) { return _mm512_maskz_min_ps(kAll, a, b); }  // b where either is NaN
GLE_INLINE vf sqrt(vf a) { return _mm512_maskz_sqrt_ps(kAll, a); }
GLE_INLINE vmask lt(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LT_OQ); }
GLE_INLINE vmask le(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ); }
GLE_INLINE vmask eq(vf a, vf b) { return _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ); }
GLE_INLINE vmask lti(vi a, vi b) { return _mm512_cmplt_epi32_mask((__m512i)a, (__m512i)b); }
GLE_INLINE vmask eqi(vi a, vi b) { return _mm512_cmpeq_epi32_mask((__m512i)a, (__m512i)b); }
GLE_INLINE vf select(vmask m, vf a, vf b) { return _mm512_mask_blend_ps(m, b, a); }
GLE_INLINE vi selecti(vmask m, vi a, vi b) { return (vi)_mm512_mask_blend_epi32(m, (__m512i)b, (__m512i)a); }
GLE_INLINE vi round_to_int(vf a) { return (vi)_mm512_maskz_cvtps_epi32(kAll, a); }  // to nearest, ties to even
GLE_INLINE vf to_float(vi a) { return _mm512_maskz_cvtepi32_ps(kAll, (__m512i)a); }

#elif defined(__AVX2__)

GLE_INLINE vf set1(float a) { return _mm256_set1_ps(a); }
GLE_INLINE vi set1i(int32_t a) { return (vi)_mm256_set1_epi32(a); }
GLE_INLINE vf load(const float* p) { return _mm256_loadu_ps(p); }
GLE_INLINE vi loadi(const int32_t* p) { return (vi)_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)); }
GLE_INLINE void store(float* p, vf a) { _mm256_storeu_ps(p, a); }
GLE_INLINE void storei(int32_t* p, vi a) { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)a); }
GLE_INLINE __m256i first_lanes(int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
GLE_INLINE vf load_partial(const float* p, int64_t n) { return _mm256_maskload_ps(p, first_lanes(n)); }
GLE_INLINE void store_partial(float* p, vf a, int64_t n) { _mm256_maskstore_ps(p, first_lanes(n), a); }
GLE_INLINE vi loadi_partial(const int32_t* p, int64_t n) { return (vi)_mm256_maskload_epi32(p, first_lanes(n)); }
GLE_INLINE void storei_partial(int32_t* p, vi a, int64_t n) { _mm256_maskstore_epi32(p, first_lanes(n), (__m256i)a); }
GLE_INLINE vf fma(vf a, vf b, vf c) { return _mm256_fmadd_ps(a, b, c); }
GLE_INLINE vf max(vf a, vf b) { return _mm256_max_ps(a, b); }  // b where either is NaN
GLE_INLINE vf min(vf a, vf b) { return _mm256_min_ps(a, b); }  // b where either is NaN
GLE_INLINE vf sqrt(vf a) { return _mm256_sqrt_ps(a); }
GLE_INLINE vmask lt(vf a, vf b) { return (vmask)_mm256_cmp_ps(a, b, _CMP_LT_OQ); }
GLE_INLINE vmask le(vf a, vf b) { return (vmask)_mm256_cmp_ps(a, b, _CMP_LE_OQ); }
GLE_INLINE vmask eq(vf a, vf b) { return (vmask)_mm256_cmp_ps(a, b, _CMP_EQ_OQ); }
GLE_INLINE vmask lti(vi a, vi b) { return a < b; }
GLE_INLINE vmask eqi(vi a, vi b) { return a == b; }
GLE_INLINE vf select(vmask m, vf a, vf b) { return _mm256_blendv_ps(b, a, (__m256)m); }
GLE_INLINE vi selecti(vmask m, vi a, vi b) { return (m & a) | (~m & b); }
GLE_INLINE vi round_to_int(vf a) { return (vi)_mm256_cvtps_epi32(a); }  // to nearest, ties to even
GLE_INLINE vf to_float(vi a) { return _mm256_cvtepi32_ps((__m256i)a); }

#else

GLE_INLINE vf set1(float a) { return _mm_set1_ps(a); }
GLE_INLINE vi set1i(int32_t a) { return (vi)_mm_set1_epi32(a); }
GLE_INLINE vf load(const float* p) { return _mm_loadu_ps(p); }
GLE_INLINE vi loadi(const int32_t* p) { return (vi)_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); }
GLE_INLINE void store(float* p, vf a) { _mm_storeu_ps(p, a); }
GLE_INLINE void storei(int32_t* p, vi a) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), (__m128i)a); }
GLE_INLINE vf load_partial(const float* p, int64_t n) {
  vf a = {};
  for (int64_t i = 0; i < n; ++i) a[i] = p[i];
  return a;
}
GLE_INLINE void store_partial(float* p, vf a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = a[i];
}
GLE_INLINE vi loadi_partial(const int32_t* p, int64_t n) {
  vi a = {};
  for (int64_t i = 0; i < n; ++i) a[i] = p[i];
  return a;
}
GLE_INLINE void storei_partial(int32_t* p, vi a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = a[i];
}
GLE_INLINE vf fma(vf a, vf b, vf c) { return a * b + c; }   // two roundings: SSE2 has no fused multiply-add
GLE_INLINE vf max(vf a, vf b) { return _mm_max_ps(a, b); }  // b where either is NaN
GLE_INLINE vf min(vf a, vf b) { return _mm_min_ps(a, b); }  // b where either is NaN
GLE_INLINE vf sqrt(vf a) { return _mm_sqrt_ps(a); }
GLE_INLINE vmask lt(vf a, vf b) { return (vmask)_mm_cmplt_ps(a, b); }
GLE_INLINE vmask le(vf a, vf b) { return (vmask)_mm_cmple_ps(a, b); }
GLE_INLINE vmask eq(vf a, vf b) { return (vmask)_mm_cmpeq_ps(a, b); }
GLE_INLINE vmask lti(vi a, vi b) { return a < b; }
GLE_INLINE vmask eqi(vi a, vi b) { return a == b; }
GLE_INLINE vi selecti(vmask m, vi a, vi b) { return (m & a) | (~m & b); }
GLE_INLINE vf select(vmask m, vf a, vf b) { return (vf)selecti(m, (vi)a, (vi)b); }
GLE_INLINE vi round_to_int(vf a) { return (vi)_mm_cvtps_epi32(a); }  // to nearest, ties to even
GLE_INLINE vf to_float(vi a) { return _mm_cvtepi32_ps((__m128i)a); }

#endif

GLE_INLINE vf zero() { return vf{}; }
GLE_INLINE vmask gt(vf a, vf b) { return lt(b, a); }
GLE_INLINE vf abs(vf a) { return (vf)((vi)a & 0x7fffffff); }
GLE_INLINE vf rsqrt(vf a) { return set1(1.0F) / sqrt(a); }  // to the last bit or so, not the 12-bit estimate
GLE_INLINE vf leaky_relu(vf a, vf slope) { return select(lt(a, zero()), a * slope, a); }

// The upper half added to the lower until one lane is left: the same order everywhere.
GLE_INLINE float horizontal_sum(vf a) {
  float t[kLanes];
  store(t, a);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) t[i] += t[i + half];
  }
  return t[0];
}

GLE_INLINE float horizontal_max(vf a) {
  float t[kLanes];
  store(t, a);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) t[i] = t[i] < t[i + half] ? t[i + half] : t[i];
  }
  return t[0];
}

// Rows to columns of a square of kLanes vectors: blocks off the diagonal change places, in ever smaller squares.
GLE_INLINE void transpose(vf (&m)[kLanes]) {
#if defined(__AVX512F__)
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#pragma GCC unroll 4
  for (int half = 1; half < 16; half *= 2) {
    const vi odd = lane & half;
    const auto low = (__m512i)(lane + odd / half * (16 - half)),
               high = (__m512i)(lane + half + odd / half * (16 - half));
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) {
      if (i & half) continue;
      const vf a = m[i], b = m[i + half];
      m[i] = _mm512_permutex2var_ps(a, low, b);
      m[i + half] = _mm512_permutex2var_ps(a, high, b);
    }
  }
#elif defined(__AVX2__)
#pragma GCC unroll 8
  for (int i = 0; i < 8; i += 2) {
    const __m256 a = m[i], b = m[i + 1];
    m[i] = _mm256_blend_ps(a, _mm256_moveldup_ps(b), 0xaa);
    m[i + 1] = _mm256_blend_ps(_mm256_movehdup_ps(a), b, 0xaa);
  }
#pragma GCC unroll 8
  for (int i = 0; i < 8; ++i) {
    if (i & 2) continue;
    const auto a = (__m256d)m[i], b = (__m256d)m[i + 2];
    m[i] = (vf)_mm256_unpacklo_pd(a, b);
    m[i + 2] = (vf)_mm256_unpackhi_pd(a, b);
  }
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m256 a = m[i], b = m[i + 4];
    m[i] = _mm256_permute2f128_ps(a, b, 0x20);
    m[i + 4] = _mm256_permute2f128_ps(a, b, 0x31);
  }
#else
  __m128 a = m[0], b = m[1], c = m[2], d = m[3];
  _MM_TRANSPOSE4_PS(a, b, c, d);
  m[0] = a, m[1] = b, m[2] = c, m[3] = d;
#endif
}

// Lane i of the result is the sum of the lanes of m[i]; m is used up. As a transposition, but each exchange of blocks
// is followed by their sum, which leaves half as many vectors.
GLE_INLINE vf horizontal_sums(vf (&m)[kLanes]) {
#if defined(__AVX512F__)
  const vi lane = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
#pragma GCC unroll 4
  for (int half = 8; half > 0; half /= 2) {
    const vi odd = (lane & half) / half * (16 - half);
    const auto low = (__m512i)(lane + odd), high = (__m512i)(lane + half + odd);
#pragma GCC unroll 16
    for (int i = 0; i < half; ++i) {
      m[i] = _mm512_permutex2var_ps(m[i], low, m[i + half]) + _mm512_permutex2var_ps(m[i], high, m[i + half]);
    }
  }
#else
  transpose(m);
#pragma GCC unroll 4
  for (int half = kLanes / 2; half > 0; half /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < half; ++i) m[i] += m[i + half];
  }
#endif
  return m[0];
}

// e^a: a = n ln 2 + r with |r| <= ln(2)/2, a polynomial for e^r, then two scalings so that 2^n may be subnormal or
// infinite. -inf and everything below -104 give 0, above 88.73 inf, NaN stays NaN. Error below 1.1 ulp.
GLE_INLINE vf exp(vf a) {
  const vf x = min(set1(89.0F), max(set1(-104.0F), a));
  const vi n = round_to_int(x * set1(1.44269504088896341F));
  const vf nf = to_float(n);
  const vf r = fma(nf, set1(-1.42860682030941723212e-6F), fma(nf, set1(-0.693145751953125F), x));
  vf p = set1(1.9875691500e-4F);
  p = fma(p, r, set1(1.3981999507e-3F));
  p = fma(p, r, set1(8.3334519073e-3F));
  p = fma(p, r, set1(4.1665795894e-2F));
  p = fma(p, r, set1(1.6666665459e-1F));
  p = fma(p, r, set1(5.0000001201e-1F));
  p = fma(p, r * r, r) + 1.0F;
  const vi half = n >> 1;
  return p * (vf)((half + 127) << 23) * (vf)((n - half + 127) << 23);
}

// -- for the memory-bound kernels: bytes, masks, stores past the caches
// ------------------------------------------------

#if defined(__AVX512F__)

GLE_INLINE vmask is_nan(vf a) { return _mm512_cmp_ps_mask(a, a, _CMP_UNORD_Q); }
GLE_INLINE vi load_bytes(const uint8_t* p) {
  return (vi)_mm512_maskz_cvtepu8_epi32(kAll, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
GLE_INLINE void store_bytes(uint8_t* p, vi a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAll, (__m512i)a));
}
GLE_INLINE void stream(float* p, vf a) { _mm512_stream_ps(p, a); }

#elif defined(__AVX2__)

GLE_INLINE vmask is_nan(vf a) { return (vmask)_mm256_cmp_ps(a, a, _CMP_UNORD_Q); }
GLE_INLINE vi load_bytes(const uint8_t* p) {
  return (vi)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
GLE_INLINE void store_bytes(uint8_t* p, vi a) {
  const __m128i words = _mm_packs_epi32(_mm256_castsi256_si128((__m256i)a), _mm256_extracti128_si256((__m256i)a, 1));
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_packus_epi16(words, words));
}
GLE_INLINE void stream(float* p, vf a) { _mm256_stream_ps(p, a); }

#else

GLE_INLINE vmask is_nan(vf a) { return (vmask)_mm_cmpunord_ps(a, a); }
GLE_INLINE vi load_bytes(const uint8_t* p) { return vi{p[0], p[1], p[2], p[3]}; }
GLE_INLINE void store_bytes(uint8_t* p, vi a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<uint8_t>(a[i]);
}
GLE_INLINE void stream(float* p, vf a) { _mm_stream_ps(p, a); }

#endif

GLE_INLINE vi load_bytes_partial(const uint8_t* p, int64_t n) {
  vi a = {};
  for (int64_t i = 0; i < n; ++i) a[i] = p[i];
  return a;
}
GLE_INLINE void store_bytes_partial(uint8_t* p, vi a, int64_t n) {
  for (int64_t i = 0; i < n; ++i) p[i] = static_cast<uint8_t>(a[i]);
}
GLE_INLINE vmask either(vmask a, vmask b) { return static_cast<vmask>(a | b); }
GLE_INLINE vi lane_numbers() {
  vi a = {};
  for (int i = 0; i < kLanes; ++i) a[i] = i;
  return a;
}
// stream() wants p aligned to the vector, and this before another thread reads.
GLE_INLINE void stream_fence() { _mm_sfence(); }

}  // namespace gle::cpu::GLE_ISA
