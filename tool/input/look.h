/*
 * Recognizes files by their first bytes that are easily mistaken for lists:
 * filters, compressed files and Unicode text that is not UTF-8. Read as lines
 * they would give meaningless keys.
 */
#ifndef CALYX_TOOL_LOOK_H
#define CALYX_TOOL_LOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LOOK_BYTES = 16 }; /* enough for all formats */

enum look_kind {
    A_FILTER,
    A_PART,
    A_DUMP,
    HASHES,
    PACKED_DATA,
    WIDE_TEXT,
    UTF8_MARK
};

struct look {
    enum look_kind kind;
    size_t size;
    const char *magic; /* `size` bytes */
    const char *name;  /* "xz data"                          */
    const char *pipe;  /* the command that makes lines of it */
};

/* NULL: nothing that is known. Sets `*more` if further bytes could change the
 * answer. */
const struct look *look_at(const uint8_t *bytes, size_t size, bool *more);

/* Is there nothing among the bytes that text does not have? */
bool looks_like_text(const uint8_t *bytes, size_t size);

#endif
