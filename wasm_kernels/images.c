/* Instructions for windows along one axis and for images: pools, resizing, sampling at fractional positions, regions, affine
 * grids; determinants. Positions and weights are doubles, or floats where the reference has floats, computed in its order. */
#include "kernels.gen.h"
#include "plan.gen.h"

#define SIZE(name) (vm->size[o->name])
#define L(name) ((int64_t *)T(name)->data)

INLINE int64_t within(int64_t at, int64_t size) { return at < 0 ? 0 : at >= size ? size - 1 : at; }
INLINE double distance_of(double x) { return x < 0 ? -x : x; }

/* One position of a window for all elements that lie side by side */
static void pool_rows(const float *x, const int64_t *places, float *y, int64_t *index, int32_t inner, int kind, uint64_t step) {
  if (kind != POOLING_MAX) {
    for (int j = 0; j < inner; j++) y[j] += x[j];
  } else if (!index) {
    for (int j = 0; j < inner; j++) y[j] = x[j] > y[j] || x[j] != x[j] ? x[j] : y[j];
  } else {
    for (int j = 0; j < inner; j++)
      if ((!places || places[j] >= 0) && (index[j] < 0 || x[j] > y[j] || (x[j] != x[j] && y[j] == y[j])))
        y[j] = x[j], index[j] = (int64_t)(step + (places ? (uint64_t)places[j] : 0)); /* not from the padding */
  }
}

/* y[rows, inner] += weight * x[rows, inner], or without what y holds; both with gaps between rows */
static void add_scaled(const float *x, ptrdiff_t x_stride, float *y, ptrdiff_t y_stride, int32_t rows, ptrdiff_t inner,
                       float weight, int is_first) {
  for (; rows > 0; rows--, x += x_stride, y += y_stride)
    for (ptrdiff_t j = 0; j < inner; j++) y[j] = (is_first ? 0.0f : y[j]) + weight * x[j];
}

/* Rare: their size counts for more than their speed. */
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#pragma clang attribute push(__attribute__((noinline)), apply_to = function)

enum { MOST_IMAGE_AXES = MAX_RANK - 2, MOST_CORNERS = 1 << 2 * MOST_IMAGE_AXES };

/* The largest integer that is not above x, within what a double holds exactly */
static int64_t floor_of(double x) {
  const double most = 4503599627370496.0;
  if (!(x > -most)) return -(int64_t)most;
  if (x >= most) return (int64_t)most;
  const int64_t cut = (int64_t)x;
  return cut - ((double)cut > x);
}
static int64_t ceil_of(double x) { return x == x ? -floor_of(-x) : floor_of(x); }

/* Here and below the weight of a position that is no number is none either. */
static double cubic_weight(double d, double a) {
  if (d <= 1) return ((a + 2) * d - (a + 3)) * (d * d) + 1;
  return d >= 2 ? 0 : ((d - 5) * d + 8) * d * a - 4 * a;
}

/* --- pools along one axis -------------------------------------------------------------------------------------------- */

/* x[outer, n, inner], y[outer, m, inner], places like x and index like y. `pad` positions lie before the axis and `after` behind
 * it, where an average counts them. A maximum at position p of the axis has the index p * scale, plus its place if there are
 * places, plus plane for each of the outer ones. */
static int check_pool_axis(Vm *vm, const pool_axis_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 3) && is_dense(y, 3) && x->size[0] == y->size[0] && x->size[2] == y->size[2]);
  ASK(below(o->kind, POOLING_COUNT) && o->kernel > 0 && o->stride > 0 && o->dilation > 0 && SIZE(pad) >= 0 && SIZE(after) >= 0);
  ASK(!HAS(places) || (T(places)->contiguous && same_sizes(x, T(places))));
  ASK(!HAS(index) || (T(index)->contiguous && same_sizes(y, T(index))));
  return OK;
}

