"""Compiled scanners: numbers out of text and into it, on all cores.

A text is cut at line ends into chunks. A first pass counts the lines (and words) of each chunk, so that every chunk
knows where its results go; a second one parses. What memory is asked for depends on what the file holds, never on what
its header says. A fault is reported as the place of its line; the caller words it.
"""

from typing import NamedTuple

import numpy as np

from tcgpu.engines.native import jit, run_threads, shares

U64 = np.uint64
CHUNK = 1 << 20  # bytes

# what a line can be: the first three are no fault
EDGE, ZERO, NOTHING = 0, 1, 2  # ZERO: a matrix entry whose value is 0
MALFORMED, NEGATIVE, OUT_OF_RANGE, NO_VALUE, BINARY, NO_NUMBER, RAGGED, WIDER = 3, 4, 5, 6, 7, 8, 9, 10

TAB, NEWLINE, RETURN, SPACE = 9, 10, 13, 32
QUOTE, HASH, PERCENT, PLUS, COMMA, MINUS, DOT, SLASH, SEMICOLON = 34, 35, 37, 43, 44, 45, 46, 47, 59
NAN, INF, INFINITY = tuple(b"nan"), tuple(b"inf"), tuple(b"infinity")
HUGE = U64(2**64 - 1)


FAULTS = {
    NEGATIVE: "vertex numbers are not negative",
    BINARY: "expected text, but there are other bytes",
    NO_VALUE: "a value is missing that the header promises",
    NO_NUMBER: "a weight is not a number",
    RAGGED: "another number of columns than in the lines before, all of whole numbers; "
    "if this is an adjacency list, write a line for each edge",
    WIDER: "more columns than the line of column names has",
}


class Fault(Exception):
    """A line that could not be parsed: where it begins, and which of the faults above it is."""

    def __init__(self, at, kind):
        self.at, self.kind = at, kind

    def about(self, text, expected, low, count):
        """The GraphError about that line: it is not as `expected`, or not in the `count` numbers from `low` on."""
        allowed = f"vertex numbers here are {low} to {low + count - 1}" if count else "there are to be no vertices"
        return text.fault(self.at, FAULTS.get(self.kind, expected if self.kind == MALFORMED else allowed))


class Layout(NamedTuple):
    """What the lines of an edge list look like."""

    width: int  # columns of the first line in which all are whole numbers, 0 if there is none
    whole: int  # lines in which all columns are whole numbers
    narrow: int  # lines of two columns
    first: int  # columns of the first line


def rows(text, first, low, count, dtype, *, loose, values=0, ends=None, widest=0):
    """Scan lines of two numbers from byte `first` on: `(u, v, entries, layout)`.

    There are `count` numbers from `low` on; in `u` and `v` they are 0, 1, ...

    loose: the lines of an edge list (commas and semicolons separate too, `#`, `%` and `//` begin comments, numbers may
    stand in quotes); else those of a Matrix Market file. `values` numbers must follow in each line; where all of them
    are 0 the line is an entry but no edge. Further columns are ignored, but in an edge list lines of whole numbers must
    have equally many. widest: the most columns a line may have, 0 for any number.
    ends: `(column, column, delimiter)`, where in each line the two numbers are; without it, at the beginning.
    Raises Fault.
    """
    cuts = text.cuts(first, CHUNK)
    starts = _starts(_count_lines, text, cuts)
    u, v = np.empty(starts[-1], dtype), np.empty(starts[-1], dtype)
    found = np.zeros((cuts.size - 1, 9), np.int64)  # of each chunk; _scan_rows says what
    a, b, delimiter = ends or (0, 1, 0)
    bounds = U64(low), U64(count)
    _on_all_cores(_scan_rows, text, cuts, starts, *bounds, loose, values, a, b, delimiter, widest, u, v, found)
    width = 0
    if loose:
        some = found[:, 4] > 0
        width = int(found[some.argmax(), 4]) if some.any() else 0
        for chunk in np.flatnonzero(some & (found[:, 4] != width)):  # other lines than in the chunks before
            if found[chunk, 3] == 0 or found[chunk, 5] < found[chunk, 2]:
                found[chunk, 2:4] = found[chunk, 5], RAGGED
    _raise_first(found[:, 2:4])
    edges, firsts = found[:, 0], found[found[:, 8] > 0, 8]
    layout = Layout(width, int(found[:, 6].sum()), int(found[:, 7].sum()), int(firsts[0]) if firsts.size else 0)
    return _close_gaps(u, starts, edges), _close_gaps(v, starts, edges), int(found[:, 1].sum()), layout


