/*
 * Filters of other programs, so that they can be moved here, queried, and moved
 * back: behind one interface, whatever their layout. Nothing in this folder
 * knows a file or a server: it works on bytes.
 *
 *     struct foreign_choice choice;
 *     struct foreign_filter f;
 *     if (foreign_choose("guava", &choice, &why) != CALYX_OK ||
 *         foreign_read(&choice, bytes, size, &f, &why) != CALYX_OK)
 *         return why.text;
 *     f.layout->has_many(&f, keys, n, found);
 *     f.layout->free(&f);
 *
 * Where the bits of a key lie depends on its owner's hashes, which no kind of
 * Calyx has. So a filter stays in its layout: from another, or from a filter of
 * Calyx, it could be made only with the keys.
 *
 * Statuses, error texts and keys are as in calyx.h: a failed call changes
 * nothing, and explains why. Memory is malloc's.
 */
#ifndef CALYX_FOREIGN_FILTER_H
#define CALYX_FOREIGN_FILTER_H

#include <calyx/calyx.h>

#include "foreign/layout_error.h"
#include "foreign/textbook/word_filter.h"

struct foreign_filter {
    const struct foreign_layout *layout;
    union {
        struct word_filter words;
        struct chain *chain;         /* see redisbloom_chain.h */
        struct valkey_bloom *valkey; /* see valkey_bloom.h     */
    };
};

struct foreign_facts {
    const char *variant; /* "MURMUR128_MITZ_64"; "" if there is one only  */
    uint64_t capacity;   /* keys that it was made for; 0: the layout does not
                            say                                           */
    double rate;         /* that it was made for, likewise                */
    uint64_t items;      /* that were added, if `counts`                  */
    bool counts;
    uint64_t bits, set;     /* of all parts, and how many of them are 1      */
    uint32_t parts, probes; /* bits of a key in the newest part              */
    double rate_now;        /* by the bits that are set                      */
    double distinct;        /* keys, by the bits that are set; 0: unknown    */
    const char *note;       /* what is wrong with it; NULL: nothing is known */
};

/* Receives the bytes of a file; it keeps its errors to itself. */
struct foreign_sink {
    void (*put)(void *context, const void *bytes, size_t size);
    void *context;
};

/* Receives records; see dump_file.h. */
struct record_sink {
    void (*put)(void *context, uint64_t iterator, const void *bytes,
                size_t size);
    void *context;
};

struct foreign_layout {
    const char *name;
    const char *file; /* what `read` takes and `write` makes */

    /* An empty filter, as its owner would make it; see foreign_make. */
    calyx_status (*make)(uint64_t capacity, double rate,
                         struct foreign_filter *f, calyx_error *why);
    void (*free)(struct foreign_filter *f);

    /* Exactly what its owner would answer. */
    void (*has_many)(const struct foreign_filter *f, const calyx_key *keys,
                     size_t n, bool *found);
    calyx_status (*add_many)(struct foreign_filter *f, const calyx_key *keys,
                             size_t n, calyx_error *why);
    /* Reads all bits. */
    void (*describe)(const struct foreign_filter *f,
                     struct foreign_facts *facts);

    /* How large a file with this head is, for layouts that lie in a string of a
     * server, which leaves out zeros at the end; else NULL. */
    calyx_status (*file_size)(const uint8_t *head, size_t size,
                              const struct foreign_filter *f, uint64_t *all,
                              calyx_error *why);
    /* Its owner's file; see foreign_read. `bytes` is malloc's, and belongs to
     * the filter on success. */
    calyx_status (*read)(uint8_t *bytes, size_t size, struct foreign_filter *f,
                         calyx_error *why);
    void (*write)(const struct foreign_filter *f,
                  const struct foreign_sink *to);

    /* The same as records. If `load` is NULL, `read` takes the bytes of all
     * records together; else begin with a filter of zeros, and call `loaded`
     * after the last. `free` is due if `load` failed. */
    calyx_status (*save)(const struct foreign_filter *f,
                         const struct record_sink *to, calyx_error *why);
    calyx_status (*load)(struct foreign_filter *f, uint64_t iterator,
                         const void *bytes, size_t size, calyx_error *why);
    calyx_status (*loaded)(struct foreign_filter *f, calyx_error *why);
};

extern const struct foreign_layout foreign_redisbloom, foreign_valkey_bloom,
    foreign_guava, foreign_spark, foreign_bits_and_blooms, foreign_dcso,
    foreign_redisson, foreign_bits;

/* All of them; ends with NULL. */
extern const struct foreign_layout *const foreign_layouts[];
const struct foreign_layout *foreign_layout_named(const char *name);

/* A layout, and its line if it was given as one. */
struct foreign_choice {
    const struct foreign_layout *layout;
    struct layout_line line;
};

/* By the name of a layout, or by a line that layout_line.h describes. */
calyx_status foreign_choose(const char *text, struct foreign_choice *choice,
                            calyx_error *why);

/* "guava", or the line. */
const char *foreign_name(const struct foreign_choice *choice);
/* Is it of this layout; and if a line was given, of this line? */
bool foreign_is_of(const struct foreign_filter *f,
                   const struct foreign_choice *choice);

/* layout->make, layout->read and layout->file_size, of this choice. */
calyx_status foreign_make(const struct foreign_choice *choice,
                          uint64_t capacity, double rate,
                          struct foreign_filter *f, calyx_error *why);
calyx_status foreign_read(const struct foreign_choice *choice, uint8_t *bytes,
                          size_t size, struct foreign_filter *f,
                          calyx_error *why);
calyx_status foreign_file_size(const struct foreign_choice *choice,
                               const uint8_t *head, size_t size, uint64_t *all,
                               calyx_error *why);

/* ---- For layouts --------------------------------------------------------- */

/* More bytes than this are never in one record, where records are pieces. */
enum { FOREIGN_MOST_PIECE = 16 << 20 };

/* How many bits of a body are 1. */
uint64_t foreign_count_bits(const uint8_t *bytes, uint64_t size);

/* How many bits textbooks give to `capacity` keys at this rate, before they are
 * rounded. Fails if the rate is none, or there would be more than `most`. */
calyx_status foreign_size(uint64_t capacity, double rate, double most,
                          double *bits, calyx_error *why);

#endif
