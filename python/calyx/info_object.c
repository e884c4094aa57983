/* calyx.Info: what a filter is, or would be, as a named tuple. */
#include "binding.h"

enum { FIELDS = 19 };

static PyObject *info_type;

static const struct {
    const char *name, *doc;
} fields[FIELDS] = {
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
};

static bool set_text(PyObject *of, const char *attribute, const char *text) {
    PyObject *const value = of ? PyUnicode_FromString(text) : NULL;
    const bool set = value && PyObject_SetAttrString(of, attribute, value) == 0;
    Py_XDECREF(value);
    return set;
}

static PyObject *make_named_tuple(void) {
    const char *names[FIELDS + 1] = {NULL};
    for (int i = 0; i < FIELDS; i++) names[i] = fields[i].name;
    PyObject *const module = PyImport_ImportModule("collections");
    PyObject *const type = module
                               ? PyObject_CallMethod(module, "namedtuple", "sN",
                                                     "Info", list_of(names))
                               : NULL;
    Py_XDECREF(module);
    return type;
}

PyObject *make_info_type(void) {
    info_type = make_named_tuple();
    if (!set_text(info_type, "__module__", "calyx") ||
        !set_text(info_type, "__doc__", "What a filter is, or would be."))
        return NULL;
    for (int i = 0; i < FIELDS; i++) {
        PyObject *const field =
            PyObject_GetAttrString(info_type, fields[i].name);
        const bool set = set_text(field, "__doc__", fields[i].doc);
        Py_XDECREF(field);
        if (!set) return NULL;
    }
    return info_type;
}

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
        {CALYX_CAN_GROW_IN_PLACE, "grow in place"},
    };
    const char *names[sizeof all / sizeof *all + 1];
    size_t count = 0;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (can & all[i].flag) names[count++] = all[i].name;
    names[count] = NULL;
    PyObject *const list = list_of(names);
    PyObject *const set = list ? PyFrozenSet_New(list) : NULL;
    Py_XDECREF(list);
    return set;
}

PyObject *info_object(const calyx_info *is) {
    PyObject *const tuple = PyTuple_New(FIELDS);
    if (!tuple) return NULL;
    PyObject *const values[FIELDS] = {
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
    for (int i = 0; i < FIELDS; i++) {
        whole = whole && values[i];
        PyTuple_SetItem(tuple, i, values[i]);
    }
    PyObject *const info = whole ? PyObject_CallObject(info_type, tuple) : NULL;
    Py_DECREF(tuple);
    return info;
}
