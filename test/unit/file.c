/*
 * Filters in files. Under a name stands the old filter or the new one; what
 * cannot be saved or loaded is an error that names the file, and leaves nothing
 * lying about. (test/crash kills the process in between.)
 */
#define _GNU_SOURCE /* O_TMPFILE */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "filter/filter.h"
#include "support.h"
#include "support_files.h"

/* ---- A folder for each test ---------------------------------------------- */

/* Not every file system has files without a name. */
static bool has_no_nameless_files;

int open(const char *file, int flags, ...) {
    va_list rest;
    va_start(rest, flags);
    const unsigned mode =
        flags & (O_CREAT | O_TMPFILE) ? va_arg(rest, unsigned) : 0;
    va_end(rest);
    if (has_no_nameless_files && (flags & O_TMPFILE) == O_TMPFILE) {
        errno = EOPNOTSUPP;
        return -1;
    }
    return (int)syscall(SYS_openat, AT_FDCWD, file, flags, mode);
}

static int make_poor_folder(void **state) {
    has_no_nameless_files = true;
    return make_folder(state);
}

static int remove_folder(void **state) {
    (void)state;
    has_no_nameless_files = false;
    char command[FOLDER_BYTES + 20];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command);
}

/* "f" in the folder. Two such paths can be in use at a time. */
static const char *path_of(const char *name) {
    static char paths[2][PATH_MAX];
    static int turn;
    char *file = paths[turn ^= 1];
    snprintf(file, PATH_MAX, "%s/%s", folder, name);
    return file;
}

static int files_in(const char *file) {
    DIR *dir = opendir(file);
    assert_non_null(dir);
    int files = 0;
    for (const struct dirent *entry; (entry = readdir(dir));)
        files += strcmp(entry->d_name, ".") && strcmp(entry->d_name, "..");
    closedir(dir);
    return files;
}

static mode_t mode_of(const char *file) {
    struct stat is;
    assert_int_equal(stat(file, &is), 0);
    return is.st_mode & 07777;
}

