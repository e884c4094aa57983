#include "exact/marks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/key_hash.h"
#include "input/source.h"

static uint64_t words_for(uint64_t lines) {
    return lines / MARKS_IN_WORD + 1;
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

static uint64_t bit_of(uint64_t line) {
    return UINT64_C(1) << line % MARKS_IN_WORD;
}

void marks_set(struct line_marks *m, uint64_t line) {
    atomic_fetch_or_explicit(&m->bits[line / MARKS_IN_WORD], bit_of(line),
                             memory_order_relaxed);
}

void marks_clear(struct line_marks *m, uint64_t line) {
    atomic_fetch_and_explicit(&m->bits[line / MARKS_IN_WORD], ~bit_of(line),
                              memory_order_relaxed);
}

void marks_join(struct line_marks *m, const struct line_marks *more) {
    for (uint64_t i = 0; i < words_for(m->lines); i++) {
        const uint64_t bits =
            atomic_load_explicit(&m->bits[i], memory_order_relaxed) |
            atomic_load_explicit(&more->bits[i], memory_order_relaxed);
        atomic_store_explicit(&m->bits[i], bits, memory_order_relaxed);
    }
}

uint64_t marks_count(const struct line_marks *m, uint64_t first) {
    uint64_t count = 0;
    for (uint64_t word = first / MARKS_IN_WORD; word < words_for(m->lines);
         word++) {
        const uint64_t bits = m->bits[word];
        const uint64_t from =
            word == first / MARKS_IN_WORD ? ~(bit_of(first) - 1) : ~UINT64_C(0);
        count += (uint64_t)__builtin_popcountll(bits & from);
    }
    return count;
}

/* ---- Printing ------------------------------------------------------------ */

static void print_from(struct line_marks *m, struct text_block *block,
                       size_t first) {
    if (block->lines - first > m->lines - m->next)
        fail_at(block->file, 0, "changed while it was read");
    size_t from = first ? block->ends[first - 1] + 1 : 0;
    for (size_t i = first; i < block->lines; i++) {
        const size_t to = block->ends[i] + 1;
        if (marks_has(m, m->next++) == m->marked)
            block_output_lines(block, block->text + from, to - from);
        from = to;
    }
}

void marks_print_block(struct line_marks *m, struct text_block *block) {
    print_from(m, block, 0);
}

static bool has_its_sum(const struct line_marks *m,
                        const struct text_block *block) {
    return block->number < m->sum_count &&
           (!file_was_touched(block->file) ||
            calyx_hash(m->hasher, block->text, block->size) ==
                m->sums[block->number]);
}

static void cut(struct text_block *block, struct key_batch *batch) {
    if (!has_its_sum(block->context, block)) {
        snprintf(block->trouble, sizeof block->trouble,
                 "changed while it was read");
        return;
    }
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

void marks_start(struct line_marks *m, uint64_t first, bool marked) {
    m->first = m->next = first;
    m->marked = marked;
}

uint64_t marks_print(struct line_marks *m, int count, char **files,
                     struct output *output) {
    if (m->next == m->lines) return 0;
    m->read = m->first;
    const struct stages stages = {
        .in_parallel = cut, .in_order = print, .output = output, .context = m};
    m->hasher = key_hasher(0);
    const uint64_t bytes = run_pipeline(&stages, count, files).bytes;
    calyx_free(m->hasher);
    return bytes;
}
