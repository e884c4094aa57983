#include "server/plain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/key_options.h"

struct plain_filter {
    struct cluster *server;
    const struct url *address;
    struct call call; /* its memory serves all commands */
    const uint8_t *key;
    struct plain_place place;
    calyx_layout *layout;
    calyx_info info;
    uint8_t *list;  /* the allow list; NULL: there is none */
    bool announced; /* the hash says that this generation was changed */
    uint8_t *marks; /* for each piece: was it read? */
};

/* ---- The hash ------------------------------------------------------------ */

static enum plain_kind kind_of_type(const char *type) {
    if (!type) return PLAIN_UNKNOWN;
    if (strcmp(type, "none") == 0) return PLAIN_NOTHING;
    return strcmp(type, "hash") == 0 ? PLAIN_FILTER : PLAIN_OTHER;
}

enum plain_kind plain_kind_of(struct cluster *server, struct call *call,
                              const struct name *key) {
    call_for(call, "TYPE", key);
    struct reply *const reply = cluster_query(server, call, false);
    const char *const error = reply_error(reply);
    if (error && strncmp(error, "NOPERM", 6) != 0)
        fail_reply(cluster_address(server), call, error);
    const enum plain_kind kind = kind_of_type(reply_text(reply, NULL));
    reply_free(reply);
    return kind;
}

struct name plain_piece_name(const struct plain_place *place, uint64_t number) {
    const size_t size = place->name.size;
    struct name name = {alloc_memory(size + GENERATION_BYTES + 24), 0};
    memcpy(name.text, place->name.text, size);
    name.size = size + (size_t)sprintf(name.text + size, ":%s:%" PRIu64,
                                       place->generation, number);
    return name;
}

static bool read_number(const struct reply *reply, uint64_t *number) {
    const char *const text = reply_text(reply, NULL);
    return text && count_from(text, number);
}

/* A text of the right size; it is part of the names of keys. */
static bool read_generation(const struct reply *reply, char *generation) {
    size_t size;
    const char *const text = reply_text(reply, &size);
    if (!text || size != GENERATION_BYTES || strlen(text) != size) return false;
    strcpy(generation, text);
    return true;
}

static _Noreturn void fail_here(const struct plain_filter *f, const char *why) {
    fail("%s: %s", f->address->shown, why);
}

static void read_place(struct plain_filter *f) {
    struct plain_place *const p = &f->place;
    static const char *const fields[] = {"calyx", "generation", "bytes",
                                         "piece", "items"};
    enum { FIELDS = sizeof fields / sizeof *fields };
    call_for(&f->call, "HMGET", &p->name);
    for (size_t i = 0; i < FIELDS; i++) call_text(&f->call, fields[i]);
    struct reply *const reply = cluster_demand(f->server, &f->call);
    uint64_t version;
    if (reply_parts(reply) != FIELDS) fail_answer(f->address, &f->call, "");
    if (!read_generation(reply_part(reply, 1), p->generation))
        fail_here(f, "there is no filter under this key");
    if (!read_number(reply_part(reply, 0), &version))
        fail_here(f, "the filter under this key is not complete: it is being "
                     "pushed, or a part of it was lost; push it again");
    if (version != 1)
        fail_here(f, "the plain filter under this key has a layout that this "
                     "version of calyx does not know");
    if (!read_number(reply_part(reply, 2), &p->bytes) ||
        !read_number(reply_part(reply, 3), &p->piece) || p->bytes == 0 ||
        p->piece == 0 || p->piece > PLAIN_PIECE_MOST ||
        p->piece % CALYX_LINE_BYTES || p->bytes / p->piece >= PLAIN_PIECES_MOST)
        fail_here(f,
                  "the hash under this key does not describe a plain filter");
    if (!read_number(reply_part(reply, 4), &p->items)) p->items = 0;
    reply_free(reply);
}

static void changed_field(const struct plain_place *p, char field[32]) {
    snprintf(field, 32, "changed:%s", p->generation);
}

