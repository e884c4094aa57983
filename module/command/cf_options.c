/*
 * Options of CF.RESERVE and CF.INSERT: RedisBloom's, and ours (ERROR, SEED,
 * LAYOUT). A filter that is made with ERROR or SEED is native; one with words
 * of RedisBloom's layout alone (BUCKETSIZE, MAXITERATIONS) is of that; else a
 * setting says. Streams and AOFs make native ones by BF.RESERVE: so a
 * CF.RESERVE there without LAYOUT is one of RedisBloom's, whatever it says.
 *
 * RedisBloom looks for the options of CF.RESERVE in all words, the key among
 * them, and ignores what it does not know; of the options of CF.INSERT it reads
 * the first letter. Streams and AOFs of it are read like that. Clients have to
 * say words whole, each in its place: a typing error should not be an option.
 *
 * What is not in a stream comes from the settings here. A filter that may be
 * larger there than here must not be full: so one that is made without
 * EXPANSION grows, whatever cf-expansion-factor says here.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command/cf_options.h"

#include "settings.h"

static const char WRONG_ARITY[] = "";

/* RedisBloom 2.8 had no limit, and streams of it have none. */
static long long most_capacity(bool replayed) {
    return replayed ? INT64_MAX : MOST_CF_CAPACITY;
}

struct filter_params cf_default_params(bool replayed) {
    struct filter_params params = default_params();
    const bool native = settings.cf_native && !replayed;
    params.layout = native ? &native_layout : &cuckoo_layout;
    params.removable = true;
    params.unreserved = false;
    params.capacity = (uint64_t)settings.cf_capacity;
    params.expansion = replayed && settings.cf_expansion == 0
                           ? 1
                           : (uint32_t)settings.cf_expansion;
    params.bucket_size = (uint32_t)settings.cf_bucket_size;
    params.iterations = (uint32_t)settings.cf_iterations;
    return params;
}

/* ---- Our words ----------------------------------------------------------- */

enum { ERROR_RATE, SEED, LAYOUT, OUR_OPTIONS };
static const char *const our_options[OUR_OPTIONS] = {"ERROR", "SEED", "LAYOUT"};

static int our_option(RedisModuleString *word) {
    for (int i = 0; i < OUR_OPTIONS; i++)
        if (is_word(word, our_options[i])) return i;
    return OUR_OPTIONS;
}

/* What was said of the layout. */
struct cf_words {
    bool has_layout, is_native; /* LAYOUT, and which        */
    bool native;                /* ERROR or SEED            */
    bool cuckoo;                /* BUCKETSIZE, MAXITERATIONS */
};

/* The word at `at`, if it is one of ours; options begin at `from`. */
static const char *parse_our_option(RedisModuleString **argv, int from, int at,
                                    struct filter_params *params,
                                    struct cf_words *said) {
    const int option = our_option(argv[at]);
    if (option == OUR_OPTIONS) return NULL;
    RedisModuleString *const value = argv[at + 1];
    const char *const wrong =
        check_repeated(our_options[option], argv, from, at);
    if (wrong) return wrong;
    size_t size;
    const char *text = RM_StringPtrLen(value, &size);
    if (option == LAYOUT) {
        said->has_layout = true;
        said->is_native = is_word(value, native_layout.name);
        return said->is_native || is_word(value, cuckoo_layout.name)
                   ? NULL
                   : "ERR bad layout: there are native and redisbloom";
    }
    said->native = true;
    if (option == SEED) {
        params->random_seed = false;
        return parse_seed(text, size, &params->seed)
                   ? NULL
                   : "ERR bad seed: it is a whole number from 0 to "
                     "18446744073709551615";
    }
    switch (parse_error_rate(value, &params->error)) {
        case NO_NUMBER: return "ERR bad error rate";
        case OUT_OF_RANGE:
            return "ERR error rate must be in the range (0.000000, 1.000000)";
        case NUMBER: break;
    }
    return NULL;
}

