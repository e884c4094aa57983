"""Being a good part of a server: configuration, INFO, documentation, ACLs,
events, memory limits, and time."""
import os
import re
import subprocess

import pytest
from resp import Error, encode
from servers import (HANGS, MODULE, PREFIX, SERVER, are_equal, attempts, digest,
                     follow, free_port, info, read_page, resident, until, work_of,
                     work_to_read)

# A new command is in COMMANDS, and in each set below that it belongs to.
COMMANDS = ("reserve add madd insert exists mexists info card debug scandump "
            "loadchunk guard swap del mdel count dump load restore "
            "merge mergepart copypart similarity clear rotate allow disallow "
            "allowed rebuild").split()
MAY_TAKE_MEMORY = {"reserve", "add", "madd", "insert", "loadchunk",
                   "load", "restore", "merge", "allow"}
WRITES = MAY_TAKE_MEMORY | {"swap", "del", "mdel", "mergepart", "copypart", "clear",
                            "rotate", "disallow", "rebuild"}
SLOW = {"similarity", "dump", "mexists", "allowed"}
FAST_IN_ACLS = {"reserve", "info", "card"}  # as RedisBloom has it
SLOW_IN_ACLS = {"merge", "mergepart", "copypart", "similarity"}
NOT_TO_CACHE = {"info", "debug", "scandump", "dump"}
KEYS = {"guard": [1, 3, 2], "swap": [1, 2, 1], "merge": [1, -1, 1],
        "mergepart": [1, 2, 1], "copypart": [1, 2, 1],
        "similarity": [1, 2, 1]}


# ---- Configuration ---------------------------------------------------------

def test_defaults(start):
    server = start()
    server.kill()
    server.seed = ()
    server.start()
    r = server.client()
    wanted = {"bf-error-rate": "0.01", "bf-initial-size": "100",
              "bf-expansion-factor": "2", "calyx-layout": "native",
              "calyx-seed": "random", "calyx-max-filter-bytes": "0",
              "calyx-cf-layout": "redisbloom",
              "calyx-valkey-order": "capacity-first"}
    for name, value in wanted.items():
        assert r("CONFIG", "GET", PREFIX + name) == [
            (PREFIX + name).encode(), value.encode()]


@pytest.mark.parametrize("name, value, kept", [
    ("bf-error-rate", "0.5", b"0.25"), ("bf-error-rate", "1e-5", b"1e-05"),
    ("bf-initial-size", "12345", b"12345"),
    ("bf-expansion-factor", "0", b"0"),
    ("calyx-layout", "redisbloom", b"redisbloom"),
    ("calyx-seed", "18446744073709551615", b"18446744073709551615"),
    ("calyx-max-filter-bytes", "1mb", b"1048576"),
    ("calyx-cf-layout", "native", b"native"),
    ("calyx-valkey-order", "bitmap-first", b"bitmap-first")])
def test_a_setting_keeps_its_value(start, name, value, kept):
    r = start().client()
    assert r("CONFIG", "SET", PREFIX + name, value) == "OK"
    assert r("CONFIG", "GET", PREFIX + name)[1] == kept


RANGES = [("bf-initial-size", 1, 2**30), ("bf-expansion-factor", 0, 32768),
          ("cf-bucket-size", 1, 255), ("cf-initial-size", 4, 2**30),
          ("cf-max-iterations", 1, 65535), ("cf-expansion-factor", 0, 32768),
          ("cf-max-expansions", 1, 65536)]  # as RedisBloom 8 has them


