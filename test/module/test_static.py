"""Filters of static kinds in a server: pushed, queried, swapped, persisted and
replicated like others; what would change them says why it cannot."""
import pytest
from command import good, lines, make, url
from resp import Error
from servers import are_equal, caught_up, dump, follow, restart_saved

KEYS = range(5000)
ABSENT = range(10**6, 10**6 + 1000)


@pytest.fixture
def ribbon(tmp_path):
    return make(tmp_path / "f.calyx", KEYS, "--kind", "ribbon")


@pytest.fixture
def pushed(server, r, ribbon):
    good("push", ribbon, url(server))
    return r


def has_all(r, key="seen"):
    return r("BF.MEXISTS", key, *KEYS) == [1] * len(KEYS)


def test_a_static_filter_is_pushed_queried_and_pulled(server, pushed, ribbon,
                                                      tmp_path):
    r = pushed
    assert has_all(r)
    assert r("BF.EXISTS", "seen", 17) == 1
    assert sum(r("BF.MEXISTS", "seen", *ABSENT)) < 40  # 10, and 10 deviations
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    assert (tmp_path / "g.calyx").read_bytes() == ribbon.read_bytes()
    found = good("check", "-c", "--server", url(server), given=lines(KEYS))
    assert found == b"5000\n"


def test_an_exact_filter_stays_exact(server, r, tmp_path):
    (tmp_path / "all").write_bytes(lines(range(20000)))
    path = make(tmp_path / "e.calyx", KEYS, "--exact", "--universe", tmp_path / "all")
    for way in (), ("--plain",):
        key = "whole" if not way else "plain"
        good("push", *way, path, url(server, key))
        found = good("check", "--server", url(server, key), given=lines(range(20000)))
        assert found == lines(KEYS)
        good("pull", "-o", tmp_path / f"{key}.calyx", url(server, key))
        assert (tmp_path / f"{key}.calyx").read_bytes() == path.read_bytes()
    assert r("BF.MEXISTS", "whole", *range(20000)) == [1] * 5000 + [0] * 15000


def test_info_says_what_it_is(pushed):
    facts = pushed("BF.INFO", "seen")
    facts = dict(zip(facts[::2], facts[1::2]))
    assert facts["Capacity"] == facts["Number of items inserted"] == len(KEYS)
    assert pushed("BF.CARD", "seen") == len(KEYS)
    assert pushed("TYPE", "seen") != "none"


def test_guard_says_absent_cached_and_maybe(pushed):
    r = pushed
    r("SET", "cache:5", "five")
    assert r("BF.GUARD", "seen", 5, "cache:5") == ["cached", b"five"]
    assert r("BF.GUARD", "seen", 6, "cache:6") == ["maybe", None]
    answers = [r("BF.GUARD", "seen", i, f"cache:{i}")[0] for i in ABSENT]
    assert answers.count("absent") > 960


@pytest.mark.parametrize("words", [
    ("BF.ADD", "seen", "x"), ("BF.MADD", "seen", "x", "y"),
    ("BF.INSERT", "seen", "ITEMS", "x"), ("BF.CLEAR", "seen"),
    ("BF.MERGE", "seen", "seen", "other"), ("BF.MERGE", "other", "seen")])
def test_what_would_change_it_says_why_it_cannot(pushed, words):
    r = pushed
    r("BF.RESERVE", "other", 0.01, 5000)
    answer = r(*words)
    if isinstance(answer, list):
        answer = answer[0]
    assert isinstance(answer, Error)
    assert "ribbon filters are built once from all their keys" in str(answer)
    assert has_all(r) and r("BF.CARD", "seen") == len(KEYS)


def test_removing_says_that_it_does_not_count(pushed):
    answer = pushed("BF.DEL", "seen", 5)
    assert isinstance(answer, Error) and "does not count" in str(answer)


def test_it_is_swapped_in_and_out(server, pushed, tmp_path):
    r = pushed
    other = make(tmp_path / "g.calyx", range(5000, 9000), "--kind", "ribbon")
    good("push", "--swap", other, url(server))
    assert r("BF.MEXISTS", "seen", 5000, 8999) == [1, 1]
    assert r("BF.INFO", "seen", "GENERATION") == [1]
    r("BF.INSERT", "staged", "ITEMS", "rose")
    assert r("BF.SWAP", "seen", "staged") == 2
    assert r("BF.EXISTS", "seen", "rose") == 1
    assert r("BF.ADD", "seen", "iris") == 1


def test_it_survives_rdb_aof_copies_and_transfer(start, ribbon):
    server = start("--appendonly", "yes", "--save", "")
    r = server.client()
    good("push", ribbon, url(server))
    r("COPY", "seen", "copy")
    r("RESTORE", "restored", 0, r("DUMP", "seen"))
    for at, piece in dump(r, "seen"):
        assert r("BF.LOADCHUNK", "chunks", at, piece) == "OK"
    for key in "copy", "restored", "chunks":
        assert has_all(r, key), key
    assert r("DEBUG", "RELOAD") == "OK"
    assert has_all(r) and has_all(r, "chunks")
    restart_saved(server, "rewritten")
    r = server.client()
    assert all(has_all(r, key) for key in ("seen", "copy", "chunks"))


def test_pieces_of_another_filter_are_not_merged_into_it(r, server, tmp_path):
    """With one key, the heads are the same, and the bits differ."""
    for key in "a", "b":
        good("build", "--kind", "ribbon", "-o", tmp_path / f"{key}.calyx",
             given=f"{key}\n".encode())
        good("push", tmp_path / f"{key}.calyx", url(server, key))
    pieces = dump(r, "b")
    for at, piece in dump(r, "a")[1:]:
        assert r("BF.LOADCHUNK", "a", at, piece) == "OK"  # its own, again
    at, piece = pieces[-1]
    answer = r("BF.LOADCHUNK", "a", at, piece)
    assert isinstance(answer, Error) and "received bad data" in str(answer)
    assert r("BF.EXISTS", "a", "a") == 1


def test_a_replica_has_the_same_bits(start, ribbon):
    primary, replica = start(), start()
    p = primary.client()
    f = follow(replica, primary)
    good("push", ribbon, url(primary))
    caught_up(p, f)
    are_equal(p, f)
    assert has_all(f)
