"""calyx push that rebuilds a filter from a list: what was added to the one in the
server since the list was read is in the new one; and if that is not sure, nothing
is replaced."""
import os

import pytest
from command import bad, calyx, good, lines, make, url
from relay import Acting, Relay, losing
from servers import free_port, join_cluster

ALL = [1] * 1000


@pytest.fixture
def live(server, r, tmp_path):
    """A filter of yesterday, and a command that prints the list of today; while it
    runs, somebody adds."""
    good("push", make(tmp_path / "old.calyx"), url(server))
    (tmp_path / "list").write_bytes(lines(range(2000)))

    def command(then="true"):
        return (f"cat {tmp_path}/list; redis-cli -p {server.port} BF.INSERT seen "
                f"NOCREATE ITEMS late 5 >/dev/null; {then}")

    return command


def from_command(command, file, address, *more):
    return ("push", "--from-command", command, *more, file, address)


def test_one_command_rebuilds_and_forgets_nothing(server, r, tmp_path, live):
    file = tmp_path / "new.calyx"
    assert good(*from_command(live(), file, url(server))) == b""
    assert r("BF.MEXISTS", "seen", *range(1000, 2000)) == ALL
    assert r("BF.MEXISTS", "seen", *range(1000)) == ALL
    assert r("BF.EXISTS", "seen", "late") == 1
    assert r("BF.INFO", "seen", "GENERATION") == [1]
    assert sorted(r("KEYS", "*")) == [b"seen"]
    assert sorted(os.listdir(tmp_path)) == ["list", "new.calyx", "old.calyx"]
    # again, over the same file
    good(*from_command(live(), file, url(server), "-p", "0.1%", "-n", 3000))
    assert r("BF.INFO", "seen", "GENERATION") == [2]
    assert r("BF.EXISTS", "seen", "late") == 1
    assert r("BF.INFO", "seen", "CAPACITY")[0] >= 3000


def test_the_same_in_three_steps(server, r, tmp_path, live):
    token = good("push", "--rebuild-begin", url(server)).decode().strip()
    r("BF.ADD", "seen", "late")
    file = make(tmp_path / "new.calyx", range(2000))
    bad("a rebuild is open", "push", "--swap", file, url(server))
    good("push", "--rebuild", token, file, url(server))
    assert r("BF.MEXISTS", "seen", "late", 1999) == [1, 1]
    bad("this rebuild is not open", "push", "--rebuild", token, file, url(server))
    assert r("BF.MEXISTS", "seen", "late", 1999) == [1, 1]


def test_the_first_filter_is_pushed_alike(server, r, tmp_path):
    file = tmp_path / "new.calyx"
    good(*from_command("seq 1000", file, url(server)))
    assert r("BF.MEXISTS", "seen", *range(1, 1001)) == ALL
    r("DEL", "seen")
    assert good("push", "--rebuild-begin", url(server)) == b"0\n"
    r("BF.ADD", "seen", "somebody's")
    bad("was made after the rebuild began", "push", "--rebuild", 0, file,
        url(server))
    r("DEL", "seen")
    good("push", "--rebuild", 0, file, url(server))


@pytest.mark.parametrize("then, text", [
    ("exit 3", "the command ended with 3: its list may not be whole"),
    ("kill -9 $$", "the command was ended by signal 9"),
    ("no-such-command", "the command ended with 127")])
def test_a_list_that_was_cut_replaces_nothing(server, r, tmp_path, live, then,
                                              text):
    file = tmp_path / "new.calyx"
    file.write_bytes(b"of yesterday")
    bad(text, *from_command(live(then), file, url(server)))
    assert file.read_bytes() == b"of yesterday"
    assert sorted(os.listdir(tmp_path)) == ["list", "new.calyx", "old.calyx"]
    assert r("BF.MEXISTS", "seen", *range(1000)) == ALL
    assert r("BF.INFO", "seen", "GENERATION") == [0]
    assert r("BF.INFO", "seen", "REBUILD") == [0]


