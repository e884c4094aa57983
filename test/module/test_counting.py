"""Counting filters: what was added can be deleted, and nothing else is lost."""
import random
from collections import Counter

import pytest
from resp import Error
from servers import (WAYS_OF_SAVING, are_equal, commands_seen, digest, follow,
                     in_batches, info, restart_saved, start_saving)


def reserve(r, key="k", capacity=1000, *more):
    assert r("BF.RESERVE", key, 0.01, capacity, "COUNTING", *more) == "OK"


@pytest.mark.parametrize("how", [("COUNTING",), ("KIND", "counting"),
                                 ("kind", "COUNTING"), ("counting",)])
def test_what_was_added_can_be_deleted(r, how):
    assert r("BF.RESERVE", "k", 0.01, 1000, *how) == "OK"
    assert r("BF.ADD", "k", "rose") == 1
    assert r("BF.DEL", "k", "rose") == 1
    assert r("BF.EXISTS", "k", "rose") == 0
    assert r("BF.DEL", "k", "rose") == 0
    assert r("BF.CARD", "k") == 0


def test_an_item_is_gone_when_deleted_as_often_as_added(r):
    reserve(r)
    assert r("BF.MADD", "k", "a", "a", "a", "b") == [1, 0, 0, 1]
    assert r("BF.CARD", "k") == 4
    assert [r("BF.COUNT", "k", item) for item in "abc"] == [3, 1, 0]
    assert r("BF.MDEL", "k", "a", "b", "b", "c", "a") == [1, 1, 0, 0, 1]
    assert r("BF.MEXISTS", "k", "a", "b") == [1, 0]
    assert r("BF.COUNT", "k", "a") == 1 and r("BF.CARD", "k") == 1


def test_insert_makes_a_counting_filter(r):
    assert r("BF.INSERT", "k", "COUNTING", "ITEMS", "a") == [1]
    assert r("BF.DEL", "k", "a") == 1


def test_resp3(r3):
    reserve(r3)
    r3("BF.ADD", "k", "a")
    assert r3("BF.DEL", "k", "a") is True
    assert r3("BF.DEL", "k", "a") is False
    r3("BF.ADD", "k", "a")
    assert r3("BF.MDEL", "k", "a", "a") == [True, False]


def test_without_a_filter_there_is_nothing_to_delete(r):
    assert r("BF.DEL", "k", "a") == 0
    assert r("BF.MDEL", "k", "a", "b") == [0, 0]
    assert r("BF.COUNT", "k", "a") == 0
    assert r("EXISTS", "k") == 0


def test_filters_that_do_not_count_say_why(r):
    r("SET", "string", "x")
    r("BF.INSERT", "ours", "LAYOUT", "native", "ITEMS", "a")
    r("BF.INSERT", "theirs", "LAYOUT", "redisbloom", "ITEMS", "a")
    for command in ("BF.DEL", "BF.MDEL", "BF.COUNT"):
        assert r(command, "string", "a").startswith("WRONGTYPE")
        assert r(command, "ours", "a") == (
            "ERR the filter does not count: it is of kind distinct; make one "
            "with BF.RESERVE … COUNTING")
        assert r(command, "theirs", "a") == (
            "ERR the filter does not count: the redisbloom layout has no room "
            "for counters; make one with BF.RESERVE … COUNTING")
        assert "wrong number" in r(command, "ours")
    assert r("BF.MEXISTS", "ours", "a") == r("BF.MEXISTS", "theirs", "a") == [1]


def test_counting_in_the_redisbloom_layout(r, layout):
    """By configuration it is made native; by name it is refused."""
    reserve(r)
    assert r("TYPE", "k") == "calyxbf-1"
    answer = r("BF.RESERVE", "l", 0.01, 100, "COUNTING", "LAYOUT", "redisbloom")
    assert answer == ("ERR could not create filter: the redisbloom layout has "
                      "no room for counters; say LAYOUT native")


def test_a_half_loaded_filter_is_not_deleted_from(r):
    reserve(r)
    r("BF.ADD", "k", "a")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 0))
    for command in ("BF.DEL", "BF.MDEL", "BF.COUNT"):
        assert "still being loaded" in r(command, "half", "a")


