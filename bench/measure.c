/* Passes, rounds, and what is made of them. */
#define _DEFAULT_SOURCE /* madvise */
#define XXH_INLINE_ALL
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <xxhash.h>

#include "bench.h"

enum {
    PASS = 24,         /* segments, when asking or removing        */
    WARM_UP = 128,     /* segments, to bring a set into the caches */
    CACHES = 64 << 20, /* bytes; larger sets would not stay there  */
    MOST_THREADS = 16
};

double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

/* ---- Memory -------------------------------------------------------------- */

static const size_t HUGE = (size_t)2 << 20;

static size_t rounded(size_t bytes) {
    return (bytes + HUGE - 1) / HUGE * HUGE;
}

void *take_pages(size_t bytes) {
    const size_t kept = rounded(bytes);
    void *pages = aligned_alloc(HUGE, kept);
    if (!pages) return NULL;
    madvise(pages, kept, MADV_HUGEPAGE);
    return memset(pages, 0, kept);
}

void give_pages(void *pages, size_t bytes) {
    (void)bytes;
    free(pages);
}

/* ---- Segments ------------------------------------------------------------ */

/* So many of n members are URLs; the others are numbers. */
static uint64_t urls_among(uint64_t n) {
    return n / 2 < POOL ? n / 2 : POOL;
}

static uint64_t numbers_among(uint64_t n) {
    return n - urls_among(n);
}

/* Small sets are met in small segments, so that there are some. */
static size_t segment_for(uint64_t n) {
    const uint64_t quarter = n / 4 + 1;
    return quarter < SEGMENT ? (size_t)quarter : SEGMENT;
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
                      uint64_t limit) {
    const uint64_t left = limit - from;
    s->n = left < segment_for(limit) ? (size_t)left : segment_for(limit);
    s->urls = urls + from;
}

/* Questions number `turn`, about a set of n. */
static void take_questions(struct segment *s, const struct task *task,
                           uint64_t n, uint64_t turn) {
    if (task->form == URLS) {
        const uint64_t urls = urls_among(n), size = segment_for(urls);
        const uint64_t segments = urls / size;
        take_urls(s, url_pool(task->present), turn % segments * size, urls);
        return;
    }
    s->n = segment_for(n);
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t dice = mixed(turn * SEGMENT + i + (UINT64_C(1) << 61));
        s->numbers[i] = (int)(dice % 100) < task->present
                            ? member(scaled(dice, numbers_among(n)))
                            : stranger(turn * SEGMENT + i);
    }
    hash_numbers(s);
}

/* ---- A pass -------------------------------------------------------------- */

struct pass {
    struct contestant *who;
    const struct task *task;
    int round, thread, threads;
    pthread_barrier_t *start;
    int *finished; /* threads that are done: what follows is not shared */
    double best;
};

static double time_of(struct pass *p, struct segment *s) {
    const double start = now();
    const size_t found = p->who->trade->run(p->who, p->task, s);
    const double ns = (now() - start) / (double)s->n;
    if (p->who->answers && p->task->verb != ADD && p->task->verb != ADD_FRESH &&
        p->task->present == 100 && found < s->n) {
        fprintf(stderr, "calyx-bench: %s lost a key\n", p->who->name);
        exit(1);
    }
    const bool counts = __atomic_load_n(p->finished, __ATOMIC_RELAXED) == 0;
    if (counts && ns < p->best) p->best = ns;
    return ns;
}

static const struct task add_numbers = {"", ADD, NUMBERS, false, 0};
static const struct task add_urls = {"", ADD, URLS, false, 0};

/* Add members with numbers from `from` to `to`; timed from `clock` on. */
static void add_some(struct pass *p, struct segment *s, uint64_t from,
                     uint64_t to, uint64_t clock) {
    const uint64_t size = segment_for(p->who->n);
    const uint64_t stride = size * (uint64_t)p->threads;
    for (from += size * (uint64_t)p->thread; from < to; from += stride) {
        take_members(s, from, (size_t)(to - from < size ? to - from : size));
        if (from >= clock && s->n == size)
            time_of(p, s);
        else
            p->who->trade->run(p->who, clock < to ? p->task : &add_numbers, s);
    }
}

static void add_pass(struct pass *p, struct segment *s) {
    const uint64_t n = p->who->n;
    if (p->task->form != URLS) {
        add_some(p, s, 0, n, n / 2);
        return;
    }
    add_some(p, s, 0, numbers_among(n), UINT64_MAX);
    const uint64_t urls = urls_among(n), size = segment_for(urls);
    for (uint64_t at = 0; at < urls; at += size) {
        take_urls(s, url_members(), at, urls);
        time_of(p, s);
    }
}

static void has_pass(struct pass *p, struct segment *s) {
    const int first = (p->round * p->threads + p->thread) * PASS;
    for (int i = 0; i < PASS; i++) {
        take_questions(s, p->task, p->who->n, (uint64_t)(first + i));
        time_of(p, s);
    }
}

