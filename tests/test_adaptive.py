"""`adaptive`: every class of vertices forced in turn, and the columns that are made on the device."""

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import run_shuffled, small_graphs, with_few_blocks
from sampling import share

import tcgpu
from tcgpu import DeviceGraph, Graph, GraphError, MethodError, cpu, generate
from tcgpu.declarations import CUDA
from tcgpu.engines import runtime
from tcgpu.insight.faults import CheckedRun, check_launch
from tcgpu.kernels import adaptive, order_costs
from tcgpu.kernels.adaptive import far, layout, merging

plan_module = import_module("tcgpu.kernels.adaptive.plan")  # its name in the package is that of the method

# the kernels that count: in degree order hubs, crowds, windows or two pointers; else columns or merges
BY_DEGREE = {
    "defaults": {},
    "classes": {"merge": 0},
    "merged": {"merge": 1},
    "merged, long columns searched": {"merge": 1, "long": 9},
    "hubs alone": {"heavy": 0},
    "windows alone": {"hubs": 0},
    "crowds alone": {"hubs": 0, "crowd": 1},
    "pointers alone": {"near": 0},
    "a few near": {"near": 30},
    "a few near, all of them hubs": {"near": 30, "hubs": 30, "heavy": 0},
    "a few hubs": {"hubs": 20, "heavy": 8},
    "crowds and windows": {"hubs": 0, "crowd": 6},
    "all at once": {"near": 60, "hubs": 15, "heavy": 4, "crowd": 9},
}
AS_IT_COMES = {
    "defaults": {},
    "pointers alone": {"words": 0},
    "local columns alone": {"words": 40, "short": 2},
    "some local columns": {"words": 2, "short": 5},
    "long local columns": {"words": 33, "short": 9},
    "searches": {"long": 4},
    "searches and local columns": {"words": 2, "short": 5, "long": 1},
}
GRAPHS = small_graphs() | {
    "R-MAT": generate.rmat(8, seed=2),
    "cliques": generate.copapers(250, 20),
}


@pytest.fixture
def roomy(monkeypatch):
    """A simulated device whose blocks have the shared memory of a large GPU: a byte for each near row fits."""
    facts = runtime.facts()
    if runtime.engine() == "sim":
        monkeypatch.setattr(runtime, "facts", lambda: replace(facts, shared_per_block=227 << 10))


def counted(graph, knobs, blocks=3):
    """The count of a plan with these knobs; its launches have only the blocks that a small graph needs."""
    plan = adaptive.plan(graph, **knobs)
    return (with_few_blocks(plan, blocks) if runtime.engine() == "sim" else plan).count()


@pytest.mark.sim
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_each_class_by_degree(knobs, compiled_kernels):
    for name, graph in GRAPHS.items():
        assert counted(graph.ordered("degree"), knobs) == cpu.plan(graph).count(), name


@pytest.mark.sim
@pytest.mark.parametrize("knobs", [{}, BY_DEGREE["a few hubs"], BY_DEGREE["all at once"], {"share": (1, 3)}])
def test_no_more_memory_than_needed(knobs, compiled_kernels, monkeypatch):
    large = layout.SIZED_FROM
    for name, graph in GRAPHS.items():
        ordered, counts = graph.ordered("degree"), []
        for sized_from in (large, 0):
            monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
            counts.append(counted(ordered, {"merge": 0} | knobs))
        assert counts[0] == counts[1], name
    arrays = adaptive.plan(ordered, merge=0, hubs=20, heavy=8).allocate().arrays
    filled = arrays["in_end"][:-1] - arrays["in_ptr"][:-1]
    assert filled.sum() <= arrays["in_edges"].size < ordered.m
    assert arrays["quads"].size < layout.most_quads(ordered)


