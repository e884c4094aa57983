/*
 * calyx convert: filters for other programs, and from them.
 *
 * A form holds the bits of a filter of Calyx. A layout is the format of another
 * program, with hashes of its own: such a filter stays what it is.
 */
#include <stdlib.h>
#include <string.h>

#include "files/filter_file.h"
#include "files/foreign_file.h"
#include "files/form.h"
#include "files/result.h"

static const struct foreign_form *const forms[] = {&form_parquet, &form_raw,
                                                   NULL};

static const char *to_name, *from_name;
static uint64_t offset, keys;
static bool has_offset;
static double rate;
static const struct item_type *items;

/* What --to and --from name: one of the two. */
struct converted {
    const struct foreign_form *form;
    struct foreign_choice foreign;
};

static struct converted named(const char *option, const char *name) {
    struct converted which = {0};
    calyx_error why;
    for (const struct foreign_form *const *form = forms; *form; form++)
        if (strcmp((*form)->name, name) == 0) which.form = *form;
    if (which.form || foreign_choose(name, &which.foreign, &why) == CALYX_OK)
        return which;
    if (strpbrk(name, " \t")) fail("option --%s: %s", option, why.text);
    fail("--%s: expected parquet, raw, %s, or a layout in one line, found '%s'",
         option, foreign_names(), name);
}

