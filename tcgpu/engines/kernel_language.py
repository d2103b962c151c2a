"""The names that kernels are written in: `cuda`, the integer types, and device functions; and their signatures.

A module of kernels imports these names and no compiler. Inside a kernel, `cuda` means what `numba.cuda` means. Outside,
it is only a name: the simulator puts a `SimulatedCuda` in its place, the compiler the module `numba.cuda`.
"""

import ast
import inspect
import operator
import re
import textwrap
from collections.abc import Callable
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import KernelError

NO_SOURCE = (
    "tcgpu reads the source of a kernel, and finds none of {!r}: Python's prompt keeps none; write it with `def` in a "
    "file such as mine.py, and begin with `python -i mine.py`, or write it in a cell of a notebook"
)
_parsing = fork_safe_lock()  # Python 3.11 counts the depth of trees of all threads together: SystemError

int32, int64 = np.int32, np.int64
uint8, uint16, uint32, uint64 = np.uint8, np.uint16, np.uint32, np.uint64


class DeviceFunction:
    """A function that kernels call. `py_func` is the Python function as written."""

    def __init__(self, py_func):
        self.py_func = self.__wrapped__ = py_func
        self.__name__, self.__doc__, self.__module__ = py_func.__name__, py_func.__doc__, py_func.__module__

    def __repr__(self):
        return f"<device function {self.__name__}>"


class CallersFunction:
    """A caller's function that a kernel calls: Numba compiles it as it is, for a GPU, or for the CPU in the simulator.

    function: in Python. on_cpu: compiled for the CPU.
    """

    def __init__(self, function, on_cpu):
        self.function, self.on_cpu = function, on_cpu

    def __call__(self, *args):
        return self.on_cpu(*args)


class CudaName:
    """What `cuda` is outside a running kernel: the decorator of device functions, and nothing else."""

    def jit(self, *, device: bool) -> Callable[[Callable[..., Any]], Any]:
        """Decorate a device function. Kernels are decorated with `kernel`."""
        if device is not True:
            raise TypeError("cuda.jit(device=True) decorates a device function; tcgpu's `kernel` decorates a kernel")
        return DeviceFunction

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"cuda.{name} has a meaning only inside a kernel that runs")

    def __repr__(self):
        return "<the name cuda in kernels>"

    def __reduce__(self):
        return "cuda"


cuda = CudaName()


def is_cuda(value):
    """Whether a value is `cuda` for a kernel: tcgpu's `cuda`, or the module `numba.cuda`."""
    return value is cuda or (isinstance(value, ModuleType) and value.__name__ == "numba.cuda")


def is_device_function(value):
    """Whether the value is a device function, tcgpu's or Numba's."""
    return isinstance(getattr(value, "py_func", None), FunctionType)


def names_of(function):
    """The values of a function's names: name -> value, of its module and of the enclosing functions."""
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    return {**function.__globals__, **{name: cell.cell_contents for name, cell in cells}}


def refuse_recursion(function, callers=()):
    """KernelError if a device function that a function calls, directly or not, calls itself."""
    if function in callers:
        raise KernelError(f"{function.__name__} calls itself: a kernel has no recursion; write a loop")
    for name, value in names_of(function).items():
        if name in function.__code__.co_names + function.__code__.co_freevars and is_device_function(value):
            refuse_recursion(value.py_func, (*callers, function))


def source_tree(function):
    """The syntax tree of a function, without decorators and annotations; the first line has the number 1."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
    except OSError:
        raise KernelError(NO_SOURCE.format(function.__name__)) from None
    with _parsing:
        tree = ast.parse(source)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"a kernel or device function is written with def: {function}")
    definition.decorator_list, definition.returns = [], None
    return tree


OPERATIONS = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.FloorDiv: "floordiv", ast.Mod: "mod", ast.LShift: "lshift",
    ast.RShift: "rshift", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor", ast.USub: "neg", ast.UAdd: "pos",
    ast.Invert: "invert",
}  # fmt: skip
OF_LITERALS = OPERATIONS | {ast.Pow: "pow"}


class KernelTransformer(ast.NodeTransformer):
    """Reads or rewrites the `source_tree` of a kernel or device function, whose names it looks up."""

    def __init__(self, function):
        self.names, self.local = names_of(function), set(function.__code__.co_varnames)

    def named(self, node):
        """The value of a name that is not a variable of the function; None for any other node."""
        if isinstance(node, ast.Name) and node.id not in self.local:
            return self.names.get(node.id)
        return None

    def is_cuda(self, node):
        return is_cuda(self.named(node))

    def device_function(self, call):
        """The Python function of the device function that a call calls; None if it calls none."""
        value = self.named(call.func)
        return value.py_func if is_device_function(value) else None

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


def compiled_tree(tree, function):
    """The code of a rewritten `source_tree`; tracebacks show the function's own lines."""
    ast.increment_lineno(ast.fix_missing_locations(tree), function.__code__.co_firstlineno - 1)
    module = compile(tree, function.__code__.co_filename, "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


# ------------------------------------------- signatures: "void(int64[::1], int32)" has an array and a number

# The arguments of compiled code, as formats of `struct`. An array is packed as two numbers that a device does not use,
# then its size, address, shape and strides. A number is packed into eight bytes, of which the code reads the lower.
ARRAY = "qqqqQ"
NUMBERS = {"bool": "q", "int32": "q", "uint32": "q", "int64": "q", "uint64": "Q", "float64": "d"}


class Parameter(NamedTuple):
    """One parameter of a kernel: a number, or an array of `dimensions`."""

    dtype: np.dtype
    dimensions: int = 0

    @property
    def form(self):
        """The format of `struct` that packs it."""
        return ARRAY + 2 * self.dimensions * "q" if self.dimensions else NUMBERS[self.dtype.name]

    @property
    def bits(self):
        """The widths of the numbers that the compiled code has for it."""
        return [64] * len(self.form) if self.dimensions else [8 * self.dtype.itemsize]


@cache
def parameters(signature):
    """The parameters that a text like "void(int64[::1], int32)" lists, as a tuple of Parameter."""
    inside = re.fullmatch(r"\s*void\s*\((.*)\)\s*", signature, re.DOTALL)
    if not inside:
        raise ValueError(f"a kernel's signature is void(...), not {signature!r}")
    found, inside = [], inside[1].strip().removesuffix(",")
    for text in re.split(r",(?![^[]*\])", inside) if inside else ():
        match = re.fullmatch(r"\s*(\w+)(?:\[([:,1 ]*)\])?\s*", text)
        if not match:
            raise ValueError(f"expected a type like int64 or int32[::1] at {text!r} of {signature!r}")
        dtype, dimensions = match[1].replace("boolean", "bool"), match[2]
        found.append(Parameter(np.dtype(dtype), 0 if dimensions is None else dimensions.count(",") + 1))
    return tuple(found)


def type_of(value):
    """The type of an argument in a signature, as text: "int64" of a whole number, "int32[::1]" of an array."""
    dtype = getattr(value, "dtype", None)
    if dtype is None:
        kinds = {bool: "bool", int: "int64", float: "float64"}
        if type(value) not in kinds:
            raise TypeError(f"a kernel takes arrays and numbers, not {value!r}")
        return kinds[type(value)]
    return array_type(dtype, value.ndim) if value.shape else np.dtype(dtype).name


def array_type(dtype, dimensions=1):
    """The type of a contiguous array in a signature, as text."""
    return f"{np.dtype(dtype).name}[{', '.join([':'] * (dimensions - 1) + ['::1'])}]"
