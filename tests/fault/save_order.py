#!/usr/bin/env python3
"""Reads the system calls of a save for what a power cut could lose.

The kernel may write what was not fsynced in any order or not at all. So at each rename that makes something visible,
and at each removal, everything that it relies on must have been fsynced before.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

KEEP = 1
CALLS = "openat,write,fsync,fdatasync,rename,renameat2,mkdir,unlink,unlinkat,rmdir,access"


def trace_of(program, out_dir, step, log):
    subprocess.run(["strace", "-f", "-qq", "-y", "-s", "0", "-o", log, "-e", f"trace={CALLS}", program, "save", out_dir,
                    str(step), str(KEEP)], check=True)
    lines = log.read_text().splitlines()
    begin = next(i for i, line in enumerate(lines) if '"/save-begins"' in line)
    return lines[begin:]


class Disk:
    """What is not on the disk yet: files with data, folders with entries."""

    def __init__(self):
        self.files, self.folders = set(), {}
        self.seen = []

    def enter(self, path):
        self.folders.setdefault(os.path.dirname(path), set()).add(os.path.basename(path))

    def need_clean(self, path, why):
        dirty = [f for f in self.files if f == path or f.startswith(path + "/")]
        dirty += [f"{d}/{{{', '.join(sorted(e))}}}" for d, e in self.folders.items() if d == path or
                  d.startswith(path + "/")]
        if dirty:
            sys.exit(f"{why}, while these are not on the disk: {dirty}")

    def need_entries(self, folder, why):
        if self.folders.get(folder):
            sys.exit(f"{why}, while entries of {folder} are not on the disk: {sorted(self.folders[folder])}")

    def call(self, name, arguments, result):
        paths = re.findall(r'"([^"]*)"', arguments)
        fd_path = re.match(r"\d+<([^>]*)>", arguments)
        if result.startswith("-1"):
            return
        if name == "openat" and "O_CREAT" in arguments:
            self.enter(paths[0])
            self.files.add(paths[0])
        elif name == "write" and fd_path and fd_path[1].startswith("/") and not fd_path[1].startswith("/dev"):
            self.files.add(fd_path[1])
        elif name == "fsync":
            self.files.discard(fd_path[1])
            self.folders.pop(fd_path[1], None)
        elif name == "mkdir":
            self.enter(paths[0])
        elif name in ("rename", "renameat2"):
            self.rename(*paths)
        elif name in ("unlink", "unlinkat", "rmdir"):
            path = paths[0]
            self.files.discard(path)
            self.folders.pop(path, None)

    def rename(self, old, new):
        folder, name = os.path.split(new)
        if name.startswith("step_"):
            self.need_clean(old, f"the checkpoint gets its name {name}")
            self.seen.append("publish")
        elif name == "latest":
            self.need_clean(old, "latest is replaced")
            self.need_entries_but(folder, {"latest.tmp"}, "latest is replaced")
            self.seen.append("latest")
        elif name.startswith(".removing_"):
            self.need_entries(folder, f"{os.path.basename(old)} is removed")
            self.seen.append("remove")
        else:
            sys.exit(f"an unexpected rename: {old} to {new}")
        self.files.discard(old)
        self.folders.get(folder, set()).discard(os.path.basename(old))
        self.enter(new)

    def need_entries_but(self, folder, harmless, why):
        entries = {e for e in self.folders.get(folder, set()) if e not in harmless}
        if entries:
            sys.exit(f"{why}, while entries of {folder} are not on the disk: {sorted(entries)}")


def check(program, out_dir, step, expected, log):
    disk = Disk()
    for line in trace_of(program, out_dir, step, log):
        match = re.match(r"\d+ +(\w+)\((.*)\) += (.*)$", line)
        if match:
            disk.call(*match.groups())
    # An entry that only a removal or a temporary name made need not be on the disk.
    left = {f"{d}/{e}" for d, entries in disk.folders.items() for e in entries
            if not e.startswith(".") and e != "latest.tmp"}
    if disk.files or left:
        sys.exit(f"step {step}: the save has returned, but these are not on the disk: {disk.files | left}")
    if disk.seen != expected:
        sys.exit(f"step {step}: {disk.seen} where {expected} was expected")
    print(f"step {step}: {', '.join(disk.seen)} in order, each after what it relies on")


def main():
    program = pathlib.Path(sys.argv[1])
    if not shutil.which("strace"):
        sys.exit("strace is missing; launch/setup installs it")
    with tempfile.TemporaryDirectory() as work:
        folder = pathlib.Path(os.path.realpath(work))
        out_dir = folder / "deeper" / "run"
        check(program, out_dir, 1, ["publish", "latest"], folder / "trace")
        check(program, out_dir, 2, ["publish", "latest", "remove"], folder / "trace")
        check(program, out_dir, 2, ["publish", "latest"], folder / "trace")


if __name__ == "__main__":
    main()
