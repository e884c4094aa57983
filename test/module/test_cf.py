"""Cuckoo filters: the same bytes as RedisBloom's, by a model of it; what is
written for replicas; what is refused; and that nothing gets lost."""
import os
import random
import re

import pytest
from cuckoo_model import Cuckoo, header, payload
from redisbloom_data import body
from resp import Error, Simple, encode
from servers import (PREFIX, FakePrimary, are_equal, caught_up, commands_seen,
                     digest, dump, follow, info, read_page, rewrite_aof)

TURNS = max(30, int(os.environ.get("CALYX_FUZZ", "6000")) // 1000)
PARTS = 8  # of a filter that is loaded
WRONG_TYPE = Error(
    "WRONGTYPE Operation against a key holding the wrong kind of value")


def scan(r, key):
    return dump(r, key, "CF.SCANDUMP")


# ---- Against the model -----------------------------------------------------


def random_filter(generator):
    size = generator.choice([1, 2, 2, 3, 4, 8, 9, 255])
    return Cuckoo(generator.randrange(2 * size, 2 * size + 300), size,
                  generator.choice([1, 2, 20, 500]),
                  generator.choice([0, 1, 2, 3, 5]))


def reserve(r, key, model):
    assert r("CF.RESERVE", key, model.buckets * model.bucket_size, "BUCKETSIZE",
             model.bucket_size, "MAXITERATIONS", model.iterations, "EXPANSION",
             model.expansion) == "OK"


def random_change(generator, model, items):
    """A command, and what the model replies to it."""
    draw, item = generator.random(), generator.choice(items)
    some = [generator.choice(items) for _ in range(generator.randrange(1, 9))]
    if draw < 0.3:
        return ("CF.ADD", "k", item), model.add(item)
    if draw < 0.4:
        return ("CF.ADDNX", "k", item), model.add_new(item)
    if draw < 0.5:
        return ("CF.INSERT", "k", "ITEMS", *some), [model.add(i) for i in some]
    if draw < 0.6:
        return ("CF.INSERTNX", "k", "NOCREATE", "ITEMS", *some), [
            model.add_new(i) for i in some]
    if draw < 0.98:
        return ("CF.DEL", "k", item), model.delete(item)
    model.compact()
    return ("CF.COMPACT", "k"), "OK"


def is_the_model(r, key, model, items):
    assert r("CF.DEBUG", key).decode() == model.debug()
    assert scan(r, key) == list(model.chunks())
    assert body(r("DUMP", key)) == body(model.payload())
    assert r("CF.MEXISTS", key, *items) == [int(model.has(i)) for i in items]
    assert r.pipeline([("CF.COUNT", key, item) for item in items]) == [
        model.count(item) for item in items]


def test_random_commands_give_the_bytes_of_the_model(plain):
    generator = random.Random(3)
    for _ in range(TURNS):
        model = random_filter(generator)
        items = [generator.randbytes(generator.randrange(20))
                 for _ in range(300)]
        plain("DEL", "k")
        reserve(plain, "k", model)
        commands, wanted = [], []
        while len(commands) < 500 and len(model.parts) < 25:
            command, reply = random_change(generator, model, items)
            commands.append(command)
            wanted.append(reply if reply != -1 else Error("Filter is full"))
        assert plain.pipeline(commands) == wanted
        is_the_model(plain, "k", model, items)


def test_a_filter_that_came_by_a_payload_or_a_dump_goes_on_by_the_same_rules(
        plain):
    generator = random.Random(4)
    for turn in range(max(4, TURNS // 6)):
        model = random_filter(generator)
        items = [b"%d" % i for i in range(400)]
        for item in items[:200]:
            if len(model.parts) < 25:
                model.add(item)
        plain("DEL", "k")
        if turn % 2:
            for piece in model.chunks():
                assert plain("CF.LOADCHUNK", "k", *piece) == "OK"
        else:
            assert plain("RESTORE", "k", 0, model.payload()) == "OK"
        is_the_model(plain, "k", model, items)
        for item in items[200:] + items[:100]:
            if len(model.parts) < 25:
                reply = plain("CF.ADDNX", "k", item)
                assert reply == model.add_new(item) or reply == "Filter is full"
        for item in items[:300:2]:
            assert plain("CF.DEL", "k", item) == model.delete(item)
        is_the_model(plain, "k", model, items)


def test_a_dump_of_more_than_16_mib_has_chunks_of_16_mib(r):
    assert r("CF.RESERVE", "k", 20 << 20) == "OK"  # 32 MiB
    r("CF.INSERT", "k", "ITEMS", *range(1000))
    pieces = scan(r, "k")
    assert [at for at, _ in pieces] == [1, (16 << 20) + 1, (32 << 20) + 1]
    for at, data in pieces:
        assert r("CF.LOADCHUNK", "copy", at, data) == "OK"
    assert digest(r, "copy") == digest(r, "k")
    assert r("CF.MEXISTS", "copy", *range(1000)) == [1] * 1000


def test_many_items_at_once_are_as_one_by_one(plain):
    items = [f"item{i}".encode() for i in range(30000)]
    model = Cuckoo(2000, expansion=2)
    reserve(plain, "k", model)
    assert plain("CF.INSERT", "k", "ITEMS", *items) == [
        model.add(item) for item in items]
    absent = [f"absent{i}" for i in range(30000)]
    assert plain("CF.MEXISTS", "k", *items, *absent) == [1] * 30000 + [
        int(model.has(item.encode())) for item in absent]
    assert body(plain("DUMP", "k")) == body(model.payload())


# ---- Loading ---------------------------------------------------------------


def loaded_model():
    """One of some parts, with their dump in small pieces."""
    model = Cuckoo(40, expansion=1)
    item = 0
    while len(model.parts) < PARTS:
        model.add(b"%d" % item)
        item += 1
    return model, [b"%d" % i for i in range(item)]


def in_halves(model):
    """The chunks of its dump, each in two."""
    (_, head), *rest = model.chunks()
    yield 1, head
    for at, data in rest:
        half = len(data) // 2
        yield at - len(data) + half, data[:half]
        yield at, data[half:]


LOADING = re.compile(r"ERR the filter is still being loaded: \d+ of its \d+ bytes "
                     "are here; go on with CF.LOADCHUNK, or delete it")


def test_a_filter_that_is_partly_loaded_does_not_answer(start):
    server = start(appendonly="yes", save="3600 1")
    r = server.client()
    model, items = loaded_model()
    pieces = list(in_halves(model))
    for piece in pieces[:6]:
        assert r("CF.LOADCHUNK", "k", *piece) == "OK"

    def refuses(r):
        for words in ("EXISTS k a", "MEXISTS k a b", "COUNT k a", "ADD k a",
                      "ADDNX k a", "INSERT k ITEMS a", "DEL k a", "COMPACT k",
                      "SCANDUMP k 0"):
            assert LOADING.fullmatch(r(*("CF." + words).split())), words
        assert r("CF.DEBUG", "k").decode() == model.debug()

    refuses(r)
    gap = r("CF.LOADCHUNK", "k", *pieces[8])
    assert gap.startswith("Couldn't load chunk! (it begins with byte ")
    r("COPY", "k", "copy")
    assert digest(r, "copy") == digest(r, "k")
    server.restart(kill=True)  # by the AOF
    r = server.client()
    refuses(r)
    rewrite_aof(r)
    server.restart()
    r = server.client()
    refuses(r)
    r("CONFIG", "SET", "appendonly", "no")
    server.options["appendonly"] = "no"
    r("SAVE")
    server.restart()  # by the RDB file
    r = server.client()
    refuses(r)
    for piece in pieces[4:]:  # some of them come again
        assert r("CF.LOADCHUNK", "k", *piece) == "OK"
    assert scan(r, "k") == list(model.chunks())
    assert r("CF.MEXISTS", "k", *items) == [1] * len(items)


def test_chunks_replace_what_is_there_and_items_are_counted(r):
    model, items = loaded_model()
    for piece in model.chunks():
        r("CF.LOADCHUNK", "k", *piece)
    at, data = list(model.chunks())[3]
    assert r("CF.LOADCHUNK", "k", at, bytes(len(data))) == "OK"
    left = len(items) - sum(byte > 0 for byte in data)
    assert f" items:{left} " in r("CF.DEBUG", "k").decode()
    assert r("CF.LOADCHUNK", "k", at, data) == "OK"
    assert scan(r, "k") == list(model.chunks())


def test_a_header_without_items_is_a_whole_filter(r):
    assert r("CF.LOADCHUNK", "k", 1, header(buckets=8, parts=3)) == "OK"
    assert r("CF.ADD", "k", "a") == 1
    assert r("CF.DEBUG", "k").decode() == (
        "bktsize:2 buckets:8 items:1 deletes:0 filters:3 max_iterations:20 "
        "expansion:1")


# What RedisBloom accepts of these, or is killed by, is in its records.
REFUSED = [
    ("no parts", [0, 4, 0, 0, 2, 20, 1]),
    ("no buckets", [1, 0, 0, 0, 2, 20, 1, 0, b""]),
    ("bucket size 0", [1, 4, 0, 0, 0, 20, 1, 4, b""]),
    ("bucket size 256", [1, 4, 0, 0, 256, 20, 1, 4, bytes(1024)]),
    ("bucket size 258", [1, 4, 0, 0, 258, 20, 1, 4, bytes(8)]),
    ("no iterations", [1, 4, 0, 0, 2, 0, 1, 4, bytes(8)]),
    ("65536 iterations", [1, 4, 0, 0, 2, 65536, 1, 4, bytes(8)]),
    ("expansion 3", [1, 4, 0, 0, 2, 20, 3, 4, bytes(8)]),
    ("expansion 65536", [1, 4, 0, 0, 2, 20, 65536, 4, bytes(8)]),
    ("no expansion but two parts",
     [2, 4, 0, 0, 2, 20, 0, 4, bytes(8), 4, bytes(8)]),
    ("no expansion but a second part without buckets",
     [2, 4, 0, 0, 2, 20, 0, 4, bytes(8), 0, b""]),
    ("3 buckets", [1, 3, 0, 0, 2, 20, 1, 3, bytes(6)]),
    ("another number of buckets", [1, 4, 0, 0, 2, 20, 1, 8, bytes(16)]),
    ("the second part is not as it must be",
     [2, 4, 0, 0, 2, 20, 2, 4, bytes(8), 4, bytes(8)]),
    ("a part is short", [1, 4, 0, 0, 2, 20, 1, 4, bytes(7)]),
    ("a part is long", [1, 4, 0, 0, 2, 20, 1, 4, bytes(9)]),
    ("a part is empty", [1, 4, 0, 0, 2, 20, 1, 0, b""]),
    ("a part is missing", [2, 4, 0, 0, 2, 20, 1, 4, bytes(8)]),
    ("a part too many", [1, 4, 0, 0, 2, 20, 1, 4, bytes(8), 4, bytes(8)]),
    ("65537 parts", [65537, 4, 0, 0, 2, 20, 1, 4, bytes(8)]),
    ("more items than slots", [1, 4, 9, 0, 2, 20, 1, 4, bytes(8)]),
    ("2^64 - 1 items", [1, 4, 2**64 - 1, 0, 2, 20, 1, 4, bytes(8)]),
    ("2^32 buckets of 2", [1, 2**32, 0, 0, 2, 20, 1, 2**32, b""]),
    ("partial, but all is there", [0, 8, 1, 4, 0, 0, 2, 20, 1, 4, bytes(8)]),
    ("partial, and something is after",
     [0, 4, 1, 4, 1, 0, 2, 20, 1, 4, bytes(7) + b"x"]),
]


@pytest.mark.parametrize("fields", [row[1] for row in REFUSED],
                         ids=[row[0] for row in REFUSED])
def test_a_payload_that_is_no_filter_is_refused(server, r, fields):
    assert r("RESTORE", "k", 0, payload(fields)) == "ERR Bad data format"
    assert r("EXISTS", "k") == 0
    assert info(r, "bf_calyx")["bf_cuckoo_filters"] == "0"


def test_data_from_before_redisbloom_2_2_is_refused_with_the_reason(start):
    server = start()
    r = server.client()
    old = payload([1, 4, 0, bytes(8)], encoding=3)
    assert r("RESTORE", "k", 0, old) == "ERR Bad data format"
    assert "before RedisBloom 2.2, which had other hashes" in server.text()
    new = payload([1, 4, 0, 0, 2, 20, 1, 4, bytes(8)], encoding=5)
    assert r("RESTORE", "k", 0, new) == "ERR Bad data format"
    assert "its encoding is newer than 4" in server.text()


def test_a_filter_whose_items_were_lost_elsewhere_is_loaded_with_a_warning(
        start):
    server = start()
    r = server.client()
    lost = payload([1, 4, 5, 0, 2, 20, 1, 4, b"\1" + bytes(7)])
    assert r("RESTORE", "k", 0, lost) == "OK"
    assert " items:1 " in r("CF.DEBUG", "k").decode()
    assert "is said to have 5 items, but has 1" in server.text()


# ---- Arguments -------------------------------------------------------------


@pytest.mark.parametrize("words", [
    "k 100 junk EXPANSION", "k 100 junk BUCKETSIZE", "k 100 junk MAXITERATIONS",
    "k 100 EXPANSION 1 EXPANSION", "k 100 BUCKETSIZE", "BUCKETSIZE 100 x"])
def test_an_option_without_a_value_is_an_error(server, r, words):
    """Some of these kill RedisBloom."""
    assert isinstance(r("CF.RESERVE", *words.split()), Error)
    assert r("DBSIZE") == 0 and server.alive()


def test_a_wrong_type_is_an_error_everywhere(r):
    r("SET", "str", "x")
    r("BF.ADD", "bloom", "a")
    for key in ("str", "bloom"):
        for words in ("RESERVE KEY 10", "ADD KEY a", "ADDNX KEY a",
                      "INSERT KEY ITEMS a", "INSERTNX KEY ITEMS a",
                      "EXISTS KEY a", "MEXISTS KEY a", "COUNT KEY a",
                      "DEL KEY a", "COMPACT KEY", "SCANDUMP KEY 0",
                      "LOADCHUNK KEY 1 x", "LOADCHUNK KEY 2 x", "INFO KEY",
                      "DEBUG KEY"):
            assert r(*("CF." + words.replace("KEY", key)).split()) == WRONG_TYPE
    r("CF.ADD", "cuckoo", "a")
    for words in ("ADD cuckoo a", "EXISTS cuckoo a", "INFO cuckoo",
                  "SCANDUMP cuckoo 0", "MERGE new cuckoo"):
        assert r(*("BF." + words).split()) == WRONG_TYPE


def test_settings_make_filters_and_hold_each_other(start):
    r = start("cf-bucket-size", 4, "CF_MAX_EXPANSIONS", 3).client()

    def set_to(name, value):
        return r("CONFIG", "SET", PREFIX + name, value)

    failed = (f"ERR CONFIG SET failed (possibly related to argument '{PREFIX}"
              "%s') - Value for `%s` must be in the range [%d, %d]")
    assert set_to("cf-initial-size", 7) == failed % (
        "cf-initial-size", "cf-initial-size", 8, 2**30)
    assert set_to("cf-initial-size", 16) == "OK"
    assert set_to("cf-bucket-size", 9) == failed % (
        "cf-bucket-size", "cf-bucket-size", 1, 8)
    assert set_to("cf-max-iterations", 5) == "OK"
    assert set_to("cf-expansion-factor", 3) == "OK"
    for name, value in (("cf-bucket-size", 0), ("cf-bucket-size", 256),
                        ("cf-initial-size", 2**30 + 1),
                        ("cf-max-iterations", 0), ("cf-max-iterations", 65536),
                        ("cf-expansion-factor", 32769),
                        ("cf-max-expansions", 0), ("cf-max-expansions", 65537)):
        assert isinstance(set_to(name, value), Error)
    r("CF.ADD", "k", "a")
    assert r("CF.DEBUG", "k").decode() == (
        "bktsize:4 buckets:4 items:1 deletes:0 filters:1 max_iterations:5 "
        "expansion:4")
    assert r("CF.RESERVE", "r", 100, "BUCKETSIZE", 200).startswith("Capacity")
    assert r("CF.RESERVE", "r", 400, "BUCKETSIZE", 200) == "OK"
    assert r("CF.INSERT", "i", "CAPACITY", 7, "ITEMS", "a").startswith(
        "Capacity must be in the range [cf-bucket-size * 2, 1073741824]")
    assert r("CF.INSERT", "i", "CAPACITY", 8, "ITEMS", "a") == [1]


def test_a_filter_of_the_most_parts_takes_no_more(start):
    r = start("cf-max-expansions", 3).client()
    r("CF.RESERVE", "k", 4, "BUCKETSIZE", 1)
    assert r("CF.INSERT", "k", "ITEMS", *["a"] * 10) == [1] * 10
    assert r("CF.ADD", "k", "b") == "Maximum expansions reached"
    assert r("CF.INSERTNX", "k", "ITEMS", "a") == "Maximum expansions reached"
    r("CONFIG", "SET", PREFIX + "cf-max-expansions", 1)
    assert r("CF.ADD", "new", "b") == "Maximum expansions reached"
    assert r("EXISTS", "new") == 0  # RedisBloom leaves an empty filter


COMMANDS = {  # arity, flags, tips, key flags
    "reserve": (-3, "write denyoom", False, "RW"),
    "add": (3, "write denyoom", False, "RW"),
    "addnx": (3, "write denyoom", False, "RW"),
    "insert": (-4, "write denyoom", False, "RW"),
    "insertnx": (-4, "write denyoom", False, "RW"),
    "exists": (3, "readonly fast", False, "RO"),
    "mexists": (-3, "readonly fast", False, "RO"),
    "count": (3, "readonly fast", False, "RO"),
    "del": (3, "write fast", False, "RW"),
    "compact": (2, "write", False, "RW"),  # they: readonly
    "scandump": (3, "readonly fast", True, "RO"),  # they: RW
    "loadchunk": (4, "write denyoom", False, "RW"),
    "info": (2, "readonly fast", True, "RO"),
    "debug": (2, "readonly fast", True, "RO"),
}


def test_commands_are_described(r):
    for name, (arity, flags, dont_cache, key_flag) in COMMANDS.items():
        entry, = r("COMMAND", "INFO", "cf." + name)
        assert entry[1] == arity and entry[3:6] == [1, 1, 1]
        assert {str(f) for f in entry[2]} - {"module"} == set(flags.split())
        assert ("dont_cache" in str(entry[7])) == dont_cache
        spec = dict(zip(entry[8][0][::2], entry[8][0][1::2]))
        assert key_flag in {str(f) for f in spec[b"flags"]}
        _, doc = r("COMMAND", "DOCS", "cf." + name)
        doc = dict(zip(doc[::2], doc[1::2]))
        assert doc[b"summary"] and doc[b"complexity"] and doc[b"arguments"]
    assert r("COMMAND", "GETKEYS", "CF.INSERT", "k", "ITEMS", "a") == [b"k"]


def test_acl_categories_where_the_server_has_such(r):
    if b"cuckoo" not in r("ACL", "CAT"):
        version = info(r, "server")["redis_version"]
        assert tuple(map(int, version.split(".")[:2])) < (7, 4)
        return
    for name, (_, flags, _, _) in COMMANDS.items():
        entry, = r("COMMAND", "INFO", "cf." + name)
        assert set(map(str, entry[6])) == {
            "@cuckoo", "@write" if "write" in flags else "@read",
            *(["@fast"] if name in ("reserve", "info") else []),
            *(["@slow"] if name == "compact" else [])}


def test_every_command_and_setting_is_documented(r):
    text = read_page("doc/COMMANDS.md")
    for name in COMMANDS:
        assert f"CF.{name.upper()}" in text
    names = r("CONFIG", "GET", PREFIX + "cf-*")[::2]
    assert len(names) == 5
    for name in names:
        assert f"`{name.decode().removeprefix(PREFIX)}`" in text


def test_keyspace_events(server, r):
    listener = server.client()
    r("CONFIG", "SET", "notify-keyspace-events", "KEg")
    listener("PSUBSCRIBE", "__keyevent*__:cuckoo.*")

    def events(*words):
        r(*words)
        r("PUBLISH", "__keyevent@0__:cuckoo.end", "end")
        seen = []
        while True:
            name = listener.read()[2].decode().split(":")[1]
            if name == "cuckoo.end":
                return seen
            seen.append(name)

    assert events("CF.RESERVE", "k", 8) == ["cuckoo.reserve"]
    assert events("CF.ADD", "k", "a") == ["cuckoo.add"]
    assert events("CF.ADDNX", "k", "a") == []
    assert events("CF.EXISTS", "k", "a") == []
    assert events("CF.INSERT", "new", "ITEMS", "a") == ["cuckoo.reserve",
                                                        "cuckoo.add"]
    assert events("CF.COMPACT", "k") == []
    assert events("CF.DEL", "k", "zz") == []
    (_, head), (at, data) = scan(r, "k")
    assert events("CF.DEL", "k", "a") == ["cuckoo.del"]
    assert events("CF.COMPACT", "k") == ["cuckoo.compact"]
    assert events("CF.LOADCHUNK", "copy", 1, head) == []
    assert events("CF.LOADCHUNK", "copy", at, data) == ["cuckoo.load"]
    r("CONFIG", "SET", "notify-keyspace-events", "")
    listener.close()


def test_watch_notices_changes_and_only_those(server, r):
    other = server.client()
    r("CF.ADD", "k", "a")
    for words, aborted in ((("CF.ADDNX", "k", "a"), False),
                           (("CF.DEL", "k", "zz"), False),
                           (("CF.COMPACT", "k"), False),
                           (("CF.ADD", "k", "a"), True),
                           (("CF.DEL", "k", "a"), True)):
        r("WATCH", "k")
        other(*words)
        r("MULTI")
        r("PING")
        assert (r("EXEC") is None) == aborted, words
    other.close()


# ---- Memory ----------------------------------------------------------------


def test_memory_is_judged_before_it_is_taken(start):
    r = start(maxmemory="30mb").client()
    for words in (("CF.RESERVE", "k", 2**30),
                  ("CF.INSERT", "k", "CAPACITY", 2**30, "ITEMS", "a"),
                  ("CF.LOADCHUNK", "k", 1, header(3, 2**20, 0, 60000)),
                  ("CF.LOADCHUNK", "k", 1, header(3, 2**29))):
        assert re.match(r"ERR Insufficient memory to create filter: it needs "
                        r"\d+ bytes, and maxmemory leaves \d+", r(*words))
    assert r("EXISTS", "k") == 0
    assert r("CF.RESERVE", "k", 4, "BUCKETSIZE", 1, "EXPANSION", 32768,
             "MAXITERATIONS", 1) == "OK"
    answers = r("CF.INSERT", "k", "ITEMS", *range(100000))
    assert set(answers) == {1, -1}
    assert re.match(r"ERR Insufficient memory: it needs \d+ bytes, and "
                    r"maxmemory leaves \d+", next(
                        answer for answer in r.pipeline(
                            [("CF.ADD", "k", f"x{i}") for i in range(200)])
                        if isinstance(answer, Error)))
    added = [i for i, answer in enumerate(answers) if answer == 1]
    assert r("CF.MEXISTS", "k", *added) == [1] * len(added)
    assert int(info(r, "bf_calyx")["bf_memory_refusals"]) >= 5


def test_a_copy_and_a_payload_that_do_not_fit_are_refused(start):
    r = start().client()
    r("CF.RESERVE", "k", 2**20)
    r("CF.ADD", "k", "a")
    data = r("DUMP", "k")
    assert r("CONFIG", "SET", PREFIX + "calyx-max-filter-bytes", 1000) == "OK"
    assert isinstance(r("COPY", "k", "l"), Error)
    assert isinstance(r("RESTORE", "l", 0, data), Error)
    assert r("DBSIZE") == 1
    r("CONFIG", "SET", PREFIX + "calyx-max-filter-bytes", 0)
    assert r("RESTORE", "l", 0, data) == "OK"


def test_a_header_cannot_ask_for_more_than_the_machine_has(r):
    answer = r("CF.LOADCHUNK", "k", 1, header(3, 2**30, 0, 60000, 4))
    assert re.match(r"ERR Insufficient memory to create filter: it needs \d+ "
                    r"bytes, and this machine leaves \d+", answer), answer
    answer = r("CF.LOADCHUNK", "k", 1, header(3, 2**31, 0, 1, 4))
    assert answer == ("Couldn't create filter! (part 1 has 2147483648 buckets of "
                      "4 slots: more than 4 GiB)")


def test_a_part_never_gets_larger_than_4_gib(r):
    """RedisBloom loses items in larger ones."""
    r("CF.RESERVE", "k", 2**18, "BUCKETSIZE", 1, "EXPANSION", 32768)
    answer = None
    for _ in range(3):
        answer = r("CF.ADD", "k", "a")
    assert answer == ("ERR the filter cannot grow: part 2 would have 8589934592 "
                      "buckets of 1 slots; there can be 65535 parts, each of up "
                      "to 4 GiB")
    assert r("CF.INSERT", "k", "ITEMS", "a", "b") == [-1, 1]
    assert r("CF.COUNT", "k", "a") == 2


def test_statistics_and_memory_usage(start):
    r = start().client()

    def facts():
        all_facts = info(r, "bf_calyx")
        return [int(all_facts["bf_cuckoo_" + name])
                for name in ("filters", "filter_bytes", "items")]

    assert facts() == [0, 0, 0]
    r("CF.INSERT", "k", "ITEMS", *range(1000))
    parts = r("CF.INFO", "k")[5]
    assert facts() == [1, 40 + parts * (16 + 1024), 1000]
    r("COPY", "k", "copy")
    assert facts() == [2, 2 * (40 + parts * (16 + 1024)), 2000]
    for i in range(500):
        r("CF.DEL", "k", i)
    assert facts()[2] == 1500
    assert r("MEMORY", "USAGE", "k") >= r("CF.INFO", "k")[1]
    r("FLUSHALL")
    assert facts() == [0, 0, 0]


# ---- Replication -----------------------------------------------------------


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    r3 = server.client(resp=3)

    def seen(*words):
        return commands_seen(server, lambda: r(*words))

    made = ["BUCKETSIZE", "2", "MAXITERATIONS", "20", "EXPANSION", "1"]
    assert seen("CF.RESERVE", "k", 8) == [["CF.RESERVE", "k", "8", *made]]
    assert seen("CF.RESERVE", "k", 8) == []
    assert seen("CF.ADD", "k", "a") == [["CF.ADD", "k", "a"]]
    assert seen("CF.ADDNX", "k", "a") == []
    assert seen("CF.INSERTNX", "k", "ITEMS", "a", "b", "b") == [
        ["CF.INSERT", "k", "ITEMS", "b"]]
    assert seen("CF.ADD", "new", "a") == [
        ["CF.RESERVE", "new", "1024", *made], ["CF.INSERT", "new", "ITEMS", "a"]]
    assert seen("CF.INSERT", "cap", "CAPACITY", 50, "ITEMS", "a", "b") == [
        ["CF.RESERVE", "cap", "50", *made],
        ["CF.INSERT", "cap", "ITEMS", "a", "b"]]
    assert seen("CF.INSERT", "cap", "CAPACITY", 99, "ITEMS", "a") == [
        ["CF.INSERT", "cap", "CAPACITY", "99", "ITEMS", "a"]]
    assert seen("CF.DEL", "k", "a") == [["CF.DEL", "k", "a"]]
    assert seen("CF.DEL", "k", "zz") == []
    assert seen("CF.COMPACT", "k") == [["CF.COMPACT", "k"]]
    assert seen("CF.COMPACT", "k") == []
    r("CF.RESERVE", "full", 4, "EXPANSION", 0)
    answers = r3("CF.INSERT", "full", "ITEMS", *"abcdefgh")
    assert answers == [True, True, True, False, False, True, False, False]
    assert seen("CF.ADD", "full", "q") == []
    assert seen("CF.INSERT", "full", "ITEMS", "q") == []
    assert seen("CF.LOADCHUNK", "none", 5, "x") == []


@pytest.mark.parametrize("key", ["EXPANSION", "bucketsize", "MAXITERATIONS"])
def test_a_key_named_like_an_option_is_a_key_on_all_sides(start, key):
    """RedisBloom would take it for the option, so it gets a header."""
    server = start(appendonly="yes")
    copy = start()
    r, c = server.client(), follow(copy, server)
    words = commands_seen(server, lambda: r("CF.RESERVE", key, 100))
    assert len(words) == 1 and words[0][:3] == ["CF.LOADCHUNK", key, "1"]
    r("CF.ADD", key, "a")
    assert r("CF.DEBUG", key).decode() == (
        "bktsize:2 buckets:64 items:1 deletes:0 filters:1 max_iterations:20 "
        "expansion:1")
    are_equal(r, c)


def test_a_replica_obeys_whatever_its_own_settings_are(start):
    primary = start()
    replica = start("cf-bucket-size", 1, "cf-initial-size", 4,
                    "cf-expansion-factor", 0, "cf-max-expansions", 1,
                    "calyx-max-filter-bytes", 100)
    p, r = primary.client(), follow(replica, primary)
    p("CF.INSERT", "k", "ITEMS", *range(5000))
    for i in range(0, 3000, 2):
        p("CF.DEL", "k", i)
    p("CF.COMPACT", "k")
    are_equal(p, r)
    assert r("CF.COMPACT", "k").startswith("READONLY")
    assert r("CF.MEXISTS", "k", *range(3000, 5000)) == [1] * 2000


def test_loads_reach_the_replica_chunk_by_chunk(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    model, items = loaded_model()
    for piece in in_halves(model):
        assert p("CF.LOADCHUNK", "k", *piece) == "OK"
        are_equal(p, r)
    caught_up(p, r)
    assert r("CF.MEXISTS", "k", *items) == [1] * len(items)


def stream_of(*commands):
    return b"".join(encode(*words) for words in commands)


def test_loose_words_of_a_stream_are_understood(start):
    server = start(propagation_error_behavior="panic")
    r = server.client()
    primary = FakePrimary(r)
    primary.send(stream_of(
        ("CF.RESERVE", "junk", 100, "junk", "more"),
        ("CF.RESERVE", "EXPANSION", 100),
        ("CF.RESERVE", "last", 100, "junk", "EXPANSION"),
        ("CF.RESERVE", "large", 2**30 + 1),
        ("CF.INSERT", "k", "c", 10, "i", "a"),
        ("CF.INSERT", "k", "cat", 10, "nothing", "ice", "b")))
    for key, text in ((b"junk", "buckets:64 items:0"), ("k", "buckets:8 items:2"),
                      ("last", "expansion:1"), ("EXPANSION", "expansion:128"),
                      ("large", "buckets:536870912")):
        assert text in r("CF.DEBUG", key).decode()
    primary.close()
    assert "CRITICAL" not in server.text()


def test_what_a_primary_added_is_there_even_if_the_filter_is_full_here(start):
    """Its settings may have made it larger there."""
    server = start("cf-initial-size", 8, "cf-expansion-factor", 0,
                   propagation_error_behavior="panic")
    r = server.client()
    primary = FakePrimary(r)
    items = [b"%d" % i for i in range(500)]
    primary.send(stream_of(
        ("CF.RESERVE", "k", 8, "EXPANSION", 0),
        *(("CF.ADD", "k", item) for item in items),
        *(("CF.ADDNX", "made", item) for item in items),
        ("CF.INSERT", "inserted", "ITEMS", *items)))
    for key in ("k", "made", "inserted"):
        assert r("CF.MEXISTS", key, *items) == [1] * 500
    primary.close()
    assert "CRITICAL" not in server.text()


def test_a_stream_may_use_a_filter_while_it_is_loaded(start):
    """As RedisBloom: chunks in any order, and items between them. A header
    without chunks, as 2.8 sent it, stays a filter that does not answer."""
    server = start(propagation_error_behavior="panic")
    r = server.client()
    primary = FakePrimary(r)
    model, items = loaded_model()
    head, *rest = list(in_halves(model))
    primary.send(stream_of(
        ("CF.LOADCHUNK", "k", *head),
        *(("CF.LOADCHUNK", "k", *piece) for piece in reversed(rest)),
        ("CF.LOADCHUNK", "lost", *head),
        ("CF.LOADCHUNK", "used", *head), ("CF.ADD", "used", "early"),
        ("CF.DEL", "used", "nothing"), ("CF.COMPACT", "used")))
    assert scan(r, "k") == list(model.chunks())
    assert LOADING.fullmatch(r("CF.EXISTS", "lost", items[0]))
    assert r("CF.EXISTS", "used", "early") == 1
    assert " items:1 " in r("CF.DEBUG", "used").decode()
    primary.close()
    assert "CRITICAL" not in server.text()


def test_random_commands_in_transactions_and_scripts(start):
    """A client that cannot be blocked, with filters that compact themselves."""
    primary, replica = start(), start("cf-max-expansions", 2)
    p, r = primary.client(), follow(replica, primary)
    generator = random.Random(8)
    script = "return redis.call(unpack(ARGV))"
    for turn in range(20):
        model = random_filter(generator)
        items = [b"%d" % i for i in range(200)]
        reserve(p, f"k{turn}", model)
        commands = [(words[0], f"k{turn}", *words[2:]) for words, _ in (
            random_change(generator, model, items) for _ in range(100))]
        if turn % 2:
            p.pipeline([("MULTI",), *commands, ("EXEC",)])
        else:
            p.pipeline([("EVAL", script, 0, *words) for words in commands])
    are_equal(p, r)


def test_replies_have_types(r3):
    assert r3("CF.RESERVE", "k", 100) == Simple("OK")
    assert r3("CF.ADD", "k", "a") is True
    assert r3("CF.ADDNX", "k", "a") is False
    assert r3("CF.COUNT", "k", "a") == 1
    assert r3("CF.INSERTNX", "k", "ITEMS", "a", "b") == [0, 1]
