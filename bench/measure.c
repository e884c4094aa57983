/* Segments, passes and rounds. */
#define XXH_INLINE_ALL
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <xxhash.h>

#include "bench.h"

enum {
    PASS = 24,          /* segments at least                        */
    LONG_PASS = 400,    /* and at most                              */
    ADD_PASS = 60,      /* segments, when adding                    */
    WARM_UP = 8000000,  /* ns, to bring a set into the caches       */
    CACHES = 64 << 20,  /* bytes; larger sets would not stay there  */
    PATIENCE = 6000000, /* ns of lookups in a pass, if the segments allow it:
                           neighbours disturb for a millisecond or so */
    MOST_THREADS = 16
};

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* What it takes to look at the clock, which no contestant should pay for. */
static double clock_ns(void) {
    static double known;
    if (known > 0) return known;
    double least = INFINITY;
    for (int i = 0; i < 1000; i++) {
        const double start = now();
        least = fmin(least, now() - start);
    }
    return known = least;
}

/* ---- Segments ------------------------------------------------------------ */

/* The number of URLs of n members; the others are numbers. */
static uint64_t urls_among(uint64_t n) {
    return n / 2 < POOL ? n / 2 : POOL;
}

static uint64_t numbers_among(uint64_t n) {
    return n - urls_among(n);
}

static size_t at_most_segment(uint64_t n) {
    return n < SEGMENT ? (size_t)n : SEGMENT;
}

/* The half of some members that timed adding has to itself, or a part of it. */
static size_t segment_of_half(uint64_t members) {
    return at_most_segment(members - members / 2);
}

static uint64_t scaled(uint64_t dice, uint64_t n) {
    return (uint64_t)((unsigned __int128)dice * n >> 64);
}

static void hash_numbers(struct segment *s) {
    for (size_t i = 0; i < s->n; i++)
        s->hashes[i] = XXH3_64bits_withSeed(&s->numbers[i], 8, 0);
}

static void take_members(struct segment *s, uint64_t from, size_t n) {
    s->n = n;
    for (size_t i = 0; i < n; i++) s->numbers[i] = member(from + i);
    hash_numbers(s);
}

static void take_urls(struct segment *s, const calyx_key *urls, uint64_t from,
                      size_t n) {
    s->n = n;
    s->urls = urls + from;
}

/* Lookups number `turn`, in a set of n. */
static void take_lookups(struct segment *s, const struct task *task, uint64_t n,
                         uint64_t turn) {
    if (task->form == URLS) {
        const uint64_t urls = urls_among(n);
        const size_t size = at_most_segment(urls);
        take_urls(s, url_pool(task->present), turn % (urls / size) * size,
                  size);
        return;
    }
    if (task->form == IDS) {
        take_urls(s, id_pool(), turn % (POOL / SEGMENT) * SEGMENT, SEGMENT);
        return;
    }
    s->n = SEGMENT;
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t dice = mixed(turn * SEGMENT + i + (UINT64_C(1) << 61));
        s->numbers[i] = (int)(dice % 100) < task->present
                            ? member(scaled(dice, numbers_among(n)))
                            : absent_number(turn * SEGMENT + i);
    }
    if (task->form == HASHES) hash_numbers(s);
}

/* ---- Filling ------------------------------------------------------------- */

static const struct task add_numbers = {"", ADD, NUMBERS, false, 0, 1, 0};
static const struct task add_urls = {"", ADD, URLS, false, 0, 1, 0};
static const struct task ask_one = {"", HAS, NUMBERS, true, 0, 1, 0};
static const struct task ask_urls = {"", HAS, URLS, true, 0, 1, 0};

static double run_timed(struct contestant *c, const struct task *task,
                        struct segment *s) {
    const double start = now();
    c->trade->run(c, task, s);
    return now() - start - clock_ns();
}

/* Sets that cannot hold URLs hold as many numbers instead. */
static uint64_t numbers_in(const struct contestant *c) {
    return c->trade->can(c, &ask_urls) ? numbers_among(c->n) : c->n;
}

/* Add members up to these numbers and URLs. Returns the time for the numbers.
 */
