/* The virtual machine: loops, branches and the dispatch of instructions. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- control --------------------------------------------------------------------------------------------------------- */

static int run_block(Vm *vm, int32_t from, int32_t to);

INLINE int is_scalar(const Tensor *t, int32_t dtype) { return t->dtype == dtype && t->count == 1; }

/* What loops left of a block have moved when it is not bound to its end; outside of all loops nothing is moved. */
static void forget_moves(Vm *vm) {
  for (int i = 0; i < vm->plan[HEADER_TENSORS]; i++) {
    Tensor *t = vm->tensor + i;
    t->low = t->high = t->inner_low = t->inner_high = 0, t->follows = -1;
  }
}

/* Sizes for which one branch does not hold may be those of the other. Outside of loops, where a block can be bound again on
 * its own, it is refused when it is taken. */
static int bind_branch(Vm *vm, const int32_t *w, int32_t at) {
  ASK(is_scalar(T(0), DTYPE_U8));
  const int32_t loops = vm->loops;
  for (int i = 0; i < 2; i++) {
    const int error = bind_block(vm, at, at + w[1 + i]);
    if (error && loops) return error;
    if (error) forget_moves(vm), vm->doubtful = 1, vm->loops = 0;
    at += w[1 + i];
  }
  return OK;
}

/* `sound` names a block by its start, which an empty one may share with another. */
static int bind_again(Vm *vm, int32_t from, int32_t to) {
  if (!vm->doubtful || vm->loops || vm->sound == from || from == to) return OK;
  const int error = bind_block(vm, from, to);
  if (error) {
    forget_moves(vm), vm->loops = 0;
    return error;
  }
  vm->where = -1, vm->sound = from;
  return OK;
}

static int run_branch(Vm *vm, const int32_t *w, int32_t at) {
  const int taken = *T(0)->data;
  const int32_t from = taken ? at : at + w[1], to = taken ? at + w[1] : at + w[1] + w[2];
  const int error = bind_again(vm, from, to);
  LAP(vm, w, taken ? FIRST_PART : SECOND_PART);
  return error ? error : run_block(vm, from, to);
}

/* How far a move takes a tensor in `steps` steps; what is farther than any buffer is long is as good as infinite. */
static int64_t reach_of(const Vm *vm, const int32_t *move, int64_t steps) {
  const int64_t after = vm->size[move[2]], moved = steps - 1 - (after > 0 ? after : 0);
  const int64_t reach = moved > 0 ? moved * vm->size[move[1]] : 0, limit = (int64_t)1 << 34;
  return reach < -limit ? -limit : reach > limit ? limit : reach;
}
static void bind_reach(Tensor *t, int64_t reach, int sign) {
  *(reach < 0 ? &t->low : &t->high) += sign * reach;
  if (t->follows >= 0) *(reach < 0 ? &t->inner_low : &t->inner_high) += sign * reach;
}

/* A tensor follows in one loop at a time, and follows one that does not; it is not moved in another way by the same loop. */
static int bind_moves(Vm *vm, const Loop *l, int64_t steps, int32_t loop) {
  for (int i = 0; i < l->moves; i++) {
    const int32_t *m = l->move + 3 * i;
    Tensor *t = vm->tensor + m[0];
    if (m[1] >= 0) bind_reach(t, reach_of(vm, m, steps), 1), t->moved_by = loop;
  }
  for (int i = 0; i < l->moves; i++) {
    const int32_t *m = l->move + 3 * i;
    Tensor *t = vm->tensor + m[0];
    const Tensor *followed = vm->tensor + m[2];
    if (m[1] >= 0) continue;
    ASK(t->follows < 0 && t->moved_by != loop && t->dtype == followed->dtype && same_sizes(t, followed));
    for (int a = 0; a < t->rank; a++) ASK(t->stride[a] == followed->stride[a] || t->size[a] <= 1);
    t->follows = m[2];
  }
  for (int i = 0; i < l->moves; i++)
    if (l->move[3 * i + 1] < 0) ASK(vm->tensor[l->move[3 * i + 2]].follows < 0);
  return OK;
}
static void unbind_moves(Vm *vm, const Loop *l, int64_t steps) {
  for (int i = 0; i < l->moves; i++) {
    const int32_t *m = l->move + 3 * i;
    Tensor *t = vm->tensor + m[0];
    if (m[1] >= 0) bind_reach(t, reach_of(vm, m, steps), -1);
    else t->follows = -1, t->inner_low = t->inner_high = 0;
  }
}

