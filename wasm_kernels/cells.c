/* What a recurrent cell does after its matrix products. Every value is computed operation by operation, as the plain ONNX
 * ops would: a fused cell and the same cell as an expression give the same bits.
 *
 * xw: projections of the input, hw: of the previous state, both [rows, gates * hidden] with their biases inside.
 * params: clip (infinity for none), then alpha and beta of each activation in the order of `acts`.
 * acts: activation ids, a byte each: f, then g, then h in ONNX terms. */
#include "kernels.gen.h"
#include "vmath.h"

#define CHUNK 256 /* elements of a row handled at a time, one function after the other: few constants live at once */
#define SMALL 8   /* up to this many units it is quicker to keep a unit in registers */
#define SIGMOID_TANH (ACT_SIGMOID | ACT_TANH << 8)
#define SIGMOID_TANH_TANH (ACT_SIGMOID | ACT_TANH << 8 | ACT_TANH << 16)

/* activation number `which` of a cell, in place, after clipping */
static void cell_activate(float *v, int n, const float *params, int32_t acts, int which) {
  if (params[0] < __builtin_inff()) wr_clip(v, v, n, -params[0], params[0]);
  wr_activate(v, v, n, acts >> 8 * which & 255, params[1 + 2 * which], params[2 + 2 * which]);
}

/* The statement for whole vectors, then for what is left; `rest` is how many elements a load or store may touch */
#define EACH_VECTOR(j, n, ...)                                     \
  do {                                                             \
    int j = 0;                                                     \
    for (const int rest = VL; j + VL <= (n); j += VL) __VA_ARGS__; \
    for (int rest = (n) - j; j < (n); j += VL) __VA_ARGS__;        \
  } while (0)

/* The same for `count` vectors from j on: TOGETHER of them, then one at a time */
#define EACH_VECTORS(j, n, ...)                                                                          \
  do {                                                                                                   \
    enum { SPAN = TOGETHER * VL };                                                                       \
    int j = 0;                                                                                           \
    for (const int count = TOGETHER, rest = VL; TOGETHER > 1 && j + SPAN <= (n); j += SPAN) __VA_ARGS__; \
    for (const int count = 1, rest = VL; j + VL <= (n); j += VL) __VA_ARGS__;                            \
    for (int count = 1, rest = (n) - j; j < (n); j += VL) __VA_ARGS__;                                   \
  } while (0)
#define AT(p) vload_upto((p) + j + i * VL, rest)

INLINE void sum_into(float *out, const float *a, const float *b, int n) {
  EACH_VECTOR(i, n, vstore_upto(out + i, vload_upto(a + i, rest) + vload_upto(b + i, rest), rest));
}

INLINE void add_product(float *out, const float *a, const float *b, int n) {
  EACH_VECTOR(i, n, vstore_upto(out + i, vload_upto(out + i, rest) + vload_upto(a + i, rest) * vload_upto(b + i, rest), rest));
}

/* out = sigmoid(a + b) of `count` vectors */
INLINE void sigmoid_of_sums(const int count, float *out, const float *a, const float *b) {
  vf v[TOGETHER];
  FOR_EACH v[i] = vload(a + i * VL) + vload(b + i * VL);
  vsigmoid_each(count, v);
  FOR_EACH vstore(out + i * VL, v[i]);
}

/* out[gate][units] = sigmoid(a + b) of `gates` gates, which lie `hidden` floats apart in a and b: of whole rows in one go, and
 * the last gate of a GRU first, since the next state waits for it */
NOINLINE void sigmoid_gates(float *out, const float *a, const float *b, int gates, int hidden, int units) {
  const int at_once = units == hidden ? gates : 1, n = at_once * units;
  for (int gate = gates - at_once; gate >= 0; gate -= at_once) {
    const float *x = a + (ptrdiff_t)gate * hidden, *y = b + (ptrdiff_t)gate * hidden;
    float *to = out + gate * units;
    int end = n;
    for (; TOGETHER > 1 && end >= TOGETHER * VL; end -= TOGETHER * VL)
      sigmoid_of_sums(TOGETHER, to + end - TOGETHER * VL, x + end - TOGETHER * VL, y + end - TOGETHER * VL);
    for (; end > 0 && n >= VL; end -= VL) {
      const int at = end < VL ? 0 : end - VL; /* the first vector may overlap the second */
      sigmoid_of_sums(1, to + at, x + at, y + at);
    }
    if (n < VL) vstore_upto(to, vsigmoid(vload_upto(x, n) + vload_upto(y, n)), n);
  }
}

