"""Every kernel on graphs of 10,000 to 130,000 edges, without a GPU (see `compiled`), against the native engine.

Some faults need larger graphs than the simulator can run: a number taken modulo 2,048 that is right below it, a
vertex beyond the 65,535 that are near, a second trip around a queue.
"""

from functools import cache

import compiled
import kernel_shapes
import numpy as np
import pytest
import test_adaptive
import test_adaptive_tally
from sampling import share

import tcgpu
from tcgpu import DeviceGraph, cpu, generate
from tcgpu.distributed import count_part, slices, sum_values
from tcgpu.kernels import adaptive
from tcgpu.kernels.bisson_fatica import k_truss, support
from tcgpu.registry import METHODS
from tcgpu.truss import native_peeling, peeling

pytestmark = pytest.mark.sim
WITH_KERNELS = [name for name, method in METHODS.items() if "sim" in method.engines]
AT_SIZE = [name for name in WITH_KERNELS if name != "levels"]  # it tests all combinations of vertices
GRAPHS = {
    "R-MAT": lambda: generate.rmat(13, 8),
    "co-papers": lambda: generate.copapers(1500, 40),
    "mesh": lambda: generate.mesh(60, 60),
    "road": lambda: generate.road(85, 85),
    "wide R-MAT": lambda: generate.rmat(17, 1),  # more vertices than are near, and than 16 bits number
}


@cache
def graph(name, order="natural"):
    return GRAPHS[name]().ordered(order)


@cache
def triangles(name):
    return cpu.plan(graph(name)).count()


@pytest.mark.parametrize(
    "method, name", [(m, name) for m in AT_SIZE for name in share(["R-MAT", "co-papers", "mesh", "road"], m, of=2)]
)
def test_counts(method, name, large):
    own = METHODS[method].prepare(graph(name), None)
    assert METHODS[method].plan(own).count() == triangles(name)


@pytest.mark.parametrize("method", AT_SIZE)
def test_counts_on_a_small_device(method, processor):
    with processor.instead_of_the_simulator():
        own = METHODS[method].prepare(graph("R-MAT"), None)
        assert METHODS[method].plan(own).count() == triangles("R-MAT")


@pytest.mark.parametrize("knobs", kernel_shapes.KNOBS["levels"])
@pytest.mark.parametrize("small", [generate.mesh(30, 30), generate.rmat(8)], ids=["mesh", "R-MAT"])
def test_counts_of_levels(small, knobs, large):
    assert METHODS["levels"].plan(small, **knobs).count() == cpu.plan(small).count()


@pytest.mark.parametrize("method", WITH_KERNELS)
def test_counts_in_any_order_of_threads(method, processor):
    """Where a barrier or a syncwarp is missing, a count changes or threads wait in vain."""
    tried = generate.rmat(6 if method == "levels" else 10, seed=3)
    own = METHODS[method].prepare(tried, None)
    with processor.instead_of_the_simulator(seed=1, **compiled.LARGE):
        for knobs in kernel_shapes.settings(method, own):
            assert METHODS[method].plan(own, **knobs).count() == cpu.plan(tried).count(), knobs


def run(plan, blocks=200):
    """The result of a plan with few blocks, each of which then repeats its loop more often."""
    return kernel_shapes.with_few_blocks(plan, blocks).count()


def same(own, **knobs):
    """Whether `adaptive` finds the triangles of each edge and vertex that the native engine does."""
    plain = own.to_graph() if isinstance(own, DeviceGraph) else own
    of_edges, of_vertices = (make(own, **knobs) for make in (adaptive.support_plan, adaptive.triangles_plan))
    return np.array_equal(run(of_edges), cpu.support(plain, "natural")) and np.array_equal(
        run(of_vertices), cpu.triangles(plain, "natural")
    )


def cases(by_degree, as_it_comes):
    """Knobs of `adaptive` that force a class, each with a graph that has such columns."""
    found = []
    for name, order, knobs_of in (("wide R-MAT", "degree", by_degree), ("co-papers", "natural", as_it_comes)):
        found += [pytest.param(name, order, knobs, id=f"{order} order, {case}") for case, knobs in knobs_of.items()]
    return found


@pytest.mark.parametrize(
    "name, order, knobs", share(cases(test_adaptive.BY_DEGREE, test_adaptive.AS_IT_COMES), "counts", of=2)
)
def test_each_class_of_adaptive_counts(name, order, knobs, large):
    assert run(adaptive.plan(graph(name, order), **knobs)) == triangles(name)


