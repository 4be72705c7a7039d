#!/usr/bin/env python3
"""Draws what sums between GPUs cost, alone and in a training step, and what a model makes of it, as SVG that reads on
light and dark pages; and prints the same as tables.

    plot_scaling.py all-reduce RESULT.json... OUT.svg   files of `all_reduce_bench --device cuda --json`, one a transport
    plot_scaling.py model RESULT.json... OUT.svg        the alpha-beta model fitted to them, and its predictions
    plot_scaling.py gather STEP.json... OUT.json        files of `step_bench --json`, of one rank and of several, as one
    plot_scaling.py steps GATHERED.json OUT.svg
    plot_scaling.py table all-reduce|model|prediction RESULT.json...
    plot_scaling.py table steps GATHERED.json           Markdown, as docs/scaling.md has it

The picture says which command drew it. Needs nothing but Python.
"""

import json
import math
import pathlib
import sys

import scaling_tables
from collective_model import ring
from scaling_results import AllReduce, gather_steps, read_steps
from scaling_tables import GPUS, HOSTS, PREDICTIONS, SIZES, inside_of, percent, significant, size_text, time_text
from svg_drawing import Drawing, Panel, nice_step

# A colour on light pages and one on dark pages.
LINES = {"peer": ("#1f6feb", "#4493f8"), "staged": ("#8250df", "#a371f7"), "shm": ("#1a7f37", "#3fb950"),
         "socket": ("#bc4c00", "#f0883e")}
PREDICTION_LINES = ("socket dashed", "socket", "shm dashed", "shm")
BARS = {"compute": ("#8c959f", "#656c76"), "hidden": ("#f3c6a5", "#a9734a"), "exposed": ("#cf222e", "#f85149")}


def style():
    def colours(i):
        return "".join([f"\n  .curve.{kind} {{ stroke: {pair[i]}; }} .dot.{kind} {{ fill: {pair[i]}; }}"
                        for kind, pair in LINES.items()] +
                       [f"\n  .{kind} {{ fill: {pair[i]}; }}" for kind, pair in BARS.items()])
    return f"""
  .curve {{ fill: none; stroke-width: 2; }}
  .dashed {{ stroke-width: 1.5; stroke-dasharray: 5 3; }}
  .equal {{ stroke: #818b98; stroke-dasharray: 2 3; }}{colours(0)}
  @media (prefers-color-scheme: dark) {{{colours(1)}
  }}
"""


def kind_of(transport):
    return transport.removeprefix("host:")


def new_drawing(width, title, note):
    drawing = Drawing(width)
    drawing.style = style()
    drawing.text(28, 40, title, "title")
    drawing.text(28, 62, note, "note")
    return drawing


def legend(drawing, x, y, kind, text):
    drawing.parts.append(f'<polyline points="{x:.1f},{y - 4:.1f} {x + 26:.1f},{y - 4:.1f}" class="curve {kind}"/>')
    drawing.text(x + 34, y, text)


def decades(low, high):
    return [10.0 ** e for e in range(round(math.log10(low)), round(math.log10(high)) + 1)]


def around(values):
    """The powers of ten about all values."""
    return 10.0 ** math.floor(math.log10(min(values))), 10.0 ** math.ceil(math.log10(max(values)))


def size_ticks(sizes, every):
    """Powers of two only: other sizes lie between them."""
    exponents = range(min(sizes).bit_length() - 1, max(sizes).bit_length())
    return [(1 << e, size_text(1 << e)) for e in exponents if e % every == 0]


def time_panel(drawing, box, results, heading, with_baseline):
    sizes = [size for result in results for size, _ in result.ours]
    times = [1e-6 * time for result in results for _, time in result.ours + (result.theirs if with_baseline else [])]
    panel = Panel(drawing, box, (min(sizes), max(sizes)), around(times), log_x=True, log_y=True)
    panel.axes(heading, size_ticks(sizes, 5), [(value, time_text(value).replace(".00", "").replace(".0", ""))
                                               for value in decades(*panel.ys)])
    return panel


def seconds(points):
    return [(size, 1e-6 * time) for size, time in points]


