"""tcgpu.reduce_triangles in the simulator, compiled for this machine's processor, and on a GPU: sums of brute force."""

import math

import numba
import numpy as np
import pytest
from sampling import share
from test_reductions import Drawn, all_values, in_bins, largest, one, polynomial, three, weights_in_bins

import tcgpu
from tcgpu import EngineError, Graph, GraphError, MethodError
from tcgpu.engines import kernel_compiler, runtime
from tcgpu.insight.faults import check_launch
from tcgpu.subgraphs import reductions, triangle_sums

GRAPH = tcgpu.generate.rmat(6, 4, seed=3)
RNG = np.random.default_rng(4)
WEIGHTS = RNG.standard_normal(GRAPH.m) * 10.0 ** RNG.integers(-30, 30, GRAPH.m)
AGES = RNG.integers(-9, 90, GRAPH.n)
DTYPES = "?", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f4", "f8"

# name -> the function, and the other arguments: sums and bins, of integers and of floats, in shared memory and not
CASES = {
    "numbers": (polynomial, {}),
    "floats": (largest, {"edge_values": WEIGHTS}),
    "counted": (in_bins, {"vertex_values": np.abs(AGES), "bins": 9}),
    "both": (weights_in_bins, {"vertex_values": AGES % 7, "edge_values": WEIGHTS, "bins": 200}),
    "vertices": (largest, {"edge_values": WEIGHTS.astype("f4"), "per": "vertex"}),
    "edges": (three, {"edge_values": WEIGHTS, "per": "edge"}),
}
every_case = pytest.mark.parametrize("case", CASES)
against_the_cpu = pytest.mark.parametrize("case", ["floats", "both", "vertices", "edges"])


def late(u, v, w):
    if u > 3:
        raise ValueError("too late")
    return 1


def reduction_of(case, order="degree"):
    """The graph in the order, and the Reduction, of a case."""
    f, options = CASES.get(case, (late, {}))

    class Found(Exception):
        pass

    def found(*given):
        raise Found(*given)

    with pytest.raises(Found) as caught:
        reductions.reduce_triangles(GRAPH, f, **options, order=order, totals=found)
    return caught.value.args


def kernel_of(case):
    """The kernel of a case, under the name by which another process finds it in this module."""
    made = triangle_sums.plan(*reduction_of(case)).steps[0].kernel
    made.__module__, made.__name__ = __name__, f"kernel_{case}"
    return made


def __getattr__(name):
    if name.startswith("kernel_"):
        return kernel_of(name.removeprefix("kernel_"))
    raise AttributeError(name)


def same(found, expected):
    return np.array_equal(found, expected) and np.asarray(found).dtype == np.asarray(expected).dtype


@pytest.mark.sim
@against_the_cpu
def test_the_simulator_adds_up_what_the_cpu_does(case):
    f, options = CASES[case]
    expected = tcgpu.reduce_triangles(GRAPH, f, **options, order="degree")
    for order in share(("natural", "degree", "random"), case):
        found = tcgpu.reduce_triangles(GRAPH, f, **options, order=order, engine="sim")
        assert np.any(found) and same(found, expected)


@pytest.mark.sim
def test_sums_are_those_of_brute_force():
    triangles = 0
    for drawn in map(Drawn, range(25)):
        order = ("natural", "degree", "random")[drawn.graph.m % 3]
        sim = {"engine": "sim", "order": order}
        values = [(*each, *drawn.values(*each)) for each in drawn.triangles]
        triangles += len(values)
        assert tcgpu.reduce_triangles(drawn.graph, polynomial, **sim) == sum(polynomial(*each[:3]) for each in values)
        total = tcgpu.reduce_triangles(drawn.graph, all_values, drawn.x, drawn.weights, **sim)
        assert total == math.fsum(all_values(*each) for each in values)
        bins = tcgpu.reduce_triangles(drawn.graph, in_bins, drawn.x, bins=5, **sim)
        assert bins.tolist() == np.bincount([in_bins(*each[:6]) for each in values], minlength=5).tolist()
    assert triangles > 500


@pytest.mark.sim
@pytest.mark.parametrize("dtype", DTYPES)
def test_values_of_every_type(dtype):
    graph, rng = tcgpu.generate.clique(6), np.random.default_rng(5)
    x, weights = (rng.integers(0, 2 if dtype == "?" else 9, size).astype(dtype) for size in (graph.n, graph.m))

    def weighted(u, v, w, x, y, z, uv, uw, vw):
        return x * uv + y * uw + z * vw

    numbers = {(j, i): k for k, (i, j) in enumerate(zip(*map(np.ndarray.tolist, graph.edges()), strict=True))}
    expected = sum(
        weighted(u, v, w, *x[[u, v, w]].tolist(), *weights[[numbers[u, v], numbers[u, w], numbers[v, w]]].tolist())
        for u in range(6) for v in range(u + 1, 6) for w in range(v + 1, 6)
    )  # fmt: skip
    found = tcgpu.reduce_triangles(graph, weighted, x, weights, engine="sim", order="random")
    assert found == expected and isinstance(found, float if dtype[0] == "f" else int)


