/* Element-wise expressions, TILE elements at a time: each register is a tile, so that an expression of ten operations reads
 * its inputs and writes its outputs once. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* A register during one tile: n elements, or one that stands for all of them (step 0). */
typedef struct {
  char *data;
  int32_t step;
} Register;

static void (*const KERNELS[])(void) = {OPERATION_KERNELS};

INLINE float float_of(int32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

/* numpy's integer division after ONNX: towards zero, and 0 where the divisor is */
INLINE int64_t divided(int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (b == -1) return (int64_t)(0 - (uint64_t)a);
  return a / b;
}

INLINE int64_t to_int(float x) {
  if (!(x >= -9223372036854775808.0f && x < 9223372036854775808.0f)) return INT64_MIN;
  return (int64_t)x;
}

INLINE int32_t to_int32(float x) {
  if (!(x >= -2147483648.0f && x < 2147483648.0f)) return INT32_MIN;
  return (int32_t)x;
}

#define EACH(type, expr)                                         \
  for (int32_t i = 0; i < n; i++) ((type *)y)[i] = (type)(expr); \
  return
#define IA ((const int64_t *)a.data)[i * a.step]
#define IB ((const int64_t *)b.data)[i * b.step]
#define UA ((const uint8_t *)a.data)[i * a.step]
#define UB ((const uint8_t *)b.data)[i * b.step]
#define FA ((const float *)a.data)[i * a.step]

#define JA ((const int32_t *)a.data)[i * a.step]
#define JB ((const int32_t *)b.data)[i * b.step]

/* arithmetic wraps as numpy's does */
#define INTEGER_OPS(T, type, utype, A, B)                       \
  case EX_ADD_##T: EACH(type, (utype)A + (utype)B);             \
  case EX_SUB_##T: EACH(type, (utype)A - (utype)B);             \
  case EX_MUL_##T: EACH(type, (utype)A *(utype)B);              \
  case EX_DIV_##T: EACH(type, divided(A, B));                   \
  case EX_MIN_##T: EACH(type, A < B ? A : B);                   \
  case EX_MAX_##T: EACH(type, A > B ? A : B);                   \
  case EX_EQUAL_##T: EACH(uint8_t, A == B);                     \
  case EX_LESS_##T: EACH(uint8_t, A < B);                       \
  case EX_LESS_OR_EQUAL_##T: EACH(uint8_t, A <= B);             \
  case EX_GREATER_##T: EACH(uint8_t, A > B);                    \
  case EX_GREATER_OR_EQUAL_##T: EACH(uint8_t, A >= B);          \
  case EX_NEG_##T: EACH(type, 0 - (utype)A);                    \
  case EX_ABS_##T: EACH(type, A < 0 ? 0 - (utype)A : (utype)A); \
  case EX_SELECT_##T: EACH(type, UA ? B : ((const type *)c.data)[i * c.step]);

/* y[n] = one operation; y is never a register of one element unless all operands are */
static void expression_op(const Operation *op, Register a, Register b, Register c, char *y, int32_t n) {
  const int32_t code = op->code;
  switch (OPERATIONS[code].how) {
  case BY_UNARY: ((unary_kernel *)KERNELS[code])((const float *)a.data, (float *)y, n); return;
  case BY_ACTIVATION:
    ((activation_kernel *)KERNELS[code])((const float *)a.data, (float *)y, n, float_of(op->alpha), float_of(op->beta));
    return;
  case BY_BINARY:
    ((binary_kernel *)KERNELS[code])((const float *)a.data, (const float *)b.data, (float *)y, 1, n, 0, a.step, 0, b.step);
    return;
  case BY_COMPARE:
    ((compare_kernel *)KERNELS[code])((const float *)a.data, (const float *)b.data, (uint8_t *)y, 1, n, 0, a.step, 0, b.step);
    return;
  }
  switch (code) {
  case EX_SELECT:
    wr_select((const uint8_t *)a.data, (const float *)b.data, (const float *)c.data, (float *)y, 1, n, 0, a.step, 0, b.step, 0,
              c.step);
    return;
  case EX_ISNAN:
    EACH(uint8_t, FA != FA);
    INTEGER_OPS(I, int64_t, uint64_t, IA, IB)
    INTEGER_OPS(J, int32_t, uint32_t, JA, JB)
  case EX_SELECT_U: EACH(uint8_t, UA ? UB : ((const uint8_t *)c.data)[i * c.step]);
  case EX_AND_U: EACH(uint8_t, (UA && UB));
  case EX_OR_U: EACH(uint8_t, UA || UB);
  case EX_XOR_U: EACH(uint8_t, !UA != !UB);
  case EX_EQUAL_U: EACH(uint8_t, !UA == !UB);
  case EX_NOT_U: EACH(uint8_t, !UA);
  case EX_F_TO_I: EACH(int64_t, to_int(FA));
  case EX_F_TO_J: EACH(int32_t, to_int32(FA));
  case EX_F_TO_U: EACH(uint8_t, FA != 0.0f);
  case EX_I_TO_F: EACH(float, (float)IA);
  case EX_I_TO_J: EACH(int32_t, (uint32_t)(uint64_t)IA);
  case EX_I_TO_U: EACH(uint8_t, IA != 0);
  case EX_J_TO_F: EACH(float, (float)JA);
  case EX_J_TO_I: EACH(int64_t, JA);
  case EX_J_TO_U: EACH(uint8_t, JA != 0);
  case EX_U_TO_F: EACH(float, UA ? 1.0f : 0.0f);
  case EX_U_TO_I: EACH(int64_t, UA != 0);
  case EX_U_TO_J: EACH(int32_t, UA != 0);
  case EX_COPY_F: EACH(float, FA);
  case EX_COPY_I: EACH(int64_t, IA);
  case EX_COPY_J: EACH(int32_t, JA);
  default: EACH(uint8_t, UA);
  }
}

/* The n elements of a tensor from `at` on, `stride` apart, as a tile */
static Register load_tile(const Tensor *t, const char *at, int32_t stride, int32_t n, char *tile) {
  if (stride == 0 || stride == 1) return (Register){(char *)at, stride};
  const int item = ITEM[t->dtype];
  for (int32_t i = 0; i < n; i++, at += (ptrdiff_t)stride * item) switch (item) {
    case 8: ((int64_t *)tile)[i] = *(const int64_t *)at; break;
    case 4: __builtin_memcpy((int32_t *)tile + i, at, 4); break;
    case 2: ((int16_t *)tile)[i] = *(const int16_t *)at; break;
    default: ((uint8_t *)tile)[i] = *(const uint8_t *)at;
    }
  return (Register){tile, 1};
}

static void store_tile_at(const Tensor *t, char *at, int32_t stride, int32_t n, Register from) {
  const int item = ITEM[t->dtype];
  for (int32_t i = 0; i < n; i++, at += (ptrdiff_t)stride * item) switch (item) {
    case 8: *(int64_t *)at = ((const int64_t *)from.data)[i * from.step]; break;
    case 4: __builtin_memcpy(at, (const int32_t *)from.data + i * from.step, 4); break;
    case 2: *(int16_t *)at = ((const int16_t *)from.data)[i * from.step]; break;
    default: *(uint8_t *)at = ((const uint8_t *)from.data)[i * from.step];
    }
}

/* n elements of the whole expression, the tensors standing at in[] and out[] */
static void run_tile(Vm *vm, const Expression *e, char *const *in, char *const *out, int32_t n) {
  Register registers[MAX_REGISTERS];
  char *tile = vm->registers;
  for (int i = 0; i < e->inputs; i++, tile += TILE * 8) {
    const Tensor *t = vm->tensor + e->input[i];
    registers[i] = load_tile(t, in[i], t->rank ? t->stride[t->rank - 1] : 0, n, tile);
  }
  for (int i = 0; i < e->constants; i++, tile += TILE * 8) {
    __builtin_memcpy(tile, e->constant[i].words, 8);
    registers[e->inputs + i] = (Register){tile, 0};
  }
  const int first = e->inputs + e->constants;
  for (int i = 0; i < e->ops; i++, tile += TILE * 8) {
    const Operation *op = e->op + i;
    Register operand[3] = {{tile, 0}, {tile, 0}, {tile, 0}};
    int32_t step = 0;
    for (int a = 0; a < OPERATIONS[op->code].count; a++) operand[a] = registers[op->operand[a]], step |= operand[a].step;
    Register *result = registers + first + i;
    *result = (Register){tile, step};
    /* The last operation writes to its place: nothing reads an input that it may overwrite after it. */
    if (i == e->ops - 1 && step)
      for (int o = 0; o < e->outputs; o++) {
        const Tensor *t = vm->tensor + e->output[o].tensor;
        if (e->output[o].from == first + i && t->rank && t->stride[t->rank - 1] == 1 && e->outputs == 1) result->data = out[o];
      }
    expression_op(op, operand[0], operand[1], operand[2], result->data, step ? n : 1);
  }
  for (int o = 0; o < e->outputs; o++) {
    const Tensor *t = vm->tensor + e->output[o].tensor;
    Register from = registers[e->output[o].from];
    if (from.data == out[o]) continue;
    const int32_t stride = t->rank ? t->stride[t->rank - 1] : 1;
    if (stride == 1 && from.step) __builtin_memmove(out[o], from.data, (size_t)n * (size_t)ITEM[t->dtype]);
    else store_tile_at(t, out[o], stride, n, from);
  }
}

static int check_expression(Vm *vm, const expression_operands *o) {
  Expression e = expression_of(o);
  const Tensor *y = vm->tensor + e.output[0].tensor;
  for (int i = 0; i < e.outputs; i++) {
    const Tensor *t = vm->tensor + e.output[i].tensor;
    REQUIRE(t->rank == y->rank, BAD_OPERANDS);
    for (int a = 0; a < y->rank; a++) REQUIRE(t->size[a] == y->size[a], BAD_OPERANDS);
  }
  for (int i = 0; i < e.inputs; i++) {
    const Tensor *t = vm->tensor + e.input[i];
    REQUIRE(t->rank == y->rank, BAD_OPERANDS);
    for (int a = 0; a < y->rank; a++) REQUIRE(t->size[a] == y->size[a], BAD_OPERANDS);
  }
  return OK;
}

static int run_expression(Vm *vm, const expression_operands *o) {
  Expression e = expression_of(o);
  const Tensor *y = vm->tensor + e.output[0].tensor;
  if (!y->count) return OK;
  const int last = y->rank - 1, n = y->rank ? y->size[last] : 1;
  char *in[MAX_REGISTERS], *out[MAX_REGISTERS];
  int32_t index[MAX_RANK] = {0};
  for (;;) {
    ptrdiff_t skip = 0;
    for (int32_t done = 0, count; done < n; done += count) {
      count = n - done < TILE ? n - done : TILE;
      for (int i = 0; i < e.inputs + e.outputs; i++) {
        const Tensor *t = vm->tensor + (i < e.inputs ? e.input[i] : e.output[i - e.inputs].tensor);
        skip = y->rank ? (ptrdiff_t)done * t->stride[last] : 0;
        for (int a = 0; a < last; a++) skip += (ptrdiff_t)index[a] * t->stride[a];
        *(i < e.inputs ? in + i : out + i - e.inputs) = t->data + skip * ITEM[t->dtype];
      }
      run_tile(vm, &e, in, out, count);
    }
    int a = last - 1;
    for (; a >= 0; a--) {
      if (++index[a] < y->size[a]) break;
      index[a] = 0;
    }
    if (a < 0) return OK;
  }
}
