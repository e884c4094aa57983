"""Files of hashes that Python writes, as a job of Spark would, join to the same filter."""
import os
import subprocess
from array import array

import calyx
from calyx.parts import parts_of, write_hashes

CALYX = os.environ["CALYX"]
PARTS = 5


def run(*words):
    subprocess.run([CALYX, *words], check=True, timeout=300)


def test_files_of_hashes_from_python_join_to_the_filter_of_one_build(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lists = [[f"key {i}" for i in range(first, first + 30_000)] for first in (0, 20_000)]
    for name, keys in zip("ab", lists):
        (tmp_path / name).write_text("".join(key + "\n" for key in keys))
        os.mkdir(f"spark-{name}")
        hashes = [array("Q") for _ in range(PARTS)]
        for hash in calyx.Filter(1, hash="xxh3", seed=7).hash_many(keys):
            for part in parts_of(hash, PARTS):
                hashes[part - 1].append(hash)
        for part, some in enumerate(hashes, 1):
            write_hashes(f"spark-{name}/{part}-of-{PARTS}.hashes", some, part, PARTS, seed=7)
        run("hash", "--seed", "7", f"--parts={PARTS}", "-o", f"calyx-{name}", name)
        for part in range(1, PARTS + 1):
            ours, theirs = (tmp_path / f"{who}-{name}/{part}-of-{PARTS}.hashes"
                            for who in ("spark", "calyx"))
            assert ours.read_bytes() == theirs.read_bytes()
    for part in range(1, PARTS + 1):
        run("build", f"--part={part}/{PARTS}", "-n50000", "--seed=7", "-o", f"{part}.part",
            *(f"spark-{name}/{part}-of-{PARTS}.hashes" for name in "ab"))
    run("join", "-o", "joined", *(f"{part}.part" for part in range(1, PARTS + 1)))
    run("build", "-n50000", "--seed=7", "-o", "whole", "a", "b")
    assert (tmp_path / "joined").read_bytes() == (tmp_path / "whole").read_bytes()
