#include "input/key_options.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/json_field.h"

struct key_options key_form;
enum missing_key missing_key;
bool skips_invalid;
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

static void add_range(struct key_options *to, struct field_range r) {
    to->ranges =
        resize_memory(to->ranges, (to->ranges_count + 1) * sizeof *to->ranges);
    to->ranges[to->ranges_count++] = r;
}

/* 3  2-4  2-  -1 */
static bool numbers_from(const char **at, struct field_range *r) {
    if (!field_number(at, &r->first)) return false;
    r->last = r->first;
    if (**at != '-') return true;
    ++*at;
    if (**at == ',' || **at == '\0') {
        r->last = -1;
        return true;
    }
    return field_number(at, &r->last) && !is_backwards(*r);
}

static bool hex_byte(const char *at, char *byte) {
    if (hex_digit(at[0]) < 0 || hex_digit(at[1]) < 0) return false;
    *byte = (char)(16 * hex_digit(at[0]) + hex_digit(at[1]));
    return true;
}

/* A name within quotes, in which \" and \\ are a quote and a backslash, and
 * \xHH is any byte but 0. */
static bool quoted_name(const char **at, char *name) {
    for (++*at; **at != '"'; name++) {
        if (**at == '\0') return false;
        if (**at == '\\') {
            ++*at;
            if (**at == 'x') {
                if (!hex_byte(*at + 1, name) || !*name) return false;
                *at += 3;
                continue;
            }
            if (**at != '"' && **at != '\\') return false;
        }
        *name = *(*at)++;
    }
    ++*at;
    *name = '\0';
    return true;
}

/* domain  "a, b" */
static bool name_from(const char **at, struct field_range *r) {
    if (**at == '\0' || **at == ',') return false;
    char *const name = copy_text(*at);
    *r = (struct field_range){.name = name};
    if (**at == '"') {
        const bool good = quoted_name(at, name);
        if (!good) free(name);
        return good;
    }
    const size_t size = strcspn(*at, ",");
    name[size] = '\0';
    *at += size;
    return true;
}

/* What starts like a number is one: a name that does is written in quotes. */
static bool add_fields(struct key_options *to, const char *at) {
    do {
        struct field_range r = {0};
        const bool number = *at == '-' || (*at >= '0' && *at <= '9');
        if (!(number ? numbers_from : name_from)(&at, &r)) break;
        add_range(to, r);
        if (*at == '\0') return true;
    } while (*at++ == ',');
    return false;
}

static void parse_fields(const struct verb_option *o, const char *value) {
    (void)o;
    if (add_fields(&key_form, value)) return;
    fail("--fields: expected numbers from 1 such as 2, 1,3, 2-4 or 2-, or -1 "
         "for the last field, or with --header names of columns, found '%s'",
         value);
}

static void parse_json_field(const struct verb_option *o, const char *value) {
    (void)o;
    if (!*value) fail("--jsonl: expected the name of a field, found none");
    key_form.json = true;
    add_range(&key_form, (struct field_range){.name = value});
}

/* Bytes, among which \t, \n, \0, \\ and \xHH stand for one. */
static bool separator_from(const char *at, struct field_separator *to) {
    static const char escapes[] = "tn0\\", meant[] = "\t\n\0\\";
    for (to->size = 0; *at; to->size++) {
        if (to->size == SEPARATOR_ROOM) return false;
        char *const byte = &to->bytes[to->size];
        const char *const escape =
            *at == '\\' && at[1] ? strchr(escapes, at[1]) : NULL;
        if (escape) {
            *byte = meant[escape - escapes];
            at += 2;
        } else if (*at == '\\' && at[1] == 'x') {
            if (!hex_byte(at + 2, byte)) return false;
            at += 4;
        } else if (*at == '\\' && at[1]) {
            return false;
        } else {
            *byte = *at++;
        }
    }
    return to->size > 0;
}

static void parse_separator(const struct verb_option *o, const char *value) {
    (void)o;
    if (!separator_from(value, &key_form.separator))
        fail("--separator: expected 1 to %d bytes, in which \\t is a tab, \\\\ "
             "a backslash and \\x1f any byte, found '%s'",
             SEPARATOR_ROOM, value);
}

static void parse_missing(const struct verb_option *o, const char *value) {
    static const char *const words[] = {"error", "skip", "empty"};
    (void)o;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(value, words[i]) == 0) {
            missing_key = (enum missing_key)i;
            return;
        }
    fail("--missing: expected skip, empty or error, found '%s'", value);
}

static void parse_invalid(const struct verb_option *o, const char *value) {
    (void)o;
    skips_invalid = strcmp(value, "skip") == 0;
    if (!skips_invalid && strcmp(value, "error") != 0)
        fail("--invalid: expected skip or error, found '%s'", value);
}

