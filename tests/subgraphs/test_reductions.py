"""tcgpu.reduce_triangles, against the same sums over a list of triangles that is found by brute force."""

import math
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from sampling import share

import tcgpu
from tcgpu import Graph, GraphError, MethodError
from tcgpu.cpu import edges
from tcgpu.engines import native
from tcgpu.engines.native import jit, set_threads
from tcgpu.subgraphs import exact_sums, reductions

GRAPHS, MOST = 100, 14
RECORD = np.dtype([("big", "i8"), ("small", "f4")])


def one(u, v, w):
    return 1


def polynomial(u, v, w):
    return u * 10_000 - v * 100 + w


def all_values(u, v, w, x, y, z, uv, uw, vw):
    return u * x * uv - v * y * uw + w * z / vw


def in_bins(u, v, w, x, y, z):
    return (x + y + z) % 5


def weights_in_bins(u, v, w, x, y, z, uv, uw, vw):
    return x % 3, uv * uw * vw


def largest(u, v, w, uv, uw, vw):
    return max(uv, uw, vw)


def three(u, v, w, uv, uw, vw):
    return uv, 2 * uw, 3 * vw


class Drawn:
    """A random graph with values, and all of its triangles by brute force: u, v, w; x, y, z; uv, uw, vw."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(0, MOST))
        joined = np.triu(rng.random((n, n)) < rng.random(), 1)
        self.graph = Graph.from_edges(*np.nonzero(joined), n)
        self.x = rng.integers(-9, 9, n)
        self.weights = rng.standard_normal(self.graph.m) * 10.0 ** rng.integers(-9, 9, self.graph.m)
        ends = zip(*map(np.ndarray.tolist, self.graph.edges()), strict=True)
        self.number = {(j, i): k for k, (i, j) in enumerate(ends)}
        self.triangles = [
            (u, v, w) for u, v, w in combinations(range(n), 3) if joined[u, v] and joined[u, w] and joined[v, w]
        ]

    def edges_of(self, u, v, w):
        return self.number[u, v], self.number[u, w], self.number[v, w]

    def values(self, *triangle):
        x, y, z = (int(self.x[at]) for at in triangle)
        return x, y, z, *(float(self.weights[at]) for at in self.edges_of(*triangle))


@pytest.fixture(scope="module")
def drawn():
    return [Drawn(seed) for seed in range(GRAPHS)]


ORDERS = share([None, "natural", "degree", "random"], "orders", of=2)  # in one test, which compiles a function once


def test_sums_are_those_of_brute_force(drawn):
    for order, one_of in product(ORDERS, drawn):
        graph, triangles = one_of.graph, one_of.triangles
        assert tcgpu.reduce_triangles(graph, one, order=order) == len(triangles) == tcgpu.count(graph)
        total = tcgpu.reduce_triangles(graph, polynomial, order=order)
        assert type(total) is int and total == sum(polynomial(*triangle) for triangle in triangles)
        total = tcgpu.reduce_triangles(graph, all_values, one_of.x, one_of.weights, order=order)
        expected = math.fsum(all_values(*triangle, *one_of.values(*triangle)) for triangle in triangles)
        assert type(total) is float and total == expected


def test_bins_are_those_of_brute_force(drawn):
    for order, one_of in product(ORDERS, drawn):
        counts = tcgpu.reduce_triangles(one_of.graph, in_bins, one_of.x, bins=7, order=order)
        bins = [in_bins(*triangle, *one_of.values(*triangle)[:3]) for triangle in one_of.triangles]
        assert counts.dtype == np.int64 and counts.tolist() == [bins.count(k) for k in range(7)]
        sums = tcgpu.reduce_triangles(one_of.graph, weights_in_bins, one_of.x, one_of.weights, bins=3, order=order)
        placed = [weights_in_bins(*triangle, *one_of.values(*triangle)) for triangle in one_of.triangles]
        assert sums.tolist() == [math.fsum(value for at, value in placed if at == k) for k in range(3)]


@pytest.mark.parametrize("f", [largest, three])
def test_sums_per_vertex_and_edge_are_those_of_brute_force(drawn, f):
    for order, one_of in product(ORDERS, drawn):
        graph = one_of.graph
        whole = np.arange(graph.m) - 5
        for per, values in share(product(("vertex", "edge"), (one_of.weights, whole)), f.__name__, of=2):
            at = [[] for _ in range(graph.n if per == "vertex" else graph.m)]
            for triangle in one_of.triangles:
                result = f(*triangle, *values[[*one_of.edges_of(*triangle)]].tolist())
                places = triangle if per == "vertex" else one_of.edges_of(*triangle)
                for place, value in zip(places, result if f is three else 3 * [result], strict=True):
                    at[place].append(value)
            found = tcgpu.reduce_triangles(graph, f, edge_values=values, per=per, order=order)
            assert found.dtype == values.dtype
            assert found.tolist() == [math.fsum(here) for here in at]


def test_values_may_be_records_dates_and_flags():
    graph = tcgpu.generate.clique(5)
    records = np.zeros(5, RECORD)
    records["big"], records["small"] = np.arange(5) * 10**12, 0.5
    total = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: x.big + y.big + z["big"], records)
    assert total == 6 * 10 * 10**12
    assert tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: x.small, records) == 5.0
    days = np.datetime64("2026-01-01") + np.arange(10).astype("m8[D]")
    week = np.timedelta64(7, "D")
    close = tcgpu.reduce_triangles(graph, lambda u, v, w, a, b, c: max(a, b, c) - min(a, b, c) < week, edge_values=days)
    numbers = np.arange(10)
    assert close == tcgpu.reduce_triangles(
        graph, lambda u, v, w, a, b, c: max(a, b, c) - min(a, b, c) < 7, edge_values=numbers.astype(">i2")
    )
    assert 0 < close < 10
    odd = numbers % 2 == 1
    assert tcgpu.reduce_triangles(graph, lambda u, v, w, a, b, c: a and b and c, edge_values=odd) == sum(
        bool(odd[[*at]].all()) for at in edges_of_triangles(graph)
    )


def edges_of_triangles(graph):
    number = {(j, i): k for k, (i, j) in enumerate(zip(*map(np.ndarray.tolist, graph.edges()), strict=True))}
    for chunk in tcgpu.list_triangles(graph):
        for u, v, w in np.sort(chunk).tolist():
            yield number[u, v], number[u, w], number[v, w]


@pytest.mark.parametrize("threads, order", share(product([1, 2, 7], ["natural", "degree"]), "threads", of=3))
def test_any_number_of_threads_gives_the_same_floats(threads, order, monkeypatch):
    """On a graph with long and short columns, of which some are searched."""
    hub = [(0, v) for v in range(1, 3000)] + [(1, 2), (1, 2999)]
    graph = Graph.from_edges(np.concatenate([np.array(tcgpu.generate.rmat(9, 8, seed=1).edges()).T, hub]))
    weights = np.random.default_rng(2).standard_normal(graph.m) * 10.0 ** (np.arange(graph.m) % 40)
    listed = [tuple(weights[[*at]].tolist()) for at in edges_of_triangles(graph)]
    monkeypatch.setattr(edges, "MANY", 1)
    monkeypatch.setattr(reductions, "FEW_SUMS", 1)
    set_threads(threads)
    try:
        given = {"edge_values": weights, "order": order}
        products = tcgpu.reduce_triangles(graph, lambda u, v, w, a, b, c: a * b * c, **given)
        per_vertex = tcgpu.reduce_triangles(graph, largest, per="vertex", **given)
        per_edge = tcgpu.reduce_triangles(graph, one, per="edge", order=order)
    finally:
        set_threads(None)
    assert products == math.fsum(a * b * c for a, b, c in listed)
    assert per_vertex[0] == math.fsum(
        max(weights[[*at]].tolist())
        for at, triangle in zip(edges_of_triangles(graph), np.concatenate([*tcgpu.list_triangles(graph)]), strict=True)
        if 0 in triangle
    )
    assert np.array_equal(per_edge, tcgpu.support(graph))


@pytest.mark.parametrize("graph", [Graph.from_edges([], [], 0), Graph.from_edges([], [], 3), tcgpu.generate.cycle(5)])
def test_without_triangles_sums_are_zero(graph):
    weights = np.ones(graph.m)
    assert tcgpu.reduce_triangles(graph, one) == 0
    assert tcgpu.reduce_triangles(graph, largest, edge_values=weights) == 0.0
    assert tcgpu.reduce_triangles(graph, one, bins=np.int8(127)).tolist() == 127 * [0]
    assert tcgpu.reduce_triangles(graph, largest, edge_values=weights, per="vertex").tolist() == graph.n * [0.0]
    assert tcgpu.reduce_triangles(graph, one, per="edge").tolist() == graph.m * [0]


def test_integers_are_exact_beyond_64_bits():
    graph = tcgpu.generate.clique(10)
    values = np.full(45, 2**62)
    assert tcgpu.reduce_triangles(graph, largest, edge_values=values) == 120 * 2**62
    assert tcgpu.reduce_triangles(graph, largest, edge_values=-values) == -120 * 2**62
    assert tcgpu.reduce_triangles(graph, largest, edge_values=values.astype(np.uint64) * 3) == 120 * 3 * 2**62
    with pytest.raises(GraphError, match="sum 0 does not fit 64 bits"):
        tcgpu.reduce_triangles(graph, largest, edge_values=values, per="vertex")


def test_a_function_may_be_one_of_numba():
    graph = tcgpu.generate.clique(6)
    assert tcgpu.reduce_triangles(graph, jit(polynomial)) == tcgpu.reduce_triangles(graph, polynomial)


@pytest.mark.parametrize("engine", ["cpu", pytest.param("sim", marks=pytest.mark.sim)])
def test_a_function_uses_what_is_there_now(engine):
    """As kernels of one's own do in the simulator; a function like another one is compiled once."""
    clique, weight = tcgpu.generate.clique(4), 2

    def weights(u, v, w):
        return weight

    assert tcgpu.reduce_triangles(clique, weights, engine=engine) == 4 * weight
    weight = 3
    assert tcgpu.reduce_triangles(clique, weights, engine=engine) == 4 * weight
    assert native.compiled(lambda u, v, w: weight) is native.compiled(lambda u, v, w: weight)


