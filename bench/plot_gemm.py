#!/usr/bin/env python3
"""Draws what `gemm_bench --device cuda --json` measured, as SVG that reads on light and dark pages.

    plot_gemm.py ladder RESULT.json OUT.svg            the rungs beside cuBLAS at one size, untransposed
    plot_gemm.py models RESULT.json... OUT.svg         the products of one model a file, as a share of cuBLAS

The date is the one in the first file's name. The picture says which command drew it. Needs nothing but Python.
"""

import json
import math
import pathlib
import re
import sys

from svg_drawing import Drawing, nice_step

TF32_RUNGS = (9, 10, 11, 14)


def precision_of(row):
    return "TF32" if row["rung"] in TF32_RUNGS or "TF32" in row["kernel"] else "fp32"


def is_baseline(row):
    return row["kernel"].startswith("cuBLAS")


def tflops(row):
    return row["gflops"] / 1000


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def read(path):
    data = json.loads(pathlib.Path(path).read_text())
    date = re.search(r"\d{4}-\d{2}-\d{2}", pathlib.Path(path).name)
    data["date"] = date.group() if date else ""
    data["results"] = [row for row in data["results"] if row["rung"] or is_baseline(row)]
    return data


def provenance(data):
    """Where the figures come from: device, baseline, date, commit, clock."""
    commit = re.search(r"\b[0-9a-f]{12}\b", data["build"])
    clocks = [mhz for row in data["results"] for mhz in row["sm_mhz"]]
    span = f"{min(clocks)}" if min(clocks) == max(clocks) else f"{min(clocks)} to {max(clocks)}"
    locked = all(row["clock"] != "UNPINNED" for row in data["results"])
    return " · ".join(filter(None, [
        data["device"], f"driver {data['driver']}", data["baseline"], data["date"],
        f"commit {commit.group()}" if commit else data["build"],
        f"SM clock {span} MHz, {'locked' if locked else 'not locked'}"]))


def draw_axis(drawing, left, right, top, bottom, largest, step, label):
    scale = (right - left) / largest
    for i in range(int(largest / step + 1e-9) + 1):
        x = left + i * step * scale
        drawing.line(x, top, x, bottom, "axis" if i == 0 else "grid")
        drawing.text(x, bottom + 16, label(i * step), "note", "middle")
    return scale


def draw_ladder(paths, out):
    data = read(paths[0])
    rows = [row for row in data["results"] if row["op"] == "NN"]
    first = rows[0]
    title = f"One matrix product, {sum(not is_baseline(r) for r in rows)} kernels"
    drawing = Drawing(900)
    drawing.text(28, 40, title, "title")
    drawing.text(28, 62, f"c = a · b at {first['m']} × {first['n']} × {first['k']}, fp32 in memory, medians; "
                         "longer is faster, dashed is cuBLAS", "note")
    y, left, right, pitch, thick = 96, 190, 728, 25, 16
    for precision, heading in (("fp32", "Single precision; rung 13 on tensor cores"), ("TF32", "TF32 on tensor cores")):
        group = sorted((r for r in rows if precision_of(r) == precision), key=lambda r: (is_baseline(r), r["rung"]))
        baseline = next((r for r in group if is_baseline(r)), None)
        drawing.text(28, y, heading, "head")
        top, bottom = y + 12, y + 12 + pitch * len(group) + 4
        largest = 1.04 * max(map(tflops, group))
        step = nice_step(largest, 8)
        scale = draw_axis(drawing, left, right, top, bottom, largest, step, lambda v: f"{v:g}")
        drawing.text(right + 66, top - 6, "TFLOP/s", "note", "end")
        drawing.text(872, top - 6, "of cuBLAS", "note", "end")
        for i, row in enumerate(group):
            middle = top + pitch * (i + 0.5) + 2
            kind = "cuBLAS" if is_baseline(row) else precision
            name = row["kernel"] if is_baseline(row) else f"{row['rung']} {row['kernel']}"
            drawing.text(left - 12, middle + 4.5, name, anchor="end")
            drawing.bar(left, middle - thick / 2, tflops(row) * scale, thick, kind)
            drawing.text(right + 66, middle + 4.5, number(tflops(row)), anchor="end")
            if baseline:
                share = 100 * row["gflops"] / baseline["gflops"]
                drawing.text(872, middle + 4.5, f"{share:.0f} %", "note", "end")
        if baseline:
            x = left + tflops(baseline) * scale
            drawing.line(x, top, x, bottom, "mark")
        y = bottom + 56
    drawing.text(28, y - 8, provenance(data), "note")
    drawing.height = y + 12
    drawing.write(out, title)


