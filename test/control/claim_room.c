/*
 * Threads cannot fill a part together beyond its capacity: room is claimed in
 * one atomic step. Between the load and the exchange of that step lie
 * nanoseconds, which two threads hardly ever hit. So chain_engine.c is compiled
 * here with a call in that place, and the call is what another thread might do:
 * it claims room itself.
 */
static void meanwhile(void);
#define CALYX_BEFORE_CLAIM() meanwhile()
/* In place of the library's. */
#include "../../src/engine/chain_engine.c"

#include <stdio.h>
#include <stdlib.h>

enum { CAPACITY = 1000 };

static calyx_filter *between; /* what the other thread adds to, once */
static uint64_t next = CAPACITY, refused, in_batch = 1;

static void meanwhile(void) {
    calyx_filter *const f = between;
    if (!f) return;
    between = NULL;
    for (uint64_t i = 0; i < in_batch; i++)
        if (calyx_add_u64(f, next++, NULL) == CALYX_FULL) refused++;
}

static void check(bool is_so, const char *what) {
    if (is_so) return;
    fprintf(stderr, "claim_room: %s\n", what);
    exit(1);
}

/* A filter with room for that number of keys more. */
static calyx_filter *make(calyx_options want, uint64_t room) {
    calyx_filter *f;
    want.capacity = CAPACITY;
    want.fpr = 1e-4; /* none of these keys seems to be there already */
    want.concurrent = true;
    want.seeded = true;
    check(calyx_new(&want, &f, NULL) == CALYX_OK, "no filter");
    for (uint64_t i = 0; i < CAPACITY - room; i++)
        check(calyx_add_u64(f, i, NULL) == CALYX_OK, "full too early");
    return f;
}

/* Two threads want the last place. */
static void the_last_place_is_taken_once(void) {
    calyx_filter *f = make((calyx_options){.strict = true}, 1);
    in_batch = 1, refused = 0, between = f;
    const calyx_status status = calyx_add_u64(f, CAPACITY - 1, NULL);
    check(!between && refused == 0, "the other thread was not let in");
    check(status == CALYX_FULL, "the last place was given to two keys");
    check(items_of(f->newest) == CAPACITY, "a key was not counted");
    calyx_free(f);
}

/* A batch claims 100 places of 100, and another thread takes half of them. */
static void a_batch_claims_what_is_left(void) {
    enum { ROOM = 100 };
    calyx_filter *f = make((calyx_options){.strict = true}, ROOM);
    uint64_t numbers[ROOM];
    size_t done;
    for (uint64_t i = 0; i < ROOM; i++) numbers[i] = CAPACITY - ROOM + i;
    in_batch = ROOM / 2, refused = 0, between = f;
    const calyx_status status =
        calyx_add_many_u64(f, numbers, ROOM, NULL, &done);
    check(!between && refused == 0, "the other thread was not let in");
    check(status == CALYX_FULL && done == ROOM / 2,
          "a batch took room that another thread had claimed");
    check(items_of(f->newest) == CAPACITY, "keys were not counted");
    calyx_free(f);
}

/* Where a filter may grow, the key goes to the next part. */
static void a_full_part_takes_no_more(void) {
    calyx_filter *f = make((calyx_options){.growth = 2}, 1);
    in_batch = 1, between = f;
    check(calyx_add_u64(f, CAPACITY - 1, NULL) == CALYX_OK, "it did not grow");
    check(f->newest->older && items_of(f->newest->older) == CAPACITY &&
              items_of(f->newest) == 1,
          "a part took more keys than it has room for");
    calyx_free(f);
}

int main(void) {
    the_last_place_is_taken_once();
    a_batch_claims_what_is_left();
    a_full_part_takes_no_more();
    return 0;
}