static const char *choose_layout(const struct cf_words *said,
                                 struct filter_params *params) {
    bool native = !params->layout->is_cuckoo;
    if (said->has_layout)
        native = said->is_native;
    else if (said->native || said->cuckoo)
        native = said->native;
    params->layout = native ? &native_layout : &cuckoo_layout;
    if (native && said->cuckoo)
        return "ERR the native layout has neither BUCKETSIZE nor "
               "MAXITERATIONS; leave them out, or say LAYOUT redisbloom "
               "without ERROR and SEED";
    if (!native && said->native)
        return "ERR the redisbloom layout has neither rates nor seeds; leave "
               "out ERROR and SEED, or say LAYOUT native";
    return NULL;
}

/* ---- CF.RESERVE ---------------------------------------------------------- */

/* In the order in which RedisBloom complains about them. */
enum { ITERATIONS, BUCKET_SIZE, EXPANSION, RESERVE_OPTIONS };
static const struct {
    const char *word, *no_number, *bad_range;
    long long least, most;
} reserve_options[RESERVE_OPTIONS] = {
    {"MAXITERATIONS", "Couldn't parse MAXITERATIONS",
     "MAXITERATIONS: value must be in the range [1, 65535]", 1,
     CUCKOO_MOST_ITERATIONS},
    {"BUCKETSIZE", "Couldn't parse BUCKETSIZE",
     "BUCKETSIZE: value must be in the range [1, 255]", 1,
     CUCKOO_MOST_BUCKET_SIZE},
    {"EXPANSION", "Couldn't parse EXPANSION",
     "EXPANSION: value must be in the range [0, 32768]", 0,
     CUCKOO_MOST_EXPANSION},
};

static int reserve_option(RedisModuleString *word) {
    for (int i = 0; i < RESERVE_OPTIONS; i++)
        if (is_word(word, reserve_options[i].word)) return i;
    return RESERVE_OPTIONS;
}

/* A word among those from `from` on that is no option. */
static const char *unknown_option(RedisModuleString **argv, int argc,
                                  int from) {
    static char text[160];
    for (int at = from; at < argc; at += 2) {
        if (reserve_option(argv[at]) < RESERVE_OPTIONS ||
            our_option(argv[at]) < OUR_OPTIONS)
            continue;
        size_t size;
        const char *word = RM_StringPtrLen(argv[at], &size);
        snprintf(text, sizeof text,
                 "ERR unknown argument '%.*s'; there are BUCKETSIZE, "
                 "MAXITERATIONS, EXPANSION, ERROR, SEED and LAYOUT",
                 size < 32 ? (int)size : 32, word);
        return text;
    }
    return NULL;
}

/* The first word from `from` on, `step` by step, that is this option. */
static const char *parse_option(RedisModuleString **argv, int argc, int from,
                                int step, int option, uint32_t *value) {
    for (int at = from; at + 1 < argc; at += step) {
        if (reserve_option(argv[at]) != option) continue;
        long long n;
        switch (parse_whole(argv[at + 1], reserve_options[option].least,
                            reserve_options[option].most, &n)) {
            case NO_NUMBER: return reserve_options[option].no_number;
            case OUT_OF_RANGE: return reserve_options[option].bad_range;
            case NUMBER: break;
        }
        *value = (uint32_t)n;
        return NULL;
    }
    return NULL;
}

static bool says_layout(RedisModuleString **argv, int argc) {
    for (int at = 3; at + 1 < argc; at += 2)
        if (our_option(argv[at]) == LAYOUT) return true;
    return false;
}

static const char *parse_our_options(RedisModuleString **argv, int argc,
                                     struct filter_params *params) {
    struct cf_words said = {0};
    for (int at = 3; at + 1 < argc; at += 2) {
        const int theirs = reserve_option(argv[at]);
        said.cuckoo |= theirs == ITERATIONS || theirs == BUCKET_SIZE;
        const char *wrong = parse_our_option(argv, 3, at, params, &said);
        if (wrong) return wrong;
    }
    return choose_layout(&said, params);
}

