/* calyx-bench: how fast, at what size, beside whom. */
#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench.h"

static const char usage[] =
    "calyx-bench [options]\n"
    "  -n, --sizes N,N,...      numbers of keys; default 1e6,1e7,1e8\n"
    "  --rates R,R,...          false-positive rates; default 0.01,0.001\n"
    "  --kinds line,split,...   of our filters; default all\n"
    "  --keys hashes,numbers,urls,ids   what keys are; default all\n"
    "  --repeats N              rounds; default 5 (quick: 9)\n"
    "  --threads N              also measure with N; default 2\n"
    "  --json FILE              write all figures there, too\n"
    "  --growth                 only has and add from 1e3 to 1e9 keys\n"
    "  --tables                 only what removes keys, at five rates\n"
    "  --files                  only saving and loading 1 GiB\n"
    "  --quick                  only the goals, at 1e7 keys and 0.01, "
    "with\n"
    "                           a last line floor_ratio=... add_ratio=... ...\n"
    "Without --growth, --tables, --files, --quick or sizes: all of it, growth "
    "to "
    "1e8.\n"
    "Times are ns a key: the\n"
    "median over the rounds of the fastest segment, and the distance of the\n"
    "quartiles. bench/README.md has more.\n";

enum { MOST_SIZES = 16, MANY_KEYS = 20000000 };

struct choice {
    const char *kinds, *keys, *json;
    double sizes[MOST_SIZES], rates[MOST_SIZES];
    int size_count, rate_count, rounds, threads;
    bool quick, files, growth, tables, rates_given;
    struct report report;
};

static void stop(const char *what, const char *given) {
    fprintf(stderr, "calyx-bench: %s: %s\n", what, given);
    exit(2);
}

/* ---- Tasks --------------------------------------------------------------- */

enum { NAME_SIZE = 48 };

/* In the order of their doing: build, ask, remove, add. */
struct tasks {
    struct task all[MOST_TASKS];
    char names[MOST_TASKS][NAME_SIZE];
    int count;
};

static void add_words(char *name, const char *words, int number) {
    const size_t used = strlen(name);
    snprintf(name + used, NAME_SIZE - used, words, number);
}

static void list(struct tasks *to, const struct choice *wanted,
                 struct task task) {
    static const char *const verbs[] = {"build of", "add", "add", "has",
                                        "remove"};
    static const char *const forms[] = {"hashes", "numbers", "URLs", "ids"};
    static const char *const options[] = {"hashes", "numbers", "urls", "ids"};
    if (wanted->keys && task.verb != BUILD &&
        !is_listed(wanted->keys, options[task.form]))
        return;
    if (to->count == MOST_TASKS) stop("too many tasks", "MOST_TASKS");
    char *const name = to->names[to->count];
    snprintf(name, sizeof to->names[0], "%s %s, %s", verbs[task.verb],
             forms[task.form], task.single ? "single" : "batched");
    if (task.batch) add_words(name, " by %d", task.batch);
    if (task.verb == HAS) add_words(name, ", %d %%", task.present);
    if (task.verb == ADD_FRESH) add_words(name, ", fresh", 0);
    task.name = name;
    to->all[to->count++] = task;
}

static void list_lookups(struct tasks *to, const struct choice *wanted,
                         enum form form, bool single, int threads) {
    if (threads > 1)
        list(to, wanted, (struct task){"", HAS, form, single, 50, threads, 0});
    for (int present = 0; threads == 1 && present <= 100; present += 50)
        list(to, wanted, (struct task){"", HAS, form, single, present, 1, 0});
}

/* One key, or few, a call: what most programs do. */
static void list_small_calls(struct tasks *to, const struct choice *wanted,
                             enum verb verb) {
    const int present = verb == HAS ? 50 : 0;
    list(to, wanted, (struct task){"", verb, HASHES, true, present, 1, 0});
    for (int batch = 1; batch <= 32; batch = batch == 1 ? 8 : 4 * batch)
        list(to, wanted,
             (struct task){"", verb, HASHES, false, present, 1, batch});
}

