#!/usr/bin/env python3
"""Draws the losses of training runs, as SVG that reads on light and dark pages.

    plot_loss.py gather FOLDER OUT.json     from FOLDER/PRECISION-SEED/metrics.jsonl of each run
    plot_loss.py draw RESULT.json OUT.svg

What is gathered: each run's validation losses, and its training loss as the mean of each ten steps around every fiftieth.
FOLDER/about.json says what the runs are: an object with "title" and "note". Needs nothing but Python.
"""

import json
import pathlib
import statistics
import sys

from svg_drawing import Drawing, Panel

KINDS = ("fp32", "TF32")


def gather(folder, out):
    runs = []
    for metrics in sorted(pathlib.Path(folder).glob("*-*/metrics.jsonl")):
        precision, seed = metrics.parent.name.split("-")
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        train = [[step, round(statistics.mean(r["loss"] for r in rows if abs(r["step"] - step) <= 5), 4)]
                 for step in range(50, rows[-1]["step"] + 1, 50)]
        validation = [[r["step"], round(r["val_loss"], 4)] for r in rows if "val_loss" in r]
        runs.append({"precision": precision, "seed": int(seed),
                     "step_ms": statistics.median(r["step_ms"] for r in rows[10:]),
                     "validation": validation, "train": train})
    about = json.loads((pathlib.Path(folder) / "about.json").read_text())
    lines = ",\n ".join(json.dumps(run) for run in runs)
    pathlib.Path(out).write_text(f'{{"title": {json.dumps(about["title"])},\n "note": {json.dumps(about["note"])},\n'
                                 f' "runs": [\n {lines}]}}\n')


def kind_of(run):
    return {"fp32": "fp32", "tf32": "TF32"}[run["precision"]]


def best_of(run):
    return min(run["validation"], key=lambda point: point[1])


def draw_axes(panel, heading, steps, losses):
    panel.axes(heading, [(step, f"{step:,}") for step in steps], [(loss, f"{loss:.1f}") for loss in losses], marks=False)
    panel.drawing.text(panel.right, panel.bottom + 36, "steps", "note", "end")


def draw_losses(panel, points, kind, attributes=""):
    """What lies within the panel."""
    (first, last), (least, most) = panel.xs, panel.ys
    panel.curve([(step, loss) for step, loss in points if first <= step <= last and least <= loss <= most], kind,
                attributes)


def draw(path, out):
    data = json.loads(pathlib.Path(path).read_text())
    runs = data["runs"]
    drawing = Drawing(1000)
    drawing.style = """
  .curve { fill: none; stroke-width: 1.6; stroke-opacity: 0.85; }
  .curve.fp32 { stroke: #1f6feb; }
  .curve.TF32 { stroke: #8250df; }
  @media (prefers-color-scheme: dark) { .curve.fp32 { stroke: #388bfd; } .curve.TF32 { stroke: #a371f7; } }
"""
    drawing.text(28, 40, data["title"], "title")
    drawing.text(28, 62, data["note"], "note")
    last = runs[0]["train"][-1][0]
    whole = Panel(drawing, (64, 470, 120, 400), (0, last), (0.0, 4.5))
    draw_axes(whole, "Validation, and dotted training", range(0, last + 1, 1000), (0.0, 1.0, 2.0, 3.0, 4.0))
    near = Panel(drawing, (560, 966, 120, 400), (0, 2500), (1.4, 2.2))
    draw_axes(near, "Validation, near its best", range(0, 2501, 500), (1.4, 1.6, 1.8, 2.0, 2.2))
    for run in runs:
        kind = kind_of(run)
        draw_losses(whole, run["train"], kind, ' stroke-dasharray="2 3"')
        draw_losses(whole, run["validation"], kind)
        draw_losses(near, run["validation"], kind)
        near.dot(best_of(run), kind, 3.5)
    y = 470
    for kind in KINDS:
        group = [run for run in runs if kind_of(run) == kind]
        if group:
            bests = ", ".join(f"{best_of(run)[1]:.3f} (step {best_of(run)[0]:,})" for run in group)
            milliseconds = statistics.median(run["step_ms"] for run in group)
            drawing.bar(28, y - 9, 12, 10, kind)
            drawing.text(48, y, f"{kind}, seeds {', '.join(str(run['seed']) for run in group)}: best validation loss "
                                f"{bests}; {milliseconds:.2f} ms a step")
            y += 24
    drawing.height = y + 4
    drawing.write(out, data["title"])


def main():
    actions = {"gather": gather, "draw": draw}
    if len(sys.argv) != 4 or sys.argv[1] not in actions:
        sys.exit(__doc__)
    actions[sys.argv[1]](sys.argv[2], sys.argv[3])


if __name__ == "__main__":
    main()
