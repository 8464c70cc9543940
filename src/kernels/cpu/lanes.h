// Sixteen lanes of float or int32 at whatever width the including file is compiled for: one zmm,
// two ymm, or plain arrays. Kernels are written once against these and compiled per SIMD level;
// everything lives in a namespace of the level, so that no two levels share a symbol.
#pragma once
#include <cstdint>
#include <cstring>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#ifndef GAUNTLET_SIMD
#error "define GAUNTLET_SIMD as the level's namespace before including this"
#endif

namespace gauntlet::kernels::cpu::GAUNTLET_SIMD {

inline constexpr int kLanes = 16;
#define GAUNTLET_INLINE inline __attribute__((always_inline))

#if defined(__AVX512F__)

using F32 = __m512;
using I32 = __m512i;

GAUNTLET_INLINE F32 load(const float* p) { return _mm512_loadu_ps(p); }
GAUNTLET_INLINE void store(float* p, F32 v) { _mm512_storeu_ps(p, v); }
GAUNTLET_INLINE F32 broadcast(float v) { return _mm512_set1_ps(v); }
GAUNTLET_INLINE F32 add(F32 a, F32 b) { return _mm512_add_ps(a, b); }
GAUNTLET_INLINE F32 sub(F32 a, F32 b) { return _mm512_sub_ps(a, b); }
GAUNTLET_INLINE F32 mul(F32 a, F32 b) { return _mm512_mul_ps(a, b); }
GAUNTLET_INLINE F32 div(F32 a, F32 b) { return _mm512_div_ps(a, b); }
GAUNTLET_INLINE F32 fma(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
GAUNTLET_INLINE F32 max(F32 a, F32 b) { return _mm512_max_ps(a, b); }
GAUNTLET_INLINE F32 min(F32 a, F32 b) { return _mm512_min_ps(a, b); }
GAUNTLET_INLINE float reduce_max(F32 v) { return _mm512_reduce_max_ps(v); }
GAUNTLET_INLINE float reduce_add(F32 v) { return _mm512_reduce_add_ps(v); }
GAUNTLET_INLINE F32 round_nearest(F32 v) { return _mm512_roundscale_ps(v, 0); }
/// 2^n for whole n within the exponent range.
GAUNTLET_INLINE F32 exp2_whole(F32 n) {
  return _mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127)), 23));
}
/// Lanes below `count` keep their value, the others become `other`.
GAUNTLET_INLINE F32 keep_below(F32 v, int count, float other) {
  return _mm512_mask_mov_ps(_mm512_set1_ps(other), static_cast<__mmask16>((1u << count) - 1), v);
}
/// Lanes from `begin` on keep their value, those before become `other`.
GAUNTLET_INLINE F32 keep_from(F32 v, int begin, float other) {
  return _mm512_mask_mov_ps(v, static_cast<__mmask16>((1u << begin) - 1), _mm512_set1_ps(other));
}
GAUNTLET_INLINE F32 load_bf16(const std::uint16_t* p) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(
      _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16));
}
/// Rounds to nearest even; NaN is not expected here.
GAUNTLET_INLINE void store_bf16(std::uint16_t* p, F32 v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_srli_epi32(
      _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF))), 16);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(rounded));
}

