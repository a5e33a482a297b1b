/* Data movement: strided copy (transpose, slice, concat, expand, pad after fill), gather, fill. */
#include "kernels.gen.h"
#include "simd.h"

void wr_fill(float *y, int32_t n, float value) {
  int i = 0;
  for (; i + VL <= n; i += VL) vstore(y + i, vset(value));
  if (i < n) vstore_part(y + i, vset(value), n - i);
}

#define MAX_DIMS 8
#define BLOCK 16 /* transposes run in BLOCK x BLOCK tiles, so that both sides use whole cache lines */

/* dst[i, j] = src[i, j] for one element size, the last two axes */
#define COPY_2D(type)                                                                                                   \
  static void copy_2d_##type(const type *src, type *dst, int rows, int cols, const int32_t s[2], const int32_t d[2]) {  \
    if (s[1] == 1 && d[1] == 1) {                                                                                       \
      for (int i = 0; i < rows; i++, src += s[0], dst += d[0]) __builtin_memmove(dst, src, (size_t)cols * sizeof *dst); \
      return;                                                                                                           \
    }                                                                                                                   \
    for (int i0 = 0, i1; i0 < rows; i0 = i1) {                                                                          \
      i1 = rows - i0 < BLOCK ? rows : i0 + BLOCK;                                                                       \
      for (int j0 = 0, j1; j0 < cols; j0 = j1) {                                                                        \
        j1 = rows <= BLOCK || cols - j0 < BLOCK ? cols : j0 + BLOCK;                                                    \
        for (int i = i0; i < i1; i++)                                                                                   \
          for (int j = j0; j < j1; j++)                                                                                 \
            dst[(ptrdiff_t)i * d[0] + (ptrdiff_t)j * d[1]] = src[(ptrdiff_t)i * s[0] + (ptrdiff_t)j * s[1]];            \
      }                                                                                                                 \
    }                                                                                                                   \
  }
COPY_2D(uint8_t)
COPY_2D(uint16_t)
COPY_2D(uint32_t)
COPY_2D(uint64_t)

#if VL > 1
typedef uint32_t v4 __attribute__((vector_size(16)));

/* dst[i, j] = src[j, i] of rows x cols, both whole fours: blocks of 4 x 4 are turned in registers */
NOINLINE void transpose(const uint32_t *src, uint32_t *dst, int rows, int cols, ptrdiff_t s, ptrdiff_t d) {
  for (int i0 = 0; i0 < rows; i0 += BLOCK)
    for (int j = 0; j < cols; j += 4)
      for (int i = i0; i < rows && i < i0 + BLOCK; i += 4) {
        v4 in[4], half[4];
  UNROLL for (int k = 0; k < 4; k++) __builtin_memcpy(in + k, src + (j + k) * s + i, sizeof *in);
        UNROLL for (int k = 0; k < 2; k++) {
          half[k] = __builtin_shufflevector(in[k], in[k + 2], 0, 4, 1, 5);
          half[k + 2] = __builtin_shufflevector(in[k], in[k + 2], 2, 6, 3, 7);
        }
        UNROLL for (int k = 0; k < 2; k++) {
          const v4 even = __builtin_shufflevector(half[2 * k], half[2 * k + 1], 0, 4, 1, 5);
          const v4 odd = __builtin_shufflevector(half[2 * k], half[2 * k + 1], 2, 6, 3, 7);
          __builtin_memcpy(dst + (i + 2 * k) * d + j, &even, sizeof even);
          __builtin_memcpy(dst + (i + 2 * k + 1) * d + j, &odd, sizeof odd);
        }
      }
}

/* The same of any size: what is left beside whole fours is copied one by one */
static void copy_transposed(const uint32_t *src, uint32_t *dst, int rows, int cols, const int32_t s[2], const int32_t d[2]) {
  const int i = rows & -4, j = cols & -4;
  transpose(src, dst, i, j, s[1], d[0]);
  copy_2d_uint32_t(src + (ptrdiff_t)j * s[1], dst + j, rows, cols - j, s, d);
  copy_2d_uint32_t(src + i, dst + (ptrdiff_t)i * d[0], rows - i, j, s, d);
}
#else
#define copy_transposed copy_2d_uint32_t
#endif

/* One element a row, over all of the row */
NOINLINE void copy_repeated(const uint32_t *src, uint32_t *dst, int rows, int cols, const int32_t s[2], const int32_t d[2]) {
  for (int i = 0; i < rows; i++, src += s[0], dst += d[0]) wr_fill((float *)dst, cols, *(const float *)src);
}

