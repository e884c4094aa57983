/*
 * calyx build: lines in, filter out.
 *
 * Hashing is what threads share; the hashes are then added in the order of the
 * input, by one thread at a time, so the file is the same whatever their
 * number. Adding takes a fifth of the time; what it would take to do that at
 * once, by grouping the hashes, is more than it saves. If the number of keys is
 * not known, or the filter needs all of them at once, they are added to a
 * builder instead.
 *
 * With --shards there are several filters, and each key is for one of them.
 * They are made together, of as much memory as one filter would take.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "exact/budget.h"
#include "exact/known_keys.h"
#include "exact/spill.h"
#include "files/filter_file.h"
#include "files/foreign_build.h"
#include "files/hash_reader.h"
#include "files/key_sketch.h"
#include "files/new_filter.h"
#include "files/part_build.h"
#include "frame/file_list.h"
#include "frame/lock.h"
#include "input/estimate.h"
#include "input/pipeline.h"
#include "input/source.h"
#include "server/shards.h"

static const char *out;
static struct texts allow_lists;
static uint64_t shards; /* 0: no shards, but one filter */
static uint64_t build_memory = UINT64_C(160) << 20;
static bool force, universal;
static struct texts universe; /* of an exact filter; empty: it is not */
static bool exact, force_include;
static const char *update;      /* an exact filter; NULL: none */
static calyx_filter *old;       /* the same */
static struct part_choice part; /* count 0: the whole filter */

/* ---- What to make ------------------------------------------------------- */

static uint64_t filter_count(void) {
    return shards ? shards : 1;
}

/* With --part, one of the shards alone. */
static uint64_t first_filter(void) {
    return part.count ? part.number - 1 : 0;
}

static uint64_t end_filter(void) {
    return part.count ? part.number : filter_count();
}

/* The keys of one shard. Shards get an equal share, give or take its square
 * root: six times that, and a few for small ones, is more than any of a
 * thousand shards gets, except once in 50 000 times. */
static uint64_t share_of(uint64_t all) {
    if (!shards || !all) return all;
    const double share = (double)all / (double)shards;
    return (uint64_t)ceil(share + 6 * sqrt(share) + 12);
}

/* Static kinds are made of all keys at once. So are tables that have a slot for
 * each copy of a key: a builder drops the copies. */
static bool takes_keys_one_by_one(const calyx_options *want) {
    const char *const kind = want->kind ? want->kind : calyx_kinds()[0];
    const uint32_t can = calyx_kind_can(kind);
    return can & CALYX_CAN_ADD &&
           !(can & CALYX_CAN_COUNT && can & CALYX_CAN_GROW_IN_PLACE);
}

/* ---- Adding ------------------------------------------------------------- */

static calyx_filter *filters[MOST_SHARDS];   /* to add to, or to be built */
static calyx_builder *builders[MOST_SHARDS]; /* of these; else NULL */
static calyx_filter *hasher;                 /* hashes as they do */

static void make(calyx_options want) {
    want.capacity = share_of(want.capacity);
    for (uint64_t i = first_filter(); i < end_filter(); i++)
        filters[i] = new_filter(want);
    hasher = filters[first_filter()];
}

static void free_filters(void) {
    for (uint64_t i = first_filter(); i < end_filter(); i++) {
        calyx_free(filters[i]);
        filters[i] = NULL;
    }
}

/* What the filters are together. Without `fully`, what takes reading is 0. */
static calyx_info describe_all(bool fully) {
    calyx_info all;
    (fully ? calyx_describe : calyx_info_of)(filters[first_filter()], &all);
    for (uint64_t i = first_filter() + 1; i < end_filter(); i++) {
        calyx_info info;
        (fully ? calyx_describe : calyx_info_of)(filters[i], &info);
        all.capacity += info.capacity;
        all.items += info.items;
        all.bytes += info.bytes;
        all.distinct += info.distinct;
        if (info.fpr_now > all.fpr_now) all.fpr_now = info.fpr_now;
    }
    return all;
}

