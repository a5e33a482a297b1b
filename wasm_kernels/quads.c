/* integer_gemm on processors that multiply and add unsigned with signed bytes by fours, as AVX-512 builds may: the same sums.
 *
 * The sum of (x - zero)(w - shift) is that of x w, less zero times the sum of the weights of the column, less shift times the
 * sum of x - zero. The sum of the weights is one more row of x: one of ones. */
enum { QUAD_ROWS = 4, QUAD_PANELS = 4, QUAD_BLOCK = 64 };

/* The weights of four terms for each column of a panel, from those of two pairs of terms; all of them, or only of the first */
INLINE vi quads_of(__m512i pairs) {
  static const int16_t order[32] = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                                    8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return (vi)_mm512_permutexvar_epi16(_mm512_loadu_si512(order), pairs);
}
INLINE void add_quads(const int rows, const int panels, const int has_ones, const uint8_t *x, ptrdiff_t stride,
                      const vi *weights, vi *sums) {
  UNROLL for (int row = 0; row < rows; row++) {
    int32_t four;
    __builtin_memcpy(&four, x + row * stride, sizeof four);
    UNROLL for (int p = 0; p < panels; p++) {
      vi *sum = sums + row * panels + p;
      *sum = (vi)_mm512_dpbusd_epi32((__m512i)*sum, _mm512_set1_epi32(four), (__m512i)weights[p]);
    }
  }
  if (has_ones) UNROLL for (int p = 0; p < panels; p++) {
      vi *sum = sums + rows * panels + p;
      *sum = (vi)_mm512_dpbusd_epi32((__m512i)*sum, _mm512_set1_epi8(1), (__m512i)weights[p]);
    }
}
/* sums[rows][panels] of x[rows, stride], and of ones behind them. rows, panels and has_ones are compile-time constants. */
INLINE void quad_tile(const int rows, const int panels, const int has_ones, const uint8_t *x, ptrdiff_t stride,
                           ptrdiff_t terms, const int8_t *w, vi *sums) {
  vi weights[QUAD_PANELS];
  UNROLL for (int i = 0; i < (rows + has_ones) * panels; i++) sums[i] = vset_i(0);
  ptrdiff_t t = 0;
  for (; t + 4 <= terms; t += 4) {
    UNROLL for (int p = 0; p < panels; p++)
      weights[p] = quads_of(_mm512_loadu_si512(w + (p * terms + t) * INTEGER_PANEL));
    add_quads(rows, panels, has_ones, x + t, stride, weights, sums);
  }
  if (t == terms) return;
  UNROLL for (int p = 0; p < panels; p++) {
    const void *pair = w + (p * terms + t) * INTEGER_PANEL;
    weights[p] = quads_of(_mm512_zextsi256_si512(_mm256_loadu_si256(pair)));
  }
  add_quads(rows, panels, has_ones, x + t, stride, weights, sums);
}

typedef struct {
  const uint8_t *x; /* of rows `stride` apart, readable in fours */
  ptrdiff_t stride, terms;
  const int32_t *zeros; /* of each row */
} QuadRows;

INLINE QuadRows quads_from(QuadRows q, int32_t row) {
  q.x += row * q.stride, q.zeros += row;
  return q;
}
INLINE void store_quads(const int rows, const int panels, const QuadRows *q, vi *sums, const vi *ones, const IntegerOutput *out) {
  UNROLL for (int row = 0; row < rows; row++)
    UNROLL for (int p = 0; p < panels; p++) sums[row * panels + p] -= ones[p] * q->zeros[row];
  if (out->shift) UNROLL for (int p = 0; p < panels; p++) {
      const vi shift = (vi)vload_upto((const float *)out->shift + p * VL, out->columns - p * VL);
      UNROLL for (int row = 0; row < rows; row++) sums[row * panels + p] = less(sums[row * panels + p], shift, out->totals[row]);
    }
  UNROLL for (int row = 0; row < rows; row++)
    UNROLL for (int p = 0; p < panels; p++)
      vstore_upto((float *)out->y + row * out->stride + p * VL, (vf)sums[row * panels + p], out->columns - p * VL);
}
/* Fewer than QUAD_ROWS rows against some panels */
INLINE void few_rows_times_quads(const int rows, const int panels, const QuadRows *q, const int8_t *w,
                                      const IntegerOutput *out) {
  vi sums[QUAD_ROWS * QUAD_PANELS];
  quad_tile(rows, panels, 1, q->x, q->stride, q->terms, w, sums);
  store_quads(rows, panels, q, sums, sums + rows * panels, out);
}
/* At least QUAD_ROWS rows against some panels, which stay in the nearest cache; the last rows may be calculated twice */
INLINE void many_rows_times_quads(int32_t rows, const int panels, const QuadRows *q, const int8_t *w,
                                       const IntegerOutput *out) {
  vi sums[(QUAD_ROWS + 1) * QUAD_PANELS], *ones = sums + QUAD_ROWS * panels;
  quad_tile(QUAD_ROWS, panels, 1, q->x, q->stride, q->terms, w, sums);
  store_quads(QUAD_ROWS, panels, q, sums, ones, out);
  for (int32_t row = QUAD_ROWS; row < rows; row += QUAD_ROWS) {
    if (row > rows - QUAD_ROWS) row = rows - QUAD_ROWS;
    const QuadRows here = quads_from(*q, row);
    const IntegerOutput to = integers_from(*out, row, 0);
    quad_tile(QUAD_ROWS, panels, 0, here.x, here.stride, here.terms, w, sums);
    store_quads(QUAD_ROWS, panels, &here, sums, ones, &to);
  }
}
INLINE void rows_times_quads(int32_t rows, const int panels, const QuadRows *q, const int8_t *w, const IntegerOutput *out) {
  if (rows == 1) few_rows_times_quads(1, panels, q, w, out);
  else if (rows == 2) few_rows_times_quads(2, panels, q, w, out);
  else if (rows == 3) few_rows_times_quads(3, panels, q, w, out);
  else many_rows_times_quads(rows, panels, q, w, out);
}
NOINLINE void rows_times_panels(int32_t rows, int panels, const QuadRows *q, const int8_t *w, const IntegerOutput *out) {
  if (panels == QUAD_PANELS) rows_times_quads(rows, QUAD_PANELS, q, w, out);
  else if (panels == 2) rows_times_quads(rows, 2, q, w, out);
  else rows_times_quads(rows, 1, q, w, out);
}