@pytest.fixture
def far_edges(monkeypatch):
    """Lists far rows with in-edges of small graphs, too, with tables of so few rows that some columns take several; and
    has rows of bits for all near vertices, for columns with a few hubs."""
    monkeypatch.setattr(plan_module, "FAR_EDGES_FROM", 0)
    monkeypatch.setattr(layout, "FEWEST_HUBS", 2)
    if runtime.engine() == "sim":
        monkeypatch.setattr(far, "FAR_WINDOWS", ((5, far.NO_LIMIT, 64, 32, 4), (1, 5, 32, 32, 8)))


OF_FAR_EDGES = {
    "all far": {"near": 0},
    "a few near": {"near": 30},
    "all kinds": {"near": 60, "hubs": 15, "heavy": 4, "crowd": 9},
    "near, few of them hubs": {"near": 80, "hubs": 20, "heavy": 0, "crowd": 9},
    "near and hubs": {"near": 70, "hubs": 70, "heavy": 0},
    "a share": {"near": 50, "hubs": 20, "heavy": 4, "share": (1, 3)},
}


@pytest.mark.sim
@pytest.mark.parametrize("sized_from", [0, layout.SIZED_FROM])
@pytest.mark.parametrize("knobs", OF_FAR_EDGES.values(), ids=OF_FAR_EDGES)
def test_far_edges(knobs, sized_from, compiled_kernels, far_edges, monkeypatch):
    monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
    for name, graph in GRAPHS.items():
        assert of_all_shares(graph, knobs) == cpu.plan(graph).count(), name


@pytest.mark.sim
@pytest.mark.parametrize("knobs", OF_FAR_EDGES.values(), ids=OF_FAR_EDGES)
def test_far_edges_of_vertices_with_several_tasks(knobs, roomy, far_edges, monkeypatch):
    monkeypatch.setattr(layout, "MAX_TASK_IN_EDGES", 20)
    with runtime.using("sim"):
        for name in share(["R-MAT", "cliques", "clique", "skewed"], knobs, of=4):
            assert of_all_shares(GRAPHS[name], knobs) == cpu.plan(GRAPHS[name]).count(), name


def of_all_shares(graph, knobs):
    """The sum of the counts of every share of the number that `knobs` name."""
    index, of = knobs.get("share", (0, 1))
    shares = [knobs | {"share": ((index + k) % of, of)} for k in range(of)]
    return sum(counted(graph.ordered("degree"), each) for each in shares)


@pytest.mark.sim
@pytest.mark.parametrize("listed", [False, True])
def test_far_rows_are_not_taken_for_hubs_nor_for_one_another(listed, compiled_kernels, monkeypatch):
    """Their last 16 bits are those of hubs' near numbers, or of each other."""
    monkeypatch.setattr(plan_module, "FAR_EDGES_FROM", 0 if listed else 2**40)
    n, chance = 140_000, np.random.default_rng(5)
    ids = np.concatenate(
        [np.arange(8000, 8060), np.arange(65_400, 65_600), np.arange(73_536, 73_596), n - np.arange(1, 200)]
    )
    u, v = chance.choice(ids, (2, 20_000))
    graph = Graph.from_edges(u, v, n)
    graph = Graph(graph.col_ptr, graph.row_idx, order="degree", validate=False)
    assert counted(graph, {"merge": 0, "crowd": 40}) == cpu.plan(graph).count()


