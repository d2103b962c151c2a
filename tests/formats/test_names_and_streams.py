"""Edge lists of names, pairs in `.npy` and Parquet, `.zst`, and open files."""

import bz2
import gzip
import io
import lzma
import sys

import numpy as np
import pytest

import tcgpu
from tcgpu import FormatError, Graph, GraphError, read, write
from tcgpu.__main__ import main
from tcgpu.formats import scan

HOUSE = [("Ann", "Bo"), ("Bo", "Cy"), ("Cy", "Ann"), ("Cy", "Zoé D")]


def edges(graph):
    labels = range(graph.n) if graph.labels is None else list(graph.labels)
    return {frozenset((labels[i], labels[j])) for i, j in zip(*graph.edges(), strict=True)}


@pytest.fixture
def reads(tmp_path):
    """A function that reads the graph in a text."""

    def reads(text, name="x.csv", **keywords):
        (tmp_path / name).write_text(text, encoding="utf-8")
        return read(tmp_path / name, **keywords)

    return reads


# names


@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
@pytest.mark.parametrize("more, columns", [("", None), ("{},{}\n", ("source", "target")), ("# {} {}\n\n", None)])
def test_names_between_any_marks(reads, mark, more, columns, caplog):
    head = more.format("source", "target").replace(",", mark)
    lines = [f'{u}{mark}"{v}"\n' for u, v in HOUSE]
    graph = reads(head + "".join(lines), relabel=True, columns=columns)
    assert list(graph.labels) == ["Ann", "Bo", "Cy", "Zoé D"]
    assert edges(graph) == {frozenset(pair) for pair in HOUSE}
    assert not caplog.records
    with pytest.raises(FormatError, match="; relabel=True takes names of vertices, too$"):
        reads(head + "".join(lines))


@pytest.mark.parametrize(
    "text, columns, expected",
    [
        ("id,source,target\n1,a,b\n2,b,c\n", None, "ab bc"),
        ("w,to,from\nx,a,b\ny,b,c\n", None, "ab bc"),
        ("w,one,other\n1,a,b\n2,b,c\n", ("other", "one"), "ab bc"),
        ("1,a,b\n2,b,c\n", (1, 2), "ab bc"),
        ("a,b,0.5\nb,c,1\n", None, "ab bc"),
        ("1,2\nx,1\n", None, "12 1x"),
        ("a,b\n", None, "ab"),
    ],
)
def test_columns_of_names(reads, text, columns, expected):
    assert edges(reads(text, relabel=True, columns=columns)) == set(map(frozenset, expected.split()))


@pytest.mark.parametrize(
    "text, says",
    [
        ("a,b,x\nb,c,y\n", r"line 1: which two columns are the ends of an edge\? columns=\(0, 1\)"),
        ("a,b\nb,c,d\n", "line 2: expected 2 columns with the names of two vertices"),
        ("a,b\n,c\n", "line 2: expected 2 columns"),
        ('a,b\n"b,c\n', "line 2: expected 2 columns"),
        ("a,b\n#b,c\n", "line 2: .*names like comments into double quotes"),
        ("a\nb\n", "line 1: expected 1 columns with the names of two"),
        ("a,b\0\n", "line 1: expected 2 columns"),
        ("1,2\n3,-4\n", "line 2: vertex numbers are not negative"),
        ("1,2\n3\n", "line 2: expected 2 columns"),
        ("1 2 3\n2 1 3\n3 1 2\n", "adjacency list"),
        ("# nothing\n", "no edge in the whole file"),
    ],
)
def test_lines_that_name_no_two_vertices_are_refused(reads, text, says):
    with pytest.raises(FormatError, match=says):
        reads(text, relabel=True)


def test_quoted_names_may_look_like_comments(reads):
    assert edges(reads('"#a",b\n"#c",b\n', relabel=True)) == {frozenset(("#a", "b")), frozenset(("#c", "b"))}