static void list_tasks(struct tasks *to, const struct choice *wanted) {
    const bool all = !wanted->quick;
    const int most = wanted->threads;
    to->count = 0;
    list(to, wanted, (struct task){"", BUILD, NUMBERS, false, 0, 1, 0});
    for (int threads = 1; threads <= most; threads += most - 1) {
        const bool more = all || threads == 1;
        if (more) list_lookups(to, wanted, HASHES, false, threads);
        list_lookups(to, wanted, NUMBERS, false, threads);
        if (more) list_lookups(to, wanted, NUMBERS, true, threads);
        if (more) list_lookups(to, wanted, URLS, false, threads);
        if (all) list_lookups(to, wanted, URLS, true, threads);
        if (most == 1) break;
    }
    list_small_calls(to, wanted, HAS);
    list(to, wanted, (struct task){"", HAS, IDS, false, 0, 1, 0});
    list(to, wanted, (struct task){"", HAS, IDS, true, 0, 1, 0});
    list(to, wanted, (struct task){"", REMOVE, NUMBERS, true, 100, 1, 0});
    list(to, wanted, (struct task){"", REMOVE, NUMBERS, false, 100, 1, 0});
    list(to, wanted, (struct task){"", ADD, HASHES, false, 0, 1, 0});
    list_small_calls(to, wanted, ADD);
    list(to, wanted, (struct task){"", ADD, NUMBERS, false, 0, 1, 0});
    list(to, wanted, (struct task){"", ADD_FRESH, NUMBERS, false, 0, 1, 0});
    list(to, wanted, (struct task){"", ADD, NUMBERS, true, 0, 1, 0});
    if (most > 1)
        list(to, wanted, (struct task){"", ADD, NUMBERS, false, 0, most, 0});
    if (!all) return;
    list(to, wanted, (struct task){"", ADD, URLS, false, 0, 1, 0});
    list(to, wanted, (struct task){"", ADD, URLS, true, 0, 1, 0});
}

/* ---- Contestants --------------------------------------------------------- */

static int make_all(struct contestant *who, int count, uint64_t n, double fpr) {
    int made = 0;
    for (int i = 0; i < count; i++) {
        struct contestant c = who[i];
        const uint64_t before = huge_bytes();
        c.n = n;
        if (!c.trade->make(&c, n, fpr)) {
            printf("left out, for it cannot be made: %s\n", c.name);
            continue;
        }
        const uint64_t after = huge_bytes();
        c.huge_bytes = after > before ? after - before : 0;
        who[made++] = c;
    }
    return made;
}

static void end_all(struct contestant *who, int count) {
    for (int i = 0; i < count; i++) who[i].trade->end(&who[i]);
}

/* Exact sets want up to 64 bytes a key while they are built, beside all others.
 * Their rate is always zero, so the first of several rates is enough for them.
 */
static int list_exact(struct contestant *to, uint64_t n, bool first) {
    const double memory =
        (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE);
    if (!first) return 0;
    if (256. * (double)n > memory) {
        printf("left out, for want of memory: exact sets\n");
        return 0;
    }
    int count = exact_contestants(to);
#if CALYX_BENCH_CXX
    count += unordered_set_contestants(to + count);
#endif
    return count;
}

static int list_peers(struct contestant *to) {
    int count = libbloom_contestants(to);
    count += cuckoo_contestants(to + count);
#if CALYX_BENCH_BOOST
    count += boost_contestants(to + count);
#endif
    return count;
}

/* Our kinds at the best level that each has, and line at every level. */
static int ours_in_short(struct contestant *to, const char *kinds) {
    struct contestant ours[MOST_CONTESTANTS];
    const int all = calyx_contestants(ours, kinds);
    int count = 0;
    for (int i = 0; i < all; i++) {
        const char *const kind = ours[i].kind;
        if (strcmp(kind, "line") == 0 ||
            strcmp(ours[i].kernel, best_level(kind)) == 0)
            to[count++] = ours[i];
    }
    return count;
}

static int list_everyone(struct contestant *to, const struct choice *wanted,
                         uint64_t n, bool first) {
    int count = floor_contestants(to);
    count += ours_in_short(to + count, wanted->kinds);
    count += list_peers(to + count);
    count += fuse_contestants(to + count);
    return count + list_exact(to + count, n, first);
}

