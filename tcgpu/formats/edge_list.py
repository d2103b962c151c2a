"""Edge lists: a line for each edge, two vertex numbers in it (SNAP, CSV, TSV).

Numbers are separated by blanks, tabs, a comma or a semicolon; further columns, weights for example, are ignored; lines
that begin with `#`, `%` or `//` are comments; the first line may name the columns.
"""

import re

import numpy as np

from tcgpu import columns
from tcgpu.formats import scan
from tcgpu.formats.files import Text
from tcgpu.formats.vertices import checked_memory
from tcgpu.graph import Graph, GraphError
from tcgpu.ids import compact

BLOCK = 1 << 18  # edges formatted at a time

_NAME = re.compile(r"""["']?[A-Za-z_][\w .:-]*["']?\Z""")
_SEPARATOR = re.compile(r"[\s,;]+")


def read(path, base=None, n=None):
    u, v, n, labels = read_edges(path, base, n)
    return Graph.from_edges(u, v, n, labels=labels)


def read_edges(path, base=None, n=None):
    """The edges as they stand: `(u, v, n, labels)`.

    With `base` (0 or 1) the numbers in the file are the vertices, counted from there. With `n` there are that many
    vertices, counted from 0 unless `base` says 1. With neither, the vertices are those that occur, in ascending order;
    `labels[v]` is then the number of vertex v in the file (None where that is v itself).
    """
    if base not in (None, 0, 1):
        raise GraphError(f"base must be 0 or 1, not {base!r}")
    text = Text(path)
    first = _first_row(text)
    if base is None and n is None:
        u, v = _any_numbers(text, first)
    else:
        u, v = _numbers(text, first, base or 0, columns.MAX_VERTICES if n is None else n, np.int32)
    if u.size == 0 and n is None:
        raise text.fault_at_end("no edge in the whole file; if a graph without edges is meant, give n")
    if base is None and n is None:
        return compact(u, v)
    if n is None:
        n = columns.extent(u, v)[1] + 1
        checked_memory(n, u.size, path, ", else read it with relabel=True (--relabel) or without a base")
    return u, v, n, None


def write(graph, stream, separator, heading):
    """Lines `column separator row`, by labels where these are distinct whole numbers, else by vertex.

    heading: name the columns in the first line, as CSV readers like it; else a comment tells the size, as SNAP's do.
    """
    title = f"source{separator}target\n" if heading else f"# Nodes: {graph.n} Edges: {graph.m}\n"
    stream.write(title.encode())
    labels = _numeric_labels(graph.labels)
    for first in range(0, graph.m, BLOCK):
        u, v = graph.col_of[first : first + BLOCK], graph.row_idx[first : first + BLOCK]
        if labels is not None:
            u, v = labels[u], labels[v]
        stream.write(scan.format_rows(u, v, 0, separator))


def _first_row(text):
    """Where the rows begin: past a line of column names, if there is one."""
    for at, line in text.lines(text.start):
        if line.startswith(b"%%MatrixMarket"):
            raise text.fault(at, "this is a Matrix Market file; read it with format='mtx', not as an edge list")
        if line and not line.startswith((b"#", b"%", b"//")):
            names = _SEPARATOR.split(line[:1000].decode("utf-8", "replace"))
            named = len(names) > 1 and all(map(_NAME.match, names[:2]))
            return text.line(at)[1] if named else at
    return len(text)


def _any_numbers(text, first):
    """Numbers of any size, in the narrowest type that holds them."""
    try:
        u, v, _ = scan.rows(text, first, 0, 2**31, np.int32, loose=True)
        return u, v
    except scan.Fault:  # perhaps a larger number; a line that is wrong otherwise is still wrong
        return _numbers(text, first, 0, 2**63, np.int64)


def _numbers(text, first, low, count, dtype):
    try:
        u, v, _ = scan.rows(text, first, low, count, dtype, loose=True)
    except scan.Fault as fault:
        raise fault.about(text, "expected two vertex numbers", low, count) from None
    return u, v


def _numeric_labels(labels):
    """Labels that an edge list can hold, as int64; else None."""
    if labels is None or len(labels) == 0:
        return None
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or np.unique(labels).size < labels.size:
        return None
    return labels.astype(np.int64) if 0 <= labels.min() and labels.max() <= np.iinfo(np.int64).max else None