def draw_all_reduce(paths, out):
    results = [AllReduce(path) for path in paths]
    title = f"All-reduce between {results[0].ranks} GPUs"
    how = "inside CUDA graphs, " if all(result.in_graph for result in results) else ""
    drawing = new_drawing(1060, title, f"{results[0].device}, fp32, in place, {how}medians; in turn with "
                                       f"{results[0].baseline} in one run")
    panel = time_panel(drawing, (82, 560, 116, 500), results, "Time", True)
    for result in results:
        panel.curve(seconds(result.theirs), f"{kind_of(result.transport)} dashed")
        panel.curve(seconds(result.ours), kind_of(result.transport))
    peers = [result for result in results if result.transport == "peer"]
    link = f"Share of what copies reach, {peers[0].link_gbps:.0f} GB/s each way" if peers else ""
    share = Panel(drawing, (648, 1030, 116, 272), panel.xs, (0, 1), log_x=True)
    share.axes(link, size_ticks(panel.xs, 5), [(i / 4, f"{25 * i} %") for i in range(5)])
    for result in peers:
        for points, kind in ((result.theirs, "peer dashed"), (result.ours, "peer")):
            share.curve([(size, result.bandwidth(size, time) / result.link_gbps) for size, time in points], kind)
    ratios = [[(size, time / dict(result.theirs)[size]) for size, time in result.ours if size in dict(result.theirs)]
              for result in results]
    largest = max([1.0, *(ratio for points in ratios for _, ratio in points)])
    step = nice_step(1.04 * largest, 6)
    relative = Panel(drawing, (648, 1030, 344, 500), panel.xs, (0, 1.04 * largest), log_x=True)
    relative.axes("Our time as a share of NCCL's", size_ticks(panel.xs, 5),
                  [(i * step, f"{100 * i * step:.0f} %") for i in range(int(1.04 * largest / step) + 1)])
    drawing.line(relative.left, relative.y(1), relative.right, relative.y(1), "equal")
    for result, points in zip(results, ratios):
        relative.curve(points, kind_of(result.transport))
    y = 556
    for result in results:
        legend(drawing, 82, y, kind_of(result.transport), result.name)
        if result.theirs:
            legend(drawing, 330, y, f"{kind_of(result.transport)} dashed", result.their_name)
        y += 24
    drawing.height = y + 4
    drawing.write(out, title)


def prediction_panel(drawing, box, size, inside):
    curves = {name: [(hosts * GPUS, function(hosts, GPUS, size, inside, network)) for hosts in HOSTS]
              for name, function, network in PREDICTIONS}
    times = [time for points in curves.values() for _, time in points]
    panel = Panel(drawing, box, (GPUS, GPUS * HOSTS[-1]), around(times), log_x=True, log_y=True)
    panel.axes(f"Prediction, not measured: {size_text(size)}", [(hosts * GPUS, str(hosts * GPUS)) for hosts in HOSTS],
               [(value, time_text(value).replace(".00", "").replace(".0", "")) for value in decades(*panel.ys)])
    drawing.text(panel.right, panel.bottom + 36, "GPUs, eight a host", "note", "end")
    for points, kind in zip(curves.values(), PREDICTION_LINES):
        panel.curve(points, kind)


