/* Functions of doubles, one element at a time and without fused multiply-adds: the same bits on every target. What is said of
 * errors is for results that are not denormal; special values are those of C99. */
#include "vmath.h"

#define INFINITE __builtin_inf()
#define NOT_A_NUMBER __builtin_nan("")
#define LN2_HIGH 0x1.62e42fee00000p-1 /* n * LN2_HIGH is exact for |n| < 2^21 */
#define LN2_LEFT 0x1.a39ef35793c76p-33
#define HALF_PI 1.57079632679489661923
#define ROUND_DOUBLE 6755399441055744.0 /* 1.5 * 2^52 */

/* 1 / n! */
static const double inverse_factorial[] = {1.0,
                                           1.0,
                                           1.0 / 2,
                                           1.0 / 6,
                                           1.0 / 24,
                                           1.0 / 120,
                                           1.0 / 720,
                                           1.0 / 5040,
                                           1.0 / 40320,
                                           1.0 / 362880,
                                           1.0 / 3628800,
                                           1.0 / 39916800,
                                           1.0 / 479001600,
                                           1.0 / 6227020800,
                                           1.0 / 87178291200.0,
                                           1.0 / 1307674368000.0,
                                           1.0 / 20922789888000.0,
                                           1.0 / 355687428096000.0,
                                           1.0 / 6402373705728000.0};

/* 1 / (2 n + 1) */
static const double inverse_odd[] = {1.0,      1.0 / 3,  1.0 / 5,  1.0 / 7,  1.0 / 9,  1.0 / 11, 1.0 / 13, 1.0 / 15,
                                     1.0 / 17, 1.0 / 19, 1.0 / 21, 1.0 / 23, 1.0 / 25, 1.0 / 27, 1.0 / 29, 1.0 / 31,
                                     1.0 / 33, 1.0 / 35, 1.0 / 37, 1.0 / 39, 1.0 / 41, 1.0 / 43};

INLINE int64_t bits_of(double x) {
  int64_t bits;
  __builtin_memcpy(&bits, &x, 8);
  return bits;
}
INLINE double double_of(int64_t bits) {
  double x;
  __builtin_memcpy(&x, &bits, 8);
  return x;
}
INLINE double with_sign(double x, double sign) { return __builtin_copysign(x, sign); }

INLINE double round_double(double x) {
  const double whole = with_sign((__builtin_fabs(x) + 0x1p52) - 0x1p52, x);
  return __builtin_fabs(x) < 0x1p52 ? whole : x;
}
INLINE double floor_double(double x) {
  const double whole = round_double(x);
  return whole > x ? with_sign(whole - 1, x) : whole;
}

/* exp(x) - 1 for |x| <= ln2 / 2 */
INLINE double expm1_core(double x) {
  double y = inverse_factorial[14];
  for (int n = 13; n >= 2; n--) y = y * x + inverse_factorial[n];
  return x + x * x * y;
}

/* 1 ULP */
static COMPACT double exp_double(double x) {
  const double within = x > 710 ? 710 : x < -746 ? -746 : x == x ? x : 0;
  const double t = within * 1.44269504088896340736 + ROUND_DOUBLE, k = t - ROUND_DOUBLE;
  const double y = 1 + expm1_core((within - k * LN2_HIGH) - k * LN2_LEFT);
  const int64_t n = bits_of(t) - bits_of(ROUND_DOUBLE), half = n >> 1;
  return x == x ? y * double_of((half + 1023) << 52) * double_of((n - half + 1023) << 52) : x;
}

/* 3 ULP */
static COMPACT double expm1_double(double x) {
  return x < -0.34 || x > 0.34 || x != x ? exp_double(x) - 1 : x == 0 ? x : expm1_core(x);
}

/* 1 ULP */
static COMPACT double log_double(double x) {
  const int tiny = x < 0x1p-1022;
  const int64_t bits = bits_of(tiny ? x * 0x1p54 : x) - 0x3fe6a09e667f3bcd; /* sqrt(1/2) */
  const double k = (double)((bits >> 52) - (tiny ? 54 : 0));
  const double f = double_of((bits & 0xfffffffffffff) + 0x3fe6a09e667f3bcd) - 1, s = f / (2 + f), z = s * s;
  double r = inverse_odd[11];
  for (int n = 10; n >= 1; n--) r = r * z + inverse_odd[n];
  const double y = k * LN2_HIGH + (f - (s * (f - 2 * z * r) - k * LN2_LEFT));
  if (x > 0 && x < INFINITE) return y;
  return x == 0 ? -INFINITE : x < 0 ? NOT_A_NUMBER : x;
}

/* 2 ULP */
static COMPACT double log1p_double(double x) {
  const double u = 1 + x, y = log_double(u);
  return u > 0 && u < INFINITE ? (u == 1 ? x : y + (x - (u - 1)) / u) : y;
}