void wr_rnn_cell(const float *xw, const float *hw, float *y, int32_t rows, int32_t hidden, int32_t acts, const float *params) {
  for (int r = 0; r < rows; r++, xw += hidden, hw += hidden, y += hidden)
    for (int i = 0; i < hidden; i += CHUNK) {
      int n = hidden - i < CHUNK ? hidden - i : CHUNK;
      sum_into(y + i, xw + i, hw + i, n);
      cell_activate(y + i, n, params, acts, 0);
    }
}

/* h' = (1 - z) n + z h */
INLINE vf gru_mix(vf z, vf n, vf h) { return (vset(1.0f) - z) * n + z * h; }

/* up to VL of `count` units of a GRU with the default activations, the gates `gate` floats apart */
INLINE void gru_units(const float *xw, const float *hw, const float *h, float *y, ptrdiff_t gate, int count) {
  vf z = vsigmoid(vload_upto(xw, count) + vload_upto(hw, count));
  vf r = vsigmoid(vload_upto(xw + gate, count) + vload_upto(hw + gate, count));
  vf n = vtanh(vload_upto(xw + 2 * gate, count) + r * vload_upto(hw + 2 * gate, count));
  vstore_upto(y, gru_mix(z, n, vload_upto(h, count)), count);
}

/* one row with the default activations */
static void gru_usual(const float *xw, const float *hw, const float *h, float *y, int hidden) {
  const float *xn = xw + 2 * (ptrdiff_t)hidden, *hn = hw + 2 * (ptrdiff_t)hidden;
  if (hidden <= SMALL) {
    for (int i = 0; i < hidden; i += VL) gru_units(xw + i, hw + i, h + i, y + i, hidden, hidden - i);
    return;
  }
  for (int base = 0; base < hidden; base += CHUNK) {
    int units = hidden - base < CHUNK ? hidden - base : CHUNK;
    float gates[2 * CHUNK], *z = gates, *r = gates + units;
    sigmoid_gates(gates, xw + base, hw + base, 2, hidden, units);
    EACH_VECTORS(j, units, {
      vf n[TOGETHER];
      FOR_EACH n[i] = AT(xn + base) + AT(r) * AT(hn + base);
      vtanh_each(count, n);
      FOR_EACH vstore_upto(y + base + j + i * VL, gru_mix(AT(z), n[i], AT(h + base)), rest);
    });
  }
}

/* one row with any activations */
static void gru_any(const float *xw, const float *hw, const float *h, float *y, int hidden, int32_t acts, const float *params) {
  const float *xr = xw + hidden, *xn = xr + hidden, *hr = hw + hidden, *hn = hr + hidden;
  for (int i = 0; i < hidden; i += CHUNK) {
    int count = hidden - i < CHUNK ? hidden - i : CHUNK;
    float z[CHUNK], r[CHUNK], n[CHUNK];
    sum_into(z, xw + i, hw + i, count);
    cell_activate(z, count, params, acts, 0);
    sum_into(r, xr + i, hr + i, count);
    cell_activate(r, count, params, acts, 0);
    __builtin_memcpy(n, xn + i, (size_t)count * sizeof *n);
    add_product(n, r, hn + i, count);
    cell_activate(n, count, params, acts, 1);
    EACH_VECTOR(
        j, count,
        vstore_upto(y + i + j, gru_mix(vload_upto(z + j, rest), vload_upto(n + j, rest), vload_upto(h + i + j, rest)), rest));
  }
}