def test_a_rebuild_that_another_took_over_replaces_nothing(server, r, tmp_path,
                                                           live):
    other = f"redis-cli -p {server.port} BF.REBUILD seen BEGIN >/dev/null"
    bad("this rebuild is not open", *from_command(
        live(other), tmp_path / "new.calyx", url(server)))
    assert r("BF.MEXISTS", "seen", *range(1000)) == ALL
    assert r("BF.EXISTS", "seen", "late") == 1
    # what it left does not stop the next one
    good(*from_command(live(), tmp_path / "new.calyx", url(server)))
    assert sorted(r("KEYS", "*")) == [b"seen"]


def test_keys_are_taken_from_the_lines(server, r, tmp_path):
    good(*from_command("printf 'id,name\\n7,rose\\n8,iris\\n'", tmp_path / "f.calyx",
                       url(server), "--csv", "--header", "-k", "name"))
    assert r("BF.MEXISTS", "seen", "rose", "iris", 7) == [1, 1, 0]


def test_a_key_whose_connection_breaks_at_the_swap(server, r, tmp_path, live):
    """The swap was done, or is done again; which, is seen."""
    token = good("push", "--rebuild-begin", url(server)).decode().strip()
    r("BF.ADD", "seen", "late")
    file = make(tmp_path / "new.calyx", range(2000))
    broken = 0
    for most in range(300, 20000, 500):
        relay = Relay(server.port, most, again=False)
        status, _, err = calyx("push", "--rebuild", token, "--wait", "0.1s", file,
                               f"redis://127.0.0.1:{relay.port}/seen")
        broken += status == 2
        if r("BF.INFO", "seen", "GENERATION") == [1]:
            break
        assert r("BF.INFO", "seen", "REBUILD") == [int(token)]
    assert broken and r("BF.MEXISTS", "seen", "late", 1999) == [1, 1]


@pytest.mark.parametrize("rebuilds", [False, True])
def test_a_server_that_loses_all_at_the_swap_is_not_taken_for_one_that_swapped(
        start, tmp_path, rebuilds):
    server = start()
    file = make(tmp_path / "f.calyx")
    good("push", file, url(server))
    how = ["--swap"]
    if rebuilds:
        how = ["--rebuild", good("push", "--rebuild-begin", url(server)).decode().strip()]
    relay = losing(server, b"BF.SWAP")
    bad("the server has lost the filter", "push", *how, file,
        f"redis://127.0.0.1:{relay.port}/seen")
    assert server.client()("KEYS", "*") == []
    relay.close()


def test_a_server_that_has_the_old_filter_again_did_not_swap(start, tmp_path):
    """It saved before the new one was staged."""
    server = start()
    file = make(tmp_path / "f.calyx")
    good("push", file, url(server))
    server.client()("SAVE")
    relay = losing(server, b"BF.SWAP")
    bad("the server has lost the filter", "push", "--swap", file,
        f"redis://127.0.0.1:{relay.port}/seen")
    assert server.client()("BF.INFO", "seen", "GENERATION") == [0]
    relay.close()


def test_the_file_has_its_name_only_once_it_was_pushed(server, tmp_path, live):
    """So the filter of another rebuild with the same FILE is never pushed in its place."""
    file, there = tmp_path / "f.calyx", []
    relay = Acting(server.port, b"\r\nBF.SWAP\r\n", lambda: there.append(file.exists()))
    good(*from_command(live(), file, f"redis://127.0.0.1:{relay.port}/seen"))
    assert there == [False] and file.exists()
    relay.close()


def test_a_user_who_may_not_call_info_pushes_as_before(server, r, tmp_path, live):
    r("ACL", "SETUSER", "default", "-bf.info")
    good(*from_command(live(), tmp_path / "new.calyx", url(server)))
    r("ACL", "SETUSER", "default", "+bf.info")
    assert r("BF.EXISTS", "seen", "late") == 1


