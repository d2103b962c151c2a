"""Edge lists: a line for each edge, with two vertex numbers (SNAP, KONECT, CSV, TSV).

Numbers are separated by blanks, tabs, a comma or a semicolon, and may be in double quotes; lines that begin with `#`,
`%` or `//` are comments. The first line may name the columns, or the last comment before the edges, if it has as many
names as they have columns: then those named `source` and `target`, or by another pair of END_NAMES, are the ends of an
edge; if there are only two columns, they may have any names, which are logged. Without names the first two columns are
the ends. Further columns, weights for example, are ignored. The keyword `columns` says which two are the ends.

A file that may not be a list of edges is refused: an adjacency list or matrix, lines with different numbers of whole
numbers, times before the two ends, and a first line of sizes (`vertices edges`) before the edges. What may be meant in
another way, but rarely is, is logged (logger "tcgpu").

A file of KONECT that begins with `% bip` has two sets of vertices, both numbered from 1. With n of them in the first
column, number k of the second column becomes n + k.

`write` stores the number of vertices in a comment (in `.csv` and `.tsv` among the names of the columns), and `read`
uses it, so that vertices without an edge are kept. The heading of a SNAP file, `# Nodes: N Edges: M`, is used if all
vertex numbers are below N. Other readers skip both.
"""

import csv
import logging
import re
from dataclasses import dataclass, field
from itertools import chain, islice, takewhile
from operator import le, lt

import numpy as np

from tcgpu import clean
from tcgpu.errors import FormatError, GraphError
from tcgpu.files import Text
from tcgpu.foreign_graphs import UNNAMED, number_names, pairs_of_ends
from tcgpu.formats import kinds, scan

_FIRST = re.compile(rb"\s*(\"?)\d+\1([ \t]*)([,;]?)")  # the first number of a line, and what separates it from the next
_SNAP = re.compile(rb"[#%]\s*Nodes:\s*(\d{1,18})\s+Edges:\s*(\d{1,18})\b")
_KONECT = re.compile(rb"%\s*(sym|asym|bip)\s+([a-z]+)\s*\Z")
_KONECT_SIZES = re.compile(rb"%\s*\d+\s+(\d{1,10})\s+(\d{1,10})\s*\Z")  # edges, vertices of each column
# our own heading adds to that of SNAP whether the numbers are vertices or labels
_NUMBERED, _LABELLED = b"(tcgpu: vertices from 0)", b"(tcgpu: labels)"
_ISOLATED = b"# Isolated:"  # begins a line of labels of vertices without an edge
_COUNT = "vertices="  # begins the name of an empty column: the number of vertices follows
_LABELS_PER_LINE = 1000
_MAX_TABLE_COLUMNS = 64  # of an adjacency list in which all vertices have equally many neighbours, or a small matrix
SAMPLE = 1000  # lines
_MATRIX = "this may be a matrix; scipy.sparse.csr_array(numpy.loadtxt(...)) is a graph for tcgpu"
_OR_SAY = ", or say columns=(NAME, NAME)"
_NO_NUMBERS = "expected two vertex numbers", "a line of column names that", scan.MESSAGES[kinds.BINARY]  # but names?
log = logging.getLogger("tcgpu")


def read_edges(path, base=None, n=None, columns=None, relabel=False):
    """The raw edges of the file: `(u, v, n, labels)`. The options are those of `formats.read`.

    `labels[v]` is the number or name of vertex v in the file; labels is None if it is always v.
    """
    if columns is not None and not _are_columns(columns):
        raise GraphError(f"columns must be two numbers of columns, from 0 on, or two of their names, not {columns!r}")
    text = Text(path)
    try:
        return _read_numbers(text, base, n, columns)
    except FormatError as error:
        if relabel:
            return _read_names(text, columns, error)
        if base is None and n is None and any(map(str(error).count, _NO_NUMBERS)):
            raise FormatError(f"{error}; relabel=True takes names of vertices, too") from None
        raise


