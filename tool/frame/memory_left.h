/*
 * How much memory this process may still take: the least of what the machine
 * has available (/proc/meminfo), what each control group of the process has
 * left, from its own up to the root, and what RLIMIT_AS and RLIMIT_DATA leave.
 *
 * A container, a systemd unit or a batch job is a control group somewhere below
 * the mount: /proc/self/cgroup has its path, /proc/self/mountinfo the folder
 * where control groups are mounted. Version 2 and the memory controller of
 * version 1 are known. The page cache that the kernel drops first
 * (inactive_file) counts as left.
 */
#ifndef CALYX_TOOL_MEMORY_LEFT_H
#define CALYX_TOOL_MEMORY_LEFT_H

#include <stdint.h>

/* In bytes. `root` stands before /proc and the mounts: "", or a folder of a
 * test. What cannot be read is no limit; without /proc/meminfo, 1 GiB. */
uint64_t memory_left(const char *root);

#endif
