"""Formulas: sizes as text, such as "blocks * n / 32", computed from the numbers of a graph and of a launch."""

import ast
import math
import operator
from fractions import Fraction

import numpy as np

from tcgpu.errors import MethodError
from tcgpu.suggest import did_you_mean

OPERATIONS = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: Fraction,
    ast.FloorDiv: operator.floordiv, ast.Mod: operator.mod,
}  # fmt: skip
FUNCTIONS = {"min": min, "max": max}
ALLOWED = "whole numbers, names, + - * / // %, parentheses, min and max"


class Formula:
    """A number that follows from others: + - * / // %, min and max of whole numbers and names.

    It is computed exactly, and rounded up at the end: "n / 32" of 33 vertices is 2.
    """

    def __init__(self, text, names, what):
        """text: a str, or a whole number; names: those it may use; what: what it is, for messages.

        Raises MethodError, which says what is wrong, for anything else.
        """
        self.text, self.what = text, what
        if isinstance(text, (int, np.integer)) and not isinstance(text, bool):
            text = str(text)
        if not isinstance(text, str):
            raise MethodError(f"{what} is a whole number or a formula such as 'n / 32', not {text!r}")
        try:
            self.tree = ast.parse(text.strip(), mode="eval").body
        except (SyntaxError, ValueError):
            raise MethodError(f"{what}, {text!r}, is no formula: it takes {ALLOWED}") from None
        self._value = self._compiled(self.tree, names)

    def _compiled(self, node, names):
        """A function of the values of the names; MethodError if the node is none of those that a formula may have."""
        match node:
            case ast.Constant(value) if type(value) is int:
                return lambda values: value
            case ast.Name(name) if name in names:
                return lambda values: values[name]
            case ast.Name(name):
                hint, known = did_you_mean(name, names), ", ".join(sorted(names))
                raise MethodError(f"{self.what}, {self.text!r}, has the name {name!r}{hint}; names are {known}")
            case ast.BinOp(left, operation, right) if type(operation) in OPERATIONS:
                function, parts = OPERATIONS[type(operation)], (left, right)
            case ast.Call(ast.Name("min" | "max" as name), [_, _, *_] as parts, []):
                function = FUNCTIONS[name]
            case _:
                raise MethodError(f"{self.what}, {self.text!r}, has {ast.unparse(node)!r}: a formula takes {ALLOWED}")
        parts = [self._compiled(part, names) for part in parts]
        return lambda values: function(*(part(values) for part in parts))

    def __call__(self, values):
        """The number, from the values of the names; MethodError if it is below 0, or divides by 0."""
        try:
            found = math.ceil(self._value(values))
        except ZeroDivisionError:
            raise MethodError(f"{self.what}, {self.text!r}, divides by 0 here") from None
        if found < 0:
            raise MethodError(f"{self.what}, {self.text!r}, is {found:,} here: it is 0 or more")
        return found
