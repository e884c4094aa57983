"""What real RedisBloom wrote, 2.8.20 and 8 (its master of June 2026), and what it
answered then: redisbloom.tar.xz, which has a README of its own. Keys that begin
with b: are Bloom filters, those with c: cuckoo filters."""
import json
import os
import tarfile

VERSIONS = ("2.8.20", "master")
ARCHIVE = os.path.join(os.path.dirname(__file__), "redisbloom.tar.xz")


def read(version, name):
    with tarfile.open(ARCHIVE) as archive:
        return archive.extractfile(f"{version}/{name}").read()


def expected(version):
    return json.loads(read(version, "expected.json"))["keys"]


def family(key):
    """What its commands begin with."""
    return {"b:": "BF.", "c:": "CF."}[key[:2]]


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
    """Every item that RedisBloom acknowledged, and did not delete, is there."""
    for group in record["groups"]:
        offered = items(group["items"])
        answers = r(family(key) + "MEXISTS", key, *offered)
        taken = bits(group["acknowledged"], len(offered))
        if family(key) == "CF.":
            taken = [t & e for t, e in zip(taken, bits(group["exists"],
                                                       len(offered)))]
        assert not [i for i, a, t in zip(offered, answers, taken)
                    if t and not a], key


def is_as_recorded(r, key, record):
    """It is the same filter, and counts the same."""
    assert r("TYPE", key) == record["type"]
    for group in record["groups"] + [record["nonmembers"]]:
        offered = items(group["items"])
        assert r(family(key) + "MEXISTS", key, *offered) == bits(
            group["exists"], len(offered)), key
        if "count" in group:
            assert r.pipeline([("CF.COUNT", key, item) for item in offered]
                              ) == group["count"], key
    info = r(family(key) + "INFO", key)
    assert dict(zip(info[::2], info[1::2])) == record["info"], key
    debug = r(family(key) + "DEBUG", key)
    if family(key) == "CF.":
        assert debug.decode() == record["debug"]
    else:
        assert [line.decode() for line in debug] == record["debug"]
        assert r("BF.CARD", key) == record["card"]
