"""A server with RedisBloom that reads a stream or an AOF, in short Python. It takes
only what 2.8 and 8 both take, and make the same filter of; anything else raises
Refused. Its filters are as in redisbloom_data.py."""
import struct

import cuckoo_model
from redisbloom_data import FIXED, GROWS, NO_SCALING, Filter, Full, Link

MOST_CAPACITY = 2**30
MOST_EXPANSION = 32768


class Refused(Exception):
    """RedisBloom would reply an error, or do something else than was meant."""


def insist(condition, words):
    if not condition:
        raise Refused(words[:12])


def from_header(header, words):
    insist(len(header) >= 20, words)
    items, links, options, growth = struct.unpack_from("<QIII", header)
    insist(links >= 1 and len(header) == 20 + 53 * links, words)
    insist(options & ~15 == 0 and growth >= 1 or options & NO_SCALING, words)
    made = Filter(1, 0.5, options, growth)
    made.links = []
    for i in range(links):
        link = Link(1, 0.5, GROWS)
        (link.bytes, link.bits, link.items, link.error, link.bpe, link.hashes,
         link.entries, link.n2) = struct.unpack_from("<QQQddIQB", header,
                                                     20 + 53 * i)
        link.stated_bits = link.bits
        link.body = bytearray(link.bytes)
        made.links.append(link)
    insist(made.items == items, words)
    return made


def load_chunk(to, at, data, words):
    """It overwrites what is there, within one link."""
    begin = at - len(data) - 1
    for link in to.links:
        if begin < link.bytes:
            insist(begin >= 0 and begin + len(data) <= link.bytes, words)
            link.body[begin:begin + len(data)] = data
            return
        begin -= link.bytes
    raise Refused(words[:3])


def load_slots(to, at, data, words):
    """The same of a cuckoo filter."""
    begin = at - len(data) - 1
    for part in to.parts:
        if begin < len(part.slots):
            insist(begin >= 0 and begin + len(data) <= len(part.slots), words)
            part.slots[begin:begin + len(data)] = data
            return
        begin -= len(part.slots)
    raise Refused(words[:3])


