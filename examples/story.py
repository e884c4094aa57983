"""What the stories share: where the build is, and a stage that is cleared
however a story ends.

    with stage() as (folder, start):
        server = start(appendonly="yes")     # a real one, with the module
"""
import contextlib
import getpass
import multiprocessing
import os
import queue
import shutil
import signal
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CALYX = os.environ.get("CALYX") or os.path.join(ROOT, "build", "calyx")
LIBRARY = (os.environ.get("CALYX_LIBRARY") or
           os.path.join(ROOT, "build", "libcalyx.so"))
NGINX = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
NGINX_CONFIG = """
daemon off; user {user}; pid nginx.pid; error_log nginx.err;
events {{ }}
http {{
    log_format counts '$uri $status $body_bytes_sent';
    access_log access.log counts;
    types {{ text/html html; text/javascript js; application/wasm wasm; text/plain txt; }}
    client_body_temp_path tmp_body; proxy_temp_path tmp_proxy; fastcgi_temp_path tmp_fastcgi;
    uwsgi_temp_path tmp_uwsgi; scgi_temp_path tmp_scgi;
    keepalive_requests 100000;
    server {{ listen 127.0.0.1:{port}; root site; }}
}}
"""

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


def serve(folder):
    """nginx, of the folder "site" in this one, and its address."""
    port = free_port()
    with open(os.path.join(folder, "nginx.conf"), "w", encoding="ascii") as out:
        out.write(NGINX_CONFIG.format(port=port, user=getpass.getuser()))
    os.chmod(folder, 0o755)
    server = subprocess.Popen([NGINX, "-p", folder, "-c", "nginx.conf"],
                              stderr=subprocess.DEVNULL)
    until(lambda: os.path.exists(os.path.join(folder, "nginx.pid")), "nginx is up")
    return server, f"http://localhost:{port}/"


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
