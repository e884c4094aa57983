#include "foreign/textbook/layout_line.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/layout_error.h"
#include "foreign/textbook/word_filter.h"

/* ---- Words --------------------------------------------------------------- */

struct line_reader {
    const char *at;
    char word[LINE_MOST_TEXT]; /* "" at the end */
    calyx_error *why;
};

static void next_word(struct line_reader *r) {
    r->at += strspn(r->at, " \t");
    const size_t size = strcspn(r->at, " \t");
    memcpy(r->word, r->at, size);
    r->word[size] = '\0';
    r->at += size;
}

static bool word_is(const struct line_reader *r, const char *word) {
    return strcmp(r->word, word) == 0;
}

/* If the word is this one, go on to the next. */
static bool take(struct line_reader *r, const char *word) {
    const bool is = word_is(r, word);
    if (is) next_word(r);
    return is;
}

static calyx_status refuse(const struct line_reader *r, const char *wanted) {
    if (!*r->word)
        return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                           "the layout ends: missing %s", wanted);
    return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                       "in the layout: expected %s, found '%.60s'", wanted,
                       r->word);
}

/* Digits, or 0x and hexadecimal digits. */
static bool read_digits(const char *text, uint64_t *number, const char **end) {
    const bool is_hex = text[0] == '0' && (text[1] | 32) == 'x';
    const char *const from = text + (is_hex ? 2 : 0);
    const size_t size =
        strspn(from, is_hex ? "0123456789abcdefABCDEF" : "0123456789");
    errno = 0;
    *number = strtoull(from, NULL, is_hex ? 16 : 10);
    *end = from + size;
    return size > 0 && errno == 0;
}

static calyx_status parse_number(struct line_reader *r, const char *of,
                                 uint64_t least, uint64_t most,
                                 uint64_t *value) {
    const char *end;
    if (read_digits(r->word, value, &end) && !*end && *value >= least &&
        *value <= most) {
        next_word(r);
        return CALYX_OK;
    }
    return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                       "in the layout '%s' takes a whole number from %" PRIu64
                       " to %" PRIu64 ", not '%.60s'",
                       of, least, most, r->word);
}

/* ---- Parts of the line --------------------------------------------------- */

/* N or A..B; moves on. */
static bool seed_range(const char **at, uint64_t *from, uint64_t *to) {
    if (!read_digits(*at, from, at)) return false;
    *to = *from;
    if (strncmp(*at, "..", 2) == 0 && !read_digits(*at + 2, to, at))
        return false;
    return *from <= *to && *to <= UINT32_MAX;
}

static calyx_status parse_seeds(struct line_reader *r,
                                struct layout_line *line) {
    uint64_t from, to;
    for (const char *at = r->word;; at++) {
        if (!seed_range(&at, &from, &to) || (*at && *at != ','))
            return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                               "in the layout 'seeds' takes numbers from 0 to "
                               "4294967295, as 41..47 or 3,5,7, not '%.60s'",
                               r->word);
        if (to - from >= LINE_MOST_SEEDS - line->seed_count)
            return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                               "in the layout '%.60s' has more than %d seeds",
                               r->word, LINE_MOST_SEEDS);
        for (; from <= to; from++)
            line->seeds[line->seed_count++] = (uint32_t)from;
        if (!*at) break;
    }
    next_word(r);
    if (line->hash->has_seed) return CALYX_OK;
    return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                       "in the layout 'seeds' does not go with %s, which has "
                       "no seed",
                       line->hash->name);
}

static calyx_status parse_second_hash(struct line_reader *r,
                                      struct layout_line *line) {
    calyx_status status = CALYX_OK;
    line->flips = UINT32_MAX;
    if (take(r, "seeds")) {
        status = parse_seeds(r, line);
        if (status == CALYX_OK && line->seed_count != 2)
            return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                               "in the layout 'double' takes two seeds, not %u",
                               line->seed_count);
    } else if (word_is(r, "xor") && line->hash->has_two) {
        return layout_fail(r->why, CALYX_BAD_ARGUMENT,
                           "in the layout 'xor' does not go with %s, which has "
                           "a second hash",
                           line->hash->name);
    } else if (take(r, "xor")) {
        status =
            parse_number(r, "xor", 1, line->is_signed ? INT64_MAX : UINT64_MAX,
                         &line->flips);
    }
    return status;
}

static calyx_status parse_numbers(struct line_reader *r,
                                  struct layout_line *line) {
    uint64_t probes = 0;
    line->is_double = word_is(r, "double");
    if (take(r, "seeds")) {
        const calyx_status status = parse_seeds(r, line);
        line->probes = line->seed_count;
        return status;
    }
    if (!take(r, "double")) return refuse(r, "'seeds' or 'double'");
    const calyx_status status =
        parse_number(r, "double", 1, WORD_MOST_PROBES, &probes);
    line->probes = (uint32_t)probes;
    return status == CALYX_OK ? parse_second_hash(r, line) : status;
}

