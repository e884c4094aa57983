#!/usr/bin/env python3
"""The files that documents link to, or name by their path, exist.

    paths.py FOLDER-OF-THE-SOURCES
"""
import re
import sys
from pathlib import Path

LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
PATH = re.compile(r"(?<![\w./-])((?:include|src|tool|module|web|test|dev|doc|cmake|fuzz|"
                  r"bench|examples|integrations)/[\w./-]*\w)(?!\.?[\w*<\[])")
OTHERS = {"src/kind/word.c", "test/cli/NAME.bats", "test/module/test_NAME.py"}  # to be made
SKIPPED = {"build", "node_modules", ".git"}


def main():
    root = Path(sys.argv[1]).resolve()
    pages = [page for page in root.rglob("*.md")
             if not SKIPPED & set(page.relative_to(root).parts)]
    wrong = []
    for page in pages:
        text = page.read_text()
        named = [page.parent / name for name in LINK.findall(text)]
        named += [root / name for name in PATH.findall(text) if name not in OTHERS]
        wrong += [f"{page.relative_to(root)}: there is no {path}"
                  for path in named if not path.exists()]
    print(*dict.fromkeys(wrong), f"{len(pages)} documents", sep="\n")
    sys.exit(bool(wrong) or not pages)


main()
