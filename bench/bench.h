/*
 * The benchmark's own words.
 *
 * Contestants do tasks. A task is one verb on keys in one form, batched or one
 * at a time. Time is taken on segments of a few thousand keys; a pass is many
 * segments in a row by one contestant, and what counts of it is its fastest
 * segment: on a shared machine everything slower is somebody else's doing. In a
 * round every contestant makes one pass of each task, so that whatever slows
 * the machine for a while slows them all. The figure of a task is the median
 * over the rounds; ratios are formed within a round, and the median is taken of
 * those.
 */
#ifndef BENCH_H
#define BENCH_H

#include <calyx/calyx.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SEGMENT = 8192, /* keys at most */
    MOST_ROUNDS = 101,
    MOST_CONTESTANTS = 48,
    MOST_TASKS = 64
};

/* ---- Keys ---------------------------------------------------------------- */

enum form {
    HASHES,  /* 64-bit keys that are hashed already              */
    NUMBERS, /* 64-bit keys, to be hashed as 8 bytes             */
    URLS,    /* 20 to 64 bytes, to be fetched from memory and hashed */
    IDS      /* the same, of 32 bytes each; none is a member */
};

/* Keys to work on, in the forms that a task may want, and room for answers. */
struct segment {
    size_t n;
    const calyx_key *urls; /* or ids */
    uint64_t numbers[SEGMENT], hashes[SEGMENT];
    bool answers[SEGMENT];
};

/* Member i of the set, and absent key i: all different from one another. */
uint64_t member(uint64_t i);
uint64_t absent_number(uint64_t i);

/* A well-mixed number for each i. */
uint64_t mixed(uint64_t i);

/* URL-like keys: members and absent keys in turn, in the given shares, and a
 * list of all the members. Made once. */
enum { POOL = 1 << 20 };
const calyx_key *url_pool(int present);
const calyx_key *url_members(void);
const calyx_key *id_pool(void);

/* ---- Tasks --------------------------------------------------------------- */

enum verb {
    BUILD,     /* all members, from the first to the last */
    ADD,       /* members, to a set that is half full, or fuller */
    ADD_FRESH, /* the same, wanting to know which were there already */
    HAS,
    REMOVE
};

struct task {
    const char *name;
    enum verb verb;
    enum form form;
    bool single;
    int present; /* per cent of the keys asked for that are members */
    int threads;
    int batch; /* keys in a call, if not single; 0: the whole segment */
};

/* ---- Contestants --------------------------------------------------------- */

struct contestant;

struct trade {
    /* Make an empty set for n keys; false if it cannot be had. */
    bool (*make)(struct contestant *c, uint64_t n, double fpr);
    void (*clear)(struct contestant *c);
    void (*end)(struct contestant *c);
    bool (*can)(const struct contestant *c, const struct task *task);
    /* Do a task on a segment; returns the number of keys found. */
    size_t (*run)(struct contestant *c, const struct task *task,
                  struct segment *s);
    uint64_t (*bytes)(const struct contestant *c); /* may take its time */
};

struct contestant {
    char name[40];
    const struct trade *trade;
    bool answers;              /* it holds a set: its rate can be measured */
    bool exact;                /* and makes no mistakes                    */
    bool shared;               /* threads may add to it at once            */
    bool quick;                /* used through <calyx/inline.h>            */
    bool by_hand;              /* or as if it was part of the caller       */
    const char *kind, *kernel; /* of a filter of ours                      */
    double growth;
    uint64_t first;  /* keys that one that grows begins with; 0: n / 1023 */
    bool like_grown; /* one part, with the bytes of the grown one */
    void *self;
    uint64_t n;             /* what it was made for                     */
    uint64_t numbers, urls; /* members that it has by now               */
    uint64_t bytes;         /* when all were in                         */
    uint64_t huge_bytes;    /* taken on huge pages, until it was built  */
    double rate;            /* measured */
};

/* Each adds its contestants to a list, and returns their number. */
int calyx_contestants(struct contestant *to, const char *kinds);
int floor_contestants(struct contestant *to);
int libbloom_contestants(struct contestant *to);
int fuse_contestants(struct contestant *to);
int cuckoo_contestants(struct contestant *to);
int boost_contestants(struct contestant *to);
int exact_contestants(struct contestant *to);
int unordered_set_contestants(struct contestant *to);

/* The single calls of <calyx/inline.h>, and the same by hand for keys of at
 * most eight probes, on machines with AVX2; of hashes or numbers. */
size_t quick_has(calyx_filter *f, enum form form, struct segment *s);
void quick_add(calyx_filter *f, enum form form, const struct segment *s);
size_t hand_has(calyx_filter *f, enum form form, struct segment *s);
void hand_add(calyx_filter *f, enum form form, const struct segment *s);

/* The best level that a kind has here. */
const char *best_level(const char *kind);

/* Is this name in a list such as "line,split"? */
bool is_listed(const char *list, const char *name);

/* ---- Measuring ----------------------------------------------------------- */

/* ns a key of one contestant in one task, round by round. */
struct series {
    int rounds;
    double ns[MOST_ROUNDS];
};

/* The spread is from the first quartile to the third. */
struct figure {
    double median, spread;
};

struct figure figure_of(const struct series *s);
struct figure ratio_of(const struct series *a, const struct series *b);
struct series sum_of(const struct series *a, const struct series *b);

/* A ratio that the spread leaves in doubt is not worth printing. */
bool is_clear(struct figure ratio);

/* What came of a task: a series for each contestant, empty if it cannot. */
struct results {
    struct series of[MOST_CONTESTANTS];
};

/* Let everyone do what they can of n tasks, in turn. Asking and removing want
 * full sets, and leave them full; building leaves them so. Adding empties them
 * by half whenever there are no members left to add. */
void compete(struct contestant *who, int count, const struct task *tasks, int n,
             int rounds, struct results *out);

void measure_rate(struct contestant *c);

/* Saving and loading, beside doing so without a format. */
void compare_files(void);

double now(void); /* in ns */

/* ---- The machine --------------------------------------------------------- */

/* Zeros on huge pages if they are to be had; NULL if there is no memory. */
void *take_pages(size_t bytes);
void give_pages(void *pages, size_t bytes);

/* How much of this process's memory lies on huge pages, in bytes. */
uint64_t huge_bytes(void);

void print_machine(FILE *to, bool as_json);

/* ---- Reporting ----------------------------------------------------------- */

/* Figures go to the terminal as tables, and to a file as JSON, if wanted. */
struct report {
    FILE *json;
    int records; /* in the present list of the file */
};

void open_report(struct report *r, const char *path);
void close_report(struct report *r);

/* What came of one task. `part` says which part of the benchmark it was. */
void report_task(struct report *r, const char *part,
                 const struct contestant *who, int count, double fpr,
                 const struct task *task, const struct series *all);

/* How much of everyone's memory the system gave on huge pages. */
void report_pages(const struct contestant *who, int count);

/* Note has and add of a filter beside the floor, at one size of many, for a
 * table at the end. */
void note_growth(const struct contestant *who, int count, const char *name,
                 const struct task *tasks, int n,
                 const struct results *results);
void report_growth(void);

/* ---- Goals --------------------------------------------------------------- */

/* The ratios that we want to reach, looked up in the results of some tasks and
 * kept until they are reported. */
void note_targets(const struct contestant *who, int count, double fpr,
                  const struct task *tasks, int n,
                  const struct results *results);
void report_targets(struct report *r);

/* The line at the end of --quick, of the last rate and size noted. */
void print_last_line(void);

#ifdef __cplusplus
}
#endif
#endif
