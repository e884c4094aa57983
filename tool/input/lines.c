#include "input/lines.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input/header.h"
#include "input/records.h"
#include "input/source.h"

struct line_input {
    char **names;
    int count, next;
    bool counted;
    size_t block_size;
    struct kept_text *kept; /* or NULL */

    struct byte_source *source; /* NULL between files */
    bool starts_file;
    uint64_t line;
    char *carry; /* the start of a line whose end has not come */
    size_t carried, carry_room;
    struct record_state state; /* of the bytes carried */

    /* Columns of headers, the last the columns of this file; blocks point to
     * them. */
    struct field_range **columns;
    size_t columns_count;
    struct key_maker splitter;

    uint64_t total_size;  /* of all files; 0 if one is not a regular file */
    uint64_t size_before; /* of the files that are done */
    _Atomic uint64_t done;
};

/* ---- Files in turn ------------------------------------------------------ */

uint64_t size_of_files(int count, char **names) {
    uint64_t total = 0;
    for (int i = 0; i < count; i++) {
        struct stat is;
        const int failed =
            strcmp(names[i], "-") == 0 ? fstat(0, &is) : stat(names[i], &is);
        if (failed || !S_ISREG(is.st_mode)) return 0;
        total += (uint64_t)is.st_size;
    }
    return total;
}

struct line_input *input_open(int count, char **names, bool counted,
                              size_t block_size, struct kept_text *kept) {
    static char *standard[] = {"-"};
    key_options_expect_sound();
    struct line_input *const in = alloc_memory(sizeof *in);
    *in = (struct line_input){.names = count ? names : standard,
                              .count = count ? count : 1,
                              .counted = counted,
                              .block_size = block_size,
                              .kept = kept};
    in->total_size = size_of_files(in->count, in->names);
    return in;
}

static bool next_file(struct line_input *in) {
    const char *const name = in->names[in->next];
    in->source = in->kept ? kept_source_try(in->kept, name) : source_try(name);
    in->starts_file = true;
    in->line = 1;
    in->next++;
    return in->source != NULL;
}

static void end_file(struct line_input *in) {
    in->size_before += source_size(in->source);
    source_close(in->source);
    in->source = NULL;
}

double input_share(const struct line_input *in) {
    if (!in->total_size) return -1;
    const uint64_t done = in->done;
    return done < in->total_size ? (double)done / (double)in->total_size : 1;
}

/* ---- Blocks ------------------------------------------------------------- */

static void set_room(struct text_block *b, size_t room) {
    b->text = resize_memory(b->text, room + BLOCK_MARGIN);
    memset(b->text + room, 0, BLOCK_MARGIN);
    b->room = room;
}

static void keep(struct line_input *in, const char *bytes, size_t size) {
    in->carry = with_room(in->carry, &in->carry_room, size, 1);
    if (size) memcpy(in->carry, bytes, size);
    in->carried = size;
}

static uint64_t count_lines(const struct text_block *b) {
    uint64_t lines = 0;
    const char *at = b->text, *const end = b->text + b->size;
    while (at < end && (at = memchr(at, record_end(), (size_t)(end - at)))) {
        lines++;
        at++;
    }
    return lines;
}

/* ---- Headers ------------------------------------------------------------ */

static bool same_columns(const struct field_range *a,
                         const struct field_range *b) {
    return memcmp(a, b, key_form.ranges_count * sizeof *a) == 0;
}

/* Files often have the same columns: they are stored once. */
static void set_columns(struct line_input *in, struct field_range *columns) {
    const size_t n = in->columns_count;
    if (n && same_columns(in->columns[n - 1], columns)) {
        free(columns);
        return;
    }
    in->columns = resize_memory(in->columns, (n + 1) * sizeof *in->columns);
    in->columns[n] = columns;
    in->columns_count++;
}

/* Take the header from the first block of a file. */
static void cut_header(struct line_input *in, struct text_block *b) {
    calyx_key header = first_record(b->text, b->size);
    const size_t size = header.size + (header.size < b->size);
    header_note(in->names[in->next - 1], &header);
    b->header_lines = ends_of(&header);
    if (line_ends_are_crlf()) header = without_cr(header);
    struct field_range *const columns =
        find_columns(&in->splitter, &header, b->error);
    if (columns) {
        set_columns(in, columns);
        memmove(b->text, b->text + size, b->size - size);
        b->size -= size;
    } else {
        b->header_lines = b->size = 0;
    }
}

/* ---- Blocks, handed out ------------------------------------------------- */

