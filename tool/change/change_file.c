#include "change/change_file.h"

#include <string.h>

static const uint8_t magic[8] = {0x89, 'C', 'L', 'D', '\r', '\n', 0x1A, '\n'};

static void put64(uint8_t *to, uint64_t x) {
    for (int i = 0; i < 8; i++) to[i] = (uint8_t)(x >> 8 * i);
}

static uint64_t get64(const uint8_t *from) {
    uint64_t x = 0;
    for (int i = 0; i < 8; i++) x |= (uint64_t)from[i] << 8 * i;
    return x;
}

/* XXH3 with seed 0 is the hash of such a filter. */
void sum_begin(struct running_sum *s) {
    const calyx_options want = {.capacity = 1, .hash = "xxh3", .seeded = true};
    calyx_error why;
    s->sum = 0;
    if (calyx_new(&want, &s->hasher, &why) != CALYX_OK) fail_with(&why);
}

void sum_add(struct running_sum *s, const void *chunk, size_t size) {
    uint8_t both[16];
    put64(both, s->sum);
    put64(both + 8, calyx_hash(s->hasher, chunk, size));
    s->sum = calyx_hash(s->hasher, both, sizeof both);
}

void sum_end(struct running_sum *s) {
    calyx_free(s->hasher);
}

static uint64_t header_sum(const uint8_t *header) {
    struct running_sum s;
    sum_begin(&s);
    sum_add(&s, header, CHANGE_HEADER - 8);
    sum_end(&s);
    return s.sum;
}

void store_change(const struct change_facts *facts, uint64_t content_sum,
                  uint8_t header[CHANGE_HEADER]) {
    const uint64_t numbers[] = {
        facts->old_size,  facts->old_sum,     facts->new_size, facts->new_sum,
        facts->gap_bytes, facts->value_bytes, content_sum};
    memcpy(header, magic, sizeof magic);
    for (size_t i = 0; i < 7; i++) put64(header + 8 + 8 * i, numbers[i]);
    put64(header + 64, header_sum(header));
}

uint64_t load_change(const char *name, const uint8_t header[CHANGE_HEADER],
                     struct change_facts *facts) {
    if (memcmp(header, magic, sizeof magic) != 0)
        fail_at(name, 0, "not a change of 'calyx diff'");
    if (get64(header + 64) != header_sum(header))
        fail_at(name, 0, "damaged: its header does not match its checksum");
    *facts = (struct change_facts){
        .old_size = get64(header + 8),
        .old_sum = get64(header + 16),
        .new_size = get64(header + 24),
        .new_sum = get64(header + 32),
        .gap_bytes = get64(header + 40),
        .value_bytes = get64(header + 48),
    };
    return get64(header + 56);
}