GAUNTLET_INLINE I32 load_i32(const void* p) { return _mm512_loadu_si512(p); }
GAUNTLET_INLINE I32 broadcast_i32(std::int32_t v) { return _mm512_set1_epi32(v); }
GAUNTLET_INLINE F32 to_f32(I32 v) { return _mm512_cvtepi32_ps(v); }
/// The low, then the high, bf16 of each lane.
GAUNTLET_INLINE F32 low_bf16(I32 v) { return _mm512_castsi512_ps(_mm512_slli_epi32(v, 16)); }
GAUNTLET_INLINE F32 high_bf16(I32 v) {
  return _mm512_castsi512_ps(_mm512_and_si512(v, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
}
/// The FP4 value of the nibble at bit `Shift` of each lane.
template <int Shift>
GAUNTLET_INLINE F32 fp4(I32 v) {
  const __m512 values =
      _mm512_setr_ps(0, .5f, 1, 1.5f, 2, 3, 4, 6, -0.f, -.5f, -1, -1.5f, -2, -3, -4, -6);
  return _mm512_permutexvar_ps(Shift == 0 ? v : _mm512_srli_epi32(v, Shift), values);
}
/// Twice the FP4 value plus 12, so that it is an unsigned byte: of the low, then the high nibbles.
GAUNTLET_INLINE I32 fp4_bytes(I32 nibbles) {
  const __m512i values = _mm512_broadcast_i32x4(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  return _mm512_shuffle_epi8(values, nibbles);
}
GAUNTLET_INLINE I32 low_nibbles(I32 v) {
  return fp4_bytes(_mm512_and_si512(v, _mm512_set1_epi8(15)));
}
GAUNTLET_INLINE I32 high_nibbles(I32 v) {
  return fp4_bytes(_mm512_and_si512(_mm512_srli_epi16(v, 4), _mm512_set1_epi8(15)));
}
/// Adds to each lane the products of its four unsigned bytes with four signed ones.
GAUNTLET_INLINE I32 dot_bytes(I32 sum, I32 unsigned_bytes, I32 signed_bytes) {
  return _mm512_dpbusd_epi32(sum, unsigned_bytes, signed_bytes);
}
/// The same for unsigned bytes of any size; dot_bytes takes those up to 128 on every level.
GAUNTLET_INLINE I32 dot_all_bytes(I32 sum, I32 unsigned_bytes, I32 signed_bytes) {
  return dot_bytes(sum, unsigned_bytes, signed_bytes);
}
GAUNTLET_INLINE I32 times_128(I32 v) { return _mm512_slli_epi32(v, 7); }
GAUNTLET_INLINE I32 add_i32(I32 a, I32 b) { return _mm512_add_epi32(a, b); }
/// 2^(byte - 127) of sixteen E8M0 bytes; byte 0 is 2^-127, which is a subnormal.
GAUNTLET_INLINE F32 load_e8m0(const std::uint8_t* p) {
  const __m512i e = _mm512_cvtepu8_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return _mm512_castsi512_ps(
      _mm512_max_epu32(_mm512_slli_epi32(e, 23), _mm512_set1_epi32(0x00400000)));
}
#if defined(__AVX512BF16__)
GAUNTLET_INLINE F32 dot_bf16(F32 sum, I32 a, I32 b) {
  return _mm512_dpbf16_ps(sum, reinterpret_cast<__m512bh>(a), reinterpret_cast<__m512bh>(b));
}
#else
GAUNTLET_INLINE F32 dot_bf16(F32 sum, I32 a, I32 b) {
  return fma(high_bf16(a), high_bf16(b), fma(low_bf16(a), low_bf16(b), sum));
}
#endif
/// Rounds to the nearest integer and saturates to signed bytes.
GAUNTLET_INLINE void store_i8(std::int8_t* p, F32 v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtsepi32_epi8(_mm512_cvtps_epi32(v)));
}

#elif defined(__AVX2__)

struct F32 {
  __m256 lo, hi;
};
struct I32 {
  __m256i lo, hi;
};

GAUNTLET_INLINE F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
GAUNTLET_INLINE void store(float* p, F32 v) {
  _mm256_storeu_ps(p, v.lo);
  _mm256_storeu_ps(p + 8, v.hi);
}
GAUNTLET_INLINE F32 broadcast(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
GAUNTLET_INLINE F32 add(F32 a, F32 b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE F32 sub(F32 a, F32 b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE F32 mul(F32 a, F32 b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE F32 div(F32 a, F32 b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE F32 fma(F32 a, F32 b, F32 c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
GAUNTLET_INLINE F32 max(F32 a, F32 b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE F32 min(F32 a, F32 b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
GAUNTLET_INLINE float reduce_max(F32 v) {
  const __m256 m = _mm256_max_ps(v.lo, v.hi);
  __m128 x = _mm_max_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  x = _mm_max_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_max_ss(x, _mm_movehdup_ps(x)));
}
GAUNTLET_INLINE float reduce_add(F32 v) {
  const __m256 m = _mm256_add_ps(v.lo, v.hi);
  __m128 x = _mm_add_ps(_mm256_castps256_ps128(m), _mm256_extractf128_ps(m, 1));
  x = _mm_add_ps(x, _mm_movehl_ps(x, x));
  return _mm_cvtss_f32(_mm_add_ss(x, _mm_movehdup_ps(x)));
}
GAUNTLET_INLINE F32 round_nearest(F32 v) {
  return {_mm256_round_ps(v.lo, 8), _mm256_round_ps(v.hi, 8)};
}
GAUNTLET_INLINE __m256 exp2_half(__m256 n) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)), 23));
}
GAUNTLET_INLINE F32 exp2_whole(F32 n) { return {exp2_half(n.lo), exp2_half(n.hi)}; }
GAUNTLET_INLINE __m256i lane_numbers(int first) {
  return _mm256_add_epi32(_mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7), _mm256_set1_epi32(first));
}
GAUNTLET_INLINE __m256 blend_if(__m256 v, __m256 other, __m256i condition) {
  return _mm256_blendv_ps(v, other, _mm256_castsi256_ps(condition));
}
GAUNTLET_INLINE F32 keep_below(F32 v, int count, float other) {
  const __m256i last = _mm256_set1_epi32(count - 1);
  const __m256 o = _mm256_set1_ps(other);
  return {blend_if(v.lo, o, _mm256_cmpgt_epi32(lane_numbers(0), last)),
          blend_if(v.hi, o, _mm256_cmpgt_epi32(lane_numbers(8), last))};
}
GAUNTLET_INLINE F32 keep_from(F32 v, int begin, float other) {
  const __m256i first = _mm256_set1_epi32(begin);
  const __m256 o = _mm256_set1_ps(other);
  return {blend_if(v.lo, o, _mm256_cmpgt_epi32(first, lane_numbers(0))),
          blend_if(v.hi, o, _mm256_cmpgt_epi32(first, lane_numbers(8)))};
}
GAUNTLET_INLINE __m256 load_bf16_half(const std::uint16_t* p) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(
      _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))), 16));
}
GAUNTLET_INLINE F32 load_bf16(const std::uint16_t* p) {
  return {load_bf16_half(p), load_bf16_half(p + 8)};
}
GAUNTLET_INLINE __m256i round_bf16(__m256 v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  return _mm256_srli_epi32(_mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF))),
                           16);
}
GAUNTLET_INLINE void store_bf16(std::uint16_t* p, F32 v) {
  const __m256i packed = _mm256_packus_epi32(round_bf16(v.lo), round_bf16(v.hi));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm256_permute4x64_epi64(packed, 0b11011000));
}

