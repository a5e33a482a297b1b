/* Checks, binds and runs a plan in memory of exactly the size that it asks for, so that a sanitizer sees every access outside
 * it. A plan may ask for more steps or memory than anybody has: runs are cut off after RUN_MILLISECONDS and not begun above
 * MOST_BYTES. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>

#include "all.c"
#include "team.c"

#ifndef MOST_BYTES
#define MOST_BYTES (1 << 26)
#endif
enum { RUN_MILLISECONDS = 30, MOST_EXTERNALS = 4096, MOST_RERUNS = 40, N_ERRORS = 32 };

static sigjmp_buf stopped;

int __asan_report_present(void);
void __asan_poison_memory_region(void const volatile *address, size_t size);
void __asan_unpoison_memory_region(void const volatile *address, size_t size);

/* What lies between the slots of the arena and behind them, and behind the weights, belongs to nobody. */
static void forbid_gaps(const Vm *vm, const uint8_t *arena, int32_t arena_bytes, int32_t bytes) {
  const int32_t *plan = vm->plan, data_end = plan[HEADER_DATA_OFFSET] + plan[HEADER_DATA_BYTES];
  const size_t asked = (size_t)vm->slot[plan[HEADER_SLOTS]];
  __asan_unpoison_memory_region(arena, (size_t)arena_bytes);
  __asan_poison_memory_region(arena + asked, (size_t)arena_bytes - asked);
  __asan_poison_memory_region((const char *)plan + data_end, (size_t)(bytes - data_end));
  for (int slot = 0; slot < plan[HEADER_SLOTS]; slot++) {
    int64_t used = 0;
    for (int i = 0; i < plan[HEADER_BUFFERS]; i++) {
      const Buffer *b = vm->buffer + i;
      if (b->kind == BUFFER_ARENA && b->place == slot && b->bytes > used) used = b->bytes;
    }
    __asan_poison_memory_region(arena + vm->slot[slot] + used, (size_t)(vm->slot[slot + 1] - vm->slot[slot] - used));
  }
}

static void stop(int signal) {
  (void)signal;
  if (!__asan_report_present()) siglongjmp(stopped, 1);
}

static void set_timer(int milliseconds) {
  struct itimerval timer = {{0, 0}, {0, milliseconds * 1000}};
  setitimer(ITIMER_REAL, &timer, NULL);
}

/* bytes of numbers that plans can take for indices, flags and floats, and of all others */
static void fill(uint8_t *data, size_t bytes, uint32_t *seed) {
  const int kind = (int)(*seed % 4);
  for (size_t i = 0; i < bytes; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    const uint8_t noise = (uint8_t)(*seed >> 24);
    data[i] = kind == 0 ? 0 : kind == 1 ? (uint8_t)(i % 8 == 0) : kind == 2 ? (uint8_t)(i % 8 == 0 ? noise % 5 : 0) : noise;
  }
}

/* The arena and the externals as large as a plan asks for by now; NULL if that is too much, and nothing has changed then. What
 * was in them is there again, and the host has filled the rest. */
static uint8_t *grown(const uint8_t *tables, uint8_t *arena, int32_t arena_bytes, uint8_t **externals, int32_t *external_bytes,
                      int32_t n_externals) {
  size_t total = (size_t)wr_plan_arena_bytes(tables);
  for (int i = 0; i < n_externals; i++) total += (size_t)wr_plan_external_bytes(tables, i);
  if (total > MOST_BYTES) return NULL;
  __asan_unpoison_memory_region(arena, (size_t)arena_bytes);
  free(arena);
  for (int i = 0; i < n_externals; i++) {
    const int32_t size = wr_plan_external_bytes(tables, i);
    if (size > external_bytes[i]) free(externals[i]), externals[i] = calloc(1, (size_t)size), external_bytes[i] = size;
  }
  return calloc(1, (size_t)wr_plan_arena_bytes(tables));
}

/* A team of whoever runs the plan: all instructions are done in parts, one after the other. */
static Team alone;
static void hire_nobody(uint8_t *tables) {
  memset(&alone, 0, sizeof alone);
  wr_team_make((uint8_t *)&alone);
  wr_plan_hire(tables, (uint8_t *)&alone, 3, 0);
}