/* linear_before_reset = 1: n = g(xn + r * hn). Gates in ONNX order z, r, n. y may equal h. */
void wr_gru_cell(const float *xw, const float *hw, const float *h, float *y, int32_t rows, int32_t hidden, int32_t acts,
                 const float *params) {
  const int usual = acts == SIGMOID_TANH && !(params[0] < __builtin_inff());
  for (int row = 0; row < rows; row++, xw += 3 * (ptrdiff_t)hidden, hw += 3 * (ptrdiff_t)hidden, h += hidden, y += hidden) {
    if (usual) gru_usual(xw, hw, h, y, hidden);
    else gru_any(xw, hw, h, y, hidden, acts, params);
  }
}

/* linear_before_reset = 0, first half: z and r from hw[rows, 2 * hidden]; stores z and r * h, the vector that the
 * candidate's recurrent matrix is applied to. xw is [rows, 3 * hidden]. */
void wr_gru_reset(const float *xw, const float *hw, const float *h, float *z, float *rh, int32_t rows, int32_t hidden,
                  int32_t acts, const float *params) {
  for (int row = 0; row < rows;
       row++, xw += 3 * (ptrdiff_t)hidden, hw += 2 * (ptrdiff_t)hidden, h += hidden, z += hidden, rh += hidden) {
    sum_into(z, xw, hw, hidden);
    cell_activate(z, hidden, params, acts, 0);
    sum_into(rh, xw + hidden, hw + hidden, hidden);
    cell_activate(rh, hidden, params, acts, 0);
    for (int i = 0; i < hidden; i += VL)
      vstore_upto(rh + i, vload_upto(rh + i, hidden - i) * vload_upto(h + i, hidden - i), hidden - i);
  }
}

/* second half: n = g(xn + hn), hn[rows, hidden] the product with r * h. y may equal h. */
void wr_gru_update(const float *xw, const float *hn, const float *z, const float *h, float *y, int32_t rows, int32_t hidden,
                   int32_t acts, const float *params) {
  for (int row = 0; row < rows; row++, xw += 3 * (ptrdiff_t)hidden, hn += hidden, z += hidden, h += hidden, y += hidden)
    for (int i = 0; i < hidden; i += CHUNK) {
      int count = hidden - i < CHUNK ? hidden - i : CHUNK;
      float n[CHUNK];
      sum_into(n, xw + 2 * (ptrdiff_t)hidden + i, hn + i, count);
      cell_activate(n, count, params, acts, 1);
      for (int j = 0; j < count; j += VL) {
        int rest = count - j;
        vf mixed = gru_mix(vload_upto(z + i + j, rest), vload_upto(n + j, rest), vload_upto(h + i + j, rest));
        vstore_upto(y + i + j, mixed, rest);
      }
    }
}

/* up to VL of `count` units of an LSTM with the default activations, the gates `gate` floats apart */
INLINE void lstm_units(const float *xw, const float *hw, const float *c, float *h_out, float *c_out, ptrdiff_t gate,
                       int count) {
  vf i = vsigmoid(vload_upto(xw, count) + vload_upto(hw, count));
  vf f = vsigmoid(vload_upto(xw + 2 * gate, count) + vload_upto(hw + 2 * gate, count));
  vf g = vtanh(vload_upto(xw + 3 * gate, count) + vload_upto(hw + 3 * gate, count));
  vf o = vsigmoid(vload_upto(xw + gate, count) + vload_upto(hw + gate, count));
  vf next = f * vload_upto(c, count) + i * g;
  vstore_upto(c_out, next, count);
  vstore_upto(h_out, o * vtanh(next), count);
}

