/*
 * calyx verify: is a filter what it should be? Its bytes against its checksums;
 * and, beside a list, that it lost none of the keys, and lets no more
 * absent_keys pass than was promised.
 *
 * A measured rate differs from the true one by chance. It is called wrong only
 * if chance would do as much less than once in 10^9 times, by Chernoff's bound:
 * of n absent keys that pass with odds p each, a share q > p or more does so
 * with odds of at most e^(-n D), where D = q ln(q/p) + (1-q) ln((1-q)/(1-p)).
 */
#include <inttypes.h>
#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exact/known_keys.h"
#include "files/filter_file.h"
#include "files/foreign_file.h"
#include "frame/file_list.h"
#include "http/http_filter.h"
#include "input/pipeline.h"
#include "input/source.h"

static struct texts lists;
static struct texts universe, included; /* of an exact filter */
static uint64_t absent_keys;

/* ---- The bytes ---------------------------------------------------------- */

/* All bytes of a source, where calyx_view wants them. */
static uint8_t *read_all(struct byte_source *source, size_t *size) {
    enum { ALIGNMENT = 64, FIRST = 1 << 20 };
    size_t room = FIRST;
    uint8_t *bytes = aligned_alloc(ALIGNMENT, room);
    *size = 0;
    while (bytes) {
        const ssize_t n = source_read(source, bytes + *size, room - *size);
        if (n < 0)
            fail_at(source_name(source), 0, "%s", source_trouble(source));
        if (n == 0) return bytes;
        *size += (size_t)n;
        if (*size < room) continue;
        room *= 2;
        uint8_t *const larger = aligned_alloc(ALIGNMENT, room);
        if (larger) memcpy(larger, bytes, *size);
        free(bytes);
        bytes = larger;
    }
    fail("out of memory: cannot allocate %zu bytes", room);
}

/* What is verified: one of the two. */
static const calyx_filter *filter;
static const struct foreign_file *foreign;

/* A mapped filter has its checksums at hand; one that was read has not, and one
 * that was left unsealed would look the same. NULL: it is `foreign`. */
static calyx_filter *open_with_sums(const char *path) {
    struct byte_source *const source = source_open(path);
    foreign = foreign_file_try(source);
    if (foreign) return NULL;
    if (strcmp(path, "-") != 0 && source_is_plain_file(source)) {
        source_close(source);
        return filter_open(path);
    }
    source_expect_filter(source);
    size_t size;
    static const uint8_t *bytes; /* they must stay as long as the filter */
    bytes = read_all(source, &size);
    const calyx_open_options how = {.key = secret_key()};
    calyx_filter *f;
    calyx_error why;
    if (calyx_view(bytes, size, &how, &f, &why) != CALYX_OK)
        fail_at(source_name(source), 0, "%s", why.text);
    source_close(source);
    return f;
}

/* ---- The keys ----------------------------------------------------------- */

static uint64_t missing;
static _Atomic uint64_t listed; /* of these, those on the allow list */
enum { MOST_NAMED = 10 };

static void name_missing(struct text_block *block, uint64_t number) {
    char text[64];
    const int size = snprintf(text, sizeof text, ":%" PRIu64 "\n", number);
    if (block->selected++ >= MOST_NAMED) return;
    block_output(block, "  missing     ", 14);
    block_output(block, block->file, strlen(block->file));
    block_output(block, text, (size_t)size);
}

static void look_for(struct text_block *block, struct key_batch *batch) {
    bool found[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        if (foreign)
            foreign_file_has_many(foreign, batch->keys, batch->count, found);
        else
            calyx_has_many(filter, batch->keys, batch->count, found);
        for (size_t i = 0; i < batch->count; i++) {
            if (found[i]) continue;
            name_missing(block, batch->numbers[i]);
            listed += filter && calyx_is_allowed(filter, batch->keys[i].data,
                                                 batch->keys[i].size);
        }
        block->lines += batch->count;
    }
}

static bool count_missing(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    if (missing) block->out_size = 0; /* enough were named */
    missing += block->selected;
    return true;
}

