"""RedisBloom's cuckoo filters, made without RedisBloom and without our C code.

Written from the description of their rules and bytes: slow and short, so that it
can be compared with the description line by line. module/cuckoo is compared with
it, byte for byte.

A slot is one byte: 0 if it is free, else a fingerprint. A bucket is `bucket_size`
slots, a part an array of buckets, a filter a list of parts; part i has
expansion^i times the buckets of the first.
"""
import struct

from redisbloom_data import M64, dump_payload, murmur64a

ALT = 0x5BD1E995
CHUNK = 16 << 20


def next_power(n):
    """The smallest power of two from n on; 0 stays 0."""
    return 0 if n == 0 else 1 << (n - 1).bit_length()


def other(fingerprint, place):
    """The other place of a fingerprint; its own inverse."""
    return (place ^ fingerprint * ALT) & M64


def places(item):
    h = murmur64a(item, 0)
    fingerprint = h % 255 + 1
    return fingerprint, h, other(fingerprint, h)


class Part:
    def __init__(self, buckets, size):
        self.buckets, self.size = buckets, size
        self.slots = bytearray(buckets * size)

    def bucket(self, place):
        begin = place % self.buckets * self.size
        return range(begin, begin + self.size)

    def first(self, value, one, two):
        """The first slot of this value, in either bucket."""
        return next((s for place in (one, two) for s in self.bucket(place)
                     if self.slots[s] == value), None)


class Cuckoo:
    def __init__(self, capacity=1024, bucket_size=2, iterations=20, expansion=1):
        self.bucket_size, self.iterations = bucket_size, iterations
        self.expansion = next_power(expansion)
        self.buckets = next_power(capacity // bucket_size)
        self.items = self.deletes = 0
        self.parts = []
        self.grow()

    def grow(self):
        self.parts.append(Part(self.buckets * self.expansion**len(self.parts),
                               self.bucket_size))

    # ---- Items

    def has(self, item):
        fingerprint, one, two = places(item)
        return any(p.first(fingerprint, one, two) is not None
                   for p in self.parts)

    def count(self, item):
        """If both buckets are one, it counts twice."""
        fingerprint, one, two = places(item)
        return sum(p.slots[s] == fingerprint for p in self.parts
                   for place in (one, two) for s in p.bucket(place))

    def add(self, item):
        """1, or -1 if it is full."""
        fingerprint, one, two = places(item)
        while True:
            for part in reversed(self.parts):
                slot = part.first(0, one, two)
                if slot is not None:
                    part.slots[slot] = fingerprint
                    self.items += 1
                    return 1
            if self.kick(self.parts[-1], fingerprint, one):
                self.items += 1
                return 1
            if self.expansion == 0:
                return -1
            self.grow()

    def add_new(self, item):
        return 0 if self.has(item) else self.add(item)

    def kick(self, part, fingerprint, place):
        size, victim, before = self.bucket_size, 0, bytes(part.slots)
        for _ in range(self.iterations):
            slot = part.bucket(place)[victim]
            part.slots[slot], fingerprint = fingerprint, part.slots[slot]
            place = other(fingerprint, place)
            for slot in part.bucket(place):
                if part.slots[slot] == 0:
                    part.slots[slot] = fingerprint
                    return True
            victim = (victim + 1) % size
        part.slots[:] = before
        return False

    def delete(self, item):
        fingerprint, one, two = places(item)
        for part in reversed(self.parts):
            slot = part.first(fingerprint, one, two)
            if slot is None:
                continue
            part.slots[slot] = 0
            self.items -= 1
            self.deletes += 1
            if len(self.parts) > 1 and self.deletes > self.items * 0.10:
                self.compact(whole=False)
            return 1
        return 0

    def compact(self, whole=True):
        for n in range(len(self.parts) - 1, 0, -1):
            if not self.compact_part(n) and not whole:
                break
        self.deletes = 0

    def compact_part(self, n):
        part, emptied = self.parts[n], True
        for at, fingerprint in enumerate(bytes(part.slots)):
            if fingerprint == 0:
                continue
            bucket = at // self.bucket_size
            for older in self.parts[:n]:
                to = older.first(0, bucket, other(fingerprint, bucket))
                if to is not None:
                    older.slots[to] = fingerprint
                    part.slots[at] = 0
                    break
            else:
                emptied = False
        if emptied and n == len(self.parts) - 1:
            self.parts.pop()
        return emptied

    # ---- What is said of it

    def debug(self):
        return (f"bktsize:{self.bucket_size} buckets:{self.buckets} "
                f"items:{self.items} deletes:{self.deletes} "
                f"filters:{len(self.parts)} max_iterations:{self.iterations} "
                f"expansion:{self.expansion}")

    def header(self):
        return struct.pack("<QQQQHHH", self.items, self.buckets, self.deletes,
                           len(self.parts), self.bucket_size, self.iterations,
                           self.expansion)

    def chunks(self):
        """What SCANDUMP gives: nothing if there are no items."""
        if self.items == 0:
            return
        yield 1, self.header()
        at = 1
        for part in self.parts:
            for begin in range(0, len(part.slots), CHUNK):
                data = bytes(part.slots[begin:begin + CHUNK])
                at += len(data)
                yield at, data

    def fields(self):
        """The values in an RDB file."""
        out = [len(self.parts), self.buckets, self.items, self.deletes,
               self.bucket_size, self.iterations, self.expansion]
        for part in self.parts:
            out += [part.buckets, bytes(part.slots)]
        return out

    def payload(self):
        return payload(self.fields())


def payload(fields, encoding=4):
    return dump_payload(fields, encoding=encoding, name=b"MBbloomCF")


def header(items=0, buckets=4, deletes=0, parts=1, bucket_size=2, iterations=20,
           expansion=1):
    return struct.pack("<QQQQHHH", items, buckets, deletes, parts, bucket_size,
                       iterations, expansion)


def from_header(data):
    items, buckets, deletes, parts, bucket_size, iterations, expansion = (
        struct.unpack("<QQQQHHH", data))
    made = Cuckoo(buckets * bucket_size, bucket_size, iterations, expansion)
    while len(made.parts) < parts:
        made.grow()
    made.items, made.deletes = items, deletes
    return made
