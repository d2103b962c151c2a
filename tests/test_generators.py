"""Generated graphs: known counts and sizes, reproducible, and errors for invalid arguments."""

import bisect
import inspect
import itertools
import math
import random
import time

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import draws_in_numpy, generators
from tcgpu.engines import native
from tcgpu.generators import GENERATORS

# arguments for a small graph of each generator, without the seed
SMALL = {
    "rmat": (7, 4),
    "delaunay": (200,),
    "mesh": (9, 11),
    "mesh3d": (5, 6, 7),
    "road": (15, 20, 0.8, 1.5),
    "copapers": (300, 20),
    "by_nonzeros": (600, 3.5),
    "gap_kron": (7, 4),
    "gap_urand": (6, 4),
    "random": (60, 200),
    "barabasi_albert": (80, 3),
    "watts_strogatz": (70, 6, 0.2),
    "empty": (5,),
    "path": (6,),
    "cycle": (6,),
    "star": (6,),
    "clique": (9,),
    "complete_bipartite": (4, 5),
    "grid": (6, 7),
}
RANDOM = list(SMALL)[: list(SMALL).index("empty")]
RANDOM.remove("mesh")

LIKE_NETWORKX = {
    "empty": lambda: nx.empty_graph(5),
    "path": lambda: nx.path_graph(6),
    "cycle": lambda: nx.cycle_graph(6),
    "star": lambda: nx.star_graph(5),
    "clique": lambda: nx.complete_graph(9),
    "complete_bipartite": lambda: nx.complete_bipartite_graph(4, 5),
    "grid": lambda: nx.convert_node_labels_to_integers(nx.grid_2d_graph(6, 7)),
    "mesh": lambda: nx.from_edgelist(
        (11 * i + j, 11 * (i + di) + j + dj)
        for i in range(9)
        for j in range(11)
        for di, dj in ((0, 1), (1, 0), (1, 1))
        if i + di < 9 and j + dj < 11
    ),
}


def by_networkx(graph):
    return sum(nx.triangles(graph.to_networkx()).values()) // 3


def test_every_generator_is_tested():
    assert set(SMALL) == set(GENERATORS)


@pytest.mark.parametrize("name", GENERATORS)
def test_all_signatures_are_alike(name):
    signature = inspect.signature(GENERATORS[name])
    *sizes, seed = signature.parameters.values()
    assert (seed.name, seed.kind, seed.default) == ("seed", seed.KEYWORD_ONLY, 0)
    assert sizes and all(size.kind == size.POSITIONAL_OR_KEYWORD for size in sizes)
    assert inspect.getdoc(GENERATORS[name]).split("\n")[0].endswith((".", "."))
    assert getattr(tcgpu.generate, name) is GENERATORS[name]


@pytest.mark.parametrize("name", GENERATORS)
def test_counts_and_edges(name):
    graph = GENERATORS[name](*SMALL[name], seed=5)
    u, v, n = generators.edges(name, *SMALL[name], seed=5)
    assert u.dtype == v.dtype == np.int32
    assert tcgpu.Graph.from_edges(u, v, n).equals(graph)
    assert u.size == graph.m + graph.cleaned.loops + graph.cleaned.duplicates + graph.cleaned.reversed
    assert tcgpu.count(graph) == by_networkx(graph)


@pytest.mark.parametrize("name", LIKE_NETWORKX)
def test_graphs_without_randomness_are_those_of_networkx(name):
    graph, expected = GENERATORS[name](*SMALL[name]), LIKE_NETWORKX[name]()
    assert graph.n == len(expected)
    assert set(map(frozenset, zip(*graph.edges(), strict=True))) == set(map(frozenset, expected.edges))


@pytest.mark.parametrize("name", GENERATORS)
def test_the_name_of_a_graph_is_the_call(name):
    graph = GENERATORS[name](*SMALL[name], seed=3)
    made = graph.name.removesuffix(")").split("(")
    arguments = dict(argument.split("=") for argument in made[1].split(", "))
    assert made[0] == name and arguments.pop("seed") == "3"
    assert GENERATORS[name](
        **{what: float(value) if "." in value else int(value) for what, value in arguments.items()}, seed=3
    ).equals(graph)


