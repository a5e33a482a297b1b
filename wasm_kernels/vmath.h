/* Elementary functions on vectors. The ULP bound of each stands in table.py and is tested for every target.
 * Every function takes and returns all special values as IEEE and C99 prescribe: NaN, infinities, signed zeros, denormals. */
#ifndef WEBRNN_VMATH_H
#define WEBRNN_VMATH_H

#include "simd.h"

#define LOG2E 1.44269504f
/* ln 2 in two parts: n * LN2_HI is exact for |n| < 2^9 */
#define LN2_HI 0.693145752f
#define LN2_LO 1.42860677e-6f
/* Adding 1.5 * 2^23 rounds to an integer and leaves it in the low bits. */
#define ROUND_MAGIC 12582912.0f

/* 2^n for n in [-126, 127] */
INLINE vf vexp2i(vi n) { return vfloat((n + vconst_i(127)) << 23); }

/* Splits x = n ln2 + r, |r| <= ln2 / 2; returns r, and in `above` the rest of exp(r) = 1 + r + above. Needs |x| < 2^16. */
INLINE vf vexp_reduce(vf x, vi *n, vf *above) {
  vf t = vfma(x, vconst(LOG2E), vconst(ROUND_MAGIC));
  *n = vbits(t) - vbits(vconst(ROUND_MAGIC));
  vf k = t - vconst(ROUND_MAGIC);
  vf high = vfma(k, vconst(-LN2_HI), x), r = vfma(k, vconst(-LN2_LO), high);
  vf lost = vfma(k, vconst(-LN2_LO), high - r); /* what rounding took from r */
  vf q = vconst(0.00139465521f);
  q = vfma(q, r, vconst(0.00836664438f));
  q = vfma(q, r, vconst(0.0416662805f));
  q = vfma(q, r, vconst(0.16666542f));
  q = vfma(q, r, vconst(0.5f));
  *above = vfma(r * r, q, lost);
  return r;
}

/* exp(r) = 1 + r + above with the rounding of 1 + r carried along */
INLINE vf vexp_sum(vf r, vf above) {
  vf sum = vconst(1.0f) + r;
  return sum + (above + (r - (sum - vconst(1.0f))));
}

INLINE vf vexp(vf x) {
  x = vcap(x, vconst(89.0f));      /* exp(89) overflows */
  x = vraise(x, vconst(-104.0f));  /* exp(-104) rounds to zero */
  vi n;
  vf above, r = vexp_reduce(x, &n, &above);
#if VL == 16
  return _mm512_scalef_ps(vexp_sum(r, above), __builtin_convertvector(n, vf));
#else
  vi half = n >> 1; /* 2^n itself may be out of range: scale twice */
  return vexp_sum(r, above) * vexp2i(half) * vexp2i(n - half);
#endif
}

/* exp(x) - 1 for x <= 88 */
INLINE vf vexpm1(vf x) {
  x = vraise(x, vconst(-30.0f)); /* already -1 */
  x = vcap(x, vconst(88.0f));
  vi n;
  vf above, r = vexp_reduce(x, &n, &above), p = r + above, s = vexp2i(n);
  return vsel(n == vset_i(0), p, vfma(s, p, s - vconst(1.0f)));
}

/* q in exp(r) = 1 + r + s q for r = `unit` * x, |r| <= ln2 / 2, and s = x^2. Pairs of terms, since the next step waits for it */
INLINE vf vexp_rest(vf x, vf s, const float unit) {
  const float square = unit * unit, cube = square * unit;
  vf low = vfma(x, vconst(0.16666542f * cube), vconst(0.5f * square));
  vf high = vfma(x, vconst(0.00836664438f * cube * square), vconst(0.0416662805f * square * square));
  return vfma(vfma(s, vconst(0.00139465521f * cube * cube), high), s, low);
}

/* The statement for `count` vectors, a compile-time constant of at most TOGETHER */
#define FOR_EACH UNROLL for (int i = 0; i < count; i++)

