/* Products by vectors of 16 columns, on AVX-512. A pair is two panels that lie behind each other, of which the second may be narrow or
 * missing: three vectors, the middle one of both panels. Every output is the same chain as in the tiles of other builds. */
enum { PAIR_ROWS = 8, PAIR_GRAINS = 2 * PANEL / GRAIN };

/* Where the weights of a tile are in both panels, and how far apart terms are. The tile has `grains` times GRAIN columns, and begins
 * `skipped` times GRAIN columns, none or one, behind the beginning of the first panel. Both are compile-time constants here and in what
 * follows. */
typedef struct {
  const float *first, *second;
  ptrdiff_t width, second_width;
} Pair;

/* col: of the first one, of n in all */
INLINE Pair pair_at(const int grains, const int skipped, const float *packed, ptrdiff_t k, int32_t col, int32_t n) {
  const int32_t panel = col - skipped * GRAIN;
  const float *first = packed + panel * k;
  const int is_one = grains + skipped < 3;
  return (Pair){first, first + PANEL * k, is_one ? (grains + skipped) * GRAIN : PANEL,
                is_one ? 0 : panel_width(n - panel - PANEL)};
}
INLINE void next_term(Pair *p) { p->first += p->width, p->second += p->second_width; }

INLINE vf half_vector(const float *w) { return _mm512_zextps256_ps512(mload(w)); }

/* Vector v of a term; what is behind the last column is zero */
INLINE vf pair_vector(const int v, const int grains, const int skipped, const Pair *p) {
  if (skipped) return v == 0 ? vload(p->first + GRAIN) : grains == 3 ? half_vector(p->second) : vload(p->second);
  if (v == 0) return grains == 1 ? half_vector(p->first) : vload(p->first);
  if (v == 2) return grains == 5 ? half_vector(p->second + GRAIN) : vload(p->second + GRAIN);
  const vf begin = half_vector(p->first + 2 * GRAIN);
  return grains == 3 ? begin : (vf)_mm512_insertf64x4((__m512d)begin, (__m256d)mload(p->second), 1);
}