@pytest.mark.sim
@pytest.mark.parametrize("sized_from", [0, layout.SIZED_FROM])
@pytest.mark.parametrize("repeated, known", [(0, True), (200, True), (3000, False)])
def test_lists_have_room_for_what_degrees_say(repeated, known, sized_from, compiled_kernels, monkeypatch):
    """Repeats and loops count there, unless they are too many."""
    monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
    graph = GRAPHS["R-MAT"]
    picked = np.random.default_rng(6).integers(0, graph.m, repeated)
    loops = np.arange(repeated // 20)
    u = np.concatenate([graph.row_idx, graph.col_of[picked], loops])
    v = np.concatenate([graph.col_of, graph.row_idx[picked], loops])
    with runtime.using("sim"):
        for made in (DeviceGraph.from_edges(u, v, graph.n, order="degree"), DeviceGraph.from_graph(graph)):
            ordered = made.ordered("degree")
            assert (ordered.degrees is not None) == (known or made is not ordered)
            for knobs in ({}, {"near": 60, "hubs": 15, "heavy": 4, "crowd": 9}):
                plan = adaptive.plan(ordered, merge=0, **knobs)
                assert ("degrees" in plan.copied) == (ordered.degrees is not None)
                arrays = plan.allocate().arrays
                assert arrays["in_ptr"][-1] <= arrays["in_edges"].size
                assert plan.count() == cpu.plan(graph).count()
            assert np.array_equal(adaptive.support_plan(ordered).count(), cpu.support(ordered.to_graph(), "natural"))


@pytest.mark.sim
def test_columns_with_too_many_far_rows_are_merged(compiled_kernels, far_edges, monkeypatch):
    graph = GRAPHS["star"].ordered("natural")
    star = tcgpu.Graph(graph.col_ptr, graph.row_idx, order="degree", validate=False)
    for most, merged in ((60, False), (59, True)):  # a column has 60 rows
        monkeypatch.setattr(layout, "MOST_FAR", most)
        kernels = {step.kernel.__name__ for step in adaptive.plan(star, merge=0).steps}
        assert kernels.isdisjoint({"merge_kernel", "merge_short_kernel"}) != merged, kernels


@pytest.mark.sim
def test_far_windows_have_no_faults(roomy, far_edges):
    with runtime.using("sim"):
        run = adaptive.plan(GRAPHS["R-MAT"].ordered("degree"), near=30).allocate()
        steps = [step for step in run.plan.steps if step.kernel is far.far_window_kernel]
        for step in steps:
            args = step.kernel.typed(step.values(run.arrays))
            assert not check_launch(step.kernel.py_func, 2, step.threads, args, shared=step.shared)
    assert len(steps) == 2 and run.result() > 0


@pytest.mark.sim
@pytest.mark.parametrize("knobs", AS_IT_COMES.values(), ids=AS_IT_COMES)
def test_each_class_in_natural_order(knobs, compiled_kernels):
    for name, graph in GRAPHS.items():
        assert counted(graph, knobs) == cpu.plan(graph).count(), name


@pytest.mark.sim
def test_short_columns_of_near_vertices_are_merged_by_a_thread_each(monkeypatch):
    """Up to 6 rows, or 12 if they are near: whether they are, is only known of a graph on the device."""
    monkeypatch.setattr(merging, "SMALL", 0)
    for module in (merging, order_costs):
        monkeypatch.setattr(module, "MANY_EDGES", 0)
    offset = np.tile(np.arange(1, 11), 90)
    band = Graph.from_edges(np.repeat(np.arange(90), 10), np.repeat(np.arange(90), 10) + offset)
    for graph, kernel in (
        (generate.mesh(12, 12), merging.merge_columns_kernel),
        (band, merging.merge_kernel),
        (DeviceGraph.from_graph(band), merging.merge_columns_kernel),
        (DeviceGraph.from_graph(generate.clique(14)), merging.merge_kernel),
    ):
        with runtime.using("sim"):
            assert [step.kernel for step in adaptive.plan(graph).steps] == [kernel]
            count = cpu.plan(graph if isinstance(graph, Graph) else graph.to_graph()).count()
            assert sum(adaptive.plan(graph, share=(index, 3)).count() for index in range(3)) == count


@pytest.mark.sim
@pytest.mark.parametrize("graph", [generate.rmat(7, 6, seed=2), generate.random(150, 900, seed=1), generate.mesh(6, 6)])
def test_distant_columns_are_merged_by_a_kernel_of_their_own(graph, monkeypatch):
    monkeypatch.setattr(merging, "SMALL", 0)
    monkeypatch.setattr(order_costs.OrderCosts, "nearby", False)
    with runtime.using("sim"):
        ordered = DeviceGraph.from_graph(graph).ordered("degree")
        plans = [adaptive.plan(ordered, merge=1, share=(index, 3)) for index in range(3)]
        assert [step.kernel for step in plans[0].steps] == [merging.merge_filtered_kernel]
        checked = [CheckedRun(plan) for plan in plans]
        assert sum(each.run_all() for each in checked) == cpu.plan(graph).count()
        assert not any(each.faults for each in checked)


@pytest.mark.sim
@pytest.mark.parametrize("graph, looks", [(generate.clique(20), False), (generate.random(400, 1200, seed=3), True)])
def test_filters_are_looked_into_where_that_spares_columns(graph, looks, monkeypatch):
    """Empty filters spare all columns: then no triangle is found."""
    monkeypatch.setattr(merging, "SMALL", 0)
    monkeypatch.setattr(order_costs.OrderCosts, "nearby", False)
    with runtime.using("sim"):
        plan = adaptive.plan(DeviceGraph.from_graph(graph).ordered("degree"), merge=1)
        run = plan.allocate()
        some, found = run.arrays["tried"]
        assert 0 < some < graph.m and (found / some < 0.66) == looks
        run.arrays["filters"][:] = 0
        run.launch()
        assert run.result() == (0 if looks else cpu.plan(graph).count())


@pytest.mark.sim
def test_a_graph_with_too_many_quads_for_32_bits_is_merged(compiled_kernels, monkeypatch):
    last = np.uint32(2**31 - 1)
    assert layout.slots.py_func(last - 1, last) == (2**33 - 8, 2**33 - 4)
    ordered = generate.rmat(7, 6).ordered("degree")
    most = layout.most_quads(ordered, 3)
    for limit, merges in ((most, False), (most - 1, True)):
        monkeypatch.setattr(plan_module, "MAX_QUADS", limit)
        for merge in (None, 0):
            made = adaptive.plan(ordered, merge=merge)
            assert ("quads" in made.created) != merges
            made.count()


@pytest.mark.sim
def test_a_graph_whose_columns_have_one_row_is_not_counted():
    with runtime.using("sim"):
        plan = adaptive.plan(DeviceGraph.from_graph(generate.star(40)).ordered("degree"), merge=1)
        assert plan.steps == () and plan.count() == 0
        for verb in (adaptive.support_plan, adaptive.triangles_plan):
            plan = verb(plan_of := DeviceGraph.from_graph(generate.star(40)).ordered("degree"), merge=1)
            assert plan_of.max_column == 1 and not plan.count().any()
    estimate = tcgpu.estimate(generate.star(50_000), "adaptive", order="degree")
    assert estimate.kernels == [] and estimate.row()["limit"] == ""


@pytest.mark.sim
def test_warps_share_local_columns(compiled_kernels):
    graph = generate.clique(90)
    parts = [adaptive.plan(graph, words=2, share=(index, 3)).count() for index in range(3)]
    assert sum(parts) == cpu.plan(graph).count() and all(parts)


@pytest.mark.sim
def test_the_classes_are_not_empty(compiled_kernels):
    """On a graph where every kernel finds triangles, their counts add up to the total."""
    graph = generate.barabasi_albert(260, 9, seed=1).ordered("degree")
    plan = adaptive.plan(graph, near=40, hubs=15, heavy=4, crowd=14)
    run = with_few_blocks(plan).allocate()
    found, before = {}, 0
    for step in run.plan.steps:
        step.run(run.arrays)
        found[step.kernel.__name__], before = run.result() - before, run.result()
    assert found.pop("fill_hub_rows") == 0
    assert sum(found.values()) == cpu.plan(graph).count()
    assert set(found) == {"hub_kernel", "crowd_kernel", "window_kernel", "far_kernel"}
    assert all(found.values()), found


@pytest.mark.sim
def test_a_warp_of_any_order_counts_the_same(roomy):
    """With threads in orders drawn at random: where a barrier or a syncwarp is missing, a count changes."""
    graph = generate.rmat(7, seed=5).ordered("degree")
    expected = cpu.plan(graph).count()
    with runtime.using("sim"):
        for seed in share(range(5), "seed"):
            run = adaptive.plan(graph, near=60, hubs=20, heavy=4, crowd=8).allocate()
            run_shuffled(run, seed, blocks=2)
            assert run.result() == expected


@pytest.mark.sim
def test_a_small_device_takes_bits_for_all():
    with runtime.using("sim"):
        plan = adaptive.plan(GRAPHS["R-MAT"].ordered("degree"), hubs=0, crowd=1)
        assert 1 << 16 > runtime.facts().shared_per_block
        arrays = plan.allocate().arrays
        assert arrays["window_task_ptr"][-1] > 0 and "crowd_task_ptr" not in arrays


@pytest.mark.parametrize(
    "knobs", [{"near": -1}, {"near": 65536}, {"hubs": 8193}, {"short": 1}, {"crowd": 0}, {"words": -1}]
)
def test_knobs_out_of_range_are_refused(knobs):
    with pytest.raises(MethodError, match="is a whole number from"):
        adaptive.plan(GRAPHS["R-MAT"], **knobs)


@pytest.mark.sim
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_shares_by_degree_add_up(knobs, compiled_kernels):
    for name in ("R-MAT", "cliques"):
        assert_shares_add_up(GRAPHS[name].ordered("degree"), knobs, (2, 3))


@pytest.mark.sim
@pytest.mark.parametrize("knobs", AS_IT_COMES.values(), ids=AS_IT_COMES)
def test_shares_in_natural_order_add_up(knobs, compiled_kernels):
    for name in ("R-MAT", "cliques"):
        assert_shares_add_up(GRAPHS[name], knobs, (2, 3))


@pytest.mark.sim
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_shares_of_any_number_add_up(order, compiled_kernels):
    """Also more shares than there are tasks; and no share is the whole, where there are several tasks."""
    mixed = BY_DEGREE["all at once"] if order == "degree" else AS_IT_COMES["some local columns"]
    assert_shares_add_up(GRAPHS["R-MAT"].ordered(order), mixed, (1, 7))
    assert_shares_add_up(Graph.from_edges([0, 0, 1], [1, 2, 2]).ordered(order), {}, (5,))
    shares = [counted(GRAPHS["cliques"].ordered(order), mixed | {"share": (k, 3)}) for k in range(3)]
    assert max(shares) < 0.5 * sum(shares)


def assert_shares_add_up(graph, knobs, numbers):
    for of in numbers:
        shares = [counted(graph, knobs | {"share": (index, of)}) for index in range(of)]
        assert sum(shares) == cpu.plan(graph).count(), (of, shares)


@pytest.mark.sim
def test_a_share_can_be_counted_again(compiled_kernels):
    """Counting leaves its input unchanged, and resets its queue."""
    for order in ("degree", "natural"):
        plan = adaptive.plan(GRAPHS["R-MAT"].ordered(order), heavy=4, hubs=30, share=(1, 3))
        run, found = with_few_blocks(plan).allocate(), []
        for _ in range(2):
            run.reset()
            run.launch()
            found.append(run.result())
        assert found[0] == found[1] > 0


@pytest.mark.parametrize("share", [3, (1,), (2, 2), (-1, 2), (0, 0), (0.5, 2), (0, 1, 2), "01", None])
def test_an_invalid_share_is_refused(share):
    with pytest.raises(MethodError, match="share"):
        adaptive.plan(GRAPHS["R-MAT"], share=share)
    with pytest.raises(MethodError, match="has no knob 'share'"):
        tcgpu.count(GRAPHS["R-MAT"], "adaptive", share=share)


# --------------------------------------------------------------------------------------------- columns on the device

edges = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=120)
WHOLE = [np.int16, np.int32, np.int64, np.uint32, np.uint64]