static struct {
    uint64_t keys; /* that come, by a guess; 0 if there is none */
    uint64_t lines;
    bool wrong; /* and so not all lines have been read */
} guess;

/* A filter that is larger than it had to be by this share will do. */
static const double slack = 0.04;

static _Noreturn void fail_full(void) {
    fail("the filter is full at %" PRIu64 " keys%s", wanted.keys,
         wanted.strict ? ", and --strict lets no more in"
                       : "; give a larger --keys, or --growth");
}

static void add(uint64_t number, const uint64_t *hashes, size_t n) {
    const calyx_status status =
        calyx_add_hashes(filters[number], hashes, n, NULL, NULL);
    if (status == CALYX_FULL && guess.keys) {
        guess.wrong = true;
        return;
    }
    if (status == CALYX_FULL) fail_full();
    if (status != CALYX_OK) fail("%s", calyx_status_text(status));
}

static void in_parallel(struct text_block *block, struct key_batch *batch) {
    if (shards)
        hash_for_shards(block, batch, hasher, shards);
    else
        hash_block(block, batch, hasher, false);
}

/* With too many keys, or too many lines that came before, reading on is of no
 * use. Both only ever rise: so the verdict is the same wherever blocks end. */
static bool guess_holds(uint64_t more_lines) {
    const calyx_info info = describe_all(false);
    guess.lines += more_lines;
    guess.wrong =
        guess.wrong || info.items > guess.keys ||
        (double)(guess.lines - info.items) > slack * (double)guess.keys;
    return !guess.wrong;
}

/* ---- With --allow -------------------------------------------------------- */

/*
 * A filter of no use except its allow list: adding the hashes of the input to
 * it takes those keys off the list that are among the keys. What is left goes
 * to the filters when they are made, which for a builder is at the end.
 */
static calyx_filter *listed;

static bool allow_lines(struct text_block *block, struct key_batch *batch) {
    calyx_error why;
    batch_start(batch, block);
    while (batch_next(batch, block))
        for (size_t i = 0; i < batch->count; i++)
            if (calyx_allow(listed, batch->keys[i].data, batch->keys[i].size,
                            NULL, &why) != CALYX_OK)
                fail_with(&why);
    return true;
}

static void read_lists(const calyx_options *want) {
    if (!allow_lists.count) return;
    listed = new_hasher(want);
    const struct stages reading = {.in_order = allow_lines};
    run_pipeline(&reading, (int)allow_lists.count, (char **)allow_lists.text);
}

static void leave_list(const uint64_t *hashes, size_t n) {
    const calyx_status status = calyx_add_hashes(listed, hashes, n, NULL, NULL);
    if (status != CALYX_OK) fail("%s", calyx_status_text(status));
}

/* Each key on the list of its shard. */
static void set_lists(void) {
    calyx_key key;
    calyx_error why;
    for (uint64_t at = 0; listed && calyx_next_allowed(listed, &at, &key);) {
        const uint64_t number = shards ? shard_of(&key, shards) : 0;
        if (calyx_allow(filters[number], key.data, key.size, NULL, &why) !=
            CALYX_OK)
            fail_with(&why);
    }
    calyx_free(listed);
}

/* ---- Putting keys into filters ------------------------------------------- */

static void put(uint64_t number, const uint64_t *hashes, size_t n) {
    calyx_error why;
    if (listed) leave_list(hashes, n);
    if (!builders[number])
        add(number, hashes, n);
    else if (calyx_builder_add_hashes(builders[number], hashes, n, &why) !=
             CALYX_OK)
        fail_with(&why);
}

static bool in_order(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    if (!shards) put(0, block->hashes, block->lines);
    for (uint64_t i = first_filter(); shards && i < end_filter(); i++) {
        const size_t from = i ? block->ends[i - 1] : 0;
        put(i, block->hashes + from, block->ends[i] - from);
    }
    return !guess.keys || guess_holds(block->lines);
}

static const struct stages stages = {.in_parallel = in_parallel,
                                     .in_order = in_order};

