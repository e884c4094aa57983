/*
 * calyx.h for C++17 and later: filters that free themselves, and errors that
 * are hard to overlook.
 *
 *     calyx_options want{};
 *     want.capacity = 1000000;
 *     auto seen = calyx::filter::make(want);
 *     if (!seen) return std::fprintf(stderr, "%s\n", seen.error().text), 1;
 *     if (!seen->add("rose")) return 1;
 *     seen->has("rose");                          // true, always
 *
 * Everything here forwards to the call of the same name in calyx.h, which says
 * what it does: filter::has to calyx_has, builder::finish to
 * calyx_builder_finish. `make` is calyx_new and its kin. For calls that are not
 * here, get() returns the handle. The rules of calyx.h hold, those for threads
 * too.
 *
 * Keys are std::string_view, arrays are calyx::span. No call throws. An object
 * that was moved from may only be assigned to and destroyed.
 */
#ifndef CALYX_HPP
#define CALYX_HPP

#include <calyx/calyx.h>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <iterator>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

namespace calyx {

/* ---- Results ------------------------------------------------------------- */

/* A value, or why there is none; as std::expected<T, calyx_error> of C++23.
 * Converts to true if the call succeeded, whatever the value. Only a success
 * has a value, and only a failure has an error(). */
template <class T> class [[nodiscard]] result {
  public:
    result(T value) : state(std::in_place_index<0>, std::move(value)) {
    }
    result(const calyx_error &why) : state(std::in_place_index<1>, why) {
    }
    bool has_value() const noexcept {
        return state.index() == 0;
    }
    explicit operator bool() const noexcept {
        return has_value();
    }
    T &operator*() &noexcept {
        return *std::get_if<0>(&state);
    }
    const T &operator*() const &noexcept {
        return *std::get_if<0>(&state);
    }
    T &&operator*() &&noexcept {
        return std::move(*std::get_if<0>(&state));
    }
    T *operator->() noexcept {
        return std::get_if<0>(&state);
    }
    const T *operator->() const noexcept {
        return std::get_if<0>(&state);
    }
    const calyx_error &error() const noexcept {
        return *std::get_if<1>(&state);
    }

  private:
    std::variant<T, calyx_error> state;
};

template <> class [[nodiscard]] result<void> {
  public:
    result() = default;
    result(const calyx_error &why) : failure(why) {
    }
    bool has_value() const noexcept {
        return !failure;
    }
    explicit operator bool() const noexcept {
        return has_value();
    }
    const calyx_error &error() const noexcept {
        return *failure;
    }

  private:
    std::optional<calyx_error> failure;
};

/* Was the key of this addition new? if (f.add(k)) only asks whether the call
 * succeeded; if (calyx::fresh(f.add(k))), whether it also found k absent. */
inline bool fresh(const result<bool> &added) noexcept {
    return added && *added;
}

/* ---- Keys and arrays ----------------------------------------------------- */

/* A key of a batch. The characters must outlive it. */
inline calyx_key key(std::string_view text) noexcept {
    return {text.data(), text.size()};
}

/* An array of somebody else: a vector, a std::array, an array of C. Of
 * std::vector<bool> there is none. */
template <class T> class span {
    template <class C>
    using element = std::remove_pointer_t<decltype(std::data(
        std::declval<std::add_lvalue_reference_t<C>>()))>;

  public:
    constexpr span() noexcept = default;
    constexpr span(T *data, std::size_t size) noexcept
        : first(data), count(size) {
    }
    template <class C, class = std::enable_if_t<
                           std::is_convertible_v<element<C> (*)[], T (*)[]>>>
    constexpr span(C &&array) noexcept
        : first(std::data(array)), count(std::size(array)) {
    }
    constexpr T *data() const noexcept {
        return first;
    }
    constexpr std::size_t size() const noexcept {
        return count;
    }

  private:
    T *first = nullptr;
    std::size_t count = 0;
};

/* ---- How calls are forwarded --------------------------------------------- */

namespace detail {

/* The error of a call that only returns a status. */
inline calyx_error error_of(calyx_status status) noexcept {
    calyx_error why{};
    why.status = status;
    std::snprintf(why.text, sizeof why.text, "%s", calyx_status_text(status));
    return why;
}

inline result<void> done(calyx_status status) noexcept {
    if (status == CALYX_OK) return {};
    return error_of(status);
}

/* `call` gets a bool to fill, and returns a status. */
template <class Call> result<bool> answered(Call call) noexcept {
    bool answer = false;
    const calyx_status status = call(&answer);
    if (status == CALYX_OK) return answer;
    return error_of(status);
}

/* `call` gets a calyx_error to fill, and returns a status. */
template <class Call> result<void> explained(Call call) noexcept {
    calyx_error why;
    if (call(&why) == CALYX_OK) return {};
    return why;
}

/* `call` gets a handle and a calyx_error to fill; an Owner takes the handle. */
template <class Owner, class Call> result<Owner> made(Call call) noexcept {
    typename Owner::handle *handle = nullptr;
    calyx_error why;
    if (call(&handle, &why) == CALYX_OK) return Owner(handle);
    return why;
}

/* May n answers be written there? A span without data wants none. */
inline bool has_room(span<bool> answers, std::size_t n) noexcept {
    return answers.data() == nullptr || answers.size() >= n;
}

inline calyx_error no_room(std::size_t room, std::size_t n) noexcept {
    calyx_error why{};
    why.status = CALYX_BAD_ARGUMENT;
    std::snprintf(why.text, sizeof why.text,
                  "room for %zu answers, where there are %zu keys", room, n);
    return why;
}

} // namespace detail

/* ---- Calls that take a const filter -------------------------------------- */

/* Of a filter, and of one that a live_reader holds. Batches return the number
 * of keys found; `found` must have room for all, or be left out
 * (CALYX_BAD_ARGUMENT). */
template <class Holder> class const_calls {
  public:
    bool has(std::string_view k) const noexcept {
        return calyx_has(it(), k.data(), k.size());
    }
    bool has_u64(std::uint64_t number) const noexcept {
        return calyx_has_u64(it(), number);
    }
    bool has_hash(std::uint64_t hash) const noexcept {
        return calyx_has_hash(it(), hash);
    }
    result<std::size_t> has_many(span<const calyx_key> keys,
                                 span<bool> found = {}) const noexcept {
        if (!detail::has_room(found, keys.size()))
            return detail::no_room(found.size(), keys.size());
        return calyx_has_many(it(), keys.data(), keys.size(), found.data());
    }
    result<std::size_t> has_many_u64(span<const std::uint64_t> numbers,
                                     span<bool> found = {}) const noexcept {
        if (!detail::has_room(found, numbers.size()))
            return detail::no_room(found.size(), numbers.size());
        return calyx_has_many_u64(it(), numbers.data(), numbers.size(),
                                  found.data());
    }
    result<std::size_t> has_hashes(span<const std::uint64_t> hashes,
                                   span<bool> found = {}) const noexcept {
        if (!detail::has_room(found, hashes.size()))
            return detail::no_room(found.size(), hashes.size());
        return calyx_has_hashes(it(), hashes.data(), hashes.size(),
                                found.data());
    }
    std::uint32_t count(std::string_view k) const noexcept {
        return calyx_count(it(), k.data(), k.size());
    }
    std::uint64_t hash(std::string_view k) const noexcept {
        return calyx_hash(it(), k.data(), k.size());
    }
    std::uint64_t hash_u64(std::uint64_t number) const noexcept {
        return calyx_hash_u64(it(), number);
    }
    calyx_info info() const noexcept {
        calyx_info info;
        calyx_info_of(it(), &info);
        return info;
    }
    calyx_info describe() const noexcept {
        calyx_info info;
        calyx_describe(it(), &info);
        return info;
    }
    bool is_allowed(std::string_view k) const noexcept {
        return calyx_is_allowed(it(), k.data(), k.size());
    }
    const char *comment() const noexcept {
        return calyx_comment(it());
    }
    result<void> save(const char *path) const noexcept {
        return detail::explained(
            [&](calyx_error *why) { return calyx_save(it(), path, why); });
    }
    std::uint64_t encoded_size() const noexcept {
        return calyx_encoded_size(it());
    }
    result<void> encode(span<char> buffer) const noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_encode(it(), buffer.data(), buffer.size(), why);
        });
    }
    result<void> health() const noexcept {
        return detail::explained(
            [&](calyx_error *why) { return calyx_health(it(), why); });
    }
    result<void> verify() const noexcept {
        return detail::explained(
            [&](calyx_error *why) { return calyx_verify(it(), why); });
    }

  private:
    friend Holder;
    const_calls() = default;
    const calyx_filter *it() const noexcept {
        return static_cast<const Holder *>(this)->get();
    }
};

