#!/usr/bin/env python3
"""The tables of doc/OTHERS.md are what `calyx plan` says.

    others.py CALYX OTHERS.md
"""
import json
import math
import subprocess
import sys

CALYX, FILE = sys.argv[1:]
KEYS = 10_000_000


def plan(*options):
    run = subprocess.run([CALYX, "plan", "-n", str(KEYS), "--json", *options],
                         check=True, capture_output=True)
    return {kind["kind"]: kind for kind in json.loads(run.stdout)["kinds"]}


def table(title):
    """The rows of a section's table, and the kinds that head its columns."""
    section = open(FILE, encoding="utf-8").read().split(f"## {title}\n")[1]
    lines = [line for line in section.split("\n## ")[0].splitlines()
             if line.startswith("|")]
    rows = [[cell.strip(" `") for cell in line.strip("|").split("|")]
            for line in lines]
    return rows[0][1:], rows[2:]


def compare(what, said, computed):
    """They agree to the digits that are said."""
    digits = len(said.split(".")[1]) if "." in said else 0
    if f"{computed:.{digits}f}" != said:
        sys.exit(f"{FILE}: {what}: it says {said}, but it is {computed:.4f}")


kinds, rows = table("What a rate takes")
assert len(rows) == 3
for rate, *cells in rows:
    p = float(rate.rstrip(" %")) / 100
    made = plan("-p", str(p))
    for kind, cell in zip(kinds, cells):
        compare(f"{kind} at {rate}", cell, -math.log2(p) if kind == "limit"
                else made[kind]["bits_a_key"])

kinds, rows = table("What a size gives")
assert len(rows) == 2
for bits, *cells in rows:
    made = plan("--bits", str(int(bits) * KEYS))
    for kind, cell in zip(kinds, cells):
        compare(f"{kind} in {bits} bits", cell, 100 * made[kind]["rate"])
