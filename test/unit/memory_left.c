/* How much memory the command may take: tool/frame/memory_left.h. Each test
 * writes the files of /proc and of control groups below a folder of its own. */
#define _GNU_SOURCE /* nftw, __rlimit_resource_t */
#include "frame/memory_left.h"

#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support_files.h"

#define MIB (UINT64_C(1) << 20)

static char root[PATH_MAX];

static int remove_one(const char *name, const struct stat *is, int type,
                      struct FTW *at) {
    (void)is, (void)type, (void)at;
    return remove(name);
}

static int start(void **state) {
    if (make_folder(state) != 0) return -1;
    snprintf(root, sizeof root, "%s/root", folder);
    return mkdir(root, 0700);
}

static int end(void **state) {
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS) == 0
               ? end_folder(state)
               : -1;
}

/* Write ROOT/NAME, and the folders that it needs. */
static void write_below(const char *name, const char *text) {
    char full[2 * PATH_MAX];
    snprintf(full, sizeof full, "%s%s", root, name);
    for (char *at = full + strlen(root) + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(full, 0700);
        *at = '/';
    }
    FILE *const out = fopen(full, "w");
    assert_non_null(out);
    fputs(text, out);
    assert_int_equal(fclose(out), 0);
}

static void write_number(const char *group, const char *file, uint64_t mib) {
    char name[200], text[32];
    snprintf(name, sizeof name, "/sys/fs/cgroup%s/%s", group, file);
    snprintf(text, sizeof text, "%llu\n", (unsigned long long)(mib * MIB));
    write_below(name, text);
}

/* A group of version 2, in MiB. */
static void group2(const char *group, uint64_t most, uint64_t used) {
    write_number(group, "memory.max", most);
    write_number(group, "memory.current", used);
}

/* A group of the memory controller of version 1, in MiB. */
static void group1(const char *group, uint64_t most, uint64_t used) {
    char name[100];
    snprintf(name, sizeof name, "/memory%s", group);
    write_number(name, "memory.limit_in_bytes", most);
    write_number(name, "memory.usage_in_bytes", used);
}

static void machine_has(uint64_t mib) {
    char text[100];
    snprintf(text, sizeof text,
             "MemTotal:       99999999 kB\nMemAvailable:   %llu kB\n",
             (unsigned long long)(mib * 1024));
    write_below("/proc/meminfo", text);
}

static void version2(const char *path_of_process, const char *mounted) {
    char text[500];
    machine_has(4000);
    snprintf(text, sizeof text, "0::%s\n", path_of_process);
    write_below("/proc/self/cgroup", text);
    snprintf(text, sizeof text,
             "20 1 0:4 / /proc rw - proc proc rw\n"
             "30 20 0:26 %s /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 "
             "cgroup2 rw,nsdelegate\n",
             mounted);
    write_below("/proc/self/mountinfo", text);
}

static void version1(const char *path_of_process, const char *mounted) {
    char text[1000];
    machine_has(4000);
    snprintf(text, sizeof text,
             "9:name=systemd:/elsewhere\n4:hugetlb,memory:%s\n1:cpu:/\n0::/\n",
             path_of_process);
    write_below("/proc/self/cgroup", text);
    snprintf(text, sizeof text,
             "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
             "34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
             "35 31 0:32 %s /sys/fs/cgroup/memory rw - cgroup cgroup "
             "rw,hugetlb,memory\n"
             "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
             mounted);
    write_below("/proc/self/mountinfo", text);
}

static void assert_left(uint64_t mib) {
    assert_int_equal(memory_left(root), mib * MIB);
}

/* ---- The machine ----------------------------------------------------------
 */

static void without_groups_the_machine_decides(void **state) {
    (void)state;
    machine_has(3000);
    assert_left(3000);
}

static void without_any_file_it_is_1_gib(void **state) {
    (void)state;
    assert_left(1024);
    write_below("/proc/meminfo", "MemAvailable: 99999999999999999999999 kB\n");
    assert_left(1024);
    write_below("/proc/meminfo", "MemAvailable: 18446744073709551615 kB\n");
    assert_left(1024);
}

/* ---- Version 2 ------------------------------------------------------------
 */

static void a_group_of_version_2_is_found_below_the_mount(void **state) {
    (void)state;
    version2("/user.slice/run-7.scope", "/");
    group2("/user.slice/run-7.scope", 300, 100);
    assert_left(200);
}

static void the_least_of_all_levels_counts(void **state) {
    (void)state;
    version2("/a/b/c", "/");
    group2("/a/b/c", 900, 100);
    group2("/a/b", 500, 300);
    write_below("/sys/fs/cgroup/a/memory.max", "max\n");
    assert_left(200);
    group2("/a", 400, 350);
    assert_left(50);
    group2("", 60, 40);
    assert_left(20);
    group2("/a/b/c", 10, 0);
    assert_left(10);
    group2("/a/b/c/d", 5, 0); /* not a group of this process */
    group2("/other", 5, 0);
    assert_left(10);
}

static void memory_high_is_a_limit_too(void **state) {
    (void)state;
    version2("/a", "/");
    group2("/a", 300, 100);
    write_number("/a", "memory.high", 250);
    assert_left(150);
    write_below("/sys/fs/cgroup/a/memory.high", "max\n");
    assert_left(200);
}

static void page_cache_that_can_be_dropped_counts_as_left(void **state) {
    (void)state;
    version2("/a", "/");
    group2("/a", 300, 250);
    write_below("/sys/fs/cgroup/a/memory.stat",
                "anon 1\ninactive_file_of_others 5\ninactive_file 104857600\n");
    assert_left(150);
    write_below("/sys/fs/cgroup/a/memory.stat",
                "inactive_file 1048576000\n"); /* more than is used */
    assert_left(300);
}

