"""Windows: what was added is known for WINDOW, and forgotten soon after."""
import glob
import pathlib
import random
import time

import pytest
from resp import Error, encode
from servers import (HANGS, SANITIZED, WAYS_OF_SAVING, are_equal, caught_up,
                     commands_seen, digest, dump, follow, info, resident,
                     restart_saved, start_saving, until, work_of, work_to_read)


def now():
    return int(1000 * time.time())


def reserve(r, key="k", seconds=100, generations=4, *more, capacity=1000):
    assert r("BF.RESERVE", key, 0.01, capacity, "WINDOW", seconds,
             "GENERATIONS", generations, *more) == "OK"


# ---- Time ------------------------------------------------------------------

@pytest.mark.parametrize("generations", [1, 4])
def test_items_are_known_for_the_window_and_not_much_longer(r, generations):
    window = 0.6
    reserve(r, "k", window, generations)
    added, forgotten = {}, {}
    begun = time.time()
    while len(added) < 20 or len(forgotten) < len(added):
        at = time.time()
        item = f"i{len(added)}"
        if len(added) < 20 or at - begun < 0.8:
            assert r("BF.ADD", "k", item) in (0, 1)
            added[item] = (at, time.time())
        for item, (before, after) in added.items():
            if item in forgotten:
                continue
            asked = time.time()
            if not r("BF.EXISTS", "k", item):
                forgotten[item] = time.time()
                assert time.time() - before >= window - 0.002, "too early"
            else:
                longest = window * (1 + 1 / generations) + 0.01
                assert asked - after <= longest, "too late"
        time.sleep(0.01)


def test_what_is_added_again_is_known_for_the_window_from_then_on(r):
    reserve(r, "k", 100, 4)
    assert r("BF.ADD", "k", "a") == 1
    assert r("BF.ROTATE", "k", 3) == "OK"
    assert r("BF.ADD", "k", "a") == 0  # it was there, and is young again
    r("BF.ROTATE", "k", 2)
    assert r("BF.EXISTS", "k", "a") == 1
    r("BF.ROTATE", "k", 2)
    assert r("BF.EXISTS", "k", "a") == 1
    r("BF.ROTATE", "k")
    assert r("BF.EXISTS", "k", "a") == 0
    assert r("BF.ADD", "k", "a") == 1


def test_each_rotation_forgets_one_generation(r):
    reserve(r, "k", 100, 3)
    for n in range(4):
        r("BF.MADD", "k", *(f"{n}:{i}" for i in range(100)))
        if n < 3:
            r("BF.ROTATE", "k")
    for n in range(4):
        assert [sum(r("BF.MEXISTS", "k", *(f"{m}:{i}" for i in range(100)))) > 90
                for m in range(4)] == [m >= n for m in range(4)]
        r("BF.ROTATE", "k")
    assert r("BF.CARD", "k") == 0


@pytest.mark.parametrize("spans, there", [(1.5, 1), (3.5, 1), (4.5, 0), (900, 0)])
def test_what_is_overdue_is_not_there(r, spans, there):
    """As after a long time without commands: one rotation has been done, others are
    due. A query does not wait for them; an addition does them first."""
    reserve(r, "k", 100, 4)
    r("BF.MADD", "k", "a", "b")
    r("BF.ROTATE", "k", 1, now() - int(25000 * spans))
    assert r("BF.EXISTS", "k", "a") == there
    r("BF.ADD", "k", "c")
    assert r("BF.MEXISTS", "k", "a", "b", "c") == [there, there, 1]


def test_a_window_rotates_by_itself(start):
    server = start(appendonly="yes")
    r = server.client()
    reserve(r, "k", 0.4, 2)
    r("BF.ADD", "k", "a")
    r("RENAME", "k", "l")
    r("COPY", "l", "m")
    payload = r("DUMP", "l")
    r("SELECT", 3)
    assert r("RESTORE", "n", 0, payload) == "OK"
    for db, key in ((3, "n"), (0, "l"), (0, "m")):
        r("SELECT", db)
        until(lambda: r("BF.CARD", key) == 0)  # which does not look at the clock
    assert int(info(r, "bf_calyx")["bf_window_rotations"]) >= 3


