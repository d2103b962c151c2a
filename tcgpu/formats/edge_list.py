"""Edge lists: a line for each edge, with two vertex numbers (SNAP, CSV, TSV).

Numbers are separated by blanks, tabs, a comma or a semicolon, and may be in double quotes; lines that begin with `#`,
`%` or `//` are comments. The first line may name the columns: then those named `source` and `target`, or by another
pair of END_NAMES, are the ends of an edge; if there are only two columns, they may have any names. Without names the
first two columns are the ends. Further columns, weights for example, are ignored.

A file that may not be a list of edges is refused: an adjacency list, lines with different numbers of whole numbers, and
a first line of sizes (`vertices edges`) before the edges.

`write` stores the number of vertices in a comment (in `.csv` and `.tsv` among the names of the columns), and `read`
uses it, so that vertices without an edge are kept. The heading of a SNAP file, `# Nodes: N Edges: M`, is used if all
vertex numbers are below N. Other readers skip both.
"""

import csv
import re
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from tcgpu import cleaning
from tcgpu.errors import FormatError, GraphError
from tcgpu.formats import scan
from tcgpu.formats.files import Text
from tcgpu.formats.vertices import ALWAYS_ALLOWED, MAX_PER_EDGE, check_count, check_memory, check_most
from tcgpu.ids import compact

# names of the columns of an edge's two ends, in lower case, without punctuation and a final "id" or "node"
END_NAMES = (
    ("source", "target"), ("source", "destination"), ("source", "dest"), ("src", "dst"), ("src", "dest"),
    ("src", "tgt"), ("from", "to"), ("u", "v"), ("i", "j"), ("v1", "v2"), ("id1", "id2"), ("node1", "node2"),
    ("vertex1", "vertex2"), ("row", "col"), ("row", "column"),
)  # fmt: skip

_SUFFIX = re.compile(r"(?<=.)(?:node|vertex)?(?:id|idx)?\Z")
_FIRST = re.compile(rb"\s*(\"?)\d+\1([ \t]*)([,;]?)")  # the first number of a line, and what separates it from the next
_SNAP = re.compile(rb"[#%]\s*Nodes:\s*(\d{1,18})\s+Edges:\s*(\d{1,18})\b")
# our own heading adds to that of SNAP whether the numbers are vertices or labels
_NUMBERED, _LABELLED = b"(tcgpu: vertices from 0)", b"(tcgpu: labels)"
_ISOLATED = b"# Isolated:"  # begins a line of labels of vertices without an edge
_COUNT = "vertices="  # begins the name of an empty column: the number of vertices follows
_LABELS_PER_LINE = 1000
_MAX_ADJACENCY_COLUMNS = 64  # of an adjacency list in which all vertices have equally many neighbours


def read_edges(path, base=None, n=None):
    """The raw edges of the file: `(u, v, n, labels)`.

    With `base` (0 or 1) the numbers in the file are the vertices, counted from `base`. With `n` there are n vertices,
    counted from 0 unless `base` is 1. With neither, the heading gives the number of vertices; if it does not, the
    vertices are the numbers that occur, in ascending order, and `labels[v]` is the number of vertex v in the file
    (labels is None if it is always v).
    """
    if base not in (None, 0, 1):
        raise GraphError(f"base must be 0 or 1, not {base!r}")
    text = Text(path)
    head = _read_heading(text)
    if head.kind == _NUMBERED:
        if base == 1:
            raise text.error(head.at, "vertices are numbered from 0 here, not from 1")
        check_count(n, head.n, path)
    plain = base is None and n is None
    count = 2**63 if plain else cleaning.MAX_VERTICES if n is None else n
    u, v, _, layout = scan.rows(
        text, head.first, base or 0, count, expected="expected two vertex numbers", loose=True, ends=head.ends,
        widest=head.widest,
    )  # fmt: skip
    largest = None if plain and head.n is None else cleaning.min_max(u, v)[1]
    _check_heading(text, head, u.size, largest)
    _check_first_line(text, head, u, v, base or 0, layout)
    _check_adjacency(text, head, u, v, base or 0, layout)
    if head.kind == _NUMBERED and n is None:
        check_memory(head.n, u.size, path)
    if head.kind == _NUMBERED or plain and head.kind is None and _is_plausible(head, u.size, largest):
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), head.n, None
    if plain and head.kind == _LABELLED:
        return _with_isolated(text, head, u, v)
    if u.size == 0 and n is None:
        raise text.error_at_end("no edge in the whole file; if a graph without edges is meant, give n")
    if plain:
        return compact(u, v)
    if n is None:
        n = largest + 1
        check_memory(n, u.size, path, ", else read it with relabel=True (--relabel) or without a base")
    return u, v, n, None


