"""What all_reduce_bench says and how it exits when its sums are right and when a link lies.

Usage: all_reduce_bench_test.py LIE MPIRUN...   (LIE: the library that turns bits over)"""

import json
import os
import subprocess
import sys
import tempfile

LIE, MPIRUN = sys.argv[1], sys.argv[2:]
BENCH = [os.path.join(os.environ["LOCKSTEP_BIN"], "all_reduce_bench"), "-b", "128K", "-e", "128K", "-n", "2",
         "--transport", "socket"]


def expect(condition, message):
    if not condition:
        sys.exit(message)


def run(environment, *flags):
    """Rank 1 with the environment. Status, the table's one row as words, all output, the JSON file's one result."""
    with tempfile.TemporaryDirectory() as folder:
        bench = BENCH + ["--json", folder + "/json", *flags]
        done = subprocess.run(MPIRUN + ["-np", "1", *bench, ":", "-np", "1", "env", *environment, *bench],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        rows = [line.split() for line in done.stdout.splitlines() if line and not line.startswith("#")]
        expect(rows and rows[0][:5] == ["131072", "32768", "float", "sum", "-1"], f"no row in:\n{done.stdout}")
        with open(folder + "/json") as file:
            return done.returncode, rows[0], done.stdout, json.load(file)["results"][0]


def refused(flags, words, status=2, launch=()):
    done = subprocess.run([*launch, *BENCH[:1], *flags], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    expect(done.returncode == status and words in done.stdout and done.stdout.count("\n") == 1, f"{flags}: {done}")


def main():
    refused(["-e", "17G", "--baseline", "mpi"], "counts up to 2147483647 elements")
    refused(["-e", "999999999999999G"], "sizes are at most")
    refused(["-b", "1X"], "a size is digits")
    refused(["-f", "9223372036854775807"], "at most 65536")
    refused(["-n", "9223372036854775807"], "at most 1000000")
    # Said once, however many ranks find it, and before anything is measured.
    refused(["--json", "/nowhere/file"], "cannot create /nowhere/file.tmp", status=3,
            launch=[*MPIRUN, "--quiet", "-np", "2"])

    status, row, output, result = run([])
    expect((status, row[8], row[12], result["wrong"]) == (0, "0", "0", 0), f"{status}, {result}:\n{output}")
    expect("# Out of bounds values : 0 OK\n" in output, output)

    # Two segments. Rank 1 gets the one that it adds to its own with an error, which goes on to rank 0, and the sum of
    # the other: three wrong elements.
    asan = os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
    preload = [f"LD_PRELOAD={LIE}", f"ASAN_OPTIONS={asan}"]
    status, row, output, result = run(preload)
    expect((status, row[8], row[12], result["wrong"]) == (1, "3", "3", 6), f"{status}, {result}:\n{output}")
    expect("# Out of bounds values : 6 FAILED\n" in output, output)

    # Who does not look finds nothing.
    status, row, output, _ = run(preload, "-c", "0")
    expect((status, row[8], row[12]) == (0, "N/A", "N/A"), f"{status}:\n{output}")


main()
