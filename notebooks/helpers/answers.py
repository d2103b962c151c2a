"""Check what a reader answers in a notebook: `verdict` a value, `kernel_verdict` a kernel.

An answer is None until the reader sets it; a kernel has `...` where something is missing.
"""

import ast
import math
from collections.abc import Callable
from functools import cache
from numbers import Number

from IPython.display import display

import tcgpu
from tcgpu import hardware
from tcgpu.engines.kernel_language import is_device_function, names_of, source_tree
from tcgpu.errors import TcgpuError
from tcgpu.insight.checking import Check, Report, reference_graphs
from tcgpu.registry import Method

KINDS = {  # the first that fits
    bool: "True or False", Number: "a number", str: "a text", (list, tuple): "a list", (set, frozenset): "a set",
    dict: "a dict", Method: "a method", type: "a class", Callable: "a function",
}  # fmt: skip
MEASURES = {  # of a trace, in words
    "load_requests": "load requests",
    "load_sectors": "sectors loaded",
    "sectors_per_request": "sectors a request",
    "store_requests": "store requests",
    "shared_requests": "requests in shared memory",
    "bank_conflicts": "bank conflicts",
    "atomics": "atomic additions",
    "barriers": "waits of a warp at a barrier",
    "idle_lanes_%": "idle lanes, %",
}
GRAPH = tcgpu.generate.rmat(7, seed=1)  # what kernels are scored on
OURS = "tcgpu", "helpers"  # packages, whose kernels are not the reader's

FOLDED = """\
<details class="answer"><summary>The answer (decide first)</summary></details>
<style>
.jp-OutputArea-child:has(details.answer:not([open])) ~ .jp-OutputArea-child,
.cell_output > :has(details.answer:not([open])) ~ * { display: none }
</style>
"""


class Fold:
    """An output that hides those after it in its cell, until a click opens it; in JupyterLab and on the site."""

    def __repr__(self):
        return "(the answer follows)"

    def _repr_html_(self):
        return FOLDED


def fold(*given):
    """Fold the outputs of a cell that shows an answer: its first line. An answer that the reader has given unfolds it.

    given: the variables of the question, None until the reader sets them.
    """
    if not given or any(answer is None for answer in given):
        display(Fold())


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
    called = answer.__name__ if _kind(answer) == "a function" else answer
    return ("right" if found else f"{called} is not right") + (f": {reason}" if reason else "")


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
    if isinstance(found, Report):
        return found, reason
    if not found and not reason:
        others = " or ".join(text for text in among if text != answer)
        reason = f"it is {others}" if among else _difference(answer, right)
    return bool(found), reason


def _difference(answer, right):
    """What is wrong with an answer, without the right one; `right` may be a function, which does not tell."""
    if isinstance(right, Number) and not isinstance(right, bool):
        return "it is less" if answer > right else "it is more"
    if isinstance(right, (set, frozenset)):
        return f"{len(answer & right)} of these {len(answer)} belong there, {len(right - answer)} are missing"
    if isinstance(right, (list, tuple)):
        same = sum(_as_tuples(one) == _as_tuples(other) for one, other in zip(answer, right, strict=False))
        return f"{same} of {len(right)} are right" if len(answer) == len(right) else f"there are {len(right)}"
    if isinstance(right, dict):
        return f"{sum(answer.get(key) == value for key, value in right.items())} of {len(right)} are right"
    return "the hint says how to begin"


def _kind(value):
    """What a value is, in words."""
    return next((words for kind, words in KINDS.items() if isinstance(value, kind)), f"a {type(value).__name__}")


def _as_tuples(value):
    """A value, with a tuple for each list: a reader may write either."""
    return tuple(map(_as_tuples, value)) if isinstance(value, (list, tuple)) else value


# ------------------------------------------------------------------------------------------------------------- kernels


