"""Reads what `all_reduce_bench --json` and `step_bench --json` measured on several ranks, for plot_scaling.py."""

import json
import pathlib

from collective_model import fit, worst_error

# By the name that the benches give a transport: how pictures call it, and what NCCL beside it may not use.
TRANSPORTS = {
    "peer": ("peer access", ""),
    "staged": ("staged copies", "peer access off"),
    "nccl": ("NCCL", ""),
    "host:shm": ("host ring, shared memory", ""),
    "host:socket": ("host ring, sockets", "peer access and shared memory off"),
}

# What is kept of a file of step_bench, besides what was run.
FIGURES = ("steps", "step_ms", "step_p95_ms", "replica_ms", "in_step_ms", "after_ms", "comm_alone_ms", "reduced_bytes")


class AllReduce:
    """One file of all_reduce_bench: a transport's times and the baseline's, in microseconds by bytes."""

    def __init__(self, path):
        data = json.loads(pathlib.Path(path).read_text())
        self.device, self.ranks, self.baseline = data["device"], data["ranks"], data["baseline"]
        self.transport, self.link_gbps = data["transport"], data["link_gbps"]
        self.in_graph = data["graph_launches"] > 0
        self.name, self.baseline_note = TRANSPORTS[self.transport]
        rows = [row for row in data["results"] if row["size"] > 0]
        self.ours = [(row["size"], row["time_us"]) for row in rows]
        self.theirs = [(row["size"], row["baseline_time_us"]) for row in rows if "baseline_time_us" in row]

    @property
    def their_name(self):
        return f"{self.baseline}, {self.baseline_note}" if self.baseline_note else self.baseline

    def bandwidth(self, size, microseconds):
        """What each rank sends, in GB/s: nccl-tests' bus bandwidth."""
        return 2 * (self.ranks - 1) / self.ranks * size / microseconds * 1e-3

    def fit(self, points):
        """The model's link, and its worst relative error over the points."""
        seconds = [(size, 1e-6 * time) for size, time in points]
        link = fit(seconds, self.ranks)
        return link, worst_error(seconds, self.ranks, link)


class Step:
    """One run of step_bench, times in milliseconds."""

    def __init__(self, row):
        self.row = row
        self.model, self.ranks, self.transport = row["model"], row["ranks"], row["transport"]
        self.sharded = row.get("sharded", False)  # each rank updates a shard
        self.name = TRANSPORTS[self.transport][0] if self.ranks > 1 else "one GPU"
        self.name += ", sharded update" if self.sharded else ""
        self.nothing_sent, self.sums = row["replica_ms"], row["comm_alone_ms"]
        self.in_step = row["in_step_ms"]  # with the record alone: ranks wait for each other
        # A run that overlaps takes turns with steps whose sums all come after backward.
        self.overlapped = row["step_ms"] if row["overlap"] else None
        self.after = (row["after_ms"] if row["overlap"] else row["step_ms"]) or None

    @property
    def time(self):
        """Of the faster schedule, which is what a run takes."""
        return min(time for time in (self.overlapped, self.after) if time)

    def exposed(self, step):
        return step - self.nothing_sent

    def hidden(self, step):
        """The part of the sums' own time that a step does not wait for; none where they slow it down by more."""
        return max(0, 1 - self.exposed(step) / self.sums)


def model_of(options, rank_batch):
    """A model's short name, with the batch of a rank."""
    sizes = tuple(int(options[name]) for name in ("n-layer", "n-head", "n-embd"))
    name = {(6, 6, 384): "char", (12, 12, 768): "124M"}.get(sizes, "{} layers, {} heads, {} channels".format(*sizes))
    return f"{name}, {rank_batch} x {options['block-size']} tokens a rank, {options['precision']}"


def gather_steps(paths):
    """The rows of scaling-steps.json, from files of step_bench."""
    rows = []
    for path in paths:
        data = json.loads(pathlib.Path(path).read_text())
        options = data["options"]
        rows.append({
            "model": model_of(options, data["rank_batch"]), "ranks": data["ranks"], "transport": data["transport"],
            "overlap": options["overlap"] == "true", "bucket_mb": options["bucket-mb"],
            "sharded": options["shard-optimizer"] == "true",
            "device": data["device"].split(",")[0], "build": data["build"],
            **{name: data[name] for name in FIGURES}})
    places = ["none", *TRANSPORTS]
    return sorted(rows, key=lambda row: (row["reduced_bytes"], places.index(row["transport"]), row["sharded"],
                                       not row["overlap"]))


def read_steps(path):
    """By model, in the file's order: the step of one rank, and those of several. Of two runs with the same transport
    and update the one that overlaps says all that the other does."""
    models = {}
    for row in json.loads(pathlib.Path(path).read_text())["results"]:
        step = Step(row)
        alone, several = models.setdefault(step.model, ([], {}))
        if step.ranks == 1:
            alone.append(step)
        elif (step.transport, step.sharded) not in several or step.overlapped is not None:
            several[step.transport, step.sharded] = step
    return {model: (alone[0], list(several.values())) for model, (alone, several) in models.items()}
