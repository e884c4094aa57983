#include "engine/table_engine.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/spin_lock.h"
#include "engine/prefetch_hint.h"

#if !CALYX_NO_BUCKET

/* ---- Segments ------------------------------------------------------------ */

/* Where the lines of a segment are, if they do not follow its buckets. In a
 * table with rows such a segment is in the rows. */
static void note_lines(struct filter_table *table, uint32_t number,
                       uint8_t *lines) {
    struct bucket_table *const t = &table->t;
    if (t->lines_of) t->lines_of[number] = lines;
    if (table->rows && lines) t->row_segments = number + 1;
}

/* With the newest segment, the stage that it belongs to is on its way. */
static void append_segment(struct filter_table *table, const struct part *p) {
    struct bucket_table *const t = &table->t;
    const uint32_t number = table->segments++;
    set_segment(t, number, p->body);
    note_lines(table, number, p->lines);
    table->capacity += p->capacity;
    if (number == 0) return;
    const bool ended = p->shape.in_use == p->shape.blocks;
    const uint64_t stage = ended
                               ? (uint64_t)number << 56
                               : (uint64_t)(number - 1) << 56 | p->shape.in_use;
    __atomic_store_n(&t->stage, stage, __ATOMIC_RELEASE);
}

static void *take_zeros(const calyx_filter *f, size_t size) {
    void *const block = take_struct(&f->memory, size);
    if (block) memset(block, 0, size);
    return block;
}

static void free_block(const calyx_filter *f, void *block, size_t size) {
    if (block) give_block(&f->memory, block, size);
}

/* Of the list of segments: first where they begin, then their lines. */
static size_t list_bytes(uint32_t places) {
    return places * (sizeof(uintptr_t) + sizeof(uint8_t *));
}

/* The list of segments is here. */
static void use_list(struct filter_table *table, uintptr_t *list) {
    table->t.start = list;
    if (!table->rows) table->t.lines_of = (uint8_t **)(list + table->places);
}

/* Let the list of segments have this number of places. */
static calyx_status lengthen_list(calyx_filter *f, uint32_t places) {
    struct filter_table *const table = f->table;
    const uint32_t had = table->places;
    uintptr_t *const old = table->t.start;
    uintptr_t *const list = take_zeros(f, list_bytes(places));
    if (!list) return CALYX_NO_MEMORY;
    memcpy(list, old, (had ? had : FIRST_PLACES) * sizeof *list);
    memcpy(list + places, old + had, had * sizeof *list);
    if (had) free_block(f, old, list_bytes(had));
    table->places = places;
    use_list(table, list);
    return CALYX_OK;
}

/* Other threads read the list: so all of it is there from the beginning. */
static calyx_status share_table(calyx_filter *f) {
    f->table->t.shared = true;
    f->table->t.versions = take_zeros(f, STRIPES * sizeof(uint32_t));
    return f->table->t.versions ? lengthen_list(f, SEGMENT_PLACES)
                                : CALYX_NO_MEMORY;
}

/* A table of zeros becomes the table of the filter, without segments. */
static void begin_table(calyx_filter *f, struct filter_table *table,
                        const struct shape *first) {
    f->table = table;
    table_of(&table->t, NULL, first);
    if (!is_counting(f)) table->t.most_copies = 1;
    if (f->growth > 0 && !spare_bits(first)) table->t.adds = SPILL_NEAR;
}

/* The table of a filter that has no part yet. */
static calyx_status make_table(calyx_filter *f, const struct shape *first) {
    if (f->table) return CALYX_OK; /* its parts are about to be replaced */
    struct filter_table *const table = take_zeros(f, sizeof *table);
    if (!table) return CALYX_NO_MEMORY;
    begin_table(f, table, first);
    return f->concurrent ? share_table(f) : CALYX_OK;
}

void open_table(calyx_filter *f, struct filter_table *table) {
    *table = (struct filter_table){0};
    begin_table(f, table, &f->newest->shape);
    append_segment(table, f->newest);
}

static calyx_status make_place(calyx_filter *f) {
    const struct filter_table *const table = f->table;
    const uint32_t wanted = FIRST_PLACES + table->segments;
    if (table->segments == 0 || wanted <= table->places) return CALYX_OK;
    const uint32_t more = 2 * wanted;
    return lengthen_list(f, more < SEGMENT_PLACES ? more : SEGMENT_PLACES);
}

/* The newest part is a segment of the table. */
static calyx_status add_segment(calyx_filter *f) {
    const calyx_status status = make_place(f);
    if (status == CALYX_OK) append_segment(f->table, f->newest);
    return status;
}

/* ---- Rows ---------------------------------------------------------------- */

/*
 * All buckets of a table follow each other in memory from when it takes a
 * segment of 16 KiB: then the older ones, up to 224 KiB, move to a row. It
 * has addresses for 13 doublings, unless that is too much: then for as many as
 * fit, or 4. What comes later lies elsewhere. Lines for spilled entries have a
 * row of their own. Both lie on huge pages as soon as these waste little.
 *
 * A table has no rows if other threads may be reading it while segments move,
 * or if its memory is the caller's. Nor if its first segment has more than 4
 * buckets a group: the next begins after them.
 */
