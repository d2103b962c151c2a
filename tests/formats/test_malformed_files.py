"""Malformed files: each is refused with its name, its line and what was expected, or reads as a valid graph."""

import io
import json
import pickle
import re
import shutil
import tracemalloc
import zipfile
from contextlib import contextmanager

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tcgpu import FormatError, Graph, GraphError, read, write
from tcgpu.formats import scan

PATTERN = "%%MatrixMarket matrix coordinate pattern symmetric\n"
REAL = "%%MatrixMarket matrix coordinate real general\n"

files = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


@pytest.fixture
def refused(tmp_path):
    """A function that writes a file and returns the error of reading it, without the folder's name."""

    def refused(name, content, **keywords):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        with pytest.raises(GraphError if "base" in keywords else FormatError) as refusal:
            read(path, **keywords)
        message = str(refusal.value)
        assert message.startswith(str(path)) and "\n" not in message
        return message.removeprefix(str(path))

    return refused


@contextmanager
def little_memory(limit=4 << 20):
    """Fail if the block has more than `limit` bytes allocated at any time."""
    tracemalloc.start()
    try:
        yield
        assert tracemalloc.get_traced_memory()[1] < limit
    finally:
        tracemalloc.stop()


# text: (name, content, line, part of the message)

EDGES = [
    ("", 1, "empty"),
    ("0 1\n1\n", 2, "expected two vertex numbers; found '1'"),
    ("0 1\n1 two\n", 2, "expected two vertex numbers; found '1 two'"),
    ("# x\n\n0 1\n2 -1\n", 4, "not negative; found '2 -1'"),
    ("-2 1\n", 1, "not negative"),
    ("0 1.5\n", 1, "expected two vertex numbers"),
    ("0x1 2\n", 1, "expected two vertex numbers"),
    ("1e3 2\n", 1, "expected two vertex numbers"),
    ("1,,2\n", 1, "expected two vertex numbers"),
    (",1,2\n", 1, "expected two vertex numbers"),
    ("12\n34\n", 1, "expected two vertex numbers"),
    ("0 1\r1 2\r", 1, "expected two vertex numbers"),
    ("0 1\n/1 2\n", 2, "expected two vertex numbers"),
    ("0 1\n3 9223372036854775808\n", 2, "vertex numbers here are 0 to 9223372036854775807"),
    ("0 99999999999999999999999999\n", 1, "vertex numbers here are 0 to 9223372036854775807"),
    ("0 18446744073709551617\n", 1, "vertex numbers here are 0 to 9223372036854775807"),
    ("source,target\n0,1\nsource,target\n", 3, "expected two vertex numbers"),
    ("source\n0,1\n", 1, "expected two vertex numbers"),
    ("just some prose\n", 1, "does not say which two are the ends of an edge"),
    ("source,target\n", 1, "no edge in the whole file"),
    ("0 1\n1 2 \x00\x01\x02\n", 2, "other bytes"),
    ("0 1\n\x00\x00\n", 2, "other bytes"),
    ("0 1\n1 2 5 \x01\n", 2, "other bytes"),
    ('0,1\n"1,2\n', 2, "expected two vertex numbers"),
    ('id,source,target\n0,"1,2\n', 2, "expected two vertex numbers"),
    ("id,source,target\n0,1,2\n1,1\n", 3, "expected two vertex numbers"),
    ("id,source,target\n0,1,2\n1,1,-2\n", 3, "not negative"),
    ("id,source,target\n0,1,2\n1,1,2.0\n", 3, "expected two vertex numbers"),
    ("# Nodes: 9 Edges: 2 (tcgpu: vertices from 0)\n0\t1\n", 1, "promises 2 edges, the file holds 1"),
    ("# Nodes: 9 Edges: 1 (tcgpu: vertices from 0)\n0\t1", 2, "the last line is cut off"),
    ("# Nodes: 9 Edges: 1 (tcgpu: vertices from 0)\n0\t9\n", 1, "promises 9 vertices from 0 on"),
    ("# Nodes: 9999999999 Edges: 1 (tcgpu: vertices from 0)\n0\t9\n", 1, "more than 2147483647"),
    ("# Nodes: 3 Edges: 1 (tcgpu: labels)\n5\t9\n", 1, "promises 3 vertices, the file holds 2"),
    ("# Nodes: 3 Edges: 1 (tcgpu: labels)\n# Isolated: 9\n5\t9\n", 1, "promises 3 vertices, the file holds 2"),
    ("# Nodes: 3 Edges: 1 (tcgpu: labels)\n# Isolated: x\n5\t9\n", 1, "whole numbers"),
    ("source,target,vertices=5\n0,5\n", 1, "promises 5 vertices from 0 on"),
    (b"\x89PNG\r\n\x1a\n\x00\x00\x00", 1, "other bytes"),
    ("0 1\n".encode("utf-16"), 1, "other bytes"),
    (PATTERN + "2 2 1\n2 1\n", 1, "format='mtx'"),
]

