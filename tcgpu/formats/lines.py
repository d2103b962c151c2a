"""Compiled functions that read numbers from lines, and write them; `p` and `q` are offsets into the text."""

import numpy as np

from tcgpu.engines.native import U64, jit, uncounted
from tcgpu.formats import kinds

TAB, RETURN = 9, 13
QUOTE, HASH, PERCENT, PLUS, COMMA, MINUS, DOT, SLASH, SEMICOLON = 34, 35, 37, 43, 44, 45, 46, 47, 59
NAN, INF, INFINITY = (U64(int.from_bytes(word, "big")) for word in (b"nan", b"inf", b"infinity"))
HUGE = U64(2**64 - 1)


@jit
def scan_rows(worker, workers, data, bounds, starts, found, low, count, loose, values, a, b, delimiter, widest, u, v):
    data = uncounted(data)
    for chunk in range(worker, bounds.size - 1, workers):
        put, entries = starts[chunk], 0
        first_width = whole_width = whole_lines = narrow_lines = 0
        at = bounds[chunk]
        while at < bounds[chunk + 1]:
            kind, x, y, following = kinds.NOTHING, U64(0), U64(0), at
            width, whole = 2, True
            if not (delimiter or values):
                kind, x, y, following = _plain_row(data, at, loose)
            if kind == kinds.NOTHING:
                kind, x, y, following, width, whole = _row(data, at, loose, values, a, b, delimiter)
            x -= low  # a number below `low` becomes a very large one
            y -= low
            if kind == kinds.EDGE and (x >= count or y >= count):
                kind = kinds.OUT_OF_RANGE
            if kind == kinds.EDGE and loose:
                if widest and width > widest:
                    kind = kinds.TOO_WIDE
                elif whole:
                    if whole_width == 0:
                        whole_width = width
                        found[chunk, kinds.WHOLE_AT] = at
                    elif whole_width != width:
                        kind = kinds.UNEVEN
                    whole_lines += 1
                narrow_lines += width == 2
                if entries == 0:
                    first_width = width
            if kind == kinds.EDGE:
                u[U64(put)] = x
                v[U64(put)] = y
                put += 1
                entries += 1
            elif kind == kinds.ZERO:
                entries += 1
            elif kind != kinds.NOTHING:
                found[chunk, kinds.FAULT_AT] = at
                found[chunk, kinds.FAULT] = kind
                break
            at = following
        found[chunk, kinds.EDGES] = put - starts[chunk]
        found[chunk, kinds.ENTRIES] = entries
        found[chunk, kinds.WHOLE_WIDTH] = whole_width
        found[chunk, kinds.WHOLE_LINES] = whole_lines
        found[chunk, kinds.NARROW_LINES] = narrow_lines
        found[chunk, kinds.FIRST_WIDTH] = first_width


@jit
def _plain_row(data, p, loose):
    """As `_row` for what most lines of most files are, a number, one separator, a number; NOTHING for other lines."""
    x, q = _number(data, p)
    between = data[U64(q)]
    if q == p or not (between == TAB or between == kinds.SPACE or loose and (between == COMMA or between == SEMICOLON)):
        return kinds.NOTHING, x, x, p
    y, end = _number(data, q + 1)
    return (kinds.EDGE if end > q + 1 and data[U64(end)] == kinds.NEWLINE else kinds.NOTHING), x, y, end + 1


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
        kind = kinds.DIVIDER if data[U64(q)] == HASH and _is_divider(data, q) else kinds.NOTHING
        return kind, none, none, _end_of_line(data, q) + 1, 0, False
    named = delimiter != 0
    if named:  # a tab at the beginning ends an empty cell, unless blanks are the delimiter
        p = _skip_cells(data, q if delimiter == kinds.SPACE else p, delimiter, a)
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
        return kinds.MALFORMED, none, none, p, 0, False
    y, q = _cell(data, p, loose)
    if q == p:
        return _fault(data, p), none, none, p, 0, False
    p = q
    zeros = 0
    for _ in range(values):
        q = _after_blanks(data, p)
        value, end = _value(data, q)
        if q == p or value < 0:
            return kinds.NO_VALUE, none, none, p, 0, False
        zeros += value == 0
        p = end
    _, q = _separator(data, p, loose)
    if not (_ends_cell(data, p, delimiter) if named else q > p or _ends_line(data, p)):
        return kinds.MALFORMED, none, none, p, 0, False
    p = q
    width = column = b + 1
    whole = not named
    while not _ends_line(data, p):
        column += 1
        _, q = _number(data, p)
        whole &= q > p and (data[U64(q)] <= kinds.SPACE or data[U64(q)] == delimiter)
        q = _end_of_cell(data, q, delimiter)
        if data[U64(q)] < kinds.SPACE and data[U64(q)] != TAB and not _ends_line(data, q):
            return kinds.BINARY, none, none, q, 0, False
        if q > p:
            width = column
        p = q if _ends_line(data, q) else _after_blanks(data, q + 1)
    return (kinds.ZERO if values and zeros == values else kinds.EDGE), x, y, _end_of_line(data, p) + 1, width, whole


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
        while data[U64(p)] > kinds.SPACE:
            word = word << U64(8) | U64(data[U64(p)] | kinds.SPACE)
            p += 1
        special = dots == 0 and p - first <= 8 and (word == NAN or word == INF or word == INFINITY)
        return (2 if special else -1), p
    if data[U64(p)] | kinds.SPACE == 101:  # e
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
        return kinds.NEGATIVE
    return kinds.BINARY if data[U64(p)] < TAB or data[U64(p)] > 126 else kinds.MALFORMED


@jit
def _after_blanks(data, p, delimiter=kinds.SPACE):
    """Skip spaces, and tabs unless they are the delimiter."""
    while data[U64(p)] == kinds.SPACE or (data[U64(p)] == TAB and delimiter != TAB):
        p += 1
    return p


@jit
def _separator(data, p, loose):
    """What separates the cell that ends at `p` from the next: COMMA, SEMICOLON, TAB or SPACE; and where that starts."""
    found = np.int64(kinds.SPACE)
    while data[U64(p)] == kinds.SPACE or data[U64(p)] == TAB:
        found = TAB if data[U64(p)] == TAB else found
        p += 1
    if loose and (data[U64(p)] == COMMA or data[U64(p)] == SEMICOLON):
        return np.int64(data[U64(p)]), _after_blanks(data, p + 1)
    return found, p


@jit
def _is_delimiter(data, p, delimiter):
    return data[U64(p)] == delimiter or (delimiter == kinds.SPACE and data[U64(p)] == TAB)


@jit
def _ends_cell(data, p, delimiter):
    """Whether nothing but blanks is between `p` and the end of the cell."""
    q = _after_blanks(data, p, delimiter)
    return _ends_line(data, q) or _is_delimiter(data, q, delimiter) or (delimiter == kinds.SPACE and q > p)


@jit
def _end_of_cell(data, p, delimiter):
    """The next delimiter outside quotes, end of line or byte that is no text."""
    quoted = False
    while data[U64(p)] >= kinds.SPACE or data[U64(p)] == TAB:
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
    return data[U64(p)] == kinds.NEWLINE or (data[U64(p)] == RETURN and data[U64(p + 1)] == kinds.NEWLINE)


@jit
def _end_of_line(data, p):
    while data[U64(p)] != kinds.NEWLINE:
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
def format_lines(ends, numbers, base, separator, out):
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
        out[U64(put)] = kinds.NEWLINE
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
