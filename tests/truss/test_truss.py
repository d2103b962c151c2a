"""k-trusses and truss numbers of the native engine: equal to NetworkX's, and consistent with each other."""

import subprocess
import sys
import time
from itertools import chain, repeat

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sampling import share
from test_graph import edge_set, multigraphs

import tcgpu
from tcgpu import EngineError, Graph, MethodError, cpu, formats, truss
from tcgpu.cpu import small
from tcgpu.engines import runtime
from tcgpu.engines.native import set_threads
from tcgpu.truss import native_peeling

SHARED = ("karate.csv", "polbooks.csv", "polblogs.graph", "delaunay_n10.graph", "ca-GrQc.mtx", "as20000102.txt")


@pytest.fixture(scope="module", autouse=True)
def native():
    """Use the native engine even on a machine with a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(truss, "ENGINE", "sim")
        yield


def overlapping_cliques(seed=7):
    """Sixty cliques of 3 to 14 of 300 vertices: many truss numbers, and levels with long cascades or none."""
    rng = np.random.default_rng(seed)
    pairs = []
    for size in rng.integers(3, 15, 60):
        inside = rng.choice(300, size, replace=False)
        pairs += [(a, b) for a in inside.tolist() for b in inside.tolist() if a < b]
    return Graph.from_edges(np.array(pairs), n=300)


GRAPHS = {
    "nothing": Graph.from_edges([], [], 0),
    "no edges": Graph.from_edges([], [], 5),
    "no triangles": tcgpu.generate.grid(8, 9),
    "star": tcgpu.generate.star(9),
    "clique": tcgpu.generate.clique(12),
    "two cliques that share an edge": Graph.from_edges(
        np.array([*nx.complete_graph(6).edges, *nx.complete_graph([4, 5, 6, 7, 8]).edges])
    ),
    "cliques": overlapping_cliques(),
    "skewed": tcgpu.generate.rmat(9, 8, seed=2),
    "clustered": tcgpu.generate.copapers(500, mean_degree=20),
    "mesh": tcgpu.generate.delaunay(800),
    "random": tcgpu.generate.random(150, 2500),
    "small world": tcgpu.generate.watts_strogatz(400, 10),
    "bundled R-MAT": tcgpu.load("rmat_8"),
    "bundled mesh": tcgpu.load("delaunay_1000"),
    "bundled, flat": tcgpu.load("by_nonzeros_5"),
}


def largest(graph):
    """The largest k with an edge in its truss, by the numbers under test; 2 if there is no edge."""
    return int(tcgpu.truss_numbers(graph).max(initial=2))


def in_numbers(graph, truss):
    """The edges of a truss by their ends' numbers in the graph that it was taken from, as `edge_set` gives them."""
    number = dict(zip(graph.labels, range(graph.n), strict=True)) if graph.labels is not None else range(graph.n)
    labels = truss.labels if truss.labels is not None else graph.labels if graph.labels is not None else range(truss.n)
    at = [number[label] for label in labels]
    return {tuple(sorted((at[a], at[b]))) for a, b in edge_set(truss)}


def by_networkx(graph, k):
    plain = nx.Graph(edge_set(graph))
    return {tuple(sorted(edge)) for edge in nx.k_truss(plain, k, backend="networkx").edges}


def check_against_networkx(graph, orders=("natural",)):
    """Every truss up to the first that is empty, in each order; each also from the numbers."""
    for order in orders:
        own = graph.ordered(order)
        numbers = tcgpu.truss_numbers(own)
        assert numbers.shape == (own.m,) and numbers.dtype == np.int32
        rows, cols = (ends.tolist() for ends in own.edges())
        for k in range(2, largest(own) + 2):
            expected = by_networkx(own, k)
            numbered = zip(rows, cols, numbers.tolist(), strict=True)
            assert {(j, i) for i, j, number in numbered if number >= k} == expected
            assert in_numbers(own, tcgpu.k_truss(own, k)) == expected
        assert not expected, "the largest number is too small"


@pytest.mark.parametrize("name", share(GRAPHS, "networkx", of=2))
def test_every_truss_equals_networkx(name):
    check_against_networkx(GRAPHS[name], ("natural", "degree"))


