"""Edge lists: a line for each edge, two vertex numbers in it (SNAP, CSV, TSV).

Numbers are separated by blanks, tabs, a comma or a semicolon, and may stand in double quotes; lines that begin with
`#`, `%` or `//` are comments. The first line may name the columns: then the two that are called `source` and `target`,
or by another pair of PAIRS, are the ends of an edge; two columns may have any names. Without names they are the first
two columns. Further columns, weights for example, are ignored.

What may be something else than a list of edges is refused: an adjacency list, lines of whole numbers of which some have
more than others, and a first line of sizes (`vertices edges`) before the edges.

In a comment (`.csv` and `.tsv`: among the names of the columns) `write` says how many vertices there are, and `read`
takes it from there: vertices without an edge come back. The heading of a SNAP file, `# Nodes: N Edges: M`, counts
where all vertex numbers are below N. Other readers pass over both.
"""

import csv
import re
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from tcgpu import cleaning
from tcgpu.errors import GraphError
from tcgpu.formats import scan
from tcgpu.formats.files import Text
from tcgpu.formats.vertices import FEW, LONELY, checked_against, checked_memory
from tcgpu.graph import Graph
from tcgpu.ids import compact

BLOCK = 1 << 18  # edges formatted at a time

# what the columns of an edge's two ends are called, without case, punctuation and a last "id" or "node"
PAIRS = (
    ("source", "target"), ("source", "destination"), ("source", "dest"), ("src", "dst"), ("src", "dest"),
    ("src", "tgt"), ("from", "to"), ("u", "v"), ("i", "j"), ("v1", "v2"), ("id1", "id2"), ("node1", "node2"),
    ("vertex1", "vertex2"), ("row", "col"), ("row", "column"),
)  # fmt: skip

_SUFFIX = re.compile(r"(?<=.)(?:node|vertex)?(?:id|idx)?\Z")
_FIRST = re.compile(rb"\s*(\"?)\d+\1([ \t]*)([,;]?)")  # the first number of a line, and what separates it from the next
_SNAP = re.compile(rb"[#%]\s*Nodes:\s*(\d{1,18})\s+Edges:\s*(\d{1,18})\b")
# our own heading, behind that of SNAP: what the numbers are
_NUMBERED, _LABELLED = b"(tcgpu: vertices from 0)", b"(tcgpu: labels)"
_ISOLATED = b"# Isolated:"  # labels of vertices without an edge follow
_COUNT = "vertices="  # their number follows, as the name of a column without entries
_PER_LINE = 1000  # labels of isolated vertices
_WIDEST = 64  # columns of an adjacency list in which all vertices have equally many neighbours


def read(path, base=None, n=None):
    u, v, n, labels = read_edges(path, base, n)
    return Graph.from_edges(u, v, n, labels=labels)


def read_edges(path, base=None, n=None):
    """The edges as they stand: `(u, v, n, labels)`.

    With `base` (0 or 1) the numbers in the file are the vertices, counted from there. With `n` there are that many
    vertices, counted from 0 unless `base` says 1. With neither, the vertices are those that the heading tells of, or
    else those that occur, in ascending order; `labels[v]` is then the number of vertex v in the file (None where that
    is v itself).
    """
    if base not in (None, 0, 1):
        raise GraphError(f"base must be 0 or 1, not {base!r}")
    text = Text(path)
    head = _heading(text)
    if head.kind == _NUMBERED:
        if base == 1:
            raise text.fault(head.at, "vertices are numbered from 0 here, not from 1")
        checked_against(n, head.n, path)
    plain = base is None and n is None
    if plain:
        u, v, layout = _any_numbers(text, head)
    else:
        u, v, layout = _numbers(text, head, base or 0, cleaning.MAX_VERTICES if n is None else n, np.int32)
    _check_heading(text, head, u, v)
    _check_first_line(text, head, u, v, base or 0, layout)
    _check_adjacency(text, head, u, v, base or 0, layout)
    if head.kind == _NUMBERED:
        if n is None:
            checked_memory(head.n, u.size, path)
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), head.n, None
    if plain and head.kind == _LABELLED:
        return _labelled(text, head, u, v)
    if plain and head.n is not None and _is_plausible(head, u, v):
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), head.n, None
    if u.size == 0 and n is None:
        raise text.fault_at_end("no edge in the whole file; if a graph without edges is meant, give n")
    if plain:
        return compact(u, v)
    if n is None:
        n = cleaning.min_max(u, v)[1] + 1
        checked_memory(n, u.size, path, ", else read it with relabel=True (--relabel) or without a base")
    return u, v, n, None


