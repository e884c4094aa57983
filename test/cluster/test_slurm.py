"""calyx-slurm on a Slurm of three nodes: what it makes is what one calyx makes,
whatever is killed on the way."""
import os
import shlex
import shutil
import subprocess
import sys

import pytest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from engines import HANGS, ROOT, Slurm, die_with_parent, kill_hard, slurm_is_there, until  # noqa: E402

CALYX = os.environ.get("CALYX", f"{ROOT}/build/calyx")
SLURM = f"{ROOT}/integrations/slurm/calyx-slurm"
KEYS = 600_000

pytestmark = pytest.mark.skipif(not slurm_is_there(), reason="Slurm is not installed")

# Runs calyx; but a verb that is armed leaves half of what it makes, says where it
# runs, and hangs, as on a node that loses its power in the middle.
TRAP = """\
#!/bin/sh
if [ "$1" != help ] && mv {folder}/arm-"$1" {folder}/sprung-"$1" 2>/dev/null; then
    {calyx} "$@"
    for word in "$@"; do
        [ "$last" = -o ] && out=$word
        last=$word
    done
    if [ -d "$out" ]; then
        rm "$out"/1-of-*
    else
        truncate -s "$(($(stat -c %s "$out") / 2))" "$out"
    fi
    echo "$SLURMD_NODENAME" $$ >{folder}/at && mv {folder}/at {folder}/hangs-"$1"
    while :; do sleep 1; done
fi
[ -e {folder}/full-"$1" ] && ulimit -f 1
exec {calyx} "$@"
"""


@pytest.fixture(scope="module")
def slurm(tmp_path_factory):
    # As few tasks in an array as parts need more than one each.
    with Slurm(str(tmp_path_factory.mktemp("slurm")), nodes=3, spare=9, array_size=4) as engine:
        yield engine


@pytest.fixture
def place(slurm, tmp_path, monkeypatch):
    """A folder with five lists, the trap, and the environment of the jobs."""
    for i in range(5):
        first, last = i * KEYS // 6, (i + 2) * KEYS // 6  # half of each is in the next
        (tmp_path / f"list{i}").write_text("".join(f"key {k}\n" for k in range(first, last)))
    trap = tmp_path / "calyx"
    trap.write_text(TRAP.format(calyx=CALYX, folder=tmp_path))
    trap.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    for name, value in {**slurm.env, "CALYX": str(trap)}.items():
        monkeypatch.setenv(name, value)
    yield tmp_path
    while children:
        process = children.pop()
        process.kill()
        process.wait(HANGS)
    slurm.run("scancel", "--me")


LISTS = [f"list{i}" for i in range(5)]
children = []  # that tests started and must end


