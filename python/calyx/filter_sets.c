/*
 * calyx.Filter as a set: union, intersection and comparison of two filters.
 *
 * Union and intersection are calyx_merge and calyx_intersect. f <= g compares
 * bits: if g has every bit of f, it has every key of f. f == g compares all
 * that a lookup depends on: kind, hash, shape, bits, counters and allow list.
 * Numbers of items are no part of it, as the number of a union is an estimate.
 */
#include <stdlib.h>

#include "binding.h"

static bool is_filter(PyObject *object) {
    return PyObject_TypeCheck(object, filter_type);
}

/* ---- Two filters under their locks --------------------------------------- */

typedef calyx_status pair_call(calyx_filter *f, const calyx_filter *other,
                               void *with, calyx_error *why);

/* Locks are taken in the order of addresses, so that a |= b beside b |= a
 * cannot block each other. */
static void lock_both(FilterObject *a, FilterObject *b) {
    wait_for_filter(a < b ? a : b, ALONE);
    wait_for_filter(a < b ? b : a, ALONE);
}

/* Call without the GIL. False, with an exception, if that failed. The filters
 * are two. */
static bool call_both(PyObject *left, PyObject *right, pair_call *call,
                      void *with) {
    FilterObject *const a = (FilterObject *)left;
    FilterObject *const b = (FilterObject *)right;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    lock_both(a, b);
    const calyx_status status = a->filter && b->filter
                                    ? call(a->filter, b->filter, with, &why)
                                    : say_closed(&why);
    unlock_filter(a);
    unlock_filter(b);
    PyEval_RestoreThread(gil);
    if (status != CALYX_OK) raise_error(&why);
    return status == CALYX_OK;
}

/* ---- Union and intersection ---------------------------------------------- */

static calyx_status merge(calyx_filter *f, const calyx_filter *other,
                          void *unused, calyx_error *why) {
    (void)unused;
    return calyx_merge(f, other, why);
}

static calyx_status intersect(calyx_filter *f, const calyx_filter *other,
                              void *unused, calyx_error *why) {
    (void)unused;
    return calyx_intersect(f, other, why);
}

/* A set joined with itself is itself. */
static bool join(PyObject *self, PyObject *other, pair_call *call) {
    if (self != other) return call_both(self, other, call, NULL);
    if (!lock_filter((FilterObject *)self, SHARED)) return false;
    unlock_filter((FilterObject *)self);
    return true;
}

static PyObject *join_in_place(PyObject *self, PyObject *other,
                               pair_call *call) {
    if (!is_filter(other)) Py_RETURN_NOTIMPLEMENTED;
    return join(self, other, call) ? Py_NewRef(self) : NULL;
}

static PyObject *join_copy(PyObject *left, PyObject *right, pair_call *call) {
    if (!is_filter(left) || !is_filter(right)) Py_RETURN_NOTIMPLEMENTED;
    PyObject *const copy = Filter_copy(left, NULL);
    if (copy && join(copy, right, call)) return copy;
    Py_XDECREF(copy);
    return NULL;
}

PyObject *Filter_or(PyObject *left, PyObject *right) {
    return join_copy(left, right, merge);
}

PyObject *Filter_and(PyObject *left, PyObject *right) {
    return join_copy(left, right, intersect);
}

PyObject *Filter_ior(PyObject *self, PyObject *other) {
    return join_in_place(self, other, merge);
}

PyObject *Filter_iand(PyObject *self, PyObject *other) {
    return join_in_place(self, other, intersect);
}

/* ---- The same with filters or keys --------------------------------------- */

static bool add_keys(PyObject *self, PyObject *keys) {
    PyObject *const fresh = Filter_add_many(self, keys);
    Py_XDECREF(fresh);
    return fresh;
}

static bool update(PyObject *self, PyObject *other) {
    return is_filter(other) ? join(self, other, merge) : add_keys(self, other);
}

static calyx_status make_like(calyx_filter *f, void *out, calyx_error *why) {
    return calyx_new_like(f, out, why);
}

static bool intersect_with_keys(PyObject *self, PyObject *keys) {
    calyx_filter *filter;
    if (!call_filter(self, SHARED, make_like, &filter)) return false;
    PyObject *const like = wrap_filter(filter_type, filter);
    const bool done =
        like && add_keys(like, keys) && call_both(self, like, intersect, NULL);
    Py_XDECREF(like);
    return done;
}

static bool intersection_update(PyObject *self, PyObject *other) {
    return is_filter(other) ? join(self, other, intersect)
                            : intersect_with_keys(self, other);
}

typedef bool change_by(PyObject *self, PyObject *other);

/* The result is new, and released on failure. */
static PyObject *change_by_all(PyObject *result, PyObject *others,
                               change_by *change) {
    const Py_ssize_t count = PyTuple_Size(others);
    for (Py_ssize_t i = 0; result && i < count; i++)
        if (!change(result, PyTuple_GetItem(others, i))) Py_CLEAR(result);
    return result;
}