/* Of one shard, from files of its hashes. */
static void put_in_shard(const uint64_t *hashes, size_t n) {
    put(first_filter(), hashes, n);
}

static struct input_totals read_keys(int count, char **files) {
    const struct hash_files_job job = {
        .part = part, .by_shard = true, .hasher = hasher, .take = put_in_shard};
    return part.count && are_hash_files(count, files)
               ? read_hash_files(&job, count, files)
               : run_pipeline(&stages, count, files);
}

/* ---- Without --keys ----------------------------------------------------- */

/*
 * The number of distinct keys determines the size. For large files it is
 * estimated, as if no line were repeated. When all are in, the filter estimates
 * how many are distinct; if it is too small or too large for them, the files
 * are read for a sketch of their keys, and again for a filter of the size that
 * the sketch says. For all other input, and if that filter does not fit,
 * either, the hashes go to a builder, which counts them.
 */

/* Does the filter keep its rate, and is it not much larger than it needs? */
static bool fits(void) {
    const calyx_info info = describe_all(true);
    return info.fpr_now <= info.fpr &&
           info.distinct * (1 + slack) >= (double)info.capacity;
}

static bool make_guessed(calyx_options want, int count, char **files,
                         struct input_totals *totals) {
    if (!takes_keys_one_by_one(&want)) return false;
    if (wanted.strict || wanted.growth > 0)
        return false; /* they go by the number */
    if (!estimate_lines(count, files, &guess.keys)) return false;
    want.capacity = guess.keys;
    make(want);
    note_files(count, files);
    *totals = run_pipeline(&stages, count, files);
    guess.keys = 0;
    guess.wrong = guess.wrong || !fits();
    if (guess.wrong) free_filters();
    return !guess.wrong;
}

static void sketch_block(struct text_block *block, struct key_batch *batch) {
    hash_block(block, batch, hasher, false);
    sketch_add(block->context, block->hashes, block->lines);
}

/* Copies of a key set the same bits. */
static bool is_of_bits(const calyx_options *want) {
    const uint32_t can =
        calyx_kind_can(want->kind ? want->kind : calyx_kinds()[0]);
    return can & CALYX_CAN_INTERSECT && !(can & CALYX_CAN_COUNT);
}

static bool make_sketched(calyx_options want, int count, char **files,
                          struct input_totals *totals) {
    if (!guess.wrong || !is_of_bits(&want)) return false;
    struct key_sketch *const sketch = sketch_new();
    const struct stages sketching = {.in_parallel = sketch_block,
                                     .context = sketch};
    hasher = new_hasher(&want);
    run_pipeline(&sketching, count, files);
    calyx_free(hasher);
    want.capacity = sketch_upper(sketch);
    sketch_free(sketch);
    make(want);
    *totals = run_pipeline(&stages, count, files);
    expect_same_files();
    const bool good = fits();
    if (!good) free_filters();
    return good;
}

static void make_builders(calyx_options want) {
    enum { LEAST_MEMORY = 64 << 10 }; /* of a builder */
    const uint64_t share = build_memory / filter_count();
    const calyx_builder_options how = {
        .filter = exact ? want : size_wanted(want),
        .memory_bytes = share > LEAST_MEMORY ? share : LEAST_MEMORY,
        .folder = spill_folder(),
        .threads = builder_threads(),
        .file_backed = true,
    };
    calyx_error why;
    allow_open_files(filter_count()); /* of builders, beyond memory */
    for (uint64_t i = first_filter(); i < end_filter(); i++)
        if (calyx_builder_new(&how, &builders[i], &why) != CALYX_OK)
            fail_with(&why);
    hasher = new_hasher(&how.filter);
    label_new(hasher);
}

static void finish_builders(void) {
    calyx_error why;
    for (uint64_t i = first_filter(); i < end_filter(); i++) {
        const calyx_status status =
            calyx_builder_finish(builders[i], &filters[i], &why);
        if (status == CALYX_FULL && wanted.keys) fail_full();
        if (status != CALYX_OK) fail_with(&why);
        calyx_builder_free(builders[i]);
        label_new(filters[i]);
        key_options_set(filters[i], key_options_of(hasher)); /* of hashes */
    }
    calyx_free(hasher);
}