static const uint64_t IN_ROW = 16 << 10;
static const uint64_t ROW_MOST = UINT64_C(2) << 30;
enum {
    DOUBLINGS = 13,
    DOUBLINGS_LEAST = 4,
    BUCKETS_A_LINE = 8, /* in the rows: half of what large segments have */
    BUCKETS_HUGE_FROM = 4 << 20, /* bytes */
    LINES_HUGE_FROM = 1 << 20
};

static uint64_t row_bytes(uint64_t begins_with) {
    if (begins_with <= ROW_MOST >> DOUBLINGS) return begins_with << DOUBLINGS;
    const uint64_t least = begins_with << DOUBLINGS_LEAST;
    return least > ROW_MOST ? least : ROW_MOST;
}

/* Where a segment begins in both rows. For the number of segments, where the
 * last one ends. */
struct row_offsets {
    uint64_t buckets, lines;
};

static struct row_offsets row_offsets(const struct bucket_table *t,
                                      uint32_t number) {
    uint64_t lines = 0;
    for (uint32_t i = 0; i < number; i++)
        lines += spill_lines(segment_blocks(t, i));
    return (struct row_offsets){
        .buckets = segment_begin(number) * t->groups * BUCKET_BYTES,
        .lines = lines * BUCKET_BYTES,
    };
}

static bool can_have_rows(const calyx_filter *f, uint32_t number) {
    const struct bucket_table *const t = &f->table->t;
    const uint64_t bytes = segment_blocks(t, number) * BUCKET_BYTES;
    return f->growth > 0 && !f->concurrent && !f->lent &&
           f->memory.allocate == memory_default.allocate &&
           t->base_blocks % POSITIONS == 0 && bytes >= IN_ROW &&
           (number == 0 || bytes < 2 * IN_ROW);
}

static void end_rows(const calyx_filter *f) {
    struct table_rows *const rows = f->table->rows;
    if (!rows) return;
    memory_end_row(&rows->buckets);
    memory_end_row(&rows->lines);
    free_block(f, rows, sizeof *rows);
    f->table->rows = NULL;
}

static bool extend_rows(struct table_rows *rows, struct row_offsets end) {
    return end.buckets <= rows->buckets.size && end.lines <= rows->lines.size &&
           memory_extend_row(&rows->buckets, (size_t)end.buckets) &&
           memory_extend_row(&rows->lines, (size_t)end.lines);
}

static void put_in_rows(const struct table_rows *rows, struct row_offsets begin,
                        struct part *p) {
    p->body = (uint8_t *)rows->buckets.at + begin.buckets;
    p->lines = (uint8_t *)rows->lines.at + begin.lines;
}

/* A part and those before it. */
static void move_to_rows(const calyx_filter *f, struct part *p) {
    if (!p) return;
    move_to_rows(f, p->older);
    struct filter_table *const table = f->table;
    const uint32_t number = table->t.row_segments;
    const size_t buckets = (size_t)bits_bytes(f->kind, &p->shape);
    const size_t all = (size_t)body_bytes(f->kind, &p->shape);
    uint8_t *const from = p->body;
    put_in_rows(table->rows, row_offsets(&table->t, number), p);
    memcpy(p->body, from, buckets);
    memcpy(p->lines, from + buckets, all - buckets);
    free_block(f, from, all);
    set_segment(&table->t, number, p->body);
    note_lines(table, number, p->lines);
}

/* Rows for the segments so far, and for this one. */
static bool begin_rows(const calyx_filter *f, uint32_t number) {
    struct filter_table *const table = f->table;
    const struct row_offsets end = row_offsets(&table->t, number + 1);
    const uint64_t size = row_bytes(end.buckets);
    if (!can_have_rows(f, number) || size > SIZE_MAX / 2) return false;
    struct table_rows *const rows = take_zeros(f, sizeof *rows);
    table->rows = rows;
    if (rows &&
        memory_make_row(&rows->buckets, (size_t)size, BUCKETS_HUGE_FROM) &&
        memory_make_row(&rows->lines, (size_t)size / BUCKETS_A_LINE,
                        LINES_HUGE_FROM) &&
        extend_rows(rows, end)) {
        table->t.lines_of = rows->lines_of;
        move_to_rows(f, f->newest);
        return true;
    }
    end_rows(f);
    return false;
}

/* Let the body of the next part lie in the rows of the table: the buckets of
 * its segments follow each other there, as do their lines for spilled entries.
 * Older parts may move there first. False if it cannot have rows, or these are
 * full, or an older segment lies elsewhere. */
static bool join_rows(const calyx_filter *f, struct part *p) {
    const struct filter_table *const table = f->table;
    const struct bucket_table *const t = &table->t;
    const uint32_t number = table->segments;
    if (p->shape.blocks != segment_blocks(t, number) ||
        (!table->rows && !begin_rows(f, number)) || t->row_segments != number ||
        !extend_rows(table->rows, row_offsets(t, number + 1)))
        return false;
    put_in_rows(table->rows, row_offsets(t, number), p);
    return true;
}

bool has_rows(const calyx_filter *f) {
    return f->table && f->table->rows;
}

/* The newest part leaves them. */
static void leave_rows(const calyx_filter *f, const struct part *p) {
    struct table_rows *const rows = f->table->rows;
    memory_shrink_row(&rows->buckets,
                      (size_t)(p->body - (uint8_t *)rows->buckets.at));
    memory_shrink_row(&rows->lines,
                      (size_t)(p->lines - (uint8_t *)rows->lines.at));
}

