"""Long commands in steps: others are served meanwhile, answers stay right, and
replicas hold the same. What is counted is events and work, never time. Where a
test has to come in the midst of a command that writes, it holds the writes of all
clients (CLIENT PAUSE). In the midst of one that only reads, it tries again until
it did (attempts)."""
import contextlib
import threading

import pytest
from command import kinds_that
from resp import Error, encode
from servers import (PREFIX, are_equal, attempts, caught_up, commands_seen, digest,
                     follow, in_batches, info, until)
from valkey_bloom_model import Bloom

STEP_LINES = 16384
LARGE = ("SEED", 7, "CAPACITY", 4000000)  # 5 MB: ten steps


def steps(r):
    facts = info(r, "bf_calyx")
    assert int(facts["bf_step_lines_most"]) <= STEP_LINES
    return int(facts["bf_steps"])


def send(client, *words):
    """Without waiting for the answer, which client.read() gives."""
    client.socket.sendall(encode(*words))


def begin(server, r, *words):
    """Start a long command; return its client, mostly while it is on its way."""
    client = server.client()
    before = steps(r)
    send(client, *words)
    until(lambda: steps(r) > before, pause=0)
    return client


def blocked(r):
    return int(info(r, "clients")["blocked_clients"])


@contextlib.contextmanager
def held(r):
    """No command that writes begins, and none goes on that is done in steps."""
    assert r("CLIENT", "PAUSE", 100000, "WRITE") == "OK"
    yield
    assert r("CLIENT", "UNPAUSE") == "OK"


def one_after_the_other(server, r, *commands):
    """Commands that write, of one client each, so that the second runs when the
    first has done its first step: they wait together, and are let go together.
    Their answers."""
    clients = []
    with held(r):
        for words in commands:
            clients.append(server.client())
            send(clients[-1], *words)
            until(lambda: blocked(r) == len(clients))
    return [client.read() for client in clients]


def begin_and_hold(server, r, *words):
    """Start a command that writes, and stop it after its first step: what is let
    go after it holds the writes again. Its client."""
    client, other = server.client(), server.client()
    before = steps(r)
    assert r("CLIENT", "PAUSE", 100000, "WRITE") == "OK"
    send(client, *words)
    until(lambda: blocked(r) == 1)
    for holding in (("MULTI",), ("DEL", "nothing"),
                    ("CLIENT", "PAUSE", 100000, "WRITE"), ("EXEC",)):
        send(other, *holding)
    until(lambda: blocked(r) == 2)
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert [other.read() for _ in range(4)][-1] == [0, "OK"]
    assert steps(r) == before + 1 and blocked(r) == 1
    return client


def fill(r, key, items, *how):
    items = list(items)
    for at in range(0, len(items), 5000):
        assert isinstance(r("BF.INSERT", key, *(how or LARGE), "ITEMS",
                            *items[at:at + 5000]), list)


def is_in(r, key, items):
    items = list(items)
    return sum(sum(r("BF.MEXISTS", key, *items[at:at + 5000]))
               for at in range(0, len(items), 5000))


def chain(r, key="chain", items=300):
    """As many links as items."""
    assert r("BF.RESERVE", key, 1e-6, 1, "EXPANSION", 1, "LAYOUT",
             "redisbloom") == "OK"
    r.pipeline([("BF.ADD", key, f"link{i}") for i in range(items)])
    return r("BF.INFO", key, "FILTERS")[0]


# ---- Others are served -----------------------------------------------------

@pytest.fixture
def large(start):
    server = start()
    r = server.client()
    fill(r, "a", range(0, 20000))
    fill(r, "b", range(10000, 30000))
    return server, r


def others_are_served(server, r, *words, prepare=lambda: None):
    """Another client got an answer while the command was on its way: one that
    says so. The command's answer, and how many steps it took. `prepare` is called
    before each try, for commands that have little to do the second time."""
    for _ in attempts("an answer to another client meanwhile"):
        prepare()
        before = steps(r)
        client = begin(server, r, *words)
        served = blocked(r) > 0
        answer = client.read()
        if served:
            return answer, steps(r) - before


@pytest.mark.parametrize("words", [
    ("BF.SIMILARITY", "a", "b"), ("BF.MERGE", "a", "b"),
    ("BF.MERGE", "new", "a", "b")])
