/*
 * The configuration. Arguments of the load command become the defaults with
 * which the parameters are registered; so the server's file and CONFIG SET,
 * which come later, have the last word.
 */
#include "settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "command/options.h"

struct settings settings = {
    .error = 0.01,
    .capacity = 100,
    .expansion = 2,
    .cf_bucket_size = 2,
    .cf_capacity = 1024,
    .cf_iterations = 20,
    .cf_expansion = 1,
    .cf_max_expansions = 32,
    .random_seed = true,
    .tightening = 0.5,
    .valkey_random_seed = true,
};

/* ---- Getting and setting ------------------------------------------------- */

/* The server copies the string that it gets, but does not free it: store it. */
static RedisModuleString *shown_text;

static void store_text(RedisModuleString **stored, const char *text) {
    if (*stored) RM_FreeString(NULL, *stored);
    *stored = RM_CreateString(NULL, text, strlen(text));
}

__attribute__((format(printf, 1, 2))) static RedisModuleString *show(
    const char *format, ...) {
    char text[32];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    store_text(&shown_text, text);
    return shown_text;
}

__attribute__((format(printf, 2, 3))) static int complain(
    RedisModuleString **why, const char *format, ...) {
    char text[200];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    *why = RM_CreateString(NULL, text, strlen(text));
    return RM_ERR;
}

static RedisModuleString *get_error(const char *name, void *context) {
    (void)name, (void)context;
    return show("%.15g", settings.error);
}

static int set_error(const char *name, RedisModuleString *value, void *context,
                     RedisModuleString **why) {
    (void)name, (void)context;
    switch (parse_error_rate(value, &settings.error)) {
        case NUMBER: return RM_OK;
        case OUT_OF_RANGE:
            return complain(why, "Value for `bf-error-rate` must be in the "
                                 "range (0.000000, 1.000000)");
        case NO_NUMBER: break;
    }
    return complain(why, "Invalid value for `bf-error-rate`");
}

static RedisModuleString *get_seed(const char *name, void *context) {
    (void)name, (void)context;
    return settings.random_seed
               ? show("random")
               : show("%llu", (unsigned long long)settings.seed);
}

static int set_seed(const char *name, RedisModuleString *value, void *context,
                    RedisModuleString **why) {
    (void)name, (void)context;
    size_t size;
    const char *text = RM_StringPtrLen(value, &size);
    if (size == 6 && strncasecmp(text, "random", 6) == 0) {
        settings.random_seed = true;
        return RM_OK;
    }
    if (!parse_seed(text, size, &settings.seed))
        return complain(why, "calyx-seed is `random`, or a whole number from 0 "
                             "to 18446744073709551615");
    settings.random_seed = false;
    return RM_OK;
}

/* Strings for the server: the errors of its numbers are not RedisBloom's. */
struct text_setting {
    const char *name, *synonym; /* of RedisBloom's load arguments */
    RedisModuleString *(*get)(const char *name, void *context);
    int (*set)(const char *name, RedisModuleString *value, void *context,
               RedisModuleString **why);
    long long *value, least, most; /* of a number */
};

static RedisModuleString *get_number(const char *name, void *context) {
    (void)name;
    return show("%lld", *((const struct text_setting *)context)->value);
}

static int set_number(const char *name, RedisModuleString *value, void *context,
                      RedisModuleString **why) {
    (void)name;
    const struct text_setting *const s = context;
    long long least = s->least, most = s->most;
    /* A cuckoo filter has at least two buckets. */
    if (s->value == &settings.cf_capacity) least = 2 * settings.cf_bucket_size;
    if (s->value == &settings.cf_bucket_size && most > settings.cf_capacity / 2)
        most = settings.cf_capacity / 2;
    switch (parse_whole(value, least, most, s->value)) {
        case NUMBER: return RM_OK;
        case OUT_OF_RANGE:
            return complain(why,
                            "Value for `%s` must be in the range [%lld, %lld]",
                            s->name, least, most);
        case NO_NUMBER: break;
    }
    return complain(why, "Invalid value for `%s`", s->name);
}

