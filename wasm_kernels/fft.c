/* Fourier transforms of rows whose length n is a power of two, at least 8.
 *
 * One transform of m complex numbers, real and imaginary parts in planes of their own: Stockham's radix 2, whose result is in order
 * and whose accesses follow each other. A real signal of n = 2 m samples is taken as m complex numbers, and its spectrum is
 * separated afterwards; the way back does the same in reverse. Each number is computed in the same way at every VL. */
#include "kernels.gen.h"
#include "plan.gen.h"
#include "simd.h"

typedef struct {
  float *re, *im;
} Planes;

/* F(s, 0), F(s, 1) ... F(s, VL - 1) */
#if VL == 1
#define EACH_LANE(F, s) F(s, 0)
#elif VL == 4
#define EACH_LANE(F, s) F(s, 0), F(s, 1), F(s, 2), F(s, 3)
#elif VL == 8
#define EACH_LANE(F, s) F(s, 0), F(s, 1), F(s, 2), F(s, 3), F(s, 4), F(s, 5), F(s, 6), F(s, 7)
#else
#define EACH_LANE(F, s)                                                                                                   \
  F(s, 0), F(s, 1), F(s, 2), F(s, 3), F(s, 4), F(s, 5), F(s, 6), F(s, 7), F(s, 8), F(s, 9), F(s, 10), F(s, 11), F(s, 12), \
      F(s, 13), F(s, 14), F(s, 15)
#endif

/* s lanes of one vector, s of the other, and so on: the first VL of them, and the others */
#define ZIP_FIRST(s, lane) ((lane) / (s) % 2 * VL + (lane) / (s) / 2 * (s) + (lane) % (s))
#define ZIP_LAST(s, lane) ZIP_FIRST(s, (lane) + VL)
/* the first of each s lanes, s times */
#define HOLD(s, lane) ((lane) / (s) * (s))
#define REVERSE(s, lane) (VL - 1 - (lane))

typedef struct {
  vf sum_re, sum_im, turned_re, turned_im;
} Butterfly;

/* a + b and (a - b) w, where b is `half` behind a */
INLINE Butterfly butterfly(const float *re, const float *im, int half, vf w_re, vf w_im, vf minus_w_im) {
  vf a_re = vload(re), a_im = vload(im), b_re = vload(re + half), b_im = vload(im + half);
  vf d_re = a_re - b_re, d_im = a_im - b_im;
  return (Butterfly){a_re + b_re, a_im + b_im, vfma(d_re, w_re, d_im * minus_w_im), vfma(d_re, w_im, d_im * w_re)};
}

/* A stage whose groups of s are shorter than a vector */
#define SHORT_STAGE(s)                                                                                   \
  static void fft_stage_##s(Planes x, Planes y, const float *w, int half) {                              \
    for (int i = 0; i < half; i += VL) {                                                                 \
      vf w_re = vload_upto(w + i, half - i), w_im = vload_upto(w + half + i, half - i);                  \
      w_re = __builtin_shufflevector(w_re, w_re, EACH_LANE(HOLD, s));                                    \
      w_im = __builtin_shufflevector(w_im, w_im, EACH_LANE(HOLD, s));                                    \
      Butterfly b = butterfly(x.re + i, x.im + i, half, w_re, w_im, vneg(w_im));                         \
      vstore(y.re + 2 * i, __builtin_shufflevector(b.sum_re, b.turned_re, EACH_LANE(ZIP_FIRST, s)));     \
      vstore(y.im + 2 * i, __builtin_shufflevector(b.sum_im, b.turned_im, EACH_LANE(ZIP_FIRST, s)));     \
      if (2 * half <= VL) break;                                                                         \
      vstore(y.re + 2 * i + VL, __builtin_shufflevector(b.sum_re, b.turned_re, EACH_LANE(ZIP_LAST, s))); \
      vstore(y.im + 2 * i + VL, __builtin_shufflevector(b.sum_im, b.turned_im, EACH_LANE(ZIP_LAST, s))); \
    }                                                                                                    \
  }

#if VL > 1
SHORT_STAGE(1)
SHORT_STAGE(2)
#endif
#if VL > 4
SHORT_STAGE(4)
#endif
#if VL > 8
SHORT_STAGE(8)
#endif

static void fft_stage(Planes x, Planes y, const float *w, int half, int s) {
  for (int first = 0; first < half; first += s) {
    vf w_re = vset(w[first]), w_im = vset(w[half + first]), minus_w_im = vneg(w_im);
    for (int i = first; i < first + s; i += VL) {
      Butterfly b = butterfly(x.re + i, x.im + i, half, w_re, w_im, minus_w_im);
      vstore(y.re + first + i, b.sum_re), vstore(y.im + first + i, b.sum_im);
      vstore(y.re + first + s + i, b.turned_re), vstore(y.im + first + s + i, b.turned_im);
    }
  }
}

/* The transform of m numbers of x, w[2][m / 2]: the planes, x or y, that hold it */
static Planes fft_planes(Planes x, Planes y, const float *w, int m) {
  for (int s = 1; s < m; s *= 2) {
    if (s >= VL) fft_stage(x, y, w, m / 2, s);
#if VL > 1
    else if (s == 1) fft_stage_1(x, y, w, m / 2);
    else if (s == 2) fft_stage_2(x, y, w, m / 2);
#endif
#if VL > 4
    else if (s == 4) fft_stage_4(x, y, w, m / 2);
#endif
#if VL > 8
    else fft_stage_8(x, y, w, m / 2);
#endif
    Planes done = y;
    y = x, x = done;
  }
  return x;
}

