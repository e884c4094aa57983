#include "hashes/scatter.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "exact/budget.h"
#include "exact/spill.h"

enum {
    LEAST_RANGE_BITS = 4,
    MOST_RANGE_BITS = 13,
    LEAST_CHUNK = 512,
    GOOD_CHUNK = 1024, /* fewer ranges rather than smaller chunks */
    MOST_CHUNK = 1 << 15,
    RANGE_RECORDS = 1 << 15, /* the table of a range is then in L2 */
    LEAST_LINE_BITS = 32,    /* so that a tag has at most 32 bits */
};

/* Full chunks, by number: 4 bytes each, as there may be one for each 512 bytes
 * that are written. */
struct chunk_list {
    uint32_t *numbers;
    size_t count, room;
};

/* What a writer left of a chunk. */
struct hash_piece {
    const uint64_t *records;
    size_t count;
};

struct range {
    struct chunk_list in_memory, in_file;
    struct hash_piece *pieces; /* at most one of each writer */
    size_t piece_count;
};

/* A cache line of records, on its way to a chunk. */
enum { LINE_RECORDS = 8 };
struct record_line {
    _Alignas(64) uint64_t records[LINE_RECORDS];
};

struct scatter_writer {
    struct scatter *scatter;
    struct scatter_writer *next_free;
    uint64_t **next; /* for each range, where the next record goes; at a
                        multiple of the size of a chunk: nowhere yet */
    struct record_line
        *lines; /* for each range: those that are not there yet */
};

struct scatter {
    unsigned range_bits, line_bits;
    size_t chunk; /* bytes, a power of two */
    struct range *ranges;
    size_t writer_count;
    struct scatter_writer **writers;

    pthread_mutex_t lock; /* guards what follows, and the pieces */
    struct scatter_writer *free;
    char *memory, *mapped;
    uint64_t chunks, taken, kept_at_most, kept; /* chunks; kept: full ones */
    size_t mapped_size;
    int fd; /* -1: none */
    uint64_t file_size;
};

/* ---- Sizes --------------------------------------------------------------- */

static unsigned bits_for(uint64_t values) {
    unsigned bits = 0;
    while (bits < 64 && values > UINT64_C(1) << bits) bits++;
    return bits;
}

static size_t ranges_of(const struct scatter *s) {
    return (size_t)1 << s->range_bits;
}

/* An eighth of the memory is for open chunks. */
static size_t chunk_for(uint64_t memory, size_t writers, unsigned range_bits) {
    const uint64_t share = memory / 8 / writers >> range_bits;
    size_t chunk = MOST_CHUNK;
    while (chunk > LEAST_CHUNK && chunk > share) chunk /= 2;
    return chunk;
}

static unsigned range_bits_for(uint64_t lines, uint64_t memory,
                               size_t writers) {
    unsigned bits = bits_for(lines / RANGE_RECORDS + 1);
    if (bits < LEAST_RANGE_BITS) bits = LEAST_RANGE_BITS;
    if (bits > MOST_RANGE_BITS) bits = MOST_RANGE_BITS;
    while (bits > LEAST_RANGE_BITS &&
           chunk_for(memory, writers, bits) < GOOD_CHUNK)
        bits--;
    return bits;
}

/* What writers leave in open chunks is not written: half of each, or all. */
uint64_t scatter_spills(uint64_t estimated, uint64_t lines, uint64_t memory,
                        size_t writers) {
    const unsigned bits = range_bits_for(estimated, memory, writers);
    const uint64_t chunk = chunk_for(memory, writers, bits);
    const uint64_t open = (uint64_t)writers << bits;
    const uint64_t most = memory / chunk < open ? open : memory / chunk;
    const uint64_t full = sizeof(uint64_t) * lines / chunk;
    const uint64_t used = most - open + open / 2;
    return full > used ? (full - used) * chunk : 0;
}

/* ---- Start and end ------------------------------------------------------- */

/* Chunks are aligned to their size. Pages take memory when they are touched. */
static void map_chunks(struct scatter *s, uint64_t memory) {
    const uint64_t open = s->writer_count << s->range_bits;
    s->chunks = memory / s->chunk;
    if (s->chunks < open) s->chunks = open;
    s->kept_at_most = s->chunks - open;
    s->mapped_size = (s->chunks + 1) * s->chunk;
    s->mapped = map_memory(s->mapped_size);
    const uintptr_t past = (uintptr_t)s->mapped & (s->chunk - 1);
    s->memory = s->mapped + (past ? s->chunk - past : 0);
}

