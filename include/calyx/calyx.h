/*
 * calyx: approximate sets in a few bits a key.
 *
 * A filter remembers keys. Asked about a key it was given, it always says yes;
 * asked about any other key, it says no, except for a small share of the time
 * that you choose when you make it (the false-positive rate, "fpr").
 *
 *     calyx_filter *f;
 *     calyx_options want = {.capacity = 1000000, .fpr = 0.01};
 *     if (calyx_new(&want, &f, NULL) != CALYX_OK) return 1;
 *     calyx_add(f, "rose", 4, NULL);
 *     calyx_has(f, "rose", 4);      // true, always
 *     calyx_has(f, "tulip", 5);     // false, about 99 times in 100
 *     calyx_free(f);
 *
 * Rules that hold everywhere in this header:
 *
 *   Errors     Whatever can fail returns a calyx_status; CALYX_OK is zero. A
 *              failed call changes nothing. Results come back through pointers.
 *   Detail     Calls that can fail for reasons worth explaining take a
 *              `calyx_error *why` last. Pass NULL if you do not care.
 *   Ownership  A filter that a call gave you goes back through calyx_free,
 *              once. NULL is fine there.
 *   Threads    Any number of threads may ask one filter. A thread that changes
 *              it must be alone with it, unless it was made `concurrent`: then
 *              any number may also add. Different filters share nothing.
 *   Zero       A zero in an options struct means "the default".
 *   Keys       are bytes, of any number and value; a key of no bytes is a key.
 */
#ifndef CALYX_H
#define CALYX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef CALYX_API
#if defined(__GNUC__)
#define CALYX_API __attribute__((visibility("default")))
#else
#define CALYX_API
#endif
#endif

/* ---- Version ------------------------------------------------------------ */

#define CALYX_VERSION_MAJOR 0
#define CALYX_VERSION_MINOR 1
#define CALYX_VERSION_PATCH 0

/* The version of the library in use, such as "0.1.0". It differs from the
 * macros above when a program runs with another library than it was built
 * against. */
CALYX_API const char *calyx_version(void);

/* ---- Status ------------------------------------------------------------- */

typedef enum calyx_status {
    CALYX_OK = 0,
    CALYX_BAD_ARGUMENT = -1, /* an option or argument is out of range        */
    CALYX_NO_MEMORY = -2,    /* the allocator said no                        */
    CALYX_FULL = -3,         /* no room: strict, grown to its limit, mapped  */
    CALYX_CANNOT = -4,       /* not with its kind, or not once it has grown  */
    CALYX_MISMATCH = -5,     /* two filters that do not fit together         */
    CALYX_READ_ONLY = -6,    /* used in place: a file only ever gains bits   */
    CALYX_DAMAGED = -7,      /* bytes that are not, or no longer, a filter   */
    CALYX_TOO_NEW = -8,      /* made with features this library lacks        */
    CALYX_UNSEALED = -9,     /* changed in place: some have no checksum now  */
    CALYX_WRONG_KEY = -10,   /* another secret key, or another hash          */
    CALYX_IO = -11           /* the operating system said no; see os_code    */
} calyx_status;

/* Why a call failed, in words for a person. Filled only on failure. */
typedef struct calyx_error {
    calyx_status status;
    int os_code;    /* errno when status is CALYX_IO, else 0 */
    char text[240]; /* one line, always terminated           */
} calyx_error;

/* A short fixed phrase for a status: "out of memory". Never NULL. */
CALYX_API const char *calyx_status_text(calyx_status status);

/* ---- Making a filter ---------------------------------------------------- */

/* Where a filter gets its memory. `take` returns `size` bytes of zeros, aligned
 * to `alignment` (a power of two, at most 64), or NULL when it cannot; `give`
 * receives what was taken, with its size. A filter that is concurrent and grows
 * calls them from any of its threads. */
typedef struct calyx_memory {
    void *(*take)(void *context, size_t size, size_t alignment);
    void (*give)(void *context, void *block, size_t size);
    void *context;
} calyx_memory;

/* What to make. Of capacity, fpr and bits, any two decide the third; with none
 * or one given, the defaults fill in, bits last. */
typedef struct calyx_options {
    const char *kind;   /* one of calyx_kinds(); default the first, "line"   */
    uint64_t capacity;  /* keys to hold at `fpr`, at most 2^40; default 1000 */
    double fpr;         /* 0 < fpr < 1; default 0.01                         */
    uint64_t bits;      /* size to keep to, at most 2^44; default as needed  */
    uint32_t probes;    /* bits set for a key; default the best number       */
    double growth;      /* 0: fixed size. Otherwise a full filter takes more
                           memory, and holds about `growth` times the keys it
                           held, from 1.25 to 16, at no more than `fpr`      */
    bool strict;        /* refuse new keys at capacity, or with many threads up
                           to 256 a thread before; default: let the rate rise
                           (calyx_describe tells how far)                    */
    bool concurrent;    /* let many threads add at once, without locks       */
    const char *hash;   /* one of calyx_hashes(); default what suits the kind */
    uint64_t seed;      /* of the hash; must agree for a merge               */
    const uint8_t *key; /* 16 secret bytes, for hashes that take a key       */
    const char *kernel; /* one of calyx_kernels(); default the best          */
    const calyx_memory *memory; /* default malloc, and mmap for large ones   */
    double first_fpr; /* rate of the first part of a filter with `growth`, at
                         most `fpr`; those to come share the rest. Default: 70 %
                         of `fpr`, less if it is for few keys               */
} calyx_options;