@pytest.mark.sim
def test_integers_beyond_64_bits_and_floats_that_are_not_finite():
    graph = tcgpu.generate.clique(10)
    for values in (np.full(45, 2**62), np.full(45, -(2**62)), np.full(45, 3 * 2**62, np.uint64)):
        assert tcgpu.reduce_triangles(graph, largest, edge_values=values, engine="sim") == 120 * int(values[0])
    for few, expected in [
        ([math.inf], math.inf), ([-math.inf], -math.inf), ([math.inf, -math.inf], math.nan), ([math.nan], math.nan),
        ([5e-324], 8 * 5e-324), ([1e308, -1e308], 1e308),  # 8 triangles and 7
    ]:  # fmt: skip
        values = np.zeros(45)
        values[: len(few)] = few
        assert np.array_equal(
            tcgpu.reduce_triangles(graph, first_edge, edge_values=values, engine="sim"), expected, equal_nan=True
        )


def first_edge(u, v, w, uv, uw, vw):
    return uv


@pytest.mark.sim
@every_case
def test_launches_have_no_faults(case, monkeypatch):
    def checked(function, blocks, threads, args, *, shared=0):
        launched.append(function.__name__)
        assert not list(map(str, check_launch(function, 3, 64, args, shared=shared)))

    graph, reduction = reduction_of(case)
    launched, made = [], triangle_sums.plan(graph, reduction)
    monkeypatch.setattr("tcgpu.kernels.simulated.check", lambda *args: None)
    monkeypatch.setattr("tcgpu.engines.sim.simulate", checked)
    with made.carried_out():
        assert launched == ["find_columns", "count_rows", "reduce_triangles"]


@pytest.mark.sim
@against_the_cpu
def test_compiled_kernels_add_up_what_the_cpu_does(case, processor):
    f, options = CASES[case]
    kernel_of(case)
    with processor.instead_of_the_simulator(seed=7):
        found = reductions.reduce_triangles(GRAPH, f, **options, order="degree", totals=triangle_sums.totals)
    assert same(found, tcgpu.reduce_triangles(GRAPH, f, **options, order="degree"))


@pytest.mark.sim
def test_an_exception_in_a_compiled_kernel_is_noticed(processor):
    kernel_of("late")
    with processor.instead_of_the_simulator(), pytest.raises(MethodError, match="f raises an exception"):
        reductions.reduce_triangles(GRAPH, late, order="degree", totals=triangle_sums.totals)


@pytest.mark.ptx
@pytest.mark.parametrize("case, capability", [*zip(CASES, 3 * [(7, 5), (9, 0)], strict=False)])
def test_kernels_compile_without_local_memory(case, capability):
    made = kernel_of(case)
    found = kernel_compiler.facts(made.py_func, *made.signatures, capability)
    assert ".entry" in found.ptx and not found.local and found.spilled == 0 and found.registers <= 64
    assert found.floats == () or case not in ("numbers", "counted")


@numba.njit
def factorial(k):
    return k * factorial(k - 1) if k > 1 else 1


@pytest.mark.ptx
@pytest.mark.parametrize("f, reason", [
    (lambda u, v, w: np.zeros(3).sum(), r"No impl.* >>> zeros\(.*3\)+"),
    (lambda u, v, w: np.sqrt(u), ".*sqrt.*"),  # numba-cuda has no error of its own for this
    (lambda u, v, w: len({u, v}), ".*set.*"),  # nor for this
    (lambda u, v, w: factorial(w - u), ".*recursion.*"),
])  # fmt: skip
def test_what_a_gpu_cannot_run_is_refused_in_a_sentence(f, reason, monkeypatch):
    def compiled(kernel, threads, shared=0):
        kernel_compiler.digest(kernel.py_func, *kernel.signatures, (9, 0))
        kernel_compiler.facts(kernel.py_func, *kernel.signatures, (9, 0))

    monkeypatch.setattr(runtime.Kernel, "blocks_at_a_time", compiled)
    with pytest.raises(MethodError, match=f"does not compile for a GPU.*'cpu' runs it: {reason}$"):
        tcgpu.reduce_triangles(GRAPH, f, engine="sim")