/* x = tanh(x) of `count` vectors */
INLINE void vtanh_each(const int count, vf *x) {
  vf a[TOGETHER], s[TOGETHER], p[TOGETHER], t[TOGETHER], n[TOGETHER], r[TOGETHER], e[TOGETHER];
  FOR_EACH a[i] = vabs(x[i]), s[i] = x[i] * x[i];
  FOR_EACH p[i] = vfma(vconst(-0.00571703678f), s[i], vconst(0.0206505787f)); /* |x| < 0.625: x + x^3 P(x^2) */
  FOR_EACH p[i] = vfma(p[i], s[i], vconst(-0.0537434965f));
  FOR_EACH p[i] = vfma(p[i], s[i], vconst(0.133314908f));
  FOR_EACH p[i] = vfma(p[i], s[i], vconst(-0.333332837f));
  FOR_EACH p[i] = vfma(p[i] * s[i], x[i], x[i]);
  FOR_EACH r[i] = vcap(a[i], vconst(10.0f)); /* tanh(10) rounds to 1 */
  /* 2|x| = n ln2 + 2r; the low bits of t are n + 128, so that their power is 2 * 2^n */
  const float magic = ROUND_MAGIC + 128;
  FOR_EACH t[i] = vfma(r[i], vconst(2 * LOG2E), vconst(magic));
  FOR_EACH n[i] = t[i] - vconst(magic);
  FOR_EACH r[i] = vfma(n[i], vconst(-LN2_HI / 2), r[i]);
  FOR_EACH r[i] = vfma(n[i], vconst(-LN2_LO / 2), r[i]);
  FOR_EACH e[i] = vexp_rest(r[i], r[i] * r[i], 2.0f);
  FOR_EACH e[i] = vfma(vfma(e[i], r[i], vconst(2.0f)), r[i], vconst(1.0f));
  FOR_EACH e[i] = vfma(e[i], vfloat(vbits(t[i]) << 23), vconst(2.0f));
  FOR_EACH e[i] = vconst(1.0f) - vconst(4.0f) / e[i];
  FOR_EACH x[i] = vfloat(vbits(vsel(a[i] < vconst(0.625f), p[i], e[i])) | vsign(x[i])); /* also tanh(-0) = -0 */
}

/* x = 1 / (1 + exp(-x)) of `count` vectors */
INLINE void vsigmoid_each(const int count, vf *x) {
  vf t[TOGETHER], n[TOGETHER], r[TOGETHER], s[TOGETHER], z[TOGETHER], d[TOGETHER], y[TOGETHER], lost[TOGETHER];
  FOR_EACH r[i] = vraise(vneg(vabs(x[i])), vconst(-104.0f)); /* exp(-104) rounds to zero */
  /* -|x| = n ln2 + r; the low bits of t are n + 152, so that their power is ONE * 2^n, which is never too small */
  const float magic = ROUND_MAGIC + 152, ONE = 0x1p25f;
  FOR_EACH t[i] = vfma(r[i], vconst(LOG2E), vconst(magic));
  FOR_EACH n[i] = t[i] - vconst(magic);
  FOR_EACH r[i] = vfma(n[i], vconst(-LN2_HI), r[i]);
  FOR_EACH r[i] = vfma(n[i], vconst(-LN2_LO), r[i]);
  FOR_EACH s[i] = r[i] * r[i];
  /* exp(r) - 1; by Horner's rule unfused builds would be over 2 ULP */
  FOR_EACH r[i] = vfma(s[i], vexp_rest(r[i], s[i], 1.0f), r[i]);
  FOR_EACH s[i] = vfloat(vbits(t[i]) << 23);
  FOR_EACH z[i] = vfma(r[i], s[i], s[i]), d[i] = vconst(ONE) + z[i]; /* exp(-|x|) and 1 + exp(-|x|), times ONE */
  FOR_EACH y[i] = vsel(x[i] < vconst(0.0f), z[i], vconst(ONE)) / d[i];
  FOR_EACH lost[i] = z[i] - (d[i] - vconst(ONE)); /* what rounding took from d */
  /* times -1 / d to 3%, enough for a correction below one ULP */
  FOR_EACH lost[i] = lost[i] * vfma(z[i], vconst(0.4853f / (ONE * ONE)), vconst(-0.9705f / ONE));
  FOR_EACH x[i] = vfma(y[i], lost[i], y[i]);
}

