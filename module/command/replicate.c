/*
 * Reading. RedisBloom accepts more than we do from clients: options by their
 * first letters, words that mean nothing, and in 2.8 rates above 0.25. What it
 * does not write down are its settings. Two rules make up for that:
 *
 * - A filter that may be larger or better there than here must not be full
 *   here. So NONSCALING is obeyed only if the stream has all that decides about
 *   the size; otherwise the filter grows instead.
 * - A rate above 0.25 is used as it is, as 2.8 does; 8 makes it 0.25. The
 * stream does not say which of them wrote it.
 *
 * Writing. BF.RESERVE and BF.INSERT with every parameter make the same filter
 * in all versions. A filter that they do not make alike goes as it would by
 * BF.SCANDUMP: its header, then a body of zeros.
 */
#include "command/replicate.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command/cf_options.h"
#include "settings.h"

/* ---- Reading ------------------------------------------------------------- */

/* The options of a command; 0 for those that it does not have. */
struct parsed_options {
    double error;
    long long capacity, expansion;
    bool has_expansion, non_scaling;
};

static bool read_rate(RedisModuleString *text, double *rate) {
    return RM_StringToDouble(text, rate) == RM_OK && *rate > 0 && *rate < 1;
}

static bool read_whole(RedisModuleString *text, long long least,
                       long long *number) {
    return RM_StringToLongLong(text, number) == RM_OK && *number >= least;
}

static bool read_expansion(RedisModuleString *text,
                           struct parsed_options *parsed) {
    parsed->has_expansion = true;
    return read_whole(text, 0, &parsed->expansion);
}

static uint32_t settings_growth(void) {
    enum { USUAL = 2 };
    return settings.expansion > 0 ? (uint32_t)settings.expansion : USUAL;
}

static struct filter_params params_for(const struct parsed_options *parsed) {
    struct filter_params params = default_params();
    const bool is_sure = parsed->error > 0 &&
                         parsed->error <= CHAIN_MOST_ERROR && parsed->capacity;
    const bool fixed =
        parsed->non_scaling || (parsed->has_expansion && !parsed->expansion);
    params.layout = &redisbloom_layout;
    if (parsed->error > 0) params.error = parsed->error;
    if (parsed->capacity) params.capacity = (uint64_t)parsed->capacity;
    if (parsed->has_expansion)
        params.unused_growth = parsed->expansion < UINT32_MAX
                                   ? (uint32_t)parsed->expansion
                                   : UINT32_MAX;
    params.expansion =
        params.unused_growth ? params.unused_growth : settings_growth();
    if (fixed && is_sure) params.expansion = 0;
    return params;
}

struct filter_params redisbloom_params(void) {
    return params_for(&(struct parsed_options){0});
}

/* RedisBloom looks for the words everywhere, in the key, too, and passes over
 * those that it does not know. */
static int find_word(RedisModuleString **argv, int argc, const char *word) {
    int at = 1;
    while (at < argc && !is_word(argv[at], word)) at++;
    return at < argc ? at : 0;
}

bool redisbloom_parse_reserve(RedisModuleString **argv, int argc,
                              struct options *out) {
    enum { MOST_WORDS = 7 };
    struct parsed_options parsed = {0};
    if (argc < 4 || argc > MOST_WORDS ||
        find_word(argv + 3, argc - 3, "LAYOUT"))
        return false;
    const int expansion = find_word(argv, argc, "EXPANSION");
    if (!read_rate(argv[2], &parsed.error) ||
        !read_whole(argv[3], 1, &parsed.capacity) ||
        (expansion && (expansion + 1 == argc ||
                       !read_expansion(argv[expansion + 1], &parsed))))
        return false;
    parsed.non_scaling = find_word(argv, argc, "NONSCALING");
    *out = (struct options){.params = params_for(&parsed)};
    return true;
}

/* One option, by its first letters: how many words it takes, or 0 if it is
 * none. */
