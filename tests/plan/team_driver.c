/* Runs plans from standard input, each by one thread and then again and again by a team of three that does every instruction in parts:
 * the results are the same bits, and ThreadSanitizer sees no two threads in one place. Records are those of fuzz_driver.c. The argument is
 * the work that a part has at least: if that is much, only blocks that are beside each other are shared. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "all.c"
#include "team.c"

enum { THREADS = 3, RUNS = 3 };

static Team team;
static void *help(void *who) {
  while (!__atomic_load_n(&team.is_over, __ATOMIC_RELAXED)) wr_team_serve((uint8_t *)&team, *(const int32_t *)who);
  return NULL;
}

static void fill(uint8_t *data, size_t bytes, uint32_t *seed) {
  for (size_t i = 0; i < bytes; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    data[i] = i % 4 == 3 ? 0x3e : (uint8_t)(*seed >> 24); /* floats from 0.1 to 0.5, integers that are no index */
  }
}

/* The externals after a run of a new binding; NULL if it fails */
static uint8_t **outcome(const int32_t *plan, const int32_t *numbers, uint32_t seed, int threads, int32_t least_work) {
  uint8_t *tables = calloc(1, (size_t)wr_plan_table_bytes(plan));
  uint8_t **externals = calloc((size_t)plan[HEADER_EXTERNALS] + 1, sizeof *externals);
  int error = wr_plan_bind(plan, numbers, tables);
  if (!error) {
    uint8_t *arena = calloc(1, (size_t)wr_plan_arena_bytes(tables));
    for (int i = 0; i < plan[HEADER_EXTERNALS]; i++) {
      const size_t size = (size_t)wr_plan_external_bytes(tables, i);
      fill(externals[i] = malloc(size), size, &seed);
    }
    if (threads > 1) {
      wr_plan_hire(tables, (uint8_t *)&team, threads, least_work);
      wr_team_call((uint8_t *)&team); /* helpers serve again without being woken up */
    }
    error = wr_plan_run(tables, arena, (const uint8_t *)externals);
    free(arena);
  }
  free(tables);
  if (!error) return externals;
  for (int i = 0; i < plan[HEADER_EXTERNALS]; i++) free(externals[i]);
  free(externals);
  return NULL;
}

int main(int count, char **arguments) {
  const int32_t least_work = count > 1 ? atoi(arguments[1]) : 0;
  pthread_t helpers[THREADS];
  int32_t numbers_of[THREADS], head[3];
  long ran = 0, failed = 0;
  wr_team_make((uint8_t *)&team);
  for (int32_t i = 1; i < THREADS; i++) {
    numbers_of[i] = i;
    if (pthread_create(helpers + i, NULL, help, numbers_of + i)) return 3;
  }
  for (long index = 0; fread(head, sizeof head, 1, stdin) == 1; index++) {
    int32_t *symbols = malloc((size_t)head[2] * 4 + 4), *plan = malloc((size_t)head[0]);
    if (fread(symbols, 4, (size_t)head[2], stdin) != (size_t)head[2] ||
        fread(plan, 1, (size_t)head[0], stdin) != (size_t)head[0])
      return 2;
    fprintf(stderr, "plan %ld\n", index);
    if (wr_plan_check(plan, head[0])) return 4;
    uint8_t **expected = outcome(plan, symbols, (uint32_t)head[1], 1, 0);
    for (int run = 0; run < RUNS; run++) {
      uint8_t **found = outcome(plan, symbols, (uint32_t)head[1], THREADS, least_work);
      if (!found != !expected) return 5;
      for (int i = 0; found && i < plan[HEADER_EXTERNALS]; i++) {
        uint8_t *tables = calloc(1, (size_t)wr_plan_table_bytes(plan));
        wr_plan_bind(plan, symbols, tables);
        const size_t size = (size_t)wr_plan_external_bytes(tables, i);
        free(tables);
        if (memcmp(found[i], expected[i], size)) {
          fprintf(stderr, "external %d is another one with threads\n", i);
          return 6;
        }
        free(found[i]);
      }
      free(found);
    }
    if (expected) {
      for (int i = 0; i < plan[HEADER_EXTERNALS]; i++) free(expected[i]);
      ran++;
    } else failed++;
    free(expected), free(symbols), free(plan);
  }
  wr_team_end((uint8_t *)&team);
  for (int i = 1; i < THREADS; i++) pthread_join(helpers[i], NULL);
  printf("ran %ld\nfailed %ld\n", ran, failed);
  return 0;
}