MATRICES = [
    ("", 1, "empty"),
    ("2 1\n3 2\n", 1, 'format="edges"'),
    (PATTERN, 1, "ends before its size line"),
    (PATTERN + "% 3 3 2\n", 2, "ends before its size line"),
    (PATTERN.replace("coordinate", "array"), 1, "dense"),
    (PATTERN.replace("pattern", "quaternion"), 1, "expected one of pattern, integer, real"),
    (PATTERN.replace("symmetric", "antisocial"), 1, "general, symmetric"),
    (PATTERN.replace("matrix", "tensor"), 1, "expected '%%MatrixMarket matrix coordinate"),
    (PATTERN.replace(" symmetric", ""), 1, "expected '%%MatrixMarket matrix coordinate"),
    (PATTERN + "3 3\n", 2, "expected the size line"),
    (PATTERN + "3 3 x\n", 2, "expected the size line"),
    (PATTERN + "-3 -3 1\n", 2, "expected the size line"),
    (PATTERN + "3 4 1\n2 1\n", 2, "square"),
    (PATTERN + "3 3 2\n2 1\n", 2, "promises 2 entries"),
    (PATTERN + "3 3 1\n2 1\n3 1\n", 2, "promises 1 entries, the file holds 2"),
    (PATTERN + "3 3 2\n2 1\n3\n", 4, "expected a row number and a column number; found '3'"),
    (PATTERN + "3 3 1\n% here\n4 1\n", 4, "vertex numbers here are 1 to 3; found '4 1'"),
    (PATTERN + "3 3 1\n1 0\n", 3, "vertex numbers here are 1 to 3"),
    (PATTERN + "3 3 1\n1 -1\n", 3, "not negative"),
    (PATTERN + "3 3 1\n1,2\n", 3, "expected a row number"),
    (PATTERN + "3 3 1\n# 2\n", 3, "expected a row number"),
    (PATTERN + "0 0 1\n1 1\n", 3, "no vertices"),
    (PATTERN + "3 3 1\n18446744073709551617 1\n", 3, "vertex numbers here are 1 to 3"),
    (PATTERN + "3 3 1\n4294967297 1\n", 3, "vertex numbers here are 1 to 3"),
    (REAL + "3 3 1\n2 1\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 -\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 one\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 1e\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 none\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 index\n", 3, "a value is missing"),
    (REAL + "3 3 1\n2 1 1.2.3\n", 3, "a value is missing"),
    (PATTERN + "3 3 1" + " " * 200 + "2\n2 1\n", 2, "expected the size line"),
    (REAL + "3 3 1\n2 1 1x\n", 3, "expected a row number"),
    (REAL.replace("real", "complex") + "3 3 1\n2 1 0.5\n", 3, "a value is missing"),
    (PATTERN + "2147483648 2147483648 1\n2 1\n", 2, "more than 2147483647"),
    (PATTERN + "3 3 99999999999999999999\n2 1\n", 2, "promises 99999999999999999999 entries, the file holds 1"),
]

