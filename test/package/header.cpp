// The C++ header: every class, every way to fail, and the types that it must
// and must not accept. Run with a folder for files.
#include <calyx/calyx.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#define CHECK(true_sentence)                                              \
    do {                                                                  \
        if (!(true_sentence)) {                                           \
            std::fprintf(stderr, "header.cpp:%d: wanted: %s\n", __LINE__, \
                         #true_sentence);                                 \
            std::exit(1);                                                 \
        }                                                                 \
    } while (0)

namespace {

using numbers = std::vector<std::uint64_t>;

template <class T>
constexpr bool is_move_only =
    std::is_nothrow_move_constructible_v<T>
        &&std::is_nothrow_move_assignable_v<T> &&
    !std::is_copy_constructible_v<T> && !std::is_copy_assignable_v<T>;

static_assert(is_move_only<calyx::filter> && is_move_only<calyx::builder> &&
              is_move_only<calyx::live> && is_move_only<calyx::live_reader>);
static_assert(sizeof(calyx::filter) == sizeof(calyx_filter *));
static_assert(
    std::is_convertible_v<numbers &, calyx::span<const std::uint64_t>>);
static_assert(std::is_convertible_v<std::array<bool, 3> &, calyx::span<bool>>);
static_assert(!std::is_convertible_v<std::vector<bool> &, calyx::span<bool>>);
static_assert(!std::is_convertible_v<const bool (&)[3], calyx::span<bool>>);
static_assert(!std::is_convertible_v<std::vector<int> &,
                                     calyx::span<const std::uint64_t>>);

calyx_options options(std::uint64_t capacity) {
    calyx_options want{};
    want.capacity = capacity;
    return want;
}

calyx::filter make(std::uint64_t capacity) {
    auto made = calyx::filter::make(options(capacity));
    CHECK(made);
    return *std::move(made);
}

numbers from_1_to(std::uint64_t last) {
    numbers all;
    for (std::uint64_t i = 1; i <= last; i++) all.push_back(i);
    return all;
}

void a_filter_has_what_was_added() {
    calyx::filter f = make(1000);
    const auto first = f.add("rose");
    CHECK(first && *first);
    const auto again = f.add(std::string("rose"));
    CHECK(again && !*again);
    CHECK(!calyx::fresh(again) && calyx::fresh(f.add("lily")));
    CHECK(f.has("rose") && f.count("rose") == 1);
    CHECK(!f.has("tulip") && f.count("tulip") == 0);
    CHECK(f.has_hash(f.hash("rose")));
    CHECK(f.add_u64(7) && f.has_u64(7) && f.has_hash(f.hash_u64(7)));
    const std::uint64_t hash = f.hash("aster");
    CHECK(f.add_hash(hash) && f.has("aster"));
    CHECK(f.info().items == 4 && f.describe().fill > 0);
    CHECK(f.clear() && !f.has("rose"));
}

void batches_take_vectors_and_arrays() {
    calyx::filter f = make(1000);
    const calyx_key keys[] = {calyx::key("rose"), calyx::key("aster")};
    bool fresh[2] = {};
    CHECK(f.add_many(keys, fresh) && fresh[0] && fresh[1]);
    std::vector<calyx_key> asked(std::begin(keys), std::end(keys));
    asked.push_back(calyx::key("tulip"));
    std::array<bool, 3> found{};
    auto number = f.has_many(asked, found);
    CHECK(number && *number == 2 && found[0] && found[1] && !found[2]);

    const numbers all = from_1_to(100);
    std::size_t done = 0;
    CHECK(f.add_many_u64(all, {}, &done) && done == 100);
    number = f.has_many_u64(all);
    CHECK(number && *number == 100);
    const numbers hashes = {f.hash("lily"), f.hash("iris")};
    CHECK(f.add_hashes(hashes) && f.has("iris"));
    number = f.has_hashes(hashes);
    CHECK(number && *number == 2);
}

void answers_without_room_are_refused() {
    calyx::filter f = make(1000);
    const numbers three = {1, 2, 3};
    bool two[2] = {};
    const auto found = f.has_many_u64(three, two);
    CHECK(!found && found.error().status == CALYX_BAD_ARGUMENT);
    CHECK(std::string(found.error().text) ==
          "room for 2 answers, where there are 3 keys");
    std::size_t done = 9;
    CHECK(!f.add_many_u64(three, two, &done) && done == 0);
    CHECK(!f.has_hashes(three, two) && !f.add_hashes(three, two));
    const calyx_key keys[3] = {};
    CHECK(!f.has_many(keys, two) && !f.add_many(keys, two));
    CHECK(f.info().items == 0);
}

void errors_say_why() {
    calyx_options wrong = options(1000);
    wrong.fpr = 2;
    const auto made = calyx::filter::make(wrong);
    CHECK(!made && made.error().status == CALYX_BAD_ARGUMENT);
    CHECK(std::string(made.error().text).find("fpr") != std::string::npos);

    calyx::filter line = make(1000), larger = make(100000);
    const auto merged = line.merge(larger);
    CHECK(!merged && merged.error().status == CALYX_MISMATCH);
    const auto removed = line.remove("rose"); // without a text of its own
    CHECK(!removed && removed.error().status == CALYX_CANNOT);
    CHECK(std::string(removed.error().text) == calyx_status_text(CALYX_CANNOT));
    const auto bytes = calyx::filter::decode("no filter at all");
    CHECK(!bytes && bytes.error().status == CALYX_DAMAGED);

    calyx_options small = options(10);
    small.strict = true;
    auto strict = calyx::filter::make(small);
    CHECK(strict);
    std::size_t done = 0;
    const auto added = strict->add_many_u64(from_1_to(1000), {}, &done);
    CHECK(!added && added.error().status == CALYX_FULL);
    CHECK(done >= 10 && done < 1000);
}

void a_moved_filter_is_the_same_one() {
    calyx::filter a = make(1000);
    CHECK(a.add("rose"));
    const calyx_filter *const handle = a.get();
    calyx::filter b = std::move(a);
    CHECK(b.get() == handle && b.has("rose"));
    b = make(1000); // frees the first
    CHECK(!b.has("rose"));
    calyx_free(b.release());
}

void whole_filters_combine() {
    calyx::filter a = make(100000), b = make(100000);
    CHECK(a.add("rose") && b.add("aster") && b.add("lily") && a.add("lily"));
    auto both = calyx::filter::copy(a);
    CHECK(both && both->intersect(b) && both->has("lily"));
    CHECK(!both->has("rose") && !both->has("aster"));
    CHECK(a.merge(b) && a.has("aster") && a.has("rose"));
    const auto folded = calyx::filter::fold(a, 2);
    CHECK(folded && folded->has("rose"));
    CHECK(folded->info().bits * 2 == a.info().bits);
    const auto alike = calyx::filter::fold_like(a, *folded);
    CHECK(alike && alike->info().bits == folded->info().bits);

    calyx_options want = options(1000);
    want.kind = "counting";
    auto counting = calyx::filter::make(want);
    CHECK(counting && counting->add("rose") && counting->add("rose"));
    CHECK(counting->count("rose") == 2);
    const auto removed = counting->remove("rose");
    CHECK(removed && *removed && counting->count("rose") == 1);
    const auto frozen = calyx::filter::freeze(*counting);
    CHECK(frozen && frozen->has("rose") && frozen->count("rose") == 1);
}

void files_and_bytes_hold_filters(const std::string &folder) {
    const std::string path = folder + "/f.calyx";
    calyx::filter f = make(1000);
    CHECK(f.add("rose") && f.set_comment("flowers"));
    CHECK(f.save(path.c_str()));
    const auto missing = calyx::filter::load((path + "x").c_str());
    CHECK(!missing && missing.error().status == CALYX_IO);
    CHECK(missing.error().os_code == ENOENT);
    const auto loaded = calyx::filter::load(path.c_str());
    CHECK(loaded && loaded->has("rose") && loaded->health());
    CHECK(std::string(loaded->comment()) == "flowers");
    const auto fresh = f.allow("tulip"), again = f.allow("tulip");
    CHECK(fresh && *fresh && again && !*again && f.is_allowed("tulip"));
    CHECK(!f.has("tulip") && f.describe().allowed == 1);
    const auto found = f.disallow("tulip");
    CHECK(found && *found && !f.is_allowed("tulip"));
    CHECK(f.allow(std::string(CALYX_ALLOW_MOST, 'x')).error().status ==
          CALYX_FULL);

    auto mapped = calyx::filter::map(path.c_str(), CALYX_WRITE);
    CHECK(mapped && mapped->add("aster") && mapped->sync() && mapped->close());
    mapped = calyx::filter::map(path.c_str());
    CHECK(mapped && mapped->has("aster") && mapped->verify());

    std::string bytes(static_cast<std::size_t>(f.encoded_size()), '\0');
    CHECK(f.encode(bytes));
    const auto decoded = calyx::filter::decode(bytes);
    CHECK(decoded && decoded->has("rose"));
    bytes.pop_back();
    CHECK(!f.encode(bytes) && !calyx::filter::decode(bytes));
}

void a_builder_makes_static_filters(const std::string &folder) {
    calyx_builder_options want{};
    want.filter.kind = "ribbon";
    auto first = calyx::builder::make(want),
         second = calyx::builder::make(want);
    CHECK(first && second);
    const calyx_key keys[] = {calyx::key("aster"), calyx::key("lily")};
    CHECK(first->add("rose") && second->add_many(keys));
    CHECK(second->add_many_u64(from_1_to(1000)));
    CHECK(first->merge(*second));
    auto f = first->finish();
    CHECK(f && f->has("rose") && f->has("lily") && f->info().items == 1003);
    const auto number = f->has_many_u64(from_1_to(1000));
    CHECK(number && *number == 1000);
    const auto added = f->add("iris");
    CHECK(!added && added.error().status == CALYX_CANNOT);
    CHECK(first->add_hashes(numbers{f->hash("iris")}));
    const std::string path = folder + "/b.calyx";
    CHECK(first->save(path.c_str()));
    const auto saved = calyx::filter::load(path.c_str());
    CHECK(saved && saved->has("iris") && saved->info().items == 1004);
}

void a_live_filter_is_replaced_under_its_readers(const std::string &folder) {
    calyx::filter old = make(1000), next = make(1000);
    CHECK(old.add("rose") && next.add("aster"));
    auto live = calyx::live::make(std::move(old));
    CHECK(live && old.get() == nullptr);
    {
        const auto before = live->acquire();
        CHECK(live->swap(std::move(next)) && next.get() == nullptr);
        const auto after = live->acquire();
        CHECK(before.has("rose") && !before.has("aster"));
        CHECK(after.has("aster") && !after.has("rose"));
        const auto copy = calyx::filter::copy(before);
        CHECK(copy && copy->has("rose"));
    }

    const std::string path = folder + "/l.calyx";
    CHECK(!calyx::live::open(path.c_str()));
    calyx::filter f = make(1000);
    CHECK(f.add("rose") && f.save(path.c_str()));
    auto served = calyx::live::open(path.c_str());
    CHECK(served && served->acquire().has("rose"));
    auto changed = served->refresh();
    CHECK(changed && !*changed);
    CHECK(f.add("aster") && f.save(path.c_str()));
    changed = served->refresh();
    CHECK(changed && *changed && served->acquire().has("aster"));
    CHECK(std::remove(path.c_str()) == 0 && !served->refresh());
    CHECK(served->acquire().has("aster"));
}

} // namespace

int main(int, char **argv) {
    const std::string folder = argv[1];
    a_filter_has_what_was_added();
    batches_take_vectors_and_arrays();
    answers_without_room_are_refused();
    errors_say_why();
    a_moved_filter_is_the_same_one();
    whole_filters_combine();
    files_and_bytes_hold_filters(folder);
    a_builder_makes_static_filters(folder);
    a_live_filter_is_replaced_under_its_readers(folder);
}
