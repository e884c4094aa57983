#!/usr/bin/env python3
"""The tables and examples of doc/MATH.md that are about the textbook filter and
about stores, computed again by their formulas and by `calyx plan`.

    math.py CALYX MATH.md
"""
import json
import math
import subprocess
import sys

CALYX, FILE = sys.argv[1:]
TEXT = open(FILE, encoding="utf-8").read()
failed = []


def cells(first, section):
    """The cells after `first` of the row that starts with it, in a section."""
    for line in TEXT.split(f"## {section}. ")[1].split("\n## ")[0].splitlines():
        row = [cell.strip() for cell in line.strip("| ").split("|")]
        if line.startswith("|") and row[0] == first:
            return row[1:]
    sys.exit(f"{FILE}: section {section} has no row '{first}'")


def same(what, said, computed):
    if said != computed:
        failed.append(f"{what}: the text has '{said}', computed '{computed}'")


def contains(sentence):
    if sentence not in " ".join(TEXT.split()):
        failed.append(f"the text has not '{sentence}'")


def plan(*options):
    run = subprocess.run([CALYX, "plan", "--json", *options], check=True,
                         capture_output=True)
    return json.loads(run.stdout)


def rate(k, bits_a_key):
    return (1 - math.exp(-k / bits_a_key)) ** k


def textbook():
    rates = [f"{100 * rate(k, 10):.2f}" for k in range(1, 11)]
    same("rates in 10 bits a key", cells("rate in %", 1), rates)
    for percent in (1, 0.1, 0.01):
        bits = -math.log(percent / 100) / math.log(2) ** 2
        best = bits * math.log(2)
        same(f"bits at {percent} %", cells(f"{percent} %", 1)[:2],
             [f"{bits:.2f}", f"{best:.2f}"])
    contains(f"takes {-1 / math.log1p(-0.01):.1f} bits a key")
    for m in (16, 1024):
        ways = [math.comb(m, k) for k in (1, 3, 7)]
        same(f"patterns of {m} bits", [float(c.replace(",", ""))
                                       for c in cells(str(m), 1)],
             [float(f"{w:.2g}") if w > 1e12 else w for w in ways])


def store():
    for percent in ("10", "1", "0.1", "0.01"):
        made = plan("-n", "1e8", "-p", percent + "%", "--store-time", "100us",
                    "--present", "10%", "--kind", "line")
        time = made["store"]["mean_seconds_with_filter"]
        line = [k for k in made["kinds"] if k["kind"] == "line"][0]
        same(f"a store behind {percent} %", cells(f"filter, {percent} %", 13),
             [f"{1e6 * time:.1f} µs", f"{line['bytes'] / 1e6:.0f} MB"])


def hash_map():
    share = 0.8 * rate(7, 10)
    filter_time = 0.1 + (0.2 + share) * 1000
    same("the filter", cells("flat filter, p = 0.82 %", 13),
         [f"{filter_time:.1f} µs", f"{10e6 * 10 / 8 / 1e6} MB"])
    for bits in (32, 64):
        same(f"{bits} bits", cells(f"pointers of {bits} bits", 13),
             [f"{0.1 + 0.2 * 1000:.1f} µs", f"{10 * bits // 8} MB"])
    contains(f"ΔT is {100 * share:.2f} % of 1 ms, or {1000 * share:.1f} µs: "
             f"{100 * 1000 * share / 200.1:.1f} % of the time for "
             f"1/{32 / 10} or 1/{64 / 10} of the memory")
    made = plan("-n", "1e7", "--bits", "1e8", "--probes", "7", "--kind", "flat",
                "--store-time", "1ms", "--present", "20%")
    same("what the command says of it",
         f"{1e6 * made['store']['mean_seconds_with_filter']:.1f}",
         f"{filter_time:.1f}")


textbook()
store()
hash_map()
for fault in failed:
    print(f"{FILE}: {fault}", file=sys.stderr)
sys.exit(1 if failed else 0)
