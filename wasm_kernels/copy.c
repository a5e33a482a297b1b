/* Data movement: strided copy (transpose, slice, concat, expand, pad after fill), gather, fill. */
#include "kernels.gen.h"
#include "plan.gen.h"
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
          _Pragma("clang loop vectorize(disable) unroll_count(4)") for (int j = j0; j < j1; j++)                        \
              dst[(ptrdiff_t)i * d[0] + (ptrdiff_t)j * d[1]] = src[(ptrdiff_t)i * s[0] + (ptrdiff_t)j * s[1]];          \
      }                                                                                                                 \
    }                                                                                                                   \
  }
COPY_2D(uint8_t)
COPY_2D(uint16_t)
COPY_2D(uint32_t)
COPY_2D(uint64_t)

/* dst[i, j] = src[j, i] of 4 x 4 words: rows of src and of dst are s and d words apart */
typedef uint32_t FourWords __attribute__((vector_size(16)));
INLINE void transpose_4x4(const uint32_t *src, ptrdiff_t s, uint32_t *dst, ptrdiff_t d) {
  FourWords row[4];
  UNROLL for (int i = 0; i < 4; i++) __builtin_memcpy(row + i, src + i * s, sizeof(FourWords));
  const FourWords low = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5), high = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7),
             low2 = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5),
             high2 = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  row[0] = __builtin_shufflevector(low, low2, 0, 1, 4, 5), row[1] = __builtin_shufflevector(low, low2, 2, 3, 6, 7);
  row[2] = __builtin_shufflevector(high, high2, 0, 1, 4, 5), row[3] = __builtin_shufflevector(high, high2, 2, 3, 6, 7);
  UNROLL for (int i = 0; i < 4; i++) __builtin_memcpy(dst + i * d, row + i, sizeof(FourWords));
}

#if VL == BLOCK
/* The same of 16 x 16: lines of the cache as a whole, which counts where each is in a page of its own */
INLINE void transpose_block(const uint32_t *src, ptrdiff_t s, uint32_t *dst, ptrdiff_t d) {
  vi row[BLOCK], mixed[BLOCK];
  UNROLL for (int i = 0; i < BLOCK; i++) __builtin_memcpy(row + i, src + i * s, sizeof(vi));
  UNROLL for (int step = 1; step < BLOCK; step *= 2) {
    UNROLL for (int i = 0; i < BLOCK / 2; i++) {
      const vi a = row[i], b = row[i + BLOCK / 2];
      mixed[2 * i] = __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
      mixed[2 * i + 1] = __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    }
    UNROLL for (int i = 0; i < BLOCK; i++) row[i] = mixed[i];
  }
  UNROLL for (int i = 0; i < BLOCK; i++) __builtin_memcpy(dst + i * d, row + i, sizeof(vi));
}
#endif

/* dst[rows, cols] = src[cols, rows] transposed, both without gaps inside a row */
static void transpose_words(const uint32_t *src, ptrdiff_t s, uint32_t *dst, ptrdiff_t d, int rows, int cols) {
  const int whole_rows = rows & ~3, whole_cols = cols & ~3;
  for (int i0 = 0; i0 < whole_rows; i0 += 4 * BLOCK) /* what is read stays near; what is written fills lines one by one */
    for (int j0 = 0; j0 < whole_cols; j0 += BLOCK) {
      int i = i0;
#if VL == BLOCK
      for (; j0 + BLOCK <= cols && i + BLOCK <= rows && i < i0 + 4 * BLOCK; i += BLOCK)
        transpose_block(src + j0 * s + i, s, dst + i * d + j0, d);
#endif
      for (; i < whole_rows && i < i0 + 4 * BLOCK; i += 4)
        for (int j = j0; j < whole_cols && j < j0 + BLOCK; j += 4) transpose_4x4(src + j * s + i, s, dst + i * d + j, d);
    }
  for (int i = 0; i < rows; i++)
    NO_VECTORS for (int j = i < whole_rows ? whole_cols : 0; j < cols; j++) dst[i * d + j] = src[j * s + i];
}

