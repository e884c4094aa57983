/* The single calls inlined by hand, on memory of their own. */
#include "inlined.h"

#include <stdlib.h>
#include <string.h>

#include "kind/counting.c" /* what the line kernels are linked with */
#include "kind/line.h"
#include "kind/line_rate.c"

struct body {
    struct shape shape;
    const struct inlined *kernel;
    size_t bytes;
    uint8_t *start;
};

static const struct inlined *kernel_of(const char *level) {
#if ON_X86
    if (strncmp(level, "avx", 3) == 0) return &inlined_avx2;
#endif
    (void)level;
    return &inlined_scalar;
}

static bool make(struct contestant *c, uint64_t n, double fpr) {
    calyx_info info;
    const calyx_options like = {.capacity = n, .fpr = fpr};
    if (calyx_plan(&like, &info, NULL) != CALYX_OK) return false;
    struct body *b = malloc(sizeof *b);
    b->kernel = kernel_of(c->kernel);
    b->shape = (struct shape){.blocks = info.bytes / LINE_BYTES,
                              .probes = info.probes};
    b->bytes = (size_t)info.bytes;
    b->start = take_pages(b->bytes);
    c->self = b;
    return b->start != NULL;
}

static void clear(struct contestant *c) {
    struct body *b = c->self;
    memset(b->start, 0, b->bytes);
}

static void end(struct contestant *c) {
    struct body *b = c->self;
    give_pages(b->start, b->bytes);
    free(b);
}

/* It is filled by batches too, for want of anything better to do. */
static bool can(const struct contestant *c, const struct task *task) {
    (void)c;
    return task->form != HASHES && task->single &&
           (task->verb == HAS || task->verb == ADD);
}

static size_t run(struct contestant *c, const struct task *task,
                  struct segment *s) {
    const struct body *b = c->self;
    if (task->verb == HAS) return b->kernel->has(b->start, &b->shape, task, s);
    b->kernel->add(b->start, &b->shape, task, s);
    return 0;
}

static uint64_t bytes(const struct contestant *c) {
    const struct body *b = c->self;
    return b->bytes;
}

static const struct trade trade = {make, clear, end, can, run, bytes};

int inlined_contestants(struct contestant *to) {
    *to = (struct contestant){
        .trade = &trade, .answers = true, .kernel = *calyx_kernels()};
    snprintf(to->name, sizeof to->name, "line/%s inlined", to->kernel);
    return 1;
}
