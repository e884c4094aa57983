/*
 * The exact engine: decides which lines have equal keys, in bounded memory.
 *
 * It works like a Grace hash join. A partition is a sequence of records in the
 * order of the input; the first partition is the input itself. The engine reads
 * a partition and stores its keys in an exact set. When the set is full,
 * records of other keys are spilled to one of several files, chosen by hash, so
 * all records of a key stay together and in order. Each spill file then becomes
 * a partition of its own, hashed with another seed. Lines are printed directly
 * until the first record is spilled. From then on they go to runs, which are
 * merged by sequence number at the end.
 *
 * Files that can be read twice are read for their hashes first: candidates.h
 * marks the lines whose keys may equal others. The engine then reads only these
 * lines, and changes the marks to those of the lines to print. A pass over the
 * files prints them, so no line is stored to be printed later.
 *
 * Every partition resolves at least one key. So the engine terminates with the
 * right answer even if all keys have the same hash; a good hash only makes it
 * fast. Input that fits into memory is one partition, and no file is created.
 */
#ifndef CALYX_TOOL_ENGINE_H
#define CALYX_TOOL_ENGINE_H

#include "exact/budget.h"
#include "exact/candidates.h"
#include "input/pipeline.h"

/* Stored with a key. */
enum { FILE_BITS = 20, FILES_MASK = (1 << FILE_BITS) - 1 };
struct tally {
    uint64_t first;                  /* sequence number of its first line */
    uint64_t count : 64 - FILE_BITS; /* lines or files; the verb decides */
    uint64_t file : FILE_BITS;       /* the last file that had the key */
};

/* Where a line goes as soon as it is read. */
enum destination { NOT_PRINTED, TO_OUTPUT, TO_SECOND };

/* What distinguishes the verbs. Files are numbered in reading order. */
struct rule {
    bool tallies; /* store a tally with each key; else visit must not use it */
    /* Are new keys of this file inserted? If not, only keys that an earlier
     * file inserted matter. */
    bool (*inserts)(uint64_t file);
    bool (*may_print)(uint64_t file); /* may its lines be printed? */
    /* Called for each line whose key is in the set; `fresh`: it is new. */
    enum destination (*visit)(struct tally *tally, bool fresh, uint64_t file);
    /* Called for a line of a file that does not insert, if its key is absent.
     * NULL if all files insert. */
    enum destination (*absent)(uint64_t file);
    /* At the end of a partition: print the first line of this key? NULL: all
     * lines were printed before. */
    bool (*selects)(const struct tally *tally);
    /* Marks lines that are never printed, among those of files that may print.
     * Called from many threads. NULL: none. */
    void (*drop)(const calyx_key *keys, size_t n, bool *dropped);
    bool of_all_files; /* print keys that every file has */
    bool counts;       /* print tally->count before lines of the first output */
    struct output *output, *second;
    /* If set, no line is printed or stored. Instead, of the lines that may be
     * printed and are marked, those for the first output keep their mark, if
     * `prints_marked`; or else only the others. */
    struct line_marks *marks;
    bool prints_marked;
    struct kept_text *kept; /* text that was read already; NULL: none */
};

struct figures {
    uint64_t lines, bytes;        /* read by engine_read */
    uint64_t candidates;          /* lines that were looked up */
    uint64_t keys;                /* distinct keys stored */
    uint64_t printed, second;     /* lines */
    uint64_t partitions, spilled; /* spilled: bytes */
    uint64_t temporary;           /* bytes of temporary files at once */
    uint64_t read;                /* bytes of the files, in all passes */
    uint64_t passes;              /* over the files; set by the verb */
};

struct engine;

/* `memory` bounds the engine. `expected` is the estimated input; zeros if
 * unknown. `rule` must outlive the engine. */
struct engine *engine_start(const struct rule *rule, uint64_t memory,
                            const struct sample *expected);

/* Read one file, or several as one. */
void engine_read(struct engine *engine, int count, char **files);

/* With marks: read the candidates of these files. If their keys do not fit,
 * read the files several times, for a share of the keys each time, or spill,
 * whichever costs less. The last pass prints, unless records were spilled.
 * Returns the number of passes. */
unsigned engine_read_candidates(struct engine *engine,
                                const struct reading *readings, size_t count,
                                const struct candidates *found);

/* Process the remaining partitions, merge the runs, free the engine. */
struct figures engine_end(struct engine *engine);

/* ---- What it will take (forecast.c) ------------------------------------- */

struct engine_plan {
    struct sample sum; /* of all files */
    size_t storing;    /* readings whose new keys are stored: the first ones */
    size_t printing;   /* and those that may print: the last ones */
    uint64_t stored_lines; /* of the readings whose keys are stored */
    bool known;            /* no file is a pipe */
    bool second;           /* there is a second output */
    enum { SELECT_ALL, SELECT_REPEATED, SELECT_SINGLE } selected; /* keys */
    const struct hash_condition *condition; /* NULL: one pass, without hashes */
    bool one_pass; /* with a table of places; else with the condition */
    const struct reading *readings;
    size_t reading_count;
};

/* --dry-run: print the likely and the worst case. */
void print_plan(const struct rule *rule, const struct engine_plan *plan);

/* Fail if the folder for temporary files cannot hold the likely case. */
void expect_space(const struct rule *rule, const struct engine_plan *plan);

#endif
