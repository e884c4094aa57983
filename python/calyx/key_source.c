/*
 * Keys from Python: one object, or many from a list, an iterable, a buffer of
 * integers or an Arrow array.
 *
 * A number is a key of 64 bits, whatever type holds it: 5 is one key as int,
 * numpy.int8 or uint64. A negative number is its two's complement, as in
 * integrations/sqlite, so -1 and 2**64 - 1 are one key.
 */
#include "binding.h"

enum { CHUNK = 1024 };      /* keys that are taken from an iterable at once */
enum { NUMBERS = 1 << 20 }; /* numbers that are processed without the GIL   */

/* ---- One key ------------------------------------------------------------- */

static bool number_key(PyObject *object, struct one_key *k) {
    unsigned long long number = PyLong_AsUnsignedLongLong(object);
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_Clear(); /* negative, or too large */
        number = (unsigned long long)PyLong_AsLongLong(object);
    }
    if (number == (unsigned long long)-1 && PyErr_Occurred()) {
        PyErr_SetString(PyExc_OverflowError,
                        "a number is a key from -2**63 to 2**64 - 1");
        return false;
    }
    for (int i = 0; i < 8; i++) k->number[i] = (uint8_t)(number >> 8 * i);
    k->key = (calyx_key){k->number, sizeof k->number};
    return true;
}

/* The items of a buffer: the letter of their type, and the order of bytes. */
struct item_type {
    char code; /* 0 if there is more than a letter */
    bool little;
};

/* Is the first byte of a number its lowest, on this machine? */
static bool is_little(void) {
    const union {
        uint16_t word;
        uint8_t byte;
    } one = {1};
    return one.byte;
}

static struct item_type item_type(const Py_buffer *b) {
    struct item_type type = {.little = is_little()};
    const char *format = b->format ? b->format : "B";
    if (*format && strchr("@=<>!", *format)) {
        if (*format == '<') type.little = true;
        if (*format == '>' || *format == '!') type.little = false;
        format++;
    }
    if (format[0] && !format[1]) type.code = format[0];
    return type;
}

/* Bytes: bytearray, memoryview, mmap. False without an exception if the object
 * has none. Scalars of numpy have buffers without a dimension. */
static bool buffer_key(PyObject *object, struct one_key *k) {
    if (!PyObject_CheckBuffer(object)) return false;
    if (PyObject_GetBuffer(object, &k->buffer, PyBUF_FORMAT | PyBUF_ND) != 0) {
        PyErr_Clear();
        return false;
    }
    const char code = item_type(&k->buffer).code;
    if (k->buffer.ndim == 0 || !code || !strchr("Bbc", code)) {
        PyBuffer_Release(&k->buffer);
        return false;
    }
    k->has_buffer = true;
    k->key = (calyx_key){k->buffer.buf, (size_t)k->buffer.len};
    return true;
}

/* Any other object: bytes, or what Python takes for an index, such as
 * numpy.int32. */
