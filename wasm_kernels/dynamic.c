/* Products whose matrix is not a constant: it is packed while running, or read as it is. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- packing --------------------------------------------------------------------------------------------------------- */

#if ML > 1
/* ML rows of W, `row` floats apart, that begin at w */
#if ML == 8
INLINE mf two_rows(const float *w, ptrdiff_t row, int i) {
  return _mm256_insertf128_ps(_mm256_castps128_ps256(load_quad(w + i * row)), load_quad(w + (i + 4) * row), 1);
}
#define LOW(a, b) _mm256_unpacklo_ps(a, b)
#define HIGH(a, b) _mm256_unpackhi_ps(a, b)
#else
INLINE mf two_rows(const float *w, ptrdiff_t row, int i) { return load_quad(w + i * row); }
#define LOW(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define HIGH(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#endif

/* Four columns of ML rows of W: columns[j][i] = w[i * row + j] */
INLINE void turn(const float *w, ptrdiff_t row, mf columns[4]) {
  const mf a = two_rows(w, row, 0), b = two_rows(w, row, 1), c = two_rows(w, row, 2), d = two_rows(w, row, 3);
  const mf ac = LOW(a, c), bd = LOW(b, d), ac2 = HIGH(a, c), bd2 = HIGH(b, d);
  columns[0] = LOW(ac, bd), columns[1] = HIGH(ac, bd), columns[2] = LOW(ac2, bd2), columns[3] = HIGH(ac2, bd2);
}
#endif

/* Rows and terms of a panel from some on, one by one; rows of W that do not exist are zero. */
COMPACT static void pack_rest(const float *w, float *packed, int rows, int width, int row_from, int row_to, int from, int to,
                              ptrdiff_t row, ptrdiff_t col) {
  for (int j = from; j < to; j++)
    for (int i = row_from; i < row_to; i++) packed[(ptrdiff_t)j * width + i] = i < rows ? w[i * row + j * col] : 0.0f;
}

#if ML > 1
/* `whole` rows of W, a multiple of ML, without gaps in a row or a column, to a panel; returns how many terms. Where width and
 * whole are compile-time constants, no address has to be computed. */
INLINE int pack_in_vectors(const float *w, float *packed, const int width, const int whole, int k, ptrdiff_t row,
                           ptrdiff_t col) {
  enum { LINE = 16 };
  int done = 0;
  if (row == 1)
    for (; done < k; done++, w += col, packed += width)
      for (int i = 0; i < whole; i += ML) mstore(packed + i, mload(w + i));
  else
    for (int to = 0; done + 4 <= k; done = to) { /* ML rows at a time, a cache line of each */
      to = k - done < LINE ? k / 4 * 4 : done + LINE;
      for (int i = 0; i < whole; i += ML) {
        const float *from = w + i * row + done;
        float *y = packed + (ptrdiff_t)done * width + i;
        for (int j = done; j < to; j += 4, from += 4, y += 4 * width) {
          mf columns[4];
          turn(from, row, columns);
  UNROLL for (int c = 0; c < 4; c++) mstore(y + c * width, columns[c]);
        }
      }
    }
  return done;
}
#endif

/* W[n, k] in panels: see matrix.c. Rows or columns without gaps are moved in vectors. */
void wr_pack_panels(const float *w, float *packed, int32_t n, int32_t k, int32_t row_stride, int32_t col_stride) {
  const ptrdiff_t row = row_stride, col = col_stride;
  for (int first = 0; first < n; first += PANEL, w += PANEL * row) {
    const int width = panel_width(n - first), rows = n - first < width ? n - first : width;
    int whole = 0, done = 0;
#if ML > 1
    if (row == 1 || col == 1) whole = rows / ML * ML;
    if (ML == 8 && whole == PANEL) done = pack_in_vectors(w, packed, PANEL, PANEL, k, row, col);
    else if (whole) done = pack_in_vectors(w, packed, width, whole, k, row, col);
#endif
    pack_rest(w, packed, rows, width, 0, whole, done, k, row, col);
    pack_rest(w, packed, rows, width, whole, width, 0, k, row, col);
    packed += (ptrdiff_t)k * width;
  }
}

static int check_pack(Vm *vm, const pack_operands *o) {
  ASK(T(b)->rank == 2 && is_dense(T(packed), 1) && T(packed)->count >= packed_floats(T(b)->size[1], T(b)->size[0]));
  return OK;
}
static int run_pack(Vm *vm, const pack_operands *o) {
  DONE_IF_EMPTY(b);
  const Tensor *b = T(b);
  wr_pack_panels(F(b), F(packed), b->size[1], b->size[0], b->stride[1], b->stride[0]);
  return OK;
}

