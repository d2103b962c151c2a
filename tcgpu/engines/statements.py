"""What the source of a statement tells about a fault there: updates, guarded reads, numbers that may wrap around."""

import ast
import linecache
from functools import cache

import numpy as np

from tcgpu.engines.integers import POSITIONS

MIXING = {ast.RShift, ast.BitAnd, ast.BitXor, ast.Mod, ast.Sub}  # with these, unsigned numbers often wrap on purpose


def array_of(place):
    """The array of an access, as it is written in the source."""
    return place.expression.partition("[")[0]


def is_update(place):
    """Whether a place is one of an element that is read, changed and written back: `a[i] += 1`."""
    statement = statement_at(place.file, place.line)
    return isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript)


def guards(one, two):
    """Whether a read is the test of an `if` around an atomic operation on that array: it only spares some of them."""
    load, atomic = sorted((one, two), key=lambda place: place.kind, reverse=True)
    if load.file != atomic.file or load.function != atomic.function or array_of(load) != array_of(atomic):
        return False
    first, last = getattr(statement_at(load.file, load.line), "guarded", (0, 0))
    return first <= atomic.line <= last


@cache
def statement_at(file, line):
    """The syntax tree of the statement at a line of a file; of one with others inside, its first line alone."""
    found = None
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:  # no file of Python
        return None
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno <= line <= node.end_lineno:
            found = node  # the walk comes to inner statements later
    if isinstance(found, ast.If):
        found.test.guarded = found.body[0].lineno, found.body[-1].end_lineno
    return getattr(found, "test", getattr(found, "iter", found))


def may_not_wrap(frame):
    """Whether the integers that a frame computes with at its line should not wrap around."""
    statement = statement_at(frame.f_code.co_filename, frame.f_lineno)
    if statement is None:
        return True
    operations = {type(node) for node in ast.walk(statement)}
    return not _has_unsigned(statement, frame) or ast.Mult in operations and not operations & MIXING


def _has_unsigned(statement, frame):
    """Whether an unsigned number takes part in a statement that a frame runs."""
    names = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(statement)}
    if any(name.startswith("uint") or name in POSITIONS for name in names):
        return True
    called = {getattr(node.func, "id", "") for node in ast.walk(statement) if isinstance(node, ast.Call)}
    if called - {"", "int32", "int64", "min", "max", "abs"}:  # a function of unknown type
        return True
    kinds = {getattr(frame.f_locals.get(name), "dtype", np.dtype(bool)).kind for name in names}
    return "u" in kinds
