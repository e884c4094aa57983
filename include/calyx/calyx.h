/*
 * calyx: Bloom filters, approximate sets in a few bits per key.
 *
 * A filter stores keys. A lookup of a key that was added always returns yes. A
 * lookup of any other key returns no, except with a small probability that you
 * choose: the false-positive rate, "fpr".
 *
 *     calyx_filter *f;
 *     calyx_options want = {.capacity = 1000000, .fpr = 0.01};
 *     if (calyx_new(&want, &f, NULL) != CALYX_OK) return 1;
 *     calyx_add(f, "rose", 4, NULL);
 *     calyx_has(f, "rose", 4);      // true, always
 *     calyx_has(f, "tulip", 5);     // false, about 99 times in 100
 *     calyx_free(f);
 *
 * Rules of this header:
 *
 *   Errors     Calls that can fail return a calyx_status; CALYX_OK is zero. A
 *              failed call changes nothing. Results are returned by pointers.
 *   Detail     Calls with more than one cause of failure take a `calyx_error
 *              *why` last. NULL: no details.
 *   Ownership  Free every filter that a call returned with calyx_free, once.
 *   Threads    Any number of threads may make calls that take a `const
 *              calyx_filter *`. A thread that changes a filter must be the only
 *              user, unless the filter is `concurrent`: then any number may
 *              also add, beside all const calls; const calls see every key
 *              whose addition has returned. In a concurrent table, bucket or
 *              distinct, one thread writes at a time, the others wait for it,
 *              and lookups do not, also while the table grows; from a bucket
 *              filter they may also remove. Different filters share no data.
 *   Globals    Three, none of which changes an answer: the abilities of the
 *              processor and the kernels of small filters, found out once, and
 *              the number of growing tables whose segments lie in one row of
 *              memory. Beyond 2048 such tables the next ones are slower.
 *   Fork       A child may query its parent's filters, and free its copies. A
 *              file mapped with CALYX_WRITE stays its parent's: the child
 *              cannot add to it (CALYX_READ_ONLY), and does not seal it.
 *              Nor may it change a concurrent filter that other threads were
 *              adding to: they may have held its locks.
 *   Signals    No call may be made from a signal handler, except lookups of
 *              single keys in filters in memory.
 *   Zero       A zero in an options struct means "the default". Initialise all
 *              of it: `= {0}`, or with designated initialisers as above.
 *   Keys       are bytes, of any number and value; a key of 0 bytes is a key.
 *              The `key` of options is something else: the secret of a hash.
 *   Names      x takes the bytes of a key, x_u64 a number, x_hash a hash;
 *              x_many, x_many_u64 and x_hashes take arrays. Not every call has
 *              each form.
 *   Sizes      of buffers that the caller has are size_t; of filters and
 *              files, which may be larger than its memory, uint64_t.
 *   Stability  "Stable" is what most programs need; "Advanced" is for those
 *              that manage memory, bits or files themselves. "Compatibility"
 *              says what each promises.
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

/* ==== Stable ============================================================== */

/* ---- Make, add, has, free ------------------------------------------------ */

typedef enum calyx_status {
    CALYX_OK = 0,
    CALYX_BAD_ARGUMENT = -1, /* an option or argument is out of range        */
    CALYX_NO_MEMORY = -2,    /* the allocator returned NULL                  */
    CALYX_FULL = -3,         /* no room: strict, grown to its limit, mapped  */
    CALYX_CANNOT = -4,       /* not with its kind, or not once it has grown  */
    CALYX_MISMATCH = -5,     /* the two filters differ in kind, hash or size */
    CALYX_READ_ONLY = -6,    /* read-only, or not possible in place          */
    CALYX_DAMAGED = -7,      /* bytes that are not, or no longer, a filter   */
    CALYX_TOO_NEW = -8,      /* made with features this library lacks        */
    CALYX_UNSEALED = -9,     /* changed in place: some ranges lack checksums */
    CALYX_WRONG_KEY = -10,   /* another secret key, or another hash          */
    CALYX_IO = -11           /* the operating system failed; see os_code     */
} calyx_status;

/* Why a call failed, in words. Filled only on failure. */
typedef struct calyx_error {
    calyx_status status;
    int os_code;    /* errno when status is CALYX_IO, else 0 */
    char text[240]; /* one line, always terminated           */
} calyx_error;

typedef struct calyx_filter calyx_filter;
typedef struct calyx_memory calyx_memory; /* see "Advanced" */

/* What to make. Of capacity, fpr and bits, two determine the third; `fpr` has a
 * default. A filter of fixed size needs capacity or bits. */
typedef struct calyx_options {
    const char *kind;  /* one of calyx_kinds(); default the first, "line";
                          "distinct" with `growth` and without capacity,
                          first_fpr and concurrent                          */
    uint64_t capacity; /* keys to hold at `fpr`, at most 2^40; default 1000
                          with `growth`                                     */
    double fpr;        /* 0 < fpr < 1; default 0.01                         */
    uint64_t bits;     /* size without counters, at most 2^44; default as
                          needed. "flat" has exactly these bits, other kinds
                          as many whole blocks as fit. Static kinds: of the
                          whole body. See calyx_bits_within                 */
    double growth;     /* 0: fixed size. 1.25 to 16: a full filter allocates
                          another part, and then holds about `growth` times
                          the keys, still at `fpr` in all. Kinds with
                          CALYX_CAN_GROW_IN_PLACE take a quarter more at a
                          time, whatever its value; for fewer than 128 keys
                          they begin with one bucket, and double. They keep
                          `fpr` up to grows_to keys (in calyx_info), at least
                          2^19 times their first capacity. Then the rate
                          rises. With 96 parts, at 16 times grows_to, they
                          are full                                          */
    double first_fpr;  /* rate of the first part of a filter with `growth`,
                          less than `fpr`; later parts share the rest.
                          Default 70 % of `fpr`, less for few keys          */
    uint32_t probes;   /* bits per key; default the best number             */
    bool strict;       /* refuse new keys at capacity, or with many threads up
                          to 256 keys per thread before it; default: the rate
                          rises, see calyx_describe                         */
    bool concurrent;   /* many threads may add at once. They may have to wait
                          for each other, for microseconds; lookups do not */
    const char *hash; /* one of calyx_hashes(); default the hash of the kind  */
    uint64_t seed;    /* of the hash; filters to be merged must share it.
                         Default 0, and with `growth` random: see `seeded`.
                         Anyone who knows the seed can choose keys that
                         pass or that raise the rate: see calyx_random     */
    const uint8_t *key; /* 16 secret bytes, for hashes that take a key       */
    const char *kernel; /* one of calyx_kernels(); default the best          */
    const calyx_memory *memory; /* default malloc, and mmap for large filters */
    bool seeded;          /* Use `seed` even if it is 0. Otherwise calyx_new
                             replaces seed 0 of a filter with `growth` by a
                             random one, so that nobody can choose keys
                             against the filter. Filters of fixed size and
                             builders take seed 0                            */
    uint64_t excluded;    /* of exact filters: keys of the universe that the
                             filter must not have, for plans                 */
    bool exact;           /* static kinds: make a filter of a builder that is
                             never wrong for the keys that the builder was
                             given, included or excluded: the universe. `fpr`
                             is for other keys; default as the smallest filter
                             has it, which calyx_plan computes               */
    uint64_t reserved[5]; /* 0; see "Compatibility" below                    */
} calyx_options;

/* Make an empty filter. */
CALYX_API calyx_status calyx_new(const calyx_options *want, calyx_filter **out,
                                 calyx_error *why);

/* Add a key. `*fresh`, unless NULL, becomes true if the key was not in the
 * filter: true is certain, false may be a false positive. If two threads add
 * one key at the same time, both may get true. */
CALYX_API calyx_status calyx_add(calyx_filter *f, const void *key, size_t size,
                                 bool *fresh);

/* Was this key added? "false" is certain. */
CALYX_API bool calyx_has(const calyx_filter *f, const void *key, size_t size);

/* Free a filter. NULL is allowed. */
CALYX_API void calyx_free(calyx_filter *f);

