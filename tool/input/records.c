#include "input/records.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

/* ---- Ends and separators ------------------------------------------------- */

char record_end(void) {
    return key_form.nul ? '\0' : '\n';
}

bool record_ends_are_plain(void) {
    return !key_form.csv;
}

static char separator(void) {
    if (key_form.separator >= 0) return (char)key_form.separator;
    return key_form.csv ? ',' : '\t';
}

/* ---- Where lines end ---------------------------------------------------- */

/* The next place in CSV, behind a byte that ends no line. */
static int place_after(int place, char c, char sep) {
    switch (place) {
        case IN_QUOTES: return c == '"' ? QUOTE_IN_QUOTES : IN_QUOTES;
        case QUOTE_IN_QUOTES:
        case FIELD_START:
            if (c == '"') return IN_QUOTES;
            return c == sep ? FIELD_START : IN_FIELD;
        default: return c == sep ? FIELD_START : IN_FIELD;
    }
}

static size_t last_csv_end(struct record_state *state, const char *text,
                           size_t from, size_t size) {
    const char end = record_end(), sep = separator();
    size_t last = 0;
    int place = (int)state->place;
    for (size_t i = from; i < from + size; i++) {
        if (text[i] == end && place != IN_QUOTES) {
            place = FIELD_START;
            last = i + 1;
        } else {
            place = place_after(place, text[i], sep);
        }
    }
    state->place = (unsigned)place;
    return last;
}

size_t last_record_end(struct record_state *state, const char *text,
                       size_t from, size_t size) {
    if (key_form.csv) return last_csv_end(state, text, from, size);
    const char *const last = memrchr(text + from, record_end(), size);
    return last ? (size_t)(last - text) + 1 : 0;
}

/* Cut lines off `at` until there are BATCH, or `end` is reached. The last line
 * may lack its end. Returns where the next line starts. */
typedef const char *cut_lines(const char *at, const char *end, char ender,
                              struct key_batch *batch);

static inline void put_line(struct key_batch *batch, const char *from,
                            const char *to) {
    batch->lines[batch->count++] = (calyx_key){from, (size_t)(to - from)};
}

static const char *cut_plain(const char *at, const char *end, char ender,
                             struct key_batch *batch) {
    while (at < end && batch->count < BATCH) {
        const char *const stop = memchr(at, ender, (size_t)(end - at));
        put_line(batch, at, stop ? stop : end);
        at = stop ? stop + 1 : end;
    }
    return at;
}

#if defined(__x86_64__)
/* The same, 64 bytes at a time: a call of memchr for each line costs more than
 * the look. Reads up to 63 bytes behind the end, and makes up to 63 lines more
 * than BATCH; there is room for both. */
__attribute__((target("avx2"))) static const char *cut_avx2(
    const char *at, const char *end, char ender, struct key_batch *batch) {
    const __m256i enders = _mm256_set1_epi8(ender);
    for (const char *p = at; p < end && batch->count < BATCH; p += 64) {
        const __m256i low = _mm256_loadu_si256((const __m256i *)p);
        const __m256i high = _mm256_loadu_si256((const __m256i *)(p + 32));
        const uint32_t in_low =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, enders));
        const uint32_t in_high =
            (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, enders));
        uint64_t ends = in_low | (uint64_t)in_high << 32;
        if (end - p < 64) ends &= (UINT64_C(1) << (end - p)) - 1;
        for (; ends; ends &= ends - 1) {
            const char *const stop = p + __builtin_ctzll(ends);
            put_line(batch, at, stop);
            at = stop + 1;
        }
    }
    if (at < end && batch->count < BATCH) {
        put_line(batch, at, end);
        at = end;
    }
    return at;
}

static cut_lines *best_cut(void) {
    return __builtin_cpu_supports("avx2") ? cut_avx2 : cut_plain;
}
#else
static cut_lines *best_cut(void) {
    return cut_plain;
}
#endif

static const char *cut_csv(const char *at, const char *end, char ender,
                           struct key_batch *batch) {
    const char sep = separator();
    while (at < end && batch->count < BATCH) {
        int place = FIELD_START;
        const char *stop = at;
        while (stop < end && (*stop != ender || place == IN_QUOTES))
            place = place_after(place, *stop++, sep);
        put_line(batch, at, stop);
        at = stop < end ? stop + 1 : end;
    }
    return at;
}

