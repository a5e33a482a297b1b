/* Element-wise kernels: unary functions, activations, arithmetic, comparison, select. */
#include "kernels.gen.h"
#include "vmath.h"

/* n contiguous floats through `expr` on v; x may equal y. The tail goes through `again` in a whole vector of its own, so that
 * long expressions are compiled once. */
#define MAP(x, y, n, expr, again)           \
  int i = 0;                                \
  for (; i + VL <= n; i += VL) {            \
    vf v = vload(x + i);                    \
    vstore(y + i, (expr));                  \
  }                                         \
  if (i < n) {                              \
    float tail[VL];                         \
    vstore(tail, vload_part(x + i, n - i)); \
    again;                                  \
    vstore_part(y + i, vload(tail), n - i); \
  }

#define UNARY(name, expr) \
  void wr_##name(const float *x, float *y, int32_t n) { MAP(x, y, n, expr, wr_##name(tail, tail, VL)) }

/* The same of a function that takes several vectors at a time */
#define UNARY_TOGETHER(name, function)                                                                       \
  void wr_##name(const float *x, float *y, int32_t n) {                                                      \
    for (; TOGETHER > 1 && n >= TOGETHER * VL; x += TOGETHER * VL, y += TOGETHER * VL, n -= TOGETHER * VL) { \
      vf each[TOGETHER];                                                                                     \
      UNROLL for (int j = 0; j < TOGETHER; j++) each[j] = vload(x + j * VL);                                 \
      function##_each(TOGETHER, each);                                                                       \
      UNROLL for (int j = 0; j < TOGETHER; j++) vstore(y + j * VL, each[j]);                                 \
    }                                                                                                        \
    MAP(x, y, n, function(v), wr_##name(tail, tail, VL))                                                     \
  }

UNARY(exp, vexp(v))
UNARY(log, vlog(v))
UNARY_TOGETHER(tanh, vtanh)
UNARY_TOGETHER(sigmoid, vsigmoid)
UNARY(erf, verf(v))
UNARY(atan, vatan(v))
UNARY(hard_swish, v *vmin(vmax(v / vset(6.0f) + vset(0.5f), vset(0.0f)), vset(1.0f)))
UNARY(sin, vsin(v))
UNARY(cos, vcos(v))
UNARY(sqrt, vsqrt(v))
UNARY(reciprocal, vset(1.0f) / v)
UNARY(abs, vabs(v))
UNARY(neg, vneg(v))
UNARY(round, vrint(v))
UNARY(floor, vfloor(v))
UNARY(ceil, vneg(vfloor(vneg(v))))
UNARY(relu, vsel(v <= vset(0.0f), vset(0.0f), v))
UNARY(softplus, vsoftplus(v))
UNARY(softsign, v / (vset(1.0f) + vabs(v)))

#define ACTIVATION(name, expr)                                                   \
  void wr_##name(const float *x, float *y, int32_t n, float alpha, float beta) { \
    const vf a = vset(alpha), b = vset(beta);                                    \
    (void)a, (void)b;                                                            \
    MAP(x, y, n, expr, wr_##name(tail, tail, VL, alpha, beta))                   \
  }

ACTIVATION(affine, a *v + b)
ACTIVATION(leaky_relu, vsel(v < vset(0.0f), a *v, v))
ACTIVATION(thresholded_relu, vsel(v > a, v, vset(0.0f)))
ACTIVATION(scaled_tanh, a *vtanh(b *v))
ACTIVATION(hard_sigmoid, vmax(vset(0.0f), vmin(vset(1.0f), a *v + b)))
ACTIVATION(elu, vsel(v < vset(0.0f), a *vexpm1(v), v))
ACTIVATION(clip, vmin(vmax(v, a), b))

void wr_activate(const float *x, float *y, int32_t n, int32_t act, float alpha, float beta) {
  switch (act) {
    ACTIVATION_CASES
  default:
    if (x != y) __builtin_memmove(y, x, (size_t)n * sizeof *y);
  }
}

/* x to the nearest number, ties to even, plus zero; then the limits, of which NaN becomes the lower */
INLINE vf saturated(vf x, vf zero, float low, float high) {
  const vf whole = vrint(x) + zero, raised = vsel(whole > vset(low), whole, vset(low));
  return vsel(raised < vset(high), raised, vset(high));
}

