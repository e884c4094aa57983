/* Boost.Bloom: its fastest filter, fed with hashes. CMake takes a version that
 * has batches. */
#include <boost/bloom/fast_multiblock32.hpp>
#include <boost/bloom/filter.hpp>
#include <boost/version.hpp>
#include <new>

#include "hashed.h"

namespace {

struct given { /* the key is a hash */
    using is_avalanching = void;
    std::size_t operator()(uint64_t hash) const {
        return hash;
    }
};

template <class T> struct on_huge_pages { /* as ours are */
    using value_type = T;
    on_huge_pages() = default;
    template <class U> on_huge_pages(const on_huge_pages<U> &) {
    }
    T *allocate(std::size_t n) {
        void *const pages = take_pages(n * sizeof(T));
        if (!pages) throw std::bad_alloc();
        return static_cast<T *>(pages);
    }
    void deallocate(T *pages, std::size_t n) {
        give_pages(pages, n * sizeof(T));
    }
    bool operator==(const on_huge_pages &) const {
        return true;
    }
    bool operator!=(const on_huge_pages &) const {
        return false;
    }
};

using filter =
    boost::bloom::filter<uint64_t, 1, boost::bloom::fast_multiblock32<8>, 0,
                         given, on_huge_pages<unsigned char>>;

filter *filter_of(const contestant *c) {
    return static_cast<filter *>(c->self);
}

bool make(contestant *c, uint64_t n, double fpr) {
    c->self = new (std::nothrow) filter(n, fpr);
    return c->self != nullptr;
}

void clear(contestant *c) {
    filter_of(c)->clear();
}

void end(contestant *c) {
    delete filter_of(c);
}

bool can(const contestant *, const task *task) {
    return task->verb == HAS || task->verb == ADD;
}

size_t has_each(const filter &f, enum form form, segment *s) {
    size_t found = 0;
    for (size_t i = 0; i < s->n; i++)
        found += s->answers[i] = f.may_contain(hash_at(s, form, i));
    return found;
}

void add_each(filter &f, enum form form, segment *s) {
    for (size_t i = 0; i < s->n; i++) f.insert(hash_at(s, form, i));
}

size_t has_many(const filter &f, const uint64_t *hashes, size_t n,
                bool *answers) {
    size_t found = 0;
    f.may_contain(hashes, hashes + n,
                  [&](uint64_t, bool yes) { found += *answers++ = yes; });
    return found;
}

size_t run(contestant *c, const task *task, segment *s) {
    filter &f = *filter_of(c);
    const size_t most = task->batch ? (size_t)task->batch : s->n;
    size_t found = 0;
    if (task->single && task->verb == HAS) return has_each(f, task->form, s);
    if (task->single) {
        add_each(f, task->form, s);
        return 0;
    }
    for (size_t i = 0; i < s->n; i += most) {
        const size_t n = s->n - i < most ? s->n - i : most;
        const uint64_t *const hashes = hashes_at(s, task->form, i, n);
        if (task->verb == HAS)
            found += has_many(f, hashes, n, s->answers + i);
        else
            f.insert(hashes, hashes + n);
    }
    return found;
}

uint64_t bytes(const contestant *c) {
    return filter_of(c)->capacity() / 8;
}

const trade boost_trade = {make, clear, end, can, run, bytes};

} // namespace

extern "C" int boost_contestants(contestant *to) {
    *to = contestant();
    snprintf(to->name, sizeof to->name, "Boost.Bloom");
    to->trade = &boost_trade;
    to->answers = true;
    return 1;
}
