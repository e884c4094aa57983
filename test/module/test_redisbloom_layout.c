/*
 * module/redisbloom*.c against test/module/redisbloom_data.py, which was
 * written apart from it: the same bits, counts and answers, for every case that
 * the script made. Then what only one side can show: batches, memory that runs
 * out, chunks that come wrongly, numbers that cannot be.
 *
 *     test_redisbloom_layout FOLDER        which the script has filled
 */
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "foreign/redisbloom_chain.h"
#include "support.h"

/* ---- Files of the script ------------------------------------------------- */

enum { MOST_CASES = 64, MOST_KEYS = 4096 };

struct bytes {
    uint8_t *at;
    size_t size;
};

struct keys {
    calyx_key key[MOST_KEYS];
    size_t n;
};

struct file {
    char name[256];
    struct bytes all;
};

static const char *folder;
static struct file files[MOST_CASES];
static size_t cases;

static uint64_t little(const uint8_t *p, size_t bytes) {
    uint64_t x = 0;
    for (size_t i = bytes; i > 0; i--) x = x << 8 | p[i - 1];
    return x;
}

static double real(const uint8_t *p) {
    const uint64_t word = little(p, 8);
    double x;
    memcpy(&x, &word, sizeof x);
    return x;
}

static void read_files(void) {
    DIR *all = opendir(folder);
    assert_non_null(all);
    for (const struct dirent *e; (e = readdir(all));) {
        char path[4096];
        if (e->d_name[0] == '.') continue;
        assert_true(cases < MOST_CASES);
        struct file *f = &files[cases++];
        snprintf(f->name, sizeof f->name, "%s", e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        FILE *in = fopen(path, "rb");
        assert_non_null(in);
        f->all.at = malloc(8 << 20);
        assert_non_null(f->all.at);
        f->all.size = fread(f->all.at, 1, 8 << 20, in);
        assert_true(f->all.size > 0 && feof(in));
        fclose(in);
    }
    closedir(all);
    assert_true(cases > 20);
}

static struct bytes section(const struct file *f, const char *tag) {
    const uint8_t *p = f->all.at, *end = p + f->all.size;
    while (p < end) {
        const size_t size = (size_t)little(p + 4, 4);
        if (strcmp((const char *)p, tag) == 0)
            return (struct bytes){(uint8_t *)p + 8, size};
        p += 8 + size;
    }
    fail_msg("%s has no section %s", f->name, tag);
    return (struct bytes){0};
}

static const struct file *file_named(const char *name) {
    for (size_t i = 0; i < cases; i++)
        if (strcmp(files[i].name, name) == 0) return &files[i];
    fail_msg("there is no case %s", name);
    return NULL;
}

static struct keys *keys_in(const struct file *f, const char *tag) {
    const struct bytes in = section(f, tag);
    static struct keys kept[2];
    struct keys *keys = &kept[strcmp(tag, "key") == 0];
    keys->n = 0;
    for (size_t at = 0; at < in.size;) {
        const size_t size = (size_t)little(in.at + at, 8);
        assert_true(keys->n < MOST_KEYS);
        keys->key[keys->n++] = (calyx_key){in.at + at + 8, size};
        at += 8 + size;
    }
    return keys;
}

/* ---- Values in memory ---------------------------------------------------- */

static void put_bytes(void *context, const void *bytes, size_t size) {
    struct bytes *out = context;
    out->at = realloc(out->at, out->size + size + 1);
    assert_non_null(out->at);
    memcpy(out->at + out->size, bytes, size);
    out->size += size;
}

static void put_unsigned(void *context, uint64_t value) {
    uint8_t word[8];
    for (size_t i = 0; i < 8; i++) word[i] = (uint8_t)(value >> 8 * i);
    put_bytes(context, word, 8);
}

static void put_double(void *context, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    put_unsigned(context, word);
}

static void put_string(void *context, const void *bytes, size_t size) {
    put_unsigned(context, size);
    put_bytes(context, bytes, size);
}

static bool get_unsigned(void *context, uint64_t *value) {
    struct bytes *in = context;
    if (in->size < 8) return false;
    *value = little(in->at, 8);
    in->at += 8;
    in->size -= 8;
    return true;
}

static bool get_double(void *context, double *value) {
    uint64_t word;
    if (!get_unsigned(context, &word)) return false;
    memcpy(value, &word, sizeof word);
    return true;
}

static void *get_string(void *context, size_t *size) {
    struct bytes *in = context;
    uint64_t n;
    if (!get_unsigned(in, &n) || n > in->size) return NULL;
    void *string = malloc((size_t)n + 1);
    assert_non_null(string);
    memcpy(string, in->at, (size_t)n);
    in->at += n;
    in->size -= (size_t)n;
    *size = (size_t)n;
    return string;
}

static calyx_status load(struct bytes from, int encoding, struct chain **out,
                         calyx_error *why) {
    return chain_load(
        &(struct rdb_reader){get_unsigned, get_double, get_string, &from, NULL},
        encoding, NULL, out, why);
}

static struct bytes save(const struct chain *c) {
    struct bytes out = {0};
    chain_save(
        c, &(struct rdb_writer){put_unsigned, put_double, put_string, &out});
    return out;
}

static struct chain *loaded(const struct file *f, const char *tag,
                            int encoding) {
    calyx_error why = {0};
    struct chain *c;
    if (load(section(f, tag), encoding, &c, &why) != CALYX_OK)
        fail_msg("%s: %s", f->name, why.text);
    return c;
}

static void assert_same(const struct file *f, struct bytes a, struct bytes b,
                        const char *what) {
    if (a.size != b.size || memcmp(a.at, b.at, a.size) != 0)
        fail_msg("%s: %s differ", f->name, what);
}

static void assert_saved_as(const struct file *f, const struct chain *c,
                            const char *tag) {
    const struct bytes saved = save(c);
    assert_same(f, saved, section(f, tag), tag);
    free(saved.at);
}

/* ---- Against the script -------------------------------------------------- */

static int encoding_of(const struct file *f) {
    return (int)little(section(f, "how").at + 24, 4);
}

/* NULL if it cannot be made any more. */
static struct chain *made_anew(const struct file *f) {
    const uint8_t *how = section(f, "how").at;
    const uint64_t capacity = little(how, 8);
    struct chain *c;
    if (!capacity) return NULL;
    assert_ok(chain_new(capacity, fmin(real(how + 8), CHAIN_MOST_ERROR),
                        (uint32_t)little(how + 16, 4),
                        (uint32_t)little(how + 20, 4), NULL, &c, NULL));
    return c;
}

static void new_chains_get_the_same_bits(void **state) {
    (void)state;
    size_t made = 0;
    for (size_t i = 0; i < cases; i++) {
        struct chain *c = made_anew(&files[i]);
        if (!c) continue;
        const struct keys *keys = keys_in(&files[i], "key");
        const uint8_t *fresh = section(&files[i], "new").at;
        for (size_t k = 0; k < keys->n; k++) {
            bool added;
            assert_ok(chain_add(c, keys->key[k].data, keys->key[k].size, &added,
                                NULL));
            assert_int_equal(added, fresh[k]);
        }
        assert_saved_as(&files[i], c, "val");
        chain_free(c);
        made++;
    }
    assert_true(made > 10);
}

static void batches_on_a_chain_set_the_same_bits(void **state) {
    (void)state;
    for (size_t i = 0; i < cases; i++) {
        struct chain *c = made_anew(&files[i]);
        if (!c) continue;
        const struct keys *keys = keys_in(&files[i], "key");
        const uint8_t *wanted = section(&files[i], "new").at;
        bool fresh[MOST_KEYS];
        size_t done;
        assert_ok(chain_add_many(c, keys->key, keys->n, fresh, &done, NULL));
        assert_int_equal(done, keys->n);
        for (size_t k = 0; k < keys->n; k++)
            assert_int_equal(fresh[k], wanted[k]);
        assert_saved_as(&files[i], c, "val");
        chain_free(c);
    }
}

static void every_encoding_is_read_and_saved_as_4(void **state) {
    (void)state;
    unsigned seen = 0;
    for (size_t i = 0; i < cases; i++) {
        const int encoding = encoding_of(&files[i]);
        struct chain *c = loaded(&files[i], "val", encoding);
        assert_false(chain_is_partial(c));
        assert_saved_as(&files[i], c, "sav");
        struct chain *again = loaded(&files[i], "sav", CHAIN_ENCODING);
        assert_true(chain_digest(c) == chain_digest(again));
        chain_free(again);
        chain_free(c);
        seen |= 1u << encoding;
    }
    assert_int_equal(seen, 31); /* 0 to 4 */
}

static void loaded_chains_answer_the_same(void **state) {
    (void)state;
    for (size_t i = 0; i < cases; i++) {
        struct chain *c = loaded(&files[i], "val", encoding_of(&files[i]));
        const struct keys *keys = keys_in(&files[i], "key");
        const struct keys *others = keys_in(&files[i], "str");
        const uint8_t *answers = section(&files[i], "ans").at;
        bool found[MOST_KEYS];
        assert_int_equal(chain_has_many(c, keys->key, keys->n, NULL), keys->n);
        for (size_t k = 0; k < keys->n; k++)
            assert_true(chain_has(c, keys->key[k].data, keys->key[k].size));
        chain_has_many(c, others->key, others->n, found);
        for (size_t k = 0; k < others->n; k++) {
            assert_int_equal(found[k], answers[k]);
            assert_int_equal(
                chain_has(c, others->key[k].data, others->key[k].size),
                answers[k]);
        }
        chain_free(c);
    }
}

/* Full ones refuse at the same key. */
static void loaded_chains_grow_by_the_same_rules(void **state) {
    (void)state;
    size_t refused = 0;
    for (size_t i = 0; i < cases; i++) {
        struct chain *c = loaded(&files[i], "val", encoding_of(&files[i]));
        const struct keys *more = keys_in(&files[i], "str");
        const struct bytes wanted = section(&files[i], "fre");
        bool fresh[MOST_KEYS];
        size_t done;
        calyx_error why;
        const calyx_status status =
            chain_add_many(c, more->key, more->n, fresh, &done, &why);
        assert_int_equal(done, wanted.size);
        assert_int_equal(status == CALYX_OK, done == more->n);
        for (size_t k = 0; k < done; k++)
            assert_int_equal(fresh[k], wanted.at[k]);
        if (status != CALYX_OK && (c->options & CHAIN_NO_SCALING)) {
            assert_int_equal(status, CALYX_FULL);
            assert_string_equal(why.text, "non scaling filter is full");
            refused++;
        }
        assert_saved_as(&files[i], c, "end");
        chain_free(c);
    }
    assert_true(refused > 0);
}

/* ---- Dumps --------------------------------------------------------------- */

struct chunk {
    int64_t at;
    const uint8_t *bytes;
    size_t size;
};

static size_t chunks_in(struct bytes in, struct chunk *chunks, size_t most) {
    size_t n = 0;
    for (size_t at = 0; at < in.size; n++) {
        assert_true(n < most);
        chunks[n] =
            (struct chunk){(int64_t)little(in.at + at, 8), in.at + at + 16,
                           (size_t)little(in.at + at + 8, 8)};
        at += 16 + chunks[n].size;
    }
    return n;
}

static struct chunk chunks[1 << 14];

static struct chain *load_header(const struct file *f, const char *tag,
                                 size_t *n) {
    struct chain *c;
    calyx_error why;
    *n = chunks_in(section(f, tag), chunks, sizeof chunks / sizeof *chunks);
    assert_int_equal(chunks[0].at, 1);
    if (chain_load_header(chunks[0].bytes, chunks[0].size, NULL, &c, &why))
        fail_msg("%s: %s", f->name, why.text);
    uint64_t bytes;
    assert_ok(
        chain_header_bytes(chunks[0].bytes, chunks[0].size, &bytes, NULL));
    assert_int_equal(bytes, c->bytes);
    return c;
}

static void load_chunk(struct chain *c, const struct chunk *chunk) {
    bool changed;
    assert_ok(chain_load_chunk(c, chunk->at, chunk->bytes, chunk->size,
                               &changed, NULL));
    assert_true(changed);
}

static void a_dump_makes_the_same_chain(void **state) {
    (void)state;
    for (size_t i = 0; i < cases; i++) {
        size_t n;
        struct chain *c = load_header(&files[i], "dmp", &n);
        for (size_t k = 1; k < n; k++) {
            assert_true(chain_is_partial(c));
            load_chunk(c, &chunks[k]);
        }
        assert_false(chain_is_partial(c));
        /* the oldest headers do not say the growth */
        c->growth = (uint32_t)little(section(&files[i], "sav").at + 24, 8);
        assert_saved_as(&files[i], c, "sav");
        chain_free(c);
    }
}

static void a_dump_is_the_script_s(void **state) {
    (void)state;
    for (size_t i = 0; i < cases; i++) {
        struct chain *c = loaded(&files[i], "sav", CHAIN_ENCODING);
        struct bytes out = {0};
        uint8_t *header = malloc(chain_header_size(c));
        chain_dump_header(c, header);
        put_unsigned(&out, 1);
        put_string(&out, header, chain_header_size(c));
        int64_t at = 1;
        size_t size;
        const void *bytes;
        while ((bytes = chain_dump_chunk(c, 1000, &at, &size))) {
            put_unsigned(&out, (uint64_t)at);
            put_string(&out, bytes, size);
        }
        assert_true(at == 0 && size == 0);
        assert_same(&files[i], out, section(&files[i], "chk"), "chunks");
        free(header);
        free(out.at);
        chain_free(c);
    }
}

/* As RedisBloom answers; see its replies to BF.SCANDUMP. */
static void iterators_outside_a_dump_end_it(void **state) {
    (void)state;
    struct chain *c = loaded(file_named("default"), "sav", CHAIN_ENCODING);
    assert_int_equal(c->bytes, 144);
    static const int64_t outside[] = {0,       -1,        145,
                                      1000000, INT64_MAX, INT64_MIN};
    for (size_t i = 0; i < sizeof outside / sizeof *outside; i++) {
        int64_t at = outside[i];
        size_t size = 7;
        assert_null(chain_dump_chunk(c, CHAIN_MOST_CHUNK, &at, &size));
        assert_true(at == 0 && size == 0);
    }
    int64_t at = 100;
    size_t size;
    assert_ptr_equal(chain_dump_chunk(c, CHAIN_MOST_CHUNK, &at, &size),
                     c->link[0].body + 99);
    assert_true(at == 145 && size == 45);
    chain_free(c);
}

static void refuse_chunk(struct chain *c, int64_t at, const char *bytes,
                         const char *text) {
    calyx_error why;
    const uint64_t before = chain_digest(c);
    assert_int_not_equal(
        chain_load_chunk(c, at, bytes, strlen(bytes), NULL, &why), CALYX_OK);
    assert_int_equal(strncmp(why.text, text, strlen(text)), 0);
    assert_true(chain_digest(c) == before);
}

static void chunks_at_wrong_places_are_refused(void **state) {
    (void)state;
    struct chain *c = loaded(file_named("default"), "sav", CHAIN_ENCODING);
    refuse_chunk(c, 1, "data", "received bad data");
    refuse_chunk(c, 0, "data", "received bad data");
    refuse_chunk(c, -5, "data", "received bad data");
    refuse_chunk(c, INT64_MIN, "data", "received bad data");
    refuse_chunk(c, 3, "abcdef", "received bad data");
    refuse_chunk(c, 4, "data", "invalid offset - no link found");
    refuse_chunk(c, 149, "data", "invalid offset - no link found");
    refuse_chunk(c, 145, "", "invalid offset - no link found");
    refuse_chunk(c, INT64_MAX, "data", "invalid offset - no link found");
    refuse_chunk(c, 146, "data", "invalid chunk - Too big for current filter");
    bool changed;
    assert_ok(chain_load_chunk(c, 5, "data", 4, &changed, NULL));
    assert_true(changed);
    assert_ok(chain_load_chunk(c, 5, "data", 4, &changed, NULL));
    assert_false(changed);
    const struct keys *keys = keys_in(file_named("default"), "key");
    assert_int_equal(chain_has_many(c, keys->key, keys->n, NULL), keys->n);
    chain_free(c);
}

static void a_partial_chain_stays_partial(void **state) {
    (void)state;
    const struct file *f = file_named("grown");
    size_t n;
    calyx_error why;
    struct chain *c = load_header(f, "dmp", &n);
    for (size_t k = 1; k < n; k++) {
        if (k + 1 < n) { /* a gap */
            assert_int_equal(chain_load_chunk(c, chunks[k + 1].at,
                                              chunks[k + 1].bytes,
                                              chunks[k + 1].size, NULL, &why),
                             CALYX_BAD_ARGUMENT);
            assert_non_null(strstr(why.text, "are missing"));
        }
        assert_int_equal(chain_add(c, "x", 1, NULL, &why), CALYX_CANNOT);
        assert_int_equal(
            chain_add_many(c, &(calyx_key){"x", 1}, 1, NULL, NULL, &why),
            CALYX_CANNOT);

        struct bytes saved = save(c);
        struct chain *again, *copy;
        assert_ok(load(saved, CHAIN_ENCODING, &again, NULL));
        assert_true(again->arrived == c->arrived && chain_is_partial(again));
        assert_true(chain_digest(again) == chain_digest(c));
        assert_int_equal(load(saved, 3, &copy, NULL), CALYX_DAMAGED);
        assert_ok(chain_copy(again, &copy, NULL));
        assert_true(chain_digest(copy) == chain_digest(c));
        free(saved.at);
        chain_free(again);
        chain_free(copy);

        int64_t at = (int64_t)c->arrived + 1;
        size_t size;
        assert_null(chain_dump_chunk(c, 100, &at, &size));
        load_chunk(c, &chunks[k]);
    }
    assert_false(chain_is_partial(c));
    assert_saved_as(f, c, "sav");
    chain_free(c);
}

/* A dump of it would leave them out. */
static void a_partial_chain_has_no_bits_beyond_what_arrived(void **state) {
    (void)state;
    size_t n;
    calyx_error why;
    struct chain *c = load_header(file_named("grown"), "dmp", &n), *again;
    load_chunk(c, &chunks[1]);
    struct chain_link *const last = &c->link[c->links - 1];
    last->body[last->bytes - 1] = 1;
    struct bytes saved = save(c);
    assert_int_equal(load(saved, CHAIN_ENCODING, &again, &why), CALYX_DAMAGED);
    assert_null(again);
    assert_non_null(strstr(why.text, "is not zero"));
    free(saved.at);
    chain_free(c);
}

/* ---- Batches on bodies beyond the cache ---------------------------------- */

static void batches_on_a_chain_do_what_single_calls_do(void **state) {
    (void)state;
    static const uint32_t options[] = {CHAIN_GROWS, CHAIN_FORCE64,
                                       CHAIN_NOROUND, 0};
    enum { KEYS = SANITIZED ? 200000 : 600000, AT_ONCE = 1000 };
    for (size_t o = 0; o < 4; o++) {
        struct chain *one, *many;
        assert_ok(chain_new(50000, 1e-9, options[o], 2, NULL, &one, NULL));
        assert_ok(chain_copy(one, &many, NULL));
        struct generator from = {o};
        static uint64_t word[AT_ONCE];
        static calyx_key key[AT_ONCE];
        static bool fresh[AT_ONCE], found[AT_ONCE];
        for (size_t done = 0; done < KEYS; done += AT_ONCE) {
            for (size_t k = 0; k < AT_ONCE; k++) {
                word[k] = random_below(&from, 2 * KEYS); /* many come twice */
                key[k] = (calyx_key){&word[k], 1 + word[k] % 8};
            }
            chain_has_many(one, key, AT_ONCE, found);
            assert_ok(chain_add_many(many, key, AT_ONCE, fresh, NULL, NULL));
            for (size_t k = 0; k < AT_ONCE; k++) {
                bool added;
                if (fresh[k]) assert_false(found[k]);
                assert_ok(
                    chain_add(one, key[k].data, key[k].size, &added, NULL));
                assert_int_equal(added, fresh[k]);
            }
            assert_int_equal(chain_has_many(many, key, AT_ONCE, NULL), AT_ONCE);
        }
        assert_true(one->links > 1 && one->link[0].bytes > 256 << 10);
        assert_true(chain_digest(one) == chain_digest(many));
        chain_free(one);
        chain_free(many);
    }
}

/* ---- Numbers that cannot be ---------------------------------------------- */

/* Positions of values in an encoding-4 chain of one link. */
enum {
    ITEMS,
    LINKS,
    OPTIONS,
    GROWTH,
    ENTRIES,
    ERROR,
    HASHES,
    BPE,
    BITS,
    N2,
    STRING,
    NUMBERS
};

static void refuse_in(const char *name, size_t which, uint64_t value) {
    const struct bytes in = section(file_named(name), "sav");
    struct bytes changed = {malloc(in.size), in.size};
    struct chain *c;
    calyx_error why = {0};
    memcpy(changed.at, in.at, in.size);
    for (size_t i = 0; i < 8; i++)
        changed.at[8 * which + i] = (uint8_t)(value >> 8 * i);
    const calyx_status status = load(changed, CHAIN_ENCODING, &c, &why);
    if (status != CALYX_DAMAGED && status != CALYX_IO)
        fail_msg("%s: number %zu, %llx: %d", name, which,
                 (unsigned long long)value, status);
    assert_null(c);
    assert_true(why.text[0]);
    free(changed.at);
}

static void refuse_number(size_t which, uint64_t value) {
    refuse_in("default", which, value);
}

static void refuse_real(size_t which, double value) {
    uint64_t word;
    memcpy(&word, &value, sizeof word);
    refuse_number(which, word);
}

static void numbers_that_cannot_be_are_refused(void **state) {
    (void)state;
    static const uint64_t never[] = {0, UINT64_MAX, UINT64_C(1) << 63,
                                     UINT64_C(1) << 48, UINT64_C(1) << 32};
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        for (size_t which = ITEMS; which < NUMBERS; which++) {
            const bool fine = (which == N2 || which == OPTIONS) && !never[i];
            if (!fine) refuse_number(which, never[i]);
        }
    static const double rates[] = {0.,       -0.,       -1., 1.,  2.,
                                   INFINITY, -INFINITY, NAN, 0.9, 1e-320};
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++) {
        refuse_real(ERROR, rates[i]);
        refuse_real(BPE, rates[i]);
    }
    refuse_number(ITEMS, 59);
    refuse_number(LINKS, 2);
    refuse_number(OPTIONS, 16);
    refuse_number(ENTRIES, 200);
    refuse_number(HASHES, 7);
    refuse_number(HASHES, 200000000);
    refuse_number(BITS, 1151 - 64);
    refuse_number(N2, 1);
    refuse_number(N2, 11);
    refuse_number(N2, 64);
    refuse_number(STRING, 143);
    /* A processor shifts by 64 more as by none. */
    const uint8_t n2 = section(file_named("rounded"), "sav").at[8 * N2];
    assert_in_range(n2, 1, 48);
    refuse_in("rounded", N2, n2 + 64);
}

