"""Filters of Dask collections: hashed where the keys are, shuffled by range, built in
parts by the workers, joined into the file that one 'calyx build' would have made.

    import calyx.dask
    calyx.dask.build(bag, "big.calyx", fpr=0.01)          # or a series
    seen = calyx.dask.isin(series, "big.calyx")           # a series of bool, lazy

Needs dask and numpy; importing this module does not. A worker that is lost is
retried by Dask: all tasks are pure functions. doc/CLUSTER.md says how to choose parts.
"""
import functools
import os
import shutil
import tempfile

from . import Builder, Filter, join, plan
from .parts import margin_of, start_of

__all__ = ["build", "isin"]

PARTS_MOST = 1024  # tasks are partitions times parts
PART_BYTES = 256 << 20  # of the filter, by default at most, in one part
# A part has at least this much, or blocks would be too large for its margin.
LEAST_KEYS_STATIC, LEAST_BYTES = 280_000, 4096


# ---- Parts ------------------------------------------------------------------------


def _most_parts(planned):
    if "static" in planned.can:
        return max(1, planned.capacity // LEAST_KEYS_STATIC)
    return max(1, planned.bytes // LEAST_BYTES)


# ---- In the workers ---------------------------------------------------------------


def _hasher(options):
    """A small filter that hashes as the large one does."""
    same = {name: options[name] for name in ("hash", "seed", "key") if name in options}
    if "hash" not in same and "key" not in same:
        same["hash"] = plan(1000, 0.01, kind=options.get("kind")).hash
    return Filter(1, **same)


def _keys_of(partition):
    """What has_many and hash_many take: integers as they are, all else as a list."""
    import numpy

    values = partition.to_numpy() if hasattr(partition, "to_numpy") else list(partition)
    is_number = isinstance(values, numpy.ndarray) and values.dtype.kind in "iu"
    return numpy.ascontiguousarray(values) if is_number else list(values)


def _hash(partition, options, parts):
    """The hashes of a partition, by part, in the order of the keys. A part also gets
    the hashes after its range that are near."""
    import numpy

    hashes = numpy.frombuffer(_hasher(options).hash_many(_keys_of(partition)),
                              dtype=numpy.uint64)
    starts = numpy.array([start_of(i + 1, parts) for i in range(parts)], dtype=numpy.uint64)
    part = numpy.searchsorted(starts, hashes, side="right") - 1
    is_near = (part > 0) & (hashes - starts[part] < numpy.uint64(margin_of(parts)))
    at = numpy.concatenate([numpy.arange(hashes.size), numpy.flatnonzero(is_near)])
    goes_to = numpy.concatenate([part, part[is_near] - 1])
    order = numpy.lexsort((at, goes_to))
    ends = numpy.cumsum(numpy.bincount(goes_to, minlength=parts))
    return numpy.split(hashes[at[order]], ends[:-1])


def _count(number, parts, pieces):
    """How many different hashes are in the range of a part."""
    import numpy

    distinct = numpy.unique(numpy.concatenate(pieces))
    end = start_of(number + 1, parts) - 1
    return int((distinct <= numpy.uint64(end)).sum())


def _build_part(number, parts, keys, options, pieces):
    """The bytes of one part file."""
    with tempfile.TemporaryDirectory() as folder:
        builder = Builder(keys, part=number, parts=parts, folder=folder, **options)
        hasher = _hasher(options)
        hasher.set_property("key-options", "")  # keys are whole lines, for calyx check
        builder.copy_texts(hasher)
        end, has = start_of(number + 1, parts), builder.range()
        if number < parts and has and has[1] - end >= margin_of(parts):
            raise ValueError(f"the filter is too small for {parts} parts: use fewer")
        for hashes in pieces:
            builder.add_hashes(hashes)
        path = os.path.join(folder, "part")
        builder.save(path)
        with open(path, "rb") as file:
            return file.read()


@functools.lru_cache(maxsize=4)
def _open(path, size, changed, key):
    """A mapped filter, once for each worker and version of the file."""
    return Filter.open(path, key=key)


def _isin(partition, path, key):
    import numpy
    import pandas

    is_now = os.stat(path)
    found = _open(path, is_now.st_size, is_now.st_mtime_ns, key).has_many(_keys_of(partition))
    return pandas.Series(numpy.frombuffer(found, dtype=bool), index=partition.index,
                         name=partition.name)


# ---- At the client ----------------------------------------------------------------


def build(data, path, fpr=0.01, *, kind=None, n=None, parts=None, **options):
    """Build the filter of all keys of a bag or a series, and save it to `path`.

    Keys are str (their UTF-8), bytes, or integers (their 8 bytes). `n` is the number
    of distinct keys; without it, and for static kinds, they are counted first. The
    default of `parts` is one for each partition, more if they had over 256 MiB, and
    fewer for small filters.
    calyx.Builder has the further options: hash, seed, key, bits, probes.

    The file equals the file of one 'calyx build -n' of the keys as lines, in the order of
    the partitions, byte for byte. The parts come to this process one after the other, to files beside
    `path`, and are joined; `path` appears when it is complete.
    """
    import dask

    options = {name: value for name, value in
               {"p": fpr, "kind": kind, **options}.items() if value is not None}
    planned = plan(n or 1000, **options)
    if "parts" not in planned.can:
        raise ValueError(f"filters of kind {planned.kind} cannot be made of parts")
    partitions = data.to_delayed()
    wanted = parts or min(len(partitions), PARTS_MOST)
    if n:
        wanted = parts or min(max(wanted, planned.bytes // PART_BYTES), _most_parts(planned))
    if not 1 <= wanted <= PARTS_MOST:
        raise ValueError(f"parts: expected 1 to {PARTS_MOST}, found {wanted}")
    rows = _rows(partitions, options, wanted)
    if not n or "static" in planned.can:
        # The hashes stay with the workers while they are counted.
        rows = list(map(list, dask.persist(*rows)))
        count = dask.delayed(_count, pure=True)
        n = max(1, sum(dask.compute(*[count(i + 1, wanted, [row[i] for row in rows])
                                      for i in range(wanted)])))
        most = _most_parts(plan(n, **options))
        if not parts and most < wanted:
            wanted = most
            rows = _rows(partitions, options, wanted)
    make = dask.delayed(_build_part, pure=True)
    _join([make(i + 1, wanted, n, options, [row[i] for row in rows])
           for i in range(wanted)], path)


def _rows(partitions, options, parts):
    """For each partition, its hashes by part."""
    import dask

    hash_it = dask.delayed(_hash, pure=True, nout=parts)
    return [list(hash_it(partition, options, parts)) for partition in partitions]


def _join(tasks, path):
    """Bring the parts here as they are complete, and join them."""
    folder = tempfile.mkdtemp(prefix=os.path.basename(path) + ".",
                              dir=os.path.dirname(os.path.abspath(path)))
    try:
        names = [os.path.join(folder, f"{i + 1}.part") for i in range(len(tasks))]
        for name, part in _in_turn(names, tasks):
            with open(name, "wb") as file:
                file.write(part)
        join(names, os.path.join(folder, "joined"))
        os.replace(os.path.join(folder, "joined"), path)
    finally:
        shutil.rmtree(folder)


def _in_turn(names, tasks):
    """With a client each part is here alone, and gone from its worker after that."""
    import dask

    try:
        from distributed import as_completed, get_client
        client = get_client()
    except (ImportError, ValueError):  # the scheduler of this process
        yield from zip(names, dask.compute(*tasks))
        return
    futures = dict(zip(client.compute(tasks), names))
    for future in as_completed(list(futures)):
        yield futures.pop(future), future.result()
        future.release()


def isin(series, path, *, key=None):
    """Of each key of a Dask series: is it in the filter file? Lazy, a series of bool.
    Workers map the file, which all of them see under this path."""
    return series.map_partitions(_isin, os.path.abspath(path), key,
                                 meta=(series.name, bool))
