"""Graphs made to measure: the classes that the sources use at any size, and some whose triangles are known in advance.

    tcgpu.generate.rmat(16, seed=1)           a Graph
    GENERATORS["rmat"](scale=16, seed=1)      the same, by name
    edges("rmat", scale=16, seed=1)           its edges as drawn, with loops and duplicates: (u, v, n)

Sizes come first, `seed=0` by keyword. The same arguments give the same graph, whatever the machine, its number of
threads or its NumPy (whose random numbers may change from version to version; ours are counted, see `_draw`). A graph's
name is the call that made it. No size is too small: what has no room for edges has none.
"""

import functools
import inspect
import os

import numpy as np

from tcgpu import cleaning
from tcgpu.engines.native import jit, run_threads, shares, stoppable, stopped
from tcgpu.errors import GraphError
from tcgpu.graph import Graph
from tcgpu.suggest import unknown

U64 = np.uint64
GOLDEN = U64(0x9E3779B97F4A7C15)  # odd, so that its multiples pass every 64-bit number before one comes again
CLEANING = 32  # bytes that each edge takes while a Graph is made of it

GENERATORS = {}  # name -> function: its signature says what it takes, the first line of its docstring what it makes


def _generator(draw):
    """Enter into GENERATORS, and return, what makes a Graph of the edges `(u, v, n)` that `draw` draws."""
    signature = inspect.signature(draw)

    @functools.wraps(draw)
    def raw(*args, **knobs):
        _whole("seed", knobs.get("seed", 0), high=2**63 - 1)
        return draw(*args, **knobs)

    @functools.wraps(draw)
    def generate(*args, **knobs):
        given = signature.bind(*args, **knobs).arguments
        said = ", ".join(f"{what}={value}" for what, value in given.items())
        return Graph.from_edges(*raw(*args, **knobs), name=f"{draw.__name__}({said})")

    generate.edges = raw
    GENERATORS[draw.__name__] = generate
    return generate


def edges(name, *args, **knobs):
    """The edges of generator `name` as drawn, int32 and not cleaned: `(u, v, n)`. Where raw measurements begin."""
    if name not in GENERATORS:
        raise GraphError(unknown("generator", name, GENERATORS))
    return GENERATORS[name].edges(*args, **knobs)


# -------------------------------------------------------------------------------------------- classes of the sources


@_generator
def rmat(scale, edge_factor=16, a=0.57, b=0.19, c=0.19, permuted=True, *, seed=0):
    """R-MAT, as graph500 has it: 2^scale vertices, edge_factor edges drawn for each, a few of very high degree.

    The adjacency matrix is halved both ways, `scale` times over; an edge falls into the upper left quarter with
    probability a, upper right b, lower left c, else lower right. Numbers are then permuted, as graph500 wants it,
    so that a number tells nothing of a degree; `permuted=False` leaves the hubs in front. Loops and repeated edges
    come out of this, and vertices that no edge touches stay: graph500-scale20-ef16 counts only the others.
    """
    _whole("scale", scale, high=30)
    _whole("edge_factor", edge_factor)
    for what, share in (("a", a), ("b", b), ("c", c)):
        _share(what, share)
    _share("a + b + c", round(a + b + c, 9))
    n, m = 1 << scale, edge_factor << scale
    _check_fits(n, m)
    bounds = np.minimum(np.round(np.cumsum([a, b, c]) * 2**32), 2**32).astype(np.uint64)
    u, v = np.empty(m, np.int32), np.empty(m, np.int32)
    _in_shares(_rmat, m, scale, bounds, U64(seed), bool(permuted), u, v)
    return u, v, n