def write(graph, stream, separator, heading):
    """Write lines `column separator row`: labels if these are distinct whole numbers, else vertices.

    heading: name the columns in the first line, as CSV readers expect; else write a comment with the size, as in SNAP.
    """
    labels = _numeric_labels(graph.labels)
    isolated = np.flatnonzero(graph.degrees == 0)
    if not heading:
        stream.write(b"# Nodes: %d Edges: %d %b\n" % (graph.n, graph.m, _NUMBERED if labels is None else _LABELLED))
        for first in range(0, 0 if labels is None else isolated.size, _LABELS_PER_LINE):
            names = " ".join(map(str, labels[isolated[first : first + _LABELS_PER_LINE]].tolist()))
            stream.write(b"%b %b\n" % (_ISOLATED, names.encode()))
    elif isolated.size and labels is not None:
        raise GraphError(
            f"{isolated.size} vertices have no edge, and a table of edges (.csv, .tsv) has no place for their labels; "
            "a .txt file has"
        )
    else:
        count = f"{separator}{_COUNT}{graph.n}" if isolated.size or graph.n == 0 else ""
        stream.write(f"source{separator}target{count}\n".encode())
    scan.write_pairs(stream, graph.col_of, graph.row_idx, 0, separator, labels)


# ------------------------------------------------------------------------------------------------------------- heading


@dataclass
class _Heading:
    """The lines before the edges."""

    at: int  # offset of the line with the most information
    first: int  # offset of the first edge
    named: bool = False  # there is a line of column names
    ends: tuple | None = None  # as `scan.rows` takes it
    widest: int = 0  # columns that have a name, 0 if none has
    n: int | None = None  # vertices
    edges: int | None = None
    kind: bytes | None = None  # _NUMBERED or _LABELLED if it is our own
    isolated: list = field(default_factory=list)  # labels of vertices without an edge


def _read_heading(text):
    head = _Heading(at=text.start, first=len(text))
    for at, line in text.lines(text.start):
        if line.startswith(b"%%MatrixMarket"):
            raise text.error(at, "this is a Matrix Market file; read it with format='mtx', not as an edge list")
        if not line:
            continue
        if not line.startswith((b"#", b"%", b"//")):
            names, delimiter = _column_names(text.line(at, b" \r")[0])  # a tab at an end delimits an empty cell
            head.first = text.line(at)[1] if names else at
            if names:
                _find_ends(text, at, head, names, delimiter)
            break
        if line.startswith(_ISOLATED) and head.kind == _LABELLED:
            head.isolated += line[len(_ISOLATED) :].decode("ascii", "replace").split()
        elif head.n is None and (found := _SNAP.match(line[:200])):
            kind = bytes(line[found.end() :].strip())
            head.at, head.n, head.edges = at, int(found[1]), int(found[2])
            head.kind = kind if kind in (_NUMBERED, _LABELLED) else None
    if not all(word.isdecimal() and len(word) < 20 and int(word) < 2**63 for word in head.isolated):
        raise text.error(head.at, "labels of vertices without an edge are to follow, whole numbers")
    if head.kind:
        check_most(text, head.at, head.n)
    return head


def _column_names(line):
    """`(names, delimiter)` of a line of column names; `(None, 0)` for any other line."""
    line = line[: 1 << 16].decode("utf-8", "replace")
    splits = [(_split(line, delimiter), ord(delimiter)) for delimiter in ",;\t "]
    splits = [split for split in splits if len(split[0]) > 1]
    if not splits:
        return None, 0
    # a comma may be part of a name between tabs: use the split that gives two ends, else the first one
    names, delimiter = next((split for split in splits if _pairs(_short(split[0]))), splits[0])
    named = any(names) and all(name == "" or name[0].isalpha() or name[0] == "_" for name in names[:2])
    return (names, delimiter) if named else (None, 0)


def _split(line, delimiter):
    """The cells of a line, without quotes."""
    if delimiter == " ":
        return [cell.strip("\"'") for cell in re.findall(r'"[^"]*"|\S+', line)]
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []
    return [cell.strip().strip("'") for cell in cells]


def _pairs(short):
    """Which of END_NAMES are among these names of columns."""
    return [pair for pair in END_NAMES if set(short).issuperset(pair)]


def _short(names):
    """The names of columns as in END_NAMES."""
    return [_SUFFIX.sub("", re.sub(r"[\W_]", "", name.casefold()), count=1) for name in names]


def _find_ends(text, at, head, names, delimiter):
    """Set the columns of an edge's two ends by their names; an error if there are none or too many."""
    short = _short(names)
    pairs = _pairs(short)
    shown = "a line of column names"
    if len(pairs) > 1 or any(short.count(name) > 1 for pair in pairs for name in pair):
        raise text.error(
            at, f"{shown} with more than one column for an end of an edge; leave one source and one target"
        )
    if not pairs and (len(names) > 2 or "" in names):
        raise text.error(
            at, f"{shown} that does not say which two are the ends of an edge; call them source and target"
        )
    a, b = sorted(short.index(name) for name in pairs[0]) if pairs else (0, 1)
    head.named, head.widest = True, len(names)
    head.ends = None if (a, b) == (0, 1) else (a, b, delimiter)
    if len(names) == 3 and re.fullmatch(rf"{_COUNT}\d{{1,10}}", names[2]):
        head.at, head.n, head.edges, head.kind = at, int(names[2].removeprefix(_COUNT)), None, _NUMBERED


# -------------------------------------------------------------------------------------------------------------- checks


