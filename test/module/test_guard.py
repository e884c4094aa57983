"""BF.GUARD: absent, cached, or maybe; and never "absent" for want of a filter."""
import pytest
from resp import Error, Map, Simple
from servers import follow, caught_up, free_port, info, until

MAYBE, ABSENT = ["maybe", None], ["absent", None]


def counted(r):
    facts = info(r, "bf_calyx")
    return {name: int(facts["bf_guard_" + name])
            for name in ("absent", "cached", "maybe", "without_filter")}


def test_the_three_answers(r, layout):
    r("BF.MADD", "ids", "rose", "iris")
    r("SET", "cache:rose", "red")
    assert r("BF.GUARD", "ids", "rose", "cache:rose") == ["cached", b"red"]
    assert r("BF.GUARD", "ids", "iris", "cache:iris") == MAYBE
    assert r("BF.GUARD", "ids", "tulip", "cache:tulip") == ABSENT
    assert isinstance(r("BF.GUARD", "ids", "rose", "cache:rose")[0], Simple)


def test_values_come_as_they_are_and_stay_so(r):
    r("BF.ADD", "ids", "x")
    for value, encoding in ((b"12345", b"int"), (b"short", b"embstr"),
                            (b"\0\r\n" * 50, b"raw"), (b"", b"embstr")):
        r("SET", "c", value)
        assert r("BF.GUARD", "ids", "x", "c") == ["cached", value]
        assert r("OBJECT", "ENCODING", "c") == encoding


def test_resp3(r3):
    r3("BF.ADD", "ids", "x")
    assert r3("BF.GUARD", "ids", "x", "c") == MAYBE
    assert r3("BF.INFO", "ids", "MAYBE") == Map([("Guarded: maybe", 1)])


def test_without_a_filter_it_is_maybe(r):
    assert r("BF.EXISTS", "ids", "x") == 0  # the trap
    assert r("BF.GUARD", "ids", "x", "c") == MAYBE
    r("SET", "c", "v")
    assert r("BF.GUARD", "ids", "x", "c") == ["cached", b"v"]


def test_a_filter_that_is_gone_or_half_there_makes_it_maybe(r, layout):
    r("BF.INSERT", "ids", "CAPACITY", 1000, "ITEMS", "x")
    assert r("BF.GUARD", "ids", "y", "c") == ABSENT
    r("PEXPIRE", "ids", 1)
    until(lambda: r("EXISTS", "ids") == 0)
    assert r("BF.GUARD", "ids", "y", "c") == MAYBE
    r("BF.INSERT", "ids", "CAPACITY", 1000, "ITEMS", "x")
    r("BF.LOADCHUNK", "half", *r("BF.SCANDUMP", "ids", 0))
    assert isinstance(r("BF.EXISTS", "half", "x"), Error)
    assert r("BF.GUARD", "half", "x", "c") == MAYBE
    assert r("BF.GUARD", "half", "y", "c") == MAYBE


def test_an_evicted_filter_makes_it_maybe(start):
    r = start(maxmemory="30mb", maxmemory_policy="allkeys-lru").client()
    r("BF.INSERT", "ids", "CAPACITY", 10000000, "ITEMS", "x")
    assert r("BF.GUARD", "ids", "y", "c") == ABSENT
    n = 0
    while r("EXISTS", "ids"):
        r("SET", f"fill{n}", "v" * 500000)
        n += 1
        assert n < 500
    assert r("BF.GUARD", "ids", "y", "c") == MAYBE
    assert counted(r)["without_filter"] == 1


def test_answers_are_counted(start):
    server = start()
    r = server.client()
    r("BF.ADD", "ids", "x")
    r("SET", "c", "v")
    for words in (("ids", "y", "c"), ("ids", "y", "d"), ("ids", "x", "c"),
                  ("ids", "x", "d"), ("none", "x", "d"), ("none", "x", "c")):
        r("BF.GUARD", *words)
    assert counted(r) == {"absent": 2, "cached": 2, "maybe": 2,
                          "without_filter": 2}
    assert [r("BF.INFO", "ids", field) for field in
            ("ABSENT", "CACHED", "MAYBE")] == [[2], [1], [1]]
    assert len(r("BF.INFO", "ids")) == 10  # as RedisBloom's
    assert info(r, "bf_calyx")["bf_lookups"] == "0"  # they are not these


