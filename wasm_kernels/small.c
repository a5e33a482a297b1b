/* Products of floats with small weights: integers with a scale for each output. What they give is written down in
 * runtime/webrnn/reference/small.py. Each row is rounded to 16-bit integers, sums of their products are exact, and every
 * operation behind them is rounded by itself: all builds give the same bits, and a row gives the same with any other rows. */
#include "kernels.gen.h"
#include "plan.gen.h"

#define FEEBLE 0x1p-100f

typedef int16_t vs __attribute__((vector_size(2 * VL)));

INLINE vi larger_of(vi a, vi b) {
#if defined(__clang__)
  return __builtin_elementwise_max(a, b);
#else
  return (a & (a > b)) | (b & (a <= b));
#endif
}

/* The bits of the largest magnitudes, lane by lane; those of infinity and NaN are the largest */
INLINE vi largest_bits(const float *x, int32_t n, vi so_far) {
  int32_t i = 0;
  for (; i + VL <= n; i += VL) so_far = larger_of(so_far, vbits(vload(x + i)) & 0x7fffffff);
  return i < n ? larger_of(so_far, vbits(vload_part(x + i, n - i)) & 0x7fffffff) : so_far;
}

/* x * factor to the nearest integers, halves to even, which have at most 16 bits: behind the sum they are the low bits. Gives
 * the sum of these bits. */
#define MOVED 0x1.8p23f
#define MOVED_BITS 0x4b400000u
INLINE uint32_t round_run(const float *x, int32_t n, float factor, int16_t *to) {
  vi sums = vset_i(0);
  int32_t i = 0;
#if defined(__wasm_simd128__) && VL == 4
  const vf scale = vconst(factor), moved_by = vconst(MOVED);
  const vi less = vconst_i((int32_t)MOVED_BITS);
  for (; i + 2 * VL <= n; i += 2 * VL) { /* of one vector half a store would be left */
    const vi a = vbits(vload(x + i) * scale + moved_by) - less, b = vbits(vload(x + i + VL) * scale + moved_by) - less;
    const Shorts rounded = __builtin_wasm_narrow_s_i16x8_i32x4(a, b);
    sums += a + b;
    __builtin_memcpy(to + i, &rounded, sizeof rounded);
  }
#endif
  for (; i + VL <= n; i += VL) {
    const vi bits = vbits(vload(x + i) * vset(factor) + vset(MOVED));
    const vs rounded = __builtin_convertvector(bits, vs);
    sums += bits - (int32_t)MOVED_BITS;
    __builtin_memcpy(to + i, &rounded, sizeof rounded);
  }
  uint32_t sum = 0;
  for (int lane = 0; lane < VL; lane++) sum += (uint32_t)sums[lane];
  NO_VECTORS for (; i < n; i++) {
    const float moved = x[i] * factor + MOVED;
    uint32_t bits;
    __builtin_memcpy(&bits, &moved, sizeof bits);
    to[i] = (int16_t)bits;
    sum += bits - MOVED_BITS;
  }
  return sum;
}

/* A rounded row: its scale, and 128 times the sum of its integers modulo 2^32 */
typedef struct {
  float scale;
  uint32_t bias;
  float *y; /* where its results go */
} SmallRow;

/* Rounds one row, whose terms lie as `t` says, to `terms` integers, an even number */
static SmallRow round_row(const float *x, const Terms *t, float range, int16_t *to, int32_t terms, float *y) {
  vi lanes = vset_i(0);
  for (int32_t a = 0; a < t->outer; a++)
    for (int32_t b = 0; b < t->inner; b++) lanes = largest_bits(x + a * t->outer_stride + b * t->inner_stride, t->run, lanes);
  int32_t bits = 0;
  for (int i = 0; i < VL; i++) bits = lanes[i] > bits ? lanes[i] : bits;
  float largest;
  __builtin_memcpy(&largest, &bits, sizeof largest);
  to[terms - 1] = 0;
  if (!(largest >= FEEBLE && largest < __builtin_inff())) {
    __builtin_memset(to, 0, (size_t)terms * sizeof *to);
    return (SmallRow){largest < FEEBLE ? 0.0f : __builtin_nanf(""), 0, y};
  }
  const float factor = range / largest;
  uint32_t sum = 0;
  for (int32_t a = 0; a < t->outer; a++)
    for (int32_t b = 0; b < t->inner; b++, to += t->run)
      sum += round_run(x + a * t->outer_stride + b * t->inner_stride, t->run, factor, to);
  return (SmallRow){largest / range, sum << 7, y};
}

