/* The instructions of the VM that work on data: one function for each, and beside it what it asks of its operands. check_<name>
 * runs once for each binding of sizes, run_<name> each time the instruction is reached. */
#include "kernels.gen.h"
#include "plan.gen.h"

/* An operand by its name in runtime/webrnn/plan/instructions.py: as a tensor, as the floats of one, as those of one that may be
 * left out. Element types need no check: plan_check holds them to the row of the instruction. */
#define T(name) (vm->tensor + o->name)
#define F(name) ((float *)T(name)->data)
#define HAS(name) (o->name >= 0)
#define MAYBE(name) (HAS(name) ? F(name) : NULL)

INLINE int is_dense(const Tensor *t, int rank) { return t->rank == rank && t->contiguous; }
INLINE int is_vector(const Tensor *t, int32_t n) { return t->contiguous && t->count == n; }
/* rows of elements that may be apart */
INLINE int is_rows(const Tensor *t) { return t->rank == 2 && (t->stride[1] == 1 || t->size[1] == 1); }
INLINE int same_sizes(const Tensor *a, const Tensor *b) {
  int same = a->rank == b->rank;
  for (int i = 0; same && i < a->rank; i++) same = a->size[i] == b->size[i];
  return same;
}
INLINE int fits(int64_t count) { return count >= 0 && count <= INT32_MAX; }
INLINE int64_t packed_floats(int64_t n, int64_t k) { return (n + GRAIN - 1) / GRAIN * GRAIN * k; }
#define ASK(condition) REQUIRE(condition, BAD_OPERANDS)
/* A result without elements may have any number of rows, which nobody should walk over: its other sizes need no memory. */
#define DONE_IF_EMPTY(name)         \
  do {                              \
    if (!T(name)->count) return OK; \
  } while (0)

static int check_require(Vm *vm, const require_operands *o) {
  REQUIRE(vm->size[o->size] >= 0, BAD_SIZE);
  return OK;
}
static int run_require(Vm *vm, const require_operands *o) {
  (void)vm, (void)o;
  return OK;
}

/* --- moving data ----------------------------------------------------------------------------------------------------- */

static int check_copy(Vm *vm, const copy_operands *o) {
  ASK(T(x)->dtype == T(y)->dtype && same_sizes(T(x), T(y)));
  return OK;
}
static int run_copy(Vm *vm, const copy_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  if (x->contiguous && y->contiguous) {
    if (x->count && x->data != y->data) __builtin_memmove(y->data, x->data, (size_t)x->count * (size_t)ITEM[x->dtype]);
    return OK;
  }
  int32_t layout[3 * MAX_RANK];
  NO_VECTORS for (int a = 0; a < x->rank; a++)
    layout[a] = x->size[a], layout[x->rank + a] = x->stride[a], layout[2 * x->rank + a] = y->stride[a];
  wr_copy_strided((const uint8_t *)x->data, (uint8_t *)y->data, ITEM[x->dtype], x->rank, layout);
  return OK;
}

static int check_fill(Vm *vm, const fill_operands *o) {
  ASK(T(y)->contiguous);
  return OK;
}
static int run_fill(Vm *vm, const fill_operands *o) {
  wr_fill(F(y), T(y)->count, float_of(o->value));
  return OK;
}

static int check_sizes(Vm *vm, const sizes_operands *o) {
  ASK(is_vector(T(y), list_words(sizes, o)));
  return OK;
}
static int run_sizes(Vm *vm, const sizes_operands *o) {
  NO_VECTORS for (int i = 0; i < list_words(sizes, o); i++) ((int64_t *)T(y)->data)[i] = vm->size[list_of(o)[i]];
  return OK;
}

