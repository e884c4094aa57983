/* The single calls of <calyx/inline.h>. This file is compiled for AVX2, so that
 * there is something to inline; whoever calls it has made sure of the machine.
 */
#include <calyx/inline.h>

#include "bench.h"

size_t quick_has(calyx_filter *f, struct segment *s) {
    size_t found = 0;
    calyx_quick quick;
    calyx_take_quick(f, &quick);
    for (size_t i = 0; i < s->n; i++)
        found += s->answers[i] = calyx_quick_has_u64(&quick, s->numbers[i]);
    return found;
}

void quick_add(calyx_filter *f, const struct segment *s) {
    calyx_quick quick;
    calyx_take_quick(f, &quick);
    for (size_t i = 0; i < s->n; i++)
        calyx_quick_add_u64(&quick, s->numbers[i], NULL);
}
