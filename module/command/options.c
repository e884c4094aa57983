/*
 * Options: RedisBloom's (EXPANSION, NONSCALING; BF.INSERT also CAPACITY, ERROR,
 * NOCREATE and ITEMS), those that valkey-bloom adds (BF.INSERT TIGHTENING, SEED
 * with 32 bytes, VALIDATESCALETO, and no ITEMS), and ours (COUNTING, WINDOW,
 * GENERATIONS; SEED, KIND, LAYOUT, BEGAN, which replicas need to make the same
 * filter). Words are matched whole, in any case, and stand after the key,
 * never in its place.
 *
 * A filter that is made with words of valkey-bloom alone is one of its layout.
 */
#include "command/options.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "layout/first_part.h"
#include "layout/window.h"
#include "settings.h"

/* ---- Numbers ------------------------------------------------------------- */

enum number parse_rate(RedisModuleString *text, double *rate) {
    double x;
    if (RM_StringToDouble(text, &x) != RM_OK || isnan(x)) return NO_NUMBER;
    if (!(x > 0 && x < 1)) return OUT_OF_RANGE;
    *rate = x;
    return NUMBER;
}

enum number parse_error_rate(RedisModuleString *text, double *error) {
    const enum number is = parse_rate(text, error);
    if (is == NUMBER) *error = fmin(*error, CHAIN_MOST_ERROR);
    return is;
}

enum number parse_whole(RedisModuleString *text, long long least,
                        long long most, long long *number) {
    long long n;
    if (RM_StringToLongLong(text, &n) != RM_OK) return NO_NUMBER;
    if (n < least || n > most) return OUT_OF_RANGE;
    *number = n;
    return NUMBER;
}

/* All of 64 bits, which a long long does not have. */
bool parse_seed(const char *text, size_t size, uint64_t *seed) {
    uint64_t n = 0;
    if (size == 0) return false;
    for (size_t i = 0; i < size; i++) {
        const unsigned digit = (unsigned char)text[i] - (unsigned)'0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10) return false;
        n = 10 * n + digit;
    }
    *seed = n;
    return true;
}

bool is_word(RedisModuleString *text, const char *word) {
    size_t size;
    const char *chars = RM_StringPtrLen(text, &size);
    return size == strlen(word) && strncasecmp(chars, word, size) == 0;
}

static int shown(size_t size) {
    return size < 32 ? (int)size : 32;
}

const char *check_repeated(const char *word, RedisModuleString **argv, int from,
                           int at) {
    static char text[160];
    size_t size, other_size;
    const char *const value = RM_StringPtrLen(argv[at + 1], &size);
    for (int i = from; i < at; i++) {
        if (!is_word(argv[i], word)) continue;
        const char *const other = RM_StringPtrLen(argv[i + 1], &other_size);
        if (size == other_size && strncasecmp(value, other, size) == 0)
            continue;
        if (size == VALKEY_SEED_BYTES || other_size == VALKEY_SEED_BYTES)
            continue; /* of valkey-bloom's seeds the last counts */
        snprintf(text, sizeof text,
                 "ERR %s is given as '%.*s' and as '%.*s'; give it once", word,
                 shown(other_size), other, shown(size), value);
        return text;
    }
    return NULL;
}

/* ---- One option each ----------------------------------------------------- */

struct parsing {
    struct options *out;
    bool non_scaling, has_capacity, has_expansion, has_layout, has_began;
    bool is_counting;
    bool has_seed_or_kind;
    bool is_insert;
    bool is_valkeys;    /* has words that only valkey-bloom has */
    long long scale_to; /* VALIDATESCALETO; 0 if it has none    */
    int expansions;     /* how often it was said */
};

static enum number option_capacity(struct parsing *p,
                                   RedisModuleString *value) {
    long long n = 0;
    const enum number is = parse_whole(value, 1, MOST_CAPACITY, &n);
    p->out->params.capacity = (uint64_t)n;
    p->has_capacity = true;
    return is;
}

