/* One translation unit for each instruction set: everything but the rows of the kernel table is static, and in core modules
 * (WEBRNN_CORE) these are too. */
#include "simd.h"

/* What only instructions use that the build does not have is not called. */
#if IS_FUSED || defined(WEBRNN_CORE)
#pragma clang diagnostic ignored "-Wunused-function"
#endif

#include "elementwise.c"
#include "positions.c"
#include "matrix.c"
#include "cells.c"
#include "cells_backward.c"
#include "reduce.c"
#include "normalize.c"
#include "window.c"
#include "channels_last.c"
#include "copy.c"
#include "fft.c"
#include "resample.c"

/* What is rare, or done once for each binding, is compiled for size. */
#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "plan.c"
#pragma clang attribute pop

#include "share.c"
#include "expression.c"
#include "instructions.c"
#include "recurrent.c"
#include "gradients.c"
#include "dynamic.c"
#include "convolutions.c"
#include "integers.c"
#include "quantize.c"
#include "small.c"
#include "memory.c"

#pragma clang attribute push(__attribute__((minsize)), apply_to = function)
#include "late.c"
#include "indexing.c"
#include "numbers.c"
#include "images.c"
#include "beside.c"
#pragma clang attribute pop

#include "vm.c"
#include "limits.c"

#ifdef WEBRNN_PROFILE
#include "profile.c"
#endif

#ifdef WEBRNN_BENCH
#include "repeat.gen.c"
#endif
