#!/usr/bin/env python3
"""A command that could not write says so: shown by failing its system calls.

    faults.py CALYX [SCENARIO]...

Each of the system calls below fails in turn, in each scenario (a run of the
command CALYX, by default all of them). Afterwards:

  exit 0  only if the data is there, for a run that nothing is done to;
  exit 2  with a message, and what was there before is there still. Where a file
          is replaced, it is the old one to the byte, or if the call came after
          the renaming, the new one. 'add' may have saved what it added before;
  either way no other name is left in the folder, and the end comes.

A call that is interrupted (EINTR) is tried again: that is exit 0.

It takes strace, and a server with the module in the variable CALYX_MODULE. Of
each call the last few are failed; all of them, and with more errors, if
CALYX_LONG is set.
"""

import concurrent.futures
import gzip
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "module"))
from servers import Server  # noqa: E402

LONG = bool(os.environ.get("CALYX_LONG"))
LAST = 1000 if LONG else 5
HANGS = 120  # seconds

# The first error alone, unless CALYX_LONG is set; but always EINTR, if it is
# among them.
ERRORS = {
    "openat": "EMFILE EACCES EIO ENOSPC",
    "read": "EIO EINTR",
    "write": "ENOSPC EIO EDQUOT EINTR",
    "pread64": "EIO EINTR",
    "pwrite64": "ENOSPC EIO EINTR",
    "close": "EIO EDQUOT",
    "fsync": "EIO ENOSPC EINTR",
    "fdatasync": "EIO EINTR",
    "msync": "EIO ENOMEM EINTR",
    "mmap": "ENOMEM",
    "rename": "EIO EACCES ENOSPC",
    "renameat2": "EIO EACCES ENOSPC",
    "link": "EIO EPERM",
    "linkat": "EIO EPERM",
    "unlink": "EIO EACCES",
    "unlinkat": "EIO EACCES",
    "fstat": "EIO",
    "stat": "EACCES",
    "newfstatat": "EACCES EIO",
    "statx": "EACCES",
    "fchmod": "EPERM EIO",
    "fchown": "EIO",
    "flock": "ENOLCK EINTR",
    "lseek": "EINVAL",
    "ftruncate": "ENOSPC",
    "fallocate": "ENOSPC",
}
NAMING = {"rename", "renameat2", "linkat", "link"}

OLD = [f"old {i}" for i in range(300)]
NEW = [f"new {i}" for i in range(300)]
MANY = [f"new {i}" for i in range(20000)]  # more than fit into 64 KiB

violations = []
count = {}


def text(lines):
    return "".join(line + "\n" for line in lines).encode()


class Clean:
    """The command, with nothing done to it."""

    def __init__(self, calyx):
        self.calyx = calyx

    def __call__(self, *words, input=b"", folder=None):
        return subprocess.run([self.calyx, *words], cwd=folder, input=input,
                              capture_output=True, timeout=HANGS)

    def has_all(self, path, lines, folder):
        """Of the lines, none is denied."""
        done = self("check", "-v", "-c", "-f", path, input=text(lines),
                    folder=folder)
        return done.returncode == 1 and done.stdout == b"0\n"

    def is_sealed(self, path, folder):
        return self("verify", path, folder=folder).returncode == 0


class Scenario:
    """A run of the command in a folder with some files, one of which, `target`,
    it changes or makes."""

    target = "f.calyx"
    replaced = True  # as a whole, so that it is old or new to the byte
    kept = ()        # other names that may be left in trouble
    may_stay = OLD   # what a target that was there before has

    def __init__(self, name, words, files, wanted, absent=(), **more):
        self.name, self.words, self.files = name, words, files
        self.wanted, self.absent = wanted, absent
        for what, value in more.items():
            setattr(self, what, value)

    def reset(self, folder):
        for name in os.listdir(folder):
            os.unlink(os.path.join(folder, name))
        for name, data in self.files.items():
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)

    def look_at_done(self, clean, folder):
        """Why the data is not there; None if it is."""
        if not clean.has_all(self.target, self.wanted, folder):
            return "keys are missing"
        if self.absent and clean.has_all(self.target, self.absent, folder):
            return "keys that were removed are there"
        if not clean.is_sealed(self.target, folder):
            return "the file is not sealed"
        return None

    def look_at_failed(self, clean, folder, after_naming):
        """Why what was there is not there still; None if it is."""
        path = os.path.join(folder, self.target)
        before = self.files.get(self.target)
        if not os.path.exists(path):
            return "the file is gone" if before else None
        with open(path, "rb") as file:
            data = file.read()
        if self.replaced and data != before:
            if not after_naming:
                return "the file was changed"
            return self.look_at_done(clean, folder)
        if before and not clean.has_all(self.target, self.may_stay, folder):
            return "keys that were there are missing"
        return None