static long long get_bytes(const char *name, void *context) {
    (void)name, (void)context;
    return settings.max_filter_bytes;
}

static int set_bytes(const char *name, long long value, void *context,
                     RedisModuleString **why) {
    (void)name, (void)context, (void)why;
    settings.max_filter_bytes = value;
    return RM_OK;
}

static int get_choice(const char *name, void *context) {
    (void)name;
    return *(int *)context;
}

static int set_choice(const char *name, int value, void *context,
                      RedisModuleString **why) {
    (void)name, (void)why;
    *(int *)context = value;
    return RM_OK;
}

/* ---- What there is ------------------------------------------------------- */

#define NUMBER(value, least, most) \
    get_number, set_number, &settings.value, (least), (most)
static struct text_setting texts[] = {
    {"bf-initial-size", "INITIAL_SIZE", NUMBER(capacity, 1, MOST_INITIAL_SIZE)},
    {"bf-expansion-factor", NULL, NUMBER(expansion, 0, MOST_EXPANSION)},
    {"cf-bucket-size", NULL, NUMBER(cf_bucket_size, 1, 255)},
    {"cf-initial-size", NULL, NUMBER(cf_capacity, 4, MOST_CF_CAPACITY)},
    {"cf-max-iterations", NULL, NUMBER(cf_iterations, 1, 65535)},
    {"cf-expansion-factor", NULL, NUMBER(cf_expansion, 0, MOST_EXPANSION)},
    {"cf-max-expansions", "CF_MAX_EXPANSIONS",
     NUMBER(cf_max_expansions, 1, 65536)},
    {"bf-error-rate", "ERROR_RATE", get_error, set_error, NULL, 0, 0},
    {"calyx-seed", NULL, get_seed, set_seed, NULL, 0, 0},
    /* In a load argument it has no unit. */
    {"calyx-max-filter-bytes", NULL, NUMBER(max_filter_bytes, 0, INT64_MAX)},
};
enum { TEXTS = sizeof texts / sizeof *texts - 1 }; /* to CONFIG */

static const char *layout_names[] = {"native", "valkey-bloom",
                                     "redisbloom"}; /* as layouts */
static const char *cf_layout_names[] = {"redisbloom", "native"};
static const char *order_names[] = {"capacity-first", "bitmap-first"};

static const struct choice_setting {
    const char *name;
    int *value, n;
    const char **names;
    const char *complaint;
} choices[] = {
    {"calyx-layout", &settings.layout, 3, layout_names,
     "calyx-layout is native, redisbloom or valkey-bloom"},
    {"calyx-cf-layout", &settings.cf_native, 2, cf_layout_names,
     "calyx-cf-layout is redisbloom or native"},
    {"calyx-valkey-order", &settings.valkey_order, 2, order_names,
     "calyx-valkey-order is capacity-first or bitmap-first"},
};
enum { CHOICES = sizeof choices / sizeof *choices };
static const int choice_values[] = {0, 1, 2};

/* ---- Settings of others, and old ones ------------------------------------ */

/* Of valkey-bloom. A server that had it starts with Calyx in its place, and its
 * file can go back. */

/* They set what Calyx has. What is larger than Calyx takes is
 * its largest, so that the server starts. Each returns false for a value that
 * valkey-bloom does not take either. */
static bool set_bloom_number(RedisModuleString *value, long long least,
                             long long most, long long *number) {
    if (parse_whole(value, least, INT64_MAX, number) != NUMBER) return false;
    if (*number > most) *number = most;
    return true;
}

static bool set_bloom_capacity(RedisModuleString *value) {
    return set_bloom_number(value, 1, MOST_INITIAL_SIZE, &settings.capacity);
}

static bool set_bloom_expansion(RedisModuleString *value) {
    return set_bloom_number(value, 0, MOST_EXPANSION, &settings.expansion);
}

static bool set_bloom_limit(RedisModuleString *value) {
    return set_bloom_number(value, 0, INT64_MAX, &settings.max_filter_bytes);
}