/* --- tiles ---------------------------------------------------------------------------------------------------------------
 * Vectors are of pairs of 16-bit terms: one instruction multiplies and adds them to sums of 32 bits. Weights of 16 bits lie
 * in panels of INTEGER_PANEL columns, packed[panel][pair of terms][column][2]. Of weights of 8 bits two columns share a number:
 * packed[panel][pair][column of the first half][2] = 256 * weight of the second half + weight of the first half + 128. A shift
 * gives the weights of the second half, and the sums of the first half are those of the whole numbers less 256 times those of
 * the second half less 128 times the sum of x, all modulo 2^32. That takes fewer instructions than widening bytes. */
typedef uint32_t mu __attribute__((vector_size(4 * ML))); /* what is added modulo 2^32 */

/* How many panels one row is multiplied with at a time, how many of what is left, and how many rows with how many panels: sums fit
 * the registers */
#if VL == 16
enum { ROW_PANELS = 6, REST_PANELS = 2, TILE_OF_ROWS = 4, TILE_PANELS = 2 };
#elif ML == 8
enum { ROW_PANELS = 4, REST_PANELS = 1, TILE_OF_ROWS = 4, TILE_PANELS = 1 };
#elif ML == 4 && defined(__aarch64__)
enum { ROW_PANELS = 4, REST_PANELS = 1, TILE_OF_ROWS = 4, TILE_PANELS = 1 };
#elif ML == 4
enum { ROW_PANELS = 2, REST_PANELS = 1, TILE_OF_ROWS = 2, TILE_PANELS = 1 };
#else
enum { ROW_PANELS = 1, REST_PANELS = 1, TILE_OF_ROWS = 1, TILE_PANELS = 1 };
#endif

typedef struct {
  const int8_t *packed;
  const float *scale, *bias;
  int32_t columns, terms, is_wide; /* terms of a sum: an even number; is_wide: the weights have 16 bits */
} SmallWeights;

/* What the sums of one row become, as far as there are columns; rest: how many elements a load or store may touch */
INLINE vf small_result(const int32_t *sums, float row_scale, const float *scale, const float *bias, int rest) {
  const vi sum = vbits(vload_upto((const float *)sums, rest));
  const vf product = __builtin_convertvector(sum, vf) * (vset(row_scale) * vload_upto(scale, rest));
  return bias ? product + vload_upto(bias, rest) : product;
}
NOINLINE void small_results(const int32_t *sums, int32_t count, const SmallWeights *w, int32_t column, const SmallRow *row) {
  const float *scale = w->scale + column, *bias = w->bias ? w->bias + column : NULL, row_scale = row->scale;
  float *y = row->y + column;
  int32_t i = 0;
  if (count > w->columns - column) count = w->columns - column;
  if (bias)
    for (; i + VL <= count; i += VL) vstore(y + i, small_result(sums + i, row_scale, scale + i, bias + i, VL));
  for (; i + VL <= count; i += VL) vstore(y + i, small_result(sums + i, row_scale, scale + i, NULL, VL));
  if (i < count) vstore_part(y + i, small_result(sums + i, row_scale, scale + i, bias ? bias + i : NULL, count - i), count - i);
}

#if VL == 16
/* Two pairs of terms, a half of the lanes each */
INLINE vi two_pairs(const int16_t *x) {
  static const int32_t halves[16] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1};
  int64_t four;
  __builtin_memcpy(&four, x, sizeof four);
  return (vi)_mm512_permutexvar_epi32(_mm512_loadu_si512(halves), _mm512_set1_epi64(four));
}
INLINE vi add_pairs_16(vi sum, vi x, __m512i w) { return (vi)_mm512_dpwssd_epi32((__m512i)sum, (__m512i)x, w); }

/* What a vector of weights of each panel has: a pair of terms of 16 bits, or two pairs of 8 bits, of which the last one may be alone */
enum { ONE_WIDE_PAIR, TWO_PAIRS, LAST_PAIR };