/* Line and bucket at the best level, line at AVX2, peers. */
static int list_few(struct contestant *to) {
    struct contestant ours[MOST_CONTESTANTS];
    int count = floor_contestants(to);
    const int all = calyx_contestants(ours, "line,bucket");
    for (int i = 0; i < all; i++)
        if (strcmp(ours[i].kernel, best_level(ours[i].kind)) == 0 ||
            strcmp(ours[i].name, "line/avx2") == 0)
            to[count++] = ours[i];
    return count + list_peers(to + count);
}

/* Those whose cost is shown as the keys grow; the slow ones not to the end. */
static int list_growing(struct contestant *to, uint64_t n) {
    struct contestant ours[MOST_CONTESTANTS];
    int count = floor_contestants(to);
    const int all = calyx_contestants(ours, "line,flat");
    for (int i = 0; i < all; i++) {
        const bool is_line = strcmp(ours[i].kind, "line") == 0;
        const char *const level = is_line ? best_level("line") : "scalar";
        if (strcmp(ours[i].kernel, level) == 0 && !ours[i].shared &&
            ours[i].growth == 0 && !ours[i].by_hand &&
            (is_line || n <= 100000000))
            to[count++] = ours[i];
    }
    if (n > 100000000) return count;
    count += list_peers(to + count);
    return count + list_exact(to + count, n, true);
}

/* What removes keys, beside line. */
static int list_tables(struct contestant *to) {
    struct contestant ours[MOST_CONTESTANTS];
    const int all = ours_in_short(ours, NULL);
    int count = floor_contestants(to);
    for (int i = 0; i < all; i++) {
        const bool removes = calyx_kind_can(ours[i].kind) & CALYX_CAN_REMOVE;
        char line[40];
        snprintf(line, sizeof line, "line/%s", best_level("line"));
        if ((removes && ours[i].growth == 0) || strcmp(ours[i].name, line) == 0)
            to[count++] = ours[i];
    }
    return count + cuckoo_contestants(to + count);
}

/* ---- Runs ---------------------------------------------------------------- */

static struct results results[MOST_TASKS];
static struct tasks tasks;

static int fewer(int rounds, int most) {
    return rounds < most ? rounds : most;
}

/* The tasks from `from` on that are like it: asking and removing want full
 * sets, adding does not leave them full. */
static int alike(int from) {
    int to = from;
    const bool adds = tasks.all[from].verb == ADD;
    while (to < tasks.count && tasks.all[to].verb != BUILD &&
           (tasks.all[to].verb == ADD || tasks.all[to].verb == ADD_FRESH) ==
               adds)
        to++;
    return to - from;
}

static void report_some(struct choice *wanted, const char *part,
                        const struct contestant *who, int count, double fpr,
                        int from, int n) {
    for (int t = from; t < from + n; t++)
        report_task(&wanted->report, part, who, count, fpr, &tasks.all[t],
                    results[t].of);
}

/* Large sets take long; adding takes long, and varies less. */
static int rounds_of(const struct choice *wanted, uint64_t n, bool asks) {
    if (n > MANY_KEYS && !wanted->quick) return fewer(wanted->rounds, 3);
    return asks ? wanted->rounds : fewer(wanted->rounds, 5);
}

static void run_tasks(struct choice *wanted, const char *part,
                      struct contestant *who, int count, double fpr) {
    const uint64_t n = who[0].n;
    const int builds = n > MANY_KEYS / 10 || wanted->quick ? 1 : 3;
    compete(who, count, tasks.all, 1, builds, results);
    for (int i = 0; i < count; i++) measure_rate(&who[i]);
    report_some(wanted, part, who, count, fpr, 0, 1);
    report_pages(who, count);
    for (int from = 1, some; from < tasks.count; from += some) {
        some = alike(from);
        const bool asks = tasks.all[from].verb == HAS;
        const int rounds = rounds_of(wanted, n, asks);
        compete(who, count, tasks.all + from, some, rounds, results + from);
        report_some(wanted, part, who, count, fpr, from, some);
    }
}

