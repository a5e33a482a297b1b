/* Element-wise expressions, a tile at a time: each register is a tile, so that an expression of ten operations reads its inputs
 * and writes its outputs once. A tile is a part of a row, or several whole rows. */
#include "kernels.gen.h"
#include "plan.gen.h"
#include "types.c"

/* A register during one tile of rows and columns: its element of row i and column j is data[i * row + j * step]. A `row` of 0
 * stands for one row that all rows are, a `step` of 0 for one column. What an operation makes has no gaps. */
typedef struct {
  char *data;
  int32_t row, step, dtype;
} Register;

static void (*const KERNELS[])(void) = {OPERATION_KERNELS};

INLINE float float_of(int32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, 4);
  return value;
}

/* towards zero, and 0 where the divisor is */
INLINE int64_t divided(int64_t a, int64_t b) { return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; }

INLINE int64_t divisor(int64_t b, int *error) {
  if (b == 0) *error = DIVISION_BY_ZERO;
  return b;
}

/* wraps; below an exponent of 0 it is what is left of a fraction */
INLINE int64_t power(int64_t base, int64_t exponent) {
  if (exponent < 0) return base == 1 || (base == -1 && !(exponent & 1)) ? 1 : base == -1 ? -1 : base ? 0 : INT64_MIN;
  uint64_t y = 1;
  for (uint64_t x = (uint64_t)base; exponent; exponent >>= 1, x *= x) y *= exponent & 1 ? x : 1;
  return (int64_t)y;
}

#define EACH(type, expr)                                         \
  for (int32_t i = 0; i < n; i++) ((type *)y)[i] = (type)(expr); \
  return error
