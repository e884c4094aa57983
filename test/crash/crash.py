#!/usr/bin/env python3
"""Saving is atomic, and what was synced is not lost: shown by breaking it.

    crash.py SAVER SHIM

SAVER and SHIM are what saver.c and shim.c were built to. It takes strace. With
CALYX_LONG it tries every system call with every error, and four times as many
random trials; else, of a save, the first and last two calls of a name, each with
its usual error, with EINTR and with EEXIST.

  save    Every system call of a save, one by one: killed there, failing there
          with each error it may have, failing from there on. Short writes.
          Kills at random moments. Afterwards the path holds the old file or
          the new one, to the byte; the old one, if the save said it failed
          (unless only the folder could not be synced, after the rename); no
          permission that the old file did not have; no other file, unless the
          process was killed between naming the new file and renaming it: then
          that is the new one, to the byte. Once more without nameless files:
          then a kill may leave the new file anyway.
  add     The same for a filter that is changed in place: every key that was
          acknowledged by calyx_sync is found, however it is opened.
  power   The same after a loss of power, simulated: of what was written and
          not yet synced, any part may be missing. The log of a real run says
          what was written and synced when; a control, with syncs that do
          nothing, shows whether the simulation would notice.
"""

import os
import random
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import time

LONG = bool(os.environ.get("CALYX_LONG"))
MORE = 4 if LONG else 1
SMALL, LARGE = 1000, 2000000  # keys: a body of one page, and of 2.5 MB
WIDE = 500000  # of ten ranges
OLDS, NEWS = 500, 700  # as in saver.c
REFUSED, KILLED = 3, -9
SECTOR, WORD = 512, 8

# What each system call may answer, the usual error first. Not EINTR for ever: a
# caller that gets EINTR tries again.
ERRORS = {
    "openat": "ENOSPC EACCES EMFILE EROFS EIO EINTR EEXIST ENOMEM",
    "write": "ENOSPC EIO EDQUOT EFBIG EINTR EPERM",
    "fsync": "EIO ENOSPC EDQUOT EINTR",
    "msync": "EIO ENOMEM EINTR",
    "fchmod": "EPERM EIO EROFS EINTR",
    "close": "EIO ENOSPC EDQUOT EINTR",
    "rename": "EACCES EXDEV EIO ENOSPC EROFS EBUSY",
    "linkat": "EACCES EEXIST EIO ENOSPC EROFS EPERM",
    "fchown": "EPERM EIO EROFS EINTR",
    "fcntl": "EMFILE",
    "access": "ENOENT",
    "newfstatat": "EACCES EIO ENOMEM",
    "readlink": "EACCES EIO ENOMEM",
    "getcwd": "ENOMEM EACCES",
    "mmap": "ENOMEM EACCES",
    "munmap": "ENOMEM",
    "brk": "ENOMEM",
    "flock": "EINTR ENOLCK EAGAIN",
}
# What a writer that could not write must not pass over.
REPORTED = {"fsync", "msync", "close", "newfstatat"}
AFTER_RENAME = {"openat", "fsync", "close"}
CLEANED_UP_AFTER = {"write", "fchmod", "fsync", "close", "rename", "linkat"}



def errors_of(name):
    errors = ERRORS.get(name, "").split()
    return [error for error in errors
            if LONG or error in (errors[0], "EINTR", "EEXIST")]


counts = {}
violations = []


def count(what, n=1):
    counts[what] = counts.get(what, 0) + n


def check(truth, case, what):
    if not truth:
        violations.append(f"{case}: {what}")
        if len(violations) <= 20:
            print("violation:", violations[-1], file=sys.stderr)


def contents(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except FileNotFoundError:
        return None


def put(path, data, mode=0o640):
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)


