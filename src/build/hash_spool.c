#include "build/hash_spool.h"

#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/radix_sort.h"
#include "build/temp_file.h"

void spool_init(struct hash_spool *s, const calyx_memory *memory, size_t most,
                const char *folder, uint32_t copies) {
    *s = (struct hash_spool){
        .memory = *memory,
        .folder = folder,
        .most = most < SPOOL_LEAST ? SPOOL_LEAST : most,
        .copies = copies,
    };
}

/* ---- Memory -------------------------------------------------------------- */

static void *take(const struct hash_spool *s, size_t size) {
    return s->memory.allocate(s->memory.context, size, sizeof(uint64_t));
}

static void give(const struct hash_spool *s, void *block, size_t size) {
    if (block) s->memory.release(s->memory.context, block, size);
}

/* Make room for more elements of an array; its address, or NULL. */
static void *resize(const struct hash_spool *s, void *array, size_t element,
                    size_t old_room, size_t room) {
    void *const larger = take(s, room * element);
    if (!larger) return NULL;
    if (array) memcpy(larger, array, old_room * element);
    give(s, array, old_room * element);
    return larger;
}

static bool reserve_files(struct hash_spool *s, size_t count) {
    if (count <= s->file_room) return true;
    void *const files =
        resize(s, s->files, sizeof *s->files, s->file_room, 2 * count);
    if (!files) return false;
    s->files = files;
    s->file_room = 2 * count;
    return true;
}

static bool reserve_runs(struct hash_spool *s, size_t count) {
    if (count <= s->run_room) return true;
    void *const runs =
        resize(s, s->runs, sizeof *s->runs, s->run_room, 2 * count);
    if (!runs) return false;
    s->runs = runs;
    s->run_room = 2 * count;
    return true;
}

static calyx_status no_memory(calyx_error *why, size_t hashes) {
    return fail(why, CALYX_NO_MEMORY,
                "no memory for %llu hashes of 8 bytes that wait to be built "
                "into a filter",
                (unsigned long long)hashes);
}

static void drop_buffer(struct hash_spool *s) {
    give(s, s->hashes, s->room * sizeof *s->hashes);
    s->hashes = NULL;
    s->used = s->room = 0;
}

static void drop_lists(struct hash_spool *s) {
    give(s, s->files, s->file_room * sizeof *s->files);
    give(s, s->runs, s->run_room * sizeof *s->runs);
    s->files = NULL;
    s->runs = NULL;
    s->file_count = s->file_room = s->run_count = s->run_room = 0;
}

void spool_end(struct hash_spool *s) {
    for (size_t i = 0; i < s->file_count; i++) temp_file_close(s->files[i].fd);
    drop_lists(s);
    drop_buffer(s);
}

/* ---- To the file --------------------------------------------------------- */

static calyx_status fail_to_spool(const struct hash_spool *s,
                                  calyx_error *why) {
    return fail_os(why, s->folder,
                   "write 8 bytes for each key here; another folder or more "
                   "memory may do");
}

/* Slices of 64 hashes and more, so that the index is small. */
static int index_bits(const struct hash_spool *s) {
    int bits = 0;
    while (bits < PARTITION_BITS_MOST && s->most >> (bits + 7) > 0) bits++;
    return bits;
}

static calyx_status open_file(struct hash_spool *s, calyx_error *why) {
    if (s->file_count) return CALYX_OK;
    if (!reserve_files(s, 1)) return no_memory(why, 1);
    const int fd = temp_file_open(s->folder);
    if (fd < 0)
        return fail_os(why, s->folder,
                       "make a temporary file for hashes; another folder or "
                       "more memory may do");
    s->files[s->file_count++] = (struct spool_file){fd, 0};
    return CALYX_OK;
}

/* Write the buffer as a run. If that fails, all hashes are still there. */
static calyx_status write_run(struct hash_spool *s, calyx_error *why) {
    uint64_t ends[1 << PARTITION_BITS_MOST];
    const calyx_status opened = open_file(s, why);
    if (opened != CALYX_OK) return opened;
    if (!reserve_runs(s, s->run_count + 1)) return no_memory(why, 1);
    struct spool_file *const file = &s->files[0];
    const struct spool_run run = {
        .at = file->end, .n = s->used, .bits = index_bits(s)};
    const size_t index = sizeof *ends << run.bits;
    const size_t size = s->used * sizeof *s->hashes;
    partition_words(s->hashes, s->used, run.bits, ends);
    if (!temp_file_write(file->fd, ends, index, run.at) ||
        !temp_file_write(file->fd, s->hashes, size, run.at + index))
        return fail_to_spool(s, why);
    file->end += index + size;
    s->runs[s->run_count++] = run;
    s->used = 0;
    return CALYX_OK;
}

