"""Compiled scanners that read numbers from text and write them, on all cores.

A text is cut at line ends into chunks. A first pass counts the lines of each chunk, so that every chunk knows where its
results go; a second pass parses. So memory is allocated for what a file holds, not for what its header claims. In the
compiled functions `p` and `q` are offsets into the text.
"""

import re
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tcgpu.engines.choice import NUMBA
from tcgpu.engines.native import jit, run_threads, shares, uncounted

U64 = np.uint64
NUMBER = rb"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
CHUNK = 1 << 20 if NUMBA else 1 << 14  # bytes scanned by one worker at a time
BLOCK = 1 << 18  # lines written at a time

# what a line is: the first three are no faults
EDGE, ZERO, NOTHING = 0, 1, 2  # ZERO: a matrix entry whose value is 0
MALFORMED, NEGATIVE, OUT_OF_RANGE, NO_VALUE, BINARY, UNEVEN, TOO_WIDE, DIVIDER = 3, 4, 5, 6, 7, 8, 9, 10

MESSAGES = {
    NEGATIVE: "vertex numbers are not negative",
    BINARY: "expected text, but there are other bytes",
    NO_VALUE: "a value is missing that the header promises",
    UNEVEN: "another number of columns than in the lines before, all of whole numbers; "
    "if this is an adjacency list, write a line for each edge",
    DIVIDER: "a line of '#' alone or with a number, as in the formats LGL and TGF, which are no edge lists; "
    "if this is one, leave the line out",
    TOO_WIDE: "more columns than the line of column names has; if the edges are in the second and third, "
    "say columns=(1, 2)",
}

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
QUOTE, HASH, PERCENT, PLUS, COMMA, MINUS, DOT, SLASH, SEMICOLON = 34, 35, 37, 43, 44, 45, 46, 47, 59
NAN, INF, INFINITY = (U64(int.from_bytes(word, "big")) for word in (b"nan", b"inf", b"infinity"))
HUGE = U64(2**64 - 1)

# what `_scan_rows` reports of each chunk. WHOLE: lines in which all columns are whole numbers; NARROW: of two columns
EDGES, ENTRIES, FAULT_AT, FAULT, WHOLE_WIDTH, WHOLE_AT, WHOLE_LINES, NARROW_LINES, FIRST_WIDTH = range(9)


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
    bounds = text.chunk_bounds(first, CHUNK)
    starts = _starts(text, bounds)
    a, b, delimiter = ends or (0, 1, 0)
    for dtype in (np.int32, np.int64):
        u, v = np.empty(starts[-1], dtype), np.empty(starts[-1], dtype)
        found = np.zeros((bounds.size - 1, 9), np.int64)
        most = U64(min(count, np.iinfo(dtype).max + 1))
        scan = _scan_rows if NUMBA else _scan_tables
        _run(scan, text, bounds, starts, U64(low), most, loose, values, a, b, delimiter, widest, u, v, found)
        layout = _layout(found) if loose else None
        if count <= most or OUT_OF_RANGE not in found[:, FAULT]:
            break
    _refuse_first_fault(text, found[:, [FAULT_AT, FAULT]], expected, low, count)
    edges = found[:, EDGES]
    return _close_gaps(u, starts, edges), _close_gaps(v, starts, edges), int(found[:, ENTRIES].sum()), layout


def format_lines(ends, numbers, base, separator):
    """The text of lines of numbers plus base: line k holds those up to `ends[k]`, with the separator between them."""
    if not NUMBA:
        words = list(map(str, (numbers + base).tolist()))
        lines = (separator.join(words[first:last]) for first, last in pairwise([0, *ends.tolist()]))
        return np.frombuffer("".join(f"{line}\n" for line in lines).encode(), np.uint8)
    digits = len(str(int(numbers.max(initial=0)) + base))
    out = np.empty(numbers.size * (digits + 1) + ends.size, np.uint8)
    return out[: _format_lines(ends, numbers, base, ord(separator), out)]


def write_pairs(stream, u, v, base, separator, labels=None):
    """Write lines of pairs of vertices, counted from `base`, or of their labels."""
    for first in range(0, u.size, BLOCK):
        pairs = np.stack((u[first : first + BLOCK], v[first : first + BLOCK]), axis=1).ravel()
        numbers = pairs if labels is None else labels[pairs]
        stream.write(format_lines(np.arange(2, numbers.size + 1, 2), numbers, base, separator))


