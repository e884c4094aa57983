/* --dry-run: what the exact engine would do. */
#include <stdio.h>

#include "exact/engine_internal.h"

/* How many lines pass a prefilter is known once it is made. Before that, only
 * how many may pass without spilling. */
static void print_spills(const struct rule *rule, const struct engine_plan *p,
                         uint64_t memory) {
    char text[TEXT_SIZE];
    const uint64_t stored =
        set_bytes(rule, p->prefilter ? &p->prefiltered : &p->sum);
    const uint64_t room = memory_of_keys(rule, budget_without(p->prefilter)) *
                          (p->more_passes ? MOST_PASSES : 1);
    if (stored <= room) {
        printf("spills         none\n");
        return;
    }
    printf("spills         ");
    if (p->prefilter)
        printf("none if at most %.0f %% of these %s, else ",
               100 * (double)room / (double)stored, p->what_remains);
    printf("up to %u in %s\n", spills_for(rule, memory, p->sum.bytes),
           spill_folder());
    /* spilled records are written once, and printed lines once more */
    const uint64_t most = p->more_passes ? p->sum.bytes : 2 * p->sum.bytes;
    printf("temporary      up to %s%s\n", size_text(most, text),
           p->prefilter ? ", if all do" : "");
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
    if (p->prefilter)
        printf("filter         of about %s lines, first, in %s\n",
               count_text(p->prefiltered.lines, text),
               size_text(p->prefilter, more));
    print_spills(rule, p, memory);
    /* a line costs about 100 ns in addition to reading it */
    printf("expected time  about %.1f s\n",
           p->sum.seconds * p->passes + 1e-7 * (double)p->sum.lines);
}
