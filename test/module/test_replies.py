"""Every command, option, reply and error, type by type, in RESP2 and RESP3; in
the words of RedisBloom 8 unless doc/COMMANDS.md says otherwise."""
import pytest
from command import kinds_that
from resp import Error, Map, Simple
from servers import PREFIX, dump

WRONG_TYPE = Error(
    "WRONGTYPE Operation against a key holding the wrong kind of value")
RANGE = Error("ERR error rate must be in the range (0.000000, 1.000000)")
CAPACITY = Error("ERR capacity must be in the range [1, 1099511627776]")
FULL = Error("ERR non scaling filter is full")
NOT_FOUND = Error("ERR not found")


def same(is_, should_be):
    """Equal, and of the same types all through."""
    assert is_ == should_be
    assert type(is_) is type(should_be), (is_, should_be)
    if isinstance(is_, (list, tuple)):
        for a, b in zip(is_, should_be):
            same(a, b)


def arity(name):
    return Error(f"ERR wrong number of arguments for '{name}' command")


def has_wrong_arity(client, *words):
    same(client(*words), arity(words[0].lower()))


# ---- BF.RESERVE ------------------------------------------------------------

@pytest.mark.parametrize("words, reply", [
    ("k abc 100", Error("ERR bad error rate")),
    ("k nan 100", Error("ERR bad error rate")),
    ("k 0 100", RANGE), ("k 1 100", RANGE), ("k -0.1 100", RANGE),
    ("k inf 100", RANGE), ("k -0 100", RANGE),
    ("k 0.01 abc", Error("ERR bad capacity")),
    ("k 0.01 1.5", Error("ERR bad capacity")),
    ("k 0.01 9223372036854775808", Error("ERR bad capacity")),
    ("k 0.01 0", CAPACITY), ("k 0.01 -1", CAPACITY),
    ("k 0.01 1099511627777", CAPACITY),
    ("k 0.01 100 EXPANSION", Error("ERR no expansion")),
    ("k 0.01 100 EXPANSION abc", Error("ERR bad expansion")),
    ("k 0.01 100 EXPANSION -1",
     Error("ERR expansion must be in the range [0, 32768]")),
    ("k 0.01 100 EXPANSION 32769",
     Error("ERR expansion must be in the range [0, 32768]")),
    ("k 0.01 100 NONSCALING EXPANSION 2",
     Error("Nonscaling filters cannot expand")),
    ("k 0.01 100 EXPANSION 2 NONSCALING",
     Error("Nonscaling filters cannot expand")),
    ("k 0.01 100 junk",
     Error("ERR unknown argument 'junk'; there are EXPANSION, NONSCALING, "
           "COUNTING, WINDOW, GENERATIONS, SEED, KIND and LAYOUT")),
    ("k 0.01 100 NOCREATE",
     Error("ERR unknown argument 'NOCREATE'; there are EXPANSION, NONSCALING, "
           "COUNTING, WINDOW, GENERATIONS, SEED, KIND and LAYOUT")),
    ("k 0.01 100 SEED -1", Error(
        "ERR bad seed: it is a whole number from 0 to 18446744073709551615")),
    ("k 0.01 100 SEED 18446744073709551616", Error(
        "ERR bad seed: it is a whole number from 0 to 18446744073709551615")),
    ("k 0.01 100 KIND lime", Error(
        "ERR bad kind: there are " + ", ".join(kinds_that("can_add")))),
    ("k 0.01 100 LAYOUT", Error(
        "ERR bad layout: there are native, redisbloom and valkey-bloom")),
    ("k 0.01 100 NONSCALING EXPANSION 0", Simple("OK")),
    ("k 0.01 100 expansion 0", Simple("OK")),
    ("k 0.01 100 EXPANSION 32768", Simple("OK")),
    ("k 0.9 100", Simple("OK")),
    ("k 1e-9 100", Simple("OK")),
    ("NONSCALING 0.01 100", Simple("OK")),
    ("EXPANSION 0.01 100", Simple("OK")),
])
def test_reserve(r, layout, words, reply):
    same(r("BF.RESERVE", *words.split()), reply)
    key = words.split()[0]
    assert r("EXISTS", key) == (1 if reply == "OK" else 0)


def test_reserve_takes_an_expansion_once(r, layout):
    same(r("BF.RESERVE", "k", 0.01, 100, "EXPANSION", 2, "EXPANSION", 2),
         arity("bf.reserve"))
    assert r("EXISTS", "k") == 0