static int read_option(RedisModuleString **argv, int left,
                       struct parsed_options *parsed, bool *no_create) {
    size_t size;
    const char *word = RM_StringPtrLen(argv[0], &size);
    const int first = size > 0 ? tolower((unsigned char)word[0]) : 0;
    const int second = size > 1 ? tolower((unsigned char)word[1]) : 0;
    const int third = size > 2 ? tolower((unsigned char)word[2]) : 0;
    if (first == 'n') {
        *(third == 'c' ? no_create : &parsed->non_scaling) = true;
        return 1;
    }
    if (left < 2) return 0;
    const bool good = first == 'c'   ? read_whole(argv[1], 1, &parsed->capacity)
                      : first != 'e' ? false
                      : second == 'r' ? read_rate(argv[1], &parsed->error)
                                      : read_expansion(argv[1], parsed);
    return good ? 2 : 0;
}

static bool begins_items(RedisModuleString *text) {
    size_t size;
    const char *word = RM_StringPtrLen(text, &size);
    return size > 0 && tolower((unsigned char)word[0]) == 'i';
}

bool redisbloom_parse_insert(RedisModuleString **argv, int argc,
                             struct options *out) {
    struct parsed_options parsed = {0};
    bool no_create = false;
    int at = 2;
    while (at < argc && !begins_items(argv[at])) {
        const int words =
            read_option(argv + at, argc - at, &parsed, &no_create);
        if (words == 0) return false;
        at += words;
    }
    if (at + 1 >= argc) return false;
    *out = (struct options){
        .params = params_for(&parsed), .no_create = no_create, .items = at + 1};
    return true;
}

/* ---- Words --------------------------------------------------------------- */

/* Options that make a filter again. */
struct argument_list {
    RedisModuleCtx *ctx;
    RedisModuleString *word[18];
    size_t n;
};

static void say_word(struct argument_list *words, const char *word,
                     size_t size) {
    words->word[words->n++] = RM_CreateString(words->ctx, word, size);
}

static void say_text(struct argument_list *words, const char *option,
                     const char *value, size_t size) {
    say_word(words, option, strlen(option));
    say_word(words, value, size);
}

static void say_number(struct argument_list *words, const char *option,
                       uint64_t number) {
    char value[24];
    const int size =
        snprintf(value, sizeof value, "%llu", (unsigned long long)number);
    say_text(words, option, value, (size_t)size);
}

static void say_rate(struct argument_list *words, double rate) {
    char value[40];
    const int size = snprintf(value, sizeof value, "%.17g", rate);
    say_text(words, "ERROR", value, (size_t)size);
}

static void say_growth(struct argument_list *words, bool fixed,
                       uint32_t growth) {
    static const char FIXED[] = "NONSCALING";
    if (fixed)
        say_word(words, FIXED, sizeof FIXED - 1);
    else
        say_number(words, "EXPANSION", growth);
}

/* BF.INSERT of n items; or of none, as which BF.RESERVE takes what begins with
 * ERROR and CAPACITY. Frees the words. */
static void replicate_words(struct argument_list *words,
                            RedisModuleString *name, bool by_reserve,
                            RedisModuleString **items, size_t n) {
    enum { RATE = 1, CAPACITY = 3, REST = 4 };
    RedisModuleCtx *const ctx = words->ctx;
    RedisModuleString **const word = words->word;
    if (n > 0)
        RM_Replicate(ctx, "BF.INSERT", "svcv", name, word, words->n, "ITEMS",
                     items, n);
    else if (by_reserve)
        RM_Replicate(ctx, "BF.RESERVE", "sssv", name, word[RATE],
                     word[CAPACITY], word + REST, words->n - REST);
    else
        RM_Replicate(ctx, "BF.INSERT", "sv", name, word, words->n);
    while (words->n > 0) RM_FreeString(ctx, word[--words->n]);
}

/* ---- Writing ------------------------------------------------------------- */