/* The same for a number; equivalent to its 8 bytes in little-endian order. */
CALYX_API calyx_status calyx_add_u64(calyx_filter *f, uint64_t number,
                                     bool *fresh);
CALYX_API bool calyx_has_u64(const calyx_filter *f, uint64_t number);

/*
 * Remove a key that was added; a key added n times is removed by n calls.
 * `*found`, unless NULL, becomes true if the key was there. An absent key
 * changes nothing. A key that was added 15 times, or whose counters have all
 * reached 15, is found, and stays. A bucket filter also keeps a key for good
 * once doublings have left 2 or fewer of its bits, or if its bucket was full of
 * copies. Only kinds with CALYX_CAN_REMOVE.
 *
 * Only remove keys that were added: removing a false positive causes false
 * negatives. An absent key is one at the rate of the filter, info.fpr_now: of
 * 1000 removals of keys that were never added, a filter at 1 % finds 10, and
 * loses as many other keys.
 */
CALYX_API calyx_status calyx_remove(calyx_filter *f, const void *key,
                                    size_t size, bool *found);
CALYX_API calyx_status calyx_remove_u64(calyx_filter *f, uint64_t number,
                                        bool *found);

/* Upper bound of the number of times that a key was added; 0 is certain. Kinds
 * with CALYX_CAN_COUNT count to 15, which means "15 or more"; others to 1. */
CALYX_API uint32_t calyx_count(const calyx_filter *f, const void *key,
                               size_t size);
CALYX_API uint32_t calyx_count_u64(const calyx_filter *f, uint64_t number);

/* A short phrase for a status: "out of memory". Never NULL. */
CALYX_API const char *calyx_status_text(calyx_status status);

/*
 * Compatibility: a program runs with any later library of the same major
 * version (before 1.0, of the same minor version), without being compiled
 * again. New options take `reserved` words, for which 0 is the default; the
 * library refuses words that it does not know (CALYX_BAD_ARGUMENT). Structs
 * that the library fills have `reserved` words too, and so never become larger.
 * Structs without them never change.
 *
 *   Stable     From 1.0 on, a major version only adds to it: no call, field or
 *              constant changes its meaning, is deprecated or removed.
 *   Advanced   Closer to how filters are stored. A minor version may deprecate
 *              calls, which the next major version may remove.
 *
 * Before 1.0 a minor version may change both. CHANGELOG.md lists every change.
 */

/* ---- Many keys ----------------------------------------------------------- */

typedef struct calyx_key {
    const void *data;
    size_t size;
} calyx_key;

/*
 * As calyx_add and calyx_has on each key in turn, with the memory accesses
 * overlapped: several times faster once a filter is larger than the cache.
 * `fresh` and `found` are arrays of n, or NULL.
 *
 * Adding stops at the first key that cannot be added and returns its status;
 * `*done`, unless NULL, is the number of keys before it, which stay added.
 * Lookups return the number of keys found. A filter that has grown may be
 * queried in another order of the keys; only threads that add at the same time
 * can observe that.
 *
 * Stack: up to 40 KiB; lookups in a filter that has grown, and all calls for
 * bucket and distinct filters, up to 60 KiB.
 */
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

/* As calyx_remove on each key in turn. `*removed`, unless NULL, is the number
 * of keys that were found and did not stay. */
CALYX_API calyx_status calyx_remove_many(calyx_filter *f, const calyx_key *keys,
                                         size_t n, bool *found,
                                         size_t *removed);
CALYX_API calyx_status calyx_remove_many_u64(calyx_filter *f,
                                             const uint64_t *numbers, size_t n,
                                             bool *found, size_t *removed);

/* ---- Hashes -------------------------------------------------------------- */

/* The hash of a key in this filter. Filters with the same hash and the same
 * seed or key agree on it, so one hash serves lookups in many filters. */
CALYX_API uint64_t calyx_hash(const calyx_filter *f, const void *key,
                              size_t size);
CALYX_API uint64_t calyx_hash_u64(const calyx_filter *f, uint64_t number);
CALYX_API void calyx_hash_many(const calyx_filter *f, const calyx_key *keys,
                               size_t n, uint64_t *hashes);

/* Do these filters agree on the hash of every key? Their kinds and sizes may
 * differ. */
CALYX_API bool calyx_same_hash(const calyx_filter *a, const calyx_filter *b);

/* As the calls for one key, without the hashing. */
CALYX_API calyx_status calyx_add_hash(calyx_filter *f, uint64_t hash,
                                      bool *fresh);
CALYX_API bool calyx_has_hash(const calyx_filter *f, uint64_t hash);
CALYX_API calyx_status calyx_remove_hash(calyx_filter *f, uint64_t hash,
                                         bool *found);
CALYX_API uint32_t calyx_count_hash(const calyx_filter *f, uint64_t hash);

/* As the calls for many keys, without the hashing. Hashes must be well mixed in
 * all 64 bits; small integers are not, and make every lookup return true. */
CALYX_API calyx_status calyx_add_hashes(calyx_filter *f, const uint64_t *hashes,
                                        size_t n, bool *fresh, size_t *done);
CALYX_API size_t calyx_has_hashes(const calyx_filter *f, const uint64_t *hashes,
                                  size_t n, bool *found);

/*
 * Fill a buffer with random bytes of the operating system, for a seed or a key.
 * Where keys come from people who gain from false positives:
 *
 *     uint8_t key[16];
 *     if (calyx_random(key, sizeof key, &why) != CALYX_OK) ...
 *     calyx_options want = {.hash = "siphash", .key = key, ...};
 *
 * Files store the seed, but no key: keep the key to open them again. With
 * "xxh3" and "xxh64" a random seed only keeps those out who see neither the
 * seed nor many answers; SECURITY.md says more.
 */
CALYX_API calyx_status calyx_random(void *buffer, size_t size,
                                    calyx_error *why);

/* ---- Files --------------------------------------------------------------- */

/*
 * A library that was built with CALYX_NO_FILES returns CALYX_CANNOT from calls
 * that take a path. One without a kind (CALYX_NO_RIBBON) returns CALYX_CANNOT
 * for options that name it, and CALYX_TOO_NEW for its files.
 *
 * One format for files, mappings, streams and buffers: little-endian,
 * versioned, checksummed, the same on every machine; doc/FORMAT.md specifies
 * it. Input is never trusted: the calls below return a valid filter or an
 * error.
 */

/*
 * When a filter that is used in place (calyx_map, calyx_view) is compared with
 * its checksums; the other calls always compare everything.
 *
 * Lazy: each range of 64 KiB is compared once, before the first lookup in it.
 * If a range is damaged, lookups there return true, keys cannot be added there
 * (CALYX_DAMAGED), and calyx_health returns CALYX_DAMAGED; other ranges are not
 * affected. Calls that read the whole filter (copy, merge, compare, save, ...)
 * compare all of it first, and refuse.
 */
typedef enum calyx_verification {
    CALYX_VERIFY_LAZY,  /* each range before its first use               */
    CALYX_VERIFY_WHOLE, /* everything when it is opened                  */
    CALYX_VERIFY_NONE   /* only by calyx_verify                          */
} calyx_verification;

/* How to open a filter. NULL: all defaults. */
typedef struct calyx_open_options {
    const uint8_t *key;  /* the 16 secret bytes, which no file contains   */
    const char *kernel;  /* one of calyx_kernels(); default the best      */
    bool concurrent;     /* as in calyx_options. A small table that grows
                            cannot be so in place: CALYX_CANNOT. Read it  */
    uint64_t most_bytes; /* refuse larger filters; default no limit       */
    const calyx_memory *memory;
    calyx_verification verify;
    uint64_t reserved[8]; /* 0; see "Compatibility"                       */
} calyx_open_options;

/*
 * Write to a new file beside `path`, then rename it: a reader sees the old
 * filter or the new one, also after a crash. A failed call leaves the old file.
 * Only if the last step fails, syncing the folder, the new file is in place,
 * but may be the old one again after a crash.
 *
 * Permissions, group and owner of the old file are preserved as far as the
 * caller may set them; access is never wider than before. Where the system has
 * O_TMPFILE, a killed process leaves no temporary file.
 */
