"""push, pull and check over rediss://, against real servers with certificates
made here: only a server that shows a valid one for its own name gets a byte of
ours, a password least of all."""
import socket
import ssl
import subprocess
import threading

import pytest
from certificates import Certificates
from command import bad, good, lines, make
from relay import Relay
from servers import Server, free_port, info, join_cluster

MIB = 1 << 20


@pytest.fixture(scope="module")
def signed(tmp_path_factory):
    """The certificates, by name."""
    ours = Certificates(tmp_path_factory.mktemp("certificates"))
    other = Certificates(tmp_path_factory.mktemp("others"), "rival")
    return {
        "ca": ours.ca,
        "other ca": other.ca,
        "by name": ours.sign("by-name", "DNS:localhost"),
        "by address": ours.sign("by-address", "IP:127.0.0.1"),
        "by both": ours.sign("by-both", "DNS:localhost,IP:127.0.0.1"),
        "expired": ours.sign("expired", "DNS:localhost", days=-1),
        "evil": ours.sign("evil", "DNS:evil.example,IP:127.0.0.9"),
        "address as a name": ours.sign("as-name", "DNS:127.0.0.1"),
        "of the other": other.sign("of-the-other", "DNS:localhost"),
        "self-signed": ours.sign_itself("itself", "DNS:localhost"),
        "client": ours.sign("client"),
        "other client": other.sign("other-client"),
    }


def key_of(certificate):
    return certificate.with_suffix(".key")


def tls_options(signed, name):
    return {"tls_port": free_port(), "tls_ca_cert_file": signed["ca"],
            "tls_cert_file": signed[name],
            "tls_key_file": key_of(signed[name])}


@pytest.fixture(scope="module")
def one(tmp_path_factory, signed):
    """A server that has TLS at another port, and wants client certificates, as
    is Redis' default."""
    server = Server(tmp_path_factory.mktemp("one"),
                    **tls_options(signed, "by both"))
    yield server
    server.stop()


def show(server, certificate):
    assert server.client()("CONFIG", "SET", "tls-cert-file", certificate,
                           "tls-key-file", key_of(certificate)) == "OK"


@pytest.fixture
def server(one, signed):
    client = one.client()
    client("FLUSHALL")
    client("CONFIG", "SET", "tls-protocols", "")
    show(one, signed["by both"])
    client("CONFIG", "RESETSTAT")
    return one


@pytest.fixture
def files(signed):
    """What the environment names for a client that the server wants."""
    return {"CALYX_TLS_CA": str(signed["ca"]),
            "CALYX_TLS_CERT": str(signed["client"]),
            "CALYX_TLS_KEY": str(key_of(signed["client"]))}


@pytest.fixture
def words(tmp_path):
    return make(tmp_path / "f.calyx", range(1000), "-p", "1e-8")


def tls_url(server, host="localhost", key="seen", who="", port=None):
    port = port or server.options["tls_port"]
    return f"rediss://{who}{host}:{port}/{key}"


def commands_of(server):
    """What it received since CONFIG RESETSTAT, except what tests say."""
    stats = info(server.client(), "commandstats")
    return {name.removeprefix("cmdstat_") for name in stats} - {
        "ping", "info", "config|set", "config|resetstat"}


# ---- Servers to be trusted --------------------------------------------------

@pytest.mark.parametrize("certificate, host", [
    ("by name", "localhost"), ("by address", "127.0.0.1"),
    ("by both", "localhost"), ("by both", "127.0.0.1")])
def test_a_server_is_known_by_its_name_or_address(server, signed, files, words,
                                                  tmp_path, certificate, host):
    show(server, signed[certificate])
    place = tls_url(server, host)
    good("push", words, place, **files)
    good("pull", "-o", tmp_path / "g.calyx", place, **files)
    assert (tmp_path / "g.calyx").read_bytes() == words.read_bytes()
    assert good("check", "--server", place, given=lines(range(2000)),
                **files) == lines(range(1000))


