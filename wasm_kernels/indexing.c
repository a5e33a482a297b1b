/* Instructions that read and write by index, count, and put elements in order. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- by index -------------------------------------------------------------------------------------------------------- */

/* index[..., depth], y[...]: the place of each element: its position along each axis of y times a stride, and each of its `depth`
 * numbers, which belong to axes and count from their end if they are negative, times a stride. The list, all of it sizes: a stride
 * for each axis of y, then the length and the stride of the axis of each number. */
static int check_flat_index(Vm *vm, const flat_index_operands *o) {
  const Tensor *index = T(index), *y = T(y);
  ASK(index->rank == y->rank + 1 && y->contiguous);
  for (int a = 0; a < y->rank; a++) ASK(index->size[a] == y->size[a]);
  ASK(list_words(flat_index, o) == y->rank + 2 * (int64_t)index->size[y->rank]);
  return OK;
}
static int run_flat_index(Vm *vm, const flat_index_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *index = T(index), *y = T(y);
  const int32_t *step = list_of(o), *axes = step + y->rank;
  const int32_t last = y->rank - 1, n = y->rank ? y->size[last] : 1, depth = index->size[y->rank];
  const int64_t *from = (const int64_t *)index->data;
  const ptrdiff_t between = index->stride[y->rank], next = y->rank ? index->stride[last] : 0;
  const uint64_t along = y->rank ? (uint64_t)(int64_t)vm->size[step[last]] : 0;
  int32_t at[MAX_RANK] = {0};
  uint64_t position = 0; /* of a damaged plan it may overflow: whoever uses a place checks it */
  for (int64_t *to = (int64_t *)y->data, *end = to + y->count; to < end; to += n) {
  NO_VECTORS for (int32_t j = 0; j < n; j++) to[j] = (int64_t)(position + along * (uint64_t)j);
    for (int32_t i = 0; i < depth; i++) {
      const int64_t length = vm->size[axes[2 * i]], scale = vm->size[axes[2 * i + 1]];
      const int64_t *number = from + i * between;
      for (int32_t j = 0; j < n; j++, number += next) {
        const int64_t found = *number;
        REQUIRE(found >= -length && found < length, INDEX_RANGE);
        to[j] = (int64_t)((uint64_t)to[j] + (uint64_t)(found < 0 ? found + length : found) * (uint64_t)scale);
      }
    }
    for (int a = last; a-- > 0; at[a] = 0) {
      from += index->stride[a], position += (uint64_t)(int64_t)vm->size[step[a]];
      if (++at[a] < y->size[a]) break;
      from -= (ptrdiff_t)y->size[a] * index->stride[a];
      position -= (uint64_t)y->size[a] * (uint64_t)(int64_t)vm->size[step[a]];
    }
  }
  return OK;
}

/* index[n], updates[n, inner], y[rows, inner]: y at index takes the updates, or takes them in. */
static int check_scatter(Vm *vm, const scatter_operands *o) {
  const Tensor *updates = T(updates), *y = T(y);
  ASK(is_dense(updates, 2) && is_dense(y, 2) && updates->dtype == y->dtype && updates->size[1] == y->size[1]);
  ASK(is_vector(T(index), updates->size[0]) && below(o->kind, SCATTER_COUNT));
  ASK(o->kind == SCATTER_NONE || y->dtype == DTYPE_F32 || y->dtype == DTYPE_I64 || y->dtype == DTYPE_I32 ||
      y->dtype == DTYPE_F64);
  return OK;
}
/* integers wrap; NaN is both the largest and the smallest number */
#define TAKE_IN(type, wrapping)                                                                         \
  for (int32_t j = 0; j < inner; j++) {                                                                 \
    type *a = (type *)to + j;                                                                           \
    const type b = ((const type *)from)[j];                                                             \
    *a = kind == SCATTER_ADD                                     ? (type)((wrapping) * a + (wrapping)b) \
         : kind == SCATTER_MUL                                   ? (type)((wrapping) * a * (wrapping)b) \
         : (kind == SCATTER_MAX ? *a >= b : *a <= b) || *a != *a ? *a                                   \
                                                                 : b;                                   \
  }                                                                                                     \
  return
