"""Replicas hold the same bits, whatever their own configuration is; and so does
whoever takes over."""
import random

import pytest
from resp import Error
from servers import (PREFIX, are_equal, caught_up, commands_seen, digest, dump,
                     follow)

OTHER_DEFAULTS = ("cf-bucket-size", 1, "cf-expansion-factor", 0,
                  "cf-max-expansions", 2, "bf-error-rate", 0.2, "bf-initial-size", 7,
                  "bf-expansion-factor", 0, "calyx-layout", "redisbloom",
                  "calyx-seed", 99, "calyx-max-filter-bytes", 1000)


def random_cuckoo_command(random):
    key = f"c{random.randrange(20)}"
    items = [f"i{random.randrange(300)}" for _ in range(random.randrange(1, 9))]
    draw = random.random()
    if draw < 0.02:
        return ("CF.RESERVE", key, random.randrange(1, 200), "ERROR",
                random.choice([0.3, 0.01, 0.001]), "EXPANSION",
                random.choice([0, 1, 2]))
    if draw < 0.25:
        return ("CF.ADD", key, items[0])
    if draw < 0.35:
        return ("CF.ADDNX", key, items[0])
    if draw < 0.45:
        return ("CF.INSERT", key, "CAPACITY", random.randrange(4, 99), "ITEMS",
                *items)
    if draw < 0.55:
        return ("CF.INSERTNX", key, "ITEMS", *items)
    if draw < 0.6:
        return ("CF.RESERVE", key, random.randrange(16, 200), "EXPANSION",
                random.choice([0, 1, 2, 3]), "BUCKETSIZE",
                random.choice([1, 2, 4, 8]), "MAXITERATIONS",
                random.choice([1, 20, 300]))
    if draw < 0.9:
        return ("CF.DEL", key, items[0])
    if draw < 0.92:
        return ("CF.COMPACT", key)
    if draw < 0.94:
        return ("COPY", key, f"c{random.randrange(20)}", "REPLACE")
    if draw < 0.95:
        return ("RENAME", key, f"c{random.randrange(20)}")
    if draw < 0.97:
        return ("EVAL", "return redis.call('CF.DEL', KEYS[1], ARGV[1])", 1, key,
                items[0])
    if draw < 0.98:
        return ("DEL", key)
    if draw < 0.99:
        return ("CF.LOADCHUNK", key, 9, items[0])
    return ("CF.ADD", "a string", items[0])


def random_command(random):
    if random.random() < 0.3:
        return random_cuckoo_command(random)
    key = f"k{random.randrange(60)}"
    items = [f"i{random.randrange(3000)}" for _ in range(random.randrange(1, 9))]
    layout = random.choice(["native", "redisbloom"])
    draw = random.random()
    if draw < 0.45:
        return ("BF.ADD", key, items[0])
    if draw < 0.7:
        return ("BF.MADD", key, *items)
    if draw < 0.8:
        return ("BF.INSERT", key, "CAPACITY", random.randrange(1, 100),
                "ERROR", random.choice([0.3, 0.1, 0.01, 1e-5]), "EXPANSION",
                random.choice([0, 1, 2, 4, 100]), "LAYOUT", layout, "ITEMS",
                *items)
    if draw < 0.85:
        return ("BF.INSERT", key, "NONSCALING", "CAPACITY", 5, "ITEMS", *items)
    if draw < 0.88:
        return ("BF.RESERVE", key, 0.01, random.randrange(1, 1000), "LAYOUT",
                layout)
    if draw < 0.9:
        return ("BF.ADD", "a string", items[0])
    if draw < 0.92:
        return ("COPY", key, f"k{random.randrange(60)}")
    if draw < 0.94:
        return ("RENAME", key, f"k{random.randrange(60)}")
    if draw < 0.95:
        return ("DEL", key)
    if draw < 0.955:
        return ("BF.RESERVE", key, 0.01, random.randrange(1, 200), "COUNTING")
    if draw < 0.959:
        return ("BF.RESERVE", key, 0.01, random.randrange(1, 200), "WINDOW",
                10**6, "GENERATIONS", random.randrange(1, 6))
    if draw < 0.962:
        return ("BF.ROTATE", key)
    if draw < 0.965:
        return ("BF.SWAP", key, f"k{random.randrange(60)}")
    if draw < 0.97:
        return ("EVAL", "return redis.call('BF.MADD', KEYS[1], 'x', ARGV[1])",
                1, key, items[0])
    if draw < 0.974:
        return ("BF.CLEAR", key)
    if draw < 0.98:
        other = random.choice(["k0", "k1", "copy"])
        return ("BF.MERGE", other, key)
    if draw < 0.983:
        return ("BF.DEL", key, items[0])
    if draw < 0.986:
        return ("BF.ALLOW", key, *items)
    if draw < 0.988:
        return ("BF.DISALLOW", key, *items)
    if draw < 0.99:
        return ("BF.MDEL", key, *items)
    return ("BF.GUARD", key, items[0], "a string")


def test_equal_after_100_000_random_commands(start):
    primary = start()
    replica = start(*OTHER_DEFAULTS, propagation_error_behavior="panic")
    late = start(*OTHER_DEFAULTS)
    p = primary.client()
    p("SET", "a string", "x")
    r = follow(replica, primary)
    generator = random.Random(7)
    for turn in range(100):
        batch = [random_command(generator) for _ in range(500)]
        p.pipeline(batch)
        p.pipeline([("MULTI",)] + [random_command(generator)
                                   for _ in range(500)] + [("EXEC",)])
        if turn == 50:
            s = follow(late, primary)
    p("DEL", "a string")
    are_equal(p, r, s)
    assert replica.alive()