static double fill_up(struct contestant *c, struct segment *s, uint64_t numbers,
                      uint64_t urls) {
    double ns = 0;
    while (c->numbers < numbers) {
        take_members(s, c->numbers, at_most_segment(numbers - c->numbers));
        ns += run_timed(c, &add_numbers, s);
        c->numbers += s->n;
    }
    while (c->urls < urls && c->trade->can(c, &ask_urls)) {
        take_urls(s, url_members(), c->urls, at_most_segment(urls - c->urls));
        c->trade->run(c, &add_urls, s);
        c->urls += s->n;
    }
    return ns;
}

static void empty(struct contestant *c) {
    c->trade->clear(c);
    c->numbers = c->urls = 0;
}

/* One lookup at the end, for a set that postpones work until then. */
static double build(struct contestant *c) {
    const uint64_t before = c->bytes ? 0 : huge_bytes();
    struct segment *s = malloc(sizeof *s);
    empty(c);
    double ns = fill_up(c, s, numbers_in(c), urls_among(c->n));
    take_members(s, 0, 1);
    ns += run_timed(c, &ask_one, s);
    free(s);
    if (!c->bytes) {
        const uint64_t after = huge_bytes();
        c->huge_bytes += after > before ? after - before : 0;
        c->bytes = c->trade->bytes(c);
    }
    return ns / (double)numbers_in(c);
}

static void empty_by_half(struct contestant *c, struct segment *s) {
    empty(c);
    fill_up(c, s, numbers_in(c) / 2, urls_among(c->n) / 2);
}

/* ---- A pass -------------------------------------------------------------- */

struct pass {
    struct contestant *who;
    const struct task *task;
    int round, thread;
    pthread_barrier_t *start;
    int *finished; /* threads that are done: what follows is not shared */
    double best;
    double spent; /* ns */
};

static void time_of(struct pass *p, struct segment *s) {
    const double start = now();
    const size_t found = p->who->trade->run(p->who, p->task, s);
    const double took = now() - start - clock_ns();
    const bool asks = p->task->verb == HAS || p->task->verb == REMOVE;
    if (asks && p->who->answers && p->task->present == 100 && found < s->n) {
        fprintf(stderr, "calyx-bench: %s lost a key\n", p->who->name);
        exit(1);
    }
    const bool counts = __atomic_load_n(p->finished, __ATOMIC_RELAXED) == 0;
    if (counts && took / (double)s->n < p->best) p->best = took / (double)s->n;
    p->spent += took;
}

static bool is_over(const struct pass *p, int segments) {
    return segments >= LONG_PASS ||
           (segments >= PASS && p->spent >= (double)PATIENCE);
}

/* Where the members of a task's form are, that a set has or not yet. */
struct supply {
    uint64_t *next, all;
    size_t size; /* of a segment */
};

static struct supply supply_of(struct contestant *c, enum form form) {
    const uint64_t all = form == URLS ? urls_among(c->n) : numbers_in(c);
    return (struct supply){form == URLS ? &c->urls : &c->numbers, all,
                           segment_of_half(all)};
}

/* False when all are in. Threads take from one supply. */
static bool take_new(const struct supply *supply, const struct task *task,
                     struct segment *s) {
    const uint64_t from =
        __atomic_fetch_add(supply->next, supply->size, __ATOMIC_RELAXED);
    if (from + supply->size > supply->all) return false;
    if (task->form == URLS)
        take_urls(s, url_members(), from, supply->size);
    else
        take_members(s, from, supply->size);
    return true;
}

/* Several threads stop when the supply is used up; one starts over. */
static void add_pass(struct pass *p, struct segment *s) {
    const struct supply supply = supply_of(p->who, p->task->form);
    for (int i = 0; i < ADD_PASS; i++) {
        if (!take_new(&supply, p->task, s)) {
            if (p->task->threads > 1) return;
            empty_by_half(p->who, s);
            take_new(&supply, p->task, s);
        }
        time_of(p, s);
    }
}

static void has_pass(struct pass *p, struct segment *s) {
    const uint64_t first = (uint64_t)(p->round * p->task->threads + p->thread);
    for (int i = 0; !is_over(p, i); i++) {
        take_lookups(s, p->task, p->who->n, first * LONG_PASS + (uint64_t)i);
        time_of(p, s);
    }
}

static void remove_pass(struct pass *p, struct segment *s) {
    const uint64_t numbers = numbers_among(p->who->n);
    const size_t size = segment_of_half(numbers);
    for (uint64_t i = 0; i < PASS; i++) {
        take_members(s, i * size % (numbers - size), size);
        time_of(p, s);
        p->who->trade->run(p->who, &add_numbers, s);
    }
}

