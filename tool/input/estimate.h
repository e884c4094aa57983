/*
 * How many lines files have, judged by a sample.
 *
 * To read a file only for that takes half as long as to make a filter of it. So
 * small pieces are read instead, at even distances, and the ends of lines are
 * counted in them. Who uses the result has to look whether it was right.
 */
#ifndef CALYX_TOOL_ESTIMATE_H
#define CALYX_TOOL_ESTIMATE_H

#include "tool.h"

/* At least as many as there are, by all appearances, and not many more. False
 * if nobody can say: one of them is not a regular file, or packed, or standard
 * input; they are too small for a sample, or too mixed; or a line may contain
 * what ends it, as in CSV. */
bool estimate_lines(int count, char **files, uint64_t *lines);

#endif