@pytest.mark.sim
@given(edges, st.sampled_from(WHOLE), st.sampled_from(["natural", "degree", "auto"]))
@settings(max_examples=60, deadline=None)
def test_raw_edges_become_the_columns_of_a_graph(pairs, dtype, order):
    u, v = np.array(pairs, dtype).reshape(-1, 2).T
    with runtime.using("sim"):
        made = DeviceGraph.from_edges(u, v, 41, order=order)
    assert made.order == ("natural" if order == "auto" else order)  # of few edges
    same_columns(made, Graph.from_edges(u, v, 41, order=made.order))


@pytest.mark.sim
@pytest.mark.parametrize("columns", ["short", "long"])
def test_clean_edges_become_columns(columns):
    graph = generate.mesh(9, 9) if columns == "short" else generate.clique(40)
    edges = np.random.default_rng(1).permuted(graph.edges(), axis=0)
    with runtime.using("sim"):
        same_columns(DeviceGraph.from_edges(*edges, graph.n, clean=True), graph)


def same_columns(made, graph):
    assert (made.n, made.m, made.order) == (graph.n, graph.m, graph.order)
    for name in ("col_ptr", "row_idx", "col_of"):
        assert np.array_equal(runtime.to_host(getattr(made, name)), getattr(graph, name)), name