def test_a_clock_that_is_ahead_forgets_nothing(r):
    reserve(r, "k", 100, 4)
    r("BF.ADD", "k", "a")
    assert r("BF.ROTATE", "k", 1, now() + 20000) == "OK"  # of spans of 25 s
    r("BF.ADD", "k", "b")
    assert r("BF.MEXISTS", "k", "a", "b") == [1, 1]


def test_clients_cannot_begin_a_generation_far_ahead(start):
    primary, replica = start(appendonly="yes", aof_use_rdb_preamble="no"), start()
    p, r = primary.client(), follow(replica, primary)
    reserve(p, "k", 100, 4)
    before = digest(p, "k")
    for ahead in (26000, 10**9, 2**62):
        answer = p("BF.ROTATE", "k", 1, now() + ahead)
        assert isinstance(answer, Error)
        assert "milliseconds after this server's clock" in answer
        assert answer.endswith("at most 25000 after it")
        for words in (("BF.RESERVE", "new", 0.01, 100), ("BF.INSERT", "new")):
            answer = p(*words, "WINDOW", 100, "BEGAN", now() + ahead,
                       *(("ITEMS", "a") if words[0] == "BF.INSERT" else ()))
            assert isinstance(answer, Error) and answer.startswith("ERR bad time")
    assert digest(p, "k") == before and p("EXISTS", "new") == 0
    # A primary or an AOF whose clock was ahead is obeyed.
    ahead = now() + 10**9
    primary.restart()
    with open(next(pathlib.Path(primary.folder).glob(
            "appendonlydir/*.incr.aof")), "ab") as aof:
        aof.write(encode("SELECT", 0) + encode("BF.ROTATE", "k", 1, ahead) +
                  encode("BF.RESERVE", "l", 0.01, 100, "WINDOW", 5, "BEGAN",
                         ahead))
    primary.restart(kill=True)
    p = primary.client()
    assert digest(p, "k") != before and p("EXISTS", "l") == 1
    follow(replica, primary)
    are_equal(p, r)


# ---- Memory ----------------------------------------------------------------

LARGE = 24000000  # at 8 generations, 9 blocks of 6 MB or so


