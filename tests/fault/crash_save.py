#!/usr/bin/env python3
"""Kills and starves a checkpoint save at every system call that touches a file.

strace stops the save's K-th call of each kind, for every K: once by SIGKILL before the call, once by each of several
errors instead of it. After each, everything that was complete before must still be, nothing under a checkpoint's final
name may be damaged, and the next run must find the newest checkpoint, clean up and save again.

Also reads one save's trace for what a power cut would lose: data must be on the disk before the name that shows it.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

# Calls that change no file and tell nothing of one: killing there leaves what killing at the next call leaves.
IRRELEVANT = {"access", "brk", "clone", "close", "exit_group", "fcntl", "futex", "getpid", "getrandom", "lseek",
              "madvise", "mmap", "mprotect", "munmap", "prlimit64", "rt_sigaction", "rt_sigprocmask", "sched_yield"}
ERRORS = ["EIO", "ENOSPC", "EROFS", "EINTR", "EDQUOT"]
EXIT_IO = 3

# name: (steps saved before, step of the save that is disturbed, what strace does to every run)
NO_EXCHANGE = ["-e", "inject=renameat2:error=EINVAL"]  # as on a file system that cannot exchange two names
SCENARIOS = {
    "first save": ([], 3, []),
    "save after two others": ([1, 2], 3, []),
    "save in the place of another": ([1, 2], 2, []),
    "save in the place of another, without exchange": ([1, 2], 2, NO_EXCHANGE),
}
KEEP = 2


def step_folder(step):
    return f"step_{step:08}"


class Harness:
    def __init__(self, program, work):
        self.program, self.work = program, work
        self.count = 0

    def prepare(self, scenario):
        template = self.work / f"template{len(list(self.work.iterdir()))}"
        template.mkdir()
        out_dir = template / "run"  # absent at first: creating it is a part of the first save
        for step in SCENARIOS[scenario][0]:
            subprocess.run([self.program, "save", out_dir, str(step), str(KEEP)], check=True)
        return template

    def save(self, template, name, step, strace_options):
        """One save under strace in a copy of `template`: (folder, exit status, messages)."""
        folder = self.work / name
        shutil.copytree(template, folder)
        done = subprocess.run(["strace", "-f", "-qq", *strace_options, self.program, "save", folder / "run", str(step),
                               str(KEEP)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        return folder, done.returncode, done.stderr

    def report(self, folders):
        done = subprocess.run([self.program, "report", *folders], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              text=True)
        if done.returncode != 0:
            sys.exit(f"the report of {len(folders)} folders ended with status {done.returncode}:\n{done.stderr[-4000:]}")
        lines = [dict(word.split("=", 1) for word in line.split()) for line in done.stdout.splitlines()]
        for line in lines:
            for key in ("whole", "damaged", "leftovers"):
                line[key] = [] if line[key] == "-" else line[key].split(",")
        return lines


def calls_of_save(trace):
    """(name, how many-th call of that name in the process, line) for each call of the save."""
    counts, calls, inside = {}, [], False
    for line in trace.read_text().splitlines():
        match = re.match(r"\d+ +(\w+)\(", line)
        if not match:
            continue
        name = match.group(1)
        counts[name] = counts.get(name, 0) + 1
        if '"/save-begins"' in line:
            inside = True
        elif '"/save-ends"' in line:
            inside = False
        elif inside:
            calls.append((name, counts[name], line))
    return calls


def problem_of(before, step, status, report):
    """What is wrong with a folder after a disturbed save, or nothing."""
    older, new = [step_folder(s) for s in before], step_folder(step)
    if report["damaged"]:
        return f"damaged under a final name: {report['damaged']}"
    whole = set(report["whole"])
    saved = new in whole and (new not in older or status == 0)
    if status == 0 and not saved:
        return "the save said that it succeeded, but there is no such checkpoint"
    if new in older:
        must = set(older)
    else:
        must = {new, *older[len(older) - (KEEP - 1):]} if new in whole else set(older)
    if not must <= whole:
        return f"lost {sorted(must - whole)}"
    if report["latest"] != "-" and report["latest"] not in whole:
        return f"latest names {report['latest']}, which is not there"
    newest = {new} if new in whole and new not in older else {new, older[-1]} if new in older else {*older[-1:]} or {"-"}
    if report["newest"] not in newest:
        return f"newest is {report['newest']}, not {newest}"
    if report["leftovers"]:
        return f"not cleaned up: {report['leftovers']}"
    if report["next"] != "works":
        return "the next save does not work"
    return None


def disturb(harness, scenario, pool):
    before, step, always = SCENARIOS[scenario]
    template = harness.prepare(scenario)
    trace = harness.work / "trace"
    folder, status, messages = harness.save(template, "undisturbed", step, ["-o", trace, *always])
    if status != 0:
        sys.exit(f"{scenario}: undisturbed, the save ended with status {status}: {messages}")
    calls = [call for call in calls_of_save(trace) if call[0] not in IRRELEVANT]
    shutil.rmtree(folder)

    # A save opens no pipe. UBSan does, and writes to it to see whether memory can be read: at such a write a kill is as
    # good as any, but an error would be its own.
    sanitized = any(name == "pipe2" for name, _, _ in calls)
    faults = []
    for name, place, line in calls:
        if name == "pipe2" or always and name == "renameat2":
            continue
        faults.append((f"inject={name}:signal=KILL:when={place}", name, line))
        if sanitized and name == "write":
            continue
        faults += [(f"inject={name}:error={error}:when={place}", name, line) for error in ERRORS]
        faults.append((f"inject={name}:error=EIO:when={place}+", name, line))
    failures, refused, survived = [], 0, 0
    for start in range(0, len(faults), 64):
        batch = faults[start:start + 64]
        runs = list(pool.map(
            lambda numbered: harness.save(template, f"run{numbered[0]}", step,
                                          ["-e", f"trace={numbered[1][1]},renameat2", *always, "-e", numbered[1][0],
                                           "-o", "/dev/null"]),
            enumerate(batch)))
        # A first save that ends before its folder exists leaves nothing to report on.
        present = [run for run in runs if (run[0] / "run").exists()]
        reports = dict(zip((run[0] for run in present), harness.report([run[0] / "run" for run in present])))
        for (inject, name, line), (folder, status, messages) in zip(batch, runs):
            killed = "KILL" in inject
            if killed and status != -signal.SIGKILL:
                problem = f"strace did not kill the save (status {status}): {messages}"
            elif not killed and status not in (0, EXIT_IO):
                problem = f"status {status}: {messages}"
            elif status == EXIT_IO and not messages.strip() and not re.search("write:.*[+]", inject):
                problem = "no message"  # where writing the message does not fail too
            elif status == 0 and (name == "fsync" or name == "write" and "EINTR" not in inject):
                problem = "the error was ignored"  # the data may be in memory only, where the report finds them
            elif folder in reports:
                problem = problem_of(before, step, status, reports[folder])
            else:
                problem = "lost everything" if before or status == 0 else None
            if problem:
                failures.append(f"{scenario}: {inject}\n    {line}\n    {problem}")
            refused += status == EXIT_IO
            survived += status == 0
            shutil.rmtree(folder)
    kills = sum("KILL" in inject for inject, _, _ in faults)
    print(f"{scenario}: {kills} kills; {len(faults) - kills} errors, of which {refused} ended the save with status "
          f"{EXIT_IO} and {survived} did not hinder it; {len(failures)} failures")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path, help="save_checkpoint of the build")
    program = parser.parse_args().program
    if not shutil.which("strace"):
        sys.exit("strace is missing; launch/setup installs it")
    probe = subprocess.run(["strace", "-qq", "-o", "/dev/null", "true"], stderr=subprocess.PIPE, text=True)
    if probe.returncode != 0:
        sys.exit(f"strace cannot trace here, so that nothing was tested: {probe.stderr}")
    failures = []
    # In memory where possible: a thousand saves wait for no disk, and the calls are the same.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=memory) as work, concurrent.futures.ThreadPoolExecutor(2) as pool:
        for scenario in SCENARIOS:
            failures += disturb(Harness(program, pathlib.Path(work)), scenario, pool)
    if failures:
        sys.exit("\n".join(failures))


if __name__ == "__main__":
    main()
