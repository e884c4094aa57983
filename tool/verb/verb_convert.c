/*
 * calyx convert: filters for other programs, and from them.
 */
#include <stdlib.h>
#include <string.h>

#include "files/filter_file.h"
#include "files/form.h"
#include "files/result.h"

static const struct foreign_form *const forms[] = {&form_parquet, &form_raw,
                                                   NULL};

static const char *to_name, *from_name;
static uint64_t offset, keys;
static bool has_offset;
static double rate;

static const struct foreign_form *form_named(const char *option,
                                             const char *name) {
    for (const struct foreign_form *const *form = forms; *form; form++)
        if (strcmp((*form)->name, name) == 0) return *form;
    fail("option --%s wants parquet or raw, not '%s'", option, name);
}

static void parse_offset(const struct verb_option *o, const char *value) {
    has_offset = true;
    if (!size_from(value, &offset))
        fail("option --%s wants a number of bytes, not '%s'", o->name, value);
}

/* ---- Out ---------------------------------------------------------------- */

const void *raw_bits(const calyx_filter *f, const char *path, size_t *size) {
    calyx_info is;
    calyx_describe(f, &is);
    uint64_t bytes;
    const void *const bits = calyx_bits(f, &bytes);
    if (is.can & CALYX_CAN_STATIC)
        fail_at(path, 0,
                "a %s filter has parts of different sizes, and the form has "
                "room for one; give away its file, which FORMAT.md describes",
                is.kind);
    if (!bits)
        fail_at(path, 0,
                "it has grown to %u parts, and the form has room for one; "
                "build it anew for %llu keys or more",
                is.parts, (unsigned long long)is.items);
    if (is.bytes > (bytes + 63) / 64 * 64)
        fail_at(path, 0,
                "it counts, and the form has no room for counters; 'calyx "
                "freeze' makes a filter without");
    *size = (size_t)bytes;
    return bits;
}

static void convert_to(const struct foreign_form *form, const char *path) {
    const char *const result = result_path();
    calyx_filter *const f = filter_open_whole(path);
    struct output *const output = output_open(result, result_replaces());
    form->write(f, path, output);
    output_close(output);
    calyx_free(f);
}

/* ---- In ----------------------------------------------------------------- */

/* As many as there are, up to `size`. */
static size_t read_some(struct byte_source *from, void *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        const ssize_t n = source_read(from, (char *)bytes + done, size - done);
        if (n < 0) fail_at(source_name(from), 0, "%s", source_trouble(from));
        if (n == 0) break;
        done += (size_t)n;
    }
    return done;
}

void read_bytes(struct byte_source *from, void *bytes, size_t size,
                const char *what) {
    if (read_some(from, bytes, size) != size)
        fail_at(source_name(from), 0, "%s ends too early", what);
}

static void skip(struct byte_source *from, uint64_t size) {
    char bytes[4096];
    while (size > 0) {
        const size_t n = size < sizeof bytes ? (size_t)size : sizeof bytes;
        read_bytes(from, bytes, n, "the file, before the offset,");
        size -= n;
    }
}

/* The header may promise more than there is: take memory only as it fills. */
static uint8_t *read_bits(struct byte_source *from, uint64_t wanted) {
    enum { PIECE = 1 << 20 };
    uint8_t *bits = NULL;
    uint64_t room = 0, size = 0;
    while (size < wanted) {
        if (size == room) {
            room = room ? 2 * room : PIECE;
            if (room > wanted) room = wanted;
            bits = resize_memory(bits, (size_t)room);
        }
        const size_t n = read_some(from, bits + size, (size_t)(room - size));
        size += n;
        if (n == 0)
            fail_at(source_name(from), 0,
                    "its header promises %llu bytes of bits, and %llu are "
                    "there",
                    (unsigned long long)wanted, (unsigned long long)size);
    }
    return bits;
}

