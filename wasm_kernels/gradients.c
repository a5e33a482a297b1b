/* Instructions of gradients: the pullbacks of recurrent cells. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* Rows of `gates` gates each, as many as a state of this size has */
INLINE int has_gates(const Tensor *t, const Tensor *state, int gates) {
  return is_block(t, state->size[0], gates * (int64_t)state->size[1]);
}
#define FROM(name, gates) (F(name) + (gates) * at)

static int check_rnn_cell_backward(Vm *vm, const rnn_cell_backward_operands *o) {
  const Tensor *d = T(d);
  ASK(is_dense(d, 2) && has_gates(T(xw), d, 1) && has_gates(T(hw), d, 1) && has_gates(T(d_next), d, 1));
  return check_activations(vm, o->params, o->activations, 1);
}
static int rnn_cell_backward_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const rnn_cell_backward_operands *o = context;
  const int32_t hidden = T(d)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_rnn_cell_backward(FROM(xw, 1), FROM(hw, 1), FROM(d_next, 1), FROM(d, 1), to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_rnn_cell_backward(Vm *vm, const rnn_cell_backward_operands *o) {
  DONE_IF_EMPTY(d);
  return share(vm, rnn_cell_backward_rows, o, T(d)->size[0], 1, T(d)->count * (int64_t)(2 * GATE_WORK));
}

static int check_gru_cell_backward(Vm *vm, const gru_cell_backward_operands *o) {
  const Tensor *d = T(d_h);
  ASK(is_dense(d, 2) && has_gates(T(xw), d, 3) && has_gates(T(hw), d, 3) && has_gates(T(h), d, 1));
  ASK(has_gates(T(d_next), d, 1) && has_gates(T(d_xw), d, 3) && has_gates(T(d_hw), d, 3));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_cell_backward_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_cell_backward_operands *o = context;
  const int32_t hidden = T(d_h)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_cell_backward(FROM(xw, 3), FROM(hw, 3), FROM(h, 1), FROM(d_next, 1), FROM(d_xw, 3), FROM(d_hw, 3), FROM(d_h, 1),
                       to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_cell_backward(Vm *vm, const gru_cell_backward_operands *o) {
  DONE_IF_EMPTY(d_h);
  return share(vm, gru_cell_backward_rows, o, T(d_h)->size[0], 1, T(d_h)->count * (int64_t)(6 * GATE_WORK));
}

static int check_gru_reset_backward(Vm *vm, const gru_reset_backward_operands *o) {
  const Tensor *d = T(d_h);
  ASK(is_dense(d, 2) && has_gates(T(xw), d, 3) && has_gates(T(hw), d, 2) && has_gates(T(h), d, 1));
  ASK(has_gates(T(d_z), d, 1) && has_gates(T(d_rh), d, 1) && has_gates(T(d_xw), d, 3) && has_gates(T(d_hw), d, 2));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_reset_backward_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_reset_backward_operands *o = context;
  const int32_t hidden = T(d_h)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_reset_backward(FROM(xw, 3), FROM(hw, 2), FROM(h, 1), FROM(d_z, 1), FROM(d_rh, 1), FROM(d_xw, 3), FROM(d_hw, 2),
                        FROM(d_h, 1), to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_reset_backward(Vm *vm, const gru_reset_backward_operands *o) {
  DONE_IF_EMPTY(d_h);
  return share(vm, gru_reset_backward_rows, o, T(d_h)->size[0], 1, T(d_h)->count * (int64_t)(4 * GATE_WORK));
}

static int check_gru_update_backward(Vm *vm, const gru_update_backward_operands *o) {
  const Tensor *d = T(d_h);
  ASK(is_dense(d, 2) && has_gates(T(xw), d, 3) && has_gates(T(hn), d, 1) && has_gates(T(z), d, 1) && has_gates(T(h), d, 1));
  ASK(has_gates(T(d_next), d, 1) && has_gates(T(d_xw), d, 3) && has_gates(T(d_hn), d, 1) && has_gates(T(d_z), d, 1));
  return check_activations(vm, o->params, o->activations, 2);
}
static int gru_update_backward_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const gru_update_backward_operands *o = context;
  const int32_t hidden = T(d_h)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_gru_update_backward(FROM(xw, 3), FROM(hn, 1), FROM(z, 1), FROM(h, 1), FROM(d_next, 1), FROM(d_xw, 3), FROM(d_hn, 1),
                         FROM(d_z, 1), FROM(d_h, 1), to - from, hidden, o->activations, F(params));
  return OK;
}
static int run_gru_update_backward(Vm *vm, const gru_update_backward_operands *o) {
  DONE_IF_EMPTY(d_h);
  return share(vm, gru_update_backward_rows, o, T(d_h)->size[0], 1, T(d_h)->count * (int64_t)(2 * GATE_WORK));
}

static int check_lstm_cell_backward(Vm *vm, const lstm_cell_backward_operands *o) {
  const Tensor *d = T(d_c);
  ASK(is_dense(d, 2) && has_gates(T(xw), d, 4) && has_gates(T(hw), d, 4) && has_gates(T(c), d, 1));
  ASK(has_gates(T(d_h_next), d, 1) && has_gates(T(d_c_next), d, 1) && has_gates(T(d_gates), d, 4));
  ASK(!HAS(peephole) || (fits(3 * (int64_t)d->size[1]) && is_vector(T(peephole), 3 * d->size[1])));
  ASK(!HAS(d_peephole) || has_gates(T(d_peephole), d, 3));
  return check_activations(vm, o->params, o->activations, 3);
}
static int lstm_cell_backward_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const lstm_cell_backward_operands *o = context;
  const int32_t hidden = T(d_c)->size[1];
  const ptrdiff_t at = (ptrdiff_t)from * hidden;
  wr_lstm_cell_backward(FROM(xw, 4), FROM(hw, 4), FROM(c, 1), MAYBE(peephole), FROM(d_h_next, 1), FROM(d_c_next, 1),
                        FROM(d_gates, 4), FROM(d_c, 1), HAS(d_peephole) ? FROM(d_peephole, 3) : NULL, to - from, hidden,
                        o->couple, o->activations, F(params));
  return OK;
}
static int run_lstm_cell_backward(Vm *vm, const lstm_cell_backward_operands *o) {
  DONE_IF_EMPTY(d_c);
  return share(vm, lstm_cell_backward_rows, o, T(d_c)->size[0], 1, T(d_c)->count * (int64_t)(8 * GATE_WORK));
}
