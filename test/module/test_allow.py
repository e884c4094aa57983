"""Allow lists: BF.ALLOW, BF.DISALLOW, BF.ALLOWED, and all that obeys them."""
import pytest
from command import good, make, url
from resp import Error
from servers import (are_equal, caught_up, commands_seen, digest, dump, follow,
                     info, restart_saved, start_saving)

ADDED = range(300)


def crowd(r, key="k", *more):
    """Make a filter, and return 20 of its false positives."""
    words = more or ("LAYOUT", "native")
    assert r("BF.RESERVE", key, 0.6, len(ADDED), "SEED", 1, *words) == "OK"
    r("BF.MADD", key, *ADDED)
    wrong = []
    for at in range(1000, 200000, 1000):
        found = r("BF.MEXISTS", key, *range(at, at + 1000))
        wrong += [at + i for i, yes in enumerate(found) if yes]
        if len(wrong) >= 20:
            return wrong[:20]
    raise AssertionError(wrong)


def listed(r, key="k"):
    items = r("BF.ALLOWED", key)
    assert not isinstance(items, Error), items
    return sorted(int(item) for item in items)


KINDS = [(), ("COUNTING",), ("KIND", "flat"), ("KIND", "split"),
         ("WINDOW", 1000, "GENERATIONS", 3)]


@pytest.mark.parametrize("how", KINDS)
def test_an_allowed_item_is_not_found(r, how):
    wrong = crowd(r, "k", *how)
    assert r("BF.ALLOW", "k", wrong[0], wrong[1], wrong[0]) == [1, 1, 0]
    assert r("BF.EXISTS", "k", wrong[0]) == 0
    assert r("BF.MEXISTS", "k", *wrong[:3]) == [0, 0, 1]
    assert r("BF.GUARD", "k", wrong[0], "cache") == ["absent", None]
    assert r("BF.GUARD", "k", wrong[2], "cache") == ["maybe", None]
    assert r("BF.MEXISTS", "k", *ADDED) == [1] * len(ADDED)
    assert listed(r) == wrong[:2]
    assert r("BF.INFO", "k", "ALLOWED") == [2]
    assert r("BF.DISALLOW", "k", wrong[0], wrong[2]) == [1, 0]
    assert r("BF.MEXISTS", "k", *wrong[:3]) == [1, 0, 1]
    assert listed(r) == [wrong[1]]


@pytest.mark.parametrize("how", KINDS)
def test_an_added_item_leaves_the_list(r, how):
    wrong = crowd(r, "k", *how)
    r("BF.ALLOW", "k", *wrong[:5])
    assert r("BF.ADD", "k", wrong[0]) == 1  # it was not there
    assert r("BF.MADD", "k", wrong[1], wrong[1]) == [1, 0]
    assert r("BF.INSERT", "k", "ITEMS", wrong[2]) == [1]
    assert r("BF.MEXISTS", "k", *wrong[:5]) == [1, 1, 1, 0, 0]
    assert listed(r) == wrong[3:5]


def test_a_window_remembers_which_generation_lacks_an_item(r):
    wrong = crowd(r, "k", "WINDOW", 1000, "GENERATIONS", 2)
    r("BF.ALLOW", "k", wrong[0])
    r("BF.ROTATE", "k")
    assert r("BF.EXISTS", "k", wrong[0]) == 0
    assert r("BF.ADD", "k", wrong[0]) == 1
    for _ in range(2):
        assert r("BF.EXISTS", "k", wrong[0]) == 1
        r("BF.ROTATE", "k")
    r("BF.ROTATE", "k")
    assert r("BF.EXISTS", "k", wrong[0]) == 0


def test_a_window_keeps_its_lists_if_one_of_them_is_full(r):
    items = [letter * 80000 for letter in "abc"]
    r("BF.RESERVE", "k", 0.01, 100, "WINDOW", 10**6, "GENERATIONS", 2)
    assert r("BF.ALLOW", "k", *items) == [1, 1, 1]
    for item in items:  # leaves the list of one generation each
        assert r("BF.ADD", "k", item) == 1
        r("BF.ROTATE", "k")
    assert r("BF.ALLOW", "k", "d" * 90000) == [1]
    before = dump(r, "k")
    for item in items:
        assert isinstance(r("BF.ALLOW", "k", item)[-1], Error)
        assert dump(r, "k") == before


def test_an_allowed_item_is_not_deleted(r):
    wrong = crowd(r, "k", "COUNTING")
    r("BF.ALLOW", "k", *wrong)
    assert r("BF.DEL", "k", wrong[0]) == 0
    assert r("BF.MDEL", "k", *wrong) == [0] * len(wrong)
    assert r("BF.COUNT", "k", wrong[0]) == 0
    assert r("BF.MEXISTS", "k", *ADDED) == [1] * len(ADDED)


