/*
 * calyx plan: what a filter would take, before it is made. A table over all
 * kinds, beside what is exact; what a filter in front of a slow store saves;
 * and the lines that make it.
 */
#include "plan/plot.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "files/new_filter.h"
#include "frame/json.h"
#include "plan/parts_plan.h"

static uint64_t keys, memory, bits, probes, universe, key_bytes = 8;
static double rate, store_time, filter_time = 100e-9, present = 0.5;
static const char *kind, *plot;
static bool as_json, force;

static bool solves_keys(void) {
    return keys == 0;
}

static uint64_t given_bytes(void) {
    return memory ? memory : bits / 8 + (bits % 8 != 0);
}

/* ---- Kinds -------------------------------------------------------------- */

static void plan_kind(struct planned *p) {
    calyx_options want = {.kind = p->kind,
                          .capacity = keys,
                          .fpr = rate,
                          .bits = bits,
                          .probes = (uint32_t)probes};
    calyx_error why;
    calyx_status status = CALYX_OK;
    if (memory) status = calyx_bits_within(p->kind, memory, &want.bits, &why);
    if (status == CALYX_OK) status = calyx_plan(&want, &p->is, &why);
    if (status == CALYX_OK)
        status = calyx_rate_at(&want, p->is.capacity, &p->rate, &why);
    p->possible = status == CALYX_OK;
    if (!p->possible) memcpy(p->why_not, why.text, sizeof why.text);
}

static struct plan plan_kinds(void) {
    struct plan plan = {.kinds = 0};
    for (const char *const *name = calyx_kinds(); *name; name++) {
        if (plan.kinds == MOST_KINDS) break;
        plan.kind[plan.kinds].kind = *name;
        plan_kind(&plan.kind[plan.kinds++]);
    }
    return plan;
}

static const struct planned *choose_named(const struct plan *plan) {
    for (int i = 0; i < plan->kinds; i++) {
        const struct planned *const p = &plan->kind[i];
        if (strcmp(kind, p->kind) != 0) continue;
        if (p->possible) return p;
        fail("%s", p->why_not);
    }
    const char *const near = nearest(kind, calyx_kinds());
    fail("there is no kind '%s'; did you mean '%s'?", kind,
         near ? near : calyx_kinds()[0]);
}

/* The first that is possible and, with --bits, makes use of the bits. */
static const struct planned *choose(const struct plan *plan) {
    const struct planned *first = NULL;
    if (kind) return choose_named(plan);
    for (int i = 0; i < plan->kinds; i++) {
        const struct planned *const p = &plan->kind[i];
        if (p->possible && uses_bits(&p->is, bits)) return p;
        if (p->possible && !first) first = p;
    }
    if (!first) fail("no kind will do: %s", plan->kind[0].why_not);
    return first;
}

static bool is_static(const char *name) {
    return calyx_kind_can(name) & CALYX_CAN_STATIC;
}

static void print_abilities(const char *name) {
    static const struct {
        calyx_abilities ability;
        const char *text;
    } all[] = {{CALYX_CAN_REMOVE, "remove"},
               {CALYX_CAN_MERGE, "merge"},
               {CALYX_CAN_GROW, "grow"},
               {CALYX_CAN_SHARE, "add from many threads"},
               {CALYX_CAN_STATIC, "be built once from all keys"}};
    const char *between = "  ";
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(calyx_kind_can(name) & all[i].ability)) continue;
        printf("%s%s", between, all[i].text);
        between = ", ";
    }
    printf("\n");
}

static double bits_a_key(const calyx_info *is) {
    return 8 * (double)is->bytes / (double)is->capacity;
}

/* ---- What else there is ------------------------------------------------- */

/* Another structure for the same keys. */
struct rival {
    const char *name, *json_name;
    double bytes;       /* a key */
    double probes;      /* places that a lookup of a present key reads; 0: as
                           many as halvings of the keys until one is left */
    bool exact;         /* else it has the rate of the chosen kind */
    const char *advice; /* what it assumes */
    uint64_t keys, memory;
};

