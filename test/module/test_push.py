"""calyx push, pull and check --server, against real servers: what arrives is
what was sent, whatever breaks on the way; and no password is seen."""
import os
import signal
import socket
import subprocess
import threading

import pytest
import xxhash
from command import CALYX, bad, calyx, environment, good, lines, make, url
from relay import Relay, Strange
from resp import Error
from servers import HANGS, SANITIZED, Server, free_port, info, read_page, until

MIB = 1 << 20


@pytest.fixture
def words(tmp_path):
    return make(tmp_path / "f.calyx")


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """20 chunks, of which nobody would take one for another."""
    return make(tmp_path_factory.mktemp("large") / "large.calyx", range(50000),
                "-n", "17M", "--seed", "1")


# ---- There and back ---------------------------------------------------------

@pytest.mark.parametrize("options", [
    (), ("--kind", "counting"), ("--kind", "split"), ("--kind", "flat"),
    ("-p", "1e-6", "--kind", "line2"), ("--growth", "2", "-n", "50"),
    ("--comment", "of today", "--seed", "7"), ("-n", "4M",), ("-i", "-k", "1")])
def test_what_is_pulled_is_what_was_pushed(server, tmp_path, options):
    file = make(tmp_path / "f.calyx", range(1000), *options)
    good("push", file, url(server))
    assert server.client()("BF.MEXISTS", "seen", *range(1000)) == [1] * 1000
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    assert (tmp_path / "g.calyx").read_bytes() == file.read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["f.calyx", "g.calyx"]


@pytest.mark.skipif(SANITIZED, reason="other tests push filters of 20 chunks")
def test_a_large_filter(start, tmp_path):
    """Of 60 MB; in long runs 300."""
    server = start()
    file = make(tmp_path / "f.calyx", range(1000), "-n",
                "250M" if os.environ.get("CALYX_LONG") else "50M")
    assert file.stat().st_size > 60e6
    good("push", file, url(server))
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    assert subprocess.run(["cmp", file, tmp_path / "g.calyx"]).returncode == 0


def test_a_filter_of_the_server_comes_into_a_file(server, r, tmp_path):
    r("BF.INSERT", "a/b c", "CAPACITY", 100, "ITEMS", *range(5000))
    good("pull", "-o", tmp_path / "f.calyx", url(server, "0/a%2Fb%20c"))
    found = good("check", "-c", "-f", tmp_path / "f.calyx",
                 given=lines(range(5000)))
    assert found == b"5000\n"
    piped = good("pull", url(server, "0/a/b c"))
    (tmp_path / "list").write_bytes(lines(range(5000)))
    found = good("check", "-c", "-f", "-", tmp_path / "list", given=piped)
    assert found == b"5000\n"


def test_push_and_pull_work_by_a_unix_socket(start, words, tmp_path):
    path = tmp_path / "s"
    server = start(unixsocket=str(path))
    server.client()("CONFIG", "SET", "requirepass", "p")
    good("push", words, f"redis+unix://:p@{path}?key=seen&db=3")
    r = server.client()
    r("AUTH", "p")
    r("SELECT", 3)
    assert r("BF.EXISTS", "seen", 1) == 1
    good("pull", "-o", tmp_path / "g.calyx", f"redis+unix://{path}?db=3&key=seen",
         CALYX_REDIS_PASSWORD="p")


# ---- Keys that are taken ----------------------------------------------------

def test_push_replaces_nothing_without_swap(server, r, tmp_path, words):
    other = make(tmp_path / "other.calyx", range(1000, 2000))
    good("push", words, url(server))
    good("push", words, url(server))  # it is there already
    bad("there is a filter under seen already; --swap", "push", other,
        url(server))
    r("EXPIRE", "seen", 1000)
    good("push", "--swap", other, url(server))
    assert r("BF.MEXISTS", "seen", *range(1000, 2000)) == [1] * 1000
    assert r("BF.INFO", "seen", "GENERATION") == [1]
    assert 900 < r("TTL", "seen") <= 1000
    assert r("KEYS", "*") == [b"seen"]
    good("push", "--swap", words, url(server, "new{tag}"))
    assert sorted(r("KEYS", "*")) == [b"new{tag}", b"seen"]


