/*
 * The format is what doc/FORMAT.md says, and stays so: the files in test/golden
 * are read and written as they were when they were made, the examples in the
 * document are true, and a reader that was written from the document alone
 * agrees with the library.
 */
#define _DEFAULT_SOURCE /* mkdtemp, opendir */
#include <calyx/calyx.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hash/hash.h"
#include "kind/kind.h"
#include "kind/line.h"
#include "support.h"

enum { PATH_BYTES = 1000, LONGEST_KEY = 1200 };

/* ---- Files --------------------------------------------------------------- */

/* Where the project's own files are: here, less this file's place in it. */
static void source_path(char path[PATH_BYTES], const char *name) {
#ifdef CALYX_SOURCE_DIR
    snprintf(path, PATH_BYTES, "%s/%s", CALYX_SOURCE_DIR, name);
#else
    const size_t here = strlen(__FILE__) - strlen("test/unit/golden.c");
    snprintf(path, PATH_BYTES, "%.*s%s", (int)here, __FILE__, name);
#endif
}

static char scratch[PATH_BYTES]; /* a folder for this run */

static void scratch_path(char path[PATH_BYTES], const char *name) {
    if (snprintf(path, PATH_BYTES, "%s/%s", scratch, name) >= PATH_BYTES)
        fail_msg("the name of the scratch folder is too long");
}

/* Saving waits for the disk; in memory there is none. */
static int make_scratch(void **state) {
    (void)state;
    const char *memory = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
    snprintf(scratch, sizeof scratch, "%s/calyx-golden-XXXXXX",
             temporary_or(memory));
    return mkdtemp(scratch) ? 0 : -1;
}

static int drop_scratch(void **state) {
    (void)state;
    static const char *const names[] = {"filter", "keys", "answers", "errors"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char path[PATH_BYTES];
        scratch_path(path, names[i]);
        unlink(path);
    }
    return rmdir(scratch);
}

/* Bytes of a file, at an address that can be viewed, with a 0 after them. */
struct bytes {
    uint8_t *at;
    size_t size;
};

static struct bytes take_bytes(size_t size) {
    struct bytes b = {aligned_alloc(64, (size / 64 + 1) * 64), size};
    if (!b.at) fail_msg("no memory for a test");
    b.at[size] = 0;
    return b;
}

static struct bytes read_bytes(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file) fail_msg("%s: cannot be opened", path);
    fseek(file, 0, SEEK_END);
    struct bytes b = take_bytes((size_t)ftell(file));
    rewind(file);
    assert_int_equal(fread(b.at, 1, b.size, file), b.size);
    fclose(file);
    return b;
}

