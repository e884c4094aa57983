/*
 * Goals, as ratios of times within one run, and what was reached.
 *
 * A ratio of lookups is taken with 0, 50 and 100 % of the keys present, and
 * the least favourable to us of the three counts. A ratio is formed of the
 * figures of two sides; the floor of URLs is a sum, so there may be a third.
 *
 *   floor_ratio       calyx_has_hashes of line over the floor on the same given
 *   floor_ratio_avx2  hashes: neither side hashes. This is the strictest way:
 *                     hashing on both sides brings the ratio nearer to 1.
 *                     (The ratios with hashing are rows of their own.)
 *   add_ratio         calyx_add_hashes over the floor that writes, on the same
 *                     given hashes, while a filter goes from half full to full
 *   libbloom_batch    libbloom's time over calyx_has_many_u64's: both hash
 *   libbloom_single   libbloom's time over the time of calyx_inline_has_u64,
 *                     the single lookup of <calyx/inline.h>: both hash.
 *                     (The ratio of calyx_has_u64 is a row of its own.)
 */
#include <math.h>
#include <string.h>

#include "bench.h"

/* One side of a ratio. "best" in a name stands for the best level. */
struct side {
    const char *who;
    enum verb verb;
    enum form form;
    bool single;
    int threads; /* 0: more than one */
    int batch;
};

struct target {
    const char *what;
    const char *brief;  /* in the last line of --quick */
    double limit;       /* 0: only to be printed                       */
    double large_limit; /* from 50 million keys on, where it differs   */
    bool at_least;      /* otherwise at most                           */
    struct side over, under, plus; /* over / (under + plus); without under, the
                                      ns of over */
    double rare_limit; /* at rates below 1 %; 0: only to be printed     */
    bool size;         /* not of times but of bits a key, each over those that
                          its rate needs at least; without under, its own */
};

#define LINE  "line/best"
#define QUICK "line/best quick"
#define HAND  "line/best by hand"
#define BOOST "Boost.Bloom"
#define GIVEN HAS, HASHES, false, 1
#define MANY  HAS, NUMBERS, false, 1
#define ONE   HAS, NUMBERS, true, 1
#define TEXT  HAS, URLS, false, 1
#define PLAIN ADD, NUMBERS, false, 1
#define MAKE  BUILD, NUMBERS, false, 1

/* Hashes, that many in a call. */
#define BATCH(verb, keys) verb, HASHES, false, 1, keys

#define RIBBON "ribbon/best"

#define OVER(...)   .over = {__VA_ARGS__}
#define UNDER(...)  .under = {__VA_ARGS__}
#define PLUS(...)   .plus = {__VA_ARGS__}
#define AT_MOST(x)  .limit = (x)
#define AT_LEAST(x) .limit = (x), .at_least = true

