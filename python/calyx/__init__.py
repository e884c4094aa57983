"""Calyx: Bloom filters and their kin. "Is this key in that huge set?" answered in
a few bits a key: certainly not, or maybe.

    >>> from calyx import Filter
    >>> f = Filter(1_000_000, 0.01)
    >>> f.add("rose")
    True
    >>> "rose" in f, "tulip" in f
    (True, False)
"""
from ._calyx import (Builder, Error, Filter, Info, __version__, hashes, join,
                     kinds, plan)

__all__ = ["Builder", "Error", "Filter", "Info", "hashes", "join", "kinds",
           "plan"]