bool plain_is_changed(struct plain_filter *f, bool *is) {
    char field[32], now[GENERATION_BYTES + 1] = "";
    changed_field(&f->place, field);
    call_for(&f->call, "HMGET", &f->place.name);
    call_text(&f->call, field);
    call_text(&f->call, "items");
    call_text(&f->call, "generation");
    struct reply *const reply = cluster_demand(f->server, &f->call);
    if (reply_parts(reply) != 3) fail_answer(f->address, &f->call, "");
    *is = reply_text(reply_part(reply, 0), NULL) != NULL;
    read_number(reply_part(reply, 1), &f->place.items);
    const bool has = read_generation(reply_part(reply, 2), now);
    reply_free(reply);
    return has && strcmp(now, f->place.generation) == 0;
}

/* ---- Reading ------------------------------------------------------------- */

/* A command about a piece, its node, and its reply. */
struct errand {
    uint64_t piece;
    struct reply *reply;
    int node;
};

/* What makes the command of errand i; its numbers are written to `texts`. */
struct command_texts {
    char number[CALYX_LINE_BYTES * 8][24];
};
typedef void make_call(struct plain_filter *f, const void *what, size_t i,
                       const struct name *piece, struct command_texts *texts);

static void call_guard(struct plain_filter *f, const void *what, size_t i,
                       const struct name *piece, struct command_texts *texts) {
    (void)what, (void)i, (void)texts;
    call_for(&f->call, "GETRANGE", piece);
    call_text(&f->call, "0");
    snprintf(texts->number[0], sizeof texts->number[0], "%d",
             GENERATION_BYTES - 1);
    call_text(&f->call, texts->number[0]);
}

static struct reply *run_errand(struct plain_filter *f, struct errand *e,
                                make_call *make, const void *what, size_t i,
                                bool post) {
    struct command_texts texts;
    const struct name name = plain_piece_name(&f->place, e->piece);
    make(f, what, i, &name, &texts);
    struct reply *reply = NULL;
    if (post)
        e->node = cluster_post(f->server, &f->call);
    else
        reply = cluster_query(f->server, &f->call, false);
    free(name.text);
    return reply;
}

/* Fail if the server refuses a command; what `make` made is named. */
static void expect_no_error(struct plain_filter *f, const struct errand *e,
                            make_call *make, const void *what, size_t i) {
    const char *const error = reply_error(e->reply);
    struct command_texts texts;
    if (!error) return;
    const struct name name = plain_piece_name(&f->place, e->piece);
    make(f, what, i, &name, &texts);
    fail_reply(f->address, &f->call, error);
}

/* One errand for each piece that has a mark. */
static struct errand *list_guards(const struct plain_filter *f, size_t *count) {
    const uint64_t pieces = plain_pieces(&f->place);
    struct errand *const guards = alloc_memory((size_t)pieces * sizeof *guards);
    *count = 0;
    for (uint64_t i = 0; i < pieces; i++)
        if (f->marks[i]) guards[(*count)++] = (struct errand){.piece = i};
    return guards;
}

static void post_all(struct plain_filter *f, struct errand *errands, size_t n,
                     make_call *make, const void *what) {
    for (size_t i = 0; i < n; i++)
        run_errand(f, &errands[i], make, what, i, true);
}

/* False if a reply did not come. */
static bool receive_all(struct plain_filter *f, struct errand *errands,
                        size_t n) {
    bool all = true;
    for (size_t i = 0; i < n; i++) {
        errands[i].reply = cluster_receive(f->server, errands[i].node);
        all &= errands[i].reply != NULL;
    }
    return all;
}

/* Commands without a reply, since a connection broke or a slot moved, are sent
 * again, one by one. */
static void repeat_missing(struct plain_filter *f, struct errand *errands,
                           size_t n, make_call *make, const void *what) {
    for (size_t i = 0; i < n; i++)
        if (!errands[i].reply)
            errands[i].reply = run_errand(f, &errands[i], make, what, i, false);
}