uint64_t ends_of(const calyx_key *line) {
    uint64_t ends = 1;
    if (key_form.csv)
        for (size_t i = 0; i < line->size; i++)
            ends += ((const char *)line->data)[i] == record_end();
    return ends;
}

/* ---- Fields ------------------------------------------------------------- */

static void put_field(struct key_batch *batch, size_t n, const char *from,
                      const char *to) {
    if (n == batch->field_room) {
        batch->field_room = n ? 2 * n : 16;
        batch->fields =
            resize_memory(batch->fields, batch->field_room * sizeof(calyx_key));
    }
    batch->fields[n] = (calyx_key){from, (size_t)(to - from)};
}

/* Behind the closing quote of a field that starts at `at`, NULL if there is
 * none. */
static const char *behind_quotes(const char *at, const char *end) {
    for (at++; at < end; at++) {
        if (*at != '"') continue;
        if (at + 1 == end || at[1] != '"') return at + 1;
        at++; /* a doubled quote is one quote */
    }
    return NULL;
}

/* Split a line into batch->fields. Returns how many, 0 on an error. */
static size_t split(struct key_batch *batch, const char *at, const char *end,
                    char *error, size_t error_size) {
    const char sep = separator();
    for (size_t n = 0;; n++) {
        const char *from = at, *stop = at;
        if (key_form.csv && at < end && *at == '"') {
            stop = behind_quotes(at, end);
            if (!stop) {
                snprintf(error, error_size,
                         "the quotes around field %zu are never closed", n + 1);
                return 0;
            }
            if (stop < end && *stop != sep) {
                snprintf(error, error_size,
                         "behind the closing quote of field %zu a separator or "
                         "the end of the line is wanted, found '%c'",
                         n + 1, *stop);
                return 0;
            }
        } else {
            stop = memchr(at, sep, (size_t)(end - at));
            if (!stop) stop = end;
        }
        put_field(batch, n, from, stop);
        if (stop == end) return n + 1;
        at = stop + 1;
    }
}

static void put_bytes(struct key_batch *batch, const void *bytes, size_t size) {
    if (size > batch->bytes_room - batch->bytes_size) {
        while (size > batch->bytes_room - batch->bytes_size)
            batch->bytes_room =
                batch->bytes_room ? 2 * batch->bytes_room : 4096;
        batch->bytes = resize_memory(batch->bytes, batch->bytes_room);
    }
    if (size) memcpy(batch->bytes + batch->bytes_size, bytes, size);
    batch->bytes_size += size;
}

/* The bytes of a field, without its quotes. */
static void put_value(struct key_batch *batch, const calyx_key *field) {
    const char *at = field->data, *end = at + field->size;
    if (!key_form.csv || at == end || *at != '"') {
        put_bytes(batch, at, field->size);
        return;
    }
    for (at++, end--; at < end;) { /* to the first of each pair of quotes */
        const char *const quote = memchr(at, '"', (size_t)(end - at));
        const char *const stop = quote ? quote + 1 : end;
        put_bytes(batch, at, (size_t)(stop - at));
        at = quote ? quote + 2 : end;
    }
}

/* A length, seven bits a byte, the last below 128: no length starts another. */
static void put_length(struct key_batch *batch, uint64_t length) {
    for (; length > 127; length >>= 7)
        put_bytes(batch, &(uint8_t){(uint8_t)(length | 128)}, 1);
    put_bytes(batch, &(uint8_t){(uint8_t)length}, 1);
}

/* Insert the length of what follows `from`, before it. */
static void put_length_before(struct key_batch *batch, size_t from) {
    const size_t size = batch->bytes_size - from;
    put_length(batch, size);
    const size_t length = batch->bytes_size - from - size;
    char bytes[10];
    memcpy(bytes, batch->bytes + from + size, length);
    memmove(batch->bytes + from + length, batch->bytes + from, size);
    memcpy(batch->bytes + from, bytes, length);
}

