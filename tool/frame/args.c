/*
 * Parses options by the tables of the verb: -n 5, -n5, --keys 5, --keys=5, -vc
 * for -v -c, and --ke 5 if only one name begins so. Options may be anywhere;
 * after "--" nothing is an option, and "-" never is: it means standard input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool.h"

/* ---- Finding an option -------------------------------------------------- */

/* Edit distance: letters to insert, remove or change to make b of a. */
static size_t distance(const char *a, const char *b) {
    enum { MOST = 32 };
    size_t row[MOST + 1];
    const size_t size_a = strlen(a), size_b = strlen(b);
    if (size_a > MOST || size_b > MOST) return MOST;

    for (size_t j = 0; j <= size_b; j++) row[j] = j;
    for (size_t i = 1; i <= size_a; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= size_b; j++) {
            const size_t changed = diagonal + (a[i - 1] != b[j - 1]);
            const size_t one_more =
                1 + (row[j] < row[j - 1] ? row[j] : row[j - 1]);
            diagonal = row[j];
            row[j] = changed < one_more ? changed : one_more;
        }
    }
    return row[size_b];
}

const char *nearest(const char *name, const char *const *names) {
    const char *best = NULL;
    size_t least = strlen(name) < 3 ? 2 : 3; /* less than this is near */
    for (; *names; names++) {
        const size_t d = distance(name, *names);
        if (d < least) {
            least = d;
            best = *names;
        }
    }
    return best;
}

/* The option with this letter, or else with this name of `size` bytes. */
static const struct verb_option *find(const struct verb *verb, char letter,
                                      const char *name, size_t size) {
    for (const struct group *const *group = verb->groups; *group; group++)
        for (const struct verb_option *o = (*group)->options; o->name; o++)
            if (name ? strlen(o->name) == size && !memcmp(o->name, name, size)
                     : o->letter == letter)
                return o;
    return NULL;
}

static bool same_effect(const struct verb_option *a,
                        const struct verb_option *b) {
    return a->into && a->into == b->into && a->parse == b->parse;
}

/* The one option whose name begins so; fails if there are several that differ.
 */
static const struct verb_option *find_short(const struct verb *verb,
                                            const char *name, size_t size) {
    const struct verb_option *found = NULL;
    for (const struct group *const *group = verb->groups; *group; group++)
        for (const struct verb_option *o = (*group)->options; o->name; o++) {
            if (strncmp(o->name, name, size) != 0) continue;
            if (found && same_effect(found, o)) continue;
            if (found)
                fail("option --%.*s could be --%s or --%s", (int)size, name,
                     found->name, o->name);
            found = o;
        }
    return found;
}

static _Noreturn void fail_unknown(const struct verb *verb, const char *name) {
    enum { MOST = 64 };
    const char *names[MOST + 1];
    size_t n = 0;
    for (const struct group *const *group = verb->groups; *group; group++)
        for (const struct verb_option *o = (*group)->options; o->name; o++)
            if (n < MOST) names[n++] = o->name;
    names[n] = NULL;

    const char *const near = nearest(name, names);
    if (near) fail("unknown option --%s; did you mean --%s?", name, near);
    fail("unknown option --%s; see 'calyx help %s'", name, verb->name);
}

/* ---- Reading them ------------------------------------------------------- */

struct arguments {
    char **word;
    int count, next;
};

static const char *next_word(struct arguments *words,
                             const struct verb_option *o) {
    if (words->next == words->count)
        fail("missing value: --%s %s", o->name, o->argument);
    return words->word[words->next++];
}

static _Noreturn void show_help(const struct verb *verb) {
    print_help(verb);
    exit(finish(EXIT_YES));
}

/* --name, --name value, --name=value; `word` is what follows the dashes. */
static void read_long(const struct verb *verb, const char *word,
                      struct arguments *words) {
    const size_t size = strcspn(word, "=");
    const char *value = word[size] == '=' ? word + size + 1 : NULL;
    if (size == 4 && memcmp(word, "help", 4) == 0) show_help(verb);

    const struct verb_option *o = find(verb, 0, word, size);
    if (!o && size > 0) o = find_short(verb, word, size);
    if (!o) {
        char name[80];
        snprintf(name, sizeof name, "%.*s", (int)size, word);
        fail_unknown(verb, name);
    }
    if (!o->argument && value)
        fail("unexpected value: --%s takes none, found '%s'", o->name, value);
    if (o->argument && !value && *o->argument != '[')
        value = next_word(words, o);
    o->parse(o, value);
}

/* -abc, -n5, -n 5; `letters` is what follows the dash. */
static void read_letters(const struct verb *verb, const char *letters,
                         struct arguments *words) {
    for (; *letters; letters++) {
        const struct verb_option *const o = find(verb, *letters, NULL, 0);
        if (!o && *letters == 'h') show_help(verb);
        if (!o)
            fail("unknown option -%c; see 'calyx help %s'", *letters,
                 verb->name);
        if (!o->argument) {
            o->parse(o, NULL);
            continue;
        }
        o->parse(o, letters[1] ? letters + 1 : next_word(words, o));
        return;
    }
}

int read_options(const struct verb *verb, int count, char **word) {
    struct arguments words = {word, count, 0};
    int operands = 0;
    while (words.next < count) {
        char *const w = word[words.next++];
        if (w[0] != '-' || !w[1])
            word[operands++] = w;
        else if (w[1] != '-')
            read_letters(verb, w + 1, &words);
        else if (w[2])
            read_long(verb, w + 2, &words);
        else
            while (words.next < count) word[operands++] = word[words.next++];
    }
    return operands;
}

/* ---- Taking values ------------------------------------------------------ */

void parse_flag(const struct verb_option *o, const char *value) {
    (void)value;
    *(bool *)o->into = true;
}

void parse_text(const struct verb_option *o, const char *value) {
    *(const char **)o->into = value;
}

void parse_texts(const struct verb_option *o, const char *value) {
    struct texts *const texts = o->into;
    texts->text =
        resize_memory(texts->text, (texts->count + 1) * sizeof *texts->text);
    texts->text[texts->count++] = value;
}

static _Noreturn void fail_value(const struct verb_option *o,
                                 const char *wanted, const char *found) {
    fail("--%s: expected %s, found '%s'", o->name, wanted, found);
}

void parse_count(const struct verb_option *o, const char *value) {
    if (!count_from(value, o->into))
        fail_value(o, "a whole number below 2^63, such as 5000, 10M or 1e9",
                   value);
}

void parse_positive(const struct verb_option *o, const char *value) {
    parse_count(o, value);
    if (*(uint64_t *)o->into == 0) fail_value(o, "at least 1", value);
}

void parse_size(const struct verb_option *o, const char *value) {
    if (!size_from(value, o->into) || *(uint64_t *)o->into == 0)
        fail_value(o, "a size such as 10M, 64KiB or 1G", value);
}

void parse_rate(const struct verb_option *o, const char *value) {
    double rate;
    if (!rate_from(value, &rate) || !(rate > 0 && rate < 1))
        fail_value(o,
                   "a rate between 0 and 1, such as 0.01, 1%, 1e-6 or "
                   "1/1000000",
                   value);
    *(double *)o->into = rate;
}

void parse_share(const struct verb_option *o, const char *value) {
    double share;
    if (!rate_from(value, &share) || !(share >= 0 && share <= 1))
        fail_value(o, "a share from 0 to 1, such as 0.2 or 20%", value);
    *(double *)o->into = share;
}

void parse_time(const struct verb_option *o, const char *value) {
    if (!time_from(value, o->into))
        fail_value(o, "a time such as 50ns, 3us, 1ms or 2s", value);
}
