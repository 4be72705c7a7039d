"""What a training run does when one of its ranks is killed or stopped, in each phase: the others leave in time with the
right code, and one of them prints one line that names the rank, the step and the phase.

Usage: trainer_faults.py BIN [--transport NAME] [PATTERN...]   (BIN: the folder of the programs; --transport: on GPUs,
shared where there are fewer than ranks)
Exit code 77: the transport can serve no two ranks here."""

import glob
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from group import SCALE, Group, expect, run_cases, wait_until

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "gpu"))

from nccl_ranks import nccl_ranks  # noqa: E402

BIN = sys.argv[1]
GPU = sys.argv[2] == "--transport" if len(sys.argv) > 2 else False
PATTERNS = sys.argv[4 if GPU else 2:]
DEVICE = ["--device", "cuda", "--share-gpu", "--transport", sys.argv[3]] if GPU else ["--device", "cpu"]
PEER_LOST, TIMEOUT = 5, 6
PEER_TIMEOUT = 2.0  # scaled as all limits are
SMALL = ["--n-layer", "2", "--n-head", "2", "--n-embd", "64", "--block-size", "32", "--threads", "1", "--warmup-iters",
         "2", "--max-iters", "1000000", "--sample-tokens", "0", "--peer-timeout", str(PEER_TIMEOUT * SCALE)]
# Steps of half a second and more, nearly all of it in forward and backward. A step is printed at the end of its
# optimizer, and the other rank may be a little behind or ahead.
IN_A_STEP = "forward|backward|all-reduce|optimizer"
# A GPU is behind its host, which tells the phase.
WAITING = IN_A_STEP if GPU else "backward|all-reduce"
COMPUTING = SMALL + ["--batch-size", str(int(256 / SCALE)), "--eval-interval", "0", "--no-overlap", "--log-interval",
                     "1"]
if GPU:
    COMPUTING += ["--n-layer", "12", "--n-embd", "1024", "--n-head", "16", "--block-size", "1024", "--batch-size", "16"]
# The evaluation after the second step takes for ever.
EVALUATING = SMALL + ["--global-batch-size", "12", "--eval-interval", "2", "--eval-iters", "100000", "--log-interval",
                      "1"]
# Every step ends in a save of 38 MB.
SAVING = SMALL + ["--batch-size", "1", "--n-layer", "4", "--n-embd", "256", "--eval-interval", "0",
                  "--checkpoint-interval", "1"]
SHARDS = ["--shard-optimizer"]


def last_wins(flags):
    """Each flag once: with its last value, or alone if it takes none."""
    given = {}
    for at, word in enumerate(flags):
        if word.startswith("--"):
            value = flags[at + 1:at + 2]
            given[word] = [] if value and value[0].startswith("--") else value
    return [word for flag, value in given.items() for word in [flag, *value]]


class Training(Group):
    def __init__(self, ranks, flags):
        super().__init__(ranks, [os.path.join(BIN, "trainer"), "--data-dir", DATA, "--out-dir", "{dir}/out"]
                         + last_wins(flags + DEVICE))

    def wait_printed(self, text):
        self.wait_started()
        wait_until(lambda: text in self.read("stdout.0"), 60, f"'{text}' of rank 0")

    def wait_evaluating(self):
        self.wait_printed("step     1/")
        time.sleep(0.5 * SCALE)  # for the second step, which takes milliseconds

    def saving(self):
        """Whether rank 0 has begun a checkpoint and not ended it."""
        return any(os.path.isdir(name) and not os.path.basename(name).startswith("step_")
                   for name in glob.glob(self.dir + "/out/*") + glob.glob(self.dir + "/out/.*"))

    def stop_in_save(self):
        """Stops rank 0 in a save."""
        self.wait_printed("step     1/")
        end = time.monotonic() + 60
        while True:
            expect(time.monotonic() < end, "not caught in a save")
            if self.saving():
                self.kill(0, signal.SIGSTOP)
                wait_until(lambda: self.stopped(0), 10, "stop of rank 0")
                if self.saving():
                    return
                self.kill(0, signal.SIGCONT)  # it was over before the signal
            time.sleep(0.0005)


def others(ranks, victim):
    return [rank for rank in range(ranks) if rank != victim]


def check_end(group, start, victim, code, limit, how):
    """The survivors leave with `code` within `limit`, and one of them, rank 0 if it can, prints one line like `how`."""
    survivors = others(group.ranks, victim)
    for rank, (got, when) in group.exits(survivors, limit + 5).items():
        expect(got == code, f"rank {rank} left with {got}, not {code}")
        expect(when - start <= limit * SCALE, f"rank {rank} left after {when - start:.2f} s, limit {limit * SCALE:g} s")
    lines = group.lines(survivors)
    expect(len(lines) == 1 and (victim == 0 or lines[0][0] == 0), f"printed {lines}")
    expect(re.search(rf"rank {victim} \(host \S+, pid {group.pids[victim]}\) {how}", lines[0][1]),
           f"'{lines[0][1]}' is not like '{how}'")


def killed(group, victim, phase):
    start = group.kill(victim)
    check_end(group, start, victim, PEER_LOST, 2.0, rf"died in step \d+, ({phase})")


