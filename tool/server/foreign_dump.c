/*
 * Filters of other modules as files, to be pushed again. A file is a line and
 * records:
 *
 *     "calyx dump 1 MODULE\n"
 *     u64 iterator, u64 bytes, the bytes     of each record
 *     u64 0, u64 0, u64 checksum             of the records, as in wire/dump.h
 *
 * Of RedisBloom, a record is what BF.SCANDUMP replies. valkey-bloom has no such
 * command: there the server's DUMP is read, and the only record is the payload
 * of BF.LOAD, which any version of a server takes.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/source.h"
#include "server/foreign.h"
#include "wire/bytes.h"
#include "wire/dump.h"

static const char FIRST[] = "calyx dump 1 ";
enum { MOST_LINE = 64, RECORD_HEAD = 16 };

/* ---- A file -------------------------------------------------------------- */

struct dump_writer {
    struct output *output;
    uint64_t sum;
};

static void write_record(struct dump_writer *w, uint64_t iterator,
                         const void *bytes, size_t size) {
    uint8_t head[RECORD_HEAD];
    store_u64(head, iterator);
    store_u64(head + 8, size);
    w->sum = dump_sum_with(w->sum, dump_sum(head, sizeof head));
    w->sum = dump_sum_with(w->sum, dump_sum(bytes, size));
    output_write(w->output, head, sizeof head);
    output_write(w->output, bytes, size);
}

static void write_end(const struct dump_writer *w) {
    uint8_t end[RECORD_HEAD + 8] = {0};
    store_u64(end + RECORD_HEAD, w->sum);
    output_write(w->output, end, sizeof end);
}

struct dump_reader {
    struct byte_source *source;
    const char *path;
    uint64_t sum, iterator;
    uint8_t *bytes;
    size_t size, room;
};

static void read_bytes(struct dump_reader *r, void *to, size_t size) {
    for (size_t done = 0; done < size;) {
        const ssize_t n =
            source_read(r->source, (uint8_t *)to + done, size - done);
        if (n < 0) fail_at(r->path, 0, "%s", source_trouble(r->source));
        if (n == 0) fail_at(r->path, 0, "the dump ends too early");
        done += (size_t)n;
    }
}

/* The next record; false behind the last, whose checksum is right then. */
static bool read_record(struct dump_reader *r) {
    enum { MOST_RECORD = 1 << 30 };
    uint8_t head[RECORD_HEAD], sum[8];
    read_bytes(r, head, sizeof head);
    r->iterator = load_u64(head);
    const uint64_t size = load_u64(head + 8);
    if (r->iterator == 0 && size == 0) {
        read_bytes(r, sum, sizeof sum);
        if (load_u64(sum) != r->sum)
            fail_at(r->path, 0, "the dump does not match its checksum");
        return false;
    }
    if (size > MOST_RECORD)
        fail_at(r->path, 0, "the dump is damaged: a record of %llu bytes",
                (unsigned long long)size);
    if (size > r->room) {
        r->room = (size_t)size;
        r->bytes = resize_memory(r->bytes, r->room);
    }
    r->size = (size_t)size;
    read_bytes(r, r->bytes, r->size);
    r->sum = dump_sum_with(r->sum, dump_sum(head, sizeof head));
    r->sum = dump_sum_with(r->sum, dump_sum(r->bytes, r->size));
    return true;
}

/* The module that the first line names; NULL if it is no such file. */
static const struct foreign_module *read_first_line(struct byte_source *from) {
    char line[MOST_LINE + 1] = "";
    size_t size = 0;
    while (size < MOST_LINE && source_read(from, line + size, 1) == 1 &&
           line[size] != '\n')
        size++;
    if (line[size] != '\n' || strncmp(line, FIRST, sizeof FIRST - 1) != 0)
        return NULL;
    line[size] = '\0';
    return foreign_named(line + sizeof FIRST - 1);
}

/* What is read of a pipe would be gone. */
bool is_foreign_dump(const char *path) {
    struct stat about;
    if (strcmp(path, "-") == 0 || stat(path, &about) != 0 ||
        !S_ISREG(about.st_mode))
        return false;
    struct byte_source *const source = source_try(path);
    const bool is = source && read_first_line(source) != NULL;
    if (source) source_close(source);
    return is;
}

/* ---- DUMP ---------------------------------------------------------------- */

/* A payload of the server's DUMP, as Redis and Valkey write it: opcodes, each
 * with a value. */
struct rdb_reader {
    const struct foreign_session *session;
    const uint8_t *at, *end;
};

static _Noreturn void fail_dump(const struct rdb_reader *r) {
    fail("%s: the server answers DUMP in a way that is not understood",
         r->session->address->shown);
}

