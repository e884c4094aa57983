"""Native cuckoo filters: CF commands on native filters that items can be
deleted from. They grow in one table, keep their rate, and lose nothing."""
import random
from collections import Counter

import pytest
from command import good, url
from resp import Error, encode
from servers import (PREFIX, WAYS_OF_SAVING, FakePrimary, are_equal,
                     commands_seen, digest, dump, follow, in_batches, info,
                     restart_saved, start_saving)

WRONG_TYPE = Error(
    "WRONGTYPE Operation against a key holding the wrong kind of value")


@pytest.fixture
def native(r):
    """CF commands make native filters unless they say otherwise."""
    r("CONFIG", "SET", PREFIX + "calyx-cf-layout", "native")
    yield r
    r("CONFIG", "SET", PREFIX + "calyx-cf-layout", "redisbloom")


def reserve(r, key="k", capacity=1000, *more):
    assert r("CF.RESERVE", key, capacity, "ERROR", 0.01, *more) == "OK"


def facts(r, key):
    reply = r("CF.INFO", key)
    return {str(reply[i], "ascii") if isinstance(reply[i], bytes)
            else str(reply[i]): reply[i + 1] for i in range(0, len(reply), 2)}


# ---- Making ----------------------------------------------------------------


@pytest.mark.parametrize("words, of_type", [
    ((), "MBbloomCF"),
    (("BUCKETSIZE", 4), "MBbloomCF"),
    (("EXPANSION", 2), "MBbloomCF"),
    (("LAYOUT", "redisbloom"), "MBbloomCF"),
    (("ERROR", 0.01), "calyxbf-1"),
    (("error", 0.01, "EXPANSION", 0), "calyxbf-1"),
    (("SEED", 7), "calyxbf-1"),
    (("LAYOUT", "native"), "calyxbf-1"),
    (("Layout", "NATIVE", "EXPANSION", 4), "calyxbf-1")])
def test_words_choose_the_layout(r, words, of_type):
    assert r("CF.RESERVE", "k", 1000, *words) == "OK"
    assert r("TYPE", "k") == of_type
    assert r("CF.ADD", "k", "a") == 1


def test_a_setting_chooses_the_layout_of_what_says_nothing(native):
    r = native
    assert r("CF.RESERVE", "reserved", 1000) == "OK"
    assert r("CF.ADD", "added", "a") == 1
    assert r("CF.INSERT", "inserted", "CAPACITY", 5, "ITEMS", "a") == [1]
    for key in ("reserved", "added", "inserted"):
        assert r("TYPE", key) == "calyxbf-1"
    assert r("CF.RESERVE", "a", 1000, "MAXITERATIONS", 5) == "OK"
    assert r("CF.RESERVE", "b", 1000, "LAYOUT", "redisbloom") == "OK"
    assert r("CF.INSERT", "c", "LAYOUT", "redisbloom", "ITEMS", "a") == [1]
    for key in "abc":
        assert r("TYPE", key) == "MBbloomCF"
    assert "calyx-cf-layout is redisbloom or native" not in r(
        "CONFIG", "GET", PREFIX + "calyx-cf-layout")
    assert isinstance(r("CONFIG", "SET", PREFIX + "calyx-cf-layout",
                        "valkey-bloom"), Error)


def test_insert_makes_native_filters(r):
    assert r("CF.INSERT", "k", "ERROR", 0.001, "CAPACITY", 5, "SEED", 3, "ITEMS",
             "a", "a") == [1, 1]
    assert r("TYPE", "k") == "calyxbf-1" and r("CF.COUNT", "k", "a") == 2
    assert r("CF.INSERTNX", "l", "LAYOUT", "native", "ITEMS", "a", "a") == [1, 0]
    assert r("CF.INSERT", "m", "NOCREATE", "ERROR", 0.1, "ITEMS",
             "a") == "ERR not found"
    assert r("EXISTS", "m") == 0


LAYOUTS_CLASH = "ERR the native layout has neither BUCKETSIZE"
NO_RATES = "ERR the redisbloom layout has neither rates nor seeds"