/* What contradicts what; NULL: nothing. */
static const char *contradiction(const struct key_options *o) {
    const struct field_separator *const sep = separator_of(o);
    bool named = false, numbered = false;
    for (size_t i = 0; i < o->ranges_count; i++)
        *(o->ranges[i].name ? &named : &numbered) = true;
    if (o->json &&
        (numbered || o->csv || o->blanks || o->header || o->separator.size))
        return "--jsonl does not go with --fields, --separator, --blanks, "
               "--csv and --header";
    if (o->json && o->ranges_count > JSON_MOST_PATHS)
        return "--jsonl may be given at most 16 times";
    if (named && !o->json && !o->header)
        return "--fields names a column: give --header, too, for files whose "
               "first line has the names of the columns";
    if (o->blanks && (o->csv || o->separator.size))
        return "--blanks does not go with --separator and --csv";
    if (o->csv && sep->size > 1)
        return "--csv: expected a separator of one byte";
    if (o->separator.size &&
        memchr(sep->bytes, o->nul ? '\0' : '\n', sep->size))
        return "--separator contains the byte that ends a line";
    return NULL;
}

void key_options_expect_sound(void) {
    const char *const what = contradiction(&key_form);
    if (what) fail("%s", what);
}

const struct group key_group = {
    "The key in a line",
    {
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
        {0, "trim", NULL,
         "Remove white space from both ends of the key, or of each of its "
         "fields.",
         parse_flag, &key_form.trim},
        {'k', "fields", "FIELDS",
         "The key is these fields of the line, such as 2, 1,3, 2-4, 2- or -1, "
         "the last one; with --header also by name, such as email or \"a, b\". "
         "A single field equals a line with the same bytes.",
         parse_fields, NULL},
        {'t', "separator", "TEXT",
         "Fields are separated by TEXT, up to 16 bytes; the default is a tab, "
         "or a comma with --csv. \\t is a tab, \\x1f the byte 31.",
         parse_separator, NULL},
        {0, "blanks", NULL,
         "Fields are separated by one or more spaces and tabs, and those at "
         "the ends of a line do not count, as in awk.",
         parse_flag, &key_form.blanks},
        {0, "csv", NULL,
         "Fields may be quoted as in CSV, and then contain separators and "
         "newlines; a quote within is doubled.",
         parse_flag, &key_form.csv},
        {0, "header", NULL,
         "The first line of each file is a header. It is no key. Where lines "
         "are printed, the header of the first file that has one comes first.",
         parse_flag, &key_form.header},
        {0, "jsonl", "FIELD",
         "Lines are JSON objects, and the key is the value of FIELD: a string "
         "without quotes and escapes, a number as it is written, true or "
         "false. a.b is field b of the object a; \\. is a dot in a name. null "
         "is a missing value. Given several times, the key is all of these "
         "fields.",
         parse_json_field, NULL},
        {0, "whole-line", NULL,
         "The key is the whole line, whatever the filter was built with. "
         "Without this and the options above, those that 'calyx build' stored "
         "in the filter apply; any of them on the command line replaces all. "
         "-i and --trim on the command line must agree with the filter. If "
         "they differ, that is an error, as keys would not be found.",
         parse_flag, &whole_line},
        {0, "missing", "skip|empty|error",
         "What a line is that lacks a field of its key: an error, the default; "
         "or left out, with skip; or one with an empty field. It is not stored "
         "with a filter, and replaces no other option. --stats counts the "
         "lines "
         "that are left out. If these are more than half of all lines, that is "
         "a warning; if they are all lines, an error.",
         parse_missing, NULL},
        {0, "invalid", "skip|error",
         "What a broken line is: an error, the default; or left out, with "
         "skip, and counted as by --missing=skip. A line is broken if it is "
         "not a JSON object, if the value of FIELD is an object or array, if "
         "its quotes in CSV are wrong, or if the filter cannot take its key. "
         "Wrong quotes may join lines: all lines up to the next line end "
         "outside of quotes are then left out, and each is counted; but if a "
         "quote is never closed, only the line in which it opens. A broken "
         "header is always an error.",
         parse_invalid, NULL},
        {0, "text", NULL,
         "Read every file as lines, after gzip and zstd, even if it looks like "
         "a filter, a compressed file, UTF-16 or UTF-32, which are refused "
         "otherwise; and keep the byte order mark of UTF-8, which is otherwise "
         "not part of the first line.",
         parse_flag, &any_bytes},
    },
};

/* ---- As text -------------------------------------------------------------
 *
 * "-z --crlf -i --trim --header --csv -t : -k 2,4-5,-1,"name"", as they could
 * be given, with one space between words, and without what is a default. In a
 * separator, what is no sign is written as \xHH; in a name, what is none but
 * may be UTF-8 is not. */

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