class Push(Scenario):
    """From a file into a server, over another filter if `swaps`."""

    def __init__(self, name, server, old, new, swaps):
        words = ["push", "--wait", "5s", "f.calyx", server.url + "/key"]
        if swaps:
            words.insert(1, "--swap")
        super().__init__(name, words, {"f.calyx": new, "old.calyx": old}, NEW)
        self.server, self.swaps = server, swaps

    def reset(self, folder):
        super().reset(folder)
        client = self.server.client()
        client("FLUSHALL")
        client.close()
        if self.swaps:
            done = self.server.clean("push", "old.calyx",
                                     self.server.url + "/key", folder=folder)
            assert done.returncode == 0, done.stderr

    def denies(self, clean, lines):
        """Does the server say of any of the lines that it is not there?"""
        done = clean("check", "-v", "-q", "--wait", "5s", "--server",
                     self.server.url + "/key", input=text(lines))
        return {0: True, 1: False, 2: None}[done.returncode]

    def look_at_done(self, clean, folder):
        return None if self.denies(clean, NEW) is False else (
            "keys are missing in the server")

    def look_at_failed(self, clean, folder, after_naming):
        answers = [self.denies(clean, lines) for lines in (OLD, NEW)]
        if self.swaps and False not in answers:
            return "neither the old nor the new filter is in the server"
        if not self.swaps and answers[1]:
            return "half a filter answers in the server"
        return None


# ---- The walk ----------------------------------------------------------------


class Calls:
    """The system calls of a clean run from the first line of main on: name,
    which of this name in this thread, and whether the file has its name."""

    def __init__(self, calyx, scenario, folder):
        scenario.reset(folder)
        with tempfile.NamedTemporaryFile("r") as log:
            done = subprocess.run(
                ["strace", "-f", "-qq", "-o", log.name, calyx, *scenario.words],
                cwd=folder, stdin=subprocess.DEVNULL, capture_output=True,
                timeout=HANGS)
            lines = log.read().splitlines()
        assert done.returncode == 0, (scenario.name, done.stderr)
        main = lines[0].split()[0]
        of_main = [re.match(r"\d+ +(\w+)\((.*)", line) for line in lines
                   if line.split()[0] == main]
        seen, started, named, self.all = {}, False, False, []
        for name, rest in (found.groups() for found in of_main if found):
            seen[name] = seen.get(name, 0) + 1
            started = started or (name == "fcntl" and "F_GETFD" in rest)
            if started and name in ERRORS:
                self.all.append((name, seen[name], named))
            named = named or name in NAMING


def faults_of(calls):
    for name, number, named in calls.all:
        of_name = [n for which, n, _ in calls.all if which == name]
        if number not in of_name[-LAST:]:
            continue
        errors = ERRORS[name].split()
        for error in errors if LONG else errors[:1] + (
                ["EINTR"] if "EINTR" in errors else []):
            yield name, number, error, named


def run_fault(calyx, clean, scenario, folder, fault):
    name, number, error, named = fault
    case = f"{scenario.name}: {name} #{number} {error}"
    scenario.reset(folder)
    try:
        done = subprocess.run(
            ["strace", "-f", "--seccomp-bpf", "-qq", "-o", "/dev/null",
             "-e", "trace=" + name,
             "-e", f"inject={name}:error={error}:when={number}",
             calyx, *scenario.words], cwd=folder, stdin=subprocess.DEVNULL,
            capture_output=True, timeout=HANGS)
    except subprocess.TimeoutExpired:
        return f"{case}: it hangs"
    wrong = judge(clean, scenario, folder, fault, done)
    return f"{case}: exit {done.returncode}: {wrong}: {done.stderr[:300]}" if (
        wrong) else None


def judge(clean, scenario, folder, fault, done):
    name, _, error, named = fault
    if done.returncode not in (0, 2):
        return "it ended in another way"
    if error == "EINTR" and done.returncode != 0:
        return "an interrupted call was not tried again"
    # the file itself is judged last: that may leave marks in it
    allowed = {*scenario.files, scenario.target}
    if done.returncode == 2:
        allowed |= set(scenario.kept)
    others = set(os.listdir(folder)) - allowed
    if others and name not in ("unlink", "unlinkat"):
        return f"left behind: {others}"
    if done.returncode == 0:
        return scenario.look_at_done(clean, folder)
    if not done.stderr.startswith(b"calyx " + scenario.words[0].encode()):
        return "it does not say why"
    return scenario.look_at_failed(clean, folder, named)


def walk(calyx, clean, scenario, folder):
    calls = Calls(calyx, scenario, folder)
    assert scenario.look_at_done(clean, folder) is None, scenario.name
    faults = list(faults_of(calls))
    found = [run_fault(calyx, clean, scenario, folder, fault)
             for fault in faults]
    count[scenario.name] = len(faults)
    for violation in filter(None, found):
        print("violation:", violation, file=sys.stderr, flush=True)
        violations.append(violation)


# ---- The scenarios -----------------------------------------------------------


def made(clean, folder, lines, *words):
    done = clean("build", "-n", "1000", "-p", "1e-8", *words, "-o", "made",
                 input=text(lines), folder=folder)
    assert done.returncode == 0, done.stderr
    path = os.path.join(folder, "made")
    with open(path, "rb") as file:
        data = file.read()
    os.unlink(path)
    return data