CALYX_API calyx_status calyx_save(const calyx_filter *f, const char *path,
                                  calyx_error *why);

/* Read a file into memory, and compare every byte with its checksum. Only
 * ranges of a file that was changed in place and not closed have none; then the
 * number of items is estimated from their bits, if it seems too low. */
CALYX_API calyx_status calyx_load(const char *path,
                                  const calyx_open_options *how,
                                  calyx_filter **out, calyx_error *why);

/*
 * Use a file in place. Opening takes no time at any size and 1 byte of memory
 * per 64 KiB; processes share the pages.
 *
 * CALYX_WRITE lets one process at a time add, if the kind cannot count. Changes
 * survive the process at once, and a crash of the machine from the next
 * calyx_sync on. The filter cannot grow. The work is proportional to the keys
 * added, not to the size of the file. calyx_close computes the checksums of
 * changed ranges ("seals" the file) and returns whether that succeeded;
 * calyx_free does the same silently. After a crash, the next writer continues;
 * the number of items is then estimated from the bits, if it seems too low.
 * Damaged ranges are never changed, and stay detectable.
 *
 * calyx_sync and calyx_close return CALYX_IO with os_code ESTALE if the file
 * was replaced or removed: then the keys added are lost.
 *
 * Replace mapped files by rename, as calyx_save does. If a mapped file is
 * truncated, the system may send SIGBUS; if it does not, lookups return true.
 */
typedef enum calyx_access { CALYX_READ, CALYX_WRITE } calyx_access;

CALYX_API calyx_status calyx_map(const char *path, calyx_access access,
                                 const calyx_open_options *how,
                                 calyx_filter **out, calyx_error *why);
CALYX_API calyx_status calyx_sync(calyx_filter *f, calyx_error *why);

/* As calyx_free, and returns whether the changes to a file mapped for writing
 * are safe: synced, sealed, and in the file of that name. The filter is freed
 * in any case. Other filters return CALYX_OK. */
CALYX_API calyx_status calyx_close(calyx_filter *f, calyx_error *why);

/* CALYX_DAMAGED if a damaged range was used, or the file was truncated; else
 * CALYX_OK. Reads nothing. */
CALYX_API calyx_status calyx_health(const calyx_filter *f, calyx_error *why);

/* Compare every byte of a filter in place with its checksum, again.
 * CALYX_UNSEALED if all is well, but ranges without a checksum are being
 * changed, or were when a writer died. Filters in memory return CALYX_OK. */
CALYX_API calyx_status calyx_verify(const calyx_filter *f, calyx_error *why);

/* The same bytes in memory. The buffer must have exactly calyx_encoded_size
 * bytes. */
CALYX_API uint64_t calyx_encoded_size(const calyx_filter *f);
CALYX_API calyx_status calyx_encode(const calyx_filter *f, void *buffer,
                                    size_t size, calyx_error *why);
CALYX_API calyx_status calyx_decode(const void *bytes, size_t size,
                                    const calyx_open_options *how,
                                    calyx_filter **out, calyx_error *why);

/* As calyx_decode, in place: no copy, read-only. `bytes` must outlive the
 * filter, and its address must be a multiple of 64. */
CALYX_API calyx_status calyx_view(const void *bytes, size_t size,
                                  const calyx_open_options *how,
                                  calyx_filter **out, calyx_error *why);

/* The same bytes as a stream, also into a file that the caller opens, names and
 * syncs: calyx_load and calyx_map take it. (calyx_save aligns the sections of
 * its files to pages, which is safer if they are changed in place.) `put` gets
 * them in order, at most 1 MiB at a time; `get` fills the buffer with the next
 * `size` bytes. Both return false to stop; then the call returns CALYX_IO.
 * While `put` runs, the filter can be queried; a concurrent bucket or distinct
 * filter returns CALYX_CANNOT if it adds or removes. */
typedef bool calyx_put_function(void *context, const void *bytes, size_t size);
typedef bool calyx_get_function(void *context, void *buffer, size_t size);

CALYX_API calyx_status calyx_write(const calyx_filter *f,
                                   calyx_put_function *put, void *context,
                                   calyx_error *why);
CALYX_API calyx_status calyx_read(calyx_get_function *get, void *context,
                                  const calyx_open_options *how,
                                  calyx_filter **out, calyx_error *why);

/* A note of at most 1000 bytes, stored with the filter; "" for none. */
CALYX_API calyx_status calyx_set_comment(calyx_filter *f, const char *text);
CALYX_API const char *calyx_comment(const calyx_filter *f);

/* Named texts for programs, stored with the filter. A name has 1 to 64 bytes;
 * all names and values, and 6 bytes per pair, have at most 4096. A value of
 * NULL removes the pair. calyx_property returns NULL if there is none of this
 * name; its result is valid until the next change. Copies have the same texts.
 */
CALYX_API calyx_status calyx_set_property(calyx_filter *f, const char *name,
                                          const char *value, calyx_error *why);
CALYX_API const char *calyx_property(const calyx_filter *f, const char *name);

/* ---- Allow list: known false positives ----------------------------------- */

/*
 * A short exact list of keys that are known not to be in the filter. Lookups of
 * these return no, whatever their bits say; the answers for all other keys stay
 * as they are. It is part of the filter: files and copies have it.
 *
 *     calyx_allow(f, "tulip", 5, NULL, NULL);   // somebody complained
 *     calyx_has(f, "tulip", 5);                 // false
 *     calyx_add(f, "tulip", 5, NULL);           // takes it off the list
 *     calyx_has(f, "tulip", 5);                 // true
 *
 * Only allow keys that were not added: the filter cannot know, and a key that
 * was added and is allowed is a false negative.
 *
 *   Adding     takes a key off the list, in every call that adds; so an added
 *              key is never denied. `fresh` is true then.
 *   Removing   a key on the list finds and changes nothing. Its count is 0.
 *   Hashes     Calls that take hashes look up bits alone, as do calyx_bits_has
 *              and raw bits: the list has keys. Adding a hash takes all keys of
 *              that hash off the list.
 *   Merging    keeps those keys of both lists that neither filter has; into a
 *              file mapped for writing, none. Intersecting keeps all.
 *   Emptying   calyx_clear and calyx_new_like keep the list.
 *   Threads    may look up and, if the filter is concurrent, add, beside each
 *              other. Changing the list itself wants the filter alone; to
 *              change it under readers, swap in a copy (calyx_live).
 *   Files      A file with a list is not opened with CALYX_WRITE: the list
 *              could not change with it (CALYX_CANNOT). Filters in place refuse
 *              changes of it (CALYX_READ_ONLY). Versions before the list say
 *              that such a file is too new.
 *
 * A lookup that returns no costs nothing more, one that is found looks into a
 * hash table. The keys, and 4 bytes for each, have at most CALYX_ALLOW_MOST
 * bytes (CALYX_FULL).
 */
enum { CALYX_ALLOW_MOST = 262144 };

/* Put a key on the list. `*fresh`, unless NULL: it was not there before. */
CALYX_API calyx_status calyx_allow(calyx_filter *f, const void *key,
                                   size_t size, bool *fresh, calyx_error *why);

/* Take it off the list. `*found`, unless NULL: it was there. */
CALYX_API calyx_status calyx_disallow(calyx_filter *f, const void *key,
                                      size_t size, bool *found);

CALYX_API bool calyx_is_allowed(const calyx_filter *f, const void *key,
                                size_t size);

/* The keys on the list, one for each call, in no order; begin with 0 in `*at`.
 * False: there are no more. A key is valid until the list changes. */
CALYX_API bool calyx_next_allowed(const calyx_filter *f, uint64_t *at,
                                  calyx_key *key);

/* ---- Whole filters ------------------------------------------------------- */