def lists(text, first, count, *, skip, weighted):
    """Scan lines of numbers in 1..count from byte `first` on: `(lengths, numbers)`, the numbers counted from 0.

    Each line but the comments (`%`) gives one length. The first `skip` numbers of a line are passed over, and, where
    `weighted`, the one after each number; an empty line that lacks them has the length -1. Raises Fault.
    """
    cuts = text.cuts(first, CHUNK)
    line_starts, word_starts = _starts(_count_lines, text, cuts), _starts(_count_words, text, cuts)
    lengths, numbers = np.empty(line_starts[-1], np.int64), np.empty(word_starts[-1], np.int32)
    found = np.zeros((cuts.size - 1, 4), np.int64)  # of each chunk: lines, numbers, place and kind of its first fault
    _on_all_cores(
        _scan_lists, text, cuts, line_starts, word_starts, U64(count), skip, weighted, lengths, numbers, found
    )
    _raise_first(found[:, 2:])
    return _close_gaps(lengths, line_starts, found[:, 0]), _close_gaps(numbers, word_starts, found[:, 1])


def format_rows(u, v, base, between):
    """The text of lines `u[k] + base`, the byte `between`, `v[k] + base`."""
    out = np.empty(u.size * 42, np.uint8)  # 20 digits are the most there can be
    return out[: _format_rows(u.astype(np.int64), v.astype(np.int64), base, ord(between), out)]


def format_lists(indptr, indices, base):
    """The text of lines that hold each row of compressed rows, plus `base`, separated by spaces."""
    out = np.empty(indices.size * 11 + indptr.size, np.uint8)  # 10 digits are the most an int32 has
    return out[: _format_lists(indptr, indices, base, out)]


def _on_all_cores(function, text, cuts, *args):
    run_threads(function, text.data, cuts, *args, workers=min(shares(text.data.size), max(1, cuts.size - 1)))


def _starts(count, text, cuts):
    """Where the results of each chunk go, if every line (or word) has one; the last entry is how many that are."""
    counts = np.zeros(cuts.size, np.int64)
    _on_all_cores(count, text, cuts, counts[1:])
    return np.cumsum(counts)


def _raise_first(faults):
    bad = np.flatnonzero(faults[:, 1])
    if bad.size:
        raise Fault(int(faults[bad[0], 0]), int(faults[bad[0], 1]))


def _close_gaps(values, starts, counts):
    """Move the results of each chunk up to those before it, where comments and blank lines have left gaps."""
    put = 0
    for start, count in zip(starts.tolist(), counts.tolist()):
        if put != start:
            values[put : put + count] = values[start : start + count]
        put += count
    return values[:put]


@jit
def _count_lines(worker, workers, data, cuts, counts):
    for chunk in range(worker, counts.size, workers):
        lines = 0
        for k in range(cuts[chunk], cuts[chunk + 1]):
            lines += data[U64(k)] == NEWLINE
        counts[chunk] = lines


@jit
def _count_words(worker, workers, data, cuts, counts):
    """Words end where a blank follows; a chunk ends with a newline, so every word ends inside its chunk."""
    for chunk in range(worker, counts.size, workers):
        words = 0
        for k in range(cuts[chunk], cuts[chunk + 1] - 1):
            words += (data[U64(k)] > SPACE) & (data[U64(k + 1)] <= SPACE)
        counts[chunk] = words