static PyObject *change_in_place(PyObject *self, PyObject *others,
                                 change_by *change) {
    PyObject *const changed = change_by_all(Py_NewRef(self), others, change);
    Py_XDECREF(changed);
    if (!changed) return NULL;
    Py_RETURN_NONE;
}

PyObject *Filter_update(PyObject *self, PyObject *others) {
    return change_in_place(self, others, update);
}

PyObject *Filter_union(PyObject *self, PyObject *others) {
    return change_by_all(Filter_copy(self, NULL), others, update);
}

PyObject *Filter_intersection_update(PyObject *self, PyObject *others) {
    return change_in_place(self, others, intersection_update);
}

PyObject *Filter_intersection(PyObject *self, PyObject *others) {
    return change_by_all(Filter_copy(self, NULL), others, intersection_update);
}

/* ---- Comparison ---------------------------------------------------------- */

static bool same_parts(const calyx_filter *a, const calyx_filter *b) {
    calyx_part p, q;
    for (uint32_t i = 0; calyx_part_of(a, i, &p); i++)
        if (!calyx_part_of(b, i, &q) || p.bits != q.bits ||
            p.bytes != q.bytes || p.probes != q.probes)
            return false;
    return true;
}

/* Of two allow lists of one length. */
static bool same_list(const calyx_filter *a, const calyx_filter *b) {
    uint64_t at = 0;
    calyx_key key;
    while (calyx_next_allowed(a, &at, &key))
        if (!calyx_is_allowed(b, key.data, key.size)) return false;
    return true;
}

static calyx_status same_bytes(const calyx_filter *a, const calyx_filter *b,
                               uint64_t bytes, bool *same) {
    enum { STEP = 1 << 20 };
    char *const both = malloc(2 * STEP);
    calyx_status status = both ? CALYX_OK : CALYX_NO_MEMORY;
    *same = true;
    for (uint64_t at = 0; *same && status == CALYX_OK && at < bytes;
         at += STEP) {
        const size_t some = bytes - at < STEP ? (size_t)(bytes - at) : STEP;
        status = calyx_get_bits(a, at, both, some);
        if (status == CALYX_OK)
            status = calyx_get_bits(b, at, both + STEP, some);
        *same = memcmp(both, both + STEP, some) == 0;
    }
    free(both);
    return status;
}

static calyx_status find_equal(calyx_filter *a, const calyx_filter *b,
                               void *equal, calyx_error *why) {
    calyx_info x, y;
    calyx_info_of(a, &x);
    calyx_info_of(b, &y);
    *(bool *)equal = false;
    if (strcmp(x.kind, y.kind) != 0 || !calyx_same_hash(a, b) ||
        x.parts != y.parts || x.bytes != y.bytes || x.allowed != y.allowed ||
        x.moves != y.moves || !same_parts(a, b) || !same_list(a, b))
        return CALYX_OK;
    return say_status(same_bytes(a, b, x.bytes, equal), why);
}

/* How often a bit is set in the first filter, in the second, in either. */
static calyx_status count_bits(calyx_filter *a, const calyx_filter *b,
                               void *bits, calyx_error *why) {
    calyx_progress at = {0};
    calyx_overlap unused;
    const calyx_status status =
        calyx_compare_some(a, b, UINT64_MAX, &at, &unused, why);
    memcpy(bits, at.bits, sizeof at.bits);
    return status;
}

static PyObject *compare_equal(PyObject *left, PyObject *right, bool wanted) {
    bool equal = true;
    if (left != right && !call_both(left, right, find_equal, &equal))
        return NULL;
    return PyBool_FromLong(equal == wanted);
}

PyObject *Filter_richcompare(PyObject *left, PyObject *right, int operator) {
    if (!is_filter(left) || !is_filter(right)) Py_RETURN_NOTIMPLEMENTED;
    if (operator== Py_EQ || operator== Py_NE)
        return compare_equal(left, right, operator== Py_EQ);
    uint64_t bits[3] = {0};
    if (left != right && !call_both(left, right, count_bits, bits)) return NULL;
    const bool within = bits[1] == bits[2], over = bits[0] == bits[2];
    switch (operator) {
        case Py_LE: return PyBool_FromLong(within);
        case Py_LT: return PyBool_FromLong(within && !over);
        case Py_GE: return PyBool_FromLong(over);
        default: return PyBool_FromLong(over && !within);
    }
}

static PyObject *compare_filters(PyObject *self, PyObject *other,
                                 int operator) {
    if (is_filter(other)) return Filter_richcompare(self, other, operator);
    PyErr_Format(PyExc_TypeError, "a filter is compared with another, not %R",
                 Py_TYPE(other));
    return NULL;
}

PyObject *Filter_issubset(PyObject *self, PyObject *other) {
    return compare_filters(self, other, Py_LE);
}

PyObject *Filter_issuperset(PyObject *self, PyObject *other) {
    return compare_filters(self, other, Py_GE);
}
