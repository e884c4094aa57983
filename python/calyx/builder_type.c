/* calyx.Builder: the type. */
#include "binding.h"

typedef struct {
    PyObject_HEAD calyx_builder *builder;
    pthread_mutex_t lock;
} BuilderObject;

static PyObject *Builder_new(PyTypeObject *type, PyObject *positional,
                             PyObject *named) {
    struct wanted w;
    struct builder_wanted more;
    if (!read_options(positional, named, "Builder", &w, &more)) return NULL;
    calyx_builder_options want = {.filter = w.options,
                                  .threads = more.threads,
                                  .part = more.part,
                                  .parts = more.parts};
    PyObject *folder = NULL;
    if (!positive_of(more.memory, "memory", &want.memory_bytes)) return NULL;
    if (more.folder && more.folder != Py_None &&
        !path_of(more.folder, &folder, &want.folder))
        return NULL;
    BuilderObject *const self = (BuilderObject *)PyType_GenericAlloc(type, 0);
    calyx_error why;
    calyx_status status = CALYX_OK;
    if (self) {
        pthread_mutex_init(&self->lock, NULL);
        status = calyx_builder_new(&want, &self->builder, &why);
    }
    Py_XDECREF(folder);
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

static PyObject *Builder_add(PyObject *object, PyObject *key) {
    BuilderObject *const self = (BuilderObject *)object;
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    calyx_error why = {.status = CALYX_OK};
    bool added;
    PyThreadState *const gil = PyEval_SaveThread();
    const calyx_status status = build_keys(self, &k.key, 1, &added, &why);
    PyEval_RestoreThread(gil);
    release_key(&k);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

static PyObject *Builder_add_many(PyObject *self, PyObject *keys) {
    return run_action((struct action){build_keys, build_numbers, self}, keys,
                      count_results);
}

/* Of 64 bits each, as Filter.hash_many returns them. */
static PyObject *Builder_add_hashes(PyObject *object, PyObject *hashes) {
    BuilderObject *const self = (BuilderObject *)object;
    Py_buffer buffer;
    if (PyObject_GetBuffer(hashes, &buffer, PyBUF_ND | PyBUF_FORMAT) != 0)
        return NULL;
    const bool fits = buffer.itemsize == sizeof(uint64_t) && buffer.format &&
                      strpbrk(buffer.format, "QL");
    if (!fits) {
        PyBuffer_Release(&buffer);
        PyErr_SetString(PyExc_TypeError,
                        "hashes: expected unsigned numbers of 64 bits in a "
                        "row, as Filter.hash_many returns them");
        return NULL;
    }
    const size_t n = (size_t)buffer.len / sizeof(uint64_t);
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    const calyx_status status =
        calyx_builder_add_hashes(self->builder, buffer.buf, n, &why);
    pthread_mutex_unlock(&self->lock);
    PyEval_RestoreThread(gil);
    PyBuffer_Release(&buffer);
    return status == CALYX_OK ? PyLong_FromSize_t(n) : raise_error(&why);
}

static PyObject *Builder_copy_texts(PyObject *object, PyObject *from) {
    BuilderObject *const self = (BuilderObject *)object;
    FilterObject *const filter = (FilterObject *)from;
    if (!PyObject_TypeCheck(from, filter_type)) {
        PyErr_SetString(PyExc_TypeError, "copy_texts: expected a Filter");
        return NULL;
    }
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    wait_for_filter(filter, SHARED);
    const calyx_status status =
        filter->filter
            ? calyx_builder_copy_texts(self->builder, filter->filter, &why)
            : say_closed(&why);
    unlock_filter(filter);
    pthread_mutex_unlock(&self->lock);
    PyEval_RestoreThread(gil);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

static PyObject *Builder_range(PyObject *object, PyObject *unused) {
    uint64_t first, last;
    (void)unused;
    if (!calyx_builder_range(((BuilderObject *)object)->builder, &first, &last))
        Py_RETURN_NONE;
    return Py_BuildValue("(KK)", (unsigned long long)first,
                         (unsigned long long)last);
}

static PyObject *Builder_finish(PyObject *object, PyObject *unused) {
    (void)unused;
    BuilderObject *const self = (BuilderObject *)object;
    calyx_filter *filter;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    const calyx_status status =
        calyx_builder_finish(self->builder, &filter, &why);
    pthread_mutex_unlock(&self->lock);
    PyEval_RestoreThread(gil);
    return status == CALYX_OK ? wrap_filter(filter_type, filter)
                              : raise_error(&why);
}

static PyObject *Builder_save(PyObject *object, PyObject *file) {
    BuilderObject *const self = (BuilderObject *)object;
    PyObject *bytes;
    const char *path;
    if (!path_of(file, &bytes, &path)) return NULL;
    calyx_error why;
    PyThreadState *const gil = PyEval_SaveThread();
    pthread_mutex_lock(&self->lock);
    const calyx_status status = calyx_builder_save(self->builder, path, &why);
    pthread_mutex_unlock(&self->lock);
    PyEval_RestoreThread(gil);
    Py_DECREF(bytes);
    if (status != CALYX_OK) return raise_error(&why);
    Py_RETURN_NONE;
}

static PyMethodDef builder_methods[] = {
    {"add", Builder_add, METH_O,
     "add(key)\n--\n\nAdd a key, as Filter.add does."},
    {"add_many", Builder_add_many, METH_O,
     "add_many(keys)\n--\n\n"
     "Add every key, as Filter.add_many does. Return their number."},
    {"add_hashes", Builder_add_hashes, METH_O,
     "add_hashes(hashes)\n--\n\n"
     "Add keys by their hashes, which Filter.hash_many returns. Return their "
     "number."},
    {"copy_texts", Builder_copy_texts, METH_O,
     "copy_texts(filter)\n--\n\n"
     "Give what is built the comment and the properties of a filter."},
    {"range", Builder_range, METH_NOARGS,
     "range()\n--\n\n"
     "The first and the last hash that the builder takes, or None: a part may\n"
     "have none."},
    {"finish", Builder_finish, METH_NOARGS,
     "finish()\n--\n\n"
     "The filter of the keys added so far. The builder has them "
     "still."},
    {"save", Builder_save, METH_O,
     "save(path)\n--\n\n"
     "Write the filter of the keys added so far to a file."},
    {NULL, NULL, 0, NULL},
};

PyDoc_STRVAR(
    builder_doc,
    "Builder(n=None, p=None, *, kind=None, ..., memory=None, folder=None,\n"
    "        threads=0, part=0, parts=0)\n--\n\n"
    "Collects keys whose number need not be known, then makes a filter. Kinds\n"
    "that can only be built, such as 'ribbon', are made this way. Beyond "
    "`memory`\n"
    "bytes it uses a temporary file in `folder`. With `parts` it builds only\n"
    "`part`, from 1 to `parts`, and save() writes a file for calyx.join().");

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

PyTypeObject *make_builder_type(void) {
    return (PyTypeObject *)PyType_FromSpec(&builder_spec);
}
