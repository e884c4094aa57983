"""Filters as a whole: BF.MERGE, BF.SIMILARITY, BF.CLEAR."""
import pytest
from command import kinds_that
from resp import Error, Map
from servers import (PREFIX, SANITIZED, are_equal, caught_up, commands_seen,
                     digest, follow, free_port, info, restart_saved,
                     start_saving, until, work_of, work_to_read)


def fill(r, key, items, *how):
    how = how or ("SEED", 7, "CAPACITY", 1000)
    assert isinstance(r("BF.INSERT", key, *how, "ITEMS", *items), list)


# ---- Merging ---------------------------------------------------------------

@pytest.mark.parametrize("kind", kinds_that("can_merge"))
def test_a_merge_is_a_union(r, kind):
    how = ("SEED", 7, "CAPACITY", 1000, "KIND", kind)
    fill(r, "a", range(0, 300), *how)
    fill(r, "b", range(200, 500), *how)
    fill(r, "c", range(500, 600), *how)
    before = digest(r, "b"), digest(r, "c")
    assert r("BF.MERGE", "a", "b", "c") == "OK"
    assert r("BF.MEXISTS", "a", *range(600)) == [1] * 600
    assert (digest(r, "b"), digest(r, "c")) == before
    assert abs(r("BF.CARD", "a") - (700 if kind == "counting" else 600)) < 30
    fill(r, "all", range(600), *how)
    if kind != "counting":
        answers = [r("BF.MEXISTS", key, *range(1000, 3000))
                   for key in ("a", "all")]
        assert answers[0] == answers[1]  # the very bits


def test_the_counts_of_a_merge_are_sums(r):
    how = ("SEED", 7, "CAPACITY", 1000, "COUNTING")
    fill(r, "a", ["x"] * 2, *how)
    fill(r, "b", ["x"] * 3, *how)
    r("BF.MERGE", "a", "b")
    assert r("BF.COUNT", "a", "x") == 5
    assert r("BF.MDEL", "a", *["x"] * 6) == [1] * 5 + [0]


def test_counters_that_have_grown_are_not_taken_twice(r):
    fill(r, "a", range(1000), "SEED", 7, "CAPACITY", 100, "COUNTING")
    assert r("BF.MERGE", "same", "a") == "OK"
    answer = r("BF.MERGE", "twice", "a", "a")
    assert isinstance(answer, Error) and "source 2 does not fit" in answer
    assert r("EXISTS", "twice") == 0 and digest(r, "same") == digest(r, "a")


def test_a_dump_with_a_merge_in_its_midst_is_refused_if_it_counts(r):
    how = ("SEED", 7, "CAPACITY", 1000, "COUNTING")
    fill(r, "a", "x", *how)
    fill(r, "b", "y", *how)
    cursor = r("BF.DUMP", "a", 0)[0]
    r("BF.MERGE", "a", "b")
    assert "begin again" in r("BF.DUMP", "a", cursor)


def test_a_missing_target_is_made(r):
    fill(r, "b", range(100))
    fill(r, "c", range(100, 200))
    assert r("BF.MERGE", "new", "b") == "OK"
    assert digest(r, "new") == digest(r, "b")
    assert r("BF.MERGE", "both", "b", "c") == "OK"
    assert r("BF.MEXISTS", "both", *range(200)) == [1] * 200
    assert r("BF.MEXISTS", "b", *range(100, 200)).count(0) > 90
    assert r("BF.MERGE", "b", "b", "c") == "OK"  # itself among them
    assert r("BF.MEXISTS", "b", *range(200)) == [1] * 200


@pytest.mark.parametrize("kind", ["line", "distinct"])
def test_of_filters_that_grew_only_tables_are_merged(r, kind):
    how = ("SEED", 7, "CAPACITY", 100, "KIND", kind)
    fill(r, "a", range(0, 500), *how)
    fill(r, "b", range(500, 1000), *how)
    before = digest(r, "a")
    answer = r("BF.MERGE", "a", "b")
    if kind == "distinct":
        assert answer == "OK"
        assert r("BF.MEXISTS", "a", *range(1000)) == [1] * 1000
        return
    assert answer.startswith("ERR source 1 does not fit the target: filters "
                             "that have grown cannot be merged")
    assert digest(r, "a") == before
    assert r("BF.MERGE", "new", "a") == "OK"  # a copy
    assert digest(r, "new") == before


