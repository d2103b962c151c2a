"""The NetworkX backend returns what NetworkX returns: the same values, keys, order, types and errors."""

import inspect
import logging
import subprocess
import sys
from fractions import Fraction
from importlib.metadata import entry_points

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tcgpu
from tcgpu import Graph, api, networkx_backend, networkx_graph, networkx_info
from tcgpu.networkx_backend import BackendGraph, backend

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")

BY_NODE = ("triangles", "clustering", "generalized_degree", "square_clustering")
OF_MULTIGRAPHS = ("triangles", "square_clustering")
LABELS = st.one_of(
    st.integers(-5, 5),
    st.text(max_size=2),
    st.booleans(),
    st.floats(allow_nan=False),  # NetworkX counts three triangles at a NaN with a loop: it differs from itself
    st.binary(max_size=1),
    st.tuples(st.integers(0, 2), st.text(max_size=1)),
    st.frozensets(st.integers(0, 2)),
)


@st.composite
def graphs(draw, kind=nx.Graph):
    """A NetworkX graph with unusual labels, loops and isolated nodes."""
    nodes = draw(st.lists(LABELS, unique=True, max_size=12))
    graph = kind()
    graph.add_nodes_from(nodes)
    if nodes:
        node = st.sampled_from(nodes)
        graph.add_edges_from(draw(st.lists(st.tuples(node, node), max_size=50)))
    return graph


@st.composite
def weighted_graphs(draw, kind):
    """As `graphs`; some edges have a weight, of either sign."""
    graph = draw(graphs(kind))
    weights = st.sampled_from([None, 1, 2, 3.5, 0.25, True, -1, -2.5, 10**20])
    for _, _, attributes in graph.edges(data=True):
        if weight := draw(weights):
            attributes["weight"] = weight
    return graph


@st.composite
def graphs_and_nodes(draw, kind=nx.Graph):
    """A graph and a `nodes` argument: None, a node, or several, some of them twice or not in the graph."""
    graph = draw(graphs(kind))
    several = st.lists(st.one_of(LABELS, st.sampled_from(list(graph) or [0])), max_size=8)
    single = [st.sampled_from(list(graph))] if graph else []
    return graph, draw(st.one_of(st.none(), several, several.map(tuple), *single))


def same(ours, theirs):
    """Whether two results are equal down to the types of their values and the order of their keys."""
    if type(ours) is not type(theirs):
        return False
    if type(theirs) is dict:
        return list(ours) == list(theirs) and all(map(same, ours.values(), theirs.values()))
    return ours == theirs


def outcome(function, *args, **kwargs):
    """The result of a call, or the type and text of its error."""
    try:
        return function(*args, **kwargs)
    except Exception as error:
        return type(error), str(error)


def both(name, graph, *args, **kwargs):
    function = getattr(nx, name)
    return outcome(function, graph, *args, backend="tcgpu", **kwargs), outcome(function, graph, *args, **kwargs)


@pytest.fixture
def priority():
    """NetworkX uses this backend by default."""
    nx.config.backend_priority.algos = ["tcgpu"]
    yield
    nx.config.backend_priority.algos = []


@pytest.fixture
def dispatched(caplog):
    """The names of the functions that ran here so far, in order."""
    caplog.set_level(logging.DEBUG, logger="networkx.utils.backends")

    def names():
        prefix = "Using backend 'tcgpu' for call to '"
        lines = (record.getMessage() for record in caplog.records)
        return [line.removeprefix(prefix).split("'")[0] for line in lines if line.startswith(prefix)]

    return names


def test_networkx_finds_the_backend():
    found = {group: entry_points(group=group, name="tcgpu") for group in ("networkx.backends", "networkx.backend_info")}
    assert all(found.values()), "the package is not installed here: pip install --no-deps -e ."
    assert found["networkx.backends"]["tcgpu"].load() is backend
    assert nx.utils.backends.backend_info["tcgpu"] == networkx_info.get_info()


def test_all_functions_are_announced():
    found = inspect.getmembers(networkx_graph, inspect.isfunction)
    own = {name for name, function in found if function.__module__ == networkx_graph.__name__}
    functions = {name for name in own if not name.startswith("_")}
    assert functions == {*networkx_info.FUNCTIONS, "convert_from_nx", "convert_to_nx"}
    assert all(hasattr(backend, name) for name in (*functions, "can_run", "should_run"))
    assert not hasattr(backend, "pagerank")