static enum number option_error(struct parsing *p, RedisModuleString *value) {
    return parse_rate(value, &p->out->params.error);
}

static enum number option_tightening(struct parsing *p,
                                     RedisModuleString *value) {
    p->is_valkeys = true;
    return parse_rate(value, &p->out->params.tightening);
}

static enum number option_scale_to(struct parsing *p,
                                   RedisModuleString *value) {
    p->is_valkeys = true;
    return parse_whole(value, 1, INT64_MAX, &p->scale_to);
}

static enum number option_expansion(struct parsing *p,
                                    RedisModuleString *value) {
    long long n = 0;
    const enum number is = parse_whole(value, 0, UINT32_MAX, &n);
    p->out->params.expansion = p->out->params.unused_growth = (uint32_t)n;
    p->has_expansion = n > 0;
    p->expansions++;
    return is;
}

static enum number option_non_scaling(struct parsing *p,
                                      RedisModuleString *value) {
    (void)value;
    p->out->params.expansion = 0;
    p->non_scaling = true;
    return NUMBER;
}

static enum number option_no_create(struct parsing *p,
                                    RedisModuleString *value) {
    (void)value;
    p->out->no_create = true;
    return NUMBER;
}

static enum number option_seed(struct parsing *p, RedisModuleString *value) {
    size_t size;
    const char *text = RM_StringPtrLen(value, &size);
    p->out->params.random_seed = false;
    if (size == VALKEY_SEED_BYTES) { /* more than a number of 64 bits has */
        p->is_valkeys = true;
        memcpy(p->out->params.valkey_seed, text, size);
        return NUMBER;
    }
    p->has_seed_or_kind = true;
    return parse_seed(text, size, &p->out->params.seed) ? NUMBER : NO_NUMBER;
}

/* "ERR bad kind: there are line, line2, ...", by the library's table. */
static char BAD_KIND[200];

static enum number refuse_kind(void) {
    const char *before = "ERR bad kind: there are ";
    size_t at = 0;
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        if (!(calyx_kind_can(*kind) & CALYX_CAN_ADD)) continue;
        const int n = snprintf(BAD_KIND + at, sizeof BAD_KIND - at, "%s%s",
                               before, *kind);
        if (n < 0 || (size_t)n >= sizeof BAD_KIND - at) break;
        at += (size_t)n;
        before = ", ";
    }
    return NO_NUMBER;
}

static enum number option_kind(struct parsing *p, RedisModuleString *value) {
    p->has_seed_or_kind = true;
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        if (is_word(value, *kind) && calyx_kind_can(*kind) & CALYX_CAN_ADD) {
            p->out->params.kind = *kind;
            return NUMBER;
        }
    return refuse_kind();
}

static enum number option_counting(struct parsing *p,
                                   RedisModuleString *value) {
    (void)value;
    p->is_counting = true;
    return NUMBER;
}

static enum number option_window(struct parsing *p, RedisModuleString *value) {
    double seconds;
    if (RM_StringToDouble(value, &seconds) != RM_OK || isnan(seconds))
        return NO_NUMBER;
    if (!(seconds >= 0.001 && seconds <= (double)MOST_WINDOW / 1000))
        return OUT_OF_RANGE;
    p->out->params.window = (uint64_t)llround(1000 * seconds);
    return NUMBER;
}

static enum number option_generations(struct parsing *p,
                                      RedisModuleString *value) {
    long long n = 0;
    const enum number is = parse_whole(value, 1, MOST_GENERATIONS, &n);
    p->out->params.generations = (uint32_t)n;
    return is;
}

static enum number option_began(struct parsing *p, RedisModuleString *value) {
    long long n = 0;
    const enum number is = parse_whole(value, 0, INT64_MAX, &n);
    p->out->params.began = (uint64_t)n;
    p->has_began = true;
    return is;
}

static enum number option_layout(struct parsing *p, RedisModuleString *value) {
    size_t size;
    const char *text = RM_StringPtrLen(value, &size);
    p->out->params.layout = layout_named(text, size);
    p->has_layout = true;
    return p->out->params.layout ? NUMBER : NO_NUMBER;
}

