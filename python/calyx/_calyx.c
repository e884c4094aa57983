/*
 * Calyx for Python: the types Filter and Builder, and plan(), over the C
 * library. What that knows (kinds, plans, files) comes from it, and is not
 * repeated here.
 *
 * Only the limited API of CPython 3.11: one binary serves 3.11 and later.
 *
 * Locks: calls for many keys release the GIL, so two threads may be in one
 * filter. A filter has a lock that readers share. A thread never waits for it
 * with the GIL held, nor for the GIL with it held.
 */
#define Py_LIMITED_API 0x030B0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <calyx/calyx.h>
#include <pthread.h>
#include <string.h>
#include <structmember.h>

enum { CHUNK = 1024 };      /* keys that are taken from an iterable at once */
enum { NUMBERS = 1 << 20 }; /* numbers that are processed without the GIL   */
enum { SECRET_BYTES = 16 };

static PyObject *calyx_exception; /* calyx.Error          */
static PyTypeObject *info_type;   /* calyx.Info           */
static PyTypeObject *filter_type; /* calyx.Filter         */

/* ---- Errors -------------------------------------------------------------- */

static PyObject *raise_error(const calyx_error *why) {
    switch (why->status) {
        case CALYX_NO_MEMORY: return PyErr_NoMemory();
        case CALYX_BAD_ARGUMENT:
            PyErr_SetString(PyExc_ValueError, why->text);
            return NULL;
        case CALYX_IO: {
            PyObject *both = Py_BuildValue("(is)", why->os_code, why->text);
            if (both) PyErr_SetObject(PyExc_OSError, both);
            Py_XDECREF(both);
            return NULL;
        }
        default: PyErr_SetString(calyx_exception, why->text); return NULL;
    }
}

static PyObject *raise_status(calyx_status status) {
    calyx_error why = {.status = status};
    const char *const text = calyx_status_text(status);
    strncpy(why.text, text, sizeof why.text - 1);
    return raise_error(&why);
}

static PyObject *raise_closed(void) {
    PyErr_SetString(PyExc_ValueError, "the filter is closed");
    return NULL;
}

/* ---- The object ---------------------------------------------------------- */

typedef struct {
    PyObject_HEAD calyx_filter *filter; /* NULL once it is closed */
    pthread_rwlock_t lock;
    bool shares_adding; /* many threads may add at once */
} FilterObject;

/* Take a filter over; frees it on failure. */
static PyObject *wrap(PyTypeObject *type, calyx_filter *filter) {
    FilterObject *const self = (FilterObject *)PyType_GenericAlloc(type, 0);
    if (!self) {
        calyx_free(filter);
        return NULL;
    }
    calyx_info info;
    calyx_info_of(filter, &info);
    self->shares_adding = info.concurrent;
    self->filter = filter;
    pthread_rwlock_init(&self->lock, NULL);
    return (PyObject *)self;
}

