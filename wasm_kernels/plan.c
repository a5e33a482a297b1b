/* Plans: their tables, checked (plan_check, once) and resolved for given sizes (plan_bind, whenever a size changes).
 * After both have returned 0 no run reads or writes outside the plan, the arena and the external buffers. The format is
 * described in runtime/webrnn/plan/{opcodes,instructions,operations}.py and docs/plans.md. */
#include "kernels.gen.h"
#include "plan.gen.h"
#include "simd.h"
#include "profile.h"
#include "budget.h"

#ifdef WEBRNN_THREADS
#define HAS_TEAM
#include "team.h"
#endif

typedef struct {
  char *base;
  int64_t bytes; /* of one whose size is late: the room that it has, kept from run to run and from binding to binding */
  int32_t kind, place, writable, late;
} Buffer;

typedef struct {
  char *data;
  int64_t offset; /* of its first element in its buffer, in elements, as all that follows */
  /* While the code is checked: how far the loops around an instruction move it, the tensor whose place it takes between the
   * steps of one of them (or -1), how far the loops inside that one move it from there, and the loop that moved it last. */
  int64_t low, high, inner_low, inner_high;
  int32_t follows, moved_by;
  int32_t loose; /* how many loops around the instruction move it by what is known only while running */
  int32_t late;  /* whether its sizes, strides, offset or buffer are known only while running */
  int32_t at;    /* the buffer in which it stands: its own, or that of the tensor that it follows */
  int32_t buffer, dtype, rank, count, contiguous;
  int32_t size[MAX_RANK], stride[MAX_RANK];
} Tensor;

/* A block of a `beside`, and what it does to which tensors: see beside.c */
typedef struct Side Side;
enum { IS_READ, IS_WRITTEN, IS_MOVED, IS_LED };

typedef struct {
  const int32_t *plan, *code;
  int32_t *size;
  uint8_t *late; /* of each size: whether it is, or depends on one that is, set while running */
  Buffer *buffer;
  Tensor *tensor;
  int64_t *slot; /* offsets in the arena; one more than there are slots */
  char **saved;  /* where each moved tensor would point before its loop with an offset of 0 */
  char *registers;
  uint8_t
      *doubtful; /* a bit for each word of code: whether a block of a branch that begins there does not hold for the sizes */
  char *arena;
  Side *side; /* the block of a `beside` that is bound */
  int32_t where, placed;
  int32_t running;  /* whether sizes and addresses are those of a run */
  int32_t checking; /* CHECKED in a block that is doubtful: each instruction is checked before it runs */
  int32_t late_sizes; /* how many there are */
  int32_t growing;    /* whether the last run ended because it needs more memory */
  int32_t step;       /* of the loop that is running */
  const void *done;   /* the operands of the expression that the instruction before it has run along with itself */
  Budget budget;
#ifdef WEBRNN_PROFILE
  Laps laps;
#endif
#ifdef HAS_TEAM
  Team *hired, *team; /* whom the host gave, and the same while a run leads it and works in no part */
  int64_t work, shared; /* the work of the run, and that of it which could be shared, in multiply-adds */
  int32_t threads, least_work;
#endif
} Vm;

/* The words behind the operands of an instruction that has a list, and how many they are */
#define list_of(o) ((const int32_t *)((o) + 1))
#define list_words(name, o) (((const int32_t *)(o))[-1] - (int32_t)(sizeof(name##_operands) / 4))

#define REQUIRE(condition, error)   \
  do {                              \
    if (!(condition)) return error; \
  } while (0)

/* --- the tables of a plan ------------------------------------------------------------------------------------------ */

INLINE const int32_t *size_table(const int32_t *plan) { return plan + HEADER_COUNT; }
INLINE const int32_t *buffer_table(const int32_t *plan) { return size_table(plan) + SIZE_WORDS * plan[HEADER_SIZES]; }
INLINE const int32_t *tensor_table(const int32_t *plan) { return buffer_table(plan) + BUFFER_WORDS * plan[HEADER_BUFFERS]; }
INLINE const int32_t *code_of(const int32_t *plan) { return tensor_table(plan) + TENSOR_WORDS * plan[HEADER_TENSORS]; }

INLINE int below(int32_t index, int32_t count) { return index >= 0 && index < count; }