static bool is_guard(const struct plain_filter *f, const struct reply *reply) {
    size_t size;
    const char *const text = reply_text(reply, &size);
    return text && size == GENERATION_BYTES &&
           memcmp(text, f->place.generation, size) == 0;
}

/* All commands of a list at once, and after them the guards of the pieces that
 * they are about: one round trip. If one of the commands has to be repeated,
 * the guards are, too. Returns whether all guards are there; marks are left for
 * the pieces that lack theirs. */
static bool run_errands(struct plain_filter *f, struct errand *errands,
                        size_t n, make_call *make, const void *what) {
    size_t count, lost = 0;
    memset(f->marks, 0, (size_t)plain_pieces(&f->place));
    for (size_t i = 0; i < n; i++) f->marks[errands[i].piece] = 1;
    struct errand *const guards = list_guards(f, &count);
    post_all(f, errands, n, make, what);
    post_all(f, guards, count, call_guard, NULL);
    cluster_send(f->server);
    const bool all = receive_all(f, errands, n);
    receive_all(f, guards, count);
    repeat_missing(f, errands, n, make, what);
    for (size_t i = 0; !all && i < count; i++) {
        reply_free(guards[i].reply);
        guards[i].reply = NULL;
    }
    repeat_missing(f, guards, count, call_guard, NULL);
    for (size_t i = 0; i < n; i++)
        expect_no_error(f, &errands[i], make, what, i);
    for (size_t i = 0; i < count; i++) {
        expect_no_error(f, &guards[i], call_guard, NULL, i);
        f->marks[guards[i].piece] = !is_guard(f, guards[i].reply);
        lost += f->marks[guards[i].piece];
        reply_free(guards[i].reply);
    }
    free(guards);
    return lost == 0;
}

static uint64_t piece_at(const struct plain_filter *f, uint64_t at) {
    return at / f->place.piece;
}

/* Where a byte of the file is in its string. */
static uint64_t offset_at(const struct plain_filter *f, uint64_t at) {
    return GENERATION_BYTES + at % f->place.piece;
}

static void call_range(struct plain_filter *f, const void *what, size_t i,
                       const struct name *piece, struct command_texts *texts) {
    const struct plain_range *const r = (const struct plain_range *)what + i;
    const uint64_t from = offset_at(f, r->at);
    call_for(&f->call, "GETRANGE", piece);
    snprintf(texts->number[0], 24, "%" PRIu64, from);
    snprintf(texts->number[1], 24, "%" PRIu64, from + r->size - 1);
    call_text(&f->call, texts->number[0]);
    call_text(&f->call, texts->number[1]);
}

/* Ranges that lie within a piece each. */
static bool read_within(struct plain_filter *f, const struct plain_range *r,
                        size_t n) {
    struct errand *const errands = alloc_memory((n + 1) * sizeof *errands);
    for (size_t i = 0; i < n; i++)
        errands[i] = (struct errand){.piece = piece_at(f, r[i].at)};
    bool whole = run_errands(f, errands, n, call_range, r);
    for (size_t i = 0; i < n; i++) {
        size_t size = 0;
        const char *const bytes = reply_text(errands[i].reply, &size);
        if (!bytes) fail_here(f, "a piece of the filter is not a string");
        if (size == r[i].size)
            memcpy(r[i].bytes, bytes, size);
        else
            whole = false;
        reply_free(errands[i].reply);
    }
    free(errands);
    return whole;
}

bool plain_read(struct plain_filter *f, const struct plain_range *ranges,
                size_t n) {
    struct plain_range *within = NULL;
    size_t room = 0, count = 0;
    for (size_t i = 0; i < n; i++)
        for (struct plain_range left = ranges[i]; left.size;) {
            const uint64_t to_end = f->place.piece - left.at % f->place.piece;
            const size_t some = left.size < to_end ? left.size : (size_t)to_end;
            within = with_room(within, &room, count + 1, sizeof *within);
            within[count++] = (struct plain_range){left.at, some, left.bytes};
            left.at += some;
            left.size -= some;
            left.bytes += some;
        }
    const bool whole = read_within(f, within, count);
    free(within);
    return whole;
}

