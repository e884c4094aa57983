/*
 * Part files to a filter. The heads are read first: all parts must be there,
 * and of one filter. Then the bytes of the parts, one after the other, are the
 * body of the first layer; each is compared with its checksum on the way. A
 * static filter has more layers, made of what the parts bumped.
 */
#include "base/compiler.h"
#if !CALYX_NO_FILES
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/parallel.h"
#include "build/part_file.h"
#include "build/temp_file.h"
#include "store/encoding.h"
#include "store/file.h"

struct part_input {
    const char *path;
    struct part_head head;
    uint8_t bytes[PART_HEAD_BYTES]; /* of the head */
};

/* A part whose bytes are being read. */
struct open_part {
    const struct part_input *input; /* NULL: none */
    int fd;
    uint8_t *sums;
};

struct join {
    struct part_input *inputs; /* by number, once they are sorted */
    size_t count;
    struct description whole;    /* what the first part says of the filter */
    uint8_t header[MOST_HEADER]; /* and its header, as it is there */
    uint64_t items, bumped;
    struct layer_options how;
    uint64_t memory_bytes;
    calyx_filter *f;
    struct open_part open;
    size_t next; /* input to open */
};

/* ---- Heads --------------------------------------------------------------- */

static calyx_status read_at(const char *path, int fd, void *buffer, size_t size,
                            uint64_t at, calyx_error *why) {
    if (temp_file_read(fd, buffer, size, at)) return CALYX_OK;
    if (errno == END_OF_FILE)
        return fail(why, CALYX_DAMAGED,
                    "%.150s: damaged: it ends before its last byte", path);
    return fail_os(why, path, "read it");
}

static calyx_status check_open_head(struct part_input *input, int fd,
                                    uint64_t size, uint8_t *first,
                                    struct description *d, calyx_error *why) {
    const size_t there =
        size < PART_HEADERS_MOST ? (size_t)size : PART_HEADERS_MOST;
    calyx_status status = read_at(input->path, fd, first, there, 0, why);
    if (status != CALYX_OK) return status;
    status = check_part_head(first, there, &input->head, d, why);
    if (status != CALYX_OK) return fail_in(why, input->path, status);
    memcpy(input->bytes, first, PART_HEAD_BYTES);
    if (size == input->head.file_bytes) return CALYX_OK;
    return fail(why, CALYX_DAMAGED,
                "%.100s: damaged: it has %llu bytes; part %u of %u takes %llu",
                input->path, (unsigned long long)size, input->head.number,
                input->head.count, (unsigned long long)input->head.file_bytes);
}

static calyx_status read_head(struct part_input *input, uint8_t *first,
                              struct description *d, calyx_error *why) {
    int fd;
    uint64_t size;
    calyx_status status = open_regular(input->path, O_RDONLY, &fd, &size, why);
    if (status != CALYX_OK) return status;
    status = check_open_head(input, fd, size, first, d, why);
    close(fd);
    return status;
}

/* How do two filters differ that have different headers? */
static const char *difference(const struct description *a,
                              const struct description *b) {
    if (a->head.kind != b->head.kind) return "kind";
    if (a->head.hash != b->head.hash) return "hash";
    if (a->head.secret.seed != b->head.secret.seed) return "seed";
    if (a->hash_check != b->hash_check) return "secret key";
    if (a->part[0].shape.blocks != b->part[0].shape.blocks ||
        a->part[0].shape.probes != b->part[0].shape.probes ||
        a->part[0].shape.variable != b->part[0].shape.variable ||
        a->part[0].capacity != b->part[0].capacity ||
        a->head.fpr != b->head.fpr)
        return "number of keys or rate";
    return "comment or properties";
}

