/*
 * A filter that is replaced while it is asked.
 *
 * The current filter stands in one of 256 places. One word says which, and
 * counts how often it was taken:
 *
 *     now  [ taken: 56 bits | place: 8 bits ]
 *
 * A reader adds 1 to the count and in the same step learns the place, so it
 * never holds a place that it is not counted for. Giving back counts in the
 * place itself, downward from 0. A swap puts a new place with a count of 0 into
 * the word; how often the old one was taken, which is final now, it adds to the
 * old place's own count. Whoever brings that to 0, the swap or the last reader,
 * frees the filter. No one waits for anyone.
 */
#include "filter/live.h"

#include "base/error.h"
#include "base/memory.h"

enum { PLACES = 256 };

struct place {
    calyx_filter *filter; /* NULL if the place is free                  */
    int64_t held;         /* less than 0 while current; then what is out */
};

struct calyx_live {
    uint64_t now;
    struct place place[PLACES];
    struct follower follower;
    calyx_memory memory;
};

struct follower *live_follower(calyx_live *live) {
    return &live->follower;
}

calyx_status calyx_live_new(calyx_filter *first, calyx_live **out,
                            calyx_error *why) {
    const calyx_memory memory = first->memory;
    calyx_live *live = memory.allocate(memory.context, sizeof *live, ALIGNMENT);
    if (!live) return fail(why, CALYX_NO_MEMORY, "no memory for a live filter");
    live->memory = memory;
    live->place[0].filter = first;
    first->place = 0;
    *out = live;
    return CALYX_OK;
}

const calyx_filter *calyx_live_acquire(calyx_live *live) {
    const uint64_t now =
        __atomic_fetch_add(&live->now, PLACES, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&live->place[now % PLACES].filter, __ATOMIC_RELAXED);
}

static void settle(struct place *place, int64_t change) {
    if (__atomic_add_fetch(&place->held, change, __ATOMIC_ACQ_REL) != 0) return;
    calyx_free(__atomic_load_n(&place->filter, __ATOMIC_RELAXED));
    __atomic_store_n(&place->filter, NULL, __ATOMIC_RELEASE);
}

void calyx_live_release(calyx_live *live, const calyx_filter *f) {
    settle(&live->place[f->place], -1);
}

static bool claim(struct place *place, calyx_filter *next) {
    calyx_filter *nobody = NULL;
    return __atomic_compare_exchange_n(&place->filter, &nobody, next, false,
                                       __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
}

calyx_status calyx_live_swap(calyx_live *live, calyx_filter *next,
                             calyx_error *why) {
    unsigned i = 0;
    for (; i < PLACES; i++) {
        next->place = (uint8_t)i;
        if (claim(&live->place[i], next)) break;
    }
    if (i == PLACES)
        return fail(why, CALYX_FULL,
                    "%d old filters still have readers; give them back",
                    PLACES - 1);
    const uint64_t old = __atomic_exchange_n(&live->now, i, __ATOMIC_ACQ_REL);
    const int64_t taken = (int64_t)(old / PLACES);
    settle(&live->place[old % PLACES], taken);
    return CALYX_OK;
}

void calyx_live_free(calyx_live *live) {
    if (!live) return;
    for (int i = 0; i < PLACES; i++) calyx_free(live->place[i].filter);
    if (live->follower.drop) live->follower.drop(live->follower.data);
    const calyx_memory memory = live->memory;
    memory.release(memory.context, live, sizeof *live);
}
