#!/usr/bin/env python3
"""A web server that answers range requests as its URL says, right or wrong.

    odd_server.py FOLDER LOG

http://127.0.0.1:PORT/MODE/FILE serves FOLDER/FILE. Prints its port, and writes
one line for each request to LOG: its path and its Range. A mode that begins
with "later-" holds for all requests but the first for a file, which have an
If-Match. The modes are the methods of Odd below; those that begin with
"several" hold for requests of several ranges, to which all others send the whole
file, as many servers do.
"""
import http.server
import os
import sys
import threading
import time

FOLDER, LOG = sys.argv[1:]
ETAG = '"one"'
lock = threading.Condition()
log = open(LOG, "a", buffering=1, encoding="ascii")
seen = {}
waiting = {}


class Odd(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *args):
        pass

    def do_GET(self):
        mode, name = self.path.lstrip("/").split("/", 1)
        with lock:
            log.write(f"{self.path} {self.headers.get('Range')}\n")
            self.number = seen[self.path] = seen.get(self.path, 0) + 1
        if mode.startswith("later-"):
            mode = mode[6:] if self.headers.get("If-Match") else "right"
        self.file = os.path.join(FOLDER, name.split("?")[0])
        self.total = os.path.getsize(self.file)
        self.ranges = [tuple(map(int, each.split("-"))) for each in
                       self.headers["Range"].removeprefix("bytes=").split(",")]
        if len(self.ranges) > 1 and not mode.startswith("several"):
            mode = "whole"
        elif len(self.ranges) == 1 and mode.startswith("several"):
            mode = "right"
        self.first, last = self.ranges[0]
        self.last = min(last, self.total - 1)
        self.body = self.bytes_of(self.first, self.last)
        getattr(self, mode.replace("-", "_"))()

    def bytes_of(self, first, last):
        with open(self.file, "rb") as file:
            file.seek(first)
            return file.read(last - first + 1)

    def parts(self, ranges, shift=0, total=None):
        """A body of several ranges."""
        body = b""
        for first, last in ranges:
            body += (f"\r\n--limit\r\nContent-Type: text/plain\r\nContent-Range: bytes "
                     f"{first + shift}-{last + shift}/{total or self.total}\r\n\r\n"
                     ).encode() + self.bytes_of(first, last)
        return body + b"\r\n--limit--\r\n"

    def answer_several(self, body=None, **headers):
        body = self.parts(self.ranges) if body is None else body
        self.answer(body=body, **({"Content_Range": None, "Content_Type":
                    "multipart/byteranges; boundary=limit"} | headers))

    def several(self):
        self.answer_several(Content_Type='Multipart/Byteranges; boundary="limit"')

    def several_joined(self):
        self.answer_several(self.parts([(self.ranges[0][0], self.ranges[-1][1])])
                            if self.ranges[-1][1] - self.ranges[0][0] < 20000 else None)

    def several_backwards(self):
        self.answer_several(self.parts(self.ranges[::-1]))

    def several_missing(self):
        self.answer_several(self.parts(self.ranges[:-1]))

    def several_cut(self):
        self.answer_several(self.parts(self.ranges)[:-50])

    def several_short(self):  # without the last byte that was wanted
        self.answer_several(self.parts(self.ranges)[:-len("\r\n--limit--\r\n") - 1])

    def several_shifted(self):
        self.answer_several(self.parts(self.ranges, shift=64))

    def several_garbage(self):
        self.answer_several(b"\r\n--limit\r\nContent-Range: bytes 9-1/x\r\n" + 900 * b"-")

    def several_endless(self):
        self.answer_several(self.parts(self.ranges) * 1000)

    def several_as_one(self):
        self.answer()

    def several_gzip(self):
        self.answer_several(Content_Encoding="gzip")

    def several_forbidden(self):
        self.answer(403, b"no")

    def several_other_size(self):
        self.answer_several(self.parts(self.ranges, total=self.total + 64))

    def several_other_etag(self):
        self.answer_several(ETag='"two"')

    def several_503(self):
        self.answer(503, b"no")

    def answer(self, status=206, body=None, length=None, **headers):
        """What is wrong is given; a header of None is left out."""
        body = self.body if body is None else body
        usual = {"Content_Range": f"bytes {self.first}-{self.last}/{self.total}",
                 "ETag": ETAG, "Content_Length": length or len(body)}
        self.send_response(status)
        for name, value in (usual | headers).items():
            if value is not None:
                self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()
        self.wfile.write(body)

    def right(self):
        self.answer()

    def whole(self):  # a server without ranges
        self.answer(200, Content_Range=None, length=1 << 40)
        self.close_connection = True

    def empty(self):
        self.answer(206, b"")

    def short(self):
        self.answer(body=self.body[:-1])

    def long(self):
        self.answer(body=self.body + b"more")

    def huge(self):
        self.answer(length=1 << 60)
        try:
            while True:
                self.wfile.write(bytes(1 << 16))
        except ConnectionError:
            self.close_connection = True

    def cut(self):
        self.answer(body=self.body[:-1], length=len(self.body))
        self.close_connection = True

    def cut_twice(self):
        self.cut() if self.number in (2, 3) else self.answer()

    def other_range(self):
        self.answer(Content_Range=f"bytes {self.first + 64}-{self.last + 64}/{self.total + 64}")

    def no_range(self):
        self.answer(Content_Range=None)

    def unknown_size(self):
        self.answer(Content_Range=f"bytes {self.first}-{self.last}/*")

    def long_line(self):
        self.answer(X_Long=200000 * "x")

    def swapped(self):  # the file is replaced after the first answer
        if self.number > 1:
            self.file += ".next"
            self.body = self.bytes_of(self.first, self.last)
        self.answer()

    def other_size(self):
        self.answer(Content_Range=f"bytes {self.first}-{self.last}/{self.total + 64}")

    def endless_number(self):
        self.answer(Content_Range=f"bytes {self.first}-{self.last}/{'9' * 40}")

    def gzip(self):
        self.answer(Content_Encoding="gzip")

    def other_etag(self):  # ignores If-Match
        self.answer(ETag='"two"')

    def weak_etag(self):
        self.answer(ETag='W/"one"')

    def long_etag(self):
        self.answer(ETag='"' + 600 * "x" + '"')

    def by_date(self):
        date = "Tue, 01 Jul 2025 10:00:00 GMT"
        if self.headers.get("If-Unmodified-Since", date) != date:
            self.answer(412, b"")
        else:
            self.answer(ETag=None, Last_Modified=date)

    def other_date(self):
        seconds = min(self.number, 50)
        self.answer(ETag=None, Last_Modified=f"Tue, 01 Jul 2025 10:00:{seconds:02} GMT")

    def no_validator(self):
        self.answer(ETag=None)

    def status_500(self):
        self.answer(500, b"no")

    def status_503(self):
        self.answer(503, b"no")

    def status_503_twice(self):
        self.answer(503, b"no") if self.number in (2, 3) else self.answer()

    def come_back(self):  # in a second, and not before
        now = time.monotonic()
        with lock:
            asked = seen.setdefault(self.path + " asked", now)
        if asked == now:
            self.answer(429, b"no", Retry_After=1)
        elif now - asked < 1:
            self.answer(418, b"too early")
        else:
            self.answer()

    def come_tomorrow(self):
        self.answer(503, b"no", Retry_After=86400)

    def status_418(self):
        self.answer(418, b"no")

    def redirect(self):
        self.answer(302, b"", Location=self.path.replace("redirect", "right"))

    def loop(self):
        self.answer(302, b"", Location=self.path)

    def endless_redirect(self):
        try:
            self.answer(302, b"", length=1 << 60, Location=self.path)
            while True:
                self.wfile.write(bytes(1 << 16))
        except OSError:  # the client has had enough
            self.close_connection = True

    def silent(self):
        with lock:
            lock.wait(600)

    def drip(self):  # 10 bytes a second
        self.answer(body=b"", length=len(self.body))
        try:
            for byte in self.body:
                self.wfile.write(bytes([byte]))
                time.sleep(0.1)
        except OSError:
            self.close_connection = True

    def is_for_bits(self):
        return 0 < self.first < self.total - 1024

    def silent_bits(self):
        self.silent() if self.is_for_bits() else self.answer()

    def busy_bits(self):
        self.answer(500, b"no") if self.is_for_bits() else self.answer()

    def together(self):
        """FILE?N-M: M requests are for bits; answers them only when N of them
        wait at the same time, or all that are left."""
        if not self.is_for_bits():
            self.answer()
            return
        at_once, left = map(int, self.path.split("?")[1].split("-"))
        with lock:
            state = waiting.setdefault(self.path, {"here": 0, "left": left, "round": 0})
            state["here"] += 1
            mine = state["round"]
            if state["here"] == min(at_once, state["left"]):
                state["left"] -= state["here"]
                state["here"] = 0
                state["round"] += 1
                lock.notify_all()
            good = lock.wait_for(lambda: state["round"] > mine, 120)
        self.answer() if good else self.answer(418, b"alone")


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request, client_address):
        pass  # the client may go at any time


server = Server(("127.0.0.1", 0), Odd)
print(server.server_port, flush=True)
server.serve_forever()