static void write_bytes(const char *path, const void *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    if (!file) fail_msg("%s: cannot be opened", path);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* ---- Golden files and what they must answer ------------------------------ */

struct golden {
    char path[PATH_BYTES];
    struct bytes file, text;
    uint8_t key[16];
    calyx_open_options how; /* with the key, if there is one */
};

/* The value of the next line that starts with this word (any, if NULL); moves
 * `*at` after that line. NULL at the end. */
static const char *next_line(const char **at, const char *word, char *line,
                             size_t most) {
    while (**at) {
        const char *const start = *at, *const end = strchr(start, '\n');
        const size_t length = end ? (size_t)(end - start) : strlen(start);
        assert_true(length < most);
        *at = start + length + (end != NULL);
        memcpy(line, start, length);
        line[length] = 0;
        if (!word) return line;
        const size_t skip = strlen(word);
        if (strncmp(line, word, skip) == 0 && line[skip] == ' ')
            return line + skip + 1;
    }
    return NULL;
}

enum { LINE = 2100 };

static uint64_t number_of(const struct golden *g, const char *word) {
    char line[LINE];
    const char *at = (const char *)g->text.at;
    const char *value = next_line(&at, word, line, sizeof line);
    if (!value) fail_msg("%s: nothing is said of '%s'", g->path, word);
    return strtoull(value, NULL, 10);
}

/* A key as the texts have it: bytes after 0x, otherwise text. */
static size_t parse_key(const char *from, uint8_t bytes[LONGEST_KEY]) {
    if (strncmp(from, "0x", 2) != 0) {
        memcpy(bytes, from, strlen(from));
        return strlen(from);
    }
    size_t size = 0;
    unsigned byte;
    for (from += 2; sscanf(from, "%2x", &byte) == 1; from += 2)
        bytes[size++] = (uint8_t)byte;
    return size;
}

static struct golden open_golden(const char *name) {
    struct golden g = {.how = {0}};
    char place[100], path[PATH_BYTES], line[LINE];
    snprintf(place, sizeof place, "test/golden/%.80s", name);
    source_path(g.path, place);
    strcpy(path, g.path);
    g.file = read_bytes(path);
    strcpy(strstr(path, ".calyx"), ".txt");
    g.text = read_bytes(path);
    const char *at = (const char *)g.text.at;
    const char *key = next_line(&at, "key", line, sizeof line);
    uint8_t bytes[LONGEST_KEY];
    if (key) {
        assert_int_equal(parse_key(key, bytes), sizeof g.key);
        memcpy(g.key, bytes, sizeof g.key);
    }
    return g;
}

static void close_golden(struct golden *g) {
    free(g->file.at);
    free(g->text.at);
}

/* Do something with every golden file whose hash there is in this build. */
static void with_each(void (*act)(const struct golden *)) {
    char folder[PATH_BYTES];
    source_path(folder, "test/golden");
    DIR *dir = opendir(folder);
    if (!dir) fail_msg("%s: cannot be opened", folder);
    size_t seen = 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const char *end = strstr(entry->d_name, ".calyx");
        if (!end || end[6]) continue;
        struct golden g = open_golden(entry->d_name);
        char line[LINE];
        const char *at = (const char *)g.text.at;
        const char *hash = next_line(&at, "hash", line, sizeof line);
        if (strcmp(hash, "siphash") == 0) g.how.key = g.key;
        if (hash_named(hash)) act(&g);
        close_golden(&g);
        seen++;
    }
    closedir(dir);
    assert_true(seen >= 49); /* as many as on the first day */
}

/* ---- Every way to open one ----------------------------------------------- */

typedef calyx_status opener(const struct golden *g, calyx_filter **f,
                            calyx_error *why);

static calyx_status by_load(const struct golden *g, calyx_filter **f,
                            calyx_error *why) {
    return calyx_load(g->path, &g->how, f, why);
}

static calyx_status by_map(const struct golden *g, calyx_filter **f,
                           calyx_error *why) {
    return calyx_map(g->path, CALYX_READ, &g->how, f, why);
}

static calyx_status by_decode(const struct golden *g, calyx_filter **f,
                              calyx_error *why) {
    return calyx_decode(g->file.at, g->file.size, &g->how, f, why);
}

static calyx_status by_view(const struct golden *g, calyx_filter **f,
                            calyx_error *why) {
    return calyx_view(g->file.at, g->file.size, &g->how, f, why);
}

static bool get_bytes(void *context, void *buffer, size_t size) {
    struct bytes *left = context;
    if (size > left->size) return false;
    memcpy(buffer, left->at, size);
    left->at += size;
    left->size -= size;
    return true;
}

static calyx_status by_read(const struct golden *g, calyx_filter **f,
                            calyx_error *why) {
    struct bytes left = g->file;
    return calyx_read(get_bytes, &left, &g->how, f, why);
}

static opener *const openers[] = {by_load, by_map, by_decode, by_view, by_read};
enum { OPENERS = sizeof openers / sizeof openers[0] };

static bool is_in_place(opener *open) {
    return open == by_map || open == by_view;
}

static calyx_filter *opened(const struct golden *g, opener *open) {
    calyx_filter *f = NULL;
    calyx_error why;
    if (open(g, &f, &why) != CALYX_OK) fail_msg("%s: %s", g->path, why.text);
    return f;
}

/* ---- They answer as they did --------------------------------------------- */

