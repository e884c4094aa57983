"""What doc/COMMANDS.md shows is what happens."""
import os
import re
import subprocess

import pytest

PAGE = os.path.join(os.path.dirname(__file__), "..", "..", "doc", "COMMANDS.md")


def examples():
    """The commands of each section, with what redis-cli shows for them."""
    with open(PAGE) as page:
        sections = re.split(r"^## ", page.read(), flags=re.M)
    for section in sections:
        steps = []
        for line in section.splitlines():
            if line.startswith("    > "):
                steps.append((line[6:], []))
            elif steps and line.startswith("    "):
                steps[-1][1].append(line[4:])
            elif steps and line:
                break
        if steps:
            yield section.splitlines()[0], steps


def test_most_commands_have_an_example():
    assert len(dict(examples())) == 11  # a dump is nothing to show


@pytest.mark.parametrize("steps", [
    pytest.param(steps, id=title) for title, steps in examples()])
def test_examples(server, r, steps):
    for command, shown in steps:
        out = subprocess.run(
            ["redis-cli", "-p", str(server.port), "--no-raw", *command.split()],
            capture_output=True, text=True, check=False)
        assert out.stdout.rstrip("\n").split("\n") == shown, command