static calyx_status compare_with_first(const struct join *j,
                                       const uint8_t *first,
                                       const struct part_input *input,
                                       const struct description *d,
                                       calyx_error *why) {
    const struct part_input *const a = &j->inputs[0];
    if (input->head.count != a->head.count)
        return fail(why, CALYX_MISMATCH,
                    "%.90s is one of %u parts, %.90s one of %u", a->path,
                    a->head.count, input->path, input->head.count);
    const uint32_t size = j->whole.layout.header_bytes;
    if (d->layout.header_bytes != size ||
        memcmp(first + PART_HEAD_BYTES, j->header, size) != 0)
        return fail(why, CALYX_MISMATCH,
                    "%.90s and %.90s are parts of two filters: they differ in "
                    "%s",
                    a->path, input->path, difference(&j->whole, d));
    return CALYX_OK;
}

static calyx_status read_heads(struct join *j, const char *const *paths,
                               calyx_error *why) {
    struct description d;
    uint8_t first[PART_HEADERS_MOST];
    calyx_status status = CALYX_OK;
    for (size_t i = 0; i < j->count && status == CALYX_OK; i++) {
        struct part_input *const input = &j->inputs[i];
        input->path = paths[i];
        status = read_head(input, first, &d, why);
        if (status != CALYX_OK) break;
        if (i == 0) {
            j->whole = d;
            memcpy(j->header, first + PART_HEAD_BYTES, d.layout.header_bytes);
        }
        status = compare_with_first(j, first, input, &d, why);
        j->items += input->head.items;
        j->bumped += input->head.bumped;
    }
    return status;
}

static int by_number(const void *a, const void *b) {
    const uint32_t x = ((const struct part_input *)a)->head.number;
    const uint32_t y = ((const struct part_input *)b)->head.number;
    return (x > y) - (x < y);
}

/* Each number once. */
static calyx_status sort_inputs(struct join *j, calyx_error *why) {
    const uint32_t count = j->inputs[0].head.count;
    qsort(j->inputs, j->count, sizeof *j->inputs, by_number);
    for (size_t i = 1; i < j->count; i++)
        if (j->inputs[i].head.number == j->inputs[i - 1].head.number)
            return fail(why, CALYX_MISMATCH,
                        "%.90s and %.90s are both part %u of %u",
                        j->inputs[i - 1].path, j->inputs[i].path,
                        j->inputs[i].head.number, count);
    if (j->count == count) return CALYX_OK;
    uint32_t missing = 1;
    while (missing <= j->count && j->inputs[missing - 1].head.number == missing)
        missing++;
    return fail(why, CALYX_MISMATCH,
                "part %u of %u is missing; there are %llu parts in all",
                missing, count, (unsigned long long)j->count);
}

/* ---- Bytes --------------------------------------------------------------- */

static void close_part(struct join *j) {
    if (!j->open.input) return;
    close(j->open.fd);
    free(j->open.sums);
    j->open.input = NULL;
}

static size_t sums_bytes(const struct part_head *head) {
    return (size_t)(head->file_bytes - head->sums_at);
}

static calyx_status check_sums(const struct join *j, calyx_error *why) {
    const struct part_input *const input = j->open.input;
    uint8_t first[PART_HEAD_BYTES];
    calyx_status status =
        read_at(input->path, j->open.fd, first, sizeof first, 0, why);
    const size_t size = sums_bytes(&input->head) - 8;
    if (status == CALYX_OK)
        status = read_at(input->path, j->open.fd, j->open.sums, size + 8,
                         input->head.sums_at, why);
    if (status != CALYX_OK) return status;
    if (memcmp(first, input->bytes, sizeof first) != 0)
        return fail(why, CALYX_MISMATCH,
                    "%.150s: it was replaced while it was read", input->path);
    if (load64(j->open.sums + size) !=
        last_sum(j->open.sums, size, input->bytes))
        return fail(why, CALYX_DAMAGED,
                    "%.150s: damaged: its checksums do not match theirs",
                    input->path);
    return CALYX_OK;
}

static calyx_status open_input(struct join *j, const struct part_input *input,
                               calyx_error *why) {
    uint64_t size;
    close_part(j);
    const calyx_status status =
        open_regular(input->path, O_RDONLY, &j->open.fd, &size, why);
    if (status != CALYX_OK) return status;
    j->open.input = input;
    j->open.sums = malloc(sums_bytes(&input->head));
    if (!j->open.sums)
        return fail(why, CALYX_NO_MEMORY, "no memory for checksums");
    return check_sums(j, why);
}

