"""Read what `calyx convert` wrote, by its description alone.

    forms.py parquet FILE BYTES KEYS    forms.py raw FILE KIND KEYS
"""
import sys

import read_filter
from xxh import xxh3, xxh64


def places(kind, hashed, blocks, probes):
    return getattr(read_filter, kind)(hashed, blocks, probes)


def all_there(bits, kind, hash_key, blocks, probes, path):
    def has(key):
        return all(bits[at // 8] >> at % 8 & 1
                   for at in places(kind, hash_key(key), blocks, probes))

    keys = open(path, "rb").read().split(b"\n")[:-1]
    assert all(has(key) for key in keys), "a key is missing"
    absent = sum(has(b"absent %d" % i) for i in range(2000))
    assert absent < 200, "%d absent keys of 2000 pass" % absent


def thrift(data):
    """A struct in the compact protocol, as nested dictionaries."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def struct():
        nonlocal at
        fields, field = {}, 0
        while True:
            head = data[at]
            at += 1
            if head == 0:
                return fields
            assert head >> 4, "long form of a field"
            field += head >> 4
            if head & 15 == 5:
                folded = number()
                fields[field] = folded >> 1 ^ -(folded & 1)
            else:
                assert head & 15 == 12, "type %d" % (head & 15)
                fields[field] = struct()

    return struct(), at


form, path, detail, keys = sys.argv[1:]
data = open(path, "rb").read()
if form == "parquet":
    header, at = thrift(data)
    size = int(detail)
    assert header == {1: size, 2: {1: {}}, 3: {1: {}}, 4: {1: {}}}, header
    bits = data[at:]
    assert len(bits) == size, len(bits)
    all_there(bits, "split", xxh64, size // 32, 8, keys)
else:
    lines = data[:128].decode().rstrip("\n").split("\n")
    assert lines[0] == "calyx raw 2", lines
    said = dict(line.split("=") for line in lines[1:])
    assert list(said) == ["kind", "hash", "seed", "probes", "bits"], said
    assert said["kind"] == detail, said
    bits, count, seed = data[128:], int(said["bits"]), int(said["seed"])
    assert len(bits) == (count + 7) // 8, (len(bits), count)
    hashes = {"xxh3": xxh3, "xxh64": xxh64}
    block, = {row[1] for row in read_filter.KINDS.values()
              if row[0] == getattr(read_filter, detail)}
    all_there(bits, detail, lambda key: hashes[said["hash"]](key, seed),
              count // block, int(said["probes"]), keys)
