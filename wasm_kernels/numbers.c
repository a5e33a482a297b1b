/* Reductions of numbers other than float32, and random numbers.
 *
 * Everything here is integers and correctly rounded operations of float64 (+, -, *, /, sqrt), each in its own statement of
 * the order: all builds and numpy give the same bits. The numpy side is runtime/webrnn/reference/exact.py. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- reductions ------------------------------------------------------------------------------------------------------ */

INLINE int is_number(int32_t dtype) { return dtype != DTYPE_F32 && dtype != DTYPE_F16 && dtype != DTYPE_BF16; }
INLINE int is_unsigned(int32_t dtype) {
  return dtype == DTYPE_BOOL || dtype == DTYPE_U8 || dtype == DTYPE_U16 || dtype == DTYPE_U32 || dtype == DTYPE_U64;
}

static int64_t load_integer(const char *at, int32_t dtype) {
  uint64_t word = 0;
  __builtin_memcpy(&word, at, (size_t)ITEM[dtype]);
  const int spare = 64 - 8 * ITEM[dtype];
  return is_unsigned(dtype) ? (int64_t)word : (int64_t)(word << spare) >> spare;
}

/* n integers, `stride` bytes apart; sums wrap as numpy's do */
static int64_t reduce_integers(const char *x, int32_t n, ptrdiff_t stride, int32_t dtype, int32_t kind) {
  const int is_max = kind == NUMBER_REDUCTION_MAX, is_min = kind == NUMBER_REDUCTION_MIN;
  const int bits = dtype == DTYPE_BOOL ? 1 : 8 * ITEM[dtype];
  const uint64_t lowest = is_unsigned(dtype) ? 0 : (uint64_t)-1 << (bits - 1), all = (uint64_t)-1 >> (64 - bits);
  /* of uint64 the order is that of int64 with the first bit turned */
  const uint64_t turn = dtype == DTYPE_U64 ? (uint64_t)1 << 63 : 0;
  uint64_t total = is_max ? lowest : is_min ? lowest + all : kind == NUMBER_REDUCTION_PROD;
  for (int32_t i = 0; i < n; i++, x += stride) {
    const int64_t v = load_integer(x, dtype);
    const int is_more = (int64_t)((uint64_t)v ^ turn) > (int64_t)(total ^ turn);
    switch (kind) {
    case NUMBER_REDUCTION_MAX: total = is_more ? (uint64_t)v : total; break;
    case NUMBER_REDUCTION_MIN: total = is_more ? total : (uint64_t)v; break;
    case NUMBER_REDUCTION_PROD: total *= (uint64_t)v; break;
    case NUMBER_REDUCTION_SUM_SQUARE:
    case NUMBER_REDUCTION_L2: total += (uint64_t)v * (uint64_t)v; break;
    case NUMBER_REDUCTION_L1: total += v < 0 && !turn ? 0 - (uint64_t)v : (uint64_t)v; break;
    default: total += (uint64_t)v;
    }
  }
  if (kind != NUMBER_REDUCTION_MEAN && kind != NUMBER_REDUCTION_L2) return (int64_t)total;
  if (kind == NUMBER_REDUCTION_L2) total = (uint64_t)load_integer((const char *)&total, dtype);
  double y = turn ? (double)total : (double)(int64_t)total;
  y = kind == NUMBER_REDUCTION_L2 ? __builtin_sqrt(y) : y / (double)n;
  return y >= -0x1p63 && y < 0x1p63 ? (int64_t)y : INT64_MIN;
}

static double reduce_doubles(const char *x, int32_t n, ptrdiff_t stride, int32_t kind) {
  const int is_max = kind == NUMBER_REDUCTION_MAX, is_min = kind == NUMBER_REDUCTION_MIN;
  double total = is_max ? -__builtin_inf() : is_min ? __builtin_inf() : kind == NUMBER_REDUCTION_PROD, top = 0.0;
  if (kind == NUMBER_REDUCTION_LOG_SUM_EXP) {
    top = reduce_doubles(x, n, stride, NUMBER_REDUCTION_MAX);
    if (!(top - top == 0.0)) top = 0.0;
  }
  for (int32_t i = 0; i < n; i++, x += stride) {
    double v;
    __builtin_memcpy(&v, x, 8);
    switch (kind) {
    case NUMBER_REDUCTION_MAX: total = total > v || total != total ? total : v; break;
    case NUMBER_REDUCTION_MIN: total = total < v || total != total ? total : v; break;
    case NUMBER_REDUCTION_PROD: total = total * v; break;
    case NUMBER_REDUCTION_SUM_SQUARE:
    case NUMBER_REDUCTION_L2: total = total + v * v; break;
    case NUMBER_REDUCTION_L1: total = total + __builtin_fabs(v); break;
    case NUMBER_REDUCTION_LOG_SUM_EXP: total = total + exp_double(v - top); break;
    default: total = total + v;
    }
  }
  switch (kind) {
  case NUMBER_REDUCTION_MEAN: return total / (double)n;
  case NUMBER_REDUCTION_L2: return __builtin_sqrt(total);
  case NUMBER_REDUCTION_LOG_SUM:
  case NUMBER_REDUCTION_LOG_SUM_EXP: return log_double(total) + top;
  default: return total;
  }
}

