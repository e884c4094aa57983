#!/usr/bin/env python3
"""Bloom filters as tutorials write them, apart from Calyx: their hashes, their
positions and their bits.

    layout_model.py PROGRAM MEMBERS BITS KEYS    writes BITS, prints the keys found
    layout_model.py numbers BITS                 the Go program's own test
"""
import math
import sys

MASK = 2**64 - 1


def murmur3_32(key, seed):
    """As mmh3.hash: with a sign."""
    def scramble(word):
        word = word * 0xCC9E2D51 & 0xFFFFFFFF
        return (word << 15 | word >> 17) * 0x1B873593 & 0xFFFFFFFF

    h, whole = seed, len(key) // 4 * 4
    for at in range(0, whole, 4):
        h ^= scramble(int.from_bytes(key[at:at + 4], "little"))
        h = ((h << 13 | h >> 19) * 5 + 0xE6546B64) & 0xFFFFFFFF
    h ^= scramble(int.from_bytes(key[whole:], "little")) ^ len(key)
    h = (h ^ h >> 16) * 0x85EBCA6B & 0xFFFFFFFF
    h = (h ^ h >> 13) * 0xC2B2AE35 & 0xFFFFFFFF
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


def murmur3_64(key, seed):
    """The first half of the 128 bits, as Go's murmur3.New64WithSeed."""
    def rotate(x, by):
        return (x << by | x >> 64 - by) & MASK

    def mix(x):
        x = (x ^ x >> 33) * 0xFF51AFD7ED558CCD & MASK
        x = (x ^ x >> 33) * 0xC4CEB9FE1A85EC53 & MASK
        return x ^ x >> 33

    a, b, h1, h2 = 0x87C37B91114253D5, 0x4CF5AD432745937F, seed, seed
    for at in range(0, len(key), 16):
        block = key[at:at + 16]
        k1 = int.from_bytes(block[:8], "little")
        k2 = int.from_bytes(block[8:], "little")
        h1 ^= rotate(k1 * a & MASK, 31) * b & MASK
        if len(block) == 16:
            h1 = ((rotate(h1, 27) + h2) * 5 + 0x52DCE729) & MASK
        h2 ^= rotate(k2 * b & MASK, 33) * a & MASK
        if len(block) == 16:
            h2 = ((rotate(h2, 31) + h1) * 5 + 0x38495AB5) & MASK
    h1 ^= len(key)
    h2 ^= len(key)
    h1 = (h1 + h2) & MASK
    h2 = (h2 + h1) & MASK
    return (mix(h1) + mix(h2)) & MASK


def fnv1a(key):
    h = 0xCBF29CE484222325
    for byte in key:
        h = (h ^ byte) * 0x100000001B3 & MASK
    return h


def siphash13(key):
    """What hash() of bytes is since Python 3.11, if PYTHONHASHSEED is 0."""
    v = [0x736F6D6570736575, 0x646F72616E646F6D, 0x6C7967656E657261, 0x7465646279746573]

    def rotate(i, by):
        v[i] = (v[i] << by | v[i] >> 64 - by) & MASK

    def half(a, b, c, d, by, other):
        v[a] = (v[a] + v[b]) & MASK
        rotate(b, by)
        v[b] ^= v[a]
        v[c] = (v[c] + v[d]) & MASK
        rotate(d, other)
        v[d] ^= v[c]

    def round_():
        half(0, 1, 2, 3, 13, 16)
        rotate(0, 32)
        half(2, 1, 0, 3, 17, 21)
        rotate(2, 32)

    if not key:
        return 0
    whole = len(key) // 8 * 8
    last = int.from_bytes(key[whole:], "little") | (len(key) & 255) << 56
    words = [int.from_bytes(key[i:i + 8], "little") for i in range(0, whole, 8)]
    for word in words + [last]:
        v[3] ^= word
        round_()
        v[0] ^= word
    v[2] ^= 255
    for _ in range(3):
        round_()
    h = v[0] ^ v[1] ^ v[2] ^ v[3]
    h = h - 2**64 if h >= 2**63 else h
    return -2 if h == -1 else h


def doubled(h1, k, m):
    h2 = h1 ^ 0xFFFFFFFF
    return [(h1 + i * h2) % m for i in range(k)]


def bkdr(key, seed):
    h = 0
    for byte in key:
        h = (seed * h + byte) & 0xFFFFFFFF
    return h


# The positions of a key, how many there are, and a position's bit.
PROGRAMS = {
    "simple": (lambda key: doubled(siphash13(key), 7, 1000), 1000, "lsb"),
    "advised": (lambda key: doubled(fnv1a(key), 7, 1000), 1000, "lsb"),
    "crawler": (lambda key: [murmur3_32(key, seed) % 5000000
                             for seed in range(41, 48)], 5000000, "msb"),
    "unsigned": (lambda key: [murmur3_32(key, seed) % 2**32 % 5000000
                              for seed in range(41, 48)], 5000000, "lsb"),
    "go": (lambda key: [murmur3_64(key, seed) & 1023 for seed in range(3)],
           1024, "byte"),
    "java": (lambda key: [65535 & bkdr(key, seed)
                          for seed in (5, 7, 11, 13, 31, 37, 61)], 65536, "lsb"),
}


def pack(set_bits, m, order):
    if order == "byte":
        bits = bytearray(m)
        for p in set_bits:
            bits[p] = 1
        return bits
    bits = bytearray(math.ceil(m / 8))
    for p in set_bits:
        bits[p // 8] |= 128 >> p % 8 if order == "msb" else 1 << p % 8
    return bits


def write(program, members, path):
    positions, m, order = PROGRAMS[program]
    bits = {p for key in members for p in positions(key)}
    with open(path, "wb") as file:
        file.write(pack(bits, m, order))
    return bits


def numbers(path):
    members = [n.to_bytes(8, "little") for n in (1, 2, 3, 4, 5, 7)]
    write("go", members + [b"hu", b"Jemmy"], path)


def run(program, members, path, keys):
    bits = write(program, open(members, "rb").read().splitlines(), path)
    positions = PROGRAMS[program][0]
    for key in open(keys, "rb").read().splitlines():
        if all(p in bits for p in positions(key)):
            print(key.decode())


(numbers if sys.argv[1] == "numbers" else run)(*sys.argv[2 if sys.argv[1] == "numbers" else 1:])