static int check_header(const int32_t *plan, int32_t bytes) {
  REQUIRE(bytes >= HEADER_COUNT * 4 && plan[HEADER_MAGIC] == PLAN_MAGIC, BAD_HEADER);
  REQUIRE(plan[HEADER_VERSION] == PLAN_VERSION || plan[HEADER_VERSION] == CHANNELS_FIRST_VERSION, BAD_HEADER);
  const int64_t limit = 1 << 24;
  static const uint8_t counts[] = {HEADER_SYMBOLS, HEADER_SIZES,     HEADER_BUFFERS, HEADER_SLOTS,
                                   HEADER_TENSORS, HEADER_EXTERNALS, HEADER_MOVES,   HEADER_CODE_WORDS};
  for (unsigned i = 0; i < sizeof counts; i++) REQUIRE(plan[counts[i]] >= 0 && plan[counts[i]] <= limit, BAD_HEADER);
  int64_t words = HEADER_COUNT + (int64_t)SIZE_WORDS * plan[HEADER_SIZES] + (int64_t)BUFFER_WORDS * plan[HEADER_BUFFERS] +
                  (int64_t)TENSOR_WORDS * plan[HEADER_TENSORS] + plan[HEADER_CODE_WORDS];
  REQUIRE(words == plan[HEADER_WORDS] && words * 4 <= bytes, BAD_HEADER);
  REQUIRE(plan[HEADER_SLOTS] <= plan[HEADER_BUFFERS] && plan[HEADER_SYMBOLS] <= plan[HEADER_SIZES], BAD_HEADER);
  int64_t data = plan[HEADER_DATA_OFFSET], data_bytes = plan[HEADER_DATA_BYTES];
  REQUIRE(data % 64 == 0 && data >= words * 4 && data_bytes >= 0 && data + data_bytes <= bytes, BAD_HEADER);
  return OK;
}

static int check_size_table(const int32_t *plan) {
  const int32_t *w = size_table(plan);
  for (int i = 0; i < plan[HEADER_SIZES]; i++, w += SIZE_WORDS) switch (w[0]) {
    case SIZE_NUMBER:
    case SIZE_LATE: break;
    case SIZE_SYMBOL: REQUIRE(below(w[1], plan[HEADER_SYMBOLS]), BAD_TABLE); break;
    case SIZE_SUM:
    case SIZE_PRODUCT: REQUIRE(below(w[1], i) && below(w[2], i), BAD_TABLE); break;
    case SIZE_QUOTIENT: REQUIRE(below(w[1], i) && w[2] > 0, BAD_TABLE); break;
    default: return BAD_TABLE;
    }
  return OK;
}

static int check_buffer_table(const int32_t *plan) {
  const int32_t *w = buffer_table(plan);
  for (int i = 0; i < plan[HEADER_BUFFERS]; i++, w += BUFFER_WORDS) {
    REQUIRE(below(w[1], DTYPE_COUNT) && below(w[2], plan[HEADER_SIZES]), BAD_TABLE);
    REQUIRE(HAS_TYPE[w[1]], NEEDS_FULL);
    switch (w[0]) {
    case BUFFER_CONSTANT: REQUIRE(w[3] >= 0 && w[3] % 64 == 0, BAD_TABLE); break;
    case BUFFER_ARENA: REQUIRE(below(w[3], plan[HEADER_SLOTS]), BAD_TABLE); break;
    case BUFFER_EXTERNAL: REQUIRE(below(w[3] & ~WRITABLE, plan[HEADER_EXTERNALS]), BAD_TABLE); break;
    default: return BAD_TABLE;
    }
  }
  return OK;
}

static int check_tensor_table(const int32_t *plan) {
  const int32_t *w = tensor_table(plan);
  for (int i = 0; i < plan[HEADER_TENSORS]; i++, w += TENSOR_WORDS) {
    REQUIRE(below(w[0], plan[HEADER_BUFFERS]) && below(w[2], MAX_RANK + 1) && below(w[3], plan[HEADER_SIZES]), BAD_TABLE);
    REQUIRE(buffer_table(plan)[BUFFER_WORDS * w[0] + 1] == w[1], BAD_TABLE);
    for (int a = 0; a < w[2]; a++)
      REQUIRE(below(w[4 + a], plan[HEADER_SIZES]) && below(w[4 + MAX_RANK + a], plan[HEADER_SIZES]), BAD_TABLE);
  }
  return OK;
}

/* --- the form of the code: every index in range, every block inside its parent --------------------------------------- */