@jit
def _scan_rows(worker, workers, data, cuts, starts, low, count, loose, values, a, b, delimiter, widest, u, v, found):
    """`found` has of each chunk: edges, entries, place and kind of its first fault; of the first line of whole numbers
    its columns and place; lines of whole numbers, lines of two columns; the columns of its first line."""
    for chunk in range(worker, found.shape[0], workers):
        put, entries = starts[chunk], 0
        first_width = whole_width = whole_lines = narrow_lines = 0
        at = cuts[chunk]
        while at < cuts[chunk + 1]:
            if delimiter:
                kind, x, y, following, width, whole = _cells(data, at, delimiter, a, b)
            else:
                kind, x, y, following = _plain_row(data, at, loose)
                width, whole = 2, True
                if kind != EDGE or values:
                    kind, x, y, following, width, whole = _row(data, at, loose, values)
            x -= low  # below it, a number without a sign becomes a very large one
            y -= low
            if kind == EDGE and (x >= count or y >= count):
                kind = OUT_OF_RANGE
            if kind == EDGE and loose:
                if widest and width > widest:
                    kind = WIDER
                elif whole:
                    if whole_width == 0:
                        whole_width = width
                        found[chunk, 5] = at
                    elif whole_width != width:
                        kind = RAGGED
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
                found[chunk, 2] = at
                found[chunk, 3] = kind
                break
            at = following
        found[chunk, 0] = put - starts[chunk]
        found[chunk, 1] = entries
        found[chunk, 4] = whole_width
        found[chunk, 6] = whole_lines
        found[chunk, 7] = narrow_lines
        found[chunk, 8] = first_width


@jit
def _scan_lists(worker, workers, data, cuts, line_starts, word_starts, most, skip, weighted, lengths, numbers, found):
    for chunk in range(worker, found.shape[0], workers):
        line, put = line_starts[chunk], word_starts[chunk]
        at = cuts[chunk]
        while at < cuts[chunk + 1]:
            if data[U64(at)] == PERCENT:
                at = _end_of_line(data, at) + 1
                continue
            kind, count, following = _list(data, at, most, skip, weighted, numbers, put)
            if kind != NOTHING:
                found[chunk, 2] = at
                found[chunk, 3] = kind
                break
            lengths[U64(line)] = count
            line += 1
            put += max(count, 0)
            at = following
        found[chunk, 0] = line - line_starts[chunk]
        found[chunk, 1] = put - word_starts[chunk]


@jit
def _plain_row(data, p, loose):
    """As `_row` for what most lines of most files are, a number, one separator, a number; else NOTHING."""
    x, q = _number(data, p)
    between = data[U64(q)]
    if q == p or not (between == TAB or between == SPACE or loose and (between == COMMA or between == SEMICOLON)):
        return NOTHING, x, x, p
    y, end = _number(data, q + 1)
    return (EDGE if end > q + 1 and data[U64(end)] == NEWLINE else NOTHING), x, y, end + 1


@jit
def _row(data, p, loose, values):
    """One line from byte `p` on: what it is, its two numbers, where the next line begins, how many columns it has, and
    whether all of them are whole numbers."""
    none = U64(0)
    p = _after_blanks(data, p)
    if _ends_line(data, p) or _is_comment(data, p, loose):
        return NOTHING, none, none, _end_of_line(data, p) + 1, 0, False
    x, q = _cell(data, p, loose)
    if q == p:
        return _fault(data, p), none, none, p, 0, False
    delimiter = _delimiter(data, q)
    p = _after_separator(data, q, loose)
    if p == q:
        return MALFORMED, none, none, p, 0, False
    y, q = _cell(data, p, loose)
    if q == p:
        return _fault(data, p), none, none, p, 0, False
    zeros = 0
    p = q
    for _ in range(values):
        q = _after_blanks(data, p)
        value, end = _value(data, q)
        if q == p or value < 0:
            return NO_VALUE, none, none, p, 0, False
        zeros += value == 0
        p = end
    if _after_separator(data, p, loose) == p and not _ends_line(data, p):
        return MALFORMED, none, none, p, 0, False
    p = _after_separator(data, p, loose)
    width, whole = 2, True
    while not _ends_line(data, p):
        width += 1
        _, q = _number(data, p)
        whole &= q > p and (data[U64(q)] <= SPACE or data[U64(q)] == delimiter)
        p = _end_of_cell(data, q, delimiter)
        if data[U64(p)] < SPACE and data[U64(p)] != TAB and not _ends_line(data, p):
            return BINARY, none, none, p, 0, False
        if not _ends_line(data, p):
            p = _after_blanks(data, p + 1)
    return (ZERO if values and zeros == values else EDGE), x, y, _end_of_line(data, p) + 1, width, whole