def scenarios(clean, folder, server):
    old, new = (made(clean, folder, lines) for lines in (OLD, NEW))
    counting = made(clean, folder, OLD, "--kind", "counting")
    parts = {f"{i}.part": made(clean, folder, NEW, "--part", f"{i}/2")
             for i in (1, 2)}
    both = OLD + NEW
    lines = {"lines": text(NEW)}
    url = server.url + "/pulled"
    with open(os.path.join(folder, "new.calyx"), "wb") as file:
        file.write(new)
    assert clean("push", "new.calyx", server.pulled, folder=folder
                 ).returncode == 0
    os.unlink(os.path.join(folder, "new.calyx"))
    add = ["add", "-j1", "f.calyx", "lines"]
    return [
        Scenario("add", add, {"f.calyx": old, **lines}, both, replaced=False),
        Scenario("add --new", ["add", "--new", *add[1:]],
                 {"f.calyx": old, **lines}, both, replaced=False),
        Scenario("add --create",
                 ["add", "--create", "-n", "1000", "-p", "1e-8", *add[1:]],
                 lines, NEW, replaced=False),
        Scenario("add, counting", add, {"f.calyx": counting, **lines}, both,
                 replaced=False),
        Scenario("add, packed", ["add", "-j1", "f.calyx.gz", "lines"],
                 {"f.calyx.gz": gzip.compress(old), **lines}, both,
                 target="f.calyx.gz", replaced=False),
        Scenario("build", ["build", "--force", "-j1", "-p", "1e-8", "-o",
                           "f.calyx", "lines"],
                 {"f.calyx": old, **lines}, NEW),
        Scenario("build, packed", ["build", "--force", "-j1", "-p", "1e-8",
                                   "-o", "f.calyx.gz", "lines"],
                 {"f.calyx.gz": gzip.compress(old), **lines}, NEW,
                 target="f.calyx.gz"),
        Scenario("build, spilled", ["build", "--force", "-j1", "-S64KiB",
                                    "-T.", "-p", "1e-6", "-o", "f.calyx",
                                    "lines"],
                 {"f.calyx": old, "lines": text(MANY)}, MANY),
        Scenario("build, static", ["build", "--force", "-j1", "-S64KiB", "-T.",
                                   "--kind", "ribbon", "-p", "1e-6", "-o",
                                   "f.calyx", "lines"],
                 {"f.calyx": old, "lines": text(MANY)}, MANY),
        Scenario("join", ["join", "--force", "-j1", "-o", "f.calyx", "1.part",
                          "2.part"],
                 {"f.calyx": old, **parts}, NEW),
        Scenario("merge", ["merge", "--force", "-o", "f.calyx", "a.calyx",
                           "b.calyx"],
                 {"f.calyx": old, "a.calyx": old, "b.calyx": new}, both),
        Scenario("remove", ["remove", "-j1", "f.calyx", "lines"],
                 {"f.calyx": counting, "lines": text(OLD[:10])}, OLD[10:],
                 OLD[:10]),
        Scenario("freeze", ["freeze", "--force", "-o", "f.calyx", "c.calyx"],
                 {"f.calyx": old, "c.calyx": counting}, OLD),
        Scenario("pull", ["pull", "--wait", "5s", "--force", "-o", "f.calyx",
                          server.pulled], {"f.calyx": old}, NEW,
                 kept=("f.calyx.part", ".f.calyx.part")),
        Push("push", server, old, new, swaps=False),
        Push("push --swap", server, old, new, swaps=True),
    ]


def main(calyx, *names):
    clean = Clean(os.path.abspath(calyx))
    with tempfile.TemporaryDirectory(prefix="calyx-faults-") as root:
        servers = []
        for i in range(2):  # what pull reads stays while push is tried
            folder = os.path.join(root, f"server{i}")
            os.mkdir(folder)
            servers.append(Server(folder))
        server = servers[0]
        server.clean = clean
        server.url = f"redis://127.0.0.1:{server.port}"
        server.pulled = f"redis://127.0.0.1:{servers[1].port}/pulled"
        made_in = os.path.join(root, "made")
        os.mkdir(made_in)
        chosen = [s for s in scenarios(clean, made_in, server)
                  if not names or s.name in names]

        def in_order(some):
            for scenario in some:
                folder = os.path.join(root, scenario.name)
                os.mkdir(folder)
                walk(clean.calyx, clean, scenario, folder)

        # scenarios that share a server come one after the other
        push = [s for s in chosen if isinstance(s, Push)]
        rest = [s for s in chosen if not isinstance(s, Push)]
        try:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                jobs = [pool.submit(in_order, some)
                        for some in [push] + [[s] for s in rest] if some]
                for job in jobs:
                    job.result()
        finally:
            for each in servers:
                each.stop()
    for name, number in count.items():
        print(f"{number:5} faults  {name}")
    print(f"{len(violations)} violations")
    return 1 if violations or not count else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
