/* Layer, instance and batch normalisation. */
#include "kernels.gen.h"
#include "simd.h"

/* y = (x - mean) * factor * scale + bias over n values; scale and bias step by `step` (1: per value, 0: one for all), NULL for none */
static void normalize_row(const float *x, const float *scale, const float *bias, float *y, int n, int step, float mean, float factor) {
  for (int i = 0; i < n; i += VL) {
    int rest = n - i;
    vf v = rest >= VL ? vload(x + i) : vload_part(x + i, rest);
    v = (v - vset(mean)) * vset(factor);
    if (scale) v = v * (!step ? vset(*scale) : rest >= VL ? vload(scale + i) : vload_part(scale + i, rest));
    if (bias) v = v + (!step ? vset(*bias) : rest >= VL ? vload(bias + i) : vload_part(bias + i, rest));
    if (rest >= VL) vstore(y + i, v); else vstore_part(y + i, v, rest);
  }
}

/* 1 / sqrt(variance + epsilon) of a row, and its mean */
static float inverse_deviation(const float *x, int n, float epsilon, float *mean) {
  float deviations[64], squares = 0.0f, part;
  wr_reduce_mean(x, mean, 1, n, 1);
  for (int i = 0; i < n; i += 64) {
    int count = n - i < 64 ? n - i : 64;
    wr_sub(x + i, mean, deviations, 1, count, count, 1, 0, 0);
    wr_reduce_sum_square(deviations, &part, 1, count, 1);
    squares += part;
  }
  return 1.0f / __builtin_sqrtf(squares / (float)n + epsilon);
}

/* each row of x[rows, n]; scale[n], bias[n] or NULL */
void wr_layer_norm(const float *x, const float *scale, const float *bias, float *y, int32_t rows, int32_t n, float epsilon) {
  for (int r = 0; r < rows; r++, x += n, y += n) {
    float mean, factor = inverse_deviation(x, n, epsilon, &mean);
    normalize_row(x, scale, bias, y, n, 1, mean, factor);
  }
}

/* each plane of x[batch, channels, n]; scale[channels], bias[channels] */
void wr_instance_norm(const float *x, const float *scale, const float *bias, float *y, int32_t batch, int32_t channels,
                      int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n) {
      float mean, factor = inverse_deviation(x, n, epsilon, &mean);
      normalize_row(x, scale + c, bias + c, y, n, 0, mean, factor);
    }
}

/* each plane of x[batch, channels, n] with given statistics mean[channels], variance[channels] */
void wr_batch_norm(const float *x, const float *scale, const float *bias, const float *mean, const float *variance, float *y,
                   int32_t batch, int32_t channels, int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n)
      normalize_row(x, scale + c, bias + c, y, n, 0, mean[c], 1.0f / __builtin_sqrtf(variance[c] + epsilon));
}