static uint64_t look_for_keys(void) {
    fflush(stdout); /* the stream has its own way there */
    const struct stages stages = {.in_parallel = look_for,
                                  .in_order = count_missing,
                                  .numbered = true,
                                  .output = output_open(NULL, false)};
    const struct input_totals totals =
        run_pipeline(&stages, (int)lists.count, (char **)lists.text);
    output_close(stages.output);
    char lines[TEXT_SIZE], lost[TEXT_SIZE];
    printf("  keys        %s, %s missing\n", count_text(totals.lines, lines),
           missing ? count_text(missing, lost) : "none");
    return totals.lines;
}

/* ---- Absent keys -------------------------------------------------------- */

/* Enough for the rate to show, in seconds. */
static uint64_t absent_count(double promised) {
    if (absent_keys) return absent_keys;
    return (uint64_t)fmin(1e8, fmax(1e6, 100 / promised));
}

/* How many of these keys pass. Their bytes are hashed as they are, whatever
 * --items says. */
static uint64_t count_passing_of(const calyx_key *keys, size_t n) {
    bool found[BATCH];
    uint64_t passed = 0;
    if (filter) return calyx_has_many(filter, keys, n, NULL);
    foreign->filter.layout->has_many(&foreign->filter, keys, n, found);
    for (size_t i = 0; i < n; i++) passed += found[i];
    return passed;
}

/* Keys that no line can be, since they have a newline and a NUL in them. */
static uint64_t count_passing(uint64_t n) {
    enum { SIZE = 2 + sizeof(uint64_t) };
    char bytes[BATCH][SIZE];
    calyx_key keys[BATCH];
    uint64_t passed = 0;
    for (uint64_t number = 0; number < n;) {
        size_t count = 0;
        for (; count < BATCH && number < n; count++, number++) {
            memcpy(bytes[count], "\n", 2);
            memcpy(bytes[count] + 2, &number, sizeof number);
            keys[count] = (calyx_key){bytes[count], SIZE};
        }
        passed += count_passing_of(keys, count);
    }
    return passed;
}

static double part(double share, double of) {
    return share > 0 ? share * log(share / of) : 0;
}

/* Is it beyond chance that `passed` keys pass, if the rate is right? */
static bool is_beyond_chance(uint64_t passed, uint64_t n, double p) {
    const double q = (double)passed / (double)n;
    if (q <= p) return false;
    return (double)n * (part(q, p) + part(1 - q, 1 - p)) > log(1e9);
}

static bool query_absent_keys(const calyx_info *is) {
    const uint64_t n = absent_count(is->fpr);
    const uint64_t passed = count_passing(n);
    const bool beyond = is_beyond_chance(passed, n, is->fpr);
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];
    printf("  absent keys %s of %s pass: %s\n", count_text(passed, a),
           count_text(n, b), rate_text((double)passed / (double)n, c));
    printf("  rate        %s promised, %s expected at this fill\n",
           rate_text(is->fpr, a), rate_text(is->fpr_now, b));
    return !beyond;
}

/* ---- Filters of other programs ------------------------------------------- */

/* What textbooks say of n keys, where a key sets k of m bits. */
static double formula(double m, double k, double n) {
    return pow(-expm1(k * n * log1p(-1 / m)), k);
}

/* Of independent positions the share of set bits to the power k passes. Short
 * double hashing makes a little more, which is no bug. */
static const double tolerance = 1.25;

static void expect_rate(const char *path, uint64_t lines) {
    const struct foreign_facts is = foreign_file_describe(foreign);
    const uint64_t most = absent_keys ? UINT64_MAX : 10000000; /* seconds */
    const uint64_t wanted = absent_count(is.rate_now);
    const uint64_t n = wanted < most ? wanted : most;
    const uint64_t passed = count_passing(n);
    const double rate = (double)passed / (double)n;
    const double keys = lists.count ? (double)lines : is.distinct;
    const double said = is.distinct > 0
                            ? formula((double)is.bits, (double)is.probes, keys)
                            : is.rate_now;
    char a[TEXT_SIZE], b[TEXT_SIZE], c[TEXT_SIZE];
    printf("  absent keys %s of %s pass: %s\n", count_text(passed, a),
           count_text(n, b), rate_text(rate, c));
    if (is.distinct > 0)
        printf("  formula     %s for %s%s keys\n", rate_text(said, a),
               lists.count ? "" : "about ", count_text((uint64_t)keys, b));
    printf("  fill        %s of the bits are set, by which %s pass\n",
           rate_text((double)is.set / (double)is.bits, a),
           rate_text(is.rate_now, b));
    fflush(stdout);
    if (is_beyond_chance(passed, n, fmin(1, tolerance * is.rate_now)))
        fail_at(path, 0, "%s: %s of absent keys pass, the formula says %s",
                is.note ? is.note
                        : "the positions of a key depend on each other",
                rate_text(rate, a), rate_text(said, b));
    if (is.rate > 0 &&
        is_beyond_chance(passed, n, fmin(1, tolerance * is.rate)))
        fail_at(path, 0,
                "more absent keys pass than the rate allows, which is %s: it "
                "holds more keys than it was made for",
                rate_text(is.rate, a));
}

