"""Notebook 10: its three cases have the faults that its text names, and its solutions mend them."""

import inspect
import linecache
import re

import nbformat
import pytest

import tcgpu
from helpers import cases
from tcgpu import cuda, int64
from tcgpu.insight import checking

pytestmark = pytest.mark.sim


@pytest.fixture
def solutions(root):
    """The kernels under "Solution", in order."""
    cells = nbformat.read(root / "notebooks" / "10_your_kernel.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    return [of_reader(source, "mended") for source in found if "def mended" in source]


def test_the_solutions_are_right(solutions):
    for number, mended in enumerate(solutions, 1):
        assert cases.verdict(number, mended).startswith("mended is right.\n")


def test_what_does_not_mend_a_case_is_told_so(solutions, monkeypatch):
    monkeypatch.setattr(checking, "SHRINKING", 0.2)
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    slow, racing, without_a_barrier = (handed_in(case.function) for case in (cases.case_1, cases.case_2, cases.case_3))
    assert "misses the target: 9.11 sectors a request, at most 6.2 are allowed" in cases.verdict(1, slow)
    assert "a race" in cases.verdict(2, racing) and "a race" in cases.verdict(3, without_a_barrier)
    assert "misses the target: 128 atomic additions" in cases.verdict(3, solutions[1])
    for case in (cases.case_1, cases.case_2, cases.case_3, tcgpu.methods()[1]):
        assert (
            cases.verdict(1, case) == f"{case.name} is not right: its kernel is not yours; write one in this notebook"
        )


def handed_in(function):
    """A case as a reader may write it down again."""
    return of_reader(inspect.getsource(function), function.__name__)


def of_reader(source, name):
    """The kernel of that name from a source that is run as a cell of a notebook would be."""
    names = {"__name__": "__main__", "tcgpu": tcgpu, "cuda": cuda, "int64": int64, "common": cases.common}
    path = f"<cell {len(linecache.cache)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)  # a kernel's source is read again
    exec(compile(source, path, "exec"), names)
    return names[name]


def test_each_case_has_the_fault_that_the_text_names():
    slow = tcgpu.trace(cases.GRAPH, cases.case_1, faults=True)
    assert slow.faults == [] and slow.totals()["sectors_per_request"] > 8
    (lost,) = tcgpu.trace(cases.GRAPH, cases.case_2, faults=True).faults
    assert lost.kind == "race" and lost.source == "total[0] += count" and "an update is lost" in lost.says
    faults = tcgpu.trace(cases.GRAPH, cases.case_3, faults=True).faults
    assert {fault.kind for fault in faults} == {"race", "unwritten"} and {fault.array for fault in faults} == {"sums"}