/* Adds them to the sums of each row and panel; of 8 bits there are two sums for each. All but pointers are compile-time constants. */
INLINE void add_terms(const int what, const int rows, const int panels, ptrdiff_t terms, const int16_t *x, const int8_t *packed,
                      ptrdiff_t panel, vi *sum) {
  const int each = what == ONE_WIDE_PAIR ? 1 : 2;
  vi in[TILE_OF_ROWS];
  UNROLL for (int r = 0; r < rows; r++) {
    int32_t two;
    __builtin_memcpy(&two, x + r * terms, sizeof two);
    in[r] = what == TWO_PAIRS ? two_pairs(x + r * terms) : vset_i(two);
  }
  UNROLL for (int p = 0; p < panels; p++) {
    const void *from = packed + p * panel;
    const __m512i weights = what == LAST_PAIR ? _mm512_zextsi256_si512(_mm256_loadu_si256(from)) : _mm512_loadu_si512(from);
    UNROLL for (int r = 0; r < rows; r++) {
      vi *to = sum + (r * panels + p) * each;
      to[0] = add_pairs_16(to[0], in[r], weights);
      if (each == 2) to[1] = add_pairs_16(to[1], in[r], _mm512_srai_epi16(weights, 8));
    }
  }
}

/* rows x panels, the columns from `column` on; rows, panels and is_wide are compile-time constants at every call */
INLINE void small_tile(const int rows, const int panels, const int is_wide, const SmallWeights *w, const int16_t *x,
                       const SmallRow *row, int32_t column) {
  const int each = is_wide ? 1 : 2;
  const ptrdiff_t terms = w->terms, panel = terms * INTEGER_PANEL << is_wide;
  const int8_t *packed = w->packed + column / INTEGER_PANEL * panel;
  vi sum[16];
  UNROLL for (int i = 0; i < rows * panels * each; i++) sum[i] = vset_i(0);
  ptrdiff_t t = 0;
  if (is_wide)
    for (; t < terms; t += 2, packed += sizeof(vi)) add_terms(ONE_WIDE_PAIR, rows, panels, terms, x + t, packed, panel, sum);
  else {
    for (; t + 4 <= terms; t += 4, packed += sizeof(vi)) add_terms(TWO_PAIRS, rows, panels, terms, x + t, packed, panel, sum);
    if (t < terms) add_terms(LAST_PAIR, rows, panels, terms, x + t, packed, panel, sum);
  }
  int32_t all[8 * INTEGER_PANEL];
  UNROLL for (int i = 0; i < rows * panels; i++) {
    if (is_wide) _mm512_storeu_si512(all + i * INTEGER_PANEL, (__m512i)sum[i]);
    else {
      const __m512i a = (__m512i)sum[2 * i], b = (__m512i)sum[2 * i + 1];
      const mu second = (mu)_mm512_castsi512_si256(b) + (mu)_mm512_extracti64x4_epi64(b, 1);
      const mu first = (mu)_mm512_castsi512_si256(a) + (mu)_mm512_extracti64x4_epi64(a, 1) - (second << 8) - row[i / panels].bias;
      _mm256_storeu_si256((__m256i *)(all + i * INTEGER_PANEL), (__m256i)first);
      _mm256_storeu_si256((__m256i *)(all + i * INTEGER_PANEL + INTEGER_PANEL / 2), (__m256i)second);
    }
  }
  for (int r = 0; r < rows; r++) small_results(all + r * panels * INTEGER_PANEL, panels * INTEGER_PANEL, w, column, row + r);
}
#else
typedef int32_t mi __attribute__((vector_size(4 * ML)));
INLINE mi mset_i(int32_t x) { return (mi)mset(0.0f) + x; }

#if ML == 8
INLINE mi add_pairs(mi sum, mi x, mi w) { return (mi)((mu)sum + (mu)_mm256_madd_epi16((__m256i)x, (__m256i)w)); }
#else
INLINE mi add_pairs(mi sum, mi x, mi w) { return (mi)((mu)sum + (mu)pairs_add(mset_i(0), x, w)); }
#endif
INLINE mi second_half(mi w) {
  typedef int16_t words __attribute__((vector_size(4 * ML)));
  return (mi)((words)w >> 8);
}

/* Sums of a panel, in vectors */
#define PANEL_SUMS (INTEGER_PANEL / ML)

