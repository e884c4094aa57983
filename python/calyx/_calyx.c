/*
 * Calyx for Python: the module, with plan(), kinds() and hashes(), and the
 * errors. What the C library knows (kinds, plans, files) comes from it, and is
 * not repeated here.
 */
#include "binding.h"

static PyObject *calyx_exception; /* calyx.Error */

/* ---- Errors -------------------------------------------------------------- */

PyObject *raise_error(const calyx_error *why) {
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

PyObject *raise_status(calyx_status status) {
    calyx_error why = {.status = status};
    strncpy(why.text, calyx_status_text(status), sizeof why.text - 1);
    return raise_error(&why);
}

/* ---- The functions ------------------------------------------------------- */

static PyObject *plan(PyObject *module, PyObject *positional, PyObject *named) {
    (void)module;
    struct wanted w;
    if (!read_options(positional, named, "plan", &w, NULL)) return NULL;
    calyx_info info;
    calyx_error why;
    if (calyx_plan(&w.options, &info, &why) != CALYX_OK)
        return raise_error(&why);
    return info_object(&info);
}

PyObject *list_of(const char *const *names) {
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

static PyObject *kinds(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return list_of(calyx_kinds());
}

static PyObject *hashes(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    return list_of(calyx_hashes());
}

/* Paths as C strings; `encoded` has the objects that hold them. */
static bool paths_of(PyObject *list, PyObject *encoded, const char **to) {
    for (Py_ssize_t i = 0; i < PyList_Size(list); i++) {
        PyObject *bytes = NULL;
        const bool ok = path_of(PyList_GetItem(list, i), &bytes, &to[i]) &&
                        PyList_Append(encoded, bytes) == 0;
        Py_XDECREF(bytes);
        if (!ok) return false;
    }
    return true;
}

static PyObject *join_paths(PyObject *list, const char *path) {
    PyObject *const encoded = PyList_New(0);
    const size_t n = (size_t)PyList_Size(list);
    const char **const paths = PyMem_Malloc((n + 1) * sizeof *paths);
    calyx_error why = {.status = CALYX_NO_MEMORY};
    bool ok = encoded && paths && paths_of(list, encoded, paths);
    if (ok) {
        PyThreadState *const gil = PyEval_SaveThread();
        ok = calyx_join(paths, n, NULL, path, &why) == CALYX_OK;
        PyEval_RestoreThread(gil);
        if (!ok) raise_error(&why);
    } else if (!PyErr_Occurred()) {
        PyErr_NoMemory();
    }
    PyMem_Free(paths);
    Py_XDECREF(encoded);
    if (!ok) return NULL;
    Py_RETURN_NONE;
}

static PyObject *join(PyObject *module, PyObject *arguments) {
    PyObject *parts, *to, *bytes;
    const char *path;
    (void)module;
    if (!PyArg_ParseTuple(arguments, "OO:join", &parts, &to) ||
        !path_of(to, &bytes, &path))
        return NULL;
    PyObject *const list = PySequence_List(parts);
    PyObject *const result = list ? join_paths(list, path) : NULL;
    Py_XDECREF(list);
    Py_DECREF(bytes);
    return result;
}

static PyMethodDef module_methods[] = {
    {"plan", (PyCFunction)(void (*)(void))plan, METH_VARARGS | METH_KEYWORDS,
     "plan(n=None, p=None, *, kind=None, bits=None, probes=None, ...)\n--\n\n"
     "What Filter() with these options would be, as a calyx.Info."},
    {"join", join, METH_VARARGS,
     "join(parts, path)\n--\n\n"
     "Make one filter file of part files, which Builder(part=..., parts=...)\n"
     "saved. Fails, and names it, if one is missing or of another filter."},
    {"kinds", kinds, METH_NOARGS,
     "kinds()\n--\n\nThe kinds of filter, the default first."},
    {"hashes", hashes, METH_NOARGS,
     "hashes()\n--\n\nThe hashes, the default first."},
    {NULL, NULL, 0, NULL},
};

/* ---- The module ---------------------------------------------------------- */

static struct PyModuleDef module_definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "_calyx",
    .m_doc = "Calyx: Bloom filters and their kin.",
    .m_size = -1,
    .m_methods = module_methods,
};

/* The value is NULL if it could not be made. It lives as long as the process:
 * the binding keeps a reference of its own. */
static bool export(PyObject *module, const char *name, void *value) {
    return value && PyModule_AddObjectRef(module, name, value) == 0;
}

PyMODINIT_FUNC PyInit__calyx(void) {
    PyObject *const module = PyModule_Create(&module_definition);
    if (!module) return NULL;
    calyx_exception = PyErr_NewExceptionWithDoc(
        "calyx.Error",
        "A filter that does not fit, is damaged, or cannot do this.", NULL,
        NULL);
    if (export(module, "Error", calyx_exception) &&
        export(module, "Info", make_info_type()) &&
        export(module, "Filter", make_filter_type()) &&
        export(module, "Builder", make_builder_type()) &&
        export(module, "Layout", make_layout_type()) &&
        PyModule_AddStringConstant(module, "__version__", calyx_version()) == 0)
        return module;
    Py_DECREF(module);
    return NULL;
}
