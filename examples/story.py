"""What the stories share: where the build is, and a stage that is cleared
however a story ends.

    with stage() as (folder, start):
        server = start(appendonly="yes")     # a real one, with the module
"""
import contextlib
import multiprocessing
import os
import queue
import shutil
import signal
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALYX = os.environ.get("CALYX") or os.path.join(ROOT, "build", "calyx")
LIBRARY = (os.environ.get("CALYX_LIBRARY") or
           os.path.join(ROOT, "build", "libcalyx.so"))

# The tests of the module start servers, too.
sys.path.insert(0, os.path.join(ROOT, "test", "module"))
from servers import HANGS, Server, free_port, meet, until  # noqa: E402, F401


def demand(truth, otherwise):
    if not truth:
        sys.exit(f"{os.path.basename(sys.argv[0])}: {otherwise}")


def result_of(results, clients):
    """The next result of a process of the story; it fails with its processes."""
    found = []

    def is_there():
        try:
            found.append(results.get(timeout=0.1))
        except queue.Empty:
            demand(any(client.is_alive() for client in clients),
                   "a client ended without a result")
        return found

    until(is_there, "a client of the story has a result")
    return found[0]


@contextlib.contextmanager
def stage():
    """A folder, and a function that starts servers in it with the options of
    a configuration file. They end with the story, and so do processes that it
    started: when its end is reached, when it fails, with Ctrl-C and with kill."""
    for ending in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(ending, lambda number, frame: sys.exit(128 + number))
    folder = tempfile.mkdtemp(prefix="calyx-story-")
    servers = []

    def start(**options):
        home = os.path.join(folder, f"server{len(servers)}")
        os.mkdir(home)
        server = Server.__new__(Server)  # in the list before it starts
        servers.append(server)
        server.__init__(home, **options)
        return server

    try:
        yield folder, start
    finally:
        for client in multiprocessing.active_children():
            client.terminate()
            client.join(HANGS)
            client.kill()
        for server in servers:
            if getattr(server, "process", None):
                server.stop()

        def is_removed():  # processes of a browser may still write there
            shutil.rmtree(folder, ignore_errors=True)
            return not os.path.exists(folder)

        until(is_removed, "the folder of the story is removed")