/* ---- The table ----------------------------------------------------------- */

static const char WRONG_ARITY[] = "";

struct option_row {
    const char *word;
    bool has_value, in_reserve;
    bool one_value; /* if repeated, with the same value; else the last counts */
    enum number (*parse)(struct parsing *p, RedisModuleString *value);
    const char *reserve_lacks, *reserve_no_number, *reserve_range;
    const char *insert_bad;
};

static const char BAD_SEED[] =
    "ERR bad seed: it is a whole number from 0 to 18446744073709551615";
static const char BAD_LAYOUT[] =
    "ERR bad layout: there are native, redisbloom and valkey-bloom";
static const char BAD_EXPANSION[] =
    "ERR expansion must be in the range [0, 32768]";
static const char BAD_TIGHTENING[] = "ERR (0 < tightening ratio range < 1)";
static const char BAD_SCALE_TO[] = "ERR bad capacity";

static const char BAD_WINDOW[] =
    "ERR bad window: it is a number of seconds from 0.001 to 315360000";
static const char BAD_GENERATIONS[] =
    "ERR bad generations: it is a whole number from 1 to 64";
static const char BAD_BEGAN[] =
    "ERR bad time: it is a number of milliseconds from 0";

static const struct option_row options[] = {
    {"WINDOW", true, true, true, option_window, BAD_WINDOW, BAD_WINDOW,
     BAD_WINDOW, BAD_WINDOW},
    {"GENERATIONS", true, true, true, option_generations, BAD_GENERATIONS,
     BAD_GENERATIONS, BAD_GENERATIONS, BAD_GENERATIONS},
    {"BEGAN", true, true, true, option_began, BAD_BEGAN, BAD_BEGAN, BAD_BEGAN,
     BAD_BEGAN},
    {"COUNTING", false, true, false, option_counting, NULL, NULL, NULL, NULL},
    {"CAPACITY", true, false, false, option_capacity, NULL, NULL, NULL,
     "Bad capacity"},
    {"ERROR", true, false, false, option_error, NULL, NULL, NULL,
     "Bad error rate"},
    {"EXPANSION", true, true, false, option_expansion, "ERR no expansion",
     "ERR bad expansion", BAD_EXPANSION, "Bad expansion"},
    {"NOCREATE", false, false, false, option_no_create, NULL, NULL, NULL, NULL},
    {"NONSCALING", false, true, false, option_non_scaling, NULL, NULL, NULL,
     NULL},
    {"SEED", true, true, true, option_seed, BAD_SEED, BAD_SEED, BAD_SEED,
     BAD_SEED},
    {"KIND", true, true, true, option_kind, "ERR bad kind: none given",
     BAD_KIND, BAD_KIND, BAD_KIND},
    {"LAYOUT", true, true, true, option_layout, BAD_LAYOUT, BAD_LAYOUT,
     BAD_LAYOUT, BAD_LAYOUT},
    {"TIGHTENING", true, false, false, option_tightening, NULL, NULL, NULL,
     BAD_TIGHTENING},
    {"VALIDATESCALETO", true, false, false, option_scale_to, NULL, NULL, NULL,
     BAD_SCALE_TO},
};

static const struct option_row *option_named(RedisModuleString *text) {
    const size_t n = sizeof options / sizeof *options;
    for (size_t i = 0; i < n; i++)
        if (is_word(text, options[i].word)) return &options[i];
    return NULL;
}

/* ---- The commands -------------------------------------------------------- */

struct filter_params default_params(void) {
    struct filter_params params = {
        .layout = layouts[settings.layout],
        .error = settings.error,
        .capacity = (uint64_t)settings.capacity,
        .expansion = (uint32_t)settings.expansion,
        .unused_growth = (uint32_t)settings.expansion,
        .random_seed = settings.random_seed,
        .seed = settings.seed,
        .unreserved = true,
        .tightening = settings.tightening,
    };
    if (!settings.valkey_random_seed)
        memcpy(params.valkey_seed, valkey_fixed_seed, VALKEY_SEED_BYTES);
    else
        for (int i = 0; i < 8; i++)
            params.valkey_seed[i] = (uint8_t)(settings.seed >> 8 * i);
    return params;
}

