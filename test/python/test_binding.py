"""The Python binding, against the library that was just built."""
import array
import ast
import copy
import ctypes
import os
import pickle
import random
import re
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path

import pytest

import calyx
from calyx import Builder, Filter

CALYX = os.environ["CALYX"]
PACKAGE = Path(__file__).parents[2] / "python/calyx"
ADDABLE = [k for k in calyx.kinds() if "add" in calyx.plan(10, .01, kind=k).can]
REMOVABLE = [k for k in ADDABLE
             if "remove" in calyx.plan(10, .01, kind=k).can]


# ---- One key -----------------------------------------------------------------

@pytest.mark.parametrize("kind", ADDABLE)
def test_every_added_key_is_there_and_few_others(kind):
    f = Filter(2000, .01, kind=kind)
    for i in range(2000):
        f.add(f"key {i}")
    assert all(f"key {i}" in f for i in range(2000))
    # 10,000 absent keys at 1 %: 100, and never 200 by chance
    assert sum(f"other {i}" in f for i in range(10_000)) < 200
    assert f.info.kind == kind and 1900 < len(f) <= 2000


def test_a_number_is_its_8_bytes_and_a_text_its_utf_8():
    f = Filter(100, .001)
    f.add(5)
    assert (5).to_bytes(8, "little") in f
    f.add("Röschen")
    assert "Röschen".encode() in f and bytearray("Röschen".encode()) in f
    f.add(b"")
    assert "" in f and memoryview(b"") in f
    f.add(2**64 - 1)
    assert 2**64 - 1 in f


def test_a_negative_number_is_the_key_2_to_the_64_above_it():
    f = Filter(100, .0001)
    f.add(-1), f.add(-2**63)
    assert 2**64 - 1 in f and b"\xff" * 8 in f and 2**63 in f
    assert f.add(-2) is True and len(f) == 3
    with pytest.raises(OverflowError):
        f.add(10**5000)  # which Python does not even print


def test_a_number_of_numpy_is_the_number_not_its_bytes():
    import numpy
    f = Filter(100, .0001)
    for letter in "bBhHiIlLqQ":
        f.clear()
        f.add(numpy.dtype(letter).type(5))
        assert 5 in f and list(f.has_many([5, b"\5", b"\5\0\0\0"])) == [True, False, False]
    f.add(numpy.array(6, ">i4"))
    f.add(numpy.array([1, 2], "uint8"))
    assert 6 in f and b"\1\2" in f
    for wrong in (numpy.float64(1), numpy.array([1, 2]), array.array("d", [1]),
                  memoryview(array.array("Q", [1]))):
        with pytest.raises(TypeError, match="a key is str, bytes or int"):
            f.add(wrong)


def test_add_returns_whether_the_key_is_new():
    f = Filter(100, .001)
    assert f.add("rose") is True and f.add("rose") is False


@pytest.mark.parametrize("wrong, error", [
    (-2**63 - 1, OverflowError), (2**64, OverflowError),
    (1.5, TypeError),
    (None, TypeError), (["rose"], TypeError), ("\ud800", UnicodeEncodeError)])
def test_what_is_no_key_is_refused(wrong, error):
    f = Filter(100, .01)
    with pytest.raises(error):
        f.add(wrong)
    with pytest.raises(error):
        wrong in f
    with pytest.raises(error):
        f.add_many(["good", wrong])


@pytest.mark.parametrize("kind", REMOVABLE)
def test_removed_keys_are_gone(kind):
    f = Filter(1000, .001, kind=kind)
    assert f.add_many(range(500)) > 490
    assert f.remove_many(range(0, 500, 2)) == 250
    assert f.remove(1) is True
    assert all(i in f for i in range(3, 500, 2))
    assert sum(i in f for i in range(0, 500, 2)) < 10
    assert f.remove("never added") is False


def test_a_kind_that_cannot_remove_says_so():
    with pytest.raises(calyx.Error):
        Filter(10, .01).remove("a")


def test_count():
    f = Filter(100, .001, kind=REMOVABLE[0])
    f.add("a"), f.add("a")
    assert f.count("a") == 2 and f.count("b") == 0


# ---- Many keys ---------------------------------------------------------------

