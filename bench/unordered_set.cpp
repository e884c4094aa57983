/* The exact set that a C++ programmer has at hand. Of numbers only. */
#include <malloc.h>

#include <new>
#include <unordered_set>

#include "bench.h"

namespace {

uint64_t taken; /* by all sets, with what malloc itself adds to each piece */

/* Counts what it takes: a set does not know its own size. */
template <class T> struct counted {
    using value_type = T;
    counted() = default;
    template <class U> counted(const counted<U> &) {
    }
    T *allocate(size_t n) {
        void *const piece = ::operator new(n * sizeof(T));
        taken += malloc_usable_size(piece) + sizeof(size_t);
        return static_cast<T *>(piece);
    }
    void deallocate(T *piece, size_t) {
        taken -= malloc_usable_size(piece) + sizeof(size_t);
        ::operator delete(piece);
    }
    bool operator==(const counted &) const {
        return true;
    }
    bool operator!=(const counted &) const {
        return false;
    }
};

using set = std::unordered_set<uint64_t, std::hash<uint64_t>,
                               std::equal_to<uint64_t>, counted<uint64_t>>;

set *set_of(const contestant *c) {
    return static_cast<set *>(c->self);
}

/* With the number of keys reserved, as for the filters. */
void clear(contestant *c) {
    delete set_of(c);
    set *const fresh = new set;
    fresh->reserve(c->n);
    c->self = fresh;
}

bool make(contestant *c, uint64_t, double) {
    c->self = nullptr;
    clear(c);
    return true;
}

void end(contestant *c) {
    delete set_of(c);
}

bool can(const contestant *, const task *task) {
    return task->form == NUMBERS && task->single && task->verb == HAS;
}

size_t run(contestant *c, const task *task, segment *s) {
    set &keys = *set_of(c);
    size_t found = 0;
    if (task->verb == HAS)
        for (size_t i = 0; i < s->n; i++)
            found += s->answers[i] = keys.count(s->numbers[i]) != 0;
    else
        for (size_t i = 0; i < s->n; i++) keys.insert(s->numbers[i]);
    return found;
}

uint64_t bytes(const contestant *) {
    return taken;
}

const trade unordered_trade = {make, clear, end, can, run, bytes};

} // namespace

int unordered_set_contestants(contestant *to) {
    *to = contestant{};
    snprintf(to->name, sizeof to->name, "std::unordered_set, exact");
    to->trade = &unordered_trade;
    to->answers = to->exact = true;
    return 1;
}