static int check_reduce_numbers(Vm *vm, const reduce_numbers_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(x->dtype == y->dtype && is_number(x->dtype) && below(o->kind, NUMBER_REDUCTION_COUNT));
  ASK(is_dense(x, 3) && is_dense(y, 2) && x->size[0] == y->size[0] && x->size[2] == y->size[1]);
  return OK;
}
static int run_reduce_numbers(Vm *vm, const reduce_numbers_operands *o) {
  DONE_IF_EMPTY(y);
  const int32_t dtype = T(x)->dtype, n = T(x)->size[1], inner = T(x)->size[2], item = ITEM[dtype];
  char *y = T(y)->data;
  for (int32_t i = 0; i < T(y)->count; i++, y += item) {
    const char *x = T(x)->data + ((ptrdiff_t)(i / inner) * n * inner + i % inner) * item;
    if (HAS_F64 && dtype == DTYPE_F64) {
      const double found = reduce_doubles(x, n, (ptrdiff_t)inner * item, o->kind);
      __builtin_memcpy(y, &found, 8);
    } else {
      const int64_t found = reduce_integers(x, n, (ptrdiff_t)inner * item, dtype, o->kind);
      __builtin_memcpy(y, &found, (size_t)item); /* little-endian, as plans are */
    }
  }
  return OK;
}

/* --- random numbers -------------------------------------------------------------------------------------------------- */

#define GAMMA 0x9e3779b97f4a7c15u

/* A bijection whose results look random */
INLINE uint64_t mixed(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

/* Box and Muller: radius from the first half of the bits, angle from the second */
static float normal_of(uint64_t bits) {
  const double radius = ((double)(bits >> 32) + 1.0) * 0x1p-32, turn = (double)(uint32_t)bits * 0x1p-32;
  const double angle = (turn - 0.5) * 6.283185307179586, z = angle * angle;
  double p = 1.0;
  for (int i = 28; i > 0; i -= 2) p = 1.0 - p * z / (double)(i * (i - 1));
  return (float)(__builtin_sqrt(-2.0 * log_double(radius)) * -p);
}

static int check_random(Vm *vm, const random_operands *o) {
  ASK(T(counter)->count == 1 && T(y)->contiguous);
  return OK;
}
static int run_random(Vm *vm, const random_operands *o) {
  const uint64_t key = mixed(((uint64_t)(uint32_t)o->seed + 1) * GAMMA);
  const uint64_t counter = (uint64_t)*(const int64_t *)T(counter)->data;
  float *y = F(y);
  for (int32_t i = 0; i < T(y)->count; i++) {
    const uint64_t bits = mixed(key + (counter + 1 + (uint64_t)i) * GAMMA);
    y[i] = o->normal ? normal_of(bits) : (float)(bits >> 40) * 0x1p-24f;
  }
  return OK;
}

static int check_choose(Vm *vm, const choose_operands *o) {
  ASK(is_dense(T(scores), 2) && is_dense(T(numbers), 2) && is_dense(T(y), 2) && same_sizes(T(numbers), T(y)));
  ASK(T(scores)->size[0] == T(y)->size[0] && T(scores)->size[1] > 0);
  return OK;
}
static int run_choose(Vm *vm, const choose_operands *o) {
  DONE_IF_EMPTY(y);
  const int32_t classes = T(scores)->size[1], n = T(y)->size[1];
  const float *x = F(scores), *numbers = F(numbers);
  int64_t *y = (int64_t *)T(y)->data;
  for (int32_t row = 0; row < T(y)->size[0]; row++, x += classes, numbers += n, y += n) {
    float top;
    wr_reduce_max(x, &top, 1, classes, 1);
    double total = 0.0, sum = 0.0;
    for (int32_t k = 0; k < classes; k++) total = total + exp_double((double)x[k] - (double)top);
  NO_VECTORS for (int32_t i = 0; i < n; i++) y[i] = 0;
    for (int32_t k = 0; k < classes - 1; k++) {
      sum = sum + exp_double((double)x[k] - (double)top);
      NO_VECTORS for (int32_t i = 0; i < n; i++) y[i] += sum <= (double)numbers[i] * total;
    }
  }
  return OK;
}
