/*
 * calyx hash: lines in, files of hashes out, one for each range of the hashes.
 * Whatever moves files brings the files of one range together; 'calyx build
 * --part' makes the range of the filter of them.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "exact/spill.h"
#include "files/filter_file.h"
#include "files/hash_reader.h"
#include "files/hash_writer.h"
#include "files/new_filter.h"
#include "frame/file_list.h"
#include "server/shards.h"

static const char *folder;
static uint64_t parts;
static uint64_t count_memory = UINT64_C(160) << 20;
static uint64_t shards; /* instead of parts */
static bool force, counts;

static struct hash_writer *writer;
static calyx_filter *hasher;

static void parse_parts(const struct verb_option *o, const char *value) {
    if (!count_from(value, &parts) || parts == 0 || parts > MOST_HASH_PARTS)
        fail("--%s: expected a number from 1 to %d, found '%s'", o->name,
             MOST_HASH_PARTS, value);
}

/* ---- Hashing ------------------------------------------------------------- */

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    if (shards)
        hash_for_shards(block, batch, hasher, shards);
    else
        hash_block(block, batch, hasher, false);
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    if (!shards) hash_writer_add(writer, block->hashes, block->lines);
    for (uint64_t i = 0; i < shards; i++) {
        const size_t from = i ? block->ends[i - 1] : 0;
        hash_writer_put(writer, (uint32_t)i, block->hashes + from,
                        block->ends[i] - from);
    }
    return true;
}

static const struct stages stages = {.in_parallel = in_parallel,
                                     .in_order = in_order};

