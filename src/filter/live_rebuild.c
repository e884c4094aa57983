/*
 * Adding to a live filter, and rebuilding it without losing a key.
 *
 * A new filter is made from a list. Keys that are added while the list is read
 * may be missing in it. So from calyx_live_begin on, every added key is also
 * recorded, and calyx_live_finish adds the recorded keys to the new filter
 * before it swaps it in.
 *
 * Writers take turns at a monitor. The swap holds the monitor, so no key is
 * added to the old filter after it. Before the swap, finishing replays the
 * recorded keys without the monitor, since blocks only grow: little is left to
 * do while writers wait.
 */
#include <inttypes.h>
#include <string.h>

#include "base/bits.h"
#include "base/error.h"
#include "base/memory.h"
#include "filter/live.h"

enum {
    BLOCK_BYTES = 64 << 10,
    MOST_BYTES = 64 << 20, /* unless the caller says another number */
    MOST_HELD = 16 << 10,  /* bytes of keys that writers wait for   */
    ROUNDS = 8,            /* without the monitor                   */
    SIZE_BYTES = sizeof(uint64_t)
};

/* ---- Recording ----------------------------------------------------------- */

void live_forget(calyx_live *live) {
    struct live_writers *const w = live_writers(live);
    const calyx_memory *const memory = live_memory(live);
    while (w->first) {
        struct recorded_block *const block = w->first;
        w->first = block->next;
        memory->release(memory->context, block, sizeof *block + block->room);
    }
    w->last = NULL;
    w->token = w->bytes = 0;
    w->lost = CALYX_OK;
}

static struct recorded_block *add_block(calyx_live *live, size_t least) {
    struct live_writers *const w = live_writers(live);
    const calyx_memory *const memory = live_memory(live);
    const size_t room = least > BLOCK_BYTES ? least : BLOCK_BYTES;
    struct recorded_block *const block =
        memory->allocate(memory->context, sizeof *block + room, ALIGNMENT);
    if (!block) return NULL;
    *block = (struct recorded_block){.room = room};
    if (w->last)
        w->last->next = block;
    else
        w->first = block;
    w->last = block;
    return block;
}

/* A key that cannot be recorded is in the filter nevertheless: finishing says
 * so. */
static void record(calyx_live *live, const void *key, size_t size) {
    struct live_writers *const w = live_writers(live);
    struct recorded_block *block = w->last;
    if (!w->token || w->lost) return;
    if (size > w->most - w->bytes || SIZE_BYTES > w->most - w->bytes - size) {
        w->lost = CALYX_FULL;
        return;
    }
    const size_t need = SIZE_BYTES + size;
    if (!block || need > block->room - block->used)
        block = add_block(live, need);
    if (!block) {
        w->lost = CALYX_NO_MEMORY;
        return;
    }
    store64(block->bytes + block->used, size);
    if (size) memcpy(block->bytes + block->used + SIZE_BYTES, key, size);
    block->used += need;
    w->bytes += need;
}

calyx_status calyx_live_add(calyx_live *live, const void *key, size_t size,
                            bool *fresh, calyx_error *why) {
    struct live_writers *const w = live_writers(live);
    monitor_enter(&w->monitor);
    const calyx_filter *const now = calyx_live_acquire(live);
    /* Nobody else writes: the monitor is ours. */
    calyx_filter *const f = (calyx_filter *)(uintptr_t)now;
    calyx_status status =
        f->concurrent ? calyx_add(f, key, size, fresh) : CALYX_CANNOT;
    if (status == CALYX_CANNOT && !f->concurrent)
        fail(why, status,
             "the filter is not concurrent: it cannot be added to beside "
             "readers");
    else if (status != CALYX_OK)
        fail(why, status, "%s", calyx_status_text(status));
    else
        record(live, key, size);
    calyx_live_release(live, now);
    monitor_leave(&w->monitor);
    return status;
}

/* ---- Rebuilding ---------------------------------------------------------- */

static calyx_status fail_busy(calyx_error *why) {
    return fail(why, CALYX_CANNOT, "another thread is finishing a rebuild");
}

