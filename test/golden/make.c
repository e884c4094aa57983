/*
 * Makes the golden files: filters as version 1 of the format has them, each
 * with a text beside it that lists what it must answer.
 *
 *     make FOLDER
 *
 * What is there is left alone. A golden file is what some release once wrote
 * and every later one must read; so from the first release on it is made once
 * and never again, and this program stays to show how, and to make the files of
 * kinds yet to come.
 *
 * A text has a word and a value on each line. `has`, `lacks` and `count` (with
 * the number before the key) are lookups with their results; the other lines
 * are the fields of calyx_info and a few facts more. Keys are text, or bytes in
 * hexadecimal after 0x.
 */
#define _DEFAULT_SOURCE /* access */
#include <calyx/calyx.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST = 300, ABSENT = 30, PATH_BYTES = 1000 };

/* What is special about a file. */
enum {
    SAVED = 1,     /* by calyx_save, for pages; others by calyx_encode */
    LONG_KEYS = 2, /* has keys of every length class of the hashes     */
    SATURATED = 4, /* has no bit left to set                           */
    OPEN = 8,      /* was changed in place, and left so                */
    RESEALED = 16, /* was changed in place, and sealed again           */
    FULL = 32,     /* takes no more keys                               */
    ALLOWS = 64,   /* has its false positives on an allow list         */
    CROWDED = 128, /* has a saturated bucket                           */
};

struct recipe {
    const char *name;
    calyx_options want;
    unsigned keys;
    unsigned special;
    const char *comment;
};

/* The key of the SipHash paper's test vectors. A secret in a test is none. */
static const uint8_t secret[16] = {0, 1, 2,  3,  4,  5,  6,  7,
                                   8, 9, 10, 11, 12, 13, 14, 15};

static char thousand[1001]; /* the longest comment there may be */