/* What a filter is, or would be. */
typedef struct calyx_info {
    const char *kind;   /* "line"                                           */
    const char *kernel; /* "avx2": how its bits are set and tested          */
    const char *hash;   /* "xxh3"                                           */
    uint64_t seed;
    uint64_t capacity; /* keys it holds before the rate exceeds `fpr`      */
    uint64_t items;    /* fresh keys added; kinds that count: all adds less
                          all removes                                      */
    uint64_t bits;     /* places for bits, in all parts; in a plan of a static
                          kind also room for chance: give them, get the plan */
    uint64_t bytes;    /* size of all bodies, counters included            */
    uint32_t parts;    /* 1, and one more for each time it grew; static kinds:
                          layers                                           */
    uint32_t probes;   /* bits per key, in the newest part; static kinds: in
                          the first, at least                              */
    double growth;     /* 0 if fixed                                       */
    double fpr;        /* the rate at `capacity` keys                      */
    double fpr_now;    /* the rate to expect at the present fill           */
    double fill;       /* share of the bits that are set                   */
    double distinct;   /* number of keys, estimated from the fill          */
    bool strict, concurrent;
    bool read_only;       /* a view, mapped for reading, or static         */
    bool huge_pages;      /* huge pages were requested                      */
    uint32_t can;         /* abilities of its kind: CALYX_CAN_ADD | ...    */
    uint64_t allowed;     /* keys on its allow list                        */
    uint64_t saturated;   /* buckets of a table that answer "yes" for all
                             keys: chosen keys, or many copies of keys,
                             crowded them                                  */
    uint64_t grows_to;    /* keys up to which a growing table keeps `fpr`;
                             0: fixed, or no such limit                    */
    uint64_t memory;      /* bytes of memory that the filter holds, with its
                             structs, without bytes that it uses in place;
                             0 from calyx_plan and calyx_layout_describe   */
    uint64_t row_bytes;   /* size of its bits without counters, in bytes: see
                             "Steps"; 0 from calyx_plan                    */
    uint64_t moves;       /* a number that changes when growth moves keys
                             within the row of calyx_get_bits: sections from
                             before and after do not fit. Filters with the
                             same head have the same number. 0: nothing
                             moves, as in all kinds without
                             CALYX_CAN_GROW_IN_PLACE                       */
    uint64_t universe;    /* exact filters: the number of keys, included or
                             excluded, for which no answer is wrong; `fpr` is
                             the rate for other keys. Else 0               */
    uint64_t reserved[1]; /* 0                                             */
} calyx_info;

/* Reads all bits, for the fill; of a filter in place, compares all checksums
 * first (calyx_health returns the result). */
CALYX_API void calyx_describe(const calyx_filter *f, calyx_info *info);

/* The same from the first MiB of the bits, without checksums: takes 0.1 ms at
 * any size, and fpr_now differs by less than 1 % once the filter is full. Of a
 * table, a static filter and one that has grown: calyx_describe. */
CALYX_API void calyx_estimate(const calyx_filter *f, calyx_info *info);

/* The same without reading: fpr_now, fill, distinct and saturated are 0. */
CALYX_API void calyx_info_of(const calyx_filter *f, calyx_info *info);

/* One part of a filter that grew; number 0 is the oldest. False if there is no
 * such part. */
typedef struct calyx_part {
    uint64_t capacity, items, bits, bytes;
    uint32_t probes;
    double fpr;           /* its own, at capacity */
    uint64_t reserved[4]; /* 0 */
} calyx_part;

CALYX_API bool calyx_part_of(const calyx_filter *f, uint32_t number,
                             calyx_part *part);

/* Make a separate filter with the same contents and the same memory hooks. */
CALYX_API calyx_status calyx_copy(const calyx_filter *f, calyx_filter **out,
                                  calyx_error *why);

/* Make an empty filter as this one was when it was new, with its texts. */
CALYX_API calyx_status calyx_new_like(const calyx_filter *f, calyx_filter **out,
                                      calyx_error *why);

/* Remove all keys. The filter has its first size again. */
CALYX_API calyx_status calyx_clear(calyx_filter *f);

/* Make `f` the union of both filters (merge), or what both contain (intersect).
 * They must have the same kind, hash, seed or key, and shape of every part,
 * else CALYX_MISMATCH; of a table (CALYX_CAN_GROW_IN_PLACE), of the first part.
 * A union may have more keys than its capacity, at a higher rate: see fpr_now.
 * So filters that have grown can neither be merged nor intersected
 * (CALYX_CANNOT). Two exceptions: tables can be merged whatever they have grown
 * to; and a chain without counters can be merged into an empty filter of
 * calyx_new_alike, which copies it. A table without growth may become full
 * (CALYX_FULL): then it has some of the other's keys. */
CALYX_API calyx_status calyx_merge(calyx_filter *f, const calyx_filter *other,
                                   calyx_error *why);
CALYX_API calyx_status calyx_intersect(calyx_filter *f,
                                       const calyx_filter *other,
                                       calyx_error *why);

/* What calyx_merge would return, without merging. */
CALYX_API calyx_status calyx_fits(const calyx_filter *f,
                                  const calyx_filter *other, calyx_error *why);

/* How two sets overlap, estimated from the bits of filters that could be merged
 * and have not grown. */
typedef struct calyx_overlap {
    double either;        /* keys in the union                  */
    double both;          /* keys in the intersection           */
    double jaccard;       /* both / either; 1 if both are empty */
    uint64_t reserved[4]; /* 0                                  */
} calyx_overlap;

CALYX_API calyx_status calyx_compare(const calyx_filter *a,
                                     const calyx_filter *b,
                                     calyx_overlap *overlap, calyx_error *why);

/* Make a filter with the same keys, `factor` times smaller, at a higher rate.
 * The factor must divide the number of blocks of each part; in large filters
 * every power of two up to 1/4096 of the blocks does. A counting filter that
 * has grown cannot be folded. */
CALYX_API calyx_status calyx_fold(const calyx_filter *f, uint64_t factor,
                                  calyx_filter **out, calyx_error *why);

/* The same with the size of another filter, to merge the two: of the same kind,
 * hash, seed or key and number of probes, not larger, and neither has grown.
 * Unless the size is a divisor, the blocks at borders go to both sides, and the
 * rate is higher than the rate of a filter made so: then one that counts cannot
 * be folded. `fpr_now` does not know of the borders: the rate is up to 3 times
 * as high as it says, most at low rates. */
CALYX_API calyx_status calyx_fold_like(const calyx_filter *f,
                                       const calyx_filter *like,
                                       calyx_filter **out, calyx_error *why);

/* Make a filter of kind "line" with the answers of this counting filter, in 20
 * % of the memory. */
CALYX_API calyx_status calyx_freeze(const calyx_filter *f, calyx_filter **out,
                                    calyx_error *why);

/* ---- Planning ------------------------------------------------------------ */

/* What calyx_new would make of these options: the rate from memory, the memory
 * from a rate, the capacity from both. */
CALYX_API calyx_status calyx_plan(const calyx_options *want, calyx_info *info,
                                  calyx_error *why);

/* The largest filter of a kind (NULL: the default) that takes at most `bytes`,
 * counters included: its size for calyx_options.bits. A filter takes its bits
 * rounded up to 64 bytes, and counters on top. */
CALYX_API calyx_status calyx_bits_within(const char *kind, uint64_t bytes,
                                         uint64_t *bits, calyx_error *why);

/* The rate to expect of such a filter, not grown, with `items` keys. */
CALYX_API calyx_status calyx_rate_at(const calyx_options *want, uint64_t items,
                                     double *fpr, calyx_error *why);

/* Is a filter in front of a slow store worth it? Times in any one unit. */
typedef struct calyx_workload {
    double filter_time;   /* of a lookup in the filter, or in an exact table  */
    double store_time;    /* of a lookup in the store                         */
    double present;       /* share of lookups for keys in the store, 0 to 1   */
    double key_bytes;     /* of one key in an exact table; default 8          */
    uint64_t reserved[4]; /* 0; see "Compatibility"                           */
} calyx_workload;

typedef struct calyx_cost {
    double time;    /* mean time of a lookup */
    uint64_t bytes; /* memory                */
} calyx_cost;

typedef struct calyx_costs {
    calyx_cost filter, table, nothing; /* the table is half full */
    uint64_t reserved[4];              /* 0                      */
} calyx_costs;

