"""Bits that clients have set by SETBIT in a server without Calyx: Redisson's
filters, and filters that a layout in one line describes."""
import json
import os
import re
import subprocess

import pytest
from command import bad, calyx, good, url
from redisson_model import Highway, RBloomFilter
from relay import Strange
from servers import SERVER, Server, read_page, until

LINE = "murmur3-32 seeds 41..47 mod 5000 msb"


class PlainServer(Server):
    """Without any module."""
    more = ()

    def command(self):
        return [SERVER, "--port", str(self.port), "--bind", "127.0.0.1",
                "--dir", self.folder, "--save", "", *self.more]


class ClusterNode(PlainServer):
    """One that has all slots: commands over keys of two slots are errors."""
    more = "--cluster-enabled", "yes"


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    server = PlainServer(tmp_path_factory.mktemp("plain"))
    yield server
    server.stop()


@pytest.fixture
def r(plain):
    client = plain.client()
    client("FLUSHALL")
    yield client
    client.close()


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words"
    path.write_bytes(b"".join(item + b"\n" for item in ITEMS))
    return path


# Of every length that takes another path of the hash; the members are every third.
ITEMS = [("k%d-ü" % i).encode() + b"x" * (i % 70) for i in range(300)] + [
    b"y%d" % i for i in range(3000)]
MEMBERS = ITEMS[0:300:3]


@pytest.fixture
def redisson(r):
    filter = RBloomFilter(r, "seen", 100, 0.03)
    for item in MEMBERS:
        filter.add(item)
    return filter


def expected(filter):
    bits = filter.bits()
    return [item for item in ITEMS if filter.contains(bits, item)]


def test_the_model_has_the_published_vectors_of_highwayhash():
    key = [int.from_bytes(bytes(range(i, i + 8)), "little") for i in (0, 8, 16, 24)]
    assert Highway(key).of(b"") == (0x0FED268F9D8FFEC7, 0x33565E767F093E6F)
    assert Highway(key).of(bytes(range(15))) == (0x142237A52BC4AF54, 0xE0796C0B6E26BCD7)
    assert Highway(key).of(bytes(range(31))) == (0x06E7B465E8A57C29, 0x52415E3A07F5D446)
    assert Highway(key).of(bytes(range(64))) == (0x98BB1F7198D4C4F2, 0xE0BC0571DE918FC8)


def test_check_answers_what_redisson_does(plain, redisson, words):
    yes = good("check", "--server", url(plain), "--layout", "redisson", words)
    assert yes.splitlines() == expected(redisson)
    assert 100 < len(expected(redisson)) < 300


def test_a_filter_of_redisson_goes_to_a_file_and_back(plain, r, redisson, words, tmp_path):
    file, owned = tmp_path / "f", tmp_path / "owned"
    good("pull", "--as", "redisson", "-o", file, url(plain))
    assert good("check", "-f", file, words).splitlines() == expected(redisson)
    facts, = json.loads(good("info", "--json", file))
    assert facts["layout"] == "redisson" and facts["rate_promised"] == 0.03
    assert (facts["bits"], facts["probes"], facts["capacity"]) == (
        redisson.size, redisson.probes, 100)
    good("convert", "--to", "redisson", "-o", owned, file)
    head, bits = owned.read_bytes().split(b"\n\n", 1)
    assert head.split(b"\n")[:4] == [b"size", b"%d" % redisson.size, b"hashIterations",
                                     b"%d" % redisson.probes]
    assert bits.rstrip(b"\0") == redisson.bits().rstrip(b"\0")
    again = tmp_path / "again"
    good("convert", "--from", "redisson", "-o", again, owned)
    assert again.read_bytes() == file.read_bytes()

    bad("there is a key of this name already", "push", "--as", "redisson", file, url(plain))
    good("push", "--as", "redisson", file, url(plain, "copy"))
    assert r("GET", "copy").rstrip(b"\0") == redisson.bits().rstrip(b"\0")
    assert r("HGETALL", "{copy}:config") == r("HGETALL", "{seen}:config")
    assert sorted(r("KEYS", "*")) == [b"copy", b"seen", b"{copy}:config", b"{seen}:config"]


def test_the_file_of_two_commands_of_redis_cli_is_what_pull_gets(plain, redisson, tmp_path):
    """As doc/OTHERS.md has them."""
    recipe = re.search(r"^    (\(redis-cli HGETALL .*)$", read_page("doc/OTHERS.md"), re.M)[1]
    recipe = recipe.replace("redis-cli", f"redis-cli -p {plain.port}").replace(
        "{ids}", "{seen}").replace("GET ids", "GET seen")
    subprocess.run(recipe, shell=True, check=True, cwd=tmp_path)
    file, pulled, owned = tmp_path / "f", tmp_path / "pulled", tmp_path / "ids.redisson"
    whole = len(owned.read_bytes().split(b"\n\n")[0]) + 2 + (redisson.size + 7) // 8
    if owned.stat().st_size < whole:  # the last bits are 0: always so, or never
        bad(f"'truncate -s {whole} FILE' adds them", "convert", "--from", "redisson", "-o",
            file, owned)
        os.truncate(owned, whole)
    good("convert", "--from", "redisson", "-o", file, owned)
    good("pull", "--as", "redisson", "-o", pulled, url(plain))
    assert file.read_bytes() == pulled.read_bytes()


