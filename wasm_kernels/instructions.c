/* The instructions of the VM that work on data: one function for each, and beside it what it asks of its operands. check_<name>
 * runs once for each binding of sizes, run_<name> each time the instruction is reached. */
#include "kernels.gen.h"
#include "plan.gen.h"

#define T(i) (vm->tensor + w[i])
#define F(i) ((float *)T(i)->data)
#define MAYBE(i) (w[i] < 0 ? NULL : F(i))

INLINE int is_f32(const Tensor *t, int rank) { return t->dtype == DTYPE_F32 && t->rank == rank; }
INLINE int is_dense(const Tensor *t, int rank) { return is_f32(t, rank) && t->contiguous; }
INLINE int is_vector(const Tensor *t, int32_t n) { return t->dtype == DTYPE_F32 && t->contiguous && t->count == n; }
/* rows of n floats that may be apart */
INLINE int is_rows(const Tensor *t) { return is_f32(t, 2) && (t->stride[1] == 1 || t->size[1] == 1); }
INLINE int same_sizes(const Tensor *a, const Tensor *b) {
  int same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->size[i] == b->size[i];
  return same;
}
INLINE int fits(int64_t count) { return count >= 0 && count <= INT32_MAX; }
INLINE int64_t packed_floats(int64_t n, int64_t k) { return (n + GRAIN - 1) / GRAIN * GRAIN * k; }
#define ASK(condition) REQUIRE(condition, BAD_OPERANDS)
/* A result without elements may have any number of rows, which nobody should walk over: its other sizes need no memory. */
#define DONE_IF_EMPTY(i) \
  do {                   \
    if (!T(i)->count) return OK; \
  } while (0)

static int check_require(Vm *vm, const int32_t *w) {
  REQUIRE(vm->size[w[0]] >= 0, BAD_SIZE);
  return OK;
}
static int run_require(Vm *vm, const int32_t *w) {
  (void)vm, (void)w;
  return OK;
}

/* --- moving data ----------------------------------------------------------------------------------------------------- */

static int check_copy(Vm *vm, const int32_t *w) {
  ASK(T(0)->dtype == T(1)->dtype && same_sizes(T(0), T(1)));
  return OK;
}
static int run_copy(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *y = T(1);
  if (x->contiguous && y->contiguous) {
    if (x->count && x->data != y->data) __builtin_memmove(y->data, x->data, (size_t)x->count * (size_t)ITEM[x->dtype]);
    return OK;
  }
  int32_t layout[3 * MAX_RANK];
  for (int a = 0; a < x->rank; a++) layout[a] = x->size[a], layout[x->rank + a] = x->stride[a], layout[2 * x->rank + a] = y->stride[a];
  wr_copy_strided((const uint8_t *)x->data, (uint8_t *)y->data, ITEM[x->dtype], x->rank, layout);
  return OK;
}

static int check_fill(Vm *vm, const int32_t *w) {
  ASK(T(0)->dtype == DTYPE_F32 && T(0)->contiguous);
  return OK;
}
static int run_fill(Vm *vm, const int32_t *w) {
  wr_fill(F(0), T(0)->count, float_of(w[1]));
  return OK;
}

static int check_sizes_operands(Vm *vm, const int32_t *w, int32_t n) {
  ASK(T(0)->dtype == DTYPE_I64 && T(0)->contiguous && T(0)->count == n - 1);
  return OK;
}
static int run_sizes(Vm *vm, const int32_t *w, int32_t n) {
  for (int i = 1; i < n; i++) ((int64_t *)T(0)->data)[i - 1] = vm->size[w[i]];
  return OK;
}