typedef struct calyx_filter calyx_filter;

/* Make an empty filter. */
CALYX_API calyx_status calyx_new(const calyx_options *want, calyx_filter **out,
                                 calyx_error *why);

/* Make a separate filter with the same contents, in the same kind of memory. */
CALYX_API calyx_status calyx_copy(const calyx_filter *f, calyx_filter **out,
                                  calyx_error *why);

/* Make an empty filter as this one was when it was new, with its comment. */
CALYX_API calyx_status calyx_new_like(const calyx_filter *f, calyx_filter **out,
                                      calyx_error *why);

/* End a filter. NULL is fine. calyx_close also says whether the changes of a
 * filter that was mapped for writing are safe: synced to the disk, sealed, and
 * still in the file of that name; the filter is gone in any case. Any other
 * filter has nothing to lose, and CALYX_OK. */
CALYX_API void calyx_free(calyx_filter *f);
CALYX_API calyx_status calyx_close(calyx_filter *f, calyx_error *why);

/* Let an allocator that mends its holes move a filter. `move` gets each block
 * that was taken, with its size, and returns where it is now, which may be
 * where it was; alignment as in calyx_memory. Returns the filter's own new
 * place. Nobody else may use the filter meanwhile. */
typedef void *calyx_move(void *context, void *block, size_t size);
CALYX_API calyx_filter *calyx_relocate(calyx_filter *f, calyx_move *move,
                                       void *context);

/* ---- One key at a time -------------------------------------------------- */

/* Remember a key. `*fresh`, if asked for, tells whether the filter did not
 * seem to have it already: false may be a false positive, true never is. (When
 * two threads add one key at the same moment, both may be told true.) */
CALYX_API calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                                 bool *fresh);

/* Has this key been added? "false" is certain. */
CALYX_API bool calyx_has(const calyx_filter *f, const void *key, size_t size);

/* Forget a key that was added, once for each time it was. `*found`, if asked
 * for, tells whether it was there to forget; a key that certainly was not
 * changes nothing. Beware: removing a key that was never added but is a false
 * positive makes the filter forget others. One whose counters have all come to
 * 15 is found, and stays; nothing changes. Only for kinds that count. */
CALYX_API calyx_status calyx_remove(calyx_filter *f, const void *key,
                                    size_t size, bool *found);

/* How often this key was added, at most: 0 is certain. A counting filter counts
 * to 15, which stands for "15 or more"; other kinds count to 1. */
CALYX_API uint32_t calyx_count(const calyx_filter *f, const void *key,
                               size_t size);

/* The same for a number, as good as for its 8 bytes in little-endian order. */
CALYX_API calyx_status calyx_add_u64(calyx_filter *f, uint64_t number,
                                     bool *fresh);
CALYX_API bool calyx_has_u64(const calyx_filter *f, uint64_t number);

/* ---- Many keys at a time ------------------------------------------------ */

typedef struct calyx_key {
    const void *data;
    size_t size;
} calyx_key;

/* As calyx_add and calyx_has on each key in turn, but with the memory accesses
 * overlapped: several times faster once a filter outgrows the cache. `fresh`
 * and `found` are arrays of n, or NULL. Adding stops at the first key that
 * cannot be added, with its status; `*done`, if asked for, counts those before
 * it, which stay. Asking returns how many were found; a filter that has grown
 * may be asked for the keys in another order, which only threads that add
 * meanwhile could tell. Calls for many keys take up to 40 KiB of stack; asking
 * a filter that has grown, up to 60. */
CALYX_API calyx_status calyx_add_many(calyx_filter *f, const calyx_key *keys,
                                      size_t n, bool *fresh, size_t *done);
CALYX_API size_t calyx_has_many(const calyx_filter *f, const calyx_key *keys,
                                size_t n, bool *found);

CALYX_API calyx_status calyx_add_many_u64(calyx_filter *f,
                                          const uint64_t *numbers, size_t n,
                                          bool *fresh, size_t *done);
CALYX_API size_t calyx_has_many_u64(const calyx_filter *f,
                                    const uint64_t *numbers, size_t n,
                                    bool *found);

