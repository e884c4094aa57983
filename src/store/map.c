/*
 * Filters used in place in a mapped file.
 *
 * Reading: the whole file is mapped. A file that is truncated loses its trailer
 * first, and then reads as zeros. The generation in the trailer is never 0, so
 * a lookup that would return "no" reads it again (engine/mapped.c), and returns
 * "yes" if it is gone.
 *
 * Writing: bits are only ever set. So any mixture of old and new sectors that a
 * crash leaves has all bits of the last calyx_sync. The trailer marks the file
 * as open; the tables mark each range before its first change, since its
 * checksum no longer fits. Closing computes the checksums of these ranges and
 * marks the file as sealed. The two slots of the trailer are written in turn.
 */
#include "base/compiler.h"
#if !CALYX_NO_FILES
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

#include "base/bits.h"
#include "base/error.h"
#include "base/parallel.h"
#include "store/file.h"
#include "store/ranges.h"

static uint64_t map_size(const struct image *image) {
    return image->d.layout.file_bytes;
}

/* On Linux, msync and fsync each bring what a mapping has to the disk.
 * Elsewhere that takes both: msync alone may leave it in the cache of the
 * drive, fsync alone in the pages. */
#ifdef __linux__
enum { SYNC_TAKES_BOTH = false };
#else
enum { SYNC_TAKES_BOTH = true };
#endif

static bool write_pages(uint8_t *from, uint64_t size) {
    for (int tries = 0; msync(from, (size_t)size, MS_SYNC) != 0; tries++)
        if (!was_interrupted(tries)) return false;
    return true;
}

static bool sync_pages(const struct image *image, uint64_t from, uint64_t to) {
    return write_pages(image->base + from, to - from) &&
           (!SYNC_TAKES_BOTH || sync_file(image->fd));
}

/* Write a state into the slot that is not current, and sync it. */
static bool write_state(struct image *image, struct state state) {
    state.slot = 1 - image->state.slot;
    state.generation = image->state.generation + 1;
    uint8_t slot[SLOT_BYTES];
    store_slot(&image->d, &state, slot);
    memcpy(image->base + image->d.layout.slot_at[state.slot], slot,
           sizeof slot);
    image->state = state;
    return (!SYNC_TAKES_BOTH || write_pages(image->base, map_size(image))) &&
           sync_file(image->fd);
}

/* Is the open file still the one of this name? Keys added to a file that was
 * replaced or removed are lost. */
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

/* Bodies are synced before the slot that describes them. */
static bool sync_bodies(const calyx_filter *f) {
    const struct image *image = image_of(f);
    struct stat is;
    if (fstat(image->fd, &is) != 0) return false;
    if ((uint64_t)is.st_size != map_size(image) || is_truncated(f)) {
        errno = EIO; /* truncated: keys are lost */
        return false;
    }
    return write_pages(image->base, map_size(image)) && sync_file(image->fd);
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
    struct image *image = image_of(f);
    if (!image || image->fd < 0)
        return fail(why, CALYX_READ_ONLY,
                    "only a filter mapped for writing can be synced");
    if (!is_owner_for_certain(&image->owner))
        return fail(why, CALYX_READ_ONLY,
                    "%.80s: only the process that opened it can sync it, not a "
                    "child of that",
                    image->path);
    /* After a failed sync the system drops the dirty pages: trying again would
     * succeed without writing them. */
    const struct state open = {.items = items_of(newest_of(f)),
                               .sealed_items = image->state.sealed_items};
    if (!image->failed && (!sync_bodies(f) || !write_state(image, open) ||
                           !is_named(image->fd, image->path)))
        image->failed = errno;
    return fail_failed(image, why);
}

/* ---- Marking ------------------------------------------------------------- */

/*
 * Before the first bit of a range is set, the range is verified, marked in the
 * tables, and the mark is synced. So after a crash a range without a mark
 * matches its checksum. A damaged range is never marked, and so never sealed.
 *
 * Adding single keys takes one sync for each range until all are marked. A sync
 * takes about as long as verifying 16 ranges, so after the first 64 marks each
 * sync also marks the next 16 ranges in order: all ranges are marked after 1/16
 * of the syncs, and a single key costs at most twice as much.
 */
