/* calyx.Info: what a filter is, or would be, as a named tuple. */
#include "binding.h"

static PyTypeObject *info_type;

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

PyTypeObject *make_info_type(void) {
    return info_type = PyStructSequence_NewType(&info_description);
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