def _read_numbers(text, base, n, columns):
    head = _read_heading(text, columns)
    if head.kind == _NUMBERED:
        if base == 1:
            raise text.error(head.at, "vertices are numbered from 0 here, not from 1")
        scan.check_count(n, head.n, text.path)
    plain = base is None and n is None
    count = 2**63 if plain else clean.MAX_VERTICES if n is None else n
    u, v, _, layout = scan.rows(
        text, head.first, base or 0, count, expected=_NO_NUMBERS[0], loose=True, ends=head.ends,
        widest=head.widest,
    )  # fmt: skip
    if head.doubt:
        log.warning("%s", head.doubt)
    if head.two_mode:
        u, v = _apart(text, head, u, v, base or 0, count)
    largest = None if plain and head.n is None else clean.min_max(u, v)[1]
    _check_heading(text, head, u.size, largest)
    _check_first_line(text, head, u, v, base or 0, layout)
    if not (head.known or head.kind) and u.size > 1:
        _check_table(text, head, u, v, base or 0, layout)
        _check_columns(text, head, u, v, base or 0, layout)
    if head.kind == _NUMBERED and n is None:
        scan.check_memory(head.n, u.size, text.path)
    if head.kind == _NUMBERED or plain and head.kind is None and _is_plausible(head, u.size, largest):
        return u.astype(np.int32, copy=False), v.astype(np.int32, copy=False), head.n, None
    if plain and head.kind == _LABELLED:
        return _with_isolated(text, head, u, v)
    if u.size == 0 and n is None:
        raise text.error_at_end("no edge in the whole file; if that is meant, read it with n=, the number of vertices")
    if plain:
        return clean.compact(u, v)
    if n is None:
        n = largest + 1
        scan.check_memory(n, u.size, text.path, ", else with relabel=True and without base=")
    return u, v, n, None


def _read_names(text, columns, error):
    """The edges between names, as `read_edges`; the error of reading them as numbers, if all of them are numbers."""
    u, v, width, delimiter = [], [], 0, " "
    for at, line in text.lines(text.start):
        comment = line.startswith((b"#", b"%", b"//"))
        if not line or comment and not width:
            continue
        try:
            line = line.decode()
        except UnicodeDecodeError:
            raise text.error(at, "names of vertices are text in UTF-8") from None
        if not width:
            delimiter = next((mark for mark in "\t;," if mark in line), " ")
        cells = _split(line, delimiter)
        if not width:
            width, pairs = len(cells), pairs_of_ends(cells)
            a, b = columns or (pairs[0] if len(pairs) == 1 else (0, 1))
            if isinstance(a, str) and {a, b} <= set(cells):
                a, b, pairs = cells.index(a), cells.index(b), [(a, b)]
            elif isinstance(a, str) or not (columns or pairs) and any(map(_is_name, cells[2:])) or len(pairs) > 1:
                raise text.error(at, "which two columns are the ends of an edge? columns=(0, 1) says the first two")
            if pairs:  # the line has the names of the columns
                continue
        if comment or len(cells) != width or max(a, b) >= width or not (cells[a] and cells[b]) or "\0" in line:
            expected = f"expected {width} columns with the names of two vertices"
            raise text.error(at, f"{expected}; comments go before all edges, names like comments into double quotes")
        u.append(cells[a])
        v.append(cells[b])
    if all(name.removeprefix("-").isdecimal() for name in chain(u, v)):
        raise error
    if u[0].isdecimal() and v[0].isdecimal():
        log.warning("%s; so all ends of edges are read as names", error)
    elif not (columns or pairs) and {u[0], v[0]}.isdisjoint(u[1:] + v[1:]):
        say = "the first line is read as an edge; if it names the columns, say columns=(NAME, NAME)"
        log.warning("%s: %s; found %s", text.path, say, [u[0], v[0]])
    return number_names(u, v)


def write(graph, stream, separator, heading):
    """Write lines `column separator row`: labels if these are distinct whole numbers, else vertices.

    heading: name the columns in the first line, as CSV readers expect; else write a comment with the size, as in SNAP.
    """
    labels = numeric_labels(graph.labels)
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
    comment: bytes = b""  # the last one
    named: bool = False  # there is a line of column names
    known: bool = False  # names, the format, or the caller say which columns are the ends
    doubt: FormatError | None = None  # about the names of the columns, for the log
    ends: tuple | None = None  # as `scan.rows` takes it
    two_mode: bool = False  # the vertices of each column have numbers of their own
    left: int = 0  # vertices of the first column, if they are apart and the heading says how many
    widest: int = 0  # columns that have a name, 0 if none has
    n: int | None = None  # vertices
    edges: int | None = None
    kind: bytes | None = None  # _NUMBERED or _LABELLED if it is our own
    isolated: list = field(default_factory=list)  # labels of vertices without an edge