static const struct recipe recipes[] = {
    {"line-saved", {.capacity = 100}, 100, SAVED | LONG_KEYS, NULL},
    {"line-encoded", {.capacity = 100}, 100, 0, NULL},
    {"line-empty", {.capacity = 20}, 0, 0, NULL},
    {"line-full", {.capacity = 60, .strict = true}, 50, FULL, "enough"},
    {"line-saturated", {.bits = 1024, .fpr = .1}, 20, SATURATED, NULL},
    {"line-one-probe", {.bits = 2048, .probes = 1, .capacity = 9}, 9, 0, NULL},
    {"line-all-probes", {.bits = 2048, .probes = 16, .fpr = .01}, 30, 0, NULL},
    {"line-seed", {.seed = 42, .capacity = 50}, 50, 0, "f\303\274r Elise"},
    {"line-xxh64",
     {.hash = "xxh64", .seed = UINT64_MAX, .capacity = 50},
     50,
     0,
     NULL},
    {"line-siphash",
     {.hash = "siphash", .key = secret, .capacity = 90},
     90,
     LONG_KEYS,
     "the key is 00 01 02 .. 0f"},
    {"line-murmur3",
     {.hash = "murmur3", .seed = 42, .capacity = 90},
     90,
     LONG_KEYS,
     NULL},
    {"line-fnv1a", {.hash = "fnv1a", .seed = 42, .capacity = 50}, 50, 0, NULL},
    {"line-grown", {.growth = 2, .capacity = 10}, 150, 0, "three parts"},
    {"line-grown-saved", {.growth = 2, .capacity = 10}, 60, SAVED, NULL},
    {"line-open", {.capacity = 100}, 50, SAVED | OPEN, "crashed once"},
    {"line-resealed", {.capacity = 100}, 50, SAVED | RESEALED, NULL},

    {"line-allow", {.bits = 512, .fpr = .5}, 200, ALLOWS, "exceptions"},
    {"line-allow-saved", {.bits = 512, .fpr = .4}, 150, SAVED | ALLOWS, NULL},
    {"line-allow-siphash",
     {.hash = "siphash", .key = secret, .growth = 2, .fpr = .7},
     1500,
     ALLOWS,
     NULL},

    {"line2-saved", {.kind = "line2", .capacity = 100}, 100, SAVED, NULL},
    {"line2-encoded", {.kind = "line2", .fpr = .001}, 100, 0, "light"},
    {"line2-empty", {.kind = "line2", .capacity = 20}, 0, 0, NULL},
    {"line2-full",
     {.kind = "line2", .capacity = 30, .strict = true},
     20,
     FULL,
     NULL},
    {"line2-all-probes",
     {.kind = "line2", .bits = 4096, .probes = 32, .fpr = .0001},
     30,
     0,
     NULL},
    {"line2-siphash",
     {.kind = "line2", .hash = "siphash", .key = secret, .capacity = 50},
     50,
     0,
     NULL},
    {"line2-grown",
     {.kind = "line2", .growth = 4, .capacity = 5, .seed = 7},
     90,
     0,
     NULL},

    {"split-saved",
     {.kind = "split", .bits = 256 * 5, .fpr = .01},
     90,
     SAVED | LONG_KEYS,
     "as Parquet has it"},
    {"split-encoded", {.kind = "split", .bits = 256, .fpr = .02}, 9, 0, NULL},
    {"split-empty", {.kind = "split", .capacity = 20}, 0, 0, NULL},
    {"split-full",
     {.kind = "split", .capacity = 30, .strict = true},
     20,
     FULL,
     NULL},
    {"split-saturated",
     {.kind = "split", .bits = 256 * 3, .fpr = .1},
     20,
     SATURATED,
     NULL},
    {"split-xxh3",
     {.kind = "split", .hash = "xxh3", .seed = 1, .capacity = 50},
     50,
     0,
     NULL},
    {"split-siphash",
     {.kind = "split", .hash = "siphash", .key = secret, .capacity = 50},
     50,
     0,
     NULL},
    {"split-grown",
     {.kind = "split", .growth = 1.25, .capacity = 10},
     120,
     0,
     NULL},

    {"flat-saved",
     {.kind = "flat", .bits = 1000, .capacity = 90},
     90,
     SAVED,
     "any number of bits"},
    {"flat-encoded", {.kind = "flat", .capacity = 90}, 90, 0, thousand},
    {"flat-empty", {.kind = "flat", .capacity = 20}, 0, 0, NULL},
    {"flat-one-bit",
     {.kind = "flat", .bits = 1, .probes = 1, .capacity = 1},
     1,
     0,
     NULL},
    {"flat-all-probes",
     {.kind = "flat", .bits = 3001, .probes = 64, .capacity = 30},
     30,
     0,
     NULL},
    {"flat-full",
     {.kind = "flat", .capacity = 30, .strict = true},
     20,
     FULL,
     NULL},
    {"flat-saturated",
     {.kind = "flat", .bits = 77, .fpr = .1},
     20,
     SATURATED,
     NULL},
    {"flat-xxh64", {.kind = "flat", .hash = "xxh64", .seed = 3}, 60, 0, NULL},
    {"flat-siphash",
     {.kind = "flat", .hash = "siphash", .key = secret, .capacity = 50},
     50,
     0,
     NULL},
    {"flat-grown",
     {.kind = "flat", .growth = 2, .capacity = 1, .seed = 9},
     90,
     0,
     NULL},

    {"counting-saved",
     {.kind = "counting", .capacity = 100},
     60,
     SAVED,
     "two roses"},
    {"counting-encoded", {.kind = "counting", .capacity = 70}, 40, 0, NULL},
    {"counting-empty", {.kind = "counting", .capacity = 20}, 0, 0, NULL},
    {"counting-full",
     {.kind = "counting", .capacity = 150, .strict = true},
     40,
     FULL,
     NULL},
    {"counting-saturated",
     {.kind = "counting", .bits = 512, .fpr = .1},
     20,
     SATURATED,
     NULL},
    {"counting-siphash",
     {.kind = "counting", .hash = "siphash", .key = secret, .capacity = 90},
     40,
     0,
     NULL},
    {"counting-grown",
     {.kind = "counting", .growth = 2, .capacity = 20, .seed = 5},
     60,
     0,
     NULL},

    {"ribbon-saved", {.kind = "ribbon"}, 200, SAVED | LONG_KEYS, NULL},
    {"ribbon-encoded", {.kind = "ribbon", .seed = 11}, 700, 0, "built once"},
    {"ribbon-empty", {.kind = "ribbon"}, 0, 0, NULL},
    {"ribbon-one-key", {.kind = "ribbon", .fpr = .5}, 1, 0, NULL},
    {"ribbon-lots", {.kind = "ribbon", .fpr = .03}, 19000, 0, NULL},
    {"ribbon-most-words", {.kind = "ribbon", .fpr = 0x1p-31}, 100, 0, NULL},
    {"ribbon-mixed-words", {.kind = "ribbon", .fpr = 6e-6}, 900, 0, NULL},
    {"ribbon-xxh64", {.kind = "ribbon", .hash = "xxh64"}, 300, 0, NULL},
    {"ribbon-siphash",
     {.kind = "ribbon", .hash = "siphash", .key = secret},
     300,
     0,
     NULL},

    {"bucket-saved",
     {.kind = "bucket", .capacity = 100},
     60,
     SAVED,
     "a table that never grew"},
    {"bucket-grown",
     {.kind = "bucket", .growth = 2, .capacity = 100, .seed = 5},
     1000,
     0,
     NULL},
    {"bucket-planes",
     {.kind = "bucket", .growth = 2, .capacity = 100, .fpr = .001},
     1200,
     0,
     NULL},
    {"bucket-spilled",
     {.kind = "bucket", .capacity = 3000, .fpr = .001},
     1450,
     0,
     NULL},
    {"bucket-wide",
     {.kind = "bucket", .capacity = 1000, .fpr = 3e-6},
     450,
     0,
     NULL},
    {"bucket-crowded",
     {.kind = "bucket", .capacity = 3000, .seed = 10},
     50,
     CROWDED,
     NULL},
    {"bucket-empty", {.kind = "bucket", .capacity = 20}, 0, 0, NULL},

    {"distinct-saved",
     {.kind = "distinct", .capacity = 100},
     60,
     SAVED,
     "each key once"},
    {"distinct-grown",
     {.kind = "distinct", .growth = 2, .capacity = 150, .seed = 5},
     1000,
     0,
     NULL},
    {"distinct-siphash",
     {.kind = "distinct", .hash = "siphash", .key = secret, .capacity = 90},
     90,
     0,
     NULL},
    {"distinct-one-bucket",
     {.kind = "distinct", .growth = 2, .capacity = 10, .seed = 6},
     45,
     LONG_KEYS,
     NULL},
    {"distinct-two-buckets",
     {.kind = "distinct", .growth = 2, .capacity = 10, .seed = 7},
     70,
     SAVED,
     NULL},
    {"distinct-spare",
     {.kind = "distinct", .growth = 2, .capacity = 10, .fpr = .002},
     200,
     0,
     NULL},
    {"distinct-spent",
     {.kind = "distinct", .growth = 2, .capacity = 10, .seed = 9},
     4000,
     0,
     NULL},
    {"distinct-crowded",
     {.kind = "distinct", .growth = 2, .capacity = 10, .seed = 10},
     50,
     CROWDED,
     NULL},
    {"distinct-empty", {.kind = "distinct", .capacity = 20}, 0, 0, NULL},
};

