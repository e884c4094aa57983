"""Filters as plain strings: calyx push --plain, check, add and pull against servers
that load no module."""
import re
import subprocess
import threading

import pytest
from command import CALYX, bad, calyx, environment, good, lines, make, url
from relay import Acting, losing
from resp import Error
from servers import Server, free_port, join_cluster, read_page, until

KEYS = range(20000)
OTHERS = range(20000, 40000)
PIECES = ("--piece", "64KiB")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server"), module=None)
    yield started
    started.stop()


@pytest.fixture
def client(server):
    client = server.client()
    client("FLUSHALL")
    return client


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "a.calyx", KEYS, "-p", "1e-6")


def has(server, numbers, *options, key="seen"):
    """Those that the filter may have."""
    status, out, err = calyx("check", "--server", url(server, key), *options,
                             given=lines(numbers))
    assert status in (0, 1), err
    return out


def fields(client, key="seen"):
    all = client("HGETALL", key)
    return dict(zip(all[::2], all[1::2]))


def pieces(client, key="seen"):
    """The keys of the strings of all generations."""
    return sorted(client("KEYS", key + ":*"))


# ---- To and fro --------------------------------------------------------------

@pytest.mark.parametrize(
    "kind", ["line", "line2", "split", "flat", "counting", "ribbon"])
def test_a_filter_comes_back_with_the_same_bytes_and_answers(server, client, tmp_path, kind):
    path = make(tmp_path / "a.calyx", KEYS, "--kind", kind, "-p", "1e-3")
    good("push", "--plain", *PIECES, path, url(server))
    assert fields(client)[b"kind"] == kind.encode()
    numbers = [*KEYS, *OTHERS]
    assert has(server, numbers) == good("check", "-f", path, given=lines(numbers))
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    assert (tmp_path / "b.calyx").read_bytes() == path.read_bytes()
    assert sum(client("STRLEN", key) - 8 for key in pieces(client)) == path.stat().st_size


