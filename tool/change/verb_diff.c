/*
 * calyx diff: the change from one filter file to another.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "change/change_file.h"
#include "frame/file_list.h"

static const char *out;
static bool force;

/* Bytes that are collected. */
struct bytes {
    uint8_t *at;
    size_t size, room;
};

static void append(struct bytes *to, const void *bytes, size_t size) {
    to->at = with_room(to->at, &to->room, to->size + size, 1);
    memcpy(to->at + to->size, bytes, size);
    to->size += size;
}

/* Seven bits a byte, the lowest first; the high bit says that more follow. */
static void append_number(struct bytes *to, uint64_t number) {
    uint8_t bytes[10];
    size_t n = 0;
    for (; number >= 128; number >>= 7) bytes[n++] = (uint8_t)(number | 128);
    bytes[n++] = (uint8_t)number;
    append(to, bytes, n);
}

struct comparing {
    struct bytes gaps, values;
    uint64_t equal, differ; /* of the gap so far */
};

static void end_gap(struct comparing *c) {
    if (c->differ == 0) return;
    append_number(&c->gaps, c->equal);
    append_number(&c->gaps, c->differ);
    c->equal = c->differ = 0;
}

static void compare(struct comparing *c, const uint8_t *old, const uint8_t *new,
                    size_t size) {
    if (memcmp(old, new, size) == 0) {
        end_gap(c);
        c->equal += size;
        return;
    }
    for (size_t i = 0; i < size; i++) {
        const uint8_t value = old[i] ^ new[i];
        if (value) {
            append(&c->values, &value, 1);
            c->differ++;
        } else {
            end_gap(c);
            c->equal++;
        }
    }
}

/* Chunks of both files side by side; what one lacks reads as zeros. */
static void compare_files(struct comparing *c, struct byte_source *sources[2],
                          struct running_sum sums[2], uint64_t sizes[2]) {
    enum { STEP = 512 };
    static uint8_t chunks[2][CHANGE_CHUNK];
    for (;;) {
        size_t n[2];
        for (int i = 0; i < 2; i++) {
            n[i] = source_fill(sources[i], chunks[i], CHANGE_CHUNK);
            memset(chunks[i] + n[i], 0, CHANGE_CHUNK - n[i]);
            if (n[i]) sum_add(&sums[i], chunks[i], n[i]);
            sizes[i] += n[i];
        }
        if (n[0] == 0 && n[1] == 0) break;
        for (size_t at = 0; at < n[1]; at += STEP)
            compare(c, chunks[0] + at, chunks[1] + at,
                    n[1] - at < STEP ? n[1] - at : STEP);
    }
    end_gap(c);
}

static void write_change(const struct comparing *c,
                         const struct change_facts *facts) {
    uint8_t header[CHANGE_HEADER];
    struct running_sum sum;
    sum_begin(&sum);
    sum_add(&sum, c->gaps.at, c->gaps.size);
    sum_add(&sum, c->values.at, c->values.size);
    sum_end(&sum);
    store_change(facts, sum.sum, header);
    struct output *const output = output_open(out, force);
    output_pack(output);
    output_write(output, header, sizeof header);
    output_write(output, c->gaps.at, c->gaps.size);
    output_write(output, c->values.at, c->values.size);
    output_close(output);
}

static int run(int count, char **operands) {
    struct byte_source *sources[2];
    struct running_sum sums[2];
    struct comparing c = {.equal = 0};
    uint64_t sizes[2] = {0, 0};
    if (!out) fail("missing -o CHANGE");
    expect_output(out, force);
    expect_one_standard_input(NULL, count, operands);
    for (int i = 0; i < 2; i++) {
        sources[i] = source_open(operands[i]);
        sum_begin(&sums[i]);
    }
    compare_files(&c, sources, sums, sizes);
    const struct change_facts facts = {.old_size = sizes[0],
                                       .old_sum = sums[0].sum,
                                       .new_size = sizes[1],
                                       .new_sum = sums[1].sum,
                                       .gap_bytes = c.gaps.size,
                                       .value_bytes = c.values.size};
    write_change(&c, &facts);
    for (int i = 0; i < 2; i++) {
        source_close(sources[i]);
        sum_end(&sums[i]);
    }
    if (2 * facts.value_bytes > facts.new_size)
        warn("%s and %s differ in %.0f %% of their bytes, so the change is no "
             "smaller than the new file",
             operands[0], operands[1],
             100 * (double)facts.value_bytes / (double)facts.new_size);
    free(c.gaps.at);
    free(c.values.at);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {'o', "output", "CHANGE",
         "Write the change to CHANGE; - is standard output.", parse_text, &out},
        {0, "force", NULL, "Replace CHANGE if it exists.", parse_flag, &force},
    },
};

const struct verb verb_diff = {
    .name = "diff",
    .summary = "make a small file of what changed between two filters",
    .synopsis = "-o CHANGE OLD NEW",
    .prose =
        {"Writes what 'calyx patch' needs to make NEW of OLD, byte for byte: "
         "to "
         "send a daily change instead of a filter. It stores the bytes that "
         "differ at the same place of both files, packed by zstd, or by gzip "
         "where calyx was built without zstd. So it is small if keys were "
         "added "
         "to OLD: a thousand keys in a line filter of a hundred million take "
         "15 kB.",
         "A filter that was built anew for another number of keys differs "
         "everywhere; its change is as large as itself, which a warning says. "
         "Give 'calyx build' the same --keys, with room for more.",
         "Packed files are unpacked first. Filters of any kind will do, and "
         "need no key."},
    .groups = {&options},
    .examples = {{"calyx diff -o monday.change sunday.calyx monday.calyx",
                  "what clients of sunday.calyx need"}},
    .least = 2,
    .most = 2,
    .run = run,
};