/* ---- In ------------------------------------------------------------------ */

/* Small sets take little; then all memory is allocated at once, since growing
 * step by step would need the old buffer and the new one. */
static calyx_status enlarge_buffer(struct hash_spool *s, calyx_error *why) {
    const size_t steps[] = {SPOOL_LEAST, 32 * SPOOL_LEAST};
    size_t room = s->most;
    for (size_t i = sizeof steps / sizeof *steps; i-- > 0;)
        if (steps[i] > s->room && steps[i] < room) room = steps[i];
    void *const larger = resize(s, s->hashes, sizeof *s->hashes, s->room, room);
    if (!larger) return no_memory(why, room);
    s->hashes = larger;
    s->room = room;
    return CALYX_OK;
}

/* Where there are no files, as in WebAssembly, all hashes stay in memory. */
static calyx_status double_buffer(struct hash_spool *s, calyx_error *why) {
    const size_t most = s->most;
    if (most > SIZE_MAX / (2 * sizeof *s->hashes)) return no_memory(why, most);
    s->most = 2 * most;
    const calyx_status status = enlarge_buffer(s, why);
    if (status != CALYX_OK) s->most = most;
    return status;
}

/* Free a full buffer: remove duplicates if there seem to be many, and write it
 * unless that has made enough room. */
static calyx_status empty_buffer(struct hash_spool *s, calyx_error *why) {
    if (!s->few_duplicates) {
        uint64_t distinct;
        const size_t all = s->used;
        sort_words(s->hashes, s->used, 64);
        s->used = limit_copies(s->hashes, s->used, s->copies, &distinct);
        if (s->used <= all / 2) return CALYX_OK;
        s->few_duplicates = s->used > all - all / 8;
    }
    return CALYX_NO_FILES ? double_buffer(s, why) : write_run(s, why);
}

calyx_status spool_add(struct hash_spool *s, const uint64_t *hashes, size_t n,
                       calyx_error *why) {
    while (n > 0) {
        calyx_status status = CALYX_OK;
        if (s->used == s->room)
            status = s->room < s->most ? enlarge_buffer(s, why)
                                       : empty_buffer(s, why);
        if (status != CALYX_OK) return status;
        const size_t room = s->room - s->used, some = n < room ? n : room;
        memcpy(s->hashes + s->used, hashes, some * sizeof *hashes);
        s->used += some;
        s->added += some;
        hashes += some;
        n -= some;
    }
    return CALYX_OK;
}

/* If this fails, each hash is in one of the two. */
calyx_status spool_merge(struct hash_spool *s, struct hash_spool *other,
                         calyx_error *why) {
    const uint64_t before = s->added;
    const calyx_status status = spool_add(s, other->hashes, other->used, why);
    const size_t moved = (size_t)(s->added - before);
    other->added -= moved;
    other->used -= moved;
    if (status != CALYX_OK) { /* some may have moved */
        memmove(other->hashes, other->hashes + moved,
                other->used * sizeof *other->hashes);
        return status;
    }
    drop_buffer(other);
    if (!reserve_files(s, s->file_count + other->file_count) ||
        !reserve_runs(s, s->run_count + other->run_count))
        return no_memory(why, 0);
    for (size_t i = 0; i < other->run_count; i++) {
        s->runs[s->run_count] = other->runs[i];
        s->runs[s->run_count++].file += s->file_count;
    }
    for (size_t i = 0; i < other->file_count; i++)
        s->files[s->file_count++] = other->files[i];
    s->added += other->added;
    other->added = 0;
    drop_lists(other);
    return CALYX_OK;
}

/* ---- Sorting what is all in memory --------------------------------------- */

enum { SHARES = 256 }; /* of a buffer that threads sort together */

struct sorting {
    uint64_t *hashes, ends[SHARES];
    uint64_t next; /* share to sort; atomic */
};

static void sort_shares(void *context, uint32_t thread) {
    struct sorting *const work = context;
    (void)thread;
    for (;;) {
        const uint64_t share =
            __atomic_fetch_add(&work->next, 1, __ATOMIC_RELAXED);
        if (share >= SHARES) return;
        const uint64_t from = share ? work->ends[share - 1] : 0;
        sort_words(work->hashes + from, (size_t)(work->ends[share] - from), 56);
    }
}

