#include "input/part_lines.h"

#include <stdio.h>
#include <stdlib.h>
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
        fail("--%s: expected a part such as 3/16, from 1/N to N/N with N at "
             "most %d, found '%s'",
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
    {
        {0, "part", "I/N",
         "Look only at the lines whose key is in part I of N, by its hash, as "
         "if the files had no others: 1/16 to 16/16 on 16 machines give each "
         "line of the whole result once. 'cat PART... | calyx common FIRST -' "
         "puts them into the order of the first file.",
         parse_part_of_lines, &lines_part},
    },
};

bool selects_part(void) {
    return lines_part.count > 0;
}

/* hash * count / 2^64, without integers of 128 bits. */
uint32_t part_of_hash(uint64_t hash, uint32_t count) {
    const uint64_t high = hash >> 32, low = (uint32_t)hash;
    return (uint32_t)((high * count + (low * count >> 32)) >> 32);
}

/* A block whose lines move together. Gaps that it has had are noted again, at
 * their new places. */
struct selection {
    struct text_block *block;
    size_t size; /* of the lines that stay */
    struct line_gap *gaps;
    size_t gap, gap_count;
};

static void move_gaps(struct selection *s, size_t offset) {
    for (; s->gap < s->gap_count && s->gaps[s->gap].offset <= offset; s->gap++)
        put_gap(s->block, s->size, s->gaps[s->gap].ends);
}

static size_t offset_of(const struct selection *s, const calyx_key *line) {
    return (size_t)((const char *)line->data - s->block->text);
}

static void keep_text(struct selection *s, size_t from, size_t to) {
    memmove(s->block->text + s->size, s->block->text + from, to - from);
    s->size += to - from;
}

/* Lines keep their ends. `after` is where the first line after these begins.
 */
static void keep_our_lines(struct selection *s, const struct key_batch *batch,
                           size_t after) {
    uint64_t hashes[BATCH_ROOM];
    calyx_hash_many(part_hasher, batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) {
        const calyx_key *const line = &batch->lines[i];
        const size_t from = offset_of(s, line);
        move_gaps(s, from);
        if (part_of_hash(hashes[i], lines_part.count) + 1 == lines_part.number)
            keep_text(s, from,
                      i + 1 < batch->count ? offset_of(s, line + 1) : after);
        else
            put_gap(s->block, s->size, ends_of(line));
    }
}

/* A line that lacks its key stays, with all after it, and is an error later.
 */
void select_part_lines(struct text_block *block, struct key_batch *batch) {
    if (!lines_part.count || block->error[0]) return;
    struct selection s = {
        .block = block, .gaps = block->gaps, .gap_count = block->gap_count};
    const size_t end = block->size;
    block->gaps = NULL;
    block->gap_count = block->gap_room = 0;
    batch_start(batch, block);
    while (batch_next(batch, block))
        keep_our_lines(&s, batch,
                       block->error[0]
                           ? offset_of(&s, &batch->lines[batch->count])
                           : (size_t)(batch->next - block->text));
    if (block->error[0]) {
        const size_t wrong = offset_of(&s, &batch->lines[batch->count]);
        move_gaps(&s, wrong);
        keep_text(&s, wrong, end);
        block->error[0] = '\0';
    }
    move_gaps(&s, end);
    block->size = s.size;
    block->text[s.size] = record_end();
    free(s.gaps);
}
