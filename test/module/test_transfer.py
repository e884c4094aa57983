"""BF.DUMP and BF.RESTORE: a native filter travels in chunks that are checked, may
stop anywhere and go on, and is never asked before it is whole."""
import pytest
from command import kinds_that
import xxhash
from resp import Error
from servers import (SANITIZED, digest, info, restart_saved, start_saving,
                     until, work_of, work_to_read)

MIB = 1 << 20
LARGE = 3_500_000  # items; five chunks


def checksum(data):
    return xxhash.xxh64(data, seed=0).hexdigest()


def next_sum(before, of_chunk):
    return xxhash.xxh64(bytes.fromhex(before)[::-1] +
                        bytes.fromhex(of_chunk)[::-1], seed=0).hexdigest()


def dump(r, key):
    """Head, chunks, and the sum, each held against its checksum."""
    cursor, of_head, head = r("BF.DUMP", key, 0)
    assert of_head.decode() == checksum(head)
    chunks, whole = [], "0" * 16
    while True:
        cursor, of_chunk, chunk = r("BF.DUMP", key, cursor)
        if cursor == b"0":
            assert (of_chunk.decode(), chunk) == (whole, b"")
            return head, chunks, whole
        assert of_chunk.decode() == checksum(chunk)
        whole = next_sum(whole, of_chunk.decode())
        chunks.append(chunk)


def begin(r, key, head):
    return r("BF.RESTORE", key, "BEGIN", checksum(head), head)


def load_chunks(r, key, chunks, numbers):
    return [r("BF.RESTORE", key, "CHUNK", n, checksum(chunks[n]), chunks[n])
            for n in numbers]


def load(r, key, head, chunks, whole):
    begin(r, key, head)
    load_chunks(r, key, chunks, range(len(chunks)))
    return r("BF.RESTORE", key, "COMMIT", whole)


def make_large(r, key="large", **options):
    words = [w for pair in options.items() for w in pair]
    r("BF.INSERT", key, "CAPACITY", LARGE, *words, "ITEMS", *range(1000))
    return dump(r, key)


def is_refused(r, key, *more):
    """Nothing may say no of a filter that is not whole."""
    for query in (("BF.EXISTS", key, 1), ("BF.MEXISTS", key, 1, 2),
                     ("BF.CARD", key), ("BF.SCANDUMP", key, 0),
                     ("BF.DUMP", key, 0), *more):
        answer = r(*query)
        assert isinstance(answer, Error), query
        assert "still being loaded" in answer and "BF.RESTORE," in answer


@pytest.mark.parametrize("kind", kinds_that("can_add"))
@pytest.mark.parametrize("growing", [False, True])
def test_a_filter_arrives_as_it_was(r, kind, growing):
    r("BF.INSERT", "a", "CAPACITY", 100 if growing else 200000, "KIND", kind,
      *([] if growing else ["NONSCALING"]), "ITEMS", *range(20000))
    assert load(r, "b", *dump(r, "a")) == "OK"
    assert digest(r, "a") == digest(r, "b")
    assert r("BF.INFO", "a") == r("BF.INFO", "b")
    assert r("BF.MEXISTS", "b", *range(20000)) == [1] * 20000
    assert 1 in r("BF.MADD", "b", *range(20000, 20005))  # or all 5 pass


def test_chunks_have_a_mebibyte(r):
    head, chunks, _ = make_large(r)
    assert len(chunks) == 5
    assert {len(c) for c in chunks[:-1]} == {MIB} and len(chunks[-1]) <= MIB


def test_a_load_goes_on_where_it_broke_off(r):
    head, chunks, whole = make_large(r)
    assert begin(r, "copy", head) == [0, 5, b"0" * 16]
    assert load_chunks(r, "copy", chunks, [0, 1]) == [1, 2]
    is_refused(r, "copy")
    so_far = next_sum(next_sum("0" * 16, checksum(chunks[0])),
                      checksum(chunks[1])).encode()
    assert begin(r, "copy", head) == [2, 5, so_far]
    assert r("BF.RESTORE", "copy", "STATUS") == [2, 5, so_far]
    assert load_chunks(r, "copy", chunks, [0, 1]) == [2, 2]  # once more
    assert load_chunks(r, "copy", chunks, [2, 3, 4]) == [3, 4, 5]
    is_refused(r, "copy")  # all is here, but nobody has said that it is right
    assert r("BF.RESTORE", "copy", "COMMIT", whole) == "OK"
    assert r("BF.RESTORE", "copy", "COMMIT", whole) == "OK"  # the reply was lost
    assert digest(r, "copy") == digest(r, "large")


