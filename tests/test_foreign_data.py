"""What people have: vertices with names, and tables and graphs of other libraries, or objects with their interface."""

import itertools
import sys
from types import SimpleNamespace

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import tcgpu
from tcgpu import Graph, GraphError

NAMED = [("Bo", "Ann"), ("Cy", "Bo"), ("Ann", "Cy"), ("Cy", "Di")]
FIRST, SECOND = map(list, zip(*NAMED, strict=True))


def edges(graph):
    """The edges between labels."""
    labels = range(graph.n) if graph.labels is None else list(graph.labels)
    return {frozenset((labels[i], labels[j])) for i, j in zip(*graph.edges(), strict=True)}


# vertices with names


@pytest.mark.parametrize(
    "given",
    [
        (NAMED,),
        (np.array(NAMED),),
        (np.array(NAMED, object),),
        (FIRST, SECOND),
        (tuple(FIRST), np.array(SECOND)),
        (np.array(FIRST, np.dtypes.StringDType()), np.array(SECOND, object)),
        (pd.Series(FIRST), pd.Series(SECOND, dtype="category")),
    ],
)
def test_vertices_with_names(given):
    graph = Graph.from_edges(*given, relabel=True)
    assert list(graph.labels) == ["Ann", "Bo", "Cy", "Di"]
    assert edges(graph) == {frozenset(pair) for pair in NAMED}
    assert dict(zip(graph.labels, tcgpu.triangles(graph).tolist(), strict=True)) == {
        "Ann": 1,
        "Bo": 1,
        "Cy": 1,
        "Di": 0,
    }
    with pytest.raises(GraphError, match=r"must hold whole numbers.*; Graph\.from_edges\(\.\.\., relabel=True\)"):
        Graph.from_edges(*given)


@pytest.mark.parametrize(
    "pairs, labels",
    [
        ([((0, 1), (1, 0)), ((1, 0), (0, 0))], [(0, 0), (0, 1), (1, 0)]),
        ([(("a", 1), ("b", 2, 3))], [("a", 1), ("b", 2, 3)]),
        ([(2, "a"), ("a", 1)], [2, "a", 1]),  # cannot be compared: as they occur
        ([(2**63, 1), (1, 2)], [1, 2, 2**63]),
        ([(-5, 7)], [-5, 7]),
        ([], []),
    ],
)
def test_names_are_anything_that_can_be_hashed(pairs, labels):
    graph = Graph.from_edges(pairs, relabel=True)
    assert list(graph.labels or []) == labels if not isinstance(graph.labels, np.ndarray) else labels == [-5, 7]
    assert edges(graph) == set(map(frozenset, pairs))


def test_one_end_may_have_names_and_the_other_numbers():
    graph = Graph.from_edges(["a", "b"], np.array([1, 1]), relabel=True)
    assert edges(graph) == {frozenset(("a", 1)), frozenset(("b", 1))}


@pytest.mark.parametrize(
    "u, v, says",
    [
        (["a", None], ["b", "c"], "an end of an edge is None, which names no vertex"),
        (["a", float("nan")], ["b", "c"], "an end of an edge is nan"),
        (["a", pd.NA], ["b", "c"], "an end of an edge is <NA>"),
        (pd.Series(["a", None]), ["b", "c"], "an end of an edge is (nan|None)"),
        ([0.5, 1], [1, 2], r"an end of an edge is 0\.5"),
        (np.array([0.5, 1]), [1, 2], "u must hold whole numbers, not float64"),
        (np.ma.array(["a", "b"], mask=[0, 1]), ["b", "c"], "u has 1 masked entries"),
        ([["a"], ["b", "c"]], ["d", "e"], "can be hashed: unhashable type: 'list'"),
        (["a", "b"], ["c"], "u has 2 entries, v has 1"),
        (["ab", "cd"], None, r"edges in one array have shape \(edges, 2\), not \(2,\)"),
        ([("a", "b", "c")], None, r"edges in one array have shape \(edges, 2\), not \(1, 3\)"),
    ],
)
def test_ends_that_name_no_vertex_are_refused(u, v, says):
    with pytest.raises(GraphError, match=says):
        Graph.from_edges(u, v, relabel=True)


# tables


