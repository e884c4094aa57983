"""Streams and AOFs from RedisBloom are obeyed, whatever the settings here; and
what is written for filters of its layout is what it understands."""
import base64
import glob
import json
import os
import random
import struct

import golden
import pytest
from cuckoo_model import Cuckoo
from golden import VERSIONS, family, is_as_recorded, nothing_is_lost
from redisbloom_data import FIXED, NO_SCALING, Filter
from redisbloom_server import RedisBloom
from resp import Error, encode
from servers import FakePrimary, are_equal, digest, dump, follow

OTHER_SETTINGS = ("bf-expansion-factor", 0, "calyx-max-filter-bytes", 100,
                  "cf-expansion-factor", 0, "cf-max-expansions", 1,
                  "cf-max-iterations", 3)

# In 2.8 a rate above 0.25 is what it says, in 8 it is 0.25. A stream does not
# say which it is; here it is as in 2.8.
RATES = {"b:ns50-over", "b:rate50", "b:rate90", "b:rate26", "b:abbrev2"}
# All of them that might be full too early do not get full, but grow.
UNSURE = {"b:ns50-over", "b:abbrev2"}


def write_aof(folder, content):
    os.mkdir(folder + "/appendonlydir")
    with open(folder + "/appendonlydir/appendonly.aof.1.incr.aof", "wb") as f:
        f.write(content)
    with open(folder + "/appendonlydir/appendonly.aof.manifest", "w") as f:
        f.write("file appendonly.aof.1.incr.aof seq 1 type i\n")


def start_with_aof(start, content, *arguments):
    server = start(*arguments)
    server.kill()
    write_aof(server.folder, content)
    server.options["appendonly"] = "yes"
    server.start()
    return server


def is_what_they_had(r, version, by_commands):
    records = golden.expected(version)
    assert len(records) >= 43
    assert sorted(r("KEYS", "*")) == sorted(key.encode() for key in records)
    for key, record in records.items():
        nothing_is_lost(r, key, record)
        differs = RATES if version == "master" else UNSURE
        if not by_commands or key not in differs:
            is_as_recorded(r, key, record)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plain_aof_is_loaded(start, version):
    server = start_with_aof(start, golden.plain_aof(version))
    is_what_they_had(server.client(), version, by_commands=True)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_rewritten_aof_is_loaded(start, version):
    server = start_with_aof(start, golden.rewritten_aof(version),
                            *OTHER_SETTINGS)
    is_what_they_had(server.client(), version, by_commands=False)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["dump.rdb", "dump-uncompressed.rdb"])
def test_an_rdb_file_is_loaded(start, version, name):
    server = start()
    server.kill()
    with open(server.folder + "/dump.rdb", "wb") as rdb:
        rdb.write(golden.read(version, name))
    server.start()
    is_what_they_had(server.client(), version, by_commands=False)


def payloads(version):
    return {key: base64.b64decode(data) for key, data in json.loads(
        golden.read(version, "dump-payloads.json")).items()}


def recorded_chunks(version):
    return {key: [(at, base64.b64decode(data)) for at, data in pieces]
            for key, pieces in json.loads(
                golden.read(version, "scandump.json")).items()}


