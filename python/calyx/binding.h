/*
 * What the files of the binding share: errors, keys, options, the object of a
 * filter and its lock.
 *
 * Only the limited API of CPython 3.11: one binary serves 3.11 and later.
 */
#ifndef CALYX_BINDING_H
#define CALYX_BINDING_H

#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <calyx/calyx.h>
#include <pthread.h>
#include <string.h>

/* ---- In _calyx.c --------------------------------------------------------- */

/* Set the exception for an error of the library; returns NULL. */
PyObject *raise_error(const calyx_error *why);
PyObject *raise_status(calyx_status status);

/* A list of these names, which NULL ends. */
PyObject *list_of(const char *const *names);

/* ---- Keys: key_source.c -------------------------------------------------- */

/* A key is str (its UTF-8), bytes or what has their buffer, or a number from
 * -2^63 to 2^64 - 1, which is its 8 bytes in little-endian order. */
struct one_key {
    calyx_key key;
    uint8_t number[8];
    Py_buffer buffer;
    bool has_buffer;
};

/* Points into `object`, which must outlive the key. */
bool key_of(PyObject *object, struct one_key *k);
void release_key(struct one_key *k);

/* What is done with keys: with an array of them, or of numbers. Both store n
 * results, and are called without the GIL. */
struct action {
    calyx_status (*keys)(void *of, const calyx_key *keys, size_t n,
                         bool *results, calyx_error *why);
    calyx_status (*numbers)(void *of, const uint64_t *numbers, size_t n,
                            bool *results, calyx_error *why);
    void *of;
};

/* One result for each key, in a buffer that grows. */
struct results {
    bool *at;
    size_t count, room;
};

/* A memoryview of bools: indexed like a list, and numpy takes it as it is. */
PyObject *view_results(const struct results *r);
PyObject *count_results(const struct results *r);

/* Do it with all keys of a list, an iterable, a buffer or an Arrow array. */
PyObject *run_action(struct action action, PyObject *keys,
                     PyObject *(*result)(const struct results *));

/* ---- Arguments: arguments.c ---------------------------------------------- */

enum { SECRET_BYTES = 16 };

/* Filter(), plan() and Builder() have these options. */
struct wanted {
    calyx_options options;
    uint8_t secret[SECRET_BYTES];
    PyObject *n, *p, *bits, *probes, *seed, *key;
    int strict, concurrent;
};

/* Further ones of Builder(); None or 0 if they were not given. */
struct builder_wanted {
    PyObject *memory, *folder;
    unsigned threads, part, parts;
};

/* Read the arguments of Filter(), plan() or, if `more` is not NULL, Builder().
 * False, with an exception, if they are wrong. */
bool read_options(PyObject *positional, PyObject *named, const char *function,
                  struct wanted *w, struct builder_wanted *more);

/* A secret key: 16 bytes or None. */
bool secret_of(PyObject *object, uint8_t *to, const uint8_t **key);
/* None is the default; other numbers must not be negative, nor 0. */
bool positive_of(PyObject *object, const char *name, uint64_t *to);
/* `path` points into `bytes`, which the caller releases. */
bool path_of(PyObject *object, PyObject **bytes, const char **path);

/* ---- calyx.Info: info_object.c ------------------------------------------- */

PyObject *make_info_type(void);
PyObject *info_object(const calyx_info *is);

/* ---- calyx.Filter: filter_type.c ----------------------------------------- */

/*
 * Calls for many keys release the GIL, so two threads may be in one filter. A
 * filter has a lock that readers share. A thread never waits for it with the
 * GIL held, nor for the GIL with it held.
 */
typedef struct {
    PyObject_HEAD calyx_filter *filter; /* NULL once it is closed */
    pthread_rwlock_t lock;
    bool shares_adding; /* many threads may add at once */
    PyObject *weak_references;
} FilterObject;

enum sharing { SHARED, ALONE };