static calyx_status fail_piece(const struct join *j, uint64_t at,
                               calyx_error *why) {
    return fail(why, CALYX_DAMAGED,
                "%.150s: damaged: the bytes from %llu on do not match their "
                "checksum",
                j->open.input->path, (unsigned long long)at);
}

static uint64_t stored_sum(const struct join *j, uint64_t number) {
    return load64(j->open.sums + 8 * number);
}

/* Compare bytes of the body, from `from` on, with the sums of the open part. */
static calyx_status compare_pieces(const struct join *j, uint64_t from,
                                   const uint8_t *bytes, size_t size,
                                   calyx_error *why) {
    const struct part_head *const head = &j->open.input->head;
    const uint64_t end = from + size;
    size_t n;
    for (uint64_t at = from; at < end; at += n) {
        n = piece_size(at, end);
        const uint64_t range = at / RANGE_BYTES;
        if (stored_sum(j, range - head->range.at / RANGE_BYTES) !=
            range_sum(bytes + (at - from), n, range))
            return fail_piece(j, head->body_at + (at - head->range.at), why);
    }
    return CALYX_OK;
}

static bool ends_before(const struct open_part *open, uint64_t at) {
    const struct part_range *const range =
        open->input ? &open->input->head.range : NULL;
    return !range || range->at + range->bytes <= at;
}

/* The body of the first layer, in order: parts follow each other. */
static calyx_status read_body(void *context, uint64_t from, uint8_t *buffer,
                              size_t size, calyx_error *why) {
    struct join *const j = context;
    while (size > 0) {
        while (ends_before(&j->open, from)) {
            const calyx_status status =
                open_input(j, &j->inputs[j->next++], why);
            if (status != CALYX_OK) return status;
        }
        const struct part_head *const head = &j->open.input->head;
        const uint64_t left = head->range.at + head->range.bytes - from;
        const size_t n = left < size ? (size_t)left : size;
        calyx_status status =
            read_at(j->open.input->path, j->open.fd, buffer, n,
                    head->body_at + (from - head->range.at), why);
        if (status == CALYX_OK)
            status = compare_pieces(j, from, buffer, n, why);
        if (status != CALYX_OK) return status;
        from += n;
        buffer += n;
        size -= n;
    }
    return CALYX_OK;
}

/* ---- Layers -------------------------------------------------------------- */

static calyx_status spool_piece(struct join *j, struct hash_spool *s,
                                uint64_t number, calyx_error *why) {
    static const size_t most = (size_t)1 << 16;
    const struct part_head *const head = &j->open.input->head;
    const uint64_t from = number * most, all = 8 * head->bumped;
    const size_t size = all - from < most ? (size_t)(all - from) : most;
    uint8_t bytes[1 << 16];
    uint64_t hashes[1 << 10];
    calyx_status status = read_at(j->open.input->path, j->open.fd, bytes, size,
                                  head->bumped_at + from, why);
    if (status != CALYX_OK) return status;
    if (stored_sum(j, body_pieces(&head->range) + number) !=
        bumped_sum(bytes, size, number))
        return fail_piece(j, head->bumped_at + from, why);
    for (size_t at = 0; at < size && status == CALYX_OK;) {
        size_t n = 0;
        for (; at < size && n < sizeof hashes / 8; at += 8)
            hashes[n++] = load64(bytes + at);
        status = spool_add(s, hashes, n, why);
    }
    return status;
}

static calyx_status spool_bumped(struct join *j, struct hash_spool *s,
                                 calyx_error *why) {
    calyx_status status = CALYX_OK;
    for (size_t i = 0; i < j->count && status == CALYX_OK; i++) {
        const uint64_t pieces = bumped_pieces(j->inputs[i].head.bumped);
        if (pieces == 0) continue;
        status = open_input(j, &j->inputs[i], why);
        for (uint64_t k = 0; k < pieces && status == CALYX_OK; k++)
            status = spool_piece(j, s, k, why);
    }
    return status == CALYX_OK ? spool_seal(s, j->how.threads, why) : status;
}