def fill_memory(r, *window, spare=4 << 20):
    """A window beside other keys, with little room below maxmemory."""
    for n in range(10):
        r("MSET", *(word for i in range(100)
                    for word in (f"v{100 * n + i}", "x" * 10000)))
    assert r("BF.RESERVE", "w", 0.01, LARGE, "WINDOW", *window) == "OK"
    assert r("BF.INFO", "w", "SIZE")[0] > 9 * (4 << 20)
    used = int(info(r, "memory")["used_memory"])
    r("CONFIG", "SET", "maxmemory", used + spare)
    r("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
    r("CONFIG", "RESETSTAT")  # the peak is now what there is
    return used


def nothing_was_evicted(r, most):
    assert info(r, "stats")["evicted_keys"] == "0"
    assert r("DBSIZE") == 1001
    assert int(info(r, "memory")["used_memory_peak"]) <= most


def test_rotating_by_hand_takes_no_memory(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    fill_memory(p, 3600, "GENERATIONS", 8)
    caught_up(p, r)
    for client in p, r:
        client("CONFIG", "RESETSTAT")
    # the peak is where it was reset to: buffers of either may have shrunk since
    peaks = [int(info(client, "memory")["used_memory_peak"]) for client in (p, r)]
    for _ in range(3):
        p("BF.MADD", "w", *range(1000))
        assert p("BF.ROTATE", "w", 9) == "OK"
        assert sum(p("BF.MEXISTS", "w", *range(1000))) == 0
    caught_up(p, r)
    for client, peak in zip((p, r), peaks):
        nothing_was_evicted(client, peak + (4 << 20))
    assert digest(p, "w") == digest(r, "w")


def test_rotating_by_the_timer_takes_no_memory(start):
    """All generations are due at once, as after an idle time, then one by one."""
    r = start().client()
    rotations = lambda: int(info(r, "bf_calyx")["bf_window_rotations"])  # noqa: E731
    used = fill_memory(r, 1.6, "GENERATIONS", 8, "BEGAN", now() - 10**6)
    until(lambda: rotations() >= 1)
    r("BF.MADD", "w", *range(1000))
    so_far = rotations()
    until(lambda: rotations() >= so_far + 12)
    nothing_was_evicted(r, used + (4 << 20))
    assert r("EXISTS", "w") == 1


# ---- Being a filter --------------------------------------------------------

def test_the_rate_holds_over_all_generations(r):
    reserve(r, "k", 1000, 8, capacity=40000)
    for n in range(9):
        r("BF.MADD", "k", *(f"{n}:{i}" for i in range(5000)))
        if n < 8:
            r("BF.ROTATE", "k")
    wrong = sum(r("BF.MEXISTS", "k", *(f"x{i}" for i in range(20000))))
    assert wrong / 20000 < 0.013


def test_no_item_of_the_window_is_missing(r):
    """300 random steps against the truth; the filter has to grow."""
    reserve(r, "k", 1000, 5, capacity=100)
    generator = random.Random(5)
    generations = [set()]
    for _ in range(300):
        if generator.random() < 0.2:
            r("BF.ROTATE", "k")
            generations.append(set())
        else:
            items = [generator.randrange(3000) for _ in range(30)]
            known = set().union(*generations[-6:])
            answers = r("BF.MADD", "k", *items)
            for item, fresh in zip(items, answers):
                assert not (fresh and item in known)
                known.add(item)
            generations[-1].update(items)
        known = list(set().union(*generations[-6:]))
        if known:
            assert r("BF.MEXISTS", "k", *known) == [1] * len(known)


def test_info_describes_a_window(r, r3):
    reserve(r, "k", 2.5, 5, "SEED", 9, capacity=1000)
    assert r("TYPE", "k") == "calyxbw-1"
    assert r("BF.INFO", "k", "WINDOW") == [2500]
    assert r("BF.INFO", "k", "GENERATIONS") == [5]
    assert r("BF.INFO", "k", "FILTERS") == [6]
    assert r("BF.INFO", "k", "CAPACITY") == [1200]
    assert r("BF.INFO", "k", "EXPANSION") == [2]
    assert len(r("BF.DEBUG", "k")) == 7
    assert r3("BF.INFO", "k", "WINDOW") == [("Window in milliseconds", 2500)]
    assert r3("BF.ADD", "k", "a") is True
    r("BF.ADD", "plain", "a")
    assert r("BF.INFO", "plain", "WINDOW") == [0]
    size = r("BF.INFO", "k", "SIZE")[0]
    assert r("MEMORY", "USAGE", "k") >= size
    assert r("BF.INSERT", "l", "WINDOW", 5, "ITEMS", "a", "b") == [1, 1]
    assert r("BF.INFO", "l", "GENERATIONS") == [4]
    assert r("BF.GUARD", "l", "z", "c") == ["absent", None]
    assert r("BF.CLEAR", "l") == "OK"
    assert r("BF.MEXISTS", "l", "a", "b") == [0, 0]
    assert r("BF.SWAP", "k", "l") == 1
    assert r("BF.INFO", "k", "WINDOW") == [5000]


def test_a_full_generation_refuses(r):
    reserve(r, "k", 100, 4, "NONSCALING", capacity=40)
    answers = r("BF.MADD", "k", *range(50))
    assert answers[-1] == "ERR non scaling filter is full"
    assert len(answers) == 11
    r("BF.ROTATE", "k")
    assert isinstance(r("BF.ADD", "k", "more"), int)


def test_errors(r, layout):
    for words, text in (
            (("WINDOW",), "ERR bad window"), (("WINDOW", 0), "ERR bad window"),
            (("WINDOW", "nan"), "ERR bad window"),
            (("WINDOW", 315360001), "ERR bad window"),
            (("WINDOW", 5, "GENERATIONS", 0), "ERR bad generations"),
            (("WINDOW", 5, "GENERATIONS", 65), "ERR bad generations"),
            (("WINDOW", 5, "BEGAN", -1), "ERR bad time"),
            (("GENERATIONS", 4), "ERR GENERATIONS and BEGAN go with WINDOW"),
            (("WINDOW", 5, "COUNTING"), "ERR WINDOW and COUNTING exclude"),
            (("WINDOW", 5, "LAYOUT", "redisbloom"),
             "ERR only the native layout has windows")):
        answer = r("BF.RESERVE", "k", 0.01, 100, *words)
        assert isinstance(answer, Error) and answer.startswith(text), answer
        if len(words) > 1:
            assert r("BF.INSERT", "k", *words, "ITEMS", "a").startswith(text)
    assert r("EXISTS", "k") == 0
    reserve(r)
    r("BF.ADD", "plain", "a")
    r("SET", "string", "x")
    assert "it is a window" in r("BF.DEL", "k", "a")
    assert "is a window" in r("BF.MERGE", "new", "k")
    assert "is a window" in r("BF.SIMILARITY", "k", "k")
    assert r("BF.ROTATE", "none") == "ERR not found"
    assert r("BF.ROTATE", "string").startswith("WRONGTYPE")
    assert r("BF.ROTATE", "plain").startswith("ERR the filter is no window")
    for words in ((0,), (66,), ("x",), (1, -1), (1, "x")):
        assert r("BF.ROTATE", "k", *words).startswith("ERR bad ")
    assert "wrong number" in r("BF.ROTATE", "k", 1, 1, 1)
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 0))
    assert "still being loaded" in r("BF.ROTATE", "half")


