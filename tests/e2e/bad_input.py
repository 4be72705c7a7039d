"""Everything that is wrong with flags, configuration or data is refused before the first step, with one line of the
lowest rank that found it, "trainer: " and what, where and what to do, and the code of its kind."""

import array
import os
import re
import shutil
import subprocess

from trainer_runs import LIMIT, Run, expect, main

USAGE, IO, CORRUPT, DISAGREE, UNSUPPORTED = 2, 3, 4, 9, 10


def expect_refusal(run, words, ranks=1, rank=0):
    """The one line that ranks print."""
    lines = [line for line in run.complaint().splitlines() if re.match(r"(\[rank \d+\] )?(trainer: |rank \d+ \()", line)]
    expect(len(lines) == 1, f"said {len(lines)} times\n{run.stderr}")
    begin = f"[rank {rank}] trainer: " if ranks > 1 else "trainer: "
    expect(lines[0].startswith(begin), f"not '{begin}': {lines[0]}")
    for word in words:
        expect(word in lines[0], f"'{word}' is not in\n{run.stderr}")
    expect(not os.path.exists(os.path.join(run.out_dir, "metrics.jsonl")), "the run began")


def refused(folder, flags, words, ranks=1, code=USAGE):
    expect_refusal(folder.train(ranks, "out", *flags, code=code), words, ranks)


def two_configurations(folder, name, values, code):
    """A run of two ranks with a value of an option each, by mpirun's colon."""
    command = folder.command(1, "out", name, values[0])
    other = folder.command(1, "out", name, values[1])
    done = subprocess.run(command + [":"] + other[other.index("-np"):], capture_output=True, text=True, timeout=LIMIT)
    expect(done.returncode == code, f"code {done.returncode}\n{done.stderr}")
    return Run(folder.at("out"), done)


def flags(folder):
    for given, words in {
            ("--n-layers", "2"): ["--n-layers", "--n-layer"],
            ("--n-layer", "two"): ["--n-layer", "two"],
            ("--n-layer", "0"): ["--n-layer", "at least 1"],
            ("--n-embd", "-32"): ["--n-embd", "at least 1"],
            ("--n-embd", "33"): ["33", "--n-head"],
            ("--learning-rate", "0,01"): ["--learning-rate", "0,01"],
            ("--learning-rate", "1e39"): ["--learning-rate", "at most 1e+38"],
            ("--max-iters", "9223372036854775807"): ["--max-iters", "at most 1000000000"],
            ("--batch-size", "1000000000", "--gradient-accumulation-steps", "1000000000"): ["sequences a step"],
            ("--min-lr", "1"): ["--min-lr 1 is above"],
            ("--batch-size", "3"): ["--global-batch-size", "nearest"],
            ("--batch-size", "2", "--gradient-accumulation-steps", "3"): ["leave one of the options out"],
            ("--config", "/nowhere.toml"): ["/nowhere.toml"],
    }.items():
        refused(folder, given, words)


def decimal_comma_locale(folder):
    folder.train(1, "out", "--learning-rate", "0.001", "--max-iters", "1",
                 env={"LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})


def ranks_and_batches(folder):
    refused(folder, ["--global-batch-size", "2"], ["3 ranks cannot share a global batch of 2"], ranks=3)
    refused(folder, ["--global-batch-size", "4"], ["split evenly over 3 ranks"], ranks=3)


def config_files(folder):
    for text, words in {
            "n-layr = 3\n": ["n-layr", "n-layer"],
            "seed = \"many\"\n": ["bad.toml:1: seed", "many"],
            "\n\nseed = 2.5\n": ["bad.toml:3: seed", "2.5"],
            "out-dir = \"out\n": ["bad.toml:1: ", "no closing"],
    }.items():
        with open(folder.at("bad.toml"), "w") as file:
            file.write(text)
        refused(folder, ["--config", folder.at("bad.toml")], words)


def write_tokens(folder, name, train, val):
    os.makedirs(folder.at(name), exist_ok=True)
    for split, tokens in (("train", train), ("val", val)):
        with open(folder.at(f"{name}/{split}.bin"), "wb") as file:
            file.write(tokens if isinstance(tokens, bytes) else array.array("H", tokens).tobytes())
    return folder.at(name)


def data(folder):
    good = [i % 50 for i in range(500)]
    refused(folder, ["--data-dir", folder.at("nowhere")], ["nowhere/train.bin does not exist", "tokenize"], ranks=4)
    short = write_tokens(folder, "short", good[:16], good)
    refused(folder, ["--data-dir", short], ["train.bin", "16"])
    empty = write_tokens(folder, "empty", good, [])
    refused(folder, ["--data-dir", empty], ["val.bin"], ranks=2)
    odd = write_tokens(folder, "odd", b"123" * 101, good)
    refused(folder, ["--data-dir", odd], ["train.bin"], code=CORRUPT)


def data_of_one_rank(folder):
    """The rank that finds it says so, and no other: not that it was lost either."""
    for rank in (0, 1):
        places = [folder.data, folder.at("nowhere")] if rank == 1 else [folder.at("nowhere"), folder.data]
        run = two_configurations(folder, "--data-dir", places, USAGE)
        expect_refusal(run, ["nowhere/train.bin does not exist"], ranks=2, rank=rank)


def token_outside_vocabulary(folder):
    shutil.copytree(folder.data, folder.at("outside"))
    with open(folder.at("outside/val.bin"), "r+b") as file:
        file.seek(1024 + 2 * 77)
        file.write(array.array("H", [999]).tobytes())
    refused(folder, ["--data-dir", folder.at("outside")], ["val.bin", "999", "77"], ranks=2, code=CORRUPT)


def out_dir_is_a_file(folder):
    with open(folder.at("out"), "w"):
        pass
    run = folder.train(2, "out", code=IO)
    expect(folder.at("out") in run.stderr, run.stderr)


def device_not_in_this_build(folder):
    refused(folder, ["--device", "cuda"], ["--device cpu"], ranks=2, code=UNSUPPORTED)


def options_of_other_device(folder):
    refused(folder, ["--precision", "tf32"], ["--precision tf32", "--precision fp32"], ranks=2)
    refused(folder, ["--copy-engines"], ["--copy-engines is for GPUs"], ranks=2)
    refused(folder, ["--copy-engines", "--no-overlap"], ["--no-overlap"])
    refused(folder, ["--copy-engines", "--shard-optimizer"], ["--shard-optimizer"])


def prompt_outside_vocabulary(folder):
    refused(folder, ["--prompt", "Z", "--sample-tokens", "5"], ["--prompt", "Z"])


def ranks_disagree(folder):
    for name, values in (("--eval-iters", ["5", "9"]), ("--device", ["auto", "cpu"])):
        run = two_configurations(folder, name, values, DISAGREE)
        expect_refusal(run, [name, *values], ranks=2)


def threads_of_one_rank(folder):
    """How many threads a rank computes with is its own matter."""
    two_configurations(folder, "--threads", ["0", "1"], 0)


main({f.__name__: f for f in (flags, decimal_comma_locale, ranks_and_batches, config_files, data, data_of_one_rank,
                              token_outside_vocabulary, out_dir_is_a_file, device_not_in_this_build,
                              options_of_other_device, prompt_outside_vocabulary, ranks_disagree,
                              threads_of_one_rank)})
