"""Runs one rank so that mpirun does not see how it ends: mpirun would kill the other ranks, and the
test is about what they do by themselves. Writes pid.R, stdout.R, stderr.R and exit.R ("code time",
on the steady clock) into a folder, and leaves when the file `release` appears.

Usage: shield.py FOLDER PROGRAM ARGUMENT..."""

import os
import subprocess
import sys
import time


def write(path, text):
    with open(path + ".tmp", "w") as file:
        file.write(text)
    os.rename(path + ".tmp", path)


def main():
    folder, command = sys.argv[1], sys.argv[2:]
    rank = os.environ["OMPI_COMM_WORLD_RANK"]
    with open(f"{folder}/stdout.{rank}", "w") as out, open(f"{folder}/stderr.{rank}", "w") as err:
        child = subprocess.Popen(command, stdout=out, stderr=err)
    write(f"{folder}/pid.{rank}", str(child.pid))
    code = child.wait()
    write(f"{folder}/exit.{rank}", f"{code} {time.monotonic()}")
    while os.path.isdir(folder) and not os.path.exists(f"{folder}/release"):
        time.sleep(0.05)


main()
