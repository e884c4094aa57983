"""What the measurements of the command share: files of lines, and taking turns."""
import os
import statistics
import subprocess
import time


def make_file(path, words):
    """What a command prints, as a file; one that is there is taken as it is."""
    if not os.path.exists(path):
        with open(path + ".new", "wb") as out:
            subprocess.run(words, stdout=out, check=True)
        os.rename(path + ".new", path)
    return path


def measure(words):
    """Seconds, the most memory held in bytes, and the exit status."""
    start = time.perf_counter()
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    seconds = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    return seconds, 1024 * usage.ru_maxrss, child.returncode


def warm(paths):
    """Bring files to the page cache, for whoever is next."""
    subprocess.run(["cat", *paths], stdout=subprocess.DEVNULL, check=True)


def in_turns(commands, rounds, files=()):
    """{name: (median of seconds, most memory)}, each run once a round, after the
    files were read once. None in place of seconds for one that failed, which is
    run no more."""
    figures = {name: [] for name in commands}
    failed = set()
    for _ in range(rounds):
        for name, words in commands.items():
            if name in failed:
                continue
            if files:
                warm(files)
            figures[name].append(measure(words))
            if figures[name][-1][2] not in (0, 1):
                failed.add(name)
    return {name: (None if name in failed else
                   statistics.median(seconds for seconds, _, _ in runs),
                   max(memory for _, memory, _ in runs))
            for name, runs in figures.items()}