static const uint8_t *rdb_take(struct rdb_reader *r, uint64_t size) {
    const uint8_t *const at = r->at;
    if (size > (uint64_t)(r->end - r->at)) fail_dump(r);
    r->at += size;
    return at;
}

static uint64_t big_endian(const uint8_t *at, int bytes) {
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) value = value << 8 | at[i];
    return value;
}

/* `*packed` unless NULL: it is that of a string that LZF has compressed. */
static uint64_t rdb_length(struct rdb_reader *r, bool *packed) {
    enum { LZF = 0xC3 };
    const uint8_t first = *rdb_take(r, 1);
    if (packed) *packed = first == LZF;
    if (first >> 6 == 0) return first & 63;
    if (first >> 6 == 1) return (first & 63u) << 8 | *rdb_take(r, 1);
    if (first == 0x80) return big_endian(rdb_take(r, 4), 4);
    if (first == 0x81) return big_endian(rdb_take(r, 8), 8);
    if (first == LZF && packed) return rdb_length(r, NULL);
    fail_dump(r);
}

/* LZF: a byte below 32 is the number of literal bytes, less 1; others are a
 * length and a distance back. */
static bool unpack_lzf(const uint8_t *in, size_t size, uint8_t *out,
                       size_t room) {
    size_t at = 0, to = 0;
    while (at < size) {
        const size_t control = in[at++];
        if (control < 32) {
            const size_t n = control + 1;
            if (n > size - at || n > room - to) return false;
            memcpy(out + to, in + at, n);
            at += n, to += n;
            continue;
        }
        size_t n = control >> 5;
        if (n == 7 && at < size) n += in[at++];
        if (at == size) return false;
        const size_t back = ((control & 31) << 8 | in[at++]) + 1;
        n += 2;
        if (back > to || n > room - to) return false;
        for (; n > 0; n--, to++) out[to] = out[to - back];
    }
    return to == room;
}

/* In memory of its own. */
static uint8_t *rdb_string(struct rdb_reader *r, uint64_t *size) {
    enum { MOST_STRING = 1 << 30 };
    bool packed;
    uint64_t there = rdb_length(r, &packed);
    *size = packed ? rdb_length(r, NULL) : there;
    if (*size > MOST_STRING) fail_dump(r);
    const uint8_t *const bytes = rdb_take(r, there);
    uint8_t *const string = alloc_memory((size_t)*size + 1);
    if (!packed)
        memcpy(string, bytes, (size_t)there);
    else if (!unpack_lzf(bytes, (size_t)there, string, (size_t)*size))
        fail_dump(r);
    return string;
}

enum { NO_MORE = 0, NUMBER = 2, DOUBLE = 4, STRING = 5 };

static uint64_t rdb_number(struct rdb_reader *r) {
    if (rdb_length(r, NULL) != NUMBER) fail_dump(r);
    return rdb_length(r, NULL);
}

static const uint8_t *rdb_double(struct rdb_reader *r) {
    if (rdb_length(r, NULL) != DOUBLE) fail_dump(r);
    return rdb_take(r, 8);
}