@pytest.mark.parametrize(
    "text, says",
    [
        ("person,friend\na,b\nb,c\n", "the first line is read as an edge; if it names the columns, say columns="),
        ("1,2\nx,1\n", "so all ends of edges are read as names"),
    ],
)
def test_doubts_about_names_are_told(reads, text, says, caplog):
    reads(text, relabel=True)
    assert [says in record.getMessage() for record in caplog.records] == [True]


def test_bytes_that_are_no_text_are_refused(tmp_path):
    (tmp_path / "x.txt").write_bytes(b"a \xff\n")
    with pytest.raises(FormatError, match="line 1: names of vertices are text in UTF-8"):
        read(tmp_path / "x.txt", relabel=True)


# pairs


def test_pairs_that_numpy_saved(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.array([[5, 9], [9, 12], [12, 5]], order="F"))
    assert (read(path).n, read(path).ids.tolist()) == (3, [5, 9, 12])
    for keywords, n in ({"relabel": True}, 3), ({"relabel": False}, 13), ({"base": 1}, 12), ({"n": 20}, 20):
        assert (read(path, **keywords).n, tcgpu.count(read(path, **keywords))) == (n, 1)
    with pytest.raises(GraphError, match=r"x\.npy: columns= is for edge lists"):
        read(path, columns=(0, 1))
    with pytest.raises(FormatError, match=r"x\.npy: edge 0 is \(5, 9\); with n = 6"):
        read(path, n=6)
    with pytest.raises(GraphError, match=r"y\.npy: a NumPy array of pairs is only read; \.npz"):
        write(read(path), tmp_path / "y.npy")


@pytest.mark.parametrize(
    "array", [np.zeros((2, 5), int), np.zeros(4, int), np.zeros((2, 2, 2), int), np.array([{}, {}])]
)
def test_other_arrays_are_refused(tmp_path, array):
    np.save(tmp_path / "x.npy", array)
    with pytest.raises(FormatError, match=r"x\.npy: (not an array of shape \(edges, 2\)|u must be one-dimensional)"):
        read(tmp_path / "x.npy")


def test_tables_in_parquet(tmp_path):
    pyarrow = pytest.importorskip("pyarrow", reason="PyArrow, of the extra files, reads Parquet")
    from pyarrow import parquet

    path = tmp_path / "x.parquet"
    u, v = map(list, zip(*HOUSE, strict=True))
    parquet.write_table(pyarrow.table({"w": [5, 9, 12, 5], "source": u, "target": v, "t": [9, 12, 5, 5]}), path)
    assert edges(read(path)) == {frozenset(pair) for pair in HOUSE}
    for columns in ("w", "t"), (0, 3):
        assert read(path, columns=columns).ids.tolist() == [5, 9, 12]
        assert read(path, columns=columns, base=1).n == 12
    with open(path, "rb") as file:
        assert read(file).equals(read(path))
    for columns in ("w", "x"), (0, 9):
        with pytest.raises(FormatError, match=r"x\.parquet: not a Parquet file with such columns"):
            read(path, columns=columns)
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(FormatError, match=r"x\.parquet: not a Parquet file"):
        read(path)


def test_missing_packages_are_named_with_their_extra(tmp_path, monkeypatch):
    for package, name in ("pyarrow", "x.parquet"), ("zstandard", "x.txt.zst"):
        monkeypatch.setitem(sys.modules, package, None)
        (tmp_path / name).write_bytes(b"0 1\n")
        with pytest.raises(tcgpu.TcgpuError, match=rf"needs {package}, .*pip install 'tcgpu\[files\]'"):
            read(tmp_path / name)


@pytest.mark.parametrize("ending", [".txt", ".mtx", ".npz"])
def test_zstandard(tmp_path, ending):
    zstandard = pytest.importorskip("zstandard", reason="zstandard, of the extra files, reads .zst")
    path, graph = tmp_path / f"x{ending}.zst", tcgpu.generate.mesh(4, 5)
    write(graph, path)
    assert read(path).equals(graph)
    assert zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes())
    content = path.read_bytes()
    for damaged in content[:-3], content + b"more", b"none":
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"not a whole \.zst file"):
            read(path)


# open files


