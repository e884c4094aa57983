/*
 * The first corpus of fuzz_decode: small filters of every kind and hash, with
 * and without what a filter may have. Run it again when the format changes.
 *
 *     seeds fuzz/corpus/decode
 */
#include "fuzz.h"

static const uint8_t secret[16] = "sixteen secrets";

static void write_file(const char *folder, const char *name, const void *bytes,
                       size_t size) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    DEMAND(file && fwrite(bytes, 1, size, file) == size && fclose(file) == 0);
}

static void keep(calyx_filter *f, const char *folder, const char *name) {
    const size_t size = (size_t)calyx_encoded_size(f);
    uint8_t *bytes = malloc(size);
    DEMAND(bytes && calyx_encode(f, bytes, size, NULL) == CALYX_OK);
    write_file(folder, name, bytes, size);
    free(bytes);
}

static calyx_filter *build(const calyx_options *want, uint64_t keys) {
    const calyx_builder_options options = {.filter = *want};
    calyx_builder *b;
    calyx_filter *f;
    DEMAND(calyx_builder_new(&options, &b, NULL) == CALYX_OK);
    for (uint64_t i = 0; i < keys; i++)
        DEMAND(calyx_builder_add_many_u64(b, &i, 1, NULL) == CALYX_OK);
    DEMAND(calyx_builder_finish(b, &f, NULL) == CALYX_OK);
    calyx_builder_free(b);
    return f;
}

static void make(calyx_options want, uint64_t keys, const char *comment,
                 const char *folder, const char *name) {
    calyx_filter *f;
    want.seeded = true;
    if (want.hash && strcmp(want.hash, "siphash") == 0) want.key = secret;
    if (want.kind && calyx_kind_can(want.kind) & CALYX_CAN_STATIC) {
        f = build(&want, keys);
    } else {
        DEMAND(calyx_new(&want, &f, NULL) == CALYX_OK);
        for (uint64_t i = 0; i < keys; i++) calyx_add_u64(f, i, NULL);
    }
    DEMAND(calyx_set_comment(f, comment) == CALYX_OK);
    if (strcmp(comment, "allows") == 0)
        DEMAND(calyx_allow(f, "The", 3, NULL, NULL) == CALYX_OK &&
               calyx_allow(f, "The calyx is the", 16, NULL, NULL) == CALYX_OK &&
               calyx_allow(f, "", 0, NULL, NULL) == CALYX_OK);
    if (*comment)
        DEMAND(calyx_set_property(f, "key-options", "-i", NULL) == CALYX_OK);
    keep(f, folder, name);
    calyx_free(f);
}

/* A file, whose sections are aligned to pages; and one that a process died
 * upon while it was changing it in place. */
static void make_files(const char *folder) {
    char path[4096];
    calyx_filter *f;
    make((calyx_options){.capacity = 10}, 5, "", folder, "file");
    snprintf(path, sizeof path, "%s/file", folder);
    DEMAND(calyx_load(path, NULL, &f, NULL) == CALYX_OK);
    DEMAND(calyx_save(f, path, NULL) == CALYX_OK);
    calyx_free(f);

    static uint8_t bytes[1 << 16];
    DEMAND(calyx_map(path, CALYX_WRITE, NULL, &f, NULL) == CALYX_OK);
    DEMAND(calyx_add_u64(f, 5, NULL) == CALYX_OK);
    FILE *file = fopen(path, "rb");
    DEMAND(file);
    const size_t size = fread(bytes, 1, sizeof bytes, file);
    fclose(file);
    write_file(folder, "file-unsealed", bytes, size);
    calyx_free(f);
}

int main(int count, char **words) {
    if (count != 2) return 2;
    const char *folder = words[1];
    for (const char *const *kind = calyx_kinds(); *kind; kind++)
        for (const char *const *hash = calyx_hashes(); *hash; hash++) {
            char name[64];
            snprintf(name, sizeof name, "%s-%s", *kind, *hash);
            make((calyx_options){.kind = *kind, .capacity = 30, .hash = *hash},
                 20, "", folder, name);
        }
    for (const char *const *kind = calyx_kinds(); *kind; kind++) {
        char name[64];
        if (calyx_kind_can(*kind) & CALYX_CAN_STATIC) {
            snprintf(name, sizeof name, "%s-layers", *kind);
            make((calyx_options){.kind = *kind}, 1000, "", folder, name);
            continue;
        }
        snprintf(name, sizeof name, "%s-grown", *kind);
        make((calyx_options){.kind = *kind, .capacity = 2, .growth = 1.25}, 12,
             "grown", folder, name);
        snprintf(name, sizeof name, "%s-strict", *kind);
        make((calyx_options){.kind = *kind, .capacity = 8, .strict = true}, 9,
             "strict", folder, name);
    }
    make((calyx_options){.kind = "flat", .bits = 1, .capacity = 1}, 0, "",
         folder, "flat-one-bit");
    make((calyx_options){.kind = "line", .bits = 4096, .seed = 7}, 0, "empty",
         folder, "line-empty");
    make((calyx_options){.capacity = 4}, 9, "allows", folder, "line-allows");
    make_files(folder);
    return 0;
}