static void write_text(const char *file, const char *text) {
    FILE *out = fopen(file, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static calyx_filter *make_with(const char *text) {
    calyx_filter *f = make_filter((calyx_options){0});
    add(f, text);
    return f;
}

static void save(const calyx_filter *f, const char *file) {
    calyx_error why;
    if (calyx_save(f, file, &why) != CALYX_OK) fail_msg("%s", why.text);
}

static void save_text(const char *text, const char *file) {
    calyx_filter *f = make_with(text);
    save(f, file);
    calyx_free(f);
}

/* Does the file have this key, and not another? */
static bool holds(const char *file, const char *text) {
    calyx_filter *f = load(file);
    const bool holds = has(f, text) && info_of(f).items == 1;
    calyx_free(f);
    return holds;
}

/* ---- There and back ------------------------------------------------------ */

static void assert_same(const calyx_filter *f, const calyx_filter *back) {
    const calyx_info a = info_of(f), b = info_of(back);
    assert_true(same_bodies(f, back));
    assert_int_equal(a.items, b.items);
    assert_int_equal(a.capacity, b.capacity);
    assert_true(a.fpr == b.fpr && a.growth == b.growth && a.strict == b.strict);
    assert_string_equal(calyx_comment(f), calyx_comment(back));
}

static void a_file_makes_the_same_filter_again(void **state) {
    (void)state;
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (int grows = 0; grows < 2; grows++) {
            calyx_filter *f = make_filter((calyx_options){.kind = *kind,
                                                          .capacity = 100,
                                                          .growth = 2 * grows,
                                                          .strict = !grows});
            for (uint64_t i = 0; i < 300; i++) calyx_add_u64(f, i, NULL);
            assert_ok(calyx_set_comment(f, "filed"));
            const char *file = path_of("f");

            save(f, file);
            calyx_filter *loaded = load(file), *mapped = map(file, CALYX_READ);

            assert_same(f, loaded);
            assert_same(f, mapped);
            assert_ok(calyx_verify(mapped, NULL));
            assert_ok(calyx_verify(loaded, NULL));
            assert_true(info_of(mapped).read_only);
            assert_false(info_of(loaded).read_only);
            assert_int_equal(files_in(folder), 1);
            calyx_free(mapped);
            calyx_free(loaded);
            calyx_free(f);
        }
}

static void a_mapped_filter_can_be_saved(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f = make_filter((calyx_options){.kind = *kind});
        add(f, "rose");
        save(f, path_of("f"));
        calyx_filter *mapped = map(path_of("f"), CALYX_READ);
        save(mapped, path_of("g"));
        save(mapped, path_of("f")); /* over itself */
        calyx_filter *again = load(path_of("g"));
        assert_same(f, again);
        calyx_free(again);
        again = load(path_of("f"));
        assert_same(f, again);
        assert_true(has(mapped, "rose"));
        calyx_free(again);
        calyx_free(mapped);
        calyx_free(f);
    }
}

static void a_path_may_be_relative(void **state) {
    (void)state;
    char home[PATH_MAX];
    assert_non_null(getcwd(home, sizeof home));
    assert_int_equal(chdir(folder), 0);
    save_text("rose", "f");
    save_text("iris", "f");
    save_text("tulip", "./g");
    assert_true(holds("f", "iris") && holds("g", "tulip"));
    assert_int_equal(files_in("."), 2);
    assert_int_equal(chdir(home), 0);
}

/* As long as a file's name can be. */
static void a_name_may_be_long(void **state) {
    (void)state;
    char name[256];
    memset(name, 'n', 255);
    name[255] = 0;
    save_text("rose", path_of(name));
    save_text("iris", path_of(name));
    assert_true(holds(path_of(name), "iris"));
    assert_int_equal(files_in(folder), 1);
}

/* ---- Replacement --------------------------------------------------------- */

static void a_reader_of_the_old_file_still_reads_it(void **state) {
    (void)state;
    const char *file = path_of("f");
    save_text("rose", file);
    struct stat before, after;
    assert_int_equal(stat(file, &before), 0);
    const int fd = open(file, O_RDONLY);
    assert_true(fd >= 0);
    calyx_filter *mapped = map(file, CALYX_READ);
    char *bytes = malloc((size_t)before.st_size),
         *again = malloc((size_t)before.st_size);
    assert_int_equal(pread(fd, bytes, (size_t)before.st_size, 0),
                     before.st_size);

    save_text("iris", file);

    assert_int_equal(pread(fd, again, (size_t)before.st_size, 0),
                     before.st_size);
    assert_memory_equal(bytes, again, (size_t)before.st_size);
    assert_true(has(mapped, "rose") && !has(mapped, "iris"));
    assert_ok(calyx_verify(mapped, NULL));
    assert_true(holds(file, "iris"));
    assert_int_equal(stat(file, &after), 0);
    assert_true(before.st_ino != after.st_ino);
    calyx_free(mapped);
    free(bytes);
    free(again);
    close(fd);
}

static void a_link_stays_a_link(void **state) {
    (void)state;
    assert_int_equal(mkdir(path_of("far"), 0777), 0);
    save_text("rose", path_of("far/f"));
    assert_int_equal(symlink("far/f", path_of("link")), 0);
    assert_int_equal(symlink("link", path_of("link to link")), 0);

    save_text("iris", path_of("link to link"));

    struct stat is;
    assert_int_equal(lstat(path_of("link"), &is), 0);
    assert_true(S_ISLNK(is.st_mode));
    assert_int_equal(lstat(path_of("link to link"), &is), 0);
    assert_true(S_ISLNK(is.st_mode));
    assert_int_equal(lstat(path_of("far/f"), &is), 0);
    assert_true(S_ISREG(is.st_mode));
    assert_true(holds(path_of("far/f"), "iris"));
    assert_int_equal(files_in(path_of("far")), 1);
}

/* Other names of the old file keep the old filter. */
static void a_second_name_keeps_the_old_filter(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    assert_int_equal(link(path_of("f"), path_of("g")), 0);
    save_text("iris", path_of("f"));
    assert_true(holds(path_of("f"), "iris"));
    assert_true(holds(path_of("g"), "rose"));
}

/* ---- Permissions --------------------------------------------------------- */

static const mode_t umasks[] = {000, 022, 027, 077, 0177};

static void a_new_file_gets_what_the_umask_leaves(void **state) {
    (void)state;
    const mode_t before = umask(0);
    for (size_t i = 0; i < sizeof umasks / sizeof *umasks; i++) {
        umask(umasks[i]);
        save_text("rose", path_of("f"));
        assert_int_equal(mode_of(path_of("f")), 0666 & ~umasks[i]);
        assert_int_equal(unlink(path_of("f")), 0);
    }
    umask(before);
}

static void a_replaced_file_keeps_its_permissions(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0644, 0640, 0400, 0660, 0666, 0755};
    const mode_t before = umask(0);
    for (size_t i = 0; i < sizeof umasks / sizeof *umasks; i++)
        for (size_t j = 0; j < sizeof modes / sizeof *modes; j++) {
            umask(umasks[i]);
            save_text("rose", path_of("f"));
            assert_int_equal(chmod(path_of("f"), modes[j]), 0);
            save_text("iris", path_of("f"));
            assert_int_equal(mode_of(path_of("f")), modes[j]);
            assert_true(holds(path_of("f"), "iris"));
        }
    umask(before);
}