static void run_size(struct choice *wanted, uint64_t n, double fpr,
                     bool first) {
    struct contestant who[MOST_CONTESTANTS];
    printf("\n==== %llu keys, rate %g ====\n", (unsigned long long)n, fpr);
    int count =
        wanted->quick ? list_few(who) : list_everyone(who, wanted, n, first);
    count = make_all(who, count, n, fpr);
    list_tasks(&tasks, wanted);
    run_tasks(wanted, wanted->quick ? "quick" : "all", who, count, fpr);
    note_targets(who, count, fpr, tasks.all, tasks.count, results);
    end_all(who, count);
}

static void run_growth(struct choice *wanted) {
    const bool given = wanted->size_count > 0;
    char line[40];
    snprintf(line, sizeof line, "line/%s", best_level("line"));
    const int sizes = given ? wanted->size_count : wanted->growth ? 7 : 6;
    for (int i = 0; i < sizes; i++) {
        const uint64_t n =
            (uint64_t)(given ? wanted->sizes[i] : pow(10, 3 + i));
        const double fpr = wanted->rates[0];
        struct contestant who[MOST_CONTESTANTS];
        printf("\n==== growth: %llu keys, rate %g ====\n",
               (unsigned long long)n, fpr);
        int count = list_growing(who, n);
        count = make_all(who, count, n, fpr);
        tasks.count = 0;
        const struct choice any = {0};
        list(&tasks, &any, (struct task){"", BUILD, NUMBERS, false, 0, 1, 0});
        list(&tasks, &any, (struct task){"", HAS, HASHES, false, 50, 1, 0});
        list(&tasks, &any, (struct task){"", HAS, NUMBERS, false, 50, 1, 0});
        list(&tasks, &any, (struct task){"", HAS, NUMBERS, true, 50, 1, 0});
        list(&tasks, &any, (struct task){"", HAS, HASHES, true, 50, 1, 0});
        list(&tasks, &any, (struct task){"", ADD, HASHES, false, 0, 1, 0});
        list(&tasks, &any, (struct task){"", ADD, HASHES, true, 0, 1, 0});
        run_tasks(wanted, "growth", who, count, fpr);
        note_growth(who, count, line, tasks.all, tasks.count, results);
        end_all(who, count);
    }
}

static void run_tables(struct choice *wanted) {
    static const double rates[] = {0.05, 0.02, 0.01, 0.004, 0.001};
    const uint64_t n =
        wanted->size_count ? (uint64_t)wanted->sizes[0] : 10000000;
    for (size_t i = 0; i < sizeof rates / sizeof rates[0]; i++) {
        struct contestant who[MOST_CONTESTANTS];
        printf("\n==== tables: %llu keys, rate %g ====\n",
               (unsigned long long)n, rates[i]);
        const int count = make_all(who, list_tables(who), n, rates[i]);
        const struct choice any = {0};
        tasks.count = 0;
        list(&tasks, &any, (struct task){"", BUILD, NUMBERS, false, 0, 1, 0});
        for (int single = 0; single <= 1; single++) {
            list(&tasks, &any,
                 (struct task){"", HAS, HASHES, single, 50, 1, 0});
            list(&tasks, &any,
                 (struct task){"", REMOVE, NUMBERS, single, 100, 1, 0});
        }
        for (int single = 0; single <= 1; single++)
            list(&tasks, &any, (struct task){"", ADD, HASHES, single, 0, 1, 0});
        run_tasks(wanted, "tables", who, count, rates[i]);
        end_all(who, count);
    }
}

/* The rarer rate at one size only, unless rates or sizes are given. */
static void run_sizes(struct choice *wanted) {
    const bool short_run = !wanted->size_count && !wanted->rates_given;
    if (!wanted->size_count) {
        wanted->size_count = wanted->quick ? 1 : 3;
        wanted->sizes[0] = wanted->quick ? 1e7 : 1e6;
        wanted->sizes[1] = 1e7;
        wanted->sizes[2] = 1e8;
    }
    for (int i = 0; i < wanted->size_count; i++)
        for (int j = 0; j < (short_run && i != 1 ? 1 : wanted->rate_count); j++)
            run_size(wanted, (uint64_t)wanted->sizes[i], wanted->rates[j],
                     j == 0);
}

/* ---- Options ------------------------------------------------------------- */

