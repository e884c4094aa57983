"""A filter of valkey-bloom 1.0 (type `bloomfltr`), written apart from the module:
its bits, hashes, sizes and payloads were compared with the crates that
valkey-bloom uses (bloomfilter 3.0.1, siphasher 1.0.1, bincode 1.3.3).
"""
import math
import struct

M64 = (1 << 64) - 1
PRIME = 0xFFFFFFFFFFFFFFC5            # 2^64 - 59
MIN_POSITIVE = 2.2250738585072014e-308
LN2 = 0.6931471805599453
FIXED_SEED = bytes([89, 15, 245, 34, 234, 120, 17, 218, 167, 20, 216, 9, 59, 62, 123, 217, 29, 137,
                    138, 115, 62, 152, 136, 135, 48, 127, 151, 205, 40, 7, 51, 131])


def siphash13(key, data):
    """SipHash with 1 compression and 3 finalisation rounds, 64-bit result."""
    k0, k1 = struct.unpack("<QQ", key)
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573

    def rotl(x, b):
        return ((x << b) | (x >> (64 - b))) & M64

    def rnd():
        nonlocal v0, v1, v2, v3
        v0 = (v0 + v1) & M64; v1 = rotl(v1, 13) ^ v0; v0 = rotl(v0, 32)
        v2 = (v2 + v3) & M64; v3 = rotl(v3, 16) ^ v2
        v0 = (v0 + v3) & M64; v3 = rotl(v3, 21) ^ v0
        v2 = (v2 + v1) & M64; v1 = rotl(v1, 17) ^ v2; v2 = rotl(v2, 32)

    whole = len(data) & ~7
    for (m,) in struct.iter_unpack("<Q", data[:whole]):
        v3 ^= m; rnd(); v0 ^= m
    m = (len(data) & 255) << 56 | int.from_bytes(data[whole:], "little")
    v3 ^= m; rnd(); v0 ^= m
    v2 ^= 0xFF
    rnd(); rnd(); rnd()
    return v0 ^ v1 ^ v2 ^ v3


def item_hashes(seed, item):
    """The item enters each SipHash as its length in 8 bytes, little-endian, and its
    bytes."""
    msg = struct.pack("<Q", len(item)) + item
    return siphash13(seed[:16], msg), siphash13(seed[16:], msg)


def bitmap_bytes(capacity, fp):
    return math.ceil(capacity * math.log(fp) / (-8.0 * (LN2 * LN2)))


def round_half_away(x):
    return math.floor(x + 0.5)


class Part:
    HEADER = struct.Struct("<BQI32s")                     # 45 bytes: version, bytes, k, seed

    def __init__(self, capacity, fp, seed):
        n = bitmap_bytes(capacity, fp)
        self.capacity, self.items, self.seed = capacity, 0, seed
        self.k = max(1, round_half_away(n * 8 / capacity * math.log(2.0)))
        self.bits = bytearray(n)

    def positions(self, item):
        h0, h1 = item_hashes(self.seed, item)
        m = len(self.bits) * 8
        for i in range(self.k):
            if i == 0:
                h = h0
            elif i == 1:
                h = h1                                    # the second hash itself, not h0 + h1
            else:
                h = ((h0 + i * h1) & M64) % PRIME
            yield h % m

    def check(self, item):
        return all(self.bits[p >> 3] >> (p & 7) & 1 for p in self.positions(item))

    def set(self, item):
        for p in self.positions(item):
            self.bits[p >> 3] |= 1 << (p & 7)

    def blob(self):
        return self.HEADER.pack(1, len(self.bits), self.k, self.seed) + bytes(self.bits)

    @classmethod
    def from_blob(cls, blob, capacity, items):
        if len(blob) < 45:
            raise ValueError("short")
        version, n, k, seed = cls.HEADER.unpack(blob[:45])
        if version != 1 or k == 0 or n != len(blob) - 45 or n == 0:
            raise ValueError("bad part")
        p = cls.__new__(cls)
        p.capacity, p.items, p.k, p.seed, p.bits = capacity, items, k, seed, bytearray(blob[45:])
        return p