def test_passwords_and_databases_go_by_tls(start, signed, files, words):
    server = start(**tls_options(signed, "by name"))
    r = server.client()
    r("CONFIG", "SET", "requirepass", "s3cr:t")
    good("push", words, tls_url(server, key="3/k", who=":s3cr%3At@"), **files)
    r("AUTH", "s3cr:t")
    r("SELECT", 3)
    assert r("BF.EXISTS", "k", 1) == 1
    err = bad("WRONGPASS", "push", words, tls_url(server, who=":s3crx@"),
              **files)
    assert "s3cr" not in err


@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_both_versions_of_tls(server, files, words, version):
    server.client()("CONFIG", "SET", "tls-protocols", version)
    good("push", words, tls_url(server), **files)


def test_authorities_come_from_a_file_a_folder_or_the_system(
        server, signed, files, words, tmp_path):
    folder = tmp_path / "authorities"
    folder.mkdir()
    (folder / "ours.pem").write_bytes(signed["ca"].read_bytes())
    subprocess.run(["openssl", "rehash", folder], check=True)
    good("push", words, tls_url(server), **{**files, "CALYX_TLS_CA": folder})
    del files["CALYX_TLS_CA"]
    bad("an unknown authority; CALYX_TLS_CA names", "push", words,
        tls_url(server), **files)
    good("push", words, tls_url(server), SSL_CERT_FILE=signed["ca"], **files)


def test_certificate_and_key_may_be_in_one_file(server, files, words, tmp_path):
    both = tmp_path / "both.pem"
    both.write_text(open(files["CALYX_TLS_CERT"]).read() +
                    open(files["CALYX_TLS_KEY"]).read())
    good("push", words, tls_url(server), CALYX_TLS_CA=files["CALYX_TLS_CA"],
         CALYX_TLS_CERT=both)


# ---- Servers not to be trusted ----------------------------------------------

@pytest.mark.parametrize("certificate, host, text", [
    ("expired", "localhost", "the certificate for DNS:localhost expired on 20"),
    ("evil", "localhost", "the certificate is for DNS:evil.example, "
                          "IP Address:127.0.0.9, expected localhost"),
    ("evil", "127.0.0.1", "expected 127.0.0.1"),
    ("by name", "127.0.0.1", "is for DNS:localhost, expected 127.0.0.1"),
    ("by address", "localhost", "is for IP Address:127.0.0.1, expected localhost"),
    ("address as a name", "127.0.0.1", "expected 127.0.0.1"),
    ("of the other", "localhost", "is signed by CN = Our rival, an unknown"),
    ("self-signed", "localhost", "is signed by CN = itself, an unknown"),
    ("client", "localhost", "is for CN = client, expected localhost"),
])
def test_a_server_that_cannot_prove_its_name_gets_nothing(
        server, signed, files, words, tmp_path, certificate, host, text):
    show(server, signed[certificate])
    place = tls_url(server, host, who="me:s3cret@")
    for verb in (("push", words, place), ("pull", "-o", tmp_path / "g", place),
                 ("check", "--server", place)):
        err = bad(text, *verb, given=b"1\n", **files)
        assert "s3cret" not in err
    assert commands_of(server) == set()
    assert not (tmp_path / "g").exists()


def test_another_authority_is_not_ours(server, signed, files, words):
    """It is the one that CALYX_TLS_CA names, and none of the system's."""
    bad("CALYX_TLS_CA names", "push", words, tls_url(server),
        SSL_CERT_FILE=signed["ca"],
        **{**files, "CALYX_TLS_CA": str(signed["other ca"])})
    assert commands_of(server) == set()


