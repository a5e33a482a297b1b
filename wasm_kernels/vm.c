/* The virtual machine: loops, branches and the dispatch of instructions. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- control --------------------------------------------------------------------------------------------------------- */

static int run_block(Vm *vm, int32_t from, int32_t to);

/* Sizes for which one branch does not hold may be those of the other: a block that does not hold is checked as it runs. */
static int bind_branch(Vm *vm, const branch_operands *o, int32_t at) {
  const int32_t words[] = {o->then, o->otherwise};
  for (int i = 0; i < 2; i++) {
    if (bind_block(vm, at, at + words[i])) vm->doubtful[at >> 3] |= (uint8_t)(1 << (at & 7));
    at += words[i];
  }
  return OK;
}

static int check_branch(Vm *vm, const branch_operands *o) {
  ASK(T(condition)->count == 1);
  return OK;
}
static int run_branch(Vm *vm, const branch_operands *o, int32_t at) {
  const int taken = *T(condition)->data;
  const int32_t from = taken ? at : at + o->then, to = taken ? at + o->then : at + o->then + o->otherwise;
  const int32_t checking = vm->checking;
  if (from < to && vm->doubtful[from >> 3] >> (from & 7) & 1) vm->checking = CHECKED;
  LAP(vm, o, taken ? FIRST_PART : SECOND_PART);
  const int error = run_block(vm, from, to);
  vm->checking = checking;
  return error;
}

static void bind_reach(Tensor *t, int64_t reach, int sign) {
  *(reach < 0 ? &t->low : &t->high) += sign * reach;
  if (t->follows >= 0) *(reach < 0 ? &t->inner_low : &t->inner_high) += sign * reach;
}

/* Whether a loop moves a tensor by what is known only while running */
static int is_loose(const Vm *vm, const Move *m, int checked) {
  if (m->stride >= 0) return checked || vm->late[m->stride] || vm->late[m->last];
  const Tensor *t = vm->tensor + m->tensor, *followed = vm->tensor + m->last;
  return checked || t->late || t->loose || followed->late || followed->loose;
}

/* A tensor follows in one loop at a time, and follows one that does not; it is not moved in another way by the same loop. */
static int bind_follow(Vm *vm, const Move *m, int checked, int32_t loop) {
  Tensor *t = vm->tensor + m->tensor;
  const Tensor *followed = vm->tensor + m->last;
  ASK(t->follows < 0 && t->moved_by != loop);
  const int loose = is_loose(vm, m, checked);
  ASK(loose || same_sizes(t, followed));
  for (int a = 0; !loose && a < t->rank; a++) ASK(t->stride[a] == followed->stride[a] || t->size[a] <= 1);
  t->follows = m->last, t->loose += loose;
  return OK;
}
/* The first `followers` moves were bound, and those by a stride. A tensor whose following is not loose is not loose at all. */
static void unbind_moves(Vm *vm, const loop_operands *l, int64_t steps, int checked, int followers) {
  for (int i = 0; i < l->moves; i++) {
    const Move *m = MOVES_OF(l) + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride < 0 && i < followers) t->follows = -1, t->inner_low = t->inner_high = 0, t->loose -= t->loose > 0;
  }
  for (int i = 0; i < l->moves; i++) {
    const Move *m = MOVES_OF(l) + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride < 0) continue;
    if (is_loose(vm, m, checked)) t->loose--;
    else bind_reach(t, reach_of(vm, m, steps), -1);
  }
}
static int bind_moves(Vm *vm, const loop_operands *l, int64_t steps, int checked, int32_t loop) {
  const Move *moves = MOVES_OF(l);
  for (int i = 0; i < l->moves; i++) {
    const Move *m = moves + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride < 0) continue;
    t->moved_by = loop;
    if (is_loose(vm, m, checked)) t->loose++;
    else bind_reach(t, reach_of(vm, m, steps), 1);
  }
  int error = OK, followers = 0;
  for (; followers < l->moves; followers++)
    if (moves[followers].stride < 0 && (error = bind_follow(vm, moves + followers, checked, loop))) break;
  for (int i = 0; !error && i < l->moves; i++)
    if (moves[i].stride < 0 && vm->tensor[moves[i].last].follows >= 0) error = BAD_OPERANDS;
  if (error) unbind_moves(vm, l, steps, checked, followers);
  return error;
}

