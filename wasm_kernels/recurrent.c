/* Products with packed weights and recurrent cells, step by step and for whole sequences. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- products -------------------------------------------------------------------------------------------------------- */

/* m rows of Y = X W^T + bias, k terms each, in step `step` of a loop */
typedef struct {
  const float *x;
  ptrdiff_t x_stride;
  const float *w;
  int32_t m, k, step;
  Output out;
} Product;

#ifdef HAS_TEAM
/* Rows and columns of a product that are not parted: the rows of any tile, and its panels */
enum { ROWS_TOGETHER = 24 };
INLINE int32_t columns_together(const Product *p) { return p->m == 1 || VL == 16 ? 2 * PANEL : PANEL; }

static int product_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const Product *p = context;
  const int32_t row = from * ROWS_TOGETHER, end = to * ROWS_TOGETHER < p->m ? to * ROWS_TOGETHER : p->m;
  matmul_in_step(p->x + row * p->x_stride, p->x_stride, p->w, end - row, p->k, shifted(p->out, row, 0), p->step);
  return OK;
}
static int product_columns(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const Product *p = context;
  const int32_t unit = columns_together(p), col = from * unit;
  Output out = shifted(p->out, 0, col);
  if (to * unit < p->out.cols) out.cols = to * unit - col;
  matmul_in_step(p->x, p->x_stride, p->w + (ptrdiff_t)col * p->k, p->m, p->k, out, p->step);
  return OK;
}
#endif
/* Few rows are parted by columns: no thread reads the weights of another. */
static void multiply(Vm *vm, const Product *p) {
#ifdef HAS_TEAM
  const int64_t work = (int64_t)p->m * p->k * p->out.cols;
  const int32_t columns = (p->out.cols - 1) / columns_together(p) + 1;
  const int32_t rows = (p->m - 1) / ROWS_TOGETHER + 1;
  if (columns >= 4 || columns > rows) share(vm, product_columns, p, columns, 1, work);
  else share(vm, product_rows, p, rows, 1, work);
#else
  (void)vm;
  matmul_in_step(p->x, p->x_stride, p->w, p->m, p->k, p->out, p->step);
#endif
}

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
  multiply(vm, &(Product){F(x), x->stride[0], F(packed), x->size[0], x->size[1], vm->step, out});
  return OK;
}

/* --- recurrent cells ------------------------------------------------------------------------------------------------- */

/* Multiply-adds that take as long as a gate of one unit */
enum { GATE_WORK = 16 };

