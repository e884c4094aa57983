/*
 * Filters from files and to them, for the verbs: mapped where that is possible,
 * unpacked where it is needed, and with the secret key if there is one.
 */
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "files/filter_file.h"
#include "files/foreign_file.h"
#include "frame/draft.h"
#include "frame/lock.h"
#include "input/source.h"

/* ---- The secret key ----------------------------------------------------- */

enum { KEY_BYTES = 16 };
static const char *key_file;
static uint8_t key[KEY_BYTES];

const struct group secret_group = {
    "A secret key",
    {
        {0, "key-file", "FILE",
         "Hash with the secret key in FILE: 16 bytes, or 32 hexadecimal "
         "digits. Without it nobody can predict which keys collide. The filter "
         "does not contain it; every later use needs the same option.",
         parse_text, &key_file},
    },
};

/* 32 hexadecimal digits, and perhaps a newline. */
static bool from_digits(const char *text, size_t size) {
    if (size == 2 * KEY_BYTES + 1 && text[size - 1] == '\n') size--;
    if (size != (size_t)2 * KEY_BYTES) return false;
    for (size_t i = 0; i < KEY_BYTES; i++) {
        const int high = hex_digit(text[2 * i]),
                  low = hex_digit(text[2 * i + 1]);
        if (high < 0 || low < 0) return false;
        key[i] = (uint8_t)(16 * high + low);
    }
    return true;
}

const uint8_t *secret_key(void) {
    static bool known;
    if (!key_file) return NULL;
    if (known) return key;

    char text[2 * KEY_BYTES + 2]; /* one more than the longest */
    size_t size = 0;
    const int fd = open(key_file, O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail_os(key_file, "open it");
    for (ssize_t n = 1; n > 0 && size < sizeof text; size += (size_t)n) {
        do n = read(fd, text + size, sizeof text - size);
        while (n < 0 && errno == EINTR);
        if (n < 0) fail_os(key_file, "read it");
    }
    close(fd);
    if (size == KEY_BYTES)
        memcpy(key, text, KEY_BYTES);
    else if (!from_digits(text, size))
        fail_at(key_file, 0,
                "expected a key of 16 bytes or 32 hexadecimal digits, found "
                "%s%zu bytes",
                size == sizeof text ? "at least " : "", size);
    known = true;
    return key;
}

/* ---- Reading ------------------------------------------------------------ */

static bool get(void *context, void *buffer, size_t size) {
    struct byte_source *const source = context;
    if (source_fill(source, buffer, size) != size)
        fail_at(source_name(source), 0,
                "not a whole calyx filter: it ends too early");
    return true;
}

/* Closes the source. */
static calyx_filter *load_from(struct byte_source *source, bool concurrent) {
    const calyx_open_options how = {.key = secret_key(),
                                    .concurrent = concurrent};
    calyx_error why;
    calyx_filter *f;
    source_expect_filter(source);
    if (calyx_read(get, source, &how, &f, &why) != CALYX_OK)
        fail_at(source_name(source), 0, "%s", why.text);
    source_close(source);
    return f;
}

calyx_filter *filter_load(const char *path, bool concurrent) {
    return load_from(source_open(path), concurrent);
}

static calyx_filter *open_from(struct byte_source *source, const char *path) {
    if (strcmp(path, "-") == 0 || !source_is_plain_file(source))
        return load_from(source, false);
    const calyx_open_options how = {.key = secret_key()};
    calyx_error why;
    calyx_filter *f;
    source_expect_filter(source);
    source_close(source);
    if (calyx_map(path, CALYX_READ, &how, &f, &why) != CALYX_OK)
        fail_with(&why);
    return f;
}

calyx_filter *filter_open(const char *path) {
    return open_from(source_open(path), path);
}

calyx_filter *filter_open_any(const char *path, struct foreign_file **foreign) {
    struct byte_source *const source = source_open(path);
    *foreign = foreign_file_try(source);
    return *foreign ? NULL : open_from(source, path);
}

calyx_filter *filter_open_whole(const char *path) {
    calyx_filter *const f = filter_open(path);
    filter_expect_whole(f, path);
    return f;
}

void filter_expect_whole(const calyx_filter *f, const char *path) {
    calyx_error why;
    const calyx_status status = calyx_verify(f, &why);
    if (status != CALYX_OK && status != CALYX_UNSEALED)
        fail_at(path, 0, "%s", why.text);
}

void filter_expect_health(const calyx_filter *f, const char *path) {
    calyx_error why;
    if (calyx_health(f, &why) != CALYX_OK) fail_at(path, 0, "%s", why.text);
}

void filter_expect_changeable(const calyx_filter *f, const char *path,
                              const char *done, const char *instead) {
    calyx_info info;
    calyx_info_of(f, &info);
    if (info.can & CALYX_CAN_STATIC)
        fail_at(path, 0,
                "a %s filter is built once from all its keys, and cannot be "
                "%s; build it anew, or %s",
                info.kind, done, instead);
}

/* ---- Writing ------------------------------------------------------------ */

static bool put_out(void *context, const void *bytes, size_t size) {
    output_write(context, bytes, size);
    return true;
}

/* The library's own way leaves room for mapping. It makes a file beside this
 * one, too, and an early end must not leave that there: it has to wait. */
static void save_plain(save_call *save, void *what, const char *path) {
    calyx_error why;
    begin_change();
    if (save(what, path, &why) != CALYX_OK) fail_with(&why);
    end_change();
}

/* ".NAME.ID.new", in the same folder. */
static char *name_beside(const char *path) {
    const char *const slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash - path) + 1 : 0;
    char *const name = alloc_memory(strlen(path) + 40);
    sprintf(name, "%.*s.%.200s.%ld.new", folder, path, path + folder,
            (long)getpid());
    return name;
}