__attribute__((noinline)) static int bind_scalar(Vm *vm, int32_t tensor, int written) {
  if (tensor < 0) return OK;
  const int error = bind_access(vm, tensor, written);
  if (error) return error;
  ASK(vm->tensor[tensor].count == 1);
  return OK;
}

static int check_steps(const Vm *vm, const loop_operands *l) {
  const int32_t most = vm->size[l->most], steps = l->steps < 0 ? most : vm->size[l->steps];
  ASK(most >= 0 && steps >= 0 && steps <= most);
  return OK;
}

/* The blocks of a loop that is marked are bound as others are; its operands and what it moves are checked as it runs. */
static int bind_loop(Vm *vm, const loop_operands *l, int32_t at, int checked) {
  const int64_t steps = vm->size[l->steps < 0 ? l->most : l->steps];
  int error = HAS_FULL && vm->side ? touch_moves(vm->side, l) : OK;
  if (error) return error;
  ASK(checked || (!vm->late[l->most] && (l->steps < 0 || !vm->late[l->steps])));
  if (!checked && ((error = check_steps(vm, l)) || (error = bind_scalar(vm, l->steps_tensor, 0)) ||
                   (error = bind_scalar(vm, l->condition, 0)) || (error = bind_scalar(vm, l->taken, 1))))
    return error;
  if (!checked && !steps) return bind_block(vm, at + l->body, at + l->body + l->epilogue);
  if ((error = bind_moves(vm, l, steps, checked, at))) return error;
  if (!checked && !(error = bind_scalar(vm, l->body_condition, 0)) && !(error = bind_scalar(vm, l->iteration, 1)))
    error = bind_scalar(vm, l->taken, 1);
  if (!error && !(error = bind_block(vm, at, at + l->body))) error = bind_block(vm, at + l->body, at + l->body + l->epilogue);
  unbind_moves(vm, l, steps, checked, l->moves);
  return error;
}

/* Between steps tensors move, first those that follow another, to where that one stands now. Behind the last step only these
 * do: the epilogue finds all others where that step has left them. */
INLINE void move_on(Vm *vm, const loop_operands *l, int32_t step, int is_last) {
  const Move *moves = MOVES_OF(l);
  for (int i = 0; i < l->moves; i++)
    if (moves[i].stride < 0) {
      const Tensor *followed = vm->tensor + moves[i].last;
      vm->tensor[moves[i].tensor].data = followed->data, vm->tensor[moves[i].tensor].at = followed->at;
    }
  for (int i = 0; !is_last && i < l->moves; i++) {
    const Move *m = moves + i;
    Tensor *t = vm->tensor + m->tensor;
    if (m->stride >= 0 && step >= vm->size[m->last]) t->data += (ptrdiff_t)vm->size[m->stride] * ITEM[t->dtype];
  }
}

/* Whether a loop can be asked for more steps than `most`, and whether that is wrong from the start (its operands have no more
 * elements) or once they have been taken, is its strictness. STEPS_CHUNKS: its steps are chunks of a loop of `most` steps, for which
 * the instructions inside are charged; a chunk in which none is counts as a step. */
static int run_steps(Vm *vm, const loop_operands *l, int32_t at, int checked) {
  int error;
  if (checked && ((error = check_steps(vm, l)) || (error = bind_scalar(vm, l->steps_tensor, 0)) ||
                  (error = bind_scalar(vm, l->condition, 0))))
    return error;
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
    if (checked && (error = bind_scalar(vm, l->iteration, 1))) return error;
    if (l->iteration >= 0) *(int64_t *)vm->tensor[l->iteration].data = taken;
    LAP(vm, l, FIRST_PART);
    vm->step = (int32_t)taken;
    const int64_t steps_left = vm->budget.steps_left;
    if ((error = run_block(vm, at, at + l->body))) return error;
    if (l->strictness == STEPS_CHUNKS && vm->budget.steps_left == steps_left) CHARGE_LOOP(vm, 1);
    if (checked && (error = bind_scalar(vm, l->body_condition, 0))) return error;
    if (l->body_condition >= 0) going = *vm->tensor[l->body_condition].data;
    move_on(vm, l, (int32_t)taken, !going || taken + 1 >= steps);
    REQUIRE(l->body || !is_time_up(vm), OVER_SECONDS); /* the instructions of a body have looked at the time */
  }
  if (checked && (error = bind_scalar(vm, l->taken, 1))) return error;
  if (l->taken >= 0) *(int64_t *)vm->tensor[l->taken].data = taken;
  REQUIRE(!going || taken >= asked, LOOP_LIMIT);
  LAP(vm, l, SECOND_PART);
  return run_block(vm, at + l->body, at + l->body + l->epilogue);
}

