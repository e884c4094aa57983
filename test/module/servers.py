"""Starting and stopping real servers, each in a folder of its own."""
import fcntl
import glob
import os
import random
import re
import signal
import socket
import subprocess
import tempfile
import time

from resp import Client, Error, Simple, encode

MODULE = os.environ.get("CALYX_MODULE") or os.path.join(
    os.path.dirname(__file__), "..", "..", "build", "calyx.so")
SERVER = os.environ.get("CALYX_SERVER", "redis-server")

# What it says that it is: Redis or Valkey, and which.
KIND, VERSION = re.match(r"(\w+) server v=(\d+)", subprocess.run(
    [SERVER, "--version"], capture_output=True, text=True,
    check=True).stdout).groups()
# What stands before the names of settings in CONFIG.
PREFIX = "" if KIND == "Redis" and int(VERSION) >= 8 else "bf."


# A sanitizer fills what is allocated and what is freed: pages say little then.
SANITIZED = bool(os.environ.get("CALYX_PRELOAD"))

# Seconds after which something hangs. No test depends on how fast the machine is:
# this is the only limit, and ten busy processes beside a test do not reach it.
HANGS = 300


def read_page(name):
    """A document of this repository, as "doc/COMMANDS.md"."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", name)) as page:
        return page.read()


# A byte for each port. The process that holds its lock may use the port until it ends:
# else two tests might start their servers with one port, and use the same server.
PORTS = open(os.path.join(tempfile.gettempdir(), f"calyx-ports-{os.getuid()}"), "ab")
ours = set()  # a process has its own locks again, if it asks


def free_port():
    """Below those that systems give to connections (from 32768 on): one of these
    might be taken by another test's client before the server comes to it."""
    while True:
        port = random.randrange(10000, 32768)
        if port in ours:
            continue
        with socket.socket() as s:
            try:
                fcntl.lockf(PORTS, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, port)
                s.bind(("127.0.0.1", port))
                ours.add(port)
                return port
            except OSError:
                pass


# Of all filters, so that every run is the same. A test that wants another seed
# starts a server with the argument calyx-seed.
SEED = ("calyx-seed", "1")


class Server:
    """A server with the module, or with None, without one. `options` are as in its
    configuration file, with _ for -; `arguments` go to the module."""

    def __init__(self, folder, arguments=(), module=MODULE, **options):
        self.folder = str(folder)
        self.module = module
        self.arguments = [str(a) for a in arguments]
        self.seed = SEED
        # The system has every reply's record, which outlives the server.
        self.options = {"save": "", "enable_debug_command": "yes",
                        "appendfsync": "no",
                        "repl_diskless_sync_delay": "0", **options}
        self.process = None
        self.start()

    def command(self):
        command = [SERVER, "--port", str(self.port), "--bind", "127.0.0.1",
                   "--dir", self.folder]
        if self.module:
            command += ["--loadmodule", os.path.abspath(self.module), *self.seed,
                        *self.arguments]
        for name, value in self.options.items():
            command += ["--" + name.replace("_", "-"), str(value)]
        return command

    def start(self, wait=True, port=None):
        self.port = port or free_port()
        self.log = open(os.path.join(self.folder, "log"), "ab")
        began = self.log.tell()
        environment = dict(os.environ)
        preload = os.environ.get("CALYX_PRELOAD")  # a sanitizer's library
        if preload:
            environment["LD_PRELOAD"] = preload
        self.process = subprocess.Popen(
            self.command(), stdout=self.log, stderr=self.log, env=environment)
        if wait and not self.answers():
            said = self.text()[began:]
            if port or "Address already in use" not in said:
                raise RuntimeError("the server ended:\n" + said[-3000:])
            self.start()  # another process took the port meanwhile

    def answers(self):
        """Wait for it to answer; false if it ends instead."""
        end = time.monotonic() + HANGS
        while time.monotonic() < end:
            if self.process.poll() is not None:
                return False
            try:
                client = Client(self.port)
                answer = client("PING")
                client.close()
                if answer == "PONG":
                    return True
            except OSError:
                pass
            time.sleep(0.02)
        self.kill()  # nobody else will
        raise RuntimeError("the server does not answer:\n" + self.text()[-3000:])

    def client(self, resp=2):
        return Client(self.port, resp)

    def text(self):
        with open(os.path.join(self.folder, "log"), errors="replace") as log:
            return log.read()

    def alive(self):
        return self.process.poll() is None

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def ask_to_stop(self):
        if self.process and self.alive():
            self.process.terminate()

    def stop(self):
        if self.process and self.alive():
            self.ask_to_stop()
            try:
                self.process.wait(HANGS)
            except subprocess.TimeoutExpired:
                self.kill()
        self.log.close()

    def restart(self, kill=False):
        if kill:
            self.kill()
        else:
            client = self.client()
            try:
                client("SHUTDOWN")
            except (ConnectionError, OSError):
                pass
            self.process.wait(HANGS)
        self.start()


