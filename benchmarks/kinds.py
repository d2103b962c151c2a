"""Kinds of graphs, each of about as many edges as asked for, to find those on which a verb is slow.

    KINDS[name](edges, seed) -> (u, v, n)       raw edges, which may hold loops and repeats

Vertex numbers matter to every count, so kinds come in several numberings: "hubs first" gives the lowest numbers to the
vertices with the most neighbours, "permuted" gives random ones.
"""

import functools

import numpy as np

from tcgpu import generate

KINDS = {}


def kind(name):
    """Register a function `draw(edges, random)` that returns `(u, v)` or `(u, v, n)` under a name."""

    def register(draw):
        @functools.wraps(draw)
        def drawn(edges, seed=0):
            u, v, *n = draw(int(edges), np.random.default_rng(seed))
            return u, v, n[0] if n else 1 + max(int(np.max(u, initial=-1)), int(np.max(v, initial=-1)))

        KINDS[name] = drawn
        return draw

    return register


def permuted(edges, random):
    """The same graph with random vertex numbers."""
    u, v, n = edges
    rank = random.permutation(n)
    return rank[u], rank[v], n


def beside(first, second):
    """Both graphs as one; the numbers of the second follow those of the first."""
    (u, v, n), (other_u, other_v, others) = first, second
    return np.append(u, other_u + n), np.append(v, other_v + n), n + others


def by_degree(edges, descending=False):
    """The same graph, numbered by ascending or descending degree."""
    u, v, n = edges
    degree = np.bincount(u, minlength=n) + np.bincount(v, minlength=n)
    rank = np.empty(n, np.int64)
    rank[np.argsort(-degree if descending else degree, kind="stable")] = np.arange(n)
    return rank[u], rank[v], n


def clique(vertices):
    """All pairs of the first vertices."""
    return *np.triu_indices(vertices, 1), vertices


def vertices_of_clique(edges):
    return max(2, int((2 * edges) ** 0.5))


def side(edges, per_vertex, dimensions):
    """The length of a side of a grid with this many edges a vertex."""
    return max(2, round((edges / per_vertex) ** (1 / dimensions)))


def distinct_pairs(left, right, edges, random):
    """About `edges` different random pairs out of left x right."""
    code = np.unique(random.integers(0, left * right, edges))
    return code // right, code % right


# ------------------------------------------------------------------------------------------- local: meshes and roads


@kind("mesh")
def _(edges, random):
    return generate.edges("mesh", *[side(edges, 3, 2)] * 2)


@kind("mesh, permuted")
def _(edges, random):
    return permuted(KINDS["mesh"](edges), random)


@kind("road")
def _(edges, random):
    return generate.edges("road", *[side(edges, 1.7, 2)] * 2)


@kind("road, permuted")
def _(edges, random):
    return permuted(KINDS["road"](edges), random)


@kind("grid in three dimensions")
def _(edges, random):
    return generate.edges("mesh3d", *[side(edges, 7, 3)] * 3, 7)


@kind("geometric random")
def _(edges, random):
    """Numbered by cells, row by row."""
    return _geometric(edges, 20, random)


@kind("geometric, permuted")
def _(edges, random):
    """So many neighbours that about a third of the rows that are looked up are found."""
    return permuted(_geometric(edges, 120, random), random)


def _geometric(edges, neighbours, random):
    """Points in the unit square that are joined if they are near."""
    neighbours = min(neighbours, edges**0.5)
    n = max(2, int(2 * edges / neighbours))
    radius = min(1 / 3, (neighbours / (np.pi * n)) ** 0.5)
    cells = max(1, int(1 / radius))
    points = random.random((n, 2))
    cell = (points * cells).astype(np.int64)
    code = cell[:, 0] * cells + cell[:, 1]
    points, code = points[np.argsort(code, kind="stable")], np.sort(code)
    start = np.searchsorted(code, np.arange(cells * cells + 1))
    pairs = []
    for step in (0, 1, cells - 1, cells, cells + 1):  # every pair of neighbouring cells, once
        target = np.minimum(code + step, cells * cells - 1)
        many = np.where(code + step < cells * cells, start[target + 1] - start[target], 0)
        u = np.repeat(np.arange(n), many)
        v = np.arange(u.size) - np.repeat(np.cumsum(many) - many, many) + np.repeat(start[target], many)
        near = ((points[u] - points[v]) ** 2).sum(axis=1) < radius**2
        pairs.append((u[near], v[near]))
    u, v = np.concatenate(pairs, axis=1)
    return u, v, n


