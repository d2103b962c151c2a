"""Mistakes in a kernel, in words: Python that runs in the simulator and on no GPU, and what exceptions mean there."""

import ast
import builtins
import inspect
import re
import types

import numpy as np

from tcgpu.engines.kernel_language import KernelTransformer, source_tree
from tcgpu.engines.simulator import Atomics, SharedMemory, SimulatedCuda
from tcgpu.errors import TcgpuError
from tcgpu.insight.lanes import ATOMIC_TAKES
from tcgpu.suggest import did_you_mean

MISSING = {  # parts of Python that no kernel has -> what to say
    (ast.List, ast.ListComp): "a kernel has no lists: numbers of a thread's own go into cuda.local.array(size, type)",
    (ast.Dict, ast.DictComp): "a kernel has no dict: look values up in an array",
    (ast.Set, ast.SetComp): "a kernel has no set: mark values in an array",
    (ast.GeneratorExp, ast.Yield, ast.YieldFrom): "a kernel has no generators: write a loop",
    ast.JoinedStr: "a kernel has no texts",
    ast.Try: "a kernel has no exceptions: test with `if`",
    ast.With: "a kernel has no `with`",
    ast.ClassDef: "a kernel has no classes",
    (ast.Import, ast.ImportFrom): "a kernel imports nothing: import in front of it",
}
BUILT_INS = {
    "list", "dict", "set", "frozenset", "tuple", "sorted", "sum", "map", "filter", "any", "all", "str", "iter", "next",
    "open", "input",
}  # fmt: skip
NAMES = [name for name in dir(SimulatedCuda) if not name.startswith("_")] + ["shared", "threadIdx", "blockIdx"]
OF_CUDA = {SimulatedCuda: "cuda", Atomics: "cuda.atomic", SharedMemory: "cuda.shared"}


def sentence(kernel, function, line, source, says):
    """What is wrong at a line of a kernel's source, or of that of a device function that it calls."""
    inside = "" if function == kernel else f" (in {function})"
    return f"{kernel}, line {line}{inside}, `{source}`: {says}"


def mistakes_in(function, arrays=()):
    """What no GPU runs of the source of a kernel's Python function, a sentence for each line; arrays: which of its
    parameters are arrays."""
    found = {}
    _Reader(function, arrays, function.__name__, found, ()).read()
    return list(found.values())


class _Reader(KernelTransformer):
    """Collects the mistakes in a function, one for each line; `callers`: the functions that it is called by."""

    def __init__(self, function, arrays, kernel, found, callers):
        super().__init__(function)
        self.function, self.arrays, self.kernel, self.found, self.callers = function, arrays, kernel, found, callers
        self.lines, self.first = inspect.getsourcelines(function)

    def read(self):
        definition = source_tree(self.function).body[0]
        for statement in definition.body:
            self.visit(statement)

    def mistake(self, node, says):
        line, source = self.first + node.lineno - 1, self.lines[node.lineno - 1].strip()
        place = self.function.__code__, line
        self.found.setdefault(place, sentence(self.kernel, self.function.__name__, line, source, says))

    def visit(self, node):
        for kinds, says in MISSING.items():
            if isinstance(node, kinds):
                self.mistake(node, says)
                return node
        return super().visit(node)

    def visit_Call(self, call):
        function = self.device_function(call)
        if function in (self.function, *self.callers):
            self.mistake(call, f"{function.__name__} calls itself: a kernel has no recursion; write a loop")
        elif function:
            _Reader(function, (), self.kernel, self.found, (self.function, *self.callers)).read()
        elif isinstance(self.named(call.func), types.FunctionType):
            name = ast.unparse(call.func)
            self.mistake(call, f"{name} is a function of Python: decorate it with @cuda.jit(device=True)")
        elif self.calls(call, *BUILT_INS):
            self.mistake(call, f"a kernel has no {call.func.id}()")
        elif isinstance(call.func, ast.Attribute):
            self.calls_attribute(call)
        self.generic_visit(call)
        return call

    def calls_attribute(self, call):
        """A call of a function of NumPy, or of `cuda.shared.array` and `cuda.local.array`."""
        name, of = call.func.attr, call.func.value
        if self.named(of) is np and not isinstance(getattr(np, name, np.ufunc), (type, np.ufunc)):
            self.mistake(call, f"a kernel has no {ast.unparse(call.func)}(): it works on whole arrays")
        if name == "array" and isinstance(of, ast.Attribute) and self.is_cuda(of.value):
            sizes = [*call.args[:1], *(keyword.value for keyword in call.keywords if keyword.arg == "shape")]
            if any(map(self.is_known_late, sizes)):
                says = f"the size of cuda.{of.attr}.array is a number that the source says"
                if of.attr == "shared":
                    says += "; with the size 0, the array has as many bytes as the launch asks for in shared="
                self.mistake(call, says)

    def is_known_late(self, size):
        """Whether a size depends on what is known only when the kernel runs."""
        late = set(inspect.signature(self.function).parameters)
        return any(
            isinstance(node, ast.Call)
            or (isinstance(node, ast.Name) and node.id in late)
            or (isinstance(node, ast.Attribute) and self.is_cuda(node.value))
            for node in ast.walk(size)
        )

    def whole(self, node, *operands):
        """A mistake if an operand is an array, where only one of its elements is meant."""
        for operand in operands:
            if isinstance(operand, ast.Name) and operand.id in self.arrays:
                self.mistake(node, f"{operand.id} is an array: one of its elements is {operand.id}[...]")
        self.generic_visit(node)
        return node

    def visit_BinOp(self, node):
        return self.whole(node, node.left, node.right)

    def visit_AugAssign(self, node):
        return self.whole(node, node.target, node.value)

    def visit_Compare(self, node):
        operands = [node.left, *node.comparators]
        return self.whole(node, *(() if isinstance(node.ops[0], (ast.In, ast.NotIn)) else operands))


def explained(error, frame):
    """An exception that a kernel raised, in words; frame: where in the kernel."""
    says = str(error)
    if isinstance(error, AttributeError):
        for kind, name in OF_CUDA.items():
            if isinstance(error.obj, kind):
                known = NAMES if kind is SimulatedCuda else [each for each in dir(kind) if not each.startswith("_")]
                return f"{name} has no {error.name!r}{did_you_mean(error.name, known)}"
    if isinstance(error, UnboundLocalError):
        name = re.search(r"'(\w+)'", says)
        return f"{name[1] if name else 'a variable'} has no value yet: not every way to this line gives it one"
    if isinstance(error, NameError):
        known = [*frame.f_locals, *(name for name in frame.f_globals if not name.startswith("_")), *dir(builtins)]
        hint = f" (did you mean 'cuda.{error.name}'?)" if error.name in NAMES else did_you_mean(error.name, known)
        return f"there is no name {error.name!r}{hint}"
    found = re.search(r"'(?:numpy\.)?(float\d*)' object cannot be interpreted as an integer", says)
    if found:
        return f"a number of type {found[1]} where a whole number is needed, such as an index; // divides whole numbers"
    if isinstance(error, TcgpuError) or says == ATOMIC_TAKES:
        return says
    return f"{type(error).__name__}: {says}"
