"""What doc/COMMANDS.md and the README show is what happens."""
import re
import subprocess

import pytest
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