def test_importing_networkx_imports_neither_numba_nor_the_backend():
    code = "import networkx, sys; sys.exit('numba' in sys.modules or 'tcgpu.networkx_backend' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@pytest.mark.parametrize("name", BY_NODE)
@given(graphs_and_nodes())
@settings(max_examples=60, deadline=None)
def test_per_node(name, case):
    graph, nodes = case
    ours, theirs = both(name, graph, nodes)
    assert same(ours, theirs)


@pytest.mark.parametrize("name", OF_MULTIGRAPHS)
@given(graphs(nx.MultiGraph))
@settings(max_examples=30, deadline=None)
def test_multigraphs(name, graph):
    ours, theirs = both(name, graph)
    assert same(ours, theirs)


@given(graphs_and_nodes(nx.DiGraph))
@settings(max_examples=60, deadline=None)
def test_clustering_of_directed_graphs(case):
    graph, nodes = case
    ours, theirs = both("clustering", graph, nodes)
    assert same(ours, theirs)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_weighted_clustering(kind, data):
    ours, theirs = both("clustering", data.draw(weighted_graphs(kind)), weight="weight")
    assert list(ours) == list(theirs)
    assert list(ours.values()) == pytest.approx(list(theirs.values()), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@given(st.data(), st.booleans())
@settings(max_examples=60, deadline=None)
def test_average_clustering(kind, data, count_zeros):
    graph, nodes = data.draw(graphs_and_nodes(kind))
    ours, theirs = both("average_clustering", graph, nodes, count_zeros=count_zeros)
    assert same(ours, theirs)


@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph])
@pytest.mark.parametrize("count_zeros", [False, True])
def test_weighted_average_clustering(kind, count_zeros):
    graph = kind(nx.gnp_random_graph(40, 0.2, seed=4))
    for weight, (u, v) in enumerate(graph.edges, 1):
        graph.edges[u, v]["cost"] = weight
    ours, theirs = both("average_clustering", graph, weight="cost", count_zeros=count_zeros)
    assert ours == pytest.approx(theirs, rel=1e-12) and ours != nx.average_clustering(graph)


@pytest.mark.parametrize("kind", [nx.DiGraph, nx.MultiDiGraph])
@given(st.data())
@settings(max_examples=60, deadline=None)
def test_triadic_census(kind, data):
    graph = data.draw(graphs(kind))
    ours, theirs = both("triadic_census", graph)
    assert same(ours, theirs)


@given(graphs_and_nodes(nx.DiGraph))
@settings(max_examples=60, deadline=None)
def test_triadic_census_of_some_nodes(case):
    graph, nodes = case
    graph.remove_edges_from(list(nx.selfloop_edges(graph)))
    ours, theirs = both("triadic_census", graph, nodes)
    assert same(ours, theirs)


def test_the_census_of_some_nodes_with_loops_is_left_to_networkx():
    graph = nx.DiGraph([(0, 1), (1, 1), (2, 1)])
    reason = "with a nodelist, NetworkX counts loops as edges between two nodes"
    assert backend.can_run("triadic_census", (graph,), {}) is True
    assert backend.can_run("triadic_census", (graph, [0]), {}) == reason
    assert backend.can_run("triadic_census", (backend.convert_from_nx(graph), [0]), {}) == reason


@given(graphs())
@settings(max_examples=60, deadline=None)
def test_transitivity(graph):
    ours, theirs = both("transitivity", graph)
    assert same(ours, theirs)


@given(graphs_and_nodes())
@settings(max_examples=60, deadline=None)
def test_all_triangles(case):
    graph, nodes = case
    ours = list(nx.all_triangles(graph, nodes, backend="tcgpu"))
    theirs = list(nx.all_triangles(graph, nodes))
    assert {frozenset(t) for t in ours} == {frozenset(t) for t in theirs}
    assert len(ours) == len(theirs)
    assert all(type(t) is tuple and len(t) == 3 for t in ours)
    if nodes is None:
        assert set(ours) == set(theirs)
    else:
        requested = set(graph.nbunch_iter(nodes))
        assert all(t[0] in requested for t in ours)


