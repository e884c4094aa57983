/*
 * The negative control of test/unit/thread_add.c. This program is linked with a
 * library that adds without locks (CALYX_NO_STRIPE_LOCKS): a thread that loads
 * a word, adds its bits and stores it undoes what another stored in between. So
 * the test there, done here, must lose keys. It does what the test does, until
 * it has seen that, and succeeds if it has. A round in which both threads run
 * at once loses keys: with two processors and 20 busy threads, one in 2,500, so
 * that a million rounds without are less likely than 1 in 10^9.
 */
#include <calyx/calyx.h>
#include <pthread.h>
#include <stdio.h>

enum { EACH = 1000, ROUNDS = 1000000, BATCH = 500 };

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    calyx_filter *f;
    uint64_t from, to;
};

static void *adder(void *argument) {
    struct worker *w = argument;
    uint64_t numbers[BATCH];
    pthread_barrier_wait(w->start);
    for (uint64_t i = w->from; i < w->to;) {
        size_t n = 0;
        while (n < BATCH && i < w->to) numbers[n++] = i++;
        calyx_add_many_u64(w->f, numbers, n, NULL, NULL);
    }
    return NULL;
}

/* Two threads add a thousand keys each, at once; returns how many are lost. */
static uint64_t lost_in_a_round(calyx_filter *f, uint64_t first) {
    pthread_barrier_t start;
    struct worker workers[2] = {
        {.start = &start, .f = f, .from = first, .to = first + EACH},
        {.start = &start,
         .f = f,
         .from = first + EACH,
         .to = first + 2 * EACH}};
    if (pthread_barrier_init(&start, NULL, 2) != 0) return 0;
    if (pthread_create(&workers[0].thread, NULL, adder, &workers[0]) != 0)
        return 0;
    adder(&workers[1]);
    pthread_join(workers[0].thread, NULL);
    pthread_barrier_destroy(&start);

    uint64_t lost = 0;
    for (uint64_t i = first; i < first + 2 * EACH; i++)
        lost += !calyx_has_u64(f, i);
    return lost;
}

int main(void) {
    calyx_filter *f;
    const calyx_options want = {.capacity = 2 * EACH, .concurrent = true};
    if (calyx_new(&want, &f, NULL) != CALYX_OK) return 2;
    uint64_t lost = 0, rounds = 0;
    while (lost < 10 && rounds < ROUNDS) {
        calyx_clear(f);
        lost += lost_in_a_round(f, 2 * EACH * rounds++);
    }
    calyx_free(f);
    printf("without locks, %llu of %llu keys were lost\n",
           (unsigned long long)lost, (unsigned long long)(2 * EACH * rounds));
    return lost > 0 ? 0 : 1;
}