def test_errors(r):
    r("BF.ADD", "ids", "x")
    r("LPUSH", "list", "v")
    assert r("BF.GUARD", "list", "x", "c").startswith("WRONGTYPE")
    assert r("BF.GUARD", "ids", "x", "list").startswith("WRONGTYPE")
    assert r("BF.GUARD", "ids", "certainly absent", "list") == ABSENT
    for words in ((), ("ids",), ("ids", "x"), ("ids", "x", "c", "d")):
        assert "wrong number of arguments" in r("BF.GUARD", *words)


def test_scripts_and_transactions(r):
    r("BF.ADD", "ids", "x")
    r("SET", "c", "v")
    call = "return redis.call('BF.GUARD', KEYS[1], ARGV[1], KEYS[2])"
    for how in ("EVAL", "EVAL_RO"):
        assert r(how, call, 2, "ids", "c", "x") == ["cached", b"v"]
    r("MULTI")
    r("BF.GUARD", "ids", "y", "c")
    assert r("EXEC") == [ABSENT]


def test_a_replica_guards(start):
    primary, replica = start(), start()
    p, r = primary.client(), follow(replica, primary)
    p("BF.ADD", "ids", "x")
    p("SET", "c", "v")
    caught_up(p, r)
    assert r("BF.GUARD", "ids", "x", "c") == ["cached", b"v"]
    assert r("BF.GUARD", "ids", "x", "d") == MAYBE
    assert r("BF.GUARD", "ids", "y", "d") == ABSENT
    assert r("BF.GUARD", "none", "y", "d") == MAYBE


def test_acl(r):
    r("BF.ADD", "ids", "x")
    r("SET", "cache:x", "v")
    r("ACL", "SETUSER", "app", "reset", "on", ">p", "%R~ids", "%R~cache:*",
      "+bf.guard")
    r("AUTH", "app", "p")
    assert r("BF.GUARD", "ids", "x", "cache:x") == ["cached", b"v"]
    assert r("BF.GUARD", "ids", "x", "secret").startswith("NOPERM")
    assert r("BF.GUARD", "other", "x", "cache:x").startswith("NOPERM")


@pytest.mark.parametrize("how", ["rdb", "aof"])
def test_a_server_that_is_still_loading_says_maybe(start, how):
    """Also when the filter has come already: from an AOF, later items may not
    have."""
    options = {"save": "3600 1"} if how == "rdb" else {"appendonly": "yes"}
    server = start("calyx-seed", 7, loading_process_events_interval_bytes=1024,
                   aof_use_rdb_preamble="no", **options)
    r = server.client()
    r("BF.MADD", "ids", *range(100))
    r("SET", "c", "v")
    # It looks for clients once in 1024 commands of an AOF.
    r.pipeline([("SET", f"fill{i}", "v" * 50) for i in range(10000)])
    r("BF.ADD", "ids", "late")
    server.options["key_load_delay"] = 250
    try:
        r("SHUTDOWN", "SAVE" if how == "rdb" else "NOSAVE")
    except ConnectionError:
        pass
    server.process.wait(30)
    server.start(wait=False)
    answers = set()

    def loaded():
        try:
            client = server.client()
        except OSError:
            return False
        # At once: a server that loads an AOF looks at its clients only after
        # every 1024 commands.
        late, tulip, value = client.pipeline([
            ("BF.GUARD", "ids", "late", "c"),
            ("BF.GUARD", "ids", "tulip", "none"), ("GET", "c")])
        client.close()
        if "LOADING" not in str(value):
            return True
        answers.update([tuple(late), tuple(tulip)])
        return False

    until(loaded)
    assert answers == {("maybe", None)}
    r = server.client()
    assert r("BF.GUARD", "ids", "late", "c") == ["cached", b"v"]
    assert r("BF.GUARD", "ids", "tulip", "c") == ABSENT


def test_a_cluster_wants_both_keys_in_one_slot(start):
    r = start(cluster_enabled="yes", cluster_port=free_port()).client()
    assert r("CLUSTER", "ADDSLOTSRANGE", 0, 16383) == "OK"
    until(lambda: b"cluster_state:ok" in r("CLUSTER", "INFO"))
    assert r("BF.GUARD", "{a}ids", "x", "{a}cache:x") == MAYBE
    r("BF.ADD", "{a}ids", "x")
    r("SET", "{a}cache:x", "v")
    assert r("BF.GUARD", "{a}ids", "x", "{a}cache:x") == ["cached", b"v"]
    assert r("BF.GUARD", "{a}ids", "x", "{b}cache:x").startswith("CROSSSLOT")
