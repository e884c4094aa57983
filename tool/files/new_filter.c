#include "files/new_filter.h"

#include <string.h>
#include <sys/random.h>

#include "files/filter_file.h"
#include "frame/passwords.h"
#include "input/key_options.h"

struct wanted wanted;

static void parse_growth(const struct verb_option *o, const char *value) {
    if (!rate_from(value, &wanted.growth) ||
        !(wanted.growth >= 1.25 && wanted.growth <= 16))
        fail("--%s: expected a factor from 1.25 to 16, found '%s'", o->name,
             value);
}

static void parse_probes(const struct verb_option *o, const char *value) {
    uint64_t number;
    if (!count_from(value, &number) || number == 0 || number > UINT32_MAX)
        fail("--%s: expected a number of bits such as 6, found '%s'", o->name,
             value);
    wanted.probes = (uint32_t)number;
}

const struct group new_filter_group = {
    "A new filter",
    {
        {'n', "keys", "KEYS",
         "Plan for KEYS distinct keys, such as 10M or 1e9. If more come, the "
         "rate rises. Without it, 'calyx build' estimates or counts them, and "
         "the rate is still kept.",
         parse_positive, &wanted.keys},
        {'p', "rate", "RATE",
         "The false-positive rate: 0.01, 1%, 1e-6 or 1/1000000. The default is "
         "1%.",
         parse_rate, &wanted.rate},
        {0, "memory", "SIZE",
         "Make the filter this large, such as 10M or 64KiB, with the rate that "
         "results; or with --rate, the number of keys. K, M and G are powers "
         "of 1000, Ki, Mi and Gi of 1024.",
         parse_size, &wanted.memory},
        {0, "bits", "M",
         "The same in bits: m in the formulas, such as 1000 or 1e10. A flat "
         "filter has exactly M bits, other kinds as many whole blocks as fit; "
         "counters come on top. Without --kind, the kind is the first that "
         "makes use of 99 % of the bits.",
         parse_positive, &wanted.bits},
        {0, "kind", "KIND",
         "The kind of filter: line (the default, unless another is the first "
         "that keeps the rate), line2 for rates below 0.1%, split for Parquet, "
         "flat as in textbooks, distinct to grow far, bucket to be able to "
         "remove keys, counting to remove keys and intersect, ribbon for 30 % "
         "less memory if keys never change. 'calyx --version' lists all kinds.",
         parse_text, &wanted.kind},
        {0, "probes", "N", "Bits to set for a key, instead of the best number.",
         parse_probes, NULL},
        {0, "growth", "FACTOR",
         "Let the filter grow when more keys come than planned, to FACTOR "
         "times the keys, from 1.25 to 16.",
         parse_growth, NULL},
        {0, "strict", NULL, "Report an error when more keys come than planned.",
         parse_flag, &wanted.strict},
        {0, "hash", "HASH",
         "The hash of the keys: xxh3 (the default), xxh64, murmur3 or fnv1a; "
         "siphash with --key-file.",
         parse_text, &wanted.hash},
        {0, "seed", "SEED",
         "Seed of the hash: a number, or 'random'. The default is 0, except "
         "for a filter that grows and that 'calyx add --create' makes: its "
         "seed is random, so that nobody can choose keys against the filter. "
         "Filters can be merged only if their seeds are equal.",
         parse_text, &wanted.seed},
        {0, "comment", "TEXT", "Store TEXT with the filter.", parse_text,
         &wanted.comment},
    },
};

static uint64_t seed_from_text(void) {
    uint64_t number = 0;
    if (!wanted.seed) return 0;
    if (strcmp(wanted.seed, "random") == 0) {
        if (getrandom(&number, sizeof number, 0) != sizeof number)
            fail_os("the system", "give random bytes");
        return number;
    }
    if (!count_from(wanted.seed, &number))
        fail("--seed: expected a number or 'random', found '%s'", wanted.seed);
    return number;
}

