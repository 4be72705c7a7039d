#!/usr/bin/env python3
"""Runs `checkpoint` as a user does: what each command prints and the status it ends with."""

import pathlib
import subprocess
import sys
import tempfile

SAVE, TOOL = (pathlib.Path(word).resolve() for word in sys.argv[1:3])


def expect(status, words, *arguments):
    done = subprocess.run([TOOL, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    missing = [word for word in words if word not in done.stdout]
    if done.returncode != status or missing:
        sys.exit(f"checkpoint {arguments}: status {done.returncode}, not {status}, or without {missing}:\n{done.stdout}")


with tempfile.TemporaryDirectory() as work:
    run = pathlib.Path(work)
    for step in (1, 2):
        subprocess.run([SAVE, "save", run, str(step), "0"], check=True)
    one, two = run / "step_00000001", run / "step_00000002"
    expect(0, ["step_00000002", "70000", "2 tensors, 70010 elements", "state hash"], "inspect", run)
    expect(0, [f"{one}: whole", f"{two}: whole"], "verify", run)
    expect(0, [], "diff", one, one)
    expect(1, ["step: 1 | 2", "large: 70000 of 70000 elements differ, at most by 1"], "diff", one, two)
    expect(2, ["diff compares two"], "diff", one)
    expect(2, ["one folder is enough"], "verify", one, two)
    expect(3, ["No such file"], "verify", run / "absent")
    with open(two / "tensors.rec", "r+b") as file:
        file.seek(5000)
        file.write(b"\xff")
    place = [f"{two / 'tensors.rec'}: offset", "(tensor large)"]
    expect(4, place, "verify", two)
    expect(4, [*place, f"{one}: whole", f"{two}: damaged"], "verify", run)
    expect(0, ["passing over a damaged checkpoint", f"\n{one}\n"], "inspect", run)