METIS = [
    ("", 1, "empty"),
    ("% only this\n", 1, "ends before its header"),
    ("three two\n", 1, "expected the header"),
    ("3\n", 1, "expected the header"),
    ("3 2 7\n2\n1 3\n2\n", 1, "expected the header"),
    ("3 2 0 1 9\n2\n1 3\n2\n", 1, "expected the header"),
    ("-3 2\n2\n1 3\n2\n", 1, "expected the header"),
    ("3 2\n2\n", 1, "promises 3 vertices, lines follow for 1"),
    ("3 2\n2\n1 3\n2\n\n\n1\n", 7, "a line too many"),
    ("3 3\n2\n1 3\n2\n", 1, "promises 3 edges, so 6 numbers; the vertices list 4"),
    ("3 1\n2\n1 3\n2\n", 1, "promises 1 edges, so 2 numbers; the vertices list 4"),
    ("3 2\n2\n1 3\n4\n", 4, "vertex numbers here are 1 to 3; found '4'"),
    ("3 2\n2\n1 0\n2\n", 3, "vertex numbers here are 1 to 3"),
    ("3 2\n2\n1 -3\n2\n", 3, "not negative"),
    ("3 2\n2\n1 3.5\n2\n", 3, "expected vertex numbers"),
    ("3 2\n2\n1,3\n2\n", 3, "expected vertex numbers"),
    ("3 2\n2\n1 3 \x01\n2\n", 3, "other bytes"),
    ("3 2 1\n2 7\n1 7 3\n2 9\n", 3, "a value is missing"),
    ("3 2 10\n7 2\n7 1 3\n\n", 4, "a value is missing"),
    ("3 1 10\n7 2\n7 1\n", 1, "promises 3 vertices, lines follow for 2"),
    ("3 2 10\n7 2\n\n7 1 3\n7 2\n", 3, "a value is missing"),
    ("3 2 10\n7 2\n7 1 3\n7 2\n\n7\n", 6, "a line too many"),
    ("3 2 1\n2 7\n1 7 3 heavy\n2 9\n", 3, "a weight is not a number; found '1 7 3 heavy'"),
    ("3 2 1\n2 7\n1 7 3 nan\n2 9\n", 3, "a weight is not a number"),
    ("3 2 1\n2 7\n1 7 3 9kg\n2 9\n", 3, "a weight is not a number"),
    ("3 2 10\na 2\nb 1 3\nc 2\n", 2, "a weight is not a number; found 'a 2'"),
    ("3 2 11\n5 2 7\n5 1 7 3 x\n5 2 9\n", 3, "a weight is not a number"),
    ("3 3 010 999999999999999999999\n2\n1\n\n", 1, "999999999999999999999 weights for each vertex"),
    ("3 3 010 0\n2\n1\n\n", 1, "0 weights for each vertex"),
    ("%\n3 2\n2\n% 9\n1 3\n1\n", 5, "vertex 2 lists vertex 3, which does not list it"),
    ("2 1\n2 2\n\n", 2, "vertex 1 lists vertex 2, which does not list it"),
    ("2147483648 1\n2\n1\n", 1, "more than 2147483647"),
    ("9223372036854775808 1\n2\n1\n", 1, "more than 2147483647"),
    ("2 9223372036854775808\n2\n1\n", 1, "promises 9223372036854775808 edges"),
]


def cases(name, table):
    return [pytest.param(name, *row, id=f"{name}-{k}") for k, row in enumerate(table)]


@pytest.mark.parametrize(
    "name, content, line, says", cases("a.txt", EDGES) + cases("a.mtx", MATRICES) + cases("a.graph", METIS)
)
@pytest.mark.parametrize("chunk", [3, scan.CHUNK])
def test_text_is_refused_by_line(refused, monkeypatch, name, content, line, says, chunk):
    monkeypatch.setattr(scan, "CHUNK", chunk)
    message = refused(name, content)
    assert message.startswith(f", line {line}: ") and says in message


