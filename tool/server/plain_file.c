/*
 * Whole files as plain strings: pushed, and pulled.
 *
 * Pieces are sent under the name of a new generation, and expire by themselves
 * until all of them are complete: so nothing remains of a push that ended
 * early. Then one HSET of the hash makes that generation the filter, for all
 * clients at once, and the pieces of older ones are removed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "input/key_options.h"
#include "server/plain.h"

enum {
    CHUNK_BYTES = 1 << 20,
    AHEAD = 8,                     /* chunks in flight            */
    LOADING_TTL_MS = 24 * 3600000, /* of a push that is not done  */
};

/* ---- Push: pieces -------------------------------------------------------- */

struct upload {
    const struct plain_push *push;
    struct plain_place place;
    struct call call;
    int fd;
    struct progress progress;
};

static double share(void *context) {
    const struct upload *const u = context;
    return (double)u->progress.bytes / (double)u->place.bytes;
}

static void choose_generation(char generation[GENERATION_BYTES + 1]) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz012345";
    uint8_t random[GENERATION_BYTES];
    calyx_error why;
    if (calyx_random(random, sizeof random, &why) != CALYX_OK) fail_with(&why);
    for (int i = 0; i < GENERATION_BYTES; i++)
        generation[i] = letters[random[i] % 32];
    generation[GENERATION_BYTES] = '\0';
}

static void read_file(const struct upload *u, uint64_t at, uint8_t *bytes,
                      size_t size) {
    while (size > 0) {
        const ssize_t n = pread(u->fd, bytes, size, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) fail_os(u->push->file, "read it");
        if (n == 0) fail_at(u->push->file, 0, "it was cut short meanwhile");
        bytes += n;
        at += (uint64_t)n;
        size -= (size_t)n;
    }
}

/* Bytes for a string, at an offset in it. */
struct string_chunk {
    uint8_t bytes[CHUNK_BYTES];
    size_t size;
    uint64_t offset;
    char number[24];
    int node, ttl_node;
};

static bool is_zero(const uint8_t *bytes, size_t size) {
    return size == 0 || (bytes[0] == 0 && !memcmp(bytes, bytes + 1, size - 1));
}

/* A string that is written to after its end gets zeros up to there: of zeros
 * the last is enough. */
static void call_chunk(struct upload *u, struct string_chunk *p,
                       const struct name *piece) {
    const size_t skipped = is_zero(p->bytes, p->size) ? p->size - 1 : 0;
    snprintf(p->number, sizeof p->number, "%" PRIu64, p->offset + skipped);
    call_for(&u->call, "SETRANGE", piece);
    call_text(&u->call, p->number);
    call_add(&u->call, p->bytes + skipped, p->size - skipped);
}

static void call_ttl(struct upload *u, const struct name *piece, double ms) {
    static char text[24];
    snprintf(text, sizeof text, "%.0f", ms);
    call_for(&u->call, ms > 0 ? "PEXPIRE" : "PERSIST", piece);
    if (ms > 0) call_text(&u->call, text);
}

static void expect_done(struct upload *u, struct reply *reply) {
    const char *const error = reply_error(reply);
    if (error) fail_reply(u->push->address, &u->call, error);
    reply_free(reply);
}

/* Send these at once; what got no reply is sent again. */
static void send_chunks(struct upload *u, const struct name *piece,
                        struct string_chunk *chunks, size_t n) {
    struct cluster *const server = u->push->server;
    for (size_t i = 0; i < n; i++) {
        call_chunk(u, &chunks[i], piece);
        chunks[i].node = cluster_post(server, &u->call);
        call_ttl(u, piece, LOADING_TTL_MS);
        chunks[i].ttl_node = cluster_post(server, &u->call);
    }
    for (size_t i = 0; i < n; i++) {
        struct reply *reply = cluster_receive(server, chunks[i].node);
        call_chunk(u, &chunks[i], piece);
        if (!reply) reply = cluster_query(server, &u->call, false);
        expect_done(u, reply);
        reply = cluster_receive(server, chunks[i].ttl_node);
        call_ttl(u, piece, LOADING_TTL_MS);
        if (!reply) reply = cluster_query(server, &u->call, false);
        expect_done(u, reply);
        u->progress.bytes += chunks[i].size;
    }
}