def test_a_small_filter_has_a_list_and_is_small_again_without(r):
    r("BF.RESERVE", "k", 0.01, 100)
    before = r("MEMORY", "USAGE", "k")
    assert r("BF.ALLOW", "k", "") == [1]
    assert r("BF.ALLOWED", "k") == [b""]
    assert r("MEMORY", "USAGE", "k") >= before + 500
    assert r("BF.DISALLOW", "k", "") == [1]
    assert r("MEMORY", "USAGE", "k") == before


def test_the_list_is_counted_as_memory(r):
    r("BF.RESERVE", "k", 0.01, 100000)
    used = int(info(r, "memory")["used_memory"])
    usage = r("MEMORY", "USAGE", "k")
    r("BF.ALLOW", "k", *(f"{i:020d}" for i in range(5000)))
    more = r("MEMORY", "USAGE", "k") - usage
    assert more >= 5000 * 24
    assert abs(int(info(r, "memory")["used_memory"]) - used - more) < 40000


def test_the_list_is_bounded(r):
    r("BF.RESERVE", "k", 0.01, 100)
    answers = r("BF.ALLOW", "k", "a", "x" * 300000, "b")
    assert answers[0] == 1 and len(answers) == 2
    assert "an allow list has at most 262144 bytes" in answers[1]
    assert r("BF.ALLOWED", "k") == [b"a"]


def test_what_cannot_have_a_list_says_so(r):
    r("SET", "string", "x")
    r("BF.RESERVE", "theirs", 0.01, 100, "LAYOUT", "redisbloom")
    r("BF.ADD", "k", "a")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 0))
    for words in (("BF.ALLOW", "{}", "a"), ("BF.DISALLOW", "{}", "a"),
                  ("BF.ALLOWED", "{}")):
        def said(key, words=words):
            return r(*(word.format(key) for word in words))
        assert said("none") == "ERR not found"
        assert said("string").startswith("WRONGTYPE")
        assert "redisbloom layout has no room for it" in said("theirs")
        assert "still being loaded" in said("half")
        assert "wrong number" in r(words[0], *(["k", "l"] if len(words) == 2
                                               else ["k"]))
    assert r("BF.INFO", "theirs", "ALLOWED") == [0]


def test_resp3(r3):
    wrong = crowd(r3)
    assert r3("BF.ALLOW", "k", wrong[0], wrong[0]) == [True, False]
    assert r3("BF.EXISTS", "k", wrong[0]) is False
    assert r3("BF.INFO", "k", "ALLOWED") == [("Allowed items", 1)]
    assert r3("BF.DISALLOW", "k", wrong[0]) == [True]


def test_many_items_go_in_steps(r):
    r("BF.RESERVE", "k", 0.01, 100)
    items = [f"{i:05d}" for i in range(25000)]
    assert r("BF.ALLOW", "k", *items) == [1] * len(items)
    assert r("BF.ALLOW", "k", *items, "x") == [0] * len(items) + [1]
    assert len(r("BF.ALLOWED", "k")) == len(items) + 1
    assert r("BF.DISALLOW", "k", *items) == [1] * len(items)
    assert r("BF.ALLOWED", "k") == [b"x"]


# ---- Whole filters ----------------------------------------------------------

def test_copies_and_dumps_have_the_list(r):
    for how in KINDS:
        r("FLUSHALL")
        wrong = crowd(r, "k", *how)
        r("BF.ALLOW", "k", *wrong)
        r("COPY", "k", "copy")
        r("RESTORE", "restored", 0, r("DUMP", "k"))
        for at, bytes_ in dump(r, "k"):
            assert r("BF.LOADCHUNK", "loaded", at, bytes_) == "OK"
        for key in ("copy", "restored", "loaded"):
            assert listed(r, key) == wrong, (how, key)
            assert digest(r, key) == digest(r, "k")


def test_clear_keeps_the_list_and_swap_takes_it_along(r):
    wrong = crowd(r)
    r("BF.ALLOW", "k", *wrong[:3])
    r("BF.CLEAR", "k")
    assert listed(r) == wrong[:3]
    r("BF.MADD", "k", *ADDED)
    assert r("BF.MEXISTS", "k", *wrong[:4]) == [0, 0, 0, 1]
    r("BF.RESERVE", "other", 0.01, 10)
    r("BF.SWAP", "other", "k")
    assert listed(r, "other") == wrong[:3]


@pytest.mark.parametrize("size", [1000, 30_000_000])
def test_a_merge_keeps_what_neither_filter_has(r, size):
    """At once, and in steps."""
    for key in "abc":
        r("BF.RESERVE", key, 0.01, size, "SEED", 5)
    r("BF.MADD", "a", "rose")
    r("BF.MADD", "b", "iris")
    r("BF.ALLOW", "a", "iris", "moss")
    r("BF.ALLOW", "b", "rose", "fern")
    r("BF.ALLOW", "c", "rose", "iris", "elm")
    assert r("BF.MERGE", "new", "a", "b", "c") == "OK"
    assert sorted(r("BF.ALLOWED", "new")) == [b"elm", b"fern", b"moss"]
    assert r("BF.MEXISTS", "new", "rose", "iris") == [1, 1]
    assert r("BF.MERGE", "a", "b") == "OK"
    assert sorted(r("BF.ALLOWED", "a")) == [b"fern", b"moss"]
    assert r("BF.MEXISTS", "a", "rose", "iris") == [1, 1]


