#!/usr/bin/env python3
"""Ask a Calyx filter from Python, with nothing but doc/FORMAT.md to go by.

    read_filter.py [-x] [-k KEY] FILE [WORD...]

Prints the words that the filter has; without any, the words of the standard input,
one on a line. Like grep, it exits with 0 if there was one, with 1 if not, and
with 2 if the file cannot be used. -x: words are bytes in hexadecimal. -k: the
secret key of a siphash filter, in hexadecimal. Every checksum is checked.
"""
import os
import sys
from getopt import GetoptError, getopt
from itertools import takewhile
from struct import unpack_from

from xxh import fnv1a, murmur3, siphash, xxh3, xxh64

M32, M64 = 2**32 - 1, 2**64 - 1
RANGE, UNSEALED = 2**16, 0x5EA1ED0FF1B2D4C3
SALT = (0x47B6137B, 0x44974D91, 0x8824AD5B, 0xA2B7289D,
        0x705495C7, 0x2DF1424B, 0x9EFC4947, 0x5C6BFB31)


# ---- Kinds: the places of a key's bits in a body, as numbers of bits --------

def sets(size):
    """The sets of that number of columns that a key may take: bit w for column w."""
    if size > 4:
        return [255 - others for others in sets(8 - size)]
    every = [set for set in range(256) if bin(set).count("1") == size]
    once_more = {2: [0x03, 0x0C, 0x30, 0xC0],
                 3: [0x0B, 0x16, 0x2C, 0x58, 0xB0, 0x61, 0xC2, 0x85]}
    left_out = {4: [0x0F, 0x33, 0x55, 0xAA, 0xCC, 0xF0]}
    return ([set for set in every if set not in left_out.get(size, [])] +
            once_more.get(size, []))


SETS = [sets(size) for size in range(9)]


