"""calyx convert with what DUMP replied in RedisBloom and valkey-bloom: the file
answers as they did, and RESTORE takes what it becomes again."""
import base64
import json

import golden
import pytest
import test_valkey
from command import bad, calyx, good, lines, url
from redisbloom_data import body


def redisbloom(version):
    payloads = json.loads(golden.read(version, "dump-payloads.json"))
    return {key: base64.b64decode(data) for key, data in payloads.items()
            if golden.family(key) == "BF."}


def answers(path, items):
    """Of the command, one bit each. An item that has a NUL is no record."""
    given = b"".join(item + b"\0" for item in items)
    _, out, err = calyx("check", "-z", "-n", "-f", path, given=given)
    assert not err
    found = {int(line.split(b":")[0]) for line in out.split(b"\0") if line}
    return [int(i in found) for i in range(1, len(items) + 1)]


def is_as_recorded(path, record):
    compared = 0
    for group in record["groups"] + [record["nonmembers"]]:
        items = golden.items(group["items"])
        wanted = golden.bits(group["exists"], len(items))
        both = [(i, w) for i, w in zip(items, wanted) if b"\0" not in i]
        assert answers(path, [i for i, _ in both]) == [w for _, w in both]
        compared += len(both)
    assert compared > 400


@pytest.mark.parametrize("version", golden.VERSIONS)
def test_what_redisbloom_dumped_answers_as_it_did_and_goes_back(r, tmp_path, version):
    records = golden.expected(version)
    payloads = redisbloom(version)
    assert len(payloads) >= 20
    for key, payload in payloads.items():
        (tmp_path / "dump").write_bytes(payload)
        path = tmp_path / "f.calyx"
        good("convert", "--from", "redisbloom", "--force", "-o", path,
             tmp_path / "dump")
        is_as_recorded(path, records[key])
        back = good("convert", "--to", "redisbloom", path)
        assert body(back) == body(payload), key
        assert r("RESTORE", key, 0, back) == "OK"
        golden.is_as_recorded(r, key, records[key])


@pytest.mark.parametrize("form", ("DUMP", "BITMAP_FIRST", "LOAD"))
def test_what_valkey_bloom_dumped_answers_as_it_did_and_goes_back(r, tmp_path, form):
    for key, payload in getattr(test_valkey, form).items():
        (tmp_path / "dump").write_bytes(payload)
        path = tmp_path / "f.calyx"
        good("convert", "--from", "valkey-bloom", "--force", "-o", path,
             tmp_path / "dump")
        is_as_recorded(path, test_valkey.EXPECTED[key])
        back = good("convert", "--to", "valkey-bloom", path)
        assert body(back) == body(test_valkey.DUMP[key]), key
        assert r("RESTORE", key, 0, back) == "OK"
        test_valkey.is_as_recorded(r, key)


@pytest.mark.parametrize("layout", ("redisbloom", "valkey-bloom"))
def test_a_filter_that_was_pulled_is_queried_without_a_server(server, r, tmp_path,
                                                              layout):
    r("BF.RESERVE", "seen", "0.01", 3000, "LAYOUT", layout)
    for start in range(0, 3000, 1000):
        r("BF.MADD", "seen", *range(start, start + 1000))
    good("pull", "--as", layout, url(server), "-o", tmp_path / "f")
    numbers = range(0, 20000, 2)
    wanted = r("BF.MEXISTS", "seen", *numbers)
    assert answers(tmp_path / "f", [b"%d" % n for n in numbers]) == wanted
    facts = json.loads(good("info", "--json", tmp_path / "f"))[0]
    assert facts["layout"] == layout and facts["keys"] == r("BF.CARD", "seen")

    # a packed DUMP, as the server makes it, is the same filter
    (tmp_path / "dump").write_bytes(r("DUMP", "seen"))
    good("convert", "--from", layout, "-o", tmp_path / "g", tmp_path / "dump")
    assert (tmp_path / "g").read_bytes() == (tmp_path / "f").read_bytes()


@pytest.mark.parametrize("layout", ("redisbloom", "valkey-bloom"))
def test_an_empty_filter_comes_packed_and_is_read(r, tmp_path, layout):
    r("BF.RESERVE", "seen", "0.001", 5000, "LAYOUT", layout)
    dump = r("DUMP", "seen")
    assert len(dump) < 5000  # LZF: its zeros take 9 KB
    (tmp_path / "dump").write_bytes(dump)
    good("convert", "--from", layout, "-o", tmp_path / "f", tmp_path / "dump")
    assert answers(tmp_path / "f", [b"rose"]) == [0]
    assert r("RESTORE", "back", 0, good("convert", "--to", layout,
                                         tmp_path / "f")) == "OK"
    assert r("BF.EXISTS", "back", "rose") == 0


@pytest.mark.parametrize("layout", ("redisbloom", "valkey-bloom"))
def test_a_filter_that_was_built_for_a_module_is_pushed_and_restored(server, r,
                                                                     tmp_path, layout):
    path = tmp_path / "f"
    good("build", "--layout", layout, "-n", 2000, "-o", path,
         given=lines(range(2000)))
    good("push", "--as", layout, path, url(server))
    assert r("RESTORE", "other", 0, good("convert", "--to", layout, path)) == "OK"
    for key in ("seen", "other"):
        assert r("TYPE", key) == ("MBbloom--" if layout == "redisbloom"
                                  else "bloomfltr")
        assert all(r("BF.MEXISTS", key, *range(2000)))
        assert sum(r("BF.MEXISTS", key, *range(10000, 20000))) < 200
    assert r("DUMP", "seen") == r("DUMP", "other")


def test_a_payload_of_another_type_is_named(r, tmp_path):
    r("BF.ADD", "native", "rose")
    r("CF.RESERVE", "cuckoo", 1000)
    r("SET", "text", "x" * 100)
    for key, text in (("native", "it is a key of another type than MBbloom--"),
                      ("cuckoo", "it is a key of another type than MBbloom--"),
                      ("text", "it does not begin as the reply to DUMP")):
        dump = r("DUMP", key)
        (tmp_path / "dump").write_bytes(dump)
        bad(text, "convert", "--from", "redisbloom", "-o", tmp_path / "no",
            tmp_path / "dump")
    (tmp_path / "dump").write_bytes(r("DUMP", "native") + b"\n")
    bad("did a newline of redis-cli get after it?", "convert", "--from",
        "redisbloom", "-o", tmp_path / "no", tmp_path / "dump")
    assert not (tmp_path / "no").exists()
