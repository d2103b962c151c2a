"""Valid files: round trips through every format, variants of each format, and what other programs read and write."""

import bz2
import gzip
import itertools
import lzma
import mmap
import os
import subprocess
import sys
import threading
from functools import partial

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import tcgpu
from tcgpu import Graph, GraphError, read, write
from tcgpu.engines.native import set_threads
from tcgpu.formats import FORMATS, binary, read_edges, scan
from tcgpu.graph import Cleaned
from tcgpu.records import Rows

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
WHOLE = [".mtx", ".graph", ".npz", "/"]  # formats that carry a graph with all of its vertices
LISTS = [".txt", ".csv", ".tsv", ".el"]
ENDINGS = [ending + packed for ending in (*WHOLE[:-1], *LISTS) for packed in COMPRESS] + ["/"]

files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=25)


@st.composite
def multigraphs(draw, most_vertices=14, most_edges=40):
    """(u, v, n): records in any direction, with loops and duplicates, and vertices without any edge."""
    n = draw(st.integers(0, most_vertices))
    vertex = st.integers(0, max(n - 1, 0))
    pairs = draw(st.lists(st.tuples(vertex, vertex), max_size=most_edges if n else 0))
    return [u for u, _ in pairs], [v for _, v in pairs], n


@st.composite
def graphs(draw):
    u, v, n = draw(multigraphs())
    names = st.one_of(st.integers(0, 2**63 - 1), st.integers(0, 40))
    labels = draw(st.none() | st.lists(names, min_size=n, max_size=n, unique=True))
    return Graph.from_edges(u, v, n, labels=labels)


def some_graph(n, edges):
    u, v = np.random.default_rng(1).integers(0, n, (2, edges))
    return Graph.from_edges(u, v, n)


def same(one, other):
    """Whether two graphs have the same columns, whatever their labels."""
    return np.array_equal(one.col_ptr, other.col_ptr) and np.array_equal(one.row_idx, other.row_idx)


def labelled_edges(graph):
    labels = range(graph.n) if graph.labels is None else list(map(int, graph.labels))
    return {frozenset((labels[i], labels[j])) for i, j in zip(*graph.edges(), strict=True)}


@pytest.fixture
def written(tmp_path):
    """A function that puts text or bytes into a file of its own, and returns its path."""
    number = itertools.count()

    def written(name, content):
        folder = tmp_path / str(next(number))
        folder.mkdir()
        content = content if isinstance(content, bytes) else content.encode()
        (folder / name).write_bytes(content)
        return folder / name

    return written


# round trips


@pytest.mark.parametrize("ending", ENDINGS)
@files
@given(graph=graphs())
def test_every_format_reads_back_what_it_writes(tmp_path, ending, graph):
    path = f"{tmp_path}/a graph{ending}"
    table = ending.startswith((".csv", ".tsv"))
    if table and graph.labels is not None and 0 in graph.degrees:
        with pytest.raises(GraphError, match=r"a graph.*: \d+ vertices have no edge.* a \.txt file has"):
            write(graph, path)
        return
    write(graph, path)
    if ending.startswith(tuple(LISTS)):
        again = read(path)
        assert (again.n, again.m) == (graph.n, graph.m)
        if graph.labels is None:
            assert same(again, graph) and again.labels is None
            assert same(read(path, base=0, n=graph.n), graph)
        else:
            assert labelled_edges(again) == labelled_edges(graph)
            names = range(again.n) if again.labels is None else again.labels.tolist()
            assert sorted(names) == sorted(map(int, graph.labels))
    else:
        again = read(path)
        assert same(again, graph)
    if ending.startswith((".npz", "/")):
        assert again.equals(graph)
    assert again.cleaned == Cleaned()
    assert (again.name, again.order) == ("a graph", "natural")


