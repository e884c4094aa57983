#include "exact/approx.h"

#include <string.h>

static double rate;

void parse_approx(const struct verb_option *o, const char *value) {
    struct verb_option with_place = *o;
    with_place.into = &rate;
    parse_rate(&with_place, value ? value : "1%");
}

double approx_rate(void) {
    return rate;
}

/* One at a time. */
static calyx_filter *filter;
static const calyx_filter *asked;
static bool wants_known, adds_new;
static uint64_t most_memory, printed;

calyx_filter *approx_filter(void) {
    const calyx_options want = {.kind = rate < 1e-3 ? "line2" : "line",
                                .capacity = 100000,
                                .fpr = rate,
                                .growth = 2};
    calyx_error why;
    calyx_filter *f;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

static void add(const uint64_t *hashes, size_t n, bool *fresh) {
    const calyx_status status =
        calyx_add_hashes(filter, hashes, n, fresh, NULL);
    if (status != CALYX_OK)
        fail("the filter cannot grow: %s", calyx_status_text(status));
}

static void expect_memory(void) {
    calyx_info info;
    calyx_outline(filter, &info);
    if (info.bytes > most_memory)
        fail("the filter would take more than --memory allows, %llu bytes; "
             "allow a higher rate, or more memory",
             (unsigned long long)most_memory);
}

/* ---- Lines into a filter --------------------------------------------------
 */

static void hash_all(struct text_block *block, struct key_batch *batch) {
    hash_block(block, batch, filter, true);
}

static bool put_in(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    bool found[BATCH];
    for (size_t at = 0; at < block->lines; at += BATCH) {
        uint64_t *const hashes = block->hashes + at;
        const size_t left = block->lines - at;
        size_t n = left < BATCH ? left : BATCH;
        if (asked) {
            calyx_has_hashes(asked, hashes, n, found);
            size_t kept = 0;
            for (size_t i = 0; i < n; i++) {
                hashes[kept] = hashes[i];
                kept += found[i];
            }
            n = kept;
        }
        add(hashes, n, NULL);
    }
    expect_memory();
    return true;
}

void approx_add(calyx_filter *f, int count, char **files,
                const calyx_filter *before, uint64_t memory) {
    filter = f;
    asked = before;
    most_memory = memory;
    const struct stages stages = {.in_parallel = hash_all, .in_order = put_in};
    run_pipeline(&stages, count, files);
}

/* ---- Lines out ------------------------------------------------------------
 */

static bool pass(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    const char end = record_end();
    bool known[BATCH];
    size_t from = 0;
    for (size_t at = 0; at < block->lines; at += BATCH) {
        const uint64_t *const hashes = block->hashes + at;
        const size_t left = block->lines - at;
        const size_t n = left < BATCH ? left : BATCH;
        if (adds_new) {
            add(hashes, n, known);
            for (size_t i = 0; i < n; i++) known[i] = !known[i];
        } else {
            calyx_has_hashes(filter, hashes, n, known);
        }
        for (size_t i = 0; i < n; i++) {
            const size_t to = block->ends[at + i];
            if (known[i] == wants_known) {
                block_output(block, block->text + from, to - from);
                block_output(block, &end, 1);
                printed++;
            }
            from = to + 1;
        }
    }
    expect_memory();
    return true;
}

uint64_t approx_print(calyx_filter *f, int count, char **files, bool wanted,
                      bool adds, uint64_t memory, struct output *output,
                      struct input_totals *totals) {
    filter = f;
    wants_known = wanted;
    adds_new = adds;
    most_memory = memory;
    const struct stages stages = {
        .in_parallel = hash_all, .in_order = pass, .output = output};
    *totals = run_pipeline(&stages, count, files);
    return printed;
}