INLINE int dtype_of(const int32_t *plan, int32_t tensor) { return tensor_table(plan)[TENSOR_WORDS * tensor + 1]; }

typedef struct {
  int32_t code, result, operand[3], alpha, beta;
} Operation;
typedef struct {
  int32_t tensor, from; /* a register */
} Result;
typedef struct {
  int32_t type, words[2];
} Constant;
enum { OPERATION_WORDS = sizeof(Operation) / 4, RESULT_WORDS = sizeof(Result) / 4, CONSTANT_WORDS = sizeof(Constant) / 4 };

typedef struct {
  int32_t inputs, outputs, constants, ops;
  const int32_t *input;
  const Result *output;
  const Constant *constant;
  const Operation *op;
} Expression;

INLINE Expression expression_of(const expression_operands *o) {
  Expression e = {o->inputs, o->outputs, o->constants, o->operations, list_of(o), 0, 0, 0};
  e.output = (const Result *)(e.input + e.inputs), e.constant = (const Constant *)(e.output + e.outputs);
  e.op = (const Operation *)(e.constant + e.constants);
  return e;
}

static int check_expression_words(const int32_t *plan, const expression_operands *o) {
  const int32_t counts[] = {o->inputs, o->outputs, o->constants, o->operations};
  for (int i = 0; i < 4; i++) REQUIRE(below(counts[i], MAX_REGISTERS + 1), BAD_INSTRUCTION);
  REQUIRE(o->outputs > 0 && o->inputs + o->constants + o->operations <= MAX_REGISTERS, BAD_INSTRUCTION);
  REQUIRE(list_words(expression, o) ==
              o->inputs + RESULT_WORDS * o->outputs + CONSTANT_WORDS * o->constants + OPERATION_WORDS * o->operations,
          BAD_INSTRUCTION);
  Expression e = expression_of(o);
  uint8_t type[MAX_REGISTERS];
  for (int i = 0; i < e.inputs; i++) {
    REQUIRE(below(e.input[i], plan[HEADER_TENSORS]), BAD_INSTRUCTION);
    type[i] = (uint8_t)dtype_of(plan, e.input[i]);
  }
  for (int i = 0; i < e.constants; i++) {
    REQUIRE(below(e.constant[i].type, DTYPE_COUNT), BAD_INSTRUCTION);
    REQUIRE(HAS_TYPE[e.constant[i].type], NEEDS_FULL);
    type[e.inputs + i] = (uint8_t)e.constant[i].type;
  }
  for (int i = 0; i < e.ops; i++) {
    const Operation *op = e.op + i;
    const int self = e.inputs + e.constants + i;
    REQUIRE(below(op->code, EX_COUNT) && op->result == self, BAD_INSTRUCTION);
    const OperationRow *row = OPERATIONS + op->code;
    REQUIRE(row->how != NOT_AT_ALL, BAD_INSTRUCTION);
    REQUIRE(row->how != TOO_RARE, NEEDS_FULL);
    for (int a = 0; a < row->count; a++) {
      REQUIRE(below(op->operand[a], self), BAD_INSTRUCTION);
      const int given = type[op->operand[a]];
      REQUIRE(row->takes[a] == DTYPE_COUNT || given == row->takes[a], BAD_INSTRUCTION);
      REQUIRE(row->how != BY_BITS || ITEM[given] == ITEM[row->gives], BAD_INSTRUCTION);
    }
    type[self] = row->gives;
  }
  for (int i = 0; i < e.outputs; i++) {
    REQUIRE(below(e.output[i].tensor, plan[HEADER_TENSORS]) && below(e.output[i].from, e.inputs + e.constants + e.ops),
            BAD_INSTRUCTION);
    REQUIRE(type[e.output[i].from] == dtype_of(plan, e.output[i].tensor), BAD_INSTRUCTION);
  }
  return OK;
}

/* What a loop does with a tensor between steps: it moves it by `stride` once `last` steps were taken (both are sizes), or, if
 * `stride` is negative, puts it where the tensor `last` stands. */
typedef struct {
  int32_t tensor, stride, last;
} Move;
enum { MOVE_WORDS = sizeof(Move) / 4 };
#define MOVES_OF(l) ((const Move *)list_of(l))

/* How far a move takes a tensor in `steps` steps; what is farther than any buffer is long is as good as infinite. */
static int64_t reach_of(const Vm *vm, const Move *m, int64_t steps) {
  const int64_t after = vm->size[m->last], moved = steps - 1 - (after > 0 ? after : 0);
  const int64_t reach = moved > 0 ? moved * vm->size[m->stride] : 0, limit = (int64_t)1 << 34;
  return reach < -limit ? -limit : reach > limit ? limit : reach;
}