def sources(numbers):
    """Of numbers that 63 bits hold."""
    import numpy
    yield list(numbers)
    yield tuple(numbers)
    yield (i for i in numbers)
    yield array.array("Q", numbers)
    yield memoryview(array.array("Q", numbers))
    yield array.array("q", numbers)
    yield numpy.array(numbers, dtype="uint64")
    yield numpy.array(numbers, dtype="int64")
    yield numpy.array(numbers, dtype=">u8")
    yield numpy.array(numbers, dtype="<i8")
    yield numpy.array(numbers, dtype="object")
    yield numpy.repeat(numpy.array(numbers, dtype="uint64"), 3)[::3]
    yield numpy.array(numbers[::-1], dtype=">i8")[::-1]
    yield numpy.frombuffer(b"-" + array.array("Q", numbers).tobytes(), "uint64",
                           offset=1)  # at an odd address
    yield Arrow("L", numbers)
    yield Arrow("l", numbers)


def test_all_sources_of_numbers_make_the_same_filter():
    numbers = random.Random(1).sample(range(2**62), 5000)
    wanted = Filter(5000, .01)
    for i in numbers:
        wanted.add(i)
    for source in sources(numbers):
        f = Filter(5000, .01)
        f.add_many(source)
        assert f.to_bytes() == wanted.to_bytes()
    for source in sources(numbers):
        assert bytes(f.has_many(source)) == b"\1" * 5000


@pytest.mark.parametrize("letter", "bBhHiIlLqQ")
def test_integers_of_every_size_are_the_keys_of_their_values(letter):
    import numpy
    size = array.array(letter).itemsize
    low = -2**(8 * size - 1) if letter.islower() else 0
    numbers = [low, low + 1, 1, 127, low + 2**(8 * size) - 1]
    wanted = Filter(100, .0001)
    for number in numbers:
        wanted.add(number)
    native = numpy.array(numbers, dtype=f"{'i' if low else 'u'}{size}")
    of_arrow = "csil"[size.bit_length() - 1]
    for source in (array.array(letter, numbers), memoryview(array.array(letter, numbers)),
                   native, native.astype(native.dtype.newbyteorder()),
                   numpy.repeat(native, 2)[::2], list(native),
                   Arrow(of_arrow if low else of_arrow.upper(), numbers)):
        f = Filter(100, .0001)
        f.add_many(source)
        assert f.to_bytes() == wanted.to_bytes()


def empty_sources():
    import numpy
    yield from ([], (), set(), {}, iter([]), range(0), (i for i in ()))
    yield from (array.array(letter) for letter in "bQd")
    yield from (numpy.array([], dtype) for dtype in ("uint64", "float", "S5", "U5", "object"))
    yield from (Arrow(letter, []) for letter in "uLcf")


def test_no_keys_are_many_keys_too():
    for source in empty_sources():
        f = Filter(100, .01, kind=REMOVABLE[0])
        assert f.add_many(source) == 0
        assert f.remove_many(source) == 0
        assert f.has_many(source).tolist() == []
        b = Builder(p=.01)
        assert b.add_many(source) == 0 and len(b.finish()) == 0


def test_all_sources_of_texts_make_the_same_filter():
    import numpy
    texts = [f"https://example.org/{i}" for i in range(5000)] + ["", "ö"]
    wanted = Filter(5002, .01)
    wanted.add_many(texts)
    for source in (iter(texts), [t.encode() for t in texts], Arrow("u", texts),
                   Arrow("U", texts), Arrow("z", texts), Arrow("Z", texts),
                   numpy.array(texts), numpy.array(texts).astype(">U40"),
                   numpy.array([t.encode() for t in texts]),
                   numpy.array(texts, "object"), numpy.repeat(texts, 2)[::2]):
        f = Filter(5002, .01)
        f.add_many(source)
        assert f.to_bytes() == wanted.to_bytes()
    mixed = ["a", b"b", 3, bytearray(b"d")]
    assert list(f.has_many(mixed)) == [key in f for key in mixed]


def test_a_slice_of_an_arrow_array_begins_at_its_offset():
    texts = [f"key {i}" for i in range(100)]
    f = Filter(100, .0001)
    assert f.add_many(Arrow("u", texts, offset=90)) == 10
    assert list(f.has_many(texts)) == [False] * 90 + [True] * 10
    f = Filter(100, .0001)
    assert f.add_many(Arrow("L", range(100), offset=90)) == 10
    assert list(f.has_many(range(100))) == [False] * 90 + [True] * 10