INLINE vf vtanh(vf x) { return vtanh_each(1, &x), x; }
INLINE vf vsigmoid(vf x) { return vsigmoid_each(1, &x), x; }

INLINE vf vlog(vf x) {
  vi tiny = x < vconst(1.17549435e-38f);
  vf scaled = vsel(tiny, x * vconst(8388608.0f), x); /* denormals: times 2^23 */
  vi bits = vbits(scaled) - 0x3f3504f3;            /* sqrt(1/2), so that m is in [sqrt(1/2), sqrt 2) */
  vi e = (bits >> 23) - (tiny & 23);
  vf f = vfloat((bits & 0x007fffff) + 0x3f3504f3) - vconst(1.0f);
  vf p = vconst(0.0691580549f);
  p = vfma(p, f, vconst(-0.117913105f));
  p = vfma(p, f, vconst(0.118735865f));
  p = vfma(p, f, vconst(-0.123841546f));
  p = vfma(p, f, vconst(0.142185554f));
  p = vfma(p, f, vconst(-0.16669257f));
  p = vfma(p, f, vconst(0.20002231f));
  p = vfma(p, f, vconst(-0.249999866f));
  p = vfma(p, f, vconst(0.333333105f));
  vf k = __builtin_convertvector(e, vf), ff = f * f;
  vf low = vfma(k, vconst(LN2_LO), vfma(f * ff, p, vconst(-0.5f) * ff));
  vf y = vfma(k, vconst(LN2_HI), f + low);
  y = vsel(x == vset(__builtin_inff()), x, y);
  y = vsel(x == vconst(0.0f), vset(-__builtin_inff()), y);
  return vsel((x < vconst(0.0f)) | visnan(x), vset(__builtin_nanf("")), y);
}

/* log(1 + x) for x in [0, 1] */
INLINE vf vlog1p_unit(vf x) {
  vf u = vconst(1.0f) + x;
  return vlog(u) + (x - (u - vconst(1.0f))) / u;
}

INLINE vf vsoftplus(vf x) {
  vf above = vsel(x < vconst(0.0f), vconst(0.0f), x);
  return above + vlog1p_unit(vexp(vneg(vabs(x))));
}

INLINE vf verf(vf x) {
  vf a = vabs(x), s = a * a;
  vf p = vconst(8.29661003e-05f); /* |x| < 0.9375: x + x P(x^2) */
  p = vfma(p, s, vconst(-0.000812580634f));
  p = vfma(p, s, vconst(0.00519960001f));
  p = vfma(p, s, vconst(-0.0268588513f));
  p = vfma(p, s, vconst(0.11283686f));
  p = vfma(p, s, vconst(-0.376126319f));
  p = vfma(p, s, vconst(0.128379166f));
  vf small = vfma(p, x, x);
  vf b = vsel(a > vconst(4.0f), vconst(4.0f), a); /* erf(4) rounds to 1 */
  vf q = vconst(3.87131195e-06f);               /* otherwise: 1 - exp(-(x + x Q(x))) */
  q = vfma(q, b, vconst(-3.28154347e-05f));
  q = vfma(q, b, vconst(-0.000113442191f));
  q = vfma(q, b, vconst(0.00310329976f));
  q = vfma(q, b, vconst(-0.0229490977f));
  q = vfma(q, b, vconst(0.105518587f));
  q = vfma(q, b, vconst(0.635495961f));
  q = vfma(q, b, vconst(0.12857914f));
  vf large = vneg(vexpm1(vneg(vfma(q, b, b))));
  large = vfloat(vbits(large) | vsign(x));
  return vsel(a < vconst(0.9375f), small, large) + vsel(visnan(x), x, vconst(-0.0f));
}

/* 1 / 2pi, a binary fraction, behind 64 zeros */
static const uint32_t inverse_two_pi[] = {
    0,          0,          0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770, 0x36d8a566, 0x4f10e410, 0x7f9458ea, 0xf7aef158,
    0x6dc91b8e, 0x909374b8, 0x01924bba, 0x82746487, 0x3f877ac7, 0x2c4a69cf, 0xba208d7d, 0x4baed121, 0x3a671c09, 0xad17df90,
    0x4e64758e, 0x60d4ce7d, 0x272117e2, 0xef7e4a0e, 0xc7fe25ff, 0xf7816603, 0xfbcbc462, 0xd6829b47, 0xdb4d9fb3, 0xc9f2c26d,
    0xd3d18fd9, 0xa797fa8b, 0x5d49eeb1, 0xfaf97c5e, 0xcf41ce7d, 0xe294a4ba, 0x9afed7ec, 0x47e35742, 0x1580cc11, 0xbf1edaea};

