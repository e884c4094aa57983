/*
 * calyx._calyx.Layout: which bytes of a file answer a lookup, and which bits an
 * addition sets; for calyx.plain, which reads and sets them in a server.
 */
#include "binding.h"

typedef struct {
    PyObject_HEAD calyx_layout *layout;
    PyObject *list; /* the bytes of the allow list, which the layout uses */
} LayoutObject;

static calyx_layout *layout_of(PyObject *object) {
    return ((LayoutObject *)object)->layout;
}

static PyObject *Layout_new(PyTypeObject *type, PyObject *positional,
                            PyObject *named) {
    static char *names[] = {"", "key", NULL};
    Py_buffer first;
    PyObject *key = NULL;
    uint8_t secret[SECRET_BYTES];
    const uint8_t *given;
    calyx_layout *layout = NULL;
    calyx_error why;
    if (!PyArg_ParseTupleAndKeywords(positional, named, "y*|O", names, &first,
                                     &key))
        return NULL;
    const bool known = secret_of(key, secret, &given);
    calyx_status status =
        known ? calyx_layout_new(first.buf, (size_t)first.len, &layout, &why)
              : CALYX_BAD_ARGUMENT;
    if (status == CALYX_OK && given)
        status = calyx_layout_set_key(layout, given, &why);
    PyBuffer_Release(&first);
    if (!known) return NULL;
    PyObject *const object = status == CALYX_OK
                                 ? PyType_GenericNew(type, positional, named)
                                 : raise_error(&why);
    if (object)
        ((LayoutObject *)object)->layout = layout;
    else
        calyx_layout_free(layout);
    return object;
}

