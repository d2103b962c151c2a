"""Integers in kernels: compiled kernels, simulated kernels and NumPy follow the same rule."""

import ast
import inspect
import operator
import re
from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcgpu.engines import kernel_compiler
from tcgpu.engines.runtime import cuda, int64, kernel, uint32, uint64
from tcgpu.engines.simulator import simulate

pytest.importorskip("cuda.bindings.nvvm", reason="no CUDA compiler here: pip install 'tcgpu[test]'")

TYPES = ["int32", "uint32", "int64", "uint64"]
# results are written as int64: the type that they had shows in what wrapped around; >> 1 has a uint64 fit
STEP, MASK = 7, (1 << 5) - 1


def every_pair(function):
    """A kernel for two arrays of each two types that have a common integer type."""
    pairs = [(a, b) for a in TYPES for b in TYPES if np.result_type(a, b).kind != "f"]
    return kernel(*(f"void({a}[::1], {b}[::1], int64[::1])" for a, b in pairs))(function)


def of_each_type(function):
    return kernel(*(f"void({a}[::1], int64[::1])" for a in TYPES))(function)


@every_pair
def two_operands(a, b, out):
    x, y = a[0], b[0]
    out[0] = x + y
    out[1] = (x - y) >> 1
    out[2] = x * y
    out[3] = x // y
    out[4] = x % y
    out[5] = x & y
    out[6] = x | y
    out[7] = x ^ y
    out[8] = min(x, y)
    out[9] = max(x, y)
    out[10] = (x < y) + 2 * (x <= y) + 4 * (x == y) + int64(8) * (x != y) + 16 * (x > y) + int64(32) * (x >= y)
    out[11] = (x + y) // 2 + (min(x - y, 9) >> 1)
    out[12] = x << (y & 31)
    out[13] = x >> (y & 31)
    a[0] = x // 2
    a[0] += y & 1


@of_each_type
def one_operand(a, out):
    x = a[0]
    out[0] = -x >> 1
    out[1] = ~x >> 1
    out[2] = x + 1
    out[3] = (1 - x) >> 1
    out[4] = x * STEP
    out[5] = x // 3 + x // 8
    out[6] = x % 3 + x % MASK
    out[7] = x >> 5 | 1 << 3
    out[8] = min(x, STEP, MASK)
    out[9] = max(STEP, x + STEP)
    out[10] = x << 4 & MASK
    out[11] = 5 * (x == 0) + (x != STEP)
    out[12] = (-(1 + x) - STEP) >> 1
    a[0] += 1
    a[cuda.threadIdx.x] *= 2
    count = x
    count += STEP
    count <<= 2
    count -= 1
    out[13] = count


