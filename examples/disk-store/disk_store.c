/* Lookups of keys that a store on disk does not have. Three LevelDB
 * databases with the same keys: without filters, with LevelDB's own, and with
 * Calyx's in the same memory. How many blocks are read, and how long does it
 * take? Then, with the latency of a disk put in: what does each bit a key save?
 *   disk_store FOLDER KEYS        (`run` finds a folder, and cleans up)
 */
#include <dlfcn.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "policy.h"

enum { BITS_A_KEY = 10, KEY_BYTES = 16, VALUE_BYTES = 100 };
enum { DISK_MICROSECONDS = 100, TIMED = 2000, DRAWN = 100000, BAR = 40 };

static void demand(bool truth, const char *otherwise) {
    if (truth) return;
    fprintf(stderr, "disk_store: %s\n", otherwise);
    exit(1);
}

/* Without a cache, LevelDB unpacks a block each time that it reads one, with
 * libsnappy. We stand before that and count: by thread, as it also compacts. */
#define UNPACK "_ZN6snappy13RawUncompressEPKcmPc"
bool unpack(const char *, size_t, char *) __asm__(UNPACK)
    __attribute__((visibility("default")));
static _Thread_local uint64_t blocks_read;
static _Thread_local bool is_on_disk; /* then a block takes as long as one */
bool unpack(const char *packed, size_t size, char *to) {
    static _Thread_local bool (*real)(const char *, size_t, char *);
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, UNPACK);
    blocks_read++;
    const struct timespec latency = {.tv_nsec = 1000 * DISK_MICROSECONDS};
    if (is_on_disk) nanosleep(&latency, NULL);
    return real(packed, size, to);
}

/* Even numbers are in the store, odd ones are not; scattered, so that
 * neighbours are not looked up one after the other. */
static size_t write_key(char *key, uint64_t number) {
    number *= UINT64_C(0x9E3779B97F4A7C15);
    return (size_t)snprintf(key, KEY_BYTES + 1, "%016llx", number + 0ull);
}

static leveldb_t *fill(leveldb_options_t *options, const char *folder,
                       uint64_t keys) {
    char *trouble = NULL, key[KEY_BYTES + 1], value[VALUE_BYTES + 1];
    leveldb_t *db = leveldb_open(options, folder, &trouble);
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    for (uint64_t i = 0; i < keys && !trouble; i++) {
        const size_t size = write_key(key, 2 * i);
        snprintf(value, sizeof value, "rose %-95s", key);
        leveldb_put(db, writing, key, size, value, VALUE_BYTES, &trouble);
    }
    demand(!trouble, trouble);
    leveldb_writeoptions_destroy(writing);
    leveldb_compact_range(db, NULL, 0, NULL, 0);
    return db;
}

/* How many of the numbers first, first + 2, ... are found? */
static uint64_t ask(leveldb_t *db, uint64_t first, uint64_t keys) {
    char *trouble = NULL, key[KEY_BYTES + 1];
    leveldb_readoptions_t *reading = leveldb_readoptions_create();
    uint64_t found = 0;
    for (uint64_t i = 0; i < keys; i++) {
        size_t size = write_key(key, first + 2 * i);
        char *value = leveldb_get(db, reading, key, size, &size, &trouble);
        demand(!trouble, trouble);
        found += value && size == VALUE_BYTES && !memcmp(value + 5, key, 16);
        leveldb_free(value);
    }
    leveldb_readoptions_destroy(reading);
    return found;
}

static double table_bytes(const char *folder) {
    char pattern[4096];
    double bytes = 0;
    glob_t tables;
    struct stat about;
    snprintf(pattern, sizeof pattern, "%s/*.ldb", folder);
    demand(glob(pattern, 0, NULL, &tables) == 0, "there are no tables");
    for (size_t i = 0; i < tables.gl_pathc; i++)
        if (stat(tables.gl_pathv[i], &about) == 0)
            bytes += (double)about.st_size;
    globfree(&tables);
    return bytes;
}

static double microseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* What lookups in a database cost. */
struct figures {
    double present, absent; /* blocks read for all keys of either sort */
    double time, disk_time; /* of a lookup of an absent key, in us     */
    double bytes;           /* of its tables                           */
};

