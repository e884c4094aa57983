"""valkey-bloom's filters: they load in every form, answer as they did, grow by its
rules, and go back, byte for byte.

valkey-bloom.tar.xz has fifteen filters. Their bits and the answers come from the
crates that valkey-bloom uses; the RDB file, the AOFs and the DUMP payloads were put
together around them by its field order, with valkey_bloom_model.py."""
import base64
import json
import os
import random
import tarfile

import golden
import pytest
from redisbloom_data import body, dump_payload, seal
from resp import Error
from servers import (PREFIX, FakePrimary, are_equal, commands_seen, digest,
                     dump, follow, info, rewrite_aof)
from valkey_bloom_model import FIXED_SEED, Bloom

ARCHIVE = os.path.join(os.path.dirname(__file__), "valkey-bloom.tar.xz")


def read(name):
    with tarfile.open(ARCHIVE) as archive:
        return archive.extractfile(name).read()


def payloads(name):
    return {key: base64.b64decode(data)
            for key, data in json.loads(read(name)).items()}


LOAD = payloads("load-payloads.json")
DUMP = payloads("dump-payloads.json")
BITMAP_FIRST = payloads("dump-payloads-bitmap-first.json")
EXPECTED = json.loads(read("expected.json"))["keys"]
KEYS = sorted(EXPECTED)


def resealed(payload):
    """For the version of any server."""
    return seal(body(payload))


def is_as_recorded(r, key):
    record = EXPECTED[key]
    assert r("TYPE", key) == "bloomfltr"
    for group in record["groups"] + [record["nonmembers"]]:
        offered = golden.items(group["items"])
        assert not offered or r("BF.MEXISTS", key, *offered) == golden.bits(
            group["exists"], len(offered)), key
    facts = r("BF.INFO", key)
    facts = dict(zip(facts[::2], facts[1::2]))
    facts["Error rate"] = float(facts["Error rate"])
    for title, value in record["info"].items():
        assert facts[title] == value, (key, title)
    assert ("Tightening ratio" in facts) == (facts["Expansion rate"] is not None)
    assert r("BF.CARD", key) == record["info"]["Number of items inserted"]


def all_are_as_recorded(r):
    assert sorted(key.decode() for key in r("KEYS", "v:*")) == KEYS
    for key in KEYS:
        is_as_recorded(r, key)


@pytest.fixture
def plain(plain):
    yield plain
    plain("CONFIG", "SET", PREFIX + "calyx-valkey-order", "capacity-first")


# ---- Every form ------------------------------------------------------------

def goes_back(r):
    """As DUMP and BF.LOAD payloads, byte for byte."""
    for key in KEYS:
        assert body(r("DUMP", key)) == body(DUMP[key]), key


def test_payloads_of_bf_load(plain):
    for key in KEYS:
        assert plain("BF.LOAD", key, LOAD[key]) == "OK"
    all_are_as_recorded(plain)
    goes_back(plain)


def test_dump_payloads(plain):
    for key in KEYS:
        assert plain("RESTORE", key, 0, resealed(DUMP[key])) == "OK"
    all_are_as_recorded(plain)
    goes_back(plain)


def test_dump_payloads_with_the_bitmap_first(server, plain):
    answer = plain("RESTORE", "k", 0, resealed(BITMAP_FIRST["v:grown"]))
    assert isinstance(answer, Error)
    assert "set calyx-valkey-order to bitmap-first" in server.text()
    plain("CONFIG", "SET", PREFIX + "calyx-valkey-order", "bitmap-first")
    for key in KEYS:
        assert plain("RESTORE", key, 0, resealed(BITMAP_FIRST[key])) == "OK"
        assert body(plain("DUMP", key)) == body(BITMAP_FIRST[key])
    all_are_as_recorded(plain)
    answer = plain("RESTORE", "k", 0, resealed(DUMP["v:grown"]))
    assert isinstance(answer, Error)
    assert "set calyx-valkey-order to capacity-first" in server.text()


def test_a_server_starts_with_their_rdb_file(start):
    server = start(save="3600 1", rdbcompression="no")
    server.kill()
    file = read("constructed.rdb")
    with open(server.folder + "/dump.rdb", "wb") as rdb:
        rdb.write(b"REDIS0010" + file[9:-8] + bytes(8))  # without a checksum
    server.start()
    all_are_as_recorded(server.client())
    server.restart()
    r = server.client()
    all_are_as_recorded(r)
    goes_back(r)