/* `*moves`: those of the loops before it, each of which has its own place to save addresses */
static int check_loop_words(const int32_t *plan, const loop_operands *o, int32_t *moves) {
  REQUIRE(o->moves >= 0 && o->first_move == *moves && list_words(loop, o) == MOVE_WORDS * (int64_t)o->moves, BAD_INSTRUCTION);
  *moves += o->moves;
  for (int i = 0; i < o->moves; i++) {
    const Move *m = MOVES_OF(o) + i;
    REQUIRE(below(m->tensor, plan[HEADER_TENSORS]), BAD_INSTRUCTION);
    if (m->stride < 0)
      REQUIRE(below(m->last, plan[HEADER_TENSORS]) && dtype_of(plan, m->tensor) == dtype_of(plan, m->last), BAD_INSTRUCTION);
    else REQUIRE(below(m->stride, plan[HEADER_SIZES]) && below(m->last, plan[HEADER_SIZES]), BAD_INSTRUCTION);
  }
  return OK;
}

static int check_word(const int32_t *plan, int kind, int32_t word) {
  if (kind & OPERAND_OPTIONAL && word == -1) return 1;
  if (kind & OPERAND_TENSOR) {
    const int type = kind >> OPERAND_TYPE_SHIFT; /* from 1 on */
    return below(word, plan[HEADER_TENSORS]) && (!type || dtype_of(plan, word) == type - 1);
  }
  return kind & OPERAND_SIZE ? below(word, plan[HEADER_SIZES]) : kind != OPERAND_ZERO || word == 0;
}

/* An instruction that is marked as CHECKED is checked each time before it runs, not when sizes are bound: what it touches
 * depends on sizes that are set while running. */
#define CODE(w) ((w)[0] & ~CHECKED)

/* The words of both blocks of an instruction that has some, 0 for all other instructions; w: its first word */
typedef struct {
  int32_t first, second;
} Blocks;
INLINE Blocks blocks_of(const int32_t *w) {
  const branch_operands *branch = (const branch_operands *)(w + 2);
  const loop_operands *loop = (const loop_operands *)(w + 2);
  const beside_operands *beside = (const beside_operands *)(w + 2);
  return CODE(w) == I_branch   ? (Blocks){branch->then, branch->otherwise}
         : CODE(w) == I_loop   ? (Blocks){loop->body, loop->epilogue}
         : CODE(w) == I_beside ? (Blocks){beside->first, beside->second}
                               : (Blocks){0, 0};
}

/* Blocks that may run at the same time hold nothing that changes what others find while running: sizes, or what is checked then.
 * w: the instruction, whose blocks are known to be whole */
static int check_beside_words(const int32_t *w) {
  const beside_operands *o = (const beside_operands *)(w + 2);
  const int32_t *inner = w + 2 + w[1], *end = inner + o->first + o->second;
  REQUIRE(w[0] == I_beside && end - inner <= MOST_BESIDE_WORDS, BAD_INSTRUCTION);
  for (; inner < end; inner += 2 + inner[1])
    REQUIRE(!(inner[0] & CHECKED) && inner[0] != I_beside && inner[0] != I_branch && inner[0] != I_let, BAD_INSTRUCTION);
  return OK;
}