def test_others_are_served_while_whole_filters_are_worked_on(large, words):
    server, r = large
    answer, taken = others_are_served(server, r, *words)
    row = r("BF.INFO", "a", "SIZE")[0]
    assert taken >= row // (STEP_LINES * 64 // 2) * (2 if "new" in words else 1)
    if words[0] == "BF.MERGE":
        assert answer == "OK" and is_in(r, words[1], range(30000)) == 30000
    else:
        assert abs(answer[1] - 30000) < 600 and abs(answer[3] - 10000) < 600


def test_others_are_served_while_a_chain_is_queried_and_added_to(start):
    server = start()
    r = server.client()
    links = chain(r)
    items = [f"link{i}" for i in range(300)] + [f"x{i}" for i in range(3000)]
    answer, taken = others_are_served(server, r, "BF.MEXISTS", "chain", *items)
    assert taken >= len(items) * links // STEP_LINES > 10
    assert answer[:300] == [1] * 300 and 0 in answer
    assert answer == [r("BF.EXISTS", "chain", item) for item in items]

    new = [item for item, known in zip(items, answer) if not known][:500]
    answer = r("BF.MADD", "chain", *new, *items[:100], *new[:100])
    assert len(answer) == len(new) + 200 and answer[0] == 1
    assert answer[len(new):] == [0] * 200  # in their order
    assert r("BF.EXISTS", "chain", new[-1]) == 1
    answer, taken = others_are_served(server, r, "BF.MADD", "chain", *new)
    assert taken > 10 and answer == [0] * len(new)


def test_many_items_and_long_items_are_done_in_steps(start):
    r = start().client()
    before = steps(r)
    items = [b"%d" % i for i in range(100000)]
    assert sum(r("BF.INSERT", "k", "CAPACITY", 200000, "ITEMS", *items)) > 99000
    assert steps(r) - before >= 100000 // STEP_LINES
    before = steps(r)
    assert r("BF.MEXISTS", "k", *items) == [1] * len(items)
    assert steps(r) - before >= 100000 // STEP_LINES
    before = steps(r)
    assert r("BF.MEXISTS", "k", *[b"x" * 5000000] * 8) == [0] * 8
    assert steps(r) - before >= 4


def test_what_fits_into_a_step_is_done_at_once(r):
    before = steps(r)
    fill(r, "a", range(5000), "SEED", 7, "CAPACITY", 10000)
    fill(r, "b", range(5000), "SEED", 7, "CAPACITY", 10000)
    assert r("BF.MERGE", "a", "b") == "OK"
    assert isinstance(r("BF.SIMILARITY", "a", "b"), list)
    assert r("BF.MEXISTS", "a", *range(10000)).count(1) >= 5000
    assert steps(r) == before


def test_where_a_client_cannot_be_blocked_all_is_done_at_once(large):
    server, r = large
    before = steps(r)
    r("MULTI")
    for words in (("BF.SIMILARITY", "a", "b"), ("BF.MERGE", "a", "b"),
                  ("BF.MEXISTS", "a", *range(20000)),
                  ("BF.MADD", "a", *range(20000))):
        assert r(*words) == "QUEUED"
    answers = r("EXEC")
    assert abs(answers[0][1] - 30000) < 600 and answers[1] == "OK"
    assert answers[2] == [1] * 20000 and answers[3] == [0] * 20000
    script = "return redis.call('BF.MERGE', KEYS[1], KEYS[2])"
    assert r("EVAL", script, 2, "new", "a") == "OK"
    assert digest(r, "new") == digest(r, "a")
    assert steps(r) == before


# ---- The same as at once ---------------------------------------------------