void replicate_chain_chunk(RedisModuleCtx *ctx, RedisModuleString *name,
                           const struct chain *c, int64_t at, size_t size) {
    int64_t from = at - (int64_t)size;
    while (from < at) {
        size_t some = 0;
        int64_t to = from;
        const char *bytes = chain_dump_chunk(c, CHAIN_MOST_CHUNK, &to, &some);
        if (!bytes) return;
        if (to > at) some = (size_t)(at - from), to = at;
        RM_Replicate(ctx, "BF.LOADCHUNK", "slb", name, (long long)to, bytes,
                     some);
        from = to;
    }
}

void replicate_chain_header(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct chain *c) {
    const size_t size = chain_header_size(c);
    char *header = RM_Alloc(size);
    chain_dump_header(c, header);
    RM_Replicate(ctx, "BF.LOADCHUNK", "slb", name, 1LL, header, size);
    RM_Free(header);
}

/* Do BF.RESERVE and BF.INSERT make its first link, in every version? Not under
 * a name that BF.RESERVE takes for an option. Only 2.8 takes a capacity above
 * 2^30; but a body of zeros of that size would be no help to 8 either. */
static bool is_usual(RedisModuleString *name, const struct chain *c,
                     double rate) {
    const bool fixed = c->options == CHAIN_FIXED;
    return (fixed || c->options == CHAIN_GROWS) && c->link[0].n2 == 0 &&
           rate <= CHAIN_MOST_ERROR && (fixed || c->growth <= MOST_EXPANSION) &&
           !is_word(name, "EXPANSION") && !is_word(name, "NONSCALING");
}

static void write_usual(RedisModuleCtx *ctx, RedisModuleString *name,
                        const struct chain *c, double rate,
                        RedisModuleString **more, size_t n) {
    struct argument_list words = {.ctx = ctx};
    say_rate(&words, rate);
    say_number(&words, "CAPACITY", c->link[0].entries);
    say_growth(&words, c->options == CHAIN_FIXED, c->growth);
    replicate_words(&words, name, true, more, n);
}

/* As a dump of it when it was new. */
static void write_header(RedisModuleCtx *ctx, RedisModuleString *name,
                         const struct chain *c) {
    static char zeros[1 << 20]; /* not const: that would be in the file */
    struct chain_link first = c->link[0];
    struct chain empty = *c;
    first.items = 0;
    empty.link = &first;
    empty.links = 1;
    empty.items = 0;
    replicate_chain_header(ctx, name, &empty);
    for (uint64_t done = 0; done < first.bytes;) {
        const uint64_t left = first.bytes - done;
        const size_t some = left < sizeof zeros ? (size_t)left : sizeof zeros;
        done += some;
        RM_Replicate(ctx, "BF.LOADCHUNK", "slb", name, (long long)done + 1,
                     zeros, some);
    }
}

/* A new filter of the redisbloom layout, and n items that were added to it. */
static void replicate_chain(RedisModuleCtx *ctx, RedisModuleString *name,
                            const struct chain *c, RedisModuleString **more,
                            size_t n) {
    const bool fixed = c->options & CHAIN_NO_SCALING;
    const double rate = c->link[0].error * (fixed ? 1 : 2);
    if (is_usual(name, c, rate)) {
        write_usual(ctx, name, c, rate, more, n);
        return;
    }
    write_header(ctx, name, c);
    if (n > 0) RM_Replicate(ctx, "BF.MADD", "sv", name, more, n);
}

static void write_expiry(RedisModuleCtx *ctx, RedisModuleString *name,
                         long long expires) {
    if (expires >= 0)
        RM_Replicate(ctx, "PEXPIREAT", "sl", name, expires);
    else
        RM_Replicate(ctx, "PERSIST", "s", name);
}

/* ---- valkey-bloom -------------------------------------------------------- */