def test_few_functions_are_kept():
    made = [native.compiled(eval(f"lambda u, v, w: u + {number}")) for number in range(2 * native.MOST_COMPILED)]
    assert list(native._compiled.values()) == made[native.MOST_COMPILED :]


@pytest.mark.parametrize("f, values", [
    (lambda u, v, w, x, y, z: x - y, np.arange(4, dtype=np.uint8)),
    (lambda u, v, w, x, y, z: (0, x * 4), np.full(4, 2**62)),
    (lambda u, v, w, x, y, z: x * y % 97, np.full(4, 2**40)),
])  # fmt: skip
def test_an_overflow_of_integers_is_an_error(f, values):
    graph, bins = tcgpu.generate.clique(4), 1 if type(f(0, 1, 2, 3, 4, 5)) is tuple else None
    for _ in range(2):
        with pytest.raises(MethodError, match="in Python: integers of compiled .* compute with floats, or give int64"):
            tcgpu.reduce_triangles(graph, f, values, bins=bins)
    tcgpu.reduce_triangles(graph, f, values.astype(np.float64), bins=bins)
    if values.dtype == np.uint8:
        tcgpu.reduce_triangles(graph, f, values.astype(np.int64), bins=bins)


@pytest.mark.parametrize("values", [
    [], [0.1] * 10, [1e308, 1e308, -1e308], [1e308, 1e308], [5e-324, -1e-310], [2.0**53, 1.0, 2.0**-60], [-0.0],
    [1e16, 1.0, -1e16], [-1e300, 1e-300, 1e300], [2.0**100, -(2.0**100), -(2.0**-1074)], [2.0**63, -(2.0**10)],
])  # fmt: skip
@pytest.mark.parametrize("shared", [None, True])
def test_floats_are_rounded_once(values, shared):
    try:
        expected = float(sum(map(Fraction, values)))
    except OverflowError:
        expected = math.inf
    assert added(values, shared) == expected