/* Were huge pages requested for them? */
static bool has_huge_rows(const calyx_filter *f) {
    return has_rows(f) && !f->table->rows->buckets.begins_small;
}

/* ---- Bodies -------------------------------------------------------------- */

/*
 * Should the lines of a segment be a block of their own? The buckets of a
 * segment are a power of two times the buckets of the first segment. Allocators
 * have blocks of such sizes; with the lines after the buckets, a sixth of a
 * block is lost. The lines of the first segment stay after its buckets, where
 * calyx_small expects them.
 */
static bool is_apart(const calyx_filter *f, const struct shape *shape) {
    enum { BLOCKS = 16 };
    return f->growth > 0 && f->newest && shape->blocks >= BLOCKS &&
           f->memory.allocate != memory_default.allocate;
}

static bool take_body(const calyx_filter *f, struct part *p) {
    if (join_rows(f, p)) return true;
    if (!is_apart(f, &p->shape)) return take_whole_body(f, p);
    const size_t all = (size_t)body_bytes(f->kind, &p->shape);
    const size_t buckets = (size_t)bits_bytes(f->kind, &p->shape);
    p->body = take_block(&f->memory, buckets);
    p->lines = p->body ? take_block(&f->memory, all - buckets) : NULL;
    if (p->lines) return true;
    if (p->body) give_block(&f->memory, p->body, buckets);
    return false;
}

static void give_body(const calyx_filter *f, struct part *p) {
    const size_t all = (size_t)body_bytes(f->kind, &p->shape);
    const size_t buckets = (size_t)bits_bytes(f->kind, &p->shape);
    if (!is_in_pieces(p)) {
        give_whole_body(f, p);
    } else if (has_rows(f)) {
        leave_rows(f, p);
    } else {
        give_block(&f->memory, p->body, buckets);
        give_block(&f->memory, p->lines, all - buckets);
    }
}

/* Rows stay where they are. */
static void move_body(const calyx_filter *f, struct part *p,
                      calyx_move_function *move, void *context) {
    const size_t all = (size_t)body_bytes(f->kind, &p->shape);
    const size_t buckets = (size_t)bits_bytes(f->kind, &p->shape);
    if (!is_in_pieces(p)) {
        p->body = move(context, p->body, all);
    } else if (!has_rows(f)) {
        p->body = move(context, p->body, buckets);
        p->lines = move(context, p->lines, all - buckets);
    }
}

/* ---- Both ---------------------------------------------------------------- */

static void free_table(calyx_filter *f) {
    struct filter_table *const table = f->table;
    if (!table) return; /* a part was never made */
    end_rows(f);
    free_block(f, table->t.versions, STRIPES * sizeof(uint32_t));
    if (table->places) free_block(f, table->t.start, list_bytes(table->places));
    free_block(f, table, sizeof *table);
}

static void append_segments(struct filter_table *table, const struct part *p) {
    if (!p) return;
    append_segments(table, p->older);
    append_segment(table, p);
}

static void renew_segments(calyx_filter *f) {
    f->table->segments = 0;
    f->table->capacity = 0;
    f->table->t.row_segments = 0;
    f->table->t.stage = 0;
    append_segments(f->table, f->newest);
}

static void relocate_table(calyx_filter *f, calyx_move_function *move,
                           void *context) {
    struct filter_table *const table =
        move(context, f->table, sizeof *f->table);
    struct bucket_table *const t = &table->t;
    f->table = table;
    if (table->places)
        use_list(table, move(context, t->start, list_bytes(table->places)));
    else
        t->start = t->first;
    if (t->versions)
        t->versions = move(context, t->versions, STRIPES * sizeof *t->versions);
}

/* ---- One writer ---------------------------------------------------------- */

/* Its address is another one in each thread. */
static _Thread_local char this_thread;

static bool is_table_locked_here(const calyx_filter *f) {
    return f->concurrent &&
           __atomic_load_n(&f->table->by, __ATOMIC_RELAXED) == &this_thread;
}

static void lock_table(const calyx_filter *f) {
    if (!f->concurrent) return;
    if (!is_table_locked_here(f)) {
        spin_lock(&f->table->locked);
        __atomic_store_n(&f->table->by, &this_thread, __ATOMIC_RELAXED);
    }
    f->table->times++;
}

static void unlock_table(const calyx_filter *f) {
    if (!f->concurrent || --f->table->times > 0) return;
    __atomic_store_n(&f->table->by, NULL, __ATOMIC_RELAXED);
    spin_unlock(&f->table->locked);
}

/* ---- Growth -------------------------------------------------------------- */

static bool is_moving(const struct filter_table *table) {
    return stage_number(table->t.stage) + 1 < table->segments;
}

static uint64_t blocks_of(const struct filter_table *table) {
    uint64_t blocks = 0;
    for (uint32_t i = 0; i < table->segments; i++)
        blocks += segment_blocks(&table->t, i);
    return blocks;
}

/* Keys that a table holds: as many as it has room for, at the rate that its
 * first segment was planned with. */
static double capacity_of(uint64_t blocks, uint32_t width, double fpr) {
    const double most = ldexp(fpr * (double)blocks, (int)width);
    return floor(fmin(bucket_growing_room(blocks, width), most));
}

/* Keys up to which a growing table that begins with this part keeps its rate.
 */
