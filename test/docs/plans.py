#!/usr/bin/env python3
"""Plans filters by "Making a filter" of doc/FORMAT.md alone, and compares them with
what the library plans: plans.py test/portable/plans.txt [EACH]. Of the plans in
words, every EACHth is compared, by default the 11th; of growth, all parts.
"""
import math
import re
import struct
import sys
from decimal import Decimal, getcontext
from functools import lru_cache

getcontext().prec = 40
getcontext().Emin = -10**9


# ---- Rates --------------------------------------------------------------------

# The odds that another key spares a set of bits, and the weight of such sets, do
# not depend on the size: Decimals from here on, as the terms cancel.


def spared(k, s, d):
    """Odds that a key with a bit in k of 8 columns spares the bits in s columns
    with one and in d with two."""
    ways = Decimal(0)
    for h in range(min(s, k) + 1):
        for g in range(min(d, k - h) + 1):
            rest = math.comb(8 - s - d, k - h - g)
            ways += (math.comb(s, h) * math.comb(d, g) * rest
                     * Decimal(63) ** h * Decimal(62) ** g / Decimal(64) ** (h + g))
    return ways / math.comb(8, k)


@lru_cache(None)
def line_terms(k):
    """(weight, odds that a key of the line hits the set) of all sets of bits."""
    once, twice = min(k, 8), max(k - 8, 0)
    terms = []
    for x in range(once - twice + 1):
        for y in range(twice + 1):
            for d in range(twice - y + 1):
                weight = ((-1) ** (x + y) * math.comb(once - twice, x)
                          * math.comb(twice, y) * math.comb(twice - y, d)
                          * (Decimal(127) / 64) ** y * (Decimal(63) / 64) ** d)
                miss = spared(once, x + y, d) * spared(twice, x + y, d)
                terms.append((weight, 1 - miss))
    return terms


@lru_cache(None)
def split_terms(k):
    return [((-1) ** a * Decimal(math.comb(8, a)), 1 - (Decimal(31) / 32) ** a)
            for a in range(9)]


def sum_of(terms, blocks, n):
    """In floats, unless the terms cancel."""
    if blocks == 1:
        return float(sum(w * (1 - hit) ** n for w, hit in terms))
    parts = [float(w) * math.exp(n * math.log1p(-float(hit) / blocks)) for w, hit in terms]
    if sum(parts) > 1e-4 * sum(map(abs, parts)):
        return sum(parts)
    return float(sum(w * (n * (1 - hit / blocks).ln()).exp() for w, hit in terms))


def line_rate(blocks, k, n):
    return min(1, sum_of(line_terms(k), blocks, n) + n / blocks * 2.0**-32)


def split_rate(blocks, k, n):
    return min(1, sum_of(split_terms(k), blocks, n) + n / blocks * 2.0**-32)