static void check_fact(const char *word, const char *value,
                       const calyx_filter *f) {
    const calyx_info info = info_of(f);
    const uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(word, "kind") == 0) assert_string_equal(value, info.kind);
    if (strcmp(word, "hash") == 0) assert_string_equal(value, info.hash);
    if (strcmp(word, "seed") == 0) assert_int_equal(number, info.seed);
    if (strcmp(word, "capacity") == 0) assert_int_equal(number, info.capacity);
    if (strcmp(word, "items") == 0) assert_int_equal(number, info.items);
    if (strcmp(word, "bits") == 0) assert_int_equal(number, info.bits);
    if (strcmp(word, "bytes") == 0) assert_int_equal(number, info.bytes);
    if (strcmp(word, "parts") == 0) assert_int_equal(number, info.parts);
    if (strcmp(word, "probes") == 0) assert_int_equal(number, info.probes);
    if (strcmp(word, "strict") == 0) assert_int_equal(number, info.strict);
    if (strcmp(word, "allowed") == 0) assert_int_equal(number, info.allowed);
    if (strcmp(word, "growth") == 0)
        assert_true(strtod(value, NULL) == info.growth);
    if (strcmp(word, "fpr") == 0) assert_true(strtod(value, NULL) == info.fpr);
    if (strcmp(word, "comment") == 0)
        assert_string_equal(value, calyx_comment(f));
}

static void check_lookup(const struct golden *g, const char *word,
                         const char *value, const calyx_filter *f) {
    uint8_t key[LONGEST_KEY];
    unsigned long count = 0;
    const bool counted = strcmp(word, "count") == 0;
    if (counted) {
        char *end;
        count = strtoul(value, &end, 10);
        value = end + 1;
    }
    const size_t size = parse_key(value, key);
    const bool wanted = strcmp(word, "lacks") != 0;
    if (calyx_has(f, key, size) != wanted)
        fail_msg("%s: does not answer %d for %s", g->path, wanted, value);
    if (counted) assert_int_equal(calyx_count(f, key, size), count);
    if (size == 8) assert_int_equal(calyx_has_u64(f, load64(key)), wanted);
}

static bool is_lookup(const char *word) {
    return strcmp(word, "has") == 0 || strcmp(word, "lacks") == 0 ||
           strcmp(word, "count") == 0;
}

static void check_text(const struct golden *g, const calyx_filter *f) {
    char line[LINE];
    const char *at = (const char *)g->text.at;
    while (next_line(&at, NULL, line, sizeof line)) {
        char *value = strchr(line, ' ');
        assert_non_null(value);
        *value++ = 0;
        if (is_lookup(line))
            check_lookup(g, line, value, f);
        else
            check_fact(line, value, f);
    }
}

static void check_answers(const struct golden *g) {
    for (int i = 0; i < OPENERS; i++) {
        calyx_filter *f = opened(g, openers[i]);
        check_text(g, f);
        const bool unsealed =
            is_in_place(openers[i]) && !number_of(g, "sealed");
        assert_int_equal(calyx_verify(f, NULL),
                         unsealed ? CALYX_UNSEALED : CALYX_OK);
        calyx_free(f);
    }
}

static void golden_files_answer_as_they_did(void **state) {
    (void)state;
    with_each(check_answers);
}

/* ---- Written again, they are the same ------------------------------------ */

static struct bytes encoded(const calyx_filter *f) {
    struct bytes b = take_bytes((size_t)calyx_encoded_size(f));
    assert_ok(calyx_encode(f, b.at, b.size, NULL));
    return b;
}

static struct bytes saved(const calyx_filter *f) {
    char path[PATH_BYTES];
    scratch_path(path, "filter");
    assert_ok(calyx_save(f, path, NULL));
    return read_bytes(path);
}

/* Except those that were changed in place, and become as new. */
static void check_writing(const struct golden *g) {
    const bool pages = number_of(g, "alignment") == 4096;
    for (int i = 0; i < OPENERS; i++) {
        calyx_filter *f = opened(g, openers[i]);
        struct bytes again = pages ? saved(f) : encoded(f);
        assert_int_equal(again.size, g->file.size);
        if (!number_of(g, "changed") &&
            memcmp(again.at, g->file.at, again.size) != 0)
            fail_msg("%s: written again (way %d), it is another", g->path, i);
        calyx_free(f);
        free(again.at);
    }
}