/* As calyx_remove on each key in turn. `*removed`, if asked for, counts those
 * that were there and could be forgotten. */
CALYX_API calyx_status calyx_remove_many(calyx_filter *f, const calyx_key *keys,
                                         size_t n, bool *found,
                                         size_t *removed);
CALYX_API calyx_status calyx_remove_many_u64(calyx_filter *f,
                                             const uint64_t *numbers, size_t n,
                                             bool *found, size_t *removed);

/* ---- Keys you have hashed yourself -------------------------------------- */

/* The hash of a key in this filter. Filters with one hash and one seed or key
 * agree on it, so a key can be hashed once and asked of many. */
CALYX_API uint64_t calyx_hash(const calyx_filter *f, const void *key,
                              size_t size);
CALYX_API void calyx_hash_many(const calyx_filter *f, const calyx_key *keys,
                               size_t n, uint64_t *hashes);

/* The same work with the hashing left out. Hashes must be well mixed in all
 * 64 bits; small integers are not, and would make every answer "yes". */
CALYX_API calyx_status calyx_add_hashes(calyx_filter *f, const uint64_t *hashes,
                                        size_t n, bool *fresh, size_t *done);
CALYX_API size_t calyx_has_hashes(const calyx_filter *f, const uint64_t *hashes,
                                  size_t n, bool *found);
CALYX_API calyx_status calyx_remove_hashes(calyx_filter *f,
                                           const uint64_t *hashes, size_t n,
                                           bool *found, size_t *removed);

/* ---- One key, and something else to do first ----------------------------- */

/*
 * A question to a large filter mostly waits for memory. If there is something
 * else to do before it is asked, the memory can come meanwhile:
 *
 *     calyx_prefetch(&aim, key, size);
 *     ...                                   // 100 nanoseconds of other work
 *     found = calyx_has(f, key, size);
 *
 * An aim is taken of a filter, again after it grew. It may be used when the
 * filter has changed or is gone: then it is useless, and harmless.
 */
typedef struct calyx_aim {
    uint64_t inner[10]; /* all zeros: at nothing */
} calyx_aim;

CALYX_API void calyx_take_aim(const calyx_filter *f, calyx_aim *aim);
CALYX_API void calyx_prefetch(const calyx_aim *aim, const void *key,
                              size_t size);

/* ---- One key, without a call --------------------------------------------- */

/* What <calyx/inline.h> wants to know of a filter to ask it and to add to it
 * without calling the library. Good until anything is done with the filter but
 * to ask and to add; then to be taken again. */
typedef struct calyx_quick {
    calyx_filter *filter;
    uint8_t *lines; /* NULL: nothing to inline, the library is called */
    uint64_t count; /* of lines */
    uint64_t *items;
    uint64_t flip; /* all that the hash needs of this filter's seed */
    const uint32_t *salts;
    const uint8_t *rows; /* the columns of a key: at rows + (hash & row_mask) */
    uint32_t row_mask;
    bool twice; /* keys take all columns, and a second bit in these */
} calyx_quick;

CALYX_API void calyx_take_quick(calyx_filter *f, calyx_quick *quick);

/* ---- What a filter can do ------------------------------------------------ */

/* Ask for an ability, not for the name of a kind: other kinds may have it. */
typedef enum calyx_abilities {
    CALYX_CAN_ADD = 1 << 0,       /* calyx_add and kin                        */
    CALYX_CAN_REMOVE = 1 << 1,    /* calyx_remove and kin                     */
    CALYX_CAN_COUNT = 1 << 2,     /* calyx_count beyond 1; calyx_freeze       */
    CALYX_CAN_MERGE = 1 << 3,     /* calyx_merge                              */
    CALYX_CAN_INTERSECT = 1 << 4, /* calyx_intersect                          */
    CALYX_CAN_FOLD = 1 << 5,      /* calyx_fold                               */
    CALYX_CAN_GROW = 1 << 6,      /* options.growth                           */
    CALYX_CAN_SHARE = 1 << 7,     /* options.concurrent: many threads add     */
    CALYX_CAN_STATIC = 1 << 8,    /* built once, from all keys                */
    CALYX_CAN_RANGE = 1 << 9      /* the high bits of a hash choose the place:
                                     hashes in order read the bits in order  */
} calyx_abilities;

/* The abilities of a kind, a set of calyx_abilities; 0 if there is no kind of
 * this name. calyx_info.can has those of a filter. */
CALYX_API uint32_t calyx_kind_can(const char *kind);

/* ---- The whole filter --------------------------------------------------- */

