"""Triangles of each edge and each vertex by `adaptive`: the native engine's, every class of vertices forced in turn."""

from importlib import import_module

import numpy as np
import pytest
from kernel_shapes import run_shuffled, small_graphs, well_known, with_few_blocks
from sampling import share

import tcgpu
from tcgpu import DeviceGraph, Graph, GraphError, MethodError, cpu, generate
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.insight.faults import CheckedRun
from tcgpu.kernels import adaptive, order_costs, results
from tcgpu.kernels.adaptive import merging, support_merges

support_plan = import_module("tcgpu.kernels.adaptive.support_plan")  # the package has a function of this name

BY_DEGREE = {
    "defaults": {},
    "classes": {"merge": 0},
    "no hubs": {"hubs": 0},
    "a few hubs": {"hubs": 20},
    "a few near, all of them hubs": {"near": 30, "hubs": 30},
}
AS_IT_COMES = {
    "defaults": {},
    "pointers alone": {"words": 0},
    "bands alone": {"words": 40},
    "bands of two words": {"words": 2},
    "bands of one word": {"words": 1},
    "rows looked up": {"words": 0, "long": 1},
    "rows looked up or merged, beside bands": {"words": 1, "long": 40},
}
GRAPHS = small_graphs() | {
    "R-MAT": generate.rmat(8, seed=2),
    "cliques": generate.copapers(250, 20),
}


def same(graph, **knobs):
    """Whether both plans find what the native engine does, with fewer blocks, for the simulator.

    Where the vertices' plan finds the triangles of edges first, it also has those. On a few graphs the launches run
    twice: `reset` has to bring back what they began with.
    """
    plain = graph.to_graph() if isinstance(graph, DeviceGraph) else graph
    vertices = adaptive.triangles_plan(graph, **knobs)
    edges = vertices if "support" in vertices.created else adaptive.support_plan(graph, **knobs)
    runs = {plan: launched(plan, again=graph.m < 300) for plan in {vertices, edges}}
    right = True
    for plan, answer, expected in (
        (vertices, "twice", 2 * cpu.triangles(plain)),
        (edges, "support", cpu.support(plain)),
    ):
        right &= np.array_equal(runtime.to_host(runs[plan].arrays[answer]), expected)
    assert np.array_equal(2 * runs[vertices].result(), runtime.to_host(runs[vertices].arrays["twice"]))
    for run in runs.values():
        run.free()
    return right


def launched(plan, again):
    run = (with_few_blocks(plan) if runtime.engine() == "sim" else plan).allocate()
    run.launch()
    if again:
        run.reset()
        run.launch()
    return run


def as_if_by_degree(u, v, n):
    """A graph that is marked as in degree order without being renumbered: any numbering gives the same triangles."""
    plain = Graph.from_edges(u, v, n)
    return Graph(plain.col_ptr, plain.row_idx, order="degree")


def all_stretches(n=8300, some=90, beside=()):
    """A dense graph on vertices drawn from all over the last 8,192 and a few before them, and on those named."""
    chance = np.random.default_rng(4)
    chosen = np.union1d(chance.choice(n, some, replace=False), beside).astype(np.int64)
    pairs = np.array(np.triu_indices(chosen.size, 1))
    u, v = chosen[pairs[:, chance.random(pairs.shape[1]) < 0.6]]
    return as_if_by_degree(u, v, n)


def long_lists():
    """Two neighbours that share 1,100 others: a hub in more columns than a warp takes at a time."""
    ends = np.repeat([0, 1], 1100), np.tile(np.arange(2, 1102), 2)
    return Graph.from_edges(*(np.append(end, k) for k, end in enumerate(ends))).ordered("degree")


def long_column():
    """The same the other way round: a column with more rows than a block has counters."""
    ends = np.repeat([0, 1], 1100), np.tile(np.arange(2, 1102), 2)
    return as_if_by_degree(*(np.append(end, k) for k, end in enumerate(ends)), 1102)


@pytest.mark.sim
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_each_class_by_degree(knobs, compiled_kernels):
    for name, graph in GRAPHS.items():
        assert same(graph.ordered("degree"), **knobs), name


@pytest.mark.sim
@pytest.mark.parametrize("knobs", AS_IT_COMES.values(), ids=AS_IT_COMES)
def test_each_class_in_natural_order(knobs, compiled_kernels):
    for name, graph in GRAPHS.items():
        assert same(graph, **knobs), name