def line(hash, blocks, probes):
    n, low = hash * blocks >> 64, hash & M32

    def bits(columns, shift):
        set = SETS[columns][(hash >> 5) % len(SETS[columns])]
        for w in (w for w in range(8) if set >> w & 1):
            spot = ((low * SALT[w] & M32) >> shift) % 64
            yield 512 * n + 32 * (w + 8 * (spot // 32)) + 31 - spot % 32
    return [*bits(min(probes, 8), 26), *bits(max(probes - 8, 0), 20)]


def line2(hash, blocks, probes):
    second = (hash ^ hash >> 32) * 0x9E3779B97F4A7C15 & M64
    return line(hash, blocks, probes // 2) + line(second, blocks, probes // 2)


def split(hash, blocks, probes):
    n, low = (hash >> 32) * blocks >> 32, hash & M32
    return [256 * n + 32 * w + ((low * SALT[w] & M32) >> 27) for w in range(8)]


def flat(hash, blocks, probes):
    for _ in range(probes):
        yield hash * blocks >> 64
        hash = hash * 6364136223846793005 + 1442695040888963407 & M64


class Ribbon:
    """A layer of a ribbon filter: groups of 16 rows, in lots of 512 groups."""

    def __init__(self, data, at, blocks, probes, wide, values):
        check(3 <= blocks <= 2**37 and blocks % 512 not in (1, 2) and
              1 <= probes <= 31 and
              (wide == 0 or wide % 32 == 0 and wide <= blocks - 3 and
               probes <= 30), "part")
        self.data, self.at = data, at
        check(values == 0 or values == 1 == probes and wide == 0, "part")
        self.blocks, self.probes, self.wide, self.values = blocks, probes, wide, values
        self.size = self.flags(blocks - 1) + 64

    def before(self, group):
        return 2 * (group * self.probes + min(group, self.wide))

    def flags(self, group):
        end = min(group // 512 * 512 + 512, self.blocks)
        return up(group // 512 * 64 + self.before(end), 64)

    def is_bumped(self, hash):
        group = hash * self.blocks >> 64
        byte = self.at + self.flags(group) + group % 512 // 8
        return self.data[byte] >> group % 8 & 1

    def has(self, hash):
        group = hash * self.blocks >> 64
        a = (hash & M32) * 0xD6E8FEB5
        mixed = (a << 32 & M64 | a >> 32) ^ (hash >> 32 ^ a >> 32) * 0xCA9B0C7D
        result = ((mixed ^ mixed >> 32) & M32) * 0xB5297A4D >> 24
        is_wide = group < self.wide
        end = min(group // 512 * 512 + 512,
                  self.wide if is_wide else self.blocks)
        first = min(group, end - 3)
        words = self.probes + is_wide
        start = self.at + first // 512 * 64 + self.before(first)
        for i in range(words):
            rows = 0
            for j in range(3):
                word, = unpack_from("<H", self.data, start + 2 * (j * words + i))
                rows |= word << 16 * j
            odd = bin(rows & mixed >> 16).count("1") % 2
            if odd != result >> 2 * (i % 16) + i // 16 & 1:
                return False
        return True


RIBBON, GROWING, FIXED = 9, (10, 11), (12, 13)
TABLES = GROWING + FIXED


def next_hash(layer, hash):
    return (hash ^ hash >> 32) * 0x9E3779B97F4A7C15 & M64 - layer.values


def in_layers(layers, hash):
    for layer in layers:
        if not layer.is_bumped(hash):
            return layer.has(hash)
        hash = next_hash(layer, hash)
    return False


def in_sets(layers, hash):
    """Of an exact filter: first layers and value layers in turn."""
    found = False
    while layers:
        first = [*takewhile(lambda layer: not layer.values, layers)]
        layers = layers[len(first):]
        values = [*takewhile(lambda layer: layer.values, layers)]
        layers = layers[len(values):]
        if not first or in_layers(first, hash):
            found ^= in_layers(values, next_hash(values[0], hash))
    return found


# Places, bits of a block, bits of its counters, most blocks, probes allowed. In
# a table, a key has no places: has_in_table looks for it.
KINDS = {3: (split, 256, 0, 2**32 - 1, (8,)),
         4: (flat, 1, 0, 2**44, range(1, 65)),
         6: (line, 512, 0, 2**35, range(1, 17)),
         7: (line2, 512, 0, 2**35, range(2, 33, 2)),
         8: (line, 512, 2050, 2**35, range(1, 17)),
         **dict.fromkeys(GROWING, (None, 512, 32, 2**35, range(1, 17))),
         **dict.fromkeys(FIXED, (None, 512, 32, 2**35, range(1, 235)))}
HASHES = {1: xxh3, 2: xxh64, 3: siphash, 4: murmur3, 5: fnv1a}


# ---- Tables: the parts are segments of one -----------------------------------

def find_bucket(hash, parts):
    """Part and number of the bucket of a hash, its level, and the bits after."""
    if parts[0][1] < 4:
        few = parts[0][1]
        return 0, hash * few >> 64, 0, hash * few & M64
    groups, wide = parts[0][1] // 4, parts[-1][3]
    stage, moved = len(parts) - 2, wide
    if len(parts) == 1 or wide == parts[-1][1]:
        stage, moved = len(parts) - 1, 0
    now = groups << stage // 4
    if hash * now >> 64 >= now - moved:
        stage += 1
    now = groups << stage // 4
    bucket, part = hash * now * (4 + stage % 4) >> 64, 0
    size = 4 * groups  # of part 0, without what is left over
    while bucket >= size:
        bucket, part = bucket - size, part + 1
        size = parts[part][1]
    return part, bucket, stage // 4, hash * now * 4 & M64


def spill_lines(blocks):
    return 2 if blocks < 8 else -(-blocks // 16) + 3 + min(blocks // 32, 7)


def matches(stored, code, level):
    stop = stored & -stored if level else 0  # the lowest 1
    return not (stored ^ code) & -max(2 * stop, 1)


def has_in_table(data, parts, hash):
    part, bucket, level, f = find_bucket(hash, parts)
    at, blocks, probes, _ = parts[part]
    width, code = probes + 8, f >> 64 - probes - 8
    place = 1 if probes > 8 else probes if probes < 5 else 3
    size, lane = width - place, 16 if probes > 8 else 8
    first, want = code >> size, code % 2**size
    block = data[at + 64 * bucket:at + 64 * bucket + 64]
    bits = int.from_bytes(block, "little")
    if probes > 8:
        slots, begin, end = 496 // size, 0, block[62] % 64
        if first:
            begin, end = end, slots
        spilled = block[63] << (code >> width - 6) % 8 & 128
        if block[62:] == b"\xff\xff":  # saturated
            return True
        if level == 0:
            want = want or 1
    else:
        slots = 8 * (63 - 2**place) // size
        begin, end = (block[63 - 2**place + first + i] & 63 for i in (0, 1))
        spilled = block[64 - 2**place + first] >> 7

    def slot(i):
        rest = sum((bits >> slots * (lane + j) + i & 1) << j
                   for j in range(size - lane))
        return (bits >> lane * i & 2**lane - 1) << size - lane | rest
    if any((probes < 9 or slot(i)) and matches(slot(i), want, level)
           for i in range(begin, end)):
        return True
    code = first << size | want
    lines, line = spill_lines(blocks), bucket // 16
    mark = 2**(31 - width) if probes < 9 else 0
    for n in range(min(256, 2**(28 - width)) if spilled else 0):
        line = (line + (n if lines > 32 > n else min(n, 1))) % lines
        *entries, passed = unpack_from("<16I", data, at + 64 * (blocks + line))
        for entry in entries:
            if (entry and entry >> width == bucket % 16 + 16 * n + mark and
                    matches(entry & 2**width - 1, code, level)):
                return True
        if not passed:
            break
    return False


# ---- Tables of fixed size ----------------------------------------------------

def in_fixed_table(data, at, blocks, probes, hash):
    remainders = 16 + (probes - 1) % 16 << (probes - 1) // 16 + 1
    size = max(8, (remainders - 1).bit_length())
    runs = (hash * blocks & M64) >> 32
    line, run = hash * blocks >> 64, runs * 20 >> 32
    remainder = (runs * 20 & M32) * remainders >> 32
    bits = int.from_bytes(data[at + 64 * line:at + 64 * line + 64], "little")
    counts = [bits >> 448 + 3 * i & 7 for i in range(20)]
    begin = sum(counts[:run])
    if any(bits >> size * (begin + i) & 2**size - 1 == remainder
           for i in range(counts[run])) or bits >> 509 & 1:
        return True
    if not bits >> 508 & 1 or begin and counts[run] < 7:
        return False
    lines, number = spill_lines(blocks), line // 16
    want = 1 + run * remainders + remainder | line % 16 << 24
    for n in range(min(16, lines)):
        number = (number + (n if lines > 32 else min(n, 1))) % lines
        *words, passed = unpack_from("<16I", data, at + 64 * (blocks + number))
        if want | n << 28 in words:
            return True
        if not passed:
            break
    return False


# ---- The file: checks all of it, and returns a function that has(a key) -----

def check(good, complaint):
    if not good:
        raise ValueError(complaint)


def up(n, unit):
    return -(-n // unit) * unit


def check_records(data):
    names, at = set(), 0
    while at < len(data):
        check(len(data) - at >= 4, "records")
        kind, size = unpack_from("<HH", data, at)
        at += 4 + size
        check(kind > 0 and at <= len(data), "records")
        if kind == 1:
            name, *rest = data[at - size:at].split(b"\0")
            check(len(rest) == 2 and rest[1] == b"" and 1 <= len(name) <= 64 and
                  name not in names, "property")
            names.add(name)


def read_list(data):
    """The keys of the allow list: in ascending order, each after its size."""
    keys, at = [], 0
    while at < len(data):
        check(len(data) - at >= 4, "allow list")
        size, = unpack_from("<I", data, at)
        keys.append(data[at + 4:at + 4 + size])
        at += 4 + size
    check(at == len(data) and
          all(a < b for a, b in zip(keys, keys[1:])), "allow list")
    return frozenset(keys)


def open_filter(data, key=b""):
    check(data[:8] != b"\x89CLP\r\n\x1a\n", "a part file: join all parts first")
    check(data[:8] != b"\x89CLH\r\n\x1a\n", "a file of hashes, no filter")
    check(len(data) >= 128 and data[:8] == b"\x89CLX\r\n\x1a\n", "no filter")
    (version, order, must, may, file_size, header_size, align, kind, hash_code,
     flags, seed, hash_check, fpr, growth, count, comment_size,
     records_size, list_size,
     list_sum) = unpack_from("<IIIIQIIHHIQQddIIIIQ", data, 8)
    check(order == 0x0A0B0C0D, "its bytes are in another order")
    check(version == 1 and must <= 3, "too new")
    has_list, exact = must & 1 == 1, must & 2 == 2
    check(200 <= header_size <= min(12288, len(data)), "header size")
    header_sum, = unpack_from("<Q", data, header_size - 8)
    check(xxh3(data[:header_size - 8]) == header_sum, "header checksum")
    check(kind in KINDS or kind == RIBBON, f"unknown kind {kind}")
    check(hash_code in HASHES, f"unknown hash {hash_code}")
    used = 128 + 64 * count
    after = used + comment_size + records_size
    check(align in (64, 4096) and flags <= 1 and 0 <= fpr <= 1 and
          (growth == 0 or 1.25 <= growth <= 16) and 1 <= count <= 96 and
          comment_size <= 1000 and records_size <= 4096 and
          has_list == (0 < list_size <= 262144) and
          (has_list or list_size == list_sum == 0) and
          not any(data[104:128]) and header_size == up(after + 8, align) and
          0 not in data[used:used + comment_size], "header")

    check_records(data[used + comment_size:after])
    check(kind != RIBBON or (exact or count <= 24) and growth == flags == 0, "layers")
    check(kind not in FIXED or count == 1 and growth == 0, "a fixed table")
    check(kind not in GROWING or growth > 0, "a growing table")

    list_end = header_size + list_size
    allowed = read_list(data[header_size:list_end])
    check(not has_list or xxh3(data[header_size:list_end]) == list_sum,
          "checksum of the allow list")

    sections = [(0, after), (header_size - 8, list_end)]
    parts, ranges, at = [], [], up(list_end, align)
    for record in range(128, used, 64):
        blocks, probes, values, capacity, items, rate, body_at, size, rest = \
            unpack_from("<QIIQQdQQQ", data, record)
        if kind == RIBBON:
            parts.append(Ribbon(data, at, blocks, probes, rest, values))
            check(size == parts[-1].size, "part")
        else:
            places, block_bits, counter_bits, most, some = KINDS[kind]
            check(1 <= blocks <= most and probes in some
                  and rest <= (max(blocks, 7) if kind in GROWING else 0)
                  and capacity >= 1
                  and size == (up(blocks * block_bits, 512) +
                               (512 * spill_lines(blocks) if kind in TABLES
                                else up(blocks * counter_bits, 512))) // 8,
                  "part")
            parts.append((at, blocks, probes, rest))
        check(values <= exact and capacity <= 2**44 and 0 <= rate <= 1
              and body_at == at, "part")
        sections.append((at, at + size))
        ranges += [(i, min(i + RANGE, at + size))
                   for i in range(at, at + size, RANGE)]
        at = up(at + size, align)
    check(exact == (kind == RIBBON and parts[-1].values == 1), "value layers")
    tables = slice(at, at + 8 * len(ranges))
    sections.append((tables.start, tables.stop))
    unit = 512 if align == 4096 else 64
    slots = [up(tables.stop, unit), up(tables.stop, unit) + unit]
    check(file_size == len(data) == slots[1] + unit, "file size")

    def hash(key_):
        return HASHES[hash_code](key_, key if hash_code == 3 else seed)
    check(hash_code != 3 or len(key) == 16, "it wants a secret key of 16 bytes")
    check(hash(b"calyx: is this the same hash?") == hash_check, "secret key")

    counts = (0, 0, 0)  # of the slots, the valid one of the last generation
    for slot in slots:
        generation, state, _, items, tables_sum, of_header, _, _, own = \
            unpack_from("<QIIQQQQQQ", data, slot)
        if (own == xxh3(data[slot:slot + 56]) and of_header == header_sum and
                state in (1, 2)):
            counts = max(counts, (generation, state, tables_sum))
        sections.append((slot, slot + 64))
    check(counts[0], "no slot is valid")
    sealed = counts[1] == 1
    check(not sealed or xxh3(data[tables]) == counts[2],
          "checksum of the tables")
    for i, (start, end) in enumerate(ranges):
        stored, = unpack_from("<Q", data, tables.start + 8 * i)
        computed = xxh3(data[start:end], i)
        check(stored == computed + (computed == UNSEALED) or
              not sealed and stored == UNSEALED, f"bytes from {start} on")
    for at, blocks, _, _ in parts if kind not in (RIBBON, *TABLES) else ():
        for used in (blocks * block_bits, blocks * counter_bits):
            end = at + up(used, 512) // 8
            bits = int.from_bytes(data[at:end], "little")
            check(bits >> used == 0, "bits after the last")
            at = end
    for (_, start), (end, _) in zip(sections, sections[1:] + [(file_size, 0)]):
        check(not any(data[start:end]), f"gap at {start}")

    def has(word):
        if word in allowed:
            return False
        hashed = hash(word)
        if kind == RIBBON:
            return in_sets(parts, hashed) if exact else in_layers(parts, hashed)
        if kind in FIXED:
            return in_fixed_table(data, *parts[0][:3], hashed)
        if kind in GROWING:
            return has_in_table(data, parts, hashed)
        return any(all(data[start + bit // 8] >> bit % 8 & 1
                       for bit in places(hashed, blocks, probes))
                   for start, blocks, probes, _ in parts)
    return has


def main(arguments):
    try:
        options, words = getopt(arguments, "xk:")
        options = dict(options)
        check(words, "usage: read_filter.py [-x] [-k KEY] FILE [WORD...]")
        with open(words.pop(0), "rb") as file:
            has = open_filter(file.read(), bytes.fromhex(options.get("-k", "")))
        parse = bytes.fromhex if "-x" in options else os.fsencode
        found = [word for word in words or sys.stdin.read().split("\n")[:-1]
                 if has(parse(word))]
    except (GetoptError, OSError, ValueError) as error:
        print(f"read_filter.py: {error}", file=sys.stderr)
        return 2
    sys.stdout.write("".join(word + "\n" for word in found))
    return 0 if found else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
