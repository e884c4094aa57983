#include "input/fields.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/json_field.h"

bool keys_are_made(void) {
    return key_form.ranges_count || key_form.fold || key_form.trim ||
           key_form.csv;
}

bool line_ends_are_crlf(void) {
    return key_form.crlf || key_form.csv;
}

/* ---- Bytes --------------------------------------------------------------- */

static char *room_for(struct key_maker *m, size_t size) {
    m->bytes = with_room(m->bytes, &m->room, m->size + size, 1);
    return m->bytes + m->size;
}

static void put_bytes(struct key_maker *m, const void *bytes, size_t size) {
    char *const to = room_for(m, size);
    if (size) memcpy(to, bytes, size);
    m->size += size;
}

/* A length, seven bits a byte, the last below 128: no length starts another. */
static void put_length(struct key_maker *m, uint64_t length) {
    for (; length > 127; length >>= 7)
        put_bytes(m, &(uint8_t){(uint8_t)(length | 128)}, 1);
    put_bytes(m, &(uint8_t){(uint8_t)length}, 1);
}

/* Insert the length of what follows `from`, before it. */
static void put_length_before(struct key_maker *m, size_t from) {
    const size_t size = m->size - from;
    put_length(m, size);
    const size_t length = m->size - from - size;
    char bytes[10];
    memcpy(bytes, m->bytes + from + size, length);
    memmove(m->bytes + from + length, m->bytes + from, size);
    memcpy(m->bytes + from, bytes, length);
}

/* ---- What all fields share ----------------------------------------------- */

static void lower(char *at, const char *end) {
    for (; at < end; at++)
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at | 32);
}

