/*
 * Whole lines from the files of the command line, in blocks.
 *
 * A block holds as many whole lines of one file as have come and as fit; it
 * grows for a line that is longer. So memory is bounded by the number of
 * blocks, or by the longest line, and lines that come slowly are handed on at
 * once.
 */
#ifndef CALYX_TOOL_LINES_H
#define CALYX_TOOL_LINES_H

#include "tool.h"

/* Bytes that may be read, but mean nothing, after the text of a block. */
enum { BLOCK_MARGIN = 64 };

/* Lines that --missing=skip and --invalid=skip leave out. */
struct skipped_lines {
    uint64_t all; /* lines that were looked at; 0: none is left out */
    uint64_t missing, invalid;
};

struct text_block {
    char *text;
    size_t size, room;
    const char *file;      /* its name, for messages                      */
    uint64_t file_number;  /* from 1                                      */
    bool starts_file;      /* the first of its file                       */
    uint64_t offset;       /* of its text, by source_offset               */
    uint64_t number;       /* blocks before it in this run of the pipeline */
    uint64_t line;         /* number of its first line; 0 if not numbered */
    uint64_t header_lines; /* line ends of the header before it */
    const struct field_range *columns; /* of the key, by number */
    char trouble[200]; /* why reading failed after it, "" if it did not */

    void *context; /* of the stages that work on it */
    void *work;    /* what they keep for each block */

    /* For the stages that work on it: */
    char *out; /* bytes to be written, in order */
    size_t out_size, out_room;
    size_t stretch, stretch_size; /* of its text, to be written after that */
    uint64_t *hashes;             /* one for each line */
    size_t *ends; /* where each line ends, if note_ends is called */
    size_t lines, hash_room, end_room;
    uint64_t ended;    /* line ends in it; more than lines, in CSV */
    char error[360];   /* what is wrong after the last line, "" if nothing */
    uint64_t selected; /* lines */
    struct line_gap *gaps; /* where lines were dropped */
    size_t gap_count, gap_room;
    struct skipped_lines skipped; /* by leave_lines_out */
};

struct line_gap {
    size_t offset; /* in the text */
    uint64_t ends; /* of lines */
};

void block_output(struct text_block *block, const void *bytes, size_t size);

/* And the end of a line after them. */
void block_output_line(struct text_block *block, const void *bytes,
                       size_t size);

/* Whole lines of its text, each with its end, which is added to the last line
 * of a file if missing. Adjacent lines are joined, and not copied unless
 * something else follows. */
void block_output_lines(struct text_block *block, const char *from,
                        size_t size);

struct line_input;

struct kept_text;

/* No names: standard input. With `counted`, blocks have line numbers. `kept`:
 * the bytes are stored there, or were; NULL: they are not. */
struct line_input *input_open(int count, char **names, bool counted,
                              size_t block_size, struct kept_text *kept);

/* Fill a block; false at the end. One thread at a time. A block with an error
 * is followed by the blocks of the next file. An empty file has one empty
 * block. */
bool input_next(struct line_input *input, struct text_block *block);

/* Share of the bytes that have been read, or -1 if unknown. Any thread. */
double input_share(const struct line_input *input);

/* Bytes of files, packed or not; 0 if one is not a regular file. */
uint64_t size_of_files(int count, char **names);

void input_close(struct line_input *input);
void block_free(struct text_block *block);

#endif