@pytest.mark.parametrize(
    "content, keywords, line, says",
    [
        ("0 1\n1 0\n", {"base": 1}, 1, "vertex numbers here are 1 to 2147483647"),
        ("0 1\n1 2147483647\n", {"base": 0}, 2, "vertex numbers here are 0 to 2147483646"),
        ("0 1\n1 2147483648\n", {"base": 1, "n": 5}, 1, "vertex numbers here are 1 to 5"),
        ("0 1\n1 5\n", {"n": 5}, 2, "vertex numbers here are 0 to 4"),
        ("0 1\n", {"n": 0}, 1, "no vertices"),
    ],
)
def test_edge_lists_with_base_or_n(refused, content, keywords, line, says):
    message = refused("a.txt", content, **keywords)
    assert message.startswith(f", line {line}: ") and says in message


@pytest.mark.parametrize("keywords", [{"base": 2}, {"base": "0"}, {"n": -1}, {"n": 2**31}, {"n": 1.5}, {"n": True}])
def test_invalid_base_and_n_are_refused(tmp_path, keywords):
    (tmp_path / "a.txt").write_text("0 1\n")
    with pytest.raises(GraphError, match="base must|n must"):
        read(tmp_path / "a.txt", **keywords)


def test_base_and_n_are_refused_if_the_format_says_otherwise(refused):
    assert "base= is for edge lists" in refused("a.mtx", PATTERN + "3 3 1\n2 1\n", base=1)
    assert "has 3 vertices, not n=4" in refused("a.mtx", PATTERN + "3 3 1\n2 1\n", n=4)
    assert "has 3 vertices, not n=4" in refused("a.graph", "3 2\n2\n1 3\n2\n", n=4)


def test_base_and_n_are_refused_if_our_heading_says_otherwise(refused):
    heading = "# Nodes: 9 Edges: 1 (tcgpu: vertices from 0)\n1\t2\n"
    assert "has 9 vertices, not n=8" in refused("a.txt", heading, n=8)
    assert "numbered from 0 here, not from 1" in refused("a.txt", heading, base=1)


def test_a_long_line_is_shown_in_part(refused):
    assert re.search(r"; found '(1 )+1?\.\.\.'$", message := refused("a.graph", "1 " * 100_000)) and len(message) < 200


def test_a_file_that_is_not_there(tmp_path):
    for name in ("a.mtx", "a.txt.gz", "a.graph", "a.npz", "a.npz.xz"):
        with pytest.raises(FileNotFoundError):
            read(tmp_path / name)


def test_a_folder_where_a_file_should_be(tmp_path):
    for keywords in ({"format": "edges"}, {"format": "npz"}):
        with pytest.raises(GraphError, match="is a folder, not a file"):
            read(tmp_path, **keywords)
    with pytest.raises(GraphError, match="not of a graph: no graph.json"):
        read(tmp_path)
    with pytest.raises(GraphError, match="is a folder, not a file"):
        write(Graph.from_edges([0], [1]), tmp_path, format="mtx")


# sizes in headers


@pytest.mark.parametrize(
    "name, content",
    [
        ("a.mtx", PATTERN + "2147483647 2147483647 1\n2 1\n"),
        ("a.mtx", PATTERN + "9 9 2147483647000\n2 1\n"),
        ("a.graph", "2147483647 1\n2\n1\n"),
        ("a.graph", "2 2147483647000\n2\n1\n"),
        ("a.txt", "0 2147483646\n"),
        ("a.txt", "# Nodes: 2147483647 Edges: 1 (tcgpu: vertices from 0)\n0 1\n"),
    ],
)
def test_large_sizes_in_a_header_allocate_little_memory(refused, name, content):
    refused(name, PATTERN + "1 1 1\n2 1\n" if name == "a.mtx" else "1 1\nx\n")  # compiles what it needs
    with little_memory():
        refused(name, content, **({"base": 0} if name == "a.txt" else {}))


