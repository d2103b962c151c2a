"""The types of a kernel's parameters, as text: "void(int64[::1], int32)" has an array and a number."""

import re
from functools import cache
from typing import NamedTuple

import numpy as np

# The arguments of compiled code, as formats of `struct`. An array is packed as two numbers that a device does not use,
# then its size, address, shape and strides. A number is packed into eight bytes, of which the code reads the lower.
ARRAY = "qqqqQ"
NUMBERS = {"bool": "q", "int32": "q", "uint32": "q", "int64": "q", "uint64": "Q", "float64": "d"}
BITS = {"bool": 8, "int32": 32, "uint32": 32, "int64": 64, "uint64": 64, "float64": 64}

_PARAMETER = re.compile(r"(\w+)(?:\[([:,1 ]*)\])?\s*(?:,|$)")


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
        return [64] * len(self.form) if self.dimensions else [BITS[self.dtype.name]]


@cache
def parameters(signature):
    """The parameters that a text like "void(int64[::1], int32)" lists, as a tuple of Parameter."""
    inside = re.fullmatch(r"\s*void\s*\((.*)\)\s*", signature, re.DOTALL)
    if not inside:
        raise ValueError(f"a kernel's signature is void(...), not {signature!r}")
    found, text, at = [], inside[1].strip(), 0
    while at < len(text):
        match = _PARAMETER.match(text, at)
        if not match:
            raise ValueError(f"expected a type like int64 or int32[::1] at {text[at:]!r} of {signature!r}")
        name, dimensions = match[1].replace("boolean", "bool"), match[2]
        found.append(Parameter(np.dtype(name), 0 if dimensions is None else dimensions.count(",") + 1))
        at = match.end() + len(text[match.end() :]) - len(text[match.end() :].lstrip())
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