/* What a filter is, or would be. */
typedef struct calyx_info {
    const char *kind;   /* "line"                                           */
    const char *kernel; /* "avx2": how its bits are set and tested          */
    const char *hash;   /* "xxh3"                                           */
    uint64_t seed;
    uint64_t capacity; /* keys it holds before the rate passes its promise */
    uint64_t items;    /* fresh keys added; a counting filter counts every
                          add, and takes off every remove                  */
    uint64_t bits;     /* places for bits, in all parts                    */
    uint64_t bytes;    /* size of all bodies, counters included            */
    uint32_t parts;    /* 1, and one more for each time it grew            */
    uint32_t probes;   /* bits set for a key, in the newest part           */
    double growth;     /* 0 if fixed                                       */
    double fpr;        /* the rate promised, up to `capacity` keys         */
    double fpr_now;    /* the rate to expect at the present fill           */
    double fill;       /* share of the bits that are set                   */
    double distinct;   /* keys it seems to hold, judged by the fill        */
    bool strict, concurrent;
    bool read_only;  /* a view, or mapped for reading                    */
    bool huge_pages; /* the system was asked for huge pages              */
    uint32_t can;    /* abilities of its kind: CALYX_CAN_ADD | ...       */
} calyx_info;

/* Reads the whole body, for the fill; of a filter used in place it compares the
 * checksums first, and calyx_health then says what was found. */
CALYX_API void calyx_describe(const calyx_filter *f, calyx_info *info);

/* The same at once, whatever the size, by leaving out what takes reading:
 * fpr_now, fill and distinct are 0. */
CALYX_API void calyx_outline(const calyx_filter *f, calyx_info *info);

/* One of the parts of a filter that grew; the oldest is number 0. False if
 * there is no such part. */
typedef struct calyx_part {
    uint64_t capacity, items, bits, bytes;
    uint32_t probes;
    double fpr; /* its own, at capacity */
} calyx_part;

CALYX_API bool calyx_outline_part(const calyx_filter *f, uint32_t number,
                                  calyx_part *part);

/* Forget everything, keeping the size it had when new. */
CALYX_API calyx_status calyx_clear(calyx_filter *f);

/* The same, with `zero` in the place of memset: an allocator that knows about
 * pages can replace them instead of writing to them. It must leave `size` bytes
 * of zeros at `block`. */
typedef void calyx_zero(void *context, void *block, size_t size);
CALYX_API calyx_status calyx_clear_by(calyx_filter *f, calyx_zero *zero,
                                      void *context);

/* Make `f` say yes wherever `f` or `other` did (merge), or wherever both did
 * (intersect). They must agree in kind, hash, seed or key, and in the shape of
 * every part, else CALYX_MISMATCH. Filters that have grown can be merged unless
 * they count, and cannot be intersected. */
CALYX_API calyx_status calyx_merge(calyx_filter *f, const calyx_filter *other,
                                   calyx_error *why);
CALYX_API calyx_status calyx_intersect(calyx_filter *f,
                                       const calyx_filter *other,
                                       calyx_error *why);

/* Whether they could be merged, which is not done: CALYX_OK, or what
 * calyx_merge would return. To know before the first of several merges. */
CALYX_API calyx_status calyx_fits(const calyx_filter *f,
                                  const calyx_filter *other, calyx_error *why);

/* How two sets overlap, judged by the bits of filters that could be merged and
 * have not grown. */
typedef struct calyx_overlap {
    double either;  /* keys in the union               */
    double both;    /* keys in the intersection        */
    double jaccard; /* both / either; 1 if both are empty */
} calyx_overlap;

CALYX_API calyx_status calyx_compare(const calyx_filter *a,
                                     const calyx_filter *b,
                                     calyx_overlap *overlap, calyx_error *why);

/*
 * The same in steps, for callers that must not be kept waiting. The bits of all
 * parts are one row, the oldest part first, without counters. Each call goes
 * over at most `most` bytes of it, from `at->at` on, and ends early where a
 * part does. Begin with zeros in `at`; `other` is merged once `at->at` has come
 * to what calyx_row_bytes(other) was then.
 *
 *     calyx_progress at = {0};
 *     const uint64_t end = calyx_row_bytes(b);
 *     while (at.at < end && status == CALYX_OK)
 *         status = calyx_merge_some(a, b, 1 << 20, &at, &why);
 *
 * Between the steps of a merge both filters may gain keys, and grow unless they
 * count: what `other` had when it began is merged. A comparison is of one state
 * only if neither filter changed; `overlap` is set by its last step.
 */
typedef struct calyx_progress {
    uint64_t at;      /* bytes of the row that are done */
    uint64_t bits[3]; /* counted so far                 */
} calyx_progress;

CALYX_API uint64_t calyx_row_bytes(const calyx_filter *f);
CALYX_API calyx_status calyx_merge_some(calyx_filter *f,
                                        const calyx_filter *other,
                                        uint64_t most, calyx_progress *at,
                                        calyx_error *why);
CALYX_API calyx_status calyx_compare_some(const calyx_filter *a,
                                          const calyx_filter *b, uint64_t most,
                                          calyx_progress *at,
                                          calyx_overlap *overlap,
                                          calyx_error *why);