static int check_block(const int32_t *plan, int32_t from, int32_t to, int depth, int32_t *moves) {
  REQUIRE(depth <= MAX_DEPTH, TOO_DEEP);
  for (int32_t at = from; at < to;) {
    const int32_t *w = code_of(plan) + at;
    REQUIRE(to - at >= 2 && below(CODE(w), I_COUNT) && w[1] >= 0 && w[1] <= to - at - 2, BAD_INSTRUCTION);
    const uint8_t *form = (const uint8_t *)FORMS[CODE(w)];
    REQUIRE(form, IS_FUSED && IS_UNFUSED[CODE(w)] ? NEEDS_UNFUSED : NEEDS_FULL);
    int n = 0;
    for (; form[n] && form[n] != OPERAND_LIST; n++) REQUIRE(n < w[1] && check_word(plan, form[n], w[2 + n]), BAD_INSTRUCTION);
    REQUIRE(form[n] == OPERAND_LIST || n == w[1], BAD_INSTRUCTION);
    at += 2 + w[1];
    int error = OK;
    const int32_t code = CODE(w);
    if (code == I_expression) error = check_expression_words(plan, (const expression_operands *)(w + 2));
    if (code == I_sizes || code == I_flat_index)
      for (int i = n; i < w[1]; i++) REQUIRE(below(w[2 + i], plan[HEADER_SIZES]), BAD_INSTRUCTION);
    if (RUNS_ALONG[code]) {
      const int32_t along = w[1 + w[1]];
      REQUIRE(!along || (along == 1 && to - at >= 2 && CODE(code_of(plan) + at) == I_expression), BAD_INSTRUCTION);
    }
    if (code == I_let) REQUIRE(size_table(plan)[SIZE_WORDS * w[2]] == SIZE_LATE, BAD_INSTRUCTION);
    if (code == I_loop) error = check_loop_words(plan, (const loop_operands *)(w + 2), moves);
    REQUIRE(error == OK, error);
    if (code == I_branch || code == I_loop || (HAS_FULL && code == I_beside)) {
      const Blocks blocks = blocks_of(w);
      REQUIRE(!HAS_FULL || code != I_beside || !depth, BAD_INSTRUCTION);
      REQUIRE(blocks.first >= 0 && blocks.second >= 0 && (int64_t)blocks.first + blocks.second <= to - at, BAD_INSTRUCTION);
      if ((error = check_block(plan, at, at + blocks.first, depth + 1, moves))) return error;
      if ((error = check_block(plan, at + blocks.first, at + blocks.first + blocks.second, depth + 1, moves))) return error;
      if (HAS_FULL && code == I_beside && (error = check_beside_words(w))) return error;
      at += blocks.first + blocks.second;
    }
  }
  return OK;
}

int32_t wr_plan_check(const int32_t *plan, int32_t bytes) {
  int error;
  int32_t moves = 0;
  if ((error = check_header(plan, bytes)) || (error = check_size_table(plan)) || (error = check_buffer_table(plan)) ||
      (error = check_tensor_table(plan)))
    return error;
  if ((error = check_block(plan, 0, plan[HEADER_CODE_WORDS], 0, &moves))) return error;
  return moves == plan[HEADER_MOVES] ? OK : BAD_HEADER;
}

/* --- sizes, buffers and tensors as numbers --------------------------------------------------------------------------- */

INLINE int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

/* bytes of the memory that plan_bind fills; 0 if that is too much */
int32_t wr_plan_table_bytes(const int32_t *plan) {
  int64_t bytes = aligned(sizeof(Vm)) + aligned(5 * (int64_t)plan[HEADER_SIZES]) + aligned(plan[HEADER_CODE_WORDS] / 8 + 1) +
                  aligned((int64_t)sizeof(Buffer) * plan[HEADER_BUFFERS]) +
                  aligned((int64_t)sizeof(Tensor) * plan[HEADER_TENSORS]) + aligned(8 * ((int64_t)plan[HEADER_SLOTS] + 1)) +
                  aligned((int64_t)sizeof(char *) * plan[HEADER_MOVES]) + MAX_REGISTERS * TILE * 8;
  return bytes > INT32_MAX ? 0 : (int32_t)bytes;
}

/* The tables are zeros at first. Those of an earlier binding of the same plan are laid out in the same way. */
static Vm *lay_out(const int32_t *plan, char *memory) {
  Vm *vm = (Vm *)memory;
  const int is_new = vm->plan != plan;
  __builtin_memset(vm, 0, sizeof *vm);
  vm->plan = plan, vm->code = code_of(plan);
  set_limits(&vm->budget, (const int64_t[]){-1, -1, -1});
  memory += aligned(sizeof *vm);
  vm->size = (int32_t *)memory, vm->late = (uint8_t *)(vm->size + plan[HEADER_SIZES]);
  memory += aligned(5 * (int64_t)plan[HEADER_SIZES]);
  vm->buffer = (Buffer *)memory, memory += aligned((int64_t)sizeof(Buffer) * plan[HEADER_BUFFERS]);
  vm->tensor = (Tensor *)memory, memory += aligned((int64_t)sizeof(Tensor) * plan[HEADER_TENSORS]);
  vm->slot = (int64_t *)memory, memory += aligned(8 * ((int64_t)plan[HEADER_SLOTS] + 1));
  vm->saved = (char **)memory, memory += aligned((int64_t)sizeof(char *) * plan[HEADER_MOVES]);
  vm->doubtful = (uint8_t *)memory, memory += aligned(plan[HEADER_CODE_WORDS] / 8 + 1);
  vm->registers = memory;
  __builtin_memset(vm->doubtful, 0, (size_t)plan[HEADER_CODE_WORDS] / 8 + 1);
  for (int i = 0; is_new && i < plan[HEADER_BUFFERS]; i++) vm->buffer[i].bytes = 0;
  return vm;
}