static void golden_files_written_again_are_the_same_bytes(void **state) {
    (void)state;
    with_each(check_writing);
}

/* The same filter with the other alignment. */
static calyx_filter *crossed(const struct golden *g, const calyx_filter *f,
                             bool pages) {
    struct golden other = *g;
    other.file = pages ? encoded(f) : saved(f);
    calyx_filter *made = opened(&other, by_decode);
    free(other.file.at);
    return made;
}

static void check_crossing(const struct golden *g) {
    const bool pages = number_of(g, "alignment") == 4096;
    calyx_filter *f = opened(g, by_load), *other = crossed(g, f, pages);
    check_text(g, other);
    struct bytes back = pages ? saved(other) : encoded(other);
    assert_int_equal(back.size, g->file.size);
    if (!number_of(g, "changed"))
        assert_memory_equal(back.at, g->file.at, back.size);
    calyx_free(f);
    calyx_free(other);
    free(back.at);
}

static void alignments_can_be_crossed(void **state) {
    (void)state;
    with_each(check_crossing);
}

/* ---- Secrets and limits -------------------------------------------------- */

static void check_secret(const struct golden *g) {
    if (!g->how.key) return;
    struct golden other = *g;
    other.key[15] ^= 1;
    for (int i = 0; i < OPENERS; i++) {
        calyx_filter *f = NULL;
        other.how.key = other.key;
        assert_int_equal(openers[i](&other, &f, NULL), CALYX_WRONG_KEY);
        other.how.key = NULL;
        assert_int_equal(openers[i](&other, &f, NULL), CALYX_WRONG_KEY);
    }
}

static void golden_files_with_a_secret_key_do_not_open_without_it(
    void **state) {
    (void)state;
    with_each(check_secret);
}

static void check_fullness(const struct golden *g) {
    if (!strstr(g->path, "-full.calyx")) return;
    calyx_filter *f = opened(g, by_load);
    assert_int_equal(info_of(f).items, info_of(f).capacity);
    const char *at = (const char *)g->text.at;
    char line[LINE];
    uint8_t key[LONGEST_KEY];
    const char *absent = next_line(&at, "lacks", line, sizeof line);
    assert_int_equal(calyx_add(f, key, parse_key(absent, key), NULL),
                     CALYX_FULL);
    calyx_free(f);
}

static void full_golden_files_refuse_another_key(void **state) {
    (void)state;
    with_each(check_fullness);
}

/* ---- The document is true ---------------------------------------------- */

/* The lines of doc/FORMAT.md between ```word and ```. */
static char *block_of_document(const char *word) {
    char path[PATH_BYTES], fence[40];
    source_path(path, "doc/FORMAT.md");
    const struct bytes document = read_bytes(path);
    snprintf(fence, sizeof fence, "\n```%s\n", word);
    char *start = strstr((char *)document.at, fence);
    if (!start) fail_msg("doc/FORMAT.md has no block '%s'", word);
    start += strlen(fence);
    const size_t length = (size_t)(strstr(start, "\n```") + 1 - start);
    memmove(document.at, start, length);
    document.at[length] = 0;
    return (char *)document.at;
}

/* Lines of an offset, 16 bytes, and the same as text between bars. */
static struct bytes parse_hexdump(const char *dump) {
    struct bytes b = take_bytes(4096);
    size_t size = 0;
    char line[LINE];
    while (next_line(&dump, NULL, line, sizeof line)) {
        char *end;
        assert_int_equal(strtoul(line, &end, 16), size);
        for (unsigned long byte; *(end += strspn(end, " ")) != '|';) {
            byte = strtoul(end, &end, 16);
            assert_true(byte < 256 && size < b.size);
            b.at[size++] = (uint8_t)byte;
        }
    }
    b.size = size;
    return b;
}