class RedisBloom:
    def __init__(self):
        self.keys, self.expires, self.refused_as_full = {}, {}, 0

    def make(self, key, rate, capacity, expansion, non_scaling, words):
        """Both versions take it, and neither has to look at its settings."""
        insist(key not in self.keys, words)
        insist(0 < rate <= 0.25 and 1 <= capacity <= MOST_CAPACITY, words)
        insist(non_scaling or expansion is not None, words)
        insist(expansion is None or 1 <= expansion <= MOST_EXPANSION, words)
        self.keys[key] = Filter(capacity, rate,
                                FIXED if non_scaling else GROWS,
                                2 if expansion is None else expansion)

    def add(self, key, items, words):
        insist(key in self.keys and items, words)
        for item in items:
            try:
                self.keys[key].add(item)
            except Full:
                self.refused_as_full += 1
                return

    def reserve(self, words):
        insist(4 <= len(words) <= 7, words)
        # It would take the name for the option.
        insist(words[1].upper() not in (b"NONSCALING", b"EXPANSION"), words)
        options = [word.upper() for word in words[4:]]
        non_scaling = options == [b"NONSCALING"]
        expansion = None
        if not non_scaling and options:
            insist(len(options) == 2 and options[0] == b"EXPANSION", words)
            expansion = int(options[1])
        self.make(words[1], float(words[2]), int(words[3]), expansion,
                  non_scaling, words)

    def insert(self, words):
        options, at, create, non_scaling = {}, 2, True, False
        while at < len(words) and words[at].upper() != b"ITEMS":
            word = words[at].upper()
            if word in (b"CAPACITY", b"ERROR", b"EXPANSION"):
                insist(at + 1 < len(words), words)
                options[word] = words[at + 1]
                at += 2
                continue
            insist(word in (b"NOCREATE", b"NONSCALING"), words)
            create = create and word != b"NOCREATE"
            non_scaling = non_scaling or word == b"NONSCALING"
            at += 1
        if words[1] not in self.keys:
            insist(create and b"ERROR" in options and b"CAPACITY" in options,
                   words)
            expansion = options.get(b"EXPANSION")
            self.make(words[1], float(options[b"ERROR"]),
                      int(options[b"CAPACITY"]),
                      expansion and int(expansion), non_scaling, words)
        self.add(words[1], words[at + 1:], words)

    def chunk(self, words):
        insist(len(words) == 4, words)
        key, at, data = words[1], int(words[2]), words[3]
        if key in self.keys:
            load_chunk(self.keys[key], at, data, words)
        else:
            insist(at == 1, words)
            self.keys[key] = from_header(data, words)

    # ---- Cuckoo filters

    def cuckoo_reserve(self, words):
        """With every parameter: neither version has to look at its settings."""
        insist(len(words) == 9 and words[1] not in self.keys, words)
        capacity, *options = words[2:]
        insist([word.upper() for word in options[::2]] ==
               [b"BUCKETSIZE", b"MAXITERATIONS", b"EXPANSION"], words)
        # It would take the name for an option.
        insist(words[1].upper() not in options[::2], words)
        size, iterations, expansion = map(int, options[1::2])
        insist(2 * size <= int(capacity) <= MOST_CAPACITY, words)
        self.keys[words[1]] = cuckoo_model.Cuckoo(int(capacity), size,
                                                  iterations, expansion)

    def cuckoo_insert(self, words):
        at = 2
        while words[at].upper()[:1] != b"I":
            insist(words[at].upper()[:1] in (b"C", b"N"), words)
            at += 2 if words[at].upper()[:1] == b"C" else 1
        self.cuckoo_add(words[1], words[at + 1:], words)

    def cuckoo_add(self, key, items, words):
        insist(key in self.keys and items, words)
        only_new = words[0].upper().endswith(b"X")
        filter_ = self.keys[key]
        for item in items:
            if (filter_.add_new if only_new else filter_.add)(item) < 0:
                self.refused_as_full += 1

    def cuckoo_chunk(self, words):
        insist(len(words) == 4, words)
        key, at, data = words[1], int(words[2]), words[3]
        if at == 1:
            insist(key not in self.keys and len(data) == 38, words)
            self.keys[key] = cuckoo_model.from_header(data)
        else:
            insist(key in self.keys, words)
            load_slots(self.keys[key], at, data, words)

    def run_cuckoo(self, name, key, words):
        if name == b"CF.RESERVE":
            self.cuckoo_reserve(words)
        elif name in (b"CF.ADD", b"CF.ADDNX"):
            self.cuckoo_add(key, words[2:], words)
        elif name in (b"CF.INSERT", b"CF.INSERTNX"):
            self.cuckoo_insert(words)
        elif name == b"CF.DEL":
            insist(key in self.keys and len(words) == 3, words)
            self.keys[key].delete(words[2])
        elif name == b"CF.COMPACT":
            insist(key in self.keys and len(words) == 2, words)
            self.keys[key].compact()
        else:
            insist(name == b"CF.LOADCHUNK", words)
            self.cuckoo_chunk(words)

    def run(self, words):
        name, key = words[0].upper(), words[1] if len(words) > 1 else None
        if name in (b"SELECT", b"MULTI", b"EXEC"):
            return
        if name.startswith(b"CF."):
            self.run_cuckoo(name, key, words)
        elif name == b"BF.RESERVE":
            self.reserve(words)
        elif name == b"BF.INSERT":
            self.insert(words)
        elif name == b"BF.ADD":
            insist(len(words) == 3, words)
            self.add(key, words[2:], words)
        elif name == b"BF.MADD":
            self.add(key, words[2:], words)
        elif name == b"BF.LOADCHUNK":
            self.chunk(words)
        elif name in (b"DEL", b"UNLINK"):
            for key in words[1:]:
                self.keys.pop(key, None)
                self.expires.pop(key, None)
        elif name == b"RENAME":
            insist(key in self.keys and len(words) == 3, words)
            self.keys[words[2]] = self.keys.pop(key)
            self.expires.pop(words[2], None)
            if key in self.expires:
                self.expires[words[2]] = self.expires.pop(key)
        elif name == b"PEXPIREAT":
            insist(key in self.keys and len(words) == 3, words)
            self.expires[key] = int(words[2])
        elif name == b"PERSIST":
            self.expires.pop(key, None)
        else:
            raise Refused(words[:12])
