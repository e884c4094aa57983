/* calyx-bench: how fast, at what size, beside whom. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"

static const char usage[] =
    "calyx-bench [options]\n"
    "  --kinds line,split,...   of our filters; default all\n"
    "  -n, --keys N,N,...       how many; default 1e6,1e7 (quick: 1e7)\n"
    "  --fpr R,R,...            rates; default 0.01,0.001 (quick: 0.01)\n"
    "  --repeats N              rounds; default 9\n"
    "  --threads N              also measure with so many; default 2\n"
    "  --json FILE              write all figures there, too\n"
    "  --files                  only saving and loading 1 GiB\n"
    "  --quick                  only what matters most, with a last line\n"
    "                           floor_ratio=... add_ratio=... ...\n"
    "Times are ns a key: the median over the rounds of the fastest segment,\n"
    "and the distance of the quartiles. bench/README.md tells more.\n";

enum { MOST_SIZES = 16 };

struct choice {
    const char *kinds;
    double keys[MOST_SIZES], fprs[MOST_SIZES];
    int sizes, rates, rounds, threads;
    bool quick, files;
    FILE *json;
};

static void stop(const char *what, const char *given) {
    fprintf(stderr, "calyx-bench: %s: %s\n", what, given);
    exit(1);
}

/* ---- Tables and JSON ----------------------------------------------------- */

static void print_json(const struct choice *to, const struct contestant *c,
                       double fpr, const struct task *task, int threads,
                       struct figure f) {
    if (!to->json) return;
    static const char *comma = "";
    fprintf(to->json,
            "%s\n{\"keys\": %llu, \"fpr\": %g, \"task\": \"%s\", "
            "\"threads\": %d, \"contestant\": \"%s\", \"ns\": %.3f, "
            "\"spread\": %.3f, \"bits_per_key\": %.2f, \"rate\": %.6f}",
            comma, (unsigned long long)c->n, fpr, task->name, threads, c->name,
            f.median, f.spread, 8 * (double)c->trade->bytes(c) / (double)c->n,
            c->rate);
    comma = ",";
}

static void print_ratio(const struct series *a, const struct series *b) {
    if (!b->rounds || a == b) {
        printf("\n");
        return;
    }
    const struct figure ratio = ratio_of(a, b);
    if (is_clear(ratio))
        printf("  %6.2f\n", ratio.median);
    else
        printf("    same\n"); /* as far as can be told */
}

static void print_table(const struct choice *to, const struct contestant *who,
                        int count, double fpr, const struct task *task,
                        int threads, const struct series *all) {
    printf("\n%s, %d thread%s%*s bits/key  rate %%    ns/key   +-     over "
           "floor\n",
           task->name, threads, threads > 1 ? "s" : "",
           (int)(28 - strlen(task->name) - (threads > 1)), "");
    for (int i = 0; i < count; i++) {
        if (!all[i].rounds) continue;
        const struct figure f = figure_of(&all[i]);
        const double bytes = (double)who[i].trade->bytes(&who[i]);
        printf("  %-36s", who[i].name);
        if (bytes > 0)
            printf(" %8.2f", 8 * bytes / (double)who[i].n);
        else
            printf(" %8s", "");
        if (who[i].answers)
            printf(" %7.3f", 100 * who[i].rate);
        else
            printf(" %7s", "");
        printf(" %9.2f %5.2f", f.median, f.spread);
        print_ratio(&all[i], &all[0]);
        print_json(to, &who[i], fpr, task, threads, f);
    }
    fflush(stdout);
}

/* ---- The whole benchmark ------------------------------------------------- */

static const struct task builds[] = {
    {"add hashes, batched", ADD, HASHES, false, 0},
    {"add numbers, batched", ADD, NUMBERS, false, 0},
    {"add numbers, batched, fresh", ADD_FRESH, NUMBERS, false, 0},
    {"add numbers, single", ADD, NUMBERS, true, 0},
    {"add URLs, batched", ADD, URLS, false, 0},
    {"add URLs, single", ADD, URLS, true, 0},
};
enum { BUILDS = sizeof builds / sizeof builds[0] };

