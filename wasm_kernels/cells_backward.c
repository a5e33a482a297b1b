/* The pullbacks of recurrent cells: from the gradients of what a cell gives to those of what it takes. Gates are computed again
 * from xw and hw. Operation by operation, as runtime/webrnn/ir/backward_cells.py has them; params and acts are as in cells.c. */
#include "kernels.gen.h"
#include "vmath.h"

/* A gate of up to CHUNK units: what its function takes, and what that gives. Both have whole vectors: what lies behind the last
 * unit is computed and never stored. */
typedef struct {
  float a[CHUNK], y[CHUNK];
} Gate;

INLINE int in_vectors(int n) { return (n + VL - 1) / VL * VL; }

#define EACH_WHOLE(j, n, ...) \
  for (int j = 0; j < (n); j += VL) __VA_ARGS__

/* The function number `which` of a cell, of gate->a; what the last one of an LSTM takes is not clipped. */
NOINLINE void activate_gate(Gate *gate, int n, const float *params, int32_t acts, int which) {
  const int m = in_vectors(n);
  const int32_t act = acts >> 8 * which & 255;
  const float alpha = params[1 + 2 * which], beta = params[2 + 2 * which];
  if (which < 2 && params[0] < __builtin_inff()) {
    wr_clip(gate->a, gate->y, m, -params[0], params[0]);
    wr_activate(gate->y, gate->y, m, act, alpha, beta);
  } else wr_activate(gate->a, gate->y, m, act, alpha, beta);
}

/* gate->a = x + h (+ weights * state), and its function */
NOINLINE void open_gate(Gate *gate, const float *x, const float *h, const float *weights, const float *state, int n,
                        const float *params, int32_t acts, int which) {
  EACH_VECTOR(j, n, {
    vf sum = vload_upto(x + j, rest) + vload_upto(h + j, rest);
    if (weights) sum = sum + vload_upto(weights + j, rest) * vload_upto(state + j, rest);
    vstore(gate->a + j, sum);
  });
  activate_gate(gate, n, params, acts, which);
}

#define PULL(name, ...)                                                  \
  case ACT_##name:                                                       \
    EACH_WHOLE(j, m, {                                                   \
      const vf d = vload(to + j), x = vload(in + j), y = vload(out + j); \
      (void)x, (void)y;                                                  \
      vstore(to + j, __VA_ARGS__);                                       \
    })                                                                   \
    break

/* to = to times the derivative of the function number `which` of a cell */
NOINLINE void pull_gate(float *to, const Gate *gate, int n, const float *params, int32_t acts, int which) {
  const int m = in_vectors(n), is_clipped = which < 2 && params[0] < __builtin_inff();
  const vf one = vset(1.0f), none = vset(0.0f), alpha = vset(params[1 + 2 * which]), beta = vset(params[2 + 2 * which]);
  const float *in = gate->a, *out = gate->y;
  float clipped[CHUNK];
  if (is_clipped) {
    wr_clip(in, clipped, m, -params[0], params[0]);
    in = clipped;
  }
  switch (acts >> 8 * which & 255) {
    PULL(RELU, vsel(x > none, d, none));
    PULL(TANH, d * (one - y * y));
    PULL(SIGMOID, d * (y * (one - y)));
    PULL(AFFINE, d * alpha);
    PULL(LEAKY_RELU, vsel(x > none, d, d * alpha));
    PULL(THRESHOLDED_RELU, vsel(x > alpha, d, none));
    PULL(HARD_SIGMOID, vsel(y > none, vsel(y < one, d * alpha, none), none));
    PULL(ELU, vsel(x > none, d, d * (vexp(x) * alpha)));
    PULL(SOFTSIGN, d / ((vabs(x) + one) * (vabs(x) + one)));
    PULL(SOFTPLUS, d * vsigmoid(x));
  case ACT_SCALED_TANH:
    EACH_WHOLE(j, m, {
      const vf t = vtanh(vload(in + j) * beta);
      vstore(to + j, vload(to + j) * ((one - t * t) * beta * alpha));
    })
    break;
  default: break;
  }
  const vf limit = vset(params[0]);
  if (is_clipped) EACH_WHOLE(j, m, vstore(to + j, vsel(vabs(vload(gate->a + j)) > limit, none, vload(to + j))));
}