def test_a_commit_that_is_repeated_does_not_vouch_for_an_emptied_filter(r):
    r("BF.MADD", "a", *range(100))
    head, chunks, whole = dump(r, "a")
    assert load(r, "copy", head, chunks, whole) == "OK"
    r("BF.CLEAR", "copy")
    assert "not being loaded" in r("BF.RESTORE", "copy", "COMMIT", whole)


def test_hostile_loads_get_an_error_and_change_nothing(r):
    head, chunks, whole = make_large(r)
    begin(r, "copy", head)
    load_chunks(r, "copy", chunks, [0])
    before = digest(r, "copy")
    other = bytes(MIB)
    bad = checksum(b"bad")

    def wrong(text, *words):
        answer = r("BF.RESTORE", *words)
        assert isinstance(answer, Error) and text in answer, answer
        assert digest(r, "copy") == before

    wrong("the next chunk must be 1, not 2", "copy", "CHUNK", 2,
          checksum(chunks[2]), chunks[2])
    wrong("chunk 0 is here already, and differs", "copy", "CHUNK", 0,
          checksum(other), other)
    wrong("the chunk is damaged", "copy", "CHUNK", 1, bad, chunks[1])
    wrong("it must have 1048576", "copy", "CHUNK", 1, bad, chunks[1][:-1])
    wrong("there is no chunk 5: the filter has 5", "copy", "CHUNK", 5, bad, b"")
    wrong("there is no chunk 9223372036854775807", "copy", "CHUNK",
          2**63 - 1, bad, b"")
    for number in (-1, "x", "", "1.5", 2**63):
        wrong("must be 0 or more", "copy", "CHUNK", number, bad, b"")
    for digits in ("", "x" * 16, whole[:-1], whole + "0", "0" * 15 + "g",
                   "\x11" * 16):
        wrong("16 hexadecimal digits", "copy", "CHUNK", 1, digits, chunks[1])
        wrong("16 hexadecimal digits", "copy", "COMMIT", digits)
        wrong("16 hexadecimal digits", "new", "BEGIN", digits, head)
    wrong("1 of 5 chunks are here", "copy", "COMMIT", whole)
    wrong("not found", "new", "CHUNK", 0, checksum(chunks[0]), chunks[0])
    wrong("not found", "new", "COMMIT", whole)
    wrong("not found", "new", "STATUS")
    wrong("unknown step; there are BEGIN", "copy", "END")
    wrong("wrong number of arguments", "copy", "COMMIT")
    wrong("the head is damaged", "new", "BEGIN", bad, head)
    for cut in (b"", head[:20], head[:-1], head + b"x", bytes(len(head)),
                head[:40] + bytes([head[40] ^ 1]) + head[41:]):
        wrong("bad data", "new", "BEGIN", checksum(cut), cut)
    wrong("item exists", "large", "BEGIN", checksum(head), head)
    wrong("the filter is complete", "large", "STATUS")
    wrong("the filter is complete", "large", "COMMIT", whole)
    r("BF.RESERVE", "else", 0.01, 10)
    another = dump(r, "else")[0]
    wrong("another filter is being loaded", "copy", "BEGIN", checksum(another),
          another)
    r("SET", "string", 1)
    for step in (("BEGIN", checksum(head), head), ("STATUS",)):
        wrong("WRONGTYPE", "string", *step)
    assert r("EXISTS", "new") == 0


def test_a_commit_verifies_the_whole(r):
    head, chunks, whole = make_large(r)
    chunks[2] = bytes(MIB)  # a good chunk, of another filter
    begin(r, "copy", head)
    load_chunks(r, "copy", chunks, range(5))
    answer = r("BF.RESTORE", "copy", "COMMIT", whole)
    assert isinstance(answer, Error) and "the filter is damaged" in answer
    is_refused(r, "copy")


def test_one_way_of_loading_at_a_time(r):
    head, chunks, _ = make_large(r)
    begin(r, "copy", head)
    at, data = r("BF.SCANDUMP", "large", 1)
    answer = r("BF.LOADCHUNK", "copy", at, data)
    assert isinstance(answer, Error) and "go on with BF.RESTORE," in answer
    r("BF.LOADCHUNK", "other", *r("BF.SCANDUMP", "large", 0))
    answer = r("BF.RESTORE", "other", "CHUNK", 0, checksum(chunks[0]), chunks[0])
    assert isinstance(answer, Error) and "go on with BF.LOADCHUNK" in answer


# ---- Dumps ------------------------------------------------------------------