static void the_worked_example_is_a_filter(void **state) {
    (void)state;
    char *dump = block_of_document("hexdump");
    struct bytes b = parse_hexdump(dump);
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_decode(b.at, b.size, NULL, &f, &why) != CALYX_OK)
        fail_msg("%s", why.text);

    assert_true(has(f, "rose") && has(f, "iris"));
    assert_false(has(f, "tulip") || has(f, ""));
    assert_string_equal(calyx_comment(f), "two flowers");
    assert_string_equal(info_of(f).kind, "line");
    assert_int_equal(info_of(f).capacity, 70);
    assert_int_equal(info_of(f).items, 2);

    calyx_filter *made =
        make_filter((calyx_options){.capacity = 70, .fpr = 0.05});
    add(made, "rose");
    add(made, "iris");
    assert_ok(calyx_set_comment(made, "two flowers"));
    struct bytes again = encoded(made);
    assert_int_equal(again.size, b.size);
    assert_memory_equal(again.at, b.at, b.size);
    calyx_free(made);
    calyx_free(f);
    free(again.at);
    free(b.at);
    free(dump);
}

static void the_hashes_in_format_md_agree_with_the_code(void **state) {
    (void)state;
    char *block = block_of_document("hashes"), line[LINE];
    const char *at = block;
    int lines = 0;
    for (; next_line(&at, NULL, line, sizeof line); lines++) {
        char name[16] = "";
        unsigned long long seed, wanted;
        assert_int_equal(
            sscanf(line, "%15s %llu 0x%16llx", name, &seed, &wanted), 3);
        const struct hash *hash = hash_named(name);
        assert_non_null(hash);
        char *text = strchr(line, '"') + 1;
        struct secret secret = {.seed = seed};
        for (int i = 0; hash->keyed && i < 16; i++) secret.key[i] = (uint8_t)i;
        assert_int_equal(hash->one(&secret, text, strlen(text) - 1), wanted);
    }
    assert_int_equal(lines, 27);
    free(block);
}

/* Set number i of those for this number of columns, which keys with more probes
 * than columns take twice, is this one. */
static void assert_set(unsigned columns, unsigned i, unsigned set) {
    for (unsigned more = 0; more <= LINE_COLUMNS; more += LINE_COLUMNS) {
        const struct line_choice of = line_choices[columns + more];
        const uint64_t hash = (uint64_t)i << 5;
        assert_true((hash & ~(uint64_t)of.mask) == 0);
        assert_int_equal(of.twice, more > 0);
        assert_int_equal(line_set(hash, of), set);
    }
}

static void assert_sets(unsigned columns, unsigned sets) {
    assert_int_equal(line_choices[columns].mask >> 5, sets - 1);
    assert_int_equal(line_choices[8 + columns].mask >> 5, sets - 1);
}

/* Numbers of columns are decimal, sets hexadecimal. */
static void the_column_sets_in_format_md_agree_with_the_code(void **state) {
    (void)state;
    char *block = block_of_document("sets"), *at = block, *end;
    unsigned columns = 0, sets = 0;
    for (;; at = end) {
        const unsigned number = (unsigned)strtoul(at, &end, 0);
        const bool is_set = end != at && memchr(at, 'x', (size_t)(end - at));
        if (is_set) {
            assert_set(columns, sets, number);
            if (columns < 4) assert_set(8 - columns, sets, 0xFF ^ number);
            sets++;
            continue;
        }
        if (columns > 0)
            assert_sets(columns, sets), assert_sets(8 - columns, sets);
        if (end == at) break;
        assert_int_equal(number, ++columns);
        sets = 0;
    }
    assert_int_equal(columns, 4);
    assert_set(8, 0, 0xFF);
    assert_sets(8, 1);
    free(block);
}

/* What makes the rate what it is. */
static void columns_are_taken_equally_often_and_pairs_nearly_so(void **state) {
    (void)state;
    for (unsigned k = 1; k <= LINE_COLUMNS; k++) {
        const struct line_choice of = line_choices[k];
        const unsigned sets = (of.mask >> 5) + 1u;
        for (unsigned v = 0; v < LINE_COLUMNS; v++)
            for (unsigned w = 0; w <= v; w++) {
                unsigned both = 0;
                for (uint64_t i = 0; i < sets; i++) {
                    const uint32_t set = line_set(i << 5, of);
                    both += set >> v & set >> w & 1;
                }
                if (v == w)
                    assert_int_equal(both * 8, sets * k);
                else
                    assert_true(abs((int)(both * 8 * 7) -
                                    (int)(sets * k * (k - 1))) < 8 * 7 * 3 / 2);
            }
    }
}