def test_a_file_of_a_name_alike_stays(server, tmp_path, live):
    mine = tmp_path / "new-f.calyx"
    mine.write_bytes(b"mine")
    bad("the command ended with 3", *from_command(live("exit 3"), tmp_path / "f.calyx",
                                                  url(server)))
    good(*from_command(live(), tmp_path / "f.calyx", url(server)))
    assert mine.read_bytes() == b"mine"
    assert sorted(os.listdir(tmp_path)) == ["f.calyx", "list", "new-f.calyx", "old.calyx"]


def test_shards_have_a_token_each(server, r, tmp_path):
    stem = str(tmp_path / "ids.calyx")
    good("build", "--shards", 5, "-o", stem, given=lines(range(1000)))
    good("push", "--shards", 5, stem, url(server, "ids"))
    tokens = good("push", "--rebuild-begin", "--shards", 5,
                  url(server, "ids")).decode().strip()
    assert len(set(tokens.split(","))) == 5
    for i in range(5):
        assert r("BF.ADD", f"ids:{{{i}}}", "late") == 1
    bad("1 tokens for 5 filters", "push", "--shards", 5, "--rebuild", 7, stem,
        url(server, "ids"))
    good("push", "--shards", 5, "--rebuild", tokens, stem, url(server, "ids"))
    for i in range(5):
        assert r("BF.EXISTS", f"ids:{{{i}}}", "late") == 1
        assert r("BF.INFO", f"ids:{{{i}}}", "GENERATION") == [1]


def test_in_a_cluster(start, tmp_path):
    nodes = [start(cluster_enabled="yes", cluster_port=free_port())
             for _ in range(3)]
    join_cluster(nodes)
    for key in ("a", "b", "c{d}"):
        for _ in range(2):
            good(*from_command("seq 1000", tmp_path / "f.calyx",
                               url(nodes[0], key)))
        assert good("check", "--server", url(nodes[1], key),
                    given=lines(range(1, 1001))) == lines(range(1, 1001))


@pytest.mark.parametrize("words, text", [
    (("--rebuild-begin", "FILE", "URL"), "--rebuild-begin takes a URL alone"),
    (("--rebuild-begin", "--rebuild", "7", "URL"), "exclude each other"),
    (("--rebuild", "7", "--from-command", "true", "FILE", "URL"),
     "exclude each other"),
    (("--rebuild", "x", "FILE", "URL"), "expected what --rebuild-begin printed"),
    (("--rebuild", "", "FILE", "URL"), "expected what --rebuild-begin printed"),
    (("--rebuild", "1,,2", "FILE", "URL"), "expected what --rebuild-begin printed"),
    (("--rebuild", "7", "URL"), "expected FILE and URL"),
    (("--swap", "URL"), "expected FILE and URL"),
    (("--from-command", "true", "--shards", "3", "FILE", "URL"),
     "makes one filter"),
    (("--from-command", "true", "--as", "redisbloom", "FILE", "URL"),
     "have no BF.REBUILD"),
    (("--rebuild-begin", "--plain", "URL"), "have no BF.REBUILD"),
    (("--rebuild", "7", "-n", "5", "FILE", "URL"), "-n and the options for keys")])
def test_options_are_checked(server, r, tmp_path, words, text):
    make(tmp_path / "f.calyx")
    named = {"FILE": str(tmp_path / "f.calyx"), "URL": url(server)}
    bad(text, "push", *(named.get(word, word) for word in words))
    assert r("KEYS", "*") == []


def test_a_user_without_the_right_to_rebuild_replaces_nothing(server, r, tmp_path, live):
    r("ACL", "SETUSER", "default", "-bf.rebuild")
    bad("NOPERM", *from_command(live(), tmp_path / "new.calyx", url(server)))
    r("ACL", "SETUSER", "default", "+bf.rebuild")
    assert sorted(os.listdir(tmp_path)) == ["list", "old.calyx"]
    assert r("BF.MEXISTS", "seen", "late", 5) == [0, 1]
