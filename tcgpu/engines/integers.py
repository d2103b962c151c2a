"""Integers in kernels: NumPy's rule (NEP 50), in compiled kernels as in simulated ones.

- A literal takes the type of the other operand: `p + 1` is a uint32 if p is one. Constants of a module and expressions
  of literals are literals, too.
- Of two types the wider wins, as `np.result_type` says: uint32 with int32 or int64 is an int64. NumPy makes a float of
  int64 with uint64; the compiler refuses it.
- `min`, `max` and `range` follow the same rule. So does `x += y`, but the compiler refuses it if it would make the
  variable wider than its first value.
- A literal without another operand is an int64: assigned (`count = 0`), returned, a branch of `a if b else c`, passed
  to a device function. Begin a variable of 32 bits as `uint32(0)`.
- `cuda.threadIdx`, `blockIdx`, `blockDim`, `gridDim`, `laneid` and `warpsize` are uint32, as in CUDA C, and so is what
  `popc`, `clz`, `ffs`, `ballot_sync`, `match_any_sync`, `lanemask_lt` and the counting `syncthreads` return.
  `cuda.grid`, `gridsize`, `size` and `shape` of an array, and a kernel's number without a type are int64.

A result that is too large for its type wraps around, and a division by 0 gives 0. Undefined, as in C: int64 overflow, a
shift by as many bits as the type has or more, and the quotient of the least signed number and -1.

The compiler and the simulator each rewrite the syntax tree of a kernel: the compiler, because Numba computes all
integers in 64 bits; the simulator, because a Python `int` has no type. `integer_operations` compiles the operations of
a rewritten tree.
"""

import ast
import operator
import sys
from copy import deepcopy
from functools import cache
from types import ModuleType

import numpy as np

from tcgpu.engines.kernel_language import is_cuda, is_device_function, names_of

OPERATIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.USub: "neg", ast.UAdd: "pos",
    ast.Invert: "invert",
}  # fmt: skip
OF_LITERALS = OPERATIONS | {ast.Pow: "pow"}
POSITIONS = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
UINT32_VALUES = {"laneid", "warpsize"}
UINT32_CALLS = {
    "popc", "clz", "ffs", "ballot_sync", "match_any_sync", "activemask", "lanemask_lt", "syncthreads_count",
    "syncthreads_and", "syncthreads_or",
}  # fmt: skip
SHUFFLES = {"shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"}  # return the type of their argument
SIGNED_CALLS = SHUFFLES | {"match_any_sync"}  # in Numba these are only for signed integers
TESTED_ONCE = sys.version_info >= (3, 14)  # the bytecode of `while` jumps back to its test, and has it once


class Integers(ast.NodeTransformer):
    """The base class of both rewritings: looks up the names of a kernel or device function."""

    def __init__(self, function):
        self.names, self.local = names_of(function), set(function.__code__.co_varnames)

    def named(self, node):
        """The value of a name that is not a variable of the function; None for any other node."""
        if isinstance(node, ast.Name) and node.id not in self.local:
            return self.names.get(node.id)
        return None

    def literal(self, node):
        """The value of a literal, a constant of a module, or an expression of these; None for any other node."""
        value = self.named(node)
        if isinstance(node, ast.Constant):
            value = node.value
        elif isinstance(node, ast.Attribute) and isinstance(self.named(node.value), ModuleType):
            value = getattr(self.named(node.value), node.attr, None)
        elif isinstance(node, (ast.UnaryOp, ast.BinOp)) and type(node.op) in OF_LITERALS:
            operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
            operands = [self.literal(operand) for operand in operands]
            value = None if None in operands else getattr(operator, OF_LITERALS[type(node.op)])(*operands)
        return value if type(value) is int else None

    def calls(self, node, *builtins):
        """Whether the node is a call of one of these Python built-ins."""
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name)) or node.keywords:
            return False
        return node.func.id in builtins and node.func.id not in self.local | set(self.names)


def call(name, arguments, place):
    """A call of a function by its name, with the source position of the node `place`."""
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), place))


