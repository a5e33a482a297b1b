/* Reductions over the middle axis of x[outer, n, inner], softmax and log-softmax over the last.
 *
 * A contiguous axis (inner = 1) is reduced in LANES interleaved partial results that are folded in a fixed tree; otherwise
 * vectors run across `inner` and every output is one chain over n. Neither order depends on VL. */
#include "kernels.gen.h"
#include "vmath.h"

typedef struct {
  vf lane[LANE_VECS];
} Lanes;

#if VL > 4
#define LANES_PART INLINE
#else
#define LANES_PART NOINLINE
#endif

INLINE Lanes lanes_set(float x) {
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++) l.lane[i] = vset(x);
  return l;
}

/* The first `rest` of LANES values from p, followed by `fill` */
LANES_PART Lanes lanes_load_part(const float *p, int rest, float fill) {
  static const int32_t numbers[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++, rest -= VL) {
    vi number;
    __builtin_memcpy(&number, numbers, sizeof number);
    l.lane[i] = rest >= VL  ? vload(p + i * VL)
                : rest <= 0 ? vset(fill)
                            : vsel(number < vset_i(rest), vload_part(p + i * VL, rest), vset(fill));
  }
  return l;
}
INLINE Lanes lanes_load(const float *p, int rest, float fill) {
  if (rest < LANES) return lanes_load_part(p, rest, fill);
  Lanes l;
  UNROLL for (int i = 0; i < LANE_VECS; i++) l.lane[i] = vload(p + i * VL);
  return l;
}
INLINE void lanes_store(float *p, Lanes l, int rest) {
  UNROLL for (int i = 0; i < LANE_VECS; i++, rest -= VL)
    if (rest > 0) vstore_upto(p + i * VL, l.lane[i], rest);
}

/* All lanes in one: each half onto the other, with `a` and `b` in the expression */
#if VL > 1
#define FOLD(lanes, expr)                                                            \
  ({                                                                                 \
    float t_[LANES];                                                                 \
    UNROLL for (int i = 0; i < LANE_VECS; i++) vstore(t_ + i * VL, (lanes).lane[i]); \
    Quad f_[4], a, b;                                                                \
    UNROLL for (int i = 0; i < 4; i++) f_[i] = load_quad(t_ + 4 * i);                \
    a = f_[0], b = f_[2], f_[0] = (expr);                                            \
    a = f_[1], b = f_[3], f_[1] = (expr);                                            \
    a = f_[0], b = f_[1], f_[0] = (expr);                                            \
    a = f_[0], b = __builtin_shufflevector(a, a, 2, 3, 2, 3), f_[0] = (expr);        \
    a = f_[0], b = __builtin_shufflevector(a, a, 1, 1, 1, 1), f_[0] = (expr);        \
    f_[0][0];                                                                        \
  })
#else
#define FOLD(lanes, expr)                                        \
  ({                                                             \
    vf *t_ = (lanes).lane;                                       \
    for (int w = LANES / 2; w; w /= 2)                           \
      for (int i = 0; i < w; i++) {                              \
        vf a = t_[i], b = t_[i + w];                             \
        t_[i] = (expr);                                          \
      }                                                          \
    t_[0][0];                                                    \
  })
#endif

