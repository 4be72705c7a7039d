#!/usr/bin/env python3
"""Tests bench/collective_model.py against values worked out by hand."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "bench"))

from collective_model import Link, Network, fit, flat_ring, hierarchical_ring, ring, worst_error  # noqa: E402

MIB = 1 << 20
INSIDE = Link(3.4e-6, 370e9)
RAILS = Network("a rail for each GPU", 8, Link(4e-6, 50e9))
TCP = Network("TCP", 1, Link(30e-6, 10e9))


class Ring(unittest.TestCase):
    def test_two_ranks_exchange_halves_twice(self):
        self.assertAlmostEqual(ring(2, 1000, Link(5.0, 10.0)), 2 * (5.0 + 500 / 10))

    def test_one_rank_sends_nothing(self):
        self.assertEqual(ring(1, 1000, Link(5.0, 10.0)), 0)


class Prediction(unittest.TestCase):
    """Milliseconds of a sum of 25 or 250 MiB, hosts of eight GPUs."""

    def check(self, function, network, expected):
        for (ranks, mib), milliseconds in expected.items():
            with self.subTest(ranks=ranks, mib=mib):
                predicted = 1e3 * function(ranks // 8, 8, mib * MIB, INSIDE, network)
                # The expected values have two digits.
                self.assertLess(abs(predicted / milliseconds - 1), 0.03)

    def test_flat_ring_over_rails(self):
        self.check(flat_ring, RAILS, {(8, 25): 0.17, (16, 25): 0.25, (64, 25): 0.64, (1024, 25): 8.3, (64, 250): 1.9})

    def test_flat_ring_over_tcp(self):
        self.check(flat_ring, TCP, {(8, 25): 0.17, (16, 25): 5.8, (64, 25): 8.9, (1024, 25): 67, (1024, 250): 114})

    def test_hierarchical_ring_over_rails(self):
        self.check(hierarchical_ring, RAILS,
                   {(8, 25): 0.17, (16, 25): 0.25, (64, 25): 0.34, (1024, 25): 1.3, (64, 250): 2.5, (1024, 250): 3.6})

    def test_hierarchical_ring_over_tcp(self):
        self.check(hierarchical_ring, TCP,
                   {(8, 25): 0.17, (16, 25): 2.9, (64, 25): 5.2, (1024, 25): 13, (64, 250): 48, (1024, 250): 61})

    def test_hosts_of_one_gpu_are_a_flat_ring(self):
        self.assertAlmostEqual(hierarchical_ring(4, 1, MIB, INSIDE, TCP), ring(4, MIB, TCP.link))


class Fit(unittest.TestCase):
    SIZES = [1 << exponent for exponent in range(10, 31, 2)]

    def test_finds_the_link_that_made_the_points(self):
        for ranks in (2, 3, 8):
            link = Link(7e-6, 123e9)
            points = [(size, ring(ranks, size, link)) for size in self.SIZES]
            found = fit(points, ranks)
            self.assertAlmostEqual(found.alpha / link.alpha, 1)
            self.assertAlmostEqual(found.bandwidth / link.bandwidth, 1)
            self.assertLess(worst_error(points, ranks, found), 1e-9)

    def test_small_sizes_count_as_much_as_large_ones(self):
        # A tenth more on the largest of eleven points must not move what the small ones say.
        link = Link(7e-6, 123e9)
        points = [(size, ring(2, size, link)) for size in self.SIZES]
        points[-1] = (points[-1][0], 1.1 * points[-1][1])
        found = fit(points, 2)
        self.assertLess(abs(found.alpha / link.alpha - 1), 0.01)
        self.assertGreater(worst_error(points, 2, found), 0.05)

    def test_worst_error_is_the_largest_of_both_signs(self):
        link = Link(1.0, 1.0)
        self.assertAlmostEqual(worst_error([(2, 4.0), (2, 5.0), (2, 3.2)], 2, link), 0.25)


if __name__ == "__main__":
    unittest.main()