@pytest.mark.parametrize("pack", [bytes, gzip.compress, bz2.compress, lzma.compress])
def test_files_are_read_from_where_they_are(tmp_path, pack):
    content = pack(b"0 1\n1 2\n2 0\n")
    (tmp_path / "x.txt.gz").write_bytes(content)
    assert tcgpu.count(read(io.BytesIO(content))) == 1
    with open(tmp_path / "x.txt.gz", "rb") as file:
        assert (read(file).name, file.read()) == ("x", b"")


def test_files_of_text_and_of_unpacked_bytes(tmp_path):
    with gzip.open(tmp_path / "x.csv.gz", "wt", encoding="utf-8") as file:
        file.write("a,b\nb,c\nc,a\n")
    for mode in "rt", "rb":
        with gzip.open(tmp_path / "x.csv.gz", mode) as file:
            assert tcgpu.count(read(file, relabel=True)) == 1
    with pytest.raises(FormatError, match="^<StringIO>, line 2: expected two vertex numbers; found '1'"):
        read(io.StringIO("0 1\n1\n"))
    assert read(io.StringIO("0 1\n")).name is None


@pytest.mark.parametrize("format", ["edges", "mtx", "metis", "npz"])
@pytest.mark.parametrize("make", [io.BytesIO, io.StringIO])
def test_every_format_goes_to_an_open_file(format, make):
    graph, file = Graph.from_edges([0, 1, 2], [1, 2, 0], 5), make()
    if (format, make) == ("npz", io.StringIO):
        with pytest.raises(GraphError, match="<StringIO>: a NumPy archive.* goes to a file of bytes"):
            write(graph, file, format)
        return
    write(graph, file, format)
    file.seek(0)
    assert read(file, format).equals(graph)


def test_a_folder_is_no_open_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(GraphError, match="a folder of memory-mapped arrays goes to a path"):
        write(tcgpu.generate.clique(3), io.BytesIO(), "folder")
    (tmp_path / "<BytesIO>").mkdir()  # the name that an open file is called by
    assert read(io.BytesIO(b"0 1\n")).m == 1
    assert [entry.name for entry in tmp_path.iterdir()] == ["<BytesIO>"]


@pytest.mark.parametrize("compiled", [True, False])
def test_reading_tells_how_far_it_is(tmp_path, monkeypatch, compiled):
    monkeypatch.setattr(scan, "in_numpy", lambda size: not compiled)
    monkeypatch.setattr(scan, "CHUNK", 1 << 14)
    (tmp_path / "x.txt").write_text("".join(f"{k} {k + 1}\n" for k in range(300_000)))
    shares = []
    read(tmp_path / "x.txt", progress=lambda done, total: shares.append((done, total)))
    assert {total for _, total in shares} == {1.0}
    assert sorted(shares) == shares and shares[-1][0] == 1.0
    assert len({done for done, _ in shares if 0.1 < done < 0.5}) > 2  # while the text is parsed


# the shell


class Standard(io.StringIO):
    """A standard stream of bytes in place of the process's."""

    def __init__(self, content):
        super().__init__()
        self.buffer = io.BytesIO(content)


def test_the_shell_takes_names_and_traces_from_stdin(tmp_path, capsys, monkeypatch):
    (tmp_path / "x.csv").write_text("a,b\nb,c\nc,a\n")
    assert main(["count", str(tmp_path / "x.csv"), "--relabel", "--per-vertex"]) == 0
    assert capsys.readouterr().out == "a\t1\nb\t1\nc\t1\n"
    assert main(["count", str(tmp_path / "x.csv")]) == 2
    assert capsys.readouterr().err.splitlines()[-1].endswith("; --relabel takes names of vertices, too")
    tcgpu.trace(tcgpu.generate.clique(4), "naive").save(tmp_path / "x.trace")
    monkeypatch.setattr(sys, "stdin", Standard((tmp_path / "x.trace").read_bytes()))
    assert main(["trace", "-", "--open"]) == 0
    assert capsys.readouterr().out.startswith("naive traced on 6 edges: 4 triangles")