/* ---- Filter -------------------------------------------------------------- */

class filter : public const_calls<filter> {
  public:
    using handle = calyx_filter;

    explicit filter(calyx_filter *owned) noexcept : owner(owned) {
    }
    calyx_filter *get() noexcept {
        return owner.get();
    }
    const calyx_filter *get() const noexcept {
        return owner.get();
    }
    /* The caller frees it. */
    calyx_filter *release() noexcept {
        return owner.release();
    }

    static result<filter> make(const calyx_options &want) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_new(&want, out, why);
        });
    }
    static result<filter> load(const char *path,
                               const calyx_open_options &how = {}) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_load(path, &how, out, why);
        });
    }
    static result<filter> map(const char *path,
                              calyx_access access = CALYX_READ,
                              const calyx_open_options &how = {}) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_map(path, access, &how, out, why);
        });
    }
    static result<filter> decode(std::string_view bytes,
                                 const calyx_open_options &how = {}) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_decode(bytes.data(), bytes.size(), &how, out, why);
        });
    }
    template <class Holder>
    static result<filter> copy(const const_calls<Holder> &from) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_copy(handle_of(from), out, why);
        });
    }
    template <class Holder>
    static result<filter> fold(const const_calls<Holder> &from,
                               std::uint64_t factor) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_fold(handle_of(from), factor, out, why);
        });
    }
    template <class Holder, class Other>
    static result<filter> fold_like(const const_calls<Holder> &from,
                                    const const_calls<Other> &like) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_fold_like(handle_of(from), handle_of(like), out, why);
        });
    }
    template <class Holder>
    static result<filter> freeze(const const_calls<Holder> &from) noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_freeze(handle_of(from), out, why);
        });
    }

    /* Was the key new? A failed add is a lost key: look at the result. */
    result<bool> add(std::string_view k) noexcept {
        return detail::answered([&](bool *fresh) {
            return calyx_add(get(), k.data(), k.size(), fresh);
        });
    }
    result<bool> add_u64(std::uint64_t number) noexcept {
        return detail::answered(
            [&](bool *fresh) { return calyx_add_u64(get(), number, fresh); });
    }
    result<bool> add_hash(std::uint64_t hash) noexcept {
        return detail::answered(
            [&](bool *fresh) { return calyx_add_hash(get(), hash, fresh); });
    }
    /* `fresh` must have room for all, or be left out. `*done`, unless null, is
     * the number of keys added, also of a call that fails. */
    result<void> add_many(span<const calyx_key> keys, span<bool> fresh = {},
                          std::size_t *done = nullptr) noexcept {
        if (done != nullptr) *done = 0;
        if (!detail::has_room(fresh, keys.size()))
            return detail::no_room(fresh.size(), keys.size());
        return detail::done(calyx_add_many(get(), keys.data(), keys.size(),
                                           fresh.data(), done));
    }
    result<void> add_many_u64(span<const std::uint64_t> numbers,
                              span<bool> fresh = {},
                              std::size_t *done = nullptr) noexcept {
        if (done != nullptr) *done = 0;
        if (!detail::has_room(fresh, numbers.size()))
            return detail::no_room(fresh.size(), numbers.size());
        return detail::done(calyx_add_many_u64(
            get(), numbers.data(), numbers.size(), fresh.data(), done));
    }
    result<void> add_hashes(span<const std::uint64_t> hashes,
                            span<bool> fresh = {},
                            std::size_t *done = nullptr) noexcept {
        if (done != nullptr) *done = 0;
        if (!detail::has_room(fresh, hashes.size()))
            return detail::no_room(fresh.size(), hashes.size());
        return detail::done(calyx_add_hashes(
            get(), hashes.data(), hashes.size(), fresh.data(), done));
    }
    /* Was the key there? */
    result<bool> remove(std::string_view k) noexcept {
        return detail::answered([&](bool *found) {
            return calyx_remove(get(), k.data(), k.size(), found);
        });
    }
    result<void> clear() noexcept {
        return detail::done(calyx_clear(get()));
    }
    /* Put a key on the allow list, or take it off: was it off, or on? */
    result<bool> allow(std::string_view k) noexcept {
        bool fresh = false;
        const auto status = detail::explained([&](calyx_error *why) {
            return calyx_allow(get(), k.data(), k.size(), &fresh, why);
        });
        if (!status) return status.error();
        return fresh;
    }
    result<bool> disallow(std::string_view k) noexcept {
        return detail::answered([&](bool *found) {
            return calyx_disallow(get(), k.data(), k.size(), found);
        });
    }
    result<void> set_comment(const char *text) noexcept {
        return detail::done(calyx_set_comment(get(), text));
    }
    template <class Holder>
    result<void> merge(const const_calls<Holder> &other) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_merge(get(), handle_of(other), why);
        });
    }
    template <class Holder>
    result<void> intersect(const const_calls<Holder> &other) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_intersect(get(), handle_of(other), why);
        });
    }
    result<void> sync() noexcept {
        return detail::explained(
            [&](calyx_error *why) { return calyx_sync(get(), why); });
    }
    /* The destructor closes too, and cannot return whether that succeeded. */
    result<void> close() noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_close(owner.release(), why);
        });
    }

  private:
    template <class Holder>
    static const calyx_filter *handle_of(
        const const_calls<Holder> &from) noexcept {
        return static_cast<const Holder &>(from).get();
    }
    struct deleter {
        void operator()(calyx_filter *f) const noexcept {
            calyx_free(f);
        }
    };
    std::unique_ptr<calyx_filter, deleter> owner;
};