/* rows x panels, the columns from `column` on; rows, panels and is_wide are compile-time constants at every call */
INLINE void small_tile(const int rows, const int panels, const int is_wide, const SmallWeights *w, const int16_t *x,
                       const SmallRow *row, int32_t column) {
  const int sums = panels * PANEL_SUMS, vecs = is_wide ? PANEL_SUMS : PANEL_SUMS / 2;
  const ptrdiff_t terms = w->terms, panel = terms * INTEGER_PANEL << is_wide;
  const int8_t *packed = w->packed + column / INTEGER_PANEL * panel;
  mi sum[8 * PANEL_SUMS];
  UNROLL for (int i = 0; i < rows * sums; i++) sum[i] = mset_i(0);
  for (ptrdiff_t t = 0; t < terms; t += 2, packed += vecs * (ptrdiff_t)sizeof(mi))
    UNROLL for (int p = 0; p < panels; p++)
      UNROLL for (int v = 0; v < vecs; v++) {
        mi weights, second;
        __builtin_memcpy(&weights, packed + p * panel + v * (ptrdiff_t)sizeof weights, sizeof weights);
        if (!is_wide) second = second_half(weights);
        UNROLL for (int r = 0; r < rows; r++) {
          int32_t two;
          __builtin_memcpy(&two, x + r * terms + t, sizeof two);
          mi *to = sum + r * sums + p * PANEL_SUMS + v;
          to[0] = add_pairs(to[0], mset_i(two), weights);
          if (!is_wide) to[vecs] = add_pairs(to[vecs], mset_i(two), second);
        }
      }
  if (!is_wide)
    UNROLL for (int r = 0; r < rows; r++)
      UNROLL for (int p = 0; p < panels; p++)
        UNROLL for (int v = 0; v < vecs; v++) {
          mi *of = sum + r * sums + p * PANEL_SUMS + v;
          of[0] = (mi)((mu)of[0] - ((mu)of[vecs] << 8) - row[r].bias);
        }
  int32_t all[8 * INTEGER_PANEL];
  __builtin_memcpy(all, sum, sizeof(mi) * (size_t)(rows * sums));
  for (int r = 0; r < rows; r++) small_results(all + r * panels * INTEGER_PANEL, panels * INTEGER_PANEL, w, column, row + r);
}
#endif

/* One row against the columns from `column` to `end`, in this order or the other way round: see row_times_panels */
INLINE void small_row(const int is_wide, const SmallWeights *w, const int16_t *x, const SmallRow *row, int32_t column,
                      int32_t end, int backwards) {
  enum { WHOLE = ROW_PANELS * INTEGER_PANEL, SOME = REST_PANELS * INTEGER_PANEL };
  const int32_t wholes = (end - column) / WHOLE, from = column + wholes * WHOLE;
  const int32_t some = REST_PANELS > 1 ? (end - from) / SOME : 0, last = from + some * SOME;
  const int32_t groups = wholes + some + (end - last + INTEGER_PANEL - 1) / INTEGER_PANEL;
  for (int32_t i = 0; i < groups; i++) {
    const int32_t group = backwards ? groups - 1 - i : i;
    if (group < wholes) small_tile(1, ROW_PANELS, is_wide, w, x, row, column + group * WHOLE);
    else if (REST_PANELS > 1 && group < wholes + some)
      small_tile(1, REST_PANELS, is_wide, w, x, row, from + (group - wholes) * SOME);
    else small_tile(1, 1, is_wide, w, x, row, last + (group - wholes - some) * INTEGER_PANEL);
  }
}

/* Rows against some panels after the other, which stay in the nearest cache meanwhile */
INLINE void small_tiles(const int is_wide, const SmallWeights *w, const int16_t *x, const SmallRow *row, int32_t rows,
                        int32_t column, int32_t end) {
  enum { WHOLE = TILE_PANELS * INTEGER_PANEL };
  const ptrdiff_t terms = w->terms;
  for (; TILE_PANELS > 1 && column + WHOLE <= end; column += WHOLE)
    for (int32_t r = 0; r < rows; r += TILE_OF_ROWS)
      small_tile(TILE_OF_ROWS, TILE_PANELS, is_wide, w, x + r * terms, row + r, column);
  for (; column < end; column += INTEGER_PANEL)
    for (int32_t r = 0; r < rows; r += TILE_OF_ROWS) small_tile(TILE_OF_ROWS, 1, is_wide, w, x + r * terms, row + r, column);
}

/* Rounded rows, to be multiplied with all weights */
typedef struct {
  const SmallWeights *w;
  const int16_t *x;
  const SmallRow *row;
  int32_t rows, backwards;
} SmallProduct;