@pytest.mark.parametrize("words, answer", [
    (("ERROR", 0.01, "BUCKETSIZE", 2), LAYOUTS_CLASH),
    (("LAYOUT", "native", "MAXITERATIONS", 2), LAYOUTS_CLASH),
    (("LAYOUT", "redisbloom", "ERROR", 0.01), NO_RATES),
    (("SEED", 1, "LAYOUT", "redisbloom"), NO_RATES),
    (("LAYOUT", "valkey-bloom"), "ERR bad layout: there are native and"),
    (("LAYOUT", "native", "LAYOUT", "redisbloom"),
     "ERR LAYOUT is given as 'native' and as 'redisbloom'; give it once"),
    (("ERROR", 0.1, "SEED", 1, "ERROR", 0.2),
     "ERR ERROR is given as '0.1' and as '0.2'; give it once"),
    (("ERROR", "x"), "ERR bad error rate"),
    (("ERROR", 0), "ERR error rate must be in the range (0.000000, 1.000000)"),
    (("ERROR", 1e-30), "ERR could not create filter: "),
    (("ERROR", 3e-5), "ERR could not create filter: growing bucket filters "),
    (("ERROR", 1e-9, "EXPANSION", 0), "ERR could not create filter: counting "),
    (("SEED", -1), "ERR bad seed: it is a whole number from 0"),
    (("ERROR",), "ERR wrong number of arguments"),
    (("EROR", 1), "ERR unknown argument 'EROR'; there are BUCKETSIZE, "
                  "MAXITERATIONS, EXPANSION, ERROR, SEED and LAYOUT")])
def test_words_that_cannot_be_are_refused(r, words, answer):
    assert r("CF.RESERVE", "k", 1000, *words).startswith(answer)
    assert r("EXISTS", "k") == 0


@pytest.mark.parametrize("words, answer", [
    (("ERROR", 0.01, "CAPACITY", 0), "Capacity must be in the range [1, 10995"),
    (("CAPACITY", "x", "ERROR", 0.01), "Bad capacity"),
    (("CAPACITY", 1, "ERROR", 2), "ERR error rate must be in the range"),
    (("CAPACITY", 1, "LAYOUT", "redisbloom"), "Capacity must be in the range [cf"),
    (("LAYOUT", "redisbloom", "SEED", 1), NO_RATES),
    (("SEED", 1, "NOCREATE", "SEED", 2),
     "ERR SEED is given as '1' and as '2'; give it once"),
    (("BUCKETSIZE", 1), "Unknown argument received")])
def test_words_of_insert_that_cannot_be_are_refused(r, words, answer):
    assert r("CF.INSERT", "k", *words, "ITEMS", "a").startswith(answer)
    assert r("EXISTS", "k") == 0


def test_a_native_filter_is_there_already(r):
    reserve(r)
    assert r("CF.RESERVE", "k", 1000) == "ERR item exists"
    assert r("BF.RESERVE", "k", 0.1, 1000) == "ERR item exists"


def test_a_rate_too_low_for_a_table_takes_another_kind(r):
    assert r("CF.RESERVE", "k", 1000, "ERROR", 1e-7, "EXPANSION", 0) == "OK"
    assert r("CF.INSERT", "k", "ITEMS", "a", "a", "b") == [1, 1, 1]
    assert r("CF.DEL", "k", "a") == 1 and r("CF.COUNT", "k", "a") == 1
    assert r("CF.DEL", "k", "b") == 1 and r("CF.EXISTS", "k", "b") == 0


# ---- Items -----------------------------------------------------------------


def test_items_are_added_counted_and_deleted(r):
    reserve(r)
    assert r("CF.ADD", "k", "rose") == 1 and r("CF.ADD", "k", "rose") == 1
    assert r("CF.ADDNX", "k", "rose") == 0 and r("CF.ADDNX", "k", "iris") == 1
    assert r("CF.INSERT", "k", "ITEMS", "rose", "fern") == [1, 1]
    assert r("CF.INSERTNX", "k", "ITEMS", "fern", "moss", "moss") == [0, 1, 0]
    assert [r("CF.COUNT", "k", item) for item in ("rose", "iris", "oak")] == [
        3, 1, 0]
    assert r("CF.MEXISTS", "k", "rose", "oak", "moss") == [1, 0, 1]
    assert [r("CF.DEL", "k", "rose") for _ in range(4)] == [1, 1, 1, 0]
    assert r("CF.EXISTS", "k", "rose") == 0 and r("CF.EXISTS", "k", "fern") == 1
    assert r("CF.COMPACT", "k") == "OK"
    assert facts(r, "k")["Number of items inserted"] == 3
    assert r("CF.DEBUG", "k").decode().startswith("bktsize:")