@pytest.mark.sim
def test_a_graph_is_copied_to_the_device_and_back():
    graph = GRAPHS["R-MAT"]
    with runtime.using("sim"):
        made = DeviceGraph.from_graph(graph)
        same_columns(made, graph)
        ordered = made.ordered("degree")
        assert ordered is made.ordered("degree") and made is made.ordered("natural")
        same_columns(ordered, graph.ordered("degree"))
        assert made.to_graph().equals(graph)
        assert tcgpu.count(made, "cpu") == cpu.plan(graph).count()
        assert "256 vertices" in repr(made)


@pytest.mark.parametrize("engine", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in CUDA])
@pytest.mark.parametrize("name", GRAPHS)
def test_col_of_is_made_on_the_device(name, engine):
    graph = Graph(GRAPHS[name].col_ptr, GRAPHS[name].row_idx)  # has not made its own yet
    with runtime.using(engine):
        made = DeviceGraph.from_graph(graph)
    assert "_col_of" not in vars(graph)
    same_columns(made, graph)


@pytest.mark.sim
@pytest.mark.parametrize(
    "u, v, n, words",
    [
        ([0, 1], [1], None, "two ends"),
        ([0, -1], [1, 2], None, "numbered from 0"),
        ([0, 5], [1, 2], 5, "n - 1 = 4"),
        ([0.5, 1.0], [1.0, 2.0], None, "whole numbers"),
    ],
)
def test_arrays_that_are_not_edges_are_refused(u, v, n, words):
    with runtime.using("sim"), pytest.raises(GraphError, match=words):
        DeviceGraph.from_edges(np.array(u), np.array(v), n)


