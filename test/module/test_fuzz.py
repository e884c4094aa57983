"""Bytes and arguments from people who mean harm, or make mistakes: the server
lives, its memory is as before, and there are error replies only.

CALYX_FUZZ sets the number of payloads; `make check` tries 200,000."""
import itertools
import os
import random
import struct
import sys

import pytest
from command import kinds_that
from cuckoo_model import Cuckoo
from cuckoo_model import payload as cuckoo_payload
from redisbloom_data import body, cases, dump_payload, payload_values, seal
from resp import Error, encode
from servers import dump, info
from valkey_bloom_model import Bloom

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..",
                                "examples"))
from xxh import xxh3, xxh64  # noqa: E402

COUNT = int(os.environ.get("CALYX_FUZZ", "3000"))

VALUES = ["", "0", "-0", "1", "-1", "2", "0.5", "1.5", "nan", "-nan", "inf",
          "-inf", "1e400", "1e-400", "1e-300", "1e308", "0x10", " 1", "1 ",
          "4294967296", "1073741825", "1099511627776", "1099511627777",
          "9223372036854775807", "9223372036854775808",
          "18446744073709551615", "18446744073709551616", "-9223372036854775808",
          "junk", "\0", "a\r\nb", "%s%n", "é", "k" * 300, "CAPACITY", "ITEMS",
          "ERROR", "EXPANSION", "NONSCALING", "NOCREATE", "SEED", "KIND",
          "LAYOUT", "GENERATION", "COUNTING", "WINDOW", "GENERATIONS", "BEGAN",
          "native", "redisbloom", "valkey-bloom", "TIGHTENING",
          "VALIDATESCALETO", "s" * 32, "MAXSCALEDCAPACITY", "line", "counting", "flat",
          "BEGIN", "CHUNK", "COMMIT", "STATUS", "0" * 16,
          "BUCKETSIZE", "MAXITERATIONS", "255", "65536"]
KEYS = ["", "k", "c", "cpart", "cnative", "ns", "count", "win", "valkey", "part", "begun", "str", "CAPACITY",
        "NONSCALING", "EXPANSION", "ITEMS", "\0"]


@pytest.fixture
def quiet(start):
    """A server that refuses what is large, so that nothing takes long."""
    return start("calyx-max-filter-bytes", 50 << 20)


