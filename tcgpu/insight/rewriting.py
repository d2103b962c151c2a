"""Instrument a kernel's source: the same statements, each of which reports that it runs, and what it accesses.

A statement gets a call of the `step` of the thread's *lane* before it; an element that is read, written or changed
atomically goes through the lane's `load`, `at` and `atomic`; loops, waits for other threads and calls of device
functions tell the lane where it is. Each such place is a `Site` with a number. Within a function the numbers ascend in
the order in which Python runs the sites, so that what a lane did, sorted by number, is in the order in which it did it.

`lanes` has the lane, and runs the kernel.
"""

import ast
import inspect
import itertools
from typing import NamedTuple

from tcgpu.engines.kernel_language import source_tree
from tcgpu.engines.simulator import STAND_IN, YieldWhereItWaits
from tcgpu.insight.events import SECTOR
from tcgpu.insight.task_loops import counting_statement, names_in, task_loops

LANE = "__lane__"  # the name of the thread's lane in an instrumented function
FREE = {"uint8", "uint16", "uint32", "uint64", "int32", "int64", "bool", "__int64"}  # casts: no instruction
ARITHMETIC = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.IfExp)
LOOPS = ast.While, ast.For


class Function(NamedTuple):
    """The source of a kernel or device function."""

    name: str
    first: int  # the number of its first line
    lines: tuple[str, ...]
    file: str = ""

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

    kind: str  # "step", "loop", "call", "wait", "load", "store" or "atomic"
    function: Function
    line: int
    counts: Counts = Counts()  # of a step
    barrier: bool = False  # of a step or loop: whether threads wait for the block in it
    expression: str = ""  # of a load: what is read, as source; of a store or atomic operation: the array; of a wait
    branches: tuple = ()  # of a load: the branches that it is in, a number each
    in_flight: bool = False  # of a step or call: whether it loads, and needs nothing that the one before it loads
    burst: int = 0  # of a loop that counts: rounds that are run together where others are left out; 0: none may be


SITES: dict[int, Site] = {}  # number -> Site, of every function that was instrumented in this process
_numbers = itertools.count()


