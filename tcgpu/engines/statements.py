"""What the source of a statement tells about a fault there: updates, guarded reads, numbers that may wrap around."""

import ast
import linecache
from functools import cache
from itertools import islice

MIXING = {ast.RShift, ast.BitAnd, ast.BitXor, ast.Mod, ast.Sub}  # with these, unsigned numbers often wrap on purpose
OPERATIONS = ast.BinOp, ast.AugAssign, ast.UnaryOp, ast.Call  # that may overflow; the calls are atomic operations
SIGNED = {"int8", "int16", "int32", "int64", "grid", "gridsize", "len"}  # calls that return a signed integer


def array_of(site):
    """The array of an access, as it is written in the source."""
    return site.expression.partition("[")[0]


def is_update(site):
    """Whether a site is one of an element that is read, changed and written back: `a[i] += 1`."""
    statement = statement_at(site.function.file, site.line)
    return isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Subscript)


def guards(one, two):
    """Whether a read is in the test of an `if` around an atomic operation on that array: it only spares some of them.

    Or what was read is assigned to a variable, and that is in the test.
    """
    load, atomic = sorted((one, two), key=lambda site: site.kind, reverse=True)
    file = load.function.file
    if load.function != atomic.function or array_of(load) != array_of(atomic):
        return False
    statement = statement_at(file, load.line)
    assigned = {ast.unparse(target) for target in getattr(statement, "targets", ())}
    for node in _statements(file):
        if isinstance(node, ast.If) and node.body[0].lineno <= atomic.line <= node.body[-1].end_lineno:
            tested = {part.id for part in ast.walk(node.test) if isinstance(part, ast.Name)}
            if node.test is statement or node.lineno > load.line and assigned & tested:
                return True
    return False


def statement_at(file, line):
    """The syntax tree of the statement at a line of a file; of one with others inside, its first line alone."""
    found = None
    for node in _statements(file):
        if node.lineno <= line <= node.end_lineno:
            found = node  # inner statements come later
    return getattr(found, "test", getattr(found, "iter", found))


@cache
def _statements(file):
    """The syntax trees of all statements of a file; none if it is no file of Python."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return []
    return [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]


def may_not_wrap(frame):
    """Whether the integers that a frame computes with now should not wrap around."""
    statement = statement_at(frame.f_code.co_filename, frame.f_lineno)
    if statement is None:
        return True
    if any(_is_signed(operand, frame) for operand in _operands(_operation(statement, frame))):
        return True  # of signed with unsigned numbers the result is signed
    operations = {type(node) for node in ast.walk(statement)}
    return ast.Mult in operations and not operations & MIXING


def _operation(statement, frame):
    """The part of a statement that a frame computes now; the statement, if it is not known."""
    file, code = frame.f_code.co_filename, frame.f_code
    head = linecache.getline(file, code.co_firstlineno)
    indented = len(head) - len(head.lstrip())  # the columns of the code are those of a function without indentation
    line, end_line, column, end = next(islice(code.co_positions(), frame.f_lasti // 2, None))
    if column is not None:
        place = line, column + indented, end_line, end + indented
        for node in ast.walk(statement):
            if isinstance(node, OPERATIONS):
                if (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset) == place:
                    return node
    return statement


def _operands(operation):
    """The trees of what an operation computes with; of an atomic one, the array."""
    if isinstance(operation, ast.BinOp):
        return [operation.left, operation.right]
    if isinstance(operation, ast.AugAssign):
        return [operation.target, operation.value]
    return operation.args[:1] if isinstance(operation, ast.Call) else [operation]


def _is_signed(node, frame):
    """Whether an expression that a frame evaluates is sure to be a signed integer."""
    if isinstance(node, ast.Name):
        value = frame.f_locals.get(node.id, frame.f_globals.get(node.id))
        return getattr(getattr(value, "dtype", None), "kind", "") == "i"
    if isinstance(node, ast.Attribute):
        return node.attr in ("size", "shape")
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in SIGNED or name in ("min", "max", "abs") and any(_is_signed(arg, frame) for arg in node.args)
    parts = {ast.Subscript: ("value",), ast.BinOp: ("left", "right"), ast.UnaryOp: ("operand",)}
    parts[ast.IfExp] = "body", "orelse"
    return any(_is_signed(getattr(node, part), frame) for part in parts.get(type(node), ()))