@pytest.mark.parametrize("name", GENERATORS)
def test_seeds(name):
    one, again, other = (GENERATORS[name](*SMALL[name], seed=seed) for seed in (1, 1, 2))
    assert one.equals(again)
    assert one.equals(other) == (name not in RANDOM)


@pytest.mark.parametrize("name", ["rmat", "copapers", "gap_kron", "gap_urand", "random", "delaunay"])
def test_any_number_of_threads_draws_the_same(name):
    sizes = {"rmat": (13, 16), "copapers": (4000, 60), "random": (9000, 90_000), "delaunay": (40_000,)}
    sizes = sizes.get(name, (15, 24))
    drawn = []
    try:
        for workers in 1, 2, 5:
            native.set_threads(workers)
            drawn.append(generators.edges(name, *sizes, seed=8))
    finally:
        native.set_threads(None)
    for u, v, n in drawn[1:]:
        assert n == drawn[0][2]
        np.testing.assert_array_equal(u, drawn[0][0])
        np.testing.assert_array_equal(v, drawn[0][1])


@pytest.mark.parametrize("size", [0, 1, 2])
@pytest.mark.parametrize("name", GENERATORS)
def test_the_smallest_sizes(name, size):
    required = [p for p in inspect.signature(GENERATORS[name]).parameters.values() if p.default is p.empty]
    sizes = [size] * len(required)
    if name == "random":  # no two vertices have more than one edge
        sizes[1] = size // 2
    if name == "by_nonzeros" and size == 2:
        with pytest.raises(tcgpu.GraphError, match="2 edges at 2 nonzeros per column leave 1 vertices, too few"):
            GENERATORS[name](*sizes)
        return
    if name == "by_nonzeros" and size == 1:
        sizes = [1, 0.3]
    graph = GENERATORS[name](*sizes)
    assert tcgpu.count(graph) == by_networkx(graph)
    assert graph.n <= max(
        size,
        1 << size if "scale" in inspect.signature(GENERATORS[name]).parameters else 0,
        size ** len(required),
        2 * size,
        3 * (name == "by_nonzeros"),
    )


# ------------------------------------------------------------------------------------------------------ closed forms


@pytest.mark.parametrize("n", [3, 4, 10, 100])
def test_clique(n):
    assert tcgpu.count(generators.clique(n)) == math.comb(n, 3)


def test_a_clique_past_32_bits():
    assert tcgpu.count(generators.clique(3000)) == 4_495_501_000


@pytest.mark.parametrize("rows, cols", [(2, 2), (3, 7), (40, 50)])
def test_mesh(rows, cols):
    graph = generators.mesh(rows, cols)
    assert tcgpu.count(graph) == 2 * (rows - 1) * (cols - 1)
    assert graph.m == rows * (cols - 1) + (rows - 1) * cols + (rows - 1) * (cols - 1)


def test_mesh3d_of_tetrahedra():
    """Cubes cut into six tetrahedra each, with nothing added: every triangle is a face."""
    x, y, z = 4, 5, 6
    cubes, n = (x - 1) * (y - 1) * (z - 1), x * y * z
    squares = (x - 1) * (y - 1) * z + (x - 1) * y * (z - 1) + x * (y - 1) * (z - 1)
    lattice = n * 3 - (y * z + x * z + x * y) + squares + cubes
    graph = generators.mesh3d(x, y, z, lattice / n)
    assert graph.m == lattice
    assert tcgpu.count(graph) == 2 * squares + 6 * cubes


@pytest.mark.parametrize(
    "graph", ["star(50)", "grid(9, 8)", "complete_bipartite(7, 9)", "path(30)", "cycle(30)", "empty(9)"]
)
def test_without_triangles(graph):
    name, sizes = graph.removesuffix(")").split("(")
    assert tcgpu.count(GENERATORS[name](*map(int, sizes.split(", ")))) == 0


def test_cycle_of_three():
    assert tcgpu.count(generators.cycle(3)) == 1