def test_random_arguments(quiet):
    r = quiet.client()
    generator = random.Random(11)
    commands = sorted(r("COMMAND", "LIST", "FILTERBY", "MODULE", "bf"))
    for turn in range(max(20, COUNT // 300)):
        r("FLUSHALL")
        r("SET", "str", "x")
        r("BF.ADD", "k", "a")
        r("BF.RESERVE", "ns", 0.01, 3, "NONSCALING")
        r("BF.INSERT", "count", "COUNTING", "ITEMS", *VALUES)
        r("BF.INSERT", "win", "WINDOW", 5, "ITEMS", *VALUES)
        r("BF.INSERT", "valkey", "TIGHTENING", 0.5, "ITEMS", *VALUES)
        r("BF.LOADCHUNK", "part", *r("BF.SCANDUMP", "k", 0))
        r("BF.RESTORE", "begun", "BEGIN", *r("BF.DUMP", "k", 0)[1:])
        r("CF.INSERT", "c", "CAPACITY", 8, "ITEMS", *VALUES)
        r("CF.LOADCHUNK", "cpart", *r("CF.SCANDUMP", "c", 0))
        r("CF.INSERT", "cnative", "ERROR", 0.1, "CAPACITY", 8, "ITEMS", *VALUES)
        batch = [[generator.choice(commands), generator.choice(KEYS)] +
                 [generator.choice(VALUES)
                  for _ in range(generator.randrange(9))]
                 for _ in range(300)]
        answers = r.pipeline(batch)
        assert len(answers) == 300 and quiet.alive(), turn


def test_options_in_every_order_with_every_value(quiet):
    r = quiet.client()
    for value in VALUES:
        for option in ("CAPACITY", "ERROR", "EXPANSION", "SEED", "KIND",
                       "LAYOUT", "WINDOW", "TIGHTENING", "VALIDATESCALETO"):
            r("DEL", "k")
            answer = r("BF.INSERT", "k", option, value, "ITEMS", "a")
            assert answer == [1] or isinstance(answer, Error)
            assert r("EXISTS", "k") == (answer == [1])
        r("DEL", "k")
        for words in ((value, 100), (0.01, value)):
            answer = r("BF.RESERVE", "k", *words)
            assert answer == "OK" or isinstance(answer, Error)
            r("DEL", "k")


def test_items_and_keys_of_every_size(quiet):
    r = quiet.client()
    for size in (0, 1, 16, 17, 128, 129, 240, 241, 65536, 64 << 20):
        item = b"\xff" * size
        for layout in ("native", "redisbloom", "valkey-bloom"):
            r("BF.INSERT", f"k{layout}", "LAYOUT", layout, "ITEMS", item)
            assert r("BF.EXISTS", f"k{layout}", item) == 1
    assert r("BF.ADD", "", "") == 1 and r("BF.EXISTS", "", "") == 1
    assert r("BF.ADD", b"\xff" * (1 << 20), "x") == 1


# ---- Payloads --------------------------------------------------------------

def native_samples(r):
    """Payloads of native filters, whole and partly loaded, without their version
    and checksum."""
    r("CONFIG", "SET", "rdbcompression", "no")
    out = []
    for kind in kinds_that("can_add"):
        for capacity, n, how in ((10, 5, ()), (10, 200, ()),
                                 (20, 20, ("NONSCALING",))):
            r("DEL", "k")
            r("BF.INSERT", "k", "KIND", kind, "CAPACITY", capacity, *how,
              "ERROR", 0.1, "ITEMS", *range(n))
            out.append(body(r("DUMP", "k")))
            r("BF.LOADCHUNK", "p", *r("BF.SCANDUMP", "k", 0))
            out.append(body(r("DUMP", "p")))
            r("DEL", "p")
            cursor, *head = r("BF.DUMP", "k", 0)
            r("BF.RESTORE", "p", "BEGIN", *head)
            out.append(body(r("DUMP", "p")))
            r("BF.RESTORE", "p", "CHUNK", 0, *r("BF.DUMP", "k", cursor)[1:])
            out.append(body(r("DUMP", "p")))
            r("DEL", "p")
    r("DEL", "k")
    return out


def window_samples(r):
    """Whole, and partly loaded."""
    out = []
    for generations, n in ((1, 5), (2, 100), (6, 20)):
        r("BF.INSERT", "k", "CAPACITY", 20, "WINDOW", 1000, "GENERATIONS",
          generations, "ITEMS", *range(n))
        r("BF.LOADCHUNK", "p", *r("BF.SCANDUMP", "k", 0))
        out += [body(r("DUMP", "k")), body(r("DUMP", "p"))]
        r("DEL", "k", "p")
    return out


def valkey_samples(r):
    """Whole, grown, and partly loaded."""
    out = []
    for n, how in ((5, ()), (100, ("EXPANSION", 3)), (10, ("NONSCALING",))):
        r("BF.INSERT", "k", "TIGHTENING", 0.5, "CAPACITY", 10, *how, "ITEMS",
          *range(n))
        r("BF.LOADCHUNK", "p", *r("BF.SCANDUMP", "k", 0))
        out += [body(r("DUMP", "k")), body(r("DUMP", "p"))]
        r("DEL", "k", "p")
    return out


def rebuild_samples(r):
    """Filters of each layout for which a rebuild is open."""
    out = []
    for how in ((), ("COUNTING",), ("WINDOW", 1000), ("LAYOUT", "redisbloom"),
                ("LAYOUT", "valkey-bloom")):
        r("BF.RESERVE", "k", 0.1, 10, *how)
        r("BF.REBUILD", "k", "BEGIN", "MOST", 10000)
        out.append(body(r("DUMP", "k")))
        r("BF.MADD", "k", *range(3), "a" * 70, 1)
        out.append(body(r("DUMP", "k")))
        r("DEL", "k")
    return out


def samples(r):
    return (native_samples(r) + window_samples(r) + valkey_samples(r) +
            rebuild_samples(r) +
            [body(case.payload()) for case in cases()
             if len(case.payload()) < 1000])


INTERESTING = [0, 1, 2, 3, 63, 64, 127, 128, 255, 2**14, 2**31 - 1, 2**31,
               2**32 - 1, 2**32, 2**44, 2**61, 2**63 - 1, 2**63, 2**64 - 1]


def mutated(generator, data):
    data = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 2, 4))):
        way, at = generator.randrange(8), generator.randrange(10, len(data))
        if way < 3:
            data[at] ^= 1 << generator.randrange(8)
        elif way == 3:
            data[at] = generator.choice((0, 1, 0x7F, 0x80, 0x81, 0xC0, 0xFF))
        elif way == 4:
            del data[at:at + generator.choice((1, 2, 8, len(data)))]
        elif way == 5:
            data[at:at] = bytes(data[at:at + generator.randrange(1, 70)])
        elif way == 6:
            data[at:at + 8] = struct.pack("<Q", generator.choice(INTERESTING))
        else:
            data[at:at + 8] = struct.pack("<d", generator.choice(
                (0.0, -1.0, 1.0, 1e-300, 1e300, float("nan"), float("inf"))))
        if len(data) < 12:
            data += bytes(12)
    return bytes(data)