class Judge:
    """A saver that prints what is in a file."""

    FIELDS = ("status", "olds", "news", "added", "verify")

    def __init__(self, saver):
        self.process = subprocess.Popen(
            [saver, "judge"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, bufsize=1)

    def look(self, path):
        self.process.stdin.write(path + "\n")
        words = self.process.stdout.readline().split()
        verdict = {}
        for at in range(0, len(words), 6):
            values = [None if word == "-" else int(word)
                      for word in words[at + 1:at + 6]]
            verdict[words[at]] = dict(zip(self.FIELDS, values))
        return verdict


class Calls:
    """The system calls of a run, from one mark to the other: name, and which of
    that name it is since the start."""

    def __init__(self, saver, words, shim=None):
        with tempfile.NamedTemporaryFile("r") as log:
            subprocess.run(["strace", "-o", log.name, saver, *words],
                           check=True, stdout=subprocess.DEVNULL,
                           env=environment(shim))
            lines = log.read().splitlines()
        names = [re.match(r"\w+", line) for line in lines]
        names = [name.group() for name in names if name]
        marks = [i for i, name in enumerate(names) if name == "getppid"]
        assert len(marks) == 2, "the marks are missing from the trace"
        self.all = [(name, names[:i].count(name) + 1)
                    for i, name in enumerate(names)
                    if marks[0] < i <= marks[1] + 1]
        self.names = [name for name, _ in self.all]

    def tried(self):
        """Those to kill and to fail: where they are among all, name, and which
        of that name."""
        for i, (name, which) in enumerate(self.all):
            if LONG or min(self.names[:i].count(name),
                           self.names[i + 1:].count(name)) < 2:
                yield i, name, which


def environment(shim):
    env = dict(os.environ, LC_ALL="C")
    if shim:
        env.update(LD_PRELOAD=shim[0], CALYX_SHIM=shim[1])
    return env


def run(saver, words, injections=(), shim=None):
    """Run the saver; its exit status (negative if killed) and what it said."""
    command = [saver, *words]
    if injections:
        names = ",".join(sorted({i.split(":")[0] for i in injections}))
        command = (["strace", "-o", "/dev/null", "-e", "trace=" + names] +
                   [f"--inject={injection}" for injection in injections] +
                   command)
    done = subprocess.run(command, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=environment(shim),
                          text=True)
    return done.returncode, done.stdout


# ---- Saving ------------------------------------------------------------------


class Saving:
    """A folder with a filter in it, to be saved over."""

    def __init__(self, saver, judge, folder, keys):
        self.saver, self.judge = saver, judge
        self.folder, self.keys = folder, keys
        self.path = os.path.join(folder, "words.calyx")
        self.bytes = {}
        for which in ("old", "new"):
            run(saver, ["make", self.path, which, str(keys)])
            self.bytes[which] = contents(self.path)
        for which, olds, news in (("old", OLDS, 0), ("new", 0, NEWS)):
            put(self.path, self.bytes[which])
            is_there = judge.look(self.path)["load"]
            check(is_there["status"] == 0, which, "does not load")
            right = is_there["olds"] >= olds and is_there["news"] >= news
            check(right, which, "lacks keys before anything happened")

    def words(self, which="new"):
        return ["make", self.path, which, str(self.keys)]

    def reset(self, exists=True, mode=0o640):
        for name in os.listdir(self.folder):
            os.unlink(os.path.join(self.folder, name))
        if exists:
            put(self.path, self.bytes["old"], mode)

    def look(self, case, killed=False, exists=True, mode=0o640, named=False):
        """Which file is there? Complain if it is neither."""
        is_there = contents(self.path)
        which = {self.bytes["old"]: "old", self.bytes["new"]: "new",
                 None: "none"}.get(is_there, "other")
        check(which in ("old", "new") or (which == "none" and not exists), case,
              f"a third thing is there: {which}")
        if which in ("old", "new"):
            verdict = self.judge.look(self.path)["load"]
            full = (verdict["olds"] == OLDS) if which == "old" else (
                verdict["news"] == NEWS)
            check(verdict["status"] == 0 and full, case, "keys are missing")
            put(self.path, is_there, os.stat(self.path).st_mode & 0o7777)
        for name in os.listdir(self.folder):
            is_mode = os.stat(os.path.join(self.folder, name)).st_mode & 0o7777
            check(is_mode & ~mode == 0, case, f"{name} has mode {is_mode:o}")
            if name != os.path.basename(self.path):
                left = contents(os.path.join(self.folder, name))
                check(killed and (named or left in self.bytes.values()), case,
                      f"{name} was left behind")
                count("temporary files after kills")
        return which

    def one(self, case, injections=(), shim=None, may_be_new=False,
            exists=True, mode=0o640):
        self.reset(exists, mode)
        status, _ = run(self.saver, self.words(), injections, shim)
        which = self.look(case, status == KILLED, exists, mode,
                          named=bool(shim) and "named" in shim[1])
        before = "old" if exists else "none"
        if status == 0:
            check(which == "new", case, f"saved, but {which} is there")
        elif status == REFUSED:
            check(which == before or (may_be_new and which == "new"), case,
                  f"failed, but {which} is there")
            count("saves that failed and said so")
        else:
            check(status == KILLED, case, f"the saver ended with {status}")
            count("saves killed at a system call")
        return status, which


def walk_save(saving, exists, mode, shim=None):
    saving.reset(exists, mode)
    calls = Calls(saving.saver, saving.words(), shim)
    # A new file is linked to its name, unless it had one before.
    renames = exists or shim
    check(("linkat" in calls.names) == (not shim), saving.keys,
          "nameless files are not used, or where there are none")
    renamed = calls.names.index("rename" if renames else "linkat")
    count("system calls of saves", len(calls.all))
    for i, name, which in calls.tried():
        case = f"{saving.keys} keys, {name} #{which}"
        status, left = saving.one(
            f"{case}, killed", [f"{name}:signal=KILL:when={which}"],
            exists=exists, mode=mode, shim=shim)
        others = set(os.listdir(saving.folder)) - {"words.calyx"}
        check(shim or name == "rename" or not others, case,
              f"killed there, {others} is left")
        if name != "exit_group":
            check(status == KILLED, case, "was not killed")
        expected = "new" if i > renamed else "old" if exists else "none"
        check(left == expected, case, f"killed there, {left} is left")
        for error in errors_of(name):
            may_be_new = i > renamed and name in AFTER_RENAME
            for when in (f"{which}", f"{which}+"):
                if when.endswith("+") and error in ("EINTR", "EEXIST"):
                    if name in ("write", "openat"):
                        when = f"{which}..{which + 5}"
                # a trace without the folder's failure may still fail later
                after = when != f"{which}" and name in AFTER_RENAME
                status, _ = saving.one(
                    f"{case}, {error} at {when}",
                    [f"{name}:error={error}:when={when}"],
                    may_be_new=may_be_new or after,
                    exists=exists, mode=mode, shim=shim)
                if name == "close" and i < renamed:
                    check(status == REFUSED, case, f"{error} was ignored")
                count("errors at a system call")
            if i <= renamed and name in CLEANED_UP_AFTER:
                saving.one(f"{case}, {error}, killed while cleaning up",
                           [f"{name}:error={error}:when={which}",
                            "unlink:signal=KILL"], exists=exists, mode=mode,
                           shim=shim)
                count("kills while cleaning up")


def short_writes(saving, shim):
    for words in ("one", "half", "eintr", "half,eintr", "one,eintr"):
        if saving.keys == LARGE and "one" in words:
            continue  # three million calls
        status, which = saving.one(f"{saving.keys} keys, writes {words}",
                                   shim=(shim, words))
        check(status == 0 and which == "new", words, "was not saved")
        count("saves with short or interrupted writes")
        env = dict(os.environ, LD_PRELOAD=shim, CALYX_SHIM=words)
        said = subprocess.run([saving.saver, "judge"], input=saving.path,
                              capture_output=True, text=True, env=env).stdout
        check(said.startswith("load 0 "), words, "was not loaded")
        count("loads with short or interrupted reads")


def full_disks(saving):
    """A real full file, in place of a pretended one."""
    size = len(saving.bytes["new"])
    for limit in sorted({0, 1, 511, 4096, size // 2, size - 1}):
        saving.reset()
        done = subprocess.run(["prlimit", f"--fsize={limit}", saving.saver,
                               *saving.words()], stderr=subprocess.DEVNULL)
        check(done.returncode == REFUSED, f"limit {limit}", "did not fail")
        check(saving.look(f"limit {limit}") == "old", f"limit {limit}",
              "the old file is gone")
        count("saves to a file that may not grow")


def links_and_modes(saving):
    """Through a link, the file it names is replaced; new files obey umask."""
    link = os.path.join(os.path.dirname(saving.folder), "link.calyx")
    saving.reset(mode=0o600)
    os.symlink(saving.path, link)
    run(saving.saver, ["make", link, "new", str(saving.keys)])
    check(os.path.islink(link), "link", "was replaced")
    check(saving.look("link", mode=0o600) == "new", "link", "was not followed")
    os.unlink(link)
    for mask, mode in ((0o022, 0o644), (0o077, 0o600), (0o027, 0o640)):
        before = os.umask(mask)
        saving.reset(exists=False)
        run(saving.saver, saving.words())
        check(os.stat(saving.path).st_mode & 0o7777 == mode, "umask",
              "gave another mode")
        os.umask(before)


def random_kills(saving, times, dice):
    seen = {"old": 0, "new": 0}
    for i in range(times):
        saving.reset()
        saver = subprocess.Popen([saving.saver, "loop", saving.path,
                                  str(saving.keys)], stdout=subprocess.PIPE)
        for _ in range(1 + dice.randrange(4)):  # however slow it is
            saver.stdout.readline()
        time.sleep(dice.random() * 0.004)
        saver.kill()
        saver.wait()
        saver.stdout.close()
        which = saving.look(f"random kill {i}", killed=True)
        seen[which] = seen.get(which, 0) + 1
        count("saves killed at random")
    # Old and new are as likely, so of 50 all are the same once in 2^49.
    check(times < 50 or min(seen.values()) > 0, "random kills",
          f"are not random: {seen}")


# ---- Adding in place ---------------------------------------------------------


class Adding:
    def __init__(self, saver, judge, folder, keys=SMALL):
        self.saver, self.judge = saver, judge
        self.path = os.path.join(folder, "adding.calyx")
        run(saver, ["make", self.path, "old", str(keys)])
        self.bytes = contents(self.path)
        self.least = 0  # keys that were acknowledged before

    def reset(self):
        put(self.path, self.bytes)

    def look(self, case, acknowledged):
        """All that was there, and all that was acknowledged, is found, in
        whatever way it is opened; and it can be sealed again."""
        acknowledged = max(acknowledged, self.least)
        verdict = self.judge.look(self.path)
        for how, is_there in verdict.items():
            if is_there["status"] != 0:
                # More than is promised: it could also be refused as damaged.
                check(False, case, f"{how} says {is_there['status']}")
                continue
            check(is_there["olds"] == OLDS, case,
                  f"{how}: old keys are missing")
            check(is_there["added"] >= acknowledged, case,
                  f"{how}: {is_there['added']} of {acknowledged} are there")
        return verdict


def acknowledged_in(said):
    """Keys before the first that could not be synced; none may be after."""
    lines = [l for l in said.splitlines() if l == "!" or l.isdigit()]
    n = lines.index("!") if "!" in lines else len(lines)
    return n, any(l != "!" for l in lines[n:])


def walk_add(adding, keys, errors=True):
    """Returns what a kill halfway left behind."""
    adding.reset()
    words = ["add", adding.path, str(keys)]
    halfway = None
    calls = Calls(adding.saver, words)
    count("system calls of adding", len(calls.all))
    for name, which in calls.all:
        case = f"adding, {name} #{which}"
        adding.reset()
        status, said = run(adding.saver, words,
                           [f"{name}:signal=KILL:when={which}"])
        check(status == KILLED or name == "exit_group", case, "was not killed")
        n, _ = acknowledged_in(said)
        if n == keys // 2 and not halfway:
            halfway = contents(adding.path)
        adding.look(f"{case}, killed", n)
        count("additions killed at a system call")
        for error in errors_of(name) if errors else ():
            if name == "write":
                continue  # that is only how it reports
            for when in (f"{which}", f"{which}+"):
                adding.reset()
                status, said = run(adding.saver, words,
                                   [f"{name}:error={error}:when={when}"])
                count("errors while adding")
                n, later = acknowledged_in(said)
                check(not later, f"{case}, {error}",
                      "synced after a sync that failed")
                verdict = adding.look(f"{case}, {error} at {when}", n)
                if name == "brk":
                    continue  # which never fails so: malloc is killed by it
                check(status in (0, REFUSED), f"{case}, {error}",
                      f"ended with {status}")
                check(status == REFUSED or
                      (verdict["map"]["verify"] == 0 and n == keys and
                       verdict["map"]["added"] >= keys),
                      f"{case}, {error} at {when}",
                      "reported success, but the file is wrong")
                if name in REPORTED and error != "EINTR":
                    check(status == REFUSED, f"{case}, {error} at {when}",
                          "was passed over")
                if name in ("fsync", "msync") and (error, when) == (
                        "EINTR", str(which)):
                    check(status == 0, f"{case}, {error}",
                          "was not tried again")
    return halfway


def random_adding(adding, times, dice):
    for i in range(times):
        adding.reset()
        saver = subprocess.Popen([adding.saver, "add", adding.path, "10000"],
                                 stdout=subprocess.PIPE, text=True)
        saver.stdout.readline()
        time.sleep(dice.random() * 0.01)
        saver.kill()
        said = saver.stdout.read()
        saver.wait()
        saver.stdout.close()
        if said and not said.endswith("\n"):
            said = said[:said.rfind("\n") + 1]
        n, _ = acknowledged_in(said)
        adding.look(f"random kill {i}", n)
        count("additions killed at random")


# ---- Loss of power -----------------------------------------------------------


def read_log(path):
    data, at, records = contents(path), 0, []
    while at < len(data):
        what, number, size = struct.unpack_from("<8sQQ", data, at)
        at += 24
        records.append((chr(what[0]), number, data[at:at + size]))
        at += size
    return records


def changed(old, new, unit):
    """Where units differ; sectors that are the same have none."""
    for sector in range(0, len(new), SECTOR):
        if old[sector:sector + SECTOR] != new[sector:sector + SECTOR]:
            yield from (at for at in range(sector, min(sector + SECTOR, len(new)), unit)
                        if old[at:at + unit] != new[at:at + unit])


def mixed(old, new, unit, dice):
    """Some units of the one, some of the other; the length of either."""
    size = len(old) if dice.random() < 0.5 else len(new)
    longer = max(len(old), len(new))
    old, new = old.ljust(longer, b"\0"), new.ljust(longer, b"\0")
    share = dice.choice((0.02, 0.5, 0.98))
    state = bytearray(old)
    for at in changed(old, new, unit):
        if dice.random() < share:
            state[at:at + unit] = new[at:at + unit]
    return bytes(state[:size])


def states_of(old, new, times, dice):
    """What a disk may hold, of a mapping that went from one to the other: each
    sector as it was or as it is; and, since the system may have taken a page in
    the middle of a store, each word."""
    sectors = list(changed(old, new, SECTOR))
    yield "nothing of it", old
    yield "all of it", new
    for subset in range(1, min(2 ** len(sectors), 16) - 1):
        state = bytearray(old)
        for i, at in enumerate(sectors):
            if subset >> i & 1:
                state[at:at + SECTOR] = new[at:at + SECTOR]
        yield f"sectors {subset:b}", bytes(state)
    for _ in range(times):
        yield "words", mixed(old, new, WORD, dice)


def lose_power_adding(adding, shim, folder, keys, times, dice, sync=True):
    log = os.path.join(folder, "log")
    adding.reset()
    words = "log=" if sync else "nosync,log="
    run(adding.saver, ["add", adding.path, str(keys)], shim=(shim, words + log))
    final = contents(adding.path)
    durable, acknowledged, lost = adding.bytes, 0, 0
    records = read_log(log) + [("s", 0, final)]
    for what, number, data in records:
        if what == "a" and data.strip().isdigit():
            acknowledged = int(data) + 1
        if what not in "sm" or not data:
            continue
        at, length = 0, len(data)
        if what == "m":
            at, (length,) = number, struct.unpack_from("<Q", data)
            data = data[8:]
        # A mapping that is synced by and by: until this sync is done, any of
        # what changed since the last may be there or not.
        states = states_of(durable, data, times, dice)
        for case, state in states if data != durable else ():
            put(adding.path, state)
            if sync:
                adding.look(f"power lost at {acknowledged}, {case}",
                            acknowledged)
                count("states after a loss of power, adding")
            else:
                load = adding.judge.look(adding.path)["load"]
                lost += load["status"] != 0 or load["added"] < acknowledged
        durable = durable[:at] + data[at:at + length] + durable[at + length:]
    os.unlink(log)
    return lost


def lose_power_saving(saving, shim, folder, times, dice, sync=True,
                      exists=True):
    """Names are durable once their folder is synced, bytes once their file is.
    Before that, a name may stand for the old file or the new one, and the new
    one have any of its sectors, zeros for the others, and any length."""
    log = os.path.join(folder, "log")
    saving.reset(exists)
    words = "log=" if sync else "nosync,log="
    run(saving.saver, saving.words(), shim=(shim, words + log))
    names, written, synced, linked, lost = {}, {}, {}, {}, 0
    target = os.path.realpath(saving.path)
    folder_of = os.path.dirname(target)
    may_be = ["old"]  # what the name may stand for
    for what, number, data in read_log(log):
        if what == "o":
            names[number] = data.decode() or f"nameless {number}"
        elif what == "l" and os.path.realpath(data.decode()) == target:
            may_be.append(names[number])
        elif what == "l":
            linked[data.decode()] = names[number]
        elif what == "w":
            name = names[number]
            written[name] = written.get(name, b"") + data
        elif what == "s" and os.path.realpath(names[number]) == folder_of:
            may_be = may_be[-1:]
        elif what == "s":
            synced[names[number]] = written.get(names[number], b"")
        elif what == "r":
            source, to = data.decode().split("|")
            check(os.path.realpath(to) == target, "rename", "goes elsewhere")
            may_be.append(linked.get(source, source))
        for name in may_be:
            for _ in range(times):
                if name == "old":
                    state = saving.bytes["old"]
                else:
                    state = mixed(synced.get(name, b""), written[name], SECTOR,
                                  dice)
                if not sync:
                    lost += state not in saving.bytes.values()
                    continue
                put(saving.path, state)
                saving.look("power lost while saving")
                count("states after a loss of power, saving")
                if name == "old":
                    break
    os.unlink(log)
    if sync:
        check(len(may_be) == 1 and may_be[0] != "old", "save",
              "returned before the name was durable")
    return lost


# ---- All of it ---------------------------------------------------------------


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    for program in ("strace", "prlimit"):
        if not shutil.which(program):
            sys.exit(f"crash.py: there is no {program}")
    saver, shim = (os.path.abspath(word) for word in sys.argv[1:3])
    # LD_PRELOAD takes a space in a path for its end.
    shim = f"/proc/{os.getpid()}/fd/{os.open(shim, os.O_RDONLY)}"
    dice = random.Random(1)
    os.umask(0o022)
    # A file system in memory takes the same calls, and no waiting for a disk.
    in_memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(
            prefix="calyx-crash-",
            dir=os.environ.get("TMPDIR") or in_memory) as folder:
        place = os.path.join(folder, "place")
        os.mkdir(place)
        judge = Judge(saver)
        adding = Adding(saver, judge, folder)

        large = Saving(saver, judge, place, LARGE)
        walk_save(large, True, 0o640)
        short_writes(large, shim)
        random_kills(large, 50 * MORE, dice)
        small = Saving(saver, judge, place, SMALL)
        walk_save(small, True, 0o640)
        walk_save(small, False, 0o644)
        walk_save(small, True, 0o640, (shim, "named"))
        walk_save(small, False, 0o644, (shim, "named"))
        short_writes(small, shim)
        full_disks(small)
        links_and_modes(small)
        random_kills(small, 100 * MORE, dice)

        left_open = Adding(saver, judge, folder)
        left_open.bytes = walk_add(adding, 4)
        left_open.least = 2
        walk_add(left_open, 1, errors=False)  # a crash upon a crash
        random_adding(adding, 100 * MORE, dice)

        lose_power_saving(small, shim, folder, 100 * MORE, dice)
        lose_power_saving(small, shim, folder, 100 * MORE, dice, exists=False)
        lose_power_adding(adding, shim, folder, 100, 5 * MORE, dice)
        # Ten ranges with checksums of their own, marked one by one.
        wide = Adding(saver, judge, folder, WIDE)
        lose_power_adding(wide, shim, folder, 20, 2 * MORE, dice)
        check(lose_power_saving(small, shim, folder, 20, dice, sync=False) > 0,
              "control", "a save without syncs looks safe")
        check(lose_power_adding(adding, shim, folder, 20, 2, dice,
                                sync=False) > 0,
              "control", "adding without syncs looks safe")

    for what, n in counts.items():
        print(f"{n:7} {what}")
    print(f"{len(violations):7} violations")
    sys.exit(1 if violations else 0)


main()
