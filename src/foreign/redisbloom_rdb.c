/*
 * Chains as RedisBloom writes them: as values in RDB files and DUMP payloads,
 * and as the header and chunks of a dump. Both hold the same numbers:
 *
 *     RDB                                   dump header, little-endian
 *     ---                                   --------------------------
 *
 *     unsigned items                        u64 items
 *     unsigned links                        u32 links
 *     unsigned options  (encoding >= 2)     u32 options
 *     unsigned growth   (encoding >= 4)     u32 growth   (not in the oldest)
 *
 * and for each link
 *
 *     unsigned entries                      u64 bytes
 *     double   error                        u64 bits
 *     unsigned hashes                       u64 items
 *     double   bpe                          f64 error
 *     unsigned bits     (encoding >= 1)     f64 bpe
 *     unsigned n2       (encoding >= 1)     u32 hashes
 *     string   body                         u64 entries  (u32 in old ones)
 *     unsigned items                        u8  n2
 *
 * In an RDB, a chain that is partial ends with one number more, ours: unsigned
 * arrived.
 *
 * Whatever comes from outside goes through one gate, check_link and
 * check_chain, before any number is used. They demand the results of
 * RedisBloom's own arithmetic: a filter that it could not have made is damaged
 * or malicious.
 */
#include <math.h>
#include <string.h>

#include "foreign/murmur.h"
#include "foreign/redisbloom_chain.h"
#include "wire/bytes.h"

typedef unsigned long long number; /* for printing */

/* An option that RedisBloom does not have: bytes are still to arrive. */
enum { PARTIAL = 1 << 16 };
enum {
    KNOWN_OPTIONS =
        CHAIN_NOROUND | CHAIN_ENTS_IS_BITS | CHAIN_FORCE64 | CHAIN_NO_SCALING
};

enum { GROWTH_OF_OLD = 2 }; /* where it is not saved */

/* ---- The gate ------------------------------------------------------------ */

/* What was read of a link: nothing in it can be trusted yet. */
struct claim {
    uint64_t entries, hashes, bits, n2, items, bytes;
    double error, bpe;
};

static calyx_status damaged(calyx_error *why, uint32_t i, const char *what,
                            double found, const char *wanted) {
    return layout_fail(why, CALYX_DAMAGED, "link %u: %s is %.17g, not %s",
                       i + 1, what, found, wanted);
}

static uint64_t divide_up(uint64_t n, uint64_t unit) {
    return n / unit + (n % unit != 0);
}

/* Early versions took as many bytes as needed; later ones, words of 8. */
static bool is_body_size(uint64_t bytes, uint64_t modulus) {
    return bytes == divide_up(modulus, 8) ||
           bytes == divide_up(modulus, 64) * 8;
}

/* Is there a bit where there should be one for every entry? Rounding is
 * forgiven. */
static bool has_enough_bits(const struct claim *is, uint64_t modulus) {
    const double need = (double)is->entries * is->bpe;
    return need <= (double)modulus * (1 + 1e-9) + 2 * is->bpe + 1;
}