def test_large_generations_rotate_at_once(start, no_prefault):
    r = start().client()
    reserve(r, "k", 1000, 2, capacity=10000000 if SANITIZED else 100000000)
    r("BF.MADD", "k", *range(10000))
    whole = work_to_read(r, "k")
    rotations = [work_of(r, "BF.ROTATE", "k") for _ in range(3)]
    assert min(rotations) < whole / 25 or SANITIZED, (rotations, whole)
    assert sum(r("BF.MEXISTS", "k", *range(10000))) == 0


def test_all_generations_rotate_at_once(start, no_prefault):
    r = start().client()
    reserve(r, "k", 1000, 64, capacity=64 * 1000000)
    r("BF.ADD", "k", "x")
    used = resident(r)
    assert r("BF.ROTATE", "k", 65) == "OK"
    assert r("BF.EXISTS", "k", "x") == 0
    # To clear them would touch all of their 160 MB, which takes as long.
    assert resident(r) < used + (50 << 20) or SANITIZED


def test_many_windows_rotate_in_several_passes(start, no_prefault):
    """Clients are served between rounds. What one round rotated is one transaction
    of the AOF."""
    server = start(appendonly="yes")
    r = server.client()
    many = 200
    for i in range(many):  # of 200 kB each, which are cleared in place
        reserve(r, i, 1000, 1, capacity=130000)
    due = [("BF.ROTATE", i, 1, now() - 1500000) for i in range(many)]

    def rotations():
        return int(info(r, "bf_calyx")["bf_window_rotations"])

    r.pipeline([("MULTI",), *due, ("EXEC",)])  # then all are due at once
    until(lambda: rotations() == 2 * many)
    path, = glob.glob(server.folder + "/appendonlydir/*.incr.aof")
    with open(path, "rb") as aof:
        assert aof.read().count(b"\r\nMULTI\r\n") >= 1 + 2


@pytest.mark.skipif(SANITIZED, reason="a sanitizer would mark a third of the memory")
def test_a_window_larger_than_the_machine_is_refused(start, no_prefault):
    r = start().client()
    bytes_here = int(info(r, "memory")["total_system_memory"])
    # Each generation is about a third of it: 20 bits for each item.
    answer = r("BF.RESERVE", "k", 0.01, 4 * (bytes_here // 3 * 8 // 20),
               "WINDOW", 10, "GENERATIONS", 4)
    assert isinstance(answer, Error) and "this machine leaves" in answer
    assert r("EXISTS", "k") == 0


# ---- Dumps, files, replicas ------------------------------------------------

def fill(r):
    reserve(r, "k", 1000, 3, capacity=50)
    for n in range(6):
        r("BF.MADD", "k", *(f"{n}:{i}" for i in range(100)))
        r("BF.ROTATE", "k")
    r("BF.INSERT", "l", "WINDOW", 1000, "ITEMS", "a")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 0))
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 1))
    return {key: (digest(r, key), r("BF.INFO", key))
            for key in ("k", "l", "half")}