def npy(descr, shape, data=b"", fortran="False", version=1):
    header = f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    width = 2 if version == 1 else 4
    header += b" " * (-(8 + width + len(header) + 1) % 64) + b"\n"
    return b"\x93NUMPY" + bytes([version, 0]) + len(header).to_bytes(width, "little") + header + data


def archive(**members):
    """A .npz of raw members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(f"{name}.npy", content)
    return buffer.getvalue()


COL_PTR = npy("'<i8'", "(3,)", np.array([0, 1, 1]).tobytes())
ROW_IDX = npy("'<i4'", "(1,)", np.array([1], np.int32).tobytes())

ARRAYS = [
    ({}, "no graph of tcgpu and no SciPy matrix"),
    ({"other": COL_PTR}, "no graph of tcgpu and no SciPy matrix"),
    ({"col_ptr": COL_PTR}, "no array 'row_idx'"),
    (
        {"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(2,)", bytes(4))},
        "row_idx.npy: promises 8 bytes of data, there are 4",
    ),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(999999999999,)", bytes(4))}, "row_idx.npy: promises"),
    (
        {"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(0,)", bytes(4))},
        "row_idx.npy: promises 0 bytes of data, there are 4",
    ),
    (
        {"col_ptr": COL_PTR, "row_idx": npy("'|O'", "(1,)", pickle.dumps([1]))},
        "row_idx.npy: not a one-dimensional",
    ),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(1, 1)", bytes(4))}, "row_idx.npy: not a one-dimensional"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i3'", "(1,)", bytes(3))}, "row_idx.npy: not an array as NumPy writes"),
    ({"col_ptr": COL_PTR, "row_idx": npy("__import__('os')", "(1,)", bytes(4))}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(-1,)")}, "row_idx.npy: promises -4 bytes"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(1.0,)", bytes(4))}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(1L,)", bytes(4))}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("[('a', '<i4')]", "(1,)", bytes(4))}, "row_idx.npy: not a one-dimensional"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'|S0'", "(9,)")}, "row_idx.npy: not a one-dimensional"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(" * 4_000 + ")" * 4_000)}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(0,)" + " " * 70_000, version=2)}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(0,)", version=3)}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": b"text"}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": b""}, "row_idx.npy: not an array"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<f8'", "(1,)", bytes(8))}, "row_idx must hold whole numbers"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(1,)", bytes(4))}, "column 0 is not a strictly ascending"),
    ({"col_ptr": COL_PTR, "row_idx": npy("'<i4'", "(1,)", b"\2\0\0\0")}, "column 0 is not a strictly ascending"),
    ({"col_ptr": npy("'<i8'", "(0,)"), "row_idx": ROW_IDX}, "col_ptr is empty"),
    ({"col_ptr": npy("'<i8'", "(2,)", bytes(16)), "row_idx": ROW_IDX}, "col_ptr must ascend from 0 to 1"),
    ({"col_ptr": COL_PTR, "row_idx": ROW_IDX, "labels": COL_PTR}, "3 labels do not name 2 vertices"),
]


@pytest.mark.parametrize("members, says", ARRAYS)
def test_archives_are_refused_by_member(refused, members, says):
    with little_memory():
        assert says in refused("a.npz", archive(**members))


@pytest.mark.parametrize("members, says", [row for row in ARRAYS if "row_idx" in row[0]])
def test_folders_are_refused_by_file(tmp_path, members, says):
    (tmp_path / "graph.json").write_text(json.dumps({"vertices": 2, "edges": 1}))
    for name, content in members.items():
        (tmp_path / f"{name}.npy").write_bytes(content)
    with little_memory(), pytest.raises(GraphError) as refusal:
        read(tmp_path)
    assert str(refusal.value).startswith(str(tmp_path)) and says in str(refusal.value)


@pytest.mark.parametrize(
    "promise, says",
    [
        ('{"vertices": 2, "edges": 2}', "promises 2 vertices and 2 edges, the arrays hold 2 and 1"),
        ('{"vertices": 2}', "expected a JSON object"),
        ("[" * 100_000, "expected a JSON object"),
        ("[1, 2]", "expected a JSON object"),
        ("", "expected a JSON object"),
        ("\xff", "expected a JSON object"),
    ],
)
def test_a_folder_with_a_wrong_description(tmp_path, promise, says):
    (tmp_path / "graph.json").write_bytes(promise.encode("latin-1"))
    (tmp_path / "col_ptr.npy").write_bytes(COL_PTR)
    (tmp_path / "row_idx.npy").write_bytes(ROW_IDX)
    with pytest.raises(GraphError, match=f"graph.json: {says}"):
        read(tmp_path)


def test_nothing_is_unpickled(refused, tmp_path):
    class Bomb:
        def __reduce__(self):
            return open, (str(tmp_path / "bang"), "w")

    np.savez(tmp_path / "a.npz", col_ptr=np.array([Bomb()], object), row_idx=np.arange(0), allow_pickle=True)
    assert "col_ptr.npy: not a one-dimensional array of plain" in refused("a.npz", (tmp_path / "a.npz").read_bytes())
    assert "not a whole .npz archive" in refused("a.npz", pickle.dumps(Bomb()))
    assert not (tmp_path / "bang").exists()


def test_a_small_archive_that_claims_a_large_member_is_refused(refused):
    """The size of a member is claimed in the archive's directory, where anything can be written."""
    content = bytearray(archive(col_ptr=COL_PTR, row_idx=npy("'<i4'", "(1000000000,)", bytes(4))))
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        size = file.getinfo("row_idx.npy").file_size
    content = content.replace(size.to_bytes(4, "little"), (size + 3999999996).to_bytes(4, "little"))
    with little_memory():
        assert "row_idx.npy: promises 4000000128 bytes, more than" in refused("a.npz", bytes(content))


