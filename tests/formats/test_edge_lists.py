"""Edge lists: columns with names, lines that are no edges, vertices without edges; several compressed streams."""

import bz2
import csv
import gzip
import itertools
import lzma

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import sampling
import scipy.io
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.sparse import block_array, csr_array

import tcgpu
from tcgpu import Graph, GraphError, files, read, write
from tcgpu.__main__ import main
from tcgpu.formats import edge_list, scan

TRIANGLES = [(0, 1), (1, 2), (2, 0), (0, 3), (1, 3), (4, 5)]  # two of them


@pytest.fixture
def written(tmp_path):
    """A function that puts text or bytes into a file and returns its path."""

    def written(content, name="x.csv"):
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return tmp_path / name

    return written


def edges(path, **keywords):
    """The edges of a file as a set of pairs of the numbers in it."""
    u, v, n, labels = edge_list.read_edges(str(path), **keywords)
    labels = np.arange(n) if labels is None else labels
    return {frozenset((int(labels[a]), int(labels[b]))) for a, b in zip(u, v, strict=True)}


EXPECTED = {frozenset(pair) for pair in TRIANGLES}
FRAME = pd.DataFrame(TRIANGLES, columns=["a", "b"])


# columns with names


@pytest.mark.parametrize(
    "a, b",
    [
        ("source", "target"), ("Source", "Target"), ("SRC", "DST"), ("from", "to"), ("u", "v"), ("node1", "node2"),
        ("node_1", "node_2"), ("source_id", "target_id"), ("FromNodeId", "ToNodeId"), ("id_1", "id_2"), ("i", "j"),
        ("source node", "target node"), ("row", "column"), ("target", "source"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL])
def test_columns_are_found_by_their_names_as_pandas_writes_them(written, a, b, separator, quoting):
    frame = FRAME.rename(columns={"a": a, "b": b})
    frame.insert(1, "weight", [7, 5, 3, 2, 1, 9])
    frame.insert(0, "id", np.arange(100, 106))
    frame["label, of the edge"] = ['say "hi"', "1,2", "", "x y", "3", "4;5\t6"]
    for index in (False, True):
        path = written(frame.to_csv(sep=separator, quoting=quoting, index=index))
        assert edges(path) == EXPECTED and tcgpu.count(read(path)) == 2


@pytest.mark.parametrize("chunk", [7, scan.CHUNK])
def test_columns_between_blanks_are_found_by_their_names(written, monkeypatch, chunk):
    monkeypatch.setattr(scan, "CHUNK", chunk)
    lines = "".join(f"{k}   {a} \t {b}\t0.5  \r\n" for k, (a, b) in enumerate(TRIANGLES))
    assert edges(written(f"# 9 8 7\nid source target weight\n\n{lines}# the end\n")) == EXPECTED


def test_two_columns_may_have_any_names(written):
    assert edges(written(FRAME.to_csv(index=False))) == EXPECTED
    assert edges(written(FRAME.to_csv(index=False, quoting=csv.QUOTE_ALL))) == EXPECTED
    assert edges(written(FRAME.to_csv(index=False, header=False, quoting=csv.QUOTE_ALL))) == EXPECTED


@pytest.mark.parametrize(
    "names, says",
    [
        ("id,left,right", "does not say which two"),
        ("user,item,rating", "does not say which two"),
        ("source,weight,id", "does not say which two"),
        (",source", "does not say which two"),
        (",a,b", "does not say which two"),
        ("source,source,target", "more than one column for an end"),
        ("source,target,target_id", "more than one column for an end"),
        ("source,target,from,to", "more than one column for an end"),
        ("u,v,source,target", "more than one column for an end"),
        ("source,target,dest", None),
        ("source,target,destination", "more than one column for an end"),
    ],
)
def test_names_that_could_mean_several_columns_are_refused(written, names, says):
    width = names.count(",") + 1
    path = written(names + "\n" + ",".join("1234"[:width]) + "\n")
    says = says or "more than one column for an end"
    with pytest.raises(GraphError, match=f"line 1: a line of column names (that|with) .*{says.split(' ', 1)[1]}"):
        read(path)


@pytest.mark.parametrize(
    "text",
    [
        '"source" "target"\n"1" 0 5\n"2" 5 6\n',  # as R writes it: rows have names, their column has none
        "source,target\n0,5,6\n1,6,7\n",
        "source\ttarget\tweight\n0\t5\t6\t0.5\n",
        "id,source,target\n0,5,6,7\n",
    ],
)
def test_a_line_with_more_columns_than_there_are_names_is_refused(written, text):
    with pytest.raises(GraphError, match="line 2: more columns than the line of column names has"):
        read(written(text))


# columns that hold something else

CONTACTS = [(20 * k, *pair) for k, pair in enumerate([(1, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 5)], 1)]
NUMBERED = [(k, *pair) for k, pair in enumerate(TRIANGLES)]


def rows(lines, between=" "):
    return "".join(between.join(map(str, line)) + "\n" for line in lines)


@pytest.mark.parametrize(
    "lines",
    [
        CONTACTS, [(*line, "3B", "MP") for line in CONTACTS], sorted(CONTACTS, key=lambda line: line[1:]),
        [(k // 2, *line[1:]) for k, line in enumerate(CONTACTS)], NUMBERED, NUMBERED[1:],
        [(3 + k * k, *line[1:]) for k, line in enumerate(NUMBERED)],
    ],
)  # fmt: skip
@pytest.mark.parametrize("separator", [" ", "\t", ",", ";"])
def test_times_and_numbers_of_lines_are_not_read_as_vertices(written, lines, separator):
    path = written(rows(lines, separator), "x.txt")
    with pytest.raises(GraphError, match="line 1: the first column may hold the (times|numbers) .* columns=(.1, 2.)"):
        read(path)
    assert edges(path, columns=(1, 2)) == {frozenset(line[1:3]) for line in lines}
    assert edges(path, columns=[0, 1]) == {frozenset(line[:2]) for line in lines}


def test_a_few_lines_with_numbers_are_told_about(written, caplog):
    read(written("0,0,1\n1,1,2\n2,2,0\n"))
    assert "line 1: the first column may hold the numbers of the lines" in caplog.text


@pytest.mark.parametrize(
    "columns, text",
    [
        (("x", "y"), "t,x,y\n9,0,1\n8,1,2\n"),
        ((1, 2), "t,x,y\n9,0,1\n8,1,2\n"),
        ((2, 1), "2020-01-01 0 1\n2020-01-02 1 2\n"),
        ((1, 2), '"V1" "V2"\n"1" 0 1\n"2" 1 2\n'),  # R
        (("0", "1"), "0,1\n0,1\n1,2\n"),
        ((0, 1), "0 1 a,b,c\n1 2 d\n"),
        (("source", "target"), "source,target,vertices=9\n0,1\n1,2\n"),
        (None, "# time i j\n20 0 1\n40 1 2\n"),
        (None, ",0,1\n0,0,1\n1,1,2\n"),  # pandas, columns without names
        (None, ",0,1\r\n0,0,1\r\n1,1,2"),
    ],
)
def test_columns_are_chosen(written, columns, text, caplog):
    assert edges(written(text), columns=columns) == {frozenset((0, 1)), frozenset((1, 2))}
    assert not caplog.text


@pytest.mark.parametrize("columns", [(1, 1), (-1, 0), (0.0, 1), ("a", 1), (1,), "ab", 1, (True, False)])
def test_columns_are_two(written, columns):
    with pytest.raises(GraphError, match="columns must be two numbers of columns, from 0 on, or two of their names"):
        read(written("0 1 2\n"), columns=columns)


@pytest.mark.parametrize("text", ["a,b\n0,1\n", "0 -5 7\n1 2 3\n", "0 1 5.0\n"])
@pytest.mark.parametrize("columns", [(1, 2), ("b", "c")])
def test_columns_that_are_not_there_are_refused(written, text, columns):
    with pytest.raises(GraphError, match="line [12]: "):
        read(written(text), columns=columns)


def test_columns_are_for_edge_lists(written):
    with pytest.raises(GraphError, match="columns= is for edge lists"):
        read(written("2 1\n2\n1\n", "x.graph"), columns=(0, 1))


@pytest.mark.parametrize(
    "text, says",
    [
        ("user,item\n1,1\n1,2\n2,1\n", "both columns are read as numbers of the same vertices"),
        ("0,1\n5,6\n6,7\n", "this is read as an edge; if it numbers the columns, as pandas writes them"),
        ("0;1;2\n5;6;1\n6;7;1\n", "this is read as an edge; if it numbers the columns, as pandas writes them"),
        ("% asym dynamic\n1 2 1 9\n1 2 -1 10\n2 3 1 11\n", "edges that disappear again"),
    ],
)
def test_what_may_be_meant_in_another_way_is_told(written, text, says, caplog):
    read(path := written(text))
    assert f"x.csv, line 1: {says}" in caplog.text and caplog.records[0].name == "tcgpu"
    caplog.clear()
    if not text.startswith("%"):
        read(path, columns=(0, 1))
        assert not caplog.text


@pytest.mark.parametrize("matrix", [nx.to_numpy_array(nx.path_graph(5), dtype=int), [[0, 2, 4], [3, 0, 4], [3, 2, 0]]])
@pytest.mark.parametrize("names", [None, "above", "before"])
def test_matrices_are_refused(written, matrix, names):
    lines = np.insert(matrix, 0, np.arange(len(matrix)), axis=names == "before") if names else np.array(matrix)
    with pytest.raises(GraphError, match="line 1: this may be a matrix"):
        read(written(rows(lines.tolist(), ",")))


def test_a_matrix_is_counted_as_its_refusal_says(written):
    path = written(rows(nx.to_numpy_array(nx.complete_graph(5), dtype=int).tolist()))
    assert tcgpu.count(csr_array(np.loadtxt(path))) == 10


@pytest.mark.parametrize("size", ["", "% 4 3 2\n"])
@pytest.mark.parametrize("more", ["", " 5", " -1 1082040961"])
def test_two_mode_files_of_konect_have_two_sets_of_vertices(written, size, more):
    lines = "".join(f"{a} {b}{more}\n" for a, b in [(1, 1), (1, 2), (2, 1), (3, 2)])
    path = written(f"% bip weighted\n{size}{lines}", "out.txt")
    graph = read(path)
    assert graph.labels.tolist() == [1, 2, 3, 4, 5] and tcgpu.count(graph) == 0
    assert edges(path) == {frozenset(edge) for edge in [(1, 4), (1, 5), (2, 4), (3, 5)]}
    assert read(path, base=1).n == read(path, n=6).n - 1 == 5
    with pytest.raises(GraphError, match="3 vertices of the first column and those of the second are more than 5"):
        read(path, n=5)


@pytest.mark.parametrize("text", ["% bip positive\n0 1\n1 2\n", "% bip positive\n% 2 1 2\n1 1\n2 2\n"])
def test_two_mode_files_with_other_numbers_are_refused(written, text):
    with pytest.raises(GraphError, match="expected vertex numbers from 1 on, in the first column up to 1"):
        read(written(text))


def test_a_rectangular_matrix_is_refused_with_a_way(tmp_path):
    matrix = csr_array([[1, 1, 0], [0, 1, 1]])
    scipy.io.mmwrite(tmp_path / "x.mtx", matrix)
    for thing in (tmp_path / "x.mtx", matrix):
        with pytest.raises(GraphError, match=r"scipy.sparse.block_array\(\[\[None, A\], \[A.T, None\]\]\)"):
            tcgpu.count(thing)
    graph = Graph.from_scipy(block_array([[None, matrix], [matrix.T, None]]))
    assert (graph.n, graph.m, tcgpu.count(graph)) == (5, 4, 0)


# lines that are no edges


@pytest.mark.parametrize("text", ["# 0\n1 5\n# 1\n2 5\n", "1 7\n2 9\n#\n1 2\n", "1 7\n2 9\n  # \r\n1 2\n"])
def test_lines_of_lgl_and_tgf_are_refused(written, text):
    with pytest.raises(GraphError, match="line 3: a line of '#' alone or with a number, as in the formats LGL and TGF"):
        read(written(text, "x.txt"))


@pytest.mark.parametrize(
    "text, line",
    [
        ("0 1 2\n1 0\n2 0\n", 2),
        ("0 1\n1 0 2\n2 1 3\n3 2\n", 2),
        ("0,1,2\n1,2\n", 2),
        ("# x\n0\t1\t2\t3\n1\t0\t2\n2\t0\t1\n3\t0\n", 3),
        ("0 1 5\n1 2 0.5\n2 3\n", 3),  # cut off
        ("0 1 5\n1 2\n", 2),
    ],
)
@pytest.mark.parametrize("chunk", [3, scan.CHUNK])
def test_lines_of_whole_numbers_of_different_lengths_are_refused(written, monkeypatch, text, line, chunk):
    monkeypatch.setattr(scan, "CHUNK", chunk)
    with pytest.raises(GraphError, match=f"line {line}: another number of columns than in the lines before"):
        read(written(text, "x.txt"))


@pytest.mark.parametrize(
    "graph",
    [nx.complete_graph(3), nx.complete_graph(9), nx.cycle_graph(20), nx.random_regular_graph(4, 50, seed=1)],
)
@pytest.mark.parametrize("separator", [" ", "\t", ",", ";"])
@pytest.mark.parametrize("first", [0, 1, 1000])
def test_adjacency_lists_of_equally_many_neighbours_are_refused(written, graph, separator, first):
    lines = [separator.join(str(first + w) for w in (v, *graph[v])) for v in graph]
    with pytest.raises(GraphError, match="line 1: this looks like an adjacency list"):
        read(written("\n".join(lines), "x.txt"))


def test_an_adjacency_list_with_a_missing_line_is_refused(written):
    with pytest.raises(GraphError, match="adjacency list"):
        read(written("0 1 2\n1 0 2\n", "x.txt"))


@given(graph=st.integers(3, 40).flatmap(lambda n: st.sets(st.tuples(*[st.integers(0, n - 1)] * 2), min_size=3)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
def test_adjacency_lists_are_refused_unless_every_line_is_an_edge(written, graph):
    """Both directions, as NetworkX's and METIS's users write them: refused, or every line is an edge indeed."""
    near = nx.Graph([(a, b) for a, b in graph if a != b])
    lines = [" ".join(map(str, (v, *sorted(near[v])))) for v in sorted(near)]
    path = written("\n".join(lines) or "0 0", "x.txt")
    try:
        found = edges(path)
    except GraphError:
        return
    assert found - {frozenset((0,))} == {frozenset(edge) for edge in near.edges}


@pytest.mark.parametrize(
    "lines",
    [
        ["0 1 5", "1 2 7", "2 0 9"],  # weights
        ["0 1 1", "1 2 1", "2 0 1"],
        ["0 1 1", "1 0 1", "2 3 1", "3 2 1"],
        ["0 1 5000", "1 0 5000", "2 3 4000", "3 2 4000"],
        ["0 1 {}", "1 2 {'weight': 3}", "2 0 {'weight': 3, 'colour': 'red'}"],  # as NetworkX writes them
        ["0,1,", "1,2,", "2,0,"],
        ["0,1,5,", "1,2,6,", "2,0,7,"],
        ["0,1", "1,2,", "2,0"],
        ["0 1 1.5 2", "1 2 2", "2 0 x"],
        ["0 1 1082040961", "1 2 1082155839", "0 1 1082414391"],  # times
    ],
)
def test_columns_of_weights_and_times_are_ignored(written, lines):
    path = written("\n".join(lines) + "\n", "x.txt")
    pairs = [line.replace(",", " ").split()[:2] for line in lines]
    assert edges(path) == {frozenset(map(int, pair)) for pair in pairs}


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize(
    "sizes", ["{n} {m}", "{n},{m},u,graph", "{n} {n} {m}", "{n}\t{m}\t0", "{n} {m2}", "{more} {m}", "{n} {m} {m}"]
)
@pytest.mark.parametrize("weight", ["", " 3", " 0.5"])
def test_a_first_line_of_sizes_is_refused(written, sizes, first, weight):
    graph = nx.gnm_random_graph(30, 60, seed=1)
    lines = "".join(f"{u + first} {v + first}{weight}\n" for u, v in graph.edges)
    text = sizes.format(n=30, m=60, m2=120, more=35) + "\n" + lines
    with pytest.raises(GraphError, match=r"line (2: (this may be an edge, or sizes|the first line)|3: another number)"):
        read(written(f"% nothing\n{text}", "x.txt"))


def test_a_first_line_of_sizes_before_both_directions_is_refused(written):
    graph = nx.gnm_random_graph(30, 60, seed=1).to_directed()
    lines = "".join(f"{u} {v}\n" for u, v in graph.edges)
    for m in (60, 120):
        with pytest.raises(GraphError, match="line 1: this may be an edge, or sizes, as 120 edges"):
            read(written(f"30 {m}\n{lines}", "x.txt"))


@pytest.mark.parametrize(
    "text", ["26475,53381,u,graph\n0,1\n1,2\n", "3 3 0.5\n0 1\n1 2\n2 0\n", "3 3\n0 1\n1 2\n2 0\n"]
)
def test_sizes_before_a_few_lines_are_refused(written, text):
    with pytest.raises(GraphError, match="line 1: (this may be an edge, or sizes|the first line has another number)"):
        read(written(text, "x.txt"))


def test_sizes_before_a_tree_do_not_become_an_edge(written):
    """A star: both sizes are vertex numbers, too, and as an edge they would close a triangle."""
    with pytest.raises(GraphError, match="leave it out if it is sizes, move it to the end if it is an edge"):
        read(written("5 4\n1 2\n1 3\n1 4\n1 5\n", "x.txt"))
    assert tcgpu.count(read(written("1 2\n1 3\n1 4\n1 5\n5 4\n", "x.txt"))) == 1


@pytest.mark.parametrize(
    "lines",
    [
        ["0 1", "1 2", "2 0"],
        ["1 2", "2 3", "3 1"],
        ["2 1", "0 1", "0 2"],
        ["3 1", "1 2", "2 3"],
        ["4 3", "1 2", "2 5"],
        ["9 1", "1 2", "2 9", "12 9"],
        ["100 3", "0 1", "1 2", "200 2"],
        ["7 7", "0 1", "1 2"],
        ["0 1 x", "1 2"],
    ],
)
def test_a_first_line_that_cannot_be_sizes_is_an_edge(written, lines):
    assert edges(written("\n".join(lines), "x.txt")) == {frozenset(map(int, line.split()[:2])) for line in lines}


@pytest.mark.parametrize("graph", [nx.karate_club_graph(), nx.gnm_random_graph(300, 2000, seed=2), nx.path_graph(500)])
def test_edge_lists_of_networkx_are_read_whichever_edge_is_first(written, graph, tmp_path):
    nx.write_edgelist(graph, tmp_path / "x.txt")
    lines = (tmp_path / "x.txt").read_text().splitlines(keepends=True)
    for k in range(0, len(lines), 1 + len(lines) // 60):
        path = written("".join(lines[k:] + lines[:k]), "x.txt")
        assert edges(path) == {frozenset(edge) for edge in graph.edges}


# vertices without edges


@pytest.mark.parametrize("ending", [".txt", ".el", ".edges.gz", ".csv", ".tsv", ".csv.xz"])
def test_vertices_without_edges_come_back_from_an_edge_list(tmp_path, ending):
    graph = Graph.from_edges([1, 2, 5], [2, 5, 1], 9)
    write(graph, tmp_path / "x.mtx")
    assert main(["convert", str(tmp_path / "x.mtx"), f"{tmp_path}/y{ending}"]) == 0
    again = read(f"{tmp_path}/y{ending}")
    assert again.equals(graph) and again.labels is None and again.n == 9
    assert main(["convert", f"{tmp_path}/y{ending}", f"{tmp_path}/z.mtx"]) == 0
    assert (tmp_path / "z.mtx").read_bytes() == (tmp_path / "x.mtx").read_bytes()


def test_labels_of_vertices_without_edges_come_back(tmp_path):
    graph = Graph.from_edges([0, 0], [1, 2], 5, labels=[10, 2**40, 7, 2**63 - 1, 5])
    write(graph, tmp_path / "x.txt")
    again = read(tmp_path / "x.txt")
    assert again.labels.tolist() == [5, 7, 10, 2**40, 2**63 - 1] and again.m == 2
    found, expected = (sorted(zip(each.labels, each.degrees, strict=True)) for each in (again, graph))
    assert found == expected


def test_a_vertex_with_only_a_loop_is_written_and_read(written, tmp_path):
    graph = read(written("5 5\n7 9\n", "x.txt"))
    write(graph, tmp_path / "y.txt")
    assert read(tmp_path / "y.txt").labels.tolist() == [5, 7, 9]
    with pytest.raises(GraphError, match=r"y\.csv: 1 vertices have no edge, .* a \.txt file has"):
        write(graph, tmp_path / "y.csv")
    assert not (tmp_path / "y.csv").exists()


def test_other_programs_read_what_we_write(tmp_path):
    graph = Graph.from_edges([1, 2, 5], [2, 5, 1], 9)
    expected = {(1, 2), (2, 5), (1, 5)}
    write(graph, tmp_path / "x.txt")
    assert set(nx.read_edgelist(tmp_path / "x.txt", nodetype=int).edges) == expected
    assert set(map(tuple, np.loadtxt(tmp_path / "x.txt", dtype=int).tolist())) == expected
    assert (tmp_path / "x.txt").read_text().startswith("# Nodes: 9 Edges: 3 ")
    write(graph, tmp_path / "x.csv")
    frame = pd.read_csv(tmp_path / "x.csv")
    assert list(frame)[:2] == ["source", "target"] and frame["source"].dtype == frame["target"].dtype == np.int64
    assert set(nx.from_pandas_edgelist(frame).edges) == expected
    with open(tmp_path / "x.csv", newline="") as file:
        assert {(int(row["source"]), int(row["target"])) for row in csv.DictReader(file)} == expected


@pytest.mark.parametrize(
    "text, n, labels",
    [
        ("# Nodes: 6 Edges: 2\n0\t1\n1\t3\n", 6, None),  # as SNAP and former versions write it
        ("# Nodes: 3 Edges: 2\n7\t8\n8\t9\n", 3, [7, 8, 9]),
        ("# Nodes: 2000000000 Edges: 99\n0\t1\n1\t3\n", 3, [0, 1, 3]),
        ("# Nodes: 99999999999 Edges: 99\n0\t1\n1\t3\n", 3, [0, 1, 3]),
        ("# Nodes: 4 Edges: 0\n", 4, None),
    ],
)
def test_headings_of_other_programs_are_used_if_they_fit(written, text, n, labels):
    graph = read(written(text, "x.txt"))
    assert (graph.n, graph.labels if labels is None else graph.labels.tolist()) == (n, labels)


# concatenated compressed streams

COMPRESS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TEXT = "".join(f"{a} {b}\n" for a, b in itertools.combinations(range(60), 2)).encode()  # 60 * 59 * 58 / 6 triangles


@pytest.fixture(params=[1, 7, files.BLOCK])
def piece(request, monkeypatch):
    monkeypatch.setattr(files, "BLOCK", request.param)


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize("cuts", [[], [0], [100], [7, 700, 7000], [0, 0, 5000, len(TEXT)]])
def test_all_streams_of_a_file_are_read(written, piece, ending, cuts):
    parts = [TEXT[a:b] for a, b in itertools.pairwise([0, *cuts, len(TEXT)])]
    path = written(b"".join(map(COMPRESS[ending], parts)), f"x.txt{ending}")
    assert tcgpu.count(read(path)) == 60 * 59 * 58 // 6
    assert bytes(files.contents(path)) == TEXT


@pytest.mark.parametrize(
    "ending, padding, valid",
    [
        (".xz", 4, True), (".xz", 8, True), (".xz", 4096, True), (".xz", 1, False), (".xz", 3, False),
        (".xz", 6, False), (".bz2", 1, False), (".bz2", 4, False), (".gz", 1, True), (".gz", 512, True),
    ],
)  # fmt: skip
@pytest.mark.parametrize("behind", [True, False])
def test_padding_after_a_stream(written, piece, ending, padding, valid, behind):
    """As the tools `xz`, `bzip2` and `gzip` take it: xz by fours, bzip2 none, gzip any."""
    one, other = COMPRESS[ending](TEXT[:700]), COMPRESS[ending](TEXT[700:])
    zeros = bytes(padding)
    path = written(one + zeros + other + zeros if behind else one + zeros + other, f"x.txt{ending}")
    if valid:
        assert tcgpu.count(read(path)) == 60 * 59 * 58 // 6
    else:
        with pytest.raises(GraphError, match=f"not a whole {ending} file"):
            read(path)


@pytest.mark.parametrize("ending", COMPRESS)
@pytest.mark.parametrize(
    "garbage", [b"x", b"\0x", bytes(4) + b"x", b"0 1\n", TEXT, b"\xfd7zXZ\0", b"BZh9", b"\x1f\x8b"]
)
def test_bytes_after_the_last_stream_are_refused(written, piece, ending, garbage):
    with pytest.raises(GraphError, match=f"not a whole {ending} file"):
        read(written(COMPRESS[ending](TEXT) + garbage, f"x.txt{ending}"))


@pytest.mark.parametrize("ending", COMPRESS)
def test_streams_truncated_anywhere_are_refused(written, ending):
    one = COMPRESS[ending](TEXT[:700])
    whole = one + COMPRESS[ending](TEXT[700:])
    for size in [*range(1, len(one)), *range(len(one) + 1, len(whole), 13), len(whole) - 1]:
        with pytest.raises(GraphError, match=f"not a whole {ending} file"):
            read(written(whole[:size], f"x.txt{ending}"))


def test_a_file_without_a_checksum_is_no_xz_file(written):
    with pytest.raises(GraphError, match=r"not a whole \.xz file"):
        read(written(lzma.compress(TEXT, lzma.FORMAT_ALONE), "x.txt.xz"))


def test_lines_are_read_the_same_without_a_compiler(written, monkeypatch):
    """Tables and what is none, in chunks of a few bytes, too: the same numbers, or the same words about the line."""
    random = np.random.default_rng(8)
    outcomes = []
    for _ in range(3000 if sampling.full else 300):
        width, separator, end = (
            random.integers(1, 4),
            random.choice([" ", "\t", ",", ";"]),
            random.choice(["\n", "\r\n"]),
        )
        lines = [separator.join(map(str, random.integers(0, 60, width))) for _ in range(random.integers(0, 9))]
        odd = ["", "# 5 6", "1  2", "3 4 5 6", "2,3", "1 x", "-1 2", f"7 {2**63}", " 1 2", '"1" 2', "1 2 0.5"]
        for line in random.choice(odd, random.choice([0, 0, 1, 2])):
            lines.insert(random.integers(0, len(lines) + 1), str(line))
        text = files.Text(written("".join(f"{line}{end}" for line in ["% edges", *lines])))
        low, count = int(random.choice([0, 1])), int(random.choice([30, 70, 2**33, 2**63]))
        settings = {
            "expected": "two numbers",
            "loose": bool(random.random() < 0.7),
            "widest": int(random.choice([0, 2])),
        }
        found = []
        for numba in (True, False):
            monkeypatch.setattr(scan, "in_numpy", lambda size, compiled=numba: not compiled)
            monkeypatch.setattr(scan, "CHUNK", int(random.choice([3, 20, 1 << 14])))
            try:
                u, v, entries, layout = scan.rows(text, len(f"% edges{end}"), low, count, **settings)
                found.append((u.tolist(), v.tolist(), u.dtype, entries, layout))
            except GraphError as error:
                found.append(str(error))
        assert found[0] == found[1], (lines, settings)
        outcomes.append(type(found[0]))
    assert 50 < outcomes.count(str) < len(outcomes) - 50


@pytest.mark.parametrize("end", [".txt", ".mtx", ".graph"])
def test_files_are_written_the_same_without_a_compiler(monkeypatch, tmp_path, end):
    graph = Graph.from_edges([0, 1, 2, 3, 3, 999], [1, 2, 0, 0, 1, 5], n=1001)
    written = []
    for numba in (True, False):
        monkeypatch.setattr(scan, "in_numpy", lambda size, compiled=numba: not compiled)
        write(graph, tmp_path / f"{numba}{end}")
        written.append((tmp_path / f"{numba}{end}").read_bytes())
    assert written[0] == written[1]
