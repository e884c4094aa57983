#include "http/patience.h"

static const double SECONDS_PER_BYTE = 1e-3;

/* The caller looks once a second. If it comes later, because of a busy machine
 * or a signal to stop, the server is not to blame. */
static const double LONGEST_STEP = 2;

void patience_fill(struct patience *p, double now) {
    *p = (struct patience){
        .most = p->most, .left = p->most, .now = now, .since = now};
}

double patience_after(struct patience *p, double now, uint64_t bytes,
                      bool is_answer) {
    if (is_answer) {
        patience_fill(p, now);
        return p->left;
    }
    const double step = now - p->now;
    p->left -= step < LONGEST_STEP ? step : LONGEST_STEP;
    p->left += SECONDS_PER_BYTE * (double)bytes;
    if (p->left > p->most) p->left = p->most;
    if (p->left < 0) p->left = 0;
    p->now = now;
    p->bytes += bytes;
    return p->left;
}
