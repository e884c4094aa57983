#include "server/shards.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "server/chunks.h"

void parse_shards(const struct verb_option *o, const char *value) {
    uint64_t *const shards = o->into;
    if (!count_from(value, shards) || *shards == 0 || *shards > MOST_SHARDS)
        fail("--%s: expected a number from 1 to %d, found '%s'", o->name,
             MOST_SHARDS, value);
}

uint32_t shard_of(const calyx_key *key, uint64_t shards) {
    return (uint32_t)(dump_sum(key->data, key->size) % shards);
}

/* ---- Lines --------------------------------------------------------------- */

/* The lines of a block as they come, before they are sorted. */
struct lines {
    uint64_t *hashes;
    uint16_t *shards;
    size_t count, room;
};

static void more_lines(struct lines *lines, size_t count) {
    const size_t wanted = lines->count + count;
    size_t same = lines->room;
    lines->hashes =
        with_room(lines->hashes, &same, wanted, sizeof *lines->hashes);
    lines->shards =
        with_room(lines->shards, &lines->room, wanted, sizeof *lines->shards);
}

/* Counting sort: count the keys of each shard, compute where each begins, move
 * them. */
static void sort_by_shard(const struct lines *lines, struct text_block *block,
                          uint64_t shards) {
    size_t *const ends = room_for_ends(block, shards);
    size_t next[MOST_SHARDS] = {0}, at = 0;
    for (size_t i = 0; i < lines->count; i++) next[lines->shards[i]]++;
    for (uint64_t shard = 0; shard < shards; shard++) {
        const size_t count = next[shard];
        next[shard] = at;
        ends[shard] = at += count;
    }
    uint64_t *const hashes = room_for_hashes(block, lines->count);
    for (size_t i = 0; i < lines->count; i++)
        hashes[next[lines->shards[i]]++] = lines->hashes[i];
}

void hash_for_shards(struct text_block *block, struct key_batch *batch,
                     const calyx_filter *f, uint64_t shards) {
    struct lines lines = {0};
    batch_start(batch, block);
    while (batch_next(batch, block)) {
        more_lines(&lines, batch->count);
        calyx_hash_many(f, batch->keys, batch->count,
                        lines.hashes + lines.count);
        for (size_t i = 0; i < batch->count; i++)
            lines.shards[lines.count + i] =
                (uint16_t)shard_of(&batch->keys[i], shards);
        lines.count += batch->count;
    }
    block->lines = lines.count;
    sort_by_shard(&lines, block, shards);
    free(lines.hashes);
    free(lines.shards);
}

/* ---- Files --------------------------------------------------------------- */

/* Where the ending of a name begins: ".calyx", or ".calyx.zst". */
static size_t ending_at(const char *path) {
    const char *const slash = strrchr(path, '/');
    const char *const name = slash ? slash + 1 : path;
    const char *const dot = strchr(*name ? name + 1 : name, '.');
    return dot ? (size_t)(dot - path) : strlen(path);
}

char *shard_file(const char *stem, uint64_t number, uint64_t shards) {
    const size_t at = ending_at(stem);
    char *const file = alloc_memory(strlen(stem) + 64);
    sprintf(file, "%.*s.%" PRIu64 "-of-%" PRIu64 "%s", (int)at, stem, number,
            shards, stem + at);
    return file;
}

void look_for_shards(const char *stem, uint64_t shards) {
    for (uint64_t i = 0; i < shards; i++) {
        char *const file = shard_file(stem, i, shards);
        if (access(file, R_OK) != 0)
            fail("%s: there is no such file: 'calyx build --shards %" PRIu64
                 " -o %s' makes the shards; a filter that was made as one "
                 "cannot be split",
                 file, shards, stem);
        free(file);
    }
}

/* ---- Keys ---------------------------------------------------------------- */

struct name shard_name(const struct url *address, uint64_t number,
                       uint64_t shards) {
    struct name name = {alloc_memory(address->key_size + 32),
                        address->key_size};
    memcpy(name.text, address->key, address->key_size);
    char *const end = name.text + name.size;
    *end = '\0';
    if (shards) name.size += (size_t)sprintf(end, ":{%" PRIu64 "}", number);
    return name;
}

static struct reply *ask_count(struct cluster *server,
                               const struct url *address, const char *command,
                               const char *value) {
    struct call call = {0};
    char *const key = alloc_memory(address->key_size + 8);
    memcpy(key, address->key, address->key_size);
    memcpy(key + address->key_size, ":shards", 8);
    call_start(&call, command);
    call_add(&call, key, address->key_size + 7);
    if (value) call_text(&call, value);
    struct reply *const reply = cluster_query(server, &call, false);
    const char *const error = reply_error(reply);
    if (error && strncmp(error, "WRONGTYPE", 9) == 0)
        fail("%s: the key %s holds something else than a number of shards",
             address->shown, key);
    if (error) fail_reply(address, &call, error);
    call_free(&call);
    free(key);
    return reply;
}

uint64_t shards_there(struct cluster *server, const struct url *address) {
    struct reply *const reply = ask_count(server, address, "GET", NULL);
    const char *const text = reply_text(reply, NULL);
    uint64_t shards = 0;
    if (text &&
        (!count_from(text, &shards) || shards == 0 || shards > MOST_SHARDS))
        fail("%s: its key :shards says '%s', which is no number from 1 to %d",
             address->shown, text, MOST_SHARDS);
    reply_free(reply);
    return shards;
}

void shards_note(struct cluster *server, const struct url *address,
                 uint64_t shards) {
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, shards);
    reply_free(ask_count(server, address, "SET", text));
}