def test_what_is_staged_is_in_the_slot_of_the_key(start, words):
    server = start()
    for key, staged in (("a", "{a}:staged"), ("{a}b", "{a}b:staged"),
                        ("a{}b", "{a{}b}:staged")):
        good("push", "--swap", words, url(server, key))
        r = server.client()
        r("ACL", "SETUSER", "default", "-bf.swap")
        bad("NOPERM", "push", "--swap", words, url(server, key))
        assert r("EXISTS", staged) == 1
        r("ACL", "SETUSER", "default", "+bf.swap")
        good("push", "--swap", words, url(server, key))
        assert r("EXISTS", staged) == 0


def test_errors_say_what_to_do(start, server, r, tmp_path, words):
    r("SET", "string", 1)
    bad("the key string holds something else", "push", words,
        url(server, "string"))
    bad("the key string holds something else", "pull", url(server, "string"))
    bad("there is no such key", "pull", url(server, "none"))
    bad("Connection refused", "push", words, f"redis://127.0.0.1:{free_port()}/k")
    bad("it names no key", "push", words, f"redis://127.0.0.1:{server.port}/0/")
    bad("not a server URL, and CALYX_REDIS_URL is not set", "push", words, "seen")
    bad("the port is no number", "push", words, "redis://127.0.0.1:x/k")
    bad("after ? stand key=KEY", "push", words, "redis+unix:///s?name=k")
    bad("DB index is out of range", "push", words, url(server, "99/k"))
    small = start(maxmemory="4mb")
    big = make(tmp_path / "big.calyx", range(10), "-n", "10M")
    bad("maxmemory leaves", "push", big, url(small))
    limited = start("calyx-max-filter-bytes", 1000000)
    bad("calyx-max-filter-bytes leaves", "push", big, url(limited))
    (tmp_path / "list").write_bytes(lines(range(10)))
    bad("not a calyx filter", "push", tmp_path / "list", url(server))
    damaged = bytearray(big.read_bytes())
    damaged[-MIB] ^= 1
    (tmp_path / "damaged.calyx").write_bytes(damaged)
    bad("damaged", "push", tmp_path / "damaged.calyx", url(server, "k"))
    assert r("EXISTS", "k") == 0
    (tmp_path / "g").write_bytes(b"")
    bad("--force replaces it", "pull", "-o", tmp_path / "g", url(server))


def test_a_server_without_the_module(tmp_path, words):
    class Plain(Server):
        def command(self):
            words = super().command()
            at = words.index("--loadmodule")
            return words[:at] + words[at + 2 + len(self.seed):]

    (tmp_path / "server").mkdir()
    server = Plain(tmp_path / "server")
    try:
        for verb in (("push", words, url(server)), ("pull", url(server))):
            bad("load the calyx module there", *verb)
    finally:
        server.stop()


def test_equal_bits_are_not_yet_the_same_filter(server, tmp_path):
    """Empty filters have the same bits, whatever their seeds."""
    one = make(tmp_path / "1.calyx", (), "-n", "1000", "--seed", "1")
    two = make(tmp_path / "2.calyx", (), "-n", "1000", "--seed", "2")
    good("push", one, url(server))
    good("push", one, url(server))  # it is there already
    bad("there is a filter under seen already", "push", two, url(server))
    good("push", one, url(server, "{seen}:staged"))
    good("push", "--swap", two, url(server))
    good("pull", "-o", tmp_path / "3.calyx", url(server))
    assert (tmp_path / "3.calyx").read_bytes() == two.read_bytes()


def test_a_wrong_number_of_shards_is_refused(server, tmp_path):
    """Most keys would be looked for in the wrong shard, and not found."""
    good("build", "--shards", "4", "-o", tmp_path / "f.calyx",
         given=lines(range(100)))
    good("push", "--shards", "4", tmp_path / "f.calyx", url(server))
    for shards in ((), ("--shards", "4")):
        assert good("check", "-c", "--server", url(server), *shards,
                    given=lines(range(100))) == b"100\n"
    for shards in "1", "3", "5":
        bad(f"it has 4 shards, not {shards}", "check", "-c", "--server",
            url(server), "--shards", shards, given=lines(range(100)))


# ---- Servers that make no sense -----------------------------------------------

ZERO = b"$16\r\n" + 16 * b"0" + b"\r\n"


def begun(words, *_):
    return b"*3\r\n:0\r\n:1\r\n" + ZERO if words[2] == b"BEGIN" else b":7\r\n"


