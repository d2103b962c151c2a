"""Mistakes of people who write their first kernel: `tcgpu.check` tells each in a sentence, with the line."""

import numpy as np
import pytest

import tcgpu
from tcgpu import cuda, int32, int64
from tcgpu.engines import kernel_compiler
from tcgpu.insight import checking
from tcgpu.insight.mistakes import mistakes_in

pytestmark = pytest.mark.sim
TABLE = np.arange(4)
SIZE = 4


@pytest.fixture(autouse=True)
def in_the_simulator_alone(monkeypatch):
    monkeypatch.setattr(checking, "SHRINKING", 0.2)
    monkeypatch.setattr(checking, "PATIENCE", 0.2)
    monkeypatch.setattr(kernel_compiler, "why_missing", lambda: "not in this test")


# ------------------------------------------------------------------------------------------- Python that no GPU runs


def plain(x):
    return x + 1


@cuda.jit(device=True)
def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def a_list(row_idx, total):
    found = []
    found.append(row_idx[0])


def a_dict(row_idx, total):
    seen = {}
    seen[0] = row_idx[0]


def a_set(row_idx, total):
    total[0] = len(set(row_idx))


def a_generator(row_idx, total):
    total[0] = max(i for i in row_idx)


def a_function_of_python(row_idx, total):
    total[0] = plain(3)


def recursion(row_idx, total):
    total[0] = fibonacci(5)


def a_function_of_numpy(row_idx, total):
    seen = np.zeros(4, np.int32)
    total[0] = seen[0]


def exceptions(row_idx, total):
    try:
        total[0] = row_idx[0]
    except IndexError:
        pass


def the_array_for_its_element(row_idx, total):
    total += 1


def an_array_in_a_sum(row_idx, total):
    total[0] = row_idx + 1


def a_size_of_the_launch(row_idx, total):
    words = cuda.shared.array(cuda.blockDim.x, int64)
    words[0] = 0


PYTHON = {
    a_list: "`found = []`: a kernel has no lists: numbers of a thread's own go into cuda.local.array(size, type)",
    a_dict: "`seen = {}`: a kernel has no dict",
    a_set: "a kernel has no set()",
    a_generator: "a kernel has no generators: write a loop",
    a_function_of_python: "plain is a function of Python: decorate it with @cuda.jit(device=True)",
    recursion: "(in fibonacci), `return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)`: fibonacci calls itself",
    a_function_of_numpy: "`seen = np.zeros(4, np.int32)`: a kernel has no np.zeros(): it works on whole arrays",
    exceptions: "a kernel has no exceptions: test with `if`",
    the_array_for_its_element: "total is an array: one of its elements is total[...]",
    an_array_in_a_sum: "row_idx is an array: one of its elements is row_idx[...]",
    a_size_of_the_launch: "the size of cuda.shared.array is a number that the source says; with the size 0, the array",
}


@pytest.mark.parametrize("function", PYTHON, ids=lambda function: function.__name__)
def test_python_that_no_gpu_runs_is_told_before_the_kernel_is_run(function):
    report = tcgpu.check(tcgpu.method(function))
    assert not report and report.problems[0].kind == "source" and PYTHON[function] in report.problems[0].says
    assert report.problems[0].says.startswith(f"{function.__name__}, line ")
    assert report.notes == ["Not run: no GPU runs this source."]


def test_recursion_is_refused_wherever_a_kernel_runs():
    for run in (
        lambda: tcgpu.count([(0, 1)], tcgpu.method(recursion), engine="sim"),
        lambda: tcgpu.simulate(recursion, 1, 1, np.zeros(1, np.int64), np.zeros(1, np.int64)),
    ):
        with pytest.raises(tcgpu.KernelError, match="fibonacci calls itself: a kernel has no recursion"):
            run()


def much_that_a_gpu_runs(row_idx, total):
    words = cuda.shared.array((SIZE, 2 * SIZE), int32)
    mine, known = cuda.local.array(shape=SIZE, dtype=int64), cuda.const.array_like(TABLE)
    increased = lambda x: x + np.int32(1)  # noqa: E731
    x, y = (1, 2)
    for number in (x, y):
        mine[number] = increased(int64(number)) + known[number] + min(x, len(row_idx))
    words[0, 0] = np.iinfo(np.int32).max if row_idx.size else int(np.sqrt(4.0))
    rows = row_idx[:2]
    cuda.atomic.add(total, 0, rows[0] * mine[0] * (words[0, 0] == 0))