/* The nine letters of the type and the encoding. */
static uint64_t type_number(const char *type, unsigned encoding) {
    static const char LETTERS[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t number = 0;
    for (int i = 0; i < 9; i++)
        number = number << 6 | (uint64_t)(strchr(LETTERS, type[i]) - LETTERS);
    return number << 10 | encoding;
}

/* ---- valkey-bloom -------------------------------------------------------- */

struct growing_bytes {
    uint8_t *bytes;
    size_t size, room;
};

static uint8_t *grow_by(struct growing_bytes *g, uint64_t more) {
    if (more > g->room - g->size) {
        g->room = 2 * g->room + (size_t)more;
        g->bytes = resize_memory(g->bytes, g->room);
    }
    uint8_t *const at = g->bytes + g->size;
    g->size += (size_t)more;
    return at;
}

/* One part. Versions before 1.0 have its blob first, others last. */
static void convert_part(struct rdb_reader *r, bool last,
                         struct growing_bytes *to) {
    const bool blob_first = r->at < r->end && *r->at == STRING;
    uint64_t size = 0, capacity = 0, items = 0;
    uint8_t *blob = NULL;
    for (int turn = 0; turn < 2; turn++)
        if ((turn == 0) == blob_first) {
            if (rdb_length(r, NULL) != STRING) fail_dump(r);
            blob = rdb_string(r, &size);
        } else {
            capacity = rdb_number(r);
            items = last ? rdb_number(r) : capacity;
        }
    store_u64(grow_by(to, 8), size);
    memcpy(grow_by(to, size), blob, (size_t)size);
    store_u64(grow_by(to, 8), items);
    store_u64(grow_by(to, 8), capacity);
    free(blob);
}

/* The payload of BF.LOAD, of what DUMP replied. */
static struct growing_bytes convert_valkey(struct rdb_reader *r) {
    enum { MODULE_2 = 7, FOOTER = 10 };
    struct growing_bytes to = {0};
    if (r->end - r->at < FOOTER) fail_dump(r);
    r->end -= FOOTER;
    if (*rdb_take(r, 1) != MODULE_2 ||
        rdb_length(r, NULL) != type_number(r->session->as->type, 1))
        fail_dump(r);
    const uint64_t parts = rdb_number(r), expansion = rdb_number(r);
    *grow_by(&to, 1) = 1;
    uint8_t number[8];
    store_u64(number, expansion);
    memcpy(grow_by(&to, 4), number, 4);
    memcpy(grow_by(&to, 8), rdb_double(r), 8);
    memcpy(grow_by(&to, 8), rdb_double(r), 8);
    *grow_by(&to, 1) = rdb_number(r) != 0;
    store_u64(grow_by(&to, 8), parts);
    for (uint64_t i = 0; i < parts; i++) convert_part(r, i + 1 == parts, &to);
    if (rdb_length(r, NULL) != NO_MORE || r->at != r->end) fail_dump(r);
    return to;
}

static void pull_valkey(struct foreign_session *s, struct dump_writer *w) {
    size_t size;
    foreign_call(s, "DUMP", &s->key);
    struct reply *const reply = foreign_demand(s);
    const char *const payload = reply_text(reply, &size);
    struct rdb_reader r = {.session = s, .at = (const uint8_t *)payload};
    if (!payload) fail_dump(&r);
    r.end = r.at + size;
    struct growing_bytes bytes = convert_valkey(&r);
    write_record(w, 1, bytes.bytes, bytes.size);
    free(bytes.bytes);
    reply_free(reply);
}

/* ---- RedisBloom ---------------------------------------------------------- */

static void pull_chunks(struct foreign_session *s, struct dump_writer *w) {
    long long at = 0;
    for (;;) {
        char iterator[24];
        size_t size;
        snprintf(iterator, sizeof iterator, "%lld", at);
        foreign_call(s, "BF.SCANDUMP", &s->key);
        call_text(&s->call, iterator);
        struct reply *const reply = foreign_demand(s);
        const char *const bytes = reply_parts(reply) == 2
                                      ? reply_text(reply_part(reply, 1), &size)
                                      : NULL;
        if (!bytes || !reply_number(reply_part(reply, 0), &at) || at < 0)
            fail("%s: the server answers BF.SCANDUMP in a way that is not "
                 "understood",
                 s->address->shown);
        if (at) write_record(w, (uint64_t)at, bytes, size);
        reply_free(reply);
        if (!at) return;
    }
}

/* ---- Both ---------------------------------------------------------------- */

static void expect_type(struct foreign_session *s) {
    char found[FOREIGN_TYPE];
    if (foreign_has_type(s, found)) return;
    if (strcmp(found, "none") == 0)
        fail("%s: there is no such key", s->address->shown);
    fail("%s: the key is of the type %s; --as %s wants %s", s->address->shown,
         found, s->as->name, s->as->type);
}

void foreign_pull(struct foreign_session *s, struct output *output) {
    struct dump_writer w = {.output = output};
    expect_type(s);
    output_write(output, FIRST, sizeof FIRST - 1);
    output_write(output, s->as->name, strlen(s->as->name));
    output_write(output, "\n", 1);
    if (s->as->in_chunks)
        pull_chunks(s, &w);
    else
        pull_valkey(s, &w);
    write_end(&w);
    call_free(&s->call);
}

static void push_record(struct foreign_session *s,
                        const struct dump_reader *r) {
    char iterator[24];
    snprintf(iterator, sizeof iterator, "%llu",
             (unsigned long long)r->iterator);
    foreign_call(s, s->as->in_chunks ? "BF.LOADCHUNK" : "BF.LOAD", &s->key);
    if (s->as->in_chunks) call_text(&s->call, iterator);
    call_add(&s->call, r->bytes, r->size);
    reply_free(foreign_demand(s));
}

void foreign_push_dump(struct foreign_session *s, const char *path) {
    struct dump_reader r = {.source = source_open(path), .path = path};
    const struct foreign_module *const of = read_first_line(r.source);
    if (of != s->as)
        fail_at(path, 0, "it is a dump of %s, and --as says %s",
                of ? of->name : "another module", s->as->name);
    foreign_begin(s);
    while (read_record(&r)) push_record(s, &r);
    expect_type(s);
    foreign_publish(s);
    source_close(r.source);
    free(r.bytes);
}
