/*
 * How fast one process with one thread hashes lines, builds a part and joins
 * parts: constants that were measured once, or the verbs themselves run on a
 * small list, here and now.
 */
#ifndef CALYX_TOOL_PHASE_SPEED_H
#define CALYX_TOOL_PHASE_SPEED_H

#include <calyx/calyx.h>

/* What is planned, as far as speed depends on it. */
struct phase_load {
    const char *kind;
    double rate;
    uint64_t line_bytes; /* with the line end */
    uint64_t part_keys, part_bytes;
    uint32_t parts;
};

/* In seconds. A verb takes some time however few keys it gets. */
struct phase_speed {
    double hash_start, line;  /* calyx hash, and each line */
    double build_start, hash; /* calyx build --part, and each hash */
    double byte;              /* calyx join, each byte of the filter */
};

struct phase_speed stated_speed(const struct phase_load *load);

/* Takes a few seconds, and files of 200 MB in the folder of -T. */
struct phase_speed measured_speed(const struct phase_load *load);

#endif