@pytest.mark.parametrize("behind", [b"\0", b"x" * 30, archive(col_ptr=COL_PTR)[:50]], ids=["zero", "text", "archive"])
def test_bytes_after_an_archive_are_refused(refused, behind):
    assert "bytes after its end" in refused("a.npz", archive(col_ptr=COL_PTR, row_idx=ROW_IDX) + behind)


def test_matrices_of_scipy_that_are_no_graph(refused, tmp_path):
    def saved(matrix, **changed):
        sp.save_npz(tmp_path / "x.npz", matrix)
        with np.load(tmp_path / "x.npz") as arrays:
            np.savez(tmp_path / "x.npz", **{**arrays, **changed})
        return (tmp_path / "x.npz").read_bytes()

    assert "shape (2, 3)" in refused("a.npz", saved(sp.csr_array(np.ones((2, 3)))))
    square = sp.csr_array(np.ones((2, 2)))
    assert "indices" in refused("a.npz", saved(square, indices=np.array([0, 1, 0, 7])))
    assert "indptr" in refused("a.npz", saved(square, indptr=np.array([0, 5, 4])))
    assert refused("a.npz", saved(square, indptr=np.array([0, 4, 9])))
    assert "format 'lil'" in refused("a.npz", saved(square, format=np.array(b"lil")))
    assert "without its array 'row'" in refused("a.npz", saved(square, format=np.array(b"coo")))
    huge = saved(sp.coo_array(np.ones((2, 2))), shape=np.array([2**31 - 1, 2**31 - 1]))
    with little_memory():
        assert "would take 17.2 GB; if that is meant, read it with n=2147483647" in refused("a.npz", huge)
    assert "one-dimensional" in refused("a.npz", saved(sp.dia_array(np.ones((2, 2)))))