static calyx_status parse_positions(struct line_reader *r,
                                    struct layout_line *line) {
    if (take(r, "mod"))
        return parse_number(r, "mod", 1, WORD_MOST_BITS, &line->positions);
    if (!take(r, "mask")) return refuse(r, "'mod' or 'mask'");
    const calyx_status status =
        parse_number(r, "mask", 1, WORD_MOST_BITS, &line->positions);
    if (status == CALYX_OK && line->positions & (line->positions - 1))
        return layout_fail(
            r->why, CALYX_BAD_ARGUMENT,
            "in the layout 'mask' takes the number of positions, a power of 2 "
            "(1024 for the mask 1023), not '%" PRIu64 "'",
            line->positions);
    return status;
}

static const char *const orders[] = {
    [LSB_FIRST] = "lsb", [MSB_FIRST] = "msb", [BYTE_EACH] = "byte"};

static calyx_status parse_order(struct line_reader *r,
                                struct layout_line *line) {
    line->order = LSB_FIRST;
    for (enum bit_order o = LSB_FIRST; *r->word && o <= BYTE_EACH; o++)
        if (take(r, orders[o])) {
            line->order = o;
            break;
        }
    return *r->word ? refuse(r, "'lsb', 'msb', 'byte' or the end") : CALYX_OK;
}

/* ---- The text ------------------------------------------------------------ */

static size_t put(char *to, size_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static size_t put(char *to, size_t at, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(to + at, LINE_MOST_TEXT - at, format, args);
    va_end(args);
    return at + (size_t)size;
}

static size_t put_seeds(const struct layout_line *line, char *to, size_t at) {
    if (line->seed_count) at = put(to, at, " seeds ");
    for (uint32_t i = 0, next; i < line->seed_count; i = next) {
        next = i + 1;
        while (next < line->seed_count &&
               line->seeds[next] == line->seeds[next - 1] + UINT64_C(1))
            next++;
        at = put(to, at, "%s%" PRIu32, i ? "," : "", line->seeds[i]);
        if (next > i + 1) at = put(to, at, "..%" PRIu32, line->seeds[next - 1]);
    }
    return at;
}

static void put_line(struct layout_line *line) {
    char *const to = line->text;
    size_t at = put(to, 0, "%s %s%s", line->hash->name,
                    line->is_signed ? "signed" : "unsigned",
                    line->wraps ? " wrap" : "");
    if (line->is_double) at = put(to, at, " double %" PRIu32, line->probes);
    at = put_seeds(line, to, at);
    if (line->is_double && !line->seed_count && !line->hash->has_two)
        at = put(to, at, " xor 0x%" PRIx64, line->flips);
    put(to, at, " mod %" PRIu64 " %s", line->positions, orders[line->order]);
}

calyx_status layout_line_parse(const char *text, struct layout_line *line,
                               calyx_error *why) {
    struct line_reader r = {.at = text, .why = why};
    *line = (struct layout_line){0};
    if (strlen(text) >= LINE_MOST_TEXT)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "the layout has %zu characters, and %d are the most",
                           strlen(text), LINE_MOST_TEXT - 1);
    next_word(&r);
    line->hash = line_hash_named(r.word);
    if (!line->hash) return refuse(&r, line_hash_names);
    next_word(&r);
    line->is_signed = line->hash->is_signed;
    if (take(&r, "signed"))
        line->is_signed = true;
    else if (take(&r, "unsigned"))
        line->is_signed = false;
    line->wraps = take(&r, "wrap");
    calyx_status status = parse_numbers(&r, line);
    if (status == CALYX_OK) status = parse_positions(&r, line);
    if (status == CALYX_OK) status = parse_order(&r, line);
    if (status == CALYX_OK) put_line(line);
    return status;
}

/* ---- Flaws --------------------------------------------------------------- */

static bool repeats_a_seed(const struct layout_line *line) {
    for (uint32_t i = 0; i < line->seed_count; i++)
        for (uint32_t j = 0; j < i; j++)
            if (line->seeds[i] == line->seeds[j]) return true;
    return false;
}

const char *layout_line_flaw(const struct layout_line *line) {
    const bool flips =
        line->is_double && !line->seed_count && !line->hash->has_two;
    /* The low 32 bits of both hashes add up to 2^32 - 1. So the first gives the
     * second if a hash has 32 bits; else it gives the second modulo each power
     * of 2 that divides the number of positions. */
    if (flips && (line->hash->bits == 32 || line->positions % 2 == 0))
        return "the second hash depends on the first";
    if (repeats_a_seed(line))
        return "a seed is there twice, so that a key sets fewer bits";
    if (!line->is_double && line->hash->bits == 32 &&
        line->positions > UINT64_C(1) << 32)
        return "a hash of 32 bits does not reach all positions";
    return NULL;
}
