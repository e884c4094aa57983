"""A client of a few lines that shows replies as they are: RESP2 and RESP3, with
their types, which python3-redis hides."""
import socket


class Simple(str):
    """A simple string, such as OK."""


class Error(str):
    """An error reply. Returned, not raised: many tests are about them."""


class Map(list):
    """The pairs of a map, in their order."""


def encode(*words):
    out = [b"*%d\r\n" % len(words)]
    for word in words:
        if not isinstance(word, bytes):
            word = str(word).encode()
        out += [b"$%d\r\n" % len(word), word, b"\r\n"]
    return b"".join(out)


class Client:
    def __init__(self, port, resp=2, timeout=300):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout)
        self.file = self.socket.makefile("rb")
        if resp == 3:
            assert isinstance(self("HELLO", 3), Map)

    def __call__(self, *words):
        self.socket.sendall(encode(*words))
        return self.read()

    def pipeline(self, commands):
        """Send many commands at once; their replies in order."""
        self.socket.sendall(b"".join(encode(*c) for c in commands))
        return [self.read() for _ in commands]

    def close(self):
        self.file.close()
        self.socket.close()

    def read(self):
        line = self.file.readline()
        if not line.endswith(b"\r\n"):
            raise ConnectionError("the server closed the connection")
        kind, rest = line[:1], line[1:-2]
        if kind == b"+":
            return Simple(rest.decode())
        if kind == b"-":
            return Error(rest.decode(errors="replace"))
        if kind == b":":
            return int(rest)
        if kind == b"#":
            return rest == b"t"
        if kind == b",":
            return float(rest)
        if kind == b"_":
            return None
        if kind == b"$":
            if int(rest) < 0:
                return None
            data = self.file.read(int(rest) + 2)
            return data[:-2]
        if kind in (b"*", b">", b"~"):
            if int(rest) < 0:
                return None
            return [self.read() for _ in range(int(rest))]
        if kind == b"%":
            return Map((self.read(), self.read()) for _ in range(int(rest)))
        raise ValueError(line)