@pytest.mark.parametrize("name, value, text", [
    ("bf-error-rate", "abc", "Invalid value for `bf-error-rate`"),
    ("bf-error-rate", "nan", "Invalid value for `bf-error-rate`"),
    ("bf-error-rate", "0",
     "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
    ("bf-error-rate", "1",
     "Value for `bf-error-rate` must be in the range (0.000000, 1.000000)"),
    *((name, value, f"Value for `{name}` must be in the range [{least}, {most}]")
      for name, least, most in RANGES for value in (least - 1, most + 1)),
    *((name, "x", f"Invalid value for `{name}`") for name, _, _ in RANGES),
    ("calyx-seed", "-1", "a whole number from 0 to 18446744073709551615"),
    ("calyx-layout", "other", "")])
def test_what_is_wrong_is_refused(r, name, value, text):
    answer = r("CONFIG", "SET", PREFIX + name, value)
    assert isinstance(answer, Error) and answer.endswith(text), answer


def test_settings_make_filters(start):
    r = start().client()
    for name, value in (("bf-initial-size", 55), ("bf-expansion-factor", 3),
                        ("bf-error-rate", 0.25)):
        r("CONFIG", "SET", PREFIX + name, value)
    r("BF.ADD", "k", "a")
    assert r("BF.INFO", "k", "CAPACITY") == [55]
    assert r("BF.INFO", "k", "EXPANSION") == [3]
    r("CONFIG", "SET", PREFIX + "bf-expansion-factor", 0)
    r("BF.ADD", "l", "a")
    assert r("BF.INFO", "l", "EXPANSION") == [None]


@pytest.mark.parametrize("arguments, wanted", [
    (("ERROR_RATE", "0.125", "INITIAL_SIZE", "321"),
     {"bf-error-rate": b"0.125", "bf-initial-size": b"321"}),
    (("bf-error-rate", "0.125", "bf-initial-size", "321",
      "bf-expansion-factor", "5"), {"bf-expansion-factor": b"5"}),
    (("CF_MAX_EXPANSIONS", "8", "calyx-layout", "redisbloom"),
     {"calyx-layout": b"redisbloom"}),
    (("calyx-seed", "7", "calyx-cf-layout", "native", "calyx-max-filter-bytes",
      "1000"), {"calyx-seed": b"7", "calyx-cf-layout": b"native",
                "calyx-max-filter-bytes": b"1000"})])
def test_load_arguments(start, arguments, wanted):
    r = start(*arguments).client()
    for name, value in wanted.items():
        assert r("CONFIG", "GET", PREFIX + name)[1] == value


OF_OTHERS = ("bloom-max-item-size", "bloom-defrag-enabled",
             "calyx-lookup-runs", "calyx-unreserved",  # ours, until the next
             "calyx-huge-pages", "calyx-prefault")     # version


def test_settings_of_other_modules_are_ignored_and_named_in_the_log(start):
    arguments = [word for name in OF_OTHERS for word in (name, "2")]
    server = start(*arguments)
    for name in OF_OTHERS:
        assert f"the setting '{name}' is ignored" in server.text()
    plain = start()
    assert "is ignored" not in plain.text()
    for name in OF_OTHERS:
        r = plain.client()
        assert r("CONFIG", "SET", PREFIX + name, "2") == "OK"
        assert r("CONFIG", "GET", PREFIX + name)[1] == b"2"
        assert f"the setting '{name}' is ignored" in plain.text()
    shown = r("CONFIG", "GET", "*")[::2]
    assert not {(PREFIX + name).encode() for name in OF_OTHERS} & set(shown)


def test_a_file_with_settings_of_other_modules_starts_the_server(start):
    server = start()
    server.kill()
    path = server.folder + "/server.conf"
    with open(path, "w") as file:
        file.write(f"loadmodule {os.path.abspath(MODULE)}\n")
        for name in OF_OTHERS:
            file.write(f"{PREFIX}{name} 2\n")
        file.write(f"{PREFIX}cf-bucket-size 100\n{PREFIX}cf-initial-size 200\n")
    def command():
        return [SERVER, path, "--port", str(server.port), "--dir",
                server.folder]
    server.command = command
    server.start()
    for name in OF_OTHERS:
        assert f"the setting '{name}' is ignored" in server.text()
    r = server.client()
    assert r("CONFIG", "REWRITE") == "OK"  # and they stay in it
    with open(path) as file:
        text = file.read()
    for name in OF_OTHERS:
        assert f'{PREFIX}{name} "2"' in text or f"{PREFIX}{name} 2" in text
    server.kill()
    with open(path, "a") as file:
        file.write(f"{PREFIX}cf-junk 2\n")
    with pytest.raises(RuntimeError):
        server.start()


@pytest.mark.parametrize("arguments, text", [
    (("cf-junk", "1"), "Unrecognized option"),
    (("ERROR_RATE",), "Invalid number of arguments passed"),
    (("CF_MAX_EXPANSIONS", "0"), "must be in the range [1, 65536]"),
    (("cf-initial-size", "4", "cf-bucket-size", "3"),
     "Value for `cf-bucket-size` must be in the range [1, 2]"),
    (("junk", "1"), "Unrecognized option"),
    (("ERROR_RATE", "2"), "must be in the range (0.000000, 1.000000)"),
    (("INITIAL_SIZE", "0"), "must be in the range [1, 1073741824]"),
    (("calyx-layout", "x"), "calyx-layout is native, redisbloom or "
     "valkey-bloom"),
    (("calyx-cf-layout", "line"), "calyx-cf-layout is redisbloom or native"),
    (("calyx-valkey-order", "1"),
     "calyx-valkey-order is capacity-first or bitmap-first")])
def test_wrong_load_arguments_are_logged(tmp_path, arguments, text):
    out = subprocess.run(
        [SERVER, "--port", str(free_port()), "--dir", str(tmp_path),
         "--loadmodule", os.path.abspath(MODULE), *arguments], capture_output=True, text=True,
        timeout=HANGS, check=False)
    assert out.returncode == 1 and text in out.stdout


# ---- What the server reports ----------------------------------------------

def test_module_list(r):
    modules = [dict(zip(m[::2], m[1::2])) for m in r("MODULE", "LIST")]
    ours, = (m for m in modules if m[b"name"] == b"bf")  # Redis 8 has others
    assert ours[b"ver"] == 80000  # as RedisBloom 8 has it
    assert info(r, "bf_calyx")["bf_version"].startswith("0.1")


def test_info_section(start):
    r = start().client()
    r("BF.MADD", "k", "a", "b", "a")
    r("BF.EXISTS", "k", "a")
    r("BF.MEXISTS", "k", "a", "zz")
    r("BF.EXISTS", "nokey", "zz")
    facts = info(r, "bf_calyx")
    assert {k: facts["bf_" + k] for k in (
        "filters", "items", "lookups", "lookups_positive", "items_added",
        "items_new", "memory_refusals", "loads_refused")} == {
        "filters": "1", "items": "2", "lookups": "4",
        "lookups_positive": "2", "items_added": "3", "items_new": "2",
        "memory_refusals": "0", "loads_refused": "0"}
    assert int(facts["bf_filter_bytes"]) == r("BF.INFO", "k", "SIZE")[0]
    r("BF.MADD", "k", *range(30000))
    facts = info(r, "bf_calyx")
    assert int(facts["bf_filter_bytes"]) == r("BF.INFO", "k", "SIZE")[0]
    assert int(facts["bf_items"]) == r("BF.CARD", "k")


@pytest.mark.parametrize("words", [
    ("BF.EXISTS", "k", "a"), ("BF.MEXISTS", "k", "a", "b"), ("BF.CARD", "k"),
    ("CF.EXISTS", "k", "a")], ids=lambda words: words[0])
def test_each_lookup_in_a_pipeline_counts_as_one_use_of_its_key(start, words):
    """In keyspace_hits, and for eviction by frequency. With these settings the
    server counts each use, unless rand() is RAND_MAX: twice in 100 uses in 1 of
    10^15 runs. Nothing changes after many lookups."""
    r = start(maxmemory_policy="allkeys-lfu", lfu_log_factor=0,
              lfu_decay_time=0).client()
    r("BF.ADD", "k", "a")
    r("SET", "s", "a")
    r("COPY", "k", "many")
    r.pipeline([("BF.EXISTS", "many", "a")] * 20000)

    def uses(key, command):
        def counts():
            return (int(info(r, "stats")["keyspace_hits"]),
                    r("OBJECT", "FREQ", key))
        before = counts()
        r.pipeline([command] * 100)
        return [now - then for now, then in zip(counts(), before)]

    (hits_of_get, _), (hits, frequency) = uses("s", ("GET", "s")), uses("k", words)
    assert hits == hits_of_get == 101  # one is of OBJECT FREQ
    assert frequency in (99, 100)


def test_every_bf_command_of_the_module_is_described_below(r):
    names = {n.decode() for n in r("COMMAND", "LIST", "FILTERBY", "MODULE", "bf")}
    assert {n for n in names if n.startswith("bf.")} == {"bf." + c for c in COMMANDS}


def test_commands_are_described(r):
    for name in COMMANDS:
        entry, = r("COMMAND", "INFO", "bf." + name)
        flags = {str(f) for f in entry[2]}
        assert entry[3:6] == KEYS.get(name, [1, 1, 1])
        assert ("write" in flags) == (name in WRITES)
        assert ("denyoom" in flags) == (name in MAY_TAKE_MEMORY)
        assert ("readonly" in flags) == (name not in WRITES)
        assert ("fast" in flags) == (name not in WRITES | SLOW)
        assert ("dont_cache" in str(entry[7])) == (name in NOT_TO_CACHE)
        spec = dict(zip(entry[8][0][::2], entry[8][0][1::2]))
        key_flags = {str(f) for f in spec[b"flags"]}
        assert bool({"RW", "OW"} & key_flags) == (name in WRITES)
        assert ("RO" in key_flags) == (name not in WRITES)
        _, doc = r("COMMAND", "DOCS", "bf." + name)
        doc = dict(zip(doc[::2], doc[1::2]))
        assert doc[b"summary"] and doc[b"complexity"] and doc[b"arguments"]
        words = [f"x{i}" for i in range(1, abs(entry[1]))]
        first, last, step = entry[3:6]
        keys = words[first - 1:last if last > 0 else None:step]
        assert r("COMMAND", "GETKEYS", "bf." + name, *words) == [
            key.encode() for key in keys]


def test_every_command_and_setting_is_documented(r):
    text = read_page("doc/COMMANDS.md")
    for name in COMMANDS:
        assert f"## BF.{name.upper()}" in text
    names = r("CONFIG", "GET", PREFIX + "bf-*", PREFIX + "calyx-*")[::2]
    assert len(names) == 8
    for name in names:
        assert f"`{name.decode().removeprefix(PREFIX)}`" in text


def test_acl(start):
    r = start().client()
    r("BF.ADD", "k", "a")
    r("ACL", "SETUSER", "reader", "on", ">p", "%R~k", "+bf.exists", "+bf.info")
    r("AUTH", "reader", "p")
    assert r("BF.EXISTS", "k", "a") == 1
    assert r("BF.ADD", "k", "b").startswith("NOPERM")
    assert r("BF.EXISTS", "other", "a").startswith("NOPERM")


def test_acl_categories_where_the_server_has_such(start):
    r = start().client()
    if b"bloom" not in r("ACL", "CAT"):
        version = info(r, "server")["redis_version"]
        assert tuple(map(int, version.split(".")[:2])) < (7, 4)
        return
    for name in COMMANDS:
        entry, = r("COMMAND", "INFO", "bf." + name)
        assert set(map(str, entry[6])) == {
            "@bloom", "@write" if name in WRITES else "@read",
            *(["@fast"] if name in FAST_IN_ACLS else []),
            *(["@slow"] if name in SLOW_IN_ACLS else [])}
    r("BF.ADD", "k", "a")
    r("ACL", "SETUSER", "reader", "on", ">p", "~*", "+@bloom", "-@write")
    r("AUTH", "reader", "p")
    assert r("BF.EXISTS", "k", "a") == 1
    assert r("BF.ADD", "k", "b").startswith("NOPERM")
    assert r("GET", "k").startswith("NOPERM")


def test_keyspace_events(server, r):
    listener = server.client()
    r("CONFIG", "SET", "notify-keyspace-events", "KEg")
    listener("PSUBSCRIBE", "__keyevent*__:bloom.*")

    def events():
        r("PUBLISH", "__keyevent@0__:bloom.end", "end")
        seen = []
        while True:
            _, _, channel, key = listener.read()
            name = channel.decode().split(":")[1]
            if name == "bloom.end":
                return seen
            seen.append((name, key.decode()))

    r("BF.RESERVE", "k", 0.01, 100)
    assert events() == [("bloom.reserve", "k")]
    r("BF.ADD", "k", "a")
    assert events() == [("bloom.add", "k")]
    r("BF.ADD", "k", "a")
    r("BF.EXISTS", "k", "a")
    assert events() == []
    r("BF.MADD", "new", "a", "b")
    assert events() == [("bloom.reserve", "new"), ("bloom.add", "new")]
    for at in (0, 1):
        r("BF.LOADCHUNK", "copy", *r("BF.SCANDUMP", "k", at))
    assert events() == [("bloom.load", "copy")]
    r("CONFIG", "SET", "notify-keyspace-events", "")
    listener.close()


def test_watch_notices_changes_and_only_those(server, r):
    other = server.client()
    r("BF.ADD", "k", "a")
    for item, aborted in (("a", False), ("b", True)):
        r("WATCH", "k")
        other("BF.ADD", "k", item)
        r("MULTI")
        r("PING")
        assert (r("EXEC") is None) == aborted
    other.close()


# ---- Memory ----------------------------------------------------------------

def test_what_does_not_fit_under_maxmemory_is_refused_before(start):
    r = start(maxmemory="50mb").client()
    answer = r("BF.RESERVE", "k", 0.01, 100000000)
    assert re.fullmatch(r"ERR Insufficient memory to create filter: it needs "
                        r"\d+ bytes, and maxmemory leaves \d+", answer), answer
    assert r("EXISTS", "k") == 0
    for i in range(3):
        assert r("BF.RESERVE", f"k{i}", 0.01, 10000000) == "OK"
    answer = r("BF.RESERVE", "k3", 0.01, 10000000)
    assert isinstance(answer, Error) and "maxmemory leaves" in answer
    answer = r("BF.LOADCHUNK", "k4", *r("BF.SCANDUMP", "k1", 0))
    assert isinstance(answer, Error) and "maxmemory leaves" in answer
    assert info(r, "bf_calyx")["bf_memory_refusals"] == "3"


def test_what_is_refused_costs_no_other_key(start):
    r = start(maxmemory="30mb", maxmemory_policy="allkeys-lru").client()
    r.pipeline([("SET", f"s{i}", "x" * 100) for i in range(20000)])
    for words in (("BF.RESERVE", "k", 0.01, 100000000),
                  ("BF.INSERT", "k", "CAPACITY", 100000000, "ITEMS", "a")):
        assert "maxmemory leaves" in r(*words)
    assert r("DBSIZE") == 20000
    assert info(r, "stats")["evicted_keys"] == "0"


def test_growth_that_does_not_fit_is_refused(start):
    """A chain: its next part needs more than there is while the server itself still
    has the room that a command needs."""
    r = start().client()
    r("BF.RESERVE", "k", 0.01, 100)
    r("CONFIG", "SET", "maxmemory",
      int(info(r, "memory")["used_memory"]) + (5 << 19))
    n, last = 0, None
    while not isinstance(last, Error):
        last = r("BF.MADD", "k", *range(n, n + 1000))
        if isinstance(last, list):
            last = last[-1]
        n += 1000
        assert n < 100000000
    assert last.startswith("ERR problem inserting into filter: it needs ")
    assert "maxmemory leaves" in last
    assert r("BF.MEXISTS", "k", *range(n - 2000, n - 1000)) == [1] * 1000


def test_a_copy_and_a_payload_that_do_not_fit_are_refused(start):
    """COPY and RESTORE are the server's commands, which only look whether the
    limit has been reached. A payload of a few bytes may promise a large filter:
    one that is partly loaded."""
    r = start(maxmemory="50mb").client()
    assert r("BF.RESERVE", "k", 0.01, 20000000) == "OK"
    assert r("BF.LOADCHUNK", "p", *r("BF.SCANDUMP", "k", 0)).startswith("ERR")
    r("CONFIG", "SET", "maxmemory", 0)
    assert r("BF.LOADCHUNK", "p", *r("BF.SCANDUMP", "k", 0)) == "OK"
    payload = r("DUMP", "p")
    assert len(payload) < 1000
    r("DEL", "p")
    r("CONFIG", "SET", "maxmemory", "50mb")
    used = int(info(r, "memory")["used_memory"])
    assert isinstance(r("COPY", "k", "l"), Error)
    assert isinstance(r("RESTORE", "p", 0, payload), Error)
    assert r("DBSIZE") == 1
    assert int(info(r, "memory")["used_memory"]) < used + 1000000
    r("CONFIG", "SET", "maxmemory", 0)
    assert r("COPY", "k", "l") == 1
    assert r("RESTORE", "p", 0, payload) == "OK"


def test_a_replica_obeys_whatever_its_own_limits_are(start):
    primary, replica = start(), start("calyx-max-filter-bytes", 1000)
    p, r = primary.client(), replica.client()
    r("REPLICAOF", "127.0.0.1", primary.port)
    until(lambda: info(r, "replication")["master_link_status"] == "up")
    p("BF.RESERVE", "k", 0.01, 1000000)
    p("COPY", "k", "l")
    p("RESTORE", "m", 0, p("DUMP", "k"))
    assert p("WAIT", 1, 250000) == 1
    assert r("DBSIZE") == 3
    assert r("BF.INFO", "l") == r("BF.INFO", "k") == r("BF.INFO", "m")


def test_a_limit_for_each_filter(start):
    r = start("calyx-max-filter-bytes", 100000).client()
    answer = r("BF.RESERVE", "k", 0.01, 1000000)
    assert re.search("needs 13.* and calyx-max-filter-bytes leaves 9", answer)
    for layout in ("native", "redisbloom"):
        r("BF.INSERT", layout, "LAYOUT", layout, "ITEMS", "x")
        answer = r("BF.MADD", layout, *range(300000))
        assert "calyx-max-filter-bytes leaves" in answer[-1], answer[-1]
        assert len(answer) > 10000
        size = r("BF.INFO", layout, "SIZE")[0]
        assert size < 110000
        asked = r("BF.MEXISTS", layout, *range(len(answer) - 1))
        assert asked == [1] * (len(answer) - 1)


def test_more_than_the_machine_has_is_refused(r):
    answer = r("BF.RESERVE", "k", 1e-9, 2**40)
    assert isinstance(answer, Error)
    answer = r("BF.RESERVE", "k", 0.01, 2**40)
    assert "this machine leaves" in answer
    answer = r("BF.RESERVE", "k", 1e-300, 1000, "LAYOUT", "redisbloom")
    assert answer == "OK" or isinstance(answer, Error)


def test_rates_that_cannot_hold_are_reported(r):
    answer = r("BF.RESERVE", "k", 1e-300, 1000)
    assert answer.startswith("ERR could not create filter: "), answer
    assert "1e-300" in answer


def test_deny_oom(start):
    r = start(maxmemory="1").client()
    assert r("BF.ADD", "k", "a").startswith("OOM")
    assert r("BF.EXISTS", "k", "a") == 0


# ---- Time ------------------------------------------------------------------

def all_that_could_take_long(r, turn):
    """Each command on a filter of 540 MB, and its work over the work of reading all of
    the filter, at about the same time."""
    def fresh(n):
        return [f"{turn}:{n}:{i}" for i in range(10000)]

    work = []

    def do(*words):
        work.append((words[0], work_of(r, *words)))

    def do_many(*words):
        """10,000 items touch as many pages. If those were not there within the second
        that BF.RESERVE waits, the system provides them now: that is not counted."""
        work.append((words[0], work_of(r, *words, where=["user"])))

    do("BF.RESERVE", "big", 0.01, 400000000)
    for n in range(3):
        do_many("BF.MADD", "big", *fresh(n))
        do_many("BF.MEXISTS", "big", *fresh(n))
    do_many("BF.INSERT", "big", "ITEMS", *fresh(3))
    at = 0
    for _ in range(4):
        do("BF.SCANDUMP", "big", at)
        at, data = r("BF.SCANDUMP", "big", at)
        do("BF.LOADCHUNK", "copy", at, data)
    do("BF.INFO", "big")
    do("BF.CARD", "big")
    whole = work_to_read(r, "big")
    do("UNLINK", "big", "copy")
    until(lambda: info(r, "bf_calyx")["bf_filters"] == "0")
    return [(name, time / whole) for name, time in work]


def test_nothing_holds_up_the_server(start):
    """Where the promise of 10 ms holds, reading that filter once takes 750 ms of
    work; so no call may take a 50th of it. The best of up to ten tries counts, as
    page faults and misses cost more when other processes want memory, too: a call
    that does too much does so every time."""
    r = start().client()
    turns = []
    while len(turns) < 10:
        turns.append(all_that_could_take_long(r, len(turns)))
        best = [min(tries, key=lambda name_share: name_share[1])
                for tries in zip(*turns)]
        if all(share < 1 / 50 for _, share in best):
            return
    raise AssertionError(best)


def waiting(server, r, key, capacity):
    """A client that waits for the answer to BF.RESERVE, which others see the
    effect of."""
    client = server.client()
    client.socket.sendall(encode("BF.RESERVE", key, 0.01, capacity))
    until(lambda: r("EXISTS", key), pause=0)
    return client


def blocked(r):
    return int(info(r, "clients")["blocked_clients"])


def test_others_are_served_while_a_client_waits_for_pages(start):
    server = start()
    r = server.client()
    waited = 0
    for turn, _ in enumerate(attempts("a client that waits for pages")):
        waits = waiting(server, r, "k", 100000000)
        waited += blocked(r)
        assert r("BF.ADD", "k", "a") == 1
        if turn % 2:
            assert waits.read() == "OK"
        waits.close()  # else without having waited to the end
        until(lambda: blocked(r) == 0)
        assert r("BF.EXISTS", "k", "a") == 1
        r("UNLINK", "k")
        if waited and turn >= 3:
            break


def test_a_small_filter_does_not_wait_for_the_pages_of_a_large_one(start):
    server = start()
    r, other = server.client(), server.client()
    for _ in attempts("a client that waits for the pages of the large filter"):
        waits = waiting(server, r, "large", 100000000)
        assert other("BF.RESERVE", "small", 0.01, 5000000) == "OK"
        waited = blocked(r)  # the large one still does
        assert waits.read() == "OK"
        waits.close()
        r("UNLINK", "large", "small")
        if waited:
            break


def test_clearing_waits_for_pages_too(start):
    r = start().client()
    empty = resident(r)
    r("BF.RESERVE", "k", 0.01, 20000000)
    size = r("BF.INFO", "k", "SIZE")[0]

    def is_ready():  # a client waits for a second at most: repeat if it was too short
        assert r("BF.CLEAR", "k") == "OK"
        until(lambda: resident(r) < empty + 1.2 * size)  # the old ones are freed
        return resident(r) > empty + 0.8 * size

    until(is_ready)


def test_commands_that_cannot_wait_for_pages_do_not(start):
    """Transactions, scripts, the replication link, and the AOF."""
    primary, replica = start(appendonly="yes"), start()
    p, r = primary.client(), follow(replica, primary)
    assert p.pipeline([("MULTI",), ("BF.RESERVE", "a", 0.01, 20000000),
                       ("BF.ADD", "a", "x"), ("EXEC",)])[-1] == ["OK", 1]
    assert p("EVAL", "return redis.call('BF.RESERVE', KEYS[1], 0.01, 20000000)",
             1, "b") in ("OK", b"OK")
    assert p("BF.RESERVE", "c", 0.01, 20000000) == "OK"
    assert p("BF.CLEAR", "a") == "OK"
    for key in "abc":
        assert p("BF.ADD", key, "y") == 1
    are_equal(p, r)
    wanted = [digest(p, key) for key in "abc"]
    primary.restart()
    p = primary.client()
    assert [digest(p, key) for key in "abc"] == wanted
    assert blocked(p) == blocked(r) == 0


def test_pages_are_prefaulted_and_released(start, monkeypatch):
    server = start()
    monkeypatch.setenv("CALYX_NO_PREFAULT", "1")
    r = start().client()
    before = resident(r)
    assert r("BF.RESERVE", "k", 0.01, 100000000) == "OK"
    assert resident(r) < before + 20000000
    r = server.client()
    before = resident(r)

    def is_ready():  # a client waits for a second at most: repeat if it was too short
        assert r("BF.RESERVE", "k", 0.01, 100000000) == "OK"
        ready = resident(r) > before + 120000000
        r("UNLINK", "k")
        until(lambda: resident(r) < before + 20000000)
        return ready

    until(is_ready)
    for turn in range(50):  # freed while they are being touched
        waits = waiting(server, r, f"k{turn}", 100000000)
        if turn % 2:
            r("BF.ADD", f"k{turn}", "a")
        r("UNLINK" if turn % 3 else "DEL", f"k{turn}")
        assert turn % 5 == 0 or waits.read() == "OK"
        waits.close()
    r("DEL", "k")
    until(lambda: info(r, "bf_calyx")["bf_filters"] == "0")
    until(lambda: resident(r) < before + 40000000)
    assert server.alive()


def test_a_huge_filter_is_made_at_once(r):
    """For less work than it is to read one that is a hundred times smaller."""
    r("BF.RESERVE", "small", 0.01, 20000000)
    small = work_to_read(r, "small")
    assert work_of(r, "BF.RESERVE", "k", 0.01, 2000000000) < small
    assert r("BF.ADD", "k", "a") == 1
    assert r("UNLINK", "k", "small") == 2


PAGES_STAY = """
#include <stddef.h>
int madvise(void *at, size_t size, int advice) {
    (void)at, (void)size, (void)advice;
    return 0;
}
"""


def test_a_filter_is_empty_where_pages_stay_as_they_were(
        start, tmp_path, monkeypatch):
    """Emulators of Linux may say that they gave pages back, and not do it."""
    source, library = tmp_path / "stay.c", tmp_path / "stay.so"
    source.write_text(PAGES_STAY)
    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source],
                   check=True)
    preload = os.environ.get("CALYX_PRELOAD")
    with open(library, "rb") as opened:  # in LD_PRELOAD a space ends a path
        name = f"/proc/{os.getpid()}/fd/{opened.fileno()}"
        monkeypatch.setenv(
            "CALYX_PRELOAD", f"{preload}:{name}" if preload else name)
        server = start()
    assert "cannot be preloaded" not in server.text()
    r = server.client()
    for turn in range(5):
        r("SET", "text", b"\xff" * 6000000)
        r("DEL", "text")
        r("BF.RESERVE", turn, 0.01, 4000000)
        assert r("BF.MEXISTS", turn, *range(200)) == [0] * 200
