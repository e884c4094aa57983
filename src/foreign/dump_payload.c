#include "foreign/dump_payload.h"

#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

enum {
    MODULE_2 = 7, /* a value of a module, with opcodes             */
    VERSION = 8,  /* of RDB: Redis 4, the first that has such values */
    FOOTER = 10,
    TYPE_LETTERS = 9,
};
enum opcode { NO_MORE = 0, UNSIGNED = 2, DOUBLE = 4, STRING = 5 };
enum { LZF = 0xC3 }; /* the length of a string that is compressed */

/* ---- The checksum -------------------------------------------------------- */

/* The polynomial 0xAD93D23594C935A9, the lowest bit first. */
static void fill_table(uint64_t *table) {
    for (unsigned i = 0; i < 256; i++) {
        uint64_t sum = i;
        for (int bit = 0; bit < 8; bit++)
            sum = sum >> 1 ^ (sum & 1 ? UINT64_C(0x95AC9329AC4BC9B5) : 0);
        table[i] = sum;
    }
}

uint64_t payload_sum(uint64_t sum, const void *bytes, size_t size) {
    uint64_t table[256];
    const uint8_t *const at = bytes;
    fill_table(table);
    for (size_t i = 0; i < size; i++)
        sum = table[(sum ^ at[i]) & 0xFF] ^ sum >> 8;
    return sum;
}

/* ---- Reading ------------------------------------------------------------- */

struct payload_reader {
    const uint8_t *first, *at, *end;
    calyx_error *why;
    bool failed; /* `why` has the first failure; all later calls fail, too */
};

#define FAIL(r, ...)                                                     \
    ((r)->failed ? (void)0                                               \
                 : layout_explain((r)->why, CALYX_DAMAGED, __VA_ARGS__), \
     (r)->failed = true)

static const uint8_t *take(struct payload_reader *r, uint64_t size) {
    const uint8_t *const at = r->at;
    if (r->failed) return NULL;
    if (size > (uint64_t)(r->end - r->at)) {
        FAIL(r, "expected %llu bytes at byte %zu, found %zu",
             (unsigned long long)size, (size_t)(r->at - r->first),
             (size_t)(r->end - r->at));
        return NULL;
    }
    r->at += size;
    return at;
}

/* `*packed` unless NULL: it is the length of a compressed string. */
static bool get_length(struct payload_reader *r, uint64_t *length,
                       bool *packed) {
    const uint8_t *const at = take(r, 1);
    if (!at) return false;
    const unsigned form = *at >> 6;
    const uint64_t more = form == 0     ? 0
                          : form == 1   ? 1
                          : *at == 0x80 ? 4
                          : *at == 0x81 ? 8
                                        : UINT64_MAX;
    if (packed) *packed = *at == LZF;
    if (*at == LZF && packed) return get_length(r, length, NULL);
    if (more == UINT64_MAX) {
        FAIL(r, "expected a length at byte %zu, found 0x%02x",
             (size_t)(at - r->first), *at);
        return false;
    }
    const uint8_t *const rest = take(r, more);
    if (!rest) return false;
    *length = form == 0   ? *at
              : form == 1 ? (*at & 63u) << 8 | *rest
                          : big_endian(rest, (int)more);
    return true;
}

static bool expect_opcode(struct payload_reader *r, enum opcode wanted,
                          const char *name) {
    const size_t at = (size_t)(r->at - r->first);
    uint64_t found;
    if (!get_length(r, &found, NULL)) return false;
    if (found != wanted)
        FAIL(r, "expected %s, opcode %d, at byte %zu, found opcode %llu", name,
             wanted, at, (unsigned long long)found);
    return !r->failed;
}

static bool get_unsigned(void *r, uint64_t *value) {
    return expect_opcode(r, UNSIGNED, "a number") && get_length(r, value, NULL);
}

