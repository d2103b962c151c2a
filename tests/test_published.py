"""Methods as their papers have them: they do what is printed, step for step, where ours do less, and count the same."""

import numpy as np
import pytest
from kernel_shapes import PUBLISHED, small_graphs
from test_costs import reads

import tcgpu
from tcgpu import Graph, GraphError, MethodError, cpu
from tcgpu.engines import runtime
from tcgpu.insight import trace_plan
from tcgpu.kernels.bisson_fatica import algorithm_4
from tcgpu.kernels.chatterjee import levels
from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
GRAPHS = {name: graph for name, graph in small_graphs().items() if graph.m <= 2500}
SMALL = {name: graph for name, graph in GRAPHS.items() if 0 < graph.m <= 350}
every_small_graph = pytest.mark.parametrize("name", SMALL)


@pytest.fixture(autouse=True)
def simulator():
    with runtime.using("sim"):
        yield


def lookups(graph):
    """The rows of column i, for each nonzero (i, j)."""
    return int(graph.column_lengths[graph.row_idx].sum())


def test_every_method_with_additions_can_do_without():
    can = {name for name, method in METHODS.items() if "published" in method.knobs}
    assert can == {*PUBLISHED, "report_auto", "bitmap_auto", "levels"}
    assert not any(METHODS[name].knobs["published"] for name in can)


@every_small_graph
def test_naive_merges_whole_columns(name):
    """A nonzero reads its row, and two rows for each step of a merge from the front of both columns on."""
    graph, steps = SMALL[name], 0
    for i, j in zip(*graph.edges(), strict=True):
        a, b = sorted((i, j))
        left, right = graph.column(a).tolist(), graph.column(b).tolist()
        while left and right:
            x, y = left[0], right[0]
            left, right, steps = left[x <= y :], right[y <= x :], steps + 1
    assert reads(METHODS["naive"].plan(graph, published=True), "row_idx") == graph.m + 2 * steps


@every_small_graph
def test_column_block_keeps_whole_columns_and_reads_each_row_of_them_once(name):
    """Beside the other column's rows: an element of the columns in shared memory is read from there."""
    graph = SMALL[name]
    plan = METHODS["column_block"].plan(graph, published=True, tile=1, columns=3)
    longest = max(graph.col_ptr[min(j + 3, graph.n)] - graph.col_ptr[j] for j in range(0, graph.n, 3))
    assert plan.steps[0].shared >= 4 * longest
    theirs = reads(METHODS["naive"].plan(graph, published=True), "row_idx")
    assert reads(plan, "row_idx") == graph.m + graph.m + (theirs - graph.m) // 2


def test_columns_that_do_not_fit_are_refused():
    star = Graph.from_edges(np.zeros(13_000, np.int64), np.arange(1, 13_001))
    with pytest.raises(GraphError, match="has room for 12,288 rows, not for 13,000: take fewer columns or published=F"):
        METHODS["column_block"].plan(star, columns=1, published=True)


@every_small_graph
@pytest.mark.parametrize("method", ["bitmap_warp", "bitmap_block_global"])
def test_every_look_up_reads_the_bitmap_and_none_a_fold(method, name):
    """Rows are read to be set, looked up, and reset: also of a column too short for a triangle, and to its end."""
    graph = SMALL[name]
    for read, expected in (("bitmap", graph.m + lookups(graph)), ("row_idx", 2 * graph.m + lookups(graph))):
        plan = METHODS[method].plan(graph, published=True, threads=64, blocks=2)
        assert plan.created["bitmap"][1] == np.int64 and reads(plan, read) == expected


@every_small_graph
@pytest.mark.parametrize("method", algorithm_4.KERNELS)
def test_every_thread_adds_to_the_support_of_the_edge_that_is_handed_out(method, name):
    """Line 22, whatever it has found: a request of each warp that works on the edge."""
    graph = SMALL[name]
    launches, run = trace_plan(algorithm_4.support_plan(graph, method))
    assert np.array_equal(run.result(), cpu.support(graph, "natural"))
    (adds,) = (
        measures["atomic_requests"]
        for (function, line), measures in launches[-1].lines.items()
        if "cuda.atomic.add(supp, io" in function.lines[line - function.first]
    )
    assert adds == graph.m * (1 if method == "warp" else algorithm_4.THREADS // 32)


@every_small_graph
def test_the_top_of_the_search_tree_is_brought_for_each_edge(name):
    """So that with and without it a trace differs on every graph with edges, where ours does only on long columns."""
    asked = {
        (published, cached): tcgpu.trace(
            SMALL[name], "warp_search", published=published, cached=cached, max_seconds=100
        ).totals()["load_requests"]
        for published in (True, False)
        for cached in (True, False)
    }  # fmt: skip
    assert asked[True, True] > asked[True, False]
    if SMALL[name].max_degree <= 32:
        assert asked[False, True] == asked[False, False], "edges with few look-ups share the lanes"


def test_algorithm_1_takes_a_component_whole_or_the_first_root_that_fits():
    path, clique, loose = np.arange(30), np.triu_indices(12, 1), np.array([0, 1])
    edges = [np.stack([path, path + 1]), np.stack(clique) + 40, np.stack([loose, loose + 1]) + 60]
    graph = Graph.from_edges(*np.concatenate(edges, axis=1), 63)
    chunks = split(graph, shared_bits=45, machines=2, roots=None)  # room for 10 vertices
    sizes = {int(chunks.order[start]): int(size) for start, size in zip(chunks.start, chunks.size, strict=True)}
    assert sizes[60] == 3, "a component that fits is one chunk"
    assert sizes[40] == 12 and chunks.too_large == 1, "no root makes levels of a clique fit"
    assert chunks.roots[0] == 0 and chunks.size.max() == 12 and chunks.tried[0] == 31, "any root of a path does"
    middle = Graph.from_edges(*np.concatenate([np.stack([0 * path, path + 1]), np.stack([path, path + 1]) + 31], 1), 62)
    assert split(middle, shared_bits=45, machines=2, roots=None).too_large == 1, "a star has its centre everywhere"
    assert METHODS["levels"].plan(graph, published=True).count() == 220


def test_algorithm_1_is_refused_if_its_searches_take_too_long(monkeypatch):
    with pytest.raises(MethodError, match="skip"):
        METHODS["levels"].plan(GRAPHS["wheel"], published=True, skip=True)
    monkeypatch.setattr(levels, "SEARCH_BUDGET", {True: 1000, False: 1000})
    with pytest.raises(GraphError, match="a breadth-first search from each of 50 vertices"):
        METHODS["levels"].plan(GRAPHS["wheel"], published=True)