/* Make an empty filter with as many parts as this one has now, all of the same
 * shapes: one to merge it into. */
CALYX_API calyx_status calyx_new_alike(const calyx_filter *f,
                                       calyx_filter **out, calyx_error *why);

/* Make a filter with the same keys, `factor` times smaller, at a higher rate.
 * The number of blocks of each part must be a multiple of the factor; large
 * filters are made so for every power of two up to a 4096th of their blocks. A
 * counting filter that has grown cannot be folded. */
CALYX_API calyx_status calyx_fold(const calyx_filter *f, uint64_t factor,
                                  calyx_filter **out, calyx_error *why);

/* Make a filter of kind "line" that answers as this counting filter does now,
 * in a fifth of the memory. */
CALYX_API calyx_status calyx_freeze(const calyx_filter *f, calyx_filter **out,
                                    calyx_error *why);

/* ---- Planning ----------------------------------------------------------- */

/* Say what calyx_new would make of these options, without making it: the rate
 * from memory, the memory from a rate, the capacity from both. */
CALYX_API calyx_status calyx_plan(const calyx_options *want, calyx_info *info,
                                  calyx_error *why);

/* The rate to expect of such a filter, not grown, once `items` keys are in. */
CALYX_API calyx_status calyx_rate_at(const calyx_options *want, uint64_t items,
                                     double *fpr, calyx_error *why);

/* The textbook's best number of probes for so many bits a key: bits * ln 2, in
 * whole numbers from 1 to 64. */
CALYX_API uint32_t calyx_best_probes(double bits_per_key);

/* A filter in front of a slow store: is it worth it? Times in any one unit. */
typedef struct calyx_workload {
    double filter_time; /* to ask the filter, or an exact table in memory     */
    double store_time;  /* to ask the store                                   */
    double present;     /* share of the questions that the store will answer
                           with yes, 0 to 1                                   */
    double key_bytes;   /* of one key in an exact table; default 8            */
} calyx_workload;

typedef struct calyx_cost {
    double time;    /* mean time of a question */
    uint64_t bytes; /* memory                  */
} calyx_cost;

typedef struct calyx_costs {
    calyx_cost filter, table, nothing; /* the table is half full */
} calyx_costs;

CALYX_API calyx_status calyx_weigh(const calyx_options *want,
                                   const calyx_workload *load,
                                   calyx_costs *costs, calyx_error *why);

/* ---- To bytes and back -------------------------------------------------- */

/*
 * One format for bytes, streams, files and mappings: little-endian, versioned,
 * checksummed, the same on every machine, written down in doc/FORMAT.md.
 *
 * Bytes are never trusted: whatever they are, the calls below return a sound
 * filter or an error. What is used in place, by calyx_view and calyx_map, is
 * compared with its checksums by and by; see calyx_verification.
 */

/*
 * When the bytes of a filter that is used in place (calyx_view, calyx_map) are
 * compared with their checksums; other calls compare all of them at once.
 *
 * Lazily, a range of 64 KiB is compared before the first answer from it, once.
 * If it is damaged, questions about its keys are answered with yes, and
 * calyx_health says so; other questions are not affected. Keys whose range is
 * damaged cannot be added (CALYX_DAMAGED), and calls that read the whole filter
 * (copy, merge, compare, save, ...) compare it first, and refuse. Once all
 * ranges are compared, it costs nothing more.
 */
typedef enum calyx_verification {
    CALYX_VERIFY_LAZY,  /* each range before it is first used            */
    CALYX_VERIFY_WHOLE, /* all when it is opened: CALYX_DAMAGED, or sound */
    CALYX_VERIFY_NONE   /* only when calyx_verify is called              */
} calyx_verification;

/* How to open what was written. NULL will do. */
typedef struct calyx_opening {
    const uint8_t *key;  /* the 16 secret bytes, which no file contains */
    const char *kernel;  /* one of calyx_kernels(); default the best    */
    bool concurrent;     /* as in calyx_options                         */
    uint64_t most_bytes; /* refuse what is larger; default no limit    */
    const calyx_memory *memory;
    calyx_verification verify;
} calyx_opening;

/* The buffer must have exactly calyx_encoded_size bytes. */
CALYX_API uint64_t calyx_encoded_size(const calyx_filter *f);
CALYX_API calyx_status calyx_encode(const calyx_filter *f, void *buffer,
                                    size_t size, calyx_error *why);
CALYX_API calyx_status calyx_decode(const void *bytes, size_t size,
                                    const calyx_opening *how,
                                    calyx_filter **out, calyx_error *why);

/* As calyx_decode, but reading in place: no copy, read-only, and `bytes` must
 * outlive the filter. The address must be a multiple of 64. The bits are
 * compared with their checksums when they are used, see calyx_verification. */
CALYX_API calyx_status calyx_view(const void *bytes, size_t size,
                                  const calyx_opening *how, calyx_filter **out,
                                  calyx_error *why);