static const struct field_separator *default_separator(
    const struct key_options *o) {
    static const struct field_separator comma = {",", 1}, tab = {"\t", 1};
    return o->csv ? &comma : &tab;
}

const struct field_separator *separator_of(const struct key_options *o) {
    return o->separator.size ? &o->separator : default_separator(o);
}

static bool same_separator(const struct field_separator *a,
                           const struct field_separator *b) {
    return a->size == b->size && memcmp(a->bytes, b->bytes, a->size) == 0;
}

static void put_separator(struct text *t, const struct key_options *o) {
    const struct field_separator *const sep = separator_of(o);
    if (!(o->csv || o->ranges_count) || o->blanks || o->json) return;
    if (same_separator(sep, default_separator(o))) return;
    put_word(t, "-t ");
    for (size_t i = 0; i < sep->size; i++) {
        const unsigned char byte = (unsigned char)sep->bytes[i];
        put(t, byte > ' ' && byte < 127 && byte != '\\' ? "%c" : "\\x%02x",
            byte);
    }
}

static void put_name(struct text *t, const char *name) {
    put(t, "\"");
    for (; *name; name++) {
        const unsigned char byte = (unsigned char)*name;
        if (byte == '"' || byte == '\\')
            put(t, "\\%c", byte);
        else
            put(t, byte > ' ' && byte != 127 ? "%c" : "\\x%02x", byte);
    }
    put(t, "\"");
}

static void put_numbers(struct text *t, struct field_range r) {
    put(t, "%" PRId64, r.first);
    if (r.last == r.first) return;
    put(t, "-");
    if (r.last != -1) put(t, "%" PRId64, r.last);
}

static void put_fields(struct text *t, const struct key_options *o) {
    for (size_t i = 0; i < o->ranges_count; i++) {
        const struct field_range r = o->ranges[i];
        if (o->json)
            put_word(t, "--jsonl ");
        else if (i == 0)
            put_word(t, "-k ");
        else
            put(t, ",");
        if (r.name)
            put_name(t, r.name);
        else
            put_numbers(t, r);
    }
}

/* The options without a value, in the order of the text. */
static const struct {
    const char *word;
    size_t offset; /* of the bool in struct key_options */
} flags[] = {
    {"-z", offsetof(struct key_options, nul)},
    {"--crlf", offsetof(struct key_options, crlf)},
    {"-i", offsetof(struct key_options, fold)},
    {"--trim", offsetof(struct key_options, trim)},
    {"--header", offsetof(struct key_options, header)},
    {"--csv", offsetof(struct key_options, csv)},
    {"--blanks", offsetof(struct key_options, blanks)},
};
enum { FLAGS = sizeof flags / sizeof *flags };

static void options_text(const struct key_options *o, struct text *t) {
    *t = (struct text){.size = 0};
    for (size_t i = 0; i < FLAGS; i++)
        if (*(const bool *)((const char *)o + flags[i].offset))
            put_word(t, flags[i].word);
    put_separator(t, o);
    put_fields(t, o);
}

static bool add_json_field(struct key_options *o, const char *word) {
    struct field_range r;
    if (*word != '"' || !name_from(&word, &r)) return false;
    o->json = true;
    add_range(o, r);
    return !*word && *r.name;
}

static bool parse_word(struct key_options *o, const char *word, char **rest) {
    for (size_t i = 0; i < FLAGS; i++)
        if (strcmp(word, flags[i].word) == 0) {
            *(bool *)((char *)o + flags[i].offset) = true;
            return true;
        }
    const char *const value = strsep(rest, " ");
    if (!value) return false;
    if (strcmp(word, "-t") == 0) return separator_from(value, &o->separator);
    if (strcmp(word, "-k") == 0) return add_fields(o, value);
    return strcmp(word, "--jsonl") == 0 && add_json_field(o, value);
}

/* Of options from a text: the options of the command line stay. */
static void options_free(struct key_options *o) {
    for (size_t i = 0; i < o->ranges_count; i++)
        free((char *)(uintptr_t)o->ranges[i].name);
    free(o->ranges);
}