static const struct target targets[] = {
    {"line has / floor", OVER(LINE, GIVEN), UNDER("floor", GIVEN),
     AT_MOST(1.15), .brief = "floor_ratio"},
    {"line has at AVX2 / floor", OVER("line/avx2", GIVEN),
     UNDER("floor", GIVEN), AT_MOST(1.4), .brief = "floor_ratio_avx2"},
    {"line has / floor, both hashing numbers", OVER(LINE, MANY),
     UNDER("floor", MANY)},
    {"line add / floor that writes", OVER(LINE, ADD, HASHES, false, 1),
     UNDER("floor", ADD, HASHES, false, 1), AT_MOST(1.3), .brief = "add_ratio"},
    {"line add / floor that writes, both hashing numbers", OVER(LINE, PLAIN),
     UNDER("floor", PLAIN)},
    {"line has of URLs / (hash alone + floor)", OVER(LINE, TEXT),
     UNDER("hash alone", TEXT), PLUS("floor", GIVEN), AT_MOST(1.15)},
    {"single has by inline.h / by hand", OVER(QUICK, HAS, HASHES, true, 1),
     UNDER(HAND, HAS, HASHES, true, 1), AT_MOST(1.25)},
    {"single has by a call / by hand", OVER(LINE, HAS, HASHES, true, 1),
     UNDER(HAND, HAS, HASHES, true, 1), AT_MOST(2)},
    {"single add by inline.h / by hand", OVER(QUICK, ADD, HASHES, true, 1),
     UNDER(HAND, ADD, HASHES, true, 1), AT_MOST(1.5)},
    {"single add by a call / by hand", OVER(LINE, ADD, HASHES, true, 1),
     UNDER(HAND, ADD, HASHES, true, 1), AT_MOST(2.5)},
    {"batches of 1 has / single has by a call", OVER(LINE, BATCH(HAS, 1)),
     UNDER(LINE, HAS, HASHES, true, 1), AT_MOST(1)},
    {"batches of 8 has / single has by a call", OVER(LINE, BATCH(HAS, 8)),
     UNDER(LINE, HAS, HASHES, true, 1), AT_MOST(1)},
    {"batches of 8 add / single add by a call", OVER(LINE, BATCH(ADD, 8)),
     UNDER(LINE, ADD, HASHES, true, 1), AT_MOST(1)},
    {"Boost.Bloom has / line has, batched", OVER(BOOST, GIVEN),
     UNDER(LINE, GIVEN), AT_LEAST(1)},
    {"Boost.Bloom has / line has, batches of 32", OVER(BOOST, BATCH(HAS, 32)),
     UNDER(LINE, BATCH(HAS, 32)), AT_LEAST(1)},
    {"Boost.Bloom has / line has, batches of 8", OVER(BOOST, BATCH(HAS, 8)),
     UNDER(LINE, BATCH(HAS, 8)), AT_LEAST(0.67)},
    {"Boost.Bloom has / line has, inline.h", OVER(BOOST, HAS, HASHES, true, 1),
     UNDER(QUICK, HAS, HASHES, true, 1), AT_LEAST(1)},
    {"Boost.Bloom add / line add, batched", OVER(BOOST, ADD, HASHES, false, 1),
     UNDER(LINE, ADD, HASHES, false, 1), AT_LEAST(1)},
    {"Boost.Bloom add / line add, inline.h", OVER(BOOST, ADD, HASHES, true, 1),
     UNDER(QUICK, ADD, HASHES, true, 1), AT_LEAST(0.9)},
    {"Boost.Bloom has / line has, ids batched", OVER(BOOST, HAS, IDS, false, 1),
     UNDER(LINE, HAS, IDS, false, 1), AT_LEAST(0.82)},
    {"Boost.Bloom has / line has, ids single", OVER(BOOST, HAS, IDS, true, 1),
     UNDER(LINE, HAS, IDS, true, 1), AT_LEAST(0.76)},
    {"cuckoo 12 has / bucket has, single",
     OVER("cuckoo 12", HAS, HASHES, true, 1),
     UNDER("bucket/best", HAS, HASHES, true, 1), .at_least = true},
    {"cuckoo 12 add / bucket add, single",
     OVER("cuckoo 12", ADD, HASHES, true, 1),
     UNDER("bucket/best", ADD, HASHES, true, 1), .at_least = true},
    {"cuckoo 12 remove / bucket remove, single",
     OVER("cuckoo 12", REMOVE, NUMBERS, true, 1),
     UNDER("bucket/best", REMOVE, NUMBERS, true, 1), .at_least = true},
    {"libbloom has / line has, batched", OVER("libbloom", MANY),
     UNDER(LINE, MANY), AT_LEAST(12), .large_limit = 20,
     .brief = "libbloom_batch"},
    {"libbloom has / line has, by inline.h", OVER("libbloom", ONE),
     UNDER(QUICK, ONE), AT_LEAST(4), .large_limit = 5,
     .brief = "libbloom_single"},
    {"libbloom has / line has, single", OVER("libbloom", ONE), UNDER(LINE, ONE),
     .at_least = true},
    {"add with fresh answers / plain add",
     OVER(LINE, ADD_FRESH, NUMBERS, false, 1), UNDER(LINE, PLAIN),
     AT_MOST(1.3)},
    {"concurrent add / plain add, batched", OVER("line/best shared", PLAIN),
     UNDER(LINE, PLAIN), AT_MOST(1.3)},
    {"concurrent add / plain add, single",
     OVER("line/best shared", ADD, NUMBERS, true, 1),
     UNDER(LINE, ADD, NUMBERS, true, 1), AT_MOST(1.3)},
    {"plain add, one thread / concurrent add, two", OVER(LINE, PLAIN),
     UNDER("line/best shared", ADD, NUMBERS, false, 0), AT_LEAST(1.6)},
    {"concurrent has, one thread / more threads",
     OVER("line/best shared", MANY),
     UNDER("line/best shared", HAS, NUMBERS, false, 0), .at_least = true},
    {"counting has / line has", OVER("counting/best", GIVEN),
     UNDER(LINE, GIVEN), AT_MOST(1.05)},
    {"counting add / line add, batched", OVER("counting/best", PLAIN),
     UNDER(LINE, PLAIN), AT_MOST(2.5)},
    {"counting add / line add, single",
     OVER("counting/best", ADD, NUMBERS, true, 1),
     UNDER(LINE, ADD, NUMBERS, true, 1), AT_MOST(2.5)},
    {"counting remove / line add, single",
     OVER("counting/best", REMOVE, NUMBERS, true, 1),
     UNDER(LINE, ADD, NUMBERS, true, 1), AT_MOST(2.5)},
    {"counting remove / line add, batched",
     OVER("counting/best", REMOVE, NUMBERS, false, 1),
     UNDER(LINE, ADD, NUMBERS, false, 1), AT_MOST(2.5)},
    {"bucket grown from 1000 has / line has, batched",
     OVER("bucket/best grown", GIVEN), UNDER(LINE, GIVEN), AT_MOST(1.6)},
    {"distinct grown has / bucket grown has, batched",
     OVER("distinct/best grown", GIVEN), UNDER("bucket/best grown", GIVEN),
     AT_MOST(1.1)},
    {"distinct grown add / bucket grown add, batched",
     OVER("distinct/best grown", PLAIN), UNDER("bucket/best grown", PLAIN)},
    {"distinct grown has / line grown has, batched",
     OVER("distinct/best grown", MANY), UNDER("line/best grown", MANY)},
    {"distinct grown add / line grown add, batched",
     OVER("distinct/best grown", PLAIN), UNDER("line/best grown", PLAIN)},
    {"bucket has / line has, batched", OVER("bucket/best", GIVEN),
     UNDER(LINE, GIVEN)},
    {"bucket grown from 1000 add / line add, batched",
     OVER("bucket/best grown", PLAIN), UNDER(LINE, PLAIN), AT_MOST(2.5)},
    {"bucket add / line add, batched", OVER("bucket/best", PLAIN),
     UNDER(LINE, PLAIN), AT_MOST(2.5)},
    {"bucket remove / line add, batched",
     OVER("bucket/best", REMOVE, NUMBERS, false, 1),
     UNDER(LINE, ADD, NUMBERS, false, 1)},
    {"ribbon has / line has, batched", OVER(RIBBON, GIVEN), UNDER(LINE, GIVEN),
     AT_MOST(2), .rare_limit = 2.4},
    {"ribbon has / line has, single", OVER(RIBBON, ONE), UNDER(LINE, ONE),
     AT_MOST(1.2), .rare_limit = 1.2},
    {"fuse 3-wise has / ribbon has, batched", OVER("fuse 3-wise", GIVEN),
     UNDER(RIBBON, GIVEN), AT_LEAST(1), .rare_limit = 1},
    {"fuse 4-wise has / ribbon has, batched", OVER("fuse 4-wise", GIVEN),
     UNDER(RIBBON, GIVEN), AT_LEAST(1), .rare_limit = 1},
    {"fuse 3-wise build / ribbon build", OVER("fuse 3-wise", MAKE),
     UNDER(RIBBON, MAKE), .at_least = true},
    {"ribbon build, one thread / two threads", OVER(RIBBON, MAKE),
     UNDER("ribbon/best by 2 threads", MAKE), AT_LEAST(1.7)},
    {"ribbon build, ns a key", OVER(RIBBON, MAKE), AT_MOST(100),
     .rare_limit = 100},
    {"ribbon bits / least bits at its rate", OVER(RIBBON, MAKE),
     AT_MOST(1.0385) /* 6.90 at 1 % */,
     .rare_limit = 1.0272 /* 13.65 at 0.01 % */, .size = true},
    {"fuse 3-wise bits / ribbon bits, at equal rate", OVER("fuse 3-wise", MAKE),
     UNDER(RIBBON, MAKE), .at_least = true, .rare_limit = 1.1, .size = true},
    {"has of 10 parts / of one as large", OVER("line/best grown", MANY),
     UNDER("line/best as large as grown", MANY), AT_MOST(3)},
    {"has of 10 parts / of one for as many keys", OVER("line/best grown", MANY),
     UNDER(LINE, MANY)},
};
enum { TARGETS = sizeof targets / sizeof targets[0], MOST_RUNS = 16 };