INLINE Planes planes_of(float *scratch, int m, int which) {
  float *re = scratch + (ptrdiff_t)which * 2 * (m + 2 * FFT_SLACK) + FFT_SLACK;
  return (Planes){re, re + m + 2 * FFT_SLACK};
}
INLINE Planes swapped(Planes x) { return (Planes){x.im, x.re}; }

NOINLINE void planes_from_pairs(const float *x, Planes p, int m) {
  for (int i = 0; i < m; i++) p.re[i] = x[2 * i], p.im[i] = x[2 * i + 1];
}
NOINLINE void pairs_from_planes(Planes p, float *y, int m) {
  for (int i = 0; i < m; i++) y[2 * i] = p.re[i], y[2 * i + 1] = p.im[i];
}

/* Number k of z, and number m - k, which stands m - k before the end of a plane that has m + 1 */
#define LOAD_MIRRORED(z, k)                                                            \
  vf a_re = vload((z).re + (k)), a_im = vload((z).im + (k));                           \
  vf b_re = vload((z).re + m - (k) - VL + 1), b_im = vload((z).im + m - (k) - VL + 1); \
  b_re = __builtin_shufflevector(b_re, b_re, EACH_LANE(REVERSE, 1));                   \
  b_im = __builtin_shufflevector(b_im, b_im, EACH_LANE(REVERSE, 1));                   \
  vf w_re = vload_upto(turns + (k), m - (k)), w_im = vload_upto(turns + m + (k), m - (k));

/* x[rows, n] -> y[rows, n / 2 + 1, 2]; twiddles: w[2][n / 4] of the transform of m = n / 2, then turns[2][n / 2], which are
 * cos and -sin of 2 pi k / n; scratch[4 (m + 32)] */
void wr_rfft(const float *x, const float *twiddles, float *y, float *scratch, int32_t rows, int32_t n) {
  const int m = n / 2;
  const float *turns = twiddles + m;
  for (int r = 0; r < rows; r++, x += n, y += n + 2) {
    Planes p = planes_of(scratch, m, 0), q = planes_of(scratch, m, 1);
    planes_from_pairs(x, p, m);
    Planes z = fft_planes(p, q, twiddles, m), spectrum = z.re == p.re ? q : p;
    z.re[m] = z.re[0], z.im[m] = z.im[0];
    for (int k = 0; k < m; k += VL) {
      LOAD_MIRRORED(z, k)
      vf half = vset(0.5f), d_re = half * (a_re - b_re), d_im = half * (a_im + b_im);
      vstore(spectrum.re + k, vfma(w_re, d_im, vfma(w_im, d_re, half * (a_re + b_re))));
      vstore(spectrum.im + k, vfma(w_im, d_im, vfma(vneg(w_re), d_re, half * (a_im - b_im))));
    }
    spectrum.im[0] = 0.0f;
    spectrum.re[m] = z.re[0] - z.im[0], spectrum.im[m] = 0.0f;
    pairs_from_planes(spectrum, y, m + 1);
  }
}

/* x[rows, n / 2 + 1, 2] -> y[rows, n], the imaginary parts of the first and the last number taken as 0; twiddles, scratch as above */
void wr_irfft(const float *x, const float *twiddles, float *y, float *scratch, int32_t rows, int32_t n) {
  const int m = n / 2;
  const float *turns = twiddles + m;
  const vf scale = vset(0.5f / (float)m);
  for (int r = 0; r < rows; r++, x += n + 2, y += n) {
    Planes spectrum = planes_of(scratch, m, 0), z = planes_of(scratch, m, 1);
    planes_from_pairs(x, spectrum, m + 1);
    spectrum.im[0] = 0.0f, spectrum.im[m] = 0.0f;
    for (int k = 0; k < m; k += VL) {
      LOAD_MIRRORED(spectrum, k)
      vf d_re = a_re - b_re, d_im = a_im + b_im;
      vstore(z.re + k, scale * vfma(vneg(w_re), d_im, vfma(w_im, d_re, a_re + b_re)));
      vstore(z.im + k, scale * vfma(w_im, d_im, vfma(w_re, d_re, a_im - b_im)));
    }
    pairs_from_planes(swapped(fft_planes(swapped(z), swapped(spectrum), twiddles, m)), y, m);
  }
}

/* x[rows, n, 2] -> y[rows, n, 2]; twiddles w[2][n / 2], which are cos and -sin of 2 pi k / n; scratch[4 (n + 32)] */
void wr_fft(const float *x, const float *twiddles, float *y, float *scratch, int32_t rows, int32_t n) {
  for (int r = 0; r < rows; r++, x += 2 * n, y += 2 * n) {
    Planes p = planes_of(scratch, n, 0), q = planes_of(scratch, n, 1);
    planes_from_pairs(x, p, n);
    pairs_from_planes(fft_planes(p, q, twiddles, n), y, n);
  }
}

void wr_ifft(const float *x, const float *twiddles, float *y, float *scratch, int32_t rows, int32_t n) {
  const float scale = 1.0f / (float)n;
  for (int r = 0; r < rows; r++, x += 2 * n, y += 2 * n) {
    Planes p = planes_of(scratch, n, 0), q = planes_of(scratch, n, 1);
    for (int i = 0; i < n; i++) p.re[i] = scale * x[2 * i], p.im[i] = scale * x[2 * i + 1];
    pairs_from_planes(swapped(fft_planes(swapped(p), swapped(q), twiddles, n)), y, n);
  }
}