enum { RIVALS = 6 };

/*
 * A table that is half full takes two slots a key, and a lookup reads 1.5 of
 * them. A chained map has a bucket for each key: a pointer, and a node with a
 * pointer to the next. A node of a tree has two children and, as a set has,
 * a pointer to its parent. A bit array is a Bloom filter with one hash: its
 * rate is its share of set bits, 1 - exp(-n/m).
 */
static void weigh_rivals(const struct planned *chosen, struct rival *rivals) {
    const double size = (double)key_bytes, small = 4, large = 8;
    const double bits_of_array = -1 / log1p(-fmin(0.999, chosen->rate));
    const struct rival all[RIVALS] = {
        {"hash table", "hash_table", 2 * size, 1.5, .exact = true,
         .advice = "half full"},
        {"hash map, 32", "hash_map_32", 2 * small + size, 2.5, .exact = true,
         .advice = "chained, 32-bit pointers"},
        {"hash map, 64", "hash_map_64", 2 * large + size, 2.5, .exact = true,
         .advice = "chained, 64-bit pointers"},
        {"tree set", "tree_set", 3 * large + size, .exact = true,
         .advice = "balanced, 64-bit pointers"},
        {"sorted list", "sorted_list", size, .exact = true,
         .advice = "add only by making it anew"},
        {"bit array", "bit_array", bits_of_array / 8, 1,
         .advice = "a Bloom filter with one hash"},
    };
    for (int i = 0; i < RIVALS; i++) {
        struct rival *const r = &rivals[i];
        *r = all[i];
        r->keys = keys ? keys : (uint64_t)((double)given_bytes() / r->bytes);
        r->memory = (uint64_t)(r->bytes * (double)r->keys);
        if (r->probes == 0) r->probes = ceil(log2(fmax(2, (double)r->keys)));
    }
}

/* ---- The table ---------------------------------------------------------- */

static void print_goal(void) {
    char a[TEXT_SIZE], b[TEXT_SIZE];
    const char *const unit = bits ? " bits" : "";
    const char *const size = bits ? count_text(bits, b) : size_text(memory, b);
    if (solves_keys())
        printf("%s%s, at a rate of %s:\n\n", size, unit, rate_text(rate, a));
    else if (bits || memory)
        printf("%s keys in %s%s:\n\n", count_text(keys, a), size, unit);
    else
        printf("%s keys, at a rate of %s:\n\n", count_text(keys, a),
               rate_text(rate, b));
}

/* The third of keys, rate and memory; a size is always given. */
static void print_amount(uint64_t held, uint64_t bytes) {
    char text[TEXT_SIZE];
    if (solves_keys())
        printf("  %17s", count_text(held, text));
    else
        printf("  %9s", size_text(bytes, text));
}

static void print_rival(const struct rival *r, const struct planned *chosen) {
    char text[TEXT_SIZE];
    printf("%-12s", r->name);
    print_amount(r->keys, r->memory);
    printf("  %10.2f  %6g  %14s  %.1f x %s; %s\n", 8 * r->bytes, r->probes,
           r->exact ? "exact" : rate_text(chosen->rate, text),
           8 * r->bytes / bits_a_key(&chosen->is), chosen->kind, r->advice);
}

static void print_table(const struct plan *plan, const struct rival *rivals) {
    print_goal();
    printf("%-12s  %*s  %10s  %6s  %14s  %s\n", "kind", solves_keys() ? 17 : 9,
           solves_keys() ? "keys" : "memory", "bits a key", "probes", "rate",
           "can");
    for (int i = 0; i < plan->kinds; i++) {
        const struct planned *const p = &plan->kind[i];
        printf("%-12s", p->kind);
        if (!p->possible) {
            printf("  not so: %s\n", p->why_not);
            continue;
        }
        char text[TEXT_SIZE];
        print_amount(p->is.capacity, p->is.bytes);
        printf("  %10.2f  %6u  %14s", bits_a_key(&p->is), p->is.probes,
               rate_text(p->rate, text));
        print_abilities(p->kind);
    }
    printf("\nBeside these, for keys of %llu bytes:\n\n",
           (unsigned long long)key_bytes);
    for (int i = 0; i < RIVALS; i++) print_rival(&rivals[i], plan->chosen);
}