def continues(body):
    """Whether there is a `continue` of the loop that has this body."""
    for node in body:
        inside = node.orelse if isinstance(node, (ast.For, ast.While)) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Continue) or continues(inside):
            return True
    return False


# -------------------------------------------------------------------------------------------------------- the compiler


class CompiledIntegers(Integers):
    """Replaces each integer operation by a call of a helper, to be compiled by `integer_operations`.

    `helpers`: name of a helper -> (operation, for each operand its value if it is a literal, else None). Literals are
    not arguments of the call.
    """

    def __init__(self, function):
        super().__init__(function)
        self.helpers = {}
        self.temporaries = 0

    def operation(self, name, operands, place):
        literals = tuple(None if name in SIGNED_CALLS else self.literal(operand) for operand in operands)
        helper = "_".join(["__integer", name, *("x" if x is None else f"{x}".replace("-", "minus") for x in literals)])
        self.helpers[helper] = name, literals
        return call(helper, [x for x, literal in zip(operands, literals, strict=True) if literal is None], place)

    def temporary(self, value):
        """The assignment of a value to a new variable, and its name."""
        self.temporaries += 1
        name = f"__temporary_{self.temporaries}"
        assignment = ast.Assign([ast.Name(name, ast.Store())], value)
        return ast.fix_missing_locations(ast.copy_location(assignment, value)), name

    def visit_BinOp(self, node):
        value = self.literal(node)
        if value is not None:
            return ast.copy_location(ast.Constant(value), node)
        self.generic_visit(node)
        if type(node.op) not in OPERATIONS:
            return node
        return self.operation(OPERATIONS[type(node.op)], [node.left, node.right], node)

    def visit_UnaryOp(self, node):
        value = self.literal(node)
        if value is not None:
            return ast.copy_location(ast.Constant(value), node)
        self.generic_visit(node)
        if not isinstance(node.op, (ast.USub, ast.Invert)):
            return node
        return self.operation(OPERATIONS[type(node.op)], [node.operand], node)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        if type(node.op) not in OPERATIONS:
            return node
        target, before, name = node.target, [], OPERATIONS[type(node.op)]
        if isinstance(target, ast.Name):
            old, name = ast.Name(target.id, ast.Load()), f"same_{name}"
        elif isinstance(target, ast.Subscript):
            before, index = self.evaluated(target.slice)
            target = ast.Subscript(target.value, index, ast.Store())
            old = ast.Subscript(target.value, index, ast.Load())
        else:
            return node
        changed = ast.Assign([target], self.operation(name, [ast.copy_location(old, node), node.value], node))
        return [*before, ast.fix_missing_locations(ast.copy_location(changed, node))]

    def evaluated(self, index):
        """Statements that evaluate an index once, and an expression for the index that can be used twice."""
        if isinstance(index, (ast.Name, ast.Constant)):
            return [], index
        assignment, name = self.temporary(index)
        return [assignment], ast.Name(name, ast.Load())

    def visit_For(self, loop):
        """A loop over a range of 64 bits, whose variable is cast to the type that the rule requires."""
        literals = [self.literal(bound) for bound in loop.iter.args] if self.calls(loop.iter, "range") else []
        self.generic_visit(loop)
        if all(literal is not None for literal in literals) or not isinstance(loop.target, ast.Name):
            return loop
        before, bounds, typed = [], [], []
        for bound, literal in zip(loop.iter.args, literals, strict=True):
            if literal is None:
                assignment, name = self.temporary(bound)
                before.append(assignment)
                typed.append(ast.Name(name, ast.Load()))
                bound = self.operation("bound", [ast.Name(name, ast.Load())], bound)
            bounds.append(bound)
        loop.iter.args = bounds
        self.temporaries += 1
        wide = f"__temporary_{self.temporaries}"
        value = self.operation("narrow", [ast.Name(wide, ast.Load()), *typed], loop)
        narrow = ast.Assign([ast.Name(loop.target.id, ast.Store())], value)
        loop.target = ast.Name(wide, ast.Store())
        loop.body.insert(0, ast.copy_location(narrow, loop))
        return [*before, ast.fix_missing_locations(loop)]

    def visit_While(self, loop):
        """A loop whose test stands before it and again at its end, as in the bytecode of Python up to 3.13.

        With the test once, as in Python 3.14, LLVM made code of `warp_search_kernel` that spills registers.
        """
        self.generic_visit(loop)
        if not TESTED_ONCE or loop.orelse or continues(loop.body):
            return loop
        end = ast.If(ast.UnaryOp(ast.Not(), deepcopy(loop.test)), [ast.Break()], [])
        endless = ast.While(ast.Constant(True), [*loop.body, ast.copy_location(end, loop.test)], [])
        found = ast.If(loop.test, [ast.copy_location(endless, loop)], [])
        return ast.fix_missing_locations(ast.copy_location(found, loop))

    def visit_Attribute(self, node):
        self.generic_visit(node)
        of = node.value
        position = isinstance(of, ast.Attribute) and of.attr in POSITIONS and is_cuda(self.named(of.value))
        if position or (node.attr in UINT32_VALUES and is_cuda(self.named(of))):
            return call("__uint32", [node], node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and is_cuda(self.named(node.func.value)):
            return self.cuda_call(node, node.func.attr)
        if self.calls(node, "min", "max") and len(node.args) > 1:
            found = node.args[0]
            for each in node.args[1:]:
                found = self.operation(node.func.id, [found, each], node)
            return found
        return node

    def cuda_call(self, node, name):
        """A call of a `cuda` function; Numba has some of these only for signed integers."""
        if name in SIGNED_CALLS:
            node = self.operation(name, node.args, node)
        return call("__uint32", [node], node) if name in UINT32_CALLS else node


# ------------------------------------------------------------------------------------------------------- the simulator


class SimulatedIntegers(Integers):
    """Gives Python `int` values the types that they have in a compiled kernel."""

    def typed(self, node):
        """The node, cast to int64 if it is a literal; for a tuple, each of its elements."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.typed(element) for element in node.elts]
            return node
        return node if self.literal(node) is None else call("__int64", [node], node)

    def visit_Assign(self, node):
        self.generic_visit(node)
        node.value = self.typed(node.value)
        return node

    def visit_For(self, node):
        self.generic_visit(node)
        node.iter = self.typed(node.iter)
        return node

    def visit_Return(self, node):
        self.generic_visit(node)
        node.value = node.value and self.typed(node.value)
        return node

    def visit_IfExp(self, node):
        self.generic_visit(node)
        node.body, node.orelse = self.typed(node.body), self.typed(node.orelse)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if self.calls(node, "min", "max", "range", "len"):
            node.func.id = f"__{node.func.id}"
        elif is_device_function(self.named(node.func)):
            node.args = [self.typed(argument) for argument in node.args]
        return node

    def visit_Attribute(self, node):
        self.generic_visit(node)
        size = node.attr == "size" and isinstance(node.ctx, ast.Load)
        return call("__int64", [node], node) if size else node

    def visit_Subscript(self, node):
        self.generic_visit(node)
        shape = isinstance(node.value, ast.Attribute) and node.value.attr == "shape"
        return call("__int64", [node], node) if shape else node


def typed_int(value):
    """A Python `int` as an int64; any other value unchanged."""
    return np.int64(value) if type(value) is int else value


@cache
def _result_type(*types):
    """NumPy's type of an operation on values of these types; a Python `int` does not count."""
    types = [np.dtype(each) for each in types if each is not int]
    found = np.result_type(*types) if types else np.dtype(np.int64)
    if found.kind == "f" and all(each.kind in "biu" for each in types):
        raise TypeError(f"{' and '.join(map(str, types))} have no common integer type")
    return found.type


def _min(*values):
    return _result_type(*map(type, values))(min(values))


def _max(*values):
    return _result_type(*map(type, values))(max(values))


def _range(*bounds):
    kind = _result_type(*map(type, bounds))
    return map(kind, range(*bounds))


def _len(array):
    return np.int64(len(array))


SIMULATED_NAMES = {"__int64": np.int64, "__min": _min, "__max": _max, "__range": _range, "__len": _len}
