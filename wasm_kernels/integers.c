/* Products of integers: exact, so every build gives the same bits. */

/* --- bytes times packed bytes ----------------------------------------------------------------------------------------
 * Weights [k, n] lie in panels of INTEGER_PANEL columns; in a panel, for each pair of terms, the two weights of each column
 * lie next to each other, so that one instruction multiplies and adds pairs of 16-bit numbers. Terms and columns beyond the
 * last are zeros. */
#if defined(__AVX2__) && !defined(WEBRNN_SCALAR)
#define PAIRS 8
typedef __m256i pairs;
INLINE pairs pairs_set(int32_t two) { return _mm256_set1_epi32(two); }
INLINE pairs pairs_load(const int8_t *p) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const __m128i *)p)); }
INLINE pairs pairs_add(pairs sum, pairs x, pairs w) { return _mm256_add_epi32(sum, _mm256_madd_epi16(x, w)); }
#elif VL == 4
#define PAIRS 4
typedef int32_t pairs __attribute__((vector_size(16)));
typedef int16_t shorts __attribute__((vector_size(16)));
typedef int8_t bytes __attribute__((vector_size(8)));
INLINE pairs pairs_set(int32_t two) { return (pairs){two, two, two, two}; }
INLINE pairs pairs_load(const int8_t *p) {
  bytes eight;
  __builtin_memcpy(&eight, p, sizeof eight);
  return (pairs) __builtin_convertvector(eight, shorts);
}
INLINE pairs pairs_add(pairs sum, pairs x, pairs w) {
#if defined(__wasm_simd128__)
  return sum + (pairs)__builtin_wasm_dot_s_i32x4_i16x8((shorts)x, (shorts)w);
#elif defined(__SSE2__)
  return sum + (pairs)_mm_madd_epi16((__m128i)x, (__m128i)w);
#else
  return sum + (x << 16 >> 16) * (w << 16 >> 16) + (x >> 16) * (w >> 16);
#endif
}
#else
#define PAIRS 1
typedef int32_t pairs;
INLINE pairs pairs_set(int32_t two) { return two; }
INLINE pairs pairs_load(const int8_t *p) { return (pairs)((uint32_t)(uint16_t)p[0] | (uint32_t)p[1] << 16); }
INLINE pairs pairs_add(pairs sum, pairs x, pairs w) {
  const int32_t two = (int16_t)x * (int16_t)w + (x >> 16) * (w >> 16);
  return (pairs)((uint32_t)sum + (uint32_t)two);
}
#endif
/* where a loop is not worth more code */
#define NO_VECTORS _Pragma("clang loop vectorize(disable) unroll(disable)")
#define PANEL_PAIRS (INTEGER_PANEL / PAIRS)

/* `rows` rows of x, pairs of 16-bit terms, against one panel: sums[rows][INTEGER_PANEL] */
INLINE void integer_tile(const int rows, const int16_t *x, int32_t terms, const int8_t *w, int32_t *sums) {
  pairs acc[INTEGER_ROWS * PANEL_PAIRS];
  UNROLL for (int i = 0; i < rows * PANEL_PAIRS; i++) acc[i] = pairs_set(0);
  for (int32_t t = 0; t < terms; t += 2, w += 2 * INTEGER_PANEL) {
    UNROLL for (int i = 0; i < PANEL_PAIRS; i++) {
      const pairs weights = pairs_load(w + 2 * PAIRS * i);
      UNROLL for (int row = 0; row < rows; row++) {
        int32_t two;
        __builtin_memcpy(&two, x + (ptrdiff_t)row * terms + t, sizeof two);
        acc[row * PANEL_PAIRS + i] = pairs_add(acc[row * PANEL_PAIRS + i], pairs_set(two), weights);
      }
    }
  }
  __builtin_memcpy(sums, acc, sizeof(int32_t) * (size_t)(rows * INTEGER_PANEL));
}

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
static int run_integer_gemm(Vm *vm, const integer_gemm_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *y = T(y);
  const int32_t terms = even(T(x)->size[1]), columns = y->size[1];
  const int32_t *shift = HAS(shift) ? (const int32_t *)T(shift)->data : NULL;
  const int16_t *x = (const int16_t *)T(scratch)->data;
  for (int32_t first = 0, rows; first < y->size[0]; first += rows) {
    int32_t totals[INTEGER_ROWS], sums[INTEGER_ROWS * INTEGER_PANEL];
    rows = y->size[0] - first < INTEGER_ROWS ? 1 : INTEGER_ROWS;
    widen_rows(vm, o, first, rows, totals);
    const int8_t *w = (const int8_t *)T(packed)->data;
    for (int32_t col = 0; col < columns; col += INTEGER_PANEL, w += (ptrdiff_t)INTEGER_PANEL * terms) {
      if (rows == 1) integer_tile(1, x, terms, w, sums);
      else integer_tile(INTEGER_ROWS, x, terms, w, sums);
      const int32_t width = columns - col < INTEGER_PANEL ? columns - col : INTEGER_PANEL;
      for (int32_t row = 0; row < rows; row++) {
        int32_t *to = (int32_t *)y->data + (ptrdiff_t)(first + row) * y->stride[0] + col;
        NO_VECTORS for (int32_t i = 0; i < width; i++) {
          const uint32_t sum = (uint32_t)sums[row * INTEGER_PANEL + i];
          to[i] = (int32_t)(shift ? sum - (uint32_t)shift[col + i] * (uint32_t)totals[row] : sum);
        }
      }
    }
  }
  return OK;
}

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
#define SUM_OF_PRODUCTS(type)                                                           \
  do {                                                                                  \
    type sum = 0;                                                                       \
    NO_VECTORS for (int32_t t = 0; t < k; t++, p += a->stride[2], q += b->stride[1])               \
      sum += ((const type *)a->data)[p] * ((const type *)b->data)[q];                   \
    ((type *)y->data)[i * y->stride[0] + j * y->stride[1] + n * y->stride[2]] = sum;    \
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
