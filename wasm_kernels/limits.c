/* What this processor can do at most, for the lower bounds of `webrnn bench`: multiply-adds, and bytes read.
 * Part of the native library only. */
#if defined(WEBRNN_SUFFIX) && !defined(WEBRNN_SIDE_MODULE)

#define CHAINS 12

/* CHAINS * VL multiply-adds in each of `n` rounds, as many chains as hide their latency; `values` are 2 + CHAINS vectors. */
WEBRNN_EXPORT void WEBRNN_NAME(wr_limit_multiply_add, WEBRNN_SUFFIX)(float *values, int32_t n) {
  const vf a = vload(values), b = vload(values + VL);
  vf chain[CHAINS];
  UNROLL for (int i = 0; i < CHAINS; i++) chain[i] = vload(values + (2 + i) * VL);
  for (int32_t round = 0; round < n; round++) {
    UNROLL for (int i = 0; i < CHAINS; i++) chain[i] = vfma(chain[i], a, b);
  }
  UNROLL for (int i = 0; i < CHAINS; i++) vstore(values + (2 + i) * VL, chain[i]);
}

/* Multiply-adds in a round of the above. */
WEBRNN_EXPORT int32_t WEBRNN_NAME(wr_limit_round, WEBRNN_SUFFIX)(void) { return CHAINS * VL; }

#define STREAMS 8

/* Reads `count` floats, a multiple of 8 vectors, `passes` times: to and fro, as what was read last is in the nearest cache. */
WEBRNN_EXPORT float WEBRNN_NAME(wr_limit_read, WEBRNN_SUFFIX)(const float *values, int32_t count, int32_t passes) {
  vf sum[STREAMS];
  UNROLL for (int i = 0; i < STREAMS; i++) sum[i] = vset(0.0f);
  const int32_t block = STREAMS * VL, blocks = count / block;
  for (int32_t pass = 0; pass < passes; pass++) {
    const float *at = pass % 2 ? values + (ptrdiff_t)(blocks - 1) * block : values;
    const ptrdiff_t step = pass % 2 ? -block : block;
    for (int32_t n = 0; n < blocks; n++, at += step) {
      UNROLL for (int i = 0; i < STREAMS; i++) sum[i] += vload(at + i * VL);
    }
  }
  vf total = sum[0];
  for (int i = 1; i < STREAMS; i++) total += sum[i];
  return total[0];
}

#endif