static int run_pool_axis(Vm *vm, const pool_axis_operands *o) {
  DONE_IF_EMPTY(y);
  const int32_t outer = T(y)->size[0], n = T(x)->size[1], m = T(y)->size[1], inner = T(y)->size[2];
  float *y = F(y);
  int64_t *index = HAS(index) ? L(index) : NULL;
  for (int32_t b = 0; b < outer; b++)
    for (int32_t i = 0; i < m; i++, y += inner, index += index ? inner : 0) {
      const int64_t origin = (int64_t)i * o->stride - SIZE(pad), step = o->dilation;
      const int64_t from = origin < 0 ? (step - 1 - origin) / step : 0;
      int64_t to = origin < n ? (n - 1 - origin) / step + 1 : 0, counted = o->kernel;
      if (to > o->kernel) to = o->kernel;
      for (int32_t j = 0; j < inner; j++) y[j] = o->kind == POOLING_MAX ? -__builtin_inff() : 0.0f;
      for (int32_t j = 0; index && j < inner; j++) index[j] = -1;
      for (int64_t t = from; t < to; t++) {
        const int64_t at = origin + t * step;
        const ptrdiff_t row = ((ptrdiff_t)b * n + at) * inner;
        pool_rows(F(x) + row, HAS(places) ? L(places) + row : NULL, y, index, inner, o->kind,
                  (uint64_t)at * (uint64_t)(int64_t)SIZE(scale));
      }
      for (int32_t j = 0; index && j < inner; j++)
        index[j] = (int64_t)((uint64_t)index[j] + (uint64_t)b * (uint64_t)(int64_t)SIZE(plane));
      if (o->kind == POOLING_AVERAGE) counted = to > from ? to - from : 0;
      const int64_t end = (int64_t)n + SIZE(after) - origin; /* where the counted positions end */
      if (o->kind == POOLING_AVERAGE_WITH_PADDING && end < (counted - 1) * step + 1)
        counted = end > 0 ? (end - 1) / step + 1 : 0;
      if (o->kind == POOLING_AVERAGE || o->kind == POOLING_AVERAGE_WITH_PADDING)
        for (int32_t j = 0; j < inner; j++) y[j] /= (float)counted;
    }
  return OK;
}

/* --- windows that overlap are added up -------------------------------------------------------------------------------- */

/* x[outer, kernel, middle, n, inner], y[outer, middle, m, inner]: element k of window i is added to k * dilation + i * stride - pad */
static int check_overlap_add(Vm *vm, const overlap_add_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 5) && is_dense(y, 4) && x->size[0] == y->size[0] && x->size[2] == y->size[1] && x->size[4] == y->size[3]);
  ASK(o->stride > 0 && o->dilation > 0 && o->pad >= 0);
  return OK;
}
static int run_overlap_add(Vm *vm, const overlap_add_operands *o) {
  DONE_IF_EMPTY(y);
  const int32_t *size = T(x)->size, inner = size[4];
  const ptrdiff_t m = T(y)->size[2], room = m * inner;
  wr_fill(F(y), T(y)->count, 0.0f);
  if (!T(x)->count) return OK;
  const float *x = F(x);
  for (int32_t b = 0; b < size[0]; b++)
    for (int32_t k = 0; k < size[1]; k++)
      for (int32_t c = 0; c < size[2]; c++)
        for (int32_t i = 0; i < size[3]; i++, x += inner) {
          const int64_t at = (int64_t)k * o->dilation + (int64_t)i * o->stride - o->pad;
          if (at >= 0 && at < m)
            pool_rows(x, NULL, F(y) + ((ptrdiff_t)b * size[2] + c) * room + at * inner, NULL, inner, POOLING_SUM, 0);
        }
  return OK;
}

/* --- resizing along one axis ----------------------------------------------------------------------------------------- */

/* x[outer, n, inner], y[outer, m, inner]; scale[1], or m / n; roi[2]: start and end, for COORDINATES_TF_CROP_AND_RESIZE */
static int check_resize(Vm *vm, const resize_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 3) && is_dense(y, 3) && x->dtype == y->dtype && x->size[0] == y->size[0] && x->size[2] == y->size[2]);
  ASK(x->size[1] > 0 || !y->count);
  ASK(below(o->mode, INTERPOLATION_COUNT) && below(o->nearest, NEAREST_COUNT) && below(o->coordinates, COORDINATES_COUNT));
  ASK(!HAS(scale) || T(scale)->count == 1);
  ASK(HAS(roi) == (o->coordinates == COORDINATES_TF_CROP_AND_RESIZE));
  ASK(!HAS(roi) || (T(roi)->rank == 1 && T(roi)->count == 2));
  ASK(x->dtype == DTYPE_F32 || (o->mode == INTERPOLATION_NEAREST && !HAS(roi)));
  return OK;
}

