"""BF.REBUILD: what is added to the live filter while another is built from a list
is not lost when BF.SWAP … REBUILD puts that in its place."""
import random

import pytest
from command import good
from resp import Error, encode
from servers import (WAYS_OF_SAVING, are_equal, caught_up, commands_seen, digest,
                     follow, info, restart_saved, rewrite_aof, start_saving, until)
from test_steps import (begin_and_hold, blocked, fill, is_in, others_are_served,
                        send, steps)

KINDS = {
    "native": (),
    "window": ("WINDOW", 1000000, "GENERATIONS", 3),
    "redisbloom": ("LAYOUT", "redisbloom"),
    "valkey-bloom": ("LAYOUT", "valkey-bloom"),
    "counting": ("COUNTING",),
    "table": ("KIND", "distinct"),
}
RATE = 1e-4  # and the seeds of all filters are fixed


@pytest.fixture(params=KINDS)
def kind(request):
    return KINDS[request.param]


def make(r, key, kind=(), items=(), capacity=1000):
    """As the server makes it by itself, without options."""
    answer = r("BF.RESERVE", key, RATE, capacity, *kind)
    assert answer == "OK", answer
    if items:
        r("BF.MADD", key, *items)


def begin(r, key="live", *how):
    token = r("BF.REBUILD", key, "BEGIN", *how)
    assert isinstance(token, int) and token > 0
    return token


def has(r, key, *items):
    return r("BF.MEXISTS", key, *items)


def recorded(r, key="live"):
    return r("BF.INFO", key, "RECORDED")[0]


# ---- Nothing is lost ---------------------------------------------------------

def test_what_was_added_during_the_rebuild_is_there_after_the_swap(r, kind):
    make(r, "live", kind, ["p1", "p2"])
    token = begin(r)
    listed = ["p1", "p2"]  # the table is read, and now a product comes
    assert r("BF.ADD", "live", "late") == 1
    assert r("BF.MADD", "live", "later", "p1") == [1, 0]
    assert r("BF.INSERT", "live", "NOCREATE", "ITEMS", "latest") == [1]
    make(r, "staged", kind, listed)
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", "late", "later", "latest", "p1", "p2", "no") == [
        1, 1, 1, 1, 1, 0]
    assert r("BF.GUARD", "live", "late", "cache") == ["maybe", None]
    assert r("EXISTS", "staged") == 0
    assert r("BF.INFO", "live", "REBUILD") == [0]


def test_the_new_filter_may_be_of_another_kind(r, kind):
    for n, other in enumerate(KINDS.values()):
        make(r, "live", kind, ["a"])
        token = begin(r)
        r("BF.ADD", "live", "late")
        make(r, "staged", other, ["b"])
        before = r("TYPE", "staged")
        assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
        assert has(r, "live", "a", "b", "late") == [0, 1, 1]
        assert r("TYPE", "live") == before
        r("DEL", "live")


