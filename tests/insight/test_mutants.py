"""Faults that are put into our own kernels on purpose, one at a time: `tcgpu.check` finds all but the known few.

The table is the record: each fault with the method that it is put into, the source before and after, and what `check`
says of it first; None where it finds nothing. `pytest --full` tries all of them, else a sample.
"""

import importlib
import importlib.util
import inspect
import sys
from collections import Counter
from typing import NamedTuple

import pytest
import sampling
from kernel_shapes import every_kernel, kernel_modules
from sampling import share

from tcgpu import cpu
from tcgpu.engines import runtime, simulator
from tcgpu.engines.kernel_language import DeviceFunction
from tcgpu.insight import checking
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim


class Mutant(NamedTuple):
    """A fault: in the module of tcgpu.kernels, the first `old` becomes `new`: ours stand before those as published.

    kind: of what `check` finds in the method.
    """

    method: str
    module: str
    old: str
    new: str
    kind: str | None


REDUCTION, MERGE, SEARCH, COLUMNS, BITS = (
    f"device.{name}" for name in ("reduction", "merge", "search", "columns", "bits")
)
NAIVE, COLUMN_BLOCK, BITMAP = "report.naive", "report.column_block", "report.bitmap"
BITMAP_THREAD, BITMAP_WARP = "bisson_fatica.bitmap_thread", "bisson_fatica.bitmap_warp"
MERGE_PATH, WARP_SEARCH = "tricore.merge_path", "tricore.warp_search"
BLOCK, WARP = "cuda.syncthreads()", "cuda.syncwarp()"