static int check_gather(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *index = T(1), *y = T(2);
  ASK(x->rank == 3 && y->rank == 3 && x->dtype == y->dtype && x->contiguous && y->contiguous);
  ASK(index->dtype == DTYPE_I64 && index->contiguous && index->count == y->size[1]);
  ASK(x->size[0] == y->size[0] && x->size[2] == y->size[2] && fits((int64_t)x->size[2] * ITEM[x->dtype]));
  return OK;
}
static int run_gather(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0);
  return wr_gather((const uint8_t *)x->data, (const int64_t *)T(1)->data, (uint8_t *)T(2)->data, x->size[0], x->size[1],
                   x->size[2] * ITEM[x->dtype], T(1)->count) ? INDEX_RANGE : OK;
}

/* --- products -------------------------------------------------------------------------------------------------------- */

static int check_gemm(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *packed = T(1), *y = T(3);
  ASK(is_rows(x) && is_rows(y) && x->size[0] == y->size[0]);
  ASK(is_dense(packed, 1) && packed->count >= packed_floats(y->size[1], x->size[1]));
  ASK((w[2] < 0 || is_vector(T(2), y->size[1])) && below(w[4], ACT_SOFTPLUS + 1));
  return OK;
}
static int run_gemm(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  const Tensor *x = T(0), *y = T(3);
  const Output out = {(float *)y->data, y->stride[0], MAYBE(2), NULL, y->size[1]};
  gemm_in_step((float *)x->data, x->stride[0], F(1), x->size[0], x->size[1], out, w[4], float_of(w[5]), float_of(w[6]), vm->step);
  return OK;
}

static int check_matmul(Vm *vm, const int32_t *w) {
  const Tensor *a = T(0), *b = T(1), *y = T(2), *scratch = T(3);
  ASK(is_f32(a, 3) && is_f32(b, 3) && is_f32(y, 3) && is_dense(scratch, 1));
  ASK(a->size[0] == y->size[0] && b->size[0] == y->size[0] && a->size[1] == y->size[1] && a->size[2] == b->size[1] && b->size[2] == y->size[2]);
  ASK((a->stride[2] == 1 || a->size[2] == 1) && (y->stride[2] == 1 || y->size[2] == 1));
  ASK(scratch->count >= packed_floats(b->size[2], b->size[1]));
  return OK;
}
static int run_matmul(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(2);
  const Tensor *a = T(0), *b = T(1), *y = T(2);
  float *packed = F(3);
  for (int i = 0; i < y->size[0]; i++) {
    if (i == 0 || b->stride[0]) {
      wr_pack_panels(F(1) + (ptrdiff_t)i * b->stride[0], packed, b->size[2], b->size[1], b->stride[2], b->stride[1]);
      LAP(vm, w, FIRST_PART);
    }
    wr_gemm(F(0) + (ptrdiff_t)i * a->stride[0], packed, NULL, F(2) + (ptrdiff_t)i * y->stride[0], a->size[1], b->size[2], a->size[2], a->stride[1], y->stride[1], ACT_NONE, 0, 0);
    LAP(vm, w, SECOND_PART);
  }
  return OK;
}

/* --- recurrent cells ------------------------------------------------------------------------------------------------- */

/* activations: a byte each; params: clip, then alpha and beta for each */
static int check_activations(Vm *vm, int32_t params, int32_t acts, int count) {
  ASK(is_vector(vm->tensor + params, 1 + 2 * count));
  for (int i = 0; i < count; i++) ASK((acts >> 8 * i & 255) <= ACT_SOFTPLUS);
  return OK;
}
/* [rows, width] without gaps */
INLINE int is_block(const Tensor *t, int32_t rows, int64_t width) { return is_dense(t, 2) && t->size[0] == rows && t->size[1] == width; }

static int check_rnn_cell(Vm *vm, const int32_t *w) {
  const Tensor *y = T(2);
  ASK(is_dense(y, 2) && is_block(T(0), y->size[0], y->size[1]) && is_block(T(1), y->size[0], y->size[1]));
  return check_activations(vm, w[3], w[4], 1);
}
static int run_rnn_cell(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(2);
  wr_rnn_cell(F(0), F(1), F(2), T(2)->size[0], T(2)->size[1], w[4], F(3));
  return OK;
}