static void Filter_dealloc(PyObject *object) {
    FilterObject *const self = (FilterObject *)object;
    PyTypeObject *const type = Py_TYPE(object);
    if (self->filter) {
        Py_BEGIN_ALLOW_THREADS calyx_free(
            self->filter); /* a mapped writer seals its file here */
        Py_END_ALLOW_THREADS
    }
    pthread_rwlock_destroy(&self->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

enum sharing { SHARED, ALONE };

static int lock_now(FilterObject *self, enum sharing how) {
    return how == SHARED ? pthread_rwlock_tryrdlock(&self->lock)
                         : pthread_rwlock_trywrlock(&self->lock);
}

/* Without the GIL. */
static void lock_waiting(FilterObject *self, enum sharing how) {
    if (how == SHARED)
        pthread_rwlock_rdlock(&self->lock);
    else
        pthread_rwlock_wrlock(&self->lock);
}

static void unlock(FilterObject *self) {
    pthread_rwlock_unlock(&self->lock);
}

/* With the GIL, for a short call. False, with an exception, if it is closed. */
static bool lock(FilterObject *self, enum sharing how) {
    if (lock_now(self, how) != 0) {
        Py_BEGIN_ALLOW_THREADS lock_waiting(self, how);
        Py_END_ALLOW_THREADS
    }
    if (self->filter) return true;
    unlock(self);
    raise_closed();
    return false;
}

static enum sharing to_add(const FilterObject *self) {
    return self->shares_adding ? SHARED : ALONE;
}

/* ---- A key --------------------------------------------------------------- */

/* A key is str (its UTF-8), bytes or what has their buffer, or a number, which
 * is its 8 bytes in little-endian order. */
struct one_key {
    calyx_key key;
    uint8_t number[8];
    Py_buffer buffer;
    bool has_buffer;
};

static bool number_key(PyObject *object, struct one_key *k) {
    const unsigned long long number = PyLong_AsUnsignedLongLong(object);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_SetString(PyExc_OverflowError,
                        "a number is a key from 0 to 2**64 - 1");
        return false;
    }
    for (int i = 0; i < 8; i++) k->number[i] = (uint8_t)(number >> 8 * i);
    k->key = (calyx_key){k->number, sizeof k->number};
    return true;
}

static bool buffer_key(PyObject *object, struct one_key *k) {
    if (PyObject_GetBuffer(object, &k->buffer, PyBUF_SIMPLE) != 0) {
        PyErr_Format(PyExc_TypeError, "a key is str, bytes or int, not %R",
                     Py_TYPE(object));
        return false;
    }
    k->has_buffer = true;
    k->key = (calyx_key){k->buffer.buf, (size_t)k->buffer.len};
    return true;
}

/* Points into `object`, which must outlive the key. */
static bool key_of(PyObject *object, struct one_key *k) {
    k->has_buffer = false;
    if (PyUnicode_Check(object)) {
        Py_ssize_t size;
        const char *const text = PyUnicode_AsUTF8AndSize(object, &size);
        k->key = (calyx_key){text, (size_t)size};
        return text != NULL;
    }
    if (PyBytes_Check(object)) {
        char *bytes;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return false;
        k->key = (calyx_key){bytes, (size_t)size};
        return true;
    }
    return PyLong_Check(object) ? number_key(object, k) : buffer_key(object, k);
}

static void release_key(struct one_key *k) {
    if (k->has_buffer) PyBuffer_Release(&k->buffer);
}

/* ---- Many keys ----------------------------------------------------------- */

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

static bool *more_results(struct results *r, size_t n) {
    if (r->count + n > r->room) {
        const size_t room = r->count + n + r->room / 2;
        bool *const at = PyMem_Realloc(r->at, room);
        if (!at) {
            PyErr_NoMemory();
            return NULL;
        }
        r->at = at;
        r->room = room;
    }
    return r->at + r->count;
}

static bool act_on_keys(const struct action *do_, const calyx_key *keys,
                        size_t n, struct results *results) {
    bool *const to = more_results(results, n);
    if (!to) return false;
    calyx_status status;
    calyx_error why = {.status = CALYX_OK};
    Py_BEGIN_ALLOW_THREADS status = do_->keys(do_->of, keys, n, to, &why);
    Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_error(&why);
    results->count += n;
    return true;
}

static bool act_on_numbers(const struct action *do_, const uint64_t *numbers,
                           size_t n, struct results *results) {
    for (size_t at = 0; at < n; at += NUMBERS) {
        const size_t some = n - at < NUMBERS ? n - at : NUMBERS;
        bool *const to = more_results(results, some);
        if (!to) return false;
        calyx_status status;
        calyx_error why = {.status = CALYX_OK};
        Py_BEGIN_ALLOW_THREADS status =
            do_->numbers(do_->of, numbers + at, some, to, &why);
        Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_error(&why);
        results->count += some;
        if (PyErr_CheckSignals() != 0) return false;
    }
    return true;
}

static bool all_positive(const uint64_t *numbers, size_t n) {
    uint64_t any = 0;
    for (size_t i = 0; i < n; i++) any |= numbers[i];
    if (!(any >> 63)) return true;
    PyErr_SetString(PyExc_OverflowError,
                    "a number is a key from 0 to 2**64 - 1, but there are "
                    "negative ones");
    return false;
}

/* Items of an iterable: taken and released with the GIL, a chunk at a time. The
 * chunk owns its items, so that they outlive changes to a list. */
struct chunk {
    PyObject *items[CHUNK];
    struct one_key keys[CHUNK];
    calyx_key plain[CHUNK];
    size_t count;
};

static bool fill_chunk(struct chunk *chunk, PyObject *iterator) {
    PyObject *item;
    while (chunk->count < CHUNK && (item = PyIter_Next(iterator))) {
        struct one_key *const key = &chunk->keys[chunk->count];
        if (!key_of(item, key)) {
            Py_DECREF(item);
            return false;
        }
        chunk->items[chunk->count] = item;
        chunk->plain[chunk->count++] = key->key;
    }
    return !PyErr_Occurred();
}

static void empty_chunk(struct chunk *chunk) {
    for (size_t i = 0; i < chunk->count; i++) {
        release_key(&chunk->keys[i]);
        Py_DECREF(chunk->items[i]);
    }
    chunk->count = 0;
}

static bool act_on_iterable(const struct action *do_, PyObject *iterable,
                            struct results *results) {
    PyObject *const iterator = PyObject_GetIter(iterable);
    struct chunk *const chunk = PyMem_Malloc(sizeof *chunk);
    bool ok = iterator && chunk;
    if (iterator && !chunk) PyErr_NoMemory();
    for (bool more = true; ok && more;) {
        chunk->count = 0;
        ok = fill_chunk(chunk, iterator);
        more = chunk->count == CHUNK;
        if (ok) ok = act_on_keys(do_, chunk->plain, chunk->count, results);
        empty_chunk(chunk);
    }
    PyMem_Free(chunk);
    Py_XDECREF(iterator);
    return ok;
}

/* ---- Many keys: buffers of numbers --------------------------------------- */

/* The code of the items, without a sign for this machine's byte order. */
static char item_code(const Py_buffer *b) {
    const char *format = b->format ? b->format : "B";
    const union {
        uint16_t word;
        uint8_t byte;
    } one = {1};
    if (*format == '@' || *format == '=' || *format == (one.byte ? '<' : '>'))
        format++;
    return format[0] && !format[1] ? format[0] : 0;
}

/* numpy's uint64 and int64, array('Q') and memoryviews of them. */
static bool act_on_buffer(const struct action *do_, PyObject *object,
                          struct results *results) {
    Py_buffer b;
    if (PyObject_GetBuffer(object, &b, PyBUF_FORMAT | PyBUF_ND) != 0)
        return false;
    const char code = item_code(&b);
    const bool is_signed = code && strchr("qln", code);
    bool ok = b.ndim == 1 && b.itemsize == 8 && code && strchr("QLNqln", code);
    if (!ok)
        PyErr_Format(PyExc_TypeError,
                     "an array of keys has one dimension of 64-bit integers, "
                     "not %d of format '%s'",
                     b.ndim, b.format ? b.format : "B");
    const size_t n = (size_t)b.len / 8;
    if (ok && is_signed) ok = all_positive(b.buf, n);
    if (ok) ok = act_on_numbers(do_, b.buf, n, results);
    PyBuffer_Release(&b);
    return ok;
}

/* ---- Many keys: Arrow's C data interface --------------------------------- */

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

static bool has_nulls(const struct ArrowArray *array) {
    const uint8_t *const valid = array->buffers[0];
    if (!valid || array->null_count == 0) return false;
    for (int64_t i = array->offset; i < array->offset + array->length; i++)
        if (!(valid[i / 8] >> i % 8 & 1)) return true;
    return false;
}

static int64_t offset_at(const struct ArrowArray *array, bool large,
                         int64_t i) {
    return large ? ((const int64_t *)array->buffers[1])[array->offset + i]
                 : ((const int32_t *)array->buffers[1])[array->offset + i];
}

/* Strings or binaries: one buffer of bytes, and one of where each begins. */
static bool act_on_strings(const struct action *do_,
                           const struct ArrowArray *array, bool large,
                           struct results *results) {
    static const char none[1];
    const char *const bytes = array->buffers[2] ? array->buffers[2] : none;
    calyx_key keys[CHUNK];
    for (int64_t at = 0; at < array->length; at += CHUNK) {
        size_t n = 0;
        for (; n < CHUNK && at + (int64_t)n < array->length; n++) {
            const int64_t begin = offset_at(array, large, at + (int64_t)n);
            const int64_t end = offset_at(array, large, at + (int64_t)n + 1);
            if (begin < 0 || end < begin) {
                PyErr_SetString(PyExc_ValueError,
                                "the Arrow array has offsets that fall");
                return false;
            }
            keys[n] = (calyx_key){bytes + begin, (size_t)(end - begin)};
        }
        if (!act_on_keys(do_, keys, n, results)) return false;
        if (PyErr_CheckSignals() != 0) return false;
    }
    return true;
}

static bool act_on_arrow_array(const struct action *do_,
                               const struct ArrowSchema *schema,
                               const struct ArrowArray *array,
                               struct results *results) {
    const char *const format = schema->format;
    const bool strings = strlen(format) == 1 && strchr("uUzZ", *format);
    const bool numbers = strlen(format) == 1 && strchr("lL", *format);
    if (!(strings || numbers) || array->dictionary) {
        PyErr_Format(PyExc_TypeError,
                     "an Arrow array of keys has type string, binary, their "
                     "large forms, uint64 or int64, not format '%s'%s",
                     format, array->dictionary ? " with a dictionary" : "");
        return false;
    }
    if (array->length < 0 || array->offset < 0 ||
        array->n_buffers != (strings ? 3 : 2)) {
        PyErr_SetString(PyExc_ValueError, "the Arrow array is malformed");
        return false;
    }
    if (array->length == 0) return true;
    if (has_nulls(array)) {
        PyErr_SetString(PyExc_ValueError,
                        "the Arrow array has nulls, which are no keys");
        return false;
    }
    if (strings)
        return act_on_strings(do_, array, *format == 'U' || *format == 'Z',
                              results);
    const uint64_t *const at =
        (const uint64_t *)array->buffers[1] + array->offset;
    const size_t n = (size_t)array->length;
    return (*format == 'L' || all_positive(at, n)) &&
           act_on_numbers(do_, at, n, results);
}

static bool act_on_arrow(const struct action *do_, PyObject *object,
                         struct results *results) {
    PyObject *const both =
        PyObject_CallMethod(object, "__arrow_c_array__", NULL);
    if (!both) return false;
    bool ok = false;
    PyObject *schema, *array;
    if (PyArg_ParseTuple(both, "OO", &schema, &array)) {
        const struct ArrowSchema *const s =
            PyCapsule_GetPointer(schema, "arrow_schema");
        const struct ArrowArray *const a =
            s ? PyCapsule_GetPointer(array, "arrow_array") : NULL;
        ok = a && act_on_arrow_array(do_, s, a, results);
    }
    Py_DECREF(both); /* releases both structs */
    return ok;
}

/* ---- Many keys: of any source -------------------------------------------- */

static bool act(const struct action *do_, PyObject *keys,
                struct results *results) {
    if (PyUnicode_Check(keys) || PyBytes_Check(keys) ||
        PyByteArray_Check(keys)) {
        PyErr_Format(PyExc_TypeError,
                     "many keys are a list, an array or an iterable, not one "
                     "key of %R",
                     Py_TYPE(keys));
        return false;
    }
    if (PyObject_HasAttrString(keys, "__arrow_c_array__"))
        return act_on_arrow(do_, keys, results);
    if (PyObject_CheckBuffer(keys)) return act_on_buffer(do_, keys, results);
    return act_on_iterable(do_, keys, results);
}

/* A memoryview of bools: indexed like a list, and numpy takes it as it is. */
static PyObject *results_view(const struct results *r) {
    PyObject *const bytes =
        PyBytes_FromStringAndSize((const char *)r->at, (Py_ssize_t)r->count);
    PyObject *const plain = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    PyObject *const view =
        plain ? PyObject_CallMethod(plain, "cast", "s", "?") : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(plain);
    return view;
}

static PyObject *results_count(const struct results *r) {
    size_t set = 0;
    for (size_t i = 0; i < r->count; i++) set += r->at[i];
    return PyLong_FromSize_t(set);
}

static PyObject *run(struct action do_, PyObject *keys,
                     PyObject *(*result)(const struct results *)) {
    struct results results = {0};
    PyObject *const value = act(&do_, keys, &results) ? result(&results) : NULL;
    PyMem_Free(results.at);
    return value;
}

static calyx_status closed_or(calyx_status status, const FilterObject *self,
                              calyx_error *why) {
    if (!self->filter) {
        why->status = CALYX_BAD_ARGUMENT;
        strcpy(why->text, "the filter is closed");
        return why->status;
    }
    if (status != CALYX_OK) {
        why->status = status;
        strncpy(why->text, calyx_status_text(status), sizeof why->text - 1);
    }
    return status;
}

/* The call on the filter, if it is open, under its lock. */
#define LOCKED(self, how, why, call)                                     \
    do {                                                                 \
        lock_waiting((self), (how));                                     \
        const calyx_status status_ = (self)->filter ? (call) : CALYX_OK; \
        const calyx_status result_ = closed_or(status_, (self), why);    \
        unlock(self);                                                    \
        return result_;                                                  \
    } while (0)

static calyx_status add_keys(void *of, const calyx_key *keys, size_t n,
                             bool *fresh, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, to_add(self), why,
           calyx_add_many(self->filter, keys, n, fresh, NULL));
}

