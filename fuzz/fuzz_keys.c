/*
 * The keys of lines, as the command finds them: fields, CSV and JSON. Whatever
 * the bytes are, lines are cut where the model cuts them, keys come one by one
 * as they come in batches, and with --missing=skip the lines that are left have
 * the keys and the numbers that they have alone.
 *
 * The input is a few choices of options, and then the text.
 */
#include "fuzz.h"
#include "input/json_field.h"
#include "input/records.h"

/* ---- What the command brings --------------------------------------------- */

struct key_options key_form;
enum missing_key missing_key;
bool skips_invalid;

const struct field_separator *separator_of(const struct key_options *o) {
    return &o->separator;
}

bool key_is_one_field(const struct key_options *o) {
    return o->ranges_count == 1 && o->ranges[0].first == o->ranges[0].last;
}

const char *key_options_hint(void) {
    return "";
}

const char *json_path_hint(const char *path) {
    (void)path;
    return "";
}

void *resize_memory(void *old, size_t size) {
    void *const block = realloc(old, size ? size : 1);
    DEMAND(block);
    return block;
}

void *alloc_memory(size_t size) {
    return resize_memory(NULL, size);
}

/* ---- Options ------------------------------------------------------------- */

static struct field_range ranges[2];

static void choose_range(struct choices *from, struct field_range *r) {
    static const struct field_range all[] = {
        {1, 1, NULL},  {2, 2, NULL},   {-1, -1, NULL}, {1, 3, NULL},
        {2, -1, NULL}, {-2, -1, NULL}, {3, -2, NULL},
    };
    *r = all[choose_below(from, sizeof all / sizeof *all)];
}

static void choose_options(struct choices *from) {
    static const char *const paths[] = {"a", "a.b", "a\\.b", "",
                                        ".", "n",   NULL};
    static const struct field_separator separators[] = {
        {"\t", 1}, {",", 1}, {"::", 2}, {"ab", 2}, {"\"", 1}};
    const size_t flags = choose_bytes(from, 1), form = choose_below(from, 4);
    key_form = (struct key_options){
        .nul = flags & 1,
        .crlf = flags & 2,
        .fold = flags & 4,
        .trim = flags & 8,
        .csv = form == 1,
        .blanks = form == 2,
        .json = form == 3,
        .separator = separators[choose_below(from, form == 1 ? 2 : 5)],
        .ranges = ranges,
        .ranges_count = choose_below(from, 3),
    };
    missing_key = (enum missing_key)choose_below(from, 3);
    if (key_form.json && !key_form.ranges_count) key_form.ranges_count = 1;
    for (size_t i = 0; i < key_form.ranges_count; i++) {
        choose_range(from, &ranges[i]);
        if (key_form.json)
            ranges[i] = (struct field_range){0, 0, choose_name(from, paths)};
    }
}

/* ---- One key ------------------------------------------------------------- */

static void check_json(const calyx_key *line) {
    const char *paths[2];
    struct json_value values[2];
    char error[JSON_ERROR_ROOM];
    for (size_t i = 0; i < key_form.ranges_count; i++)
        paths[i] = ranges[i].name;
    memset(error, 'x', sizeof error);
    if (!json_find(line->data, line->size, paths, key_form.ranges_count, values,
                   error)) {
        DEMAND(memchr(error, 0, sizeof error) && error[0] != 'x');
        return;
    }
    const char *const start = line->data, *const end = start + line->size;
    for (size_t i = 0; i < key_form.ranges_count; i++) {
        const struct json_value *const v = &values[i];
        if (v->type == JSON_ABSENT) continue;
        DEMAND(v->size > 0 && v->at >= start && v->at + v->size <= end);
        if (v->type != JSON_STRING) continue;
        char *const text = malloc(v->size);
        DEMAND(text && v->size >= 2 && v->at[0] == '"');
        DEMAND(json_unescape(v, text) <= (long)v->size - 2);
        free(text);
    }
}

/* By make_key alone, whether or not the key lies in the line. */
static enum key_result make_one(struct key_maker *maker, calyx_key line) {
    char error[FIELD_ERROR_ROOM] = "";
    maker->size = 0;
    if (line_ends_are_crlf()) line = without_cr(line);
    if (key_form.json) check_json(&line);
    const enum key_result result = make_key(maker, &line, ranges, error);
    DEMAND((result == KEY_MADE) == !error[0]);
    if (key_form.ranges_count && key_lies_in_line(ranges)) {
        calyx_key key;
        DEMAND(find_key(&line, ranges, &key, error) == result);
        if (result == KEY_MADE)
            DEMAND(key.size == maker->size &&
                   memcmp(key.data, maker->bytes, key.size) == 0);
    }
    return result;
}

/* ---- All of a block ------------------------------------------------------ */

/* A block of the command: an end after the last line, and a margin. */
static struct text_block make_block(const uint8_t *text, size_t size) {
    struct text_block block = {
        .size = size, .file = "x", .line = 1, .columns = ranges};
    block.text = alloc_memory(size + 1 + BLOCK_MARGIN);
    memset(block.text, 0, size + 1 + BLOCK_MARGIN);
    if (size) memcpy(block.text, text, size);
    block.text[size] = record_end();
    return block;
}

static void compare(const uint8_t *text, size_t size) {
    struct key_batch *const batch = calloc(1, sizeof *batch);
    struct key_maker maker = {0};
    struct text_block block = make_block(text, size);
    const char *at = (const char *)text, *const end = at + size;
    uint64_t number = 1;
    bool wrong = false;
    DEMAND(batch);
    leave_lines_out(batch, &block);
    batch_start(batch, &block);
    for (;;) {
        const bool more = batch_next(batch, &block);
        for (size_t i = 0; more && i < batch->count; i++) {
            calyx_key line;
            for (;; number += ends_of(&line)) { /* after skipped lines */
                DEMAND(at < end);
                line = first_record(at, (size_t)(end - at));
                at += line.size + (at + line.size < end);
                const enum key_result result = make_one(&maker, line);
                if (result == KEY_MADE) break;
                DEMAND(result == LACKS_FIELD &&
                       missing_key == MISSING_IS_SKIPPED);
            }
            DEMAND(batch->lines[i].size == line.size);
            DEMAND(memcmp(batch->lines[i].data, line.data, line.size) == 0);
            DEMAND(batch->keys[i].size == maker.size);
            DEMAND(memcmp(batch->keys[i].data, maker.bytes, maker.size) == 0);
            DEMAND(batch->numbers[i] == number);
            number += ends_of(&line);
        }
        if (!more) break;
    }
    while (at < end && !wrong) { /* skipped, or the one with the error */
        const calyx_key line = first_record(at, (size_t)(end - at));
        const enum key_result result = make_one(&maker, line);
        wrong = result == LINE_IS_WRONG ||
                (result == LACKS_FIELD && missing_key == MISSING_IS_ERROR);
        DEMAND(wrong ||
               (result == LACKS_FIELD && missing_key == MISSING_IS_SKIPPED));
        if (!wrong) number += ends_of(&line);
        at += line.size + (at + line.size < end);
    }
    DEMAND(wrong == (block.error[0] != '\0'));
    DEMAND(block.ended + 1 == number);
    batch_free(batch);
    free(batch);
    key_maker_free(&maker);
    free(block.text);
    free(block.gaps);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct choices from = {data, size};
    choose_options(&from);
    compare(from.at, from.left);
    return 0;
}