/* An operation, in modules that have it */
#define CASE(NAME, type, expr)             \
  case EX_##NAME:                          \
    if (!HAS_EX_##NAME) return NEEDS_FULL; \
    EACH(type, expr);
#define IA ((const int64_t *)a.data)[i * a.step]
#define IB ((const int64_t *)b.data)[i * b.step]
#define UA ((const uint8_t *)a.data)[i * a.step]
#define UB ((const uint8_t *)b.data)[i * b.step]
#define FA ((const float *)a.data)[i * a.step]

#define JA ((const int32_t *)a.data)[i * a.step]
#define JB ((const int32_t *)b.data)[i * b.step]
#define DA ((const double *)a.data)[i * a.step]
#define DB ((const double *)b.data)[i * b.step]
#define VA ((const uint64_t *)a.data)[i * a.step]
#define VB ((const uint64_t *)b.data)[i * b.step]

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

/* n elements of `item` bytes, `from_stride` and `to_stride` elements apart */
static COMPACT void move_tile(const char *from, ptrdiff_t from_stride, char *to, ptrdiff_t to_stride, int item, int32_t n) {
  for (int32_t i = 0; i < n; i++, from += from_stride * item, to += to_stride * item) switch (item) {
    case 8: *(int64_t *)to = *(const int64_t *)from; break;
    case 4: __builtin_memcpy(to, from, 4); break;
    case 2: *(int16_t *)to = *(const int16_t *)from; break;
    default: *to = *from;
    }
}

/* rows x cols elements, all strides in elements */
static void copy_rows(const char *from, ptrdiff_t from_row, ptrdiff_t from_step, char *to, ptrdiff_t to_row, ptrdiff_t to_step,
                      int item, int32_t rows, int32_t cols) {
  const int32_t layout[] = {rows, cols, (int32_t)from_row, (int32_t)from_step, (int32_t)to_row, (int32_t)to_step};
  wr_copy_strided((const uint8_t *)from, (uint8_t *)to, item, 2, layout);
}

/* Rows below this length with gaps between them are brought together: operations then take all of them at once. */
enum { NARROW = 64 };

/* The part of a tensor that is a tile, from `at` on: in its place, or brought together if its elements are apart. */
static Register load_tile(const Tensor *t, char *at, ptrdiff_t row, ptrdiff_t step, int32_t rows, int32_t cols, char *tile) {
  const int item = ITEM[t->dtype], is_narrow = row && row != cols && cols < NARROW;
  if ((step == 1 && !is_narrow) || (step == 0 && (row == 0 || row == 1)))
    return (Register){at, (int32_t)row, (int32_t)step, t->dtype};
  if (!step) move_tile(at, row, tile, 1, item, rows);
  else copy_rows(at, row, step, tile, cols, 1, item, row ? rows : 1, cols);
  return (Register){tile, row ? step ? cols : 1 : 0, step != 0, t->dtype};
}

/* of two doubles as of two floats: NaN if one is */
#define LEAST(a, b) ((a) < (b) || (a) != (a) ? (a) : (b))

/* y[n] = one operation; y is never a register of one element unless all operands are */
static COMPACT int expression_op(const Operation *op, Register a, Register b, Register c, char *y, int32_t n) {
  const int32_t code = op->code, gives = OPERATIONS[code].gives;
  int error = OK;
  switch (OPERATIONS[code].how) {
  case BY_CAST:
    for (int32_t at = 0; at < n; at += TILE)
      cast_numbers(a.data + at * a.step * ITEM[a.dtype], a.step, a.dtype, y + at * ITEM[gives], gives,
                   n - at < TILE ? n - at : TILE, float_of(op->alpha) != 0,
                   float_of(op->beta) == 1.0f   ? 1
                   : float_of(op->beta) == 2.0f ? 2
                                                : 0);
    return OK;
  case BY_BITS: move_tile(a.data, a.step, y, 1, ITEM[gives], n); return OK;
  case BY_UNARY: ((unary_kernel *)KERNELS[code])((const float *)a.data, (float *)y, n); return OK;
  case BY_ACTIVATION:
    ((activation_kernel *)KERNELS[code])((const float *)a.data, (float *)y, n, float_of(op->alpha), float_of(op->beta));
    return OK;
  case BY_BINARY:
    ((binary_kernel *)KERNELS[code])((const float *)a.data, (const float *)b.data, (float *)y, 1, n, 0, a.step, 0, b.step);
    return OK;
  case BY_COMPARE:
    ((compare_kernel *)KERNELS[code])((const float *)a.data, (const float *)b.data, (uint8_t *)y, 1, n, 0, a.step, 0, b.step);
    return OK;
  }
  switch (code) {
  case EX_SELECT:
    wr_select((const uint8_t *)a.data, (const float *)b.data, (const float *)c.data, (float *)y, 1, n, 0, a.step, 0, b.step, 0,
              c.step);
    return OK;
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
  case EX_AND_I: EACH(int64_t, IA &IB);
  case EX_OR_I: EACH(int64_t, IA | IB);
  case EX_XOR_I: EACH(int64_t, IA ^ IB);
  case EX_SHIFT_LEFT_I: EACH(int64_t, VB > 63 ? 0 : VA << VB);
  case EX_SHIFT_RIGHT_I: EACH(int64_t, IA >> (VB > 63 ? 63 : VB));
  case EX_SHIFT_RIGHT_V: EACH(int64_t, VB > 63 ? 0 : VA >> VB);
  case EX_POW_I: EACH(int64_t, power(IA, IB));
  case EX_DIV_V:
    EACH(int64_t, VB ? VA / VB : 0);
    CASE(DIVISOR_I, int64_t, divisor(IA, &error))
    CASE(ADD_D, double, DA + DB)
    CASE(SUB_D, double, DA - DB)
    CASE(MUL_D, double, DA *DB)
    CASE(DIV_D, double, DA / DB)
    CASE(MIN_D, double, LEAST(DA, DB))
    CASE(MAX_D, double, -LEAST(-DA, -DB))
    CASE(POW_D, double, pow_double(DA, DB))
    CASE(FMOD_D, double, fmod_double(DA, DB))
    CASE(EQUAL_D, uint8_t, DA == DB)
    CASE(LESS_D, uint8_t, DA < DB)
    CASE(LESS_OR_EQUAL_D, uint8_t, DA <= DB)
    CASE(GREATER_D, uint8_t, DA > DB)
    CASE(GREATER_OR_EQUAL_D, uint8_t, DA >= DB)
    CASE(NEG_D, double, -DA)
    CASE(ABS_D, double, __builtin_fabs(DA))
    CASE(SQRT_D, double, __builtin_sqrt(DA))
    CASE(FLOOR_D, double, floor_double(DA))
    CASE(ROUND_D, double, round_double(DA))
    CASE(EXP_D, double, exp_double(DA))
    CASE(EXPM1_D, double, expm1_double(DA))
    CASE(LOG_D, double, log_double(DA))
    CASE(LOG1P_D, double, log1p_double(DA))
    CASE(SIN_D, double, sine(DA, 0))
    CASE(COS_D, double, sine(DA, 1))
    CASE(ATAN_D, double, atan_double(DA))
    CASE(ERF_D, double, erf_double(DA))
    CASE(SELECT_D, double, UA ? DB : ((const double *)c.data)[i * c.step])
  case EX_COPY_F: EACH(float, FA);
  case EX_COPY_I: EACH(int64_t, IA);
  case EX_COPY_J: EACH(int32_t, JA);
  default: EACH(uint8_t, UA);
  }
}

/* One operation on all of a tile: at once if no operand has gaps or is repeated, but for numbers; or row by row. */
static int run_op(const Operation *op, Register *operand, const Register *y, int32_t rows, int32_t cols) {
  const OperationRow *kind = OPERATIONS + op->code;
  int is_flat = 1;
  for (int a = 0; a < kind->count; a++) {
    const Register *x = operand + a;
    is_flat &= (x->row == y->row && x->step == y->step) || !(x->row | x->step);
  }
  if (is_flat) {
  NO_VECTORS for (int a = 0; a < kind->count; a++) operand[a].step = (operand[a].row | operand[a].step) != 0;
    return expression_op(op, operand[0], operand[1], operand[2], y->data, (y->row ? rows : 1) * (y->step ? cols : 1));
  }
  if (kind->how == BY_BINARY) {
    ((binary_kernel *)KERNELS[op->code])((const float *)operand[0].data, (const float *)operand[1].data, (float *)y->data, rows,
                                         cols, operand[0].row, operand[0].step, operand[1].row, operand[1].step);
    return OK;
  }
  int error = OK;
  for (int i = 0; i < rows && !error; i++) {
    error = expression_op(op, operand[0], operand[1], operand[2], y->data + (ptrdiff_t)i * cols * ITEM[y->dtype], cols);
    for (int a = 0; a < kind->count; a++) operand[a].data += (ptrdiff_t)operand[a].row * ITEM[operand[a].dtype];
  }
  return error;
}

/* A tensor's strides in a tile, and whether it has the tile without gaps */
typedef struct {
  ptrdiff_t row, step;
  int is_dense;
} Place;

static Place place_of(const Tensor *t, int32_t rows, int32_t cols) {
  Place p = {t->rank > 1 && rows > 1 ? t->stride[t->rank - 2] : 0, t->rank && cols > 1 ? t->stride[t->rank - 1] : 0, 0};
  p.is_dense = (p.step == 1 || cols == 1) && (p.row == cols || rows == 1);
  return p;
}

/* Whether an input that an operation from `op` on reads, or that is a result itself, lies where the operation would write its
 * result. The operation itself may read what it overwrites, element by element. */
static int is_read_there(const Expression *e, const Register *registers, int op, const char *at, int32_t rows, int32_t cols) {
  const Register *y = registers + e->inputs + e->constants + op;
  const char *end = at + (ptrdiff_t)rows * cols * ITEM[y->dtype];
  for (int i = op; i < e->ops + e->outputs; i++)
    for (int a = 0; a < (i < e->ops ? OPERATIONS[e->op[i].code].count : 1); a++) {
      const int32_t from = i < e->ops ? e->op[i].operand[a] : e->output[i - e->ops].from;
      if (from >= e->inputs) continue;
      const Register *x = registers + from;
      const int item = ITEM[x->dtype],
                is_same = x->data == at && x->row == y->row && x->step == y->step && item == ITEM[y->dtype];
      const ptrdiff_t reach = (ptrdiff_t)x->row * (rows - 1), last = (ptrdiff_t)x->step * (cols - 1);
      const char *low = x->data + (reach < 0 ? reach : 0) * item, *high = x->data + ((reach > 0 ? reach : 0) + last + 1) * item;
      if (low < end && at < high && !(i == op && is_same)) return 1;
    }
  return 0;
}

/* Whether an operation behind `op` reads a register, or a result is made of it */
static int is_read_behind(const Expression *e, int32_t from, int op) {
  for (int i = op + 1; i < e->ops; i++)
    for (int a = 0; a < OPERATIONS[e->op[i].code].count; a++)
      if (e->op[i].operand[a] == from) return 1;
  for (int o = 0; o < e->outputs; o++)
    if (e->output[o].from == from) return 1;
  return 0;
}

/* rows x cols elements of the whole expression, the tensors standing at in[] and out[]; each register has `room` elements. The
 * only result of an expression is where what leads to it is made as well: one place that is read and written stays near. */
static int run_tile(Vm *vm, const Expression *e, char *const *in, char *const *out, int32_t rows, int32_t cols, int32_t room) {
  Register registers[MAX_REGISTERS];
  char *tile = vm->registers;
  for (int i = 0; i < e->inputs; i++, tile += room * 8) {
    const Tensor *t = vm->tensor + e->input[i];
    const Place p = place_of(t, rows, cols);
    registers[i] = load_tile(t, in[i], p.row, p.step, rows, cols, tile);
  }
  for (int i = 0; i < e->constants; i++, tile += room * 8) {
    __builtin_memcpy(tile, e->constant[i].words, 8);
    registers[e->inputs + i] = (Register){tile, 0, 0, e->constant[i].type};
  }
  const int first = e->inputs + e->constants;
  const int item = e->outputs == 1 ? ITEM[vm->tensor[e->output[0].tensor].dtype] : 0;
  int32_t there = -1; /* what stands in the place of that result */
  for (int i = 0; i < e->ops; i++, tile += room * 8) {
    const Operation *op = e->op + i;
    Register operand[3] = {{tile, 0, 0, 0}, {tile, 0, 0, 0}, {tile, 0, 0, 0}};
    int32_t has_rows = 0, has_cols = 0;
    for (int a = 0; a < OPERATIONS[op->code].count; a++) {
      operand[a] = registers[op->operand[a]];
      has_rows |= operand[a].row, has_cols |= operand[a].step;
    }
    Register *result = registers + first + i;
    *result = (Register){tile, has_rows ? has_cols ? cols : 1 : 0, has_cols != 0, OPERATIONS[op->code].gives};
    const int is_full = (has_rows || rows == 1) && (has_cols || cols == 1);
    const int leads = item == ITEM[result->dtype] && (there < 0 || !is_read_behind(e, there, i));
    for (int o = 0; o < e->outputs; o++) /* a result is made in its place where it can be */
      if (is_full && (leads || e->output[o].from == first + i) &&
          place_of(vm->tensor + e->output[o].tensor, rows, cols).is_dense &&
          !is_read_there(e, registers, i, out[o], rows, cols))
        result->data = out[o], there = first + i;
    const int error = run_op(op, operand, result, rows, cols);
    if (error) return error;
  }
  for (int o = 0; o < e->outputs; o++) {
    const Tensor *t = vm->tensor + e->output[o].tensor;
    const Register from = registers[e->output[o].from];
    const int item = ITEM[t->dtype];
    if (from.data == out[o]) continue;
    const Place to = place_of(t, rows, cols);
    const int is_whole = to.is_dense && (from.row == cols || rows == 1) && (from.step == 1 || cols == 1);
    if (is_whole) __builtin_memmove(out[o], from.data, (size_t)rows * (size_t)cols * (size_t)item);
    else copy_rows(from.data, from.row, from.step, out[o], to.row, to.step, item, rows, cols);
  }
  return OK;
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

/* Elements of each register. Processors compare addresses modulo 4096: registers that are so far apart would be in each other's
 * way. */
static int32_t room_of(int32_t registers) {
  const int32_t bytes = MAX_REGISTERS * TILE * 8 / registers & -64;
  return (((bytes + 256) & 4095) < 512 ? bytes - 576 : bytes) / 8;
}

/* A short row of an expression of few registers, for which all that is only about rows would take longer than the rest */
enum { SHORT = TILE, SHORT_ROOM = 2 * TILE - LANES, FEW_REGISTERS = MAX_REGISTERS / 2 };

/* Its elements are `n` of the first axis from `from` on, or all of tensors without gaps. */
static int run_short(Vm *vm, const Expression *e, int32_t from, int32_t n, int is_all) {
  Register registers[FEW_REGISTERS];
  char *tile = vm->registers;
  for (int i = 0; i < e->inputs; i++, tile += SHORT_ROOM * 8) {
    const Tensor *t = vm->tensor + e->input[i];
    const int32_t stride = is_all ? 1 : t->rank ? t->stride[0] : 0, step = n > 1 ? stride : 0;
    char *at = t->data + (ptrdiff_t)from * stride * ITEM[t->dtype];
    registers[i] = (Register){at, 0, step, t->dtype};
    if (step == 0 || step == 1) continue;
    move_tile(at, step, tile, 1, ITEM[t->dtype], n);
    registers[i].data = tile, registers[i].step = 1;
  }
  for (int i = 0; i < e->constants; i++, tile += SHORT_ROOM * 8) {
    __builtin_memcpy(tile, e->constant[i].words, 8);
    registers[e->inputs + i] = (Register){tile, 0, 0, e->constant[i].type};
  }
  const int first = e->inputs + e->constants;
  const Tensor *y = vm->tensor + e->output[0].tensor;
  for (int i = 0; i < e->ops; i++, tile += SHORT_ROOM * 8) {
    const Operation *op = e->op + i;
    Register operand[3] = {{tile, 0, 0, 0}, {tile, 0, 0, 0}, {tile, 0, 0, 0}};
    int32_t step = 0;
    for (int a = 0; a < OPERATIONS[op->code].count; a++) operand[a] = registers[op->operand[a]], step |= operand[a].step;
    Register *result = registers + first + i;
    *result = (Register){tile, 0, step, OPERATIONS[op->code].gives};
    /* The last operation writes to its place: nothing reads an input that it may overwrite after it. */
    if (i == e->ops - 1 && e->outputs == 1 && e->output[0].from == first + i &&
        (n == 1 || (step && (is_all || y->stride[0] == 1))))
      result->data = y->data + (ptrdiff_t)from * (y->rank ? y->stride[0] : 0) * ITEM[y->dtype];
    const int error = expression_op(op, operand[0], operand[1], operand[2], result->data, step ? n : 1);
    if (error) return error;
  }
  for (int o = 0; o < e->outputs; o++) {
    const Tensor *t = vm->tensor + e->output[o].tensor;
    const Register made = registers[e->output[o].from];
    const int32_t stride = is_all ? 1 : t->rank ? t->stride[0] : 0;
    char *to = t->data + (ptrdiff_t)from * stride * ITEM[t->dtype];
    if (made.data != to) move_tile(made.data, made.step, to, stride, ITEM[t->dtype], n);
  }
  return OK;
}

/* The elements from `from` to `to` along the first axis. A tile is as large as the memory of the registers lets it be. */
static int run_part(Vm *vm, const expression_operands *o, int32_t from, int32_t to) {
  Expression e = expression_of(o);
  const Tensor *y = vm->tensor + e.output[0].tensor;
  const int last = y->rank - 1, tensors = e.inputs + e.outputs;
  const int32_t rows = last > 1 ? y->size[last - 1] : last == 1 ? to : 1, cols = last > 0 ? y->size[last] : to;
  const int32_t first = last > 0 ? 0 : from;
  const int32_t count = e.inputs + e.constants + e.ops;
  if (last <= 0 && cols - first <= SHORT && count <= FEW_REGISTERS) return run_short(vm, &e, first, cols - first, 0);
  if (y->count <= SHORT && to - from == y->size[0] && count <= FEW_REGISTERS) {
    int is_all = 1;
    NO_VECTORS for (int i = 0; i < tensors; i++)
        is_all &= vm->tensor[i < e.inputs ? e.input[i] : e.output[i - e.inputs].tensor].contiguous;
    if (is_all) return run_short(vm, &e, 0, y->count, 1);
  }
  const int32_t room = room_of(count);
  const int32_t most_cols = cols - first < room ? cols - first : room, most_rows = last > 0 ? room / most_cols : 1;
  char *in[MAX_REGISTERS], *out[MAX_REGISTERS];
  int32_t index[MAX_RANK] = {last > 0 ? from : 0};
  for (;;) {
    const int32_t row = last > 0 ? index[last - 1] : 0, more = rows - row < most_rows ? rows - row : most_rows;
    for (int32_t col = first, n; col < cols; col += n) {
      n = cols - col < most_cols ? cols - col : most_cols;
      for (int i = 0; i < tensors; i++) {
        const Tensor *t = vm->tensor + (i < e.inputs ? e.input[i] : e.output[i - e.inputs].tensor);
        ptrdiff_t skip = y->rank ? (ptrdiff_t)col * t->stride[last] : 0;
        NO_VECTORS for (int a = 0; a < last; a++) skip += (ptrdiff_t)index[a] * t->stride[a];
        *(i < e.inputs ? in + i : out + i - e.inputs) = t->data + skip * ITEM[t->dtype];
      }
      const int error = run_tile(vm, &e, in, out, more, n, room);
      if (error) return error;
    }
    int a = last - 1;
    for (int32_t step = more; a >= 0; a--, step = 1) {
      if ((index[a] += step) < (a ? y->size[a] : to)) break;
      index[a] = 0;
    }
    if (a < 0) return OK;
  }
}

/* What is not parted of a single axis, and multiply-adds that take as long as an operation on one element */
enum { LINE_TOGETHER = 256, OPERATION_WORK = 8 };

static int expression_lines(Vm *vm, const void *context, int32_t from, int32_t to) {
  const expression_operands *o = context;
  const Tensor *y = vm->tensor + expression_of(o).output[0].tensor;
  const int32_t unit = y->rank == 1 ? LINE_TOGETHER : 1, all = y->rank ? y->size[0] : 1;
  return run_part(vm, o, from * unit, to * unit < all ? to * unit : all);
}
static int run_expression(Vm *vm, const expression_operands *o) {
  const Tensor *y = vm->tensor + expression_of(o).output[0].tensor;
  const int is_done = vm->done == o;
  vm->done = NULL;
  if (is_done || !y->count) return OK;
  const int32_t parts = y->rank == 1 ? (y->size[0] + LINE_TOGETHER - 1) / LINE_TOGETHER : y->rank ? y->size[0] : 1;
  return share(vm, expression_lines, o, parts, 1, y->count * (int64_t)((o->operations + 1) * OPERATION_WORK));
}
