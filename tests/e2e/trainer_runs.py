"""Runs of the trainer on a tiny model and text, for tests of whole programs."""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

BIN = os.environ.get("LOCKSTEP_BIN", "build/release/bin")
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "--mca", "plm", "isolated",
          "--mca", "btl", "self,vader,tcp"]
# Several buckets, several evaluations, ragged sizes: small, but nothing is left out.
TINY = ["--n-layer", "2", "--n-head", "2", "--n-embd", "32", "--block-size", "16", "--global-batch-size", "4",
        "--max-iters", "8", "--warmup-iters", "2", "--eval-interval", "3", "--eval-iters", "5", "--log-interval", "1",
        "--checkpoint-interval", "0", "--sample-tokens", "0", "--threads", "1", "--bucket-mb", "0.02"]
LIMIT = 120 * float(os.environ.get("LOCKSTEP_TIME_SCALE", 1))


class Failure(Exception):
    """What a test expected did not happen."""


def expect(condition, message):
    if not condition:
        raise Failure(message)


def program(name):
    return os.path.join(BIN, name)


class Run:
    """A finished run and what it left."""

    def __init__(self, out_dir, done):
        self.out_dir = out_dir
        self.code, self.stdout, self.stderr = done.returncode, done.stdout, done.stderr

    def complaint(self):
        """Standard error without what mpirun says about an exit code."""
        return re.sub(r"^-{20,}\n.*?^-{20,}\n", "", self.stderr, flags=re.S | re.M)

    def metrics(self):
        with open(os.path.join(self.out_dir, "metrics.jsonl")) as file:
            return [json.loads(line) for line in file]

    def losses(self):
        return [step["loss"] for step in self.metrics()]

    def val_losses(self):
        return [step["val_loss"] for step in self.metrics() if "val_loss" in step]

    def checkpoints(self):
        return sorted(name for name in os.listdir(self.out_dir) if name.startswith("step_"))

    def checkpoint(self, step=8):
        return os.path.join(self.out_dir, f"step_{step:08d}")


class Folder:
    """A temporary folder with a tokenized text; `with Folder() as folder:`."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="lockstep-e2e-")
        self.data = self.tokenize("data", words(20000))
        return self

    def __exit__(self, kind, error, trace):
        shutil.rmtree(self.path, ignore_errors=True)

    def at(self, name):
        return os.path.join(self.path, name)

    def tokenize(self, name, text, kind="char"):
        with open(self.at(name + ".txt"), "w") as file:
            file.write(text)
        subprocess.run([program("tokenize"), "--text", self.at(name + ".txt"), "--kind", kind, "--out", self.at(name)],
                       check=True, stdout=subprocess.DEVNULL)
        return self.at(name)

    def command(self, ranks, out, *flags, tiny=TINY):
        """Later flags win over the tiny model's."""
        given = {flag.replace("--no-", "--") for flag in flags}
        pairs = zip(tiny[::2], tiny[1::2])
        kept = [word for flag, value in pairs if flag not in given for word in (flag, value)]
        places = [("--data-dir", self.data), ("--out-dir", self.at(out))]
        where = [word for flag, place in places if flag not in given for word in (flag, place)]
        return MPIRUN + ["-np", str(ranks), program("trainer")] + where + kept + list(flags)

    def train(self, ranks, out, *flags, code=0, env=None, tiny=TINY):
        done = subprocess.run(self.command(ranks, out, *flags, tiny=tiny), capture_output=True, text=True,
                              timeout=LIMIT, env={**os.environ, **(env or {})})
        run = Run(self.at(out), done)
        expect(run.code == code, f"{ranks} ranks {flags}: code {run.code}, not {code}\n{run.stdout}{run.stderr}")
        return run


def words(count):
    """A text with structure to learn, the same every time."""
    source = random.Random(7)
    lexicon = ["".join(source.choice("abcdefghij") for _ in range(source.randint(2, 6))) for _ in range(40)]
    return " ".join(source.choice(lexicon) for _ in range(count)) + "\n"


def state_hash(checkpoint):
    """One digest over every bit of a checkpoint's parameters and moments."""
    done = subprocess.run([program("checkpoint"), "inspect", checkpoint], capture_output=True, text=True, check=True)
    return re.search(r"^state hash (\S+)$", done.stdout, re.M).group(1)


def expect_same_run(one, other, step=8):
    expect(one.losses(), "a run without a step")
    expect(one.losses() == other.losses(), f"losses differ: {one.losses()} {other.losses()}")
    expect(one.val_losses() == other.val_losses(),
           f"validation losses differ: {one.val_losses()} {other.val_losses()}")
    expect(state_hash(one.checkpoint(step)) == state_hash(other.checkpoint(step)), "the states differ")


def main(cases):
    """Runs the cases named on the command line, or all of them; exits 1 when one fails."""
    failed = False
    for name in sys.argv[1:] or cases:
        try:
            with Folder() as folder:
                cases[name](folder)
            print(f"ok   {name}", flush=True)
        except (Failure, subprocess.SubprocessError) as error:
            failed = True
            print(f"FAIL {name}: {error}", flush=True)
    sys.exit(failed)