static void send_piece(struct upload *u, uint64_t number,
                       struct string_chunk *chunks) {
    const struct name name = plain_piece_name(&u->place, number);
    const uint64_t size = plain_piece_bytes(&u->place, number);
    call_for(&u->call, "SETRANGE", &name);
    call_text(&u->call, "0");
    call_add(&u->call, u->place.generation, GENERATION_BYTES);
    reply_free(cluster_demand(u->push->server, &u->call));
    for (uint64_t at = 0; at < size;) {
        size_t n = 0;
        for (; n < AHEAD && at < size; n++) {
            struct string_chunk *const p = &chunks[n];
            p->size =
                size - at < CHUNK_BYTES ? (size_t)(size - at) : CHUNK_BYTES;
            p->offset = GENERATION_BYTES + at;
            read_file(u, number * u->place.piece + at, p->bytes, p->size);
            at += p->size;
        }
        send_chunks(u, &name, chunks, n);
    }
    free(name.text);
}

/* A piece that was evicted while it was sent lacks its first bytes. */
static bool is_whole_piece(struct upload *u, uint64_t number) {
    struct cluster *const server = u->push->server;
    const struct name name = plain_piece_name(&u->place, number);
    long long length = 0;
    size_t size = 0;
    call_for(&u->call, "STRLEN", &name);
    struct reply *reply = cluster_demand(server, &u->call);
    reply_number(reply, &length);
    reply_free(reply);
    call_for(&u->call, "GETRANGE", &name);
    call_text(&u->call, "0");
    call_text(&u->call, "7");
    reply = cluster_demand(server, &u->call);
    const char *const guard = reply_text(reply, &size);
    const bool is =
        (uint64_t)length ==
            GENERATION_BYTES + plain_piece_bytes(&u->place, number) &&
        guard && size == GENERATION_BYTES &&
        memcmp(guard, u->place.generation, size) == 0;
    reply_free(reply);
    free(name.text);
    return is;
}

static _Noreturn void fail_lost_piece(const struct upload *u) {
    fail("%s: the server has lost a piece while others were sent: has it the "
         "memory, does it evict keys, did it restart?",
         u->push->address->shown);
}

static void finish_piece(struct upload *u, uint64_t number, double ttl) {
    const struct name name = plain_piece_name(&u->place, number);
    call_ttl(u, &name, ttl);
    reply_free(cluster_demand(u->push->server, &u->call));
    free(name.text);
    if (!is_whole_piece(u, number)) fail_lost_piece(u);
}

/* ---- Push: the hash ------------------------------------------------------ */

/* The generation that the hash says; false if it says none. */
static bool has_generation(struct upload *u, bool *is_this) {
    call_for(&u->call, "HGET", &u->place.name);
    call_text(&u->call, "generation");
    struct reply *const reply = cluster_demand(u->push->server, &u->call);
    const char *const there = reply_text(reply, NULL);
    *is_this = there && strcmp(there, u->place.generation) == 0;
    const bool has = there != NULL;
    reply_free(reply);
    return has;
}

/* What `expire` says, or what is left to the filter that is replaced; 0: it
 * does not expire. */
static double time_to_live(struct upload *u) {
    long long left = 0;
    if (u->push->expire > 0) return 1000 * u->push->expire;
    call_for(&u->call, "PTTL", &u->place.name);
    struct reply *const reply = cluster_demand(u->push->server, &u->call);
    reply_number(reply, &left);
    reply_free(reply);
    return left > 0 ? (double)left : 0;
}

static _Noreturn void fail_taken(const struct upload *u) {
    fail("%s: there is a filter under this key already; --swap puts this one "
         "in its place",
         u->push->address->shown);
}