static void take_in(const char *from, char *to, int32_t inner, int kind, int dtype) {
  switch (dtype) {
  case DTYPE_F32: TAKE_IN(float, float);
  case DTYPE_F64: TAKE_IN(double, double);
  case DTYPE_I64: TAKE_IN(int64_t, uint64_t);
  case DTYPE_I32: TAKE_IN(int32_t, uint32_t);
  }
}
static int run_scatter(Vm *vm, const scatter_operands *o) {
  const Tensor *updates = T(updates), *y = T(y);
  const int64_t *index = (const int64_t *)T(index)->data;
  const int32_t n = updates->size[0], rows = y->size[0], inner = y->size[1];
  const ptrdiff_t bytes = (ptrdiff_t)inner * ITEM[y->dtype];
  for (int32_t i = 0; i < n; i++) REQUIRE(index[i] >= 0 && index[i] < rows, INDEX_RANGE);
  DONE_IF_EMPTY(updates);
  for (int32_t i = 0; i < n; i++) {
    const int64_t at = index[i];
    REQUIRE(at >= 0 && at < rows, INDEX_RANGE); /* once more: y may overlap index */
    const char *from = updates->data + i * bytes;
    char *to = y->data + (ptrdiff_t)at * bytes;
    if (o->kind == SCATTER_NONE) copy_bytes(to, from, bytes);
    else take_in(from, to, inner, o->kind, y->dtype);
  }
  return OK;
}

static int check_in_range(Vm *vm, const in_range_operands *o) {
  ASK(T(x)->contiguous);
  return OK;
}
static int run_in_range(Vm *vm, const in_range_operands *o) {
  const int64_t *x = (const int64_t *)T(x)->data;
  for (int32_t i = 0; i < T(x)->count; i++) REQUIRE(x[i] >= vm->size[o->least] && x[i] <= vm->size[o->most], INDEX_RANGE);
  return OK;
}

/* --- counting -------------------------------------------------------------------------------------------------------- */

static int check_iota(Vm *vm, const iota_operands *o) {
  ASK(T(y)->contiguous);
  return OK;
}
static int run_iota(Vm *vm, const iota_operands *o) {
  NO_VECTORS for (int32_t i = 0; i < T(y)->count; i++) ((int64_t *)T(y)->data)[i] = i;
  return OK;
}

/* x[outer, n, inner], y the same: sums or products of all elements along the middle up to each one, which is left out of its own
 * if that is asked for */
static int check_cumulate(Vm *vm, const cumulate_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(x->rank == 3 && same_sizes(x, y) && x->dtype == y->dtype && below(o->kind, CUMULATION_COUNT));
  ASK(x->dtype == DTYPE_F32 || x->dtype == DTYPE_I64 || x->dtype == DTYPE_I32 || x->dtype == DTYPE_F64);
  return OK;
}
#define CUMULATE(type, wrapping)                                                     \
  {                                                                                  \
    wrapping total = (wrapping)(kind == CUMULATION_PROD);                            \
    for (int32_t j = 0; j < n; j++) {                                                \
      const wrapping next = (wrapping)((const type *)from)[(ptrdiff_t)j * x_stride], \
                     sum = kind == CUMULATION_PROD ? total * next : total + next;    \
      ((type *)to)[(ptrdiff_t)j * y_stride] = (type)(exclusive ? total : sum);       \
      total = sum;                                                                   \
    }                                                                                \
    return;                                                                          \
  }
