/* harness LIBRARY BUILD: runs the plans on standard input with one build of a native library, and prints a line with a digest of what
 * each one wrote. Compiled for the system of the library; the records are those of tests/plan/fuzz_driver.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef _WIN32
#include <fcntl.h>
#include <io.h>
#include <windows.h>
static void *opened(const char *file) { return (void *)LoadLibraryA(file); }
static void *found(void *library, const char *name) { return (void *)GetProcAddress((HMODULE)library, name); }
#else
#include <dlfcn.h>
static void *opened(const char *file) { return dlopen(file, RTLD_NOW | RTLD_LOCAL); }
static void *found(void *library, const char *name) { return dlsym(library, name); }
#endif

static void *function(void *library, const char *name, const char *build) {
  char symbol[100];
  snprintf(symbol, sizeof symbol, "wr_%s_%s", name, build);
  void *address = found(library, symbol);
  if (!address) {
    fprintf(stderr, "the library has no %s\n", symbol);
    exit(2);
  }
  return address;
}

static void fill(uint8_t *data, size_t bytes, uint32_t *seed) {
  for (size_t i = 0; i < bytes; i++) {
    *seed = *seed * 1664525u + 1013904223u;
    data[i] = i % 4 == 3 ? 0x3e : (uint8_t)(*seed >> 24); /* floats from 0.1 to 0.5, integers that are no index */
  }
}

static uint64_t digest(uint64_t hash, const uint8_t *data, size_t bytes) {
  for (size_t i = 0; i < bytes; i++) hash = (hash ^ data[i]) * 1099511628211u;
  return hash;
}

int main(int count, char **arguments) {
  void *library = count == 3 ? opened(arguments[1]) : NULL;
  if (!library) {
    fprintf(stderr, "usage: harness LIBRARY BUILD, and the library must load\n");
    return 2;
  }
#ifdef _WIN32
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
#endif
  const char *build = arguments[2];
  int32_t (*check)(const int32_t *, int32_t) = function(library, "plan_check", build);
  int32_t (*table_bytes)(const int32_t *) = function(library, "plan_table_bytes", build);
  int32_t (*bind)(const int32_t *, const int32_t *, uint8_t *) = function(library, "plan_bind", build);
  int32_t (*arena_bytes)(uint8_t *) = function(library, "plan_arena_bytes", build);
  int32_t (*external_bytes)(uint8_t *, int32_t) = function(library, "plan_external_bytes", build);
  int32_t (*run)(uint8_t *, uint8_t *, const uint8_t *) = function(library, "plan_run", build);
  int32_t head[3];
  while (fread(head, sizeof head, 1, stdin) == 1) {
    int32_t *symbols = malloc((size_t)head[2] * 4 + 4), *plan = malloc((size_t)head[0]);
    if (fread(symbols, 4, (size_t)head[2], stdin) != (size_t)head[2] ||
        fread(plan, 1, (size_t)head[0], stdin) != (size_t)head[0])
      return 3;
    uint32_t seed = (uint32_t)head[1];
    uint64_t hash = 14695981039346656037u;
    int32_t error = check(plan, head[0]);
    if (!error) {
      const int32_t externals = plan[HEADER_EXTERNALS];
      uint8_t *tables = calloc(1, (size_t)table_bytes(plan));
      error = bind(plan, symbols, tables);
      if (!error) {
        uint8_t *arena = calloc(1, (size_t)arena_bytes(tables) + 64), **given = calloc((size_t)externals + 1, sizeof *given);
        for (int32_t i = 0; i < externals; i++) {
          const size_t size = (size_t)external_bytes(tables, i);
          fill(given[i] = malloc(size + 1), size, &seed);
        }
        error = run(tables, arena + (64 - (uintptr_t)arena % 64) % 64, (const uint8_t *)given);
        for (int32_t i = 0; i < externals; i++) {
          if (!error) hash = digest(hash, given[i], (size_t)external_bytes(tables, i));
          free(given[i]);
        }
        free(given), free(arena);
      }
      free(tables);
    }
    printf("%d %016llx\n", (int)error, (unsigned long long)hash);
    free(symbols), free(plan);
  }
  return 0;
}
