/* The instructions of convolutions and pools. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* --- channels first -------------------------------------------------------------------------------------------------- */

/* The operands of a window, of the height and of the width each */
typedef struct {
  int32_t kernel[2], stride[2], pad[2], dilation[2];
} Sliding;
#define SLIDING ((const Sliding *)&o->kernel_h)

static Window window_of(const Tensor *x, const Tensor *y, const Sliding *s, int32_t groups) {
  return (Window){x->size[0], x->size[1],     x->size[2],     x->size[3],   y->size[1],   y->size[2],
                  y->size[3], s->kernel[0],   s->kernel[1],   s->stride[0], s->stride[1], s->pad[0],
                  s->pad[1],  s->dilation[0], s->dilation[1], groups};
}
INLINE int is_within(int32_t number, int32_t least) { return number >= least && number < 1 << 15; }
/* x[2] and y[2]: height and width */
static int check_sliding(const int32_t *x, const int32_t *y, const Sliding *s) {
  for (int a = 0; a < 2; a++) {
    ASK(is_within(s->kernel[a], 1) && is_within(s->stride[a], 1) && is_within(s->pad[a], 0) && is_within(s->dilation[a], 1));
    /* positions stay in range of an int */
    ASK(fits(((int64_t)y[a] + 1) * s->stride[a] + (int64_t)s->kernel[a] * s->dilation[a] + x[a] + s->pad[a]));
  }
  return OK;
}
static int check_window(const Tensor *x, const Tensor *y, const Sliding *s) {
  ASK(is_dense(x, 4) && is_dense(y, 4) && x->size[0] == y->size[0]);
  ASK(fits((int64_t)x->size[2] * x->size[3]) && fits((int64_t)y->size[2] * y->size[3]));
  return check_sliding(x->size + 2, y->size + 2, s);
}

/* Whether the channels of a filter come before its taps, in weights and in sums: so it is in older plans. */
INLINE int is_channels_first(const Vm *vm) { return vm->plan[HEADER_VERSION] == CHANNELS_FIRST_VERSION; }

static int check_conv(Vm *vm, const conv_operands *o) {
  const Tensor *x = T(x), *weights = T(w), *y = T(y);
  const int32_t groups = o->groups;
  int error = check_window(x, y, SLIDING);
  if (error) return error;
  ASK(groups > 0 && x->size[1] % groups == 0 && y->size[1] % groups == 0);
  int64_t taps = (int64_t)(x->size[1] / groups) * o->kernel_h * o->kernel_w;
  ASK(taps > 0 && fits(taps) && fits(taps * PANEL));
  const int channels = is_channels_first(vm) ? 1 : 3, height = channels == 1 ? 2 : 1;
  ASK(is_dense(weights, 4) && weights->size[0] == y->size[1] && weights->size[channels] == x->size[1] / groups);
  ASK(weights->size[height] == o->kernel_h && weights->size[height + 1] == o->kernel_w);
  ASK((!HAS(bias) || is_vector(T(bias), y->size[1])) && is_dense(T(scratch), 1) && T(scratch)->count >= taps * PANEL);
  return OK;
}
static int run_conv(Vm *vm, const conv_operands *o) {
  DONE_IF_EMPTY(y);
  Window window = window_of(T(x), T(y), SLIDING, o->groups);
  convolve(F(x), F(w), MAYBE(bias), F(y), F(scratch), &window, is_channels_first(vm));
  return OK;
}

static int check_pool(Vm *vm, const pool_operands *o) {
  ASK(T(x)->rank == 4 && T(y)->rank == 4 && T(x)->size[1] == T(y)->size[1] && below(o->kind, POOLING_SUM));
  return check_window(T(x), T(y), SLIDING);
}
static int run_pool(Vm *vm, const pool_operands *o) {
  DONE_IF_EMPTY(y);
  Window window = window_of(T(x), T(y), SLIDING, 1);
  if (o->kind == POOLING_MAX) wr_max_pool(F(x), F(y), (const int32_t *)&window);
  else wr_average_pool(F(x), F(y), (const int32_t *)&window, o->kind == POOLING_AVERAGE_WITH_PADDING);
  return OK;
}

/* --- channels last --------------------------------------------------------------------------------------------------- */

/* [n, h, w, c] whose channels lie behind each other */
INLINE int is_channels_last(const Tensor *t) { return t->rank == 4 && (t->stride[3] == 1 || t->size[3] == 1); }

typedef struct {
  int32_t kernel[2], stride[2], dilation[2];
} Steps;
#define STEPS ((const Steps *)&o->kernel_h)

/* Whether all windows lie inside x */
static int check_steps_of(const Tensor *x, const Tensor *y, const Steps *s) {
  ASK(is_channels_last(x) && is_channels_last(y) && x->size[0] == y->size[0]);
  for (int a = 0; a < 2; a++) {
    ASK(is_within(s->kernel[a], 1) && is_within(s->stride[a], 1) && is_within(s->dilation[a], 1));
    const int64_t last = (int64_t)(y->size[1 + a] - 1) * s->stride[a] + (int64_t)(s->kernel[a] - 1) * s->dilation[a];
    ASK(!y->count || last < x->size[1 + a]);
  }
  return OK;
}