def _read_heading(text, columns):
    head = _Heading(at=text.start, first=len(text))
    for at, line in text.lines(text.start):
        if line.startswith(b"%%MatrixMarket"):
            raise text.error(at, "this is a Matrix Market file; read it with format='mtx', not as an edge list")
        if not line:
            continue
        if not line.startswith((b"#", b"%", b"//")):
            _find_ends(text, at, head, columns)
            break
        head.comment = line
        if line.startswith(_ISOLATED) and head.kind == _LABELLED:
            head.isolated += line[len(_ISOLATED) :].decode("ascii", "replace").split()
        elif head.n is None and (found := _SNAP.match(line[:200])):
            kind = bytes(line[found.end() :].strip())
            head.at, head.n, head.edges = at, int(found[1]), int(found[2])
            head.kind = kind if kind in (_NUMBERED, _LABELLED) else None
        elif found := _KONECT.match(line[:200]):
            head.at, head.known, head.two_mode = at, True, found[1] == b"bip"
            if found[2] == b"dynamic":
                log.warning("%s", text.error(at, "edges that disappear again (weight -1) are read like all others"))
        elif head.two_mode and (found := _KONECT_SIZES.match(line[:200])):
            head.at, head.left = at, int(found[1])
    if not all(word.isdecimal() and len(word) < 20 and int(word) < 2**63 for word in head.isolated):
        raise text.error(head.at, "labels of vertices without an edge are to follow, whole numbers")
    if head.kind:
        scan.check_most(text, head.at, head.n)
    return head


def _column_names(line):
    """`(names, delimiter)` of a line of column names; `(None, 0)` for any other line."""
    splits = [(cells, ord(delimiter)) for cells, delimiter in _splits(line) if len(cells) > 1]
    if not splits:
        return None, 0
    # a comma may be part of a name between tabs: use the split that gives two ends, else the first one
    names, delimiter = next((split for split in splits if pairs_of_ends(split[0])), splits[0])
    named = any(names) and all(map(_is_name, names[:2])) or names == UNNAMED and delimiter in b",;"
    return (names, delimiter) if named else (None, 0)


def _is_name(cell):
    return cell == "" or cell[0].isalpha() or cell[0] == "_"


def _splits(line):
    """The cells of a line for each delimiter that it may have: a list of (cells, delimiter)."""
    line = line[: 1 << 16].decode("utf-8", "replace")
    return [(_split(line, delimiter), delimiter) for delimiter in ",;\t "]


def _split(line, delimiter):
    """The cells of a line, without quotes."""
    if '"' not in line and "'" not in line:  # as most are, and the quickest
        return [cell.strip() for cell in line.split(None if delimiter == " " else delimiter)]
    if delimiter == " ":
        return [cell.strip("\"'") for cell in re.findall(r'"[^"]*"|\S+', line)]
    try:
        cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        return []
    return [cell.strip().strip("'") for cell in cells]


def _find_ends(text, at, head, columns):
    """Set where the edges begin, and the columns of an edge's two ends, from the first line that is no comment."""
    line = text.line(at, b" \r")[0]  # a tab at an end delimits an empty cell
    names, delimiter = _column_names(line)
    pairs = []
    if columns is not None:
        names, *pairs, delimiter = _find_columns(text, at, line, columns)
    elif names:
        pairs, problem = pairs_of_ends(names), ""
        if len(pairs) > 1:
            problem = "with more than one column for an end of an edge; leave one source and one target"
        elif not pairs and (len(names) > 2 or "" in names):
            problem = "that does not say which two are the ends of an edge; call them source and target"
        if problem:
            raise text.error(at, f"a line of column names {problem}{_OR_SAY}")
        if not pairs:
            say = "both columns are read as numbers of the same vertices; if they are, say columns=(0, 1)"
            head.doubt, pairs = text.error(at, say), [(0, 1)]
    else:
        named, _ = _column_names(head.comment.lstrip(b"#%/ \t"))
        cells, delimiter = next(((cells, ord(mark)) for cells, mark in _splits(line) if len(cells) > 1), ([], 0))
        pairs = pairs_of_ends(named) if named and len(named) == len(cells) else []
    if names:
        head.named, head.widest = True, len(names)
        if len(names) == 3 and re.fullmatch(rf"{_COUNT}\d{{1,10}}", names[2]):
            head.at, head.n, head.edges, head.kind = at, int(names[2].removeprefix(_COUNT)), None, _NUMBERED
    head.first = text.line(at)[1] if names else at
    if len(pairs) == 1:
        head.known, (a, b) = True, sorted(pairs[0])
        head.ends = None if (a, b) == (0, 1) else (a, b, delimiter)


