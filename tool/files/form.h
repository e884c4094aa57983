/*
 * Forms of a filter that other programs read or write: raw bits after a small
 * header. A form is one file, form_NAME.c, and one row in verb_convert.c.
 */
#ifndef CALYX_TOOL_FORM_H
#define CALYX_TOOL_FORM_H

#include "input/source.h"
#include "tool.h"

struct foreign_form {
    const char *name;

    /* Write a filter in this form. `path` is its file, for messages. */
    void (*write)(const calyx_filter *f, const char *path, struct output *to);

    /* Read the header. Fills `is` with what it says about the filter, including
     * `bits`. */
    void (*read)(struct byte_source *from, calyx_options *is);
};

extern const struct foreign_form form_parquet, form_raw;

/* The bits of a filter, of which there must be one row; fails if not. */
const void *raw_bits(const calyx_filter *f, const char *path, size_t *size);

/* The next `size` bytes of a source, or fail: "WHAT ends too early". */
void read_bytes(struct byte_source *from, void *bytes, size_t size,
                const char *what);

#endif