def _check_heading(text, head, edges, largest):
    """Check the file against our own heading. The headings of other programs may count in another way."""
    if head.kind is None:
        return
    if head.edges is not None and edges != head.edges:
        raise text.error(head.at, f"the heading promises {head.edges} edges, the file holds {edges}")
    if head.edges is not None and not text.ends_with_newline:
        raise text.error_at_end("the last line is cut off: there is no end of line")
    if head.kind == _NUMBERED and largest >= head.n:
        raise text.error(head.at, f"the heading promises {head.n} vertices from 0 on; there is a larger number")


def _is_plausible(head, edges, largest):
    """Whether the heading of another program gives a plausible number of vertices, numbered from 0 on."""
    if head.n is None or edges == 0:
        return head.n is not None and head.edges == 0 and head.n <= ALWAYS_ALLOWED
    return largest < head.n <= min(max(ALWAYS_ALLOWED, MAX_PER_EDGE * edges), cleaning.MAX_VERTICES)


def _check_first_line(text, head, u, v, base, layout):
    """Refuse a first line that has other columns than all others, or that may hold the sizes of the graph."""
    if head.named or head.kind or u.size < 2:
        return
    at = head.first
    if u.size > 2 and layout.narrow == (1 if layout.first == 2 else u.size - 1):
        raise text.error(at, "the first line has another number of columns than all lines after it")
    words = re.split(rb"[\s,;]+", text.line(at)[0].replace(b'"', b""))
    n, *sizes = [int(word) for word in takewhile(lambda word: word.isdigit() and len(word) < 20, words)]
    edges = u.size - 1
    if not {edges, 2 * edges, edges / 2} & set(sizes):
        return
    low, high = (number + base for number in cleaning.min_max(u[1:], v[1:]))
    counts_vertices = n > high or (low >= 1 and n == high)
    counts_edges = (
        edges in sizes
        or (2 * edges in sizes and 2 * edges > high)
        or (edges / 2 in sizes and _is_symmetric(u[1:], v[1:]))
    )
    if counts_vertices and counts_edges:
        raise text.error(
            at,
            f"this may be an edge, or sizes, as {edges} edges with vertices up to {high} follow; "
            "leave it out if it is sizes, move it to the end if it is an edge",
        )


def _is_symmetric(u, v):
    """Whether every edge is listed in both directions."""
    forward, backward = np.lexsort((v, u)), np.lexsort((u, v))
    return np.array_equal(u[forward], v[backward]) and np.array_equal(v[forward], u[backward])


def _check_adjacency(text, head, u, v, base, layout):
    """Refuse lines `vertex neighbour neighbour ...`, equally many in each, which could be edges with further columns.

    They are an adjacency list if no vertex has two lines and the vertices of a line list its vertex, too; if some of
    them have no line, all numbers must make up one range, or else they are more likely weights.
    """
    if head.named or head.kind or not 3 <= layout.width <= _MAX_ADJACENCY_COLUMNS or u.size < 2:
        return
    if layout.whole != u.size or any(np.unique(some).size < some.size for some in (u[:1000], u)):
        return
    _, blanks, mark = _FIRST.match(text.line(head.first)[0]).groups()
    delimiter = ord(mark or (b"\t" if b"\t" in blanks else b" "))
    columns = [u.astype(np.int64) + base, v.astype(np.int64) + base]
    try:
        for column in range(2, layout.width):
            found = scan.rows(text, head.first, 0, 2**63, expected="", loose=True, ends=(0, column, delimiter))
            columns.append(found[1])
    except FormatError:
        return
    lines = np.stack(columns, axis=1)
    if (np.diff(np.sort(lines, axis=1)) == 0).any():
        return
    numbers, ranks = np.unique(lines, return_inverse=True)
    own, near = np.split(ranks.reshape(lines.shape), [1], axis=1)
    forward, backward = own * numbers.size + near, near * numbers.size + own
    has_line = np.isin(near, own)
    one_range = numbers[-1] <= numbers.size
    if has_line.any() and np.isin(backward[has_line], forward).all() and (has_line.all() or one_range):
        raise text.error(head.first, "this looks like an adjacency list; write a line for each edge")


# ------------------------------------------------------------------------------------------------------------- numbers


def _with_isolated(text, head, u, v):
    """The edges between labels, and the vertices without any edge."""
    edges = u.size
    if head.isolated:  # added as loops, which are removed again below
        isolated = np.array(list(map(int, head.isolated)), np.int64)
        u, v = np.append(u, isolated), np.append(v, isolated)
    u, v, n, labels = compact(u, v) if u.size else (u, v, 0, None)
    if n != head.n:
        raise text.error(head.at, f"the heading promises {head.n} vertices, the file holds {n}")
    return u[:edges], v[:edges], n, labels


def _numeric_labels(labels):
    """Labels that an edge list can hold, as int64; else None."""
    if labels is None or len(labels) == 0:
        return None
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or np.unique(labels).size < labels.size:
        return None
    return labels.astype(np.int64) if 0 <= labels.min() and labels.max() <= np.iinfo(np.int64).max else None
