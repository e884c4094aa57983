/* What leads from a key to its line, for callers who go there by themselves. */
#include <string.h>

#include "filter/filter.h"
#include "hash/xxh3.h"
#include "kind/line.h"

/* Nothing that could change under the caller's hands, or wants to be looked at
 * for every key. */
static bool can_be_quick(const calyx_filter *f) {
    return f->kind == &kind_line && f->hash->is_xxh3 && f->growth == 0 &&
           !newest_of(f)->older && !f->strict && !f->concurrent &&
           !f->read_only && !f->image && f->kernel->level != CPU_SCALAR;
}

void calyx_take_quick(calyx_filter *f, calyx_quick *quick) {
    memset(quick, 0, sizeof *quick);
    quick->filter = f;
    if (!can_be_quick(f)) return;
    struct part *const p = newest_of(f);
    const struct line_choice choice = line_choices[p->shape.probes];
    quick->lines = p->body;
    quick->count = p->shape.blocks;
    quick->items = &p->items;
    quick->flip = xxh3_flip(f->secret.seed);
    quick->salts = line_salt;
    quick->rows = (const uint8_t *)line_rows + choice.first;
    quick->row_mask = choice.mask;
    quick->twice = choice.twice;
}