/* Without an exponent, and so that the same number is read. */
static void say_plain(struct argument_list *words, const char *option,
                      double value) {
    char text[420] = "";
    for (int digits = 1; digits < 400; digits++) {
        snprintf(text, sizeof text, "%.*f", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    say_text(words, option, text, strlen(text));
}

/* As valkey-bloom does: by BF.INSERT, with items or without. */
static void replicate_valkey(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct valkey_bloom *v,
                             RedisModuleString **items, size_t n) {
    struct argument_list words = {.ctx = ctx};
    say_number(&words, "CAPACITY", v->part[0].capacity);
    say_plain(&words, "ERROR", v->params.rate);
    say_plain(&words, "TIGHTENING", v->params.tightening);
    say_text(&words, "SEED", (const char *)v->params.seed, VALKEY_SEED_BYTES);
    say_growth(&words, v->params.expansion == 0, v->params.expansion);
    replicate_words(&words, name, false, items, n);
}

/* ---- Cuckoo filters ------------------------------------------------------ */

/* The header of the empty filter, where CF.RESERVE would be misunderstood. */
static void write_cuckoo_header(RedisModuleCtx *ctx, RedisModuleString *name,
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

static void replicate_cuckoo(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct cuckoo *c, uint64_t capacity) {
    if (is_reserve_word(name))
        write_cuckoo_header(ctx, name, c);
    else
        RM_Replicate(ctx, "CF.RESERVE", "slclclcl", name, (long long)capacity,
                     "BUCKETSIZE", (long long)c->bucket_size, "MAXITERATIONS",
                     (long long)c->iterations, "EXPANSION",
                     (long long)c->expansion);
}

/* ---- Any other module ---------------------------------------------------- */

static void replicate_foreign(RedisModuleCtx *ctx, RedisModuleString *name,
                              const struct filter *f, RedisModuleString **items,
                              size_t n) {
    if (f->layout == &valkey_layout)
        replicate_valkey(ctx, name, f->valkey, items, n);
    else
        replicate_chain(ctx, name, f->chain, items, n);
}

void replicate_clear_plainly(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct filter *f, long long expires) {
    RM_Replicate(ctx, "UNLINK", "s", name);
    replicate_foreign(ctx, name, f, NULL, 0);
    if (expires >= 0) write_expiry(ctx, name, expires);
}

void replicate_swap_plainly(RedisModuleCtx *ctx, RedisModuleString *live,
                            RedisModuleString *staged, long long expires) {
    RM_Replicate(ctx, "UNLINK", "s", live); /* in the background */
    RM_Replicate(ctx, "RENAME", "ss", staged, live);
    write_expiry(ctx, live, expires);
}

/* ---- New filters --------------------------------------------------------- */

static void replicate_native(RedisModuleCtx *ctx, RedisModuleString *name,
                             const struct filter_params *params,
                             RedisModuleString **items, size_t n) {
    struct argument_list words = {.ctx = ctx};
    char seconds[40];
    say_rate(&words, params->error);
    say_number(&words, "CAPACITY", params->capacity);
    say_number(&words, "EXPANSION", params->expansion);
    say_text(&words, "LAYOUT", params->layout->name,
             strlen(params->layout->name));
    say_text(&words, "KIND", params->kind, strlen(params->kind));
    say_number(&words, "SEED", params->seed);
    if (params->window) {
        const int size = snprintf(seconds, sizeof seconds, "%llu.%03u",
                                  (unsigned long long)params->window / 1000,
                                  (unsigned)(params->window % 1000));
        say_text(&words, "WINDOW", seconds, (size_t)size);
        say_number(&words, "GENERATIONS", params->generations);
        say_number(&words, "BEGAN", params->began);
    }
    replicate_words(&words, name, true, items, n);
}

void replicate_new(RedisModuleCtx *ctx, RedisModuleString *name,
                   const struct filter *f, const struct filter_params *params,
                   RedisModuleString **items, size_t n) {
    if (f->layout->is_cuckoo)
        replicate_cuckoo(ctx, name, f->cuckoo, params->capacity);
    else if (f->layout->is_foreign)
        replicate_foreign(ctx, name, f, items, n);
    else
        replicate_native(ctx, name, params, items, n);
}
