"""Generated graphs: the classes that the papers use, at any size, and graphs whose number of triangles is known.

Every generator takes sizes and `seed=0` by keyword. The same arguments give the same graph on every machine, with any
number of threads and any version of NumPy, whose own random numbers may change (see `draws_in_numpy`). The name of a
graph is the call that made it. No size is too small: a graph without room for edges has none.
"""

import functools
import inspect
import math
import os
from collections.abc import Callable
from typing import Any, Literal, ParamSpec

import numpy as np

from tcgpu import clean
from tcgpu.arrays import repeat
from tcgpu.engines.choice import in_numpy
from tcgpu.errors import SMALLER, GraphError, TooLarge, needing, roomy
from tcgpu.graph import Graph
from tcgpu.suggest import bound, check_known

Sizes = ParamSpec("Sizes")  # the parameters of a generator

U64 = np.uint64
LARGEST = {"seed": 2**63 - 1, "scale": 30, "a": 1, "b": 1, "c": 1, "a + b + c": 1, "kept": 1, "rewired": 1}  # arguments
GAP_BOUNDS = U64(2448131456), U64(3264174976), U64(4080219008)  # of 32 bits: as float32 over .57, from .76, over .95
EDGE_BYTES, VERTEX_BYTES = 32, 24  # memory for each while a Graph is made

GENERATORS: dict[str, Callable[..., Graph]] = {}  # by name


def _generator(draw: Callable[Sizes, Any]) -> Callable[Sizes, Graph]:
    """Decorate a function that draws edges `(u, v, n)`: it then returns a Graph; its attribute `edges` draws edges."""
    signature = inspect.signature(draw).replace(return_annotation=Graph)

    @roomy
    @functools.wraps(draw)
    def raw(*args, **knobs):
        given = bound(draw.__name__, signature, args, knobs).arguments
        for name, value in given.items():
            given[name] = _checked(name, value, signature.parameters[name].annotation)
        return draw(**given)

    @functools.wraps(draw)
    def generate(*args, **knobs):
        given = bound(draw.__name__, signature, args, knobs).arguments
        call = ", ".join(f"{name}={value}" for name, value in given.items())
        return Graph.from_edges(*raw(*args, **knobs), name=f"{draw.__name__}({call})")

    generate.__signature__, generate.edges = signature, raw  # type: ignore[attr-defined]
    GENERATORS[draw.__name__] = generate
    return generate


def __dir__():
    return sorted([*GENERATORS, "GENERATORS", "edges"])


def edges(name: str, *args: Any, **knobs: Any) -> tuple[np.ndarray, np.ndarray, int]:
    """Draw the raw edges of a generator, before they are cleaned, for measurements that start from raw edges.

    Parameters
    ----------
    name : str
        A key of `GENERATORS`; the other arguments are that generator's.

    Returns
    -------
    u, v : arrays of int32
        Both ends of each edge, with loops and duplicates.
    n : int
        The number of vertices.
    """
    return GENERATORS[check_known("generator", name, GENERATORS, GraphError)].edges(*args, **knobs)  # type: ignore[attr-defined]


# Classes of graphs that the papers use


@_generator
def rmat(
    scale: int,
    edge_factor: int = 16,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    permuted: bool = True,
    *,
    seed: int = 0,
):
    """R-MAT, as in graph500: 2^scale vertices, edge_factor edges drawn for each, a few of very high degree.

    The adjacency matrix is split into four quarters, `scale` times; each time the edge is in one of them. Loops and
    repeated edges are drawn, too. Vertices without an edge are kept; graph500-scale20-ef16 counts only the others.

    Parameters
    ----------
    a, b, c : float
        The probabilities of the upper left, upper right and lower left quarter; the lower right has the rest.
    permuted : bool
        Permute the vertex numbers, as graph500 does; otherwise high degrees come first.
    """
    _checked("a + b + c", round(a + b + c, 9), float)
    n, m = 1 << scale, edge_factor << scale
    _check_fits(n, m)
    bounds = np.minimum(np.round(np.cumsum([a, b, c]) * 2**32), 2**32).astype(np.uint64)
    return *_draws(m * scale).draw_rmat(scale, m, bounds, U64(seed), bool(permuted)), n


