"""Random numbers, and the edges of three generators, drawn by NumPy.

The random numbers are those of splitmix64. Of `draw_rmat` and `attach`, `cpu.draws` has the same compiled, for many
edges.
"""

from itertools import pairwise

import numpy as np

from tcgpu.arrays import BLOCK, blocks, repeat

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)  # odd, so its multiples pass all 64-bit numbers before one repeats
wraps_around = np.errstate(over="ignore")  # decorates a function whose uint64 do


def in_a_thread(function, argument):
    """`function(argument)`: this thread does."""
    return function(argument)


def mixed(x):
    """Scramble 64-bit numbers: the finisher of splitmix64."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


def _random_at(key, k):
    """The k-th random numbers of a stream. There is no state, so one may begin anywhere."""
    return mixed(key + np.asarray(k, U64) * GOLDEN)


@wraps_around
def draw(seed, first, count):
    """`count` numbers of a stream, from number `first` on (uint64)."""
    key, drawn = mixed(seed + GOLDEN), np.empty(count, U64)
    for part in blocks(count):
        drawn[part] = _random_at(key, np.arange(first + part.start, first + part.stop))
    return drawn


@wraps_around
def draw_rmat(scale, m, bounds, seed, permuted):
    """Both ends of each edge; each random number decides two levels."""
    key = mixed(seed + GOLDEN)
    a, ab, abc = bounds
    draws, first = (scale + 1) // 2, np.arange(m, dtype=U64) * U64((scale + 1) // 2)
    i = j = np.zeros(m, U64)
    for level in range(draws):
        x = _random_at(key, first + U64(level))
        for half in (x >> U64(32), x & U64(0xFFFFFFFF)):
            low = half >= ab
            i = i << U64(1) | low
            j = j << U64(1) | ((half >= a) ^ low ^ (half >= abc))
    ends = [end >> U64(scale & 1) for end in (i, j)]
    return [(_permuted(scale, key, end) if permuted else end).astype(np.int32) for end in ends]


def _permuted(bits, key, x):
    """A permutation of the numbers below 2^bits: rounds of multiplications and shifts that have inverses."""
    mask, fold = U64((1 << bits) - 1), U64((bits + 1) // 2)
    for _ in range(3):
        key = mixed(key)
        x = (x * (key | U64(1)) + (key >> U64(32))) & mask
        x ^= x >> fold
    return x


def draw_cliques(n, sizes, first, seed):
    """Edges of cliques: each takes s vertices, from a random one on, and links each to all before it.

    first: where the edges of each clique begin, and the end of the last one's.
    """
    cuts = np.unique(np.searchsorted(first, [*range(0, int(first[-1]), BLOCK), first[-1]]))
    return np.concatenate([_some_cliques(n, sizes, seed, *cut) for cut in pairwise(cuts.tolist())], axis=1)


@wraps_around
def _some_cliques(n, sizes, seed, begin, end):
    """The edges of the cliques from number `begin` to before `end`."""
    sizes, keys = sizes[begin:end], _random_at(mixed(seed + GOLDEN), np.arange(begin, end))
    start, spread = (mixed(keys) % U64(n)).astype(np.int64), np.clip(n // sizes, 1, 4)
    begins, clique = np.cumsum(sizes) - sizes, repeat(np.arange(sizes.size), sizes)
    place = np.arange(clique.size) - begins[clique]  # of each vertex in its clique
    further = (_random_at(keys[clique], place + 1) % spread[clique].astype(U64)).astype(np.int64)
    vertex = ((start[clique] + place * spread[clique] + further) % n).astype(np.int32)
    second = repeat(np.arange(clique.size), place)  # of each edge: it is linked to the first vertices of its clique
    earlier = np.arange(second.size) - (np.cumsum(place) - place)[second]
    return np.stack([vertex[begins[clique[second]] + earlier], vertex[second]])


@wraps_around
def attach(first, n, k, seed, ends):
    """Fill `ends` with both ends of every edge. A random element of it is a vertex with probability ~ its degree."""
    key, put, drawn = mixed(seed + GOLDEN), 2 * max(first - 1, 0), 0
    ends[1:put:2] = np.arange(1, first)
    ends[:put:2] = 0
    found, numbers = ends[:put].tolist(), []
    for v in range(first, n):
        before, taken = len(found), []
        while len(taken) < k:
            if drawn == len(numbers):
                numbers += _random_at(key, np.arange(drawn, 2 * drawn + 64)).tolist()
            other = found[numbers[drawn] % before]
            drawn += 1
            if other not in taken:
                taken.append(other)
        found += [end for other in taken for end in (other, v)]
    ends[:] = found