/* A row that is left over has better tiles of its own. */
INLINE void small_products(const int is_wide, const SmallProduct *p, int32_t column, int32_t end) {
  const int32_t whole = TILE_OF_ROWS > 1 ? p->rows / TILE_OF_ROWS * TILE_OF_ROWS : 0;
  if (whole) small_tiles(is_wide, p->w, p->x, p->row, whole, column, end);
  for (int32_t r = whole; r < p->rows; r++)
    small_row(is_wide, p->w, p->x + (ptrdiff_t)r * p->w->terms, p->row + r, column, end, p->backwards);
}
NOINLINE void times_bytes(const SmallProduct *p, int32_t column, int32_t end) { small_products(0, p, column, end); }
NOINLINE void times_words(const SmallProduct *p, int32_t column, int32_t end) { small_products(1, p, column, end); }

/* Columns that are not parted: those that one row takes at a time */
enum { SMALL_TOGETHER = ROW_PANELS * INTEGER_PANEL };
static int small_columns(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const SmallProduct *p = context;
  const int32_t columns = p->w->columns, end = to * SMALL_TOGETHER < columns ? to * SMALL_TOGETHER : columns;
  (p->w->is_wide ? times_words : times_bytes)(p, from * SMALL_TOGETHER, end);
  return OK;
}
static void times_small(Vm *vm, const SmallProduct *p) {
  const int64_t work = (int64_t)p->rows * p->w->columns * p->w->terms / 2;
  share(vm, small_columns, p, (p->w->columns - 1) / SMALL_TOGETHER + 1, 1, work);
}

/* Rounds `rows` rows of x and multiplies them; `rounded` has room for SMALL_ROWS rows */
static void small_matmul(Vm *vm, const SmallWeights *w, const float *x, int32_t k, ptrdiff_t stride, float *y, int32_t rows,
                         float range, int16_t *rounded, int backwards) {
  const Terms terms = {1, 1, k, 0, 0};
  for (int32_t first = 0, count; first < rows; first += count) {
    SmallRow row[SMALL_ROWS];
    count = rows - first < SMALL_ROWS ? rows - first : SMALL_ROWS;
    for (int32_t r = 0; r < count; r++)
      row[r] = round_row(x + (first + r) * stride, &terms, range, rounded + (ptrdiff_t)r * w->terms, w->terms,
                         y + (ptrdiff_t)(first + r) * w->columns);
    times_small(vm, &(SmallProduct){w, rounded, row, count, backwards});
  }
}

void wr_round_rows(const float *x, int16_t *rounded, float *scales, int32_t m, int32_t k, int32_t range) {
  const Terms terms = {1, 1, k, 0, 0};
  for (ptrdiff_t row = 0; row < m; row++)
    scales[row] = round_row(x + row * k, &terms, (float)range, rounded + row * even(k), even(k), NULL).scale;
}

void wr_small_gemm(const float *x, const uint8_t *packed, const float *scale, const float *bias, float *y, int16_t *scratch,
                   int32_t m, int32_t n, int32_t k, int32_t range, int32_t is_wide) {
  const SmallWeights w = {(const int8_t *)packed, scale, bias, n, even(k), is_wide};
  small_matmul(NULL, &w, x, k, k, y, m, (float)range, scratch, 0);
}

static int check_same_bits(Vm *vm, const same_bits_operands *o) {
  (void)vm, (void)o;
  return OK;
}
static int run_same_bits(Vm *vm, const same_bits_operands *o) { return check_same_bits(vm, o); }

/* --- windows: a product of rows is a convolution of single positions ------------------------------------------------------- */