/* What is wrong with the options is said before anything is read. */
static void make_built(calyx_options want, int count, char **files,
                       struct input_totals *totals) {
    make_builders(want);
    *totals = read_keys(count, files);
    expect_same_files(); /* if they were read before */
    finish_builders();
}

/* ---- With --exact -------------------------------------------------------- */

/*
 * The included keys wait in a table, with half of the memory, until the
 * universe was read: then it is known which of its keys are to be excluded, and
 * whether it has all that are included.
 */
static struct known_keys *included;

static void exclude_others(struct text_block *block, struct key_batch *batch) {
    uint64_t hashes[BATCH_ROOM];
    bool is_included[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        uint64_t *const others =
            room_for_hashes(block, block->lines + batch->count);
        calyx_hash_many(hasher, batch->keys, batch->count, hashes);
        known_keys_find(included, batch->keys, hashes, batch->count,
                        is_included);
        for (size_t i = 0; i < batch->count; i++) {
            others[block->lines] = hashes[i];
            block->lines += !is_included[i];
        }
    }
}

/* With --update the builder includes keys whose answer in the old filter is
 * wrong now. */
static void give_key(uint64_t hash, bool is_included) {
    calyx_error why;
    const bool has = old && calyx_has_hash(old, hash);
    if ((has != is_included
             ? calyx_builder_add_hashes(builders[0], &hash, 1, &why)
             : calyx_builder_exclude_hashes(builders[0], &hash, 1, &why)) !=
        CALYX_OK)
        fail_with(&why);
}

static bool exclude_in_order(struct text_block *block,
                             struct key_batch *batch) {
    calyx_error why;
    (void)batch;
    for (size_t i = 0; old && i < block->lines; i++)
        give_key(block->hashes[i], false);
    if (!old && calyx_builder_exclude_hashes(builders[0], block->hashes,
                                             block->lines, &why) != CALYX_OK)
        fail_with(&why);
    return true;
}

static void include_key(void *context, const calyx_key *key, bool found) {
    (void)context, (void)found;
    give_key(calyx_hash(hasher, key->data, key->size), true);
}

static void open_old(calyx_options *want) {
    calyx_info is;
    if (!update) return;
    if (wanted.hash || wanted.seed || wanted.rate > 0)
        fail("--update takes the hash and the seed of %s, and no --rate",
             update);
    old = filter_open_whole(update);
    calyx_info_of(old, &is);
    if (!is.universe)
        fail_at(update, 0, "it is not exact: build it by --exact");
    key_options_use(1, &update, &old);
    want->hash = is.hash;
    want->seed = is.seed;
    want->seeded = true;
}

static void apply_update(void) {
    calyx_filter *made;
    calyx_error why;
    if (!old) return;
    if (calyx_update(old, filters[0], known_keys_count(included), &made,
                     &why) != CALYX_OK)
        fail_with(&why);
    calyx_free(filters[0]);
    calyx_free(old);
    filters[0] = made;
}

static void expect_in_universe(void) {
    char text[TEXT_SIZE];
    const uint64_t missing = name_keys_not_found(included, "the universe");
    if (missing == 0) return;
    if (!force_include)
        fail("%s of the included keys are not in the universe; with "
             "--force-include they join it",
             count_text(missing, text));
    warn("%s included keys joined the universe", count_text(missing, text));
}

static void make_exact(calyx_options want, int count, char **files,
                       struct input_totals *totals) {
    static const struct stages reading = {.in_parallel = exclude_others,
                                          .in_order = exclude_in_order};
    want.exact = true;
    if (!wanted.kind) want.kind = "ribbon";
    build_memory /= 2;
    expect_one_standard_input(&universe, count, files);
    open_old(&want);
    make_builders(want);
    included = known_keys_read(hasher, build_memory, count, files);
    *totals =
        run_pipeline(&reading, (int)universe.count, (char **)universe.text);
    expect_in_universe();
    known_keys_visit(included, include_key, NULL);
    finish_builders();
    apply_update();
    known_keys_free(included);
}