static int check_gru_cell(Vm *vm, const int32_t *w) {
  const Tensor *y = T(3);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(0), rows, 3 * (int64_t)hidden) && is_block(T(1), rows, 3 * (int64_t)hidden) && is_block(T(2), rows, hidden));
  return check_activations(vm, w[4], w[5], 2);
}
static int run_gru_cell(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  wr_gru_cell(F(0), F(1), F(2), F(3), T(3)->size[0], T(3)->size[1], w[5], F(4));
  return OK;
}

static int check_gru_reset(Vm *vm, const int32_t *w) {
  const Tensor *z = T(3);
  ASK(is_dense(z, 2));
  const int32_t rows = z->size[0], hidden = z->size[1];
  ASK(is_block(T(0), rows, 3 * (int64_t)hidden) && is_block(T(1), rows, 2 * (int64_t)hidden) && is_block(T(2), rows, hidden) && is_block(T(4), rows, hidden));
  return check_activations(vm, w[5], w[6], 2);
}
static int run_gru_reset(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  wr_gru_reset(F(0), F(1), F(2), F(3), F(4), T(3)->size[0], T(3)->size[1], w[6], F(5));
  return OK;
}

static int check_gru_update(Vm *vm, const int32_t *w) {
  const Tensor *y = T(4);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(0), rows, 3 * (int64_t)hidden) && is_block(T(1), rows, hidden) && is_block(T(2), rows, hidden) && is_block(T(3), rows, hidden));
  return check_activations(vm, w[5], w[6], 2);
}
static int run_gru_update(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(4);
  wr_gru_update(F(0), F(1), F(2), F(3), F(4), T(4)->size[0], T(4)->size[1], w[6], F(5));
  return OK;
}

static int check_lstm_cell(Vm *vm, const int32_t *w) {
  const Tensor *h = T(4);
  ASK(is_dense(h, 2));
  const int32_t rows = h->size[0], hidden = h->size[1];
  ASK(is_block(T(0), rows, 4 * (int64_t)hidden) && is_block(T(1), rows, 4 * (int64_t)hidden) && is_block(T(2), rows, hidden) && is_block(T(5), rows, hidden));
  ASK(w[3] < 0 || (fits(3 * (int64_t)hidden) && is_vector(T(3), 3 * hidden)));
  return check_activations(vm, w[6], w[7], 3);
}
static int run_lstm_cell(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(4);
  wr_lstm_cell(F(0), F(1), F(2), MAYBE(3), F(4), F(5), T(4)->size[0], T(4)->size[1], w[8], w[7], F(6));
  return OK;
}

/* Whole sequences: the same kernels in the same order as the loop of a product and a cell. */
typedef struct {
  const Tensor *xw, *packed, *h0, *scratch, *final, *trace;
  const float *bias;
  int32_t steps, rows, hidden, gates;
} Sequence;

static int check_sequence(Vm *vm, const Sequence *s, int32_t bias) {
  const Tensor *xw = s->xw;
  const int64_t width = (int64_t)s->gates * s->hidden;
  ASK(is_f32(xw, 3) && xw->size[1] == s->rows && xw->size[2] == width && fits(width));
  ASK((xw->stride[2] == 1 || width == 1) && (xw->stride[1] == width || s->rows == 1));
  ASK(is_dense(s->packed, 1) && s->packed->count >= packed_floats(width, s->hidden));
  ASK(bias < 0 || is_vector(vm->tensor + bias, (int32_t)width));
  ASK(is_block(s->h0, s->rows, s->hidden) && is_block(s->scratch, s->rows, width));
  const Tensor *y = s->trace;
  ASK(!y || (is_f32(y, 3) && y->size[0] == s->steps && y->size[1] == s->rows && y->size[2] == s->hidden));
  ASK(!y || ((y->stride[2] == 1 || s->hidden == 1) && (y->stride[1] == s->hidden || s->rows == 1)));
  return OK;
}

