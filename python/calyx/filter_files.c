/* The methods of calyx.Filter for files and bytes. */
#include "binding.h"

/* ---- Open ---------------------------------------------------------------- */

/* calyx_map, calyx_load or calyx_decode, without the GIL. */
struct source {
    const char *path; /* NULL: of bytes                          */
    Py_buffer bytes;
    bool maps, writes; /* use the file in place; for writing, too */
};

static calyx_status open_source(const struct source *from,
                                const calyx_open_options *how,
                                calyx_filter **out, calyx_error *why) {
    if (!from->path)
        return calyx_decode(from->bytes.buf, (size_t)from->bytes.len, how, out,
                            why);
    return from->maps
               ? calyx_map(from->path, from->writes ? CALYX_WRITE : CALYX_READ,
                           how, out, why)
               : calyx_load(from->path, how, out, why);
}

static PyObject *open_filter(PyObject *type, const struct source *from,
                             PyObject *key, calyx_open_options how) {
    uint8_t secret[SECRET_BYTES];
    if (!secret_of(key, secret, &how.key)) return NULL;
    calyx_filter *filter;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    const calyx_status status = open_source(from, &how, &filter, &why);
    PyEval_RestoreThread(gil);
    return status == CALYX_OK ? wrap_filter((PyTypeObject *)type, filter)
                              : raise_error(&why);
}

static bool verify_of(const char *name, calyx_open_options *how) {
    if (strcmp(name, "lazy") == 0) {
        how->verify = CALYX_VERIFY_LAZY;
    } else if (strcmp(name, "whole") == 0) {
        how->verify = CALYX_VERIFY_WHOLE;
    } else if (strcmp(name, "none") == 0) {
        how->verify = CALYX_VERIFY_NONE;
    } else {
        PyErr_Format(PyExc_ValueError,
                     "verify is 'lazy', 'whole' or 'none', not '%s'", name);
        return false;
    }
    return true;
}

PyObject *Filter_open(PyObject *type, PyObject *positional, PyObject *named) {
    static char *names[] = {"path", "write", "key", "verify", NULL};
    PyObject *file, *key = NULL, *bytes;
    int writes = 0;
    const char *verify = "lazy";
    struct source from = {.maps = true};
    calyx_open_options how = {.key = NULL};
    if (!PyArg_ParseTupleAndKeywords(positional, named, "O|$pOs:open", names,
                                     &file, &writes, &key, &verify) ||
        !verify_of(verify, &how) || !path_of(file, &bytes, &from.path))
        return NULL;
    from.writes = writes;
    PyObject *const filter = open_filter(type, &from, key, how);
    Py_DECREF(bytes);
    return filter;
}

PyObject *Filter_load(PyObject *type, PyObject *positional, PyObject *named) {
    static char *names[] = {"path", "key", NULL};
    PyObject *file, *key = NULL, *bytes;
    struct source from = {.maps = false};
    if (!PyArg_ParseTupleAndKeywords(positional, named, "O|$O:load", names,
                                     &file, &key) ||
        !path_of(file, &bytes, &from.path))
        return NULL;
    PyObject *const filter =
        open_filter(type, &from, key, (calyx_open_options){.key = NULL});
    Py_DECREF(bytes);
    return filter;
}

PyObject *Filter_from_bytes(PyObject *type, PyObject *positional,
                            PyObject *named) {
    static char *names[] = {"data", "key", NULL};
    PyObject *key = NULL;
    struct source from = {.path = NULL};
    if (!PyArg_ParseTupleAndKeywords(positional, named, "y*|$O:from_bytes",
                                     names, &from.bytes, &key))
        return NULL;
    PyObject *const filter =
        open_filter(type, &from, key, (calyx_open_options){.key = NULL});
    PyBuffer_Release(&from.bytes);
    return filter;
}

/* ---- Save and close ------------------------------------------------------ */