static void cumulate(const char *from, char *to, int32_t n, int32_t x_stride, int32_t y_stride, int kind, int exclusive,
                     int dtype) {
  switch (dtype) {
  case DTYPE_F32: CUMULATE(float, float)
  case DTYPE_F64: CUMULATE(double, double)
  case DTYPE_I64: CUMULATE(int64_t, uint64_t)
  case DTYPE_I32: CUMULATE(int32_t, uint32_t)
  }
}
static int run_cumulate(Vm *vm, const cumulate_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const ptrdiff_t item = ITEM[x->dtype];
  /* sums of whole rows, where rows have no gaps */
  const int32_t width = x->stride[2] == 1 && y->stride[2] == 1 && x->dtype == DTYPE_F32 ? x->size[2] : 1;
  const int by_rows = width > 1 && o->kind == CUMULATION_SUM && !o->exclusive;
  const float zero = 0.0f;
  for (int32_t outer = 0; by_rows && outer < x->size[0]; outer++) {
    const float *from = F(x) + (ptrdiff_t)outer * x->stride[0], *before = &zero;
    float *to = F(y) + (ptrdiff_t)outer * y->stride[0];
    for (int32_t j = 0; j < x->size[1]; j++, from += x->stride[1], before = to, to += y->stride[1])
      wr_add(before, from, to, 1, width, 0, j > 0, 0, 1);
  }
  for (int32_t outer = 0; !by_rows && outer < x->size[0]; outer++)
    for (int32_t inner = 0; inner < x->size[2]; inner++)
      cumulate(x->data + ((ptrdiff_t)outer * x->stride[0] + (ptrdiff_t)inner * x->stride[2]) * item,
               y->data + ((ptrdiff_t)outer * y->stride[0] + (ptrdiff_t)inner * y->stride[2]) * item, x->size[1], x->stride[1],
               y->stride[1], o->kind, o->exclusive, x->dtype);
  return OK;
}

/* --- order ----------------------------------------------------------------------------------------------------------- */

/* The first k of the n elements of a line, by an order: a heap of their indices whose root comes last. */
typedef struct {
  const char *x;
  int64_t *heap;
  ptrdiff_t step, heap_step; /* from one element to the next, and from one index to the next */
  int dtype, smallest, last, nan_first;
  int32_t width; /* neighbouring elements that are compared one after the other: 1, but for rows */
} Line;

/* The bits of a float without its sign, and those of infinity, as a number that is ordered as the float is; NaN is the largest. */
INLINE int64_t float_key(int64_t magnitude, int negative, int64_t infinity) {
  return magnitude > infinity ? INT64_MAX : negative ? -magnitude : magnitude;
}
#define ITEM_AT(type) (((const type *)line->x)[at])
#define FLOAT_KEY(type, infinity) \
  float_key(ITEM_AT(type) & (type) ~((type)1 << (8 * sizeof(type) - 1)), ITEM_AT(type) >> (8 * sizeof(type) - 1) != 0, infinity)