/* One more than it was made for, in the link and in the whole. */
static void more_items_than_entries_are_refused(void **state) {
    (void)state;
    const struct bytes in = section(file_named("default"), "sav");
    struct bytes changed = {malloc(in.size), in.size};
    struct chain *c;
    memcpy(changed.at, in.at, in.size);
    changed.at[0] = changed.at[in.size - 8] = 101;
    assert_int_equal(load(changed, CHAIN_ENCODING, &c, NULL), CALYX_DAMAGED);
    changed.at[0] = changed.at[in.size - 8] = 100;
    assert_ok(load(changed, CHAIN_ENCODING, &c, NULL));
    chain_free(c);
    free(changed.at);
}

static void the_data_may_end_anywhere(void **state) {
    (void)state;
    const struct bytes in = section(file_named("grown"), "sav");
    for (size_t size = 0; size < in.size; size++) {
        struct chain *c;
        assert_int_equal(
            load((struct bytes){in.at, size}, CHAIN_ENCODING, &c, NULL),
            CALYX_IO);
        assert_null(c);
    }
    struct chain *c;
    assert_int_equal(load(in, 5, &c, NULL), CALYX_TOO_NEW);
    assert_int_equal(load(in, -1, &c, NULL), CALYX_TOO_NEW);
}

static void headers_of_another_size_are_refused(void **state) {
    (void)state;
    size_t n;
    struct chain *c = load_header(file_named("grown"), "chk", &n);
    uint8_t header[4096] = {0};
    memcpy(header, chunks[0].bytes, chunks[0].size);
    chain_free(c);
    for (size_t size = 0; size < sizeof header; size++) {
        if (size == chunks[0].size) continue;
        calyx_error why;
        uint64_t bytes;
        assert_int_equal(chain_load_header(header, size, NULL, &c, &why),
                         CALYX_DAMAGED);
        assert_int_equal(chain_header_bytes(header, size, &bytes, &why),
                         CALYX_DAMAGED);
        assert_null(c);
    }
}

