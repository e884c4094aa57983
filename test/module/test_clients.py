"""Programs that speak BF.* as they are: python3-redis, and redis-cli."""
import subprocess
import sys

import pytest

# Where hiredis is installed python3-redis refuses BF.SCANDUMP; so it is hidden.
sys.modules["hiredis"] = None
import redis  # noqa: E402

# What its interface does with INFO and CARD is for RESP2, which it speaks.


@pytest.fixture
def bf(server):
    client = redis.Redis(port=server.port)
    yield client.bf()
    client.close()


def test_python_redis(bf, layout):
    assert bf.create("bloom", 0.01, 1000)
    assert not bf.execute_command("EXISTS", "x")
    assert bf.add("bloom", "foo") == 1
    assert bf.add("bloom", "foo") == 0
    assert bf.madd("bloom", "foo", "bar", "baz") == [0, 1, 1]
    assert bf.exists("bloom", "foo") == 1
    assert bf.exists("bloom", "noexist") == 0
    assert bf.mexists("bloom", "foo", "noexist") == [1, 0]
    assert bf.insert("captest", ["foo"], capacity=10, error=0.001,
                     expansion=4) == [1]
    info = bf.info("captest")
    assert info.capacity == 10 and info.insertedNum == 1
    assert info.expansionRate == 4 and info.filterNum == 1 and info.size > 0
    assert bf.create("ns", 0.0001, 4, noScale=True)
    assert bf.info("ns").expansionRate is None
    with pytest.raises(redis.ResponseError, match="not found"):
        bf.insert("none", ["foo"], noCreate=True)
    with pytest.raises(redis.ResponseError, match="item exists"):
        bf.create("bloom", 0.01, 1000)
    answers = bf.madd("ns", *range(6))
    assert answers[:4] == [1] * 4 and "is full" in str(answers[4])


def test_python_redis_dumps(bf, layout):
    bf.create("myBloom", "0.0001", "1000")
    for x in range(2000):
        bf.add("myBloom", x)
    chunks, first = [], 0
    while first is not None:
        first, data = bf.scandump("myBloom", first)
        if first == 0:
            break
        chunks.append((first, data))
    size = bf.info("myBloom").size
    bf.client.delete("myBloom") if hasattr(bf, "client") else bf.delete(
        "myBloom")
    for first, data in chunks:
        assert bf.loadchunk("myBloom", first, data)
    assert bf.info("myBloom").size == size
    assert bf.mexists("myBloom", *range(2000)) == [1] * 2000


def cli(server, *words):
    out = subprocess.run(["redis-cli", "-p", str(server.port), "--no-raw",
                          *words], capture_output=True, text=True, check=True)
    return out.stdout.rstrip("\n")


def test_redis_cli(server):
    assert cli(server, "BF.RESERVE", "seen", "0.01", "1000000") == "OK"
    assert cli(server, "BF.ADD", "seen", "rose") == "(integer) 1"
    assert cli(server, "BF.MADD", "seen", "rose", "iris") == (
        "1) (integer) 0\n2) (integer) 1")
    assert cli(server, "BF.EXISTS", "seen", "tulip") == "(integer) 0"
    assert cli(server, "BF.INFO", "seen", "ITEMS") == "1) (integer) 2"
    assert cli(server, "-3", "BF.EXISTS", "seen", "rose") == "(true)"
    assert cli(server, "BF.CARD", "seen") == "(integer) 2"
