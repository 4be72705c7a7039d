"""Lockstep's GPT in PyTorch, for train_torch.py: GPT-2's, with tied embeddings and without dropout."""

import torch
from torch import nn
from torch.nn import functional


class Attention(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.heads = heads
        self.project = nn.Linear(width, 3 * width)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        parts = self.project(x).view(batch, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(parts[0], parts[1], parts[2], is_causal=True)
        return self.output(mixed.transpose(1, 2).reshape(batch, length, width))


class Layer(nn.Module):
    def __init__(self, heads, width):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.attention = Attention(heads, width)
        self.wide = nn.Linear(width, 4 * width)
        self.narrow = nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        return x + self.narrow(functional.gelu(self.wide(self.norms[1](x)), approximate="tanh"))


class Model(nn.Module):
    """Called with inputs and targets, (batch, length) each, it is the mean loss."""

    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.positions = nn.Embedding(context, width)
        self.layers = nn.Sequential(*[Layer(heads, width) for _ in range(layers)])
        self.norm = nn.LayerNorm(width)
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, inputs, targets):
        x = self.layers(self.tokens(inputs) + self.positions.weight[: inputs.shape[1]])
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