/* What a late size is before it is set, and what is computed from it or is too large: no tensor has such a size. */
enum { UNSET = INT32_MIN };

/* The number of a row of the table of sizes that is computed from earlier ones */
static int32_t evaluated(const Vm *vm, const int32_t *w) {
  const int is_binary = w[0] == SIZE_SUM || w[0] == SIZE_PRODUCT;
  const int64_t a = is_binary || w[0] == SIZE_QUOTIENT ? vm->size[w[1]] : w[1], b = is_binary ? vm->size[w[2]] : w[2];
  if (a == UNSET || (is_binary && b == UNSET)) return UNSET;
  const int64_t value = w[0] == SIZE_SUM        ? a + b
                        : w[0] == SIZE_PRODUCT  ? a * b
                        : w[0] == SIZE_QUOTIENT ? (a - (a < 0 ? b - 1 : 0)) / b
                                                : a;
  return value < -INT32_MAX || value > INT32_MAX ? UNSET : (int32_t)value;
}

static int bind_sizes(Vm *vm, const int32_t *symbols) {
  const int32_t *w = size_table(vm->plan);
  for (int i = 0; i < vm->plan[HEADER_SIZES]; i++, w += SIZE_WORDS) {
    const int is_binary = w[0] == SIZE_SUM || w[0] == SIZE_PRODUCT;
    vm->late[i] = w[0] == SIZE_LATE || ((is_binary || w[0] == SIZE_QUOTIENT) && vm->late[w[1]]) ||
                  (is_binary && vm->late[w[2]]);
    vm->late_sizes += vm->late[i];
    vm->size[i] = vm->late[i] ? UNSET : w[0] == SIZE_SYMBOL ? symbols[w[1]] : evaluated(vm, w);
    REQUIRE(vm->late[i] || (vm->size[i] != UNSET && (w[0] != SIZE_SYMBOL || vm->size[i] >= 0)), BAD_SIZE);
  }
  return OK;
}

/* Each slot is as large as the largest buffer in it. */
static int bind_slots(Vm *vm) {
  const int32_t slots = vm->plan[HEADER_SLOTS];
  for (int i = 0; i <= slots; i++) vm->slot[i] = 0;
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++) {
    const Buffer *b = vm->buffer + i;
    if (b->kind == BUFFER_ARENA && vm->slot[b->place] < b->bytes) vm->slot[b->place] = b->bytes;
  }
  int64_t total = 0;
  for (int i = 0; i <= slots; i++) {
    int64_t bytes = aligned(vm->slot[i]);
    vm->slot[i] = total;
    total += bytes;
  }
  REQUIRE(total <= INT32_MAX, NO_MEMORY);
  return OK;
}

static int bind_buffers(Vm *vm) {
  const int32_t *plan = vm->plan, *w = buffer_table(plan);
  for (int i = 0; i < plan[HEADER_BUFFERS]; i++, w += BUFFER_WORDS) {
    Buffer *b = vm->buffer + i;
    const int32_t count = vm->size[w[2]]; /* negative: nothing lies inside, see bind_tensors */
    const int late = vm->late[w[2]];
    const int64_t room = late && b->bytes <= INT32_MAX ? b->bytes : 0;
    *b = (Buffer){NULL, count < 0 ? -1 : (int64_t)count * ITEM[w[1]], w[0], w[3], w[0] == BUFFER_ARENA, late};
    if (b->kind == BUFFER_EXTERNAL) b->writable = (b->place & WRITABLE) != 0, b->place &= ~WRITABLE;
    if (late) {
      REQUIRE(b->writable, BAD_TABLE); /* what others fill has a size before it runs */
      b->bytes = room > LATE_BYTES ? room : LATE_BYTES;
    }
    REQUIRE(b->bytes <= INT32_MAX, NO_MEMORY);
    if (b->kind == BUFFER_CONSTANT) {
      REQUIRE(b->place + b->bytes <= plan[HEADER_DATA_BYTES], OUT_OF_BUFFER);
      b->base = (char *)plan + plan[HEADER_DATA_OFFSET] + b->place;
    }
  }
  return bind_slots(vm);
}

