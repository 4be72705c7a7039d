"""The trainer on a GPU: close to the CPU, the same bits again and again, however the step is launched, divided or
interrupted. One GPU is enough: ranks share it where there are several."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))

from nccl_ranks import nccl_ranks  # noqa: E402
from trainer_runs import LIMIT, TINY, Run, expect, expect_same_run, main, state_hash  # noqa: E402

USAGE, PEER_LOST, OUT_OF_MEMORY, NON_FINITE, INTERRUPTED = 2, 5, 7, 8, 75
# Heads of 32, as the GPU's attention takes them.
GPU = ["64" if flag == "--n-embd" else word for flag, word in zip([""] + TINY, TINY)] + ["--device", "cuda"]


def train(folder, out, *flags, ranks=1, code=0):
    return folder.train(ranks, out, *flags, code=code, tiny=GPU)


def expect_close(one, other, tolerance):
    expect(len(one.losses()) == len(other.losses()) == 8, f"losses {one.losses()} {other.losses()}")
    for key in ("loss", "grad_norm", "val_loss"):
        pairs = [(a[key], b[key]) for a, b in zip(one.metrics(), other.metrics()) if key in a]
        for a, b in pairs:
            expect(abs(a - b) <= tolerance * abs(b), f"{key} {a}, not {b}")


def follows_the_cpu(folder):
    cpu = train(folder, "cpu", "--device", "cpu")
    expect(cpu.losses()[-1] < cpu.losses()[0], f"nothing is learned: {cpu.losses()}")
    expect_close(train(folder, "fp32"), cpu, 2e-5)
    tf32 = train(folder, "tf32", "--precision", "tf32")
    expect_close(tf32, cpu, 5e-3)
    expect(tf32.losses() != cpu.losses(), "tf32 changes nothing")


def same_bits(folder):
    for precision in ("fp32", "tf32"):
        flags = ["--precision", precision, "--gradient-accumulation-steps", "2"]
        first = train(folder, precision, *flags)
        expect_same_run(first, train(folder, precision + "-again", *flags))
        expect_same_run(first, train(folder, precision + "-no-graph", *flags, "--no-cuda-graph"))


def resume(folder):
    whole = train(folder, "whole", "--precision", "tf32")
    for step in ("1", "4"):
        train(folder, "broken" + step, "--precision", "tf32", "--stop-at", step)
        expect_same_run(whole, train(folder, "broken" + step, "--precision", "tf32", "--resume"))


def either_device_reads_the_other(folder):
    whole = train(folder, "whole")
    for first, second in (("cpu", "cuda"), ("cuda", "cpu")):
        out = f"{first}-then-{second}"
        begun = train(folder, out, "--device", first, "--stop-at", "4")
        saved = state_hash(begun.checkpoint(4))
        again = train(folder, out, "--device", second, "--stop-at", "4", "--resume")
        expect(state_hash(again.checkpoint(4)) == saved, f"{second} changed what {first} saved")
        expect_close(train(folder, out, "--device", second, "--resume"), whole, 2e-5)


def accumulation_is_ranks(folder):
    one = train(folder, "one", "--batch-size", "2", "--gradient-accumulation-steps", "2", "--precision", "tf32")
    nccl = {"nccl": ["--transport", "nccl"]} if nccl_ranks() >= 2 else {}
    for name, flags in {"shared": [], "no-graph": ["--no-cuda-graph"], "after-backward": ["--no-overlap"],
                        "peer": ["--transport", "peer"], "staged": ["--transport", "staged"],
                        "shm": ["--transport", "shm"], "socket": ["--transport", "socket"],
                        "verified": ["--verify-reduce"], **nccl}.items():
        two = train(folder, name, "--batch-size", "2", "--precision", "tf32", "--share-gpu", *flags, ranks=2)
        expect_same_run(one, two)


def copy_engines_change_no_bit(folder):
    flags = ["--n-layer", "4", "--n-head", "8", "--n-embd", "512", "--batch-size", "2", "--bucket-mb", "20"]
    one = train(folder, "one", "--gradient-accumulation-steps", "2", *flags)
    expect_same_run(one, train(folder, "two", "--copy-engines", "--transport", "peer", "--share-gpu", *flags, ranks=2))


def shards_change_no_bit(folder):
    flags = ["--n-layer", "4", "--n-head", "8", "--n-embd", "512", "--batch-size", "2"]
    one = train(folder, "one", "--gradient-accumulation-steps", "2", *flags)
    peer = ["--transport", "peer"]
    for name, more in {"beside": [*peer, "--bucket-mb", "20"], "behind": [*peer, "--no-overlap"],
                       "no-graph": [*peer, "--no-cuda-graph"], "verified": [*peer, "--verify-reduce"],
                       "shm": ["--transport", "shm"], "socket": ["--transport", "socket"]}.items():
        expect_same_run(one, train(folder, name, "--shard-optimizer", "--share-gpu", *flags, *more, ranks=2))
    flags += ["--shard-optimizer", "--share-gpu"]
    train(folder, "broken", *peer, "--stop-at", "5", *flags, ranks=2)
    expect_same_run(one, train(folder, "broken", *peer, "--resume", *flags, ranks=2))
    run = train(folder, "refused", "--transport", "staged", *flags, ranks=2, code=USAGE)
    expect("--shard-optimizer" in run.stderr and "staged" in run.stderr, run.stderr)


def trying_schedules(folder):
    flags = ["--max-iters", "90", "--eval-interval", "0", "--share-gpu"]
    tried = train(folder, "tried", "--bucket-mb", "0", *flags, ranks=2)
    expect_same_run(train(folder, "after-backward", "--no-overlap", *flags, ranks=2), tried, step=90)
    expect(tried.stdout.count("\nsums: ") == 1, f"no outcome of the trial in {tried.stdout}")


def resume_on_two_ranks(folder):
    whole = train(folder, "whole", "--share-gpu", ranks=2)
    train(folder, "broken", "--share-gpu", "--stop-at", "5", ranks=2)
    expect_same_run(whole, train(folder, "broken", "--share-gpu", "--resume", ranks=2))


def refuses_a_shared_gpu(folder):
    ranks = 9
    run = train(folder, "out", "--global-batch-size", str(ranks), ranks=ranks, code=USAGE)
    expect(f"{ranks} ranks on host" in run.stderr and "--share-gpu" in run.stderr, run.stderr)


def a_step_that_is_not_finite(folder):
    run = train(folder, "out", "--learning-rate", "1e30", "--warmup-iters", "0", "--grad-clip", "0",
                "--checkpoint-interval", "1", code=NON_FINITE)
    expect("the loss is" in run.stderr and "step" in run.stderr, run.stderr)
    for name in run.checkpoints():
        expect(name in ("step_00000001",), f"saved {name} after the state was lost")


def signalled(folder, out, number):
    """Two ranks that share a GPU, of which rank 1 gets a signal amid its steps."""
    flags = ["--share-gpu", "--max-iters", "1000000", "--eval-interval", "0"]
    process = subprocess.Popen(folder.command(2, out, *flags, tiny=GPU), stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
    metrics = os.path.join(folder.at(out), "metrics.jsonl")
    end = time.monotonic() + LIMIT
    while not os.path.exists(metrics) or os.path.getsize(metrics) < 20000:
        expect(time.monotonic() < end and process.poll() is None, "the run did not begin")
        time.sleep(0.01)
    with open(f"/proc/{process.pid}/task/{process.pid}/children") as file:
        ranks = [int(word) for word in file.read().split()]
    os.kill(ranks[1], number)
    began = time.monotonic()
    stdout, stderr = process.communicate(timeout=LIMIT)
    expect(time.monotonic() - began < 20, "the other rank stayed")
    return Run(folder.at(out), subprocess.CompletedProcess([], process.returncode, stdout, stderr))


def a_rank_that_dies(folder):
    run = signalled(folder, "killed", signal.SIGKILL)
    expect(run.code in (PEER_LOST, 128 + signal.SIGKILL), f"code {run.code}\n{run.stderr}")  # mpirun may say its own
    expect("rank 1 (" in run.stderr and "died in step" in run.stderr, run.stderr)


def a_signal_to_stop(folder):
    run = signalled(folder, "stopped", signal.SIGTERM)
    expect(run.code == INTERRUPTED, f"code {run.code}\n{run.stderr}")
    expect(len(run.checkpoints()) == 1 and run.checkpoints()[0][5:] == f"{len(run.losses()):08d}",
           f"checkpoints {run.checkpoints()} after {len(run.losses())} steps")


def plan_and_memory(folder):
    plan = train(folder, "out", "--plan")
    expect("AdamW moments" in plan.stdout and "or less fits" in plan.stdout, plan.stdout)
    expect("a step is predicted to take" in plan.stdout or "is not predicted for" in plan.stdout, plan.stdout)
    run = train(folder, "out", "--n-layer", "96", "--n-embd", "12288", "--n-head", "96", "--global-batch-size", "512",
                code=OUT_OF_MEMORY)
    expect("MiB are free on the" in run.stderr, run.stderr)


def learns_and_samples(folder):
    run = train(folder, "out", "--max-iters", "200", "--eval-interval", "0", "--learning-rate", "0.01",
                "--global-batch-size", "48", "--sample-tokens", "100", "--precision", "tf32")
    expect(run.losses()[-1] < 0.8 * run.losses()[0], f"losses {run.losses()[0]} to {run.losses()[-1]}")
    expect("sample:" in run.stdout, run.stdout)


main({f.__name__: f for f in (follows_the_cpu, same_bits, resume, either_device_reads_the_other,
                              accumulation_is_ranks, copy_engines_change_no_bit, shards_change_no_bit, trying_schedules,
                              resume_on_two_ranks, refuses_a_shared_gpu, a_step_that_is_not_finite, a_rank_that_dies,
                              a_signal_to_stop, plan_and_memory, learns_and_samples)})