static const struct task questions[] = {
    {"has hashes, batched, 0 %", HAS, HASHES, false, 0},
    {"has hashes, batched, 50 %", HAS, HASHES, false, 50},
    {"has hashes, batched, 100 %", HAS, HASHES, false, 100},
    {"has numbers, batched, 0 %", HAS, NUMBERS, false, 0},
    {"has numbers, batched, 50 %", HAS, NUMBERS, false, 50},
    {"has numbers, batched, 100 %", HAS, NUMBERS, false, 100},
    {"has numbers, single, 0 %", HAS, NUMBERS, true, 0},
    {"has numbers, single, 50 %", HAS, NUMBERS, true, 50},
    {"has numbers, single, 100 %", HAS, NUMBERS, true, 100},
    {"has URLs, batched, 0 %", HAS, URLS, false, 0},
    {"has URLs, batched, 50 %", HAS, URLS, false, 50},
    {"has URLs, batched, 100 %", HAS, URLS, false, 100},
    {"has URLs, single, 0 %", HAS, URLS, true, 0},
    {"has URLs, single, 50 %", HAS, URLS, true, 50},
    {"has URLs, single, 100 %", HAS, URLS, true, 100},
    {"remove numbers, single", REMOVE, NUMBERS, true, 100},
    {"remove numbers, batched", REMOVE, NUMBERS, false, 100},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0] };

static struct results results[QUESTIONS];

static int make_all(struct contestant *who, int count, uint64_t n, double fpr) {
    int made = 0;
    for (int i = 0; i < count; i++) {
        struct contestant c = who[i];
        c.n = n;
        if (c.trade->make(&c, n, fpr)) who[made++] = c;
    }
    return made;
}

static void end_all(struct contestant *who, int count) {
    for (int i = 0; i < count; i++) who[i].trade->end(&who[i]);
}

static void fill_all(struct contestant *who, int count, uint64_t n) {
    for (int i = 0; i < count; i++) {
        fill(&who[i], n);
        measure_rate(&who[i]);
    }
}

static void run_some(const struct choice *wanted, struct contestant *who,
                     int count, double fpr, const struct task *tasks, int n,
                     int rounds, int threads) {
    compete(who, count, tasks, n, rounds, threads, results);
    for (int t = 0; t < n; t++)
        print_table(wanted, who, count, fpr, &tasks[t], threads, results[t].of);
}

static void run_all(const struct choice *wanted, uint64_t n, double fpr) {
    struct contestant who[MOST_CONTESTANTS];
    int count = floor_contestants(who);
    count += inlined_contestants(who + count);
    count += calyx_contestants(who + count, wanted->kinds);
    count += libbloom_contestants(who + count);
    count += exact_contestants(who + count);
    count = make_all(who, count, n, fpr);

    printf("\n==== %llu keys, rate %g ====\n", (unsigned long long)n, fpr);
    fill_all(who, count, n);
    const int rounds = n > 20000000 && wanted->rounds > 3 ? 3 : wanted->rounds;
    for (int t = 0; t < BUILDS; t++) {
        run_some(wanted, who, count, fpr, &builds[t], 1, rounds, 1);
        if (wanted->threads > 1 && !builds[t].single)
            run_some(wanted, who, count, fpr, &builds[t], 1, rounds,
                     wanted->threads);
    }
    fill_all(who, count, n);
    run_some(wanted, who, count, fpr, questions, QUESTIONS, wanted->rounds, 1);
    if (wanted->threads > 1)
        run_some(wanted, who, count, fpr, questions, QUESTIONS - 2,
                 wanted->rounds, wanted->threads);
    end_all(who, count);
}

/* ---- The quick one ------------------------------------------------------- */

