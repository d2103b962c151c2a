"""Every kernel in the simulator: the same count as the native engine and brute force, whatever the launch shape."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from kernel_shapes import MOST_EDGES, PUBLISHED, QUICK, run_shuffled, settings, small_graphs, well_known
from sampling import share

from tcgpu import Graph, GraphError, MethodError, cpu
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels import Plan
from tcgpu.kernels.device import columns, merge
from tcgpu.kernels.report import column_block, naive, report_auto
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
GRAPHS = small_graphs()
ON_GPU = [name for name, method in METHODS.items() if "sim" in method.engines]


@pytest.fixture(autouse=True)
def simulator():
    with runtime.using("sim"):
        yield


def brute_force(graph):
    dense = graph.lower().toarray().astype(float)  # NumPy multiplies integers slowly; sums below 2**53 are exact
    return int(((dense.T @ dense) * dense).sum())


@pytest.mark.parametrize("method, name", [(method, name) for method in ON_GPU for name in share(GRAPHS, method, of=3)])
def test_counts_are_those_of_brute_force(method, name):
    graph = GRAPHS[name]
    expected = brute_force(graph)
    assert cpu.plan(graph).count() == expected
    for knobs in share(settings(method, graph), name + method, of=7):
        assert METHODS[method].plan(graph, **knobs).count() == expected, knobs


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("method", ON_GPU)
def test_counts_of_compiled_kernels_for_every_shape(method, name, large):
    graph = GRAPHS[name]
    expected = brute_force(graph)
    for knobs in settings(method, graph):
        assert METHODS[method].plan(graph, **knobs).count() == expected, knobs


@pytest.mark.parametrize("method", ON_GPU)
def test_counts_of_well_known_graphs(method, graphs_folder, compiled_kernels):
    tried = 0
    for name, graph, expected in well_known(graphs_folder, MOST_EDGES["sim"].get(method, 5000)):
        for knobs in settings(method, graph):
            assert METHODS[method].plan(graph, **knobs).count() == expected, (name, knobs)
        tried += 1
    assert tried >= (2 if method in MOST_EDGES["sim"] else 3)


@pytest.mark.parametrize("method", ON_GPU)
def test_counts_do_not_depend_on_the_order(method, compiled_kernels):
    graph = GRAPHS["skewed"]
    for order in ("degree", "bfs", "random"):
        assert METHODS[method].plan(graph.ordered(order), **QUICK.get(method, {})).count() == brute_force(graph)


@pytest.mark.parametrize(
    "method, knobs",
    [(name, QUICK.get(name, {})) for name in ON_GPU]
    + [(name, knobs) for name in PUBLISHED for knobs in PUBLISHED[name]],
)
def test_counts_do_not_depend_on_the_order_of_threads(method, knobs):
    graph = Graph.from_edges(*np.random.default_rng(3).integers(0, 90, (2, 700)))
    for seed in share(range(3), method):
        run = METHODS[method].plan(graph, **knobs).allocate()
        run_shuffled(run, seed)
        assert run.result() == brute_force(graph)


@pytest.mark.parametrize("method", ["naive", "column_block"])
def test_blocks_without_work_change_nothing(method):
    graph = GRAPHS["wheel"]
    plan = METHODS[method].plan(graph, threads=3)
    more = replace(plan, steps=[replace(step, blocks=graph.n + graph.m) for step in plan.steps])
    assert more.count() == plan.count() == brute_force(graph)


@pytest.mark.parametrize(
    "nonzeros, knobs, chosen",
    [(6, {}, naive), (7, {}, column_block), (8, {"threshold": 9}, naive), (1, {"threshold": 1}, column_block)],
)
@pytest.mark.parametrize("published", [False, True])
def test_report_auto_chooses_by_nonzeros_per_column(nonzeros, knobs, chosen, published):
    """By default from the report's "around 7" on."""
    graph = Graph.from_edges(*np.triu_indices(2 * nonzeros + 1, 1))
    assert graph.nonzeros_per_column == nonzeros
    (step,), (expected,) = (
        plan.steps
        for plan in (
            report_auto.plan(graph, **knobs, published=published), chosen.plan(graph, published=published)
        )
    )  # fmt: skip
    assert step.kernel is expected.kernel