def test_has_many_gives_bools_that_numpy_takes_without_a_copy():
    import numpy
    f = Filter(1000, .0001)
    f.add_many(range(0, 1000, 2))
    found = f.has_many(range(1000))
    assert found[0] is True and isinstance(found, memoryview)
    array_ = numpy.asarray(found)
    assert array_.dtype == bool and array_.sum() == 500 + found.tolist()[1::2].count(True)


@pytest.mark.parametrize("wrong, error", [
    ("rose", TypeError), (b"rose", TypeError), (5, TypeError),
    (array.array("d", [1]), TypeError)])
def test_what_is_not_many_keys_is_refused(wrong, error):
    f = Filter(100, .01)
    for call in (f.add_many, f.has_many):
        with pytest.raises(error):
            call(wrong)
    assert len(f) == 0


def test_other_arrays_are_refused():
    import numpy
    f = Filter(100, .01)
    for wrong in (numpy.zeros((2, 2), "uint64"), numpy.array(5, "uint64"),
                  numpy.zeros(4, "bool"), numpy.zeros(4, "float32"),
                  numpy.zeros((2, 2), "S3"), numpy.zeros(2, "i4,i4"),
                  numpy.array([1.5, 2], "object")):
        with pytest.raises(TypeError):
            f.add_many(wrong)
    with pytest.raises(ValueError, match="nulls"):
        f.add_many(Arrow("u", ["a", "b"], nulls=True))
    with pytest.raises(TypeError, match="format 'f'"):
        f.add_many(Arrow("f", [1]))
    assert len(f) == 0


def test_an_error_of_an_iterator_is_raised():
    def keys():
        yield "a"
        raise KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        Filter(100, .01).add_many(keys())


# ---- Files -------------------------------------------------------------------

def test_a_file_is_the_same_as_by_the_command(tmp_path):
    keys = [f"line {i}" for i in range(1000)]
    subprocess.run([CALYX, "build", "-n", "1000", "-o", tmp_path / "a.calyx"],
                   input="\n".join(keys).encode() + b"\n", check=True)
    with Filter.open(tmp_path / "a.calyx") as f:
        assert f.info.read_only and bytes(f.has_many(keys)) == b"\1" * 1000
    g = Filter(1000, .01)
    g.add_many(keys)
    g.comment = "of Python"
    g.save(str(tmp_path / "b.calyx"))
    shown = subprocess.run([CALYX, "info", tmp_path / "b.calyx"], check=True,
                           capture_output=True, text=True).stdout
    assert "of Python" in shown
    assert Filter.load(os.fsencode(tmp_path / "b.calyx")).comment == "of Python"


def test_a_comment_that_cannot_be_stored_is_refused():
    f = Filter(10, .01)
    for wrong in ("cut\0here", "x" * 1001):
        with pytest.raises(ValueError):
            f.comment = wrong
    assert f.comment == ""
    with pytest.raises(TypeError):
        f.comment = 5


def test_a_mapped_file_takes_keys_that_last(tmp_path):
    path = tmp_path / "a.calyx"
    Filter(1000, .01).save(path)
    with Filter.open(path, write=True) as f:
        f.add_many(range(500))
        f.sync()
    with pytest.raises(ValueError, match="closed"):
        5 in f
    with pytest.raises(ValueError, match="closed"):
        f.add_many([5])
    assert repr(f) == "<calyx.Filter, closed>"
    f.close()
    g = Filter.open(path, verify="whole")
    assert bytes(g.has_many(range(500))) == b"\1" * 500
    with pytest.raises(calyx.Error):
        g.add(1)


def test_damage_is_an_error(tmp_path):
    path = tmp_path / "a.calyx"
    f = Filter(100_000, .01)
    f.add_many(range(100_000))
    f.save(path)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    for call in (lambda: Filter.load(path), lambda: Filter.open(path).verify(),
                 lambda: Filter.open(path, verify="whole"),
                 lambda: Filter.from_bytes(data),
                 lambda: Filter.from_bytes(b"not a filter")):
        with pytest.raises(calyx.Error):
            call()
    with pytest.raises(FileNotFoundError):
        Filter.open(tmp_path / "none.calyx")
    with pytest.raises(ValueError, match="verify is"):
        Filter.open(path, verify="maybe")


