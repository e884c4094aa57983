"""Valkey 9's CLUSTER MIGRATESLOTS: filters of every layout move with their slots,
while items are added, and windows while they rotate."""
import itertools
import threading
import time

import pytest
from resp import Error, encode
from servers import (KIND, VERSION, Server, free_port, info, join_cluster,
                     until)

pytestmark = pytest.mark.skipif(
    KIND != "Valkey" or int(VERSION) < 9,
    reason="needs Valkey 9: no other server has CLUSTER MIGRATESLOTS")

LAST = 5000  # of the slots that move; a node without any would become a replica
RANGE = ("SLOTSRANGE", 0, LAST)


@pytest.fixture
def nodes(tmp_path_factory):
    started = []
    try:
        for _ in range(3):
            started.append(Server(
                tmp_path_factory.mktemp("node"), cluster_enabled="yes",
                cluster_node_timeout="60000", cluster_port=free_port()))
        join_cluster(started)
        yield started
    finally:
        for node in started:
            node.stop()


def name(client, stem):
    """A key in one of these slots."""
    return next(key for key in (f"{stem}{i}" for i in itertools.count())
                if client("CLUSTER", "KEYSLOT", key) <= LAST)


def migrate(source, target):
    """The slots, and wait for the end."""
    id = target.client()("CLUSTER", "MYID").decode()
    client = source.client()
    answer = client("CLUSTER", "MIGRATESLOTS", *RANGE, "NODE", id)
    assert answer == "OK", answer

    def state():
        job = client("CLUSTER", "GETSLOTMIGRATIONS")[0]
        return {job[i]: job[i + 1] for i in range(0, len(job), 2)}

    until(lambda: state()[b"state"] in (b"success", b"failed", b"cancelled"),
          "the slots have moved")
    assert state()[b"state"] == b"success", state()


FILTERS = {
    "native": ("BF.RESERVE", "0.01", 1000),
    "large": ("BF.RESERVE", "0.001", 2000000, "NONSCALING"),
    "counting": ("BF.RESERVE", "0.01", 1000, "COUNTING"),
    "redisbloom": ("BF.RESERVE", "0.01", 100, "LAYOUT", "redisbloom"),
    "valkey-bloom": ("BF.RESERVE", "0.01", 100, "LAYOUT", "valkey-bloom"),
    "window": ("BF.RESERVE", "0.01", 1000, "WINDOW", 3600),
    "cuckoo": ("CF.RESERVE", 1000),
}


def make(client, kind):
    key = name(client, kind)
    command, *options = FILTERS[kind]
    assert client(command, key, *options) == "OK"
    return key


def add(client, key, items):
    command = "CF.INSERT" if key.startswith("cuckoo") else "BF.INSERT"
    answer = client(command, key, "ITEMS", *items)
    assert not isinstance(answer, Error), answer


def has_all(client, key, items):
    command = "CF.MEXISTS" if key.startswith("cuckoo") else "BF.MEXISTS"
    return all(client(command, key, *items))


def test_filters_of_every_layout_move_with_their_slots(nodes):
    source, target = nodes[0].client(), nodes[1].client()
    keys = [make(source, kind) for kind in FILTERS]
    for key in keys:
        add(source, key, range(1500))
    digests = {key: source("DEBUG", "DIGEST-VALUE", key) for key in keys}
    migrate(*nodes[:2])
    for key in keys:
        assert has_all(target, key, range(1500)), key
        assert target("DEBUG", "DIGEST-VALUE", key) == digests[key], key
    until(lambda: source("DBSIZE") == 0, "the source has deleted its keys")
    # and back, where they came from
    migrate(nodes[1], nodes[0])
    for key in keys:
        assert source("DEBUG", "DIGEST-VALUE", key) == digests[key], key


def test_no_item_is_lost_that_is_added_while_slots_move(nodes):
    source, target = nodes[0].client(), nodes[1].client()
    keys = [make(source, kind) for kind in FILTERS]
    for key in keys:
        add(source, key, range(500))
    added = {key: 500 for key in keys}
    done = threading.Event()

    def add_all():
        """Until the node says that the slot has moved."""
        client = nodes[0].client()
        for n in itertools.count(500):
            for key in keys:
                command = "CF.ADD" if key.startswith("cuckoo") else "BF.ADD"
                answer = client(command, key, n)
                if isinstance(answer, Error):
                    assert str(answer).startswith("MOVED"), answer
                    done.set()
                    return
                added[key] = n + 1

    writer = threading.Thread(target=add_all)
    writer.start()
    migrate(*nodes[:2])
    until(done.is_set, "the writer hears that the slot has moved")
    writer.join()
    for key in keys:
        assert has_all(target, key, range(added[key])), key


def rotations(client):
    return int(info(client, "everything")["bf_window_rotations"])


def test_a_window_rotates_once_while_it_is_on_two_nodes(nodes):
    """Both nodes have a timer, and the source says that it has rotated: what it
    says a second time must not lose a generation too early."""
    watch, stream = nodes[1].client(), nodes[1].client()
    source = nodes[0].client()("CLUSTER", "MYID")
    assert stream("CLUSTER", "SYNCSLOTS", "ESTABLISH", "SOURCE", source, "NAME",
                  "0" * 40, "SLOTSRANGE", 0, LAST) == "OK"
    key, now = name(watch, "window"), int(1000 * time.time())
    stream.socket.sendall(encode("BF.RESERVE", key, "0.01", 1000, "WINDOW", 3600,
                                 "GENERATIONS", 4))
    for began in (now + 1000, now + 1000, now + 2000):
        stream.socket.sendall(encode("BF.ROTATE", key, 1, began))
    until(lambda: info(watch, "commandstats").get(
        "cmdstat_bf.rotate", "").startswith("calls=3,"), "all rotations came")
    assert rotations(watch) == 2