/* 64 of its bits from the bit `at` on */
INLINE uint64_t inverse_two_pi_bits(int at) {
  const uint32_t *w = inverse_two_pi + (at >> 5);
  const uint64_t high = (uint64_t)w[0] << 32 | w[1];
  return at & 31 ? high << (at & 31) | w[2] >> (32 - (at & 31)) : high;
}

/* x = q pi/2 + r, |r| <= pi/4: returns r, and q modulo 4. In double, so that r is right for every float. */
NOINLINE float reduce_quarter_turns(float x, int32_t *quadrant) {
  /* pi/2 in three parts; quadrant numbers have at most 24 bits, so their products with the first two are exact */
  const double part0 = 0x1.921fb54000000p+0, part1 = 0x1.10b4611000000p-30, part2 = 0x1.4c4c6628b80dcp-59;
  union {
    float f;
    uint32_t u;
  } in = {x};
  int exponent = (int)(in.u >> 23 & 255);
  if (exponent == 255) {
    *quadrant = 0;
    return x - x;
  }
  if (exponent < 150) {
    double q = (double)x * 0.636619772367581343 + 6755399441055744.0 - 6755399441055744.0;
    *quadrant = (int32_t)q & 3;
    return (float)((((double)x - q * part0) - q * part1) - q * part2);
  }
  /* Payne-Hanek. |x| = mantissa * 2^shift; the first `shift` bits of 1 / 2pi only add full turns. */
  uint32_t mantissa = (in.u & 0x7fffff) | 0x800000;
  int shift = exponent - 150 + 64;
  uint64_t high = inverse_two_pi_bits(shift), low = inverse_two_pi_bits(shift + 64);
  uint64_t turns = mantissa * high + (mantissa * (low >> 32) >> 32); /* a fraction of 2^64 */
  uint32_t quarter = (uint32_t)(turns >> 62);
  int64_t rest = (int64_t)(turns << 2);
  if (rest < 0) quarter++;
  float r = (float)((double)rest * (1.57079632679489662 / 18446744073709551616.0));
  *quadrant = (int32_t)((in.u >> 31 ? 0u - quarter : quarter) & 3);
  return in.u >> 31 ? -r : r;
}

INLINE vf vsincos(vf x, int32_t turn) {
  float r_[VL];
  int32_t q_[VL];
  vstore(r_, x);
  for (int i = 0; i < VL; i++) r_[i] = reduce_quarter_turns(r_[i], &q_[i]);
  vf r = vload(r_);
  vi q;
  __builtin_memcpy(&q, q_, sizeof q);
  q += turn;
  vf s = r * r;
  vf odd = vconst(-0.000195166547f);
  odd = vfma(odd, s, vconst(0.00833217334f));
  odd = vfma(odd, s, vconst(-0.166666552f));
  odd = vfma(odd * s, r, r);
  vf even = vconst(2.44377279e-05f);
  even = vfma(even, s, vconst(-0.00138873619f));
  even = vfma(even, s, vconst(0.0416666456f));
  even = vfma(even * s, s, vfma(s, vconst(-0.5f), vconst(1.0f)));
  vf y = vsel((q & 1) != vset_i(0), even, odd);
  return vfloat(vbits(y) ^ ((q & 2) << 30));
}

INLINE vf vsin(vf x) { return vsel(x == vconst(0.0f), x, vsincos(x, 0)); }
INLINE vf vcos(vf x) { return vsincos(x, 1); }