static int read_list(const char *text, double least, double most, double *to) {
    int count = 0;
    for (const char *at = text; count < MOST_SIZES;) {
        char *end;
        errno = 0;
        to[count] = strtod(at, &end);
        if (end == at || errno || !(to[count] >= least && to[count] <= most) ||
            (*end != '\0' && *end != ',')) {
            fprintf(stderr,
                    "calyx-bench: wanted numbers from %g to %g with commas "
                    "between, found: %s\n",
                    least, most, text);
            exit(2);
        }
        count++;
        if (*end == '\0') return count;
        at = end + 1;
    }
    stop("more numbers than 16", text);
    return 0;
}

static int read_count(const char *text, int most) {
    double numbers[MOST_SIZES];
    if (read_list(text, 1, most, numbers) != 1) stop("not one number", text);
    return (int)numbers[0];
}

/* Every name of a list must be one of those there are, which end with NULL. */
static const char *read_names(const char *text, const char *const *known) {
    char all[200] = "";
    for (const char *const *name = known; *name; name++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s",
                 *all ? "," : "", *name);
    char one[40];
    for (const char *at = text;; at += strcspn(at, ",") + 1) {
        snprintf(one, sizeof one, "%.*s", (int)strcspn(at, ","), at);
        if (!*one || !is_listed(all, one)) {
            fprintf(stderr, "calyx-bench: wanted some of %s, found: %s\n", all,
                    text);
            exit(2);
        }
        if (!at[strcspn(at, ",")]) return text;
    }
}

static void read_options(int argc, char **argv, struct choice *to) {
    static const struct option options[] = {
        {"kinds", 1, NULL, 'k'},   {"sizes", 1, NULL, 'n'},
        {"rates", 1, NULL, 'f'},   {"keys", 1, NULL, 'K'},
        {"repeats", 1, NULL, 'r'}, {"threads", 1, NULL, 't'},
        {"json", 1, NULL, 'j'},    {"growth", 0, NULL, 'g'},
        {"tables", 0, NULL, 'T'},  {"files", 0, NULL, 'F'},
        {"quick", 0, NULL, 'q'},   {"help", 0, NULL, 'h'},
        {NULL, 0, NULL, 0}};
    static const char *const forms[] = {"hashes", "numbers", "urls", "ids",
                                        NULL};
    int option;
    while ((option = getopt_long(argc, argv, "n:h", options, NULL)) != -1) {
        switch (option) {
            case 'k': to->kinds = read_names(optarg, calyx_kinds()); break;
            case 'K': to->keys = read_names(optarg, forms); break;
            case 'n':
                to->size_count = read_list(optarg, 1000, 1e10, to->sizes);
                break;
            case 'f':
                to->rate_count = read_list(optarg, 1e-6, 0.5, to->rates);
                to->rates_given = true;
                break;
            case 'r': to->rounds = read_count(optarg, MOST_ROUNDS); break;
            case 't': to->threads = read_count(optarg, 16); break;
            case 'j': to->json = optarg; break;
            case 'g': to->growth = true; break;
            case 'T': to->tables = true; break;
            case 'F': to->files = true; break;
            case 'q': to->quick = true; break;
            case 'h': fputs(usage, stdout); exit(0);
            default: fputs(usage, stderr); exit(2);
        }
    }
    if (optind < argc) stop("not an option", argv[optind]);
    if (!to->rounds) to->rounds = to->quick ? 9 : 5;
    if (!to->rate_count) {
        to->rate_count = to->quick ? 1 : 2;
        to->rates[0] = 0.01;
        to->rates[1] = 0.001;
    }
}

int main(int argc, char **argv) {
    struct choice wanted = {.threads = 2};
    read_options(argc, argv, &wanted);
    const bool only =
        wanted.growth || wanted.tables || wanted.files || wanted.quick;
    const bool all = !only && !wanted.size_count;
    open_report(&wanted.report, wanted.json);
    print_machine(stdout, false);
    if (wanted.growth || all) run_growth(&wanted);
    if (wanted.quick || !only) run_sizes(&wanted);
    if (wanted.tables || all) run_tables(&wanted);
    if (wanted.files || all) compare_files();
    report_growth();
    report_targets(&wanted.report);
    close_report(&wanted.report);
    if (wanted.quick) print_last_line();
    return 0;
}