static bool hand_out(struct line_input *in, struct text_block *b, size_t size) {
    keep(in, b->text + size, b->size - size);
    b->size = size;
    b->file_number = (uint64_t)in->next;
    b->starts_file = in->starts_file;
    in->starts_file = false;
    b->header_lines = 0;
    if (key_form.header && b->starts_file && size) cut_header(in, b);
    b->columns = in->columns_count ? in->columns[in->columns_count - 1]
                                   : key_form.ranges;
    b->text[b->size] = record_end(); /* if its last line has none */
    if (in->counted) {
        b->line = in->line + b->header_lines;
        in->line = b->line + count_lines(b);
    }
    return true;
}

static void start(struct line_input *in, struct text_block *b) {
    size_t room = in->block_size;
    while (room < in->carried * 2) room *= 2;
    if (room != b->room) set_room(b, room);
    if (in->carried) memcpy(b->text, in->carry, in->carried);
    b->size = in->carried;
    in->carried = 0;
    b->lines = b->out_size = b->stretch_size = 0;
    b->offset = b->ended = b->selected = 0;
    b->gap_count = 0;
    b->skipped = (struct skipped_lines){0};
    b->error[0] = b->trouble[0] = '\0';
}

/* Trouble is handed out like lines, so that it comes to pass when all lines
 * before it are done. */
static bool hand_out_trouble(struct line_input *in, struct text_block *b,
                             size_t whole, const char *trouble) {
    snprintf(b->trouble, sizeof b->trouble, "%s", trouble);
    hand_out(in, b, whole);
    if (in->source) end_file(in);
    in->carried = 0;
    in->state = (struct record_state){0};
    return true;
}

bool input_next(struct line_input *in, struct text_block *b) {
    start(in, b);

    size_t whole = 0; /* bytes of whole lines */
    for (;;) {
        if (!in->source) {
            if (in->next == in->count) return false;
            b->file = in->names[in->next];
            if (!next_file(in)) {
                char why[100];
                snprintf(why, sizeof why, "cannot open it: %s",
                         strerror(errno));
                return hand_out_trouble(in, b, 0, why);
            }
            b->file = source_name(in->source);
            if (source_is_output(in->source))
                return hand_out_trouble(in, b, 0,
                                        "input file is also the output");
            if (!accepts_any_bytes() && !source_expect_lines(in->source))
                return hand_out_trouble(in, b, 0, source_trouble(in->source));
        }
        b->file = source_name(in->source);
        b->offset = source_offset(in->source) - b->size;
        const ssize_t n =
            source_read(in->source, b->text + b->size, b->room - b->size);
        in->done = in->size_before + source_done(in->source);
        if (n < 0)
            return hand_out_trouble(in, b, whole, source_trouble(in->source));
        if (n == 0) { /* what is left is a line, if there is anything */
            in->state = (struct record_state){0};
            end_file(in);
            if (b->size || in->starts_file) return hand_out(in, b, b->size);
            continue;
        }
        const size_t end =
            last_record_end(&in->state, b->text, b->size, (size_t)n);
        if (end) whole = end;
        b->size += (size_t)n;
        if (whole && (b->size == b->room || !source_ready(in->source)))
            return hand_out(in, b, whole);
        if (b->size == b->room) set_room(b, 2 * b->room);
    }
}

void input_close(struct line_input *in) {
    if (in->source) source_close(in->source);
    for (size_t i = 0; i < in->columns_count; i++) free(in->columns[i]);
    free(in->columns);
    key_maker_free(&in->splitter);
    free(in->carry);
    free(in);
}

static void put(struct text_block *b, const void *bytes, size_t size) {
    b->out = with_room(b->out, &b->out_room, b->out_size + size, 1);
    if (size) memcpy(b->out + b->out_size, bytes, size);
    b->out_size += size;
}

static void end_stretch(struct text_block *b) {
    if (b->stretch_size) put(b, b->text + b->stretch, b->stretch_size);
    b->stretch_size = 0;
}

void block_output(struct text_block *b, const void *bytes, size_t size) {
    end_stretch(b);
    put(b, bytes, size);
}

void block_output_line(struct text_block *b, const void *bytes, size_t size) {
    const char end = record_end();
    block_output(b, bytes, size);
    block_output(b, &end, 1);
}

void block_output_lines(struct text_block *b, const char *from, size_t size) {
    const size_t start = (size_t)(from - b->text);
    if (b->stretch_size && start != b->stretch + b->stretch_size)
        end_stretch(b);
    if (!b->stretch_size) b->stretch = start;
    b->stretch_size += size;
}

void block_free(struct text_block *b) {
    free(b->text);
    free(b->out);
    free(b->hashes);
    free(b->ends);
    free(b->gaps);
}