@pytest.mark.sim
@pytest.mark.parametrize("hubs", [8192, 8000, 5000, 2048, 1])
def test_cores_of_all_sizes(hubs, compiled_kernels):
    assert same(all_stretches(), hubs=hubs)


@pytest.mark.sim
@pytest.mark.parametrize("many", [1, 5])
def test_tables_of_columns(many, compiled_kernels, monkeypatch):
    """Of all vertices, or of those with five in-edges; with so few rows at a time that some columns take several."""
    monkeypatch.setattr(support_plan, "MANY", many)
    monkeypatch.setattr(support_plan, "TABLE_ROWS", 32)
    for name, graph in GRAPHS.items():
        assert same(graph.ordered("degree"), hubs=10), name


@pytest.mark.sim
def test_counts_with_many_digits(compiled_kernels):
    assert same(long_lists(), hubs=0)
    assert same(long_column(), hubs=0)
    assert same(Graph.from_edges(*np.triu_indices(140, 1)).ordered("degree"), merge=0)
    assert same(Graph.from_edges(*np.triu_indices(140, 1)), words=3)
    assert same(Graph.from_edges(*np.triu_indices(140, 1)), words=0, long=1)


@pytest.mark.sim
def test_counters_are_left_out_where_they_do_not_pay(compiled_kernels, monkeypatch):
    monkeypatch.setattr(support_merges, "SMALL", 0)
    mesh, wheel = generate.mesh(26, 26), Graph.from_edges(*rim(300))
    for graph, counting in ((mesh, False), (wheel, True), (generate.clique(20), True)):
        given = DeviceGraph.from_graph(graph)
        assert support_merges.has_counters(given) == counting
        assert same(given, long=40)


@pytest.mark.sim
def test_short_columns_are_merged_by_a_thread_each(monkeypatch):
    """Unless there is a busy vertex, the centre of the wheel; for edges, unless there may be many triangles."""
    for module in (support_merges, merging):
        monkeypatch.setattr(module, "SMALL", 0)
    for module in (merging, order_costs):
        monkeypatch.setattr(module, "MANY_EDGES", 0)
    offset = np.tile(np.arange(1, 7), 600)
    with runtime.using("sim"):
        for graph, edges_alone, vertices_alone in (
            (generate.mesh(26, 26), True, True),
            (Graph.from_edges(np.repeat(np.arange(600), 6), np.repeat(np.arange(600), 6) + offset), False, True),
            (Graph.from_edges(*rim(300)), False, False),
        ):
            given = DeviceGraph.from_graph(graph)
            for plan, alone in ((adaptive.support_plan, edges_alone), (adaptive.triangles_plan, vertices_alone)):
                kernels = [step.kernel for step in plan(given).steps]
                assert (kernels == [support_merges.merge_columns_tally]) == alone
                checked = CheckedRun(plan(given))
                checked.run_all()
                assert not checked.faults
            assert same(given)


def rim(n):
    """The two ends of the edges of a wheel whose centre is the last of n + 1 vertices."""
    around = np.arange(n)
    return np.append(around, around), np.append(np.roll(around, 1), np.full(n, n))


@pytest.mark.sim
def test_the_classes_are_not_empty(compiled_kernels):
    """On a graph where every kernel finds triangles, each adds to those found before it."""
    graph = generate.barabasi_albert(260, 9, seed=1).ordered("degree")
    run = with_few_blocks(adaptive.support_plan(graph, hubs=15)).allocate()
    found, before = {}, 0
    for step in run.plan.steps:
        step.run(run.arrays)
        after = int(run.arrays["support"].sum())
        found[step.kernel.__name__], before = after - before, after
    assert found.pop("fill_core_rows") == 0
    assert sum(found.values()) == 3 * cpu.plan(graph).count()
    assert set(found) == {"and_tally", "table_tally", "merge_few_tally"}
    assert all(found.values()), found


@pytest.mark.sim
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_threads_of_any_order_find_the_same(order):
    """With threads in orders drawn at random: where a barrier or a syncwarp is missing, a number changes."""
    graph = generate.rmat(7, seed=5).ordered(order)
    knobs = {"hubs": 20} if order == "degree" else {"words": 1}
    with runtime.using("sim"):
        for seed in share(range(4), order, of=4):
            run = adaptive.triangles_plan(graph, **knobs).allocate()
            run_shuffled(run, seed, blocks=2)
            assert np.array_equal(run.arrays["support"], cpu.support(graph, "natural"))
            assert np.array_equal(run.result(), cpu.triangles(graph, "natural"))