static int check_gather(Vm *vm, const gather_operands *o) {
  const Tensor *x = T(x), *index = T(index), *y = T(y);
  ASK(x->rank == 3 && y->rank == 3 && x->dtype == y->dtype && x->contiguous && y->contiguous);
  ASK(is_vector(index, y->size[1]));
  ASK(x->size[0] == y->size[0] && x->size[2] == y->size[2] && fits((int64_t)x->size[2] * ITEM[x->dtype]));
  return OK;
}
static int run_gather(Vm *vm, const gather_operands *o) {
  const Tensor *x = T(x);
  return wr_gather((const uint8_t *)x->data, (const int64_t *)T(index)->data, (uint8_t *)T(y)->data, x->size[0], x->size[1],
                   x->size[2] * ITEM[x->dtype], T(index)->count)
             ? INDEX_RANGE
             : OK;
}

/* The last frames of a stream, as a ring has them, and behind them new ones */
typedef struct {
  const uint8_t *ring, *rows;
  ptrdiff_t first, slots, history, bytes; /* first: the slot of the first frame of the history */
} Frames;

/* A frame, or several: often few vectors, for which a call would take longer */
INLINE void copy_frames(uint8_t *to, const uint8_t *from, ptrdiff_t bytes) {
  const ptrdiff_t vector = VL * (ptrdiff_t)sizeof(float);
  if (bytes % vector || bytes > 16 * vector) {
    copy_bytes(to, from, bytes);
    return;
  }
  for (ptrdiff_t i = 0; i < bytes; i += vector) vstore((float *)(to + i), vload((const float *)(from + i)));
}

/* Copies frames; `from` is counted from the first of the history. */
INLINE uint8_t *take_frames(const Frames *f, ptrdiff_t from, ptrdiff_t count, uint8_t *to) {
  while (count > 0) {
    ptrdiff_t slot = f->first + from, run = count;
    const uint8_t *source = f->rows + (from - f->history) * f->bytes;
    if (from < f->history) {
      if (slot >= f->slots) slot -= f->slots;
      source = f->ring + slot * f->bytes;
      const ptrdiff_t old = f->history - from, unbroken = f->slots - slot;
      if (run > old) run = old;
      if (run > unbroken) run = unbroken;
    }
    copy_frames(to, source, run * f->bytes);
    to += run * f->bytes, from += run, count -= run;
  }
  return to;
}

static int check_ring(Vm *vm, const ring_operands *o) {
  const Tensor *ring = T(ring), *rows = T(rows), *next = T(next), *windows = T(windows), *position = T(position);
  ASK(is_dense(ring, 3) && is_dense(rows, 3) && is_dense(next, 3) && is_dense(windows, 3) && same_sizes(ring, next));
  ASK(ring->dtype == rows->dtype && ring->dtype == next->dtype && ring->dtype == windows->dtype);
  ASK(ring->size[0] == rows->size[0] && ring->size[2] == rows->size[2]);
  ASK(ring->size[0] == windows->size[0] && ring->size[2] == windows->size[2] &&
      fits((int64_t)ring->size[2] * ITEM[ring->dtype]));
  ASK(o->rate >= 0 && o->history >= 0 && o->history <= ring->size[1] && ring->size[1] > 0);
  ASK(o->kernel > 0 && o->dilation > 0 && o->stride > 0 && windows->size[1] % o->kernel == 0);
  ASK(position->contiguous && position->count > 0 && ring->size[0] % position->count == 0);
  const int64_t last = (int64_t)(windows->size[1] / o->kernel - 1) * o->stride + (int64_t)(o->kernel - 1) * o->dilation;
  const int64_t frames = (int64_t)o->history + rows->size[1];
  ASK(fits(frames) && last < frames);
  return OK;
}