PROBES = [("BF.MEXISTS", "k", "a", "1", "2"), ("BF.GUARD", "k", "a", "c"),
          ("BF.MDEL", "k", "1", "2"), ("CF.INFO", "k"), ("CF.COUNT", "k", "1"),
          ("CF.INSERT", "k", "ITEMS", *range(40)), ("CF.DEL", "k", "1"), ("BF.ROTATE", "k", 1, 9 * 10**12),
          ("BF.INFO", "k"), ("BF.INFO", "k", "RECORDED"),
          ("BF.SWAP", "k", "l", "REBUILD", 1), ("BF.REBUILD", "k", "BEGIN"),
          ("BF.DEBUG", "k"), ("BF.CARD", "k"), ("BF.MADD", "k", "x", "y"),
          ("BF.SCANDUMP", "k", 0), ("BF.SCANDUMP", "k", 1),
          ("MEMORY", "USAGE", "k"), ("DUMP", "k"),
          ("DEBUG", "DIGEST-VALUE", "k"), ("COPY", "k", "l", "REPLACE")]


def used(r):
    r("FLUSHALL")
    return int(info(r, "memory")["used_memory"])


def survives(server, payloads, probes):
    """Damaged payloads, and commands on what is accepted of them. How many were."""
    r = server.client()
    before, accepted = used(r), 0
    while batch := list(itertools.islice(payloads, 500)):
        commands = []
        for payload in batch:
            commands += [("DEL", "k"), ("RESTORE", "k", 0, payload), *probes]
        for answer in r.pipeline(commands)[1::2 + len(probes)]:
            assert answer == "OK" or isinstance(answer, Error)
            accepted += answer == "OK"
    assert server.alive(), server.text()[-3000:]
    assert used(r) < before + (4 << 20)
    return accepted


def test_damaged_payloads(quiet):
    r = quiet.client()
    generator = random.Random(5)
    good = samples(r)
    for sample in good:
        assert r("RESTORE", "k", 0, seal(sample), "REPLACE") == "OK"
    accepted = survives(quiet, (
        seal(mutated(generator, generator.choice(good))) for _ in range(COUNT)),
        PROBES)
    assert accepted < COUNT  # most are refused; bits that changed cannot be seen