/* The same bytes in pieces, for what is larger than memory to spare. `put`
 * gets them in order, at most 1 MiB at a time; `get` fills the buffer with the
 * next `size` bytes. Both return false to stop, which makes the call return
 * CALYX_IO. */
typedef bool calyx_put(void *context, const void *bytes, size_t size);
typedef bool calyx_get(void *context, void *buffer, size_t size);

CALYX_API calyx_status calyx_write(const calyx_filter *f, calyx_put *put,
                                   void *context, calyx_error *why);
CALYX_API calyx_status calyx_read(calyx_get *get, void *context,
                                  const calyx_opening *how, calyx_filter **out,
                                  calyx_error *why);

/*
 * The same bytes in any order, a few at a time, for whoever must not be kept
 * waiting: the head, which tells all but the bits, and the bits, which are one
 * row of info.bytes bytes, those of the oldest part first. Neither has
 * checksums of the bits.
 *
 * A filter made from a head has no bits, and so would answer "no" to keys that
 * were added: ask it once all are put. Putting sets the bits that are set in
 * `bytes` and leaves the others, so doing it twice does no harm. Ranges must
 * lie within the row.
 */
CALYX_API size_t calyx_head_size(const calyx_filter *f);
CALYX_API calyx_status calyx_encode_head(const calyx_filter *f, void *buffer,
                                         size_t size, calyx_error *why);
CALYX_API calyx_status calyx_decode_head(const void *bytes, size_t size,
                                         const calyx_opening *how,
                                         calyx_filter **out, calyx_error *why);
CALYX_API calyx_status calyx_get_bits(const calyx_filter *f, uint64_t from,
                                      void *buffer, size_t size);
CALYX_API calyx_status calyx_put_bits(calyx_filter *f, uint64_t from,
                                      const void *bytes, size_t size);

/* A note to keep with the filter, of at most 1000 bytes; "" for none. */
CALYX_API calyx_status calyx_set_comment(calyx_filter *f, const char *text);
CALYX_API const char *calyx_comment(const calyx_filter *f);

/* Named texts to keep with the filter, for programs: a name has 1 to 64 bytes;
 * all names and values together, with 6 bytes for each pair, have at most 4096.
 * NULL for the value removes one. They are copied with the filter, like the
 * comment, and written wherever its head is. calyx_property returns NULL if
 * there is none of this name; what it returns is good until they are changed.
 */
CALYX_API calyx_status calyx_set_property(calyx_filter *f, const char *name,
                                          const char *value, calyx_error *why);
CALYX_API const char *calyx_property(const calyx_filter *f, const char *name);

/* ---- Bare bits ---------------------------------------------------------- */

/* The bits that a filter is asked by, with nothing around them: for exchange
 * with others who have such filters, as Parquet does. doc/FORMAT.md tells how
 * each kind lays them out. They lie eight to a byte, the lowest first, and are
 * the filter's own. NULL if it has grown: then there is more than one row; or
 * if it is damaged, see calyx_health. */
CALYX_API const void *calyx_bits(const calyx_filter *f, uint64_t *size);

/* Make a filter of such bits, which are copied. `want` tells what they are:
 * kind, hash, seed or key, and the probes, of which a wrong number would make
 * the filter forget keys; `bits`, unless that is 8 times `size`; and as for any
 * filter of that size, capacity or fpr. The items are judged by the fill. */
CALYX_API calyx_status calyx_from_bits(const calyx_options *want,
                                       const void *bytes, size_t size,
                                       calyx_filter **out, calyx_error *why);

/* ---- Many small filters -------------------------------------------------- */

/*
 * A filter takes some 200 bytes beside its bits, more than the bits of one for
 * 100 keys. Who has many such filters keeps of each a calyx_small and its bits,
 * and opens it to use it, which takes no memory:
 *
 *     if (calyx_make_small(f, &small, &bits)) ...      // then f is gone
 *     f = calyx_open_small(&small, bits, &memory, &room);
 *     status = calyx_add(f, key, size, &fresh);
 *     calyx_close_small(f, &small);
 *
 * An open filter may be used like any other, but for calyx_free, calyx_clear
 * and what changes its comment. It does not grow: adding to a full one is
 * CALYX_FULL. Then make a filter of it that does, which takes over the bits:
 *
 *     status = calyx_from_small(&small, bits, &memory, &f);
 *
 * `memory` is that of the filter; `bits` is a block taken from it, of
 * calyx_small_bytes bytes.
 */
typedef struct calyx_small {
    uint64_t seed;
    double fpr, first_fpr;
    uint16_t capacity, items, blocks;
    uint8_t growth; /* in twentieths; 0: fixed, and strict     */
    uint8_t code;   /* 16 times that of the kind, and probes less one */
} calyx_small;