/* y[rows, cols] = a op b; operands are addressed by element strides, 0 to broadcast; a column stride is 0 or 1.
 * y may equal a full-size operand. */
#define BINARY(name, expr)                                                                                           \
  void wr_##name(const float *a, const float *b, float *y, int32_t rows, int32_t cols, int32_t a_row, int32_t a_col, \
                 int32_t b_row, int32_t b_col) {                                                                     \
    for (int r = 0; r < rows; r++, a += a_row, b += b_row, y += cols) {                                              \
      const vf one_a = vset(*a), one_b = vset(*b);                                                                   \
      int i = 0;                                                                                                     \
      for (; i + VL <= cols; i += VL) {                                                                              \
        vf p = a_col ? vload(a + i) : one_a, q = b_col ? vload(b + i) : one_b;                                       \
        vstore(y + i, (expr));                                                                                       \
      }                                                                                                              \
      if (i < cols) {                                                                                                \
        vf p = a_col ? vload_part(a + i, cols - i) : one_a, q = b_col ? vload_part(b + i, cols - i) : one_b;         \
        vstore_part(y + i, (expr), cols - i);                                                                        \
      }                                                                                                              \
    }                                                                                                                \
  }

BINARY(add, p + q)
BINARY(sub, p - q)
BINARY(mul, p *q)
BINARY(div, p / q)
BINARY(min, vmin(p, q))
BINARY(max, vmax(p, q))
BINARY(pow, vpow(p, q))
BINARY(prelu, vsel(p < vset(0.0f), q *p, p))
BINARY(saturate_u8, saturated(p, q, 0.0f, 255.0f))
BINARY(saturate_i8, saturated(p, q, -128.0f, 127.0f))

typedef uint8_t vb __attribute__((vector_size(VL)));

INLINE vf operand(const float *p, int32_t col, int i, int rest) { return col ? vload_upto(p + i, rest) : vset(*p); }

/* y[rows, cols] = a op b as bytes 0 or 1 */
#define COMPARE(name, expr)                                                                                            \
  void wr_##name(const float *a, const float *b, uint8_t *y, int32_t rows, int32_t cols, int32_t a_row, int32_t a_col, \
                 int32_t b_row, int32_t b_col) {                                                                       \
    for (int r = 0; r < rows; r++, a += a_row, b += b_row, y += cols)                                                  \
      for (int i = 0; i < cols; i += VL) {                                                                             \
        int rest = cols - i < VL ? cols - i : VL;                                                                      \
        vf p = operand(a, a_col, i, cols - i), q = operand(b, b_col, i, cols - i);                                     \
        vb found = __builtin_convertvector((expr) & 1, vb);                                                            \
        if (rest == VL) __builtin_memcpy(y + i, &found, VL);                                                           \
        else                                                                                                           \
          for (int j = 0; j < rest; j++) y[i + j] = ((const uint8_t *)&found)[j];                                      \
      }                                                                                                                \
  }

COMPARE(equal, p == q)
COMPARE(less, p < q)
COMPARE(less_or_equal, p <= q)
COMPARE(greater, p > q)
COMPARE(greater_or_equal, p >= q)

/* y[rows, cols] = cond ? a : b */
void wr_select(const uint8_t *cond, const float *a, const float *b, float *y, int32_t rows, int32_t cols, int32_t c_row,
               int32_t c_col, int32_t a_row, int32_t a_col, int32_t b_row, int32_t b_col) {
  for (int r = 0; r < rows; r++, cond += c_row, a += a_row, b += b_row, y += cols)
    for (int i = 0; i < cols; i += VL) {
      int rest = cols - i;
      vb bytes = (vb){0} + *cond;
      if (c_col && rest >= VL) __builtin_memcpy(&bytes, cond + i, VL);
      else if (c_col) NO_VECTORS for (int j = 0; j < rest; j++) ((uint8_t *)&bytes)[j] = cond[i + j];
      vi mask = __builtin_convertvector(bytes, vi) != 0;
      vf v = vsel(mask, operand(a, a_col, i, rest), operand(b, b_col, i, rest));
      vstore_upto(y + i, v, rest);
    }
}