/* Memory that looks at the new file at every call, by its descriptor,
 * since it may have no name. Saving asks when it is there, empty; and when it
 * is written. */
struct spy {
    bool looks;
    mode_t seen; /* permissions that it had        */
    int most;    /* such files at a time           */
    int names;   /* and names in the folder, then  */
};

static void spy_on_folder(struct spy *spy) {
    if (!spy->looks) return;
    int files = 0;
    for (int fd = 0; fd < 64; fd++) {
        char link[64], file[PATH_MAX] = "";
        struct stat is;
        snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
        if (readlink(link, file, sizeof file - 1) < 0 ||
            strncmp(file, folder, strlen(folder)) != 0 || fstat(fd, &is) != 0)
            continue;
        spy->seen |= is.st_mode & 07777;
        files++;
    }
    if (files > spy->most) spy->most = files;
    if (files && files_in(folder) > spy->names) spy->names = files_in(folder);
}

static void *spy_take(void *context, size_t size, size_t alignment) {
    spy_on_folder(context);
    void *block = aligned_alloc(alignment, (size + 63) / 64 * 64);
    assert_non_null(block);
    return memset(block, 0, size);
}

static void spy_give(void *context, void *block, size_t size) {
    (void)size;
    spy_on_folder(context);
    free(block);
}

static void no_file_is_ever_wider_than_the_last(void **state) {
    (void)state;
    static const mode_t modes[] = {0600, 0640, 0644, 0400};
    const mode_t before = umask(0);
    for (size_t i = 0; i < sizeof umasks / sizeof *umasks; i++)
        for (size_t j = 0; j <= sizeof modes / sizeof *modes; j++) {
            umask(umasks[i]);
            struct spy spy = {0};
            const calyx_memory hooks = {spy_take, spy_give, &spy};
            calyx_filter *f = make_filter((calyx_options){.memory = &hooks});
            const bool replaces = j < sizeof modes / sizeof *modes;
            if (replaces) save(f, path_of("f"));
            if (replaces) assert_int_equal(chmod(path_of("f"), modes[j]), 0);

            spy.looks = true;
            save(f, path_of("f"));
            spy.looks = false;

            assert_int_equal(spy.most, 1); /* it did see it */
            assert_int_equal(spy.names, replaces + has_no_nameless_files);
            assert_int_equal(spy.seen & ~mode_of(path_of("f")), 0);
            calyx_free(f);
            assert_int_equal(unlink(path_of("f")), 0);
        }
    umask(before);
}

/* ---- What cannot be saved ------------------------------------------------ */

static void assert_cannot_save(const char *file, const char *names) {
    calyx_filter *f = make_with("rose");
    calyx_error why = {0};
    assert_int_not_equal(calyx_save(f, file, &why), CALYX_OK);
    if (!strstr(why.text, names)) fail_msg("%s", why.text);
    if (why.status == CALYX_IO) assert_true(why.os_code != 0);
    assert_int_not_equal(calyx_save(f, file, NULL), CALYX_OK);
    calyx_free(f);
}

