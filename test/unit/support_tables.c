#include "support_tables.h"

#include <math.h>

double rate_of(int i) {
    return ldexp(0.35, -i);
}

uint64_t mixed(uint64_t i) {
    i = (i ^ i >> 31) * UINT64_C(0x9E3779B97F4A7C15);
    i = (i ^ i >> 29) * UINT64_C(0xBF58476D1CE4E5B9);
    return i ^ i >> 32;
}

calyx_status add_hash(calyx_filter *f, uint64_t hash) {
    return calyx_add_hashes(f, &hash, 1, NULL, NULL);
}

bool has_hash(const calyx_filter *f, uint64_t hash) {
    return calyx_has_hashes(f, &hash, 1, NULL) == 1;
}

uint64_t border(const struct bucket_table *t, uint64_t c, uint64_t p) {
    return lowest_scaled64(c, groups_now(t, t->stage) * p);
}

uint64_t add_until_stage(calyx_filter *f, uint32_t number, uint64_t i) {
    while (stage_number(f->table->t.stage) < number)
        assert_ok(add_hash(f, mixed(++i)));
    return i;
}

void grow_one_stage(calyx_filter *f) {
    struct bucket_table *const t = &f->table->t;
    const struct part like = {
        .shape = {.blocks = segment_blocks(t, f->table->segments),
                  .probes = f->newest->shape.probes},
        .capacity = 1,
    };
    assert_ok(allocate_part(f, &like));
    for (uint64_t left = groups_now(t, t->stage); left > 0; left--)
        bucket_move_group(t);
}