@pytest.mark.sim
def test_an_order_that_the_device_cannot_compute_is_refused():
    with runtime.using("sim"), pytest.raises(GraphError, match="by degree or as they come"):
        DeviceGraph.from_edges(np.array([0]), np.array([1]), order="bfs")


# ----------------------------------------------------------------------------------------------------------- on a GPU


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_each_class_by_degree_on_a_gpu(knobs):
    """A thousand random graphs in all, and the difficult small ones."""
    rng = np.random.default_rng(11)
    for k in range(84):
        n = int(rng.integers(3, 400))
        size = int(rng.integers(1, 12 * n))
        u = (n * rng.random(size) ** rng.choice([1, 2, 4])).astype(np.int64)
        graph = Graph.from_edges(u, rng.integers(0, n, size), n)
        assert adaptive.plan(graph.ordered("degree"), **knobs).count() == cpu.plan(graph).count(), (k, n, size)
    for name, graph in GRAPHS.items():
        assert adaptive.plan(graph.ordered("degree"), **knobs).count() == cpu.plan(graph).count(), name


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", AS_IT_COMES.values(), ids=AS_IT_COMES)
def test_each_class_in_natural_order_on_a_gpu(knobs):
    for name, graph in GRAPHS.items():
        assert counted(graph, knobs) == cpu.plan(graph).count(), name


