"""Slurm and Dask on this machine: real daemons on free ports of 127.0.0.1, in a
folder of their own, that end with the test.

    with Slurm(folder, nodes=3) as slurm:
        subprocess.run(["sbatch", ...], env=slurm.env)
"""
import contextlib
import ctypes
import getpass
import os
import secrets
import signal
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "test", "module"))
from servers import HANGS, free_port, until  # noqa: E402

SLURM_DAEMONS = ("munged", "slurmctld", "slurmd")
CONF = """\
ClusterName=calyx
SlurmctldHost=localhost(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket
CredType=cred/munge
SlurmctldPort={port}
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdPidFile={folder}/%n.pid
SlurmdLogFile={folder}/%n.log
SlurmdSpoolDir={folder}/spool/%n
StateSaveLocation={folder}/state
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=batch_sched_delay=0,bf_interval=1,sched_interval=2,sched_min_interval=0
SlurmctldTimeout=30
SlurmdTimeout=3600
ReturnToService=0
KillWait=1
InactiveLimit=0
MaxArraySize={array_size}
PropagateResourceLimits=NONE
{nodes}
PartitionName=all Nodes={names} Default=YES MaxTime=INFINITE State=UP
"""


def is_there(program):
    return shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin:/sbin")


def slurm_is_there():
    return all(map(is_there, SLURM_DAEMONS))


def children_of(pid):
    """All processes below this one, by /proc."""
    below = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as file:
                parent = int(file.read().rpartition(")")[2].split()[1])
            below.setdefault(parent, []).append(int(name))
    found, left = [], [pid]
    while left:
        some = below.get(left.pop(), [])
        found += some
        left += some
    return found


LIBC = ctypes.CDLL(None)
PR_SET_PDEATHSIG = 1


def die_with_parent():
    """In a new process: even kill -9 of this one does not leave it behind. To be started
    by the main thread, as it also dies with its thread."""
    LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def kill_hard(pids):
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