/* ---- In front of a store ------------------------------------------------ */

struct saving {
    calyx_costs costs;
    double pays_below; /* the rate from which on a filter costs more than it
                          saves; not above 0 if it never pays */
    double worth;      /* where false positives take 1 % of the time */
};

/* A query costs filter + (present + (1 - present) rate) store. */
static struct saving weigh(const struct planned *p) {
    const double absent = 1 - present;
    calyx_options made = {.kind = p->kind, .capacity = p->is.capacity};
    if (is_static(p->kind)) {
        made.fpr = p->is.fpr;
    } else {
        made.bits = p->is.bits;
        made.probes = p->is.probes;
    }
    const calyx_workload load = {.filter_time = filter_time,
                                 .store_time = store_time,
                                 .present = present,
                                 .key_bytes = (double)key_bytes};
    struct saving s;
    calyx_error why;
    if (calyx_weigh(&made, &load, &s.costs, &why) != CALYX_OK) fail_with(&why);
    const double wasted = absent * store_time;
    s.pays_below = wasted > 0 ? 1 - filter_time / wasted : 0;
    s.worth =
        wasted > 0 ? 0.01 * (filter_time + present * store_time) / wasted : 1;
    return s;
}

static char *time_text(double seconds, char *buffer) {
    static const char *const units[] = {"s", "ms", "us", "ns"};
    int unit = 0;
    for (; unit < 3 && seconds < 0.9995; unit++) seconds *= 1000;
    snprintf(buffer, TEXT_SIZE, "%.3g %s", seconds, units[unit]);
    return buffer;
}

static void print_cost(const char *name, const calyx_cost *cost) {
    char time[TEXT_SIZE], size[TEXT_SIZE], partitions[TEXT_SIZE];
    printf("%-12s  %9s  %12s  %12s\n", name,
           cost->bytes ? size_text(cost->bytes, size) : "",
           time_text(cost->time, time),
           count_text((uint64_t)round(1 / cost->time), partitions));
}

/*
 * Against an exact table, a filter pays for its false positives: P T1, if the
 * share P of all lookups are false positives and each costs T1 in the store.
 */
static void print_trade(const struct planned *p, const struct saving *s) {
    char time[TEXT_SIZE], share[TEXT_SIZE], store[TEXT_SIZE];
    const double positives = (1 - present) * p->rate;
    printf("\nBeside the hash table: dT = P T1 = %s x %s = %s longer in the "
           "mean,\nin 1/%.3g of its memory. P is the share of lookups that are "
           "false positives.\n",
           rate_text(positives, share), time_text(store_time, store),
           time_text(positives * store_time, time),
           (double)s->costs.table.bytes / (double)s->costs.filter.bytes);
}

static void print_verdict(const struct planned *p, const struct saving *s) {
    char text[TEXT_SIZE];
    const double times = s->costs.nothing.time / s->costs.filter.time;
    if (!(s->pays_below > 0)) {
        printf(
            "\nNo filter pays here: it would save less than its own time.\n");
        return;
    }
    printf("\nThe filter makes look-ups %.3g times as fast.", times);
    if (s->pays_below < 0.95)
        printf(" It pays at rates below %s.", rate_text(s->pays_below, text));
    printf("\n");
    if (s->worth >= 1) {
        printf("Any rate will do: false positives never take 1 %% of the "
               "time.\n");
        return;
    }
    printf("The rate worth paying for is %s: there false positives take 1 %% "
           "of the time,\nand a lower rate can save no more than that",
           rate_text(s->worth, text));
    const calyx_options want = {
        .kind = p->kind, .capacity = p->is.capacity, .fpr = s->worth};
    calyx_info is;
    if (calyx_plan(&want, &is, NULL) == CALYX_OK)
        printf(". It takes %.2f bits a key, or %s", bits_a_key(&is),
               size_text(is.bytes, text));
    printf(".\n");
}

