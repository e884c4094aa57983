/*
 * calyx join: one filter of its parts.
 */
#include "exact/spill.h"
#include "files/filter_file.h"
#include "input/pipeline.h"
#include "input/source.h"

static const char *out;
static bool force;
static uint64_t join_memory = UINT64_C(160) << 20;

struct part_files {
    char **paths;
    size_t count;
    calyx_builder_options how;
};

static calyx_status join(void *what, const char *path, calyx_error *why) {
    const struct part_files *const parts = what;
    return calyx_join((const char *const *)parts->paths, parts->count,
                      &parts->how, path, why);
}

/* From the header: a filter with a secret key cannot be opened here. */
static calyx_info info_from_header(void) {
    uint8_t bytes[CALYX_HEADER_MOST];
    calyx_layout *layout;
    calyx_info info;
    calyx_error why;
    struct byte_source *const source = source_open(out);
    const size_t size = source_fill(source, bytes, sizeof bytes);
    source_close(source);
    if (calyx_layout_new(bytes, size, &layout, &why) != CALYX_OK)
        fail_at(out, 0, "%s", why.text);
    calyx_layout_describe(layout, NULL, &info);
    calyx_layout_free(layout);
    return info;
}

/* With as many keys as there are. */
static double rate_of(const calyx_info *info) {
    const calyx_options want = {.kind = info->kind,
                                .capacity = info->capacity,
                                .bits = info->bits,
                                .probes = info->probes};
    double rate = info->fpr;
    calyx_error why;
    if (info->can & CALYX_CAN_ADD &&
        calyx_rate_at(&want, info->items, &rate, &why) != CALYX_OK)
        fail_with(&why);
    return rate;
}

static void report_joined(struct input_totals totals) {
    calyx_info info = info_from_header();
    info.fpr_now = rate_of(&info);
    warn_if_overfull(out, &info);
    totals.bytes = info.bytes;
    const struct figure figures[] = {
        {"fresh", (double)info.items, true},
        {"filter_bytes", (double)info.bytes, true},
        {"expected_rate", info.fpr_now, false},
    };
    report(&totals, figures, sizeof figures / sizeof *figures);
}

static int run(int count, char **operands) {
    const double started = seconds_now();
    struct part_files parts = {.paths = operands,
                               .count = (size_t)count,
                               .how = {.memory_bytes = join_memory,
                                       .folder = spill_folder(),
                                       .threads = builder_threads()}};
    if (!out || !is_plain_name(out))
        fail("the filter goes to a file that can be mapped: name it by -o "
             "FILTER, without .gz or .zst");
    expect_output(out, force);
    save_file(join, &parts, out, force);
    report_joined((struct input_totals){.seconds = seconds_now() - started});
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {'o', "output", "FILTER",
         "Write the filter to this file, which appears when it is complete.",
         parse_text, &out},
        {0, "force", NULL, "Replace FILTER if it exists.", parse_flag, &force},
        {'S', "build-memory", "SIZE",
         "For kind ribbon, use at most SIZE of memory for hashes that the "
         "parts bumped, 4 percent of all keys; the default is 160MiB.",
         parse_size, &join_memory},
        {'T', "temporary", "FOLDER",
         "Create temporary files in FOLDER; the default is $TMPDIR, or /tmp.",
         parse_spill_folder, NULL},
    },
};

const struct verb verb_join = {
    .name = "join",
    .summary = "make one filter of the parts that many machines built",
    .synopsis = "-o FILTER [--force] PART...",
    .prose =
        {"The parts are files of 'calyx build --part', in any order. Joining "
         "copies their bytes, each compared with its checksum; no key is read "
         "again, and no secret key is needed. The filter is the same, byte for "
         "byte, as the file of one 'calyx build' with the same options and the "
         "lines in the same order.",
         "It is an error if a part is missing, is there twice, or belongs to "
         "another filter: of another kind, hash, seed or key, number of keys, "
         "rate, comment or options for keys. Nothing is written then."},
    .groups = {&options, &work_group},
    .examples = {{"calyx join -o ids.calyx ids.*-of-16.part",
                  "one filter of 16 parts"}},
    .least = 1,
    .most = -1,
    .run = run,
};