/* --- products -------------------------------------------------------------------------------------------------------- */

/* A tile of `cols` columns that lies in y, without a bias */
INLINE Output plain_output(float *y, ptrdiff_t stride, const int cols) { return (Output){y, stride, NULL, NULL, cols}; }

/* One or two rows of X against W[k, n] as it lies, its rows `pitch` floats apart; n is at least GRAIN. The last columns may be
 * made twice. */
INLINE void rows_times_matrix(const int rows, const float *x, ptrdiff_t x_stride, const float *w, ptrdiff_t pitch, int k,
                              float *y, ptrdiff_t y_stride, int n) {
#define MATRIX_TILE(count)                                                                                             \
  tile(rows, (count) * GRAIN_VECS, x, x_stride, w + col, pitch, k, plain_output(y + col, y_stride, (count) * GRAIN)), \
      grains = (count)
  for (int col = 0, grains; col < n; col += grains * GRAIN) {
    grains = (n - col) / GRAIN;
    if (!grains) col = n - GRAIN;
#if ML > 1
    if (grains >= 6 && rows * 6 * GRAIN_VECS <= 12 && row_panels == 2) MATRIX_TILE(6);
    else if (grains >= 3 && rows * 3 * GRAIN_VECS <= 6) MATRIX_TILE(3);
    else if (grains >= 2) MATRIX_TILE(2);
    else
#endif
      MATRIX_TILE(1);
  }
}

#if ML > 1
/* One row of X against groups * ML columns of W[k, n] that lie `row` floats apart, each without gaps */
INLINE void row_times_columns(const int groups, const float *x, const float *w, ptrdiff_t row, int k, float *y) {
  mf acc[8];
  UNROLL for (int g = 0; g < groups; g++) acc[g] = mset(0.0f);
  int j = 0;
  for (; j + 4 <= k; j += 4) UNROLL for (int g = 0; g < groups; g++) {
      mf columns[4];
      turn(w + (ptrdiff_t)g * ML * row + j, row, columns);
      UNROLL for (int c = 0; c < 4; c++) acc[g] = mfma(columns[c], mset(x[j + c]), acc[g]);
    }
  for (; j < k; j++) {
    float column[8 * ML];
    for (int i = 0; i < groups * ML; i++) column[i] = w[i * row + j];
    UNROLL for (int g = 0; g < groups; g++) acc[g] = mfma(mload(column + g * ML), mset(x[j]), acc[g]);
  }
  UNROLL for (int g = 0; g < groups; g++) mstore(y + g * ML, acc[g]);
}

/* One row of X against all columns; n is at least GRAIN. The last columns may be made twice. */
NOINLINE void row_times_turned(const float *x, const float *w, ptrdiff_t row, int k, float *y, int n) {
  enum { MANY = ML == 8 ? PANEL_VECS : GRAIN_VECS };
  for (int col = 0; col < n;) {
    if (MANY * ML > GRAIN && n - col >= MANY * ML) {
      row_times_columns(MANY, x, w + col * row, row, k, y + col);
      col += MANY * ML;
      continue;
    }
    if (n - col < GRAIN) col = n - GRAIN;
    row_times_columns(GRAIN_VECS, x, w + col * row, row, k, y + col);
    col += GRAIN;
  }
}
#endif

/* From so many rows on packing pays. */
enum { FEW_ROWS = 8, TURNED_ROWS = 2 };

NOINLINE void few_rows_times_matrix(const float *x, ptrdiff_t x_stride, const float *w, ptrdiff_t pitch, int m, int k, float *y,
                                    ptrdiff_t y_stride, int n) {
  for (; m >= 2; m -= 2, x += 2 * x_stride, y += 2 * y_stride)
    rows_times_matrix(2, x, x_stride, w, pitch, k, y, y_stride, n);
  if (m) rows_times_matrix(1, x, 0, w, pitch, k, y, 0, n);
}