def stopped(group, victim, phase, start=None):
    start = start or group.kill(victim, signal.SIGSTOP)
    # Half a second more for a heartbeat, and one for ranks that are busy computing; the rest is for a busy machine.
    check_end(group, start, victim, TIMEOUT, PEER_TIMEOUT + 2.5, rf"stopped answering in step \d+, ({phase})")


def kill_while_computing(victim):
    with Training(2, COMPUTING) as group:
        group.wait_printed("step     2/")
        killed(group, victim, IN_A_STEP)


def kill_in_all_reduce(phases, flags=()):
    """Rank 1 waits for rank 2, which is stopped for a moment."""
    with Training(3, SMALL + ["--global-batch-size", "12", "--eval-interval", "0", *flags]) as group:
        group.wait_printed("step    50/")
        group.kill(2, signal.SIGSTOP)
        time.sleep(0.8 * SCALE)  # for the others to come to where they wait
        start = group.kill(1)
        group.kill(2, signal.SIGCONT)
        check_end(group, start, 1, PEER_LOST, 2.0, rf"died in step \d+, ({phases})")


def kill_in_evaluation(victim):
    with Training(2, EVALUATING) as group:
        group.wait_evaluating()
        killed(group, victim, "evaluate")


def kill_in_save(flags=()):
    with Training(2, [*SAVING, *flags]) as group:
        group.stop_in_save()
        start = group.kill(0)
        check_end(group, start, 0, PEER_LOST, 2.0, r"died in step \d+, save")


def stop_while_computing():
    with Training(2, COMPUTING) as group:
        group.wait_printed("step     2/")
        stopped(group, 0, IN_A_STEP)


def stop_with_the_default_limit():
    """On GPUs a stopped rank ends the run within 5 seconds; on CPUs, which are shared more, a stop of 3 is survived."""
    flags = ["--peer-timeout", "0"]
    if not GPU:
        survive_stop(3.0, flags)
        return
    with Training(2, COMPUTING + flags) as group:
        group.wait_printed("step     2/")
        check_end(group, group.kill(1, signal.SIGSTOP), 1, TIMEOUT, 5.0, rf"stopped answering in step \d+, ({IN_A_STEP})")


def stop_in_evaluation():
    with Training(3, EVALUATING) as group:
        group.wait_evaluating()
        stopped(group, 0, "evaluate")


def stop_in_save():
    with Training(2, SAVING) as group:
        group.stop_in_save()
        stopped(group, 0, "save", time.monotonic())


def survive_stop(seconds, flags=()):
    """Nobody complains, and the run goes on."""
    with Training(2, SMALL + ["--global-batch-size", "12", "--eval-interval", "0", "--log-interval", "1",
                              *flags]) as group:
        group.wait_printed("step     2/")
        group.kill(1, signal.SIGSTOP)
        time.sleep(seconds)
        before = group.read("stdout.0").count("step ")
        group.kill(1, signal.SIGCONT)
        wait_until(lambda: group.read("stdout.0").count("step ") > before + 20, 20, "steps after the stop")
        expect(group.lines([0, 1]) == [], f"complained: {group.lines([0, 1])}")


CASES = {
    "kill_while_computing_rank_0": lambda: kill_while_computing(0),
    "kill_while_computing_rank_1": lambda: kill_while_computing(1),
    "kill_in_all_reduce": lambda: kill_in_all_reduce(WAITING),
    "kill_with_shards": lambda: kill_in_all_reduce(f"{WAITING}|optimizer", SHARDS),
    "kill_in_evaluation_rank_0": lambda: kill_in_evaluation(0),
    "kill_in_evaluation_rank_1": lambda: kill_in_evaluation(1),
    "kill_in_save": kill_in_save,
    "kill_in_save_of_shards": lambda: kill_in_save(SHARDS),
    "stop_while_computing": stop_while_computing,
    "stop_with_the_default_limit": stop_with_the_default_limit,
    "stop_in_evaluation": stop_in_evaluation,
    "stop_in_save": stop_in_save,
    "stop_for_a_second": lambda: survive_stop(1.0),
}
MOST_RANKS = 2 if "staged" in DEVICE else nccl_ranks() if "nccl" in DEVICE else 3
if MOST_RANKS < 2:
    print("skipped: NCCL is not installed, or there are too few GPUs for it")
    sys.exit(77)
if MOST_RANKS < 3:
    CASES = {name: case for name, case in CASES.items()
             if name not in ("kill_in_all_reduce", "kill_with_shards", "stop_in_evaluation")}
if "staged" in DEVICE or "nccl" in DEVICE:
    CASES = {name: case for name, case in CASES.items() if "shards" not in name}


def make_data(folder):
    source = random.Random(7)
    with open(folder + "/text", "w") as file:
        file.write("".join(source.choice("abcdefghij ") for _ in range(50000)))
    subprocess.run([os.path.join(BIN, "tokenize"), "--text", folder + "/text", "--kind", "char", "--out",
                    folder + "/data"], check=True, stdout=subprocess.DEVNULL)
    return folder + "/data"


FOLDER = tempfile.mkdtemp(prefix="lockstep-fault-data-")
try:
    DATA = make_data(FOLDER)
    sys.exit(run_cases(CASES, PATTERNS))
finally:
    shutil.rmtree(FOLDER, ignore_errors=True)
