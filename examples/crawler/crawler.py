#!/usr/bin/python3
"""A crawler that fetches no URL twice, though it be killed at any moment.

    crawler.py FOLDER URL...

It stays on the hosts of the URLs. Started again, it goes on. Its folder has
  seen.calyx   a filter of all URLs ever found, used in place by calyx_map: a bit
               that is set stays set when the process is killed
  frontier     the same URLs, one on a line, in the order of their discovery
  position     three places in the frontier: up to `begun` and `done` pages were
               fetched, up to `known` all URLs are in the filter
  doubt        URLs that were being fetched when the process was killed
"""
import ctypes
import os
import re
import struct
import subprocess
import sys
from http.client import HTTPConnection
from urllib.parse import urldefrag, urljoin, urlsplit

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from story import CALYX, LIBRARY  # noqa: E402


class Seen:
    """A mapped filter, through the C library."""

    def __init__(self, path):
        if not os.path.exists(path):  # it appears whole, or not at all
            subprocess.run([CALYX, "build", "-n", "1e6", "-p", "1e-6", "--kind",
                            "line2", "-o", path, os.devnull], check=True)
        self.lib = ctypes.CDLL(LIBRARY)
        self.lib.calyx_has.restype = ctypes.c_bool
        self.filter = ctypes.c_void_p()
        why = ctypes.create_string_buffer(248)  # a calyx_error: text from 8 on
        if self.lib.calyx_map(path.encode(), 1, None,
                              ctypes.byref(self.filter), why) != 0:
            sys.exit("crawler: " + why.raw[8:].split(b"\0")[0].decode())

    def __contains__(self, url):
        return self.lib.calyx_has(self.filter, url, ctypes.c_size_t(len(url)))

    def add(self, url):
        if self.lib.calyx_add(self.filter, url, ctypes.c_size_t(len(url)), None):
            sys.exit("crawler: the filter takes no more")


class Frontier:
    def __init__(self, folder, first):
        def open_file(name):
            return os.open(os.path.join(folder, name), os.O_RDWR | os.O_CREAT)
        self.seen = Seen(os.path.join(folder, "seen.calyx"))
        self.file, self.position = open_file("frontier"), open_file("position")
        self.begun, self.done, self.known = struct.unpack(
            "<QQQ", os.pread(self.position, 24, 0) or bytes(24))
        self.size = os.fstat(self.file).st_size
        # Killed while it wrote: half a line is none.
        tail = os.pread(self.file, self.size - self.known, self.known)
        self.size = self.known + tail.rfind(b"\n") + 1
        os.ftruncate(self.file, self.size)
        # Killed before they were in the filter. Adding twice does no harm.
        self.know(tail[:self.size - self.known].split())
        if self.begun != self.done:  # killed in the middle of a page
            with open(os.path.join(folder, "doubt"), "ab") as doubt:
                doubt.write(os.pread(self.file, self.begun - self.done, self.done))
        self.keep(self.begun, self.begun)
        self.find(first)

    def keep(self, begun, done):
        self.begun, self.done = begun, done
        os.pwrite(self.position, struct.pack("<QQQ", begun, done, self.known), 0)

    def know(self, urls):
        for url in urls:
            self.seen.add(url)
        self.known = self.size

    def find(self, urls):
        """URLs were found: those that are new go to the end, then they are in
        the filter."""
        fresh = [url for url in dict.fromkeys(urls) if url not in self.seen]
        self.size += os.pwrite(
            self.file, b"".join(url + b"\n" for url in fresh), self.size)
        self.know(fresh)

    def next(self):
        """The next URL, or None. It counts as begun before it is known."""
        line = os.pread(self.file, 65536, self.begun).split(b"\n")[0]
        if not line:
            return None
        self.keep(self.begun + len(line) + 1, self.begun)
        return line

    def end(self, links):
        self.find(links)
        self.keep(self.begun, self.begun)


def fetch(url):
    """The links of a page on the same host; none if it cannot be had."""
    parts = urlsplit(url)
    connection = HTTPConnection(parts.netloc, timeout=20)
    try:
        connection.request("GET", parts.path or "/")
        page = connection.getresponse().read().decode(errors="replace")
    except OSError as error:
        print(f"{url}: {error}", file=sys.stderr)
        return []
    finally:
        connection.close()
    links = (urldefrag(urljoin(url, link)).url
             for link in re.findall(r'href="([^"\s]+)"', page))
    return [link.encode() for link in links
            if urlsplit(link)[:2] == parts[:2] and len(link) < 2000]


def main(folder, *first):
    frontier = Frontier(folder, [url.encode() for url in first])
    while url := frontier.next():
        frontier.end(fetch(url.decode()))


if __name__ == "__main__":
    main(*sys.argv[1:])
