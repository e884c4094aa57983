"""What doc/COMMANDS.md and the README show is what happens."""
import os
import re
import subprocess

import pytest

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def examples(page, prompt):
    """The commands of each section, with what redis-cli shows for them."""
    with open(os.path.join(ROOT, page)) as text:
        sections = re.split(r"^## ", text.read(), flags=re.M)
    for section in sections:
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


def test_most_commands_have_an_example():
    assert len(COMMANDS) == 30  # a dump is nothing to show
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