@pytest.mark.parametrize("kind", kinds_that("can_merge"))
def test_a_merge_in_steps_is_the_merge_at_once(start, kind):
    r = start().client()
    how = ("SEED", 7, "CAPACITY", 1500000, "KIND", kind)
    for key, items in (("a", range(0, 3000)), ("b", range(2000, 5000)),
                       ("c", range(5000, 5500))):
        fill(r, key, items, *how)
    for key in ("one", "two"):
        assert r("COPY", "a", key) == 1
    before = steps(r)
    assert r("BF.MERGE", "one", "b", "one", "c") == "OK"
    assert r("BF.MERGE", "new", "a", "b", "c") == "OK"
    assert steps(r) - before > 6
    r("MULTI")
    r("BF.MERGE", "two", "b", "two", "c")
    r("BF.MERGE", "new2", "a", "b", "c")
    assert r("EXEC") == ["OK", "OK"]
    # Else the bytes depend on the order of the items.
    has_bits = kind in kinds_that("can_intersect")
    for key in ("two", "new", "new2"):
        assert r("BF.INFO", key) == r("BF.INFO", "one"), key
        if has_bits and kind != "counting":
            assert digest(r, key) == digest(r, "one"), key
    if kind == "counting":  # whose digests count the steps
        assert r("BF.COUNT", "one", 2500) == r("BF.COUNT", "new", 2500) == 2
    assert is_in(r, "new", range(5500)) == 5500


def test_a_chain_that_has_grown_is_copied_in_steps_and_merged_with_no_other(start):
    """The union of full parts would be overfull: 19 % at a rate of 1 %."""
    r = start().client()
    how = ("SEED", 7, "CAPACITY", 100000)
    fill(r, "a", range(0, 300000), *how)
    fill(r, "b", range(300000, 600000), *how)
    parts = r("BF.INFO", "a", "FILTERS")
    assert parts[0] > 1 and r("BF.INFO", "b", "FILTERS") == parts
    before, old = steps(r), digest(r, "a")
    for words in (("a", "b"), ("new", "a", "b")):
        error = r("BF.MERGE", *words)
        assert "filters that have grown cannot be merged" in error
        assert "kind distinct" in error
    assert digest(r, "a") == old and r("EXISTS", "new") == 0
    assert r("BF.MERGE", "new", "a") == "OK"
    assert steps(r) - before > 2
    assert digest(r, "new") == old


# ---- Replication -----------------------------------------------------------

def test_replicas_and_the_aof_do_the_same_steps(start):
    primary = start(appendonly="yes", aof_use_rdb_preamble="no")
    replica = start("calyx-max-filter-bytes", 1000)
    p, r = primary.client(), follow(replica, primary)
    fill(p, "a", range(0, 20000))
    fill(p, "b", range(10000, 30000))
    fill(p, "c", range(3000), *LARGE, "COUNTING")
    fill(p, "d", range(2000, 5000), *LARGE, "COUNTING")
    chain(p, items=200)
    writers = [begin(primary, p, *words) for words in (
        ("BF.MERGE", "a", "b"), ("BF.MERGE", "new", "a", "b"),
        ("BF.MERGE", "c", "d"),
        ("BF.MADD", "chain", *(f"m{i}" for i in range(400))))]
    other = 0
    before = steps(p)
    while steps(p) < before + 60:  # while they run, all of it changes
        for key in "abcd":
            p("BF.ADD", key, f"other{other}")
        p("BF.DEL", "d", f"other{other - 7}")
        p("BF.ADD", "chain", f"other{other}")
        other += 1
        if info(p, "clients")["blocked_clients"] == "0":
            break
    assert [w.read() for w in writers[:3]] == ["OK"] * 3
    assert len(writers[3].read()) == 400
    assert is_in(p, "new", range(30000)) == 30000
    assert is_in(p, "c", range(5000)) == 5000
    are_equal(p, r)
    before = {key: digest(p, key) for key in p("KEYS", "*")}
    primary.restart()
    p = primary.client()
    assert {key: digest(p, key) for key in p("KEYS", "*")} == before


