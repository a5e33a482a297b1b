/* Whether two blocks may run at the same time: found out when sizes are bound, of every pair of tensors. */
#include "plan.gen.h"

struct Side {
  int32_t from, to; /* words of code */
  int32_t count, tensor[MOST_BESIDE_TENSORS], how[MOST_BESIDE_TENSORS];
};

static int is_touched(const Side *s, int32_t tensor, int how) {
  for (int i = 0; i < s->count; i++)
    if (s->tensor[i] == tensor && s->how[i] == how) return 1;
  return 0;
}
static int touch(Side *s, int32_t tensor, int how) {
  if (is_touched(s, tensor, how)) return OK;
  ASK(s->count < MOST_BESIDE_TENSORS);
  s->tensor[s->count] = tensor, s->how[s->count++] = how;
  return OK;
}
/* A tensor that follows another is where it begins and where that one is, if it is not moved beside. */
static int touch_moves(Side *s, const loop_operands *l) {
  int error = OK;
  for (int i = 0; !error && i < l->moves; i++) {
    const Move *m = MOVES_OF(l) + i;
    const int follows = m->stride < 0;
    ASK(!is_touched(s, m->tensor, follows ? IS_MOVED : IS_LED));
    error = touch(s, m->tensor, follows ? IS_LED : IS_MOVED);
    if (!error && follows) error = touch(s, m->last, IS_WRITTEN);
  }
  return error;
}

/* Where a tensor begins, and how it goes on from there, along its axes and in the steps of the loops of its block */
enum { MOST_WAYS = 2 * MAX_RANK };
typedef struct {
  int64_t start, stride[MOST_WAYS], reach[MOST_WAYS];
  int count;
} Ways;

static int add_way(Ways *ways, int64_t stride, int64_t reach) {
  ASK(ways->count < MOST_WAYS && reach >= -INT32_MAX && reach <= INT32_MAX);
  ways->stride[ways->count] = stride, ways->reach[ways->count++] = reach;
  return OK;
}
static int find_ways(const Vm *vm, const Side *s, int32_t tensor, Ways *ways) {
  const Tensor *t = vm->tensor + tensor;
  int error = OK;
  ways->start = t->offset, ways->count = 0;
  for (int a = 0; !error && a < t->rank; a++) error = add_way(ways, t->stride[a], (int64_t)(t->size[a] - 1) * t->stride[a]);
  for (int32_t at = s->from; !error && at < s->to; at += 2 + vm->code[at + 1]) {
    const loop_operands *l = (const loop_operands *)(vm->code + at + 2);
    for (int i = 0; CODE(vm->code + at) == I_loop && !error && i < l->moves; i++) {
      const Move *m = MOVES_OF(l) + i;
      if (m->stride < 0 || m->tensor != tensor) continue;
      error = add_way(ways, vm->size[m->stride], reach_of(vm, m, vm->size[l->steps < 0 ? l->most : l->steps]));
    }
  }
  return error;
}

/* How many elements lie between its first one and its last one but for strides that are multiples of `grain`, and which is the first */
static int64_t length_of(const Ways *ways, int64_t grain, int64_t *first) {
  int64_t length = 0;
  *first = ways->start;
  for (int i = 0; i < ways->count; i++) {
    if (ways->stride[i] % grain == 0) continue;
    length += ways->reach[i] < 0 ? -ways->reach[i] : ways->reach[i];
    if (ways->reach[i] < 0) *first += ways->reach[i];
  }
  return length;
}
/* Whether no element of one is an element of the other: modulo `grain` they lie side by side on a circle. */
static int are_apart(const Ways *one, const Ways *two, int64_t grain) {
  if (grain < 0) grain = -grain;
  if (!grain) return 0;
  int64_t first, second;
  const int64_t length = length_of(one, grain, &first), others = length_of(two, grain, &second);
  const int64_t rest = (second - first) % grain, between = rest < 0 ? rest + grain : rest;
  return between > length && grain - between > others;
}

static int check_apart(const Vm *vm, const Side *s, int32_t tensor, const Side *other, int32_t others) {
  const Tensor *t = vm->tensor + tensor, *u = vm->tensor + others;
  const Buffer *b = vm->buffer + t->buffer, *c = vm->buffer + u->buffer;
  if (b->kind != c->kind || b->kind == BUFFER_CONSTANT || b->place != c->place || !t->count || !u->count) return OK;
  Ways one, two;
  ASK(t->dtype == u->dtype && !find_ways(vm, s, tensor, &one) && !find_ways(vm, other, others, &two));
  int apart = are_apart(&one, &two, (int64_t)1 << 50); /* one ends before the other begins */
  for (int i = 0; !apart && i < one.count; i++) apart = are_apart(&one, &two, one.stride[i]);
  ASK(apart);
  return OK;
}

NOINLINE int bind_beside(Vm *vm, const beside_operands *o, int32_t at) {
  Side one, two;
  one.from = at, two.from = one.to = at + o->first, two.to = two.from + o->second;
  one.count = two.count = 0;
  vm->side = &one;
  int error = bind_block(vm, one.from, one.to);
  vm->side = &two;
  if (!error) error = bind_block(vm, two.from, two.to);
  vm->side = NULL;
  for (int i = 0; !error && i < one.count; i++)
    for (int j = 0; !error && j < two.count; j++) {
      const int how = one.how[i] | two.how[j];
      ASK(!(how & IS_MOVED) || one.tensor[i] != two.tensor[j]);
      if (how == IS_WRITTEN) error = check_apart(vm, &one, one.tensor[i], &two, two.tensor[j]);
    }
  return error;
}