/* ---- Opening ------------------------------------------------------------- */

static bool find_section(const struct plain_filter *f, calyx_section_type type,
                         uint32_t *index, calyx_section *section) {
    for (*index = 0; calyx_layout_section(f->layout, *index, section); ++*index)
        if (section->type == type) return true;
    return false;
}

static void expect_section(struct plain_filter *f, uint32_t index,
                           const uint8_t *bytes, const calyx_section *s) {
    calyx_error why;
    if (calyx_layout_check(f->layout, index, 0, bytes, (size_t)s->bytes,
                           &why) != CALYX_OK)
        fail_here(f, why.text);
}

static void expect_end(struct plain_filter *f) {
    calyx_section end;
    uint32_t index;
    find_section(f, CALYX_SECTION_END, &index, &end);
    if (end.at != f->place.bytes)
        fail("%s: damaged: the hash says %" PRIu64
             " bytes, and the header of the file %" PRIu64,
             f->address->shown, f->place.bytes, end.at);
}

/* False if the filter is replaced meanwhile. */
static bool read_layout(struct plain_filter *f) {
    uint8_t first[CALYX_HEADER_MOST];
    const uint64_t bytes = f->place.bytes;
    const struct plain_range start = {
        0, bytes < sizeof first ? (size_t)bytes : sizeof first, first};
    calyx_error why;
    calyx_section list;
    uint32_t index;
    if (!plain_read(f, &start, 1)) return false;
    if (calyx_layout_new(first, start.size, &f->layout, &why) != CALYX_OK ||
        (f->key && calyx_layout_set_key(f->layout, f->key, &why) != CALYX_OK))
        fail_here(f, why.text);
    expect_end(f);
    calyx_layout_describe(f->layout, NULL, &f->info);
    if (!find_section(f, CALYX_SECTION_ALLOW, &index, &list)) return true;
    f->list = alloc_memory((size_t)list.bytes + 1);
    const struct plain_range all = {list.at, (size_t)list.bytes, f->list};
    if (!plain_read(f, &all, 1)) return false;
    expect_section(f, index, f->list, &list);
    return true;
}

static void drop_layout(struct plain_filter *f) {
    calyx_layout_free(f->layout);
    free(f->list);
    free(f->marks);
    f->layout = NULL;
    f->list = f->marks = NULL;
    f->announced = false;
}

static _Noreturn void fail_lost(const struct plain_filter *f) {
    fail("%s: pieces of the filter are missing: the server evicted or lost "
         "them; push it again",
         f->address->shown);
}

/* Until no swap comes in between. */
static void open_now(struct plain_filter *f) {
    enum { MOST_TRIES = 100 };
    char before[GENERATION_BYTES + 1] = "";
    for (int i = 0; i < MOST_TRIES; i++) {
        drop_layout(f);
        strcpy(before, f->place.generation);
        read_place(f);
        if (strcmp(before, f->place.generation) == 0) fail_lost(f);
        f->marks = alloc_memory((size_t)plain_pieces(&f->place) + 1);
        if (read_layout(f)) return;
    }
    fail_here(f, "the filter is replaced faster than it can be read");
}

static char *copy_options(const struct plain_filter *f) {
    const char *const text = key_options_of_layout(f->layout);
    return copy_text(text ? text : "");
}

void plain_renew(struct plain_filter *f) {
    char *const before = copy_options(f);
    open_now(f);
    char *const now = copy_options(f);
    if (strcmp(before, now) != 0)
        fail("%s: the filter was replaced by one with other options for keys: "
             "'%s', not '%s'; run this again",
             f->address->shown, now, before);
    free(before);
    free(now);
}

struct plain_filter *plain_open(struct cluster *server,
                                const struct url *address, const uint8_t *key) {
    struct plain_filter *const f = alloc_memory(sizeof *f);
    *f = (struct plain_filter){.server = server,
                               .address = address,
                               .key = key,
                               .place.name = {address->key, address->key_size}};
    open_now(f);
    return f;
}

