"""What the documents show is what happens: replies of commands in the server, and the
lines for the shell that run calyx."""
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from command import CALYX, environment, good
from servers import read_page


def sections(page):
    return re.split(r"^## ", read_page(page), flags=re.M)


def examples(page, prompt):
    """The commands of each section, with what redis-cli shows for them."""
    for section in sections(page):
        steps = []
        for line in section.splitlines():
            if line.startswith("    " + prompt):
                steps.append((line[4 + len(prompt):], []))
            elif steps and line.startswith("    "):
                steps[-1][1].append(line[4:])
            elif steps and line:
                break
        if steps:
            yield section.splitlines()[0], steps


COMMANDS = dict(examples("doc/COMMANDS.md", "> "))
README = dict(examples("README.md", "127.0.0.1:6379> "))


FOR_REPLICAS = {"BF.MERGEPART", "BF.COPYPART"}
WITHOUT_EXAMPLE = FOR_REPLICAS | {  # a dump is nothing to show
    "BF.SCANDUMP", "BF.LOADCHUNK", "BF.DUMP", "BF.RESTORE", "BF.LOAD",
    "CF.SCANDUMP", "CF.LOADCHUNK"}


def test_every_command_has_an_example_and_a_link_at_the_top():
    top, *others = sections("doc/COMMANDS.md")
    titles = [section.splitlines()[0] for section in others]
    commands = {title for title in titles if re.match(r"[BC]F\.", title)}
    assert commands - COMMANDS.keys() == WITHOUT_EXAMPLE
    assert {name for name in commands - FOR_REPLICAS
            if f"(#{name.lower().replace('.', '')})" not in top} == set()
    assert len(README) == 1


@pytest.mark.parametrize("steps", [
    pytest.param(steps, id=title)
    for title, steps in [*COMMANDS.items(), *README.items()]])
def test_examples(server, r, steps):
    for command, shown in steps:
        out = subprocess.run(
            ["redis-cli", "-p", str(server.port), "--no-raw", *command.split()],
            capture_output=True, text=True, check=False)
        assert out.stdout.rstrip("\n").split("\n") == shown, command


# ---- Lines for the shell ------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["README.md", "README.zh-CN.md", "doc/COMMAND.md", "doc/KINDS.md", "doc/URL.md",
         "doc/SERVERS.md", "doc/COMPARE.md"]
# What stands on other pages' lines: lists of numbers, and one of two columns.
LISTS = {name: range(first, first + 3000) for name, first in {
    "seen.txt": 0, "new.txt": 2000, "more.txt": 4000, "urls.txt": 1000, "monday.txt": 0,
    "tuesday.txt": 2000, "ids.txt": 0, "list.txt": 0, "today.txt": 9000, "old.txt": 8000,
    "queries.txt": 1500, "members.txt": 0, "left.txt": 0, "huge.txt": 0}.items()}
PROGRAMS = {"psql": "seq 2500", "crawl": "seq 2990 3010", "fetch": "cat", "redis-cli": ":"}


def shell_lines(page):
    """The lines of code of each section that run calyx."""
    for section in sections(page):
        lines = [line.strip() for line in section.splitlines()
                 if re.match(r"    (\w[^|]*\| )?calyx ", line)]
        if lines:
            yield lines


@pytest.fixture
def folder(tmp_path):
    """With the files and the programs that the documents speak of."""
    for name, numbers in LISTS.items():
        (tmp_path / name).write_text("".join(f"{n}\n" for n in numbers))
    for name in "list.txt", "old.txt":
        subprocess.run(["zstd", "-q", name], cwd=tmp_path, check=True)
    (tmp_path / "users.csv").write_text("id,email\n1,a@b.example\n")
    (tmp_path / "signups.csv").write_text("email,day\nc@d.example,3\n")
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    (bin_folder / "calyx").symlink_to(CALYX)
    for name, text in PROGRAMS.items():
        (bin_folder / name).write_text(f"#!/bin/sh\n{text}\n")
        (bin_folder / name).chmod(0o755)
    for name in "seen", "tonight", "bad":
        good("build", "-o", tmp_path / f"{name}.calyx", tmp_path / "seen.txt")
    return tmp_path


@pytest.fixture
def web(folder):
    """A web server for the folder, at its address."""
    server = subprocess.Popen(
        [sys.executable, ROOT / "test/cli/odd_server.py", ".", os.devnull],
        cwd=folder, stdout=subprocess.PIPE, text=True)
    yield f"http://127.0.0.1:{server.stdout.readline().strip()}"
    server.kill()
    server.wait()


def run(line, folder, server, web):
    """Run a line with our servers in place of those that it names. One server stands for
    all: the name of a host is part of the key."""
    line = re.sub(r"redis://([\w.]+)/", rf"redis://127.0.0.1:{server.port}/\1-", line)
    line = line.replace("https://example.com", web + "/right")
    for name in re.findall(r" -o (\S+)", line):  # pages show the making of a file twice
        (folder / name).unlink(missing_ok=True)
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=folder, capture_output=True, text=True,
        env=environment(PATH=f"{folder}/bin:{os.environ['PATH']}"), timeout=300)


@pytest.mark.parametrize("page", PAGES)
def test_the_lines_for_the_shell_work(page, server, r, folder, web):
    """Each section begins with an empty server; old.example has a filter already."""
    found = list(shell_lines(page))
    assert found
    for lines in found:
        r("FLUSHALL")
        for line in lines:
            if "old.example" in line:
                run("calyx push bad.calyx redis://old.example/seen", folder, server, web)
            done = run(line, folder, server, web)
            assert done.returncode == 0, (line, done.stdout[-500:], done.stderr)
