"""Stopping and going on: bit-exact on the same number of ranks, the same samples in the same order on any other."""

import os
import signal
import subprocess
import time

from trainer_runs import LIMIT, Run, expect, expect_same_run, main

INTERRUPTED, USAGE = 75, 2
STEPS = ["--max-iters", "12", "--global-batch-size", "12"]


def unbroken(folder, ranks):
    return folder.train(ranks, f"unbroken{ranks}", *STEPS)


def stop_at(folder):
    whole = unbroken(folder, 2)
    for step in ("1", "7"):
        out = f"broken{step}"
        first = folder.train(2, out, *STEPS, "--stop-at", step)
        expect(first.checkpoints() == [f"step_{int(step):08d}"], f"checkpoints {first.checkpoints()}")
        expect_same_run(whole, folder.train(2, out, *STEPS, "--resume"), 12)


def trainer_pids(mpirun):
    with open(f"/proc/{mpirun}/task/{mpirun}/children") as file:
        return [int(word) for word in file.read().split()]


def stop_by_signal(folder):
    """A signal to any one rank stops all of them at the same step."""
    steps = ["--max-iters", "4000", "--global-batch-size", "4", "--eval-interval", "0", "--n-embd", "64"]
    for number, rank in ((signal.SIGTERM, 1), (signal.SIGUSR1, 0), (signal.SIGINT, 1)):
        out = f"signal{int(number)}"
        process = subprocess.Popen(folder.command(2, out, *steps), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   text=True)
        end = time.monotonic() + LIMIT
        metrics = os.path.join(folder.at(out), "metrics.jsonl")
        while not os.path.exists(metrics) or os.path.getsize(metrics) < 2000:
            expect(time.monotonic() < end and process.poll() is None, "the run did not begin")
            time.sleep(0.01)
        os.kill(trainer_pids(process.pid)[rank], number)
        stdout, stderr = process.communicate(timeout=LIMIT)
        stopped = Run(folder.at(out), subprocess.CompletedProcess([], process.returncode, stdout, stderr))
        expect(stopped.code == INTERRUPTED, f"code {stopped.code}\n{stderr}")
        expect(len(stopped.checkpoints()) == 1, f"checkpoints {stopped.checkpoints()}")
        at = int(stopped.checkpoints()[0][5:])
        expect(len(stopped.metrics()) == at, f"{len(stopped.metrics())} steps in the metrics, stopped at {at}")
        last = str(at + 3)
        resumed = folder.train(2, out, *steps, "--resume", "--stop-at", last)
        whole = folder.train(2, out + "-whole", *steps, "--stop-at", last)
        expect_same_run(whole, resumed, at + 3)


def other_ranks(folder):
    whole = unbroken(folder, 2)
    folder.train(2, "moving", *STEPS, "--stop-at", "4")
    folder.train(1, "moving", *STEPS, "--resume", "--stop-at", "8")
    moved = folder.train(3, "moving", *STEPS, "--resume")
    expect(len(moved.losses()) == 12, f"losses {moved.losses()}")
    for ours, theirs in zip(whole.losses() + whole.val_losses(), moved.losses() + moved.val_losses()):
        expect(abs(ours - theirs) < 1e-5 * ours, f"loss {theirs}, not {ours}")


def shards_and_wholes(folder):
    """A checkpoint holds the moments of all ranks, whoever kept them."""
    for size in ("64", "8"):
        model = [*STEPS, "--n-layer", "1", "--n-embd", size]
        out = "changing" + size
        whole = folder.train(2, "whole" + size, *model)
        folder.train(2, out, *model, "--shard-optimizer", "--stop-at", "4", "--checkpoint-interval", "2")
        folder.train(2, out, *model, "--resume", "--stop-at", "8")
        expect_same_run(whole, folder.train(2, out, *model, "--shard-optimizer", "--resume"), 12)
        again = folder.train(2, out, *model, "--shard-optimizer", "--resume")
        expect_same_run(whole, again, 12)


def finished_run_again(folder):
    whole = unbroken(folder, 1)
    again = folder.train(1, "unbroken1", *STEPS, "--resume")
    expect(again.losses() == whole.losses(), "the metrics changed")
    expect(whole.checkpoints() == again.checkpoints(), "the checkpoints changed")


def longer_run(folder):
    folder.train(1, "out", *STEPS, "--lr-decay-iters", "20", "--warmup-iters", "2")
    longer = folder.train(1, "out", "--max-iters", "16", "--global-batch-size", "12", "--lr-decay-iters", "20", "--resume")
    whole = folder.train(1, "whole", "--max-iters", "16", "--global-batch-size", "12", "--lr-decay-iters", "20")
    expect(whole.losses() == longer.losses(), "a run that was made longer differs from one that always was")


def keeps_newest(folder):
    run = folder.train(1, "out", *STEPS, "--checkpoint-interval", "2", "--keep-checkpoints", "2")
    expect(run.checkpoints() == ["step_00000010", "step_00000012"], f"checkpoints {run.checkpoints()}")


def refusals(folder):
    folder.train(1, "out", *STEPS, "--stop-at", "4")
    for flags, words in {
            (): ["already holds step_00000004", "--resume"],
            ("--resume", "--n-layer", "3"): ["--n-layer 2", "has 3"],
            ("--resume", "--n-embd", "64"): ["--n-embd 32", "has 64"],
            ("--resume", "--block-size", "8"): ["--block-size 16", "has 8"],
            ("--resume", "--seed", "3"): ["--seed 1337", "has 3"],
            ("--resume", "--global-batch-size", "6"): ["--global-batch-size 12", "has 6"],
            ("--resume", "--stop-at", "2"): ["past the last step of this run, 2"],
    }.items():
        steps = STEPS if "--global-batch-size" not in flags else STEPS[:2]
        run = folder.train(2, "out", *steps, *flags, code=USAGE)
        for word in words:
            expect(word in run.stderr, f"{flags}: '{word}' is not in\n{run.stderr}")
        expect(run.checkpoints() == ["step_00000004"], "the checkpoint was touched")
    run = folder.train(2, "empty", *STEPS, "--resume", code=USAGE)
    expect("holds no complete checkpoint" in run.stderr, run.stderr)


main({f.__name__: f for f in (stop_at, stop_by_signal, other_ranks, shards_and_wholes, finished_run_again, longer_run,
                              keeps_newest, refusals)})
