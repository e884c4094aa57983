/*
 * What a lookup tests, for people. It must not be fast: the bits of a Bloom
 * filter are found by asking the kind. In copies of the lines that a lookup
 * reads, with all bits set, one bit is cleared at a time: if the answer becomes
 * no, the lookup tests that bit. So any kind is explained, and the explanation
 * cannot differ from what lookups do.
 */
#include <string.h>

#include "engine/table_engine.h"
#include "ribbon/ribbon.h"
#include "table/fixed.h"

enum { LINE = 64, LINES_MOST = 64 };

/* The first `most` of n tests. */
struct test_list {
    calyx_test *tests;
    size_t n, most;
};

static void list_test(struct test_list *list, calyx_test test) {
    if (list->n < list->most) list->tests[list->n] = test;
    list->n++;
}

struct line_copies {
    _Alignas(64) uint8_t bytes[LINES_MOST * LINE];
};

static void explain_part(const calyx_filter *f, const struct part *p,
                         uint32_t number, uint64_t hash,
                         struct test_list *list) {
    struct line_copies copies;
    uint64_t at[LINES_MOST];
    const size_t lines = kind_offsets(f->kind, &p->shape, hash, at);
    memset(copies.bytes, 0xFF, lines * LINE);
    for (size_t i = 0; i < 8 * LINE * lines; i++) {
        uint8_t *const byte = copies.bytes + i / 8;
        *byte ^= (uint8_t)(1 << i % 8);
        const bool is_tested =
            !kind_has_in_copies(f->kind, &p->shape, hash, copies.bytes);
        *byte = 0xFF;
        if (!is_tested) continue;
        const uint64_t line = at[i / (8 * LINE)] / LINE;
        const uint64_t bit = 8 * LINE * line + i % (8 * LINE);
        list_test(list,
                  (calyx_test){.type = CALYX_TEST_BIT,
                               .part = number,
                               .block = bit / f->kind->block_bits,
                               .blocks = p->shape.blocks,
                               .at = bit,
                               .passes = p->body[bit / 8] >> bit % 8 & 1});
    }
}

static void explain_bits(const calyx_filter *f, uint64_t hash,
                         struct test_list *list) {
    uint32_t number = 0;
    for (const struct part *p = newest_of(f)->older; p; p = p->older) number++;
    for (const struct part *p = newest_of(f); p; p = p->older)
        explain_part(f, p, number--, hash, list);
}

#if CALYX_NO_RIBBON
static void explain_layers(const calyx_filter *f, uint64_t hash,
                           struct test_list *list) {
    (void)f, (void)hash, (void)list; /* no filter has layers */
}
#else
/* Returns whether the layer has the hash. */
static enum layer_answer explain_layer(const struct part *p, uint32_t number,
                                       uint64_t hash, struct test_list *list) {
    const struct layer_equations equations =
        ribbon_equations(p->body, &p->shape, hash);
    bool holds = true;
    list_test(list, (calyx_test){.type = CALYX_TEST_BUMPED,
                                 .part = number,
                                 .block = equations.group,
                                 .blocks = p->shape.blocks,
                                 .passes = equations.is_bumped});
    if (equations.is_bumped) return LAYER_BUMPED;
    for (uint32_t i = 0; i < equations.count; i++) {
        const bool differ = (equations.sums ^ equations.wanted) >> i & 1;
        list_test(list, (calyx_test){.type = CALYX_TEST_SUM,
                                     .part = number,
                                     .block = equations.group,
                                     .blocks = p->shape.blocks,
                                     .at = equations.first_row,
                                     .value = equations.rows,
                                     .number = i,
                                     .wanted = equations.wanted >> i & 1,
                                     .passes = !differ});
        holds &= !differ;
    }
    return holds ? LAYER_YES : LAYER_NO;
}

/* Of an exact filter, a key that passes the first layers of a set goes on with
 * the value layers (exact_engine.c). */
static void explain_layers(const calyx_filter *f, uint64_t key,
                           struct test_list *list) {
    uint64_t hash = key;
    enum layer_answer answer = LAYER_BUMPED;
    uint32_t number = 0, values = 0;
    for (const struct part *p = f->first_layer; p; p = p->next_layer) {
        if (p->shape.values > values) {
            const bool passes = number == 0 || answer == LAYER_YES;
            hash = ribbon_next_value_hash(key);
            answer = passes ? LAYER_BUMPED : LAYER_NO;
        } else if (p->shape.values < values) {
            hash = key;
            answer = LAYER_BUMPED;
        }
        values = p->shape.values;
        if (answer == LAYER_BUMPED) {
            answer = explain_layer(p, number, hash, list);
            hash =
                values ? ribbon_next_value_hash(hash) : ribbon_next_hash(hash);
        }
        number++;
    }
}
#endif

#if CALYX_NO_BUCKET
static void explain_fixed(const calyx_filter *f, uint64_t hash,
                          struct test_list *list) {
    (void)f, (void)hash, (void)list; /* no filter has a table */
}
#else
static void explain_fixed(const calyx_filter *f, uint64_t hash,
                          struct test_list *list) {
    const struct part *const p = newest_of(f);
    const struct fixed_table t = fixed_table_of(p->body, &p->shape);
    const struct fixed_place at = fixed_place_of(&t, hash);
    const struct fixed_answer answer = fixed_answer_of(&t, &at);
    calyx_test test = {
        .type = CALYX_TEST_CODE,
        .block = at.line,
        .blocks = t.blocks,
        .at = answer.slot,
        .value = answer.code,
        .number = 5 + t.form.bits, /* of a run below 20 and a remainder */
        .passes = answer.is_in_line,
    };
    list_test(list, test);
    if (test.passes || !answer.may_be_spilled) return;
    test.type = CALYX_TEST_SPILLED;
    test.passes = answer.is_spilled;
    list_test(list, test);
}
#endif

#if CALYX_NO_BUCKET
static void explain_table(const calyx_filter *f, uint64_t hash,
                          struct test_list *list) {
    (void)f, (void)hash, (void)list; /* no filter has a table */
}
#else
static void explain_table(const calyx_filter *f, uint64_t hash,
                          struct test_list *list) {
    const struct table_answer answer = table_answer_of(&f->table->t, hash);
    calyx_test test = {
        .type = CALYX_TEST_CODE,
        .part = answer.segment,
        .block = answer.bucket,
        .blocks = answer.buckets,
        .at = answer.slots ? (uint64_t)__builtin_ctzll(answer.slots) : 0,
        .value = answer.code,
        .number = answer.bits,
        .passes = answer.slots != 0,
    };
    list_test(list, test);
    if (test.passes || !answer.may_be_spilled) return;
    test.type = CALYX_TEST_SPILLED;
    test.passes = answer.is_spilled;
    list_test(list, test);
}
#endif

/* Not in struct engine: so programs that do not call it, such as the page, do
 * not carry it along. */
size_t calyx_explain(const calyx_filter *f, const void *key, size_t size,
                     calyx_test *tests, size_t most) {
    struct test_list list = {.tests = tests, .most = most};
    const uint64_t hash = calyx_hash(f, key, size);
    f->calls->has(f, hash); /* compares checksums, if need be */
    lock_whole(f);
    if (is_static(f))
        explain_layers(f, hash, &list);
    else if (f->kind->segments)
        explain_table(f, hash, &list);
    else if (f->kind->is_table)
        explain_fixed(f, hash, &list);
    else
        explain_bits(f, hash, &list);
    unlock_whole(f);
    return list.n;
}