def test_a_replica_that_comes_in_the_midst_holds_the_same(start):
    primary = start()
    p = primary.client()
    fill(p, "a", range(0, 2000))
    fill(p, "b", range(1000, 3000))
    merge = begin_and_hold(primary, p, "BF.MERGE", "new", "a", "b")
    assert "still being loaded" in p("BF.EXISTS", "new", 1)
    assert p("BF.GUARD", "new", "absent", "c") == ["maybe", None]
    r = follow(start(), primary)
    assert p("CLIENT", "UNPAUSE") == "OK"
    assert merge.read() == "OK"
    assert is_in(p, "new", range(3000)) == 3000
    are_equal(p, r)


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    fill(r, "a", range(3), "SEED", 7, "CAPACITY", 600000)
    fill(r, "b", range(5), "SEED", 7, "CAPACITY", 600000)
    seen = commands_seen(server, lambda: r("BF.MERGE", "a", "b"))
    assert [words[:4] for words in seen] == [
        ["BF.MERGEPART", "a", "b", "0"], ["BF.MERGEPART", "a", "b", "524288"]]
    assert [words[6] for words in seen] == ["MORE", "LAST"]
    answer = r(*seen[0])
    assert isinstance(answer, Error) and "use BF.MERGE" in answer
    assert commands_seen(server, lambda: r("BF.SIMILARITY", "a", "b")) == []
    chain(r, items=200)
    answer = []
    seen = commands_seen(server, lambda: answer.extend(
        r("BF.MADD", "chain", *range(500))))
    assert len(seen) > 1 and {words[0] for words in seen} == {"BF.MADD"}
    assert [int(item) for words in seen for item in words[2:]] == [
        i for i, fresh in enumerate(answer) if fresh]


DISTINCT = ("SEED", 7, "KIND", "distinct", "CAPACITY", 1000)


def test_a_table_is_merged_in_steps_on_replicas_and_from_the_aof(start):
    primary = start(appendonly="yes")
    p = primary.client()
    fill(p, "a", range(0, 5000), *DISTINCT)
    fill(p, "b", range(5000, 105000), *DISTINCT)
    r = follow(start(), primary)
    before = steps(p)
    assert p("BF.MERGE", "a", "b") == "OK"
    assert steps(p) - before > 2
    assert is_in(p, "a", range(105000)) == 105000
    are_equal(p, r)
    before = digest(p, "a")
    primary.restart()
    assert digest(primary.client(), "a") == before


def test_a_table_may_grow_before_it_is_merged(start):
    server = start()
    r = server.client()
    fill(r, "a", range(0, 100000), *DISTINCT)
    fill(r, "b", range(100000, 200000), *DISTINCT)
    merge = begin_and_hold(server, r, "BF.MERGE", "new", "a", "b")
    more = server.client()
    send(more, "BF.MADD", "b", *range(200000, 250000))
    until(lambda: blocked(r) == 2)
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert merge.read() == "OK"
    assert len(more.read()) == 50000
    assert is_in(r, "new", range(200000)) == 200000


# ---- Copies of counting filters that have grown ----------------------------

COUNTING = ("SEED", 7, "CAPACITY", 100000, "COUNTING")


MANY = 200000


@pytest.fixture(scope="module")
def a_grown_one(shared):
    """A counting filter of several parts, as DUMP has it."""
    r = shared.client()
    r("CONFIG", "SET", PREFIX + "calyx-layout", "native")
    r("FLUSHALL")
    fill(r, "a", range(MANY), *COUNTING)
    assert r("BF.INFO", "a", "FILTERS")[0] > 1
    return r("DUMP", "a")


def grown(r, a_grown_one):
    """The same under the key a. Its bytes."""
    assert r("RESTORE", "a", 0, a_grown_one) == "OK"
    return r("BF.INFO", "a", "SIZE")[0]


def test_a_grown_counting_filter_is_copied_in_steps(start, a_grown_one):
    server = start()
    r = server.client()
    size = grown(r, a_grown_one)
    before = steps(r)
    client = begin_and_hold(server, r, "BF.MERGE", "new", "a")
    assert r("CLIENT", "UNPAUSE") == "OK"  # we were served meanwhile
    assert client.read() == "OK"
    assert steps(r) - before >= size // (STEP_LINES // 2 * 64)
    r("COPY", "a", "copy")
    assert digest(r, "new") == digest(r, "copy")
    answer = r("BF.MERGE", "other", "a", "a")  # which would count all twice
    assert "does not fit the target: the filters have grown" in answer
    assert r("EXISTS", "other") == 0
    answer = r("BF.MERGE", "new", "a")
    assert "does not fit the target: the filters have grown" in answer