static void check_exact(void) {
    if (exact != (universe.count > 0))
        fail("--exact needs --universe, the list of all keys that will be "
             "queried, and --universe needs --exact");
    if ((force_include || update) && !exact)
        fail("%s goes with --exact", update ? "--update" : "--force-include");
    if (exact && (shards || part.count || universal || wants_foreign() ||
                  wanted.keys || has_size()))
        fail("--exact makes one whole filter, whose size follows from its "
             "keys: it takes no --keys, --memory, --bits, --shards, --part, "
             "--all or --layout");
}

/* ---- The verb ----------------------------------------------------------- */

/* Never happens by chance, but an adversary who chooses the keys may cause it.
 */
static void warn_of_fullest_shard(void) {
    calyx_info info;
    double most = 1;
    uint64_t fullest = shards;
    for (uint64_t i = first_filter(); shards && i < end_filter(); i++) {
        calyx_info_of(filters[i], &info);
        const double load = (double)info.items / (double)info.capacity;
        if (load > most) fullest = i;
        if (load > most) most = load;
    }
    if (fullest == shards) return;
    char *const file = shard_file(out, fullest, shards);
    calyx_describe(filters[fullest], &info);
    warn_if_overfull(file, &info);
    free(file);
}

static void report_result(const struct input_totals *totals) {
    calyx_info info = describe_all(false); /* more takes reading it */
    if (wants_report() || info.items > info.capacity) info = describe_all(true);
    warn_if_overfull(out ? out : "the filter", &info);
    if (info.items <= info.capacity) warn_of_fullest_shard();
    const struct figure figures[] = {
        {"keys", (double)totals->lines, true},
        {"fresh", (double)info.items, true},
        {"filter_bytes", (double)info.bytes, true},
        {"expected_rate", info.fpr_now, false},
    };
    report(totals, figures, sizeof figures / sizeof *figures);
}

/* Shards have names of their own; without them there is one file. */
static void for_each_file(void (*act)(const char *file, calyx_filter *f)) {
    if (!shards) act(out, filters[0]);
    for (uint64_t i = first_filter(); shards && i < end_filter(); i++) {
        char *const file = shard_file(out, i, shards);
        act(file, filters[i]);
        free(file);
    }
}

static void expect_file(const char *file, calyx_filter *f) {
    (void)f;
    expect_output(file, force);
    if (file && force) lock_file(file); /* shards: only to see that it can be */
}

static void save(const char *file, calyx_filter *f) {
    filter_save(f, file, force);
}

/* The universal set: a filter with every bit set, of any kind whose bits are
 * given as they are. */
static void make_universal(calyx_options want, int count) {
    uint8_t ones[64];
    memset(ones, 0xFF, sizeof ones);
    if (count || shards || wanted.keys || wanted.rate > 0 || has_size())
        fail("--all makes a filter that has every key: it takes no files, nor "
             "--keys, --rate, --memory, --bits or --shards");
    const char *const kind = want.kind ? want.kind : calyx_kinds()[0];
    const uint32_t can = calyx_kind_can(kind);
    if (can && (!(can & CALYX_CAN_INTERSECT) || (can & CALYX_CAN_REMOVE)))
        fail("--all: expected a kind of plain bits, such as %s, found %s",
             calyx_kinds()[0], kind);
    want.fpr = 0.999999;
    want.probes = want.probes ? want.probes : 8;
    calyx_error why;
    if (calyx_from_bits(&want, ones, sizeof ones, &filters[0], &why) !=
        CALYX_OK)
        fail_with(&why);
    label_new(filters[0]);
}

/* What is given is for all shards together. */
static void share_size(void) {
    const bool given = has_size();
    wanted.memory /= shards;
    wanted.bits /= shards;
    if (given && !has_size())
        fail("--memory or --bits is too little for %" PRIu64 " shards", shards);
}

