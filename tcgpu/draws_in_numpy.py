"""Random numbers, and the edges of some generators, drawn by NumPy.

The random numbers are those of splitmix64; those of `draw_gap` are GAP's, of mt19937. Of `draw_rmat`, `draw_gap` and
`attach`, `cpu.draws` has the same compiled, for many edges.
"""

from itertools import pairwise

import numpy as np

from tcgpu.arrays import BLOCK, blocks, repeat

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)  # odd, so its multiples pass all 64-bit numbers before one repeats
GAP_BLOCK = 1 << 18  # edges that have a seed of their own in `draw_gap`
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
    draws, first = (scale + 1) // 2, np.arange(m, dtype=U64) * U64((scale + 1) // 2)
    i = j = np.zeros(m, U64)
    for level in range(draws):
        x = _random_at(key, first + U64(level))
        for half in (x >> U64(32), x & U64(0xFFFFFFFF)):
            i, j = deeper(i, j, half, bounds)
    ends = [end >> U64(scale & 1) for end in (i, j)]
    return [(permuted_id(end, scale, permutation_rounds(seed)) if permuted else end).astype(np.int32) for end in ends]


def draw_gap(scale, m, bounds, seed):
    """Both ends of each edge: a random number decides a level; without `bounds`, an end, if it is below `past`."""
    u, v = np.empty((2, m), np.int32)
    share = (2**32 - 1) >> scale  # of the numbers, for each end: as libstdc++'s uniform distribution before GCC 11
    numbers, past = (scale, 2**32) if bounds else (2, share << scale)
    for block_seed, block in enumerate(blocks(m, GAP_BLOCK), seed):
        stream, size = np.random.RandomState(block_seed), u[block].size
        drawn = stream.randint(0, 2**32, 2 * size * numbers, np.uint32)  # NumPy keeps these numbers as they are
        drawn = drawn[drawn < past][: size * numbers].reshape(size, numbers).T
        i, j = np.zeros((2, size), U64) if bounds else drawn // np.uint32(share)
        for x in drawn if bounds else ():
            i, j = deeper(i, j, x, bounds)
        u[block], v[block] = i, j
    return u, v


def deeper(i, j, x, bounds):
    """Both ends of an edge, one level of R-MAT deeper, in the quarter that a number of 32 bits draws."""
    a, ab, abc = bounds
    low = x >= ab
    return i << U64(1) | U64(low), j << U64(1) | U64((x >= a) ^ low ^ (x >= abc))


@wraps_around
def permutation_rounds(seed):
    """The keys of the three rounds of `permuted_id`."""
    first = mixed(mixed(seed + GOLDEN))
    return first, mixed(first), mixed(mixed(first))


def permuted_id(x, bits, rounds):
    """A permutation of the numbers below 2^bits: rounds of multiplications and shifts that have inverses."""
    mask, fold = (U64(1) << U64(bits)) - U64(1), U64((bits + 1) // 2)
    for key in rounds:
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
