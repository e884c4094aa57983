/* What leads from a key to its line, for callers who go there by themselves. */
#include <string.h>

#include "filter/filter.h"
#include "kind/line.h"

/* XXH3 of 4 to 8 bytes sets out from two words of its secret, at bytes 8 and
 * 16, and from the seed with its low half turned round in the high one. */
static uint64_t flip_of(uint64_t seed) {
    const uint64_t words =
        UINT64_C(0x1CAD21F72C81017C) ^ UINT64_C(0xDB979083E96DD4DE);
    const uint64_t turned = __builtin_bswap32((uint32_t)seed);
    return words - (seed ^ turned << 32);
}

/* Nothing that could change under the caller's hands, or wants to be looked at
 * for every key. */
static bool can_be_quick(const calyx_filter *f) {
    return strcmp(f->kind->name, "line") == 0 && f->hash->is_xxh3 &&
           f->growth == 0 && !newest_of(f)->older && !f->strict &&
           !f->concurrent && !f->read_only && !f->guard &&
           f->kernel->level != CPU_SCALAR;
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
    quick->flip = flip_of(f->secret.seed);
    quick->salts = line_salt;
    quick->rows = line_rows[choice.first];
    quick->row_count = choice.rows;
}
