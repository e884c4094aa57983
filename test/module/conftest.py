import os
import sys

import pytest

sys.path.insert(0, os.path.dirname(__file__))
from servers import PREFIX, Server  # noqa: E402


@pytest.fixture
def start(tmp_path):
    """Start servers that end with the test."""
    started = []

    def start_one(*arguments, **options):
        folder = tmp_path / f"server{len(started)}"
        folder.mkdir()
        started.append(Server(folder, arguments, **options))
        return started[-1]

    yield start_one
    # All at once: a primary would wait for replicas that stay.
    for server in started:
        server.ask_to_stop()
    for server in started:
        server.stop()


@pytest.fixture
def no_prefault(monkeypatch):
    """Servers that start later touch no pages ahead: so a test can count them."""
    monkeypatch.setenv("CALYX_NO_PREFAULT", "1")


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("shared"))
    yield server
    alive = server.alive()
    server.stop()
    assert alive, server.text()[-3000:]


@pytest.fixture
def server(shared):
    """A server that others have used, without keys and with the defaults."""
    client = shared.client()
    client("FLUSHALL")
    client("CONFIG", "SET", PREFIX + "calyx-layout", "native")
    client("CONFIG", "SET", PREFIX + "calyx-cf-layout", "redisbloom")
    yield shared
    assert shared.alive(), shared.text()[-3000:]
    client.close()


@pytest.fixture
def r(server):
    client = server.client()
    yield client
    client.close()


@pytest.fixture
def plain(r):
    """DUMP as it is written down, without compression."""
    r("CONFIG", "SET", "rdbcompression", "no")
    yield r
    r("CONFIG", "SET", "rdbcompression", "yes")


@pytest.fixture
def r3(server):
    client = server.client(resp=3)
    yield client
    client.close()


@pytest.fixture(params=["native", "redisbloom"])
def layout(request, server):
    """Everything that holds for both layouts is tested with both."""
    client = server.client()
    client("CONFIG", "SET", PREFIX + "calyx-layout", request.param)
    yield request.param
    client.close()