@pytest.mark.parametrize("version", VERSIONS)
def test_payloads_are_restored_and_go_back_byte_for_byte(r, version):
    r("CONFIG", "SET", "rdbcompression", "no")
    for key, payload in payloads(version).items():
        assert r("RESTORE", key, 0, payload) == "OK"
        assert r("DUMP", key) == payload, key
    r("CONFIG", "SET", "rdbcompression", "yes")
    is_what_they_had(r, version, by_commands=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_chunks_are_loaded_and_go_back_byte_for_byte(r, version):
    for key, pieces in recorded_chunks(version).items():
        for at, data in pieces:
            assert r(family(key) + "LOADCHUNK", key, at, data) == "OK"
        if pieces:
            assert dump(r, key, family(key) + "SCANDUMP") == pieces, key
        else:  # a cuckoo filter without items has no dump
            assert key in ("c:empty", "c:emptied")
            assert r("RESTORE", key, 0, payloads(version)[key]) == "OK"
            assert dump(r, key, "CF.SCANDUMP") == []
    is_what_they_had(r, version, by_commands=False)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_is_followed(start, version):
    """With an error of a command the replica would end."""
    server = start(propagation_error_behavior="panic")
    r = server.client()
    primary = FakePrimary(r)
    primary.send(golden.plain_aof(version))
    is_what_they_had(r, version, by_commands=True)
    primary.close()
    assert server.alive() and "CRITICAL" not in server.text()


@pytest.mark.parametrize("version", VERSIONS)
def test_a_stream_goes_on_after_a_full_sync(start, version):
    """The same again changes nothing but filters that are full."""
    server = start(*OTHER_SETTINGS)
    r = server.client()
    primary = FakePrimary(r, golden.read(version, "dump.rdb"))
    aof = golden.plain_aof(version)
    primary.send(b"".join(
        encode(*words) for words in golden.commands(aof)
        if words[0].upper() in (b"SELECT", b"BF.ADD", b"BF.MADD")))
    is_what_they_had(r, version, by_commands=False)
    primary.close()


# ---- What else RedisBloom accepts -------------------------------------------


def replay(start, stream, *arguments):
    """By a replication link, and by an AOF."""
    server = start(*arguments, propagation_error_behavior="panic")
    r = server.client()
    primary = FakePrimary(r)
    primary.send(stream)
    assert server.alive(), server.text()[-3000:]
    primary.close()
    assert r("REPLICAOF", "NO", "ONE") == "OK"
    yield r
    yield start_with_aof(start, stream, *arguments).client()


def all_there(r, key, items):
    assert r("BF.MEXISTS", key, *items) == [1] * len(items)


def test_defaults_come_from_redisbloom_or_from_the_settings(start):
    stream = encode("BF.ADD", "k", "a") + encode("BF.RESERVE", "r", 0.01, 50)
    for arguments, capacity, expansion in (
            ((), 100, 2),
            (("bf-initial-size", 70, "bf-expansion-factor", 4), 70, 4)):
        for r in replay(start, stream, *arguments):
            assert r("TYPE", "k") == r("TYPE", "r") == "MBbloom--"
            assert r("BF.INFO", "k", "CAPACITY") == [capacity]
            assert r("BF.INFO", "k", "EXPANSION") == [expansion]
            assert r("BF.INFO", "r", "EXPANSION") == [expansion]


def test_what_their_settings_decide_is_never_full_here(start):
    """Filters that may be of any size there, or not grow there."""
    items = [f"i{i}" for i in range(3000)]
    stream = (encode("BF.MADD", "defaults", *items) +
              encode("BF.RESERVE", "reserved", 0.01, 20) +
              encode("BF.MADD", "reserved", *items) +
              encode("BF.INSERT", "fixed", "NONSCALING", "ITEMS", *items) +
              encode("BF.INSERT", "fixed 2", "NONSCALING", "CAPACITY", 5,
                     "ITEMS", *items) +
              encode("BF.RESERVE", "rate", 0.3, 10, "NONSCALING") +
              encode("BF.MADD", "rate", *items))
    for r in replay(start, stream, *OTHER_SETTINGS, "bf-initial-size", 3):
        for key in ("defaults", "reserved", "fixed", "fixed 2", "rate"):
            all_there(r, key, items)


def test_loose_words_are_understood(start):
    stream = (encode("BF.RESERVE", "junk", 0.01, 100, "junk") +
              encode("BF.RESERVE", "NONSCALING", 0.01, 100) +
              encode("BF.RESERVE", "LAYOUT", 0.01, 100) +
              encode("BF.RESERVE", "wide", 0.01, 100, "expansion", 99999) +
              encode("bf.insert", "letters", "c", 55, "er", 0.1, "ex", 3, "i",
                     "a", "b") +
              encode("BF.INSERT", "letters", "nocreate", "i", "c") +
              encode("BF.INSERT", "fixed", "EXPANSION", 5, "n", "CAPA", 10,
                     "ERRO", 0.01, "I", "a") +
              encode("BF.INSERT", "zero", "EXPANSION", 0, "CAPACITY", 10,
                     "ERROR", 0.01, "ITEMS", "a") +
              encode("BF.INSERT", "letters", "LAYOUT", "native", "ITEMS", "d"))
    for r in replay(start, stream):
        assert r("BF.INFO", "junk", "EXPANSION") == [2]
        assert r("BF.INFO", "NONSCALING", "EXPANSION") == [None]
        assert r("BF.INFO", "wide", "EXPANSION") == [99999]
        assert r("BF.INFO", "letters", "CAPACITY") == [55]
        assert r("BF.INFO", "letters", "EXPANSION") == [3]
        assert r("BF.INFO", "fixed", "EXPANSION") == [None]
        assert r("BF.INFO", "zero", "EXPANSION") == [None]
        all_there(r, "letters", "abcd")
        assert {r("TYPE", key) for key in r("KEYS", "*")} == {"MBbloom--"}


def test_loose_words_are_refused_from_clients(r):
    assert isinstance(r("BF.RESERVE", "k", 0.01, 100, "junk"), Error)
    assert isinstance(r("BF.INSERT", "k", "c", 55, "i", "a"), Error)
    assert r("BF.RESERVE", "k", 0.5, 100, "LAYOUT", "redisbloom") == "OK"
    assert b"ratio:0.125" in r("BF.DEBUG", "k")[1]  # half of 0.25


def test_a_filter_is_used_while_it_is_loaded_as_redisbloom_does(start):
    """Chunks in any order, and items between them."""
    key = "b:loaded"
    pieces = recorded_chunks("2.8.20")[key]
    assert len(pieces) > 3
    stream = encode("BF.LOADCHUNK", key, *pieces[0])
    for piece in pieces[:0:-1]:
        stream += encode("BF.LOADCHUNK", key, *piece)
    stream += encode("BF.LOADCHUNK", "b:half", *pieces[0])
    stream += encode("BF.ADD", "b:half", "early")
    for piece in pieces[1:]:
        stream += encode("BF.LOADCHUNK", "b:half", *piece)
    record = golden.expected("2.8.20")[key]
    for r in replay(start, stream):
        is_as_recorded(r, key, record)
        nothing_is_lost(r, "b:half", record)
        all_there(r, "b:half", ["early"])


def test_transactions_are_obeyed(start):
    stream = (encode("MULTI") + encode("BF.INSERT", "k", "c", 10, "i", "a") +
              encode("BF.ADD", "new", "b") + encode("EXEC"))
    for r in replay(start, stream):
        all_there(r, "k", "a")
        all_there(r, "new", "b")
        assert r("TYPE", "k") == r("TYPE", "new") == "MBbloom--"


# ---- The way back ------------------------------------------------------------


def written(server):
    path, = glob.glob(server.folder + "/appendonlydir/*.incr.aof")
    with open(path, "rb") as aof:
        return list(golden.commands(aof.read()))


def without_growth(header):
    """The same for filters that do not grow, of which it says nothing."""
    options, = struct.unpack_from("<I", header, 12)
    return header[:16] + bytes(4) * (options & NO_SCALING > 0) + header[
        16 + 4 * (options & NO_SCALING > 0):]


def redisbloom_comes_to_the_same(server, r):
    theirs = RedisBloom()
    for words in written(server):
        theirs.run(words)
    assert theirs.refused_as_full == 0
    keys = r("KEYS", "*")
    assert sorted(keys) == sorted(theirs.keys)
    for key in keys:
        assert r("PEXPIRETIME", key) == theirs.expires.get(key, -1)
        if isinstance(theirs.keys[key], Cuckoo):
            assert r("CF.DEBUG", key).decode() == theirs.keys[key].debug()
            assert dump(r, key, "CF.SCANDUMP") == list(
                theirs.keys[key].chunks()), key
            continue
        (_, ours), *pieces = dump(r, key)
        (_, header), *chunks = theirs.keys[key].chunks()
        assert without_growth(ours) == without_growth(header), key
        assert pieces == chunks, key
    return theirs


def odd_dump():
    """Of a filter that neither BF.RESERVE nor BF.INSERT makes."""
    theirs = Filter(30, 0.8, FIXED)
    for i in range(20):
        theirs.add(b"odd%d" % i)
    return theirs


NAMES = ["EXPANSION", "nonscaling", "LAYOUT", "items"]


def random_cuckoo_command(generator):
    key = generator.choice(["EXPANSION", "bucketsize", "MAXITERATIONS"] +
                           [f"c{i}" for i in range(9)])
    items = [f"i{generator.randrange(300)}" for _ in range(
        generator.randrange(1, 30))]
    size = generator.choice([1, 2, 3, 8])
    capacity = generator.randrange(16, 300)
    return generator.choice([
        ("CF.ADD", key, items[0]),
        ("CF.ADDNX", key, items[0]),
        ("CF.INSERT", key, "ITEMS", *items),
        ("CF.INSERT", key, "CAPACITY", capacity, "ITEMS", *items),
        ("CF.INSERTNX", key, "CAPACITY", capacity, "ITEMS", *items),
        ("CF.RESERVE", key, capacity, "BUCKETSIZE", size, "EXPANSION",
         generator.choice([0, 1, 2, 3]), "MAXITERATIONS",
         generator.choice([1, 20])),
        ("CF.DEL", key, items[0]),
        ("CF.DEL", key, items[0]),
        ("CF.COMPACT", key),
        ("RENAME", key, f"c{generator.randrange(9)}"),
        ("DEL", generator.choice([key, "none"])),
    ])


def random_command(generator):
    if generator.random() < 0.4:
        return random_cuckoo_command(generator)
    key = generator.choice(NAMES + [f"k{i}" for i in range(9)])
    items = [f"i{generator.randrange(3000)}" for _ in range(
        generator.randrange(1, 30))]
    rate = generator.choice([0.5, 0.25, 0.1, 0.0123456789, 1e-6])
    capacity = generator.randrange(1, 200)
    how = generator.choice([(), ("NONSCALING",), ("EXPANSION", 1),
                            ("EXPANSION", 3), ("EXPANSION", 0)])
    return generator.choice([
        ("BF.ADD", key, items[0]),
        ("BF.ADD", key, items[0]),
        ("BF.MADD", key, *items),
        ("BF.MADD", key, *items),
        ("BF.RESERVE", key, rate, capacity, *how),
        ("BF.INSERT", key, "ERROR", rate, "CAPACITY", capacity, *how, "ITEMS",
         *items),
        ("BF.INSERT", key, *how, "LAYOUT", "redisbloom", "ITEMS", *items),
        ("BF.INSERT", key, "NONSCALING", "EXPANSION", 7, "ITEMS", *items),
        ("EVAL", "return redis.call('BF.MADD', KEYS[1], 'x', ARGV[1])", 1, key,
         items[0]),
        ("BF.CLEAR", key),
        ("BF.SWAP", key, f"k{generator.randrange(9)}"),
        ("PEXPIREAT", key, 4102444800000 + generator.randrange(1000)),
        ("RENAME", key, f"k{generator.randrange(9)}"),
        ("DEL", key),
    ])


def test_redisbloom_comes_to_the_same_by_what_is_written(start):
    """After random commands, and after loads: the same bytes, by the AOF, which
    has what the stream has; and so do replicas and restarts."""
    server = start("calyx-layout", "redisbloom", appendonly="yes")
    replica = start("bf-expansion-factor", 0, "bf-initial-size", 7,
                    "cf-bucket-size", 5, "cf-max-expansions", 1,
                    propagation_error_behavior="panic")
    r, copy = server.client(), follow(replica, server)
    generator = random.Random(3)
    for _ in range(30):
        r.pipeline([random_command(generator) for _ in range(100)])
    for form, at in (("new", 0), ("old", 1), ("middle", 2)):
        for piece in odd_dump().chunks(7, form):
            assert r("BF.LOADCHUNK", f"odd{at}", *piece) == "OK"
    r("BF.MADD", "odd0", *range(200))
    assert r("BF.CLEAR", "odd1") == "OK"
    r("BF.MADD", "odd1", "a", "b")
    last, data = list(odd_dump().chunks())[-1]
    flipped = bytes(255 - byte for byte in data)
    assert r("BF.LOADCHUNK", "odd2", last, flipped) == "OK"  # united with it
    theirs = redisbloom_comes_to_the_same(server, r)
    assert len(theirs.keys) > 8
    are_equal(r, copy)
    digests = {key: digest(r, key) for key in r("KEYS", "*")}
    server.restart(kill=True)
    r = server.client()
    assert digests == {key: digest(r, key) for key in r("KEYS", "*")}


@pytest.mark.parametrize("version", VERSIONS)
def test_what_came_in_a_stream_can_go_back(start, version):
    """By the AOF that the replica wrote of it: rates above 0.25, too."""
    server = start(appendonly="yes")
    r = server.client()
    primary = FakePrimary(r)
    primary.send(golden.plain_aof(version))
    primary.close()
    theirs = redisbloom_comes_to_the_same(server, r)
    for key, record in golden.expected(version).items():
        for group in record["groups"]:
            offered = golden.items(group["items"])
            taken = golden.bits(group["acknowledged"], len(offered))
            if family(key) == "CF.":  # some were deleted
                taken = golden.bits(group["exists"], len(offered))
            assert all(theirs.keys[key.encode()].has(item)
                       for item, was in zip(offered, taken) if was), key


def test_rates_are_replicated_with_all_digits(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    for layout in ("native", "redisbloom"):
        p("BF.RESERVE", "reserved " + layout, 0.0123456789, 100000, "LAYOUT",
          layout)
        p("BF.INSERT", "inserted " + layout, "ERROR", 0.0123456789, "CAPACITY",
          100000, "LAYOUT", layout, "ITEMS", "a", "b")
    are_equal(p, r)