def with_a_sum_of_nothing(words, *_):
    return b"*3\r\n:0\r\n:1\r\n" + ZERO.replace(b"00\r", b"01\r") \
        if words[0] == b"BF.RESTORE" else b":1\r\n"


def never_swapped(words, *_):
    if words[0] == b"BF.SWAP":
        return None
    if words[0] == b"BF.RESTORE" and words[2] == b"CHUNK":
        return b":1\r\n"
    return begun(words) if words[0] == b"BF.RESTORE" else b":1\r\n"


def moved_to_itself(words, port):
    return b"-MOVED 1 127.0.0.1:%d\r\n" % port


@pytest.mark.parametrize("answer, text", [
    (begun, "is still not loaded"), (with_a_sum_of_nothing, "still not loaded"),
    (never_swapped, "still not loaded"), (moved_to_itself, "MOVED"),
    (lambda *_: b"*3\r\n:-1\r\n:1\r\n" + ZERO, "not understood"),
    (lambda *_: b"*3\r\n:9223372036854775807\r\n:1\r\n" + ZERO,
     "not understood"),
    (lambda *_: b"*3\r\n:0\r\n:9223372036854775807\r\n" + ZERO,
     "not understood"),
    (lambda *_: b"*1\r\n*-1\r\n", "not understood"),
    (lambda *_: b"$-1\r\n", "not understood"),
    (lambda *_: b"-ERR \x1b[2J\x07\xc2\x9b1m\r\n",
     "ERR \\x1b[2J\\x07\ufffd\\x9b1m"),
    (lambda *_: b"hello\r\n", "closed again and again"),
    (lambda *_: None, "closed again and again"),
])
def test_push_to_a_strange_server_ends(words, answer, text):
    with Strange(answer, type=b"+calyxbloom\r\n") as server:
        bad(text, "push", "--swap", "--wait", "0.5s", words, url(server))


@pytest.mark.parametrize("answer, text", [
    (lambda *_: b"-ERR begin again with cursor 0\r\n", "refuses to begin"),
    (lambda *_: b"*3\r\n$1\r\n1\r\n" + ZERO + b"$-1\r\n", "not understood"),
    (lambda *_: b"*3\r\n$1\r\n1\r\n" + ZERO + b"$1\r\nx\r\n", "damaged"),
    (lambda *_: b":1\r\n", "not understood"),
    (moved_to_itself, "MOVED"),
])
def test_pull_from_a_strange_server_ends(tmp_path, answer, text):
    with Strange(answer, type=b"+calyxbloom\r\n") as server:
        bad(text, "pull", "--wait", "0.5s", "-o", tmp_path / "f", url(server))


@pytest.mark.parametrize("host, port", [
    (b"127.0.0.1", lambda port: 2 ** 32 + port),
    (b"127.0.0.1\0", lambda port: port)])
def test_an_impossible_node_is_not_contacted(words, host, port):
    """A port is not cut to what fits, nor a name at a zero byte: another server
    would get the password, and what is sent."""
    asked = []
    with Strange(lambda words, _: asked.append(words)) as other:
        slots = b"*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n$%d\r\n%s\r\n:%d\r\n" % (
            len(host), host, port(other.port))
        with Strange(lambda *_: b"-ERR it was me\r\n", slots) as server:
            bad("it was me", "pull", "--wait", "0.5s", url(server))
    assert not asked


# ---- Passwords --------------------------------------------------------------

SECRET = "s3cr%3At%40x"  # s3cr:t@x


@pytest.fixture
def guarded(start):
    server = start()
    r = server.client()
    r("CONFIG", "SET", "requirepass", "s3cr:t@x")
    r("ACL", "SETUSER", "loader", "on", ">pw", "~*", "+@all")
    return server


