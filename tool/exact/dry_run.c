/* --dry-run: what the exact engine would do. */
#include <stdio.h>

#include "exact/engine_internal.h"

static void print_spills(const struct rule *rule, const struct engine_plan *p,
                         uint64_t memory) {
    char text[TEXT_SIZE];
    const uint64_t stored = set_bytes(rule, &p->sum);
    const uint64_t room =
        memory_of_keys(rule, memory) * (p->more_passes ? MOST_PASSES : 1);
    if (stored <= room) {
        printf("spills         none\n");
        return;
    }
    printf("spills         up to %u in %s\n",
           spills_for(rule, memory, p->sum.bytes), spill_folder());
    /* spilled records are written once, and printed lines once more */
    const uint64_t most = p->more_passes ? p->sum.bytes : 2 * p->sum.bytes;
    printf("temporary      up to %s\n", size_text(most, text));
}

void print_plan(const struct rule *rule, const struct engine_plan *p) {
    char text[TEXT_SIZE], more[TEXT_SIZE];
    const uint64_t memory = budget();
    printf("memory         %s\n", size_text(memory, text));
    if (!p->known) {
        printf("input          a pipe, of unknown size\n"
               "passes         1\n"
               "spills         none if the keys fit, else %u in %s\n",
               spills_for(rule, memory, 0), spill_folder());
        return;
    }
    printf("input          about %s lines, %s\n",
           count_text(p->sum.lines, text), size_text(p->sum.bytes, more));
    printf("passes         %d", p->passes);
    if (p->more_passes) printf(" to %d", p->passes + MOST_PASSES - 1);
    printf("\n");
    print_spills(rule, p, memory);
    /* a line costs about 100 ns in addition to reading it */
    printf("expected time  about %.1f s\n",
           p->sum.seconds * p->passes + 1e-7 * (double)p->sum.lines);
}