static calyx_status add_numbers(void *of, const uint64_t *numbers, size_t n,
                                bool *fresh, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, to_add(self), why,
           calyx_add_many_u64(self->filter, numbers, n, fresh, NULL));
}

static calyx_status has_keys(void *of, const calyx_key *keys, size_t n,
                             bool *found, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, SHARED, why,
           (calyx_has_many(self->filter, keys, n, found), CALYX_OK));
}

static calyx_status has_numbers(void *of, const uint64_t *numbers, size_t n,
                                bool *found, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, SHARED, why,
           (calyx_has_many_u64(self->filter, numbers, n, found), CALYX_OK));
}

static calyx_status remove_keys(void *of, const calyx_key *keys, size_t n,
                                bool *found, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, ALONE, why,
           calyx_remove_many(self->filter, keys, n, found, NULL));
}

static calyx_status remove_numbers(void *of, const uint64_t *numbers, size_t n,
                                   bool *found, calyx_error *why) {
    FilterObject *const self = of;
    LOCKED(self, ALONE, why,
           calyx_remove_many_u64(self->filter, numbers, n, found, NULL));
}

PyDoc_STRVAR(add_many_doc,
             "add_many(keys)\n--\n\n"
             "Add every key of a list, an iterable, an array of 64-bit "
             "integers (numpy,\narray) or an Arrow array. Return how many "
             "were not in the filter before.");
static PyObject *Filter_add_many(PyObject *self, PyObject *keys) {
    return run((struct action){add_keys, add_numbers, self}, keys,
               results_count);
}

PyDoc_STRVAR(has_many_doc,
             "has_many(keys)\n--\n\n"
             "Look up every key. Return a memoryview of bools, in their "
             "order: index it,\nmake a list of it, or give it to "
             "numpy.asarray, which does not copy it.");
static PyObject *Filter_has_many(PyObject *self, PyObject *keys) {
    return run((struct action){has_keys, has_numbers, self}, keys,
               results_view);
}

PyDoc_STRVAR(remove_many_doc,
             "remove_many(keys)\n--\n\n"
             "Remove every key, each of which must have been added. Return "
             "how many were\nfound. Only kinds that can 'remove'.");
static PyObject *Filter_remove_many(PyObject *self, PyObject *keys) {
    return run((struct action){remove_keys, remove_numbers, self}, keys,
               results_count);
}

/* ---- One key ------------------------------------------------------------- */