static bool is_planned(void) {
    return wanted.keys || (has_size() && wanted.rate > 0);
}

static void expect_keys_of_all(void) {
    if (is_planned()) return;
    fail("--part needs --keys, the number of distinct keys of all parts: all "
         "parts must come to the same size; 'calyx hash --count' counts them");
}

static int run_part(int count, char **files) {
    if (!out || !is_plain_name(out))
        fail("--part makes a file for 'calyx join': name it by -o, without .gz "
             "or .zst");
    if (universal) fail("--part does not go with --all");
    expect_keys_of_all();
    for_each_file(expect_file);
    const double started = seconds_now();
    const struct part_job job = {.part = part,
                                 .want = options_wanted(),
                                 .memory_bytes = build_memory,
                                 .folder = spill_folder(),
                                 .out = out,
                                 .replace = force};
    struct input_totals totals = build_part(&job, count, files);
    totals.seconds = seconds_now() - started;
    const struct figure figures[] = {{"keys", (double)totals.lines, true}};
    report(&totals, figures, 1);
    return EXIT_YES;
}

static void build_foreign(int count, char **files) {
    const double started = seconds_now();
    struct input_totals totals;
    const bool twice = foreign_counts_first();
    if (twice) note_files(count, files);
    struct foreign_file *const f = foreign_build(count, files, &totals);
    if (twice) expect_same_files();
    foreign_file_save(f, out, force);
    totals.seconds = seconds_now() - started;
    foreign_report(f, &totals);
    foreign_file_free(f);
}

static void expect_one_shard(const calyx_options *want) {
    if (part.count != shards)
        fail("--part I/N and --shards N: expected the same N, for one of the "
             "shards; found %u and %" PRIu64,
             part.count, shards);
    if (universal) fail("--part does not go with --all");
    if (takes_keys_one_by_one(want)) expect_keys_of_all();
}