def test_a_copy_is_of_the_moment_at_which_it_was_ordered(start, a_grown_one):
    """Whatever is added, deleted, or makes the source grow between the steps."""
    server = start(appendonly="yes", aof_use_rdb_preamble="no")
    r, replica = server.client(), follow(start(), server)
    grown(r, a_grown_one)
    r("COPY", "a", "copy")
    before = steps(r)
    answers = one_after_the_other(
        server, r, ("BF.MERGE", "new", "a"),
        ("BF.MDEL", "a", *range(0, MANY, 7)),
        ("BF.MADD", "a", *range(0, MANY, 11)),
        ("BF.DEL", "a", 1), ("BF.ADD", "a", 2),
        *(("BF.MADD", "a", *range(at, at + 10000))
          for at in range(MANY, 2 * MANY, 10000)))
    assert answers[0] == "OK"
    assert steps(r) - before > 6
    assert r("BF.INFO", "a", "FILTERS")[0] > r("BF.INFO", "new", "FILTERS")[0]
    assert digest(r, "new") == digest(r, "copy") != digest(r, "a")
    are_equal(r, replica)
    # Each item can be deleted where it is, and no other goes with it.
    for at in range(0, MANY, 20000):
        assert set(r("BF.MDEL", "new", *range(at, at + 20000, 2))) == {1}
    assert is_in(r, "new", range(1, MANY, 2)) == MANY // 2
    expected = {key: digest(r, key) for key in ("a", "new", "copy")}
    server.restart()
    r = server.client()
    assert {key: digest(r, key) for key in expected} == expected


def test_a_replica_that_comes_in_the_midst_of_a_copy_holds_the_same(
        start, a_grown_one):
    primary = start()
    p = primary.client()
    grown(p, a_grown_one)
    p("COPY", "a", "copy")
    copying = begin_and_hold(primary, p, "BF.MERGE", "new", "a")
    assert "still being loaded" in p("BF.EXISTS", "new", 1)
    r = follow(start(), primary)
    writer = primary.client()
    send(writer, "BF.MDEL", "a", *range(0, MANY, 7))
    until(lambda: blocked(p) == 2)
    assert p("CLIENT", "UNPAUSE") == "OK"
    assert copying.read() == "OK" and 0 not in writer.read()
    assert digest(p, "new") == digest(p, "copy")
    are_equal(p, r)


def test_how_a_copy_is_replicated(start, a_grown_one):
    server = start(appendonly="yes")
    r = server.client()
    size = grown(r, a_grown_one)
    seen = commands_seen(server, lambda: r("BF.MERGE", "new", "a"))
    assert {tuple(words[:3]) for words in seen} == {("BF.COPYPART", "new", "a")}
    assert [words[4] for words in seen] == ["MORE"] * (len(seen) - 1) + ["LAST"]
    assert len(seen) >= size // (STEP_LINES // 2 * 64)
    answer = r("BF.COPYPART", "new", "a", "", "LAST")
    assert isinstance(answer, Error) and "use BF.MERGE" in answer


# ---- Deleting --------------------------------------------------------------

def test_many_items_are_deleted_in_steps(start):
    server = start(appendonly="yes")
    r = server.client()
    many = range(STEP_LINES * 3)
    fill(r, "c", many, *COUNTING)
    absent = [f"absent{i}" for i in range(1000)]
    answer, taken = [], steps(r)
    seen = commands_seen(server, lambda: answer.extend(
        r("BF.MDEL", "c", *many[:40000], *absent)))
    assert steps(r) - taken >= 2
    assert answer[:40000] == [1] * 40000 and sum(answer[40000:]) < 50
    assert {words[0] for words in seen} == {"BF.MDEL"} and len(seen) >= 2
    assert sum(len(words) - 2 for words in seen) == sum(answer)
    assert r("BF.CARD", "c") == len(many) - sum(answer)
    assert is_in(r, "c", many[40000:]) == len(many) - 40000
    before = steps(r)
    r("MULTI")
    r("BF.MDEL", "c", *many)
    assert sum(r("EXEC")[0]) >= len(many) - 40000 and steps(r) == before
    assert len(r("BF.MDEL", "missing", *many)) == len(many)


# ---- valkey-bloom's payloads -------------------------------------------------

@pytest.fixture(scope="module")
def payload():
    bloom = Bloom(0.01, 4000000)
    for i in range(100):
        bloom.add(b"%d" % i)
    return bloom.load_payload()