static int verify_foreign(const char *path) {
    const struct foreign_facts is = foreign_file_describe(foreign);
    uint64_t lines = 0;
    printf("%s\n", path);
    if (foreign->has_sum) printf("  checksums   right\n");
    printf("  layout      %s%s%s\n", foreign->filter.layout->name,
           *is.variant ? ", " : "", is.variant);
    if (lists.count) lines = look_for_keys();
    if (missing)
        fail_at(path, 0,
                "%" PRIu64 " keys of the list are not in it; are the layout, "
                "--items and the options for keys as in the program?",
                missing);
    expect_rate(path, lines);
    return EXIT_YES;
}

/* ---- Every answer of an exact filter ------------------------------------- */

static struct known_keys *known;

/* What has a wrong answer is selected. */
static void compare_answers(struct text_block *block, struct key_batch *batch) {
    bool found[BATCH_ROOM], wanted[BATCH_ROOM];
    uint64_t hashes[BATCH_ROOM];
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        calyx_hash_many(filter, batch->keys, batch->count, hashes);
        calyx_has_many(filter, batch->keys, batch->count, found);
        known_keys_find(known, batch->keys, hashes, batch->count, wanted);
        for (size_t i = 0; i < batch->count; i++)
            block->selected += found[i] != wanted[i];
        block->lines += batch->count;
    }
}

static bool count_wrong(struct text_block *block, struct key_batch *batch) {
    (void)batch;
    missing += block->selected;
    return true;
}

static void verify_exact(const char *path) {
    const struct stages stages = {.in_parallel = compare_answers,
                                  .in_order = count_wrong};
    char a[TEXT_SIZE], b[TEXT_SIZE];
    expect_one_standard_input(&universe, (int)included.count,
                              (char **)included.text);
    known = known_keys_read(filter, UINT64_MAX / 2, (int)included.count,
                            (char **)included.text);
    const struct input_totals totals =
        run_pipeline(&stages, (int)universe.count, (char **)universe.text);
    const uint64_t outside = name_keys_not_found(known, "the universe");
    printf("  universe    %s keys, %s included: %s wrong\n",
           count_text(totals.lines, a), count_text(known_keys_count(known), b),
           missing ? "some answers are" : "no answer is");
    known_keys_free(known);
    fflush(stdout);
    if (missing)
        fail_at(path, 0, "%" PRIu64 " of %" PRIu64 " answers are wrong",
                missing, totals.lines);
    if (outside)
        fail_at(path, 0,
                "%" PRIu64 " of the included keys are not in the universe",
                outside);
}

/* ---- The verb ----------------------------------------------------------- */

/* The bytes alone: a lookup of every key of a list would read most of them once
 * more. */
static int verify_url(const char *url) {
    if (lists.count)
        fail_at(url, 0,
                "--against: expected a file: download it, or query the list by "
                "'calyx check -v -f URL'");
    struct http_filter *const f = http_filter_open(url, secret_key(), true);
    http_filter_verify(f);
    http_filter_close(f);
    printf("%s\n  checksums   right\n", url);
    return EXIT_YES;
}

