"""The edges of some generators, compiled; `tcgpu.draws_in_numpy` has the same."""

import random

import numpy as np

from tcgpu import draws_in_numpy
from tcgpu.draws_in_numpy import GAP_BLOCK, GOLDEN, U64, mixed, permutation_rounds
from tcgpu.engines.native import jit, run_threads, shares, stoppable, stopped

_mixed, _deeper, _permuted_id = map(jit, (mixed, draws_in_numpy.deeper, draws_in_numpy.permuted_id))
draw, draw_cliques = draws_in_numpy.draw, draws_in_numpy.draw_cliques  # as fast as the rest of a generator


def draw_rmat(scale, m, bounds, seed, permuted):
    u, v = np.empty(m, np.int32), np.empty(m, np.int32)
    run_threads(_draw_rmat, scale, bounds, seed, permutation_rounds(seed), permuted, u, v, workers=shares(m))
    return u, v


def draw_gap(scale, m, bounds, seed):
    u, v = np.empty(m, np.int32), np.empty(m, np.int32)
    run_threads(_draw_gap, scale, bounds, seed, u, v, workers=shares(m))
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
def _draw_rmat(worker, workers, scale, bounds, seed, rounds, permuted, u, v):
    """Draw a share of the edges; each random number decides two levels."""
    key = _mixed(seed + GOLDEN)
    draws = U64((scale + 1) // 2)
    odd = U64(scale & 1)
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        i = j = U64(0)
        for level in range(draws):
            x = _random_at(key, U64(k) * draws + U64(level))
            for half in (x >> U64(32), x & U64(0xFFFFFFFF)):
                i, j = _deeper(i, j, half, bounds)
        i, j = i >> odd, j >> odd
        u[U64(k)] = _permuted_id(i, scale, rounds) if permuted else i
        v[U64(k)] = _permuted_id(j, scale, rounds) if permuted else j


@jit
def _draw_gap(worker, workers, scale, bounds, seed, u, v):
    """Draw a share of the blocks of edges. The numbers of a seed are those of `numpy.random.RandomState`."""
    share, blocks = (2**32 - 1) >> scale, -(-u.size // GAP_BLOCK)
    numbers, past = (scale, 2**32) if bounds is not None else (2, share << scale)
    first, last = blocks * worker // workers * GAP_BLOCK, blocks * (worker + 1) // workers * GAP_BLOCK
    for k in range(first, min(last, u.size)):
        if k % GAP_BLOCK == 0:
            random.seed(seed + k // GAP_BLOCK)
        i = j = U64(0)
        for _ in range(numbers):
            x = past
            while x >= past:
                x = np.int64(random.getrandbits(32))
            i, j = _deeper(i, j, x, bounds) if bounds is not None else (j, U64(x // share))
        u[U64(k)], v[U64(k)] = i, j


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