@pytest.mark.parametrize("shared", [None, True])
def test_random_floats_are_added_as_by_fsum(shared):
    rng = np.random.default_rng(3)
    for trial in range(500):
        spread = 10.0 ** rng.integers(*((-300, 300) if trial % 2 else (-20, 20)), trial % 12)
        values = rng.standard_normal(trial % 12) * spread
        if trial % 3 == 0:
            values = [*values, *-values[::-1], 1e-30 * trial]  # nearly nothing is left
        assert added(values, shared) == math.fsum(values)


@pytest.mark.parametrize("values, expected", [
    ([math.inf, 1.0], math.inf), ([-math.inf], -math.inf), ([math.inf, -math.inf], math.nan), ([math.nan], math.nan),
])  # fmt: skip
def test_floats_that_are_not_finite_stay_so(values, expected):
    assert added(values, None) == expected or math.isnan(added(values, True)) and math.isnan(expected)


def added(values, shared):
    """The sum of some values, which two workers add."""
    sums = exact_sums.zero_sums(2, 3, True)
    for k, value in enumerate(values):
        exact_sums.add_float(sums[k % 2], 1, value, shared)
    before, total, after = exact_sums.float_totals(sums)
    assert before == after == 0
    return total


def tenth(u, v, w):
    return 0.1 if (u + v + w) % 2 else -0.1


