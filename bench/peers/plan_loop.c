/* Runs a bound plan n times and stores how long each run took, as the benchmark's drivers of other C APIs do. */
#include <stdint.h>
#include <time.h>

typedef int32_t Run(uint8_t *tables, uint8_t *arena, const uint8_t *externals);

static int64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ll + t.tv_nsec;
}

int32_t plan_loop(Run *run, uint8_t *tables, uint8_t *arena, const uint8_t *externals, int32_t n, int64_t *ns) {
  for (int32_t i = 0; i < n; i++) {
    int64_t start = now();
    int32_t error = run(tables, arena, externals);
    ns[i] = now() - start;
    if (error) return error;
  }
  return 0;
}