@jit
def _cells(data, p, delimiter, a, b):
    """As `_row`, the two numbers in the columns `a` and `b`, counted from 0, between delimiters."""
    none = U64(0)
    q = _after_blanks(data, p)
    if _ends_line(data, q) or _is_comment(data, q, True):
        return NOTHING, none, none, _end_of_line(data, q) + 1, 0, False
    x = y = none
    width = 0  # columns up to the last one that is not empty
    column = 0
    while True:
        p = _after_blanks(data, p) if delimiter == SPACE else _after_spaces(data, p)
        q = p
        if column == a or column == b:
            number, q = _cell(data, p, True)
            if q == p:
                return _fault(data, p), none, none, p, 0, False
            end = _after_spaces(data, q)
            if not (_ends_line(data, end) or data[U64(end)] == delimiter or (delimiter == SPACE and end > q)
                    or (delimiter == SPACE and data[U64(end)] == TAB)):  # fmt: skip
                return MALFORMED, none, none, p, 0, False
            if column == a:
                x = number
            else:
                y = number
        q = _end_of_cell(data, q, delimiter)
        if data[U64(q)] < SPACE and data[U64(q)] != TAB and not _ends_line(data, q):
            return BINARY, none, none, p, 0, False
        column += 1
        if q > p:
            width = column
        if _ends_line(data, q):
            break
        p = q + 1
    if column <= max(a, b):
        return MALFORMED, none, none, p, 0, False
    return EDGE, x, y, _end_of_line(data, q) + 1, width, False


@jit
def _list(data, p, most, skip, weighted, numbers, put):
    """One line of a METIS file from byte `p` on; its numbers go to `numbers[put:]`: kind, how many, next line."""
    first = put
    p = _after_blanks(data, p)
    if skip and _ends_line(data, p):
        return NOTHING, -1, _end_of_line(data, p) + 1
    for _ in range(skip):
        kind, p = _after_weight(data, p)
        if kind != NOTHING:
            return kind, 0, p
    while not _ends_line(data, p):
        x, q = _number(data, p)
        if q == p:
            return _fault(data, p), 0, p
        if x < U64(1) or x > most:
            return OUT_OF_RANGE, 0, p
        numbers[U64(put)] = x - U64(1)
        put += 1
        p = _after_blanks(data, q)
        if p == q and not _ends_line(data, p):
            return MALFORMED, 0, p
        if weighted:
            kind, p = _after_weight(data, p)
            if kind != NOTHING:
                return kind, 0, p
    return NOTHING, put - first, _end_of_line(data, p) + 1


@jit
def _after_weight(data, p):
    """Past a finite number and the blanks behind it: NOTHING, or what is wrong with it, and where."""
    if _ends_line(data, p):
        return NO_VALUE, p
    value, q = _value(data, p)
    if value < 0 or value > 1 or not (data[U64(q)] == SPACE or data[U64(q)] == TAB or _ends_line(data, q)):
        return BINARY if _fault(data, p) == BINARY else NO_NUMBER, p
    return NOTHING, _after_blanks(data, q)


@jit
def _number(data, p):
    """The digits from byte `p` on, as a number, and where they end; HUGE where 64 bits do not hold it."""
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
    """As `_number`, where `quotes` also one that stands in double quotes."""
    if quotes and data[U64(p)] == QUOTE:
        x, q = _number(data, p + 1)
        return x, (q + 1 if q > p + 1 and data[U64(q)] == QUOTE else p)
    return _number(data, p)