/* Where the output element i lies in the input, in the floats of the reference */
static float source_of(Vm *vm, const resize_operands *o, int32_t i, double factor) {
  const int32_t n = T(x)->size[1], m = T(y)->size[1];
  const float y = (float)i, scale = (float)factor;
  double exact = (double)((float)n * scale);
  const double whole = (double)floor_of(exact + 0.5), apart = distance_of(exact - whole);
  if (apart <= 1e-6 * (exact > whole ? exact : whole)) exact = whole;
  switch (o->coordinates) {
  case COORDINATES_PYTORCH_HALF_PIXEL:
    if (m <= 1) return 0.0f;
    return (y + 0.5f) / scale - 0.5f;
  case COORDINATES_HALF_PIXEL: return (y + 0.5f) / scale - 0.5f;
  case COORDINATES_ASYMMETRIC: return y / scale;
  case COORDINATES_ALIGN_CORNERS: return exact == 1 ? 0.0f : y * (float)(n - 1) / (float)(exact - 1);
  case COORDINATES_HALF_PIXEL_SYMMETRIC: return (float)(n / 2.0 * (1 - m / exact)) + (y + 0.5f) / scale - 0.5f;
  case COORDINATES_TF_HALF_PIXEL_FOR_NN: return (y + 0.5f) / scale;
  default: {
    const double start = F(roi)[0], end = F(roi)[T(roi)->stride[0]];
    if (m == 1) return (float)((start + end) * (n - 1) / 2);
    return (float)(start * (n - 1)) + y * (float)(end - start) * (float)(n - 1) / (float)(m - 1);
  }
  }
}

static int64_t nearest_of(float source, int mode, double factor) {
  if (mode == NEAREST_FLOOR_OR_CEIL) mode = factor >= 1 ? NEAREST_FLOOR : NEAREST_CEIL;
  const float size = source < 0 ? -source : source;
  const float half = 0.5f + 4.76837158203125e-7f * (size > 1 ? size : 1); /* what rounding made of a tie is still a tie */
  return mode == NEAREST_ROUND_PREFER_FLOOR  ? ceil_of(source - half)
         : mode == NEAREST_ROUND_PREFER_CEIL ? floor_of(source + half)
         : mode == NEAREST_FLOOR             ? floor_of(source)
                                             : ceil_of(source);
}

static double tap_weight(const resize_operands *o, int64_t tap, float source, double shrink, int32_t n) {
  if (o->exclude_outside && (tap < 0 || tap >= n)) return 0;
  const double d = distance_of((double)tap - (double)source) * shrink;
  return o->mode == INTERPOLATION_CUBIC ? cubic_weight(d, float_of(o->cubic_a)) : d >= 1 ? 0 : 1 - d;
}