@pytest.mark.parametrize("name", ["aof-plain.aof", "aof-rewritten.aof"])
def test_a_server_starts_with_their_aof(start, name):
    server = start(appendonly="yes", aof_use_rdb_preamble="no",
                   rdbcompression="no")
    server.kill()
    folder = server.folder + "/appendonlydir/"
    for file in os.listdir(folder):
        os.unlink(folder + file)
    with open(folder + "appendonly.aof.1.incr.aof", "wb") as aof:
        aof.write(read(name))
    with open(folder + "appendonly.aof.manifest", "w") as manifest:
        manifest.write("file appendonly.aof.1.incr.aof seq 1 type i\n")
    server.start()
    r = server.client()
    all_are_as_recorded(r)
    goes_back(r)
    server.restart()
    all_are_as_recorded(server.client())


def test_a_replica_of_a_valkey_bloom(start):
    server = start(appendonly="yes", aof_use_rdb_preamble="no",
                   rdbcompression="no")
    r = server.client()
    primary = FakePrimary(r)
    primary.send(read("aof-plain.aof"))
    all_are_as_recorded(r)
    goes_back(r)
    primary.close()
    r("REPLICAOF", "NO", "ONE")
    # What is rewritten is what it would write.
    rewrite_aof(r)
    base, = [f for f in os.listdir(server.folder + "/appendonlydir")
             if f.endswith(".base.aof")]
    with open(f"{server.folder}/appendonlydir/{base}", "rb") as aof:
        written = {words[1].decode(): words for words in golden.commands(aof.read())
                   if words[0] == b"BF.LOAD"}
    assert {key: words[2] for key, words in written.items()} == LOAD


def test_their_filters_are_dumped_and_loaded_in_pieces(plain):
    for key in KEYS:
        plain("BF.LOAD", key, LOAD[key])
        pieces = dump(plain, key)
        plain("DEL", key)
        for at, data in pieces[:-1]:
            assert plain("BF.LOADCHUNK", key, at, data) == "OK"
            assert "still being loaded" in plain("BF.EXISTS", key, "m0")
            half = plain("DUMP", key)
            assert plain("RESTORE", key, 0, half, "REPLACE") == "OK"
        for at, data in pieces[-2:]:  # a piece may come twice
            if at > 1:
                assert plain("BF.LOADCHUNK", key, at, data) == "OK"
    all_are_as_recorded(plain)
    goes_back(plain)


# ---- Made here -------------------------------------------------------------

def cases():
    chance = random.Random(7)
    for _ in range(12):
        yield (chance.choice([0.5, 0.1, 0.01, 0.001]), chance.randrange(1, 80),
               chance.choice([0, 1, 2, 3]), chance.choice([0.5, 0.9, 0.25]),
               chance.randbytes(32))


@pytest.mark.parametrize("case", cases())
def test_a_filter_made_here_is_the_same_bytes(plain, case):
    rate, capacity, expansion, tightening, seed = case
    model = Bloom(rate, capacity, expansion, tightening, seed)
    items = [b"%d" % i for i in range(300)] + [b"", bytes(300)]
    how = ("EXPANSION", expansion) if expansion else ("NONSCALING",)
    answers = plain("BF.INSERT", "k", "ERROR", rate, "CAPACITY", capacity,
                    "TIGHTENING", tightening, "SEED", seed, *how, "ITEMS", *items)
    wanted = []
    for item in items:
        wanted.append(model.add(item))
        if isinstance(wanted[-1], str):
            wanted[-1] = Error(wanted[-1])
            break
    assert answers == wanted
    assert body(plain("DUMP", "k")) == body(dump_payload(
        model.rdb_fields(), encoding=1, name=b"bloomfltr"))
    facts = plain("BF.INFO", "k")
    facts = dict(zip(facts[::2], facts[1::2]))
    assert facts["Size"] == model.info()["Size"]


