/*
 * --files0-from: names of input files from a file, for more of them than a
 * command line takes.
 */
#ifndef CALYX_TOOL_FILE_LIST_H
#define CALYX_TOOL_FILE_LIST_H

#include "tool.h"

/* A row of a verb whose last operands are files. */
void parse_file_list(const struct verb_option *option, const char *value);
#define FILE_LIST_OPTION                                                       \
    {                                                                          \
        0, "files0-from", "FILE",                                              \
            "Read the files that FILE names, too, after the files of the "     \
            "command "                                                         \
            "line. A NUL byte ends each name, as 'find -print0' writes them; " \
            "- is standard input.",                                            \
            parse_file_list, NULL                                              \
    }

/* A file that an option speaks of; if there are no operands, those are taken.
 */
void add_operand(const char *name);

/* The operands with the files of --files0-from after them; their number is
 * changed. */
char **operands_with_files(char **operands, int *count);

/* Fails if standard input is to be read twice: as a file of an option, NULL if
 * there is none, or as one of `files`, which it is if there are none. */
void expect_one_standard_input(const struct texts *option, int count,
                               char **files);

#endif
