#!/usr/bin/python3
"""RedisBloom's filters, made without RedisBloom and without our C code.

Written from the description of its bytes: a chain of links, as RDB values in
the encodings 0 to 4, as DUMP payloads (which RESTORE takes), and as the header
and chunks of SCANDUMP. It is slow and short, so that it can be compared with
the description line by line; module/layout/redisbloom_*.c is compared with it, bit for
bit, and servers are given its payloads.

    for case in cases():
        server.restore("key", 0, case.payload())    # case.encoding
        case.keys                                   # all of them are in it

As a program it writes each case to a file, for the C tests:

    redisbloom_data.py FOLDER
    redisbloom_data.py --corpus FOLDER              # first inputs of a fuzzer
"""

import math
import os
import struct
import sys

NOROUND, ENTS_IS_BITS, FORCE64, NO_SCALING = 1, 2, 4, 8
GROWS = NOROUND | FORCE64
FIXED = GROWS | NO_SCALING

M32, M64 = 2**32 - 1, 2**64 - 1

# ---- Hashes ----------------------------------------------------------------


def murmur64a(key, seed):
    m = 0xC6A4A7935BD1E995
    h = seed ^ len(key) * m & M64
    whole = len(key) // 8 * 8
    for (k,) in struct.iter_unpack("<Q", key[:whole]):
        k = k * m & M64
        k ^= k >> 47
        h = (h ^ k * m & M64) * m & M64
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & M64
    h ^= h >> 47
    h = h * m & M64
    return h ^ h >> 47


def murmur2(key, seed):
    m = 0x5BD1E995
    h = (seed ^ len(key)) & M32
    whole = len(key) // 4 * 4
    for (k,) in struct.iter_unpack("<I", key[:whole]):
        k = k * m & M32
        k ^= k >> 24
        h = h * m & M32 ^ k * m & M32
    if whole < len(key):
        h = (h ^ int.from_bytes(key[whole:], "little")) * m & M32
    h ^= h >> 13
    h = h * m & M32
    return h ^ h >> 15


# Both agreed with others on many keys: with libbloom 1.6, from which RedisBloom
# comes (as did its positions), and with the HyperLogLog of redis-server 7.0.
assert murmur2(b"a rose is a rose", 0x9747B28C) == 0xC9093467
assert murmur64a(b"a rose is a rose", 0xADC83B19) == 0x25BC3B4982A3FBF6


def crc64(data):
    """The CRC of RDB files: Jones' polynomial, reflected, from 0."""
    crc = 0
    for byte in data:
        crc = CRC_TABLE[(crc ^ byte) & 255] ^ crc >> 8
    return crc


def crc_table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x95AC9329AC4BC9B5 if n & 1 else 0)
        yield n


CRC_TABLE = list(crc_table())
assert crc64(b"123456789") == 0xE9C6D914C4B8D9CA

# ---- Filters ---------------------------------------------------------------


class Full(Exception):
    """The filter may not grow."""


