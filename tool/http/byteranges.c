#include "http/byteranges.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

const char *header_value(const char *line, const char *name) {
    const size_t size = strlen(name);
    if (strncasecmp(line, name, size) != 0 || line[size] != ':') return NULL;
    return line + size + 1 + strspn(line + size + 1, " \t");
}

static bool digits(const char **at, uint64_t *number) {
    if (**at < '0' || **at > '9') return false;
    *number = 0;
    for (; **at >= '0' && **at <= '9'; ++*at) {
        if (*number > INT64_MAX / 10 - 1) return false;
        *number = 10 * *number + (uint64_t)(**at - '0');
    }
    return true;
}

bool content_range_from(const char *at, struct content_range *r) {
    if (strncasecmp(at, "bytes ", 6) != 0) return false;
    at += 6;
    if (!digits(&at, &r->first) || *at++ != '-' || !digits(&at, &r->last) ||
        *at++ != '/' || r->first > r->last)
        return false;
    r->total = 0;
    if (strcmp(at, "*") == 0) return true;
    return digits(&at, &r->total) && !*at && r->last < r->total;
}

/* ---- Several ranges ----------------------------------------------------- */

struct body_reader {
    const char *at, *end;
    char line[512];
};

/* The next line, without its end; false at the end of the body, and for a line
 * that is too long to be one of a header. */
static bool next_line(struct body_reader *r) {
    if (r->at == r->end) return false;
    const size_t left = (size_t)(r->end - r->at);
    const char *const newline = memchr(r->at, '\n', left);
    size_t size = newline ? (size_t)(newline - r->at) : left;
    const char *const line = r->at;
    r->at += size + (newline != NULL);
    if (size && line[size - 1] == '\r') size--;
    if (size >= sizeof r->line) return false;
    memcpy(r->line, line, size);
    r->line[size] = '\0';
    return true;
}

/* Go to the first byte of the next part, whose header has this range. */
static bool next_part(struct body_reader *r, const char *delimiter,
                      struct content_range *range) {
    do /* an empty line stands before each */
        if (!next_line(r)) return false;
    while (!*r->line);
    if (strcmp(r->line, delimiter) != 0) return false;
    bool known = false;
    while (next_line(r)) {
        const char *const value = header_value(r->line, "Content-Range");
        if (value) known = content_range_from(value, range) && range->total;
        if (!*r->line)
            return known &&
                   range->last - range->first < (uint64_t)(r->end - r->at);
    }
    return false;
}

enum byteranges byteranges_copy(const char *boundary, const char *body,
                                size_t size, uint64_t file_bytes,
                                const struct http_range *const *ranges,
                                size_t n) {
    struct body_reader r = {.at = body, .end = body + size};
    char delimiter[128];
    struct content_range part;
    uint64_t found = 0;
    snprintf(delimiter, sizeof delimiter, "--%s", boundary);
    while (next_part(&r, delimiter, &part)) {
        if (part.total != file_bytes) return BYTERANGES_OTHER_FILE;
        for (size_t i = 0; i < n; i++) {
            const struct http_range *const want = ranges[i];
            if (want->at < part.first || want->at + want->size - 1 > part.last)
                continue;
            memcpy(want->bytes, r.at + (want->at - part.first), want->size);
            found |= UINT64_C(1) << i;
        }
        r.at += part.last - part.first + 1;
    }
    return found == (UINT64_C(1) << n) - 1 ? BYTERANGES_COMPLETE
                                           : BYTERANGES_INCOMPLETE;
}
