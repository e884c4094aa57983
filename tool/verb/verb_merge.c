/*
 * calyx merge: one filter for the keys of several.
 */
#include "files/filter_file.h"
#include "files/result.h"
#include "input/key_options.h"
#include "tool.h"

static bool intersect, folds;
static const char instead[] = "query both: calyx check -f A -f B";

static calyx_filter *open_one(const char *path) {
    calyx_filter *const f = filter_open_whole(path);
    filter_expect_changeable(f, path, "merged", instead);
    return f;
}

static bool seeds_differ(const calyx_filter *a, const calyx_filter *b) {
    calyx_info of_a, of_b;
    calyx_info_of(a, &of_a);
    calyx_info_of(b, &of_b);
    return of_a.seed != of_b.seed;
}

static void join(calyx_filter *f, const char *name, const calyx_filter *other,
                 const char *other_name) {
    calyx_error why;
    const calyx_status status =
        (intersect ? calyx_intersect : calyx_merge)(f, other, &why);
    if (status == CALYX_FULL)
        fail("%s and %s: the keys of both have no room in a filter of this "
             "size; build them with --growth, or with a larger --keys",
             name, other_name);
    if (status != CALYX_OK)
        fail("%s and %s: %s%s", name, other_name, why.text,
             folds || status == CALYX_CANNOT || seeds_differ(f, other)
                 ? ""
                 : "; or --fold them to one size");
}

static calyx_filter *merge(int count, char **operands) {
    calyx_filter *const f = filter_load(operands[0], false);
    filter_expect_changeable(f, operands[0], "merged", instead);
    for (int i = 1; i < count; i++) {
        calyx_filter *const other = open_one(operands[i]);
        key_options_compare(operands[0], f, operands[i], other);
        join(f, operands[0], other, operands[i]);
        calyx_free(other);
    }
    return f;
}

/* ---- Filters of different sizes ----------------------------------------- */

static int smallest(int count, char **operands) {
    int least = 0;
    uint64_t least_bits = UINT64_MAX;
    for (int i = 0; i < count; i++) {
        calyx_filter *const f = open_one(operands[i]);
        calyx_info info;
        calyx_info_of(f, &info);
        if (info.bits < least_bits) {
            least_bits = info.bits;
            least = i;
        }
        calyx_free(f);
    }
    return least;
}

/* The smallest has lost what a larger one would need. */
static calyx_filter *merge_folded(int count, char **operands) {
    const int least = smallest(count, operands);
    const char *const like_name = operands[least];
    calyx_filter *const like = open_one(like_name), *merged = NULL;
    for (int i = 0; i < count; i++) {
        calyx_filter *const f = open_one(operands[i]), *folded;
        calyx_error why;
        if (calyx_fold_like(f, like, &folded, &why) != CALYX_OK)
            fail("%s and %s: %s; %s", like_name,
                 operands[i == least ? (i + 1) % count : i], why.text, instead);
        calyx_free(f);
        if (!merged) {
            merged = folded;
            continue;
        }
        key_options_compare(operands[0], merged, operands[i], folded);
        join(merged, operands[0], folded, operands[i]);
        calyx_free(folded);
    }
    calyx_free(like);
    return merged;
}

static int run(int count, char **operands) {
    const char *const path = result_path(); /* fails before the work */
    calyx_filter *const f =
        folds ? merge_folded(count, operands) : merge(count, operands);
    if (folds) {
        calyx_info info;
        calyx_describe(f, &info);
        warn_if_overfull(path ? path : "the result", &info);
    }
    result_save(f);
    calyx_free(f);
    return EXIT_YES;
}

static const struct group options = {
    "Options",
    {
        {0, "intersect", NULL,
         "Keep the keys that all filters have, instead of those that any has. "
         "The result may also have keys that pass in each filter for another "
         "reason: its rate is at most the lowest of theirs, but higher than "
         "the rate of a filter built from the common keys.",
         parse_flag, &intersect},
        {0, "fold", NULL,
         "The filters may have different sizes: fold all to the size of the "
         "smallest. No key is lost, but the rate rises with the number of "
         "keys; a warning says how far.",
         parse_flag, &folds},
    },
};

const struct verb verb_merge = {
    .name = "merge",
    .summary = "merge several filters into one with the keys of all",
    .synopsis = "[-o OUT] [--force] [--intersect] [--fold] A B...",
    .prose =
        {"The filters must have the same kind, size, probes, hash and seed or "
         "key: make them with the same 'calyx build' options, -n among them. "
         "The result equals the filter that one build of all their keys would "
         "make. It is as large as each of them, so it may hold more keys than "
         "it was made for: 'calyx info' shows that. Filters of kind ribbon and "
         "bucket cannot be merged.",
         "Filters of kind distinct only need to have begun alike: they may "
         "have grown to different sizes, and the result is as large as its "
         "keys need. Of a fixed size, it must have room for them. Filters of "
         "other kinds that have grown cannot be merged; query all of them: "
         "calyx check -f A -f B.",
         "With --fold the sizes may differ, as the sizes of filters that were "
         "built without -n; kind, probes, hash and seed or key must still "
         "agree, and no filter may have grown. The result is as small as the "
         "smallest filter. For many keys, or a low rate, query all of them "
         "instead: calyx check -f A -f B.",
         "The comment and the options for keys are taken from the first "
         "filter. "
         "A warning says if others were built with other options for keys."},
    .groups = {&options, &result_group, &secret_group},
    .examples = {{"calyx merge -o week.calyx mon.calyx tue.calyx wed.calyx",
                  "one filter for three days"},
                 {"calyx merge --fold -o all.calyx large.calyx small.calyx",
                  "filters that were made for different numbers of keys"}},
    .least = 2,
    .most = -1,
    .run = run,
};