static bool set_bloom_rate(RedisModuleString *value) {
    return parse_error_rate(value, &settings.error) == NUMBER;
}

static bool set_bloom_tightening(RedisModuleString *value) {
    return parse_rate(value, &settings.tightening) == NUMBER;
}

static bool set_bloom_seed(RedisModuleString *value) {
    settings.valkey_random_seed = is_word(value, "yes");
    return settings.valkey_random_seed || is_word(value, "no");
}

#define NOT_HERE                                                       \
    "it belongs to another module; Calyx does not have what it sets, " \
    "or sets it in another way"

/* Of the version before; the next refuses them. */
#define GONE "remove it, as the next version refuses it"

static struct foreign_setting {
    const char *name;
    bool (*set)(RedisModuleString *value); /* NULL: there is no such thing */
    const char *ours; /* what it sets, or why it is ignored */
    RedisModuleString *value;
} foreign[] = {
    {.name = "bloom-capacity",
     .set = set_bloom_capacity,
     .ours = "bf-initial-size: a whole number from 1, at most 2^30"},
    {.name = "bloom-expansion",
     .set = set_bloom_expansion,
     .ours = "bf-expansion-factor: a whole number from 0, at most 32768"},
    {.name = "bloom-expansion-rate",
     .set = set_bloom_expansion,
     .ours = "bf-expansion-factor: a whole number from 0, at most 32768"},
    {.name = "bloom-fp-rate",
     .set = set_bloom_rate,
     .ours = "bf-error-rate: a number above 0 and below 1"},
    {.name = "bloom-tightening-ratio",
     .set = set_bloom_tightening,
     .ours = "the tightening of the valkey-bloom layout: a number above 0 and "
             "below 1"},
    {.name = "bloom-memory-usage-limit",
     .set = set_bloom_limit,
     .ours = "calyx-max-filter-bytes: a whole number from 0"},
    {.name = "bloom-use-random-seed",
     .set = set_bloom_seed,
     .ours = "the seeds of the valkey-bloom layout: yes or no"},
    {.name = "bloom-max-item-size", .ours = NOT_HERE},
    {.name = "bloom-defrag-enabled", .ours = NOT_HERE},
    {.name = "calyx-lookup-runs",
     .ours = "every lookup opens its key now; " GONE},
    {.name = "calyx-unreserved",
     .ours = "a filter that nobody reserved is a table; to have a chain, "
             "reserve it, or say KIND line; " GONE},
    {.name = "calyx-huge-pages",
     .ours = "filters from files and payloads are on huge pages, unless the "
             "server disables these; " GONE},
    {.name = "calyx-prefault",
     .ours = "the pages of large filters are always touched ahead; " GONE},
};
enum { FOREIGN = sizeof foreign / sizeof *foreign };

static RedisModuleString *get_foreign(const char *name, void *context) {
    (void)name;
    return ((struct foreign_setting *)context)->value;
}

static int complain_range(const struct foreign_setting *setting,
                          RedisModuleString **why) {
    return complain(why, "%s sets %s", setting->name, setting->ours);
}

/* "" is the default, which the server sets where nobody else does. */
static int set_foreign(const char *name, RedisModuleString *value,
                       void *context, RedisModuleString **why) {
    struct foreign_setting *const setting = context;
    const char *text = RM_StringPtrLen(value, NULL);
    if (*text && setting->set && !setting->set(value))
        return complain_range(setting, why);
    store_text(&setting->value, text);
    if (*text && setting->set)
        RM_Log(NULL, "notice", "the setting '%s' sets %s", name, setting->ours);
    else if (*text)
        RM_Log(NULL, "warning", "the setting '%s' is ignored: %s", name,
               setting->ours);
    return RM_OK;
}

/* By the name as an argument has it: valkey-bloom puts dashes before. */
static struct foreign_setting *foreign_named(const char *name) {
    if (strncmp(name, "--", 2) == 0) name += 2;
    for (int i = 0; i < FOREIGN; i++)
        if (strcasecmp(name, foreign[i].name) == 0) return &foreign[i];
    return NULL;
}