static int64_t other_key(const Line *line, int64_t at) {
  switch (line->dtype) {
  case DTYPE_I64: return ITEM_AT(int64_t);
  case DTYPE_U64: return (int64_t)(ITEM_AT(uint64_t) ^ (uint64_t)1 << 63);
  case DTYPE_I32: return ITEM_AT(int32_t);
  case DTYPE_U32: return ITEM_AT(uint32_t);
  case DTYPE_I16: return ITEM_AT(int16_t);
  case DTYPE_U16: return ITEM_AT(uint16_t);
  case DTYPE_I8: return ITEM_AT(int8_t);
  case DTYPE_F16: return FLOAT_KEY(uint16_t, 0x7c00);
  case DTYPE_BF16: return FLOAT_KEY(uint16_t, 0x7f80);
  case DTYPE_F64: return FLOAT_KEY(uint64_t, 0x7ff0000000000000);
  default: return ITEM_AT(uint8_t);
  }
}
/* larger for what comes earlier; at: the place of an element */
INLINE int64_t key_at(const Line *line, int64_t at) {
  const int64_t key = line->dtype == DTYPE_F32 ? FLOAT_KEY(uint32_t, 0x7f800000) : other_key(line, at);
  if (!line->smallest) return key;
  return line->nan_first && key == INT64_MAX ? key : ~key;
}
INLINE int64_t key_of(const Line *line, int64_t index) { return key_at(line, index * line->step); }
/* above 0 if a comes earlier than b, 0 if they are equal */
static int compare(const Line *line, int64_t a, int64_t b) {
  for (int32_t i = 0; i < line->width; i++) {
    const int64_t key_a = key_at(line, a * line->step + i), key_b = key_at(line, b * line->step + i);
    if (key_a != key_b) return key_a > key_b ? 1 : -1;
  }
  return 0;
}
static int precedes(const Line *line, int64_t a, int64_t b) {
  const int order = compare(line, a, b);
  return order ? order > 0 : (a < b) != line->last;
}
static void sift_down(const Line *line, int32_t at, int32_t count) {
  int64_t *const heap = line->heap;
  const ptrdiff_t step = line->heap_step;
  const int64_t moved = heap[at * step];
  for (int32_t child; (child = 2 * at + 1) < count; at = child) {
    if (child + 1 < count && precedes(line, heap[child * step], heap[(child + 1) * step])) child++;
    if (!precedes(line, moved, heap[child * step])) break;
    heap[at * step] = heap[child * step];
  }
  heap[at * step] = moved;
}
/* How many floats are compared at once with the last of the first k, before any of them is looked at alone */
enum { GLANCE = 32 };
/* Whether one of the floats from x on may come earlier than `worst`, or is NaN, or that is */
INLINE int may_precede(const float *x, float worst, int smallest) {
  int found = 0;
  if (smallest)
    for (int j = 0; j < GLANCE; j++) found |= !(x[j] > worst);
  else
    for (int j = 0; j < GLANCE; j++) found |= !(x[j] < worst);
  return found;
}
/* The first of n neighbouring floats by an order, as a heap of one would have it */
static int64_t first_of(const float *x, int32_t n, int smallest) {
  float best;
  if (smallest) wr_reduce_min(x, &best, 1, n, 1);
  else wr_reduce_max(x, &best, 1, n, 1);
  int32_t i = 0;
  if (best != best)
    while (i < n - 1 && x[i] == x[i]) i++;
  for (int found = 0; best == best && i + GLANCE <= n; i += GLANCE) {
    for (int j = 0; j < GLANCE; j++) found |= x[i + j] == best;
    if (found) break;
  }
  while (best == best && i < n - 1 && x[i] != best) i++;
  return i;
}
static void order(const Line *line, int32_t n, int32_t k) {
  int64_t *const heap = line->heap;
  const int is_row = line->dtype == DTYPE_F32 && line->step == 1 && line->width == 1;
  if (is_row && k == 1 && !line->last && (line->nan_first || !line->smallest)) {
    *heap = first_of((const float *)line->x, n, line->smallest);
    return;
  }
  for (int32_t i = 0; i < k; i++) heap[i * line->heap_step] = i;
  for (int32_t i = k / 2; i-- > 0;) sift_down(line, i, k);
  int64_t worst = k < n ? key_of(line, heap[0]) : 0; /* rows of no elements have no key */
  for (int32_t i = k; i < n; i++) {
    if (is_row && (i - k) % GLANCE == 0) {
      const float *x = (const float *)line->x, last = x[heap[0]];
      while (i + GLANCE <= n && !may_precede(x + i, last, line->smallest)) i += GLANCE;
      if (i == n) break;
    }
    const int64_t key = key_of(line, i);
    if (key < worst || (key == worst && !line->last)) continue;
    heap[0] = i;
    sift_down(line, 0, k);
    worst = key_of(line, heap[0]);
  }
  for (int32_t rest = k - 1; rest > 0; rest--) {
    const int64_t worst_index = heap[0];
    heap[0] = heap[rest * line->heap_step], heap[rest * line->heap_step] = worst_index;
    sift_down(line, 0, rest);
  }
}

