#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kind/line_avx512.c" /* the source itself, to be inlined */

#include "inlined.h"
#if ON_X86
INLINED(inlined_avx512, TARGET, line_has, line_add)
#endif
