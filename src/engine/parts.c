/* The memory of parts and heads. */
#include <string.h>

#include "base/bits.h"
#include "base/memory.h"
#include "engine/engine.h"

/* ---- Memory -------------------------------------------------------------- */

void *take_block(const calyx_memory *memory, size_t size) {
    return memory->allocate(memory->context, size, ALIGNMENT);
}

void *take_struct(const calyx_memory *memory, size_t size) {
    return memory->allocate(memory->context, size, sizeof(uint64_t));
}

void give_block(const calyx_memory *memory, void *block, size_t size) {
    memory->release(memory->context, block, size);
}

static uint64_t rounded_bytes(uint64_t bits) {
    return (bits + 8 * ALIGNMENT - 1) / (8 * ALIGNMENT) * ALIGNMENT;
}

uint64_t bits_bytes(const struct kind *kind, const struct shape *shape) {
    return rounded_bytes(kind_bits(kind, shape));
}

uint64_t body_bytes(const struct kind *kind, const struct shape *shape) {
    return bits_bytes(kind, shape) +
           rounded_bytes(kind_counter_bits(kind, shape));
}

uint64_t row_bytes_to(const struct kind *kind, const struct part *p) {
    uint64_t bytes = 0;
    for (; p; p = p->older) bytes += bits_bytes(kind, &p->shape);
    return bytes;
}

bool is_in_pieces(const struct part *p) {
    return p->lines != NULL;
}

uint8_t *body_at(const calyx_filter *f, const struct part *p, uint64_t from,
                 size_t *size) {
    if (!is_in_pieces(p)) return p->body + from;
    const uint64_t first = bits_bytes(f->kind, &p->shape);
    if (from >= first) return p->lines + (from - first);
    if (*size > first - from) *size = (size_t)(first - from);
    return p->body + from;
}

void get_from_body(const calyx_filter *f, const struct part *p, uint64_t from,
                   uint8_t *to, size_t size) {
    while (size > 0) {
        size_t some = size;
        const uint8_t *const at = body_at(f, p, from, &some);
        if (is_shared(f))
            peek_bytes(to, at, some);
        else
            memcpy(to, at, some);
        from += some, to += some, size -= some;
    }
}

void put_to_body(const calyx_filter *f, const struct part *p, uint64_t from,
                 const uint8_t *bytes, size_t size) {
    while (size > 0) {
        size_t some = size;
        uint8_t *const at = body_at(f, p, from, &some);
        memcpy(at, bytes, some);
        from += some, bytes += some, size -= some;
    }
}

/* ---- Bodies -------------------------------------------------------------- */

bool take_whole_body(const calyx_filter *f, struct part *p) {
    const uint64_t size = body_bytes(f->kind, &p->shape);
    if (size <= SIZE_MAX) p->body = take_block(&f->memory, (size_t)size);
    return p->body != NULL;
}

void give_whole_body(const calyx_filter *f, struct part *p) {
    give_block(&f->memory, p->body, (size_t)body_bytes(f->kind, &p->shape));
}

static bool take_body(const calyx_filter *f, struct part *p) {
    return f->engine->take_body ? f->engine->take_body(f, p)
                                : take_whole_body(f, p);
}

static void give_body(const calyx_filter *f, struct part *p) {
    if (f->engine->give_body)
        f->engine->give_body(f, p);
    else
        give_whole_body(f, p);
}

/* ---- Parts --------------------------------------------------------------- */

void free_part(const calyx_filter *f, struct part *p) {
    if (!f->lent) give_body(f, p);
    give_block(&f->memory, p, sizeof *p);
}

void free_newest(calyx_filter *f) {
    struct part *p = f->newest;
    f->newest = p->older;
    free_part(f, p);
}

static struct part *make_struct(const calyx_filter *f, const struct part *like,
                                uint8_t *body) {
    struct part *const p = take_struct(&f->memory, sizeof *p);
    if (!p) return NULL;
    *p = *like;
    p->body = body;
    p->lines = NULL;
    return p;
}

struct part *make_part(const calyx_filter *f, const struct part *like) {
    struct part *const p = make_struct(f, like, NULL);
    if (!p || take_body(f, p)) return p;
    give_block(&f->memory, p, sizeof *p);
    return NULL;
}

