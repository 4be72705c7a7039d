#!/usr/bin/env python3
"""Saves checkpoints to a disk that becomes full or read-only: the save says so with status 3 and leaves the older ones.

The disk is a small tmpfs in a mount namespace of its own. Where mounting is not permitted, a limit on the size of files
stands for the full disk, and the output says so.
"""

import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

EXIT_IO = 3
NO_FREE_SPACE = ["-e", "inject=statfs:error=ENOSYS"]  # the save cannot ask for the free space
NO_RESERVING = ["-e", "inject=fallocate:error=EOPNOTSUPP"]  # and the file system cannot reserve it


class Disk:
    def __init__(self, save_program, tool, folder):
        self.save_program, self.tool, self.folder = save_program, tool, folder
        self.saved = []

    def save(self, step, strace_options=(), preexec=None):
        command = [self.save_program, "save", self.folder / "run", str(step), "0"]
        if strace_options:
            command = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", "trace=statfs,fallocate", *strace_options, *command]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, preexec_fn=preexec)
        if done.returncode == 0:
            self.saved.append(f"step_{step:08}")
        return done.returncode, done.stderr

    def expect_refusal(self, what, result, words):
        status, message = result
        missing = [word for word in words if word not in message]
        if status != EXIT_IO or missing:
            sys.exit(f"{what}: status {status}, without {missing}: {message}")
        done = subprocess.run([self.tool, "verify", self.folder / "run"], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"{what}: an older checkpoint is damaged: {done.stderr}")
        left = sorted(set(os.listdir(self.folder / "run")) - {"latest"})
        if left != sorted(self.saved):
            sys.exit(f"{what}: the folder holds {left}, saved were {self.saved}")
        print(f"{what}: {message.strip()}")

    def fill(self, what, strace_options, words):
        for _ in range(1000):
            result = self.save(len(self.saved) + 1, strace_options)
            if result[0] != 0:
                return self.expect_refusal(what, result, words)
        sys.exit(f"{what}: the disk never became full")


def on_small_disk(disk):
    told = ["bytes needed", "free", "older checkpoints are intact"]
    disk.fill("full, seen before the save", [], told + ["is full"])
    disk.fill("full, seen when reserving", NO_FREE_SPACE, told + ["cannot reserve room", "No space left on device"])
    disk.fill("full, seen when writing", NO_FREE_SPACE + NO_RESERVING, told + ["cannot write", "No space left on device"])
    subprocess.run(["mount", "-o", "remount,ro", disk.folder], check=True)
    disk.expect_refusal("read-only", disk.save(999), ["Read-only file system"])


def with_small_files(disk):
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (100000, resource.RLIM_INFINITY))

    disk.save(1)
    disk.expect_refusal("files limited", disk.save(2, preexec=limit), ["cannot write", "File too large"])


def main():
    save_program, tool = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
    if not shutil.which("strace"):
        sys.exit("strace is missing; launch/setup installs it")
    if len(sys.argv) == 4:
        return on_small_disk(Disk(save_program, tool, pathlib.Path(sys.argv[3])))
    with tempfile.TemporaryDirectory() as work:
        disk = pathlib.Path(work)
        mounted = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o size=3m tmpfs "$1" && shift && exec "$@"', "sh", disk]
        if subprocess.run([*mounted, "true"], stderr=subprocess.DEVNULL).returncode == 0:
            return subprocess.run([*mounted, sys.executable, __file__, save_program, tool, disk]).returncode
        print("mounting is not permitted here: a limit on the size of files stands for the full disk, and a read-only "
              "disk is left to checkpoint_crash's EROFS")
        return with_small_files(Disk(save_program, tool, disk))


if __name__ == "__main__":
    sys.exit(main())
