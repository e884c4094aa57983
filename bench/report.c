/* Tables for people, JSON for bench/charts. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

/* The share of a set that lies on huge pages. What was rounded up to whole ones
 * counts no more than once. */
static double huge_share(const struct contestant *c) {
    if (c->bytes == 0) return 0;
    const double share = (double)c->huge_bytes / (double)c->bytes;
    return share < 1 ? share : 1;
}

/* ---- JSON ---------------------------------------------------------------- */

void open_report(struct report *r, const char *path) {
    *r = (struct report){.json = path ? fopen(path, "w") : NULL};
    if (path && !r->json) {
        fprintf(stderr, "calyx-bench: %s: %s\n", path, strerror(errno));
        exit(2);
    }
    if (!r->json) return;
    fputs("{\"machine\": ", r->json);
    print_machine(r->json, true);
    fputs(",\n\"figures\": [", r->json);
}

/* A comma between records, and each on a line of its own. */
static void next_record(struct report *r) {
    fputs(r->records++ ? ",\n" : "\n", r->json);
}

void close_report(struct report *r) {
    if (!r->json) return;
    fputs("\n]}\n", r->json);
    if (fclose(r->json) == 0) return;
    fprintf(stderr, "calyx-bench: the JSON file: %s\n", strerror(errno));
    exit(2);
}

static void print_json(struct report *r, const char *part,
                       const struct contestant *c, double fpr,
                       const struct task *task, const struct series *own,
                       const struct series *floor) {
    const struct figure f = figure_of(own), ratio = ratio_of(own, floor);
    static const char *const verbs[] = {"build", "add", "add fresh", "has",
                                        "remove"};
    static const char *const forms[] = {"hashes", "numbers", "urls", "ids"};
    if (!r->json) return;
    next_record(r);
    fprintf(
        r->json,
        "{\"part\": \"%s\", \"keys\": %llu, \"fpr\": %g, "
        "\"task\": \"%s\", \"verb\": \"%s\", \"form\": \"%s\", "
        "\"single\": %s, \"batch\": %d, \"present\": %d, \"threads\": %d, "
        "\"contestant\": \"%s\", \"exact\": %s, \"ns\": %.3f, "
        "\"spread\": %.3f, \"bits_per_key\": %.2f, \"huge\": %.3f, \"rate\": ",
        part, (unsigned long long)c->n, fpr, task->name, verbs[task->verb],
        forms[task->form], task->single ? "true" : "false", task->batch,
        task->present, task->threads, c->name, c->exact ? "true" : "false",
        f.median, f.spread, 8 * (double)c->bytes / (double)c->n, huge_share(c));
    if (c->answers)
        fprintf(r->json, "%.6f", c->rate);
    else
        fputs("null", r->json);
    if (floor->rounds > 0 && own != floor && is_clear(ratio))
        fprintf(r->json, ", \"over_floor\": %.3f}", ratio.median);
    else
        fputs(", \"over_floor\": null}", r->json);
}

/* ---- Tables -------------------------------------------------------------- */

static void print_ratio(const struct series *a, const struct series *b) {
    if (!b->rounds || a == b) {
        printf("\n");
        return;
    }
    const struct figure ratio = ratio_of(a, b);
    if (is_clear(ratio))
        printf("  %6.2f\n", ratio.median);
    else
        printf("    same\n"); /* as far as can be measured */
}

/* The floor comes first in every list. */
void report_task(struct report *r, const char *part,
                 const struct contestant *who, int count, double fpr,
                 const struct task *task, const struct series *all) {
    printf("\n%s, %d thread%s%*s bits/key  rate %%    ns/key   +-     over "
           "floor\n",
           task->name, task->threads, task->threads > 1 ? "s" : "",
           (int)(28 - strlen(task->name) - (task->threads > 1)), "");
    for (int i = 0; i < count; i++) {
        if (!all[i].rounds) continue;
        const struct figure f = figure_of(&all[i]);
        printf("  %-36s", who[i].name);
        if (who[i].bytes > 0)
            printf(" %8.2f", 8 * (double)who[i].bytes / (double)who[i].n);
        else
            printf(" %8s", "");
        if (who[i].answers)
            printf(" %7.3f", 100 * who[i].rate);
        else
            printf(" %7s", "");
        printf(" %9.2f %5.2f", f.median, f.spread);
        print_ratio(&all[i], &all[0]);
        print_json(r, part, &who[i], fpr, task, &all[i], &all[0]);
    }
    fflush(stdout);
}

void report_pages(const struct contestant *who, int count) {
    printf("\non huge pages, per cent:");
    for (int i = 0; i < count; i++)
        if (who[i].bytes > 0)
            printf("%s %s %.0f", i ? "," : "", who[i].name,
                   100 * huge_share(&who[i]));
    printf("\n");
}

/* ---- Growth -------------------------------------------------------------- */

enum { MOST_SIZES = 16 };

struct size {
    uint64_t keys;
    struct figure floor[2], ours[2], ratio[2]; /* of has, and of add */
};

static struct size sizes[MOST_SIZES];
static int noted;

void note_growth(const struct contestant *who, int count, const char *name,
                 const struct task *tasks, int n,
                 const struct results *results) {
    if (noted == MOST_SIZES) return;
    struct size *const size = &sizes[noted++];
    size->keys = who[0].n;
    for (int t = 0; t < n; t++) {
        if (tasks[t].form != HASHES || tasks[t].single) continue;
        const int which = tasks[t].verb == ADD;
        const struct series *const floor = &results[t].of[0];
        for (int i = 1; i < count; i++) {
            if (strcmp(who[i].name, name) != 0) continue;
            const struct series *const ours = &results[t].of[i];
            size->floor[which] = figure_of(floor);
            size->ours[which] = figure_of(ours);
            size->ratio[which] = ratio_of(ours, floor);
        }
    }
}

void report_growth(void) {
    if (noted == 0) return;
    printf("\n==== ns a key as the number of keys grows, batched, hashes given "
           "====\n"
           "      keys     floor   has  ratio   +-      floor   add  ratio   "
           "+-\n");
    for (int i = 0; i < noted; i++) {
        printf("%10llu", (unsigned long long)sizes[i].keys);
        for (int which = 0; which < 2; which++)
            printf("   %7.2f %5.2f %6.2f %5.2f", sizes[i].floor[which].median,
                   sizes[i].ours[which].median, sizes[i].ratio[which].median,
                   sizes[i].ratio[which].spread);
        printf("\n");
    }
}