def until(happened, awaited="what this test waits for", pause=0.02):
    """Wait for something to come true."""
    end = time.monotonic() + HANGS
    while not happened():
        assert time.monotonic() < end, f"not within {HANGS} s: {awaited}"
        time.sleep(pause)


def attempts(awaited):
    """Tries at something that another process may prevent, until one succeeds and the
    caller leaves the loop. A test that needs one fails when it hangs, not by chance."""
    end = time.monotonic() + HANGS
    while time.monotonic() < end:
        yield
    raise AssertionError(f"not within {HANGS} s: {awaited}")


def info(client, section):
    lines = client("INFO", section).decode().splitlines()
    return dict(line.split(":", 1) for line in lines if ":" in line)


def cluster_info(node):
    text = node.client()("CLUSTER", "INFO").decode()
    return dict(line.split(":") for line in text.split("\r\n") if ":" in line)


def meet(nodes, port="port"):
    """Wait until all know each other by their ids, which they return. The ports
    of the bus are not the ports of the clients and 10000, so MEET must name it;
    redis-cli --cluster create does not know them. On a busy machine a server
    gives a MEET up that took too long: so it is sent again."""
    clients = [node.client() for node in nodes]
    ids = [client("CLUSTER", "MYID") for client in clients]

    def missing(client):
        known = client("CLUSTER", "NODES")
        return [i for i, id in enumerate(ids) if id not in known]

    def all_met():
        for i in missing(clients[0]):
            options = {"port": nodes[i].port, **nodes[i].options}
            assert clients[0]("CLUSTER", "MEET", "127.0.0.1", options[port],
                              options["cluster_port"]) == "OK"
        return not any(map(missing, clients))

    until(all_met, "each node of the cluster knows the others")
    return ids


def join_cluster(nodes, port="port"):
    """Make one cluster of them, with all slots on the first three."""
    for i, node in enumerate(nodes[:3]):
        client = node.client()
        client("CLUSTER", "ADDSLOTSRANGE", i * 5462,
               min(16383, (i + 1) * 5462 - 1))
        client("CLUSTER", "SET-CONFIG-EPOCH", i + 1)
    meet(nodes, port)
    for node in nodes:
        until(lambda: cluster_info(node)["cluster_state"] == "ok",
              "the state of the cluster is ok")


def resident(r):
    """Bytes, as the system counts them: the server looks but now and then."""
    with open(f"/proc/{info(r, 'server')['process_id']}/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGESIZE")


def work_of(client, *words, where=("user", "sys")):
    """Processor seconds that the server's main thread spends on a command. Unlike
    the time that passes, they hardly depend on what else runs."""
    def spent():
        facts = info(client, "cpu")
        return sum(float(facts[f"used_cpu_{part}_main_thread"]) for part in where)

    before = spent()
    answer = client(*words)
    assert not isinstance(answer, Error), answer
    return spent() - before


def work_to_read(client, key):
    """What it takes to read every byte of a filter once, which no other command
    may do on the main thread: those are held against this."""
    return work_of(client, "DEBUG", "DIGEST-VALUE", key)


def digest(client, key):
    answer = client("DEBUG", "DIGEST-VALUE", key)
    assert isinstance(answer, list), answer
    return answer[0]


def dump(client, key, command="BF.SCANDUMP"):
    """All pairs of an iterator and a piece that BF.SCANDUMP gives."""
    at, pieces = 0, []
    while True:
        at, data = client(command, key, at)
        if at == 0:
            assert not data
            return pieces
        pieces.append((at, data))


def follow(replica, primary):
    client = replica.client()
    assert client("REPLICAOF", "127.0.0.1", primary.port) == "OK"
    until(lambda: info(client, "replication")["master_link_status"] == "up")
    return client


def caught_up(primary, *replicas):
    for replica in replicas:
        until(lambda: info(replica, "replication")["master_link_status"] == "up"
              and info(primary, "replication")["master_repl_offset"] ==
              info(replica, "replication")["slave_repl_offset"])


