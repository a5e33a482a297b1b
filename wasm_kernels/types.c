/* Numbers of all element types: a tile of any of them is read as int64 or double, and written from these. */
#include "plan.gen.h"
#include "doubles.c"

/* A type of floating-point numbers. Patterns without their sign: `largest` is that of the largest number, `infinity` that of
 * infinity, or of NaN where there is none; `nan` is the whole pattern that NaN is written as, -1 where there is none. */
typedef struct {
  int8_t exponent, mantissa;
  int16_t bias;
  int32_t largest, infinity, nan;
} Layout;

static const Layout LAYOUTS[DTYPE_COUNT] = {
    [DTYPE_F16] = {5, 10, 15, 0x7bff, 0x7c00, 0x7e00},
    [DTYPE_BF16] = {8, 7, 127, 0x7f7f, 0x7f80, 0x7fc0},
    [DTYPE_F8E4M3FN] = {4, 3, 7, 0x7e, 0x7f, 0x7f},
    [DTYPE_F8E4M3FNUZ] = {4, 3, 8, 0x7f, 0x80, 0x80},
    [DTYPE_F8E5M2] = {5, 2, 15, 0x7b, 0x7c, 0x7e},
    [DTYPE_F8E5M2FNUZ] = {5, 2, 16, 0x7f, 0x80, 0x80},
    [DTYPE_F4E2M1] = {2, 1, 1, 7, 7, -1},
    [DTYPE_F6E2M3] = {2, 3, 1, 31, 31, -1},
    [DTYPE_F6E3M2] = {3, 2, 3, 31, 31, -1},
};

INLINE double decoded(int32_t bits, const Layout *l) {
  const int32_t sign = 1 << (l->exponent + l->mantissa), pattern = bits & (sign - 1), exponent = pattern >> l->mantissa;
  double x;
  if (pattern > l->largest || bits == l->nan) x = l->infinity != l->nan && pattern == l->infinity ? INFINITE : NOT_A_NUMBER;
  else if (exponent) x = double_of((int64_t)pattern << (52 - l->mantissa)) * double_of((int64_t)(2046 - l->bias) << 52);
  else x = (double)pattern * double_of((int64_t)(1 - l->bias - l->mantissa + 1023) << 52);
  return bits & sign ? -x : x;
}

/* Rounded to nearest, ties to even. What is too large is the largest number, or infinity or NaN if it does not saturate. */
INLINE int32_t encoded(double x, const Layout *l, int saturates) {
  const double a = __builtin_fabs(x), top = double_of((int64_t)(1023 + 200) << 52);
  if (x != x) return l->nan < 0 ? 0 : l->nan;
  const int64_t least = 1024 - l->bias; /* the exponent field of the smallest normal number */
  const double capped = a < top ? a : top;
  const int64_t field = bits_of(capped) >> 52, exponent = field < least ? least : field;
  /* its last bit has the weight of the last bit of the result */
  const double magic = double_of((exponent + 52 - l->mantissa) << 52 | (int64_t)1 << 51), rounded = (capped + magic) - magic;
  int64_t pattern = exponent > least || rounded >= double_of(least << 52)
                        ? (bits_of(rounded) - ((least - 1) << 52)) >> (52 - l->mantissa)
                        : (int64_t)(rounded * double_of((2046 - least + l->mantissa) << 52));
  if (pattern > l->largest) pattern = saturates || l->nan < 0 ? l->largest : l->infinity;
  const int32_t sign = 1 << (l->exponent + l->mantissa);
  return (int32_t)pattern | (__builtin_signbit(x) && (pattern || l->nan != sign) ? sign : 0);
}

/* The exponent of a float; `how` its mantissa is rounded: 0 up, 1 down, 2 to nearest */
INLINE int32_t exponent_alone(float x, int saturates, int how) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  const int32_t exponent = (int32_t)(bits >> 23 & 255), mantissa = (int32_t)(bits & 0x7fffff);
  const int up = how == 0 ? mantissa > (exponent ? 0 : 0x400000) : how == 2 && mantissa >= (exponent ? 0x400000 : 0x600000);
  return exponent == 255 ? 255 : exponent + up > 254 && saturates ? 254 : exponent + up;
}

INLINE int64_t to_int(double x) { return x >= -0x1p63 && x < 0x1p63 ? (int64_t)x : INT64_MIN; }

typedef union {
  int64_t i;
  double d;
} Number;

INLINE int is_float(int dtype) {
  return dtype == DTYPE_F32 || dtype == DTYPE_F64 || dtype == DTYPE_F8E8M0 || LAYOUTS[dtype].mantissa;
}

