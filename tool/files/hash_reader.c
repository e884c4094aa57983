#include "files/hash_reader.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "wire/bytes.h"

struct hash_reader {
    struct byte_source *source;
    struct hash_head head;
    char text[HASH_TEXT_MOST + 1];
    uint64_t chunks, total;
    uint8_t chunk[HASH_CHUNK_BYTES];
    uint64_t hashes[HASH_CHUNK_MOST];
};

bool are_hash_files(int count, char **files) {
    int hashes = 0;
    for (int i = 0; i < count; i++) hashes += file_is(files[i], HASHES);
    if (hashes && hashes < count)
        fail("%d of the %d files are files of hashes; give either these or "
             "lists of lines",
             hashes, count);
    return hashes > 0;
}

static _Noreturn void fail_in(const struct hash_reader *r, const char *what) {
    fail_at(source_name(r->source), 0, "%s", what);
}

/* All these bytes; false if the file ends before the first of them. */
static bool read_or_end(struct hash_reader *r, uint8_t *to, size_t size) {
    const size_t there = source_fill(r->source, to, size);
    if (there && there < size) fail_in(r, "damaged: it ends in its middle");
    return there;
}

static void read_all(struct hash_reader *r, uint8_t *to, size_t size) {
    if (!read_or_end(r, to, size)) fail_in(r, "damaged: it ends in its middle");
}

struct hash_reader *hash_reader_open(const char *path) {
    struct hash_reader *const r = alloc_memory(sizeof *r);
    uint8_t bytes[HASH_HEAD_MOST];
    *r = (struct hash_reader){.source = source_open(path)};
    if (!source_is(r->source, HASHES))
        fail_in(r, "not a file of hashes; 'calyx hash' makes them");
    read_all(r, bytes, HASH_START_BYTES);
    const char *wrong = hash_check_start(bytes, &r->head);
    if (wrong) fail_in(r, wrong);
    read_all(r, bytes + HASH_START_BYTES, r->head.text_bytes + 8);
    wrong = hash_check_head(bytes, &r->head);
    if (wrong) fail_in(r, wrong);
    memcpy(r->text, bytes + HASH_START_BYTES, r->head.text_bytes);
    return r;
}

const struct hash_head *hash_reader_head(const struct hash_reader *r) {
    return &r->head;
}

const char *hash_reader_text(const struct hash_reader *r) {
    return r->text;
}

static size_t end_of_hashes(struct hash_reader *r) {
    if (hash_end_total(r->chunk) != r->total)
        fail_in(r, "damaged: it has another number of hashes than it says");
    if (read_or_end(r, r->chunk, 1))
        fail_in(r, "damaged: there are bytes after its end");
    return 0;
}

size_t hash_reader_next(struct hash_reader *r, const uint64_t **hashes) {
    size_t n;
    read_all(r, r->chunk, HASH_CHUNK_START);
    const size_t rest = hash_chunk_rest(r->chunk, &n);
    if (!rest) fail_in(r, "damaged: a chunk claims too many hashes");
    read_all(r, r->chunk + HASH_CHUNK_START, rest);
    if (!hash_check_chunk(r->chunk, HASH_CHUNK_START + rest, r->chunks++))
        fail_in(r, "damaged: its hashes do not match their checksum");
    if (n == 0) return end_of_hashes(r);
    for (size_t i = 0; i < n; i++)
        r->hashes[i] = load_u64(r->chunk + HASH_CHUNK_START + 8 * i);
    r->total += n;
    *hashes = r->hashes;
    return n;
}

void hash_reader_close(struct hash_reader *r) {
    source_close(r->source);
    free(r);
}

void hash_reader_expect(const struct hash_reader *r,
                        const calyx_filter *hasher) {
    calyx_info info;
    calyx_info_of(hasher, &info);
    if (strcmp(r->head.hash, info.hash) != 0)
        fail_at(source_name(r->source), 0,
                "its hashes are of %s, and the filter is to have %s: give "
                "--hash %s, or hash the keys again",
                r->head.hash, info.hash, r->head.hash);
    if (r->head.seed != info.seed)
        fail_at(source_name(r->source), 0,
                "its hashes have the seed %" PRIu64
                ", and the filter is to have %" PRIu64
                ": give the same --seed, or hash the keys again",
                r->head.seed, info.seed);
    if (r->head.check !=
        calyx_hash(hasher, HASH_CHECK_TEXT, strlen(HASH_CHECK_TEXT)))
        fail_at(source_name(r->source), 0,
                "its hashes were made with another secret key");
}
