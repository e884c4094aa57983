"""calyx push --as and pull --as: filters of RedisBloom and valkey-bloom from a list,
and as they are, in servers that have no Calyx; and in those that do."""
import gzip
import os

import pytest
import test_valkey
from command import bad, calyx, good, lines, url
from redisbloom_data import Filter, dump_payload
from relay import Relay, Strange, losing
from servers import PREFIX, dump, until
from valkey_bloom_model import Bloom

TYPES = {"redisbloom": b"MBbloom--", "valkey-bloom": b"bloomfltr"}
MISSING = b"-ERR not found\r\n"


class Module:
    """A server with one of the modules, as far as the command needs it: what
    Calyx adds is an error."""

    def __init__(self, name):
        self.name, self.keys, self.seen = name, {}, []
        self.bitmap_first = False

    def make(self, rate, capacity):
        rate, capacity = float(rate), int(capacity)
        return (Filter(capacity, rate) if self.name == "redisbloom" else
                Bloom(rate, capacity))

    def has(self, filter, item):
        return filter.has(item) if self.name == "redisbloom" else filter.exists(item)

    def answer(self, words, _=None):
        command, key, *rest = words
        self.seen.append(command)
        filter = self.keys.get(key)
        if command == b"EXISTS":
            return b":%d\r\n" % (key in self.keys)
        if command == b"UNLINK":
            return b":%d\r\n" % (self.keys.pop(key, None) is not None)
        if command == b"TYPE":
            return b"+%s\r\n" % TYPES[self.name]
        if command == b"BF.RESERVE" and len(rest) == 2:
            self.keys[key] = self.make(*rest)
            return b"+OK\r\n"
        if command == b"BF.INSERT" and rest[:2] == [b"NOCREATE", b"ITEMS"]:
            if filter is None:
                return MISSING
            answers = [filter.add(item) for item in rest[2:]]
            return b"*%d\r\n" % len(answers) + b"".join(
                b":%d\r\n" % answer for answer in answers)
        if command == b"BF.CARD":
            count = filter.items if self.name == "redisbloom" else (
                filter.info()["Number of items inserted"])
            return b":%d\r\n" % count
        if command == b"RENAME" or command == b"RENAMENX":
            if command == b"RENAMENX" and rest[0] in self.keys:
                return b":0\r\n"
            self.keys[rest[0]] = self.keys.pop(key)
            return b"+OK\r\n" if command == b"RENAME" else b":1\r\n"
        if command == b"BF.SCANDUMP" and self.name == "redisbloom":
            chunks = list(filter.chunks(1000))
            done = [at for at, _ in chunks]
            number = done.index(int(rest[0])) + 1 if rest[0] != b"0" else 0
            at, data = chunks[number] if number < len(chunks) else (0, b"")
            return b"*2\r\n:%d\r\n$%d\r\n%s\r\n" % (at, len(data), data)
        if command == b"DUMP":
            payload = dump_payload(filter.rdb_fields(self.bitmap_first), encoding=1,
                                   name=b"bloomfltr")
            return b"$%d\r\n%s\r\n" % (len(payload), payload)
        if command == b"BF.LOAD" and self.name == "valkey-bloom":
            self.keys[key] = Bloom.from_load_payload(rest[0])
            return b"+OK\r\n"
        return b"-ERR unknown command\r\n"


@pytest.fixture(params=TYPES)
def module(request):
    return Module(request.param)


@pytest.fixture
def words(tmp_path):
    """Lines, with keys in their second fields."""
    path = tmp_path / "list"
    path.write_bytes(b"".join(b"%d,key%d\n" % (i, i) for i in range(3000)))
    return path


def test_a_server_without_calyx_gets_a_filter_of_its_own(module, words):
    with Strange(module.answer) as server:
        good("push", "--as", module.name, "-p", "0.1%", words, url(server))
    assert list(module.keys) == [b"seen"]
    filter = module.keys[b"seen"]
    assert all(module.has(filter, line) for line in words.read_bytes().split())
    assert sum(module.has(filter, b"absent%d" % i) for i in range(3000)) < 15
    assert set(module.seen) == {b"EXISTS", b"UNLINK", b"BF.RESERVE", b"TYPE",
                                b"BF.INSERT", b"BF.CARD", b"RENAMENX"}