/* ---- Making and growing -------------------------------------------------- */

static void what_cannot_be_made_is_refused(void **state) {
    (void)state;
    static const struct {
        uint64_t capacity;
        double error;
        uint32_t options, growth;
        calyx_status status;
    } bad[] = {
        {0, 0.01, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, 0, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, -0.0, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, 1, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, INFINITY, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, NAN, CHAIN_GROWS, 2, CALYX_BAD_ARGUMENT},
        {100, 0.01, CHAIN_GROWS, 0, CALYX_BAD_ARGUMENT},
        {UINT64_MAX, 0.01, CHAIN_GROWS, 2, CALYX_CANNOT},
        {UINT64_C(1) << 48, 0.01, CHAIN_GROWS, 2, CALYX_CANNOT},
        {UINT64_C(1) << 48, 0.01, CHAIN_FORCE64, 2, CALYX_CANNOT},
        {48, 0.01, CHAIN_FORCE64 | CHAIN_ENTS_IS_BITS, 2, CALYX_CANNOT},
        {UINT64_MAX, 0.01, CHAIN_ENTS_IS_BITS, 2, CALYX_CANNOT},
        {1, 0.01, CHAIN_ENTS_IS_BITS, 2, CALYX_CANNOT},
        {100, 4.9e-324, CHAIN_GROWS, 2, CALYX_CANNOT}, /* halved: 0 */
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct chain *c;
        calyx_error why = {0};
        assert_int_equal(chain_new(bad[i].capacity, bad[i].error,
                                   bad[i].options, bad[i].growth, NULL, &c,
                                   &why),
                         bad[i].status);
        assert_null(c);
        assert_true(why.text[0]);
    }
}