@cuda.jit(device=True)
def halved(x, by, least=2):
    return max(x // by, least) + x


@kernel(*(f"void({a}[::1], int64[::1])" for a in TYPES[:3]))
def variables(a, out):
    """A variable that starts as a literal is an int64, whatever is added to it."""
    total = 0
    for k in range(2, a[0] % 9):
        total += 5
        out[0] += k
    low, high = 0, a[0]
    while low < 100:
        low += max(high, 60)
        high = high // 2 * 3
    out[1] = low
    out[2] = total + a[0] * a[0]
    out[3] = (7 if total == 0 else 8) + a[0] * 2
    out[4] = halved(a[0], 3) + halved(5, a[0] % 4 + 2, least=1)
    for step in (1, 2**31 + 1):
        out[6] += a[0] // 2 * step
    last = a[0] % 5
    for _ in range(last):
        last = last * a[0]
    out[5] = last


@kernel("void(int64[::1], int64, uint32[::1])")
def positions(out, number, words):
    """The types of CUDA's own values: a difference below 0 shows whether a type is signed, and has 32 or 64 bits."""
    thread = cuda.threadIdx.x
    out[16 * thread] = thread - 64
    out[16 * thread + 1] = cuda.blockIdx.x - cuda.blockDim.x
    out[16 * thread + 2] = cuda.gridDim.x - 99
    out[16 * thread + 3] = cuda.grid(1) - 999
    out[16 * thread + 4] = cuda.gridsize(1) - 999
    out[16 * thread + 5] = cuda.laneid - 32
    out[16 * thread + 6] = words.size - 99
    out[16 * thread + 7] = cuda.popc(words[0]) - 99
    out[16 * thread + 8] = cuda.clz(words[0]) + cuda.ffs(words[0]) - 99
    out[16 * thread + 9] = cuda.ballot_sync(0xFFFFFFFF, thread > 3) - 0xFFFFFFFF - 1
    out[16 * thread + 10] = cuda.shfl_xor_sync(0xFFFFFFFF, thread, 1) - 64
    out[16 * thread + 11] = cuda.shfl_sync(0xFFFFFFFF, uint64(thread), 3) - 64 >> 1
    out[16 * thread + 12] = uint32(3) - number
    out[16 * thread + 13] = words.shape[0] - 99
    out[16 * thread + 14] = cuda.threadIdx.y - 99


def numbers(name):
    """Numbers of a type, often near its bounds; of 64 bits, none whose product or sum with another is beyond them."""
    info = np.iinfo(name)
    if info.bits == 64:
        return st.integers(max(info.min, -(2**30)), 2**30) | st.integers(0, 2**31 - 1)
    near = st.integers(0, 9)
    return st.integers(info.min, info.max) | near | near.map(lambda k: info.max - k) | near.map(lambda k: info.min + k)


def both(launched, processor, *arrays, **scalars):
    """What a kernel leaves in its arrays, compiled and simulated."""
    compiled, simulated = ([array.copy() for array in arrays] for _ in range(2))
    processor.launch(launched, 1, 1, *compiled)
    simulate(launched.py_func, 1, 1, simulated)
    return compiled, simulated


def assert_alike(launched, processor, *arrays):
    for found, expected in zip(*both(launched, processor, *arrays), strict=True):
        assert found.tolist() == expected.tolist()


@kernel("void(int64[::1])")
def loops(out):
    """With a `break`, a `continue`, loops inside, and no round."""
    k = int64(0)
    while k < 10 and out[1] < 20:
        k += 1
        q = k
        while q > 0:
            q -= 2
            if q == 4:
                break
            out[0] += q
        while q < 20:
            q += 3
            if q == 9:
                continue
            out[1] += 1
    while k > 0 or out[2] < 5:
        out[2] += 1
        k -= 1
    while k > 0:
        out[3] += 1


STEPS = 11  # results of a thread


@kernel(*(f"void({a}[::1], int64[::1])" for a in TYPES[:3]))
def steps(a, out):
    """Loops with steps of all threads or blocks: their variable may change, and is there after them; one ends early,
    one goes on early, one has no round."""
    at = STEPS * int64(cuda.grid(1))
    last = uint32(0)
    for k in range(cuda.grid(1), a[0], cuda.gridsize(1)):
        out[at] += k
        k *= 2
        out[at + 1] += k - 5 >> 1
        last = uint32(k)
    out[at + 2] = last
    for k in range(a[1], a[0], cuda.gridsize(1)):
        if k > 150:
            break
        out[at + 3] += 1
    for k in range(cuda.grid(1), a[0], cuda.gridsize(1)):
        if k % 3 == 0:
            continue
        out[at + 4] += k
    for _ in range(cuda.grid(1), a[0], cuda.gridsize(1)):
        out[at + 5] += 1
    else:
        out[at + 6] += 1
    for _ in range(a[0], a[1], cuda.gridsize(1)):
        out[at + 7] += 1
    for k in range(cuda.threadIdx.x, 100, cuda.blockDim.x):
        out[at + 8] += k
    for k in range(cuda.blockIdx.x, a[1] * 2, cuda.gridDim.x):
        out[at + 9] += k
    for k in range(uint64(cuda.threadIdx.x), uint64(a[0]), cuda.blockDim.x):
        out[at + 10] += int64(k)


def test_a_loop_that_is_tested_before_it_and_at_its_end_does_the_same(monkeypatch):
    from tcgpu.engines import integer_operations  # once the compiler is loaded

    class Loops(ast.NodeTransformer):
        visit_While = integer_operations.CompiledIntegers.visit_While

    tree = ast.parse(inspect.getsource(loops.py_func).partition("\n")[2])
    for once, tests in ((False, 5), (True, 1)):  # that with a `continue` stays
        monkeypatch.setattr(integer_operations, "TESTED_ONCE", once)
        rewritten, names, found, expected = Loops().visit(deepcopy(tree)), {"int64": int}, [0] * 4, [0] * 4
        exec(compile(rewritten, "loops", "exec"), names)
        names["loops"](found)
        loops.py_func(expected)
        assert found == expected and 0 not in found[:3]
        conditions = [node.test for node in ast.walk(rewritten) if isinstance(node, ast.While)]
        assert sum(not isinstance(condition, ast.Constant) for condition in conditions) == tests


@pytest.mark.sim
class TestBothEngines:
    def test_loops(self, processor):
        assert_alike(loops, processor, np.zeros(4, np.int64))

    @pytest.mark.parametrize("kind", TYPES[:3])
    def test_loops_of_all_threads(self, processor, kind):
        found, expected = (np.zeros(STEPS * 64, np.int64) for _ in range(2))
        ends = np.array([1000, 3], kind)
        processor.launch(steps, 2, 32, ends, found)
        simulate(steps.py_func, 2, 32, (ends, expected))
        assert found.tolist() == expected.tolist()
        assert found.reshape(-1, STEPS)[:, 5].sum() == 1000 and (found[6::STEPS] == 1).all()

    @given(data=st.data())
    def test_two_operands(self, processor, data):
        a, b = data.draw(st.sampled_from(sorted({types_of(text) for text in two_operands.signatures})))
        x, y = data.draw(numbers(a)), data.draw(numbers(b))
        if (x, y) == (-(2**31), -1):  # the one quotient that no type holds
            y = 1
        assert_alike(two_operands, processor, np.array([x], a), np.array([y], b), np.zeros(14, np.int64))

    @given(data=st.data())
    def test_one_operand(self, processor, data):
        a = data.draw(st.sampled_from(TYPES))
        assert_alike(one_operand, processor, np.array([data.draw(numbers(a))], a), np.zeros(14, np.int64))

    @given(data=st.data())
    def test_variables(self, processor, data):
        a = data.draw(st.sampled_from(TYPES[:3]))
        assert_alike(variables, processor, np.array([data.draw(numbers(a))], a), np.zeros(7, np.int64))

    def test_positions(self, processor):
        found, expected = (np.zeros(16 * 64, np.int64) for _ in range(2))
        words = np.array([12, 0, 7], np.uint32)
        processor.launch(positions, 3, 64, found, 5, words)
        simulate(positions.py_func, 3, 64, (expected, 5, words))
        assert found.tolist() == expected.tolist()
        assert found[0] == 2**32 - 64 and found[3] < 0 and found[6] == 3 - 99 and found[12] == -2


def types_of(signature):
    return tuple(re.findall(r"u?int\d+", signature)[:2])


@pytest.mark.parametrize("a", TYPES)
@pytest.mark.parametrize("b", TYPES)
def test_the_simulator_computes_as_numpy(a, b):
    kinds = np.dtype(a).type(200), np.dtype(b).type(3)
    if np.result_type(a, b).kind == "f":
        return
    out = np.zeros(14, np.int64)
    simulate(two_operands.py_func, 1, 1, (np.array([200], a), np.array([3], b), out))
    operations = [operator.add, operator.mul, operator.floordiv, operator.mod, operator.and_]
    assert out[[0, 2, 3, 4, 5]].tolist() == [int(each(*kinds)) for each in operations]


# ------------------------------------------------------------------------------------------- what the compiler refuses


def mixes_signs(out, a, b):
    out[0] = 1
    out[1] = a[0] + b[0]


def grows(out, a, b):
    count = uint32(0)
    for k in range(3):
        count += a[k]


def is_out_of_bounds(out, a, b):
    x = uint32(a[0])

    out[0] = x + 2**40


def adds_truths(out, a, b):
    out[0] = (a[0] == a[1]) + (a[1] == a[2])


REFUSED = {
    mixes_signs: (2, "int64 and uint64 have no common integer type"),
    grows: (3, "a variable of uint32 would become int64"),
    is_out_of_bounds: (3, "1099511627776 is out of the bounds of uint32"),
    adds_truths: (1, "of bool"),
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_a_refused_expression_is_reported_with_its_line(function):
    line, message = REFUSED[function]
    with pytest.raises(Exception, match=message) as caught:
        kernel_compiler.to_ltoir(function, "void(int64[::1], int64[::1], uint64[::1])", (9, 0))
    assert f'test_integers.py", line {function.__code__.co_firstlineno + line}' in str(caught.value.__notes__)


def test_getsource_returns_the_source_as_written():
    assert "a[cuda.threadIdx.x] *= 2" in inspect.getsource(one_operand)


def test_the_key_of_a_compiled_kernel_names_the_rewriting(monkeypatch):
    def key():
        return kernel_compiler.digest(adds_bits, "void(uint32[::1], int64[::1])", (9, 0))

    before = key()
    monkeypatch.setattr(kernel_compiler, "_rewriting", lambda: "another")
    assert key() != before


def adds_bits(words, a):
    count = uint32(0)
    p = cuda.threadIdx.x
    while p < words.size:
        count += words[p] >> 5 & 1
        words[p] = (count + 1) * 3
        p += cuda.blockDim.x


def test_nothing_is_widened():
    """Only places in arrays have 64 bits."""
    code = kernel_compiler.to_ltoir(adds_bits, "void(uint32[::1], int64[::1])", (9, 0))
    ptx = kernel_compiler.to_ptx(code, (9, 0))
    assert not re.search(r"\b(?:shr|and|mul\.lo|or|sub)\.[busi]64", ptx)
    assert not re.search(r"\.f(64|32)\b", ptx)


def counts_from_columns(col_ptr, words, counts):
    for j in range(cuda.grid(1), counts.size, cuda.gridsize(1)):
        p = col_ptr[j]
        while p < col_ptr[j + 1] and words[p] >> 5 & 1 == 0:
            p += 1
        counts[j] = p


def test_a_loop_of_all_threads_divides_nothing():
    code = kernel_compiler.to_ltoir(counts_from_columns, "void(int64[::1], uint32[::1], int64[::1])", (9, 0))
    assert not re.search(r"\b(?:div|rem)\.", kernel_compiler.to_ptx(code, (9, 0)))