static struct parsing begin(struct options *out) {
    *out = (struct options){.params = default_params()};
    return (struct parsing){.out = out};
}

/* What the options say together, of a window. */
static const char *complete_window(struct parsing *p) {
    struct filter_params *const params = &p->out->params;
    if (p->has_layout && params->layout != &native_layout)
        return "ERR only the native layout has windows; say LAYOUT native";
    if (params_can_remove(params))
        return "ERR WINDOW and COUNTING exclude each other: a window forgets "
               "by itself";
    if (!params->generations) params->generations = USUAL_GENERATIONS;
    if (!p->has_began) params->began = (uint64_t)RM_Milliseconds();
    params->layout = &window_layout;
    return NULL;
}

/* Can it grow until it holds that number of items? */
static const char *check_scaling(const struct parsing *p) {
    const struct filter_params *const params = &p->out->params;
    const struct valkey_params grows = {.rate = params->error,
                                        .tightening = params->tightening,
                                        .expansion = params->expansion};
    enum valkey_limit limit;
    if (params->expansion == 0)
        return "ERR cannot use NONSCALING and VALIDATESCALETO options together";
    valkey_scaled_capacity(params->capacity, &grows,
                           (uint64_t)settings.max_filter_bytes,
                           (uint64_t)p->scale_to, &limit);
    switch (limit) {
        case VALKEY_ENOUGH: return NULL;
        case VALKEY_RATE:
            return "ERR provided VALIDATESCALETO causes false positive to "
                   "degrade to 0";
        case VALKEY_MEMORY: break;
        case VALKEY_LARGE: return BAD_SCALE_TO;
    }
    return "ERR provided VALIDATESCALETO causes bloom object to exceed memory "
           "limit";
}

static const char *complete_valkeys(struct parsing *p) {
    struct filter_params *const params = &p->out->params;
    if (p->is_valkeys && p->has_layout && params->layout != &valkey_layout)
        return "ERR TIGHTENING, VALIDATESCALETO and a SEED of 32 bytes are of "
               "the valkey-bloom layout; say LAYOUT valkey-bloom, or nothing";
    if (p->has_seed_or_kind || params->window || params_can_remove(params))
        return "ERR the valkey-bloom layout has no kinds, counters or windows, "
               "and a SEED of 32 bytes";
    params->layout = &valkey_layout;
    return p->scale_to ? check_scaling(p) : NULL;
}

/* The same of any filter. The redisbloom layout has no kinds: a kind that can
 * do more is native, unless LAYOUT says otherwise. */
static const char *complete(struct parsing *p) {
    struct filter_params *const params = &p->out->params;
    if (p->is_counting && params->kind &&
        ~calyx_kind_can(params->kind) & COUNTING_ABILITIES)
        return "ERR COUNTING is KIND counting; leave out COUNTING, or the "
               "other KIND";
    if (p->is_counting) params->kind = kind_for(COUNTING_ABILITIES, params);
    if (p->has_capacity || p->expansions || params->window)
        params->unreserved = false;
    const bool ours =
        params->window || p->has_seed_or_kind || params_can_remove(params);
    if (p->is_valkeys ||
        (params->layout == &valkey_layout && (p->has_layout || !ours)))
        return complete_valkeys(p);
    if (p->non_scaling) params->expansion = 0; /* whatever comes after it */
    params->error = fmin(params->error, CHAIN_MOST_ERROR);
    if (params->unused_growth > MOST_EXPANSION)
        return p->is_insert ? "Bad expansion" : BAD_EXPANSION;
    if (params->window) return complete_window(p);
    if (params->generations || p->has_began)
        return "ERR GENERATIONS and BEGAN go with WINDOW";
    if (!p->has_layout &&
        (params_can_remove(params) ||
         (p->has_seed_or_kind && params->layout == &valkey_layout)))
        params->layout = &native_layout;
    if (params->layout != &redisbloom_layout) return NULL;
    if (params_can_remove(params))
        return "ERR could not create filter: the redisbloom layout has no room "
               "for counters; say LAYOUT native";
    if (p->has_seed_or_kind)
        return "ERR the redisbloom layout has neither seeds nor kinds; leave "
               "out SEED and KIND, or say LAYOUT native";
    return NULL;
}

