"""Instrument a kernel's source: the same statements, each of which reports that it runs, and what it accesses.

A statement gets a call of the lane's `step` before it; an element that is read, written or changed atomically goes
through the lane's `load`, `at` and `atomic`; loops and calls of device functions tell the lane where it is (see
`recorder.Lane`). Each such place is a `Site` with a number. Within a function the numbers ascend in the order in which
Python runs the sites, so that what a lane did, sorted by number, is in the order in which it did it.
"""

import ast
import inspect
import itertools
from typing import NamedTuple

from tcgpu.engines.accesses import LANE, ReportAccesses, expression_of, statements
from tcgpu.engines.kernel_language import source_tree
from tcgpu.engines.simulator import STAND_IN
from tcgpu.tracing.task_loops import task_loops

FREE = {"uint8", "uint16", "uint32", "uint64", "int32", "int64", "bool", "__int64"}  # casts: no instruction
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp)
DIVISION = 20  # instructions of a division by a number that is not a constant


class Function(NamedTuple):
    """The source of a kernel or device function."""

    name: str
    first: int  # the number of its first line
    lines: tuple[str, ...]

    def text(self, line):
        return self.lines[line - self.first].strip()


class Counts(NamedTuple):
    """How many operations a statement has, without those in the device functions that it calls."""

    arithmetic: int = 0
    comparisons: int = 0
    calls: int = 0
    divisions: int = 0  # by a number that is not a constant


class Site(NamedTuple):
    """A place in the source where something happens."""

    kind: str  # "step", "loop", "call", "load", "store" or "atomic"
    function: Function
    line: int
    operations: int = 0  # of a step: about how many instructions
    counts: Counts = Counts()  # of a step
    barrier: bool = False  # of a step: whether it waits for the block
    expression: str = ""  # of a load: what is read, as source
    branches: tuple = ()  # of a load: the branches that it is in, a number each


SITES: dict[int, Site] = {}  # number -> Site, of every function that was traced in this process
_numbers = itertools.count()


