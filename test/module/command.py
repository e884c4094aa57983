"""Running the calyx command in tests that have servers."""
import json
import os
import subprocess

CALYX = os.environ.get("CALYX") or os.path.join(
    os.path.dirname(__file__), "..", "..", "build", "calyx")


def environment(**more):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CALYX_")}
    return {**clean, "LC_ALL": "C", **more}


def calyx(*words, given=None, **more):
    """Run it: status, standard output, standard error."""
    done = subprocess.run([CALYX, *map(str, words)], input=given,
                          capture_output=True, env=environment(**more),
                          timeout=300)
    return done.returncode, done.stdout, done.stderr.decode(errors="replace")


def good(*words, **more):
    status, out, err = calyx(*words, **more)
    assert status == 0, err
    return out


def bad(text, *words, **more):
    status, out, err = calyx(*words, **more)
    assert status == 2 and text in err, (status, err)
    return err


def kinds_that(ability):
    """The names of the kinds of which `calyx plan --json` says so."""
    rows = json.loads(good("plan", "-n", 1000, "--json"))["kinds"]
    return [row["kind"] for row in rows if row[ability]]


def lines(numbers):
    return "".join(f"{n}\n" for n in numbers).encode()


def make(path, numbers=range(1000), *options):
    good("build", "-o", path, *options, given=lines(numbers))
    return path


def url(server, key="seen", who=""):
    return f"redis://{who}127.0.0.1:{server.port}/{key}"