def sign(u, v, w):
    return 1 if (u + v + w) % 2 else -1


@pytest.mark.parametrize(
    "per, few", share(product(["graph", "vertex", "edge"], [0, reductions.FEW_SUMS]), "cancel", of=3)
)
def test_sums_that_cancel_are_zero(per, few, monkeypatch):
    monkeypatch.setattr(reductions, "FEW_SUMS", few)
    graph = tcgpu.generate.clique(8)
    for order in ORDERS:
        found = tcgpu.reduce_triangles(graph, tenth, per=per, order=order)
        whole = tcgpu.reduce_triangles(graph, sign, per=per, order=order)
        assert (per == "vertex" or 0 in np.atleast_1d(whole)) and np.array_equal(found, 0.1 * np.asarray(whole, float))


@pytest.mark.parametrize("decades", [10, 20, 40])
def test_exact_sums_that_take_more_memory_are_added_up_in_pieces(monkeypatch, decades):
    graph = tcgpu.generate.clique(40)
    weights = 10 ** np.random.default_rng(decades).uniform(-decades, decades, graph.m)
    weights[::3] *= -1
    expected = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: (x, y, z), edge_values=weights, per="edge")
    sizes, zero_sums = [], reductions.exact_sums.zero_sums
    monkeypatch.setattr(reductions, "FEW_SUMS", 0)
    monkeypatch.setattr(reductions.exact_sums, "zero_sums", lambda *args: sizes.append(args[1]) or zero_sums(*args))
    found = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: (x, y, z), edge_values=weights, per="edge")
    assert found.tolist() == expected.tolist() and min(sizes) < graph.m


@pytest.mark.parametrize("decades", [1, 9])
def test_a_small_graph_has_sums_of_floats_in_many_bins(decades):
    graph = tcgpu.generate.clique(30)
    weights = 10 ** np.random.default_rng(decades).uniform(-decades, decades, graph.n)
    weights[::2] *= -1
    found = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: (30_000 * u + w, y), weights, bins=900_000)
    expected = {(u, w): math.fsum(weights[u + 1 : w]) for w in range(30) for u in range(w - 1)}
    assert {divmod(k, 30_000): found[k] for k in np.flatnonzero(found).tolist()} == expected


def test_exact_sums_that_take_too_much_memory_are_refused(monkeypatch):
    """The way out that the message tells works: where smaller floats are 0, sums are exact, of both signs, too."""
    monkeypatch.setattr(reductions, "FEW_SUMS", 0)
    graph = tcgpu.generate.clique(40)
    weights = 10 ** np.random.default_rng(0).uniform(-300, 300, graph.n)
    weights[::2] *= -1
    with pytest.raises(GraphError, match="MB or more, .* columns .* 0.0 for those below 1e-19 times the largest"):
        tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: x, weights, per="edge")
    least = 1e-19 * abs(weights).max()
    found = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: x if abs(x) > least else 0.0, weights, per="edge")
    kept = np.where(abs(weights) > least, weights, 0)
    ends = zip(*(end.tolist() for end in graph.edges()), strict=True)
    assert found.tolist() == [math.fsum(kept[min(i, j, w)] for w in range(40) if w not in (i, j)) for i, j in ends]