static bool put_range(struct key_batch *batch, struct field_range r,
                      size_t count, bool single, struct text_block *block) {
    const int64_t fields = (int64_t)count;
    const int64_t first = r.first < 0 ? r.first + fields + 1 : r.first;
    const int64_t last = r.last < 0 ? r.last + fields + 1 : r.last;
    if (first < 1 || first > fields || last > fields) {
        snprintf(block->error, sizeof block->error,
                 "field %" PRId64 " is wanted, found %zu field%s%s",
                 first < 1 || first > fields ? r.first : r.last, count,
                 count == 1 ? "" : "s", key_options_hint());
        return false;
    }
    if (last < first) {
        snprintf(block->error, sizeof block->error,
                 "fields %" PRId64 " to %" PRId64
                 " are wanted, found %zu field%s, so the first comes last",
                 r.first, r.last, count, count == 1 ? "" : "s");
        return false;
    }
    for (int64_t n = first; n <= last; n++) {
        const size_t from = batch->bytes_size;
        put_value(batch, &batch->fields[n - 1]);
        if (!single) put_length_before(batch, from);
    }
    return true;
}

/* The key of a line, put behind batch->bytes. */
static bool put_key(struct key_batch *batch, const calyx_key *line,
                    struct text_block *block) {
    size_t count = 0;
    if (key_form.ranges_count ||
        key_form.csv) { /* all CSV is looked at for errors */
        const char *const at = line->data;
        count = split(batch, at, at + line->size, block->error,
                      sizeof block->error);
        if (!count) return false;
    }
    if (!key_form.ranges_count) put_bytes(batch, line->data, line->size);
    const bool single = key_form.ranges_count == 1 &&
                        key_form.ranges[0].first == key_form.ranges[0].last;
    for (size_t i = 0; i < key_form.ranges_count; i++)
        if (!put_range(batch, key_form.ranges[i], count, single, block))
            return false;
    return true;
}

/* ---- Batches ------------------------------------------------------------ */

void batch_start(struct key_batch *batch, const struct text_block *block) {
    batch->next = block->text;
}

static calyx_key without_cr(calyx_key line) {
    const char *const text = line.data;
    if (line.size && text[line.size - 1] == '\r') line.size--;
    return line;
}

static void lower(char *at, const char *end) {
    for (; at < end; at++)
        if (*at >= 'A' && *at <= 'Z') *at = (char)(*at | 32);
}

/* Keys that must be put together. They are offsets until all are there, since
 * the bytes may move. */
static void make_keys(struct key_batch *batch, struct text_block *block) {
    batch->bytes_size = 0;
    for (size_t i = 0; i < batch->count; i++) {
        const size_t from = batch->bytes_size;
        calyx_key line = batch->lines[i];
        if (key_form.crlf || key_form.csv) line = without_cr(line);
        if (!put_key(batch, &line, block)) {
            batch->count = i;
            break;
        }
        if (key_form.fold)
            lower(batch->bytes + from, batch->bytes + batch->bytes_size);
        batch->made[i].size = batch->bytes_size - from;
    }
    const char *at = batch->bytes;
    for (size_t i = 0; i < batch->count; i++) {
        batch->made[i].data = at;
        at += batch->made[i].size;
    }
    batch->keys = batch->made;
}

bool batch_next(struct key_batch *batch, struct text_block *block) {
    const char *const end = block->text + block->size;
    if (block->error[0] || batch->next == end) return false;
    cut_lines *const cut = key_form.csv ? cut_csv : best_cut();
    batch->count = 0;
    batch->next = cut(batch->next, end, record_end(), batch);
    batch->keys = batch->lines;
    if (key_form.ranges_count || key_form.fold || key_form.csv) {
        make_keys(batch, block);
    } else if (key_form.crlf) {
        for (size_t i = 0; i < batch->count; i++)
            batch->made[i] = without_cr(batch->lines[i]);
        batch->keys = batch->made;
    }
    if (!key_form.csv)
        block->ended += batch->count;
    else
        for (size_t i = 0; i < batch->count; i++)
            block->ended += ends_of(&batch->lines[i]);
    return batch->count > 0;
}

void batch_free(struct key_batch *batch) {
    free(batch->bytes);
    free(batch->fields);
}