def test_a_large_payload_is_loaded_in_steps(start, payload):
    server = start(appendonly="yes", aof_use_rdb_preamble="no")
    r, replica = server.client(), follow(start(), server)
    before = steps(r)
    client = begin_and_hold(server, r, "BF.LOAD", "new", payload)
    assert r("EXISTS", "new") == 0  # and we were served
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert client.read() == "OK"
    assert steps(r) - before >= len(payload) // (STEP_LINES // 2 * 64)
    assert r("BF.MEXISTS", "new", *range(100)) == [1] * 100
    before = steps(r)
    r("MULTI")
    r("BF.LOAD", "at once", payload)
    assert r("EXEC") == ["OK"] and steps(r) == before
    assert digest(r, "at once") == digest(r, "new")
    are_equal(r, replica)
    server.restart()
    r = server.client()
    assert digest(r, "new") == digest(r, "at once")


def test_a_key_that_comes_while_a_payload_is_loaded_stays(start, payload):
    server = start()
    r = server.client()
    answers = one_after_the_other(server, r, ("BF.LOAD", "k", payload),
                                  ("SET", "k", "x"))
    assert answers == [Error("BUSYKEY Target key name already exists."), "OK"]
    assert r("GET", "k") == b"x"
    until(lambda: info(r, "bf_calyx")["bf_filters"] == "0")


# ---- What may happen meanwhile ---------------------------------------------

CHANGES = {
    "deleted": ("DEL", "a"),
    "unlinked": ("UNLINK", "a"),
    "renamed": ("RENAME", "a", "elsewhere"),
    "swapped": ("BF.SWAP", "a", "staged"),
    "cleared": ("BF.CLEAR", "a"),
    "expired": ("PEXPIREAT", "a", 1),
    "replaced": ("RENAME", "staged", "a"),
    "another type": ("SET", "a", "x"),
    "flushed": ("FLUSHALL",),
}


@pytest.fixture(scope="module")
def long_server(shared):
    client = shared.client()
    client("CONFIG", "SET", PREFIX + "calyx-layout", "native")
    return shared


HUGE = ("SEED", 7, "CAPACITY", 12000000)  # 14 MB: 28 steps


def refill(r, *how):
    r("FLUSHALL")
    for key in "abc":
        fill(r, key, range(100), *how)
    fill(r, "staged", range(3))


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("words", [
    ("BF.MERGE", "c", "a"), ("BF.MERGE", "a", "b"),
    ("BF.MERGE", "new", "b", "a"), ("BF.MERGE", "new", "a", "b")],
    ids=["source", "target", "new", "new of it"])
def test_a_merge_of_a_filter_that_goes_meanwhile_is_an_error(long_server, how,
                                                             words):
    server = long_server
    r = server.client()
    refill(r)
    answer, _ = one_after_the_other(server, r, words, CHANGES[how])
    assert isinstance(answer, Error) and answer.startswith("ERR not merged")
    assert "was deleted, emptied or replaced meanwhile" in answer
    assert server.alive() and r("EXISTS", "new") == 0
    if how != "flushed":
        assert is_in(r, "b", range(100)) == is_in(r, "c", range(100)) == 100


@pytest.mark.parametrize("how", CHANGES)
def test_a_comparison_of_a_filter_that_goes_meanwhile_is_an_error(long_server,
                                                                  how):
    server = long_server
    r = server.client()
    for _ in attempts("a change in the midst of the command"):
        refill(r, *HUGE)
        client = begin(server, r, "BF.SIMILARITY", "b", "a")
        r(*CHANGES[how])
        answer = client.read()
        if isinstance(answer, Error):
            break
    assert "a filter was deleted, emptied or replaced" in answer


@pytest.mark.parametrize("how", CHANGES)
def test_adding_to_a_chain_that_goes_meanwhile(long_server, how):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    chain(r, "a", 300)
    fill(r, "staged", range(3))
    items = [f"m{i}" for i in range(1000)]
    added, _ = one_after_the_other(server, r, ("BF.MADD", "a", *items),
                                   CHANGES[how])
    assert isinstance(added[-1], Error) and "replaced while" in added[-1]
    assert 0 < len(added) - 1 < len(items)
    assert all(answer in (0, 1) for answer in added[:-1])
    if how == "renamed":  # what was said to be in is in
        done = items[:len(added) - 1]
        assert r("BF.MEXISTS", "elsewhere", *done) == [1] * len(done)