@pytest.mark.parametrize("word, one, other", [
    ("LAYOUT", "native", "redisbloom"), ("LAYOUT", "redisbloom", "valkey-bloom"),
    ("KIND", "line", "flat"), ("SEED", "1", "2"), ("WINDOW", "60", "3600"),
    ("GENERATIONS", "2", "3"), ("BEGAN", "1", "2")])
def test_a_word_of_ours_with_two_values_is_refused(r, word, one, other):
    wrong = Error(f"ERR {word} is given as '{one}' and as '{other}'; give it once")
    twice = (word, one, "EXPANSION", 2, word.lower(), other)
    assert r("BF.RESERVE", "k", 0.01, 100, *twice) == wrong
    assert r("BF.INSERT", "k", *twice, "ITEMS", "a") == wrong
    assert r("EXISTS", "k") == 0


def test_a_word_of_ours_may_be_repeated_as_it_was(r):
    same = ("LAYOUT", "native", "layout", "NATIVE")
    assert r("BF.RESERVE", "k", 0.01, 100, *same) == "OK"
    assert r("BF.INSERT", "l", *same, "ITEMS", "a") == [1]


def test_of_a_repeated_word_of_redisbloom_the_last_counts(r):
    assert r("BF.INSERT", "k", "CAPACITY", 10, "ERROR", 0.1, "EXPANSION", 3,
             "CAPACITY", 5000, "ERROR", 0.001, "EXPANSION", 4,
             "ITEMS", "a") == [1]
    assert r("BF.INFO", "k", "CAPACITY")[0] >= 5000
    assert r("BF.INFO", "k", "EXPANSION") == [4]


@pytest.mark.parametrize("words", ["COUNTING KIND flat", "KIND bucket COUNTING"])
def test_counting_and_another_kind_are_refused(r, words):
    wrong = Error("ERR COUNTING is KIND counting; leave out COUNTING, or the "
                  "other KIND")
    assert r("BF.RESERVE", "k", 0.01, 100, *words.split()) == wrong
    assert r("BF.INSERT", "k", *words.split(), "ITEMS", "a") == wrong
    assert r("BF.RESERVE", "k", 0.01, 100, "KIND", "counting", "COUNTING") == "OK"


def test_the_redisbloom_layout_has_no_seeds_and_no_kinds(r, layout):
    for words in (("SEED", 2**64 - 1), ("KIND", "line")):
        for how in ((), ("LAYOUT", layout)):
            answer = r("BF.RESERVE", "k", 0.01, 100, *words, *how)
            also = r("BF.INSERT", "k", *words, *how, "ITEMS", "a")
            if layout == "native":
                assert (answer, also) == ("OK", [1])
            else:
                assert answer == also == Error(
                    "ERR the redisbloom layout has neither seeds nor kinds; "
                    "leave out SEED and KIND, or say LAYOUT native")
            r("DEL", "k")


def test_reserve_wants_a_free_key(r, layout):
    same(r("BF.RESERVE", "k", 0.01, 100), Simple("OK"))
    same(r("BF.RESERVE", "k", 0.01, 100), Error("ERR item exists"))
    r("SET", "str", "x")
    same(r("BF.RESERVE", "str", 0.01, 100), WRONG_TYPE)


@pytest.mark.parametrize("name, fewest, most", [
    ("BF.RESERVE", 4, None), ("BF.ADD", 3, 3), ("BF.MADD", 3, None),
    ("BF.EXISTS", 3, 3), ("BF.MEXISTS", 3, None), ("BF.INSERT", 4, None),
    ("BF.INFO", 2, 3), ("BF.CARD", 2, 2), ("BF.DEBUG", 2, 2),
    ("BF.SCANDUMP", 3, 3), ("BF.LOADCHUNK", 4, 4), ("BF.DUMP", 3, 3)])
def test_arity(r, name, fewest, most):
    for n in range(1, fewest):
        has_wrong_arity(r, name, *["k"] * (n - 1))
    if most:
        has_wrong_arity(r, name, *["k"] * most)


def test_a_key_named_like_an_option_is_a_key(r):
    r("BF.RESERVE", "NONSCALING", 0.01, 100)
    assert r("BF.INFO", "NONSCALING", "EXPANSION") == [2]


