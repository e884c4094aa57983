/* calyx build --part: one range of the filter, into a part file. */
#ifndef CALYX_TOOL_PART_BUILD_H
#define CALYX_TOOL_PART_BUILD_H

#include "input/part_lines.h"
#include "input/pipeline.h"

struct part_job {
    struct part_choice part;
    calyx_options want;    /* the whole filter */
    uint64_t memory_bytes; /* for hashes that wait */
    const char *folder;    /* of temporary files */
    const char *out;
    bool replace;
};

/* Build the part from lines, or from files of hashes of this part, and save it.
 */
struct input_totals build_part(const struct part_job *job, int count,
                               char **files);

/* Add the hashes of these files to a builder: all, or with `own`, those that
 * belong to the part of the file. Returns their number. */
uint64_t add_hash_files(calyx_builder *b, const calyx_filter *hasher, bool own,
                        int count, char **files);

#endif
