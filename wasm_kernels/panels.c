/* Products by vectors of at most GRAIN columns: on all builds but AVX-512, for which see panel_pairs.c. */
/* Tile shapes: two panels for one row of X (four where all of W is near), otherwise TILE_ROWS rows by TILE_VECS vectors, or
 * WIDE_ROWS rows by two panels that are near: of at most NEAR_FLOATS, most of the nearest cache. Accumulators must hide the
 * latency of a multiply-add and fit the register file together with the operands: with AVX2 nine just hide it and twelve just
 * fit. Wasm engines on x86 have 16 registers too, but load operands before they use them. */
#if ML == 8
enum { TILE_ROWS = 3, TILE_VECS = PANEL_VECS, WIDE_ROWS = 2 };
#elif ML == 4 && defined(__aarch64__)
enum { TILE_ROWS = 4, TILE_VECS = PANEL_VECS, WIDE_ROWS = 1 };
#elif ML == 4
enum { TILE_ROWS = 3, TILE_VECS = PANEL_VECS / 2, WIDE_ROWS = 1 };
#else
enum { TILE_ROWS = 2, TILE_VECS = 4, WIDE_ROWS = 1 };
#endif

#if ML > 1
/* Rows of X against a panel of `first` vectors and the one behind it, of `second` vectors: more sums at a time than one panel
 * has, so that no multiply-add waits for the one before. rows, first and second are compile-time constants at every call. */
INLINE void wide_tile(const int rows, const int first, const int second, const float *x, ptrdiff_t x_stride, const float *w,
                      int k, Output out) {
  const int vecs = first + second;
  mf acc[24], input[2];
  UNROLL for (int i = 0; i < rows * vecs; i++) acc[i] = mset(0.0f);
  const float *end = x + k, *w2 = w + (ptrdiff_t)k * first * ML;
  while (x < end) {
    UNROLL for (int r = 0; r < rows; r++) input[r] = mset(x[r * x_stride]);
    UNROLL for (int v = 0; v < first; v++) {
      const mf weight = mload(w + v * ML);
      UNROLL for (int r = 0; r < rows; r++) acc[r * vecs + v] = mfma(weight, input[r], acc[r * vecs + v]);
    }
    UNROLL for (int v = 0; v < second; v++) {
      const mf weight = mload(w2 + v * ML);
      UNROLL for (int r = 0; r < rows; r++) acc[r * vecs + first + v] = mfma(weight, input[r], acc[r * vecs + first + v]);
    }
    x++, w += first * ML, w2 += second * ML;
  }
  finish_tile(rows, vecs, acc, out);
}

/* The same against as many columns as are left, at most two panels */
INLINE void wide_tile_upto(const int rows, const float *x, ptrdiff_t x_stride, const float *w, int k, Output out) {
  enum { ONE = GRAIN_VECS, TWO = 2 * GRAIN_VECS, WHOLE = PANEL_VECS };
  switch ((out.cols + GRAIN - 1) / GRAIN) {
  case 1: wide_tile(rows, ONE, 0, x, x_stride, w, k, out); break;
  case 2: wide_tile(rows, TWO, 0, x, x_stride, w, k, out); break;
  case 3: wide_tile(rows, WHOLE, 0, x, x_stride, w, k, out); break;
  case 4: wide_tile(rows, WHOLE, ONE, x, x_stride, w, k, out); break;
  case 5: wide_tile(rows, WHOLE, TWO, x, x_stride, w, k, out); break;
  default: wide_tile(rows, WHOLE, WHOLE, x, x_stride, w, k, out); break;
  }
}

/* One row against the last panels: the columns from `col` on. `all` is handed by address: a copy would have to wait until all
 * its fields are in the cache. */
NOINLINE void last_row_tile(const float *x, const float *w, int k, const Output *all, int col) {
  wide_tile_upto(1, x, 0, w, k, shifted(*all, 0, col));
}

#if ML == 8
/* One row against four panels: where weights are near, the loads of X and the loop itself count */
INLINE void four_panels_tile(const float *x, const float *w, int k, Output out) {
  enum { VECS = 4 * PANEL_VECS };
  mf acc[VECS];
  UNROLL for (int i = 0; i < VECS; i++) acc[i] = mset(0.0f);
  for (const float *end = x + k; x < end; x++, w += PANEL) {
    const mf input = mset(*x);
    UNROLL for (int i = 0; i < VECS; i++)
      acc[i] = mfma(mload(w + (ptrdiff_t)(i / PANEL_VECS) * k * PANEL + i % PANEL_VECS * ML), input, acc[i]);
  }
  finish_tile(1, VECS, acc, out);
}
#endif

