"""Read numbers from text, and write them: compiled on all cores, by `lines`; small texts in NumPy.

A text is cut at line ends into chunks. A first pass counts the lines of each chunk, so that every chunk knows where its
results go; a second pass parses. So memory is allocated for what a file holds, not for what its header claims.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tcgpu import progress
from tcgpu.clean import MAX_VERTICES
from tcgpu.engines.choice import in_numpy
from tcgpu.errors import FormatError
from tcgpu.formats import kinds

NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
CHUNK, NUMPY_CHUNK = 1 << 20, 1 << 14  # bytes scanned by one worker, or in NumPy, at a time
PIECE = 64  # chunks between two reports of what is done
BLOCK = 1 << 18  # lines written at a time
ALWAYS_ALLOWED = 1 << 24  # vertices that any machine has memory for
MAX_PER_EDGE = 256  # more vertices than this for each edge look like a mistake

MESSAGES = {
    kinds.NEGATIVE: "vertex numbers are not negative",
    kinds.BINARY: "expected text, but there are other bytes",
    kinds.NO_VALUE: "a value is missing that the header promises",
    kinds.UNEVEN: "another number of columns than in the lines before, all of whole numbers; "
    "if this is an adjacency list, write a line for each edge",
    kinds.DIVIDER: "a line of '#' alone or with a number, as in the formats LGL and TGF, which are no edge lists; "
    "if this is one, leave the line out",
    kinds.TOO_WIDE: "more columns than the line of column names has; if the edges are in the second and third, "
    "say columns=(1, 2)",
}


class LineWidths(NamedTuple):
    """What the lines of an edge list look like."""

    width: int  # columns of the first line in which all columns are whole numbers, 0 if there is none
    whole: int  # lines in which all columns are whole numbers
    narrow: int  # lines of two columns
    first: int  # columns of the first line


def rows(text, first, low, count, *, expected, loose, values=0, ends=None, widest=0):
    """Scan lines of two numbers from offset `first` on: `(u, v, entries, layout)`.

    There are `count` allowed numbers, from `low` on; in `u` and `v` they are counted from 0, as int32 if all fit.

    expected: what a message says that a line should hold.
    loose: True for an edge list (commas and semicolons separate too, `#`, `%` and `//` begin comments, numbers may be
    quoted, and lines of whole numbers must have equally many), False for a Matrix Market file.
    values: how many numbers must follow in each line; if all of them are 0, the line is an entry but no edge. Further
    columns are ignored.
    ends: `(column, column, delimiter)`, where the two numbers are; without it, at the beginning.
    widest: the most columns that a line may have, 0 for any number.
    """
    compiled = not in_numpy(text.data.size)
    bounds = text.chunk_bounds(first, CHUNK if compiled else min(CHUNK, NUMPY_CHUNK))
    starts = _starts(text, bounds, compiled)
    a, b, delimiter = ends or (0, 1, 0)
    for dtype in (np.int32, np.int64):
        u, v = np.empty(starts[-1], dtype), np.empty(starts[-1], dtype)
        found = np.zeros((bounds.size - 1, 9), np.int64)
        most = np.uint64(min(count, np.iinfo(dtype).max + 1))
        scan = _compiled_rows() if compiled else _scan_tables
        how = np.uint64(low), most, loose, values, a, b, delimiter, widest
        _run(compiled, scan, text, (bounds, starts, found), *how, u, v)
        layout = _layout(found) if loose else None
        if count <= most or kinds.OUT_OF_RANGE not in found[:, kinds.FAULT]:
            break
    for at, fault in found[found[:, kinds.FAULT] != 0][:, [kinds.FAULT_AT, kinds.FAULT]].tolist():
        raise text.error(at, MESSAGES.get(fault, expected if fault == kinds.MALFORMED else allowed(low, count)))
    edges = found[:, kinds.EDGES]
    return _close_gaps(u, starts, edges), _close_gaps(v, starts, edges), int(found[:, kinds.ENTRIES].sum()), layout


def format_lines(ends, numbers, base, separator):
    """The text of lines of numbers plus base: line k holds those up to `ends[k]`, with the separator between them."""
    if in_numpy(numbers.size):
        words = list(map(str, (numbers + base).tolist()))
        lines = (separator.join(words[first:last]) for first, last in pairwise([0, *ends.tolist()]))
        return np.frombuffer("".join(f"{line}\n" for line in lines).encode(), np.uint8)
    digits = len(str(int(numbers.max(initial=0)) + base))
    out = np.empty(numbers.size * (digits + 1) + ends.size, np.uint8)
    from tcgpu.formats import lines

    return out[: lines.format_lines(ends, numbers, base, ord(separator), out)]


def write_pairs(stream, u, v, base, separator, labels=None):
    """Write lines of pairs of vertices, counted from `base`, or of their labels."""
    for first in range(0, u.size, BLOCK):
        pairs = np.stack((u[first : first + BLOCK], v[first : first + BLOCK]), axis=1).ravel()
        numbers = pairs if labels is None else labels[pairs]
        stream.write(format_lines(np.arange(2, numbers.size + 1, 2), numbers, base, separator))


def _layout(found):
    """The LineWidths of all chunks; a chunk whose lines have another width than those before gets the fault UNEVEN."""
    some = found[:, kinds.WHOLE_WIDTH] > 0
    width = int(found[some.argmax(), kinds.WHOLE_WIDTH]) if some.any() else 0
    for chunk in np.flatnonzero(some & (found[:, kinds.WHOLE_WIDTH] != width)):
        if found[chunk, kinds.FAULT] == 0 or found[chunk, kinds.WHOLE_AT] < found[chunk, kinds.FAULT_AT]:
            found[chunk, [kinds.FAULT_AT, kinds.FAULT]] = found[chunk, kinds.WHOLE_AT], kinds.UNEVEN
    first = next((width for width in found[:, kinds.FIRST_WIDTH].tolist() if width), 0)
    return LineWidths(width, int(found[:, kinds.WHOLE_LINES].sum()), int(found[:, kinds.NARROW_LINES].sum()), first)


def allowed(low, count):
    """What a message says of a number that is none of the `count` ones from `low` on."""
    return f"vertex numbers here are {low} to {low + count - 1}" if count else "there are to be no vertices"


def _run(compiled, function, text, of_chunks, *args):
    """Run a function over the chunks of a text, one after the other; if it is compiled, PIECE of them on all cores.

    of_chunks: the bounds of the chunks and other arrays with an entry for each, of which it gets its part.
    """
    chunks, step = max(1, of_chunks[0].size - 1), PIECE if compiled else 1
    for first in range(0, chunks, step):
        progress.pulse(first / chunks)
        given = text.data, *(array[first : first + step + 1] for array in of_chunks), *args
        if compiled:
            from tcgpu.engines.native import run_threads, shares

            run_threads(function, *given, workers=min(shares(text.data.size), chunks))
        else:
            function(0, 1, *given)


def _compiled_rows():
    from tcgpu.formats import lines

    return lines.scan_rows


def _starts(text, bounds, compiled):
    """Where the results of each chunk go if every line has one; the last entry is their number."""
    counts = np.zeros(bounds.size, np.int64)

    def count(worker, workers, data, bounds, counts):
        for chunk in range(worker, bounds.size - 1, workers):
            counts[chunk] = np.count_nonzero(data[bounds[chunk] : bounds[chunk + 1]] == kinds.NEWLINE)

    with progress.part(0, 5):  # about as long as a fifth of what comes next
        _run(compiled, count, text, (bounds, counts[1:]))
    return np.cumsum(counts)


def _close_gaps(values, starts, counts):
    """Move the results of the chunks together; comments and blank lines leave gaps between them."""
    put = 0
    for start, count in zip(starts[:-1].tolist(), counts.tolist(), strict=True):
        if put != start:
            values[put : put + count] = values[start : start + count]
        put += count
    return values[:put]


# -------------------------------------------------------------------------------------------------------------- chunks


def _scan_tables(
    worker, workers, data, bounds, starts, found, low, count, loose, values, a, b, delimiter, widest, u, v
):
    """As `lines.scan_rows`, fast without a compiler for chunks that are tables."""
    given = data, bounds, starts, found, low, count, loose, values, a, b, delimiter, widest, u, v
    for chunk in range(worker, bounds.size - 1, workers):
        text = data[bounds[chunk] : bounds[chunk + 1]].tobytes()
        table = None if delimiter or values else _table(text, rb"\t ,;" if loose else rb"\t ")
        ends, width, whole = table or (np.zeros((2, 0), np.uint64), 0, ())
        if not width or (ends - low >= count).any() or (loose and 0 < widest < width):
            _compiled_rows()(chunk, bounds.size, *given)  # tells what is wrong, too
            continue
        place = slice(starts[chunk], starts[chunk] + len(whole))
        u[place], v[place] = ends - low
        before = text.splitlines(True)[: whole.index(True)] if any(whole) else ()
        of_whole = width * any(whole), bounds[chunk] + sum(map(len, before)), sum(whole)
        found[chunk] = len(whole), len(whole), 0, 0, *of_whole, len(whole) * (width == 2), width


def _table(text, separators):
    """Of lines of equally many numbers, with one separator, the first two whole: these two columns, the number of
    columns, and which lines have only whole numbers; None for other text."""
    found = re.fullmatch(rb"(?:\d{1,15}([%b])\d{1,15}(?:\1%b)*\r?\n)+" % (separators, NUMBER), text)
    lines = text.splitlines()
    if not found or len({line.count(found[1]) for line in lines}) > 1:
        return None
    whole = [line.replace(found[1], b"").isdigit() for line in lines]
    numbers = np.fromstring(text.replace(found[1], b" "), np.int64 if all(whole) else np.float64, sep=" ")
    numbers = numbers.reshape(len(lines), -1)
    return numbers[:, :2].T.astype(np.uint64), numbers.shape[1], whole


def check_memory(n, edges, path, or_else=""):
    """Refuse a vertex count that a few bytes claim and that takes gigabytes; `or_else` names another way out."""
    if n > ALWAYS_ALLOWED and n > MAX_PER_EDGE * edges:
        size = f"{8 * n / 1e9:.1f} GB"
        raise FormatError(
            f"{path}: {n} vertices for {edges} edges would take {size}; if that is meant, read it with n={n}{or_else}"
        )


def check_count(n, found, path):
    """Refuse a file that has another number of vertices than the caller's `n`."""
    if n is not None and n != found:
        raise FormatError(f"{path} has {found} vertices, not n={n}")


def check_most(text, at, n):
    """Refuse more vertices than a graph can have, which the line at `at` promises."""
    if n > MAX_VERTICES:
        raise text.error(at, f"{n} vertices are more than {MAX_VERTICES}, the most there can be")