@_generator
def delaunay(n, numbering="multiscale", *, seed=0):
    """The Delaunay triangulation of n random points in the unit square: 3 nonzeros per column.

    numbering `multiscale` is that of the DIMACS challenge's delaunay_n10 to n24: each quarter of the points, and the
    quarter of that, and so on, comes before the rest, which follows a space-filling curve. `spatial` follows the curve
    with all points; `random` follows nothing.
    """
    _whole("n", n)
    _check_fits(n, 6 * n)
    points = _Chance(seed).shares(2 * n).reshape(n, 2)
    if numbering == "multiscale":
        points = points[np.lexsort((_morton(points), -_scale_of(n)))]
    elif numbering == "spatial":
        points = points[np.argsort(_morton(points), kind="stable")]
    elif numbering != "random":
        raise GraphError(f"numbering must be multiscale, spatial or random, not {numbering!r}")
    if n < 3:
        return (*_steps((n,), (1,)), n)
    from scipy.spatial import Delaunay

    found = []
    run_threads(lambda worker, workers: found.append(Delaunay(points)), workers=1, queue=np.zeros(1, np.int64))
    corners = found[0].simplices.astype(np.int32, copy=False).T
    return corners.ravel(), np.roll(corners, 1, axis=0).ravel(), n


@_generator
def mesh(rows, cols, *, seed=0):
    """A flat mesh: a grid, numbered by rows, whose cells have one diagonal each: 2 (rows - 1) (cols - 1) triangles."""
    _check_grid(rows=rows, cols=cols)
    return *_joined(_steps((rows, cols), step) for step in ((0, 1), (1, 0), (1, 1))), rows * cols


@_generator
def mesh3d(planes, rows, cols, nonzeros_per_column=7.39, *, seed=0):
    """A solid mesh: a grid of cubes cut into tetrahedra, made uneven; 7.39 nonzeros per column are those of `auto`.

    Six tetrahedra fill a cube: 7 nonzeros per column, less at the surface. Further diagonals of cubes and of their
    faces are added at random, or edges left out, until there are as many as asked for or no more to be had. Vertices
    are numbered row by row, plane by plane.
    """
    sizes = _check_grid(planes=planes, rows=rows, cols=cols)
    _number("nonzeros_per_column", nonzeros_per_column)
    n, chance = planes * rows * cols, _Chance(seed)
    cuts = (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1)
    others = (0, 1, -1), (1, 0, -1), (1, -1, 0), (1, 1, -1), (1, -1, 1), (1, -1, -1)
    u, v = _joined(_steps(sizes, step) for step in cuts)
    wanted = round(nonzeros_per_column * n)
    if wanted < u.size:
        return *_some(u, v, wanted, chance), n
    further = _joined(_steps(sizes, step) for step in others)
    return *_joined([(u, v), _some(*further, wanted - u.size, chance)]), n


@_generator
def road(rows, cols, kept=0.8, bends=0, *, seed=0):
    """Road-like: junctions on a grid, a share of the roads between neighbours kept, each with some bends along it.

    Of the roads to the right and down the share `kept` is there, of the diagonal ones an eighth of that share: 1.7
    nonzeros per column. A road has `bends` vertices of degree 2 in the mean, geometrically distributed: with 7 there
    are 13 times as many vertices and 1.05 nonzeros per column, as in great-britain_osm. Junctions are numbered by
    rows, the bends of a road after the junction where it begins.
    """
    _check_grid(rows=rows, cols=cols)
    _share("kept", kept)
    _number("bends", bends)
    n, chance = rows * cols, _Chance(seed)
    _check_fits(n + 2.2 * n * bends, 2.2 * n * (1 + bends))
    roads = []
    for step, share in ((0, 1), kept), ((1, 0), kept), ((1, 1), kept / 8):
        u, v = _steps((rows, cols), step)
        there = chance.shares(u.size) < share
        roads.append((u[there], v[there]))
    u, v = _joined(roads)
    if not bends:
        return u, v, n
    count = np.log(1 - chance.shares(u.size)) / np.log(bends / (1 + bends))
    return _bent(u, v, n, count.astype(np.int64))