static void a_filter_is_saved_in_files_only(void **state) {
    (void)state;
    const char *inner = path_of("inner");
    assert_int_equal(mkdir(inner, 0777), 0);
    assert_cannot_save(inner, inner);
    assert_cannot_save(path_of("inner/"), "inner");
    assert_cannot_save(folder, folder);
    assert_int_equal(files_in(inner), 0);

    assert_int_equal(mkfifo(path_of("fifo"), 0666), 0);
    assert_cannot_save(path_of("fifo"), "fifo");
    assert_cannot_save("/dev/null", "/dev/null");
    assert_cannot_save("/dev/full", "/dev/full");
    struct stat is;
    assert_int_equal(stat(path_of("fifo"), &is), 0);
    assert_true(S_ISFIFO(is.st_mode));
    assert_int_equal(files_in(folder), 2);
}

static void a_path_that_leads_nowhere_is_an_error(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    assert_cannot_save(path_of("missing/f"), "missing/f");
    assert_cannot_save(path_of("missing/"), "missing/");
    assert_cannot_save(path_of("f/g"), "f/g"); /* a file is no folder */
    assert_cannot_save("", "");
    assert_cannot_save("/", "/");

    char name[257];
    memset(name, 'n', 256);
    name[256] = 0;
    assert_cannot_save(path_of(name), folder);
    char *longest = malloc(3 * PATH_MAX);
    memset(longest, '/', 3 * PATH_MAX);
    memcpy(longest, folder, strlen(folder));
    longest[3 * PATH_MAX - 2] = 'f';
    longest[3 * PATH_MAX - 1] = 0;
    assert_cannot_save(longest, folder);
    free(longest);
    assert_int_equal(files_in(folder), 1);

    assert_int_equal(symlink("around", path_of("around")), 0);
    assert_cannot_save(path_of("around"), "around");
}

/* An empty file is no file beside the working folder's others. */
static void an_empty_path_leaves_no_file_behind(void **state) {
    (void)state;
    char home[PATH_MAX];
    assert_non_null(getcwd(home, sizeof home));
    assert_int_equal(chdir(folder), 0);
    assert_cannot_save("", "");
    assert_int_equal(files_in("."), 0);
    assert_int_equal(chdir(home), 0);
}

