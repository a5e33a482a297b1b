/* Floats to bytes, as DynamicQuantizeLinear: each row by a scale of its own that covers all of it and 0. */

static int check_dynamic_quantize(Vm *vm, const dynamic_quantize_operands *o) {
  const Tensor *x = T(x), *y = T(y);
  ASK(is_dense(x, 2) && is_dense(y, 2) && same_sizes(x, y));
  ASK(is_vector(T(scale), x->size[0]) && is_vector(T(zero), x->size[0]));
  return OK;
}
NOINLINE void quantize_row(const float *x, uint8_t *y, int32_t n, float scale, float zero) {
  for (int32_t i = 0; i < n; i += VL) {
    const int32_t rest = n - i;
    const vf whole = saturated(vload_upto(x + i, rest) / vset(scale), vset(zero), 0.0f, 255.0f);
    const vb bytes = __builtin_convertvector(__builtin_convertvector(whole, vi), vb);
    if (rest >= VL) __builtin_memcpy(y + i, &bytes, VL);
    else NO_VECTORS for (int32_t j = 0; j < rest; j++) y[i + j] = bytes[j];
  }
}
/* The smallest and the largest of all of x and 0; both NaN if one of x is */
static void range_of(const float *x, int32_t n, float *low, float *high) {
  enum { VECS = LANE_VECS > 4 ? LANE_VECS : 4 }; /* so that none waits for the one before */
  vf least[VECS], most[VECS];
  vi odd = vset_i(0);
  UNROLL for (int j = 0; j < VECS; j++) least[j] = most[j] = vset(0.0f);
  for (int32_t i = 0; i < n; i += VECS * VL)
    UNROLL for (int j = 0; j < VECS; j++) {
      const int32_t rest = n - i - j * VL;
      if (rest <= 0) break;
      const vf v = vload_upto(x + i + j * VL, rest);
      least[j] = vcap(least[j], v), most[j] = vraise(most[j], v), odd |= v != v;
    }
  Lanes lows, highs;
  UNROLL for (int j = VECS - 1; j >= LANE_VECS; j--) {
    least[j - LANE_VECS] = vcap(least[j - LANE_VECS], least[j]), most[j - LANE_VECS] = vraise(most[j - LANE_VECS], most[j]);
  }
  UNROLL for (int j = 0; j < LANE_VECS; j++) lows.lane[j] = least[j], highs.lane[j] = most[j];
  *low = FOLD(lows, quad_min(a, b)), *high = FOLD(highs, quad_max(a, b));
  UNROLL for (int j = 0; j < VL; j++)
    if (odd[j]) *low = *high = __builtin_nanf("");
}
static int quantize_rows(Vm *vm, const void *context, int32_t from, int32_t to) {
  const dynamic_quantize_operands *o = context;
  const int32_t n = T(x)->size[1];
  for (int32_t row = from; row < to; row++) {
    const float *x = F(x) + (ptrdiff_t)row * n;
    float low, high;
    range_of(x, n, &low, &high);
    const float scale = low == high ? 1.0f : (high - low) / 255.0f, start = -low / scale;
    const float zero = start > 0 ? vrint(vset(start < 255.0f ? start : 255.0f))[0] : 0.0f;
    F(scale)[row] = scale;
    ((uint8_t *)T(zero)->data)[row] = (uint8_t)zero;
    quantize_row(x, (uint8_t *)T(y)->data + (ptrdiff_t)row * n, n, scale, zero);
  }
  return OK;
}
static int run_dynamic_quantize(Vm *vm, const dynamic_quantize_operands *o) {
  return share(vm, quantize_rows, o, T(x)->size[0], 1, 8 * (int64_t)T(x)->count);
}