def test_a_secret_key(tmp_path):
    key = bytes(range(16))
    f = Filter(100, .001, key=key)
    f.add("a")
    f.save(tmp_path / "a.calyx")
    assert f.info.hash == "siphash"
    assert "a" in Filter.open(tmp_path / "a.calyx", key=key)
    with pytest.raises(calyx.Error):
        Filter.open(tmp_path / "a.calyx")
    with pytest.raises(ValueError, match="16 secret bytes"):
        Filter(100, .001, key=b"short")


def test_pickle_and_copy():
    f = Filter(100, .01)
    f.add("a")
    for g in (pickle.loads(pickle.dumps(f)), f.copy(), copy.copy(f),
              copy.deepcopy(f)):
        assert g == f
        g.add("b")
        assert "a" in g and "b" not in f


def test_a_filter_with_a_secret_key_is_copied_but_not_pickled():
    key = bytes(range(16))
    f = Filter(100, .001, key=key)
    f.add("a")
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError, match="secret key"):
            pickle.dumps(f, protocol)
    assert Filter.from_bytes(f.to_bytes(), key=key) == copy.deepcopy(f) == f


# ---- Whole filters -----------------------------------------------------------

def test_or_and_and():
    a, b = Filter(1000, .0001), Filter(1000, .0001)
    a.add_many(range(0, 600)), b.add_many(range(400, 1000))
    both = a.copy()
    both &= b
    a |= b
    assert bytes(a.has_many(range(1000))) == b"\1" * 1000
    assert bytes(both.has_many(range(400, 600))) == b"\1" * 200
    assert sum(both.has_many(range(400))) < 10
    a |= a
    with pytest.raises(calyx.Error):
        a |= Filter(50, .01)
    with pytest.raises(TypeError):
        a |= {1, 2}
    a.clear()
    assert len(a) == 0


COMPARABLE = [k for k in ADDABLE
              if "intersect" in calyx.plan(10, .01, kind=k).can]


def three(kind):
    """Filters of some keys, of others, and of both."""
    a, b, both = (Filter(1000, .0001, kind=kind) for _ in range(3))
    a.add_many(range(0, 600)), b.add_many(range(400, 1000))
    both.add_many(range(0, 1000))
    return a, b, both


@pytest.mark.parametrize("kind", COMPARABLE)
def test_filters_have_the_operators_of_a_set(kind):
    a, b, both = three(kind)
    before = a.to_bytes(), b.to_bytes()
    union = a | b
    assert type(union) is Filter and union is not a
    assert a.union(b) == b | a == union and union <= both <= union
    common = a & b
    assert a.intersection(b) == common
    assert bytes(common.has_many(range(400, 600))) == b"\1" * 200
    assert common < a < union and common < b < union
    assert union > a > common and union >= union and common <= common
    assert not a <= b and not a >= b and not a < b and not a > b
    assert a.issubset(union) and union.issuperset(b) and not a.issubset(b)
    assert (a.to_bytes(), b.to_bytes()) == before
    c = a.copy()
    c |= b
    assert c == union and c != a
    c = a.copy()
    assert c.update(b) is None and c == union
    c &= a
    assert c <= a <= c and (c == a or "count" in a.info.can)
    assert c.intersection_update(b) is None and c <= common <= c


@pytest.mark.parametrize("kind", COMPARABLE)
def test_update_union_and_intersection_take_keys_as_a_set_does(kind):
    a, b, both = three(kind)
    assert a.union(range(400, 1000)) <= both
    assert a.intersection(range(400, 1000), range(500, 1000)) <= a.intersection(b)
    assert bytes((a & b).has_many(range(500, 600))) == b"\1" * 100
    assert a.union() == a == a.intersection()
    a.update(iter(["x", "y"]), [b"z"], b)
    assert all(a.has_many(["x", "y", "z", 999]))
    a.intersection_update(["x"], [b"x", "y"])
    assert "x" in a and "y" not in a and "z" not in a
    for call in (a.update, a.union, a.intersection, a.issubset, a.issuperset):
        with pytest.raises(TypeError):
            call(5)
    with pytest.raises(TypeError):
        a.update("xyz")