/* Run it as somebody who may not do everything. */
static void as_nobody(void (*does)(void)) {
    const pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        if (geteuid() == 0 && (setegid(65534) != 0 || seteuid(65534) != 0))
            _exit(2);
        does();
        _exit(0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void save_where_forbidden(void) {
    calyx_filter *f = NULL;
    calyx_error why = {0};
    if (calyx_new(&(calyx_options){.capacity = 9}, &f, NULL) != CALYX_OK)
        _exit(3);
    if (calyx_save(f, path_of("f"), &why) != CALYX_IO) _exit(4);
    if (why.os_code != EACCES || !strstr(why.text, folder)) _exit(5);
    calyx_free(f);
}

static void load_what_is_forbidden(void) {
    calyx_filter *f = NULL;
    calyx_error why = {0};
    if (calyx_load(path_of("f"), NULL, &f, &why) != CALYX_IO) _exit(3);
    if (why.os_code != EACCES || !strstr(why.text, folder) || f) _exit(4);
    if (calyx_map(path_of("f"), CALYX_READ, NULL, &f, &why) != CALYX_IO)
        _exit(5);
}

static void without_permission_nothing_happens(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    assert_int_equal(chmod(path_of("f"), 0600), 0);
    assert_int_equal(chmod(folder, 0555), 0);
    as_nobody(save_where_forbidden);
    if (geteuid() == 0) {
        as_nobody(load_what_is_forbidden);
    } else {
        assert_int_equal(chmod(path_of("f"), 0), 0);
        load_what_is_forbidden();
        assert_int_equal(chmod(path_of("f"), 0600), 0);
    }
    assert_int_equal(chmod(folder, 0755), 0);
    assert_int_equal(files_in(folder), 1);
    assert_true(holds(path_of("f"), "rose"));
}

/* ---- Owners ---------------------------------------------------------------
 */

/* Only root can make files of others, and replace them. */
static void a_replaced_file_keeps_its_owner_and_group(void **state) {
    (void)state;
    if (geteuid() != 0) skip();
    save_text("rose", path_of("f"));
    assert_int_equal(chown(path_of("f"), 1001, 1002), 0);
    assert_int_equal(chmod(path_of("f"), 0660), 0);
    save_text("iris", path_of("f"));
    struct stat is;
    assert_int_equal(stat(path_of("f"), &is), 0);
    assert_int_equal(is.st_uid, 1001);
    assert_int_equal(is.st_gid, 1002);
    assert_int_equal(is.st_mode & 07777, 0660);
}

static void save_iris(void) {
    calyx_filter *f = NULL;
    if (calyx_new(&(calyx_options){.capacity = 9}, &f, NULL) != CALYX_OK)
        _exit(3);
    if (calyx_add(f, "iris", 4, NULL) != CALYX_OK) _exit(4);
    if (calyx_save(f, path_of("f"), NULL) != CALYX_OK) _exit(5);
    calyx_free(f);
}

/* A group that can't be restored leaves no more permissions than all others
 * have.
 */
static void another_group_gets_no_more_than_others_had(void **state) {
    (void)state;
    if (geteuid() != 0) skip();
    static const struct {
        mode_t before, after;
    } modes[] = {{0660, 0600}, {0664, 0644}, {0640, 0600},
                 {0646, 0646}, {0666, 0666}, {02775, 0755}};
    assert_int_equal(chown(folder, 65534, 65534), 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        save_text("rose", path_of("f"));
        assert_int_equal(chown(path_of("f"), 1001, 1002), 0);
        assert_int_equal(chmod(path_of("f"), modes[i].before), 0);
        as_nobody(save_iris);
        struct stat is;
        assert_int_equal(stat(path_of("f"), &is), 0);
        assert_int_equal(is.st_uid, 65534);
        assert_int_equal(is.st_gid, 65534);
        assert_int_equal(is.st_mode & 07777, modes[i].after);
        assert_int_equal(unlink(path_of("f")), 0);
    }
}

/* ---- Disks and memory ------------------------------------------------------
 */

/* RLIMIT_FSIZE ends the file at each page in turn. */
static void a_disk_that_gets_full_keeps_the_old_filter(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    calyx_filter *f = make_filter((calyx_options){.bits = 1 << 20});
    add(f, "iris");
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    save(f, path_of("g"));
    struct stat whole;
    assert_int_equal(stat(path_of("g"), &whole), 0);
    assert_int_equal(unlink(path_of("g")), 0);

    for (rlim_t limit = 0; limit < (rlim_t)whole.st_size; limit += 4096 - 64) {
        const struct rlimit tight = {limit, before.rlim_max};
        calyx_error why = {0};
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &tight), 0);
        const calyx_status over = calyx_save(f, path_of("f"), &why);
        const calyx_status beside = calyx_save(f, path_of("g"), NULL);
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);

        assert_int_equal(over, CALYX_IO);
        assert_int_equal(beside, CALYX_IO);
        assert_int_equal(why.os_code, EFBIG);
        assert_non_null(strstr(why.text, path_of("f")));
        assert_true(holds(path_of("f"), "rose"));
        assert_int_equal(files_in(folder), 1);
    }
    signal(SIGXFSZ, handler);
    save(f, path_of("f")); /* there is room again */
    assert_true(holds(path_of("f"), "iris"));
    calyx_free(f);
}

static void *take_if_any(void *context, size_t size, size_t alignment) {
    const bool *any = context;
    return *any ? spy_take(&(struct spy){0}, size, alignment) : NULL;
}

static void release(void *context, void *block, size_t size) {
    (void)context, (void)size;
    free(block);
}

