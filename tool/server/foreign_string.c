/*
 * Bits in a string of a server, as clients set them by SETBIT: filters of
 * Redisson, and filters whose layout is given in one line. The string ends with
 * the last byte in which a bit is set, or later.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/foreign.h"

/* Bytes of one command: few enough not to hold up the server. */
enum { PIECE = 1 << 20 };

/* ---- The config ---------------------------------------------------------- */

/* As Redisson names it: in the slot of the key. */
static struct name config_of(const struct name *key) {
    const bool tagged = memchr(key->text, '{', key->size);
    struct name config = {alloc_memory(key->size + 16), 0};
    config.size =
        (size_t)sprintf(config.text, "%s%.*s%s:config", tagged ? "" : "{",
                        (int)key->size, key->text, tagged ? "" : "}");
    return config;
}

/* The lines with which the file of the layout begins. */
struct head_lines {
    char *bytes;
    size_t size, room;
};

static void add_text(struct head_lines *head, const char *text, size_t size) {
    head->bytes = with_room(head->bytes, &head->room, head->size + size + 1, 1);
    memcpy(head->bytes + head->size, text, size);
    head->bytes[head->size + size] = '\n';
    head->size += size + 1;
}

static struct head_lines fetch_head(struct foreign_session *s) {
    struct head_lines head = {0};
    if (!s->as->has_config) return head;
    struct name config = config_of(&s->key);
    call_for(&s->call, "HGETALL", &config);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    for (size_t i = 0; i < reply_parts(reply); i++) {
        size_t size;
        const char *const text = reply_text(reply_part(reply, i), &size);
        if (!text) fail_answer(s->address, &s->call, "");
        add_text(&head, text, size);
    }
    if (!reply_parts(reply))
        fail("%s: there is no hash %s, which a filter of %s has",
             s->address->shown, config.text, s->as->choice.layout->name);
    add_text(&head, "", 0);
    reply_free(reply);
    free(config.text);
    return head;
}

/* ---- From a server ------------------------------------------------------- */

static uint64_t string_size(struct foreign_session *s) {
    long long size;
    call_for(&s->call, "STRLEN", &s->key);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    if (!reply_number(reply, &size) || size < 0)
        fail_answer(s->address, &s->call, "");
    reply_free(reply);
    return (uint64_t)size;
}

/* A piece of the string, which must be there. */
static struct reply *get_piece(struct foreign_session *s, uint64_t at,
                               size_t size, const char **bytes) {
    char from[24], to[24];
    size_t there = 0;
    snprintf(from, sizeof from, "%" PRIu64, at);
    snprintf(to, sizeof to, "%" PRIu64, at + size - 1);
    call_for(&s->call, "GETRANGE", &s->key);
    call_text(&s->call, from);
    call_text(&s->call, to);
    struct reply *const reply = cluster_demand(s->server, &s->call);
    *bytes = reply_text(reply, &there);
    if (!*bytes || there != size)
        fail("%s: the string changed while it was read: expected %zu bytes at "
             "byte %" PRIu64 ", found %zu",
             s->address->shown, size, at, there);
    return reply;
}

static size_t piece_size(uint64_t size, uint64_t at) {
    return size - at < PIECE ? (size_t)(size - at) : PIECE;
}

static void fetch_bits(struct foreign_session *s, uint8_t *to, uint64_t size) {
    for (uint64_t at = 0; at < size; at += PIECE) {
        const char *bytes;
        const size_t n = piece_size(size, at);
        struct reply *const reply = get_piece(s, at, n, &bytes);
        memcpy(to + at, bytes, n);
        reply_free(reply);
    }
}

/* A filter of Redisson that has no key yet has a config only. */
static void expect_string(struct foreign_session *s) {
    char found[FOREIGN_TYPE];
    if (s->as->has_config && !foreign_has_type(s, found) &&
        strcmp(found, "none") == 0) {
        warn("%s: the filter has no bits: no key was added, or they have "
             "expired",
             s->address->shown);
        return;
    }
    foreign_expect_type(s);
}

/* Another program may have made the filter anew meanwhile. */
static void expect_same_head(struct foreign_session *s,
                             struct head_lines *head) {
    struct head_lines now = fetch_head(s);
    if (now.size != head->size ||
        (now.size && memcmp(now.bytes, head->bytes, now.size) != 0))
        fail("%s: the filter was replaced while it was read",
             s->address->shown);
    free(now.bytes);
    free(head->bytes);
}

