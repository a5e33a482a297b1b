/* Layer, instance and batch normalisation. */
#include "kernels.gen.h"
#include "simd.h"

/* y = (x - mean) * factor * scale + bias over n values; scale and bias step by `step` (1: per value, 0: one for all) and may be
 * NULL */
static void standardize(const float *x, float *y, int n, float mean, float factor, const float *scale, const float *bias,
                        int step) {
  const vf one_scale = vset(scale ? *scale : 1.0f), one_bias = vset(bias ? *bias : 0.0f);
  for (int i = 0; i < n; i += VL) {
    const int rest = n - i;
    vf v = (vload_upto(x + i, rest) - vset(mean)) * vset(factor);
    if (scale) v = v * (step ? vload_upto(scale + i, rest) : one_scale);
    if (bias) v = v + (step ? vload_upto(bias + i, rest) : one_bias);
    vstore_upto(y + i, v, rest);
  }
}

/* 1 / sqrt(variance + epsilon) of a row, and its mean */
static float inverse_deviation(const float *x, int n, float epsilon, float *mean) {
  wr_reduce_mean(x, mean, 1, n, 1);
  Lanes squares = lanes_set(0.0f);
  for (int i = 0; i < n; i += LANES) {
    Lanes in = lanes_load(x + i, n - i, *mean);
  UNROLL for (int j = 0; j < LANE_VECS; j++) {
      const vf deviation = in.lane[j] - vset(*mean);
      squares.lane[j] = vfma(deviation, deviation, squares.lane[j]);
    }
  }
  return 1.0f / __builtin_sqrtf(FOLD(squares, a + b) / (float)n + epsilon);
}

/* each row of x[rows, n]; scale[n], bias[n] or NULL */
void wr_layer_norm(const float *x, const float *scale, const float *bias, float *y, int32_t rows, int32_t n, float epsilon) {
  for (int r = 0; r < rows; r++, x += n, y += n) {
    float mean, factor = inverse_deviation(x, n, epsilon, &mean);
    standardize(x, y, n, mean, factor, scale, bias, 1);
  }
}

/* each plane of x[batch, channels, n]; scale[channels], bias[channels] */
void wr_instance_norm(const float *x, const float *scale, const float *bias, float *y, int32_t batch, int32_t channels,
                      int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n) {
      float mean, factor = inverse_deviation(x, n, epsilon, &mean);
      standardize(x, y, n, mean, factor, scale + c, bias + c, 0);
    }
}

/* each plane of x[batch, channels, n] with given statistics mean[channels], variance[channels] */
void wr_batch_norm(const float *x, const float *scale, const float *bias, const float *mean, const float *variance, float *y,
                   int32_t batch, int32_t channels, int32_t n, float epsilon) {
  for (int b = 0; b < batch; b++)
    for (int c = 0; c < channels; c++, x += n, y += n) {
      standardize(x, y, n, mean[c], 1.0f / __builtin_sqrtf(variance[c] + epsilon), scale + c, bias + c, 0);
    }
}
