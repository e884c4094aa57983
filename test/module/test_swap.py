"""BF.SWAP: a new filter takes the place of the old one, in one step."""
import os
import threading
import time

import pytest
from resp import Error
from servers import (are_equal, commands_seen, digest, follow, free_port, info,
                     restart_saved, start_saving, until, work_of, work_to_read)

# Swaps under load: 6, one for each layout and size; or one a second for 2 minutes
# when CALYX_LONG is set. QUERIES is the least number of queries between two.
SWAPS, PAUSE = (120, 1) if os.environ.get("CALYX_LONG") else (6, 0)
QUERIES = 5000


def make(r, key, layout, *items):
    return r("BF.INSERT", key, "CAPACITY", 1000, "LAYOUT", layout, "ITEMS",
             *items)


PAIRS = [(a, b) for a in ("native", "redisbloom")
         for b in ("native", "redisbloom")]


@pytest.mark.parametrize("old, new", PAIRS)
def test_the_staged_filter_takes_the_name(r, old, new):
    make(r, "live", old, "a")
    make(r, "staged", new, "b")
    before = r("TYPE", "staged")
    assert r("BF.SWAP", "live", "staged") == 1
    assert r("BF.MEXISTS", "live", "a", "b") == [0, 1]
    assert r("EXISTS", "staged") == 0 and r("TYPE", "live") == before
    assert r("BF.INFO", "live", "GENERATION") == [1]
    make(r, "staged", new, "c")
    assert r("BF.SWAP", "live", "staged") == 2
    assert r("BF.INFO", "live", "GENERATION") == [2]
    assert info(r, "bf_calyx")["bf_filters"] == "1"


@pytest.mark.parametrize("old, new", PAIRS)
def test_the_time_to_live_comes_from_the_live_key(r, old, new):
    make(r, "live", old, "a")
    make(r, "staged", new, "b")
    r("PEXPIREAT", "live", 9999999999999)
    r("PEXPIRE", "staged", 60000)
    r("BF.SWAP", "live", "staged")
    assert r("PEXPIRETIME", "live") == 9999999999999
    r("PERSIST", "live")
    make(r, "staged", new, "b")
    r("PEXPIRE", "staged", 60000)
    r("BF.SWAP", "live", "staged")
    assert r("PTTL", "live") == -1


def test_without_a_live_filter_the_staged_one_just_takes_the_name(r, layout):
    make(r, "staged", layout, "b")
    r("PEXPIREAT", "staged", 9999999999999)
    assert r("BF.SWAP", "live", "staged") == 1
    assert r("BF.EXISTS", "live", "b") == 1
    assert r("PEXPIRETIME", "live") == 9999999999999
    make(r, "staged", layout, "c")
    assert r("BF.SWAP", "live", "staged") == 2


def test_what_was_counted_of_the_name_goes_on(r):
    make(r, "live", "native", "a")
    r("BF.GUARD", "live", "x", "c")
    make(r, "staged", "native", "b")
    r("BF.SWAP", "live", "staged")
    r("BF.GUARD", "live", "x", "c")
    assert r("BF.INFO", "live", "ABSENT") == [2]


def test_errors_change_nothing(r, layout):
    make(r, "live", layout, "a")
    r("SET", "string", "x")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "live", 0))
    before = digest(r, "live")
    for words, text in (
            (("live", "none"), "ERR not found: there is no filter under the "
             "staged key"),
            (("live", "string"), "WRONGTYPE"), (("string", "live"), "WRONGTYPE"),
            (("live", "half"), "ERR the filter is still being loaded"),
            (("live", "live"), "ERR the live and the staged key are the same"),
            (("live", "half", "GENERATION", 0), "ERR bad generation"),
            (("live", "half", "GENERATION", "x"), "ERR bad generation"),
            (("live", "half", "OTHER", 1), "ERR unknown argument"),
            (("live",), "ERR wrong number"),
            (("live", "half", "GENERATION"), "ERR wrong number")):
        answer = r("BF.SWAP", *words)
        assert isinstance(answer, Error) and answer.startswith(text), answer
    assert digest(r, "live") == before
    assert sorted(r("KEYS", "*")) == [b"half", b"live", b"string"]


def test_a_half_loaded_live_filter_is_replaced(r, layout):
    make(r, "staged", layout, "a")
    r("BF.LOADCHUNK", "live", *r("BF.SCANDUMP", "staged", 0))
    assert r("BF.SWAP", "live", "staged") == 1
    assert r("BF.EXISTS", "live", "a") == 1


def test_large_filters_are_swapped_at_once_and_freed_in_the_background(
        start, no_prefault):
    r = start().client()
    for key in ("live", "staged"):
        r("BF.RESERVE", key, 0.01, 100000000)
        r("BF.MADD", key, *range(10000))
    freed = int(info(r, "memory")["lazyfreed_objects"])
    whole = work_to_read(r, "live")
    assert work_of(r, "BF.SWAP", "live", "staged") < whole / 10
    until(lambda: info(r, "bf_calyx")["bf_filters"] == "1")
    assert int(info(r, "memory")["lazyfreed_objects"]) > freed


@pytest.mark.parametrize("how", ["rdb", "aof", "rewritten"])
def test_the_generation_survives(start, how):
    server = start_saving(start, how)
    r = server.client()
    for n in range(3):
        make(r, "staged", "native", n)
        r("BF.SWAP", "live", "staged")
    before = digest(r, "live")
    restart_saved(server, how)
    r = server.client()
    assert digest(r, "live") == before
    assert r("BF.INFO", "live", "GENERATION") == [3]
    assert r("BF.MEXISTS", "live", 0, 1, 2) == [0, 0, 1]
    r("COPY", "live", "copy")
    r("RESTORE", "back", 0, r("DUMP", "live"))
    assert r("BF.INFO", "copy", "GENERATION") == [3]
    assert r("BF.INFO", "back", "GENERATION") == [3]