/* Windows are taken before frames are written: the ring and the next one may be the same memory, which is not copied then. */
static int run_ring(Vm *vm, const ring_operands *o) {
  const Tensor *ring = T(ring), *position = T(position);
  const ptrdiff_t slots = ring->size[1], n = T(rows)->size[1], bytes = (ptrdiff_t)ring->size[2] * ITEM[ring->dtype];
  /* Windows that lie in the stream as they lie side by side are one. */
  const int is_run = o->dilation == 1, is_one_run = is_run && o->stride == o->kernel;
  const int32_t taps = T(windows)->size[1], kernel = is_one_run ? taps : o->kernel, run = is_run ? kernel : 1;
  Frames f = {(const uint8_t *)ring->data, (const uint8_t *)T(rows)->data, 0, slots, o->history, bytes};
  uint8_t *next = (uint8_t *)T(next)->data, *windows = (uint8_t *)T(windows)->data;
  DONE_IF_EMPTY(ring);
  for (int32_t b = 0; b < ring->size[0]; b++, f.ring += slots * bytes, f.rows += n * bytes, next += slots * bytes) {
    const int32_t which = position->count == 1 ? 0 : b / (ring->size[0] / position->count);
    const int64_t strides = ((const int64_t *)position->data)[which];
    int64_t slot = strides >= 0 && strides <= UINT32_MAX ? (uint32_t)strides % (uint32_t)slots
                                                         : strides % slots; /* 32 bits: quicker */
    if (o->rate != 1) slot = slot * o->rate % slots;
    const ptrdiff_t at = (ptrdiff_t)(slot < 0 ? slot + slots : slot);
    f.first = at - f.history + (at < f.history ? slots : 0);
    int64_t start = 0;
    for (int32_t taken = 0; taken < taps; taken += kernel, start += o->stride)
      for (int32_t k = 0; k < kernel; k += run)
        windows = take_frames(&f, (ptrdiff_t)(start + (int64_t)k * o->dilation), run, windows);
    if (next != f.ring) __builtin_memmove(next, f.ring, (size_t)(slots * bytes));
    /* Of more frames than there are slots the last ones stay. */
    const ptrdiff_t skipped = n > slots ? n - slots : 0, to = skipped ? (at + skipped) % slots : at;
    const ptrdiff_t left = n - skipped, unbroken = left < slots - to ? left : slots - to;
    if (!left) continue;
    copy_frames(next + to * bytes, f.rows + skipped * bytes, unbroken * bytes);
    if (left > unbroken) copy_bytes(next, f.rows + (skipped + unbroken) * bytes, (left - unbroken) * bytes);
  }
  return OK;
}

/* --- reductions, normalizations -------------------------------------------------------------------------------------- */

#define REDUCE_KERNEL(name) wr_reduce_##name,
static void (*const REDUCE_KERNELS[])(const float *, float *, int32_t, int32_t, int32_t) = {REDUCTIONS(REDUCE_KERNEL)};

static int check_reduce(Vm *vm, const reduce_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 3) && is_dense(y, 2) && x->size[0] == y->size[0] && x->size[2] == y->size[1] &&
      below(o->kind, REDUCTION_COUNT));
  return OK;
}
static int reduce_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const reduce_operands *o = context;
  const Tensor *x = T(x);
  const ptrdiff_t row = (ptrdiff_t)x->size[1] * x->size[2];
  REDUCE_KERNELS[o->kind](F(x) + from * row, F(y) + from * (ptrdiff_t)x->size[2], to - from, x->size[1], x->size[2]);
  return OK;
}
static int run_reduce(Vm *vm, const reduce_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, reduce_rows, o, T(x)->size[0], 1, 4 * (int64_t)T(x)->count);
}

static int check_softmax(Vm *vm, const softmax_operands *o) {
  ASK(is_dense(T(x), 2) && is_dense(T(y), 2) && same_sizes(T(x), T(y)));
  return OK;
}
static int softmax_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const softmax_operands *o = context;
  const ptrdiff_t at = (ptrdiff_t)from * T(x)->size[1];
  (o->logarithm ? wr_log_softmax : wr_softmax)(F(x) + at, F(y) + at, to - from, T(x)->size[1]);
  return OK;
}
static int run_softmax(Vm *vm, const softmax_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, softmax_rows, o, T(x)->size[0], 1, 16 * (int64_t)T(x)->count);
}

