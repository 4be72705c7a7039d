"""Benches refuse what they cannot take or would not heed, in one line, before anything is measured."""

import subprocess
import sys

from trainer_runs import LIMIT, MPIRUN, Failure, expect, program

USAGE, DISAGREE = 2, 9


def refused(command, words, code=USAGE):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=LIMIT)
    expect(done.returncode == code, f"{command}: code {done.returncode}, not {code}\n{done.stdout}")
    lines = done.stdout.splitlines()
    expect(len(lines) == 1 and all(word in lines[0] for word in words),
           f"{command}: not one line of {words}:\n{done.stdout}")


def step_bench_of_ranks_that_disagree():
    for flag, values in (("--device", ("auto", "cpu")), ("--global-batch-size", ("12", "24")), ("--steps", ("2", "3")),
                         ("--vocab-size", ("65", "66"))):
        one, other = (["-np", "1", program("step_bench"), flag, value] for value in values)
        refused([*MPIRUN, "--quiet", *one, ":", *other], [f"step_bench: the ranks disagree on {flag}", *values],
                DISAGREE)


def step_bench():
    ranks = [*MPIRUN, "--quiet", "-np", "2", program("step_bench")]
    refused([*ranks, "--verify-reduce"], ["--verify-reduce"])
    refused([*ranks, "--check-interval", "1"], ["--check-interval"])
    refused([*ranks, "--peer-timeout", "0.1"], ["--peer-timeout 0.1"])
    refused([*ranks, "--global-batch-size", "3"], ["step_bench: ", "split evenly over 2 ranks"])
    refused([*ranks, "--n-head", "3"], ["step_bench: ", "--n-head 3"])
    refused([*ranks, "--profile", "--device", "cpu"], ["--profile", "--device cuda"])


def gemm_bench():
    refused([program("gemm_bench"), "--mnk", "64,64,64", "--rung", "9"], ["--rung is for --device cuda"])
    refused([program("gemm_bench"), "--mnk", "64,64,64", "--device", "cuda", "--threads", "2"], ["--threads"])


def op_bench():
    refused([program("op_bench"), "--op", "nosuchop"], ["--op nosuchop", "embedding forward", "attention backward"])
    refused([program("op_bench"), "--device", "cuda", "--threads", "8"], ["--threads", "--device cpu"])
    refused([program("op_bench"), "--device", "cuda", "--isa", "avx2"], ["--isa", "--device cpu"])


def attention_bench():
    refused([program("attention_bench"), "--shape", "4611686018427387904,4,4,4"], ["from 1 to 1048576"])
    refused([program("attention_bench"), "--shape", "1048576,1048576,1048576,2"], ["at most 68719476736 elements"])
    refused([program("attention_bench"), "--seconds", "1e300"], ["--seconds", "at most 1000000"])


def main():
    failed = False
    for case in (step_bench_of_ranks_that_disagree, step_bench, gemm_bench, op_bench, attention_bench):
        try:
            case()
        except Failure as failure:
            failed = True
            print(f"{case.__name__}: {failure}")
    sys.exit(failed)


main()