/* the recurrent product of step t */
static const float *project(const Sequence *s, const float *h, int t) {
  float *hw = (float *)s->scratch->data;
  const float *packed = (float *)s->packed->data;
  const int32_t width = s->gates * s->hidden;
  matmul_in_step(h, s->hidden, packed, s->rows, s->hidden, (Output){hw, width, s->bias, NULL, width}, t);
  return hw;
}
INLINE const float *input_at(const Sequence *s, int t) { return (float *)s->xw->data + (ptrdiff_t)t * s->xw->stride[0]; }
INLINE float *output_at(const Sequence *s, int t) {
  return s->trace ? (float *)s->trace->data + (ptrdiff_t)t * s->trace->stride[0] : (float *)s->final->data;
}
static void finish(const Sequence *s, const float *h) {
  if (h != (float *)s->final->data && s->final->count) __builtin_memmove(s->final->data, h, (size_t)s->final->count * sizeof *h);
}

static Sequence plain_sequence(Vm *vm, const int32_t *w, int gates) {
  return (Sequence){T(0), T(1), T(3), T(4), T(5), w[6] < 0 ? NULL : T(6), MAYBE(2), T(0)->size[0], T(5)->size[0], T(5)->size[1], gates};
}
static int check_plain_sequence(Vm *vm, const int32_t *w, int gates) {
  ASK(is_f32(T(0), 3) && is_dense(T(5), 2));
  Sequence s = plain_sequence(vm, w, gates);
  int error = check_sequence(vm, &s, w[2]);
  return error ? error : check_activations(vm, w[7], w[8], gates == 1 ? 1 : 2);
}

