#include "foreign/dump_file.h"

#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"
#include "wire/dump.h"

static const char FIRST[] = "calyx dump 1 ";
enum { RECORD_HEAD = 16, FIRST_BYTES = sizeof FIRST - 1 };

/* ---- Writing ------------------------------------------------------------- */

static void put(struct dump_writer *w, const void *bytes, size_t size) {
    w->to.put(w->to.context, bytes, size);
}

void dump_begin(struct dump_writer *w, const struct dump_head *head,
                struct foreign_sink to) {
    char line[DUMP_MOST_LINE];
    *w = (struct dump_writer){.to = to};
    const int size =
        snprintf(line, sizeof line, "%s%s%s%s\n", FIRST, head->layout->name,
                 *head->items ? " " : "", head->items);
    put(w, line, (size_t)size);
}

void dump_record(struct dump_writer *w, uint64_t iterator, const void *bytes,
                 size_t size) {
    uint8_t head[RECORD_HEAD];
    store_u64(head, iterator);
    store_u64(head + 8, size);
    w->sum = dump_sum_with(w->sum, dump_sum(head, sizeof head));
    w->sum = dump_sum_with(w->sum, dump_sum(bytes, size));
    put(w, head, sizeof head);
    put(w, bytes, size);
}

void dump_end(struct dump_writer *w) {
    uint8_t end[RECORD_HEAD + 8] = {0};
    store_u64(end + RECORD_HEAD, w->sum);
    put(w, end, sizeof end);
}

static void put_record(void *context, uint64_t iterator, const void *bytes,
                       size_t size) {
    dump_record(context, iterator, bytes, size);
}

calyx_status dump_filter(struct dump_writer *w, const struct foreign_filter *f,
                         calyx_error *why) {
    return f->layout->save(f, &(struct record_sink){put_record, w}, why);
}

/* ---- Reading ------------------------------------------------------------- */

static calyx_status ends(calyx_error *why) {
    return layout_fail(why, CALYX_DAMAGED, "the dump ends too early");
}

/* LAYOUT, or LAYOUT and ITEMS. */
static calyx_status parse_line(struct dump_reader *r, char *words,
                               calyx_error *why) {
    char *const items = strchr(words, ' ');
    if (items) *items = '\0';
    r->head.layout = foreign_layout_named(words);
    if (!r->head.layout)
        return layout_fail(why, CALYX_TOO_NEW,
                           "it is a dump of '%.60s', which is unknown", words);
    if (items && strlen(items + 1) > DUMP_MOST_ITEMS)
        return layout_fail(why, CALYX_TOO_NEW,
                           "the items of the dump are '%.60s', which is "
                           "unknown",
                           items + 1);
    if (items) strcpy(r->head.items, items + 1);
    return CALYX_OK;
}

calyx_status dump_open(struct dump_reader *r, calyx_error *why) {
    char line[DUMP_MOST_LINE + 1];
    size_t size = 0;
    while (size < DUMP_MOST_LINE && r->get(r->context, line + size, 1) &&
           line[size] != '\n' && line[size] != '\0')
        size++;
    const bool ended = size < DUMP_MOST_LINE && line[size] == '\n';
    line[size] = '\0';
    if (!ended || strncmp(line, FIRST, FIRST_BYTES) != 0)
        return layout_fail(why, CALYX_DAMAGED,
                           "its first line is not '%s' and a layout", FIRST);
    return parse_line(r, line + FIRST_BYTES, why);
}

/* Memory grows with what is there, not with what a number promises. */
static calyx_status read_after(struct dump_reader *r, uint64_t more,
                               calyx_error *why) {
    while (more > 0) {
        const size_t n =
            more < FOREIGN_MOST_PIECE ? (size_t)more : FOREIGN_MOST_PIECE;
        if (n > r->room - r->size) {
            const size_t room = r->size + n + r->size / 2;
            uint8_t *const bytes = realloc(r->bytes, room);
            if (!bytes)
                return layout_fail(why, CALYX_NO_MEMORY,
                                   "no memory for %zu bytes", room);
            r->bytes = bytes;
            r->room = room;
        }
        if (!r->get(r->context, r->bytes + r->size, n)) return ends(why);
        r->size += n;
        more -= n;
    }
    return CALYX_OK;
}

/* The next record, after what is in `bytes`. */
static calyx_status append_record(struct dump_reader *r, calyx_error *why) {
    uint8_t head[RECORD_HEAD], sum[8];
    const size_t from = r->size;
    if (!r->get(r->context, head, sizeof head)) return ends(why);
    r->iterator = load_u64(head);
    const uint64_t size = load_u64(head + 8);
    r->at_end = r->iterator == 0 && size == 0;
    if (r->at_end) {
        if (!r->get(r->context, sum, sizeof sum)) return ends(why);
        if (load_u64(sum) == r->sum) return CALYX_OK;
        return layout_fail(why, CALYX_DAMAGED,
                           "the dump does not match its checksum");
    }
    const calyx_status status = read_after(r, size, why);
    if (status != CALYX_OK) return status;
    r->sum = dump_sum_with(r->sum, dump_sum(head, sizeof head));
    r->sum = dump_sum_with(
        r->sum, dump_sum(r->bytes ? r->bytes + from : head, (size_t)size));
    return CALYX_OK;
}

calyx_status dump_next(struct dump_reader *r, calyx_error *why) {
    r->size = 0;
    return append_record(r, why);
}

/* Record by record, where they are no pieces of a file. */
static calyx_status load_records(struct dump_reader *r,
                                 struct foreign_filter *f, calyx_error *why) {
    const struct foreign_layout *const layout = r->head.layout;
    calyx_status status = dump_next(r, why);
    while (status == CALYX_OK && !r->at_end) {
        status = layout->load(f, r->iterator, r->bytes, r->size, why);
        if (status == CALYX_OK) status = dump_next(r, why);
    }
    if (status == CALYX_OK) status = layout->loaded(f, why);
    if (status != CALYX_OK) layout->free(f);
    return status;
}

calyx_status dump_load(struct dump_reader *r, struct foreign_filter *f,
                       calyx_error *why) {
    const struct foreign_layout *const layout = r->head.layout;
    *f = (struct foreign_filter){.layout = layout};
    if (layout->load) return load_records(r, f, why);
    calyx_status status;
    r->size = 0;
    do status = append_record(r, why);
    while (status == CALYX_OK && !r->at_end);
    if (status == CALYX_OK)
        status = foreign_read(&(struct foreign_choice){.layout = layout},
                              r->bytes, r->size, f, why);
    if (status == CALYX_OK) r->bytes = NULL; /* the filter has them */
    return status;
}