class ArrowColumn:
    """A column as PyArrow has it: it knows how many entries are missing, and becomes an array."""

    def __init__(self, values):
        self.values, self.null_count = values, values.count(None)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype or (object if isinstance(self.values[0], str) else None))


class ArrowTable(dict):
    """A table as PyArrow has it."""

    column_names = property(list)

    def __getitem__(self, name):
        return ArrowColumn(super().__getitem__(name))


class Stream(SimpleNamespace):
    """A table that has Arrow's stream and nothing else; `opened` stands for what it becomes."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("the library that reads it calls this")


@pytest.fixture(params=["pandas", "arrow", "stream"])
def make(request, monkeypatch):
    """A function that makes a table of a dict of lists."""
    for library in "polars", "pyarrow":
        monkeypatch.delitem(sys.modules, library, raising=False)
    if request.param == "stream":
        monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(table=lambda given: ArrowTable(given.columns_of)))
    return {"pandas": pd.DataFrame, "arrow": ArrowTable, "stream": lambda data: Stream(columns_of=data)}[request.param]


@pytest.mark.parametrize(
    "columns", [("source", "target"), ("w", "Source_ID", "target id"), ("person", "friend"), ("dst", "w", "src")]
)
def test_the_ends_of_edges_in_a_table(make, columns):
    values = {"w": [0.5, 1.5, 2.5, 3.5]}
    ends = iter([SECOND, FIRST] if columns[0] == "dst" else [FIRST, SECOND])
    table = make({name: values.get(name) or next(ends) for name in columns})
    assert edges(Graph.from_edges(table, relabel=True)) == {frozenset(pair) for pair in NAMED}
    with pytest.raises(GraphError, match="relabel=True"):
        tcgpu.count(table)


def test_every_verb_takes_a_table_of_numbers(make):
    table = make({"u": [0, 1, 2, 9], "v": [1, 2, 0, 9]})
    assert tcgpu.count(table) == 1
    assert tcgpu.triangles(table).tolist() == [1, 1, 1] + 7 * [0]
    assert Graph.from_edges(table, relabel=True).ids.tolist() == [0, 1, 2, 9]
    assert Graph.from_edges(table, n=12).n == 12


def test_tables_that_hold_no_edges_are_refused(make):
    with pytest.raises(GraphError, match="which two of the columns a, b, c are the ends of an edge"):
        tcgpu.count(make({"a": [1], "b": [2], "c": [3]}))
    with pytest.raises(GraphError, match="whole numbers, not float64"):
        tcgpu.count(make({"source": [0.5], "target": [1.5]}))
    with pytest.raises(GraphError, match="missing|names no vertex"):
        Graph.from_edges(make({"source": ["a", None], "target": ["b", "c"]}), relabel=True)


def test_a_stream_that_nobody_reads_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.delitem(sys.modules, "polars", raising=False)
    with pytest.raises(tcgpu.TcgpuError, match=r"Stream needs pyarrow, .*pip install 'tcgpu\[files\]'"):
        tcgpu.count(Stream())


@pytest.mark.parametrize("library, make", [("polars", "DataFrame"), ("pyarrow", "table")])
def test_tables_of_the_libraries_themselves(library, make):
    make = getattr(pytest.importorskip(library, reason=f"{library} is not here; stand-ins are tested above"), make)
    for table in make({"source": FIRST, "target": SECOND}), make({"source": FIRST, "target": SECOND})[0:4]:
        for given in table, SimpleStream(table):
            assert edges(Graph.from_edges(given, relabel=True)) == {frozenset(pair) for pair in NAMED}
    assert tcgpu.count(make({"a": [0, 1, 2], "b": [1, 2, 0]})) == 1
    with pytest.raises(GraphError, match="u has 1 missing entries"):
        Graph.from_edges(make({"source": ["a", None], "target": ["b", "c"]}), relabel=True)


class SimpleStream:
    """A table's stream and nothing else of it."""

    def __init__(self, table):
        self.__arrow_c_stream__ = table.__arrow_c_stream__


# graphs


class Igraph:
    """The interface of igraph.Graph."""

    def __init__(self, n, pairs, **attributes):
        self.n, self.pairs = n, pairs
        self.vs = type("", (dict,), {"attributes": lambda vs: list(vs)})(attributes)

    def vcount(self):
        return self.n

    def get_edgelist(self):
        return self.pairs