static bool get_double(void *r, double *value) {
    const uint8_t *const at =
        expect_opcode(r, DOUBLE, "a fraction") ? take(r, 8) : NULL;
    if (at) *value = load_f64(at);
    return at;
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

static void *get_string(void *reader, size_t *size) {
    struct payload_reader *const r = reader;
    enum { MOST_RATIO = 88 }; /* 3 bytes of LZF become 264 at most */
    uint64_t there, length;
    bool packed;
    if (!expect_opcode(r, STRING, "a string") ||
        !get_length(r, &there, &packed))
        return NULL;
    length = there;
    if (packed && !get_length(r, &length, NULL)) return NULL;
    const uint8_t *const bytes = take(r, there);
    if (!bytes) return NULL;
    if (packed && length / MOST_RATIO > there) {
        FAIL(r, "a string of %llu bytes is said to become %llu",
             (unsigned long long)there, (unsigned long long)length);
        return NULL;
    }
    uint8_t *const string = malloc((size_t)length + 1);
    if (!string)
        FAIL(r, "no memory for a string of %llu bytes",
             (unsigned long long)length);
    else if (!packed)
        memcpy(string, bytes, (size_t)length);
    else if (!unpack_lzf(bytes, (size_t)there, string, (size_t)length))
        FAIL(r, "the compressed string that ends at byte %zu is damaged",
             (size_t)(r->at - r->first));
    *size = (size_t)length;
    if (!r->failed) return string;
    free(string);
    return NULL;
}

static bool next_is_string(void *reader) {
    const struct payload_reader *const r = reader;
    return r->at < r->end && *r->at == STRING;
}

/* The nine letters, as 6 bits each; the encoding has 10 more. */
static uint64_t type_number(const char *type) {
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint64_t number = 0;
    for (int i = 0; i < TYPE_LETTERS; i++)
        number = number << 6 | (uint64_t)(strchr(letters, type[i]) - letters);
    return number;
}

bool payload_looks_so(const uint8_t *bytes, size_t size) {
    return size > FOOTER && bytes[0] == MODULE_2 && bytes[1] == 0x81;
}

static calyx_status open_payload(struct payload_reader *r, const uint8_t *bytes,
                                 size_t size, const char *type, int *encoding,
                                 calyx_error *why) {
    uint64_t number = 0;
    *r = (struct payload_reader){.first = bytes, .at = bytes, .why = why};
    if (!payload_looks_so(bytes, size))
        return layout_fail(why, CALYX_DAMAGED,
                           "it does not begin as the reply to DUMP of a key "
                           "that a module has made");
    r->end = bytes + size - FOOTER;
    const uint64_t sum = payload_sum(0, bytes, size - 8);
    if (load_u64(bytes + size - 8) != sum)
        return layout_fail(why, CALYX_DAMAGED,
                           "its checksum is %016llx, and its bytes have "
                           "%016llx; did a newline of redis-cli get after "
                           "it?",
                           (unsigned long long)load_u64(bytes + size - 8),
                           (unsigned long long)sum);
    r->at++;
    if (!get_length(r, &number, NULL)) return CALYX_DAMAGED;
    if (number >> 10 != type_number(type))
        return layout_fail(why, CALYX_DAMAGED,
                           "it is a key of another type than %s", type);
    *encoding = (int)(number & 1023);
    return CALYX_OK;
}

static bool is_at_end(struct payload_reader *r) {
    if (expect_opcode(r, NO_MORE, "the end") && r->at != r->end)
        FAIL(r, "%zu bytes follow after the last value",
             (size_t)(r->end - r->at));
    return !r->failed;
}

calyx_status payload_read(const uint8_t *bytes, size_t size, const char *type,
                          load_values *load, struct foreign_filter *f,
                          calyx_error *why) {
    struct payload_reader r;
    calyx_error cause = {0}; /* of what `load` says */
    int encoding;
    calyx_status status = open_payload(&r, bytes, size, type, &encoding, why);
    if (status != CALYX_OK) return status;
    r.why = &cause;
    const struct rdb_reader from = {get_unsigned, get_double, get_string, &r,
                                    next_is_string};
    status = load(&from, encoding, f, why);
    if (status == CALYX_OK && !is_at_end(&r)) {
        f->layout->free(f);
        status = CALYX_DAMAGED;
    }
    if (r.failed && why) *why = cause;
    return status;
}

/* ---- Writing ------------------------------------------------------------- */

struct payload_writer {
    const struct foreign_sink *to;
    uint64_t sum;
};

static void put(struct payload_writer *w, const void *bytes, size_t size) {
    w->sum = payload_sum(w->sum, bytes, size);
    w->to->put(w->to->context, bytes, size);
}

static void put_length(struct payload_writer *w, uint64_t length) {
    uint8_t bytes[9];
    size_t size = 1;
    if (length < 64) {
        bytes[0] = (uint8_t)length;
    } else if (length < 1 << 14) {
        put_big_endian(bytes, length | 1 << 14, 2);
        size = 2;
    } else if (length <= UINT32_MAX) {
        bytes[0] = 0x80;
        put_big_endian(bytes + 1, length, 4);
        size = 5;
    } else {
        bytes[0] = 0x81;
        put_big_endian(bytes + 1, length, 8);
        size = 9;
    }
    put(w, bytes, size);
}

static void put_unsigned(void *w, uint64_t value) {
    put_length(w, UNSIGNED);
    put_length(w, value);
}

static void put_double(void *w, double value) {
    uint8_t bytes[8];
    store_f64(bytes, value);
    put_length(w, DOUBLE);
    put(w, bytes, sizeof bytes);
}

static void put_string(void *w, const void *bytes, size_t size) {
    put_length(w, STRING);
    put_length(w, size);
    put(w, bytes, size);
}

void payload_write(const struct foreign_filter *f, const char *type,
                   int encoding, save_values *save,
                   const struct foreign_sink *to) {
    struct payload_writer w = {.to = to};
    uint8_t sum[8];
    put(&w, (const uint8_t[]){MODULE_2}, 1);
    put_length(&w, type_number(type) << 10 | (uint64_t)encoding);
    save(f, &(struct rdb_writer){put_unsigned, put_double, put_string, &w});
    put_length(&w, NO_MORE);
    put(&w, (const uint8_t[]){VERSION, 0}, 2);
    store_u64(sum, w.sum);
    to->put(to->context, sum, sizeof sum);
}
