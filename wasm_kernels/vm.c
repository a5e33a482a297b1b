/* The virtual machine: loops, branches and the dispatch of instructions. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- control --------------------------------------------------------------------------------------------------------- */

static int run_block(Vm *vm, int32_t from, int32_t to);

/* What loops left of a block have moved when it is not bound to its end; outside of all loops nothing is moved. */
static void forget_moves(Vm *vm) {
  for (int i = 0; i < vm->plan[HEADER_TENSORS]; i++) {
    Tensor *t = vm->tensor + i;
    t->low = t->high = t->inner_low = t->inner_high = 0, t->follows = -1;
  }
}

/* Sizes for which one branch does not hold may be those of the other. Outside of loops, where a block can be bound again on
 * its own, it is refused when it is taken. */
static int bind_branch(Vm *vm, const branch_operands *o, int32_t at) {
  ASK(T(condition)->count == 1);
  const int32_t loops = vm->loops, words[] = {o->then, o->otherwise};
  for (int i = 0; i < 2; i++) {
    const int error = bind_block(vm, at, at + words[i]);
    if (error && loops) return error;
    if (error) forget_moves(vm), vm->doubtful = 1, vm->loops = 0;
    at += words[i];
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

static int run_branch(Vm *vm, const branch_operands *o, int32_t at) {
  const int taken = *T(condition)->data;
  const int32_t from = taken ? at : at + o->then, to = taken ? at + o->then : at + o->then + o->otherwise;
  const int error = bind_again(vm, from, to);
  LAP(vm, o, taken ? FIRST_PART : SECOND_PART);
  return error ? error : run_block(vm, from, to);
}

/* How far a move takes a tensor in `steps` steps; what is farther than any buffer is long is as good as infinite. */
static int64_t reach_of(const Vm *vm, const Move *m, int64_t steps) {
  const int64_t after = vm->size[m->last], moved = steps - 1 - (after > 0 ? after : 0);
  const int64_t reach = moved > 0 ? moved * vm->size[m->stride] : 0, limit = (int64_t)1 << 34;
  return reach < -limit ? -limit : reach > limit ? limit : reach;
}
static void bind_reach(Tensor *t, int64_t reach, int sign) {
  *(reach < 0 ? &t->low : &t->high) += sign * reach;
  if (t->follows >= 0) *(reach < 0 ? &t->inner_low : &t->inner_high) += sign * reach;
}

/* A tensor follows in one loop at a time, and follows one that does not; it is not moved in another way by the same loop. */
static int bind_moves(Vm *vm, const loop_operands *l, int64_t steps, int32_t loop) {
  const Move *moves = MOVES_OF(l);
  for (int i = 0; i < l->moves; i++) {
    const Move *m = moves + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride >= 0) bind_reach(t, reach_of(vm, m, steps), 1), t->moved_by = loop;
  }
  for (int i = 0; i < l->moves; i++) {
    const Move *m = moves + i;
    if (m->stride >= 0) continue;
    Tensor *t = vm->tensor + m->tensor;
    const Tensor *followed = vm->tensor + m->last;
    ASK(t->follows < 0 && t->moved_by != loop && t->dtype == followed->dtype && same_sizes(t, followed));
    for (int a = 0; a < t->rank; a++) ASK(t->stride[a] == followed->stride[a] || t->size[a] <= 1);
    t->follows = m->last;
  }
  for (int i = 0; i < l->moves; i++)
    if (moves[i].stride < 0) ASK(vm->tensor[moves[i].last].follows < 0);
  return OK;
}
static void unbind_moves(Vm *vm, const loop_operands *l, int64_t steps) {
  for (int i = 0; i < l->moves; i++) {
    const Move *m = MOVES_OF(l) + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride >= 0) bind_reach(t, reach_of(vm, m, steps), -1);
    else t->follows = -1, t->inner_low = t->inner_high = 0;
  }
}

static int bind_scalar(const Vm *vm, int32_t tensor, int written) {
  if (tensor < 0) return OK;
  ASK(vm->tensor[tensor].count == 1);
  return bind_access(vm, tensor, written);
}

static int bind_steps(Vm *vm, const loop_operands *l, int32_t at) {
  const int64_t most = vm->size[l->most], steps = l->steps < 0 ? most : vm->size[l->steps];
  ASK(most >= 0 && steps >= 0 && steps <= most);
  int error;
  if ((error = bind_scalar(vm, l->steps_tensor, 0)) || (error = bind_scalar(vm, l->condition, 0)) ||
      (error = bind_scalar(vm, l->taken, 1)))
    return error;
  if (!steps) return bind_block(vm, at + l->body, at + l->body + l->epilogue);
  if ((error = bind_moves(vm, l, steps, at))) return error;
  if ((error = bind_scalar(vm, l->body_condition, 0)) || (error = bind_scalar(vm, l->iteration, 1)) ||
      (error = bind_scalar(vm, l->taken, 1)))
    return error;
  if ((error = bind_block(vm, at, at + l->body)) || (error = bind_block(vm, at + l->body, at + l->body + l->epilogue)))
    return error;
  unbind_moves(vm, l, steps);
  return OK;
}

static int bind_loop(Vm *vm, const loop_operands *l, int32_t at) {
  vm->loops++;
  const int error = bind_steps(vm, l, at);
  if (!error) vm->loops--;
  return error;
}