def test_dumps_that_are_loaded_reach_the_replica(start):
    primary, replica = start(), start(*OTHER_DEFAULTS)
    p, r = primary.client(), follow(replica, primary)
    for layout in ("native", "redisbloom"):
        p("BF.INSERT", layout, "CAPACITY", 10, "LAYOUT", layout, "ITEMS",
          *range(5000))
        for at, data in dump(p, layout):
            assert p("BF.LOADCHUNK", "copy:" + layout, at, data) == "OK"
            are_equal(p, r)  # at every step
        assert digest(r, "copy:" + layout) == digest(p, layout)


@pytest.mark.parametrize("layout", ["native", "redisbloom"])
def test_a_load_goes_on_after_a_failover(start, layout):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    p("BF.INSERT", "k", "CAPACITY", 10, "LAYOUT", layout, "ITEMS", *range(9000))
    pieces = dump(p, "k")
    if len(pieces) == 2:  # make more of them, by asking from the middle
        middle = (pieces[1][0] - 1) // 2 + 1
        _, tail = p("BF.SCANDUMP", "k", middle)
        pieces = [pieces[0], pieces[1], (pieces[1][0], tail)]
        p("BF.LOADCHUNK", "half", *pieces[0])
        pieces = [pieces[1], pieces[2]]
    else:
        for piece in pieces[:-1]:
            p("BF.LOADCHUNK", "half", *piece)
        pieces = pieces[-1:]
    caught_up(p, r)
    primary.kill()
    r("REPLICAOF", "NO", "ONE")
    answer = r("BF.EXISTS", "half", 1)
    assert isinstance(answer, Error) and "still being loaded" in answer
    for piece in pieces:
        assert r("BF.LOADCHUNK", "half", *piece) == "OK"
    assert r("BF.MEXISTS", "half", *range(9000)) == [1] * 9000
    assert digest(r, "half") == digest(r, "k")


def test_a_failover_loses_nothing_that_was_waited_for(start):
    primary, replica = start(), start(*OTHER_DEFAULTS)
    p, r = primary.client(), follow(replica, primary)
    for i in range(0, 5000, 100):
        p("BF.MADD", "k", *range(i, i + 100))
    assert p("WAIT", 1, 250000) == 1
    primary.kill()
    r("REPLICAOF", "NO", "ONE")
    assert r("BF.MEXISTS", "k", *range(5000)) == [1] * 5000
    refused = r("BF.MADD", "k", *range(5000, 90000))[-1]
    assert "calyx-max-filter-bytes leaves 0" in refused  # now it is its own
    r("CONFIG", "SET", PREFIX + "calyx-max-filter-bytes", 0)
    r("BF.MADD", "k", *range(5000, 90000))
    assert r("BF.MEXISTS", "k", *range(90000)) == [1] * 90000


def test_only_what_changed_something_is_replicated(start):
    server = start("calyx-seed", 5, appendonly="yes")
    r = server.client()
    r("BF.ADD", "k", "a")
    assert commands_seen(server, lambda: r("BF.ADD", "k", "a")) == []
    assert commands_seen(server, lambda: r("BF.ADD", "k", "b")) == [
        ["BF.ADD", "k", "b"]]
    assert commands_seen(server, lambda: r("BF.MADD", "k", "a", "c", "b", "d")
                         ) == [["BF.MADD", "k", "c", "d"]]
    assert commands_seen(server, lambda: r("BF.MADD", "k", "a", "b")) == []
    assert commands_seen(server, lambda: r("BF.EXISTS", "k", "a")) == []
    assert commands_seen(server, lambda: r("BF.ADD", "new", "x")) == [
        ["BF.INSERT", "new", "ERROR", "0.01", "CAPACITY", "100", "EXPANSION",
         "2", "LAYOUT", "native", "KIND", "distinct", "SEED", "5", "ITEMS", "x"]]
    r("BF.RESERVE", "ns", 0.0001, 2, "NONSCALING")
    assert commands_seen(server, lambda: r("BF.MADD", "ns", 1, 2, 3, 4)) == [
        ["BF.MADD", "ns", "1", "2"]]
    assert commands_seen(server, lambda: r("BF.ADD", "ns", 5)) == []


def test_seeds_are_random_and_replicated(start):
    primary, replica = start("calyx-seed", "random"), start()
    p, r = primary.client(), follow(replica, primary)
    for key in ("a", "b"):
        p("BF.RESERVE", key, 0.01, 1000)
    are_equal(p, r)
    assert digest(p, "a") != digest(p, "b")
    for key in ("c", "d"):
        p("BF.RESERVE", key, 0.01, 1000, "SEED", 12)
    assert digest(p, "c") == digest(p, "d")


def test_a_diskless_load_into_a_replica_with_data(start):
    primary = start(repl_diskless_sync="yes")
    replica = start(repl_diskless_load="swapdb")
    p = primary.client()
    p("BF.MADD", "k", *range(50000))
    replica.client()("BF.MADD", "old", *range(50000))
    r = follow(replica, primary)
    are_equal(p, r)