def write(graph, stream, separator, heading):
    """Lines `column separator row`, by labels where these are distinct whole numbers, else by vertex.

    heading: name the columns in the first line, as CSV readers like it; else a comment tells the size, as SNAP's do.
    """
    labels = _numeric_labels(graph.labels)
    isolated = np.flatnonzero(graph.degrees == 0)
    if not heading:
        kind = _NUMBERED if labels is None else _LABELLED
        stream.write(b"# Nodes: %d Edges: %d %b\n" % (graph.n, graph.m, kind))
        if labels is not None:
            for first in range(0, isolated.size, _PER_LINE):
                names = " ".join(map(str, labels[isolated[first : first + _PER_LINE]].tolist()))
                stream.write(b"%b %b\n" % (_ISOLATED, names.encode()))
    elif isolated.size and labels is not None:
        raise GraphError(
            f"{isolated.size} vertices have no edge, and a table of edges (.csv, .tsv) has no place for their labels; "
            "a .txt file has"
        )
    else:
        count = f"{separator}{_COUNT}{graph.n}" if isolated.size or graph.n == 0 else ""
        stream.write(f"source{separator}target{count}\n".encode())
    for first in range(0, graph.m, BLOCK):
        u, v = graph.col_of[first : first + BLOCK], graph.row_idx[first : first + BLOCK]
        if labels is not None:
            u, v = labels[u], labels[v]
        stream.write(scan.format_rows(u, v, 0, separator))


# ------------------------------------------------------------------------------------------------------------- heading


@dataclass
class _Heading:
    """What stands before the edges."""

    at: int = 0  # where the line begins that says the most
    first: int = 0  # where the lines of edges begin
    named: bool = False  # a line of column names is there
    ends: tuple | None = None  # as `scan.rows` takes it
    widest: int = 0  # columns that have a name, 0 if none has
    n: int | None = None  # vertices
    edges: int | None = None
    kind: bytes | None = None  # _NUMBERED or _LABELLED where it is our own, None for another one
    isolated: np.ndarray | None = None  # labels of vertices without an edge


def _heading(text):
    """The _Heading of a text: comments, and perhaps a line of column names."""
    head = _Heading(at=text.start, first=len(text))
    isolated = []
    for at, line in text.lines(text.start):
        if line.startswith(b"%%MatrixMarket"):
            raise text.fault(at, "this is a Matrix Market file; read it with format='mtx', not as an edge list")
        if not line:
            continue
        if not line.startswith((b"#", b"%", b"//")):
            names, delimiter = _column_names(text.cells(at))
            head.first = at
            if names:
                head.first = text.line(at)[1]
                _take_names(text, at, head, names, delimiter)
            break
        if line.startswith(_ISOLATED) and head.kind == _LABELLED:
            isolated += line[len(_ISOLATED) :].decode("ascii", "replace").split()
        elif head.n is None and (found := _SNAP.match(line[:200])):
            kind = bytes(line[found.end() :].strip())
            head.at, head.n, head.edges = at, int(found[1]), int(found[2])
            head.kind = kind if kind in (_NUMBERED, _LABELLED) else None
    if not all(word.isdecimal() and len(word) < 20 and int(word) < 2**63 for word in isolated):
        raise text.fault(head.at, "labels of vertices without an edge are to follow, whole numbers")
    head.isolated = np.array(list(map(int, isolated)), np.int64)
    if head.kind and head.n > cleaning.MAX_VERTICES:
        raise text.fault(head.at, f"{head.n} vertices are more than {cleaning.MAX_VERTICES}, the most there can be")
    return head