def test_wrong_cursors(r):
    make_large(r)
    cursor = r("BF.DUMP", "large", 0)[0].decode()
    life, _, rest = cursor.split(".")
    for wrong in ("1", "", "x", "00", cursor + "0", cursor[:-1], life,
                  f"{life}.-1.{rest}", f"{life}. 1.{rest}", f"{life}.1 .{rest}",
                  f"{life}.99999999999999999999.{rest}", f"{life}..{rest}",
                  cursor.upper() + "\0", "\0" * 36):
        answer = r("BF.DUMP", "large", wrong)
        assert isinstance(answer, Error) and "the cursor must be 0" in answer
    assert r("BF.DUMP", "large", f"{life}.18446744073709551615.{rest}") == [
        b"0", rest.encode(), b""]
    assert "not found" in r("BF.DUMP", "none", 0)
    r("BF.RESERVE", "theirs", 0.01, 10, "LAYOUT", "redisbloom")
    assert "only native filters" in r("BF.DUMP", "theirs", 0)


def test_items_added_during_a_dump_do_no_harm(r):
    r("BF.INSERT", "a", "CAPACITY", LARGE, "ITEMS", *range(1000))
    cursor, _, head = r("BF.DUMP", "a", 0)
    chunks, whole = [], None
    while cursor != b"0":
        for i in range(3):
            r("BF.MADD", "a", *(f"{len(chunks)}/{i}/{n}" for n in range(1000)))
        cursor, whole, chunk = r("BF.DUMP", "a", cursor)
        chunks.append(chunk)
    assert load(r, "b", head, chunks[:-1], whole) == "OK"
    assert r("BF.MEXISTS", "b", *range(1000)) == [1] * 1000


def test_a_filter_that_grows_during_a_dump_is_dumped_as_it_was(r):
    r("BF.INSERT", "a", "CAPACITY", 100, "ITEMS", *range(90))
    cursor, _, head = r("BF.DUMP", "a", 0)
    cursor, of_chunk, chunk = r("BF.DUMP", "a", cursor)
    r("BF.MADD", "a", *range(1000, 300000))
    begin(r, "b", head)
    r("BF.RESTORE", "b", "CHUNK", 0, of_chunk, chunk)
    assert r("BF.RESTORE", "b", "COMMIT",
             next_sum("0" * 16, of_chunk.decode())) == "OK"
    assert r("BF.MEXISTS", "b", *range(90)) == [1] * 90


def test_growth_ends_a_dump(r):
    """The next chunk would have bytes of the new part, too."""
    r("BF.INSERT", "a", "CAPACITY", 100, "ITEMS", *range(90))
    cursor = r("BF.DUMP", "a", 0)[0]
    r("BF.MADD", "a", *range(1000, 2000))
    answer = r("BF.DUMP", "a", cursor)
    assert isinstance(answer, Error) and "begin again with cursor 0" in answer


def test_a_filter_that_takes_the_name_ends_a_dump(r):
    for name in ("a", "b"):
        make_large(r, name, SEED=1)
    cursor = r("BF.DUMP", "a", 0)[0]
    r("RENAME", "b", "a")
    answer = r("BF.DUMP", "a", cursor)
    assert isinstance(answer, Error) and "begin again with cursor 0" in answer


def test_counters_that_change_end_a_dump(r):
    r("BF.INSERT", "a", "KIND", "counting", "CAPACITY", 100000, "ITEMS", 1)
    cursor = r("BF.DUMP", "a", 0)[0]
    assert len(r("BF.DUMP", "a", cursor)[2]) > 0
    r("BF.ADD", "a", 1)
    answer = r("BF.DUMP", "a", cursor)
    assert isinstance(answer, Error) and "begin again with cursor 0" in answer


# ---- Half way ---------------------------------------------------------------

def half_loaded(r):
    """Three filters: begun, half loaded, and only not committed."""
    head, chunks, whole = make_large(r)
    for key, n in (("begun", 0), ("half", 3), ("all", 5)):
        begin(r, key, head)
        load_chunks(r, key, chunks, range(n))
    return head, chunks, whole


def can_go_on(r, head, chunks, whole):
    for key, n in (("begun", 0), ("half", 3), ("all", 5)):
        is_refused(r, key, ("BF.ADD", key, 1), ("BF.MADD", key, 1, 2))
        assert begin(r, key, head)[:2] == [n, 5]
        load_chunks(r, key, chunks, range(n, 5))
        assert r("BF.RESTORE", key, "COMMIT", whole) == "OK"
        assert digest(r, key) == digest(r, "large")


