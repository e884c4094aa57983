/* The single calls as if the library were part of the caller: its own kernel,
 * compiled into a loop that hashes and asks, with nothing in between. One file
 * for each level includes the library's source and then this. */
#ifndef BENCH_INLINED_H
#define BENCH_INLINED_H

#include "bench.h"
#include "kind/kernel.h"

struct inlined {
    size_t (*has)(const uint8_t *body, const struct shape *shape,
                  const struct task *task, struct segment *s);
    void (*add)(uint8_t *body, const struct shape *shape,
                const struct task *task, struct segment *s);
};

extern const struct inlined inlined_scalar, inlined_avx2;

/* Inline whatever the functions call, and what that calls. */
#define WHOLE __attribute__((flatten))

#define INLINED(name, TARGET, has_one, add_one)                                \
    TARGET WHOLE static size_t name##_has(                                     \
        const uint8_t *body, const struct shape *given,                        \
        const struct task *task, struct segment *s) {                          \
        const struct shape shape = *given;                                     \
        size_t found = 0;                                                      \
        if (task->form == NUMBERS)                                             \
            for (size_t i = 0; i < s->n; i++)                                  \
                found += s->answers[i] = has_one(                              \
                    body, &shape, XXH3_64bits_withSeed(&s->numbers[i], 8, 0)); \
        else                                                                   \
            for (size_t i = 0; i < s->n; i++)                                  \
                found += s->answers[i] =                                       \
                    has_one(body, &shape,                                      \
                            XXH3_64bits_withSeed(s->urls[i].data,              \
                                                 s->urls[i].size, 0));         \
        return found;                                                          \
    }                                                                          \
    TARGET WHOLE static void name##_add(                                       \
        uint8_t *body, const struct shape *given, const struct task *task,     \
        struct segment *s) {                                                   \
        const struct shape shape = *given;                                     \
        if (task->form == NUMBERS)                                             \
            for (size_t i = 0; i < s->n; i++)                                  \
                add_one(body, &shape,                                          \
                        XXH3_64bits_withSeed(&s->numbers[i], 8, 0));           \
        else                                                                   \
            for (size_t i = 0; i < s->n; i++)                                  \
                add_one(body, &shape,                                          \
                        XXH3_64bits_withSeed(s->urls[i].data, s->urls[i].size, \
                                             0));                              \
    }                                                                          \
    const struct inlined name = {name##_has, name##_add};

#endif
