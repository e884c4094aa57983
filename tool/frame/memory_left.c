#include "frame/memory_left.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static void lower(uint64_t *left, uint64_t to) {
    if (to < *left) *left = to;
}

static uint64_t less(uint64_t all, uint64_t part) {
    return all > part ? all - part : 0;
}

/* ---- Files --------------------------------------------------------------- */

/* The file ROOT FOLDER /NAME; NULL if there is none. */
static FILE *open_below(const char *root, const char *folder,
                        const char *name) {
    char path[PATH_MAX];
    const int size = snprintf(path, sizeof path, "%s%s/%s", root, folder, name);
    return size > 0 && size < PATH_MAX ? fopen(path, "re") : NULL;
}

/* A whole number: neither "max" nor "-1" nor one of over 64 bits is one. */
static bool number_at(const char *text, uint64_t *number) {
    char *end;
    text += strspn(text, " \t");
    if (*text < '0' || *text > '9') return false;
    errno = 0;
    *number = strtoull(text, &end, 10);
    return errno == 0 && (!*end || strchr(" \t\n", *end));
}

/* The number after `name` and a space, at the start of a line; if the name is
 * "", the first number that starts a line. */
static bool number_in(const char *root, const char *folder, const char *file,
                      const char *name, uint64_t *number) {
    FILE *const in = open_below(root, folder, file);
    if (!in) return false;
    bool found = false;
    char line[256];
    const size_t size = strlen(name);
    while (!found && fgets(line, sizeof line, in))
        found = strncmp(line, name, size) == 0 &&
                (!size || line[size] == ' ') && number_at(line + size, number);
    fclose(in);
    return found;
}

/* ---- Control groups ------------------------------------------------------ */

/* The two versions of control groups, and their files. */
static const struct group_version {
    const char *type;       /* of the mount                                  */
    const char *controller; /* of a mount and of a line of /proc/self/cgroup */
    const char *limits[2], *used, *cache;
} versions[] = {
    {.type = "cgroup2",
     .controller = "",
     .limits = {"memory.max", "memory.high"},
     .used = "memory.current",
     .cache = "inactive_file"},
    {.type = "cgroup",
     .controller = "memory",
     .limits = {"memory.limit_in_bytes"},
     .used = "memory.usage_in_bytes",
     .cache = "total_inactive_file"},
};

static void lower_to_group(const char *root, const char *folder,
                           const struct group_version *version,
                           uint64_t *left) {
    uint64_t limit, used = 0, cache = 0;
    number_in(root, folder, version->used, "", &used);
    number_in(root, folder, "memory.stat", version->cache, &cache);
    for (int i = 0; i < 2 && version->limits[i]; i++)
        if (number_in(root, folder, version->limits[i], "", &limit))
            lower(left, less(limit, less(used, cache)));
}

/* Is the word in a list with commas? "" is in an empty one. */
static bool has_word(const char *list, const char *word) {
    const size_t size = strlen(word);
    for (const char *at = list;; at++) {
        const size_t next = strcspn(at, ",");
        if (next == size && strncmp(at, word, size) == 0) return true;
        at += next;
        if (!*at) return false;
    }
}

/* The path in the line ID:CONTROLLERS:PATH of /proc/self/cgroup, in memory of
 * the caller; NULL if there is none. */
static char *path_of_group(const char *root,
                           const struct group_version *version) {
    FILE *const in = open_below(root, "/proc/self", "cgroup");
    char *line = NULL, *path = NULL;
    size_t room = 0;
    while (in && !path && getline(&line, &room, in) > 0) {
        line[strcspn(line, "\n")] = '\0';
        char *const controllers = strchr(line, ':');
        char *const at = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!at) continue;
        *at = '\0';
        if (has_word(controllers + 1, version->controller))
            path = strdup(at + 1);
    }
    if (in) fclose(in);
    free(line);
    return path;
}

/* The path below the folder that is mounted. "" if it is not below, as in a
 * container that does not see the groups above. */
static const char *below_mount(const char *path, const char *mounted) {
    const size_t size = strcmp(mounted, "/") == 0 ? 0 : strlen(mounted);
    if (strncmp(path, mounted, size) != 0 || strstr(path, "/..")) return "";
    path += size;
    return *path == '/' && path[1] ? path : "";
}

/* The group of this path, and all groups above it up to the mount. */
static void lower_to_groups(const char *root, const char *mount,
                            const char *path,
                            const struct group_version *version,
                            uint64_t *left) {
    char folder[PATH_MAX];
    const size_t least = strlen(mount);
    const int size = snprintf(folder, sizeof folder, "%s%s", mount, path);
    if (size < 0 || size >= PATH_MAX) return;
    for (;;) {
        lower_to_group(root, folder, version, left);
        char *const slash = strrchr(folder, '/');
        if (!slash || (size_t)(slash - folder) < least) return;
        *slash = '\0';
    }
}

/* A line of /proc/self/mountinfo:
 * 35 31 0:32 MOUNTED MOUNT rw,relatime ... - TYPE SOURCE OPTIONS */
static void lower_to_mount(const char *root, char *line, const char *path,
                           const struct group_version *version,
                           uint64_t *left) {
    char *const end = strstr(line, " - ");
    char mounted[PATH_MAX], mount[PATH_MAX], type[16], options[1024];
    _Static_assert(PATH_MAX == 4096, "4095 bytes and the end fit");
    if (!end) return;
    *end = '\0';
    if (sscanf(line, "%*s %*s %*s %4095s %4095s", mounted, mount) != 2 ||
        sscanf(end + 3, "%15s %*s %1023s", type, options) != 2)
        return;
    if (strcmp(type, version->type) != 0 ||
        (*version->controller && !has_word(options, version->controller)))
        return;
    lower_to_groups(root, mount, below_mount(path, mounted), version, left);
}

static void lower_to_version(const char *root,
                             const struct group_version *version,
                             uint64_t *left) {
    char *const path = path_of_group(root, version), *line = NULL;
    FILE *const in = open_below(root, "/proc/self", "mountinfo");
    size_t room = 0;
    while (path && in && getline(&line, &room, in) > 0)
        lower_to_mount(root, line, path, version, left);
    if (in) fclose(in);
    free(line);
    free(path);
}

/* ---- The process --------------------------------------------------------- */

static void lower_to_limit(const struct rlimit *limit, uint64_t pages,
                           uint64_t *left) {
    const uint64_t used = pages * (uint64_t)sysconf(_SC_PAGESIZE);
    if (limit->rlim_cur != RLIM_INFINITY)
        lower(left, less(limit->rlim_cur, used));
}

static void lower_to_limits(const char *root, uint64_t *left) {
    uint64_t size = 0, data = 0;
    FILE *const in = open_below(root, "/proc/self", "statm");
    if (in &&
        fscanf(in, "%" SCNu64 " %*s %*s %*s %*s %" SCNu64, &size, &data) != 2)
        size = data = 0;
    if (in) fclose(in);
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0) lower_to_limit(&limit, size, left);
    if (getrlimit(RLIMIT_DATA, &limit) == 0) lower_to_limit(&limit, data, left);
}

uint64_t memory_left(const char *root) {
    uint64_t kib, left = UINT64_C(1) << 30;
    if (number_in(root, "/proc", "meminfo", "MemAvailable:", &kib) &&
        kib < UINT64_MAX / 1024)
        left = 1024 * kib;
    for (size_t i = 0; i < sizeof versions / sizeof *versions; i++)
        lower_to_version(root, &versions[i], &left);
    lower_to_limits(root, &left);
    return left;
}