/* Saving takes memory when the new file is there already. */
static void without_memory_the_old_file_stays(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    bool any = true;
    const calyx_memory hooks = {take_if_any, release, &any};
    calyx_filter *f = make_filter((calyx_options){.memory = &hooks});
    any = false;
    calyx_error why;
    assert_int_equal(calyx_save(f, path_of("f"), &why), CALYX_NO_MEMORY);
    assert_non_null(strstr(why.text, folder));
    assert_true(holds(path_of("f"), "rose"));
    assert_int_equal(files_in(folder), 1);
    calyx_free(f);
}

/* What another process left behind, or made to trap us, is not touched. */
static void a_file_in_the_way_is_not_touched(void **state) {
    (void)state;
    save_text("iris", path_of("f")); /* a new one would need no other name */
    char name[100];
    for (int i = 0; i < 3; i++) {
        snprintf(name, sizeof name, ".f.%ld.%d.new", (long)getpid(), i);
        if (i == 0)
            write_text(path_of(name), "mine");
        else if (i == 1)
            assert_int_equal(symlink("victim", path_of(name)), 0);
        else
            assert_int_equal(mkdir(path_of(name), 0777), 0);
    }
    save_text("rose", path_of("f"));
    assert_true(holds(path_of("f"), "rose"));
    assert_int_equal(files_in(folder), 4);
    assert_int_equal(access(path_of("victim"), F_OK), -1);
    snprintf(name, sizeof name, ".f.%ld.0.new", (long)getpid());
    struct stat is;
    assert_int_equal(stat(path_of(name), &is), 0);
    assert_int_equal(is.st_size, 4);
}

/* ---- What cannot be loaded ----------------------------------------------- */

static void assert_cannot_open(const char *file, const char *says) {
    calyx_filter *f = NULL;
    calyx_error why;
    for (int i = 0; i < 3; i++) {
        why = (calyx_error){0};
        const calyx_status status =
            i == 0 ? calyx_load(file, NULL, &f, &why)
                   : calyx_map(file, i == 1 ? CALYX_READ : CALYX_WRITE, NULL,
                               &f, &why);
        assert_int_not_equal(status, CALYX_OK);
        assert_int_equal(why.status, status);
        assert_null(f);
        if (!strstr(why.text, file) || (i < 2 && !strstr(why.text, says)))
            fail_msg("%s", why.text);
        if (status == CALYX_IO) assert_true(why.os_code != 0);
    }
}

/* A FIFO would make it wait; the alarm says so. */
static void what_is_no_filter_is_not_opened(void **state) {
    (void)state;
    alarm(300);
    assert_cannot_open(path_of("missing"), "No such file");
    assert_cannot_open(folder, "not a regular file");
    assert_int_equal(mkfifo(path_of("fifo"), 0666), 0);
    assert_cannot_open(path_of("fifo"), "not a regular file");
    assert_cannot_open("/dev/zero", "not a regular file");
    assert_cannot_open("/dev/null", "not a regular file");
    write_text(path_of("empty"), "");
    assert_cannot_open(path_of("empty"), "empty");
    write_text(path_of("short"), "rose");
    assert_cannot_open(path_of("short"), "");
    char text[5000];
    memset(text, 'a', sizeof text);
    text[sizeof text - 1] = 0;
    write_text(path_of("text"), text);
    assert_cannot_open(path_of("text"), "not a calyx filter");
    alarm(0);
}

static void a_limit_holds_for_files(void **state) {
    (void)state;
    save_text("rose", path_of("f"));
    struct stat is;
    assert_int_equal(stat(path_of("f"), &is), 0);
    calyx_open_options how = {.most_bytes = (uint64_t)is.st_size - 1};
    calyx_filter *f = NULL;
    assert_int_equal(calyx_load(path_of("f"), &how, &f, NULL),
                     CALYX_BAD_ARGUMENT);
    assert_int_equal(calyx_map(path_of("f"), CALYX_READ, &how, &f, NULL),
                     CALYX_BAD_ARGUMENT);
    how.most_bytes++;
    assert_ok(calyx_load(path_of("f"), &how, &f, NULL));
    calyx_free(f);
}