static struct scatter_writer *new_writer(struct scatter *s) {
    const size_t size = ranges_of(s) * sizeof(uint64_t *);
    struct scatter_writer *const w = alloc_memory(sizeof *w);
    *w = (struct scatter_writer){
        .scatter = s,
        .next = alloc_memory(size),
        .lines = aligned_alloc(64, ranges_of(s) * sizeof *w->lines)};
    if (!w->lines) fail("out of memory");
    memset(w->next, 0, size);
    return w;
}

struct scatter *scatter_new(uint64_t lines, uint64_t most_lines,
                            uint64_t memory, size_t writers) {
    struct scatter *const s = alloc_memory(sizeof *s);
    *s = (struct scatter){.range_bits = range_bits_for(lines, memory, writers),
                          .line_bits = bits_for(most_lines),
                          .writer_count = writers,
                          .lock = PTHREAD_MUTEX_INITIALIZER,
                          .fd = -1};
    if (s->line_bits < LEAST_LINE_BITS) s->line_bits = LEAST_LINE_BITS;
    s->chunk = chunk_for(memory, writers, s->range_bits);
    map_chunks(s, memory);
    s->ranges = alloc_memory(ranges_of(s) * sizeof *s->ranges);
    memset(s->ranges, 0, ranges_of(s) * sizeof *s->ranges);
    s->writers = alloc_memory(writers * sizeof *s->writers);
    for (size_t i = 0; i < writers; i++) {
        s->writers[i] = new_writer(s);
        scatter_return(s->writers[i]);
    }
    return s;
}

void scatter_free(struct scatter *s) {
    for (size_t i = 0; i < ranges_of(s); i++) {
        free(s->ranges[i].in_memory.numbers);
        free(s->ranges[i].in_file.numbers);
        free(s->ranges[i].pieces);
    }
    free(s->ranges);
    free(s->writers);
    munmap(s->mapped, s->mapped_size);
    if (s->fd >= 0) close(s->fd);
    spill_released(s->file_size);
    free(s);
}

struct scatter_writer *scatter_take(struct scatter *s) {
    pthread_mutex_lock(&s->lock);
    struct scatter_writer *const w = s->free;
    s->free = w->next_free;
    pthread_mutex_unlock(&s->lock);
    return w;
}

void scatter_return(struct scatter_writer *w) {
    struct scatter *const s = w->scatter;
    pthread_mutex_lock(&s->lock);
    w->next_free = s->free;
    s->free = w;
    pthread_mutex_unlock(&s->lock);
}

/* ---- Writing ------------------------------------------------------------- */

static void add_chunk(struct chunk_list *list, uint64_t number) {
    if (number > UINT32_MAX) fail("too many lines for one run; see --part");
    if (list->count == list->room) {
        list->room += list->room / 4 + 8;
        list->numbers =
            resize_memory(list->numbers, list->room * sizeof *list->numbers);
    }
    list->numbers[list->count++] = (uint32_t)number;
}

/* A full chunk of a range: keep it, or make room in it. True if it stays. */
static bool keep_chunk(struct scatter *s, struct range *r, uint64_t *records) {
    pthread_mutex_lock(&s->lock);
    const bool kept = s->kept < s->kept_at_most;
    const uint64_t place = s->file_size;
    if (kept) {
        s->kept++;
        add_chunk(&r->in_memory,
                  (uint64_t)((char *)records - s->memory) / s->chunk);
    } else {
        if (s->fd < 0) s->fd = spill_file_or_fail();
        s->file_size += s->chunk;
        add_chunk(&r->in_file, place / s->chunk);
    }
    pthread_mutex_unlock(&s->lock);
    if (!kept) spill_write_at(s->fd, records, s->chunk, place);
    return kept;
}

static uint64_t *new_chunk(struct scatter *s) {
    pthread_mutex_lock(&s->lock);
    char *const chunk = s->memory + s->taken++ * s->chunk;
    pthread_mutex_unlock(&s->lock);
    return (uint64_t *)(void *)chunk;
}

static uint64_t *next_chunk(struct scatter_writer *w, size_t range) {
    struct scatter *const s = w->scatter;
    if (!w->next[range]) return new_chunk(s);
    uint64_t *const full = w->next[range] - s->chunk / sizeof *full;
    return keep_chunk(s, &s->ranges[range], full) ? new_chunk(s) : full;
}