static Positions positions_of(const Tensor *x, const Tensor *y, const Steps *s) {
  return (Positions){(const float *)x->data,
                     (float *)y->data,
                     (ptrdiff_t)s->stride[1] * x->stride[2],
                     (ptrdiff_t)s->stride[0] * x->stride[1],
                     x->stride[0],
                     y->stride[2],
                     y->stride[1],
                     y->stride[0],
                     y->size[2],
                     y->size[1],
                     y->size[0] * y->size[1] * y->size[2]};
}

static int check_conv_rows(Vm *vm, const conv_rows_operands *o) {
  const Tensor *x = T(x), *packed = T(packed), *y = T(y);
  const int error = check_steps_of(x, y, STEPS);
  if (error) return error;
  const int64_t taps = (int64_t)o->kernel_h * o->kernel_w * x->size[3];
  ASK(fits(taps) && is_dense(packed, 1) && packed->count >= packed_floats(y->size[3], taps));
  ASK(!HAS(bias) || is_vector(T(bias), y->size[3]));
  return OK;
}
/* The expression that runs along: on what is there of its operands, while it is near. NULL if there is none, if it has to be
 * checked first, or if its first axis does not consist of positions. */
static const expression_operands *along(const Vm *vm, const int32_t *words, int is_along, const Positions *p) {
  if (!is_along || vm->checking) return NULL;
  const int32_t *behind = words + words[-1];
  if (behind[0] != I_expression) return NULL;
  const expression_operands *o = (const expression_operands *)(behind + 2);
  const Tensor *y = vm->tensor + expression_of(o).output[0].tensor;
  return y->rank && y->count && y->size[0] % p->count == 0 ? o : NULL;
}
static int run_along(Vm *vm, const void *before, const expression_operands *o, const Positions *p, int32_t first,
                     int32_t count) {
  (void)before;
  if (!o) return OK;
  LAP_OF_BLOCK(vm, before);
  const int32_t each = vm->tensor[expression_of(o).output[0].tensor].size[0] / p->count;
  vm->done = o;
  const int error = run_part(vm, o, first * each, (first + count) * each);
  LAP_OF_BLOCK(vm, o);
  return error;
}

/* The terms of a window over all channels of x, in as few runs as they lie in */
static Terms terms_of(const Tensor *x, const Steps *s) {
  Terms t = {s->kernel[0], s->kernel[1], x->size[3], (ptrdiff_t)s->dilation[0] * x->stride[1],
             (ptrdiff_t)s->dilation[1] * x->stride[2]};
  if (t.inner_stride == t.run) t.run *= t.inner, t.inner = 1;
  if (t.inner == 1 && t.outer_stride == t.run) t.run *= t.outer, t.outer = 1;
  return t;
}

/* --- positions in blocks, each with the expression that runs along ------------------------------------------------------------ */

typedef struct Sweep Sweep;
struct Sweep {
  const void *operands;
  void (*block)(Vm *vm, const Sweep *s, int32_t first, int32_t count);
  Positions p;
  Terms terms;
  const expression_operands *then;
};

/* Positions that are not parted: the rows of any tile */
enum { POSITIONS_TOGETHER = 24 };

static int sweep_blocks(Vm *vm, const void *context, int32_t from, int32_t to) {
  const Sweep *s = context;
  const int32_t last = to * (int64_t)POSITIONS_TOGETHER < s->p.count ? to * POSITIONS_TOGETHER : s->p.count;
  for (int32_t first = from * POSITIONS_TOGETHER, count; first < last; first += count) {
    count = positions_in_block(&s->p);
    if (count > last - first) count = last - first;
    s->block(vm, s, first, count);
    const int error = run_along(vm, s->operands, s->then, &s->p, first, count);
    REQUIRE(!error, error);
    REQUIRE(!is_time_up(vm), OVER_SECONDS);
  }
  return OK;
}
static int sweep(Vm *vm, const Sweep *s, int64_t work) {
  const int32_t units = (s->p.count - 1) / POSITIONS_TOGETHER + 1;
  const int error = share(vm, sweep_blocks, s, units, 1, work);
  vm->done = s->then;
  return error;
}

static void conv_block(Vm *vm, const Sweep *s, int32_t first, int32_t count) {
  const conv_rows_operands *o = s->operands;
  conv_positions(&s->p, first, count, &s->terms, F(packed), MAYBE(bias), 0, T(y)->size[3]);
}
#ifdef HAS_TEAM
/* Filters that are not parted: those of a tile */
enum { FILTERS_TOGETHER = VL == 16 ? 2 * PANEL : PANEL };

/* All positions of some filters */
static int conv_filters(Vm *vm, const void *context, int32_t from, int32_t to) {
  const Sweep *s = context;
  const conv_rows_operands *o = s->operands;
  const int32_t n = T(y)->size[3], last = to * FILTERS_TOGETHER < n ? to * FILTERS_TOGETHER : n;
  conv_positions(&s->p, 0, s->p.count, &s->terms, F(packed), MAYBE(bias), from * FILTERS_TOGETHER, last);
  return OK;
}
#endif