/*
 * What the last line means. Every ratio is taken with 0, 50 and 100 % of the
 * keys present, and the least favourable to us of the three is printed.
 *
 *   floor_ratio       calyx_has_hashes of line over the floor on the same given
 *   floor_ratio_avx2  hashes: neither side hashes. This is the strictest way:
 *                     hashing on both sides would bring the ratio nearer to 1.
 *                     (The ratio with hashing is printed above it.)
 *   add_ratio         calyx_add_hashes over the floor that writes, on the same
 *                     given hashes, while a filter goes from half full to full
 *   libbloom_batch    libbloom's time over calyx_has_many_u64's: both hash
 *   libbloom_single   libbloom's time over calyx_has_u64's: both hash
 */
struct worst {
    double ratio, spread;
};

static void note(struct worst *w, const struct series *a,
                 const struct series *b, bool high) {
    if (!a || !b || !a->rounds || !b->rounds) return;
    const struct figure r = ratio_of(a, b);
    if (!isnan(w->ratio) && (r.median > w->ratio) != high) return;
    *w = (struct worst){r.median, r.spread};
}

static struct series *series_of(struct contestant *who, int count,
                                struct series *all, const char *name) {
    for (int i = 0; i < count; i++)
        if (strcmp(who[i].name, name) == 0) return &all[i];
    return NULL;
}

static void print_worst(const char *what, struct worst w) {
    const bool clear = is_clear((struct figure){w.ratio, w.spread});
    printf("%s=%.2f +- %.2f%s\n", what, w.ratio, w.spread,
           clear ? "" : " (in doubt)");
}

static int quick_contestants(struct contestant *who) {
    struct contestant ours[MOST_CONTESTANTS];
    const char *const best = *calyx_kernels();
    int count = floor_contestants(who);
    count += inlined_contestants(who + count);
    const int all = calyx_contestants(ours, "line,counting");
    for (int i = 0; i < all; i++) {
        const bool is_best = strcmp(ours[i].kernel, best) == 0;
        const bool is_avx2 = strcmp(ours[i].name, "line/avx2") == 0;
        if ((is_best && ours[i].growth == 0) || is_avx2) who[count++] = ours[i];
    }
    return count + libbloom_contestants(who + count);
}

static void quick(const struct choice *wanted, uint64_t n, double fpr) {
    struct contestant who[MOST_CONTESTANTS];
    const int count = make_all(who, quick_contestants(who), n, fpr);
    char best[40], inlined[40];
    snprintf(best, sizeof best, "line/%s", *calyx_kernels());
    snprintf(inlined, sizeof inlined, "line/%s inlined", *calyx_kernels());

    const struct worst none = {NAN, NAN};
    struct worst floor = none, floor_avx2 = none, hashed = none, add = none;
    struct worst batch = none, single = none, calls = none, urls = none;
#define OF(task, name) series_of(who, count, results[task].of, name)
    fill_all(who, count, n);
    enum { GIVEN, MANY = 3, ONE = 6, TEXT = 9, ASKED = 12 };
    run_some(wanted, who, count, fpr, questions, ASKED, wanted->rounds, 1);
    for (int i = 0; i < 3; i++) { /* with 0, 50 and 100 % present */
        note(&floor, OF(GIVEN + i, best), OF(GIVEN + i, "floor"), true);
        note(&floor_avx2, OF(GIVEN + i, "line/avx2"), OF(GIVEN + i, "floor"),
             true);
        note(&hashed, OF(MANY + i, best), OF(MANY + i, "floor"), true);
        note(&batch, OF(MANY + i, "libbloom"), OF(MANY + i, best), false);
        note(&single, OF(ONE + i, "libbloom"), OF(ONE + i, best), false);
        note(&calls, OF(ONE + i, best), OF(ONE + i, inlined), true);
        const struct series sum =
            sum_of(OF(TEXT + i, "hash alone"), OF(GIVEN + i, "floor"));
        note(&urls, OF(TEXT + i, best), &sum, true);
    }
    const int rounds = wanted->rounds > 5 ? 5 : wanted->rounds;
    run_some(wanted, who, count, fpr, builds, 1, rounds, 1);
    note(&add, OF(0, best), OF(0, "floor"), true);
#undef OF
    end_all(who, count);

    printf("\n%llu keys, rate %g, the worst of 0, 50 and 100 %% present:\n",
           (unsigned long long)n, fpr);
    print_worst("floor_ratio", floor);
    print_worst("floor_ratio_avx2", floor_avx2);
    print_worst("floor_ratio, both sides hashing numbers", hashed);
    print_worst("has URLs over (hash alone + floor)", urls);
    print_worst("add_ratio", add);
    print_worst("libbloom_batch", batch);
    print_worst("libbloom_single", single);
    print_worst("single_ratio", calls);
    printf("floor_ratio=%.2f floor_ratio_avx2=%.2f add_ratio=%.2f "
           "libbloom_batch=%.1f libbloom_single=%.1f\n",
           floor.ratio, floor_avx2.ratio, add.ratio, batch.ratio, single.ratio);
}