/* Past the cache, which would read the line first. */
static inline void write_line(uint64_t *to, const struct record_line *line) {
#if defined(__x86_64__)
    for (int i = 0; i < LINE_RECORDS; i += 2)
        _mm_stream_si128(
            (__m128i *)(void *)(to + i),
            _mm_load_si128((const __m128i *)(const void *)&line->records[i]));
#else
    memcpy(to, line, sizeof *line);
#endif
}

void scatter_add(struct scatter_writer *w, const uint64_t *hashes, size_t n,
                 uint64_t line) {
    const struct scatter *const s = w->scatter;
    const unsigned shift = 64 - s->range_bits, up = s->range_bits;
    const unsigned line_bits = s->line_bits;
    const uintptr_t inside = s->chunk - 1;
    for (size_t i = 0; i < n; i++) {
        const size_t range = (size_t)(hashes[i] >> shift);
        uint64_t *to = w->next[range];
        if (!((uintptr_t)to & inside)) to = next_chunk(w, range);
        const size_t at = (uintptr_t)to / sizeof *to % LINE_RECORDS;
        w->lines[range].records[at] =
            hashes[i] << up >> line_bits << line_bits | (line + i);
        w->next[range] = ++to;
        if (at == LINE_RECORDS - 1)
            write_line(to - LINE_RECORDS, &w->lines[range]);
    }
}

static void end_writer(struct scatter *s, struct scatter_writer *w) {
    for (size_t i = 0; i < ranges_of(s); i++) {
        if (!w->next[i]) continue;
        const uintptr_t at = (uintptr_t)w->next[i];
        const size_t used = ((at - 1) & (s->chunk - 1)) + 1;
        const size_t count = used / sizeof(uint64_t);
        const size_t left = count % LINE_RECORDS;
        memcpy(w->next[i] - left, w->lines[i].records, left * sizeof(uint64_t));
        struct range *const r = &s->ranges[i];
        if (!r->pieces)
            r->pieces = alloc_memory(s->writer_count * sizeof *r->pieces);
        r->pieces[r->piece_count++] =
            (struct hash_piece){w->next[i] - count, count};
    }
    free(w->next);
    free(w->lines);
    free(w);
}

void scatter_end(struct scatter *s) {
    for (size_t i = 0; i < s->writer_count; i++) end_writer(s, s->writers[i]);
    s->writer_count = 0;
}

/* ---- Reading ------------------------------------------------------------- */

unsigned scatter_ranges(const struct scatter *s) {
    return (unsigned)ranges_of(s);
}

unsigned scatter_line_bits(const struct scatter *s) {
    return s->line_bits;
}

size_t scatter_chunk(const struct scatter *s) {
    return s->chunk;
}

/* What is in memory. */
static bool read_kept(const struct scatter *s, const struct range *r,
                      scatter_visit *visit, void *context) {
    for (size_t i = 0; i < r->piece_count; i++)
        if (!visit(context, r->pieces[i].records, r->pieces[i].count))
            return false;
    for (size_t i = 0; i < r->in_memory.count; i++) {
        const char *const chunk =
            s->memory + (uint64_t)r->in_memory.numbers[i] * s->chunk;
        if (!visit(context, (const uint64_t *)(const void *)chunk,
                   s->chunk / sizeof(uint64_t)))
            return false;
    }
    return true;
}

bool scatter_read(const struct scatter *s, unsigned range,
                  struct records_buffer *buffer, scatter_visit *visit,
                  void *context) {
    const struct range *const r = &s->ranges[range];
    const bool all = r->in_file.count <= buffer->room / s->chunk;
    const bool is_there = all && buffer->holds == range + 1;
    uint64_t *to = buffer->records;
    if (!is_there) buffer->holds = 0;
    if (!read_kept(s, r, visit, context)) return false;
    for (size_t i = 0; i < r->in_file.count; i++) {
        const uint64_t place = (uint64_t)r->in_file.numbers[i] * s->chunk;
        if (!is_there) spill_read_at(s->fd, to, s->chunk, place);
        if (!visit(context, to, s->chunk / sizeof *to)) return false;
        if (all) to += s->chunk / sizeof *to;
    }
    if (all) buffer->holds = range + 1;
    return true;
}