static uint64_t grows_to(const struct part *first) {
    const struct shape spent =
        doubled_shape(&first->shape, spare_bits(&first->shape));
    const double capacity =
        capacity_of(spent.blocks, width_of(&spent), first->fpr);
    return (uint64_t)fmin(ldexp(capacity, KEPT_DOUBLINGS), 0x1p63);
}

/* Keys that it holds more with this number of blocks more. */
static uint64_t more_capacity(const struct filter_table *table,
                              const struct part *first, uint64_t more) {
    const double capacity =
        capacity_of(blocks_of(table) + more, table->t.width, first->fpr);
    return capacity > (double)table->capacity
               ? (uint64_t)capacity - table->capacity
               : 1;
}

static uint32_t spare_bits_of(const calyx_filter *f) {
    return f->table->segments == 1 ? spare_bits(&f->newest->shape) : 0;
}

/* All entries of a part to the table of the filter. False if one finds no room;
 * unless the table has spent its spare bits: then its bucket is saturated.
 * noinline: the list takes 32 KiB. */
NOINLINE static bool take_entries(calyx_filter *f, const struct part *from) {
    struct bucket_table *const t = &f->table->t;
    struct bucket_table old;
    uint64_t next = 0;
    table_of(&old, from->body, &from->shape);
    do {
        struct prefix_list list = {.n = 0};
        bool ignored;
        const uint64_t low = next;
        const enum listing listed = bucket_list(&old, low, &list, &next);
        if (listed != BUCKET_LISTED) bucket_saturate_range(t, low, next - 1);
        for (uint32_t i = 0; i < list.n && listed == BUCKET_LISTED; i++) {
            const uint64_t hash = list.prefix[i].hash;
            if (f->kernel->table->add(t, hash, &ignored) != NO_ROOM) continue;
            if (spare_bits_of(f)) return false;
            bucket_saturate(t, hash);
        }
    } while (next);
    return true;
}

/* The table of a filter without parts. */
static void reset_table(calyx_filter *f, const struct shape *first) {
    f->newest = NULL;
    f->table->segments = 0;
    f->table->capacity = 0;
    begin_table(f, f->table, first);
}

static calyx_status replace_part(calyx_filter *f, const struct part *like) {
    struct part *const old = f->newest;
    reset_table(f, &like->shape);
    calyx_status status = allocate_part(f, like);
    if (status == CALYX_OK && !take_entries(f, old)) {
        free_part(f, f->newest);
        status = CALYX_FULL;
    }
    if (status == CALYX_OK) {
        free_part(f, old);
        return CALYX_OK;
    }
    reset_table(f, &old->shape);
    f->newest = old;
    append_segment(f->table, old);
    return status;
}

/*
 * Double a table whose codes have bits to spare: the first bit of each code
 * chooses between two buckets. After a doubling, spilled entries fit into
 * buckets again, so the table is filled until an insertion fails. Where they do
 * not fit, the table doubles again. It has 128 buckets at most.
 */
static calyx_status double_table(calyx_filter *f) {
    const struct part *const p = f->newest;
    calyx_status status = CALYX_FULL;
    for (uint32_t n = 1; status == CALYX_FULL && n <= spare_bits(&p->shape);
         n++) {
        struct part like = like_part(p);
        like.shape = doubled_shape(&p->shape, n);
        const uint64_t room = first_room(&like.shape);
        if (like.capacity < room) like.capacity = room;
        status = replace_part(f, &like);
    }
    return status;
}

/* Let other threads use a table that had bits to spare. It spends them now, as
 * it must not double as a whole later. */
static calyx_status make_concurrent(calyx_filter *f) {
    calyx_status status = CALYX_OK;
    while (status == CALYX_OK && spare_bits_of(f)) status = double_table(f);
    if (status != CALYX_OK) return status;
    f->concurrent = true;
    return share_table(f);
}

static calyx_status start_stage(calyx_filter *f) {
    struct filter_table *const table = f->table;
    if (table->segments == SEGMENTS_MOST || is_in_place(f)) return CALYX_FULL;
    if (spare_bits_of(f)) return f->concurrent ? CALYX_FULL : double_table(f);
    struct part *const last = f->newest;
    const struct part *const first = first_part(f);
    const uint64_t blocks = segment_blocks(&table->t, table->segments);
    if (blocks > f->kind->most_blocks) return CALYX_FULL;
    const struct part like = {
        .shape = {.blocks = blocks, .probes = first->shape.probes},
        .capacity = more_capacity(table, first, blocks),
        .items = items_of(last),
        .fpr = first->fpr,
    };
    const calyx_status status = allocate_part(f, &like);
    if (status != CALYX_OK) return status;
    __atomic_store_n(&last->items, 0, __ATOMIC_RELAXED);
    return CALYX_OK;
}

static void move_group(calyx_filter *f) {
    struct filter_table *const table = f->table;
    bucket_move_group(&table->t);
    struct shape *const shape = &f->newest->shape;
    shape->in_use =
        is_moving(table) ? table->t.stage & MOVED_MASK : shape->blocks;
}

static calyx_status check_capacity(calyx_filter *f, uint64_t hash) {
    struct filter_table *const table = f->table;
    if (items_of(f->newest) < table->capacity) return CALYX_OK;
    if (f->growth > 0 ? is_moving(table) : !f->strict) return CALYX_OK;
    const bool may_stay = f->strict || !is_counting(f);
    if (may_stay && f->kernel->table->has(&table->t, hash)) return CALYX_OK;
    return f->growth > 0 ? start_stage(f) : CALYX_FULL;
}