/* The longest chain there can be: the rate is halved until it is no number.
 * It can still be saved and loaded. */
static void a_chain_grows_until_its_rate_is_zero(void **state) {
    (void)state;
    struct chain *c;
    calyx_error why;
    assert_ok(chain_new(1, 0.25, CHAIN_GROWS, 1, NULL, &c, NULL));
    calyx_status status = CALYX_OK;
    for (uint32_t i = 0; status == CALYX_OK; i++)
        status = chain_add(c, &i, sizeof i, NULL, &why);
    assert_int_equal(status, CALYX_CANNOT);
    assert_true(c->links > 1000 && c->links <= MOST_LINKS);
    assert_true(c->link[c->links - 1].hashes <= MOST_HASHES);
    const struct bytes saved = save(c);
    struct chain *again;
    assert_ok(load(saved, CHAIN_ENCODING, &again, NULL));
    assert_true(chain_digest(again) == chain_digest(c));
    free(saved.at);
    chain_free(again);
    chain_free(c);
}

/* The numbers of BF.INFO and BF.DEBUG that RedisBloom was seen to give. */
static void a_chain_describes_itself_as_redisbloom_does(void **state) {
    (void)state;
    static const struct {
        uint64_t capacity, size, bits;
        double error, ratio;
        uint32_t hashes, options, growth;
    } seen[] = {
        {100, 240, 1152, 0.01, 0.005, 8, CHAIN_GROWS, 2},
        {100, 216, 960, 0.01, 0.01, 7, CHAIN_FIXED, 0},
        {2, 104, 64, 0.01, 0.01, 7, CHAIN_FIXED, 0},
        {1000, 464, 2944, 0.25, 0.25, 3, CHAIN_FIXED, 0},
        {1000, 640, 4352, 0.25, 0.125, 4, CHAIN_GROWS, 2},
        {500, 192, 768, 0.5, 0.5, 2, CHAIN_FIXED, 0}, /* by 2.8 */
        {55, 144, 384, 0.1, 0.05, 5, CHAIN_GROWS, 3},
        {1000000, 1378568, 11027776, 0.01, 0.005, 8, CHAIN_GROWS, 2},
    };
    for (size_t i = 0; i < sizeof seen / sizeof *seen; i++) {
        struct chain *c;
        assert_ok(chain_new(seen[i].capacity, seen[i].error, seen[i].options,
                            seen[i].growth, NULL, &c, NULL));
        const struct chain_info info = chain_describe(c);
        assert_int_equal(info.capacity, seen[i].capacity);
        assert_int_equal(info.size, seen[i].size);
        assert_int_equal(info.growth, seen[i].growth);
        assert_int_equal(info.items, 0);
        assert_int_equal(info.links, 1);
        assert_int_equal(info.hash_bits, 64);
        assert_int_equal(8 * c->bytes, c->link[0].bits);
        assert_int_equal(c->link[0].bits, seen[i].bits);
        assert_int_equal(c->link[0].hashes, seen[i].hashes);
        assert_true(c->link[0].error == seen[i].ratio);
        chain_free(c);
    }
}