/* False, with EEXIST, if there is a file of this name. A link to nowhere is
 * replaced. */
static bool rename_to_new(const char *from, const char *to) {
#ifdef RENAME_NOREPLACE
    if (renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0)
        return true;
    /* some file systems cannot do that */
    if (errno != EEXIST && errno != EINVAL && errno != ENOSYS) return false;
#endif
    if (access(to, F_OK) != 0) return rename(from, to) == 0;
    errno = EEXIST;
    return false;
}

/* The same where no file may be replaced. Other processes may be making one of
 * this name now, and calyx_save replaces what is there: so it saves under
 * another name. */
static void save_new(save_call *save, void *what, const char *path) {
    char *const temporary = name_beside(path);
    calyx_error why;
    begin_change();
    remember_file(temporary); /* saving may fail after it has its name */
    if (save(what, temporary, &why) != CALYX_OK) {
        const char *const text = strstr(why.text, ".new: ");
        if (!text) fail_with(&why); /* about what is read for it */
        fail_at(path, 0, "%s", text + strlen(".new: "));
    }
    if (!rename_to_new(temporary, path)) {
        if (errno != EEXIST) fail_os(path, "rename the new file to it");
        fail_at(path, 0, "it has come to exist meanwhile; --force replaces it");
    }
    forget_file(temporary);
    sync_folder(path);
    end_change();
    free(temporary);
}

void save_file(save_call *save, void *what, const char *path, bool replace) {
    if (replace) lock_file(path);
    expect_output(path, replace);
    (replace ? save_plain : save_new)(save, what, path);
}

static calyx_status save_filter(void *f, const char *path, calyx_error *why) {
    return calyx_save(f, path, why);
}

void filter_save(const calyx_filter *f, const char *path, bool replace) {
    if (path && is_plain_name(path)) {
        save_file(save_filter, (void *)(uintptr_t)f, path, replace);
        return;
    }
    if (path && replace) lock_file(path);
    struct output *const output = output_open(path, replace);
    calyx_error why;
    if (calyx_write(f, put_out, output, &why) != CALYX_OK) fail_with(&why);
    output_close(output);
}

/* ---- Looking ------------------------------------------------------------ */

static void warn_saturated(const char *name, const calyx_info *info) {
    char buckets[TEXT_SIZE], promised[TEXT_SIZE], now[TEXT_SIZE];
    warn("%s: chosen keys or many copies of keys saturated %s buckets, where "
         "every key passes: expect a rate of %s instead of %s",
         name, count_text(info->saturated, buckets),
         rate_text(info->fpr_now, now), rate_text(info->fpr, promised));
}

void warn_if_overfull(const char *name, const calyx_info *info) {
    /* the keys may be few that repeat; and a tenth more is chance, or little */
    if (info->fpr_now <= 1.1 * info->fpr) return;
    if (info->saturated) warn_saturated(name, info);
    if (info->items <= info->capacity || info->growth > 0) return;
    char there[TEXT_SIZE], planned[TEXT_SIZE], now[TEXT_SIZE],
        promised[TEXT_SIZE];
    const double keys = fmax((double)info->items, round(info->distinct));
    warn("%s: holds about %s keys, but was planned for %s: expect a rate of "
         "%s instead of %s",
         name, count_text((uint64_t)keys, there),
         count_text(info->capacity, planned), rate_text(info->fpr_now, now),
         rate_text(info->fpr, promised));
}
