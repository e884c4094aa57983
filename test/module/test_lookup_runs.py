"""Runs of lookups: while the server shows the module each command, BF.EXISTS
does not open a key that was open for the lookup before. So nothing that happens
to the key may go unnoticed."""
import pytest
from resp import Error
from servers import PREFIX, follow, info, until

SETTING = PREFIX + "calyx-lookup-runs"
LOOKUPS = 500


@pytest.fixture
def r(start):
    r = start("calyx-lookup-runs", "yes").client()
    r("BF.RESERVE", "k", 0.01, 1000, "SEED", 1)
    r("BF.ADD", "k", "x")
    return r


def lookups(key="k", n=LOOKUPS):
    return [("BF.EXISTS", key, "x")] * n


def opened(r, *turns):
    """The last answers, and how many keys the server found for all."""
    def hits():
        return int(info(r, "stats")["keyspace_hits"])
    before = hits()
    answers = [r.pipeline(commands) for commands in turns]
    return answers[-1], hits() - before


def test_a_run_opens_its_key_once_a_turn(r):
    answers, keys = opened(r, lookups())
    assert answers == [1] * LOOKUPS
    assert 1 <= keys < LOOKUPS / 10


def test_each_turn_begins_anew(r):
    """As the server learns by opening that a key is used."""
    assert opened(r, lookups(n=1), lookups(n=1), lookups(n=1)) == ([1], 3)


def test_without_it_each_lookup_opens_its_key(r):
    r("CONFIG", "SET", SETTING, "no")
    assert opened(r, lookups()) == ([1] * LOOKUPS, LOOKUPS)


def test_a_key_that_expires_is_always_opened(r):
    r("EXPIRE", "k", 1000)
    assert opened(r, lookups()) == ([1] * LOOKUPS, LOOKUPS)
    r("PERSIST", "k")
    assert opened(r, lookups())[1] < LOOKUPS / 10


def test_another_command_ends_a_run(r):
    pairs = [c for pair in zip(lookups(), [("PING",)] * LOOKUPS) for c in pair]
    assert opened(r, pairs)[1] == LOOKUPS


def test_runs_in_keys_of_other_names_and_databases(r):
    r("BF.RESERVE", "other", 0.01, 1000)
    r("COPY", "k", "k", "DB", 1)
    long = "k" * 1000
    r("COPY", "k", long)
    answers = r.pipeline([*lookups(), *lookups("other"), *lookups("none"),
                          *lookups(long), *lookups(), ("SELECT", 2),
                          *lookups(), ("SELECT", 1), *lookups()])
    assert answers == [*[1] * LOOKUPS, *[0] * 2 * LOOKUPS, *[1] * 2 * LOOKUPS,
                       "OK", *[0] * LOOKUPS, "OK", *[1] * LOOKUPS]


GONE, HERE = 0, 1
LOOK = "return redis.call('BF.EXISTS', 'k', 'x')"


@pytest.mark.parametrize("commands, answer", [
    ([("DEL", "k")], GONE),
    ([("UNLINK", "k")], GONE),
    ([("RENAME", "k", "other")], GONE),
    ([("RENAME", "empty", "k")], GONE),
    ([("COPY", "empty", "k", "REPLACE")], GONE),
    ([("MOVE", "k", 1)], GONE),
    ([("SWAPDB", 0, 1)], GONE),
    ([("FLUSHDB",)], GONE),
    ([("FLUSHALL", "ASYNC")], GONE),
    ([("BF.CLEAR", "k")], GONE),
    ([("BF.SWAP", "k", "empty")], GONE),
    ([("PEXPIRE", "k", 0)], GONE),
    ([("PEXPIRE", "k", 1), ("DEBUG", "SLEEP", 0.01)], GONE),
    ([("MULTI",), ("DEL", "k"), ("EXEC",)], GONE),
    ([("MULTI",), *lookups(n=3), ("PEXPIRE", "k", 1), *lookups(n=3), ("EXEC",),
      ("DEBUG", "SLEEP", 0.01)], GONE),
    ([("EVAL", "redis.call('BF.EXISTS', 'k', 'x') redis.call('DEL', 'k') "
       "return redis.call('BF.EXISTS', 'k', 'x')", 0)], GONE),
    ([("EVAL", LOOK, 0)], HERE),
    ([("MULTI",), ("EVAL", LOOK, 0), ("DEL", "k"), ("EXEC",)], GONE),
    ([("MULTI",), ("EVAL", LOOK, 0), ("SWAPDB", 0, 1), ("EXEC",)], GONE),
    ([("MULTI",), ("EVAL", LOOK, 0), ("FLUSHALL",), ("EXEC",)], GONE),
    ([("MULTI",), ("EVAL", LOOK, 0), ("PEXPIRE", "k", 1), ("DEBUG", "SLEEP", 0.01),
      ("EXEC",)], GONE),
    ([("CONFIG", "SET", SETTING, "no"), ("DEL", "k"),
      ("CONFIG", "SET", SETTING, "yes")], GONE),
    ([("DEBUG", "RELOAD")], HERE),
    ([("BF.ADD", "k", "y")], HERE),
    ([("BF.EXISTS", "text", "x"), ("BF.EXISTS", "k")], HERE)])
def test_what_happens_to_the_key_is_noticed(r, commands, answer):
    """In one turn of the server's loop: all commands are sent at once."""
    r("SET", "text", "x")
    r("BF.RESERVE", "empty", 0.01, 1000, "SEED", 1)
    answers = r.pipeline([*lookups(n=50), *commands, *lookups(n=50)])
    assert answers[:50] == [HERE] * 50
    assert answers[-50:] == [answer] * 50


