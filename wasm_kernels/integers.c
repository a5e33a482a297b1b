/* Products of integers: exact, so every build gives the same bits. */

/* --- bytes times packed bytes ----------------------------------------------------------------------------------------
 * Weights [k, n] lie in panels of INTEGER_PANEL columns; in a panel, for each pair of terms, the two weights of each column
 * lie next to each other, so that one instruction multiplies and adds pairs of 16-bit numbers. Terms and columns beyond the
 * last are zeros. */
INLINE int32_t even(int32_t k) { return k + (k & 1); }
INLINE int is_byte(const Tensor *t) { return t->dtype == DTYPE_U8 || t->dtype == DTYPE_I8; }

static int check_integer_gemm(Vm *vm, const integer_gemm_operands *o) {
  const Tensor *x = T(x), *packed = T(packed), *y = T(y), *scratch = T(scratch);
  ASK(is_byte(x) && is_dense(x, 2) && is_rows(y) && x->size[0] == y->size[0] && x->size[1] < 1 << 16);
  const int64_t panels = ((int64_t)y->size[1] + INTEGER_PANEL - 1) / INTEGER_PANEL;
  ASK(is_dense(packed, 1) && packed->count >= panels * INTEGER_PANEL * even(x->size[1]));
  ASK(!HAS(zero) || (T(zero)->dtype == x->dtype && (is_vector(T(zero), 1) || is_vector(T(zero), x->size[0]))));
  ASK(!HAS(shift) || is_vector(T(shift), y->size[1]));
  ASK(is_dense(scratch, 1) && scratch->count >= INTEGER_ROWS * even(x->size[1]));
  return OK;
}
/* Where sums go, and what is taken from them: shift[columns] times the total of their row, unless shift is NULL */
typedef struct {
  int32_t *y;
  ptrdiff_t stride;
  const int32_t *shift, *totals;
  int32_t columns; /* from y on: fewer than a panel has at the right edge */
} IntegerOutput;

INLINE IntegerOutput integers_from(IntegerOutput out, int32_t row, int32_t column) {
  out.y += row * out.stride + column;
  out.totals += row;
  out.columns -= column;
  if (out.shift) out.shift += column;
  return out;
}

/* sum - shift * total, modulo 2^32 */
INLINE vi less(vi sum, vi shift, int32_t total) {
  typedef uint32_t vu __attribute__((vector_size(4 * VL)));
  return (vi)((vu)sum - (vu)shift * (uint32_t)total);
}