@pytest.mark.parametrize("how", CHANGES)
def test_deleting_from_a_filter_that_goes_meanwhile(long_server, how):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    items = range(STEP_LINES * 3)
    fill(r, "a", items, *COUNTING)
    fill(r, "staged", range(3))
    deleted, _ = one_after_the_other(server, r, ("BF.MDEL", "a", *items),
                                     CHANGES[how])
    assert isinstance(deleted[-1], Error) and "replaced while" in deleted[-1]
    assert deleted[:-1] == [1] * (len(deleted) - 1)
    assert 0 < len(deleted) - 1 < len(items)
    if how == "renamed":  # what was not deleted is there
        left = items[len(deleted) - 1:]
        assert is_in(r, "elsewhere", left) == len(left)


@pytest.mark.parametrize("how", CHANGES)
@pytest.mark.parametrize("which", ["source", "target"])
def test_a_copy_of_a_filter_that_goes_meanwhile_is_an_error(
        long_server, a_grown_one, how, which):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    key, into = ("a", "new") if which == "source" else ("from", "a")
    assert r("RESTORE", key, 0, a_grown_one) == "OK"
    fill(r, "staged", range(3))
    answer, _ = one_after_the_other(server, r, ("BF.MERGE", into, key),
                                    CHANGES[how])
    if (how, which) == ("cleared", "target"):  # it is not complete
        assert answer == "OK"
        return
    assert isinstance(answer, Error) and answer.startswith("ERR not merged")
    assert "was deleted, emptied or replaced meanwhile" in answer
    if which == "source":
        assert r("EXISTS", "new") == 0
    else:
        expected = how in ("swapped", "replaced", "another type")
        assert r("EXISTS", "a") == expected


@pytest.mark.parametrize("how", CHANGES)
def test_asking_a_chain_that_goes_meanwhile(long_server, how):
    server = long_server
    r = server.client()
    for _ in attempts("a change in the midst of the command"):
        r("FLUSHALL")
        chain(r, "a", 300)
        fill(r, "staged", range(3))
        client = begin(server, r, "BF.MEXISTS", "a", *range(2000))
        r(*CHANGES[how])
        answer = client.read()
        if isinstance(answer, Error):
            break
    assert "query all items again" in answer


def test_a_target_that_is_made_is_gone_when_the_merge_fails(long_server):
    server = long_server
    r = server.client()
    refill(r)
    answer, there, _ = one_after_the_other(
        server, r, ("BF.MERGE", "new", "a", "b"), ("COPY", "new", "copy"),
        ("DEL", "b"))
    assert answer == ("ERR not merged: source 2 was deleted, emptied or "
                      "replaced meanwhile")
    assert there == 1 and r("EXISTS", "new") == 0
    assert "still being loaded" in r("BF.EXISTS", "copy", 1)
    answer, _ = one_after_the_other(server, r, ("BF.MERGE", "new", "a"),
                                    ("RENAME", "new", "mine"))
    assert "the target was deleted" in answer
    assert "still being loaded" in r("BF.EXISTS", "mine", 1)


def test_a_comparison_is_of_one_state(long_server):
    """With one change it begins again."""
    server = long_server
    r = server.client()
    for _ in attempts("a change in the midst of the command"):
        r("FLUSHALL")
        for key in "ab":
            fill(r, key, range(20000), *HUGE)
        before = steps(r)
        assert r("BF.SIMILARITY", "a", "b")[5] == b"1"
        row = steps(r) - before
        client = begin(server, r, "BF.SIMILARITY", "a", "b")
        r("BF.MADD", "a", *(f"x{i}" for i in range(5000)))
        answer = client.read()
        if answer[5] != b"1":
            break
    assert abs(answer[1] - 25000) < 300 and abs(answer[3] - 20000) < 300
    assert 2 * row < steps(r) - before <= 3 * row


def test_bits_that_come_in_bulk_are_a_change(long_server):
    """A piece of another filter, which sets bits but adds no items."""
    server = long_server
    r = server.client()
    r("FLUSHALL")
    r("BF.RESERVE", "c", 0.01, HUGE[-1], "SEED", 7)
    in_batches(server.port, "BF.MADD", "c", range(200000))
    first = r("BF.SCANDUMP", "c", 0)[0]
    at, piece = r("BF.SCANDUMP", "c", first)
    for _ in attempts("a change in the midst of the command"):
        r("DEL", "a", "b")
        for key in "ab":
            fill(r, key, range(20000), *HUGE)
        client = begin(server, r, "BF.SIMILARITY", "a", "b")
        assert r("BF.LOADCHUNK", "a", at, piece) == "OK"
        union = client.read()[1]
        then = r("BF.SIMILARITY", "a", "b")[1]
        assert then > 30000
        assert abs(union - 20000) < 300 or union == then, "of neither state"
        if union == then:
            break
    assert union == then