static void print_saving(const struct planned *p) {
    char time[TEXT_SIZE], share[TEXT_SIZE], asked[TEXT_SIZE], name[TEXT_SIZE];
    const struct saving s = weigh(p);
    printf("\nBefore a store that takes %s, where %s of the queried keys "
           "are present,\nand a filter or a table that takes %s:\n\n",
           time_text(store_time, time), rate_text(present, share),
           time_text(filter_time, asked));
    printf("%-12s  %9s  %12s  %12s\n", "", "memory", "mean time", "a second");
    print_cost("store alone", &s.costs.nothing);
    snprintf(name, sizeof name, "%.24s", p->kind);
    print_cost(name, &s.costs.filter);
    print_cost("hash table", &s.costs.table);
    print_trade(p, &s);
    print_verdict(p, &s);
}

/* ---- The lines that make it --------------------------------------------- */

enum { COMMAND_SIZE = 200 };

static void write_build(const struct planned *p, char *command) {
    char goal[80];
    const char *const size = bits ? "bits" : "memory";
    const unsigned long long amount = bits ? bits : memory;
    if (solves_keys())
        snprintf(goal, sizeof goal, "--%s %llu -p %.9g", size, amount, rate);
    else if (amount)
        snprintf(goal, sizeof goal, "-n %llu --%s %llu",
                 (unsigned long long)keys, size, amount);
    else
        snprintf(goal, sizeof goal, "-n %llu -p %.9g", (unsigned long long)keys,
                 rate);
    char given_probes[24] = "";
    if (probes)
        snprintf(given_probes, sizeof given_probes, " --probes %u",
                 p->is.probes);
    const bool usual =
        strcmp(p->kind, calyx_kinds()[0]) == 0 && uses_bits(&p->is, bits);
    snprintf(command, COMMAND_SIZE,
             "calyx build %s%s%s%.20s -o seen.calyx "
             "keys.txt",
             goal, given_probes, usual ? "" : " --kind ", usual ? "" : p->kind);
}

/* Into a server: an empty one to add to, or the file. It names the kind, as the
 * server's default depends on the rate. */
static void write_reserve(const struct planned *p, char *command) {
    if (is_static(p->kind))
        snprintf(command, COMMAND_SIZE,
                 "calyx push seen.calyx redis://localhost/seen");
    else
        snprintf(command, COMMAND_SIZE,
                 "BF.RESERVE seen %.6g %llu NONSCALING KIND %.20s", p->is.fpr,
                 (unsigned long long)p->is.capacity, p->kind);
}

/* Of a filter that needs all keys at once: hashes of 8 bytes that wait. */
static uint64_t waiting_bytes(const struct planned *p) {
    return is_static(p->kind) ? 8 * p->is.capacity : 0;
}

static void print_commands(const struct planned *p) {
    char build[COMMAND_SIZE], reserve[COMMAND_SIZE], text[TEXT_SIZE];
    if (p->is.fpr > 0.5) {
        printf("\nIt says yes to %s of absent keys, and is of no use: give it "
               "more memory, or fewer\nkeys.\n",
               rate_text(p->is.fpr, text));
        return;
    }
    write_build(p, build);
    write_reserve(p, reserve);
    printf("\nTo make it, at the shell or in a server:\n\n  %s\n  %s\n", build,
           reserve);
    if (waiting_bytes(p))
        printf("\nMeanwhile %s of hashes wait: in the memory of -S, by default "
               "160 MiB, and then\nin a temporary file.\n",
               size_text(waiting_bytes(p), text));
}

/* ---- For programs ------------------------------------------------------- */