def all_of(graph):
    """All data of a NetworkX graph, in its order."""
    neighbours = {node: list(near.items()) for node, near in graph.adj.items()}
    return type(graph), graph.graph, list(graph.nodes.items()), neighbours


@given(graphs(), st.integers(-1, 6))
@settings(max_examples=60, deadline=None)
def test_k_truss(graph, k):
    ours, theirs = both("k_truss", graph, k)
    if isinstance(theirs, nx.Graph):
        ours, theirs = all_of(ours), all_of(theirs)
    assert ours == theirs


@pytest.mark.parametrize("k", range(2, 8))
def test_a_truss_keeps_attributes_and_order(k):
    graph = nx.relabel_nodes(nx.powerlaw_cluster_graph(300, 6, 0.7, seed=3), str)
    graph.graph["source"] = "chance"
    nx.set_node_attributes(graph, {node: {"number": v} for v, node in enumerate(graph)})
    nx.set_edge_attributes(graph, {edge: {"weight": w} for w, edge in enumerate(graph.edges)})
    ours, theirs = both("k_truss", graph, k)
    assert all_of(ours) == all_of(theirs)
    assert (len(theirs) > 0) == (k < 7)
    some = next(iter(ours.edges(data=True)), None)
    if some:
        some[2]["weight"] = -1
        assert graph.edges[some[:2]]["weight"] >= 0, "attributes are shared with the graph"


def test_the_truss_of_a_tcgpu_graph_is_one():
    graph = BackendGraph(tcgpu.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], labels=list("abcd")))
    truss = nx.k_truss(graph, 3)
    assert isinstance(truss, BackendGraph) and list(truss) == list("abc")
    assert sorted(backend.convert_to_nx(truss).edges) == [("a", "b"), ("a", "c"), ("b", "c")]
    assert nx.triangles(truss) == dict.fromkeys("abc", 1)


@pytest.mark.parametrize("k", [2.5, "3", None])
def test_trusses_of_invalid_k_are_left_to_networkx(k):
    graph = nx.complete_graph(4)
    assert backend.can_run("k_truss", (graph, k), {}) == "k is not a whole number"
    with pytest.raises(NotImplementedError, match="not implemented by 'tcgpu' backend for the given arguments"):
        nx.k_truss(graph, k, backend="tcgpu")


@pytest.mark.parametrize("name", sorted({*networkx_info.FUNCTIONS} - {"k_truss"}))
def test_a_larger_graph(name):
    graph = nx.relabel_nodes(nx.powerlaw_cluster_graph(2000, 8, 0.5, seed=1), str)
    if name == "triadic_census":
        graph = nx.DiGraph((u, v) for u, v in graph.to_directed().edges if hash((len(u), v[-1])) % 3)
    ours, theirs = both(name, graph)
    if name == "all_triangles":
        ours, theirs = (sorted(map(sorted, found)) for found in (ours, theirs))
    assert ours
    assert same(ours, theirs)


@pytest.mark.parametrize("name", [*BY_NODE, "all_triangles"])
@pytest.mark.parametrize("once", [False, True], ids=["at will", "once"])  # whether they can be iterated only once
@pytest.mark.parametrize("nodes", ["nobody", 7.5, [["no hash"]], {0: "a", 9: "b"}, [1, 1, 2], range(3)], ids=repr)
def test_invalid_nodes_give_the_same_results_or_errors(name, nodes, once):
    graph = nx.karate_club_graph()

    def call(**where):
        result = getattr(nx, name)(graph, iter(nodes) if once and nodes != 7.5 else nodes, **where)
        return sorted(map(sorted, result)) if name == "all_triangles" else result

    assert same(outcome(call, backend="tcgpu"), outcome(call))


BOTH_WAYS = "this view has edges in both directions, whose weights may differ"


