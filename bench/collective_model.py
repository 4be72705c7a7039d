"""What an all-reduce costs by the alpha-beta model: a hop takes a fixed time, and each byte its own.

Pure functions. Sizes are bytes of one rank's array, times are seconds.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Link:
    """From a rank to its neighbour: what a hop takes besides its bytes, and bytes per second."""
    alpha: float
    bandwidth: float


@dataclass(frozen=True)
class Network:
    """What connects hosts: connections of a host that all its ranks share alike, and one of them."""
    name: str
    connections: int
    link: Link


def hops(ranks):
    """Of a ring: a reduce-scatter, then an all-gather."""
    return 2 * (ranks - 1)


def ring(ranks, size, link):
    """Each hop carries one rank's part."""
    return hops(ranks) * (link.alpha + size / ranks / link.bandwidth)


def flat_ring(hosts, gpus, size, inside, network):
    """A ring over all ranks for each connection, each with its part of the array: as fast as its slowest hop."""
    if hosts == 1:
        return ring(gpus, size, inside)
    slowest = Link(max(inside.alpha, network.link.alpha),
                   min(inside.bandwidth, network.connections * network.link.bandwidth))
    return ring(hosts * gpus, size, slowest)


def hierarchical_ring(hosts, gpus, size, inside, network):
    """A reduce-scatter in each host, then a ring between hosts for each GPU's part, all of them at once, then an
    all-gather in each host."""
    if hosts == 1:
        return ring(gpus, size, inside)
    share = Link(network.link.alpha, network.connections * network.link.bandwidth / gpus)
    return ring(gpus, size, inside) + ring(hosts, size / gpus, share)


def fit(points, ranks):
    """The Link of a ring over `ranks` that comes nearest to measured (size, time), by least squares of the relative
    errors."""
    rows = [(hops(ranks) / time, hops(ranks) / ranks * size / time) for size, time in points]
    aa, ab, bb = (sum(row[i] * row[j] for row in rows) for i, j in ((0, 0), (0, 1), (1, 1)))
    a, b = sum(row[0] for row in rows), sum(row[1] for row in rows)
    determinant = aa * bb - ab * ab
    return Link((a * bb - b * ab) / determinant, determinant / (b * aa - a * ab))


def worst_error(points, ranks, link):
    """The largest relative error of the model over measured (size, time)."""
    return max(abs(ring(ranks, size, link) / time - 1) for size, time in points)
