/*
 * The lines of a block and their keys, in batches.
 *
 * By default the key is the line without its end. Options choose other ends,
 * fields, and letter case; what is printed is always the whole line, as it
 * came.
 */
#ifndef CALYX_TOOL_RECORDS_H
#define CALYX_TOOL_RECORDS_H

#include "input/fields.h"
#include "input/lines.h"

/* The byte that ends a line: a newline, or NUL with -z. */
char record_end(void);

/* Does that byte always end a line? Not in CSV. */
bool record_ends_are_plain(void);

/* Is a key the line as it is in the file, up to the end that record_end says?
 */
bool keys_are_whole_lines(void);

/* State of the CSV parser: a quoted newline does not end a line. */
struct record_state {
    enum { FIELD_START, IN_FIELD, IN_QUOTES, QUOTE_IN_QUOTES } place;
};

/* Look through the `size` bytes at text + from. Returns the offset in `text`
 * after the last end of a line among them, 0 if there is none. */
size_t last_record_end(struct record_state *state, const char *text,
                       size_t from, size_t size);

/* The first line of a text, without its end. */
calyx_key first_record(const char *text, size_t size);

/* A line without a carriage return at its end. */
calyx_key without_cr(calyx_key line);

/* Some lines of a block, and their keys. */
enum { BATCH = 1024, BATCH_ROOM = BATCH + 64 };
struct key_batch {
    size_t count;
    const calyx_key *keys;
    calyx_key lines[BATCH_ROOM]; /* without their ends */

    uint64_t numbers[BATCH_ROOM]; /* of the lines, if blocks are numbered */

    const char *next; /* the first line after these */
    size_t gap;       /* of the block: the first after these */
    calyx_key made[BATCH_ROOM];
    struct key_maker maker;
};

/* Is this a key that can be used? If not, why, in FIELD_ERROR_ROOM bytes. NULL:
 * any is. Set it before lines are read. */
extern bool (*key_is_usable)(const calyx_key *key, char *error);

void batch_start(struct key_batch *batch, struct text_block *block);

/* The next lines and keys. False at the end. A line that lacks its key ends the
 * block early, with block->error. Counts block->ended. */
bool batch_next(struct key_batch *batch, struct text_block *block);

/* With --missing=skip and --invalid=skip, remove lines that lack their key or
 * are broken from a block, before anything else is done with it, and count them
 * in block->skipped. Their numbers are not given to others. Which lines these
 * are does not depend on where blocks end. */
void leave_lines_out(struct key_batch *batch, struct text_block *block);

/* Note that lines with this number of ends were removed from a block at an
 * offset, which is not below the offset of the last gap. */
void put_gap(struct text_block *block, size_t offset, uint64_t ends);

/* Line ends within a line and at its end: 1, or more in CSV. */
uint64_t ends_of(const calyx_key *line);

void batch_free(struct key_batch *batch);

#endif