CALYX_API calyx_status calyx_weigh(const calyx_options *want,
                                   const calyx_workload *load,
                                   calyx_costs *costs, calyx_error *why);

/* ---- Builder: all keys first, then the filter ---------------------------- */

/*
 * A builder collects keys whose number need not be known, in any order, and
 * then makes a filter for as many as are distinct. Kinds with CALYX_CAN_STATIC
 * are made by a builder only; all others can be.
 *
 *     calyx_builder *b;
 *     calyx_builder_options want = {.filter = {.fpr = 0.01}};
 *     if (calyx_builder_new(&want, &b, NULL) != CALYX_OK) return 1;
 *     calyx_builder_add(b, "rose", 4, NULL);      // and so on
 *     calyx_builder_finish(b, &f, NULL);
 *     calyx_builder_free(b);
 *
 * It stores a hash of 8 bytes for each key: in memory, and beyond
 * `memory_bytes` in a temporary file without a name, which disappears with the
 * process. Duplicates vanish, except in kinds with counters (`counting`): a
 * table of kind `bucket` gets each key once, as each copy would take a slot.
 * The same keys make the same filter, whatever their order and the number of
 * threads.
 *
 * If the size of the filter is given and fixed, and its kind is bits alone
 * (`line`, `line2`, `split`, `flat`), keys are added as they come, which takes
 * no longer than in a filter: from 2^20 bits on, and up to `memory_bytes` of
 * them. Such a filter, of whatever size from 2^20 bits on, has the number of
 * distinct keys that its bits indicate: within 0.1 %, mostly.
 *
 * A builder is for one thread. To add from several, give each a builder of its
 * own with the same options, then merge these into one.
 */
typedef struct calyx_builder calyx_builder;

typedef struct calyx_builder_options {
    calyx_options filter;  /* what to make. `capacity`, if it is not given or
                              the kind is static, is the number of distinct
                              keys; static kinds take `bits` beside `fpr` as a
                              limit (CALYX_FULL). Threads use `memory` one at
                              a time                                          */
    uint64_t memory_bytes; /* that the builder may use, besides the filter;
                              default 160 MiB, at least 64 KiB                */
    const char *folder;    /* of temporary files; default $TMPDIR, or /tmp    */
    uint32_t threads;      /* that calyx_builder_finish uses, at most 64;
                              default 1                                       */
    bool file_backed;      /* bits of more than a quarter of memory_bytes are in
                              a temporary file, mapped, instead of in memory:
                              for a filter to be saved. Not with
                              `filter.memory`, nor with `parts`               */
    uint32_t part, parts;  /* build one part of a filter: number `part`, from 1
                              on, of `parts`; default the whole. See
                              calyx_join                                      */
    uint64_t reserved[7];  /* 0; see "Compatibility"                          */
} calyx_builder_options;

CALYX_API calyx_status calyx_builder_new(const calyx_builder_options *want,
                                         calyx_builder **out, calyx_error *why);

/* Add keys, numbers, or hashes as calyx_hash returns them for a filter of the
 * same options. Fails if memory or the disk is full; then some of the keys may
 * have been added. */
CALYX_API calyx_status calyx_builder_add(calyx_builder *b, const void *key,
                                         size_t size, calyx_error *why);
CALYX_API calyx_status calyx_builder_add_many(calyx_builder *b,
                                              const calyx_key *keys, size_t n,
                                              calyx_error *why);
CALYX_API calyx_status calyx_builder_add_many_u64(calyx_builder *b,
                                                  const uint64_t *numbers,
                                                  size_t n, calyx_error *why);
CALYX_API calyx_status calyx_builder_add_hashes(calyx_builder *b,
                                                const uint64_t *hashes,
                                                size_t n, calyx_error *why);

/* For a filter with `exact` (CALYX_CANNOT without): keys of the universe that
 * it must not have. Keys may be included and excluded in any order. If a key
 * was both, or the hashes of two keys agree, the builder cannot finish:
 * CALYX_MISMATCH, with the number of these keys. */
CALYX_API calyx_status calyx_builder_exclude(calyx_builder *b, const void *key,
                                             size_t size, calyx_error *why);
CALYX_API calyx_status calyx_builder_exclude_hashes(calyx_builder *b,
                                                    const uint64_t *hashes,
                                                    size_t n, calyx_error *why);

/* A filter with the answers of an exact filter, except that `changes`, another
 * exact filter of the same hash, has the keys whose answer is the opposite now.
 * Its universe is the one for which no answer is wrong. `items` is how many of
 * the keys are included now. The layers of `changes` follow the old ones, so a
 * file of a few changes is small as calyx diff makes it; each update costs a
 * lookup one more layer. CALYX_FULL after some 20 updates, CALYX_CANNOT if over
 * a third of the answers changed: then build another. */
CALYX_API calyx_status calyx_update(const calyx_filter *old,
                                    const calyx_filter *changes, uint64_t items,
                                    calyx_filter **out, calyx_error *why);

/* Move all keys of `other` to `b`. Both must have the same kind, hash, and seed
 * or key (CALYX_MISMATCH). `other` is empty then, and still to be freed. If it
 * fails, each key is in one of the two. */
CALYX_API calyx_status calyx_builder_merge(calyx_builder *b,
                                           calyx_builder *other,
                                           calyx_error *why);

/* How many keys of those added so far are distinct; not of a part. Estimated
 * from the bits where keys are added as they come. */
CALYX_API calyx_status calyx_builder_count(calyx_builder *b, uint64_t *distinct,
                                           calyx_error *why);

/* Make a filter of the keys added so far. The builder has them still: it can
 * take more, and finish again. */
CALYX_API calyx_status calyx_builder_finish(calyx_builder *b,
                                            calyx_filter **out,
                                            calyx_error *why);

/* The same into a file, as calyx_save, with bits as for `file_backed`. */
CALYX_API calyx_status calyx_builder_save(calyx_builder *b, const char *path,
                                          calyx_error *why);

/* What the builder makes gets the comment and the properties of this filter. */
CALYX_API calyx_status calyx_builder_copy_texts(calyx_builder *b,
                                                const calyx_filter *from,
                                                calyx_error *why);

/* NULL is allowed. */
CALYX_API void calyx_builder_free(calyx_builder *b);

/* ---- Files made of parts ------------------------------------------------- */

/*
 * In kinds with CALYX_CAN_PARTS a key has one place, chosen by the high bits of
 * its hash. So a range of the hashes is a range of the file: several machines
 * build one part each, with their share of the memory, and joining copies
 * bytes.
 *
 *     calyx_builder_options want = {.filter = {.capacity = n, .fpr = 0.01},
 *                                   .part = 3, .parts = 16};
 *     calyx_builder_new(&want, &b, &why);
 *     calyx_builder_add_hashes(b, hashes, n, &why); // the hashes of other
 * parts calyx_builder_save(b, "ids.3", &why);         // are skipped
 *     ...
 *     calyx_join(paths, 16, NULL, "ids.calyx", &why);
 *
 * `filter` describes the whole filter, the same for all parts: of fixed size,
 * not strict, and with `capacity`, the distinct keys of all parts. The filter
 * has the bytes that calyx_save writes for one to which all keys were added in
 * the same order (the number of items depends on the order, in a few keys). A
 * static filter has the items of one builder for all keys, if `capacity` is
 * their exact number; with another number it is as right, and larger or slower.
 *
 * A builder of a part can be saved only: calyx_builder_finish and
 * calyx_builder_merge return CALYX_CANNOT.
 */
enum { CALYX_PARTS_MOST = 65536 };

/* The hashes that a builder takes: all, or the hashes of its part. False if
 * there are none. */
CALYX_API bool calyx_builder_range(const calyx_builder *b, uint64_t *first,
                                   uint64_t *last);

/* Make the filter of n part files, in any order, and save it as calyx_save
 * does. All parts must be there, once, and of one filter (CALYX_MISMATCH); the
 * error names the file, or the number that is missing. Every byte is compared
 * with its checksum, and no key is read again: of static kinds, only the hashes
 * that the first layer bumped, for which `memory_bytes`, `folder` and `threads`
 * of `how` count (NULL: defaults). No secret key is needed. */
