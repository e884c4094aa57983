#include "files/hash_writer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "input/part_lines.h"
#include "wire/bytes.h"
#include "wire/hash_file.h"

struct hash_output {
    struct output *file;
    uint8_t *chunk;
    size_t count; /* hashes in the chunk */
    uint64_t chunks, total;
};

struct hash_writer {
    const char *folder;
    uint32_t parts;
    size_t most;      /* hashes of a chunk */
    uint64_t *starts; /* lowest hash of each part */
    uint64_t margin, bytes;
    struct hash_output *outputs;
    char **names;
};

/* All chunks together take at most 64 MiB. */
static size_t chunk_hashes(uint32_t parts) {
    const size_t share = ((size_t)8 << 20) / parts;
    return share < HASH_CHUNK_MOST ? share : HASH_CHUNK_MOST;
}

static void put(struct hash_writer *w, struct hash_output *o,
                const uint8_t *bytes, size_t size) {
    output_write(o->file, bytes, size);
    w->bytes += size;
}

static void put_head(struct hash_writer *w, uint32_t part, bool by_shard,
                     const calyx_filter *hasher) {
    uint8_t bytes[HASH_HEAD_MOST];
    calyx_info info;
    const char *const text = key_options_of(hasher);
    calyx_info_of(hasher, &info);
    struct hash_head head = {
        .part = part,
        .parts = w->parts,
        .seed = info.seed,
        .check = calyx_hash(hasher, HASH_CHECK_TEXT, strlen(HASH_CHECK_TEXT)),
        .text_bytes = (uint32_t)strlen(text),
        .by_shard = by_shard};
    strncpy(head.hash, info.hash, sizeof head.hash - 1);
    put(w, &w->outputs[part - 1], bytes, hash_put_head(bytes, &head, text));
}

static char *file_name(const char *folder, uint32_t part, uint32_t parts) {
    char *const name = alloc_memory(strlen(folder) + 64);
    sprintf(name, "%s/%u-of-%u.hashes", folder, part, parts);
    return name;
}

/* One that is made does not stay if nothing comes into it. */
static void make_folder(const char *folder) {
    struct stat is;
    if (mkdir(folder, 0777) == 0) {
        remember_file(folder);
        return;
    }
    if (errno != EEXIST) fail_os(folder, "make this folder");
    if (stat(folder, &is) != 0 || !S_ISDIR(is.st_mode))
        fail_at(folder, 0, "not a folder, but the files of hashes go to one");
}

struct hash_writer *hash_writer_open(const char *folder, uint32_t parts,
                                     bool by_shard, const calyx_filter *hasher,
                                     bool replace) {
    struct hash_writer *const w = alloc_memory(sizeof *w);
    *w = (struct hash_writer){.folder = folder,
                              .parts = parts,
                              .most = chunk_hashes(parts),
                              .margin = hash_part_margin(parts)};
    w->starts = alloc_memory(parts * sizeof *w->starts);
    w->outputs = alloc_memory(parts * sizeof *w->outputs);
    w->names = alloc_memory(parts * sizeof *w->names);
    make_folder(folder);
    allow_open_files(parts);
    for (uint32_t i = 0; i < parts; i++) {
        w->names[i] = file_name(folder, i + 1, parts);
        expect_output(w->names[i], replace);
    }
    for (uint32_t i = 0; i < parts; i++) {
        w->starts[i] = hash_part_start(i + 1, parts);
        w->outputs[i] = (struct hash_output){
            .file = output_open(w->names[i], replace),
            .chunk = alloc_memory(HASH_CHUNK_START + 8 * w->most + 8)};
        put_head(w, i + 1, by_shard, hasher);
    }
    return w;
}

static void end_chunk(struct hash_writer *w, struct hash_output *o) {
    if (o->count == 0) return;
    put(w, o, o->chunk, hash_put_chunk(o->chunk, o->chunks++, o->count));
    o->total += o->count;
    o->count = 0;
}

static void append(struct hash_writer *w, uint32_t part, uint64_t hash) {
    struct hash_output *const o = &w->outputs[part];
    store_u64(o->chunk + HASH_CHUNK_START + 8 * o->count++, hash);
    if (o->count == w->most) end_chunk(w, o);
}

void hash_writer_add(struct hash_writer *w, const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const uint32_t part = part_of_hash(hashes[i], w->parts);
        append(w, part, hashes[i]);
        if (part && hashes[i] - w->starts[part] < w->margin)
            append(w, part - 1, hashes[i]);
    }
}

void hash_writer_put(struct hash_writer *w, uint32_t part,
                     const uint64_t *hashes, size_t n) {
    for (size_t i = 0; i < n; i++) append(w, part, hashes[i]);
}

uint64_t hash_writer_close(struct hash_writer *w) {
    for (uint32_t i = 0; i < w->parts; i++) {
        struct hash_output *const o = &w->outputs[i];
        uint8_t end[HASH_END_BYTES];
        end_chunk(w, o);
        put(w, o, end, hash_put_end(end, o->chunks, o->total));
    }
    begin_change(); /* a signal waits until all have their names */
    for (uint32_t i = 0; i < w->parts; i++) {
        output_close(w->outputs[i].file);
        free(w->outputs[i].chunk);
        free(w->names[i]);
    }
    forget_file(w->folder);
    end_change();
    const uint64_t bytes = w->bytes;
    free(w->starts);
    free(w->outputs);
    free(w->names);
    free(w);
    return bytes;
}
