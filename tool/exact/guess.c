/*
 * A guess at an input before it is read: how many lines are candidates.
 *
 * Inputs of up to 4 GB are read, and of their hashes a share is counted: all
 * lines with these hashes, so that the numbers are true except for chance. Of
 * larger inputs pieces are read that are spread over the files. If they have a
 * share q of the lines, a pair of equal lines is seen with a chance of q
 * squared; that gives the number of pairs, and from it roughly the number of
 * keys that occur again.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exact/key_hash.h"
#include "exact/method.h"

enum {
    SAMPLE_LINES = 4000000,
    PIECE_BYTES = 1 << 18,
    CLASS_BITS = 2, /* the low bits of a sampled hash are its class */
    HOT_COUNT = 4,  /* a key that the sample has as often is frequent */
};
static const uint64_t most_whole = 4000000000, most_in_pieces = 256000000;

struct sampled_line {
    uint64_t hash;
    uint32_t line_size, key_size;
};

struct guess_sample {
    calyx_filter *hasher;
    unsigned class;
    struct sampled_line *lines;
    size_t count, room;
    uint64_t wanted;     /* 1 of this many hashes is counted */
    uint64_t all, bytes; /* lines, and their bytes */
    bool made_keys;      /* they are not there as they are in the line */
};

static void add_batch(struct guess_sample *s, const struct key_batch *batch) {
    s->lines = with_room(s->lines, &s->room, s->count + batch->count,
                         sizeof *s->lines);
    uint64_t hashes[BATCH_ROOM];
    hash_keys(s->hasher, batch->keys, batch->count, hashes);
    for (size_t i = 0; i < batch->count; i++) {
        const calyx_key *const key = &batch->keys[i];
        const calyx_key *const line = &batch->lines[i];
        s->bytes += line->size + 1;
        s->made_keys |= key->data != line->data || key->size != line->size;
        s->lines[s->count] = (struct sampled_line){
            hashes[i] >> CLASS_BITS << CLASS_BITS | s->class,
            (uint32_t)line->size + 1, (uint32_t)key->size};
        s->count += (hashes[i] >> 32) % s->wanted == 0;
    }
    s->all += batch->count;
}

/* ---- What is hashed ------------------------------------------------------ */

static bool add_block(struct text_block *block, struct key_batch *batch) {
    struct guess_sample *const s = block->context;
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        add_batch(s, batch);
        block->lines += batch->count;
    }
    return s->bytes < most_whole;
}

static void add_start(struct guess_sample *s, const struct file_group *r) {
    const struct stages stages = {.in_order = add_block, .context = s};
    run_pipeline(&stages, r->count, r->files);
}

/* The lines that begin and end in a piece of a file. */
static void add_piece_of(struct guess_sample *s, int fd, uint64_t place,
                         struct text_block *block, struct key_batch *batch) {
    const ssize_t n = pread(fd, block->text, PIECE_BYTES, (off_t)place);
    if (n <= 0) return;
    const char *const text = block->text;
    const char *const from =
        place ? memchr(text, record_end(), (size_t)n) : text;
    const char *const to = memrchr(text, record_end(), (size_t)n);
    if (!from || !to || to < from) return;
    const size_t skipped = (size_t)(from - text) + (place != 0);
    memmove(block->text, block->text + skipped, (size_t)n - skipped);
    block->size = (size_t)(to - text) + 1 - skipped;
    block->error[0] = '\0';
    block->gap_count = 0;
    leave_lines_out(batch, block);
    batch_start(batch, block);
    while (batch_next(batch, block)) add_batch(s, batch);
}

static void add_pieces(struct guess_sample *s, const char *path, double share) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat is;
    if (fd < 0 || fstat(fd, &is) != 0) fail_os(path, "open it");
    struct text_block block = {.text = alloc_memory(PIECE_BYTES + BLOCK_MARGIN),
                               .columns = key_form.ranges};
    struct key_batch *const batch = alloc_memory(sizeof *batch);
    memset(batch, 0, sizeof *batch);
    const double stride = (double)PIECE_BYTES / share;
    for (double at = 0; at < (double)is.st_size; at += stride)
        add_piece_of(s, fd, (uint64_t)at, &block, batch);
    batch_free(batch);
    free(batch);
    block_free(&block);
    close(fd);
}

/* ---- What it says -------------------------------------------------------- */

