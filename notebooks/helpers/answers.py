"""Check what a reader answers in a notebook. Each answer is None until the reader sets it."""

from collections.abc import Callable
from numbers import Number

from tcgpu.errors import TcgpuError
from tcgpu.insight.checking import Report
from tcgpu.registry import Method

KINDS = {  # the first that fits
    bool: "True or False", Number: "a number", str: "a text", (list, tuple): "a list", (set, frozenset): "a set",
    dict: "a dict", Method: "a method", type: "a class", Callable: "a function",
}  # fmt: skip


def verdict(answer, right, because="", *, like=None, among=()):
    """Say whether an answer is right, and why.

    right: the value, or a function of the answer that returns whether it is right; `tcgpu.check` is one for kernels.
    because: the reason, in words, or a function of the answer that returns it. like: an answer of the expected kind, if
    `right` is a function. among: the texts that can be picked; upper and lower case are the same.
    """
    if answer is None:
        return "not answered yet"
    try:
        found, reason = _judged(answer, right, because, like, among)
    except TcgpuError as error:
        found, reason = False, error
    except Exception as error:  # of what the reader wrote, or of what it is checked by
        found, reason = False, f"checking it ended in {type(error).__name__}: {error}"
    if isinstance(found, Report):
        return "\n".join(map(str, [found.headline, *found.problems[:1]]))
    return ("right" if found else f"{answer} is not right") + (f": {reason}" if reason else "")


def _judged(answer, right, because, like, among):
    """Whether an answer is right, or the Report of a kernel; and the reason."""
    example = "" if among else like if callable(right) else right
    if example is not None and _kind(answer) != _kind(example):
        return False, f"{_kind(example)} is expected, not {_kind(answer)}"
    if among:
        picked = {text.lower(): text for text in among}
        if answer.strip().lower() not in picked:
            return False, f"it is none of {', '.join(among)}"
        answer = picked[answer.strip().lower()]
    found = right(answer) if callable(right) else _as_tuples(answer) == _as_tuples(right)
    reason = because(answer) if callable(because) else because
    return found if isinstance(found, Report) else bool(found), reason


def _kind(value):
    """What a value is, in words."""
    return next((words for kind, words in KINDS.items() if isinstance(value, kind)), f"a {type(value).__name__}")


def _as_tuples(value):
    """A value, with a tuple for each list: a reader may write either."""
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value
