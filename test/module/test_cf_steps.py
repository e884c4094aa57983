"""Long commands on cuckoo filters: others are served meanwhile, answers stay right,
and the result is the same as at once, here and on replicas."""
import pytest
from resp import Error
from servers import are_equal, digest, follow, info, until
from test_steps import (begin_and_hold, blocked, held, one_after_the_other,
                        others_are_served, send, steps)

SLOTS = 1 << 18
ITEMS = 250000


def insert(r, key, numbers, command="CF.INSERT"):
    numbers = list(numbers)
    for at in range(0, len(numbers), 5000):
        reply = r(command, key, "ITEMS", *numbers[at:at + 5000])
        assert set(reply) == {1}


def all_there(r, key, numbers):
    numbers = list(numbers)
    return all(set(r("CF.MEXISTS", key, *numbers[at:at + 5000])) == {1}
               for at in range(0, len(numbers), 5000))


@pytest.fixture(scope="module")
def a_full_one(shared):
    """A filter of several parts, that can lose one of them: its compaction takes
    ten steps and more. As DUMP has it."""
    r = shared.client()
    r("FLUSHALL")
    r("CF.RESERVE", "k", SLOTS, "BUCKETSIZE", 4)
    insert(r, "k", range(ITEMS))
    assert r("CF.INFO", "k")[5] > 1
    insert(r, "k", range(ITEMS, ITEMS + 30000))
    r.pipeline([("CF.DEL", "k", i) for i in range(0, 25000)])
    assert r("CF.INFO", "k")[9] > 0  # it has not compacted itself
    return r("DUMP", "k")


def compact_at_once(r, key):
    assert r("MULTI") == "OK"
    r("CF.COMPACT", key)
    assert r("EXEC") == ["OK"]


@pytest.fixture
def full(start, a_full_one):
    server = start()
    r = server.client()
    for key in ("k", "copy"):
        assert r("RESTORE", key, 0, a_full_one) == "OK"
    return server, r


def test_a_compaction_in_steps_is_the_compaction_at_once(full):
    server, r = full
    answer, taken = others_are_served(
        server, r, "CF.COMPACT", "k",
        prepare=lambda: r("COPY", "copy", "k", "REPLACE"))
    assert answer == "OK" and taken > 5
    compact_at_once(r, "copy")
    assert digest(r, "k") == digest(r, "copy")
    assert all_there(r, "k", range(25000, ITEMS + 30000))


def test_lookups_go_on_while_changes_wait(full):
    """Each waiting command is done after the compaction, as if it had come then."""
    server, r = full
    compact_at_once(r, "copy")
    commands = [("CF.ADD", "a"), ("CF.ADDNX", "b"), ("CF.INSERT", "ITEMS", "c"),
                ("CF.DEL", 30000), ("CF.COMPACT",)]
    for name, *words in commands:
        r(name, "copy", *words)
    client = begin_and_hold(server, r, "CF.COMPACT", "k")
    assert r("CF.MEXISTS", "k", *range(25000, 26000)) == [1] * 1000
    assert r("CF.COUNT", "k", 25000) >= 1
    assert "filters:" in r("CF.DEBUG", "k").decode()
    answer = r("CF.SCANDUMP", "k", 0)
    assert answer == ("ERR the filter is being compacted; try again when that is "
                      "done")
    others = []
    for name, *words in commands:  # one after the other
        others.append(server.client())
        send(others[-1], name, "k", *words)
        until(lambda: blocked(r) == 1 + len(others))
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert client.read() == "OK"
    assert [other.read() for other in others] == [1, 1, [1], 1, "OK"]
    assert r("CF.MEXISTS", "k", "a", "b", "c") == [1, 1, 1]
    assert r("CF.INFO", "k") == r("CF.INFO", "copy")


def test_what_is_saved_or_compared_in_the_midst_is_what_comes_out(full, start):
    """Also by a replica that is sent the file meanwhile."""
    (server, r), replica = full, start()
    compact_at_once(r, "copy")
    client = begin_and_hold(server, r, "CF.COMPACT", "k")
    copy = follow(replica, server)
    assert copy("DEBUG", "DIGEST-VALUE", "k", "copy")[0] == digest(r, "copy")
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert client.read() == "OK"
    are_equal(r, copy)
    assert digest(r, "k") == digest(r, "copy")