/* Units of a row that are handled at a time */
#define EACH_CHUNK(from, count, hidden)                                            \
  for (int from = 0, count = (hidden) < CHUNK ? (hidden) : CHUNK; from < (hidden); \
       from += CHUNK, count = (hidden) - from < CHUNK ? (hidden) - from : CHUNK)

NOINLINE void put(float *to, const float *from, int n) { EACH_VECTOR(j, n, vstore_upto(to + j, vload(from + j), rest)); }

/* d is the gradient of xw and of hw. d may equal d_next. */
void wr_rnn_cell_backward(const float *xw, const float *hw, const float *d_next, float *d, int32_t rows, int32_t hidden,
                          int32_t acts, const float *params) {
  for (int row = 0; row < rows; row++, xw += hidden, hw += hidden, d_next += hidden, d += hidden) EACH_CHUNK(from, n, hidden) {
      Gate gate;
      float to[CHUNK];
      open_gate(&gate, xw + from, hw + from, NULL, NULL, n, params, acts, 0);
      EACH_VECTOR(j, n, vstore(to + j, vload_upto(d_next + from + j, rest)));
      pull_gate(to, &gate, n, params, acts, 0);
      put(d + from, to, n);
    }
}

/* d_n, d_z and d_h of h' = (1 - z) n + z h; d_h may equal d_next. */
NOINLINE void unmix(const float *z, const float *n, const float *h, const float *d_next, float *d_n, float *d_z, float *d_h,
                    int count) {
  EACH_VECTOR(j, count, {
    const vf d = vload_upto(d_next + j, rest), gate = vload_upto(z + j, rest);
    vstore(d_n + j, d * (vset(1.0f) - gate));
    vstore(d_z + j, d * (vload_upto(h + j, rest) - vload(n + j)));
    vstore_upto(d_h + j, d * gate, rest);
  });
}

/* Times the derivatives of the functions that cells usually have, from what they gave */
INLINE vf pull_sigmoid(vf d, vf y) { return d * (y * (vset(1.0f) - y)); }
INLINE vf pull_tanh(vf d, vf y) { return d * (vset(1.0f) - y * y); }

/* One row with the default activations. Like gru_usual of cells.c, one function after the other. */
static void gru_usual_backward(const float *xw, const float *hw, const float *h, const float *d_next, float *d_xw, float *d_hw,
                               float *d_h, int hidden) {
  const ptrdiff_t two = 2 * (ptrdiff_t)hidden;
  EACH_CHUNK(from, units, hidden) {
    const float *xn = xw + two + from, *hn = hw + two + from;
    float gates[2 * CHUNK], *z = gates, *r = gates + units, n[CHUNK];
    sigmoid_gates(gates, xw + from, hw + from, 2, hidden, units);
    EACH_VECTORS(j, units, {
      vf v[TOGETHER];
      FOR_EACH v[i] = AT(xn) + AT(r) * AT(hn);
      vtanh_each(count, v);
      FOR_EACH vstore_upto(n + j + i * VL, v[i], rest);
    });
    EACH_VECTOR(j, units, {
      const vf d = vload_upto(d_next + from + j, rest), gate = vload_upto(z + j, rest), reset = vload_upto(r + j, rest);
      const vf in = vload_upto(n + j, rest), from_h = vload_upto(hn + j, rest);
      const vf of_n = pull_tanh(d * (vset(1.0f) - gate), in);
      const vf of_z = pull_sigmoid(d * (vload_upto(h + from + j, rest) - in), gate);
      const vf of_r = pull_sigmoid(of_n * from_h, reset);
      float *to_x = d_xw + from + j, *to_h = d_hw + from + j;
      vstore_upto(to_x, of_z, rest), vstore_upto(to_h, of_z, rest);
      vstore_upto(to_x + hidden, of_r, rest), vstore_upto(to_h + hidden, of_r, rest);
      vstore_upto(to_x + two, of_n, rest), vstore_upto(to_h + two, of_n * reset, rest);
      vstore_upto(d_h + from + j, d * gate, rest);
    });
  }
}