@_generator
def delaunay(n: int, numbering: Literal["multiscale", "spatial", "random"] = "multiscale", *, seed: int = 0):
    """The Delaunay triangulation of n random points in the unit square: 3 nonzeros per column.

    Parameters
    ----------
    numbering : {"multiscale", "spatial", "random"}
        "spatial": the points are in the order of a space-filling curve. "multiscale", as in delaunay_n10 to n24 of the
        DIMACS challenge: a random quarter of the points comes first, then the others in the order of the curve; the
        quarter is numbered in the same way.
    """
    _check_fits(n, 6 * n)
    points = _Random(seed).uniform(2 * n).reshape(n, 2)
    if numbering == "multiscale":
        points = points[np.lexsort((_morton(points), -_coarseness(n)))]
    elif numbering == "spatial":
        points = points[np.argsort(_morton(points), kind="stable")]
    elif numbering != "random":
        raise GraphError(f"numbering must be multiscale, spatial or random, not {numbering!r}")
    if n < 3:
        return *_grid_edges((n,), (1,)), n
    with needing("a Delaunay triangulation"):
        from scipy.spatial import Delaunay

    corners = _draws(n).in_a_thread(Delaunay, points).simplices.astype(np.int32, copy=False).T
    return corners.ravel(), np.roll(corners, 1, axis=0).ravel(), n


@_generator
def mesh(rows: int, cols: int, *, seed: int = 0):
    """A flat mesh: a grid, numbered by rows, with one diagonal in each cell: 2 (rows - 1) (cols - 1) triangles."""
    return *_grid_edges((rows, cols), (0, 1), (1, 0), (1, 1)), rows * cols


@_generator
def mesh3d(planes: int, rows: int, cols: int, nonzeros_per_column: float = 7.39, *, seed: int = 0):
    """A solid mesh: a grid of cubes, numbered by planes and rows, each cut into six tetrahedra, with random changes.

    Parameters
    ----------
    nonzeros_per_column : float
        The tetrahedra alone have 7 edges a vertex, fewer at the surface. Random diagonals of cubes and faces are added,
        or random edges removed, to get this mean, or all diagonals if they are too few. The matrix `auto` has 7.39.
    """
    sizes, n, random = (planes, rows, cols), planes * rows * cols, _Random(seed)
    u, v = _grid_edges(sizes, (0, 0, 1), (0, 1, 0), (1, 0, 0), (0, 1, 1), (1, 0, 1), (1, 1, 0), (1, 1, 1))
    m = round(nonzeros_per_column * n)
    if m < u.size:
        return *_subset((u, v), m, random), n
    more = _grid_edges(sizes, (0, 1, -1), (1, 0, -1), (1, -1, 0), (1, 1, -1), (1, -1, 1), (1, -1, -1))
    return *np.concatenate([(u, v), _subset(more, m - u.size, random)], axis=1), n


@_generator
def road(rows: int, cols: int, kept: float = 0.8, bends: float = 0, *, seed: int = 0):
    """Road-like: junctions on a grid, a fraction of the roads between neighbours, each with some bends along it.

    Parameters
    ----------
    rows, cols : int
        The junctions, numbered by rows; the bends of a road follow the junction where it begins.
    kept : float
        The fraction of roads to the right and down that are kept, and of diagonals kept / 8: 1.7 nonzeros per column.
    bends : float
        The mean number of vertices of degree 2 along a road, geometrically distributed. With 1.3, and 0.535 of the
        roads kept, there are 1.05 nonzeros per column, as in great-britain_osm, and 1.2 triangles for a thousand edges.
    """
    n, random = rows * cols, _Random(seed)
    _check_fits(n + 2.2 * n * bends, 2.2 * n * (1 + bends))
    roads = []
    for step, share in ((0, 1), kept), ((1, 0), kept), ((1, 1), kept / 8):
        both = np.array(_grid_edges((rows, cols), step))
        roads.append(both[:, random.uniform(both.shape[1]) < share])
    u, v = np.ascontiguousarray(np.concatenate(roads, axis=1))
    if not bends:
        return u, v, n
    count = np.log(1 - random.uniform(u.size)) / np.log(bends / (1 + bends))
    return _with_bends(u, v, n, count.astype(np.int64))