/* Outputs that are summed side by side: one chain alone would wait for each of its sums. Modules for pages stay small. */
#if defined(__wasm__)
#define COLUMNS 0
#else
#define COLUMNS (4 * VL)
#endif

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
      int i = 0;                                                                                     \
      for (; COLUMNS && i + COLUMNS <= inner; i += COLUMNS) {                                        \
        vf sums[COLUMNS / VL];                                                                       \
        UNROLL for (int j = 0; j < COLUMNS / VL; j++) sums[j] = vset(start);                         \
        for (int k = 0; k < n; k++) {                                                                \
          const float *p = x + (ptrdiff_t)k * inner + i;                                             \
          UNROLL for (int j = 0; j < COLUMNS / VL; j++) {                                            \
            vf acc = sums[j], v = vload(p + j * VL);                                                 \
            sums[j] = (step);                                                                        \
          }                                                                                          \
        }                                                                                            \
        UNROLL for (int j = 0; j < COLUMNS / VL; j++) vstore(y + i + j * VL, sums[j]);               \
        for (int j = i; j < i + COLUMNS; j++) {                                                      \
          float total = y[j];                                                                        \
          y[j] = (finish);                                                                           \
        }                                                                                            \
      }                                                                                              \
      for (; i < inner; i += VL) {                                                                   \
        int rest = inner - i;                                                                        \
        vf acc = vset(start);                                                                        \
        for (int k = 0; k < n; k++) {                                                                \
          const float *p = x + (ptrdiff_t)k * inner + i;                                             \
          vf v = vload_upto(p, rest);                                                                \
          acc = (step);                                                                              \
        }                                                                                            \
        float t[VL];                                                                                 \
        vstore(t, acc);                                                                              \
        NO_VECTORS for (int j = 0; j < VL && j < rest; j++) {                                        \
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
REDUCE(reduce_max, -__builtin_inff(), vmax(acc, v), quad_max(a, b), total)
REDUCE(reduce_min, __builtin_inff(), vmin(acc, v), quad_min(a, b), total)

/* The sum of exp(x - max); e[n] receives the terms unless it is NULL, and may equal x. */
static float exp_shifted(const float *x, float *e, int n, float max) {
  Lanes sums = lanes_set(0.0f);
  for (int i = 0; i < n; i += LANES) {
    Lanes terms = lanes_load(x + i, n - i, -__builtin_inff());
    UNROLL for (int j = 0; j < LANE_VECS; j++) terms.lane[j] = vexp(terms.lane[j] - vset(max));
    if (e) lanes_store(e + i, terms, n - i);
    UNROLL for (int j = 0; j < LANE_VECS; j++) sums.lane[j] = sums.lane[j] + terms.lane[j];
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
  return FOLD(top, quad_max(a, b));
}

/* Rows of up to LANES floats are taken VL at a time, each in a lane of its own: sums are made in the same order. */
NOINLINE void short_softmax(const float *x, float *y, int32_t rows, int32_t n, int logarithm) {
  float t[LANES][VL];
  const int last = rows < VL ? rows - 1 : VL - 1;
  for (int r = 0; r < VL; r++)
    for (int i = 0; i < n; i++) t[i][r] = x[(r < last ? r : last) * n + i];
  vf max = vload(t[0]), total[LANES];
  for (int i = 1; i < n; i++) max = vmax(max, vload(t[i]));
  for (int i = 0; i < LANES; i++) total[i] = vset(0.0f);
  for (int i = 0; i < n; i++) {
    const vf shifted = vload(t[i]) - max;
    total[i] = vexp(shifted);
    vstore(t[i], logarithm ? shifted : total[i]);
  }
  for (int w = LANES / 2; w; w /= 2)
    for (int i = 0; i < w; i++) total[i] = total[i] + total[i + w];
  const vf log = vlog(total[0]);
  for (int i = 0; i < n; i++) vstore(t[i], logarithm ? vload(t[i]) - log : vload(t[i]) / total[0]);
  for (int r = 0; r <= last; r++)
    for (int i = 0; i < n; i++) y[r * n + i] = t[i][r];
}

INLINE void softmax(const float *x, float *y, int32_t rows, int32_t n, const int logarithm) {
  const int is_short = n <= LANES && rows > VL / 2;
  for (int r = 0; is_short && r < rows; r += VL) short_softmax(x + (ptrdiff_t)r * n, y + (ptrdiff_t)r * n, rows - r, n, logarithm);
  for (int r = 0; !is_short && r < rows; r++, x += n, y += n) {
    const float max = largest(x, n);
    const float sum = exp_shifted(x, logarithm ? NULL : y, n, max);
    if (logarithm) {
      const vf log = vlog(vset(sum));
      for (int i = 0; i < n; i += VL) vstore_upto(y + i, vload_upto(x + i, n - i) - vset(max) - log, n - i);
    } else {
      int i = 0;
      for (; i + VL <= n; i += VL) vstore(y + i, vload(y + i) / vset(sum));
      if (i < n) vstore_part(y + i, vload_part(y + i, n - i) / vset(sum), n - i);
    }
  }
}
void wr_softmax(const float *x, float *y, int32_t rows, int32_t n) { softmax(x, y, rows, n, 0); }
void wr_log_softmax(const float *x, float *y, int32_t rows, int32_t n) { softmax(x, y, rows, n, 1); }