void plain_expect_lookups(const struct plain_filter *f) {
    uint64_t at[CALYX_LINES_MOST], hash;
    if (calyx_layout_hash(f->layout, "", 0, &hash) != CALYX_OK)
        fail_here(f, "the filter was made with a secret key: give --key-file");
    if (calyx_layout_lines(f->layout, 0, hash, at) == 0)
        fail("%s: a lookup in a %s filter learns what to read only while it "
             "reads; pull it, and query the file",
             f->address->shown, f->info.kind);
}

void plain_close(struct plain_filter *f) {
    drop_layout(f);
    call_free(&f->call);
    free(f);
}

const struct plain_place *plain_place_of(const struct plain_filter *f) {
    return &f->place;
}

const struct url *plain_address(const struct plain_filter *f) {
    return f->address;
}

const calyx_layout *plain_layout(const struct plain_filter *f) {
    return f->layout;
}

/* ---- Lookups ------------------------------------------------------------- */

/* Keys that are sent at once. */
enum { MOST_KEYS = 4096 };

struct plain_lookups {
    const calyx_key *keys;
    uint64_t hashes[MOST_KEYS];
    size_t active[MOST_KEYS]; /* keys that have no answer yet */
    uint32_t part[MOST_KEYS]; /* that has the next lines of a key */
    size_t count;
    struct plain_range *lines;
    size_t line_room;
    uint8_t *bytes;
    size_t byte_room;
};

static void start_lookups(const struct plain_filter *f, struct plain_lookups *l,
                          const calyx_key *keys, size_t n) {
    l->keys = keys;
    l->count = n;
    for (size_t i = 0; i < n; i++) {
        l->active[i] = i;
        l->part[i] = 0;
        calyx_layout_hash(f->layout, keys[i].data, keys[i].size, &l->hashes[i]);
    }
}

static void free_lookups(struct plain_lookups *l) {
    free(l->lines);
    free(l->bytes);
    free(l);
}

/* The lines of the active keys in their parts, in sequence. */
static bool read_lines(struct plain_filter *f, struct plain_lookups *l) {
    size_t n = 0;
    for (size_t i = 0; i < l->count; i++) {
        uint64_t at[CALYX_LINES_MOST];
        const size_t key = l->active[i];
        const size_t lines =
            calyx_layout_lines(f->layout, l->part[key], l->hashes[key], at);
        l->lines =
            with_room(l->lines, &l->line_room, n + lines, sizeof *l->lines);
        for (size_t j = 0; j < lines; j++)
            l->lines[n++] = (struct plain_range){at[j], CALYX_LINE_BYTES, NULL};
    }
    l->bytes = with_room(l->bytes, &l->byte_room, n * CALYX_LINE_BYTES, 1);
    for (size_t i = 0; i < n; i++)
        l->lines[i].bytes = l->bytes + i * CALYX_LINE_BYTES;
    return read_within(f, l->lines, n);
}

static bool look_into(struct plain_filter *f, struct plain_lookups *l,
                      uint32_t parts, bool *found) {
    size_t left = 0;
    if (!read_lines(f, l)) return false;
    const uint8_t *lines = l->bytes;
    for (size_t i = 0; i < l->count; i++) {
        const size_t key = l->active[i];
        const uint64_t hash = l->hashes[key];
        const uint32_t part = l->part[key];
        uint64_t at[CALYX_LINES_MOST];
        found[key] ^= calyx_layout_has(f->layout, part, hash, lines);
        l->part[key] = calyx_layout_next(f->layout, part, hash, lines);
        if (l->part[key] && l->part[key] < parts) l->active[left++] = key;
        lines +=
            CALYX_LINE_BYTES * calyx_layout_lines(f->layout, part, hash, at);
    }
    l->count = left;
    return true;
}

/* In the first parts. False if the filter was replaced. */
static bool try_has(struct plain_filter *f, struct plain_lookups *l,
                    uint32_t parts, bool *found) {
    memset(found, 0, l->count * sizeof *found);
    while (parts && l->count)
        if (!look_into(f, l, parts, found)) return false;
    return true;
}

