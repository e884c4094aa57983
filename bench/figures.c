/* What is made of times: medians, spreads and ratios. */
#include <math.h>
#include <stdlib.h>

#include "bench.h"

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figure figure_of(const struct series *given) {
    struct series s = *given;
    if (s.rounds == 0) return (struct figure){NAN, NAN};
    qsort(s.ns, (size_t)s.rounds, sizeof *s.ns, compare);
    const int last = s.rounds - 1;
    return (struct figure){(s.ns[last / 2] + s.ns[(last + 1) / 2]) / 2,
                           s.ns[last - last / 4] - s.ns[last / 4]};
}

/* Formed round by round. Where the rounds were not the same ones, as many as
 * both have. */
struct figure ratio_of(const struct series *a, const struct series *b) {
    struct series ratio = {.rounds =
                               a->rounds < b->rounds ? a->rounds : b->rounds};
    for (int i = 0; i < ratio.rounds; i++) ratio.ns[i] = a->ns[i] / b->ns[i];
    return figure_of(&ratio);
}

struct series sum_of(const struct series *a, const struct series *b) {
    struct series sum = *a;
    if (b->rounds < sum.rounds) sum.rounds = b->rounds;
    for (int i = 0; i < sum.rounds; i++) sum.ns[i] += b->ns[i];
    return sum;
}

bool is_clear(struct figure ratio) {
    return fabs(ratio.median - 1) > ratio.spread;
}
