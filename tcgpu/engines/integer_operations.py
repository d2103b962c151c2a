"""Integer operations of compiled kernels, by NumPy's rule (see `integers`); kernels are rewritten to call them.

Numba computes uint32 + uint32 in 64 bits and makes a float of uint64 + int64. These functions compute in the type that
`np.result_type` returns. Operations with an operand that is no integer are left to Numba.
"""

import ast
import operator
import sys
from copy import deepcopy
from functools import cache

import numpy as np
from llvmlite import ir
from numba import cuda
from numba.cuda import types
from numba.cuda.extending import errors, intrinsic

from tcgpu.engines.integers import call
from tcgpu.engines.kernel_language import OPERATIONS, KernelTransformer

HOW_MANY = {"gridsize", "blockDim", "gridDim"}
POSITIONS = {"threadIdx", "blockIdx", "blockDim", "gridDim"}
UINT32_VALUES = {"laneid", "warpsize"}
UINT32_CALLS = {
    "popc", "clz", "ffs", "ballot_sync", "match_any_sync", "activemask", "lanemask_lt", "syncthreads_count",
    "syncthreads_and", "syncthreads_or",
}  # fmt: skip
SHUFFLES = {"shfl_sync", "shfl_up_sync", "shfl_down_sync", "shfl_xor_sync"}  # return the type of their argument
SIGNED_CALLS = SHUFFLES | {"match_any_sync"}  # in Numba these are only for signed integers
TESTED_ONCE = sys.version_info >= (3, 14)  # the bytecode of `while` jumps back to its test, and has it once


def result_type(name, kinds, literals=(), kept=False):
    """Numba's type of the operation on values of these types and on literals; None if one of them is no integer.

    kept: whether the result must have the type of the first one.
    """
    if not all(isinstance(kind, (types.Integer, types.Boolean)) for kind in kinds):
        return None
    known = [np.dtype(str(kind)) for kind in kinds]
    given = " and ".join(map(str, known))
    found = np.result_type(*known, *(0 for literal in literals if literal is not None))
    if found.kind == "f":
        raise errors.TypingError(f"{name}: {given} have no common integer type; convert one of them")
    if found.kind == "b":
        raise errors.TypingError(f"{name}: of bool; convert it to an integer type")
    if kept and found != known[0]:
        raise errors.TypingError(
            f"{name}: a variable of {known[0]} would become {found}; begin it as {found}, or convert the operand"
        )
    for literal in literals:
        if literal is not None and not np.iinfo(found).min <= literal <= np.iinfo(found).max:
            raise errors.TypingError(f"{name}: {literal} is out of the bounds of {found}")
    return getattr(types, found.name)


@cache
def helper(name, literals):
    """The function that computes an operation. Its arguments are the operands that are None in `literals`."""
    typing = {"bound": _bound, "narrow": _narrow} | dict.fromkeys(SIGNED_CALLS, _signed)

    def typed(context, *given):
        return typing.get(name, _typed)(context, name, literals, [types.unliteral(each) for each in given])

    of_operands = {
        1: lambda context, a: typed(context, a),
        2: lambda context, a, b: typed(context, a, b),
        3: lambda context, a, b, c: typed(context, a, b, c),
        4: lambda context, a, b, c, d: typed(context, a, b, c, d),
    }[literals.count(None)]
    of_operands.__qualname__ = name
    return intrinsic(of_operands)


def _typed(context, name, literals, given):
    """The signature of an operation and the function that generates its code."""
    name, kept = name.removeprefix("same_"), name.startswith("same_")
    logical = name in ("and_", "or_", "xor") and given == [types.boolean, types.boolean]
    kind = None if logical else result_type(name, given, literals, kept)
    if kind is None:
        return _left_to_numba(context, name, literals, given)

    def generate(context, builder, signature, values):
        operands = _operands(context, builder, zip(values, given, strict=True), literals, len(literals) * [kind])
        return CODE[name](builder, kind.signed, literals, *operands)

    return kind(*given), generate


