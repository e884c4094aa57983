/*
 * The raw form, for programs of your own: 128 bytes of text, then the bits.
 *
 *     calyx raw 2
 *     kind=line
 *     hash=xxh3
 *     seed=0
 *     probes=6
 *     bits=9930752
 *
 * and newlines up to byte 128. The bits lie eight to a byte, the lowest first;
 * doc/FORMAT.md says which of them a key sets. There is no checksum.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "files/filter_file.h"
#include "files/form.h"

enum { HEADER_BYTES = 128 };
static const char first_line[] = "calyx raw 2\n";

static void write_raw(const calyx_filter *f, const char *path,
                      struct output *to) {
    size_t size;
    const void *const bits = raw_bits(f, path, &size);
    calyx_info is;
    calyx_describe(f, &is);
    char header[HEADER_BYTES];
    memset(header, '\n', sizeof header);
    const int used = snprintf(
        header, sizeof header,
        "%skind=%s\nhash=%s\nseed=%" PRIu64 "\nprobes=%u\nbits=%" PRIu64 "\n",
        first_line, is.kind, is.hash, is.seed, is.probes, is.bits);
    if (used < 0 || (size_t)used >= sizeof header)
        fail_at(path, 0, "its header takes more than %d bytes", HEADER_BYTES);
    header[used] = '\n'; /* where snprintf put an end */
    output_write(to, header, sizeof header);
    output_write(to, bits, size);
}

/* ---- In ----------------------------------------------------------------- */

/* The line "NAME=VALUE" that must stand here; moves on to the next. */
static const char *value_of(const struct byte_source *from, const char *name,
                            char **at) {
    const size_t size = strlen(name);
    char *const line = *at, *const end = strchr(line, '\n');
    if (!end || strncmp(line, name, size) != 0 || line[size] != '=')
        fail_at(source_name(from), 0,
                "not a raw filter: the line '%s=...' is missing", name);
    *end = '\0';
    *at = end + 1;
    return line + size + 1;
}

static uint64_t number_of(const struct byte_source *from, const char *name,
                          char **at) {
    const char *const text = value_of(from, name, at);
    const size_t digits = strspn(text, "0123456789");
    errno = 0;
    const uint64_t number = strtoull(text, NULL, 10);
    if (digits == 0 || text[digits] || errno != 0)
        fail_at(source_name(from), 0,
                "not a raw filter: %s must be a whole number, not '%s'", name,
                text);
    return number;
}

static const char *one_of(const struct byte_source *from, const char *name,
                          const char *const *choices, char **at) {
    const char *const text = value_of(from, name, at);
    for (; *choices; choices++)
        if (strcmp(*choices, text) == 0) return *choices;
    fail_at(source_name(from), 0,
            "not a raw filter that this calyx knows: it has %s=%s", name, text);
}

static void read_raw(struct byte_source *from, calyx_options *is) {
    char header[HEADER_BYTES + 1] = {0};
    read_bytes(from, header, HEADER_BYTES, "the header of a raw filter");
    if (strncmp(header, first_line, strlen(first_line)) != 0)
        fail_at(source_name(from), 0,
                "not a raw filter: the first line is not 'calyx raw 2'");
    char *at = header + strlen(first_line);
    is->kind = one_of(from, "kind", calyx_kinds(), &at);
    is->hash = one_of(from, "hash", calyx_hashes(), &at);
    is->seed = number_of(from, "seed", &at);
    const uint64_t probes = number_of(from, "probes", &at);
    is->bits = number_of(from, "bits", &at);
    if (probes == 0 || probes > UINT32_MAX || is->bits == 0)
        fail_at(source_name(from), 0,
                "not a raw filter: it has %" PRIu64 " probes and %" PRIu64
                " bits",
                probes, is->bits);
    is->probes = (uint32_t)probes;
    is->key = secret_key();
}

const struct foreign_form form_raw = {"raw", write_raw, read_raw};