def test_build_makes_what_redisson_makes(plain, r, redisson, tmp_path):
    file, members = tmp_path / "f", tmp_path / "members"
    members.write_bytes(b"\n".join(MEMBERS) + b"\n")
    good("build", "--layout", "redisson", "-n", 100, "-p", 0.03, "-o", file, members)
    bits, config = r("GET", "seen"), r("HGETALL", "{seen}:config")
    good("push", "--swap", "--as", "redisson", file, url(plain))
    assert r("HGETALL", "{seen}:config") == config
    assert r("GET", "seen").rstrip(b"\0") == bits.rstrip(b"\0")
    assert sorted(r("KEYS", "*")) == [b"seen", b"{seen}:config"]


def test_the_config_is_named_as_redisson_names_it(plain, r, words):
    filter = RBloomFilter(r, "a{tag}b", 100, 0.03)
    filter.add(b"rose")
    assert filter.config == "a{tag}b:config"
    yes = good("check", "--server", url(plain, "a{tag}b"), "--layout", "redisson",
               given=b"rose\n")
    assert yes == b"rose\n"


def test_a_filter_without_keys_is_empty_and_one_without_a_config_is_none(plain, r, words,
                                                                         tmp_path):
    RBloomFilter(r, "new", 100, 0.03)
    status, out, err = calyx("check", "--server", url(plain, "new"), "--layout", "redisson",
                             words)
    made = tmp_path / "made"
    good("build", "--layout", "redisson", "-n", 10, "-o", made, words)
    bad("there is a hash {new}:config already; --swap", "push", "--as", "redisson", made,
        url(plain, "new"))
    assert r("KEYS", "*") == [b"{new}:config"]
    assert status == 1 and out == b"" and "the filter has no bits" in err
    r("SET", "alone", "x")
    bad("there is no hash {alone}:config", "check", "--server", url(plain, "alone"),
        "--layout", "redisson", words)


@pytest.mark.parametrize("field, value, error", [
    ("size", "0", "from 1 to 4294967294, not '0'"),
    ("size", "-5", "not '-5'"),
    ("size", "4294967295", "not '4294967295'"),
    ("size", "99999999999999999999", "not '99999999999999999999'"),
    ("size", "7e2", "not '7e2'"),
    ("size", "8", "bytes, and its layout 1"),
    ("hashIterations", "0", "hashIterations of its config must be a whole number"),
    ("hashIterations", "4097", "from 1 to 4096, not '4097'"),
])
def test_a_config_that_lies_is_an_error(plain, r, redisson, words, tmp_path, field, value,
                                        error):
    r("HSET", redisson.config, field, value)
    for words_ in (("check", "--server", url(plain), "--layout", "redisson", words),
                   ("pull", "--as", "redisson", "-o", tmp_path / "no", url(plain))):
        bad(error, *words_)
    assert not (tmp_path / "no").exists()


def test_bits_that_the_config_does_not_have_are_an_error(plain, r, redisson, words):
    r("SETBIT", "seen", 727, 1)
    r("HSET", redisson.config, "size", 723)
    bad("is set, and the layout has 723 bits", "check", "--server", url(plain),
        "--layout", "redisson", words)


def test_a_config_without_its_fields_is_an_error(plain, r, redisson, words):
    r("HDEL", redisson.config, "hashIterations")
    bad("the field hashIterations of its config must be a whole number", "check",
        "--server", url(plain), "--layout", "redisson", words)


def test_fields_that_lie_about_other_things_do_no_harm(plain, r, redisson, words):
    r("HSET", redisson.config, "expectedInsertions", "-1", "falseProbability", "nan",
      "later", "x")
    yes = good("check", "--server", url(plain), "--layout", "redisson", words)
    assert yes.splitlines() == expected(redisson)


