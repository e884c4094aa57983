"""What RedisBloom replied to the CF commands, call by call, is what is replied
here; except the calls of which cuckoo_replies.txt says what is replied here
instead."""
import os
import re
import shlex

import pytest
from cuckoo_model import header
from test_drop_in import shown

TABLE = os.path.join(os.path.dirname(__file__), "cuckoo_replies.txt")
# Names in the table, and the names of the model.
FIELDS = {"filters": "parts", "bs": "bucket_size", "iter": "iterations",
          "exp": "expansion"}


def word(text):
    """A word of a call, in bytes; <items=3 ..> is a header."""
    if text.startswith("<"):
        fields = dict(field.split("=") for field in text[1:-1].split())
        return header(**{FIELDS.get(name, name): int(value)
                         for name, value in fields.items()})
    return text.encode().decode("unicode_escape").encode("latin-1")


def words(call):
    call = re.sub(r"<[^>]*>", lambda found: f"'{found[0]}'", call)
    lexer = shlex.shlex(call, posix=True, punctuation_chars=False)
    lexer.whitespace_split, lexer.escape, lexer.commenters = True, "", ""
    return [word(text) for text in lexer]


def calls():
    """The words of each call, and the replies wanted in RESP2 and RESP3."""
    rows = []
    with open(TABLE) as table:
        for line in table:
            if line.startswith("#"):
                continue
            call, reply = re.split(r" +=> ", line.rstrip("\n"), maxsplit=1)
            replies = reply.split("   |RESP3| ")
            pair = replies[0], replies[-1]
            if call == "  here":
                rows[-1] = rows[-1][0], pair
            else:
                rows.append((words(call), pair))
    return rows


@pytest.mark.parametrize("resp", [2, 3])
def test_replies_are_as_in_redisbloom(start, resp):
    client = start().client(resp=resp)
    rows = calls()
    assert len(rows) > 250
    wrong = []
    for call, wanted in rows:
        got = shown(client(*call), "$-1" if resp == 2 else "_", escape=True)
        if got != wanted[resp - 2]:
            wrong.append((call, wanted[resp - 2], got))
    assert not wrong, "\n".join(map(str, wrong))