static void write_kind(const struct planned *p) {
    const uint32_t can = calyx_kind_can(p->kind);
    json_open(NULL, '{');
    json_text("kind", p->kind);
    json_answer("possible", p->possible);
    if (p->possible) {
        json_count("keys", p->is.capacity);
        json_count("bytes", p->is.bytes);
        json_number("bits_a_key", bits_a_key(&p->is));
        json_count("probes", p->is.probes);
        json_number("rate", p->rate);
        json_count("build_bytes", waiting_bytes(p));
    } else {
        json_text("why_not", p->why_not);
    }
    json_answer("can_add", can & CALYX_CAN_ADD);
    json_answer("can_remove", can & CALYX_CAN_REMOVE);
    json_answer("can_merge", can & CALYX_CAN_MERGE);
    json_answer("can_intersect", can & CALYX_CAN_INTERSECT);
    json_answer("can_grow", can & CALYX_CAN_GROW);
    json_answer("can_add_from_many_threads", can & CALYX_CAN_SHARE);
    json_answer("can_be_made_of_parts", can & CALYX_CAN_PARTS);
    json_close();
}

static void write_rival(const struct rival *r) {
    json_open(r->json_name, '{');
    json_count("keys", r->keys);
    json_count("bytes", r->memory);
    json_number("bits_a_key", 8 * r->bytes);
    json_number("probes", r->probes);
    json_close();
}

static void write_saving(const struct planned *p) {
    const struct saving s = weigh(p);
    json_open("store", '{');
    json_number("store_seconds", store_time);
    json_number("filter_seconds", filter_time);
    json_number("present", present);
    json_number("mean_seconds_store_alone", s.costs.nothing.time);
    json_number("mean_seconds_with_filter", s.costs.filter.time);
    json_number("mean_seconds_with_hash_table", s.costs.table.time);
    json_number("false_positive_seconds", (1 - present) * p->rate * store_time);
    json_number("memory_of_hash_table_over_filter",
                (double)s.costs.table.bytes / (double)s.costs.filter.bytes);
    json_number("pays_below_rate", s.pays_below);
    json_number("rate_worth_paying_for", fmin(1, s.worth));
    json_close();
}

static void write_json(const struct plan *plan, const struct rival *rivals) {
    char build[COMMAND_SIZE], reserve[COMMAND_SIZE];
    write_build(plan->chosen, build);
    write_reserve(plan->chosen, reserve);
    json_open(NULL, '{');
    json_open("kinds", '[');
    for (int i = 0; i < plan->kinds; i++) write_kind(&plan->kind[i]);
    json_close();
    for (int i = 0; i < RIVALS; i++) write_rival(&rivals[i]);
    json_text("chosen", plan->chosen->kind);
    if (store_time > 0) write_saving(plan->chosen);
    if (plans_parts()) write_parts();
    json_text("build", build);
    json_text("reserve", reserve);
    json_close();
}

/* ---- An exact filter ----------------------------------------------------- */

/* log2 of the number of sets of `n` keys out of `all`. */
static double bits_of_choice(double all, double n) {
    return (lgamma(all + 1) - lgamma(n + 1) - lgamma(all - n + 1)) / log(2);
}

static void print_exact_row(const char *name, double bytes, double least) {
    char size[TEXT_SIZE], a_key[40], ratio[40] = "-";
    snprintf(a_key, sizeof a_key, "%.2f", 8 * bytes / (double)keys);
    if (least >= 1) snprintf(ratio, sizeof ratio, "%.2f", 8 * bytes / least);
    printf("%-30s  %10s  %14s  %9s\n", name, size_text((uint64_t)bytes, size),
           a_key, ratio);
}

