/*
 * The key of a line: all of it, or fields of it, in text, CSV or JSON.
 *
 * A key of several fields is each field with its length before it, so that
 * ("ab","c") and ("a","bc") differ.
 */
#ifndef CALYX_TOOL_FIELDS_H
#define CALYX_TOOL_FIELDS_H

#include "input/key_options.h"

enum { FIELD_ERROR_ROOM = 360 };

struct key_maker {
    char *bytes; /* of keys, one after another */
    size_t size, room;
    calyx_key *fields; /* of the last line */
    size_t field_room;
};

/* Does a key have to be made, since its bytes are not the bytes of a line? */
bool keys_are_made(void);

/* Does a line end before a carriage return, too? */
bool line_ends_are_crlf(void);

/* Put the key of a line after the others. `columns` are the columns of key_form
 * with numbers for names. If the line lacks a field, and that is not an empty
 * one, LACKS_FIELD, with the error that it may be. */
enum key_result { KEY_MADE, LACKS_FIELD, LINE_IS_WRONG };
enum key_result make_key(struct key_maker *maker, const calyx_key *line,
                         const struct field_range *columns,
                         char error[FIELD_ERROR_ROOM]);

/* The same for a key that is one field as it is: it lies in the line. */
bool key_lies_in_line(const struct field_range *columns);
enum key_result find_key(const calyx_key *line,
                         const struct field_range *columns, calyx_key *key,
                         char error[FIELD_ERROR_ROOM]);

/* Numbers for the names in key_form.ranges, from a header. NULL: a column is
 * missing, or there twice. The caller frees it. */
struct field_range *find_columns(struct key_maker *maker,
                                 const calyx_key *header,
                                 char error[FIELD_ERROR_ROOM]);

void key_maker_free(struct key_maker *maker);

#endif