def test_resp3(r3):
    r3("CF.RESERVE", "k", 1000, "ERROR", 0.01)
    assert r3("CF.ADD", "k", "a") is True and r3("CF.ADDNX", "k", "a") is False
    assert r3("CF.INSERT", "k", "ITEMS", "a", "b") == [True, True]
    assert r3("CF.INSERTNX", "k", "ITEMS", "a", "c") == [0, 1]
    assert r3("CF.MEXISTS", "k", "a", "z") == [True, False]
    assert r3("CF.DEL", "k", "z") is False and r3("CF.COUNT", "k", "a") == 2


def test_both_families_of_commands_work_on_a_native_filter(r):
    reserve(r)
    assert r("BF.ADD", "k", "a") == 1 and r("CF.ADD", "k", "a") == 1
    assert r("BF.COUNT", "k", "a") == r("CF.COUNT", "k", "a") == 2
    assert r("BF.DEL", "k", "a") == r("CF.DEL", "k", "a") == 1
    assert r("BF.CARD", "k") == 0 and r("BF.CLEAR", "k") == "OK"
    assert r("BF.RESERVE", "counting", 0.01, 1000, "KIND", "counting") == "OK"
    assert r("CF.INSERT", "counting", "ITEMS", "a", "b") == [1, 1]
    assert r("CF.DEL", "counting", "a") == r("BF.DEL", "counting", "b") == 1


def test_filters_from_which_nothing_can_be_deleted_are_of_the_wrong_type(r):
    r("BF.ADD", "line", "a")
    r("BF.INSERT", "window", "WINDOW", 5, "ITEMS", "a")
    r("BF.INSERT", "theirs", "LAYOUT", "redisbloom", "ITEMS", "a")
    r("SET", "string", "x")
    for key in ("line", "window", "theirs", "string"):
        for words in (("CF.RESERVE", key, 5), ("CF.ADD", key, "a"),
                      ("CF.ADDNX", key, "a"), ("CF.INSERT", key, "ITEMS", "a"),
                      ("CF.EXISTS", key, "a"), ("CF.MEXISTS", key, "a"),
                      ("CF.COUNT", key, "a"), ("CF.DEL", key, "a"),
                      ("CF.COMPACT", key), ("CF.INFO", key), ("CF.DEBUG", key),
                      ("CF.SCANDUMP", key, 0), ("CF.LOADCHUNK", key, 2, "a")):
            assert r(*words) == WRONG_TYPE, words


def test_a_full_filter_that_does_not_grow_says_so(r):
    assert r("CF.RESERVE", "k", 100, "ERROR", 0.01, "EXPANSION", 0) == "OK"
    answers = r("CF.INSERT", "k", "ITEMS", *range(120))
    added = answers.count(1)
    assert added < 120 and set(answers) == {1, -1}
    assert answers[:added] == [1] * added
    assert r("CF.ADD", "k", "one more") == "Filter is full"
    assert r("CF.INSERTNX", "k", "ITEMS", 0, "one more") == [0, -1]
    assert r("CF.MEXISTS", "k", *range(added)) == [1] * added
    assert r("CF.DEL", "k", 5) == 1 and r("CF.ADD", "k", "one more") == 1


def test_a_filter_grows_keeps_its_rate_and_loses_nothing(start):
    server = start()
    r = server.client()
    assert r("CF.RESERVE", "k", 100, "ERROR", 0.01) == "OK"
    n = 200000
    assert in_batches(server.port, "CF.INSERT", "k", range(n)) == n
    assert in_batches(server.port, "CF.MEXISTS", "k", range(n)) == n
    found = in_batches(server.port, "CF.MEXISTS", "k", range(n, n + 100000))
    assert found < 1200  # 1 %, and 6 deviations
    is_now = facts(r, "k")
    assert is_now["Number of items inserted"] == n
    assert is_now["Number of filters"] > 10 and is_now["Expansion rate"] == 1
    assert is_now["Size"] * 8 < 30 * n
    for at in range(0, n, 2000):
        assert r("BF.MDEL", "k", *(f"{i:012d}" for i in range(at, at + 1000))
                 ) == [1] * 1000
    rest = [i for i in range(n) if i % 2000 >= 1000]
    assert in_batches(server.port, "CF.MEXISTS", "k", rest) == len(rest)
    assert facts(r, "k")["Number of items inserted"] == n // 2