def test_rates_above_a_quarter_are_a_quarter(r, layout):
    r("BF.RESERVE", "cap", 0.9, 1000, "NONSCALING")
    assert b"capacity:1000 size:0 ratio:0.25" in r("BF.DEBUG", "cap")[1]


# ---- Adding and asking -----------------------------------------------------

def test_add_and_exists_in_resp2(r, layout):
    same(r("BF.ADD", "k", "a"), 1)
    same(r("BF.ADD", "k", "a"), 0)
    same(r("BF.ADD", "k", "b"), 1)
    same(r("BF.MADD", "k", "a", "c", "d"), [0, 1, 1])
    same(r("BF.EXISTS", "k", "a"), 1)
    same(r("BF.EXISTS", "k", "zz"), 0)
    same(r("BF.EXISTS", "nokey", "a"), 0)
    same(r("BF.MEXISTS", "k", "a", "zz", "b"), [1, 0, 1])
    same(r("BF.MEXISTS", "nokey", "a", "b"), [0, 0])
    same(r("BF.CARD", "k"), 4)
    same(r("BF.CARD", "nokey"), 0)
    same(r("BF.ADD", "k", ""), 1)
    same(r("BF.EXISTS", "k", ""), 1)


def test_add_and_exists_in_resp3(r3, layout):
    same(r3("BF.ADD", "k", "a"), True)
    same(r3("BF.ADD", "k", "a"), False)
    same(r3("BF.MADD", "k", "a", "c"), [False, True])
    same(r3("BF.EXISTS", "k", "a"), True)
    same(r3("BF.EXISTS", "k", "zz"), False)
    same(r3("BF.MEXISTS", "k", "a", "zz"), [True, False])
    same(r3("BF.MEXISTS", "nokey", "a"), [False])
    same(r3("BF.INSERT", "k", "ITEMS", "a", "e"), [False, True])
    same(r3("BF.CARD", "k"), 3)


def test_a_wrong_type_is_an_error_everywhere(r):
    r("SET", "str", "x")
    for words in ("ADD str a", "MADD str a b", "INSERT str ITEMS a",
                  "EXISTS str a", "MEXISTS str a b", "CARD str", "INFO str",
                  "INFO str SIZE", "DEBUG str", "SCANDUMP str 0",
                  "LOADCHUNK str 1 abc", "DUMP str 0", "LOAD str STATUS"):
        same(r(*("BF." + words).split()), WRONG_TYPE)


def test_items_are_bytes(r, layout):
    items = [b"", b"\0", b"\0\0", b"\r\n", bytes(range(256)), b"x" * 100000]
    same(r("BF.MADD", "k", *items), [1] * 6)
    same(r("BF.MEXISTS", "k", *items), [1] * 6)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 511, 512, 513, 1025, 20000])
def test_many_items_at_once(r, layout, n):
    items = [f"item:{i}" for i in range(n)]
    r("BF.RESERVE", "k", 0.0001, n)
    assert sum(r("BF.MADD", "k", *items)) >= n * 0.99
    assert r("BF.MEXISTS", "k", *items) == [1] * n
    for item in items[:20]:
        assert r("BF.EXISTS", "k", item) == 1


def test_one_and_many_agree(r, layout):
    seed = ("SEED", 5) if layout == "native" else ()
    r("BF.RESERVE", "one", 0.2, 200, *seed)
    r("BF.RESERVE", "many", 0.2, 200, *seed)
    items = [f"i{i % 1500}" for i in range(3000)]
    ones = [r("BF.ADD", "one", i) for i in items]
    manys = sum((r("BF.MADD", "many", *items[i:i + 300])
                 for i in range(0, 3000, 300)), [])
    assert ones == manys
    assert r("DEBUG", "DIGEST-VALUE", "one") == r("DEBUG", "DIGEST-VALUE",
                                                  "many")
    asked = [f"i{i}" for i in range(3000)]
    assert r("BF.MEXISTS", "one", *asked) == [r("BF.EXISTS", "many", i)
                                              for i in asked]


def test_a_full_filter_says_so(r, r3, layout):
    r("BF.RESERVE", "ns", 0.0001, 2, "NONSCALING")
    same(r("BF.ADD", "ns", "a"), 1)
    same(r("BF.ADD", "ns", "b"), 1)
    same(r("BF.ADD", "ns", "c"), FULL)
    same(r("BF.ADD", "ns", "a"), 0)
    same(r("BF.MADD", "ns", "a", "x", "y", "z"), [0, FULL])
    same(r("BF.INSERT", "ns", "ITEMS", "a", "x", "y"), [0, FULL])
    same(r3("BF.MADD", "ns", "a", "x"), [False, FULL])
    same(r("BF.CARD", "ns"), 2)