def _left_to_numba(context, name, literals, given):
    function = {"min": min, "max": max}.get(name) or getattr(operator, name)
    values = iter(given)
    kinds = tuple(next(values) if literal is None else types.int64 for literal in literals)
    signature = context.resolve_function_type(function, kinds, {})
    if signature is None:
        raise errors.TypingError(f"{name}: no such operation on {' and '.join(map(str, given))}")

    def generate(context, builder, _, values):
        operands = list(_operands(context, builder, zip(values, given, strict=True), literals, signature.args))
        return context.get_function(function, signature)(builder, operands)

    return signature.return_type(*given), generate


def _operands(context, builder, values, literals, kinds):
    """All operands, literals included, each cast to its type in `kinds`; values: those that are no literals, typed."""
    for literal, kind in zip(literals, kinds, strict=True):
        if literal is None:
            yield context.cast(builder, *next(values), kind)
        elif isinstance(kind, types.Integer):
            yield ir.Constant(context.get_value_type(kind), literal)
        else:
            yield context.cast(builder, context.get_constant(types.int64, literal), types.int64, kind)


# ------------------------------------------------------------------------------------------------------------ the code


def _divide(builder, signed, literals, a, b):
    """Quotient and remainder, rounded down as in Python; 0 and 0 where b is 0."""
    divisor = literals[1]
    zero, one = ir.Constant(a.type, 0), ir.Constant(a.type, 1)
    if divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0:
        shift, mask = ir.Constant(a.type, divisor.bit_length() - 1), ir.Constant(a.type, divisor - 1)
        return (builder.ashr if signed else builder.lshr)(a, shift), builder.and_(a, mask)
    if not divisor:
        none = builder.icmp_unsigned("==", b, zero)
        b = builder.select(none, one, b)
    quotient, remainder = (builder.sdiv, builder.srem) if signed else (builder.udiv, builder.urem)
    quotient, remainder = quotient(a, b), remainder(a, b)
    if signed:
        opposite = builder.icmp_signed("<", builder.xor(remainder, b), zero)
        down = builder.and_(opposite, builder.icmp_unsigned("!=", remainder, zero))
        quotient = builder.sub(quotient, builder.zext(down, a.type))
        remainder = builder.select(down, builder.add(remainder, b), remainder)
    if not divisor:
        quotient, remainder = builder.select(none, zero, quotient), builder.select(none, zero, remainder)
    return quotient, remainder


def _either(order):
    def generate(builder, signed, literals, a, b):
        compare = builder.icmp_signed if signed else builder.icmp_unsigned
        return builder.select(compare(order, a, b), a, b)

    return generate


def _plain(name):
    return lambda builder, signed, literals, *operands: getattr(builder, name)(*operands)


def _arithmetic(name):
    """An addition, subtraction or multiplication. Assuming that no int64 overflows lets the compiler unroll loops."""

    def generate(builder, signed, literals, a, b):
        return getattr(builder, name)(a, b, flags=["nsw"] if signed and a.type.width == 64 else [])

    return generate


CODE = {
    "add": _arithmetic("add"),
    "sub": _arithmetic("sub"),
    "mul": _arithmetic("mul"),
    "and_": _plain("and_"),
    "or_": _plain("or_"),
    "xor": _plain("xor"),
    "neg": _plain("neg"),
    "invert": _plain("not_"),
    "lshift": _plain("shl"),
    "rshift": lambda builder, signed, literals, a, b: (builder.ashr if signed else builder.lshr)(a, b),
    "floordiv": lambda *given: _divide(*given)[0],
    "mod": lambda *given: _divide(*given)[1],
    "min": _either("<"),
    "max": _either(">"),
}


# ---------------------------------------------------------------------------------------------------------------- range


def _bound(context, name, literals, given):
    """A bound of a range: int64, or uint64."""
    kind = types.uint64 if given[0] == types.uint64 else types.int64
    return _first_cast(given, kind)


def _narrow(context, name, literals, given):
    """The variable of a range, with the common type of its bounds, which come after it."""
    return _first_cast(given, result_type("range", given[1:]))


def _first_cast(given, kind):
    return kind(*given), lambda context, builder, _, values: context.cast(builder, values[0], given[0], kind)


# ---------------------------------------------------------------------------------------- functions of signed integers


