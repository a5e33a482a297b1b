/* Tiles of a product, and where they go. */
#include "kernels.gen.h"
#include "simd.h"

/* Vectors of at most GRAIN floats, so that they divide every panel. */
#if VL > GRAIN
#define ML GRAIN
typedef __m256 mf;
INLINE mf mset(float x) { return _mm256_set1_ps(x); }
INLINE mf mload(const float *p) { return _mm256_loadu_ps(p); }
INLINE void mstore(float *p, mf v) { _mm256_storeu_ps(p, v); }
INLINE mf mfma(mf a, mf b, mf c) { return IS_FUSED ? _mm256_fmadd_ps(a, b, c) : a * b + c; }
#else
#define ML VL
typedef vf mf;
INLINE mf mset(float x) { return vset(x); }
INLINE mf mload(const float *p) { return vload(p); }
INLINE void mstore(float *p, mf v) { vstore(p, v); }
INLINE mf mfma(mf a, mf b, mf c) { return vfma(a, b, c); }
#endif

/* width of the panel that starts where `rest` rows are left */
INLINE int panel_width(int rest) { return rest >= PANEL ? PANEL : (rest + GRAIN - 1) / GRAIN * GRAIN; }

#define PANEL_VECS (PANEL / ML)
#define GRAIN_VECS (GRAIN / ML)

/* Where a tile goes and what is added to it: bias[n] along the columns, or row_bias[m] along the rows; the other one, or
 * both, are NULL. */
typedef struct {
  float *y;
  ptrdiff_t stride;
  const float *bias, *row_bias;
  int cols; /* columns from y on: fewer than the tile has at the right edge */
} Output;

INLINE Output shifted(Output out, ptrdiff_t row, int col) {
  out.y += row * out.stride + col;
  if (out.bias) out.bias += col;
  if (out.row_bias) out.row_bias += row;
  out.cols -= col;
  return out;
}

/* The last step of tiles with a bias or at the right edge: sums[rows, cols] to their place */
NOINLINE void store_tile(const int rows, const int cols, const float *sums, Output out) {
  const int n = out.cols < cols ? out.cols : cols;
  for (int r = 0; r < rows; r++, sums += cols, out.y += out.stride)
    for (int i = 0; i < n; i += VL) {
      int rest = n - i;
      vf v = vload_upto(sums + i, rest);
      if (out.row_bias) v = v + vset(out.row_bias[r]);
      if (out.bias) v = v + vload_upto(out.bias + i, rest);
      vstore_upto(out.y + i, v, rest);
    }
}

/* The last step of any tile: acc[rows, vecs] to its place */
INLINE void finish_tile(const int rows, const int vecs, mf *acc, Output out) {
  if (out.cols >= vecs * ML && !out.row_bias) {
    if (out.bias) UNROLL for (int v = 0; v < vecs; v++) {
        const mf bias = mload(out.bias + v * ML);
        UNROLL for (int r = 0; r < rows; r++) acc[r * vecs + v] = acc[r * vecs + v] + bias;
      }
    UNROLL for (int r = 0; r < rows; r++)
      UNROLL for (int v = 0; v < vecs; v++) mstore(out.y + r * out.stride + v * ML, acc[r * vecs + v]);
    return;
  }
  float sums[24 * ML];
  UNROLL for (int i = 0; i < rows * vecs; i++) mstore(sums + i * ML, acc[i]);
  store_tile(rows, vecs * ML, sums, out);
}

/* rows x (vecs * ML) outputs, w pointing at the tile's first column in rows of `width` floats. rows and vecs are compile-time
 * constants at every call. */
INLINE void tile(const int rows, const int vecs, const float *x, ptrdiff_t x_stride, const float *w, ptrdiff_t width, int k,
                 Output out) {
  mf acc[24], weight[24];
  UNROLL for (int i = 0; i < rows * vecs; i++) acc[i] = mset(0.0f);
  for (const float *end = x + k; x < end; x++, w += width) {
    UNROLL for (int v = 0; v < vecs; v++) weight[v] = mload(w + v * ML);
    UNROLL for (int r = 0; r < rows; r++) {
      mf input = mset(x[r * x_stride]);
      UNROLL for (int v = 0; v < vecs; v++) acc[r * vecs + v] = mfma(weight[v], input, acc[r * vecs + v]);
    }
  }
  finish_tile(rows, vecs, acc, out);
}

/* Weights that stay in the nearest cache together */
enum { NEAR_FLOATS = 7 << 10 };

/* How many panels one row of X is multiplied with at a time. Cranelift does all loads of a loop before its arithmetic and has
 * not the registers for two, so its host asks for one. The results are the same. */
static int row_panels = 2;
void wr_set_row_panels(int32_t count) { row_panels = count == 1 ? 1 : 2; }
