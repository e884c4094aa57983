"""calyx.plain for Python, by redis-py's own clients, on servers without a module."""
import importlib
import os
import sys
import threading

import pytest
import redis
from command import good, lines, make, url
from servers import Server, free_port, join_cluster

PACKAGE = os.environ.get("CALYX_PYTHON") or os.path.join(
    os.path.dirname(__file__), "..", "..", "build", "python")
pytestmark = pytest.mark.skipif(not os.path.exists(PACKAGE),
                                reason="the binding for Python was not built")
KEYS = range(3000)


@pytest.fixture(scope="module")
def plain():
    sys.path.insert(0, PACKAGE)
    return importlib.import_module("calyx.plain")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    started = Server(tmp_path_factory.mktemp("server"), module=None)
    yield started
    started.stop()


@pytest.fixture(params=[False, True], ids=["bytes", "decoded"])
def client(server, request):
    client = redis.Redis(port=server.port, decode_responses=request.param)
    client.flushall()
    yield client
    client.close()


@pytest.fixture
def path(tmp_path):
    return make(tmp_path / "a.calyx", KEYS, "-n", 10000, "-p", "1e-6")


def push(server, path, *options):
    good("push", "--plain", "--piece", "64KiB", *options, path, url(server))


def test_lookups_and_additions_are_as_in_the_file(plain, server, client, path, tmp_path):
    push(server, path)
    f = plain.open(client, "seen")
    assert f.has_many(map(str, range(6000))) == [n < 3000 for n in range(6000)]
    assert "17" in f and f.has(b"17") and not f.has("rose") and not f.has(17)
    assert f.add("rose") and not f.add("rose") and "rose" in f
    assert f.add_many(map(str, range(2000, 5000))) == 2000
    assert all(f.has_many(map(str, range(5000)))) and f.has_many([]) == []
    good("add", path, given=lines([*range(2000, 5000), "rose"]))
    good("pull", "-o", tmp_path / "b.calyx", url(server))
    assert good("info", tmp_path / "b.calyx").replace(b"b.calyx", b"a.calyx") == good("info", path)
    assert good("check", "--server", url(server), given=b"rose\n") == b"rose\n"


@pytest.mark.parametrize("kind", ["line2", "flat", "ribbon"])
def test_kinds_that_read_several_lines_are_queried_and_not_added_to(
        plain, server, client, tmp_path, kind):
    push(server, make(tmp_path / "a.calyx", KEYS, "-p", "1e-3", "--kind", kind))
    f = plain.open(client, "seen")
    answer = good("check", "-f", tmp_path / "a.calyx", given=lines(range(6000)))
    found = f.has_many(map(str, range(6000)))
    assert lines(n for n in range(6000) if found[n]) == answer
    with pytest.raises(sys.modules["calyx"].Error):
        f.add("rose")


def test_a_grown_filter_with_an_allow_list_or_a_secret_key(
        plain, server, client, tmp_path):
    path = make(tmp_path / "a.calyx", KEYS, "-n", 100, "--growth", 2, "--kind", "line",
                "-p", "1e-4")
    push(server, path)
    f = plain.open(client, "seen")
    assert all(f.has_many(map(str, KEYS)))
    assert 1990 <= f.add_many(map(str, range(1000, 5000))) <= 2000
    assert all(f.has_many(map(str, range(5000))))
    good("allow", path, given=b"7\n")
    push(server, path, "--swap")
    assert f.has_many(["6", "7", "8"]) == [True, False, True]
    (tmp_path / "key").write_bytes(bytes(range(16)))
    secret = ("--key-file", tmp_path / "key")
    push(server, make(tmp_path / "b.calyx", KEYS, "--hash", "siphash", *secret),
         "--swap", *secret)
    with pytest.raises(sys.modules["calyx"].Error):
        f.has("7")
    assert "7" in plain.open(client, "seen", key=bytes(range(16)))


def test_what_is_missing_is_an_error_and_never_a_no(plain, server, client, path):
    error = sys.modules["calyx"].Error
    with pytest.raises(error, match="no filter"):
        plain.open(client, "seen")
    push(server, path)
    f = plain.open(client, "seen")
    piece, = client.keys("seen:*")
    client.delete(piece)
    with pytest.raises(error, match="missing"):
        f.has("1")
    with pytest.raises(error, match="missing"):
        f.add("1")
    assert not client.exists(piece)
    client.setbit(piece, 8 * path.stat().st_size + 63, 1)
    with pytest.raises(error, match="missing"):
        f.has("1")
    push(server, path, "--swap")
    assert f.has("1") and f.add("rose")
    client.flushall()
    with pytest.raises(error, match="missing|no filter"):
        f.add("lily")
    with pytest.raises(error, match="no filter"):
        f.has("rose")


def test_16_threads_lose_nothing_and_count_each_key_once(plain, server, client, tmp_path):
    push(server, make(tmp_path / "a.calyx", [], "-n", 16000, "-p", "1e-6"))
    fresh = []

    def write(thread):
        f = plain.open(client, "seen")  # half of the keys are another thread's, too
        fresh.append(f.add_many(str(n) for n in range(thread * 1000, (thread + 2) * 1000)))

    threads = [threading.Thread(target=write, args=[i]) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(plain.open(client, "seen").has_many(map(str, range(17000))))
    assert 16990 <= sum(fresh) <= 17000 and int(client.hget("seen", "items")) == sum(fresh)


def test_a_reader_beside_swaps_never_misses_a_key_of_both(plain, server, client, tmp_path):
    paths = [make(tmp_path / name, [*KEYS, *more], "-p", "1e-9")
             for name, more in (("a", range(3000, 3500)), ("b", range(3500, 4000)))]
    push(server, paths[0])
    f = plain.open(client, "seen")
    keys, wrong, done = [str(n) for n in range(4000)], [], threading.Event()
    good_answers = [[n < 3000 or low <= n < low + 500 for n in range(4000)]
                    for low in (3000, 3500)]

    def read():
        while not done.is_set():
            if f.has_many(keys) not in good_answers:
                wrong.append(1)

    reader = threading.Thread(target=read)
    reader.start()
    for i in range(20):
        push(server, paths[1 - i % 2], "--swap")
    done.set()
    reader.join()
    assert not wrong


def test_a_client_of_a_cluster(plain, tmp_path_factory, tmp_path):
    nodes = [Server(tmp_path_factory.mktemp("node"), module=None, cluster_enabled="yes",
                    cluster_port=free_port()) for _ in range(3)]
    try:
        join_cluster(nodes)
        path = make(tmp_path / "a.calyx", KEYS, "-n", 1_000_000)
        push(nodes[0], path)
        client = redis.RedisCluster(host="127.0.0.1", port=nodes[1].port)
        f = plain.open(client, "seen")
        assert all(f.has_many(map(str, KEYS)))
        assert f.add_many(map(str, range(5000, 8000))) > 2900
        assert all(f.has_many(map(str, range(5000, 8000))))
        client.close()
    finally:
        for node in nodes:
            node.stop()