def kernel_verdict(answer, reference, most, fixed=(), name=None, without=()):
    """Say whether a kernel that the reader wrote counts right and requests little; then its score.

    reference: a method that does; both are traced with its launch. most: measure of a trace -> how much it may be.
    fixed: knobs that the check leaves as they are. name: what the kernel is to be called.
    without: device functions that it must not call, for they do what is asked for.
    """
    if answer is None:
        return "not answered yet"
    called = getattr(answer, "name", answer)
    try:
        return _judged_kernel(answer, reference, most, dict(fixed), name, without)
    except TcgpuError as error:
        return f"{called} is not right: {error}"
    except Exception as error:  # of what the reader wrote
        return f"{called} is not right: checking it ended in {type(error).__name__}: {error}"


def _judged_kernel(answer, reference, most, fixed, name, without):
    if not isinstance(answer, Method):
        hint = "; decorate it with @tcgpu.method(...)" if _kind(answer) == "a function" else ""
        return f"{answer!r} is not right: a kernel that you wrote is expected, not {_kind(answer)}{hint}"
    missing = [function.__name__ for function in functions_of(answer) if is_unfilled(function)]
    if missing:
        return f"not answered yet: `...` stands in {' and in '.join(missing)}"
    if name and answer.name != name:
        return f"{answer.name} is not right: here {name} is asked for"
    called = [value for function in functions_of(answer) for value in called_by(function)]
    borrowed = [each.__name__ for each in without if any(each is value for value in called)]
    if borrowed:
        return f"{answer.name} is not right: {borrowed[0]} is not to be called; write here what it does"
    checked = Check(answer, None, fixed, quick_graphs())
    kernels = [answer.function, *(kernel.py_func for kernel, _ in checked.kernels())]
    if not all(map(is_readers, kernels)):
        return f"{answer.name} is not right: its kernel is not yours; write one in this notebook"
    report = checked.run(hardware.gpus())
    if not report:
        return "\n".join(map(str, [report.headline, *report.problems[:1]]))
    mine, best = _measured(answer, reference.knobs), _best(reference)
    if mine["triangles"] != best["triangles"]:
        counts = f"it counts {mine['triangles']:,} triangles, there are {best['triangles']:,}"
        return f"{answer.name} is not right: on a graph of {GRAPH.m:,} edges {counts}"
    missed = [f"{mine[what]:,} {MEASURES[what]}, at most {value:,} are allowed" for what, value in most.items()
              if mine[what] > value]  # fmt: skip
    said = f"{answer.name} counts right, but misses the target: {'; '.join(missed)}." if missed else report.headline
    return f"{said}\n{_side_by_side(mine, best)}"


def functions_of(method):
    """The functions of a method that are the reader's: its own, and the device functions that they call."""
    found = [function for function in (method.function,) if is_readers(function)]
    for function in found:  # which grows
        called = (each.py_func for each in called_by(function))
        found += [each for each in called if is_readers(each) and each not in found]
    return found


def called_by(function):
    """The device functions that a function names."""
    values = (names_of(function).get(name) for name in function.__code__.co_names)
    return [value for value in values if is_device_function(value)]


def is_readers(function):
    """Whether a function is in none of our packages; a built-in method of the CPU has None."""
    return function is not None and function.__module__.partition(".")[0] not in OURS


def is_unfilled(function):
    """Whether `...` stands in a function."""
    return any(isinstance(node, ast.Constant) and node.value is ... for node in ast.walk(source_tree(function)))


def quick_graphs():
    """The graphs of `tcgpu.check`, without the one whose 70,000 columns take a block of threads minutes here."""
    return {name: graph for name, graph in reference_graphs().items() if graph.n < 1000}


@cache
def _best(reference):
    return _measured(reference, reference.knobs)


def _measured(method, knobs):
    """What a trace says of a method with knobs of the reference: its measures, and its count."""
    own = {name: value for name, value in knobs.items() if name in method.knobs}
    trace = tcgpu.trace(GRAPH, method, order="natural", max_seconds=math.inf, **own)
    totals = trace.totals()
    return totals | {"triangles": trace.triangles, "idle_lanes_%": round(100 * (1 - totals["lanes"] / 32))}


def _side_by_side(mine, best):
    """Two columns of measures."""
    rows = [("", "yours", "reference"), *((words, mine[what], best[what]) for what, words in MEASURES.items())]
    return "\n".join(f"{words:28}{str(one):>8}{str(other):>11}" for words, one, other in rows)
