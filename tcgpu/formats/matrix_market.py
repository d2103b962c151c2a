"""Matrix Market files: a header, `rows columns entries`, then a line for each entry, counted from 1.

An entry is an edge, in one direction or both, whatever its value; only an entry whose value is 0 is none, as for a
SciPy matrix.
"""

import numpy as np

from tcgpu import cleaning
from tcgpu.formats import scan
from tcgpu.formats.files import Text
from tcgpu.formats.vertices import checked_against, checked_memory
from tcgpu.graph import Graph

BLOCK = 1 << 18  # entries formatted at a time

_VALUES = {"pattern": 0, "integer": 1, "real": 1, "double": 1, "complex": 2}
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read(path, base=None, n=None):
    u, v, n, _ = read_edges(path, base, n)
    return Graph.from_edges(u, v, n)


def read_edges(path, base=None, n=None):
    """The entries as they stand: `(u, v, n, None)`; vertex v is row v + 1 of the file."""
    text = Text(path)
    values = _values_in_header(text)
    at, size, entries, first = _size(text)
    checked_against(n, size, path)
    try:
        u, v, found, _ = scan.rows(text, first, 1, size, np.int32, loose=False, values=values)
    except scan.Fault as fault:
        raise fault.about(text, "expected a row number and a column number", 1, size) from None
    if found != entries:
        raise text.fault(at, f"the size line promises {entries} entries, the file holds {found}")
    if n is None:
        checked_memory(size, entries, path)
    return u, v, size, None


def write(graph, stream):
    """The lower triangle; vertex v is row v + 1."""
    header = f"%%MatrixMarket matrix coordinate pattern symmetric\n{graph.n} {graph.n} {graph.m}\n"
    stream.write(header.encode())
    for first in range(0, graph.m, BLOCK):
        block = slice(first, first + BLOCK)
        stream.write(scan.format_rows(graph.row_idx[block], graph.col_of[block], 1, " "))


def _values_in_header(text):
    """How many values the header says that each entry has."""
    header = text.line(text.start)[0][:200].decode("utf-8", "replace").lower().split()
    if not header or header[0] not in ("%%matrixmarket", "%matrixmarket"):
        raise text.fault(
            text.start,
            "expected the header of a Matrix Market file, '%%MatrixMarket matrix coordinate ...'; "
            'a plain list of edges under this name is read with format="edges" (on the command line: --format edges)',
        )
    if len(header) != 5 or header[1] != "matrix":
        raise text.fault(text.start, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'")
    if header[2] != "coordinate":
        raise text.fault(text.start, "only sparse matrices, 'coordinate', are graphs here; this one is dense")
    if header[3] not in _VALUES or header[4] not in _SYMMETRIES:
        raise text.fault(text.start, f"expected one of {', '.join(_VALUES)} and one of {', '.join(_SYMMETRIES)}")
    return _VALUES[header[3]]


def _size(text):
    """Where the size line is, how many rows and entries it says, and where the entries begin."""
    for at, line in text.lines(text.line(text.start)[1]):
        if not line or line.startswith(b"%"):
            continue
        words = line.split(maxsplit=3)
        if len(words) != 3 or len(line) > 200 or not all(word.isdigit() for word in words):
            raise text.fault(at, "expected the size line: rows, columns and entries")
        rows, cols, entries = map(int, words)
        if rows != cols:
            raise text.fault(at, "an adjacency matrix is square, this one is not")
        if rows > cleaning.MAX_VERTICES:
            raise text.fault(at, f"{rows} vertices are more than {cleaning.MAX_VERTICES}, the most there can be")
        return at, rows, entries, text.line(at)[1]
    raise text.fault_at_end("the file ends before its size line: rows, columns and entries")