/* ---- Memory that runs out ------------------------------------------------ */

struct ration {
    size_t calls_left, taken;
};

static void *ration_take(void *context, size_t size, size_t alignment) {
    struct ration *r = context;
    (void)alignment;
    if (!r->calls_left) return NULL;
    r->calls_left--;
    r->taken++;
    return calloc(1, size);
}

static void ration_give(void *context, void *block, size_t size) {
    struct ration *r = context;
    assert_non_null(block);
    memset(block, 0xEE, size); /* a wrong size is seen */
    r->taken--;
    free(block);
}

static void *ration_string(void *context, size_t *size) {
    void **both = context;
    void *string = get_string(both[0], size);
    if (string) ((struct ration *)both[1])->taken++;
    return string;
}

static bool ration_unsigned(void *context, uint64_t *value) {
    return get_unsigned(((void **)context)[0], value);
}

static bool ration_double(void *context, double *value) {
    return get_double(((void **)context)[0], value);
}

static void a_chain_without_memory_changes_nothing(void **state) {
    (void)state;
    struct ration ration = {0};
    const calyx_memory memory = {ration_take, ration_give, &ration};
    bool all_went_well = false;
    for (size_t calls = 0; !all_went_well; calls++) {
        struct bytes in = section(file_named("grown"), "sav");
        void *both[] = {&in, &ration};
        struct chain *c = NULL, *copy = NULL, *dumped = NULL, *new = NULL;
        size_t n;
        ration.calls_left = calls;
        chain_new(10, 0.01, CHAIN_GROWS, 2, &memory, &new, NULL);
        calyx_status status =
            chain_load(&(struct rdb_reader){ration_unsigned, ration_double,
                                            ration_string, both, NULL},
                       CHAIN_ENCODING, &memory, &c, NULL);
        if (status == CALYX_OK) status = chain_copy(c, &copy, NULL);
        chain_free(load_header(file_named("grown"), "chk", &n));
        if (status == CALYX_OK)
            status = chain_load_header(chunks[0].bytes, chunks[0].size, &memory,
                                       &dumped, NULL);
        for (uint32_t i = 0; status == CALYX_OK && i < 1000; i++) {
            const uint64_t before = chain_digest(new);
            status = chain_add(new, &i, sizeof i, NULL, NULL);
            if (status != CALYX_OK) assert_true(chain_digest(new) == before);
        }
        all_went_well = status == CALYX_OK;
        if (!all_went_well) assert_int_equal(status, CALYX_NO_MEMORY);
        chain_free(c);
        chain_free(copy);
        chain_free(dumped);
        chain_free(new);
        assert_int_equal(ration.taken, 0);
    }
}