void foreign_fetch_string(struct foreign_session *s, struct foreign_filter *f) {
    uint64_t all;
    calyx_error why;
    struct head_lines head = fetch_head(s);
    expect_string(s);
    if (foreign_file_size(&s->as->choice, (const uint8_t *)head.bytes,
                          head.size, &all, &why) != CALYX_OK)
        fail("%s: %s", s->address->shown, why.text);
    const uint64_t size = string_size(s), most = all - head.size;
    if (size > most)
        fail("%s: the string has %" PRIu64 " bytes, and its layout %" PRIu64,
             s->address->shown, size, most);
    uint8_t *const bytes = calloc(1, all);
    if (!bytes) fail("out of memory: cannot allocate %" PRIu64 " bytes", all);
    if (head.size) memcpy(bytes, head.bytes, head.size);
    fetch_bits(s, bytes + head.size, size);
    expect_same_head(s, &head);
    if (foreign_read(&s->as->choice, bytes, all, f, &why) != CALYX_OK)
        fail("%s: %s", s->address->shown, why.text);
}

/* ---- Into a server ------------------------------------------------------- */

/* SETRANGE of the same bytes twice does no harm. */
static void push_pieces(struct foreign_session *s, const uint8_t *bits,
                        uint64_t size) {
    for (uint64_t at = 0; at < size; at += PIECE) {
        char from[24];
        snprintf(from, sizeof from, "%" PRIu64, at);
        call_for(&s->call, "SETRANGE", &s->key);
        call_text(&s->call, from);
        call_add(&s->call, bits + at, piece_size(size, at));
        reply_free(cluster_demand(s->server, &s->call));
    }
}

/* A server that restarted meanwhile would have zeros in place of some. */
static void expect_bits(struct foreign_session *s, const uint8_t *bits,
                        uint64_t size) {
    for (uint64_t at = 0; at < size; at += PIECE) {
        const char *bytes;
        const size_t n = piece_size(size, at);
        struct reply *const reply = get_piece(s, at, n, &bytes);
        if (memcmp(bytes, bits + at, n) != 0)
            fail("%s: the server has lost what was written; push again",
                 s->address->shown);
        reply_free(reply);
    }
}

static void push_config(struct foreign_session *s, const struct name *config,
                        const uint8_t *head, uint64_t size) {
    cluster_unlink(s->server, &s->call, config);
    call_for(&s->call, "HSET", config);
    for (const uint8_t *at = head, *const end = head + size; *at != '\n';) {
        const uint8_t *const line = memchr(at, '\n', (size_t)(end - at));
        call_add(&s->call, at, (size_t)(line - at));
        at = line + 1;
    }
    reply_free(cluster_demand(s->server, &s->call));
}

/* A filter without keys has a config only. */
static void expect_no_config(struct foreign_session *s) {
    struct name config = config_of(&s->target);
    if (!s->swap && cluster_has_key(s->server, &s->call, &config))
        fail("%s: there is a hash %s already; --swap puts the filter in its "
             "place",
             s->address->shown, config.text);
    free(config.text);
}

/* While the bits change, clients must not use the old config: without one, they
 * fail instead of answering. */
static void publish_with_config(struct foreign_session *s,
                                const struct name *staged) {
    struct name config = config_of(&s->target);
    struct call call = {0};
    if (s->swap) cluster_unlink(s->server, &s->call, &config);
    foreign_publish(s);
    call_for(&call, "RENAME", staged);
    call_add(&call, config.text, config.size);
    reply_free(cluster_query(s->server, &call, true));
    if (!cluster_has_key(s->server, &call, &config))
        fail("%s: the hash %s is missing; push again with --swap",
             s->address->shown, config.text);
    call_free(&call);
    free(config.text);
}

void foreign_push_string(struct foreign_session *s,
                         const struct foreign_filter *f) {
    const struct word_filter *const w = &f->words;
    const uint8_t *const bits = w->file + w->head;
    const uint64_t size = w->size - w->head;
    foreign_begin(s);
    if (s->as->has_config) expect_no_config(s);
    push_pieces(s, bits, size);
    expect_bits(s, bits, size);
    if (!s->as->has_config) {
        foreign_publish(s);
        return;
    }
    struct name staged = config_of(&s->key);
    push_config(s, &staged, w->file, w->head);
    publish_with_config(s, &staged);
    free(staged.text);
}