@pytest.mark.parametrize(
    "graph, arguments, reason",
    [
        (nx.DiGraph(), {"weight": "weight"}, True),
        (nx.MultiGraph(), {}, "NetworkX takes no multigraphs here"),
        (nx.MultiDiGraph(), {}, "NetworkX takes no multigraphs here"),
        (backend.convert_from_nx(nx.Graph()), {"weight": "weight"}, "this graph was converted without its attributes"),
        (nx.DiGraph().to_undirected(as_view=True).subgraph([]), {"weight": "weight"}, BOTH_WAYS),
        (nx.Graph(), {"speed": 3}, "these are not the function's arguments"),
        (nx.Graph(), {"nodes": 3}, True),
    ],
)
def test_can_run_says_why_not(graph, arguments, reason):
    assert backend.can_run("clustering", (graph,), arguments) == reason
    assert backend.can_run("clustering", (), {"G": graph, **arguments}) == reason


def test_triangles_of_some_nodes_of_multigraphs_are_left_to_networkx():
    graph = nx.MultiGraph([(0, 1), (1, 2), (2, 0)])
    assert backend.can_run("triangles", (graph,), {}) is True
    assert backend.can_run("triangles", (graph, [0]), {}) == "NetworkX takes no multigraphs here"
    with pytest.raises(nx.NetworkXNotImplemented):
        nx.triangles(graph, [0])


def test_should_run_says_why_not():
    few = "NetworkX reads only the neighbourhoods of these few nodes"
    graph = nx.gnm_random_graph(500, 2500, seed=1)
    assert backend.should_run("triangles", (graph,), {}) is True
    assert backend.should_run("triangles", (graph, range(100)), {}) is True
    assert backend.should_run("triangles", (graph, 3), {}) == few
    assert backend.should_run("all_triangles", (graph,), {"nbunch": [3, 4]}) == few
    why = backend.should_run("triangles", (nx.path_graph(9),), {})
    assert why == "NetworkX takes about 0.0 ms for these 8 edges, and tcgpu 0.8"


def test_should_run_knows_each_function_and_what_is_converted():
    graph = nx.gnm_random_graph(200, 975, seed=1)
    assert backend.should_run("clustering", (graph,), {}) is True
    assert backend.should_run("all_triangles", (graph,), {}) is not True
    graph = nx.gnm_random_graph(200, 1200, seed=1)
    assert backend.should_run("triangles", (graph,), {}) is True
    graph = nx.gnm_random_graph(200, 800, seed=1)
    assert backend.should_run("triangles", (graph,), {}) is not True
    nx.triangles(graph, backend="tcgpu")
    assert backend.should_run("triangles", (graph,), {}) is True


FIRST = """
import sys, networkx as nx
graph = nx.gnm_random_graph(300, 1500, seed=1)
nx.set_edge_attributes(graph, {edge: k % 5 + 1 for k, edge in enumerate(graph.edges)}, "weight")
directed = nx.DiGraph(list(graph.edges(data=True)))
calls = (("triangles", graph, {}), ("clustering", graph, {}), ("clustering", graph, {"weight": "weight"}),
         ("clustering", directed, {}), ("triadic_census", directed, {}), ("generalized_degree", graph, {}))
"""