/* ---- Keys ---------------------------------------------------------------- */

static bool table_has(const calyx_filter *f, uint64_t hash) {
    return f->kernel->table->has(&f->table->t, hash);
}

/* The newest part counts the keys of all. */
static void count_keys(calyx_filter *f, int change) {
    const uint64_t items = items_of(f->newest);
    if (items == 0 && change < 0) return;
    __atomic_store_n(&f->newest->items, items + (uint64_t)change,
                     __ATOMIC_RELAXED);
}

/* A key of which the whole hash is known has all bits. */
enum { ALL_BITS = 64 };

static enum insertion insert(calyx_filter *f, const struct hash_prefix *key,
                             bool *fresh) {
    struct bucket_table *const t = &f->table->t;
    return key->bits == ALL_BITS || bucket_is_whole(t, key)
               ? f->kernel->table->add(t, key->hash, fresh)
               : bucket_add_prefix(t, key);
}

static enum insertion add_spilling(calyx_filter *f,
                                   const struct hash_prefix *key, bool *fresh,
                                   enum spilling how) {
    const enum spilling usual = f->table->t.adds;
    f->table->t.adds = how;
    const enum insertion became = insert(f, key, fresh);
    f->table->t.adds = usual;
    return became;
}

/* The room that is left for moves is the last before many groups have to move
 * at once. */
static enum insertion add_crowded(calyx_filter *f,
                                  const struct hash_prefix *key, bool *fresh) {
    const enum insertion became = add_spilling(f, key, fresh, SPILL_HALF);
    return became == NO_ROOM ? add_spilling(f, key, fresh, SPILL_FAR) : became;
}

/* May a table grow although it is not full, so that a crowded bucket gets room?
 * If it is small, or half full: so chosen keys cannot use up all memory. */
static bool may_grow_early(const calyx_filter *f) {
    enum { SMALL = 4096 };
    const uint64_t capacity = f->table->capacity;
    return capacity <= SMALL || capacity / 2 <= items_of(f->newest);
}

/* Let a table that is not moving grow, unless it may not. */
static calyx_status grow_early(calyx_filter *f) {
    if (is_moving(f->table)) return CALYX_OK;
    return may_grow_early(f) ? start_stage(f) : CALYX_FULL;
}

/* Has the group of a hash moved at this stage? */
static bool has_moved(const struct bucket_table *t, uint64_t hash) {
    return scale64(hash, groups_now(t, t->stage)) >= groups_left(t, t->stage);
}

/* Grow while the table may, until the group of a key has moved and its bucket
 * has room. Few groups move at once, as somebody waits for this addition. */
static calyx_status grow_for(calyx_filter *f, const struct hash_prefix *key,
                             bool *fresh, enum insertion *became) {
    enum { MOVES_MOST = 1024 };
    const struct bucket_table *const t = &f->table->t;
    calyx_status status = CALYX_OK;
    for (uint32_t i = 0; i < MOVES_MOST && *became == NO_ROOM; i++) {
        status = grow_early(f);
        if (status != CALYX_OK) break;
        const bool had_moved = !is_moving(f->table) || has_moved(t, key->hash);
        if (is_moving(f->table)) move_group(f);
        if (!is_moving(f->table) || (!had_moved && has_moved(t, key->hash)))
            *became = add_crowded(f, key, fresh);
    }
    return status;
}

static void saturate_for(struct bucket_table *t,
                         const struct hash_prefix *key) {
    if (key->bits == ALL_BITS)
        bucket_saturate(t, key->hash);
    else
        bucket_saturate_prefix(t, key);
}

/*
 * A key would have to be spilled far from its bucket: there are many copies of
 * keys, which fill buckets unevenly, or keys were chosen. Let the table grow. A
 * bucket that is crowded even then is relieved of copies, which cannot be
 * removed after that, or saturated.
 */
static calyx_status add_to_crowded(calyx_filter *f,
                                   const struct hash_prefix *key, bool *fresh,
                                   enum insertion *became) {
    struct bucket_table *const t = &f->table->t;
    if (f->growth <= 0 || is_in_place(f)) return CALYX_FULL;
    if (grow_early(f) == CALYX_NO_MEMORY) return CALYX_NO_MEMORY;
    *became = add_crowded(f, key, fresh);
    if (grow_for(f, key, fresh, became) == CALYX_NO_MEMORY)
        return CALYX_NO_MEMORY;
    if (*became == NO_ROOM && bucket_relieve(t, key->hash))
        *became = add_crowded(f, key, fresh);
    if (*became == NO_ROOM) {
        saturate_for(t, key);
        *became = KEY_ADDED;
    }
    return CALYX_OK;
}

/* Where it is not added again, a key that is there moves nothing: so the bytes
 * of a table depend only on the keys that were new, and on their order. */
static bool leaves_table(const calyx_filter *f, const struct hash_prefix *key) {
    return !is_counting(f) && key->bits == ALL_BITS &&
           f->kernel->table->has(&f->table->t, key->hash);
}

