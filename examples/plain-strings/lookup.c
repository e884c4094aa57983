/*
 * Which of these keys may be in a filter that `calyx push --plain` stored as
 * strings? By hiredis, from a server that loads no module.
 *
 *     lookup HOST PORT NAME KEY...
 *
 * The library says which 64 bytes of the file answer (calyx_layout_lines), and
 * answers from them (calyx_layout_has); the rest is one pipeline. For a filter
 * of one part, in one server; tool/server/plain.c does the rest of what
 * doc/FORMAT.md describes.
 */
#include <calyx/calyx.h>
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 8 }; /* bytes of the generation, before the bytes of the file */

struct plain {
    redisContext *server;
    const char *name;
    char generation[GUARD + 1];
    unsigned long long piece; /* bytes of the file in each string */
    calyx_layout *layout;
};

static void fail(const char *what) {
    fprintf(stderr, "lookup: %s\n", what);
    exit(2);
}

/* Ask for bytes of a string, which has a line or the guard. */
static void ask(const struct plain *f, unsigned long long string,
                unsigned long long from, int size) {
    redisAppendCommand(f->server, "GETRANGE %s:%s:%llu %llu %llu", f->name,
                       f->generation, string, from,
                       from + (unsigned long long)size - 1);
}

/* Exactly these bytes, or the filter is not there as a whole. */
static void take(const struct plain *f, char *bytes, size_t size) {
    redisReply *reply = NULL;
    if (redisGetReply(f->server, (void **)&reply) != REDIS_OK)
        fail(f->server->errstr);
    if (reply->type != REDIS_REPLY_STRING || reply->len != size)
        fail("a piece of the filter is missing");
    memcpy(bytes, reply->str, size);
    freeReplyObject(reply);
}

static void expect_guard(const struct plain *f) {
    char guard[GUARD];
    take(f, guard, GUARD);
    if (memcmp(guard, f->generation, GUARD) != 0)
        fail("a piece of the filter is missing");
}

static bool may_have(const struct plain *f, const char *key) {
    uint64_t hash, at[CALYX_LINES_MOST];
    char lines[CALYX_LINES_MOST * CALYX_LINE_BYTES];
    calyx_layout_hash(f->layout, key, strlen(key), &hash);
    const size_t n = calyx_layout_lines(f->layout, 0, hash, at);
    for (size_t i = 0; i < n; i++)
        ask(f, at[i] / f->piece, GUARD + at[i] % f->piece, CALYX_LINE_BYTES);
    for (size_t i = 0; i < n; i++) ask(f, at[i] / f->piece, 0, GUARD);
    for (size_t i = 0; i < n; i++)
        take(f, lines + i * CALYX_LINE_BYTES, CALYX_LINE_BYTES);
    for (size_t i = 0; i < n; i++) expect_guard(f);
    return calyx_layout_has(f->layout, 0, hash, lines);
}

static void open_plain(struct plain *f) {
    redisReply *const now = redisCommand(
        f->server, "HMGET %s calyx generation piece bytes", f->name);
    if (!now || now->type != REDIS_REPLY_ARRAY || now->elements != 4)
        fail("the server does not answer HMGET");
    for (size_t i = 0; i < 4; i++)
        if (now->element[i]->type != REDIS_REPLY_STRING)
            fail("there is no filter under this key");
    const unsigned long long bytes = strtoull(now->element[3]->str, NULL, 10);
    f->piece = strtoull(now->element[2]->str, NULL, 10);
    if (strcmp(now->element[0]->str, "1") != 0 || f->piece == 0 ||
        now->element[1]->len != GUARD)
        fail("the hash does not describe a plain filter");
    memcpy(f->generation, now->element[1]->str, GUARD + 1);
    freeReplyObject(now);

    static char header[CALYX_HEADER_MOST];
    const size_t size = bytes < sizeof header ? (size_t)bytes : sizeof header;
    calyx_error why;
    calyx_part second;
    ask(f, 0, GUARD, (int)size);
    ask(f, 0, 0, GUARD);
    take(f, header, size);
    expect_guard(f);
    if (calyx_layout_new(header, size, &f->layout, &why) != CALYX_OK)
        fail(why.text);
    if (calyx_layout_part(f->layout, 1, &second))
        fail("this example reads filters of one part");
}

int main(int count, char **words) {
    if (count < 4) fail("usage: lookup HOST PORT NAME KEY...");
    struct plain f = {.server = redisConnect(words[1], atoi(words[2])),
                      .name = words[3]};
    if (!f.server || f.server->err) fail("the server is out of reach");
    open_plain(&f);
    for (int i = 4; i < count; i++)
        if (may_have(&f, words[i])) puts(words[i]);
    calyx_layout_free(f.layout);
    redisFree(f.server);
    return 0;
}
