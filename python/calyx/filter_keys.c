/* The methods of calyx.Filter that add, look up and remove keys. */
#include <stdlib.h>

#include "binding.h"

/* ---- One key ------------------------------------------------------------- */

int Filter_contains(PyObject *object, PyObject *key) {
    FilterObject *const self = (FilterObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return -1;
    int found = -1;
    if (lock_filter(self, SHARED)) {
        found = calyx_has(self->filter, k.key.data, k.key.size);
        unlock_filter(self);
    }
    release_key(&k);
    return found;
}

typedef calyx_status change_one(calyx_filter *f, const void *key, size_t size,
                                bool *changed);

static PyObject *change(FilterObject *self, PyObject *key, enum sharing how,
                        change_one *call) {
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    PyObject *answer = NULL;
    if (lock_filter(self, how)) {
        bool changed = false;
        const calyx_status status =
            call(self->filter, k.key.data, k.key.size, &changed);
        unlock_filter(self);
        answer = status == CALYX_OK ? PyBool_FromLong(changed)
                                    : raise_status(status);
    }
    release_key(&k);
    return answer;
}

PyObject *Filter_add(PyObject *object, PyObject *key) {
    FilterObject *const self = (FilterObject *)object;
    return change(self, key, lock_to_add(self), calyx_add);
}

PyObject *Filter_remove(PyObject *object, PyObject *key) {
    return change((FilterObject *)object, key, ALONE, calyx_remove);
}

PyObject *Filter_count(PyObject *object, PyObject *key) {
    FilterObject *const self = (FilterObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    PyObject *answer = NULL;
    if (lock_filter(self, SHARED)) {
        answer = PyLong_FromUnsignedLong(
            calyx_count(self->filter, k.key.data, k.key.size));
        unlock_filter(self);
    }
    release_key(&k);
    return answer;
}

/* ---- Many keys ----------------------------------------------------------- */

/* The two calls of the library for keys and for numbers, and the lock that
 * they need. */
struct many {
    FilterObject *self;
    enum sharing how;
    calyx_status (*keys)(calyx_filter *f, const calyx_key *keys, size_t n,
                         bool *results, size_t *done);
    calyx_status (*numbers)(calyx_filter *f, const uint64_t *numbers, size_t n,
                            bool *results, size_t *done);
};

static calyx_status act_on_keys(void *of, const calyx_key *keys, size_t n,
                                bool *results, calyx_error *why) {
    const struct many *const many = of;
    FilterObject *const self = many->self;
    wait_for_filter(self, many->how);
    const calyx_status status =
        self->filter ? many->keys(self->filter, keys, n, results, NULL)
                     : CALYX_OK;
    return end_call(self, status, why);
}

static calyx_status act_on_numbers(void *of, const uint64_t *numbers, size_t n,
                                   bool *results, calyx_error *why) {
    const struct many *const many = of;
    FilterObject *const self = many->self;
    wait_for_filter(self, many->how);
    const calyx_status status =
        self->filter ? many->numbers(self->filter, numbers, n, results, NULL)
                     : CALYX_OK;
    return end_call(self, status, why);
}

static PyObject *run_many(struct many many, PyObject *keys,
                          PyObject *(*result)(const struct results *)) {
    return run_action((struct action){act_on_keys, act_on_numbers, &many}, keys,
                      result);
}

PyObject *Filter_add_many(PyObject *object, PyObject *keys) {
    FilterObject *const self = (FilterObject *)object;
    return run_many((struct many){self, lock_to_add(self), calyx_add_many,
                                  calyx_add_many_u64},
                    keys, count_results);
}

PyObject *Filter_remove_many(PyObject *object, PyObject *keys) {
    return run_many((struct many){(FilterObject *)object, ALONE,
                                  calyx_remove_many, calyx_remove_many_u64},
                    keys, count_results);
}

static calyx_status has_keys(calyx_filter *f, const calyx_key *keys, size_t n,
                             bool *found, size_t *unused) {
    (void)unused;
    calyx_has_many(f, keys, n, found);
    return CALYX_OK;
}

static calyx_status has_numbers(calyx_filter *f, const uint64_t *numbers,
                                size_t n, bool *found, size_t *unused) {
    (void)unused;
    calyx_has_many_u64(f, numbers, n, found);
    return CALYX_OK;
}

PyObject *Filter_has_many(PyObject *object, PyObject *keys) {
    return run_many(
        (struct many){(FilterObject *)object, SHARED, has_keys, has_numbers},
        keys, view_results);
}

/* ---- Hashes -------------------------------------------------------------- */

/* Hashes instead of results, in an array that grows. */
struct hashing {
    FilterObject *self;
    uint64_t *at;
    size_t count, room;
};

/* Room for n more, with the filter locked; NULL, unlocked, if there is none. */
static uint64_t *begin_hashing(struct hashing *h, size_t n, calyx_error *why) {
    if (h->room - h->count < n) {
        const size_t room = 2 * h->count + n;
        uint64_t *const more = realloc(h->at, room * sizeof *more);
        if (!more) {
            say_status(CALYX_NO_MEMORY, why);
            return NULL;
        }
        h->at = more;
        h->room = room;
    }
    wait_for_filter(h->self, SHARED);
    h->count += n;
    return h->at + h->count - n;
}

static calyx_status hash_keys(void *of, const calyx_key *keys, size_t n,
                              bool *unused, calyx_error *why) {
    struct hashing *const h = of;
    uint64_t *const to = begin_hashing(h, n, why);
    (void)unused;
    if (!to) return CALYX_NO_MEMORY;
    if (h->self->filter) calyx_hash_many(h->self->filter, keys, n, to);
    return end_call(h->self, CALYX_OK, why);
}

static calyx_status hash_numbers(void *of, const uint64_t *numbers, size_t n,
                                 bool *unused, calyx_error *why) {
    struct hashing *const h = of;
    uint64_t *const to = begin_hashing(h, n, why);
    (void)unused;
    if (!to) return CALYX_NO_MEMORY;
    for (size_t i = 0; h->self->filter && i < n; i++)
        to[i] = calyx_hash_u64(h->self->filter, numbers[i]);
    return end_call(h->self, CALYX_OK, why);
}

PyObject *Filter_hash_many(PyObject *object, PyObject *keys) {
    struct hashing h = {.self = (FilterObject *)object};
    PyObject *const count = run_action(
        (struct action){hash_keys, hash_numbers, &h}, keys, count_results);
    PyObject *const bytes =
        count ? PyBytes_FromStringAndSize((const char *)h.at,
                                          (Py_ssize_t)(h.count * sizeof *h.at))
              : NULL;
    PyObject *const plain = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    PyObject *const view =
        plain ? PyObject_CallMethod(plain, "cast", "s", "Q") : NULL;
    Py_XDECREF(count);
    Py_XDECREF(bytes);
    Py_XDECREF(plain);
    free(h.at);
    return view;
}
