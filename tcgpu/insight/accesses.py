"""Instrument a kernel's source so that its threads report the elements of arrays that they read, write or change.

An element that is read, written or changed atomically goes through methods of the thread's *lane*: `load`, `at` and
`atomic`; so does each wait for other threads: `waits` and `waited`. `at` returns a `Target`, which calls `load_old` and
`store`. What a lane does there is up to who instruments: `tcgpu.insight.faults` looks for faults, `tcgpu.insight`
records what the hardware would do.
"""

import ast

from tcgpu.engines.simulator import STAND_IN, YieldWhereItWaits

LANE = "__lane__"  # the name of the thread's lane in an instrumented function


class Target:
    """Stands for an array of which an element is about to be written; and read before, unless `loaded` is None.

    Python gives it the index and the value: `Target(lane, stored, loaded, array)[index] += value`. Each statement has
    its own, since `value` may call functions that write to other arrays.
    """

    __slots__ = ("array", "lane", "loaded", "stored")

    def __init__(self, lane, stored, loaded, array):
        self.lane, self.stored, self.loaded, self.array = lane, stored, loaded, array

    def __getitem__(self, index):
        return self.lane.load_old(self.loaded, self.array, index)

    def __setitem__(self, index, value):
        self.lane.store(self.stored, self.array, index, value)


class ReportAccesses(YieldWhereItWaits):
    """Rewrites a kernel or device function so that its threads report what they access.

    `site(kind, node, expression)` returns a number for a place in the source, in the order in which Python runs them.
    kind: "load", "store", "atomic" or "wait". expression, as source: what is read; of an access that writes, the array.
    """

    def site(self, kind, node, expression=""):
        raise TypeError("a subclass numbers the sites")

    def visit_FunctionDef(self, definition):
        self.generic_visit(definition)
        definition.body[:0] = statements(f"{LANE} = {STAND_IN}.lane")
        return definition

    def visit_Assign(self, statement):
        statement.value = self.visit(statement.value)
        statement.targets = [self.visit(target) for target in statement.targets]
        return statement

    def visit_AugAssign(self, statement):
        target = statement.target
        if isinstance(target, ast.Subscript):
            array, expression = ast.unparse(target.value), ast.unparse(target)
            parts = self.visit(target.value), self.visit(target.slice)
            loaded = self.site("load", target, expression=expression)
            statement.value = self.visit(statement.value)
            statement.target = self.at(target, array, *parts, loaded)
        else:
            statement.value = self.visit(statement.value)
        return statement

    def visit_Subscript(self, node):
        expression, array = ast.unparse(node), ast.unparse(node.value)
        parts = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.slice, ast.Slice) or isinstance(node.ctx, ast.Del):  # no access yet
            node.value, node.slice = parts
            return node
        if isinstance(node.ctx, ast.Store):
            return self.at(node, array, *parts)
        number = self.site("load", node, expression=expression)
        return ast.copy_location(expression_of(f"{LANE}.load({number})", *parts), node)

    def at(self, node, expression, array, index, loaded=None):
        """An element that is written: a Target stands for its array."""
        number = self.site("store", node, expression=expression)
        lane = expression_of(f"{LANE}.at({number}, {loaded})", array)
        return ast.copy_location(ast.Subscript(lane, index, node.ctx), node)

    def visit_Call(self, call):
        array = ast.unparse(call.args[0]) if self.is_atomic(call) else ""
        self.generic_visit(call)
        found = call
        if self.is_atomic(call):
            number = self.site("atomic", call, expression=array)
            found = expression_of(f"{LANE}.atomic({number})", call.func, *call.args)
        elif self.waits(call):
            found = self.waiting(call)
        elif self.calls_device_function(call):
            found = self.calling(call)
        return ast.copy_location(found, call)

    def waiting(self, call):
        """A call that waits for other threads, as the lane reports it."""
        return expression_of(f"{LANE}.waited()", ast.Yield(call))

    def calling(self, call):
        """A call of a device function."""
        return ast.YieldFrom(call) if self.callee_waits(call) else call

    def is_atomic(self, call):
        """Whether it is one of `cuda.atomic`'s functions."""
        of = getattr(call.func, "value", None)
        return isinstance(of, ast.Attribute) and of.attr == "atomic" and self.is_cuda(of.value)


def statements(source):
    """The trees of some statements."""
    return ast.parse(source).body


def expression_of(source, *more):
    """The tree of an expression; if it is a call, with more arguments, which are trees already.

    It has no line: the tree that it becomes a part of gives it one.
    """
    tree = ast.parse(source, mode="eval").body
    for node in ast.walk(tree):
        for attribute in node._attributes:
            vars(node).pop(attribute, None)
    tree.args.extend(more)
    return tree