static int hash_lines(int count, char **files) {
    if (!parts == !shards || !folder)
        fail("missing --parts N or --shards N, or -o FOLDER: hashes go to N "
             "files in a folder");
    const uint64_t number = shards ? shards : parts;
    const calyx_options want = options_wanted();
    hasher = new_hasher(&want);
    label_new(hasher);
    writer =
        hash_writer_open(folder, (uint32_t)number, shards > 0, hasher, force);
    const struct input_totals totals = run_pipeline(&stages, count, files);
    const uint64_t bytes = hash_writer_close(writer);
    const struct figure figures[] = {
        {"files", (double)number, true},
        {"bytes_written", (double)bytes, true},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
    calyx_free(hasher);
    return EXIT_YES;
}

/* ---- Counting ------------------------------------------------------------ */

/* Which hash it was does not matter, but it must be one. */
static void expect_one_hash(int count, char **files) {
    struct hash_head first;
    for (int i = 0; i < count; i++) {
        struct hash_reader *const r = hash_reader_open(files[i]);
        const struct hash_head *const head = hash_reader_head(r);
        if (i == 0) first = *head;
        if (strcmp(head->hash, first.hash) != 0 || head->seed != first.seed ||
            head->check != first.check)
            fail("%s and %s were hashed in different ways", files[0], files[i]);
        hash_reader_close(r);
    }
}

/* Those that belong to the file, and not to the next part. */
static void add_own(calyx_builder *b, const struct hash_head *head,
                    const uint64_t *hashes, size_t n) {
    const uint64_t first = hash_part_start(head->part, head->parts);
    const uint64_t last = hash_part_start(head->part + 1, head->parts) - 1;
    uint64_t own[HASH_CHUNK_MOST];
    size_t count = 0;
    calyx_error why;
    for (size_t i = 0; i < n; i++) {
        own[count] = hashes[i];
        count += head->by_shard || (hashes[i] >= first && hashes[i] <= last);
    }
    if (calyx_builder_add_hashes(b, own, count, &why) != CALYX_OK)
        fail_with(&why);
}

static uint64_t add_own_of(calyx_builder *b, const char *file) {
    struct hash_reader *const r = hash_reader_open(file);
    const uint64_t *hashes;
    uint64_t total = 0;
    for (size_t n; (n = hash_reader_next(r, &hashes)) > 0; total += n)
        add_own(b, hash_reader_head(r), hashes, n);
    hash_reader_close(r);
    return total;
}

static int count_hashes(int count, char **files) {
    const calyx_builder_options how = {.memory_bytes = count_memory,
                                       .folder = spill_folder()};
    calyx_builder *b;
    calyx_error why;
    uint64_t distinct;
    if (count == 0) fail("--count: expected files of hashes");
    expect_one_hash(count, files);
    if (calyx_builder_new(&how, &b, &why) != CALYX_OK) fail_with(&why);
    const double started = seconds_now();
    struct input_totals totals = {0};
    for (int i = 0; i < count; i++) totals.lines += add_own_of(b, files[i]);
    if (calyx_builder_count(b, &distinct, &why) != CALYX_OK) fail_with(&why);
    calyx_builder_free(b);
    printf("%" PRIu64 "\n", distinct);
    totals.bytes = 8 * totals.lines;
    totals.seconds = seconds_now() - started;
    const struct figure figures[] = {{"distinct", (double)distinct, true}};
    report(&totals, figures, 1);
    return EXIT_YES;
}

static int run(int count, char **files) {
    return counts ? count_hashes(count, files) : hash_lines(count, files);
}

static const struct group options = {
    "Options",
    {
        {0, "parts", "N",
         "Cut the hashes into N ranges, at most 1024, one file each.",
         parse_parts, NULL},
        {0, "shards", "N",
         "Instead, cut them by shard, for 'calyx build --shards N --part I/N' "
         "and 'calyx push --shards N'.",
         parse_shards, &shards},
        {'o', "output", "FOLDER",
         "Write 1-of-N.hashes to N-of-N.hashes into FOLDER, which is made if "
         "it is missing. The files appear when all are complete, one after the "
         "other: only exit status 0 says that all are there.",
         parse_text, &folder},
        {0, "force", NULL, "Replace files that exist.", parse_flag, &force},
        {0, "count", NULL,
         "Instead, print how many different hashes the FILEs of hashes have, "
         "each counted in its own range: the sum over all ranges is the number "
         "of keys for 'calyx build --part -n'.",
         parse_flag, &counts},
        {0, "kind", "KIND",
         "The kind of the filter, for the hash that it has by default: xxh64 "
         "for split, xxh3 for others.",
         parse_text, &wanted.kind},
        {0, "hash", "HASH",
         "The hash of the keys: xxh3, xxh64, murmur3 or fnv1a; siphash with "
         "--key-file.",
         parse_text, &wanted.hash},
        {0, "seed", "SEED", "Seed of the hash; the default is 0.", parse_text,
         &wanted.seed},
        {'S', "build-memory", "SIZE",
         "With --count, use at most SIZE of memory for hashes; the default is "
         "160MiB. Others wait in a temporary file.",
         parse_size, &count_memory},
        {'T', "temporary", "FOLDER",
         "Create temporary files in FOLDER; the default is $TMPDIR, or /tmp.",
         parse_spill_folder, NULL},
        FILE_LIST_OPTION,
    },
};

const struct verb verb_hash = {
    .name = "hash",
    .summary = "hash lines into files by range, for a build on many machines",
    .synopsis = "--parts N -o FOLDER [OPTION]... [FILE]...",
    .prose =
        {"Reads lines as 'calyx build' does, and writes the hash of each key, "
         "8 bytes, to the file of its range. Several machines hash their own "
         "lists; then each of them builds one range, and 'calyx join' makes "
         "one filter of the parts.",
         "The files 3-of-16.hashes of all machines go to the machine that runs "
         "'calyx build --part 3/16'.",
         "The files say how keys were hashed, and with which options for keys; "
         "a build that does not fit is refused. They have checksums. Hashes "
         "stay in the order of the lines. A file also has the hashes of the "
         "next "
         "range that are near, which makes it 3 percent longer: a block of the "
         "filter may lie on the border.",
         "With --shards the files are for the shards of a filter. Each is "
         "built by 'calyx build --shards 16 --part 3/16' and needs no joining.",
         "doc/FORMAT.md describes the files, so that other programs can write "
         "them."},
    .common = {"parts", "output", "kind"},
    .groups = {&options, &key_group, &secret_group, &work_group,
               &progress_group},
    .examples = {{"calyx hash --parts 16 -o hashes urls-*.txt.zst",
                  "hashes of the lists on this machine, by range"},
                 {"calyx hash --count host*/3-of-16.hashes",
                  "how many different keys are in range 3"}},
    .most = -1,
    .run = run,
};
