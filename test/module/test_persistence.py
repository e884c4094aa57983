"""What is saved comes back as it was: RDB, AOF, DUMP, COPY, MIGRATE; after a
restart, a crash, and half-way through a load."""
import os
import re
import threading

import pytest
from command import kinds_that
from redisbloom_data import body, payload_values, seal
from resp import Error
from servers import HANGS, digest, info, rewrite_aof, until

def fill(r):
    """Filters of all sorts; returns their digests."""
    for layout in ("native", "redisbloom"):
        tail = ("LAYOUT", layout)
        r("BF.RESERVE", f"{layout}:empty", 0.01, 1000, *tail)
        r("BF.INSERT", f"{layout}:small", *tail, "ITEMS", *range(50))
        r("BF.INSERT", f"{layout}:grown", *tail, "ITEMS", *range(20000))
        r("BF.INSERT", f"{layout}:fixed", "NONSCALING", "CAPACITY", 10000,
          "ERROR", 0.0001, *tail, "ITEMS", *range(5000))
        r("BF.INSERT", f"{layout}:large", "CAPACITY", 4000000, *tail,
          "ITEMS", *range(1000))
        half_load(r, f"{layout}:large", f"{layout}:half", 1)
        half_load(r, f"{layout}:large", f"{layout}:head", 0)
    for kind in kinds_that("can_add"):
        r("BF.INSERT", f"kind:{kind}", "KIND", kind, "CAPACITY", 100, "SEED", 3,
          "LAYOUT", "native", "ITEMS", *range(1000))
    return digests(r)


def half_load(r, source, target, pieces):
    at, data = r("BF.SCANDUMP", source, 0)
    r("BF.LOADCHUNK", target, at, data)
    for _ in range(pieces):
        at, data = r("BF.SCANDUMP", source, at)
        if layout_of(r, source) == "MBbloom--":  # one chunk is all of it
            r("BF.LOADCHUNK", target, at - len(data) + 100, data[:100])
        else:
            r("BF.LOADCHUNK", target, at, data)


def layout_of(r, key):
    return str(r("TYPE", key))


def digests(r):
    keys = sorted(r("KEYS", "*"))
    return {key: (digest(r, key), r("BF.INFO", key), r("TYPE", key))
            for key in keys}


def is_as_before(r, before):
    assert digests(r) == before
    for layout in ("native", "redisbloom"):
        grown = r("BF.MEXISTS", f"{layout}:grown", *range(20000))
        assert grown == [1] * 20000
        for part in ("half", "head"):
            answer = r("BF.EXISTS", f"{layout}:{part}", 1)
            assert isinstance(answer, Error) and "loaded" in answer
    assert r("BF.ADD", "native:grown", "one more") == 1


def test_rdb(start):
    server = start(save="3600 1")
    r = server.client()
    before = fill(r)
    server.restart()
    is_as_before(server.client(), before)


def test_what_was_saved_loads_under_any_limit(start):
    """Else a server could not start after its configuration was changed."""
    server = start(save="3600 1")
    before = fill(server.client())
    server.arguments = ["calyx-max-filter-bytes", "10"]
    server.options["maxmemory"] = "3mb"
    server.restart()
    assert digests(server.client()) == before


def test_a_native_filter_is_saved_in_strings_of_a_megabyte(start):
    r = start(rdbcompression="no").client()
    r("BF.INSERT", "k", "CAPACITY", 8000000, "ITEMS", *range(1000))
    sizes = [len(value) for value in payload_values(body(r("DUMP", "k")))
             if isinstance(value, bytes)]
    assert sum(sizes) > 9 << 20 and max(sizes) <= 1 << 20


def test_aof_as_it_was_written(start):
    server = start(appendonly="yes")
    before = fill(server.client())
    server.restart()
    is_as_before(server.client(), before)


def test_the_aof_does_not_depend_on_the_configuration(start):
    server = start("bf-error-rate", 0.2, "bf-initial-size", 7,
                   "bf-expansion-factor", 4, appendonly="yes")
    r = server.client()
    r("BF.MADD", "k", *range(1000))
    r("BF.ADD", "l", "a")
    before = digests(r)
    server.arguments = ["calyx-layout", "redisbloom", "calyx-seed", "1",
                        "calyx-max-filter-bytes", "10"]
    server.restart()
    assert digests(server.client()) == before


@pytest.mark.parametrize("preamble", ["no", "yes"])
def test_aof_rewritten(start, preamble):
    server = start(appendonly="yes", aof_use_rdb_preamble=preamble)
    r = server.client()
    before = fill(r)
    rewrite_aof(r)
    bases = [f for f in os.listdir(server.folder + "/appendonlydir")
             if ".base." in f]
    with open(f"{server.folder}/appendonlydir/{bases[0]}", "rb") as base:
        content = base.read()
    assert content.startswith((b"REDIS", b"VALKEY")) == (preamble == "yes")
    if preamble == "no":
        sizes = [int(s) for s in re.findall(rb"\r\n\$(\d+)\r\n", content)]
        assert max(sizes) <= 16 << 20 and len(content) > 10 << 20
    server.restart()
    is_as_before(server.client(), before)