static calyx_status add_bumped_layers(struct join *j, calyx_error *why) {
    const struct kind *const kind = j->whole.head.kind;
    const double fpr = j->whole.part[0].fpr;
    struct hash_spool bumped;
    spool_init(&bumped, j->how.memory, spool_hashes(j->memory_bytes),
               j->how.folder, 1);
    calyx_status status = spool_bumped(j, &bumped, why);
    const struct part like = {.shape =
                                  kind->construction->layer(j->bumped, fpr),
                              .items = j->bumped,
                              .fpr = fpr};
    if (status == CALYX_OK)
        status = add_layers(&j->how, j->f, &like, &bumped,
                            memory_of_next(j->memory_bytes), 1, why);
    spool_end(&bumped);
    return status;
}

/* ---- The filter ---------------------------------------------------------- */

/* A filter whose first part has no body in memory. */
static calyx_status make_filter_around(struct join *j, calyx_error *why) {
    calyx_filter head = j->whole.head;
    struct part first = j->whole.part[0];
    head.memory = *j->how.memory;
    calyx_status status = choose_kernel(NULL, &head, why);
    if (status != CALYX_OK) return status;
    first.items = j->items - j->bumped;
    if (head.kind->construction) first.capacity = first.items;
    if (allocate_head(&head, &j->f) != CALYX_OK ||
        borrow_part(j->f, &first, NULL) != CALYX_OK)
        return fail(why, CALYX_NO_MEMORY, "no memory for a filter");
    return set_texts(j->f, &j->whole, why);
}

static void free_filter(calyx_filter *f) {
    if (f) return_first_part(f);
    calyx_free(f);
}

static calyx_status write_joined(void *context, calyx_put_function *put,
                                 void *to, calyx_error *why) {
    struct join *const j = context;
    const struct body_source source = {read_body, j};
    struct description d;
    describe_filter(j->f, PAGE_ALIGNED, &d);
    d.hash_check = j->whole.hash_check; /* no secret key is known here */
    close_part(j);
    return write_described(j->f, &d, &source, put, to, why);
}

static calyx_status join_parts(struct join *j, const char *const *paths,
                               const char *path, calyx_error *why) {
    calyx_status status = read_heads(j, paths, why);
    if (status == CALYX_OK) status = sort_inputs(j, why);
    if (status == CALYX_OK) status = make_filter_around(j, why);
    if (status == CALYX_OK && j->bumped) status = add_bumped_layers(j, why);
    return status == CALYX_OK ? save_by(write_joined, j, path, why) : status;
}

calyx_status calyx_join(const char *const *parts, size_t n,
                        const calyx_builder_options *how, const char *path,
                        calyx_error *why) {
    static const calyx_builder_options defaults = {0};
    const calyx_builder_options *const want = how ? how : &defaults;
    if (n == 0 || n > CALYX_PARTS_MOST || want->threads > THREADS_MOST)
        return fail(why, CALYX_BAD_ARGUMENT,
                    "expected 1 to %d parts, and at most %d threads; found "
                    "%llu, and %u",
                    CALYX_PARTS_MOST, THREADS_MOST, (unsigned long long)n,
                    want->threads);
    struct join *const j = calloc(1, sizeof *j);
    struct part_input *const inputs = calloc(n, sizeof *inputs);
    calyx_status status =
        j && inputs ? CALYX_OK
                    : fail(why, CALYX_NO_MEMORY, "no memory for %llu parts",
                           (unsigned long long)n);
    if (status == CALYX_OK) {
        j->inputs = inputs;
        j->count = n;
        j->memory_bytes =
            want->memory_bytes ? want->memory_bytes : UINT64_C(160) << 20;
        j->how = (struct layer_options){
            &memory_default, want->folder ? want->folder : temp_folder(),
            want->threads ? want->threads : 1};
        status = join_parts(j, parts, path, why);
        close_part(j);
        free_filter(j->f);
    }
    free(inputs);
    free(j);
    return status;
}
#endif