/* ---- Builder ------------------------------------------------------------- */

class builder {
  public:
    using handle = calyx_builder;

    explicit builder(calyx_builder *owned) noexcept : owner(owned) {
    }
    calyx_builder *get() noexcept {
        return owner.get();
    }

    static result<builder> make(const calyx_builder_options &want) noexcept {
        return detail::made<builder>(
            [&](calyx_builder **out, calyx_error *why) {
                return calyx_builder_new(&want, out, why);
            });
    }
    result<void> add(std::string_view k) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_add(get(), k.data(), k.size(), why);
        });
    }
    result<void> add_many(span<const calyx_key> keys) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_add_many(get(), keys.data(), keys.size(), why);
        });
    }
    result<void> add_many_u64(span<const std::uint64_t> numbers) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_add_many_u64(get(), numbers.data(),
                                              numbers.size(), why);
        });
    }
    result<void> add_hashes(span<const std::uint64_t> hashes) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_add_hashes(get(), hashes.data(), hashes.size(),
                                            why);
        });
    }
    result<void> merge(builder &other) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_merge(get(), other.get(), why);
        });
    }
    result<filter> finish() noexcept {
        return detail::made<filter>([&](calyx_filter **out, calyx_error *why) {
            return calyx_builder_finish(get(), out, why);
        });
    }
    result<void> save(const char *path) noexcept {
        return detail::explained([&](calyx_error *why) {
            return calyx_builder_save(get(), path, why);
        });
    }

  private:
    struct deleter {
        void operator()(calyx_builder *b) const noexcept {
            calyx_builder_free(b);
        }
    };
    std::unique_ptr<calyx_builder, deleter> owner;
};