def calyx(*words):
    return subprocess.run([CALYX, *words], check=False, timeout=HANGS, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


def start(*words):
    children.append(subprocess.Popen([SLURM, *words], stdout=subprocess.PIPE, text=True,
                                    stderr=subprocess.PIPE, preexec_fn=die_with_parent))
    return children[-1]


def run(*words):
    done = subprocess.run([SLURM, *words], check=False, timeout=HANGS, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    return done.returncode, done.stdout, done.stderr


def fails_with(text, *words):
    status, _, complaint = run(*words)
    assert status == 1 and text in complaint, (status, complaint)


def end_of(slurm, started):
    """Wait for a calyx-slurm --wait, whose requeued jobs need not wait."""
    until(lambda: (slurm.hurry(), started.poll() is not None)[1], "calyx-slurm ends")
    said, complained = started.communicate(timeout=HANGS)
    assert started.returncode == 0, said + complained
    return said


def await_trap(slurm, place, verb, started):
    def has_sprung():
        slurm.hurry()
        assert started.poll() is None, started.communicate()
        return (place / f"hangs-{verb}").exists()

    until(has_sprung, f"calyx {verb} is in its middle")


def same(one, other):
    with open(one, "rb") as a, open(other, "rb") as b:
        return a.read() == b.read()


def nothing_is_left(out):
    return [name for name in os.listdir() if name.startswith(out) and name != out] == []


@pytest.mark.parametrize("kind,options", [("line", ["-n600000", "--parts=7"]),
                                          ("split", ["-n", "6e5", "--parts", "7"]),
                                          ("ribbon", ["--parts=2"])])
def test_a_filter_is_as_by_one_build_though_a_node_is_lost_in_each_phase(
        slurm, place, kind, options):
    for verb in ("hash", "build", "join"):
        (place / f"arm-{verb}").touch()
    started = start("build", "--kind", kind, "-p", "0.5%", *options, "--wait", "-o",
                    "f.calyx", *LISTS)
    for verb in ("hash", "build", "join"):
        await_trap(slurm, place, verb, started)
        node, _ = (place / f"hangs-{verb}").read_text().split()
        slurm.lose_node(node)
    end_of(slurm, started)
    counted = ["-n", "600000"] if kind != "ribbon" else []
    assert calyx("build", "--kind", kind, "-p", "0.5%", *counted, "-o", "one.calyx",
                 *LISTS).returncode == 0
    assert same("f.calyx", "one.calyx")
    assert nothing_is_left("f.calyx")


def test_a_task_that_is_killed_is_requeued_and_a_second_command_goes_on(slurm, place):
    (place / "arm-hash").touch()
    words = ["build", "-n", "600000", "--wait", "-o", "f.calyx", *LISTS]
    started = start(*words)
    await_trap(slurm, place, "hash", started)
    kill_hard([int((place / "hangs-hash").read_text().split()[1])])
    until(lambda: "PENDING BeginTime" in slurm.run("squeue", "-h", "-r", "-n", "calyx-hash",
                                                   "-o", "%T %r"), "the task is requeued")
    assert started.poll() is None
    slurm.run("scancel", "--me")
    started.wait(HANGS)
    end_of(slurm, start(*words))
    calyx("build", "-n", "600000", "-o", "one.calyx", *LISTS)
    assert same("f.calyx", "one.calyx") and nothing_is_left("f.calyx")


def test_wait_ends_if_slurm_does_not_answer(slurm, place, monkeypatch):
    for name in ("sbatch", "squeue"):
        (place / name).write_text(f"""#!/bin/sh
if [ $0 = {place}/sbatch ] || [ ! -e {place}/gone ]; then
    exec {shutil.which(name)} "$@"
fi
echo Unable to contact slurm controller >&2
exit 1
""")
        (place / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}:{os.environ['PATH']}")
    words = ["build", "-n600000", "--patience", "2", "--wait", "-o", "f.calyx", *LISTS]
    (place / "gone").touch()
    fails_with("Slurm has not answered for 2 s (Unable to contact slurm controller); jobs ",
               *words, "--sbatch=--hold")
    fails_with("--patience wants a number", *words, "--patience=soon")
    slurm.run("scancel", "--me")
    (place / "gone").unlink()
    end_of(slurm, start(*words))
    assert nothing_is_left("f.calyx")


def task(step, tasks, most, number=0):
    """One task by hand."""
    return subprocess.run([SLURM, "task", os.path.abspath("f.calyx.slurm"), step, str(tasks),
                           str(most)], check=False, timeout=HANGS, text=True,
                          env={**os.environ, "SLURM_ARRAY_TASK_ID": str(number)},
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def test_a_missing_part_is_named_and_tasks_may_run_twice(slurm, place):
    words = ["build", "-n", "600000", "--parts", "3", "-o", "f.calyx", *LISTS]
    status, said, complaint = run(*words, "--sbatch=--hold")
    assert status == 0 and "hash   job " in said and "join   job " in said, complaint
    assert task("build", 3, 3, 1).returncode == 2  # no hashes yet
    assert task("hash", 1, 5, 1).returncode == 0
    assert task("hash", 1, 5, 1).returncode == 0
    for number in (1, 3, 3):
        assert task("build", 3, 3, number).returncode == 0
    ended = task("join", 0, 0)
    assert ended.returncode == 2 and "part 2 of 3 is missing" in ended.stderr
    assert not os.path.exists("f.calyx")
    twice = [subprocess.Popen([SLURM, "task", os.path.abspath("f.calyx.slurm"), "build", "3",
                               "3"], env={**os.environ, "SLURM_ARRAY_TASK_ID": "2"})
             for _ in range(2)]
    assert [one.wait(HANGS) for one in twice] == [0, 0]
    fails_with("f.calyx.slurm is of another run", *words[:-1])
    assert task("join", 0, 0).returncode == 0
    assert "another run has ended the work" in task("join", 0, 0).stdout
    calyx("build", "-n", "600000", "-o", "one.calyx", *LISTS)
    assert same("f.calyx", "one.calyx") and nothing_is_left("f.calyx")
    fails_with("f.calyx: exists already", *words)


def test_the_end_of_a_disk_is_reported_and_the_same_command_goes_on(slurm, place):
    words = ["build", "-n", "600000", "--parts", "3", "--wait", "-o", "f.calyx", *LISTS]
    (place / "full-build").touch()
    status, _, complaint = run(*words)
    assert status == 1 and "File too large" in complaint and "FAILED" in complaint, complaint
    assert not os.path.exists("f.calyx")
    hashes = os.stat("f.calyx.slurm/hashes/1").st_ino
    (place / "full-build").unlink()
    held = start(*words)
    end_of(slurm, held)
    assert hashes and nothing_is_left("f.calyx")
    calyx("build", "-n", "600000", "-o", "one.calyx", *LISTS)
    assert same("f.calyx", "one.calyx")


@pytest.mark.parametrize("words", [["dedup", *LISTS], ["dedup", "-c", "-i", *LISTS],
                                   ["common", "--at-least=2", *LISTS[:3]],
                                   ["minus", *LISTS[:2]], ["common", "list0", "list4"]])
def test_lines_by_parts_are_as_by_one_command(slurm, place, words):
    started = start(*words, "--parts", "4", "--wait", "-o", "lines")
    end_of(slurm, started)
    with open("lines", "rb") as file:
        assert sorted(file) == sorted(calyx(*words).stdout.splitlines(keepends=True))
    assert nothing_is_left("lines")


def test_a_dry_run_prints_jobs_and_makes_nothing(slurm, place):
    status, said, complaint = run("build", "--dry-run", "-o", "f.calyx", "-k1", "--csv",
                                  "--sbatch", "--account=us", *LISTS)
    assert status == 0, complaint
    assert said.count("sbatch --parsable") == 4 and said.count("--account=us") == 4
    for line in ("#SBATCH --array=1-3", "--requeue", "3 parts", "'--dependency=afterok:${hash}'",
                 "f.calyx.slurm/logs/hash-%a.log"):
        assert line in said, line
    scripts = said.split("<<'END'\n")[1:]
    for script in scripts:
        subprocess.run(["sh", "-n"], input=script.split("\nEND")[0], text=True, check=True)
    assert not os.path.exists("f.calyx.slurm")
    # Without a cluster to ask.
    status, said, _ = run("build", "--dry-run", "-o", "f.calyx", "--nodes=64",
                          "--node-memory=64G", "--node-cores=16", "-n", "1e12", *LISTS)
    assert status == 0 and "1024 parts" in said


def test_options_of_keys_go_to_the_hashes_and_options_of_filters_to_the_parts(slurm, place):
    (place / "a.csv").write_text("".join(f"{i},K{i},x\n" for i in range(1000)))
    words = ["-k2", "-it,", "--comment=a b 'c'", "--seed", "7", "-p1%"]
    words[1:2] = ["-i", "-t", ","]
    end_of(slurm, start("build", "-n1000", *words, "--wait", "-o", "f.calyx", "a.csv"))
    calyx("build", "-n1000", *words, "-o", "one.calyx", "a.csv")
    assert same("f.calyx", "one.calyx")


def test_names_may_have_blanks_quotes_newlines_and_percent_signs(slurm, place):
    folder = "a b\n%a'$(touch run)"
    os.mkdir(folder)
    os.rename("list1", "-x 'y\nz")
    end_of(slurm, start("build", "-n200000", "--wait", "-o", f"{folder}/f", "list0", "--",
                        "-x 'y\nz"))
    calyx("build", "-n200000", "-o", "one.calyx", "list0", "./-x 'y\nz")
    assert same(f"{folder}/f", "one.calyx")
    assert os.listdir(folder) == ["f"] and not os.path.exists("run")


def test_what_cannot_be_is_said_before_a_job_is_submitted(slurm, place):
    fails_with("no verb 'biuld'", "biuld")
    fails_with("missing -o OUT or inputs", "build", "-o", "f")
    fails_with("missing: No such file", "build", "-o", "f", "missing")
    fails_with("option --allow is none that works in parts", "build", "--allow=x", "-o", "f", *LISTS)
    fails_with("option --parts wants", "dedup", "--parts=0x", "-o", "f", *LISTS)
    fails_with("cannot be made of parts", "build", "--kind=flat", "-o", "f", *LISTS)
    fails_with("without .gz or .zst", "build", "-o", "f.gz", *LISTS)
    fails_with("there is no command nowhere", "build", "--calyx", "nowhere", "-o", "f", *LISTS)
    fails_with("option --exact is none that works in parts", "build", "--exact",
               "--universe=list0", "-o", "f", *LISTS)
    fails_with("option --nodes wants a number, not 'x'", "build", "--nodes=x",
               "--node-memory=1G", "-o", "f", *LISTS)
    fails_with("option --sbatch: No closing quotation", "build", "--sbatch='", "-o", "f", *LISTS)
    status, said, complaint = run("dedup", "--dry-run", "-S", "1.2.3G", "-o", "f", *LISTS)
    assert status == 1 and complaint == \
        "calyx-slurm: expected a size such as 4G, not '1.2.3G'\n", complaint
    subprocess.run(["gzip", "-k", "list0"], check=True)
    fails_with("list0.gz is packed", "build", "-o", "f", "list0.gz")
    fails_with("too small for 9 parts: 2 at most", "build", "--kind=ribbon", "-n600000",
               "--parts=9", "-o", "f", *LISTS)
    fails_with("cannot build", "build", "--node-memory=1M", "-o", "f", *LISTS)
    assert shlex.join(sorted(os.listdir())) == shlex.join(sorted([*LISTS, "calyx", "list0.gz"]))
