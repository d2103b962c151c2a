"""What a trace makes of a kernel's source: the same statements, each of which says that it runs, and what it accesses.

A statement gets a call of the lane's `step` before it; an element that is read, written or changed atomically goes
through the lane's `load`, `at` and `atomic`; loops and calls of device functions tell the lane where it is (see
`recorder.Lane`). Every such place is a `Site` with a number. Within a function the numbers ascend in the order in which
Python runs the sites, so that a lane's way through the kernel is a list of numbers that sorts as it ran.
"""

import ast
import inspect
import itertools
from typing import NamedTuple

from tcgpu.engines.simulator import STAND_IN, YieldWhereItWaits

LANE = "__lane__"  # what a function that is traced calls the thread's `recorder.Lane`
FREE = {
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int32",
    "int64",
    "bool",
    "__int64",
}  # calls that change a type: no instruction
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp)
DIVISION = 20  # instructions that it takes to divide by what is not a constant


class Function(NamedTuple):
    """The source of a kernel or device function."""

    name: str
    file: str
    first: int  # the number of its first line
    lines: tuple[str, ...]


class Site(NamedTuple):
    """A place in the source where something happens."""

    kind: str  # "step", "loop", "call", "load", "store" or "atomic"
    function: Function
    line: int
    operations: int = 0  # of a step: about how many instructions a lane does
    barrier: bool = False  # of a step: whether it waits for the block

    @property
    def text(self):
        return self.function.lines[self.line - self.function.first].strip()


SITES = {}  # number -> Site, of every function that was traced in this process
REGISTERS = {}  # number of a load -> Register
_numbers = itertools.count()


class Register(NamedTuple):
    """Where a compiler would keep what a load reads."""

    expression: str  # what is read, in words of the source
    branches: tuple  # that the load stands in: a number for each


