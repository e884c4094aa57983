/*
 * A sliding window: a filter that forgets what was added long ago. It is a ring
 * of panes, each a native filter; items are added to the newest. When that is
 * old enough the window rotates: the oldest pane is emptied, and is the newest
 * then.
 *
 *     g = 3    | pane | pane | pane | newest |
 *               oldest: emptied next   ^ items go here, for WINDOW / g
 *
 * With g + 1 panes an item that comes at the end of a pane's time is known for
 * WINDOW, one at its start for WINDOW + WINDOW / g. Panes share a seed, so an
 * item is hashed once. They share the error rate: a lookup is positive if any
 * pane says yes.
 *
 * rotation.c knows which windows are due; command/bf_rotate.c rotates them.
 */
#ifndef CALYX_MODULE_WINDOW_H
#define CALYX_MODULE_WINDOW_H

#include "layout/layout.h"

enum { MOST_GENERATIONS = 64, USUAL_GENERATIONS = 4 };
#define MOST_WINDOW UINT64_C(315360000000) /* ten years, in milliseconds */

struct time_window {
    uint64_t milliseconds; /* WINDOW       */
    uint64_t began;        /* when the newest pane did, in Unix time       */
    uint32_t panes;        /* one more than GENERATIONS                    */
    uint32_t newest;       /* the others follow it, the oldest first       */
    struct filter *pane;   /* native; not known to the statistics          */
    char *name;            /* of its key when last seen                    */
    size_t name_size;
    uint64_t looked; /* rotations that were due when the timer last sought it */
    struct time_window *before, *after; /* in the list of rotation.c */
};

static inline bool is_window(const struct filter *f) {
    return f->layout == &window_layout;
}

/* How many milliseconds a pane is the newest. */
uint64_t span_of(uint64_t milliseconds, uint64_t generations);
uint64_t window_span(const struct time_window *w);

/* Empty the `rotations` oldest panes. The newest begins at `began`. */
void window_rotate(struct filter *f, uint64_t rotations, uint64_t began);

/* ---- rotation.c ---------------------------------------------------------- */

/* The list of windows. Another thread may free them. */
void rotation_add(struct time_window *w);
void rotation_remove(struct time_window *w);

/* It is under a key of this name now. */
void rotation_name(struct time_window *w, const char *name, size_t size);

/* How many rotations are due by this server's clock. None if another decides:
 * the primary, or the AOF that is being loaded. */
uint64_t rotation_due(const struct time_window *w);

/* The name of the next window that is due; NULL if none is among the next
 * `*steps`. */
RedisModuleString *rotation_next(RedisModuleCtx *ctx, size_t *steps);
void rotation_rewind(void); /* back to the first, if it was at the end */
bool rotation_has_windows(void);

#endif
