/*
 * The options that say where a line ends and which of its bytes are the key, on
 * the command line and in filters: build stores them with a filter, as a text
 * such as "-i --csv -k 2,5", and whatever works with that filter goes by them
 * unless others are given.
 */
#ifndef CALYX_TOOL_KEY_OPTIONS_H
#define CALYX_TOOL_KEY_OPTIONS_H

#include "tool.h"

extern const struct group key_group;

/* Fields first to last; numbers below 0 count from the end of the line. Or one
 * field with a name: of a column in the header, or with `json` the path of a
 * member. */
struct field_range {
    int64_t first, last;
    const char *name; /* NULL: numbers */
};

enum { SEPARATOR_ROOM = 16 };
struct field_separator {
    char bytes[SEPARATOR_ROOM];
    size_t size; /* 0: the separator of the format */
};

struct key_options {
    bool nul, crlf, fold, trim, header, csv, blanks, json;
    struct field_separator separator;
    struct field_range *ranges;
    size_t ranges_count;
};

/* Those to go by. */
extern struct key_options key_form;

/* What separates fields, the default among them. */
const struct field_separator *separator_of(const struct key_options *o);

/* --missing: what a line that lacks its key is. No part of the key's form, so
 * it is not stored with a filter. */
enum missing_key { MISSING_IS_ERROR, MISSING_IS_SKIPPED, MISSING_IS_EMPTY };
extern enum missing_key missing_key;

/* --invalid=skip: leave out lines that are broken, or whose key cannot be used?
 * Not stored, either. */
extern bool skips_invalid;

/* Fails if the options of the command line contradict each other. */
void key_options_expect_sound(void);

/* --text: read lines from a file whatever it looks like? */
bool accepts_any_bytes(void);

/* Store the options of the command line with a filter that is being made. */
void key_options_store(calyx_filter *f);

/* What a filter was built with, "" for none; NULL if unknown. */
const char *key_options_of(const calyx_filter *f);
const char *key_options_of_layout(const calyx_layout *layout);
void key_options_set(calyx_filter *f, const char *text);

/* The text, or that there are none. */
const char *key_options_in_words(const char *text);

/* Is the key a single field of the line? */
bool key_is_one_field(const struct key_options *o);

/* Are there any on the command line? */
bool key_options_given(void);

/* Go by what these filters were built with, unless options are given: then say
 * so if the keys may not be the options of a filter. Fails if two filters do
 * not agree, or if -i or --trim of the command line differs from a filter's.
 * Call it before any line is read. */
void key_options_use(size_t n, const char *const *names,
                     calyx_filter *const *filters);

/* Say so if two filters were built with different ones. */
void key_options_compare(const char *a_name, const calyx_filter *a,
                         const char *b_name, const calyx_filter *b);

/* What to add to an error in a line: nothing, or that the options are the
 * options of a filter, and what to do. */
const char *key_options_hint(void);

/* What to add if a line lacks the field of this path: nothing, or that a path
 * of --jsonl is not written as in jq or JSONPath. */
const char *json_path_hint(const char *path);

#endif
