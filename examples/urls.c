/*
 * A crawler checks every link that it finds: have I been there? This program
 * adds a million URLs to a filter, looks them up, and looks up a million absent
 * ones. It prints how large the filter is, how often it was wrong, and how long
 * a key took.
 */
#include <calyx/calyx.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { URLS = 1000000, LONGEST = 80 };

static calyx_key known[URLS], absent[URLS];
static char text[2 * URLS * LONGEST]; /* what the keys point into */

static const char *const hosts[] = {"www", "shop", "wiki", "old.archive"};
static const char *const paths[] = {"", "tag/", "roses/red/", "seeds?page=",
                                    "how-to/prune/climbing-roses-in-winter/"};

/* No two URLs are the same, since each ends with its number. */
static char *write_urls(calyx_key *keys, uint32_t first, char *to) {
    for (uint32_t i = 0; i < URLS; i++) {
        const uint32_t number = first + i, luck = number * 2654435761u >> 16;
        const int size = snprintf(to, LONGEST, "https://%s.example/%s%u",
                                  hosts[luck % 4], paths[luck % 5], number);
        keys[i] = (calyx_key){to, (size_t)size};
        to += size;
    }
    return to;
}

static void fail(const char *reason) {
    fprintf(stderr, "urls: %s\n", reason);
    exit(1);
}

static void check(calyx_status status) {
    if (status != CALYX_OK) fail(calyx_status_text(status));
}

static calyx_filter *make_filter(void) {
    const calyx_options want = {.capacity = URLS, .fpr = 0.01};
    calyx_filter *f = NULL;
    calyx_error why;
    if (calyx_new(&want, &f, &why) != CALYX_OK) fail(why.text);
    return f;
}

static double nanoseconds(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

static void print_speed(const char *what, double start, double middle) {
    printf("  %-15s %10.1f %13.1f\n", what, (middle - start) / (double)URLS,
           (nanoseconds() - middle) / (double)URLS);
}

/* Fill one filter key by key, and its twin with one call. */
static void add(calyx_filter *f, calyx_filter *twin) {
    const double start = nanoseconds();
    for (size_t i = 0; i < URLS; i++)
        check(calyx_add(f, known[i].data, known[i].size, NULL));
    const double middle = nanoseconds();
    check(calyx_add_many(twin, known, URLS, NULL, NULL));
    print_speed("add", start, middle);
}

/* How many of these are found? */
static size_t look_up(const char *what, const calyx_filter *f,
                      const calyx_key *keys) {
    size_t found = 0;
    const double start = nanoseconds();
    for (size_t i = 0; i < URLS; i++)
        found += calyx_has(f, keys[i].data, keys[i].size);
    const double middle = nanoseconds();
    if (calyx_has_many(f, keys, URLS, NULL) != found)
        fail("single and batched answers differ");
    print_speed(what, start, middle);
    return found;
}

static void print_rate(const char *what, size_t found, double expected) {
    printf("  %-15s %10zu %11.3f %% %11.3f %%\n", what, found,
           100 * (double)found / (double)URLS, 100 * expected);
}

int main(void) {
    char *const end = write_urls(known, 1, text);
    const double text_bytes = (double)(end - text);
    write_urls(absent, 1 + URLS, end);
    calyx_filter *f = make_filter(), *twin = make_filter();
    calyx_info info;
    calyx_describe(f, &info);
    printf("%d URLs in a %s filter: %u probes, hash %s, kernel %s\n\n", URLS,
           info.kind, info.probes, info.hash, info.kernel);

    printf("  ns a key            single       batched\n");
    add(f, twin);
    const size_t found = look_up("known URLs", f, known);
    const size_t passed = look_up("absent URLs", f, absent);

    calyx_describe(f, &info);
    printf("\n  of %-12d      found          rate      expected\n", URLS);
    print_rate("known URLs", found, 1);
    print_rate("absent URLs", passed, info.fpr_now);

    printf("\n                       bytes    bits a key\n"
           "  the URLs        %10.0f %13.2f\n"
           "  the filter      %10.0f %13.2f\n",
           text_bytes, 8 * text_bytes / (double)URLS, (double)info.bytes,
           8 * (double)info.bytes / (double)URLS);
    printf("\n  promised: %g %% of absent URLs; false negatives: %zu\n",
           100 * info.fpr, URLS - found);
    calyx_free(f);
    calyx_free(twin);

    /* Chance strays 6 standard deviations once in 500 million times. */
    const double mean = (double)URLS * info.fpr_now;
    const double deviation = sqrt(mean * (1 - info.fpr_now));
    if (found != URLS) fail("a URL was forgotten");
    if (fabs((double)passed - mean) > 6 * deviation)
        fail("the rate is out of its odds");
    return 0;
}