@jit
def _value(data, p):
    """A number of any kind from byte `p` on, and where it ends: 0 where it is zero, 2 where it is infinite or none
    (`nan`), else 1; -1 where there is no number."""
    if data[U64(p)] == PLUS or data[U64(p)] == MINUS:
        p += 1
    digits = nonzero = 0
    dots = 0
    while data[U64(p)] == DOT or 48 <= data[U64(p)] <= 57:
        digits += data[U64(p)] != DOT
        dots += data[U64(p)] == DOT
        nonzero += 49 <= data[U64(p)] <= 57
        p += 1
    if digits == 0:
        q = _after_word(data, p)
        special = dots == 0 and (_spells(data, p, q, NAN) or _spells(data, p, q, INF) or _spells(data, p, q, INFINITY))
        return (2 if special else -1), q
    if dots > 1:
        return -1, p
    if data[U64(p)] | SPACE == 101:  # e
        p += 1
        if data[U64(p)] == PLUS or data[U64(p)] == MINUS:
            p += 1
        _, q = _number(data, p)
        if q == p:
            return -1, p
        p = q
    return (1 if nonzero else 0), p


@jit
def _spells(data, p, q, word):
    """Whether the bytes from `p` to `q` are a word, in letters of either case."""
    if q - p != len(word):
        return False
    for k in range(len(word)):
        if data[U64(p + k)] | SPACE != word[k]:
            return False
    return True


@jit
def _fault(data, p):
    """Why there is no number at byte `p`."""
    if data[U64(p)] == MINUS and 48 <= data[U64(p + 1)] <= 57:
        return NEGATIVE
    return BINARY if data[U64(p)] < TAB or data[U64(p)] > 126 else MALFORMED


@jit
def _after_blanks(data, p):
    while data[U64(p)] == SPACE or data[U64(p)] == TAB:
        p += 1
    return p


@jit
def _after_separator(data, p, loose):
    """Past blanks and, in an edge list, at most one comma or semicolon."""
    p = _after_blanks(data, p)
    if loose and (data[U64(p)] == COMMA or data[U64(p)] == SEMICOLON):
        p = _after_blanks(data, p + 1)
    return p


@jit
def _after_spaces(data, p):
    while data[U64(p)] == SPACE:
        p += 1
    return p


@jit
def _delimiter(data, p):
    """What separates two columns, from the end of the first one on: COMMA, SEMICOLON, TAB or SPACE."""
    found = SPACE
    while data[U64(p)] == SPACE or data[U64(p)] == TAB:
        if data[U64(p)] == TAB:
            found = TAB
        p += 1
    if data[U64(p)] == COMMA or data[U64(p)] == SEMICOLON:
        return np.int64(data[U64(p)])
    return np.int64(found)


@jit
def _end_of_cell(data, p, delimiter):
    """The next delimiter outside quotes, end of line or byte that is no text, from byte `p` on."""
    quoted = False
    while data[U64(p)] >= SPACE or data[U64(p)] == TAB:
        here = data[U64(p)]
        if not quoted and (here == delimiter or (delimiter == SPACE and here == TAB)):
            break
        quoted ^= here == QUOTE
        p += 1
    return p


@jit
def _after_word(data, p):
    while data[U64(p)] > SPACE:
        p += 1
    return p


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
def _format_rows(u, v, base, between, out):
    put = 0
    for k in range(u.size):
        put = _write_number(out, put, U64(u[U64(k)] + base))
        out[U64(put)] = between
        put = _write_number(out, put + 1, U64(v[U64(k)] + base))
        out[U64(put)] = NEWLINE
        put += 1
    return put


@jit
def _format_lists(indptr, indices, base, out):
    put = 0
    for v in range(indptr.size - 1):
        for k in range(indptr[v] - indptr[0], indptr[v + 1] - indptr[0]):
            put = _write_number(out, put, U64(indices[U64(k)] + base))
            out[U64(put)] = SPACE
            put += 1
        put -= indptr[v + 1] > indptr[v]  # the newline takes the last space's place
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