def test_filters_that_never_stay_the_same_cannot_be_compared(long_server):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    for key in "ab":
        fill(r, key, range(100), *HUGE)
    for attempt in range(50):
        writer, client = server.client(), server.client()
        adds = b"".join(encode("BF.ADD", "b", f"{attempt}:{i}")
                        for i in range(20000))
        thread = threading.Thread(target=writer.socket.sendall, args=(adds,))
        thread.start()
        answer = client("BF.SIMILARITY", "a", "b")
        for _ in range(20000):
            writer.read()
        thread.join()
        if isinstance(answer, Error):
            break
    assert answer.startswith("ERR the filters changed while they were compared")


def test_growth_meanwhile_does_no_harm(long_server):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    many = 600000
    for key, numbers in (("a", range(many)), ("b", range(many, 2 * many))):
        r("BF.RESERVE", key, 0.01, many + 20000, "SEED", 7)
        in_batches(server.port, "BF.MADD", key, numbers)
    assert r("BF.INFO", "a", "FILTERS") == [1]
    more = [f"more{i}" for i in range(40000)]
    adds = [("BF.MADD", key, *more[at:at + 10000])
            for key in "ab" for at in range(0, 40000, 10000)]
    answers = one_after_the_other(server, r, ("BF.MERGE", "a", "b"), *adds)
    assert answers[0] == "OK"
    for key in "ab":
        assert r("BF.INFO", key, "FILTERS")[0] > 1
        assert is_in(r, key, more) == 40000
    assert in_batches(server.port, "BF.MEXISTS", "a",
                      range(0, 2 * many, 10)) == many // 5


def test_a_client_that_leaves_is_no_trouble(long_server):
    server = long_server
    r = server.client()
    r("FLUSHALL")
    for key in "ab":
        fill(r, key, range(100), *HUGE)
    chain(r, "chain", 300)
    for words in (("BF.SIMILARITY", "a", "b"), ("BF.MERGE", "new", "a", "b"),
                  ("BF.MADD", "chain", *range(1000))):
        begin(server, r, *words).close()
    until(lambda: info(r, "keyspace") and r("BF.EXISTS", "chain", 999) == 1)
    until(lambda: isinstance(r("BF.EXISTS", "new", 1), int))
    assert is_in(r, "new", range(100)) == 100


def test_a_server_that_becomes_a_replica_changes_nothing_more(start):
    primary, other = start(), start()
    p = primary.client()
    for key in "ab":
        fill(p, key, range(100))
    client = begin_and_hold(primary, p, "BF.MERGE", "a", "b")
    o = other.client()
    o("SET", "x", 1)
    assert p("REPLICAOF", "127.0.0.1", other.port) == "OK"
    assert "UNBLOCKED" in client.read()
    assert p("CLIENT", "UNPAUSE") == "OK"
    until(lambda: info(p, "replication")["master_link_status"] == "up")
    assert p("KEYS", "*") == [b"x"]
    caught_up(o, p)


def test_memory_for_a_target_is_judged_first(start):
    server = start()
    r = server.client()
    fill(r, "a", range(100), *HUGE)
    r("CONFIG", "SET", "maxmemory",
      int(info(r, "memory")["used_memory"]) + (7 << 20))
    answer = r("BF.MERGE", "new", "a")
    assert isinstance(answer, Error) and "maxmemory leaves" in answer
    assert r("EXISTS", "new") == 0
    r("CONFIG", "SET", "maxmemory", 0)
    assert r("BF.MERGE", "new", "a") == "OK"


def test_long_commands_are_slow_ones(r):
    for command in ("bf.merge", "bf.similarity", "bf.mexists", "bf.madd",
                    "bf.mdel"):
        about, = r("COMMAND", "INFO", command)
        assert "fast" not in about[2], about