enum { MARKED_SINGLY = 64, MARKED_AHEAD = 16 };

/* Marks that are not synced yet. */
struct new_marks {
    uint64_t first, end, count;
};

/* A writer that died may have left a mark that is not on disk. */
static void mark_range(const calyx_filter *f, uint64_t number,
                       struct new_marks *marks) {
    struct image *const image = image_of(f);
    const enum range_state is = state_of(image, number);
    if (is >= RANGE_MARKING || !verify_range(f, number)) return;
    uint64_t *const to = (uint64_t *)(void *)entry_of(image, number);
    __atomic_store_n(to, little64(UNSEALED), __ATOMIC_RELEASE);
    set_state(image, number, RANGE_MARKING);
    if (marks->count == 0 || number < marks->first) marks->first = number;
    if (marks->count == 0 || number >= marks->end) marks->end = number + 1;
    marks->count++;
}

static void mark_ahead(const calyx_filter *f, const struct part *p,
                       struct new_marks *marks) {
    struct image *const image = image_of(f);
    const uint64_t n = ranges_of(body_bytes(f->kind, &p->shape));
    if (marks->count == 0 || image->marked + marks->count < MARKED_SINGLY)
        return;
    for (int i = 0; i < MARKED_AHEAD && image->ahead < n; i++)
        mark_range(f, p->range + image->ahead++, marks);
}

static calyx_status sync_marks(struct image *image,
                               const struct new_marks *marks) {
    if (marks->count == 0) return CALYX_OK;
    const uint64_t tables = image->d.layout.tables_at;
    const uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t from =
        (tables + marks->first * sizeof(uint64_t)) / page * page;
    const uint64_t to = tables + marks->end * sizeof(uint64_t);
    if (!sync_pages(image, from, to)) {
        image->failed = errno;
        return CALYX_IO;
    }
    for (uint64_t i = marks->first; i < marks->end; i++)
        if (state_of(image, i) == RANGE_MARKING)
            set_state(image, i, RANGE_MARKED);
    image->marked += marks->count;
    return CALYX_OK;
}

/* Can this hash be added: are its ranges in the newest part marked, and those
 * in the older parts, which may have it, intact? */
static bool is_ready(const calyx_filter *f, uint64_t hash) {
    const struct part *p = newest_of(f);
    uint64_t numbers[MOST_RANGES_OF_KEY];
    const size_t n = ranges_of_key(f, p, hash, numbers);
    bool ready = n > 0;
    for (size_t i = 0; i < n; i++)
        ready &= state_of(image_of(f), numbers[i]) == RANGE_MARKED;
    for (p = p->older; p && ready; p = p->older)
        ready = f->lent->is_intact(f, p, hash);
    return ready;
}

static size_t count_ready(const calyx_filter *f, const uint64_t *hashes,
                          size_t n) {
    size_t i = 0;
    while (i < n && is_ready(f, hashes[i])) i++;
    return i;
}

static void lock_marks(struct image *image) {
    while (__atomic_exchange_n(&image->marking, 1, __ATOMIC_ACQUIRE))
        yield_to_others();
}

static void unlock_marks(struct image *image) {
    __atomic_store_n(&image->marking, 0, __ATOMIC_RELEASE);
}

static calyx_status mark_keys(calyx_filter *f, const uint64_t *hashes,
                              size_t n) {
    struct image *const image = image_of(f);
    if (!is_owner_for_certain(&image->owner)) return CALYX_READ_ONLY;
    const struct part *const p = newest_of(f);
    struct new_marks marks = {0};
    uint64_t numbers[MOST_RANGES_OF_KEY];
    lock_marks(image);
    for (size_t i = 0; i < n; i++) {
        const size_t ranges = ranges_of_key(f, p, hashes[i], numbers);
        for (size_t j = 0; j < ranges; j++) mark_range(f, numbers[j], &marks);
    }
    mark_ahead(f, p, &marks);
    const calyx_status status =
        image->failed ? CALYX_IO : sync_marks(image, &marks);
    unlock_marks(image);
    return status;
}