def test_a_digest_in_the_midst_completes_it(full):
    server, r = full
    compact_at_once(r, "copy")
    client = begin_and_hold(server, r, "CF.COMPACT", "k")
    assert digest(r, "k") == digest(r, "copy")
    assert r("DUMP", "k") == r("DUMP", "copy")
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert client.read() == "OK"
    before = int(info(r, "bf_calyx")["bf_cuckoo_filter_bytes"])
    assert before == r("CF.INFO", "k")[1] + r("CF.INFO", "copy")[1]
    assert abs(r("MEMORY", "USAGE", "k") - r("MEMORY", "USAGE", "copy")) < 100


@pytest.mark.parametrize("how", [("RENAME", "k", "other"), ("UNLINK", "k"),
                                 ("COPY", "copy", "k", "REPLACE")])
def test_a_filter_may_go_in_the_midst(full, how):
    server, r = full
    answers = one_after_the_other(server, r, ("CF.COMPACT", "k"), how)
    assert answers[0] == "OK"
    if how[0] == "RENAME":
        compact_at_once(r, "copy")
        assert r("CF.ADD", "other", "x") == r("CF.ADD", "copy", "x") == 1
        assert digest(r, "other") == digest(r, "copy")
    assert server.alive()


def test_a_transaction_in_the_midst_completes_the_compaction(full):
    server, r = full
    script = "return redis.call('CF.ADD', KEYS[1], 'x')"
    answers = one_after_the_other(server, r, ("CF.COMPACT", "k"),
                                  ("EVAL", script, 1, "k"))
    assert answers == ["OK", 1]
    compact_at_once(r, "copy")
    r("CF.ADD", "copy", "x")
    assert digest(r, "k") == digest(r, "copy")


def test_a_deletion_that_compacts_takes_steps_and_reaches_replicas(
        start, a_full_one):
    primary, replica = start(), start()
    r, copy = primary.client(), follow(replica, primary)
    assert r("RESTORE", "k", 0, a_full_one) == "OK"
    before = steps(r)
    deleted = ITEMS // 2
    assert set(r.pipeline([("CF.DEL", "k", i)
                           for i in range(25000, deleted)])) == {1}
    assert steps(r) > before + 5
    assert all_there(r, "k", range(deleted, ITEMS + 30000))
    are_equal(r, copy)


def test_adding_many_items_takes_steps_and_reaches_replicas(start):
    primary, replica = start(), start("cf-bucket-size", 9)
    r, copy = primary.client(), follow(replica, primary)
    before = steps(r)
    assert r("CF.INSERT", "k", "CAPACITY", 1000, "ITEMS",
             *range(20000)) == [1] * 20000
    assert steps(r) > before + 2
    r("CF.RESERVE", "full", 4000, "EXPANSION", 0, "MAXITERATIONS", 1000)
    answers = r("CF.INSERTNX", "full", "ITEMS", *range(9000))
    assert set(answers) == {0, 1, -1} and answers.count(1) > 2000
    assert steps(r) > before + 20
    are_equal(r, copy)
    found = r("CF.MEXISTS", "k", *range(20000))
    assert found == [1] * 20000


def test_a_filter_that_goes_while_items_are_added(start):
    server = start()
    r = server.client()
    r("CF.RESERVE", "k", 100000)
    answers = one_after_the_other(
        server, r, ("CF.INSERT", "k", "ITEMS", *range(40000)), ("UNLINK", "k"))
    *done, last = answers[0]
    assert set(done) == {1} and 0 < len(done) < 40000
    assert last == Error(
        "ERR the filter was deleted or replaced while items were added; this one "
        "and those after it were not")


def test_querying_many_parts_takes_steps(start):
    server = start("cf-max-expansions", 2000)
    r = server.client()
    r("CF.RESERVE", "k", 4, "BUCKETSIZE", 1)
    r("CF.INSERT", "k", "ITEMS", *["same"] * 1000)
    parts = r("CF.INFO", "k")[5]
    assert parts > 400
    before = steps(r)
    answers = r("CF.MEXISTS", "k", *["same", "other"] * 200)
    assert answers == r.pipeline([("CF.EXISTS", "k", "same"),
                                  ("CF.EXISTS", "k", "other")]) * 200
    assert steps(r) - before >= 400 * 2 * parts // 16384
    with held(r):  # a compaction of it as well
        pass
    assert r("CF.COMPACT", "k") == "OK"
    assert r("CF.EXISTS", "k", "same") == 1