def test_100_000_changes_against_a_multiset(start):
    """By commands of both families."""
    server = start()
    r = server.client()
    reserve(r, "k", 1000)
    generator = random.Random(3)
    truth, pool = Counter(), []
    for turn in range(100):
        if turn < 20 or generator.random() < 0.5 or len(pool) < 1000:
            batch = [generator.randrange(60000) for _ in range(1000)]
            assert in_batches(server.port, "CF.INSERT", "k", batch) == 1000
            truth.update(batch)
            pool += batch
        else:
            generator.shuffle(pool)
            batch, pool = pool[:1000], pool[1000:]
            commands = [("CF.DEL", "k", f"{n:012d}") for n in batch]
            assert r.pipeline(commands) == [1] * 1000
            truth.subtract(batch)
        if turn % 25 == 24:
            there = [n for n, count in truth.items() if count > 0]
            there = there[:len(there) // 1000 * 1000]
            assert in_batches(server.port, "CF.MEXISTS", "k", there) == len(there)
    for number, count in list(truth.items())[:2000]:
        assert r("CF.COUNT", "k", f"{number:012d}") >= min(count, 15)
    assert facts(r, "k")["Number of items inserted"] == len(pool)


def test_an_item_that_was_added_too_often_stays(r):
    reserve(r, "k", 200)
    assert r("CF.INSERT", "k", "ITEMS", *["hot"] * 40) == [1] * 40
    assert r("CF.COUNT", "k", "hot") == 15
    assert [r("CF.DEL", "k", "hot") for _ in range(40)] == [1] * 40
    assert r("CF.EXISTS", "k", "hot") == 1 and r("CF.COUNT", "k", "hot") == 15


# ---- Replication and persistence -------------------------------------------


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()

    def seen(*words):
        return commands_seen(server, lambda: r(*words))

    made = ["BF.RESERVE", "k", "0.01", "1000", "EXPANSION", "1", "LAYOUT",
            "native", "KIND", "bucket", "SEED", "7"]
    made[2] = "%.17g" % 0.01
    assert seen("CF.RESERVE", "k", 1000, "ERROR", 0.01, "SEED", 7) == [made]
    assert seen("CF.ADD", "k", "a") == [["CF.ADD", "k", "a"]]
    assert seen("CF.ADDNX", "k", "a") == []
    assert seen("CF.INSERT", "k", "ITEMS", "a", "b") == [
        ["CF.INSERT", "k", "ITEMS", "a", "b"]]
    assert seen("CF.INSERTNX", "k", "ITEMS", "b", "c") == [
        ["CF.INSERT", "k", "ITEMS", "c"]]
    assert seen("CF.DEL", "k", "z") == [] and seen("CF.COMPACT", "k") == []
    assert seen("CF.DEL", "k", "a") == [["CF.DEL", "k", "a"]]
    assert seen("CF.COUNT", "k", "a") == []
    made[1] = "l"
    assert seen("CF.INSERT", "l", "CAPACITY", 1000, "SEED", 7, "ITEMS", "a") == [
        made, ["CF.INSERT", "l", "ITEMS", "a"]]
    before = digest(r, "k"), digest(r, "l")
    server.restart(kill=True)
    r = server.client()
    assert (digest(r, "k"), digest(r, "l")) == before


def test_a_stream_of_redisbloom_makes_its_layout(start):
    """Whatever the settings, and whatever words it passes over."""
    r = start("calyx-cf-layout", "native").client()
    primary = FakePrimary(r)
    primary.send(b"".join(encode(*words) for words in (
        ("CF.RESERVE", "a", 100), ("CF.RESERVE", "b", 100, "ERROR", 0.01),
        ("CF.ADD", "c", "x"), ("CF.INSERT", "d", "C", 100, "I", "x"),
        ("CF.RESERVE", "e", 100, "LAYOUT", "native"))))
    assert [str(r("TYPE", key)) for key in "abcde"] == [
        "MBbloomCF"] * 4 + ["calyxbf-1"]
    primary.close()


def random_words(generator):
    key = generator.choice("ab")
    item = generator.randrange(3000)
    some = [generator.randrange(3000) for _ in range(generator.randrange(1, 40))]
    return generator.choice([
        ("CF.ADD", key, item), ("CF.ADDNX", key, item), ("CF.DEL", key, item),
        ("CF.DEL", key, item), ("BF.MDEL", key, *some),
        ("CF.INSERT", key, "ITEMS", *some), ("CF.INSERT", key, "ITEMS", *some),
        ("CF.INSERTNX", key, "ITEMS", *some), ("BF.MADD", key, *some)])


def test_replicas_hold_the_same_and_so_does_one_that_comes_late(start):
    primary, replica, late = start(), start("calyx-cf-layout", "native"), start()
    p, r = primary.client(), follow(replica, primary)
    reserve(p, "a", 100)
    assert p("CF.RESERVE", "b", 800, "ERROR", 0.001, "EXPANSION", 0) == "OK"
    generator = random.Random(5)
    for turn in range(40):
        p.pipeline([random_words(generator) for _ in range(100)])
        if turn == 20:
            s = follow(late, primary)
    are_equal(p, r, s)
    assert p("BF.INFO", "a", "FILTERS")[0] > 4


@pytest.mark.parametrize("words", [("LAYOUT", "native"),
                                   ("LAYOUT", "redisbloom")])
def test_items_that_come_with_our_words_reach_the_replica(start, words):
    """Streams have none of these words in CF.INSERT."""
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    for turn in range(3):
        assert p("CF.INSERT", "k", *words, "ITEMS", turn) == [1]
        assert p("CF.INSERTNX", "k", *words, "ITEMS", -turn - 1) == [1]
    are_equal(p, r)


@pytest.mark.parametrize("how", WAYS_OF_SAVING)
def test_native_filters_survive(start, how):
    server = start_saving(start, how)
    r = server.client()
    reserve(r, "k", 10)
    reserve(r, "empty")
    r("CF.INSERT", "k", "ITEMS", *list(range(1700)) * 2)
    before = digest(r, "k"), digest(r, "empty")
    restart_saved(server, how)
    r = server.client()
    assert (digest(r, "k"), digest(r, "empty")) == before
    r("COPY", "k", "copy")
    r("RESTORE", "back", 0, r("DUMP", "k"))
    for key in ("k", "copy", "back"):
        assert digest(r, key) == before[0]
        assert r("CF.INSERT", key, "ITEMS", *range(1700, 4000)) == [1] * 2300
        for _ in range(2):
            assert r("BF.MDEL", key, *range(1700)) == [1] * 1700
        assert r("CF.MEXISTS", key, *range(1700, 4000)) == [1] * 2300
        assert sum(r("CF.MEXISTS", key, *range(1700))) < 60


def load(r, key, pairs):
    for pair in pairs:
        assert r("CF.LOADCHUNK", key, *pair) == "OK"


def test_dumps_of_either_family_are_loaded_by_either(r):
    reserve(r, "k", 10, "SEED", 3)
    r("CF.INSERT", "k", "ITEMS", *range(5000))
    pairs = dump(r, "k", "CF.SCANDUMP")
    assert r("CF.SCANDUMP", "k", pairs[-1][0]) == [0, None]
    assert pairs == dump(r, "k", "BF.SCANDUMP")
    load(r, "copy", pairs)
    for pair in pairs:
        assert r("BF.LOADCHUNK", "other", *pair) == "OK"
    assert digest(r, "k") == digest(r, "copy") == digest(r, "other")
    assert r("CF.LOADCHUNK", "copy", *pairs[0]) == "ERR item exists"
    load(r, "copy", pairs[1:])  # again
    assert digest(r, "k") == digest(r, "copy")


def test_a_filter_that_is_half_loaded_refuses(r):
    reserve(r)
    r("CF.ADD", "k", "a")
    pairs = dump(r, "k", "CF.SCANDUMP")
    load(r, "half", pairs[:1])
    for words in (("CF.ADD", "half", "a"), ("CF.EXISTS", "half", "a"),
                  ("CF.DEL", "half", "a"), ("CF.COUNT", "half", "a"),
                  ("CF.MEXISTS", "half", "a"), ("CF.SCANDUMP", "half", 0),
                  ("CF.COMPACT", "half")):
        assert "still being loaded" in r(*words), words
    at, data = pairs[1]
    for bad in ((at + 1, data), (at, data[:-1]), (at, data[:-1] + b"!"),
                (at, b""), (2, b"x")):
        assert r("CF.LOADCHUNK", "half", *bad).startswith("Couldn't load chunk!")
    load(r, "half", pairs[1:])
    assert digest(r, "half") == digest(r, "k")
    assert r("CF.LOADCHUNK", "none", at, data) == "ERR not found"
    r("BF.ADD", "line", "a")
    answer = r("CF.LOADCHUNK", "new", *r("BF.SCANDUMP", "line", 0))
    assert answer.startswith("Couldn't create filter! (it is the head")
    assert r("EXISTS", "new") == 0
    r("BF.RESTORE", "begun", "BEGIN", *r("BF.DUMP", "k", 0)[1:])
    assert "BF.RESTORE" in r("CF.LOADCHUNK", "begun", at, data)


def test_a_load_reaches_the_replica(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    reserve(p, "k", 10)
    p("CF.INSERT", "k", "ITEMS", *range(3000))
    load(p, "copy", dump(p, "k", "CF.SCANDUMP"))
    load(p, "half", dump(p, "k", "CF.SCANDUMP")[:1])
    are_equal(p, r)


def test_what_is_pulled_is_pushed_again(server, r, tmp_path):
    reserve(r, "k", 10)
    r("CF.INSERT", "k", "ITEMS", *range(5000))
    r("BF.MDEL", "k", *range(1000))
    good("pull", "-o", tmp_path / "f.calyx", url(server, "k"))
    good("push", tmp_path / "f.calyx", url(server, "l"))
    assert r("CF.MEXISTS", "l", *range(1000, 5000)) == [1] * 4000
    assert r("CF.DEL", "l", 1000) == 1
    assert r("CF.INSERT", "l", "ITEMS", *range(5000, 9000)) == [1] * 4000
    assert r("CF.MEXISTS", "l", *range(1001, 9000)) == [1] * 7999


# ---- As a citizen ----------------------------------------------------------


def test_events(server, r):
    r("CONFIG", "SET", "notify-keyspace-events", "Eg")
    listener = server.client()
    listener("PSUBSCRIBE", "__keyevent*__:*")
    reserve(r)
    r("CF.ADD", "k", "a")
    r("CF.DEL", "k", "z")
    r("CF.DEL", "k", "a")
    load(r, "copy", dump(r, "k", "CF.SCANDUMP"))
    wanted = ["reserve", "add", "del", "load"]
    for event in wanted:
        name = listener.read()[2]
        assert name == f"__keyevent@0__:cuckoo.{event}".encode()
    listener.close()
    r("CONFIG", "SET", "notify-keyspace-events", "")


def test_many_items_are_added_in_steps(start):
    server = start()
    r = server.client()
    reserve(r, "k", 100)
    before = int(info(r, "bf_calyx")["bf_steps"])
    assert r("CF.INSERT", "k", "ITEMS", *range(20000)) == [1] * 20000
    facts_now = info(r, "bf_calyx")
    assert int(facts_now["bf_steps"]) - before >= 10
    assert int(facts_now["bf_step_lines_most"]) <= 16384
    assert r("CF.MEXISTS", "k", *range(20000)) == [1] * 20000
    r("CF.INSERTNX", "new", "ERROR", 0.01, "ITEMS", *list(range(5000)) * 3)
    assert facts(r, "new")["Number of items inserted"] <= 5000


def test_memory_is_judged_before_it_is_taken(start):
    server = start("calyx-max-filter-bytes", "100000")
    r = server.client()
    assert "Insufficient memory to create filter: it needs" in r(
        "CF.RESERVE", "k", 1000000, "ERROR", 0.01)
    reserve(r, "k", 1000)
    answers = r("CF.INSERT", "k", "ITEMS", *range(60000))
    added = answers.count(1)
    assert 20000 < added < 60000 and -1 in answers
    there = [i for i in range(60000) if answers[i] == 1]
    assert r("CF.MEXISTS", "k", *there) == [1] * added
    answer = r("CF.ADD", "k", "one more")
    assert answer.startswith("ERR Insufficient memory: it needs")
    assert r("MEMORY", "USAGE", "k") < 120000
    assert r("CF.DEL", "k", there[0]) == 1
