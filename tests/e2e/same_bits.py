"""What must not change a run's bits does not: how the global batch is divided, overlap, bucket sizes, transports,
threads. Three and four ranks add in another order than one: they stay within 1e-6."""

import math

from trainer_runs import expect, expect_same_run, main, words


def accumulation_is_ranks(folder):
    one = folder.train(1, "one", "--batch-size", "2", "--gradient-accumulation-steps", "2")
    two = folder.train(2, "two", "--batch-size", "2")
    expect(len(one.losses()) == 8 and len(one.val_losses()) == 3, f"metrics {one.metrics()}")
    expect(one.losses()[-1] < one.losses()[0], f"nothing is learned: {one.losses()}")
    expect_same_run(one, two)


def overlap_buckets_transports_threads(folder):
    reference = folder.train(2, "reference")
    for name, flags in {
            "after-backward": ["--no-overlap"],
            "one-bucket": ["--bucket-mb", "100"],
            "socket": ["--transport", "socket"],
            "shm": ["--transport", "shm"],
            "threads": ["--threads", "3"],
            "verified": ["--verify-reduce"],
    }.items():
        expect_same_run(reference, folder.train(2, name, *flags))


def trying_schedules(folder):
    flags = ["--max-iters", "90", "--eval-interval", "0"]
    tried = folder.train(2, "tried", "--bucket-mb", "0", *flags)
    expect_same_run(folder.train(2, "after-backward", "--no-overlap", *flags), tried, step=90)
    expect(tried.stdout.count("\nsums: ") == 1, f"no outcome of the trial in {tried.stdout}")


def sharded_optimizer(folder):
    """Arenas of several segments for each rank, whose ends none of the tensors knows, and one of a single segment."""
    large = ["--n-embd", "64", "--global-batch-size", "12"]
    small = ["--n-layer", "1", "--n-head", "1", "--n-embd", "8", "--global-batch-size", "12"]
    for ranks, model, variants in (
            (1, large, {"alone": []}),
            (2, large, {"beside": [], "behind": ["--no-overlap"], "measured": ["--bucket-mb", "0"],
                        "socket": ["--transport", "socket"], "verified": ["--verify-reduce"],
                        "checked": ["--check-interval", "1"]}),
            (3, large, {"three": ["--bucket-mb", "0.3"]}),
            (3, small, {"small": ["--checkpoint-interval", "2"]}),
    ):
        whole = folder.train(ranks, f"whole-{min(variants)}", *model)
        for name, flags in variants.items():
            expect_same_run(whole, folder.train(ranks, name, "--shard-optimizer", *model, *flags))


def three_and_four_ranks(folder):
    flags = ["--global-batch-size", "12"]
    one = folder.train(1, "one", *flags)
    for ranks in (3, 4):
        run = folder.train(ranks, f"ranks{ranks}", *flags)
        first, other = one.metrics()[0], run.metrics()[0]
        for key in ("loss", "grad_norm"):
            expect(abs(first[key] / other[key] - 1) < 1e-6, f"{ranks} ranks: first {key} {other[key]}, not {first[key]}")
        for ours, theirs in zip(one.losses(), run.losses()):
            expect(abs(ours - theirs) < 1e-5, f"{ranks} ranks: loss {theirs}, not {ours}")


def loss_starts_at_ln_vocabulary(folder):
    data = folder.tokenize("bytes", words(20000), "byte")
    run = folder.train(1, "out", "--max-iters", "1", "--data-dir", data)
    expect(abs(run.losses()[0] / math.log(256) - 1) < 0.02, f"first loss {run.losses()[0]} of 256 symbols")


def learns_text_and_samples_it(folder):
    run = folder.train(2, "out", "--max-iters", "200", "--eval-interval", "0", "--learning-rate", "0.01",
                       "--global-batch-size", "48", "--sample-tokens", "200", "--prompt", "abc", "--tensorboard")
    expect(run.losses()[-1] < 0.8 * run.losses()[0], f"losses {run.losses()[0]} to {run.losses()[-1]}")
    alphabet = set(words(20000))
    sample = run.stdout[run.stdout.rindex("abc"):]
    expect(len(sample) >= 200 and set(sample) <= alphabet | {"\n"}, f"sample {sample!r}")
    expect(" " in sample, f"a sample without words: {sample!r}")


main({f.__name__: f for f in (accumulation_is_ranks, overlap_buckets_transports_threads, trying_schedules, sharded_optimizer,
                              three_and_four_ranks, loss_starts_at_ln_vocabulary, learns_text_and_samples_it)})
