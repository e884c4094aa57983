"""calyx.dask on three workers: what it makes is what one 'calyx build' makes, whatever
is killed on the way."""
import os
import subprocess
import sys
import threading

import pytest

dask = pytest.importorskip("dask")
pytest.importorskip("distributed")
pandas = pytest.importorskip("pandas")
numpy = pytest.importorskip("numpy")
import calyx  # noqa: E402
import calyx.dask  # noqa: E402
import dask.bag  # noqa: E402
import dask.dataframe  # noqa: E402
from distributed import Client  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
from engines import HANGS, ROOT, Dask, until  # noqa: E402

CALYX = os.environ.get("CALYX", f"{ROOT}/build/calyx")
KEYS = 600_000


@pytest.fixture(scope="module")
def engine(tmp_path_factory):
    folder = str(tmp_path_factory.mktemp("dask"))
    with Dask(folder, env={"CALYX_TRAPS": folder,
              "PYTHONPATH": f"{HERE}:{os.environ.get('PYTHONPATH', '')}"},
              worker_words=["--preload", f"{HERE}/trap.py"]) as started:
        with Client(started.address, timeout=HANGS) as client:
            client.wait_for_workers(3, timeout=HANGS)
            yield started


def words(number):
    """600,000 keys in six partitions; half of each is in the next one, too."""
    first, last = number * KEYS // 7, (number + 2) * KEYS // 7
    return [f"key {i}" for i in range(first, last)]


def a_bag():
    return dask.bag.from_delayed([dask.delayed(words)(i) for i in range(6)])


def distinct():
    return len({key for i in range(6) for key in words(i)})


def one(path, keys, n, p=0.01, **options):
    """What one Builder makes, in one part, of any keys."""
    builder = calyx.Builder(n, p, part=1, parts=1, **options)
    texts = calyx.Filter(1)
    texts.set_property("key-options", "")
    builder.copy_texts(texts)
    for some in keys:
        builder.add_many(some)
    builder.save(str(path) + ".part")
    calyx.join([str(path) + ".part"], path)
    return path.read_bytes()


@pytest.mark.parametrize("kind", ["line", "split", "ribbon"])
def test_the_filter_is_as_by_one_build_though_workers_are_killed_in_each_phase(
        engine, tmp_path, kind, monkeypatch):
    folder, killed = engine.folder, []
    traps = ["_hash-begin", "_hash-end", "_build_part-begin", "_build_part-end"]
    for name in os.listdir(folder):
        if name.startswith("arm-"):
            os.unlink(f"{folder}/{name}")
    for trap in traps:
        open(f"{folder}/arm-{trap}", "w").close()

    def kill():
        for trap in traps:
            until(lambda: os.path.exists(f"{folder}/arm-{trap}-pid"), f"{trap} runs")
            with open(f"{folder}/arm-{trap}-pid") as file:
                killed.append(int(file.read()))
            engine.lose_worker(killed[-1])

    def join(parts, path):  # a worker dies while the client joins
        engine.lose_worker(engine.workers[-1].pid)
        calyx.join(parts, path)

    monkeypatch.setattr(calyx.dask, "join", join)
    killer = threading.Thread(target=kill)
    killer.start()
    calyx.dask.build(a_bag(), str(tmp_path / "f.calyx"), 0.005, kind=kind, parts=2,
                     n=None if kind == "ribbon" else distinct())
    killer.join(HANGS)
    assert len(set(killed)) == 4
    assert os.listdir(tmp_path) == ["f.calyx"]
    (tmp_path / "keys").write_text("".join(f"{key}\n" for i in range(6) for key in words(i)))
    subprocess.run([CALYX, "build", "--kind", kind, "-p", "0.5%", "-n", str(distinct()), "-o",
                    tmp_path / "one", tmp_path / "keys"], check=True, timeout=HANGS)
    assert (tmp_path / "f.calyx").read_bytes() == (tmp_path / "one").read_bytes()


@pytest.mark.parametrize("column", [
    pandas.Series([f"é{i}" for i in range(50_000)]),
    pandas.Series([b"%d" % i for i in range(50_000)]),
    pandas.Series(numpy.arange(-25_000, 25_000)),
    pandas.Series(numpy.arange(50_000, dtype="uint16") % 40_000),
    pandas.Series([f"s{i}" for i in range(1000)], dtype="string", index=range(5, 1005)),
])
def test_columns_of_text_bytes_and_integers_are_built_and_found(engine, tmp_path, column):
    path, n = tmp_path / "f.calyx", column.nunique()
    series = dask.dataframe.from_pandas(column.rename("ids"), npartitions=5, sort=False)
    calyx.dask.build(series, str(path), 0.001)
    assert path.read_bytes() == one(tmp_path / "one", [list(column)], n, 0.001)
    found = calyx.dask.isin(series, str(path)).compute()
    assert found.all() and found.name == "ids" and list(found.index) == list(column.index)
    absent = dask.dataframe.from_pandas(
        pandas.Series([f"absent {i}" for i in range(20_000)]), npartitions=2)
    assert calyx.dask.isin(absent, str(path)).sum().compute() < 60  # 20 are expected


def test_many_parts_secret_keys_and_other_hashes_make_the_same_file(engine, tmp_path):
    keys = [words(i) for i in range(2)]
    bag = dask.bag.from_delayed([dask.delayed(words)(i) for i in range(2)])
    n = len(set(keys[0] + keys[1]))
    for options in ({"parts": 37}, {"seed": 7, "hash": "murmur3"}, {"key": b"k" * 16},
                    {"kind": "split", "parts": 1}):
        path = tmp_path / "f.calyx"
        calyx.dask.build(bag, str(path), n=n, **options)
        options.pop("parts", None)
        assert path.read_bytes() == one(tmp_path / "one", keys, n, **options)


def test_what_cannot_be_is_said(engine, tmp_path):
    bag = dask.bag.from_sequence(["a", "b"], npartitions=1)
    path = str(tmp_path / "f.calyx")
    with pytest.raises(ValueError, match="cannot be made of parts"):
        calyx.dask.build(bag, path, kind="flat")
    with pytest.raises(ValueError, match="expected 1 to 1024"):
        calyx.dask.build(bag, path, parts=2000)
    with pytest.raises(ValueError, match="too small for 900 parts"):
        calyx.dask.build(bag, path, n=10_000, parts=900)
    with pytest.raises(TypeError):
        calyx.dask.build(dask.bag.from_sequence([1.5], npartitions=1), path)
    with pytest.raises(OSError):
        calyx.dask.build(bag, str(tmp_path / "missing" / "f"), n=10)
    assert os.listdir(tmp_path) == []