static int run(int count, char **operands) {
    (void)count;
    const char *const path = operands[0];
    if (!universe.count != !included.count)
        fail("--universe and --included go together: all keys, and those that "
             "the filter has");
    if (universe.count && (lists.count || is_http_url(path)))
        fail("--universe goes with a file, without --against");
    if (is_http_url(path)) return verify_url(path);
    calyx_filter *const f = open_with_sums(path);
    calyx_error why;
    if (foreign && universe.count)
        fail_at(path, 0, "--universe wants an exact filter of calyx");
    if (foreign) return verify_foreign(path);
    if (calyx_verify(f, &why) != CALYX_OK) fail_at(path, 0, "%s", why.text);
    printf("%s\n  checksums   right\n", path);
    if (universe.count) {
        filter = f;
        key_options_use(1, &path, &f);
        verify_exact(path);
    }
    if (!lists.count) {
        calyx_free(f);
        return EXIT_YES;
    }

    filter = f;
    key_options_use(1, &path, &f);
    calyx_info is;
    calyx_describe(f, &is);
    look_for_keys();
    const bool keeps_rate = query_absent_keys(&is);
    fflush(stdout);
    if (listed)
        fail_at(path, 0,
                "it does not find %" PRIu64 " keys of the list, %" PRIu64
                " of them because they are on its allow list; 'calyx allow "
                "--remove' takes keys off it",
                missing, (uint64_t)listed);
    if (missing)
        fail_at(path, 0,
                "%" PRIu64 " keys of the list are not in it; were they added "
                "with the same options for keys?",
                missing);
    if (!keeps_rate && is.fpr_now > is.fpr)
        fail_at(path, 0,
                "more absent keys pass than the rate allows: it holds more "
                "keys than it was made for");
    if (!keeps_rate)
        fail_at(path, 0,
                "more absent keys pass than the rate allows; by chance as many "
                "do less than once in 10^9 times");
    calyx_free(f);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "against", "LIST",
         "Also look up every key of LIST, and query absent keys. May be given "
         "several times; - is standard input.",
         parse_texts, &lists},
        {0, "universe", "LIST",
         "Prove an exact filter: look up all keys of LIST, and compare each "
         "answer with --included. May be given several times.",
         parse_texts, &universe},
        {0, "included", "LIST",
         "The keys that the filter has, which are held in memory. May be given "
         "several times.",
         parse_texts, &included},
        {0, "absent", "COUNT",
         "Query COUNT absent keys. The default is a million, and more if the "
         "rate is low, up to a hundred million.",
         parse_positive, &absent_keys},
    },
};

const struct verb verb_verify = {
    .name = "verify",
    .summary =
        "check the bytes of a filter, and that it has the keys of a list",
    .synopsis = "[--against LIST]... [OPTION]... FILE",
    .prose =
        {"Checks every byte of the filter against its checksum. With --against "
         "it also looks up every key of the list, none of which may be "
         "missing, and measures the rate with keys that were never added.",
         "FILE may be a URL, http:// or https://, which is read whole. Up to "
         "ten lines with missing keys are printed. More keys may not pass than "
         "the filter's rate allows.",
         "The absent keys are generated, and contain a newline and a NUL, "
         "so that no list has them. By chance a few more may pass than "
         "the rate says. That is an error only if the odds of it are "
         "below 1 in 10^9 (a bound on the binomial distribution).",
         "Of a filter of another program, also of raw bits that --layout "
         "describes, it measures the rate even without --against, and "
         "compares it with the textbook's formula. If over 25 percent "
         "more absent keys pass than by the bits that are set, the "
         "positions of a key depend on each other: an error, which says "
         "why if that is known."},
    .common = {"against", "jobs"},
    .groups = {&options, &owned_group, &key_group, &secret_group, &work_group,
               &progress_group},
    .examples = {{"calyx verify seen.calyx", "is the file undamaged?"},
                 {"calyx verify seen.calyx --against urls.txt",
                  "does it have every line, and does it keep its rate?"},
                 {"calyx verify --universe all.txt --included revoked.txt "
                  "revoked.calyx",
                  "is every answer of an exact filter right?"},
                 {"calyx verify --layout 'fnv1a double 7 mod 1000' bits.raw",
                  "how many absent keys pass a filter of your own?"}},
    .status = "0 if everything is right, 2 if not.",
    .least = 1,
    .most = 1,
    .run = run,
};