def test_what_does_not_fit_says_why_and_changes_nothing(r):
    fill(r, "a", range(10))
    fill(r, "b", range(20, 30))
    fill(r, "seed", range(10), "SEED", 8, "CAPACITY", 1000)
    fill(r, "kind", range(10), "SEED", 7, "CAPACITY", 1000, "KIND", "flat")
    fill(r, "size", range(10), "SEED", 7, "CAPACITY", 2000)
    fill(r, "theirs", range(10), "LAYOUT", "redisbloom")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "a", 0))
    r("SET", "string", "x")
    before = digest(r, "a")
    for sources, text in (
            (("b", "seed"), "ERR source 2 does not fit the target: their "
             "seeds differ; make both with the same seed"),
            (("b", "kind"), "ERR source 2 does not fit the target: one filter "
             "is of kind line, the other of kind flat"),
            (("b", "size"), "ERR source 2 does not fit the target: one filter "
             "has a part of"),
            (("b", "theirs"), "ERR the source 2 is of the redisbloom layout"),
            (("b", "half"), "ERR the filter is still being loaded"),
            (("b", "none"), "ERR not found: the source 2"),
            (("b", "string"), "WRONGTYPE")):
        answer = r("BF.MERGE", "a", *sources)
        assert isinstance(answer, Error) and answer.startswith(text), answer
        assert digest(r, "a") == before
    assert r("BF.MERGE", "new", "b", "seed").startswith(
        "ERR source 2 does not fit the first: ")
    assert r("EXISTS", "new") == 0
    assert r("BF.MERGE", "theirs", "a").startswith(
        "ERR the target is of the redisbloom layout")
    assert r("BF.MERGE", "half", "a").startswith("ERR the filter is still being")
    assert r("BF.MERGE", "string", "a").startswith("WRONGTYPE")
    assert "wrong number" in r("BF.MERGE", "a")


def test_a_target_that_does_not_fit_in_memory_is_refused(start):
    r = start().client()
    fill(r, "b", range(10))
    r("CONFIG", "SET", PREFIX + "calyx-max-filter-bytes", 100)
    assert "calyx-max-filter-bytes leaves" in r("BF.MERGE", "new", "b")
    assert r("EXISTS", "new") == 0


# ---- Comparing -------------------------------------------------------------

def test_similarity(r, r3):
    how = ("SEED", 7, "CAPACITY", 20000)
    fill(r, "a", range(0, 10000), *how)
    fill(r, "b", range(5000, 15000), *how)
    words, values = (lambda a: (a[::2], a[1::2]))(r("BF.SIMILARITY", "a", "b"))
    assert words == ["union", "intersection", "jaccard"]
    assert abs(values[0] - 15000) < 300 and abs(values[1] - 5000) < 300
    assert abs(float(values[2]) - 1 / 3) < 0.03
    answer = r3("BF.SIMILARITY", "a", "a")
    assert isinstance(answer, Map) and answer[2] == ("jaccard", 1.0)


def test_what_cannot_be_compared_says_why(r):
    fill(r, "a", range(10))
    fill(r, "seed", range(10), "SEED", 8, "CAPACITY", 1000)
    fill(r, "grown", range(1000), "SEED", 7, "CAPACITY", 100)
    fill(r, "theirs", range(10), "LAYOUT", "redisbloom")
    r("SET", "string", "x")
    for pair, text in ((("a", "seed"), "ERR they cannot be compared: their "
                        "seeds differ; make both with the same seed"),
                       (("grown", "grown"), "ERR they cannot be compared: the "
                        "filters have grown"),
                       (("theirs", "a"), "ERR the first is of the redisbloom"),
                       (("a", "theirs"), "ERR the second is of the redisbloom"),
                       (("a", "none"), "ERR not found: the second"),
                       (("none", "a"), "ERR not found: the first"),
                       (("string", "a"), "WRONGTYPE")):
        answer = r("BF.SIMILARITY", *pair)
        assert isinstance(answer, Error) and answer.startswith(text), answer


# ---- Clearing --------------------------------------------------------------

def test_a_cleared_filter_is_as_new(r, layout):
    seed = ("SEED", 7) if layout == "native" else ()
    r("BF.RESERVE", "k", 0.01, 100, *seed)
    r("BF.RESERVE", "new", 0.01, 100, *seed)
    before = r("BF.INFO", "k")
    r("BF.MADD", "k", *range(2000))
    r("PEXPIREAT", "k", 9999999999999)
    assert r("BF.INFO", "k", "FILTERS")[0] > 1
    assert r("BF.CLEAR", "k") == "OK"
    assert r("BF.INFO", "k") == before and r("BF.CARD", "k") == 0
    assert sum(r("BF.MEXISTS", "k", *range(2000))) == 0
    assert r("PEXPIRETIME", "k") == 9999999999999
    for key in ("k", "new"):
        r("BF.MADD", key, *range(3000))
    assert r("BF.INFO", "k") == r("BF.INFO", "new")
    assert r("BF.MEXISTS", "k", *range(9000)) == r("BF.MEXISTS", "new",
                                                   *range(9000))
    facts = info(r, "bf_calyx")
    assert facts["bf_items"] == str(r("BF.CARD", "k") + r("BF.CARD", "new"))


