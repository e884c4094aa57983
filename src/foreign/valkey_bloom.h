/*
 * Filters in valkey-bloom's own layout, so that its data can be moved here,
 * used, and moved back. Nothing in this file knows a server: it works on bytes.
 *
 * Such a filter is a row of parts. A part is a textbook Bloom filter with a
 * seed of 32 bytes, two keys of SipHash-1-3. When the newest part holds the
 * items that it was made for, another is added, `expansion` times as large, at
 * a rate that is `tightening` times as high. The first part has the full rate,
 * so the rates of all add up to at most rate / (1 - tightening).
 *
 * A part is stored as valkey-bloom writes it, as a blob, little-endian:
 *
 *     u8 1, u64 bytes of the bits, u32 hashes, seed, bits
 *
 * Statuses, error texts, keys and memory are as in calyx.h: a failed call
 * changes nothing, and explains why.
 */
#ifndef CALYX_FOREIGN_VALKEY_BLOOM_H
#define CALYX_FOREIGN_VALKEY_BLOOM_H

#include <calyx/calyx.h>

#include "foreign/layout_error.h"
#include "foreign/rdb_values.h"

enum {
    VALKEY_SEED_BYTES = 32,
    VALKEY_BLOB_HEAD = 45, /* bytes before the bits */
    VALKEY_MOST_PARTS = 1 << 20,
    VALKEY_MOST_HASHES = 1100,
};
#define VALKEY_MOST_BYTES (UINT64_C(1) << 45)

/* What it uses instead of a random seed. */
extern const uint8_t valkey_fixed_seed[VALKEY_SEED_BYTES];

struct valkey_part {
    uint8_t *blob;
    uint64_t bytes;    /* of the bits, at blob + VALKEY_BLOB_HEAD */
    uint64_t capacity; /* items that it was made for              */
    uint64_t items;
    uint32_t hashes;
    uint64_t inverse; /* 2^64 / bits, or a little less (derived) */
};

/* What is the same for all parts. */
struct valkey_params {
    double rate; /* of the first part */
    double tightening;
    uint32_t expansion;  /* 0: it does not grow */
    bool seed_is_random; /* false: the fixed one */
    uint8_t seed[VALKEY_SEED_BYTES];
};

struct valkey_bloom {
    struct valkey_params params;
    struct valkey_part *part; /* oldest first; items are added to the last */
    uint32_t parts, room;
    uint64_t items, bytes; /* of all parts; of their bits */
    uint64_t arrived;      /* bytes that are there: all, except while a dump is
                              being loaded                                   */
    calyx_memory memory;
};

/* ---- Making -------------------------------------------------------------- */

calyx_status valkey_new(uint64_t capacity, const struct valkey_params *params,
                        const calyx_memory *memory, struct valkey_bloom **out,
                        calyx_error *why);
calyx_status valkey_copy(const struct valkey_bloom *v,
                         struct valkey_bloom **out, calyx_error *why);
/* An empty one, as this was when it was new. */
calyx_status valkey_new_like(const struct valkey_bloom *v,
                             struct valkey_bloom **out, calyx_error *why);
void valkey_free(struct valkey_bloom *v); /* NULL is fine */

/* ---- Items --------------------------------------------------------------- */

bool valkey_has(const struct valkey_bloom *v, const void *item, size_t size);
/* CALYX_FULL: it may not grow. CALYX_CANNOT: the next part is not possible. */
calyx_status valkey_add(struct valkey_bloom *v, const void *item, size_t size,
                        bool *fresh, calyx_error *why);

/* ---- The whole ----------------------------------------------------------- */

/* What valkey-bloom calls Size: by its own structs. */
uint64_t valkey_size(uint32_t parts, uint64_t bytes);
uint64_t valkey_capacity(const struct valkey_bloom *v);
/* Of the part with this number. */
double valkey_rate(const struct valkey_params *params, uint32_t number);

/* How many items it can hold when it has grown as far as it can: until its size
 * would exceed `most_bytes` (0: no limit), or its rate or capacity are no
 * longer possible. Stops when `enough` is reached (0: never). `*limit` says
 * what ended it. */
enum valkey_limit { VALKEY_ENOUGH, VALKEY_MEMORY, VALKEY_RATE, VALKEY_LARGE };
uint64_t valkey_scaled_capacity(uint64_t capacity,
                                const struct valkey_params *params,
                                uint64_t most_bytes, uint64_t enough,
                                enum valkey_limit *limit);

/* ---- As BF.LOAD has it --------------------------------------------------- */

size_t valkey_payload_size(const struct valkey_bloom *v);
void valkey_put_payload(const struct valkey_bloom *v, uint8_t *payload);
/* Check a payload, and make a filter of it that has no bits yet. Then copy at
 * most `most` bytes of them at a time, until none is left to come. */
calyx_status valkey_begin_payload(const uint8_t *payload, size_t size,
                                  const calyx_memory *memory,
                                  struct valkey_bloom **out, calyx_error *why);
void valkey_copy_payload(struct valkey_bloom *v, const uint8_t *payload,
                         uint64_t most);

/* ---- A dump: a head, then the bits in pieces ---------------------------- */

/* The head is a payload whose blobs end with their seeds, after the mark
 * "CALYXVB\1". */
size_t valkey_head_size(const struct valkey_bloom *v);
void valkey_put_head(const struct valkey_bloom *v, uint8_t *head);
bool valkey_is_head(const void *head, size_t size);
calyx_status valkey_load_head(const uint8_t *head, size_t size,
                              const calyx_memory *memory,
                              struct valkey_bloom **out, calyx_error *why);
/* The bytes from `from` of all bits on, up to the end of a part; NULL after
 * the last. */
uint8_t *valkey_bits_from(const struct valkey_bloom *v, uint64_t from,
                          uint64_t *size);

/* ---- Saved in an RDB file or a DUMP payload: type "bloomfltr" ------------ */

/*
 *     unsigned parts, unsigned expansion, double rate, double tightening,
 *     unsigned seed is random; for each part:
 *     unsigned capacity, [unsigned items: last part only], string blob
 *
 * Versions before 1.0 have the blob first, with the same encoding.
 */
enum { VALKEY_ENCODING = 1 };

/* A partial filter is saved with a bit and a number more, which valkey-bloom
 * does not know: it refuses it, as it should. */
void valkey_save(const struct valkey_bloom *v, bool blobs_first,
                 const struct rdb_writer *to);

/* CALYX_IO: the first part has other values than the reader says. */
calyx_status valkey_load(const struct rdb_reader *from, int encoding,
                         const calyx_memory *memory, struct valkey_bloom **out,
                         calyx_error *why);

/* ---- Between valkey_bloom.c and valkey_codec.c -------------------------- */

/* A filter without parts, which nobody may use yet; and one part more for it,
 * with a blob of its own if it has none. The filter owns the blob then. */
calyx_status valkey_blank(const struct valkey_params *params,
                          const calyx_memory *memory, struct valkey_bloom **out,
                          calyx_error *why);
calyx_status valkey_push(struct valkey_bloom *v, struct valkey_part *p,
                         calyx_error *why);

/* What stands before the bits. */
void valkey_put_blob_head(uint8_t *blob, const struct valkey_part *p,
                          const uint8_t *seed);

#endif
