"""Everything that is wrong with flags, configuration or data is refused before the first step, with code 2 and one line
that says what, where and what to do."""

import array
import os
import shutil
import subprocess

from trainer_runs import expect, main

USAGE, IO, CORRUPT, DISAGREE, UNSUPPORTED = 2, 3, 4, 9, 10


def refused(folder, flags, words, ranks=1, code=USAGE, env=None):
    run = folder.train(ranks, "out", *flags, code=code, env=env)
    for word in words:
        expect(word in run.stderr, f"{flags}: '{word}' is not in\n{run.stderr}")
    said = sum("trainer: " in line or "rank 0 (" in line for line in run.complaint().splitlines())
    expect(said == 1, f"{flags}: said {said} times\n{run.stderr}")
    expect(not os.path.exists(folder.at("out/metrics.jsonl")), f"{flags}: the run began")


def flags(folder):
    for given, words in {
            ("--n-layers", "2"): ["--n-layers", "--n-layer"],
            ("--n-layer", "two"): ["--n-layer", "two"],
            ("--n-layer", "0"): ["--n-layer", "at least 1"],
            ("--n-embd", "-32"): ["--n-embd", "at least 1"],
            ("--n-embd", "33"): ["33", "--n-head"],
            ("--learning-rate", "0,01"): ["--learning-rate", "0,01"],
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
    refused(folder, ["--data-dir", folder.at("nowhere")], ["nowhere/train.bin does not exist", "tokenize"], ranks=2)
    short = write_tokens(folder, "short", good[:16], good)
    refused(folder, ["--data-dir", short], ["train.bin", "16"])
    empty = write_tokens(folder, "empty", good, [])
    refused(folder, ["--data-dir", empty], ["val.bin"])
    odd = write_tokens(folder, "odd", b"123" * 101, good)
    run = folder.train(1, "out", "--data-dir", odd, code=CORRUPT)
    expect("train.bin" in run.stderr, run.stderr)


def token_outside_vocabulary(folder):
    shutil.copytree(folder.data, folder.at("outside"))
    with open(folder.at("outside/val.bin"), "r+b") as file:
        file.seek(1024 + 2 * 77)
        file.write(array.array("H", [999]).tobytes())
    run = folder.train(2, "out", "--data-dir", folder.at("outside"), code=CORRUPT)
    for word in ("val.bin", "999", "77"):
        expect(word in run.stderr, f"'{word}' is not in\n{run.stderr}")


def out_dir_is_a_file(folder):
    with open(folder.at("out"), "w"):
        pass
    run = folder.train(2, "out", code=IO)
    expect(folder.at("out") in run.stderr, run.stderr)


def device_not_in_this_build(folder):
    run = folder.train(1, "out", "--device", "cuda", code=UNSUPPORTED)
    expect("--device cpu" in run.stderr, run.stderr)


def prompt_outside_vocabulary(folder):
    refused(folder, ["--prompt", "Z", "--sample-tokens", "5"], ["--prompt", "Z"])


def ranks_disagree(folder):
    """Two configurations in one run, by mpirun's colon."""
    command = folder.command(1, "out")
    other = command[command.index("-np"):]
    other[other.index("--eval-iters") + 1] = "9"
    done = subprocess.run(command + [":"] + other, capture_output=True, text=True)
    expect(done.returncode == DISAGREE, f"code {done.returncode}\n{done.stderr}")
    for word in ("--eval-iters", "5", "9"):
        expect(word in done.stderr, f"'{word}' is not in\n{done.stderr}")


main({f.__name__: f for f in (flags, decimal_comma_locale, ranks_and_batches, config_files, data,
                              token_outside_vocabulary, out_dir_is_a_file, device_not_in_this_build,
                              prompt_outside_vocabulary, ranks_disagree)})
