"""What real RedisBloom wrote, 2.8.20 and 8 (its master of June 2026), and what it
answered then: redisbloom.tar.xz, which has a README of its own. Here only the
Bloom filters of it are used: keys that begin with b:."""
import json
import os
import tarfile

from resp import encode

VERSIONS = ("2.8.20", "master")
ARCHIVE = os.path.join(os.path.dirname(__file__), "redisbloom.tar.xz")


def read(version, name):
    with tarfile.open(ARCHIVE) as archive:
        return archive.extractfile(f"{version}/{name}").read()


def expected(version):
    records = json.loads(read(version, "expected.json"))["keys"]
    return {key: of for key, of in records.items() if key.startswith("b:")}


# ---- AOFs ------------------------------------------------------------------


def commands(aof):
    """The words of each command of an AOF, or of a stream."""
    at = 0
    while at < len(aof):
        end = aof.index(b"\r\n", at)
        count, words, at = int(aof[at + 1:end]), [], end + 2
        for _ in range(count):
            end = aof.index(b"\r\n", at)
            size = int(aof[at + 1:end])
            words.append(aof[end + 2:end + 2 + size])
            at = end + 2 + size + 2
        yield words


def plain_aof(version):
    return read(version, "aof-plain/appendonly.aof.1.incr.aof")


def rewritten_aof(version):
    return read(version, "aof-rewritten/appendonly.aof.2.base.aof")


def bloom_only(aof):
    return b"".join(encode(*words) for words in commands(aof)
                    if not words[0].upper().startswith(b"CF."))


# ---- RDB files -------------------------------------------------------------


class Rdb:
    """Just enough of an RDB file to leave out the keys of other types."""

    def __init__(self, data):
        self.data, self.at = data, 9

    def byte(self):
        self.at += 1
        return self.data[self.at - 1]

    def skip(self, size):
        self.at += size
        return self.data[self.at - size:self.at]

    def length(self):
        """A number; or a tuple for a string of another form."""
        first = self.byte()
        if first >> 6 == 0:
            return first & 63
        if first >> 6 == 1:
            return (first & 63) << 8 | self.byte()
        if first == 0x80:
            return int.from_bytes(self.skip(4), "big")
        if first == 0x81:
            return int.from_bytes(self.skip(8), "big")
        return (first & 63,)

    def string(self):
        size = self.length()
        if size == (3,):  # compressed
            packed, _ = self.length(), self.length()
            return self.skip(packed)
        return self.skip(size if isinstance(size, int) else 1 << size[0])

    def key_and_value(self):
        """Of a module's type; returns the key."""
        assert self.byte() == 7
        key = self.string()
        self.length()  # the type
        while True:
            what = self.length()
            if what == 0:
                return key
            if what == 2:
                self.length()
            elif what == 4:
                self.skip(8)
            else:
                assert what == 5
                self.string()

    def without(self, prefix):
        """The file without keys of that name; its checksum is 0, for none."""
        kept = self.data[:9]
        while self.data[self.at] != 255:
            start, key = self.at, b""
            what = self.data[self.at]
            if what < 16:
                key = self.key_and_value()
            else:  # about the file, how many keys, which database
                self.at += 1
                read = self.string if what == 0xFA else self.length
                for _ in range({0xFA: 2, 0xFB: 2, 0xFE: 1}[what]):
                    read()
            if not key.startswith(prefix):
                kept += self.data[start:self.at]
        return kept + b"\xff" + bytes(8)


def bloom_rdb(version, name="dump.rdb"):
    return Rdb(read(version, name)).without(b"c:")


# ---- Answers ---------------------------------------------------------------


def items(spec):
    if "hex" in spec:
        return [bytes.fromhex(item) for item in spec["hex"]]
    return [b"%s%d" % (spec["text"].encode(), i)
            for i in range(spec["from"], spec["to"])]


def bits(text, n):
    data = bytes.fromhex(text)
    return [data[i >> 3] >> (i & 7) & 1 for i in range(n)]


def nothing_is_lost(r, key, record):
    """Every item that RedisBloom acknowledged is there."""
    for group in record["groups"]:
        offered = items(group["items"])
        answers = r("BF.MEXISTS", key, *offered)
        taken = bits(group["acknowledged"], len(offered))
        assert not [i for i, a, t in zip(offered, answers, taken)
                    if t and not a], key


def is_as_recorded(r, key, record):
    """It is the same filter, and counts the same."""
    assert r("TYPE", key) == record["type"]
    for group in record["groups"] + [record["nonmembers"]]:
        offered = items(group["items"])
        assert r("BF.MEXISTS", key, *offered) == bits(
            group["exists"], len(offered)), key
    info = r("BF.INFO", key)
    assert dict(zip(info[::2], info[1::2])) == record["info"], key
    assert [line.decode() for line in r("BF.DEBUG", key)] == record["debug"]
    assert r("BF.CARD", key) == record["card"]