static int check_small_weights(Vm *vm, int32_t packed, int32_t scale, int32_t bias, int32_t rounded, int64_t columns,
                               int64_t terms, int32_t range) {
  const Tensor *p = vm->tensor + packed, *scratch = vm->tensor + rounded;
  const int64_t even_terms = terms + (terms & 1), width = (columns + INTEGER_PANEL - 1) / INTEGER_PANEL * INTEGER_PANEL;
  ASK((p->dtype == DTYPE_I8 || p->dtype == DTYPE_I16) && range > 0 && range < 1 << 15);
  ASK(terms > 0 && terms < 1 << 16 && is_dense(p, 1) && p->count >= width * even_terms);
  ASK(is_vector(vm->tensor + scale, (int32_t)columns) && (bias < 0 || is_vector(vm->tensor + bias, (int32_t)columns)));
  ASK(is_dense(scratch, 1) && scratch->count >= SMALL_ROWS * even_terms);
  return OK;
}
static int check_small_rows(Vm *vm, const small_rows_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  const int error = check_steps_of(x, y, STEPS);
  if (error) return error;
  const int64_t terms = (int64_t)o->kernel_h * o->kernel_w * x->size[3];
  return check_small_weights(vm, o->packed, o->scale, o->bias, o->scratch, y->size[3], terms, o->range);
}
/* The positions from `first` on */
static void small_positions(Vm *vm, const Positions *p, int32_t first, int32_t count, const Terms *t, const SmallWeights *w,
                            float range, int16_t *rounded, int backwards) {
  Cursor c = cursor_at(p, first, count);
  for (int32_t done = 0, rows; done < count; done += rows) {
    SmallRow row[SMALL_ROWS];
    rows = count - done < SMALL_ROWS ? count - done : SMALL_ROWS;
    for (int32_t r = 0; r < rows; r++, go_on(p, &c))
      row[r] = round_row(c.x, t, range, rounded + (ptrdiff_t)r * w->terms, w->terms, c.y);
    times_small(vm, &(SmallProduct){w, rounded, row, rows, backwards});
  }
}
static void small_block(Vm *vm, const Sweep *s, int32_t first, int32_t count) {
  const small_rows_operands *o = s->operands;
  const int32_t k = o->kernel_h * o->kernel_w * T(x)->size[3];
  const SmallWeights w = {(const int8_t *)T(packed)->data, F(scale), MAYBE(bias), T(y)->size[3], even(k),
                          T(packed)->dtype == DTYPE_I16};
  small_positions(vm, &s->p, first, count, &s->terms, &w, (float)o->range, (int16_t *)T(scratch)->data, vm->step & 1);
}
/* Its rows are rounded in one place, so blocks are not shared, but the columns of each product are. */
static int run_small_rows(Vm *vm, const small_rows_operands *o) {
  DONE_IF_EMPTY(y);
  const Positions p = positions_of(T(x), T(y), STEPS);
  const Sweep s = {o, small_block, p, terms_of(T(x), STEPS), along(vm, (const int32_t *)o, o->along, &p)};
  return sweep(vm, &s, 0);
}

/* --- whole sequences of recurrent cells -------------------------------------------------------------------------------------- */

static const int8_t CELL_GATES[] = {1, 3, 4};

static Sequence small_sequence_of(Vm *vm, const small_sequence_operands *o) { return SEQUENCE(CELL_GATES[o->cell]); }
static int check_small_sequence(Vm *vm, const small_sequence_operands *o) {
  ASK(below(o->cell, CELL_COUNT) && T(xw)->rank == 3 && is_dense(T(final), 2));
  const Sequence s = small_sequence_of(vm, o);
  int error = check_sequence(vm, &s, o->bias);
  if (error) return error;
  error = check_small_weights(vm, o->packed, o->scale, o->bias, o->rounded, (int64_t)s.gates * s.hidden, s.hidden, o->range);
  if (error) return error;
  const int is_lstm = o->cell == CELL_LSTM;
  ASK(is_lstm == HAS(c) && is_lstm == HAS(c_final) && (is_lstm || !HAS(peephole)));
  ASK(!is_lstm || (is_block(T(c), s.rows, s.hidden) && is_block(T(c_final), s.rows, s.hidden)));
  ASK(!HAS(peephole) || (fits(3 * (int64_t)s.hidden) && is_vector(T(peephole), 3 * s.hidden)));
  return check_activations(vm, o->params, o->activations, o->cell + 1);
}
typedef struct {
  const small_sequence_operands *operands;
  SmallWeights w;
  int32_t hidden;
} SmallSequence;

static void project_small(Vm *vm, const void *context, const float *h, float *hw, int32_t rows, int32_t t) {
  const SmallSequence *p = context;
  const small_sequence_operands *o = p->operands;
  small_matmul(vm, &p->w, h, p->hidden, p->hidden, hw, rows, (float)o->range, (int16_t *)T(rounded)->data, t & 1);
}
COMPACT static int run_small_sequence(Vm *vm, const small_sequence_operands *o) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  const Sequence s = small_sequence_of(vm, o);
  const SmallSequence p = {o,
                           {(const int8_t *)T(packed)->data, F(scale), MAYBE(bias), s.gates * s.hidden, even(s.hidden),
                            T(packed)->dtype == DTYPE_I16},
                           s.hidden};
  float *c = HAS(c) ? begin_c(T(c), T(c_final)) : NULL;
  const Cell cell = {o->cell, o->activations, o->couple, F(params), MAYBE(peephole), c};
  return run_rows(vm, o, &s, &cell, project_small, &p, 0, s.rows);
}