def test_a_batch_that_does_not_fit_is_added_as_far_as_it_does(r, layout):
    r("BF.RESERVE", "ns", 0.00001, 100, "NONSCALING")
    answers = r("BF.MADD", "ns", *range(300))
    assert answers[-1] == FULL and len(answers) == 101
    assert r("BF.MEXISTS", "ns", *range(100)) == [1] * 100
    assert r("BF.CARD", "ns") == 100


# ---- BF.INSERT -------------------------------------------------------------

@pytest.mark.parametrize("words, reply", [
    ("nk CAPACITY 10", arity("bf.insert")),
    ("nk CAPACITY 10 ITEMS", arity("bf.insert")),
    ("nk ERROR 0.1 CAPACITY", arity("bf.insert")),
    ("nk NOCREATE ITEMS a", NOT_FOUND),
    ("nk NOCREATE CAPACITY 10 ITEMS a", NOT_FOUND),
    ("nk CAPACITY abc ITEMS a", Error("Bad capacity")),
    ("nk CAPACITY 0 ITEMS a", Error("Bad capacity")),
    ("nk ERROR abc ITEMS a", Error("Bad error rate")),
    ("nk ERROR 0 ITEMS a", Error("Bad error rate")),
    ("nk ERROR 1 ITEMS a", Error("Bad error rate")),
    ("nk ERROR nan ITEMS a", Error("Bad error rate")),
    ("nk EXPANSION abc ITEMS a", Error("Bad expansion")),
    ("nk EXPANSION 99999 ITEMS a", Error("Bad expansion")),
    ("nk FOO ITEMS a", Error("Unknown argument received")),
    ("nk CAP 5 ITEMS a", Error("Unknown argument received")),
    ("nk CAPACITY 10 ITEMS a", [1]),
    ("nk items a b", [1, 1]),
    ("nk ITEMS ITEMS CAPACITY 10", [1, 1, 1]),
    ("nk CAPACITY 10 EXPANSION 4 NONSCALING ITEMS a", [1]),
    ("nk EXPANSION 0 ITEMS a", [1]),
    ("nk ERROR 0.9 CAPACITY 100 ITEMS a", [1]),
    ("nk SEED 7 KIND line2 LAYOUT native ITEMS a", [1]),
])
def test_insert(r, layout, words, reply):
    same(r("BF.INSERT", *words.split()), reply)
    assert r("EXISTS", "nk") == (0 if isinstance(reply, Error) else 1)


def test_an_empty_word_is_no_option(r):
    same(r("BF.INSERT", "nk", "", "ITEMS", "a"),
         Error("Unknown argument received"))


def test_insert_creates_a_filter_by_its_options(r, layout):
    r("BF.INSERT", "a", "CAPACITY", 55, "ERROR", 0.1, "EXPANSION", 3,
      "ITEMS", "x", "y")
    facts = r("BF.INFO", "a")
    assert facts[1] == 55 and facts[7] == 2 and facts[9] == 3
    r("BF.INSERT", "b", "CAPACITY", 10, "EXPANSION", 4, "NONSCALING",
      "ITEMS", "x")
    assert r("BF.INFO", "b")[9] is None
    r("BF.INSERT", "c", "EXPANSION", 0, "ITEMS", "x")
    assert r("BF.INFO", "c")[9] is None and r("BF.INFO", "c")[1] == 100


def test_insert_leaves_a_filter_that_is_there_as_it_is(r, layout):
    r("BF.ADD", "k", "a")
    same(r("BF.INSERT", "k", "CAPACITY", 999999, "ERROR", 0.5, "ITEMS", "a",
           "new"), [0, 1])
    assert r("BF.INFO", "k", "CAPACITY") == [100]


# ---- BF.INFO, BF.DEBUG -----------------------------------------------------

def test_info(r, r3, layout):
    r("BF.MADD", "k", "a", "b", "c")
    size = r("BF.INFO", "k", "SIZE")[0]
    assert size == (240 if layout == "redisbloom" else 256)
    same(r("BF.INFO", "k"),
         [Simple("Capacity"), 100, Simple("Size"), size,
          Simple("Number of filters"), 1,
          Simple("Number of items inserted"), 3,
          Simple("Expansion rate"), 2])
    same(r3("BF.INFO", "k"), Map([
        (Simple("Capacity"), 100), (Simple("Size"), size),
        (Simple("Number of filters"), 1),
        (Simple("Number of items inserted"), 3),
        (Simple("Expansion rate"), 2)]))


