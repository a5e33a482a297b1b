/* Products in vectors of 16 columns, on AVX-512. A tile has some rows beside two panels that lie behind each other, the second of which
 * may be narrow or missing; one of its vectors begins in the first panel and ends in the second. Every output is the same chain as in
 * the tiles of other builds. */
#include "kernels.gen.h"
#include "simd.h"

#if VL == 16
enum { PAIR_ROWS = 8, PAIR_GRAINS = 2 * PANEL / GRAIN };

INLINE vf half_vector(const float *w) { return _mm512_zextps256_ps512(mload(w)); }

/* Vector v of a row of a pair that is `grains` times GRAIN columns wide; what is behind the last column is zero. v and grains are
 * compile-time constants. */
INLINE vf pair_vector(const int v, const int grains, const float *first, const float *second) {
  if (v == 0) return grains == 1 ? half_vector(first) : vload(first);
  if (v == 2) return grains == 5 ? half_vector(second + GRAIN) : vload(second + GRAIN);
  const vf begin = half_vector(first + 2 * GRAIN);
  return grains == 3 ? begin : (vf)_mm512_insertf64x4((__m512d)begin, (__m256d)mload(second), 1);
}

/* rows x (grains * GRAIN) outputs, of which `cols` exist; y and bias begin at the first column. rows and grains are compile-time
 * constants at every call. */
INLINE void pair_tile(const int rows, const int grains, const float *const *x, const Terms *t, const float *first, const float *second,
                      float *const *y, const float *bias, int cols) {
  const int vecs = (grains + 1) / 2, width = grains < 3 ? grains * GRAIN : PANEL, second_width = (grains - 3) * GRAIN;
  vf acc[PAIR_ROWS * 3], weight[3];
  UNROLL for (int i = 0; i < rows * vecs; i++) acc[i] = vset(0.0f);
  for (int32_t a = 0; a < t->outer; a++)
    for (int32_t b = 0; b < t->inner; b++) {
      const ptrdiff_t at = a * t->outer_stride + b * t->inner_stride;
      const float *in[PAIR_ROWS];
      UNROLL for (int r = 0; r < rows; r++) in[r] = x[r] + at;
      for (ptrdiff_t i = 0, run = t->run; i < run; i++, first += width, second += second_width) {
        UNROLL for (int v = 0; v < vecs; v++) weight[v] = pair_vector(v, grains, first, second);
        UNROLL for (int r = 0; r < rows; r++) {
          const vf input = vset(in[r][i]);
          UNROLL for (int v = 0; v < vecs; v++) acc[r * vecs + v] = vfma(weight[v], input, acc[r * vecs + v]);
        }
      }
    }
  if (bias) UNROLL for (int v = 0; v < vecs; v++) {
      const vf added = vload_upto(bias + v * VL, cols - v * VL);
      UNROLL for (int r = 0; r < rows; r++) acc[r * vecs + v] = acc[r * vecs + v] + added;
    }
  if (cols >= grains * GRAIN) {
    UNROLL for (int r = 0; r < rows; r++) {
      UNROLL for (int v = 0; v < grains / 2; v++) vstore(y[r] + v * VL, acc[r * vecs + v]);
      if (grains % 2) mstore(y[r] + (vecs - 1) * VL, _mm512_castps512_ps256(acc[r * vecs + vecs - 1]));
    }
    return;
  }
  UNROLL for (int r = 0; r < rows; r++)
    UNROLL for (int v = 0; v < vecs; v++) vstore_upto(y[r] + v * VL, acc[r * vecs + v], cols - v * VL);
}

typedef struct {
  const Positions *p;
  const Cursor *at;
  const Terms *terms;
  const float *first, *second, *bias; /* bias: of the first column, or NULL */
  int32_t col, cols;                  /* where the pair begins, and how many columns are left from there on */
} PairColumns;

/* The next positions, at most `rows` */
INLINE void pair_rows(const int rows, const int grains, const PairColumns *c, Cursor *at) {
  const float *x[PAIR_ROWS];
  float *y[PAIR_ROWS];
  take(c->p, at, rows, x, y);
  UNROLL for (int r = 0; r < rows; r++) y[r] += c->col;
  pair_tile(rows, grains, x, c->terms, c->first, c->second, y, c->bias, c->cols);
}

/* Seven rows take as long as eight, three as long as four: positions behind the last one are that one again. */
INLINE void pair_columns(const int grains, const PairColumns *c) {
  Cursor at = *c->at;
  while (at.left >= PAIR_ROWS - 1) pair_rows(PAIR_ROWS, grains, c, &at);
  while (at.left >= 3) pair_rows(4, grains, c, &at);
  while (at.left) pair_rows(2, grains, c, &at);
}
NOINLINE void one_grain(const PairColumns *c) { pair_columns(1, c); }
NOINLINE void two_grains(const PairColumns *c) { pair_columns(2, c); }
NOINLINE void three_grains(const PairColumns *c) { pair_columns(3, c); }
NOINLINE void four_grains(const PairColumns *c) { pair_columns(4, c); }
NOINLINE void five_grains(const PairColumns *c) { pair_columns(5, c); }
NOINLINE void six_grains(const PairColumns *c) { pair_columns(6, c); }

/* Positions against the columns from `col`, a multiple of PANEL, to n */
static void positions_times_pairs(const Positions *p, const Cursor *at, const Terms *t, const float *packed, ptrdiff_t k,
                                  const float *bias, int32_t col, int32_t n) {
  for (; col < n; col += 2 * PANEL) {
    const float *first = packed + col * k;
    const PairColumns c = {p, at, t, first, first + PANEL * k, bias ? bias + col : NULL, col, n - col};
    switch (n - col > 5 * GRAIN ? PAIR_GRAINS : (n - col - 1) / GRAIN + 1) {
    case 1: one_grain(&c); break;
    case 2: two_grains(&c); break;
    case 3: three_grains(&c); break;
    case 4: four_grains(&c); break;
    case 5: five_grains(&c); break;
    default: six_grains(&c); break;
    }
  }
}

static void rows_times_pairs(const float *x, ptrdiff_t x_stride, const float *w, int m, int k, Output out) {
  const Positions p = {x, out.y, x_stride, 0, 0, out.stride, 0, 0, m, 1, m};
  const Cursor at = {m, 0, 0, x, x, x, out.y, out.y, out.y};
  positions_times_pairs(&p, &at, &(Terms){1, 1, k, 0, 0}, w, k, out.bias, 0, out.cols);
}
#endif