static calyx_status add_locked(calyx_filter *f, const struct hash_prefix *key,
                               bool *fresh) {
    calyx_status status = check_capacity(f, key->hash);
    if (status != CALYX_OK) return status;
    if (is_moving(f->table)) {
        *fresh = false;
        if (leaves_table(f, key)) return CALYX_OK;
        move_group(f);
    }
    enum insertion became = insert(f, key, fresh);
    if (became == NO_ROOM) status = add_to_crowded(f, key, fresh, &became);
    if (status == CALYX_OK && became == KEY_ADDED) count_keys(f, 1);
    return status;
}

static calyx_status table_add(calyx_filter *f, uint64_t hash, bool *fresh) {
    bool ignored;
    if (!fresh) fresh = &ignored;
    if (is_table_locked_here(f)) return CALYX_CANNOT;
    lock_table(f);
    const calyx_status status =
        add_locked(f, &(struct hash_prefix){hash, ALL_BITS}, fresh);
    unlock_table(f);
    return status;
}

enum { DISTANCE = PREFETCH_DISTANCE / 2 };

/* Inlined: gcc takes a call that only prefetches for one without effect, and
 * drops it. */
ALWAYS_INLINE void prefetch_bucket(const struct bucket_table *t,
                                   uint64_t hash) {
    prefetch_l1(line_of_hash(t, hash, scale_of(t, t->stage, hash)));
}

/* Keys that may be added to a table as it is, up to n. */
static size_t room_for(const calyx_filter *f, size_t n) {
    const struct filter_table *const table = f->table;
    const uint64_t items = items_of(f->newest);
    if (is_moving(table)) return 0;
    if (f->growth <= 0 && !f->strict) return n;
    const uint64_t room = items < table->capacity ? table->capacity - items : 0;
    return room < n ? (size_t)room : n;
}

/* Add the first hashes of a batch, without growth. Returns their number. */
static size_t add_in_place(calyx_filter *f, const struct batch *batch,
                           bool *fresh) {
    const size_t n = room_for(f, batch->n);
    if (n == 0) return 0;
    const struct batch these = {
        .hashes = batch->hashes,
        .n = n,
        .more = batch->n - n + batch->more,
        .prefetched = batch->prefetched,
    };
    size_t added;
    const size_t done =
        f->kernel->table->add_batch(&f->table->t, these, fresh, &added);
    count_keys(f, (int)added);
    return done;
}

/* Beyond those, one is added by itself, as the table grows with it. */
static calyx_status table_add_some(calyx_filter *f, struct key_window *w,
                                   bool *fresh, size_t *done) {
    enum { TURN = 256 };
    const struct batch *const batch = &w->batch;
    const size_t all = batch->n + batch->more;
    const size_t n = f->concurrent && batch->n > TURN ? TURN : batch->n;
    calyx_status status = CALYX_OK;
    size_t i = 0;
    *done = 0;
    if (is_table_locked_here(f)) return CALYX_CANNOT;
    lock_table(f);
    while (i < n) {
        const struct batch rest = {
            .hashes = batch->hashes + i,
            .n = n - i,
            .more = all - n,
            .prefetched = i == 0 ? batch->prefetched : 0,
        };
        bool is_fresh;
        i += add_in_place(f, &rest, fresh ? fresh + i : NULL);
        if (i == n) break;
        if (i + DISTANCE < all)
            prefetch_bucket(&f->table->t, batch->hashes[i + DISTANCE]);
        status = add_locked(
            f, &(struct hash_prefix){batch->hashes[i], ALL_BITS}, &is_fresh);
        if (status != CALYX_OK) break;
        if (fresh) fresh[i] = is_fresh;
        i++;
    }
    unlock_table(f);
    *done = i;
    return i > 0 ? CALYX_OK : status;
}

static enum removal remove_locked(calyx_filter *f, uint64_t hash) {
    lock_table(f);
    const enum removal became = f->kernel->table->remove(&f->table->t, hash);
    if (became == KEY_REMOVED) count_keys(f, -1);
    unlock_table(f);
    return became;
}

static calyx_status table_remove(calyx_filter *f, uint64_t hash,
                                 enum removal *became) {
    if (is_table_locked_here(f)) return CALYX_CANNOT;
    *became = remove_locked(f, hash);
    return CALYX_OK;
}

static calyx_status table_remove_batch(calyx_filter *f, struct key_window *w,
                                       bool *found, size_t *removed) {
    const struct batch *const batch = &w->batch;
    const size_t all = batch->n + batch->more;
    if (is_table_locked_here(f)) return CALYX_CANNOT;
    *removed = 0;
    lock_table(f);
    for (size_t i = 0; i < batch->n; i++) {
        if (i + DISTANCE < all)
            prefetch_bucket(&f->table->t, batch->hashes[i + DISTANCE]);
        const enum removal became = remove_locked(f, batch->hashes[i]);
        if (found) found[i] = became != KEY_ABSENT;
        *removed += became == KEY_REMOVED;
    }
    unlock_table(f);
    return CALYX_OK;
}

static uint32_t table_count(const calyx_filter *f, uint64_t hash) {
    if (!table_has(f, hash)) return 0;
    if (!is_counting(f)) return 1;
    const uint32_t n = f->kernel->table->count(&f->table->t, hash);
    return n ? n : 1;
}

static size_t has_batch(const calyx_filter *f, struct batch batch,
                        bool *found) {
    return f->kernel->table->has_batch(&f->table->t, batch, found);
}

