"""A group of ranks under mpirun whose members can be killed and stopped one by one, for tests of what
the others do. Any program may be a member; a test decides from its files and output when to strike."""

import fnmatch
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated",
          "--mca", "btl", "self,vader,tcp"]
SHIELD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shield.py")
# How many times as long as usual everything may take.
SCALE = float(os.environ.get("LOCKSTEP_TIME_SCALE", 1))
START_LIMIT = 60.0


class Failure(Exception):
    """What a test expected did not happen."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def wait_until(condition, limit, what):
    end = time.monotonic() + limit * SCALE
    while not condition():
        expect(time.monotonic() < end, f"{what}: not within {limit * SCALE:g} s")
        time.sleep(0.005)


def run_cases(cases, patterns):
    """Runs the cases whose names match one of the patterns, or all; a line each. The exit code of the program."""
    failed = False
    for name, case in cases.items():
        if not any(fnmatch.fnmatch(name, pattern) for pattern in patterns or ["*"]):
            continue
        start = time.monotonic()
        try:
            case()
            result = "pass"
        except Failure as failure:
            failed = True
            result = f"FAIL: {failure}"
        print(f"{name:32} {time.monotonic() - start:5.1f} s  {result}", flush=True)
    return 1 if failed else 0


def state(pid):
    """The letter of /proc/PID/stat; "X" when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "X"


def alive(pid):
    """Whether a process runs; a zombie does not."""
    return state(pid) not in "ZX"


class Group:
    """`with Group(ranks, command) as group:`; "{dir}" in the command is the folder of the group's files.
    Without the shield the ranks are mpirun's own children, and their output is not kept. Leaving the
    block kills what is left of the group."""

    def __init__(self, ranks, command, shielded=True):
        self.ranks = ranks
        self.shielded = shielded
        self.dir = tempfile.mkdtemp(prefix="lockstep-fault-")
        shield = [sys.executable, SHIELD, self.dir] if shielded else []
        words = [word.replace("{dir}", self.dir) for word in command]
        self.mpirun = subprocess.Popen(MPIRUN + ["-np", str(ranks)] + shield + words, stdin=subprocess.DEVNULL,
                                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.pids = []

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.signal_file("release")
        for pid in self.pids:
            if alive(pid):
                os.kill(pid, signal.SIGKILL)
        try:
            self.mpirun.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.mpirun.kill()
            self.mpirun.wait()
        if error is not None:
            for rank in range(self.ranks):
                print(f"--- standard error of rank {rank}\n{self.read(f'stderr.{rank}')}", file=sys.stderr)
        shutil.rmtree(self.dir, ignore_errors=True)

    def read(self, name):
        try:
            with open(os.path.join(self.dir, name)) as file:
                return file.read()
        except OSError:
            return ""

    def exists(self, name):
        return os.path.exists(os.path.join(self.dir, name))

    def signal_file(self, name):
        with open(os.path.join(self.dir, name), "w"):
            pass

    def children(self):
        with open(f"/proc/{self.mpirun.pid}/task/{self.mpirun.pid}/children") as file:
            return [int(pid) for pid in file.read().split()]

    def wait_started(self):
        if not self.shielded:
            wait_until(lambda: len(self.children()) == self.ranks, START_LIMIT, "start of the ranks")
            self.pids = self.children()
            return
        wait_until(lambda: all(self.exists(f"pid.{rank}") for rank in range(self.ranks)), START_LIMIT,
                   "start of the ranks")
        self.pids = [int(self.read(f"pid.{rank}")) for rank in range(self.ranks)]

    def wait_files(self, name, limit=START_LIMIT):
        """Until every rank has written NAME.R."""
        self.wait_started()
        wait_until(lambda: all(self.exists(f"{name}.{rank}") for rank in range(self.ranks)), limit,
                   f"{name} of every rank")

    def kill(self, rank, number=signal.SIGKILL):
        """Returns the time of the signal."""
        now = time.monotonic()
        os.kill(self.pids[rank], number)
        return now

    def stopped(self, rank):
        return state(self.pids[rank]) == "T"

    def exits(self, ranks, limit):
        """{rank: (exit code, time)} once all of `ranks` have left."""
        wait_until(lambda: all(self.exists(f"exit.{rank}") for rank in ranks), limit, f"end of ranks {ranks}")
        ends = {}
        for rank in ranks:
            code, when = self.read(f"exit.{rank}").split()
            ends[rank] = (int(code), float(when))
        return ends

    def lines(self, ranks):
        """[(rank, line)] of what these ranks wrote to standard error."""
        return [(rank, line) for rank in ranks for line in self.read(f"stderr.{rank}").splitlines()]