/* x[outer, n, inner], values and indices [outer, k, inner]: the k largest or smallest in order. Of equal ones the first comes
 * first, or the last; NaN is the largest number, or with nan_first comes first in any case. */
static int check_top(Vm *vm, const top_operands *o) {
  const Tensor *x = T(x), *indices = T(indices);
  ASK(is_dense(x, 3) && is_dense(indices, 3) && x->size[0] == indices->size[0] && x->size[2] == indices->size[2]);
  ASK(indices->size[1] <= x->size[1] && x->dtype <= DTYPE_U64);
  ASK(!HAS(values) || (T(values)->contiguous && same_sizes(T(values), indices) && T(values)->dtype == x->dtype));
  return OK;
}
static int run_top(Vm *vm, const top_operands *o) {
  DONE_IF_EMPTY(indices);
  const Tensor *x = T(x);
  const int32_t n = x->size[1], k = T(indices)->size[1], inner = x->size[2], item = ITEM[x->dtype];
  const int has_nan = x->dtype == DTYPE_F32 || x->dtype == DTYPE_F64 || x->dtype == DTYPE_F16 || x->dtype == DTYPE_BF16;
  for (int32_t row = 0; row < x->size[0]; row++)
    for (int32_t i = 0; i < inner; i++) {
      const ptrdiff_t first = (ptrdiff_t)row * k * inner + i;
      const Line line = {x->data + ((ptrdiff_t)row * n * inner + i) * item,
                         (int64_t *)T(indices)->data + first,
                         inner,
                         inner,
                         x->dtype,
                         o->smallest != 0,
                         o->last != 0,
                         o->nan_first && has_nan,
                         1};
      order(&line, n, k);
      for (int32_t j = 0; HAS(values) && j < k; j++) {
        const int64_t at = line.heap[(ptrdiff_t)j * inner];
        REQUIRE(at >= 0 && at < n, INDEX_RANGE); /* values may overlap indices */
        copy_bytes(T(values)->data + (first + (ptrdiff_t)j * inner) * item, line.x + at * inner * item, item);
      }
    }
  return OK;
}

/* corners[batch, n, 4]: low, low, high, high; scores and order[batch, classes, n], the best first. Of each class boxes are kept that
 * overlap none that is kept already by more than `overlap`: selected[..., 3] are batch, class and box, `count` of them. */