def test_delaunay_by_euler():
    """A triangulation of n points, h of them on the hull, has 3n - 3 - h edges and 2n - 2 - h triangles inside."""
    n = 3000
    graph = generators.delaunay(n, seed=4)
    hull = 3 * n - 3 - graph.m
    assert 3 <= hull < 60
    assert tcgpu.count(graph) >= 2 * n - 2 - hull  # triangles around others count, too


# -------------------------------------------------------------------------------------------------- classes of graphs


@pytest.mark.parametrize(
    "graph, published",
    [
        ("auto", lambda: generators.mesh3d(40, 40, 40)),
        ("delaunay_n22", lambda: generators.delaunay(1 << 14)),
        ("great-britain_osm", lambda: generators.road(300, 300, kept=0.535, bends=1.3)),
        ("coPapersCiteseer", lambda: generators.copapers(20_000)),
    ],
)
def test_the_reports_classes(graph, published):
    entry = next(entry for entry in tcgpu.datasets.catalogue() if entry.name == graph)
    assert published().nonzeros_per_column == pytest.approx(entry.nonzeros_per_column, rel=0.02)


def test_copapers_triangles_per_edge():
    """coPapersCiteseer has 54 triangles for each edge: many, because it is made of cliques."""
    graph = generators.copapers(20_000)
    assert 25 < tcgpu.count(graph) / graph.m < 110


def test_road_triangles_per_edge(load_benchmark):
    """europe_osm has 61,710 triangles and 54,054,660 edges; a road with more bends has nearly none."""
    generator, size, _ = load_benchmark("papers").REPORT["great-britain_osm"]
    graph = GENERATORS[generator](**size | {"rows": 600, "cols": 600})
    assert tcgpu.count(graph) / graph.m == pytest.approx(61_710 / 54_054_660, rel=0.25)
    assert graph.nonzeros_per_column == pytest.approx(8_156_517 / 7_733_822, rel=0.005)
    bent = generators.road(150, 150, bends=7)
    assert tcgpu.count(bent) / bent.m < 1e-4


@pytest.mark.parametrize("nonzeros", [1, 1.5, 2, 5, 16, 33.3, 64])
def test_by_nonzeros(nonzeros):
    m = 400_000
    graph = generators.by_nonzeros(m, nonzeros)
    assert graph.m == m
    assert graph.nonzeros_per_column == pytest.approx(nonzeros, rel=0.001)
    shorter, longer = np.quantile(graph.column_lengths, (0.1, 0.9))  # the first and last columns bear the end's wrap
    assert math.floor(nonzeros) <= shorter <= longer <= math.ceil(nonzeros) + (nonzeros < 2)
    assert (tcgpu.count(graph) > 0) == (nonzeros > 1)


def test_road_knobs():
    assert generators.road(200, 200).nonzeros_per_column == pytest.approx(1.7, rel=0.02)
    whole = generators.road(30, 40, kept=1)
    assert whole.m >= 30 * 39 + 29 * 40
    bent = generators.road(60, 60, bends=7, seed=2)
    straight = generators.road(60, 60, seed=2)
    assert bent.n - straight.n == bent.m - straight.m  # a bend is a vertex and an edge more
    assert (bent.n - straight.n) / straight.m == pytest.approx(7, rel=0.1)
    degrees = np.bincount(bent.degrees)
    assert degrees[2] >= bent.n - straight.n
    np.testing.assert_array_equal(np.sort(straight.degrees)[::-1][:100], np.sort(bent.degrees)[::-1][:100])


def test_numberings_of_delaunay():
    """How far apart the numbers of neighbours are; multiscale numbers are as close as those of delaunay_n13."""
    apart = {}
    for numbering in "multiscale", "spatial", "random":
        graph = generators.delaunay(8192, numbering, seed=1)
        apart[numbering] = np.abs(graph.row_idx - graph.col_of)
    assert np.median(apart["spatial"]) < np.median(apart["multiscale"]) < 50 < np.median(apart["random"])
    assert apart["multiscale"].mean() / 8192 == pytest.approx(0.196, rel=0.1)
    with pytest.raises(tcgpu.GraphError, match="numbering must be multiscale, spatial or random, not 'hilbert'"):
        generators.delaunay(10, "hilbert")