def test_lists_that_are_too_long_together_are_not_merged(start):
    server = start(appendonly="yes")
    r = server.client()
    for i, key in enumerate("abc"):
        r("BF.RESERVE", key, 0.01, 100, "SEED", 5)
        r("BF.ALLOW", key, *(f"{i}{n:095d}" for n in range(1000)))
    r("BF.ADD", "b", "iris")
    answer = r("BF.MERGE", "new", "a", "b", "c")
    assert answer.startswith("ERR not merged: source 3: an allow list has at")
    assert r("EXISTS", "new") == 0

    def merge():
        assert r("BF.MERGE", "a", "b", "c").endswith("before that stays")
    assert commands_seen(server, merge) == [["BF.MERGE", "a", "b"]]
    assert r("BF.EXISTS", "a", "iris") == 1


# ---- Replicas and files -----------------------------------------------------

def fill(r):
    wrong = crowd(r)
    window = crowd(r, "w", "WINDOW", 10**6, "GENERATIONS", 3)
    r("BF.ALLOW", "k", *wrong)
    r("BF.ALLOW", "w", *window)
    r("BF.DISALLOW", "k", *wrong[:3])
    r("BF.ADD", "k", wrong[4])
    r("BF.MADD", "w", *window[:2])
    r("BF.MERGE", "m", "k")


def test_replicas_are_equal(start):
    primary, replica, late = start(), start("calyx-max-filter-bytes", 100), start()
    p, r = primary.client(), follow(replica, primary)
    fill(p)
    s = follow(late, primary)
    p("BF.ALLOW", "k", "more")
    p("BF.ADD", "k", "more")
    p("BF.ROTATE", "w")
    are_equal(p, r, s)
    caught_up(p, r)
    assert sorted(r("BF.ALLOWED", "k")) == sorted(p("BF.ALLOWED", "k"))
    assert r("BF.ALLOW", "k", "x").startswith("READONLY")


def test_only_changes_are_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    wrong = crowd(r)
    assert commands_seen(server, lambda: r("BF.ALLOW", "k", *wrong[:2])) == [
        ["BF.ALLOW", "k", *map(str, wrong[:2])]]
    assert commands_seen(server, lambda: r("BF.ALLOW", "k", *wrong[:3])) == [
        ["BF.ALLOW", "k", str(wrong[2])]]
    assert commands_seen(server, lambda: r("BF.ALLOW", "k", wrong[0])) == []
    assert commands_seen(server, lambda: r("BF.ALLOWED", "k")) == []
    assert commands_seen(server, lambda: r("BF.ADD", "k", wrong[0])) == [
        ["BF.ADD", "k", str(wrong[0])]]
    assert commands_seen(server, lambda: r("BF.DISALLOW", "k", *wrong[:2])) == [
        ["BF.DISALLOW", "k", str(wrong[1])]]


@pytest.mark.parametrize("how", ["rdb", "aof", "rewritten"])
def test_the_list_survives_a_restart(start, how):
    server = start_saving(start, how)
    r = server.client()
    fill(r)
    before = {key: digest(r, key) for key in ("k", "w", "m")}
    lists = {key: listed(r, key) for key in before}
    restart_saved(server, how)
    r = server.client()
    assert {key: digest(r, key) for key in before} == before
    assert {key: listed(r, key) for key in before} == lists


def test_the_command_and_the_server_exchange_lists(server, r, tmp_path):
    file = make(tmp_path / "f.calyx", range(1000), "-p", "50%", "-n", "1000")
    (tmp_path / "list").write_text("5000\n5001\n")
    good("allow", file, tmp_path / "list")
    good("push", file, url(server))
    assert listed(r, "seen") == [5000, 5001]
    assert r("BF.MEXISTS", "seen", 5000, 5001, 7) == [0, 0, 1]
    r("BF.ALLOW", "seen", 5002)
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    shown = good("allow", "--list", tmp_path / "g.calyx")
    assert shown.split() == [b"5000", b"5001", b"5002"]


def test_acl(r):
    crowd(r)
    r("ACL", "SETUSER", "reader", "on", ">p", "%R~k", "+bf.allow",
      "+bf.disallow", "+bf.allowed", "+auth")
    r("AUTH", "reader", "p")
    assert r("BF.ALLOWED", "k") == []
    assert r("BF.ALLOW", "k", "x").startswith("NOPERM")
    assert r("BF.DISALLOW", "k", "x").startswith("NOPERM")
    r("AUTH", "default", "")
    r("ACL", "DELUSER", "reader")