static size_t table_has_many(const calyx_filter *f, const struct key_list *keys,
                             bool *found) {
    return has_in_batches(f, keys, found, has_batch, false);
}

/* ---- Merging ------------------------------------------------------------- */

/* Tables may have grown to different sizes, from first segments that are alike
 * when their codes have no bits to spare. */
static calyx_status check_alike(const calyx_filter *a, const calyx_filter *b,
                                calyx_error *why) {
    struct part p = like_part(first_part(a)), q = like_part(first_part(b));
    p.shape = doubled_shape(&p.shape, spare_bits(&p.shape));
    q.shape = doubled_shape(&q.shape, spare_bits(&q.shape));
    return check_shape(&p, &q, why);
}

/* A step of a merge: over this number of buckets of the other, or as many moves
 * of groups, by which the table grows first. */
struct table_merge {
    uint64_t buckets;
    uint64_t from; /* the hash whose bucket is the next */
    bool done;
};

/* Take the prefixes that are as good as hashes to the front, up to a batch. */
static size_t sort_whole(const struct bucket_table *t,
                         struct prefix_list *waiting, uint64_t *hashes) {
    size_t n = 0;
    for (uint32_t i = 0; i < waiting->n && n < BATCH_MAX; i++) {
        const struct hash_prefix prefix = waiting->prefix[i];
        if (!bucket_is_whole(t, &prefix)) continue;
        waiting->prefix[i] = waiting->prefix[n];
        waiting->prefix[n] = prefix;
        hashes[n++] = prefix.hash;
    }
    return n;
}

static calyx_status add_waiting(calyx_filter *f, struct prefix_list *waiting) {
    uint64_t hashes[BATCH_MAX];
    const struct batch whole = {
        .hashes = hashes,
        .n = sort_whole(&f->table->t, waiting, hashes),
    };
    calyx_status status = CALYX_OK;
    bool ignored;
    size_t i = add_in_place(f, &whole, NULL);
    for (; i < waiting->n && status == CALYX_OK; i++)
        status = add_locked(f, &waiting->prefix[i], &ignored);
    waiting->n = 0;
    return status;
}

/* Number of keys, at most the number of slots: a forged file may claim any. */
static double keys_of(const calyx_filter *f) {
    const struct filter_table *const table = f->table;
    const double slots = (double)blocks_of(table) * slots_of(table->t.width);
    return fmin((double)items_of(f->newest), slots);
}

/* Entries come in the order of hashes, so a table that is too small for the
 * union would be crowded at once where they begin. How many are new is
 * estimated from some buckets of the other. noinline: else one frame would hold
 * two lists of prefixes, of 32 KiB each. */
NOINLINE static uint64_t capacity_for_union(const calyx_filter *f,
                                            const calyx_filter *other) {
    enum { SAMPLES = 64 };
    uint64_t next, tried = 1, fresh = 1;
    for (uint64_t i = 0; i < SAMPLES; i++) {
        struct prefix_list some = {.n = 0};
        if (bucket_list(&other->table->t, i << 58, &some, &next) ==
            BUCKET_DAMAGED)
            break;
        tried += some.n;
        for (uint32_t j = 0; j < some.n; j++)
            fresh += !f->kernel->table->has(&f->table->t, some.prefix[j].hash);
    }
    const double share = (double)fresh / (double)tried;
    return (uint64_t)ceil(keys_of(f) + share * keys_of(other));
}

/* Grow to a capacity by at most this number of moves. *left becomes the number
 * of moves that were not needed: none, if it has to go on. */
static calyx_status grow_to(calyx_filter *f, uint64_t capacity,
                            uint64_t *left) {
    for (; *left > 0; --*left) {
        const bool is_small = f->table->capacity < capacity && f->growth > 0;
        if (!is_moving(f->table) && !is_small) return CALYX_OK;
        const calyx_status status =
            is_moving(f->table) ? CALYX_OK : start_stage(f);
        if (status != CALYX_OK) return status;
        if (is_moving(f->table)) move_group(f);
    }
    return CALYX_OK;
}

static calyx_status merge_locked(calyx_filter *f, const calyx_filter *other,
                                 struct table_merge *merge) {
    struct prefix_list waiting = {.n = 0};
    uint64_t buckets = merge->buckets;
    const bool begins = merge->from == 0;
    const uint64_t capacity = begins ? capacity_for_union(f, other) : 0;
    calyx_status status = grow_to(f, capacity, &buckets);
    while (status == CALYX_OK && buckets-- > 0 && !merge->done) {
        const uint64_t low = merge->from;
        const enum listing listed =
            bucket_list(&other->table->t, low, &waiting, &merge->from);
        if (listed == BUCKET_DAMAGED) return CALYX_DAMAGED;
        if (listed == BUCKET_SATURATED)
            bucket_saturate_range(&f->table->t, low, merge->from - 1);
        merge->done = merge->from == 0;
        if (waiting.n + BUCKET_PREFIXES > PREFIXES_MOST)
            status = add_waiting(f, &waiting);
    }
    return status == CALYX_OK ? add_waiting(f, &waiting) : status;
}

/* Add the entries of another table of the same first shape, once both have no
 * bits to spare. Only for kinds that do not count. */