def _are_columns(columns):
    """Whether two columns are given as `read_edges` takes them."""
    if not isinstance(columns, (tuple, list)) or len(columns) != 2 or columns[0] == columns[1]:
        return False
    return all(isinstance(c, str) for c in columns) or all(type(c) is int and c >= 0 for c in columns)


def _find_columns(text, at, line, columns):
    """`(names or None, (column, column), delimiter)` of the columns that the caller names or numbers."""
    by_name = isinstance(columns[0], str)
    if by_name:
        splits = [split for split in _splits(line) if set(columns) <= {*split[0]}]
    else:  # R leaves the name of the first column out
        most = max(columns)
        splits = [([""] * (len(cells) == most) + cells, mark) for cells, mark in _splits(line) if len(cells) >= most]
    if not splits:
        raise text.error(at, f"expected columns {columns[0]!r} and {columns[1]!r}" + " in the line of names" * by_name)
    # blanks and commas may be part of other columns: numbers show which split is meant
    cells, mark = next((s for s in splits if not by_name and all(s[0][c].isdecimal() for c in columns)), splits[0])
    a, b = map(cells.index, columns) if by_name else columns
    named = by_name or _is_name(cells[a]) or _is_name(cells[b])
    return cells if named else None, (a, b), ord(mark)


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
        return head.n is not None and head.edges == 0 and head.n <= scan.ALWAYS_ALLOWED
    return largest < head.n <= min(max(scan.ALWAYS_ALLOWED, scan.MAX_PER_EDGE * edges), clean.MAX_VERTICES)


def _check_first_line(text, head, u, v, base, layout):
    """Refuse a first line that has other columns than all others, or that may hold the sizes of the graph."""
    if head.named or head.kind or head.ends or u.size < 2:
        return
    at = head.first
    if u.size > 2 and layout.narrow == (1 if layout.first == 2 else u.size - 1):
        raise text.error(at, "the first line has another number of columns than all lines after it")
    words = re.split(rb"[\s,;]+", text.line(at)[0].replace(b'"', b""))
    n, *sizes = [int(word) for word in takewhile(lambda word: word.isdigit() and len(word) < 20, words)]
    edges = u.size - 1
    if not {edges, 2 * edges, edges / 2} & set(sizes):
        return
    low, high = (number + base for number in clean.min_max(u[1:], v[1:]))
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


def _check_columns(text, head, u, v, base, layout):
    """Refuse, or tell about, lines that may begin with a time or with their own number, and a first line that may
    number the columns."""
    numbers = [str(k) for k in range(layout.first)]
    numbered = any(cells == numbers for cells, mark in _splits(text.line(head.first)[0]) if mark != " ")
    if numbered and not head.comment and (u[1:] + v[1:] != 1).all():
        say = "this is read as an edge; if it numbers the columns, as pandas writes them, leave it out"
        log.warning("%s", text.error(head.first, f"{say}, else say columns=(0, 1)"))
    some = (line.replace(b'"', b"") for _, line in islice(text.lines(head.first), SAMPLE))
    cells = [re.split(rb"[\s,;]+", line) for line in some if line[:1].isdigit()]
    if not all(len(line) > 2 and line[2].isdigit() and len(line[2]) < 20 for line in cells):
        return
    second, third = ([int(line[k]) for line in cells] for k in (1, 2))
    shared = {*second} & {*third}
    alike = u.size > 3 and len({*third}) > 2 and 2 * len(shared) >= len({*third})  # so these are vertices, not weights
    what = None
    if _rises(u, lt):
        what = "numbers"
    elif _are_apart(u[:SAMPLE], v) and _are_apart(u, v) or shared and all(map(lt, second, third)) and _rises(u, le):
        what = "times"
    if what:
        say = "if the ends of the edges are in the next two, say columns=(1, 2), else columns=(0, 1)"
        error = text.error(head.first, f"the first column may hold the {what} of the lines: {say}")
        if alike:
            raise error
        log.warning("%s", error)