# ---- Cuckoo filters ----------------------------------------------------------

CUCKOO_PROBES = [
    ("CF.MEXISTS", "k", "a", "1", "2"), ("CF.COUNT", "k", "1"),
    ("CF.INFO", "k"), ("CF.DEBUG", "k"), ("CF.SCANDUMP", "k", 0),
    ("CF.SCANDUMP", "k", 1), ("CF.INSERT", "k", "ITEMS", *range(40)),
    ("CF.INSERTNX", "k", "ITEMS", *range(20, 60)), ("CF.DEL", "k", "1"),
    ("CF.DEL", "k", "2"), ("CF.COMPACT", "k"), ("DUMP", "k"),
    ("MEMORY", "USAGE", "k"), ("DEBUG", "DIGEST-VALUE", "k"),
    ("COPY", "k", "l", "REPLACE")]


def cuckoo_samples():
    """Filters of a few bytes: full, grown, empty, of large buckets."""
    for capacity, how, n in ((8, {}, 0), (8, {}, 6), (8, {"expansion": 2}, 60),
                             (16, {"expansion": 0}, 16),
                             (40, {"bucket_size": 9}, 100),
                             (4, {"bucket_size": 1, "iterations": 500}, 40)):
        made = Cuckoo(capacity, **how)
        for i in range(n):
            made.add(b"%d" % i)
        yield made


def with_other_numbers(generator, fields):
    """The values of a filter, a number or a string of them another; now and then
    as of a filter that is partly loaded."""
    fields = list(fields)
    if generator.random() < 0.3:
        fields = [0, generator.randrange(40)] + fields
    for _ in range(generator.choice((1, 1, 2, 3))):
        at = generator.randrange(len(fields))
        if isinstance(fields[at], bytes):
            size = generator.choice((0, 1, len(fields[at]), len(fields[at]) + 1,
                                     2 * len(fields[at])))
            fields[at] = generator.choice((generator.randbytes(size),
                                           bytes(size)))
        else:
            fields[at] = generator.choice(INTERESTING + [
                4, 5, 20, 256, 257, 65535, 65536, fields[at] * 2 % 2**64])
    if generator.random() < 0.1:
        del fields[generator.randrange(len(fields))]
    return fields


def test_damaged_payloads_of_cuckoo_filters(quiet):
    generator = random.Random(9)
    good = list(cuckoo_samples())
    r = quiet.client()
    for made in good:
        assert r("RESTORE", "k", 0, made.payload(), "REPLACE") == "OK"

    def damaged(i):
        made = generator.choice(good)
        if i % 2:
            return seal(mutated(generator, body(made.payload())))
        return cuckoo_payload(with_other_numbers(generator, made.fields()))

    assert 0 < survives(quiet, map(damaged, range(COUNT)),
                        CUCKOO_PROBES) < COUNT


def test_damaged_dumps_of_cuckoo_filters(quiet):
    r = quiet.client()
    generator = random.Random(10)
    dumps = [list(made.chunks()) for made in cuckoo_samples() if made.items]
    before = used(r)
    for _ in range(0, COUNT, 250):
        commands = []
        for _ in range(250):
            commands.append(("DEL", "k"))
            for at, data in generator.choice(dumps):
                if generator.random() < 0.4:
                    data = mutated(generator, bytes(10) + data)[10:]
                if generator.random() < 0.1:
                    at = generator.choice((0, -1, 1, 2, at + 1, at - 1,
                                           2**63 - 1, -2**63))
                commands.append(("CF.LOADCHUNK", "k", at, data))
            commands += CUCKOO_PROBES
        r.pipeline(commands)
    assert quiet.alive(), quiet.text()[-3000:]
    assert used(r) < before + (4 << 20)


# ---- Payloads with their checksums repaired -----------------------------------
# Most of what is changed at random is stopped by the first checksum. Here those
# inside of a filter (doc/FORMAT.md) are made right again, so that changes reach
# what lies after them.

