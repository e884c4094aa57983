/*
 * Filters used where they are, in a mapped file.
 *
 * Reading: the file is mapped whole. The slot that counts has a generation,
 * which is never 0, and a file that is cut short loses its end first; so a
 * filter that would answer "no" looks at the trailer once more (filter/keys.c),
 * and if that is gone answers "yes" instead.
 *
 * Writing: bits only ever come to be set. Whatever mixture of old and new
 * sectors a crash leaves behind, it has all bits of the last calyx_sync. Before
 * the first change the file is marked as open, in the trailer, since its
 * checksums will no longer fit; closing brings them up to date and marks it as
 * sealed. The two slots of the trailer are written in turn.
 */
#define _DEFAULT_SOURCE /* mmap, flock, fsync */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "store/codec.h"
#include "store/file.h"

static uint64_t map_size(const struct image *image) {
    return image->d.layout.file_bytes;
}

/* A signal may come between; but what always fails is an error. */
static bool retry(int tries) {
    return errno == EINTR && tries < 1000;
}

static bool sync_file(int fd) {
    for (int tries = 0; fsync(fd) != 0; tries++)
        if (!retry(tries)) return false;
    return true;
}

static bool sync_memory(uint8_t *from, uint64_t size) {
    for (int tries = 0; msync(from, (size_t)size, MS_SYNC) != 0; tries++)
        if (!retry(tries)) return false;
    return true;
}

/* Put a state into the other slot than the one that counts, and have it on
 * disk. */
static bool write_state(struct image *image, struct state state) {
    state.slot = 1 - image->state.slot;
    state.generation = image->state.generation + 1;
    uint8_t slot[SLOT_BYTES];
    store_slot(&image->d, &state, slot);
    memcpy(image->base + image->d.layout.slot_at[state.slot], slot,
           sizeof slot);
    image->state = state;
    return sync_file(image->fd);
}

/* Is the open file still the one under this name? Keys added to another, or to
 * one without a name, would be lost. */
static bool is_named(int fd, const char *path) {
    struct stat ours, named;
    if (fstat(fd, &ours) != 0) return false;
    if (stat(path, &named) != 0) {
        if (errno == ENOENT || errno == ENOTDIR) errno = ESTALE;
        return false;
    }
    if (ours.st_dev == named.st_dev && ours.st_ino == named.st_ino) return true;
    errno = ESTALE;
    return false;
}

/* Bodies first, then the slot that speaks of them. */
static bool sync_bodies(const calyx_filter *f) {
    const struct image *image = f->image;
    struct stat is;
    if (fstat(image->fd, &is) != 0) return false;
    if ((uint64_t)is.st_size != map_size(image) || is_cut(f)) {
        errno = EIO; /* cut short by somebody: the keys are gone */
        return false;
    }
    return sync_memory(image->base, map_size(image)) && sync_file(image->fd);
}

static calyx_status fail_failed(const struct image *image, calyx_error *why) {
    if (!image->failed) return CALYX_OK;
    if (image->failed == ESTALE)
        fail(why, CALYX_IO,
             "%.80s: the file was replaced or removed while it was changed; "
             "what was added is not in the file of this name: add it again",
             image->path);
    else
        fail(why, CALYX_IO,
             "%.80s: the changes did not reach the disk: %.60s; save the "
             "filter elsewhere, or add the keys again",
             image->path, strerror(image->failed));
    if (why) why->os_code = image->failed;
    return CALYX_IO;
}

calyx_status calyx_sync(calyx_filter *f, calyx_error *why) {
    struct image *image = f->image;
    if (!image || image->fd < 0)
        return fail(why, CALYX_READ_ONLY,
                    "only a filter mapped for writing can be synced");
    /* The system forgets what it failed to write: no second try can tell. */
    const struct state open = {.items = items_of(newest_of(f))};
    if (!image->failed && (!sync_bodies(f) || !write_state(image, open) ||
                           !is_named(image->fd, image->path)))
        image->failed = errno;
    return fail_failed(image, why);
}

/* Bring the checksums up to date. If it does not succeed, the file stays open,
 * which is no worse than a crash. */
static bool seal(calyx_filter *f) {
    struct image *image = f->image;
    if (!sync_bodies(f)) return false;
    uint8_t *tables = image->base + image->d.layout.tables_at;
    const size_t size = (size_t)image->d.layout.tables_bytes;
    sum_bodies(image, tables);
    return sync_bodies(f) &&
           write_state(image,
                       (struct state){.sealed = true,
                                      .items = items_of(newest_of(f)),
                                      .tables_sum = checksum(tables, size, 0)});
}