/* ---- Trouble ------------------------------------------------------------- */

static void give_up(const char *name, const char *reason) {
    fprintf(stderr, "%s: %s\n", name, reason);
    exit(1);
}

static void check(const struct recipe *r, calyx_status status,
                  const calyx_error *why) {
    if (status != CALYX_OK)
        give_up(r->name, why ? why->text : calyx_status_text(status));
}

static FILE *open_file(const char *path, const char *mode) {
    FILE *file = fopen(path, mode);
    if (!file) give_up(path, "cannot be opened");
    return file;
}

/* ---- Keys ---------------------------------------------------------------- */

struct key {
    size_t size;
    bool is_text;
    uint8_t bytes[LONGEST];
};

static const size_t lengths[] = {0,   1,   2,   3,   4,   8,   9,   16,
                                 17,  31,  32,  33,  64,  65,  96,  97,
                                 128, 129, 160, 161, 239, 240, 241, 300};
enum { LENGTHS = sizeof lengths / sizeof lengths[0] };

static struct key bytes_key(size_t size, unsigned number) {
    struct key key = {.size = size};
    for (size_t i = 0; i < size; i++)
        key.bytes[i] = (uint8_t)((number + 1) * (i + 3) * 40503 >> 7);
    return key;
}

static struct key text_key(const char *word, unsigned number) {
    struct key key = {.is_text = true};
    key.size =
        (size_t)snprintf((char *)key.bytes, LONGEST, "%s-%u", word, number);
    return key;
}

