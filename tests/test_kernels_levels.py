"""`levels` on a GPU or in the simulator: searches by level, chunks and tasks, where bits lie, what is refused."""

from math import comb

import numpy as np
import pytest
from kernel_shapes import small_graphs
from sampling import default_and_share

import tcgpu
from helpers.level_models import unranked
from tcgpu import Graph, GraphError, MethodError, built_in, cpu
from tcgpu.declarations import CUDA
from tcgpu.engines import runtime
from tcgpu.engines.runtime import kernel
from tcgpu.kernels.chatterjee import breadth, levels
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, Search, position, split
from tcgpu.kernels.chatterjee.levels import row_start

GRAPHS = {name: graph for name, graph in small_graphs().items() if graph.m}
every_layout = pytest.mark.parametrize("layout", LAYOUTS)


@pytest.fixture(params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in CUDA], autouse=True)
def engine(request):
    with runtime.using(request.param):
        yield request.param


@pytest.mark.usefixtures("compiled_if_simulated")
@every_layout
@pytest.mark.parametrize("name", GRAPHS)
def test_a_search_scores_roots_as_the_native_one_does(name, layout):
    graph = GRAPHS[name]
    roots = np.arange(0, graph.n, max(1, graph.n // 5))
    scores = breadth.Search(graph).scores(roots, 4000, layout)
    assert np.array_equal(scores, Search(graph).scores(roots, 4000, layout))
    for root, (_, _, tests, depth) in zip(roots.tolist(), scores.tolist(), strict=True):
        assert depth == Search(graph)(root)[1].max() + 1
        alone = component_of(graph, root)
        assert tests == split(alone, shared_bits=0, machines=3, roots=np.array([root_in(graph, root)])).total_tests


def component_of(graph, root):
    """The graph of what the root reaches."""
    vertices = np.sort(Search(graph)(root)[0])
    u, v = graph.edges()
    inside = np.isin(u, vertices)
    return Graph.from_edges(np.searchsorted(vertices, u[inside]), np.searchsorted(vertices, v[inside]), vertices.size)


def root_in(graph, root):
    """The number of the root in that graph."""
    return int(np.searchsorted(np.sort(Search(graph)(root)[0]), root))


@pytest.mark.usefixtures("compiled_if_simulated")
def test_either_search_makes_the_same_split():
    path, star = np.arange(40), np.full(30, 41)
    both = Graph.from_edges(np.r_[path, star], np.r_[path + 1, np.arange(42, 72)], 80)
    cases = [(both, 300, 2), (GRAPHS["skewed"], 1000, 1), (GRAPHS["random"], 1000, 1)]
    for graph, shared_bits, components in default_and_share(cases, "best root", of=2):
        here, native = (
            split(graph, shared_bits=shared_bits, machines=3, roots=graph.n, search=search(graph))
            for search in (breadth.Search, Search)
        )
        assert np.count_nonzero(here.tried > 1) == components
        for field in ("order", "level_ptr", "roots", "tried", "start", "size", "first"):
            assert getattr(here, field).tolist() == getattr(native, field).tolist()


@pytest.mark.parametrize("n", [3, 4, 5, 11, 40, 1_500_000])
def test_a_combination_is_found_by_its_index(n):
    most = comb(n, 3)
    for first in sorted({0, max(0, most // 3 - 5000), max(0, most - 10_000)}):
        last = min(most, first + 10_000)
        chunks, tasks = np.zeros((1, 7), np.int64), np.zeros((1, 4), np.int64)
        chunks[0, levels.SIZE], tasks[0, levels.FIRST], tasks[0, levels.LAST] = n, first, last
        found = [runtime.device_array(last - first, np.int32) for _ in range(3)]
        levels.write_kernel.launch(2, 32, runtime.to_device(chunks), runtime.to_device(tasks), *found)
        expected = unranked(np.arange(first, last), n, 3)
        assert np.array_equal(np.stack([runtime.to_host(array) for array in found], axis=1), expected)


@every_layout
@pytest.mark.parametrize("memory, arrangement", [("shared", "redundant"), ("global", "redundant"), ("global", "one")])
def test_every_bit_lies_where_the_layout_says(layout, memory, arrangement):
    graph = GRAPHS["skewed"]
    chunks = levels.split_for_device(graph, layout)
    table, bits = levels.chunk_table(chunks, levels.edges_by_level(graph, chunks)[2], memory, arrangement)
    shrink = int(layout != "matrix")
    for row, start, size in zip(table, chunks.start, chunks.size, strict=True):
        i, j = np.triu_indices(size, 1)
        found = levels.row_start.py_func(i, row[levels.ORIGIN], row[levels.STRIDE], shrink) + j
        rows, offset = (chunks.n, start) if arrangement == "one" else (size, 0)
        inside = position(offset + i, offset + j, int(rows), layout)
        assert np.ptp(found - inside) == 0, "a chunk's bits lie together, as the layout has them"
        first = int((found - inside)[0])
        assert (first == levels.TASK_BITS) if memory == "shared" else first % levels.PARTITION == 0
        assert memory == "shared" or found.max() < bits


@kernel("void(int32[::1], int64, int64[::1])")
def row_starts(rows, stride, found):
    for k in range(rows.size):
        found[k] = row_start(rows[k], 0, stride, 1)


def test_rows_of_32_bits_have_places_beyond_32_bits():
    rows, found = np.array([46_340, 46_341, 70_000, 2**31 - 2], np.int32), runtime.device_array(4, np.int64)
    row_starts.launch(1, 1, runtime.to_device(rows), 2**31, found)
    assert runtime.to_host(found).tolist() == [row * 2**31 - row * (row + 1) // 2 for row in rows.tolist()]


def test_chunks_have_their_edges_and_no_others():
    for graph in GRAPHS.values():
        chunks = levels.split_for_device(graph)
        low, high, edge_ptr = levels.edges_by_level(graph, chunks)
        table, _ = levels.chunk_table(chunks, edge_ptr, "auto", "redundant")
        inside = np.stack(graph.edges())
        for row in table:
            start, end = row[levels.START], row[levels.START] + row[levels.SIZE]
            mine = slice(row[levels.EDGES], row[levels.EDGES_END])
            places = chunks.place[inside]
            expected = ((places >= start) & (places < end)).all(axis=0).sum()
            assert low[mine].size == expected and (low[mine] >= start).all() and (high[mine] < end).all()


@pytest.mark.parametrize("piece", [None, 1, 7, 1000])
@pytest.mark.parametrize("schedule", built_in.SCHEDULES)
def test_tasks_are_all_combinations_once(piece, schedule):
    tests = np.array([5, 1, 22, 999, 1000, 1001])
    tasks = levels.task_table(tests, piece, schedule)
    sizes = tasks[:, levels.LAST] - tasks[:, levels.FIRST]
    if schedule == "longest":
        assert (np.diff(sizes) <= 0).all()
    assert piece is None or sizes.max() <= piece
    for chunk, expected in enumerate(tests):
        mine = tasks[tasks[:, levels.CHUNK] == chunk]
        mine = mine[np.argsort(mine[:, levels.FIRST])]
        assert [*mine[:, levels.FIRST], expected] == [0, *mine[:, levels.LAST]]
    places = tasks[np.argsort(tasks[:, levels.OFFSET], kind="stable")]
    ends = places[:, levels.OFFSET] + places[:, levels.LAST] - places[:, levels.FIRST]
    assert [*ends] == [*places[1:, levels.OFFSET], tests.sum()]


def test_shared_and_global_memory_serve_one_launch(monkeypatch):
    """With shared memory for the small chunks only, both kinds are there, in one kernel."""
    graph = GRAPHS["skewed"]
    chunks = levels.split_for_device(graph)
    fits = np.sort(chunks.bits)[0]
    small = split(graph, shared_bits=int(fits), machines=4)
    monkeypatch.setattr(levels, "split_for_device", lambda *args: small)
    assert 0 < small.too_large < len(small)
    plan = levels.plan(graph, skip=True, lanes=1)
    assert {bool(words) for words in plan.copied["chunks"][:, levels.WORDS]} == {True, False}
    assert len(plan.steps) == 1 and plan.count() == cpu.plan(graph).count()
    with pytest.raises(GraphError, match="chunks are too large for shared memory, the largest of .* memory='auto'"):
        levels.plan(graph, memory="shared")


def test_a_large_graph_is_searched_from_fewer_roots(engine, monkeypatch):
    path = Graph.from_edges(np.arange(5000), np.arange(1, 5001))
    for budget, roots, tried in ((3 * 15_002, 256, 3), (3 * 15_002, 2, 2), (0, 256, 1)):
        monkeypatch.setitem(levels.SEARCH_BUDGET, engine == "sim", budget)
        assert levels.split_for_device(path, roots=roots).tried.tolist() == [tried]


def test_too_many_tasks_are_refused():
    with pytest.raises(GraphError, match="take a larger piece than 1"):
        levels.plan(tcgpu.generate.clique(600), piece=1)


def test_long_runs_are_refused_before_any_launch(engine):
    graph = tcgpu.generate.clique(10_000 if engine == "gpu" else 2000)
    what = "on this GPU to test 166,616,670,000 comb" if engine == "gpu" else "in the simulator"
    with pytest.raises(GraphError, match=f"levels would take about .* {what}"):
        levels.plan(graph, threads=1, blocks=1).count()


def test_skipping_is_the_approach_of_those_that_make_combinations():
    with pytest.raises(MethodError, match="skip is one of False, not True"):
        levels.plan(GRAPHS["wheel"], approach="A", skip=True)