def test_an_item_that_the_old_filter_knew_already_is_recorded(r, kind):
    """The list may not have it: it was deleted, and comes again."""
    make(r, "live", kind, ["back"])
    token = begin(r)
    assert r("BF.ADD", "live", "back") == 0
    make(r, "staged", kind, ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", "a", "back") == [1, 1]


def test_cf_commands_are_recorded(r):
    make(r, "live", KINDS["counting"], ["a"])
    token = begin(r)
    assert r("CF.ADD", "live", "b") == 1
    assert r("CF.ADDNX", "live", "a") == 0
    assert r("CF.INSERTNX", "live", "ITEMS", "a", "c") == [0, 1]
    assert r("CF.INSERT", "live", "ITEMS", "d", "e") == [1, 1]
    assert r("CF.DEL", "live", "e") == 1
    make(r, "staged", KINDS["counting"], ["x"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", *"abcdex") == [1, 1, 1, 1, 0, 1]


def test_a_binary_item_an_empty_one_and_a_long_one_are_recorded(r):
    odd = [b"", b"\0", b"\0\xff\r\n", b"x" * 100000, "é"]
    make(r, "live")
    token = begin(r)
    r("BF.MADD", "live", *odd)
    make(r, "staged")
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", *odd) == [1] * 5


def test_without_a_live_filter_there_is_nothing_to_record(r):
    assert r("BF.REBUILD", "live", "BEGIN") == 0
    make(r, "staged", (), ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", 0) == 1
    assert has(r, "live", "a") == [1]


def test_a_live_filter_that_was_made_since_is_not_lost(r):
    assert r("BF.REBUILD", "live", "BEGIN") == 0
    make(r, "live", (), ["b"])
    make(r, "staged", (), ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", 0).startswith(
        "ERR not swapped: the live filter was made after the rebuild began")
    assert has(r, "live", "b") == [1]


# ---- Deletions ---------------------------------------------------------------

def test_deletions_cancel_additions_that_were_recorded(r):
    make(r, "live", KINDS["counting"])
    token = begin(r)
    r("BF.MADD", "live", "a", "a", "b", "c")
    assert r("BF.MDEL", "live", "a", "b") == [1, 1]
    assert recorded(r) == 2
    make(r, "staged", KINDS["counting"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert [r("BF.COUNT", "live", x) for x in "abc"] == [1, 0, 1]


@pytest.mark.parametrize("seed", range(20))
def test_no_deletion_makes_an_item_vanish_whenever_the_list_was_read(r, seed):
    """Random additions and deletions; the list is read somewhere among them."""
    chance = random.Random(seed)
    count, listed = {f"i{n}": 0 for n in range(8)}, None
    make(r, "live", KINDS["counting"])

    def change():
        item = chance.choice(list(count))
        if count[item] and chance.random() < 0.5:
            assert r("BF.DEL", "live", item) == 1
            count[item] -= 1
        elif count[item] < 3:
            r("BF.ADD", "live", item)
            count[item] += 1

    for _ in range(20):
        change()
    token, read_at = begin(r), chance.randrange(40)
    for n in range(40):
        if n == read_at:
            listed = dict(count)
        change()
    make(r, "staged", KINDS["counting"],
         [item for item, n in listed.items() for _ in range(n)] or ["x"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    for item, n in count.items():
        assert r("BF.COUNT", "live", item) >= n, item


@pytest.mark.parametrize("how", [("COUNTING",), ("KIND", "counting")])
def test_an_item_of_more_copies_than_are_counted_stays(r, how):
    """As in the live filter, where its counters are full."""
    make(r, "live", how)
    token = begin(r)
    r.pipeline([("BF.ADD", "live", "often")] * 30 +
               [("BF.DEL", "live", "often")] * 29)
    assert r("BF.EXISTS", "live", "often") == 1
    make(r, "staged", KINDS["counting"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert r("BF.EXISTS", "live", "often") == 1


def test_items_are_counted_as_often_as_a_counter_goes(r):
    make(r, "live", KINDS["counting"])
    token = begin(r)
    r.pipeline([("BF.ADD", "live", "often")] * 100 + [("BF.ADD", "live", "x")] * 3)
    make(r, "staged", KINDS["counting"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert r("BF.COUNT", "live", "often") == 15
    assert r("BF.COUNT", "live", "x") == 3


# ---- Refusals ----------------------------------------------------------------

def refused(r, token, text, staged="staged"):
    before = digest(r, "live")
    answer = r("BF.SWAP", "live", staged, "REBUILD", token)
    assert isinstance(answer, Error) and text in answer, answer
    assert digest(r, "live") == before


def test_a_plain_swap_does_not_drop_a_rebuild_in_silence(r, kind):
    make(r, "live", kind, ["a"])
    make(r, "staged", kind, ["b"])
    token = begin(r)
    assert "a rebuild is open for the live key" in r("BF.SWAP", "live", "staged")
    assert "a rebuild is open for the staged key" in r("BF.SWAP", "staged", "live")
    assert has(r, "live", "a", "b") == [1, 0]
    assert r("BF.REBUILD", "live", "ABORT", token + 1) == 0
    assert r("BF.REBUILD", "live", "ABORT", token) == 1
    assert r("BF.REBUILD", "live", "ABORT") == 0
    assert r("BF.SWAP", "live", "staged") == 1


def test_the_rebuild_belongs_to_who_begins_last(r):
    make(r, "live", (), ["a"])
    make(r, "staged", (), ["a"])
    first = begin(r)
    r("BF.ADD", "live", "b")  # in the list of the second
    second = begin(r)
    r("BF.ADD", "live", "c")
    refused(r, first, "this rebuild is not open")
    refused(r, 1, "this rebuild is not open")
    assert r("BF.SWAP", "live", "staged", "REBUILD", second) == 1
    make(r, "staged", (), ["a", "b"])
    refused(r, second, "this rebuild is not open")
    assert has(r, "live", "a", "b", "c") == [1, 0, 1]


@pytest.mark.parametrize("words", [
    ("DEL", "live"), ("UNLINK", "live"), ("FLUSHALL",), ("FLUSHDB",),
    ("RENAME", "live", "other"), ("PEXPIREAT", "live", 1)])
def test_without_the_live_key_the_rebuild_is_over(r, words):
    make(r, "live", (), ["a"])
    token = begin(r)
    r(*words)
    make(r, "staged", (), ["a"])
    answer = r("BF.SWAP", "live", "staged", "REBUILD", token)
    assert "this rebuild is not open" in answer
    assert r("EXISTS", "live") == 0 and r("EXISTS", "staged") == 1


def test_a_rebuild_goes_with_a_key_that_is_renamed_dumped_or_moved(r, kind):
    make(r, "first", kind, ["a"])
    r("PEXPIREAT", "first", 9999999999999)
    token = begin(r, "first")
    assert r("PEXPIRETIME", "first") == 9999999999999
    r("BF.ADD", "first", "b")
    r("RENAME", "first", "second")
    r("BF.ADD", "second", "c")
    payload = r("DUMP", "second")
    r("DEL", "second")
    assert r("RESTORE", "live", 0, payload) == "OK"
    r("BF.ADD", "live", "d")
    assert recorded(r) == 3
    make(r, "staged", kind, ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", *"abcd") == [1, 1, 1, 1]


def test_a_copy_has_no_rebuild(r, kind):
    make(r, "live", kind, ["a"])
    token = begin(r)
    assert r("COPY", "live", "copy") == 1
    assert r("BF.INFO", "copy", "REBUILD") == [0]
    assert r("BF.ADD", "copy", "b") == 1
    assert r("RESTORE", "again", 0, r("DUMP", "copy")) == "OK"
    assert has(r, "again", "a", "b") == [1, 1]
    make(r, "staged", kind, ["c"])
    assert r("BF.SWAP", "copy", "staged") == 1
    assert has(r, "copy", "a", "c") == [0, 1]
    assert r("BF.REBUILD", "live", "ABORT", token) == 1


def test_emptying_the_live_filter_leaves_the_rebuild(r):
    make(r, "live", (), ["a"])
    token = begin(r)
    r("BF.ADD", "live", "b")
    assert r("BF.CLEAR", "live") == "OK"
    r("BF.ADD", "live", "c")
    make(r, "staged", (), ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", *"abc") == [1, 1, 1]


def test_more_than_the_rebuild_may_record_is_refused_and_not_forgotten(r, kind):
    make(r, "live", kind, ["a"])
    token = begin(r, "live", "MOST", 100 * (64 + 3))
    assert sum(r("BF.MADD", "live", *range(100, 200))) == 100
    assert recorded(r) == 100
    assert r("BF.ADD", "live", 100) == 0  # is recorded already
    assert recorded(r) == 100
    assert r("BF.ADD", "live", 200) == 1
    assert recorded(r) == 0
    make(r, "staged", kind, ["a"])
    refused(r, token, "more was added since the rebuild began than it may record")
    assert r("BF.EXISTS", "live", 200) == 1
    token = begin(r)
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1


def test_keys_that_come_in_bulk_are_refused(r):
    for key in ("live", "other", "staged"):
        assert r("BF.RESERVE", key, RATE, 1000, "NONSCALING", "SEED", 5) == "OK"
    r("BF.ADD", "other", "b")
    token = begin(r)
    assert r("BF.MERGE", "live", "other") == "OK"
    refused(r, token, "by BF.MERGE or BF.LOADCHUNK")
    token = begin(r)
    at, bytes = r("BF.SCANDUMP", "other", 0)
    at, bytes = r("BF.SCANDUMP", "other", at)
    assert r("BF.LOADCHUNK", "live", at, bytes) == "OK"
    refused(r, token, "by BF.MERGE or BF.LOADCHUNK")


FULL = ("NONSCALING", "LAYOUT", "native")


def test_a_staged_filter_that_takes_no_more_replaces_nothing(r):
    make(r, "live", (), ["a"])
    token = begin(r)
    r("BF.MADD", "live", *range(100, 200))
    make(r, "staged", FULL, capacity=10)
    refused(r, token, "the staged filter does not take what was added")
    refused(r, token, "the staged filter does not take what was added")
    r("DEL", "staged")
    make(r, "staged", (), ["a"])
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert has(r, "live", *range(100, 200)) == [1] * 100


def test_a_static_filter_is_taken_if_nothing_was_added(r, tmp_path):
    (tmp_path / "list").write_text("a\nb\n")
    file = str(tmp_path / "static.calyx")
    good("build", "--kind", "ribbon", "-o", file, str(tmp_path / "list"))
    port = r.socket.getpeername()[1]
    for added in (0, 1):
        make(r, "live", (), ["a"])
        token = begin(r)
        good("push", file, f"redis://127.0.0.1:{port}/staged")
        if added:
            r("BF.ADD", "live", "c")
            refused(r, token, "ribbon filters are built once from all their keys")
        else:
            assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
            assert has(r, "live", "a", "b") == [1, 1]
        r("FLUSHALL")


def test_words_and_numbers_are_checked(r):
    make(r, "live")
    r("SET", "string", "x")
    r("CF.RESERVE", "cuckoo", 1000)
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "live", 0))
    for words, text in (
            (("live",), "ERR wrong number"),
            (("live", "BEGIN", "TIMEOUT"), "ERR wrong number"),
            (("live", "BEGIN", "TIMEOUT", 0), "ERR bad timeout"),
            (("live", "BEGIN", "TIMEOUT", 10**9), "ERR bad timeout"),
            (("live", "BEGIN", "MOST", 0), "ERR bad most"),
            (("live", "BEGIN", "MOST", 2**41), "ERR bad most"),
            (("live", "BEGIN", "LEAST", 1), "ERR unknown argument"),
            (("live", "ABORT", "x"), "ERR bad token"),
            (("live", "ABORT", 1, 2), "ERR wrong number"),
            (("live", "OPEN", 1, 2, 3), "ERR wrong number"),
            (("live", "OPEN", 1, 2, 3, 9), "ERR bad number 4"),
            (("live", "OPEN", 0, 2, 3, 0), "ERR bad number 1"),
            (("live", "RECORD"), "ERR wrong number"),
            (("live", "COMMIT", 1), "ERR unknown step"),
            (("half", "BEGIN"), "ERR the filter is still being loaded"),
            (("string", "BEGIN"), "WRONGTYPE"),
            (("cuckoo", "BEGIN"), "WRONGTYPE")):
        answer = r("BF.REBUILD", *words)
        assert isinstance(answer, Error) and answer.startswith(text), answer
    for words, text in ((("REBUILD", "x"), "ERR bad token"),
                        (("REBUILD", -1), "ERR bad token"),
                        (("REBUILD",), "ERR wrong number"),
                        (("REBUILD", 3), "ERR not found")):
        answer = r("BF.SWAP", "live", "none", *words)
        assert answer.startswith(text), answer
    assert r("BF.INFO", "live", "REBUILD") == [0]
    assert info(r, "bf_calyx")["bf_rebuilds_open"] == "0"


# ---- A rebuilder that dies ---------------------------------------------------

def test_a_rebuild_ends_by_itself_when_its_time_is_up(start):
    server = start(appendonly="yes")
    r = server.client()
    make(r, "live")
    token = begin(r, "live", "TIMEOUT", 1)
    r("BF.ADD", "live", "x")
    items = iter(range(10**9))

    def ended():
        r("BF.ADD", "live", next(items))
        return r("BF.INFO", "live", "REBUILD") == [0]

    seen = commands_seen(server, lambda: until(ended))
    assert seen[-1] == ["BF.REBUILD", "live", "ABORT", str(token)]
    assert r("TYPE", "live") == "calyxbf-1" and recorded(r) == 0
    make(r, "staged")
    assert "this rebuild is not open" in r("BF.SWAP", "live", "staged",
                                           "REBUILD", token)
    assert r("BF.SWAP", "live", "staged") == 1


# ---- Files and replicas ------------------------------------------------------

@pytest.mark.parametrize("how", WAYS_OF_SAVING)
def test_a_rebuild_survives_a_restart(start, how):
    server = start_saving(start, how)
    r = server.client()
    tokens, before = {}, {}
    for name, kind in KINDS.items():
        make(r, name, kind, ["a"])
        tokens[name] = begin(r, name)
        r("BF.MADD", name, "b", "a", "c", b"\0\r\n")
        r("BF.DEL", name, "c")
        before[name] = digest(r, name), recorded(r, name)
    make(r, "lost")
    lost = begin(r, "lost", "MOST", 1)
    r("BF.ADD", "lost", "x")
    r("COPY", "native", "copy")
    restart_saved(server, how)
    r = server.client()
    assert info(r, "bf_calyx")["bf_rebuilds_open"] == str(len(KINDS) + 1)
    assert has(r, "copy", "a", "b") == [1, 1]
    for name, kind in KINDS.items():
        assert (digest(r, name), recorded(r, name)) == before[name]
        assert r("TYPE", name) == "calyxbr-1"
        make(r, "staged", kind, ["d"])
        assert r("BF.SWAP", name, "staged", "REBUILD", tokens[name]) == 1
        assert has(r, name, "a", "b", "d", b"\0\r\n") == [1, 1, 1, 1]
    make(r, "staged")
    assert "than it may record" in r("BF.SWAP", "lost", "staged", "REBUILD", lost)


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    make(r, "live", (), ["a"])
    make(r, "staged")
    token = 0

    def run():
        nonlocal token
        token = begin(r)
        r("BF.ADD", "live", "b")
        r("BF.ADD", "live", "a")
        r("BF.MADD", "live", "c", "b")
        r("BF.SWAP", "live", "staged", "REBUILD", token)

    seen = commands_seen(server, run)
    opened = seen.pop(0)
    assert opened[:4] == ["BF.REBUILD", "live", "OPEN", str(token)]
    assert opened[5:] == [str(64 << 20), "0"]
    assert seen == [
        ["BF.ADD", "live", "b"],
        ["BF.REBUILD", "live", "RECORD", "a"],
        ["BF.MADD", "live", "c"],
        ["BF.REBUILD", "live", "RECORD", "b"],
        ["BF.MADD", "staged", "a", "b", "c"],
        ["BF.SWAP", "live", "staged", "GENERATION", "1"]]


def test_a_replica_that_is_promoted_completes_the_rebuild(start):
    primary, replica, late = start(), start(), start()
    p, r = primary.client(), follow(replica, primary)
    tokens = {}
    for name, kind in KINDS.items():
        make(p, name, kind, ["a"])
        tokens[name] = begin(p, name)
        p("BF.MADD", name, "b", "a")
    follow(late, primary)
    for name in KINDS:
        p("BF.MADD", name, "c", "a")
        p("BF.DEL", name, "a")
    are_equal(p, r, late.client())
    primary.kill()
    for promoted in (r, late.client()):
        assert promoted("REPLICAOF", "NO", "ONE") == "OK"
        for name, kind in KINDS.items():
            promoted("BF.ADD", name, "d")
            make(promoted, "staged", kind, ["e"])
            assert promoted("BF.SWAP", name, "staged", "REBUILD",
                            tokens[name]) == 1
            assert has(promoted, name, *"bcde") == [1, 1, 1, 1]


def test_replicas_hold_the_same_after_a_storm(start):
    """Random commands, with rebuilds that begin, end and are completed."""
    primary = start()
    replica = start(appendonly="yes", aof_use_rdb_preamble="no")
    p, r = primary.client(), follow(replica, primary)
    chance = random.Random(7)
    names, tokens, there = list(KINDS), {}, {name: set() for name in KINDS}
    for name, kind in KINDS.items():
        make(p, name, kind, ["a"])
    for n in range(1500):
        name = chance.choice(names)
        what, item = chance.randrange(20), f"i{chance.randrange(300)}"
        if what == 0:
            tokens[name] = begin(p, name), set(there[name])
        elif what == 1:
            p("BF.REBUILD", name, "ABORT")
            tokens.pop(name, None)
        elif what == 2 and name in tokens:
            token, listed = tokens.pop(name)
            make(p, "staged", KINDS[name], sorted(listed) + ["a"])
            assert p("BF.SWAP", name, "staged", "REBUILD", token) > 0
            assert has(p, name, *there[name], "a") == [1] * (len(there[name]) + 1)
        elif what < 12:
            p("BF.ADD", name, item)
            there[name].add(item)
        else:
            items = [f"i{chance.randrange(300)}" for _ in range(9)]
            p("BF.MADD", name, *items)
            there[name].update(items)
        if n % 300 == 0:
            are_equal(p, r)
    are_equal(p, r)
    until(lambda: info(r, "persistence")["aof_rewrite_in_progress"] == "0")
    rewrite_aof(r)
    before = {name: digest(r, name) for name in names}
    replica.restart()
    r = replica.client()
    assert {name: digest(r, name) for name in names} == before


# ---- Many items, in steps ----------------------------------------------------

MANY = 100000


@pytest.fixture
def large(start):
    """A live filter that has got many items since its rebuild began."""
    server = start(appendonly="yes", appendfsync="always")
    r = server.client()
    make(r, "live", (), ["a"], capacity=MANY)
    token = begin(r)
    fill(r, "live", range(MANY), "NOCREATE")
    assert recorded(r) == MANY
    make(r, "staged", (), ["a"], capacity=2 * MANY)
    return server, r, token


def test_others_are_served_while_many_items_are_brought_along(large):
    server, r, token = large
    before = steps(r)
    answer, _ = others_are_served(server, r, "BF.SWAP", "live", "staged",
                                  "REBUILD", token)
    assert answer == 1
    assert steps(r) >= before + MANY // 2048
    assert is_in(r, "live", range(MANY)) == MANY
    assert has(r, "live", "a") == [1]


def add_and_hold(server, r, *words):
    """In the midst of a command that was held, between two of its steps."""
    other = server.client()
    for holding in (("MULTI",), words, ("CLIENT", "PAUSE", 100000, "WRITE"),
                    ("EXEC",)):
        send(other, *holding)
    until(lambda: blocked(r) == 2)
    assert r("CLIENT", "UNPAUSE") == "OK"
    return [other.read() for _ in range(4)][-1][0]


def test_items_that_come_between_two_steps_are_brought_along(large):
    server, r, token = large
    client = begin_and_hold(server, r, "BF.SWAP", "live", "staged", "REBUILD",
                            token)
    # first and last in the order of the items, and one that was there
    assert add_and_hold(server, r, "BF.MADD", "live", "", "0", b"\xff",
                        "new") == [1, 0, 1, 1]
    assert r("EXISTS", "staged") == 1
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert client.read() == 1
    assert has(r, "live", "", "0", b"\xff", "new") == [1, 1, 1, 1]
    assert is_in(r, "live", range(MANY)) == MANY


@pytest.mark.parametrize("words, text", [
    (("BF.REBUILD", "live", "ABORT"), "this rebuild is not open"),
    (("BF.REBUILD", "live", "BEGIN"), "this rebuild is not open"),
    (("DEL", "live"), "this rebuild is not open"),
    (("DEL", "staged"), "the staged filter was deleted"),
    (("BF.CLEAR", "staged"), "the staged filter was deleted")])
def test_a_swap_that_loses_its_ground_replaces_nothing(large, words, text):
    server, r, token = large
    client = begin_and_hold(server, r, "BF.SWAP", "live", "staged", "REBUILD",
                            token)
    add_and_hold(server, r, *words)
    assert r("CLIENT", "UNPAUSE") == "OK"
    assert text in client.read()
    if words != ("DEL", "live"):
        assert is_in(r, "live", range(MANY)) == MANY


def test_a_server_that_is_killed_in_the_midst_has_all_items(large):
    server, r, token = large
    begin_and_hold(server, r, "BF.SWAP", "live", "staged", "REBUILD", token)
    server.restart(kill=True)
    r = server.client()
    assert recorded(r) == MANY and r("EXISTS", "staged") == 1
    assert r("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    assert is_in(r, "live", range(MANY)) == MANY


def test_the_second_swap_of_a_rebuild_takes_over(large):
    server, r, token = large
    words = ("BF.SWAP", "live", "staged", "REBUILD", token)
    client = begin_and_hold(server, r, *words)
    second = server.client()
    send(second, *words)
    until(lambda: blocked(r) == 2)
    assert r("CLIENT", "UNPAUSE") == "OK"
    answers = [client.read(), second.read()]
    assert answers[1] == 1 and "another BF.SWAP" in answers[0], answers
    assert is_in(r, "live", range(MANY)) == MANY


def test_a_transaction_and_a_script_swap_at_once(large):
    server, r, token = large
    r("MULTI")
    r("BF.ADD", "live", "in it")
    r("BF.SWAP", "live", "staged", "REBUILD", token)
    assert r("EXEC") == [1, 1]
    assert is_in(r, "live", range(MANY)) == MANY
    token = begin(r)
    r("BF.ADD", "live", "more")
    make(r, "staged", (), ["a"])
    assert r("EVAL", "return redis.call('BF.SWAP', KEYS[1], KEYS[2], 'REBUILD',"
             " ARGV[1])", 2, "live", "staged", token) == 2
    assert has(r, "live", "a", "more") == [1, 1]


def test_a_replica_follows_the_steps(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    make(p, "live", (), ["a"])
    token = begin(p)
    fill(p, "live", range(MANY), "NOCREATE")
    make(p, "staged")
    assert p("BF.SWAP", "live", "staged", "REBUILD", token) == 1
    are_equal(p, r)
    assert is_in(r, "live", range(MANY)) == MANY


def test_the_memory_of_a_rebuild_is_counted_and_released(large):
    server, r, token = large
    used = r("MEMORY", "USAGE", "live")
    before = int(info(r, "memory")["used_memory"])
    assert r("BF.REBUILD", "live", "ABORT", token) == 1
    until(lambda: before - int(info(r, "memory")["used_memory"]) > 20 * MANY)
    assert used - r("MEMORY", "USAGE", "live") > 64 * MANY