MUTANTS = [
    # barriers of a block removed
    Mutant("column_block", REDUCTION, f"    {BLOCK}  # all threads have", "    pass  # all threads have", "race"),
    Mutant("naive", REDUCTION, f"= count\n    {BLOCK}\n", "= count\n", "race"),
    Mutant("naive", REDUCTION, f"        {BLOCK}\n        sums = half", "        sums = half", "race"),
    Mutant("column_block", COLUMN_BLOCK, f"{BLOCK}  # all threads have finished", "pass  # all threads have", "race"),
    Mutant("column_block", COLUMN_BLOCK, f"            {BLOCK}\n            e = col", "            e = col", "race"),
    Mutant("bitmap", BITMAP, f"        {BLOCK}\n        e = begin", "        e = begin", "race"),
    Mutant("bitmap", BITMAP, f"        {BLOCK}\n        p = begin", "        p = begin", "race"),
    Mutant("bitmap", BITMAP, f"        {BLOCK}\n    add_block_to", "    add_block_to", "race"),
    Mutant("bitmap_block_shared", BITS, f"{BLOCK}\n                    count +=", "count +=", "race"),
    Mutant("bitmap_block_shared", BITS, f"{BLOCK}\n                    chunk +=", "chunk +=", "race"),
    Mutant("bitmap_block_shared", BITS, f"        {BLOCK}\n        task = near", "        task = near", "race"),
    Mutant("bitmap_block_shared", BITS, f"                {BLOCK}\n            j += 1", "            j += 1", "race"),
    # barriers of a warp removed
    Mutant("bitmap_warp", BITMAP_WARP, "    cuda.syncwarp(all_lanes)\n    lanes", "    lanes", "race"),
    Mutant("bitmap_warp", BITMAP_WARP, "cuda.syncwarp(all_lanes)\n                t,", "t,", "race"),
    Mutant("bitmap_warp", BITMAP_WARP, "cuda.syncwarp(all_lanes)\n                chunk", "chunk", "race"),
    Mutant("bitmap_warp", BITMAP_WARP, "            cuda.syncwarp(all_lanes)\n        j +=", "        j +=", "race"),
    Mutant("warp_search", WARP_SEARCH, f"        {WARP}\n        hits = shared", "        hits = shared", "bounds"),
    Mutant("warp_search", WARP_SEARCH, f"        {WARP}\n    add_block_to", "    add_block_to", "race"),
    Mutant("warp_search", WARP_SEARCH, f"    {WARP}\n    taken", "    taken", None),
    Mutant("warp_search", WARP_SEARCH, f"    {WARP}\n    return mine", "    return mine", None),
    Mutant("warp_search", WARP_SEARCH, f"        {WARP}\n    hits = uint32(0)", "    hits = uint32(0)", "race"),
    # (the two that are not found are in a list of edges that is used where the rows of a graph are cut into parts)
    # atomic operations that are none
    Mutant("naive", REDUCTION, "cuda.atomic.add(total, 0, partial[0])", "total[0] += partial[0]", "race"),
    Mutant("bitmap", BITMAP, "cuda.atomic.or_(bits, mine + (row >> 5), 1 << (uint32(row) & 31))",
           "bits[mine + (row >> 5)] |= uint32(1) << (uint32(row) & 31)", "race"),
    Mutant("bitmap_block_shared", BITS, "cuda.atomic.or_(bitmap.near, bitmap.at + (bit >> 5), 1 << (bit & 31))",
           "bitmap.near[bitmap.at + (bit >> 5)] |= uint32(1) << (bit & 31)", "race"),
    Mutant("bitmap_block_shared", BITS, "cuda.gridDim.x + cuda.atomic.add(queue, 0, 1)",
           "cuda.gridDim.x + queue[0]\n            queue[0] += 1", "race"),
    # blocks that share what each should own
    Mutant("bitmap", BITMAP, "mine = cuda.blockIdx.x * words", "mine = 0 * words", "race"),
    # one step too far, or too few
    Mutant("naive", REDUCTION, "thread + half < sums", "thread + half <= sums", "bounds"),
    Mutant("naive", REDUCTION, "half = (sums + 1) >> 1", "half = sums >> 1", "race"),
    Mutant("naive", REDUCTION, "if thread == 0:", "if thread <= 1:", "count"),
    Mutant("naive", MERGE, "p < p_end and", "p <= p_end and", "count"),
    Mutant("naive", MERGE, "q < q_end", "q <= q_end", "bounds"),
    Mutant("naive", NAIVE, "while e < row_idx.size", "while e <= row_idx.size", "bounds"),
    Mutant("column_block", COLUMN_BLOCK, "while p < tile_end", "while p <= tile_end", "bounds"),
    Mutant("bitmap_thread", BITMAP_THREAD, "if p < end else", "if p <= end else", "bounds"),
    Mutant("naive", COLUMNS, "e == 0 or ", "", "bounds"),
    Mutant("naive", COLUMNS, "range(cuda.grid(1), col_ptr.size,", "range(cuda.grid(1), col_ptr.size + 1,", "bounds"),
    Mutant("bitmap", BITMAP, "(graph.n + 31) // 32", "graph.n // 32", "bounds"),
    Mutant("column_block", COLUMN_BLOCK, "tile * BYTES_PER_ROW", "tile * BYTES_PER_ROW // 2", "bounds"),
    # wrong strides, shifts and signs
    Mutant("naive", NAIVE, "e += cuda.gridsize(1)", "e += cuda.blockDim.x", "count"),
    Mutant("column_block", COLUMN_BLOCK, "e += threads", "e += 1", "count"),
    Mutant("bitmap", BITMAP, "bits[mine + (row >> 5)] >>", "bits[mine + (row >> 4)] >>", "bounds"),
    Mutant("naive", MERGE, "common += x == y\n        p +=", "common += x >= y\n        p +=", "count"),
    Mutant("thread_search", SEARCH, "values[place + half] <= key", "values[place + half] < key", "count"),
    Mutant("merge_path", MERGE_PATH, "b[q + (d - 1) - middle]", "b[q + d - middle]", "bounds"),
    Mutant("merge_path", MERGE_PATH, "e = group if group < groups else row_idx.size", "e = group", "count"),
    Mutant("warp_search", WARP_SEARCH, "        if lane >= step:", "        if lane > step:", "count"),
    # memory that is never cleared, or never written
    Mutant("bitmap", BITMAP, "bits[mine + (row_idx[p] >> 5)] = 0", "pass", "count"),
    Mutant("bitmap", BITMAP, "np.uint32, 0)}", "np.uint32, None)}", "unwritten"),
    Mutant("naive", NAIVE, "np.int64, -1)", "np.int64, None)", "unwritten"),
    Mutant("bitmap_block_shared", BITS, "near[bitmap.at + word] = 0", "pass", "unwritten"),
    # loops without an end
    Mutant("naive", SEARCH, "low = middle + 1", "low = middle", "endless"),
    Mutant("column_block", SEARCH, "while high - low > 1", "while high - low > 0", "endless"),
    Mutant("thread_search", SEARCH, "while length > 1", "while length > 0", "endless"),
    # barriers that some threads do not reach
    Mutant("naive", NAIVE, "    add_block_to(total, count)", "    if count:\n        add_block_to(total, count)",
           "barrier"),
    Mutant("bitmap", BITMAP, f"            p += threads\n        {BLOCK}\n        e",
           f"            p += threads\n            {BLOCK}\n        e", "barrier"),
    # 32 bits that do not suffice
    Mutant("naive", NAIVE, "i, j = row_idx[e], col_of[e]",
           "ij = row_idx[e] * 70_001 + col_of[e]\n        i, j = ij // 70_001, ij % 70_001", "overflow"),
]  # fmt: skip


