#define XXH_INLINE_ALL
#include <xxhash.h>

#include "kind/line.c" /* the source itself, to be inlined */

#include "inlined.h"

INLINED(inlined_scalar, , line_has, line_add)
