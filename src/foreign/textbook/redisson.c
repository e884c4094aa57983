/*
 * RBloomFilter of Redisson (Java). In a server it is two keys: a string with
 * the bits, as SETBIT has them, and a hash {NAME}:config. As one file, the
 * fields of the hash as 'redis-cli HGETALL' prints them, an empty line, and the
 * string, with the zeros at its end that Redis leaves out:
 *
 *     size
 *     958505
 *     hashIterations
 *     7
 *     expectedInsertions
 *     100000
 *     falseProbability
 *     0.01
 *
 * A key is what the codec of the program makes of an item; it is hashed by
 * HighwayHash with 128 bits and a secret that all programs share. Beginning
 * with the first half, the second and the first half are added in turns; the
 * top bit of a sum does not count.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/foreign_filter.h"
#include "foreign/textbook/highwayhash.h"

/* Redisson's own limit; SETBIT has 2^32. */
#define MOST_BITS (2 * (uint64_t)INT32_MAX)

/* ---- Bits ---------------------------------------------------------------- */

static void start(const struct word_filter *w, const void *key, size_t size,
                  struct word_walk *walk) {
    static const uint64_t secret[] = {
        UINT64_C(0x9E3779B97F4A7C15), UINT64_C(0xF39CC0605CEDC834),
        UINT64_C(0x1082276BF3A27251), UINT64_C(0xF86C6A11D0C18E95)};
    (void)w;
    const struct highway_digest hash = highway_128(secret, key, size);
    walk->a = walk->c = hash.first;
    walk->b = hash.second;
}

static uint64_t next(struct word_walk *walk) {
    const uint64_t sum = walk->c;
    walk->c += walk->number++ % 2 ? walk->a : walk->b;
    return sum & INT64_MAX;
}

static const struct word_rule rule = {"", start, next};

/* ---- The config ---------------------------------------------------------- */

enum { MOST_VALUE = 40 };

struct config {
    size_t size; /* with the empty line */
    char bits[MOST_VALUE], probes[MOST_VALUE];
    char items[MOST_VALUE], rate[MOST_VALUE]; /* "": it is not there */
};

/* The next line; NULL if it does not end. */
static const uint8_t *take_line(const uint8_t **at, const uint8_t *end,
                                size_t *size) {
    const uint8_t *const line = *at;
    const uint8_t *const newline = memchr(line, '\n', (size_t)(end - line));
    if (!newline) return NULL;
    *size = (size_t)(newline - line);
    *at = newline + 1;
    return line;
}

static char *value_of(struct config *c, const uint8_t *field, size_t size) {
    struct {
        const char *name;
        char *value;
    } const fields[] = {{"size", c->bits},
                        {"hashIterations", c->probes},
                        {"expectedInsertions", c->items},
                        {"falseProbability", c->rate}};
    for (int i = 0; i < 4; i++)
        if (size == strlen(fields[i].name) &&
            memcmp(field, fields[i].name, size) == 0)
            return fields[i].value;
    return NULL; /* of a later version */
}

static calyx_status read_config(const uint8_t *bytes, size_t size,
                                struct config *c, calyx_error *why) {
    const uint8_t *at = bytes, *const end = bytes + size;
    *c = (struct config){0};
    for (;;) {
        size_t field_size, value_size;
        const uint8_t *const field = take_line(&at, end, &field_size);
        if (field && field_size == 0) break;
        const uint8_t *const value =
            field ? take_line(&at, end, &value_size) : NULL;
        if (!value)
            return layout_fail(why, CALYX_DAMAGED,
                               "it does not begin with the lines of a config, "
                               "each field and its value, and an empty line");
        char *const to = value_of(c, field, field_size);
        if (!to) continue;
        if (*to || value_size == 0 || value_size >= MOST_VALUE)
            return layout_fail(why, CALYX_DAMAGED,
                               "the field %.*s of its config must be there "
                               "once, with a value of 1 to %d characters",
                               (int)field_size, (const char *)field,
                               MOST_VALUE - 1);
        memcpy(to, value, value_size);
    }
    c->size = (size_t)(at - bytes);
    return CALYX_OK;
}