static calyx_status mark_all(calyx_filter *f, bool only_newest) {
    struct image *const image = image_of(f);
    if (!is_owner_for_certain(&image->owner)) return CALYX_READ_ONLY;
    if (!__atomic_load_n(&f->lent->unmarked, __ATOMIC_ACQUIRE) &&
        !__atomic_load_n(&f->lent->damaged, __ATOMIC_RELAXED))
        return CALYX_OK;
    const uint64_t end = number_of_ranges(image);
    const uint64_t first = only_newest ? newest_of(f)->range : 0;
    bool sound = true;
    struct new_marks marks = {0};
    lock_marks(image);
    for (uint64_t i = first; i < end; i++) mark_range(f, i, &marks);
    const calyx_status status =
        image->failed ? CALYX_IO : sync_marks(image, &marks);
    unlock_marks(image);
    for (uint64_t i = first; i < end; i++) sound &= verify_range(f, i);
    return status == CALYX_OK && !sound ? CALYX_DAMAGED : status;
}

static calyx_status mark(calyx_filter *f, const uint64_t *hashes, size_t *n) {
    const struct part *const p = newest_of(f);
    if (!is_owner(&(image_of(f))->owner)) return CALYX_READ_ONLY;
    if (!p->older && !__atomic_load_n(&f->lent->unmarked, __ATOMIC_ACQUIRE) &&
        !__atomic_load_n(&f->lent->damaged, __ATOMIC_RELAXED))
        return CALYX_OK;
    const bool has_offsets = f->kind->offsets || f->kind->one_block;
    if (!has_offsets) return mark_all(f, true);
    size_t ready = count_ready(f, hashes, *n);
    if (ready < *n) {
        const calyx_status status = mark_keys(f, hashes + ready, *n - ready);
        if (status != CALYX_OK) return status;
        ready += count_ready(f, hashes + ready, *n - ready);
    }
    *n = ready;
    return ready ? CALYX_OK : CALYX_DAMAGED;
}

/* ---- Ending -------------------------------------------------------------- */

/* Compute the checksums of all marked ranges. On failure the file stays open,
 * as after a crash. */
static bool seal(calyx_filter *f) {
    struct image *image = image_of(f);
    if (!sync_bodies(f)) return false;
    uint8_t *tables = image->base + image->d.layout.tables_at;
    const size_t size = (size_t)image->d.layout.tables_bytes;
    seal_ranges(image);
    return sync_bodies(f) &&
           write_state(image,
                       (struct state){.sealed = true,
                                      .items = items_of(newest_of(f)),
                                      .tables_sum = checksum(tables, size, 0)});
}

static calyx_status unmap(calyx_filter *f, calyx_error *why) {
    struct image *image = image_of(f);
    const calyx_memory *memory = &f->memory;
    calyx_status status = CALYX_OK;
    if (image->fd >= 0 && !is_owner_for_certain(&image->owner)) {
        close(image->fd); /* its parent still has the file, and the lock */
        owner_close(&image->owner);
    } else if (image->fd >= 0) {
        if (!image->failed && (!seal(f) || !is_named(image->fd, image->path)))
            image->failed = errno;
        /* Also releases the lock. */
        if (close(image->fd) != 0 && !image->failed) image->failed = errno;
        status = fail_failed(image, why);
        owner_close(&image->owner);
    }
    munmap(image->base, (size_t)map_size(image));
    close_ranges(f);
    if (image->path)
        memory->release(memory->context, image->path, image->path_bytes);
    memory->release(memory->context, image, sizeof *image);
    return status;
}

/* One process at a time changes a file. The locked file must still be the one
 * of this name: keys added to another are lost. */