static void expect_free(struct upload *u) {
    const enum plain_kind kind =
        plain_kind_of(u->push->server, &u->call, &u->place.name);
    if (kind == PLAIN_UNKNOWN)
        fail("%s: this user may not call TYPE, which says what is there; "
             "doc/SERVERS.md lists the rights that push needs",
             u->push->address->shown);
    if (kind == PLAIN_OTHER)
        fail("%s: the key holds something else than a plain filter; name "
             "another one, or remove it by UNLINK first",
             u->push->address->shown);
    if (kind == PLAIN_FILTER && !u->push->swap) fail_taken(u);
    bool unused;
    if (kind == PLAIN_FILTER && !has_generation(u, &unused))
        fail("%s: the key holds a hash that is not the hash of a plain filter; "
             "name another one, or remove it by UNLINK first",
             u->push->address->shown);
}

/* The fields after `bytes` are for people: clients read the header. */
enum { FIELDS = 16, FIELD_BYTES = 32 };
struct fields {
    char name[FIELDS][FIELD_BYTES], value[FIELDS][FIELD_BYTES];
    size_t count;
};

static void put_number(struct fields *f, const char *name, uint64_t value) {
    snprintf(f->name[f->count], FIELD_BYTES, "%s", name);
    snprintf(f->value[f->count++], FIELD_BYTES, "%" PRIu64, value);
}

static void put_text(struct fields *f, const char *name, const char *value) {
    snprintf(f->name[f->count], FIELD_BYTES, "%s", name);
    snprintf(f->value[f->count++], FIELD_BYTES, "%s", value);
}

static void list_fields(const struct upload *u, struct fields *f) {
    calyx_info info;
    char pieces[FIELD_BYTES], rate[FIELD_BYTES];
    calyx_info_of(u->push->filter, &info);
    snprintf(pieces, sizeof pieces, "pieces:%s", u->place.generation);
    snprintf(rate, sizeof rate, "%.17g", info.fpr);
    put_number(f, "calyx", 1);
    put_text(f, "generation", u->place.generation);
    put_number(f, pieces, plain_pieces(&u->place));
    put_number(f, "piece", u->place.piece);
    put_number(f, "bytes", u->place.bytes);
    put_number(f, "items", info.items);
    put_text(f, "kind", info.kind);
    put_text(f, "hash", info.hash);
    put_number(f, "seed", info.seed);
    put_number(f, "bits", info.bits);
    put_number(f, "probes", info.probes);
    put_number(f, "parts", info.parts);
    put_number(f, "capacity", info.capacity);
    put_text(f, "rate", rate);
}

/* If the answer to HSETNX was lost and it was sent again, the generation that
 * is there may be this one. */
static void take_name(struct upload *u) {
    struct cluster *const server = u->push->server;
    long long is_first = 0;
    call_for(&u->call, "HSETNX", &u->place.name);
    call_text(&u->call, "generation");
    call_text(&u->call, u->place.generation);
    struct reply *reply = cluster_demand(server, &u->call);
    reply_number(reply, &is_first);
    reply_free(reply);
    bool is_this = is_first;
    if (!is_first) has_generation(u, &is_this);
    if (!is_this) fail_taken(u);
}

/* From here on all clients see this generation. */
static void commit(struct upload *u) {
    struct fields fields = {0};
    struct cluster *const server = u->push->server;
    const char *const options = key_options_of(u->push->filter);
    list_fields(u, &fields);
    if (!u->push->swap) take_name(u);
    call_for(&u->call, "HSET", &u->place.name);
    for (size_t i = 0; i < fields.count; i++) {
        call_text(&u->call, fields.name[i]);
        call_text(&u->call, fields.value[i]);
    }
    call_text(&u->call, "key-options");
    call_text(&u->call, options ? options : "");
    reply_free(cluster_demand(server, &u->call));
}

/* A server that has lost all before it took the HSET, which was sent again, has
 * the hash alone. Another push may have replaced this generation by now. */
static void expect_pieces(struct upload *u) {
    bool is_this;
    for (uint64_t i = 0; i < plain_pieces(&u->place); i++) {
        if (is_whole_piece(u, i)) continue;
        if (!has_generation(u, &is_this) || is_this) fail_lost_piece(u);
        return;
    }
}

