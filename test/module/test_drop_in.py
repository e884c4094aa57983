"""What RedisBloom replied, call by call, is what is replied here; except the
calls of which redisbloom_replies.txt says what is replied here instead."""
import os
import re
import shlex

from resp import Error, Map, Simple

TABLE = os.path.join(os.path.dirname(__file__), "redisbloom_replies.txt")


def escaped(data):
    return "".join(chr(b) if 32 <= b < 127 else f"\\x{b:02x}" for b in data)


def shown(reply, null="$-1", escape=False):
    """A reply as the table has it: its type by the letter of the protocol."""
    if isinstance(reply, bool):
        return "#t" if reply else "#f"
    if isinstance(reply, int):
        return f":{reply}"
    if reply is None:
        return null
    if isinstance(reply, Error):
        return "-" + reply
    if isinstance(reply, Simple):
        return "+" + reply
    if isinstance(reply, bytes):
        is_text = all(32 <= b < 127 for b in reply)
        return ("$" + escaped(reply) if is_text or escape else
                f"$<{len(reply)} bytes>")
    if isinstance(reply, Map):
        return "%{" + ", ".join(f"{shown(k)}: {shown(v, '_')}"
                                for k, v in reply) + "}"
    return "*[" + ", ".join(shown(r, null, escape) for r in reply) + "]"


def calls():
    """The words of each call, and the replies wanted: one in RESP2, and one in
    RESP3, when it is made again, if that has another."""
    rows = []
    with open(TABLE) as table:
        for line in table:
            if line.startswith("#") or not line.strip():
                continue
            call, reply = re.split(r" +=> ", line.rstrip("\n"), maxsplit=1)
            replies = reply.split("   |RESP3| ")
            if call == "  here":  # in RESP3, too
                rows[-1] = rows[-1][0], replies * len(rows[-1][1])
            else:
                rows.append((shlex.split(call), replies))
    return rows


def test_replies_are_as_in_redisbloom(start):
    server = start("calyx-layout", "redisbloom")
    old, new = server.client(), server.client(resp=3)
    rows = calls()
    assert len(rows) > 140
    wrong = []
    for words, wanted in rows:
        for client, reply in zip((old, new), wanted):
            got = shown(client(*words))
            if got != reply:
                wrong.append((words, reply, got))
    assert not wrong
