/*
 * Values of fields in a line of JSON (RFC 8259), for --jsonl.
 *
 * The whole line is checked: what is not exactly one JSON object is an error
 * that says what was wanted, what was found, and at which byte. Text is taken
 * as bytes: whether it is UTF-8 is not looked at.
 */
#ifndef CALYX_TOOL_JSON_FIELD_H
#define CALYX_TOOL_JSON_FIELD_H

#include <stdbool.h>
#include <stddef.h>

enum json_type {
    JSON_ABSENT, /* there is no such field */
    JSON_NULL,
    JSON_STRING, /* with its quotes */
    JSON_PLAIN,  /* a number, true or false */
    JSON_NESTED, /* an object or array */
};

struct json_value {
    enum json_type type;
    const char *at; /* in the line */
    size_t size;
};

/* Find the values of fields: a path such as a.b is field b of the object a, and
 * in it \. is a dot and \\ a backslash. Of fields with one name the last
 * counts, as with most parsers. A line without a sign has no field. False on an
 * error.
 */
enum { JSON_MOST_PATHS = 16, JSON_ERROR_ROOM = 200 };
bool json_find(const char *line, size_t size, const char *const *paths,
               size_t count, struct json_value *values,
               char error[JSON_ERROR_ROOM]);

/* Write a JSON_STRING without its quotes and escapes: at most as many bytes as
 * it has. Returns their number; -1 if it has half of a surrogate pair, which no
 * UTF-8 stands for. */
long json_unescape(const struct json_value *value, char *to);

#endif
