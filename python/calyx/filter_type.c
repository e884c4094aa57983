/* calyx.Filter: the type, its lock, and its methods for the whole filter. */
#include "binding.h"

#include <structmember.h>

PyTypeObject *filter_type;

/* ---- The object ---------------------------------------------------------- */

PyObject *wrap_filter(PyTypeObject *type, calyx_filter *filter) {
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

static PyObject *Filter_new(PyTypeObject *type, PyObject *positional,
                            PyObject *named) {
    struct wanted w;
    if (!read_options(positional, named, "Filter", &w, NULL)) return NULL;
    calyx_filter *filter;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    const calyx_status status = calyx_new(&w.options, &filter, &why);
    PyEval_RestoreThread(gil);
    return status == CALYX_OK ? wrap_filter(type, filter) : raise_error(&why);
}

static void Filter_dealloc(PyObject *object) {
    FilterObject *const self = (FilterObject *)object;
    PyTypeObject *const type = Py_TYPE(object);
    if (self->weak_references) PyObject_ClearWeakRefs(object);
    if (self->filter) { /* a mapped writer seals its file here */
        PyThreadState *const gil = PyEval_SaveThread();
        calyx_free(self->filter);
        PyEval_RestoreThread(gil);
    }
    pthread_rwlock_destroy(&self->lock);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    release(object);
    Py_DECREF(type);
}

/* ---- Its lock ------------------------------------------------------------ */

void wait_for_filter(FilterObject *self, enum sharing how) {
    if (how == SHARED)
        pthread_rwlock_rdlock(&self->lock);
    else
        pthread_rwlock_wrlock(&self->lock);
}

void unlock_filter(FilterObject *self) {
    pthread_rwlock_unlock(&self->lock);
}

bool lock_filter(FilterObject *self, enum sharing how) {
    const int busy = how == SHARED ? pthread_rwlock_tryrdlock(&self->lock)
                                   : pthread_rwlock_trywrlock(&self->lock);
    if (busy) {
        PyThreadState *const gil = PyEval_SaveThread();
        wait_for_filter(self, how);
        PyEval_RestoreThread(gil);
    }
    if (self->filter) return true;
    unlock_filter(self);
    PyErr_SetString(PyExc_ValueError, "the filter is closed");
    return false;
}

enum sharing lock_to_add(const FilterObject *self) {
    return self->shares_adding ? SHARED : ALONE;
}

calyx_status say_status(calyx_status status, calyx_error *why) {
    if (status == CALYX_OK) return status;
    *why = (calyx_error){.status = status};
    strncpy(why->text, calyx_status_text(status), sizeof why->text - 1);
    return status;
}

calyx_status say_closed(calyx_error *why) {
    *why = (calyx_error){.status = CALYX_BAD_ARGUMENT};
    strcpy(why->text, "the filter is closed");
    return why->status;
}

calyx_status end_call(FilterObject *self, calyx_status status,
                      calyx_error *why) {
    const calyx_status result =
        self->filter ? say_status(status, why) : say_closed(why);
    unlock_filter(self);
    return result;
}

bool call_filter(PyObject *object, enum sharing how, filter_call *call,
                 void *with) {
    FilterObject *const self = (FilterObject *)object;
    if (!lock_filter(self, how)) return false;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    const calyx_status status = call(self->filter, with, &why);
    unlock_filter(self);
    PyEval_RestoreThread(gil);
    if (status != CALYX_OK) raise_error(&why);
    return status == CALYX_OK;
}

/* ---- What it is ---------------------------------------------------------- */

static calyx_status describe(calyx_filter *f, void *info, calyx_error *why) {
    (void)why;
    calyx_describe(f, info);
    return CALYX_OK;
}

static PyObject *Filter_info(PyObject *object, void *unused) {
    (void)unused;
    calyx_info info;
    if (!call_filter(object, SHARED, describe, &info)) return NULL;
    return info_object(&info);
}

static bool short_info(FilterObject *self, calyx_info *info) {
    if (!lock_filter(self, SHARED)) return false;
    calyx_info_of(self->filter, info);
    unlock_filter(self);
    return true;
}

static Py_ssize_t Filter_length(PyObject *self) {
    calyx_info info;
    if (!short_info((FilterObject *)self, &info)) return -1;
    return (Py_ssize_t)info.items;
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

static PyObject *Filter_comment(PyObject *object, void *unused) {
    (void)unused;
    FilterObject *const self = (FilterObject *)object;
    if (!lock_filter(self, SHARED)) return NULL;
    PyObject *const text = PyUnicode_FromString(calyx_comment(self->filter));
    unlock_filter(self);
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
    if (!lock_filter(self, ALONE)) return -1;
    const calyx_status status = calyx_set_comment(self->filter, text);
    unlock_filter(self);
    if (status == CALYX_OK) return 0;
    raise_status(status);
    return -1;
}

struct property {
    const char *name, *value;
};

static calyx_status set_property(calyx_filter *f, void *with,
                                 calyx_error *why) {
    const struct property *const p = with;
    return calyx_set_property(f, p->name, p->value, why);
}

static PyObject *Filter_set_property(PyObject *self, PyObject *words) {
    struct property p;
    if (!PyArg_ParseTuple(words, "sz:set_property", &p.name, &p.value) ||
        !call_filter(self, ALONE, set_property, &p))
        return NULL;
    Py_RETURN_NONE;
}

static PyObject *Filter_get_property(PyObject *object, PyObject *words) {
    FilterObject *const self = (FilterObject *)object;
    const char *name;
    if (!PyArg_ParseTuple(words, "s:get_property", &name) ||
        !lock_filter(self, SHARED))
        return NULL;
    PyObject *const found =
        Py_BuildValue("z", calyx_property(self->filter, name));
    unlock_filter(self);
    return found;
}

/* ---- Whole filters ------------------------------------------------------- */

static calyx_status copy_filter(calyx_filter *f, void *out, calyx_error *why) {
    return calyx_copy(f, out, why);
}

PyObject *Filter_copy(PyObject *object, PyObject *unused) {
    (void)unused;
    calyx_filter *copy;
    if (!call_filter(object, SHARED, copy_filter, &copy)) return NULL;
    return wrap_filter(Py_TYPE(object), copy);
}

static calyx_status clear_filter(calyx_filter *f, void *unused,
                                 calyx_error *why) {
    (void)unused;
    return say_status(calyx_clear(f), why);
}

static PyObject *Filter_clear(PyObject *object, PyObject *unused) {
    (void)unused;
    if (!call_filter(object, ALONE, clear_filter, NULL)) return NULL;
    Py_RETURN_NONE;
}

/* ---- The type ------------------------------------------------------------ */

static PyObject *Filter_enter(PyObject *self, PyObject *unused) {
    (void)unused;
    return Py_NewRef(self);
}

static PyMethodDef filter_methods[] = {
    {"add", Filter_add, METH_O,
     "add(key)\n--\n\n"
     "Add a key: str, bytes or int. Return whether it was not in the filter: "
     "True\n"
     "is certain, False may be a false positive."},
    {"add_many", Filter_add_many, METH_O,
     "add_many(keys)\n--\n\n"
     "Add every key of a list, an iterable, an array (numpy, array) or an "
     "Arrow\n"
     "array. Return how many were not in the filter before."},
    {"hash_many", Filter_hash_many, METH_O,
     "hash_many(keys)\n--\n\n"
     "The hash of each key, as a memoryview of unsigned 64-bit numbers: for\n"
     "Builder.add_hashes of the same hash and seed or key."},
    {"has_many", Filter_has_many, METH_O,
     "has_many(keys)\n--\n\n"
     "Look up every key. Return a memoryview of bools, in their "
     "order: index it,\nmake a list of it, or give it to "
     "numpy.asarray, which does not copy it."},
    {"remove", Filter_remove, METH_O,
     "remove(key)\n--\n\n"
     "Remove a key that was added. Return whether it was there. Only "
     "kinds that can\n'remove'. Removing a key that was never added "
     "may cause false negatives."},
    {"remove_many", Filter_remove_many, METH_O,
     "remove_many(keys)\n--\n\n"
     "Remove every key, each of which must have been added. Return "
     "how many were\nfound. Only kinds that can 'remove'."},
    {"count", Filter_count, METH_O,
     "count(key)\n--\n\n"
     "How often a key was added, at most: 0 is certain. Kinds that "
     "cannot 'count'\nreturn 0 or 1."},
    {"open", (PyCFunction)(void (*)(void))Filter_open,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "open(path, *, write=False, key=None, verify='lazy')\n--\n\n"
     "Use a file in place, without reading it: processes that open "
     "it share one\ncopy. With write=True keys can be added, by one "
     "process at a time; then call\nclose(), or use `with`. verify "
     "is 'lazy' (each range before its first use),\n'whole' or "
     "'none'."},
    {"load", (PyCFunction)(void (*)(void))Filter_load,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "load(path, *, key=None)\n--\n\n"
     "Read a file into memory, and compare all of it with its "
     "checksums."},
    {"from_bytes", (PyCFunction)(void (*)(void))Filter_from_bytes,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "from_bytes(data, *, key=None)\n--\n\n"
     "A copy of the filter that to_bytes() encoded."},
    {"to_bytes", Filter_to_bytes, METH_NOARGS,
     "to_bytes()\n--\n\n"
     "The bytes of a file, which from_bytes() takes."},
    {"save", Filter_save, METH_O,
     "save(path)\n--\n\n"
     "Write a file, and replace an old one in one step."},
    {"sync", Filter_sync, METH_NOARGS,
     "sync()\n--\n\n"
     "Of a file that is open for writing: wait until its keys are on "
     "the disk."},
    {"close", Filter_close, METH_NOARGS,
     "close()\n--\n\n"
     "Free the filter. If it is a file open for writing, raise an "
     "error unless its\nkeys are safe on the disk."},
    {"verify", Filter_verify, METH_NOARGS,
     "verify()\n--\n\n"
     "Compare every byte of a file in place with its checksum; raise "
     "calyx.Error if\nit is damaged."},
    {"copy", Filter_copy, METH_NOARGS,
     "copy()\n--\n\nA separate filter with the same keys."},
    {"clear", Filter_clear, METH_NOARGS, "clear()\n--\n\nRemove all keys."},
    {"get_property", Filter_get_property, METH_VARARGS,
     "get_property(name)\n--\n\nA text that is saved with the filter, or "
     "None."},
    {"set_property", Filter_set_property, METH_VARARGS,
     "set_property(name, value)\n--\n\n"
     "Save a text with the filter, for programs; None removes it. All texts\n"
     "have at most 4096 bytes."},
    {"update", Filter_update, METH_VARARGS,
     "update(*others)\n--\n\n"
     "Add the keys of other filters, as f |= g does, or of lists and "
     "iterables,\n"
     "as add_many does."},
    {"union", Filter_union, METH_VARARGS,
     "union(*others)\n--\n\n"
     "A copy with the keys of other filters, lists or iterables. f | g does it "
     "for\n"
     "two filters."},
    {"intersection", Filter_intersection, METH_VARARGS,
     "intersection(*others)\n--\n\n"
     "A filter of the keys that this one and all others have: filters, lists "
     "or\n"
     "iterables. More keys pass than in a filter of these keys alone. f & g "
     "does\n"
     "it for two filters."},
    {"intersection_update", Filter_intersection_update, METH_VARARGS,
     "intersection_update(*others)\n--\n\n"
     "Keep the keys that the others have, too, as f &= g does."},
    {"issubset", Filter_issubset, METH_O,
     "issubset(other)\n--\n\n"
     "Does the other filter have every bit of this one, and so every key? The\n"
     "same as f <= other."},
    {"issuperset", Filter_issuperset, METH_O,
     "issuperset(other)\n--\n\nThe same as f >= other."},
    {"__copy__", Filter_copy, METH_NOARGS, NULL},
    {"__deepcopy__", Filter_copy, METH_O, NULL},
    {"__enter__", Filter_enter, METH_NOARGS, NULL},
    {"__exit__", Filter_exit, METH_VARARGS, NULL},
    {"__reduce__", Filter_reduce, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef filter_members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(FilterObject, weak_references),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef filter_properties[] = {
    {"info", Filter_info, NULL, "What the filter is: a calyx.Info.", NULL},
    {"comment", Filter_comment, Filter_set_comment,
     "A note of at most 1000 bytes, saved with the filter.", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

PyDoc_STRVAR(
    filter_doc,
    "Filter(n=None, p=None, *, kind=None, bits=None, probes=None, hash=None,\n"
    "       seed=None, key=None, growth=0, strict=False, "
    "concurrent=False)\n--\n\n"
    "A set of n keys that says 'certainly not' or 'maybe': for a key that was\n"
    "never added, `key in f` is true with probability p.\n\n"
    "A key is str, bytes, or an int from -2**63 to 2**64 - 1; a negative one "
    "is the\n"
    "same key as the int 2**64 above it. Of n, p and bits, two give the "
    "third.\n"
    "len(f) is the number of keys.\n\n"
    "Filters of one kind, hash, seed and size have the operators of sets: f | "
    "g,\n"
    "f & g, f |= g, f &= g; f <= g: g has every bit of f. f == g: the same "
    "bits.");

static PyType_Slot filter_slots[] = {
    {Py_tp_doc, (void *)filter_doc},
    {Py_tp_new, Filter_new},
    {Py_tp_dealloc, Filter_dealloc},
    {Py_tp_repr, Filter_repr},
    {Py_tp_richcompare, Filter_richcompare},
    {Py_tp_hash, PyObject_HashNotImplemented},
    {Py_tp_methods, filter_methods},
    {Py_tp_members, filter_members},
    {Py_tp_getset, filter_properties},
    {Py_sq_contains, Filter_contains},
    {Py_sq_length, Filter_length},
    {Py_nb_or, Filter_or},
    {Py_nb_and, Filter_and},
    {Py_nb_inplace_or, Filter_ior},
    {Py_nb_inplace_and, Filter_iand},
    {0, NULL},
};

static PyType_Spec filter_spec = {
    .name = "calyx.Filter",
    .basicsize = sizeof(FilterObject),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = filter_slots,
};

PyTypeObject *make_filter_type(void) {
    return filter_type = (PyTypeObject *)PyType_FromSpec(&filter_spec);
}