static int check_rnn_sequence(Vm *vm, const int32_t *w) { return check_plain_sequence(vm, w, 1); }
static int run_rnn_sequence(Vm *vm, const int32_t *w) {
  CHARGE_LOOP(vm, T(0)->size[0]);
  DONE_IF_EMPTY(5);
  Sequence s = plain_sequence(vm, w, 1);
  const float *h = (float *)s.h0->data, *params = F(7);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, w, FIRST_PART);
    wr_rnn_cell(input_at(&s, t), hw, y, s.rows, s.hidden, w[8], params);
    LAP(vm, w, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

static int check_gru_sequence(Vm *vm, const int32_t *w) { return check_plain_sequence(vm, w, 3); }
static int run_gru_sequence(Vm *vm, const int32_t *w) {
  CHARGE_LOOP(vm, T(0)->size[0]);
  DONE_IF_EMPTY(5);
  Sequence s = plain_sequence(vm, w, 3);
  const float *h = (float *)s.h0->data, *params = F(7);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, w, FIRST_PART);
    wr_gru_cell(input_at(&s, t), hw, h, y, s.rows, s.hidden, w[8], params);
    LAP(vm, w, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

static Sequence lstm_sequence(Vm *vm, const int32_t *w) {
  return (Sequence){T(0), T(1), T(3), T(6), T(7), w[9] < 0 ? NULL : T(9), MAYBE(2), T(0)->size[0], T(7)->size[0], T(7)->size[1], 4};
}
static int check_lstm_sequence(Vm *vm, const int32_t *w) {
  ASK(is_f32(T(0), 3) && is_dense(T(7), 2));
  Sequence s = lstm_sequence(vm, w);
  ASK(is_block(T(4), s.rows, s.hidden) && is_block(T(8), s.rows, s.hidden));
  ASK(w[5] < 0 || (fits(3 * (int64_t)s.hidden) && is_vector(T(5), 3 * s.hidden)));
  int error = check_sequence(vm, &s, w[2]);
  return error ? error : check_activations(vm, w[10], w[11], 3);
}
static int run_lstm_sequence(Vm *vm, const int32_t *w) {
  CHARGE_LOOP(vm, T(0)->size[0]);
  DONE_IF_EMPTY(7);
  Sequence s = lstm_sequence(vm, w);
  const float *h = (float *)s.h0->data, *peephole = MAYBE(5), *params = F(10);
  float *c = F(8);
  if (T(4)->data != T(8)->data && T(8)->count) __builtin_memmove(c, T(4)->data, (size_t)T(8)->count * sizeof *c);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, w, FIRST_PART);
    wr_lstm_cell(input_at(&s, t), hw, c, peephole, y, c, s.rows, s.hidden, w[12], w[11], params);
    LAP(vm, w, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

/* --- reductions, normalizations, windows ----------------------------------------------------------------------------- */

static void (*const REDUCE_KERNELS[])(const float *, float *, int32_t, int32_t, int32_t) = {
    wr_reduce_sum, wr_reduce_mean, wr_reduce_sum_square, wr_reduce_prod, wr_reduce_max, wr_reduce_min};

static int check_reduce(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *y = T(1);
  ASK(is_dense(x, 3) && is_dense(y, 2) && x->size[0] == y->size[0] && x->size[2] == y->size[1] && below(w[2], REDUCTION_COUNT));
  ASK(w[2] < REDUCTION_MAX || x->size[1] > 0);
  return OK;
}
static int run_reduce(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(1);
  const Tensor *x = T(0);
  REDUCE_KERNELS[w[2]](F(0), F(1), x->size[0], x->size[1], x->size[2]);
  return OK;
}

static int check_softmax(Vm *vm, const int32_t *w) {
  ASK(is_dense(T(0), 2) && is_dense(T(1), 2) && same_sizes(T(0), T(1)));
  return OK;
}
static int run_softmax(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(1);
  (w[2] ? wr_log_softmax : wr_softmax)(F(0), F(1), T(0)->size[0], T(0)->size[1]);
  return OK;
}

static int check_layer_norm(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0);
  ASK(is_dense(x, 2) && is_dense(T(3), 2) && same_sizes(x, T(3)) && is_vector(T(1), x->size[1]) && (w[2] < 0 || is_vector(T(2), x->size[1])));
  return OK;
}
static int run_layer_norm(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  wr_layer_norm(F(0), F(1), MAYBE(2), F(3), T(0)->size[0], T(0)->size[1], float_of(w[4]));
  return OK;
}

static int check_instance_norm(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0);
  ASK(is_dense(x, 3) && is_dense(T(3), 3) && same_sizes(x, T(3)) && is_vector(T(1), x->size[1]) && is_vector(T(2), x->size[1]));
  return OK;
}
static int run_instance_norm(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  wr_instance_norm(F(0), F(1), F(2), F(3), T(0)->size[0], T(0)->size[1], T(0)->size[2], float_of(w[4]));
  return OK;
}

static int check_batch_norm(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0);
  ASK(is_dense(x, 3) && is_dense(T(5), 3) && same_sizes(x, T(5)));
  for (int i = 1; i < 5; i++) ASK(is_vector(T(i), x->size[1]));
  return OK;
}
static int run_batch_norm(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(5);
  wr_batch_norm(F(0), F(1), F(2), F(3), F(4), F(5), T(0)->size[0], T(0)->size[1], T(0)->size[2], float_of(w[6]));
  return OK;
}

/* window: kernel_h, kernel_w, stride_h, stride_w, pad_top, pad_left, dilation_h, dilation_w */
static Window window_of(const Tensor *x, const Tensor *y, const int32_t *window, int32_t groups) {
  return (Window){x->size[0], x->size[1], x->size[2], x->size[3], y->size[1], y->size[2], y->size[3], window[0], window[1], window[2],
                  window[3], window[4], window[5], window[6], window[7], groups};
}
static int check_window(const Tensor *x, const Tensor *y, const int32_t *window) {
  ASK(is_dense(x, 4) && is_dense(y, 4) && x->size[0] == y->size[0]);
  for (int i = 0; i < 8; i++) ASK(window[i] >= (i == 4 || i == 5 ? 0 : 1) && window[i] < 1 << 15);
  for (int a = 0; a < 2; a++) /* positions stay in range of an int */
    ASK(fits(((int64_t)y->size[2 + a] + 1) * window[2 + a] + (int64_t)window[a] * window[6 + a] + x->size[2 + a] + window[4 + a]));
  ASK(fits((int64_t)x->size[2] * x->size[3]) && fits((int64_t)y->size[2] * y->size[3]));
  return OK;
}