/* Text, numbers and bytes take turns. */
static struct key key_numbered(const struct recipe *r, unsigned i) {
    if (r->special & LONG_KEYS && i < LENGTHS) return bytes_key(lengths[i], i);
    if (i % 3 == 0) return text_key("rose", i);
    return bytes_key(i % 3 == 1 ? 8 : i % 41, i);
}

static void add(const struct recipe *r, calyx_filter *f,
                const struct key *key) {
    if (key->size != 8) {
        check(r, calyx_add(f, key->bytes, key->size, NULL), NULL);
        return;
    }
    uint64_t number = 0;
    for (int i = 7; i >= 0; i--) number = number << 8 | key->bytes[i];
    check(r, calyx_add_u64(f, number, NULL), NULL);
}

/* ---- A filter ------------------------------------------------------------ */

static bool counts(const struct recipe *r) {
    return r->want.kind && calyx_kind_can(r->want.kind) & CALYX_CAN_REMOVE;
}

/* A counting filter gets its keys once, twice or three times, one of them more
 * often than it can count, and one that it forgets again. */
static void fill_counters(const struct recipe *r, calyx_filter *f) {
    for (unsigned i = 0; i < r->keys; i++) {
        const struct key key = key_numbered(r, i);
        for (unsigned n = 0; n < i % 3; n++) add(r, f, &key);
    }
    if (r->keys == 0) return;
    const struct key often = key_numbered(r, 0), gone = text_key("gone", 1);
    for (int n = 0; n < 20; n++) add(r, f, &often);
    add(r, f, &gone);
    check(r, calyx_remove(f, gone.bytes, gone.size, NULL), NULL);
}

/* Is it to be fuller than its keys make it? */
static bool has_room(const struct recipe *r, const calyx_filter *f) {
    calyx_info info;
    calyx_describe(f, &info);
    return (r->special & SATURATED && info.fill < 1) ||
           (r->special & FULL && info.items < info.capacity);
}

/* Of the keys "crowd-0" and on, one in 256 goes to the bucket that all crowd.
 */
enum { CROWD = 50000 };
static bool crowds(const calyx_filter *f, const struct key *key) {
    return calyx_hash(f, key->bytes, key->size) >> 56 == 5;
}

static void fill(const struct recipe *r, calyx_filter *f) {
    for (unsigned i = 0; i < r->keys; i++) {
        const struct key key = key_numbered(r, i);
        add(r, f, &key);
    }
    if (counts(r)) fill_counters(r, f);
    for (unsigned i = 0; r->special & CROWDED && i < CROWD; i++) {
        const struct key key = text_key("crowd", i);
        if (crowds(f, &key)) add(r, f, &key);
    }
    for (unsigned i = 0; has_room(r, f); i++) {
        const struct key key = text_key("more", i);
        add(r, f, &key);
    }
}

/* Kinds that are built once take all keys before. */
static calyx_filter *build_filter(const struct recipe *r) {
    const calyx_builder_options want = {.filter = r->want};
    calyx_builder *b = NULL;
    calyx_filter *f = NULL;
    calyx_error why;
    check(r, calyx_builder_new(&want, &b, &why), &why);
    for (unsigned i = 0; i < r->keys; i++) {
        const struct key key = key_numbered(r, i);
        check(r, calyx_builder_add(b, key.bytes, key.size, &why), &why);
    }
    check(r, calyx_builder_finish(b, &f, &why), &why);
    calyx_builder_free(b);
    if (r->comment) check(r, calyx_set_comment(f, r->comment), NULL);
    return f;
}

/* Absent keys: those that print_absent_keys looks for. */
static struct key absent_key(unsigned i) {
    return i % 2 ? bytes_key(8, 1000 + i) : text_key("tulip", i);
}