/* activations: a byte each; params: clip, then alpha and beta for each */
static int check_activations(Vm *vm, int32_t params, int32_t acts, int count) {
  ASK(is_vector(vm->tensor + params, 1 + 2 * count));
  NO_VECTORS for (int i = 0; i < count; i++) ASK((acts >> 8 * i & 255) < ACT_COUNT);
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
static int rnn_cell_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const rnn_cell_operands *o = context;
  const int32_t hidden = T(y)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_rnn_cell(F(xw) + at, F(hw) + at, F(y) + at, to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_rnn_cell(Vm *vm, const rnn_cell_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, rnn_cell_rows, o, T(y)->size[0], 1, T(y)->count * (int64_t)(1 * GATE_WORK));
}

static int check_gru_cell(Vm *vm, const gru_cell_operands *o) {
  const Tensor *y = T(y);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hw), rows, 3 * (int64_t)hidden) && is_block(T(h), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_cell_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_cell_operands *o = context;
  const int32_t hidden = T(y)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_cell(F(xw) + 3 * at, F(hw) + 3 * at, F(h) + at, F(y) + at, to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_cell(Vm *vm, const gru_cell_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, gru_cell_rows, o, T(y)->size[0], 1, T(y)->count * (int64_t)(3 * GATE_WORK));
}

static int check_gru_reset(Vm *vm, const gru_reset_operands *o) {
  const Tensor *z = T(z);
  ASK(is_dense(z, 2));
  const int32_t rows = z->size[0], hidden = z->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hw), rows, 2 * (int64_t)hidden) &&
      is_block(T(h), rows, hidden) && is_block(T(rh), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_reset_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_reset_operands *o = context;
  const int32_t hidden = T(z)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_reset(F(xw) + 3 * at, F(hw) + 2 * at, F(h) + at, F(z) + at, F(rh) + at, to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_reset(Vm *vm, const gru_reset_operands *o) {
  DONE_IF_EMPTY(z);
  return share(vm, gru_reset_rows, o, T(z)->size[0], 1, T(z)->count * (int64_t)(2 * GATE_WORK));
}

static int check_gru_update(Vm *vm, const gru_update_operands *o) {
  const Tensor *y = T(y);
  ASK(is_dense(y, 2));
  const int32_t rows = y->size[0], hidden = y->size[1];
  ASK(is_block(T(xw), rows, 3 * (int64_t)hidden) && is_block(T(hn), rows, hidden) && is_block(T(z), rows, hidden) &&
      is_block(T(h), rows, hidden));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_update_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_update_operands *o = context;
  const int32_t hidden = T(y)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_update(F(xw) + 3 * at, F(hn) + at, F(z) + at, F(h) + at, F(y) + at, to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_update(Vm *vm, const gru_update_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, gru_update_rows, o, T(y)->size[0], 1, T(y)->count * (int64_t)(1 * GATE_WORK));
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
static int lstm_cell_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const lstm_cell_operands *o = context;
  const int32_t hidden = T(h)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_lstm_cell(F(xw) + 4 * at, F(hw) + 4 * at, F(c) + at, MAYBE(peephole), F(h) + at, F(c_next) + at, to - from, hidden,
               o->couple, o->activations, F(params));
  return OK;
}
static int run_lstm_cell(Vm *vm, const lstm_cell_operands *o) {
  DONE_IF_EMPTY(h);
  return share(vm, lstm_cell_rows, o, T(h)->size[0], 1, T(h)->count * (int64_t)(4 * GATE_WORK));
}

/* --- whole sequences: the same kernels in the same order as the loop of a product and a cell ------------------------------- */

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

#define SEQUENCE(count)                                                                                                \
  ((Sequence){T(xw), T(packed), T(h), T(scratch), T(final), HAS(trace) ? T(trace) : NULL, MAYBE(bias), T(xw)->size[0], \
              T(final)->size[0], T(final)->size[1], count})

/* What follows the recurrent product of a step. `c` is the state of an LSTM, NULL for others. */
typedef struct {
  int32_t cell, activations, couple;
  const float *params, *peephole;
  float *c;
} Cell;

/* A step of some rows, of which `first` is the number of the first one */
typedef struct {
  const Cell *cell;
  const float *xw, *hw, *h;
  float *y;
  ptrdiff_t first;
  int32_t hidden, gates;
} CellStep;

static int cell_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  (void)vm;
  const CellStep *s = context;
  const Cell *cell = s->cell;
  const ptrdiff_t at = (ptrdiff_t)from * s->hidden, wide = at * s->gates;
  const float *xw = s->xw + wide, *hw = s->hw + wide;
  float *y = s->y + at, *c = cell->c ? cell->c + s->first * s->hidden + at : NULL;
  if (cell->cell == CELL_RNN) wr_rnn_cell(xw, hw, y, to - from, s->hidden, cell->activations, cell->params);
  else if (cell->cell == CELL_GRU) wr_gru_cell(xw, hw, s->h + at, y, to - from, s->hidden, cell->activations, cell->params);
  else wr_lstm_cell(xw, hw, c, cell->peephole, y, c, to - from, s->hidden, cell->couple, cell->activations, cell->params);
  return OK;
}

/* All steps of some rows, which do not depend on the others. project: the recurrent product of step t, hw = h W^T + bias */
typedef void Project(Vm *vm, const void *context, const float *h, float *hw, int32_t rows, int32_t t);

INLINE int run_rows(Vm *vm, const void *o, const Sequence *s, const Cell *cell, Project *project, const void *context,
                    ptrdiff_t first, int32_t rows) {
  (void)o;
  const ptrdiff_t width = (ptrdiff_t)s->gates * s->hidden;
  const float *h = (const float *)s->h0->data + first * s->hidden;
  float *hw = (float *)s->scratch->data + first * width, *final = (float *)s->final->data + first * s->hidden;
  for (int32_t t = 0; t < s->steps; t++) {
    const float *xw = (const float *)s->xw->data + (ptrdiff_t)t * s->xw->stride[0] + first * width;
    float *y = s->trace ? (float *)s->trace->data + (ptrdiff_t)t * s->trace->stride[0] + first * s->hidden : final;
    project(vm, context, h, hw, rows, t);
    LAP(vm, o, FIRST_PART);
    share(vm, cell_rows, &(CellStep){cell, xw, hw, h, y, first, s->hidden, s->gates}, rows, 1, rows * width * GATE_WORK);
    LAP(vm, o, SECOND_PART);
    h = y;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  if (h != final) __builtin_memmove(final, h, (size_t)rows * (size_t)s->hidden * sizeof *h);
  return OK;
}

/* Rows that are worth a thread of their own, which reads all weights */
enum { LEAST_SEQUENCES = VL == 16 ? 4 : 8 };

typedef struct {
  const void *operands;
  Sequence s;
  Cell cell;
} PlainSequence;

static void project_plain(Vm *vm, const void *context, const float *h, float *hw, int32_t rows, int32_t t) {
  const Sequence *s = &((const PlainSequence *)context)->s;
  const int32_t width = s->gates * s->hidden;
  multiply(vm, &(Product){h, s->hidden, (const float *)s->packed->data, rows, s->hidden, t, {hw, width, s->bias, NULL, width}});
}
NOINLINE int plain_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const PlainSequence *p = context;
  return run_rows(vm, p->operands, &p->s, &p->cell, project_plain, p, from, to - from);
}
static int run_plain_sequence(Vm *vm, const PlainSequence *p) {
  const Sequence *s = &p->s;
  const int64_t work = (int64_t)s->steps * s->rows * s->gates * s->hidden * s->hidden;
  return share(vm, plain_rows, p, s->rows, LEAST_SEQUENCES, work);
}

static Sequence plain_sequence(Vm *vm, const rnn_sequence_operands *o, int gates) { return SEQUENCE(gates); }
static int check_plain_sequence(Vm *vm, const rnn_sequence_operands *o, int gates) {
  ASK(T(xw)->rank == 3 && is_dense(T(final), 2));
  Sequence s = plain_sequence(vm, o, gates);
  ASK(has_panels(&s));
  int error = check_sequence(vm, &s, o->bias);
  return error ? error : check_activations(vm, o->params, o->activations, gates == 1 ? 1 : 2);
}
COMPACT static int run_rnn_or_gru(Vm *vm, const rnn_sequence_operands *o, int32_t cell, int gates) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  return run_plain_sequence(vm, &(PlainSequence){o, SEQUENCE(gates), {cell, o->activations, 0, F(params), NULL, NULL}});
}

static int check_rnn_sequence(Vm *vm, const rnn_sequence_operands *o) { return check_plain_sequence(vm, o, 1); }
static int run_rnn_sequence(Vm *vm, const rnn_sequence_operands *o) { return run_rnn_or_gru(vm, o, CELL_RNN, 1); }

static int check_gru_sequence(Vm *vm, const gru_sequence_operands *o) { return check_plain_sequence(vm, o, 3); }
static int run_gru_sequence(Vm *vm, const gru_sequence_operands *o) { return run_rnn_or_gru(vm, o, CELL_GRU, 3); }

static Sequence lstm_sequence(Vm *vm, const lstm_sequence_operands *o) { return SEQUENCE(4); }
static int check_lstm_sequence(Vm *vm, const lstm_sequence_operands *o) {
  ASK(T(xw)->rank == 3 && is_dense(T(final), 2));
  Sequence s = lstm_sequence(vm, o);
  ASK(has_panels(&s) && is_block(T(c), s.rows, s.hidden) && is_block(T(c_final), s.rows, s.hidden));
  ASK(!HAS(peephole) || (fits(3 * (int64_t)s.hidden) && is_vector(T(peephole), 3 * s.hidden)));
  int error = check_sequence(vm, &s, o->bias);
  return error ? error : check_activations(vm, o->params, o->activations, 3);
}
/* The state c goes on where it ends. */
static float *begin_c(const Tensor *c, const Tensor *c_final) {
  if (c->data != c_final->data) __builtin_memmove(c_final->data, c->data, (size_t)c_final->count * sizeof(float));
  return (float *)c_final->data;
}
COMPACT static int run_lstm_sequence(Vm *vm, const lstm_sequence_operands *o) {
  CHARGE_LOOP(vm, T(xw)->size[0]);
  DONE_IF_EMPTY(final);
  const Cell cell = {CELL_LSTM, o->activations, o->couple, F(params), MAYBE(peephole), begin_c(T(c), T(c_final))};
  return run_plain_sequence(vm, &(PlainSequence){o, SEQUENCE(4), cell});
}
