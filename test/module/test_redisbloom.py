"""RedisBloom's own data, in a real server: it loads in every encoding, answers
as it did, grows by its rules, and can go back, byte for byte."""
import pytest
from redisbloom_data import (FIXED, GROWS, NO_SCALING, Filter, body, cases,
                             words)
from resp import Error
from servers import dump

ALL = {case.name: case for case in cases()}


def each(wanted=lambda case: True):
    names = [name for name, case in ALL.items() if wanted(case)]
    assert names
    return pytest.mark.parametrize("case", [ALL[n] for n in names], ids=names)


def answers_as_before(r, key, case):
    assert r("TYPE", key) == "MBbloom--"
    assert r("BF.CARD", key) == case.filter.items
    if case.keys:
        assert r("BF.MEXISTS", key, *case.keys) == [1] * len(case.keys)
    absent = words(500, 10**6)
    assert r("BF.MEXISTS", key, *absent) == [int(case.filter.has(s))
                                               for s in absent]


@each()
def test_a_payload_is_restored(r, case):
    assert r("RESTORE", "k", 0, case.payload()) == "OK"
    answers_as_before(r, "k", case)


@each()
def test_a_restored_payload_is_dumped_in_encoding_4(r, case):
    r("RESTORE", "k", 0, case.payload())
    assert r("RESTORE", "again", 0, r("DUMP", "k")) == "OK"
    answers_as_before(r, "again", case)
    assert r("DEBUG", "DIGEST-VALUE", "k") == r("DEBUG", "DIGEST-VALUE",
                                               "again")


@each(lambda case: case.made and case.encoding == 4)
def test_what_goes_back_is_the_same_bytes(plain, case):
    plain("RESTORE", "k", 0, case.payload())
    assert body(plain("DUMP", "k")) == body(case.payload())


@each(lambda case: case.made and case.made[2] in (GROWS, FIXED))
def test_a_filter_made_here_is_the_same_bytes(plain, case):
    capacity, error, options, growth = case.made
    how = (["NONSCALING"] if options & NO_SCALING and growth else
           ["EXPANSION", growth])
    plain("BF.RESERVE", "k", error, capacity, *how, "LAYOUT", "redisbloom")
    if case.keys:
        assert plain("BF.MADD", "k", *case.keys) == [int(f) for f in case.fresh]
    answers_as_before(plain, "k", case)
    assert body(plain("DUMP", "k")) == body(case.payload())


@each()
def test_a_dump_is_loaded_in_chunks(r, case):
    for size in (16 << 20, 7):
        key = f"k{size}"
        for at, data in case.filter.chunks(size, case.form):
            assert r("BF.LOADCHUNK", key, at, data) == "OK"
        answers_as_before(r, key, case)


@each(lambda case: case.made)
def test_a_dump_made_here_is_the_same_bytes(r, case):
    r("RESTORE", "k", 0, case.payload())
    assert dump(r, "k") == list(case.filter.chunks())


@pytest.mark.parametrize("growth", [1, 2, 3])
def test_a_restored_chain_grows_by_the_same_rules(plain, growth):
    theirs = Filter(20, 0.02, GROWS, growth)
    first, later = words(50), words(800, 50)
    for key in first:
        theirs.add(key)
    plain("RESTORE", "k", 0, theirs.payload())
    fresh = plain("BF.MADD", "k", *later)
    assert fresh == [int(theirs.add(key)) for key in later]
    assert len(theirs.links) > 3
    assert body(plain("DUMP", "k")) == body(theirs.payload())


def test_a_full_restored_filter_says_so(r):
    theirs = Filter(50, 0.01, FIXED)
    for key in words(50):
        theirs.add(key)
    r("RESTORE", "k", 0, theirs.payload())
    answers = r("BF.MADD", "k", *words(50), *words(100, 1000))
    assert answers[-1] == Error("ERR non scaling filter is full")


def test_a_server_starts_with_their_file(start):
    """An RDB file, in every encoding; a checksum of 0 is none."""
    server = start()
    server.kill()
    values = [case.payload()[:1] + bytes([len(name)]) + name.encode() +
              body(case.payload())[1:] for name, case in ALL.items()]
    assert max(map(len, ALL)) < 64
    with open(server.folder + "/dump.rdb", "wb") as rdb:
        rdb.write(b"REDIS0009\xfe\0" + b"".join(values) + b"\xff" + bytes(8))
    server.start()
    r = server.client()
    assert r("DBSIZE") == len(ALL)
    for name, case in ALL.items():
        answers_as_before(r, name, case)


def test_a_server_restarts_with_their_filters(start):
    server = start(save="3600 1")
    r = server.client()
    for name, case in ALL.items():
        r("RESTORE", name, 0, case.payload())
    server.restart()
    r = server.client()
    for name, case in ALL.items():
        answers_as_before(r, name, case)
