#!/usr/bin/env python3
"""The Python binding beside Python's set, and flor if Debian's python3-flor is
there: nanoseconds of processor time a key, the best of three rounds.

    PYTHONPATH=build/python bench/python.py [KEYS]
"""
import array
import multiprocessing
import os
import sys
import tempfile
import time

from calyx import Builder, Filter, kinds, plan

KEYS = int(float(sys.argv[1])) if len(sys.argv) > 1 else 10_000_000
ROUNDS = 3


def urls(name, n):
    """Texts of 33 bytes."""
    return [f"https://example.org/{name}/{i:08d}"[:33].ljust(33, "-")
            for i in range(n)]


def best(call, n):
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return 1e9 * min(times) / n


def row(what, add, has, size):
    print(f"| {what} | {add} | {has:.0f} | {size} |", flush=True)


def lists():
    texts, absent = urls("in", KEYS), urls("no", KEYS)
    print(f"{KEYS} texts of 33 bytes in a list; half of the lookups find one\n\n"
          "| | add, ns | has, ns | bits a key |\n|---|---|---|---|")
    half = texts[:KEYS // 2] + absent[:KEYS // 2]

    f = Filter(KEYS, .01)
    add = best(lambda: f.add_many(texts), KEYS)
    row("Filter, many", f"{add:.0f}", best(lambda: f.has_many(half), KEYS),
        f"{8 * f.info.bytes / KEYS:.1f}")

    def one_by_one():
        for text in texts:
            f.add(text)
    add = best(one_by_one, KEYS)
    row("Filter, single", f"{add:.0f}",
        best(lambda: sum(text in f for text in half), KEYS),
        f"{8 * f.info.bytes / KEYS:.1f}")

    static = [k for k in kinds() if "static" in plan(10, .01, kind=k).can]
    for kind in static:
        builder = Builder(p=.01, kind=kind)
        start = time.process_time()
        builder.add_many(texts)
        g = builder.finish()
        add = 1e9 * (time.process_time() - start) / KEYS
        row(f"{kind}, many", f"{add:.0f}", best(lambda: g.has_many(half), KEYS),
            f"{8 * g.info.bytes / KEYS:.1f}")

    exact = set(texts)
    add = best(lambda: set(texts), KEYS)
    row("set", f"{add:.0f}", best(lambda: sum(t in exact for t in half), KEYS),
        f"{8 * sys.getsizeof(exact) / KEYS:.0f} and the texts")
    try:
        from flor import BloomFilter
    except ImportError:
        return
    few = KEYS // 20
    other = BloomFilter(n=KEYS, p=.01)
    encoded = [text.encode() for text in half[:few]]
    start = time.process_time()
    for text in encoded:
        other.add(text)
    add = 1e9 * (time.process_time() - start) / few
    row("flor", f"{add:.0f}", best(lambda: sum(t in other for t in encoded), few),
        "9.6")


def numbers():
    keys = array.array("Q", range(KEYS))
    f = Filter(KEYS, .01)
    add = best(lambda: f.add_many(keys), KEYS)
    print(f"\n{KEYS} numbers in an array: add {add:.1f} ns, "
          f"has {best(lambda: f.has_many(keys), KEYS):.1f} ns")


def pss():
    with open("/proc/self/smaps_rollup") as rollup:
        return next(int(line.split()[1]) for line in rollup
                    if line.startswith("Pss:")) * 1024


def share(path, ready, leave, sizes):
    before = pss()
    f = Filter.open(path, verify="none")
    for first in range(0, 2_000_000, 50_000):  # touches nearly every page
        f.has_many(array.array("Q", range(first, first + 50_000)))
    ready.wait()
    sizes.put(pss() - before)
    leave.wait()


def files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "large.calyx")
        n = 100 * KEYS
        f = Filter(n, .01)
        f.add_many(array.array("Q", range(1_000_000)))
        f.save(path)
        size = f.info.bytes
        f.close()
        start = time.perf_counter()
        Filter.open(path)
        opened = time.perf_counter() - start
        fork = multiprocessing.get_context("spawn")
        ready, leave, sizes = fork.Barrier(8), fork.Event(), fork.Queue()
        workers = [fork.Process(target=share, args=(path, ready, leave, sizes))
                   for _ in range(8)]
        for worker in workers:
            worker.start()
        total = sum(sizes.get() for _ in workers)
        leave.set()
        for worker in workers:
            worker.join()
        print(f"\na file of {size / 1e9:.2f} GB: opened in {1e3 * opened:.2f} ms; "
              f"8 processes that use it take {total / 1e9:.2f} GB (PSS) together")


if __name__ == "__main__":
    lists()
    numbers()
    files()