@pytest.mark.parametrize("packed", COMPRESS)
@files
@given(multigraph=multigraphs())
def test_edges_in_text_are_cleaned_like_edges_in_arrays(written, packed, multigraph):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n)
    lines = "".join(f"{a}\t{b}\n" for a, b in zip(u, v, strict=True))
    lines = f"source\ttarget\n{lines}"  # so that the first line is no line of sizes
    again = read(written(f"x.txt{packed}", COMPRESS[packed](lines.encode() or b"\n")), n=n)
    assert again.equals(graph) and again.cleaned == graph.cleaned
    entries = "".join(f"{a + 1} {b + 1}\n" for a, b in zip(u, v, strict=True))
    matrix = f"%%MatrixMarket matrix coordinate pattern general\n{n} {n} {len(u)}\n{entries}"
    again = read(written(f"x.mtx{packed}", COMPRESS[packed](matrix.encode())))
    assert again.equals(graph) and again.cleaned == graph.cleaned


@files
@given(multigraph=multigraphs())
def test_metis_reports_loops_and_duplicates_as_dropped(written, multigraph):
    u, v, n = multigraph
    graph = Graph.from_edges(u, v, n)
    near = [[] for _ in range(n)]
    for a, b in zip(u, v, strict=True):
        near[a].append(b + 1)
        if a != b:
            near[b].append(a + 1)
    lines = "".join(" ".join(map(str, ends)) + "\n" for ends in near)
    again = read(written("x.graph", f"{n} {len(u)}\n{lines}"))
    assert again.equals(graph)
    listed_twice = sum(
        len(ends) - len(set(ends)) for v, ends in enumerate(near, 1) for ends in [[w for w in ends if w != v]]
    )
    assert again.cleaned == Cleaned(graph.cleaned.loops, listed_twice, 0)


@files
@given(
    rows=st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1, max_size=60),
    between=st.sampled_from(
        ["\n", "\r\n", "\n\n", "\n# text 1 2\n", "\n% text 1 2\n", "\n// 3 4\n", " 0.5 x\n", " 7\n", "\t\n"]
    ),
    separator=st.sampled_from([" ", "\t", ",", ";", " , ", "  ", "\t ;"]),
    first=st.sampled_from(
        ["source,target\n", "# Nodes\n\nsrc dst weight\n", "\ufeffu v\n", '"from";"to"\n', "  source target \n"]
    ),
    chunk=st.integers(1, 50),
    workers=st.integers(1, 3),
)
def test_edge_lists_in_any_layout_and_any_chunks(written, monkeypatch, rows, between, separator, first, chunk, workers):
    if len(between.split(" ")) > 1 and between[0] == " ":
        first = "source target one two three four five\n"
    text = first + "".join(f"{a}{separator}{b}{between}" for a, b in rows)
    text = text[: len(text) if between[0] == " " else -len(between)]  # the last line without its end
    path = written("x.edgelist", text)
    monkeypatch.setattr(scan, "CHUNK", chunk)
    set_threads(workers)
    try:
        u, v, n, labels = read_edges(path, base=0)
    finally:
        set_threads(None)
    assert list(zip(u.tolist(), v.tolist(), strict=True)) == rows
    assert (n, labels) == (max(map(max, rows)) + 1, None)


@files
@given(graph=graphs(), chunk=st.integers(1, 50), comments=st.booleans())
def test_metis_files_in_any_chunks(written, tmp_path, monkeypatch, graph, chunk, comments):
    write(graph, tmp_path / "x.graph")
    text = (tmp_path / "x.graph").read_text()
    path = written("x.graph", "%\n" + text.replace("\n", "\n% 1 2 3\n") if comments else text)
    monkeypatch.setattr(scan, "CHUNK", chunk)
    assert same(read(path), graph)


# edge lists