def _rises(values, compare):
    """Whether each value is less than the next, or with another `compare` at most as large."""
    return all(compare(some[:-1], some[1:]).all() for some in (values[:SAMPLE], values))


def _are_apart(values, others):
    """Whether most of the distinct values are outside the range of the others."""
    low, high = clean.min_max(others, others)
    distinct = np.unique(values)
    return 2 * np.count_nonzero((distinct >= low) & (distinct <= high)) < distinct.size


def _check_table(text, head, u, v, base, layout):
    """Refuse a matrix, and lines `vertex neighbour neighbour ...`, equally many in each, which could be edges with
    further columns.

    They are a matrix if they are square and hold 0 and 1 only, or zeros in the diagonal. They are an adjacency list if
    no vertex has two lines and the vertices of a line list its vertex, too; if some of them have no line, all numbers
    must make up one range, or else they are more likely weights.
    """
    side = min(u.size, layout.width)
    square = side >= 3 and abs(u.size - layout.width) <= 1  # names may be above it, or before its lines
    if layout.width < 3 or layout.whole != u.size:
        return
    if square and layout.width > _MAX_TABLE_COLUMNS:
        raise text.error(head.first, _MATRIX)
    unique = all(np.unique(some).size == some.size for some in (u[:SAMPLE], u))
    if not (square or unique and layout.width <= _MAX_TABLE_COLUMNS):
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
    matrix = lines[-side:, -side:]
    if square and (matrix.max() <= 1 or not matrix.diagonal().any()):
        raise text.error(head.first, _MATRIX)
    if not unique or (np.diff(np.sort(lines, axis=1)) == 0).any():
        return
    numbers, ranks = np.unique(lines, return_inverse=True)
    own, near = np.split(ranks.reshape(lines.shape), [1], axis=1)
    forward, backward = own * numbers.size + near, near * numbers.size + own
    has_line = np.isin(near, own)
    one_range = numbers[-1] <= numbers.size
    if has_line.any() and np.isin(backward[has_line], forward).all() and (has_line.all() or one_range):
        raise text.error(head.first, "this looks like an adjacency list; write a line for each edge")


# ------------------------------------------------------------------------------------------------------------- numbers


def _apart(text, head, u, v, base, count):
    """Number the vertices of the second column after those of the first."""
    if u.size == 0:
        return u, v
    low, high = clean.min_max(u, u)
    left = head.left or high + base
    if min(low, clean.min_max(v, v)[0]) + base < 1 or high + base > left:
        raise text.error(head.at, f"expected vertex numbers from 1 on, in the first column up to {left}")
    u, v = u.astype(np.int64), v.astype(np.int64) + left
    if v.max() >= count:
        raise text.error(head.at, f"{left} vertices of the first column and those of the second are more than {count}")
    return u, v


def _with_isolated(text, head, u, v):
    """The edges between labels, and the vertices without any edge."""
    edges = u.size
    if head.isolated:  # added as loops, which are removed again below
        isolated = np.array(list(map(int, head.isolated)), np.int64)
        u, v = np.append(u, isolated), np.append(v, isolated)
    u, v, n, labels = clean.compact(u, v) if u.size else (u, v, 0, None)
    if n != head.n:
        raise text.error(head.at, f"the heading promises {head.n} vertices, the file holds {n}")
    return u[:edges], v[:edges], n, labels


def numeric_labels(labels):
    """Labels that an edge list can hold, as int64; else None."""
    if labels is None or len(labels) == 0:
        return None
    labels = np.asarray(labels)
    if labels.ndim != 1 or labels.dtype.kind not in "iu" or np.unique(labels).size < labels.size:
        return None
    return labels.astype(np.int64) if 0 <= labels.min() and labels.max() <= np.iinfo(np.int64).max else None