static int Filter_contains(PyObject *object, PyObject *key) {
    FilterObject *const self = (FilterObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return -1;
    int found = -1;
    if (lock(self, SHARED)) {
        found = calyx_has(self->filter, k.key.data, k.key.size);
        unlock(self);
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
    if (lock(self, how)) {
        bool changed = false;
        const calyx_status status =
            call(self->filter, k.key.data, k.key.size, &changed);
        unlock(self);
        answer = status == CALYX_OK ? PyBool_FromLong(changed)
                                    : raise_status(status);
    }
    release_key(&k);
    return answer;
}

PyDoc_STRVAR(add_doc,
             "add(key)\n--\n\n"
             "Add a key: str, bytes, or an int from 0 to 2**64 - 1. Return "
             "whether it was\nnot in the filter: True is certain, False may "
             "be a false positive.");
static PyObject *Filter_add(PyObject *self, PyObject *key) {
    FilterObject *const f = (FilterObject *)self;
    return change(f, key, to_add(f), calyx_add);
}

PyDoc_STRVAR(remove_doc,
             "remove(key)\n--\n\n"
             "Remove a key that was added. Return whether it was there. Only "
             "kinds that can\n'remove'. Removing a key that was never added "
             "may cause false negatives.");
static PyObject *Filter_remove(PyObject *self, PyObject *key) {
    return change((FilterObject *)self, key, ALONE, calyx_remove);
}

PyDoc_STRVAR(count_doc,
             "count(key)\n--\n\n"
             "How often a key was added, at most: 0 is certain. Kinds that "
             "cannot 'count'\nreturn 0 or 1.");
static PyObject *Filter_count(PyObject *object, PyObject *key) {
    FilterObject *const self = (FilterObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    PyObject *answer = NULL;
    if (lock(self, SHARED)) {
        answer = PyLong_FromUnsignedLong(
            calyx_count(self->filter, k.key.data, k.key.size));
        unlock(self);
    }
    release_key(&k);
    return answer;
}

/* ---- Options ------------------------------------------------------------- */

/* A secret key: 16 bytes or None. */
static bool secret_of(PyObject *object, uint8_t *to, const uint8_t **key) {
    *key = NULL;
    if (!object || object == Py_None) return true;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return false;
    if (size != SECRET_BYTES) {
        PyErr_Format(PyExc_ValueError, "key wants 16 secret bytes, not %zd",
                     size);
        return false;
    }
    memcpy(to, bytes, SECRET_BYTES);
    *key = to;
    return true;
}

/* None is the default; other numbers must not be negative, nor 0. */
static bool positive_of(PyObject *object, const char *name, uint64_t *to) {
    *to = 0;
    if (!object || object == Py_None) return true;
    *to = PyLong_AsUnsignedLongLong(object);
    if (*to == (uint64_t)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError, "%s wants a positive number, not %R",
                         name, object);
        return false;
    }
    if (*to) return true;
    PyErr_Format(PyExc_ValueError, "%s wants a positive number, not 0", name);
    return false;
}

static bool rate_of(PyObject *object, double *to) {
    *to = 0;
    if (!object || object == Py_None) return true;
    *to = PyFloat_AsDouble(object);
    if (*to == -1 && PyErr_Occurred()) return false;
    if (*to > 0 && *to < 1) return true;
    PyErr_Format(PyExc_ValueError,
                 "p, the false-positive rate, lies between 0 and 1, not %R",
                 object);
    return false;
}

/* What Filter(), plan() and Builder() have in common. */
#define OPTION_NAMES                                                     \
    "n", "p", "kind", "bits", "probes", "hash", "seed", "key", "growth", \
        "strict", "concurrent"
#define OPTION_FORMAT "OO$zOOzKOdpp"

struct wanted {
    calyx_options options;
    uint8_t secret[SECRET_BYTES];
    PyObject *n, *p, *bits, *probes, *key;
    unsigned long long seed;
    int strict, concurrent;
};

/* The addresses for PyArg_ParseTupleAndKeywords, in the order of the names. */
#define OPTION_PLACES(w)                                                 \
    &(w)->n, &(w)->p, &(w)->options.kind, &(w)->bits, &(w)->probes,      \
        &(w)->options.hash, &(w)->seed, &(w)->key, &(w)->options.growth, \
        &(w)->strict, &(w)->concurrent

static bool read_options(struct wanted *w) {
    uint64_t probes;
    calyx_options *const o = &w->options;
    if (!positive_of(w->n, "n, the number of keys,", &o->capacity) ||
        !positive_of(w->bits, "bits", &o->bits) ||
        !positive_of(w->probes, "probes", &probes) || !rate_of(w->p, &o->fpr) ||
        !secret_of(w->key, w->secret, &o->key))
        return false;
    if (probes > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "probes is too large");
        return false;
    }
    o->probes = (uint32_t)probes;
    o->seed = w->seed;
    o->strict = w->strict;
    o->concurrent = w->concurrent;
    if (o->key && !o->hash) o->hash = "siphash";
    return true;
}

/* ---- Info ---------------------------------------------------------------- */

static PyStructSequence_Field info_fields[] = {
    {"kind", "'line': one of calyx.kinds()"},
    {"kernel", "'avx2': how its bits are set and tested"},
    {"hash", "'xxh3': one of calyx.hashes()"},
    {"seed", "of the hash"},
    {"capacity", "keys it holds before the rate exceeds fpr"},
    {"items", "keys that were added"},
    {"bits", "places for bits"},
    {"bytes", "size of all bits and counters"},
    {"parts", "1, and one more for each time it grew"},
    {"probes", "bits that a key sets"},
    {"growth", "0 if its size is fixed"},
    {"fpr", "the rate at capacity"},
    {"fpr_now", "the rate to expect now"},
    {"fill", "share of the bits that are set"},
    {"distinct", "number of keys, estimated from the fill"},
    {"strict", "new keys are refused at capacity"},
    {"concurrent", "many threads add at once"},
    {"read_only", "mapped for reading"},
    {"can", "frozenset of abilities: 'add', 'remove', ..."},
    {NULL, NULL},
};

static PyStructSequence_Desc info_description = {
    .name = "calyx.Info",
    .doc = "What a filter is, or would be.",
    .fields = info_fields,
    .n_in_sequence = sizeof info_fields / sizeof *info_fields - 1,
};

static PyObject *abilities(uint32_t can) {
    static const struct {
        uint32_t flag;
        const char *name;
    } all[] = {
        {CALYX_CAN_ADD, "add"},
        {CALYX_CAN_REMOVE, "remove"},
        {CALYX_CAN_COUNT, "count"},
        {CALYX_CAN_MERGE, "merge"},
        {CALYX_CAN_INTERSECT, "intersect"},
        {CALYX_CAN_FOLD, "fold"},
        {CALYX_CAN_GROW, "grow"},
        {CALYX_CAN_SHARE, "share"},
        {CALYX_CAN_STATIC, "static"},
        {CALYX_CAN_PARTS, "parts"},
    };
    PyObject *const names = PyList_New(0);
    if (!names) return NULL;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (!(can & all[i].flag)) continue;
        PyObject *const name = PyUnicode_FromString(all[i].name);
        const int failed = !name || PyList_Append(names, name) != 0;
        Py_XDECREF(name);
        if (failed) {
            Py_DECREF(names);
            return NULL;
        }
    }
    PyObject *const set = PyFrozenSet_New(names);
    Py_DECREF(names);
    return set;
}