static int run(int count, char **files) {
    check_exact();
    if (allow_lists.count && (part.count || wants_foreign()))
        fail("--allow goes with a whole filter of calyx, not with --part or "
             "--layout: %s",
             part.count ? "use 'calyx allow' when the parts are joined"
                        : "their files have no room for a list");
    if (part.count && !shards) return run_part(count, files);
    if (shards && (!out || strcmp(out, "-") == 0))
        fail("--shards makes several files; name them by -o NAME.calyx");
    if ((!out || strcmp(out, "-") == 0) && isatty(STDOUT_FILENO))
        fail("a filter is nothing for a terminal; name a file with -o");
    for_each_file(expect_file);
    if (wants_foreign() && (shards || universal))
        fail("--layout does not go with --shards or --all");
    if (wants_foreign()) {
        build_foreign(count, files);
        return EXIT_YES;
    }
    if (shards) share_size();

    const calyx_options want = options_wanted();
    if (part.count) expect_one_shard(&want);
    const double started = seconds_now();
    read_lists(&want);
    if (universal) {
        make_universal(want, count);
        set_lists();
        for_each_file(save);
        free_filters();
        return EXIT_YES;
    }
    struct input_totals totals;
    if (exact) {
        make_exact(want, count, files, &totals);
    } else if (is_planned() && takes_keys_one_by_one(&want)) {
        make(want);
        totals = read_keys(count, files);
    } else if (!make_guessed(want, count, files, &totals) &&
               !make_sketched(want, count, files, &totals)) {
        make_built(want, count, files, &totals);
    }
    set_lists();
    for_each_file(save);
    totals.seconds = seconds_now() - started;
    report_result(&totals);
    free_filters();
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {'o', "output", "FILE",
         "Write the filter to FILE; the default is standard output. The file "
         "appears when it is complete. It is compressed if the name ends in "
         ".gz or .zst.",
         parse_text, &out},
        {0, "force", NULL, "Replace FILE if it exists.", parse_flag, &force},
        {0, "all", NULL,
         "Make the universal set instead, which says yes to every key: 64 "
         "bytes that a service can fall back to.",
         parse_flag, &universal},
        {0, "shards", "N",
         "Make N filters, at most 1024, each for its share of the keys: -o "
         "ids.calyx makes ids.0-of-16.calyx and so on. 'calyx push --shards' "
         "distributes them over a cluster.",
         parse_shards, &shards},
        {0, "part", "I/N",
         "Build only part I of N, for 'calyx join': the range of the filter "
         "for 1/N of the keys, in 1/N of the memory. FILEs are files of hashes "
         "of this part, or lines, of which the lines of other parts are "
         "skipped. "
         "Needs --keys, the same for all parts. With --shards N, build only "
         "shard I - 1, in the same way; shards need no joining.",
         parse_part, &part},
        {0, "allow", "LIST",
         "Put the lines of LIST, known false positives, on the allow list of "
         "the filter, except lines that are among the keys; 'calyx help "
         "allow' describes it. Its lines have the form of the input.",
         parse_texts, &allow_lists},
        {0, "exact", NULL,
         "Make a filter that is never wrong for the keys of --universe; the "
         "FILEs list those that it has. See below.",
         parse_flag, &exact},
        {0, "universe", "LIST",
         "All keys that will be queried. May be given several times; - is "
         "standard input.",
         parse_texts, &universe},
        {0, "force-include", NULL,
         "With --exact, take included keys that are not in the universe into "
         "it. Otherwise they are an error, which names the first ten.",
         parse_flag, &force_include},
        {0, "update", "OLD",
         "With --exact, put a layer for the keys whose answer has changed over "
         "the layers of OLD, instead of building all anew: then 'calyx diff' "
         "from "
         "OLD is small.",
         parse_text, &update},
        {'S', "build-memory", "SIZE",
         "Use at most SIZE of memory for hashes that wait until all keys are "
         "known, and up to 64 MiB more for threads and buffers. The default is "
         "160MiB, for 16 million keys; others wait in a temporary file.",
         parse_size, &build_memory},
        {'T', "temporary", "FOLDER",
         "Create temporary files in FOLDER; the default is $TMPDIR, or /tmp. "
         "They have no names, and disappear with the process.",
         parse_spill_folder, NULL},
        FILE_LIST_OPTION,
    },
};

