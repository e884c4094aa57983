"""A relay between the command and a server, which breaks connections; and a server
that is made up."""
import socket
import threading


class Relay:
    """Between the command and the server; breaks a connection after `most`
    bytes, again and again, or closes all that follow at once."""

    def __init__(self, port, most, again=True):
        self.to, self.most, self.again, self.broken = port, most, again, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            try:
                if self.broken and not self.again:
                    raise OSError
                server = socket.create_connection(("127.0.0.1", self.to))
            except OSError:
                client.close()
                continue
            left = [self.most]
            for pair in ((client, server), (server, client)):
                threading.Thread(target=self.copy, args=(*pair, left),
                                 daemon=True).start()

    def breaks(self):
        """Whether it is the relay that ends the connection now."""
        return True

    def weight(self, data):
        """What these bytes count."""
        return len(data)

    def copy(self, source, target, left):
        try:
            while data := source.recv(65536):
                left[0] -= self.weight(data)
                if left[0] < 0:
                    self.broken += 1
                    if self.breaks():
                        break
                target.sendall(data)
        except OSError:
            pass
        # Closed, too: one that is only shut down and still full lets the other
        # side wait until it may write again.
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

    def close(self):
        self.listener.close()


class Acting(Relay):
    """Does something before the server gets these bytes for the first time, and breaks
    the connection then if that returns True."""

    def __init__(self, port, bytes, act):
        super().__init__(port, 0)
        self.bytes, self.act, self.acted = bytes, act, False

    def weight(self, data):
        if self.acted or self.bytes not in data:
            return 0
        self.acted = True
        return 1 if self.act() else 0


def losing(server, command):
    """A relay to a server that is killed before it takes this command, and begins anew,
    with what it has saved."""
    def begin_anew():
        server.kill()
        server.start(port=server.port)
        return True
    return Acting(server.port, b"\r\n%s\r\n" % command, begin_anew)


class Strange:
    """A server that answers by a function; None closes the connection. Asked
    for the slots of a cluster, it says the same each time; and for the TYPE of a key,
    if that is given."""

    def __init__(self, answer, slots=b"*0\r\n", type=None):
        self.answer = answer
        self.always = {b"CLUSTER": slots, **({b"TYPE": type} if type else {})}
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def __enter__(self):
        threading.Thread(target=self.accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.listener.close()

    def accept(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(peer,),
                             daemon=True).start()

    def serve(self, peer):
        try:
            self.answer_all(peer)
        except OSError:  # the command has heard enough
            pass

    def answer_all(self, peer):
        with peer, peer.makefile("rb") as stream:
            while line := stream.readline():
                words = []
                for _ in range(int(line[1:])):
                    size = int(stream.readline()[1:])
                    words.append(stream.read(size + 2)[:-2])
                answer = self.always.get(words[0]) or self.answer(words, self.port)
                if answer is None:
                    return
                peer.sendall(answer)