class Networkit:
    """The interface of networkit.Graph."""

    def __init__(self, vertices, pairs):
        self.iterNodes, self.iterEdges = lambda: iter(vertices), lambda: iter(pairs)


class GraphTool:
    """The interface of graph_tool.Graph, with weights."""

    edge_index = None  # a property map, not edges as in PyG

    def __init__(self, vertices, pairs):
        self.get_vertices = lambda: np.array(vertices)
        self.get_edges = lambda: np.array([(*pair, 7) for pair in pairs]).reshape(-1, 3)


TRIANGLE = [(0, 1), (1, 2), (2, 0)]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("make", [Networkit, GraphTool])
def test_graphs_whose_vertices_may_have_gaps(make, gaps):
    step = 3 if gaps else 1
    graph = make([0, step, 2 * step, 3 * step], [(u * step, v * step) for u, v in TRIANGLE])
    assert tcgpu.triangles(graph).tolist() == [1, 1, 1, 0]
    assert Graph.from_edges(graph).n == 4
    assert (Graph.from_edges(graph).ids is None) != gaps
    assert edges(Graph.from_edges(graph)) == {frozenset((u * step, v * step)) for u, v in TRIANGLE}
    assert tcgpu.count(make([], [])) == 0


def test_a_graph_of_igraph_has_names():
    assert tcgpu.count(Igraph(4, TRIANGLE)) == 1
    assert Graph.from_edges(Igraph(3, [])).n == 3
    graph = Graph.from_edges(Igraph(4, TRIANGLE, name=["a", "b", "c", "d"]))
    assert (graph.n, list(graph.labels)) == (4, ["a", "b", "c", "d"])


def test_data_of_pyg_may_not_say_how_many_nodes_there_are():
    index = np.array(TRIANGLE).T
    assert Graph.from_edges(SimpleNamespace(edge_index=index, num_nodes=5)).n == 5
    assert tcgpu.count(SimpleNamespace(edge_index=index, num_nodes=None)) == 1


@pytest.mark.parametrize("library", ["igraph", "networkit"])
def test_graphs_of_the_libraries_themselves(library):
    module = pytest.importorskip(library, reason=f"{library} is not here; a stand-in is tested above")
    novel = nx.convert_node_labels_to_integers(nx.les_miserables_graph())
    make = module.Graph.from_networkx if library == "igraph" else module.nxadapter.nx2nk
    assert tcgpu.count(make(novel)) == tcgpu.count(novel) == 467


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("make", ["array", "matrix"])
def test_every_format_of_scipy(kind, make):
    dense = np.triu(np.random.default_rng(1).random((12, 12)) < 0.4, 1).astype(int)
    expected = int(np.trace(np.linalg.matrix_power(dense + dense.T, 3))) // 6
    assert tcgpu.count(getattr(sp, f"{kind}_{make}")(dense)) == expected > 0


@pytest.mark.parametrize(
    "make, says",
    [
        (lambda: Graph(nx.path_graph(3)), r"Graph\.from_networkx makes a graph of a networkx\.classes\.graph\.Graph"),
        (lambda: Graph(sp.csr_array((3, 3))), r"Graph\.from_scipy makes a graph of a scipy\.sparse\._csr\.csr_array"),
        (lambda: Graph.from_edges(nx.path_graph(3)), r"Graph\.from_networkx makes a graph of a networkx\S*Graph"),
        (lambda: Graph("a.txt"), r"tcgpu\.read makes a graph of a str"),
        (lambda: Graph(pd.DataFrame()), r"Graph\.from_edges makes a graph of a pandas\.\S*DataFrame"),
        (lambda: tcgpu.count(itertools.count()), r"cannot make a graph of a itertools\.count; give a Graph"),
        (lambda: Graph.from_edges({0: 1}), "cannot make a graph of a dict; give a Graph"),
        (lambda: Graph.from_edges(Igraph(3, TRIANGLE), relabel=True), "without n and labels"),
    ],
)
def test_what_is_refused_names_its_type_and_the_way_out(make, says):
    with pytest.raises(GraphError, match=says):
        make()
