#include "input/part_lines.h"

#include <stdio.h>
#include <string.h>

static struct part_choice lines_part;
static calyx_filter *part_hasher;

void parse_part(const struct verb_option *o, const char *value) {
    struct part_choice *const part = o->into;
    const char *const slash = strchr(value, '/');
    char first[16];
    uint64_t number = 0, count = 0;
    if (slash && slash > value && (size_t)(slash - value) < sizeof first) {
        snprintf(first, sizeof first, "%.*s", (int)(slash - value), value);
        if (!count_from(first, &number) || !count_from(slash + 1, &count))
            number = count = 0;
    }
    if (number < 1 || number > count || count > CALYX_PARTS_MOST)
        fail("option --%s wants a part such as 3/16, from 1/N to N/N with N at "
             "most %d, not '%s'",
             o->name, CALYX_PARTS_MOST, value);
    *part = (struct part_choice){(uint32_t)number, (uint32_t)count};
}

static void parse_part_of_lines(const struct verb_option *o,
                                const char *value) {
    const calyx_options want = {.capacity = 1, .hash = "xxh3"};
    calyx_error why;
    parse_part(o, value);
    if (!part_hasher && calyx_new(&want, &part_hasher, &why) != CALYX_OK)
        fail_with(&why);
}

const struct group part_lines_group = {
    "One part of the work",
    (const struct verb_option[]){
        {0, "part", "I/N",
         "Look only at the lines whose key is in part I of N, by its hash, as "
         "if the files had no others: 1/16 to 16/16 on 16 machines give each "
         "line of the whole result once. 'cat PART... | calyx common FIRST -' "
         "puts them into the order of the first file.",
         parse_part_of_lines, &lines_part},
        {0},
    },
};

/* hash * count / 2^64, without integers of 128 bits. */
uint32_t part_of_hash(uint64_t hash, uint32_t count) {
    const uint64_t high = hash >> 32, low = (uint32_t)hash;
    return (uint32_t)((high * count + (low * count >> 32)) >> 32);
}

/* Move the lines of our part together. They keep their ends. */
static size_t keep_lines(struct text_block *block,
                         const struct key_batch *batch, size_t size,
                         const char *behind) {
    uint64_t hashes[BATCH_ROOM];
    calyx_hash_many(part_hasher, batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) {
        const calyx_key *const line = &batch->lines[i];
        const char *const from = line->data;
        const char *const to =
            i + 1 < batch->count ? batch->lines[i + 1].data : behind;
        if (part_of_hash(hashes[i], lines_part.count) + 1 !=
            lines_part.number) {
            block->ended += ends_of(line);
            continue;
        }
        memmove(block->text + size, from, (size_t)(to - from));
        size += (size_t)(to - from);
    }
    return size;
}

void select_part_lines(struct text_block *block, struct key_batch *batch) {
    size_t size = 0;
    if (!lines_part.count) return;
    batch_start(batch, block);
    for (;;) {
        const uint64_t before = block->ended;
        if (!batch_next(batch, block) || block->error[0]) break;
        block->ended = before; /* lines that stay are counted when they are
                                  cut again */
        size = keep_lines(block, batch, size, batch->next);
    }
    block->size = size;
}
