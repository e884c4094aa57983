/*
 * Options of CF.RESERVE and CF.INSERT.
 *
 * RedisBloom looks for those of CF.RESERVE in all words, the key among them,
 * and ignores what it does not know; of those of CF.INSERT it reads the first
 * letter. Streams and AOFs of it are read like that. Clients have to say words
 * whole, each in its place: a typing error should not be an option.
 *
 * What is not in a stream comes from the settings here. A filter that may be
 * larger there than here must not be full: so one that is made without
 * EXPANSION grows, whatever cf-expansion-factor says here.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "command/options.h"
#include "cuckoo/cf.h"
#include "settings.h"

static const char WRONG_ARITY[] = "";

/* RedisBloom 2.8 had no limit, and streams of it have none. */
static long long most_capacity(bool replayed) {
    return replayed ? INT64_MAX : MOST_CF_CAPACITY;
}

struct cuckoo_params cf_default_params(bool replayed) {
    return (struct cuckoo_params){
        .capacity = (uint64_t)settings.cf_capacity,
        .bucket_size = (uint32_t)settings.cf_bucket_size,
        .iterations = (uint32_t)settings.cf_iterations,
        .expansion = replayed && settings.cf_expansion == 0
                         ? 1
                         : (uint32_t)settings.cf_expansion,
    };
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
        if (reserve_option(argv[at]) < RESERVE_OPTIONS) continue;
        size_t size;
        const char *word = RM_StringPtrLen(argv[at], &size);
        snprintf(text, sizeof text,
                 "ERR unknown argument '%.*s'; there are BUCKETSIZE, "
                 "MAXITERATIONS and EXPANSION",
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

const char *cf_parse_reserve(RedisModuleString **argv, int argc, bool replayed,
                             struct cf_options *out) {
    static char text[80];
    long long capacity;
    *out = (struct cf_options){.params = cf_default_params(replayed)};
    struct cuckoo_params *const params = &out->params;
    if (argc < 3 || argc % 2 == 0) return WRONG_ARITY;
    if (RM_StringToLongLong(argv[2], &capacity) != RM_OK) return "Bad capacity";
    const char *wrong = replayed ? NULL : unknown_option(argv, argc, 3);
    if (wrong) return wrong;
    uint32_t *const values[RESERVE_OPTIONS] = {
        &params->iterations, &params->bucket_size, &params->expansion};
    for (int i = 0; i < RESERVE_OPTIONS; i++) {
        wrong = parse_option(argv, argc, replayed ? 1 : 3, replayed ? 1 : 2, i,
                             values[i]);
        if (wrong) return wrong;
    }
    if (capacity < 2 * (long long)params->bucket_size ||
        capacity > most_capacity(replayed)) {
        snprintf(text, sizeof text,
                 "Capacity must be in the range [2 * BUCKETSIZE, %lld]",
                 MOST_CF_CAPACITY);
        return text;
    }
    params->capacity = (uint64_t)capacity;
    return NULL;
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
                                  struct cuckoo_params *params) {
    static char text[80];
    long long n;
    switch (parse_whole(value, 2 * (long long)params->bucket_size,
                        most_capacity(replayed), &n)) {
        case NO_NUMBER: return "Bad capacity";
        case OUT_OF_RANGE:
            snprintf(text, sizeof text,
                     "Capacity must be in the range [cf-bucket-size * 2, %lld]",
                     MOST_CF_CAPACITY);
            return text;
        case NUMBER: break;
    }
    params->capacity = (uint64_t)n;
    return NULL;
}

const char *cf_parse_insert(RedisModuleString **argv, int argc, bool replayed,
                            struct cf_options *out) {
    *out = (struct cf_options){.params = cf_default_params(replayed)};
    if (argc < 4) return WRONG_ARITY;
    int at = 2;
    while (at < argc && !is_option(argv[at], replayed, "ITEMS")) {
        if (is_option(argv[at], replayed, "NOCREATE")) {
            out->no_create = true;
            at++;
        } else if (!is_option(argv[at], replayed, "CAPACITY")) {
            return "Unknown argument received";
        } else if (at + 1 == argc) {
            return WRONG_ARITY;
        } else {
            const char *wrong =
                parse_capacity(argv[at + 1], replayed, &out->params);
            if (wrong) return wrong;
            at += 2;
        }
    }
    out->items = at + 1;
    return out->items < argc ? NULL : WRONG_ARITY;
}

/* ---- Replication --------------------------------------------------------- */

/* RedisBloom would take a key of this name for an option: it gets the header of
 * the empty filter. */
static void replicate_header(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct cuckoo *c) {
    uint8_t header[CUCKOO_HEADER];
    const struct cuckoo empty = {.part = c->part,
                                 .parts = 1,
                                 .bucket_size = c->bucket_size,
                                 .iterations = c->iterations,
                                 .expansion = c->expansion};
    cuckoo_dump_header(&empty, header);
    RM_Replicate(ctx, "CF.LOADCHUNK", "slb", name, 1LL, (const char *)header,
                 sizeof header);
}

void cf_replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                      const struct cuckoo *c,
                      const struct cuckoo_params *params) {
    if (reserve_option(name) < RESERVE_OPTIONS) {
        replicate_header(ctx, name, c);
        return;
    }
    RM_Replicate(
        ctx, "CF.RESERVE", "slclclcl", name, (long long)params->capacity,
        "BUCKETSIZE", (long long)c->bucket_size, "MAXITERATIONS",
        (long long)c->iterations, "EXPANSION", (long long)c->expansion);
}
