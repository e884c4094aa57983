/*
 * Filters of other modules as files, foreign/dump_file.h, to be pushed again.
 *
 * RedisBloom replies to BF.SCANDUMP. valkey-bloom has no such command: there
 * the server's DUMP is read, and becomes the payload of BF.LOAD, which any
 * version of a server takes.
 */
#include "foreign/dump_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "input/source.h"
#include "server/foreign.h"

/* ---- A file -------------------------------------------------------------- */

static void put_out(void *output, const void *bytes, size_t size) {
    output_write(output, bytes, size);
}

static bool get(void *source, void *bytes, size_t size) {
    return source_fill(source, bytes, size) == size;
}

/* ---- From a server ------------------------------------------------------- */

/* By DUMP, which is checked as a file of the layout is. */
static void pull_whole(struct foreign_session *s, struct dump_writer *w) {
    struct foreign_filter f;
    calyx_error why;
    size_t size;
    call_for(&s->call, "DUMP", &s->key);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    const char *const payload = reply_text(reply, &size);
    if (!payload) fail_answer(s->address, &s->call, "");
    uint8_t *const bytes = alloc_memory(size + 1);
    memcpy(bytes, payload, size);
    reply_free(reply);
    if (foreign_read(&s->as->choice, bytes, size, &f, &why) != CALYX_OK ||
        dump_filter(w, &f, &why) != CALYX_OK)
        fail_answer(s->address, &s->call, why.text);
    f.layout->free(&f);
}

static void pull_string(struct foreign_session *s, struct dump_writer *w) {
    struct foreign_filter f;
    calyx_error why;
    foreign_fetch_string(s, &f);
    if (dump_filter(w, &f, &why) != CALYX_OK)
        fail("%s: %s", s->address->shown, why.text);
    f.layout->free(&f);
}

static void pull_chunks(struct foreign_session *s, struct dump_writer *w) {
    long long at = 0;
    for (;;) {
        char iterator[24];
        size_t size;
        snprintf(iterator, sizeof iterator, "%lld", at);
        call_for(&s->call, "BF.SCANDUMP", &s->key);
        call_text(&s->call, iterator);
        struct reply *const reply = cluster_demand(s->server, &s->call);
        const char *const bytes = reply_parts(reply) == 2
                                      ? reply_text(reply_part(reply, 1), &size)
                                      : NULL;
        if (!bytes || !reply_number(reply_part(reply, 0), &at) || at < 0)
            fail_answer(s->address, &s->call, "");
        if (at) dump_record(w, (uint64_t)at, bytes, size);
        reply_free(reply);
        if (!at) return;
    }
}

void foreign_pull(struct foreign_session *s, struct output *output) {
    const struct dump_head head = {.layout = s->as->choice.layout};
    struct dump_writer w;
    if (!s->as->is_string) foreign_expect_type(s);
    dump_begin(&w, &head, (struct foreign_sink){put_out, output});
    if (s->as->is_string)
        pull_string(s, &w);
    else if (s->as->in_chunks)
        pull_chunks(s, &w);
    else
        pull_whole(s, &w);
    dump_end(&w);
    call_free(&s->call);
}

/* ---- Into a server ------------------------------------------------------- */

static void push_record(struct foreign_session *s,
                        const struct dump_reader *r) {
    char iterator[24];
    snprintf(iterator, sizeof iterator, "%llu",
             (unsigned long long)r->iterator);
    call_for(&s->call, s->as->in_chunks ? "BF.LOADCHUNK" : "BF.LOAD", &s->key);
    if (s->as->in_chunks) call_text(&s->call, iterator);
    call_add(&s->call, r->bytes, r->size);
    reply_free(cluster_demand(s->server, &s->call));
}

static void next_record(struct dump_reader *r, const char *path) {
    calyx_error why;
    if (dump_next(r, &why) != CALYX_OK) fail_at(path, 0, "%s", why.text);
}

static void push_records(struct foreign_session *s, struct dump_reader *r,
                         const char *path) {
    foreign_begin(s);
    for (next_record(r, path); !r->at_end; next_record(r, path))
        push_record(s, r);
    foreign_expect_type(s);
    foreign_publish(s);
}

static void push_bits(struct foreign_session *s, struct dump_reader *r,
                      const char *path) {
    struct foreign_filter f;
    calyx_error why;
    if (dump_load(r, &f, &why) != CALYX_OK) fail_at(path, 0, "%s", why.text);
    if (!foreign_is_of(&f, &s->as->choice))
        fail_at(path, 0, "it is a filter of '%s', and --as says '%s'",
                f.words.line.text, foreign_name(&s->as->choice));
    foreign_push_string(s, &f);
    f.layout->free(&f);
}

void foreign_push_dump(struct foreign_session *s, const char *path) {
    const struct foreign_layout *const layout = s->as->choice.layout;
    struct byte_source *const source = source_open(path);
    struct dump_reader r = {.get = get, .context = source};
    calyx_error why;
    if (dump_open(&r, &why) != CALYX_OK) fail_at(path, 0, "%s", why.text);
    if (r.head.layout != layout)
        fail_at(path, 0, "it is a dump of %s, and --as says %s",
                r.head.layout->name, layout->name);
    (s->as->is_string ? push_bits : push_records)(s, &r, path);
    source_close(source);
    free(r.bytes);
}