static int run_resize(Vm *vm, const resize_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const int32_t outer = x->size[0], n = x->size[1], m = y->size[1];
  const ptrdiff_t inner = x->size[2], bytes = inner * ITEM[x->dtype];
  const double factor = HAS(scale) ? (double)*F(scale) : (double)m / n;
  REQUIRE(factor > 0 && factor < __builtin_inf(), INDEX_RANGE);
  if (factor == 1 && m == n &&
      (!HAS(roi) || (F(roi)[0] == 0 && F(roi)[T(roi)->stride[0]] == 1))) { /* the axis stays as it is */
    __builtin_memmove(y->data, x->data, (size_t)x->count * (size_t)ITEM[x->dtype]);
    return OK;
  }
  const double shrink = o->antialias && factor < 1 ? factor : 1, reach = o->mode == INTERPOLATION_CUBIC ? 2 : 1;
  const int64_t first = floor_of(-reach / shrink) + 1;
  REQUIRE(first > -(1 << 24), INDEX_RANGE);
  for (int32_t i = 0; i < m; i++) {
    const float source = source_of(vm, o, i, factor);
    if (o->mode == INTERPOLATION_NEAREST) {
      const int64_t at = within(nearest_of(source, o->nearest, factor), n);
      for (int32_t b = 0; b < outer; b++)
        __builtin_memmove(y->data + ((ptrdiff_t)b * m + i) * bytes, x->data + ((ptrdiff_t)b * n + at) * bytes, (size_t)bytes);
    } else {
      const int64_t from = floor_of(source) + first, to = from + 2 - 2 * first;
      double total = o->antialias || o->exclude_outside ? 0 : 1;
      if (total == 0)
        for (int64_t tap = from; tap < to; tap++) total += tap_weight(o, tap, source, shrink, n);
      for (int64_t tap = from; tap < to; tap++) {
        const float weight = (float)(tap_weight(o, tap, source, shrink, n) / total);
        const int64_t at = within(tap, n);
        add_scaled(F(x) + (ptrdiff_t)at * inner, n * inner, F(y) + i * inner, m * inner, outer, inner, weight, tap == from);
      }
    }
    if (HAS(roi) && (source < 0 || source > (float)(n - 1)))
      for (int32_t b = 0; b < outer; b++)
        wr_fill(F(y) + ((ptrdiff_t)b * m + i) * inner, (int32_t)inner, float_of(o->extrapolation));
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  return OK;
}

/* --- sampling at fractional positions -------------------------------------------------------------------------------- */

/* x[batch, channels, axes ...], grid[batch, points, axes], y[batch, channels, points]; the coordinate of the last axis comes
 * first. Coordinates are positions, or go from -1 to 1: over the centres of the outermost pixels, or over their borders. */
static int check_grid_sample(Vm *vm, const grid_sample_operands *o) {
  const Tensor *x = T(x), *grid = T(grid), *y = T(y);
  ASK(x->rank >= 3 && x->contiguous && is_dense(grid, 3) && is_dense(y, 3) && (x->count || !y->count));
  ASK(x->size[0] == y->size[0] && x->size[0] == grid->size[0] && x->size[1] == y->size[1] && grid->size[1] == y->size[2]);
  ASK(grid->size[2] == x->rank - 2 && below(o->mode, INTERPOLATION_COUNT) && below(o->padding, PADDING_COUNT) &&
      below(o->units, UNITS_COUNT));
  return OK;
}

static double reflected(double position, int32_t size, double margin) {
  const double span = size - 1 + 2 * margin;
  if (span == 0) return 0;
  double folded = position + margin;
  if (!(distance_of(folded) < 4503599627370496.0)) return __builtin_nan(""); /* too far away for a place */
  folded -= (double)floor_of(folded / (2 * span)) * (2 * span);
  return (folded < 2 * span - folded ? folded : 2 * span - folded) - margin;
}

static double position_of(const grid_sample_operands *o, double unit, int32_t size, double margin) {
  double at = o->units == UNITS_PIXELS    ? unit
              : o->units == UNITS_CENTRES ? (unit + 1) / 2 * (size - 1)
                                          : ((unit + 1) * size - 1) / 2;
  if (o->mode == INTERPOLATION_NEAREST && distance_of(at) < 4503599627370496.0) {
    const int64_t low = floor_of(at); /* halves go to the even one */
    const double part = at - (double)low;
    at = (double)(low + (part > 0.5 || (part == 0.5 && (low & 1))));
  }
  if (o->padding == PADDING_ZEROS || !(at < -margin || at > size - 1 + margin)) return at;
  return o->padding == PADDING_REFLECTION ? reflected(at, size, margin) : at < 0 ? 0 : size - 1;
}

static int run_grid_sample(Vm *vm, const grid_sample_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const int axes = x->rank - 2, points = y->size[2], channels = y->size[1];
  const int low = o->mode == INTERPOLATION_CUBIC ? -1 : 0;
  const int taps = o->mode == INTERPOLATION_CUBIC ? 4 : o->mode == INTERPOLATION_LINEAR ? 2 : 1;
  const double margin = o->units == UNITS_BORDERS ? 0.5 : 0;
  ptrdiff_t plane = 1;
  for (int a = 0; a < axes; a++) plane *= x->size[2 + a];
  const float *grid = F(grid);
  for (int32_t b = 0; b < y->size[0]; b++)
    for (int32_t p = 0; p < points; p++, grid += axes) {
      double weight[MOST_CORNERS] = {1};
      ptrdiff_t place[MOST_CORNERS] = {0}; /* negative: outside */
      int corners = 1;
      for (int a = axes - 1; a >= 0; a--) { /* the corners of the axes behind `a` lie in front of the arrays */
        const int32_t size = x->size[2 + a];
        ptrdiff_t stride = 1;
        for (int behind = a + 1; behind < axes; behind++) stride *= x->size[2 + behind];
        const double at = position_of(o, grid[axes - 1 - a], size, margin);
        const int64_t base = floor_of(at);
        for (int t = taps - 1; t >= 0; t--) {
          const int64_t index = base + low + t;
          const int64_t inside = o->padding == PADDING_REFLECTION ? floor_of(reflected((double)index, size, margin)) : index;
          const int is_lost = o->padding == PADDING_ZEROS && (inside < 0 || inside >= size);
          const double d = distance_of(low + t - (at - (double)base));
          const double w = taps == 1 ? 1 : taps == 2 ? 1 - d : cubic_weight(d, -0.75);
          for (int c = 0; c < corners; c++) {
            weight[t * corners + c] = w * weight[c];
            place[t * corners + c] = is_lost || place[c] < 0 ? -1 : place[c] + (ptrdiff_t)within(inside, size) * stride;
          }
        }
        corners *= taps;
      }
      for (int32_t c = 0; c < channels; c++) {
        const float *image = F(x) + ((ptrdiff_t)b * channels + c) * plane;
        double total = 0;
        for (int k = 0; k < corners; k++) total += weight[k] * (place[k] < 0 ? 0 : (double)image[place[k]]);
        F(y)[((ptrdiff_t)b * channels + c) * points + p] = (float)total;
      }
      REQUIRE(!is_time_up(vm), OVER_SECONDS);
    }
  return OK;
}

/* --- affine grids ---------------------------------------------------------------------------------------------------- */

/* theta[batch, axes, axes + 1], y[batch, sizes ..., axes] */
static int check_affine_grid(Vm *vm, const affine_grid_operands *o) {
  const Tensor *theta = T(theta), *y = T(y);
  ASK(is_dense(theta, 3) && y->rank >= 3 && y->contiguous && theta->size[0] == y->size[0]);
  ASK(theta->size[1] == y->rank - 2 && theta->size[2] == y->rank - 1 && y->size[y->rank - 1] == y->rank - 2);
  return OK;
}
static int run_affine_grid(Vm *vm, const affine_grid_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *y = T(y);
  const int axes = y->rank - 2;
  const int32_t rows = y->count / axes / y->size[0];
  float *out = F(y);
  for (int32_t b = 0; b < y->size[0]; b++)
    for (int32_t row = 0; row < rows; row++, out += axes) {
      double point[MAX_RANK];
      int32_t rest = row;
      for (int a = axes; a > 0; a--) {
        const int32_t size = y->size[a], step = rest % size;
        rest /= size;
        point[axes - a] = o->align_corners ? 2.0 * step / (size > 1 ? size - 1 : 1) - 1 : (2.0 * step + 1) / size - 1;
      }
      const float *theta = F(theta) + (ptrdiff_t)b * axes * (axes + 1);
      for (int a = 0; a < axes; a++, theta += axes + 1) {
        double total = 0;
        for (int k = 0; k < axes; k++) total += theta[k] * point[k];
        out[a] = (float)(total + theta[axes]);
      }
    }
  return OK;
}

/* --- regions of images ----------------------------------------------------------------------------------------------- */

/* x[batch, channels, height, width], rois[regions, 4] of left, top, right, bottom, images[regions], y[regions, channels, bins,
 * bins]; `samples` along each axis of a bin, 0: as many as the bin is pixels wide */
static int check_roi_align(Vm *vm, const roi_align_operands *o) {
  const Tensor *x = T(x), *rois = T(rois), *y = T(y);
  ASK(is_dense(x, 4) && is_dense(y, 4) && is_dense(rois, 2) && rois->size[1] == 4 && rois->size[0] == y->size[0]);
  ASK(is_vector(T(images), y->size[0]) && x->size[1] == y->size[1] && (x->count || !y->count));
  return OK;
}

typedef struct {
  double start, size; /* of a bin */
  int32_t count, length;
} Bins;

static Bins bins_of(double start, double end, int32_t bins, int32_t length, const roi_align_operands *o) {
  double all = end - start;
  if (!o->half_pixel && all < 1) all = 1;
  const double size = all / bins, count = o->samples > 0 ? o->samples : (double)ceil_of(size);
  return (Bins){start, size, count > 0 ? count < 1 << 15 ? (int32_t)count : -1 : 0, length};
}

/* The two pixels around a sample and their weights; 0 for what is more than a pixel outside */
static void neighbours(const Bins *b, int32_t bin, int32_t sample, int32_t at[2], double weight[2]) {
  const double position = b->start + (bin + (sample + 0.5) / b->count) * b->size;
  const int inside = !(position < -1 || position > b->length);
  const double raised = position < 0 ? 0 : position;
  const int64_t low = within(floor_of(raised), b->length);
  const double part = low == b->length - 1 ? 0 : raised - (double)low;
  at[0] = (int32_t)low, at[1] = (int32_t)within(low + 1, b->length);
  weight[0] = inside ? 1 - part : 0, weight[1] = inside ? part : 0;
}

static float pool_bin(const float *image, const Bins *down, const Bins *right, int32_t row, int32_t column, int is_max) {
  double total = is_max && down->count && right->count ? -__builtin_inf() : 0;
  for (int32_t i = 0; i < down->count; i++)
    for (int32_t j = 0; j < right->count; j++) {
      int32_t rows[2], columns[2];
      double row_weights[2], column_weights[2];
      neighbours(down, row, i, rows, row_weights), neighbours(right, column, j, columns, column_weights);
      for (int k = 0; k < 4; k++) {
        const double value = image[(ptrdiff_t)rows[k >> 1] * right->length + columns[k & 1]];
        const double weighted = value * row_weights[k >> 1] * column_weights[k & 1];
        total = !is_max ? total + weighted : weighted > total || weighted != weighted ? weighted : total;
      }
    }
  const double count = (double)down->count * right->count;
  return (float)(is_max || count == 0 ? total : total / count);
}

static int run_roi_align(Vm *vm, const roi_align_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  float *out = F(y);
  const float *roi = F(rois);
  const double scale = float_of(o->scale), shift = o->half_pixel ? 0.5 : 0;
  for (int32_t r = 0; r < y->size[0]; r++, roi += 4) {
    int64_t image = L(images)[r];
    image += image < 0 ? x->size[0] : 0;
    REQUIRE(image >= 0 && image < x->size[0], INDEX_RANGE);
    const Bins right = bins_of(roi[0] * scale - shift, roi[2] * scale - shift, y->size[3], x->size[3], o);
    const Bins down = bins_of(roi[1] * scale - shift, roi[3] * scale - shift, y->size[2], x->size[2], o);
    REQUIRE(right.count >= 0 && down.count >= 0, INDEX_RANGE);
    for (int32_t c = 0; c < y->size[1]; c++) {
      const float *plane = F(x) + ((ptrdiff_t)image * x->size[1] + c) * x->size[2] * x->size[3];
      for (int32_t i = 0; i < y->size[2]; i++)
        for (int32_t j = 0; j < y->size[3]; j++) {
          *out++ = pool_bin(plane, &down, &right, i, j, o->is_max);
          REQUIRE(!is_time_up(vm), OVER_SECONDS);
        }
    }
  }
  return OK;
}

/* --- determinants ---------------------------------------------------------------------------------------------------- */

/* x[count, n, n], scratch[n * n], y[count] */
static int check_det(Vm *vm, const det_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 3) && x->size[1] == x->size[2] && is_vector(T(y), x->size[0]));
  ASK(is_dense(T(scratch), 1) && T(scratch)->count >= (int64_t)x->size[1] * x->size[1]);
  return OK;
}
static int run_det(Vm *vm, const det_operands *o) {
  const int32_t n = T(x)->size[1];
  double *a = (double *)T(scratch)->data;
  for (int32_t m = 0; m < T(y)->count; m++) {
    for (ptrdiff_t i = 0; i < (ptrdiff_t)n * n; i++) a[i] = F(x)[(ptrdiff_t)m * n * n + i];
    double det = 1;
    for (ptrdiff_t k = 0; k < n; k++) {
      ptrdiff_t pivot = k;
      for (ptrdiff_t i = k + 1; i < n; i++)
        if (distance_of(a[i * n + k]) > distance_of(a[pivot * n + k])) pivot = i;
      for (ptrdiff_t j = k; pivot != k && j < n; j++) {
        const double other = a[k * n + j];
        a[k * n + j] = a[pivot * n + j], a[pivot * n + j] = other;
      }
      det *= pivot == k ? a[k * n + k] : -a[k * n + k];
      if (a[k * n + k] == 0) break;
      for (ptrdiff_t i = k + 1; i < n; i++) {
        const double part = a[i * n + k] / a[k * n + k];
        for (ptrdiff_t j = k + 1; j < n; j++) a[i * n + j] -= part * a[k * n + j];
      }
    }
    F(y)[m] = (float)det;
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  return OK;
}

#pragma clang attribute pop
#pragma clang attribute pop