/* An offset may be another one behind the loop, so what is kept is where the tensor would be without. */
static int run_loop(Vm *vm, const loop_operands *l, int32_t at, int checked) {
  char **saved = vm->saved + l->first_move;
  for (int i = 0; i < l->moves; i++) {
    const Tensor *t = vm->tensor + MOVES_OF(l)[i].tensor;
    saved[i] = t->data - t->offset * ITEM[t->dtype];
  }
  int error = run_steps(vm, l, at, checked);
  for (int i = 0; i < l->moves; i++) {
    Tensor *t = vm->tensor + MOVES_OF(l)[i].tensor;
    t->data = saved[i] + t->offset * ITEM[t->dtype], t->at = t->buffer;
  }
  return error;
}

/* --- two blocks at the same time ------------------------------------------------------------------------------------ */

#ifdef HAS_TEAM
typedef struct {
  Vm vm; /* as it was when the blocks began */
  Vm *leader;
  int32_t from[3], error[2], where[2];
  int64_t steps, work; /* of other threads */
} Beside;

static void run_side(Beside *b, Vm *vm, int32_t part) {
  vm->where = -1;
  b->error[part] = run_block(vm, b->from[part], b->from[part + 1]);
  b->where[part] = vm->where < 0 ? b->from[part] : vm->where;
}
/* Each thread has a VM of its own, but for sizes, buffers and tensors: of these a block changes only the tensors that its own loops
 * move. */
NOINLINE void run_side_of_other(Beside *b, int32_t part) {
  _Alignas(64) char registers[MAX_REGISTERS * TILE * 8];
  Vm own = b->vm;
  own.registers = registers;
  run_side(b, &own, part);
  __atomic_fetch_add(&b->steps, b->vm.budget.steps_left - own.budget.steps_left, __ATOMIC_RELAXED);
  __atomic_fetch_add(&b->work, own.work - b->vm.work, __ATOMIC_RELAXED);
}
static void take_side(void *context, int32_t part, int32_t who) {
  Beside *b = context;
  if (who) run_side_of_other(b, part);
  else run_side(b, b->leader, part);
}

/* Errors and steps are those of the blocks one after the other. */
NOINLINE int run_sides(Vm *vm, const beside_operands *o, int32_t at) {
  Team *team = vm->team;
  const int64_t work = vm->work;
  vm->team = NULL; /* a block is not shared again */
  Beside b = {*vm, vm, {at, at + o->first, at + o->first + o->second}, {OK, OK}, {-1, -1}, 0, 0};
  wr_team_share(team, take_side, &b, 2);
  vm->team = team, vm->work += b.work, vm->shared += vm->work - work;
  vm->budget.steps_left -= b.steps;
  const int last = !b.error[0], over = vm->budget.steps_left < 0;
  const int error = b.error[last] ? b.error[last] : over ? OVER_RUN_STEPS : OK;
  vm->where = error ? b.where[last] : -1;
  return error;
}
#endif

/* --- dispatch -------------------------------------------------------------------------------------------------------- */

#define OPERANDS(name) ((const name##_operands *)(w + 2))
#define CHECK_CASE(name) \
  case I_##name: error = check_##name(vm, OPERANDS(name)); break;
#define RUN_CASE(name) \
  case I_##name: error = run_##name(vm, OPERANDS(name)); break;