def test_clear_errors(r, layout):
    r("BF.ADD", "k", "a")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "k", 0))
    r("SET", "string", "x")
    assert r("BF.CLEAR", "none") == "ERR not found"
    assert r("BF.CLEAR", "string").startswith("WRONGTYPE")
    assert "still being loaded" in r("BF.CLEAR", "half")
    assert "wrong number" in r("BF.CLEAR", "k", "l")


def test_clearing_a_large_filter_takes_no_time(start):
    r = start().client()
    for layout in ("native", "redisbloom"):
        r("BF.RESERVE", "k", 0.01, 100000000, "LAYOUT", layout)
        work, whole = [], work_to_read(r, "k")
        for _ in range(4):
            r("BF.MADD", "k", *range(10000))
            work.append(work_of(r, "BF.CLEAR", "k"))
        assert min(work) < whole / 5 or SANITIZED, (work, whole)
        assert sum(r("BF.MEXISTS", "k", *range(10000))) == 0
        until(lambda: info(r, "bf_calyx")["bf_filters"] == "1")
        r("DEL", "k")


def test_a_dump_with_a_clearing_in_its_midst_is_refused(r):
    fill(r, "k", range(1000))
    head = r("BF.SCANDUMP", "k", 0)
    r("BF.CLEAR", "k")
    r("BF.LOADCHUNK", "copy", *head)
    assert isinstance(r("BF.LOADCHUNK", "copy", *r("BF.SCANDUMP", "k", head[0])),
                      Error)


# ---- All of them -----------------------------------------------------------

@pytest.mark.parametrize("how", ["rdb", "aof", "rewritten"])
def test_persistence(start, how):
    server = start_saving(start, how)
    r = server.client()
    fill(r, "a", range(300))
    fill(r, "b", range(300, 600))
    fill(r, "c", range(300))
    r("BF.MERGE", "a", "b")
    r("BF.MERGE", "new", "b", "a")
    r("BF.CLEAR", "c")
    r("BF.ADD", "c", "x")
    before = {key: digest(r, key) for key in ("a", "b", "c", "new")}
    restart_saved(server, how)
    r = server.client()
    assert {key: digest(r, key) for key in before} == before


def test_replication(start):
    primary, replica, late = start(), start("calyx-max-filter-bytes", 100), start()
    p, r = primary.client(), follow(replica, primary)
    fill(p, "a", range(300))
    fill(p, "b", range(300, 600))
    fill(p, "c", range(3000), "LAYOUT", "redisbloom")
    p("BF.MERGE", "a", "b")
    p("BF.MERGE", "new", "b", "a")
    p("BF.CLEAR", "b")
    p("BF.CLEAR", "c")
    s = follow(late, primary)
    p("BF.MERGE", "b", "a")
    are_equal(p, r, s)
    caught_up(p, r)
    assert r("BF.MERGE", "a", "b").startswith("READONLY")
    assert r("BF.CLEAR", "a").startswith("READONLY")
    assert isinstance(r("BF.SIMILARITY", "a", "b"), list)


def test_what_is_replicated(start):
    server = start(appendonly="yes")
    r = server.client()
    fill(r, "a", range(3))
    fill(r, "b", range(3), "SEED", 8)
    assert commands_seen(server, lambda: r("BF.MERGE", "c", "a")) == [
        ["BF.MERGE", "c", "a"]]
    assert commands_seen(server, lambda: r("BF.MERGE", "c", "b")) == []
    assert commands_seen(server, lambda: r("BF.SIMILARITY", "a", "c")) == []
    assert commands_seen(server, lambda: r("BF.CLEAR", "a")) == [
        ["BF.CLEAR", "a"]]


def test_acl_and_cluster(start):
    r = start(cluster_enabled="yes", cluster_port=free_port()).client()
    assert r("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == "OK"
    until(lambda: b"cluster_state:ok" in r("CLUSTER", "INFO"))
    for key in ("{a}1", "{a}2", "{b}1"):
        fill(r, key, range(3))
    assert r("BF.MERGE", "{a}1", "{a}2") == "OK"
    assert r("BF.MERGE", "{a}1", "{a}2", "{b}1").startswith("CROSSSLOT")
    assert r("BF.SIMILARITY", "{a}1", "{b}1").startswith("CROSSSLOT")
    r("ACL", "SETUSER", "reader", "on", ">p", "%R~{a}2", "~{a}1", "+bf.merge",
      "+bf.clear", "+bf.similarity")
    r("AUTH", "reader", "p")
    assert r("BF.MERGE", "{a}1", "{a}2") == "OK"
    assert r("BF.MERGE", "{a}2", "{a}1").startswith("NOPERM")
    assert r("BF.CLEAR", "{a}2").startswith("NOPERM")
    assert isinstance(r("BF.SIMILARITY", "{a}1", "{a}2"), list)
    assert r("BF.CLEAR", "{a}1") == "OK"