def test_a_filter_replaces_the_old_one_when_it_is_complete(module, words):
    """Until then only the staged key is written to."""
    module.keys[b"seen"] = "the old one"

    def answer(asked, port):
        if asked[0] == b"BF.INSERT":
            assert asked[1] == b"{seen}:staged"
            assert module.keys[b"seen"] == "the old one"
        return module.answer(asked)

    with Strange(answer) as server:
        bad("--swap puts the filter in its place", "push", "--as", module.name,
            words, url(server))
        assert b"BF.RESERVE" not in module.seen
        good("push", "--as", module.name, "--swap", words, url(server))
    assert list(module.keys) == [b"seen"]
    assert module.has(module.keys[b"seen"], b"7,key7")


def test_the_key_in_a_line_is_chosen_as_in_build(module, words):
    with Strange(module.answer) as server:
        good("push", "--as", module.name, "-t", ",", "-k", "2", words, url(server))
    filter = module.keys[b"seen"]
    assert all(module.has(filter, b"key%d" % i) for i in range(3000))


def test_a_list_from_a_pipe_needs_its_number_of_keys(module):
    with Strange(module.answer) as server:
        bad("give the number of its keys with -n", "push", "--as", module.name,
            "-", url(server), given=lines(range(9)))
        good("push", "--as", module.name, "-n", 9, "-", url(server),
             given=lines(range(9)))
    assert module.has(module.keys[b"seen"], b"8")


def test_what_the_server_loses_is_an_error(module, words):
    """It restarts without the staged key, or from an older file."""
    def forgets(asked, port):
        if asked[0] == b"BF.INSERT":
            module.keys.pop(asked[1], None)
        return module.answer(asked)

    with Strange(forgets) as server:
        bad("not found", "push", "--as", module.name, words, url(server))

    def is_old(asked, port):
        return b":2000\r\n" if asked[0] == b"BF.CARD" else module.answer(asked)

    with Strange(is_old) as server:
        bad("the server has lost items: it has 2000", "push", "--as",
            module.name, words, url(server))
    assert b"seen" not in module.keys


def test_a_full_filter_is_an_error(module, words):
    def full(asked, port):
        if asked[0] != b"BF.INSERT":
            return module.answer(asked)
        return b"*2\r\n:1\r\n-ERR non scaling filter is full\r\n"

    with Strange(full) as server:
        bad("non scaling filter is full", "push", "--as", module.name, words,
            url(server))


def test_the_other_module_is_named(module, words):
    other, = set(TYPES) - {module.name}
    with Strange(module.answer) as server:
        bad(f"the server makes filters of the type {TYPES[module.name].decode()}; "
            f"--as {other}: expected {TYPES[other].decode()}", "push", "--as", other,
            words, url(server))
    assert module.keys == {}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("layout", ["native", "redisbloom", "valkey-bloom"])
def test_a_server_with_calyx_makes_the_layout(server, r, words, name, layout):
    r("CONFIG", "SET", PREFIX + "calyx-layout", layout)
    status, _, err = calyx("push", "--as", name, words, url(server))
    if layout in ("native", name):
        assert status == 0
        assert r("TYPE", "seen").encode() == TYPES[name]
        assert r("BF.MEXISTS", "seen", *words.read_bytes().split()) == [1] * 3000
    else:
        assert status == 2 and "the server makes filters of the type" in err
        assert r("DBSIZE") == 0
    r("CONFIG", "SET", PREFIX + "calyx-layout", "native")


def test_a_broken_connection_loses_nothing(server, r, tmp_path):
    path = tmp_path / "list"
    path.write_bytes(lines(range(200000)))
    relay = Relay(server.port, 1 << 20)
    good("push", "--as", "redisbloom", path, url(relay))
    assert relay.broken > 1
    relay.close()
    until(lambda: r("EXISTS", "seen"))
    assert r("BF.MEXISTS", "seen", *range(0, 200000, 10)) == [1] * 20000


def test_what_does_not_go_together(server, words, tmp_path):
    bad("expected redisbloom, valkey-bloom, redisson, or a layout in one line, found 'guava'",
        "push", "--as", "guava", words, url(server))
    bad("--shards and --as", "push", "--as", "redisbloom", "--shards", 3, words,
        url(server))
    filter = tmp_path / "f.calyx"
    good("build", "-o", filter, words)
    bad("which --as and --from-command take", "push", "-n", 5, filter, url(server))
    bad("not a list of lines but a calyx filter", "push", "--as",
        "redisbloom", filter, url(server))


# ---- Filters as they are -----------------------------------------------------