static int run_conv_rows(Vm *vm, const conv_rows_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const Positions p = positions_of(x, y, STEPS);
  const Sweep s = {o, conv_block, p, terms_of(x, STEPS), along(vm, (const int32_t *)o, o->along, &p)};
  const int32_t filters = y->size[3], is_product = s.terms.inner == 1 && s.terms.outer == 1 && p.count == p.per_line;
  if (is_product && p.count < 8) { /* few rows of a product */
    const Output out = {p.y, p.y_step, MAYBE(bias), NULL, filters};
    multiply(vm, &(Product){p.x, p.x_step, F(packed), p.count, s.terms.run, vm->step, out});
    return run_along(vm, o, s.then, &p, 0, p.count);
  }
  const int64_t work = (int64_t)p.count * filters * s.terms.outer * s.terms.inner * s.terms.run;
#ifdef HAS_TEAM
  if (p.count < 4 * POSITIONS_TOGETHER && filters >= 4 * PANEL) {
    share(vm, conv_filters, &s, (filters - 1) / FILTERS_TOGETHER + 1, 1, work);
    return run_along(vm, o, s.then, &p, 0, p.count);
  }
#endif
  return sweep(vm, &s, work);
}

static int check_depthwise(Vm *vm, const depthwise_operands *o) {
  const Tensor *x = T(x), *w = T(w), *y = T(y);
  const int error = check_steps_of(x, y, STEPS);
  if (error) return error;
  ASK(x->size[3] == y->size[3] && is_dense(w, 2) && w->size[1] == x->size[3]);
  ASK(w->size[0] == o->kernel_h * o->kernel_w);
  ASK(!HAS(bias) || is_vector(T(bias), y->size[3]));
  return OK;
}
static void filter_block(Vm *vm, const Sweep *s, int32_t first, int32_t count) {
  const depthwise_operands *o = s->operands;
  filter_positions(&s->p, first, count, &s->terms, F(w), MAYBE(bias), T(y)->size[3]);
}
static int run_depthwise(Vm *vm, const depthwise_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *x = T(x), *y = T(y);
  const Positions p = positions_of(x, y, STEPS);
  const Terms terms = {o->kernel_h, o->kernel_w, 1, (ptrdiff_t)o->dilation_h * x->stride[1],
                       (ptrdiff_t)o->dilation_w * x->stride[2]};
  const Sweep s = {o, filter_block, p, terms, along(vm, (const int32_t *)o, o->along, &p)};
  return sweep(vm, &s, 4 * (int64_t)y->count * terms.outer * terms.inner);
}

static int check_pool_rows(Vm *vm, const pool_rows_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_channels_last(x) && is_channels_last(y) && x->size[0] == y->size[0] && x->size[3] == y->size[3]);
  ASK(below(o->kind, POOLING_SUM));
  return check_sliding(x->size + 1, y->size + 1, SLIDING);
}

/* Some of the lines of all images */
static int pool_lines(Vm *vm, const void *context, int32_t from, int32_t to) {
  const pool_rows_operands *o = context;
  const Tensor *x = T(x), *y = T(y);
  const int32_t channels = y->size[3];
  for (int32_t line = from; line < to; line++) {
    const ptrdiff_t b = line / y->size[1], i = line % y->size[1];
    const int top = (int)i * o->stride_h - o->pad_top;
    int rows[2], columns[2];
    valid_taps(top, o->kernel_h, o->dilation_h, x->size[1], rows, rows + 1);
    for (ptrdiff_t j = 0; j < y->size[2]; j++) {
      const int left = (int)j * o->stride_w - o->pad_left;
      valid_taps(left, o->kernel_w, o->dilation_w, x->size[2], columns, columns + 1);
      const Terms terms = {rows[1] - rows[0], columns[1] - columns[0], 1, (ptrdiff_t)o->dilation_h * x->stride[1],
                           (ptrdiff_t)o->dilation_w * x->stride[2]};
      const int is_empty = terms.outer <= 0 || terms.inner <= 0;
      const int counted = o->kind == POOLING_AVERAGE_WITH_PADDING ? o->kernel_h * o->kernel_w
                          : is_empty                              ? 0
                                                                  : terms.outer * terms.inner;
      const float *from = F(x) + b * x->stride[0];
      if (!is_empty)
        from += (top + (ptrdiff_t)rows[0] * o->dilation_h) * x->stride[1] +
                (left + (ptrdiff_t)columns[0] * o->dilation_w) * x->stride[2];
      float *to = F(y) + b * y->stride[0] + i * y->stride[1] + j * y->stride[2];
      if (o->kind == POOLING_MAX) pool_window(from, to, &terms, 1, 1.0f, channels);
      else pool_window(from, to, &terms, 0, (float)counted, channels);
    }
  }
  return OK;
}
static int run_pool_rows(Vm *vm, const pool_rows_operands *o) {
  DONE_IF_EMPTY(y);
  const Tensor *y = T(y);
  return share(vm, pool_lines, o, y->size[0] * y->size[1], 1, 4 * (int64_t)y->count * o->kernel_h * o->kernel_w);
}