@pytest.mark.parametrize("kind", ADDABLE)
def test_equal_filters_have_equal_contents(kind):
    f, g = Filter(1000, .01, kind=kind), Filter(1000, .01, kind=kind)
    assert f == g and not f != g
    f.add_many(range(500))
    assert f != g and not f == g
    g.add_many(range(500))
    g.comment = "another one"
    assert f == g == Filter.from_bytes(f.to_bytes()) == f.copy()
    for other in (Filter(1000, .01, kind=kind, seed=1), Filter(9000, .01, kind=kind),
                  Filter(1000, .01, kind=next(k for k in ADDABLE if k != kind)),
                  {1}, None):
        other = other.union(range(500)) if other and other != {1} else other
        assert f != other and not f == other
    with pytest.raises(TypeError, match="unhashable"):
        hash(f)
    with pytest.raises(TypeError):
        f < {1}
    g.close()
    with pytest.raises(ValueError, match="closed"):
        f == g
    with pytest.raises(ValueError, match="closed"):
        f | g


def test_filters_that_grew_are_equal_if_all_their_parts_are():
    for kind in ADDABLE:
        f, g = (Filter(50, .01, kind=kind, growth=2, seed=0) for _ in range(2))
        f.add_many(range(1000)), g.add_many(range(1000))
        assert f.info.bytes > Filter(50, .01, kind=kind).info.bytes
        assert f == g == f.copy()
        g.add("one more")
        assert f != g


def test_counters_are_part_of_the_contents():
    kind = next(k for k in COMPARABLE if "count" in calyx.plan(10, .01, kind=k).can)
    f = Filter(100, .01, kind=kind)
    f.add("a")
    g = f.copy()
    g.add("a")
    assert f != g and f <= g <= f
    g.remove("a")
    assert f == g


def test_an_allow_list_is_part_of_the_contents(tmp_path):
    f = Filter(100, .01)
    f.add_many(["a", "b"])
    f.save(tmp_path / "a.calyx")
    subprocess.run([CALYX, "allow", tmp_path / "a.calyx"], input=b"b\n", check=True)
    g = Filter.load(tmp_path / "a.calyx")
    assert "b" not in g and f != g and g == g.copy()


def test_filters_that_cannot_be_compared_say_so():
    f = Filter(100, .01)
    with pytest.raises(calyx.Error):
        f <= Filter(50_000, .01)
    for kind in set(ADDABLE) - set(COMPARABLE):
        with pytest.raises(calyx.Error):
            Filter(100, .01, kind=kind) <= Filter(100, .01, kind=kind)
    with pytest.raises(TypeError):
        f | {1}
    with pytest.raises(TypeError):
        {1} & f


def test_an_empty_filter_is_false():
    f = Filter(100, .01)
    assert not f and not f.copy()
    f.add("a")
    assert f and f.copy()
    f.clear()
    assert not f


def test_a_filter_can_be_referenced_weakly():
    f = Filter(100, .01)
    called = []
    r = weakref.ref(f, called.append)
    assert r() is f
    del f
    assert r() is None and called == [r]

    class Mine(Filter):
        pass
    m = Mine(100, .01)
    r = weakref.ref(m)
    assert type(m.copy()) is type(m | m) is Mine
    del m
    assert r() is None


def test_info_is_a_named_tuple():
    info = Filter(100, .01).info
    assert isinstance(info, calyx.Info) and calyx.Info.__module__ == "calyx"
    assert info._asdict()["kind"] == info.kind == info[0]
    assert info._replace(items=5).items == 5
    assert calyx.Info._fields[0] == "kind" and calyx.Info._make(info) == info
    assert pickle.loads(pickle.dumps(info)) == info
    assert "rate" in calyx.Info.fpr.__doc__ and calyx.Info.__doc__


def test_the_type_stub_declares_what_there_is():
    stub = ast.parse((PACKAGE / "__init__.pyi").read_text())
    declared = {c.name: [getattr(member, "name", None) or member.target.id for member in c.body
                         if not isinstance(member, ast.Expr)]
                for c in stub.body if isinstance(c, ast.ClassDef)}
    assert tuple(declared["Info"]) == calyx.Info._fields
    for type_ in (Filter, Builder):
        names = set(declared[type_.__name__])
        assert {n for n in vars(type_) if n[0] != "_"} == {n for n in names if n[0] != "_"}
        assert names <= set(vars(type_))