@pytest.mark.parametrize(
    "text, n, labels",
    [
        ("0 1\n1 2\n", 3, None),
        ("1 2\n2 3\n", 3, [1, 2, 3]),
        ("7 9\n9 1000000000000\n", 3, [7, 9, 10**12]),
        ("0 2147483648\n1 2\n", 4, [0, 1, 2, 2**31]),
        ("9223372036854775807 0\n", 2, [0, 2**63 - 1]),
        ("0005 6\n", 2, [5, 6]),
    ],
)
def test_without_base_the_vertices_are_those_that_occur(written, text, n, labels):
    graph = read(written("x.txt", text))
    assert graph.n == n
    assert graph.labels is None if labels is None else graph.labels.tolist() == labels


@files
@given(
    ids=st.lists(st.tuples(*[st.integers(0, 2**62) | st.integers(1000, 9000)] * 2), min_size=1, max_size=50),
    spread=st.sampled_from([2**62, 10**6, 300, 9]),
)
def test_vertex_numbers_with_gaps_are_relabelled_in_ascending_order(written, ids, spread):
    ids = [(a % spread, b % spread) for a, b in ids]
    u, v, n, labels = read_edges(written("x.el", "source target\n" + "".join(f"{a} {b}\n" for a, b in ids)))
    assert u.dtype == v.dtype == np.int32
    occurring = sorted(set(itertools.chain(*ids)))
    assert (n, list(range(n)) if labels is None else labels.tolist()) == (len(occurring), occurring)
    assert [(occurring[a], occurring[b]) for a, b in zip(u, v, strict=True)] == ids


@pytest.mark.parametrize("workers", [1, 3])
@pytest.mark.parametrize("gap", [1, 7, 10**9])
def test_relabelling_of_many_edges_on_all_cores(written, workers, gap):
    ids = np.random.default_rng(1).integers(5, 30_000, (60_000, 2)) * gap
    path = written("x.csv", pd.DataFrame(ids).to_csv(header=False, index=False))
    set_threads(workers)
    try:
        u, v, n, labels = read_edges(path)
    finally:
        set_threads(None)
    expected = np.unique(ids)
    assert n == expected.size and np.array_equal(labels, expected)
    assert np.array_equal(labels[np.stack((u, v), axis=1)], ids)


def test_base_and_n_keep_vertices_without_edges(written):
    path = written("x.txt", "1 2\n2 5\n")
    assert read(path, base=0).n == 6
    assert read(path, base=1).n == 5
    assert read(path, n=9).n == 9
    assert read(path, base=1, n=5).n == 5
    assert read(path, base=1).edges()[0].tolist() == [1, 4]
    assert read(path, n=9).labels is None


def test_weights_in_an_edge_list_are_ignored(written):
    assert read(written("x.csv", "0,1,0\n1,2,-3.5e4\n2,0,nan,more\n")).m == 3


def test_an_edge_list_without_edges_needs_n(written):
    for text in ("# nothing\n", "source,target\n", "\n\n"):
        path = written("x.csv", text)
        with pytest.raises(GraphError, match="no edge"):
            read(path)
        assert (read(path, n=4).n, read(path, n=0).n) == (4, 0)


def test_labels_that_are_no_numbers_are_left_out_of_an_edge_list(tmp_path):
    graph = Graph.from_edges([0, 1], [1, 2], labels=["a", "b", "c"])
    write(graph, tmp_path / "x.txt")
    assert same(read(tmp_path / "x.txt"), graph)
    write(Graph.from_edges([0, 1], [1, 2], labels=[-1, 5, 6]), tmp_path / "x.txt")
    assert same(read(tmp_path / "x.txt"), graph)


@pytest.mark.parametrize("labels", [[-5, 3, 8], [7, 7, 8], ["a", "b", "c"], np.array([2**64 - 1, 1, 2], np.uint64)])
def test_labels_that_are_left_out_are_told_about_and_kept_elsewhere(tmp_path, caplog, labels):
    graph = Graph.from_edges([0, 1], [1, 2], labels=labels)
    for name in ("x.npz", "x/"):
        write(graph, f"{tmp_path}/{name}")
        assert read(f"{tmp_path}/{name}").equals(graph)
    assert not caplog.text
    for name in ("x.txt", "x.csv"):
        write(graph, tmp_path / name)
        assert f"{name}: the file has vertex numbers from 0" in caplog.text and caplog.records[-1].name == "tcgpu"