INLINE uint64_t high_product(uint64_t a, uint64_t b) {
  const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  const uint64_t middle = a0 * b1 + (a0 * b0 >> 32), other = a1 * b0 + (uint32_t)middle;
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

/* The sine of x + `turn` quarter turns, after Payne and Hanek: 2 ULP */
static COMPACT double sine(double x, int turn) {
  const int64_t bits = bits_of(x) & INT64_MAX;
  const int exponent = (int)(bits >> 52);
  if (exponent == 2047) return x - x;
  double r = x;
  if (bits > bits_of(0.78)) {
    const uint64_t mantissa = ((uint64_t)bits & 0xfffffffffffff) | (uint64_t)1 << 52;
    const int at = exponent - 1075 + 64;
    const uint64_t h1 = inverse_two_pi_bits(at + 64), low = mantissa * h1;
    const uint64_t left = low + high_product(mantissa, inverse_two_pi_bits(at + 128));
    const uint64_t turns = mantissa * inverse_two_pi_bits(at) + high_product(mantissa, h1) + (left < low);
    const int64_t rest = (int64_t)(turns << 2 | left >> 62);
    const int quarter = (int)(turns >> 62) + (rest < 0);
    r = ((double)rest + (double)(left << 2) * 0x1p-64) * (HALF_PI * 0x1p-64);
    turn += x < 0 ? -quarter : quarter;
    r = x < 0 ? -r : r;
  }
  const int is_cosine = turn & 1;
  if (r == 0 && !is_cosine) return r;
  const double z = r * r;
  double y = 0;
  for (int n = is_cosine ? 18 : 17; n > 1; n -= 2) y = inverse_factorial[n] - y * z;
  y = is_cosine ? 1 - z * y : r - r * z * y;
  return turn & 2 ? -y : y;
}

/* 2 ULP */
static COMPACT double atan_double(double x) {
  const double a = x < 0 ? -x : x, inverted = a > 1 ? 1 / a : a;
  const int turned = inverted > 0.41421356237309505;
  const double t = turned ? (inverted - 1) / (inverted + 1) : inverted, z = t * t;
  double y = inverse_odd[21];
  for (int n = 20; n >= 1; n--) y = inverse_odd[n] - y * z;
  y = t - t * z * y;
  if (turned) y = y + HALF_PI / 2;
  if (a > 1) y = HALF_PI - y;
  return x == x ? with_sign(y, x) : x;
}

/* A sum of positive terms: 2 / sqrt(pi) exp(-x^2) sum of 2^n x^(2n+1) / (2n+1)!!; 20 ULP */
static COMPACT double erf_double(double x) {
  const double z = x * x;
  if (!(z < 36)) return x == x ? with_sign(1, x) : x;
  double term = x, sum = x;
  for (int n = 1; __builtin_fabs(term) > __builtin_fabs(sum) * 0x1p-55; n++) term = term * (2 * z) / (2 * n + 1), sum += term;
  const double y = 1.12837916709551257390 * exp_double(-z) * sum;
  return __builtin_fabs(y) < 1 ? y : with_sign(1, x);
}

/* The error grows with the logarithm of the result, to 1e-13 of it; small whole powers of small whole numbers are exact. */
static COMPACT double pow_double(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (x != x || y != y) return x + y;
  const double a = __builtin_fabs(x), size = __builtin_fabs(y);
  const int whole = size >= 0x1p53 || (double)(int64_t)size == size;
  const int odd = whole && size < 0x1p53 && ((int64_t)size & 1);
  double result;
  if (a == 1) result = 1;
  else if (size == INFINITE) result = (a > 1) == (y > 0) ? INFINITE : 0;
  else if (whole && size <= 64) {
    double factor = a;
    result = 1;
    for (int n = (int)size; n; n >>= 1, factor *= factor) result *= n & 1 ? factor : 1;
    if (y < 0) result = 1 / result;
  } else result = exp_double(y * log_double(a)); /* also of 0 and infinity */
  if (x < 0 && !whole && a != INFINITE) return NOT_A_NUMBER;
  return with_sign(1, x) < 0 && odd ? -result : result;
}

/* What is left of x after whole steps of y towards zero, exactly */
static COMPACT double fmod_double(double x, double y) {
  double a = __builtin_fabs(x), b = __builtin_fabs(y);
  if (!(a < INFINITE) || !(b > 0)) return NOT_A_NUMBER;
  if (b == INFINITE) return x;
  while (a >= b) {
    /* the largest step b * 2^k below a, so that a - step is exact */
    double step = b;
    for (int64_t k = (bits_of(a) >> 52) - (bits_of(b) >> 52); k > 0; k -= 1000)
      step *= double_of(((k > 1000 ? 1000 : k) + 1023) << 52);
    while (step <= a * 0.5) step *= 2;
    if (step > a) step *= 0.5;
    a -= step;
  }
  return with_sign(a, x);
}
