/*
 * calyx patch: the new file of an old one and a change. Nothing appears unless
 * all checksums are right.
 */
#include <stdlib.h>
#include <string.h>

#include "change/change_file.h"
#include "frame/file_list.h"

static const char *out;
static bool force;

/* A change in memory, and how far it was read. */
struct change {
    const char *name;
    struct change_facts facts;
    uint8_t *gaps, *values;
    uint64_t gap_at, value_at;
    uint64_t equal, differ; /* left of the gap */
};

static _Noreturn void fail_damaged(const struct change *c) {
    fail_at(c->name, 0, "damaged: its numbers make no sense");
}

static void fill(struct byte_source *source, const char *name, void *to,
                 uint64_t size) {
    if (source_fill(source, to, (size_t)size) != size)
        fail_at(name, 0, "cut short: it lacks some of its bytes");
}

/* Sizes come from outside: memory grows only as bytes are there. */
static uint8_t *fill_memory(struct byte_source *source, const char *name,
                            uint64_t size) {
    enum { STEP = 1 << 20 };
    uint8_t *bytes = NULL;
    size_t room = 0;
    for (uint64_t at = 0; at < size;) {
        const uint64_t some = size - at < STEP ? size - at : STEP;
        bytes = with_room(bytes, &room, (size_t)(at + some), 1);
        fill(source, name, bytes + at, some);
        at += some;
    }
    return bytes;
}

static void read_change(const char *name, struct change *c) {
    uint8_t header[CHANGE_HEADER], more;
    struct running_sum sum;
    struct byte_source *const source = source_open(name);
    *c = (struct change){.name = name};
    fill(source, name, header, sizeof header);
    const uint64_t content_sum = load_change(name, header, &c->facts);
    c->gaps = fill_memory(source, name, c->facts.gap_bytes);
    c->values = fill_memory(source, name, c->facts.value_bytes);
    if (source_fill(source, &more, 1))
        fail_at(name, 0, "damaged: bytes follow its end");
    source_close(source);
    sum_begin(&sum);
    sum_add(&sum, c->gaps, (size_t)c->facts.gap_bytes);
    sum_add(&sum, c->values, (size_t)c->facts.value_bytes);
    sum_end(&sum);
    if (sum.sum != content_sum)
        fail_at(name, 0, "damaged: its bytes do not match their checksum");
}

static uint64_t next_number(struct change *c) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        if (c->gap_at == c->facts.gap_bytes) fail_damaged(c);
        const uint8_t byte = c->gaps[c->gap_at++];
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return number;
    }
    fail_damaged(c);
}

/* The next gap; after the last one, all is equal. */
static void next_gap(struct change *c) {
    const bool more = c->gap_at < c->facts.gap_bytes;
    c->equal = more ? next_number(c) : UINT64_MAX;
    c->differ = more ? next_number(c) : 0;
}

static void change_bytes(struct change *c, uint8_t *bytes, size_t size) {
    for (size_t at = 0; at < size;) {
        const uint64_t left = size - at;
        if (c->equal == 0 && c->differ == 0) next_gap(c);
        const uint64_t equal = c->equal < left ? c->equal : left;
        c->equal -= equal;
        at += (size_t)equal;
        for (; c->equal == 0 && c->differ > 0 && at < size; c->differ--) {
            if (c->value_at == c->facts.value_bytes) fail_damaged(c);
            bytes[at++] ^= c->values[c->value_at++];
        }
    }
}

/* Returns the checksum of the old file. */
static uint64_t write_new(struct byte_source *old, struct change *c,
                          struct output *output, uint64_t *new_sum) {
    static uint8_t chunk[CHANGE_CHUNK];
    struct running_sum before, after;
    uint64_t done = 0;
    sum_begin(&before);
    sum_begin(&after);
    for (;;) {
        const size_t n = source_fill(old, chunk, sizeof chunk);
        const uint64_t left = c->facts.new_size - done;
        const size_t size = left < sizeof chunk ? (size_t)left : sizeof chunk;
        if (n == 0 && size == 0) break;
        if (n) sum_add(&before, chunk, n);
        memset(chunk + n, 0, sizeof chunk - n);
        if (size == 0) continue;
        change_bytes(c, chunk, size);
        sum_add(&after, chunk, size);
        output_write(output, chunk, size);
        done += size;
    }
    *new_sum = after.sum;
    sum_end(&after);
    sum_end(&before);
    return before.sum;
}

static int run(int count, char **operands) {
    struct change c;
    uint64_t new_sum;
    if (!out) fail("-o NEW is wanted, the filter to make");
    expect_output(out, force);
    expect_one_standard_input(NULL, count, operands);
    read_change(operands[1], &c);
    struct byte_source *const old = source_open(operands[0]);
    struct output *const output = output_open(out, force);
    const uint64_t old_sum = write_new(old, &c, output, &new_sum);
    source_close(old);
    if (old_sum == c.facts.new_sum && old_sum != c.facts.old_sum)
        fail_at(operands[0], 0, "it has the change of %s already", c.name);
    if (old_sum != c.facts.old_sum)
        fail_at(operands[0], 0, "it is not the file that %s is for", c.name);
    if (new_sum != c.facts.new_sum || c.value_at != c.facts.value_bytes)
        fail_damaged(&c);
    output_close(output);
    free(c.gaps);
    free(c.values);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {'o', "output", "NEW",
         "Write the new filter to NEW, which appears when its checksum is "
         "right; OLD will do, with --force. It is packed if its name ends in "
         ".gz or .zst.",
         parse_text, &out},
        {0, "force", NULL, "Replace NEW if it exists.", parse_flag, &force},
    },
};

const struct verb verb_patch = {
    .name = "patch",
    .summary = "make a new filter of an old one and a change",
    .synopsis = "-o NEW OLD CHANGE",
    .prose = {"Makes the file that 'calyx diff' was given as NEW, byte for "
              "byte. It is an error, and no file is made, if OLD is another "
              "file than the change was made for, or if the change is cut "
              "short or damaged."},
    .groups = {&options},
    .examples = {{"calyx patch -o monday.calyx sunday.calyx monday.change",
                  "a day later"}},
    .least = 2,
    .most = 2,
    .run = run,
};
