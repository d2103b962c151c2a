"""TriCore's kernel and its two baselines: ranges of edges, pairs of ranges, searches, diagonals, lengths of lists."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import run_shuffled, small_graphs
from sampling import share

import tcgpu
from helpers import lengths
from tcgpu import Graph, GraphError, MethodError, cpu, datasets, insight
from tcgpu.engines import runtime
from tcgpu.engines.simulator import simulate
from tcgpu.kernels.device import search
from tcgpu.kernels.tricore import merge_path, warp_search
from tcgpu.registry import METHODS

GRAPHS = small_graphs()
SHAPE = {"blocks": 3, "threads": 64}
KNOBS = {
    "warp_search": [
        {"cached": True},
        {"cached": False},
        {"cached": True, "published": True},
        {"cached": False, "published": True},
    ],
    "merge_path": [{"lanes": 32}, {"lanes": 5}],
    "thread_search": [{}, {"threads": 32}],
}
every_method = pytest.mark.parametrize("name", KNOBS)


@pytest.fixture
def simulator():
    with runtime.using("sim"):
        yield


in_simulator = [pytest.mark.sim, pytest.mark.usefixtures("simulator")]
compiled = [pytest.mark.sim, pytest.mark.usefixtures("compiled_kernels")]


def counted(name, graph, setting):
    """The count of a whole graph."""
    return METHODS[name].plan(graph, **SHAPE | KNOBS[name][setting]).count()


def launch(*arguments, cached, total=0):
    """The sum of `total` and what one launch of `warp_search_kernel` finds."""
    counter = runtime.to_device(np.array([total], np.int64))
    blocks, threads, shared = warp_search.shape(10**6, **SHAPE)
    arguments = [runtime.to_device(a) if isinstance(a, np.ndarray) else a for a in arguments]
    warp_search.warp_search_kernel.launch(blocks, threads, *arguments, int(cached), counter, shared=shared)
    return int(runtime.to_host(counter)[0])


def ranges(graph, cuts, *, named=True, cached=True):
    """The count of a graph by `warp_search`, a range of edges at a time; unless `named`, it searches for columns."""
    total = 0
    for first, last in zip([0, *cuts], [*cuts, graph.m], strict=True):
        cols = graph.col_of[first:last] if named else graph.col_of[:0]
        whole = (graph.col_ptr, graph.row_idx)
        total = launch(cols, first, last, 0, *whole, 0, *whole, cached=cached, total=total)
    return total


def pairs(graph, ends, *, cached=True):
    """The count of a graph by pairs of ranges of vertices, the columns of each in arrays of their own."""
    blocks = [columns(graph, low, high) for low, high in zip([0, *ends], [*ends, graph.n], strict=True)]
    total = 0
    for k, near in enumerate(blocks):
        for far in blocks[k:]:
            cols = graph.col_of[:0]
            total = launch(cols, 0, near[2].size, *near, *far, cached=cached, total=total)
    return total


def columns(graph, low, high):
    """The columns of vertices low..high-1: the first vertex, pointers into the rows, the rows."""
    begin, end = graph.col_ptr[low], graph.col_ptr[high]
    return low, graph.col_ptr[low : high + 1] - begin, graph.row_idx[begin:end].copy()


def two_columns(one, other):
    """A graph with one edge whose two columns have these rows: as many triangles as they share."""
    rows = [1, *(2 + row for row in sorted(one))], [2 + row for row in sorted(other)]
    n = 3 + max(max(row) for row in (*rows, [0]) if row)
    return Graph(np.concatenate([[0], np.cumsum([*map(len, rows)]), np.full(n - 2, sum(map(len, rows)))]),
                 np.concatenate(rows).astype(np.int32))  # fmt: skip


# ---------------------------------------------------------------------------------------------------- ranges and pairs


class TestWithoutAGpu:
    pytestmark = compiled

    @pytest.mark.parametrize("named", [True, False])
    @pytest.mark.parametrize("graph", GRAPHS)
    def test_ranges_of_the_edges_add_up(self, graph, named):
        graph = GRAPHS[graph]
        expected = cpu.plan(graph).count()
        for setting, cuts in enumerate(([], [graph.m // 3, graph.m // 2], [graph.m // 5] * 2)):
            assert ranges(graph, cuts, named=named, cached=setting != 1) == expected

    @pytest.mark.parametrize("graph", GRAPHS)
    def test_pairs_of_ranges_add_up(self, graph):
        graph = GRAPHS[graph]
        expected = cpu.plan(graph).count()
        several = [min(1, graph.n), *[graph.n // 4] * 2, max(0, graph.n - 1)]
        for setting, ends in enumerate(([graph.n // 2], several)):
            assert pairs(graph, sorted(ends), cached=setting == 0) == expected

    @settings(max_examples=15)
    @given(data=st.data())
    def test_any_cut_of_any_graph_is_exact(self, data):
        n = data.draw(st.integers(1, 20))
        ends = st.tuples(st.integers(0, n - 1), st.integers(0, n - 1))
        graph = Graph.from_edges(np.array(data.draw(st.lists(ends, max_size=90)), np.int64).reshape(-1, 2), n=n)
        cuts = sorted(data.draw(st.lists(st.integers(0, graph.m), max_size=3)))
        middle = sorted(data.draw(st.lists(st.integers(0, n), max_size=3)))
        expected, cached = cpu.plan(graph).count(), data.draw(st.booleans())
        assert ranges(graph, cuts, named=data.draw(st.booleans()), cached=cached) == expected
        assert pairs(graph, middle, cached=cached) == expected

    @every_method
    @settings(max_examples=25)
    @given(st.sets(st.integers(0, 300), max_size=150), st.sets(st.integers(0, 300), max_size=300), st.integers(0, 1))
    def test_two_columns_of_any_length_and_rows(self, name, one, other, setting):
        """Beyond 32 look-ups the whole warp is at one edge; the shorter list may be either, and parts are uneven."""
        graph = two_columns(one, other)
        assert counted(name, graph, setting) == len(one & other)

    @pytest.mark.parametrize("long", [33, 63, 64, 65, 96, 127, 129, 1000, 1024, 1025])
    @pytest.mark.parametrize("short", [1, 32, 33, 64, 65])
    def test_every_row_of_a_column_is_found_and_none_between(self, short, long):
        """Both halves of a search, at lengths about the multiples of 32: even rows are there, odd rows are not."""
        there = np.arange(0, 2 * long, 2)
        for begin in range(0, 2 * long - short, max(1, long // 7)):
            keys = range(begin, begin + short)
            expected = sum(key % 2 == 0 for key in keys)
            for setting in range(4):
                for graph in (two_columns(keys, there), two_columns(there, keys)):
                    assert counted("warp_search", graph, setting) == expected

    @every_method
    def test_a_total_has_64_bits(self, name):
        graph, beyond = GRAPHS["clique"], 2**32 - 7
        run = METHODS[name].plan(graph, **SHAPE).allocate()
        run.arrays["total"][0] = beyond
        run.launch()
        assert run.result() == beyond + cpu.plan(graph).count()

    def test_no_order_of_lanes_changes_what_a_warp_finds(self):
        """The tops of two edges lie side by side, so that a lane may be an edge ahead of another."""
        graph = tcgpu.generate.clique(70)
        for cached in (0, 1):
            for seed in share(range(4), cached, of=4):
                run = warp_search.plan(graph, threads=96, blocks=2, cached=bool(cached)).allocate()
                run_shuffled(run, seed)
                assert run.result() == 54740


@pytest.mark.sim
def test_the_top_spares_reads_of_global_memory(simulator):
    """A search reads log2(512) elements of a column of 512, and one more to compare; with the top, five fewer."""
    graph = two_columns(range(0, 1024, 8), range(0, 1024, 2))
    reads = {cached: reads_of_rows(graph, cached) for cached in (True, False)}
    beside = 129 + 128 + 512  # every edge's row, the keys; rows 1.. of column 1 name empty columns
    assert reads[False] >= 128 * 10 and reads[False] - reads[True] == 5 * 128 - 32
    assert reads[True] <= beside + 32 + 128 * 5


def reads_of_rows(graph, cached):
    """How many single elements of `row_idx` a count reads."""
    seen = []

    class Counted(np.ndarray):
        def __getitem__(self, place):
            seen.append(place)
            return super().__getitem__(place)

    run = warp_search.plan(graph, threads=32, blocks=1, cached=cached).allocate()
    run.arrays["row_idx"] = run.arrays["row_idx"].view(Counted)
    run.launch()
    assert run.result() == 128
    return len(seen)


# ------------------------------------------------------------------------------------- edges whose columns are at hand


LISTS = {  # of every 32 edges in turn, how many have a row at hand -> after how many edges a warp works on some
    "none": ([0, 0, 0], 1),
    "one, at last": ([0, 0, 1], 1),
    "31 and one": ([31, 1, 0], 2),
    "31 listed at the end": ([31, 0], 1),
    "33": ([31, 2, 0], 2),
    "63": ([31, 32], 2),
    "63 again and again": ([31, 32, 32, 32, 1], 4),
    "all, but for none in between": ([32, 0, 32], 2),
    "one before all": ([1, 32, 32, 30], 3),
    "all, then some": ([32, 32, 7, 0, 24, 1, 31], 4),
    "halves": ([16] * 5, 3),
    "a tenth": ([3, 4, 2, 5, 0, 3, 1, 6, 4, 3, 2, 4], 2),
}
OTHERS = 40  # vertices with rows below the range, in it, and above it


def with_rows_in_range(turns, before):
    """A graph whose edges' rows are in a range of vertices, or not, and its first vertex.

    Column k has 32 rows, turns[k] of them in the range; `before` is the share of the others below it.
    """
    rng, far = np.random.default_rng(len(turns)), len(turns)
    low, high = far + OTHERS, far + 2 * OTHERS
    rows = []
    for here in turns:
        earlier = round(before * (32 - here))
        of = ((far, earlier), (low, here), (high, 32 - here - earlier))
        rows.append(np.concatenate([np.sort(begin + rng.permutation(OTHERS)[:some]) for begin, some in of]))
    rows += [np.flatnonzero(rng.random(high + OTHERS) < 0.5) for _ in range(3 * OTHERS)]
    rows[far:] = [column[column > far + k] for k, column in enumerate(rows[far:])]
    ends = np.cumsum([0, *map(len, rows)])
    return Graph(ends, np.concatenate(rows).astype(np.int32)), low


def common_rows(graph, first, last, low, high):
    """The rows after row i that columns i and j share, over the edges (i, j) of a stretch with low <= i < high."""
    return sum(
        np.intersect1d(graph.column(i), graph.row_idx[e + 1 : graph.col_ptr[j + 1]]).size
        for e, i, j in zip(range(first, last), *(ends[first:last].tolist() for ends in graph.edges()), strict=True)
        if low <= i < high
    )


class TestTheListOfEdges:
    pytestmark = in_simulator

    @pytest.mark.parametrize("before", [0, 0.5, 1])
    @pytest.mark.parametrize("turns, works", LISTS.values(), ids=LISTS)
    def test_a_warp_lists_edges_before_it_works(self, turns, works, before):
        """A range in the middle, and those at the beginning and at the end, with no rows below or above."""
        graph, low = with_rows_in_range(turns, before)
        last = 32 * len(turns)
        far = columns(graph, low, low + OTHERS)
        for named in (True, False):
            cols, counter = graph.col_of[: last if named else 0], np.zeros(1, np.int64)
            own = (0, graph.col_ptr[: len(turns) + 1], graph.row_idx[:last])
            shape = warp_search.shape(last, threads=32, blocks=1)
            arguments = (cols, 0, last, *own, *far, 1, counter)
            kernel = warp_search.warp_search_kernel
            launch = insight.trace_launch(kernel, *shape[:2], *arguments, shared=shape[2])
            assert counter[0] == common_rows(graph, 0, last, low, low + OTHERS)
            assert how_often(launch, "write_lookups(") == works

    @pytest.mark.parametrize("blocks, threads", [(1, 32), (1, 64), (2, 32), (3, 96)])
    @pytest.mark.parametrize("turns", [turns for turns, _ in LISTS.values()], ids=LISTS)
    def test_any_range_of_edges_and_of_rows(self, turns, blocks, threads, compiled_kernels):
        graph, low = with_rows_in_range(turns * 2, 0.5)
        end = 64 * len(turns)
        blocks, threads, shared = warp_search.shape(10**6, threads, blocks)
        for first, last in ((0, end), (5, end - 3), (33, 34), (end // 2, end)):
            for begin, stop in ((0, low), (low, low + OTHERS), (low + 7, low + 8), (low + OTHERS, graph.n)):
                counter = np.zeros(1, np.int64)
                own = graph.col_of[first:last], first, last, 0, graph.col_ptr, graph.row_idx
                far = columns(graph, begin, stop)
                warp_search.warp_search_kernel.launch(blocks, threads, *own, *far, 1, counter, shared=shared)
                assert counter[0] == common_rows(graph, first, last, begin, stop)

    def test_columns_are_searched_for_only_where_an_edge_counts(self):
        """Neither pointers of columns j nor of columns i are read where no row is in range."""

        class Unread(np.ndarray):
            def __getitem__(self, place):
                raise AssertionError(f"pointer {place} was read")

        graph, low = with_rows_in_range([0, 0, 0, 0], 0.5)
        begin, pointers, rows = columns(graph, low, low + OTHERS)
        own = graph.col_of[:0], 0, 128, 0, graph.col_ptr[:5].view(Unread), graph.row_idx
        blocks, threads, shared = warp_search.shape(128)
        counter = np.zeros(1, np.int64)
        warp_search.warp_search_kernel.launch(
            blocks, threads, *own, begin, pointers.view(Unread), rows, 1, counter, shared=shared
        )
        assert counter[0] == 0

    @pytest.mark.parametrize("seed", [1, 2, 3])
    def test_no_order_of_lanes_changes_the_list(self, seed):
        graph, low = with_rows_in_range([31, 32, 20, 0, 13, 32, 32, 1, 9], 0.5)
        blocks, threads, shared = warp_search.shape(10**6, 64, 1)
        counter, far = np.zeros(1, np.int64), columns(graph, low, low + OTHERS)
        arguments = [graph.col_of, 0, 288, 0, graph.col_ptr, graph.row_idx, *far, 1, counter]
        simulate(warp_search.warp_search_kernel.py_func, blocks, threads, arguments, shared=shared, seed=seed)
        assert counter[0] == common_rows(graph, 0, 288, low, low + OTHERS)


@pytest.mark.sim
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pairs_of_ranges_of_a_larger_graph_in_any_order_of_threads(seed, processor):
    graph = tcgpu.generate.rmat(11, 8).ordered("degree")
    with processor.instead_of_the_simulator(seed=seed):
        for ends in ([graph.n // 2], [20, 100, 300, graph.n // 2], list(range(100, graph.n, 150))):
            for cached in (True, False):
                assert pairs(graph, ends, cached=cached) == cpu.plan(graph).count()


def how_often(launch, text):
    """How often warps came to the lines of a traced kernel that begin with this."""
    steps = [measures["steps"] for (function, line), measures in launch.lines.items()
             if function.lines[line - function.first].strip().startswith(text)]  # fmt: skip
    assert steps, f"no line begins with {text}"
    return sum(steps)


# ------------------------------------------------------------------------------------------------- searches, diagonals


def test_a_search_finds_what_is_there_and_nothing_else():
    for length in range(1, 40):
        rows = np.concatenate([[0, 5], 10 + 3 * np.arange(length), [10**6]]).astype(np.int32)
        found = [key for key in range(8, 14 + 3 * length) if search.contains.py_func(rows, 2, length, key)]
        assert found == rows[2:-1].tolist(), "and not what lies beside the stretch"


def test_diagonals_cut_a_merge_where_it_passes():
    sets = [np.array(chosen, np.int32) for size in range(5) for chosen in combinations(range(4), size)]
    for a in sets:
        for b in sets:
            path = merged(a.tolist(), b.tolist())
            for d in range(a.size + b.size + 1):
                right = merge_path.steps_right.py_func(a, 0, a.size, b, 0, b.size, d)
                assert right == path[:d].count("a")


def merged(a, b):
    """Which list each step of a merge advances: "a" where rows agree."""
    return [whose for _, whose in sorted([(row, "a") for row in a] + [(row, "b") for row in b])]


@pytest.mark.parametrize("lanes", [1, 2, 3, 7, 32, 100])
def test_parts_of_a_merge_find_every_match_once(lanes):
    rng = np.random.default_rng(lanes)
    for _ in range(60):
        a, b = (np.flatnonzero(rng.random(60) < rng.random()).astype(np.int32) for _ in range(2))
        steps = a.size + b.size
        part = -(-steps // lanes)
        found = 0
        for lane in range(lanes):
            d = min(lane * part, steps)
            x = int(merge_path.steps_right.py_func(a, 0, a.size, b, 0, b.size, d))
            found += int(merge_path.matches.py_func(a, x, a.size, b, d - x, b.size, part))
        assert found == np.intersect1d(a, b).size


# ------------------------------------------------------------------------------------------------------ limits, shapes


@every_method
def test_edges_that_cannot_be_numbered_with_32_bits_are_refused(name):
    graph = Graph(GRAPHS["wheel"].col_ptr, GRAPHS["wheel"].row_idx)
    graph.m = 2**32 - 1
    with pytest.raises(GraphError, match=f"4,294,967,295 edges are too many for {name}, which takes 4,294,959,104"):
        METHODS[name].plan(graph)


def test_a_warp_is_never_cut():
    assert [warp_search.shape(10**9, threads, 7)[1] for threads in (1, 32, 33, 1000, 1024)] == [32, 32, 64, 1024, 1024]


def test_blocks_are_as_many_as_suit_the_edges():
    assert [warp_search.shape(edges)[0] for edges in (0, 1, 64 * 6, 64 * 6 + 1, 64 * 6 * 10**6)] == [1, 1, 1, 2, 10**6]
    assert warp_search.shape(1000, threads=64, blocks=10**9)[0] == 16


def test_cached_is_yes_or_no():
    with pytest.raises(MethodError, match="cached is one of False, True, not 'maybe'"):
        warp_search.plan(GRAPHS["wheel"], cached="maybe")


# ----------------------------------------------------------------------------------------------- edges by their lengths


@pytest.mark.parametrize("m, n", [(1, 1), (1, 40), (2, 2), (4, 9), (16, 16), (33, 7), (64, 100)])
def test_edges_ask_for_columns_of_these_lengths(m, n):
    graph = lengths.graph(m, n, 500)
    looked_up, among = looked_up_in(graph)
    assert lengths.asking(graph) == looked_up.size == pytest.approx(500, rel=0.1)
    assert set(among.tolist()) == {n} and looked_up.mean() == m
    assert 2 * m // 3 <= looked_up.min() and looked_up.max() <= max(4 * m // 3 + 1, m)
    for column in range(graph.n):
        assert (np.diff(graph.column(column)) > 0).all()


def looked_up_in(graph):
    """For each edge whose two columns have rows: how many rows of j follow i, and how many i has."""
    rest = graph.col_ptr[graph.col_of + 1] - np.arange(graph.m) - 1
    among = graph.column_lengths[graph.row_idx]
    return tuple(side[(rest > 0) & (among > 0)] for side in (rest, among))


def test_lengths_and_seeds():
    assert np.array_equal(lengths.graph(5, 9, 100).row_idx, lengths.graph(5, 9, 100).row_idx)
    assert not np.array_equal(lengths.graph(5, 9, 100).row_idx, lengths.graph(5, 9, 100, seed=1).row_idx)
    with pytest.raises(GraphError, match="lengths and edges are at least 1, not m=0, n=3, edges=9"):
        lengths.graph(0, 3, 9)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_work_of_a_graph_is_that_of_its_edges(name):
    graph = GRAPHS[name]
    both = [sorted(pair) for pair in zip(*(side.tolist() for side in looked_up_in(graph)), strict=True)]
    assert lengths.work(graph) == {
        "merge_steps": sum(m + n for m, n in both),
        "search_steps": sum(m * n.bit_length() for m, n in both),
        "lookups": sum(m for m, _ in both),
    }


def test_a_search_pays_where_one_list_is_much_longer():
    assert lengths.steps(4, 100) == lengths.steps(100, 4) == (104, 28)
    assert lengths.steps(100, 100) == (200, 700) and lengths.steps(0, 5) == (0, 0)


def test_the_slides_tables_are_complete():
    prices = {row["processor"]: row["dollars"] for row in datasets.published("tricore_prices")}
    assert len(prices) == 6 and all(prices.values())
    graphs = datasets.published("tricore_datasets")
    assert len(graphs) == 11 and all(row["vertices"] < row["edges"] and row["triangles"] for row in graphs)
    compared = datasets.published("tricore_speedups")
    named = [row for row in compared if row["ours"]]
    assert all({row["ours"], row["theirs"]} <= set(prices) for row in named)
    assert all(row["note"] for row in compared if row not in named)
    for row in datasets.published("tricore_scaling"):
        assert row["processor"] in prices and 0.7 < row["speedup"] / row["gpus"] < 0.8


# ------------------------------------------------------------------------------------------------------------ on a GPU


@pytest.mark.gpu
class TestOnAGpu:
    def test_ranges_and_pairs_of_a_large_graph(self):
        graph = tcgpu.generate.rmat(15, seed=3).ordered("degree")
        expected = cpu.plan(graph).count()
        for cached in (True, False):
            for named in (True, False):
                assert ranges(graph, [7, graph.m // 3, graph.m - 5], named=named, cached=cached) == expected
            assert pairs(graph, [100, graph.n // 2, graph.n - 500], cached=cached) == expected

    @every_method
    @pytest.mark.parametrize("m, n", [(1, 1), (1, 4096), (33, 65), (300, 300), (2000, 100)])
    def test_lists_of_every_length(self, name, m, n):
        graph = lengths.graph(m, n, 5000)
        expected = cpu.plan(graph).count()
        for setting in (0, 1):
            assert counted(name, graph, setting) == expected

    @pytest.mark.parametrize("order", ["natural", "degree", "random"])
    def test_with_and_without_the_top(self, order):
        graph = tcgpu.generate.rmat(16, seed=1).ordered(order)
        expected = cpu.plan(graph).count()
        for cached in (True, False):
            for threads in (32, 64, 1024):
                assert warp_search.plan(graph, threads=threads, cached=cached).count() == expected