def _signed(context, name, literals, given):
    """Call a shuffle or match with the bits of its second argument as a signed integer.

    A shuffle, of 32 or 64 bits, returns its argument's type.
    """
    taken = list(given)
    if isinstance(taken[1], types.Integer):
        taken[1] = getattr(types, taken[1].name.removeprefix("u"))
    kind = given[1] if name in SHUFFLES else types.uint32
    signature = context.resolve_function_type(getattr(cuda, name), tuple(taken), {})
    function = context.resolve_value_type(getattr(cuda, name))

    def generate(context, builder, _, values):
        arguments = [context.cast(builder, *each) for each in zip(values, given, signature.args, strict=True)]
        found = context.get_function(function, signature)(builder, arguments)
        return context.cast(builder, found, signature.return_type, kind)

    return kind(*given), generate


def continues(body):
    """Whether there is a `continue` of the loop that has this body."""
    for node in body:
        inside = node.orelse if isinstance(node, (ast.For, ast.While)) else ast.iter_child_nodes(node)
        if isinstance(node, ast.Continue) or continues(inside):
            return True
    return False


def tested_before_and_at_the_end(loop):
    """A `while` whose test stands before it and again at its end, as in the bytecode of Python up to 3.13.

    With the test once, as in Python 3.14, LLVM made code of `warp_search_kernel` that spills registers.
    """
    if not TESTED_ONCE or loop.orelse or continues(loop.body):
        return loop
    end = ast.If(ast.UnaryOp(ast.Not(), deepcopy(loop.test)), [ast.Break()], [])
    endless = ast.While(ast.Constant(True), [*loop.body, ast.copy_location(end, loop.test)], [])
    found = ast.If(loop.test, [ast.copy_location(endless, loop)], [])
    return ast.fix_missing_locations(ast.copy_location(found, loop))


class CompiledIntegers(KernelTransformer):
    """Replaces each integer operation by a call of a `helper`.

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
        operands = [node.operand] if isinstance(node, ast.UnaryOp) else [node.left, node.right]
        name = OPERATIONS.get(type(node.op))
        return self.operation(name, operands, node) if name in CODE else node

    visit_UnaryOp = visit_BinOp

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
        ascends = len(literals) == 3 and self.is_how_many(loop.iter.args[2])
        becomes_while = ascends and not loop.orelse and not continues(loop.body)
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
        self.temporaries += 1
        wide = f"__temporary_{self.temporaries}"
        value = self.operation("narrow", [ast.Name(wide, ast.Load()), *typed], loop)
        narrow = ast.Assign([ast.Name(loop.target.id, ast.Store())], value)
        loop.body.insert(0, ast.copy_location(narrow, loop))
        loop.iter.args, loop.target = bounds, ast.Name(wide, ast.Store())
        return [*before, *(self.as_while(loop, typed[-1]) if becomes_while else [ast.fix_missing_locations(loop)])]

    def is_how_many(self, node):
        """Whether the node is CUDA's own number of threads or blocks, which is at least 1."""
        of = node.func if isinstance(node, ast.Call) else getattr(node, "value", None)
        return isinstance(of, ast.Attribute) and of.attr in HOW_MANY and self.is_cuda(of.value)

    def as_while(self, loop, step):
        """The statements of a `for` over a range as a `while`: Numba begins a `for` with a division. LLVM divides, too,
        but only where it unrolls a short loop."""
        begin, stop, _ = loop.iter.args
        value = ast.Name(loop.target.id, ast.Load())
        further = ast.Assign([loop.target], self.operation("same_add", [value, step], loop))
        steps = ast.While(ast.Compare(value, [ast.Lt()], [stop]), [*loop.body, further], [])
        statements = ast.Assign([loop.target], begin), tested_before_and_at_the_end(ast.copy_location(steps, loop))
        return [ast.fix_missing_locations(ast.copy_location(each, loop)) for each in statements]

    def visit_While(self, loop):
        self.generic_visit(loop)
        return tested_before_and_at_the_end(loop)

    def visit_Attribute(self, node):
        self.generic_visit(node)
        of = node.value
        position = isinstance(of, ast.Attribute) and of.attr in POSITIONS and self.is_cuda(of.value)
        if position or (node.attr in UINT32_VALUES and self.is_cuda(of)):
            return call("__uint32", [node], node)
        return node

    def visit_Call(self, node):
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and self.is_cuda(node.func.value):
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
