/*
 * A program that was compiled with the headers of an earlier version, to run
 * with the library of today: see abi. It uses nothing that 0.1.0 did not have.
 * Bytes after each struct that the library fills must stay as they are.
 */
#include <calyx/inline.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(it) \
    if (!(it)) return fprintf(stderr, "%s: not true: %s\n", __func__, #it), 1

enum { FENCE = 0x5A };
#define FENCED(type)                 \
    struct {                         \
        type s;                      \
        unsigned char fence[1 << 8]; \
    }
#define RAISE(fenced) memset(&(fenced), FENCE, sizeof(fenced))

static bool stands(const unsigned char fence[1 << 8]) {
    for (int i = 0; i < 1 << 8; i++)
        if (fence[i] != FENCE) return false;
    return true;
}

static int options_mean_what_they_meant(void) {
    const calyx_options want = {.kind = "flat",
                                .capacity = 1000,
                                .fpr = 0.001,
                                .growth = 2,
                                .first_fpr = 0.0001,
                                .concurrent = true,
                                .hash = "xxh64",
                                .seed = 7,
                                .kernel = "scalar"};
    calyx_filter *f;
    FENCED(calyx_info) is;
    FENCED(calyx_part) first;
    RAISE(is), RAISE(first);
    CHECK(calyx_new(&want, &f, NULL) == CALYX_OK);
    calyx_describe(f, &is.s);
    CHECK(stands(is.fence));
    CHECK(strcmp(is.s.kind, "flat") == 0 && strcmp(is.s.hash, "xxh64") == 0);
    CHECK(strcmp(is.s.kernel, "scalar") == 0);
    CHECK(is.s.capacity == 1000 && is.s.seed == 7 && is.s.growth == 2);
    CHECK(is.s.concurrent && !is.s.strict && is.s.fpr == 0.001);
    CHECK(is.s.can & CALYX_CAN_ADD && !(is.s.can & CALYX_CAN_REMOVE));
    CHECK(calyx_part_of(f, 0, &first.s) && stands(first.fence));
    CHECK(first.s.fpr <= 0.0001 && first.s.bytes == is.s.bytes);
    calyx_free(f);
    return 0;
}

static int results_fit_their_structs(void) {
    const calyx_options want = {.capacity = 1000};
    const calyx_workload load = {
        .filter_time = 1, .store_time = 100, .present = 0.5, .key_bytes = 8};
    FENCED(calyx_overlap) overlap;
    FENCED(calyx_costs) costs;
    FENCED(calyx_error) why;
    RAISE(overlap), RAISE(costs), RAISE(why);
    calyx_filter *f;
    CHECK(calyx_new(&want, &f, NULL) == CALYX_OK);
    CHECK(calyx_add(f, "rose", 4, NULL) == CALYX_OK);
    CHECK(calyx_compare(f, f, &overlap.s, NULL) == CALYX_OK);
    CHECK(stands(overlap.fence) && overlap.s.jaccard == 1);
    CHECK(calyx_weigh(&want, &load, &costs.s, NULL) == CALYX_OK);
    CHECK(stands(costs.fence));
    CHECK(costs.s.nothing.time == 100 && costs.s.table.time == 51);
    calyx_free(f);
    CHECK(calyx_new(&(calyx_options){.fpr = 2}, &f, &why.s) ==
          CALYX_BAD_ARGUMENT);
    CHECK(stands(why.fence) && why.s.status == CALYX_BAD_ARGUMENT);
    return 0;
}

static int bytes_are_opened_as_they_were(void) {
    calyx_filter *f, *g;
    CHECK(calyx_new(&(calyx_options){.capacity = 100}, &f, NULL) == CALYX_OK);
    CHECK(calyx_add(f, "rose", 4, NULL) == CALYX_OK);
    const size_t size = (size_t)calyx_encoded_size(f);
    void *const bytes = malloc(size);
    CHECK(bytes && calyx_encode(f, bytes, size, NULL) == CALYX_OK);
    calyx_open_options how = {.kernel = "scalar", .concurrent = true};
    CHECK(calyx_decode(bytes, size, &how, &g, NULL) == CALYX_OK);
    FENCED(calyx_info) is;
    RAISE(is);
    calyx_describe(g, &is.s);
    CHECK(stands(is.fence) && is.s.concurrent && is.s.items == 1);
    CHECK(strcmp(is.s.kernel, "scalar") == 0);
    CHECK(calyx_has(g, "rose", 4) && !calyx_has(g, "tulip", 5));
    how.most_bytes = size - 1;
    calyx_free(g);
    CHECK(calyx_decode(bytes, size, &how, &g, NULL) == CALYX_BAD_ARGUMENT);
    free(bytes);
    calyx_free(f);
    return 0;
}

/* The view has a number for its layout, so inline.h may call the library
 * instead. */
static int an_inline_view_answers_as_calls_do(void) {
    calyx_filter *f;
    FENCED(calyx_inline_view) view;
    RAISE(view);
    CHECK(calyx_new(&(calyx_options){.capacity = 2000}, &f, NULL) == CALYX_OK);
    calyx_inline_view_of(f, &view.s);
    CHECK(stands(view.fence));
    for (uint64_t i = 0; i < 1000; i++)
        CHECK(calyx_inline_add_u64(&view.s, 2 * i, NULL) == CALYX_OK);
    for (uint64_t i = 0; i < 2000; i++) {
        CHECK(calyx_inline_has_u64(&view.s, i) == calyx_has_u64(f, i));
        CHECK(i % 2 || calyx_has_u64(f, i));
    }
    calyx_free(f);
    return 0;
}

int main(void) {
    return options_mean_what_they_meant() | results_fit_their_structs() |
           bytes_are_opened_as_they_were() |
           an_inline_view_answers_as_calls_do();
}