class Slurm:
    """munged, slurmctld, and a slurmd for each node n1, n2, ... A node that is lost
    stays lost, and one of the spare nodes joins instead."""

    def __init__(self, folder, nodes=3, spare=0, array_size=1001):
        self.folder, self.processes = folder, {}
        for name in ("munge", "state", "spool"):
            os.makedirs(os.path.join(folder, name), mode=0o755)
        with open(f"{folder}/munge/key", "wb") as file:
            file.write(secrets.token_bytes(1024))
        os.chmod(f"{folder}/munge/key", 0o400)
        names = [f"n{i + 1}" for i in range(nodes + spare)]
        lines = []
        for name in names:
            lines.append(f"NodeName={name} NodeHostname=localhost NodeAddr=127.0.0.1 "
                         f"Port={free_port()} CPUs=1 RealMemory=2000 State=UNKNOWN")
        with open(f"{folder}/slurm.conf", "w") as file:
            file.write(CONF.format(user=getpass.getuser(), folder=folder,
                                   port=free_port(), array_size=array_size,
                                   nodes="\n".join(lines), names=",".join(names)))
        self.names, self.spare = names[:nodes], names[nodes:]
        self.env = {**os.environ, "SLURM_CONF": f"{folder}/slurm.conf"}

    def __enter__(self):
        try:
            self.start("munged", "--foreground", "--force",
                       f"--key-file={self.folder}/munge/key",
                       f"--socket={self.folder}/munge/socket",
                       f"--pid-file={self.folder}/munge/pid",
                       f"--seed-file={self.folder}/munge/seed",
                       f"--log-file={self.folder}/munge/log")
            until(lambda: os.path.exists(f"{self.folder}/munge/socket"), "munged listens")
            self.start("slurmctld", "-D", "-c")
            for name in self.names:
                self.start_node(name)
            until(lambda: self.idle() == len(self.names), "all nodes are idle")
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, program, *words, name=None):
        with open(f"{self.folder}/{name or program}.out", "ab") as log:
            self.processes[name or program] = subprocess.Popen(
                [is_there(program), *words], env=self.env, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, preexec_fn=die_with_parent)

    def start_node(self, name):
        self.start("slurmd", "-D", "-N", name, name=name)

    def run(self, *words):
        return subprocess.run(words, env=self.env, timeout=HANGS, check=True, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE).stdout

    def idle(self):
        try:
            return len(self.run("sinfo", "-h", "-N", "-t", "idle", "-o", "%N").split())
        except subprocess.CalledProcessError:
            return 0  # slurmctld is not there yet

    def busy_nodes(self):
        return self.run("squeue", "-h", "-t", "running", "-o", "%N").split()

    def processes_of(self, name):
        """slurmd of a node, its slurmstepd, and what these run. A slurmstepd leaves
        its slurmd, so it is known by the node in its words."""
        found = [self.processes[name].pid]
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                with open(f"/proc/{pid}/environ", "rb") as file:
                    mine = f"SLURM_CONF={self.folder}/slurm.conf".encode() in file.read()
                with open(f"/proc/{pid}/cmdline", "rb") as file:
                    words = file.read()
                if mine and b"slurmstepd" in words:
                    if self.node_of_step(int(pid)) == name:
                        found.append(int(pid))
        return found + [child for pid in found for child in children_of(pid)]

    def node_of_step(self, pid):
        for entry in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{entry}")
                for name in self.names:
                    if target.endswith(f"/{name}.log"):
                        return name
        return None

    def lose_node(self, name):
        """The node loses its power: all that runs there is gone at once. The
        controller gets a message, as it would notice only after minutes, and requeues its
        jobs."""
        kill_hard(self.processes_of(name))
        self.processes.pop(name).wait(HANGS)
        self.names[self.names.index(name)] = self.spare[0]
        self.start_node(self.spare.pop(0))
        self.run("scontrol", "update", f"NodeName={name}", "State=DOWN", "Reason=lost")

    def hurry(self):
        """Jobs that were requeued wait for two minutes; not here."""
        for line in self.run("squeue", "-h", "-r", "-t", "all", "-o", "%i %T %r").splitlines():
            job, *state = line.split(maxsplit=2)
            if state == ["PENDING", "BeginTime"]:  # and no longer COMPLETING
                with contextlib.suppress(subprocess.CalledProcessError):  # it began now
                    self.run("scontrol", "update", f"JobId={job}", "StartTime=now")

    def stop(self):
        with contextlib.suppress(Exception):
            subprocess.run(["scancel", "--user", getpass.getuser()], env=self.env, timeout=20,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for name in self.names:
            if name in self.processes:
                kill_hard(self.processes_of(name))
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.wait(HANGS)


class Dask:
    """dask-scheduler, and workers of one thread. `worker_words` go to each of them."""

    def __init__(self, folder, workers=3, env=None, worker_words=()):
        self.folder, self.env, self.words = folder, {**os.environ, **(env or {})}, worker_words
        self.address = f"tcp://127.0.0.1:{free_port()}"
        self.workers, self.count, self.scheduler = [], workers, None

    def __enter__(self):
        try:
            port = self.address.rpartition(":")[2]
            self.scheduler = self.start("scheduler", "dask-scheduler", "--host", "127.0.0.1",
                                        "--port", port, "--no-dashboard",
                                        preexec_fn=die_with_parent)
            for _ in range(self.count):
                self.add_worker()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_):
        self.stop()

    def start(self, name, *words, **more):
        with open(f"{self.folder}/{name}.log", "ab") as log:
            return subprocess.Popen(words, env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                    stderr=log, cwd=self.folder, **more)

    def add_worker(self):
        self.workers.append(self.start(
            f"worker{len(self.workers)}", "dask-worker", self.address, "--no-nanny",
            "--nthreads", "1", "--no-dashboard", "--memory-limit", "0", "--host", "127.0.0.1",
            "--local-directory", self.folder, "--death-timeout", "60", *self.words))

    def lose_worker(self, pid):
        """Kill it hard, and start another."""
        kill_hard([pid])
        self.add_worker()

    def stop(self):
        for process in [*self.workers, self.scheduler]:
            if process:
                process.kill()
                process.wait(HANGS)