/* linear_before_reset = 1. d_xw and d_hw are [rows, 3 * hidden]; d_h may equal d_next. */
void wr_gru_cell_backward(const float *xw, const float *hw, const float *h, const float *d_next, float *d_xw, float *d_hw,
                          float *d_h, int32_t rows, int32_t hidden, int32_t acts, const float *params) {
  const ptrdiff_t width = 3 * (ptrdiff_t)hidden;
  const int usual = acts == SIGMOID_TANH && !(params[0] < __builtin_inff());
  for (int row = 0; row < rows;
       row++, xw += width, hw += width, h += hidden, d_next += hidden, d_xw += width, d_hw += width, d_h += hidden)
    if (usual) gru_usual_backward(xw, hw, h, d_next, d_xw, d_hw, d_h, hidden);
    else EACH_CHUNK(from, count, hidden) {
        const float *xz = xw + from, *xr = xz + hidden, *xn = xr + hidden, *hz = hw + from, *hr = hz + hidden,
                    *hn = hr + hidden;
        float *to_x = d_xw + from, *to_h = d_hw + from;
        Gate z, r, n;
        float d_z[CHUNK], d_r[CHUNK], d_n[CHUNK];
        open_gate(&z, xz, hz, NULL, NULL, count, params, acts, 0);
        open_gate(&r, xr, hr, NULL, NULL, count, params, acts, 0);
        EACH_VECTOR(j, count, vstore(n.a + j, vload_upto(xn + j, rest) + vload(r.y + j) * vload_upto(hn + j, rest)));
        activate_gate(&n, count, params, acts, 1);
        unmix(z.y, n.y, h + from, d_next + from, d_n, d_z, d_h + from, count);
        pull_gate(d_n, &n, count, params, acts, 1);
        EACH_VECTOR(j, count, vstore(d_r + j, vload(d_n + j) * vload_upto(hn + j, rest)));
        pull_gate(d_r, &r, count, params, acts, 0);
        pull_gate(d_z, &z, count, params, acts, 0);
        EACH_VECTOR(j, count, {
          const vf of_z = vload(d_z + j), of_r = vload(d_r + j), of_n = vload(d_n + j);
          vstore_upto(to_x + j, of_z, rest), vstore_upto(to_h + j, of_z, rest);
          vstore_upto(to_x + hidden + j, of_r, rest), vstore_upto(to_h + hidden + j, of_r, rest);
          vstore_upto(to_x + 2 * (ptrdiff_t)hidden + j, of_n, rest);
          vstore_upto(to_h + 2 * (ptrdiff_t)hidden + j, of_n * vload(r.y + j), rest);
        });
      }
}

/* linear_before_reset = 0, first half: d_xw[rows, 3 * hidden], of which the last third is zero, and d_hw[rows, 2 * hidden].
 * d_h may equal d_rh. */
void wr_gru_reset_backward(const float *xw, const float *hw, const float *h, const float *d_z, const float *d_rh, float *d_xw,
                           float *d_hw, float *d_h, int32_t rows, int32_t hidden, int32_t acts, const float *params) {
  const ptrdiff_t two = 2 * (ptrdiff_t)hidden, three = two + hidden;
  for (int row = 0; row < rows;
       row++, xw += three, hw += two, h += hidden, d_z += hidden, d_rh += hidden, d_xw += three, d_hw += two, d_h += hidden)
    EACH_CHUNK(from, n, hidden) {
      Gate z, r;
      float to_z[CHUNK], to_r[CHUNK];
      open_gate(&z, xw + from, hw + from, NULL, NULL, n, params, acts, 0);
      open_gate(&r, xw + hidden + from, hw + hidden + from, NULL, NULL, n, params, acts, 0);
      EACH_VECTOR(j, n, {
        const vf d = vload_upto(d_rh + from + j, rest);
        vstore(to_z + j, vload_upto(d_z + from + j, rest));
        vstore(to_r + j, d * vload_upto(h + from + j, rest));
        vstore_upto(d_h + from + j, d * vload(r.y + j), rest);
      });
      pull_gate(to_z, &z, n, params, acts, 0);
      pull_gate(to_r, &r, n, params, acts, 0);
      put(d_xw + from, to_z, n), put(d_hw + from, to_z, n);
      put(d_xw + hidden + from, to_r, n), put(d_hw + hidden + from, to_r, n);
      __builtin_memset(d_xw + two + from, 0, (size_t)n * sizeof *d_xw);
    }
}