static void *run_pass(void *pass) {
    struct pass *p = pass;
    struct segment *s = malloc(sizeof *s);
    p->best = INFINITY;
    pthread_barrier_wait(p->start);
    switch (p->task->verb) {
        case HAS: has_pass(p, s); break;
        case REMOVE: remove_pass(p, s); break;
        default: add_pass(p, s); break;
    }
    __atomic_fetch_add(p->finished, 1, __ATOMIC_RELAXED);
    free(s);
    return NULL;
}

/* See to it that several threads find enough to add. */
static void prepare(struct contestant *who, const struct task *task) {
    if (task->threads == 1 || task->verb == HAS) return;
    const struct supply supply = supply_of(who, task->form);
    const uint64_t wanted = ADD_PASS * (uint64_t)task->threads * supply.size;
    if (*supply.next + wanted <= supply.all) return;
    struct segment *s = malloc(sizeof *s);
    empty_by_half(who, s);
    free(s);
}

/* ns a key by all threads together. */
static double passes(struct contestant *who, const struct task *task,
                     int round) {
    struct pass pass[MOST_THREADS];
    pthread_t id[MOST_THREADS];
    pthread_barrier_t start;
    int finished = 0;
    prepare(who, task);
    pthread_barrier_init(&start, NULL, (unsigned)task->threads);
    for (int t = 0; t < task->threads; t++) {
        pass[t] = (struct pass){who, task, round, t, &start, &finished, 0, 0};
        if (t > 0) pthread_create(&id[t], NULL, run_pass, &pass[t]);
    }
    run_pass(&pass[0]);
    double per_ns = 1 / pass[0].best;
    for (int t = 1; t < task->threads; t++) {
        pthread_join(id[t], NULL);
        per_ns += 1 / pass[t].best;
    }
    pthread_barrier_destroy(&start);
    return 1 / per_ns;
}

/* ---- Rounds -------------------------------------------------------------- */

static bool can(const struct contestant *c, const struct task *task) {
    if (task->verb == BUILD) return true;
    return c->trade->can(c, task) &&
           (task->threads == 1 || task->verb == HAS || c->shared);
}

/* The contestant before has left its own set in the caches. It takes many
 * touches of every line until they are there to stay: a shared cache does not
 * give up what others used a moment ago. The keys do not
 * matter, so they are made quickly. */
static void warm_up(struct contestant *c) {
    static uint64_t number;
    const struct task ask = {"", HAS, NUMBERS, false, 0, 1, 0};
    if (c->bytes == 0 || c->bytes > CACHES) return;
    struct segment *s = malloc(sizeof *s);
    const double end = now() + (double)WARM_UP;
    s->n = SEGMENT;
    do {
        for (size_t i = 0; i < SEGMENT; i++)
            s->numbers[i] = number += UINT64_C(0x9E3779B97F4A7C15);
        c->trade->run(c, &ask, s);
    } while (now() < end);
    free(s);
}

static double do_task(struct contestant *c, const struct task *task,
                      int round) {
    if (task->verb == BUILD) return build(c);
    warm_up(c);
    return passes(c, task, round);
}

/* One task after another, and each by everyone at nearly the same time: what
 * others do on the machine, and leave of its caches, changes within a second.
 */
void compete(struct contestant *who, int count, const struct task *tasks, int n,
             int rounds, struct results *out) {
    for (int t = 0; t < n; t++)
        for (int i = 0; i < count; i++) out[t].of[i].rounds = 0;
    for (int round = 0; round < rounds; round++)
        for (int t = 0; t < n; t++)
            for (int i = 0; i < count; i++) {
                struct series *const s = &out[t].of[i];
                if (can(&who[i], &tasks[t]))
                    s->ns[s->rounds++] = do_task(&who[i], &tasks[t], round);
            }
}

/* A million lookups give a rate of 0.1 % to about 3 % of it. */
void measure_rate(struct contestant *c) {
    if (!c->answers) return;
    const struct task ask = {"", HAS, NUMBERS, false, 0, 1, 0};
    struct segment *s = malloc(sizeof *s);
    uint64_t found = 0, asked = 0;
    for (uint64_t turn = 1u << 20; asked < 1000000; turn++) {
        take_lookups(s, &ask, c->n, turn);
        found += c->trade->run(c, &ask, s);
        asked += s->n;
    }
    c->rate = (double)found / (double)asked;
    free(s);
}