GAUNTLET_INLINE I32 load_i32(const void* p) {
  const auto* v = static_cast<const __m256i*>(p);
  return {_mm256_loadu_si256(v), _mm256_loadu_si256(v + 1)};
}
GAUNTLET_INLINE I32 broadcast_i32(std::int32_t v) {
  return {_mm256_set1_epi32(v), _mm256_set1_epi32(v)};
}
GAUNTLET_INLINE F32 to_f32(I32 v) { return {_mm256_cvtepi32_ps(v.lo), _mm256_cvtepi32_ps(v.hi)}; }
GAUNTLET_INLINE F32 low_bf16(I32 v) {
  return {_mm256_castsi256_ps(_mm256_slli_epi32(v.lo, 16)),
          _mm256_castsi256_ps(_mm256_slli_epi32(v.hi, 16))};
}
GAUNTLET_INLINE F32 high_bf16(I32 v) {
  const __m256i mask = _mm256_set1_epi32(static_cast<int>(0xFFFF0000u));
  return {_mm256_castsi256_ps(_mm256_and_si256(v.lo, mask)),
          _mm256_castsi256_ps(_mm256_and_si256(v.hi, mask))};
}
template <int Shift>
GAUNTLET_INLINE __m256 fp4_half(__m256i v) {
  // The permutation takes three bits; the fourth is the sign.
  const __m256 magnitudes = _mm256_setr_ps(0, .5f, 1, 1.5f, 2, 3, 4, 6);
  const __m256 magnitude =
      _mm256_permutevar8x32_ps(magnitudes, Shift == 0 ? v : _mm256_srli_epi32(v, Shift));
  const __m256i sign = _mm256_and_si256(_mm256_slli_epi32(v, 28 - Shift),
                                        _mm256_set1_epi32(static_cast<int>(0x80000000u)));
  return _mm256_or_ps(magnitude, _mm256_castsi256_ps(sign));
}
template <int Shift>
GAUNTLET_INLINE F32 fp4(I32 v) {
  return {fp4_half<Shift>(v.lo), fp4_half<Shift>(v.hi)};
}
GAUNTLET_INLINE __m256i fp4_bytes_half(__m256i nibbles) {
  const __m256i values = _mm256_broadcastsi128_si256(
      _mm_setr_epi8(12, 13, 14, 15, 16, 18, 20, 24, 12, 11, 10, 9, 8, 6, 4, 0));
  return _mm256_shuffle_epi8(values, _mm256_and_si256(nibbles, _mm256_set1_epi8(15)));
}
GAUNTLET_INLINE I32 low_nibbles(I32 v) { return {fp4_bytes_half(v.lo), fp4_bytes_half(v.hi)}; }
GAUNTLET_INLINE I32 high_nibbles(I32 v) {
  return {fp4_bytes_half(_mm256_srli_epi16(v.lo, 4)), fp4_bytes_half(_mm256_srli_epi16(v.hi, 4))};
}
GAUNTLET_INLINE __m256i dot_bytes_half(__m256i sum, __m256i u, __m256i s) {
  // No pair saturates: weights are at most 24, so two products stay below 24 * 127 * 2.
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(u, s), _mm256_set1_epi16(1)));
}
GAUNTLET_INLINE I32 dot_bytes(I32 sum, I32 u, I32 s) {
  return {dot_bytes_half(sum.lo, u.lo, s.lo), dot_bytes_half(sum.hi, u.hi, s.hi)};
}
GAUNTLET_INLINE __m256i dot_all_bytes_half(__m256i sum, __m256i u, __m256i s) {
  // Even and odd bytes apart, widened: pairs of bytes would saturate above 128.
  const __m256i even = _mm256_madd_epi16(_mm256_and_si256(u, _mm256_set1_epi16(255)),
                                         _mm256_srai_epi16(_mm256_slli_epi16(s, 8), 8));
  const __m256i odd = _mm256_madd_epi16(_mm256_srli_epi16(u, 8), _mm256_srai_epi16(s, 8));
  return _mm256_add_epi32(sum, _mm256_add_epi32(even, odd));
}
GAUNTLET_INLINE I32 dot_all_bytes(I32 sum, I32 u, I32 s) {
  return {dot_all_bytes_half(sum.lo, u.lo, s.lo), dot_all_bytes_half(sum.hi, u.hi, s.hi)};
}
GAUNTLET_INLINE I32 times_128(I32 v) {
  return {_mm256_slli_epi32(v.lo, 7), _mm256_slli_epi32(v.hi, 7)};
}
GAUNTLET_INLINE I32 add_i32(I32 a, I32 b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
GAUNTLET_INLINE __m256 e8m0_half(const std::uint8_t* p) {
  const __m256i e = _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
  return _mm256_castsi256_ps(
      _mm256_max_epu32(_mm256_slli_epi32(e, 23), _mm256_set1_epi32(0x00400000)));
}
GAUNTLET_INLINE F32 load_e8m0(const std::uint8_t* p) { return {e8m0_half(p), e8m0_half(p + 8)}; }
GAUNTLET_INLINE F32 dot_bf16(F32 sum, I32 a, I32 b) {
  return fma(high_bf16(a), high_bf16(b), fma(low_bf16(a), low_bf16(b), sum));
}
GAUNTLET_INLINE void store_i8(std::int8_t* p, F32 v) {
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packs_epi32(_mm256_cvtps_epi32(v.lo), _mm256_cvtps_epi32(v.hi)), 0b11011000);
  _mm_storeu_si128(
      reinterpret_cast<__m128i*>(p),
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1)));
}

#else
#include "kernels/cpu/lanes_portable.inc"
#endif

}  // namespace gauntlet::kernels::cpu::GAUNTLET_SIMD
