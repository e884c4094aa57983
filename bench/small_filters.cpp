/*
 * Filters of 30 keys, as LevelDB has beside each block: lookups through its
 * policy interface, with LevelDB's own policy, with calyx_hash and
 * calyx_bits_has alone, and with integrations/leveldb, which also checks every
 * filter against its mark. Prints the times of a lookup and their ratios to
 * LevelDB's own, medians of many rounds taken in turn.
 */
#include <leveldb/filter_policy.h>
#include <leveldb/slice.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <string>
#include <vector>

#include "policy.h"

namespace {

constexpr int kFilters = 2000, kKeys = 30, kQueries = 30, kRounds = 41;

std::string KeyOf(int filter, int i) {
    char text[32];
    std::snprintf(text, sizeof text, "user%08d/%04d", filter, i);
    return text;
}

/* Of this thread, in nanoseconds: other processes may be busy. */
double ProcessorTime() {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return 1e9 * static_cast<double>(now.tv_sec) +
           static_cast<double>(now.tv_nsec);
}

/* As LevelDB's own: the bits, and a byte for the probes. */
class Plain : public leveldb::FilterPolicy {
  public:
    Plain() {
        calyx_options want = {};
        want.kind = "flat";
        want.capacity = kKeys;
        calyx_error why;
        if (calyx_shape_plan(&want, &flat_, &why) != CALYX_OK ||
            calyx_new(&want, &hasher_, &why) != CALYX_OK)
            std::fprintf(stderr, "%s\n", why.text);
    }
    ~Plain() override {
        calyx_free(hasher_);
    }
    const char *Name() const override {
        return "plain";
    }
    void CreateFilter(const leveldb::Slice *keys, int n,
                      std::string *to) const override {
        const calyx_shape shape = ShapeOf(static_cast<size_t>(n) * 10 / 8, 7);
        to->assign(static_cast<size_t>(n) * 10 / 8, 0);
        for (int i = 0; i < n; i++) {
            const uint64_t hash =
                calyx_hash(hasher_, keys[i].data(), keys[i].size());
            calyx_bits_add(shape, &(*to)[0], &hash, 1);
        }
        to->push_back(7);
    }
    bool KeyMayMatch(const leveldb::Slice &key,
                     const leveldb::Slice &filter) const override {
        const size_t size = filter.size() - 1;
        return calyx_bits_has(
            ShapeOf(size, static_cast<uint8_t>(filter.data()[size])),
            filter.data(), calyx_hash(hasher_, key.data(), key.size()));
    }

  private:
    calyx_shape ShapeOf(size_t size, uint32_t probes) const {
        calyx_shape shape = flat_;
        shape.blocks = 8 * size; // of this kind, a block is a bit
        shape.probes = probes;
        return shape;
    }
    calyx_filter *hasher_ = nullptr;
    calyx_shape flat_ = {};
};

struct Side {
    const char *name;
    const leveldb::FilterPolicy *policy;
    std::vector<std::string> filters;
    std::vector<double> times;
    long found;
};

void Fill(Side *side) {
    for (int f = 0; f < kFilters; f++) {
        std::vector<std::string> keys;
        for (int i = 0; i < kKeys; i++) keys.push_back(KeyOf(f, i));
        std::vector<leveldb::Slice> slices(keys.begin(), keys.end());
        side->filters.emplace_back();
        side->policy->CreateFilter(slices.data(), kKeys, &side->filters.back());
    }
}

/* Half of the keys looked up are there. */
void Run(Side *side, const std::vector<std::string> &queries) {
    const double start = ProcessorTime();
    size_t at = 0;
    for (int f = 0; f < kFilters; f++)
        for (int i = 0; i < kQueries; i++)
            side->found +=
                side->policy->KeyMayMatch(queries[at++], side->filters[f]);
    const double took = ProcessorTime() - start;
    side->times.push_back(took / (kFilters * kQueries));
}

double Median(std::vector<double> times) {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
}

} // namespace

int main() {
    calyx_error why;
    leveldb_filterpolicy_t *const made = calyx_leveldb_policy(10, &why);
    if (!made) {
        std::fprintf(stderr, "%s\n", why.text);
        return 1;
    }
    const Plain plain;
    Side sides[] = {
        {"LevelDB's own policy", leveldb::NewBloomFilterPolicy(10), {}, {}, 0},
        {"calyx_hash, calyx_bits_has", &plain, {}, {}, 0},
        /* A struct of LevelDB's, whose only base is FilterPolicy. */
        {"integrations/leveldb, with its mark",
         reinterpret_cast<const leveldb::FilterPolicy *>(made),
         {},
         {},
         0},
    };
    for (Side &side : sides) Fill(&side);
    std::vector<std::string> queries;
    for (int f = 0; f < kFilters; f++)
        for (int i = 0; i < kQueries; i++)
            queries.push_back(KeyOf(f, i % 2 ? i : kKeys + i));
    for (int round = 0; round < kRounds; round++)
        for (Side &side : sides) Run(&side, queries);
    std::printf("lookups in filters of %d keys, ns and ratio\n", kKeys);
    const double own = Median(sides[0].times);
    bool complete = true;
    for (const Side &side : sides) {
        const double time = Median(side.times);
        std::printf("  %-36s %6.1f %6.2f\n", side.name, time, time / own);
        complete &= side.found >= static_cast<long>(kFilters) * kQueries / 2;
    }
    leveldb_filterpolicy_destroy(made);
    delete sides[0].policy;
    return complete ? 0 : 1; // half of the keys are there
}