int main(int count, char **words) {
    if (count != 2) {
        fprintf(stderr, "usage: %s FOLDER\n", words[0]);
        return 2;
    }
    folder = words[1];
    read_files();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(new_chains_get_the_same_bits),
        cmocka_unit_test(batches_on_a_chain_set_the_same_bits),
        cmocka_unit_test(every_encoding_is_read_and_saved_as_4),
        cmocka_unit_test(loaded_chains_answer_the_same),
        cmocka_unit_test(loaded_chains_grow_by_the_same_rules),
        cmocka_unit_test(a_dump_makes_the_same_chain),
        cmocka_unit_test(a_dump_is_the_script_s),
        cmocka_unit_test(iterators_outside_a_dump_end_it),
        cmocka_unit_test(chunks_at_wrong_places_are_refused),
        cmocka_unit_test(a_partial_chain_stays_partial),
        cmocka_unit_test(a_partial_chain_has_no_bits_beyond_what_arrived),
        cmocka_unit_test(batches_on_a_chain_do_what_single_calls_do),
        cmocka_unit_test(numbers_that_cannot_be_are_refused),
        cmocka_unit_test(more_items_than_entries_are_refused),
        cmocka_unit_test(the_data_may_end_anywhere),
        cmocka_unit_test(headers_of_another_size_are_refused),
        cmocka_unit_test(what_cannot_be_made_is_refused),
        cmocka_unit_test(a_chain_grows_until_its_rate_is_zero),
        cmocka_unit_test(a_chain_describes_itself_as_redisbloom_does),
        cmocka_unit_test(a_chain_without_memory_changes_nothing),
    };
    const int failures = RUN_TESTS(tests);
    for (size_t i = 0; i < cases; i++) free(files[i].all.at);
    return failures;
}