CALYX_API calyx_status calyx_join(const char *const *parts, size_t n,
                                  const calyx_builder_options *how,
                                  const char *path, calyx_error *why);

/* ---- Live: replace a filter while it is queried -------------------------- */

/*
 * Readers acquire the current filter, query it as long as they like, and
 * release it; they never wait. Another thread swaps in a new filter in one
 * step. The old one is freed when its last reader releases it.
 *
 *     const calyx_filter *f = calyx_live_acquire(live);
 *     found = calyx_has(f, key, size);
 *     calyx_live_release(live, f);
 *
 * Acquiring costs one atomic addition: acquire once for many lookups.
 *
 * Begin with the universal set if the first filter is not built yet: one block
 * of bits that are all set (calyx_from_bits, or a file of 'calyx build --all')
 * says yes to every key, so that nothing is turned away.
 */
typedef struct calyx_live calyx_live;

/* `live` owns the filter from now on. A swap fails with CALYX_FULL if 255 old
 * filters still have readers. */
CALYX_API calyx_status calyx_live_new(calyx_filter *first, calyx_live **out,
                                      calyx_error *why);
CALYX_API const calyx_filter *calyx_live_acquire(calyx_live *live);
CALYX_API void calyx_live_release(calyx_live *live, const calyx_filter *f);
CALYX_API calyx_status calyx_live_swap(calyx_live *live, calyx_filter *next,
                                       calyx_error *why);

/* Serve a file, mapped for reading. calyx_live_refresh swaps in the file that
 * has the name now, if it is another; `*changed` says so. If the new file
 * cannot be used, it returns an error and the old one stays. Call it from a
 * timer, or before a batch: unless the file changed, it costs one stat(2). A
 * relative path is one of the folder that was current when it was opened. If
 * two threads refresh, one does it and the other returns at once. */
CALYX_API calyx_status calyx_live_open(const char *path,
                                       const calyx_open_options *how,
                                       calyx_live **out, calyx_error *why);
CALYX_API calyx_status calyx_live_refresh(calyx_live *live, bool *changed,
                                          calyx_error *why);

/*
 * Add to the current filter, beside its readers: it must be concurrent
 * (CALYX_CANNOT). Any number of threads may; they take turns.
 *
 * A filter that is made anew from a list lacks the keys that were added while
 * the list was read. So begin before the list is read, and finish in place of
 * calyx_live_swap: `next` then has all keys whose addition by calyx_live_add
 * has returned, and all later ones.
 *
 * Let a key be in the list first, and add it then.
 *
 *     calyx_live_begin(live, 0, &token, NULL);
 *     next = filter_of(read_list());
 *     calyx_live_finish(live, token, next, NULL);
 *
 * Recorded keys, and 8 bytes for each, have at most `most_bytes`; 0: 64 MiB.
 * If there were more, finishing fails with CALYX_FULL. It fails with
 * CALYX_MISMATCH if another rebuild began since, and as calyx_add and
 * calyx_live_swap do. Then `next` is still the caller's, but may have some of
 * the keys; the rebuild stays open, for a larger filter. A rebuild that nobody
 * finishes ends when the next begins.
 */
CALYX_API calyx_status calyx_live_add(calyx_live *live, const void *key,
                                      size_t size, bool *fresh,
                                      calyx_error *why);
CALYX_API calyx_status calyx_live_begin(calyx_live *live, uint64_t most_bytes,
                                        uint64_t *token, calyx_error *why);
CALYX_API calyx_status calyx_live_finish(calyx_live *live, uint64_t token,
                                         calyx_filter *next, calyx_error *why);

/* All readers must have released their filters. */
CALYX_API void calyx_live_free(calyx_live *live);

/* ---- What is built in ---------------------------------------------------- */

#define CALYX_VERSION_MAJOR 0
#define CALYX_VERSION_MINOR 1
#define CALYX_VERSION_PATCH 0

/* In one number: 1002003 is 1.2.3. */
#define CALYX_VERSION                                             \
    (CALYX_VERSION_MAJOR * 1000000 + CALYX_VERSION_MINOR * 1000 + \
     CALYX_VERSION_PATCH)

/* The version of the library that runs, such as "0.1.0". The macros above are
 * of the header that the program was compiled with. */
CALYX_API const char *calyx_version(void);

/* Names, the default first; each list ends with NULL. Kernels are those that
 * this processor can run. The environment variable CALYX_KERNEL sets the
 * default, unless it names a kernel of other processors. */
CALYX_API const char *const *calyx_kinds(void);
CALYX_API const char *const *calyx_hashes(void);
CALYX_API const char *const *calyx_kernels(void);

/* What a kind can do. Test for an ability, not for the name of a kind: other
 * kinds may have it. */
typedef enum calyx_abilities {
    CALYX_CAN_ADD = 1 << 0,    /* calyx_add, its forms                       */
    CALYX_CAN_REMOVE = 1 << 1, /* calyx_remove, its forms                    */
    CALYX_CAN_COUNT = 1 << 2,  /* calyx_count beyond 1: each add counts    */
    CALYX_CAN_MERGE = 1 << 3,  /* calyx_merge                              */
    CALYX_CAN_INTERSECT = 1 << 4, /* calyx_intersect                          */
    CALYX_CAN_FOLD = 1 << 5,      /* calyx_fold                               */
    CALYX_CAN_GROW = 1 << 6,      /* options.growth                           */
    CALYX_CAN_SHARE = 1 << 7,     /* options.concurrent: many threads add     */
    CALYX_CAN_STATIC = 1 << 8,    /* built once, from all keys                */
    CALYX_CAN_RANGE = 1 << 9,     /* the high bits of a hash choose the place:
                                     hashes in order read the bits in order   */
    CALYX_CAN_PARTS = 1 << 10,    /* calyx_join: a key has one place, so that a
                                     range of the hashes is one of the bytes  */
    CALYX_CAN_GROW_IN_PLACE = 1 << 11 /* its parts are one table, and a lookup
                                     reads one of them, however often it grew */
} calyx_abilities;

/* A set of calyx_abilities; 0 if there is no kind of this name. calyx_info.can
 * has the abilities of a filter. */
CALYX_API uint32_t calyx_kind_can(const char *kind);

/* ==== Advanced ============================================================ */

/* Everything from here on, and <calyx/inline.h>: see "Compatibility". */

/* ---- Memory -------------------------------------------------------------- */

/* Where a filter allocates memory. `allocate` returns `size` bytes of zeros,
 * aligned to `alignment` (a power of two, at most 64), or NULL; `release` frees
 * a block of `allocate`, given its size. A concurrent filter that grows calls
 * them from any of its threads. The struct is copied; `context` must outlive
 * the filter. */
struct calyx_memory {
    void *(*allocate)(void *context, size_t size, size_t alignment);
    void (*release)(void *context, void *block, size_t size);
    void *context;
};

/* Let a defragmenting allocator move a filter. `move` gets each block with its
 * size, and returns its new address, which may be the old one; alignment as in
 * calyx_memory. Returns the new address of the filter. Nobody else may use the
 * filter meanwhile. */
typedef void *calyx_move_function(void *context, void *block, size_t size);
CALYX_API calyx_filter *calyx_relocate(calyx_filter *f,
                                       calyx_move_function *move,
                                       void *context);

/* calyx_clear, with `zero` instead of memset: it must leave `size` bytes of
 * zeros at `block`, and is called for one or two blocks. An allocator can
 * replace whole pages instead of writing them. */
typedef void calyx_zero_function(void *context, void *block, size_t size);
CALYX_API calyx_status calyx_clear_by(calyx_filter *f,
                                      calyx_zero_function *zero, void *context);

/* ---- Many small filters -------------------------------------------------- */

