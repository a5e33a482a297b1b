/* The instructions of the VM that work on data: one function for each, and beside it what it asks of its operands. check_<name>
 * runs once for each binding of sizes, run_<name> each time the instruction is reached. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* An operand by its name in runtime/webrnn/plan/instructions.py: as a tensor, as the floats of one, as those of one that may be
 * left out. Element types need no check: plan_check holds them to the row of the instruction. */
#define T(name) (vm->tensor + o->name)
#define F(name) ((float *)T(name)->data)
#define HAS(name) (o->name >= 0)
#define MAYBE(name) (HAS(name) ? F(name) : NULL)

INLINE int is_dense(const Tensor *t, int rank) { return t->rank == rank && t->contiguous; }
INLINE int is_vector(const Tensor *t, int32_t n) { return t->contiguous && t->count == n; }
/* rows of elements that may be apart */
INLINE int is_rows(const Tensor *t) { return t->rank == 2 && (t->stride[1] == 1 || t->size[1] == 1); }
INLINE int same_sizes(const Tensor *a, const Tensor *b) {
  int same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->size[i] == b->size[i];
  return same;
}
INLINE int fits(int64_t count) { return count >= 0 && count <= INT32_MAX; }
INLINE int64_t packed_floats(int64_t n, int64_t k) { return (n + GRAIN - 1) / GRAIN * GRAIN * k; }
#define ASK(condition) REQUIRE(condition, BAD_OPERANDS)
/* A result without elements may have any number of rows, which nobody should walk over: its other sizes need no memory. */
#define DONE_IF_EMPTY(name)         \
  do {                              \
    if (!T(name)->count) return OK; \
  } while (0)

static int check_require(Vm *vm, const require_operands *o) {
  REQUIRE(vm->size[o->size] >= 0, BAD_SIZE);
  return OK;
}
static int run_require(Vm *vm, const require_operands *o) {
  (void)vm, (void)o;
  return OK;
}

/* --- moving data ----------------------------------------------------------------------------------------------------- */

static int check_copy(Vm *vm, const copy_operands *o) {
  ASK(T(x)->dtype == T(y)->dtype && same_sizes(T(x), T(y)));
  return OK;
}
static int run_copy(Vm *vm, const copy_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  if (x->contiguous && y->contiguous) {
    if (x->count && x->data != y->data) __builtin_memmove(y->data, x->data, (size_t)x->count * (size_t)ITEM[x->dtype]);
    return OK;
  }
  int32_t layout[3 * MAX_RANK];
  for (int a = 0; a < x->rank; a++)
    layout[a] = x->size[a], layout[x->rank + a] = x->stride[a], layout[2 * x->rank + a] = y->stride[a];
  wr_copy_strided((const uint8_t *)x->data, (uint8_t *)y->data, ITEM[x->dtype], x->rank, layout);
  return OK;
}

static int check_fill(Vm *vm, const fill_operands *o) {
  ASK(T(y)->contiguous);
  return OK;
}
static int run_fill(Vm *vm, const fill_operands *o) {
  wr_fill(F(y), T(y)->count, float_of(o->value));
  return OK;
}

static int check_sizes(Vm *vm, const sizes_operands *o) {
  ASK(is_vector(T(y), list_words(sizes, o)));
  return OK;
}
static int run_sizes(Vm *vm, const sizes_operands *o) {
  for (int i = 0; i < list_words(sizes, o); i++) ((int64_t *)T(y)->data)[i] = vm->size[list_of(o)[i]];
  return OK;
}

static int check_gather(Vm *vm, const gather_operands *o) {
  const Tensor *x = T(x), *index = T(index), *y = T(y);
  ASK(x->rank == 3 && y->rank == 3 && x->dtype == y->dtype && x->contiguous && y->contiguous);
  ASK(is_vector(index, y->size[1]));
  ASK(x->size[0] == y->size[0] && x->size[2] == y->size[2] && fits((int64_t)x->size[2] * ITEM[x->dtype]));
  return OK;
}
static int run_gather(Vm *vm, const gather_operands *o) {
  const Tensor *x = T(x);
  return wr_gather((const uint8_t *)x->data, (const int64_t *)T(index)->data, (uint8_t *)T(y)->data, x->size[0], x->size[1],
                   x->size[2] * ITEM[x->dtype], T(index)->count)
             ? INDEX_RANGE
             : OK;
}

