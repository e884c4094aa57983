/* Keys of a call, and the window of them that is in work. */
#ifndef CALYX_KEY_LIST_H
#define CALYX_KEY_LIST_H

#include <calyx/calyx.h>

#include "kind/kernel.h"

/* Keys in one of three forms; the other two are NULL. */
struct key_list {
    const calyx_key *bytes;
    const uint64_t *numbers, *hashes;
    size_t n;
};

/* The hashes of a list that are in work: a batch, and after it the first ones
 * of the next, which the kernel prefetches. */
struct key_window {
    const struct key_list *keys;
    struct batch batch;
    size_t most;        /* hashes in a batch                                */
    size_t done;        /* keys that have left the window                   */
    bool kernel_hashes; /* the kernel hashes numbers as it prefetches lines */
    uint64_t *buffer;   /* room for the hashes of the window                */
};

/*
 * Room for hashes. A large frame costs 20 ns, which many keys share: calls with
 * few keys have a frame of their own. A list of hashes needs no room.
 */
enum { FEW_KEYS = 32, WINDOW_MOST = BATCH_MAX + PREFETCH_DISTANCE };

void open_window(const calyx_filter *f, const struct key_list *keys,
                 struct key_window *w, uint64_t *buffer, size_t most);
/* The first n hashes leave the window. */
void advance_window(const calyx_filter *f, struct key_window *w, size_t n);
/* A kernel has processed the first n hashes. */
void note_prefetched(struct batch *batch, size_t n);

/* The hashes of n keys from `from` on: in the buffer, or as given. */
const uint64_t *hash_keys(const calyx_filter *f, const struct key_list *keys,
                          size_t from, size_t n, uint64_t *buffer);

/* The bytes of key i; NULL if only its hash is known. The bytes of a number are
 * stored in `room`. */
calyx_key key_at(const struct key_list *keys, size_t i, uint8_t *room);

static inline size_t lesser_of(size_t n, size_t limit) {
    return n < limit ? n : limit;
}

#endif
