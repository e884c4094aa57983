/* A lock for work of microseconds. A thread that finds it taken spins for a
 * moment, and then lets others run: the holder may have lost its processor. */
#ifndef CALYX_SPIN_LOCK_H
#define CALYX_SPIN_LOCK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/parallel.h"

/* Looks before it writes, which would take the cache line from the holder. */
static inline bool try_lock(uint32_t *lock) {
    return !__atomic_load_n(lock, __ATOMIC_RELAXED) &&
           !__atomic_exchange_n(lock, 1, __ATOMIC_ACQUIRE);
}

static inline void spin_lock(uint32_t *lock) {
    enum { SPINS = 100 };
    for (int i = 0; !try_lock(lock); i++)
        if (i >= SPINS) yield_to_others();
}

static inline void spin_unlock(uint32_t *lock) {
    __atomic_store_n(lock, 0, __ATOMIC_RELEASE);
}

#endif