# ------------------------------------------------------------------------------------------------------------- R-MAT


def test_rmat_edges_fall_into_quarters_with_the_given_probabilities():
    """At every level, and independently of the other levels."""
    scale, a, b, c = 10, 0.5, 0.25, 0.15
    u, v, n = generators.edges("rmat", scale, 256, a, b, c, permuted=False, seed=6)
    quarter = np.array([2 * (u >> level & 1) + (v >> level & 1) for level in range(scale)])
    expected = np.array([a, b, c, 1 - a - b - c])
    sigma = np.sqrt(expected * (1 - expected) / u.size)
    for at_level in quarter:
        assert (np.abs(np.bincount(at_level, minlength=4) / u.size - expected) < 5 * sigma).all()
    for one, other in itertools.pairwise(quarter):
        joint = np.bincount(4 * one + other, minlength=16).reshape(4, 4) / u.size
        assert (np.abs(joint - np.outer(expected, expected)) < 5 / np.sqrt(u.size)).all()


def test_rmat_is_permuted():
    plain, permuted = generators.rmat(10, permuted=False), generators.rmat(10)
    assert np.array_equal(np.sort(plain.degrees), np.sort(permuted.degrees))
    assert tcgpu.count(plain) == tcgpu.count(permuted)
    assert plain.degrees.argmax() == 0
    half = permuted.degrees[:512].sum() / permuted.degrees.sum()
    assert half == pytest.approx(0.5, abs=0.1)
    assert plain.degrees[:512].sum() / plain.degrees.sum() > 0.7


@pytest.mark.parametrize("scale", range(12))
def test_permutations_are_permutations(scale):
    permuted = draws_in_numpy.wraps_around(draws_in_numpy.permuted_id)
    ids = permuted(np.arange(1 << scale, dtype=np.uint64), scale, draws_in_numpy.permutation_rounds(np.uint64(12345)))
    assert sorted(ids.tolist()) == list(range(1 << scale))


def test_rmat_is_like_graph500():
    """graph500-scale18-ef16 has 174,147 vertices with edges, 3,800,348 edges and 82,287,285 triangles."""
    graph = generators.rmat(18)
    assert np.count_nonzero(graph.degrees) == pytest.approx(174_147, rel=0.01)
    assert graph.m == pytest.approx(3_800_348, rel=0.01)
    assert tcgpu.count(graph) == pytest.approx(82_287_285, rel=0.05)


def test_rmat_is_faster_than_plain_numpy():
    """Drawing and cleaning 2^18 x 16 edges takes less than NumPy needs for the random numbers and comparisons alone."""
    scale, edge_factor = 18, 16
    generators.rmat(8)  # compiles

    def ours():
        generators.rmat(scale, edge_factor)

    def numpy():
        rng = np.random.default_rng(0)
        u = v = np.zeros(edge_factor << scale, np.int32)
        for _ in range(scale):
            drawn = rng.random(edge_factor << scale, np.float32)
            u = u << 1 | (drawn >= 0.76)
            v = v << 1 | ((drawn >= 0.57) & (drawn < 0.76)) | (drawn >= 0.95)

    def best(function):
        times = []
        for _ in range(3):
            begin = time.process_time()
            function()
            times.append(time.process_time() - begin)
        return min(times)

    assert best(ours) < best(numpy)


# ---------------------------------------------------------------------------------------------------------------- GAP


def gap_numbers(edges, reads):
    """For each edge what `reads` makes of the numbers of the GAP suite: a stream of mt19937 for 2^18 edges."""
    for block in range(0, edges, 1 << 18):
        state = [27491095 + (block >> 18)]
        for k in range(1, 624):  # as C++ does; Python's own seeds fill it in another way
            state.append((1812433253 * (state[-1] ^ state[-1] >> 30) + k) % 2**32)
        stream = random.Random()
        stream.setstate((3, (*state, 624), None))
        for _ in range(block, min(edges, block + (1 << 18))):
            yield reads(lambda stream=stream: stream.getrandbits(32))


