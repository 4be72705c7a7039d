#!/usr/bin/env python3
"""Checks that every plot and every marked table under docs/ is what its own command makes of the tree's results."""

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


def check_tables(page):
    """What is wrong with the tables of a page, each below a comment with its command, or None."""
    text = page.read_text()
    for command in re.finditer(r"<!-- (bench/plot_\w+\.py table .+) -->\n\n", text):
        script, *arguments = command.group(1).split()
        printed = subprocess.run([sys.executable, script, *arguments], cwd=ROOT, check=True, capture_output=True,
                                 text=True).stdout
        if not text.startswith(printed, command.end()):
            return f"has a table that is not what the results say now; run {command.group(1)}"
    return None


def main():
    plots = sorted((ROOT / "docs").rglob("*.svg"))
    problems = {plot: check(plot) for plot in plots}
    problems.update({page: check_tables(page) for page in sorted((ROOT / "docs").rglob("*.md"))})
    for path, problem in problems.items():
        if problem:
            print(f"{path.relative_to(ROOT)}: {problem}")
    return 0 if plots and not any(problems.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
