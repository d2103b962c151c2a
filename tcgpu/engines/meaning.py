"""What a function means: a digest that changes when its code does, or a value that it uses, or a function it reaches.

Machine code that is kept on disk is named by it, because a compiler copies or links all of that into the code.
"""

import hashlib
import sys
from functools import cache
from types import CodeType, FunctionType, ModuleType

import numpy as np

from tcgpu.engines.kernel_language import CallersFunction, is_cuda, names_of

# Packages whose functions and modules are only named: their versions are parts of the keys.
LIBRARIES = {*sys.stdlib_module_names, "numpy", "numba", "llvmlite", "cuda"}


def meaning(function, here=False):
    """The digest of a function: 64 hexadecimal digits, the same in every process.

    here: tell objects of this process apart by their addresses, too.
    """
    texts, left = {}, [function]
    while left:
        function = left.pop()
        if function not in texts:
            code, used = _code_and_names(function.__code__)
            names = names_of(function)
            values = [(name, _text(names[name], used, left, here)) for name in used if name in names]
            texts[function] = repr((code, function.__defaults__, values))
    return hashlib.sha256("\n".join(texts.values()).encode()).hexdigest()


def _text(value, used, reached, here):
    """A text that changes when a value does; a function is named, and added to `reached`. used: names of attributes."""
    function = _function(value)
    if function is not None:
        reached.append(function)
        return function.__name__
    if is_cuda(value):
        return "cuda"
    if _of_library(value):
        return value.__name__
    if isinstance(value, ModuleType):
        found = [(name, vars(value)[name]) for name in used if name in vars(value)]
        return repr([(name, repr(each) if isinstance(each, ModuleType) else _text(each, used, reached, here))
                     for name, each in found])  # fmt: skip
    if isinstance(value, np.ndarray):  # all elements of a constant array: repr shortens it
        return repr((value.dtype.str, value.shape, hashlib.sha256(np.ascontiguousarray(value)).hexdigest()))
    if isinstance(value, tuple):
        return repr((type(value), [_text(each, used, reached, here) for each in value]))
    text = repr((value, getattr(value, "_fields", None)))  # the latter of classes
    return repr(type(value)) if " at 0x" in text and not here else text


def _function(value):
    """The Python function that a value is or compiles: Numba's, a kernel's, or the body of an intrinsic; else None."""
    if isinstance(value, CallersFunction):
        return value.function
    value = getattr(value, "py_func", None) or getattr(value, "_defn", value)
    return value if isinstance(value, FunctionType) and not _of_library(value) else None


def _of_library(value):
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(value, (ModuleType, FunctionType)) and name.partition(".")[0] in LIBRARIES


@cache
def _code_and_names(code):
    """A digest of a function's code without line numbers, and all names that it uses, sorted."""
    return hashlib.sha256(repr(_code(code)).encode()).hexdigest(), sorted(all_names(code))


def _code(code):
    constants = [_code(each) if isinstance(each, CodeType) else repr(each) for each in code.co_consts]
    return (code.co_code, constants, code.co_names, code.co_varnames, code.co_freevars, code.co_argcount)


def all_names(code):
    """The names that code uses: of globals, attributes, and variables of enclosing functions."""
    inner = (each for each in code.co_consts if isinstance(each, CodeType))
    return {*code.co_names, *code.co_freevars}.union(*map(all_names, inner))