static int bind_scalar(const Vm *vm, int32_t tensor, int written) {
  if (tensor < 0) return OK;
  ASK(vm->tensor[tensor].count == 1);
  return bind_access(vm, tensor, written);
}

static int bind_steps(Vm *vm, const int32_t *w, int32_t at) {
  const Loop l = loop_of(w);
  const int64_t most = vm->size[l.most], steps = l.steps < 0 ? most : vm->size[l.steps];
  ASK(most >= 0 && steps >= 0 && steps <= most);
  int error;
  if ((error = bind_scalar(vm, l.steps_tensor, 0)) || (error = bind_scalar(vm, l.condition, 0)) || (error = bind_scalar(vm, l.taken, 1))) return error;
  if (!steps) return bind_block(vm, at + l.body, at + l.body + l.epilogue);
  if ((error = bind_moves(vm, &l, steps, at))) return error;
  if ((error = bind_scalar(vm, l.body_condition, 0)) || (error = bind_scalar(vm, l.iteration, 1)) || (error = bind_scalar(vm, l.taken, 1))) return error;
  if ((error = bind_block(vm, at, at + l.body)) || (error = bind_block(vm, at + l.body, at + l.body + l.epilogue))) return error;
  unbind_moves(vm, &l, steps);
  return OK;
}

static int bind_loop(Vm *vm, const int32_t *w, int32_t at) {
  vm->loops++;
  const int error = bind_steps(vm, w, at);
  if (!error) vm->loops--;
  return error;
}

/* Between steps tensors move, first those that follow another, to where that one stands now. Behind the last step only these
 * do: the epilogue finds all others where that step has left them. */
INLINE void move_on(Vm *vm, const Loop *l, int32_t step, int is_last) {
  for (int i = 0; i < l->moves; i++) {
    const int32_t *m = l->move + 3 * i;
    if (m[1] < 0) vm->tensor[m[0]].data = vm->tensor[m[2]].data;
  }
  for (int i = 0; !is_last && i < l->moves; i++) {
    const int32_t *m = l->move + 3 * i;
    Tensor *t = vm->tensor + m[0];
    if (m[1] >= 0 && step >= vm->size[m[2]]) t->data += (ptrdiff_t)vm->size[m[1]] * ITEM[t->dtype];
  }
}

/* `strict` of a loop: whether it can be asked for more steps than `most`, and whether that is wrong from the start (its
 * operands have no more elements) or once they have been taken. CHUNKS: its steps are chunks of a loop of `most` steps, for which
 * the instructions inside are charged; a chunk in which none is counts as a step. */
enum { EXACT, UNLIMITED, LIMITED, CHUNKS };

static int run_steps(Vm *vm, const Loop *l, int32_t at) {
  const int64_t most = vm->size[l->most];
  int64_t steps = l->steps < 0 ? most : vm->size[l->steps], asked = l->strict == UNLIMITED ? INT64_MAX : steps, taken = 0;
  if (l->steps_tensor >= 0) {
    asked = *(const int64_t *)vm->tensor[l->steps_tensor].data;
    REQUIRE(l->strict != LIMITED || asked <= most, TOO_MANY_STEPS);
    if (asked < steps) steps = asked < 0 ? 0 : asked;
  }
  int going = l->condition < 0 || *vm->tensor[l->condition].data;
  const int is_open = l->body_condition >= 0; /* charged step by step */
  if (l->strict == CHUNKS) REQUIRE(most <= vm->budget.loop_steps, OVER_LOOP_STEPS);
  else if (!is_open && going && asked > 0) CHARGE_LOOP(vm, asked);
  for (; going && taken < steps; taken++) {
    if (is_open) {
      REQUIRE(taken < vm->budget.loop_steps, OVER_LOOP_STEPS);
      REQUIRE(vm->budget.steps_left > 0, OVER_RUN_STEPS);
      vm->budget.steps_left--;
    }
    if (l->iteration >= 0) *(int64_t *)vm->tensor[l->iteration].data = taken;
    LAP(vm, l->move - LOOP_WORDS, FIRST_PART);
    vm->step = (int32_t)taken;
    const int64_t steps_left = vm->budget.steps_left;
    int error = run_block(vm, at, at + l->body);
    if (error) return error;
    if (l->strict == CHUNKS && vm->budget.steps_left == steps_left) CHARGE_LOOP(vm, 1);
    if (l->body_condition >= 0) going = *vm->tensor[l->body_condition].data;
    move_on(vm, l, (int32_t)taken, !going || taken + 1 >= steps);
    REQUIRE(l->body || !is_time_up(vm), OVER_SECONDS); /* the instructions of a body have looked at the time */
  }
  if (l->taken >= 0) *(int64_t *)vm->tensor[l->taken].data = taken;
  REQUIRE(!going || taken >= asked, LOOP_LIMIT);
  LAP(vm, l->move - LOOP_WORDS, SECOND_PART);
  return run_block(vm, at + l->body, at + l->body + l->epilogue);
}