/* Between steps tensors move, first those that follow another, to where that one stands now. Behind the last step only these
 * do: the epilogue finds all others where that step has left them. */
INLINE void move_on(Vm *vm, const loop_operands *l, int32_t step, int is_last) {
  const Move *moves = MOVES_OF(l);
  for (int i = 0; i < l->moves; i++)
    if (moves[i].stride < 0) vm->tensor[moves[i].tensor].data = vm->tensor[moves[i].last].data;
  for (int i = 0; !is_last && i < l->moves; i++) {
    const Move *m = moves + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride >= 0 && step >= vm->size[m->last]) t->data += (ptrdiff_t)vm->size[m->stride] * ITEM[t->dtype];
  }
}

/* Whether a loop can be asked for more steps than `most`, and whether that is wrong from the start (its operands have no more
 * elements) or once they have been taken, is its strictness. STEPS_CHUNKS: its steps are chunks of a loop of `most` steps, for which
 * the instructions inside are charged; a chunk in which none is counts as a step. */
static int run_steps(Vm *vm, const loop_operands *l, int32_t at) {
  const int64_t most = vm->size[l->most];
  int64_t steps = l->steps < 0 ? most : vm->size[l->steps], asked = l->strictness == STEPS_UNLIMITED ? INT64_MAX : steps,
          taken = 0;
  if (l->steps_tensor >= 0) {
    asked = *(const int64_t *)vm->tensor[l->steps_tensor].data;
    REQUIRE(l->strictness != STEPS_LIMITED || asked <= most, TOO_MANY_STEPS);
    if (asked < steps) steps = asked < 0 ? 0 : asked;
  }
  int going = l->condition < 0 || *vm->tensor[l->condition].data;
  const int is_open = l->body_condition >= 0; /* charged step by step */
  if (l->strictness == STEPS_CHUNKS) REQUIRE(most <= vm->budget.loop_steps, OVER_LOOP_STEPS);
  else if (!is_open && going && asked > 0) CHARGE_LOOP(vm, asked);
  for (; going && taken < steps; taken++) {
    if (is_open) {
      REQUIRE(taken < vm->budget.loop_steps, OVER_LOOP_STEPS);
      REQUIRE(vm->budget.steps_left > 0, OVER_RUN_STEPS);
      vm->budget.steps_left--;
    }
    if (l->iteration >= 0) *(int64_t *)vm->tensor[l->iteration].data = taken;
    LAP(vm, l, FIRST_PART);
    vm->step = (int32_t)taken;
    const int64_t steps_left = vm->budget.steps_left;
    int error = run_block(vm, at, at + l->body);
    if (error) return error;
    if (l->strictness == STEPS_CHUNKS && vm->budget.steps_left == steps_left) CHARGE_LOOP(vm, 1);
    if (l->body_condition >= 0) going = *vm->tensor[l->body_condition].data;
    move_on(vm, l, (int32_t)taken, !going || taken + 1 >= steps);
    REQUIRE(l->body || !is_time_up(vm), OVER_SECONDS); /* the instructions of a body have looked at the time */
  }
  if (l->taken >= 0) *(int64_t *)vm->tensor[l->taken].data = taken;
  REQUIRE(!going || taken >= asked, LOOP_LIMIT);
  LAP(vm, l, SECOND_PART);
  return run_block(vm, at + l->body, at + l->body + l->epilogue);
}

static int run_loop(Vm *vm, const loop_operands *l, int32_t at) {
  char **saved = vm->saved + l->first_move;
  for (int i = 0; i < l->moves; i++) saved[i] = vm->tensor[MOVES_OF(l)[i].tensor].data;
  vm->loops++;
  int error = run_steps(vm, l, at);
  vm->loops--;
  for (int i = 0; i < l->moves; i++) vm->tensor[MOVES_OF(l)[i].tensor].data = saved[i];
  return error;
}

/* --- dispatch -------------------------------------------------------------------------------------------------------- */

#define OPERANDS(name) ((const name##_operands *)(w + 2))
#define CHECK_CASE(name) \
  case I_##name: error = check_##name(vm, OPERANDS(name)); break;
#define RUN_CASE(name) \
  case I_##name: error = run_##name(vm, OPERANDS(name)); break;

static int bind_block(Vm *vm, int32_t from, int32_t to) {
  for (int32_t at = from; at < to;) {
    const int32_t *w = vm->code + at;
    int error = w[0] == I_loop ? OK : bind_accesses(vm, w);
    vm->where = at;
    at += 2 + w[1];
    if (error) return error;
    switch (w[0]) {
      DATA_INSTRUCTIONS(CHECK_CASE)
    case I_branch:
      error = bind_branch(vm, OPERANDS(branch), at), at += OPERANDS(branch)->then + OPERANDS(branch)->otherwise;
      break;
    case I_loop: error = bind_loop(vm, OPERANDS(loop), at), at += OPERANDS(loop)->body + OPERANDS(loop)->epilogue; break;
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
      DATA_INSTRUCTIONS(RUN_CASE)
    case I_branch:
      error = run_branch(vm, OPERANDS(branch), at), at += OPERANDS(branch)->then + OPERANDS(branch)->otherwise;
      break;
    case I_loop: error = run_loop(vm, OPERANDS(loop), at), at += OPERANDS(loop)->body + OPERANDS(loop)->epilogue; break;
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