def _layout(found):
    """The LineWidths of all chunks; a chunk whose lines have another width than those before gets the fault UNEVEN."""
    some = found[:, WHOLE_WIDTH] > 0
    width = int(found[some.argmax(), WHOLE_WIDTH]) if some.any() else 0
    for chunk in np.flatnonzero(some & (found[:, WHOLE_WIDTH] != width)):
        if found[chunk, FAULT] == 0 or found[chunk, WHOLE_AT] < found[chunk, FAULT_AT]:
            found[chunk, [FAULT_AT, FAULT]] = found[chunk, WHOLE_AT], UNEVEN
    first = next((width for width in found[:, FIRST_WIDTH].tolist() if width), 0)
    return LineWidths(width, int(found[:, WHOLE_LINES].sum()), int(found[:, NARROW_LINES].sum()), first)


def _refuse_first_fault(text, faults, expected, low, count):
    """Raise the error about the first `(offset, kind)` that has a kind."""
    for at, fault in faults[faults[:, 1] != 0].tolist():
        raise text.error(at, MESSAGES.get(fault, expected if fault == MALFORMED else allowed(low, count)))


def allowed(low, count):
    """What a message says of a number that is none of the `count` ones from `low` on."""
    return f"vertex numbers here are {low} to {low + count - 1}" if count else "there are to be no vertices"


def _run(function, text, bounds, *args):
    """Run a function over all chunks of a text, on all cores."""
    chunks = max(1, bounds.size - 1)
    workers = min(shares(text.data.size), chunks) if NUMBA else chunks  # those report that the work goes on
    run_threads(function, text.data, bounds, *args, workers=workers)


def _starts(text, bounds):
    """Where the results of each chunk go if every line has one; the last entry is their number."""
    counts = np.zeros(bounds.size, np.int64)

    def count(worker, workers, data, bounds):
        for chunk in range(worker, bounds.size - 1, workers):
            counts[chunk + 1] = np.count_nonzero(data[bounds[chunk] : bounds[chunk + 1]] == NEWLINE)

    _run(count, text, bounds)
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
    worker, workers, data, bounds, starts, low, count, loose, values, a, b, delimiter, widest, u, v, found
):
    """As `_scan_rows`, fast without a compiler for chunks that are tables."""
    given = data, bounds, starts, low, count, loose, values, a, b, delimiter, widest, u, v, found
    for chunk in range(worker, len(found), workers):
        text = data[bounds[chunk] : bounds[chunk + 1]].tobytes()
        table = None if delimiter or values else _table(text, rb"\t ,;" if loose else rb"\t ")
        ends, width, whole = table or (np.zeros((2, 0), U64), 0, ())
        if not width or (ends - low >= count).any() or (loose and 0 < widest < width):
            _scan_rows(chunk, len(found), *given)  # tells what is wrong, too
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
    return numbers[:, :2].T.astype(U64), numbers.shape[1], whole


@jit
def _scan_rows(worker, workers, data, bounds, starts, low, count, loose, values, a, b, delimiter, widest, u, v, found):
    data = uncounted(data)
    for chunk in range(worker, found.shape[0], workers):
        put, entries = starts[chunk], 0
        first_width = whole_width = whole_lines = narrow_lines = 0
        at = bounds[chunk]
        while at < bounds[chunk + 1]:
            kind, x, y, following = NOTHING, U64(0), U64(0), at
            width, whole = 2, True
            if not (delimiter or values):
                kind, x, y, following = _plain_row(data, at, loose)
            if kind == NOTHING:
                kind, x, y, following, width, whole = _row(data, at, loose, values, a, b, delimiter)
            x -= low  # a number below `low` becomes a very large one
            y -= low
            if kind == EDGE and (x >= count or y >= count):
                kind = OUT_OF_RANGE
            if kind == EDGE and loose:
                if widest and width > widest:
                    kind = TOO_WIDE
                elif whole:
                    if whole_width == 0:
                        whole_width = width
                        found[chunk, WHOLE_AT] = at
                    elif whole_width != width:
                        kind = UNEVEN
                    whole_lines += 1
                narrow_lines += width == 2
                if entries == 0:
                    first_width = width
            if kind == EDGE:
                u[U64(put)] = x
                v[U64(put)] = y
                put += 1
                entries += 1
            elif kind == ZERO:
                entries += 1
            elif kind != NOTHING:
                found[chunk, FAULT_AT] = at
                found[chunk, FAULT] = kind
                break
            at = following
        found[chunk, EDGES] = put - starts[chunk]
        found[chunk, ENTRIES] = entries
        found[chunk, WHOLE_WIDTH] = whole_width
        found[chunk, WHOLE_LINES] = whole_lines
        found[chunk, NARROW_LINES] = narrow_lines
        found[chunk, FIRST_WIDTH] = first_width


