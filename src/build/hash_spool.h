/*
 * Stores hashes until all are known, then hands them out in order, without
 * duplicates.
 *
 * Hashes wait in a buffer. A full buffer is grouped by high bits and written to
 * a temporary file without a name, 8 bytes a hash: a run. To hand out a range
 * of hashes, the slices of all runs that lie in it are read and sorted in
 * memory. So memory is bounded, no hash is written twice, and ranges can be
 * read by several threads at once. Equal hashes meet when they are sorted.
 */
#ifndef CALYX_HASH_SPOOL_H
#define CALYX_HASH_SPOOL_H

#include <calyx/calyx.h>

struct spool_file {
    int fd;
    uint64_t end; /* of what is valid */
};

/* A buffer in a file: 2^bits places where the slices of its hashes end, then
 * the hashes. */
struct spool_run {
    size_t file; /* its number */
    uint64_t at, n;
    int bits;
};

struct hash_spool {
    calyx_memory memory;
    const char *folder; /* of temporary files; the caller's */
    size_t most;        /* hashes in memory, at least SPOOL_LEAST */
    uint32_t copies;    /* of one hash that are stored, at least; 15 of them
                           bring a counter to its highest value */
    uint64_t *hashes;   /* the buffer */
    size_t used, room;
    bool few_duplicates; /* in the last buffer: not worth looking for them */
    struct spool_file *files; /* new runs go into the first */
    size_t file_count, file_room;
    struct spool_run *runs;
    size_t run_count, run_room;
    uint64_t added; /* hashes in all, duplicates included */
};

enum { SPOOL_LEAST = 4096 };

void spool_init(struct hash_spool *s, const calyx_memory *memory, size_t most,
                const char *folder, uint32_t copies);
void spool_end(struct hash_spool *s);

/* If it fails, some of the hashes may have been added. */
calyx_status spool_add(struct hash_spool *s, const uint64_t *hashes, size_t n,
                       calyx_error *why);

/* Move all hashes of `other` here, which is empty afterwards. If it fails, each
 * hash is in one of the two. */
calyx_status spool_merge(struct hash_spool *s, struct hash_spool *other,
                         calyx_error *why);

/* After the last hash: sort those that are all in memory, or write the last
 * buffer. Hashes may be added later; then this is to be called again. */
calyx_status spool_seal(struct hash_spool *s, uint32_t threads,
                        calyx_error *why);

/* A range of hashes: sorted, each at most `copies` times. */
struct hash_range {
    uint64_t first_unit, end_unit;
    const uint64_t *hashes;
    uint64_t *overwritable; /* `hashes`, or NULL if they must stay */
    size_t n;
    uint64_t distinct;
    uint32_t thread; /* the number of the thread that has it */
};

/* How a sealed spool is read: the space of hashes is divided into units, of
 * which `first` returns the first hash, which rises with the unit. `visit` gets
 * ranges of whole units, several of them at once on several threads; or in
 * order, one at a time, if `in_order`. Empty ranges are visited too. */
typedef calyx_status spool_visitor(void *context,
                                   const struct hash_range *range,
                                   calyx_error *why);
struct spool_visit {
    uint64_t units;
    uint64_t (*first)(void *context, uint64_t unit);
    spool_visitor *visit;
    void *context;
    size_t least_room; /* hashes in memory that a thread needs for one unit; 0
                          if there is no such number */
    bool in_order;
    bool divisible; /* a range may end within a unit, if that has more hashes
                       than memory has room for; else that is an error */
};

calyx_status spool_read(const struct hash_spool *s, uint32_t threads,
                        const struct spool_visit *how, calyx_error *why);

/* The same with units of no meaning, for those who want hashes alone. */
calyx_status spool_read_all(const struct hash_spool *s, uint32_t threads,
                            spool_visitor *visit, void *context, bool in_order,
                            calyx_error *why);

#endif
