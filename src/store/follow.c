/* A live filter that follows a file. */
#include "base/compiler.h"
#if !CALYX_NO_FILES
#define _DEFAULT_SOURCE /* the nanoseconds of struct stat */
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "filter/live.h"
#include "store/file.h"

#ifdef __APPLE__
#define st_mtim st_mtimespec
#endif

/* Identifies a version of the file under a name. */
struct file_version {
    dev_t device;
    ino_t inode;
    off_t size;
    struct timespec changed;
};

struct follow {
    struct file_version seen;
    calyx_open_options how; /* points into this struct */
    uint8_t key[16];
    calyx_memory memory;
    uint32_t busy; /* a thread is looking; others need not */
    size_t size;   /* of this struct with the path         */
    char path[];
};

static calyx_status look(const char *path, struct file_version *mark,
                         calyx_error *why) {
    struct stat is;
    if (stat(path, &is) != 0) return fail_os(why, path, "look at it");
    *mark = (struct file_version){is.st_dev, is.st_ino, is.st_size, is.st_mtim};
    return CALYX_OK;
}

static bool same(const struct file_version *a, const struct file_version *b) {
    return a->device == b->device && a->inode == b->inode &&
           a->size == b->size && a->changed.tv_sec == b->changed.tv_sec &&
           a->changed.tv_nsec == b->changed.tv_nsec;
}

/* The caller's string may be gone by the next refresh. */
static const char *own_name(const char *kernel) {
    if (kernel && !*kernel) return "";
    for (const char *const *name = calyx_kernels(); *name && kernel; name++)
        if (strcmp(*name, kernel) == 0) return *name;
    return kernel;
}

enum { FOLDER_MOST = 4096 };

/* What makes a relative path absolute, with a '/' at its end: a refresh may
 * come after chdir. Links are not resolved, as they may be changed. "" if the
 * path is absolute, or the folder has no name. */
static const char *current_folder(const char *path, char folder[FOLDER_MOST]) {
    if (*path == '/' || *path == '\0' || !getcwd(folder, FOLDER_MOST - 1))
        return "";
    return strcat(folder, "/");
}

static struct follow *follow_new(const char *path,
                                 const calyx_open_options *how) {
    char buffer[FOLDER_MOST];
    const char *const folder = current_folder(path, buffer);
    const calyx_memory *memory =
        how && how->memory ? how->memory : &memory_default;
    const size_t size =
        sizeof(struct follow) + strlen(folder) + strlen(path) + 1;
    struct follow *w = memory->allocate(memory->context, size, ALIGNMENT);
    if (!w) return NULL;
    w->memory = *memory;
    w->size = size;
    strcat(strcpy(w->path, folder), path);
    if (how) w->how = *how;
    w->how.kernel = own_name(w->how.kernel);
    w->how.memory = &w->memory;
    if (w->how.key) w->how.key = memcpy(w->key, how->key, sizeof w->key);
    return w;
}

static void follow_free(void *data) {
    struct follow *w = data;
    const calyx_memory memory = w->memory;
    memory.release(memory.context, w, w->size);
}

/* stat before open: if the file is replaced in between, the next refresh sees
 * another version and opens it again. */
static calyx_status open_current(const struct follow *w,
                                 struct file_version *mark, calyx_filter **f,
                                 calyx_error *why) {
    const calyx_status status = look(w->path, mark, why);
    if (status != CALYX_OK) return status;
    return calyx_map(w->path, CALYX_READ, &w->how, f, why);
}

calyx_status calyx_live_open(const char *path, const calyx_open_options *how,
                             calyx_live **out, calyx_error *why) {
    struct follow *w = follow_new(path, how);
    if (!w) return fail(why, CALYX_NO_MEMORY, "no memory for a live filter");
    calyx_filter *f = NULL;
    calyx_status status = open_current(w, &w->seen, &f, why);
    if (status == CALYX_OK) status = calyx_live_new(f, out, why);
    if (status != CALYX_OK) {
        calyx_free(f);
        follow_free(w);
        return status;
    }
    *live_follower(*out) = (struct follower){w, follow_free};
    return CALYX_OK;
}

static calyx_status refresh(calyx_live *live, struct follow *w, bool *changed,
                            calyx_error *why) {
    struct file_version mark;
    calyx_status status = look(w->path, &mark, why);
    if (status != CALYX_OK || same(&mark, &w->seen)) return status;
    calyx_filter *f = NULL;
    status = open_current(w, &mark, &f, why);
    if (status == CALYX_OK) status = calyx_live_swap(live, f, why);
    if (status != CALYX_OK) {
        calyx_free(f);
        return status;
    }
    w->seen = mark;
    *changed = true;
    return CALYX_OK;
}

calyx_status calyx_live_refresh(calyx_live *live, bool *changed,
                                calyx_error *why) {
    bool ignored;
    if (!changed) changed = &ignored;
    *changed = false;
    struct follow *w = live_follower(live)->data;
    if (!w) return fail(why, CALYX_CANNOT, "this live filter follows no file");
    if (__atomic_exchange_n(&w->busy, 1, __ATOMIC_ACQUIRE)) return CALYX_OK;
    const calyx_status status = refresh(live, w, changed, why);
    __atomic_store_n(&w->busy, 0, __ATOMIC_RELEASE);
    return status;
}

#endif