/* second half: d_xw[rows, 3 * hidden], of which the first two thirds are zero. d_h may equal d_next, and d_z z. */
void wr_gru_update_backward(const float *xw, const float *hn, const float *z, const float *h, const float *d_next, float *d_xw,
                            float *d_hn, float *d_z, float *d_h, int32_t rows, int32_t hidden, int32_t acts,
                            const float *params) {
  const ptrdiff_t two = 2 * (ptrdiff_t)hidden, three = two + hidden;
  for (int row = 0; row < rows; row++, xw += three, hn += hidden, z += hidden, h += hidden, d_next += hidden, d_xw += three,
           d_hn += hidden, d_z += hidden, d_h += hidden) {
    __builtin_memset(d_xw, 0, (size_t)two * sizeof *d_xw);
    EACH_CHUNK(from, count, hidden) {
      Gate n;
      float to_n[CHUNK], to_z[CHUNK];
      open_gate(&n, xw + two + from, hn + from, NULL, NULL, count, params, acts, 1);
      unmix(z + from, n.y, h + from, d_next + from, to_n, to_z, d_h + from, count);
      put(d_z + from, to_z, count);
      pull_gate(to_n, &n, count, params, acts, 1);
      put(d_xw + two + from, to_n, count), put(d_hn + from, to_n, count);
    }
  }
}

/* One row with the default activations, as lstm_usual of cells.c */
static void lstm_usual_backward(const float *xw, const float *hw, const float *c, const float *d_h_next, const float *d_c_next,
                                float *d_gates, float *d_c, int hidden) {
  const ptrdiff_t one = hidden, two = 2 * one, three = 3 * one;
  EACH_CHUNK(from, units, hidden) {
    const float *xg = xw + three + from, *hg = hw + three + from, *before = c + from;
    float gates[3 * CHUNK], *in = gates, *out = gates + units, *forget = gates + 2 * units, new[CHUNK], next[CHUNK];
    sigmoid_gates(gates, xw + from, hw + from, 3, hidden, units);
    EACH_VECTORS(j, units, {
      vf v[TOGETHER];
      FOR_EACH v[i] = AT(xg) + AT(hg);
      vtanh_each(count, v);
      FOR_EACH vstore_upto(new + j + i * VL, v[i], rest);
      FOR_EACH v[i] = AT(forget) * AT(before) + AT(in) * v[i];
      vtanh_each(count, v);
      FOR_EACH vstore_upto(next + j + i * VL, v[i], rest);
    });
    EACH_VECTOR(j, units, {
      const vf of_h = vload_upto(d_h_next + from + j, rest), y = vload_upto(next + j, rest);
      const vf i = vload_upto(in + j, rest), o = vload_upto(out + j, rest), f = vload_upto(forget + j, rest);
      const vf g = vload_upto(new + j, rest);
      const vf d = vload_upto(d_c_next + from + j, rest) + pull_tanh(of_h * o, y);
      float *to = d_gates + from + j;
      vstore_upto(to, pull_sigmoid(d * g, i), rest);
      vstore_upto(to + one, pull_sigmoid(of_h * y, o), rest);
      vstore_upto(to + two, pull_sigmoid(d * vload_upto(before + j, rest), f), rest);
      vstore_upto(to + three, pull_tanh(d * i, g), rest);
      vstore_upto(d_c + from + j, d * f, rest);
    });
  }
}

/* peephole[3 * hidden] or NULL. d_gates[rows, 4 * hidden]; d_peephole[rows, 3 * hidden] is written if both
 * are there. d_c may equal d_c_next. */