class Instrument(YieldWhereItWaits):
    """Rewrites a kernel or device function so that its lanes report what they do."""

    def __init__(self, function):
        super().__init__(function)
        lines, first = inspect.getsourcelines(function)
        file = inspect.getsourcefile(function) or function.__code__.co_filename
        self.function = Function(function.__name__, first, tuple(lines), file)
        self.branches = ()  # around what is visited: a number for each
        self.in_flight = False  # of the next step

    def site(self, kind, node, **more):
        """The number of a Site for this place, larger than those before."""
        number = next(_numbers)
        if kind == "load":
            more["branches"] = self.branches
        SITES[number] = Site(kind, self.function, self.function.first + node.lineno - 1, **more)
        return number

    def visit_FunctionDef(self, definition):
        self.task_loops = task_loops(definition, self.returns_atomic)
        definition.body = [*statements(f"{LANE} = {STAND_IN}.thread"), *self.block(definition.body)]
        return definition

    # ------------------------------------------------------------------------------------------------------ statements

    def block(self, statements):
        """A list of statements, rewritten one after the other."""
        found, loaded = [], None
        for statement in statements:
            names = self.loads(statement)
            self.in_flight = bool(names and loaded) and not loaded & names_in(statement.value)
            loaded = names | loaded if self.in_flight else names
            if _does_nothing(statement):
                found.append(statement)
            elif isinstance(statement, LOOPS):
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

    def loads(self, statement):
        """The names to which a statement that only loads and computes assigns; none of another statement."""
        if not isinstance(statement, ast.Assign):
            return set()
        found = [node for node in ast.walk(statement.value) if isinstance(node, (ast.Call, ast.Subscript))]
        calls = [node for node in found if isinstance(node, ast.Call)]
        targets = [node for target in statement.targets for node in ast.walk(target)]
        if any(isinstance(node, ast.Subscript) for node in targets) or not all(map(self.is_straight, calls)):
            return set()
        if all(getattr(node.func, "id", "") in FREE for node in calls) and len(calls) == len(found):
            return set()
        return {node.id for node in targets if isinstance(node, ast.Name)}

    def is_straight(self, call):
        """Whether it is a cast, or calls a function without loops, which calls nothing but such functions."""
        return not any(known.turns(node) for known, node in self.reached(ast.Call(call.func, [], [])))

    def turns(self, node):
        """Whether a node is a loop, or a call of what is neither a device function nor a cast."""
        is_call = isinstance(node, ast.Call) and not self.device_function(node)
        return isinstance(node, LOOPS) or is_call and getattr(node.func, "id", "") not in FREE

    def loop(self, loop):
        """A loop that reports when it is entered, when each round begins, and when it is left."""
        before, if_true, way = [], (), "task_" if loop in self.task_loops else ""
        meets, counting = self.meets(loop), None if way or self.fills(loop) else counting_statement(loop)
        if isinstance(loop, ast.For):
            before = self.step(loop, loop.iter)
            loop.iter = self.visit(loop.iter)
        number = self.site("loop", loop, barrier=meets, burst=counting is not None and burst_of(counting.value))
        if isinstance(loop, ast.For):
            test = self.site("step", loop, counts=Counts(1, 1))
            loop.iter = expression_of(f"{LANE}.{way}rounds({test})", loop.iter)
        else:
            again = expression_of(f"{LANE}.{way}again({self.step_site(loop, loop.test)})")
            test, if_true = self.test(loop.test)
            loop.test = ast.BoolOp(ast.And(), [again, test])
        loop.body = self.branch(self.block, loop.body, if_true)
        if counting is not None:
            counting.value = ast.BinOp(counting.value, ast.Mult(), expression_of(f"{LANE}.rounds_on()"))
        if way:
            loop.body[:0] = statements(f"{LANE}.begin_task({meets})")
        loop.orelse = self.branch(self.block, loop.orelse)
        return [*before, *statements(f"{LANE}.enter({number})"), loop, *statements(f"{LANE}.leave()")]

    visit_While = loop  # where `block` does not find it: in `try`, or in another statement that no kernel has

    def step(self, statement, counted):
        """Report that a lane comes to a statement, of which the part `counted` is its work."""
        return statements(f"{LANE}.step({self.step_site(statement, counted)})")

    def step_site(self, statement, counted):
        barrier = any(map(self.is_barrier, ast.walk(counted)))
        return self.site("step", statement, counts=self.counts(counted), barrier=barrier, in_flight=self.in_flight)

    def counts(self, tree):
        arithmetic = comparisons = calls = divisions = 0
        for node in ast.walk(tree):
            if isinstance(node, ARITHMETIC):
                divides = self.divides(node)
                divisions += divides
                arithmetic += not divides
            elif isinstance(node, ast.Compare):
                comparisons += len(node.ops)
            elif isinstance(node, ast.Call) and not self.device_function(node):
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
        return any(known.is_barrier(node) for known, node in self.reached(tree))

    def is_barrier(self, node):
        return isinstance(node, ast.Call) and self.waits(node) and node.func.attr.startswith("syncthreads")

    def fills(self, loop):
        """Whether a loop only fills memory, which others read: it writes, and has no loop inside."""
        if any(isinstance(node, LOOPS) for statement in loop.body for _, node in self.reached(statement)):
            return False
        return any(known.writes(node) for known, node in self.reached(loop))

    def writes(self, node):
        """Whether a node changes an element of an array."""
        stores = isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        return stores or isinstance(node, ast.Call) and self.is_atomic(node)

    def reached(self, tree):
        """Each node of a tree, and of the device functions that it calls, with an object that knows its names."""
        for node in ast.walk(tree):
            yield self, node
            callee = isinstance(node, ast.Call) and self.device_function(node)
            if callee:
                yield from type(self)(callee).reached(source_tree(callee).body[0])

    def returns_atomic(self, call):
        """Whether it is an atomic operation, or calls a device function that uses what one returned."""
        callee = self.device_function(call)
        if not callee:
            return self.is_atomic(call)
        nodes = ast.walk(source_tree(callee))
        used = (node.value for node in nodes if isinstance(node, (ast.Assign, ast.Return)) and node.value)
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
        before = self.in_flight
        node.body = self.branch(self.visit, node.body, if_true)
        self.in_flight = before
        node.orelse = self.branch(self.visit, node.orelse)
        return node

    # ----------------------------------------------------------------------------------------------------- expressions

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
            number = self.site("wait", call, expression=ast.unparse(call.func))
            found = expression_of(f"{LANE}.waited()", ast.Yield(expression_of(f"{LANE}.waits({number})", call)))
        elif self.device_function(call):
            waits, straight = self.callee_waits(call), self.is_straight(call)
            number = self.site("call", call, in_flight=straight and self.in_flight)
            self.in_flight = straight  # another call in the same statement does not need the result of this one
            found = expression_of(f"{LANE}.{'call_waiting' if waits else 'call'}({number})", call.func, *call.args)
            found.keywords = call.keywords
            found = ast.YieldFrom(found) if waits else found
        return ast.copy_location(found, call)

    def is_atomic(self, call):
        """Whether it is one of `cuda.atomic`'s functions."""
        of = getattr(call.func, "value", None)
        return isinstance(of, ast.Attribute) and of.attr == "atomic" and self.is_cuda(of.value)


def statements(source):
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


def burst_of(step):
    """How many rounds of a loop that goes on by `step` read the elements of one sector, perhaps."""
    return SECTOR // 4 if isinstance(step, ast.Constant) and step.value == 1 else 1


def _does_nothing(statement):
    """Whether it takes a lane no time: a docstring, or a mere jump."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant or isinstance(statement, (ast.Pass, ast.Break, ast.Continue, ast.Global, ast.Nonlocal))