def are_equal(primary, *replicas):
    caught_up(primary, *replicas)
    keys = sorted(primary("KEYS", "*"))
    assert keys
    for replica in replicas:
        assert sorted(replica("KEYS", "*")) == keys
        for key in keys:
            assert digest(replica, key) == digest(primary, key), key
            assert replica("TYPE", key) == primary("TYPE", key)


WAYS_OF_SAVING = ["rdb", "aof", "rewritten", "preamble"]


def start_saving(start, how):
    """A server that saves its keys in one of these ways."""
    return start(save="3600 1") if how == "rdb" else start(
        appendonly="yes",
        aof_use_rdb_preamble="yes" if how == "preamble" else "no")


def rewrite_aof(r):
    assert isinstance(r("BGREWRITEAOF"), Simple)
    until(lambda: info(r, "persistence")["aof_rewrite_in_progress"] == "0" and
          info(r, "persistence")["aof_rewrite_scheduled"] == "0")
    assert info(r, "persistence")["aof_last_bgrewrite_status"] == "ok"


def restart_saved(server, how):
    """Restart it; before, rewrite its AOF if it is to load that."""
    if how in ("rewritten", "preamble"):
        rewrite_aof(server.client())
    server.restart()


def commands_seen(server, run):
    """What the replication stream has, in words, while `run` runs."""
    folder = server.folder + "/appendonlydir"
    path, = glob.glob(folder + "/*.incr.aof")
    with open(path, "rb") as aof:
        aof.seek(0, 2)
        run()
        content = aof.read()
    parts = content.split(b"\r\n")
    words, i = [], 0
    while i < len(parts) - 1:
        n = int(parts[i][1:])
        words.append([parts[i + 2 + 2 * j].decode() for j in range(n)])
        i += 1 + 2 * n
    return [w for w in words if w[0] not in ("SELECT", "MULTI", "EXEC")]


def in_batches(port, command, key, numbers, batch=1000):
    """BF.MADD or BF.MEXISTS of many numbers, as items of 12 digits, as fast as
    Python can write them; also of CF.INSERT. How many of the answers were 1."""
    words = [command, key] + ["ITEMS"] * (command == "CF.INSERT")
    head = encode(*words).replace(b"*%d" % len(words),
                                  b"*%d" % (len(words) + batch), 1)
    items = b"$12\r\n%012d\r\n" * batch
    size = len(b"*%d\r\n" % batch) + 4 * batch  # :1\r\n for each
    ones = 0
    assert len(numbers) % batch == 0
    with socket.create_connection(("127.0.0.1", port), 600) as server:
        for n in range(0, len(numbers), batch):
            server.sendall(head + items % tuple(numbers[n:n + batch]))
            reply = b""
            while len(reply) < size:
                got = server.recv(size - len(reply))
                if not got or (reply or got)[:1] != b"*":
                    raise ConnectionError((reply + got)[:200])
                reply += got
            ones += reply.count(b":1")
    return ones


EMPTY_RDB = b"REDIS0009\xff" + bytes(8)


class FakePrimary:
    """A primary that sends an RDB file, and then the given stream."""

    def __init__(self, replica, rdb=EMPTY_RDB):
        self.sent, self.replica = 0, replica
        with socket.socket() as listening:
            listening.bind(("127.0.0.1", 0))
            listening.listen()
            listening.settimeout(HANGS)
            port = listening.getsockname()[1]
            assert replica("REPLICAOF", "127.0.0.1", port) == "OK"
            self.socket, _ = listening.accept()
        self.file = self.socket.makefile("rb")
        while self.read()[0].upper() != b"PSYNC":
            self.socket.sendall(b"+OK\r\n")
        self.socket.sendall(b"+FULLRESYNC %s 0\r\n$%d\r\n%s" % (
            b"1" * 40, len(rdb), rdb))
        until(self.is_followed)

    def is_followed(self):
        """It has the file; and if it has an AOF, that was begun anew."""
        now = info(self.replica, "all")
        return (now["master_link_status"] == "up" and
                now["aof_rewrite_scheduled"] == "0" and
                now["aof_rewrite_in_progress"] == "0")

    def read(self):
        line = self.file.readline()
        if not line.startswith(b"*"):
            return line.split()
        sizes = []
        for _ in range(int(line[1:])):
            size = int(self.file.readline()[1:])
            sizes.append(self.file.read(size + 2)[:-2])
        return sizes

    def send(self, stream):
        """And wait until the replica has done all of it."""
        self.socket.sendall(stream)
        self.sent += len(stream)
        until(lambda: int(info(self.replica, "replication")[
            "slave_repl_offset"]) == self.sent)

    def close(self):
        self.file.close()
        self.socket.close()