static int check_conv(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *weights = T(1), *y = T(3);
  const int32_t *window = w + 5, groups = w[13];
  int error = check_window(x, y, window);
  if (error) return error;
  ASK(groups > 0 && x->size[1] % groups == 0 && y->size[1] % groups == 0);
  int64_t taps = (int64_t)(x->size[1] / groups) * window[0] * window[1];
  ASK(taps > 0 && fits(taps) && fits(taps * PANEL));
  ASK(is_dense(weights, 4) && weights->size[0] == y->size[1] && weights->size[1] == x->size[1] / groups && weights->size[2] == window[0] && weights->size[3] == window[1]);
  ASK((w[2] < 0 || is_vector(T(2), y->size[1])) && is_dense(T(4), 1) && T(4)->count >= taps * PANEL);
  return OK;
}
static int run_conv(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(3);
  Window window = window_of(T(0), T(3), w + 5, w[13]);
  wr_conv(F(0), F(1), MAYBE(2), F(3), F(4), (const int32_t *)&window);
  return OK;
}

static int check_pool(Vm *vm, const int32_t *w) {
  ASK(T(0)->rank == 4 && T(1)->rank == 4 && T(0)->size[1] == T(1)->size[1] && below(w[2], 3));
  return check_window(T(0), T(1), w + 3);
}
static int run_pool(Vm *vm, const int32_t *w) {
  DONE_IF_EMPTY(1);
  Window window = window_of(T(0), T(1), w + 3, 1);
  if (w[2] == 0) wr_max_pool(F(0), F(1), (const int32_t *)&window);
  else wr_average_pool(F(0), F(1), (const int32_t *)&window, w[2] == 2);
  return OK;
}

/* --- Fourier transforms ---------------------------------------------------------------------------------------------- */

static void (*const FFT_KERNELS[])(const float *, const float *, float *, float *, int32_t, int32_t) = {wr_rfft, wr_irfft, wr_fft, wr_ifft};

static int32_t fft_length(const Tensor *x, const Tensor *y, int32_t kind) {
  return kind == KIND_RFFT ? x->size[1] : kind == KIND_IRFFT ? y->size[1] : x->size[1] / 2;
}
static int check_fft(Vm *vm, const int32_t *w) {
  const Tensor *x = T(0), *y = T(2);
  ASK(is_dense(x, 2) && is_dense(y, 2) && x->size[0] == y->size[0] && below(w[4], KIND_COUNT));
  const int32_t n = fft_length(x, y, w[4]);
  ASK(n >= MIN_FFT && n <= MAX_FFT && (n & (n - 1)) == 0);
  const int real = w[4] == KIND_RFFT || w[4] == KIND_IRFFT;
  const int32_t spectrum = real ? n + 2 : 2 * n, m = real ? n / 2 : n;
  ASK((w[4] == KIND_RFFT || x->size[1] == spectrum) && (w[4] == KIND_IRFFT || y->size[1] == spectrum));
  ASK(is_vector(T(1), real ? 3 * m : m) && is_dense(T(3), 1) && T(3)->count >= 4 * (m + 2 * FFT_SLACK));
  return OK;
}
static int run_fft(Vm *vm, const int32_t *w) {
  FFT_KERNELS[w[4]](F(0), F(1), F(2), F(3), T(0)->size[0], fft_length(T(0), T(2), w[4]));
  return OK;
}