def test_dump_load_copy_restore(r):
    fill(r)
    pieces = dump(r, "k")
    assert len(pieces) == 5
    for at, data in pieces:
        assert r("BF.LOADCHUNK", "back", at, data) == "OK"
    assert r("RESTORE", "restored", 0, r("DUMP", "k")) == "OK"
    assert r("COPY", "k", "copy") == 1
    for key in ("back", "restored", "copy"):
        assert digest(r, key) == digest(r, "k")
        assert r("BF.MEXISTS", key, "5:1", "0:1") == [1, 0]
        r("BF.ROTATE", key)
        assert digest(r, key) != digest(r, "k")
    r("BF.LOADCHUNK", "torn", *pieces[0])
    assert isinstance(r("BF.LOADCHUNK", "torn", *pieces[2]), Error)
    r("BF.LOADCHUNK", "torn", *pieces[1])
    r("BF.ROTATE", "k")
    answer = r("BF.LOADCHUNK", "torn", *r("BF.SCANDUMP", "k", pieces[1][0]))
    assert isinstance(answer, Error)
    assert r("BF.GUARD", "torn", "never", "c") == ["maybe", None]


@pytest.mark.parametrize("how", WAYS_OF_SAVING)
def test_persistence(start, how):
    server = start_saving(start, how)
    r = server.client()
    before = fill(r)
    restart_saved(server, how)
    r = server.client()
    assert {key: (digest(r, key), r("BF.INFO", key)) for key in before} == before
    assert r("BF.EXISTS", "k", "5:1") == 1
    assert "still being loaded" in r("BF.EXISTS", "half", "5:1")


@pytest.mark.parametrize("how", ["rdb", "aof"])
def test_what_became_too_old_while_the_server_was_down_is_forgotten(start, how):
    server = start(**({"save": "3600 1"} if how == "rdb" else
                      {"appendonly": "yes"}))
    r = server.client()
    reserve(r, "k", 0.8, 4)
    reserve(r, "long", 100, 4)
    for key in ("k", "long"):
        r("BF.ADD", key, "a")
    server_down(server, r)
    time.sleep(1.1)
    server.start()
    r = server.client()
    assert r("BF.EXISTS", "k", "a") == 0
    assert r("BF.EXISTS", "long", "a") == 1
    until(lambda: r("BF.CARD", "k") == 0)


def server_down(server, r):
    try:
        r("SHUTDOWN")
    except ConnectionError:
        pass
    server.process.wait(HANGS)


def test_replicas_rotate_when_the_primary_does(start):
    """Windows that rotate several times a second, commands in between, a replica
    that comes late: equal in the end, and nothing was replicated by others."""
    primary, replica, late = start(), start(), start()
    p, r = primary.client(), follow(replica, primary)
    generator = random.Random(8)
    for i in range(4):
        reserve(p, f"w{i}", 0.2 + 0.1 * i, 1 + i, capacity=50)
    rotations, s = 0, None
    while rotations <= 20:
        key = f"w{generator.randrange(4)}"
        p(generator.choice(["BF.MADD", "BF.MEXISTS"]), key,
          *(generator.randrange(10**6) for _ in range(10)))
        p("BF.INSERT", "made", "WINDOW", 0.3, "ITEMS", generator.random())
        rotations = int(info(p, "bf_calyx")["bf_window_rotations"])
        if not s and rotations > 10:
            s = follow(late, primary)
        time.sleep(0.002)
    # So that windows stand still while they are compared.
    assert p("CLIENT", "PAUSE", 100000, "WRITE") == "OK"
    are_equal(p, r, s)
    p("CLIENT", "UNPAUSE")


