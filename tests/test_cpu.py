"""The native engine, and the verbs that use it, against brute force, SciPy and closed forms."""

import os
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import combinations, product
from math import comb
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import sparse_graphs
from test_graph import edge_set, multigraphs

import tcgpu
from tcgpu import EngineError, Graph, MethodError, cpu, cpu_costs
from tcgpu.cpu.edges import all_edges
from tcgpu.engines.native import set_threads

ORDERS = ("auto", "natural", "degree", "bfs", "random")


def brute_force(graph):
    """Every triangle j < i < k, found by testing all triples."""
    edges = edge_set(graph)
    return [t for t in combinations(range(graph.n), 3) if all(pair in edges for pair in combinations(t, 2))]


def skewed_graph(scale, factor, seed=1):
    """An R-MAT graph drawn by NumPy, independent of the package's generators."""
    rng = np.random.default_rng(seed)
    u, v = np.zeros((2, factor << scale), np.int64)
    for _ in range(scale):
        draw = rng.random(u.size)
        u, v = 2 * u + (draw >= 0.76), 2 * v + (((draw >= 0.57) & (draw < 0.76)) | (draw >= 0.95))
    return Graph.from_edges(u, v, 1 << scale)


def families():
    rng = np.random.default_rng(3)
    yield "random", Graph.from_edges(rng.integers(0, 3000, 40_000), rng.integers(0, 3000, 40_000))
    yield "dense", Graph.from_edges(rng.integers(0, 400, 70_000), rng.integers(0, 400, 70_000))
    yield "sparse", Graph.from_edges(rng.integers(0, 90_000, 200_000), rng.integers(0, 90_000, 200_000))
    yield "flat", tcgpu.generate.by_nonzeros(60_000, 5)
    yield "flat, more than a vector", tcgpu.generate.by_nonzeros(60_000, 30)
    yield "clique", Graph.from_edges(*np.triu_indices(150, 1))
    yield "skewed", skewed_graph(12, 16)
    yield "skewed and large", skewed_graph(14, 8)
    yield "no edges", Graph.from_edges([], [], 7)
    yield "nothing", Graph.from_edges([], [], 0)


FAMILIES = dict(families())


@pytest.fixture(params=FAMILIES)
def graph(request):
    return FAMILIES[request.param]


def by_scipy(graph):
    """The support of every edge from (A @ A) * A."""
    adjacency = graph.to_scipy()
    common = (adjacency @ adjacency).multiply(adjacency).tocsr()
    return np.asarray(common[graph.row_idx, graph.col_of]).ravel() if graph.m else np.zeros(0, np.int64)


@given(multigraphs())
def test_every_verb_gives_the_brute_force_answer(multigraph):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n)
    expected = brute_force(graph)
    for order in ORDERS:
        assert tcgpu.count(graph, order=order) == len(expected)
        assert tcgpu.count((u, v), order=order) == len(expected)
    listed = [tuple(row) for rows in tcgpu.list_triangles(graph) for row in rows.tolist()]
    assert sorted(listed) == expected
    members = np.array(expected, np.int64).reshape(-1)
    assert np.array_equal(tcgpu.triangles(graph), np.bincount(members, minlength=n))
    assert np.array_equal(tcgpu.support(graph), by_scipy(graph))


@given(multigraphs(most_vertices=25))
def test_relabelling_loops_and_duplicates_change_nothing(multigraph):
    u, v, n = multigraph
    expected = tcgpu.count(Graph.from_edges(u, v, n))
    rng = np.random.default_rng(n)
    rank = rng.permutation(n)
    assert tcgpu.count(Graph.from_edges(rank[u], rank[v], n)) == expected
    loops = rng.integers(0, n, 5)
    more = Graph.from_edges(np.concatenate([u, v, u, loops]), np.concatenate([v, u, v, loops]), n)
    assert tcgpu.count(more) == expected


