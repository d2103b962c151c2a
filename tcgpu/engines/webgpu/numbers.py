"""Numbers in WGSL: what a text of a number computes, its type, and operations by NumPy's rule (see `engines.integers`).

WGSL of browsers has no integers of 64 bits. There, each is a pair, vec2<u32>(low, high), and functions compute with
pairs (`prelude`): exact, and slower. Where the device has them, an integer of 64 bits is an i64 or u64.
"""

import operator
from dataclasses import dataclass, replace

import numpy as np

WGSL = {"bool": "bool", "int32": "i32", "uint32": "u32", "int64": "i64", "uint64": "u64"}  # NumPy's name -> WGSL's
NUMPY = {kind: name for name, kind in WGSL.items()}
BIG = ("i64", "u64")
INFIX = {"add": "+", "sub": "-", "mul": "*", "and_": "&", "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>"}
CALLS = {
    "floordiv": "div_{}", "mod": "mod_{}", "rshift": "shr_{}",
    "add": "add_64", "sub": "sub_64", "mul": "mul_64", "lshift": "shl_64",  # the same for i64 and u64
}  # fmt: skip
ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne}


class NotInWgsl(Exception):
    """What a kernel uses and WebGPU lacks; the message is a part of a sentence."""


@dataclass(frozen=True)
class Value:
    """A number: its text, its type, and whether it is the same in all threads of a block.

    A literal, and a bool that is known when the kernel is translated, has its value in `literal`.
    """

    text: str
    type: str  # bool, i32, u32, i64 or u64; "literal" of a number that takes the type of the other operand
    uniform: bool = True
    literal: int | bool | None = None
    constant: int | None = None  # its number, if that is known; compilers refuse some operations on constants


@dataclass(frozen=True)
class Array:
    """An array: in a buffer, in the shared memory of a block, or of a thread. sizes: a Value for each dimension."""

    name: str
    type: str
    sizes: tuple
    where: str = "buffer"  # or "shared", "local"
    offset: Value | None = None  # elements in front of its first: of a slice
    words: int = 0  # how many elements a thread's own array has


@dataclass(frozen=True)
class Several:
    """A tuple, or a NamedTuple with `fields`, of Values, Arrays and Severals."""

    items: tuple
    fields: tuple = ()


def mapped(change, value):
    """The value, changed; of a Several, each item."""
    if isinstance(value, Several):
        return Several(tuple(mapped(change, item) for item in value.items), value.fields)
    return change(value)


def bare(text):
    """The text without parentheses around all of it."""
    depth = 0
    for k, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if depth == 0 and k < len(text) - 1:
            return text
    return text[1:-1] if text.startswith("(") else text


def literal(number):
    """A literal, or a bool, as a Value."""
    return Value("", "bool" if isinstance(number, bool) else "literal", True, number)


def wrapped(number, kind):
    """A whole number as one of this type."""
    if kind == "bool":
        return int(bool(number))
    bits = 64 if kind in BIG else 32
    number = int(number) & (1 << bits) - 1
    return number - (number >> bits - 1 << bits) if kind[0] == "i" else number


def unsigned(text, uniform=True):
    return Value(text, "u32", uniform)