static PyObject *info_object(const calyx_info *is) {
    PyObject *const info = PyStructSequence_New(info_type);
    if (!info) return NULL;
    PyObject *const values[] = {
        PyUnicode_FromString(is->kind),
        PyUnicode_FromString(is->kernel),
        PyUnicode_FromString(is->hash),
        PyLong_FromUnsignedLongLong(is->seed),
        PyLong_FromUnsignedLongLong(is->capacity),
        PyLong_FromUnsignedLongLong(is->items),
        PyLong_FromUnsignedLongLong(is->bits),
        PyLong_FromUnsignedLongLong(is->bytes),
        PyLong_FromUnsignedLong(is->parts),
        PyLong_FromUnsignedLong(is->probes),
        PyFloat_FromDouble(is->growth),
        PyFloat_FromDouble(is->fpr),
        PyFloat_FromDouble(is->fpr_now),
        PyFloat_FromDouble(is->fill),
        PyFloat_FromDouble(is->distinct),
        PyBool_FromLong(is->strict),
        PyBool_FromLong(is->concurrent),
        PyBool_FromLong(is->read_only),
        abilities(is->can),
    };
    bool whole = true;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        whole = whole && values[i];
        PyStructSequence_SetItem(info, (Py_ssize_t)i, values[i]);
    }
    if (whole) return info;
    Py_DECREF(info);
    return NULL;
}

static PyObject *Filter_info(PyObject *object, void *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, SHARED)) return NULL;
    calyx_info info;
    Py_BEGIN_ALLOW_THREADS calyx_describe(self->filter, &info);
    unlock(self);
    Py_END_ALLOW_THREADS return info_object(&info);
}

static bool short_info(FilterObject *self, calyx_info *info) {
    if (!lock(self, SHARED)) return false;
    calyx_info_of(self->filter, info);
    unlock(self);
    return true;
}

static Py_ssize_t Filter_length(PyObject *self) {
    calyx_info info;
    if (!short_info((FilterObject *)self, &info)) return -1;
    return (Py_ssize_t)info.items;
}

/* A filter is true even when it is empty: `if f:` asks whether there is one. */
static int Filter_bool(PyObject *self) {
    (void)self;
    return 1;
}

static PyObject *Filter_repr(PyObject *object) {
    FilterObject *const self = (FilterObject *)object;
    calyx_info info;
    if (!short_info(self, &info)) {
        PyErr_Clear();
        return PyUnicode_FromString("<calyx.Filter, closed>");
    }
    PyObject *const rate = PyFloat_FromDouble(info.fpr);
    if (!rate) return NULL;
    PyObject *const text = PyUnicode_FromFormat(
        "<calyx.Filter of kind %s: %llu of %llu keys at %R, %llu bytes>",
        info.kind, (unsigned long long)info.items,
        (unsigned long long)info.capacity, rate,
        (unsigned long long)info.bytes);
    Py_DECREF(rate);
    return text;
}

/* ---- Make and open ------------------------------------------------------- */

static PyObject *Filter_new(PyTypeObject *type, PyObject *positional,
                            PyObject *named) {
    static char *names[] = {OPTION_NAMES, NULL};
    struct wanted w = {.n = NULL};
    if (!PyArg_ParseTupleAndKeywords(positional, named,
                                     "|" OPTION_FORMAT ":Filter", names,
                                     OPTION_PLACES(&w)) ||
        !read_options(&w))
        return NULL;
    calyx_filter *filter;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = calyx_new(&w.options, &filter, &why);
    Py_END_ALLOW_THREADS return status == CALYX_OK ? wrap(type, filter)
                                                   : raise_error(&why);
}

static bool path_of(PyObject *object, PyObject **bytes, const char **path) {
    if (!PyUnicode_FSConverter(object, bytes)) return false;
    *path = PyBytes_AsString(*bytes);
    return *path != NULL;
}

PyDoc_STRVAR(open_doc,
             "open(path, *, write=False, key=None, verify='lazy')\n--\n\n"
             "Use a file in place, without reading it: processes that open "
             "it share one\ncopy. With write=True keys can be added, by one "
             "process at a time; then call\nclose(), or use `with`. verify "
             "is 'lazy' (each range before its first use),\n'whole' or "
             "'none'.");
static PyObject *Filter_open(PyObject *type, PyObject *positional,
                             PyObject *named) {
    static char *names[] = {"path", "write", "key", "verify", NULL};
    PyObject *file, *key = NULL, *bytes;
    int writes = 0;
    const char *verify = "lazy", *path;
    if (!PyArg_ParseTupleAndKeywords(positional, named, "O|$pOs:open", names,
                                     &file, &writes, &key, &verify))
        return NULL;
    uint8_t secret[SECRET_BYTES];
    calyx_open_options how = {.verify = CALYX_VERIFY_LAZY};
    if (!secret_of(key, secret, &how.key)) return NULL;
    if (strcmp(verify, "whole") == 0) {
        how.verify = CALYX_VERIFY_WHOLE;
    } else if (strcmp(verify, "none") == 0) {
        how.verify = CALYX_VERIFY_NONE;
    } else if (strcmp(verify, "lazy") != 0) {
        PyErr_Format(PyExc_ValueError,
                     "verify is 'lazy', 'whole' or 'none', not '%s'", verify);
        return NULL;
    }
    if (!path_of(file, &bytes, &path)) return NULL;
    calyx_filter *filter;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status =
        calyx_map(path, writes ? CALYX_WRITE : CALYX_READ, &how, &filter, &why);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return status == CALYX_OK ? wrap((PyTypeObject *)type, filter)
                              : raise_error(&why);
}

PyDoc_STRVAR(load_doc,
             "load(path, *, key=None)\n--\n\n"
             "Read a file into memory, and compare all of it with its "
             "checksums.");