static void plan_exact(void) {
    if (universe < keys || bits || memory || kind || plans_parts() || plot ||
        as_json || store_time > 0)
        fail("--universe wants --keys, the number of included keys, which are "
             "among them; and at most --rate");
    const calyx_options want = {.kind = "ribbon",
                                .capacity = keys,
                                .excluded = universe - keys,
                                .exact = true,
                                .fpr = rate};
    calyx_info is;
    calyx_error why;
    if (calyx_plan(&want, &is, &why) != CALYX_OK) fail_with(&why);
    const double n = (double)keys, all = (double)universe;
    const double least = bits_of_choice(all, n), list = 8 * fmin(n, all - n);
    char a[TEXT_SIZE], b[TEXT_SIZE];
    printf("%s keys of a universe of %s, without an error\n\n",
           count_text(keys, a), count_text(universe, b));
    printf("%-30s  %10s  %14s  %9s\n", "", "size", "bits a key", "of least");
    print_exact_row("exact filter", (double)is.bytes, least);
    print_exact_row("list of hashes of 8 bytes", list, least);
    print_exact_row("one bit a key, if numbered", all / 8, least);
    printf("\n%s of the keys outside of the universe pass.\n",
           rate_text(is.fpr, a));
    if (8 * (double)is.bytes > all)
        printf("If the keys are numbers from 0 on, one bit each is smaller.\n");
    if ((double)is.bytes > list)
        printf("A list of the rarer answer is smaller.\n");
    printf("\n  calyx build --exact --universe all.txt -o "
           "list.calyx list.txt\n");
}

/* ---- The verb ----------------------------------------------------------- */

static void check_options(void) {
    if (bits && memory)
        fail("--bits and --memory are both given; they say the same");
    if (bits > UINT64_C(8) << 41)
        fail("--bits: expected at most 2^44, found %llu",
             (unsigned long long)bits);
    if (probes > UINT32_MAX)
        fail("option --probes: %llu is too large", (unsigned long long)probes);
    const int given = (keys > 0) + (rate > 0) + (bits || memory);
    if (given == 3)
        fail("--keys, --rate and --%s are all given; any two of them decide "
             "the third",
             bits ? "bits" : "memory");
    if (given == 0 || (given == 1 && rate > 0))
        fail("missing --keys, --memory or --bits, such as -n 1e9 -p 1%%; or "
             "keys and a size, to learn the rate");
    if (given == 1) rate = 0.01;
    if (key_bytes == 0 || key_bytes > 1000000)
        fail("--key-bytes: expected 1 to 1000000, found %llu",
             (unsigned long long)key_bytes);
    if (memory > UINT64_C(1) << 41)
        fail("--memory: expected at most 2 TiB, found %llu bytes",
             (unsigned long long)memory);
}

static void draw(const struct plan *plan) {
    if (strcmp(plot, "-") == 0)
        fail("--plot: expected the name of a file, found -");
    struct output *const to = output_open(plot, force);
    plot_plan(plan, to);
    output_close(to);
}

static int run(int count, char **operands) {
    (void)count, (void)operands;
    if (universe) {
        plan_exact();
        return EXIT_YES;
    }
    check_options();
    struct plan plan = plan_kinds();
    plan.chosen = choose(&plan);
    if (plans_parts()) plan_parts(plan.chosen, key_bytes);
    struct rival rivals[RIVALS];
    weigh_rivals(plan.chosen, rivals);
    if (plot) draw(&plan);
    if (as_json) {
        write_json(&plan, rivals);
        return EXIT_YES;
    }
    print_table(&plan, rivals);
    if (store_time > 0) print_saving(plan.chosen);
    if (plans_parts()) print_parts();
    print_commands(plan.chosen);
    return EXIT_YES;
}

static const struct group goal_group = {
    "Any two of these",
    {
        {'n', "keys", "COUNT", "Keys to hold, such as 5000, 10M or 1e9.",
         parse_positive, &keys},
        {'p', "rate", "RATE",
         "False-positive rate, such as 0.01, 1%, 1e-6 or 1/1000. If only one "
         "of the others is given, the default is 1 %.",
         parse_rate, &rate},
        {0, "memory", "SIZE", "Memory to take, such as 64KiB, 10M or 1.5G.",
         parse_size, &memory},
        {0, "bits", "M",
         "The same in bits: m in the formulas, such as 1000 or 1e10. A flat "
         "filter has exactly M bits, other kinds as many whole blocks as "
         "fit; counters come on top.",
         parse_positive, &bits},
    },
};

