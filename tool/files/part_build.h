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

/* Read files of hashes: of this part, and cut by shard or by range; hashed as
 * `hasher` does, which gets their options for keys. `take` gets the hashes. */
struct hash_files_job {
    struct part_choice part;
    bool by_shard;
    calyx_filter *hasher;
    void (*take)(const uint64_t *hashes, size_t n);
};
struct input_totals read_hash_files(const struct hash_files_job *job, int count,
                                    char **files);

#endif