static PyObject *Filter_load(PyObject *type, PyObject *positional,
                             PyObject *named) {
    static char *names[] = {"path", "key", NULL};
    PyObject *file, *key = NULL, *bytes;
    const char *path;
    if (!PyArg_ParseTupleAndKeywords(positional, named, "O|$O:load", names,
                                     &file, &key))
        return NULL;
    uint8_t secret[SECRET_BYTES];
    calyx_open_options how = {.key = NULL};
    if (!secret_of(key, secret, &how.key) || !path_of(file, &bytes, &path))
        return NULL;
    calyx_filter *filter;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = calyx_load(path, &how, &filter, &why);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    return status == CALYX_OK ? wrap((PyTypeObject *)type, filter)
                              : raise_error(&why);
}

PyDoc_STRVAR(from_bytes_doc, "from_bytes(data, *, key=None)\n--\n\n"
                             "A copy of the filter that to_bytes() encoded.");
static PyObject *Filter_from_bytes(PyObject *type, PyObject *positional,
                                   PyObject *named) {
    static char *names[] = {"data", "key", NULL};
    PyObject *key = NULL;
    Py_buffer data;
    if (!PyArg_ParseTupleAndKeywords(positional, named, "y*|$O:from_bytes",
                                     names, &data, &key))
        return NULL;
    uint8_t secret[SECRET_BYTES];
    calyx_open_options how = {.key = NULL};
    calyx_filter *filter = NULL;
    calyx_error why = {.status = CALYX_OK};
    const bool known = secret_of(key, secret, &how.key);
    if (known) {
        Py_BEGIN_ALLOW_THREADS calyx_decode(data.buf, (size_t)data.len, &how,
                                            &filter, &why);
        Py_END_ALLOW_THREADS
    }
    PyBuffer_Release(&data);
    if (!known) return NULL;
    return filter ? wrap((PyTypeObject *)type, filter) : raise_error(&why);
}

/* ---- Save and close ------------------------------------------------------ */

PyDoc_STRVAR(save_doc, "save(path)\n--\n\n"
                       "Write a file, and replace an old one in one step.");
static PyObject *Filter_save(PyObject *object, PyObject *file) {
    FilterObject *const self = (FilterObject *)object;
    PyObject *bytes;
    const char *path;
    if (!path_of(file, &bytes, &path)) return NULL;
    calyx_status status = CALYX_OK;
    calyx_error why;
    if (lock(self, SHARED)) {
        Py_BEGIN_ALLOW_THREADS status = calyx_save(self->filter, path, &why);
        unlock(self);
        Py_END_ALLOW_THREADS if (status != CALYX_OK) raise_error(&why);
    }
    Py_DECREF(bytes);
    if (PyErr_Occurred()) return NULL;
    Py_RETURN_NONE;
}

PyDoc_STRVAR(to_bytes_doc, "to_bytes()\n--\n\n"
                           "The bytes of a file, which from_bytes() takes.");
static PyObject *Filter_to_bytes(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, ALONE)) return NULL;
    const uint64_t size = calyx_encoded_size(self->filter);
    calyx_error why;
    calyx_status status = CALYX_OK;
    PyObject *bytes = size > PY_SSIZE_T_MAX
                          ? PyErr_NoMemory()
                          : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    char *const to = bytes ? PyBytes_AsString(bytes) : NULL;
    Py_BEGIN_ALLOW_THREADS if (to) status =
        calyx_encode(self->filter, to, (size_t)size, &why);
    unlock(self);
    Py_END_ALLOW_THREADS if (status == CALYX_OK) return bytes;
    Py_DECREF(bytes);
    return raise_error(&why);
}

PyDoc_STRVAR(sync_doc,
             "sync()\n--\n\n"
             "Of a file that is open for writing: wait until its keys are on "
             "the disk.");
static PyObject *Filter_sync(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, ALONE)) return NULL;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = calyx_sync(self->filter, &why);
    unlock(self);
    Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(close_doc,
             "close()\n--\n\n"
             "Free the filter. If it is a file open for writing, raise an "
             "error unless its\nkeys are safe on the disk.");
static PyObject *Filter_close(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS lock_waiting(self, ALONE);
    status = calyx_close(self->filter, &why);
    self->filter = NULL;
    unlock(self);
    Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

static PyObject *Filter_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyObject *Filter_exit(PyObject *self, PyObject *unused) {
    return Filter_close(self, unused);
}

PyDoc_STRVAR(verify_doc,
             "verify()\n--\n\n"
             "Compare every byte of a file in place with its checksum; raise "
             "calyx.Error if\nit is damaged.");
static PyObject *Filter_verify(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, SHARED)) return NULL;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = calyx_verify(self->filter, &why);
    unlock(self);
    Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

/* ---- Whole filters ------------------------------------------------------- */

typedef calyx_status make_other(const calyx_filter *f, calyx_filter **out,
                                calyx_error *why);

static PyObject *derive(PyObject *object, make_other *call) {
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, SHARED)) return NULL;
    calyx_filter *other;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = call(self->filter, &other, &why);
    unlock(self);
    Py_END_ALLOW_THREADS return status == CALYX_OK
        ? wrap(Py_TYPE(object), other)
        : raise_error(&why);
}

PyDoc_STRVAR(copy_doc, "copy()\n--\n\nA separate filter with the same keys.");
static PyObject *Filter_copy(PyObject *self, PyObject *unused) {
    (void)unused;
    return derive(self, calyx_copy);
}

PyDoc_STRVAR(clear_doc, "clear()\n--\n\nRemove all keys.");
static PyObject *Filter_clear(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, ALONE)) return NULL;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = calyx_clear(self->filter);
    unlock(self);
    Py_END_ALLOW_THREADS if (status != CALYX_OK) return raise_status(status);
    Py_RETURN_NONE;
}

typedef calyx_status join(calyx_filter *f, const calyx_filter *other,
                          calyx_error *why);

/* Locks are taken in the order of addresses, so that a |= b beside b |= a
 * cannot block each other. */
static void lock_both(FilterObject *changed, FilterObject *read) {
    if (changed < read) {
        lock_waiting(changed, ALONE);
        lock_waiting(read, ALONE);
    } else {
        if (read != changed) lock_waiting(read, ALONE);
        lock_waiting(changed, ALONE);
    }
}

static PyObject *join_in_place(PyObject *left, PyObject *right, join *call) {
    if (!PyObject_TypeCheck(right, filter_type)) Py_RETURN_NOTIMPLEMENTED;
    FilterObject *const self = (FilterObject *)left;
    FilterObject *const other = (FilterObject *)right;
    calyx_error why;
    calyx_status status = CALYX_OK;
    Py_BEGIN_ALLOW_THREADS lock_both(self, other);
    const bool open = self->filter && other->filter;
    if (!open)
        status = closed_or(CALYX_OK, self->filter ? other : self, &why);
    else if (self != other) /* a set joined with itself is itself */
        status = call(self->filter, other->filter, &why);
    unlock(self);
    if (other != self) unlock(other);
    Py_END_ALLOW_THREADS return status == CALYX_OK ? Py_NewRef(left)
                                                   : raise_error(&why);
}