static struct run {
    uint64_t keys;
    double fpr;
    struct figure reached[TARGETS];
} runs[MOST_RUNS];
static int noted;

/* ---- Finding the sides --------------------------------------------------- */

static bool is_called(const char *name, const char *pattern) {
    char wanted[60], kind[20];
    const char *const best = strstr(pattern, "/best");
    if (!best) return strcmp(name, pattern) == 0;
    snprintf(kind, sizeof kind, "%.*s", (int)(best - pattern), pattern);
    snprintf(wanted, sizeof wanted, "%s/%s%s", kind, best_level(kind),
             best + strlen("/best"));
    return strcmp(name, wanted) == 0;
}

static bool is_of(const struct task *task, const struct side *side,
                  int present) {
    return task->verb == side->verb && task->form == side->form &&
           task->single == side->single && task->batch == side->batch &&
           (side->threads ? task->threads == side->threads
                          : task->threads > 1) &&
           (task->verb != HAS || task->present == present);
}

/* What was run last: several tasks after another, in several calls. */
struct scene {
    const struct contestant *who;
    int count;
    const struct task *tasks;
    int n;
    const struct results *results;
};

static const struct series *find(const struct scene *in,
                                 const struct side *side, int present) {
    for (int t = 0; side->who && t < in->n; t++)
        for (int i = 0; i < in->count; i++)
            if (is_of(&in->tasks[t], side, present) &&
                is_called(in->who[i].name, side->who) &&
                in->results[t].of[i].rounds > 0)
                return &in->results[t].of[i];
    return NULL;
}