static size_t missing_bytes; /* that externals are too short, to see that the sanitizer sees it */
static long refused[N_ERRORS], failed[N_ERRORS], too_large, cut_off, ran;

/* Runs a plan; if it asks for more memory than there is, again with that, and if it gets none, it is bound anew. */
static int run_as_hosts_do(const int32_t *plan, int32_t bytes, const int32_t *numbers, uint8_t *tables,
                           uint8_t *volatile *arena, volatile int32_t *arena_bytes, uint8_t **externals,
                           int32_t *external_bytes) {
  int error = GROW;
  for (int run = 0; error == GROW && run < MOST_RERUNS; run++) {
    if (run) {
      uint8_t *larger = grown(tables, *arena, *arena_bytes, externals, external_bytes, plan[HEADER_EXTERNALS]);
      if (!larger) break;
      *arena = larger, *arena_bytes = wr_plan_arena_bytes(tables);
    }
    forbid_gaps((const Vm *)tables, *arena, *arena_bytes, bytes);
    set_timer(RUN_MILLISECONDS);
    error = wr_plan_run(tables, *arena, (const uint8_t *)externals);
    set_timer(0);
  }
  if (error == GROW) {
    memset(tables, 0, (size_t)wr_plan_table_bytes(plan));
    if (wr_plan_bind(plan, numbers, tables)) abort();
  }
  return error;
}

static void run_plan(const int32_t *plan, int32_t bytes, const int32_t *symbols, int32_t n_symbols, uint32_t seed) {
  int error = wr_plan_check(plan, bytes);
  if (error) {
    refused[error]++;
    return;
  }
  int32_t *numbers = malloc((size_t)plan[HEADER_SYMBOLS] * 4);
  for (int i = 0; i < plan[HEADER_SYMBOLS]; i++) numbers[i] = i < n_symbols ? symbols[i] : 3;
  const int32_t table_bytes = wr_plan_table_bytes(plan);
  uint8_t *tables = malloc((size_t)table_bytes);
  error = wr_plan_bind(plan, numbers, tables);
  if (error) {
    refused[error]++;
    free(numbers), free(tables);
    return;
  }
  const int32_t n_externals = plan[HEADER_EXTERNALS];
  size_t total = n_externals > MOST_EXTERNALS ? (size_t)MOST_BYTES + 1 : (size_t)wr_plan_arena_bytes(tables);
  for (int i = 0; i < n_externals && total <= MOST_BYTES; i++) total += (size_t)wr_plan_external_bytes(tables, i);
  if (total > MOST_BYTES) {
    too_large++;
    free(numbers), free(tables);
    return;
  }
  if (seed % 3 == 0) hire_nobody(tables);
  volatile int32_t arena_bytes = wr_plan_arena_bytes(tables);
  int32_t *external_bytes = malloc((size_t)n_externals * sizeof *external_bytes);
  uint8_t *volatile arena = malloc((size_t)arena_bytes), **externals = malloc((size_t)n_externals * sizeof *externals);
  fill(arena, (size_t)wr_plan_arena_bytes(tables), &seed);
  for (int i = 0; i < n_externals; i++) {
    const size_t size = (size_t)wr_plan_external_bytes(tables, i);
    external_bytes[i] = (int32_t)size;
    externals[i] = malloc(size > missing_bytes ? size - missing_bytes : 0);
    fill(externals[i], size > missing_bytes ? size - missing_bytes : 0, &seed);
  }
  uint8_t *copy = malloc((size_t)bytes);
  memcpy(copy, plan, (size_t)bytes);
  if (sigsetjmp(stopped, 1)) {
    cut_off++;
  } else {
    for (int again = 0; again < 2; again++) /* also after a run that has failed: the next one must not suffer from it */
      error = run_as_hosts_do(plan, bytes, numbers, tables, &arena, &arena_bytes, externals, external_bytes);
    if (error) failed[error]++;
    else ran++;
  }
  __asan_unpoison_memory_region(plan, (size_t)bytes);
  __asan_unpoison_memory_region(arena, (size_t)arena_bytes);
  if (memcmp(copy, plan, (size_t)bytes)) {
    fprintf(stderr, "the plan was overwritten\n");
    abort();
  }
  for (int i = 0; i < n_externals; i++) free(externals[i]);
  free(externals), free(external_bytes), free(arena), free(tables), free(numbers), free(copy);
}
