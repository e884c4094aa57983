/*
 * The number of lines in files, estimated from a sample.
 *
 * Reading a file only for that takes half as long as building a filter of it.
 * So small pieces are read instead, at even distances, and the line ends in
 * them are counted. The caller must check whether the estimate was right.
 */
#ifndef CALYX_TOOL_ESTIMATE_H
#define CALYX_TOOL_ESTIMATE_H

#include "tool.h"

/* Very likely at least the true number, and not much more. False if unknown: a
 * file is not regular, or compressed, or standard input; they are too small for
 * a sample, or too mixed; or a line may contain what ends it, as in CSV. */
bool estimate_lines(int count, char **files, uint64_t *lines);

#endif