class Instrument(ReportAccesses):
    """Rewrites a kernel or device function so that its lanes report what they do."""

    def __init__(self, function):
        super().__init__(function)
        lines, first = inspect.getsourcelines(function)
        self.function = Function(function.__name__, first, tuple(lines))
        self.branches = ()  # around what is visited: a number for each

    def site(self, kind, node, **more):
        """A number for this place, larger than those before."""
        number = next(_numbers)
        if kind == "load":
            more["branches"] = self.branches
        SITES[number] = Site(kind, self.function, self.function.first + node.lineno - 1, **more)
        return number

    def visit_FunctionDef(self, definition):
        self.task_loops = task_loops(definition, self.returns_atomic)
        definition.body = [*statements(f"{LANE} = {STAND_IN}.lane"), *self.block(definition.body)]
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
                found += self.step(statement, statement.test)
                statement.test, if_true = self.test(statement.test)
                statement.body = self.branch(self.block, statement.body, if_true)
                statement.orelse = self.branch(self.block, statement.orelse)
                found.append(statement)
            else:
                found += [*self.step(statement, statement), self.visit(statement)]
        return found

    def loop(self, loop):
        """A loop that reports when it is entered, when each round begins, and when it is left."""
        before, if_true, way = [], (), "task_" if loop in self.task_loops else ""
        meets = self.meets(loop)
        if isinstance(loop, ast.For):
            before = self.step(loop, loop.iter)
            loop.iter = self.visit(loop.iter)
        number = self.site("loop", loop)
        if isinstance(loop, ast.For):
            test = self.site("step", loop, operations=2, counts=Counts(1, 1))
            loop.iter = expression_of(f"{LANE}.{way}rounds({test})", loop.iter)
        else:
            again = expression_of(f"{LANE}.{way}again({self.step_site(loop, loop.test)})")
            test, if_true = self.test(loop.test)
            loop.test = ast.BoolOp(ast.And(), [again, test])
        loop.body = self.branch(self.block, loop.body, if_true)
        if way:
            loop.body[:0] = statements(f"{LANE}.begin_task({meets})")
        loop.orelse = self.branch(self.block, loop.orelse)
        return [*before, *statements(f"{LANE}.enter({number})"), loop, *statements(f"{LANE}.leave()")]

    def step(self, statement, counted):
        """Report that a lane comes to a statement, of which the part `counted` is its work."""
        return statements(f"{LANE}.step({self.step_site(statement, counted)})")

    def step_site(self, statement, counted):
        waits = [call.func.attr for call in ast.walk(counted) if isinstance(call, ast.Call) and self.waits(call)]
        barrier = any(name.startswith("syncthreads") for name in waits)
        known = {"operations": self.operations(counted), "counts": self.counts(counted)}
        return self.site("step", statement, barrier=barrier, **known)

    def operations(self, tree):
        """About how many instructions a piece of source takes, without those in the device functions that it calls."""
        counts = self.counts(tree)
        accesses = sum(isinstance(node, ast.Subscript) for node in ast.walk(tree))
        return max(1, sum(counts) + (DIVISION - 1) * counts.divisions + 2 * accesses)  # each has an address, too

    def counts(self, tree):
        """The Counts of a piece of source."""
        arithmetic = comparisons = calls = divisions = 0
        for node in ast.walk(tree):
            if isinstance(node, ARITHMETIC):
                divides = self.divides(node)
                divisions += divides
                arithmetic += not divides
            elif isinstance(node, ast.Compare):
                comparisons += len(node.ops)
            elif isinstance(node, ast.Call) and not self.calls_device_function(node):
                calls += getattr(node.func, "id", "") not in FREE
        return Counts(arithmetic, comparisons, calls, divisions)

    def divides(self, node):
        """Whether it is a division by a number that the compiler does not know."""
        if not (isinstance(node, ast.BinOp) and isinstance(node.op, (ast.FloorDiv, ast.Mod))):
            return False
        names = [part.id for part in ast.walk(node.right) if isinstance(part, ast.Name)]
        return any(not isinstance(self.names.get(name), int) for name in names if name not in FREE)

    def meets(self, tree):
        """Whether threads wait for all others of their block somewhere in it, or in a device function that it calls."""
        for call in ast.walk(tree):
            if isinstance(call, ast.Call):
                if self.waits(call) and call.func.attr.startswith("syncthreads"):
                    return True
                if self.calls_device_function(call):
                    callee = self.names[call.func.id].py_func
                    if type(self)(callee).meets(source_tree(callee).body[0]):
                        return True
        return False

    def returns_atomic(self, call):
        """Whether it calls a device function that uses what an atomic operation returned."""
        if not self.calls_device_function(call):
            return False
        body = source_tree(self.names[call.func.id].py_func).body[0]
        used = (node.value for node in ast.walk(body) if isinstance(node, (ast.Assign, ast.Return)) and node.value)
        return any(isinstance(call, ast.Call) and self.is_atomic(call) for value in used for call in ast.walk(value))

    # -------------------------------------------------------------------------------------------------------- branches

    def branch(self, visit, node, inside=()):
        """Visit a part that may not run although the code around it does; `inside`: other branches that it is in."""
        around = self.branches
        self.branches = (*around, *inside, next(_numbers))
        node = visit(node)
        self.branches = around
        return node

    def test(self, node):
        """Visit a test; also returns the branches in it that have run if it is true."""
        around = self.branches
        if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)):
            return self.visit(node), ()
        self.visit_values(node)
        taken, self.branches = self.branches[len(around) :], around
        return node, taken

    def visit_BoolOp(self, node):
        around = self.branches
        self.visit_values(node)
        self.branches = around
        return node

    def visit_values(self, node):
        """Visit the values of `and` or `or`: each after the first is in another branch, inside those before it."""
        for k, value in enumerate(node.values):
            if k:
                self.branches = (*self.branches, next(_numbers))
            node.values[k] = self.visit(value)

    def visit_IfExp(self, node):
        node.test, if_true = self.test(node.test)
        node.body = self.branch(self.visit, node.body, if_true)
        node.orelse = self.branch(self.visit, node.orelse)
        return node

    # ----------------------------------------------------------------------------------------------------- expressions

    def calling(self, call):
        waits = self.callee_waits(call)
        method = "call_waiting" if waits else "call"
        found = expression_of(f"{LANE}.{method}({self.site('call', call)})", call.func, *call.args)
        found.keywords = call.keywords
        return ast.YieldFrom(found) if waits else found


def _does_nothing(statement):
    """Whether it takes a lane no time: a docstring, or a mere jump."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal))
