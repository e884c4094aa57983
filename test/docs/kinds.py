#!/usr/bin/env python3
"""Tables of bits a key: in each table of a page, the cell in the row of `KIND` and the
column of "R %" is what `calyx plan` says for 10 million keys, to its digits.

    kinds.py CALYX PAGE...           compare
    kinds.py --write CALYX PAGE...   write what it should be
"""
import json
import re
import subprocess
import sys

WRITE = "--write" in sys.argv
CALYX, *PAGES = [word for word in sys.argv[1:] if word != "--write"]


def plan(rate, cache={}):
    if rate not in cache:
        out = subprocess.run([CALYX, "plan", "-n", "10M", "-p", rate + "%", "--json"],
                             check=True, capture_output=True).stdout
        cache[rate] = {row["kind"]: row["bits_a_key"] for row in json.loads(out)["kinds"]}
    return cache[rate]


def kind_of(cells):
    """The only kind that stands alone in a cell of the row."""
    kinds = [cell.strip(" `") for cell in cells if re.fullmatch(r" *`[a-z0-9]+` *", cell)]
    return kinds[0] if len(kinds) == 1 else None


def corrected(page):
    """The page as it should be, and the number of cells that were compared."""
    rates, compared, lines = [], 0, []
    for line in open(page, encoding="utf-8").read().split("\n"):
        cells = line.split("|")
        if not line.startswith("|"):
            rates = []
        elif not rates:
            rates = [(re.findall(r"(\d[\d.]*) ?%", cell) or [None])[0] for cell in cells]
        elif kind_of(cells) in plan("1"):
            for i, (rate, cell) in enumerate(zip(rates, cells)):
                if rate and re.fullmatch(r" *\d+\.\d+ *", cell):
                    digits = len(cell.strip().split(".")[1])
                    right = f" {plan(rate)[kind_of(cells)]:.{digits}f} "
                    cells[i] = right.ljust(len(cell))
                    compared += 1
        lines.append("|".join(cells))
    return "\n".join(lines), compared


wrong = False
for page in PAGES:
    should, compared = corrected(page)
    if not compared:
        sys.exit(f"{page}: no table of bits a key")
    if WRITE:
        open(page, "w", encoding="utf-8").write(should)
        continue
    for is_now, right in zip(open(page, encoding="utf-8").read().split("\n"), should.split("\n")):
        if is_now != right:
            print(f"{page}: it says\n{is_now}\nbut calyx plan\n{right}", file=sys.stderr)
            wrong = True
if wrong:
    sys.exit(f"to correct them: {sys.argv[0]} --write {CALYX} {' '.join(PAGES)}")