static void sort_buffer(struct hash_spool *s, uint32_t threads) {
    enum { FEW = 1 << 16 };
    uint64_t distinct;
    if (threads < 2 || s->used < FEW) {
        sort_words(s->hashes, s->used, 64);
    } else {
        struct sorting work = {.hashes = s->hashes};
        partition_words(s->hashes, s->used, 8, work.ends);
        run_parallel(threads, sort_shares, &work);
    }
    s->used = limit_copies(s->hashes, s->used, s->copies, &distinct);
}

calyx_status spool_seal(struct hash_spool *s, uint32_t threads,
                        calyx_error *why) {
    if (!s->run_count) {
        sort_buffer(s, threads);
        return CALYX_OK;
    }
    const calyx_status status = s->used ? write_run(s, why) : CALYX_OK;
    if (status == CALYX_OK) drop_buffer(s); /* readers take its place */
    return status;
}

/* ---- Out ----------------------------------------------------------------- */

/* The hashes of a range, read into memory. */
struct range_buffer {
    uint64_t *hashes;
    size_t room, n;
    uint64_t distinct;
};

/* The number of hashes of a sorted array up to this one. */
static size_t count_up_to(const uint64_t *hashes, size_t n, uint64_t last) {
    size_t low = 0, high = n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (hashes[middle] <= last)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t count_below(const uint64_t *hashes, size_t n, uint64_t first) {
    return first ? count_up_to(hashes, n, first - 1) : 0;
}

static uint64_t count_distinct(const uint64_t *hashes, size_t n) {
    uint64_t distinct = n > 0;
    for (size_t i = 1; i < n; i++) distinct += hashes[i] != hashes[i - 1];
    return distinct;
}

/* Sort what was read of [first, last], in whose hashes the highest bits agree.
 */
static void sort_range(const struct hash_spool *s, struct range_buffer *b,
                       uint64_t first, uint64_t last) {
    const uint64_t differ = first ^ last;
    sort_words(b->hashes, b->n, differ ? 64 - __builtin_clzll(differ) : 0);
    b->n = limit_copies(b->hashes, b->n, s->copies, &b->distinct);
}

/* The buffer is nearly full, and there is more: remove duplicates; if that does
 * not help, do with the lower half of the range. */
static void lower_range(const struct hash_spool *s, struct range_buffer *b,
                        uint64_t first, uint64_t *last) {
    sort_range(s, b, first, *last);
    if (b->n <= b->room / 2) return;
    const uint64_t middle = b->hashes[b->n / 2] | 1; /* see value_layers.c */
    if (middle < *last) *last = middle;
    b->n = count_up_to(b->hashes, b->n, *last);
}

static size_t select_range(uint64_t *hashes, size_t n, uint64_t first,
                           uint64_t last) {
    size_t left = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t hash = hashes[i];
        hashes[left] = hash;
        left += hash >= first && hash <= last;
    }
    return left;
}

/* Where in its file the slices of a run are that may have hashes of a range. */
static bool find_slices(const struct spool_run *run, int fd, uint64_t first,
                        uint64_t last, uint64_t *from, uint64_t *to) {
    const uint64_t start = run->at + (sizeof(uint64_t) << run->bits);
    const uint64_t low = run->bits ? first >> (64 - run->bits) : 0;
    const uint64_t high = run->bits ? last >> (64 - run->bits) : 0;
    uint64_t ends[2] = {0};
    if ((low && !temp_file_read(fd, &ends[0], sizeof ends[0],
                                run->at + sizeof ends[0] * (low - 1))) ||
        !temp_file_read(fd, &ends[1], sizeof ends[1],
                        run->at + sizeof ends[1] * high))
        return false;
    *from = start + sizeof(uint64_t) * ends[0];
    *to = start + sizeof(uint64_t) * ends[1];
    return true;
}

static bool read_run(const struct hash_spool *s, const struct spool_run *run,
                     struct range_buffer *b, uint64_t first, uint64_t *last) {
    const int fd = s->files[run->file].fd;
    uint64_t at, to;
    if (!find_slices(run, fd, first, *last, &at, &to)) return false;
    while (at < to) {
        if (b->n > b->room - b->room / 8) lower_range(s, b, first, last);
        const uint64_t left = (to - at) / sizeof(uint64_t);
        const size_t room = b->room - b->n;
        const size_t n = left < room ? (size_t)left : room;
        if (!temp_file_read(fd, b->hashes + b->n, n * sizeof(uint64_t), at))
            return false;
        b->n += select_range(b->hashes + b->n, n, first, *last);
        at += n * sizeof(uint64_t);
    }
    return true;
}