def test_info_of_one_field(r, r3, layout):
    r("BF.MADD", "k", "a", "b", "c")
    r("BF.RESERVE", "ns", 0.01, 100, "NONSCALING")
    same(r("BF.INFO", "k", "CAPACITY"), [100])
    same(r("BF.INFO", "k", "filters"), [1])
    same(r("BF.INFO", "k", "Items"), [3])
    same(r("BF.INFO", "k", "EXPANSION"), [2])
    same(r("BF.INFO", "ns", "EXPANSION"), [None])
    same(r3("BF.INFO", "k", "CAPACITY"), Map([(Simple("Capacity"), 100)]))
    same(r3("BF.INFO", "k", "FILTERS"), Map([(Simple("Number of filters"), 1)]))
    same(r3("BF.INFO", "ns", "EXPANSION"),
         Map([(Simple("Expansion rate"), None)]))
    same(r("BF.INFO", "k", "foo"), Error("Invalid information value"))
    same(r("BF.INFO", "nokey"), NOT_FOUND)
    same(r("BF.INFO", "nokey", "foo"), NOT_FOUND)


def test_debug(r, layout):
    r("BF.MADD", "k", *range(5000))
    lines = r("BF.DEBUG", "k")
    assert lines[0] == b"size:%d" % r("BF.CARD", "k")
    assert len(lines) == 1 + r("BF.INFO", "k", "FILTERS")[0] > 2
    items = 0
    for line in lines[1:]:
        pairs = dict(pair.split(b":") for pair in line.split())
        assert list(pairs) == [b"bytes", b"bits", b"hashes", b"hashwidth",
                               b"capacity", b"size", b"ratio"]
        items += int(pairs[b"size"])
    assert items == r("BF.CARD", "k")
    same(r("BF.DEBUG", "nokey"), NOT_FOUND)


# ---- BF.SCANDUMP, BF.LOADCHUNK ---------------------------------------------

def test_a_dump_loads_again(r, layout):
    r("BF.INSERT", "k", "CAPACITY", 50, "ITEMS", *range(3000))
    for at, data in dump(r, "k"):
        same(r("BF.LOADCHUNK", "copy", at, data), Simple("OK"))
    assert r("TYPE", "copy") == r("TYPE", "k")
    assert r("DEBUG", "DIGEST-VALUE", "copy") == r("DEBUG", "DIGEST-VALUE", "k")
    assert r("BF.MEXISTS", "copy", *range(3000)) == [1] * 3000
    assert r("BF.INFO", "copy") == r("BF.INFO", "k")


def test_scandump_errors_and_ends(r, layout):
    r("BF.ADD", "k", "a")
    same(r("BF.SCANDUMP", "k", "abc"), Error("Second argument must be numeric"))
    same(r("BF.SCANDUMP", "nokey", 0), NOT_FOUND)
    same(r("BF.SCANDUMP", "nokey", "abc"), NOT_FOUND)
    for at in (-1, 1000000, -2**63, 2**63 - 1):
        same(r("BF.SCANDUMP", "k", at), [0, b""])


def test_loadchunk_errors(r, layout):
    r("BF.ADD", "k", "a")
    (_, head), (at, data) = dump(r, "k")
    same(r("BF.LOADCHUNK", "k", "abc", "data"),
         Error("ERR Second argument must be numeric"))
    same(r("BF.LOADCHUNK", "nokey", 2, "data"), NOT_FOUND)
    bad = "ERR received bad data"
    for key, iterator, bytes_ in (("nokey", 1, b"data"), ("nokey", 1, b""),
                                  ("nokey", 1, head[:-1]), ("k", 1, b"data"),
                                  ("k", 0, b"data"), ("k", -5, b"data"),
                                  ("k", 3, b"abcdef"), ("k", 1, head)):
        answer = r("BF.LOADCHUNK", key, iterator, bytes_)
        assert isinstance(answer, Error) and answer.startswith(bad), answer
    answer = r("BF.LOADCHUNK", "k", at + len(data), data)
    assert answer.startswith("ERR invalid offset - no link found"), answer
    assert r("EXISTS", "nokey") == 0 and r("BF.EXISTS", "k", "a") == 1


