/* One translation unit for each instruction set: everything but the rows of the kernel table is static. */
#include "elementwise.c"
#include "matrix.c"
#include "cells.c"
#include "reduce.c"
#include "normalize.c"
#include "window.c"
#include "copy.c"
#include "fft.c"
#include "plan.c"
#include "expression.c"
#include "instructions.c"
#include "late.c"
#include "indexing.c"
#include "numbers.c"
#include "integers.c"
#include "images.c"
#include "vm.c"
#include "limits.c"

#ifdef WEBRNN_PROFILE
#include "profile.c"
#endif

#ifdef WEBRNN_BENCH
#include "repeat.gen.c"
#endif
