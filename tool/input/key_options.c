#include "input/key_options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct key_options key_form = {.separator = -1};
static bool whole_line, any_bytes;
static const char *adopted; /* what the filters were built with */

static const char *const PROPERTY = "key-options";

bool accepts_any_bytes(void) {
    return any_bytes;
}

/* ---- On the command line ------------------------------------------------ */

static bool field_number(const char **at, int64_t *number) {
    char *end;
    const bool negative = **at == '-';
    const char *const digits = *at + negative;
    if (*digits < '1' || *digits > '9') return false;
    const long long n = strtoll(digits, &end, 10);
    if (n > INT32_MAX) return false;
    *at = end;
    *number = negative ? -n : n;
    return true;
}

/* Known only for two numbers that count from the same end. */
static bool is_backwards(struct field_range r) {
    return (r.first < 0) == (r.last < 0) && r.last < r.first;
}

/* 1,3  2-4  2-  -1 */
static bool add_fields(struct key_options *to, const char *at) {
    do {
        struct field_range r;
        if (!field_number(&at, &r.first)) break;
        r.last = r.first;
        if (*at == '-') {
            at++;
            if (*at == ',' || *at == '\0')
                r.last = -1;
            else if (!field_number(&at, &r.last) || is_backwards(r))
                break;
        }
        to->ranges = resize_memory(to->ranges,
                                   (to->ranges_count + 1) * sizeof *to->ranges);
        to->ranges[to->ranges_count++] = r;
        if (*at == '\0') return true;
    } while (*at++ == ',');
    return false;
}

static void parse_fields(const struct verb_option *o, const char *value) {
    (void)o;
    if (add_fields(&key_form, value)) return;
    fail("option --fields wants numbers from 1 such as 2, 1,3, 2-4 or 2-, or "
         "-1 for the last field, not '%s'",
         value);
}

const struct group key_group = {
    "The key in a line",
    (const struct verb_option[]){
        {'z', "null", NULL,
         "Lines end with a NUL byte instead of a newline, in input and output.",
         parse_flag, &key_form.nul},
        {'0', "nul", NULL, "The same as -z.", parse_flag, &key_form.nul},
        {0, "crlf", NULL,
         "A carriage return before the end of a line is part of the end.",
         parse_flag, &key_form.crlf},
        {'i', "ignore-case", NULL,
         "Convert keys to lower case; only the letters A to Z.", parse_flag,
         &key_form.fold},
        {'k', "fields", "FIELDS",
         "The key is these fields of the line, such as 2, 1,3, 2-4, 2- or -1, "
         "the last one. A line that lacks one is an error. A single field "
         "equals a line with the same bytes.",
         parse_fields, NULL},
        {'t', "separator", "BYTE",
         "Fields are separated by BYTE; the default is a tab, or a comma with "
         "--csv. \\t is a tab.",
         parse_byte, &key_form.separator},
        {0, "csv", NULL,
         "Fields may be quoted as in CSV, and then contain separators and "
         "newlines; a quote within is doubled.",
         parse_flag, &key_form.csv},
        {0, "whole-line", NULL,
         "The key is the whole line, whatever the filter was built with. "
         "Without this and the options above, those that 'calyx build' stored "
         "in the filter apply; any of them on the command line replaces all.",
         parse_flag, &whole_line},
        {0, "text", NULL,
         "Read every file as lines, after gzip and zstd, even if it looks like "
         "a filter, a compressed file, UTF-16 or UTF-32, which are refused "
         "otherwise; and keep the byte order mark of UTF-8, which is otherwise "
         "not part of the first line.",
         parse_flag, &any_bytes},
        {0},
    },
};

/* ---- As text -------------------------------------------------------------
 *
 * "-z --crlf -i --csv -t : -k 2,4-5,-1", as they could be given, with one space
 * between words, and without what is a default. A separator that is no sign is
 * written as \xHH. */

enum { TEXT = 3000 }; /* of 4096 that the properties of a filter may have */

struct text {
    char bytes[TEXT];
    size_t size;
};

static void put(struct text *t, const char *format, ...) PRINTS(2, 3);
static void put(struct text *t, const char *format, ...) {
    va_list values;
    va_start(values, format);
    const int n = vsnprintf(t->bytes + t->size, TEXT - t->size, format, values);
    va_end(values);
    t->size += (size_t)n;
    if (t->size >= TEXT)
        fail("option --fields has too many numbers to be stored with a filter");
}

static void put_word(struct text *t, const char *word) {
    put(t, "%s%s", t->size ? " " : "", word);
}

static char default_separator(const struct key_options *o) {
    return o->csv ? ',' : '\t';
}

static char separator_of(const struct key_options *o) {
    return o->separator < 0 ? default_separator(o) : (char)o->separator;
}

static void put_separator(struct text *t, const struct key_options *o) {
    const unsigned char byte = (unsigned char)separator_of(o);
    if (!(o->csv || o->ranges_count) || byte == default_separator(o)) return;
    put_word(t, "-t ");
    put(t, byte > ' ' && byte < 127 && byte != '\\' ? "%c" : "\\x%02x", byte);
}

static void put_fields(struct text *t, const struct key_options *o) {
    for (size_t i = 0; i < o->ranges_count; i++) {
        const struct field_range r = o->ranges[i];
        if (i == 0) put_word(t, "-k ");
        put(t, "%s%" PRId64, i ? "," : "", r.first);
        if (r.last == r.first) continue;
        put(t, "-");
        if (r.last != -1) put(t, "%" PRId64, r.last);
    }
}