static calyx_status lock(int fd, const char *path, calyx_error *why) {
    int tries = 0;
    while (flock(fd, LOCK_EX | LOCK_NB) != 0)
        if (!was_interrupted(tries++))
            return fail_os(why, path,
                           errno == EWOULDBLOCK
                               ? "change it, as another process does so now"
                               : "lock it");
    if (is_named(fd, path)) return CALYX_OK;
    return fail_os(why, path,
                   errno == ESTALE ? "open it, as it was replaced meanwhile"
                                   : "look at it");
}

/* The absolute path, for is_named: the program may change its folder. If the
 * present folder has no name, the path stays relative. */
static calyx_status store_path(struct image *image, const calyx_memory *memory,
                               const char *path, calyx_error *why) {
    char folder[PATH_MAX] = "";
    if (*path == '/' || !getcwd(folder, sizeof folder)) *folder = 0;
    const size_t size = strlen(folder) + 1 + strlen(path) + 1;
    image->path = memory->allocate(memory->context, size, 1);
    if (!image->path)
        return fail(why, CALYX_NO_MEMORY, "no memory for the name of a file");
    image->path_bytes = size;
    snprintf(image->path, size, "%s%s%s", folder, *folder ? "/" : "", path);
    return CALYX_OK;
}

/* Slots are valid below 2^63. No file changes so often: such a one is crafted,
 * and the next slot would not be valid, which makes the file a damaged one. */
static const uint64_t LAST_GENERATION = UINT64_C(1) << 62;

static calyx_status check_writable(const calyx_filter *f, const char *path,
                                   calyx_error *why) {
    const struct image *const image = image_of(f);
    if (has_counters(f->kind))
        return fail(why, CALYX_CANNOT,
                    "%.100s: %s filters cannot be changed in place: what they "
                    "remove or move would not survive a crash; load and save "
                    "it",
                    path, f->kind->name);
    if (f->allowed)
        return fail(why, CALYX_CANNOT,
                    "%.100s: it cannot be changed in place: it has an allow "
                    "list, which a key leaves when it is added; load and save "
                    "it",
                    path);
    if (image->state.generation >= LAST_GENERATION)
        return fail(why, CALYX_CANNOT,
                    "%.100s: it cannot be changed in place: its generation is "
                    "%llu, and those from %llu on have no next; load and save "
                    "it",
                    path, (unsigned long long)image->state.generation,
                    (unsigned long long)LAST_GENERATION);
    return CALYX_OK;
}

/* From here on the filter owns the mapping and, if it writes, the file. */
static calyx_status adopt(calyx_filter *f, int fd, bool writes,
                          const char *path, calyx_error *why) {
    struct image *image = image_of(f);
    const uint64_t at = image->d.layout.slot_at[image->state.slot];
    f->lent->guard = (const uint64_t *)(image->base + at);
    f->lent->release = unmap;
    expect_few_reads(image);
    if (!writes) {
        close(fd); /* the mapping stays */
        return CALYX_OK;
    }
    image->fd = fd;
    owner_open(&image->owner);
    image->lent.mark = mark;
    image->lent.mark_all = mark_all;
    f->read_only = false;
    struct part *const p = newest_of(f);
    const struct state was = image->state;
    p->items =
        recovered_items(f->kind, p, &image->state, entry_of(image, p->range));
    const struct state open = {
        .items = p->items,
        .sealed_items = was.sealed ? was.items : was.sealed_items,
    };
    calyx_status status = store_path(image, &f->memory, path, why);
    if (status == CALYX_OK)
        status = check_can(f->kind, CALYX_CAN_ADD, "changed in place", why);
    if (status == CALYX_OK) status = check_writable(f, path, why);
    if (status == CALYX_OK && !write_state(image, open))
        status = fail_os(why, path, "mark it as open");
    if (status != CALYX_OK) image->failed = EINVAL; /* do not seal it */
    return status;
}

calyx_status calyx_map(const char *path, calyx_access access,
                       const calyx_open_options *how, calyx_filter **out,
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

#endif
