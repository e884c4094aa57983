#include "input/records.h"

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

bool keys_are_whole_lines(void) {
    return !keys_are_made() && !key_form.crlf && !key_form.header;
}

/* Of CSV: it is one byte. */
static char csv_separator(void) {
    return separator_of(&key_form)->bytes[0];
}

/* ---- Where lines end ---------------------------------------------------- */

/* The next place in CSV, after a byte that ends no line. */
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
    const char end = record_end(), sep = csv_separator();
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
 * the look. Reads up to 63 bytes after the end, and makes up to 63 lines more
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

/* Where the line that starts here ends, or `end`. */
static inline const char *csv_line_end(const char *at, const char *end,
                                       char ender, char sep) {
    int place = FIELD_START;
    while (at < end && (*at != ender || place == IN_QUOTES))
        place = place_after(place, *at++, sep);
    return at;
}

/* The quote in a CSV line that is never closed; NULL: there is none. Then the
 * line runs to the end of its file. */
static const char *open_quote(const calyx_key *line) {
    const char *at = line->data, *const end = at + line->size, *opened = NULL;
    const char sep = csv_separator();
    int place = FIELD_START;
    for (; at < end; at++) {
        if (place == FIELD_START) opened = at;
        place = place_after(place, *at, sep);
    }
    return place == IN_QUOTES ? opened : NULL;
}