static void take_back(const struct plain_filter *f, const calyx_key *keys,
                      size_t n, bool *found) {
    for (size_t i = 0; f->list && i < n; i++)
        if (found[i] &&
            calyx_layout_allows(f->layout, keys[i].data, keys[i].size))
            found[i] = false;
}

void plain_has(struct plain_filter *f, const calyx_key *keys, size_t n,
               bool *found) {
    struct plain_lookups *const l = alloc_memory(sizeof *l);
    *l = (struct plain_lookups){0};
    for (size_t from = 0; from < n;) {
        const size_t some = n - from < MOST_KEYS ? n - from : MOST_KEYS;
        start_lookups(f, l, keys + from, some);
        if (try_has(f, l, f->info.parts, found + from)) {
            take_back(f, keys + from, some, found + from);
            from += some;
        } else {
            plain_renew(f);
            from = 0; /* never a mix of two generations */
        }
    }
    free_lookups(l);
}

/* ---- Additions ----------------------------------------------------------- */

/* The bits to set for a key, in its line. */
struct key_bits {
    uint64_t at;
    uint8_t line[CALYX_LINE_BYTES];
    size_t key; /* its index */
};

/* Redis counts bits from the high one of each byte on. */
static void call_addition(struct plain_filter *f, const void *what, size_t i,
                          const struct name *piece,
                          struct command_texts *texts) {
    const struct key_bits *const a = (const struct key_bits *)what + i;
    const uint64_t from = 8 * offset_at(f, a->at);
    size_t n = 0;
    call_for(&f->call, "BITFIELD", piece);
    for (unsigned byte = 0; byte < CALYX_LINE_BYTES; byte++)
        for (unsigned bits = a->line[byte]; bits; bits &= bits - 1) {
            const unsigned bit = 7 - (unsigned)__builtin_ctz(bits);
            char *const text = texts->number[n++];
            snprintf(text, 24, "%" PRIu64, from + 8 * byte + bit);
            call_text(&f->call, "SET");
            call_text(&f->call, "u1");
            call_text(&f->call, text);
            call_text(&f->call, "1");
        }
}

/* Was a bit missing? */
static bool is_fresh(struct plain_filter *f, const struct reply *reply) {
    bool fresh = false;
    const size_t n = reply_parts(reply);
    if (n == 0) fail_answer(f->address, &f->call, "");
    for (size_t i = 0; i < n; i++) {
        long long old;
        if (!reply_number(reply_part(reply, i), &old))
            fail_answer(f->address, &f->call, "");
        fresh |= old == 0;
    }
    return fresh;
}

/* Remove a piece that was gone, and that the addition made again with nothing
 * else in it. No client takes it for the filter, since it has no guard. */
static void drop_lost_pieces(struct plain_filter *f) {
    for (uint64_t i = 0; i < plain_pieces(&f->place); i++) {
        if (!f->marks[i]) continue;
        const struct name name = plain_piece_name(&f->place, i);
        cluster_unlink(f->server, &f->call, &name);
        free(name.text);
    }
}

/* Say in the hash that checksums no longer fit. If the hash was lost, this
 * makes it again: then it is removed. If the filter was replaced, the field is
 * removed, as the push may have removed it before. */
static void announce(struct plain_filter *f) {
    char field[32];
    if (f->announced) return;
    changed_field(&f->place, field);
    call_for(&f->call, "HSET", &f->place.name);
    call_text(&f->call, field);
    call_text(&f->call, "1");
    reply_free(cluster_demand(f->server, &f->call));
    f->announced = true;
}

static bool is_current(struct plain_filter *f) {
    char now[GENERATION_BYTES + 1] = "", field[32];
    call_for(&f->call, "HGET", &f->place.name);
    call_text(&f->call, "generation");
    struct reply *const reply = cluster_demand(f->server, &f->call);
    const bool is = read_generation(reply, now);
    reply_free(reply);
    if (is && strcmp(now, f->place.generation) == 0) return true;
    changed_field(&f->place, field);
    call_for(&f->call, "HDEL", &f->place.name);
    call_text(&f->call, field);
    reply_free(cluster_demand(f->server, &f->call));
    if (is) return false;
    fail_here(f, "there is no filter under this key any more");
}