def _column_names(line):
    """`(names, delimiter)` of a line of column names; `(None, 0)` for any other line."""
    line = line[: 1 << 16].decode("utf-8", "replace")
    splits = [(_split(line, delimiter), ord(delimiter)) for delimiter in ",;\t "]
    splits = [split for split in splits if len(split[0]) > 1]
    if not splits:
        return None, 0
    # a comma may be part of a name between tabs: what gives two ends is right, else the first that divides the line
    names, delimiter = next((split for split in splits if _pairs(split[0])), splits[0])
    named = any(names) and all(name == "" or name[0].isalpha() or name[0] == "_" for name in names[:2])
    return (names, delimiter) if named else (None, 0)


def _split(line, delimiter):
    """The cells of a line, without quotes."""
    if delimiter == " ":
        return [cell.strip("\"'") for cell in re.findall(r'"[^"]*"|\S+', line)]
    try:
        return [
            cell.strip().strip("'") for cell in next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
        ]
    except csv.Error:
        return []


def _pairs(names):
    """Which of PAIRS these names of columns have."""
    short = set(map(_short, names))
    return [pair for pair in PAIRS if short.issuperset(pair)]


def _take_names(text, at, head, names, delimiter):
    """Find the columns of an edge's two ends by their names; GraphError where there are none or too many."""
    short, pairs = [_short(name) for name in names], _pairs(names)
    shown = "a line of column names"
    if len(pairs) > 1 or any(short.count(name) > 1 for pair in pairs for name in pair):
        raise text.fault(
            at, f"{shown} with more than one column for an end of an edge; leave one source and one target"
        )
    if not pairs and (len(names) > 2 or "" in names):
        raise text.fault(
            at, f"{shown} that does not say which two are the ends of an edge; call them source and target"
        )
    a, b = sorted(short.index(name) for name in pairs[0]) if pairs else (0, 1)
    head.named, head.widest = True, len(names)
    head.ends = None if (a, b) == (0, 1) else (a, b, delimiter)
    if len(names) == 3 and re.fullmatch(rf"{_COUNT}\d{{1,10}}", names[2]):
        head.at, head.n, head.edges, head.kind = at, int(names[2].removeprefix(_COUNT)), None, _NUMBERED


def _short(name):
    """The name of a column as PAIRS has it."""
    return _SUFFIX.sub("", re.sub(r"[\W_]", "", name.casefold()), count=1)


# -------------------------------------------------------------------------------------------------------------- checks


def _check_heading(text, head, u, v):
    """What our own heading promises has to be there. That of others may count in another way."""
    if head.kind is None:
        return
    if head.edges is not None and u.size != head.edges:
        raise text.fault(head.at, f"the heading promises {head.edges} edges, the file holds {u.size}")
    if head.edges is not None and not text.whole_lines:
        raise text.fault_at_end("the last line is cut off: there is no end of line")
    if head.kind == _NUMBERED and u.size and cleaning.min_max(u, v)[1] >= head.n:
        raise text.fault(head.at, f"the heading promises {head.n} vertices from 0 on; there is a larger number")


def _is_plausible(head, u, v):
    """Whether a heading of others tells how many vertices there are, all of them numbered from 0 on."""
    if u.size == 0:
        return head.edges == 0 and head.n <= FEW
    largest = cleaning.min_max(u, v)[1]
    return largest < head.n <= min(max(FEW, LONELY * u.size), cleaning.MAX_VERTICES)


def _check_first_line(text, head, u, v, base, layout):
    """Refuse a first line that is unlike all others, or that fits as the sizes of the graph in the others."""
    if head.named or head.kind or u.size < 2:
        return
    at = head.first
    if u.size > 2 and layout.narrow == (1 if layout.first == 2 else u.size - 1):
        raise text.fault(at, "the first line has another number of columns than all lines behind it")
    words = re.split(rb"[\s,;]+", text.line(at)[0].replace(b'"', b""))
    numbers = [int(word) for word in takewhile(lambda word: word.isdigit() and len(word) < 20, words)]
    rest = u.size - 1
    if not {rest, 2 * rest, rest / 2} & set(numbers[1:]):
        return
    low, high = (number + base for number in cleaning.min_max(u[1:], v[1:]))
    fits = numbers[0] > high or (low >= 1 and numbers[0] == high)
    if not fits:
        return
    counts_edges = (
        rest in numbers[1:]
        or (2 * rest in numbers[1:] and 2 * rest > high)
        or (rest / 2 in numbers[1:] and _is_symmetric(u[1:], v[1:]))
    )
    if counts_edges:
        raise text.fault(
            at,
            f"this may be an edge, or sizes, as {rest} edges with vertices up to {high} follow; "
            "leave it out if it is sizes, move it to the end if it is an edge",
        )


