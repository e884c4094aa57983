/*
 * How an exact verb can be done. There are three methods:
 *
 *     one_pass     the text and a table of its lines fit into memory
 *     by_hashes    plain files are read for their hashes first; then only lines
 *                  that may equal others are compared, in more passes
 *     by_spilling  keys are stored in memory; what does not fit goes to
 *                  temporary files
 *
 * verb/exact_run.c takes the first that fits. --dry-run asks it what it costs.
 */
#ifndef CALYX_TOOL_METHOD_H
#define CALYX_TOOL_METHOD_H

#include "exact/budget.h"
#include "input/pipeline.h"
#include "input/source.h"

/* ---- What is to be done -------------------------------------------------- */

/* Stored with a key. */
enum { FILE_BITS = 20, FILES_MASK = (1 << FILE_BITS) - 1 };
struct tally {
    uint64_t first;                  /* sequence number of its first line */
    uint64_t count : 64 - FILE_BITS; /* lines or files; the verb decides */
    uint64_t file : FILE_BITS;       /* the last file that had the key */
};

/* Where a line goes as soon as it is read. */
enum destination { NOT_PRINTED, TO_OUTPUT, TO_SECOND };

/* What distinguishes the verbs. Readings are numbered in their order. */
struct set_operation {
    size_t readings;
    size_t storing;  /* readings whose new keys are stored: the first ones.
                        Later readings only look keys up. */
    size_t printing; /* readings that may print: the last ones */
    bool tallies;    /* store a tally with each key, for on_present */
    /* Called for each line whose key is stored; `fresh`: it is new. */
    enum destination (*on_present)(const struct set_operation *op,
                                   struct tally *tally, bool fresh,
                                   uint64_t reading);
    bool prints_absent; /* print lines of readings that do not store, if their
                           key is absent */
    /* At the end of a partition, print the first line of keys whose tally
     * counts `least` to `most`. 0: all lines were printed before. */
    uint64_t least, most;
    calyx_filter *
        *without; /* lines that these filters have are never printed */
    int without_count;
    bool of_all_files; /* print keys that every file has */
    bool counts;       /* print tally->count before lines of the first output */
    bool prints_marked; /* by_hashes: print lines that stay candidates, not the
                           others */
    struct output *output, *second;
};

static inline bool stores_keys(const struct set_operation *op,
                               uint64_t reading) {
    return reading < op->storing;
}

static inline bool may_print(const struct set_operation *op, uint64_t reading) {
    return reading + op->printing >= op->readings;
}

/* Are there readings whose keys are looked up, but not stored? */
static inline bool some_only_read(const struct set_operation *op) {
    return op->storing < op->readings;
}

/* A hash is seen in classes of files. It meets the condition if it was seen in
 * all classes of `either`, and twice where that says so; or of `or_else`. */
enum { CLASSES = 4 };
struct hash_condition {
    uint32_t either, or_else;
};
#define SEEN_IN(class)       (UINT32_C(1) << (class))
#define SEEN_TWICE_IN(class) (SEEN_IN(class) << CLASSES)

static inline bool meets_condition(const struct hash_condition *condition,
                                   uint64_t seen) {
    return ((seen & condition->either) == condition->either) |
           ((seen & condition->or_else) == condition->or_else);
}

/* Files that are read as one. */
struct file_group {
    int count;
    char **files;
    unsigned class; /* below CLASSES: for the condition */
    struct sample is;
};

struct exact_job {
    struct set_operation op;
    const struct file_group *readings;
    struct hash_condition condition; /* of lines that are compared */
    /* From the readings (exact_run.c): all of them, the ones that store keys,
     * and the ones that store keys or may print. */
    struct sample sum, stored, hashed;
    bool known;            /* no file is a pipe */
    bool second;           /* there is a second output */
    struct kept_text kept; /* what a method that gave up read of pipes */
};

/* Other readings are only looked up among the stored keys. */
static inline bool is_hashed(const struct set_operation *op, size_t reading) {
    return stores_keys(op, reading) || may_print(op, reading);
}

/* ---- What a method says -------------------------------------------------- */

struct figures {
    uint64_t lines, bytes;        /* read by one pass */
    uint64_t candidates;          /* lines that were looked up */
    uint64_t keys;                /* distinct keys stored */
    uint64_t printed, second;     /* lines */
    uint64_t partitions, spilled; /* spilled: bytes */
    uint64_t temporary;           /* bytes of temporary files at once */
    uint64_t read;                /* bytes of the files, in all passes */
    uint64_t passes;              /* over the files */
};

/* An input, counted or guessed. */
struct line_counts {
    uint64_t lines, bytes;
    uint64_t marked;   /* candidates */
    uint64_t keys;     /* different keys of candidates */
    uint64_t distinct; /* different keys of all lines */
    uint64_t hot;      /* lines that repeat a frequent key */
    double distinct_size, distinct_key_size; /* of a line, of a key, on average
                                                over different keys */
    double stored, printed; /* shares of the bytes: of storing and of printing
                               readings */
    bool made_keys;         /* keys are not there as they are in the line */
};

struct forecast {
    uint64_t passes, read, spilled;
    uint64_t temporary; /* bytes of temporary files at once */
};

struct method {
    /* May it do the job in the memory of -S? */
    bool (*fits)(const struct exact_job *job);
    /* What will it take? */
    struct forecast (*cost)(const struct exact_job *job,
                            const struct line_counts *counts);
    /* False if it does not fit after all: another method goes on. Output that
     * was written is not written again; figures->read and passes are what was
     * read in vain. */
    bool (*run)(struct exact_job *job, struct figures *figures);
    bool finds_candidates; /* by the condition, in a first pass */
};
extern const struct method one_pass, by_hashes, by_spilling;

/* ---- Plans (dry_run.c) --------------------------------------------------- */

/* --dry-run: print the likely and the worst case. */
void print_plan(const struct exact_job *job, const struct method *method);

/* Fail if the folder for temporary files cannot hold the likely case. */
void expect_space(const struct exact_job *job, const struct method *method);

/* A look at the input, which counts candidates if `condition` is not NULL
 * (guess.c). */
void guess_counts(const struct exact_job *job,
                  const struct hash_condition *condition,
                  struct line_counts *counts);

#endif