static void allow_false_positives(const struct recipe *r, calyx_filter *f) {
    calyx_error why;
    for (unsigned i = 0; i < ABSENT; i++) {
        const struct key key = absent_key(i);
        if (calyx_has(f, key.bytes, key.size))
            check(r, calyx_allow(f, key.bytes, key.size, NULL, &why), &why);
    }
    check(r, calyx_allow(f, "tulip", 5, NULL, &why), &why);
}

static calyx_filter *make_filter(const struct recipe *r) {
    if (r->want.kind && calyx_kind_can(r->want.kind) & CALYX_CAN_STATIC)
        return build_filter(r);
    calyx_options want = r->want;
    want.seeded = true;
    calyx_filter *f = NULL;
    calyx_error why;
    check(r, calyx_new(&want, &f, &why), &why);
    fill(r, f);
    if (r->special & ALLOWS) allow_false_positives(r, f);
    check(r, calyx_set_comment(f, r->comment ? r->comment : ""), NULL);
    return f;
}

/* ---- A file -------------------------------------------------------------- */

static void write_encoded(const struct recipe *r, const calyx_filter *f,
                          const char *path) {
    const size_t size = (size_t)calyx_encoded_size(f);
    void *bytes = malloc(size);
    if (!bytes) give_up(r->name, "no memory");
    calyx_error why;
    check(r, calyx_encode(f, bytes, size, &why), &why);
    FILE *file = open_file(path, "wb");
    if (fwrite(bytes, 1, size, file) != size || fclose(file) != 0)
        give_up(path, "cannot be written");
    free(bytes);
}

/* A file's last 1024 bytes, the slots, and putting them back. */
static void read_slots(const char *path, uint8_t slots[2][512]) {
    FILE *file = open_file(path, "rb");
    if (fseek(file, -1024, SEEK_END) != 0 || fread(slots, 512, 2, file) != 2)
        give_up(path, "has no slots");
    fclose(file);
}

static void write_slots(const char *path, const uint8_t slots[2][512]) {
    FILE *file = open_file(path, "rb+");
    if (fseek(file, -1024, SEEK_END) != 0 || fwrite(slots, 512, 2, file) != 2 ||
        fclose(file) != 0)
        give_up(path, "cannot be written");
}

static void copy_file(const char *from, const char *to) {
    FILE *in = open_file(from, "rb"), *out = open_file(to, "wb");
    for (int c; (c = getc(in)) != EOF;) putc(c, out);
    fclose(in);
    if (fclose(out) != 0) give_up(to, "cannot be written");
}

/* Whichever of the two slots has this generation. */
static const uint8_t *slot_of(const uint8_t slots[2][512], uint8_t generation) {
    for (int i = 0; i < 2; i++)
        if (slots[i][0] == generation) return slots[i];
    give_up("slots", "have another generation");
    return NULL;
}

/* Add in place, and keep the file as it was before it was sealed, or after. The
 * slots hold the last two generations, the odd ones first. */
static void change_in_place(const struct recipe *r, const char *path) {
    uint8_t slots[2][512], kept[2][512];
    calyx_filter *f = NULL;
    calyx_error why;
    check(r, calyx_map(path, CALYX_WRITE, NULL, &f, &why), &why);
    for (unsigned i = 0; i < 20; i++) {
        const struct key key = text_key("late", i);
        add(r, f, &key);
    }
    check(r, calyx_sync(f, &why), &why);
    read_slots(path, slots); /* the mark of opening was 2, the sync is 3 */
    memcpy(kept[0], slot_of(slots, 3), 512);
    if (r->special & OPEN) {
        char copy[PATH_BYTES + 5];
        snprintf(copy, sizeof copy, "%s.open", path);
        copy_file(path, copy);
        calyx_free(f);
        rename(copy, path);
        memcpy(kept[1], slot_of(slots, 2), 512);
    } else {
        calyx_free(f);
        read_slots(path, slots);
        memcpy(kept[1], slot_of(slots, 4), 512);
    }
    write_slots(path, (const uint8_t(*)[512])kept);
}

/* ---- What it must answer ------------------------------------------------- */

static void print_key(FILE *to, const struct key *key) {
    if (key->is_text) {
        fprintf(to, "%s\n", (const char *)key->bytes);
        return;
    }
    fprintf(to, "0x");
    for (size_t i = 0; i < key->size; i++) fprintf(to, "%02x", key->bytes[i]);
    fprintf(to, "\n");
}

