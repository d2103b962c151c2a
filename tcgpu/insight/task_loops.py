"""Find a kernel's loops of two kinds: the task loop, and loops that count.

In the task loop a block takes one task after the other. It goes on by the size of the grid (`e += cuda.gridsize(1)`),
or by what an atomic operation returned (a queue). Its first round is one task of a block, and the blocks of a larger
grid would run its other rounds. So a sampled block runs one round, and stands for one task.

A loop that counts goes on by the same number each time (`p += threads`), whatever its rounds do. So rounds of it can be
left out: those that are run stand for them.
"""

import ast

GRID_SIZES = ("gridDim", "gridsize")
STEPS = ast.BinOp, ast.operator, ast.Name, ast.Constant, ast.Attribute, ast.expr_context  # that a loop may count by


def task_loops(definition, is_atomic):
    """The loops of a function, as nodes of its syntax tree, that are task loops: none of them is inside another loop.

    is_atomic(call): whether a call returns what an atomic operation returned.
    """
    names, more = set(), True  # those whose values depend on the size of the grid or on an atomic operation

    def depends(value):
        return any(
            (isinstance(node, ast.Attribute) and node.attr in GRID_SIZES)
            or (isinstance(node, ast.Name) and node.id in names)
            or (isinstance(node, ast.Call) and is_atomic(node))
            for node in ast.walk(value)
        )

    def changed(tree):
        return {name for target, value in _assignments(tree) if depends(value) for name in names_in(target)}

    while more:
        more = changed(definition) - names
        names |= more
    return {
        loop
        for loop in _outermost_loops(definition.body)
        if (depends(loop.iter) if isinstance(loop, ast.For) else names_in(loop.test) & changed(loop))
    }


def counting_statement(loop):
    """The statement `name += step` by which a `while` loop counts: all that its test needs changes only there, and by
    the same step each time. None if there is no such statement."""
    if not isinstance(loop, ast.While):
        return None
    names = [node for node in ast.walk(loop) if isinstance(node, ast.Name)]
    changed = [node.id for node in names if isinstance(node.ctx, ast.Store)]
    tested = [name for name in changed if name in names_in(loop.test)]
    for statement in loop.body:
        if isinstance(statement, ast.AugAssign) and isinstance(statement.op, ast.Add):
            constant = all(isinstance(node, STEPS) for node in ast.walk(statement.value))
            if constant and not names_in(statement.value) & set(changed) and tested == [ast.unparse(statement.target)]:
                return statement
    return None


def _assignments(tree):
    """(target, value) of each assignment; those of a tuple one by one where both sides are written as tuples."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pair = target, node.value
                if all(isinstance(side, ast.Tuple) for side in pair) and len(target.elts) == len(node.value.elts):
                    yield from zip(target.elts, node.value.elts, strict=True)
                else:
                    yield pair
        elif isinstance(node, ast.AugAssign):
            yield node.target, node.value


def names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def _outermost_loops(statements):
    for statement in statements:
        if isinstance(statement, (ast.For, ast.While)):
            yield statement
        else:
            for field in ("body", "orelse"):
                yield from _outermost_loops(getattr(statement, field, []))