# --------------------------------------------------------------------------------------------------------------- lines


@jit
def _plain_row(data, p, loose):
    """As `_row` for what most lines of most files are, a number, one separator, a number; NOTHING for other lines."""
    x, q = _number(data, p)
    between = data[U64(q)]
    if q == p or not (between == TAB or between == SPACE or loose and (between == COMMA or between == SEMICOLON)):
        return NOTHING, x, x, p
    y, end = _number(data, q + 1)
    return (EDGE if end > q + 1 and data[U64(end)] == NEWLINE else NOTHING), x, y, end + 1


@jit
def _row(data, p, loose, values, a, b, delimiter):
    """The line at `p`: what it is, its two numbers, the offset of the next line, its columns, and whether all of them
    are whole numbers.

    With a delimiter, the numbers are in the columns `a` and `b`, counted from 0; without one (0) they are the first
    two columns, and what separates them is found from the line.
    """
    none = U64(0)
    q = _after_blanks(data, p)
    if _ends_line(data, q) or _is_comment(data, q, loose):
        kind = DIVIDER if data[U64(q)] == HASH and _is_divider(data, q) else NOTHING
        return kind, none, none, _end_of_line(data, q) + 1, 0, False
    named = delimiter != 0
    if named:  # a tab at the beginning ends an empty cell, unless blanks are the delimiter
        p = _skip_cells(data, q if delimiter == SPACE else p, delimiter, a)
    else:
        p = q
    x, q = _cell(data, p, loose)
    if q == p:
        return _fault(data, p), none, none, p, 0, False
    if named:
        p = _skip_cells(data, q, delimiter, b - a) if _ends_cell(data, q, delimiter) else q
    else:
        delimiter, p = _separator(data, q, loose)
    if p == q:
        return MALFORMED, none, none, p, 0, False
    y, q = _cell(data, p, loose)
    if q == p:
        return _fault(data, p), none, none, p, 0, False
    p = q
    zeros = 0
    for _ in range(values):
        q = _after_blanks(data, p)
        value, end = _value(data, q)
        if q == p or value < 0:
            return NO_VALUE, none, none, p, 0, False
        zeros += value == 0
        p = end
    _, q = _separator(data, p, loose)
    if not (_ends_cell(data, p, delimiter) if named else q > p or _ends_line(data, p)):
        return MALFORMED, none, none, p, 0, False
    p = q
    width = column = b + 1
    whole = not named
    while not _ends_line(data, p):
        column += 1
        _, q = _number(data, p)
        whole &= q > p and (data[U64(q)] <= SPACE or data[U64(q)] == delimiter)
        q = _end_of_cell(data, q, delimiter)
        if data[U64(q)] < SPACE and data[U64(q)] != TAB and not _ends_line(data, q):
            return BINARY, none, none, q, 0, False
        if q > p:
            width = column
        p = q if _ends_line(data, q) else _after_blanks(data, q + 1)
    return (ZERO if values and zeros == values else EDGE), x, y, _end_of_line(data, p) + 1, width, whole


# ---------------------------------------------------------------------------------------------------- cells and numbers


@jit
def _number(data, p):
    """The number that the digits from `p` on make, and where they end; HUGE if 64 bits do not hold it."""
    first = p
    x = U64(0)
    digit = U64(data[U64(p)]) - U64(48)
    while digit <= U64(9):
        x = x * U64(10) + digit
        p += 1
        digit = U64(data[U64(p)]) - U64(48)
    return (x if p - first <= 19 else HUGE), p


@jit
def _cell(data, p, quotes):
    """As `_number`; with `quotes` also a number in double quotes."""
    if quotes and data[U64(p)] == QUOTE:
        x, q = _number(data, p + 1)
        return x, (q + 1 if q > p + 1 and data[U64(q)] == QUOTE else p)
    return _number(data, p)