/* A filter of one block that has nothing but this hash. */
static calyx_filter *filter_of_hash(const char *kind, unsigned probes,
                                    uint64_t hash) {
    calyx_filter *f = make_filter((calyx_options){
        .kind = kind, .bits = 512, .probes = probes, .capacity = 1});
    assert_ok(calyx_add_hashes(f, &hash, 1, NULL, NULL));
    return f;
}

/* Kind, probes and hash, then the bits that are set, from the first on. */
static void the_bits_in_format_md_agree_with_the_code(void **state) {
    (void)state;
    char *block = block_of_document("places"), line[LINE];
    const char *at = block;
    int lines = 0;
    for (; next_line(&at, NULL, line, sizeof line); lines++) {
        char kind[16] = "";
        unsigned probes;
        unsigned long long hash;
        int used = 0;
        assert_int_equal(
            sscanf(line, "%15s %u 0x%16llx %n", kind, &probes, &hash, &used),
            3);
        calyx_filter *f = filter_of_hash(kind, probes, hash);
        uint64_t bytes = 0;
        const uint8_t *bits = calyx_bits(f, &bytes);
        assert_int_equal(bytes, 64);
        char *place = line + used;
        for (unsigned bit = 0; bit < 512; bit++)
            if (bits[bit / 8] >> bit % 8 & 1)
                assert_int_equal(strtoul(place, &place, 10), bit);
        assert_int_equal(*place, 0);
        calyx_free(f);
    }
    assert_int_equal(lines, 24);
    free(block);
}

/* Numbered columns: a number, then its value; `wanted` is that value. */
static void check_columns(const char *word, unsigned count,
                          uint64_t (*wanted)(unsigned)) {
    char *block = block_of_document(word), *at = block;
    unsigned found = 0;
    for (char *end;; found++) {
        const unsigned number = (unsigned)strtoul(at, &end, 10);
        if (end == at) break;
        assert_int_equal(strtoull(end, &at, 16), wanted(number));
    }
    assert_int_equal(found, count);
    free(block);
}

static uint64_t salt_of(unsigned w) {
    return line_salt[w];
}

static void the_salts_in_format_md_agree_with_the_code(void **state) {
    (void)state;
    check_columns("salts", LINE_COLUMNS, salt_of);
}

/* ---- A reader in Python, written from the document ----------------------- */

/* Text that grows. */
struct paper {
    char *text;
    size_t length, room;
};

static void append(struct paper *to, const char *text, size_t length) {
    if (to->length + length + 1 > to->room) {
        to->room = 2 * (to->length + length + 1);
        to->text = realloc(to->text, to->room);
        if (!to->text) fail_msg("no memory for a test");
    }
    memcpy(to->text + to->length, text, length);
    to->length += length;
    to->text[to->length] = 0;
}

/* Lookups for the reader, and what it shall print. */
struct exam {
    struct paper keys, answers;
};

static void ask(struct exam *exam, const calyx_filter *f, const uint8_t *key,
                size_t size) {
    char line[2 * LONGEST_KEY + 2];
    for (size_t i = 0; i < size; i++) sprintf(line + 2 * i, "%02x", key[i]);
    line[2 * size] = '\n';
    append(&exam->keys, line, 2 * size + 1);
    if (calyx_has(f, key, size)) append(&exam->answers, line, 2 * size + 1);
}

