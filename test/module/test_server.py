"""Everything else that a server can do to a key, or with a command: filters are
values like others, partly loaded ones too."""
import os
import subprocess

import pytest
from resp import Error, encode
from servers import MODULE, digest, dump, free_port, info, until


def part_of(r, key, layout):
    """A filter of 100 bytes and more, of which only the head has come."""
    r("BF.INSERT", "whole", "CAPACITY", 1000, "LAYOUT", layout, "ITEMS", "a", "b")
    assert r("BF.LOADCHUNK", key, *r("BF.SCANDUMP", "whole", 0)) == "OK"


def is_partial(answer):
    return isinstance(answer, Error) and "still being loaded" in answer


def finish(r, key):
    for at, data in dump(r, "whole")[1:]:
        assert r("BF.LOADCHUNK", key, at, data) == "OK"
    assert r("BF.MEXISTS", key, "a", "b") == [1, 1]
    assert digest(r, key) == digest(r, "whole")


# ---- Filters that are partly loaded ------------------------------------------

@pytest.mark.parametrize("way", [
    ("RENAME", "p", "q"), ("COPY", "p", "q"), ("MOVE", "p", 1),
    ("DEBUG", "RELOAD"), ("SWAPDB", 0, 1), ("PERSIST", "p")])
def test_a_partial_filter_stays_one(r, layout, way):
    part_of(r, "p", layout)
    before = digest(r, "p")
    r(*way)
    key = "q" if way[0] in ("RENAME", "COPY") else "p"
    if way[0] in ("MOVE", "SWAPDB"):
        r("SELECT", 1)
    assert digest(r, key) == before
    assert is_partial(r("BF.EXISTS", key, "a"))
    assert is_partial(r("BF.ADD", key, "c"))
    if way[0] == "MOVE":
        r("SELECT", 0)
        assert r("COPY", "whole", "whole", "DB", 1) == 1
        r("SELECT", 1)
    finish(r, key)
    r("SELECT", 0)


def test_a_partial_filter_is_dumped_and_restored(r, layout):
    part_of(r, "p", layout)
    assert r("RESTORE", "q", 0, r("DUMP", "p")) == "OK"
    assert is_partial(r("BF.MEXISTS", "q", "a"))
    finish(r, "q")


def test_every_command_on_a_partial_filter(r, layout):
    part_of(r, "p", layout)
    for words in (("ADD", "p", "a"), ("MADD", "p", "a"), ("EXISTS", "p", "a"),
                  ("MEXISTS", "p", "a"), ("INSERT", "p", "ITEMS", "a"),
                  ("INSERT", "p", "NOCREATE", "ITEMS", "a"), ("CARD", "p"),
                  ("SCANDUMP", "p", 0), ("SCANDUMP", "p", 1)):
        assert is_partial(r("BF." + words[0], *words[1:])), words
    assert r("BF.RESERVE", "p", 0.01, 100) == "ERR item exists"
    assert r("BF.INFO", "p", "CAPACITY") == r("BF.INFO", "whole", "CAPACITY")
    assert len(r("BF.DEBUG", "p")) == 2
    assert r("MEMORY", "USAGE", "p") > 100
    assert r("DEL", "p") == 1 and r("BF.ADD", "p", "a") == 1


def test_pieces_out_of_order_are_refused(r):
    """Of a filter of three pieces; theirs are of 16 MiB, ours of 4."""
    r("BF.RESERVE", "whole", 0.01, 8000000)
    r("BF.MADD", "whole", *range(1000))
    head, first, second, third = dump(r, "whole")
    assert isinstance(r("BF.LOADCHUNK", "p", *first), Error)
    assert r("EXISTS", "p") == 0
    assert r("BF.LOADCHUNK", "p", *head) == "OK"
    for early in (second, third):
        assert "must begin at byte 0" in r("BF.LOADCHUNK", "p", *early)
    assert r("BF.LOADCHUNK", "p", *first) == "OK"
    assert "received bad data" in r("BF.LOADCHUNK", "p", first[0], second[1])
    assert isinstance(r("BF.LOADCHUNK", "p", *head), Error)
    assert r("BF.LOADCHUNK", "p", *second) == "OK"
    assert is_partial(r("BF.EXISTS", "p", 1))
    assert r("BF.LOADCHUNK", "p", *third) == "OK"
    assert r("BF.MEXISTS", "p", *range(1000)) == [1] * 1000


# ---- Scripts and transactions --------------------------------------------------

