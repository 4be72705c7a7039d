#!/usr/bin/env python3
"""Writes gpt_reference.txt: logits, loss and gradients of a small GPT-2, computed by PyTorch in float64.

Run by hand (needs PyTorch) when the architecture changes: python3 tests/parity/make_gpt_reference.py
Parameters and tokens come from an integer formula that tests/unit/model/formula.h repeats to the bit.
"""
import pathlib

import torch
import torch.nn.functional as F

V, T, L, H, C, B = 65, 33, 2, 3, 96, 2  # heads of 32, as the GPU's attention takes them
LOGIT_ROWS = (0, 1, 32, 33, 50, 65)
SAMPLES = 24


def formula_bits(name, count):
    seed = 2166136261
    for byte in name.encode():
        seed = (seed ^ byte) * 16777619 % 2**32
    values = []
    for index in range(count):
        h = (seed + index * 2654435769) % 2**32
        h = (h ^ (h >> 16)) * 0x45D9F3B % 2**32
        h = (h ^ (h >> 16)) * 0x45D9F3B % 2**32
        values.append((h ^ (h >> 16)) & 0xFFFF)
    return torch.tensor(values)


def formula_tensor(name, shape):
    values = (formula_bits(name, torch.Size(shape).numel()) - 32768).double() / 131072
    if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")):
        values += 1
    return values.view(shape).requires_grad_()


def parameters():
    shapes = {"wte": (V, C), "wpe": (T, C)}
    for layer in range(L):
        h = f"h.{layer}."
        shapes |= {h + "ln_1.weight": (C,), h + "ln_1.bias": (C,),
                   h + "attn.c_attn.weight": (3 * C, C), h + "attn.c_attn.bias": (3 * C,),
                   h + "attn.c_proj.weight": (C, C), h + "attn.c_proj.bias": (C,),
                   h + "ln_2.weight": (C,), h + "ln_2.bias": (C,),
                   h + "mlp.c_fc.weight": (4 * C, C), h + "mlp.c_fc.bias": (4 * C,),
                   h + "mlp.c_proj.weight": (C, 4 * C), h + "mlp.c_proj.bias": (C,)}
    shapes |= {"ln_f.weight": (C,), "ln_f.bias": (C,)}
    return {name: formula_tensor(name, shape) for name, shape in shapes.items()}


def logits_of(p, tokens, gelu):
    def linear(name, x):
        return F.linear(x, p[name + ".weight"], p[name + ".bias"])

    def norm(name, x):
        return F.layer_norm(x, (C,), p[name + ".weight"], p[name + ".bias"])

    x = p["wte"][tokens] + p["wpe"]
    for layer in range(L):
        h = f"h.{layer}."
        q, k, v = (z.view(B, T, H, C // H).transpose(1, 2)
                   for z in linear(h + "attn.c_attn", norm(h + "ln_1", x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + linear(h + "attn.c_proj", y.transpose(1, 2).reshape(B, T, C))
        hidden = F.gelu(linear(h + "mlp.c_fc", norm(h + "ln_2", x)), approximate=gelu)
        x = x + linear(h + "mlp.c_proj", hidden)
    return norm("ln_f", x) @ p["wte"].T


def rows_of(form, gelu):
    p = parameters()
    tokens = (formula_bits("tokens", B * T) % V).view(B, T)
    targets = formula_bits("targets", B * T) % V
    logits = logits_of(p, tokens, gelu).view(B * T, V)
    loss = F.cross_entropy(logits, targets)
    loss.backward()
    yield f"loss {form} {loss.item():.17g}"
    for row in LOGIT_ROWS:
        yield f"logits {form} {row} " + " ".join(f"{x:.12g}" for x in logits[row].tolist())
    for name, tensor in p.items():
        g = tensor.grad.flatten()
        step = max(1, g.numel() // SAMPLES)
        samples = " ".join(f"{i} {g[i].item():.12g}" for i in range(0, g.numel(), step))
        yield (f"gradient {form} {name} {g.abs().max().item():.12g} {g.norm().item():.12g} "
               f"{g.sum().item():.12g} {samples}")


def main():
    lines = [f"shape {V} {T} {L} {H} {C} {B}"]
    lines += rows_of("tanh", "tanh")
    lines += rows_of("erf", "none")
    path = pathlib.Path(__file__).with_name("gpt_reference.txt")
    path.write_text("\n".join(lines) + "\n", encoding="ascii")


main()