@jit
def _value(data, p):
    """Read a number of any kind at `p`: 0 if it is zero, 2 if infinite or NaN, -1 if there is none, else 1; its end."""
    if data[U64(p)] == PLUS or data[U64(p)] == MINUS:
        p += 1
    digits = nonzero = dots = 0
    while data[U64(p)] == DOT or 48 <= data[U64(p)] <= 57:
        digits += data[U64(p)] != DOT
        dots += data[U64(p)] == DOT
        nonzero += 49 <= data[U64(p)] <= 57
        p += 1
    if dots > 1:
        return -1, p
    if digits == 0:
        word = U64(0)  # up to eight letters, in lower case
        first = p
        while data[U64(p)] > SPACE:
            word = word << U64(8) | U64(data[U64(p)] | SPACE)
            p += 1
        special = dots == 0 and p - first <= 8 and (word == NAN or word == INF or word == INFINITY)
        return (2 if special else -1), p
    if data[U64(p)] | SPACE == 101:  # e
        p += 1
        if data[U64(p)] == PLUS or data[U64(p)] == MINUS:
            p += 1
        first = p
        _, p = _number(data, p)
        if p == first:
            return -1, p
    return (1 if nonzero else 0), p


@jit
def _fault(data, p):
    """Why there is no number at `p`."""
    if data[U64(p)] == MINUS and 48 <= data[U64(p + 1)] <= 57:
        return NEGATIVE
    return BINARY if data[U64(p)] < TAB or data[U64(p)] > 126 else MALFORMED


@jit
def _after_blanks(data, p, delimiter=SPACE):
    """Skip spaces, and tabs unless they are the delimiter."""
    while data[U64(p)] == SPACE or (data[U64(p)] == TAB and delimiter != TAB):
        p += 1
    return p


@jit
def _separator(data, p, loose):
    """What separates the cell that ends at `p` from the next: COMMA, SEMICOLON, TAB or SPACE; and where that starts."""
    found = np.int64(SPACE)
    while data[U64(p)] == SPACE or data[U64(p)] == TAB:
        found = TAB if data[U64(p)] == TAB else found
        p += 1
    if loose and (data[U64(p)] == COMMA or data[U64(p)] == SEMICOLON):
        return np.int64(data[U64(p)]), _after_blanks(data, p + 1)
    return found, p


@jit
def _is_delimiter(data, p, delimiter):
    return data[U64(p)] == delimiter or (delimiter == SPACE and data[U64(p)] == TAB)


@jit
def _ends_cell(data, p, delimiter):
    """Whether nothing but blanks is between `p` and the end of the cell."""
    q = _after_blanks(data, p, delimiter)
    return _ends_line(data, q) or _is_delimiter(data, q, delimiter) or (delimiter == SPACE and q > p)


@jit
def _end_of_cell(data, p, delimiter):
    """The next delimiter outside quotes, end of line or byte that is no text."""
    quoted = False
    while data[U64(p)] >= SPACE or data[U64(p)] == TAB:
        if not quoted and _is_delimiter(data, p, delimiter):
            break
        quoted ^= data[U64(p)] == QUOTE
        p += 1
    return p


@jit
def _skip_cells(data, p, delimiter, count):
    """The start of the cell that comes `count` cells after the one at `p`; if the line is too short, its end."""
    for _ in range(count):
        p = _end_of_cell(data, p, delimiter)
        if not _is_delimiter(data, p, delimiter):
            return p
        p = _after_blanks(data, p + 1, delimiter)
    return _after_blanks(data, p, delimiter)


@jit
def _ends_line(data, p):
    return data[U64(p)] == NEWLINE or (data[U64(p)] == RETURN and data[U64(p + 1)] == NEWLINE)


@jit
def _end_of_line(data, p):
    while data[U64(p)] != NEWLINE:
        p += 1
    return p


@jit
def _is_comment(data, p, loose):
    first = data[U64(p)]
    return first == PERCENT or (loose and (first == HASH or (first == SLASH and data[U64(p + 1)] == SLASH)))


@jit
def _is_divider(data, p):
    """Whether the comment at `p` has at most a number in it."""
    _, p = _number(data, _after_blanks(data, p + 1))
    return _ends_line(data, _after_blanks(data, p))


# ------------------------------------------------------------------------------------------------------------- writing


@jit
def _format_lines(ends, numbers, base, separator, out):
    out = uncounted(out)
    put = k = 0
    for line in range(ends.size):
        begin, last = put, ends[U64(line)]
        while k < last:
            put = _write_number(out, put, U64(numbers[U64(k)] + base))
            out[U64(put)] = separator
            put += 1
            k += 1
        put -= put > begin  # the newline replaces the last separator
        out[U64(put)] = NEWLINE
        put += 1
    return put


@jit
def _write_number(out, put, x):
    width = 1
    rest = x // U64(10)
    while rest > U64(0):
        rest //= U64(10)
        width += 1
    for k in range(put + width - 1, put - 1, -1):
        out[U64(k)] = U64(48) + x % U64(10)
        x //= U64(10)
    return put + width
