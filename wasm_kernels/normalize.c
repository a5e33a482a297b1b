/* Layer, instance and batch normalisation. */
#include "kernels.gen.h"
#include "simd.h"

/* y = (x - mean) * factor over n values */
static void standardize(const float *x, float *y, int n, float mean, float factor) {
  int i = 0;
  for (; i + VL <= n; i += VL) vstore(y + i, (vload(x + i) - vset(mean)) * vset(factor));
  if (i < n) vstore_part(y + i, (vload_part(x + i, n - i) - vset(mean)) * vset(factor), n - i);
}

/* y = y * scale + bias; both step by `step` (1: per value, 0: one for all), NULL for none */
static void scale_and_shift(float *y, const float *scale, const float *bias, int n, int step) {
  if (scale) wr_mul(y, scale, y, 1, n, n, 1, 0, step);
  if (bias) wr_add(y, bias, y, 1, n, n, 1, 0, step);
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
    standardize(x, y, n, mean, factor);
    scale_and_shift(y, scale, bias, n, 1);
  }
}

/* each plane of x[batch, channels, n]; scale[channels], bias[channels] */
void wr_instance_norm(const float *x, const float *scale, const float *bias, float *y, int32_t batch, int32_t channels,
                      int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n) {
      float mean, factor = inverse_deviation(x, n, epsilon, &mean);
      standardize(x, y, n, mean, factor);
      scale_and_shift(y, scale + c, bias + c, n, 0);
    }
}

/* each plane of x[batch, channels, n] with given statistics mean[channels], variance[channels] */
void wr_batch_norm(const float *x, const float *scale, const float *bias, const float *mean, const float *variance, float *y,
                   int32_t batch, int32_t channels, int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n) {
      standardize(x, y, n, mean[c], 1.0f / __builtin_sqrtf(variance[c] + epsilon));
      scale_and_shift(y, scale + c, bias + c, n, 0);
    }
}