static const char *cut_csv(const char *at, const char *end, char ender,
                           struct key_batch *batch) {
    const char sep = csv_separator();
    while (at < end && batch->count < BATCH) {
        const char *const stop = csv_line_end(at, end, ender, sep);
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

static cut_lines *cut_of_form(void) {
    return key_form.csv ? cut_csv : best_cut();
}

calyx_key first_record(const char *text, size_t size) {
    const char *const end = text + size;
    const char *const stop =
        key_form.csv ? csv_line_end(text, end, record_end(), csv_separator())
                     : memchr(text, record_end(), size);
    return (calyx_key){text, (size_t)((stop ? stop : end) - text)};
}

/* ---- Batches ------------------------------------------------------------ */

bool (*key_is_usable)(const calyx_key *key, char *error);

void batch_start(struct key_batch *batch, struct text_block *block) {
    batch->next = block->text;
    batch->gap = 0;
    block->ended = 0;
}

calyx_key without_cr(calyx_key line) {
    const char *const text = line.data;
    if (line.size && text[line.size - 1] == '\r') line.size--;
    return line;
}

static calyx_key without_end(calyx_key line) {
    return line_ends_are_crlf() ? without_cr(line) : line;
}

/* Keys that must be put together. They are offsets until all are there, since
 * the bytes may move. Returns for how many lines. */
static size_t make_keys(struct key_batch *batch, struct text_block *block) {
    struct key_maker *const maker = &batch->maker;
    size_t n = 0;
    maker->size = 0;
    for (; n < batch->count; n++) {
        const size_t from = maker->size;
        const calyx_key line = without_end(batch->lines[n]);
        if (make_key(maker, &line, block->columns, block->error) != KEY_MADE)
            break;
        batch->made[n].size = maker->size - from;
    }
    const char *at = maker->bytes;
    for (size_t i = 0; i < n; i++) {
        batch->made[i].data = at;
        at += batch->made[i].size;
    }
    return n;
}

/* Keys that are a field as it is in the line. */
static size_t find_keys(struct key_batch *batch, struct text_block *block) {
    for (size_t i = 0; i < batch->count; i++) {
        const calyx_key line = without_end(batch->lines[i]);
        if (find_key(&line, block->columns, &batch->made[i], block->error) !=
            KEY_MADE)
            return i;
    }
    return batch->count;
}

static void set_keys(struct key_batch *batch, struct text_block *block) {
    batch->keys = batch->made;
    if (!keys_are_made() && !key_form.crlf)
        batch->keys = batch->lines;
    else if (!keys_are_made())
        for (size_t i = 0; i < batch->count; i++)
            batch->made[i] = without_cr(batch->lines[i]);
    else if (key_lies_in_line(block->columns))
        batch->count = find_keys(batch, block);
    else
        batch->count = make_keys(batch, block);
    for (size_t i = 0; key_is_usable && i < batch->count; i++)
        if (!key_is_usable(&batch->keys[i], block->error)) batch->count = i;
}

/* Ends of the lines that were dropped up to this place, from the last one on.
 */
static uint64_t ends_dropped(struct key_batch *batch,
                             const struct text_block *block, const char *at) {
    const size_t offset = (size_t)(at - block->text);
    uint64_t ends = 0;
    for (; batch->gap < block->gap_count; batch->gap++) {
        const struct line_gap *const gap = &block->gaps[batch->gap];
        if (gap->offset > offset) break;
        ends += gap->ends;
    }
    return ends;
}

static void count_ends(struct key_batch *batch, struct text_block *block) {
    if (!key_form.csv && !block->gap_count && !block->line) {
        block->ended += batch->count;
        return;
    }
    for (size_t i = 0; i < batch->count; i++) {
        block->ended += ends_dropped(batch, block, batch->lines[i].data);
        batch->numbers[i] = block->line + block->ended;
        block->ended += ends_of(&batch->lines[i]);
    }
}

bool batch_next(struct key_batch *batch, struct text_block *block) {
    const char *const end = block->text + block->size;
    if (block->error[0]) return false;
    if (batch->next == end) {
        block->ended += ends_dropped(batch, block, end);
        return false;
    }
    batch->count = 0;
    batch->next = cut_of_form()(batch->next, end, record_end(), batch);
    const size_t cut = batch->count;
    set_keys(batch, block);
    count_ends(batch, block);
    if (batch->count < cut) /* the one with the error comes after these */
        block->ended +=
            ends_dropped(batch, block, batch->lines[batch->count].data);
    return batch->count > 0;
}

/* ---- Lines that are left out -------------------------------------------- */

void put_gap(struct text_block *block, size_t offset, uint64_t ends) {
    if (block->gap_count &&
        block->gaps[block->gap_count - 1].offset == offset) {
        block->gaps[block->gap_count - 1].ends += ends;
        return;
    }
    block->gaps = with_room(block->gaps, &block->gap_room, block->gap_count + 1,
                            sizeof *block->gaps);
    block->gaps[block->gap_count++] = (struct line_gap){offset, ends};
}

static enum key_result look_at_line(struct key_batch *batch,
                                    const calyx_key *line,
                                    struct text_block *block) {
    const calyx_key whole = without_end(*line);
    calyx_key key = whole;
    enum key_result result = KEY_MADE;
    batch->maker.size = 0;
    if (keys_are_made() && key_lies_in_line(block->columns)) {
        result = find_key(&whole, block->columns, &key, block->error);
    } else if (keys_are_made()) {
        result = make_key(&batch->maker, &whole, block->columns, block->error);
        key = (calyx_key){batch->maker.bytes, batch->maker.size};
    }
    if (result == KEY_MADE && key_is_usable &&
        !key_is_usable(&key, block->error))
        result = LINE_IS_WRONG;
    block->error[0] = '\0';
    return result;
}

/* A line that is not left out stays, and is an error later. Returns the line
 * ends that are left out; a quote that is never closed makes `line` shorter. */
static uint64_t ends_left_out(struct key_batch *batch, calyx_key *line,
                              struct text_block *block) {
    const enum key_result result = look_at_line(batch, line, block);
    struct skipped_lines *const skipped = &block->skipped;
    if (result == LACKS_FIELD && missing_key == MISSING_IS_SKIPPED) {
        skipped->all++;
        skipped->missing++;
        return ends_of(line);
    }
    if (result == LINE_IS_WRONG && skips_invalid) {
        const char *const from = line->data, *const end = from + line->size;
        const char *const quote = key_form.csv ? open_quote(line) : NULL;
        const char *const stop =
            quote ? memchr(quote, record_end(), (size_t)(end - quote)) : NULL;
        if (stop) line->size = (size_t)(stop - from);
        const uint64_t ends = ends_of(line);
        skipped->all += ends;
        skipped->invalid += ends;
        return ends;
    }
    skipped->all++;
    return 0;
}

static bool may_leave_lines_out(void) {
    return (missing_key == MISSING_IS_SKIPPED && key_form.ranges_count) ||
           (skips_invalid && (key_form.json || key_form.csv || key_is_usable));
}

void leave_lines_out(struct key_batch *batch, struct text_block *block) {
    if (!may_leave_lines_out() || block->error[0]) return;
    const char *const end = block->text + block->size;
    char *to = block->text;
    for (const char *next = to; next < end;) {
        batch->count = 0;
        next = cut_of_form()(next, end, record_end(), batch);
        for (size_t i = 0; i < batch->count; i++) {
            calyx_key line = batch->lines[i];
            const uint64_t ends = ends_left_out(batch, &line, block);
            const char *const from = line.data, *const stop = from + line.size;
            if (ends) {
                put_gap(block, (size_t)(to - block->text), ends);
                if (line.size < batch->lines[i].size) next = stop + 1;
                continue;
            }
            const size_t size = line.size + (stop < end);
            if (to != from) memmove(to, from, size);
            to += size;
        }
    }
    block->size = (size_t)(to - block->text);
    *to = record_end();
}

void batch_free(struct key_batch *batch) {
    key_maker_free(&batch->maker);
}
