"""One logical filter in shards over a cluster of three primaries: pushed and
asked by way of any node, while slots move and a primary dies."""
import importlib
import os
import subprocess
import threading

import pytest
import servers
from command import CALYX, environment, good, lines, url
from resp import Client, Error
from servers import (HANGS, Server, caught_up, free_port, info, join_cluster,
                     until)

SHARDS = 16
COUNT = 30000


def my_id(client):
    return client("CLUSTER", "MYID").decode()


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    """Three primaries with all slots, and a replica of the last one."""
    started = []
    try:
        for i in range(4):
            started.append(Server(
                tmp_path_factory.mktemp("node"), cluster_enabled="yes",
                cluster_node_timeout="3000", cluster_port=free_port(),
                cluster_replica_validity_factor="0"))
        join_cluster(started)
        replica, last = started[3].client(), started[2].client()
        assert replica("CLUSTER", "REPLICATE", my_id(last)) == "OK"
        until(lambda: info(replica, "replication").get(
            "master_link_status") == "up")
        yield started
    finally:
        for node in started:
            node.stop()


@pytest.fixture(scope="module")
def stem(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "ids.calyx"
    good("build", "--shards", SHARDS, "-p", "1e-8", "-o", path,
         given=lines(range(COUNT)))
    return path


def asks_well(node):
    answer = good("check", "--server", url(node, "ids"),
                  given=lines(range(2 * COUNT)))
    assert answer == lines(range(COUNT))


def test_any_node_will_do(nodes, stem):
    good("push", "--shards", SHARDS, stem, url(nodes[1], "ids"))
    held = [sum(key.startswith(b"ids:{") for key in node.client()("KEYS", "*"))
            for node in nodes[:3]]
    assert sum(held) == SHARDS and all(held)
    for node in nodes[:3]:
        asks_well(node)
    good("push", "--swap", "--shards", SHARDS, stem, url(nodes[2], "ids"))
    asks_well(nodes[0])


def owner_of(nodes, key):
    slot = nodes[0].client()("CLUSTER", "KEYSLOT", key)
    return slot, next(n for n in nodes[:3]
                      if not isinstance(n.client()("EXISTS", key), Error))


def test_a_slot_that_moves(nodes, stem, tmp_path):
    """First asked by ASK, while its keys move, and then by MOVED."""
    key = "ids:{3}"
    slot, source = owner_of(nodes, key)
    target = next(n for n in nodes[:3] if n is not source)
    s, t = source.client(), target.client()
    assert t("CLUSTER", "SETSLOT", slot, "IMPORTING", my_id(s)) == "OK"
    assert s("CLUSTER", "SETSLOT", slot, "MIGRATING", my_id(t)) == "OK"
    asks_well(source)  # its keys are still there
    keys = s("CLUSTER", "GETKEYSINSLOT", slot, 10)
    assert s("MIGRATE", "127.0.0.1", target.port, "", 0, 250000, "KEYS",
             *keys) == "OK"
    assert s("EXISTS", key).startswith("ASK ")
    asks_well(source)
    good("push", "--swap", "--shards", SHARDS, stem, url(source, "ids"))
    asks_well(source)
    good("pull", "-o", tmp_path / "3.calyx", url(source, key))
    shard = stem.with_name("ids.3-of-16.calyx")
    assert (tmp_path / "3.calyx").read_bytes() == shard.read_bytes()
    for node in nodes[:3]:
        node.client()("CLUSTER", "SETSLOT", slot, "NODE", my_id(t))
    assert s("EXISTS", key).startswith("MOVED ")
    asks_well(source)


def test_a_slot_moves_in_the_middle_of_a_push(nodes, tmp_path):
    """A filter of 40 chunks: half of it goes here, the rest there."""
    file = tmp_path / "f.calyx"
    good("build", "-n", "34M", "-o", file, given=lines(range(1000)))
    slot, source = owner_of(nodes, "big")
    target = next(n for n in nodes[:3] if n is not source)
    s, t = source.client(), target.client()
    process = subprocess.Popen([CALYX, "push", file, url(nodes[0], "big")],
                               env=environment(), stderr=subprocess.PIPE)
    until(lambda: s("EXISTS", "big") == 1)
    t("CLUSTER", "SETSLOT", slot, "IMPORTING", my_id(s))
    s("CLUSTER", "SETSLOT", slot, "MIGRATING", my_id(t))
    assert s("MIGRATE", "127.0.0.1", target.port, "big", 0, 250000) == "OK"

    def arrived():  # chunks
        is_at = t.pipeline([("ASKING",), ("BF.RESTORE", "big", "STATUS")])[1]
        return 40 if isinstance(is_at, Error) else is_at[0]  # it is complete

    before = arrived()
    until(lambda: arrived() > before or before == 40)
    for node in nodes[:3]:
        node.client()("CLUSTER", "SETSLOT", slot, "NODE", my_id(t))
    _, err = process.communicate(timeout=HANGS)
    assert process.returncode == 0, err
    assert t("BF.MEXISTS", "big", *range(1000)) == [1] * 1000


def queries(node):
    return int(info(node.client(), "bf_calyx")["bf_lookups"])


def test_check_survives_the_death_of_a_primary(nodes):
    caught_up(nodes[2].client(), nodes[3].client())
    process = subprocess.Popen(
        [CALYX, "check", "--wait", f"{HANGS}s", "--server", url(nodes[2], "ids")],
        env=environment(),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    got = []
    reader = threading.Thread(target=lambda: got.append(process.stdout.read()))
    reader.start()
    half = COUNT // 2
    asked = queries(nodes[2])
    process.stdin.write(lines(range(half)))
    process.stdin.flush()
    until(lambda: queries(nodes[2]) > asked)
    nodes[2].kill()
    try:
        process.stdin.write(lines(range(half, 2 * COUNT)))
        process.stdin.close()
    except BrokenPipeError:
        pass  # it has ended, and says why
    reader.join()
    assert process.wait() == 0, process.stderr.read()
    assert got == [lines(range(COUNT))]
    assert b"master" in Client(nodes[3].port)("INFO", "replication")
    asks_well(nodes[0])


# ---- The client of examples/cluster ------------------------------------------

def test_a_wait_ends_and_says_what_was_awaited(monkeypatch):
    monkeypatch.setattr(servers, "HANGS", 0)
    with pytest.raises(AssertionError, match="not within 0 s: the cows come home"):
        servers.until(lambda: False, "the cows come home")


def test_the_client_of_a_shard_that_nobody_serves_gives_up(start, monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(
        os.path.dirname(__file__), "..", "..", "examples", "cluster"))
    client = importlib.import_module("client")
    alone = start(cluster_enabled="yes", cluster_port=servers.free_port())
    monkeypatch.setattr(client, "PATIENCE", 0.1)
    cluster = client.Cluster([alone.port])  # no slot is assigned
    with pytest.raises(client.ConnectionError,
                       match=r"no answer from seen:\{3\} at None within 0.1 s; "
                             "the last: nobody has the shard"):
        cluster.on_shard(3, ("BF.EXISTS", "seen:{3}", "a"))
    alone.client()("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
    cluster.refresh()
    servers.until(lambda: servers.cluster_info(alone)["cluster_state"] == "ok")
    for shard in range(client.SHARDS):
        cluster.on_shard(shard, ("BF.RESERVE", client.name(shard), 0.01, 100))
    with pytest.raises(client.ConnectionError, match="no replica of seen"):
        cluster.add([b"a"])