/* What an instruction asks of its operands */
__attribute__((noinline)) static int check_operands(Vm *vm, const int32_t *w) {
  int error = bind_accesses(vm, w);
  if (error) return error;
  switch (CODE(w)) {
    DATA_INSTRUCTIONS(CHECK_CASE)
    CHECK_CASE(branch)
  }
  return error;
}

static int bind_block(Vm *vm, int32_t from, int32_t to) {
  for (int32_t at = from; at < to;) {
    const int32_t *w = vm->code + at, code = CODE(w);
    const int checked = w[0] != code;
    int error = checked || code == I_loop ? OK : check_operands(vm, w);
    vm->where = at;
    at += 2 + w[1];
    if (error) return error;
    if (HAS_FULL && code == I_beside)
      error = bind_beside(vm, OPERANDS(beside), at), at += OPERANDS(beside)->first + OPERANDS(beside)->second;
    if (code == I_branch)
      error = bind_branch(vm, OPERANDS(branch), at), at += OPERANDS(branch)->then + OPERANDS(branch)->otherwise;
    if (code == I_loop)
      error = bind_loop(vm, OPERANDS(loop), at, checked), at += OPERANDS(loop)->body + OPERANDS(loop)->epilogue;
    if (error) return error;
  }
  return OK;
}

/* Sizes that came out while running and do not fit are the fault of the numbers that the model was given. */
__attribute__((noinline)) static int check_now(Vm *vm, const int32_t *w) {
  const int error = CODE(w) == I_loop ? OK : check_operands(vm, w);
  return w[0] & CHECKED && (error == BAD_SIZE || error == BAD_OPERANDS) ? LATE_SIZES : error;
}

static int run_block(Vm *vm, int32_t from, int32_t to) {
  for (int32_t at = from; at < to;) {
    const int32_t *w = vm->code + at;
    int error = OK, checked = 0;
    const int32_t here = at;
    at += 2 + w[1];
    int32_t code = w[0] | vm->checking;
  run:
    switch (code) {
      DATA_INSTRUCTIONS(RUN_CASE)
    case I_branch:
      error = run_branch(vm, OPERANDS(branch), at), at += OPERANDS(branch)->then + OPERANDS(branch)->otherwise;
      break;
    case I_beside: /* without a team its blocks are run next, as they stand */
#ifdef HAS_TEAM
      if (vm->team) error = run_sides(vm, OPERANDS(beside), at), at += OPERANDS(beside)->first + OPERANDS(beside)->second;
#endif
      break;
    case I_loop:
      error = run_loop(vm, OPERANDS(loop), at, checked), at += OPERANDS(loop)->body + OPERANDS(loop)->epilogue;
      break;
    default:
      code = CODE(w), checked = 1;
      if (!(error = check_now(vm, w))) goto run;
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

/* externals: one address for each external buffer. GROW: the arena or an external has to be larger, and all is run again; the
 * time of what was run counts. */
int32_t wr_plan_run(uint8_t *tables, uint8_t *arena, const uint8_t *externals) {
  Vm *vm = (Vm *)tables;
  char *const *addresses = (char *const *)externals;
  if (!is_placed(vm, (const char *)arena, addresses)) place(vm, (char *)arena, addresses);
  vm->where = -1, vm->step = vm->checking = 0, vm->running = 1, vm->done = NULL;
  if (vm->late_sizes) unset_sizes(vm);
  start_budget(&vm->budget, vm->growing);
#ifdef HAS_TEAM
  vm->work = vm->shared = 0, vm->team = vm->hired && wr_team_lead(vm->hired) ? vm->hired : NULL;
#endif
  const int error = run_block(vm, 0, vm->plan[HEADER_CODE_WORDS]);
#ifdef HAS_TEAM
  if (vm->team) wr_team_leave(vm->team);
#endif
  vm->growing = error == GROW;
  return error;
}

/* The same again and again, for timing: a call into wasm costs more than a short run. */
int32_t wr_plan_repeat(uint8_t *tables, uint8_t *arena, const uint8_t *externals, int32_t times) {
  int32_t error = OK;
  for (int32_t i = 0; i < times && !error; i++) error = wr_plan_run(tables, arena, externals);
  return error;
}