/*
 * A filter takes about 200 bytes besides its bits, more than the bits of a
 * filter for 100 keys. A program with many small filters stores a calyx_small
 * and the bits of each, and opens one to use it, which allocates nothing:
 *
 *     if (calyx_make_small(f, &small, &bits)) ...      // f is freed
 *     f = calyx_open_small(&small, bits, &memory, &room);
 *     status = calyx_add(f, key, size, &fresh);
 *     calyx_close_small(f, &small);
 *
 * An open filter can be used like any other, except for calyx_free, calyx_clear
 * and changes of its comment or allow list. It does not grow: adding to a full
 * one returns CALYX_FULL. Then make a filter that can, which takes over the
 * bits:
 *
 *     status = calyx_from_small(&small, bits, &memory, &f);
 *
 * `memory` is the memory of the filter; `bits` is a block of it, of
 * calyx_small_bytes bytes.
 */
typedef struct calyx_small {
    uint64_t seed;
    double fpr, first_fpr;
    uint16_t capacity, items, blocks;
    uint8_t growth; /* in units of 0.05; 0: fixed size, and strict */
    uint8_t code;   /* 16 * code of the kind + probes - 1          */
} calyx_small;      /* blocks: of a table 12 bits, below its spare bits */

typedef struct calyx_room {
    uint64_t inner[64];
} calyx_room;

/* False, and nothing has changed, if this filter cannot be small: it is large,
 * has grown to several parts, is concurrent, counts, does not use the hash of
 * its kind, is fixed but not strict, has a comment, properties or an allow
 * list, or is used in place. */
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

/* ---- Raw bits ------------------------------------------------------------ */

/* The bits of a filter without a header, for exchange with other programs, such
 * as Parquet readers. doc/FORMAT.md specifies their order in each kind. Eight
 * per byte, lowest first; the filter owns them. `*size` is their number of
 * bytes. NULL if the filter has grown, is damaged (calyx_health), or is more
 * than bits: bucket, distinct and static kinds. */
CALYX_API const void *calyx_bits(const calyx_filter *f, uint64_t *size);

/* Make a filter of raw bits, which are copied. `want` must describe them: kind,
 * hash, seed or key, and `probes`, which must be exact: a wrong value causes
 * false negatives. `bits` only if it is not 8 * size; capacity or fpr as for
 * any filter of that size. The number of items is estimated from the fill. */
CALYX_API calyx_status calyx_from_bits(const calyx_options *want,
                                       const void *bytes, size_t size,
                                       calyx_filter **out, calyx_error *why);

/* ---- Bits where they lie ------------------------------------------------- */

/*
 * For storage engines, which have thousands of small filters in their blocks:
 * lookups in bits at any address, without a filter and without memory. A shape
 * says how to read them. It holds for this library: store the name of the kind
 * and the other two numbers. A block of "flat" is one bit.
 *
 *     calyx_shape_plan(&want, &shape, &why);       // once
 *     hash = calyx_hash(any, key, size);           // of any filter, or yours
 *     found = calyx_bits_has(shape, bits, hash);
 *
 * The bits are laid out as in calyx_bits and doc/FORMAT.md: for "split" with
 * "xxh64" as in Parquet. The calls check the shape, and cannot check the bits:
 * there must be calyx_shape_bytes of them. A shape that no kind has takes 0
 * bytes, and lookups return true. The bits must not change during a lookup. For
 * bits of another size set `blocks`: calyx_rate_at has the rate.
 */
typedef struct calyx_shape {
    uint64_t blocks;
    uint32_t probes;
    uint32_t kind; /* its place in calyx_kinds(), from 1 */
} calyx_shape;

/* The shape of what calyx_new would make of these options. CALYX_CANNOT for
 * kinds that count and for growth: these are more than bits. Also for static
 * kinds: building one takes memory, and the sizes of its layers depend on the
 * hashes that the first one bumps, so no shape is known before. Look up in such
 * a filter where it lies by calyx_view. */
CALYX_API calyx_status calyx_shape_plan(const calyx_options *want,
                                        calyx_shape *shape, calyx_error *why);

/* The number of bytes of the bits. */
CALYX_API uint64_t calyx_shape_bytes(calyx_shape shape);

CALYX_API bool calyx_bits_has(calyx_shape shape, const void *bits,
                              uint64_t hash);

/* Add n hashes to the bits. Bits of zeros are an empty set.
 * CALYX_BAD_ARGUMENT if the shape is not valid. */
CALYX_API calyx_status calyx_bits_add(calyx_shape shape, void *bits,
                                      const uint64_t *hashes, size_t n);

/* ---- Sections ------------------------------------------------------------ */

/*
 * A filter in sections, in any order, for callers that must not block: the
 * head, which is everything except the bits, and the bits, which are one row of
 * info.bytes bytes, the oldest part first. The bits have no checksums.
 *
 * A filter made from a head has no bits: lookups return false for keys that
 * were added, until all bits are put. Putting sets the bits that are set in
 * `bytes`, and leaves the others; it can be repeated. Sections must lie within
 * the row.
 */
CALYX_API size_t calyx_head_size(const calyx_filter *f);
CALYX_API calyx_status calyx_encode_head(const calyx_filter *f, void *buffer,
                                         size_t size, calyx_error *why);
CALYX_API calyx_status calyx_decode_head(const void *bytes, size_t size,
                                         const calyx_open_options *how,
                                         calyx_filter **out, calyx_error *why);
CALYX_API calyx_status calyx_get_bits(const calyx_filter *f, uint64_t from,
                                      void *buffer, size_t size);
CALYX_API calyx_status calyx_put_bits(calyx_filter *f, uint64_t from,
                                      const void *bytes, size_t size);

/* ---- Steps --------------------------------------------------------------- */

/*
 * Merge and compare in steps, for callers that must not block. The bits of all
 * parts are one row, the oldest part first, without counters. A step processes
 * at most `most` bytes from `at->at` on, and ends where a part ends. Begin with
 * zeros in `at`; the merge is complete when `at->at` has reached `row_bytes`,
 * the member of calyx_info, that `other` had before the first step. A step over
 * a table is shorter, and the first ones may only let it grow; its last step
 * sets `at->at` to the size that the other has then, which may be more.
 *
 *     calyx_progress at = {0};
 *     calyx_info_of(b, &info);
 *     while (at.at < info.row_bytes && status == CALYX_OK)
 *         status = calyx_merge_some(a, b, 1 << 20, &at, &why);
 *
 * Between the steps of a merge both filters may gain keys, and grow unless they
 * count: the keys that `other` had at the beginning are merged. A comparison is
 * consistent only if neither filter changed; its last step sets `overlap`.
 */
typedef struct calyx_progress {
    uint64_t at;      /* bytes of the row that are done                    */
    uint64_t bits[3]; /* counted so far; by a comparison: set in a, in b, in
                         either                                            */
} calyx_progress;

CALYX_API calyx_status calyx_merge_some(calyx_filter *f,
                                        const calyx_filter *other,
                                        uint64_t most, calyx_progress *at,
                                        calyx_error *why);
CALYX_API calyx_status calyx_compare_some(const calyx_filter *a,
                                          const calyx_filter *b, uint64_t most,
                                          calyx_progress *at,
                                          calyx_overlap *overlap,
                                          calyx_error *why);

/* Make an empty filter with the parts that this one has now, and no allow list:
 * to merge it into. */
CALYX_API calyx_status calyx_new_alike(const calyx_filter *f,
                                       calyx_filter **out, calyx_error *why);

/* Where the row of calyx_get_bits changes when this key is added or removed:
 * the bytes at which lines of 64 begin, counters included. For callers that
 * copy a filter in sections while it changes, and copy these lines before. A
 * part that the filter would grow by is not among them. Stores at most `most`;
 * returns how many there are, 0 if any byte may change. */
CALYX_API size_t calyx_lines_of_key(const calyx_filter *f, const void *key,
                                    size_t size, uint64_t *at, size_t most);

/* ---- Prefetch hint ------------------------------------------------------- */

/*
 * A lookup in a large filter mostly waits for memory. A program that has other
 * work to do before the lookup can prefetch:
 *
 *     calyx_prefetch(&hint, key, size);
 *     ...                                   // 100 nanoseconds of other work
 *     found = calyx_has(f, key, size);
 *
 * Take the hint again when the filter has grown. A hint of a filter that has
 * changed or was freed is useless, and harmless.
 */
