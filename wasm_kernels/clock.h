/* A clock for limits of time: ticks of 1/64 ms, of which the lowest 30 bits are given, so that a host in JavaScript need not make an
 * object for the number. The host of a standalone wasm module gives it as env.now, a side module has that of Emscripten. */
#ifndef WEBRNN_CLOCK_H
#define WEBRNN_CLOCK_H
#include <stdint.h>

enum { TICKS_PER_MS = 64, TICK_MASK = (1 << 30) - 1 };

#if defined(__wasm__) && !defined(WEBRNN_SIDE_MODULE)
__attribute__((import_module("env"), import_name("now"))) int32_t clock_ticks(void);
#else
#if defined(WEBRNN_SIDE_MODULE)
__attribute__((import_module("env"), import_name("emscripten_get_now"))) double milliseconds(void);
#elif defined(_WIN32)
__declspec(dllimport) int QueryPerformanceCounter(int64_t *count);
__declspec(dllimport) int QueryPerformanceFrequency(int64_t *per_second);
static inline double milliseconds(void) {
  int64_t count, per_second;
  QueryPerformanceCounter(&count);
  QueryPerformanceFrequency(&per_second);
  return (double)count * 1e3 / (double)per_second;
}
#else
#include <time.h>
static inline double milliseconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec * 1e-6;
}
#endif
static inline int32_t clock_ticks(void) { return (int32_t)((int64_t)(milliseconds() * TICKS_PER_MS) & TICK_MASK); }
#endif
#endif