COMPACT static int check_matmul(Vm *vm, const matmul_operands *o) {
  const Tensor *a = T(a), *b = T(b), *y = T(y), *scratch = T(scratch);
  const int batch = y->rank - 2;
  ASK(batch >= 1 && a->rank == y->rank && b->rank == y->rank && is_dense(scratch, 1));
  for (int i = 0; i < batch; i++) ASK(a->size[i] == y->size[i] && b->size[i] == y->size[i]);
  const int32_t m = y->size[batch], n = y->size[batch + 1], k = a->size[batch + 1];
  ASK(a->size[batch] == m && b->size[batch] == k && b->size[batch + 1] == n);
  ASK((a->stride[batch + 1] == 1 || k == 1) && (y->stride[batch + 1] == 1 || n == 1));
  ASK(scratch->count >= packed_floats(n < BLOCK_COLUMNS ? n : BLOCK_COLUMNS, k));
  return OK;
}

/* Where a, b and y of a batch begin */
typedef struct {
  const float *x, *w;
  float *to;
} Factors;
COMPACT static Factors factors_of(Vm *vm, const matmul_operands *o, int32_t index) {
  const Tensor *a = T(a), *b = T(b), *y = T(y);
  ptrdiff_t x = 0, w = 0, to = 0;
  for (int i = y->rank - 3; i >= 0; index /= y->size[i], i--) {
    const ptrdiff_t at = index % y->size[i];
    x += at * a->stride[i], w += at * b->stride[i], to += at * y->stride[i];
  }
  return (Factors){F(a) + x, F(b) + w, F(y) + to};
}

/* Whether matrices are read as they lie: by rows, or by columns */
INLINE int is_read_by_rows(int32_t m, int32_t n, ptrdiff_t row) { return m <= FEW_ROWS && n >= GRAIN && row == 1; }
INLINE int is_read_by_columns(int32_t m, int32_t n, ptrdiff_t col) {
  return ML > 1 && m <= TURNED_ROWS && n >= GRAIN && col == 1;
}

static int few_rows_of_batches(Vm *vm, const void *context, int32_t from, int32_t to) {
  const matmul_operands *o = context;
  const Tensor *a = T(a), *b = T(b), *y = T(y);
  const int batch = y->rank - 2;
  const int32_t m = y->size[batch], n = y->size[batch + 1], k = a->size[batch + 1];
  const ptrdiff_t row = b->stride[batch + 1], col = b->stride[batch];
  for (; from < to; from++) {
    const Factors f = factors_of(vm, o, from);
    if (is_read_by_rows(m, n, row))
      few_rows_times_matrix(f.x, a->stride[batch], f.w, col, m, k, f.to, y->stride[batch], n);
#if ML > 1
    else
      for (int r = 0; r < m; r++)
        row_times_turned(f.x + r * a->stride[batch], f.w, row, k, f.to + r * y->stride[batch], n);
#endif
    LAP(vm, o, SECOND_PART);
  }
  return OK;
}

/* Of some panels at a time, which stay in the nearest cache, or of all if the scratch has room for them: then a matrix is packed
 * once for all batches that share it. */
COMPACT static int run_matmul(Vm *vm, const matmul_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *a = T(a), *b = T(b), *y = T(y);
  const int batch = y->rank - 2;
  const int32_t m = y->size[batch], n = y->size[batch + 1], k = a->size[batch + 1], batches = y->count / m / n;
  const ptrdiff_t row = b->stride[batch + 1], col = b->stride[batch];
  if (is_read_by_rows(m, n, row) || is_read_by_columns(m, n, col))
    return share(vm, few_rows_of_batches, o, batches, 1, (int64_t)y->count * k);
  const int holds_all = T(scratch)->count >= packed_floats(n, k);
  const int32_t block = holds_all ? n : k > NEAR_FLOATS / BLOCK_COLUMNS ? PANEL : BLOCK_COLUMNS;
  const float *packed_from = NULL;
  for (int32_t i = 0; i < batches; i++) {
    const Factors f = factors_of(vm, o, i);
    for (int32_t first = 0; first < n; first += block) {
      const int32_t cols = n - first < block ? n - first : block;
      if (packed_from != f.w || block < n) {
        wr_pack_panels(f.w + first * row, F(scratch), cols, k, (int32_t)row, (int32_t)col);
        LAP_OF(vm, o, FIRST_PART, !first);
      }
      const Output out = {f.to + first, y->stride[batch], NULL, NULL, cols};
      multiply(vm, &(Product){f.x, a->stride[batch], F(scratch), m, k, 0, out});
      LAP_OF(vm, o, SECOND_PART, !first);
    }
    packed_from = f.w;
  }
  return OK;
}