/* Bits a key over log2(1 / rate), which no set can do without. */
static double excess_of(const struct contestant *c, double rate) {
    return 8 * (double)c->bytes / (double)c->n / -log2(rate);
}

static const struct contestant *find_contestant(const struct scene *in,
                                                const char *pattern) {
    for (int i = 0; pattern && i < in->count; i++)
        if (is_called(in->who[i].name, pattern)) return &in->who[i];
    return NULL;
}

/* Of one side, at the rate that was wanted; of two, at those measured. */
static struct figure reached_size(const struct scene *in,
                                  const struct target *t, double fpr) {
    const struct contestant *const over = find_contestant(in, t->over.who);
    const struct contestant *const under = find_contestant(in, t->under.who);
    if (!over || (t->under.who && !under)) return (struct figure){NAN, NAN};
    if (!under) return (struct figure){excess_of(over, fpr), 0};
    return (struct figure){
        excess_of(over, over->rate) / excess_of(under, under->rate), 0};
}

static struct figure reached(const struct scene *in, const struct target *t) {
    struct figure worst = {NAN, NAN};
    if (!t->under.who) {
        const struct series *const only = find(in, &t->over, 0);
        return only ? figure_of(only) : worst;
    }
    for (int present = 0; present <= 100; present += 50) {
        const struct series *const over = find(in, &t->over, present);
        const struct series *const under = find(in, &t->under, present);
        const struct series *const plus = find(in, &t->plus, present);
        if (!over || !under || (t->plus.who && !plus)) continue;
        const struct series sum = plus ? sum_of(under, plus) : *under;
        const struct figure ratio = ratio_of(over, &sum);
        if (isnan(worst.median) || (ratio.median < worst.median) == t->at_least)
            worst = ratio;
    }
    return worst;
}