typedef struct calyx_room {
    uint64_t inner[40];
} calyx_room;

/* False, and nothing has changed, if this one cannot be: it is large, has
 * grown, is concurrent, counts, hashes otherwise than its kind does, lets its
 * rate rise, has a comment or properties, or bits that are not its own. */
CALYX_API bool calyx_make_small(calyx_filter *f, calyx_small *small,
                                void **bits);
CALYX_API calyx_filter *calyx_open_small(const calyx_small *small, void *bits,
                                         const calyx_memory *memory,
                                         calyx_room *room);
CALYX_API void calyx_close_small(const calyx_filter *f, calyx_small *small);
CALYX_API calyx_status calyx_from_small(const calyx_small *small, void *bits,
                                        const calyx_memory *memory,
                                        calyx_filter **out);
CALYX_API size_t calyx_small_bytes(const calyx_small *small);

/* ---- Files -------------------------------------------------------------- */

/* Write to a new file beside `path`, then rename: a reader sees the old filter
 * or the new one, never half of either, and so it is after a crash. A failed
 * call leaves the old one; only if all went well but the last step, syncing the
 * folder, the new one is there, and may be the old one again after a crash. The
 * permissions, the group and the owner of the old file are kept as far as the
 * caller may set them; access is never wider than before. The new file has no
 * name until it is complete, where the system has such files, and so leaves
 * nothing behind when the process is killed. */
CALYX_API calyx_status calyx_save(const calyx_filter *f, const char *path,
                                  calyx_error *why);

/* Read a file into memory, checking every byte against its checksum. Only if it
 * was changed in place and not closed, the ranges that were changed have none;
 * then the number of items is judged by their bits, if it seems too low. */
CALYX_API calyx_status calyx_load(const char *path, const calyx_opening *how,
                                  calyx_filter **out, calyx_error *why);

/*
 * Use a file in place. Opening takes no time whatever the size, a byte of
 * memory for each 64 KiB, and many processes share the pages. The bits are
 * compared with their checksums when they are used, see calyx_verification.
 *
 * CALYX_WRITE lets one process at a time add, if the kind cannot count: changes
 * survive the process at once, and a crash of the machine from the calyx_sync
 * that follows them. The filter cannot grow there. calyx_close seals the file,
 * that is, brings the checksums of what was changed up to date; use it, and not
 * calyx_free, to learn whether that succeeded. What was damaged stays so: a
 * range is compared with its checksum before its first change. The work is in
 * proportion to what is added, not to the size of the file. After a crash the
 * next who opens the file for writing goes on from there; the number of items
 * is then judged by the bits, if it seems too low.
 *
 * calyx_sync and calyx_close return CALYX_IO, with ESTALE as os_code, if the
 * file was replaced or removed meanwhile: what was added is lost with it.
 *
 * Replace a file that others have mapped by renaming, as calyx_save does. If it
 * is cut short instead, the system may kill who asks (SIGBUS); a filter that
 * lives on answers yes to everything.
 */
typedef enum calyx_access { CALYX_READ, CALYX_WRITE } calyx_access;

CALYX_API calyx_status calyx_map(const char *path, calyx_access access,
                                 const calyx_opening *how, calyx_filter **out,
                                 calyx_error *why);
CALYX_API calyx_status calyx_sync(calyx_filter *f, calyx_error *why);

/* Is all well, as far as was seen? CALYX_DAMAGED once a range was used that
 * does not match its checksum, or the file was cut short: questions about keys
 * there were answered with yes. Costs nothing; reads nothing. */
CALYX_API calyx_status calyx_health(const calyx_filter *f, calyx_error *why);

/* Check every byte of a viewed or mapped filter against its checksum, whatever
 * was checked before. CALYX_UNSEALED if all is well, but some ranges are being
 * changed, or were when a writer died, and have none. Filters in memory of
 * their own were checked when they were read. */
CALYX_API calyx_status calyx_verify(const calyx_filter *f, calyx_error *why);

/* ---- A filter that is replaced while it is asked ------------------------ */

/*
 * Readers take the current filter, ask it as long as they like, and give it
 * back; they never wait. Meanwhile another thread swaps in a new one, in one
 * step. The old one is freed when the last who took it gives it back.
 *
 *     const calyx_filter *f = calyx_live_take(live);
 *     found = calyx_has(f, key, size);
 *     calyx_live_give(live, f);
 *
 * Taking costs one atomic addition; take once for many questions.
 */
typedef struct calyx_live calyx_live;

/* The filter goes over to `live`, and is freed by it. */
CALYX_API calyx_status calyx_live_new(calyx_filter *first, calyx_live **out,
                                      calyx_error *why);
CALYX_API const calyx_filter *calyx_live_take(calyx_live *live);
CALYX_API void calyx_live_give(calyx_live *live, const calyx_filter *f);
CALYX_API calyx_status calyx_live_swap(calyx_live *live, calyx_filter *next,
                                       calyx_error *why);