/* ---- Options ------------------------------------------------------------- */

static int read_list(const char *text, double *to) {
    int count = 0;
    for (const char *at = text; count < MOST_SIZES;) {
        char *end;
        errno = 0;
        to[count] = strtod(at, &end);
        if (end == at || errno || !(to[count] > 0))
            stop("not a list of numbers", text);
        count++;
        if (*end == '\0') return count;
        if (*end != ',') stop("not a list of numbers", text);
        at = end + 1;
    }
    stop("too many numbers", text);
    return 0;
}

static int read_count(const char *text, int most) {
    double numbers[MOST_SIZES];
    if (read_list(text, numbers) != 1 || numbers[0] > most || numbers[0] < 1)
        stop("not such a number", text);
    return (int)numbers[0];
}

static void read_options(int argc, char **argv, struct choice *to) {
    static const struct option options[] = {
        {"kinds", 1, NULL, 'k'},   {"keys", 1, NULL, 'n'},
        {"fpr", 1, NULL, 'f'},     {"repeats", 1, NULL, 'r'},
        {"threads", 1, NULL, 't'}, {"json", 1, NULL, 'j'},
        {"files", 0, NULL, 'F'},   {"quick", 0, NULL, 'q'},
        {"help", 0, NULL, 'h'},    {NULL, 0, NULL, 0}};
    int option;
    while ((option = getopt_long(argc, argv, "n:h", options, NULL)) != -1) {
        switch (option) {
            case 'k': to->kinds = optarg; break;
            case 'n': to->sizes = read_list(optarg, to->keys); break;
            case 'f': to->rates = read_list(optarg, to->fprs); break;
            case 'r': to->rounds = read_count(optarg, MOST_ROUNDS); break;
            case 't': to->threads = read_count(optarg, 16); break;
            case 'j':
                to->json = fopen(optarg, "w");
                if (!to->json) stop(optarg, strerror(errno));
                break;
            case 'F': to->files = true; break;
            case 'q': to->quick = true; break;
            case 'h': fputs(usage, stdout); exit(0);
            default: fputs(usage, stderr); exit(2);
        }
    }
    if (optind < argc) stop("not an option", argv[optind]);
}

int main(int argc, char **argv) {
    struct choice wanted = {.rounds = 9, .threads = 2};
    read_options(argc, argv, &wanted);
    if (wanted.files) {
        compare_files();
        return 0;
    }
    if (!wanted.sizes) {
        wanted.sizes = wanted.quick ? 1 : 2;
        wanted.keys[0] = wanted.quick ? 1e7 : 1e6;
        wanted.keys[1] = 1e7;
    }
    if (!wanted.rates) {
        wanted.rates = wanted.quick ? 1 : 2;
        wanted.fprs[0] = 0.01;
        wanted.fprs[1] = 0.001;
    }
    if (wanted.json) fputs("[", wanted.json);
    for (int i = 0; i < wanted.sizes; i++)
        for (int j = 0; j < wanted.rates; j++)
            (wanted.quick ? quick : run_all)(&wanted, (uint64_t)wanted.keys[i],
                                             wanted.fprs[j]);
    if (wanted.json) {
        fputs("\n]\n", wanted.json);
        fclose(wanted.json);
    }
    if (!wanted.quick) compare_files();
    return 0;
}