/* A file may say anything: what is not exactly what build stores is refused. */
static bool options_from(const char *text, struct key_options *o) {
    *o = (struct key_options){0};
    char *const words = copy_text(text), *rest = *text ? words : NULL;
    bool good = true;
    while (good && rest) good = parse_word(o, strsep(&rest, " "), &rest);
    free(words);
    struct text again;
    if (good) options_text(o, &again);
    return good && strcmp(again.bytes, text) == 0 && !contradiction(o);
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

const char *key_options_in_words(const char *text) {
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

bool key_is_one_field(const struct key_options *o) {
    return o->ranges_count == 1 && o->ranges[0].first == o->ranges[0].last;
}

static bool same_fields(const struct key_options *a,
                        const struct key_options *b) {
    struct text of_a = {.size = 0}, of_b = {.size = 0};
    put_fields(&of_a, a);
    put_fields(&of_b, b);
    return strcmp(of_a.bytes, of_b.bytes) == 0;
}

/* Options that change the bytes of a key. Lookups find the keys of a filter
 * only if it was built with the same ones. */
static const struct {
    const char *word;
    size_t offset; /* of the bool in struct key_options */
    const char *lost;
} changes[] = {
    {"-i", offsetof(struct key_options, fold), "with capital letters"},
    {"--trim", offsetof(struct key_options, trim),
     "with white space at their ends"},
};

/* The first of them in which two differ; -1: none. */
static int change_that_differs(const struct key_options *a,
                               const struct key_options *b) {
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        if (*(const bool *)((const char *)a + changes[i].offset) !=
            *(const bool *)((const char *)b + changes[i].offset))
            return (int)i;
    return -1;
}

static void expect_same_changes(const char *name,
                                const struct key_options *built) {
    const int i = change_that_differs(built, &key_form);
    if (i < 0) return;
    const char *const word = changes[i].word;
    if (*(const bool *)((const char *)built + changes[i].offset))
        fail_at(name, 0,
                "it was built with %s, and without it keys %s would not be "
                "found; give %s, too",
                word, changes[i].lost, word);
    fail_at(name, 0,
            "it was built without %s, and with it keys %s would not be found; "
            "leave out %s, or build the filter with it",
            word, changes[i].lost, word);
}

/* May the keys of lines be others than those that the filter was built of? A
 * list may well have another form than the one it was built of, such as fields
 * where that had whole lines; but nothing may be left out, and keys of several
 * fields must agree. */
static bool may_miss(const struct key_options *built,
                     const struct key_options *given) {
    if ((built->nul && !given->nul) || (built->crlf && !given->crlf) ||
        (built->csv && !given->csv) || (built->header && !given->header))
        return true;
    if (built->ranges_count == 0)
        return given->ranges_count > 0 && !key_is_one_field(given);
    return !same_fields(built, given) || built->blanks != given->blanks ||
           !same_separator(separator_of(built), separator_of(given));
}

/* Say so if keys may differ from the filter's; fail if they certainly do. */
static void say_if_they_differ(const char *name, const char *text,
                               const char *given) {
    struct key_options built;
    const bool known = options_from(text, &built);
    if (known) expect_same_changes(name, &built);
    const bool harmless = known && !may_miss(&built, &key_form);
    options_free(&built);
    if (harmless) return;
    warn("%s was built with %s; going by %s, as given", name,
         key_options_in_words(text), *given ? given : "--whole-line");
}

static bool changes_differ(const char *text, const char *other) {
    struct key_options a, b;
    const bool knows_a = options_from(text, &a);
    const bool knows_b = options_from(other, &b);
    const bool differ = knows_a && knows_b && change_that_differs(&a, &b) >= 0;
    options_free(&a);
    options_free(&b);
    return differ;
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
            fail("%s was built with %s, and %s with %s: query them one by one"
                 "%s",
                 names[0], key_options_in_words(first), names[i],
                 key_options_in_words(text),
                 changes_differ(first, text)
                     ? ""
                     : ", or give the options for keys to go by, or "
                       "--whole-line");
    }
    if (any || !first || !*first) return;
    adopted = copy_text(first);
    key_form = options_of(names[0], first);
}

void key_options_compare(const char *a_name, const calyx_filter *a,
                         const char *b_name, const calyx_filter *b) {
    const char *const of_a = key_options_of(a), *const of_b = key_options_of(b);
    if (!of_a || !of_b || strcmp(of_a, of_b) == 0) return;
    if (changes_differ(of_a, of_b))
        fail("%s was built with %s, and %s with %s: no lookup would find the "
             "keys of both; query them one by one",
             a_name, key_options_in_words(of_a), b_name,
             key_options_in_words(of_b));
    warn("%s was built with %s, and %s with %s; the result says %s", a_name,
         key_options_in_words(of_a), b_name, key_options_in_words(of_b),
         key_options_in_words(of_a));
}

const char *json_path_hint(const char *path) {
    static const char *const starts[] = {"$.", "."};
    static char hint[200];
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++) {
        const size_t size = strlen(starts[i]);
        if (strncmp(path, starts[i], size) != 0 || !path[size]) continue;
        snprintf(hint, sizeof hint,
                 "; a path begins without '%s': --jsonl %.100s", starts[i],
                 path + size);
        return hint;
    }
    return "";
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