extern PyTypeObject *filter_type;
PyTypeObject *make_filter_type(void);

/* Take a filter over; frees it on failure. */
PyObject *wrap_filter(PyTypeObject *type, calyx_filter *filter);

/* With the GIL, for a short call. False, with an exception, if it is closed. */
bool lock_filter(FilterObject *self, enum sharing how);
/* Without the GIL; it may be closed. */
void wait_for_filter(FilterObject *self, enum sharing how);
void unlock_filter(FilterObject *self);
/* The lock that adding needs. */
enum sharing lock_to_add(const FilterObject *self);

/* Let `why` say what a status says, or that a filter is closed. Both return the
 * status. */
calyx_status say_status(calyx_status status, calyx_error *why);
calyx_status say_closed(calyx_error *why);

/* Unlock it, after a call without the GIL. Returns CALYX_OK, or `why` says what
 * is wrong: the status, or that the filter is closed. */
calyx_status end_call(FilterObject *self, calyx_status status,
                      calyx_error *why);

/* Call without the GIL, under the lock. False, with an exception, if that
 * failed. */
typedef calyx_status filter_call(calyx_filter *f, void *with, calyx_error *why);
bool call_filter(PyObject *object, enum sharing how, filter_call *call,
                 void *with);

/* ---- Its methods --------------------------------------------------------- */

/* filter_keys.c */
int Filter_contains(PyObject *self, PyObject *key);
PyObject *Filter_add(PyObject *self, PyObject *key);
PyObject *Filter_remove(PyObject *self, PyObject *key);
PyObject *Filter_count(PyObject *self, PyObject *key);
PyObject *Filter_add_many(PyObject *self, PyObject *keys);
PyObject *Filter_has_many(PyObject *self, PyObject *keys);
PyObject *Filter_hash_many(PyObject *self, PyObject *keys);
PyObject *Filter_remove_many(PyObject *self, PyObject *keys);

/* filter_type.c; METH_NOARGS or METH_O */
PyObject *Filter_copy(PyObject *self, PyObject *unused);

/* filter_sets.c */
PyObject *Filter_or(PyObject *left, PyObject *right);
PyObject *Filter_and(PyObject *left, PyObject *right);
PyObject *Filter_ior(PyObject *self, PyObject *other);
PyObject *Filter_iand(PyObject *self, PyObject *other);
PyObject *Filter_update(PyObject *self, PyObject *others);
PyObject *Filter_union(PyObject *self, PyObject *others);
PyObject *Filter_intersection(PyObject *self, PyObject *others);
PyObject *Filter_intersection_update(PyObject *self, PyObject *others);
PyObject *Filter_richcompare(PyObject *left, PyObject *right, int operator);
PyObject *Filter_issubset(PyObject *self, PyObject *other);
PyObject *Filter_issuperset(PyObject *self, PyObject *other);

/* filter_files.c */
PyObject *Filter_open(PyObject *type, PyObject *positional, PyObject *named);
PyObject *Filter_load(PyObject *type, PyObject *positional, PyObject *named);
PyObject *Filter_from_bytes(PyObject *type, PyObject *positional,
                            PyObject *named);
PyObject *Filter_to_bytes(PyObject *self, PyObject *unused);
PyObject *Filter_reduce(PyObject *self, PyObject *unused);
PyObject *Filter_save(PyObject *self, PyObject *file);
PyObject *Filter_sync(PyObject *self, PyObject *unused);
PyObject *Filter_verify(PyObject *self, PyObject *unused);
PyObject *Filter_close(PyObject *self, PyObject *unused);
PyObject *Filter_exit(PyObject *self, PyObject *unused);

/* ---- calyx.Builder: builder_type.c --------------------------------------- */

PyTypeObject *make_builder_type(void);

/* ---- Files that are read in pieces: layout_type.c ------------------------ */

PyTypeObject *make_layout_type(void);

#endif