def test_the_columns_of_the_report_are_27_on_its_first_three_graphs_and_1_on_the_last(load_benchmark):
    """By the longest column: the report names that of its last graph, the classes have those of the others."""
    longest = {"delaunay_n22": 26, "great-britain_osm": 5, "auto": 13, "coPapersCiteseer": 1093}
    columns = {name: columns for name, (_, _, columns) in load_benchmark("papers").REPORT.items()}
    assert {name: report_auto.report_columns(rows) for name, rows in longest.items()} == columns
    hub = Graph.from_edges(np.zeros(1093, np.int64), np.arange(1, 1094))
    assert report_auto.plan(hub, threshold=0, published=True).steps[0].args[2] == 1


@pytest.mark.parametrize("method", ON_GPU)
def test_a_plan_runs_again_after_a_reset(method, compiled_kernels):
    run = METHODS[method].plan(GRAPHS["skewed"], **QUICK.get(method, {})).allocate()
    run.launch()
    first = run.result()
    run.reset()
    run.launch()
    assert run.result() == first == brute_force(GRAPHS["skewed"])


@pytest.mark.parametrize("method", ON_GPU)
def test_knobs_are_those_that_plan_takes_and_are_checked(method):
    graph = GRAPHS["wheel"]
    plan = METHODS[method].plan
    assert plan(graph, **METHODS[method].knobs).count() == plan(graph).count()
    for knob in METHODS[method].knobs:
        with pytest.raises(MethodError, match=knob):
            plan(graph, **{knob: -1})


# -------------------------------------------------------------------------------------------------- find_col_ptr, merge


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("threads, blocks", [(1, 1), (33, 2), (256, 40)])
def test_col_ptr_is_found_from_the_columns_of_the_nonzeros(name, threads, blocks):
    graph = GRAPHS[name]
    col_ptr = np.full(graph.n + 1, -1)
    simulate(columns.find_col_ptr.py_func, blocks, threads, (graph.col_of, col_ptr))
    starts = np.flatnonzero(graph.column_lengths)
    assert np.array_equal(np.flatnonzero(col_ptr >= 0), starts), "an empty column starts nowhere"
    assert np.array_equal(col_ptr[starts], graph.col_ptr[starts])
    simulate(columns.fill_empty_columns.py_func, blocks, threads, (graph.col_of, col_ptr))
    assert np.array_equal(col_ptr, graph.col_ptr)


COLUMN_LENGTHS = [[], [0], [0, 0, 0], [5], [0, 0, 3, 2], [3, 0, 0, 0, 2], [4, 1, 0, 0], [0, 2, 0, 0, 7, 1, 0]]


@pytest.mark.parametrize("lengths", [graph.column_lengths for graph in GRAPHS.values()] + COLUMN_LENGTHS)
@pytest.mark.parametrize("threads, blocks", [(1, 1), (33, 2), (256, 40)])
def test_the_columns_of_the_nonzeros_are_found_from_col_ptr(lengths, threads, blocks):
    """Also with empty columns at the beginning, in the middle and at the end, or a single one."""
    col_ptr = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    col_of = np.full(col_ptr[-1], -7, np.int32)
    simulate(columns.find_columns.py_func, blocks, threads, (col_ptr, col_of))
    assert np.array_equal(col_of, np.repeat(np.arange(len(lengths)), lengths))


def test_columns_that_cannot_be_numbered_with_32_bits_are_refused():
    graph = GRAPHS["wheel"]
    graph = Graph(graph.col_ptr, graph.row_idx)
    graph.m = 2**32
    with pytest.raises(GraphError, match="4,294,967,296 edges are too many"):
        naive.plan(graph)


def test_common_values_of_all_short_stretches():
    sets = [np.array(chosen, np.int32) for size in range(5) for chosen in combinations(range(4), size)]
    for a in sets:
        for b in sets:
            found = merge.common_values.py_func(a, 0, a.size, b, 0, b.size)
            assert found == np.intersect1d(a, b).size


def test_every_method_returns_a_plan():
    assert all(isinstance(METHODS[method].plan(GRAPHS["wheel"]), Plan) for method in ON_GPU)
