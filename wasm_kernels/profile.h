/* Where the time of a run goes, in builds with -DWEBRNN_PROFILE: native ones, and modules for profiling. In all others LAP is nothing.
 *
 * There is one clock reading for each lap: the time since the last one is the lap's. So nothing is counted twice, and all laps
 * together are the whole run. A lap is counted in the row of the instruction that it ends, as the instruction itself or as one of
 * its parts. */
#ifndef WEBRNN_PROFILE_H
#define WEBRNN_PROFILE_H

/* What a part is depends on the instruction: its row in runtime/webrnn/plan/instructions.py names them. */
enum { WHOLE, FIRST_PART, SECOND_PART, LAP_KINDS };

#ifdef WEBRNN_PROFILE
#include <stdint.h>

typedef struct {
  int64_t count[LAP_KINDS], ticks[LAP_KINDS];
} LapRow;

typedef struct {
  LapRow *row; /* one for each word of the code; NULL while nothing is counted */
  int64_t last;
} Laps;

#if defined(__wasm__)
__attribute__((import_module("env"), import_name("profile_clock"))) int64_t profile_clock(void);
#elif defined(__x86_64__)
static inline int64_t profile_clock(void) { return (int64_t)__builtin_ia32_rdtsc(); }
#elif defined(__aarch64__)
static inline int64_t profile_clock(void) {
  int64_t ticks;
  __asm__ volatile("mrs %0, cntvct_el0" : "=r"(ticks));
  return ticks;
}
#else
static inline int64_t profile_clock(void) { return 0; } /* the host says that there is no clock */
#endif

/* Not inlined, so that loops around a lap are compiled as without it. */
__attribute__((noinline, unused)) static void end_lap(Laps *laps, int32_t word, int kind, int calls) {
  const int64_t now = profile_clock();
  LapRow *row = laps->row + word;
  row->count[kind] += calls, row->ticks[kind] += now - laps->last;
  laps->last = now;
}

/* w: the operands of the instruction; calls: 0 for more of what another lap counts. A lap of a block is time of an instruction that another lap counts. */
#define LAP_OF(vm, w, kind, calls)                                                                           \
  do {                                                                                                       \
    if ((vm)->laps.row) end_lap(&(vm)->laps, (int32_t)((const int32_t *)(w) - (vm)->code) - 2, kind, calls); \
  } while (0)
#define LAP(vm, w, kind) LAP_OF(vm, w, kind, 1)
#define LAP_OF_BLOCK(vm, w) LAP_OF(vm, w, WHOLE, 0)
#else
#define LAP_OF(vm, w, kind, calls) ((void)0)
#define LAP(vm, w, kind) ((void)0)
#define LAP_OF_BLOCK(vm, w) ((void)0)
#endif
#endif