def test_transactions(r, layout):
    r("SET", "string", "x")
    assert r("MULTI") == "OK"
    for words in (("RESERVE", "k", 0.01, 100), ("ADD", "k", "a"),
                  ("EXISTS", "k", "a"), ("ADD", "string", "a"),
                  ("MADD", "k", "a", "b"), ("CARD", "k")):
        assert r("BF." + words[0], *words[1:]) == "QUEUED"
    answers = r("EXEC")
    assert answers[:3] == ["OK", 1, 1] and answers[4:] == [[0, 1], 2]
    assert answers[3].startswith("WRONGTYPE")


def test_scripts(r, layout):
    call = "return redis.call(unpack(ARGV))"
    assert r("EVAL", call, 1, "k", "BF.ADD", "k", "a") == 1
    assert r("EVAL", call, 1, "k", "BF.MADD", "k", "a", "b") == [0, 1]
    assert r("EVAL", call, 1, "k", "BF.EXISTS", "k", "b") == 1
    assert r("EVAL", call, 1, "k", "BF.INFO", "k", "ITEMS") == [2]
    in_resp3 = ("redis.setresp(3); "
                "return redis.call('BF.EXISTS', KEYS[1], 'a') == true")
    assert r("EVAL", in_resp3, 1, "k") == 1
    assert r("EVAL_RO", call, 1, "k", "BF.EXISTS", "k", "a") == 1
    answer = r("EVAL_RO", call, 1, "k", "BF.ADD", "k", "z")
    assert isinstance(answer, Error) and "read-only" in answer
    r("SET", "string", "x")
    answer = r("EVAL", call, 1, "k", "BF.ADD", "string", "z")
    assert answer.startswith("WRONGTYPE")


# ---- The life of a key -----------------------------------------------------------

def test_what_expires_is_gone(r, layout):
    r("BF.ADD", "k", "a")
    r("PEXPIRE", "k", 3600000)
    assert r("BF.ADD", "k", "b") == 1
    assert 0 < r("PTTL", "k") <= 3600000  # adding leaves it
    r("PEXPIRE", "k", 30)
    until(lambda: r("BF.EXISTS", "k", "a") == 0)
    assert r("BF.ADD", "k", "a") == 1 and r("PTTL", "k") == -1


@pytest.mark.parametrize("how", [("FLUSHALL", "ASYNC"), ("FLUSHALL", "SYNC"),
                                 ("FLUSHDB", "ASYNC"), ("UNLINK", "k0", "k1"),
                                 ("DEL", "k0", "k1"), ("SET", "k0", "x")])
def test_whatever_removes_filters_frees_them(start, layout, how):
    r = start().client()
    for i in range(2):
        r("BF.INSERT", f"k{i}", "CAPACITY", 8000000, "LAYOUT", layout, "ITEMS", i)
    r(*how)
    left = 1 if how[0] == "SET" else 0
    until(lambda: info(r, "bf_calyx")["bf_filters"] == str(left))
    facts = info(r, "bf_calyx")
    assert facts["bf_items"] == str(left)
    assert (int(facts["bf_filter_bytes"]) > 0) == bool(left)


def test_reloading_changes_nothing(r, layout):
    for i in range(20):
        r("BF.INSERT", f"k{i}", "CAPACITY", 1 + i * i, "ERROR", 0.001, "ITEMS",
          *range(i * 50 + 1))
    keys = sorted(r("KEYS", "*"))
    before = [(digest(r, k), r("BF.INFO", k), r("MEMORY", "USAGE", k))
              for k in keys]
    for _ in range(3):
        assert r("DEBUG", "RELOAD") == "OK"
        assert [(digest(r, k), r("BF.INFO", k), r("MEMORY", "USAGE", k))
                for k in keys] == before


def test_the_module_can_neither_go_nor_come_twice(start):
    server = start(enable_module_command="yes")
    r = server.client()
    before = r("MODULE", "LIST")
    r("BF.ADD", "k", "a")
    answer = r("MODULE", "UNLOAD", "bf")
    assert isinstance(answer, Error) and "data types" in answer
    assert isinstance(r("MODULE", "LOAD", os.path.abspath(MODULE)), Error)
    assert r("BF.EXISTS", "k", "a") == 1 and r("BF.ADD", "k", "b") == 1
    assert r("MODULE", "LIST") == before


# ---- Other kinds of servers ------------------------------------------------------

