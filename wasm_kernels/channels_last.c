/* Convolutions and pools over channels that lie behind each other: x[n, h, w, c], y[n, oh, ow, oc]. Vectors run across channels,
 * so strides, dilations and short lines cost nothing. Zeros around x are part of x; pools have pads of their own.
 *
 * Every output is one chain of multiply-adds over the taps, row by row, and over the channels of a tap, that starts from zero;
 * the bias comes last. */
#include "kernels.gen.h"
#include "simd.h"

/* --- products -------------------------------------------------------------------------------------------------------- */

#if VL != 16 /* for AVX-512 see panel_pairs.c */
/* Positions that a tile has beside `vecs` vectors of a panel: enough sums to hide the latency of a multiply-add, as few as fit
 * the registers. */
#if ML == 8
#define CONV_VECS PANEL_VECS
#define CONV_ROWS(vecs) ((vecs) == 1 ? 8 : (vecs) == 2 ? 6 : 3)
#elif ML == 4 && defined(__aarch64__)
#define CONV_VECS (PANEL_VECS / 2)
#define CONV_ROWS(vecs) ((vecs) == 2 ? 8 : 6)
#elif ML == 4
#define CONV_VECS (PANEL_VECS / 2)
#define CONV_ROWS(vecs) ((vecs) == 2 ? 4 : 3)
#else
#define CONV_VECS 4
#define CONV_ROWS(vecs) 2
#endif
enum { MOST_ROWS = 8 };

/* The sums of a tile at the right edge: sums[rows, cols], of which n exist */
NOINLINE void store_rows(const int rows, const int cols, const float *sums, float *const *y, const float *bias, int n) {
  for (int r = 0; r < rows; r++, sums += cols)
    for (int i = 0; i < n; i++) y[r][i] = bias ? sums[i] + bias[i] : sums[i];
}

/* rows x (vecs * ML) outputs; w is the tile's first column in rows of `width` floats, y and bias begin there. rows and vecs are
 * compile-time constants at every call. */
INLINE void conv_tile(const int rows, const int vecs, const float *const *x, const Terms *t, const float *w, ptrdiff_t width,
                      float *const *y, const float *bias, int cols) {
  mf acc[24], weight[24];
  UNROLL for (int i = 0; i < rows * vecs; i++) acc[i] = mset(0.0f);
  for (int32_t a = 0; a < t->outer; a++)
    for (int32_t b = 0; b < t->inner; b++) {
      const ptrdiff_t at = a * t->outer_stride + b * t->inner_stride;
      const float *in[MOST_ROWS];
      UNROLL for (int r = 0; r < rows; r++) in[r] = x[r] + at;
      for (ptrdiff_t i = 0, run = t->run; i < run; i++, w += width) {
        UNROLL for (int v = 0; v < vecs; v++) weight[v] = mload(w + v * ML);
        UNROLL for (int r = 0; r < rows; r++) {
          const mf input = mset(in[r][i]);
          UNROLL for (int v = 0; v < vecs; v++) acc[r * vecs + v] = mfma(weight[v], input, acc[r * vecs + v]);
        }
      }
    }
  if (cols >= vecs * ML) {
    if (bias) UNROLL for (int v = 0; v < vecs; v++) {
        const mf added = mload(bias + v * ML);
        UNROLL for (int r = 0; r < rows; r++) acc[r * vecs + v] = acc[r * vecs + v] + added;
      }
    UNROLL for (int r = 0; r < rows; r++)
      UNROLL for (int v = 0; v < vecs; v++) mstore(y[r] + v * ML, acc[r * vecs + v]);
    return;
  }
  float sums[24 * ML];
  UNROLL for (int i = 0; i < rows * vecs; i++) mstore(sums + i * ML, acc[i]);
  store_rows(rows, vecs * ML, sums, y, bias, cols);
}