def test_counts_support_and_vertices_agree_with_scipy_in_every_order(graph):
    support = by_scipy(graph)
    vertices = np.zeros(graph.n, np.int64)
    np.add.at(vertices, graph.row_idx, support)
    np.add.at(vertices, graph.col_of, support)
    for order in ORDERS:
        assert 3 * cpu.count(graph.ordered(order)) == support.sum()
        assert np.array_equal(cpu.support(graph, order), support)
        assert np.array_equal(cpu.triangles(graph, order), vertices // 2)


def designs(graph):
    """Every design for a graph; "hubs" with no hubs, with some, and with all vertices."""
    hubs = [cpu.Design("hubs", cpu.hub_rows(graph, base)) for base in {graph.n, graph.n // 128 * 64, 0}]
    return [cpu.Design("short"), cpu.Design("words"), *hubs]


@pytest.mark.parametrize("order", ["natural", "degree", "random"])
def test_every_design_counts_every_graph(graph, order):
    """Not only the one that `count` would choose: each is right for every graph, and only slow for some."""
    own = graph.ordered(order)
    expected = by_scipy(graph).sum() // 3
    assert {cpu.count_by(design, own, cpu.Edges(0, own.m, 0, own.n)) for design in designs(own)} == {expected}


@given(sparse_graphs(30), st.data())
def test_every_design_counts_any_edges(graph, data):
    """A part of the edges against brute force, with small chunks and few packed columns."""
    low, high = sorted(data.draw(st.tuples(*[st.integers(0, graph.n)] * 2)))
    first, last = sorted(data.draw(st.tuples(*[st.integers(0, graph.m)] * 2)))
    part, column = cpu.Edges(first, last, low, high), [set(graph.column(j).tolist()) for j in range(graph.n)]
    edges = zip(graph.row_idx[first:last].tolist(), graph.col_of[first:last].tolist(), strict=True)
    expected = sum(len(column[v] & column[u]) for v, u in edges if low <= v < high)
    most = data.draw(st.sampled_from([8, 64, cpu.counting.MOST_PACKED]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cpu.counting, "MOST_PACKED", most)
        patch.setattr(cpu.finding, "CHUNK", (3, 7))
        for design in designs(graph):
            assert cpu.count_by(design, graph, part) == expected


def test_each_class_of_graphs_has_its_design():
    """It is chosen by the columns alone, not by the name of the order."""
    skewed = tcgpu.generate.rmat(scale=16, seed=1)
    graphs = {
        "short": tcgpu.generate.road(100, 100),
        "words": tcgpu.generate.copapers(20_000),
        "hubs": Graph(skewed.ordered("degree").col_ptr, skewed.ordered("degree").row_idx),
    }
    for name, graph in graphs.items():
        assert cpu.design(graph).name == name
    base = cpu.design(graphs["hubs"]).hubs.base
    assert 0 < base < skewed.n and cpu.design(skewed).hubs.base == skewed.n
    assert (graphs["hubs"].row_idx >= base).mean() > 0.5


def test_short_columns_are_packed_into_words_where_their_rows_are_close():
    """Comparing them took up to five times as long. Few or scattered rows are compared."""
    generate, (u, v) = tcgpu.generate, np.triu_indices(20, 1)
    cliques = Graph.from_edges(*(np.add.outer(20 * np.arange(1000), ends).ravel() for ends in (u, v)))
    for graph in (cliques, generate.by_nonzeros(100_000, 12), generate.watts_strogatz(5000, 24, 0.0)):
        assert graph.max_column <= cpu_costs.SHORT_COLUMN and cpu.design(graph).name == "words"
    for graph in (generate.mesh3d(30, 30, 30), generate.random(20_000, 160_000), generate.watts_strogatz(5000, 24)):
        assert graph.max_column <= cpu_costs.SHORT_COLUMN and cpu.design(graph).name == "short"


def test_few_words_are_packed_wherever_their_columns_are(monkeypatch):
    """A clique of the first vertices took 20 times as long; but a part would not pack the columns that it needs."""
    monkeypatch.setattr(cpu_costs, "NEIGHBOURS", 1 << 10)
    monkeypatch.setattr(cpu.counting, "NEIGHBOURS", 1 << 10)
    u, v = np.triu_indices(300, 1)
    leaves = np.arange(30_000)
    graph = Graph.from_edges(np.append(u, leaves // 100), np.append(v, 300 + leaves))
    assert cpu.design(graph).name == "words" and cpu.count(graph) == comb(300, 3)
    assert cpu.choose.design_name(graph, cpu.choose.MAX_KEPT_HUBS)[0] == "hubs"
    scattered = Graph.from_edges(np.append(u, leaves % 300), np.append(v, 300 + leaves))
    assert cpu.design(scattered).name == "hubs" and cpu.count(scattered) == comb(300, 3)


def test_hubs_are_chosen_where_they_save_look_ups():
    """Most vertices may be no hubs; and if all edges lead to some that have no columns, rows of bits save nothing."""
    random = np.random.default_rng(3)
    u, v = np.triu_indices(400, 1)
    others = random.integers(0, 200_000, (2, 400_000))
    beside = Graph.from_edges(np.append(others[0], u + 200_000), np.append(others[1], v + 200_000))
    assert beside.n - 1000 < cpu.design(beside).hubs.base < beside.n - 300
    assert cpu.design(tcgpu.generate.complete_bipartite(300, 300)).hubs.base == 600


@pytest.mark.parametrize("threads", [1, 2, 7])
def test_any_number_of_threads_gives_the_same(graph, threads):
    expected = cpu.count(graph), cpu.triangles(graph).tolist(), cpu.support(graph).tolist()
    set_threads(threads)
    try:
        fresh = Graph(graph.col_ptr, graph.row_idx)
        assert (tcgpu.count(fresh), cpu.triangles(fresh).tolist(), cpu.support(fresh).tolist()) == expected
    finally:
        set_threads(None)


def dense_graphs():
    """Cliques and near-cliques, alone, and with sparse vertices before or behind them."""
    rng = np.random.default_rng(11)
    u, v = np.triu_indices(90, 1)
    sparse = rng.integers(0, 200, (2, 500))
    kept = rng.random(u.size) < 0.5
    return {
        "clique": Graph.from_edges(u, v),
        "half of a clique": Graph.from_edges(u[kept], v[kept]),
        "complete tripartite": Graph.from_edges(u[u // 30 != v // 30], v[u // 30 != v // 30]),
        "clique behind": Graph.from_edges(np.append(sparse[0], u + 180), np.append(sparse[1], v + 180)),
        "clique in front": Graph.from_edges(np.append(sparse[0] + 70, u), np.append(sparse[1] + 70, v)),
        "threshold": Graph.from_edges(u[u + v < 110], v[u + v < 110]),
    }


DENSE = dense_graphs()


@pytest.mark.parametrize("threads", [1, 2, 3, 7])
@pytest.mark.parametrize("name", DENSE)
def test_rows_of_bits_from_any_vertex_on_give_the_right_tallies(name, threads, monkeypatch):
    """For any first dense vertex, any order, and any number of workers."""
    monkeypatch.setattr(cpu.per_vertex, "workers_for", lambda part, most=None: threads)
    monkeypatch.setattr(cpu.neighbourhoods, "BLOCK", 64)
    graph = DENSE[name]
    for order in ("natural", "degree", "random"):
        own = graph.ordered(order)
        expected = by_scipy(own)
        vertices = np.bincount(own.row_idx, expected, own.n) + np.bincount(own.col_of, expected, own.n)
        for method, base in product(("edges", "wedges", "words"), (0, 1, own.n // 3, own.n - 64, own.n - 2, own.n)):
            plan = cpu.orders.TallyPlan(method, base, 0)
            monkeypatch.setattr(cpu.per_vertex, "tally_plan", lambda *_, plan=plan: plan)
            assert np.array_equal(cpu.tally(own, True)[0][1], expected), (order, plan)
            assert np.array_equal(cpu.tally(own, False)[0][1], vertices // 2), (order, plan)


def test_a_sparse_core_with_a_periphery_is_tallied_in_rows_of_bits_of_the_whole_core():
    """2,000 core vertices. Triangles took 8 to 15 counts where each wedge was looked up."""
    random = np.random.default_rng(2)
    core = np.array(np.triu_indices(2000, 1))[:, random.random(1999 * 1000) < 0.1]
    outside = np.repeat(np.arange(4000), 150)
    graph = Graph.from_edges(np.append(core[0] + 4000, outside), np.append(core[1] + 4000,
                             random.integers(4000, 6000, outside.size)))  # fmt: skip
    plan = cpu.orders.tally_plan(graph, False)
    assert plan.method == "edges" and 1900 < graph.n - plan.base <= 2000
    assert int(cpu.triangles(graph, "natural").sum()) == 3 * cpu.count(graph)
    assert quickest(lambda: cpu.triangles(graph, "natural")) < 8 * quickest(lambda: cpu.count(graph))


def test_words_of_neighbourhoods_that_are_much_longer_than_columns_are_not_tallied():
    """The smaller part of a dense bipartite graph is last in degree order: its columns are short, its rows long."""
    left, right = np.divmod(np.flatnonzero(np.random.default_rng(1).random(300 * 3600) < 0.5), 3600)
    ring = np.arange(3900)
    graph = Graph.from_edges(np.append(left, ring), np.append(300 + right, np.roll(ring, 1)))
    own = graph.ordered("degree")
    assert cpu.choose.design_name(graph)[0] == cpu.choose.design_name(own)[0] == "words"
    for by_edge in (False, True):
        assert cpu.orders.tally_plan(graph, by_edge).method == "words" != cpu.orders.tally_plan(own, by_edge).method


@given(st.integers(2, 200), st.floats(0.02, 1), st.integers(0, 99), st.data())
def test_random_dense_graphs_against_the_matrix(n, density, seed, data):
    """Supports are (A A) * A, and triangles half its row sums, wherever the dense vertices begin."""
    upper = np.triu(np.random.default_rng(seed).random((n, n)) < density, 1)
    graph = Graph.from_edges(*np.nonzero(upper), n)
    adjacency = (upper | upper.T).astype(np.int64)
    common = (adjacency @ adjacency) * adjacency
    base, method = data.draw(st.none() | st.integers(0, n)), data.draw(st.sampled_from(["edges", "wedges", "words"]))
    with pytest.MonkeyPatch.context() as patch:
        if base is not None:
            plan = cpu.orders.TallyPlan(method, min(base, graph.n), 0)
            patch.setattr(cpu.per_vertex, "tally_plan", lambda *_: plan)
        for order in ORDERS:
            assert np.array_equal(cpu.support(graph, order), common[graph.row_idx, graph.col_of])
            assert np.array_equal(cpu.triangles(graph, order), common.sum(axis=1) // 2)


def test_rows_of_bits_are_used_where_they_cost_less_time_and_no_more_memory():
    """They take at most 8 bytes an edge, as the wedge lists do; sparse graphs have none."""
    clique = tcgpu.generate.clique(500)
    beside = Graph.from_edges(np.append(skewed_graph(12, 8).row_idx, clique.row_idx + 4096),
                              np.append(skewed_graph(12, 8).col_of, clique.col_of + 4096))  # fmt: skip
    assert cpu.neighbourhoods.first_dense(clique) < 10
    assert 4090 < cpu.neighbourhoods.first_dense(beside) < 4110
    for graph in (tcgpu.generate.road(100, 100), tcgpu.generate.mesh(100, 100), FAMILIES["flat"], FAMILIES["nothing"]):
        assert cpu.neighbourhoods.first_dense(graph) == graph.n
    for graph in (*FAMILIES.values(), *DENSE.values(), clique, beside):
        base = cpu.neighbourhoods.first_dense(graph)
        rows = graph.n - base
        assert rows * cpu.neighbourhoods.words_per_row(rows) <= graph.m - graph.col_ptr[base]


@pytest.mark.parametrize("verb", [cpu.triangles, cpu.support])
@pytest.mark.parametrize("dense", ["clique", "half", "tripartite", "beside"])
def test_tallies_of_dense_graphs_take_no_longer_than_a_few_counts(verb, dense):
    """Measured in processor time. Looking up every wedge takes 60 to 100 counts."""
    u, v = np.triu_indices(1500, 1)
    some = {
        "clique": u >= 0,
        "half": np.random.default_rng(1).random(u.size) < 0.5,
        "tripartite": u // 500 != v // 500,
        "beside": v < 1000,
    }[dense]
    graph = Graph.from_edges(u[some], v[some])
    if dense == "beside":
        more = skewed_graph(12, 4)
        graph = Graph.from_edges(np.append(graph.row_idx, more.row_idx + 1000),
                                 np.append(graph.col_of, more.col_of + 1000))  # fmt: skip
    own = graph.ordered("degree")
    verb(graph, "degree")
    assert quickest(lambda: verb(own, "natural")) < 12 * quickest(lambda: cpu.count(own))


def quickest(call):
    """The shortest of five calls, in seconds of processor time of all threads."""
    times = []
    for _ in range(5):
        begin = time.process_time()
        call()
        times.append(time.process_time() - begin)
    return min(times)


def with_hubs():
    """Graphs whose hubs or dense vertices come first: natural order is quadratic, and a sample may not show it."""
    u, v = np.triu_indices(300, 1)
    tail, blades = np.arange(30_000), 1 + 2 * np.arange(7000)
    other, leaves = 2 + np.arange(40_000), 300 + np.arange(30_000)
    first, centre = np.zeros(other.size, np.int64), np.zeros(blades.size, np.int64)
    spokes = np.append(blades, blades + 1)
    mesh = tcgpu.generate.mesh(150, 150)
    return {
        "a clique with a tail": Graph.from_edges(np.append(u, 299 + tail), np.append(v, 300 + tail)),
        "a clique of stars": Graph.from_edges(np.append(u, np.repeat(np.arange(300), 100)), np.append(v, leaves)),
        "two hubs": Graph.from_edges(np.concatenate([[0], first, first + 1]), np.concatenate([[1], other, other])),
        "windmill": Graph.from_edges(np.concatenate([centre, centre, blades]), np.append(spokes, blades + 1)),
        "a clique beside a mesh": Graph.from_edges(np.append(u, mesh.row_idx + 300), np.append(v, mesh.col_of + 300)),
    }  # fmt: skip


HUBS_FIRST = with_hubs()


@pytest.mark.parametrize("name", HUBS_FIRST)
def test_graphs_whose_hubs_come_first_have_the_right_supports(name):
    graph = HUBS_FIRST[name]
    indptr, indices = graph.adjacency
    near = [set(row.tolist()) for row in np.split(indices, indptr[1:-1])]
    expected = np.array([len(near[i] & near[j]) for i, j in zip(*graph.edges(), strict=True)])
    for order in ORDERS[:3]:
        assert np.array_equal(tcgpu.support(graph, method="cpu", order=order), expected)
    for thing in (graph, graph.to_scipy(), (graph.row_idx, graph.col_of)):
        assert tcgpu.count(thing, "cpu") == expected.sum() // 3


def windmill(triangles, permuted):
    blades = 1 + 2 * np.arange(triangles)
    u, v = np.append(np.zeros(2 * triangles, int), blades), np.concatenate([blades, blades + 1, blades + 1])
    rank = np.random.default_rng(5).permutation(2 * triangles + 1) if permuted else np.arange(2 * triangles + 1)
    return Graph.from_edges(rank[u], rank[v])


@pytest.mark.parametrize("permuted", [False, True])
@pytest.mark.parametrize("verb", ["count", "triangles", "support"])
def test_a_hub_takes_time_in_proportion_to_its_edges_in_natural_order(verb, permuted):
    """In processor time. Four times the edges took 16 times as long, when a wedge was looked up for each pair."""
    call = getattr(tcgpu, verb)
    small, large = windmill(40_000, permuted), windmill(160_000, permuted)
    least = quickest(lambda: call(small, method="cpu", order="natural"))
    assert quickest(lambda: call(large, method="cpu", order="natural")) < 9 * least


@pytest.mark.parametrize("order", ["natural", "degree", "random"])
@pytest.mark.parametrize("workers", [1, 3])
def test_edges_that_are_counted_later_are_counted_once(order, workers, monkeypatch):
    """Of a large whole graph, edges between long columns are put off; of its parts, none is."""
    monkeypatch.setattr(cpu.counting, "LATER_EDGES", 1)
    own = FAMILIES["skewed and large"].ordered(order)
    plain, middle = cpu.Design("hubs", cpu.hub_rows(own, own.n)), own.m // 3
    parts = [cpu.Edges(0, middle, 0, own.n), cpu.Edges(middle, own.m, 0, own.n)]
    expected = sum(cpu.count_by(plain, own, part) for part in parts)
    later = cpu.counting.count_by(plain, own, cpu.Edges(0, own.m, 0, own.n), workers)
    assert later == expected == tcgpu.count(FAMILIES["skewed and large"], engine="cpu")


def test_sorting_is_part_of_the_first_calls_cost_only():
    """A count in natural order takes less than sorting, and more than a count in degree order."""
    graph = HUBS_FIRST["windmill"]
    natural = Graph(graph.col_ptr, graph.row_idx)
    assert [cpu.in_order(natural, "auto", "count").order for _ in range(3)] == ["natural", "degree", "degree"]
    skewed = Graph(FAMILIES["skewed and large"].col_ptr, FAMILIES["skewed and large"].row_idx)
    assert [cpu.in_order(skewed, "auto", "count").order for _ in range(2)] == ["degree", "degree"]


@pytest.mark.parametrize(
    ("costs", "orders"),
    [
        ((10, 4, 16), ["degree"] * 3),  # a first call that sorts takes no more than two in natural order
        ((10, 4, 17), ["natural", "degree", "degree"]),
        ((10, 11, 0), ["natural"] * 3),
        ((10, 9.9, 10), ["natural"] * 3),  # so little is never worth sorting,
        ((10, 9.9, 0), ["degree"] * 3),  # unless another verb did it
    ],
)
def test_the_first_call_chooses_the_order_of_all_later_ones(costs, orders, monkeypatch):
    estimates, graph = iter([costs]), FAMILIES["skewed"]
    monkeypatch.setattr(cpu.orders, "order_costs", lambda *_: next(estimates))
    fresh = Graph(graph.col_ptr, graph.row_idx)
    assert [cpu.in_order(fresh, "auto", "count").order for _ in range(3)] == orders


@pytest.mark.parametrize("name", ["windmill", "a clique with a tail", "skewed and large", "Barabasi-Albert"])
def test_the_cost_in_degree_order_is_known_before_sorting(name):
    graph = {**HUBS_FIRST, **FAMILIES, "Barabasi-Albert": tcgpu.generate.barabasi_albert(20_000, 8)}[name]
    _, expected, _ = cpu.orders.order_costs(Graph(graph.col_ptr, graph.row_idx), "count")
    assert expected == pytest.approx(cpu.orders.count_cost(graph.ordered("degree")), rel=0.2)


def test_trees_that_cost_nothing_in_degree_order_are_known():
    path = np.arange(2000)
    caterpillar = Graph.from_edges(np.append(path[:-1], path.repeat(10)), np.append(path[1:], np.arange(2000, 22_000)))
    assert caterpillar.ordered("degree").max_column == 1
    for verb in ("count", "triangles", "support"):
        assert cpu.orders.order_costs(caterpillar, verb)[1] == 0 < cpu.orders.order_costs(FAMILIES["skewed"], verb)[1]


def test_hubs_with_few_look_ups_each_are_no_reason_to_sort():
    """Numbers with products up to n are joined: words of near rows take half of the time of hubs, in degree order."""
    number = np.arange(1, 20_001)
    u = np.repeat(number, np.maximum(0, 20_000 // number - number))
    graph = Graph.from_edges(u - 1, np.arange(u.size) - np.searchsorted(u, u) + u)
    assert [cpu.choose.design_name(graph.ordered(order))[0] for order in ("natural", "degree")] == ["words", "hubs"]
    assert [cpu.in_order(graph, "auto", "count").order for _ in range(3)] == ["natural"] * 3


@pytest.mark.parametrize("verb", ["count", "triangles", "support"])
def test_graphs_that_are_fast_in_natural_order_stay_in_it(verb):
    generate = tcgpu.generate
    for graph in (generate.road(90, 90), generate.mesh(90, 90), generate.watts_strogatz(5000, 10), generate.clique(200),
                  generate.complete_bipartite(90, 90), generate.path(50), Graph.from_edges([], [], 3)):  # fmt: skip
        assert cpu.in_order(graph, "auto", verb) is graph
    by_degree = FAMILIES["skewed"].ordered("degree")
    assert cpu.in_order(by_degree, "auto", verb) is by_degree


@pytest.mark.parametrize("verb", ["count", "triangles", "support"])
@pytest.mark.parametrize("name", ["a clique with a tail", "windmill", "a clique beside a mesh"])
def test_the_automatic_order_is_nearly_as_fast_as_the_better_one(verb, name):
    """Measured in processor time. When a sample chose the order, it took up to 2,000 times as long."""
    graph, call = HUBS_FIRST[name], getattr(tcgpu, verb)
    times = {order: quickest(lambda order=order: call(graph, method="cpu", order=order)) for order in ORDERS[:3]}
    assert times["auto"] < 2 * min(times["natural"], times["degree"]) + 0.002


@pytest.mark.parametrize("chunk", [1, 1000, 1 << 20])
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_every_triangle_is_listed_once_in_chunks(chunk, order):
    graph = FAMILIES["clique"] if chunk > 1 else Graph.from_edges(*np.triu_indices(12, 1))
    chunks = list(cpu.list_triangles(graph, chunk, order))
    rows = np.concatenate(chunks)
    assert max(map(len, chunks)) <= chunk and rows.dtype == np.int32
    assert len(np.unique(rows, axis=0)) == len(rows) == comb(graph.n, 3)
    assert (np.diff(rows, axis=1) > 0).all()


def test_triangles_of_skewed_graphs_are_listed_with_the_graphs_own_numbers():
    graph = FAMILIES["skewed"]
    rows = np.concatenate(list(tcgpu.list_triangles(graph)))
    assert np.array_equal(np.bincount(rows.ravel(), minlength=graph.n), tcgpu.triangles(graph))


def test_counts_past_32_bits():
    clique = Graph.from_edges(*np.triu_indices(3000, 1))
    for order in ("natural", "degree"):
        assert tcgpu.count(clique, order=order) == comb(3000, 3) == 4_495_501_000
    assert int(tcgpu.triangles(clique).sum()) == 3 * comb(3000, 3)


def test_the_triangles_at_a_vertex_are_added_up_in_32_bits_if_that_is_enough():
    """They are no more than the edges. Half the memory: on sparse graphs it takes a large share of the time."""
    graph = FAMILIES["skewed"]
    assert cpu.tally(graph, False)[0][1].dtype == cpu.tally(graph, False, all_edges(graph))[0][1].dtype == np.int32
    assert cpu.per_vertex._zeros(1, SimpleNamespace(n=2, m=1 << 31), False).dtype == np.int64


def test_clustering_and_transitivity_agree_with_networkx():
    for nx_graph in (nx.karate_club_graph(), nx.gnm_random_graph(60, 300, seed=2), nx.star_graph(5), nx.empty_graph(3)):
        graph = Graph.from_networkx(nx_graph)
        assert tcgpu.clustering(graph).tolist() == pytest.approx(list(nx.clustering(nx_graph).values()))
        assert tcgpu.average_clustering(graph) == pytest.approx(nx.average_clustering(nx_graph))
        assert tcgpu.transitivity(graph) == pytest.approx(nx.transitivity(nx_graph))
    assert tcgpu.average_clustering(Graph.from_edges([], [], 0)) == 0.0


def test_one_triangle_ends_the_search_for_triangles():
    """Measured in processor time, where a count takes much longer; triangles may be anywhere, or nowhere."""
    graph = FAMILIES["skewed and large"]
    fresh = [Graph(graph.col_ptr, graph.row_idx) for _ in range(10)]
    counted = quickest(lambda: tcgpu.count(fresh.pop(), "cpu"))
    assert quickest(lambda: tcgpu.is_triangle_free(fresh.pop(), method="cpu")) < counted / 2
    path = tcgpu.generate.path(200_000)
    assert tcgpu.is_triangle_free(path, engine="cpu") and tcgpu.is_triangle_free(Graph.from_edges([], [], 3))
    for at in (0, 5, 99_000, 199_997):
        closed = Graph.from_edges(np.append(path.row_idx, at), np.append(path.col_of, at + 2))
        assert not tcgpu.is_triangle_free(closed, method="cpu")
    with pytest.raises(MethodError, match="no knob"):
        tcgpu.is_triangle_free(path, method="cpu", blocks=3)


def test_sums_past_64_bits_are_exact():
    from tcgpu.arrays import sum_exactly

    assert sum_exactly(np.full(5, 2**62, np.int64)) == 5 * 2**62


def test_verbs_take_networkx_scipy_and_edge_arrays():
    karate = nx.karate_club_graph()
    assert tcgpu.count(karate) == tcgpu.count(nx.to_scipy_sparse_array(karate)) == 45
    edges = np.array(karate.edges())
    assert tcgpu.count(edges) == tcgpu.count((edges[:, 0], edges[:, 1])) == 45


def test_unknown_methods_knobs_engines_and_orders_are_refused_by_name():
    graph = Graph.from_edges([0, 1, 2], [1, 2, 0])
    with pytest.raises(MethodError, match="no method 'magic'; there are .*cpu"):
        tcgpu.count(graph, method="magic")
    with pytest.raises(MethodError, match="method 'cpu' has no knob 'blocks'; it has none"):
        tcgpu.count(graph, method="cpu", blocks=3)
    with pytest.raises(EngineError, match="no engine 'tpu'"):
        tcgpu.count(graph, method="cpu", engine="tpu")
    with pytest.raises(MethodError, match="no order 'size'"):
        tcgpu.count(graph, order="size")


def test_several_python_threads_can_count_at_once():
    graph = FAMILIES["skewed and large"]
    expected = cpu.count(graph)
    with ThreadPoolExecutor(8) as pool:
        assert set(pool.map(lambda _: cpu.count(graph.ordered("auto")), range(24))) == {expected}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_forked_child_starts_threads_of_its_own():
    code = """
        import os, numpy as np, tcgpu
        from tcgpu.engines.native import set_threads
        set_threads(3)
        rng = np.random.default_rng(0)
        graph = tcgpu.Graph.from_edges(rng.integers(0, 5000, 200_000), rng.integers(0, 5000, 200_000))
        expected = tcgpu.count(graph)
        child = os.fork()
        if child == 0:
            os._exit(0 if tcgpu.count(graph) == expected else 1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=True, timeout=120)