static void Layout_dealloc(PyObject *object) {
    LayoutObject *const self = (LayoutObject *)object;
    PyTypeObject *const type = Py_TYPE(object);
    calyx_layout_free(self->layout);
    Py_XDECREF(self->list);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* ---- The file ------------------------------------------------------------ */

static bool find_section(const calyx_layout *layout, calyx_section_type type,
                         uint32_t *index, calyx_section *s) {
    for (*index = 0; calyx_layout_section(layout, *index, s); ++*index)
        if (s->type == type) return true;
    return false;
}

static PyObject *Layout_file_bytes(PyObject *object, void *unused) {
    (void)unused;
    calyx_section end;
    uint32_t index;
    find_section(layout_of(object), CALYX_SECTION_END, &index, &end);
    return PyLong_FromUnsignedLongLong(end.at);
}

static PyObject *Layout_info(PyObject *object, void *unused) {
    (void)unused;
    calyx_info info;
    calyx_layout_describe(layout_of(object), NULL, &info);
    return info_object(&info);
}

static PyObject *Layout_list(PyObject *object, void *unused) {
    (void)unused;
    calyx_section list;
    uint32_t index;
    if (!find_section(layout_of(object), CALYX_SECTION_ALLOW, &index, &list))
        Py_RETURN_NONE;
    return Py_BuildValue("(KK)", (unsigned long long)list.at,
                         (unsigned long long)list.bytes);
}

static PyObject *Layout_take_list(PyObject *object, PyObject *bytes) {
    LayoutObject *const self = (LayoutObject *)object;
    calyx_section list;
    uint32_t index;
    char *at;
    Py_ssize_t size;
    calyx_error why;
    if (PyBytes_AsStringAndSize(bytes, &at, &size) != 0) return NULL;
    find_section(self->layout, CALYX_SECTION_ALLOW, &index, &list);
    if (calyx_layout_check(self->layout, index, 0, at, (size_t)size, &why) !=
        CALYX_OK)
        return raise_error(&why);
    self->list = Py_NewRef(bytes);
    Py_RETURN_NONE;
}

/* ---- Lookups and additions ----------------------------------------------- */

static PyObject *Layout_hash(PyObject *object, PyObject *key) {
    struct one_key k;
    uint64_t hash;
    if (!key_of(key, &k)) return NULL;
    const calyx_status status =
        calyx_layout_hash(layout_of(object), k.key.data, k.key.size, &hash);
    release_key(&k);
    return status == CALYX_OK ? PyLong_FromUnsignedLongLong(hash)
                              : raise_status(status);
}

static PyObject *Layout_allows(PyObject *object, PyObject *key) {
    struct one_key k;
    if (!key_of(key, &k)) return NULL;
    const bool allows =
        calyx_layout_allows(layout_of(object), k.key.data, k.key.size);
    release_key(&k);
    return PyBool_FromLong(allows);
}

static PyObject *Layout_lines(PyObject *object, PyObject *arguments) {
    unsigned part;
    unsigned long long hash;
    uint64_t at[CALYX_LINES_MOST];
    if (!PyArg_ParseTuple(arguments, "IK", &part, &hash)) return NULL;
    const size_t n = calyx_layout_lines(layout_of(object), part, hash, at);
    PyObject *const list = PyList_New((Py_ssize_t)n);
    for (size_t i = 0; list && i < n; i++) {
        PyObject *const number = PyLong_FromUnsignedLongLong(at[i]);
        if (!number || PyList_SetItem(list, (Py_ssize_t)i, number) != 0) {
            Py_DECREF(list);
            return NULL;
        }
    }
    return list;
}

/* Whether this part has the key, and the part to look into next; 0: none. */
static PyObject *Layout_answer(PyObject *object, PyObject *arguments) {
    const calyx_layout *const layout = layout_of(object);
    unsigned part;
    unsigned long long hash;
    Py_buffer lines;
    uint64_t at[CALYX_LINES_MOST];
    if (!PyArg_ParseTuple(arguments, "IKy*", &part, &hash, &lines)) return NULL;
    const size_t n = calyx_layout_lines(layout, part, hash, at);
    PyObject *answer = NULL;
    if ((size_t)lines.len != n * CALYX_LINE_BYTES)
        PyErr_SetString(PyExc_ValueError, "the lines have another size");
    else
        answer = Py_BuildValue(
            "NI",
            PyBool_FromLong(calyx_layout_has(layout, part, hash, lines.buf)),
            calyx_layout_next(layout, part, hash, lines.buf));
    PyBuffer_Release(&lines);
    return answer;
}

/* The line of a key in a part, and its bits there, counted from the high bit of
 * each byte on, as Redis does. */
static PyObject *Layout_bits(PyObject *object, PyObject *arguments) {
    const calyx_layout *const layout = layout_of(object);
    unsigned part;
    unsigned long long hash;
    uint64_t at[CALYX_LINES_MOST];
    uint8_t line[CALYX_LINE_BYTES] = {0};
    if (!PyArg_ParseTuple(arguments, "IK", &part, &hash)) return NULL;
    const calyx_status status = calyx_layout_add(layout, part, hash, line);
    if (status != CALYX_OK) return raise_status(status);
    calyx_layout_lines(layout, part, hash, at);
    PyObject *const bits = PyList_New(0);
    for (int i = 0; bits && i < 8 * CALYX_LINE_BYTES; i++) {
        if (!(line[i / 8] >> (7 - i % 8) & 1)) continue;
        PyObject *const bit = PyLong_FromLong(i);
        const int failed = !bit || PyList_Append(bits, bit) != 0;
        Py_XDECREF(bit);
        if (!failed) continue;
        Py_DECREF(bits);
        return NULL;
    }
    return bits ? Py_BuildValue("(KN)", (unsigned long long)at[0], bits) : NULL;
}

/* ---- The type ------------------------------------------------------------ */

static PyMethodDef methods[] = {
    {"hash", Layout_hash, METH_O, NULL},
    {"allows", Layout_allows, METH_O, NULL},
    {"take_list", Layout_take_list, METH_O, NULL},
    {"lines", Layout_lines, METH_VARARGS, NULL},
    {"answer", Layout_answer, METH_VARARGS, NULL},
    {"bits", Layout_bits, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef properties[] = {
    {"file_bytes", Layout_file_bytes, NULL, NULL, NULL},
    {"info", Layout_info, NULL, NULL, NULL},
    {"list", Layout_list, NULL, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, Layout_new},
    {Py_tp_dealloc, Layout_dealloc},
    {Py_tp_methods, methods},
    {Py_tp_getset, properties},
    {0, NULL},
};

static PyType_Spec spec = {
    .name = "calyx._calyx.Layout",
    .basicsize = sizeof(LayoutObject),
    .flags = Py_TPFLAGS_DEFAULT,
    .slots = slots,
};

PyTypeObject *make_layout_type(void) {
    return (PyTypeObject *)PyType_FromSpec(&spec);
}
