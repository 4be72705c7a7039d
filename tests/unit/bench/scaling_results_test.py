#!/usr/bin/env python3
"""Tests what bench/scaling_results.py reads out of the benches' files, and how bench/scaling_tables.py puts it."""

import json
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))

import scaling_tables  # noqa: E402
from scaling_results import AllReduce, gather_steps, read_steps  # noqa: E402

CHAR = {"n-layer": "6", "n-head": "6", "n-embd": "384", "batch-size": "0", "block-size": "256", "precision": "tf32",
        "bucket-mb": "1", "shard-optimizer": "false"}


def step_file(transport, ranks, overlap, step_ms, **figures):
    return {"bench": "step_bench", "build": "lockstep", "ranks": ranks, "rank_batch": 16, "transport": transport,
            "device": "A GPU, 0000:00:06.0", "options": {**CHAR, "overlap": overlap}, "steps": 60, "step_ms": step_ms,
            "step_p95_ms": step_ms, "replica_ms": step_ms, "in_step_ms": step_ms, "after_ms": 0,
            "comm_alone_ms": 0, "reduced_bytes": 43 << 20, **figures}


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def write(self, name, data):
        (self.folder / name).write_text(json.dumps(data))
        return str(self.folder / name)


class Steps(InFolder):
    def read(self, *files):
        paths = [self.write(f"step-{i}.json", data) for i, data in enumerate(files)]
        return read_steps(self.write("steps.json", {"results": gather_steps(paths)}))

    ONE = step_file("none", 1, "true", 2.0)
    OVERLAPPED = step_file("peer", 2, "true", 2.2, replica_ms=2.1, in_step_ms=2.15, after_ms=2.5,
                           comm_alone_ms=0.4)
    AFTER = step_file("peer", 2, "false", 2.6, replica_ms=2.1, comm_alone_ms=0.4)

    def test_tells_how_many_ranks_ran_and_each_ones_batch_whatever_the_options_leave_open(self):
        rows = gather_steps([self.write("one.json", self.ONE), self.write("two.json", self.OVERLAPPED)])
        self.assertEqual([row["ranks"] for row in rows], [1, 2])
        self.assertEqual({row["model"] for row in rows}, {"char, 16 x 256 tokens a rank, tf32"})

    def test_exposed_is_what_a_step_takes_longer_than_one_that_sends_nothing(self):
        (alone, (step,)), = self.read(self.OVERLAPPED, self.ONE).values()
        self.assertEqual(alone.time, 2.0)
        self.assertAlmostEqual(step.exposed(step.overlapped), 0.1)
        self.assertAlmostEqual(step.hidden(step.overlapped), 0.75)
        self.assertAlmostEqual(step.exposed(step.after), 0.4)

    def test_prefers_a_run_that_took_turns_with_sums_after_backward(self):
        for files in ((self.ONE, self.AFTER, self.OVERLAPPED), (self.OVERLAPPED, self.AFTER, self.ONE)):
            (_, (step,)), = self.read(*files).values()
            self.assertEqual((step.overlapped, step.after), (2.2, 2.5))

    def test_takes_a_run_without_overlap_alone(self):
        (_, (step,)), = self.read(self.ONE, self.AFTER).values()
        self.assertEqual((step.overlapped, step.after, step.time), (None, 2.6, 2.6))

    def test_the_table_has_each_figure(self):
        path = self.write("steps.json", {"results": gather_steps(
            [self.write(f"{i}.json", data) for i, data in enumerate((self.ONE, self.OVERLAPPED))])})
        self.assertIn("| 2 GPUs, peer access | 2.10 ms | 2.15 ms | 0.40 ms | 2.20 ms | 0.10 ms | 75 % | "
                      "2.50 ms | 0.40 ms | 1.100 |", scaling_tables.steps([path]))

    def test_runs_with_a_sharded_update_have_a_row_of_their_own(self):
        options = {**self.OVERLAPPED["options"], "shard-optimizer": "true"}
        (_, steps), = self.read(self.ONE, {**self.OVERLAPPED, "options": options}, self.OVERLAPPED).values()
        self.assertEqual([step.name for step in steps], ["peer access", "peer access, sharded update"])

    def test_a_run_takes_the_faster_schedule(self):
        for after_ms, time in ((2.5, 2.2), (2.15, 2.15)):
            (_, (step,)), = self.read(self.ONE, {**self.OVERLAPPED, "after_ms": after_ms}).values()
            self.assertEqual(step.time, time)


class AllReduces(InFolder):
    def setUp(self):
        super().setUp()
        self.path = self.write("peer.json", {
            "device": "A GPU", "ranks": 4, "transport": "peer", "link_gbps": 400.0, "graph_launches": 10,
            "baseline": "NCCL 2", "results": [{"size": 1 << 20, "time_us": 10.0, "baseline_time_us": 20.0}]})

    def test_bandwidth_is_that_of_the_bus(self):
        # 1 MiB in 10 us, and each of four ranks sends 2 * 3 / 4 of it.
        self.assertAlmostEqual(AllReduce(self.path).bandwidth(1 << 20, 10.0), 157.2864)

    def test_the_table_has_each_figure(self):
        self.assertIn("| 1 MiB | 10.0 µs / 20.0 µs | 0.50 | 39 % |", scaling_tables.all_reduce([self.path]))


class Words(unittest.TestCase):
    def test_times_have_three_digits_and_the_unit_that_fits(self):
        for seconds, text in ((1.234e-6, "1.23 µs"), (9.996e-6, "10.0 µs"), (999.4e-6, "999 µs"),
                              (999.6e-6, "1.00 ms"), (0.1234, "123 ms"), (12.34, "12.3 s")):
            self.assertEqual(scaling_tables.time_text(seconds), text)

    def test_sizes(self):
        for size, text in ((1024, "1 KiB"), (43 << 20, "43 MiB"), (1 << 30, "1 GiB"), (498_000_000, "498 MB")):
            self.assertEqual(scaling_tables.size_text(size), text)

    def test_shares(self):
        for share, text in ((0.0041, "0.4 %"), (0.126, "13 %"), (-0.0001, "0.0 %"), (-0.05, "-5.0 %")):
            self.assertEqual(scaling_tables.percent(share), text)


if __name__ == "__main__":
    unittest.main()