calyx_status calyx_live_begin(calyx_live *live, uint64_t most_bytes,
                              uint64_t *token, calyx_error *why) {
    struct live_writers *const w = live_writers(live);
    monitor_enter(&w->monitor);
    const bool busy = w->finishing;
    if (!busy) {
        live_forget(live);
        w->most = most_bytes ? most_bytes : MOST_BYTES;
        *token = w->token = ++w->tokens;
    }
    monitor_leave(&w->monitor);
    return busy ? fail_busy(why) : CALYX_OK;
}

/* How far the recorded keys are in the new filter. */
struct replay {
    const struct recorded_block *block; /* NULL: before the first */
    size_t at;
    uint64_t bytes; /* all that are */
};

/* Are there keys left to replay? Goes to the next block once this one is read;
 * `last` has bytes up to `used`. */
static bool has_more(const struct recorded_block *last, size_t used,
                     struct replay *r, const struct recorded_block *first) {
    if (!r->block) r->block = first;
    while (r->block && r->block != last && r->at == r->block->used) {
        r->block = r->block->next;
        r->at = 0;
    }
    return r->block && (r->block != last || r->at < used);
}

/* Replay up to `used` bytes of `last`; blocks before it do not change any
 * more. */
static calyx_status replay_to(const struct recorded_block *first,
                              const struct recorded_block *last, size_t used,
                              struct replay *r, calyx_filter *next) {
    calyx_status status = CALYX_OK;
    while (status == CALYX_OK && has_more(last, used, r, first)) {
        const uint8_t *const at = r->block->bytes + r->at;
        const size_t size = (size_t)load64(at);
        status = calyx_add(next, at + SIZE_BYTES, size, NULL);
        r->at += SIZE_BYTES + size;
        r->bytes += SIZE_BYTES + size;
    }
    return status;
}

/* With the monitor: may this rebuild be finished? */
static calyx_status check_open(const struct live_writers *w, uint64_t token,
                               calyx_error *why) {
    if (w->finishing) return fail_busy(why);
    if (!token || w->token != token)
        return fail(why, CALYX_MISMATCH,
                    "rebuild %" PRIu64
                    " is not open: it was finished, or another began",
                    token);
    if (w->lost == CALYX_FULL)
        return fail(why, CALYX_FULL,
                    "keys of more than %" PRIu64
                    " bytes were added since the rebuild began",
                    w->most);
    if (w->lost)
        return fail(why, w->lost,
                    "no memory to record a key that was added since the "
                    "rebuild began");
    return CALYX_OK;
}

/* With the monitor, which it leaves for some rounds. If writers add as fast as
 * a round replays, they wait for the rest. */
static calyx_status replay_all(struct live_writers *w, calyx_filter *next) {
    struct replay r = {0};
    calyx_status status = CALYX_OK;
    for (int round = 0;
         round < ROUNDS && status == CALYX_OK && w->bytes - r.bytes > MOST_HELD;
         round++) {
        const struct recorded_block *const first = w->first, *last = w->last;
        const size_t used = last->used;
        monitor_leave(&w->monitor);
        status = replay_to(first, last, used, &r, next);
        monitor_enter(&w->monitor);
    }
    if (status != CALYX_OK || !w->last) return status;
    return replay_to(w->first, w->last, w->last->used, &r, next);
}

static calyx_status finish(calyx_live *live, uint64_t token, calyx_filter *next,
                           calyx_error *why) {
    struct live_writers *const w = live_writers(live);
    calyx_status status = check_open(w, token, why);
    if (status != CALYX_OK) return status;
    w->finishing = true;
    status = replay_all(w, next);
    w->finishing = false;
    if (status != CALYX_OK)
        return fail(why, status,
                    "the new filter does not take the keys that were added "
                    "since the rebuild began: %s",
                    calyx_status_text(status));
    status = check_open(w, token, why); /* there may be too many by now */
    if (status == CALYX_OK) status = calyx_live_swap(live, next, why);
    if (status == CALYX_OK) live_forget(live);
    return status;
}

calyx_status calyx_live_finish(calyx_live *live, uint64_t token,
                               calyx_filter *next, calyx_error *why) {
    struct live_writers *const w = live_writers(live);
    monitor_enter(&w->monitor);
    const calyx_status status = finish(live, token, next, why);
    monitor_leave(&w->monitor);
    return status;
}