static const char *parse_reserve_option(struct parsing *p,
                                        RedisModuleString **argv, int argc,
                                        int *at) {
    static char text[200];
    const struct option_row *option = option_named(argv[*at]);
    if (!option || !option->in_reserve) {
        size_t size;
        const char *word = RM_StringPtrLen(argv[*at], &size);
        snprintf(text, sizeof text,
                 "ERR unknown argument '%.*s'; there are EXPANSION, "
                 "NONSCALING, COUNTING, WINDOW, GENERATIONS, SEED, KIND and "
                 "LAYOUT",
                 shown(size), word);
        return text;
    }
    if (option->has_value && *at + 1 >= argc) return option->reserve_lacks;
    switch (option->parse(p, option->has_value ? argv[*at + 1] : NULL)) {
        case NO_NUMBER: return option->reserve_no_number;
        case OUT_OF_RANGE: return option->reserve_range;
        case NUMBER: break;
    }
    const char *wrong =
        option->one_value ? check_repeated(option->word, argv, 4, *at) : NULL;
    *at += option->has_value ? 2 : 1;
    return wrong;
}

const char *parse_reserve(RedisModuleString **argv, int argc,
                          struct options *out) {
    static char text[80];
    struct parsing p = begin(out);
    if (argc < 4) return WRONG_ARITY;
    const enum number error = option_error(&p, argv[2]);
    if (error == NO_NUMBER) return "ERR bad error rate";
    if (error == OUT_OF_RANGE)
        return "ERR error rate must be in the range (0.000000, 1.000000)";
    const enum number capacity = option_capacity(&p, argv[3]);
    if (capacity == NO_NUMBER) return "ERR bad capacity";
    if (capacity == OUT_OF_RANGE) {
        snprintf(text, sizeof text,
                 "ERR capacity must be in the range [1, %lld]",
                 (long long)MOST_CAPACITY);
        return text;
    }
    for (int at = 4; at < argc;) {
        const char *wrong = parse_reserve_option(&p, argv, argc, &at);
        if (wrong) return wrong;
    }
    if (p.expansions > 1) return WRONG_ARITY; /* as RedisBloom has it */
    if (p.non_scaling && p.has_expansion)
        return "Nonscaling filters cannot expand";
    return complete(&p);
}

const char *parse_insert(RedisModuleString **argv, int argc,
                         struct options *out) {
    struct parsing p = begin(out);
    p.is_insert = true;
    for (int at = 2; at < argc;) {
        if (is_word(argv[at], "ITEMS")) {
            out->items = at + 1;
            break;
        }
        const struct option_row *option = option_named(argv[at]);
        if (!option) return "Unknown argument received";
        if (option->has_value && at + 1 >= argc) return WRONG_ARITY;
        if (option->parse(&p, option->has_value ? argv[at + 1] : NULL) !=
            NUMBER)
            return option->insert_bad;
        const char *wrong = option->one_value
                                ? check_repeated(option->word, argv, 2, at)
                                : NULL;
        if (wrong) return wrong;
        at += option->has_value ? 2 : 1;
    }
    if (out->items == argc) return WRONG_ARITY;
    const char *wrong = complete(&p);
    if (wrong || out->items) return wrong;
    /* valkey-bloom makes a filter without items, too. */
    out->items = argc;
    return out->params.layout == &valkey_layout ? NULL : WRONG_ARITY;
}