def test_push_needs_the_right_password_and_user(guarded, words):
    good("push", words, url(guarded, "a", f":{SECRET}@"))
    good("push", words, url(guarded, "b", "loader:pw@"))
    good("push", words, url(guarded, "c"), CALYX_REDIS_PASSWORD="s3cr:t@x")
    good("push", words, url(guarded, "d"), CALYX_REDIS_USER="loader",
         CALYX_REDIS_PASSWORD="pw")
    good("push", words, "e", CALYX_REDIS_URL=url(guarded, "", f":{SECRET}@"))
    good("push", words, "f", CALYX_REDIS_URL=url(guarded, "2", f":{SECRET}@"))
    r = guarded.client()
    r("AUTH", "s3cr:t@x")
    assert sorted(r("KEYS", "*")) == [b"a", b"b", b"c", b"d", b"e"]
    bad("the server requires a password", "push", words, url(guarded))
    for who in (f":{SECRET}x@", f"loader:{SECRET}@", f"nobody:{SECRET}@"):
        err = bad("WRONGPASS", "push", words, url(guarded, "z", who))
        assert "s3cr" not in err


def test_no_message_shows_a_password(guarded, words, tmp_path):
    secret = url(guarded, "k", f"me:{SECRET}@")
    for command in (("push", words), ("push", words, secret, secret),
                    ("push", secret, words), ("push", words, secret, "--shards"),
                    ("push", words, secret, "--shards=" + secret),
                    ("pull", secret, secret), (secret,), ("help", secret),
                    ("check", "--server=" + secret), ("check", "-f", secret),
                    ("check", "--server", secret, "--wait", secret),
                    ("push", words, f"redis://me:{SECRET}@host:1x/k"),
                    ("push", words, f"redis://me:{SECRET}@/k"),
                    ("push", words, f"redis://me:{SECRET}@127.0.0.1:1/k"),
                    ("push", words, f"http://me:{SECRET}@127.0.0.1:1/k"),
                    ("push", words, f"redis+unix://me:{SECRET}@/none?key=k"),
                    ("push", words, "redis://me:1/s3cr@127.0.0.1:1/k"),
                    ("push", words, "redis://me:1?s3cr@127.0.0.1:1/k"),
                    ("push", words, "redis://:/s3cr@x@127.0.0.1:1/k"),
                    ("push", words, "redis://s3cr/x@127.0.0.1:1/k"),
                    ("push", words, "redis+unix://me:a/s3cr@/none?key=k"),
                    ("check", "--server=rediss://me:\xff/#s3cr@127.0.0.1:1/k"),
                    ("push", words, "reds://me:s3cr/@127.0.0.1:1/k")):
        status, out, err = calyx(*command)
        assert status == 2 and err
        assert "s3cr" not in err and b"s3cr" not in out, command
    assert "s3cr" not in guarded.text()


def test_a_zero_byte_does_not_cut_a_password(guarded, words):
    for address in (url(guarded, "k", f":{SECRET}%00x@"),
                    url(guarded, "k", "lo%00ader:pw@"),
                    f"redis+unix://:{SECRET}@/tmp%00/s?key=k"):
        err = bad("cannot have a %00", "push", words, address)
        assert "s3cr" not in err