/* Read the hashes from `first` to `*last`, which becomes lower if there are too
 * many of them. */
static calyx_status read_range(const struct hash_spool *s,
                               struct range_buffer *b, uint64_t first,
                               uint64_t *last, calyx_error *why) {
    b->n = 0;
    for (size_t i = 0; i < s->run_count; i++)
        if (!read_run(s, &s->runs[i], b, first, last))
            return fail_os(why, s->folder,
                           "read hashes back from a temporary file");
    sort_range(s, b, first, *last);
    return CALYX_OK;
}

/* ---- Out, by several threads --------------------------------------------- */

struct spool_reading {
    const struct hash_spool *spool;
    const struct spool_visit *how;
    uint64_t piece_units, pieces;
    struct range_buffer buffers[THREADS_MOST]; /* unless all is in memory */

    struct monitor monitor; /* for the rest */
    uint64_t next;          /* piece to begin */
    uint64_t turn;          /* piece to visit next, if in order */
    calyx_status status;    /* of the first call that failed */
    calyx_error *why;
};

/* Only the first failure counts: others may follow from it. */
static void stop_reading(struct spool_reading *r, calyx_status status,
                         const calyx_error *why) {
    monitor_enter(&r->monitor);
    if (r->status == CALYX_OK) {
        r->status = status;
        if (r->why) *r->why = *why;
    }
    monitor_wake(&r->monitor);
    monitor_leave(&r->monitor);
}

static bool take_piece(struct spool_reading *r, uint64_t *piece) {
    monitor_enter(&r->monitor);
    const bool there = r->status == CALYX_OK && r->next < r->pieces;
    if (there) *piece = r->next++;
    monitor_leave(&r->monitor);
    return there;
}

static bool await_turn(struct spool_reading *r, uint64_t piece) {
    if (!r->how->in_order) return true;
    monitor_enter(&r->monitor);
    while (r->turn < piece && r->status == CALYX_OK) monitor_wait(&r->monitor);
    const bool goes_on = r->status == CALYX_OK;
    monitor_leave(&r->monitor);
    return goes_on;
}

static void pass_turn(struct spool_reading *r) {
    if (!r->how->in_order) return;
    monitor_enter(&r->monitor);
    r->turn++;
    monitor_wake(&r->monitor);
    monitor_leave(&r->monitor);
}

static uint64_t first_hash(const struct spool_visit *how, uint64_t unit) {
    return unit ? how->first(how->context, unit) : 0;
}

static uint64_t last_hash(const struct spool_visit *how, uint64_t end_unit) {
    return end_unit < how->units ? how->first(how->context, end_unit) - 1
                                 : UINT64_MAX;
}

/* The end of the last whole unit from `unit` on with hashes up to this one. */
static uint64_t whole_units(const struct spool_visit *how, uint64_t unit,
                            uint64_t end, uint64_t last) {
    while (unit < end) {
        const uint64_t middle = end - (end - unit) / 2;
        if (last_hash(how, middle) <= last)
            unit = middle;
        else
            end = middle - 1;
    }
    return unit;
}

static calyx_status fail_crowded(calyx_error *why) {
    return fail(why, CALYX_NO_MEMORY,
                "too many hashes are nearly equal for the memory of the "
                "builder: they must be well mixed in all 64 bits");
}

/* Read the range from `*first` on, up to the end of its last unit, or as far as
 * memory reaches. Sets `*first` to what comes after it. */
static calyx_status next_range(struct spool_reading *r,
                               struct hash_range *range, uint64_t *first,
                               calyx_error *why) {
    const struct hash_spool *const s = r->spool;
    const uint64_t wanted = last_hash(r->how, range->end_unit);
    uint64_t last = wanted;
    if (!s->run_count) {
        const size_t from = count_below(s->hashes, s->used, *first);
        range->hashes = s->hashes + from;
        range->n = count_up_to(s->hashes, s->used, last) - from;
        range->overwritable = NULL;
    } else {
        struct range_buffer *const b = &r->buffers[range->thread];
        const calyx_status status = read_range(s, b, *first, &last, why);
        if (status != CALYX_OK) return status;
        if (last < wanted) {
            range->end_unit =
                whole_units(r->how, range->first_unit, range->end_unit, last);
            if (range->end_unit > range->first_unit)
                last = last_hash(r->how, range->end_unit);
            else if (!r->how->divisible)
                return fail_crowded(why);
        }
        range->hashes = range->overwritable = b->hashes;
        range->n = count_up_to(b->hashes, b->n, last);
    }
    range->distinct =
        s->copies > 1 ? count_distinct(range->hashes, range->n) : range->n;
    *first = last + 1;
    return CALYX_OK;
}