/* Serve a file, mapped for reading. calyx_live_refresh looks whether another
 * stands under its name now, and if so swaps it in; `*changed` tells. A new
 * file that cannot be used is an error, and the old one stays. Call it from a
 * timer, or before a batch: unless the file changed, it costs one stat(2). */
CALYX_API calyx_status calyx_live_open(const char *path,
                                       const calyx_opening *how,
                                       calyx_live **out, calyx_error *why);
CALYX_API calyx_status calyx_live_refresh(calyx_live *live, bool *changed,
                                          calyx_error *why);

/* No reader may hold a filter of it any more. */
CALYX_API void calyx_live_free(calyx_live *live);

/* ---- What is built in --------------------------------------------------- */

/* Names, the default first; each list ends with NULL. Kernels are those that
 * this processor can run; the environment variable CALYX_KERNEL sets another
 * default. */
CALYX_API const char *const *calyx_kinds(void);
CALYX_API const char *const *calyx_hashes(void);
CALYX_API const char *const *calyx_kernels(void);

/* ---- Advanced: a file read in pieces ------------------------------------- */

/*
 * For readers that fetch a few ranges of a file instead of all of it: a web
 * page, or a client of HTTP ranges. The library says where the sections of the
 * file are, whether they are sound, and which bytes a lookup needs; the caller
 * reads them, and knows neither the format nor the kind.
 *
 * The layout comes from the first bytes of the file, as many as it has up to
 * CALYX_HEADER_MOST. No secret key is needed. Free it once.
 */
enum {
    CALYX_HEADER_MOST = 12288, /* no header is longer                    */
    CALYX_LINE_BYTES = 64,     /* a lookup reads bodies in lines of this */
    CALYX_LINES_MOST = 64      /* lines that a lookup reads in one part  */
};

typedef struct calyx_layout calyx_layout;

CALYX_API calyx_status calyx_layout_new(const void *bytes, size_t size,
                                        calyx_layout **out, calyx_error *why);
CALYX_API void calyx_layout_free(calyx_layout *layout);

/* What the file says about its filter. `set` has the number of bits set in each
 * part, the oldest first; NULL leaves fpr_now, fill and distinct at 0. The
 * number of items is exact once the slots were checked. */
CALYX_API void calyx_layout_describe(const calyx_layout *layout,
                                     const uint64_t *set, calyx_info *info);
CALYX_API bool calyx_layout_part(const calyx_layout *layout, uint32_t number,
                                 calyx_part *part);
CALYX_API const char *calyx_layout_comment(const calyx_layout *layout);

/* The sections of the file, in its order; the last is CALYX_SECTION_END, of no
 * bytes. The bytes between two sections are zeros. */
typedef enum calyx_section_type {
    CALYX_SECTION_HEADER,
    CALYX_SECTION_BODY, /* of a part; its bits come first           */
    CALYX_SECTION_TABLES,
    CALYX_SECTION_SLOT, /* one of two: the state of the file        */
    CALYX_SECTION_END
} calyx_section_type;

typedef struct calyx_section {
    calyx_section_type type;
    uint32_t number; /* among those of its type                     */
    uint64_t at, bytes;
    uint64_t step; /* bytes to give to one check                    */
} calyx_section;

/* False if there are not so many. */
CALYX_API bool calyx_layout_section(const calyx_layout *layout, uint32_t index,
                                    calyx_section *section);

/* Check the `step` bytes, or what is left, at `from` of a section. Check both
 * slots first, then the tables, then bodies in any order: each needs what comes
 * before it. The tables must outlive the layout.
 *
 * Of a slot, CALYX_OK says that it counts, unless the second one does, too. Of
 * others, CALYX_UNSEALED says that they have no checksum to compare with. */
CALYX_API calyx_status calyx_layout_check(calyx_layout *layout, uint32_t index,
                                          uint64_t from, const void *bytes,
                                          size_t size, calyx_error *why);

/* A key is in the file if it is in any part. calyx_layout_lines sets the places
 * in the file of the lines that a lookup reads, and returns their number, or 0
 * if the kind does not know: then read the whole file. calyx_layout_has answers
 * from their bytes, one line after the other. CALYX_WRONG_KEY if the hash needs
 * a secret key, which a layout does not have. */
CALYX_API calyx_status calyx_layout_hash(const calyx_layout *layout,
                                         const void *key, size_t size,
                                         uint64_t *hash);
CALYX_API size_t calyx_layout_lines(const calyx_layout *layout, uint32_t part,
                                    uint64_t hash,
                                    uint64_t at[CALYX_LINES_MOST]);
CALYX_API bool calyx_layout_has(const calyx_layout *layout, uint32_t part,
                                uint64_t hash, const void *lines);

#ifdef __cplusplus
}
#endif
#endif /* CALYX_H */