def test_the_strings_are_the_bytes_of_the_file_after_the_generation(server, client, path):
    good("push", "--plain", *PIECES, path, url(server))
    now = fields(client)
    generation, count = now[b"generation"], int(now[b"pieces:" + now[b"generation"]])
    assert count > 1 and now[b"piece"] == b"%d" % (65528 // 64 * 64)
    names = [b"seen:%s:%d" % (generation, i) for i in range(count)]
    assert pieces(client) == sorted(names)
    strings = [client("GET", name) for name in names]
    assert all(string.startswith(generation) for string in strings)
    assert b"".join(string[8:] for string in strings) == path.read_bytes()


def test_a_kind_without_places_is_refused(server, client, tmp_path):
    path = make(tmp_path / "a.calyx", KEYS, "--kind", "distinct")
    bad("cannot go to plain strings", "push", "--plain", path, url(server))
    assert client("DBSIZE") == 0


def test_options_out_of_range_say_what_is_wanted(server, client, path):
    for piece in "1", "65535", "65MiB":
        bad("64KiB to 64MiB", "push", "--plain", "--piece", piece, path, url(server))
    for time in "1ns", "1e9h":
        bad("1s or more", "push", "--plain", "--expire", time, path, url(server))
    bad("go with --plain", "push", "--expire", "1h", path, url(server))
    bad("goes with neither", "push", "--plain", "--shards", 4, path, url(server))
    bad("goes with neither", "add", "--new", "--server", url(server), given=b"1\n")
    assert client("DBSIZE") == 0


def test_a_packed_file_or_another_one_is_refused(server, client, tmp_path, path):
    packed = make(tmp_path / "a.calyx.gz", range(10))
    bad("not unpacked", "push", "--plain", packed, url(server))
    damaged = bytearray(path.read_bytes())
    damaged[5000] ^= 1
    path.write_bytes(damaged)
    bad("damaged", "push", "--plain", path, url(server))
    assert client("DBSIZE") == 0


def test_a_filter_that_is_there_is_replaced_only_by_swap(server, client, tmp_path, path):
    other = make(tmp_path / "b.calyx", OTHERS, "-p", "1e-6")
    good("push", "--plain", path, url(server))
    bad("--swap", "push", "--plain", other, url(server))
    assert has(server, range(40000)) == lines(KEYS)
    good("push", "--plain", *PIECES, "--swap", other, url(server))
    assert has(server, range(40000)) == lines(OTHERS)
    assert len(pieces(client)) == int(fields(client)[
        b"pieces:" + fields(client)[b"generation"]])


def test_keys_of_other_types_are_left_alone(server, client, path):
    client("SET", "seen", "a text")
    bad("something else", "push", "--plain", "--swap", path, url(server))
    client("DEL", "seen")
    client("HSET", "seen", "colour", "red")
    bad("no filter", "check", "--server", url(server), given=b"1\n")
    assert client("GET", "seen:shards") is None
    bad("a hash that is not the hash of a plain filter", "push", "--plain", "--swap", path,
        url(server))
    assert client("HGETALL", "seen") == [b"colour", b"red"]


# ---- Additions ---------------------------------------------------------------

def test_added_keys_are_those_that_the_command_adds_to_the_file(
        server, client, tmp_path, path):
    good("push", "--plain", *PIECES, path, url(server))
    numbers = range(15000, 25000)
    good("add", "--server", url(server), given=lines(numbers))
    assert has(server, range(40000)) == lines(range(25000))
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    good("verify", tmp_path / "b.calyx")
    good("add", path, given=lines(numbers))
    said = good("info", tmp_path / "b.calyx")
    assert said.replace(b"b.calyx", b"a.calyx") == good("info", path)
    good("convert", "--to", "raw", "-o", tmp_path / "a.raw", path)
    good("convert", "--to", "raw", "-o", tmp_path / "b.raw", tmp_path / "b.calyx")
    assert (tmp_path / "a.raw").read_bytes() == (tmp_path / "b.raw").read_bytes()


def test_the_old_bits_say_which_keys_are_new(server, client, tmp_path, path):
    good("push", "--plain", path, url(server))
    before = int(fields(client)[b"items"])
    good("add", "--server", url(server), "--json-stats", tmp_path / "stats",
         given=lines([*range(19000, 21000), *range(20500, 21000)]))
    assert '"fresh": 1000' in (tmp_path / "stats").read_text()
    assert int(fields(client)[b"items"]) == before + 1000


def test_16_writers_lose_nothing(server, client, tmp_path):
    empty = make(tmp_path / "a.calyx", [], "-n", 32000, "-p", "1e-6")
    good("push", "--plain", *PIECES, empty, url(server))
    writers = []
    for i in range(16):
        writers.append(subprocess.Popen(
            [CALYX, "add", "-j", "2", "--server", url(server)],
            stdin=subprocess.PIPE, env=environment()))
        writers[-1].stdin.write(lines(range(i, 32000, 16)))
    for writer in writers:
        writer.stdin.close()
    assert [writer.wait() for writer in writers] == [0] * 16
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    whole = make(tmp_path / "c.calyx", range(32000), "-n", 32000, "-p", "1e-6")
    for name in "bc":
        good("convert", "--to", "raw", "-o", tmp_path / name, tmp_path / f"{name}.calyx")
    assert (tmp_path / "b").read_bytes() == (tmp_path / "c").read_bytes()
    assert whole.exists()


def test_a_grown_filter_is_added_to_in_its_newest_part(server, client, tmp_path):
    path = make(tmp_path / "a.calyx", KEYS, "-n", 1000, "--growth", 2, "-p", "1e-4",
                "--kind", "line", "--seed", 1)
    good("push", "--plain", *PIECES, path, url(server))
    assert int(fields(client)[b"parts"]) > 1
    items = int(fields(client)[b"items"])
    good("add", "--server", url(server), given=lines(range(19000, 22000)))
    assert has(server, range(22000)) == lines(range(22000))
    now = int(fields(client)[b"items"])
    assert items + 1990 <= now <= items + 2000
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    good("verify", tmp_path / "b.calyx")
    given = lines(range(40000))
    assert good("check", "-f", tmp_path / "b.calyx", given=given) == has(server, range(40000))
    assert f"{now:,} of".replace(",", " ").encode() in good("info", tmp_path / "b.calyx")


def test_what_cannot_be_added_to_says_why(server, client, tmp_path, path):
    for kind in "line2", "flat", "ribbon":
        other = make(tmp_path / f"{kind}.calyx", range(100), "--kind", kind)
        good("push", "--plain", other, url(server, kind))
        bad("all bits in one line", "add", "--server", url(server, kind), given=b"1\n")
    good("allow", path, given=b"7\n")
    good("push", "--plain", path, url(server))
    assert has(server, range(10)) == lines(n for n in range(10) if n != 7)
    bad("allow list", "add", "--server", url(server), given=b"1\n")
    strict = make(tmp_path / "s.calyx", range(100), "--strict", "-n", 100)
    good("push", "--plain", strict, url(server, "strict"))
    bad("let no more in", "add", "--server", url(server, "strict"), given=b"1\n")


def test_a_secret_key_and_options_for_keys_come_from_the_filter(
        server, client, tmp_path):
    (tmp_path / "key").write_bytes(bytes(range(16)))
    secret = ("--key-file", tmp_path / "key")
    good("build", "-o", tmp_path / "a.calyx", "--hash", "siphash", "-p", "1e-6", "-i",
         "-t", ":", "-k", "2", *secret, given=b"1:Rose\n2:iris\n")
    good("push", "--plain", tmp_path / "a.calyx", *secret, url(server))
    bad("--key-file", "check", "--server", url(server), given=b"x:rose\n")
    good("add", "--server", url(server), *secret, given=b"3:LILY\n")
    given = b"x:rose\nx:IRIS\nx:lily\nx:daisy\n"
    assert good("check", "--server", url(server), *secret, given=given) == given[:21]
    good("pull", "-o", tmp_path / "b.calyx", *secret, url(server))
    assert good("check", "-f", tmp_path / "b.calyx", *secret, given=given) == given[:21]


# ---- Never a false "no" ------------------------------------------------------

def refuses(server, text):
    """A lookup, an addition and a pull end with an error."""
    bad(text, "check", "--server", url(server), given=lines(KEYS))
    bad(text, "add", "-j", 1, "--server", url(server), given=lines(KEYS))
    bad(text, "pull", "-o", "/dev/null", "--force", url(server))


def test_a_piece_that_was_evicted_is_an_error(server, client, path):
    good("push", "--plain", *PIECES, path, url(server))
    for name in pieces(client):
        held = client("DUMP", name)
        client("DEL", name)
        refuses(server, "missing")
        assert client("EXISTS", name) == 0  # nothing is left of the addition
        assert client("RESTORE", name, 0, held) == "OK"
        assert has(server, KEYS) == lines(KEYS)


def test_a_piece_that_came_to_be_again_by_an_addition_is_an_error(server, client, path):
    """As after an addition whose client died before it looked at the guard."""
    good("push", "--plain", *PIECES, path, url(server))
    name = pieces(client)[1]
    size = client("STRLEN", name)
    client("DEL", name)
    client("BITFIELD", name, "SET", "u1", 8 * size - 1, 1)
    assert client("STRLEN", name) == size
    bad("missing", "check", "--server", url(server), given=lines(KEYS))
    assert client("EXISTS", name) == 1
    client("SET", name, "short")
    bad("missing", "check", "--server", url(server), given=lines(KEYS))
    client("DEL", name)
    client("LPUSH", name, "a list")
    bad("something else", "check", "--server", url(server), given=lines(KEYS))


def test_a_server_that_was_flushed_is_an_error(server, client, path):
    good("push", "--plain", path, url(server))
    client("DEL", "seen")
    bad("no filter", "check", "--server", url(server), given=b"1\n")
    good("push", "--plain", path, url(server, "other"))
    client("FLUSHALL")
    bad("no filter", "check", "--server", url(server, "other"), given=b"1\n")


def test_a_hash_that_is_not_complete_is_an_error(server, client, path):
    good("push", "--plain", path, url(server))
    whole = fields(client)
    for field in b"calyx", b"generation", b"bytes", b"piece":
        client("HDEL", "seen", field)
        bad("", "check", "--server", url(server), given=b"1\n")
        for value in "0", "-1", "1e30", "x", "99":
            client("HSET", "seen", field, value)
            bad("", "check", "--server", url(server), given=b"1\n")
        client("HSET", "seen", field, whole[field])
    assert has(server, KEYS) == lines(KEYS)


def test_damage_in_the_server_is_found_as_long_as_no_key_was_added(server, client, path):
    good("push", "--plain", path, url(server))
    name, = pieces(client)
    byte = client("GETRANGE", name, 9000, 9000)
    client("SETRANGE", name, 9000, bytes([byte[0] ^ 1]))
    bad("damaged", "pull", "-o", "/dev/null", "--force", url(server))
    client("SETRANGE", name, 9000, byte)
    client("SETRANGE", name, 200, "\x7f")  # in the header
    bad("damaged", "check", "--server", url(server), given=b"1\n")


# ---- Swaps -------------------------------------------------------------------

def test_lookups_beside_swaps_see_the_old_or_the_new_filter(server, client, tmp_path):
    """A writer swaps two filters; the readers' batches are of one, never of both."""
    shared, numbers = range(10000), range(12000)
    answers = {}
    for name, more in ("a", range(10000, 11000)), ("b", range(11000, 12000)):
        make(tmp_path / name, [*shared, *more], "-p", "1e-9")
        answers[lines([*shared, *more])] = 0
    good("push", "--plain", *PIECES, tmp_path / "a", url(server))
    done, wrong = threading.Event(), []

    def ask():
        while not done.is_set():
            answer = good("check", "-j", 1, "--server", url(server), given=lines(numbers))
            if answer in answers:
                answers[answer] += 1
            else:
                wrong.append(len(answer))

    readers = [threading.Thread(target=ask) for _ in range(2)]
    for reader in readers:
        reader.start()
    swaps = 0
    try:
        while swaps < 20 or not all(answers.values()):
            good("push", "--plain", *PIECES, "--swap", tmp_path / "ba"[swaps % 2], url(server))
            swaps += 1
            if swaps > 20:  # each is seen, however fast the machine is
                seen = sum(answers.values())
                until(lambda: wrong or sum(answers.values()) > seen + 2)
            assert not wrong
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert not wrong
    assert len(pieces(client)) == int(fields(client)[
        b"pieces:" + fields(client)[b"generation"]])


def test_pushes_at_the_same_time_leave_one_filter(server, client, tmp_path, path):
    pushes = [subprocess.Popen([CALYX, "push", "--plain", "--swap", *PIECES, path,
                                url(server)], env=environment()) for _ in range(6)]
    assert [push.wait() for push in pushes] == [0] * 6
    good("push", "--plain", "--swap", *PIECES, path, url(server))
    now = fields(client)
    generations = [field for field in now if field.startswith(b"pieces:")]
    assert generations == [b"pieces:" + now[b"generation"]]
    assert len(pieces(client)) == int(now[generations[0]])


def test_keys_added_beside_swaps_of_the_same_filter_are_in_the_old_or_the_new(
        server, client, tmp_path, path):
    """An addition that was acknowledged after a swap is in the new filter."""
    good("push", "--plain", path, url(server))
    adder = subprocess.Popen([CALYX, "add", "-j", "1", "--server", url(server)],
                             stdin=subprocess.PIPE, env=environment())
    adder.stdin.write(lines(range(20000, 21000)))
    adder.stdin.flush()
    until(lambda: int(fields(client)[b"items"]) >= 20900)
    good("push", "--plain", "--swap", path, url(server))
    adder.stdin.write(lines(range(21000, 22000)))
    adder.stdin.close()
    assert adder.wait() == 0
    assert has(server, range(21000, 22000)) == lines(range(21000, 22000))
    assert len(pieces(client)) == 1


def test_keys_added_to_strings_that_a_swap_has_left_are_added_to_the_new_ones(
        server, client, path):
    """Between the swap and the removal of the old strings, where this push ends."""
    client("ACL", "SETUSER", "keeper", "reset", "on", ">keeper", "~*", "+@all", "-unlink")
    good("push", "--plain", path, url(server))
    adder = subprocess.Popen([CALYX, "add", "-j", "1", "--server", url(server)],
                             stdin=subprocess.PIPE, env=environment())
    adder.stdin.write(lines(range(20000, 21000)))
    adder.stdin.flush()
    until(lambda: int(fields(client)[b"items"]) >= 20900)
    bad("NOPERM", "push", "--plain", "--swap", path, url(server, who="keeper:keeper@"))
    assert len(pieces(client)) == 2
    adder.stdin.write(lines(range(21000, 22000)))
    adder.stdin.close()
    assert adder.wait() == 0
    assert has(server, range(20000, 22000)) == lines(range(21000, 22000))
    good("pull", "-o", "/dev/null", "--force", url(server))
    good("push", "--plain", "--swap", path, url(server))
    assert len(pieces(client)) == 1


def test_a_pull_of_a_filter_that_is_replaced_at_its_end_is_of_the_new_one(
        server, client, tmp_path, path):
    good("push", "--plain", path, url(server))
    good("add", "--server", url(server), given=lines(OTHERS))
    relay = Acting(server.port, b"changed:", lambda: good(
        "push", "--plain", "--swap", path, url(server)) and None)
    good("pull", "-o", tmp_path / "b.calyx", f"redis://127.0.0.1:{relay.port}/seen")
    assert relay.acted and (tmp_path / "b.calyx").read_bytes() == path.read_bytes()
    relay.close()


def test_an_addition_after_a_swap_leaves_no_field_of_the_old_filter(server, client, path):
    good("push", "--plain", path, url(server))
    relay = Acting(server.port, b"changed:", lambda: good(
        "push", "--plain", "--swap", path, url(server)) and None)
    good("add", "--server", f"redis://127.0.0.1:{relay.port}/seen", given=lines(OTHERS))
    generation = fields(client)[b"generation"]
    assert relay.acted and {f for f in fields(client) if b":" in f} == {
        b"changed:" + generation, b"pieces:" + generation}
    relay.close()


def test_a_swap_to_other_options_for_keys_is_an_error_for_who_is_asking(
        server, client, tmp_path, path):
    good("push", "--plain", path, url(server))
    reader = subprocess.Popen([CALYX, "check", "-j", "1", "--server", url(server)],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=environment())
    reader.stdin.write(b"1\n")
    reader.stdin.flush()
    assert reader.stdout.readline() == b"1\n"
    make(tmp_path / "b.calyx", KEYS, "-i")
    good("push", "--plain", "--swap", tmp_path / "b.calyx", url(server))
    _, err = reader.communicate(b"2\n")
    assert reader.returncode == 2 and b"other options" in err


# ---- Expiry, rights, memory --------------------------------------------------

def ttls(client):
    return [client("TTL", key) for key in client("KEYS", "*")]


def test_all_of_a_filter_expires_and_a_swap_keeps_that(server, client, path):
    good("push", "--plain", *PIECES, path, url(server))
    assert set(ttls(client)) == {-1}
    good("push", "--plain", *PIECES, "--swap", "--expire", "1h", path, url(server))
    assert all(0 < ttl <= 3600 for ttl in ttls(client))
    good("push", "--plain", *PIECES, "--swap", path, url(server))
    assert all(0 < ttl <= 3600 for ttl in ttls(client)) and len(ttls(client)) > 2
    good("push", "--plain", *PIECES, "--swap", "--expire", "2h", path, url(server))
    assert all(3600 < ttl <= 7200 for ttl in ttls(client))


def test_the_documented_rights_suffice(server, client, tmp_path, path):
    rights = re.search("```acl\n(.*?)```", read_page("doc/SERVERS.md"), re.S)[1]
    for line in rights.splitlines():
        name, *words = line.split()[2:]
        client("ACL", "SETUSER", name, "reset", "on", ">" + name, *words)

    def by(name):
        return url(server, who=f"{name}:{name}@")

    good("push", "--plain", *PIECES, path, by("pusher"))
    good("add", "--server", by("adder"), given=lines(OTHERS))
    assert good("check", "--server", by("reader"), given=lines(OTHERS)) == lines(OTHERS)
    good("pull", "-o", tmp_path / "b.calyx", by("reader"))
    good("push", "--plain", "--swap", tmp_path / "b.calyx", by("pusher"))
    bad("NOPERM", "add", "--server", by("reader"), given=b"1\n")
    bad("NOPERM", "push", "--plain", "--swap", path, by("adder"))


def test_what_a_failed_push_leaves_expires(server, client, path):
    client("ACL", "SETUSER", "weak", "reset", "on", ">weak", "~*", "+@all", "-strlen")
    bad("NOPERM", "push", "--plain", *PIECES, path, url(server, who="weak:weak@"))
    bad("no filter", "check", "--server", url(server), given=b"1\n")
    client("DEL", "seen")
    left = ttls(client)
    assert left and sum(ttl == -1 for ttl in left) <= 1
    good("push", "--plain", path, url(server))
    assert has(server, KEYS) == lines(KEYS)


@pytest.mark.parametrize("how", [(), ("--swap",)])
def test_a_server_that_loses_all_before_it_is_done_is_an_error(start, path, how):
    server = start(module=None)
    if how:
        good("push", "--plain", path, url(server))
    relay = losing(server, b"HSET")
    bad("the server has lost a piece", "push", "--plain", *how, path,
        f"redis://127.0.0.1:{relay.port}/seen")
    bad("pieces of the filter are missing", "check", "--server", url(server),
        given=b"1\n")
    relay.close()


def test_a_server_without_memory_is_an_error(server, client, path):
    client("CONFIG", "SET", "maxmemory", 1)
    try:
        bad("OOM", "push", "--plain", path, url(server))
    finally:
        client("CONFIG", "SET", "maxmemory", 0)


# ---- Clusters ----------------------------------------------------------------

@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    started = []
    try:
        for _ in range(3):
            started.append(Server(tmp_path_factory.mktemp("node"), module=None,
                                  cluster_enabled="yes", cluster_port=free_port()))
        join_cluster(started)
        yield started
    finally:
        for node in started:
            node.stop()


@pytest.fixture
def strings(nodes):
    """How many pieces each node has."""
    for node in nodes:
        node.client()("FLUSHALL")
    return lambda: [sum(b":" in key for key in node.client()("KEYS", "*")) for node in nodes]


def test_pieces_are_spread_over_a_cluster(nodes, strings, tmp_path):
    path = make(tmp_path / "a.calyx", KEYS, "-n", 3_000_000)
    good("push", "--plain", *PIECES, path, url(nodes[0]))
    held = strings()
    assert all(held) and sum(held) == (path.stat().st_size + 65471) // 65472
    for node in nodes:
        assert has(node, KEYS) == lines(KEYS)
    good("add", "--server", url(nodes[1]), given=lines(OTHERS))
    good("pull", "-o", tmp_path / "b.calyx", url(nodes[2]))
    assert good("check", "-f", tmp_path / "b.calyx", given=lines(OTHERS)) == lines(OTHERS)
    good("push", "--plain", *PIECES, "--swap", path, url(nodes[2]))
    assert sum(strings()) == sum(held)


def test_a_hash_tag_keeps_the_pieces_together(nodes, strings, path):
    good("push", "--plain", *PIECES, path, url(nodes[0], "%7Bids%7D"))
    assert sorted(strings())[:2] == [0, 0]
    assert has(nodes[1], KEYS, key="%7Bids%7D") == lines(KEYS)


def test_a_slot_that_moves_is_followed(nodes, strings, path):
    good("push", "--plain", *PIECES, path, url(nodes[0]))
    source = next(node for node in nodes if any(b":" in k for k in node.client()("KEYS", "*")))
    target = next(node for node in nodes if node is not source)
    s, t = source.client(), target.client()
    key = next(k for k in s("KEYS", "*") if b":" in k)
    slot = s("CLUSTER", "KEYSLOT", key)
    ids = [c("CLUSTER", "MYID").decode() for c in (s, t)]
    t("CLUSTER", "SETSLOT", slot, "IMPORTING", ids[0])
    s("CLUSTER", "SETSLOT", slot, "MIGRATING", ids[1])
    keys = s("CLUSTER", "GETKEYSINSLOT", slot, 100)
    for name in keys:
        assert s("MIGRATE", "127.0.0.1", target.port, name, 0, 60000) == "OK"
    assert has(source, KEYS) == lines(KEYS)
    good("add", "--server", url(source), given=lines(OTHERS))
    for node in target, source, *nodes:
        node.client()("CLUSTER", "SETSLOT", slot, "NODE", ids[1])
    assert has(source, [*KEYS, *OTHERS]) == lines([*KEYS, *OTHERS])


# ---- A module's filter -------------------------------------------------------

def test_add_finds_a_filter_of_the_module(start, tmp_path, path):
    server = start()
    good("push", path, url(server))
    good("add", "--server", url(server), "--json-stats", tmp_path / "stats",
         given=lines(range(19000, 22000)))
    assert '"fresh": 2000' in (tmp_path / "stats").read_text()
    assert has(server, range(40000)) == lines(range(22000))
    bad("no filter", "add", "--server", url(server, "none"), given=b"1\n")
    assert not isinstance(server.client()("BF.CARD", "seen"), Error)
    good("build", "--shards", 4, "-p", "1e-6", "-o", tmp_path / "s.calyx", given=lines(KEYS))
    good("push", "--shards", 4, tmp_path / "s.calyx", url(server, "ids"))
    good("add", "--server", url(server, "ids"), given=lines(OTHERS))
    assert has(server, OTHERS, key="ids") == lines(OTHERS)


def test_a_plain_filter_moves_to_a_module_and_back(server, client, start, tmp_path, path):
    modern = start()
    good("push", "--plain", path, url(server))
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    good("push", tmp_path / "b.calyx", url(modern))
    assert modern.client()("BF.ADD", "seen", "tulip") == 1
    good("pull", "-o", tmp_path / "c.calyx", url(modern))
    good("push", "--plain", "--swap", tmp_path / "c.calyx", url(server))
    assert has(server, KEYS) == lines(KEYS)
    assert good("check", "--server", url(server), given=b"tulip\n") == b"tulip\n"
    good("push", "--plain", tmp_path / "c.calyx", url(modern, "strings"))
    assert has(modern, KEYS, key="strings") == lines(KEYS)
