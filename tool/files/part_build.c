/*
 * A builder of the library takes the hashes of its part and skips others; so
 * lines and files of hashes go the same way.
 */
#include "files/part_build.h"

#include <inttypes.h>
#include <string.h>

#include "files/filter_file.h"
#include "files/hash_reader.h"
#include "files/new_filter.h"

static calyx_builder *builder;
static calyx_filter *hasher; /* has the texts of the filter, too */

/* ---- Lines --------------------------------------------------------------- */

static void hash_lines(struct text_block *block, struct key_batch *batch) {
    hash_block(block, batch, hasher, false);
}

static bool add_lines(struct text_block *block, struct key_batch *batch) {
    calyx_error why;
    (void)batch;
    if (calyx_builder_add_hashes(builder, block->hashes, block->lines, &why) !=
        CALYX_OK)
        fail_with(&why);
    return true;
}

static const struct stages line_stages = {.in_parallel = hash_lines,
                                          .in_order = add_lines};

/* ---- Files of hashes ----------------------------------------------------- */

/* Leave out what belongs to the next part. */
static size_t own_hashes(const struct hash_head *head, const uint64_t *hashes,
                         size_t n, uint64_t *own) {
    const uint64_t first = hash_part_start(head->part, head->parts);
    const uint64_t last = hash_part_start(head->part + 1, head->parts) - 1;
    size_t count = 0;
    for (size_t i = 0; i < n; i++) {
        own[count] = hashes[i];
        count += hashes[i] >= first && hashes[i] <= last;
    }
    return count;
}

uint64_t add_hash_files(calyx_builder *b, const calyx_filter *like, bool own,
                        int count, char **files) {
    uint64_t total = 0, kept[HASH_CHUNK_MOST];
    for (int i = 0; i < count; i++) {
        struct hash_reader *const r = hash_reader_open(files[i]);
        const uint64_t *hashes;
        calyx_error why;
        if (like) hash_reader_expect(r, like);
        for (size_t n; (n = hash_reader_next(r, &hashes)) > 0;) {
            if (own) n = own_hashes(hash_reader_head(r), hashes, n, kept);
            if (calyx_builder_add_hashes(b, own ? kept : hashes, n, &why) !=
                CALYX_OK)
                fail_with(&why);
            total += n;
        }
        hash_reader_close(r);
    }
    return total;
}

/* The last block of a part may reach beyond the hashes of its file. */
static void expect_range_in_files(const struct part_choice *part) {
    uint64_t first, last;
    if (!calyx_builder_range(builder, &first, &last)) return;
    const uint64_t end = hash_part_start(part->number + 1, part->count);
    if (end && last >= end && last - end >= hash_part_margin(part->count))
        fail("the filter is too small for files of hashes of %u parts: use "
             "fewer parts, or build from lines",
             part->count);
}

/* Before anything large is read. */
static void expect_hash_files(const struct part_choice *part, int count,
                              char **files) {
    char *text = NULL;
    for (int i = 0; i < count; i++) {
        struct hash_reader *const r = hash_reader_open(files[i]);
        const struct hash_head *const head = hash_reader_head(r);
        if (head->part != part->number || head->parts != part->count)
            fail_at(files[i], 0,
                    "its hashes are of part %u of %u, not of part %u of %u",
                    head->part, head->parts, part->number, part->count);
        hash_reader_expect(r, hasher);
        if (!text) text = copy_text(hash_reader_text(r));
        if (strcmp(text, hash_reader_text(r)) != 0)
            fail("%s was hashed with %s, and %s with %s", files[0],
                 *text ? text : "no options for keys", files[i],
                 *hash_reader_text(r) ? hash_reader_text(r)
                                      : "no options for keys");
        hash_reader_close(r);
    }
    if (key_options_given() && strcmp(text, key_options_of(hasher)) != 0)
        fail("%s was hashed with %s; the options for keys given here come too "
             "late",
             files[0], *text ? text : "no options for keys");
    key_options_set(hasher, text);
}

static struct input_totals read_hash_files(const struct part_job *job,
                                           int count, char **files) {
    struct input_totals totals = {0};
    const double started = seconds_now();
    expect_range_in_files(&job->part);
    expect_hash_files(&job->part, count, files);
    totals.lines = add_hash_files(builder, hasher, false, count, files);
    totals.bytes = 8 * totals.lines;
    totals.seconds = seconds_now() - started;
    return totals;
}

/* ---- The part ------------------------------------------------------------ */

static calyx_status save_part(void *b, const char *path, calyx_error *why) {
    return calyx_builder_save(b, path, why);
}

struct input_totals build_part(const struct part_job *job, int count,
                               char **files) {
    enum { MOST_THREADS = 64 };
    const size_t threads = thread_count();
    const calyx_builder_options how = {
        .filter = size_wanted(job->want),
        .memory_bytes = job->memory_bytes,
        .folder = job->folder,
        .threads = threads < MOST_THREADS ? (uint32_t)threads : MOST_THREADS,
        .part = job->part.number,
        .parts = job->part.count,
    };
    calyx_error why;
    if (calyx_builder_new(&how, &builder, &why) != CALYX_OK) fail_with(&why);
    hasher = new_hasher(&how.filter);
    label_new(hasher);
    const struct input_totals totals =
        are_hash_files(count, files) ? read_hash_files(job, count, files)
                                     : run_pipeline(&line_stages, count, files);
    if (calyx_builder_copy_texts(builder, hasher, &why) != CALYX_OK)
        fail_with(&why);
    save_file(save_part, builder, job->out, job->replace);
    calyx_builder_free(builder);
    calyx_free(hasher);
    return totals;
}