static calyx_status whole_number(const char *field, const char *text,
                                 uint64_t most, uint64_t *value,
                                 calyx_error *why) {
    errno = 0;
    *value = strtoull(text, NULL, 10);
    if (*text && strspn(text, "0123456789") == strlen(text) && errno == 0 &&
        *value >= 1 && *value <= most)
        return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "the field %s of its config must be a whole number from "
                       "1 to %llu, not '%s'",
                       field, (unsigned long long)most, text);
}

static calyx_status from_config(const struct config *c, struct word_filter *w,
                                calyx_error *why) {
    uint64_t bits, probes;
    calyx_status status = whole_number("size", c->bits, MOST_BITS, &bits, why);
    if (status == CALYX_OK)
        status = whole_number("hashIterations", c->probes, WORD_MOST_PROBES,
                              &probes, why);
    if (status != CALYX_OK) return status;
    *w = (struct word_filter){.rule = &rule,
                              .head = c->size,
                              .modulus = bits,
                              .probes = (uint32_t)probes,
                              .order = MSB_FIRST};
    return CALYX_OK;
}

static calyx_status read_head(const uint8_t *bytes, size_t size,
                              struct word_filter *w, calyx_error *why) {
    struct config c;
    const calyx_status status = read_config(bytes, size, &c, why);
    return status == CALYX_OK ? from_config(&c, w, why) : status;
}

/* ---- Files --------------------------------------------------------------- */

static calyx_status file_size(const uint8_t *head, size_t size,
                              const struct foreign_filter *f, uint64_t *all,
                              calyx_error *why) {
    struct word_filter w;
    (void)f;
    const calyx_status status = read_head(head, size, &w, why);
    if (status == CALYX_OK) *all = w.head + word_body(&w);
    return status;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    struct word_filter w;
    calyx_status status = read_head(bytes, size, &w, why);
    if (status != CALYX_OK) return status;
    w.file = bytes;
    w.size = size;
    status = word_expect_bits(&w, why);
    if (status == CALYX_OK) word_take(&w, f);
    return status;
}

/* The shortest digits that make this number again. */
static void print_rate(double rate, char text[MOST_VALUE]) {
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(text, MOST_VALUE, "%.*g", digits, rate);
        if (strtod(text, NULL) == rate) return;
    }
}

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    char head[200], rate_text[MOST_VALUE];
    double bits;
    const calyx_status status =
        foreign_size(capacity, rate, (double)MOST_BITS, &bits, why);
    if (status != CALYX_OK) return status;
    struct word_filter like = {.rule = &rule,
                               .modulus = (uint64_t)fmax(1, floor(bits)),
                               .order = MSB_FIRST};
    const double probes =
        round((double)like.modulus / (double)capacity * M_LN2);
    like.probes = (uint32_t)fmax(1, probes);
    print_rate(rate, rate_text);
    snprintf(head, sizeof head,
             "size\n%llu\nhashIterations\n%u\nexpectedInsertions\n%llu\n"
             "falseProbability\n%s\n\n",
             (unsigned long long)like.modulus, like.probes,
             (unsigned long long)capacity, rate_text);
    like.head = strlen(head);
    if (word_make(&like, f, why) != CALYX_OK) return CALYX_NO_MEMORY;
    memcpy(f->words.file, head, (size_t)like.head);
    return CALYX_OK;
}

static void describe(const struct foreign_filter *f,
                     struct foreign_facts *facts) {
    struct config c;
    word_describe(f, facts);
    if (read_config(f->words.file, (size_t)f->words.size, &c, NULL) != CALYX_OK)
        return;
    const double rate = strtod(c.rate, NULL);
    if (rate > 0 && rate < 1) facts->rate = rate;
    uint64_t items;
    if (whole_number("", c.items, INT64_MAX, &items, NULL) == CALYX_OK)
        facts->capacity = items;
}

const struct foreign_layout foreign_redisson = {
    .name = "redisson",
    .file = "the config and the bits of an RBloomFilter of Redisson",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = describe,
    .file_size = file_size,
    .read = read_file,
    .write = word_write,
    .save = word_save,
};