static int by_hash(const void *a, const void *b) {
    const uint64_t x = ((const struct sampled_line *)a)->hash;
    const uint64_t y = ((const struct sampled_line *)b)->hash;
    return (x > y) - (x < y);
}

/* Lines with equal hashes, from `at` on: how many, and where they were seen. */
static size_t next_group(const struct guess_sample *s, size_t at,
                         uint32_t *seen) {
    const uint64_t hash = s->lines[at].hash >> CLASS_BITS;
    size_t n = 0;
    *seen = 0;
    for (; at + n < s->count && s->lines[at + n].hash >> CLASS_BITS == hash;
         n++) {
        const unsigned class = s->lines[at + n].hash & (CLASSES - 1);
        *seen |= *seen & SEEN_IN(class) ? SEEN_TWICE_IN(class) : SEEN_IN(class);
    }
    return n;
}

/* From pairs in the sample to keys in all lines: most occur twice, unless there
 * are too many pairs for that. */
static void extrapolate(struct line_counts *c, double pairs, double share) {
    const double lines = (double)c->lines, all = pairs / (share * share);
    const bool few = 4 * all <= lines;
    const double marked = few ? 2 * all : lines;
    const double keys = few ? all : lines / (1 + 2 * all / lines);
    c->marked += (uint64_t)marked;
    c->keys += (uint64_t)keys;
    if (c->marked > c->lines) c->marked = c->lines;
    c->distinct = c->lines - c->marked + c->keys;
}

static void count_groups(const struct guess_sample *s, double share,
                         const struct hash_condition *condition,
                         struct line_counts *c) {
    double pairs = 0, sizes = 0, key_sizes = 0;
    uint32_t seen;
    for (size_t at = 0, n; at < s->count; at += n) {
        n = next_group(s, at, &seen);
        c->distinct++;
        sizes += s->lines[at].line_size;
        key_sizes += s->lines[at].key_size;
        if (n >= HOT_COUNT) c->hot += (uint64_t)((double)(n - 1) / share);
        if (condition ? !meets_condition(condition, seen) : n < 2) continue;
        if (share == 1 || n >= HOT_COUNT) {
            c->keys++;
            c->marked += (uint64_t)((double)n / share);
        } else {
            pairs += (double)(n * (n - 1) / 2);
        }
    }
    c->distinct_size = sizes / (double)(c->distinct + 1);
    c->distinct_key_size = key_sizes / (double)(c->distinct + 1);
    if (share < 1) extrapolate(c, pairs, share);
}

static void scale_counts(struct line_counts *c, uint64_t wanted) {
    c->marked *= wanted;
    c->keys *= wanted;
    c->distinct *= wanted;
    c->hot *= wanted;
}

void guess_counts(const struct exact_job *job,
                  const struct hash_condition *condition,
                  struct line_counts *counts) {
    const uint64_t total = job->sum.bytes;
    const bool whole = total <= most_whole || !job->sum.plain;
    struct guess_sample s = {.hasher = key_hasher(0), .wanted = 1};
    if (whole) s.wanted = job->sum.lines / SAMPLE_LINES + 1;
    uint64_t stored = 0, printed = 0;
    for (size_t i = 0; i < job->op.readings; i++) {
        const struct file_group *const r = &job->readings[i];
        if (i == job->op.readings - job->op.printing) printed = s.bytes;
        s.class = r->class;
        if (whole) add_start(&s, r);
        for (int k = 0; k < r->count && !whole; k++)
            add_pieces(&s, r->files[k], (double)most_in_pieces / (double)total);
        if (i + 1 == job->op.storing) stored = s.bytes;
    }
    const double share = s.bytes < most_whole && whole
                             ? 1
                             : (double)(s.bytes + 1) / (double)total;
    *counts = (struct line_counts){
        .bytes = share < 1 ? total : s.bytes,
        .lines = (uint64_t)((double)s.all / (share < 1 ? share : 1)),
        .stored = (double)stored / (double)(s.bytes + 1),
        .printed = (double)(s.bytes - printed) / (double)(s.bytes + 1),
        .made_keys = s.made_keys};
    if (s.count) qsort(s.lines, s.count, sizeof *s.lines, by_hash);
    count_groups(&s, share < 1 ? share : 1, condition, counts);
    scale_counts(counts, s.wanted);
    calyx_free(s.hasher);
    free(s.lines);
}
