"""`tcgpu.check`: a right method passes; a report says what is wrong with another, with the smallest graph."""

import time

import networkx as nx
import pytest
from sampling import share

import tcgpu
from tcgpu import cpu, cuda, int32, int64, uint32
from tcgpu.engines import kernel_compiler, runtime
from tcgpu.insight import checking
from tcgpu.insight.checking import check, in_words, reference_graphs, shrunk
from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim


@pytest.fixture(autouse=True)
def compiles_nothing(request, monkeypatch):
    """Leave out what the compiler says, but in the tests of it, and give up sooner."""
    monkeypatch.setattr(checking, "SHRINKING", 0.5)
    monkeypatch.setattr(checking, "PATIENCE", 0.5)
    if request.node.get_closest_marker("ptx") is None:
        monkeypatch.setattr(kernel_compiler, "why_missing", lambda: "not in this test")


@tcgpu.method(threads=64, blocks=32)
def per_column(col_ptr, row_idx, total):
    count = int64(0)
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
            p, q = e + 1, col_ptr[i]
            while p < col_ptr[j + 1] and q < col_ptr[i + 1]:
                x, y = row_idx[p], row_idx[q]
                count += x == y
                p += x <= y
                q += y <= x
    cuda.atomic.add(total, 0, count)


def test_a_right_kernel_of_15_lines_is_right_soon():
    begin = time.thread_time()
    report = check(per_column, against=["naive"])
    assert time.thread_time() - begin < 15
    assert report and report.problems == []
    text = repr(report)
    assert text.startswith(
        "per_column is right.\nIn the simulator: 82 counts of 11 graphs with 8 launch shapes, no fault."
    )
    assert "Not compiled: not in this test." in text
    assert [row["method"] for row in report.score] == ["per_column", "naive"]
    assert {"load_requests", "sectors_per_request", "bank_conflicts", "idle_lanes_%", "estimated_us"} < {
        *report.score[0]
    }
    assert report.draw() is None and "<b>per_column is right.</b>" in report._repr_html_()


# ------------------------------------------------------------------------------------------------------- what is wrong


@tcgpu.method(threads=64, blocks=32)
def loses_updates(col_ptr, row_idx, col_of, total):
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        total[0] += common_values(row_idx, e + 1, col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])


@tcgpu.method(threads=64, blocks=32)
def stops_too_early(col_ptr, row_idx, col_of, total):
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        common = common_values(row_idx, e + 1, col_ptr[j + 1] - 1, row_idx, col_ptr[i], col_ptr[i + 1])
        cuda.atomic.add(total, 0, common)


@tcgpu.method(threads=64, blocks=32)
def reads_behind_the_columns(col_ptr, row_idx, total):
    for j in range(cuda.grid(1), col_ptr.size, cuda.gridsize(1)):
        cuda.atomic.add(total, 0, 0 * (col_ptr[j + 1] - col_ptr[j]))


@tcgpu.method(threads=64, blocks=32)
def needs_a_grid_of_threads(col_ptr, row_idx, col_of, total):
    e = cuda.grid(1)  # right only if there are as many threads as edges
    if e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        common = common_values(row_idx, e + 1, col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])
        cuda.atomic.add(total, 0, common)


@tcgpu.method(threads=64, blocks=32, arrays={"met": ("n", int32, None)})
def clears_nothing(col_ptr, row_idx, met, total):
    if cuda.grid(1) == 0:
        for e in range(row_idx.size):
            met[row_idx[e]] += 1


@tcgpu.method(threads=64, blocks=32, shared="8 * threads")
def some_return_early(row_idx, total):
    if cuda.grid(1) >= row_idx.size:
        return
    add_block_to(total, int64(0))


@tcgpu.method(threads=64, blocks=32)
def squares_ids(n, col_ptr, row_idx, col_of, total):
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        place = row_idx[e] * int32(n) + col_of[e]  # in a matrix
        i, j = place // int32(n), place % int32(n)
        common = common_values(row_idx, e + 1, col_ptr[j + 1], row_idx, col_ptr[i], col_ptr[i + 1])
        cuda.atomic.add(total, 0, common)


@tcgpu.method(threads=64, blocks=32)
def never_ends(row_idx, total):
    e = cuda.grid(1)
    while e < row_idx.size:
        total[0] = 0


@tcgpu.method(threads=64, blocks=32, shared=64)
def asks_for_too_little(row_idx, total):
    words = cuda.shared.array(0, int32)
    words[cuda.threadIdx.x] = 0


WRONG = {
    loses_updates: ("race", "both read and write total[0], so an update is lost; it lacks an atomic operation"),
    stops_too_early: ("count", "it counts 0 triangles, there are 1"),
    reads_behind_the_columns: ("bounds", "reads col_ptr[1], out of bounds: the array has 1 element"),
    needs_a_grid_of_threads: ("count", "it counts 0 triangles, there are 1"),
    clears_nothing: ("unwritten", "reads met[1], uninitialized: nothing was written to it"),
    some_return_early: ("barrier", "has returned: all threads of a block must reach"),
    squares_ids: ("overflow", "does not fit its integer type"),
    never_ends: ("endless", "is taken for endless"),
    asks_for_too_little: ("bounds", "the launch asks for 64 bytes of shared memory"),
}