/* The same of bytes, 8 x 8 at a time: squares of 4, 2 and 1 change places */
static void transpose_bytes(const uint8_t *src, ptrdiff_t s, uint8_t *dst, ptrdiff_t d, int rows, int cols) {
  static const uint64_t FIRST[] = {0x00ff00ff00ff00ff, 0x0000ffff0000ffff, 0x00000000ffffffff};
  const int whole_rows = rows & ~7, whole_cols = cols & ~7;
  for (int j = 0; j < whole_cols; j += 8)
    for (int i = 0; i < whole_rows; i += 8) {
      uint64_t row[8];
      UNROLL for (int k = 0; k < 8; k++) __builtin_memcpy(row + k, src + (j + k) * s + i, 8);
      UNROLL for (int step = 2; step >= 0; step--) {
        UNROLL for (int k = 0; k < 8; k++) {
          const int width = 1 << step;
          if (k & width) continue;
          const uint64_t swapped = (row[k] >> 8 * width ^ row[k + width]) & FIRST[step];
          row[k + width] ^= swapped, row[k] ^= swapped << 8 * width;
        }
      }
      UNROLL for (int k = 0; k < 8; k++) __builtin_memcpy(dst + (i + k) * d + j, row + k, 8);
    }
  for (int i = 0; i < rows; i++)
    NO_VECTORS for (int j = i < whole_rows ? whole_cols : 0; j < cols; j++) dst[i * d + j] = src[j * s + i];
}

#if !defined(__wasm__)
/* Rows of words of which every second is read or written; the distances inside a row are compile-time constants */
INLINE void copy_every_second(const uint32_t *src, uint32_t *dst, int rows, int cols, ptrdiff_t s, ptrdiff_t d, const int s1,
                              const int d1) {
  for (int i = 0; i < rows; i++, src += s, dst += d)
    for (int j = 0; j < cols; j++) dst[(ptrdiff_t)j * d1] = src[(ptrdiff_t)j * s1];
}
#endif

static void copy_2d(const char *src, char *dst, int item, int rows, int cols, const int32_t s[2], const int32_t d[2]) {
  const int32_t turned[2][2] = {{s[1], s[0]}, {d[1], d[0]}};
  if (cols < 4 && rows > cols) { /* the inner loop is the longer one */
    const int32_t other = rows;
    rows = cols, cols = other, s = turned[0], d = turned[1];
  }
  if (item == 4 && s[1] == 0 && d[1] == 1) {
    for (int i = 0; i < rows; i++) wr_fill((float *)dst + (ptrdiff_t)i * d[0], cols, ((const float *)src)[(ptrdiff_t)i * s[0]]);
    return;
  }
  if (item == 1 && s[1] == 0 && d[1] == 1) {
    for (int i = 0; i < rows; i++) __builtin_memset(dst + (ptrdiff_t)i * d[0], src[(ptrdiff_t)i * s[0]], (size_t)cols);
    return;
  }
  if (item == 4 && rows > 3 && s[0] == 1 && d[1] == 1) {
    transpose_words((const uint32_t *)src, s[1], (uint32_t *)dst, d[0], rows, cols);
    return;
  }
  if (item == 4 && rows > 3 && s[1] == 1 && d[0] == 1) {
    transpose_words((const uint32_t *)src, s[0], (uint32_t *)dst, d[1], cols, rows);
    return;
  }
  if (HAS_FULL && item == 1 && rows > 7 && cols > 7 && s[0] == 1 && d[1] == 1) {
    transpose_bytes((const uint8_t *)src, s[1], (uint8_t *)dst, d[0], rows, cols);
    return;
  }
  if (HAS_FULL && item == 1 && rows > 7 && cols > 7 && s[1] == 1 && d[0] == 1) {
    transpose_bytes((const uint8_t *)src, s[0], (uint8_t *)dst, d[1], cols, rows);
    return;
  }
#if !defined(__wasm__)
  if (item == 4 && s[1] == 2 && d[1] == 1) {
    copy_every_second((const uint32_t *)src, (uint32_t *)dst, rows, cols, s[0], d[0], 2, 1);
    return;
  }
  if (item == 4 && s[1] == 1 && d[1] == 2) {
    copy_every_second((const uint32_t *)src, (uint32_t *)dst, rows, cols, s[0], d[0], 1, 2);
    return;
  }
#endif
  switch (item) {
  case 1: copy_2d_uint8_t((const uint8_t *)src, (uint8_t *)dst, rows, cols, s, d); return;
  case 2: copy_2d_uint16_t((const uint16_t *)src, (uint16_t *)dst, rows, cols, s, d); return;
  case 4: copy_2d_uint32_t((const uint32_t *)src, (uint32_t *)dst, rows, cols, s, d); return;
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