typedef struct calyx_prefetch_hint {
    uint64_t words[48]; /* opaque; all zeros: prefetches nothing */
} calyx_prefetch_hint;

CALYX_API void calyx_prefetch_hint_of(const calyx_filter *f,
                                      calyx_prefetch_hint *hint);
CALYX_API void calyx_prefetch(const calyx_prefetch_hint *hint, const void *key,
                              size_t size);

/* ---- Inline view --------------------------------------------------------- */

/* What <calyx/inline.h> needs to query a filter, and to add to it, without
 * calling the library. Valid while you only query and add. After any other
 * call, take it again. */
typedef struct calyx_inline_view {
    uint64_t words[12]; /* opaque: calyx_inline_word */
} calyx_inline_view;

CALYX_API void calyx_inline_view_of(calyx_filter *f, calyx_inline_view *view);

/* The same for lookups alone, of a filter that is const: one of a calyx_live,
 * or one that other threads add to. */
typedef struct calyx_inline_reader {
    calyx_inline_view view;
} calyx_inline_reader;

CALYX_API void calyx_inline_reader_of(const calyx_filter *f,
                                      calyx_inline_reader *reader);

/* The words of layout 1, for <calyx/inline.h> and the library. Code that was
 * compiled with another layout than the library uses only the first two: it
 * calls the library. So a later library may change the others, and the number.
 */
enum { CALYX_INLINE_LAYOUT = 1 };

typedef enum calyx_inline_word {
    CALYX_INLINE_NUMBER, /* of the layout; 0: nothing to inline           */
    CALYX_INLINE_FILTER, /* its address                                   */
    CALYX_INLINE_LINES,  /* address of the first line                     */
    CALYX_INLINE_COUNT,  /* number of lines                               */
    CALYX_INLINE_ITEMS,  /* address of the number of items                */
    CALYX_INLINE_FLIP,   /* the hash's share of the seed                  */
    CALYX_INLINE_SALTS,  /* address of the multipliers of the columns     */
    CALYX_INLINE_ROWS,   /* columns of a key: at rows + (hash & row_mask) */
    CALYX_INLINE_ROW_MASK,
    CALYX_INLINE_TWICE /* 1: keys take all columns, and a second bit in
                          the columns of the row                              */
} calyx_inline_word;

/* ---- What a lookup tests ------------------------------------------------- */

/* For teaching and debugging: what a lookup of one key tests, step by step. */
typedef enum calyx_test_type {
    CALYX_TEST_BIT = 1, /* bit `at` of the part is 1                         */
    CALYX_TEST_CODE,    /* a slot of the bucket has the code `value`, of
                           `number` bits; `at` is the slot, if one has       */
    CALYX_TEST_SPILLED, /* an entry spilled from the bucket has the code. Only
                           if the bucket has spilled some like it            */
    CALYX_TEST_BUMPED,  /* the group is bumped: the next part decides        */
    CALYX_TEST_SUM      /* of rows at + j, for each bit j of `value`, the bits
                           number `number` sum up to `wanted`, modulo 2      */
} calyx_test_type;

typedef struct calyx_test {
    calyx_test_type type;
    uint32_t part; /* as in calyx_part_of                                   */
    uint64_t block, blocks; /* the line, bucket or group, from 0; how many the
                               part has. A block of "flat" is one bit        */
    uint64_t at, value;
    uint32_t number;
    bool wanted; /* what the sum has to be */
    bool passes;
} calyx_test;

/* Stores at most `most` tests; returns how many there are. A filter of bits has
 * the key if all bits of any part pass; a table if any test passes; a static
 * filter if all sums pass. Takes microseconds. */
CALYX_API size_t calyx_explain(const calyx_filter *f, const void *key,
                               size_t size, calyx_test *tests, size_t most);

/* ---- A file read in pieces ----------------------------------------------- */

/*
 * For readers that fetch a few ranges of a file instead of all of it: a web
 * page, a client of HTTP ranges, or of strings in a Redis server, which
 * examples/plain-strings/lookup.c shows in a page. The library says where the
 * sections of the file are, whether they are sound, and which bytes a lookup
 * needs; the caller reads them, and knows neither the format nor the kind.
 *
 * The layout comes from the first bytes of the file, as many as it has up to
 * CALYX_HEADER_MOST. It needs no secret key, except for lookups in a filter
 * that was made with one. Free it once.
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
/* As calyx_property: NULL if there is none of this name. */
CALYX_API const char *calyx_layout_property(const calyx_layout *layout,
                                            const char *name);

/* The sections of the file, in its order; the last is CALYX_SECTION_END, of no
 * bytes. The bytes between two sections are zeros. */
typedef enum calyx_section_type {
    CALYX_SECTION_HEADER,
    CALYX_SECTION_BODY, /* of a part; its bits come first           */
    CALYX_SECTION_TABLES,
    CALYX_SECTION_SLOT, /* one of two: the state of the file        */
    CALYX_SECTION_END,
    CALYX_SECTION_ALLOW /* the allow list, if there is one          */
} calyx_section_type;

typedef struct calyx_section {
    calyx_section_type type;
    uint32_t number; /* among the sections of its type                     */
    uint64_t at, bytes;
    uint64_t step; /* bytes to give to one check                    */
} calyx_section;

/* False if there are fewer. */
CALYX_API bool calyx_layout_section(const calyx_layout *layout, uint32_t index,
                                    calyx_section *section);

/* Check the `step` bytes, or what is left, at `from` of a section. Check both
 * slots first, then the tables, then bodies in any order: each needs what comes
 * before it. The tables and the allow list must outlive the layout.
 *
 * For a slot, CALYX_OK means valid. If both slots are valid, the second one is
 * current. For other sections, CALYX_UNSEALED means that there is no checksum
 * to compare with. */
CALYX_API calyx_status calyx_layout_check(calyx_layout *layout, uint32_t index,
                                          uint64_t from, const void *bytes,
                                          size_t size, calyx_error *why);

/* A lookup goes through the parts, from number 0 on. calyx_layout_lines sets
 * the places in the file of the lines that it reads in a part, and returns
 * their number, or 0 if the kind does not know: then read the whole file.
 * calyx_layout_has answers from their bytes, one line after the other, and
 * calyx_layout_next says which part to look into next; 0: none. The file has
 * the key if an odd number of these parts have it, which can be more than one
 * only in an exact filter with updates. Hashing returns CALYX_WRONG_KEY
 * if it needs a secret key: give that to calyx_layout_set_key, which refuses
 * another one, and ignores it for a filter that has none. */
CALYX_API calyx_status calyx_layout_set_key(calyx_layout *layout,
                                            const uint8_t key[16],
                                            calyx_error *why);
CALYX_API calyx_status calyx_layout_hash(const calyx_layout *layout,
                                         const void *key, size_t size,
                                         uint64_t *hash);
CALYX_API size_t calyx_layout_lines(const calyx_layout *layout, uint32_t part,
                                    uint64_t hash,
                                    uint64_t at[CALYX_LINES_MOST]);
CALYX_API bool calyx_layout_has(const calyx_layout *layout, uint32_t part,
                                uint64_t hash, const void *lines);
CALYX_API uint32_t calyx_layout_next(const calyx_layout *layout, uint32_t part,
                                     uint64_t hash, const void *lines);

/* Set the bits of a hash in these lines: in copies of them, or in zeros to
 * learn which bits they are. Add to the last part, if no part has the key. Only
 * for kinds with all bits of a key in one line, such as line; else
 * CALYX_CANNOT. */
CALYX_API calyx_status calyx_layout_add(const calyx_layout *layout,
                                        uint32_t part, uint64_t hash,
                                        void *lines);

/* Is the key on the allow list? Then the answer is no. Check the list first:
 * before that it is empty. */
CALYX_API bool calyx_layout_allows(const calyx_layout *layout, const void *key,
                                   size_t size);

#ifdef __cplusplus
}
#endif
#endif /* CALYX_H */
