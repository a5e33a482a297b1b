/* Matrix-vector and matrix-matrix products with packed weights.
 *
 * Weights W[n, k] are packed in panels of PANEL rows: packed[ceil(n / PANEL)][k][PANEL], zero-padded. All targets share this
 * layout, so that a plan file does. Vectors run across the rows of a panel; every output is one chain of multiply-adds over
 * k = 0, 1, 2, ... that starts from zero, whatever the tile: results do not depend on the batch, the tile shape or VL. */
#include "kernels.gen.h"
#include "simd.h"


#define PANEL_VECS (PANEL / VL)

/* Rows of X per tile and panels per tile, so that the accumulators (rows * panels * PANEL_VECS) hide the latency of a
 * multiply-add and fit the register file. */
#if VL == 16
#define TILE_ROWS 12
#define VECTOR_PANELS 8
#elif VL == 8
#define TILE_ROWS 6
#define VECTOR_PANELS 4
#elif VL == 4
#define TILE_ROWS 3
#define VECTOR_PANELS 2
#else
#define TILE_ROWS 1
#define VECTOR_PANELS 1
#endif

void wr_pack_panels(const float *w, float *packed, int32_t n, int32_t k, int32_t row_stride, int32_t col_stride) {
  for (int n0 = 0; n0 < n; n0 += PANEL)
    for (int j = 0; j < k; j++)
      for (int i = 0; i < PANEL; i++)
        *packed++ = n0 + i < n ? w[(ptrdiff_t)(n0 + i) * row_stride + (ptrdiff_t)j * col_stride] : 0.0f;
}

/* Where a tile goes and what is added to it: bias[n] along the columns, row_bias[m] along the rows; either may be NULL. */
typedef struct {
  float *y;
  ptrdiff_t stride;
  const float *bias, *row_bias;
  int cols; /* valid columns from y on; more than the tile has, or fewer at the edge */
} Output;

/* rows x (panels * PANEL) outputs. `rows` and `panels` are compile-time constants at every call. */
INLINE void tile(const int rows, const int panels, const float *x, ptrdiff_t x_stride, const float *w, int k, Output out) {
  const ptrdiff_t next_panel = (ptrdiff_t)k * PANEL;
  vf acc[16]; /* the largest tile of any target */
  UNROLL for (int i = 0; i < rows * panels * PANEL_VECS; i++) acc[i] = vset(0.0f);
  for (int j = 0; j < k; j++, w += PANEL, x++) {
    UNROLL for (int p = 0; p < panels; p++)
      UNROLL for (int v = 0; v < PANEL_VECS; v++) {
        vf weight = vload(w + p * next_panel + v * VL);
        UNROLL for (int r = 0; r < rows; r++) {
          vf *a = &acc[(r * panels + p) * PANEL_VECS + v];
          *a = vfma(weight, vset(x[r * x_stride]), *a);
        }
      }
  }
  UNROLL for (int r = 0; r < rows; r++) {
    float *y = out.y + r * out.stride;
    const vf row_bias = vset(out.row_bias ? out.row_bias[r] : 0.0f);
    UNROLL for (int v = 0; v < panels * PANEL_VECS; v++) {
      int rest = out.cols - v * VL;
      vf sum = acc[r * panels * PANEL_VECS + v];
      if (out.row_bias) sum = sum + row_bias;
      if (rest >= VL) {
        if (out.bias) sum = sum + vload(out.bias + v * VL);
        vstore(y + v * VL, sum);
      } else if (rest > 0) {
        if (out.bias) sum = sum + vload_part(out.bias + v * VL, rest);
        vstore_part(y + v * VL, sum, rest);
      }
    }
  }
}

INLINE Output shifted(Output out, ptrdiff_t row, int col) {
  out.y += row * out.stride + col;
  if (out.bias) out.bias += col;
  if (out.row_bias) out.row_bias += row;
  out.cols -= col;
  return out;
}

/* `rows` rows of X against all panels of a matrix of n columns, `wide` panels at a time and single ones for the rest */
INLINE void strip(const int rows, const int wide, const float *x, ptrdiff_t x_stride, const float *w, int n, int k, Output out) {
  int col = 0;
  for (; wide > 1 && col + (wide - 1) * PANEL < n; col += wide * PANEL)
    tile(rows, wide, x, x_stride, w + (ptrdiff_t)col * k, k, shifted(out, 0, col));
  for (; wide > 2 && col + PANEL < n; col += 2 * PANEL)
    tile(rows, 2, x, x_stride, w + (ptrdiff_t)col * k, k, shifted(out, 0, col));
  for (; col < n; col += PANEL) tile(rows, 1, x, x_stride, w + (ptrdiff_t)col * k, k, shifted(out, 0, col));
}

NOINLINE void strip_1(const float *x, const float *w, int n, int k, Output out) { strip(1, VECTOR_PANELS, x, 0, w, n, k, out); }

/* the last `rows` (fewer than TILE_ROWS) rows of X against one panel */
static void edge_rows(int rows, const float *x, ptrdiff_t x_stride, const float *w, int k, Output out) {
  switch (rows) {
#define EDGE(r) case r: tile(r, 1, x, x_stride, w, k, out); break;
  EDGE(1)
#if TILE_ROWS > 2
  EDGE(2)
#endif
#if TILE_ROWS > 3
  EDGE(3) EDGE(4) EDGE(5)
#endif
#if TILE_ROWS > 6
  EDGE(6) EDGE(7) EDGE(8) EDGE(9) EDGE(10) EDGE(11)
#endif
#undef EDGE
  }
}

/* Y[m, n] = X[m, k] W^T + biases. Panels are the outer loop: a panel stays in L1 while all rows of X pass. */
static void matmul(const float *x, ptrdiff_t x_stride, const float *w, int m, int n, int k, Output out) {
  if (m == 1) { strip_1(x, w, n, k, out); return; }
  for (int col = 0; col < n; col += PANEL, w += (ptrdiff_t)k * PANEL) {
    int row = 0;
    for (; row + TILE_ROWS <= m; row += TILE_ROWS)
      tile(TILE_ROWS, 1, x + row * x_stride, x_stride, w, k, shifted(out, row, col));
    edge_rows(m - row, x + row * x_stride, x_stride, w, k, shifted(out, row, col));
  }
}

void wr_gemv(const float *packed, const float *x, const float *bias, float *y, int32_t n, int32_t k) {
  strip_1(x, packed, n, k, (Output){y, 0, bias, NULL, n});
}

void wr_gemm(const float *x, const float *packed, const float *bias, float *y, int32_t m, int32_t n, int32_t k,
             int32_t x_stride, int32_t y_stride, int32_t act, float alpha, float beta) {
  matmul(x, x_stride, packed, m, n, k, (Output){y, y_stride, bias, NULL, n});
  if (act == ACT_NONE) return;
  for (int row = 0; row < m; row++, y += y_stride) wr_activate(y, y, n, act, alpha, beta);
}