@pytest.mark.parametrize(
    "name, order, knobs", share(cases(test_adaptive_tally.BY_DEGREE, test_adaptive_tally.AS_IT_COMES), "edges")
)
def test_each_class_of_adaptive_finds_edges(name, order, knobs, large):
    own = graph(name, order)
    assert np.array_equal(run(adaptive.support_plan(own, **knobs)), cpu.support(own, "natural"))


@pytest.mark.parametrize("order", ["natural", "degree"])
@pytest.mark.parametrize("name", GRAPHS)
def test_adaptive_finds_edges_and_vertices(name, order, large):
    assert same(graph(name, order))


@pytest.mark.parametrize("seed", share([1, 2], "any order", of=2))
@pytest.mark.parametrize("case", test_adaptive.BY_DEGREE | test_adaptive_tally.BY_DEGREE)
def test_each_class_of_adaptive_in_any_order_of_threads(case, seed, processor):
    own, counts, tallies = (
        generate.rmat(11, seed=4).ordered("degree"),
        test_adaptive.BY_DEGREE,
        test_adaptive_tally.BY_DEGREE,
    )
    with processor.instead_of_the_simulator(seed=seed, **compiled.LARGE):
        assert case not in tallies or same(own, **tallies[case])
        assert case not in counts or run(adaptive.plan(own, **counts[case])) == cpu.plan(own).count()


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("knobs", [{}, {"words": 1}])
def test_adaptive_in_natural_order_in_any_order_of_threads(knobs, seed, processor):
    own = generate.rmat(10, seed=4)
    with processor.instead_of_the_simulator(seed=seed, **compiled.LARGE):
        assert same(own, **knobs) and run(adaptive.plan(own, **knobs)) == cpu.plan(own).count()


@pytest.mark.parametrize("name", ["R-MAT", "co-papers", "mesh"])
@pytest.mark.parametrize("method", support.KERNELS)
def test_support(method, name, large):
    own = graph(name)
    assert np.array_equal(support.plan(own, method).count(), cpu.support(own, "natural"))


@pytest.mark.parametrize("name", ["R-MAT", "co-papers"])
def test_trusses_by_bitmaps(name, large):
    own = graph(name)
    assert np.array_equal(k_truss.plan(own, 5).count() == 0, native_peeling.peel(own, 5))


@pytest.mark.parametrize("k", [3, 5, 12])
@pytest.mark.parametrize("name", ["R-MAT", "co-papers", "mesh"])
def test_trusses(name, k, large):
    own = graph(name)
    assert np.array_equal(peeling.peel(own, k), native_peeling.peel(own, k))


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("own", [generate.rmat(8), generate.copapers(300, 30), generate.mesh(60, 60)], ids=str)
def test_truss_numbers(own, seed, processor):
    """Hundreds of rounds, threads in any order."""
    with processor.instead_of_the_simulator(seed=seed, **compiled.LARGE):
        assert np.array_equal(peeling.numbers(own), native_peeling.numbers(own))


@pytest.mark.parametrize("name", ["R-MAT", "wide R-MAT", "mesh"])
def test_columns_made_on_a_device(name, large):
    u, v = graph(name).edges()
    u, v = np.append(u, v[::3]), np.append(v, u[::3])  # some edges twice, the second time reversed
    made = DeviceGraph.from_edges(u, v, graph(name).n)
    assert np.array_equal(made.row_idx, graph(name).row_idx) and np.array_equal(made.col_ptr, graph(name).col_ptr)
    by_degree = DeviceGraph.from_edges(u, v, graph(name).n, order="degree")
    assert run(adaptive.plan(by_degree)) == triangles(name)
    assert same(by_degree)


@pytest.mark.parametrize("name", ["R-MAT", "mesh"])
def test_parts(name, large):
    own = graph(name)
    parts = slices(own, 3)
    assert sum(count_part(own, part, engine="sim").triangles for part in parts) == triangles(name)
    found = sum_values([count_part(own, part, "support", engine="sim") for part in parts], own.m)
    assert np.array_equal(found, cpu.support(own, "natural"))


def test_a_graph_streams_through_a_small_device(large):
    own = graph("R-MAT")
    assert tcgpu.count(own, engine="sim", device_memory="1MB") == triangles("R-MAT")