static calyx_status check_link(const struct claim *is, uint32_t i,
                               struct chain_link *l, calyx_error *why) {
    const double bpe = link_bpe(is->error);
    if (!(is->error > 0 && is->error < 1))
        return damaged(why, i, "the error rate", is->error, "between 0 and 1");
    if (!(fabs(is->bpe - bpe) <= 1e-6 * bpe))
        return damaged(why, i, "the number of bits for each entry", is->bpe,
                       "what the error rate asks for");
    if (is->hashes < 1 || is->hashes > MOST_HASHES ||
        (double)is->hashes != link_hashes(is->bpe))
        return damaged(why, i, "the number of hashes", (double)is->hashes,
                       "what the bits for each entry ask for");
    if (is->n2 > 48)
        return damaged(why, i, "the logarithm of its bits", (double)is->n2,
                       "at most 48");
    const uint64_t modulus = is->n2 ? UINT64_C(1) << is->n2 : is->bits;
    if (modulus < 1 || modulus > MOST_BITS)
        return damaged(why, i, "the number of bits", (double)modulus,
                       "from 1 to 2^48");
    if (!is_body_size(is->bytes, modulus))
        return damaged(why, i, "the number of bytes", (double)is->bytes,
                       "what its bits need");
    if (is->n2 && is->bits != 0 && is->bits != modulus &&
        is->bits != is->bytes * 8) /* 0 in the oldest */
        return damaged(why, i, "the number of bits", (double)is->bits,
                       "the number of bits of its body");
    if (is->entries < 1 || is->entries > MOST_ENTRIES ||
        !has_enough_bits(is, modulus))
        return damaged(why, i, "the number of entries", (double)is->entries,
                       "what its bits were made for");
    if (is->items > is->entries)
        return damaged(why, i, "the number of items", (double)is->items,
                       "at most the number of items of its entries");

    *l = (struct chain_link){
        .bytes = is->bytes,
        .bits = is->n2 ? is->bytes * 8 : is->bits,
        .entries = is->entries,
        .items = is->items,
        .error = is->error,
        .bpe = is->bpe,
        .hashes = (uint32_t)is->hashes,
        .n2 = (uint8_t)is->n2,
    };
    link_derive(l);
    return CALYX_OK;
}

struct chain_claim {
    uint64_t items, links, options, growth;
};

static calyx_status check_chain(const struct chain_claim *is,
                                uint64_t known_options, calyx_error *why) {
    if (is->links < 1 || is->links > MOST_LINKS)
        return layout_fail(why, CALYX_DAMAGED,
                           "a filter has from 1 to %d links, not %llu",
                           MOST_LINKS, (number)is->links);
    if (is->options & ~known_options)
        return layout_fail(why, CALYX_DAMAGED,
                           "the options are %llu; only the bits of %llu mean "
                           "something",
                           (number)is->options, (number)known_options);
    const bool grows = !(is->options & CHAIN_NO_SCALING);
    if (is->growth > UINT32_MAX || (grows && is->growth < 1))
        return layout_fail(why, CALYX_DAMAGED,
                           "the expansion of a filter is from 1 to 2^32 - 1, "
                           "not %llu",
                           (number)is->growth);
    return CALYX_OK;
}

/* MOST_LINKS times MOST_ENTRIES is far from overflowing a sum. */
static calyx_status check_items(uint64_t claimed, uint64_t items,
                                calyx_error *why) {
    if (claimed == items) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "the filter has %llu items, but its links have %llu",
                       (number)claimed, (number)items);
}

/* ---- Values -------------------------------------------------------------- */

void chain_save(const struct chain *c, const struct rdb_writer *to) {
    const bool partial = chain_is_partial(c);
    void *const context = to->context;
    to->put_unsigned(context, c->items);
    to->put_unsigned(context, c->links);
    to->put_unsigned(context, c->options | (partial ? (uint32_t)PARTIAL : 0));
    to->put_unsigned(context, c->growth);
    for (uint32_t i = 0; i < c->links; i++) {
        const struct chain_link *l = &c->link[i];
        to->put_unsigned(context, l->entries);
        to->put_double(context, l->error);
        to->put_unsigned(context, l->hashes);
        to->put_double(context, l->bpe);
        to->put_unsigned(context, l->bits);
        to->put_unsigned(context, l->n2);
        to->put_string(context, l->body, (size_t)l->bytes);
        to->put_unsigned(context, l->items);
    }
    if (partial) to->put_unsigned(context, c->arrived);
}

static calyx_status ended(calyx_error *why) {
    return layout_fail(why, CALYX_IO, "the data of a filter ends too early");
}

/* The oldest encoding does not have the bits. */
static uint64_t bits_of_oldest(const struct claim *is) {
    const double bits = (double)is->entries * is->bpe;
    return bits >= 1 && bits < (double)MOST_BITS ? (uint64_t)bits : 0;
}