/* one row with the default activations */
static void lstm_usual(const float *xw, const float *hw, const float *c, float *h_out, float *c_out, int hidden) {
  const float *xg = xw + 3 * (ptrdiff_t)hidden, *hg = hw + 3 * (ptrdiff_t)hidden;
  if (hidden <= SMALL) {
    for (int i = 0; i < hidden; i += VL) lstm_units(xw + i, hw + i, c + i, h_out + i, c_out + i, hidden, hidden - i);
    return;
  }
  for (int base = 0; base < hidden; base += CHUNK) {
    int units = hidden - base < CHUNK ? hidden - base : CHUNK;
    float gates[3 * CHUNK], *in = gates, *out = gates + units, *forget = gates + 2 * units;
    sigmoid_gates(gates, xw + base, hw + base, 3, hidden, units);
    EACH_VECTORS(j, units, {
      vf g[TOGETHER];
      FOR_EACH g[i] = AT(xg + base) + AT(hg + base);
      vtanh_each(count, g);
      FOR_EACH vstore_upto(c_out + base + j + i * VL, AT(forget) * AT(c + base) + AT(in) * g[i], rest);
    });
    EACH_VECTORS(j, units, {
      vf next[TOGETHER];
      FOR_EACH next[i] = AT(c_out + base);
      vtanh_each(count, next);
      FOR_EACH vstore_upto(h_out + base + j + i * VL, AT(out) * next[i], rest);
    });
  }
}

/* one row of any LSTM */
static void lstm_any(const float *xi, const float *hi, const float *c, const float *peephole, float *h_out, float *c_out,
                     int hidden, int32_t couple, int32_t acts, const float *params) {
  const float *xo = xi + hidden, *xf = xo + hidden, *xg = xf + hidden, *ho = hi + hidden, *hf = ho + hidden, *hg = hf + hidden;
  for (int base = 0; base < hidden; base += CHUNK) {
    int n = hidden - base < CHUNK ? hidden - base : CHUNK;
    float i[CHUNK], f[CHUNK], g[CHUNK], o[CHUNK], t[CHUNK];
    const float *pi = (peephole ? peephole : xi) + base, *po = pi + hidden, *pf = po + hidden;
    sum_into(i, xi + base, hi + base, n);
    if (peephole) add_product(i, pi, c + base, n);
    cell_activate(i, n, params, acts, 0);
    if (couple) {
      EACH_VECTOR(j, n, vstore_upto(f + j, vset(1.0f) - vload_upto(i + j, rest), rest));
    } else {
      sum_into(f, xf + base, hf + base, n);
      if (peephole) add_product(f, pf, c + base, n);
      cell_activate(f, n, params, acts, 0);
    }
    sum_into(g, xg + base, hg + base, n);
    cell_activate(g, n, params, acts, 1);
    EACH_VECTOR(j, n,
                vstore_upto(t + j,
                            vload_upto(f + j, rest) * vload_upto(c + base + j, rest) +
                                vload_upto(i + j, rest) * vload_upto(g + j, rest),
                            rest));
    __builtin_memcpy(c_out + base, t, (size_t)n * sizeof *t);
    sum_into(o, xo + base, ho + base, n);
    if (peephole) add_product(o, po, t, n);
    cell_activate(o, n, params, acts, 0);
    wr_activate(t, t, n, acts >> 16 & 255, params[5], params[6]); /* h is not clipped: ONNX clips the inputs of gates */
    EACH_VECTOR(j, n, vstore_upto(h_out + base + j, vload_upto(o + j, rest) * vload_upto(t + j, rest), rest));
  }
}

/* Gates in ONNX order i, o, f, c. peephole[3 * hidden] (i, o, f) or NULL. couple: f = 1 - i (input_forget).
 * c_out may equal c; h_out must not overlap anything else. */
void wr_lstm_cell(const float *xw, const float *hw, const float *c, const float *peephole, float *h_out, float *c_out,
                  int32_t rows, int32_t hidden, int32_t couple, int32_t acts, const float *params) {
  const int usual = acts == SIGMOID_TANH_TANH && !peephole && !couple && !(params[0] < __builtin_inff());
  for (int row = 0; row < rows;
       row++, xw += 4 * (ptrdiff_t)hidden, hw += 4 * (ptrdiff_t)hidden, c += hidden, h_out += hidden, c_out += hidden) {
    if (usual) lstm_usual(xw, hw, c, h_out, c_out, hidden);
    else lstm_any(xw, hw, c, peephole, h_out, c_out, hidden, couple, acts, params);
  }
}
