"""Notebook 10: its three cases have the faults that its text names, and its solutions mend them."""

import linecache
import re

import nbformat
import pytest

import tcgpu
from helpers import cases
from tcgpu import cuda, int64

pytestmark = pytest.mark.sim


@pytest.fixture
def solutions(root):
    """The kernels under "Solution", in order."""
    cells = nbformat.read(root / "notebooks" / "10_your_kernel.ipynb", as_version=4).cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    found = []
    for source in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        names = {"tcgpu": tcgpu, "cuda": cuda, "int64": int64, "common": cases.common}
        path = f"<solution {len(found) + 1}>"
        linecache.cache[path] = (len(source), None, source.splitlines(True), path)  # a kernel's source is read again
        exec(compile(source, path, "exec"), names)
        found.append(names["mended"])
    return found


def test_the_solutions_are_right(solutions):
    assert [cases.verdict(mended) for mended in solutions] == 3 * ["mended is right. 6.12 sectors a request."]


def test_each_case_has_the_fault_that_the_text_names():
    slow = tcgpu.trace(cases.GRAPH, cases.case_1, faults=True)
    assert slow.faults == [] and slow.totals()["sectors_per_request"] > 8
    (lost,) = tcgpu.trace(cases.GRAPH, cases.case_2, faults=True).faults
    assert lost.kind == "race" and lost.source == "total[0] += count" and "an update is lost" in lost.says
    faults = tcgpu.trace(cases.GRAPH, cases.case_3, faults=True).faults
    assert {fault.kind for fault in faults} == {"race", "unwritten"} and {fault.array for fault in faults} == {"sums"}