@pytest.mark.parametrize("ending", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("name", ["a.mtx", "a.txt", "a.graph", "a.npz"])
def test_damaged_compression(refused, tmp_path, name, ending):
    u, v = np.random.default_rng(1).integers(0, 100, (2, 2000))
    write(Graph.from_edges(u, v, 100), tmp_path / f"b{name}{ending}")
    whole = (tmp_path / f"b{name}{ending}").read_bytes()
    for damaged in (b"plain text\n", whole[: len(whole) // 2], whole[:-3], whole[:99] + b"???????" + whole[106:]):
        assert f"not a whole {ending} file" in refused(f"{name}{ending}", damaged)
    refused(f"a.txt{ending}", b"")


# whatever the bytes: a valid graph, or GraphError and nothing else

ENDINGS = [".mtx", ".txt", ".graph", ".npz", ".txt.gz", ".mtx.bz2", ".graph.xz", ".npz.gz"]
TEXT = st.text(alphabet="0123456789 \t\n\r%#,;/-+.eE[]aZ\"'\0\x7fé", max_size=120).map(str.encode)
HEADS = st.sampled_from([b"", PATTERN.encode(), REAL.encode() + b"9 9 2\n", b"3 2\n", b"3 2 11 1\n", b"a,b\n"])


def is_valid_or_refused(path, **keywords):
    try:
        graph = read(path, **keywords)
    except GraphError as refusal:
        assert str(path) in str(refusal) and "\n" not in str(refusal)
    else:
        Graph(graph.col_ptr, graph.row_idx, labels=graph.labels)  # validates every column


@pytest.mark.parametrize("ending", ENDINGS)
@files
@given(content=st.binary(max_size=200) | st.tuples(HEADS, TEXT).map(b"".join))
@example(content=b"\n")
@example(content=b"\xef\xbb\xbf")
def test_random_bytes(tmp_path, ending, content):
    path = tmp_path / f"x{ending}"
    path.write_bytes(content)
    is_valid_or_refused(path)


@pytest.mark.parametrize("ending", [*ENDINGS, "/"])
@files
@given(data=st.data())
def test_damaged_files(tmp_path, ending, data):
    edges = data.draw(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=20))
    shutil.rmtree(tmp_path / "x", ignore_errors=True)  # the damaged one before is not written over
    write(Graph.from_edges([a for a, _ in edges], [b for _, b in edges], 10), f"{tmp_path}/x{ending}")
    path = tmp_path / "x" / data.draw(st.sampled_from(["col_ptr.npy", "row_idx.npy", "graph.json"]))
    path = path if ending == "/" else tmp_path / f"x{ending}"
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content))) :]
    for _ in range(data.draw(st.integers(0, 3)) if content else 0):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    is_valid_or_refused(tmp_path / f"x{ending.removesuffix('/')}")


def test_the_benchmark_of_damaged_files_detects_wrong_counts_and_finds_none(load_benchmark, tmp_path, monkeypatch):
    if missing := [tool for tool in ("gzip", "bzip2", "xz") if not shutil.which(tool)]:
        pytest.skip(f"no {' and no '.join(missing)} here, which judge compressed files")
    damage = load_benchmark("damage")
    rows = list(damage.trials(210, 7, tmp_path))
    assert {row["outcome"] for row in rows} == {"refused", "right", "other"}
    assert sum(row["streams"] > 1 for row in rows) > 40
    monkeypatch.setattr(damage, "shell", lambda arguments: print(5) or 0)  # counts whatever it is given
    assert sum(row["outcome"] == "wrong" for row in damage.trials(42, 7, tmp_path)) > 20
    monkeypatch.setattr(damage, "shell", lambda arguments: 1 // 0)
    assert {row["outcome"] for row in damage.trials(21, 7, tmp_path)} == {"traceback"}


def test_files_of_other_programs_are_read_right_or_refused_or_told(load_benchmark, tmp_path, monkeypatch):
    foreign = load_benchmark("foreign")
    rows = list(foreign.trials(len(foreign.KINDS), 7, tmp_path))
    assert [row for row in rows if row["outcome"] in ("wrong", "traceback")] == []
    assert {row["outcome"] for row in rows} >= {"right", "told", "refused"}
    monkeypatch.setattr(foreign.tcgpu, "read", lambda *args: Graph.from_edges([0], [1]))  # reads whatever it is given
    assert {row["outcome"] for row in foreign.trials(9, 7, tmp_path)} == {"wrong"}
