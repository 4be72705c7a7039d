"""Numbers that are not finite, and disks that fail: every rank ends alike or the run goes on, one line says why, and no
checkpoint is harmed."""

import os
import resource
import shutil
import subprocess
import time

from trainer_runs import LIMIT, Run, expect, main, program

IO, NON_FINITE = 3, 8


def verified(run):
    for name in run.checkpoints():
        done = subprocess.run([program("checkpoint"), "inspect", os.path.join(run.out_dir, name)], capture_output=True,
                              text=True)
        expect(done.returncode == 0 and "not finite" not in done.stdout, f"{name}: {done.stdout}{done.stderr}")


def not_finite(folder):
    steps = ["--max-iters", "20", "--checkpoint-interval", "0", "--warmup-iters", "0"]
    folder.train(2, "out", *steps, "--stop-at", "3")
    run = folder.train(2, "out", *steps, "--learning-rate", "1e30", "--resume", code=NON_FINITE)
    expect(run.stderr.count("Lower --learning-rate") == 1, f"not said once:\n{run.stderr}")
    expect(run.checkpoints() == ["step_00000003"], f"checkpoints {run.checkpoints()}")
    verified(run)
    saving = folder.train(2, "saving", "--warmup-iters", "0", "--learning-rate", "1e38", "--checkpoint-interval", "1",
                          code=NON_FINITE)
    verified(saving)


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


class LongRun:
    """A run that has saved its first checkpoint and goes on."""

    def __init__(self, folder, out):
        steps = ["--max-iters", "3000", "--eval-interval", "0", "--checkpoint-interval", "200", "--log-interval", "1000"]
        self.out = folder.at(out)
        self.errors = folder.at(out + ".err")
        self.process = subprocess.Popen(folder.command(2, out, *steps), stdout=subprocess.DEVNULL,
                                        stderr=open(self.errors, "w"))
        self.wait(lambda: os.path.isdir(os.path.join(self.out, "step_00000200")), "the first checkpoint")
    def wait(self, condition, what):
        end = time.monotonic() + LIMIT
        while not condition():
            expect(time.monotonic() < end and self.process.poll() is None, f"{what} did not come:\n{self.said()}")
            time.sleep(0.005)

    def said(self):
        with open(self.errors) as file:
            return file.read()

    def finished(self):
        self.process.wait(timeout=LIMIT)
        return Run(self.out, subprocess.CompletedProcess([], self.process.returncode, "", self.said()))


class FullDisk(LongRun):
    """Rank 0 can write no file as large as a checkpoint's from the first checkpoint on."""

    def __init__(self, folder, out):
        super().__init__(folder, out)
        self.rank_0 = children(self.process.pid)[0]
        self.limit(50_000)

    def limit(self, size):
        resource.prlimit(self.rank_0, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def disk_full_for_a_while(folder):
    disk = FullDisk(folder, "out")
    disk.wait(lambda: "the run goes on without this checkpoint" in disk.said(), "the failed save")
    disk.limit(resource.RLIM_INFINITY)
    run = disk.finished()
    expect(run.code == IO, f"code {run.code}\n{run.stderr}")
    expect("step_00003000" in run.checkpoints(), f"checkpoints {run.checkpoints()}")
    expect("could not be written during the run" in run.stderr, run.stderr)
    verified(run)


def disk_full_to_the_end(folder):
    run = FullDisk(folder, "out").finished()
    expect(run.code == IO, f"code {run.code}\n{run.stderr}")
    expect(run.checkpoints() and "step_00003000" not in run.checkpoints(), f"checkpoints {run.checkpoints()}")
    expect("rank 0" in run.stderr and "step 3000, save" in run.stderr, run.stderr)
    verified(run)
    again = folder.train(2, "out", "--max-iters", "3000", "--eval-interval", "0", "--resume")
    expect("step_00003000" in again.checkpoints(), f"checkpoints {again.checkpoints()}")


def folder_deleted_during_the_run(folder):
    running = LongRun(folder, "out")
    while os.path.exists(running.out):
        shutil.rmtree(running.out, ignore_errors=True)
    run = running.finished()
    expect(run.code == IO, f"code {run.code}\n{run.stderr}")
    expect("out is gone, deleted or unmounted" in run.stderr and "step 3000, save" in run.stderr, run.stderr)


def folder_that_cannot_be_written(folder):
    run = folder.train(2, "out", "--out-dir", "/sys/lockstep", code=IO)
    expect(run.stderr.count("/sys/lockstep") == 1, f"not said once:\n{run.stderr}")


main({f.__name__: f for f in (not_finite, disk_full_for_a_while, disk_full_to_the_end, folder_deleted_during_the_run,
                              folder_that_cannot_be_written)})
