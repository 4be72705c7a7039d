"""peer_probe where no GPU is visible, and with wrong flags: one line, and the code of its kind."""

import os
import subprocess

from trainer_runs import LIMIT, MPIRUN, Run, expect, main, program

USAGE, UNSUPPORTED = 2, 10


def refused(flags, words, code):
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(MPIRUN + ["-np", "2", program("peer_probe")] + flags, env=environment, timeout=LIMIT,
                          capture_output=True, text=True)
    lines = Run("", done).complaint().splitlines()
    said = [line for line in lines if "peer_probe: " in line]
    expect(done.returncode == code and len(said) == 1, f"code {done.returncode}\n{done.stderr}")
    expect(said[0].startswith("[rank 0] peer_probe: ") and words in said[0], said[0])
    expect(done.stdout == "", done.stdout)


def no_gpu(_):
    refused([], "--device cpu", UNSUPPORTED)


def wrong_flag(_):
    refused(["--jsn", "out"], "did you mean --json?", USAGE)


main({f.__name__: f for f in (no_gpu, wrong_flag)})
