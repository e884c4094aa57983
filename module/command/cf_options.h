/* The options of CF commands that make filters. */
#ifndef CALYX_MODULE_CF_OPTIONS_H
#define CALYX_MODULE_CF_OPTIONS_H

#include "command/options.h"

/* Those that RedisBloom does not have, for COMMAND DOCS. */
#define CF_OPTIONS                                                     \
    OPTION(DOUBLE, "ERROR", "error"), OPTION(INTEGER, "SEED", "seed"), \
        OPTION(STRING, "LAYOUT", "layout")

/* Like the functions of options.h. Clients have to say words whole. A command
 * that is `replayed` is read as RedisBloom reads it. */
const char *cf_parse_reserve(RedisModuleString **argv, int argc, bool replayed,
                             struct options *out);
const char *cf_parse_insert(RedisModuleString **argv, int argc, bool replayed,
                            struct options *out);

/* What a filter is made of that CF.ADD makes. */
struct filter_params cf_default_params(bool replayed);

/* Would RedisBloom take a key of this name for an option of CF.RESERVE? */
bool is_reserve_word(RedisModuleString *name);

#endif
