"""The edges of two generators, compiled; `tcgpu.draws_in_numpy` has the same."""

import numpy as np

from tcgpu import draws_in_numpy
from tcgpu.draws_in_numpy import GOLDEN, U64, mixed
from tcgpu.engines.native import jit, run_threads, shares, stoppable, stopped

_mixed = jit(mixed)
draw, draw_cliques = draws_in_numpy.draw, draws_in_numpy.draw_cliques  # as fast as the rest of a generator


def draw_rmat(scale, m, bounds, seed, permuted):
    u, v = np.empty(m, np.int32), np.empty(m, np.int32)
    run_threads(_draw_rmat, scale, bounds, seed, permuted, u, v, workers=shares(m))
    return u, v


def attach(first, n, k, seed, ends):
    queue = np.zeros(1, np.int64)
    run_threads(_attach, first, n, k, seed, queue, ends, workers=1, queue=stoppable(queue, ends.size // 2))


def in_a_thread(function, argument):
    """`function(argument)`, called in a pool thread, so that Ctrl-C interrupts the wait for it."""
    found = []
    run_threads(lambda worker, workers: found.append(function(argument)), workers=1, queue=np.zeros(1, np.int64))
    return found[0]


@jit
def _random_at(key, k):
    """The k-th random number of a stream. There is no state, so every worker can begin anywhere."""
    return _mixed(key + U64(k) * GOLDEN)


@jit
def _draw_rmat(worker, workers, scale, bounds, seed, permuted, u, v):
    """Draw a share of the edges; each random number decides two levels."""
    key = _mixed(seed + GOLDEN)
    a, ab, abc = bounds
    draws = U64((scale + 1) // 2)
    odd = U64(scale & 1)
    rounds = _permutation_rounds(key)
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        i = j = U64(0)
        for level in range(draws):
            x = _random_at(key, U64(k) * draws + U64(level))
            for half in (x >> U64(32), x & U64(0xFFFFFFFF)):
                low = half >= ab
                i = i << U64(1) | U64(low)
                j = j << U64(1) | U64((half >= a) ^ low ^ (half >= abc))
        i, j = i >> odd, j >> odd
        u[U64(k)] = _permuted(i, scale, rounds) if permuted else i
        v[U64(k)] = _permuted(j, scale, rounds) if permuted else j


@jit
def _permutation_rounds(key):
    """The keys of the three rounds of `_permuted`."""
    first = _mixed(key)
    second = _mixed(first)
    return first, second, _mixed(second)


@jit
def _permuted(x, bits, rounds):
    """A permutation of the numbers below 2^bits: rounds of multiplications and shifts that have inverses."""
    mask = (U64(1) << U64(bits)) - U64(1)
    fold = U64((bits + 1) // 2)
    for key in rounds:
        x = (x * (key | U64(1)) + (key >> U64(32))) & mask
        x ^= x >> fold
    return x


@jit
def _attach(worker, workers, first, n, k, seed, queue, ends):
    """Fill `ends` with both ends of every edge. A random element of it is a vertex with probability ~ its degree."""
    key = _mixed(seed + GOLDEN)
    put = 0
    for v in range(1, first):
        ends[put], ends[put + 1] = 0, v
        put += 2
    drawn = 0
    for v in range(first, n):
        if stopped(queue):
            return
        before = put
        while put < before + 2 * k:
            other = ends[_random_at(key, drawn) % U64(before)]
            drawn += 1
            taken = False
            for earlier in range(before, put, 2):
                taken |= ends[earlier] == other
            if not taken:
                ends[put], ends[put + 1] = other, v
                put += 2
