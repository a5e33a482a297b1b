/* Matrix-vector and matrix-matrix products with packed weights.
 *
 * Weights W[n, k] are packed in panels of PANEL rows, packed[panel][k][PANEL], the last panel only as wide as it must be, in
 * steps of GRAIN; rows that do not exist are zero. All targets share this layout, so that a plan file does. Vectors run across
 * the rows of a panel; every output is one chain of multiply-adds over k = 0, 1, 2, ... that starts from zero, whatever the
 * tile: results do not depend on the batch, the tile shape or the vector width. */
#include "kernels.gen.h"
#include "simd.h"
#include "tiles.c"

/* Both give row_times_panels and matmul. */
#if VL == 16
#include "panel_pairs.c"
#else
#include "panels.c"
#endif

/* The same in step `step` of a loop, which reads W to and fro */
static void matmul_in_step(const float *x, ptrdiff_t x_stride, const float *w, int m, int k, Output out, int step) {
  if (m == 1) row_times_panels(x, w, k, &out, step & 1);
  else matmul(x, x_stride, w, m, k, out);
}

void wr_gemv(const float *packed, const float *x, const float *bias, float *y, int32_t n, int32_t k) {
  row_times_panels(x, packed, k, &(Output){y, 0, bias, NULL, n}, 0);
}

void wr_gemm(const float *x, const float *packed, const float *bias, float *y, int32_t m, int32_t n, int32_t k,
             int32_t x_stride, int32_t y_stride) {
  matmul_in_step(x, x_stride, packed, m, k, (Output){y, y_stride, bias, NULL, n}, 0);
}