#define EACH_ELEMENT for (int32_t i = 0; i < n; i++)
#define READ(type) ((const type *)x)[(ptrdiff_t)i * step]
/* Of a type, in modules that have it */
#define TYPE(NAME, statement)               \
  case DTYPE_##NAME:                        \
    if (HAS_##NAME) EACH_ELEMENT statement; \
    return;

static COMPACT void read_numbers(const char *x, int32_t step, int dtype, Number *y, int32_t n) {
  const Layout *l = LAYOUTS + dtype;
  switch (dtype) {
    TYPE(F32, y[i].d = READ(float))
    TYPE(F64, y[i].d = READ(double))
    TYPE(I32, y[i].i = READ(int32_t))
    TYPE(U32, y[i].i = READ(uint32_t))
  case DTYPE_I64:
    TYPE(U64, y[i].i = READ(int64_t))
    TYPE(I16, y[i].i = READ(int16_t))
    TYPE(U16, y[i].i = READ(uint16_t))
  case DTYPE_F16:
    TYPE(BF16, y[i].d = decoded(READ(uint16_t), l))
    TYPE(I8, y[i].i = READ(int8_t))
    TYPE(I4, y[i].i = ((READ(uint8_t) & 15) ^ 8) - 8)
    TYPE(I2, y[i].i = ((READ(uint8_t) & 3) ^ 2) - 2)
    TYPE(U4, y[i].i = READ(uint8_t) & 15)
    TYPE(U2, y[i].i = READ(uint8_t) & 3)
    TYPE(BOOL, y[i].i = READ(uint8_t) != 0)
    TYPE(U8, y[i].i = READ(uint8_t))
    TYPE(F8E8M0, y[i].d = READ(uint8_t) == 255 ? NOT_A_NUMBER : double_of((int64_t)(READ(uint8_t) + 1023 - 127) << 52))
  default:
    if (HAS_FULL) EACH_ELEMENT y[i].d = decoded(READ(uint8_t), l);
  }
}

/* Integers from doubles: towards zero; what does not fit into 32 bits, or 64 for wider types, is the smallest of these, of which
 * the low bits are kept. */
static COMPACT void round_numbers(Number *x, int dtype, int32_t n) {
  const double limit = dtype == DTYPE_I64 || dtype == DTYPE_U64 || dtype == DTYPE_U32 ? 0x1p63 : 0x1p31;
  const int is_small = HAS_FULL && (dtype == DTYPE_U4 || dtype == DTYPE_I4 || dtype == DTYPE_U2 || dtype == DTYPE_I2);
  EACH_ELEMENT {
    const double d = x[i].d;
    if (dtype == DTYPE_BOOL) x[i].i = d != 0;
    else if (is_small) x[i].i = to_int(__builtin_fabs(d) < 0x1p51 ? (d + ROUND_DOUBLE) - ROUND_DOUBLE : d);
    else if (dtype == DTYPE_U64 && d >= 0x1p63 && d < 0x1p64) x[i].i = (int64_t)(uint64_t)d;
    else x[i].i = d >= -limit && d < limit ? (int64_t)d : -(int64_t)(limit * 0.5) * 2;
  }
}

static COMPACT void write_numbers(Number *x, int dtype, char *y, int32_t n, int saturates, int how) {
  const Layout *l = LAYOUTS + dtype;
  switch (dtype) {
    TYPE(F32, ((float *)y)[i] = (float)x[i].d)
    TYPE(BF16, ((uint16_t *)y)[i] = (uint16_t)encoded((float)x[i].d, l, 0))
    TYPE(F16, ((uint16_t *)y)[i] = (uint16_t)encoded(x[i].d, l, 0))
    TYPE(F8E8M0, y[i] = (char)exponent_alone((float)x[i].d, saturates, how))
    TYPE(BOOL, y[i] = x[i].i != 0)
  }
  if (HAS_FULL && l->mantissa) {
    EACH_ELEMENT y[i] = (char)encoded(x[i].d, l, saturates);
    return;
  }
  const int is_4 = dtype == DTYPE_U4 || dtype == DTYPE_I4, is_2 = dtype == DTYPE_U2 || dtype == DTYPE_I2;
  const int mask = !HAS_FULL ? 255 : is_4 ? 15 : is_2 ? 3 : 255;
  switch (ITEM[dtype]) {
  case 8: EACH_ELEMENT((int64_t *)y)[i] = x[i].i; return;
  case 4: EACH_ELEMENT((int32_t *)y)[i] = (int32_t)x[i].i; return;
  case 2: EACH_ELEMENT((int16_t *)y)[i] = (int16_t)x[i].i; return;
  default: EACH_ELEMENT y[i] = (char)(x[i].i & mask);
  }
}

INLINE uint32_t float_bits(float x) {
  uint32_t bits;
  __builtin_memcpy(&bits, &x, 4);
  return bits;
}
INLINE float float_with(uint32_t bits) {
  float x;
  __builtin_memcpy(&x, &bits, 4);
  return x;
}

INLINE float half_to_float(uint32_t h) {
  const uint32_t bits = (h & 0x7fff) << 13, moved = float_bits(float_with(bits) * 0x1p112f);
  return float_with((h & 0x8000) << 16 | moved | (bits >= 0x0f800000 ? 0x7f800000 : 0));
}
INLINE uint32_t float_to_half(float x) {
  const uint32_t bits = float_bits(x), a = bits & 0x7fffffff;
  const uint32_t normal = (a - 0x38000000 + 0xfff + (a >> 13 & 1)) >> 13;
  const uint32_t tiny = float_bits(float_with(a) + 0.5f) - 0x3f000000; /* its last bit is that of 0.5 */
  const uint32_t h = a < 0x38800000 ? tiny : a < 0x477ff000 ? normal : a <= 0x7f800000 ? 0x7c00 : 0x7e00;
  return (bits >> 16 & 0x8000) | h;
}
INLINE uint32_t float_to_bfloat(float x) {
  const uint32_t bits = float_bits(x);
  return x == x ? (bits + 0x7fff + (bits >> 16 & 1)) >> 16 : 0x7fc0;
}
INLINE int32_t float_to_int(float x) { return x >= -0x1p31f && x < 0x1p31f ? (int32_t)x : INT32_MIN; }

/* Casts that models do all the time, in vectors; 0 if it is none of them */
#define PAIR(from, to) ((from) * DTYPE_COUNT + (to))
#define CAST(from, to, source, target, expr)                                 \
  case PAIR(DTYPE_##from, DTYPE_##to):                                       \
    _Pragma("clang loop interleave(disable) unroll(disable)") EACH_ELEMENT { \
      const source v = ((const source *)x)[i];                               \
      ((target *)y)[i] = (target)(expr);                                     \
    }                                                                        \
    return 1;
NOINLINE int cast_often(const char *restrict x, int from, char *restrict y, int to, int32_t n) {
  switch (PAIR(from, to)) {
#if defined(__F16C__) && __clang_major__ >= 15
    CAST(F16, F32, _Float16, float, v)
    CAST(F32, F16, float, _Float16, v)
#else
    CAST(F16, F32, uint16_t, float, half_to_float(v))
    CAST(F32, F16, float, uint16_t, float_to_half(v))
#endif
    CAST(BF16, F32, uint16_t, float, float_with((uint32_t)v << 16))
    CAST(F32, BF16, float, uint16_t, float_to_bfloat(v))
    CAST(U8, F32, uint8_t, float, v)
    CAST(I8, F32, int8_t, float, v)
    CAST(I16, F32, int16_t, float, v)
    CAST(I32, F32, int32_t, float, v)
    CAST(I64, F32, int64_t, float, v)
    CAST(BOOL, F32, uint8_t, float, v != 0)
    CAST(BOOL, I64, uint8_t, int64_t, v != 0)
    CAST(I32, I64, int32_t, int64_t, v)
    CAST(I64, I32, int64_t, int32_t, v)
    CAST(F32, I64, float, int64_t, v >= -0x1p63f && v < 0x1p63f ? (int64_t)v : INT64_MIN)
    CAST(F32, I32, float, int32_t, float_to_int(v))
    CAST(F32, U8, float, uint8_t, float_to_int(v))
    CAST(F32, I8, float, int8_t, float_to_int(v))
  }
  return 0;
}

/* y[n] = n numbers of the type `from`, `step` (0 or 1) apart, as the type `to`; n is at most TILE */
static COMPACT void cast_numbers(const char *x, int32_t step, int from, char *y, int to, int32_t n, int saturates, int how) {
  Number numbers[TILE];
  if (step && x != y && cast_often(x, from, y, to, n)) return;
  read_numbers(x, step, from, numbers, n);
  if (is_float(from) && !is_float(to)) round_numbers(numbers, to, n);
  if (!is_float(from) && is_float(to)) EACH_ELEMENT {
      const int64_t i64 = numbers[i].i;
      /* to what is smaller than a float by way of one */
      if (from == DTYPE_U64) numbers[i].d = to == DTYPE_F64 ? (double)(uint64_t)i64 : (float)(uint64_t)i64;
      else numbers[i].d = to == DTYPE_F64 ? (double)i64 : (float)i64;
    }
  write_numbers(numbers, to, y, n, saturates, how);
}
