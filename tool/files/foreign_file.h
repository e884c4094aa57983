/* Filters of other programs, in files of Calyx: foreign/dump_file.h. */
#ifndef CALYX_TOOL_FOREIGN_FILE_H
#define CALYX_TOOL_FOREIGN_FILE_H

#include "files/item_type.h"
#include "foreign/foreign_filter.h"
#include "input/source.h"
#include "tool.h"

struct foreign_file {
    struct foreign_filter filter;
    const struct item_type *items;
};

/* Of a source of which source_is_dump; closes it. Fails if it is damaged. */
struct foreign_file *foreign_file_load(struct byte_source *source);
void foreign_file_save(const struct foreign_file *f, const char *path,
                       bool replace);
void foreign_file_free(struct foreign_file *f); /* NULL is fine */

/* What its owner answers, for the items that these keys stand for. Any thread.
 */
void foreign_file_has_many(const struct foreign_file *f, const calyx_key *keys,
                           size_t n, bool *found);
void foreign_file_add_many(struct foreign_file *f, const calyx_key *keys,
                           size_t n);
struct foreign_facts foreign_file_describe(const struct foreign_file *f);

/* The file of its owner: read it, and write it. */
struct foreign_file *foreign_file_import(const struct foreign_layout *layout,
                                         const struct item_type *items,
                                         struct byte_source *source);
void foreign_file_export(const struct foreign_file *f, struct output *to);

/* An empty one. */
struct foreign_file *foreign_file_new(const struct foreign_layout *layout,
                                      const struct item_type *items,
                                      uint64_t keys, double rate);

/* "redisbloom, valkey-bloom, ..." */
const char *foreign_names(void);

#endif
