/*
 * The LevelDB policy in real databases: what was written is found, by threads
 * at once, after opening again, and when the filters in the files are damaged.
 */
#define _GNU_SOURCE 1 /* memmem */
#include "policy.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support_files.h"

enum { KEYS = 20000 };

static int remove_store(void **state) {
    (void)state;
    leveldb_options_t *options = leveldb_options_create();
    char *trouble = NULL;
    leveldb_destroy_db(options, folder, &trouble);
    leveldb_options_destroy(options);
    if (trouble) print_error("%s\n", trouble);
    leveldb_free(trouble);
    rmdir(folder);
    return trouble != NULL;
}

/* ---- A database of numbered keys ------------------------------------------
 */

struct store {
    leveldb_t *db;
    leveldb_options_t *options;
    leveldb_filterpolicy_t *policy;
    leveldb_readoptions_t *reading;
};

static struct store open_store(leveldb_filterpolicy_t *policy) {
    struct store store = {.options = leveldb_options_create(),
                          .policy = policy,
                          .reading = leveldb_readoptions_create()};
    assert_non_null(policy);
    leveldb_options_set_create_if_missing(store.options, 1);
    leveldb_options_set_filter_policy(store.options, store.policy);
    char *trouble = NULL;
    store.db = leveldb_open(store.options, folder, &trouble);
    if (trouble) fail_msg("%s", trouble);
    return store;
}

static void close_store(struct store *store) {
    leveldb_close(store->db);
    leveldb_readoptions_destroy(store->reading);
    leveldb_options_destroy(store->options);
    leveldb_filterpolicy_destroy(store->policy);
}

static void write_keys(struct store *store) {
    leveldb_writeoptions_t *writing = leveldb_writeoptions_create();
    leveldb_writebatch_t *batch = leveldb_writebatch_create();
    for (int i = 0; i < KEYS; i++) {
        char key[16], value[80];
        const int size = snprintf(key, sizeof key, "%08d", 2 * i);
        const int bytes = snprintf(value, sizeof value, "value %060d", i);
        leveldb_writebatch_put(batch, key, (size_t)size, value, (size_t)bytes);
    }
    char *trouble = NULL;
    leveldb_write(store->db, writing, batch, &trouble);
    if (trouble) fail_msg("%s", trouble);
    leveldb_writebatch_destroy(batch);
    leveldb_writeoptions_destroy(writing);
    leveldb_compact_range(store->db, NULL, 0, NULL, 0);
}

/* Even numbers are there, odd ones are not. */
static int count_stored(const struct store *store, int first) {
    int found = 0;
    for (int i = first; i < 2 * KEYS; i += 2) {
        char key[16], *trouble = NULL;
        const int key_size = snprintf(key, sizeof key, "%08d", i);
        size_t size;
        char *value = leveldb_get(store->db, store->reading, key,
                                  (size_t)key_size, &size, &trouble);
        if (trouble) print_error("%s\n", trouble);
        found += value && !trouble;
        leveldb_free(value);
        leveldb_free(trouble);
    }
    return found;
}

static void assert_complete(const struct store *store) {
    assert_int_equal(count_stored(store, 0), KEYS);
    assert_int_equal(count_stored(store, 1), 0);
}

/* ---- Filters in the files -------------------------------------------------
 */

static uint64_t take_number(const uint8_t **at) {
    uint64_t number = 0;
    for (int shift = 0; shift < 64; shift += 7) {
        const uint8_t byte = *(*at)++;
        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) break;
    }
    return number;
}

/* Turn over every seventh byte of a table's filters. They stand where the name
 * of the policy says: offset and size follow it. */
static int damage_filters(const char *table, const char *name) {
    FILE *file = fopen(table, "r+b");
    assert_non_null(file);
    static uint8_t bytes[8 << 20];
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size < sizeof bytes);
    const uint8_t *at = memmem(bytes, size, name, strlen(name));
    assert_non_null(at);
    at += strlen(name);
    const uint64_t start = take_number(&at), length = take_number(&at);
    assert_true(start + length <= size);
    int damaged = 0;
    /* the places of the filters, 4 bytes for each 2 KiB of keys, stay */
    for (uint64_t i = start; i < start + length * 8 / 10; i += 7, damaged++) {
        fseek(file, (long)i, SEEK_SET);
        fputc(bytes[i] ^ 0xff, file);
    }
    assert_int_equal(fclose(file), 0);
    return damaged;
}

static int damage_tables(const char *policy) {
    DIR *list = opendir(folder);
    assert_non_null(list);
    int damaged = 0;
    for (struct dirent *entry; (entry = readdir(list));) {
        char file[FOLDER_BYTES + 300];
        snprintf(file, sizeof file, "%s/%s", folder, entry->d_name);
        if (strstr(entry->d_name, ".ldb"))
            damaged += damage_filters(file, policy);
    }
    closedir(list);
    return damaged;
}

/* ---- Tests ----------------------------------------------------------------
 */

static void what_was_written_is_found(void **state) {
    (void)state;
    struct store store = open_store(calyx_leveldb_policy(10, NULL));
    write_keys(&store);
    assert_complete(&store);
    close_store(&store);
    store = open_store(calyx_leveldb_policy(
        20, NULL)); /* the files still have filters of 10 */
    assert_complete(&store);
    close_store(&store);
}

static void damaged_filters_lose_no_key(void **state) {
    (void)state;
    struct store store = open_store(calyx_leveldb_policy(10, NULL));
    write_keys(&store);
    close_store(&store);
    assert_true(damage_tables("filter.calyx.flat.3") > 1000);
    store = open_store(calyx_leveldb_policy(10, NULL));
    /* One filter in 4096 may pass for whole, with its block of keys. There are
     * some 400, and their bytes are always the same. */
    assert_complete(&store);
    close_store(&store);
}

/* So the damage is real: LevelDB's own filters believe what they read. */
static void damage_to_leveldbs_own_filters_loses_keys(void **state) {
    (void)state;
    struct store store = open_store(leveldb_filterpolicy_create_bloom(10));
    write_keys(&store);
    close_store(&store);
    assert_true(damage_tables("filter.leveldb.BuiltinBloomFilter2") > 1000);
    store = open_store(leveldb_filterpolicy_create_bloom(10));
    assert_true(count_stored(&store, 0) < KEYS);
    close_store(&store);
}

static void *count_all(void *context) {
    return (void *)(intptr_t)(count_stored(context, 0) -
                              count_stored(context, 1));
}

static void threads_find_everything(void **state) {
    (void)state;
    struct store store = open_store(calyx_leveldb_policy(10, NULL));
    write_keys(&store);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_all, &store),
                         0);
    for (int i = 0; i < 3; i++) {
        void *found;
        pthread_join(threads[i], &found);
        assert_int_equal((intptr_t)found, KEYS);
    }
    close_store(&store);
}

#define IN_STORE(test) \
    cmocka_unit_test_setup_teardown(test, make_folder, remove_store)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_STORE(what_was_written_is_found),
        IN_STORE(damaged_filters_lose_no_key),
        IN_STORE(damage_to_leveldbs_own_filters_loses_keys),
        IN_STORE(threads_find_everything),
    };
    return RUN_TESTS(tests);
}