static calyx_status load_link(struct rdb_input *in, int encoding,
                              struct chain *c, calyx_error *why) {
    struct claim is = {0};
    struct chain_link l;
    is.entries = rdb_get_unsigned(in);
    is.error = rdb_get_double(in);
    is.hashes = rdb_get_unsigned(in);
    is.bpe = rdb_get_double(in);
    is.bits = encoding < 1 ? bits_of_oldest(&is) : rdb_get_unsigned(in);
    is.n2 = encoding < 1 ? 0 : rdb_get_unsigned(in);
    uint8_t *const body = rdb_get_string(in, &is.bytes);
    is.items = rdb_get_unsigned(in);

    calyx_status status =
        in->failed ? ended(why) : check_link(&is, c->links, &l, why);
    if (status == CALYX_OK) {
        l.body = body;
        status = chain_push(c, &l, why);
    }
    if (status != CALYX_OK && body)
        c->memory.release(c->memory.context, body, (size_t)is.bytes);
    return status;
}

/* Of the bytes of all bodies, the first from here on that is not zero, or their
 * number if there is none. */
static uint64_t next_used_byte(const struct chain *c, uint64_t from) {
    uint64_t begin = 0;
    for (uint32_t i = 0; i < c->links; begin += c->link[i++].bytes)
        for (; from < begin + c->link[i].bytes; from++)
            if (c->link[i].body[from - begin]) return from;
    return from;
}

static calyx_status load_arrived(struct rdb_input *in, uint64_t options,
                                 struct chain *c, calyx_error *why) {
    c->arrived = c->bytes;
    if (!(options & PARTIAL)) return CALYX_OK;
    c->arrived = rdb_get_unsigned(in);
    if (in->failed) return ended(why);
    if (c->arrived >= c->bytes)
        return layout_fail(
            why, CALYX_DAMAGED,
            "the filter is said to be partial, with %llu of its %llu "
            "bytes",
            (number)c->arrived, (number)c->bytes);
    const uint64_t used = next_used_byte(c, c->arrived);
    if (used == c->bytes) return CALYX_OK;
    return layout_fail(why, CALYX_DAMAGED,
                       "%llu bytes of the filter are said to have arrived, but "
                       "byte %llu is not zero",
                       (number)c->arrived, (number)used);
}

static calyx_status load_links(struct rdb_input *in, int encoding,
                               const struct chain_claim *is, struct chain *c,
                               calyx_error *why) {
    calyx_status status = CALYX_OK;
    c->options = (uint32_t)is->options & KNOWN_OPTIONS;
    c->growth = (uint32_t)is->growth;
    while (status == CALYX_OK && c->links < is->links)
        status = load_link(in, encoding, c, why);
    if (status == CALYX_OK) status = check_items(is->items, c->items, why);
    if (status == CALYX_OK) status = load_arrived(in, is->options, c, why);
    return status;
}

calyx_status chain_load(const struct rdb_reader *from, int encoding,
                        const calyx_memory *memory, struct chain **out,
                        calyx_error *why) {
    struct rdb_input in = {from, false};
    struct chain_claim is = {.growth = GROWTH_OF_OLD};
    struct chain *c;
    *out = NULL;
    if (encoding < 0 || encoding > CHAIN_ENCODING)
        return layout_fail(why, CALYX_TOO_NEW,
                           "the encoding of a filter is %d; those from 0 to %d "
                           "can be read",
                           encoding, CHAIN_ENCODING);
    is.items = rdb_get_unsigned(&in);
    is.links = rdb_get_unsigned(&in);
    if (encoding >= 2) is.options = rdb_get_unsigned(&in);
    if (encoding >= 4) is.growth = rdb_get_unsigned(&in);
    if (in.failed) return ended(why);

    const uint64_t partial = encoding == CHAIN_ENCODING ? PARTIAL : 0;
    calyx_status status = check_chain(&is, KNOWN_OPTIONS | partial, why);
    if (status == CALYX_OK) status = chain_blank(memory, &c, why);
    if (status != CALYX_OK) return status;
    status = load_links(&in, encoding, &is, c, why);
    if (status != CALYX_OK) {
        chain_free(c);
        return status;
    }
    *out = c;
    return CALYX_OK;
}

/* ---- The header of a dump ------------------------------------------------ */

enum {
    HEAD = 20,
    OLD_HEAD = 16, /* without growth */
    LINK = 53,
    OLD_LINK = 49 /* with entries of 32 bits */
};