def no_name(u, v, w):
    return undefined  # noqa: F821


@pytest.mark.parametrize("f, message", [
    (no_name, "f does not compile: .*'undefined' is not defined"),
    (lambda u, v: 1, "f is a Python function of 3 numbers, the vertices u, v and w: too many"),
    (len, "f is a Python function of 3 numbers"),
    (lambda u, v, w: None, "f has to return a number; it returns none"),
    (lambda u, v, w: (u, v, w), r"f has to return a number; it returns \(int64, int64, int64\)"),
    (lambda u, v, w: 1j, "f has to return a number; it returns complex128"),
])  # fmt: skip
def test_a_function_that_cannot_be_used_is_refused(f, message):
    with pytest.raises(MethodError, match=f"(?s){message}"):
        tcgpu.reduce_triangles(tcgpu.generate.clique(3), f)


@pytest.mark.parametrize("f, options, error, message", [
    (one, {"vertex_values": [1, 2]}, GraphError, r"vertex_values has one value for each of 4 vertices.* \(2,\)"),
    (one, {"edge_values": np.ones((6, 2))}, GraphError, r"edge_values has one value for each of 6 edges.* \(6, 2\)"),
    (one, {"edge_values": np.ones(6)}, MethodError, "of 6 numbers, the vertices .* edges uv, uw and vw: too many"),
    (polynomial, {"bins": 3}, MethodError, r"f returns bin -98 for the triangle \(0, 1, 2\); bins are 0 to 2"),
    (lambda u, v, w: w / 2, {"bins": 3}, MethodError, r"a bin, a whole number, or \(bin, number\); it returns float64"),
    (lambda u, v, w: np.uint64(2**63), {"bins": 3}, MethodError, "f returns bin 9223372036854775808 for"),
    (one, {"bins": 0}, GraphError, "bins is the number of bins, from 1 to 2,147,483,647, not 0"),
    (one, {"bins": 10**20}, GraphError, "from 1 to 2,147,483,647, not 1000"),
    (one, {"edge_values": [1, [2, 3]]}, GraphError, "edge_values has one value for each of 6 edges, in an array: "),
    (one, {"edge_values": np.ones(6, np.float16)}, GraphError, "edge_values is of float16, .*: convert it"),
    (one, {"vertex_values": [1, 2, 3, None]}, GraphError, "vertex_values is of object, .*: convert it"),
    (lambda u, v, w, x, y, z: 1, {"vertex_values": np.zeros(4, [("half", "f2")])}, MethodError,
     "f does not compile: .*float16"),
    (one, {"bins": 2, "per": "edge"}, GraphError, "leave bins= or per='edge' out"),
    (one, {"per": "vertices"}, GraphError, "no value of per 'vertices' .did you mean 'vertex'"),
    (one, {"engine": "tpu"}, tcgpu.EngineError, "no engine 'tpu'"),
    (one, {"executor": "threads"}, MethodError, "reduce_triangles does not run on an executor"),
])  # fmt: skip
def test_options_that_cannot_be_used_are_refused(f, options, error, message):
    with pytest.raises(error, match=f"(?s){message}"):
        tcgpu.reduce_triangles(Graph.from_edges([0, 0, 0, 1, 1, 2], [1, 2, 3, 2, 3, 3]), f, **options)


@pytest.mark.parametrize("threads", [1, 2])
def test_what_a_function_raises_is_raised_and_ends_the_work(threads, monkeypatch):
    monkeypatch.setattr(edges, "MANY", 1)

    def late(u, v, w):
        if u > 300:
            raise ValueError("too late")
        return 1

    set_threads(threads)
    try:
        with pytest.raises(ValueError, match="too late"):
            tcgpu.reduce_triangles(tcgpu.generate.rmat(10, 8), late)
        with pytest.raises(ZeroDivisionError):
            tcgpu.reduce_triangles(tcgpu.generate.rmat(10, 8), lambda u, v, w: 1 // (u - 5))
    finally:
        set_threads(None)
