#include "layout/rebuild.h"

#include <string.h>

#include "server/steps.h"
#include "server/thread.h"

static uint64_t open_now; /* other threads may free some */

uint64_t rebuilds_open(void) {
    return __atomic_load_n(&open_now, __ATOMIC_RELAXED);
}

/* ---- Beginning and ending ------------------------------------------------ */

void rebuild_begin(struct filter *f, const struct rebuild_terms *terms) {
    struct rebuild *const r = RM_Calloc(1, sizeof *r);
    rebuild_end(f);
    r->terms = *terms;
    r->recorded = RM_CreateDict(NULL);
    extra_for(f)->rebuild = r;
    __atomic_fetch_add(&open_now, 1, __ATOMIC_RELAXED);
}

static void *free_dict(void *dict) {
    RM_FreeDict(NULL, dict);
    return NULL;
}

/* In another thread if there are many: 10,000 take a millisecond. */
static void free_dict_later(RedisModuleDict *dict) {
    enum { MANY = 4096 };
    if (RM_DictSize(dict) < MANY || !thread_start(free_dict, dict))
        free_dict(dict);
}

static void end_swap(struct rebuild *r) {
    if (r->late) free_dict_later(r->late);
    if (r->cursor) RM_FreeString(NULL, r->cursor);
    r->late = NULL;
    r->cursor = NULL;
    r->passed = false;
    r->swap = 0;
}

void rebuild_free(struct rebuild *r) {
    end_swap(r);
    free_dict_later(r->recorded);
    RM_Free(r);
    __atomic_fetch_sub(&open_now, 1, __ATOMIC_RELAXED);
}

void rebuild_end(struct filter *f) {
    struct rebuild *const r = rebuild_of(f);
    if (!r) return;
    f->extra->rebuild = NULL;
    rebuild_free(r);
}

/* ---- Items --------------------------------------------------------------- */

static uint64_t count_in(RedisModuleDict *dict, const calyx_key *item) {
    return (uint64_t)(uintptr_t)RM_DictGetC(dict, (void *)(uintptr_t)item->data,
                                            item->size, NULL);
}

static void set_count(RedisModuleDict *dict, const calyx_key *item,
                      uint64_t count) {
    void *const data = (void *)(uintptr_t)item->data;
    if (count)
        RM_DictReplaceC(dict, data, item->size, (void *)(uintptr_t)count);
    else
        RM_DictDelC(dict, data, item->size, NULL);
}

/* Has the swap that is under way added this item, or passed its place? */
static bool is_passed(const struct rebuild *r, const calyx_key *item) {
    size_t size;
    if (!r->swap || (!r->cursor && !r->passed)) return false;
    if (r->passed) return true;
    const char *const cursor = RM_StringPtrLen(r->cursor, &size);
    const int order =
        memcmp(item->data, cursor, item->size < size ? item->size : size);
    return order < 0 || (order == 0 && item->size <= size);
}

void rebuild_lose(struct rebuild *r, enum rebuild_lost why) {
    if (!r || r->terms.lost) return;
    end_swap(r);
    free_dict_later(r->recorded);
    r->recorded = RM_CreateDict(NULL);
    r->bytes = 0;
    r->terms.lost = why;
}

void rebuild_record(struct filter *f, const calyx_key *item) {
    struct rebuild *const r = rebuild_of(f);
    if (r->terms.lost) return;
    const uint64_t count = count_in(r->recorded, item);
    const uint64_t more = count ? 0 : item->size + REBUILD_ITEM_BYTES;
    if (count && (!f->can_remove || count == REBUILD_MOST_COPIES)) return;
    if (more > r->terms.most - r->bytes) {
        rebuild_lose(r, REBUILD_TOO_MANY);
        return;
    }
    r->bytes += more;
    set_count(r->recorded, item, count + 1);
    if (is_passed(r, item))
        set_count(r->late, item, count_in(r->late, item) + 1);
}

void rebuild_cancel(struct rebuild *r, const calyx_key *item) {
    if (r->terms.lost) return;
    const uint64_t count = count_in(r->recorded, item);
    if (count == 0) return;
    if (count == 1) r->bytes -= item->size + REBUILD_ITEM_BYTES;
    set_count(r->recorded, item, count - 1);
    if (!r->late) return;
    const uint64_t late = count_in(r->late, item);
    if (late) set_count(r->late, item, late - 1);
}

uint64_t rebuild_items(const struct rebuild *r) {
    return RM_DictSize(r->recorded);
}

/* ---- The swap ------------------------------------------------------------ */

uint64_t rebuild_start_swap(struct rebuild *r) {
    static uint64_t swaps;
    end_swap(r);
    r->late = RM_CreateDict(NULL);
    return r->swap = ++swaps;
}

static bool is_full(const struct rebuild_batch *b) {
    return b->n == REBUILD_BATCH || b->work >= STEP_LINES;
}

/* Until the batch is full, or to the end: then true. */
static bool take(RedisModuleDictIter *from, struct rebuild_batch *b) {
    size_t size;
    void *count;
    const char *item = NULL;
    while (!is_full(b) && (item = RM_DictNextC(from, &size, &count))) {
        b->items[b->n] = RM_CreateString(NULL, item, size);
        b->times[b->n++] = (uint64_t)(uintptr_t)count;
        b->work += b->item_lines + size / BYTES_HASHED_AS_LINE;
    }
    const bool ended = !is_full(b);
    RM_DictIteratorStop(from);
    return ended;
}

