from array import array
from collections.abc import Iterable
from os import PathLike
from types import TracebackType
from typing import Any, Literal, NamedTuple, Protocol, Self

__version__: str

Key = str | bytes | bytearray | memoryview | int

class ArrowArray(Protocol):
    def __arrow_c_array__(self, requested_schema: object | None = ...) -> tuple[object, object]: ...

# Also numpy's arrays of uint64 and int64, by the buffer protocol.
Keys = Iterable[Key] | array[int] | memoryview | ArrowArray

class Error(Exception): ...

class Info(NamedTuple):
    kind: str
    kernel: str
    hash: str
    seed: int
    capacity: int
    items: int
    bits: int
    bytes: int
    parts: int
    probes: int
    growth: float
    fpr: float
    fpr_now: float
    fill: float
    distinct: float
    strict: bool
    concurrent: bool
    read_only: bool
    can: frozenset[str]

class Filter:
    def __new__(
        cls,
        n: int | None = None,
        p: float | None = None,
        *,
        kind: str | None = None,
        bits: int | None = None,
        probes: int | None = None,
        hash: str | None = None,
        seed: int = 0,
        key: bytes | None = None,
        growth: float = 0,
        strict: bool = False,
        concurrent: bool = False,
    ) -> Self: ...
    @classmethod
    def open(
        cls,
        path: str | bytes | PathLike[Any],
        *,
        write: bool = False,
        key: bytes | None = None,
        verify: Literal["lazy", "whole", "none"] = "lazy",
    ) -> Self: ...
    @classmethod
    def load(cls, path: str | bytes | PathLike[Any], *, key: bytes | None = None) -> Self: ...
    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, *, key: bytes | None = None) -> Self: ...
    def add(self, key: Key, /) -> bool: ...
    def add_many(self, keys: Keys, /) -> int: ...
    def has_many(self, keys: Keys, /) -> memoryview: ...
    def remove(self, key: Key, /) -> bool: ...
    def remove_many(self, keys: Keys, /) -> int: ...
    def count(self, key: Key, /) -> int: ...
    def to_bytes(self) -> bytes: ...
    def save(self, path: str | bytes | PathLike[Any], /) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...
    def verify(self) -> None: ...
    def copy(self) -> Self: ...
    def clear(self) -> None: ...
    @property
    def info(self) -> Info: ...
    comment: str
    def __contains__(self, key: Key, /) -> bool: ...
    def __len__(self) -> int: ...
    def __bool__(self) -> Literal[True]: ...
    def __ior__(self, other: Filter, /) -> Self: ...
    def __iand__(self, other: Filter, /) -> Self: ...
    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        type: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...

class Builder:
    def __new__(
        cls,
        n: int | None = None,
        p: float | None = None,
        *,
        kind: str | None = None,
        bits: int | None = None,
        probes: int | None = None,
        hash: str | None = None,
        seed: int = 0,
        key: bytes | None = None,
        growth: float = 0,
        strict: bool = False,
        concurrent: bool = False,
        memory: int | None = None,
        folder: str | bytes | PathLike[Any] | None = None,
        threads: int = 0,
    ) -> Self: ...
    def add(self, key: Key, /) -> None: ...
    def add_many(self, keys: Keys, /) -> int: ...
    def finish(self) -> Filter: ...
    def save(self, path: str | bytes | PathLike[Any], /) -> None: ...

def plan(
    n: int | None = None,
    p: float | None = None,
    *,
    kind: str | None = None,
    bits: int | None = None,
    probes: int | None = None,
    hash: str | None = None,
    seed: int = 0,
    key: bytes | None = None,
    growth: float = 0,
    strict: bool = False,
    concurrent: bool = False,
) -> Info: ...
def kinds() -> list[str]: ...
def hashes() -> list[str]: ...