/* `least`: how the error calls the least capacity of a cuckoo filter. */
static const char *set_capacity(long long capacity, bool replayed,
                                const char *least,
                                struct filter_params *params) {
    static char text[80];
    const bool cuckoo = params->layout->is_cuckoo;
    params->capacity = (uint64_t)capacity;
    if (cuckoo ? capacity >= 2 * (long long)params->bucket_size &&
                     capacity <= most_capacity(replayed)
               : capacity >= 1 && capacity <= MOST_CAPACITY)
        return NULL;
    snprintf(text, sizeof text, "Capacity must be in the range [%s, %lld]",
             cuckoo ? least : "1",
             cuckoo ? MOST_CF_CAPACITY : (long long)MOST_CAPACITY);
    return text;
}

const char *cf_parse_reserve(RedisModuleString **argv, int argc, bool replayed,
                             struct options *out) {
    long long capacity;
    if (argc < 3 || argc % 2 == 0) return WRONG_ARITY;
    if (RM_StringToLongLong(argv[2], &capacity) != RM_OK) return "Bad capacity";
    replayed = replayed && !says_layout(argv, argc);
    *out = (struct options){.params = cf_default_params(replayed)};
    struct filter_params *const params = &out->params;
    const char *wrong = replayed ? NULL : unknown_option(argv, argc, 3);
    if (wrong) return wrong;
    uint32_t *const values[RESERVE_OPTIONS] = {
        &params->iterations, &params->bucket_size, &params->expansion};
    for (int i = 0; i < RESERVE_OPTIONS; i++) {
        wrong = parse_option(argv, argc, replayed ? 1 : 3, replayed ? 1 : 2, i,
                             values[i]);
        if (wrong) return wrong;
    }
    if (!replayed) wrong = parse_our_options(argv, argc, params);
    if (wrong) return wrong;
    return set_capacity(capacity, replayed, "2 * BUCKETSIZE", params);
}

/* ---- CF.INSERT ----------------------------------------------------------- */

static bool is_option(RedisModuleString *text, bool replayed,
                      const char *word) {
    if (!replayed) return is_word(text, word);
    size_t size;
    const char *chars = RM_StringPtrLen(text, &size);
    return size > 0 && toupper((unsigned char)chars[0]) == word[0];
}

static const char *parse_capacity(RedisModuleString *value, bool replayed,
                                  struct filter_params *params) {
    long long n;
    return RM_StringToLongLong(value, &n) == RM_OK
               ? set_capacity(n, replayed, "cf-bucket-size * 2", params)
               : "Bad capacity";
}

/* The layout comes first: capacities have other limits in each. */
static const char *parse_insert_layout(RedisModuleString **argv, int argc,
                                       struct options *out) {
    struct cf_words said = {0};
    for (int at = 2; at + 1 < argc && !is_word(argv[at], "ITEMS");
         at += is_word(argv[at], "NOCREATE") ? 1 : 2) {
        const char *wrong = parse_our_option(argv, 2, at, &out->params, &said);
        if (wrong) return wrong;
    }
    out->our_words = said.has_layout || said.native;
    return choose_layout(&said, &out->params);
}

const char *cf_parse_insert(RedisModuleString **argv, int argc, bool replayed,
                            struct options *out) {
    *out = (struct options){.params = cf_default_params(replayed)};
    if (argc < 4) return WRONG_ARITY;
    const char *wrong = replayed ? NULL : parse_insert_layout(argv, argc, out);
    if (wrong) return wrong;
    int at = 2;
    while (at < argc && !is_option(argv[at], replayed, "ITEMS")) {
        const bool ours = !replayed && our_option(argv[at]) < OUR_OPTIONS;
        const bool capacity = is_option(argv[at], replayed, "CAPACITY");
        if (is_option(argv[at], replayed, "NOCREATE")) {
            out->no_create = true;
            at++;
            continue;
        }
        if (!ours && !capacity) return "Unknown argument received";
        if (at + 1 == argc) return WRONG_ARITY;
        if (capacity)
            wrong = parse_capacity(argv[at + 1], replayed, &out->params);
        if (wrong) return wrong;
        at += 2;
    }
    out->items = at + 1;
    return out->items < argc ? NULL : WRONG_ARITY;
}

bool is_reserve_word(RedisModuleString *name) {
    return reserve_option(name) < RESERVE_OPTIONS;
}
