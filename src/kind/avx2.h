/* The vectors of x86. */
#ifndef CALYX_AVX2_H
#define CALYX_AVX2_H

#include <immintrin.h>

#endif