/* The last frames of a stream, as a ring has them, and behind them new ones */
typedef struct {
  const uint8_t *ring, *rows;
  ptrdiff_t first, slots, history, bytes; /* first: the slot of the first frame of the history */
} Frames;

/* A frame, or several: often few vectors, for which a call would take longer */
INLINE void copy_frames(uint8_t *to, const uint8_t *from, ptrdiff_t bytes) {
  const ptrdiff_t vector = VL * (ptrdiff_t)sizeof(float);
  if (bytes % vector || bytes > 16 * vector) {
    copy_bytes(to, from, bytes);
    return;
  }
  for (ptrdiff_t i = 0; i < bytes; i += vector) vstore((float *)(to + i), vload((const float *)(from + i)));
}

/* Copies frames; `from` is counted from the first of the history. */
INLINE uint8_t *take_frames(const Frames *f, ptrdiff_t from, ptrdiff_t count, uint8_t *to) {
  while (count > 0) {
    ptrdiff_t slot = f->first + from, run = count;
    const uint8_t *source = f->rows + (from - f->history) * f->bytes;
    if (from < f->history) {
      if (slot >= f->slots) slot -= f->slots;
      source = f->ring + slot * f->bytes;
      const ptrdiff_t old = f->history - from, unbroken = f->slots - slot;
      if (run > old) run = old;
      if (run > unbroken) run = unbroken;
    }
    copy_frames(to, source, run * f->bytes);
    to += run * f->bytes, from += run, count -= run;
  }
  return to;
}

static int check_ring(Vm *vm, const ring_operands *o) {
  const Tensor *ring = T(ring), *rows = T(rows), *next = T(next), *windows = T(windows), *position = T(position);
  ASK(is_dense(ring, 3) && is_dense(rows, 3) && is_dense(next, 3) && is_dense(windows, 3) && same_sizes(ring, next));
  ASK(ring->dtype == rows->dtype && ring->dtype == next->dtype && ring->dtype == windows->dtype);
  ASK(ring->size[0] == rows->size[0] && ring->size[2] == rows->size[2]);
  ASK(ring->size[0] == windows->size[0] && ring->size[2] == windows->size[2] &&
      fits((int64_t)ring->size[2] * ITEM[ring->dtype]));
  ASK(o->rate >= 0 && o->history >= 0 && o->history <= ring->size[1] && ring->size[1] > 0);
  ASK(o->kernel > 0 && o->dilation > 0 && o->stride > 0 && windows->size[1] % o->kernel == 0);
  ASK(position->contiguous && position->count > 0 && ring->size[0] % position->count == 0);
  const int64_t last = (int64_t)(windows->size[1] / o->kernel - 1) * o->stride + (int64_t)(o->kernel - 1) * o->dilation;
  const int64_t frames = (int64_t)o->history + rows->size[1];
  ASK(fits(frames) && last < frames);
  return OK;
}