static int check_layer_norm(Vm *vm, const layer_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 2) && is_dense(T(y), 2) && same_sizes(x, T(y)) && is_vector(T(scale), x->size[1]) &&
      (!HAS(bias) || is_vector(T(bias), x->size[1])));
  return OK;
}
static int layer_norm_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const layer_norm_operands *o = context;
  const ptrdiff_t at = (ptrdiff_t)from * T(x)->size[1];
  wr_layer_norm(F(x) + at, F(scale), MAYBE(bias), F(y) + at, to - from, T(x)->size[1], float_of(o->epsilon));
  return OK;
}
static int run_layer_norm(Vm *vm, const layer_norm_operands *o) {
  DONE_IF_EMPTY(y);
  return share(vm, layer_norm_rows, o, T(x)->size[0], 1, 8 * (int64_t)T(x)->count);
}

static int check_instance_norm(Vm *vm, const instance_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 3) && is_dense(T(y), 3) && same_sizes(x, T(y)) && is_vector(T(scale), x->size[1]) &&
      is_vector(T(bias), x->size[1]));
  return OK;
}
static int run_instance_norm(Vm *vm, const instance_norm_operands *o) {
  DONE_IF_EMPTY(y);
  wr_instance_norm(F(x), F(scale), F(bias), F(y), T(x)->size[0], T(x)->size[1], T(x)->size[2], float_of(o->epsilon));
  return OK;
}

static int check_batch_norm(Vm *vm, const batch_norm_operands *o) {
  const Tensor *x = T(x);
  ASK(is_dense(x, 3) && is_dense(T(y), 3) && same_sizes(x, T(y)));
  ASK(is_vector(T(scale), x->size[1]) && is_vector(T(bias), x->size[1]) && is_vector(T(mean), x->size[1]) &&
      is_vector(T(variance), x->size[1]));
  return OK;
}
static int run_batch_norm(Vm *vm, const batch_norm_operands *o) {
  DONE_IF_EMPTY(y);
  wr_batch_norm(F(x), F(scale), F(bias), F(mean), F(variance), F(y), T(x)->size[0], T(x)->size[1], T(x)->size[2],
                float_of(o->epsilon));
  return OK;
}

/* --- Fourier transforms ---------------------------------------------------------------------------------------------- */

#define FFT_KERNEL(name) wr_##name,
static void (*const FFT_KERNELS[])(const float *, const float *, float *, float *, int32_t, int32_t) = {FFTS(FFT_KERNEL)};

static int32_t fft_length(const Tensor *x, const Tensor *y, int32_t kind) {
  return kind == FFT_RFFT ? x->size[1] : kind == FFT_IRFFT ? y->size[1] : x->size[1] / 2;
}
static int check_fft(Vm *vm, const fft_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 2) && is_dense(y, 2) && x->size[0] == y->size[0] && below(o->kind, FFT_COUNT));
  const int32_t n = fft_length(x, y, o->kind);
  ASK(n >= MIN_FFT && n <= MAX_FFT && (n & (n - 1)) == 0);
  const int real = o->kind == FFT_RFFT || o->kind == FFT_IRFFT;
  const int32_t spectrum = real ? n + 2 : 2 * n, m = real ? n / 2 : n;
  ASK((o->kind == FFT_RFFT || x->size[1] == spectrum) && (o->kind == FFT_IRFFT || y->size[1] == spectrum));
  ASK(is_vector(T(twiddles), real ? 3 * m : m) && is_dense(T(scratch), 1) && T(scratch)->count >= 4 * (m + 2 * FFT_SLACK));
  return OK;
}
static int run_fft(Vm *vm, const fft_operands *o) {
  FFT_KERNELS[o->kind](F(x), F(twiddles), F(y), F(scratch), T(x)->size[0], fft_length(T(x), T(y), o->kind));
  return OK;
}
