/*
 * Bits whose layout is given as a line, layout_line.h: of a tutorial, or of a
 * program of one's own. The file is the bits and nothing else.
 *
 * A dump begins with a record that is the line; the others are pieces of the
 * bits.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/foreign_filter.h"
#include "foreign/modulo.h"

/* ---- Positions ----------------------------------------------------------- */

/* The number modulo the number of positions, never below 0, as in Python and in
 * mathematics. */
static uint64_t reduced(const struct word_filter *w, uint64_t number) {
    if (w->line.is_signed && number >> 63)
        return w->modulus - 1 - modulo(~number, w->modulus, w->inverse);
    return modulo(number, w->modulus, w->inverse);
}

static uint64_t extended(const struct layout_line *line, uint64_t number) {
    if (!line->is_signed || line->hash->bits == 64) return number;
    return (uint64_t)(int64_t)(int32_t)(uint32_t)number;
}

static uint64_t seeded(const struct word_walk *walk, uint32_t seed) {
    const struct layout_line *const line = &walk->filter->line;
    return extended(line, line->hash->of(walk->key, walk->size, seed).first);
}

static void start_seeds(const struct word_filter *w, const void *key,
                        size_t size, struct word_walk *walk) {
    (void)w, (void)key, (void)size, (void)walk; /* each bit has a hash */
}

static uint64_t next_seed(struct word_walk *walk) {
    const uint32_t seed = walk->filter->line.seeds[walk->number++];
    return reduced(walk->filter, seeded(walk, seed));
}

/* Sums without bounds: the sums of the remainders have the same positions. */
static void start_double(const struct word_filter *w, const void *key,
                         size_t size, struct word_walk *walk) {
    const struct layout_line *const line = &w->line;
    if (line->seed_count) {
        walk->a = seeded(walk, line->seeds[0]);
        walk->b = seeded(walk, line->seeds[1]);
    } else {
        const struct line_numbers of = line->hash->of(key, size, 0);
        walk->a = extended(line, of.first);
        walk->b = line->hash->has_two ? of.second : walk->a ^ line->flips;
    }
    if (line->wraps) return;
    walk->a = reduced(w, walk->a);
    walk->b = reduced(w, walk->b);
}

static uint64_t next_double(struct word_walk *walk) {
    const struct word_filter *const w = walk->filter;
    const uint64_t position = reduced(w, walk->a);
    walk->a += walk->b;
    if (!w->line.wraps && walk->a >= w->modulus) walk->a -= w->modulus;
    return position;
}

static const struct word_rule by_seeds = {"", start_seeds, next_seed};
static const struct word_rule by_double = {"", start_double, next_double};

/* ---- Filters ------------------------------------------------------------- */

static struct word_filter filter_of(const struct layout_line *line) {
    return (struct word_filter){.rule =
                                    line->is_double ? &by_double : &by_seeds,
                                .modulus = line->positions,
                                .probes = line->probes,
                                .order = line->order,
                                .line = *line};
}

/* Without a line: the textbook's filter, with a good hash. */
static calyx_status choose_line(uint64_t capacity, double rate,
                                struct layout_line *line, calyx_error *why) {
    char text[80];
    double bits;
    const calyx_status status =
        foreign_size(capacity, rate, (double)WORD_MOST_BITS, &bits, why);
    if (status != CALYX_OK) return status;
    snprintf(text, sizeof text, "murmur3-128 double %.0f mod %.0f",
             fmin(64, fmax(1, round(bits / (double)capacity * M_LN2))),
             ceil(bits));
    return layout_line_parse(text, line, why);
}

static calyx_status make(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why) {
    struct layout_line line = f->words.line;
    const calyx_status status =
        line.hash ? CALYX_OK : choose_line(capacity, rate, &line, why);
    if (status != CALYX_OK) return status;
    const struct word_filter like = filter_of(&line);
    return word_make(&like, f, why);
}

static calyx_status file_size(const uint8_t *head, size_t size,
                              const struct foreign_filter *f, uint64_t *all,
                              calyx_error *why) {
    (void)head, (void)size;
    if (!f->words.line.hash)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "bits alone do not say their layout: give it as a "
                           "line, such as 'murmur3-32 seeds 1..7 mod 1000000'");
    const struct word_filter like = filter_of(&f->words.line);
    *all = word_body(&like);
    return CALYX_OK;
}

static calyx_status read_file(uint8_t *bytes, size_t size,
                              struct foreign_filter *f, calyx_error *why) {
    uint64_t all;
    calyx_status status = file_size(bytes, size, f, &all, why);
    if (status != CALYX_OK) return status;
    struct word_filter w = filter_of(&f->words.line);
    w.file = bytes;
    w.size = size;
    status = word_expect_bits(&w, why);
    if (status == CALYX_OK) word_take(&w, f);
    return status;
}

static void describe(const struct foreign_filter *f,
                     struct foreign_facts *facts) {
    word_describe(f, facts);
    facts->variant = f->words.line.text;
    facts->note = layout_line_flaw(&f->words.line);
}

/* ---- Records ------------------------------------------------------------- */

static calyx_status save(const struct foreign_filter *f,
                         const struct record_sink *to, calyx_error *why) {
    const char *const text = f->words.line.text;
    to->put(to->context, UINT64_MAX, text, strlen(text));
    return word_save(f, to, why);
}

static calyx_status load_line(struct foreign_filter *f, const void *bytes,
                              size_t size, calyx_error *why) {
    char text[LINE_MOST_TEXT];
    if (size >= sizeof text)
        return layout_fail(why, CALYX_DAMAGED, "its layout takes %zu bytes",
                           size);
    if (size > 0) memcpy(text, bytes, size); /* else it may be NULL */
    text[size] = '\0';
    struct layout_line line;
    const calyx_status status = layout_line_parse(text, &line, why);
    if (status == CALYX_OK) f->words = filter_of(&line);
    return status == CALYX_OK ? status : CALYX_DAMAGED;
}

/* Memory grows with what is there. */
static calyx_status load(struct foreign_filter *f, uint64_t iterator,
                         const void *bytes, size_t size, calyx_error *why) {
    struct word_filter *const w = &f->words;
    (void)iterator;
    if (!w->line.hash) return load_line(f, bytes, size, why);
    if (size > word_body(w) - w->size)
        return layout_fail(why, CALYX_DAMAGED,
                           "it has more bits than its layout");
    uint8_t *const longer = realloc(w->file, (size_t)w->size + size + 1);
    if (!longer)
        return layout_fail(why, CALYX_NO_MEMORY, "no memory for %zu bytes",
                           (size_t)w->size + size);
    if (size) memcpy(longer + w->size, bytes, size);
    w->file = longer;
    w->size += size;
    return CALYX_OK;
}

static calyx_status loaded(struct foreign_filter *f, calyx_error *why) {
    if (!f->words.line.hash)
        return layout_fail(why, CALYX_DAMAGED, "its layout is missing");
    const calyx_status status = word_expect_bits(&f->words, why);
    const struct word_filter w = f->words;
    if (status == CALYX_OK) word_take(&w, f);
    return status;
}

const struct foreign_layout foreign_bits = {
    .name = "bits",
    .file = "bits of the layout that was given",
    .make = make,
    .free = word_free,
    .has_many = word_has_many,
    .add_many = word_add_many,
    .describe = describe,
    .file_size = file_size,
    .read = read_file,
    .write = word_write,
    .save = save,
    .load = load,
    .loaded = loaded,
};
