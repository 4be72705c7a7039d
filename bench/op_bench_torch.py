#!/usr/bin/env python3
"""Compares op_bench with the same ops of PyTorch on one CPU thread, in turns.

Usage: op_bench_torch.py OP_BENCH [--model char-cpu] [--rounds 5] [--json FILE]

Each round runs op_bench as a process, then PyTorch's ops here; both are timed by the processor time
of their thread, and beside each call goes a copy of as many bytes, so that both meet the same
caches. Figures are medians over rounds; ratio = PyTorch's time over ours.
"""
import argparse
import json
import statistics
import subprocess
import tempfile
import time

import torch

MODELS = {  # batch, time, heads, head_dim, vocabulary, padded vocabulary
    "char-cpu": (6, 64, 4, 32, 65, 80),
    "char": (16, 256, 6, 64, 65, 80),
}


def torch_ops(batch, length, heads, head_dim, vocabulary, padded):
    """Name in op_bench -> (body, bytes of the copy beside it)."""
    aten = torch.ops.aten
    rows, channels = batch * length, heads * head_dim
    x, dy, = torch.randn(rows, channels), torch.randn(rows, channels)
    gamma, beta = torch.randn(channels), torch.randn(channels)
    _, mean, rstd = torch.native_layer_norm(x, [channels], gamma, beta, 1e-5)
    qkv = torch.randn(batch, length, 3 * channels)
    q, k, v = (part.view(batch, length, heads, head_dim).transpose(1, 2)
               for part in qkv.split(channels, 2))
    attend = aten._scaled_dot_product_flash_attention_for_cpu
    out, lse = attend(q, k, v, 0.0, True)
    dout = torch.randn(batch, length, heads, head_dim).transpose(1, 2)
    wide, dwide = torch.randn(rows, 4 * channels), torch.randn(rows, 4 * channels)
    logits = torch.randn(rows, vocabulary)
    targets = torch.randint(0, vocabulary, (rows,))
    one = torch.ones(())

    def cross_entropy():
        log_p = aten._log_softmax(logits, 1, False)
        _, weight = aten.nll_loss_forward(log_p, targets, None, 1, -100)
        grad = aten.nll_loss_backward(one, log_p, targets, None, 1, -100, weight)
        return aten._log_softmax_backward_data(grad, log_p, 1, torch.float32)

    size = 4 * rows * channels
    ops = {
        "layernorm forward":
            (lambda: torch.native_layer_norm(x, [channels], gamma, beta, 1e-5), 2 * size),
        "layernorm backward":
            (lambda: aten.native_layer_norm_backward(dy, x, [channels], mean, rstd, gamma, beta,
                                                     [True, True, True]), 4 * size),
        "attention forward": (lambda: attend(q, k, v, 0.0, True), 4 * size),
        "attention backward":
            (lambda: aten._scaled_dot_product_flash_attention_for_cpu_backward(
                dout, q, k, v, out, lse, 0.0, True), 8 * size),
        "cross-entropy": (cross_entropy, 8 * rows * padded),
    }
    return ops


def time_us(body, copied_bytes, seconds=0.2):
    source = torch.zeros(copied_bytes // 8)
    target = torch.zeros(copied_bytes // 8)
    body()
    start = time.thread_time()
    body()
    calls = max(1, int(1e-3 / max(time.thread_time() - start, 1e-7)))
    samples = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(samples) < 5:
        start = time.thread_time()
        for _ in range(calls):
            body()
        samples.append((time.thread_time() - start) / calls)
        for _ in range(calls):
            target.copy_(source)
    return statistics.median(samples) * 1e6


def ours_us(program, model):
    with tempfile.NamedTemporaryFile(suffix=".json") as file:
        subprocess.run([program, "--model", model, "--seconds", "0.2", "--json", file.name],
                       check=True, stdout=subprocess.DEVNULL)
        with open(file.name, encoding="utf-8") as text:
            return {row["op"]: row["time_us"] for row in json.load(text)["results"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op_bench")
    parser.add_argument("--model", choices=MODELS, default="char-cpu")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--json")
    args = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    ops = torch_ops(*MODELS[args.model])
    ours, theirs = [], []
    for _ in range(args.rounds):
        ours.append(ours_us(args.op_bench, args.model))
        theirs.append({name: time_us(*op) for name, op in ops.items()})
    print(f"# {args.model}, PyTorch {torch.__version__}, one thread, {args.rounds} rounds")
    print(f"{'op':<20} {'ours_us':>10} {'torch_us':>10} {'ratio':>6}")
    results = []
    for name in ops:
        row = {"op": name,
               "time_us": statistics.median(r[name] for r in ours),
               "baseline_time_us": statistics.median(r[name] for r in theirs),
               "ratio": statistics.median(t[name] / o[name] for o, t in zip(ours, theirs))}
        results.append(row)
        print(f"{name:<20} {row['time_us']:>10.1f} {row['baseline_time_us']:>10.1f} "
              f"{row['ratio']:>6.2f}")
    if args.json:
        with open(args.json, "w", encoding="utf-8") as file:
            json.dump({"bench": "ops", "model": args.model, "baseline": f"PyTorch {torch.__version__}",
                       "threads": 1, "results": results}, file, indent=2)


if __name__ == "__main__":
    main()