/* Windows are taken before frames are written: the ring and the next one may be the same memory, which is not copied then. */
static int run_ring(Vm *vm, const ring_operands *o) {
  const Tensor *ring = T(ring), *position = T(position);
  const ptrdiff_t slots = ring->size[1], n = T(rows)->size[1], bytes = (ptrdiff_t)ring->size[2] * ITEM[ring->dtype];
  /* Windows that lie in the stream as they lie side by side are one. */
  const int is_run = o->dilation == 1, is_one_run = is_run && o->stride == o->kernel;
  const int32_t taps = T(windows)->size[1], kernel = is_one_run ? taps : o->kernel, run = is_run ? kernel : 1;
  Frames f = {(const uint8_t *)ring->data, (const uint8_t *)T(rows)->data, 0, slots, o->history, bytes};
  uint8_t *next = (uint8_t *)T(next)->data, *windows = (uint8_t *)T(windows)->data;
  DONE_IF_EMPTY(ring);
  for (int32_t b = 0; b < ring->size[0]; b++, f.ring += slots * bytes, f.rows += n * bytes, next += slots * bytes) {
    const int32_t which = position->count == 1 ? 0 : b / (ring->size[0] / position->count);
    const int64_t strides = ((const int64_t *)position->data)[which];
    int64_t slot = strides >= 0 && strides <= UINT32_MAX ? (uint32_t)strides % (uint32_t)slots
                                                         : strides % slots; /* 32 bits: quicker */
    if (o->rate != 1) slot = slot * o->rate % slots;
    const ptrdiff_t at = (ptrdiff_t)(slot < 0 ? slot + slots : slot);
    f.first = at - f.history + (at < f.history ? slots : 0);
    int64_t start = 0;
    for (int32_t taken = 0; taken < taps; taken += kernel, start += o->stride)
      for (int32_t k = 0; k < kernel; k += run)
        windows = take_frames(&f, (ptrdiff_t)(start + (int64_t)k * o->dilation), run, windows);
    if (next != f.ring) __builtin_memmove(next, f.ring, (size_t)(slots * bytes));
    /* Of more frames than there are slots the last ones stay. */
    const ptrdiff_t skipped = n > slots ? n - slots : 0, to = skipped ? (at + skipped) % slots : at;
    const ptrdiff_t left = n - skipped, unbroken = left < slots - to ? left : slots - to;
    if (!left) continue;
    copy_frames(next + to * bytes, f.rows + skipped * bytes, unbroken * bytes);
    if (left > unbroken) copy_bytes(next, f.rows + (skipped + unbroken) * bytes, (left - unbroken) * bytes);
  }
  return OK;
}

/* --- products -------------------------------------------------------------------------------------------------------- */

static int check_gemm(Vm *vm, const gemm_operands *o) {
  const Tensor *x = T(x), *packed = T(packed), *y = T(y);
  ASK(is_rows(x) && is_rows(y) && x->size[0] == y->size[0]);
  ASK(is_dense(packed, 1) && packed->count >= packed_floats(y->size[1], x->size[1]));
  ASK(!HAS(bias) || is_vector(T(bias), y->size[1]));
  return OK;
}
static int run_gemm(Vm *vm, const gemm_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const Output out = {(float *)y->data, y->stride[0], MAYBE(bias), NULL, y->size[1]};
  matmul_in_step(F(x), x->stride[0], F(packed), x->size[0], x->size[1], out, vm->step);
  return OK;
}

/* --- recurrent cells ------------------------------------------------------------------------------------------------- */

/* activations: a byte each; params: clip, then alpha and beta for each */
static int check_activations(Vm *vm, int32_t params, int32_t acts, int count) {
  ASK(is_vector(vm->tensor + params, 1 + 2 * count));
  for (int i = 0; i < count; i++) ASK((acts >> 8 * i & 255) < ACT_COUNT);
  return OK;
}
/* [rows, width] without gaps */
INLINE int is_block(const Tensor *t, int32_t rows, int64_t width) {
  return is_dense(t, 2) && t->size[0] == rows && t->size[1] == width;
}

static int check_rnn_cell(Vm *vm, const rnn_cell_operands *o) {
  const Tensor *y = T(y);
  ASK(is_dense(y, 2) && is_block(T(xw), y->size[0], y->size[1]) && is_block(T(hw), y->size[0], y->size[1]));
  return check_activations(vm, o->params, o->activations, 1);
}
static int run_rnn_cell(Vm *vm, const rnn_cell_operands *o) {
  DONE_IF_EMPTY(y);
  wr_rnn_cell(F(xw), F(hw), F(y), T(y)->size[0], T(y)->size[1], o->activations, F(params));
  return OK;
}

