/* The arguments of the binding's functions: options, secrets, paths. */
#include "binding.h"

bool secret_of(PyObject *object, uint8_t *to, const uint8_t **key) {
    *key = NULL;
    if (!object || object == Py_None) return true;
    char *bytes;
    Py_ssize_t size;
    if (PyBytes_AsStringAndSize(object, &bytes, &size) != 0) return false;
    if (size != SECRET_BYTES) {
        PyErr_Format(PyExc_ValueError,
                     "key: expected 16 secret bytes, found %zd", size);
        return false;
    }
    memcpy(to, bytes, SECRET_BYTES);
    *key = to;
    return true;
}

bool positive_of(PyObject *object, const char *name, uint64_t *to) {
    *to = 0;
    if (!object || object == Py_None) return true;
    *to = PyLong_AsUnsignedLongLong(object);
    if (*to == (uint64_t)-1 && PyErr_Occurred()) {
        if (PyErr_ExceptionMatches(PyExc_OverflowError))
            PyErr_Format(PyExc_ValueError,
                         "%s: expected a positive number, found %R", name,
                         object);
        return false;
    }
    if (*to) return true;
    PyErr_Format(PyExc_ValueError, "%s: expected a positive number, found 0",
                 name);
    return false;
}

/* None leaves the choice to the library; 0 is a seed. */
static bool seed_of(PyObject *object, calyx_options *o) {
    if (!object || object == Py_None) return true;
    o->seed = PyLong_AsUnsignedLongLong(object);
    o->seeded = true;
    if (o->seed != (uint64_t)-1 || !PyErr_Occurred()) return true;
    if (PyErr_ExceptionMatches(PyExc_OverflowError))
        PyErr_SetString(PyExc_ValueError,
                        "seed: expected a number from 0 to 2**64 - 1");
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

bool path_of(PyObject *object, PyObject **bytes, const char **path) {
    if (!PyUnicode_FSConverter(object, bytes)) return false;
    *path = PyBytes_AsString(*bytes);
    return *path != NULL;
}

/* Check what was parsed, and make options of it. */
static bool convert_options(struct wanted *w) {
    uint64_t probes;
    calyx_options *const o = &w->options;
    if (!positive_of(w->n, "n, the number of keys,", &o->capacity) ||
        !positive_of(w->bits, "bits", &o->bits) ||
        !positive_of(w->probes, "probes", &probes) || !rate_of(w->p, &o->fpr) ||
        !seed_of(w->seed, o) || !secret_of(w->key, w->secret, &o->key))
        return false;
    if (probes > UINT32_MAX) {
        PyErr_SetString(PyExc_ValueError, "probes is too large");
        return false;
    }
    o->probes = (uint32_t)probes;
    o->strict = w->strict;
    o->concurrent = w->concurrent;
    if (o->key && !o->hash) o->hash = "siphash";
    return true;
}

bool read_options(PyObject *positional, PyObject *named, const char *function,
                  struct wanted *w, struct builder_wanted *more) {
    /* The names, their types, and below the addresses, in one order. */
    static char *names[] = {
        "n",      "p",       "kind",   "bits",   "probes",     "hash",
        "seed",   "key",     "growth", "strict", "concurrent", "memory",
        "folder", "threads", "part",   "parts",  NULL};
    enum { OF_FILTERS = 11 };
    char *filter_names[OF_FILTERS + 1] = {NULL};
    memcpy(filter_names, names, OF_FILTERS * sizeof *names);
    char format[64];
    PyOS_snprintf(format, sizeof format, "|OO$zOOzOOdpp%s:%s",
                  more ? "OOIII" : "", function);
    struct builder_wanted none;
    if (!more) more = &none;
    *w = (struct wanted){.n = NULL};
    *more = (struct builder_wanted){.memory = NULL};
    return PyArg_ParseTupleAndKeywords(
               positional, named, format, more == &none ? filter_names : names,
               &w->n, &w->p, &w->options.kind, &w->bits, &w->probes,
               &w->options.hash, &w->seed, &w->key, &w->options.growth,
               &w->strict, &w->concurrent, &more->memory, &more->folder,
               &more->threads, &more->part, &more->parts) &&
           convert_options(w);
}