static void count_fresh(struct plain_filter *f, size_t fresh) {
    char text[24];
    if (!fresh) return;
    snprintf(text, sizeof text, "%zu", fresh);
    call_for(&f->call, "HINCRBY", &f->place.name);
    call_text(&f->call, "items");
    call_text(&f->call, text);
    reply_free(cluster_demand(f->server, &f->call));
}

/* Set the bits of the active keys in the newest part. */
static bool set_bits(struct plain_filter *f, const struct plain_lookups *l,
                     struct key_bits *additions, bool *fresh) {
    const uint32_t newest = f->info.parts - 1;
    struct errand *const errands =
        alloc_memory((l->count + 1) * sizeof *errands);
    for (size_t i = 0; i < l->count; i++) {
        struct key_bits *const a = &additions[i];
        const uint64_t hash = l->hashes[l->active[i]];
        uint64_t at[CALYX_LINES_MOST];
        calyx_layout_lines(f->layout, newest, hash, at);
        *a = (struct key_bits){.at = at[0], .key = l->active[i]};
        calyx_layout_add(f->layout, newest, hash, a->line);
        errands[i] = (struct errand){.piece = piece_at(f, a->at)};
    }
    const bool whole =
        run_errands(f, errands, l->count, call_addition, additions);
    for (size_t i = 0; i < l->count; i++) {
        fresh[additions[i].key] = is_fresh(f, errands[i].reply);
        reply_free(errands[i].reply);
    }
    free(errands);
    return whole;
}

/* Add the keys that no older part has. False if the filter was replaced,
 * perhaps before the bits were set. */
static bool try_add(struct plain_filter *f, struct plain_lookups *l,
                    struct key_bits *additions, bool *fresh) {
    const size_t n = l->count;
    size_t sum = 0;
    if (!try_has(f, l, f->info.parts - 1, fresh)) return false;
    l->count = 0;
    for (size_t i = 0; i < n; i++)
        if (!fresh[i]) l->active[l->count++] = i;
    memset(fresh, 0, n);
    announce(f);
    const bool whole = set_bits(f, l, additions, fresh);
    if (!whole) drop_lost_pieces(f);
    if (!is_current(f) || !whole) return false;
    for (size_t i = 0; i < n; i++) sum += fresh[i];
    count_fresh(f, sum);
    return true;
}

static void expect_addable(const struct plain_filter *f) {
    uint8_t line[CALYX_LINES_MOST * CALYX_LINE_BYTES] = {0};
    if (f->list)
        fail_here(f, "the filter has an allow list, and cannot be added to as "
                     "plain strings");
    if (f->info.strict)
        fail_here(f, "the filter was made to let no more in than its capacity, "
                     "which plain strings cannot count");
    if (calyx_layout_add(f->layout, f->info.parts - 1, 0, line) != CALYX_OK)
        fail("%s: as plain strings only a filter whose keys have all bits in "
             "one line can be added to, such as kind line; this one is of kind "
             "%s",
             f->address->shown, f->info.kind);
}

void plain_add(struct plain_filter *f, const calyx_key *keys, size_t n,
               bool *fresh) {
    struct plain_lookups *const l = alloc_memory(sizeof *l);
    struct key_bits *const additions =
        alloc_memory(MOST_KEYS * sizeof *additions);
    *l = (struct plain_lookups){0};
    expect_addable(f);
    for (size_t from = 0; from < n;) {
        const size_t some = n - from < MOST_KEYS ? n - from : MOST_KEYS;
        start_lookups(f, l, keys + from, some);
        if (try_add(f, l, additions, fresh + from)) {
            from += some;
        } else {
            plain_renew(f);
            expect_addable(f);
        }
    }
    free(additions);
    free_lookups(l);
}