def test_a_million_adds_and_deletes_against_a_multiset(start):
    server = start()
    r = server.client()
    reserve(r, "k", 10000)  # it has to grow
    generator = random.Random(3)
    truth, pool = Counter(), []
    for turn in range(1000):
        grow = turn < 50 or generator.random() < 0.5
        if grow or len(pool) < 1000:
            batch = [generator.randrange(60000) for _ in range(1000)]
            in_batches(server.port, "BF.MADD", "k", batch)
            truth.update(batch)
            pool += batch
        else:
            batch = []
            for _ in range(1000):
                at = generator.randrange(len(pool))
                pool[at], pool[-1] = pool[-1], pool[at]
                batch.append(pool.pop())
            assert in_batches(server.port, "BF.MDEL", "k", batch) == 1000
            truth.subtract(batch)
        if turn % 100 == 99:
            there = [n for n, count in truth.items() if count > 0]
            there = (there + [there[0]] * 1000)[:len(there) // 1000 * 1000 + 1000]
            assert in_batches(server.port, "BF.MEXISTS", "k", there) == len(there)
    for number, count in list(truth.items())[:2000]:
        assert r("BF.COUNT", "k", f"{number:012d}") >= min(count, 15)
    assert r("BF.CARD", "k") == len(pool)
    assert r("BF.INFO", "k", "FILTERS")[0] > 1
    for at in range(0, len(pool), 1000):  # and now all of them
        batch = pool[at:at + 1000]
        assert r("BF.MDEL", "k", *(f"{n:012d}" for n in batch)) == [1] * len(batch)
    absent = in_batches(server.port, "BF.MEXISTS", "k", range(60000))
    assert absent < 600 and r("BF.CARD", "k") == 0


def test_saturated_counters_lose_nothing(r):
    reserve(r, "k", 200)
    others = [f"other {i}" for i in range(200)]
    r("BF.MADD", "k", *others)
    assert r("BF.MADD", "k", *["hot"] * 100) == [1] + [0] * 99
    assert r("BF.COUNT", "k", "hot") == 15
    assert r("BF.CARD", "k") == 300
    before = digest(r, "k")
    for _ in range(200):  # more often than it was added
        assert r("BF.DEL", "k", "hot") == 1
    assert r("BF.MDEL", "k", "hot", "hot") == [1, 1]
    assert digest(r, "k") == before and r("BF.CARD", "k") == 300
    assert r("BF.COUNT", "k", "hot") == 15 and r("BF.EXISTS", "k", "hot") == 1
    assert r("BF.MEXISTS", "k", *others) == [1] * 200
    assert r("BF.MDEL", "k", *others) == [1] * 200
    assert r("BF.EXISTS", "k", "hot") == 1 and r("BF.CARD", "k") == 100


def test_a_deletion_that_changes_nothing_is_not_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    reserve(r, "k", 200)
    r("BF.MADD", "k", "a", *["hot"] * 100)
    assert commands_seen(server, lambda: r("BF.DEL", "k", "hot")) == []
    assert info(r, "bf_calyx")["bf_items_deleted"] == "0"
    assert commands_seen(server, lambda: r("BF.MDEL", "k", "hot", "a")) == [
        ["BF.MDEL", "k", "hot", "a"]]
    assert r("BF.CARD", "k") == 100
    card, before = r("BF.CARD", "k"), digest(r, "k")
    server.restart(kill=True)
    r = server.client()
    assert (r("BF.CARD", "k"), digest(r, "k")) == (card, before)


@pytest.mark.parametrize("how", WAYS_OF_SAVING)
def test_counters_survive(start, how):
    server = start_saving(start, how)
    r = server.client()
    reserve(r, "k", 10)
    r("BF.MADD", "k", *list(range(300)) * 3)
    assert r("BF.MDEL", "k", *range(300)) == [1] * 300
    before = digest(r, "k")
    restart_saved(server, how)
    r = server.client()
    assert digest(r, "k") == before
    r("COPY", "k", "copy")
    r("RESTORE", "back", 0, r("DUMP", "k"))
    for key in ("k", "copy", "back"):
        assert digest(r, key) == before
        assert r("BF.MDEL", key, *range(300)) == [1] * 300
        assert r("BF.MDEL", key, *range(300)) == [1] * 300
        assert sum(r("BF.MEXISTS", key, *range(300))) < 10


def test_replicas_count_too(start):
    primary, replica, late = start(), start(), start()
    p, r = primary.client(), follow(replica, primary)
    reserve(p, "k", 100)
    generator = random.Random(4)
    for turn in range(300):
        items = [generator.randrange(1000) for _ in range(20)]
        p(generator.choice(["BF.MADD", "BF.MADD", "BF.MDEL"]), "k", *items)
        p(generator.choice(["BF.ADD", "BF.DEL"]), "k", items[0])
        if turn == 150:
            s = follow(late, primary)
    are_equal(p, r, s)


def test_only_what_changed_something_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    reserve(r)
    r("BF.ADD", "k", "a")

    def seen(*words):
        return commands_seen(server, lambda: r(*words))

    assert seen("BF.ADD", "k", "a") == [["BF.ADD", "k", "a"]]  # it counts
    assert seen("BF.MADD", "k", "a", "b") == [["BF.MADD", "k", "a", "b"]]
    assert seen("BF.DEL", "k", "z") == []
    assert seen("BF.MDEL", "k", "y", "z") == []
    assert seen("BF.MDEL", "k", "z", "b", "b", "a") == [
        ["BF.MDEL", "k", "b", "a"]]
    assert seen("BF.DEL", "k", "a") == [["BF.DEL", "k", "a"]]
    assert seen("BF.COUNT", "k", "a") == []


def test_deleting_what_is_absent_changes_nothing(server, r):
    reserve(r)
    r("BF.ADD", "k", "a")
    before = digest(r, "k")
    other = server.client()
    for item, aborted in (("z", False), ("a", True)):
        r("WATCH", "k")
        other("BF.DEL", "k", item)
        r("MULTI")
        r("PING")
        assert (r("EXEC") is None) == aborted
        assert (digest(r, "k") == before) != aborted
    other.close()


def test_what_is_deleted_is_counted(start):
    r = start().client()
    reserve(r)
    r("BF.MADD", "k", "a", "a", "b")
    assert info(r, "bf_calyx")["bf_items"] == "3"
    r("BF.MDEL", "k", "a", "z", "b")
    facts = info(r, "bf_calyx")
    assert facts["bf_items_deleted"] == "2" and facts["bf_items"] == "1"
    r("DEL", "k")
    assert info(r, "bf_calyx")["bf_items"] == "0"


@pytest.mark.parametrize("change", [
    ("BF.DEL", "k", 1), ("BF.ADD", "k", 1), ("BF.MERGE", "k", "other")])
def test_a_dump_with_a_change_in_its_midst_is_refused(r, change):
    """Half of a counter would be of before, and half of after: less than both,
    at worst, and then a deletion takes items that are there."""
    for key in "k", "other":
        r("BF.RESERVE", key, 0.01, 3000000, "COUNTING", "SEED", 7)
        r("BF.MADD", key, *range(1000))
    pieces = [r("BF.SCANDUMP", "k", 0)]
    pieces.append(r("BF.SCANDUMP", "k", pieces[-1][0]))
    begun = r("BF.DUMP", "k", 0)
    assert not isinstance(r(*change), Error)
    last = r("BF.SCANDUMP", "k", pieces[-1][0])
    for piece in pieces:
        assert r("BF.LOADCHUNK", "copy", *piece) == "OK"
    answer = r("BF.LOADCHUNK", "copy", *last)
    assert isinstance(answer, Error) and "after it was changed" in answer
    assert "still being loaded" in r("BF.EXISTS", "copy", 2)
    assert "begin again" in r("BF.DUMP", "k", begun[0])


def test_acl_and_events(server, r):
    reserve(r)
    r("BF.MADD", "k", "a", "b")
    r("CONFIG", "SET", "notify-keyspace-events", "Eg")
    listener = server.client()
    listener("PSUBSCRIBE", "__keyevent*__:bloom.*")
    r("BF.DEL", "k", "z")
    r("BF.DEL", "k", "a")
    assert listener.read()[2:] == [b"__keyevent@0__:bloom.del", b"k"]
    listener.close()
    r("CONFIG", "SET", "notify-keyspace-events", "")
    r("ACL", "SETUSER", "reader", "reset", "on", ">p", "%R~k", "+bf.del",
      "+bf.mdel", "+bf.count")
    r("AUTH", "reader", "p")
    assert r("BF.COUNT", "k", "b") == 1
    assert r("BF.DEL", "k", "b").startswith("NOPERM")
    assert r("BF.MDEL", "k", "b").startswith("NOPERM")
