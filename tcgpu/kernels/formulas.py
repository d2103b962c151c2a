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

        >>> Formula("blocks * n / 32", {"n", "blocks"}, "the size of array 'bits'")({"n": 33, "blocks": 4})
        5
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
        self._check(self.tree, names)

    def _check(self, node, names):
        """MethodError if the node is not one of those that a formula may have."""
        if isinstance(node, ast.Name):
            if node.id not in names:
                hint = did_you_mean(node.id, names)
                raise MethodError(
                    f"{self.what}, {self.text!r}, has the name {node.id!r}{hint}; names are {', '.join(sorted(names))}"
                )
            return
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATIONS:
            parts = [node.left, node.right]
        elif (
            isinstance(node, ast.Call)
            and getattr(node.func, "id", "") in FUNCTIONS
            and len(node.args) > 1
            and not node.keywords
        ):
            parts = node.args
        else:
            raise MethodError(f"{self.what}, {self.text!r}, has {ast.unparse(node)!r}: a formula takes {ALLOWED}")
        for part in parts:
            self._check(part, names)

    def __call__(self, values):
        """The number, from the values of the names; MethodError if it is below 0, or divides by 0."""
        try:
            found = math.ceil(self._value(self.tree, values))
        except ZeroDivisionError:
            raise MethodError(f"{self.what}, {self.text!r}, divides by 0 here") from None
        if found < 0:
            raise MethodError(f"{self.what}, {self.text!r}, is {found:,} here: it is 0 or more")
        return found

    def _value(self, node, values):
        if isinstance(node, ast.Name):
            return values[node.id]
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.BinOp):
            return OPERATIONS[type(node.op)](self._value(node.left, values), self._value(node.right, values))
        return FUNCTIONS[node.func.id](*(self._value(part, values) for part in node.args))