static calyx_status open_first(calyx_filter *f, const struct part *p) {
    return f->engine->open_first && !f->newest
               ? f->engine->open_first(f, &p->shape)
               : CALYX_OK;
}

static calyx_status put_part(calyx_filter *f, struct part *p) {
    if (!p) return CALYX_NO_MEMORY;
    p->older = f->newest;
    __atomic_store_n(&f->newest, p, __ATOMIC_RELEASE);
    if (!f->engine->take_part || f->engine->take_part(f) == CALYX_OK)
        return CALYX_OK;
    f->newest = p->older;
    return CALYX_NO_MEMORY;
}

calyx_status allocate_part(calyx_filter *f, const struct part *like) {
    if (open_first(f, like) != CALYX_OK) return CALYX_NO_MEMORY;
    struct part *const p = make_part(f, like);
    const calyx_status status = put_part(f, p);
    if (status != CALYX_OK && p) free_part(f, p);
    return status;
}

calyx_status borrow_part(calyx_filter *f, const struct part *like,
                         uint8_t *body) {
    if (open_first(f, like) != CALYX_OK) return CALYX_NO_MEMORY;
    struct part *const p = make_struct(f, like, body);
    const calyx_status status = put_part(f, p);
    if (status != CALYX_OK && p) give_block(&f->memory, p, sizeof *p);
    return status;
}

void return_first_part(calyx_filter *f) {
    struct part **link = &f->newest;
    while (*link && (*link)->older) link = &(*link)->older;
    if (!*link) return;
    give_block(&f->memory, *link, sizeof **link);
    *link = NULL;
}

struct part like_part(const struct part *p) {
    return (struct part){
        .shape = p->shape,
        .capacity = p->capacity,
        .items = items_of(p),
        .fpr = p->fpr,
    };
}

/* ---- Heads --------------------------------------------------------------- */

struct calyx_filter head_of(const calyx_filter *f) {
    return (calyx_filter){
        .kind = f->kind,
        .kernel = f->kernel,
        .hash = f->hash,
        .secret = f->secret,
        .memory = f->memory,
        .fpr = f->fpr,
        .growth = f->growth,
        .strict = f->strict,
        .concurrent = f->concurrent,
    };
}

calyx_status allocate_head(const calyx_filter *head, calyx_filter **out) {
    calyx_filter *f = take_struct(&head->memory, sizeof *f);
    if (!f) return CALYX_NO_MEMORY;
    *f = *head;
    f->read_only = is_static(f);
    choose_engine(f);
    if (f->engine->open && f->engine->open(f) != CALYX_OK) {
        give_block(&head->memory, f, sizeof *f);
        return CALYX_NO_MEMORY;
    }
    *out = f;
    return CALYX_OK;
}

void give_structs(calyx_filter *f) {
    const calyx_memory memory = f->memory;
    for (struct part *p = f->newest, *older; p; p = older) {
        older = p->older;
        give_block(&memory, p, sizeof *p);
    }
    if (f->engine->close) f->engine->close(f);
    give_block(&memory, f, sizeof *f);
}

static const struct engine *engine_for(const calyx_filter *f) {
#if !CALYX_NO_BUCKET
    if (f->kind->segments) return &table_engine;
    if (f->kind->is_table) return &fixed_engine;
#endif
    if (f->kind->construction)
        return f->newest && f->newest->shape.values ? &exact_engine
                                                    : &layers_engine;
    if (f->growth > 0 || f->strict || (f->newest && f->newest->older) ||
        (f->concurrent && !f->kind->one_block))
        return &chain_engine;
    return f->concurrent ? &striped_engine : &bits_engine;
}

void choose_engine(calyx_filter *f) {
    f->engine = engine_for(f);
    choose_calls(f);
}

calyx_status choose_engine_again(calyx_filter *f) {
    choose_engine(f);
    return CALYX_OK;
}

const struct calls *unlisted_calls(const calyx_filter *f) {
    return f->lent ? &mapped_calls : &f->engine->calls;
}

bool is_wrapped(const calyx_filter *f) {
    return f->calls != &f->engine->calls;
}

void choose_calls(calyx_filter *f) {
    f->calls = f->allowed ? &listed_calls : unlisted_calls(f);
}