def test_words_of_valkey_bloom_make_a_filter_of_its_layout(plain):
    """Also without items, as it is replicated."""
    assert plain("BF.INSERT", "a", "TIGHTENING", 0.4) == []
    assert plain("BF.INSERT", "b", "SEED", FIXED_SEED, "ITEMS", "x") == [1]
    assert plain("BF.INSERT", "c", "VALIDATESCALETO", 100000, "ITEMS", "x") == [1]
    assert plain("BF.RESERVE", "d", 0.5, 10, "LAYOUT", "valkey-bloom") == "OK"
    for key in "abcd":
        assert plain("TYPE", key) == "bloomfltr"
    assert float(plain("BF.INFO", "a", "TIGHTENING")) == 0.4
    assert float(plain("BF.INFO", "d", "ERROR")) == 0.5
    plain("BF.ADD", "b", "y")
    assert plain("BF.MEXISTS", "b", "x", "y", "z") == [1, 1, 0]
    model = Bloom(seed=FIXED_SEED)
    model.add(b"x"), model.add(b"y")
    assert body(plain("DUMP", "b")) == body(dump_payload(
        model.rdb_fields(), encoding=1, name=b"bloomfltr"))


def test_bf_insert_in_their_layout_needs_no_items_and_its_last_word_counts(r):
    r("CONFIG", "SET", PREFIX + "calyx-layout", "valkey-bloom")
    assert r("BF.INSERT", "a", "NONSCALING", "EXPANSION", 3) == []
    assert r("BF.INFO", "a", "EXPANSION") == 3
    assert r("BF.INSERT", "b", "EXPANSION", 3, "NONSCALING") == []
    assert r("BF.INFO", "b", "EXPANSION") is None
    assert isinstance(r("BF.INSERT", "c", "CAPACITY", 10, "ITEMS"), Error)
    assert isinstance(r("BF.INSERT", "c", "NOCREATE", "CAPACITY", 10), Error)
    assert r("BF.INSERT", "a", "CAPACITY", 10) == []
    assert sorted(r("KEYS", "*")) == [b"a", b"b"]


@pytest.mark.parametrize("words, text", [
    (("TIGHTENING", 0), "(0 < tightening ratio range < 1)"),
    (("TIGHTENING", 1), "(0 < tightening ratio range < 1)"),
    (("TIGHTENING", "x"), "tightening"),
    (("TIGHTENING", 0.5, "SEED", "short"), "bad seed"),
    (("TIGHTENING", 0.5, "LAYOUT", "native"), "say LAYOUT valkey-bloom"),
    (("TIGHTENING", 0.5, "KIND", "line"), "no kinds"),
    (("TIGHTENING", 0.5, "COUNTING"), "counters"),
    (("TIGHTENING", 0.5, "WINDOW", 10), "windows"),
    (("TIGHTENING",), "wrong number of arguments"),
    (("VALIDATESCALETO", 0), "bad capacity"),
    (("VALIDATESCALETO", 10, "NONSCALING"), "cannot use NONSCALING"),
    (("VALIDATESCALETO", 2**62, "TIGHTENING", 1e-60), "degrade to 0"),
    (("CAPACITY", 10), "wrong number of arguments"),
])
def test_what_their_words_may_not_say(r, words, text):
    answer = r("BF.INSERT", "k", *words)
    assert isinstance(answer, Error) and text in answer
    assert r("EXISTS", "k") == 0


def test_validatescaleto_and_maxscaledcapacity_keep_to_the_memory_limit(r):
    name = PREFIX + "bloom-memory-usage-limit"
    r("CONFIG", "SET", name, 20000)
    assert r("CONFIG", "GET", PREFIX + "calyx-max-filter-bytes")[1] == b"20000"
    assert r("BF.INSERT", "k", "VALIDATESCALETO", 3000) == []
    answer = r("BF.INSERT", "l", "VALIDATESCALETO", 10**6)
    assert "exceed memory limit" in answer and r("EXISTS", "l") == 0
    most = r("BF.INFO", "k", "MAXSCALEDCAPACITY")
    assert 3000 < most < 10**5
    answers = r("BF.MADD", "k", *range(2 * most))
    assert isinstance(answers[-1], Error) and "calyx-max-filter-bytes" in answers[-1]
    assert r("BF.INFO", "k", "CAPACITY") == most
    r("CONFIG", "SET", PREFIX + "calyx-max-filter-bytes", 0)


