/* What a run may use: steps of one loop, steps of all its loops together, and time.
 *
 * A loop whose number of steps is known when it begins is charged for all of them then, others step by step, and the executor in
 * Python does the same (runtime/webrnn/engine/limits.py): a run that one of them refuses all refuse. Time is looked at between
 * instructions and between the steps of a loop. */
#ifndef WEBRNN_BUDGET_H
#define WEBRNN_BUDGET_H
#include <stdint.h>
#include "clock.h"

/* Most checks between two readings of the clock. A check may stand for any amount of work, so there are never many. */
enum { MOST_CHECKS = 64 };

typedef struct {
  int64_t loop_steps, run_steps, ticks; /* the limits; the last is negative for none */
  int64_t steps_left, elapsed;
  int32_t read;                /* the last reading of the clock */
  int32_t checks, checks_left; /* between two readings, and before the next one */
} Budget;

/* limits: steps of one loop, steps of all loops of a run, microseconds of a run; what is negative is no limit */
static void set_limits(Budget *b, const int64_t *limits) {
  const int64_t us = limits[2];
  b->loop_steps = limits[0] < 0 ? INT64_MAX : limits[0];
  b->run_steps = limits[1] < 0 ? INT64_MAX : limits[1];
  b->ticks = us < 0 ? -1 : us / 1000 * TICKS_PER_MS + us % 1000 * TICKS_PER_MS / 1000;
  b->checks = 1;
}

/* goes_on: the time that was used counts */
INLINE void start_budget(Budget *b, int goes_on) {
  b->steps_left = b->run_steps;
  b->checks_left = INT32_MAX;
  if (b->ticks < 0) return;
  if (!goes_on) b->elapsed = 0, b->read = clock_ticks();
  b->checks_left = b->checks;
}

/* Reads the clock, more often where much is done between two checks. */
__attribute__((noinline, unused)) static int read_clock(Budget *b) {
  if (b->ticks < 0) {
    b->checks_left = INT32_MAX;
    return 0;
  }
  const int32_t now = clock_ticks();
  int32_t passed = (now - b->read) & TICK_MASK;
  if (passed > TICK_MASK / 2) passed = 0; /* a clock that was set back */
  b->checks = passed > 4 * TICKS_PER_MS ? 1 : passed < TICKS_PER_MS && b->checks < MOST_CHECKS ? 2 * b->checks : b->checks;
  b->checks_left = b->checks, b->read = now, b->elapsed += passed;
  return b->elapsed > b->ticks;
}

/* Asked after everything that may take time. */
#define is_time_up(vm) (__builtin_expect(--(vm)->budget.checks_left <= 0, 0) && read_clock(&(vm)->budget))

/* Charges a loop that begins for `steps` steps. */
#define CHARGE_LOOP(vm, steps)                                    \
  do {                                                            \
    REQUIRE((steps) <= (vm)->budget.loop_steps, OVER_LOOP_STEPS); \
    REQUIRE((steps) <= (vm)->budget.steps_left, OVER_RUN_STEPS);  \
    (vm)->budget.steps_left -= (steps);                           \
  } while (0)
#endif