static void drop_generation(struct upload *u, const char *generation,
                            uint64_t pieces) {
    struct plain_place old = u->place;
    char field[FIELD_BYTES];
    snprintf(old.generation, sizeof old.generation, "%s", generation);
    for (uint64_t i = 0; i < pieces; i++) {
        const struct name name = plain_piece_name(&old, i);
        cluster_unlink(u->push->server, &u->call, &name);
        free(name.text);
    }
    static const char *const fields[] = {"pieces", "changed"};
    for (int i = 0; i < 2; i++) {
        snprintf(field, sizeof field, "%s:%s", fields[i], old.generation);
        call_for(&u->call, "HDEL", &u->place.name);
        call_text(&u->call, field);
        reply_free(cluster_demand(u->push->server, &u->call));
    }
}

/* The hash lists all generations that were ever pushed and not removed, so that
 * pushes at the same time leave one, and a later push what another left. */
static void drop_older(struct upload *u) {
    char current[GENERATION_BYTES + 1] = "";
    call_for(&u->call, "HGETALL", &u->place.name);
    struct reply *const all = cluster_demand(u->push->server, &u->call);
    const size_t n = reply_parts(all);
    for (size_t i = 0; i + 1 < n; i += 2) {
        const char *const field = reply_text(reply_part(all, i), NULL);
        const char *const value = reply_text(reply_part(all, i + 1), NULL);
        if (field && value && strcmp(field, "generation") == 0)
            snprintf(current, sizeof current, "%s", value);
    }
    for (size_t i = 0; *current && i + 1 < n; i += 2) {
        const char *const field = reply_text(reply_part(all, i), NULL);
        const char *const value = reply_text(reply_part(all, i + 1), NULL);
        const size_t prefix = strlen("pieces:");
        uint64_t pieces;
        if (field && strncmp(field, "pieces:", prefix) == 0 &&
            strlen(field) == prefix + GENERATION_BYTES && value &&
            strcmp(field + prefix, current) != 0 &&
            count_from(value, &pieces) && pieces <= PLAIN_PIECES_MOST)
            drop_generation(u, field + prefix, pieces);
    }
    reply_free(all);
}

/* ---- Push ---------------------------------------------------------------- */

static struct stat look_at_file(const struct upload *u) {
    struct stat is;
    if (fstat(u->fd, &is) != 0) fail_os(u->push->file, "look at it");
    return is;
}

static void expect_layout(const struct upload *u) {
    uint8_t first[CALYX_HEADER_MOST];
    const uint64_t bytes = u->place.bytes;
    const size_t size = bytes < sizeof first ? (size_t)bytes : sizeof first;
    calyx_layout *layout;
    uint64_t at[CALYX_LINES_MOST];
    calyx_error why;
    read_file(u, 0, first, size);
    if (calyx_layout_new(first, size, &layout, &why) != CALYX_OK)
        fail_at(u->push->file, 0,
                "plain strings are the bytes of a filter's file, which this "
                "is not, or not unpacked: %s",
                why.text);
    calyx_info info;
    calyx_layout_describe(layout, NULL, &info);
    if (calyx_layout_lines(layout, 0, 0, at) == 0)
        fail_at(u->push->file, 0,
                "a lookup in a %s filter learns what to read only while it "
                "reads, and cannot go to plain strings",
                info.kind);
    calyx_layout_free(layout);
}

void plain_push(const struct plain_push *push) {
    struct upload u = {
        .push = push,
        .place = {.name = {push->address->key, push->address->key_size},
                  .piece = (push->piece - GENERATION_BYTES) / CALYX_LINE_BYTES *
                           CALYX_LINE_BYTES},
        .fd = open(push->file, O_RDONLY | O_CLOEXEC)};
    if (u.fd < 0) fail_os(push->file, "open it");
    const struct stat before = look_at_file(&u);
    u.place.bytes = (uint64_t)before.st_size;
    if (u.place.bytes / u.place.piece >= PLAIN_PIECES_MOST)
        fail_at(push->file, 0, "with this --piece it has over %d pieces",
                PLAIN_PIECES_MOST);
    expect_layout(&u);
    expect_free(&u);
    choose_generation(u.place.generation);
    u.progress = (struct progress){
        .share = share, .context = &u, .size = u.place.bytes, .of_bytes = true};
    progress_begin(&u.progress);
    struct string_chunk *const chunks = alloc_memory(AHEAD * sizeof *chunks);
    for (uint64_t i = 0; i < plain_pieces(&u.place); i++)
        send_piece(&u, i, chunks);
    free(chunks);
    progress_end();
    const struct stat after = look_at_file(&u);
    if (before.st_size != after.st_size ||
        before.st_mtim.tv_sec != after.st_mtim.tv_sec ||
        before.st_mtim.tv_nsec != after.st_mtim.tv_nsec)
        fail_at(push->file, 0, "it was changed while it was pushed");
    close(u.fd);
    const double ttl = time_to_live(&u);
    for (uint64_t i = 0; i < plain_pieces(&u.place); i++)
        finish_piece(&u, i, ttl);
    commit(&u);
    if (push->expire > 0) {
        call_ttl(&u, &u.place.name, ttl);
        reply_free(cluster_demand(push->server, &u.call));
    }
    expect_pieces(&u);
    drop_older(&u);
    call_free(&u.call);
}