def test_a_filter_that_grows_has_a_random_seed_unless_one_is_given():
    for kind in (None, *ADDABLE):
        f = Filter(kind=kind, growth=2)
        # equal once in 2**64 runs
        assert f.info.seed != Filter(kind=kind, growth=2).info.seed
        g = Filter(kind=kind, growth=2, seed=f.info.seed)
        assert g.info.seed == f.info.seed and g == f
        assert Filter(kind=kind, growth=2, seed=0).info.seed == 0
    assert Filter(100, .01).info.seed == 0
    assert Filter(100, .01, seed=2**64 - 1).info.seed == 2**64 - 1
    assert Builder(p=.01, growth=2).finish().info.seed == 0


def test_growth():
    f = Filter(10, .01, growth=2, seed=0)
    f.add_many(range(5000))
    assert f.info.parts > 1
    assert bytes(f.has_many(range(5000))) == b"\1" * 5000


def test_plans_are_as_in_the_library():
    is_ = calyx.plan(10**9, .01)
    assert is_.kind == calyx.kinds()[0] and 1.2e9 < is_.bytes < 1.3e9
    shown = subprocess.run([CALYX, "plan", "-n", "1e9", "-p", "1%", "--json"],
                           check=True, capture_output=True, text=True).stdout
    assert f'"bytes": {is_.bytes}' in shown
    assert calyx.plan(p=.01, bits=10**6).capacity > 90_000
    assert calyx.plan(100, bits=1000).fpr > .001


@pytest.mark.parametrize("options", [
    {"n": 0}, {"n": -5}, {"n": 10, "p": 0}, {"n": 10, "p": 1},
    {"n": 10, "kind": "lien"}, {"n": 10, "p": .1, "bits": 100},
    {"n": 10, "probes": 1000}, {"n": 10, "growth": 100}, {"n": 10, "hash": "md5"},
    {"n": 10, "seed": -1}, {"n": 10, "seed": 2**64}])
def test_wrong_options_are_refused(options):
    for call in (Filter, calyx.plan):
        with pytest.raises(ValueError):
            call(**options)


def test_properties_are_saved_and_a_builder_copies_them(tmp_path):
    f = Filter(10, .01)
    assert f.get_property("key-options") is None
    f.set_property("key-options", "-i")
    f.set_property("é", "")
    f.set_property("gone", "x")
    f.set_property("gone", None)
    f.comment = "of Python"
    for wrong in [("a\0b", "x"), ("", "x"), ("a", "x" * 5000)]:
        with pytest.raises(ValueError):
            f.set_property(*wrong)
    with pytest.raises(TypeError):
        f.set_property("a", 5)
    b = Builder(p=.01)
    b.add("Rose")
    b.copy_texts(f)
    for wrong in (None, "text"):
        with pytest.raises(TypeError):
            b.copy_texts(wrong)
    b.save(tmp_path / "a.calyx")
    g = Filter.open(tmp_path / "a.calyx")
    assert (g.get_property("key-options"), g.get_property("é"), g.get_property("gone"), g.comment) == (
        "-i", "", None, "of Python")
    f.close()
    for call in (lambda: f.get_property("é"), lambda: f.set_property("a", "b"),
                 lambda: b.copy_texts(f)):
        with pytest.raises(ValueError):
            call()


# ---- Builder -----------------------------------------------------------------

@pytest.mark.parametrize("kind", calyx.kinds())
def test_a_builder_makes_every_kind_without_knowing_n(kind, tmp_path):
    b = Builder(p=.01, kind=kind, memory=1 << 20, folder=tmp_path)
    b.add("first")
    b.add_many(f"key {i}" for i in range(20_000))
    f = b.finish()
    assert f.info.kind == kind and "first" in f
    assert bytes(f.has_many(f"key {i}" for i in range(20_000))) == b"\1" * 20_000
    assert sum(f.has_many(f"other {i}" for i in range(20_000))) < 400
    b.save(tmp_path / "a.calyx")
    assert "first" in Filter.open(tmp_path / "a.calyx")


# ---- The README ---------------------------------------------------------------

@pytest.mark.parametrize("page, before, wanted", [
    (PACKAGE.parent / "README.md", "", "True False\nTrue True\n"),
    (PACKAGE.parents[1] / "README.md", "import calyx\n", "certainly not\n"),
])
def test_the_programs_of_the_readmes_run(tmp_path, page, before, wanted):
    blocks = re.findall("```python\n(.*?)```", page.read_text(), re.S)
    env = os.environ | {"PYTHONPATH": str(Path(calyx.__file__).parents[1])}
    shown = subprocess.run([sys.executable, "-c", before + "".join(blocks)], cwd=tmp_path, env=env,
                           check=True, capture_output=True, text=True).stdout
    assert shown == wanted