static calyx_status visit_piece(struct spool_reading *r, uint64_t piece,
                                uint32_t thread, calyx_error *why) {
    uint64_t unit = piece * r->piece_units;
    const uint64_t left = r->how->units - unit;
    const uint64_t end = unit + (left < r->piece_units ? left : r->piece_units);
    uint64_t first = first_hash(r->how, unit);
    while (unit < end) {
        struct hash_range range = {
            .first_unit = unit, .end_unit = end, .thread = thread};
        calyx_status status = next_range(r, &range, &first, why);
        if (status != CALYX_OK) return status;
        if (!await_turn(r, piece)) return CALYX_OK;
        status = r->how->visit(r->how->context, &range, why);
        if (status != CALYX_OK) return status;
        unit = range.end_unit;
    }
    pass_turn(r);
    return CALYX_OK;
}

static void visit_pieces(void *context, uint32_t thread) {
    struct spool_reading *const r = context;
    uint64_t piece;
    while (take_piece(r, &piece)) {
        calyx_error why = {0};
        const calyx_status status = visit_piece(r, piece, thread, &why);
        if (status != CALYX_OK) stop_reading(r, status, &why);
    }
}

/* Units of a piece, such that its hashes fill most of a buffer; what is in
 * memory is divided among the threads. */
static uint64_t piece_units(const struct spool_reading *r, uint32_t threads) {
    const struct hash_spool *const s = r->spool;
    double pieces = r->how->in_order ? 1 : 32. * threads;
    if (s->run_count) {
        double written = 0;
        for (size_t i = 0; i < s->run_count; i++)
            written += (double)s->runs[i].n;
        pieces = written / (0.75 * (double)r->buffers[0].room);
    }
    const double units = (double)r->how->units / (pieces > 1 ? pieces : 1);
    return units > 1 ? (uint64_t)units : 1;
}

static size_t greater(size_t a, size_t b) {
    return a > b ? a : b;
}

static bool allocate_buffers(struct spool_reading *r, uint32_t threads) {
    const size_t room = greater(r->spool->most / threads, r->how->least_room);
    for (uint32_t i = 0; r->spool->run_count && i < threads; i++) {
        r->buffers[i].room = room;
        r->buffers[i].hashes = take(r->spool, room * sizeof(uint64_t));
        if (!r->buffers[i].hashes) return false;
    }
    return true;
}

static calyx_status read_with_buffers(struct spool_reading *r,
                                      uint32_t threads) {
    if (!allocate_buffers(r, threads)) return no_memory(r->why, r->spool->most);
    if (!monitor_init(&r->monitor)) return no_memory(r->why, 0);
    r->piece_units = piece_units(r, threads);
    r->pieces = (r->how->units + r->piece_units - 1) / r->piece_units;
    run_parallel(threads, visit_pieces, r);
    monitor_end(&r->monitor);
    return r->status;
}

calyx_status spool_read(const struct hash_spool *s, uint32_t threads,
                        const struct spool_visit *how, calyx_error *why) {
    struct spool_reading r = {.spool = s, .how = how, .why = why};
    const size_t least = greater(how->least_room, SPOOL_LEAST);
    while (threads > 1 && s->most / threads < least) threads--;
    const calyx_status status = read_with_buffers(&r, threads);
    for (uint32_t i = 0; i < threads; i++)
        give(s, r.buffers[i].hashes, r.buffers[i].room * sizeof(uint64_t));
    return status;
}

enum { EQUAL_UNITS_BITS = 12 };

static uint64_t first_of_equal(void *context, uint64_t unit) {
    (void)context;
    return unit << (64 - EQUAL_UNITS_BITS);
}

calyx_status spool_read_all(const struct hash_spool *s, uint32_t threads,
                            spool_visitor *visit, void *context, bool in_order,
                            calyx_error *why) {
    const struct spool_visit how = {.units = 1 << EQUAL_UNITS_BITS,
                                    .first = first_of_equal,
                                    .visit = visit,
                                    .context = context,
                                    .in_order = in_order,
                                    .divisible = true};
    return spool_read(s, threads, &how, why);
}