/* ---- Pull ---------------------------------------------------------------- */

static uint64_t load_u64(const uint8_t *bytes) {
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | bytes[i];
    return value;
}

static void store_u64(uint8_t *bytes, uint64_t value) {
    for (int i = 0; i < 8; i++) bytes[i] = (uint8_t)(value >> 8 * i);
}

static double share_pulled(void *context) {
    const struct progress *const p = context;
    return (double)p->bytes / (double)p->size;
}

/* False if the filter was replaced meanwhile. */
static bool read_bytes(struct plain_filter *f, struct plain_file *file,
                       struct progress *progress) {
    for (uint64_t at = 0; at < file->size;) {
        struct plain_range ranges[AHEAD];
        size_t n = 0;
        for (; n < AHEAD && at < file->size; n++) {
            const uint64_t left = file->size - at;
            const size_t some = left < CHUNK_BYTES ? (size_t)left : CHUNK_BYTES;
            ranges[n] = (struct plain_range){at, some, file->bytes + at};
            at += some;
        }
        if (!plain_read(f, ranges, n)) return false;
        progress->bytes = at;
    }
    return true;
}

static void read_all(struct plain_filter *f, struct plain_file *file,
                     bool *changed) {
    struct progress progress = {.share = share_pulled, .of_bytes = true};
    progress.context = &progress;
    progress.size = plain_place_of(f)->bytes;
    progress_begin(&progress);
    for (;;) {
        const uint64_t size = (plain_place_of(f)->bytes + 63) / 64 * 64;
        progress.size = file->size = plain_place_of(f)->bytes;
        file->bytes = size <= SIZE_MAX ? aligned_alloc(64, (size_t)size) : NULL;
        if (!file->bytes) fail("no memory for %" PRIu64 " bytes", size);
        if (read_bytes(f, file, &progress) && plain_is_changed(f, changed))
            break;
        free(file->bytes);
        plain_renew(f);
    }
    progress_end();
}

/* As doc/FORMAT.md has them. */
enum {
    SLOT_STATE = 8,
    SLOT_ITEMS = 16,
    SLOT_TABLES_SUM = 24,
    SLOT_SEALED_ITEMS = 40,
    SLOT_SUM = 56,
    STATE_SEALED = 1,
    STATE_OPEN = 2
};
static const uint64_t MARK = UINT64_C(0x5EA1ED0FF1B2D4C3);

/* Sections are checked in their order, but slots before tables and bodies. */
struct sections {
    calyx_section slot[2], tables;
    uint32_t slots, tables_index;
    int counts; /* the slot that does */
};

static void find_sections(const calyx_layout *layout, struct sections *s) {
    calyx_section section;
    for (uint32_t i = 0; calyx_layout_section(layout, i, &section); i++) {
        if (section.type == CALYX_SECTION_TABLES) {
            s->tables = section;
            s->tables_index = i;
        } else if (section.type == CALYX_SECTION_SLOT && s->slots < 2) {
            s->slot[s->slots++] = section;
        }
    }
}

static _Noreturn void fail_damaged(const char *name, const calyx_error *why) {
    fail("%s: %s", name, why->text);
}

