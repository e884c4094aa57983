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
    bool has_sum; /* it was compared with a checksum */
};

/* Of a source that is a dump, or that --layout describes: closes it, and fails
 * if it is damaged. NULL, and nothing is read, if it is neither. */
struct foreign_file *foreign_file_try(struct byte_source *source);
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
struct foreign_file *foreign_file_import(const struct foreign_choice *choice,
                                         const struct item_type *items,
                                         struct byte_source *source);
void foreign_file_export(const struct foreign_file *f, struct output *to);

/* An empty one. */
struct foreign_file *foreign_file_new(const struct foreign_choice *choice,
                                      const struct item_type *items,
                                      uint64_t keys, double rate);

/* A filter that was fetched from elsewhere. */
struct foreign_file *foreign_file_of(const struct foreign_filter *filter,
                                     const struct item_type *items);

/* "redisbloom, valkey-bloom, ..." */
const char *foreign_names(void);

/* For the completion, too. */
#define LAYOUTS \
    "redisbloom|valkey-bloom|guava|spark|bits-and-blooms|dcso|redisson|bits"

/* The value of --layout, into a struct foreign_choice. */
void parse_layout(const struct verb_option *option, const char *value);

/* --layout and --items of verbs that read filters: FILTER is the owner's file.
 * `layout` is NULL if it was not given. */
extern const struct group owned_group;
extern struct owned {
    struct foreign_choice choice;
    const struct item_type *items;
} owned;

#endif