static void options_text(const struct key_options *o, struct text *t) {
    *t = (struct text){.size = 0};
    if (o->nul) put_word(t, "-z");
    if (o->crlf) put_word(t, "--crlf");
    if (o->fold) put_word(t, "-i");
    if (o->csv) put_word(t, "--csv");
    put_separator(t, o);
    put_fields(t, o);
}

static bool separator_from(const char *word, int *byte) {
    unsigned code;
    int end = 0;
    if (sscanf(word, "\\x%2x%n", &code, &end) == 1 && end == 4 && !word[end])
        *byte = (int)code;
    else if (strlen(word) == 1)
        *byte = (unsigned char)*word;
    else
        return false;
    return true;
}

static bool parse_word(struct key_options *o, const char *word, char **rest) {
    if (strcmp(word, "-z") == 0)
        o->nul = true;
    else if (strcmp(word, "--crlf") == 0)
        o->crlf = true;
    else if (strcmp(word, "-i") == 0)
        o->fold = true;
    else if (strcmp(word, "--csv") == 0)
        o->csv = true;
    else if (strcmp(word, "-t") == 0)
        return (word = strsep(rest, " ")) &&
               separator_from(word, &o->separator);
    else if (strcmp(word, "-k") == 0)
        return (word = strsep(rest, " ")) && add_fields(o, word);
    else
        return false;
    return true;
}

/* A file may say anything: what is not exactly what build stores is refused. */
static bool options_from(const char *text, struct key_options *o) {
    *o = (struct key_options){.separator = -1};
    char *const words = copy_text(text), *rest = *text ? words : NULL;
    bool good = true;
    while (good && rest) good = parse_word(o, strsep(&rest, " "), &rest);
    free(words);
    struct text again;
    if (good) options_text(o, &again);
    return good && strcmp(again.bytes, text) == 0;
}

/* ---- In filters ---------------------------------------------------------- */

const char *key_options_of(const calyx_filter *f) {
    return calyx_property(f, PROPERTY);
}

const char *key_options_of_layout(const calyx_layout *layout) {
    return calyx_layout_property(layout, PROPERTY);
}

void key_options_set(calyx_filter *f, const char *text) {
    calyx_error why;
    if (calyx_set_property(f, PROPERTY, text, &why) != CALYX_OK)
        fail_with(&why);
}

void key_options_store(calyx_filter *f) {
    struct text text;
    options_text(&key_form, &text);
    key_options_set(f, text.bytes);
}

static const char *in_words(const char *text) {
    return *text ? text : "no options for keys";
}

static struct key_options options_of(const char *name, const char *text) {
    struct key_options o;
    if (!options_from(text, &o))
        fail_at(name, 0,
                "the options for keys that it was built with are not known to "
                "this calyx; give those to go by, or --whole-line");
    return o;
}

/* May the keys of lines be others than those that the filter was built of? A
 * list may well have another form than the one it was built of, such as fields
 * where that had whole lines; but nothing may be left out, and letter case and
 * keys of several fields must agree. */
static bool may_miss(const struct key_options *built,
                     const struct key_options *given) {
    const size_t n = built->ranges_count;
    if (built->fold != given->fold) return true;
    if ((built->nul && !given->nul) || (built->crlf && !given->crlf) ||
        (built->csv && !given->csv))
        return true;
    if (n == 0)
        return given->ranges_count > 1 ||
               (given->ranges_count == 1 &&
                given->ranges[0].first != given->ranges[0].last);
    return n != given->ranges_count ||
           memcmp(built->ranges, given->ranges, n * sizeof *built->ranges) !=
               0 ||
           separator_of(built) != separator_of(given);
}

static void say_if_they_differ(const char *name, const char *text,
                               const char *given) {
    struct key_options built;
    const bool harmless =
        options_from(text, &built) && !may_miss(&built, &key_form);
    free(built.ranges);
    if (harmless) return;
    warn("%s was built with %s; going by %s, as given", name, in_words(text),
         *given ? given : "--whole-line");
}

bool key_options_given(void) {
    struct text given;
    options_text(&key_form, &given);
    return whole_line || given.size;
}

void key_options_use(size_t n, const char *const *names,
                     calyx_filter *const *filters) {
    struct text given;
    options_text(&key_form, &given);
    const bool any = key_options_given();
    const char *first = NULL;
    for (size_t i = 0; i < n; i++) {
        const char *text = key_options_of(filters[i]);
        if (any && text) say_if_they_differ(names[i], text, given.bytes);
        if (any) continue;
        if (!text) text = "";
        if (!first) first = text;
        if (strcmp(text, first) != 0)
            fail("%s was built with %s, and %s with %s: query them one by one, "
                 "or give the options for keys to go by, or --whole-line",
                 names[0], in_words(first), names[i], in_words(text));
    }
    if (any || !first || !*first) return;
    adopted = copy_text(first);
    key_form = options_of(names[0], first);
}

void key_options_compare(const char *a_name, const calyx_filter *a,
                         const char *b_name, const calyx_filter *b) {
    const char *const of_a = key_options_of(a), *const of_b = key_options_of(b);
    if (of_a && of_b && strcmp(of_a, of_b) != 0)
        warn("%s was built with %s, and %s with %s; the result says %s", a_name,
             in_words(of_a), b_name, in_words(of_b), in_words(of_a));
}

const char *key_options_hint(void) {
    static char hint[200];
    if (!adopted) return "";
    snprintf(hint, sizeof hint,
             "; the filter was built with %.60s: other options for keys, or "
             "--whole-line, replace that",
             adopted);
    return hint;
}
