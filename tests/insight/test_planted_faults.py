"""The faults that kernels on graphs have most often, planted in kernels that count by vertices and by edges.

`tcgpu.check` finds each, and says in words what is wrong; the kernels without a fault are right.
"""

import importlib.util
import itertools

import pytest
from sampling import share

import tcgpu
from tcgpu.engines import kernel_compiler
from tcgpu.insight import checking

pytestmark = pytest.mark.sim

HEAD = """
import tcgpu
from tcgpu import cuda, int64


@tcgpu.method(threads=64, blocks=8, shared="8 * threads")
def counts(n, col_ptr, row_idx, col_of, total):
    sums, thread, found = cuda.shared.array(0, int64), cuda.threadIdx.x, int64(0)
    own = cuda.blockIdx.x * cuda.blockDim.x + thread
"""
MERGE = """
{indent}p, q, p_end, q_end = e + 1, col_ptr[i], col_ptr[j + 1], col_ptr[i + 1]
{indent}while p < p_end and q < q_end:
{indent}    x, y = row_idx[p], row_idx[q]
{indent}    found += x == y
{indent}    p += x <= y
{indent}    q += y <= x
"""
TAIL = """
        own += cuda.blockDim.x * cuda.gridDim.x
    sums[thread] = found
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, cuda.blockDim.x):
            found += sums[other]
        cuda.atomic.add(total, 0, found)
"""
BY_VERTICES = f"""{HEAD}
    while own < n:
        j = own
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
{MERGE.format(indent=12 * " ")}
{TAIL}"""
BY_EDGES = f"""{HEAD}
    while own < row_idx.size:
        e = own
        i, j = row_idx[e], col_of[e]
{MERGE.format(indent=8 * " ")}
{TAIL}"""
KERNELS = {"by vertices": BY_VERTICES, "by edges": BY_EDGES}
ITEMS = {"by vertices": "own < n", "by edges": "own < row_idx.size"}

# fault -> the source before and after, the kind of what `check` says first, and a part of it
FAULTS = {
    "data race": ("cuda.atomic.add(total, 0, found)", "total[0] += found", "race",
                  "so an update is lost; it lacks an atomic operation such as cuda.atomic.add"),
    "missing barrier": ("    cuda.syncthreads()\n", "", "race", "with no cuda.syncthreads in between"),
    "barrier in a branch": ("    cuda.syncthreads()\n", "    if thread & 1 == 0:\n        cuda.syncthreads()\n",
                            "barrier", "all threads of a block must reach cuda.syncthreads"),
    "bounds": ("while own <", "while own <=", "bounds", "out of bounds: the array has"),
    "neighbour bounds": ("q < q_end", "q <= q_end", "bounds", "out of bounds: the array has"),
    "neighbour bounds, too few": ("p < p_end", "p < p_end - 1", "count", "it counts 0 triangles, there are 1"),
    "excess threads": ("while {items}:", "for _ in range(1):", "bounds", "out of bounds: the array has"),
    "precedence": ("cuda.blockIdx.x * cuda.blockDim.x + thread", "cuda.blockIdx.x * (cuda.blockDim.x + thread)",
                   "count", "triangles, there are 1"),
    "precedence in the step": ("own += cuda.blockDim.x * cuda.gridDim.x", "own += cuda.blockDim.x & 1 * cuda.gridDim.x",
                               "endless", "is taken for endless"),
}  # fmt: skip


@pytest.fixture
def written(monkeypatch, tmp_path):
    """A function that makes a method of a kernel's source; checks compile nothing, and give up sooner."""
    monkeypatch.setattr(checking, "SHRINKING", 0.5)
    monkeypatch.setattr(checking, "PATIENCE", 0)
    monkeypatch.setattr(kernel_compiler, "why_missing", lambda: "not in this test")

    def make(source):
        path = tmp_path / "planted.py"
        path.write_text(source)
        spec = importlib.util.spec_from_file_location("planted", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.counts

    return make


@pytest.mark.parametrize("by", KERNELS)
def test_kernels_without_a_fault_are_right(written, by):
    report = tcgpu.check(written(KERNELS[by]))
    assert report and report.problems == [], report


@pytest.mark.parametrize("by, fault", share(itertools.product(KERNELS, FAULTS), "planted", of=8))
def test_a_planted_fault_is_told_in_words(written, by, fault):
    before, after, kind, says = FAULTS[fault]
    before = before.format(items=ITEMS[by])
    assert KERNELS[by].count(before) == 1
    report = tcgpu.check(written(KERNELS[by].replace(before, after)))
    assert not report and (report.problems[0].kind, says in report.problems[0].says) == (kind, True), report
