/*
 * A filter that is replaced while it is queried: split reference counting.
 *
 * The current filter is in one of 256 slots. One word has the slot and the
 * number of times that it was acquired:
 *
 *     now  [ acquired: 56 bits | slot: 8 bits ]
 *
 * A reader adds 1 to the count and reads the slot in one atomic step, so it
 * never holds a slot without being counted. A release subtracts 1 from a second
 * count in the slot itself. A swap puts a new slot with a count of 0 into the
 * word, and adds the old count, which is final now, to the count of the old
 * slot. The thread that brings this to 0, the swap or the last reader, frees
 * the filter. Nobody waits.
 */
#include "filter/live.h"

#include "base/error.h"
#include "base/memory.h"

enum { SLOTS = 256 };

struct live_slot {
    calyx_filter *filter; /* NULL if the slot is free                   */
    int64_t held;         /* 0 or less while current; then its readers  */
};

struct calyx_live {
    uint64_t now;
    struct live_slot slots[SLOTS];
    struct follower follower;
    struct live_writers writers;
    calyx_memory memory;
};

struct follower *live_follower(calyx_live *live) {
    return &live->follower;
}

struct live_writers *live_writers(calyx_live *live) {
    return &live->writers;
}

const calyx_memory *live_memory(const calyx_live *live) {
    return &live->memory;
}

calyx_status calyx_live_new(calyx_filter *first, calyx_live **out,
                            calyx_error *why) {
    const calyx_memory memory = first->memory;
    calyx_live *live = memory.allocate(memory.context, sizeof *live, ALIGNMENT);
    if (live && !monitor_init(&live->writers.monitor)) {
        memory.release(memory.context, live, sizeof *live);
        live = NULL;
    }
    if (!live) return fail(why, CALYX_NO_MEMORY, "no memory for a live filter");
    live->memory = memory;
    live->slots[0].filter = first;
    first->live_slot = 0;
    *out = live;
    return CALYX_OK;
}

const calyx_filter *calyx_live_acquire(calyx_live *live) {
    const uint64_t now =
        __atomic_fetch_add(&live->now, SLOTS, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&live->slots[now % SLOTS].filter, __ATOMIC_RELAXED);
}

static void add_readers(struct live_slot *slot, int64_t change) {
    if (__atomic_add_fetch(&slot->held, change, __ATOMIC_ACQ_REL) != 0) return;
    calyx_free(__atomic_load_n(&slot->filter, __ATOMIC_RELAXED));
    __atomic_store_n(&slot->filter, NULL, __ATOMIC_RELEASE);
}

void calyx_live_release(calyx_live *live, const calyx_filter *f) {
    add_readers(&live->slots[f->live_slot], -1);
}

static bool claim(struct live_slot *slot, calyx_filter *next) {
    calyx_filter *nobody = NULL;
    return __atomic_compare_exchange_n(&slot->filter, &nobody, next, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

calyx_status calyx_live_swap(calyx_live *live, calyx_filter *next,
                             calyx_error *why) {
    unsigned i = 0;
    for (; i < SLOTS; i++) {
        next->live_slot = (uint8_t)i;
        if (claim(&live->slots[i], next)) break;
    }
    if (i == SLOTS)
        return fail(why, CALYX_FULL,
                    "%d old filters still have readers; release them",
                    SLOTS - 1);
    const uint64_t old = __atomic_exchange_n(&live->now, i, __ATOMIC_ACQ_REL);
    const int64_t acquired = (int64_t)(old / SLOTS);
    add_readers(&live->slots[old % SLOTS], acquired);
    return CALYX_OK;
}

void calyx_live_free(calyx_live *live) {
    if (!live) return;
    for (int i = 0; i < SLOTS; i++) calyx_free(live->slots[i].filter);
    if (live->follower.drop) live->follower.drop(live->follower.data);
    live_forget(live);
    monitor_end(&live->writers.monitor);
    const calyx_memory memory = live->memory;
    memory.release(memory.context, live, sizeof *live);
}