static int check_nms(Vm *vm, const nms_operands *o) {
  const Tensor *corners = T(corners), *scores = T(scores), *order = T(order), *selected = T(selected);
  ASK(is_dense(corners, 3) && is_dense(scores, 3) && is_dense(order, 3) && same_sizes(scores, order));
  ASK(corners->size[0] == scores->size[0] && corners->size[1] == scores->size[2] && corners->size[2] == 4);
  ASK(is_dense(selected, 2) && selected->size[1] == 3);
  ASK(T(limit)->count == 1 && T(overlap)->count == 1 && T(least)->count == 1 && T(count)->count == 1);
  return OK;
}
INLINE float overlap_of(const float *a, const float *b) {
  float shared = 1.0f;
  for (int i = 0; i < 2; i++) {
    const float low = a[i] > b[i] ? a[i] : b[i], high = a[i + 2] < b[i + 2] ? a[i + 2] : b[i + 2], side = high - low;
    shared *= side < 0.0f ? 0.0f : side;
  }
  const float area_a = (a[2] - a[0]) * (a[3] - a[1]), area_b = (b[2] - b[0]) * (b[3] - b[1]), areas = area_a + area_b,
              both = areas - shared;
  return both > 0.0f ? shared / both : 0.0f;
}
static int run_nms(Vm *vm, const nms_operands *o) {
  const Tensor *scores = T(scores), *selected = T(selected);
  const int64_t limit = *(const int64_t *)T(limit)->data;
  const float most = *F(overlap), least = *F(least);
  const int32_t classes = scores->size[1], n = scores->size[2];
  int64_t *const rows = (int64_t *)selected->data;
  int32_t count = 0;
  for (int32_t line = 0; n && line < scores->size[0] * classes; line++) {
    const ptrdiff_t start = (ptrdiff_t)line * n;
    const float *corners = F(corners) + (ptrdiff_t)(line / classes) * n * 4;
    const int32_t first = count;
    for (int32_t i = 0; i < n && count - first < limit; i++) {
      const int64_t box = ((const int64_t *)T(order)->data)[start + i];
      REQUIRE(box >= 0 && box < n, INDEX_RANGE);
      if (!(F(scores)[start + box] > least)) break;
      int is_kept = 1;
      for (int32_t k = first; is_kept && k < count; k++) {
        const int64_t other = rows[3 * (ptrdiff_t)k + 2];
        REQUIRE(other >= 0 && other < n, INDEX_RANGE); /* what overlaps in memory may have changed it */
        is_kept = !(overlap_of(corners + 4 * box, corners + 4 * other) > most);
      }
      if (!is_kept) continue;
      REQUIRE(count < selected->size[0], INDEX_RANGE);
      int64_t *row = rows + 3 * (ptrdiff_t)count++;
      row[0] = line / classes, row[1] = line % classes, row[2] = box;
    }
  }
  *(int64_t *)T(count)->data = count;
  return OK;
}

/* x[n, width], order[2, n], first, inverse and counts [n], count: its rows without repetition, in order or as they come: where each
 * occurs first, which one each row is, how often each occurs, and how many there are. */
static int check_unique(Vm *vm, const unique_operands *o) {
  const Tensor *x = T(x), *order = T(order);
  ASK(is_dense(x, 2) && x->dtype <= DTYPE_U64 && is_dense(order, 2) && order->size[0] == 2 && order->size[1] == x->size[0]);
  ASK(is_vector(T(first), x->size[0]) && is_vector(T(inverse), x->size[0]) && is_vector(T(counts), x->size[0]));
  ASK(T(count)->count == 1);
  return OK;
}
/* An index that was written before; operands that overlap may have changed it. */
#define INDEX(name, value)    \
  const int64_t name = value; \
  REQUIRE(name >= 0 && name < n, INDEX_RANGE)
static int run_unique(Vm *vm, const unique_operands *o) {
  const Tensor *x = T(x);
  const int32_t n = x->size[0];
  int64_t *sorted = (int64_t *)T(order)->data, *number = sorted + n, *first = (int64_t *)T(first)->data,
          *inverse = (int64_t *)T(inverse)->data, *counts = (int64_t *)T(counts)->data, count = 0;
  *(int64_t *)T(count)->data = 0;
  if (!n) return OK;
  const Line rows = {x->data, sorted, x->size[1], 1, x->dtype, 1, 0, 0, x->size[1]};
  order(&rows, n, n);
  for (int32_t i = 0, leader = 0; i < n; i++) { /* inverse: for now the first row that is the same */
    INDEX(row, sorted[i]);
    INDEX(before, sorted[i ? i - 1 : 0]);
    if (!i || compare(&rows, row, before)) leader = (int32_t)row;
    inverse[row] = leader;
  }
  for (int32_t i = 0; i < n; i++) {
    INDEX(row, o->sorted ? sorted[i] : i);
    if (inverse[row] != row || count == n) continue;
    number[row] = count, first[count] = row, counts[count++] = 0;
  }
  for (int32_t i = 0; i < n; i++) {
    INDEX(leader, inverse[i]);
    INDEX(group, number[leader]);
    inverse[i] = group, counts[group]++;
  }
  *(int64_t *)T(count)->data = count;
  return OK;
}