def test_dump_and_restore(start):
    r = start().client()
    fill(r)
    for key in r("KEYS", "*"):
        payload = r("DUMP", key)
        before = digest(r, key)
        assert r("RESTORE", "back", 0, payload, "REPLACE") == "OK"
        assert digest(r, "back") == before, key
        assert r("BF.INFO", "back") == r("BF.INFO", key)


def test_copy_is_a_filter_of_its_own(start):
    r = start().client()
    fill(r)
    for key in r("KEYS", "*"):
        before = digest(r, key)
        assert r("COPY", key, "copy", "REPLACE") == 1
        assert digest(r, "copy") == before
        r("BF.ADD", "copy", "something new")
        assert digest(r, key) == before
    r("RENAME", "native:grown", "other")
    assert r("BF.EXISTS", "other", 5) == 1


def test_migrate(start):
    one, two = start(), start()
    r, s = one.client(), two.client()
    r("BF.MADD", "k", *range(20000))
    before = digest(r, "k")
    assert r("MIGRATE", "127.0.0.1", two.port, "k", 0, 10000) == "OK"
    assert r("EXISTS", "k") == 0 and digest(s, "k") == before
    assert s("BF.MEXISTS", "k", *range(20000)) == [1] * 20000


@pytest.mark.parametrize("what", ["BGSAVE", "BGREWRITEAOF"])
@pytest.mark.parametrize("after", [0.0, 0.02, 0.2])
def test_nothing_acknowledged_is_lost_by_kill_9(start, what, after):
    """With appendfsync always, a reply means that the item is on the disk."""
    server = start(appendonly="yes", appendfsync="always",
                   auto_aof_rewrite_percentage=0)
    r = server.client()
    r("BF.RESERVE", "big", 0.01, 20000000)
    acknowledged, stop = [], threading.Event()

    def add():
        client = server.client()
        try:
            for i in range(10**9):
                if stop.is_set():
                    return
                answer = client("BF.MADD", f"k{i % 7}", f"a{i}", f"b{i}")
                assert isinstance(answer, list), answer
                acknowledged.append(i)
        except (ConnectionError, OSError):
            pass

    thread = threading.Thread(target=add)
    thread.start()
    until(lambda: len(acknowledged) > 100)
    assert not isinstance(r(what), Error)
    threading.Event().wait(after)
    server.kill()
    stop.set()
    thread.join()
    server.start()
    r = server.client()
    assert len(acknowledged) > 100
    for n in range(7):
        mine = [i for i in acknowledged if i % 7 == n]
        for x in "ab":
            answers = r("BF.MEXISTS", f"k{n}", *(f"{x}{i}" for i in mine))
            assert answers == [1] * len(mine)
    assert r("BF.INFO", "big", "CAPACITY") == [20000000]


def test_unlink_frees_everything(start):
    server = start()
    r = server.client()
    before = int(info(r, "memory")["used_memory"])
    for i, layout in enumerate(["native", "redisbloom"] * 2):
        r("BF.RESERVE", f"k{i}", 0.01, 10000000, "LAYOUT", layout)
        r("BF.MADD", f"k{i}", *range(100000))
    assert int(info(r, "memory")["used_memory"]) > before + (40 << 20)
    assert info(r, "bf_calyx")["bf_filters"] == "4"
    r("UNLINK", "k0", "k1")
    r("DEL", "k2")
    r("FLUSHALL", "ASYNC")
    until(lambda: info(r, "bf_calyx")["bf_filters"] == "0")
    facts = info(r, "bf_calyx")
    assert facts["bf_filter_bytes"] == facts["bf_items"] == "0"
    assert int(info(r, "stats").get("lazyfreed_objects",
                                    info(r, "memory")["lazyfreed_objects"])) > 0
    until(lambda: int(info(r, "memory")["used_memory"]) < before + (1 << 20))


def test_a_truncated_rdb_is_refused_with_words(start):
    server = start(save="3600 1")
    r = server.client()
    r("BF.MADD", "k", *range(20000))
    server.restart()
    r = server.client()
    r("SAVE")
    path = server.folder + "/dump.rdb"
    server.kill()
    with open(path, "r+b") as rdb:
        rdb.truncate(os.path.getsize(path) // 2)
    server.start(wait=False)
    server.process.wait(HANGS)
    assert server.process.returncode == 1, "it should exit, not crash"
    assert "a filter was refused" in server.text()


def test_a_payload_that_is_damaged_is_an_error_and_is_counted(start):
    server = start("calyx-seed", 1)
    r = server.client()
    r("BF.MADD", "k", *range(100))
    payload = r("DUMP", "k")
    bad = payload[:200] + bytes([payload[200] ^ 1]) + payload[201:]
    answer = r("RESTORE", "bad", 0, seal(body(bad)))
    assert isinstance(answer, Error) and "Bad data format" in answer
    assert info(r, "bf_calyx")["bf_loads_refused"] == "1"
    assert "a filter was refused" in server.text()