@pytest.mark.sim
def test_what_a_function_raises_in_the_simulator_is_raised():
    with pytest.raises(ValueError, match="too late"):
        tcgpu.reduce_triangles(GRAPH, late, engine="sim")
    assert tcgpu.reduce_triangles(GRAPH, lambda u, v, w: u // (v - v), engine="sim") == 0


@pytest.mark.sim
@pytest.mark.parametrize("f, options, error, message", [
    (polynomial, {"bins": 3}, MethodError, r"f returns bin -98 for the triangle \(0, 1, 2\); bins are 0 to 2"),
    (one, {"method": "cpu"}, EngineError, "method 'cpu' runs on cpu, not on 'sim'"),
    (lambda u, v, w, x, y, z: x < y, {"vertex_values": np.zeros(3, "M8[D]")}, GraphError,
     r"vertex_values on a GPU are numbers or bools, not datetime64\[D\]"),
    (one, {"max_seconds": 1e-9}, GraphError, "reduce_triangles would take about"),
])  # fmt: skip
def test_what_is_refused(f, options, error, message):
    with pytest.raises(error, match=message):
        tcgpu.reduce_triangles(tcgpu.generate.clique(3), f, engine="sim", **options)


@pytest.mark.sim
def test_the_number_of_bins_may_be_of_any_integer_type():
    graph = tcgpu.generate.clique(4)
    assert tcgpu.reduce_triangles(graph, lambda u, v, w: w - 2, bins=np.int8(2), engine="sim").tolist() == [1, 3]


@pytest.mark.sim
def test_sums_that_do_not_fit_the_device_are_refused(monkeypatch):
    monkeypatch.setattr(runtime, "memory_free", lambda: 10_000)
    assert tcgpu.reduce_triangles(GRAPH, one, engine="sim") == tcgpu.count(GRAPH)
    f, options = CASES["edges"]
    with pytest.raises(GraphError, match="need [1-9][0-9,]* bytes .* has 10,000 free: engine 'cpu' takes"):
        tcgpu.reduce_triangles(GRAPH, f, **options, engine="sim")


@pytest.mark.sim
@pytest.mark.parametrize("graph", [Graph.from_edges([], [], 0), Graph.from_edges([], [], 3), tcgpu.generate.star(5)])
def test_without_triangles_sums_are_zero(graph):
    assert tcgpu.reduce_triangles(graph, one, engine="sim") == 0
    assert tcgpu.reduce_triangles(graph, one, engine="sim", per="edge").tolist() == graph.m * [0]


# ---------------------------------------------------------------------------------------------------------- on a GPU


@pytest.fixture(scope="module")
def large():
    """A graph of hubs with weights: R-MAT, and a vertex that is joined to all others."""
    pairs = np.array(tcgpu.generate.rmat(15, 16, seed=1).edges()).T
    hub = [(0, v) for v in range(1, pairs.max() + 1)]
    graph = Graph.from_edges(np.concatenate([pairs, hub]))
    return graph, np.random.default_rng(6).standard_normal(graph.m)


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["natural", "degree", "random"])
@pytest.mark.parametrize("options", [{}, {"per": "vertex"}, {"per": "edge"}])
def test_a_gpu_adds_up_what_the_cpu_does(options, order, large):
    graph, weights = large
    for f, values in (largest, weights), (largest, np.arange(graph.m)), (three, weights.astype("f4")):
        if f is not three or options:
            given = {"edge_values": values, **options}
            found = tcgpu.reduce_triangles(graph, f, **given, order=order, engine="gpu")
            assert same(found, tcgpu.reduce_triangles(graph, f, **given))


@pytest.mark.gpu
@pytest.mark.parametrize("bins", [3, 100_000])
def test_a_gpu_fills_bins(bins, large):
    graph, weights = large
    ages = np.arange(graph.n, dtype=np.int16) % 7
    counts = tcgpu.reduce_triangles(graph, lambda u, v, w, x, y, z: (x + y + z) % 3, ages, bins=bins, engine="gpu")
    assert counts.sum() == tcgpu.count(graph) and counts[3:].sum() == 0
    found = tcgpu.reduce_triangles(graph, weights_in_bins_of_largest, ages, weights, bins=bins, engine="gpu")
    assert same(found, tcgpu.reduce_triangles(graph, weights_in_bins_of_largest, ages, weights, bins=bins))


def weights_in_bins_of_largest(u, v, w, x, y, z, uv, uw, vw):
    return max(x, y, z) % 3, min(uv, uw, vw)


@pytest.mark.gpu
@pytest.mark.parametrize("case", CASES)
def test_a_gpu_agrees_on_a_small_graph(case):
    f, options = CASES[case]
    found = tcgpu.reduce_triangles(GRAPH, f, **options, engine="gpu")
    assert same(found, tcgpu.reduce_triangles(GRAPH, f, **options))


@pytest.mark.gpu
def test_an_exception_on_a_gpu_is_noticed():
    with pytest.raises(MethodError, match="f raises an exception for a triangle; engine 'cpu' raises it here"):
        tcgpu.reduce_triangles(GRAPH, late, engine="gpu")