/* Rows of x as unsigned bytes that can be read in fours: where they lie, or in scratch; their zero points, and the sums of
 * x - zero if they are asked for */
static QuadRows quad_rows(Vm *vm, const integer_gemm_operands *o, int32_t first, int32_t rows, int32_t *zeros,
                          int32_t *totals) {
  const int32_t k = T(x)->size[1], flip = T(x)->dtype == DTYPE_I8 ? 128 : 0, is_there = !flip && k % 4 == 0;
  const int32_t stride = (k + 3) & -4;
  const uint8_t *from = (const uint8_t *)T(x)->data + (ptrdiff_t)first * k;
  uint8_t *scratch = (uint8_t *)T(scratch)->data;
  for (int32_t row = 0; row < rows; row++, from += k) {
    zeros[row] = flip;
    if (HAS(zero)) zeros[row] = ((const uint8_t *)T(zero)->data)[T(zero)->count == 1 ? 0 : first + row] ^ flip;
    totals[row] = 0;
    if (HAS(shift)) {
      int32_t total = -k * zeros[row];
      for (int32_t i = 0; i < k; i++) total += from[i] ^ flip;
      totals[row] = total;
    }
    if (is_there) continue;
    uint8_t *to = scratch + (ptrdiff_t)row * stride;
    for (int32_t i = 0; i < k; i++) to[i] = (uint8_t)(from[i] ^ flip);
    for (int32_t i = k; i < stride; i++) to[i] = 0;
  }
  return (QuadRows){is_there ? from - (ptrdiff_t)rows * k : scratch, stride, even(k), zeros};
}

/* Some rows against all panels: by fours, then two, then one; in odd steps of a loop the other way round: the weights read last are
 * still near. */
typedef struct {
  QuadRows q;
  IntegerOutput out;
  const int8_t *packed;
  int32_t rows, panels, is_backwards;
} QuadProduct;

static int quad_panels(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const QuadProduct *p = context;
  const int32_t fours = p->panels / 4, rest = p->panels % 4;
  for (int32_t i = from; i < to; i++) {
    const int32_t part = p->is_backwards ? to - 1 - (i - from) : i, count = part < fours ? 4 : part == fours && rest > 1 ? 2 : 1;
    const int32_t col = (count == 1 ? p->panels - 1 : 4 * part) * INTEGER_PANEL;
    const IntegerOutput here = integers_from(p->out, 0, col);
    rows_times_panels(p->rows, count, &p->q, p->packed + (ptrdiff_t)col * p->q.terms, &here);
  }
  return OK;
}
static int run_integer_gemm(Vm *vm, const integer_gemm_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *y = T(y);
  const int32_t k = T(x)->size[1], columns = y->size[1];
  int32_t block = QUAD_BLOCK;
  while (block > QUAD_ROWS && T(scratch)->count * 2 / block < ((k + 3) & -4)) block -= QUAD_ROWS;
  int32_t totals[QUAD_BLOCK], zeros[QUAD_BLOCK];
  for (int32_t first = 0, rows; first < y->size[0]; first += rows) {
    rows = y->size[0] - first < block ? y->size[0] - first : block;
    const QuadRows q = quad_rows(vm, o, first, rows, zeros, totals);
    const IntegerOutput out = {(int32_t *)y->data + (ptrdiff_t)first * y->stride[0], y->stride[0],
                               HAS(shift) ? (const int32_t *)T(shift)->data : NULL, totals, columns};
    const int32_t panels = (columns + INTEGER_PANEL - 1) / INTEGER_PANEL, rest = panels % 4;
    const QuadProduct p = {q, out, (const int8_t *)T(packed)->data, rows, panels, rows < QUAD_ROWS && (vm->step & 1)};
    const int32_t parts = panels / 4 + (rest > 1) + (rest & 1);
    share(vm, quad_panels, &p, parts, 1, (int64_t)rows * columns * k / 2);
  }
  return OK;
}