static void next_recorded(struct rebuild *r, struct rebuild_batch *b) {
    size_t size = 0;
    const char *const cursor =
        r->cursor ? RM_StringPtrLen(r->cursor, &size) : NULL;
    r->passed = take(RM_DictIteratorStartC(r->recorded, cursor ? ">" : "^",
                                           (void *)(uintptr_t)cursor, size),
                     b);
    if (r->cursor) RM_FreeString(NULL, r->cursor);
    r->cursor = r->passed ? NULL : RM_HoldString(NULL, b->items[b->n - 1]);
}

static void next_late(struct rebuild *r, struct rebuild_batch *b) {
    const size_t before = b->n;
    b->last = take(RM_DictIteratorStartC(r->late, "^", NULL, 0), b);
    for (size_t i = before; i < b->n; i++) {
        calyx_key item;
        item.data = RM_StringPtrLen(b->items[i], &item.size);
        set_count(r->late, &item, 0);
    }
}

void rebuild_next(struct rebuild *r, struct rebuild_batch *b) {
    b->n = 0;
    b->work = 0;
    b->last = false;
    if (!r->passed) next_recorded(r, b);
    if (r->passed && !is_full(b)) next_late(r, b);
}

/* ---- Files --------------------------------------------------------------- */

uint64_t rebuild_memory(const struct rebuild *r) {
    return r ? sizeof *r + r->bytes : 0;
}

static RedisModuleDictIter *first_of(const struct rebuild *r) {
    return RM_DictIteratorStartC(r->recorded, "^", NULL, 0);
}

void rebuild_save(const struct rebuild *r, RedisModuleIO *io) {
    size_t size;
    void *count;
    const char *item;
    RM_SaveUnsigned(io, r != NULL);
    if (!r) return;
    RM_SaveUnsigned(io, r->terms.token);
    RM_SaveUnsigned(io, r->terms.until);
    RM_SaveUnsigned(io, r->terms.most);
    RM_SaveUnsigned(io, r->terms.lost);
    RM_SaveUnsigned(io, rebuild_items(r));
    RedisModuleDictIter *const all = first_of(r);
    while ((item = RM_DictNextC(all, &size, &count))) {
        RM_SaveStringBuffer(io, item, size);
        RM_SaveUnsigned(io, (uint64_t)(uintptr_t)count);
    }
    RM_DictIteratorStop(all);
}

/* An item twice, a count that is out of range, more bytes than allowed: the
 * file is damaged. */
static bool load_item(RedisModuleIO *io, struct rebuild *r) {
    calyx_key item;
    char *const bytes = RM_LoadStringBuffer(io, &item.size);
    if (!bytes) return false;
    const uint64_t count = RM_LoadUnsigned(io);
    item.data = bytes;
    const uint64_t size = item.size + REBUILD_ITEM_BYTES;
    const bool good =
        !RM_IsIOError(io) && count && count <= REBUILD_MOST_COPIES &&
        size <= r->terms.most - r->bytes && !count_in(r->recorded, &item);
    if (good) {
        set_count(r->recorded, &item, count);
        r->bytes += size;
    }
    RM_Free(bytes);
    return good;
}

bool rebuild_load(RedisModuleIO *io, struct filter *f) {
    const uint64_t open = RM_LoadUnsigned(io);
    if (RM_IsIOError(io) || open > 1) return false;
    if (!open) return true;
    struct rebuild_terms terms = {.token = RM_LoadUnsigned(io)};
    terms.until = RM_LoadUnsigned(io);
    terms.most = RM_LoadUnsigned(io);
    const uint64_t lost = RM_LoadUnsigned(io);
    uint64_t left = RM_LoadUnsigned(io);
    if (RM_IsIOError(io) || terms.token < 1 ||
        terms.token > REBUILD_MOST_TOKEN || terms.until > INT64_MAX ||
        terms.most < 1 || terms.most > REBUILD_MOST_BYTES ||
        lost >= REBUILD_LOST_WAYS || (lost && left))
        return false;
    terms.lost = (enum rebuild_lost)lost;
    rebuild_begin(f, &terms);
    while (left > 0 && load_item(io, rebuild_of(f))) left--;
    return left == 0;
}

void rebuild_rewrite(const struct rebuild *r, RedisModuleIO *io,
                     RedisModuleString *key) {
    size_t size;
    void *count;
    const char *item;
    RM_EmitAOF(io, "BF.REBUILD", "scllll", key, "OPEN",
               (long long)r->terms.token, (long long)r->terms.until,
               (long long)r->terms.most, (long long)r->terms.lost);
    RedisModuleDictIter *const all = first_of(r);
    while ((item = RM_DictNextC(all, &size, &count)))
        for (uint64_t i = 0; i < (uint64_t)(uintptr_t)count; i++)
            RM_EmitAOF(io, "BF.REBUILD", "scb", key, "RECORD", item, size);
    RM_DictIteratorStop(all);
}

void rebuild_digest(const struct rebuild *r, RedisModuleDigest *to) {
    size_t size;
    void *count;
    const char *item;
    RM_DigestAddLongLong(to, (long long)r->terms.token);
    RM_DigestAddLongLong(to, (long long)r->terms.lost);
    RedisModuleDictIter *const all = first_of(r);
    while ((item = RM_DictNextC(all, &size, &count))) {
        RM_DigestAddStringBuffer(to, item, size);
        RM_DigestAddLongLong(to, (long long)(uintptr_t)count);
    }
    RM_DictIteratorStop(all);
}