def test_a_replica_is_read_only(start):
    primary, replica = start(), start()
    p, r = primary.client(), replica.client()
    r("REPLICAOF", "127.0.0.1", primary.port)
    p("BF.ADD", "k", "a")
    until(lambda: r("BF.EXISTS", "k", "a") == 1)
    for words in (("BF.ADD", "k", "b"), ("BF.RESERVE", "l", 0.01, 10),
                  ("BF.MADD", "k", "b"), ("BF.INSERT", "k", "ITEMS", "b"),
                  ("BF.LOADCHUNK", "l", 1, "x")):
        assert r(*words).startswith("READONLY"), words
    assert r("BF.MEXISTS", "k", "a", "b") == [1, 0]
    assert r("BF.CARD", "k") == 1


def test_a_cluster_knows_the_keys(start):
    server = start(cluster_enabled="yes", cluster_port=free_port())
    r = server.client()
    assert r("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == "OK"
    until(lambda: b"cluster_state:ok" in r("CLUSTER", "INFO"))
    assert r("BF.ADD", "k", "a") == 1 and r("BF.EXISTS", "k", "a") == 1
    slot = r("CLUSTER", "KEYSLOT", "k")
    assert r("CLUSTER", "COUNTKEYSINSLOT", slot) == 1
    assert r("CLUSTER", "DELSLOTS", slot) == "OK"
    r("CONFIG", "SET", "cluster-require-full-coverage", "no")
    until(lambda: "CLUSTERDOWN" in str(r("BF.EXISTS", "k", "a")))
    assert "CLUSTERDOWN" in r("BF.ADD", "k", "b")
    assert "CLUSTERDOWN" in r("BF.INSERT", "k", "ITEMS", "b")


@pytest.mark.parametrize("layout", ["native", "redisbloom"])
def test_filters_are_moved_to_where_memory_is_whole(start, layout):
    """By a server that can, which is one with the jemalloc that comes with its
    source; Debian's have another, and say so. There test_types.c moves them."""
    r = start().client()
    can = r("CONFIG", "SET", "activedefrag", "yes")
    if isinstance(can, Error):
        assert "Active defragmentation cannot be enabled" in can
        return
    r("CONFIG", "SET", "activedefrag", "no")
    for name, value in (("ignore-bytes", "1mb"), ("threshold-lower", 5),
                        ("cycle-min", 40), ("cycle-max", 75)):
        assert r("CONFIG", "SET", "active-defrag-" + name, value) == "OK"
    n = 12000
    r.pipeline([("BF.INSERT", f"k{i}", "CAPACITY", 300 + i % 1500, "LAYOUT",
                 layout, "ITEMS", i, "x") for i in range(n)])
    kept = [i for i in range(n) if i % 5 == 0]
    r.pipeline([("DEL", f"k{i}") for i in range(n) if i % 5])
    before = [digest(r, f"k{i}") for i in kept[::10]]

    def wasted():
        return int(info(r, "memory")["allocator_frag_bytes"])

    until(lambda: wasted() > 5 << 20)  # it is counted ten times a second
    holes = wasted()
    r("CONFIG", "SET", "activedefrag", "yes")

    def asked_and_whole():
        answers = r.pipeline([("BF.MEXISTS", f"k{i}", i, "x") for i in kept])
        assert answers == [[1, 1]] * len(kept)
        return wasted() < holes / 3

    until(asked_and_whole)  # which the bodies decide: they are nearly all of it
    assert [digest(r, f"k{i}") for i in kept[::10]] == before
    added = r.pipeline([("BF.MADD", f"k{i}", *range(3000)) for i in kept[::10]])
    assert all(isinstance(a, list) for a in added)
    assert int(info(r, "stats")["active_defrag_key_hits"]) >= len(kept) / 2


# ---- Words with zeros, words that are nearly right -------------------------------

def test_words_are_matched_to_their_end(r):
    r("BF.ADD", "k", "a")
    for word in ("CAPACITY\0", "CAPACITY\0x", "CAPACIT", "CAPACITYS", ""):
        assert r("BF.INFO", "k", word) == "Invalid information value", word
        answer = r("BF.INSERT", "new", word, 5, "ITEMS", "a")
        assert answer == "Unknown argument received", word
    assert r("BF.INFO", "k", "cApAcItY") == [100]


def test_redis_cli_pipes(server, r):
    """The bulk loading of redis-cli, which reads protocol from its input."""
    items = b"".join(encode("BF.ADD", "k", f"i{i}") for i in range(5000))
    out = subprocess.run(["redis-cli", "-p", str(server.port), "--pipe"],
                         input=items, capture_output=True, check=True)
    assert b"errors: 0, replies: 5000" in out.stdout
    assert sum(r("BF.MEXISTS", "k", *(f"i{i}" for i in range(5000)))) == 5000