@pytest.mark.parametrize("how", ["rdb", "aof", "rewritten"])
def test_a_load_survives_a_restart(start, how):
    server = start_saving(start, how)
    r = server.client()
    parts = half_loaded(r)
    before = [digest(r, key) for key in ("begun", "half", "all")]
    restart_saved(server, how)
    r = server.client()
    assert [digest(r, key) for key in ("begun", "half", "all")] == before
    can_go_on(r, *parts)


def test_a_copy_of_half_a_filter_is_half_a_filter(r):
    head, chunks, whole = half_loaded(r)
    for key in ("begun", "half", "all"):
        before = digest(r, key)
        payload = r("DUMP", key)
        r("COPY", key, "copy")
        assert digest(r, "copy") == before
        r("UNLINK", key)
        r("RESTORE", key, 0, payload)
        assert digest(r, key) == before
        r("RENAME", "copy", key)
    can_go_on(r, head, chunks, whole)


def test_a_load_reaches_replicas_and_survives_a_failover(start):
    primary = start()
    r = primary.client()
    early = start(replicaof=f"127.0.0.1 {primary.port}")
    until(lambda: info(r, "replication").get("connected_slaves") == "1")
    parts = half_loaded(r)
    late = start(replicaof=f"127.0.0.1 {primary.port}")
    until(lambda: info(r, "replication").get("connected_slaves") == "2")
    r("BF.RESERVE", "last", 0.01, 10)
    for replica in (early, late):
        c = replica.client()
        until(lambda c=c: c("EXISTS", "last") == 1)
        for key in ("begun", "half", "all", "large"):
            assert digest(c, key) == digest(r, key)
        is_refused(c, "half")
    primary.kill()
    for replica in (early, late):
        c = replica.client()
        c("REPLICAOF", "NO", "ONE")
        can_go_on(c, *parts)


def test_only_changes_are_replicated(start):
    # Else the file may get later what was said before.
    server = start(appendonly="yes")
    r = server.client()
    head, chunks, whole = make_large(r)
    load(r, "copy", head, chunks, whole)
    offset = info(r, "persistence")["aof_current_size"]
    load_chunks(r, "copy", chunks, [0])
    r("BF.RESTORE", "copy", "COMMIT", whole)
    r("BF.RESTORE", "copy", "STATUS")
    begin(r, "copy", head)
    assert info(r, "persistence")["aof_current_size"] == offset


# ---- Memory and time --------------------------------------------------------

def test_memory_is_requested_before_a_load(start):
    source = start().client()
    parts = make_large(source)
    limited = start("calyx-max-filter-bytes", 1000000).client()
    answer = begin(limited, "copy", parts[0])
    assert isinstance(answer, Error) and "calyx-max-filter-bytes" in answer
    small = start(maxmemory="4mb").client()
    answer = begin(small, "copy", parts[0])
    assert isinstance(answer, Error) and "maxmemory leaves" in answer
    assert small("EXISTS", "copy") == 0


def test_no_step_holds_up_the_server(start):
    """No step takes a tenth of the work of reading the filter once; a 5th under a
    sanitizer, which marks all of the memory that is allocated."""
    r = start().client()
    r("BF.RESERVE", "a", 0.01, 250_000_000)  # 300 MB
    r("BF.MADD", "a", *range(10000))
    cursor, of_head, head = r("BF.DUMP", "a", 0)
    work = {"dump": [], "chunk": []}
    work["begin"] = [work_of(r, "BF.RESTORE", "b", "BEGIN", of_head, head)]
    chunks = r("BF.RESTORE", "b", "STATUS")[1]
    assert chunks > 280
    for n in range(chunks):
        if n % 10 == 0:
            work["dump"].append(work_of(r, "BF.DUMP", "a", cursor))
        cursor, of_chunk, chunk = r("BF.DUMP", "a", cursor)
        load = ("BF.RESTORE", "b", "CHUNK", n, of_chunk, chunk)
        if n % 10:
            assert r(*load) == n + 1
        else:
            work["chunk"].append(work_of(r, *load))
    last, whole, _ = r("BF.DUMP", "a", cursor)
    assert last == b"0"
    work["commit"] = [work_of(r, "BF.RESTORE", "b", "COMMIT", whole)]
    assert r("BF.MEXISTS", "b", *range(10000)) == [1] * 10000
    reading = work_to_read(r, "b")
    for step, tries in work.items():
        median = sorted(tries)[len(tries) // 2]
        assert median < reading / (5 if SANITIZED else 10), (step, tries, reading)