static int run_python(const char *options, const char *filter) {
    char program[PATH_BYTES], keys[PATH_BYTES], answers[PATH_BYTES],
        errors[PATH_BYTES], command[6 * PATH_BYTES];
    source_path(program, "examples/read_filter.py");
    scratch_path(keys, "keys");
    scratch_path(answers, "answers");
    scratch_path(errors, "errors");
    snprintf(
        command, sizeof command, "%s -B '%s' -x %s '%s' <'%s' >'%s' 2>'%s'",
        access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3" : "python3",
        program, options, filter, keys, answers, errors);
    const int status = system(command);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void compare_with_python(struct exam *exam, const char *options,
                                const char *filter) {
    char path[PATH_BYTES];
    scratch_path(path, "keys");
    append(&exam->keys, "", 0);
    append(&exam->answers, "", 0);
    write_bytes(path, exam->keys.text, exam->keys.length);
    const int code = run_python(options, filter);
    scratch_path(path, "errors");
    struct bytes errors = read_bytes(path);
    if (code != (exam->answers.length == 0) || errors.size)
        fail_msg("%s: examples/read_filter.py exits with %d: %s(For a new kind "
                 "see step 1 of 'Add a kind' in CONTRIBUTING.md.)",
                 filter, code, (const char *)errors.at);
    scratch_path(path, "answers");
    struct bytes answers = read_bytes(path);
    if (strcmp((const char *)answers.at, exam->answers.text) != 0)
        fail_msg("%s: the reader answers otherwise", filter);
    free(errors.at);
    free(answers.at);
}

/* A sanitizer watches our lookups; the reader, which is Python, runs without
 * it, and with CALYX_LONG once more. */
static void check_exam(struct exam *exam, const char *options,
                       const char *filter) {
    if (!SANITIZED || getenv("CALYX_LONG"))
        compare_with_python(exam, options, filter);
    free(exam->keys.text);
    free(exam->answers.text);
}

/* Mostly short keys, but of every length class of the hashes. */
static size_t random_key(struct generator *from, uint8_t key[LONGEST_KEY]) {
    static const uint64_t most[] = {4, 9, 17, 33, 129, 241, LONGEST_KEY, 41};
    const size_t size = random_below(from, most[random_below(from, 8)]);
    for (size_t i = 0; i < size; i++) key[i] = (uint8_t)random_word(from);
    return size;
}

static void query_absent_keys(struct exam *exam, const calyx_filter *f,
                              struct generator *from, int n) {
    uint8_t key[LONGEST_KEY];
    for (int i = 0; i < n; i++) ask(exam, f, key, random_key(from, key));
}

static void option_of_key(char option[40], const uint8_t *key) {
    option[0] = 0;
    for (int i = 0; key && i < 16; i++)
        sprintf(option + strlen(option), i ? "%02x" : "-k %02x", key[i]);
}

static void examine_golden(const struct golden *g) {
    calyx_filter *f = opened(g, by_map);
    struct exam exam = {{0}, {0}};
    struct generator from = {g->file.size};
    char line[LINE], option[40];
    const char *at = (const char *)g->text.at;
    while (next_line(&at, NULL, line, sizeof line)) {
        uint8_t key[LONGEST_KEY];
        const char *last = strrchr(line, ' ') + 1;
        *strchr(line, ' ') = 0;
        if (is_lookup(line)) ask(&exam, f, key, parse_key(last, key));
    }
    query_absent_keys(&exam, f, &from, 100);
    option_of_key(option, g->how.key);
    check_exam(&exam, option, g->path);
    calyx_free(f);
}

static void python_agrees_on_golden_files(void **state) {
    (void)state;
    with_each(examine_golden);
}

/* By the builder, if keys cannot be added to a filter of this kind. */
static calyx_filter *filter_of_keys(calyx_options want, int keys,
                                    struct generator *from) {
    const bool adds =
        calyx_kind_can(want.kind ? want.kind : "line") & CALYX_CAN_ADD;
    const calyx_builder_options options = {.filter = want};
    calyx_filter *f = adds ? make_filter(want) : NULL;
    calyx_builder *b = NULL;
    uint8_t key[LONGEST_KEY];
    if (!adds) assert_ok(calyx_builder_new(&options, &b, NULL));
    for (int i = 0; i < keys; i++) {
        const size_t size = random_key(from, key);
        assert_ok(adds ? calyx_add(f, key, size, NULL)
                       : calyx_builder_add(b, key, size, NULL));
    }
    if (!adds) assert_ok(calyx_builder_finish(b, &f, NULL));
    calyx_builder_free(b);
    return f;
}

static void examine(calyx_options want, int keys) {
    struct exam exam = {{0}, {0}};
    struct generator from = {want.seed + (uint64_t)keys}, same = from;
    char path[PATH_BYTES], option[40];
    calyx_filter *f = filter_of_keys(want, keys, &from);
    scratch_path(path, "filter");
    assert_ok(calyx_save(f, path, NULL));
    query_absent_keys(&exam, f, &same, keys); /* which are the keys again */
    query_absent_keys(&exam, f, &from, keys);
    option_of_key(option, want.key);
    check_exam(&exam, option, path);
    calyx_free(f);
}

static void python_agrees_on_random_keys(void **state) {
    (void)state;
    const uint8_t key[16] = "sixteen letters";
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        for (const char *const *hash = calyx_hashes(); *hash; hash++) {
            const bool keyed = hash_named(*hash)->keyed;
            const calyx_options want = {
                .kind = *kind,
                .hash = *hash,
                .seed = keyed ? 0 : UINT64_C(0xFEDCBA9876543210),
                .key = keyed ? key : NULL,
                .capacity = is_table(*kind) ? 300 : 200,
                .fpr = 0.05, /* so that many are wrong */
                .growth = calyx_kind_can(*kind) & CALYX_CAN_GROW &&
                                  strcmp(*hash, "xxh3") == 0
                              ? 2
                              : 0,
            };
            examine(want, 300);
        }
}

/* A body of several chunks, each with a checksum of its own. */
static void python_agrees_on_chunks(void **state) {
    (void)state;
    examine((calyx_options){.bits = 10000000, .fpr = 0.01}, 100);
}

/* Any byte that is not what it was is noticed, by the reader and by us. */
static void python_refuses_damage(void **state) {
    (void)state;
    struct golden g = open_golden("line-seed.calyx");
    char path[PATH_BYTES];
    scratch_path(path, "keys");
    write_bytes(path, "\n", 1);
    scratch_path(path, "filter");
    static const size_t places[] = {0,   8,   12,  40,  100, 150, 195,
                                    250, 260, 320, 330, 384, 480};
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        /* slot 1 does not count yet, and may be anything */
        const bool matters = places[i] < g.file.size - 64;
        calyx_filter *f = NULL;
        g.file.at[places[i]] ^= 16;
        write_bytes(path, g.file.at, g.file.size);
        const int code = run_python("", path);
        if ((code == 2) != matters)
            fail_msg("byte %zu: the reader exits with %d", places[i], code);
        assert_int_equal(calyx_load(path, NULL, &f, NULL) != CALYX_OK, matters);
        if (!matters) calyx_free(f);
        g.file.at[places[i]] ^= 16;
    }
    write_bytes(path, g.file.at, g.file.size - 1);
    assert_int_equal(run_python("", path), 2);
    close_golden(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(golden_files_answer_as_they_did),
        cmocka_unit_test(golden_files_written_again_are_the_same_bytes),
        cmocka_unit_test(alignments_can_be_crossed),
        cmocka_unit_test(golden_files_with_a_secret_key_do_not_open_without_it),
        cmocka_unit_test(full_golden_files_refuse_another_key),
        cmocka_unit_test(the_worked_example_is_a_filter),
        cmocka_unit_test(the_hashes_in_format_md_agree_with_the_code),
        cmocka_unit_test(the_column_sets_in_format_md_agree_with_the_code),
        cmocka_unit_test(columns_are_taken_equally_often_and_pairs_nearly_so),
        cmocka_unit_test(the_bits_in_format_md_agree_with_the_code),
        cmocka_unit_test(the_salts_in_format_md_agree_with_the_code),
    };
    /* Files have the same bytes at each level: those above show it. */
    const struct CMUnitTest of_reader[] = {
        cmocka_unit_test(python_agrees_on_golden_files),
        cmocka_unit_test(python_agrees_on_random_keys),
        cmocka_unit_test(python_agrees_on_chunks),
        cmocka_unit_test(python_refuses_damage),
    };
    int failed = cmocka_run_group_tests(tests, make_scratch, drop_scratch);
    if (at_best_level())
        failed += cmocka_run_group_tests(of_reader, make_scratch, drop_scratch);
    return failed;
}
