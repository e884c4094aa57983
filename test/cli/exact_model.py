#!/usr/bin/python3
"""calyx common, minus and dedup against a model of a few lines, on random cases.

    exact_model.py CALYX SEED CASES

A case is a few files of random lines, plain, compressed or a pipe; one verb with
random options; a memory budget from a hundred bytes to enough for all, often just
enough for a table of all lines; one to three threads; and a hash with as few as one
value. What is printed must be what the model says.
"""
import gzip
import os
import random
import subprocess
import sys
import tempfile


def key_of(line, form):
    if form["crlf"] and line.endswith(b"\r"):
        line = line[:-1]
    if form["field"]:
        line = line.split(b",")[form["field"] - 1]
    return line.lower() if form["fold"] else line


def model(verb, flags, files, form):
    """The lines to print, and the lines of --dups."""
    keys = [[key_of(line, form) for line in file] for file in files]
    if verb == "dedup":
        once, again, seen = [], [], set()
        for file, its_keys in zip(files, keys):
            for line, key in zip(file, its_keys):
                (again if key in seen else once).append(line)
                seen.add(key)
        return once, again
    first = list(zip(files[0], keys[0]))
    others = [set(k) for k in keys[1:]]
    if verb == "common":
        wanted = [p for p in first if all(p[1] in o for o in others)]
    else:
        wanted = [p for p in first if not any(p[1] in o for o in others)]
    if verb == "common" or "-u" in flags:
        seen, unique = set(), []
        for line, key in wanted:
            if key not in seen:
                unique.append((line, key))
            seen.add(key)
        wanted = unique
    return [line for line, _ in wanted], None


def random_line(r, most, form):
    number = r.randrange(most)
    if number % 31 == 0:
        line = b""
    elif number % 31 == 1:
        line = b"%d" % number + b"x" * (number * 7919 % 3000)
    else:
        line = b"https://example.org/%d" % number
    if r.random() < .3:
        line = line.upper()
    if form["field"]:
        line = b"%d," % r.randrange(3) + line + b",%d" % r.randrange(3)
    if form["crlf"] and r.random() < .5:
        line += b"\r"
    return line


def write_file(r, name, file, end, packed):
    text = end.join(file)
    # the last line may lack its end, unless it is empty
    if file and (not file[-1] or r.random() < .8):
        text += end
    with open(name, "wb") as out:
        out.write(gzip.compress(text, 1) if packed else text)
    return len(text)


def run_case(calyx, r, number):
    verb = r.choice(["common", "minus", "dedup"])
    form = {"nul": r.random() < .2, "crlf": r.random() < .2,
            "field": r.choice([0, 0, 0, 2]), "fold": r.random() < .2}
    flags = ["-u"] if verb == "minus" and r.random() < .4 else []
    end = b"\0" if form["nul"] else b"\n"
    most = r.choice([1, 5, 50, 1000, 20000, 10**9])
    lines = r.choice([0, 1, 20, 500, 4000])
    count = r.randrange(2 if verb != "dedup" else 1, 5)
    files = [[random_line(r, most, form) for _ in range(r.randrange(lines + 1))]
             for _ in range(count)]
    names = [f"file{i}" for i in range(count)]
    packed = r.random() < .3
    size = sum(write_file(r, name, file, end, packed and r.random() < .7)
               for name, file in zip(names, files))
    words = [calyx, verb, *flags, f"-j{r.choice([1, 2, 3])}"]
    words += ["-z"] * form["nul"] + ["--crlf"] * form["crlf"]
    words += ["-i"] * form["fold"] + ["-t,", "-k2"] * bool(form["field"])
    dups = verb == "dedup" and r.random() < .5
    words += ["--force", "--dups", "again"] * dups
    environment = dict(os.environ)
    # of files with a quarter of the budget or more, a table may hold all lines
    environment["CALYX_TEST_BUDGET"] = str(
        r.choice([100, 3000, 30000, 300000, 10**7, 10**9,
                  2 * size + 100, 3 * size + 100, 4 * size + 100]))
    hashes = r.choice([0, 0, 1, 3, 100, 5000])
    if hashes:
        environment["CALYX_TEST_POOR_HASH"] = str(hashes)
    cat = None
    if r.random() < .3:
        piped = r.randrange(count)
        with open(names[piped], "rb") as file:
            cat = subprocess.Popen(["cat"], stdin=file, stdout=subprocess.PIPE)
        names[piped] = r.choice(["-", "/dev/stdin"])
    words += [] if names == ["-"] else names
    done = subprocess.run(words, stdin=cat.stdout if cat else None,
                          capture_output=True, env=environment, check=False)
    if cat:
        cat.stdout.close()
        cat.wait()
    wanted, again = model(verb, flags, files, form)
    expected = b"".join(line + end for line in wanted)
    what = (f"case {number}: {' '.join(words)}, budget "
            f"{environment['CALYX_TEST_BUDGET']}, {hashes} hashes")
    if done.returncode not in (0, 1) or done.stderr:
        sys.exit(f"{what}: status {done.returncode}, {done.stderr[:500]}")
    if done.stdout != expected:
        sys.exit(f"{what}: {done.stdout.count(end)} lines, wanted {len(wanted)}")
    if dups:
        with open("again", "rb") as file:
            if file.read() != b"".join(line + end for line in again):
                sys.exit(f"{what}: other duplicates than wanted")


def main():
    calyx, seed, cases = os.path.abspath(sys.argv[1]), *map(int, sys.argv[2:])
    r = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number in range(cases):
            run_case(calyx, r, number)
        os.chdir("/")
    print(f"{cases} cases agree with the model")


main()