static int open_files(void) {
    return files_in("/proc/self/fd");
}

/* Neither when all goes well, nor when it does not. */
static void no_file_is_left_open(void **state) {
    (void)state;
    const int before = open_files();
    calyx_filter *f = NULL;
    save_text("rose", path_of("f"));
    assert_true(holds(path_of("f"), "rose"));
    calyx_filter *reader = map(path_of("f"), CALYX_READ);
    assert_int_equal(open_files(), before); /* a mapping needs none */
    calyx_filter *writer = NULL;
    assert_ok(calyx_map(path_of("f"), CALYX_WRITE, NULL, &writer, NULL));
    assert_int_not_equal(calyx_map(path_of("f"), CALYX_WRITE, NULL, &f, NULL),
                         CALYX_OK);
    calyx_free(writer);
    calyx_free(reader);
    write_text(path_of("text"), "some text");
    assert_int_not_equal(calyx_load(path_of("text"), NULL, &f, NULL), CALYX_OK);
    assert_int_not_equal(
        calyx_map(path_of("text"), CALYX_WRITE, NULL, &f, NULL), CALYX_OK);
    assert_int_not_equal(calyx_load(folder, NULL, &f, NULL), CALYX_OK);
    assert_cannot_save(folder, folder);
    assert_cannot_save("", "");
    assert_int_equal(open_files(), before);
}

/* ---- Saving while others add --------------------------------------------- */

enum { ADDERS = 2, SAVES = 20 };

struct adder {
    calyx_filter *f;
    uint64_t start, added; /* `added` numbers from start on are in */
    bool stop;
    pthread_t thread;
};

static void *keep_adding(void *context) {
    struct adder *adder = context;
    for (uint64_t i = 0; !__atomic_load_n(&adder->stop, __ATOMIC_RELAXED);
         i++) {
        if (calyx_add_u64(adder->f, adder->start + i, NULL) != CALYX_OK) break;
        __atomic_store_n(&adder->added, i + 1, __ATOMIC_RELEASE);
        if (i >= 200000) break; /* large enough */
    }
    return NULL;
}

static void assert_saved_whole(calyx_filter *f, struct adder *adders) {
    uint64_t added[ADDERS];
    for (int i = 0; i < ADDERS; i++)
        added[i] = __atomic_load_n(&adders[i].added, __ATOMIC_ACQUIRE);
    save(f, path_of("f"));
    calyx_filter *back = load(path_of("f"));
    for (int i = 0; i < ADDERS; i++)
        for (uint64_t j = 0; j < added[i]; j++)
            assert_true(calyx_has_u64(back, adders[i].start + j));
    calyx_free(back);
}

/* With room for all, and growing all the while. */
static void a_file_has_every_key_added_before_it(void **state) {
    (void)state;
    for (const char *const *kind = adding_kinds(); *kind; kind++)
        for (int grows = 0; grows < 2; grows++) {
            if (!kind_named(*kind)->atomic_kernels) continue;
            calyx_filter *f =
                make_filter((calyx_options){.kind = *kind,
                                            .capacity = grows ? 100 : 400000,
                                            .growth = grows ? 1.25 : 0,
                                            .concurrent = true});
            struct adder adders[ADDERS] = {0};
            for (uint64_t i = 0; i < ADDERS; i++) {
                adders[i].f = f;
                adders[i].start = i << 32;
                assert_int_equal(pthread_create(&adders[i].thread, NULL,
                                                keep_adding, &adders[i]),
                                 0);
            }
            for (int i = 0; i < SAVES; i++) assert_saved_whole(f, adders);
            for (int i = 0; i < ADDERS; i++)
                __atomic_store_n(&adders[i].stop, true, __ATOMIC_RELAXED);
            for (int i = 0; i < ADDERS; i++)
                pthread_join(adders[i].thread, NULL);
            assert_saved_whole(f, adders);
            calyx_free(f);
        }
}

#define IN_RICH_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

/* The same where there are no nameless files. */
#define IN_POOR_FOLDER(test)                                     \
    {                                                            \
#test " without nameless files", test, make_poor_folder, \
            remove_folder, NULL                                  \
    }