class Bloom:
    def __init__(self, fp=0.01, capacity=100, expansion=2, tightening=0.5, seed=FIXED_SEED):
        self.fp, self.expansion, self.tightening = fp, expansion, tightening
        self.random = seed != FIXED_SEED
        self.parts = [Part(capacity, fp, seed)]

    def exists(self, item):
        return any(p.check(item) for p in self.parts)

    def add(self, item):
        """1 new, 0 seemed to be there, or the text of an error (without the memory limit)."""
        if self.exists(item):
            return 0
        last = self.parts[-1]
        if last.items >= last.capacity:
            if self.expansion == 0:
                return "ERR non scaling filter is full"
            fp = self.fp * self.tightening ** len(self.parts)
            if not fp > MIN_POSITIVE:
                return "ERR false positive degrades to 0 on scale out"
            cap = last.capacity * self.expansion
            if cap >= 1 << 63:
                return "ERR bad capacity"
            last = Part(cap, fp, self.parts[0].seed)
            self.parts.append(last)
        last.set(item)
        last.items += 1
        return 1

    # --- RDB value: type name bloomfltr, encoding version 1 -------------------------------
    def rdb_fields(self, bitmap_first=False):
        """int = unsigned, float = double, bytes = string. Versions before 1.0 have the
        bitmap first."""
        out = [len(self.parts), self.expansion, float(self.fp), float(self.tightening),
               int(self.random)]
        for i, p in enumerate(self.parts):
            tail = [p.capacity] + ([p.items] if i == len(self.parts) - 1 else [])
            out += [p.blob()] + tail if bitmap_first else tail + [p.blob()]
        return out

    @classmethod
    def from_rdb_fields(cls, f):
        """Takes either order: a string differs from an integer."""
        self = cls.__new__(cls)
        n, self.expansion, self.fp, self.tightening, rnd = f[:5]
        self.random, self.parts = rnd == 1, []
        rest, bitmap_first = list(f[5:]), isinstance(f[5], bytes)
        for i in range(n):
            last = i == n - 1
            if bitmap_first:
                blob = rest.pop(0)
            cap = rest.pop(0)
            items = rest.pop(0) if last else cap
            if not bitmap_first:
                blob = rest.pop(0)
            self.parts.append(Part.from_blob(blob, cap, items))
        if rest:
            raise ValueError("more fields than parts")
        return self

    # --- BF.LOAD payload ----------------------------------------------------------------------
    def load_payload(self):
        out = bytearray(b"\x01")                          # version of the object
        out += struct.pack("<IddBQ", self.expansion, self.fp, self.tightening,
                           self.random, len(self.parts))
        for p in self.parts:
            b = p.blob()
            out += struct.pack("<Q", len(b)) + b + struct.pack("<qq", p.items, p.capacity)
        return bytes(out)

    @classmethod
    def from_load_payload(cls, b):
        if not b or b[0] != 1:
            raise ValueError("Unsupported version")
        self = cls.__new__(cls)
        self.expansion, self.fp, self.tightening, rnd, n = struct.unpack_from("<IddBQ", b, 1)
        self.random, self.parts, i = rnd == 1, [], 30
        for _ in range(n):
            (ln,) = struct.unpack_from("<Q", b, i)
            blob = b[i + 8:i + 8 + ln]
            items, cap = struct.unpack_from("<qq", b, i + 8 + ln)
            self.parts.append(Part.from_blob(blob, cap, items))
            i += 24 + ln
        return self

    def info(self):
        cap_vec = 1 if len(self.parts) == 1 else max(4, 1 << (len(self.parts) - 1).bit_length())
        return {"Capacity": sum(p.capacity for p in self.parts),
                "Size": SIZE_OBJECT + 8 * cap_vec + sum(SIZE_PART + len(p.bits)
                                                        for p in self.parts),
                "Number of filters": len(self.parts),
                "Number of items inserted": sum(p.items for p in self.parts),
                "Error rate": self.fp,
                "Expansion rate": self.expansion or None}


SIZE_OBJECT, SIZE_PART = 48, 24 + 184     # sizes of its structures on 64 bits