class Recorded(YieldWhereItWaits):
    """Rewrites a kernel or device function so that its lanes say what they do."""

    def __init__(self, function):
        super().__init__(function)
        lines, first = inspect.getsourcelines(function)
        self.function = Function(function.__name__, inspect.getsourcefile(function), first, tuple(lines))
        self.branches = ()  # around what is visited: a number for each that need not be run

    def visit_FunctionDef(self, definition):
        definition.body = self.block(definition.body)
        definition.body[:0] = _statements(f"{LANE} = {STAND_IN}.lane")
        return definition

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, statements):
        """A list of statements, rewritten one after the other."""
        found = []
        for statement in statements:
            if _does_nothing(statement):
                found.append(statement)
            elif isinstance(statement, (ast.While, ast.For)):
                found += self.loop(statement)
            elif isinstance(statement, ast.If):
                found.append(self.step(statement, statement.test))
                statement.test, if_true = self.test(statement.test)
                statement.body = self.branch(self.block, statement.body, if_true)
                statement.orelse = self.branch(self.block, statement.orelse)
                found.append(statement)
            else:
                found += [self.step(statement, statement), self.visit(statement)]
        return found

    def loop(self, loop):
        """A loop that says when it is entered, when each round begins, and when it is left."""
        before, if_true = [], ()
        if isinstance(loop, ast.For):
            before.append(self.step(loop, loop.iter))
            loop.iter = self.visit(loop.iter)
        number = self.site("loop", loop)
        if isinstance(loop, ast.For):
            test = self.site("step", loop, operations=2)
            loop.iter = _expression(f"{LANE}.rounds({test})", loop.iter)
        else:
            again = _expression(f"{LANE}.again({self.step_site(loop, loop.test)})")
            test, if_true = self.test(loop.test)
            loop.test = ast.BoolOp(ast.And(), [again, test])
        loop.body = self.branch(self.block, loop.body, if_true)
        loop.orelse = self.branch(self.block, loop.orelse)
        return [*before, *_statements(f"{LANE}.enter({number})"), loop, *_statements(f"{LANE}.leave()")]

    def step(self, statement, what):
        """The statement that says that a lane comes to this one."""
        return _statements(f"{LANE}.step({self.step_site(statement, what)})")[0]

    def step_site(self, statement, what):
        waits = [call.func.attr for call in ast.walk(what) if isinstance(call, ast.Call) and self.waits(call)]
        barrier = any(name.startswith("syncthreads") for name in waits)
        return self.site("step", statement, operations=self.operations(what), barrier=barrier)

    def operations(self, what):
        """About how many instructions a statement is, its calls of device functions not counted."""
        found = 0
        for node in ast.walk(what):
            if isinstance(node, ARITHMETIC):
                found += DIVISION if self.divides(node) else 1
            elif isinstance(node, ast.Compare):
                found += len(node.ops)
            elif isinstance(node, ast.Subscript):
                found += 2  # where it is, and the access
            elif isinstance(node, ast.Call) and not self.calls_device_function(node):
                found += getattr(node.func, "id", "") not in FREE
        return max(1, found)

    def divides(self, node):
        """Whether it is a division by something that the compiler does not know."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))):
            return False
        names = [part.id for part in ast.walk(node.right) if isinstance(part, ast.Name)]
        return any(not isinstance(self.names.get(name), int) for name in names if name not in FREE)

    # -------------------------------------------------------------------------------------------------------- branches

    def branch(self, visit, node, inside=()):
        """Visit what need not be run whenever the code around it is; `inside`: of which branches it is one."""
        around = self.branches
        self.branches = (*around, *inside, next(_numbers))
        node = visit(node)
        self.branches = around
        return node

    def test(self, node):
        """Visit the test of a statement; also the branches in it that were run if it says yes."""
        if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)):
            return self.visit(node), ()
        around = self.branches
        node = self.visit_BoolOp(node, stay=True)
        taken, self.branches = self.branches[len(around) :], around
        return node, taken

    def visit_BoolOp(self, node, stay=False):
        """Each value after the first is evaluated only if those before it leave the question open."""
        around = self.branches
        node.values[0] = self.visit(node.values[0])
        for k in range(1, len(node.values)):
            self.branches = (*self.branches, next(_numbers))
            node.values[k] = self.visit(node.values[k])
        if not stay:
            self.branches = around
        return node

    def visit_IfExp(self, node):
        node.test, if_true = self.test(node.test)
        node.body = self.branch(self.visit, node.body, if_true)
        node.orelse = self.branch(self.visit, node.orelse)
        return node

    # ----------------------------------------------------------------------------------------------------- expressions

    def visit_Assign(self, statement):
        statement.value = self.visit(statement.value)
        statement.targets = [self.visit(target) for target in statement.targets]
        return statement

    def visit_AugAssign(self, statement):
        if isinstance(statement.target, ast.Subscript):
            target = statement.target
            parts = self.visit(target.value), self.visit(target.slice)
            loaded = self.site("load", target)
            statement.value = self.visit(statement.value)
            statement.target = self.at(target, *parts, loaded)
        else:
            statement.value = self.visit(statement.value)
        return statement

    def visit_Subscript(self, node):
        register = Register(ast.unparse(node), self.branches)
        parts = self.visit(node.value), self.visit(node.slice)
        if isinstance(node.slice, ast.Slice) or isinstance(node.ctx, ast.Del):  # no access yet
            node.value, node.slice = parts
            return node
        if isinstance(node.ctx, ast.Store):
            return self.at(node, *parts)
        number = self.site("load", node)
        REGISTERS[number] = register
        return ast.copy_location(_expression(f"{LANE}.load({number})", *parts), node)

    def at(self, node, array, index, loaded=None):
        """An element that is written: the lane stands for its array, until Python hands it index and value."""
        lane = _expression(f"{LANE}.at({self.site('store', node)}, {loaded})", array)
        return ast.copy_location(ast.Subscript(lane, index, node.ctx), node)

    def visit_Call(self, call):
        if self.is_atomic(call):
            self.generic_visit(call)
            number = self.site("atomic", call)
            return ast.copy_location(_expression(f"{LANE}.atomic({number})", call.func, *call.args), call)
        self.generic_visit(call)
        if self.waits(call):
            return ast.copy_location(_expression(f"{LANE}.met()", ast.Yield(call)), call)
        if not self.calls_device_function(call):
            return call
        waits = self.callee_waits(call)
        number = self.site("call", call)
        told = _expression(f"{LANE}.{'call_waiting' if waits else 'call'}({number})", call.func, *call.args)
        told.keywords = call.keywords
        return ast.copy_location(ast.YieldFrom(told) if waits else told, call)

    def is_atomic(self, call):
        """Whether it is one of `cuda.atomic`'s functions."""
        of = getattr(call.func, "value", None)
        return isinstance(of, ast.Attribute) and of.attr == "atomic" and self.is_cuda(of.value)

    def site(self, kind, node, **more):
        """A number for this place, larger than those before."""
        number = next(_numbers)
        SITES[number] = Site(kind, self.function, self.function.first + node.lineno - 1, **more)
        return number


def _does_nothing(statement):
    """Whether no lane spends time on it: a docstring, or a mere jump."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal))


def _statements(source):
    return ast.parse(source).body


def _expression(source, *more):
    """An expression; if it is a call, with more arguments that are trees already."""
    tree = ast.parse(source, mode="eval").body
    tree.args.extend(more)
    return tree
