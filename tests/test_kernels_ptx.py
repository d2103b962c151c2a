"""Every kernel compiled for GPUs from Turing to Hopper, with no GPU: types resolve, and nothing slow is in the code."""

import ast
import inspect
import textwrap
from itertools import product

import pytest
from kernel_shapes import every_kernel, name_of
from sampling import share

from tcgpu.engines import kernel_compiler

pytestmark = pytest.mark.ptx

CAPABILITIES = [(7, 5), (8, 0), (9, 0)]
MOST_REGISTERS = 64  # so that at least half of an SM's threads can be there at once


def target(capability):
    return "sm_{}{}".format(*capability)


def barriers(function):
    """The number of block barriers in the source of a kernel and of the device functions it calls."""
    found = 0
    for call in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
        if isinstance(call, ast.Call):
            if isinstance(call.func, ast.Attribute):
                found += call.func.attr.startswith("syncthreads")
            elif isinstance(call.func, ast.Name) and hasattr(function.__globals__.get(call.func.id), "py_func"):
                found += barriers(function.__globals__[call.func.id].py_func)
    return found


@pytest.mark.parametrize("kernel", share(every_kernel(), "kernels"), ids=name_of)
def test_compiles_to_integers_in_registers_with_the_barriers_as_written(kernel):
    assert kernel.signatures
    for signature, capability in share(product(kernel.signatures, CAPABILITIES), kernel.__name__, of=6):
        check_compiled(kernel, signature, capability)


def check_compiled(kernel, signature, capability):
    """CPython copies a short end of a function into each branch that leads there, and LLVM may follow suit. Lanes of a
    warp that then wait at two copies of one barrier wait for ever."""
    found = kernel_compiler.facts(kernel.py_func, signature, capability, kernel.most_threads)
    assert found.barriers <= barriers(kernel.py_func)
    assert ".entry" in found.ptx and f".target {target(capability)}" in found.ptx
    assert not found.floats, "counts with floating point"
    assert not found.local, "keeps variables in local memory"
    assert found.spilled == 0
    assert found.registers <= MOST_REGISTERS


def test_there_are_kernels():
    names = set(map(name_of, every_kernel()))
    assert {"naive.naive_kernel", "column_block.column_block_kernel", "bitmap.bitmap_kernel"} <= names