static int run_loop(Vm *vm, const int32_t *w, int32_t at) {
  Loop l = loop_of(w);
  char **saved = vm->saved + l.first_move;
  for (int i = 0; i < l.moves; i++) saved[i] = vm->tensor[l.move[3 * i]].data;
  vm->loops++;
  int error = run_steps(vm, &l, at);
  vm->loops--;
  for (int i = 0; i < l.moves; i++) vm->tensor[l.move[3 * i]].data = saved[i];
  return error;
}

/* --- dispatch -------------------------------------------------------------------------------------------------------- */

#define CHECK_CASE(name) case I_##name: error = check_##name(vm, w + 2); break;
#define RUN_CASE(name) case I_##name: error = run_##name(vm, w + 2); break;
#define SIMPLE(X) X(require) X(copy) X(fill) X(gather) X(gemm) X(matmul) X(rnn_cell) X(gru_cell) X(gru_reset) X(gru_update) X(lstm_cell) \
  X(rnn_sequence) X(gru_sequence) X(lstm_sequence) X(reduce) X(softmax) X(layer_norm) X(instance_norm) X(batch_norm) X(conv) X(pool) \
  X(fft)

static int bind_block(Vm *vm, int32_t from, int32_t to) {
  for (int32_t at = from; at < to;) {
    const int32_t *w = vm->code + at;
    int error = w[0] == I_loop ? OK : bind_accesses(vm, w);
    vm->where = at;
    at += 2 + w[1];
    if (error) return error;
    switch (w[0]) {
      SIMPLE(CHECK_CASE)
    case I_sizes: error = check_sizes_operands(vm, w + 2, w[1]); break;
    case I_expression: error = check_expression_operands(vm, w + 2); break;
    case I_branch: error = bind_branch(vm, w + 2, at), at += w[3] + w[4]; break;
    case I_loop: error = bind_loop(vm, w + 2, at), at += w[2 + 9] + w[2 + 10]; break;
    }
    if (error) return error;
  }
  return OK;
}

static int run_block(Vm *vm, int32_t from, int32_t to) {
  for (int32_t at = from; at < to;) {
    const int32_t *w = vm->code + at;
    int error = OK;
    const int32_t here = at;
    at += 2 + w[1];
    switch (w[0]) {
      SIMPLE(RUN_CASE)
    case I_sizes: error = run_sizes(vm, w + 2, w[1]); break;
    case I_expression: error = run_expression(vm, w + 2); break;
    case I_branch: error = run_branch(vm, w + 2, at), at += w[3] + w[4]; break;
    case I_loop: error = run_loop(vm, w + 2, at), at += w[2 + 9] + w[2 + 10]; break;
    }
    if (error) {
      if (vm->where < 0) vm->where = here;
      return error;
    }
    LAP(vm, w + 2, WHOLE);
    if (is_time_up(vm)) {
      if (!from) vm->where = here; /* elsewhere the loop around it is named */
      return OVER_SECONDS;
    }
  }
  return OK;
}

/* externals: one address for each external buffer */
int32_t wr_plan_run(uint8_t *tables, uint8_t *arena, const uint8_t *externals) {
  Vm *vm = (Vm *)tables;
  char *const *addresses = (char *const *)externals;
  if (!is_placed(vm, (const char *)arena, addresses)) place(vm, (char *)arena, addresses);
  vm->where = -1, vm->step = vm->loops = 0;
  start_budget(&vm->budget);
  return run_block(vm, 0, vm->plan[HEADER_CODE_WORDS]);
}

/* The same again and again, for timing: a call into wasm costs more than a short run. */
int32_t wr_plan_repeat(uint8_t *tables, uint8_t *arena, const uint8_t *externals, int32_t times) {
  int32_t error = OK;
  for (int32_t i = 0; i < times && !error; i++) error = wr_plan_run(tables, arena, externals);
  return error;
}
