#include "input/json_field.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tool.h"

enum { MOST_DEPTH = 1000 };

struct json_reader {
    const char *start, *at, *end;
    char *error;
    size_t path_count;
    struct json_value *values;
    /* Of each path: what is left of it below the objects around this place, and
     * how many of these it has matched. */
    const char *rest[JSON_MOST_PATHS];
    unsigned matched[JSON_MOST_PATHS];
};

/* ---- Errors -------------------------------------------------------------- */

static bool fail_wanted(struct json_reader *r, const char *wanted) {
    char found[24] = "the end of the line";
    if (r->at < r->end) {
        const unsigned char c = (unsigned char)*r->at;
        const bool is_sign = c > ' ' && c < 127;
        snprintf(found, sizeof found, is_sign ? "'%c'" : "the byte 0x%02x", c);
    }
    snprintf(r->error, JSON_ERROR_ROOM,
             "not JSON: at byte %zu expected %s, found %s",
             (size_t)(r->at - r->start) + 1, wanted, found);
    return false;
}

/* ---- Strings ------------------------------------------------------------- */

/* After a backslash. */
static bool skip_escape(struct json_reader *r) {
    if (r->at < r->end && *r->at && strchr("\"\\/bfnrt", *r->at)) {
        r->at++;
        return true;
    }
    if (r->at == r->end || *r->at != 'u')
        return fail_wanted(r, "one of \"\\/bfnrtu after a backslash");
    r->at++;
    for (int i = 0; i < 4; i++, r->at++)
        if (r->at == r->end || hex_digit(*r->at) < 0)
            return fail_wanted(r, "a hexadecimal digit");
    return true;
}

/* To after the closing quote; r->at is at the opening one. */
static bool skip_string(struct json_reader *r) {
    for (r->at++;;) {
        while (r->at < r->end && *r->at != '"' && *r->at != '\\' &&
               (unsigned char)*r->at >= ' ')
            r->at++;
        if (r->at == r->end || (unsigned char)*r->at < ' ')
            return fail_wanted(r, "a closing quote");
        if (*r->at++ == '"') return true;
        if (!skip_escape(r)) return false;
    }
}

static uint32_t hex_number(const char *at) {
    uint32_t n = 0;
    for (int i = 0; i < 4; i++) n = 16 * n + (uint32_t)hex_digit(at[i]);
    return n;
}

static size_t put_utf8(uint32_t code, char *to) {
    if (code < 0x80) {
        to[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        to[0] = (char)(0xc0 | code >> 6);
        to[1] = (char)(0x80 | (code & 63));
        return 2;
    }
    if (code < 0x10000) {
        to[0] = (char)(0xe0 | code >> 12);
        to[1] = (char)(0x80 | (code >> 6 & 63));
        to[2] = (char)(0x80 | (code & 63));
        return 3;
    }
    to[0] = (char)(0xf0 | code >> 18);
    to[1] = (char)(0x80 | (code >> 12 & 63));
    to[2] = (char)(0x80 | (code >> 6 & 63));
    to[3] = (char)(0x80 | (code & 63));
    return 4;
}

/* The next byte, or escape, of a string that was checked. Returns how many
 * bytes it is, 0 for half of a surrogate pair. */
static size_t next_text(const char **at, const char *end, char to[4]) {
    static const char escapes[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char c = *(*at)++;
    *to = c;
    if (c != '\\') return 1;
    const char escape = *(*at)++;
    if (escape != 'u') {
        *to = meant[strchr(escapes, escape) - escapes];
        return 1;
    }
    const uint32_t code = hex_number(*at);
    *at += 4;
    if (code < 0xd800 || code > 0xdfff) return put_utf8(code, to);
    if (code > 0xdbff || end - *at < 6 || (*at)[0] != '\\' || (*at)[1] != 'u')
        return 0;
    const uint32_t low = hex_number(*at + 2);
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *at += 6;
    return put_utf8(0x10000 + ((code & 0x3ff) << 10) + (low & 0x3ff), to);
}

long json_unescape(const struct json_value *value, char *to) {
    const char *at = value->at + 1, *const end = value->at + value->size - 1;
    char *const start = to;
    while (at < end) {
        const char *const stop = memchr(at, '\\', (size_t)(end - at));
        const size_t plain = (size_t)((stop ? stop : end) - at);
        memcpy(to, at, plain);
        to += plain;
        at += plain;
        if (at == end) break;
        char text[4];
        const size_t n = next_text(&at, end, text);
        if (n == 0) return -1;
        memcpy(to, text, n);
        to += n;
    }
    return (long)(to - start);
}

/* Does a name, with its quotes, equal the first part of a path? Then `*rest` is
 * what follows that part, NULL if it is the last one. */
static bool match_name(const char *path, const char *name, const char *end,
                       const char **rest) {
    for (name++, end--; name < end;) {
        char text[4];
        const size_t n = next_text(&name, end, text);
        if (n == 0) return false;
        for (size_t i = 0; i < n; i++) {
            if (*path == '.' || !*path) return false;
            if (*path == '\\' && (path[1] == '.' || path[1] == '\\')) path++;
            if (*path++ != text[i]) return false;
        }
    }
    *rest = *path ? path + 1 : NULL;
    return !*path || *path == '.';
}

/* ---- Values -------------------------------------------------------------- */

static void skip_space(struct json_reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' ||
                              *r->at == '\r' || *r->at == '\n'))
        r->at++;
}

