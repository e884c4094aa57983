#include "exact/marks.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum { BITS = 64 };

struct line_marks {
    uint64_t lines;
    uint64_t next; /* the first line that was not considered yet */
    uint64_t read; /* lines before the current block */
    bool marked;   /* print the marked lines, not the others */
    _Atomic uint64_t count;
    _Atomic uint64_t bits[];
};

static uint64_t words_for(uint64_t lines) {
    return lines / BITS + 1;
}

uint64_t marks_bytes(uint64_t lines) {
    return words_for(lines) * sizeof(uint64_t);
}

struct line_marks *marks_new(uint64_t lines) {
    const size_t size = sizeof(struct line_marks) + marks_bytes(lines);
    struct line_marks *const m = alloc_memory(size);
    memset(m, 0, size);
    m->lines = lines;
    return m;
}

void marks_free(struct line_marks *m) {
    free(m);
}

uint64_t marks_lines(const struct line_marks *m) {
    return m->lines;
}

void marks_set(struct line_marks *m, uint64_t line) {
    const uint64_t bit = UINT64_C(1) << line % BITS;
    atomic_fetch_or_explicit(&m->bits[line / BITS], bit, memory_order_relaxed);
    atomic_fetch_add_explicit(&m->count, 1, memory_order_relaxed);
}

uint64_t marks_count(const struct line_marks *m) {
    return m->count;
}

static bool is_marked(const struct line_marks *m, uint64_t line) {
    return atomic_load_explicit(&m->bits[line / BITS], memory_order_relaxed) >>
               line % BITS &
           1;
}

/* ---- Printing ------------------------------------------------------------ */

static void print_from(struct line_marks *m, struct text_block *block,
                       size_t first) {
    if (block->lines - first > m->lines - m->next)
        fail_at(block->file, 0, "changed while it was read");
    size_t from = first ? block->ends[first - 1] + 1 : 0;
    for (size_t i = first; i < block->lines; i++) {
        const size_t to = block->ends[i] + 1;
        if (is_marked(m, m->next++) == m->marked)
            block_output_lines(block, block->text + from, to - from);
        from = to;
    }
}

void marks_print_block(struct line_marks *m, struct text_block *block) {
    print_from(m, block, 0);
}

static void cut(struct text_block *block, struct key_batch *batch) {
    batch_start(batch, block);
    while (batch_next(batch, block)) note_ends(block, batch);
}

static bool print(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    struct line_marks *const m = block->context;
    const uint64_t first = m->read;
    m->read += block->lines;
    if (m->read > m->next) print_from(m, block, (size_t)(m->next - first));
    return true;
}

bool marks_print(struct line_marks *m, int count, char **files,
                 struct output *output) {
    if (m->next == m->lines) return false;
    m->read = 0;
    const struct stages stages = {
        .in_parallel = cut, .in_order = print, .output = output, .context = m};
    run_pipeline(&stages, count, files);
    return true;
}

bool marks_print_marked(struct line_marks *m, int count, char **files,
                        struct output *output) {
    m->marked = true;
    m->next = 0;
    return marks_print(m, count, files, output);
}