#if VL == 16
#include "quads.c"
#else
#if VL == 8
INLINE vi pairs_load(const int8_t *p) { return (vi)_mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
INLINE vi pairs_add(vi sum, vi x, vi w) { return sum + (vi)_mm256_madd_epi16((__m256i)x, (__m256i)w); }
#elif VL == 4
typedef int16_t Shorts __attribute__((vector_size(16)));
typedef int8_t Bytes __attribute__((vector_size(8)));
INLINE vi pairs_load(const int8_t *p) {
  Bytes eight;
  __builtin_memcpy(&eight, p, sizeof eight);
  return (vi) __builtin_convertvector(eight, Shorts);
}
INLINE vi pairs_add(vi sum, vi x, vi w) {
#if defined(__wasm_simd128__)
  return sum + (vi)__builtin_wasm_dot_s_i32x4_i16x8((Shorts)x, (Shorts)w);
#elif defined(__SSE2__)
  return sum + (vi)_mm_madd_epi16((__m128i)x, (__m128i)w);
#else
  return sum + (x << 16 >> 16) * (w << 16 >> 16) + (x >> 16) * (w >> 16);
#endif
}
#else
INLINE vi pairs_load(const int8_t *p) { return (vi){(int32_t)((uint32_t)(uint16_t)p[0] | (uint32_t)p[1] << 16)}; }
INLINE vi pairs_add(vi sum, vi x, vi w) {
  const int32_t two = (int16_t)x[0] * (int16_t)w[0] + (x[0] >> 16) * (w[0] >> 16);
  return (vi){(int32_t)((uint32_t)sum[0] + (uint32_t)two)};
}
#endif

/* How many panels one row of x is multiplied with at a time, and how many rows with one panel */
#if VL == 8
enum { INTEGER_PANELS = 3, INTEGER_TILE = 4 };
#elif VL == 4
enum { INTEGER_PANELS = 3, INTEGER_TILE = 2 };
#else
enum { INTEGER_PANELS = 1, INTEGER_TILE = 1 };
#endif
#define PANEL_PAIRS (INTEGER_PANEL / VL)
#define INTEGER_VECS (4 * PANEL_PAIRS) /* at most, of any tile */

/* sums[rows][panels * PANEL_PAIRS] of rows of x, each `terms` 16-bit numbers, an even number, with panels that lie one behind
 * the other. rows and panels are compile-time constants at every call. */
INLINE void integer_tile(const int rows, const int panels, const int16_t *x, ptrdiff_t terms, const int8_t *w, vi *sums) {
  const int vecs = panels * PANEL_PAIRS;
  UNROLL for (int i = 0; i < rows * vecs; i++) sums[i] = vset_i(0);
  for (ptrdiff_t t = 0; t < terms; t += 2, w += 2 * INTEGER_PANEL) {
    UNROLL for (int v = 0; v < vecs; v++) {
      const vi weights = pairs_load(w + v / PANEL_PAIRS * (terms * INTEGER_PANEL) + v % PANEL_PAIRS * (2 * VL));
      UNROLL for (int row = 0; row < rows; row++) {
        int32_t two;
        __builtin_memcpy(&two, x + row * terms + t, sizeof two);
        sums[row * vecs + v] = pairs_add(sums[row * vecs + v], vset_i(two), weights);
      }
    }
  }
}

/* x - zero of some rows as 16-bit terms, and the sum of each; a signed byte is an unsigned one with its first bit flipped, less
 * 128 */
static void widen_rows(Vm *vm, const integer_gemm_operands *o, int32_t first, int32_t rows, int32_t *totals) {
  const int32_t k = T(x)->size[1], terms = even(k), flip = T(x)->dtype == DTYPE_I8 ? 128 : 0;
  for (int32_t row = 0; row < rows; row++) {
    int16_t *to = (int16_t *)T(scratch)->data + (ptrdiff_t)row * terms;
    const uint8_t *from = (const uint8_t *)T(x)->data + (ptrdiff_t)(first + row) * k;
    int32_t zero = flip, total = 0;
    if (HAS(zero)) zero = ((const uint8_t *)T(zero)->data)[T(zero)->count == 1 ? 0 : first + row] ^ flip;
    for (int32_t i = 0; i < k; i++) total += to[i] = (int16_t)((from[i] ^ flip) - zero);
    if (terms > k) to[k] = 0;
    totals[row] = total;
  }
}
INLINE void integers_to_output(const int rows, const int panels, const int16_t *x, ptrdiff_t terms, const int8_t *w,
                               IntegerOutput out) {
  const int vecs = panels * PANEL_PAIRS;
  vi sums[INTEGER_VECS];
  integer_tile(rows, panels, x, terms, w, sums);
  UNROLL for (int v = 0; v < vecs; v++) {
    const int rest = out.columns - v * VL;
    if (rest <= 0) break;
    const vi shift = out.shift ? (vi)vload_upto((const float *)out.shift + v * VL, rest) : vset_i(0);
    UNROLL for (int row = 0; row < rows; row++)
      vstore_upto((float *)out.y + row * out.stride + v * VL, (vf)less(sums[row * vecs + v], shift, out.totals[row]), rest);
  }
}
/* Rows against one panel, which stays in the nearest cache meanwhile */
NOINLINE void rows_times_integers(const int16_t *x, int32_t rows, ptrdiff_t terms, const int8_t *w, const IntegerOutput *out) {
  int32_t row = 0;
  for (; row + INTEGER_TILE <= rows; row += INTEGER_TILE)
    integers_to_output(INTEGER_TILE, 1, x + row * terms, terms, w, integers_from(*out, row, 0));
  for (; row < rows; row++) integers_to_output(1, 1, x + row * terms, terms, w, integers_from(*out, row, 0));
}
NOINLINE void row_times_integers(const int16_t *x, ptrdiff_t terms, const int8_t *w, const IntegerOutput *out) {
  integers_to_output(1, INTEGER_PANELS, x, terms, w, *out);
}
enum { MOST_INTEGER_ROWS = 64, TOGETHER_COLUMNS = INTEGER_PANELS * INTEGER_PANEL };
typedef struct {
  const int16_t *x;
  ptrdiff_t terms;
  const int8_t *packed;
  int32_t rows;
  IntegerOutput out;
} IntegerProduct;

static int integer_columns(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const IntegerProduct *p = context;
  const int32_t columns = p->out.columns, end = to * TOGETHER_COLUMNS < columns ? to * TOGETHER_COLUMNS : columns;
  for (int32_t col = from * TOGETHER_COLUMNS, width; col < end; col += width) {
    const int8_t *w = p->packed + (ptrdiff_t)col * p->terms;
    const IntegerOutput here = integers_from(p->out, 0, col);
    width = p->rows == 1 && columns - col >= TOGETHER_COLUMNS ? TOGETHER_COLUMNS : INTEGER_PANEL;
    if (p->rows == 1 && width == TOGETHER_COLUMNS) row_times_integers(p->x, p->terms, w, &here);
    else rows_times_integers(p->x, p->rows, p->terms, w, &here);
  }
  return OK;
}
static int run_integer_gemm(Vm *vm, const integer_gemm_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *y = T(y);
  const int32_t terms = even(T(x)->size[1]), columns = y->size[1];
  const int16_t *x = (const int16_t *)T(scratch)->data;
  int32_t totals[MOST_INTEGER_ROWS], block = MOST_INTEGER_ROWS;
  while (block > INTEGER_ROWS && T(scratch)->count / block < terms) block -= INTEGER_ROWS;
  for (int32_t first = 0, rows; first < y->size[0]; first += rows) {
    rows = y->size[0] - first < block ? y->size[0] - first : block;
    widen_rows(vm, o, first, rows, totals);
    const IntegerOutput out = {(int32_t *)y->data + (ptrdiff_t)first * y->stride[0], y->stride[0],
                               HAS(shift) ? (const int32_t *)T(shift)->data : NULL, totals, columns};
    const IntegerProduct p = {x, terms, (const int8_t *)T(packed)->data, rows, out};
    share(vm, integer_columns, &p, (columns - 1) / TOGETHER_COLUMNS + 1, 1, (int64_t)rows * columns * terms / 2);
  }
  return OK;
}
#endif

/* --- products of other types, term by term ------------------------------------------------------------------------------ */

static int check_plain_matmul(Vm *vm, const plain_matmul_operands *o) {
  const Tensor *a = T(a), *b = T(b), *y = T(y);
  ASK(a->rank == 3 && b->rank == 3 && y->rank == 3 && a->dtype == y->dtype && b->dtype == y->dtype);
  ASK(y->dtype == DTYPE_I32 || y->dtype == DTYPE_U32 || y->dtype == DTYPE_I64 || y->dtype == DTYPE_U64 ||
      y->dtype == DTYPE_F64);
  ASK(a->size[0] == y->size[0] && b->size[0] == y->size[0] && a->size[1] == y->size[1] && a->size[2] == b->size[1] &&
      b->size[2] == y->size[2]);
  return OK;
}
#define SUM_OF_PRODUCTS(type)                                                        \
  do {                                                                               \
    type sum = 0;                                                                    \
    NO_VECTORS for (int32_t t = 0; t < k; t++, p += a->stride[2], q += b->stride[1]) \
        sum += ((const type *)a->data)[p] * ((const type *)b->data)[q];              \
    ((type *)y->data)[i * y->stride[0] + j * y->stride[1] + n * y->stride[2]] = sum; \
  } while (0)
static int run_plain_matmul(Vm *vm, const plain_matmul_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *a = T(a), *b = T(b), *y = T(y);
  const int32_t k = a->size[2];
  for (ptrdiff_t i = 0; i < y->size[0]; i++)
    for (ptrdiff_t j = 0; j < y->size[1]; j++)
      for (ptrdiff_t n = 0; n < y->size[2]; n++) {
        ptrdiff_t p = i * a->stride[0] + j * a->stride[1], q = i * b->stride[0] + n * b->stride[2];
        if (y->dtype == DTYPE_F64) SUM_OF_PRODUCTS(double);
        else if (ITEM[y->dtype] == 4) SUM_OF_PRODUCTS(uint32_t);
        else SUM_OF_PRODUCTS(uint64_t);
      }
  return OK;
}