/* One row against the columns of W from `from` on, so many panels at a time, which is a compile-time constant */
INLINE void row_by_panels(const int panels, const float *x, const float *w, int k, const Output *out, int from, int backwards) {
  const int step = panels * PANEL, steps = (out->cols - from) / step, last = from + steps * step;
  if (backwards && last < out->cols) last_row_tile(x, w + (ptrdiff_t)last * k, k, out, last);
  for (int i = 0; i < steps; i++) {
    const int col = from + (backwards ? steps - 1 - i : i) * step;
    wide_tile(1, PANEL_VECS, panels == 2 ? PANEL_VECS : 0, x, 0, w + (ptrdiff_t)col * k, k, shifted(*out, 0, col));
  }
  if (!backwards && last < out->cols) last_row_tile(x, w + (ptrdiff_t)last * k, k, out, last);
}
#endif

/* One row of X against all of W, from the first panel to the last or the other way round: a loop that takes turns finds the
 * panels that it read last still in the nearest cache. */
NOINLINE void row_times_panels(const float *x, const float *w, int k, const Output *out, int backwards) {
#if ML > 1
  int from = 0;
#if ML == 8
  for (; (int64_t)out->cols * k <= NEAR_FLOATS && from + 4 * PANEL <= out->cols; from += 4 * PANEL)
    four_panels_tile(x, w + (ptrdiff_t)from * k, k, shifted(*out, 0, from));
#endif
  if (row_panels == 2) row_by_panels(2, x, w, k, out, from, backwards);
  else row_by_panels(1, x, w, k, out, from, backwards);
#else /* a panel of scalars has more accumulators than any machine has registers */
  (void)backwards;
  for (int col = 0; col < out->cols;) {
    const int width = panel_width(out->cols - col);
    for (int i = 0; i < width; i += GRAIN, col += GRAIN) tile(1, GRAIN, x, 0, w + i, width, k, shifted(*out, 0, col));
    w += (ptrdiff_t)k * width;
  }
#endif
}

/* `rows` rows of X against one panel that is `width` wide */
INLINE void rows_times_panel(const int rows, const float *x, ptrdiff_t x_stride, const float *w, int width, int k, Output out) {
  int col = 0;
  for (; col + TILE_VECS * ML <= width; col += TILE_VECS * ML)
    tile(rows, TILE_VECS, x, x_stride, w + col, width, k, shifted(out, 0, col));
  for (; TILE_VECS * ML > GRAIN && col < width; col += GRAIN)
    tile(rows, GRAIN_VECS, x, x_stride, w + col, width, k, shifted(out, 0, col));
}

/* Rows of X, an even number or one that tiles divide, against one panel, which stays in L1 meanwhile. A function of its own:
 * engines that compile quickly first and well later take the better code at a call, not in the middle of one. */
NOINLINE void all_rows_times_panel(const float *x, ptrdiff_t x_stride, const float *w, int width, int m, int k, Output out) {
  int row = 0;
  for (; m - row >= TILE_ROWS; row += TILE_ROWS)
    rows_times_panel(TILE_ROWS, x + row * x_stride, x_stride, w, width, k, shifted(out, row, 0));
  for (; TILE_ROWS > 4 && m - row >= 4; row += 4)
    rows_times_panel(4, x + row * x_stride, x_stride, w, width, k, shifted(out, row, 0));
  for (; TILE_ROWS > 2 && m - row >= 2; row += 2)
    rows_times_panel(2, x + row * x_stride, x_stride, w, width, k, shifted(out, row, 0));
}

#if ML > 1
/* All rows of X against two panels */
NOINLINE void all_rows_times_two_panels(const float *x, ptrdiff_t x_stride, const float *w, int m, int k, Output out) {
  int row = 0;
  for (; m - row >= WIDE_ROWS; row += WIDE_ROWS)
    wide_tile_upto(WIDE_ROWS, x + row * x_stride, x_stride, w, k, shifted(out, row, 0));
  for (; row < m; row++) wide_tile_upto(1, x + row * x_stride, 0, w, k, shifted(out, row, 0));
}
#endif

/* m rows of Y = X W^T + biases, k terms each */
static void matmul(const float *x, ptrdiff_t x_stride, const float *w, int m, int k, Output out) {
  const int n = out.cols;
  int rows = m - m % TILE_ROWS % 2, col = rows ? 0 : n; /* a row that would be left over has better tiles of its own */
#if ML > 1
  if (WIDE_ROWS > 1 && m > 1 && n > PANEL && k <= NEAR_FLOATS / (2 * PANEL)) {
    rows = m;
    for (; col < n; col += 2 * PANEL)
      all_rows_times_two_panels(x, x_stride, w + (ptrdiff_t)col * k, m, k, shifted(out, 0, col));
  }
#endif
  for (; col < n; col += PANEL)
    all_rows_times_panel(x, x_stride, w + (ptrdiff_t)col * k, panel_width(n - col), rows, k, shifted(out, 0, col));
  if (rows < m) {
    const Output last = shifted(out, rows, 0);
    row_times_panels(x + rows * x_stride, w, k, &last, 1);
  }
}