IDS = [2**31 - 1, 2**31, 2**53 + 1, 2**63 - 1]


@pytest.mark.parametrize("name", ["x.txt", "x.csv", "x.tsv.gz", "x.npz", "x/", "x.npy", "x.parquet"])
def test_ids_of_64_bits_come_back_whole(tmp_path, caplog, name):
    """Also in what is counted by them: a triangle of the last three, the second leads to the first."""
    ends = np.array([(IDS[a], IDS[b]) for a, b in ((1, 0), (1, 2), (3, 2), (3, 1))])
    path = f"{tmp_path}/{name}"
    if name == "x.npy":
        np.save(path, ends)
    elif name == "x.parquet":
        pd.DataFrame(ends, columns=["source", "target"]).to_parquet(path)
    else:
        write(Graph.from_edges(ends, relabel=True), path)
    graph = read(path)
    assert (graph.ids.dtype, graph.ids.tolist()) == (np.int64, IDS) and not caplog.text
    assert [graph.ids[row].tolist() for rows in tcgpu.list_triangles(graph) for row in rows] == [IDS[1:]]
    for engine, order in itertools.product(("cpu", "sim"), ("natural", "degree")):
        ordered = graph.ordered(order)
        of_vertex = zip(ordered.ids.tolist(), tcgpu.triangles(ordered, engine=engine).tolist(), strict=True)
        assert dict(of_vertex) == {id: int(id != IDS[0]) for id in IDS}
        ends = [frozenset(ordered.ids[[u, v]].tolist()) for u, v in zip(*ordered.edges(), strict=True)]
        of_edge = zip(ends, tcgpu.support(ordered, engine=engine).tolist(), strict=True)
        assert dict(of_edge) == {pair: int(IDS[0] not in pair) for pair in ends}
        assert tcgpu.count(ordered, engine=engine) == 1 and len(ends) == 4


def test_paths_of_bytes(tmp_path):
    graph = Graph.from_edges([0], [1])
    for name in (b"x.txt", b"x.npz", b"\xff.mtx", b"x/"):
        path = os.fsencode(tmp_path) + b"/" + name
        write(graph, path)
        assert read(path).equals(graph)
    Rows([{"x": 1}]).write_csv(os.fsencode(tmp_path / "x.csv"))
    assert Rows.read_csv(os.fsencode(tmp_path / "x.csv")) == [{"x": 1}]
    for verb in (read, partial(write, graph)):
        with pytest.raises(GraphError, match="zero byte"):
            verb("x\0.txt")


def test_an_archive_is_read_from_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.npz")
    graph = Graph.from_edges([0, 1], [1, 2])
    writer = threading.Thread(target=write, args=(graph, tmp_path / "pipe.npz"))
    writer.start()
    assert read(tmp_path / "pipe.npz").equals(graph)
    writer.join()


def test_pandas_reads_what_we_write(tmp_path):
    graph = some_graph(300, 2000)
    write(graph, tmp_path / "x.csv")
    frame = pd.read_csv(tmp_path / "x.csv")
    assert list(frame) == ["source", "target"]
    assert Graph.from_edges(frame["source"], frame["target"], graph.n).equals(graph)


# Matrix Market