static bool object_key(PyObject *object, struct one_key *k) {
    if (buffer_key(object, k)) return true;
    PyObject *const number =
        PyIndex_Check(object) ? PyNumber_Index(object) : NULL;
    if (!number) {
        PyErr_Format(PyExc_TypeError, "a key is str, bytes or int, not %R",
                     Py_TYPE(object));
        return false;
    }
    const bool taken = number_key(number, k);
    Py_DECREF(number);
    return taken;
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
    return PyLong_Check(object) ? number_key(object, k) : object_key(object, k);
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
    if (n == 0) return true;
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

/* Integers of 1, 2, 4 or 8 bytes. */
struct integers {
    const char *first;
    Py_ssize_t stride; /* bytes from one to the next */
    size_t count;
    int bytes;
    bool is_signed, little;
};

static uint64_t integer_at(const struct integers *from, size_t i) {
    const uint8_t *const at =
        (const uint8_t *)from->first + (Py_ssize_t)i * from->stride;
    uint64_t number = 0;
    for (int k = 0; k < from->bytes; k++)
        number |= (uint64_t)at[from->little ? k : from->bytes - 1 - k] << 8 * k;
    const uint64_t sign =
        from->is_signed ? UINT64_C(1) << (8 * from->bytes - 1) : 0;
    return (number ^ sign) - sign;
}

static bool act_on_copies(const struct action *action,
                          const struct integers *from,
                          struct results *results) {
    enum { COPIES = 1 << 14 };
    uint64_t *const copies = PyMem_Malloc(COPIES * sizeof *copies);
    if (!copies) PyErr_NoMemory();
    bool ok = copies;
    for (size_t at = 0; ok && at < from->count; at += COPIES) {
        const size_t left = from->count - at;
        const size_t some = left < COPIES ? left : COPIES;
        for (size_t i = 0; i < some; i++) copies[i] = integer_at(from, at + i);
        ok = act_on_numbers(action, copies, some, results);
    }
    PyMem_Free(copies);
    return ok;
}

/* In place if they are what the library takes: words of this machine, one after
 * the other. */
static bool act_on_integers(const struct action *action,
                            const struct integers *from,
                            struct results *results) {
    const bool in_place = from->bytes == 8 && from->stride == 8 &&
                          from->little == is_little() &&
                          (uintptr_t)from->first % sizeof(uint64_t) == 0;
    return in_place ? act_on_numbers(action, (const uint64_t *)from->first,
                                     from->count, results)
                    : act_on_copies(action, from, results);
}

/* numpy's arrays, array.array and memoryviews: of integers of any size, or of
 * objects and strings, which numpy makes into objects itself. */
static bool act_on_buffer(const struct action *action, PyObject *object,
                          struct results *results) {
    Py_buffer b;
    if (PyObject_GetBuffer(object, &b, PyBUF_FORMAT | PyBUF_STRIDES) != 0)
        return false;
    const char *const format = b.format ? b.format : "B";
    const struct item_type type = item_type(&b);
    const bool is_row = b.ndim == 1;
    bool ok;
    if (is_row && b.shape[0] == 0) {
        ok = true;
    } else if (is_row && type.code && strchr("bBhHiIlLqQnN", type.code) &&
               b.itemsize <= 8) {
        ok = act_on_integers(action,
                             &(struct integers){
                                 .first = b.buf,
                                 .stride = b.strides[0],
                                 .count = (size_t)b.shape[0],
                                 .bytes = (int)b.itemsize,
                                 .is_signed = strchr("bhilqn", type.code),
                                 .little = type.little,
                             },
                             results);
    } else if (is_row && *format && strchr("swO", format[strlen(format) - 1])) {
        ok = act_on_iterable(action, object, results);
    } else {
        PyErr_Format(PyExc_TypeError,
                     "an array of keys has one dimension of integers, strings "
                     "or objects, not %d of format '%s'",
                     b.ndim, format);
        ok = false;
    }
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

/* The bytes of an Arrow integer; 0 if the format is another. */
static int integer_bytes(const char *format) {
    static const char letters[] = "cCsSiIlL"; /* int8, uint8, int16, ... */
    const char *const at = strchr(letters, *format);
    return strlen(format) == 1 && at ? 1 << (at - letters) / 2 : 0;
}

static bool act_on_arrow_array(const struct action *action,
                               const struct ArrowSchema *schema,
                               const struct ArrowArray *array,
                               struct results *results) {
    const char *const format = schema->format;
    const bool strings = strlen(format) == 1 && strchr("uUzZ", *format);
    const int bytes = integer_bytes(format);
    if (array->length == 0) return true;
    if (!(strings || bytes) || array->dictionary) {
        PyErr_Format(PyExc_TypeError,
                     "an Arrow array of keys has type string, binary, their "
                     "large forms or an integer, not format '%s'%s",
                     format, array->dictionary ? " with a dictionary" : "");
        return false;
    }
    if (array->length < 0 || array->offset < 0 ||
        array->n_buffers != (strings ? 3 : 2)) {
        PyErr_SetString(PyExc_ValueError, "the Arrow array is malformed");
        return false;
    }
    if (has_nulls(array)) {
        PyErr_SetString(PyExc_ValueError,
                        "the Arrow array has nulls, which are no keys");
        return false;
    }
    if (strings)
        return act_on_strings(action, array, *format == 'U' || *format == 'Z',
                              results);
    return act_on_integers(
        action,
        &(struct integers){
            .first = (const char *)array->buffers[1] + array->offset * bytes,
            .stride = bytes,
            .count = (size_t)array->length,
            .bytes = bytes,
            .is_signed = strchr("csil", *format),
            .little = is_little(),
        },
        results);
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