def test_info_replies_as_valkey_bloom(r, r3):
    r("BF.INSERT", "k", "TIGHTENING", 0.5, "CAPACITY", 10, "ITEMS", "a")
    titles = ["Capacity", "Size", "Number of filters", "Number of items inserted",
              "Error rate", "Expansion rate", "Tightening ratio",
              "Max scaled capacity"]
    for client in (r, r3):
        assert client("BF.INFO", "k")[::2] == titles
        assert client("BF.INFO", "k", "capacity") == 10
        assert client("BF.INFO", "k", "ITEMS") == 1
    r("BF.INSERT", "fixed", "TIGHTENING", 0.5, "NONSCALING", "ITEMS", "a")
    assert r("BF.INFO", "fixed")[::2] == titles[:6]
    assert r("BF.INFO", "fixed", "EXPANSION") is None
    for word in ("TIGHTENING", "MAXSCALEDCAPACITY", "x"):
        assert r("BF.INFO", "fixed", word) == Error("ERR invalid information value")


def test_what_bf_load_refuses(r):
    good = LOAD["v:grown"]
    r("SET", "text", "x")
    assert r("BF.LOAD", "text", good).startswith("WRONGTYPE")
    assert r("BF.LOAD", "k", good) == "OK"
    assert r("BF.LOAD", "k", good) == Error("BUSYKEY Target key name already exists.")
    assert "wrong number" in r("BF.LOAD", "l", good, "x")
    for bad in (b"", b"\x01", good[:-1], good + b"x", b"\0" + good[1:]):
        answer = r("BF.LOAD", "l", bad)
        assert isinstance(answer, Error)
        assert answer.startswith("ERR bloom object decoding failed")
    assert r("BF.LOAD", "l", b"\x02" + good[1:]) == Error(
        "ERR bloom object decoding failed. Unsupported version")
    assert r("EXISTS", "l") == 0


# ---- Replication and the rest ----------------------------------------------

def test_what_is_replicated_is_in_their_words(start):
    server = start(appendonly="yes")
    r = server.client()

    def seen(*words):
        return commands_seen(server, lambda: r(*words))

    seed = "s" * 32
    made = ["BF.INSERT", "k", "CAPACITY", "1000", "ERROR", "0.000000001",
            "TIGHTENING", "0.5", "SEED", seed]
    words = ("BF.INSERT", "k", "CAPACITY", 1000, "ERROR", 1e-9, "TIGHTENING", 0.5,
             "SEED", seed)
    assert seen(*words, "EXPANSION", 4, "ITEMS", "a", "b", "a") == [
        made + ["EXPANSION", "4", "ITEMS", "a", "b"]]
    assert seen("BF.MADD", "k", "c", "a", "d") == [["BF.MADD", "k", "c", "d"]]
    assert seen("BF.ADD", "k", "e") == [["BF.ADD", "k", "e"]]
    assert seen("BF.INSERT", "k", "LAYOUT", "valkey-bloom", "ITEMS", "f") == [
        ["BF.MADD", "k", "f"]]
    r("EXPIRE", "k", 10**6)
    cleared = seen("BF.CLEAR", "k")
    assert cleared[:2] == [["UNLINK", "k"], made + ["EXPANSION", "4"]]
    assert cleared[2][:2] == ["PEXPIREAT", "k"] and len(cleared) == 3
    made[1] = "l"
    assert seen(*("l" if w == "k" else w for w in words), "NONSCALING") == [
        made + ["NONSCALING"]]
    assert seen("BF.SWAP", "k", "l")[:2] == [["UNLINK", "k"], ["RENAME", "l", "k"]]