@files
@given(
    multigraph=multigraphs(),
    field=st.sampled_from(["pattern", "integer", "real", "complex"]),
    symmetry=st.sampled_from(["general", "symmetric", "skew-symmetric", "hermitian"]),
    zeros=st.booleans(),
)
def test_matrix_market_as_scipy_reads_it(written, multigraph, field, symmetry, zeros):
    u, v, n = multigraph
    if symmetry != "general":
        strict = {(max(a, b), min(a, b)) for a, b in zip(u, v, strict=True) if a != b}
        u, v = [a for a, _ in strict], [b for _, b in strict]
    else:
        u, v = zip(*set(zip(u, v, strict=True)), strict=True) if u else ([], [])
    value = {"pattern": "", "integer": " -3", "real": " 2.5e-3", "complex": " 0 1"}[field]
    zero = {"pattern": "", "integer": " 0", "real": " -0.0E5", "complex": " 0.0 0"}[field]
    lines = "".join(f"{a + 1} {b + 1}{zero if zeros and a % 3 == 0 else value}\n" for a, b in zip(u, v, strict=True))
    path = written("x.mtx", f"%%MatrixMarket Matrix coordinate {field} {symmetry}\n% 1\n\n{n} {n} {len(u)}\n{lines}")
    if (
        field == "pattern"
        and symmetry in ("skew-symmetric", "hermitian")
        or field != "complex"
        and symmetry == "hermitian"
    ):
        expected = Graph.from_edges(u, v, n) if field == "pattern" or not zeros else None
    else:
        expected = Graph.from_scipy(scipy.io.mmread(path)) if n else Graph.from_edges([], [], 0)
    if expected is not None:
        assert same(read(path), expected)


def test_scipy_reads_the_matrix_we_write(tmp_path):
    graph = some_graph(300, 2000)
    write(graph, tmp_path / "x.mtx")
    assert (scipy.io.mmread(tmp_path / "x.mtx") != graph.to_scipy()).nnz == 0


@pytest.mark.parametrize("value", ["1", "-1", "+1.5", ".5", "5.", "1e300", "1E-5", "nan", "-inf", "Infinity", "0.01"])
def test_values_that_make_an_edge(written, value):
    header = "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n"
    assert read(written("x.mtx", f"{header}2 1 {value}\n")).m == 1


@pytest.mark.parametrize("value", ["0", "-0", "0.0", ".0", "0e5", "+00.00E+01"])
def test_a_value_of_zero_is_no_edge(written, value):
    header = "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n"
    assert read(written("x.mtx", f"{header}2 1 {value}\n")).m == 0


# METIS


@pytest.mark.parametrize(
    "text",
    [
        "3 2\n2\n1 3\n2\n",
        "3 2\n2\n1 3\n2",
        "3 2 0\r\n 2 \r\n\t1  3\r\n2\r\n\r\n",
        "% a comment\n3 2 1\n2 7\n1 7 3 9\n% another\n2 9\n",
        "3 2 001\n2 7.5\n1 7.5 3 9\n2 9\n",
        "3 2 10\n5 2\n5 1 3\n5 2\n",
        "3 2 011 2\n5 5 2 7\n5 5 1 7 3 9\n5 5 2 9\n",
        "3 2 100\n4 2\n4 1 3\n4 2\n",
        "3 2 111 1\n4 5 2 7\n4 5 1 7 3 9\n4 5 2 9\n",
        "3 2 10\n5 2\n5 1 3\n5 2\n\n\n",
        "3 2 111 1\n4 5 2 7\n4 5 1 7 3 9\n4 5 2 9\n \n%\n\n",
    ],
)
def test_metis_with_weights_of_every_kind(written, text):
    graph = read(written("x.metis", text))
    assert (graph.n, labelled_edges(graph)) == (3, {frozenset((0, 1)), frozenset((1, 2))})
    assert graph.cleaned == Cleaned()


def test_an_empty_line_of_metis_is_a_vertex_without_neighbours(written):
    for text in ("4 1\n\n4\n\n2\n", "4 1\n2\n1\n\n\n", "4 1\n2\n1\n\n"):
        graph = read(written("x.graph", text))
        assert (graph.n, graph.m) == (4, 1)