static void remove_pass(struct pass *p, struct segment *s) {
    const size_t size = segment_for(p->who->n);
    for (uint64_t i = 0; i < PASS; i++) {
        take_members(s, i * size % (numbers_among(p->who->n) - size), size);
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

/* ns a key by all threads together. */
static double passes(struct contestant *who, const struct task *task, int round,
                     int threads) {
    struct pass pass[MOST_THREADS];
    pthread_t id[MOST_THREADS];
    pthread_barrier_t start;
    int finished = 0;
    if (task->verb == ADD || task->verb == ADD_FRESH) who->trade->clear(who);
    pthread_barrier_init(&start, NULL, (unsigned)threads);
    for (int t = 0; t < threads; t++) {
        pass[t] =
            (struct pass){who, task, round, t, threads, &start, &finished, 0};
        if (t > 0) pthread_create(&id[t], NULL, run_pass, &pass[t]);
    }
    run_pass(&pass[0]);
    double per_ns = 1 / pass[0].best;
    for (int t = 1; t < threads; t++) {
        pthread_join(id[t], NULL);
        per_ns += 1 / pass[t].best;
    }
    pthread_barrier_destroy(&start);
    return 1 / per_ns;
}

/* ---- Rounds -------------------------------------------------------------- */

static bool can(const struct contestant *c, const struct task *task,
                int threads) {
    return c->trade->can(c, task) &&
           (threads == 1 || task->verb == HAS || c->shared);
}

/* The contestant before has left its own set in the caches. */
static void warm_up(struct contestant *c) {
    const struct task ask = {"", HAS, NUMBERS, false, 50};
    struct segment *s = malloc(sizeof *s);
    if (c->trade->bytes(c) <= CACHES)
        for (uint64_t turn = 0; turn < WARM_UP; turn++) {
            take_questions(s, &ask, c->n, turn + (UINT64_C(1) << 30));
            c->trade->run(c, &ask, s);
        }
    free(s);
}

static bool is_filled_for(const struct task *task) {
    return task->verb == HAS || task->verb == REMOVE;
}

void compete(struct contestant *who, int count, const struct task *tasks, int n,
             int rounds, int threads, struct results *out) {
    for (int t = 0; t < n; t++)
        for (int i = 0; i < count; i++) out[t].of[i].rounds = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < count; i++) {
            if (is_filled_for(&tasks[0])) warm_up(&who[i]);
            for (int t = 0; t < n; t++) {
                struct series *const s = &out[t].of[i];
                if (can(&who[i], &tasks[t], threads))
                    s->ns[s->rounds++] =
                        passes(&who[i], &tasks[t], round, threads);
            }
        }
}

void fill(struct contestant *c, uint64_t n) {
    int none = 0;
    struct segment *s = malloc(sizeof *s);
    struct pass p = {
        .who = c, .task = &add_numbers, .threads = 1, .finished = &none};
    c->n = n;
    c->trade->clear(c);
    add_some(&p, s, 0, numbers_among(n), UINT64_MAX);
    const struct task ask = {"", HAS, URLS, true, 0};
    const uint64_t urls = urls_among(n), size = segment_for(urls);
    for (uint64_t at = 0; c->trade->can(c, &ask) && at < urls; at += size) {
        take_urls(s, url_members(), at, urls);
        c->trade->run(c, &add_urls, s);
    }
    free(s);
}

void measure_rate(struct contestant *c) {
    if (!c->answers) return;
    const struct task ask = {"", HAS, NUMBERS, false, 0};
    struct segment *s = malloc(sizeof *s);
    uint64_t found = 0, asked = 0;
    for (uint64_t turn = 1u << 20; asked < 1000000; turn++) {
        take_questions(s, &ask, c->n, turn);
        found += c->trade->run(c, &ask, s);
        asked += s->n;
    }
    c->rate = (double)found / (double)asked;
    free(s);
}

/* ---- Figures ------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct figure figure_of(const struct series *given) {
    struct series s = *given;
    qsort(s.ns, (size_t)s.rounds, sizeof *s.ns, compare);
    const int last = s.rounds - 1;
    return (struct figure){(s.ns[last / 2] + s.ns[(last + 1) / 2]) / 2,
                           s.ns[last - last / 4] - s.ns[last / 4]};
}

struct figure ratio_of(const struct series *a, const struct series *b) {
    struct series ratio = {.rounds = a->rounds};
    for (int i = 0; i < a->rounds; i++) ratio.ns[i] = a->ns[i] / b->ns[i];
    return figure_of(&ratio);
}

struct series sum_of(const struct series *a, const struct series *b) {
    struct series sum = *a;
    for (int i = 0; i < a->rounds; i++) sum.ns[i] += b->ns[i];
    return sum;
}

bool is_clear(struct figure ratio) {
    return fabs(ratio.median - 1) > ratio.spread;
}
