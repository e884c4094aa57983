/*
 * The exact verbs in one pass, if the text and a table fit into memory.
 *
 * A slot of the table holds the place of a line in the text, and a tag
 * of its hash. A line whose tag is there is compared with the bytes at that
 * place, so the answer is exact with any hash. The line claims the slot of its
 * key if it is the first so far, or if the verb says so: what is printed are
 * the lines of the last file that hold their slot in the end.
 *
 * All threads use the table at once. Of two equal lines of one file the earlier
 * one gets the slot, even if it comes later: it then takes it from the other,
 * whose block has not been printed yet, since blocks are printed in order.
 */
#ifndef CALYX_TOOL_ONE_PASS_H
#define CALYX_TOOL_ONE_PASS_H

#include "exact/engine.h"

/* Can it be done in `memory` bytes? */
bool one_pass_fits(const struct rule *rule, const struct engine_plan *plan,
                   uint64_t memory);

/* False if the table and the text outgrow the memory, or if plain files cannot
 * be mapped. Then the first bytes of the output are written; output_skip makes
 * the output drop them when they are written again. figures->read is what was
 * read in vain of plain files. Of others, what was read is in `kept`, to be
 * read again. */
bool one_pass(const struct rule *rule, const struct engine_plan *plan,
              uint64_t memory, struct kept_text *kept, struct figures *figures);

#endif
