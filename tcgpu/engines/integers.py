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
integers in 64 bits (`integer_operations`); the simulator, because a Python `int` has no type (here).
"""

import ast
from functools import cache

import numpy as np

from tcgpu.engines.kernel_language import KernelTransformer


def call(name, arguments, place):
    """A call of a function by its name, with the source position of the node `place`."""
    return ast.fix_missing_locations(ast.copy_location(ast.Call(ast.Name(name, ast.Load()), arguments, []), place))


# the parts of a node in which a literal, without another operand, is an int64
TYPED = {ast.Assign: ["value"], ast.For: ["iter"], ast.Return: ["value"], ast.IfExp: ["body", "orelse"]}


class SimulatedIntegers(KernelTransformer):
    """Gives Python `int` values the types that they have in a compiled kernel."""

    def typed(self, node):
        """The node, cast to int64 if it is a literal; for a tuple, each of its elements."""
        if isinstance(node, ast.Tuple):
            node.elts = [self.typed(element) for element in node.elts]
            return node
        return node if self.literal(node) is None else call("__int64", [node], node)

    def generic_visit(self, node):
        super().generic_visit(node)
        for field in TYPED.get(type(node), ()):
            setattr(node, field, self.typed(getattr(node, field)))
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if self.calls(node, "min", "max", "range", "len"):
            node.func.id = f"__{node.func.id}"
        elif self.device_function(node):
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


SIMULATED_NAMES = {
    "__int64": np.int64,
    "__min": lambda *values: _result_type(*map(type, values))(min(values)),
    "__max": lambda *values: _result_type(*map(type, values))(max(values)),
    "__range": lambda *bounds: map(_result_type(*map(type, bounds)), range(*bounds)),
    "__len": lambda array: np.int64(len(array)),
}