static void check_state(calyx_layout *layout, const struct plain_file *file,
                        struct sections *s, const char *name) {
    calyx_error why;
    s->counts = -1;
    for (uint32_t i = 0; i < s->slots; i++)
        if (calyx_layout_check(layout, s->tables_index + 1 + i, 0,
                               file->bytes + s->slot[i].at,
                               (size_t)s->slot[i].bytes, &why) == CALYX_OK)
            s->counts = (int)i;
    if (s->counts < 0) fail_damaged(name, &why);
    const calyx_status status = calyx_layout_check(
        layout, s->tables_index, 0, file->bytes + s->tables.at,
        (size_t)s->tables.bytes, &why);
    if (status != CALYX_OK && status != CALYX_UNSEALED)
        fail_damaged(name, &why);
}

/* Compare all ranges with their checksums, and mark ranges that differ, if keys
 * were added. Returns how many did. */
static uint64_t mark_changed(calyx_layout *layout, struct plain_file *file,
                             const struct sections *s, const char *name,
                             bool changed) {
    uint8_t *table = file->bytes + s->tables.at;
    uint64_t marked = 0;
    calyx_section body;
    for (uint32_t i = 0; calyx_layout_section(layout, i, &body); i++) {
        if (body.type != CALYX_SECTION_BODY) continue;
        for (uint64_t from = 0; from < body.bytes;
             from += body.step, table += 8) {
            const uint64_t left = body.bytes - from;
            calyx_error why;
            const calyx_status status = calyx_layout_check(
                layout, i, from, file->bytes + body.at + from,
                (size_t)(left < body.step ? left : body.step), &why);
            if (status == CALYX_OK || status == CALYX_UNSEALED) continue;
            if (!changed) fail_damaged(name, &why);
            store_u64(table, MARK);
            marked++;
        }
    }
    return marked;
}

/* Keys that were added to the newest part, as far as clients have counted. */
static uint64_t newest_items(const calyx_layout *layout, uint64_t all) {
    calyx_part part;
    uint64_t older = 0;
    for (uint32_t i = 0; calyx_layout_part(layout, i + 1, &part) &&
                         calyx_layout_part(layout, i, &part);
         i++)
        older += part.items;
    return all > older ? all - older : 0;
}

/* XXH3 with seed 0, as a filter has it. */
static uint64_t checksum_of(const uint8_t *bytes, size_t size) {
    const calyx_options want = {.capacity = 1, .hash = "xxh3"};
    calyx_filter *f;
    calyx_error why;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail_with(&why);
    const uint64_t sum = calyx_hash(f, bytes, size);
    calyx_free(f);
    return sum;
}

/* A slot for a file that is open, in the place of the one that does not count.
 */
static void open_file(struct plain_file *file, const struct sections *s,
                      uint64_t items) {
    const uint8_t *const old = file->bytes + s->slot[s->counts].at;
    uint8_t *const slot = file->bytes + s->slot[1 - s->counts].at;
    const uint64_t before =
        load_u64(old + (old[SLOT_STATE] == STATE_SEALED ? SLOT_ITEMS
                                                        : SLOT_SEALED_ITEMS));
    memcpy(slot, old, SLOT_SUM);
    store_u64(slot, load_u64(old) + 1);
    slot[SLOT_STATE] = STATE_OPEN;
    store_u64(slot + SLOT_ITEMS, items > before ? items : before);
    store_u64(slot + SLOT_TABLES_SUM, 0);
    store_u64(slot + SLOT_SEALED_ITEMS, before);
    store_u64(slot + SLOT_SUM, checksum_of(slot, SLOT_SUM));
}

struct plain_file plain_pull(struct plain_filter *f) {
    struct plain_file file = {0};
    struct sections s = {0};
    bool changed;
    read_all(f, &file, &changed);
    const char *const name = plain_address(f)->shown;
    const struct plain_place *const place = plain_place_of(f);
    calyx_layout *layout;
    calyx_error why;
    if (calyx_layout_new(file.bytes, file.size, &layout, &why) != CALYX_OK)
        fail_damaged(name, &why);
    find_sections(layout, &s);
    check_state(layout, &file, &s, name);
    file.is_open = mark_changed(layout, &file, &s, name, changed) > 0;
    if (file.is_open) open_file(&file, &s, newest_items(layout, place->items));
    calyx_layout_free(layout);
    return file;
}
