#!/usr/bin/env python3
"""Times the training step of a GPT in PyTorch, to be put beside the trainer's and step_bench's.

    train_torch.py TEXT --threads 2                                  the CPU; the model is shakespeare_char_cpu.toml's
    train_torch.py --device cuda --precision tf32 --compile reduce-overhead \\
        --n-layer 6 --n-head 6 --n-embd 384 --block-size 256 --batch-size 16
    torchrun --nproc-per-node 2 train_torch.py ...                   data-parallel, over Gloo or over NCCL

A step is the batch, forward, backward, clipping and AdamW. Batches are windows of TEXT; without a text, random tokens,
the same in each step, which a GPU copies from page-locked memory as Lockstep's step does. A GPU's steps are timed by
events at their ends. Median and p95, of the slowest process, are on a line of JSON.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import torch
import torch.distributed
from torch import nn

from torch_model import Model

GLOBAL_BATCH = 12  # sequences over all processes, unless --batch-size says how many a process has


def positive(text):
    value = int(text)
    if value < 1:
        raise ValueError
    return value


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path, nargs="?", help="text to train on, on the CPU")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "tf32"), default="fp32", help="of matrix products")
    parser.add_argument("--compile", choices=("none", "default", "reduce-overhead"), default="none",
                        help="mode of torch.compile; reduce-overhead replays CUDA graphs")
    parser.add_argument("--threads", type=positive, help="of a process, on the CPU; 2 unless given")
    parser.add_argument("--n-layer", type=positive, default=4)
    parser.add_argument("--n-head", type=positive, default=4)
    parser.add_argument("--n-embd", type=positive, default=128)
    parser.add_argument("--block-size", type=positive, default=64)
    parser.add_argument("--batch-size", type=positive,
                        help=f"sequences of a process; {GLOBAL_BATCH} over all processes unless given")
    parser.add_argument("--vocab-size", type=positive, help="symbols of random tokens; 65 unless given")
    parser.add_argument("--warmup", type=int,
                        help="steps ahead of the measured ones; none for the CPU, 20 for a GPU or a compiler")
    parser.add_argument("--steps", type=positive, default=150, help="measured steps")
    options = parser.parse_args()
    if problem := problem_of(options):
        parser.error(problem)
    if options.warmup is None:
        options.warmup = 0 if options.device == "cpu" and options.compile == "none" else 20
    return options


def problem_of(options):
    """What is wrong with the options together, or None."""
    if options.n_embd % options.n_head:
        return f"--n-head {options.n_head} does not divide --n-embd {options.n_embd}"
    if not options.batch_size and GLOBAL_BATCH % world_size():
        return f"{world_size()} processes cannot share {GLOBAL_BATCH} sequences equally; give --batch-size"
    if options.text and options.vocab_size:
        return "--vocab-size is for random tokens; a text has its own symbols"
    if options.warmup is not None and options.warmup < 0:
        return "--warmup is below 0"
    if options.device == "cpu":
        if options.precision != "fp32":
            return f"--precision {options.precision} is for --device cuda"
        if options.compile == "reduce-overhead":
            return "--compile reduce-overhead replays CUDA graphs; it is for --device cuda"
        return None
    if options.text:
        return "a GPU's step is timed on random tokens, as step_bench times it; give no text with --device cuda"
    if options.threads:
        return "--threads is for --device cpu"
    here = int(os.environ.get("LOCAL_WORLD_SIZE", 1))
    if torch.cuda.device_count() < here:
        return f"--device cuda: {here} processes on this host and PyTorch sees {torch.cuda.device_count()} GPUs"
    return None


def world_size():
    return int(os.environ.get("WORLD_SIZE", 1))  # set by torchrun


def batches(data, vocabulary, batch, options):
    """Pairs of inputs and targets, without end."""
    length = options.block_size
    if data is not None:
        while True:
            offsets = torch.randint(len(data) - length, (batch,)).tolist()
            windows = torch.stack([data[offset:offset + length + 1] for offset in offsets])
            yield windows[:, :-1], windows[:, 1:]
    tokens = torch.randint(vocabulary, (2, batch, length))
    if options.device == "cpu":
        while True:
            yield tokens.unbind()
    page_locked = tokens.pin_memory()
    resident = torch.empty_like(tokens, device="cuda")
    pair = resident.unbind()
    while True:
        resident.copy_(page_locked, non_blocking=True)
        yield pair


def read_text(path, length):
    """Its characters as numbers, and how many different ones there are."""
    text = path.read_text(encoding="utf-8")
    if len(text) <= length:
        sys.exit(f"train_torch: {path} has {len(text)} characters, and a window of --block-size {length} takes one more")
    ids = {symbol: index for index, symbol in enumerate(sorted(set(text)))}
    return torch.tensor([ids[symbol] for symbol in text]), len(ids)


def prepare(model, options):
    """The model as it is called: data-parallel if there are several processes, compiled if asked for. Compiled from
    outside, so that torch.compile cuts its graph at the buckets, whose sums run beside the rest of backward."""
    network = model
    if world_size() > 1:
        network = nn.parallel.DistributedDataParallel(network, gradient_as_bucket_view=True)
    if options.compile != "none":
        network = torch.compile(network, mode=options.compile)
    return network


def take_step(network, optimizer, inputs, targets, graphs):
    """Gradients and loss of compiled CUDA graphs lie in memory that the next replay writes. So nothing of it is left
    when that begins: gradients are dropped before forward, and the loss is a copy."""
    if graphs:
        torch.compiler.cudagraph_mark_step_begin()
    optimizer.zero_grad(set_to_none=True)
    loss = network(inputs, targets)
    loss.backward()
    nn.utils.clip_grad_norm_(network.parameters(), 1.0)
    optimizer.step()
    return loss.detach().clone()


def mark(device):
    """A moment: now, or when the GPU comes to it."""
    if device == "cpu":
        return time.perf_counter()
    event = torch.cuda.Event(enable_timing=True)
    event.record()
    return event


def milliseconds(begin, end):
    return 1e3 * (end - begin) if isinstance(end, float) else begin.elapsed_time(end)


def quantile(values, q):
    """As step_bench has it."""
    return sorted(values)[int(q * (len(values) - 1) + 0.5)]


def slowest(figures, device):
    """The largest over all processes, one by one."""
    if world_size() == 1:
        return figures
    largest = torch.tensor(figures, dtype=torch.float64, device=device)
    torch.distributed.all_reduce(largest, torch.distributed.ReduceOp.MAX)
    return largest.tolist()


def main():
    options = parse_options()
    cuda = options.device == "cuda"
    if cuda:
        torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        torch.set_float32_matmul_precision("high" if options.precision == "tf32" else "highest")
    else:
        torch.set_num_threads(options.threads or 2)
    if world_size() > 1:
        torch.distributed.init_process_group("nccl" if cuda else "gloo")
    rank = torch.distributed.get_rank() if world_size() > 1 else 0
    torch.manual_seed(1337 + rank)

    data, vocabulary = read_text(options.text, options.block_size) if options.text else (None, options.vocab_size or 65)
    batch = options.batch_size or GLOBAL_BATCH // world_size()
    model = Model(vocabulary, options.block_size, options.n_layer, options.n_head, options.n_embd).to(options.device)
    network = prepare(model, options)
    # Random tokens have nothing to learn, and a high rate might end in NaNs, which a GPU multiplies at less power.
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3 if options.text else 1e-5, betas=(0.9, 0.99),
                                  weight_decay=0.1, fused=cuda or None)
    source = batches(data, vocabulary, batch, options)
    marks = []
    for step in range(options.warmup + options.steps):
        if step >= options.warmup:
            marks.append(mark(options.device))
        loss = take_step(network, optimizer, *next(source), options.compile == "reduce-overhead")
    marks.append(mark(options.device))
    if cuda:
        torch.cuda.synchronize()

    times = [milliseconds(begin, end) for begin, end in zip(marks, marks[1:])]
    memory = torch.cuda.max_memory_allocated() / 2**20 if cuda else 0
    median, p95, memory = slowest([quantile(times, 0.5), quantile(times, 0.95), memory], options.device)
    if rank == 0:
        machine = {"device": torch.cuda.get_device_name()} if cuda else {"threads": torch.get_num_threads()}
        print(json.dumps({
            "program": "train_torch", "torch": torch.__version__, "ranks": world_size(), **machine,
            "layers": options.n_layer, "heads": options.n_head, "channels": options.n_embd, "vocabulary": vocabulary,
            "block_size": options.block_size, "batch_size": batch, "precision": options.precision,
            "compile": options.compile, "warmup": options.warmup, "steps": options.steps,
            "median_step_ms": round(median, 3), "p95_step_ms": round(p95, 3),
            **({"peak_memory_mib": round(memory, 1)} if cuda else {}), "last_loss": loss.item()}), flush=True)
    if world_size() > 1:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
