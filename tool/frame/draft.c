#include "frame/draft.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the name of the folder, slash included; 0 if there is none. */
static int folder_size(const char *path) {
    const char *const slash = strrchr(path, '/');
    return slash ? (int)(slash - path) + 1 : 0;
}

char *folder_of(const char *path) {
    const int size = folder_size(path);
    char *const folder = copy_text(size ? path : ".");
    if (size) folder[size] = '\0';
    return folder;
}

/* ---- What killed runs left ----------------------------------------------- */

/* "ID.new" or "ID.NUMBER.new", where no process has this ID. */
static bool is_leftover(const char *name) {
    long id;
    int end = 0, try_end = 0;
    if (sscanf(name, "%ld%n.%*u%n", &id, &end, &try_end) != 1) return false;
    if (strcmp(name + (try_end ? try_end : end), ".new") != 0) return false;
    return id > 0 && id <= INT_MAX && kill((pid_t)id, 0) != 0 && errno == ESRCH;
}

/* Say so if a run that was killed left its half of this file. */
static void look_for_leftovers(const char *path) {
    const int folder = folder_size(path);
    char *const name = folder_of(path);
    DIR *const dir = opendir(name);
    free(name);
    char prefix[PATH_MAX];
    const int size = snprintf(prefix, sizeof prefix, ".%.200s.", path + folder);
    for (const struct dirent *e; dir && (e = readdir(dir));)
        if (strncmp(e->d_name, prefix, (size_t)size) == 0 &&
            is_leftover(e->d_name + size))
            warn("%.*s%s is what a killed run left of %s; it can be removed",
                 folder, path, e->d_name, path);
    if (dir) closedir(dir);
}

/* ---- Access -------------------------------------------------------------- */

/* The group's permissions mean another group now: it gets no more than it had
 * as one of the others. */
static mode_t without_group(mode_t mode) {
    return (mode & ~(mode_t)(S_ISUID | S_ISGID | 070)) |
           (mode & 070 & (mode & 07) << 3);
}

void copy_access(int fd, const struct stat *of, bool owner, const char *name) {
    mode_t mode = of->st_mode & 07777;
    if (!owner || fchown(fd, of->st_uid, of->st_gid) != 0) {
        mode &= ~(mode_t)S_ISUID;
        if (fchown(fd, (uid_t)-1, of->st_gid) != 0) mode = without_group(mode);
    }
    if (fchmod(fd, mode) != 0) fail_os(name, "give it the old permissions");
}

/* ---- The draft ----------------------------------------------------------- */

/* Try random names until `take` finds one that is free. */
static bool take_name(struct draft_file *d, int (*take)(struct draft_file *d)) {
    enum { MOST_TRIES = 1000 };
    const int folder = folder_size(d->path);
    const size_t room = strlen(d->path) + 64;
    d->temporary = alloc_memory(room);
    for (int i = 0; i < MOST_TRIES; i++) {
        snprintf(d->temporary, room, "%.*s.%.200s.%ld.%d.new", folder, d->path,
                 d->path + folder, (long)getpid(), i);
        if (take(d) >= 0) {
            remember_file(d->temporary);
            return true;
        }
        if (errno != EEXIST) break;
    }
    free(d->temporary);
    d->temporary = NULL;
    return false;
}

/* Until a replacement has its owner and group, nobody else may open it. The
 * system applies the umask. */
static mode_t first_mode(const struct draft_file *d) {
    return d->replaces ? 0600 : 0666;
}

static int open_named(struct draft_file *d) {
    return d->fd = open(d->temporary,
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                        first_mode(d));
}

static void link_of(const struct draft_file *d, char link[static 64]) {
    snprintf(link, 64, "/proc/self/fd/%d", d->fd);
}

static bool open_nameless(struct draft_file *d) {
    char *const folder = folder_of(d->path);
    char link[64];
    d->fd = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, first_mode(d));
    free(folder);
    if (d->fd < 0) return false;
    link_of(d, link);
    if (access(link, F_OK) == 0) return true;
    close(d->fd); /* no /proc, and so no way to name it */
    return false;
}

static int link_to(const struct draft_file *d, const char *path) {
    char link[64];
    link_of(d, link);
    return linkat(AT_FDCWD, link, AT_FDCWD, path, AT_SYMLINK_FOLLOW);
}

static int link_temporary(struct draft_file *d) {
    return link_to(d, d->temporary);
}

/* Of two results under one name the first would be lost. */
static void expect_no_other(const char *path, const char *name) {
    static struct taken {
        struct stat folder;
        const char *file;
    } * taken;
    static size_t count;
    char *const folder = folder_of(path);
    struct taken now = {.file = path + folder_size(path)};
    if (stat(folder, &now.folder) != 0) fail_os(folder, "look at it");
    free(folder);
    for (size_t i = 0; i < count; i++)
        if (taken[i].folder.st_dev == now.folder.st_dev &&
            taken[i].folder.st_ino == now.folder.st_ino &&
            strcmp(taken[i].file, now.file) == 0)
            fail_at(name, 0, "two results are to be written to this file");
    now.file = copy_text(now.file);
    taken = resize_memory(taken, (count + 1) * sizeof *taken);
    taken[count++] = now;
}

struct draft_file *draft_open(const char *path, const struct stat *old,
                              bool may_replace, const char *name) {
    struct draft_file *const d = alloc_memory(sizeof *d);
    *d = (struct draft_file){.path = copy_text(path),
                             .name = name,
                             .replaces = old != NULL,
                             .may_replace = may_replace};
    expect_no_other(path, name);
    look_for_leftovers(path);
    if (!open_nameless(d) && !take_name(d, open_named))
        fail_os(name, "make a new file beside it");
    if (old) copy_access(d->fd, old, true, name);
    return d;
}

static bool sync_file(int fd) {
    int status;
    do status = fsync(fd);
    while (status != 0 && errno == EINTR);
    return status == 0;
}

void sync_folder(const char *path) {
    char *const folder = folder_of(path);
    const int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0 || !sync_file(fd)) fail_os(folder, "sync the folder");
    close(fd);
    free(folder);
}

/* Only a file with a name can take the place of another. An early end between
 * the two steps removes it. */
static void put_in_place(struct draft_file *d) {
    if (!d->temporary && !take_name(d, link_temporary))
        fail_os(d->name, "name the new file beside it");
    if (rename(d->temporary, d->path) != 0)
        fail_os(d->name, "rename the new file to it");
    forget_file(d->temporary);
}

/* False if there is a file now, which may be replaced. */
static bool link_to_new(const struct draft_file *d) {
    if (link_to(d, d->path) == 0) return true;
    if (errno != EEXIST) fail_os(d->name, "give the new file its name");
    if (!d->may_replace)
        fail_at(d->name, 0,
                "it has come to exist meanwhile; --force replaces it");
    return false;
}

void draft_publish(struct draft_file *d) {
    if (!sync_file(d->fd)) fail_os(d->name, "bring it to the disk");
    /* closing reports errors too, but the last reference must wait for the name
     */
    const int twin = fcntl(d->fd, F_DUPFD_CLOEXEC, 0);
    if (twin < 0 || close(twin) != 0) fail_os(d->name, "close it");
    if (d->temporary || d->replaces || !link_to_new(d)) put_in_place(d);
    close(d->fd);
    sync_folder(d->path);
    free(d->temporary);
    free(d->path);
    free(d);
}
