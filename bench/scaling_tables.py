"""Markdown tables of what sums between GPUs cost, for plot_scaling.py; and what the model predicts for more ranks."""

from collective_model import Link, Network, flat_ring, hierarchical_ring
from scaling_results import AllReduce, read_steps

MIB = 1 << 20

# The gradients of the char model and of the 124M model, in bytes.
SIZES = (43 * MIB, 498_000_000)
GPUS = 8
HOSTS = tuple(1 << exponent for exponent in range(8))

# Not measured: hosts with one port of 100 Gbit/s for TCP, of which 10 GB/s are reached at 30 us a hop; and hosts with a
# port of 400 Gbit/s, 50 GB/s at 4 us a hop, for each of their GPUs.
NETWORKS = (Network("100 GbE TCP", 1, Link(30e-6, 10e9)), Network("400 Gbit/s a GPU", GPUS, Link(4e-6, 50e9)))
PREDICTIONS = tuple((f"{kind}, {network.name}", function, network) for network in NETWORKS
                    for kind, function in (("flat ring", flat_ring), ("hierarchical", hierarchical_ring)))


def significant(value):
    """Three digits."""
    return f"{value:.2f}" if value < 9.995 else f"{value:.1f}" if value < 99.95 else f"{value:.0f}"


def time_text(seconds):
    for unit, scale in (("µs", 1e6), ("ms", 1e3)):
        if seconds * scale < 999.5:
            return f"{significant(seconds * scale)} {unit}"
    return f"{significant(seconds)} s"


def size_text(size):
    for unit, scale in (("GiB", 1 << 30), ("MiB", MIB), ("KiB", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale} {unit}"
    return f"{size / 1e6:.0f} MB" if size >= 1e6 else f"{size} B"


def percent(share):
    value = round(100 * share, 1) + 0.0
    return f"{value:.0f} %" if abs(value) >= 10 else f"{value:.1f} %"


def inside_of(results):
    """The link between GPUs of one host that predictions are made with."""
    peer = next(result for result in results if result.transport == "peer")
    return peer.fit(peer.ours)[0]


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def all_reduce(paths):
    results = [AllReduce(path) for path in paths]
    head = ["array"]
    for result in results:
        head += [f"{result.name} / {result.baseline.split()[0]}", "ratio"]
        head += ["of the link"] if result.transport == "peer" else []
    rows = []
    for size in sorted({size for result in results for size, _ in result.ours}):
        row = [size_text(size)]
        for result in results:
            ours, theirs = dict(result.ours).get(size), dict(result.theirs).get(size)
            row.append(f"{time_text(1e-6 * ours)} / {time_text(1e-6 * theirs)}" if ours and theirs
                       else time_text(1e-6 * ours) if ours else "")
            row.append(f"{ours / theirs:.2f}" if ours and theirs else "")
            if result.transport == "peer":
                row.append(percent(result.bandwidth(size, ours) / result.link_gbps) if ours else "")
        rows.append(row)
    return table(head, rows)


def model(paths):
    rows = []
    for result in map(AllReduce, paths):
        for name, points in ((result.name, result.ours), (result.their_name, result.theirs)):
            if points:
                link, error = result.fit(points)
                rows.append([name, time_text(link.alpha), f"{significant(link.bandwidth * 1e-9)} GB/s", percent(error)])
    return table(["", "α, a hop", "bandwidth", "worst error"], rows)


def prediction(paths):
    inside = inside_of([AllReduce(path) for path in paths])
    head = ["GPUs", *(name for name, *_ in PREDICTIONS)]
    parts = []
    for size in SIZES:
        rows = [[str(hosts * GPUS), *(time_text(function(hosts, GPUS, size, inside, network))
                                      for _, function, network in PREDICTIONS)] for hosts in HOSTS]
        parts.append(f"{size_text(size)}:\n\n{table(head, rows)}")
    return "\n\n".join(parts)


def step_columns(step, time):
    """A step's own time, and what it waits for."""
    return ["", ""] if time is None else [f"{time:.2f} ms", f"{step.exposed(time):.2f} ms"]


def steps(paths):
    head = ["", "nothing sent", "in step", "sums alone", "beside backward", "exposed", "hidden", "behind backward",
            "exposed", "the faster, over one GPU's"]
    parts = []
    for name, (alone, several) in read_steps(paths[0]).items():
        rows = [["one GPU", f"{alone.time:.2f} ms", *[""] * 8]]
        for step in several:
            rows.append([f"{step.ranks} GPUs, {step.name}",
                         *[f"{time:.2f} ms" for time in (step.nothing_sent, step.in_step, step.sums)],
                         *step_columns(step, step.overlapped),
                         "" if step.overlapped is None else percent(step.hidden(step.overlapped)),
                         *step_columns(step, step.after), f"{step.time / alone.time:.3f}"])
        parts.append(f"{name}:\n\n{table(head, rows)}")
    return "\n\n".join(parts)


KINDS = {"all-reduce": all_reduce, "model": model, "prediction": prediction, "steps": steps}