/* ---- Live ---------------------------------------------------------------- */

/* The filter that was current when it was acquired, until the end of the scope.
 * Must not outlive its calyx::live. */
class live_reader : public const_calls<live_reader> {
  public:
    explicit live_reader(calyx_live *live) noexcept
        : current(calyx_live_acquire(live), {live}) {
    }
    const calyx_filter *get() const noexcept {
        return current.get();
    }

  private:
    struct releaser {
        calyx_live *live = nullptr;
        void operator()(const calyx_filter *f) const noexcept {
            calyx_live_release(live, f);
        }
    };
    std::unique_ptr<const calyx_filter, releaser> current;
};

class live {
  public:
    using handle = calyx_live;

    explicit live(calyx_live *owned) noexcept : owner(owned) {
    }
    calyx_live *get() const noexcept {
        return owner.get();
    }

    /* `first`, and `next` of a swap, stay the caller's if the call fails. */
    static result<live> make(filter &&first) noexcept {
        auto made = detail::made<live>([&](calyx_live **out, calyx_error *why) {
            return calyx_live_new(first.get(), out, why);
        });
        if (made) first.release();
        return made;
    }
    static result<live> open(const char *path,
                             const calyx_open_options &how = {}) noexcept {
        return detail::made<live>([&](calyx_live **out, calyx_error *why) {
            return calyx_live_open(path, &how, out, why);
        });
    }
    live_reader acquire() const noexcept {
        return live_reader(get());
    }
    result<void> swap(filter &&next) noexcept {
        auto swapped = detail::explained([&](calyx_error *why) {
            return calyx_live_swap(get(), next.get(), why);
        });
        if (swapped) next.release();
        return swapped;
    }
    /* Did it change? */
    result<bool> refresh() noexcept {
        bool changed = false;
        calyx_error why;
        if (calyx_live_refresh(get(), &changed, &why) == CALYX_OK)
            return changed;
        return why;
    }

  private:
    struct deleter {
        void operator()(calyx_live *l) const noexcept {
            calyx_live_free(l);
        }
    };
    std::unique_ptr<calyx_live, deleter> owner;
};

} // namespace calyx

#endif /* CALYX_HPP */