static bool is_space(char c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static void trim(struct key_maker *m, size_t from) {
    while (m->size > from && is_space(m->bytes[m->size - 1])) m->size--;
    size_t start = from;
    while (start < m->size && is_space(m->bytes[start])) start++;
    if (start > from)
        memmove(m->bytes + from, m->bytes + start, m->size - start);
    m->size -= start - from;
}

/* What was put from here on is a field, or the whole key. */
static void end_field(struct key_maker *m, size_t from, bool single) {
    if (key_form.trim) trim(m, from);
    if (key_form.fold) lower(m->bytes + from, m->bytes + m->size);
    if (!single) put_length_before(m, from);
}

/* ---- Splitting a line ---------------------------------------------------- */

static void put_field(struct key_maker *m, size_t n, const char *from,
                      const char *to) {
    m->fields = with_room(m->fields, &m->field_room, n + 1, sizeof *m->fields);
    m->fields[n] = (calyx_key){from, (size_t)(to - from)};
}

/* After the closing quote of a field that starts at `at`, NULL if there is
 * none. */
static const char *after_quotes(const char *at, const char *end) {
    for (at++; at < end; at++) {
        if (*at != '"') continue;
        if (at + 1 == end || at[1] != '"') return at + 1;
        at++; /* a doubled quote is one quote */
    }
    return NULL;
}

/* Where a quoted field ends; NULL on an error. */
static const char *quoted_end(const char *at, const char *end, char sep,
                              size_t number, char *error) {
    const char *const stop = after_quotes(at, end);
    if (!stop)
        snprintf(error, FIELD_ERROR_ROOM,
                 "the quotes around field %zu are never closed", number);
    else if (stop < end && *stop != sep)
        snprintf(error, FIELD_ERROR_ROOM,
                 "after the closing quote of field %zu expected a separator or "
                 "the end of the line, found '%c'",
                 number, *stop);
    else
        return stop;
    return NULL;
}

static const char *find_separator(const char *at, const char *end,
                                  const struct field_separator *sep) {
    const size_t size = (size_t)(end - at);
    const char *const stop = sep->size == 1
                                 ? memchr(at, sep->bytes[0], size)
                                 : memmem(at, size, sep->bytes, sep->size);
    return stop ? stop : end;
}

/* Split a line into m->fields. Returns how many, 0 on an error. */
static size_t split_at_separators(struct key_maker *m, const char *at,
                                  const char *end, char *error) {
    const struct field_separator *const sep = separator_of(&key_form);
    const size_t sep_size = sep->size;
    const bool csv = key_form.csv;
    for (size_t n = 0;; n++) {
        const char *const from = at;
        const char *const stop =
            csv && at < end && *at == '"'
                ? quoted_end(at, end, sep->bytes[0], n + 1, error)
                : find_separator(at, end, sep);
        if (!stop) return 0;
        put_field(m, n, from, stop);
        if (stop == end) return n + 1;
        at = stop + sep_size;
    }
}

static bool is_blank(char c) {
    return c == ' ' || c == '\t';
}

/* The same at blanks. A line of blanks has no field. */
static size_t split_at_blanks(struct key_maker *m, const char *at,
                              const char *end) {
    for (size_t n = 0;; n++) {
        while (at < end && is_blank(*at)) at++;
        if (at == end) return n;
        const char *const from = at;
        while (at < end && !is_blank(*at)) at++;
        put_field(m, n, from, at);
    }
}

static bool split(struct key_maker *m, const calyx_key *line, size_t *count,
                  char *error) {
    const char *const at = line->data, *const end = at + line->size;
    if (key_form.blanks) {
        *count = split_at_blanks(m, at, end);
        return true;
    }
    *count = split_at_separators(m, at, end, error);
    return *count > 0;
}

/* The bytes of a field, without its quotes. */
static void put_value(struct key_maker *m, const calyx_key *field) {
    const char *at = field->data, *end = at + field->size;
    if (!key_form.csv || at == end || *at != '"') {
        put_bytes(m, at, field->size);
        return;
    }
    for (at++, end--; at < end;) { /* to the first of each pair of quotes */
        const char *const quote = memchr(at, '"', (size_t)(end - at));
        const char *const stop = quote ? quote + 1 : end;
        put_bytes(m, at, (size_t)(stop - at));
        at = quote ? quote + 2 : end;
    }
}

/* ---- Fields by number --------------------------------------------------- */

static const char *what_to_do(void) {
    const char *const hint = key_options_hint();
    return *hint ? hint
                 : "; --missing=skip leaves such lines out, --missing=empty "
                   "takes the field for an empty one";
}

static void say_what_lacks(const struct field_range *r, size_t count,
                           bool is_short, int64_t lacking, char *error) {
    const char *const plural = count == 1 ? "" : "s";
    if (r->name)
        snprintf(error, FIELD_ERROR_ROOM,
                 "missing column '%.60s', field %" PRId64
                 ": found %zu field%s%s",
                 r->name, lacking, count, plural, what_to_do());
    else if (is_short)
        snprintf(error, FIELD_ERROR_ROOM,
                 "missing field %" PRId64 ": found %zu field%s%s", lacking,
                 count, plural, what_to_do());
    else
        snprintf(error, FIELD_ERROR_ROOM,
                 "missing fields %" PRId64 " to %" PRId64
                 ": found %zu field%s, so the first comes last",
                 r->first, r->last, count, plural);
}

static bool put_range(struct key_maker *m, const struct field_range *r,
                      size_t count, char *error) {
    const int64_t fields = (int64_t)count;
    const int64_t first = r->first < 0 ? r->first + fields + 1 : r->first;
    int64_t last = r->last < 0 ? r->last + fields + 1 : r->last;
    const bool first_is_there = first >= 1 && first <= fields;
    const bool is_there = first_is_there && last <= fields;
    if (!(is_there && first <= last) && missing_key != MISSING_IS_EMPTY) {
        say_what_lacks(r, count, !is_there, first_is_there ? r->last : r->first,
                       error);
        return false;
    }
    if (last < first) last = first; /* one empty field */
    for (int64_t n = first; n <= last; n++) {
        const size_t from = m->size;
        if (n >= 1 && n <= fields) put_value(m, &m->fields[n - 1]);
        end_field(m, from, key_is_one_field(&key_form));
    }
    return true;
}

/* ---- Fields of JSON ----------------------------------------------------- */

static bool put_json_value(struct key_maker *m, const char *path,
                           const struct json_value *value, char *error) {
    if (value->type == JSON_STRING) {
        const long size = json_unescape(value, room_for(m, value->size));
        if (size < 0)
            snprintf(error, FIELD_ERROR_ROOM,
                     "field '%.100s' has half of a surrogate pair, which is no "
                     "character",
                     path);
        m->size += size > 0 ? (size_t)size : 0;
        return size >= 0;
    }
    if (value->type == JSON_PLAIN) put_bytes(m, value->at, value->size);
    if (value->type != JSON_NESTED) return true;
    snprintf(
        error, FIELD_ERROR_ROOM,
        "field '%.100s' is not a string, a number, true or false: found an %s",
        path, *value->at == '{' ? "object" : "array");
    return false;
}

static enum key_result make_json_key(struct key_maker *m, const calyx_key *line,
                                     char *error) {
    struct json_value values[JSON_MOST_PATHS];
    const char *paths[JSON_MOST_PATHS];
    for (size_t i = 0; i < key_form.ranges_count; i++)
        paths[i] = key_form.ranges[i].name;
    if (!json_find(line->data, line->size, paths, key_form.ranges_count, values,
                   error))
        return LINE_IS_WRONG;
    for (size_t i = 0; i < key_form.ranges_count; i++) {
        const size_t from = m->size;
        const bool lacks =
            values[i].type == JSON_ABSENT || values[i].type == JSON_NULL;
        if (lacks && missing_key != MISSING_IS_EMPTY) {
            const char *const hint = json_path_hint(paths[i]);
            snprintf(error, FIELD_ERROR_ROOM,
                     values[i].type == JSON_NULL ? "field '%.100s' is null%s"
                                                 : "missing field '%.100s'%s",
                     paths[i], *hint ? hint : what_to_do());
            return LACKS_FIELD;
        }
        if (!put_json_value(m, paths[i], &values[i], error))
            return LINE_IS_WRONG;
        end_field(m, from, key_is_one_field(&key_form));
    }
    return KEY_MADE;
}

/* ---- Keys ---------------------------------------------------------------- */

static enum key_result put_key(struct key_maker *m, const calyx_key *line,
                               const struct field_range *columns, char *error) {
    size_t count = 0;
    if (key_form.json) return make_json_key(m, line, error);
    if ((key_form.ranges_count || key_form.csv) && /* all CSV is looked at */
        !split(m, line, &count, error))
        return LINE_IS_WRONG;
    for (size_t i = 0; i < key_form.ranges_count; i++)
        if (!put_range(m, &columns[i], count, error)) return LACKS_FIELD;
    if (!key_form.ranges_count) {
        const size_t from = m->size;
        put_bytes(m, line->data, line->size);
        end_field(m, from, true);
    }
    return KEY_MADE;
}

enum key_result make_key(struct key_maker *m, const calyx_key *line,
                         const struct field_range *columns,
                         char error[FIELD_ERROR_ROOM]) {
    const size_t size = m->size;
    room_for(m, 1); /* an empty key has a place, too */
    const enum key_result result = put_key(m, line, columns, error);
    if (result != KEY_MADE) m->size = size;
    return result;
}

/* ---- Keys that need not be made ----------------------------------------- */

bool key_lies_in_line(const struct field_range *columns) {
    return key_is_one_field(&key_form) && columns[0].first > 0 &&
           !key_form.json && !key_form.csv && !key_form.blanks &&
           !key_form.fold && !key_form.trim;
}

enum key_result find_key(const calyx_key *line,
                         const struct field_range *columns, calyx_key *key,
                         char error[FIELD_ERROR_ROOM]) {
    const struct field_separator *const sep = separator_of(&key_form);
    const char *at = line->data, *const end = at + line->size;
    for (int64_t n = 1;; n++) {
        const char *const stop = find_separator(at, end, sep);
        if (n == columns[0].first) {
            *key = (calyx_key){at, (size_t)(stop - at)};
            return KEY_MADE;
        }
        if (stop == end) {
            *key = (calyx_key){end, 0};
            if (missing_key == MISSING_IS_EMPTY) return KEY_MADE;
            say_what_lacks(&columns[0], (size_t)n, true, columns[0].first,
                           error);
            return LACKS_FIELD;
        }
        at = stop + sep->size;
    }
}

/* ---- Columns of a header ------------------------------------------------ */

static bool is_name(struct key_maker *m, const calyx_key *field,
                    const char *name) {
    const size_t from = m->size;
    put_value(m, field);
    if (key_form.trim) trim(m, from);
    const size_t size = m->size - from;
    m->size = from;
    return size == strlen(name) && memcmp(m->bytes + from, name, size) == 0;
}

static bool find_column(struct key_maker *m, const calyx_key *header,
                        size_t count, struct field_range *column, char *error) {
    enum { SHOWN = 60 };
    int64_t times = 0;
    for (size_t i = 0; i < count; i++) {
        if (!is_name(m, &m->fields[i], column->name)) continue;
        column->first = column->last = (int64_t)i + 1;
        times++;
    }
    if (times == 1) return true;
    if (times)
        snprintf(error, FIELD_ERROR_ROOM,
                 "column '%.80s' is in the header %" PRId64
                 " times; give its number",
                 column->name, times);
    else
        snprintf(error, FIELD_ERROR_ROOM,
                 "missing column '%.60s'; found %zu column%s: %.*s%s%s",
                 column->name, count, count == 1 ? "" : "s",
                 (int)(header->size < SHOWN ? header->size : SHOWN),
                 (const char *)header->data, header->size < SHOWN ? "" : "...",
                 key_options_hint());
    return false;
}

struct field_range *find_columns(struct key_maker *m, const calyx_key *header,
                                 char error[FIELD_ERROR_ROOM]) {
    size_t count;
    room_for(m, 1);
    if (!split(m, header, &count, error)) return NULL;
    struct field_range *const columns =
        alloc_memory((key_form.ranges_count + 1) * sizeof *columns);
    for (size_t i = 0; i < key_form.ranges_count; i++) {
        columns[i] = key_form.ranges[i];
        if (!columns[i].name ||
            find_column(m, header, count, &columns[i], error))
            continue;
        free(columns);
        return NULL;
    }
    return columns;
}

void key_maker_free(struct key_maker *m) {
    free(m->bytes);
    free(m->fields);
}