/* A tensor that cannot be, with a negative size or too many elements, has a count of -1 and is refused where it is used:
 * it may belong to a branch that is never taken for these sizes. */
__attribute__((noinline)) static void bind_tensor(const Vm *vm, Tensor *t, const int32_t *w) {
  int64_t count = 1;
  for (int a = 0; a < t->rank; a++) {
    t->size[a] = vm->size[w[4 + a]], t->stride[a] = vm->size[w[4 + MAX_RANK + a]];
    if (count >= 0) count = t->size[a] < 0 || count * t->size[a] > INT32_MAX ? -1 : count * t->size[a];
  }
  int64_t dense = 1;
  t->contiguous = 1;
  for (int a = t->rank; a-- > 0;) {
    t->contiguous &= t->size[a] == 1 || t->stride[a] == dense;
    if (dense >= 0 && dense <= INT32_MAX) dense *= t->size[a];
  }
  t->count = (int32_t)count;
}

static void bind_tensors(Vm *vm) {
  const int32_t *w = tensor_table(vm->plan);
  for (int i = 0; i < vm->plan[HEADER_TENSORS]; i++, w += TENSOR_WORDS) {
    Tensor *t = vm->tensor + i;
    *t = (Tensor){.follows = -1, .moved_by = -1, .at = w[0], .buffer = w[0], .dtype = w[1], .rank = w[2]};
    t->late = vm->late[w[3]] || vm->buffer[w[0]].late;
    for (int a = 0; a < t->rank; a++) t->late |= vm->late[w[4 + a]] || vm->late[w[4 + MAX_RANK + a]];
    t->offset = vm->late[w[3]] ? 0 : vm->size[w[3]];
    bind_tensor(vm, t, w);
  }
}

/* --- what each instruction asks of its operands: instructions.c has check_<name> beside run_<name> --------------------  */

static int bind_block(Vm *vm, int32_t from, int32_t to);
static int check_access(Vm *vm, int32_t tensor, int written);
static int touch(Side *side, int32_t tensor, int how);

/* Whether the elements of t, standing from `low` to `high` elements after the place of `at`, lie in the buffer of `at`. */
static int lies_inside(const Vm *vm, const Tensor *t, const Tensor *at, int64_t low, int64_t high) {
  low += at->offset, high += at->offset;
  for (int a = 0; a < t->rank; a++) {
    int64_t reach = (int64_t)(t->size[a] - 1) * t->stride[a];
    if (reach < -INT32_MAX || reach > INT32_MAX) return 0;
    *(reach < 0 ? &low : &high) += reach;
  }
  return low >= 0 && (high + 1) * ITEM[t->dtype] <= vm->buffer[at->buffer].bytes;
}

/* What holds for each tensor that an instruction reads or writes, wherever the loops around it have moved that. */
__attribute__((noinline)) static int bind_access(Vm *vm, int32_t tensor, int written) {
  if (vm->running) return check_access(vm, tensor, written);
  const Tensor *t = vm->tensor + tensor, *followed = t->follows < 0 ? t : vm->tensor + t->follows;
  REQUIRE(!t->late && !t->loose, BAD_OPERANDS); /* only an instruction that is marked may touch it */
  REQUIRE(t->count >= 0 && followed->count >= 0, BAD_SIZE);
  REQUIRE(!written || (vm->buffer[t->buffer].writable && vm->buffer[followed->buffer].writable), NOT_WRITABLE);
  REQUIRE(!t->count || lies_inside(vm, t, t, t->low, t->high), OUT_OF_BUFFER);
  REQUIRE(!t->count || followed == t ||
              lies_inside(vm, t, followed, followed->low + t->inner_low, followed->high + t->inner_high),
          OUT_OF_BUFFER);
  return HAS_FULL && vm->side ? touch(vm->side, tensor, written ? IS_WRITTEN : IS_READ) : OK;
}