def _is_symmetric(u, v):
    """Whether every edge stands there in both directions."""
    forward, backward = np.lexsort((v, u)), np.lexsort((u, v))
    return np.array_equal(u[forward], v[backward]) and np.array_equal(v[forward], u[backward])


def _check_adjacency(text, head, u, v, base, layout):
    """Refuse lines `vertex neighbour neighbour ...`, equally many in each, which could be edges with further columns.

    They are an adjacency list if no vertex has two lines and the vertices of a line list its vertex, too; where some
    of them have no line, all numbers have to make up one range, or else they are more likely weights.
    """
    if head.named or head.kind or not 3 <= layout.width <= _WIDEST or layout.whole != u.size or u.size < 2:
        return
    if np.unique(u[:1000]).size < min(u.size, 1000) or np.unique(u).size < u.size:
        return
    _, blanks, mark = _FIRST.match(text.line(head.first)[0]).groups()
    delimiter = ord(mark or (b"\t" if b"\t" in blanks else b" "))
    try:
        further = [scan.rows(text, head.first, 0, 2**63, np.int64, loose=True, ends=(0, column, delimiter))[1]
                   for column in range(2, layout.width)]  # fmt: skip
    except scan.Fault:
        return
    near = np.stack([v.astype(np.int64) + base, *further], axis=1)
    own = u.astype(np.int64) + base
    ascending = np.sort(near, axis=1)
    if (ascending[:, 1:] == ascending[:, :-1]).any() or (near == own[:, None]).any():
        return
    numbers, ranks = np.unique(np.concatenate((own, near.ravel())), return_inverse=True)
    own, near = ranks[: u.size], ranks[u.size :].reshape(near.shape)
    forward = own[:, None] * numbers.size + near
    backward = near * numbers.size + own[:, None]
    has_line = np.isin(near, own)
    one_range = numbers[-1] <= numbers.size
    if has_line.any() and np.isin(backward[has_line], forward).all() and (has_line.all() or one_range):
        raise text.fault(head.first, "this looks like an adjacency list; write a line for each edge")


# ------------------------------------------------------------------------------------------------------------- numbers


def _any_numbers(text, head):
    """Numbers of any size, in the narrowest type that holds them."""
    try:
        u, v, _, layout = scan.rows(
            text, head.first, 0, 2**31, np.int32, loose=True, ends=head.ends, widest=head.widest
        )
        return u, v, layout
    except scan.Fault:  # perhaps a larger number; a line that is wrong otherwise is still wrong
        return _numbers(text, head, 0, 2**63, np.int64)


def _numbers(text, head, low, count, dtype):
    try:
        u, v, _, layout = scan.rows(text, head.first, low, count, dtype, loose=True, ends=head.ends, widest=head.widest)
    except scan.Fault as fault:
        raise fault.about(text, "expected two vertex numbers", low, count) from None
    return u, v, layout


def _labelled(text, head, u, v):
    """The edges between labels, and the vertices without any edge."""
    if head.isolated.size:
        one, other = (np.concatenate((ends.astype(np.int64), head.isolated)) for ends in (u, v))
    else:
        one, other = u, v
    if one.size == 0:
        n, labels = 0, None
    else:
        one, other, n, labels = compact(one, other)
    if n != head.n:
        raise text.fault(head.at, f"the heading promises {head.n} vertices, the file holds {n}")
    return one[: u.size], other[: u.size], n, labels


def _numeric_labels(labels):
    """Labels that an edge list can hold, as int64; else None."""
    if labels is None or len(labels) == 0:
        return None
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or np.unique(labels).size < labels.size:
        return None
    return labels.astype(np.int64) if 0 <= labels.min() and labels.max() <= np.iinfo(np.int64).max else None