static void a_container_sees_its_group_as_the_mount(void **state) {
    (void)state;
    version2("/", "/");
    group2("", 100, 25);
    assert_left(75);
    version2("/docker/abc/worker", "/docker/abc"); /* seen from outside */
    group2("/worker", 100, 50);
    assert_left(50);
    version2("/docker/abcdef/worker", "/docker/abc");
    assert_left(75);
    version2("/../other/worker", "/");
    assert_left(75);
}

static void a_group_that_is_over_its_limit_has_nothing_left(void **state) {
    (void)state;
    version2("/a", "/");
    group2("/a", 100, 101);
    assert_left(0);
}

static void what_is_no_number_is_no_limit(void **state) {
    (void)state;
    const char *const garbage[] = {"max\n",
                                   "",
                                   "\n",
                                   "-1\n",
                                   "12abc\n",
                                   "nonsense",
                                   "99999999999999999999"};
    version2("/a", "/");
    write_number("/a", "memory.current", 1);
    for (size_t i = 0; i < sizeof garbage / sizeof *garbage; i++) {
        write_below("/sys/fs/cgroup/a/memory.max", garbage[i]);
        assert_left(4000);
    }
    write_number("/a", "memory.max", 10);
    assert_left(9);
    write_below("/sys/fs/cgroup/a/memory.current", "nonsense");
    assert_left(10);
}

static void garbage_in_the_lists_is_passed_over(void **state) {
    (void)state;
    version2("/a", "/");
    group2("/a", 100, 0);
    assert_left(100);
    write_below("/proc/self/mountinfo",
                "\n-\n - \n - cgroup2\n1 2 3 - cgroup2 x rw\n"
                "1 2 3 / /sys/fs/cgroup rw - cgroup2\n");
    assert_left(4000);
    version2("/a", "/");
    write_below("/proc/self/cgroup", "\n:\n::\nx:y\n0:\n");
    assert_left(4000);
    char text[9000];
    memset(text, 'x', sizeof text);
    memcpy(text, "0::/", 4);
    text[sizeof text - 1] = '\0';
    write_below("/proc/self/cgroup", text);
    assert_left(4000);
}

/* ---- Version 1 ------------------------------------------------------------
 */

static void the_memory_controller_of_version_1_is_found(void **state) {
    (void)state;
    version1("/slurm/job_7", "/");
    group1("/slurm/job_7", 8000, 0);
    group1("/slurm", 700, 500);
    group1("", 8796093022207, 900); /* what "no limit" looks like */
    assert_left(200);
    group1("/elsewhere", 1, 0);
    assert_left(200);
    write_below("/sys/fs/cgroup/memory/slurm/memory.stat",
                "inactive_file 7\ntotal_inactive_file 104857600\n");
    assert_left(300);
}

static void a_container_of_version_1_sees_its_group_as_the_mount(void **state) {
    (void)state;
    version1("/docker/abc", "/docker/abc");
    group1("", 300, 100);
    assert_left(200);
}

/* ---- Limits of the process --------------------------------------------------
 */

/* With soft limits far above what the test itself takes. */
static void the_limits_of_the_process_count(void **state) {
    (void)state;
    const __rlimit_resource_t limits[] = {RLIMIT_AS, RLIMIT_DATA};
    const uint64_t pages =
        (UINT64_C(1) << 50) / (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t few = 10 * MIB / (uint64_t)sysconf(_SC_PAGESIZE);
    char text[200];
    machine_has(4000);
    for (int i = 0; i < 2; i++) {
        struct rlimit was, less;
        assert_int_equal(getrlimit(limits[i], &was), 0);
        less = was;
        less.rlim_cur = (UINT64_C(1) << 50) + 100 * MIB;
        if (was.rlim_max < less.rlim_cur) skip();
        snprintf(text, sizeof text, "%llu 3 2 1 0 %llu 0\n",
                 (unsigned long long)(i == 0 ? pages + few : few),
                 (unsigned long long)(i == 0 ? few : pages + few));
        write_below("/proc/self/statm", text);
        assert_int_equal(setrlimit(limits[i], &less), 0);
        const uint64_t left = memory_left(root);
        write_below("/proc/self/statm", "nonsense");
        const uint64_t unknown = memory_left(root);
        assert_int_equal(setrlimit(limits[i], &was), 0);
        assert_int_equal(left, 90 * MIB);
        assert_int_equal(unknown, 4000 * MIB);
    }
}

#define HERE(test) cmocka_unit_test_setup_teardown(test, start, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        HERE(without_groups_the_machine_decides),
        HERE(without_any_file_it_is_1_gib),
        HERE(a_group_of_version_2_is_found_below_the_mount),
        HERE(the_least_of_all_levels_counts),
        HERE(memory_high_is_a_limit_too),
        HERE(page_cache_that_can_be_dropped_counts_as_left),
        HERE(a_container_sees_its_group_as_the_mount),
        HERE(a_group_that_is_over_its_limit_has_nothing_left),
        HERE(what_is_no_number_is_no_limit),
        HERE(garbage_in_the_lists_is_passed_over),
        HERE(the_memory_controller_of_version_1_is_found),
        HERE(a_container_of_version_1_sees_its_group_as_the_mount),
        HERE(the_limits_of_the_process_count),
    };
    return RUN_TESTS(tests);
}