static int check_gru_cell(Vm *vm, const gru_cell_operands *o) {
  const Tensor *y = T(y);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hw), rows, 3 * (int64_t)hidden) && is_block(T(h), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int run_gru_cell(Vm *vm, const gru_cell_operands *o) {
  DONE_IF_EMPTY(y);
  wr_gru_cell(F(xw), F(hw), F(h), F(y), T(y)->size[0], T(y)->size[1], o->activations, F(params));
  return OK;
}

static int check_gru_reset(Vm *vm, const gru_reset_operands *o) {
  const Tensor *z = T(z);
  ASK(is_dense(z, 2));
  const int32_t rows = z->size[0], hidden = z->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hw), rows, 2 * (int64_t)hidden) &&
      is_block(T(h), rows, hidden) && is_block(T(rh), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int run_gru_reset(Vm *vm, const gru_reset_operands *o) {
  DONE_IF_EMPTY(z);
  wr_gru_reset(F(xw), F(hw), F(h), F(z), F(rh), T(z)->size[0], T(z)->size[1], o->activations, F(params));
  return OK;
}

static int check_gru_update(Vm *vm, const gru_update_operands *o) {
  const Tensor *y = T(y);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hn), rows, hidden) && is_block(T(z), rows, hidden) &&
      is_block(T(h), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int run_gru_update(Vm *vm, const gru_update_operands *o) {
  DONE_IF_EMPTY(y);
  wr_gru_update(F(xw), F(hn), F(z), F(h), F(y), T(y)->size[0], T(y)->size[1], o->activations, F(params));
  return OK;
}

static int check_lstm_cell(Vm *vm, const lstm_cell_operands *o) {
  const Tensor *h = T(h);
  ASK(is_dense(h, 2));
  const int32_t rows = h->size[0], hidden = h->size[1];
  ASK(is_block(T(xw), rows, 4 * (int64_t)hidden) && is_block(T(hw), rows, 4 * (int64_t)hidden) &&
      is_block(T(c), rows, hidden) && is_block(T(c_next), rows, hidden));
  ASK(!HAS(peephole) || (fits(3 * (int64_t)hidden) && is_vector(T(peephole), 3 * hidden)));
  return check_activations(vm, o->params, o->activations, 3);
}
static int run_lstm_cell(Vm *vm, const lstm_cell_operands *o) {
  DONE_IF_EMPTY(h);
  wr_lstm_cell(F(xw), F(hw), F(c), MAYBE(peephole), F(h), F(c_next), T(h)->size[0], T(h)->size[1], o->couple, o->activations,
               F(params));
  return OK;
}

/* Whole sequences: the same kernels in the same order as the loop of a product and a cell. */
typedef struct {
  const Tensor *xw, *packed, *h0, *scratch, *final, *trace;
  const float *bias;
  int32_t steps, rows, hidden, gates;
} Sequence;

/* Whether its weights are packed as the products of floats take them */
INLINE int has_panels(const Sequence *s) {
  return is_dense(s->packed, 1) && s->packed->count >= packed_floats((int64_t)s->gates * s->hidden, s->hidden);
}
static int check_sequence(Vm *vm, const Sequence *s, int32_t bias) {
  const Tensor *xw = s->xw;
  const int64_t width = (int64_t)s->gates * s->hidden;
  ASK(xw->rank == 3 && xw->size[1] == s->rows && xw->size[2] == width && fits(width));
  ASK((xw->stride[2] == 1 || width == 1) && (xw->stride[1] == width || s->rows == 1));
  ASK(bias < 0 || is_vector(vm->tensor + bias, (int32_t)width));
  ASK(is_block(s->h0, s->rows, s->hidden) && is_block(s->scratch, s->rows, width));
  const Tensor *y = s->trace;
  ASK(!y || (y->rank == 3 && y->size[0] == s->steps && y->size[1] == s->rows && y->size[2] == s->hidden));
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
  if (h != (float *)s->final->data && s->final->count)
    __builtin_memmove(s->final->data, h, (size_t)s->final->count * sizeof *h);
}

#define SEQUENCE(count)                                                                                                \
  ((Sequence){T(xw), T(packed), T(h), T(scratch), T(final), HAS(trace) ? T(trace) : NULL, MAYBE(bias), T(xw)->size[0], \
              T(final)->size[0], T(final)->size[1], count})

static Sequence plain_sequence(Vm *vm, const rnn_sequence_operands *o, int gates) { return SEQUENCE(gates); }
static int check_plain_sequence(Vm *vm, const rnn_sequence_operands *o, int gates) {
  ASK(T(xw)->rank == 3 && is_dense(T(final), 2));
  Sequence s = plain_sequence(vm, o, gates);
  ASK(has_panels(&s));
  int error = check_sequence(vm, &s, o->bias);
  return error ? error : check_activations(vm, o->params, o->activations, gates == 1 ? 1 : 2);
}

static int check_rnn_sequence(Vm *vm, const rnn_sequence_operands *o) { return check_plain_sequence(vm, o, 1); }
static int run_rnn_sequence(Vm *vm, const rnn_sequence_operands *o) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  Sequence s = plain_sequence(vm, o, 1);
  const float *h = (float *)s.h0->data, *params = F(params);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, o, FIRST_PART);
    wr_rnn_cell(input_at(&s, t), hw, y, s.rows, s.hidden, o->activations, params);
    LAP(vm, o, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

static int check_gru_sequence(Vm *vm, const gru_sequence_operands *o) { return check_plain_sequence(vm, o, 3); }
static int run_gru_sequence(Vm *vm, const gru_sequence_operands *o) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  Sequence s = plain_sequence(vm, o, 3);
  const float *h = (float *)s.h0->data, *params = F(params);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, o, FIRST_PART);
    wr_gru_cell(input_at(&s, t), hw, h, y, s.rows, s.hidden, o->activations, params);
    LAP(vm, o, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

static Sequence lstm_sequence(Vm *vm, const lstm_sequence_operands *o) { return SEQUENCE(4); }
static int check_lstm_sequence(Vm *vm, const lstm_sequence_operands *o) {
  ASK(T(xw)->rank == 3 && is_dense(T(final), 2));
  Sequence s = lstm_sequence(vm, o);
  ASK(has_panels(&s) && is_block(T(c), s.rows, s.hidden) && is_block(T(c_final), s.rows, s.hidden));
  ASK(!HAS(peephole) || (fits(3 * (int64_t)s.hidden) && is_vector(T(peephole), 3 * s.hidden)));
  int error = check_sequence(vm, &s, o->bias);
  return error ? error : check_activations(vm, o->params, o->activations, 3);
}
static int run_lstm_sequence(Vm *vm, const lstm_sequence_operands *o) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  Sequence s = lstm_sequence(vm, o);
  const float *h = (float *)s.h0->data, *peephole = MAYBE(peephole), *params = F(params);
  float *c = F(c_final);
  if (T(c)->data != T(c_final)->data && T(c_final)->count)
    __builtin_memmove(c, T(c)->data, (size_t)T(c_final)->count * sizeof *c);
  for (int t = 0; t < s.steps; t++) {
    float *y = output_at(&s, t);
    const float *hw = project(&s, h, t);
    LAP(vm, o, FIRST_PART);
    wr_lstm_cell(input_at(&s, t), hw, c, peephole, y, c, s.rows, s.hidden, o->couple, o->activations, params);
    LAP(vm, o, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  finish(&s, h);
  return OK;
}

/* --- reductions, normalizations -------------------------------------------------------------------------------------- */

#define REDUCE_KERNEL(name) wr_reduce_##name,
static void (*const REDUCE_KERNELS[])(const float *, float *, int32_t, int32_t, int32_t) = {REDUCTIONS(REDUCE_KERNEL)};

static int check_reduce(Vm *vm, const reduce_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 3) && is_dense(y, 2) && x->size[0] == y->size[0] && x->size[2] == y->size[1] &&
      below(o->kind, REDUCTION_COUNT));
  return OK;
}
static int run_reduce(Vm *vm, const reduce_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x);
  REDUCE_KERNELS[o->kind](F(x), F(y), x->size[0], x->size[1], x->size[2]);
  return OK;
}