/* A server that does not take one of these names does without it. The default
 * is what an argument has set. */
static void register_foreign(RedisModuleCtx *ctx, unsigned flags) {
    for (int i = 0; i < FOREIGN; i++) {
        if (!foreign[i].value) store_text(&foreign[i].value, "");
        RM_RegisterStringConfig(ctx, foreign[i].name, "",
                                flags | RM_CONFIG_HIDDEN, get_foreign,
                                set_foreign, NULL, &foreign[i]);
    }
}

/* ---- Arguments ----------------------------------------------------------- */

static int set_choice_argument(const struct choice_setting *setting,
                               RedisModuleString *value,
                               RedisModuleString **why) {
    for (int i = 0; i < setting->n; i++)
        if (is_word(value, setting->names[i])) {
            *setting->value = i;
            return RM_OK;
        }
    return complain(why, "%s", setting->complaint);
}

static int set_argument(const char *name, RedisModuleString *value,
                        RedisModuleString **why) {
    for (int i = 0; i <= TEXTS; i++)
        if (strcasecmp(name, texts[i].name) == 0 ||
            (texts[i].synonym && strcasecmp(name, texts[i].synonym) == 0))
            return texts[i].set(name, value, &texts[i], why);
    for (int i = 0; i < CHOICES; i++)
        if (strcasecmp(name, choices[i].name) == 0)
            return set_choice_argument(&choices[i], value, why);
    if (foreign_named(name))
        return set_foreign(name, value, foreign_named(name), why);
    return complain(why, "Unrecognized option");
}

static int set_arguments(RedisModuleCtx *ctx, RedisModuleString **argv,
                         int argc) {
    if (argc % 2 != 0) {
        RM_Log(ctx, "warning",
               "Invalid number of arguments passed: they come in pairs, of a "
               "name and a value");
        return RM_ERR;
    }
    for (int i = 0; i < argc; i += 2) {
        RedisModuleString *why = NULL;
        const char *name = RM_StringPtrLen(argv[i], NULL);
        if (set_argument(name, argv[i + 1], &why) == RM_OK) continue;
        RM_Log(ctx, "warning", "load argument '%s': %s", name,
               RM_StringPtrLen(why, NULL));
        RM_FreeString(NULL, why);
        return RM_ERR;
    }
    return RM_OK;
}

/* ---- Registration -------------------------------------------------------- */

/* Redis 8 takes names as they are; Redis 7 and Valkey put "bf." before them. */
static unsigned name_flags(RedisModuleCtx *ctx) {
    const int redis_8 = 8 << 16;
    return !server_valkey_major(ctx) && RM_GetServerVersion() >= redis_8
               ? RM_CONFIG_UNPREFIXED
               : RM_CONFIG_DEFAULT;
}

int settings_load(RedisModuleCtx *ctx, RedisModuleString **argv, int argc) {
    if (set_arguments(ctx, argv, argc) != RM_OK) return RM_ERR;
    const unsigned flags = name_flags(ctx);
    int bad = 0;
    for (int i = 0; i < TEXTS; i++) {
        struct text_setting *const s = &texts[i];
        bad |= RM_RegisterStringConfig(
            ctx, s->name, RM_StringPtrLen(s->get(s->name, s), NULL), flags,
            s->get, s->set, NULL, s);
    }
    bad |= RM_RegisterNumericConfig(ctx, texts[TEXTS].name,
                                    settings.max_filter_bytes,
                                    flags | RM_CONFIG_MEMORY, 0, INT64_MAX,
                                    get_bytes, set_bytes, NULL, NULL);
    for (int i = 0; i < CHOICES; i++)
        bad |= RM_RegisterEnumConfig(ctx, choices[i].name, *choices[i].value,
                                     flags, choices[i].names, choice_values,
                                     choices[i].n, get_choice, set_choice, NULL,
                                     choices[i].value);
    register_foreign(ctx, flags);
    return bad ? RM_ERR : RM_LoadConfigs(ctx);
}