static PyObject *Filter_ior(PyObject *self, PyObject *other) {
    return join_in_place(self, other, calyx_merge);
}

static PyObject *Filter_iand(PyObject *self, PyObject *other) {
    return join_in_place(self, other, calyx_intersect);
}

/* Pickle: the bytes of a file. A secret key is not among them. */
static PyObject *Filter_reduce(PyObject *self, PyObject *unused) {
    PyObject *const bytes = Filter_to_bytes(self, unused);
    PyObject *const make =
        bytes ? PyObject_GetAttrString((PyObject *)Py_TYPE(self), "from_bytes")
              : NULL;
    PyObject *const both = make ? Py_BuildValue("(O(O))", make, bytes) : NULL;
    Py_XDECREF(make);
    Py_XDECREF(bytes);
    return both;
}

PyDoc_STRVAR(comment_doc,
             "A note of at most 1000 bytes, saved with the filter.");
static PyObject *Filter_comment(PyObject *object, void *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock(self, SHARED)) return NULL;
    PyObject *const text = PyUnicode_FromString(calyx_comment(self->filter));
    unlock(self);
    return text;
}

static int Filter_set_comment(PyObject *object, PyObject *value, void *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    Py_ssize_t size = 0;
    const char *const text = value ? PyUnicode_AsUTF8AndSize(value, &size) : "";
    if (!text) return -1;
    if (strlen(text) != (size_t)size) {
        PyErr_SetString(PyExc_ValueError, "a comment has no zero byte");
        return -1;
    }
    if (!lock(self, ALONE)) return -1;
    const calyx_status status = calyx_set_comment(self->filter, text);
    unlock(self);
    if (status == CALYX_OK) return 0;
    raise_status(status);
    return -1;
}

/* ---- The type ------------------------------------------------------------ */

