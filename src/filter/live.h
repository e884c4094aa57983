/* What live.c, live_rebuild.c and a live filter that follows a file share. */
#ifndef CALYX_LIVE_H
#define CALYX_LIVE_H

#include "base/parallel.h"
#include "filter/filter.h"

/* Whoever follows something keeps it here, and has it freed with the rest. */
struct follower {
    void *data;
    void (*drop)(void *data);
};

/* Keys that were added since a rebuild began: blocks of
 *
 *     u64 size, bytes, u64 size, bytes ...
 */
struct recorded_block {
    struct recorded_block *next;
    size_t used, room;
    uint8_t bytes[];
};

/* `monitor` guards all else, and every addition. */
struct live_writers {
    struct monitor monitor;
    uint64_t tokens; /* of rebuilds that began               */
    uint64_t token;  /* of the one that is open; 0: none     */
    uint64_t most, bytes;
    calyx_status lost; /* why keys could not be recorded       */
    bool finishing;    /* a thread reads blocks without the monitor */
    struct recorded_block *first, *last;
};

struct follower *live_follower(calyx_live *live);
struct live_writers *live_writers(calyx_live *live);
const calyx_memory *live_memory(const calyx_live *live);

/* Free what is recorded; no rebuild is open then. */
void live_forget(calyx_live *live);

#endif
