/* Other sample rates: windowed sinc filters, one for each phase, of the ratio up / down in lowest terms.
 *
 * Result m lies at sample m * down / up of the signal. Its filter reaches RESAMPLE_REACH samples of the lower rate to both sides.
 * Nothing is fused, and sums run in LANES that are folded in a fixed tree: all builds have the same bits. */
#include "kernels.gen.h"
#include "simd.h"

#define RESAMPLE_EDGE 0.95   /* the middle of the transition from pass band to stop band, of the lower Nyquist rate */
#define RESAMPLE_KAISER 25.3 /* (beta / 2)^2 for 100 dB */
#define RESAMPLE_PI 3.14159265358979323846

/* Terms of the series of sin(x) / x and of Kaiser's window I0(beta sqrt(x)), one as a multiple of the one before. In doubles and
 * without libm, of which every system has another one. */
typedef struct {
  double sine[7], kaiser[18];
} ResampleTerms;

static COMPACT double resample_series(const double *terms, int count, double x) {
  double sum = 1;
  while (count--) sum = 1 + sum * x * terms[count];
  return sum;
}

/* sin(pi x) / (pi x) */
static COMPACT double resample_sinc(const ResampleTerms *terms, double x) {
  const int32_t whole = (int32_t)(x < 0 ? x - 0.5 : x + 0.5);
  const double angle = RESAMPLE_PI * (x - whole), series = resample_series(terms->sine, 7, angle * angle);
  return whole ? (whole & 1 ? -series : series) * angle / (RESAMPLE_PI * x) : series;
}

/* table[up, taps]; taps is a multiple of LANES. Of each row the last 2 half, half = ceil(RESAMPLE_REACH * max(1, down / up)), are
 * the filter: half - 1 samples before the one at or before a result, that one, and half behind it. */
COMPACT void wr_resample_table(float *table, int32_t up, int32_t down, int32_t taps) {
  const int32_t wide = up > down ? up : down, reach = RESAMPLE_REACH * wide, half = (reach + up - 1) / up;
  const int32_t middle = taps - 1 - half;
  ResampleTerms terms;
  for (int n = 1; n <= 7; n++) terms.sine[n - 1] = -1.0 / (2 * n * (2 * n + 1));
  for (int n = 1; n <= 18; n++) terms.kaiser[n - 1] = RESAMPLE_KAISER / (n * n);
  for (int32_t phase = 0; 2 * phase <= up; phase++) {
    float *row = table + (ptrdiff_t)phase * taps, *mirrored = table + (ptrdiff_t)(up - phase) * taps;
    double sum = 0;
    for (int32_t k = 0; k < taps; k++) {
      const int32_t distance = (k - middle) * up - phase; /* in parts of 1 / up of a sample */
      const double far = (double)distance / reach, inside = 1 - far * far;
      row[k] = 0;
      if (inside > 0)
        row[k] = (float)(resample_sinc(&terms, RESAMPLE_EDGE * distance / wide) * resample_series(terms.kaiser, 18, inside));
      sum += (double)row[k];
    }
    for (int32_t k = 0; k < taps; k++) {
      row[k] = (float)((double)row[k] / sum);
      if (phase && mirrored != row) mirrored[k < taps - 2 * half ? k : 2 * middle + 1 - k] = row[k];
    }
  }
}

/* y[count] from x, the samples from the first that the first result reads; at < up is the phase of the first result. */
void wr_resample(const float *x, const float *table, float *y, int32_t count, int32_t at, int32_t up, int32_t down,
                 int32_t taps) {
  const int32_t step = down / up, turn = down % up;
  for (int32_t i = 0; i < count; i++) {
    const float *filter = table + (ptrdiff_t)at * taps;
    Lanes sum = lanes_set(0.0f);
    for (int32_t k = 0; k < taps; k += LANES) UNROLL for (int j = 0; j < LANE_VECS; j++)
        sum.lane[j] = sum.lane[j] + vload(x + k + j * VL) * vload(filter + k + j * VL);
    y[i] = FOLD(sum, a + b);
    x += step;
    at += turn;
    if (at >= up) at -= up, x++;
  }
}
