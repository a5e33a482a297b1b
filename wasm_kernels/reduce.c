/* Reductions over the middle axis of x[outer, n, inner], softmax and log-softmax over the last.
 *
 * A contiguous axis (inner = 1) is reduced in LANES interleaved partial results that are folded in a fixed tree; otherwise
 * vectors run across `inner` and every output is one chain over n. Neither order depends on VL. */
#include "kernels.gen.h"
#include "vmath.h"

typedef struct {
  vf lane[LANE_VECS];
} Lanes;

INLINE Lanes lanes_set(float x) {
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++) l.lane[i] = vset(x);
  return l;
}

#if VL == 4
#define RARELY NOINLINE
#else
#define RARELY INLINE
#endif

/* The first `rest` (< LANES) values from p, followed by `fill` */
RARELY Lanes lanes_load_part(const float *p, int rest, float fill) {
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++, rest -= VL) {
    const vi is_there = LANE_NUMBERS < rest;
    l.lane[i] = rest >= VL ? vload(p + i * VL) : vsel(is_there, rest > 0 ? vload_part(p + i * VL, rest) : vset(fill), vset(fill));
  }
  return l;
}

/* LANES values from p, or `rest` of them followed by `fill` */
INLINE Lanes lanes_load(const float *p, int rest, float fill) {
  if (rest < LANES) return lanes_load_part(p, rest, fill);
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++) l.lane[i] = vload(p + i * VL);
  return l;
}

/* One number of all lanes: those `by` apart are put together, `by` half as large each time */
#define FOLD(lanes, expr)                                          \
  ({                                                               \
    UNROLL for (int w = LANE_VECS / 2; w; w /= 2) UNROLL for (int i = 0; i < w; i++) { \
      const vf a = (lanes).lane[i], b = (lanes).lane[i + w];       \
      (lanes).lane[i] = (expr);                                    \
    }                                                              \
    vf a = (lanes).lane[0], b;                                     \
    if (VL > 8) b = LATER_LANES(a, 8 % VL), a = (expr);            \
    if (VL > 4) b = LATER_LANES(a, 4 % VL), a = (expr);            \
    if (VL > 2) b = LATER_LANES(a, 2 % VL), a = (expr);            \
    if (VL > 1) b = LATER_LANES(a, 1 % VL), a = (expr);            \
    a[0];                                                          \
  })

/* name, start value, acc from acc and v, fold of a and b, result from the total and the count */
#define REDUCE(name, start, step, fold, finish)                                                      \
  void wr_##name(const float *x, float *y, int32_t outer, int32_t n, int32_t inner) {                \
    for (int o = 0; o < outer; o++, x += (ptrdiff_t)n * inner, y += inner) {                         \
      if (inner == 1) {                                                                              \
        Lanes sums = lanes_set(start);                                                               \
        for (int i = 0; i < n; i += LANES) {                                                         \
          Lanes in = lanes_load(x + i, n - i, start);                                                \
          UNROLL for (int j = 0; j < LANE_VECS; j++) {                                               \
            vf acc = sums.lane[j], v = in.lane[j];                                                   \
            sums.lane[j] = (step);                                                                   \
          }                                                                                          \
        }                                                                                            \
        float total = FOLD(sums, fold);                                                              \
        y[0] = (finish);                                                                             \
        continue;                                                                                    \
      }                                                                                              \
      for (int i = 0; i < inner; i += VL) {                                                          \
        int rest = inner - i;                                                                        \
        vf acc = vset(start);                                                                        \
        for (int k = 0; k < n; k++) {                                                                \
          const float *p = x + (ptrdiff_t)k * inner + i;                                             \
          vf v = vload_upto(p, rest);                                                                \
          acc = (step);                                                                              \
        }                                                                                            \
        float t[VL];                                                                                 \
        vstore(t, acc);                                                                              \
        for (int j = 0; j < VL && j < rest; j++) {                                                   \
          float total = t[j];                                                                        \
          y[i + j] = (finish);                                                                       \
        }                                                                                            \
      }                                                                                              \
    }                                                                                                \
  }

REDUCE(reduce_sum, 0.0f, acc + v, a + b, total)
REDUCE(reduce_mean, 0.0f, acc + v, a + b, total / (float)n)
REDUCE(reduce_sum_square, 0.0f, vfma(v, v, acc), a + b, total)
REDUCE(reduce_prod, 1.0f, acc *v, a *b, total)
REDUCE(reduce_max, -__builtin_inff(), vmax(acc, v), vmax(a, b), total)
REDUCE(reduce_min, __builtin_inff(), vmin(acc, v), vmin(a, b), total)

/* The sum of exp(x - max); e[n] receives the terms unless it is NULL, and may equal x. */
static float exp_shifted(const float *x, float *e, int n, float max) {
  Lanes sums = lanes_set(0.0f);
  for (int i = 0; i < n; i += LANES) {
    /* what is not there has the exponent of zero, and is exp(-inf) = 0 */
    Lanes in = lanes_load(x + i, n - i, -__builtin_inff());
    UNROLL for (int j = 0; j < LANE_VECS; j++) {
      const vf term = vexp(in.lane[j] - vset(max));
      sums.lane[j] = sums.lane[j] + term;
      if (e && i + j * VL < n) vstore_upto(e + i + j * VL, term, n - i - j * VL);
    }
  }
  return FOLD(sums, a + b);
}

/* The largest of x[n] for a softmax: which zero it is, or that there is a NaN, the sum of the exponentials tells as well */
static float largest(const float *x, int n) {
  Lanes top = lanes_set(-__builtin_inff());
  for (int i = 0; i < n; i += LANES) {
    const Lanes in = lanes_load(x + i, n - i, -__builtin_inff());
    UNROLL for (int j = 0; j < LANE_VECS; j++) top.lane[j] = vraise(in.lane[j], top.lane[j]);
  }
  return FOLD(top, vraise(b, a));
}

void wr_softmax(const float *x, float *y, int32_t rows, int32_t n) {
  for (int r = 0; r < rows; r++, x += n, y += n) {
    const vf sum = vset(exp_shifted(x, y, n, largest(x, n)));
    for (int i = 0; i < n; i += VL) vstore_upto(y + i, vload_upto(y + i, n - i) / sum, n - i);
  }
}

void wr_log_softmax(const float *x, float *y, int32_t rows, int32_t n) {
  for (int r = 0; r < rows; r++, x += n, y += n) {
    const float max = largest(x, n);
    const vf sum = vlog(vset(exp_shifted(x, NULL, n, max)));
    for (int i = 0; i < n; i += VL) vstore_upto(y + i, vload_upto(x + i, n - i) - vset(max) - sum, n - i);
  }
}