def store(data, at, number):
    data[at:at + 8] = struct.pack("<Q", number)


def load(data, at, form="<Q"):
    return struct.unpack_from(form, data, at)[0]


def repair_header(data, size):
    store(data, size - 8, xxh3(bytes(data[:size - 8])))


def repair_file(data, places):
    """All sums of a file whose sections are where they were: the header's, of
    each body of less than 1 MiB, of the tables, and of both slots."""
    header, bodies, tables, slots = places
    repair_header(data, header)
    for i, (at, size) in enumerate(bodies):
        store(data, tables + 8 * i, xxh3(bytes(data[at:at + size]), i))
    for slot in slots:
        if load(data, slot) == 0:  # never written
            continue
        store(data, slot + 24, xxh3(bytes(data[tables:tables + 8 * len(bodies)])))
        data[slot + 32:slot + 40] = data[header - 8:header]
        store(data, slot + 56, xxh3(bytes(data[slot:slot + 56])))


def places_of(data):
    header, parts = load(data, 32, "<I"), load(data, 80, "<I")
    bodies = [(load(data, at + 40), load(data, at + 48))
              for at in range(128, 128 + 64 * parts, 64)]
    end = len(data)
    unit = 512 if load(data, 36, "<I") == 4096 else 64
    tables = sum(bodies[-1])
    tables += -tables % load(data, 36, "<I")
    return header, bodies, tables, (end - 2 * unit, end - unit)


def in_header(generator, data, size):
    """Change a field or two of a header, and seldom something after it."""
    for _ in range(generator.choice((1, 1, 2, 3))):
        at = generator.randrange(8, size - 8)
        if generator.random() < 0.1:
            at = generator.randrange(size, len(data)) if size < len(data) else at
        if generator.random() < 0.5:
            data[at] ^= 1 << generator.randrange(8)
        else:
            at -= at % 8
            number = generator.choice(
                [struct.pack("<Q", n) for n in INTERESTING] +
                [struct.pack("<d", x) for x in (0.0, -1.0, 1.0, 1.25, 16.0, 0.5,
                                                1e-300, float("nan"),
                                                float("inf"))])
            data[at:at + 8] = number


def repaired(generator, values):
    """A native filter, changed, with right sums; whole, or partly loaded."""
    numbers, strings = values[:5], values[5:]
    if strings[0].startswith(b"CALYXBF\2"):
        head = bytearray(strings[0])
        file = head[32:]
        in_header(generator, file, len(file))
        repair_header(file, len(file))
        strings = [bytes(head[:32] + file)]
        if generator.random() < 0.5:  # and a piece of it
            bits = generator.randbytes(generator.randrange(numbers[2] + 10))
            hash_of = xxh64 if load(file, 42, "<H") == 2 else xxh3
            strings.append(struct.pack(
                "<QQ", 0, hash_of(bits, load(file, 48))) + bits)
            numbers[1] = len(bits)
    else:
        data = bytearray(b"".join(strings))
        places = places_of(data)
        in_header(generator, data, places[0])
        repair_file(data, places)
        strings, at = [], 0
        while at < len(data):  # cut anywhere: readers must not care
            size = generator.randrange(1, len(data) + 1)
            strings.append(bytes(data[at:at + size]))
            at += size
    if generator.random() < 0.1:
        numbers[generator.randrange(5)] = generator.choice(INTERESTING)
    return dump_payload(numbers + strings, encoding=2, name=b"calyxbf-1")


def natives(r):
    return [payload_values(sample) for sample in native_samples(r)]


def test_repaired_payloads_are_accepted(quiet):
    """What is not changed is accepted after repair: so a refusal later is not
    because of a wrong sum."""
    r = quiet.client()
    for values in natives(r):
        if not values[5].startswith(b"CALYXBF\2"):
            data = bytearray(b"".join(values[5:]))
            whole = bytes(data)
            repair_file(data, places_of(data))
            assert data == whole
        payload = dump_payload(values, encoding=2, name=b"calyxbf-1")
        assert r("RESTORE", "k", 0, payload, "REPLACE") == "OK"


