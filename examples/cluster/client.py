"""A client of one filter in SHARDS shards, each under a key of its own, on a
cluster. What any client of any language would do: doc/COMMANDS.md says which
shard an item is in."""
import ctypes
import time

import redis
from redis.exceptions import ConnectionError, RedisError, ResponseError, TimeoutError

SHARDS = 16
# Seconds after which it is an error that no server answers for a shard, or no
# replica acknowledges.
PATIENCE = 300
XXH64 = ctypes.CDLL("libxxhash.so.0").XXH64
XXH64.argtypes = ctypes.c_char_p, ctypes.c_size_t, ctypes.c_uint64
XXH64.restype = ctypes.c_uint64


def name(shard):
    return f"seen:{{{shard}}}"


def by_shard(items):
    """The items of each shard."""
    lists = [[] for _ in range(SHARDS)]
    for item in items:
        lists[XXH64(item, len(item), 0) % SHARDS].append(item)
    return [(shard, own) for shard, own in enumerate(lists) if own]


class Cluster:
    """A connection to each node, and who has which shard."""

    def __init__(self, ports):
        self.nodes = {port: redis.Redis(port=port, socket_timeout=5,
                                        single_connection_client=True)
                      for port in ports}
        self.slot = [self.nodes[ports[0]].execute_command(
            "CLUSTER", "KEYSLOT", name(shard)) for shard in range(SHARDS)]
        self.refresh()

    def owners(self, port):
        """Who has each shard, as one node sees it."""
        ranges = self.nodes[port].execute_command("CLUSTER", "SLOTS")
        return [next((primary[1] for first, last, primary, *_ in ranges
                      if first <= slot <= last), None) for slot in self.slot]

    def refresh(self):
        for port in self.nodes:
            try:
                self.owner = self.owners(port)
                return
            except RedisError:
                pass  # it is dead: ask the next
        raise ConnectionError("no node of the cluster answers")

    def agree(self, ports):
        """Do these see the same primaries, which are of them?"""
        try:
            seen = [self.owners(port) for port in ports]
        except RedisError:
            return False  # it is dead, or busy
        return all(owners == seen[0] for owners in seen) and set(seen[0]) <= set(ports)

    def on_shard(self, shard, *commands):
        """The answers to commands that go to one shard, as soon as some server
        gives them. Commands may be sent twice: adding twice does no harm."""
        port, asking = self.owner[shard], []
        end, last = time.monotonic() + PATIENCE, "nobody has the shard"
        while time.monotonic() < end:
            try:
                pipe = self.nodes[port].pipeline(transaction=False)
                for command in asking + list(commands):
                    pipe.execute_command(*command)
                answers = pipe.execute(raise_on_error=False)[len(asking):]
                if not isinstance(answers[0], ResponseError):
                    return answers
                last = str(answers[0])
                words = last.split()
                if words[0] == "ASK":  # the shard is moving, and there already
                    port, asking = int(words[2].split(":")[1]), [("ASKING",)]
                    continue
                if words[0] not in ("MOVED", "CLUSTERDOWN", "TRYAGAIN", "READONLY"):
                    raise answers[0]
            except (ConnectionError, TimeoutError) as error:
                last = str(error)  # it is dead, and nobody has taken over yet
            except KeyError:
                pass  # nobody has the shard
            time.sleep(0.02)
            self.refresh()
            port, asking = self.owner[shard], []
        raise ConnectionError(f"no answer from {name(shard)} at {port} within "
                              f"{PATIENCE} s; the last: {last}")

    def add(self, items):
        """Returns when each is in a primary and in its replica. NOCREATE: a
        shard that is missing is an error, not a new filter with nothing in it."""
        for shard, own in by_shard(items):
            insert = ("BF.INSERT", name(shard), "NOCREATE", "ITEMS", *own)
            end = time.monotonic() + PATIENCE
            while self.on_shard(shard, insert, ("WAIT", 1, 1000))[1] != 1:
                if time.monotonic() > end:
                    raise ConnectionError(f"no replica of {name(shard)} "
                                          f"acknowledged within {PATIENCE} s")

    def ask(self, items):
        """How many of them are found."""
        return sum(sum(self.on_shard(shard, ("BF.MEXISTS", name(shard), *own))[0])
                   for shard, own in by_shard(items))
