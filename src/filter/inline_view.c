/* The inline view of a filter, for <calyx/inline.h>. */
#include <string.h>

#include "filter/filter.h"
#include "hash/xxh3.h"
#include "kind/line.h"

/* Inlined code makes no checks per key. So the filter must have one part, and
 * memory that only its owner changes, and no allow list; to add, also no limit.
 */
static bool can_inline_lookups(const calyx_filter *f) {
    return f->kind == &kind_line && f->hash->is_xxh3 && f->growth == 0 &&
           !newest_of(f)->older && !is_wrapped(f) && f->engine->is_direct &&
           f->kernel->level != CPU_SCALAR;
}

static bool can_inline_adds(const calyx_filter *f) {
    return can_inline_lookups(f) && !f->strict && !f->concurrent &&
           !f->read_only;
}

static uint64_t address(const void *at) {
    return (uint64_t)(uintptr_t)at;
}

static void fill_view(const calyx_filter *f, bool inlines, uint64_t *words) {
    words[CALYX_INLINE_FILTER] = address(f);
    if (!inlines) return;
    const struct part *const p = newest_of(f);
    const struct line_choice choice = line_choices[p->shape.probes];
    words[CALYX_INLINE_NUMBER] = CALYX_INLINE_LAYOUT;
    words[CALYX_INLINE_LINES] = address(p->body);
    words[CALYX_INLINE_COUNT] = p->shape.blocks;
    words[CALYX_INLINE_ITEMS] = address(&p->items);
    words[CALYX_INLINE_FLIP] = xxh3_flip(f->secret.seed);
    words[CALYX_INLINE_SALTS] = address(line_salt);
    words[CALYX_INLINE_ROWS] =
        address((const uint8_t *)line_rows + choice.first);
    words[CALYX_INLINE_ROW_MASK] = choice.mask;
    words[CALYX_INLINE_TWICE] = choice.twice;
}

void calyx_inline_view_of(calyx_filter *f, calyx_inline_view *view) {
    memset(view, 0, sizeof *view);
    fill_view(f, can_inline_adds(f), view->words);
}

void calyx_inline_reader_of(const calyx_filter *f,
                            calyx_inline_reader *reader) {
    memset(reader, 0, sizeof *reader);
    fill_view(f, can_inline_lookups(f), reader->view.words);
}