def gap_rmat_edge(scale):
    """As `Generator::MakeRMatEL` before 2023: a float below 1 decides a level."""
    a, b, c, below_one = (
        np.float32(0.57),
        np.float32(0.19),
        np.float32(0.19),
        np.nextafter(np.float32(1), np.float32(0)),
    )

    def edge(number):
        source = target = 0
        for _ in range(scale):
            point = min(np.float32(number()) * np.float32(2.0**-32), below_one)
            source, target = 2 * source, 2 * target
            if point < a + b:
                target += point > a
            else:
                source += 1
                target += point > a + b + c
        return source, target

    return edge


def gap_uniform_edge(scale, refused):
    """As `Generator::MakeUniformEL` before 2023, whose distribution was that of the C++ library."""
    scaling = (2**32 - 1) // 2**scale

    def end(number):
        while (found := number()) >= scaling * 2**scale:
            refused.append(found)
        return found // scaling

    return lambda number: (end(number), end(number))


@pytest.mark.parametrize("scale, edge_factor", [(0, 5), (1, 1), (3, (1 << 15) + 9), (10, 16), (12, 3)])
def test_gap_kron_draws_as_the_suite(scale, edge_factor):
    u, v, _ = generators.edges("gap_kron", scale, edge_factor)
    expected = gap_numbers(edge_factor << scale, gap_rmat_edge(scale))
    assert list(zip(u.tolist(), v.tolist(), strict=True)) == list(expected)


@pytest.mark.parametrize("scale, edge_factor, refused", [(0, 5, False), (10, 16, False), (16, 5, True)])
def test_gap_urand_draws_as_the_suite(scale, edge_factor, refused):
    u, v, _ = generators.edges("gap_urand", scale, edge_factor)
    numbers = []
    expected = list(gap_numbers(edge_factor << scale, gap_uniform_edge(scale, numbers)))
    assert list(zip(u.tolist(), v.tolist(), strict=True)) == expected and bool(numbers) == refused


def test_the_suites_own_numbers_of_edges():
    """Those that its tests expected of 2^10 vertices, from 2015 to 2023."""
    assert (generators.gap_kron(10).m, generators.gap_urand(10).m) == (10_496, 16_104)


def test_the_bounds_of_gap_kron_round_as_its_floats():
    a, ab, abc = np.cumsum([0.57, 0.19, 0.19], dtype=np.float32)
    point, every = (lambda x: np.float32(x) * np.float32(2.0**-32)), range(2**32)
    bounds = bisect.bisect_right(every, a, key=point), bisect.bisect_left(every, ab, key=point)
    assert generators.GAP_BOUNDS == (*bounds, bisect.bisect_right(every, abc, key=point))


# ------------------------------------------------------------------------------------------------------ random graphs


@pytest.mark.parametrize("n, m", [(50, 0), (50, 300), (50, 306), (50, 307), (50, 1200), (50, 1225), (3000, 2000)])
def test_random_has_exactly_the_given_number_of_edges(n, m):
    u, v, _ = generators.edges("random", n, m, seed=2)
    assert (u < v).all() and (v < n).all()
    assert len(set(zip(u.tolist(), v.tolist(), strict=True))) == m


@pytest.mark.parametrize("m", [3, 12])
def test_random_draws_every_pair_equally_often(m):
    """Every pair of 6 vertices is drawn in m of 15 graphs, in both ways of drawing them."""
    graphs = 3000
    found = np.zeros((6, 6))
    for seed in range(graphs):
        u, v, _ = generators.edges("random", 6, m, seed=seed)
        found[u, v] += 1
    pairs = found[np.triu_indices(6, 1)]
    assert pairs.sum() == found.sum() == graphs * m
    expected = graphs * m / 15
    assert np.abs(pairs - expected).max() < 5 * math.sqrt(expected * (1 - m / 15))


def test_the_last_pairs_of_large_graphs():
    """Their numbers need more digits than a float has."""
    for n in 2**26, 2**31 - 1:
        last = n * (n - 1) // 2 - 1
        first = (n - 1) * (n - 2) // 2
        j, i = generators._pair_of(np.array([last, first, first - 1]))
        assert list(zip(j.tolist(), i.tolist(), strict=True)) == [(n - 2, n - 1), (0, n - 1), (n - 3, n - 2)]