@pytest.fixture
def mutated(monkeypatch, tmp_path):
    """A function that puts a Mutant into the modules of tcgpu.kernels, until the test ends."""
    kept = {}

    def put(mutant):
        original = importlib.import_module(f"tcgpu.kernels.{mutant.module}")
        source = inspect.getsource(original)
        before, _, after = source.partition(mutant.old)
        assert after and (mutant.old not in after or "published_kernel" not in before), mutant
        path = tmp_path / "mutant.py"
        path.write_text(f"{before}{mutant.new}{after}")
        spec = importlib.util.spec_from_file_location("mutant", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "mutant", module)
        for method in METHODS.values():
            _ = method.planned  # its home is imported first: what it has from there is kept, too
            kept.setdefault(method, dict(vars(method)))
        spec.loader.exec_module(module)  # a method takes its plan from the module that was run last
        own = {id(value): name for name, value in vars(original).items() if is_own(value, original)}
        for user in kernel_modules():
            for name, value in list(vars(user).items()):
                if id(value) in own:
                    monkeypatch.setattr(user, name, getattr(module, own[id(value)]))
        forget()

    def forget():
        simulator._rewritten.cache_clear()  # it knows which functions wait for others
        for each in every_kernel():
            each.compiled.pop("webgpu", None)  # with the functions that it calls

    yield put
    forget()
    for method, content in kept.items():
        vars(method).clear()
        vars(method).update(content)


def is_own(value, module):
    """Whether it is a kernel or a function of this module."""
    known = isinstance(value, (runtime.Kernel, DeviceFunction)) or inspect.isfunction(value)
    return known and value.__module__ == module.__name__


def found_by_check(name):
    """The kind of the first problem that `check` finds in a method; None if it finds none."""
    checked = checking.Check(METHODS[name], None, {})
    checked.run_in_simulator()
    return checked.report.problems[0].kind if checked.report.problems else None


def title(mutant):
    return f"{mutant.method}: {mutant.old.strip()[:40]}"


@pytest.mark.parametrize("number", [1, 2])
def test_a_fault_is_gone_after_its_test(mutated, number):
    assert METHODS["naive"].planned.__module__ == "tcgpu.kernels.report.naive"
    mutated(Mutant("naive", NAIVE, "count = int64(0)", "count = int64(1)", "count"))
    assert METHODS["naive"].planned.__module__ == "mutant"


@pytest.mark.parametrize("mutant", share(MUTANTS, "mutants", of=14), ids=title)
def test_faults_that_are_put_into_our_kernels_are_found(mutated, monkeypatch, mutant):
    monkeypatch.setattr(checking, "MOST_PROBLEMS", 1)
    mutated(mutant)
    assert found_by_check(mutant.method) == mutant.kind


@pytest.mark.parametrize("mutant", share([each for each in MUTANTS if each.kind == "count"], "webgpu", of=9), ids=title)
def test_wrong_counts_are_wrong_by_webgpu_too(mutated, mutant):
    if reason := runtime.why_missing("webgpu"):
        pytest.skip(reason)
    mutated(mutant)
    method, wrong = METHODS[mutant.method], 0
    for name, graph in checking.reference_graphs().items():
        shapes = checking.Check(method, None, {}).shapes()
        for shape in shapes if sampling.full else shapes[:1]:
            counts = []
            for engine in ("sim", "webgpu"):
                with runtime.using(engine):
                    counts.append(method.plan(graph, **shape).count())
            in_simulator, by_webgpu = (count != cpu.count(graph) for count in counts)
            assert in_simulator == by_webgpu, (name, shape, counts)
            wrong += by_webgpu
    assert wrong


def test_nearly_all_of_them_are_found():
    kinds = Counter(mutant.kind for mutant in MUTANTS)
    assert len(MUTANTS) >= 40 and len({(each.module, each.old) for each in MUTANTS}) == len(MUTANTS)
    assert kinds[None] <= len(MUTANTS) * 2 / 40
    assert {"race", "bounds", "count", "unwritten", "endless", "barrier", "overflow"} <= set(kinds)