@_generator
def copapers(n, mean_degree=73.9, *, seed=0):
    """Overlapping cliques of very different sizes, as in coPapersCiteseer: 37 nonzeros per column, many triangles.

    A clique of s vertices (as frequent as s^-2.5, up to 6.5 * mean_degree) takes one out of every four numbers from
    a random place on. Cliques are drawn until the mean degree is within 1 % of what is wanted; it never gets past half
    of n.
    """
    _whole("n", n)
    _number("mean_degree", mean_degree)
    wanted = round(min(mean_degree, (n - 1) / 2) * n / 2) if n > 2 else 0
    _check_fits(n, 2 * wanted)
    largest = min(max(3, int(6.5 * mean_degree)), n)
    pairs, u, v = wanted, np.empty(0, np.int32), np.empty(0, np.int32)
    for _ in range(8 if wanted else 0):
        u, v = _cliques(n, largest, pairs, seed)
        found = cleaning.clean_columns(u, v, n).row_idx.size
        if abs(found - wanted) <= wanted // 100:
            break
        pairs = round(pairs * (wanted / found) ** 1.2)  # the more there are, the more of them are already there
    return u, v, n


@_generator
def by_nonzeros(m, nonzeros_per_column, *, seed=0):
    """m edges at any number of nonzeros per column: for sweeps where nothing else changes.

    Each of the m / nonzeros_per_column vertices has that many edges (or, where that is no whole number, the one below
    or above) to vertices after it: a random one of the next four, one of the four after these, and so on, past the
    last vertex back to the first. So columns are as long as one another, but for some of the first ones, neighbours
    share neighbours, and the graph looks the same everywhere.
    """
    _whole("m", m)
    _number("nonzeros_per_column", nonzeros_per_column)
    n = round(m / nonzeros_per_column) if m and nonzeros_per_column else 0
    _check_fits(n, m)
    longest = -(-m // n) if n else 0
    if m and n < 2 * longest + 1:
        raise GraphError(f"{m} edges at {nonzeros_per_column} nonzeros per column leave {n} vertices, too few")
    spread = min(4, (n - 1) // (2 * longest)) if m else 1
    first = np.arange(n + 1) * m // max(n, 1)
    u = np.repeat(np.arange(n, dtype=np.int32), np.diff(first))
    place = np.arange(m) - first[u]
    reach = 1 + place * spread + _Chance(seed).below(spread, m)
    return u, ((u + reach) % max(n, 1)).astype(np.int32), n


# ------------------------------------------------------------------------------------------------------ random graphs


@_generator
def random(n, m, *, seed=0):
    """Erdos-Renyi G(n, m): m different edges, all sets of m equally likely."""
    _whole("n", n)
    _whole("m", m)
    possible = n * (n - 1) // 2
    if m > possible:
        raise GraphError(f"{n} vertices have no more than {possible} edges, not {m}")
    _check_fits(n, m)
    return *_pair_of(_sample(possible, m, _Chance(seed))), n


@_generator
def barabasi_albert(n, k, *, seed=0):
    """Preferential attachment: each new vertex links to k different earlier ones, likelier the higher their degree.

    The first k + 1 vertices are a star; k * (n - k) edges in all.
    """
    _whole("n", n)
    _whole("k", k)
    first = min(n, k + 1)
    m = max(first - 1, 0) + (n - first) * k
    _check_fits(n, m)
    ends = np.empty(2 * m, np.int32)
    queue = np.zeros(1, np.int64)
    run_threads(_attach, first, n, k, U64(seed), queue, ends, workers=1, queue=stoppable(queue, m))
    return ends[0::2].copy(), ends[1::2].copy(), n


@_generator
def watts_strogatz(n, k, rewired=0.1, *, seed=0):
    """A small world: a ring where each vertex has its k nearest, and the share `rewired` of the edges goes anywhere.

    A rewired edge that becomes a loop or meets another is drawn all the same: cleaning drops it.
    """
    _whole("n", n)
    _whole("k", k)
    _share("rewired", rewired)
    reach = min(k // 2, n // 2)
    _check_fits(n, n * reach)
    chance = _Chance(seed)
    u = np.tile(np.arange(n, dtype=np.int32), reach)
    v = (u + np.repeat(np.arange(1, reach + 1, dtype=np.int32), n)) % np.int32(max(n, 1))
    anywhere = chance.shares(u.size) < rewired
    v[anywhere] = chance.below(n, np.count_nonzero(anywhere))
    return u, v, n


# ---------------------------------------------------------------------------------------------------- without a chance


@_generator
def empty(n, *, seed=0):
    """No edges at all."""
    _whole("n", n)
    return np.empty(0, np.int32), np.empty(0, np.int32), n


@_generator
def path(n, *, seed=0):
    """Vertices in a row."""
    _check_grid(n=n)
    return *_steps((n,), (1,)), n


@_generator
def cycle(n, *, seed=0):
    """Vertices in a circle, from three on; fewer are a path."""
    _check_grid(n=n)
    u, v = _steps((n,), (1,))
    return (np.append(u, np.int32(n - 1)), np.append(v, np.int32(0)), n) if n > 2 else (u, v, n)


@_generator
def star(n, *, seed=0):
    """Vertex 0 linked to the n - 1 others."""
    _check_grid(n=n)
    leaves = np.arange(1, n, dtype=np.int32)
    return np.zeros_like(leaves), leaves, n


@_generator
def clique(n, *, seed=0):
    """Every vertex linked to every other: n (n - 1) (n - 2) / 6 triangles."""
    _whole("n", n)
    _check_fits(n, n * (n - 1) // 2)
    first = np.arange(n, dtype=np.int32)
    u = np.repeat(first, np.arange(n)[::-1])
    v = np.concatenate([first[j + 1 :] for j in range(n)]) if n else u
    return u, v, n


@_generator
def complete_bipartite(left, right, *, seed=0):
    """Every one of the `left` first vertices linked to each of the `right` others: no triangle."""
    _whole("left", left)
    _whole("right", right)
    _check_fits(left + right, left * right)
    u = np.repeat(np.arange(left, dtype=np.int32), right)
    return u, np.tile(np.arange(left, left + right, dtype=np.int32), left), left + right


@_generator
def grid(rows, cols, *, seed=0):
    """A square grid, numbered by rows: no triangle."""
    _check_grid(rows=rows, cols=cols)
    return *_joined(_steps((rows, cols), step) for step in ((0, 1), (1, 0))), rows * cols


# ------------------------------------------------------------------------------------------------------------- pieces


class _Chance:
    """A stream of random numbers, drawn as arrays."""

    def __init__(self, seed):
        self._key, self._drawn = U64(_mixed(U64(seed) + GOLDEN)), 0

    def numbers(self, count):
        """uint64, all of them equally likely."""
        drawn = np.empty(count, np.uint64)
        _in_shares(_draw_all, count, self._key, self._drawn, drawn)
        self._drawn += count
        return drawn

    def shares(self, count):
        """float64 in 0 <= x < 1."""
        return (self.numbers(count) >> U64(11)) * 2.0**-53

    def below(self, bound, count):
        """int64 in 0 <= x < bound."""
        return (self.numbers(count) % U64(max(bound, 1))).astype(np.int64)

    def some(self, of, wanted):
        """`wanted` different ones of the first `of` numbers, in no order."""
        return np.argpartition(self.numbers(of), wanted)[:wanted] if wanted < of else np.arange(of)


def _steps(sizes, step):
    """The edges of a grid that lead `step` further: along its axes, forwards or (-1) backwards."""
    number = np.arange(np.prod(sizes, dtype=np.int64), dtype=np.int32).reshape(sizes)
    here = tuple(slice(max(0, -by), size - max(0, by)) for size, by in zip(sizes, step))
    there = tuple(slice(max(0, by), size - max(0, -by)) for size, by in zip(sizes, step))
    if any(part.start >= size or part.stop <= 0 for parts in (here, there) for part, size in zip(parts, sizes)):
        return np.empty(0, np.int32), np.empty(0, np.int32)
    return number[here].ravel(), number[there].ravel()


def _joined(pieces):
    u, v = zip(*pieces)
    return np.concatenate(u), np.concatenate(v)


def _some(u, v, wanted, chance):
    """`wanted` of the edges at random, or all of them where there are fewer, in their order."""
    if wanted >= u.size:
        return u, v
    chosen = np.sort(chance.some(u.size, wanted))
    return u[chosen], v[chosen]


def _bent(u, v, n, count):
    """Put count[e] new vertices along edge e; numbers grow along the edges, in the order of where these begin."""
    order = np.argsort(u, kind="stable")
    u, v, count = u[order], v[order], count[order]
    before = np.cumsum(count) - count  # bends along earlier edges
    moved = np.arange(n) + np.append(before, count.sum())[np.searchsorted(u, np.arange(n))]
    edge = np.repeat(np.arange(u.size), count + 1)
    place = np.arange(edge.size) - (before + np.arange(u.size))[edge]  # 0 at the begin of the edge
    bend = u[edge] + before[edge] + place  # the number of the bend before this place
    start = np.where(place == 0, moved[u[edge]], bend)
    end = np.where(place == count[edge], moved[v[edge]], bend + 1)
    return start.astype(np.int32), end.astype(np.int32), n + int(count.sum())


def _scale_of(n):
    """How coarse each of n random points is: 0 for the last three quarters, 1 for three quarters of the rest, ..."""
    coarse = np.zeros(n, np.int8)
    while n := n // 4:
        coarse[:n] += 1
    return coarse


def _morton(points):
    """The place of each point of the unit square on the Z-shaped curve: the bits of its coordinates, interleaved."""
    code = np.zeros(len(points), np.uint32)
    for axis in 0, 1:
        bits = (points[:, axis] * 2**16).astype(np.uint32)
        for shift, mask in (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555):
            bits = (bits | bits << np.uint32(shift)) & np.uint32(mask)
        code |= bits << np.uint32(axis)
    return code


def _cliques(n, largest, pairs, seed):
    """The edges of random cliques that have `pairs` edges together, or a few more."""
    chance = _Chance(seed)
    sizes, have = [], 0
    while have < pairs:
        tail = 2**-1.5 + chance.shares(1 << 12) * ((largest + 1) ** -1.5 - 2**-1.5)
        sizes.append((tail ** (-1 / 1.5)).astype(np.int64))
        have += int((sizes[-1] * (sizes[-1] - 1) // 2).sum())
    sizes = np.concatenate(sizes)
    first = np.concatenate(([0], np.cumsum(sizes * (sizes - 1) // 2)))
    cliques = int(np.searchsorted(first, pairs))
    m = int(first[cliques])
    u, v = np.empty(m, np.int32), np.empty(m, np.int32)
    _in_shares(_link_all, m, n, sizes[:cliques], first[: cliques + 1], U64(seed), u, v)
    return u, v


def _sample(possible, wanted, chance):
    """`wanted` different numbers below `possible`."""
    if wanted > possible // 4:
        return chance.some(possible, wanted)
    found = np.empty(0, np.int64)
    while found.size < wanted:
        more = chance.below(possible, wanted - found.size + wanted // 32)
        found = np.sort(np.concatenate((found, more)))
        found = found[np.diff(found, prepend=-1) > 0]
    return found[np.sort(chance.some(found.size, wanted))]


def _pair_of(code):
    """The pair (j, i), j < i, whose place in the list (0, 1), (0, 2), (1, 2), (0, 3), ... is `code`."""
    i = ((1 + np.sqrt(1 + 8 * code.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > code  # the square root was rounded
    i += i * (i + 1) // 2 <= code
    return (code - i * (i - 1) // 2).astype(np.int32), i.astype(np.int32)


def _in_shares(function, m, *args):
    run_threads(function, *args, workers=shares(m))


# ----------------------------------------------------------------------------------------------------------- compiled


@jit
def _mixed(x):
    """A 64-bit number that tells nothing of x: the finisher of splitmix64."""
    x = (x ^ (x >> U64(30))) * U64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> U64(27))) * U64(0x94D049BB133111EB)
    return x ^ (x >> U64(31))


@jit
def _draw(key, k):
    """The k-th random number of a stream: no state, so that every worker can begin anywhere."""
    return _mixed(key + U64(k) * GOLDEN)


@jit
def _draw_all(worker, workers, key, first, drawn):
    for k in range(drawn.size * worker // workers, drawn.size * (worker + 1) // workers):
        drawn[k] = _draw(key, first + k)


@jit
def _rmat(worker, workers, scale, bounds, seed, permuted, u, v):
    """Draw a share of the edges, two levels from each random number."""
    key = _mixed(seed + GOLDEN)
    a, ab, abc = bounds
    draws = U64((scale + 1) // 2)
    odd = U64(scale & 1)
    rounds = _rounds(key)
    for k in range(u.size * worker // workers, u.size * (worker + 1) // workers):
        i = j = U64(0)
        for level in range(draws):
            x = _draw(key, U64(k) * draws + U64(level))
            for half in (x >> U64(32), x & U64(0xFFFFFFFF)):
                low = half >= ab
                i = i << U64(1) | U64(low)
                j = j << U64(1) | U64((half >= a) ^ low ^ (half >= abc))
        i, j = i >> odd, j >> odd
        u[U64(k)] = _permuted(i, scale, rounds) if permuted else i
        v[U64(k)] = _permuted(j, scale, rounds) if permuted else j


@jit
def _rounds(key):
    """What each round of a permutation multiplies by."""
    first = _mixed(key)
    second = _mixed(first)
    return first, second, _mixed(second)


@jit
def _permuted(x, bits, rounds):
    """A permutation of the numbers of so many bits: rounds of multiplying and folding, each with an inverse."""
    mask = (U64(1) << U64(bits)) - U64(1)
    fold = U64((bits + 1) // 2)
    for key in rounds:
        x = (x * (key | U64(1)) + (key >> U64(32))) & mask
        x ^= x >> fold
    return x


@jit
def _link_all(worker, workers, n, sizes, first, seed, u, v):
    """Draw a share of the cliques: each links everyone of s numbers, from a random one on, to all before it."""
    key = _mixed(seed + GOLDEN)
    members = np.empty(sizes.max(), np.int64)
    begin = np.searchsorted(first, u.size * worker // workers)
    end = np.searchsorted(first, u.size * (worker + 1) // workers)
    for clique in range(begin, end):
        own = _draw(key, clique)
        start = np.int64(_mixed(own) % U64(n))
        spread = max(1, min(4, n // sizes[clique]))
        put = first[clique]
        for s in range(sizes[clique]):
            members[s] = (start + s * spread + np.int64(_draw(own, s + 1) % U64(spread))) % n
            for r in range(s):
                u[put] = members[r]
                v[put] = members[s]
                put += 1


@jit
def _attach(worker, workers, first, n, k, seed, queue, ends):
    """Fill `ends`, the two ends of every edge: an end drawn from them is a vertex drawn by its degree."""
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
            other = ends[_draw(key, drawn) % U64(before)]
            drawn += 1
            again = False
            for taken in range(before, put, 2):
                again |= ends[taken] == other
            if not again:
                ends[put], ends[put + 1] = other, v
                put += 2


# ------------------------------------------------------------------------------------------------------------- checks


def _whole(what, value, high=cleaning.MAX_VERTICES):
    """Refuse what is no whole number in 0..high."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not 0 <= value <= high:
        raise GraphError(f"{what} must be a whole number in 0..{high}, not {value!r}")


def _number(what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value < np.inf:
        raise GraphError(f"{what} must be a number of at least 0, not {value!r}")


def _share(what, value):
    if isinstance(value, bool) or not isinstance(value, (int, float, np.number)) or not 0 <= value <= 1:
        raise GraphError(f"{what} must be a number in 0..1, not {value!r}")


def _check_grid(**sizes):
    """Refuse a grid whose sizes are no whole numbers or that is too large; returns the sizes."""
    n = 1
    for what, size in sizes.items():
        _whole(what, size)
        n *= int(size)
    _check_fits(n, 7 * n)
    return tuple(sizes.values())


def _check_fits(n, m):
    """Refuse what has more vertices than a graph can, or takes more memory than this machine has."""
    if n > cleaning.MAX_VERTICES:
        raise GraphError(f"{n:,.0f} vertices are more than {cleaning.MAX_VERTICES:,}, the most there can be")
    wanted = CLEANING * m + 24 * n
    there = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if wanted > there:
        told = f"{wanted / 1e9:,.0f} GB to make, and this machine has {there / 1e9:,.0f}"
        raise GraphError(f"{n:,.0f} vertices and {m:,.0f} edges take {told}")