@pytest.mark.parametrize("name", SHARED)
def test_known_graphs_have_networkx_trusses(name, graphs_folder):
    """For the larger ones only a few k, because NetworkX takes seconds for each."""
    graph = formats.read(graphs_folder / name)
    numbers = tcgpu.truss_numbers(graph)
    top = int(numbers.max())
    chosen = range(2, top + 2) if graph.m < 4000 else sorted({3, 4, top // 2, top, top + 1})
    rows, cols = graph.edges()
    for k in chosen:
        keep = numbers >= k
        expected = by_networkx(graph, k)
        assert set(zip(cols[keep].tolist(), rows[keep].tolist(), strict=True)) == expected
        assert in_numbers(graph, tcgpu.k_truss(graph, k)) == expected
    assert top > 3 and not expected


@given(multigraphs(most_vertices=16), st.sampled_from(["natural", "degree", "random", "auto"]))
def test_random_graphs_have_networkx_trusses(multigraph, order):
    check_against_networkx(Graph.from_edges(*multigraph), (order,))


@pytest.mark.parametrize("name", GRAPHS)
def test_trusses_numbers_and_support_are_consistent(name):
    """Every edge of a k-truss is in k - 2 triangles of it, and its k-truss is itself."""
    graph = GRAPHS[name]
    numbers = tcgpu.truss_numbers(graph)
    assert (numbers <= tcgpu.support(graph) + 2).all()
    for k in range(2, largest(graph) + 1):
        truss = tcgpu.k_truss(graph, k)
        assert truss.m == (numbers >= k).sum()
        assert (tcgpu.support(truss) >= k - 2).all() and (truss.degrees >= k - 1).all()
        assert tcgpu.k_truss(truss, k).equals(truss)
        assert np.array_equal(np.sort(tcgpu.truss_numbers(truss)), np.sort(numbers[numbers >= k]))


def test_closed_forms():
    for n in (2, 3, 4, 9):
        assert set(tcgpu.truss_numbers(tcgpu.generate.clique(n)).tolist()) == {n}
    assert sorted(tcgpu.truss_numbers(GRAPHS["two cliques that share an edge"]).tolist()) == [5] * 9 + [6] * 15
    assert set(tcgpu.truss_numbers(GRAPHS["no triangles"]).tolist()) == {2}
    assert tcgpu.truss_numbers(GRAPHS["nothing"]).size == 0


@pytest.mark.parametrize("tail", [0, 3000])
def test_truss_numbers_of_a_clique_take_no_more_than_some_supports(tail):
    """In processor time: one round peels all edges. Breaking every triangle takes a thousand supports."""
    u, v = np.triu_indices(700, 1)
    graph = Graph.from_edges(np.append(u, 699 + np.arange(tail)), np.append(v, 700 + np.arange(tail)))
    times = {}
    for verb in (tcgpu.truss_numbers, tcgpu.support):
        took = []
        for _ in range(3):
            begin = time.process_time()
            found = verb(graph)
            took.append(time.process_time() - begin)
            assert (np.sort(found)[tail:] == (700 if verb is tcgpu.truss_numbers else 698)).all()
        times[verb] = min(took)
    assert times[tcgpu.truss_numbers] < 12 * times[tcgpu.support]


def test_edges_with_equal_support_after_a_batch_have_one_number():
    """Triangles at a clique's vertices are peeled first; the remaining edges are then in equally many triangles."""
    clique = nx.complete_graph(9)
    for v in range(9):
        clique.add_edges_from([(v, 9 + 2 * v), (v, 10 + 2 * v), (9 + 2 * v, 10 + 2 * v)])
    graph = Graph.from_networkx(clique)
    inside = (graph.row_idx < 9) & (graph.col_of < 9)
    assert np.array_equal(tcgpu.truss_numbers(graph), np.where(inside, 9, 3))


def test_trusses_keep_labels_and_drop_vertices_without_an_edge():
    u, v = [0, 1, 2, 2, 3], [1, 2, 0, 3, 4]
    plain = Graph.from_edges(u, v, 7)
    assert tcgpu.k_truss(plain, 2).labels.tolist() == [0, 1, 2, 3, 4]
    assert tcgpu.k_truss(plain, 3).labels.tolist() == [0, 1, 2]
    assert tcgpu.k_truss(Graph.from_edges(u, v), 2).labels is None, "each vertex has its own number still"
    for labels in (list("abcdefg"), np.arange(10, 80, 10)):
        named = Graph.from_edges(u, v, 7, labels=labels)
        assert list(tcgpu.k_truss(named, 3).labels) == list(labels[:3])
        assert sorted(tcgpu.k_truss(named.ordered("random", seed=3), 3).labels) == sorted(labels[:3])
    empty = tcgpu.k_truss(plain, 4)
    assert (empty.n, empty.m, len(empty.labels)) == (0, 0, 0)


def test_trusses_of_networkx_scipy_and_edge_arrays():
    karate = nx.karate_club_graph()
    expected = nx.k_truss(karate, 4, backend="networkx")
    for thing in (karate, nx.to_scipy_sparse_array(karate), np.array(karate.edges())):
        truss = tcgpu.k_truss(thing, 4)
        assert nx.utils.edges_equal(truss.to_networkx().edges, expected.edges)
        assert (tcgpu.truss_numbers(thing) >= 4).sum() == truss.m


@pytest.fixture
def shared_rounds(monkeypatch):
    """Have all workers share even small rounds; yields a list of how many worked each time."""
    rounds = []

    def run_threads(function, *args, workers, own=native_peeling.run_threads, **more):
        if function is native_peeling._break_triangles:
            rounds.append(workers)
        own(function, *args, workers=workers, **more)

    monkeypatch.setattr(native_peeling, "run_threads", run_threads)
    monkeypatch.setattr(native_peeling, "LARGE_ROUND", 0)
    monkeypatch.setattr(cpu.edges, "MANY", 0)
    yield rounds
    set_threads(None)


@pytest.mark.parametrize("name", ["cliques", "skewed", "clustered", "random", "mesh"])
def test_any_number_of_threads_gives_the_same(name, shared_rounds):
    graph = GRAPHS[name]
    set_threads(1)
    numbers = tcgpu.truss_numbers(graph)
    trusses = [tcgpu.k_truss(graph, k) for k in range(2, largest(graph) + 2)]
    assert not shared_rounds
    for threads in (2, 5):
        set_threads(threads)
        for _ in range(3):
            fresh = Graph(graph.col_ptr, graph.row_idx)
            assert np.array_equal(tcgpu.truss_numbers(fresh), numbers)
            assert all(tcgpu.k_truss(fresh, k).equals(truss) for k, truss in enumerate(trusses, 2))
    assert set(shared_rounds) == {2, 5}


@pytest.mark.parametrize("few", [0.0, 1.0])
@pytest.mark.parametrize("name", ["cliques", "skewed", "clustered"])
def test_counting_again_and_breaking_triangles_give_the_same_truss(name, few, monkeypatch):
    monkeypatch.setattr(native_peeling, "FEW_WEAK", few)
    graph = GRAPHS[name]
    numbers = tcgpu.truss_numbers(graph)
    for k in range(2, largest(graph) + 2):
        assert np.array_equal(native_peeling.peel(graph, k), numbers >= k)


@pytest.mark.parametrize("recount", [0, 3, 1 << 40])
@pytest.mark.parametrize("name", ["cliques", "skewed", "clustered", "random", "mesh"])
def test_counting_again_in_the_middle_of_a_batch_changes_nothing(name, recount, shared_rounds, monkeypatch):
    """Any round may be the last one that breaks triangles."""
    graph = GRAPHS[name]
    expected = tcgpu.truss_numbers(graph)
    monkeypatch.setattr(native_peeling, "RECOUNT", recount)
    for threads in (1, 3):
        set_threads(threads)
        assert np.array_equal(tcgpu.truss_numbers(Graph(graph.col_ptr, graph.row_idx)), expected)
        for k in range(3, largest(graph) + 2):
            assert np.array_equal(native_peeling.peel(graph, k), expected >= k)


@pytest.mark.parametrize("after", [0, 1, 2])
def test_rows_of_bits_give_the_same_trusses(after, shared_rounds, monkeypatch):
    """From the beginning, or after some batches."""
    expected = {name: tcgpu.truss_numbers(graph) for name, graph in GRAPHS.items()}
    monkeypatch.setattr(native_peeling, "SOME_TRIANGLES", -1)
    monkeypatch.setattr(native_peeling.dense_truss, "CHUNK", 100)
    for threads in (1, 3):
        set_threads(threads)
        for name, graph in GRAPHS.items():
            answers = chain([False] * after, repeat(True))
            monkeypatch.setattr(native_peeling.dense_truss, "is_dense", lambda *about, answers=answers: next(answers))
            assert np.array_equal(tcgpu.truss_numbers(Graph(graph.col_ptr, graph.row_idx)), expected[name])
            for k in range(3, largest(graph) + 2):
                assert np.array_equal(native_peeling.peel(graph, k), expected[name] >= k)


@pytest.mark.parametrize("tail", [0, 20_000])
def test_a_threshold_graph_takes_no_more_than_some_supports(tail):
    """In processor time: every level peels one vertex. Breaking every triangle took about a hundred supports."""
    n = 1000
    u, v = np.nonzero(np.triu(np.add.outer(np.arange(n), np.arange(n)) < n, 1))
    graph = Graph.from_edges(np.append(u, n + np.arange(tail)), np.append(v, n + 1 + np.arange(tail)))
    took = {}
    for verb in (tcgpu.truss_numbers, tcgpu.support):
        for _ in range(3):
            begin = time.process_time()
            found = verb(Graph(graph.col_ptr, graph.row_idx), method="cpu")
            took[verb] = min(took.get(verb, np.inf), time.process_time() - begin)
        if verb is tcgpu.truss_numbers:
            inside = graph.row_idx < n
            last = np.maximum(graph.row_idx, graph.col_of)[inside]
            assert np.array_equal(found[inside], np.minimum(n - last, n // 2) + 1)
    assert took[tcgpu.truss_numbers] < 70 * took[tcgpu.support]


def test_a_dense_graph_that_collapses_takes_no_more_than_some_supports():
    """In processor time. Breaking every triangle took 220 supports."""
    graph = tcgpu.generate.random(2000, 1_000_000)
    times = {}
    for verb in (tcgpu.truss_numbers, tcgpu.support):
        for _ in range(3):
            begin = time.process_time()
            verb(Graph(graph.col_ptr, graph.row_idx), method="cpu")
            times[verb] = min(times.get(verb, np.inf), time.process_time() - begin)
    assert times[tcgpu.truss_numbers] < 110 * times[tcgpu.support]


@pytest.mark.parametrize("shrink", [0.0, 1.0])
def test_numbering_the_remaining_edges_anew_changes_nothing(shrink, monkeypatch):
    expected = {name: tcgpu.truss_numbers(graph) for name, graph in GRAPHS.items()}
    monkeypatch.setattr(native_peeling, "SHRINK", shrink)
    for name, graph in GRAPHS.items():
        assert np.array_equal(tcgpu.truss_numbers(graph), expected[name])


@pytest.mark.parametrize("k", [1, 0, -3, 2.5, "3", None, True])
def test_invalid_k_are_refused(k):
    with pytest.raises(MethodError, match="k must be a whole number of at least 2, not"):
        tcgpu.k_truss(GRAPHS["clique"], k)


def test_a_gpu_is_used_if_there_is_one(monkeypatch):
    assert truss.truss_engine() == truss.truss_engine("cpu") == "cpu"
    monkeypatch.setattr(truss, "ENGINE", "gpu")
    assert truss.truss_engine() == runtime.engine() and truss.truss_engine("cpu") == "cpu"


def test_unknown_engines_are_refused():
    for call in (lambda engine: tcgpu.k_truss(GRAPHS["clique"], 3, engine=engine),
                 lambda engine: tcgpu.truss_numbers(GRAPHS["clique"], engine=engine)):  # fmt: skip
        with pytest.raises(EngineError, match="no engine 'tpu'"):
            call("tpu")


def test_small_graphs_have_the_same_trusses_without_a_compiler(random_graphs=40):
    random = np.random.default_rng(3)
    for _ in range(random_graphs):
        n = int(random.integers(3, 40))
        graph = tcgpu.Graph.from_edges(*random.integers(0, n, (2, int(random.integers(0, 6 * n)))), n)
        numbers = native_peeling.numbers(graph)
        assert np.array_equal(small.numbers(graph), numbers)
        for k in range(2, 8):
            assert np.array_equal(small.peel(graph, k), numbers >= k)


def test_a_first_truss_of_a_small_graph_loads_no_compiler():
    code = """
import sys, tcgpu
graph = tcgpu.generate.clique(7)
assert set(tcgpu.truss_numbers(graph).tolist()) == {7} and tcgpu.k_truss(graph, 7).m == 21
assert "numba" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