/* Positions against `vecs` vectors of a panel from column `col` on */
INLINE void conv_columns(const int vecs, const Positions *p, Cursor at, const Terms *t, const float *w, int width,
                         const float *bias, int col, int cols) {
  const int rows = CONV_ROWS(vecs);
  const float *x[MOST_ROWS], *added = bias ? bias + col : NULL;
  float *y[MOST_ROWS];
#if ML == 8
  while (at.left > rows / 2) {
#else
  while (at.left) {
#endif
    take(p, &at, rows, x, y);
    UNROLL for (int r = 0; r < rows; r++) y[r] += col;
    conv_tile(rows, vecs, x, t, w, width, y, added, cols - col);
  }
#if ML == 8
  if (at.left) {
    take(p, &at, rows / 2, x, y);
    UNROLL for (int r = 0; r < rows / 2; r++) y[r] += col;
    conv_tile(rows / 2, vecs, x, t, w, width, y, added, cols - col);
  }
#endif
}

NOINLINE void conv_whole(const Positions *p, const Cursor *at, const Terms *t, const float *w, int width, const float *bias,
                         int col, int cols) {
  conv_columns(CONV_VECS, p, *at, t, w, width, bias, col, cols);
}
NOINLINE void conv_grain(const Positions *p, const Cursor *at, const Terms *t, const float *w, int width, const float *bias,
                         int col, int cols) {
  conv_columns(GRAIN_VECS, p, *at, t, w, width, bias, col, cols);
}
#if ML == 8
NOINLINE void conv_two_grains(const Positions *p, const Cursor *at, const Terms *t, const float *w, int width,
                              const float *bias, int col, int cols) {
  conv_columns(2 * GRAIN_VECS, p, *at, t, w, width, bias, col, cols);
}
#endif
#endif

/* Floats of x that are gone over for all columns before the next ones are: half of the second cache at most */
enum { BLOCK_FLOATS = 1 << 15 };

/* How many positions a block has: a multiple of the rows of any tile */
static int32_t positions_in_block(const Positions *p) {
  const ptrdiff_t apart = p->x_step > 1 ? p->x_step : 1;
  const int32_t fit = (int32_t)(BLOCK_FLOATS / apart) / 24 * 24;
  return fit > 96 ? fit : 96;
}

/* The positions from `first` on, and the filters from `col`, a multiple of PANEL, to n */
static void conv_positions(const Positions *p, int32_t first, int32_t count, const Terms *t, const float *packed,
                           const float *bias, int32_t col, int32_t n) {
  const ptrdiff_t k = (ptrdiff_t)t->outer * t->inner * t->run;
  const Cursor at = cursor_at(p, first, count);
#if VL == 16
  positions_times_pairs(p, &at, t, packed, k, bias, col, n);
#else
  while (col < n) {
    const int width = panel_width(n - col);
    const float *w = packed + col * k;
    if (width == PANEL) {
      for (int i = 0; i < PANEL; i += CONV_VECS * ML, col += CONV_VECS * ML)
        conv_whole(p, &at, t, w + i, PANEL, bias, col, n);
      continue;
    }
#if ML == 8
    if (width == 2 * GRAIN) conv_two_grains(p, &at, t, w, width, bias, col, n), col += width;
    else
#endif
      for (int i = 0; i < width; i += GRAIN, col += GRAIN) conv_grain(p, &at, t, w + i, width, bias, col, n);
  }
#endif
}

/* --- a filter for each channel --------------------------------------------------------------------------------------- */

/* Positions that are filtered at a time, so that a weight is loaded once for all of them */
#if VL == 4 && !defined(__aarch64__)
enum { FILTERED = 4 };
#else
enum { FILTERED = 8 };
#endif

/* `rest` channels from the first one of x, y, w and bias on: a vector, or fewer */
INLINE void filter_channels(const float *const *x, float *const *y, const Terms *t, const float *w, ptrdiff_t channels,
                            const float *bias, ptrdiff_t from, const int rest) {
  vf acc[FILTERED];
  UNROLL for (int r = 0; r < FILTERED; r++) acc[r] = vset(0.0f);
  for (int32_t a = 0; a < t->outer; a++) {
    ptrdiff_t at = a * t->outer_stride + from;
    for (int32_t b = 0; b < t->inner; b++, at += t->inner_stride, w += channels) {
      const vf weight = vload_upto(w + from, rest);
      UNROLL for (int r = 0; r < FILTERED; r++) acc[r] = vfma(weight, vload_upto(x[r] + at, rest), acc[r]);
    }
  }
  const vf added = bias ? vload_upto(bias + from, rest) : vset(0.0f);
  UNROLL for (int r = 0; r < FILTERED; r++) vstore_upto(y[r] + from, bias ? acc[r] + added : acc[r], rest);
}

/* w[taps, channels]; a run of the terms is one tap */
static void filter_positions(const Positions *p, int32_t first, int32_t count, const Terms *t, const float *w,
                             const float *bias, int32_t channels) {
  Cursor at = cursor_at(p, first, count);
  while (at.left) {
    const float *x[FILTERED];
    float *y[FILTERED];
    take(p, &at, FILTERED, x, y);
    int32_t c = 0;
    for (; c + VL <= channels; c += VL) filter_channels(x, y, t, w, channels, bias, c, VL);
    if (c < channels) filter_channels(x, y, t, w, channels, bias, c, channels - c);
  }
}

/* --- pools ----------------------------------------------------------------------------------------------------------- */

/* The sums or the maxima of a window: `count` vectors of channels, a compile-time constant, or `rest` channels of one */
INLINE void pool_channels(const float *x, float *y, const Terms *t, const int is_max, vf by, const int count, const int rest) {
  vf acc[2];
  UNROLL for (int i = 0; i < count; i++) acc[i] = vset(is_max ? -__builtin_inff() : 0.0f);
  for (int32_t a = 0; a < t->outer; a++, x += t->outer_stride) {
    const float *at = x;
    for (int32_t b = 0; b < t->inner; b++, at += t->inner_stride)
      UNROLL for (int i = 0; i < count; i++) {
        const vf value = vload_upto(at + i * VL, rest);
        acc[i] = is_max ? vmax(value, acc[i]) : acc[i] + value;
      }
  }
  UNROLL for (int i = 0; i < count; i++) vstore_upto(y + i * VL, is_max ? acc[i] : acc[i] / by, rest);
}

/* Maxima, or sums divided by `divisor` */
INLINE void pool_window(const float *x, float *y, const Terms *t, const int is_max, float divisor, int32_t channels) {
  const vf by = vset(divisor);
  int32_t c = 0;
  for (; c + 2 * VL <= channels; c += 2 * VL) pool_channels(x + c, y + c, t, is_max, by, 2, VL);
  if (c + VL <= channels) pool_channels(x + c, y + c, t, is_max, by, 1, VL), c += VL;
  if (c < channels) pool_channels(x + c, y + c, t, is_max, by, 1, channels - c);
}