static void parse_offset(const struct verb_option *o, const char *value) {
    has_offset = true;
    if (!size_from(value, &offset))
        fail("--%s: expected a number of bytes, found '%s'", o->name, value);
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
    if (is.can & CALYX_CAN_GROW_IN_PLACE)
        fail_at(path, 0,
                "a %s filter is a table of fingerprints, and the form is for "
                "bits; build one of kind line from the keys",
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
    if (is.allowed)
        warn_at(path,
                "the form has no room for the allow list: for %llu keys on it "
                "the bits say yes",
                (unsigned long long)is.allowed);
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

/* Its bits lie where the hashes of its layout put them, and no layout shares
 * its hashes with another. */
static void export_foreign(const struct foreign_choice *choice,
                           const char *path) {
    const char *const result = result_path();
    struct foreign_file *f;
    calyx_filter *const own = filter_open_any(path, &f);
    const char *const layout = foreign_name(choice);
    if (own || !foreign_is_of(&f->filter, choice))
        fail_at(path, 0,
                "it is a filter of %s, which has other hashes than %s: "
                "without the keys it cannot become one; 'calyx build --layout "
                "%s%s%s -o FILTER LIST' makes one of them",
                own ? "Calyx" : f->filter.layout->name, layout,
                choice->line.hash ? "'" : "", layout,
                choice->line.hash ? "'" : "");
    struct output *const output = output_open(result, result_replaces());
    foreign_file_export(f, output);
    output_close(output);
    foreign_file_free(f);
}

/* ---- In ----------------------------------------------------------------- */

void read_bytes(struct byte_source *from, void *bytes, size_t size,
                const char *what) {
    if (source_fill(from, bytes, size) != size)
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
        const size_t n = source_fill(from, bits + size, (size_t)(room - size));
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
    if (!has_offset && source_fill(source, &more, 1) > 0)
        fail_at(source_name(source), 0,
                "bytes follow after the filter; with --offset they would be "
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

static void import_foreign(const struct foreign_choice *choice,
                           const char *path) {
    result_path(); /* fails before the work, if it must */
    struct byte_source *const source = source_open(path);
    if (source_is(source, A_DUMP))
        fail_at(source_name(source), 0,
                "it is such a filter already: 'calyx check -f' reads it as it "
                "is");
    struct foreign_file *const f = foreign_file_import(choice, items, source);
    const struct foreign_facts facts = foreign_file_describe(f);
    if (facts.note) warn_at(source_name(source), "%s", facts.note);
    source_close(source);
    foreign_file_save(f, result_path(), result_replaces());
    foreign_file_free(f);
}

/* ---- The verb ----------------------------------------------------------- */

static int run(int count, char **operands) {
    (void)count;
    if (!to_name == !from_name)
        fail("missing --to FORM or --from FORM, where FORM is parquet, raw, %s",
             foreign_names());
    const struct converted which =
        to_name ? named("to", to_name) : named("from", from_name);
    if ((to_name || !which.form) && (has_offset || keys || rate > 0))
        fail("options --offset, --keys and --rate go with --from parquet and "
             "--from raw only");
    if ((to_name || which.form) && items)
        fail("option --items goes with --from and a layout of another program "
             "only");
    if (keys && rate > 0)
        fail("the size is given by the file: only one of --keys and --rate can "
             "be chosen");
    if (which.form)
        (to_name ? convert_to : convert_from)(which.form, operands[0]);
    else
        (to_name ? export_foreign : import_foreign)(&which.foreign,
                                                    operands[0]);
    return EXIT_YES;
}

/* For the completion, too. */
#define FORMS "parquet|raw|" LAYOUTS

static const struct group options = {
    "Options",
    {
        {0, "to", FORMS, "Make this form of the filter FILE.", parse_text,
         &to_name},
        {0, "from", FORMS, "Make a filter of FILE, which has this form.",
         parse_text, &from_name},
        {0, "layout", LAYOUTS, "The same as --from, for a layout.", parse_text,
         &from_name},
        {0, "items", ITEM_TYPES,
         "With --from and a layout: what the program makes of an item before "
         "it hashes it. The default is text, the bytes of a line. The others "
         "are Guava's unencodedCharsFunnel, integerFunnel and longFunnel; "
         "Spark's integers of all types are int64.",
         parse_items, &items},
        {0, "offset", "BYTES",
         "With --from parquet or raw: where in FILE the header begins. What "
         "follows after the filter is left alone then. Of a Parquet file, "
         "give the bloom_filter_offset of a column chunk.",
         parse_offset, NULL},
        {'n', "keys", "COUNT",
         "With --from parquet or raw: record that the filter was made for "
         "COUNT keys.",
         parse_positive, &keys},
        {'p', "rate", "RATE",
         "With --from parquet or raw: record that it was made for this rate, "
         "such as 0.01, 1% or 1/1000. Without either option, 1 % is recorded.",
         parse_rate, &rate},
    },
};

const struct verb verb_convert = {
    .name = "convert",
    .summary = "export a filter for other programs, or import theirs",
    .synopsis = "(--to | --from) FORM [-o OUT] [--force] FILE",
    .prose =
        {"The forms parquet and raw hold the bits of a filter of Calyx. The "
         "others are layouts of other programs, whose filters stay what they "
         "are: redisbloom, valkey-bloom, guava, spark, bits-and-blooms, dcso, "
         "redisson, or a layout in one line, such as 'murmur3-32 seeds 41..47 "
         "mod 5000000 msb', which doc/OTHERS.md describes. FORM may be a "
         "line, too; --to bits writes the bits of any.",
         "The form parquet is the header and bitset that a Parquet file stores "
         "for a column chunk, not a Parquet file. It requires a filter of kind "
         "split, with the hash xxh64 and the seed 0, as 'calyx build --kind "
         "split' makes it. Its size should be a power of two, as by --memory "
         "1MiB, since some readers accept no other. Keys are the plain "
         "encoding of the values: for strings, their bytes.",
         "The form raw is for programs of your own. It has 128 bytes of text, "
         "then the bits. The text is the lines 'calyx raw 2', 'kind=line', "
         "'hash=xxh3', 'seed=0', 'probes=6' and 'bits=9930752' with the values "
         "of the filter, and newlines up to byte 128. Each byte has eight "
         "bits, the lowest first; the document FORMAT.md says which of them a "
         "key sets.",
         "Neither of these two has a checksum or a number of keys; the latter "
         "is estimated from the bits on import. Counting filters must be "
         "frozen before, and filters that have grown cannot be converted.",
         "A layout of another program has hashes of its own, so its filter is "
         "stored as it came, with a checksum. 'calyx check' and 'calyx info' "
         "read it, and check answers exactly what its owner would. --to gives "
         "it back as it came. Only a filter of that layout can be given to it: "
         "one that came from there, or one that 'calyx build --layout' made of "
         "the keys.",
         "The file of guava and spark is what BloomFilter.writeTo writes; of "
         "bits-and-blooms (Go), what WriteTo writes; of dcso, a file of DCSO's "
         "bloom or of poppy in version 1, also packed by gzip. Of redisbloom "
         "and valkey-bloom it is what the server's DUMP replies and RESTORE "
         "takes, or the payload of valkey-bloom's BF.LOAD; 'calyx pull --as' "
         "gets the same from a server. Of redisson it is the lines of "
         "'redis-cli HGETALL {NAME}:config', an empty line and all bytes of "
         "the string NAME."},
    .groups = {&options, &result_group, &secret_group},
    .examples =
        {{"calyx convert --to parquet -o ids.bloom ids.calyx",
          "header and bitset, for a Parquet file"},
         {"calyx convert --from parquet --offset 73211 -o ids.calyx t.parquet",
          "the filter of one column chunk"},
         {"calyx convert --from guava --items int64 -o ids.calyx ids.guava",
          "a filter that Guava wrote, of its longFunnel"},
         {"calyx convert --to dcso -o bad.bloom bad.calyx",
          "for DCSO's bloom, of a filter of its layout"},
         {"calyx convert --from 'murmur3-32 seeds 41..47 mod 5000000 msb' -o "
          "seen.calyx seen.bits",
          "the bits of a tutorial's filter"}},
    .least = 1,
    .most = 1,
    .run = run,
};