def test_tls_1_1_is_refused_even_where_the_system_allows_it(
        start, signed, files, words, tmp_path, monkeypatch):
    settings = tmp_path / "openssl.cnf"
    settings.write_text("""openssl_conf = all
[all]
ssl_conf = ssl
[ssl]
system_default = lax
[lax]
MinProtocol = TLSv1
CipherString = DEFAULT:@SECLEVEL=0
""")
    monkeypatch.setenv("OPENSSL_CONF", str(settings))
    server = start(**tls_options(signed, "by name"), tls_protocols="TLSv1.1")
    bad("version of TLS", "push", words, tls_url(server), **files)
    assert commands_of(server) == set()


def test_names_are_sent_and_addresses_are_not(signed, files, words):
    """SNI, as a proxy in front of many servers needs it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(signed["by both"], key_of(signed["by both"]))
    names = []
    context.sni_callback = lambda _, name, __: names.append(name)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            for _ in range(2):
                peer, _ = listener.accept()
                with context.wrap_socket(peer, server_side=True) as stream:
                    stream.recv(1000)
        threading.Thread(target=serve, daemon=True).start()
        for host in "localhost", "127.0.0.1":
            bad("the server closed the connection", "push", words, tls_url(
                None, host, port=listener.getsockname()[1]), **files)
    assert names == ["localhost", None]


# ---- Clients that the server does not want ----------------------------------

@pytest.mark.parametrize("version", ["TLSv1.2", "TLSv1.3"])
def test_a_server_that_wants_a_certificate_of_the_client(
        server, signed, files, words, version):
    server.client()("CONFIG", "SET", "tls-protocols", version)
    bad("CALYX_TLS_CERT and CALYX_TLS_KEY name files", "push", words,
        tls_url(server), CALYX_TLS_CA=files["CALYX_TLS_CA"])
    bad("CALYX_TLS_CERT", "push", words, tls_url(server), **{
        **files, "CALYX_TLS_CERT": str(signed["other client"]),
        "CALYX_TLS_KEY": str(key_of(signed["other client"]))})
    assert commands_of(server) == set()


def test_files_that_are_no_use_are_named(server, signed, files, words, tmp_path):
    junk, locked = tmp_path / "junk.pem", tmp_path / "locked.key"
    junk.write_text("junk\n")
    subprocess.run(["openssl", "ec", "-aes256", "-passout", "pass:x", "-in",
                    files["CALYX_TLS_KEY"], "-out", locked], check=True,
                   capture_output=True)
    for name, value, text in (
            ("CALYX_TLS_CA", "/none", "/none: cannot read this CALYX_TLS_CA"),
            ("CALYX_TLS_CA", junk, f"{junk}: CALYX_TLS_CA: expected"),
            ("CALYX_TLS_CERT", "/none", "/none: CALYX_TLS_CERT: expected"),
            ("CALYX_TLS_CERT", junk, f"{junk}: CALYX_TLS_CERT: expected"),
            ("CALYX_TLS_KEY", junk, f"{junk}: CALYX_TLS_KEY: expected"),
            ("CALYX_TLS_KEY", locked, "without a pass phrase"),
            ("CALYX_TLS_KEY", key_of(signed["by name"]),
             "expected the key of CALYX_TLS_CERT")):
        bad(text, "push", words, tls_url(server),
            **{**files, name: str(value)})
    del files["CALYX_TLS_CERT"]
    bad("CALYX_TLS_KEY is set, and CALYX_TLS_CERT is not", "push", words,
        tls_url(server), **files)


# ---- One side speaks TLS, the other does not --------------------------------

NO_TLS = "does not speak TLS at this port; redis:// is without"


def test_errors_distinguish_servers_with_and_without_tls(server, files, words):
    """A Redis without TLS says nothing at all, but answers a PING."""
    bad(NO_TLS, "push", words, tls_url(server, port=server.port), "--wait",
        "600s", **files)
    bad("if it requires TLS at this port, write rediss://", "push", words,
        f"redis://127.0.0.1:{server.options['tls_port']}/k")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            peer, _ = listener.accept()
            with peer:
                peer.recv(1000)
                peer.sendall(b"-ERR what is this?\r\n")
        threading.Thread(target=serve, daemon=True).start()
        bad(NO_TLS, "push", words, tls_url(None, port=listener.getsockname()[1]),
            **files)


def test_a_server_that_says_nothing_at_all_is_not_waited_for_long(files, words):
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            peers = [listener.accept()[0] for _ in range(2)]
            heard.extend(peer.recv(1000) for peer in peers)
            peers[0].recv(1000)  # until it is closed
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        bad("silent for 5 seconds; if it has no TLS at this port, write redis://",
            "push", words, tls_url(None, port=listener.getsockname()[1]), **files)
        thread.join()
    assert heard[0][:1] == b"\x16" and heard[1] == b"PING\r\n"


# ---- What breaks ------------------------------------------------------------

@pytest.fixture
def large(tmp_path):
    """20 chunks, of which nobody would take one for another."""
    return make(tmp_path / "large.calyx", range(50000), "-n", "17M", "--seed",
                "1")


def test_push_and_pull_go_on_after_a_broken_connection(server, files, large,
                                                       tmp_path):
    relay = Relay(server.options["tls_port"], 5 * MIB)
    place = tls_url(server, port=relay.port)
    good("push", large, place, **files)
    assert relay.broken >= 3
    relay.broken = 0
    good("pull", "-o", tmp_path / "g.calyx", place, **files)
    relay.close()
    assert relay.broken >= 3
    assert (tmp_path / "g.calyx").read_bytes() == large.read_bytes()


def test_push_goes_on_after_the_server_killed_its_connection(server, files,
                                                             large):
    class Killing(Relay):
        def breaks(self):
            killed.append(server.client()("CLIENT", "KILL", "TYPE", "normal"))
            return False

    killed = []
    relay = Killing(server.options["tls_port"], 5 * MIB)
    good("push", large, tls_url(server, port=relay.port), **files)
    relay.close()
    assert sum(killed) >= 3
    assert server.client()("BF.MEXISTS", "seen", *range(50000)) == [1] * 50000


# ---- Clusters ---------------------------------------------------------------

SHARDS = 12


@pytest.fixture(scope="module")
def nodes(tmp_path_factory, signed):
    """Three, announced by address; the first has a name, too."""
    started = []
    try:
        for name in "by both", "by address", "by address":
            started.append(Server(
                tmp_path_factory.mktemp("node"), cluster_enabled="yes",
                tls_cluster="yes", cluster_port=free_port(),
                **tls_options(signed, name)))
        join_cluster(started, "tls_port")
        yield started
    finally:
        for node in started:
            node.stop()


def test_each_node_of_a_cluster_proves_its_own_name(nodes, signed, files,
                                                    tmp_path):
    stem = tmp_path / "ids.calyx"
    numbers = lines(range(3000))
    good("build", "--shards", SHARDS, "-p", "1e-8", "-o", stem, given=numbers)
    place = tls_url(nodes[0], key="ids")
    good("push", "--shards", SHARDS, stem, place, **files)
    assert all(node.client()("DBSIZE") for node in nodes)
    assert good("check", "--server", place, given=lines(range(6000)),
                **files) == numbers
    for shard in range(SHARDS):
        good("pull", "-o", tmp_path / "g.calyx", "--force",
             tls_url(nodes[0], key=f"ids:{{{shard}}}"), **files)
        assert (tmp_path / "g.calyx").read_bytes() == stem.with_name(
            f"ids.{shard}-of-{SHARDS}.calyx").read_bytes()

    show(nodes[2], signed["evil"])
    nodes[2].client()("CONFIG", "RESETSTAT")
    port = nodes[2].options["tls_port"]
    text = (f"127.0.0.1:{port}: the certificate is for DNS:evil.example, "
            "IP Address:127.0.0.9, expected 127.0.0.1")
    for verb in (("push", "--swap", "--shards", SHARDS, stem, place),
                 ("check", "--server", place)):  # and does not wait for better
        bad(text, *verb, "--wait", "600s", given=numbers, **files)
    assert commands_of(nodes[2]) == set()
