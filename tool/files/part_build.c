/*
 * A builder of the library takes the hashes of its part and skips others; so
 * lines and files of hashes go the same way.
 */
#include "files/part_build.h"

#include <stdlib.h>
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

static void add_hashes(const uint64_t *hashes, size_t n) {
    calyx_error why;
    if (calyx_builder_add_hashes(builder, hashes, n, &why) != CALYX_OK)
        fail_with(&why);
}

static bool add_lines(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    add_hashes(block->hashes, block->lines);
    return true;
}

static const struct stages line_stages = {.in_parallel = hash_lines,
                                          .in_order = add_lines};

/* ---- Files of hashes ----------------------------------------------------- */

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

static void expect_part(const struct hash_files_job *job, const char *file,
                        const struct hash_head *head) {
    if (head->by_shard != job->by_shard)
        fail_at(file, 0,
                "its hashes are cut by %s, not by %s; see 'calyx hash'",
                head->by_shard ? "shard" : "range",
                job->by_shard ? "shard" : "range");
    if (head->part != job->part.number || head->parts != job->part.count)
        fail_at(file, 0,
                "its hashes are of part %u of %u, not of part %u of %u",
                head->part, head->parts, job->part.number, job->part.count);
}

/* Before anything large is read. */
static void expect_heads(const struct hash_files_job *job, int count,
                         char **files) {
    char *text = NULL;
    for (int i = 0; i < count; i++) {
        struct hash_reader *const r = hash_reader_open(files[i]);
        expect_part(job, files[i], hash_reader_head(r));
        hash_reader_expect(r, job->hasher);
        if (!text) text = copy_text(hash_reader_text(r));
        if (strcmp(text, hash_reader_text(r)) != 0)
            fail("%s was hashed with %s, and %s with %s", files[0],
                 key_options_in_words(text), files[i],
                 key_options_in_words(hash_reader_text(r)));
        hash_reader_close(r);
    }
    if (key_options_given() && strcmp(text, key_options_of(job->hasher)) != 0)
        fail("%s was hashed with %s; the options for keys given here come too "
             "late",
             files[0], key_options_in_words(text));
    key_options_set(job->hasher, text);
    free(text);
}

struct input_totals read_hash_files(const struct hash_files_job *job, int count,
                                    char **files) {
    struct input_totals totals = {0};
    const double started = seconds_now();
    expect_heads(job, count, files);
    for (int i = 0; i < count; i++) {
        struct hash_reader *const r = hash_reader_open(files[i]);
        const uint64_t *hashes;
        for (size_t n; (n = hash_reader_next(r, &hashes)) > 0;
             totals.lines += n)
            job->take(hashes, n);
        hash_reader_close(r);
    }
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
    const calyx_builder_options how = {
        .filter = size_wanted(job->want),
        .memory_bytes = job->memory_bytes,
        .folder = job->folder,
        .threads = builder_threads(),
        .part = job->part.number,
        .parts = job->part.count,
    };
    calyx_error why;
    if (calyx_builder_new(&how, &builder, &why) != CALYX_OK) fail_with(&why);
    hasher = new_hasher(&how.filter);
    label_new(hasher);
    const struct hash_files_job hashes = {
        .part = job->part, .hasher = hasher, .take = add_hashes};
    const bool from_hashes = are_hash_files(count, files);
    if (from_hashes) expect_range_in_files(&job->part);
    const struct input_totals totals =
        from_hashes ? read_hash_files(&hashes, count, files)
                    : run_pipeline(&line_stages, count, files);
    if (calyx_builder_copy_texts(builder, hasher, &why) != CALYX_OK)
        fail_with(&why);
    save_file(save_part, builder, job->out, job->replace);
    calyx_builder_free(builder);
    calyx_free(hasher);
    return totals;
}
