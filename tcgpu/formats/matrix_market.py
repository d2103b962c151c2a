"""Matrix Market files: a header, `rows columns entries`, then a line for each entry, numbered from 1.

An entry is an edge, in one direction or both, whatever its value, unless the value is 0, as in a SciPy matrix.
"""

from tcgpu.files import Text
from tcgpu.foreign_graphs import NOT_SQUARE
from tcgpu.formats import scan

_VALUES = {"pattern": 0, "integer": 1, "real": 1, "double": 1, "complex": 2}  # field -> numbers in each value
_SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")


def read_edges(path, base=None, n=None):
    """The entries of the file as edges: `(u, v, n, None)`; vertex v is row v + 1."""
    text = Text(path)
    values = _values_in_header(text)
    at, size, entries, first = _size_line(text)
    scan.check_count(n, size, path)
    expected = "expected a row number and a column number"
    u, v, found, _ = scan.rows(text, first, 1, size, expected=expected, loose=False, values=values)
    if found != entries:
        raise text.error(at, f"the size line promises {entries} entries, the file holds {found}")
    if n is None:
        scan.check_memory(size, entries, path)
    return u, v, size, None


def write(graph, stream):
    """Write the lower triangle; vertex v is row v + 1."""
    header = f"%%MatrixMarket matrix coordinate pattern symmetric\n{graph.n} {graph.n} {graph.m}\n"
    stream.write(header.encode())
    scan.write_pairs(stream, graph.row_idx, graph.col_of, 1, " ")


def _values_in_header(text):
    header = text.line(text.start)[0][:200].decode("utf-8", "replace").lower().split()
    if not header or header[0] not in ("%%matrixmarket", "%matrixmarket"):
        raise text.error(
            text.start,
            "expected the header of a Matrix Market file, '%%MatrixMarket matrix coordinate ...'; "
            'a plain list of edges under this name is read with format="edges"',
        )
    if len(header) != 5 or header[1] != "matrix":
        raise text.error(text.start, "expected '%%MatrixMarket matrix coordinate FIELD SYMMETRY'")
    if header[2] != "coordinate":
        raise text.error(text.start, "only sparse matrices, 'coordinate', are graphs here; this one is dense")
    if header[3] not in _VALUES or header[4] not in _SYMMETRIES:
        raise text.error(text.start, f"expected one of {', '.join(_VALUES)} and one of {', '.join(_SYMMETRIES)}")
    return _VALUES[header[3]]


def _size_line(text):
    """`(offset of the size line, rows, entries, offset of the first entry)`."""
    at, line = text.first_line(text.line(text.start)[1], "size line: rows, columns and entries")
    words = line.split(maxsplit=3)
    if len(words) != 3 or len(line) > 200 or not all(word.isdigit() for word in words):
        raise text.error(at, "expected the size line: rows, columns and entries")
    rows, cols, entries = map(int, words)
    if rows != cols:
        raise text.error(at, f"{NOT_SQUARE}, with A = scipy.io.mmread(file)")
    scan.check_most(text, at, rows)
    return at, rows, entries, text.line(at)[1]
