#!/usr/bin/env python3
"""A translation of a page matches the original: the same commands and programs,
the same number of rows and sections, and in each row and section every figure and
every `code word` of the original. Its links lead to translations, or say that the
page after them is in English.

    readme.py README.md README.zh-CN.md...
"""
import re
import sys
from pathlib import Path

# 100 million and 1 亿 are the same figure.
SCALE = {"thousand": 10**3, "million": 10**6, "billion": 10**9,
         "万": 10**4, "亿": 10**8}
FIGURE = re.compile(
    r"(?<![\w.-])(\d(?:[\d.,]*\d)?)(?: ?(thousand|million|billion|万|亿))?")


def commands(text):
    """Lines of code without their comments; of a list of targets, the targets."""
    fenced = False
    for line in text.splitlines():
        if line.startswith("```"):
            fenced = not fenced
        elif fenced:
            yield line
        elif line.startswith("    "):
            yield re.split(r"\s{2,}", line.strip())[0]


def rows(text):
    return [line for line in text.splitlines() if line.startswith("|")]


def sections(text):
    return re.split(r"^##+ ", text, flags=re.M)


def prose(section):
    """Without code blocks and the targets of links."""
    section = re.sub(r"^```.*?^```", "", section, flags=re.M | re.S)
    section = re.sub(r"\]\([^)]*\)", "]", section)
    return "\n".join(l for l in section.splitlines() if not l.startswith("    "))


def figures(text):
    return [float(number.replace(",", "")) * SCALE.get(unit, 1)
            for number, unit in FIGURE.findall(text)]


def code_words(text):
    return re.findall(r"`[^`]+`", text)


def missing(wanted, found):
    """Members of `wanted` that `found` has not, or has fewer times."""
    rest = list(found)
    for one in wanted:
        if one in rest:
            rest.remove(one)
        else:
            yield one


def differences(original, translation):
    for wanted, found in zip(commands(original), commands(translation)):
        if wanted != found:
            yield f"wanted the command {wanted!r}, found {found!r}"
    for what, of in [("lines of code", commands), ("rows", rows),
                     ("sections", sections)]:
        wanted, found = len(list(of(original))), len(list(of(translation)))
        if wanted != found:
            yield f"wanted {wanted} {what}, found {found}"
    for of in rows, sections:
        if len(of(original)) != len(of(translation)):
            continue
        for wanted, found in zip(of(original), of(translation)):
            title = found.splitlines()[0][:60]
            wanted, found = prose(wanted), prose(found)
            for what in figures, code_words:
                for one in missing(what(wanted), what(found)):
                    yield f"{one} is missing in: {title}"
                for one in missing(what(found), what(wanted)):
                    yield f"{one} is not in the original of: {title}"


def page_at(path):
    """The page that a link leads to, if it leads to one."""
    page = path / "README.md" if path.is_dir() else path
    return page if page.suffix == ".md" and page.exists() else None


def wrong_links(original, other):
    """Links of a translation to pages in English, and to those that have one."""
    ending = other.name[other.name.index("."):]
    for target, note in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)(（英文)?",
                                   other.read_text()):
        page = page_at((other.parent / target).resolve())
        if not page or page == original.resolve() or page.name.endswith(ending):
            continue
        if page.with_name(page.stem + ending).exists():
            yield f"{target} has a translation: link to it"
        elif not note:
            yield f"{target} is in English: write （英文） after the link"


def main():
    first, *others = [Path(name) for name in sys.argv[1:]]
    wrong = [f"{other}: {line}" for other in others
             for line in [*differences(first.read_text(), other.read_text()),
                          *wrong_links(first, other)]]
    if wrong:
        print(*dict.fromkeys(wrong), sep="\n")
    sys.exit(bool(wrong))


main()