static void look_at_comment(void) {
    enum { MOST_COMMENT = 1000 }; /* bytes; what the library takes */
    if (!wanted.comment) return;
    wanted.comment = as_given(wanted.comment);
    if (strlen(wanted.comment) > MOST_COMMENT)
        fail("--comment: expected at most %d bytes, found %zu", MOST_COMMENT,
             strlen(wanted.comment));
}

bool has_size(void) {
    return wanted.bits || wanted.memory;
}

bool uses_bits(const calyx_info *is, uint64_t bits) {
    return (double)is->bits >= 0.99 * (double)bits;
}

/* Without --kind: the first kind that keeps the rate, or uses the bits, can add
 * and cannot remove; NULL, the default, if there is none. */
static const char *kind_for(calyx_options want) {
    if (want.capacity == 0 && !want.bits) want.capacity = 1000;
    want.growth = wanted.growth;
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        const uint32_t can = calyx_kind_can(*kind);
        if (!(can & CALYX_CAN_ADD) || (can & CALYX_CAN_REMOVE)) continue;
        calyx_info info;
        want.kind = *kind;
        if (calyx_plan(&want, &info, NULL) == CALYX_OK &&
            uses_bits(&info, want.bits))
            return *kind;
    }
    return NULL;
}

calyx_options options_wanted(void) {
    if (wanted.seed && secret_key())
        fail("--seed and --key-file are both given; a key is a seed already");
    if (wanted.bits && wanted.memory)
        fail("--bits and --memory are both given; they say the same");
    if (wanted.keys && wanted.rate > 0 && has_size())
        fail("--keys, --rate and --%s are all given; any two of them decide "
             "the third",
             wanted.bits ? "bits" : "memory");
    if (wanted.growth > 0 && (has_size() || wanted.probes || wanted.strict))
        fail("--growth goes with --keys and --rate, but not with --memory, "
             "--bits, --probes or --strict: a growing filter chooses its own "
             "bits, and is never full");
    look_at_comment();
    const bool decides =
        !wanted.kind && !wanted.memory && (wanted.rate > 0 || wanted.bits);
    const calyx_options goal = {.capacity = wanted.keys,
                                .fpr = wanted.rate,
                                .bits = wanted.bits,
                                .probes = wanted.probes};
    return (calyx_options){.kind = decides ? kind_for(goal) : wanted.kind,
                           .capacity = wanted.keys,
                           .fpr = wanted.rate,
                           .probes = wanted.probes,
                           .growth = wanted.growth,
                           .strict = wanted.strict,
                           .hash = wanted.hash    ? wanted.hash
                                   : secret_key() ? "siphash"
                                                  : NULL,
                           .seed = seed_from_text(),
                           .seeded = true,
                           .key = secret_key()};
}

calyx_options size_wanted(calyx_options want) {
    calyx_error why;
    want.bits = wanted.bits;
    if (wanted.memory && calyx_bits_within(want.kind, wanted.memory, &want.bits,
                                           &why) != CALYX_OK)
        fail_with(&why);
    return want;
}

calyx_filter *new_hasher(const calyx_options *want) {
    calyx_options small = {.kind = want->kind,
                           .capacity = 1,
                           .hash = want->hash,
                           .seed = want->seed,
                           .key = want->key};
    calyx_filter *f;
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&small, &info, &why) != CALYX_OK) fail_with(&why);
    small.kind = NULL; /* of any kind that keys can be added to */
    small.hash = info.hash;
    if (calyx_new(&small, &f, &why) != CALYX_OK) fail_with(&why);
    return f;
}

void label_new(calyx_filter *f) {
    if (wanted.comment) calyx_set_comment(f, wanted.comment);
    key_options_store(f);
}

calyx_filter *new_filter(calyx_options want) {
    calyx_filter *f;
    calyx_error why;
    want = size_wanted(want);
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    label_new(f);
    return f;
}
