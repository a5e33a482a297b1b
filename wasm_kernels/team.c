/* Threads that share the work of a run: see team.h. The host makes the threads, and puts them to sleep: there is no system call
 * here but the one that gives a processor away. */
#include "team.h"
#include <stddef.h>
#include "clock.h"

#define EXPORT __attribute__((used, visibility("default")))

/* How long a thread waits for work before it goes back to its host: while a run goes on or is to begin, and after it, when the next one
 * may follow at once. In ticks of the clock. */
enum {
  WAIT_IN_RUN = 2 * TICKS_PER_MS,
  WAIT_AFTER_RUN = TICKS_PER_MS / 4,
  SPINS_PER_READING = 64,
  SPINS_BEFORE_YIELD = 1 << 12
};

#ifdef _WIN32
__declspec(dllimport) int SwitchToThread(void);
#define sched_yield SwitchToThread
#else
int sched_yield(void);
#endif

static inline void spin(void) {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__) || defined(__arm__)
  __asm__ volatile("yield");
#endif
}

EXPORT int32_t wr_team_bytes(void) { return sizeof(Team); }

/* Memory that is all zero becomes a team of whoever leads alone. */
EXPORT void wr_team_make(uint8_t *memory) {
  Team *team = (Team *)memory;
  __atomic_store_n(&team->round, UINT32_MAX, __ATOMIC_RELEASE);
}

/* Takes and does a part of the round that is seen, the one of its own number if that is free: in a loop each thread finds its part of
 * the weights in its own cache. False if no part is left. */
static int take_part(Team *team, uint64_t round, int32_t who) {
  for (;;) {
    const uint32_t is_free = ~(uint32_t)round;
    if (!is_free) return 0;
    const int32_t part = is_free >> who & 1 ? who : __builtin_ctz(is_free);
    if (__atomic_compare_exchange_n(&team->round, &round, round | (uint64_t)1 << part, 1, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
      team->work(team->context, part, who);
      __atomic_fetch_sub(&team->left, 1, __ATOMIC_RELEASE);
      return 1;
    }
  }
}

/* A run is about to begin, and threads that wait for work stay for it. Returns a bit for each thread that has gone to sleep: the host
 * wakes these up, and they clear their bits themselves. */
EXPORT int32_t wr_team_call(uint8_t *memory) {
  Team *team = (Team *)memory;
  __atomic_fetch_add(&team->calls, 1, __ATOMIC_SEQ_CST);
  return (int32_t)__atomic_load_n(&team->asleep, __ATOMIC_SEQ_CST);
}

/* Whether a thread may go to sleep: its host wakes it up from now on. Not if there was a call since it looked, which may not have seen
 * that it sleeps: one of the two sees the other. */
static int lie_down(Team *team, uint32_t bit, uint32_t calls) {
  __atomic_fetch_or(&team->asleep, bit, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&team->calls, __ATOMIC_SEQ_CST) == calls) return 1;
  __atomic_fetch_and(&team->asleep, ~bit, __ATOMIC_SEQ_CST);
  return 0;
}

/* Works for the team until there has been nothing to do for a while, or until it is over. who: from 1 to MOST_PARTS - 1 */
EXPORT void wr_team_serve(uint8_t *memory, int32_t who) {
  Team *team = (Team *)memory;
  const uint32_t bit = (uint32_t)1 << who;
  uint32_t calls = __atomic_load_n(&team->calls, __ATOMIC_RELAXED);
  int32_t since = clock_ticks();
  __atomic_fetch_and(&team->asleep, ~bit, __ATOMIC_RELAXED);
  __atomic_fetch_add(&team->present, 1, __ATOMIC_RELAXED);
  for (int32_t spins = 1; !__atomic_load_n(&team->is_over, __ATOMIC_RELAXED); spins++) {
    if (take_part(team, __atomic_load_n(&team->round, __ATOMIC_ACQUIRE), who)) {
      spins = 0, since = -1;
      continue;
    }
    spin();
    if (spins % SPINS_PER_READING) continue;
    const int32_t now = clock_ticks();
    const uint32_t called = __atomic_load_n(&team->calls, __ATOMIC_RELAXED);
    if (since < 0 || called != calls) since = now, calls = called;
    const int is_expected = __atomic_load_n(&team->is_led, __ATOMIC_RELAXED) ||
                            __atomic_load_n(&team->answered, __ATOMIC_RELAXED) != calls;
    if (((now - since) & TICK_MASK) > (is_expected ? WAIT_IN_RUN : WAIT_AFTER_RUN) && lie_down(team, bit, calls)) break;
  }
  __atomic_fetch_sub(&team->present, 1, __ATOMIC_RELAXED);
}

/* Lets all threads go back to their host, for good. */
EXPORT void wr_team_end(uint8_t *memory) { __atomic_store_n(&((Team *)memory)->is_over, 1, __ATOMIC_RELAXED); }

int wr_team_lead(Team *team) {
  if (__atomic_exchange_n(&team->is_led, 1, __ATOMIC_ACQUIRE)) return 0;
  __atomic_store_n(&team->answered, __atomic_load_n(&team->calls, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
  return 1;
}
void wr_team_leave(Team *team) { __atomic_store_n(&team->is_led, 0, __ATOMIC_RELEASE); }

void wr_team_share(Team *team, TeamWork *work, void *context, int32_t parts) {
  team->work = work, team->context = context;
  __atomic_store_n(&team->left, parts, __ATOMIC_RELAXED);
  const uint64_t number = (__atomic_load_n(&team->round, __ATOMIC_RELAXED) >> 32) + 1;
  __atomic_store_n(&team->round, number << 32 | (uint32_t)(UINT32_MAX << parts), __ATOMIC_RELEASE);
  while (take_part(team, __atomic_load_n(&team->round, __ATOMIC_ACQUIRE), 0)) continue;
  for (uint32_t spins = 1; __atomic_load_n(&team->left, __ATOMIC_ACQUIRE); spins++) {
    spin();
    if (spins % SPINS_BEFORE_YIELD == 0) sched_yield(); /* a thread that was put off has a part */
  }
}
