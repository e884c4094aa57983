/*
 * How many lines --missing=skip and --invalid=skip left out, over all files
 * that were read. A wrong name of a field leaves out all lines: that is an
 * error, not an empty result.
 */
#ifndef CALYX_TOOL_SKIPPED_H
#define CALYX_TOOL_SKIPPED_H

#include "input/lines.h"

/* These files were read, as one, to their end if `whole`. Fails if all of their
 * lines were left out; says so if more than half were. `files` may be read
 * several times: the last time counts. */
void skipped_note(int count, char **files, const struct skipped_lines *skipped,
                  bool whole);

/* The sum over all files. False if neither --missing=skip nor --invalid=skip
 * was given. */
bool skipped_sum(struct skipped_lines *sum);

#endif