static bool skip_digits(struct json_reader *r) {
    const char *const from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9') r->at++;
    return r->at > from || fail_wanted(r, "a digit");
}

static bool take(struct json_reader *r, char c) {
    if (r->at == r->end || *r->at != c) return false;
    r->at++;
    return true;
}

static bool skip_number(struct json_reader *r) {
    take(r, '-');
    if (!take(r, '0') && !skip_digits(r)) return false;
    if (take(r, '.') && !skip_digits(r)) return false;
    if (take(r, 'e') || take(r, 'E')) {
        if (!take(r, '+')) take(r, '-');
        return skip_digits(r);
    }
    return true;
}

static bool starts_number(const struct json_reader *r) {
    return r->at < r->end &&
           (*r->at == '-' || (*r->at >= '0' && *r->at <= '9'));
}

static bool skip_word(struct json_reader *r, const char *word) {
    for (; *word; word++)
        if (!take(r, *word)) return fail_wanted(r, "true, false or null");
    return true;
}

static bool skip_value(struct json_reader *r, unsigned depth,
                       struct json_value *value);

static bool skip_array(struct json_reader *r, unsigned depth) {
    r->at++;
    skip_space(r);
    if (take(r, ']')) return true;
    for (struct json_value ignored;;) {
        if (!skip_value(r, depth + 1, &ignored)) return false;
        skip_space(r);
        if (take(r, ']')) return true;
        if (!take(r, ',')) return fail_wanted(r, "',' or ']'");
        skip_space(r);
    }
}

/* A field of an object at this depth. What its name starts is followed. */
static bool skip_field(struct json_reader *r, unsigned depth) {
    if (r->at == r->end || *r->at != '"')
        return fail_wanted(r, "the name of a field in quotes");
    const char *const name = r->at;
    if (!skip_string(r)) return false;
    const char *const name_end = r->at;
    skip_space(r);
    if (!take(r, ':')) return fail_wanted(r, "':'");
    skip_space(r);

    const char *before[JSON_MOST_PATHS];
    enum { OTHER, ENDS, FOLLOWS } part[JSON_MOST_PATHS];
    for (size_t i = 0; i < r->path_count; i++) {
        const char *rest;
        part[i] = OTHER;
        if (r->matched[i] != depth) continue;
        if (!match_name(r->rest[i], name, name_end, &rest)) continue;
        r->values[i].type = JSON_ABSENT; /* a later field replaces an earlier */
        part[i] = rest ? FOLLOWS : ENDS;
        if (!rest) continue;
        before[i] = r->rest[i];
        r->rest[i] = rest;
        r->matched[i] = depth + 1;
    }
    struct json_value value;
    if (!skip_value(r, depth + 1, &value)) return false;
    for (size_t i = 0; i < r->path_count; i++) {
        if (part[i] == ENDS) r->values[i] = value;
        if (part[i] != FOLLOWS) continue;
        r->rest[i] = before[i];
        r->matched[i] = depth;
    }
    return true;
}

static bool skip_object(struct json_reader *r, unsigned depth) {
    r->at++;
    skip_space(r);
    if (take(r, '}')) return true;
    for (;;) {
        if (!skip_field(r, depth)) return false;
        skip_space(r);
        if (take(r, '}')) return true;
        if (!take(r, ',')) return fail_wanted(r, "',' or '}'");
        skip_space(r);
    }
}

static bool skip_any(struct json_reader *r, unsigned depth,
                     enum json_type *type) {
    *type = JSON_PLAIN;
    switch (r->at < r->end ? *r->at : 0) {
        case '"': *type = JSON_STRING; return skip_string(r);
        case '{': *type = JSON_NESTED; return skip_object(r, depth);
        case '[': *type = JSON_NESTED; return skip_array(r, depth);
        case 'n': *type = JSON_NULL; return skip_word(r, "null");
        case 't': return skip_word(r, "true");
        case 'f': return skip_word(r, "false");
        default: break;
    }
    return starts_number(r) ? skip_number(r) : fail_wanted(r, "a value");
}

static bool skip_value(struct json_reader *r, unsigned depth,
                       struct json_value *value) {
    if (depth > MOST_DEPTH) {
        snprintf(r->error, JSON_ERROR_ROOM,
                 "at byte %zu objects and arrays are nested more than %d deep",
                 (size_t)(r->at - r->start) + 1, MOST_DEPTH);
        return false;
    }
    value->at = r->at;
    const bool good = skip_any(r, depth, &value->type);
    value->size = (size_t)(r->at - value->at);
    return good;
}

bool json_find(const char *line, size_t size, const char *const *paths,
               size_t count, struct json_value *values,
               char error[JSON_ERROR_ROOM]) {
    struct json_reader r = {.start = line,
                            .at = line,
                            .end = line + size,
                            .error = error,
                            .path_count = count,
                            .values = values};
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct json_value){JSON_ABSENT, line, 0};
        r.rest[i] = paths[i];
    }
    skip_space(&r);
    if (r.at == r.end) return true;
    if (*r.at != '{') return fail_wanted(&r, "an object");
    if (!skip_object(&r, 0)) return false;
    skip_space(&r);
    return r.at == r.end || fail_wanted(&r, "the end of the line");
}