def test_read_edges_of_metis_gives_both_directions(written):
    u, v, n, labels = read_edges(written("x.graph", "3 2\n2\n1 3\n2\n"))
    assert (u.tolist(), v.tolist(), n, labels) == ([0, 1, 1, 2], [1, 0, 2, 1], 3, None)


# arrays


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("compressed", [True, False])
def test_a_matrix_that_scipy_saved(tmp_path, kind, compressed):
    matrix = sp.random_array((40, 40), density=0.1, format=kind, rng=np.random.default_rng(1))
    matrix.data[:5] = 0
    sp.save_npz(tmp_path / "x.npz", matrix, compressed=compressed)
    graph = read(tmp_path / "x.npz")
    assert graph.equals(Graph.from_scipy(matrix)) and graph.cleaned == Graph.from_scipy(matrix).cleaned


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
def test_a_saved_matrix_is_the_graph_of_the_matrix_with_entries_stored_twice(tmp_path, kind):
    matrix = sp.coo_array(([1, -1, 1, 1], ([0, 0, 1, 1], [1, 1, 2, 2])), shape=(3, 3))
    if kind != "coo":  # the same entries, not summed up
        matrix = {"csr": sp.csr_array, "csc": sp.csc_array}[kind](
            ([1, -1, 1, 1], [1, 1, 2, 2], [0, 2, 4, 4]), shape=(3, 3)
        )
    sp.save_npz(tmp_path / "x.npz", matrix)
    graph = read(tmp_path / "x.npz")
    assert list(zip(*graph.edges(), strict=True)) == [(2, 1)] and graph.equals(Graph.from_scipy(matrix))


@pytest.mark.parametrize(
    "kind, name", [("coo", "row"), ("coo", "col"), ("csr", "indices"), ("csr", "indptr"), ("csr", "shape")]
)
@pytest.mark.parametrize("shift", [0.0, 0.9])
def test_saved_matrices_with_fractional_coordinates_are_refused(tmp_path, kind, name, shift):
    sp.save_npz(tmp_path / "x.npz", sp.csr_array(np.eye(4, k=1)).asformat(kind))
    with np.load(tmp_path / "x.npz") as archive:
        arrays = dict(archive)
    np.savez(tmp_path / "x.npz", **arrays | {name: arrays[name] + shift})
    with pytest.raises(GraphError, match=rf"x\.npz: {name} must hold whole numbers, not float64"):
        read(tmp_path / "x.npz")


def test_archives_carry_labels_of_one_kind(tmp_path):
    for labels in (["a", "b", "çé"], [0.5, 1.5, 2.5], [-1, 5, 7]):
        graph = Graph.from_edges([0, 1], [1, 2], labels=labels)
        write(graph, tmp_path / "x.npz")
        assert read(tmp_path / "x.npz").equals(graph)
    for labels in (["a", 1, 2], [(0, 1), (0, 2), (1, 1)], ["a\0", "b", "c"], [None, "a", "b"]):
        with pytest.raises(GraphError, match="labels"):
            write(Graph.from_edges([0, 1], [1, 2], labels=labels), tmp_path / "x.npz")
        assert read(tmp_path / "x.npz").equals(graph)


def base_of(array):
    while isinstance(array, np.ndarray):
        array = array.base
    return array.obj if isinstance(array, memoryview) else array


def test_a_folder_is_mapped_and_never_changed(tmp_path, monkeypatch):
    monkeypatch.setattr(binary, "MAX_COPIED", 0)
    graph = some_graph(300, 2000)
    write(graph, tmp_path / "g", format="folder")
    again = read(tmp_path / "g")
    assert isinstance(base_of(again.col_ptr), mmap.mmap) and isinstance(base_of(again.row_idx), mmap.mmap)
    assert tcgpu.count(again) == tcgpu.count(graph)
    with pytest.raises(ValueError, match="read-only"):
        again.row_idx[:] = 0