void note_targets(const struct contestant *who, int count, double fpr,
                  const struct task *tasks, int n,
                  const struct results *results) {
    if (noted == MOST_RUNS || count == 0) return;
    const struct scene in = {who, count, tasks, n, results};
    struct run *const run = &runs[noted++];
    *run = (struct run){.keys = who[0].n, .fpr = fpr};
    for (int t = 0; t < TARGETS; t++)
        run->reached[t] = targets[t].size ? reached_size(&in, &targets[t], fpr)
                                          : reached(&in, &targets[t]);
}

/* ---- Printing ------------------------------------------------------------ */

/* The goals hold from 10 million keys on, at 1 %, or below. */
static double limit_of(const struct target *t, const struct run *run) {
    if (run->keys < 10000000 || run->fpr > 0.01 + 1e-9) return 0;
    if (run->fpr < 0.01 - 1e-9) return t->rare_limit;
    return run->keys >= 50000000 && t->large_limit > 0 ? t->large_limit
                                                       : t->limit;
}

/* Reached, if the whole spread around the median is on the right side; missed,
 * if it is on the wrong one. */
static const char *verdict(const struct target *t, double limit,
                           struct figure f) {
    if (limit == 0) return "";
    const double left = (limit - f.median) * (t->at_least ? -1 : 1);
    if (fabs(left) < f.spread / 2) return "in doubt";
    return left >= 0 ? "yes" : "no";
}

static void print_wanted(const struct target *t, double limit) {
    if (limit > 0)
        printf("%s %5.2f", t->at_least ? ">=" : "<=", limit);
    else
        printf("%8s", "");
}

static void print_json(struct report *r, const struct run *run,
                       const struct target *t, double limit, struct figure f) {
    if (!r->json) return;
    fprintf(r->json,
            "%s\n{\"keys\": %llu, \"fpr\": %g, \"what\": \"%s\", "
            "\"limit\": %g, \"at_least\": %s, \"ratio\": %.3f, "
            "\"spread\": %.3f, \"clear\": %s, \"reached\": \"%s\"}",
            r->records++ ? "," : "", (unsigned long long)run->keys, run->fpr,
            t->what, limit, t->at_least ? "true" : "false", f.median, f.spread,
            is_clear(f) ? "true" : "false", verdict(t, limit, f));
}

void report_targets(struct report *r) {
    if (r->json) fputs("\n],\n\"targets\": [", r->json);
    r->records = 0;
    for (int i = 0; i < noted; i++) {
        const struct run *const run = &runs[i];
        printf("\n==== %llu keys, rate %g: goals, and what was "
               "reached ====\n%-44s %8s %8s    +-\n",
               (unsigned long long)run->keys, run->fpr, "", "wanted",
               "reached");
        for (int t = 0; t < TARGETS; t++) {
            const struct figure f = run->reached[t];
            const double limit = limit_of(&targets[t], run);
            if (isnan(f.median)) continue;
            printf("%-44s ", targets[t].what);
            print_wanted(&targets[t], limit);
            if (is_clear(f))
                printf(" %8.2f", f.median);
            else
                printf(" %8s", "same");
            printf(" %5.2f  %s\n", f.spread, verdict(&targets[t], limit, f));
            print_json(r, run, &targets[t], limit, f);
        }
    }
}

void print_last_line(void) {
    const struct run *const run = &runs[noted - 1];
    const char *space = "";
    for (int t = 0; t < TARGETS && noted > 0; t++) {
        if (!targets[t].brief) continue;
        const bool is_floor = !targets[t].at_least;
        printf("%s%s=%.*f", space, targets[t].brief, is_floor ? 2 : 1,
               run->reached[t].median);
        space = " ";
    }
    printf("\n");
}