static void dump_head(const struct chain *c, uint32_t growth, uint8_t *p) {
    store_u64(p, c->items);
    store_u32(p + 8, c->links);
    store_u32(p + 12, c->options);
    store_u32(p + 16, growth);
}

static void dump_link(const struct chain_link *l, uint8_t *p) {
    store_u64(p, l->bytes);
    store_u64(p + 8, l->bits);
    store_u64(p + 16, l->items);
    store_f64(p + 24, l->error);
    store_f64(p + 32, l->bpe);
    store_u32(p + 40, l->hashes);
    store_u64(p + 44, l->entries);
    p[52] = l->n2;
}

size_t chain_header_size(const struct chain *c) {
    return HEAD + (size_t)LINK * c->links;
}

void chain_dump_header(const struct chain *c, void *buffer) {
    uint8_t *p = buffer;
    dump_head(c, c->growth, p);
    for (uint32_t i = 0; i < c->links; i++)
        dump_link(&c->link[i], p + HEAD + (size_t)LINK * i);
}

uint64_t chain_digest(const struct chain *c) {
    uint8_t head[HEAD], link[LINK];
    dump_head(c, c->options & CHAIN_NO_SCALING ? 0 : c->growth, head);
    uint64_t digest = murmur64(head, sizeof head, c->arrived);
    for (uint32_t i = 0; i < c->links; i++) {
        dump_link(&c->link[i], link);
        digest = murmur64(link, sizeof link, digest);
        digest = murmur64(c->link[i].body, (size_t)c->link[i].bytes, digest);
    }
    return digest;
}

/* A header whose size fits what it says of itself. */
struct header {
    const uint8_t *link; /* the first of them */
    size_t link_size;
    struct chain_claim is;
};

static calyx_status read_head(const uint8_t *p, size_t size, struct header *h,
                              calyx_error *why) {
    static const struct {
        uint8_t head, link;
    } form[] = {{HEAD, LINK}, {HEAD, OLD_LINK}, {OLD_HEAD, OLD_LINK}};
    const uint64_t links = size < OLD_HEAD ? 0 : load_u32(p + 8);
    for (size_t i = 0; i < sizeof form / sizeof form[0] && links; i++) {
        if (size != form[i].head + links * form[i].link) continue;
        h->link = p + form[i].head;
        h->link_size = form[i].link;
        h->is = (struct chain_claim){
            .items = load_u64(p),
            .links = links,
            .options = load_u32(p + 12),
            .growth = form[i].head == HEAD ? load_u32(p + 16) : GROWTH_OF_OLD,
        };
        return check_chain(&h->is, KNOWN_OPTIONS, why);
    }
    return layout_fail(
        why, CALYX_DAMAGED, "a header of %llu links has %llu bytes, not %llu",
        (number)links, (number)(HEAD + LINK * links), (number)size);
}

static calyx_status read_link(const struct header *h, uint32_t i,
                              struct chain_link *l, calyx_error *why) {
    const uint8_t *p = h->link + i * h->link_size;
    const bool is_old = h->link_size == OLD_LINK;
    const struct claim is = {
        .bytes = load_u64(p),
        .bits = load_u64(p + 8),
        .items = load_u64(p + 16),
        .error = load_f64(p + 24),
        .bpe = load_f64(p + 32),
        .hashes = load_u32(p + 40),
        .entries = is_old ? load_u32(p + 44) : load_u64(p + 44),
        .n2 = p[h->link_size - 1],
    };
    return check_link(&is, i, l, why);
}

/* Check all of it, and count the bytes of the bodies. */
static calyx_status read_header(const void *header, size_t size,
                                struct header *h, uint64_t *bytes,
                                calyx_error *why) {
    uint64_t items = 0;
    *bytes = 0;
    calyx_status status = read_head(header, size, h, why);
    for (uint32_t i = 0; status == CALYX_OK && i < h->is.links; i++) {
        struct chain_link l;
        status = read_link(h, i, &l, why);
        if (status != CALYX_OK) return status;
        *bytes += l.bytes;
        items += l.items;
    }
    return status == CALYX_OK ? check_items(h->is.items, items, why) : status;
}