static void print_facts(const struct recipe *r, const calyx_filter *f,
                        FILE *to) {
    calyx_info info;
    calyx_describe(f, &info);
    fprintf(to, "kind %s\nhash %s\n", info.kind, info.hash);
    if (r->want.key) {
        fprintf(to, "key 0x");
        for (int i = 0; i < 16; i++) fprintf(to, "%02x", r->want.key[i]);
        fprintf(to, "\n");
    }
    fprintf(to,
            "seed %llu\ncapacity %llu\nitems %llu\nbits %llu\nbytes %llu\n"
            "parts %u\nprobes %u\ngrowth %.17g\nfpr %.17g\nstrict %d\n",
            (unsigned long long)info.seed, (unsigned long long)info.capacity,
            (unsigned long long)info.items, (unsigned long long)info.bits,
            (unsigned long long)info.bytes, info.parts, info.probes,
            info.growth, info.fpr, info.strict);
    fprintf(to, "alignment %d\nsealed %d\nchanged %d\ncomment %s\n",
            r->special & SAVED ? 4096 : 64, !(r->special & OPEN),
            (r->special & (OPEN | RESEALED)) != 0, calyx_comment(f));
    if (info.allowed)
        fprintf(to, "allowed %llu\n", (unsigned long long)info.allowed);
}

static void print_answer(const struct recipe *r, const calyx_filter *f,
                         const struct key *key, FILE *to) {
    if (!calyx_has(f, key->bytes, key->size)) give_up(r->name, "lost a key");
    if (counts(r))
        fprintf(to, "count %u ", calyx_count(f, key->bytes, key->size));
    else
        fprintf(to, "has ");
    print_key(to, key);
}

static void print_absent_keys(const calyx_filter *f, FILE *to) {
    for (unsigned i = 0, n = 0; n < ABSENT && i < 100 * ABSENT; i++) {
        const struct key key = absent_key(i);
        if (calyx_has(f, key.bytes, key.size)) continue;
        fprintf(to, "lacks ");
        print_key(to, &key);
        n++;
    }
}

static void print_expectations(const struct recipe *r, const calyx_filter *f,
                               const char *path) {
    FILE *to = open_file(path, "w");
    print_facts(r, f, to);
    const unsigned step = r->keys / 1000 + 1; /* of many keys, some */
    for (unsigned i = 0; i < r->keys; i += step) {
        const struct key key = key_numbered(r, i);
        print_answer(r, f, &key, to);
    }
    for (unsigned i = 0; r->special & (OPEN | RESEALED) && i < 20; i++) {
        const struct key key = text_key("late", i);
        print_answer(r, f, &key, to);
    }
    for (unsigned i = 0; r->special & CROWDED && i < CROWD; i++) {
        const struct key key = text_key("crowd", i);
        if (crowds(f, &key)) print_answer(r, f, &key, to);
    }
    print_absent_keys(f, to);
    if (fclose(to) != 0) give_up(path, "cannot be written");
}

/* ---- All of them --------------------------------------------------------- */

static void make(const struct recipe *r, const char *folder) {
    char path[PATH_BYTES], text[PATH_BYTES];
    snprintf(path, sizeof path, "%s/%s.calyx", folder, r->name);
    snprintf(text, sizeof text, "%s/%s.txt", folder, r->name);
    if (access(path, F_OK) == 0) return;
    calyx_filter *f = make_filter(r);
    calyx_error why;
    if (r->special & SAVED)
        check(r, calyx_save(f, path, &why), &why);
    else
        write_encoded(r, f, path);
    if (r->special & (OPEN | RESEALED)) {
        change_in_place(r, path);
        calyx_free(f);
        check(r, calyx_load(path, NULL, &f, &why), &why);
    }
    print_expectations(r, f, text);
    calyx_free(f);
    printf("%s\n", path);
}

int main(int count, char **arguments) {
    if (count != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", arguments[0]);
        return 2;
    }
    memset(thousand, '.', 1000);
    for (size_t i = 0; i < sizeof recipes / sizeof recipes[0]; i++)
        make(&recipes[i], arguments[1]);
    return 0;
}
