/* Sizes that are set while running. What depends on one is looked at again right before each instruction that touches it; if a
 * buffer is too small, its room grows, and the host runs the plan again from the start. */
#include "kernels.gen.h"
#include "plan.gen.h"

static void unset_sizes(Vm *vm) {
  for (int i = 0; i < vm->plan[HEADER_SIZES]; i++)
    if (vm->late[i]) vm->size[i] = UNSET;
}

/* Makes room for `bytes` in a buffer, and in all others that are too small by now. */
static int grow(Vm *vm, Buffer *buffer, int64_t bytes) {
  const int32_t *w = buffer_table(vm->plan);
  REQUIRE(bytes <= INT32_MAX, NO_MEMORY);
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++, w += BUFFER_WORDS) {
    Buffer *b = vm->buffer + i;
    int64_t needed = b->late && vm->size[w[2]] >= 0 ? (int64_t)vm->size[w[2]] * ITEM[w[1]] : 0;
    if (b == buffer && needed < bytes) needed = bytes;
    if (needed <= b->bytes || !b->late || needed > INT32_MAX) continue;
    if (needed < 2 * b->bytes) needed = 2 * b->bytes;
    b->bytes = needed > INT32_MAX ? INT32_MAX : needed;
  }
  vm->placed = 0;
  const int error = bind_slots(vm);
  if (!error) return GROW;
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++) /* the host has what was asked for at first, and gets no more */
    if (vm->buffer[i].late) vm->buffer[i].bytes = LATE_BYTES;
  bind_slots(vm);
  return error;
}

/* What bind_access asks, of a tensor where it stands now */
static int check_access(Vm *vm, int32_t tensor, int written) {
  Tensor *t = vm->tensor + tensor;
  if (t->late) {
    const int32_t *w = tensor_table(vm->plan) + TENSOR_WORDS * (ptrdiff_t)tensor;
    const int32_t offset = vm->size[w[3]];
    t->data += (offset - t->offset) * ITEM[t->dtype], t->offset = offset;
    bind_tensor(vm, t, w);
  }
  Buffer *b = vm->buffer + t->at;
  REQUIRE(t->count >= 0, BAD_SIZE);
  REQUIRE(!written || b->writable, NOT_WRITABLE);
  if (!t->count) return OK;
  int64_t low = 0, high = 0;
  for (int a = 0; a < t->rank; a++) {
    const int64_t reach = (int64_t)(t->size[a] - 1) * t->stride[a];
    REQUIRE(reach >= -INT32_MAX && reach <= INT32_MAX, OUT_OF_BUFFER);
    *(reach < 0 ? &low : &high) += reach;
  }
  const int64_t start = (int64_t)(intptr_t)((uintptr_t)t->data - (uintptr_t)b->base), item = ITEM[t->dtype];
  const int64_t end = start + (high + 1) * item;
  REQUIRE(start + low * item >= 0 && (b->late || end <= b->bytes), OUT_OF_BUFFER);
  return end <= b->bytes ? OK : grow(vm, b, end);
}

static int check_let(Vm *vm, const let_operands *o) {
  ASK(T(value)->count == 1);
  return OK;
}
static int run_let(Vm *vm, const let_operands *o) {
  const int64_t value = *(const int64_t *)T(value)->data;
  REQUIRE(value >= o->least && value <= INT32_MAX && value > INT32_MIN, LATE_SIZE);
  vm->size[o->size] = (int32_t)value;
  const int32_t *w = size_table(vm->plan);
  for (int i = o->size + 1; i < vm->plan[HEADER_SIZES]; i++)
    if (vm->late[i] && w[SIZE_WORDS * i] != SIZE_LATE) vm->size[i] = evaluated(vm, w + SIZE_WORDS * i);
  return OK;
}

static int check_demand(Vm *vm, const demand_operands *o) {
  ASK(T(condition)->contiguous);
  return OK;
}
static int run_demand(Vm *vm, const demand_operands *o) {
  for (int32_t i = 0; i < T(condition)->count; i++) REQUIRE(T(condition)->data[i], LATE_SIZES);
  return OK;
}

/* --- which elements are not zero ------------------------------------------------------------------------------------- */

static int is_set(const char *element, int32_t dtype) {
  const int item = ITEM[dtype];
  int is_float = dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_F16 || dtype == DTYPE_BF16, set = 0;
  NO_VECTORS for (int i = 0; i < item - is_float; i++) set |= element[i];
  return set || (is_float && element[item - 1] & 0x7f); /* but for the sign */
}

static int check_nonzero(Vm *vm, const nonzero_operands *o) {
  const Tensor *x = T(x);
  ASK(x->contiguous && (HAS(y) || HAS(count)) && (!HAS(count) || T(count)->count == 1));
  ASK(!HAS(y) || (is_dense(T(y), 2) && T(y)->size[0] == x->rank));
  return OK;
}
/* count: how many there are; y[rank, count]: where they are */
static int run_nonzero(Vm *vm, const nonzero_operands *o) {
  const Tensor *x = T(x);
  int64_t *y = HAS(y) ? (int64_t *)T(y)->data : NULL;
  int32_t found = 0, room = y ? T(y)->size[1] : 0, index[MAX_RANK] = {0};
  for (int32_t i = 0; i < x->count; i++) {
    if (is_set(x->data + (ptrdiff_t)i * ITEM[x->dtype], x->dtype)) {
      if (y) REQUIRE(found < room, LATE_SIZES);
      NO_VECTORS for (int a = 0; y && a < x->rank; a++) y[(ptrdiff_t)a * room + found] = index[a];
      found++;
    }
    for (int a = x->rank; a-- > 0 && ++index[a] == x->size[a];) index[a] = 0;
  }
  if (y) REQUIRE(found == room, LATE_SIZES);
  if (HAS(count)) *(int64_t *)T(count)->data = found;
  return OK;
}