@kind("banded, narrow")
def _(edges, random):
    return _band(edges, 12)


@kind("banded, wide")
def _(edges, random):
    return _band(edges, min(300, edges // 10))


def _band(edges, width):
    """Each vertex is joined to the next `width` ones."""
    n = max(edges // width, width + 2)
    u = np.repeat(np.arange(n), width)
    v = u + np.tile(np.arange(1, width + 1), n)
    return u[v < n], v[v < n], n


@kind("columns of 16 rows")
def _(edges, random):
    return generate.edges("by_nonzeros", edges, min(16, int((edges / 3) ** 0.5)))


@kind("columns of 32 rows")
def _(edges, random):
    return generate.edges("by_nonzeros", edges, min(32, int((edges / 3) ** 0.5)))


@kind("small world")
def _(edges, random):
    return generate.edges("watts_strogatz", max(edges // 8, 20), 16)


@kind("ring lattice with hubs")
def _(edges, random):
    """A small world in which every 500th vertex has edges to thousands of others."""
    u, v, n = generate.edges("watts_strogatz", max(edges // 16, 20), 16)
    hubs = np.repeat(np.arange(0, n, 500), edges // 2 // (n // 500 + 1))
    return np.append(u, hubs), np.append(v, random.integers(0, n, hubs.size)), n


@kind("mesh with an apex")
def _(edges, random):
    """A mesh, and vertex 0, which is joined to every other."""
    u, v, n = generate.edges("mesh", *[side(edges, 4, 2)] * 2)
    return np.append(u + 1, np.zeros(n, int)), np.append(v + 1, np.arange(1, n + 1)), n + 1


# ------------------------------------------------------------------------------------------ degrees of a power law


@kind("R-MAT")
def _(edges, random):
    return generate.edges("rmat", max(3, round(np.log2(edges / 16))), 17)


@kind("R-MAT, hubs first")
def _(edges, random):
    return by_degree(KINDS["R-MAT"](edges), descending=True)


@kind("R-MAT, hubs last")
def _(edges, random):
    return by_degree(KINDS["R-MAT"](edges))


@kind("Chung-Lu power law")
def _(edges, random):
    """Degrees of exponent 2.1, random numbers."""
    return permuted(_chung_lu(edges, 1.1, random), random)


@kind("Chung-Lu, hubs first")
def _(edges, random):
    return _chung_lu(edges, 1.5, random)


def _chung_lu(edges, exponent, random):
    """Vertex v has a degree of about (v + 10)^(-1 / exponent), times a constant."""
    n = max(4, edges // 8)
    share = np.cumsum((np.arange(n) + 10.0) ** (-1 / exponent))
    ends = np.searchsorted(share, random.random((2, int(edges * 1.1))) * share[-1])
    return np.minimum(ends[0], n - 1), np.minimum(ends[1], n - 1), n


@kind("Barabasi-Albert")
def _(edges, random):
    return generate.edges("barabasi_albert", max(10, edges // 8), 8)


@kind("Barabasi-Albert, hubs last")
def _(edges, random):
    u, v, n = KINDS["Barabasi-Albert"](edges)
    return n - 1 - u, n - 1 - v, n


@kind("web-like, crawl order")
def _(edges, random):
    """Hosts of pages with near numbers, each with a hub of its own; every page links to some hubs of the whole web."""
    return _web(edges, random, lambda n: (n * random.random(n) ** 8).astype(np.int64))


def _web(edges, random, hubs):
    n = 100 * max(2, edges // 800)
    page = np.arange(n)
    near = [(page, np.minimum(n - 1, page + random.integers(1, 40, n))) for _ in range(4)]
    u, v = np.concatenate([*near, *[(page, hubs(n)) for _ in range(3)], (page, page // 100 * 100)], axis=1)
    return u, v, n


@kind("web-like, hubs scattered")
def _(edges, random):
    """As above; the hubs of the whole web are the first pages of random hosts."""
    hosts = max(2, edges // 800)
    first_page = random.permutation(hosts) * 100
    return _web(edges, random, lambda n: first_page[(hosts * random.random(n) ** 6).astype(np.int64)])


@kind("copying model")
def _(edges, random):
    """Each vertex copies most of the links of an earlier vertex near it, and draws the others."""
    k = 8
    n = max(20, edges // k)
    links = np.zeros((n, k), np.int64)
    width = 1 << 10
    for first in range(1, n, width):  # a block copies from earlier blocks
        here = np.arange(first, min(first + width, n))
        source = np.maximum(0, first - 1 - (random.random(here.size) ** 3 * first).astype(np.int64))
        drawn = (random.random((here.size, k)) * first).astype(np.int64)
        links[here] = np.where(random.random((here.size, k)) < 0.7, links[source], drawn)
        links[here, 0] = source
    return np.repeat(np.arange(n), k), links.ravel(), n


# -------------------------------------------------------------------------------------------------------------- unions


@kind("R-MAT beside a mesh")
def _(edges, random):
    return beside(KINDS["R-MAT"](edges // 2), KINDS["mesh"](edges // 2))


@kind("mesh beside an R-MAT")
def _(edges, random):
    return beside(KINDS["mesh"](edges // 2), KINDS["R-MAT"](edges // 2))


@kind("clique beside an R-MAT")
def _(edges, random):
    return beside(clique(vertices_of_clique(edges // 2)), KINDS["R-MAT"](edges // 2))


@kind("clique beside a mesh")
def _(edges, random):
    return beside(clique(vertices_of_clique(edges // 3)), KINDS["mesh"](2 * edges // 3))


@kind("mesh beside a star")
def _(edges, random):
    return beside(KINDS["mesh"](edges // 2), KINDS["star"](edges // 2))


@kind("expander with a clique")
def _(edges, random):
    """Every vertex has 16 neighbours; random ones are a clique besides."""
    u, v, n = KINDS["random regular"](edges - edges // 5)
    members = random.choice(n, min(n, vertices_of_clique(edges // 5)), replace=False)
    first, second = np.triu_indices(members.size, 1)
    return np.append(u, members[first]), np.append(v, members[second]), n


@kind("clique with a tail")
def _(edges, random):
    u, v, n = clique(vertices_of_clique(edges // 2))
    tail = np.arange(edges // 2)
    return np.append(u, n - 1 + tail), np.append(v, n + tail), n + tail.size


@kind("clique of stars")
def _(edges, random):
    """Every vertex of a clique has as many leaves."""
    u, v, n = clique(vertices_of_clique(edges // 2))
    each = edges // 2 // n
    return np.append(u, np.repeat(np.arange(n), each)), np.append(v, n + np.arange(n * each)), n + n * each


@kind("core and periphery")
def _(edges, random):
    """A dense core; each other vertex is joined to ten random vertices of it."""
    core = max(12, vertices_of_clique(edges // 10))
    u, v, _ = clique(core)
    outside = np.repeat(np.arange(max(1, (edges - u.size) // 10)), 10)
    return np.append(u, random.integers(0, core, outside.size)), np.append(v, core + outside)


# ---------------------------------------------------------------------------------------------------------- few hubs


def _hubs(edges, hubs, random):
    """Each other vertex is joined to two of the hubs, which are the first vertices, and to its successor."""
    other = hubs + np.arange(max(2, edges // 3))
    ends = [(random.integers(0, hubs, other.size), other) for _ in range(2)]
    u, v = np.concatenate([*ends, (other[:-1], other[1:])], axis=1)
    return u, v, hubs + other.size


@kind("64 hubs, first")
def _(edges, random):
    return _hubs(edges, 64, random)


@kind("64 hubs, last")
def _(edges, random):
    u, v, n = _hubs(edges, 64, random)
    return n - 1 - u, n - 1 - v, n


@kind("64 hubs, scattered")
def _(edges, random):
    u, v, n = _hubs(edges, 64, random)
    place = random.choice(n, 64, replace=False)
    rank = np.append(place, np.setdiff1d(np.arange(n), place))
    return rank[u], rank[v], n


@kind("two hubs, first")
def _(edges, random):
    """Both are joined to all others, which have no other neighbours (a book: all triangles share one edge)."""
    other = 2 + np.arange(max(1, edges // 2))
    first = np.zeros(other.size, np.int64)
    return np.concatenate([[0], first, first + 1]), np.concatenate([[1], other, other])


@kind("two hubs, last")
def _(edges, random):
    u, v, n = KINDS["two hubs, first"](edges)
    return n - 1 - u, n - 1 - v, n


@kind("windmill")
def _(edges, random):
    """Triangles that share vertex 0."""
    blades = 1 + 2 * np.arange(max(1, edges // 3))
    centre = np.zeros(blades.size, np.int64)
    return np.concatenate([centre, centre, blades]), np.concatenate([blades, blades + 1, blades + 1])


@kind("windmill, permuted")
def _(edges, random):
    return permuted(KINDS["windmill"](edges), random)


@kind("windmill of cliques")
def _(edges, random):
    """Cliques of 20 that share vertex 0."""
    u, v = np.triu_indices(20, 1)
    first = 19 * np.arange(max(1, edges // u.size))[:, None]
    u, v = (np.where(end, end + first, 0).ravel() for end in (u, v))
    return u, v


@kind("star")
def _(edges, random):
    return np.zeros(edges, np.int64), 1 + np.arange(edges)


@kind("star, centre last")
def _(edges, random):
    return np.full(edges, edges), np.arange(edges)


@kind("wheel")
def _(edges, random):
    rim = 1 + np.arange(max(3, edges // 2))
    return np.append(np.zeros(rim.size, np.int64), rim), np.append(rim, np.roll(rim, 1))


@kind("caterpillar")
def _(edges, random):
    """A path; each of its vertices has ten leaves."""
    path = max(2, edges // 11)
    leaves = np.arange(10 * path)
    return np.append(np.arange(path - 1), leaves // 10), np.append(np.arange(1, path), path + leaves)


@kind("stars")
def _(edges, random):
    """Stars of 3,000 leaves whose centres are a path."""
    centres = max(1, edges // 3000)
    leaves = np.arange(edges)
    return np.append(np.arange(centres), leaves // 3000), np.append(np.arange(1, centres + 1), centres + 1 + leaves)


# ------------------------------------------------------------------------------------------ dense, in whole or in parts


@kind("clique")
def _(edges, random):
    return clique(vertices_of_clique(edges))


@kind("dense random")
def _(edges, random):
    u, v, n = clique(vertices_of_clique(2 * edges))
    kept = random.random(u.size) < 0.5
    return u[kept], v[kept], n


@kind("random of density .05")
def _(edges, random):
    n = vertices_of_clique(20 * edges)
    code = np.unique(random.integers(0, n * n, int(1.03 * edges)))
    return code // n, code % n, n


@kind("complete bipartite")
def _(edges, random):
    half = max(1, int(edges**0.5))
    return np.repeat(np.arange(half), half), half + np.tile(np.arange(half), half)


@kind("dense bipartite with a ring, permuted")
def _(edges, random):
    """Parts of 1 to 12. In degree order the smaller part is last: its columns are short, its neighbourhoods long."""
    left = max(2, int((edges / 8) ** 0.5))
    u, v = distinct_pairs(left, 12 * left, edges, random)
    ring = np.arange(13 * left)
    return permuted((np.append(u, ring), np.append(left + v, np.roll(ring, 1)), ring.size), random)


@kind("complete tripartite")
def _(edges, random):
    third = max(1, int((edges / 3) ** 0.5))
    u, v, n = clique(3 * third)
    apart = u // third != v // third
    return u[apart], v[apart], n


@kind("complete multipartite, permuted")
def _(edges, random):
    """Parts of 50 vertices, or a quarter of all."""
    u, v, n = clique(vertices_of_clique(edges))
    part = min(50, n // 4 + 1)
    apart = u // part != v // part
    return permuted((u[apart], v[apart], n), random)


@kind("threshold")
def _(edges, random):
    """Vertices with numbers that add up to less than n are joined."""
    n = max(4, int(2 * edges**0.5))
    u = np.repeat(np.arange(n), np.maximum(0, n - 1 - 2 * np.arange(n)))
    v = np.arange(u.size) - np.searchsorted(u, u) + u + 1
    return u, v, n


@kind("products up to a limit")
def _(edges, random):
    """Vertices with numbers, from 1 on, that have a product up to n are joined."""
    n = max(4, int(edges / (0.5 * np.log(edges / 8) + 0.1)))
    number = np.arange(1, n + 1)
    u = np.repeat(np.arange(n), np.maximum(0, n // number - number))
    v = np.arange(u.size) - np.searchsorted(u, u) + u + 1
    return u, v, n


@kind("bipartite power law")
def _(edges, random):
    left, right = max(2, edges // 10), max(2, edges // 20)
    u, v = (left * random.random(edges) ** 2).astype(np.int64), (right * random.random(edges) ** 4).astype(np.int64)
    return u, left + v, left + right


@kind("co-papers")
def _(edges, random):
    return generate.edges("copapers", max(100, edges // 25), 50)


@kind("co-papers, permuted")
def _(edges, random):
    return permuted(KINDS["co-papers"](edges), random)


@kind("cliques of 60, permuted")
def _(edges, random):
    return permuted(_cliques(edges, 60), random)


@kind("cliques of 25, permuted")
def _(edges, random):
    """Most of the time of a support is spent on waiting for results that are far away."""
    return permuted(_cliques(edges, 25), random)


def _cliques(edges, vertices):
    """Separate cliques of so many vertices."""
    u, v = np.triu_indices(vertices, 1)
    first = vertices * np.arange(max(1, edges // u.size))[:, None]
    return (u + first).ravel(), (v + first).ravel(), vertices * first.size


@kind("blocks")
def _(edges, random):
    """Communities of 1,000 vertices; half of the edges are inside one."""
    n = max(2000, edges // 50)
    u = random.integers(0, n, edges)
    inside = u // 1000 * 1000 + random.integers(0, 1000, edges)
    return u, np.where(random.random(edges) < 0.5, np.minimum(inside, n - 1), random.integers(0, n, edges)), n


# --------------------------------------------------------------------------------------------------- sparse, no order


@kind("random")
def _(edges, random):
    n = max(4, edges // 8)
    return random.integers(0, n, edges), random.integers(0, n, edges), n


@kind("hypercube")
def _(edges, random):
    dimensions = next(d for d in range(2, 40) if d << (d - 1) >= edges * 0.7)
    vertex = np.arange(1 << dimensions)
    u = np.repeat(vertex, dimensions)
    v = u ^ np.tile(1 << np.arange(dimensions), vertex.size)
    return u[u < v], v[u < v], vertex.size


@kind("random regular")
def _(edges, random):
    """Every vertex has about 16 neighbours."""
    n = max(20, edges // 8)
    u = np.tile(np.arange(n), 8)
    return u, np.concatenate([random.permutation(n) for _ in range(8)]), n