/* x' = (x - 1) / (x + 1) takes tan(pi/8) ... 1 to the other side of 0 */
INLINE vf vatan(vf x) {
  vf a = vabs(x);
  vi inverted = a > vconst(1.0f);
  a = vsel(inverted, vconst(1.0f) / a, a);
  vi turned = a > vconst(0.414213562f);
  vf t = vsel(turned, (a - vconst(1.0f)) / (a + vconst(1.0f)), a), s = t * t;
  vf p = vconst(-0.0645938069f);
  p = vfma(p, s, vconst(0.107463002f));
  p = vfma(p, s, vconst(-0.142642334f));
  p = vfma(p, s, vconst(0.199995503f));
  p = vfma(p, s, vconst(-0.333333313f));
  t = vfma(p * s, t, t);
  /* pi/4 and pi/2 in two parts */
  t = vsel(turned, vconst(0.785398185f) + (t - vconst(2.18556941e-8f)), t);
  t = vsel(inverted, vconst(1.57079637f) - (t + vconst(4.37113883e-8f)), t);
  return vfloat(vbits(t) | vsign(x));
}

/* Doubles, as many as floats */
typedef double vd __attribute__((vector_size(8 * VL)));
typedef int64_t vl __attribute__((vector_size(8 * VL)));
typedef uint64_t vul __attribute__((vector_size(8 * VL)));

/* No function: as an argument, a vector that is wider than registers has an ABI of which clang warns. */
#define DOUBLE_CHOICE(mask, yes, no) ((vd)(((mask) & (vl)(yes)) | (~(mask) & (vl)(no))))

/* In double and without fused multiply-adds, so that all targets have the same bits; special values as C99 has them */
INLINE vf vpow(vf x, vf y) {
  const vf size = vabs(x), one = vset(1.0f), infinite = vset(__builtin_inff());
  const vd a = __builtin_convertvector(size, vd), b = __builtin_convertvector(y, vd);
  const vl sqrt_half = (vl){0} + 0x3fe6a09e667f3bcd, bits = (vl)a - sqrt_half;
  /* The exponent as a number: it stands in the low bits of 1.5 * 2^52 + k. */
  const vl magic = (vl){0} + 0x4338000000000000;
  const vd k = (vd)((vl)(((vul)bits + ((uint64_t)1023 << 52)) >> 52) - 1023 + magic) - 6755399441055744.0;
  const vd f = (vd)((bits & 0xfffffffffffff) + sqrt_half) - 1.0, s = f / (f + 2.0), z = s * s;
  vd r = z * (2.0 / 13) + 2.0 / 11;
  r = r * z + 2.0 / 9;
  r = r * z + 2.0 / 7;
  r = r * z + 2.0 / 5;
  r = r * z + 2.0 / 3;
  vd t = b * (k * 0.693147180559945309 + (s + s + s * z * r));
  t = DOUBLE_CHOICE(t > 100.0, (vd){0} + 100.0, t);
  t = DOUBLE_CHOICE(t < -120.0, (vd){0} - 120.0, t);
  const vd shifted = t * 1.44269504088896340736 + 6755399441055744.0, n = shifted - 6755399441055744.0;
  const vd q = t - n * 0.693147180559945309;
  vd e = q * (1.0 / 40320) + 1.0 / 5040;
  e = e * q + 1.0 / 720;
  e = e * q + 1.0 / 120;
  e = e * q + 1.0 / 24;
  e = e * q + 1.0 / 6;
  e = e * q + 0.5;
  e = e * q + 1.0;
  e = e * q + 1.0;
  vf result = __builtin_convertvector(e * (vd)(((vl)shifted - magic + 1023) << 52), vf);
  const vi grows = (size > one) == (y > vset(0.0f));
  const vi is_last = (size == vset(0.0f)) | (size == infinite) | (vabs(y) == infinite);
  result = vsel(is_last, vsel(grows, infinite, vset(0.0f)), result);
  const vi whole = vrint(y) == y, odd = whole & (vrint(y * vset(0.5f)) != y * vset(0.5f));
  result = vfloat(vbits(result) | (vsign(x) & odd));
  result = vsel((x < vset(0.0f)) & ~whole & (size != infinite), vset(__builtin_nanf("")), result);
  result = vsel(visnan(x) | visnan(y), x + y, result);
  return vsel((x == one) | (y == vset(0.0f)) | ((size == one) & (vabs(y) == infinite)), one, result);
}

#endif