# ---- Threads -----------------------------------------------------------------

@pytest.mark.parametrize("concurrent", [False, True])
def test_threads_lose_no_key(concurrent):
    f = Filter(80_000, .01, concurrent=concurrent)
    parts = [array.array("Q", range(i * 10_000, (i + 1) * 10_000))
             for i in range(8)]
    threads = [threading.Thread(target=f.add_many, args=(part,)) for part in parts]
    threads += [threading.Thread(target=f.has_many, args=(part,)) for part in parts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bytes(f.has_many(range(80_000))) == b"\1" * 80_000


def test_two_filters_joined_both_ways_at_once_do_not_block():
    a, b = Filter(1000, .01), Filter(1000, .01)
    a.add(1), b.add(2)

    def join(x, y):
        for _ in range(200):
            x |= y
    threads = [threading.Thread(target=join, args=pair)
               for pair in ((a, b), (b, a))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 1 in b and 2 in a


def test_the_gil_is_free_while_many_keys_are_added():
    """Another thread works while one long call runs, which never yields the
    GIL by itself: it sees the filter before the call returns."""
    f = Filter(20_000_000, .01, concurrent=True)
    keys = array.array("Q", range(4_000_000))
    seen = []
    done = threading.Event()

    def watch():
        while not done.is_set():
            n = len(f)
            if 0 < n < 3_000_000:
                seen.append(n)
                return
    watcher = threading.Thread(target=watch)
    watcher.start()
    end = time.monotonic() + 300  # then the watcher hangs
    while not seen and time.monotonic() < end:
        f.clear()
        f.add_many(keys)
    done.set()
    watcher.join()
    assert seen


# ---- A minimal producer of Arrow arrays --------------------------------------

class Schema(ctypes.Structure):
    _fields_ = [("format", ctypes.c_char_p), ("name", ctypes.c_char_p),
                ("metadata", ctypes.c_char_p), ("flags", ctypes.c_int64),
                ("n_children", ctypes.c_int64), ("children", ctypes.c_void_p),
                ("dictionary", ctypes.c_void_p), ("release", ctypes.c_void_p),
                ("private_data", ctypes.c_void_p)]


class Array(ctypes.Structure):
    _fields_ = [("length", ctypes.c_int64), ("null_count", ctypes.c_int64),
                ("offset", ctypes.c_int64), ("n_buffers", ctypes.c_int64),
                ("n_children", ctypes.c_int64),
                ("buffers", ctypes.POINTER(ctypes.c_void_p)),
                ("children", ctypes.c_void_p), ("dictionary", ctypes.c_void_p),
                ("release", ctypes.c_void_p), ("private_data", ctypes.c_void_p)]


capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype = ctypes.py_object
capsule.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Arrow:
    """An array of a format letter, as pyarrow's would export it."""

    def __init__(self, letter, values, offset=0, nulls=False):
        values = list(values)
        if letter in "uUzZ":
            data = [v.encode() for v in values]
            ends = [0]
            for d in data:
                ends.append(ends[-1] + len(d))
            wide = letter in "UZ"
            buffers = [array.array("q" if wide else "i", ends),
                       ctypes.create_string_buffer(b"".join(data) or b"\0")]
        else:
            types = dict(zip("cCsSiIlLf", "bBhHiIqQf"))
            buffers = [array.array(types[letter], values)]
        self.keep = [ctypes.create_string_buffer(b"\1"), *buffers]
        places = [ctypes.addressof(self.keep[0]) if nulls else None]
        for b in buffers:
            places.append(b.buffer_info()[0] if isinstance(b, array.array)
                          else ctypes.addressof(b))
        self.places = (ctypes.c_void_p * len(places))(*places)
        self.schema = Schema(format=letter.encode())
        self.array = Array(length=len(values) - offset, offset=offset,
                           null_count=1 if nulls else 0, n_buffers=len(places),
                           buffers=self.places)

    def __arrow_c_array__(self, requested_schema=None):
        return (capsule(ctypes.addressof(self.schema), b"arrow_schema", None),
                capsule(ctypes.addressof(self.array), b"arrow_array", None))