def test_a_filter_that_is_partly_loaded_says_so(r, layout):
    r("BF.INSERT", "k", "CAPACITY", 50, "ITEMS", *range(3000))
    pieces = dump(r, "k")
    assert len(pieces) > 1
    for at, data in pieces[:-1]:
        r("BF.LOADCHUNK", "p", at, data)
    before = r("DEBUG", "DIGEST-VALUE", "p")
    for words in ("EXISTS p a", "MEXISTS p a b", "ADD p a", "MADD p a b",
                  "INSERT p ITEMS a", "CARD p", "SCANDUMP p 0"):
        answer = r(*("BF." + words).split())
        assert isinstance(answer, Error), words
        assert "still being loaded" in answer, answer
    assert r("DEBUG", "DIGEST-VALUE", "p") == before
    assert r("BF.INFO", "p")[7] == r("BF.CARD", "k")
    r("BF.LOADCHUNK", "p", *pieces[-1])
    assert r("BF.MEXISTS", "p", *range(3000)) == [1] * 3000
    assert r("DEBUG", "DIGEST-VALUE", "p") == r("DEBUG", "DIGEST-VALUE", "k")


def test_loading_twice_does_no_harm(r, layout):
    r("BF.INSERT", "k", "CAPACITY", 50, "ITEMS", *range(500))
    pieces = dump(r, "k")
    for at, data in pieces + pieces[1:]:
        same(r("BF.LOADCHUNK", "p", at, data), Simple("OK"))
    assert r("DEBUG", "DIGEST-VALUE", "p") == r("DEBUG", "DIGEST-VALUE", "k")


def test_items_that_come_during_a_dump_do_no_harm(r):
    r("BF.RESERVE", "k", 0.01, 5000000)
    r("BF.MADD", "k", *range(1000))
    at, pieces = 0, []
    while True:
        at, data = r("BF.SCANDUMP", "k", at)
        if at == 0:
            break
        pieces.append((at, data))
        r("BF.MADD", "k", *(f"later:{at}:{i}" for i in range(1000)))
    assert len(pieces) > 2
    for at, data in pieces:
        same(r("BF.LOADCHUNK", "p", at, data), Simple("OK"))
    assert r("BF.MEXISTS", "p", *range(1000)) == [1] * 1000


def test_a_piece_of_another_filter_is_refused(r):
    for seed, key in enumerate("ab"):
        r("BF.INSERT", key, "CAPACITY", 1000, "SEED", seed, "ITEMS", "x")
    (at, head), (_, _) = dump(r, "a")
    r("BF.LOADCHUNK", "p", at, head)
    answer = r("BF.LOADCHUNK", "p", *dump(r, "b")[1])
    assert answer.startswith("ERR received bad data: a piece that is damaged")


# ---- Layouts ---------------------------------------------------------------

def test_types(r, layout):
    r("BF.ADD", "k", "a")
    wanted = {"native": "calyxbf-1", "redisbloom": "MBbloom--"}[layout]
    same(r("TYPE", "k"), Simple(wanted))
    same(r("OBJECT", "ENCODING", "k"), b"raw")


@pytest.mark.parametrize("name", ["native", "redisbloom"])
def test_the_layout_can_be_chosen_for_one_filter(r, name):
    r("BF.RESERVE", "k", 0.01, 100, "LAYOUT", name)
    r("BF.INSERT", "l", "LAYOUT", name.upper(), "ITEMS", "a")
    assert r("TYPE", "k") == r("TYPE", "l")
    assert (r("TYPE", "k") == "MBbloom--") == (name == "redisbloom")


def test_a_redisbloom_filter_has_the_numbers_of_redisbloom(r):
    r("CONFIG", "SET", PREFIX + "calyx-layout", "redisbloom")
    r("BF.ADD", "k", "a")
    same(r("BF.DEBUG", "k"), [b"size:1", b"bytes:144 bits:1152 hashes:8 "
                              b"hashwidth:64 capacity:100 size:1 ratio:0.005"])
    r("BF.RESERVE", "ns", 0.01, 2, "NONSCALING")
    assert r("BF.INFO", "ns", "SIZE") == [104]
    pieces = dump(r, "k")
    assert [(at, len(data)) for at, data in pieces] == [(1, 73), (145, 144)]
    assert len(r("BF.SCANDUMP", "k", 100)[1]) == 45