def test_a_folder_may_be_written_over_by_the_graph_in_it(tmp_path):
    graph = some_graph(300, 2000)
    write(graph, f"{tmp_path}/g/")
    write(read(tmp_path / "g"), tmp_path / "g")
    assert read(tmp_path / "g").equals(graph)
    assert os.listdir(tmp_path) == ["g"]


# names and files


def test_the_ending_selects_the_format_in_any_case(tmp_path):
    graph = Graph.from_edges([0, 0], [1, 2])
    for format in (format for format in FORMATS.values() if format.write):
        for ending in format.endings:
            write(graph, tmp_path / f"Some.Name{ending.upper()}.GZ")
            again = read(tmp_path / f"Some.Name{ending.upper()}.GZ")
            assert again.equals(graph) and again.name == "Some.Name"


def test_an_unknown_ending_is_refused_with_the_list(tmp_path):
    with pytest.raises(GraphError, match=r"'\.dat' names no format.*mtx: \.mtx.*metis: \.graph .*\.gz \.bz2 \.xz"):
        write(Graph.from_edges([0], [1]), tmp_path / "x.dat")
    with pytest.raises(GraphError, match="no format 'exotic'; there are mtx, edges"):
        write(Graph.from_edges([0], [1]), tmp_path / "x.dat", format="exotic")
    assert os.listdir(tmp_path) == []
    write(Graph.from_edges([0], [1]), tmp_path / "x.dat", format="metis")
    assert read(tmp_path / "x.dat", format="metis").name == "x.dat"


def test_the_same_graph_is_the_same_bytes(tmp_path):
    graph = some_graph(50, 100)
    for ending in (".mtx.gz", ".txt.bz2", ".graph.xz", ".npz"):
        for name in "ab":
            write(graph, tmp_path / (name + ending))
        assert (tmp_path / f"a{ending}").read_bytes() == (tmp_path / f"b{ending}").read_bytes()


def test_text_written_in_blocks_is_the_same(tmp_path, monkeypatch):
    graph = some_graph(50, 200)
    write(graph, tmp_path / "a.graph")
    write(graph, tmp_path / "a.txt")
    monkeypatch.setattr(scan, "BLOCK", 7)
    write(graph, tmp_path / "b.graph")
    write(graph, tmp_path / "b.txt")
    assert (tmp_path / "a.graph").read_bytes() == (tmp_path / "b.graph").read_bytes()
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "link.txt").symlink_to(tmp_path / "target.txt")
    write(Graph.from_edges([0], [1]), tmp_path / "link.txt")
    assert (tmp_path / "link.txt").is_symlink() and read(tmp_path / "target.txt").m == 1


def test_through_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.txt")
    graph = Graph.from_edges([0, 1], [1, 2])
    writer = threading.Thread(target=write, args=(graph, tmp_path / "pipe.txt"))
    writer.start()
    assert read(tmp_path / "pipe.txt").equals(graph)
    writer.join()


def test_columns_are_not_read_as_raw_edges(tmp_path):
    write(Graph.from_edges([0], [1]), tmp_path / "x.npz")
    with pytest.raises(GraphError, match="holds columns"):
        read_edges(tmp_path / "x.npz")


def test_the_benchmark_of_reading_runs_and_its_readers_agree(root, tmp_path):
    command = [
        sys.executable,
        "benchmarks/parse.py",
        "--megabytes",
        "1",
        "--repeats",
        "1",
        "--output",
        tmp_path / "x.csv",
    ]
    subprocess.run(command, cwd=root, check=True, capture_output=True, env={**os.environ, "PYTHONPATH": str(root)})
    record = pd.read_csv(tmp_path / "x.csv")
    assert set(record["reader"]) == {"pandas", "SciPy", "tcgpu, edges", "tcgpu, Graph"}
    assert (record["seconds"] > 0).all()