static void convert_from(const struct foreign_form *form, const char *path) {
    result_path(); /* fails before the work, if it must */
    struct byte_source *const source = source_open(path);
    skip(source, offset);
    calyx_options is = {.capacity = keys, .fpr = rate};
    form->read(source, &is);
    const uint64_t size = is.bits / 8 + (is.bits % 8 != 0);
    uint8_t *const bits = read_bits(source, size);
    uint8_t more;
    if (!has_offset && read_some(source, &more, 1) > 0)
        fail_at(source_name(source), 0,
                "bytes follow behind the filter; with --offset they would be "
                "left alone");

    calyx_filter *f;
    calyx_error why;
    if (calyx_from_bits(&is, bits, (size_t)size, &f, &why) != CALYX_OK)
        fail_at(source_name(source), 0, "%s", why.text);
    source_close(source);
    free(bits);
    result_save(f);
    calyx_free(f);
}

/* ---- The verb ----------------------------------------------------------- */

static int run(int count, char **operands) {
    (void)count;
    if (!to_name == !from_name)
        fail("one of --to FORM and --from FORM is wanted, where FORM is "
             "parquet or raw");
    if (to_name && (has_offset || keys || rate > 0))
        fail("options --offset, --keys and --rate go with --from only");
    if (keys && rate > 0)
        fail("the size is given by the file: only one of --keys and --rate can "
             "be chosen");
    if (to_name)
        convert_to(form_named("to", to_name), operands[0]);
    else
        convert_from(form_named("from", from_name), operands[0]);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    (const struct verb_option[]){
        {0, "to", "parquet|raw", "Make this form of the filter FILE.",
         parse_text, &to_name},
        {0, "from", "parquet|raw",
         "Make a filter of FILE, which has this form.", parse_text, &from_name},
        {0, "offset", "BYTES",
         "With --from: where in FILE the header begins. What follows behind "
         "the filter is left alone then. Of a Parquet file, give the "
         "bloom_filter_offset of a column chunk.",
         parse_offset, NULL},
        {'n', "keys", "COUNT",
         "With --from: record that the filter was made for COUNT keys.",
         parse_positive, &keys},
        {'p', "rate", "RATE",
         "With --from: record that it was made for this rate, such as 0.01, 1% "
         "or 1/1000. Without either option, 1 % is recorded.",
         parse_rate, &rate},
        {0},
    },
};

const struct verb verb_convert = {
    .name = "convert",
    .summary = "export a filter for other programs, or import theirs",
    .synopsis = "(--to | --from) parquet|raw [-o OUT] [--force] FILE",
    .prose =
        (const char *const[]){
            "The form parquet is the header and bitset that a Parquet file "
            "stores for a column chunk, not a Parquet file. It requires a "
            "filter of kind split, with the hash xxh64 and the seed 0, as "
            "'calyx build --kind split' makes it. Its size should be a power "
            "of two, as by --memory 1MiB, since some readers accept no other. "
            "Keys are the plain encoding of the values: for strings, their "
            "bytes.",
            "The form raw is for programs of your own. It has 128 bytes of "
            "text, then the bits. The text is the lines 'calyx raw 2', "
            "'kind=line', 'hash=xxh3', 'seed=0', 'probes=6' and 'bits=9930752' "
            "with the values of the filter, and newlines up to byte 128. Each "
            "byte has eight bits, the lowest first; the document FORMAT.md "
            "says which of them a key sets.",
            "Neither form has a checksum or a number of keys; the latter is "
            "estimated from the bits on import. Counting filters must be "
            "frozen before, and filters that have grown cannot be converted.",
            NULL},
    .groups = (const struct group *const[]){&options, &result_group,
                                            &secret_group, NULL},
    .examples =
        (const struct example[]){
            {"calyx convert --to parquet -o ids.bloom ids.calyx",
             "header and bitset, for a Parquet file"},
            {"calyx convert --from parquet --offset 73211 -o ids.calyx "
             "t.parquet",
             "the filter of one column chunk"},
            {0},
        },
    .least = 1,
    .most = 1,
    .run = run,
};