def test_damaged_payloads_with_right_sums(quiet):
    r = quiet.client()
    generator = random.Random(7)
    good = natives(r)
    count = max(1000, COUNT // 4)
    accepted = survives(quiet, (repaired(generator, list(generator.choice(good)))
                                for _ in range(count)), PROBES)
    reasons = {line.split("a filter was refused: ")[1]
               for line in quiet.text().splitlines()
               if "a filter was refused: " in line}
    assert 0 < accepted < count
    assert len(reasons) > 20, reasons  # it got past the checksums


def test_cut_payloads(quiet):
    """Cut by more than the ten bytes that end a payload: the server reads those
    as data where there is none, and the last of it may be a slot that does not
    count, where anything may stand."""
    r = quiet.client()
    for sample in samples(r)[::3]:
        for end in range(10, len(sample) - 10, max(1, len(sample) // 60)):
            answer = r("RESTORE", "k", 0, seal(sample[:end]), "REPLACE")
            assert isinstance(answer, Error)
    assert quiet.alive()


def test_damaged_dumps(quiet):
    r = quiet.client()
    generator = random.Random(6)
    dumps = []
    for how in (("LAYOUT", "native"), ("LAYOUT", "redisbloom"), ("COUNTING",),
                ("WINDOW", 1000, "GENERATIONS", 2), ("LAYOUT", "valkey-bloom")):
        for capacity, n in ((10, 5), (10, 300)):
            r("BF.INSERT", "k", *how, "CAPACITY", capacity, "ITEMS", *range(n))
            dumps.append(dump(r, "k"))
            r("DEL", "k")
    before = used(r)
    for start in range(0, COUNT, 250):
        commands = []
        for _ in range(250):
            commands.append(("DEL", "k"))
            for at, data in generator.choice(dumps):
                if generator.random() < 0.5 and len(data) > 12:
                    data = mutated(generator, data)
                if generator.random() < 0.1:
                    at = generator.choice((0, -1, 1, 2, at + 1, at - 1, 2**63 - 1,
                                           -2**63))
                commands.append(("BF.LOADCHUNK", "k", at, data))
            commands += PROBES
        r.pipeline(commands)
    assert quiet.alive(), quiet.text()[-3000:]
    assert used(r) < before + (4 << 20)


def test_damaged_payloads_of_bf_load(quiet):
    r = quiet.client()
    generator = random.Random(9)
    chance = random.Random(10)
    good = []
    for capacity, n, expansion in ((10, 5, 2), (10, 300, 2), (3, 40, 1), (9, 9, 0)):
        bloom = Bloom(0.01, capacity, expansion, 0.5, chance.randbytes(32))
        for i in range(n):
            bloom.add(b"%d" % i)
        good.append(bloom.load_payload())
        assert r("BF.LOAD", "k", good[-1]) == "OK" and r("DEL", "k") == 1
    before, accepted = used(r), 0
    for _ in range(0, COUNT, 500):
        commands = []
        for _ in range(500):
            payload = generator.choice(good)
            # mutated() leaves the first ten bytes alone
            changed = mutated(generator, bytes(10) + payload)[10:]
            commands += [("DEL", "k"), ("BF.LOAD", "k", changed), *PROBES]
        answers = r.pipeline(commands)
        for answer in answers[1::2 + len(PROBES)]:
            assert answer == "OK" or isinstance(answer, Error)
            accepted += answer == "OK"
    assert quiet.alive(), quiet.text()[-3000:]
    assert used(r) < before + (4 << 20)
    assert 0 < accepted < COUNT


def test_what_is_no_command_does_no_harm(quiet):
    r = quiet.client()
    r.socket.sendall(encode("BF.ADD", "k", "x")[:-3])
    r.close()
    assert quiet.client()("PING") == "PONG"