@_generator
def copapers(n: int, mean_degree: float = 73.9, *, seed: int = 0):
    """Overlapping cliques of very different sizes, as in coPapersCiteseer: 37 nonzeros per column, many triangles.

    A clique has s vertices with a frequency of s^-2.5, at most 6.5 * mean_degree; they are one of every four numbers
    from a random one on. Cliques are drawn until the mean degree is within 1 % of `mean_degree`, or half of n.
    """
    target = round(min(mean_degree, (n - 1) / 2) * n / 2) if n > 2 else 0
    _check_fits(n, 2 * target)
    largest = min(max(3, int(6.5 * mean_degree)), n)
    pairs, u, v = target, np.empty(0, np.int32), np.empty(0, np.int32)
    for _ in range(8 if target else 0):
        u, v = _cliques(n, largest, pairs, seed)
        found = clean.clean_columns(u, v, n).row_idx.size
        if abs(found - target) <= target // 100:
            break
        pairs = round(pairs * (target / found) ** 1.2)  # the more there are, the more of them are duplicates
    return u, v, n


@_generator
def by_nonzeros(m: int, nonzeros_per_column: float, *, seed: int = 0):
    """M edges at any number of nonzeros per column: for sweeps where nothing else changes.

    There are m / nonzeros_per_column vertices, on a ring. Each has nonzeros_per_column edges (rounded down or up) to
    vertices after it: to a random one of the next four, one of the four after these, and so on. So all columns but some
    of the first ones have equal lengths, and neighbours have common neighbours everywhere.
    """
    n = round(m / nonzeros_per_column) if m and nonzeros_per_column else 0
    _check_fits(n, m)
    longest = -(-m // n) if n else 0
    if m and n < 2 * longest + 1:
        raise GraphError(f"{m} edges at {nonzeros_per_column} nonzeros per column leave {n} vertices, too few")
    spread = min(4, (n - 1) // (2 * longest)) if m else 1
    first = np.arange(n + 1, dtype=np.int64) * m // max(n, 1)
    u = repeat(np.arange(n, dtype=np.int32), np.diff(first))
    place = np.arange(m) - first[u]
    reach = 1 + place * spread + _Random(seed).below(spread, m)
    return u, ((u + reach) % max(n, 1)).astype(np.int32), n


# Graphs of the GAP benchmark suite, as it drew them before 2023; it has only those of seed 0


@_generator
def gap_kron(scale: int, edge_factor: int = 16, *, seed: int = 0):
    """GAP-kron, R-MAT with 106,873,365,648 triangles at scale 27. The suite then permutes the vertex numbers."""
    return _gap_edges(scale, edge_factor, GAP_BOUNDS, seed)


@_generator
def gap_urand(scale: int, edge_factor: int = 16, *, seed: int = 0):
    """GAP-urand, where each end of each edge is any vertex: 5,378 triangles at scale 27."""
    return _gap_edges(scale, edge_factor, None, seed)


def _gap_edges(scale, edge_factor, bounds, seed):
    n, m = 1 << scale, edge_factor << scale
    _check_fits(n, m)
    of_block = (27491095 + seed * 0x9E3779B9) % 2**31  # GAP's; others are far from each other
    return *_draws(m * scale).draw_gap(scale, m, bounds, of_block), n


# Random graphs


@_generator
def random(n: int, m: int, *, seed: int = 0):
    """Erdos-Renyi G(n, m): m different edges, all sets of m equally likely."""
    possible = n * (n - 1) // 2
    if m > possible:
        raise GraphError(f"{n} vertices have no more than {possible} edges, not {m}")
    _check_fits(n, m)
    return *_pair_of(_sample(possible, m, _Random(seed))), n


@_generator
def barabasi_albert(n: int, k: int, *, seed: int = 0):
    """Preferential attachment: each new vertex links to k different earlier ones, likelier the higher their degree.

    The first k + 1 vertices are a star; k * (n - k) edges in all.
    """
    first = min(n, k + 1)
    m = max(first - 1, 0) + (n - first) * k
    _check_fits(n, m)
    ends = np.empty(2 * m, np.int32)
    _draws(20 * m).attach(first, n, k, U64(seed), ends)
    return ends[0::2].copy(), ends[1::2].copy(), n


@_generator
def watts_strogatz(n: int, k: int, rewired: float = 0.1, *, seed: int = 0):
    """A small world: a ring where each vertex is linked to its k nearest, and some edges lead to random vertices.

    Parameters
    ----------
    rewired : float
        The fraction of edges that lead to a random vertex; loops and duplicates among them are drawn, then dropped.
    """
    reach = min(k // 2, n // 2)
    _check_fits(n, n * reach)
    random = _Random(seed)
    u = np.tile(np.arange(n, dtype=np.int32), reach)
    v = (u + repeat(np.arange(1, reach + 1, dtype=np.int32), n)) % np.int32(max(n, 1))
    anywhere = random.uniform(u.size) < rewired
    v[anywhere] = random.below(n, np.count_nonzero(anywhere))
    return u, v, n


# Graphs without randomness: the seed changes nothing


@_generator
def empty(n: int, *, seed: int = 0):
    """No edges at all."""
    return np.empty(0, np.int32), np.empty(0, np.int32), n


@_generator
def path(n: int, *, seed: int = 0):
    """Vertices in a row."""
    return *_grid_edges((n,), (1,)), n


@_generator
def cycle(n: int, *, seed: int = 0):
    """Vertices in a circle, from three on; fewer are a path."""
    u, v = _grid_edges((n,), (1,))
    return (np.append(u, np.int32(n - 1)), np.append(v, np.int32(0)), n) if n > 2 else (u, v, n)


@_generator
def star(n: int, *, seed: int = 0):
    """Vertex 0 linked to the n - 1 others."""
    _check_fits(n, n)
    leaves = np.arange(1, n, dtype=np.int32)
    return np.zeros_like(leaves), leaves, n


@_generator
def clique(n: int, *, seed: int = 0):
    """Every vertex linked to every other: n (n - 1) (n - 2) / 6 triangles."""
    _check_fits(n, n * (n - 1) // 2)
    first = np.arange(n, dtype=np.int32)
    u = repeat(first, np.arange(n)[::-1])
    v = np.concatenate([first[j + 1 :] for j in range(n)]) if n else u
    return u, v, n


@_generator
def complete_bipartite(left: int, right: int, *, seed: int = 0):
    """Every one of the `left` first vertices linked to each of the `right` others: no triangle."""
    _check_fits(left + right, left * right)
    u = repeat(np.arange(left, dtype=np.int32), right)
    return u, np.tile(np.arange(left, left + right, dtype=np.int32), left), left + right


@_generator
def grid(rows: int, cols: int, *, seed: int = 0):
    """A square grid, numbered by rows: no triangle."""
    return *_grid_edges((rows, cols), (0, 1), (1, 0)), rows * cols


# What generators share


class _Random:
    """A stream of random numbers, drawn as arrays."""

    def __init__(self, seed):
        self._seed, self._drawn = U64(seed), 0

    def numbers(self, count):
        """uint64, all of them equally likely."""
        first, self._drawn = self._drawn, self._drawn + count
        return _draws(count).draw(self._seed, first, count)

    def uniform(self, count):
        """float64 in 0 <= x < 1."""
        return (self.numbers(count) >> U64(11)) * 2.0**-53

    def below(self, bound, count):
        """int64 in 0 <= x < bound."""
        return (self.numbers(count) % U64(max(bound, 1))).astype(np.int64)

    def choice(self, size, count):
        """`count` different numbers below `size`, unsorted; all if there are no more."""
        return np.argpartition(self.numbers(size), count)[:count] if count < size else np.arange(size)


def _grid_edges(sizes, *steps):
    """The edges of a grid between points that differ by one of the `steps`: 1 forwards, -1 backwards along an axis."""
    n = math.prod(sizes)
    _check_fits(n, 7 * n)
    number = np.arange(n, dtype=np.int32).reshape(sizes)
    u, v = [], []
    for step in steps:
        axes = [*zip(sizes, step, strict=True)]
        u.append(number[tuple(slice(max(0, -by), max(0, size - max(0, by))) for size, by in axes)].ravel())
        v.append(number[tuple(slice(max(0, by), max(0, size + min(0, by))) for size, by in axes)].ravel())
    return np.concatenate(u), np.concatenate(v)


def _subset(ends, count, random):
    """`count` random ones of the edges `ends` = (u, v), or all of them if there are fewer, in the same order."""
    chosen = np.sort(random.choice(ends[0].size, count))
    return ends[0][chosen], ends[1][chosen]


def _with_bends(u, v, n, count):
    """Put count[e] new vertices along edge e. A junction's bends are numbered after it, edge by edge."""
    order = np.argsort(u, kind="stable")
    u, v, count = u[order], v[order], count[order]
    before = np.cumsum(count) - count  # bends along earlier edges
    moved = np.arange(n) + np.append(before, count.sum())[np.searchsorted(u, np.arange(n))]  # new junction numbers
    edge = repeat(np.arange(u.size), count + 1)
    place = np.arange(edge.size) - (before + np.arange(u.size))[edge]  # 0 at the start of the edge
    bend = u[edge] + before[edge] + place  # the bend before this place
    start = np.where(place == 0, moved[u[edge]], bend)
    end = np.where(place == count[edge], moved[v[edge]], bend + 1)
    return start.astype(np.int32), end.astype(np.int32), n + int(count.sum())


def _coarseness(n):
    """How coarse each of n random points is: 0 for the last three quarters, 1 for three quarters of the rest, ..."""
    coarse = np.zeros(n, np.int8)
    while n := n // 4:
        coarse[:n] += 1
    return coarse


def _morton(points):
    """The position of each point of the unit square on the Z-order curve: the bits of its coordinates, interleaved."""
    code = np.zeros(len(points), np.uint32)
    for axis in 0, 1:
        bits = (points[:, axis] * 2**16).astype(np.uint32)
        for shift, mask in (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555):
            bits = (bits | bits << np.uint32(shift)) & np.uint32(mask)
        code |= bits << np.uint32(axis)
    return code


def _cliques(n, largest, pairs, seed):
    """The edges of random cliques that have about `pairs` edges together."""
    random = _Random(seed)
    sizes, drawn = [], 0
    while drawn < pairs:
        tail = 2**-1.5 + random.uniform(1 << 12) * ((largest + 1) ** -1.5 - 2**-1.5)
        sizes.append((tail ** (-1 / 1.5)).astype(np.int64))
        drawn += int((sizes[-1] * (sizes[-1] - 1) // 2).sum())
    sizes = np.concatenate(sizes)
    first = np.concatenate(([0], np.cumsum(sizes * (sizes - 1) // 2)))
    cliques = int(np.searchsorted(first, pairs))
    return _draws(int(first[cliques])).draw_cliques(n, sizes[:cliques], first[: cliques + 1], U64(seed))


def _sample(possible, count, random):
    """`count` different numbers below `possible`."""
    if count > possible // 4:
        return random.choice(possible, count)
    found = np.empty(0, np.int64)
    while found.size < count:
        more = random.below(possible, count - found.size + count // 32)
        found = np.unique(np.concatenate((found, more)))
    return found[np.sort(random.choice(found.size, count))]


def _pair_of(code):
    """The pair (j, i), j < i, with index `code` in the list (0, 1), (0, 2), (1, 2), (0, 3), ..."""
    i = ((1 + np.sqrt(1 + 8 * code.astype(np.float64))) / 2).astype(np.int64)
    i -= i * (i - 1) // 2 > code  # the square root was rounded
    i += i * (i + 1) // 2 <= code
    return (code - i * (i - 1) // 2).astype(np.int32), i.astype(np.int32)


def _draws(count):
    """The module that draws so many random numbers or edges fastest: compiled, or in NumPy."""
    if in_numpy(count // 5):
        from tcgpu import draws_in_numpy as draws
    else:
        from tcgpu.cpu import draws
    return draws


# Checks of arguments


def _checked(name, value, kind):
    """The value of an argument; GraphError unless an int is whole, a float finite, and the value in its range."""
    if kind not in (int, float):
        return value
    high = LARGEST.get(name, clean.MAX_VERTICES if kind is int else np.inf)
    number = isinstance(value, (int, np.integer) if kind is int else (int, float, np.number))
    if isinstance(value, bool) or not number or not 0 <= value <= high or value == np.inf:
        allowed = "of at least 0" if high == np.inf else f"in 0..{high}"
        raise GraphError(f"{name} must be a {'whole ' if kind is int else ''}number {allowed}, not {value!r}")
    return int(value) if kind is int else value


def _check_fits(n, m):
    """GraphError if there are more vertices than a graph can have, or the graph does not fit this machine's memory."""
    if n > clean.MAX_VERTICES:
        raise GraphError(f"{n:,.0f} vertices are more than {clean.MAX_VERTICES:,}, the most there can be")
    needed = EDGE_BYTES * m + VERTEX_BYTES * n
    if needed > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise TooLarge(f"{n:,.0f} vertices and {m:,.0f} edges take {needed / 1e9:,.0f} GB to make: {SMALLER}")