void wr_lstm_cell_backward(const float *xw, const float *hw, const float *c, const float *peephole, const float *d_h_next,
                           const float *d_c_next, float *d_gates, float *d_c, float *d_peephole, int32_t rows, int32_t hidden,
                           int32_t couple, int32_t acts, const float *params) {
  const ptrdiff_t wide = 4 * (ptrdiff_t)hidden, one = hidden, two = 2 * one, three = 3 * one;
  const int usual = acts == SIGMOID_TANH_TANH && !peephole && !couple && !(params[0] < __builtin_inff());
  for (int row = 0; row < rows;
       row++, xw += wide, hw += wide, c += hidden, d_h_next += hidden, d_c_next += hidden, d_gates += wide, d_c += hidden)
    if (usual) lstm_usual_backward(xw, hw, c, d_h_next, d_c_next, d_gates, d_c, hidden);
    else EACH_CHUNK(from, n, hidden) {
        const float *x = xw + from, *h = hw + from, *before = c + from, *d_h = d_h_next + from;
        const float *pi = peephole ? peephole + from : NULL, *po = pi ? pi + one : NULL, *pf = pi ? pi + two : NULL;
        Gate i, o, f, g, next;
        float d[CHUNK], d_i[CHUNK], d_o[CHUNK], d_f[CHUNK], d_g[CHUNK];
        open_gate(&i, x, h, pi, before, n, params, acts, 0);
        if (!couple) open_gate(&f, x + two, h + two, pf, before, n, params, acts, 0);
        else EACH_WHOLE(j, n, vstore(f.y + j, vset(1.0f) - vload(i.y + j)));
        open_gate(&g, x + three, h + three, NULL, NULL, n, params, acts, 1);
        EACH_VECTOR(j, n, {
          const vf kept = vload(f.y + j) * vload_upto(before + j, rest);
          vstore(next.a + j, kept + vload(i.y + j) * vload(g.y + j));
        });
        activate_gate(&next, n, params, acts, 2);
        open_gate(&o, x + one, h + one, po, next.a, n, params, acts, 0);
        EACH_VECTOR(j, n, {
          const vf of_h = vload_upto(d_h + j, rest);
          vstore(d_o + j, of_h * vload(next.y + j)), vstore(d + j, of_h * vload(o.y + j));
        });
        pull_gate(d_o, &o, n, params, acts, 0);
        pull_gate(d, &next, n, params, acts, 2);
        EACH_VECTOR(j, n, {
          const vf last = vload_upto(before + j, rest), in = vload(g.y + j);
          vf of_c = vload_upto(d_c_next + from + j, rest) + vload(d + j);
          if (po) of_c = of_c + vload(d_o + j) * vload_upto(po + j, rest);
          vstore(d + j, of_c);
          vstore(d_i + j, of_c * (couple ? in - last : in));
          vstore(d_f + j, couple ? vset(0.0f) : of_c * last);
          vstore(d_g + j, of_c * vload(i.y + j));
        });
        pull_gate(d_i, &i, n, params, acts, 0);
        if (!couple) pull_gate(d_f, &f, n, params, acts, 0);
        pull_gate(d_g, &g, n, params, acts, 1);
        put(d_gates + from, d_i, n), put(d_gates + one + from, d_o, n);
        put(d_gates + two + from, d_f, n), put(d_gates + three + from, d_g, n);
        float *to_peephole = pi && d_peephole ? d_peephole + row * three + from : NULL;
        EACH_VECTOR(j, n, {
          const vf last = vload_upto(before + j, rest), of_i = vload(d_i + j), of_f = vload(d_f + j);
          vf of_c = vload(d + j) * vload(f.y + j);
          if (pi) of_c = of_c + of_i * vload_upto(pi + j, rest);
          if (pf && !couple) of_c = of_c + of_f * vload_upto(pf + j, rest);
          if (to_peephole) {
            vstore_upto(to_peephole + j, of_i * last, rest);
            vstore_upto(to_peephole + one + j, vload(d_o + j) * vload(next.a + j), rest);
            vstore_upto(to_peephole + two + j, couple ? of_f : of_f * last, rest);
          }
          vstore_upto(d_c + from + j, of_c, rest);
        });
      }
}
