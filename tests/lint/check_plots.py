#!/usr/bin/env python3
"""Checks that every plot under docs/ is what its own command draws from the results in the tree."""

import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def check(plot):
    """What is wrong with a plot, or None."""
    text = plot.read_text()
    command = re.search(r"<!-- (bench/plot_\w+\.py .+) -->", text)
    if not command:
        return "does not say which command drew it"
    script, *arguments, out = command.group(1).split()
    if ROOT / out != plot:
        return f"was drawn as {out}"
    with tempfile.TemporaryDirectory() as folder:
        copy = pathlib.Path(folder) / "plot.svg"
        subprocess.run([sys.executable, script, *arguments, copy], cwd=ROOT, check=True)
        drawn = copy.read_text().replace(str(copy), out)
    return None if drawn == text else f"is not what the results say now; run {command.group(1)}"


def main():
    plots = sorted((ROOT / "docs").rglob("*.svg"))
    problems = {plot: check(plot) for plot in plots}
    for plot, problem in problems.items():
        if problem:
            print(f"{plot.relative_to(ROOT)}: {problem}")
    return 0 if plots and not any(problems.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
