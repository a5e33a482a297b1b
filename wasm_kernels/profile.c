/* Running a plan with all laps counted, in the thread that calls: whoever profiles hires no team. */
#include "kernels.gen.h"

/* counters: a LapRow for each word of the code; what they hold is added to. */
int32_t wr_plan_profile(uint8_t *tables, uint8_t *arena, const uint8_t *externals, int64_t *counters, int32_t runs) {
  Vm *vm = (Vm *)tables;
  vm->laps = (Laps){(LapRow *)counters, profile_clock()};
  const int32_t error = wr_plan_repeat(tables, arena, externals, runs);
  vm->laps.row = NULL;
  return error;
}

/* `count` empty laps, spread over both of two LapRows, for what one costs and for how long a tick is. */
void wr_profile_calibrate(int64_t *counters, int32_t count) {
  Laps laps = {(LapRow *)counters, profile_clock()};
  for (int32_t i = 0; i < count; i++) {
    __asm__ volatile("" ::: "memory");
    if (laps.row) end_lap(&laps, i & 1, WHOLE, 1);
  }
}