def test_barabasi_albert():
    n, k = 3000, 4
    u, v, _ = generators.edges("barabasi_albert", n, k, seed=1)
    assert (u < v).all()
    graph = generators.barabasi_albert(n, k, seed=1)
    assert graph.m == u.size == k * (n - k)
    assert (np.bincount(v, minlength=n)[k + 1 :] == k).all()
    assert graph.max_degree > 20 * k  # a G(n, m) of this size stays below 5 k
    assert generators.barabasi_albert(3, 8).m == 2


def test_watts_strogatz():
    ring = generators.watts_strogatz(100, 6, rewired=0)
    assert (ring.degrees == 6).all()
    assert ring.equals(tcgpu.Graph.from_networkx(nx.circulant_graph(100, [1, 2, 3])))
    u, v, n = generators.edges("watts_strogatz", 2000, 10, 0.3, seed=1)
    near = (v - u) % n <= 5
    assert 1 - near.mean() == pytest.approx(0.3, abs=0.03)


# ------------------------------------------------------------------------------------------------------- bad arguments


@pytest.mark.parametrize(
    "name, sizes, said",
    [
        ("rmat", {"scale": -1}, "scale must be a whole number in 0..30, not -1"),
        ("rmat", {"scale": 31}, "scale must be a whole number in 0..30, not 31"),
        ("rmat", {"scale": "high"}, "scale must be a whole number in 0..30, not 'high'"),
        ("rmat", {"scale": 3.0}, "scale must be a whole number in 0..30, not 3.0"),
        ("rmat", {"scale": True}, "scale must be a whole number in 0..30, not True"),
        ("rmat", {"scale": 30, "edge_factor": 10**6}, "vertices and 1,073,741,824,000,000 edges take .* GB to make"),
        ("rmat", {"scale": 3, "a": 1.5}, "a must be a number in 0..1, not 1.5"),
        ("rmat", {"scale": 3, "a": 0.6, "b": 0.5}, r"a \+ b \+ c must be a number in 0..1, not 1.29"),
        ("rmat", {"scale": 3, "seed": -1}, "seed must be a whole number in 0.."),
        ("rmat", {"scale": 3, "seed": "x"}, "seed must be a whole number in 0.."),
        ("delaunay", {"n": -5}, "n must be a whole number in 0..2147483647, not -5"),
        ("delaunay", {"n": 2**31}, "n must be a whole number in 0..2147483647"),
        ("road", {"rows": 10, "cols": 10, "kept": 2}, "kept must be a number in 0..1, not 2"),
        ("road", {"rows": 10, "cols": 10, "bends": float("nan")}, "bends must be a number of at least 0, not nan"),
        ("road", {"rows": 10**5, "cols": 10**5}, "10,000,000,000 vertices are more than 2,147,483,647, the most"),
        ("mesh3d", {"planes": 10, "rows": -1, "cols": 10}, "rows must be a whole number in 0..2147483647, not -1"),
        ("copapers", {"n": 10, "mean_degree": -1}, "mean_degree must be a number of at least 0, not -1"),
        ("by_nonzeros", {"m": 100, "nonzeros_per_column": 50}, "100 edges at 50 nonzeros per column leave 2 vert"),
        ("random", {"n": 10, "m": 46}, "10 vertices have no more than 45 edges, not 46"),
        ("clique", {"n": 10**7}, "10,000,000 vertices and 49,999,995,000,000 edges take .* GB to make"),
        ("complete_bipartite", {"left": 2**31 - 1, "right": 1}, "2,147,483,648 vertices are more than"),
    ],
    ids=str,
)  # fmt: skip
def test_invalid_arguments_are_refused(name, sizes, said):
    with pytest.raises(tcgpu.GraphError, match=said):
        GENERATORS[name](**sizes)
    with pytest.raises(tcgpu.GraphError, match=said):
        generators.edges(name, **sizes)


def test_unknown_generator():
    with pytest.raises(tcgpu.GraphError, match="no generator 'guess'; there are rmat, delaunay"):
        generators.edges("guess")