calyx_status chain_header_bytes(const void *header, size_t size,
                                uint64_t *bytes, calyx_error *why) {
    struct header h;
    return read_header(header, size, &h, bytes, why);
}

calyx_status chain_load_header(const void *header, size_t size,
                               const calyx_memory *memory, struct chain **out,
                               calyx_error *why) {
    struct header h;
    struct chain *c;
    uint64_t bytes;
    *out = NULL;
    calyx_status status = read_header(header, size, &h, &bytes, why);
    if (status == CALYX_OK) status = chain_blank(memory, &c, why);
    if (status != CALYX_OK) return status;
    c->options = (uint32_t)h.is.options;
    c->growth = (uint32_t)h.is.growth;
    while (status == CALYX_OK && c->links < h.is.links) {
        struct chain_link l;
        status = read_link(&h, c->links, &l, why);
        if (status == CALYX_OK) status = chain_push(c, &l, why);
    }
    if (status != CALYX_OK) {
        chain_free(c);
        return status;
    }
    *out = c;
    return CALYX_OK;
}

/* ---- The chunks of a dump ------------------------------------------------ */

/* The link that has the byte at `from` of all bodies, and where it begins. */
static struct chain_link *link_with(const struct chain *c, uint64_t from,
                                    uint64_t *begin) {
    *begin = 0;
    for (uint32_t i = 0; i < c->links; i++) {
        if (from - *begin < c->link[i].bytes) return &c->link[i];
        *begin += c->link[i].bytes;
    }
    return NULL;
}

const void *chain_dump_chunk(const struct chain *c, size_t most, int64_t *at,
                             size_t *size) {
    uint64_t begin;
    const uint64_t from = (uint64_t)*at - 1;
    const struct chain_link *l =
        *at > 0 && from < c->arrived ? link_with(c, from, &begin) : NULL;
    if (!l) {
        *at = 0;
        *size = 0;
        return NULL;
    }
    const uint64_t end =
        begin + l->bytes < c->arrived ? begin + l->bytes : c->arrived;
    *size = end - from < most ? (size_t)(end - from) : most;
    *at += (int64_t)*size;
    return l->body + (from - begin);
}

/* Add bits to those that are there. */
static bool merge(uint8_t *to, const uint8_t *from, size_t size) {
    uint64_t fresh = 0;
    for (; size >= 8; size -= 8, to += 8, from += 8) {
        uint64_t old, more;
        memcpy(&old, to, 8);
        memcpy(&more, from, 8);
        fresh |= more & ~old;
        more |= old;
        memcpy(to, &more, 8);
    }
    for (size_t i = 0; i < size; i++) {
        fresh |= from[i] & (uint8_t)~to[i];
        to[i] |= from[i];
    }
    return fresh != 0;
}

calyx_status chain_load_chunk(struct chain *c, int64_t at, const void *bytes,
                              size_t size, bool *changed, calyx_error *why) {
    uint64_t begin;
    if (at <= 0 || (uint64_t)at < size)
        return layout_fail(
            why, CALYX_BAD_ARGUMENT,
            "received bad data: a chunk of %llu bytes cannot end "
            "at iterator %lld",
            (number)size, (long long)at);
    const uint64_t from = (uint64_t)at - size - 1; /* or 2^64 - 1 */
    const struct chain_link *l = link_with(c, from, &begin);
    if (!l)
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "invalid offset - no link found");
    if (size > l->bytes - (from - begin))
        return layout_fail(why, CALYX_BAD_ARGUMENT,
                           "invalid chunk - Too big for current filter");
    if (from > c->arrived)
        return layout_fail(
            why, CALYX_BAD_ARGUMENT,
            "received bad data: the chunk begins with byte %llu, "
            "but those from %llu on are missing",
            (number)from, (number)c->arrived);

    const bool fresh = merge(l->body + (from - begin), bytes, size);
    const bool longer = from + size > c->arrived;
    if (longer) c->arrived = from + size;
    if (changed) *changed = fresh || longer;
    return CALYX_OK;
}