def test_replicas_and_restarts_hold_the_same(start):
    primary = start(appendonly="yes", aof_use_rdb_preamble="no")
    p, r = primary.client(), follow(start(), primary)
    chance = random.Random(3)
    p("CONFIG", "SET", PREFIX + "calyx-layout", "valkey-bloom")
    for turn in range(300):
        key = f"k{turn % 7}"
        items = [chance.randrange(10**4) for _ in range(chance.randrange(1, 60))]
        p(*chance.choice([
            ("BF.MADD", key, *items), ("BF.ADD", key, items[0]),
            ("BF.INSERT", key, "CAPACITY", 30, "ERROR", 0.3, "ITEMS", *items),
            ("BF.RESERVE", key, 0.001, 20, "EXPANSION", 3), ("DEL", key),
            ("BF.CLEAR", key), ("COPY", key, "k1", "REPLACE"),
            ("BF.LOAD", f"l{turn}", LOAD["v:grown"]),
            ("BF.SWAP", key, "k2")]))
    are_equal(p, r)
    assert {p("TYPE", key) for key in p("KEYS", "*")} == {"bloomfltr"}
    expected = {key: digest(p, key) for key in p("KEYS", "*")}
    primary.restart()
    p = primary.client()
    assert {key: digest(p, key) for key in p("KEYS", "*")} == expected


def test_settings_of_valkey_bloom_set_ours(start):
    server = start("bloom-capacity", 321, "bloom-use-random-seed", "no")
    r = server.client()
    assert r("CONFIG", "GET", PREFIX + "bf-initial-size")[1] == b"321"
    for theirs, value, ours in (
            ("bloom-expansion", "5", "bf-expansion-factor"),
            ("bloom-capacity", "123", "bf-initial-size"),
            ("bloom-fp-rate", "0.07", "bf-error-rate")):
        assert r("CONFIG", "SET", PREFIX + theirs, value) == "OK"
        assert r("CONFIG", "GET", PREFIX + ours)[1] == value.encode()
        assert r("CONFIG", "GET", PREFIX + theirs)[1] == value.encode()
        assert isinstance(r("CONFIG", "SET", PREFIX + theirs, "-1"), Error)
    r("CONFIG", "SET", PREFIX + "calyx-layout", "valkey-bloom")
    r("CONFIG", "SET", PREFIX + "bloom-tightening-ratio", "0.8")
    r("CONFIG", "SET", "rdbcompression", "no")
    r("BF.MADD", "k", *range(200))
    model = Bloom(0.07, 123, 5, 0.8, FIXED_SEED)
    for i in range(200):
        model.add(b"%d" % i)
    assert body(r("DUMP", "k")) == body(dump_payload(
        model.rdb_fields(), encoding=1, name=b"bloomfltr"))


def test_calyx_seed_is_the_seed_of_their_layout_too(start):
    r = start("calyx-layout", "valkey-bloom", "calyx-seed", 1).client()
    for key, seed in (("a", 1), ("b", 1), ("c", 2), ("d", "random"), ("e", "random")):
        r("CONFIG", "SET", PREFIX + "calyx-seed", seed)
        r("BF.RESERVE", key, 0.01, 100)
    a, b, c, d, e = (digest(r, key) for key in "abcde")
    assert a == b and len({a, c, d, e}) == 4


def test_the_setting_of_the_layout_makes_the_same_filters(r):
    """Rates above 0.25 are as they are there; what they lack is native."""
    r("CONFIG", "SET", PREFIX + "calyx-layout", "valkey-bloom")
    assert r("BF.RESERVE", "k", 0.5, 100, "EXPANSION", 100000) == "OK"
    assert float(r("BF.INFO", "k", "ERROR")) == 0.5
    assert r("BF.INFO", "k", "EXPANSION") == 100000
    for key, how in (("a", ("COUNTING",)), ("b", ("SEED", 7)), ("c", ("KIND", "flat"))):
        assert r("BF.RESERVE", key, 0.01, 100, *how) == "OK"
        assert r("TYPE", key) == "calyxbf-1"
    assert r("BF.RESERVE", "w", 0.01, 100, "WINDOW", 10) == "OK"
    assert r("TYPE", "w") == "calyxbw-1"
    answer = r("BF.RESERVE", "l", 0.01, 100, "EXPANSION", 100000, "LAYOUT", "native")
    assert answer == Error("ERR expansion must be in the range [0, 32768]")


def test_what_their_layout_cannot(r):
    r("BF.INSERT", "k", "LAYOUT", "valkey-bloom", "ITEMS", "a")
    for words in (("BF.DEL", "k", "a"), ("BF.MERGE", "l", "k"),
                  ("BF.SIMILARITY", "k", "k"), ("BF.DUMP", "k", 0)):
        assert isinstance(r(*words), Error), words
    assert r("BF.GUARD", "k", "zz", "c") == ["absent", None]
