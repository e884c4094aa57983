"""Filters as plain strings, on Redis and Valkey servers that load no module.

    >>> from calyx import plain
    >>> seen = plain.open(redis.Redis(), "seen")        # a client of redis-py
    >>> seen.add("rose")
    True
    >>> "rose" in seen, seen.has_many(["rose", "tulip"])
    (True, [True, False])

`calyx push --plain FILE URL` stores a filter. A lookup reads 64 bytes by GETRANGE, an
addition sets the bits of a key by BITFIELD; doc/FORMAT.md describes the keys. Each
piece begins with the generation of the filter, which is read after all lines: a piece
that the server has evicted is an error, never a "no".
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ._calyx import Error, Layout

_GUARD = 8  # bytes of the generation, before the bytes of the file
_LINE = 64
_HEADER = 12288  # no header is longer
_MOST = 1000  # keys in a pipeline
_TRIES = 100


def open(client: Any, name: str | bytes, *, key: bytes | None = None) -> PlainFilter:
    """The filter under the key `name` of a server. `client` is a client of redis-py or
    valkey-py, or one of theirs for a cluster; `key` the secret key of the filter."""
    return PlainFilter(client, name, key=key)


def _text(value: bytes | str | None) -> str:
    return value.decode() if isinstance(value, bytes) else value or ""


class _Generation:
    """What was pushed at one time: it is replaced, never changed."""

    def __init__(self, name: bytes, fields: list[Any]) -> None:
        version, generation, size, piece = map(_text, fields)
        if not generation:
            raise Error("there is no filter under this key")
        if not version:
            raise Error("the filter under this key is not complete: it is being pushed, "
                        "or a part of it was lost; push it again")
        if version != "1":
            raise Error("the filter has a layout that this version of calyx does not know")
        self.id = generation
        try:
            self.bytes, self.piece = int(size), int(piece)
        except ValueError:
            self.bytes = self.piece = 0
        if len(generation) != _GUARD or self.bytes <= 0 or (
                self.piece <= 0 or self.piece % _LINE):
            raise Error("the hash under this key does not describe a plain filter")
        self.prefix = name + b":" + generation.encode() + b":"
        self.announced = False
        self.layout: Layout

    def string(self, piece: int) -> bytes:
        return self.prefix + b"%d" % piece

    def place(self, at: int) -> tuple[int, int]:
        """The piece that has a byte of the file, and where in its string."""
        piece, offset = divmod(at, self.piece)
        return piece, _GUARD + offset


class PlainFilter:
    """A filter in a server. A key is what it is to calyx.Filter. Threads may share it
    if they may share the client."""

    def __init__(self, client: Any, name: str | bytes, *, key: bytes | None = None) -> None:
        self._client = client
        self._name = name.encode() if isinstance(name, str) else bytes(name)
        self._key = key
        self._now = self._load(None)

    # ---- Opening ----

    def _load(self, lost: str | None) -> _Generation:
        """The filter that is there. One that has lost pieces is an error."""
        for _ in range(_TRIES):
            now = _Generation(self._name, self._client.execute_command(
                "HMGET", self._name, "calyx", "generation", "bytes", "piece"))
            if now.id == lost:
                raise Error("pieces of the filter are missing: the server evicted or "
                            "lost them; push it again")
            first = self._read(now, 0, min(now.bytes, _HEADER))
            if first is not None:
                now.layout = Layout(first, key=self._key)
                if now.layout.file_bytes != now.bytes:
                    raise Error("damaged: the hash and the header say other sizes")
                if self._take_list(now):
                    return now
            lost = now.id
        raise Error("the filter is replaced faster than it can be read")

    def _take_list(self, now: _Generation) -> bool:
        if now.layout.list is None:
            return True
        at, size = now.layout.list
        data = self._read(now, at, size)
        if data is not None:
            now.layout.take_list(data)
        return data is not None

    def _read(self, now: _Generation, at: int, size: int) -> bytes | None:
        """Bytes of the file; None if they are gone."""
        commands = []
        end = at + size
        while at < end:
            piece, offset = now.place(at)
            some = min(end - at, now.piece - at % now.piece)
            commands.append((piece, "GETRANGE", offset, offset + some - 1))
            at += some
        replies, lost = self._run(now, commands)
        data = b"".join(replies)
        return None if lost or len(data) < size else data

    # ---- Commands ----

    def _run(self, now: _Generation, commands: list[tuple]) -> tuple[list, list[int]]:
        """Replies to commands about pieces, and the pieces that lack their guard, which
        is read after everything else."""
        pieces = sorted({command[0] for command in commands})
        pipe = self._client.pipeline(transaction=False)
        for piece, name, *words in [*commands, *((p, "GETRANGE", 0, _GUARD - 1) for p in pieces)]:
            pipe.execute_command(name, now.string(piece), *words, NEVER_DECODE=[])
        replies = pipe.execute(raise_on_error=False)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        guards = replies[len(commands):]
        return replies[:len(commands)], [
            piece for piece, guard in zip(pieces, guards) if guard != now.id.encode()]

    # ---- Lookups ----

    def _look(self, now: _Generation, keys: list, hashes: list[int], parts: int) -> list | None:
        """Answers from the first parts; None if the filter was replaced."""
        found, active = [False] * len(keys), [(i, 0) for i in range(len(keys))] if parts else []
        while active:
            places = [now.layout.lines(part, hashes[i]) for i, part in active]
            if not all(places):
                raise Error(f"a lookup in a {now.layout.info.kind} filter learns what to read "
                            "only while it reads; pull it, and query the file")
            replies, lost = self._run(now, [
                (piece, "GETRANGE", offset, offset + _LINE - 1)
                for lines in places for piece, offset in map(now.place, lines)])
            if lost or any(len(reply) != _LINE for reply in replies):
                return None
            lines, left = iter(replies), []
            for (i, part), at in zip(active, places):
                has, part = now.layout.answer(part, hashes[i], b"".join(next(lines) for _ in at))
                found[i] ^= has
                if 0 < part < parts:
                    left.append((i, part))
            active = left
        return found

    def _has(self, now: _Generation, keys: list) -> list[bool] | None:
        layout, found = now.layout, []
        for some in _chunks(keys):
            answers = self._look(now, some, list(map(layout.hash, some)), layout.info.parts)
            if answers is None:
                return None
            found += [answer and not layout.allows(key) for key, answer in zip(some, answers)]
        return found

    def has_many(self, keys: Iterable) -> list[bool]:
        """Was each key added? All answers are of one generation of the filter."""
        keys = list(keys)
        while True:
            now = self._now
            found = self._has(now, keys)
            if found is not None:
                return found
            self._now = self._load(now.id)

    def has(self, key: Any) -> bool:
        """Was this key added? False is certain."""
        return self.has_many([key])[0]

    __contains__ = has

    # ---- Additions ----

    def _set(self, now: _Generation, hashes: list[int]) -> tuple[list[bool], list[int]]:
        commands = []
        newest = now.layout.info.parts - 1
        for hash in hashes:
            at, bits = now.layout.bits(newest, hash)
            piece, offset = now.place(at)
            words = [word for bit in bits for word in ("SET", "u1", 8 * offset + bit, 1)]
            commands.append((piece, "BITFIELD", *words))
        replies, lost = self._run(now, commands)
        return [0 in old for old in replies], lost

    def _announce(self, now: _Generation) -> None:
        """Say that keys are added: checksums no longer fit."""
        if not now.announced:
            self._client.execute_command("HSET", self._name, "changed:" + now.id, 1)
            now.announced = True

    def _is_current(self, now: _Generation) -> bool:
        generation = _text(self._client.execute_command("HGET", self._name, "generation"))
        if not generation:  # the hash is gone, except what _announce wrote
            self._client.execute_command("HDEL", self._name, "changed:" + now.id)
            raise Error("there is no filter under this key any more")
        return generation == now.id

    def _add(self, now: _Generation, keys: list) -> list[bool] | None:
        """Which keys were not there; None if the filter was replaced, perhaps before they
        were added."""
        info, layout = now.layout.info, now.layout
        if layout.list or info.strict:
            raise Error("a filter with an allow list, or one that lets no more in than its "
                        "capacity, cannot be added to as plain strings")
        hashes = list(map(layout.hash, keys))
        older = self._look(now, keys, hashes, info.parts - 1)
        if older is None:
            return None
        self._announce(now)
        fresh, lost = self._set(now, [h for h, there in zip(hashes, older) if not there])
        for piece in lost:  # what was added to it has made it anew, without the rest
            self._client.execute_command("UNLINK", now.string(piece))
        if lost or not self._is_current(now):
            return None
        if any(fresh):
            self._client.execute_command("HINCRBY", self._name, "items", sum(fresh))
        new = iter(fresh)
        return [not there and next(new) for there in older]

    def _add_some(self, keys: list) -> list[bool]:
        while True:
            now = self._now
            fresh = self._add(now, keys)
            if fresh is not None:
                return fresh
            self._now = self._load(now.id)

    def add_many(self, keys: Iterable) -> int:
        """Add every key. Return how many were not in the filter before."""
        return sum(sum(self._add_some(some)) for some in _chunks(list(keys)))

    def add(self, key: Any) -> bool:
        """Add a key. Return whether it was not in the filter: True is certain."""
        return self._add_some([key])[0]


def _chunks(keys: list) -> Iterator[list]:
    for i in range(0, len(keys), _MOST):
        yield keys[i:i + _MOST]
