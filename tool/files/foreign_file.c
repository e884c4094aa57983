#include "files/foreign_file.h"

#include <stdlib.h>
#include <string.h>

#include "foreign/dump_file.h"

struct owned owned;

static void put_out(void *output, const void *bytes, size_t size) {
    output_write(output, bytes, size);
}

static struct foreign_file *new_file(const struct item_type *items) {
    struct foreign_file *const f = alloc_memory(sizeof *f);
    *f = (struct foreign_file){.items = items ? items : item_type_named("")};
    return f;
}

/* ---- In ------------------------------------------------------------------ */

static bool get(void *source, void *bytes, size_t size) {
    return source_fill(source, bytes, size) == size;
}

static struct foreign_file *load_dump(struct byte_source *source) {
    struct foreign_file *const f = new_file(NULL);
    struct dump_reader r = {.get = get, .context = source};
    uint8_t more;
    calyx_error why;
    if (dump_open(&r, &why) != CALYX_OK ||
        dump_load(&r, &f->filter, &why) != CALYX_OK)
        fail_at(source_name(source), 0, "%s", why.text);
    if (source_fill(source, &more, 1) > 0)
        fail_at(source_name(source), 0, "bytes follow after the filter");
    f->items = item_type_named(r.head.items);
    if (!f->items)
        fail_at(source_name(source), 0,
                "its items are '%s', which this calyx does not know",
                r.head.items);
    expect_items(f->items);
    f->has_sum = true;
    free(r.bytes);
    return f;
}

struct foreign_file *foreign_file_import(const struct foreign_choice *choice,
                                         const struct item_type *items,
                                         struct byte_source *source) {
    enum { PIECE = 1 << 20 };
    struct foreign_file *const f = new_file(items);
    uint8_t *bytes = NULL;
    size_t size = 0, room = 0;
    do {
        room += room / 2 + PIECE;
        bytes = resize_memory(bytes, room);
        size += source_fill(source, bytes + size, room - size);
    } while (size == room);
    calyx_error why;
    if (foreign_read(choice, bytes, size, &f->filter, &why) != CALYX_OK)
        fail_at(source_name(source), 0, "it is not %s: %s",
                choice->layout->file, why.text);
    expect_items(f->items);
    return f;
}

struct foreign_file *foreign_file_try(struct byte_source *source) {
    struct foreign_file *f = NULL;
    if (owned.items && !owned.choice.layout)
        fail("option --items goes with --layout only");
    if (source_is(source, A_DUMP))
        f = load_dump(source);
    else if (owned.choice.layout && !source_is(source, A_FILTER))
        f = foreign_file_import(&owned.choice, owned.items, source);
    if (f) source_close(source);
    return f;
}

struct foreign_file *foreign_file_new(const struct foreign_choice *choice,
                                      const struct item_type *items,
                                      uint64_t keys, double rate) {
    struct foreign_file *const f = new_file(items);
    calyx_error why;
    if (foreign_make(choice, keys, rate, &f->filter, &why) != CALYX_OK)
        fail_with(&why);
    expect_items(f->items);
    return f;
}

struct foreign_file *foreign_file_of(const struct foreign_filter *filter,
                                     const struct item_type *items) {
    struct foreign_file *const f = new_file(items);
    f->filter = *filter;
    expect_items(f->items);
    return f;
}

/* ---- Out ----------------------------------------------------------------- */

static void write_dump(const struct foreign_file *f, const char *path,
                       struct output *output) {
    struct dump_head head = {.layout = f->filter.layout};
    struct dump_writer w;
    calyx_error why;
    if (f->items->encode) strcpy(head.items, f->items->name);
    dump_begin(&w, &head, (struct foreign_sink){put_out, output});
    if (dump_filter(&w, &f->filter, &why) != CALYX_OK)
        fail_at(path ? path : "standard output", 0, "%s", why.text);
    dump_end(&w);
}

void foreign_file_save(const struct foreign_file *f, const char *path,
                       bool replace) {
    struct output *const output = output_open(path, replace);
    write_dump(f, path, output);
    output_close(output);
}

void foreign_file_export(const struct foreign_file *f, struct output *to) {
    f->filter.layout->write(&f->filter, &(struct foreign_sink){put_out, to});
}

/* ---- Keys ---------------------------------------------------------------- */

void foreign_file_has_many(const struct foreign_file *f, const calyx_key *keys,
                           size_t n, bool *found) {
    const struct foreign_filter *const filter = &f->filter;
    if (!f->items->encode) {
        filter->layout->has_many(filter, keys, n, found);
        return;
    }
    struct item_keys items = items_of(f->items, keys, n);
    filter->layout->has_many(filter, items.keys, n, found);
    item_keys_free(&items);
}

void foreign_file_add_many(struct foreign_file *f, const calyx_key *keys,
                           size_t n) {
    struct foreign_filter *const filter = &f->filter;
    struct item_keys items = {0};
    calyx_error why;
    if (f->items->encode) items = items_of(f->items, keys, n);
    if (filter->layout->add_many(filter, items.keys ? items.keys : keys, n,
                                 &why) != CALYX_OK)
        fail_with(&why);
    item_keys_free(&items);
}

/* ---- About it ------------------------------------------------------------ */

struct foreign_facts foreign_file_describe(const struct foreign_file *f) {
    struct foreign_facts facts;
    f->filter.layout->describe(&f->filter, &facts);
    return facts;
}

void foreign_file_free(struct foreign_file *f) {
    if (f) f->filter.layout->free(&f->filter);
    free(f);
}

const char *foreign_names(void) {
    static char names[200];
    names[0] = '\0';
    for (const struct foreign_layout *const *l = foreign_layouts; *l; l++) {
        strcat(names, (*l)->name);
        if (l[1]) strcat(names, l[2] ? ", " : " or ");
    }
    return names;
}

/* ---- Options ------------------------------------------------------------- */

void parse_layout(const struct verb_option *option, const char *value) {
    calyx_error why;
    if (foreign_choose(value, option->into, &why) == CALYX_OK) return;
    if (!strpbrk(value, " \t"))
        fail("--%s: expected %s, or a layout in one line, found '%s'",
             option->name, foreign_names(), value);
    fail("option --%s: %s", option->name, why.text);
}

const struct group owned_group = {
    "A filter of another program",
    {
        {0, "layout", "LAYOUT",
         "Read FILTER as another program wrote it: LAYOUT is as for 'calyx "
         "build --layout', by name or in one line.",
         parse_layout, &owned.choice},
        {0, "items", ITEM_TYPES,
         "With --layout: what the program makes of an item before it hashes "
         "it; 'calyx help convert' says more.",
         parse_items, &owned.items},
    },
};