const struct verb verb_build = {
    .name = "build",
    .summary = "build a Bloom filter from lines",
    .synopsis = "[-o OUT.calyx] [-n KEYS] [-p RATE] [OPTION]... [FILE]...",
    .prose =
        {"Reads lines from the files, or from standard input if there is none "
         "or it is '-', and builds a filter of them. Input compressed by gzip "
         "or zstd is decompressed, whatever its name.",
         "The size of a filter depends on the number of distinct keys and on "
         "the rate. You need not give that number. For plain files of 16 MiB "
         "and more, calyx estimates the number of lines from a sample and "
         "makes the filter for as many keys. If there are fewer distinct keys, "
         "so that the filter would be over 4 percent too large, or more, so "
         "that it would miss its rate, it reads the files again: once to count "
         "the distinct keys by a sketch (HyperLogLog, 64 KiB), and once to "
         "make "
         "the filter for 1.2 percent more, three times the standard error.",
         "For any other input, and if that filter does not fit, either, calyx "
         "stores a hash of 8 bytes for each line, the first 16 million in "
         "memory and the rest in a temporary file, sorts them, and makes the "
         "filter for as many as are different.",
         "A filter of kind bucket is always made in this way. It gets each key "
         "once, even if lines repeat it, so that one 'calyx remove' removes "
         "it; 'calyx add' of a key that is there adds a copy. Kind counting "
         "counts each line.",
         "A filter of kind ribbon is made in this way, too, and -n is not "
         "needed. It cannot be added to: build it anew, or put new keys into a "
         "second filter, and query both, as in 'calyx check -f big.calyx -f "
         "new.calyx'.",
         "It is an error if a file shrinks, is overwritten or is replaced "
         "while it is read; then no filter is made. A file that only grows, "
         "such as a log, is read to its end.",
         "With --keys nothing is estimated, and hashes are stored only for "
         "kinds bucket and ribbon. If more keys "
         "come, the rate rises, and a warning says how far.",
         "The options for keys are stored with the filter. Verbs that read "
         "lines for it later use them, unless others are given.",
         "With --shards, the shards together take as much memory as one filter "
         "would, and up to one percent more. doc/COMMANDS.md says which shard "
         "a key belongs to.",
         "With --part, several machines build one filter: 'calyx hash' sorts "
         "hashes into ranges, each machine builds one range, and 'calyx join' "
         "copies them into the file that one machine would have made. This "
         "works for kinds in which a key has one place: line, split and "
         "ribbon. A key of line2, flat or counting has bits in several places, "
         "and one of bucket or distinct may move. For ribbon, give the exact "
         "number of keys, which 'calyx hash --count' prints: with another one "
         "the filter is as right, but larger.",
         "The same lines, in the same order, and the same options make the "
         "same file, whatever the number "
         "of threads. So do the same lines in another order, except for plain "
         "files of 16 MiB and more: there the number of keys that 'calyx info' "
         "shows depends on the order, and if hardly any line is repeated, the "
         "size by a few percent.",
         "With --exact, no answer is wrong for a key of the universe: "
         "certificates, customers, the ids of a table. The filter, of kind "
         "ribbon, has two stages: a filter of the included keys, whose rate "
         "makes the whole as small as it can be, and one bit for each key of "
         "the universe that passes it. A million keys of a hundred million "
         "take 8.9 bits each. Keys outside of the universe pass at a rate that "
         "'calyx info' and 'calyx plan --universe' show, or at --rate if that "
         "is lower. If over a third are included, one bit for each key of the "
         "universe is the smallest. The included keys are in memory while the "
         "universe is read, in half of -S; the universe may be of any size. "
         "'calyx verify --universe' proves every answer. With --update a "
         "thousand changes of a million in a hundred million make 3 kB for "
         "'calyx patch'. "
         "Each update costs a lookup one layer more, and after some 20 of them "
         "a new filter is due.",
         "With --all it reads nothing and makes the universal set: a filter "
         "that says yes to every key. Put it where a filter is missing or "
         "being rebuilt, in a program or with 'calyx push' in a server: then "
         "every lookup reaches the store, and no key is turned away. The empty "
         "set is 'calyx build -n 1 /dev/null'."},
    .common = {"output", "keys", "rate", "kind", "memory", "growth", "force",
               "fields", "csv", "header"},
    .groups = {&options, &new_filter_group, &layout_group, &key_group,
               &secret_group, &work_group, &progress_group},
    .examples =
        {{"calyx build -o words.calyx words.txt",
          "all different lines of a file, at 1%"},
         {"calyx build -p 1e-6 -o pwned.calyx hashes/*.txt.zst",
          "one in a million, from compressed files"},
         {"calyx build --csv -k 2,5 --memory 64MiB -o people.calyx a.csv",
          "keys of two columns, and a size to keep to"},
         {"calyx build --jsonl user.id --missing=skip -o users.calyx log.jsonl",
          "a field of each JSON object that has it"},
         {"zcat list.gz | calyx build --kind ribbon -p 1% -o list.calyx",
          "the smallest filter, of a list that never changes"},
         {"calyx build --exact --universe all.txt -o revoked.calyx revoked.txt",
          "never wrong for a line of all.txt"},
         {"calyx build --part 3/16 -n 1e9 -o 3.part host*/3-of-16.hashes",
          "one of 16 parts, for 'calyx join'"},
         {"calyx build --layout guava -n 1M -p 1% -o ids.calyx ids.txt",
          "a filter for Guava; 'calyx convert --to guava' writes its file"},
         {"calyx build --layout 'murmur3-32 seeds 41..47 mod 5000000 msb' -o "
          "seen.calyx urls.txt",
          "the bits that a program of your own would set"}},
    .most = -1,
    .run = run,
};