static int check_softmax(Vm *vm, const softmax_operands *o) {
  ASK(is_dense(T(x), 2) && is_dense(T(y), 2) && same_sizes(T(x), T(y)));
  return OK;
}
static int run_softmax(Vm *vm, const softmax_operands *o) {
  DONE_IF_EMPTY(y);
  (o->logarithm ? wr_log_softmax : wr_softmax)(F(x), F(y), T(x)->size[0], T(x)->size[1]);
  return OK;
}

static int check_layer_norm(Vm *vm, const layer_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 2) && is_dense(T(y), 2) && same_sizes(x, T(y)) && is_vector(T(scale), x->size[1]) &&
      (!HAS(bias) || is_vector(T(bias), x->size[1])));
  return OK;
}
static int run_layer_norm(Vm *vm, const layer_norm_operands *o) {
  DONE_IF_EMPTY(y);
  wr_layer_norm(F(x), F(scale), MAYBE(bias), F(y), T(x)->size[0], T(x)->size[1], float_of(o->epsilon));
  return OK;
}

static int check_instance_norm(Vm *vm, const instance_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 3) && is_dense(T(y), 3) && same_sizes(x, T(y)) && is_vector(T(scale), x->size[1]) &&
      is_vector(T(bias), x->size[1]));
  return OK;
}
static int run_instance_norm(Vm *vm, const instance_norm_operands *o) {
  DONE_IF_EMPTY(y);
  wr_instance_norm(F(x), F(scale), F(bias), F(y), T(x)->size[0], T(x)->size[1], T(x)->size[2], float_of(o->epsilon));
  return OK;
}