static calyx_status merge_segments(calyx_filter *f, const calyx_filter *other,
                                   struct table_merge *merge) {
    if (is_table_locked_here(f) || is_table_locked_here(other))
        return CALYX_CANNOT;
    /* In this order in all threads. */
    const bool f_first = (uintptr_t)f < (uintptr_t)other;
    lock_table(f_first ? f : other);
    lock_table(f_first ? other : f);
    const calyx_status status = merge_locked(f, other, merge);
    unlock_table(f);
    unlock_table(other);
    return status;
}

/*
 * The entries of a table are added one by one: so a step is shorter. Where to
 * go on is a hash, in at->bits[0], as the other may grow between steps; a step
 * depends on nothing else, so that a replica can repeat it. The other may have
 * grown since the caller read its size, too: so at->at stays below the bytes of
 * its first part, which are always in that size, until all is done; or of one
 * bucket, if the first part may have doubled.
 */
static calyx_status merge_some(calyx_filter *f, const calyx_filter *other,
                               uint64_t most, calyx_progress *at,
                               calyx_error *why) {
    enum { SHORTER = 32 };
    const uint64_t buckets = most / SHORTER / ALIGNMENT;
    struct table_merge step = {
        .buckets = buckets ? buckets : 1,
        .from = at->bits[0],
    };
    const calyx_status status = merge_segments(f, other, &step);
    if (status != CALYX_OK)
        return fail(why, status,
                    "%s; the filter now has some of the other's keys, and all "
                    "of its own",
                    calyx_status_text(status));
    const uint64_t blocks = first_part(other)->shape.blocks;
    const uint64_t least = blocks > BLOCKS_SPARED ? blocks : 1;
    at->bits[0] = step.from;
    at->at = step.done ? row_bytes_to(other->kind, newest_of(other))
                       : scale64(step.from, least * BUCKET_BYTES);
    return CALYX_OK;
}

/* ---- Description --------------------------------------------------------- */

/* Without the bytes, what was planned for this number of keys. */
static struct bucket_sums planned_sums(const calyx_info *info,
                                       const struct part *first) {
    const double share = (double)info->items / (double)info->capacity;
    const double doublings = (info->parts - 1) / (double)POSITIONS;
    return (struct bucket_sums){
        .entries = info->items,
        .rate = fmin(1, share * first->fpr * (1 + 2 * doublings)),
    };
}

/* The number of bits set says nothing. */
static void describe_table(const calyx_filter *f, const uint64_t *counts,
                           calyx_info *info) {
    (void)counts;
    const struct part *const first = first_part(f);
    const double slots = (double)(info->bits / f->kind->block_bits) *
                         slots_of(width_of(&first->shape));
    lock_table(f);
    const struct bucket_sums sums =
        f->table ? bucket_sum(&f->table->t, f->table->segments)
                 : planned_sums(info, first);
    unlock_table(f);
    info->distinct = (double)sums.entries;
    info->fpr_now = sums.rate;
    info->saturated = sums.saturated;
    info->fill = fmin(1, (double)sums.entries / slots);
}

static uint64_t table_bytes(const calyx_filter *f) {
    return sizeof *f->table + list_bytes(f->table->places) +
           (f->table->rows ? sizeof *f->table->rows : 0) +
           (f->concurrent ? STRIPES * sizeof(uint32_t) : 0);
}

/* A plan, and the filter of a calyx_layout, have parts and no table. */
static void add_info(const calyx_filter *f, calyx_info *info) {
    const struct part *const first = first_part(f);
    if (f->growth > 0) info->grows_to = grows_to(first);
    if (!f->table) return;
    info->huge_pages |= has_huge_rows(f);
    info->memory += table_bytes(f);
    info->moves = stage_of(&f->table->t) - spare_bits(&first->shape);
}

/* ---- Prefetch ------------------------------------------------------------ */

/* The stage that groups are moving to: they soon have, and then the hint is not
 * taken again. */
static void hint_of_table(const struct bucket_table *t,
                          struct newest_segments *newest) {
    const uint64_t stage = stage_of(t);
    const bool is_moving = (stage & MOVED_MASK) != 0;
    const struct bucket_scale scale =
        scale_at(t, stage_number(stage) + is_moving);
    copy_newest(t, &scale, newest);
}

/* A table that has grown beside readers has no hint: its segments may be
 * changing. */
static bool fill_hint(const calyx_filter *f, struct prefetch_hint *hint) {
    const struct part *const p = newest_of(f);
    if (p->older && f->concurrent) return false;
    hint->shape = p->shape;
    if (p->older)
        hint_of_table(&f->table->t, &hint->newest);
    else
        hint_of_parts(f, p, hint);
    return true;
}

const struct engine table_engine = {
    .calls =
        {
            .has = table_has,
            .add = table_add,
            .remove = table_remove,
            .count = table_count,
            .has_many = table_has_many,
            .add_some = table_add_some,
            .remove_batch = table_remove_batch,
            .most_hashes = BATCH_MAX,
        },
    .is_intact = are_parts_intact,
    .open_first = make_table,
    .take_part = add_segment,
    .renew = renew_segments,
    .relocate = relocate_table,
    .close = free_table,
    .take_body = take_body,
    .give_body = give_body,
    .move_body = move_body,
    .share = make_concurrent,
    .lock = lock_table,
    .unlock = unlock_table,
    .add_info = add_info,
    .describe = describe_table,
    .check_alike = check_alike,
    .merge_some = merge_some,
    .fill_hint = fill_hint,
};
#endif