static struct figures measure(leveldb_filterpolicy_t *policy,
                              const char *folder, uint64_t keys) {
    struct figures f;
    leveldb_options_t *options = leveldb_options_create();
    leveldb_cache_t *no_cache = leveldb_cache_create_lru(0);
    leveldb_options_set_create_if_missing(options, 1);
    leveldb_options_set_cache(options, no_cache);
    leveldb_options_set_filter_policy(options, policy);
    leveldb_t *db = fill(options, folder, keys);
    ask(db, 0, keys); /* which opens the tables */
    const uint64_t start = blocks_read;
    demand(ask(db, 0, keys) == keys, "a key is lost");
    f.present = (double)(blocks_read - start);
    demand(f.present == (double)keys, "a key that is there takes one block");

    double from = microseconds();
    demand(ask(db, 1, keys) == 0, "a key was found that is not there");
    f.time = (microseconds() - from) / (double)keys;
    f.absent = (double)(blocks_read - start) - f.present;
    const uint64_t timed = keys < TIMED ? keys : TIMED;
    is_on_disk = true;
    from = microseconds();
    ask(db, 1, timed);
    f.disk_time = (microseconds() - from) / (double)timed;
    is_on_disk = false;
    /* LevelDB removes tables that it has merged at some later time, but at the
     * latest when it opens the database. */
    char *trouble = NULL;
    leveldb_close(db);
    db = leveldb_open(options, folder, &trouble);
    demand(!trouble, trouble);
    f.bytes = table_bytes(folder);
    leveldb_close(db);
    leveldb_destroy_db(options, folder, &trouble);
    demand(!trouble, trouble);
    leveldb_options_destroy(options);
    leveldb_cache_destroy(no_cache);
    return f;
}

static void print_row(const char *what, const struct figures *f,
                      uint64_t keys) {
    printf("  %-16s %8.1f %11.0f %11.0f %9.3f %% %8.2f\n", what, f->bytes / 1e6,
           f->present, f->absent, 100 * f->absent / (double)keys, f->time);
}

/* ---- Reads saved against bits a key ------------------------------------- */

static void print_bar(int bits, const struct figures *f, double all) {
    char bar[BAR + 1] = "";
    const double saved = 1 - f->absent / all;
    memset(bar, '#', (size_t)((double)BAR * saved + 0.5));
    printf("  %10d %-*s %7.2f %% %11.0f\n", bits, BAR, bar, 100 * saved,
           f->disk_time);
}

/* With fewer keys: there are eight databases. */
static void draw_savings(const char *folder, uint64_t keys) {
    static const int widths[] = {2, 4, 6, 8, 10, 12, 16};
    if (keys > DRAWN) keys = DRAWN;
    const struct figures none = measure(NULL, folder, keys);
    printf(
        "\n%llu keys, and Calyx's filters before a disk of %d us a block:\n\n"
        "  bits a key %-*s %9s %11s\n",
        keys + 0ull, DISK_MICROSECONDS, BAR,
        "reads of absent keys that are saved", "", "us each");
    print_bar(0, &none, none.absent);
    double before = none.absent;
    for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
        calyx_error why = {0};
        leveldb_filterpolicy_t *policy = calyx_leveldb_policy(widths[i], &why);
        demand(policy, why.text);
        const struct figures f = measure(policy, folder, keys);
        leveldb_filterpolicy_destroy(policy);
        print_bar(widths[i], &f, none.absent);
        /* Each width has about half the reads of the one before, or fewer. */
        demand(f.absent < 0.8 * before || f.absent < 0.001 * none.absent,
               "more bits save no reads");
        before = f.absent;
    }
    demand(none.disk_time >= (double)DISK_MICROSECONDS,
           "no latency was put in");
}

int main(int count, char **words) {
    const uint64_t keys = count == 3 ? strtoull(words[2], NULL, 10) : 0;
    demand(keys > 0, "usage: disk_store FOLDER KEYS");
    calyx_error why = {0};
    leveldb_filterpolicy_t *a = leveldb_filterpolicy_create_bloom(BITS_A_KEY);
    leveldb_filterpolicy_t *b = calyx_leveldb_policy(BITS_A_KEY, &why);
    demand(b, why.text);
    printf("%llu keys with values of %d bytes; filters of %d bits a key\n\n"
           "%27s %21s %17s\n  %-16s %8s %11s %11s %11s %8s\n",
           keys + 0ull, VALUE_BYTES, BITS_A_KEY, "files",
           "blocks read for keys", "absent keys", "filter", "MB", "present",
           "absent", "that read", "us each");
    const struct figures none = measure(NULL, words[1], keys);
    print_row("none", &none, keys);
    const struct figures theirs = measure(a, words[1], keys);
    print_row("LevelDB's", &theirs, keys);
    const struct figures ours = measure(b, words[1], keys);
    print_row("Calyx's", &ours, keys);
    leveldb_filterpolicy_destroy(a);
    leveldb_filterpolicy_destroy(b);
    printf("\n  all filters: LevelDB's %.0f bytes, Calyx's %.0f\n",
           theirs.bytes - none.bytes, ours.bytes - none.bytes);
    draw_savings(words[1], keys);

    demand(none.absent > 0.99 * (double)keys,
           "unfiltered, absent keys take a block");
    demand(ours.bytes <= 1.001 * theirs.bytes, "Calyx takes more memory");
    /* The rates are equal; from 50,000 keys, 1.35 is 5 standard deviations. */
    demand(ours.absent <= 1.35 * theirs.absent, "Calyx reads more blocks");
}