static void copy_2d_floats(const uint32_t *src, uint32_t *dst, int rows, int cols, const int32_t s[2], const int32_t d[2]) {
  if (d[1] == 1 && s[0] == 1 && rows > 3) copy_transposed(src, dst, rows, cols, s, d);
  else if (d[1] == 1 && s[1] == 0) copy_repeated(src, dst, rows, cols, s, d);
  else copy_2d_uint32_t(src, dst, rows, cols, s, d);
}

static void copy_2d(const char *src, char *dst, int item, int rows, int cols, const int32_t s[2], const int32_t d[2]) {
  const int32_t turned[2][2] = {{s[1], s[0]}, {d[1], d[0]}};
  if (cols < 4 && rows > cols) { /* the inner loop is the longer one */
    const int32_t other = rows;
    rows = cols, cols = other, s = turned[0], d = turned[1];
  }
  switch (item) {
  case 1: copy_2d_uint8_t((const uint8_t *)src, (uint8_t *)dst, rows, cols, s, d); return;
  case 2: copy_2d_uint16_t((const uint16_t *)src, (uint16_t *)dst, rows, cols, s, d); return;
  case 4: copy_2d_floats((const uint32_t *)src, (uint32_t *)dst, rows, cols, s, d); return;
  default: copy_2d_uint64_t((const uint64_t *)src, (uint64_t *)dst, rows, cols, s, d);
  }
}

/* layout[3][ndim]: sizes, source strides, destination strides in elements of `item` (1, 2, 4 or 8) bytes. src and dst must not
 * overlap. Returns 0, or 1 if ndim or item is out of range. */
int32_t wr_copy_strided(const uint8_t *src, uint8_t *dst, int32_t item, int32_t ndim, const int32_t *layout) {
  if (ndim < 1 || ndim > MAX_DIMS || (item != 1 && item != 2 && item != 4 && item != 8)) return 1;
  const int32_t *size = layout, *s = layout + ndim, *d = layout + 2 * ndim;
  for (int a = 0; a < ndim; a++)
    if (size[a] <= 0) return 0;
  const int last = ndim - 1, outer = ndim > 1 ? ndim - 2 : 0;
  const int32_t s2[2] = {ndim > 1 ? s[last - 1] : 0, s[last]}, d2[2] = {ndim > 1 ? d[last - 1] : 0, d[last]};
  int32_t index[MAX_DIMS] = {0};
  ptrdiff_t from = 0, to = 0;
  for (;;) {
    copy_2d((const char *)src + from * item, (char *)dst + to * item, item, ndim > 1 ? size[last - 1] : 1, size[last], s2, d2);
    int a = outer - 1;
    for (; a >= 0; a--) {
      from += s[a], to += d[a];
      if (++index[a] < size[a]) break;
      from -= (ptrdiff_t)size[a] * s[a], to -= (ptrdiff_t)size[a] * d[a];
      index[a] = 0;
    }
    if (a < 0) return 0;
  }
}

/* An element or a row of them; for the sizes of elements that is one move. */
INLINE void copy_bytes(void *dst, const void *src, ptrdiff_t bytes) {
  switch (bytes) {
  case 1: __builtin_memmove(dst, src, 1); return;
  case 2: __builtin_memmove(dst, src, 2); return;
  case 4: __builtin_memmove(dst, src, 4); return;
  case 8: __builtin_memmove(dst, src, 8); return;
  default: __builtin_memmove(dst, src, (size_t)bytes);
  }
}

/* dst[outer, count, inner] = src[outer, size, inner] at index[count]; negative indices count from the end.
 * inner is in bytes. Returns 0, or 1 + the position of the first index out of range, before anything is written (or while it
 * is, if dst overlaps index: each index is looked at where it is used). */
int32_t wr_gather(const uint8_t *src, const int64_t *index, uint8_t *dst, int32_t outer, int32_t size, int32_t inner,
                  int32_t count) {
  for (int i = 0; i < count; i++)
    if (index[i] < -(int64_t)size || index[i] >= size) return i + 1;
  if (!inner || !count) return 0;
  for (int o = 0; o < outer; o++, src += (ptrdiff_t)size * inner)
    for (int i = 0; i < count; i++, dst += inner) {
      const int64_t at = index[i] < 0 ? index[i] + size : index[i];
      if (at < 0 || at >= size) return i + 1;
      copy_bytes(dst, src + (ptrdiff_t)at * inner, inner);
    }
  return 0;
}