def command_line(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def test_the_list_of_processes_shows_no_password(tmp_path, words):
    """While push waits for a server that never answers."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        port = listener.getsockname()[1]
        for verb in (("push", str(words)), ("pull",), ("check", "--server")):
            process = subprocess.Popen(
                [CALYX, *verb, f"redis://me:{SECRET}@127.0.0.1:{port}/k"],
                stdin=subprocess.PIPE, stderr=subprocess.PIPE,
                env=environment())
            try:
                peer, _ = listener.accept()
                assert b"s3cr:t@x" in peer.recv(1000)  # it is the right one
                shown = command_line(process.pid)
                assert b"redis://**" in shown and b"s3cr" not in shown
                assert b"127.0.0.1" in shown
                peer.close()
            finally:
                process.kill()
                process.communicate()


@pytest.mark.parametrize("who", ["me:a/s3cr", "me:1?s3cr/", "s3cr/@", ":#s3cr@/"])
def test_no_message_shows_a_password_of_a_malformed_url(words, who):
    """Here it is hidden while lines are awaited, before the URL is read."""
    process = subprocess.Popen(
        [CALYX, "check", "-f", words, "-", f"redis://{who}@127.0.0.1:1/k"],
        stdin=subprocess.PIPE, stderr=subprocess.PIPE, env=environment())
    try:
        until(lambda: b"redis://**" in command_line(process.pid))
        assert b"s3cr" not in command_line(process.pid)
    finally:
        _, err = process.communicate(b"1\n")
    assert process.returncode == 2 and b"s3cr" not in err


# ---- What breaks ------------------------------------------------------------

@pytest.fixture
def relay(server):
    made = Relay(server.port, 5 * MIB)
    yield made
    made.close()


def test_push_and_pull_go_on_after_a_broken_connection(server, relay, large,
                                                       tmp_path):
    before = info(server.client(), "bf_calyx")["bf_loads_refused"]
    good("push", large, url(relay))
    assert relay.broken >= 3
    relay.broken = 0
    good("pull", "-o", tmp_path / "g.calyx", url(relay))
    assert relay.broken >= 3
    assert (tmp_path / "g.calyx").read_bytes() == large.read_bytes()
    assert info(server.client(), "bf_calyx")["bf_loads_refused"] == before


def kill_half_way(server, *words):
    """Run the command at a crawl, and kill it when some of it is done."""
    relay = Relay(server.port, 9 * MIB, again=False)
    process = subprocess.Popen(
        [CALYX, *map(str, words), url(relay)], env=environment(),
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    until(lambda: relay.broken)
    process.send_signal(signal.SIGKILL)
    process.wait()
    relay.close()


def test_a_push_that_was_killed_is_taken_up(server, r, large, words):
    kill_half_way(server, "push", large)
    here, every, _ = r("BF.RESTORE", "seen", "STATUS")
    assert 0 < here < every
    assert isinstance(r("BF.EXISTS", "seen", 1), Error)
    assert r("BF.GUARD", "seen", "absent", "cache") == ["maybe", None]
    good("push", large, url(server))
    assert r("BF.MEXISTS", "seen", *range(50000)) == [1] * 50000

    kill_half_way(server, "push", "--swap", large)
    status, _, err = calyx("push", "--swap", words, url(server))  # another
    assert status == 0 and "thrown away" in err
    assert r("BF.MEXISTS", "seen", *range(1000)) == [1] * 1000
    assert r("KEYS", "*") == [b"seen"]


def test_a_push_goes_on_with_another_file_from_the_start(server, r, large,
                                                         tmp_path):
    """Same head, other bits: the sums of what is there differ."""
    other = make(tmp_path / "o.calyx", range(50000, 100000), "-n", "17M",
                 "--seed", "1")
    kill_half_way(server, "push", large)
    good("push", other, url(server))
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    assert (tmp_path / "g.calyx").read_bytes() == other.read_bytes()


def test_a_pull_that_was_killed_is_taken_up(server, r, large, tmp_path, words):
    good("push", large, url(server))
    out = tmp_path / "g.calyx"
    kill_half_way(server, "pull", "-o", out)
    assert not out.exists() and (tmp_path / "g.calyx.part").exists()
    r("CONFIG", "RESETSTAT")
    status, _, err = calyx("pull", "-o", out, url(server))
    assert status == 0 and "may be missing" in err
    assert out.read_bytes() == large.read_bytes()
    calls = info(r, "commandstats")["cmdstat_bf.dump"]
    assert 3 < int(calls.split(",")[0].split("=")[1]) < 18  # not all again
    assert not (tmp_path / "g.calyx.part").exists()
    out.unlink()  # whereas one that began by itself says nothing
    assert calyx("pull", "-o", out, url(server)) == (0, b"", "")

    out.unlink()
    kill_half_way(server, "pull", "-o", out)
    good("push", "--swap", words, url(server))  # half of one, half of another
    status, _, err = calyx("pull", "-o", out, url(server))
    assert status == 0 and "beginning again" in err
    assert "may be missing" not in err
    assert out.read_bytes() == words.read_bytes()

    out.unlink()
    good("push", "--swap", large, url(server))
    kill_half_way(server, "pull", "-o", out)
    part = bytearray((tmp_path / "g.calyx.part").read_bytes())
    part[100000] ^= 1
    (tmp_path / "g.calyx.part").write_bytes(part)
    bad("is damaged, and was removed", "pull", "-o", out, url(server))
    good("pull", "-o", out, url(server))
    assert out.read_bytes() == large.read_bytes()

    out.unlink()
    part[600] ^= 1  # in the head
    for junk in (part, b"", bytes(part[:600]), b"calyx pull 1\n"):
        (tmp_path / "g.calyx.part").write_bytes(junk)
        good("pull", "-o", out, "--force", url(server))
        assert out.read_bytes() == large.read_bytes()


def test_a_whole_part_is_not_taken_for_another_filter(server, r, tmp_path):
    """As left by a pull of all chunks that could not save the file."""
    r("BF.MADD", "old", *range(50))
    cursor, _, head = r("BF.DUMP", "old", 0)
    end, _, chunk = r("BF.DUMP", "old", cursor)
    start = b"calyx pull 1\n%s\n%d\n" % (end, len(head))
    part = start.ljust(512, b"\0") + head
    (tmp_path / "g.calyx.part").write_bytes(part.ljust(65536, b"\0") + chunk)
    r("BF.MADD", "seen", *range(1000, 1050))
    good("pull", "-o", tmp_path / "g.calyx", url(server))
    found = good("check", "-c", "-f", tmp_path / "g.calyx",
                 given=lines(range(1000, 1050)))
    assert found == b"50\n"
    assert os.listdir(tmp_path) == ["g.calyx"]


def test_a_pull_does_not_touch_a_part_that_is_not_its_own(server, words,
                                                          tmp_path):
    good("push", words, url(server))
    out, part = tmp_path / "g.calyx", tmp_path / "g.calyx.part"
    for junk in b"my notes", bytes(100000), b"calyx pull", b"calyx pull 2\n":
        part.write_bytes(junk)
        bad("not what a 'calyx pull' of yours has left", "pull", "-o", out,
            url(server))
        assert part.read_bytes() == junk
    notes = tmp_path / "notes"
    notes.write_bytes(b"calyx pull 1\n")
    for target in notes, tmp_path / "nowhere":
        part.unlink()
        part.symlink_to(target)
        bad("as it is a link", "pull", "-o", out, url(server))
        assert part.is_symlink()
    assert notes.read_bytes() == b"calyx pull 1\n"
    assert not (tmp_path / "nowhere").exists()
    part.unlink()
    os.mkfifo(part)
    bad("not what a 'calyx pull' of yours has left", "pull", "-o", out,
        url(server))
    part.unlink()
    part.mkdir()
    bad("g.calyx.part", "pull", "-o", out, url(server))
    part.rmdir()
    if os.geteuid() == 0:  # nobody else can make files of others
        part.write_bytes(b"calyx pull 1\n")
        os.chown(part, 12345, 12345)
        bad("not what a 'calyx pull' of yours has left", "pull", "-o", out,
            url(server))
        part.unlink()
    assert not out.exists()
    good("pull", "-o", out, url(server))


def test_a_part_has_no_more_access_than_its_file(server, words, large,
                                                 tmp_path):
    good("push", large, url(server))
    out, part = tmp_path / "g.calyx", tmp_path / "g.calyx.part"
    before = os.umask(0o022)
    try:
        for mode in 0o600, 0o604:
            good("build", "--force", "-o", out, given=b"1\n")
            out.chmod(mode)
            kill_half_way(server, "pull", "--force", "-o", out)
            assert part.stat().st_mode & 0o7777 == mode
            part.chmod(0o666)  # by whoever came before
            kill_half_way(server, "pull", "--force", "-o", out)
            assert part.stat().st_mode & 0o7777 == mode
            good("pull", "--force", "-o", out, url(server))
            assert out.stat().st_mode & 0o7777 == mode
        out.unlink()
        os.umask(0o027)
        kill_half_way(server, "pull", "-o", out)
        assert part.stat().st_mode & 0o7777 == 0o640
    finally:
        os.umask(before)


def test_pull_refuses_bits_that_its_head_does_not_have(server, r, tmp_path):
    """A chunk with right sums, and a bit after the last of the filter."""
    file = make(tmp_path / "f.calyx", range(100), "--kind", "flat", "-n", "777")
    good("push", file, url(server))
    cursor, head_sum, head = r("BF.DUMP", "seen", 0)
    end, _, chunk = r("BF.DUMP", "seen", cursor)
    chunk = bytearray(chunk)
    chunk[-1] |= 0x80  # 7456 bits, of which 7453 count
    def digits(data):
        return xxhash.xxh64(bytes(data), seed=0).hexdigest().encode()

    def text(data):
        return b"$%d\r\n%s\r\n" % (len(data), data)

    total = xxhash.xxh64(bytes(8) + bytes.fromhex(digits(chunk).decode())[::-1],
                         seed=0).hexdigest()
    end = end[:end.rindex(b".") + 1] + total.encode()

    def answer(asked, _):
        parts = ((cursor, head_sum, head) if asked[2] == b"0" else
                 (end, digits(chunk), bytes(chunk)))
        return b"*3\r\n" + b"".join(map(text, parts))

    with Strange(answer, type=b"+calyxbloom\r\n") as strange:
        bad("bits that a filter of its head can't have", "pull", "--wait",
            "0.5s", "-o", tmp_path / "g.calyx", url(strange))
    assert os.listdir(tmp_path) == ["f.calyx"]


def test_push_waits_for_a_server_that_is_started_again(start, large):
    server = start(appendonly="yes")
    relay = Relay(server.port, 6 * MIB)
    process = subprocess.Popen([CALYX, "push", "--wait", f"{HANGS}s", large,
                                url(relay)],
                               env=environment(), stderr=subprocess.PIPE)
    until(lambda: relay.broken)
    server.kill()
    server.start()
    relay.to = server.port
    _, err = process.communicate(timeout=HANGS)
    relay.close()
    assert process.returncode == 0, err
    assert server.client()("BF.MEXISTS", "seen", *range(9)) == [1] * 9


def test_push_stops_waiting_after_its_time(start, large):
    server = start()
    relay = Relay(server.port, 6 * MIB, again=False)
    process = subprocess.Popen([CALYX, "push", "--wait", "1s", large,
                                url(relay)],
                               env=environment(), stderr=subprocess.PIPE)
    until(lambda: relay.broken)
    relay.close()
    server.kill()
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 2 and b"for 1 seconds now" in err


def test_clients_see_the_old_or_the_new(server, words, tmp_path):
    both = make(tmp_path / "b.calyx", range(2000))
    good("push", words, url(server))
    answers, over = [], threading.Event()

    def ask():
        r = server.client()
        while not over.is_set():
            answers.append(r("BF.MEXISTS", "seen", *range(1000)))

    thread = threading.Thread(target=ask)
    thread.start()
    for file in (both, words) * 5:
        asked = len(answers)
        good("push", "--swap", file, url(server))
        until(lambda: len(answers) > asked + 1)
    over.set()
    thread.join()
    assert all(a == [1] * 1000 for a in answers)
    assert server.client()("BF.INFO", "seen", "GENERATION") == [10]


# ---- Asking a server --------------------------------------------------------

def test_check_asks_a_server(server, r, words, tmp_path):
    good("push", words, url(server))
    ask = ("check", "--server", url(server))
    given = lines(range(500, 100500))
    here = good("check", "-f", words, given=given)
    assert good(*ask, given=given) == here
    for options in (("-v",), ("-c",), ("-n",), ("-m", "7"), ("-c", "-v"),
                    ("-j", "1"), ("-j", "7", "-n", "-v")):
        assert good(*ask, *options, given=given) == good(
            "check", "-f", words, *options, given=given)
    assert good(*ask, "-H", given=b"1\n") == f"{url(server)}:1\n".encode()
    assert calyx(*ask, "-q", given=b"1\n")[0] == 0
    assert calyx(*ask, given=b"")[0] == 1
    (tmp_path / "allow").write_bytes(b"600\n")
    assert good(*ask, "--allow", tmp_path / "allow", given=b"600\n601\n") == \
        b"601\n"
    assert good(*ask, "-k", "2", "-t", ",", given=b"x,1\n") == b"x,1\n"
    r("BF.ADD", "seen", "")
    assert good(*ask, given=b"\n1\n") == b"\n1\n"


def test_check_goes_by_the_options_for_keys_of_the_filter(server, tmp_path):
    good("build", "-i", "-t", ",", "-k", "2", "-o", tmp_path / "f.calyx",
         given=b"1,Rose\n2,iris\n")
    good("push", tmp_path / "f.calyx", url(server))
    asked = b"7,ROSE\n8,moss\n"
    assert good("check", "--server", url(server), given=asked) == b"7,ROSE\n"
    status, out, err = calyx("check", "--whole-line", "-i", "--server", url(server),
                             given=b"rose\nROSE\n")
    assert (status, out) == (0, b"rose\nROSE\n")
    assert "was built with -i -t , -k 2; going by -i, as given" in err
    status, out, err = calyx("check", "--whole-line", "--server", url(server), given=b"rose\n")
    assert (status, out) == (2, b"")
    assert "it was built with -i, and without it keys with capital letters" in err
    # who may not ask for the head
    server.client()("ACL", "SETUSER", "default", "-bf.dump")
    status, out, err = calyx("check", "-i", "-k", "2", "-t", ",", "--server",
                             url(server), given=asked)
    assert (status, out, err) == (0, b"7,ROSE\n", "")
    status, _, err = calyx("check", "--server", url(server), given=asked)
    assert status == 1 and "was built is not known (NOPERM" in err
    server.client()("ACL", "SETUSER", "default", "+bf.dump")


def test_check_takes_nothing_missing_for_a_no(server, r, words, large):
    bad("no filter under the key seen", "check", "--server", url(server),
        given=b"1\n")
    kill_half_way(server, "push", large)
    bad("still being loaded", "check", "--server", url(server), given=b"1\n")
    r("SET", "seen", 1)
    bad("holds something else", "check", "--server", url(server), given=b"1\n")
    bad("--server does not go with -f", "check", "-f", words, "--server",
        url(server), given=b"")
    bad("--shards is for --server", "check", "-f", words, "--shards", "3",
        given=b"")


def test_check_says_so_when_a_filter_goes_away(server, r, words):
    good("push", words, url(server))
    process = subprocess.Popen([CALYX, "check", "--server", url(server)],
                               env=environment(), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def queries():
        return int(info(r, "bf_calyx")["bf_lookups"])

    before = queries()
    process.stdin.write(b"1\n")
    process.stdin.flush()
    until(lambda: queries() > before)
    r("DEL", "seen")
    _, err = process.communicate(b"2\n")
    assert process.returncode == 2 and b"no filter under the key" in err


# ---- Shards -----------------------------------------------------------------

def test_shards_in_one_server(server, r, tmp_path):
    stem = tmp_path / "ids.calyx"
    numbers = lines(range(20000))
    good("build", "--shards", 5, "-p", "1e-8", "-o", stem, given=numbers)
    assert len(list(tmp_path.glob("ids.*-of-5.calyx"))) == 5
    bad("cannot be split", "push", "--shards", 4, stem, url(server, "ids"))
    good("push", "--shards", 5, stem, url(server, "ids"))
    assert r("GET", "ids:shards") == b"5"
    both = lines(range(40000))
    ask = ("check", "--server", url(server, "ids"))
    assert good(*ask, given=both) == numbers
    assert good(*ask, "--shards", 5, given=both) == numbers
    r("DEL", "ids:shards")
    bad("no filter under the key ids", *ask, given=b"1\n")
    bad("no filter under the key ids:{5}", *ask, "--shards", 6, given=b"1\n")
    good("push", "--shards", 5, stem, url(server, "ids"))  # all are there
    good("push", "--swap", "--shards", 5, stem, url(server, "ids"))
    good("build", "--shards", 6, "-o", stem, given=numbers)
    bad("it has 5 shards, not 6", "push", "--swap", "--shards", 6, stem,
        url(server, "ids"))
    bad("all shards would be in one slot", "push", "--shards", 5, stem,
        url(server, "{x}"))
    for wrong in ("0", "1025", "x", "-1"):
        bad("a number from 1 to 1024", "push", "--shards", wrong, stem,
            url(server, "ids"))


def test_the_shard_of_a_key_is_as_documented(server, r, tmp_path):
    """The example of doc/COMMANDS.md, run against what the command made."""
    text = read_page("doc/COMMANDS.md")
    example = text[text.index("    import redis, xxhash\n"):]
    example = "\n".join(line[4:] for line in
                        example[:example.index("\n\n\n") if "\n\n\n" in example
                                else example.index("\n## ")].splitlines()
                        if line.startswith("    ") or not line)
    import redis
    stem = tmp_path / "ids.calyx"
    good("build", "--shards", 16, "-p", "1e-8", "-o", stem,
         given="".join(f"id{n}\n" for n in range(3000)).encode())
    good("push", "--shards", 16, stem, url(server, "ids"))
    made = {}
    exec(example.replace("RedisCluster(", "Redis(").replace(
        "6379", str(server.port)), made)
    assert isinstance(made["client"], redis.Redis)
    ids = [f"id{n}".encode() for n in range(6000)]
    assert made["known"]("ids", ids) == [n < 3000 for n in range(6000)]