static int bind_accesses(Vm *vm, const int32_t *w) {
  const uint8_t *form = (const uint8_t *)FORMS[CODE(w)];
  int error = OK;
  for (int i = 0; !error && form[i]; i++) {
    if (form[i] & OPERAND_TENSOR) error = w[2 + i] < 0 ? OK : bind_access(vm, w[2 + i], form[i] & OPERAND_WRITTEN);
    else if (form[i] & OPERAND_SIZE && CODE(w) != I_let)
      REQUIRE(vm->running || w[2 + i] < 0 || !vm->late[w[2 + i]], BAD_OPERANDS);
  }
  if (CODE(w) != I_expression) return error;
  Expression e = expression_of((const expression_operands *)(w + 2));
  for (int i = 0; !error && i < e.inputs; i++) error = bind_access(vm, e.input[i], 0);
  for (int i = 0; !error && i < e.outputs; i++) error = bind_access(vm, e.output[i].tensor, 1);
  return error;
}

int32_t wr_plan_bind(const int32_t *plan, const int32_t *symbols, uint8_t *tables) {
  Vm *vm = lay_out(plan, (char *)tables);
  int error;
  if ((error = bind_sizes(vm, symbols)) || (error = bind_buffers(vm))) return error;
  bind_tensors(vm);
  return bind_block(vm, 0, plan[HEADER_CODE_WORDS]);
}

/* After plan_bind, which takes all limits away. */
void wr_plan_limit(uint8_t *tables, const int64_t *limits) { set_limits(&((Vm *)tables)->budget, limits); }

#ifdef HAS_TEAM
/* After plan_bind: so many threads of a team work on each run, the one that calls counted. least_work: that of a part, in
 * multiply-adds; with 0 parts are made even if nobody is there to help, which only tests want. */
void wr_plan_hire(uint8_t *tables, uint8_t *team, int32_t threads, int32_t least_work) {
  Vm *vm = (Vm *)tables;
  vm->hired = (Team *)team, vm->threads = threads < MOST_PARTS ? threads : MOST_PARTS, vm->least_work = least_work;
}
/* The work of the last run that could be shared, in millions of multiply-adds, 0 if somebody else led the team */
int32_t wr_plan_shared(const uint8_t *tables) {
  const int64_t millions = ((const Vm *)tables)->shared >> 20;
  return millions > INT32_MAX ? INT32_MAX : (int32_t)millions;
}
#endif

/* steps: those that the loops of the last run were charged for */
void wr_plan_steps(const uint8_t *tables, int64_t *steps) {
  const Budget *b = &((const Vm *)tables)->budget;
  *steps = b->run_steps - b->steps_left;
}

int32_t wr_plan_arena_bytes(const uint8_t *tables) {
  const Vm *vm = (const Vm *)tables;
  return (int32_t)vm->slot[vm->plan[HEADER_SLOTS]];
}

/* bytes that the host must provide for an external, 0 for one that is not used */
int32_t wr_plan_external_bytes(const uint8_t *tables, int32_t external) {
  const Vm *vm = (const Vm *)tables;
  int64_t bytes = 0;
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++) {
    const Buffer *b = vm->buffer + i;
    if (b->kind == BUFFER_EXTERNAL && b->place == external && b->bytes > bytes) bytes = b->bytes;
  }
  return (int32_t)bytes;
}

/* A row of the table of sizes; what is set while running is that of the last run. */
int32_t wr_plan_size(const uint8_t *tables, int32_t row) {
  const Vm *vm = (const Vm *)tables;
  return below(row, vm->plan[HEADER_SIZES]) ? vm->size[row] : UNSET;
}

int32_t wr_plan_where(const uint8_t *tables) { return ((const Vm *)tables)->where; }

/* Addresses of buffers and tensors; called when the host has moved one. */
static void place(Vm *vm, char *arena, char *const *externals) {
  vm->arena = arena, vm->placed = 1;
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++) {
    Buffer *b = vm->buffer + i;
    if (b->kind == BUFFER_ARENA) b->base = arena + vm->slot[b->place];
    if (b->kind == BUFFER_EXTERNAL) b->base = externals[b->place];
  }
  for (int i = 0; i < vm->plan[HEADER_TENSORS]; i++) {
    Tensor *t = vm->tensor + i;
    t->data = vm->buffer[t->buffer].base + t->offset * ITEM[t->dtype];
  }
}

static int is_placed(const Vm *vm, const char *arena, char *const *externals) {
  if (!vm->placed || vm->arena != arena) return 0;
  for (int i = 0; i < vm->plan[HEADER_BUFFERS]; i++) {
    const Buffer *b = vm->buffer + i;
    if (b->kind == BUFFER_EXTERNAL && b->base != externals[b->place]) return 0;
  }
  return 1;
}