@pytest.mark.parametrize("method", share(WRONG, "wrong", of=2), ids=lambda method: method.name)
def test_what_is_wrong_is_told_first(method):
    kind, says = WRONG[method]
    report = check(method)
    assert not report and report.problems[0].kind == kind and says in report.problems[0].says
    assert repr(report).startswith(f"{method.name} is not right.\n1. ") and "seen on '" in repr(report)


def test_the_smallest_graph_is_found_and_drawn(monkeypatch):
    monkeypatch.setattr(checking, "SHRINKING", float("inf"))
    report = check(needs_a_grid_of_threads)
    (problem,) = report.problems
    assert problem.knobs == {"threads": 1, "blocks": 1} and problem.on == "empty columns first and last"
    assert "the smallest such graph found: 4 vertices, 4 edges: 0-1 1-2 1-3 2-3" in repr(report)
    assert "<svg" in report._repr_html_() and len(report.draw().axes[0].texts) == 4


def test_graphs_shrink_to_what_is_needed():
    graph = tcgpu.generate.barabasi_albert(200, 4, seed=1)
    smallest = shrunk(graph, lambda smaller: cpu.count(smaller) >= 2, float("inf"))
    assert (smallest.n, smallest.m) in ((4, 5), (5, 6)) and cpu.count(smallest) == 2
    assert in_words(tcgpu.generate.path(2)) == "2 vertices, 1 edge: 0-1"


def test_the_reference_graphs_are_counted_as_by_another_algorithm():
    graphs = reference_graphs()
    assert {name: cpu.count(graph) for name, graph in graphs.items()} == {
        name: sum(nx.triangles(graph.to_networkx()).values()) // 3 for name, graph in graphs.items()
    }
    lengths = graphs["empty columns first and last"].column_lengths
    assert lengths[0] == lengths[-2] == 0 and cpu.count(graphs["ids past 65,536"]) > 1


# ----------------------------------------------------------------------------------------------- methods of the package


@pytest.mark.parametrize("name", ["naive", "column_block", "thread_search", "adaptive"])
def test_our_own_methods_are_right(name, monkeypatch):
    graphs = {name: graph for name, graph in reference_graphs().items() if graph.n < 50}
    monkeypatch.setattr(checking, "reference_graphs", lambda: graphs)
    monkeypatch.setattr(checking, "SHAPES", checking.SHAPES[:3])
    report = check(name)
    assert report, report


def test_only_methods_with_kernels_are_checked():
    with pytest.raises(tcgpu.MethodError, match="'cpu' has no kernels"):
        check("cpu")
    with pytest.raises(tcgpu.MethodError, match="no knob 'lanes'"):
        check(per_column, lanes=3)


def test_what_a_method_refuses_is_no_fault_but_a_broken_plan_is(monkeypatch):
    @tcgpu.method(threads=32, blocks=4)
    def in_whole_warps(graph, threads, blocks):
        if threads % 32:
            raise tcgpu.MethodError("threads is a multiple of 32")
        return METHODS["naive"].plan(graph, threads=threads, blocks=blocks)

    @tcgpu.method(threads=32)
    def broken(graph, threads):
        return [graph.no_such_thing]

    monkeypatch.setattr(checking, "SHAPES", checking.SHAPES[:3])
    report = check(in_whole_warps, blocks=2)
    assert report and any("threads is a multiple of 32" in note for note in report.notes)
    report = check(broken)
    assert not report and report.problems[0].kind == "plan" and "no_such_thing" in report.problems[0].says


# ------------------------------------------------------------------------------------------------------- the compiler


@tcgpu.method(threads=32, blocks=2)
def divides(row_idx, total):
    cuda.atomic.add(total, 0, int64(row_idx.size / 3) >> 40)


@tcgpu.method(threads=32, blocks=2)
def mixes_types(row_idx, total):
    wide = uint32(1)
    wide += int64(1)
    cuda.atomic.add(total, 0, wide * 0)


@pytest.mark.ptx
def test_the_compilers_findings_are_told(monkeypatch):
    monkeypatch.setattr(checking.Check, "run_in_simulator", lambda self: None)
    monkeypatch.setattr(checking, "CAPABILITIES", [(9, 0)])
    (note,) = [note for note in check(per_column).notes if "compiled for" in note]
    assert note.startswith("per_column compiled for 9.0: ") and note.endswith(" registers, nothing spilled.")
    assert any("floating point of type" in note and "f64" in note for note in check(divides).notes)
    report = check(mixes_types)
    assert not report and report.problems[0].kind == "compiler"
    assert "begin it as int64, or convert the operand" in report.problems[0].says


@pytest.mark.gpu
def test_counts_on_a_gpu_are_compared():
    with runtime.using("gpu"):
        report = check(per_column)
    assert report and any("On the GPU" in note for note in report.notes)
