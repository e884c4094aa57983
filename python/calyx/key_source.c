/*
 * Keys from Python: one object, or many from a list, an iterable, a buffer of
 * numbers or an Arrow array.
 */
#include "binding.h"

enum { CHUNK = 1024 };      /* keys that are taken from an iterable at once */
enum { NUMBERS = 1 << 20 }; /* numbers that are processed without the GIL   */

/* ---- One key ------------------------------------------------------------- */

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

bool key_of(PyObject *object, struct one_key *k) {
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

void release_key(struct one_key *k) {
    if (k->has_buffer) PyBuffer_Release(&k->buffer);
}

/* ---- Results ------------------------------------------------------------- */

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

PyObject *view_results(const struct results *r) {
    PyObject *const bytes =
        PyBytes_FromStringAndSize((const char *)r->at, (Py_ssize_t)r->count);
    PyObject *const plain = bytes ? PyMemoryView_FromObject(bytes) : NULL;
    PyObject *const view =
        plain ? PyObject_CallMethod(plain, "cast", "s", "?") : NULL;
    Py_XDECREF(bytes);
    Py_XDECREF(plain);
    return view;
}

PyObject *count_results(const struct results *r) {
    size_t set = 0;
    for (size_t i = 0; i < r->count; i++) set += r->at[i];
    return PyLong_FromSize_t(set);
}

/* ---- Iterables ----------------------------------------------------------- */

static bool act_on_keys(const struct action *action, const calyx_key *keys,
                        size_t n, struct results *results) {
    bool *const to = more_results(results, n);
    if (!to) return false;
    calyx_error why = {.status = CALYX_OK};
    PyThreadState *const gil = PyEval_SaveThread();
    const calyx_status status = action->keys(action->of, keys, n, to, &why);
    PyEval_RestoreThread(gil);
    if (status != CALYX_OK) return raise_error(&why);
    results->count += n;
    return true;
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

static bool act_on_iterable(const struct action *action, PyObject *iterable,
                            struct results *results) {
    PyObject *const iterator = PyObject_GetIter(iterable);
    struct chunk *const chunk = PyMem_Malloc(sizeof *chunk);
    bool ok = iterator && chunk;
    if (iterator && !chunk) PyErr_NoMemory();
    for (bool more = true; ok && more;) {
        chunk->count = 0;
        ok = fill_chunk(chunk, iterator);
        more = chunk->count == CHUNK;
        if (ok) ok = act_on_keys(action, chunk->plain, chunk->count, results);
        empty_chunk(chunk);
    }
    PyMem_Free(chunk);
    Py_XDECREF(iterator);
    return ok;
}

/* ---- Numbers ------------------------------------------------------------- */

static bool act_on_numbers(const struct action *action, const uint64_t *numbers,
                           size_t n, struct results *results) {
    for (size_t at = 0; at < n; at += NUMBERS) {
        const size_t some = n - at < NUMBERS ? n - at : NUMBERS;
        bool *const to = more_results(results, some);
        if (!to) return false;
        calyx_error why = {.status = CALYX_OK};
        PyThreadState *const gil = PyEval_SaveThread();
        const calyx_status status =
            action->numbers(action->of, numbers + at, some, to, &why);
        PyEval_RestoreThread(gil);
        if (status != CALYX_OK) return raise_error(&why);
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
static bool act_on_buffer(const struct action *action, PyObject *object,
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
    if (ok) ok = act_on_numbers(action, b.buf, n, results);
    PyBuffer_Release(&b);
    return ok;
}

/* ---- Arrow's C data interface -------------------------------------------- */

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
static bool act_on_strings(const struct action *action,
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
        if (!act_on_keys(action, keys, n, results)) return false;
        if (PyErr_CheckSignals() != 0) return false;
    }
    return true;
}

static bool act_on_arrow_array(const struct action *action,
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
        return act_on_strings(action, array, *format == 'U' || *format == 'Z',
                              results);
    const uint64_t *const at =
        (const uint64_t *)array->buffers[1] + array->offset;
    const size_t n = (size_t)array->length;
    return (*format == 'L' || all_positive(at, n)) &&
           act_on_numbers(action, at, n, results);
}

static bool act_on_arrow(const struct action *action, PyObject *object,
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
        ok = a && act_on_arrow_array(action, s, a, results);
    }
    Py_DECREF(both); /* releases both structs */
    return ok;
}

/* ---- Of any source ------------------------------------------------------- */

static bool act(const struct action *action, PyObject *keys,
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
        return act_on_arrow(action, keys, results);
    if (PyObject_CheckBuffer(keys)) return act_on_buffer(action, keys, results);
    return act_on_iterable(action, keys, results);
}

PyObject *run_action(struct action action, PyObject *keys,
                     PyObject *(*result)(const struct results *)) {
    struct results results = {0};
    PyObject *const value =
        act(&action, keys, &results) ? result(&results) : NULL;
    PyMem_Free(results.at);
    return value;
}
