#!/usr/bin/env python3
"""Run a command and print how many bytes it touched, at most:

    touched.py FILE COMMAND...

  read     what read(2) and the like returned, or what came from the disk, FILE
           having been put out of the cache; whichever is more
  written  what write(2) and the like took, or what the disk is to get by it;
           whichever is more
  memory   the largest it was, mapped files included, of which it has the pages
           that were touched, and those that the system brings along
"""
import os
import sys

path, *command = sys.argv[1:]
fd = os.open(path, os.O_RDONLY)
os.fsync(fd)
os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
os.close(fd)

pid = os.posix_spawnp(command[0], command, os.environ)
os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
with open(f"/proc/{pid}/io") as file:
    io = {name: int(value) for name, value in
          (line.split(": ") for line in file)}
_, status, used = os.wait4(pid, 0)
print("read", max(io["rchar"], io["read_bytes"], 512 * used.ru_inblock))
print("written", max(io["wchar"], io["write_bytes"], 512 * used.ru_oublock))
print("memory", 1024 * used.ru_maxrss)
sys.exit(os.waitstatus_to_exitcode(status))