def draw_panel(drawing, y, precision, products, left, right):
    """One model's products in one precision; the axis is the share of cuBLAS."""
    pitch, thick = 19, 12
    shares = []
    for rows in products.values():
        group = [r for r in rows if precision_of(r) == precision]
        baseline = next(r for r in group if is_baseline(r))
        best = max((r for r in group if not is_baseline(r)), key=tflops)
        shares.append((best, baseline, best["gflops"] / baseline["gflops"]))
    bottom = y + pitch * len(shares) + 4
    largest = max(1.12, 1.04 * max(share for _, _, share in shares))
    scale = draw_axis(drawing, left, right, y, bottom, largest, 0.25 if largest < 2 else 0.5,
                      lambda v: f"{100 * v:.0f} %")
    for i, (best, baseline, share) in enumerate(shares):
        middle = y + pitch * (i + 0.5) + 2
        drawing.bar(left, middle - thick / 2, share * scale, thick, precision)
        drawing.text(right + 10, middle + 4.5, f"{number(tflops(best))} / {number(tflops(baseline))}", "note")
    drawing.line(left + scale, y, left + scale, bottom, "mark")
    mean = math.exp(sum(math.log(share) for _, _, share in shares) / len(shares))
    drawing.text(left, y - 10, f"{precision}: geometric mean {100 * mean:.0f} %", "head")
    drawing.text(right + 10, y - 10, "TFLOP/s", "note")
    return bottom


def draw_models(paths, out):
    title = "The models' own products beside cuBLAS"
    drawing = Drawing(1060)
    drawing.text(28, 40, title, "title")
    drawing.text(28, 62, "Each bar is the fastest rung for the product as a share of cuBLAS (dashed: equal); numbers are "
                         "TFLOP/s, ours / cuBLAS; rows are product, case, m × n × k", "note")
    y = 108
    notes = []
    for path in paths:
        data = read(path)
        model = re.search(r"gemm-(.+?)-\d{4}", pathlib.Path(path).name)
        model = model.group(1) if model else pathlib.Path(path).stem
        notes.append(f"{model}: {provenance(data)}")
        products = {}
        for row in data["results"]:
            products.setdefault((row["product"], row["op"], row["m"], row["n"], row["k"]), []).append(row)
        drawing.text(28, y - 10, model, "head")
        for i, (product, op, m, n, k) in enumerate(products):
            drawing.text(28, y + 19 * (i + 0.5) + 6.5, product)
            drawing.text(152, y + 19 * (i + 0.5) + 6.5, f"{op} {m} × {n} × {k}", "note")
        draw_panel(drawing, y, "fp32", products, 308, 578)
        y = draw_panel(drawing, y, "TF32", products, 694, 956) + 68
    for i, note in enumerate(notes):
        drawing.text(28, y - 24 + 18 * i, note, "note")
    drawing.height = y - 22 + 18 * len(notes)
    drawing.write(out, title)


def main():
    drawings = {"ladder": draw_ladder, "models": draw_models}
    if len(sys.argv) < 4 or sys.argv[1] not in drawings:
        sys.exit(__doc__)
    drawings[sys.argv[1]](sys.argv[2:-1], sys.argv[-1])


if __name__ == "__main__":
    main()
