/* One vector type of VL floats for every target; kernels are written once on top of it.
 *
 *   vf   VL floats        vi   VL int32, also the result of a comparison (all ones / all zeros per lane)
 *
 * Arithmetic and comparison operators work on both (GCC vector extensions). Operations are IEEE: never -ffast-math, and
 * contraction is off, so a multiply-add is fused exactly where `vfma` is written and the build is a fused one (IS_FUSED).
 * Fused builds (relaxed SIMD on an FMA engine, AVX2, AVX-512, NEON) therefore agree bit for bit, whatever VL is, as long as
 * a kernel keeps every output's own order of operations independent of VL, and so do all others: SSE2, SIMD128, scalar, and
 * with WEBRNN_UNFUSED every instruction set. See `LANES` for reductions. */
#ifndef WEBRNN_SIMD_H
#define WEBRNN_SIMD_H

#include <stddef.h>
#include <stdint.h>

#if defined(WEBRNN_SCALAR)
#define VL 1
#elif defined(__AVX512F__)
#define VL 16
#include <immintrin.h>
#elif defined(__AVX2__) && defined(__FMA__)
#define VL 8
#include <immintrin.h>
#elif defined(__SSE2__)
#define VL 4
#include <emmintrin.h>
#elif defined(__wasm_simd128__)
#define VL 4
#elif defined(__aarch64__)
#define VL 4
#include <arm_neon.h>
#else
#define VL 1
#endif

/* Whether a multiply-add is rounded once. An unfused build rounds the product and the sum, as every other unfused build. */
#if defined(WEBRNN_UNFUSED) || VL == 1 || (VL == 4 && !defined(__wasm_relaxed_simd__) && !defined(__aarch64__))
#define IS_FUSED 0
#else
#define IS_FUSED 1
#endif

/* Vectors that a long computation takes at a time, step by step: of one alone each step would wait for the one before. Wasm
 * engines have not the registers for it. */
#if VL >= 8 || (VL == 4 && defined(__aarch64__))
#define TOGETHER 3
#else
#define TOGETHER 1
#endif

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE static __attribute__((noinline))
#define COMPACT __attribute__((minsize, noinline)) /* a function that is long rather than hot */
#define UNROLL _Pragma("clang loop unroll(full)")
/* Few steps, or rare: vectors would only be more code. */
#define NO_VECTORS _Pragma("clang loop vectorize(disable) unroll(disable)")

typedef float vf __attribute__((vector_size(4 * VL)));
typedef int32_t vi __attribute__((vector_size(4 * VL)));

#if VL == 1
#define REPEAT_LANES(x) x
#elif VL == 4
#define REPEAT_LANES(x) x, x, x, x
#elif VL == 8
#define REPEAT_LANES(x) x, x, x, x, x, x, x, x
#else
#define REPEAT_LANES(x) x, x, x, x, x, x, x, x, x, x, x, x, x, x, x, x
#endif

INLINE vf vset(float x) { return (vf){REPEAT_LANES(x)}; }
INLINE vi vset_i(int32_t x) { return (vi){REPEAT_LANES(x)}; }

/* A constant inside a loop. V8 builds a v128.const anew wherever it is used, in several instructions; what it does not see to be
 * a constant is built once, before the loop. */
INLINE vf vconst(float x) {
  vf v = vset(x);
#if defined(__wasm_simd128__) && VL == 4
  __asm__("" : "+r"(v));
#endif
  return v;
}

INLINE vi vconst_i(int32_t x) {
  vi v = vset_i(x);
#if defined(__wasm_simd128__) && VL == 4
  __asm__("" : "+r"(v));
#endif
  return v;
}