static calyx_status unmap(calyx_filter *f, calyx_error *why) {
    struct image *image = f->image;
    const calyx_memory *memory = &f->memory;
    calyx_status status = CALYX_OK;
    if (image->fd >= 0) {
        if (!image->failed && (!seal(f) || !is_named(image->fd, image->path)))
            image->failed = errno;
        /* Also gives up the lock. */
        if (close(image->fd) != 0 && !image->failed) image->failed = errno;
        status = fail_failed(image, why);
    }
    munmap(image->base, (size_t)map_size(image));
    if (image->path)
        memory->give(memory->context, image->path, image->path_bytes);
    memory->give(memory->context, image, sizeof *image);
    return status;
}

/* One process at a time changes a file. Once it is ours, it must still be the
 * one under this name: keys added to another would be lost. */
static calyx_status lock(int fd, const char *path, calyx_error *why) {
    if (flock(fd, LOCK_EX | LOCK_NB) != 0)
        return fail_os(why, path,
                       errno == EWOULDBLOCK
                           ? "change it, as another process does so now"
                           : "lock it");
    if (is_named(fd, path)) return CALYX_OK;
    return fail_os(why, path,
                   errno == ESTALE ? "open it, as it was replaced meanwhile"
                                   : "look at it");
}

/* The name to look for at the end. A program may go to another folder before;
 * where the present one has no name, it must not. */
static calyx_status keep_path(struct image *image, const calyx_memory *memory,
                              const char *path, calyx_error *why) {
    char folder[PATH_MAX] = "";
    if (*path == '/' || !getcwd(folder, sizeof folder)) *folder = 0;
    const size_t size = strlen(folder) + 1 + strlen(path) + 1;
    image->path = memory->take(memory->context, size, 1);
    if (!image->path)
        return fail(why, CALYX_NO_MEMORY, "no memory for the name of a file");
    image->path_bytes = size;
    snprintf(image->path, size, "%s%s%s", folder, *folder ? "/" : "", path);
    return CALYX_OK;
}

/* From here on the filter owns the mapping and, if it writes, the file. */
static calyx_status adopt(calyx_filter *f, int fd, bool writes,
                          const char *path, calyx_error *why) {
    struct image *image = f->image;
    const uint64_t at = image->d.layout.slot_at[image->state.slot];
    f->guard = (const uint64_t *)(image->base + at);
    f->release = unmap;
    if (!writes) {
        close(fd); /* the mapping stays */
        return CALYX_OK;
    }
    image->fd = fd;
    f->read_only = false;
    calyx_status status = keep_path(image, &f->memory, path, why);
    if (status == CALYX_OK && is_counting(f))
        status = fail(why, CALYX_CANNOT,
                      "%.100s: %s filters cannot be changed in place: their "
                      "counters would not survive a crash; load and save it",
                      path, f->kind->name);
    if (status == CALYX_OK &&
        !write_state(image, (struct state){.items = image->state.items}))
        status = fail_os(why, path, "mark it as open");
    if (status != CALYX_OK) image->failed = EINVAL; /* not to be sealed */
    return status;
}

calyx_status calyx_map(const char *path, calyx_access access,
                       const calyx_opening *how, calyx_filter **out,
                       calyx_error *why) {
    const bool writes = access == CALYX_WRITE;
    const int allowed = writes ? PROT_READ | PROT_WRITE : PROT_READ;
    int fd;
    uint64_t size;
    calyx_status status =
        open_regular(path, writes ? O_RDWR : O_RDONLY, &fd, &size, why);
    if (status != CALYX_OK) return status;
    if (writes) status = lock(fd, path, why);
    uint8_t *base = MAP_FAILED;
    if (status == CALYX_OK) {
        base = mmap(NULL, (size_t)size, allowed, MAP_SHARED, fd, 0);
        if (base == MAP_FAILED) status = fail_os(why, path, "map it");
    }
    calyx_filter *f = NULL;
    if (status == CALYX_OK)
        status = fail_in(why, path, view_image(base, size, how, &f, why));
    if (status != CALYX_OK) {
        if (base != MAP_FAILED) munmap(base, (size_t)size);
        close(fd);
        return status;
    }
    status = adopt(f, fd, writes, path, why);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    *out = f;
    return CALYX_OK;
}