def test_a_key_that_becomes_one_of_another_type(r):
    answers = r.pipeline([*lookups(n=9), ("SET", "k", "text"), *lookups(n=9)])
    assert answers[:9] == [1] * 9
    assert all(isinstance(answer, Error) for answer in answers[10:])


def test_changes_between_lookups_are_noticed(r):
    """A new item is found at once; one that is allowed is not found any more."""
    commands, wanted = [], []
    for i in range(2000):
        commands += [("BF.EXISTS", "k", "x"), ("BF.ADD", "k", i),
                     ("BF.EXISTS", "k", i), ("BF.EXISTS", "k", i)]
        wanted += [1, None, 1, 1]
    answers = r.pipeline(commands)
    assert [a if w else None for a, w in zip(answers, wanted)] == wanted
    assert r.pipeline([*lookups(n=5), ("BF.ALLOW", "k", "x"), *lookups(n=5)]) == [
        *[1] * 5, [1], *[0] * 5]


def test_an_evicted_filter_is_not_asked(r):
    """The command that sets the limit ends the run, too: test_types.c has the
    eviction alone."""
    for i in range(100):
        r("SET", f"s{i}", "x" * 10000)
    r.pipeline([*lookups(n=50), ("CONFIG", "SET", "maxmemory-policy", "allkeys-random")])
    answers = r.pipeline([*lookups(n=50), ("CONFIG", "SET", "maxmemory", "1"),
                          *lookups(n=50)])
    assert answers[-1] == 0 and r("DBSIZE") == 0


@pytest.mark.parametrize("load", ["disabled", "swapdb", "on-empty-db"])
def test_a_replica_that_gets_all_data_anew(start, load):
    """It has lost more than the backlog holds. With swapdb it answers from the
    old data until the new are there, and then from those."""
    server = start(repl_backlog_size=16384)
    primary = server.client()
    primary.pipeline([("BF.RESERVE", "k", 0.01, 1000), ("BF.ADD", "k", "x")])
    replica = follow(start("calyx-lookup-runs", "yes", repl_diskless_load=load), server)

    def found(item):
        return {answer for answer in replica.pipeline([("BF.EXISTS", "k", item)] * 50)
                if not isinstance(answer, Error)}

    def syncs():
        return int(info(primary, "stats")["sync_full"])
    until(lambda: found("x") == {1})
    before = syncs()
    primary.pipeline([("MULTI",), ("CLIENT", "KILL", "TYPE", "replica"), ("DEL", "k"),
                      ("BF.RESERVE", "k", 0.01, 1000), ("BF.ADD", "k", "y"),
                      ("SET", "text", "x" * 100000), ("EXEC",)])
    until(lambda: found("y") == {1})
    assert found("x") == {0}
    assert syncs() == before + 1


# ---- When they are watched -------------------------------------------------

@pytest.mark.parametrize("arguments", [(), ("calyx-lookup-runs", "yes")])
def test_being_watched_changes_no_answer(start, arguments):
    """Each word of a command passes through the module: of any number, of other
    commands, in transactions and scripts, and for filters that are gone."""
    r = start(*arguments).client()
    for turn in range(6):
        r("CONFIG", "SET", SETTING, ("yes", "no", "auto")[turn % 3])
        kind = "distinct" if turn % 2 else "line"
        assert r("BF.RESERVE", "k", 0.01, 100, "KIND", kind, "SEED", turn) == "OK"
        for i in range(2000):
            r("BF.ADD", "k", i)
        assert all(r.pipeline([("bf.exists", "k", i) for i in range(2000)]))
        assert r("BF.EXISTS", "k", "") == 0
        assert r("SET", "s", "x") == "OK" and r("GET", "s") == b"x"
        assert isinstance(r("BF.EXISTS", "s", "x"), Error)
        assert isinstance(r("BF.EXISTS", "k"), Error)
        assert isinstance(r("b", "k", "x"), Error)
        assert r("EVAL", "return redis.call('BF.EXISTS', KEYS[1], 7)", 1, "k") == 1
        r("MULTI")
        r("BF.EXISTS", "k", 7)
        assert r("EXEC") == [1]
        r("UNLINK", "k")
        assert r("BF.EXISTS", "k", 7) == 0


def is_watched(r):
    return info(r, "bf_calyx")["bf_lookup_runs"] == "1"


def look_up(r, commands, *then):
    """Enough lookups to begin with; returns whether they are watched at the end."""
    last = r.pipeline([*commands, *then, ("INFO", "bf_calyx")])[-1]
    return b"lookup_runs:1" in last


def test_runs_are_watched_while_most_commands_belong_to_one(start):
    r = start().client()
    r("BF.RESERVE", "k", 0.01, 1000)
    r("BF.RESERVE", "other", 0.01, 1000)
    run = lookups(n=40000)
    in_turns = [("BF.EXISTS", key, "x") for key in ("k", "other") * 20000]
    assert not look_up(r, in_turns)
    until(lambda: look_up(r, run))
    other = ("CONFIG", "SET", PREFIX + "calyx-huge-pages", "no")
    until(lambda: look_up(r, run, other))
    until(lambda: not is_watched(r))
    until(lambda: look_up(r, run))
    until(lambda: not look_up(r, in_turns))
    r("CONFIG", "SET", SETTING, "yes")
    assert look_up(r, in_turns)
    r("CONFIG", "SET", SETTING, "no")
    assert not look_up(r, run)
    r("CONFIG", "SET", SETTING, "auto")
    assert not look_up(r, in_turns)