def test_a_replica_waits_for_its_primary(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    reserve(p, "k", 100, 1)
    p("BF.ADD", "k", "a")
    caught_up(p, r)
    assert p.pipeline([  # overdue, and the primary cannot rotate it
        ("MULTI",), ("BF.ROTATE", "k", 1, now() - 150000),
        ("CLIENT", "PAUSE", 10**6, "WRITE"), ("EXEC",)])[-1] == ["OK", "OK"]
    caught_up(p, r)
    assert p("BF.EXISTS", "k", "a") == 0
    assert r("BF.EXISTS", "k", "a") == 1  # though it is overdue here
    p("CLIENT", "UNPAUSE")
    until(lambda: r("BF.EXISTS", "k", "a") == 0)
    caught_up(p, r)
    primary.kill()
    assert r("REPLICAOF", "NO", "ONE") == "OK"  # now it decides
    assert r("BF.ADD", "k", "b") == 1
    r("BF.ROTATE", "k", 1, now() - 99800)
    until(lambda: r("BF.CARD", "k") == 0)


def test_nothing_rotates_while_clients_are_paused(start):
    """A server that replicated then would end itself."""
    server = start(appendonly="yes")
    r = server.client()
    reserve(r, "k", 100, 1)
    r("BF.ADD", "k", "a")
    r.pipeline([("MULTI",), ("BF.ROTATE", "k", 1, now() - 150000),
                ("CLIENT", "PAUSE", 10**6, "WRITE"), ("EXEC",)])

    def uptime():
        return int(info(r, "server")["uptime_in_seconds"])

    begun = uptime()
    until(lambda: uptime() > begun + 1)  # its timers have run
    assert server.alive()
    assert r("BF.CARD", "k") == 1
    assert r("BF.EXISTS", "k", "a") == 0  # which is queried all the same
    r("CLIENT", "UNPAUSE")
    until(lambda: r("BF.CARD", "k") == 0)


def test_what_is_replicated(start):
    server = start("calyx-seed", 5, appendonly="yes")
    r = server.client()
    reserve(r, "k", 100, 2, "BEGAN", 7000)
    r("BF.ADD", "k", "a")
    assert r("BF.INFO", "k", "WINDOW") == [100000]

    def seen(*words):
        return commands_seen(server, lambda: r(*words))

    assert seen("BF.ADD", "k", "a") == []
    assert seen("BF.MADD", "k", "a", "b") == [["BF.MADD", "k", "b"]]
    began = now()
    assert seen("BF.ROTATE", "k", 1, began) == [["BF.ROTATE", "k", "1", str(began)]]
    assert seen("BF.ADD", "k", "a") == [["BF.ADD", "k", "a"]]  # young again
    assert seen("BF.EXISTS", "k", "a") == []
    words, = seen("BF.INSERT", "l", "WINDOW", 999.5, "BEGAN", began, "ITEMS",
                  "x")
    assert words == ["BF.INSERT", "l", "ERROR", "0.01", "CAPACITY", "100",
                     "EXPANSION", "2", "LAYOUT", "native", "KIND", "line",
                     "SEED", "5", "WINDOW", "999.500", "GENERATIONS", "4",
                     "BEGAN", str(began), "ITEMS", "x"]
    _, rotated, added = commands_seen(server, lambda: r.pipeline([
        ("MULTI",),  # lest it rotate by itself before the item comes
        ("BF.ROTATE", "k", 1, now() - 60000),  # of spans of 50 s
        ("BF.ADD", "k", "y"), ("EXEC",)]))
    assert rotated[:3] == ["BF.ROTATE", "k", "1"] and added == ["BF.ADD", "k", "y"]


def test_acl_and_events(server, r):
    reserve(r)
    r("CONFIG", "SET", "notify-keyspace-events", "Eg")
    listener = server.client()
    listener("PSUBSCRIBE", "__keyevent*__:bloom.*")
    r("BF.ROTATE", "k")
    assert listener.read()[2:] == [b"__keyevent@0__:bloom.rotate", b"k"]
    listener.close()
    r("CONFIG", "SET", "notify-keyspace-events", "")
    r("ACL", "SETUSER", "reader", "reset", "on", ">p", "%R~k", "+bf.rotate")
    r("AUTH", "reader", "p")
    assert r("BF.ROTATE", "k").startswith("NOPERM")


def test_generations_of_tables_may_have_doubled(server, r):
    """Each by itself: they are of different sizes, and fit together."""
    assert r("BF.RESERVE", "w", 0.01, 100, "KIND", "distinct", "WINDOW", 3600,
             "GENERATIONS", 4) == "OK"
    for turn, items in enumerate((range(10), range(10, 300), range(300, 310))):
        r("BF.MADD", "w", *items)
        if turn < 2:
            assert r("BF.ROTATE", "w") == "OK"
    for at, piece in dump(r, "w"):
        assert r("BF.LOADCHUNK", "copy", at, piece) == "OK"
    assert r("RESTORE", "restored", 0, r("DUMP", "w")) == "OK"
    assert r("DEBUG", "RELOAD") == "OK"
    for key in ("w", "copy", "restored"):
        assert r("BF.MEXISTS", key, *range(310)) == [1] * 310
