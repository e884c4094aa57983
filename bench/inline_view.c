/* The single calls of <calyx/inline.h>. This file is compiled for AVX2, so that
 * there is something to inline; whoever calls it has made sure of the machine.
 */
#include <calyx/inline.h>

#include "bench.h"

size_t quick_has(calyx_filter *f, struct segment *s) {
    size_t found = 0;
    calyx_inline_view quick;
    calyx_inline_view_of(f, &quick);
    for (size_t i = 0; i < s->n; i++)
        found += s->answers[i] = calyx_inline_has_u64(&quick, s->numbers[i]);
    return found;
}

void quick_add(calyx_filter *f, const struct segment *s) {
    calyx_inline_view quick;
    calyx_inline_view_of(f, &quick);
    for (size_t i = 0; i < s->n; i++)
        calyx_inline_add_u64(&quick, s->numbers[i], NULL);
}