/* The last step of any tile: acc[rows, vectors] to its place, of which `cols` columns exist */
INLINE void finish_pair(const int rows, const int grains, vf *acc, float *const *y, const float *bias, int cols) {
  const int vecs = (grains + 1) / 2;
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

/* --- one row --------------------------------------------------------------------------------------------------------- */

/* Against a pair of `grains`, and one behind it of `more`: six sums, so that none waits for the one before. Both are compile-time
 * constants. */
INLINE void row_times_grains(const int grains, const int more, const float *x, const float *w, int k, const Output *all, int col) {
  enum { BEHIND = 2 * PANEL };
  const int vecs = (grains + 1) / 2, more_vecs = (more + 1) / 2;
  vf acc[6];
  UNROLL for (int i = 0; i < vecs + more_vecs; i++) acc[i] = vset(0.0f);
  Pair near = pair_at(grains, 0, w, k, col, all->cols), far = more ? pair_at(more, 0, w, k, col + BEHIND, all->cols) : near;
  for (const float *end = x + k; x < end; x++, next_term(&near), next_term(&far)) {
    const vf input = vset(*x);
    UNROLL for (int v = 0; v < vecs; v++) acc[v] = vfma(pair_vector(v, grains, 0, &near), input, acc[v]);
    UNROLL for (int v = 0; v < more_vecs; v++) acc[vecs + v] = vfma(pair_vector(v, more, 0, &far), input, acc[vecs + v]);
  }
  float *const y = all->y + col, *const behind = more ? y + BEHIND : y;
  const float *bias = all->bias ? all->bias + col : NULL;
  finish_pair(1, grains, acc, &y, bias, all->cols - col);
  if (more) finish_pair(1, more, acc + vecs, &behind, bias ? bias + BEHIND : NULL, all->cols - col - BEHIND);
}
NOINLINE void row_times_four_panels(const float *x, const float *w, int k, const Output *all, int col) {
  row_times_grains(PAIR_GRAINS, PAIR_GRAINS, x, w, k, all, col);
}
/* The columns from `col` on, fewer than four panels */
NOINLINE void row_times_last_panels(const float *x, const float *w, int k, const Output *all, int col) {
#define LAST(grains, more) \
  case grains + more: row_times_grains(grains, more, x, w, k, all, col); break;
  switch ((all->cols - col + GRAIN - 1) / GRAIN) {
    LAST(1, 0) LAST(2, 0) LAST(3, 0) LAST(4, 0) LAST(5, 0) LAST(6, 0) LAST(6, 1) LAST(6, 2) LAST(6, 3) LAST(6, 4) LAST(6, 5)
  default: row_times_four_panels(x, w, k, all, col); break;
  }
}

/* One row of X against all of W, from the first panel to the last or the other way round: a loop that takes turns finds the
 * panels that it read last still in the nearest cache. */
NOINLINE void row_times_panels(const float *x, const float *w, int k, const Output *out, int backwards) {
  enum { FOUR = 4 * PANEL };
  const int fours = out->cols / FOUR, rest = fours * FOUR;
  if (backwards && rest < out->cols) row_times_last_panels(x, w, k, out, rest);
  for (int i = 0; i < fours; i++) row_times_four_panels(x, w, k, out, (backwards ? fours - 1 - i : i) * FOUR);
  if (!backwards && rest < out->cols) row_times_last_panels(x, w, k, out, rest);
}

/* --- many rows, or positions ----------------------------------------------------------------------------------------- */

typedef struct {
  const Positions *p;
  const Cursor *at;
  const Terms *terms;
  const float *packed, *bias;
  ptrdiff_t k;
  int32_t col, n; /* the first column of the pair, and how many there are in all */
} PairColumns;

/* The next positions, at most `rows`, a compile-time constant */
INLINE void pair_tile(const int rows, const int grains, const int skipped, const PairColumns *c, Cursor *at) {
  const int vecs = (grains + 1) / 2;
  const Terms *t = c->terms;
  const float *x[PAIR_ROWS];
  float *y[PAIR_ROWS];
  vf acc[PAIR_ROWS * 3], weight[3];
  take(c->p, at, rows, x, y);
  UNROLL for (int i = 0; i < rows * vecs; i++) acc[i] = vset(0.0f);
  Pair pair = pair_at(grains, skipped, c->packed, c->k, c->col, c->n);
  for (int32_t a = 0; a < t->outer; a++)
    for (int32_t b = 0; b < t->inner; b++) {
      const ptrdiff_t from = a * t->outer_stride + b * t->inner_stride;
      const float *in[PAIR_ROWS];
      UNROLL for (int r = 0; r < rows; r++) in[r] = x[r] + from;
      for (ptrdiff_t i = 0, run = t->run; i < run; i++, next_term(&pair)) {
        UNROLL for (int v = 0; v < vecs; v++) weight[v] = pair_vector(v, grains, skipped, &pair);
        UNROLL for (int r = 0; r < rows; r++) {
          const vf input = vset(in[r][i]);
          UNROLL for (int v = 0; v < vecs; v++) acc[r * vecs + v] = vfma(weight[v], input, acc[r * vecs + v]);
        }
      }
    }
  UNROLL for (int r = 0; r < rows; r++) y[r] += c->col;
  finish_pair(rows, grains, acc, y, c->bias ? c->bias + c->col : NULL, c->n - c->col);
}

/* Seven rows take as long as eight, three as long as four: positions behind the last one are that one again. */
INLINE void pair_tiles(const int grains, const int skipped, const PairColumns *c) {
  Cursor at = *c->at;
  while (at.left >= PAIR_ROWS - 1) pair_tile(PAIR_ROWS, grains, skipped, c, &at);
  while (at.left >= 3) pair_tile(4, grains, skipped, c, &at);
  while (at.left) pair_tile(2, grains, skipped, c, &at);
}
NOINLINE void tiles_of_1_grain(const PairColumns *c) { pair_tiles(1, 0, c); }
NOINLINE void tiles_of_2_grains(const PairColumns *c) { pair_tiles(2, 0, c); }
NOINLINE void tiles_of_3_grains(const PairColumns *c) { pair_tiles(3, 0, c); }
NOINLINE void tiles_of_4_grains(const PairColumns *c) { pair_tiles(4, 0, c); }
NOINLINE void tiles_of_5_grains(const PairColumns *c) { pair_tiles(5, 0, c); }
NOINLINE void tiles_of_6_grains(const PairColumns *c) { pair_tiles(6, 0, c); }
NOINLINE void tiles_of_3_behind_1(const PairColumns *c) { pair_tiles(3, 1, c); }
NOINLINE void tiles_of_4_behind_1(const PairColumns *c) { pair_tiles(4, 1, c); }

/* Positions against the columns from `col`, a multiple of PANEL, to n; k terms each. Eight grains are better four and four than six and
 * two: a tile of one vector has to load as much as it multiplies. */
static void positions_times_pairs(const Positions *p, const Cursor *at, const Terms *t, const float *packed, ptrdiff_t k,
                                  const float *bias, int32_t col, int32_t n) {
  PairColumns c = {p, at, t, packed, bias, k, col, n};
  while (c.col < n) {
    switch ((n - c.col + GRAIN - 1) / GRAIN) {
    case 1: tiles_of_1_grain(&c); break;
    case 2: tiles_of_2_grains(&c); break;
    case 3: tiles_of_3_grains(&c); break;
    case 4: tiles_of_4_grains(&c); break;
    case 5: tiles_of_5_grains(&c); break;
    case 7:
      tiles_of_4_grains(&c), c.col += 4 * GRAIN;
      tiles_of_3_behind_1(&c);
      break;
    case 8:
      tiles_of_4_grains(&c), c.col += 4 * GRAIN;
      tiles_of_4_behind_1(&c);
      break;
    default: tiles_of_6_grains(&c); break;
    }
    c.col += 2 * PANEL;
  }
}

/* m rows of Y = X W^T + biases, k terms each */
static void matmul(const float *x, ptrdiff_t x_stride, const float *w, int m, int k, Output out) {
  const Positions p = {x, out.y, x_stride, 0, 0, out.stride, 0, 0, m, 1, m};
  const Cursor at = {m, 0, 0, x, x, x, out.y, out.y, out.y};
  positions_times_pairs(&p, &at, &(Terms){1, 1, k, 0, 0}, w, k, out.bias, 0, out.cols);
  if (out.row_bias)
    for (int r = 0; r < m; r++)
      for (int i = 0; i < out.cols; i++) out.y[r * out.stride + i] += out.row_bias[r];
}