def test_replicas_swap_too(start):
    primary, replica, late = start(), start(), start()
    p, r = primary.client(), follow(replica, primary)
    for n, (old, new) in enumerate(PAIRS):
        make(p, f"live{n}", old, "a")
        make(p, f"staged{n}", new, "b")
        p("PEXPIREAT", f"live{n}", 9999999999999)
        p("BF.SWAP", f"live{n}", f"staged{n}")
    s = follow(late, primary)
    are_equal(p, r, s)
    for n, (_, new) in enumerate(PAIRS):
        assert r("PEXPIRETIME", f"live{n}") == 9999999999999
        assert p("BF.INFO", f"live{n}", "GENERATION") == [1]
        # The stream of RedisBloom's layout has no words for the number.
        assert r("BF.INFO", f"live{n}", "GENERATION") == [new == "native"]


def test_replicas_take_the_generation_after_the_last_number(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    most = 2**63 - 1
    make(p, "staged", "native", "a")
    assert p("BF.SWAP", "live", "staged", "GENERATION", most) == most
    make(p, "staged", "native", "b")
    assert p("BF.SWAP", "live", "staged") == most
    are_equal(p, r)
    assert r("BF.MEXISTS", "live", "a", "b") == [0, 1]


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    make(r, "staged", "native", "a")
    assert commands_seen(server, lambda: r("BF.SWAP", "live", "staged")) == [
        ["BF.SWAP", "live", "staged", "GENERATION", "1"]]
    assert commands_seen(server, lambda: r("BF.SWAP", "live", "none")) == []
    make(r, "staged", "redisbloom", "a")
    assert commands_seen(server, lambda: r("BF.SWAP", "live", "staged")) == [
        ["UNLINK", "live"], ["RENAME", "staged", "live"], ["PERSIST", "live"]]


def test_watchers_and_listeners_notice_a_swap(server, r):
    make(r, "live", "native", "a")
    make(r, "staged", "native", "b")
    listener = server.client()
    r("CONFIG", "SET", "notify-keyspace-events", "Eg")
    listener("PSUBSCRIBE", "__keyevent*__:*")
    other = server.client()
    r("WATCH", "live")
    other("BF.SWAP", "live", "staged")
    r("MULTI")
    r("PING")
    assert r("EXEC") is None
    seen = [listener.read()[2:] for _ in range(2)]
    assert seen == [[b"__keyevent@0__:bloom.swap", b"live"],
                    [b"__keyevent@0__:del", b"staged"]]
    r("CONFIG", "SET", "notify-keyspace-events", "")
    listener.close()
    other.close()


def test_acl_and_cluster(start):
    r = start(cluster_enabled="yes", cluster_port=free_port()).client()
    assert r("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == "OK"
    until(lambda: b"cluster_state:ok" in r("CLUSTER", "INFO"))
    make(r, "{a}staged", "native", "a")
    assert r("BF.SWAP", "{b}live", "{a}staged").startswith("CROSSSLOT")
    r("ACL", "SETUSER", "reader", "on", ">p", "%R~{a}staged", "~{a}live",
      "+bf.swap")
    r("AUTH", "reader", "p")
    assert r("BF.SWAP", "{a}live", "{a}staged").startswith("NOPERM")
    r("AUTH", "default", "")
    assert r("BF.SWAP", "{a}live", "{a}staged") == 1


def ask(server, stop, troubles, asked):
    """Queries without pause. Numbers to 999 are always there, and the numbers
    from 0 have their values in the cache."""
    r = server.client()
    queries = []
    for n in range(0, 1000, 20):
        queries += [("BF.EXISTS", "live", n), ("BF.GUARD", "live", n, "none"),
                      ("BF.GUARD", "live", n % 40, f"cache:{n % 40}"),
                      ("BF.GUARD", "live", f"absent {n}", "none"),
                      ("BF.MEXISTS", "live", *range(n, n + 20))]
    answers = []
    for n in range(0, 1000, 20):
        answers += [1, ["maybe", None],
                    ["cached", b"value %d" % (n % 40)],
                    ["absent", None], [1] * 20]
    while not stop.is_set():
        for query, got, right in zip(queries, r.pipeline(queries),
                                        answers):
            asked[0] += 1
            if got != right:
                troubles.append((query, got))
    r.close()


def test_swaps_and_guards_under_load(start):
    server = start()
    r = server.client()
    for n in (0, 20):
        r("SET", f"cache:{n}", f"value {n}")
    make_night(r, 0)
    assert r("BF.SWAP", "live", "staged") == 1
    stop, troubles, asked = threading.Event(), [], [[0], [0]]
    threads = [threading.Thread(target=ask, args=(server, stop, troubles, n))
               for n in asked]
    for thread in threads:
        thread.start()

    def total():
        return sum(n for n, in asked)

    try:
        for night in range(1, SWAPS + 1):
            begun, before = time.time(), total()
            make_night(r, night)
            assert r("BF.SWAP", "live", "staged") == night + 1
            time.sleep(max(0, PAUSE - (time.time() - begun)))
            until(lambda: total() > before + QUERIES)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    print(f"{total()} queries, {SWAPS} swaps, {len(troubles)} wrong answers")
    assert troubles == []


def make_night(r, night):
    """Of every layout and size in turn; with a rate at which none of the 50
    absent keys is likely to pass in all nights."""
    layout = ("native", "redisbloom")[night % 2]
    assert r("BF.RESERVE", "staged", 1e-9, 2000 if night % 3 else 2000000,
             "LAYOUT", layout) == "OK"
    assert r("BF.MADD", "staged", *range(1000), f"only {night}")