class Link:
    """One Bloom filter. `early` links are the links of the first versions: as many
    bytes as the bits need, and bits that are stated differently."""

    def __init__(self, size, error, options, early=None):
        self.error, self.entries, self.items, self.n2 = error, size, 0, 0
        self.bpe = abs(math.log(error) / 0.480453013918201)
        self.hashes = math.ceil(0.693147180559945 * self.bpe)
        if options & ENTS_IS_BITS:
            if size >= 48:
                raise Full
            self.n2 = size
            bits = 2**size
            self.entries = int(bits / self.bpe)
        elif options & NOROUND or early == "2017":
            bits = max(1, int(size * self.bpe))
        else:
            self.n2 = max(0, math.frexp(size * self.bpe)[1])
            bits = 2**self.n2
            self.entries += int(int(bits - size * self.bpe) / self.bpe)
        self.bytes = -(-bits // 64) * 8
        self.bits = self.bytes * 8
        if early:
            self.bytes, self.bits = -(-bits // 8), bits
        self.stated_bits = 0 if early == "no bits" else self.bits
        self.body = bytearray(self.bytes)

    def positions(self, hashes, narrow=False):
        """Where the bits of a key are; `narrow` by the arithmetic of 2017."""
        a, b = hashes
        modulus = 2**self.n2 if self.n2 else self.bits
        for i in range(self.hashes):
            yield (a + i * b & (M32 if narrow else M64)) % modulus

    def has(self, hashes, narrow=False):
        return all(
            self.body[x >> 3] >> (x & 7) & 1
            for x in self.positions(hashes, narrow)
        )

    def add(self, hashes, narrow=False):
        for x in self.positions(hashes, narrow):
            self.body[x >> 3] |= 1 << (x & 7)
        self.items += 1


class Filter:
    """A chain of links. In the year 2017 it has the arithmetic of 2017."""

    def __init__(self, capacity, error, options=GROWS, growth=2, early=None):
        self.options, self.growth, self.early = options, growth, early
        if not options & NO_SCALING:
            error /= 2
        self.links = [Link(capacity, error, options, early)]

    @property
    def items(self):
        return sum(link.items for link in self.links)

    def hashes(self, key):
        if self.options & FORCE64:
            a = murmur64a(key, 0xC6A4A7935BD1E995)
            return a, murmur64a(key, a)
        a = murmur2(key, 0x9747B28C)
        return a, murmur2(key, a)

    def has(self, key):
        """By both arithmetics where it cannot be known which one was used."""
        hashes = self.hashes(key)
        old = not self.options & FORCE64
        return any(
            link.has(hashes) or old and link.n2 == 0 and link.has(hashes, True)
            for link in reversed(self.links)
        )

    def add(self, key):
        """Returns whether the key was fresh, as BF.ADD does."""
        if self.has(key):
            return False
        last = self.links[-1]
        if last.items >= last.entries:
            if self.options & NO_SCALING:
                raise Full
            self.links.append(
                Link(
                    last.entries * self.growth,
                    last.error / 2,
                    self.options,
                    self.early,
                )
            )
        self.links[-1].add(self.hashes(key), self.early == "2017")
        return True

    # ---- RDB and DUMP

    def values(self, encoding=4):
        """What the RDB form consists of: numbers, reals and strings."""
        yield self.items
        yield len(self.links)
        if encoding >= 2:
            yield self.options
        if encoding >= 4:
            yield self.growth
        for link in self.links:
            yield link.entries
            yield link.error
            yield link.hashes
            yield link.bpe
            if encoding >= 1:
                yield link.stated_bits
                yield link.n2
            yield bytes(link.body)
            yield link.items

    def payload(self, encoding=4, rdb_version=10):
        return dump_payload(self.values(encoding), encoding, rdb_version)

    # ---- SCANDUMP

    def header(self, form="new"):
        """`form` "old" has no growth, "old" and "middle" have entries of 32
        bits: the headers of the encodings up to 3."""
        head = struct.pack("<QII", self.items, len(self.links), self.options)
        if form != "old":
            head += struct.pack("<I", self.growth)
        entries = "Q" if form == "new" else "I"
        return head + b"".join(
            struct.pack(
                "<QQQddI" + entries + "B",
                link.bytes,
                link.stated_bits,
                link.items,
                link.error,
                link.bpe,
                link.hashes,
                link.entries,
                link.n2,
            )
            for link in self.links
        )

    def chunks(self, most=16 << 20, form="new"):
        """(iterator, bytes), as LOADCHUNK wants them; the header first."""
        yield 1, self.header(form)
        end = 1
        for link in self.links:
            for at in range(0, link.bytes, most):
                chunk = bytes(link.body[at : at + most])
                end += len(chunk)
                yield end, chunk


# ---- The framing of a DUMP payload -----------------------------------------

LETTERS = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"


def rdb_length(n):
    if n < 1 << 6:
        return bytes([n])
    if n < 1 << 14:
        return struct.pack(">H", n | 1 << 14)
    if n < 1 << 32:
        return b"\x80" + struct.pack(">I", n)
    return b"\x81" + struct.pack(">Q", n)


def type_id(name, encoding):
    number = 0
    for letter in name:
        number = number << 6 | LETTERS.index(letter)
    return number << 10 | encoding


def seal(data, rdb_version=10):
    """The version and checksum that end a payload; for changed ones, too."""
    data += struct.pack("<H", rdb_version)
    return data + struct.pack("<Q", crc64(data))


def body(payload):
    """A payload without what seal adds, which depends on the server."""
    return payload[:-10]


def payload_values(data):
    """The numbers and strings of the body of a payload."""
    at, values = 1 + 9, []  # after the type, and the name of the module's

    def length():
        nonlocal at
        first = data[at]
        size = {0: 1, 1: 2}.get(first >> 6, 5 if first == 0x80 else 9)
        field = data[at:at + size]
        at += size
        return int.from_bytes(field[1:] if size > 2 else
                              bytes([first & 63]) + field[1:], "big")

    while (opcode := length()) != 0:
        assert opcode in (2, 5)
        values.append(length())
        if opcode == 5:
            size = values.pop()
            values.append(data[at:at + size])
            at += size
    assert at == len(data)
    return values


def dump_payload(values, encoding=4, rdb_version=10, name=b"MBbloom--"):
    """Of any values, also of those that make no filter."""
    unsigned, double, string, end = 2, 4, 5, 0
    data = bytes([7]) + rdb_length(type_id(name, encoding))
    for value in values:
        if isinstance(value, float):
            data += rdb_length(double) + struct.pack("<d", value)
        elif isinstance(value, int):
            data += rdb_length(unsigned) + rdb_length(value)
        else:
            data += rdb_length(string) + rdb_length(len(value)) + value
    return seal(data + rdb_length(end), rdb_version)


# ---- The cases -------------------------------------------------------------


class Case:
    """A filter with keys in it, as some version of RedisBloom left it."""

    def __init__(self, name, filter, keys, encoding=4, made=None, form="new"):
        self.name, self.filter, self.encoding = name, filter, encoding
        self.made = made  # what to give BF.RESERVE to get it; None: no longer
        self.form = form
        self.fresh = [filter.add(key) for key in keys]
        self.keys = keys

    def payload(self):
        return self.filter.payload(self.encoding)


def words(n, start=0):
    return [b"key:%d" % i for i in range(start, start + n)]


def odd_keys():
    """Of every length, with every byte."""
    everything = bytes(range(256)) * 5
    return [everything[i * 7 : i * 7 + i] for i in range(70)] + [everything]


def new(name, capacity, error, options, growth, keys):
    capped = min(error, 0.25)
    filter = Filter(capacity, capped, options, growth)
    return Case(name, filter, keys, 4, (capacity, error, options, growth))


def oldest_in_newer_hands():
    """Made in 2017, loaded by a later version, which added in its own way."""
    filter = Filter(50, 0.01, 0, 2, "2017")
    case = Case("oldest-later", filter, words(40))
    filter.early = None
    later = words(150, 1000)
    case.fresh += [filter.add(key) for key in later]
    case.keys = case.keys + later
    return case


def cases():
    yield new("default", 100, 0.01, GROWS, 2, words(60))
    yield new("empty", 100, 0.01, GROWS, 2, [])
    yield new("odd-keys", 100, 0.001, GROWS, 2, odd_keys())
    yield new("repeated", 100, 0.01, GROWS, 2, words(50) + words(70))
    yield new("one", 1, 0.25, GROWS, 2, words(1))
    yield new("grown", 10, 0.01, GROWS, 2, words(500))
    yield new("grown-by-1", 3, 0.01, GROWS, 1, words(60))
    yield new("grown-by-5", 7, 0.05, GROWS, 5, words(300))
    yield new("many-links", 1, 0.01, GROWS, 1, words(150))
    yield new("fixed", 200, 0.01, FIXED, 2, words(190))
    yield new("fixed-0", 20, 0.01, FIXED, 0, words(10))
    yield new("rare", 50, 1e-9, GROWS, 2, words(120))
    yield new("capped", 100, 0.9, GROWS, 2, words(150))
    yield new("capped-fixed", 1000, 0.9, FIXED, 2, words(300))
    yield new("large", 300000, 0.01, GROWS, 2, words(2000))

    # 64-bit hashes, bodies of a power of two
    yield new("rounded", 100, 0.01, FORCE64, 2, words(400))
    yield new("bits", 10, 0.01, FORCE64 | ENTS_IS_BITS, 2, words(50))
    for encoding, form in (2, "old"), (3, "old"), (3, "middle"):
        filter = Filter(60, 0.01, FORCE64)
        name = "rounded-%d-%s" % (encoding, form)
        yield Case(name, filter, words(200), encoding, None, form)

    # 32-bit hashes
    yield new("narrow", 100, 0.01, 0, 2, words(400))
    yield new("narrow-noround", 100, 0.01, NOROUND, 2, words(300))
    for encoding in 1, 2, 3:
        filter = Filter(30, 0.02, 0)
        name = "narrow-%d" % encoding
        yield Case(name, filter, words(100), encoding, None, "old")
    filter = Filter(1, 0.5, 0, 2, "no bits")
    yield Case("no-bits", filter, words(60), 1, None, "old")
    filter = Filter(33, 0.01, GROWS, 2, "odd bits")
    yield Case("odd-bits", filter, words(120))
    filter = Filter(33, 0.01, NOROUND | FORCE64 | NO_SCALING, 2, "odd bits")
    yield Case("odd-bits-fixed", filter, words(30), 3, None, "old")

    # 32-bit arithmetic, and what became of it
    yield Case("oldest", Filter(50, 0.01, 0, 2, "2017"), words(49), 0)
    yield Case("oldest-grown", Filter(11, 0.01, 0, 2, "2017"), words(99), 0)
    yield oldest_in_newer_hands()


# ---- Files for the C tests -------------------------------------------------
#
# Sections of a tag, a length of 4 bytes, and bytes. Values are written as 8
# bytes, little-endian, and strings with their length before them.


def plain(values):
    out = b""
    for value in values:
        if isinstance(value, float):
            out += struct.pack("<d", value)
        elif isinstance(value, int):
            out += struct.pack("<Q", value)
        else:
            out += struct.pack("<Q", len(value)) + value
    return out


def plain_chunks(chunks):
    return b"".join(struct.pack("<qQ", at, len(c)) + c for at, c in chunks)


def add_all(filter, keys):
    """The answers, up to the key that does not fit."""
    answers = b""
    for key in keys:
        try:
            answers += bytes([filter.add(key)])
        except Full:
            break
    return answers


def normalized(filter):
    """The numbers that we write in place of the numbers of early versions."""
    filter.early = None
    for link in filter.links:
        link.stated_bits = link.bytes * 8 if link.n2 else link.bits
    return filter


def sections(case):
    capacity, error, options, growth = case.made or (0, 0.0, 0, 0)
    filter = case.filter
    yield "how", struct.pack(
        "<QdIII", capacity, error, options, growth, case.encoding
    )
    yield "key", plain(case.keys)
    yield "new", bytes(case.fresh)
    yield "val", plain(filter.values(case.encoding))
    yield "dmp", plain_chunks(filter.chunks(100, case.form))
    normalized(filter)
    yield "sav", plain(filter.values())
    yield "chk", plain_chunks(filter.chunks(1000))
    absent = words(500, 10**6)
    yield "str", plain(absent)
    yield "ans", bytes(filter.has(key) for key in absent)
    yield "fre", add_all(filter, absent)
    yield "end", plain(filter.values())


def write(folder, name, data):
    with open(os.path.join(folder, name), "wb") as file:
        file.write(data)


def write_cases(folder):
    os.makedirs(folder, exist_ok=True)
    for case in cases():
        data = b""
        for tag, content in sections(case):
            data += tag.encode() + b"\0" + struct.pack("<I", len(content))
            data += content
        write(folder, case.name, data)


def write_corpus(folder):
    """What fuzz_redisbloom reads: an encoding and values, or 255 and a dump.
    Only small ones."""
    os.makedirs(folder, exist_ok=True)
    for case in cases():
        values = plain(case.filter.values(case.encoding))
        if len(values) < 1000:
            write(folder, case.name, bytes([case.encoding]) + values)
            dump = plain_chunks(case.filter.chunks(100, case.form))
            write(folder, case.name + "-dump", b"\xff" + dump)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--corpus":
        write_corpus(sys.argv[2])
    elif len(sys.argv) == 2:
        write_cases(sys.argv[1])
    else:
        sys.exit(__doc__)
