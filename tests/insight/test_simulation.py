"""`tcgpu.simulate` runs kernels of others: the page's examples, several dimensions, kernels decorated by Numba."""

import doctest
import inspect
import re

import numpy as np
import pytest

import tcgpu
from tcgpu import cuda
from tcgpu.insight.faults import VERBS, Checker
from tcgpu.insight.recorder import Recorder
from tcgpu.insight.shadow_memory import Written

pytestmark = pytest.mark.sim
LOOSELY = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE | doctest.REPORT_NDIFF


def test_the_examples_of_the_page_print_what_it_shows(root):
    page = (root / "docs" / "simulator.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(code, {}, "page", "simulator.md", 0)
    assert len(examples.examples) > 20
    assert doctest.DocTestRunner(optionflags=LOOSELY).run(examples).failed == 0


def test_the_page_names_every_kind_of_fault(root):
    page = (root / "docs" / "simulator.md").read_text()
    kinds = {*re.findall(r'(?:report|end|site_of)\("(\w+)"', inspect.getsource(tcgpu.insight.faults))}
    assert len(kinds) == 7 and {*re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)} == kinds and VERBS


def positions(out):
    x, y, z = cuda.grid(3)
    out[x, y, z] += cuda.threadIdx.x + 10 * cuda.threadIdx.y + 100 * cuda.threadIdx.z
    out[x, y, z] += 1000 * (cuda.blockIdx.x + 10 * cuda.blockIdx.y + 100 * cuda.blockIdx.z)


def test_three_dimensions():
    out = np.zeros((4, 6, 6), np.int64)
    assert tcgpu.simulate(positions, (2, 3, 2), (2, 2, 3), out) == []
    x, y, z = np.indices(out.shape)
    expected = x % 2 + 10 * (y % 2) + 100 * (z % 3) + 1000 * (x // 2 + 10 * (y // 2) + 100 * (z // 3))
    assert (out == expected).all()


def sums_of_warps(values, out):
    value = values[cuda.grid(1)]
    for distance in (16, 8, 4, 2, 1):
        value += cuda.shfl_down_sync(0xFFFFFFFF, value, distance)
    if cuda.laneid == 0:
        out[cuda.grid(1) // 32] = value


@pytest.mark.parametrize("more", [{}, {"faults": False}, {"faults": False, "seed": 3}])
def test_warps_with_and_without_looking_for_faults(more):
    out = np.zeros(4, np.float32)
    assert repr(tcgpu.simulate(sums_of_warps, 2, 64, np.arange(128, dtype=np.float32), out, **more)) == "no faults"
    assert out.tolist() == np.arange(128).reshape(4, 32).sum(axis=1).tolist()


@cuda.jit(device=True)
def at_site(values, site, function=1):
    return values[site] * function


@cuda.jit(device=True)
def after_all(values, site, function=1):
    cuda.syncthreads()
    return values[site] * function


def named_arguments(values, out):
    i = cuda.grid(1)
    out[i] = at_site(values, site=i, function=3) + after_all(values, i, function=2)


@pytest.mark.parametrize("kind, more", [(Recorder, ()), (Checker, ("kernel", Written()))])
def test_device_functions_take_arguments_by_any_name(kind, more):
    out = np.zeros(8, np.int64)
    kind(2, 4, 0, *more).simulate(named_arguments, (np.arange(8), out), at_a_time=2)
    assert out.tolist() == (5 * np.arange(8)).tolist()


def reads_too_far(values):
    values[cuda.grid(1) + 1] = 1


def test_without_looking_for_faults_an_error_is_raised():
    with pytest.raises(IndexError):
        tcgpu.simulate(reads_too_far, 1, 8, np.zeros(8), faults=False)
    (fault,) = tcgpu.simulate(reads_too_far, 1, 8, np.zeros(8))
    assert fault.kind == "bounds" and fault.thread == 7


def test_a_kernel_decorated_by_numba_runs(tmp_path):
    numba_cuda = pytest.importorskip("numba.cuda", reason="no numba-cuda here")

    @numba_cuda.jit
    def decorated(values, out):
        numba_cuda.atomic.add(out, 0, values[numba_cuda.grid(1)])

    out = np.zeros(1, np.int64)
    assert tcgpu.simulate(decorated, 2, 32, np.arange(64), out) == [] and out[0] == 2016


def test_what_is_no_launch_is_refused():
    with pytest.raises(tcgpu.KernelError, match="at most 1,024 threads, not 1,089"):
        tcgpu.simulate(positions, 1, (33, 33), np.zeros(1))
    with pytest.raises(tcgpu.KernelError, match="blocks are a number from 1 on"):
        tcgpu.simulate(positions, 0, 1, np.zeros(1))
    with pytest.raises(tcgpu.KernelError, match="a kernel is a function"):
        tcgpu.simulate("positions", 1, 1)