def test_what_a_gpu_runs_is_no_mistake():
    assert mistakes_in(much_that_a_gpu_runs, {"row_idx", "total"}) == []


# ------------------------------------------------------------------------------------------------ names, types, sizes


def misspelt(total):
    total[0] = cuda.gridsiz(1)


def misspelt_operation(total):
    cuda.atomic.ad(total, 0, 1)


def without_cuda(total):
    total[0] = threadIdx.x  # noqa: F821


def misspelt_variable(total):
    count = 1
    total[0] = coutn + count  # noqa: F821


def no_value_yet(n, total):
    if n > 70_000:
        count = 0
    total[0] = count


def half_an_index(row_idx, total):
    total[0] = row_idx[1 / 2]


def an_element_for_its_array(total):
    cuda.atomic.add(total[0], 0, 1)


def no_index(total):
    cuda.atomic.add(total, 1)


def large_shared_arrays(total):
    words = cuda.shared.array(100_000, int64)
    words[cuda.threadIdx.x] = 0


ERRORS = {
    misspelt: "in thread 0 of block 0: cuda has no 'gridsiz' (did you mean 'gridsize'?)",
    misspelt_operation: "cuda.atomic has no 'ad' (did you mean 'add'?)",
    without_cuda: "there is no name 'threadIdx' (did you mean 'cuda.threadIdx'?)",
    misspelt_variable: "there is no name 'coutn' (did you mean 'count'?)",
    no_value_yet: "count has no value yet: not every way to this line gives it one",
    half_an_index: "a number of type float where a whole number is needed, such as an index; // divides whole numbers",
    an_element_for_its_array: "an atomic operation takes an array, an index and a value",
    no_index: "an atomic operation takes an array, an index and a value",
    large_shared_arrays: "the shared arrays of a block have 800,000 bytes, of at most 49,152",
}


@pytest.mark.parametrize("function", ERRORS, ids=lambda function: function.__name__)
def test_errors_are_told_in_words(function):
    report = tcgpu.check(tcgpu.method(function))
    assert not report and report.problems[0].kind == "error" and ERRORS[function] in report.problems[0].says
    assert "Not compiled: first there is an error to mend." in report.notes


# ----------------------------------------------------------------------------------------------- threads and their work


@tcgpu.method(threads=64, blocks=32)
def takes_one_column(col_ptr, row_idx, total):
    j = cuda.grid(1)
    if j < col_ptr.size - 1:
        for e in range(col_ptr[j], col_ptr[j + 1]):
            for p in range(e + 1, col_ptr[j + 1]):
                for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                    if row_idx[q] == row_idx[p]:
                        cuda.atomic.add(total, 0, 1)


@tcgpu.method(threads=32, blocks=2)
def takes_all_columns(col_ptr, row_idx, total):
    for j in range(col_ptr.size - 1):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            for p in range(e + 1, col_ptr[j + 1]):
                for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                    if row_idx[q] == row_idx[p]:
                        cuda.atomic.add(total, 0, 1)


def test_a_kernel_without_a_loop_over_the_grid_gets_a_hint():
    (problem,) = tcgpu.check(takes_one_column).problems
    assert (problem.kind, problem.hint) == ("count", checking.TOO_FEW_THREADS)
    assert "\n   with more threads it is right: give each thread every column" in str(problem)
    (problem,) = tcgpu.check(takes_all_columns).problems
    assert (problem.says, problem.hint) == ("it counts 64 triangles, there are 1", checking.EACH_COUNTS_ALL)


def test_too_much_shared_memory_is_refused():
    def asks_for_too_much(total):
        pass

    report = tcgpu.check(tcgpu.method(shared=400_000)(asks_for_too_much))
    assert not report and "nothing was counted. It refuses" in report.problems[0].says
    assert "a block has at most 232,448 bytes of shared memory" in report.problems[0].says


def test_annotations_are_said_to_mean_nothing():
    def annotated(col_ptr: np.int32, total: float):
        pass

    notes = tcgpu.check(tcgpu.method(threads=1, blocks=1)(annotated)).notes
    assert "The annotations of annotated are not read: the types are those of the arguments." in notes