static const struct group store_group = {
    "A slow store behind the filter",
    {
        {0, "store-time", "TIME",
         "The store takes TIME for a lookup, such as 80us or 1ms: show the "
         "mean time of a lookup with and without a filter.",
         parse_time, &store_time},
        {0, "present", "SHARE",
         "Share of the queried keys that are in the store, such as 0.2 or 20%. "
         "The default is 50 %.",
         parse_share, &present},
        {0, "filter-time", "TIME",
         "The filter takes TIME for a query. The default is 100ns.", parse_time,
         &filter_time},
        {0, "key-bytes", "SIZE",
         "A key takes SIZE in an exact table or list. The default is 8, as "
         "much as a good fingerprint.",
         parse_size, &key_bytes},
    },
};

static const struct group options = {
    "Options",
    {
        {0, "kind", "KIND",
         "Compute, draw and make a filter of this kind. The default is the "
         "first suitable one in the table; with --bits, the first that makes "
         "use of 99 % of them.",
         parse_text, &kind},
        {0, "probes", "COUNT",
         "Bits that a key sets: k in the formulas, the number of hash "
         "functions. The default is the best number.",
         parse_positive, &probes},
        {0, "universe", "COUNT",
         "Show what 'calyx build --exact' takes for --keys included keys of a "
         "universe of COUNT keys, beside the least that is possible. --rate "
         "bounds the rate of keys outside of the universe.",
         parse_positive, &universe},
        {0, "plot", "FILE",
         "Draw into FILE, as SVG: the rate against the bits for each key, for "
         "each kind, and for the kind above with each number of probes; the "
         "rate against the fill; and the rate against the number of probes, "
         "with the best marked.",
         parse_text, &plot},
        {0, "force", NULL, "Replace the FILE of --plot if it exists.",
         parse_flag, &force},
        {0, "json", NULL, "Print one object, for programs.", parse_flag,
         &as_json},
    },
};

const struct verb verb_plan = {
    .name = "plan",
    .summary = "show what a filter would take, before it is made",
    .synopsis = "[-n KEYS] [-p RATE] [--memory SIZE] [OPTION]...",
    .prose =
        {"Any two of keys, rate and memory determine the third. The table "
         "shows for each kind the bits a key, the rate to expect, and "
         "what it can do; the last lines are the commands that make the "
         "filter, at the shell or in a server.",
         "The table also shows the bits that a key sets, and what other "
         "structures would take for the same keys: a hash table, chained "
         "hash maps, a tree, a sorted list and a bit array with one hash. "
         "A filter that is built once from all its keys takes 8 bytes a "
         "key until it is built; the lines say how much memory that is.",
         "With --store-time it also shows what the filter saves in front "
         "of a slow store. A lookup takes the time of the filter, plus "
         "the time of the store for present keys and for false positives. The "
         "rate worth paying for is the one at which false positives take "
         "1 % of the mean time; a lower rate can save no more than that.",
         "With --parts it also shows what building the filter takes on "
         "many machines: the memory of a part; the bytes that a node "
         "reads, writes, sends and spills; and the time of each phase. "
         "doc/CLUSTER.md says how to run the phases."},
    .common = {"keys", "rate", "memory", "kind", "store-time", "present",
               "plot", "json"},
    .groups = {&goal_group, &store_group, &nodes_group, &options},
    .examples = {{"calyx plan -n 1e9 -p 1%", "a billion keys at 1 %"},
                 {"calyx plan -n 10M --memory 16MiB", "what rate is that?"},
                 {"calyx plan -n 1e8 --bits 1.6e9 --probes 8",
                  "a filter of a book: m, n and k are given"},
                 {"calyx plan -n 1e9 -p 1% --store-time 1ms --present 20%",
                  "is it worth it, before a disk?"},
                 {"calyx plan -n 1e12 -p 1% --parts auto --nodes 64 "
                  "--node-memory 64G --network 10G",
                  "what it takes on a cluster"},
                 {"calyx plan -n 1M --universe 100M",
                  "no wrong answer for a known hundred million"},
                 {"calyx plan -n 1e9 -p 1% --plot rates.svg",
                  "draw the curves"}},
    .most = 0,
    .run = run,
};