static calyx_status save_file(calyx_filter *f, void *path, calyx_error *why) {
    return calyx_save(f, path, why);
}

PyObject *Filter_save(PyObject *object, PyObject *file) {
    PyObject *bytes;
    const char *path;
    if (!path_of(file, &bytes, &path)) return NULL;
    const bool saved = call_filter(object, SHARED, save_file, (void *)path);
    Py_DECREF(bytes);
    if (!saved) return NULL;
    Py_RETURN_NONE;
}

PyObject *Filter_to_bytes(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock_filter(self, ALONE)) return NULL;
    const uint64_t size = calyx_encoded_size(self->filter);
    calyx_error why;
    calyx_status status = CALYX_OK;
    PyObject *const bytes =
        size > PY_SSIZE_T_MAX
            ? PyErr_NoMemory()
            : PyBytes_FromStringAndSize(NULL, (Py_ssize_t)size);
    char *const to = bytes ? PyBytes_AsString(bytes) : NULL;
    PyThreadState *const gil = PyEval_SaveThread();
    if (to) status = calyx_encode(self->filter, to, (size_t)size, &why);
    unlock_filter(self);
    PyEval_RestoreThread(gil);
    if (status == CALYX_OK) return bytes;
    Py_DECREF(bytes);
    return raise_error(&why);
}

/* Do these bytes of a file need a secret key to be opened? */
static bool needs_key(const char *bytes, Py_ssize_t size) {
    calyx_layout *layout;
    const size_t head =
        size < CALYX_HEADER_MOST ? (size_t)size : CALYX_HEADER_MOST;
    if (calyx_layout_new(bytes, head, &layout, NULL) != CALYX_OK) return false;
    uint64_t hash;
    const calyx_status status = calyx_layout_hash(layout, "", 0, &hash);
    calyx_layout_free(layout);
    return status == CALYX_WRONG_KEY;
}

/* Pickle: the bytes of a file. A secret key is not among them, so nobody could
 * load the pickle of a filter that has one. */
PyObject *Filter_reduce(PyObject *self, PyObject *unused) {
    PyObject *const bytes = Filter_to_bytes(self, unused);
    if (!bytes) return NULL;
    PyObject *both = NULL;
    if (needs_key(PyBytes_AsString(bytes), PyBytes_Size(bytes))) {
        PyErr_SetString(PyExc_TypeError,
                        "cannot pickle a filter with a secret key: a pickle "
                        "does not hold the key; pickle f.to_bytes(), and open "
                        "that by Filter.from_bytes(data, key=...)");
    } else {
        PyObject *const make =
            PyObject_GetAttrString((PyObject *)Py_TYPE(self), "from_bytes");
        both = make ? Py_BuildValue("(O(O))", make, bytes) : NULL;
        Py_XDECREF(make);
    }
    Py_DECREF(bytes);
    return both;
}

static calyx_status sync_file(calyx_filter *f, void *unused, calyx_error *why) {
    (void)unused;
    return calyx_sync(f, why);
}

PyObject *Filter_sync(PyObject *object, PyObject *unused) {
    (void)unused;
    if (!call_filter(object, ALONE, sync_file, NULL)) return NULL;
    Py_RETURN_NONE;
}

static calyx_status verify_file(calyx_filter *f, void *unused,
                                calyx_error *why) {
    (void)unused;
    return calyx_verify(f, why);
}

PyObject *Filter_verify(PyObject *object, PyObject *unused) {
    (void)unused;
    if (!call_filter(object, SHARED, verify_file, NULL)) return NULL;
    Py_RETURN_NONE;
}

PyObject *Filter_close(PyObject *object, PyObject *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    wait_for_filter(self, ALONE);
    const calyx_status status = calyx_close(self->filter, &why);
    self->filter = NULL;
    unlock_filter(self);
    PyEval_RestoreThread(gil);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

PyObject *Filter_exit(PyObject *self, PyObject *unused) {
    return Filter_close(self, unused);
}