def test_a_string_is_read_by_its_line_and_may_be_shorter_than_its_bits(plain, r, tmp_path):
    file = tmp_path / "f"
    good("build", "--layout", LINE, "-o", file, given=b"rose\ntulip\n")
    bits = good("convert", "--to", LINE, file)
    assert len(bits) == 625
    r("SET", "bits", bits.rstrip(b"\0"))
    for words_ in ("--server", url(plain, "bits"), "--layout", LINE), ("-f", file):
        assert good("check", *words_, given=b"lily\nrose\ntulip\n") == b"rose\ntulip\n"
    pulled = tmp_path / "pulled"
    good("pull", "--as", LINE, "-o", pulled, url(plain, "bits"))
    assert pulled.read_bytes() == file.read_bytes()
    good("push", "--swap", "--as", LINE, pulled, url(plain, "bits"))
    assert r("GET", "bits") == bits

    r("SETBIT", "bits", 5000, 1)
    bad("the string has 626 bytes, and its layout 625", "check", "--server",
        url(plain, "bits"), "--layout", LINE, given=b"rose\n")


def test_what_is_no_string_or_not_there_is_an_error(plain, r, words, tmp_path):
    r("RPUSH", "list", "x")
    for key, error in ("list", "is of the type list; --as"), ("none", "there is no such key"):
        bad(error, "check", "--server", url(plain, key), "--layout", LINE, words)
        bad(error, "pull", "--as", LINE, "-o", tmp_path / "no", url(plain, key))
    r("SET", "text", "x")
    bad("bits alone do not say their layout", "pull", "--as", "bits", "-o", tmp_path / "no",
        url(plain, "text"))
    r("SET", "{x}:config", "text")
    bad("the key {x}:config holds something else than a filter", "pull", "--as", "redisson", "-o", tmp_path / "no", url(plain, "x"))
    bad("expected redisbloom, valkey-bloom, redisson, or a layout in one line, found 'guava'",
        "pull", "--as", "guava", "-o", tmp_path / "no", url(plain, "x"))
    bad("--as redisson: expected a filter", "push", "--as", "redisson", words, url(plain, "x"))
    bad("--server and --layout are for bits in a string", "check", "--server",
        url(plain, "x"), "--layout", "guava", words)
    bad("--server does not go with -f", "check", "--server", url(plain, "x"), "-f", "f",
        "--layout", LINE, words)


def test_both_keys_of_redisson_are_in_one_slot_of_a_cluster(words, tmp_path):
    file, pulled = tmp_path / "f", tmp_path / "pulled"
    good("build", "--layout", "redisson", "-n", 4000, "-o", file, words)
    node = ClusterNode(tmp_path)
    try:
        client = node.client()
        client("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        until(lambda: b"cluster_state:ok" in client("CLUSTER", "INFO"))
        for key in "seen", "a{tag}b":
            good("push", "--as", "redisson", file, url(node, key))
            good("push", "--swap", "--as", "redisson", file, url(node, key))
            good("pull", "--as", "redisson", "-o", pulled, "--force", url(node, key))
            assert pulled.read_bytes() == file.read_bytes()
        assert sorted(client("KEYS", "*")) == [
            b"a{tag}b", b"a{tag}b:config", b"seen", b"{seen}:config"]
        client.close()
    finally:
        node.stop()


def test_a_large_string_comes_in_pieces(plain, r, tmp_path):
    line = "murmur3-64 double 3 mod 20000003"
    file = tmp_path / "f"
    members = b"".join(b"%d\n" % i for i in range(20000))
    good("build", "--layout", line, "-o", file, given=members)
    good("push", "--as", line, file, url(plain, "large"))
    assert r("STRLEN", "large") == 2500001
    assert r("KEYS", "*") == [b"large"]
    pulled = tmp_path / "pulled"
    good("pull", "--as", line, "-o", pulled, url(plain, "large"))
    assert pulled.read_bytes() == file.read_bytes()


class Forgetful:
    """A server that loses what is under a staged key after some pieces."""

    def __init__(self):
        self.keys = {}

    def answer(self, words, _=None):
        command, key, *rest = words
        if command == b"EXISTS":
            return b":%d\r\n" % (key in self.keys)
        if command == b"UNLINK":
            return b":%d\r\n" % (self.keys.pop(key, None) is not None)
        if command == b"SETRANGE":
            at = int(rest[0])
            old = b"" if at >= 1 << 20 else self.keys.get(key, b"")
            self.keys[key] = old.ljust(at, b"\0") + rest[1]
            return b":%d\r\n" % len(self.keys[key])
        if command == b"GETRANGE":
            piece = self.keys[key][int(rest[0]):int(rest[1]) + 1]
            return b"$%d\r\n%s\r\n" % (len(piece), piece)
        raise AssertionError(words)


def test_a_server_that_lost_some_pieces_is_noticed(tmp_path):
    line, file = "murmur3-64 seeds 0..6 mod 16000000", tmp_path / "f"
    good("build", "--layout", line, "-o", file,
         given=b"".join(b"%d\n" % i for i in range(1000)))
    with Strange(Forgetful().answer) as server:
        bad("the server has lost what was written; push again", "push", "--as", line, file,
            url(server))