@pytest.mark.sim
def test_from_columns_made_on_the_device(compiled_kernels):
    u, v, n = generate.edges("rmat", 7, 8)
    assert same(DeviceGraph.from_edges(u, v, n, order="degree"), hubs=20)


@pytest.mark.sim
def test_the_verbs_return_the_order_of_the_graph(compiled_kernels):
    graph = generate.rmat(6, seed=3)
    for order in ("degree", "natural", None):
        options = {"method": "adaptive", "engine": "sim", "order": order}
        assert np.array_equal(tcgpu.support(graph, **options), cpu.support(graph))
        assert np.array_equal(tcgpu.triangles(graph, **options), cpu.triangles(graph))
        assert tcgpu.support(graph, **options).dtype == tcgpu.triangles(graph, **options).dtype == np.int64


@pytest.mark.sim
def test_sums_past_32_bits():
    """A vertex whose edges have more triangles than 32 bits hold, one of them more than 16."""
    n = 3000
    support = np.full(n - 1, 2**21, np.int32)
    support[::3] = 2**15
    with runtime.using("sim"):
        for rows, columns in ((np.arange(1, n), np.zeros(n - 1)), (np.full(n - 1, n - 1), np.arange(n - 1))):
            twice = np.zeros(n, np.int64)
            args = rows.astype(np.int32), columns.astype(np.int32), support, twice
            simulate(results.sum_ends.py_func, 2, 64, args, shared=4 * results.MOST_SHARED)
            assert twice.max() == support.sum(dtype=np.int64) > 2**31
            assert twice.sum() == 2 * support.sum(dtype=np.int64)


@pytest.mark.parametrize("knobs", [{"near": -1}, {"hubs": 8193}, {"heavy": -1}, {"short": 1}, {"words": -1}])
def test_knobs_out_of_range_are_refused(knobs):
    with pytest.raises(MethodError, match="is a whole number from"):
        adaptive.support_plan(GRAPHS["R-MAT"], **knobs)


def test_bands_of_too_many_words_are_merged():
    for n, kernels in ((2**21, 4), (2**21 + 1, 1)):
        plan = adaptive.support_plan(Graph.from_edges([0, 1], [1, 2], n), words=1024)
        assert len(plan.steps) == kernels and support_merges.merge_tally in {step.kernel for step in plan.steps}


def test_too_many_edges_are_refused():
    class Large:
        n, m, order = 10, 2**31, "degree"

    with pytest.raises(GraphError, match="too many for edge support"):
        adaptive.support_plan(Large)


# ----------------------------------------------------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_each_class_by_degree_on_a_gpu(knobs):
    rng = np.random.default_rng(12)
    for k in range(50):
        n = int(rng.integers(3, 400))
        size = int(rng.integers(1, 12 * n))
        u = (n * rng.random(size) ** rng.choice([1, 2, 4])).astype(np.int64)
        assert same(Graph.from_edges(u, rng.integers(0, n, size), n).ordered("degree"), **knobs), (k, n, size)
    for name, graph in GRAPHS.items():
        assert same(graph.ordered("degree"), **knobs), name
    assert same(generate.rmat(15).ordered("degree"), **knobs)


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", AS_IT_COMES.values(), ids=AS_IT_COMES)
def test_each_class_in_natural_order_on_a_gpu(knobs):
    graphs = GRAPHS | {"more cliques": generate.copapers(20_000, 40), "mesh": generate.mesh(200, 200)}
    for name, graph in graphs.items():
        assert same(graph, **knobs), name


@pytest.mark.gpu
def test_short_columns_on_a_gpu():
    for graph in (generate.mesh(800, 900), generate.road(900, 900, seed=3)):
        given = DeviceGraph.from_graph(graph)
        for plan in (adaptive.support_plan(given), adaptive.triangles_plan(given)):
            assert [step.kernel for step in plan.steps] == [support_merges.merge_columns_tally]
        assert same(given)


@pytest.mark.gpu
def test_hubs_and_long_lists_on_a_gpu():
    for hubs in (8192, 8000, 5000, 2048, 1):
        assert same(all_stretches(), hubs=hubs)
    assert same(long_lists(), hubs=0) and same(long_column(), hubs=0)
    assert same(Graph.from_edges(*np.triu_indices(1500, 1)).ordered("degree"))


@pytest.mark.gpu
def test_well_known_graphs_on_a_gpu(graphs_folder):
    for name, graph, _ in well_known(graphs_folder):
        assert same(graph) and same(graph.ordered("degree")), name