static int check_batch_norm(Vm *vm, const batch_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 3) && is_dense(T(y), 3) && same_sizes(x, T(y)));
  ASK(is_vector(T(scale), x->size[1]) && is_vector(T(bias), x->size[1]) && is_vector(T(mean), x->size[1]) &&
      is_vector(T(variance), x->size[1]));
  return OK;
}
static int run_batch_norm(Vm *vm, const batch_norm_operands *o) {
  DONE_IF_EMPTY(y);
  wr_batch_norm(F(x), F(scale), F(bias), F(mean), F(variance), F(y), T(x)->size[0], T(x)->size[1], T(x)->size[2],
                float_of(o->epsilon));
  return OK;
}

/* --- Fourier transforms ---------------------------------------------------------------------------------------------- */

#define FFT_KERNEL(name) wr_##name,
static void (*const FFT_KERNELS[])(const float *, const float *, float *, float *, int32_t, int32_t) = {FFTS(FFT_KERNEL)};

static int32_t fft_length(const Tensor *x, const Tensor *y, int32_t kind) {
  return kind == FFT_RFFT ? x->size[1] : kind == FFT_IRFFT ? y->size[1] : x->size[1] / 2;
}
static int check_fft(Vm *vm, const fft_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 2) && is_dense(y, 2) && x->size[0] == y->size[0] && below(o->kind, FFT_COUNT));
  const int32_t n = fft_length(x, y, o->kind);
  ASK(n >= MIN_FFT && n <= MAX_FFT && (n & (n - 1)) == 0);
  const int real = o->kind == FFT_RFFT || o->kind == FFT_IRFFT;
  const int32_t spectrum = real ? n + 2 : 2 * n, m = real ? n / 2 : n;
  ASK((o->kind == FFT_RFFT || x->size[1] == spectrum) && (o->kind == FFT_IRFFT || y->size[1] == spectrum));
  ASK(is_vector(T(twiddles), real ? 3 * m : m) && is_dense(T(scratch), 1) && T(scratch)->count >= 4 * (m + 2 * FFT_SLACK));
  return OK;
}
static int run_fft(Vm *vm, const fft_operands *o) {
  FFT_KERNELS[o->kind](F(x), F(twiddles), F(y), F(scratch), T(x)->size[0], fft_length(T(x), T(y), o->kind));
  return OK;
}