INLINE vf vload(const float *p) {
  vf v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
INLINE void vstore(float *p, vf v) { __builtin_memcpy(p, &v, sizeof v); }

/* The first n (< VL) lanes; the others are zero on load and untouched in memory on store. Nothing goes through memory: a
 * load that spans several stores would have to wait for them. */
#if VL == 8
INLINE __m256i first_lanes(int n) {
  static const int32_t lanes[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256((const __m256i *)(lanes + 8 - n));
}
INLINE vf vload_part(const float *p, int n) {
  return n == 4 ? _mm256_zextps128_ps256(_mm_loadu_ps(p)) : _mm256_maskload_ps(p, first_lanes(n));
}
/* Masked stores are slow on some processors, and loads have to wait for them. */
INLINE void vstore_part(float *p, vf v, int n) {
  __m128 four = _mm256_castps256_ps128(v);
  if (n & 4) {
    _mm_storeu_ps(p, four);
    four = _mm256_extractf128_ps(v, 1);
    p += 4;
  }
  if (n & 2) {
    _mm_storel_pi((__m64 *)p, four);
    four = _mm_movehl_ps(four, four);
    p += 2;
  }
  if (n & 1) _mm_store_ss(p, four);
}
#elif VL == 16
INLINE vf vload_part(const float *p, int n) { return _mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
INLINE void vstore_part(float *p, vf v, int n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), v); }
#elif VL == 4
NOINLINE vf vload_part(const float *p, int n) {
  if (n == 1) return (vf){p[0], 0, 0, 0};
  if (n == 2) return (vf){p[0], p[1], 0, 0};
  return n == 3 ? (vf){p[0], p[1], p[2], 0} : (vf){0, 0, 0, 0};
}
NOINLINE void vstore_part(float *p, vf v, int n) {
  if (n > 0) p[0] = v[0];
  if (n > 1) p[1] = v[1];
  if (n > 2) p[2] = v[2];
}
#else
INLINE vf vload_part(const float *p, int n) { return n > 0 ? vload(p) : vset(0.0f); }
INLINE void vstore_part(float *p, vf v, int n) {
  if (n > 0) vstore(p, v);
}
#endif

/* A whole vector, or the first `rest` lanes where fewer are left */
INLINE vf vload_upto(const float *p, int rest) { return rest >= VL ? vload(p) : vload_part(p, rest); }
INLINE void vstore_upto(float *p, vf v, int rest) {
  if (rest >= VL) vstore(p, v);
  else vstore_part(p, v, rest);
}

/* x, but not above `top` or below `bottom`; NaN stays. One instruction, unlike a selection. */
#if VL == 8
INLINE vf vcap(vf x, vf top) { return _mm256_min_ps(top, x); }
INLINE vf vraise(vf x, vf bottom) { return _mm256_max_ps(bottom, x); }
#elif VL == 16
INLINE vf vcap(vf x, vf top) { return _mm512_min_ps(top, x); }
INLINE vf vraise(vf x, vf bottom) { return _mm512_max_ps(bottom, x); }
#elif VL == 4 && defined(__SSE2__)
INLINE vf vcap(vf x, vf top) { return _mm_min_ps(top, x); }
INLINE vf vraise(vf x, vf bottom) { return _mm_max_ps(bottom, x); }
#elif VL == 4 && defined(__wasm_simd128__)
INLINE vf vcap(vf x, vf top) { return __builtin_wasm_pmin_f32x4(x, top); }
INLINE vf vraise(vf x, vf bottom) { return __builtin_wasm_pmax_f32x4(x, bottom); }
#elif VL == 4
INLINE vf vcap(vf x, vf top) { return vminq_f32(x, top); }
INLINE vf vraise(vf x, vf bottom) { return vmaxq_f32(x, bottom); }
#else
INLINE vf vcap(vf x, vf top) { return (vf){top[0] < x[0] ? top[0] : x[0]}; }
INLINE vf vraise(vf x, vf bottom) { return (vf){bottom[0] > x[0] ? bottom[0] : x[0]}; }
#endif

/* a * b + c, with one rounding in fused builds and two in others. */
INLINE vf vfma(vf a, vf b, vf c) {
#if !IS_FUSED
  return a * b + c;
#elif VL == 16
  return _mm512_fmadd_ps(a, b, c);
#elif VL == 8
  return _mm256_fmadd_ps(a, b, c);
#elif defined(__wasm_relaxed_simd__)
  return __builtin_wasm_relaxed_madd_f32x4(a, b, c);
#else
  return vfmaq_f32(c, a, b);
#endif
}

INLINE vf vsqrt(vf x) {
#if VL == 16
  return _mm512_sqrt_ps(x);
#elif VL == 8
  return _mm256_sqrt_ps(x);
#elif VL == 4 && defined(__SSE2__)
  return _mm_sqrt_ps(x);
#elif VL == 4 && defined(__wasm_simd128__)
  return __builtin_wasm_sqrt_f32x4(x);
#elif VL == 4 && defined(__aarch64__)
  return vsqrtq_f32(x);
#else
  float t[VL];
  vstore(t, x);
  for (int i = 0; i < VL; i++) t[i] = __builtin_sqrtf(t[i]);
  return vload(t);
#endif
}

INLINE vi vbits(vf x) { return (vi)x; }
INLINE vf vfloat(vi x) { return (vf)x; }
INLINE vf vsel(vi mask, vf yes, vf no) {
#if defined(__wasm_relaxed_simd__) && VL == 4
  /* Opaque to the compiler, which else turns clamps into relaxed_min / relaxed_max: engines differ there on NaN. */
  return (vf)__builtin_wasm_relaxed_laneselect_i32x4((vi)yes, (vi)no, mask);
#else
  return (vf)((mask & (vi)yes) | (~mask & (vi)no));
#endif
}
INLINE vf vabs(vf x) { return (vf)((vi)x & 0x7fffffff); }
INLINE vi vsign(vf x) { return (vi)x & (int32_t)0x80000000u; }
INLINE vf vneg(vf x) { return (vf)((vi)x ^ (int32_t)0x80000000u); }
INLINE vi visnan(vf x) { return x != x; }

/* NaN in either argument gives NaN, as ONNX Min / Max; for equal arguments the second is returned. */
#if defined(__aarch64__)
INLINE vf vmin(vf a, vf b) { return vsel((a < b) | visnan(a), a, b); }
INLINE vf vmax(vf a, vf b) { return vsel((a > b) | visnan(a), a, b); }
#else /* vcap and vraise give b unless a is smaller or larger */
INLINE vf vmin(vf a, vf b) { return vsel(visnan(a), a, vcap(b, a)); }
INLINE vf vmax(vf a, vf b) { return vsel(visnan(a), a, vraise(b, a)); }
#endif

/* Four floats, whatever VL is, and vmin / vmax of them */
#if VL > 1
typedef float Quad __attribute__((vector_size(16)));
INLINE Quad load_quad(const float *p) {
  Quad v;
  __builtin_memcpy(&v, p, sizeof v);
  return v;
}
#endif
#if VL > 4
typedef int32_t QuadInts __attribute__((vector_size(16)));
INLINE Quad quad_select(QuadInts mask, Quad yes, Quad no) { return (Quad)((mask & (QuadInts)yes) | (~mask & (QuadInts)no)); }
INLINE Quad quad_min(Quad a, Quad b) { return quad_select((a < b) | (a != a), a, b); }
INLINE Quad quad_max(Quad a, Quad b) { return quad_select((a > b) | (a != a), a, b); }
#else
#define quad_min vmin
#define quad_max vmax
#endif

/* To the nearest integer, ties to even; correct for every float and keeps the sign of zero. */
INLINE vf vrint(vf x) {
  const vf big = vset(8388608.0f); /* 2^23: from there on every float is an integer */
  vf a = vabs(x), r = (a + big) - big;
  return (vf)((vi)vsel(a < big, r, a) | vsign(x));
}

INLINE vf vfloor(vf x) {
  vf r = vrint(x);
  r = r - vsel(r > x, vset(1.0f), vset(0.0f));
  return (vf)((vi)r | vsign(x)); /* only -0.0 needs the sign put back: a negative x never rounds up to +0 */
}

/* Reductions run in LANES interleaved partial results, folded in a fixed tree, on every target: results do not depend on VL. */
#define LANES 16
#define LANE_VECS (LANES / VL)

#endif
