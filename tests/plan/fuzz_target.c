/* The plan functions for libFuzzer: an input is a plan file, the numbers of its symbols follow from a hash of it. The mutator
 * edits words where they hurt: a table, an operand, a size; libFuzzer's own one, which knows only bytes, has its share. */
#define MOST_BYTES (1 << 22)
#include "fuzz_run.h"

size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t most);

static uint32_t hash_of(const uint8_t *data, size_t size) {
  uint32_t hash = 2166136261u;
  for (size_t i = 0; i < size; i++) hash = (hash ^ data[i]) * 16777619u;
  return hash;
}

static uint32_t next(uint32_t *seed) { return *seed = *seed * 1664525u + 1013904223u, *seed >> 8; }

int LLVMFuzzerInitialize(int *argc, char ***argv) {
  (void)argc, (void)argv;
  signal(SIGALRM, stop);
  const char *missing = getenv("FUZZ_MISSING_BYTES");
  if (missing) missing_bytes = (size_t)atoi(missing);
  return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  static const int32_t numbers[] = {0, 1, 2, 2, 3, 3, 5, 1000};
  if (size > MOST_BYTES) return 0;
  int32_t *plan = malloc(size), symbols[8];
  memcpy(plan, data, size);
  uint32_t seed = hash_of(data, size);
  for (int i = 0; i < 8; i++) symbols[i] = numbers[next(&seed) % 8];
  run_plan(plan, (int32_t)size, symbols, 8, seed);
  free(plan);
  return 0;
}

/* The first word and the number of words of a part of a plan, as its header says. */
static void part_of(const int32_t *plan, uint32_t words, uint32_t which, uint32_t *first, uint32_t *count) {
  const uint32_t counts[] = {HEADER_COUNT, SIZE_WORDS * (uint32_t)plan[HEADER_SIZES],
                             BUFFER_WORDS * (uint32_t)plan[HEADER_BUFFERS], TENSOR_WORDS * (uint32_t)plan[HEADER_TENSORS],
                             (uint32_t)plan[HEADER_CODE_WORDS]};
  *first = 0;
  for (uint32_t i = 0; i < which; i++) *first += counts[i];
  *count = counts[which];
  if (*first >= words || *count > words - *first || !*count) *first = 0, *count = words;
}

static int32_t changed(const int32_t *plan, uint32_t words, int32_t word, uint32_t *seed) {
  static const int32_t interesting[] = {0,   1,  2,  3,   4,       5,       8,       16,        63,        64,   65,
                                        128, -1, -2, -64, 1 << 16, 1 << 24, 1 << 30, INT32_MAX, INT32_MIN, 1000, 0x7F800000};
  switch (next(seed) % 6) {
  case 0: return interesting[next(seed) % (sizeof interesting / 4)];
  case 1: return (int32_t)((uint32_t)word + next(seed) % 5 - 2);
  case 2: return plan[next(seed) % words];
  case 3: return (int32_t)(next(seed) % ((uint32_t)plan[HEADER_SIZES] % 4096 + 1));
  case 4: return (int32_t)(next(seed) % ((uint32_t)plan[HEADER_TENSORS] % 4096 + 1));
  default: return (int32_t)(next(seed) % 40);
  }
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned int seed_) {
  uint32_t seed = seed_;
  const uint32_t words = (uint32_t)(size / 4);
  if (words < HEADER_COUNT || next(&seed) % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  int32_t *plan = (int32_t *)data;
  for (uint32_t edits = 1 + next(&seed) % 3; edits-- > 0;) {
    static const uint8_t parts[] = {0, 1, 1, 2, 3, 3, 3, 4, 4, 4, 4, 4};
    uint32_t first, count;
    part_of(plan, words, parts[next(&seed) % sizeof parts], &first, &count);
    const uint32_t at = first + next(&seed) % count;
    plan[at] = changed(plan, words, plan[at], &seed);
  }
  return size;
}
