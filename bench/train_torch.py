#!/usr/bin/env python3
"""Times the training step of configs/shakespeare_char_cpu.toml in PyTorch, on the CPU, to be put beside the trainer's.

Usage: train_torch.py TEXT [--steps 150] [--threads 2]          one process
       torchrun --nproc-per-node 2 train_torch.py TEXT --threads 1    data-parallel over Gloo

A step is forward, backward, clipping and AdamW on a global batch of 12 x 64 characters; the figure is the median, in
milliseconds, on a line of JSON.
"""
import argparse
import json
import os
import pathlib
import statistics
import time

import torch
import torch.distributed
from torch import nn
from torch.nn import functional

LAYERS, HEADS, WIDTH, CONTEXT, GLOBAL_BATCH = 4, 4, 128, 64, 12


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(WIDTH, 3 * WIDTH)
        self.output = nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, time_, _ = x.shape
        heads = self.project(x).view(batch, time_, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(heads[0], heads[1], heads[2], is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, time_, WIDTH))


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)])
        self.attention = Attention()
        self.wide = nn.Linear(WIDTH, 4 * WIDTH)
        self.narrow = nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, vocabulary):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, WIDTH)
        self.positions = nn.Embedding(CONTEXT, WIDTH)
        self.layers = nn.Sequential(*[Layer() for _ in range(LAYERS)])
        self.norm = nn.LayerNorm(WIDTH)

    def forward(self, inputs, targets):
        x = self.layers(self.tokens(inputs) + self.positions.weight[: inputs.shape[1]])
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()

    distributed = "LOCAL_RANK" in os.environ
    if distributed:
        torch.distributed.init_process_group("gloo")
    ranks = torch.distributed.get_world_size() if distributed else 1
    rank = torch.distributed.get_rank() if distributed else 0
    torch.set_num_threads(options.threads)
    torch.manual_seed(1337 + rank)

    text = options.text.read_text(encoding="utf-8")
    ids = {symbol: index for index, symbol in enumerate(sorted(set(text)))}
    data = torch.tensor([ids[symbol] for symbol in text])
    model = Model(len(ids))
    network = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True) if distributed else model
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1)

    seconds = []
    for _ in range(options.steps):
        start = time.perf_counter()
        offsets = torch.randint(len(data) - CONTEXT - 1, (GLOBAL_BATCH // ranks,)).tolist()
        windows = torch.stack([data[offset:offset + CONTEXT + 1] for offset in offsets])
        loss = network(windows[:, :-1], windows[:, 1:])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seconds.append(time.perf_counter() - start)
    if rank == 0:
        print(json.dumps({"program": "train_torch", "torch": torch.__version__, "ranks": ranks,
                          "threads": options.threads, "steps": options.steps,
                          "median_step_ms": round(1e3 * statistics.median(seconds), 3), "last_loss": loss.item()}))
    if distributed:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
