/*
 * Which lines are equal, exactly, in the memory that there is.
 *
 * Work is done in rounds. A round reads records in the order of the input and
 * keeps their keys in an exact set. When that is full, keys that it lacks are
 * put off: they go into one of several spills, by their hash. So all records of
 * one key are met in one round, in their order. At the end of a round its keys
 * are settled, and each spill becomes the input of a round of its own, with
 * another seed. Lines to be printed go straight to the output as long as
 * nothing was put off, and from then on into runs, which are merged by their
 * sequence numbers in the end.
 *
 * Every round settles at least one key. So this ends, with the right answer,
 * even for a hash that gives all keys one value; good hashes only make it fast.
 * Input that fits is one round, and no file is made.
 */
#ifndef CALYX_TOOL_ENGINE_H
#define CALYX_TOOL_ENGINE_H

#include "exact/budget.h"
#include "exact/marks.h"
#include "input/pipeline.h"

/* What is kept of a key. */
enum { FILE_BITS = 20, FILES_MASK = (1 << FILE_BITS) - 1 };
struct tally {
    uint64_t first; /* sequence number of its first line */
    uint64_t count : 64 -
        FILE_BITS;             /* of lines, or files: the verb's business */
    uint64_t file : FILE_BITS; /* that had it last */
};

/* What becomes of a line at once. */
enum destination { NOT_PRINTED, TO_OUTPUT, TO_SECOND };

/* What makes one verb differ from another. Files are numbered in the order in
 * which they are read. */
struct rule {
    bool tallies; /* are kept; else meet must not touch them */
    /* May a key be met here first? If not, it is of no interest unless an
     * earlier file had it. */
    bool (*takes)(uint64_t file);
    bool (*prints)(uint64_t file); /* may a line of this file be printed? */
    /* A line was met; `fresh`: its key for the first time. */
    enum destination (*meet)(struct tally *tally, bool fresh, uint64_t file);
    /* A line of a file that is not taken from, whose key nobody has. NULL if
     * all files are taken from. */
    enum destination (*absent)(uint64_t file);
    /* At the end of a round: is the first line of this key to be printed? NULL:
     * none is that was not by then. */
    bool (*keeps)(const struct tally *tally);
    /* Which lines of files that may be printed are not to be, whatever others
     * have. Called from many threads. NULL: none. */
    void (*drop)(const calyx_key *keys, size_t n, bool *dropped);
    bool counts; /* print tally->count before lines of the first output */
    struct output *output, *second;
    /* If given, no line is printed or kept, and those that go to the second
     * output get a mark. */
    struct line_marks *marks;
};

struct figures {
    uint64_t lines, bytes;        /* read, by engine_read */
    uint64_t candidates;          /* lines that the sieve let through */
    uint64_t keys;                /* that were kept: different ones */
    uint64_t printed, second;     /* lines */
    uint64_t partitions, spilled; /* spilled: bytes */
    uint64_t passes;              /* over the files; the verb's business */
};

/* `memory` is what all of this may take; `expected`, what will come: zeros if
 * nobody knows. */
void engine_start(const struct rule *rule, uint64_t memory,
                  const struct sample *expected);

/* Read a file, or several as one; only lines whose keys `sieve` may have, if
 * there is one. Their keys are added to `passed`, if that is given. Both must
 * be made by prefilter_options. */
void engine_read(int count, char **files, const calyx_filter *prefilter,
                 calyx_filter *passed);

/* With marks: read files that can be read again, and only lines whose keys
 * `sieve` may have, of which there are about as many as expected. If these do
 * not fit at once, the files are read several times, for one part of the keys
 * after the other, or keys are put off, whichever is sooner done. Lines are put
 * out the last time unless some were put off. Returns how often was read. */
unsigned engine_read_in_passes(int count, char **files,
                               const calyx_filter *prefilter,
                               const struct sample *expected);

/* The rounds that are left, and the merge. */
struct figures engine_end(void);

/* For filters that take the hashes of these keys. */
calyx_options prefilter_options(void);
void prefilter_hashes(const calyx_key *keys, size_t n, uint64_t *hashes);

/* ---- --dry-run ----------------------------------------------------------- */

struct engine_plan {
    const struct rule *rule;
    struct sample sum;         /* of all files */
    struct sample prefiltered; /* of what a sieve is made of, if one is */
    uint64_t prefilter;        /* its bytes */
    const char *what_remains;  /* those of its lines that must be kept */
    int passes;                /* over the files */
    bool parts; /* and more, if need be, as engine_read_in_passes */
    bool known; /* no file is a pipe */
};
void print_plan(const struct engine_plan *outlook);

#endif