@pytest.mark.gpu
@pytest.mark.parametrize("of", [2, 3, 7, 100])
def test_shares_add_up_on_a_gpu(of):
    for knobs in BY_DEGREE.values():
        assert_shares_add_up(GRAPHS["R-MAT"].ordered("degree"), knobs, (of,))
    for knobs in AS_IT_COMES.values():
        assert_shares_add_up(GRAPHS["cliques"], knobs, (of,))
    assert_shares_add_up(generate.rmat(15).ordered("degree"), {}, (of,))
    assert_shares_add_up(generate.copapers(20_000, 40), {}, (of,))


@pytest.mark.gpu
@pytest.mark.parametrize("order", ["natural", "degree", "auto"])
@pytest.mark.parametrize("dtype", WHOLE)
def test_raw_edges_become_columns_on_a_gpu(order, dtype):
    rng = np.random.default_rng(3)
    u, v = rng.integers(0, 20_000, 300_000).astype(dtype), rng.integers(0, 20_000, 300_000).astype(dtype)
    found = DeviceGraph.from_edges(u, v, 20_000, order=order)
    same_columns(found, Graph.from_edges(u, v, 20_000, order=found.order))


@pytest.mark.gpu
def test_no_more_memory_than_needed_on_a_gpu(monkeypatch):
    """Of a Barabasi-Albert graph, whose columns have 24 rows at most, all in-edges are needed. Degrees say how many
    there are, so where these are known there is room for hubs, too."""
    graphs = generate.rmat(16, seed=3), generate.barabasi_albert(100_000, 12, seed=1), generate.clique(3000)
    saved, large = [], layout.SIZED_FROM
    for graph in (DeviceGraph.from_graph(graph).ordered("degree") for graph in graphs):
        assert adaptive.plan(graph, merge=0).created["in_edges"][0] == graph.m
        graph, counts, sizes = replace(graph, degrees=None), [], []
        for sized_from in (large, 0):
            monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
            with adaptive.plan(graph, merge=0).carried_out() as run:
                counts.append(run.result())
                sizes.append(run.arrays["in_edges"].size)
        assert counts[0] == counts[1] == cpu.plan(graph.to_graph()).count()
        saved.append(sizes[0] - sizes[1])
    assert saved[0] > 0 == saved[1] and saved[2] > 0


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", [*OF_FAR_EDGES.values(), {}])
def test_far_edges_on_a_gpu(knobs, far_edges, graphs_folder):
    """Of the shared graphs, of one with columns longer than a table, and of one with many vertices."""
    from kernel_shapes import well_known

    graphs = [graph for _, graph, _ in well_known(graphs_folder)]
    for graph in (*graphs, generate.clique(3000), generate.rmat(18, 8, seed=2)):
        index, of = knobs.get("share", (0, 1))
        shares = [knobs | {"merge": 0, "share": ((index + k) % of, of)} for k in range(of)]
        found = sum(adaptive.plan(graph.ordered("degree"), **each).count() for each in shares)
        assert found == cpu.plan(graph).count(), graph.name


@pytest.mark.gpu
def test_count_uses_it_on_a_gpu(graphs_folder):
    cupy = pytest.importorskip("cupy", reason="CuPy is not installed")
    from kernel_shapes import well_known

    assert tcgpu.registry.fastest() == "adaptive"
    for name, graph, expected in well_known(graphs_folder):
        assert tcgpu.count(graph) == expected, name
        there = tuple(cupy.asarray(end) for end in graph.edges())
        assert tcgpu.count(there) == tcgpu.count(DeviceGraph.from_edges(*there)) == expected, name


@pytest.mark.gpu
@pytest.mark.parametrize("knobs", BY_DEGREE.values(), ids=BY_DEGREE)
def test_a_large_skewed_graph_on_a_gpu(knobs):
    graph = generate.rmat(15)
    assert adaptive.plan(graph.ordered("degree"), **knobs).count() == cpu.plan(graph).count()
