"""Files of hashes, for 'calyx build --part': what Spark, or any other engine that
shuffles by range, writes. doc/FORMAT.md describes the bytes.

    hasher = Filter(1, hash="xxh3")                       # in a task, of its keys
    for hash in hasher.hash_many(keys):
        for part in parts_of(hash, 64):
            emit(part, hash)

    write_hashes("7-of-64.hashes", hashes, 7, 64)         # in a task, of one part
"""
import os
import struct

from . import Filter

__all__ = ["margin_of", "parts_of", "start_of", "write_hashes"]

MAGIC = b"\x89CLH\r\n\x1a\n"
KNOWN_TEXT = b"calyx: is this the same hash?"
CHUNK = 8192  # hashes


def start_of(part, parts):
    """The lowest hash of a part, from 1 to parts + 1."""
    return -(-((part - 1) << 64) // parts)


def margin_of(parts):
    """A part also has the hashes after its range that are nearer than this: its last
    block may end there."""
    return ((1 << 64) - 1) // parts // 32


def parts_of(hash, parts):
    """The parts, from 1 on, whose files have this hash: one, or a second before it."""
    part = (hash * parts >> 64) + 1
    if part > 1 and hash - start_of(part, parts) < margin_of(parts):
        return [part, part - 1]
    return [part]


def _sum(data):
    return struct.pack("<Q", Filter(1, hash="xxh64", seed=0).hash_many([data])[0])


def write_hashes(path, hashes, part, parts, *, hash="xxh3", seed=0, options=""):
    """Write the hashes of one part, in the order of the keys. `options` are the options
    by which a command found keys in lines: none for keys that are whole lines. The
    file appears when it is complete."""
    check = Filter(1, hash=hash, seed=seed).hash_many([KNOWN_TEXT])[0]
    text = options.encode()
    head = MAGIC + struct.pack("<IIIIQQ16sII", 1, 0x0A0B0C0D, part, parts, seed, check,
                               hash.encode(), len(text), 0) + text
    hashes = memoryview(hashes).cast("B").cast("Q")
    with open(f"{path}.incomplete", "wb") as file:
        file.write(head + _sum(head))
        number = 0
        for at in range(0, len(hashes), CHUNK):
            some = hashes[at:at + CHUNK]
            chunk = struct.pack(f"<II{len(some)}Q", len(some), number & 0xFFFFFFFF, *some)
            file.write(chunk + _sum(chunk))
            number += 1
        end = struct.pack("<IIQ", 0, number & 0xFFFFFFFF, len(hashes))
        file.write(end + _sum(end))
    os.replace(f"{path}.incomplete", path)
