/*
 * Where lines are printed: with --header, the header of the first file that has
 * one is printed before them; and no file is read that they are written to.
 */
#ifndef CALYX_TOOL_HEADER_H
#define CALYX_TOOL_HEADER_H

#include "tool.h"

/* What is printed of the files; both may be. */
enum header_use {
    LINES_OF_FIRST_FILE = 0,
    LINES_OF_ALL_FILES = 1, /* so say if headers differ       */
    COUNT_BEFORE_LINES = 2, /* and a tab: "count" is its name */
};

/* Lines of these files go to this output; NULL: to none. To be called before
 * they are read. */
void lines_go_to(struct output *output, int count, char **files, unsigned use);

/* The header of a file, without its end; `name` is the pointer in `files`. */
void header_note(char *name, const calyx_key *header);

#endif
