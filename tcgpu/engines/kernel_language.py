"""The names that kernels are written in: `cuda`, the integer types, and device functions.

A module of kernels imports these names and no compiler. Inside a kernel, `cuda` means what `numba.cuda` means. Outside,
it is only a name: the simulator puts a `SimulatedCuda` in its place, the compiler the module `numba.cuda`.
"""

import ast
import inspect
import textwrap
from types import CodeType, FunctionType, ModuleType

import numpy as np

from tcgpu.engines.forking import fork_safe_lock
from tcgpu.errors import KernelError

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

    def jit(self, *, device):
        """Decorate a device function. Kernels are decorated with `kernel`."""
        if device is not True:
            raise TypeError("cuda.jit(device=True) decorates a device function; tcgpu's `kernel` decorates a kernel")
        return DeviceFunction

    def __getattr__(self, name):
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
    source = textwrap.dedent(inspect.getsource(function))
    with _parsing:
        tree = ast.parse(source)
    definition = tree.body[0]
    if not isinstance(definition, ast.FunctionDef):
        raise TypeError(f"a kernel or device function is written with def: {function}")
    definition.decorator_list, definition.returns = [], None
    return tree


def compiled_tree(tree, function):
    """The code of a rewritten `source_tree`; tracebacks show the function's own lines."""
    ast.increment_lineno(ast.fix_missing_locations(tree), function.__code__.co_firstlineno - 1)
    module = compile(tree, function.__code__.co_filename, "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))