static bool put_in_stream(void *context, const void *bytes, size_t size) {
    return fwrite(bytes, 1, size, context) == size;
}

static void a_file_that_the_caller_writes_can_be_mapped(void **state) {
    (void)state;
    EACH_KIND(kind) {
        calyx_filter *f =
            make_filter((calyx_options){.kind = *kind, .capacity = 9000});
        calyx_add(f, "rose", 4, NULL);
        FILE *const to = fopen(path_of("written"), "wb");
        assert_non_null(to);
        assert_ok(calyx_write(f, put_in_stream, to, NULL));
        assert_int_equal(fclose(to), 0);
        calyx_free(f);
        f = map(path_of("written"), CALYX_READ);
        assert_int_equal(calyx_has(f, "rose", 4),
                         (calyx_kind_can(*kind) & CALYX_CAN_ADD) != 0);
        calyx_free(f);
    }
    FILE *const full = fopen("/dev/full", "wb");
    calyx_filter *f = make_filter((calyx_options){.capacity = 9000});
    assert_non_null(full);
    setbuf(full, NULL);
    assert_int_equal(calyx_write(f, put_in_stream, full, NULL), CALYX_IO);
    fclose(full);
    calyx_free(f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_RICH_FOLDER(a_file_makes_the_same_filter_again),
        IN_RICH_FOLDER(a_mapped_filter_can_be_saved),
        IN_RICH_FOLDER(a_path_may_be_relative),
        IN_RICH_FOLDER(a_name_may_be_long),
        IN_RICH_FOLDER(a_reader_of_the_old_file_still_reads_it),
        IN_RICH_FOLDER(a_link_stays_a_link),
        IN_RICH_FOLDER(a_second_name_keeps_the_old_filter),
        IN_RICH_FOLDER(a_new_file_gets_what_the_umask_leaves),
        IN_RICH_FOLDER(a_replaced_file_keeps_its_permissions),
        IN_RICH_FOLDER(no_file_is_ever_wider_than_the_last),
        IN_RICH_FOLDER(a_replaced_file_keeps_its_owner_and_group),
        IN_RICH_FOLDER(another_group_gets_no_more_than_others_had),
        IN_RICH_FOLDER(a_filter_is_saved_in_files_only),
        IN_RICH_FOLDER(a_path_that_leads_nowhere_is_an_error),
        IN_RICH_FOLDER(an_empty_path_leaves_no_file_behind),
        IN_RICH_FOLDER(without_permission_nothing_happens),
        IN_RICH_FOLDER(a_disk_that_gets_full_keeps_the_old_filter),
        IN_RICH_FOLDER(without_memory_the_old_file_stays),
        IN_RICH_FOLDER(a_file_in_the_way_is_not_touched),
        IN_RICH_FOLDER(what_is_no_filter_is_not_opened),
        IN_RICH_FOLDER(a_limit_holds_for_files),
        IN_RICH_FOLDER(no_file_is_left_open),
        IN_RICH_FOLDER(a_file_has_every_key_added_before_it),
        IN_RICH_FOLDER(a_file_that_the_caller_writes_can_be_mapped),
        IN_POOR_FOLDER(a_reader_of_the_old_file_still_reads_it),
        IN_POOR_FOLDER(a_new_file_gets_what_the_umask_leaves),
        IN_POOR_FOLDER(a_replaced_file_keeps_its_permissions),
        IN_POOR_FOLDER(no_file_is_ever_wider_than_the_last),
        IN_POOR_FOLDER(a_replaced_file_keeps_its_owner_and_group),
        IN_POOR_FOLDER(another_group_gets_no_more_than_others_had),
        IN_POOR_FOLDER(without_permission_nothing_happens),
        IN_POOR_FOLDER(a_disk_that_gets_full_keeps_the_old_filter),
        IN_POOR_FOLDER(without_memory_the_old_file_stays),
        IN_POOR_FOLDER(a_file_in_the_way_is_not_touched),
        IN_POOR_FOLDER(no_file_is_left_open),
    };
    return RUN_TESTS(tests);
}