def draw_model(paths, out):
    results = [AllReduce(path) for path in paths]
    inside = inside_of(results)
    title = "The α-β model: a hop's fixed time α, and each byte's"
    drawing = new_drawing(1060, title, f"Fitted to all-reduces between {results[0].ranks} {results[0].device} by least "
                                       "squares of relative errors; then computed for more GPUs than there were")
    panel = time_panel(drawing, (82, 500, 116, 500), results, "Measured (dots) and fitted (lines)", False)
    for result in results:
        link, _ = result.fit(result.ours)
        least, most = result.ours[0][0], result.ours[-1][0]
        sizes = [least * (most / least) ** (i / 60) for i in range(61)]
        panel.curve([(size, ring(result.ranks, size, link)) for size in sizes], kind_of(result.transport))
        for point in seconds(result.ours):
            panel.dot(point, f"dot {kind_of(result.transport)}", 3)
    for size, (top, bottom) in zip(SIZES, ((116, 272), (344, 500))):
        prediction_panel(drawing, (590, 1030, top, bottom), size, inside)
    y = 564
    for result in results:
        link, error = result.fit(result.ours)
        legend(drawing, 82, y, kind_of(result.transport),
               f"{result.name}: {time_text(link.alpha)}, {significant(1e-9 * link.bandwidth)} GB/s; "
               f"worst error {percent(error)}")
        y += 24
    for i, ((name, *_), kind) in enumerate(zip(PREDICTIONS, PREDICTION_LINES)):
        legend(drawing, 590 + 215 * (i // 2), 564 + 24 * (i % 2), kind, name)
    drawing.height = max(y, 564 + 48) + 4
    drawing.write(out, title)


def draw_bar(drawing, x, y, scale, step, time):
    """Computing, its end beside which sums are hidden, and what the step waits for."""
    exposed = max(step.exposed(time), 0) if step.ranks > 1 else 0
    computing = time - exposed
    hidden = min(max(step.sums - exposed, 0), computing)
    drawing.bar(x, y, computing * scale, 13, "compute")
    if hidden:
        drawing.bar(x + (computing - hidden) * scale, y + 8, hidden * scale, 5, "hidden")
    if exposed:
        drawing.bar(x + computing * scale, y, exposed * scale, 13, "exposed")


def draw_steps(paths, out):
    models = read_steps(paths[0])
    first = next(iter(models.values()))[0]
    title = "A training step on one GPU and on two"
    drawing = new_drawing(1060, title, f"{first.row['device']}, the same batch on each GPU; medians of the slowest rank")
    y, left, right = 108, 300, 790
    for kind, x, text in (("compute", 28, "computing, nothing sent"), ("hidden", 228, "sums hidden beside it"),
                          ("exposed", 412, "exposed: what the step waits for")):
        drawing.bar(x, y - 22, 12, 10, kind)
        drawing.text(x + 20, y - 13, text)
    y += 40
    for name, (alone, several) in models.items():
        rows = [("one GPU", "", alone, alone.time)]
        for step in several:
            rows += [(step.name if kind == "overlapped" or step.overlapped is None else "", kind, step, time)
                     for kind, time in (("overlapped", step.overlapped), ("after backward", step.after)) if time]
        drawing.text(28, y - 14, name, "head")
        largest = 1.02 * max(time for *_, time in rows)
        step_ms = nice_step(largest, 8)
        scale = (right - left) / largest
        bottom = y + 22 * len(rows) + 6
        for i in range(int(largest / step_ms + 1e-9) + 1):
            x = left + i * step_ms * scale
            drawing.line(x, y, x, bottom, "axis" if i == 0 else "grid")
            drawing.text(x, bottom + 16, f"{i * step_ms:g}", "note", "middle")
        for x, text in ((848, "step, ms"), (946, "of one GPU's"), (1032, "exposed, ms")):
            drawing.text(x, y - 6, text, "note", "end")
        for i, (transport, kind, step, time) in enumerate(rows):
            middle = y + 22 * (i + 0.5) + 3
            drawing.text(28, middle + 4.5, transport)
            drawing.text(left - 12, middle + 4.5, kind, "note", "end")
            draw_bar(drawing, left, middle - 6.5, scale, step, time)
            drawing.text(848, middle + 4.5, f"{time:.2f}", anchor="end")
            if step.ranks > 1:
                drawing.text(946, middle + 4.5, f"{time / alone.time:.3f}", anchor="end")
                drawing.text(1032, middle + 4.5, f"{step.exposed(time):.2f}", anchor="end")
        y = bottom + 72
    drawing.height = y - 44
    drawing.write(out, title)


def gather(paths, out):
    rows = ",\n".join(json.dumps(row) for row in gather_steps(paths))
    pathlib.Path(out).write_text(f'{{"results": [\n{rows}\n]}}\n')


def main():
    actions = {"all-reduce": draw_all_reduce, "model": draw_model, "gather": gather, "steps": draw_steps}
    if len(sys.argv) > 3 and sys.argv[1] in actions:
        actions[sys.argv[1]](sys.argv[2:-1], sys.argv[-1])
    elif len(sys.argv) > 3 and sys.argv[1] == "table" and sys.argv[2] in scaling_tables.KINDS:
        print(scaling_tables.KINDS[sys.argv[2]](sys.argv[3:]))
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