def line2_rate(blocks, k, n):
    return line_rate(blocks, k // 2, 2 * n) ** 2


def flat_rate(m, k, n):
    probes = k * n
    if m < 2:
        return 1
    if min(m, probes) > 32 * k * k:
        unset = math.exp(probes * math.log1p(-1 / m))
        filled = -math.expm1(probes * math.log1p(-1 / m))
        spread = unset * (1 - (1 + probes / m) * unset) / (m * filled * filled)
        return filled**k * (1 + k * (k - 1) / 2 * spread)
    gone = [((Decimal(m - i) / m) ** probes if i < m else Decimal(0)) for i in range(k + 1)]
    odds = [Decimal(1)] + [Decimal(0)] * k  # that k probes are d different bits
    for _ in range(k):
        odds = [(odds[d] * d + (odds[d - 1] * (m - d + 1) if d else 0)) / m
                for d in range(k + 1)]
    rate = Decimal(0)
    for d in range(1, min(k, m) + 1):
        rate += odds[d] * sum((-1) ** i * math.comb(d, i) * gone[i] for i in range(d + 1))
    return float(rate)


def slots(k):
    """Of a bucket of a table that grows."""
    return 496 // (k + 7)


def growing_rate(blocks, k, n):
    blocks = blocks // 4 * 4
    if n > math.floor(0.866 * blocks * slots(k)):
        return 1.0
    return -math.expm1(-(2.0 ** -(k + 8)) * (1 + 2.0 ** -(k + 6)) * n / blocks)


ROOM = (3087, 2696, 2416, 2193, 2025, 1858, 1746, 1578, 1522, 1411, 1299, 1243, 1187)


def table_rate(blocks, k, n):
    remainders = (16 + (k - 1) % 16) << ((k - 1) // 16 + 1)
    if n > blocks * ROOM[max((remainders - 1).bit_length(), 8) - 8] // 64:
        return 1.0
    return -math.expm1(-n / (20 * blocks * remainders))


# name: rate, bits of a block, most blocks, most probes, step, lowest rate
KINDS = {
    "line": (line_rate, 512, 2**35, 16, 1, 1e-8),
    "line2": (line2_rate, 512, 2**35, 32, 2, 1e-14),
    "split": (split_rate, 256, 2**32 - 1, 8, 8, 1e-7),
    "flat": (flat_rate, 1, 2**44, 64, 1, 1e-15),
    "counting": (line_rate, 512, 2**35, 16, 1, 1e-8),
    "distinct": (table_rate, 512, 2**35, 234, 1, 1e-6),
    "growing distinct": (growing_rate, 512, 2**35, 16, 1, 1e-6),
}


def rate(kind, blocks, k, n):
    return min(1, KINDS[kind][0](blocks, k, n) + n * 2.0**-64)


# ---- Sizes --------------------------------------------------------------------


def fewest_blocks(kind, k, n, p):
    low, high = 0, 1
    while rate(kind, high, k, n) > p:
        low, high = high, 2 * high
    over, under = 5, -1  # as logarithms, which fall on a nearly straight line
    while high - low > 1:
        guess = low + (high - low) * over / (over - under)
        mid = int(min(high - 1, max(low + 1, guess)))
        excess = math.log(max(rate(kind, mid, k, n), 1e-300) / p)
        if excess > 0:
            low, over, under = mid, excess, under / 2
        else:
            high, under, over = mid, excess, over / 2
    return high


def foldable(blocks):
    unit = 1
    while 2 * unit * 4096 <= blocks:
        unit *= 2
    return -(-blocks // unit) * unit


def size(kind, n, p, k=None):
    _, _, _, most, step, _ = KINDS[kind]
    if k:
        return foldable(fewest_blocks(kind, k, n, p)), k
    if kind == "distinct":
        first = max(1, math.floor(16 * math.log2(1 / (64 * p))))
        tried = range(first, min(first + 48, most + 1))
        blocks, k = min((fewest_blocks(kind, k, n, p), k) for k in tried)
        return foldable(blocks), k
    k = min(most, (math.ceil(-math.log2(p)) + step) // step * step)
    if kind == "growing distinct":
        k = most
    best = None
    while k >= step:
        blocks = fewest_blocks(kind, k, n, p)
        if best and blocks > best[0]:
            break
        if not best or blocks < best[0]:
            best = blocks, k
        k -= step
    return foldable(best[0]), best[1]


def rounded(x):
    fraction, exponent = math.frexp(x)
    return math.ldexp(math.floor(math.ldexp(fraction, 24) + 0.5), exponent - 24)


# ---- Growth -------------------------------------------------------------------


def share(n):
    return min(1, max(0.01, n / 50000))


def body_bytes(kind, blocks):
    return -(-blocks * KINDS[kind][1] // 512) * 64


def fill_allocation(kind, blocks, k, n, p):
    taken = body_bytes(kind, blocks)
    if kind == "counting" or taken > 65536:
        return blocks, p
    unit = 64
    while 8 * unit <= taken:
        unit *= 2
    taken = -(-taken // unit) * unit
    blocks = 8 * taken // KINDS[kind][1]
    return blocks, rounded(rate(kind, blocks, k, n))


def next_part(kind, p, growth, parts):
    total, left = float(sum(part[2] for part in parts)), p
    for part in reversed(parts):
        left -= part[3]
    fine = growth < 2
    most = min(2.0**40, p * 2.0**60)
    step = (1.6 * 1.6, 1.6 * 1.6 * 1.6)[len(parts) % 2] if fine else 4
    grown = min(most, max(growth * total, min(step * total, 50000)))
    n = math.ceil(min(rounded(grown - total), most - total))
    fraction = 1 - growth ** (-1 / 5)
    own = max(KINDS[kind][5], rounded(left * fraction * (1 if fine else share(n))))
    blocks, k = size(kind, n, own)
    alike, probes = size(kind, n, own, parts[-1][1])
    if alike <= 1.01 * blocks:
        blocks, k = alike, probes
    if fine:
        blocks, own = fill_allocation(kind, blocks, k, n, own)
    return blocks, k, n, own


def table(kind, n, p, count):
    """A table of this number of segments."""
    first = rounded(p / 40)
    kind = "growing distinct"
    k = max(9, size(kind, 2**20, first)[1])
    last = math.floor(0.885 * 2 ** (16 - k) * slots(k))
    if n < 128 and k <= 14 and n <= last:
        if count == 1:
            return [(1, 16, max(n, 51), first)]
        blocks, n = 2 ** (16 - k), last
    else:
        blocks, _ = size(kind, n, first, k)
    groups, total, parts = blocks // 4, blocks, [(blocks, k, n, first)]
    for i in range(count - 1):
        total += groups << i // 4
        most = min(math.floor(0.885 * total * slots(k)),
                   math.floor(first * total * 2.0 ** (k + 8)))
        more = max(1, most - sum(part[2] for part in parts))
        parts.append((groups << i // 4, k, more, first))
    return parts


def grown(kind, n, p, growth, count):
    if kind == "distinct":
        return table(kind, n, p, count)
    first = rounded(p * 0.7 * share(n))
    blocks, k = size(kind, n, first)
    parts = [(blocks, k, n, first)]
    while len(parts) < count:
        parts.append(next_part(kind, p, growth, parts))
    return parts


# ---- Comparing ----------------------------------------------------------------


def digest_of(kind, parts):
    """As test/portable/plans.c has it."""
    digest = 0
    for blocks, k, n, p in parts:
        word = struct.unpack("<Q", struct.pack("<d", p))[0]
        for value in blocks * KINDS[kind][1], k, n, word:
            digest = (digest ^ value) * 0x9E3779B97F4A7C15 % 2**64
            digest ^= digest >> 29
    return digest


def kind_of(line):
    return re.match(r"\w+", line)[0]


def compare(line):
    """Whether our plan is the plan of the line; None if the line has none."""
    if words := re.fullmatch(r"(\w+) (\d+) (\S+): (\d+) bits, (\d+) probes", line):
        kind, n, p, bits, k = words.groups()
        blocks, probes = size(kind, int(n), float(p))
        return (blocks * KINDS[kind][1], probes) == (int(bits), int(k))
    if words := re.fullmatch(r"(\w+): grown by (\S+) to (\d+) parts (\w+)", line):
        kind, growth, count, digest = words.groups()
        parts = grown(kind, 100, 0.01, float(growth), int(count))
        return digest_of(kind, parts) == int(digest, 16)
    return None


def main():
    each = int(sys.argv[2]) if len(sys.argv) > 2 else 11
    lines = open(sys.argv[1], encoding="ascii").read().splitlines()
    if unknown := {kind_of(line) for line in lines} - KINDS.keys():
        sys.exit(f"{', '.join(unknown)}: put the rate into 'Making a filter' of "
                 "doc/FORMAT.md, and from there into KINDS of test/docs/plans.py")
    in_words = [line for line in lines if " probes" in line]
    chosen = in_words[::each] + [line for line in lines if " grown " in line]
    results = {line: compare(line) for line in chosen}
    for line, same in results.items():
        if same is False:
            print(f"planned in another way: {line}", file=sys.stderr)
    compared = [same for same in results.values() if same is not None]
    assert len(compared) >= 20 and all(compared)
    print(f"{len(compared)} plans are as doc/FORMAT.md says")


main()