def run(code):
    ran = subprocess.run([sys.executable, "-c", FIRST + code], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def test_a_small_graph_of_a_new_process_is_left_to_networkx_without_numpy():
    run("""
nx.config.backend_priority.algos = ["tcgpu"]
nx.triangles(graph), nx.clustering(directed)
assert "tcgpu.networkx_backend" in sys.modules and not {"numpy", "tcgpu.networkx_graph"} & {*sys.modules}
""")


def test_small_graphs_need_no_compiler():
    run("""
for name, given, options in calls:
    getattr(nx, name)(given, backend="tcgpu", **options)
assert "numba" not in sys.modules
""")


def test_fixed_functions_are_compiled_once_per_machine():
    """Weighted and directed clustering and the census: what a process compiles, the next one finds on the disk."""
    code = """
from numba.core import compiler
from tcgpu.engines import compiled  # from now on, small graphs are counted by compiled code, too
compiled_here, own = [], compiler.compile_extra
compiler.compile_extra = lambda *args, **options: compiled_here.append(args[2].__name__) or own(*args, **options)
for name, given, options in calls:
    getattr(nx, name)(given, backend="tcgpu", **options)
"""
    run(code)
    run(code + "assert not compiled_here, compiled_here")


def test_what_a_first_call_takes_is_paid_when_calls_have_lost_as_much(monkeypatch):
    graph = nx.gnm_random_graph(300, 1500, seed=1)
    monkeypatch.setattr(networkx_backend, "_lost", 0.0)
    monkeypatch.delitem(sys.modules, "tcgpu.networkx_graph")
    answers = [backend.should_run("triadic_census", (graph,), {}) for _ in range(4)]
    assert answers[0] == answers[1] == "NetworkX takes about 75.0 ms, and a first call of tcgpu 150"
    assert answers[3] is True


def test_the_triangles_of_a_few_nodes_are_counted_alone(monkeypatch):
    graph = nx.powerlaw_cluster_graph(400, 6, 0.6, seed=2)
    there = backend.convert_from_nx(graph)
    expected = nx.triangles(graph)
    asked, triangles = [], api.triangles
    monkeypatch.setattr(api, "triangles", lambda graph, *nodes: asked.append(nodes) or triangles(graph, *nodes))
    assert nx.triangles(there, 0) == expected[0]
    assert nx.triangles(there, [399, 5, 17]) == {node: expected[node] for node in (399, 5, 17)}
    assert asked == [(0,), (399,), (5,), (17,)]
    assert [nx.triangles(there, node) for node in graph] == list(expected.values()) and () in asked


@pytest.mark.parametrize("name", ["transitivity", "square_clustering"])
def test_some_functions_of_directed_graphs_are_left_to_networkx(name):
    reason = "NetworkX follows edges in one direction only here"
    for graph in (nx.DiGraph(), backend.convert_from_nx(nx.DiGraph())):
        assert backend.can_run(name, (graph,), {}) == reason


@pytest.mark.parametrize("name, kind", [("transitivity", nx.DiGraph), ("clustering", nx.MultiGraph)])
def test_unsupported_graphs_fall_back_to_networkx(name, kind, priority, dispatched):
    graph, function = kind(nx.gnm_random_graph(300, 2000, seed=1)), getattr(nx, name)
    found = outcome(function, graph)
    with nx.config.backend_priority(algos=[]):
        assert same(found, outcome(function, graph))
    assert dispatched() == []
    with pytest.raises(NotImplementedError, match="not implemented by 'tcgpu' backend for the given arguments"):
        function(graph, backend="tcgpu")


@pytest.mark.parametrize("weight", [None, "3", 1j, Fraction(1, 3), np.float32(0.1), [1], 10**400, np.inf, np.nan])
def test_weights_that_are_not_finite_doubles_are_left_to_networkx(weight, priority, dispatched):
    graph = nx.gnm_random_graph(300, 2000, seed=1)
    graph.edges[next(iter(graph.edges))]["size"] = weight
    found = outcome(nx.clustering, graph, weight="size")
    with nx.config.backend_priority(algos=[]):
        assert repr(found) == repr(outcome(nx.clustering, graph, weight="size"))
    with pytest.raises(NotImplementedError):
        nx.clustering(graph, backend="tcgpu", weight="size")
    with pytest.raises(NotImplementedError, match="edge weights .* are not supported"):
        backend.convert_from_nx(graph, edge_attrs={"size": 1})


def test_a_largest_weight_of_zero_is_left_to_networkx():
    graph = nx.Graph([(0, 1, {"weight": 0}), (1, 2, {"weight": -1}), (2, 0, {"weight": 0})])
    with pytest.raises(NotImplementedError, match="of which the largest is 0"):
        backend.convert_from_nx(graph, edge_attrs={"weight": 1})


def test_weights_are_read_from_a_graph_that_was_kept():
    """NetworkX finds the graph that `k_truss` converted, with all attributes, and does not convert it again."""
    graph = nx.complete_graph(5)
    graph.edges[0, 1]["weight"] = 8
    nx.k_truss(graph, 3, backend="tcgpu")
    ours, theirs = both("clustering", graph, weight="weight")
    assert ours == pytest.approx(theirs)


def test_weights_may_be_changed_between_two_calls():
    graph = nx.complete_graph(4)
    assert nx.clustering(graph, 0, weight="weight", backend="tcgpu") == 1
    graph.add_edge(0, 1, weight=8)
    assert nx.clustering(graph, 0, weight="weight", backend="tcgpu") == pytest.approx((2 / 4 + 1 / 8) / 3)
    assert nx.clustering(graph, 0, backend="tcgpu") == 1


def test_only_large_graphs_are_dispatched_by_default(priority, dispatched):
    nx.triangles(nx.karate_club_graph())
    assert dispatched() == []
    graph = nx.gnm_random_graph(1000, 5000, seed=1)
    nx.triangles(graph)
    assert sum(1 for _ in nx.all_triangles(graph)) == tcgpu.count(graph)
    assert dispatched() == ["triangles", "all_triangles"]


@pytest.mark.parametrize("names", ["generators", "k_truss"])
def test_functions_that_return_graphs_have_another_priority(names, dispatched):
    """NetworkX has one priority for these, and one for each function."""
    graph = nx.gnm_random_graph(300, 2000, seed=1)
    with nx.config.backend_priority(**{names: ["tcgpu"]}):
        truss = nx.k_truss(graph, 3)
    if names == "k_truss":
        del nx.config.backend_priority[names]  # NetworkX sets back only names that there were before
    assert dispatched() == ["k_truss"]
    assert all_of(truss) == all_of(nx.k_truss(graph, 3))


def test_directed_graphs_are_refused_as_networkx_does():
    for name, *more in (("triangles",), ("generalized_degree",), ("all_triangles",), ("k_truss", 3)):
        ours, theirs = both(name, nx.DiGraph([(0, 1)]), *more)
        assert ours == theirs == (nx.NetworkXNotImplemented, "not implemented for directed type")


def test_a_graph_is_converted_and_counted_once_until_it_changes(monkeypatch):
    counted = []
    own = api.triangles
    monkeypatch.setattr(api, "triangles", lambda graph: counted.append(graph) or own(graph))
    graph = nx.complete_graph(5)
    for node in graph:
        assert nx.triangles(graph, node, backend="tcgpu") == 6
    assert nx.clustering(graph, 0, backend="tcgpu") == 1
    assert len(counted) == 1
    graph.remove_edge(0, 1)
    assert nx.triangles(graph, 0, backend="tcgpu") == 3
    assert len(counted) == 2


def test_results_may_be_changed_by_the_caller():
    graph = nx.complete_graph(5)
    for name, value in (("triangles", 6), ("clustering", 1.0), ("generalized_degree", {3: 4})):
        first = getattr(nx, name)(graph, backend="tcgpu")
        first[0] = None
        if name == "generalized_degree":
            first[1].clear()
        assert getattr(nx, name)(graph, backend="tcgpu") == dict.fromkeys(graph, value)


def some_edges(graph):
    """Every second edge, as a view's filter takes it: with a key in a multigraph."""
    return list(graph.edges(keys=True) if graph.is_multigraph() else graph.edges)[::2]


VIEWS = {
    "edges": lambda graph: graph.edge_subgraph(some_edges(graph)),
    "nodes of edges": lambda graph: graph.edge_subgraph(some_edges(graph)).subgraph(range(20)),
    "filtered": lambda graph: nx.subgraph_view(graph.subgraph(range(25)), filter_edge=lambda u, v, *key: (u + v) % 3),
    "restricted": lambda graph: nx.restricted_view(graph, range(3), some_edges(graph)),
    "undirected": lambda graph: graph.edge_subgraph(some_edges(graph)).to_undirected(as_view=True),
    "directed": lambda graph: graph.edge_subgraph(some_edges(graph)).to_directed(as_view=True),
    "reversed": lambda graph: graph.edge_subgraph(some_edges(graph)).to_directed().reverse(copy=False),
    "frozen": lambda graph: nx.freeze(graph.edge_subgraph(some_edges(graph))),
}


@pytest.mark.parametrize("view", VIEWS)
@pytest.mark.parametrize("kind", [nx.Graph, nx.DiGraph, nx.MultiGraph, nx.MultiDiGraph])
def test_views_are_converted(kind, view):
    graph = kind(nx.gnm_random_graph(30, 150, seed=2, directed=True).edges)
    graph.add_edges_from(list(graph.edges)[::3])  # parallel edges in a multigraph
    nx.set_edge_attributes(graph, {edge: k % 7 + 1 for k, edge in enumerate(graph.edges)}, "weight")
    seen = VIEWS[view](graph)
    assert Graph.from_networkx(seen).equals(Graph.from_networkx(seen.copy()))
    for name in (*BY_NODE, "triadic_census"):
        ours, theirs = both(name, seen)
        assert same(ours, theirs) or ours[0] is NotImplementedError
    if backend.can_run("clustering", (seen,), {"weight": "weight"}) is True:
        ours, theirs = nx.clustering(seen, weight="weight", backend="tcgpu"), nx.clustering(seen, weight="weight")
        assert ours == pytest.approx(theirs, rel=1e-9)


def test_a_view_is_converted_again_after_its_graph_was_changed():
    graph = nx.path_graph(3)
    view = graph.subgraph(range(3))
    assert nx.triangles(view, backend="tcgpu") == dict.fromkeys(range(3), 0)
    graph.add_edge(0, 2)
    assert nx.triangles(view, backend="tcgpu") == dict.fromkeys(range(3), 1)


def test_a_view_that_hides_an_edge_in_one_direction_is_left_to_networkx(priority):
    view = nx.subgraph_view(nx.complete_graph(50), filter_edge=lambda u, v: (u, v) != (0, 1))
    assert nx.clustering(view) == nx.clustering(view, backend="networkx")
    with pytest.raises(tcgpu.GraphError, match="filter of edges") as error:
        tcgpu.count(view)
    assert "graph.copy()" in str(error.value) and tcgpu.count(view.copy()) == 19600


def test_directed_graphs_are_converted_with_their_directions_and_attributes():
    graph = nx.DiGraph([("a", "b"), ("b", "a"), ("c", "a"), ("c", "c")], name="four")
    graph.edges["a", "b"]["weight"] = 2
    there = backend.convert_from_nx(graph)
    assert there.is_directed() and there.number_of_edges() == 3
    assert nx.clustering(there) == dict.fromkeys("abc", 0)
    back = backend.convert_to_nx(there)
    assert back is not graph and nx.utils.graphs_equal(back, graph)


def test_triangles_are_listed_lazily(monkeypatch):
    taken = []

    def listed(graph, chunk, own=api.list_triangles):
        for rows in own(graph, chunk):
            taken.append(len(rows))
            yield rows

    monkeypatch.setattr(api, "list_triangles", listed)
    found = nx.all_triangles(nx.complete_graph(80), backend="tcgpu")
    assert iter(found) is found
    assert taken == []
    assert len(next(found)) == 3
    assert len(taken) == 1
    assert 1 + sum(1 for _ in found) == sum(taken) == 82_160
    assert len(taken) > 1


def test_a_tcgpu_graph_needs_no_networkx_graph():
    u, v = [0, 1, 2, 2, 3], [1, 2, 0, 3, 3]
    graph = BackendGraph(tcgpu.Graph.from_edges(u, v, n=5, labels=list("abcde")))
    assert nx.triangles(graph) == {"a": 1, "b": 1, "c": 1, "d": 0, "e": 0}
    assert nx.clustering(graph, "c") == 1 / 3
    assert list(nx.all_triangles(graph)) == [("a", "b", "c")]
    assert (len(graph), graph.number_of_nodes(), graph.number_of_edges()) == (5, 5, 4)
    assert list(graph) == list("abcde")
    assert repr(graph).startswith("BackendGraph(<Graph: 5 vertices, 4 edges")


def test_labels_in_an_array_become_python_objects():
    graph = tcgpu.Graph.from_edges([0, 1, 2], [1, 2, 0], labels=np.array([10, 20, 30]))
    answer = nx.triangles(BackendGraph(graph))
    assert answer == {10: 1, 20: 1, 30: 1}
    assert {type(node) for node in answer} == {int}


def test_back_to_networkx():
    graph = nx.Graph([("a", "b"), ("b", (1, 2))], name="three")
    there = backend.convert_from_nx(graph)
    back = backend.convert_to_nx(there)
    assert type(back) is nx.Graph
    assert list(back) == list(graph)
    assert nx.utils.edges_equal(back.edges, graph.edges)
    assert back.name == "three"
    assert backend.convert_to_nx({"a": 1}) == {"a": 1}
    with nx.config(fallback_to_nx=True):
        assert nx.degree_centrality(there) == nx.degree_centrality(graph)