class Numbers:
    """Operations on Values. wide: whether the device has integers of 64 bits."""

    def __init__(self, wide):
        self.wide = wide

    def name(self, kind):
        """A type in WGSL."""
        return "vec2<u32>" if kind in BIG and not self.wide else kind

    def is_pair(self, kind):
        return kind in BIG and not self.wide

    def constant(self, number, kind):
        """The text of a number of this type; it wraps around."""
        number = wrapped(number, kind)
        if kind == "bool":
            return str(bool(number)).lower()
        if self.is_pair(kind):
            return f"vec2<u32>({number & 0xFFFFFFFF}u, {number >> 32 & 0xFFFFFFFF}u)"
        ending = {"i32": "", "u32": "u", "i64": "li", "u64": "lu"}[kind]
        if number == np.iinfo(NUMPY[kind]).min < 0:  # there is no literal for the least one
            return f"({number + 1}{ending} - 1{ending})"
        return f"({number}{ending})" if number < 0 else f"{number}{ending}"

    def known(self, number, kind):
        """A number of this type; it wraps around."""
        return Value(self.constant(number, kind), kind, constant=wrapped(number, kind))

    def cast(self, value, kind):
        if not isinstance(value, Value):
            raise NotInWgsl("a number is needed here")
        number = value.constant if value.literal is None else value.literal
        if number is not None:
            if kind == "i64":
                self.check_fits(value, kind)
            return self.known(number, kind)
        have, text = value.type, value.text
        if have == kind:
            return value
        if kind == "bool":
            return self.compare("!=", value, literal(0))
        if have == "bool":
            text = f"select({self.constant(0, kind)}, {self.constant(1, kind)}, {text})"
        elif self.is_pair(have) and not self.is_pair(kind):
            text = f"{text}.x" if kind == "u32" else f"i32({text}.x)"
        elif self.is_pair(kind) and not self.is_pair(have):
            text = f"vec2<u32>({text}, 0u)" if have == "u32" else f"from_i32({text})"
        elif not self.is_pair(kind):
            if kind in BIG and have[0] != kind[0] and have not in BIG:
                text = f"{have[0]}64({text})"  # first to 64 bits: naga extends by the sign of the new type
            text = f"{kind}({text})"
        return Value(text, kind, value.uniform)

    def fits(self, value, kind):
        """Whether a value, if it is a literal, is a number of this type."""
        if value.type != "literal" or kind == "bool":
            return True
        info = np.iinfo(NUMPY[kind])
        return info.min <= value.literal <= info.max

    def check_fits(self, value, kind):
        if not self.fits(value, kind):
            raise NotInWgsl(f"{value.literal} is out of the bounds of {NUMPY[kind]}")

    def common(self, *values):
        """The type of an operation on values; "literal" if all are literals."""
        if not all(isinstance(value, Value) for value in values):
            raise NotInWgsl("a number is needed here")
        kinds = {value.type for value in values} - {"literal"}
        if not kinds:
            return "literal"
        found = np.result_type(*(NUMPY[kind] for kind in kinds))
        if found.kind == "f":
            raise NotInWgsl(f"{' and '.join(sorted(NUMPY[kind] for kind in kinds))} have no common integer type")
        if found.kind != "b" or all(value.type == "bool" for value in values):
            return WGSL[found.name]
        return "i64"  # of a bool and a literal

    def typed(self, *values):
        """Values in their common type, that type, and whether all are uniform; a type of literals alone is i64."""
        kind = self.common(*values)
        kind = "i64" if kind == "literal" else kind
        for value in values:
            self.check_fits(value, kind)
        return [self.cast(value, kind).text for value in values], kind, all(value.uniform for value in values)

    def operate(self, name, left, right):
        """left (name) right"""
        (a, b), kind, uniform = self.typed(left, right)
        if kind == "bool" and name not in ("and_", "or_", "xor"):
            raise NotInWgsl(f"{name} of bools: convert one to an integer type")
        if name in ("lshift", "rshift"):
            b = self.cast(right, "u32").text
        x, y = (self.cast(each, kind).constant for each in (left, right))
        if kind != "bool" and None not in (x, y):
            if name in ("lshift", "rshift"):
                y %= 64 if kind in BIG else 32
            empty = y == 0 and name in ("floordiv", "mod")
            return self.known(0 if empty else getattr(operator, name)(x, y), kind)
        sign = INFIX.get(name)
        if kind == "bool" and name == "xor":
            sign = "!="
        elif kind == "u32" and right.literal:  # it is not 0
            sign = sign or {"floordiv": "/", "mod": "%"}.get(name)
        if sign and not (self.is_pair(kind) and name in CALLS):
            return Value(f"({a} {sign} {b})", kind, uniform)
        if name not in CALLS:
            raise NotInWgsl(f"the operation {name}")
        return Value(f"{CALLS[name].format(kind)}({a}, {b})", kind, uniform)

    def inverted(self, value):
        if value.type == "bool":
            return Value(f"!{value.text}", "bool", value.uniform)
        if value.literal is not None:
            return literal(not value.literal if isinstance(value.literal, bool) else ~value.literal)
        if value.constant is not None:
            return self.known(~value.constant, value.type)
        return replace(value, text=f"(~{value.text})")

    def compare(self, sign, left, right):
        kind = self.common(left, right)
        for value in (left, right):
            if kind != "literal" and not self.fits(value, kind):  # any number of the type compares in the same way
                return literal(ORDER[sign](*(each.literal if each is value else 0 for each in (left, right))))
        x, y = (self.cast(each, "i64" if kind == "literal" else kind).constant for each in (left, right))
        if None not in (x, y):
            return literal(ORDER[sign](x, y))
        (a, b), kind, uniform = self.typed(left, right)
        if kind == "bool" and sign not in ("==", "!="):
            return self.compare(sign, self.cast(left, "i32"), self.cast(right, "i32"))
        text = f"({a} {sign} {b})"
        if self.is_pair(kind):
            text = {
                "==": f"all({a} == {b})", "<": f"less_{kind}({a}, {b})", "<=": f"!less_{kind}({b}, {a})",
                "!=": f"any({a} != {b})", ">": f"less_{kind}({b}, {a})", ">=": f"!less_{kind}({a}, {b})",
            }[sign]  # fmt: skip
        return Value(text, "bool", uniform)

    def extreme(self, name, values):
        """min or max of values, whose texts are used twice if they are of 64 bits."""
        found = values[0]
        for each in values[1:]:
            (a, b), kind, uniform = self.typed(found, each)
            x, y = (self.cast(value, kind).constant for value in (found, each))
            if None not in (x, y):
                found = self.known({"min": min, "max": max}[name](x, y), kind)
                continue
            if kind in BIG:
                less = self.compare("<", Value(a, kind), Value(b, kind)).text
                text = f"select({b}, {a}, {less})" if name == "min" else f"select({a}, {b}, {less})"
            else:
                text = f"{name}({a}, {b})"
            found = Value(text, kind, uniform)
        return found

    def words(self, value):
        """The two words, low and high, of a value of 64 bits, whose text is used twice."""
        if self.wide:
            return f"u32(u64({value.text}) & 0xfffffffflu)", f"u32(u64({value.text}) >> 32u)"
        return f"{value.text}.x", f"{value.text}.y"

    def whole(self, low, high, kind):
        """The text of a number of 64 bits of two words."""
        return f"{kind}(u64({low}) | (u64({high}) << 32u))" if self.wide else f"vec2<u32>({low}, {high})"