#define METHOD(name, flags) \
    { #name, (PyCFunction)(void (*)(void))Filter_##name, flags, name##_doc }

static PyMethodDef filter_methods[] = {
    METHOD(add, METH_O),
    METHOD(add_many, METH_O),
    METHOD(has_many, METH_O),
    METHOD(remove, METH_O),
    METHOD(remove_many, METH_O),
    METHOD(count, METH_O),
    METHOD(open, METH_VARARGS | METH_KEYWORDS | METH_CLASS),
    METHOD(load, METH_VARARGS | METH_KEYWORDS | METH_CLASS),
    METHOD(from_bytes, METH_VARARGS | METH_KEYWORDS | METH_CLASS),
    METHOD(to_bytes, METH_NOARGS),
    METHOD(save, METH_O),
    METHOD(sync, METH_NOARGS),
    METHOD(close, METH_NOARGS),
    METHOD(verify, METH_NOARGS),
    METHOD(copy, METH_NOARGS),
    METHOD(clear, METH_NOARGS),
    {"__enter__", Filter_enter, METH_NOARGS, NULL},
    {"__exit__", Filter_exit, METH_VARARGS, NULL},
    {"__reduce__", Filter_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef filter_properties[] = {
    {"info", Filter_info, NULL, "What the filter is: a calyx.Info.", NULL},
    {"comment", Filter_comment, Filter_set_comment, comment_doc, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    filter_doc,
    "Filter(n=None, p=None, *, kind=None, bits=None, probes=None, hash=None,\n"
    "       seed=0, key=None, growth=0, strict=False, concurrent=False)\n--\n\n"
    "A set of n keys that says 'certainly not' or 'maybe': for a key that was\n"
    "never added, `key in f` is true with probability p.\n\n"
    "A key is str, bytes, or an int from 0 to 2**64 - 1. Of n, p and bits, "
    "two\n"
    "give the third. len(f) is the number of keys; f |= g and f &= g join\n"
    "filters of one shape.");

static PyType_Slot filter_slots[] = {
    {Py_tp_doc, (void *)filter_doc},   {Py_tp_new, Filter_new},
    {Py_tp_dealloc, Filter_dealloc},   {Py_tp_repr, Filter_repr},
    {Py_tp_methods, filter_methods},   {Py_tp_getset, filter_properties},
    {Py_sq_contains, Filter_contains}, {Py_sq_length, Filter_length},
    {Py_nb_bool, Filter_bool},         {Py_nb_inplace_or, Filter_ior},
    {Py_nb_inplace_and, Filter_iand},  {0, NULL},
};

static PyType_Spec filter_spec = {
    .name = "calyx.Filter",
    .basicsize = sizeof(FilterObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = filter_slots,
};

/* ---- Builder ------------------------------------------------------------- */

typedef struct {
    PyObject_HEAD calyx_builder *builder;
    pthread_mutex_t lock;
} BuilderObject;

static PyObject *Builder_new(PyTypeObject *type, PyObject *positional,
                             PyObject *named) {
    static char *names[] = {OPTION_NAMES, "memory", "folder", "threads", NULL};
    struct wanted w = {.n = NULL};
    PyObject *memory = NULL, *folder = NULL, *folder_bytes = NULL;
    unsigned threads = 0;
    if (!PyArg_ParseTupleAndKeywords(
            positional, named, "|" OPTION_FORMAT "OOI:Builder", names,
            OPTION_PLACES(&w), &memory, &folder, &threads) ||
        !read_options(&w))
        return NULL;
    calyx_builder_options want = {.filter = w.options, .threads = threads};
    if (!positive_of(memory, "memory", &want.memory_bytes)) return NULL;
    if (folder && folder != Py_None &&
        !path_of(folder, &folder_bytes, &want.folder))
        return NULL;
    BuilderObject *const self = (BuilderObject *)PyType_GenericAlloc(type, 0);
    calyx_error why;
    calyx_status status = CALYX_OK;
    if (self) {
        pthread_mutex_init(&self->lock, NULL);
        status = calyx_builder_new(&want, &self->builder, &why);
    }
    Py_XDECREF(folder_bytes);
    if (status == CALYX_OK) return (PyObject *)self;
    self->builder = NULL;
    Py_DECREF(self);
    return raise_error(&why);
}

static void Builder_dealloc(PyObject *object) {
    BuilderObject *const self = (BuilderObject *)object;
    PyTypeObject *const type = Py_TYPE(object);
    calyx_builder_free(self->builder);
    pthread_mutex_destroy(&self->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

static calyx_status build_keys(void *of, const calyx_key *keys, size_t n,
                               bool *added, calyx_error *why) {
    BuilderObject *const self = of;
    memset(added, true, n);
    pthread_mutex_lock(&self->lock);
    const calyx_status status =
        calyx_builder_add_many(self->builder, keys, n, why);
    pthread_mutex_unlock(&self->lock);
    return status;
}

static calyx_status build_numbers(void *of, const uint64_t *numbers, size_t n,
                                  bool *added, calyx_error *why) {
    BuilderObject *const self = of;
    memset(added, true, n);
    pthread_mutex_lock(&self->lock);
    const calyx_status status =
        calyx_builder_add_many_u64(self->builder, numbers, n, why);
    pthread_mutex_unlock(&self->lock);
    return status;
}

PyDoc_STRVAR(builder_add_doc, "add(key)\n--\n\nAdd a key, as Filter.add does.");
static PyObject *Builder_add(PyObject *object, PyObject *key) {
    BuilderObject *const self = (BuilderObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    calyx_error why = {.status = CALYX_OK};
    bool added;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS status = build_keys(self, &k.key, 1, &added, &why);
    Py_END_ALLOW_THREADS release_key(&k);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

PyDoc_STRVAR(builder_add_many_doc,
             "add_many(keys)\n--\n\n"
             "Add every key, as Filter.add_many does. Return their number.");
static PyObject *Builder_add_many(PyObject *self, PyObject *keys) {
    return run((struct action){build_keys, build_numbers, self}, keys,
               results_count);
}

PyDoc_STRVAR(builder_finish_doc,
             "finish()\n--\n\n"
             "The filter of the keys added so far. The builder has them "
             "still.");
static PyObject *Builder_finish(PyObject *object, PyObject *unused) {
    (void)unused;
    BuilderObject *const self = (BuilderObject *)object;
    calyx_filter *filter;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    status = calyx_builder_finish(self->builder, &filter, &why);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS return status == CALYX_OK ? wrap(filter_type, filter)
                                                   : raise_error(&why);
}

PyDoc_STRVAR(builder_save_doc,
             "save(path)\n--\n\n"
             "Write the filter of the keys added so far to a file.");
static PyObject *Builder_save(PyObject *object, PyObject *file) {
    BuilderObject *const self = (BuilderObject *)object;
    PyObject *bytes;
    const char *path;
    if (!path_of(file, &bytes, &path)) return NULL;
    calyx_error why;
    calyx_status status;
    Py_BEGIN_ALLOW_THREADS pthread_mutex_lock(&self->lock);
    status = calyx_builder_save(self->builder, path, &why);
    pthread_mutex_unlock(&self->lock);
    Py_END_ALLOW_THREADS Py_DECREF(bytes);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

static PyMethodDef builder_methods[] = {
    {"add", Builder_add, METH_O, builder_add_doc},
    {"add_many", Builder_add_many, METH_O, builder_add_many_doc},
    {"finish", Builder_finish, METH_NOARGS, builder_finish_doc},
    {"save", Builder_save, METH_O, builder_save_doc},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    builder_doc,
    "Builder(n=None, p=None, *, kind=None, ..., memory=None, folder=None,\n"
    "        threads=0)\n--\n\n"
    "Collects keys whose number need not be known, then makes a filter. Kinds\n"
    "that can only be built, such as 'ribbon', are made this way. Beyond "
    "`memory`\n"
    "bytes it uses a temporary file in `folder`.");

static PyType_Slot builder_slots[] = {
    {Py_tp_doc, (void *)builder_doc},
    {Py_tp_new, Builder_new},
    {Py_tp_dealloc, Builder_dealloc},
    {Py_tp_methods, builder_methods},
    {0, NULL},
};

static PyType_Spec builder_spec = {
    .name = "calyx.Builder",
    .basicsize = sizeof(BuilderObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = builder_slots,
};

/* ---- The module ---------------------------------------------------------- */

PyDoc_STRVAR(plan_doc,
             "plan(n=None, p=None, *, kind=None, bits=None, probes=None, ...)\n"
             "--\n\n"
             "What Filter() with these options would be, as a calyx.Info.");
static PyObject *plan(PyObject *module, PyObject *positional, PyObject *named) {
    (void)module;
    static char *names[] = {OPTION_NAMES, NULL};
    struct wanted w = {.n = NULL};
    if (!PyArg_ParseTupleAndKeywords(positional, named,
                                     "|" OPTION_FORMAT ":plan", names,
                                     OPTION_PLACES(&w)) ||
        !read_options(&w))
        return NULL;
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&w.options, &info, &why) != CALYX_OK)
        return raise_error(&why);
    return info_object(&info);
}

static PyObject *list_of(const char *const *names) {
    PyObject *const list = PyList_New(0);
    for (; list && *names; names++) {
        PyObject *const name = PyUnicode_FromString(*names);
        const int failed = !name || PyList_Append(list, name) != 0;
        Py_XDECREF(name);
        if (!failed) continue;
        Py_DECREF(list);
        return NULL;
    }
    return list;
}

PyDoc_STRVAR(kinds_doc,
             "kinds()\n--\n\nThe kinds of filter, the default first.");
static PyObject *kinds(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return list_of(calyx_kinds());
}

PyDoc_STRVAR(hashes_doc, "hashes()\n--\n\nThe hashes, the default first.");
static PyObject *hashes(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return list_of(calyx_hashes());
}

static PyMethodDef module_methods[] = {
    {"plan", (PyCFunction)(void (*)(void))plan, METH_VARARGS | METH_KEYWORDS,
     plan_doc},
    {"kinds", kinds, METH_NOARGS, kinds_doc},
    {"hashes", hashes, METH_NOARGS, hashes_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_calyx",
    .m_doc = "Calyx: Bloom filters and their kin.",
    .m_size = -1,
    .m_methods = module_methods,
};

PyMODINIT_FUNC PyInit__calyx(void) {
    PyObject *const module = PyModule_Create(&module_definition);
    if (!module) return NULL;
    calyx_exception = PyErr_NewExceptionWithDoc(
        "calyx.Error",
        "A filter that does not fit, is damaged, or cannot do this.", NULL,
        NULL);
    info_type = PyStructSequence_NewType(&info_description);
    filter_type = (PyTypeObject *)PyType_FromSpec(&filter_spec);
    PyObject *const builder_type = PyType_FromSpec(&builder_spec);
    if (!calyx_exception || !info_type || !filter_type || !builder_type ||
        PyModule_AddObjectRef(module, "Error", calyx_exception) != 0 ||
        PyModule_AddObjectRef(module, "Info", (PyObject *)info_type) != 0 ||
        PyModule_AddObjectRef(module, "Filter", (PyObject *)filter_type) != 0 ||
        PyModule_AddObjectRef(module, "Builder", builder_type) != 0 ||
        PyModule_AddStringConstant(module, "__version__", calyx_version()) !=
            0) {
        Py_DECREF(module);
        return NULL;
    }
    Py_DECREF(builder_type);
    return module;
}