@pytest.mark.parametrize("compressed", ["yes", "no"])
@pytest.mark.parametrize("name", TYPES)
def test_a_filter_is_pulled_and_pushed_as_it_is(server, r, tmp_path, name,
                                                compressed):
    """The server compresses strings of DUMP payloads."""
    r("CONFIG", "SET", "rdbcompression", compressed)
    file = tmp_path / "dump"
    for capacity, n in ((100, 0), (100, 5), (50, 3000)):
        r("FLUSHALL")
        r("BF.RESERVE", "seen", 0.01, capacity, "LAYOUT", name)
        if n:
            r("BF.MADD", "seen", *range(n))
        good("pull", "--as", name, "--force", "-o", file, url(server))
        good("push", "--as", name, file, url(server, "copy"))
        assert dump(r, "copy") == dump(r, "seen")
        assert r("DBSIZE") == 2
    r("CONFIG", "SET", "rdbcompression", "yes")


def test_what_is_pulled_is_pushed_to_servers_without_calyx(module, server, r,
                                                           tmp_path):
    file = tmp_path / "dump"
    module.keys[b"seen"] = module.make(0.01, 20)
    for i in range(200):
        module.keys[b"seen"].add(b"%d" % i)
    for module.bitmap_first in (False, True):
        with Strange(module.answer) as strange:
            good("pull", "--as", module.name, "--force", "-o", file, url(strange))
        r("FLUSHALL")
        good("push", "--as", module.name, file, url(server))
        assert r("BF.MEXISTS", "seen", *range(200)) == [1] * 200
        assert b":%d\r\n" % r("BF.CARD", "seen") == module.answer(
            [b"BF.CARD", b"seen"])
    if module.name == "valkey-bloom":
        with Strange(module.answer) as strange:
            good("push", "--as", module.name, "--swap", file, url(strange, "copy"))
        assert (module.keys[b"copy"].load_payload() ==
                module.keys[b"seen"].load_payload())
    else:
        assert dump(r, "seen") == list(module.keys[b"seen"].chunks())


def test_dumps_that_are_damaged_or_of_others_are_refused(server, r, tmp_path):
    file, bad_file = tmp_path / "dump", tmp_path / "bad"
    r("BF.INSERT", "seen", "LAYOUT", "redisbloom", "ITEMS", *range(100))
    good("pull", "--as", "redisbloom", "-o", file, url(server))
    bad("the key is of the type MBbloom--; --as valkey-bloom: expected bloomfltr",
        "pull", "--as", "valkey-bloom", "-o", bad_file, url(server))
    bad("there is no such key", "pull", "--as", "redisbloom", "-o", bad_file,
        url(server, "missing"))
    assert os.listdir(tmp_path) == ["dump"]
    bad("it is a dump of redisbloom, and --as says valkey-bloom", "push", "--as",
        "valkey-bloom", file, url(server, "copy"))
    whole = file.read_bytes()
    for data, text in ((whole[:-1], "ends too early"), (whole[:40], "too early"),
                       (whole[:-1] + b"x", "does not match its checksum"),
                       (whole[:200] + b"x" + whole[201:], "")):
        bad_file.write_bytes(data)
        bad(text, "push", "--as", "redisbloom", bad_file, url(server, "copy"))
        assert r("EXISTS", "copy") == 0
    bad_file.write_bytes(gzip.compress(whole))
    good("push", "--as", "redisbloom", bad_file, url(server, "copy"))
    assert dump(r, "copy") == dump(r, "seen")
    bad("a key of this name already", "push", "--as", "redisbloom", file,
        url(server, "copy"))
    good("push", "--as", "redisbloom", "--swap", file, url(server, "copy"))


def test_what_is_pulled_of_valkey_bloom_is_the_payload_of_its_aof(server, r,
                                                                  tmp_path):
    file = tmp_path / "dump"
    for payload in test_valkey.LOAD.values():
        assert r("BF.LOAD", "seen", payload) == "OK"
        good("pull", "--as", "valkey-bloom", "--force", "-o", file, url(server))
        assert payload in file.read_bytes()
        r("DEL", "seen")


def test_a_server_that_has_the_old_filter_again_is_an_error(start, tmp_path):
    """It saved before the new one was staged, and restarts at RENAME."""
    server, words = start(), tmp_path / "words"
    words.write_text("rose\n")
    good("push", "--as", "redisbloom", words, url(server))
    server.client()("SAVE")
    words.write_text("iris\n")
    relay = losing(server, b"RENAME")
    bad("the answer to RENAME was lost", "push", "--as", "redisbloom", "--swap", words,
        f"redis://127.0.0.1:{relay.port}/seen")
    until(lambda: server.alive() and server.answers())
    assert server.client()("BF.MEXISTS", "seen", "rose", "iris") == [1, 0]
    relay.close()
