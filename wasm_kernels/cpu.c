/* The native library holds one build of all kernels for each instruction set; the loader asks once which one to bind. */
#include <stddef.h>
#include <stdint.h>
#include "clock.h"

/* env.now of wasm modules under wasmtime: a host function in C, called without the interpreter. The result is the first value. */
__attribute__((visibility("default"))) void *wr_host_now(void *environment, void *caller, int64_t *values, size_t count) {
  (void)environment, (void)caller;
  if (count) values[0] = clock_ticks();
  return NULL;
}

#ifdef WEBRNN_PROFILE
#include "profile.h"

/* The same for the clock of profiling builds. */
__attribute__((visibility("default"))) void *wr_profile_host_clock(void *environment, void *caller, int64_t *values,
                                                                   size_t count) {
  (void)environment, (void)caller;
  if (count) values[0] = profile_clock();
  return NULL;
}
#endif

#ifdef _WIN32
/* What Windows calls when it loads or unloads the library: there is nothing to do. */
int DllMainCRTStartup(void *library, uint32_t reason, void *reserved) {
  (void)library, (void)reason, (void)reserved;
  return 1;
}
#endif

#if defined(__x86_64__)
#include <cpuid.h>

static uint64_t enabled_states(void) {
  uint32_t low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (uint64_t)high << 32 | low;
}

/* 0: SSE2, 1: AVX2 + FMA, 2: AVX-512 (F, BW, DQ, VL, VNNI); what both the processor and the operating system support */
__attribute__((visibility("default"))) int32_t wr_isa_level(void) {
  uint32_t a, b, c, d;
  if (!__get_cpuid(1, &a, &b, &c, &d)) return 0;
  const uint32_t osxsave = 1u << 27, avx = 1u << 28, fma = 1u << 12;
  if ((c & (osxsave | avx | fma)) != (osxsave | avx | fma) || (enabled_states() & 6) != 6) return 0;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !(b & 1u << 5)) return 0;
  const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31;
  const uint32_t vnni = 1u << 11;
  return (b & avx512) == avx512 && (c & vnni) && (enabled_states() & 0xe6) == 0xe6 ? 2 : 1;
}
#else
__attribute__((visibility("default"))) int32_t wr_isa_level(void) { return 0; }
#endif
