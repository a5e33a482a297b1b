/* Runs damaged plans from standard input. A record is: bytes of the plan, seed, number of symbols (int32 each), the symbols, the
 * plan. Before each plan its number is written to standard error; at the end the outcomes are to standard output, as
 * "name count" lines. */
#include "fuzz_run.h"

int main(int argc, char **argv) {
  signal(SIGALRM, stop);
  if (argc > 1) missing_bytes = (size_t)atoi(argv[1]);
  int32_t head[3];
  for (long index = 0; fread(head, sizeof head, 1, stdin) == 1; index++) {
    int32_t *symbols = malloc((size_t)head[2] * 4), *plan = malloc((size_t)head[0]);
    if (fread(symbols, 4, (size_t)head[2], stdin) != (size_t)head[2] ||
        fread(plan, 1, (size_t)head[0], stdin) != (size_t)head[0])
      return 2;
    fprintf(stderr, "plan %ld\n", index);
    run_plan(plan, head[0], symbols, head[2], (uint32_t)head[1]);
    free(symbols), free(plan);
  }
  printf("ran %ld\ncut_off %ld\ntoo_large %ld\n", ran, cut_off, too_large);
  for (int i = 0; i < N_ERRORS; i++)
    if (refused[i]) printf("refused_%d %ld\n", i, refused[i]);
  for (int i = 0; i < N_ERRORS; i++)
    if (failed[i]) printf("failed_%d %ld\n", i, failed[i]);
  return 0;
}
