"""What kernels are written in, by WebGPU as in the simulator: each of these kernels writes the same numbers on both."""

import re
from typing import NamedTuple

import numpy as np
import pytest
from sampling import share

from tcgpu.engines import runtime
from tcgpu.engines.kernel_language import cuda, int32, int64, uint32, uint64
from tcgpu.engines.runtime import kernel
from tcgpu.engines.simulator import simulate
from tcgpu.engines.webgpu import device as devices
from tcgpu.engines.webgpu.engine import Engine
from tcgpu.errors import KernelError

ALL_LANES = 0xFFFFFFFF
LENGTHS = 5, -3  # constants of a module
MINUS_FIVE = np.int32(-5)
OF_NUMBERS = "void(int32[::1], uint32[::1], int64[::1], uint64[::1], int64[:, ::1])"
SHAPES = [(3, 32), (2, 1), (1, 33), (2, 100)]  # blocks, threads
ROWS = 12  # of the output, which has a column for each thread


class Span(NamedTuple):
    first: object
    values: object
    up: object


@pytest.fixture(scope="module", params=["SwiftShader", "llvmpipe", "hardware"])
def engine(request):
    """The engine on a device: of two in software the second one has integers of 64 bits, the first one has not."""
    if devices.why_missing():
        pytest.skip(devices.why_missing())
    hardware = [info for info in devices.devices() if info.kind != "software"]
    found = hardware if request.param == "hardware" else [i for i in devices._found() if request.param in i.name]
    if not found:
        pytest.skip(f"no {request.param} here")
    made, device = Engine.__new__(Engine), devices.open_device(found[0])
    made.device, made.name = Opaque(device) if request.param == "llvmpipe" else device, f"webgpu on {request.param}"
    return made


class Opaque:
    """A device of Mesa, which takes i64(x) > 4li of an i32 for true: so its compiler does not see such constants."""

    def __init__(self, device):
        self.device = device

    def __getattr__(self, name):
        return getattr(self.device, name)

    def pipeline(self, text, bindings, name=""):
        return self.device.pipeline(
            re.sub(r"\b(\d+l([iu]))\b", r"(\1 + \g<2>64(params[0].x >> 16u))", text), bindings, name
        )


def numbers(dtype):
    """Numbers of a type that are difficult: around 0, at the limits of words, and some others."""
    info = np.iinfo(dtype)
    special = [0, 1, 2, 3, 7, 31, 32, 100, 2**31 - 1, info.max, info.max // 3, info.max // 2 + 1]
    special += [2**32 - 1, 2**32, 2**40 + 5] if info.bits == 64 else [2**16]
    special += [-1, -2, -7, -100, info.min + 1, info.min // 3] if info.min else [info.max - 1, info.max - 6]
    return np.array(special, dtype)


def launched(engine, kernel, blocks, threads, arrays, shared=0):
    """The arrays after a launch of the kernel with copies of them."""
    with runtime.using("sim"):
        if engine is None:
            mine = [array.copy() for array in arrays]
            simulate(kernel.py_func, blocks, threads, mine, shared=shared)
            return mine
    mine = [engine.to_device(array) for array in arrays]
    engine.launch(kernel, blocks, threads, mine, shared, None)
    return [np.asarray(array) for array in mine]


def same(engine, kernel, blocks, threads, arrays, shared=0):
    """Assert that a kernel does the same on both engines."""
    expected, found = (launched(each, kernel, blocks, threads, arrays, shared) for each in (None, engine))
    for number, (a, b) in enumerate(zip(expected, found, strict=True)):
        assert np.array_equal(a, b), (kernel, blocks, threads, number, np.argwhere(a != b)[:3], a, b)


# ----------------------------------------------------------------------------------------------- functions for kernels


@cuda.jit(device=True)
def first_above(values, limit, up):
    """Return early, from inside a loop."""
    if not up:
        return int64(-1)
    for k in range(values.size):
        if values[k] > limit:
            return k
    return values.size


@cuda.jit(device=True)
def first_power_above(limit):
    """Return from a loop that has no other end."""
    power = uint32(1)
    while True:
        power *= 3
        if power > limit:
            return power


@cuda.jit(device=True)
def divided(a, b):
    return a // b, a % b, b == 0


@cuda.jit(device=True)
def sum_of(span, pair):
    total, k = pair[0] * pair[1], span.first
    while k < span.values.size:
        total += span.values[k]
        k += 1 if span.up else 2
    return total


class Rest(NamedTuple):
    begin: object
    end: object


@cuda.jit(device=True)
def halved(rest, lower):
    """A NamedTuple, from a parameter that changes."""
    middle = (rest.begin + rest.end) // 2
    if lower:
        rest = Rest(rest.begin, middle)
        return rest
    return Rest(middle, rest.end)


@cuda.jit(device=True)
def filled(mine, start):
    for k in range(mine.size):
        mine[k] = start + k
    return mine[mine.size - 1]


@cuda.jit(device=True)
def turned(shared, value):
    """Each thread gets the value of the last one but it."""
    cuda.syncthreads()
    shared[cuda.threadIdx.x] = value
    cuda.syncthreads()
    return shared[cuda.blockDim.x - 1 - cuda.threadIdx.x]


# ------------------------------------------------------------------------------------------------------------- kernels


@kernel(OF_NUMBERS)
def types_of_results(i, u, I, U, out):  # noqa: E741
    """NumPy's rule: of a literal, of two types, of a bool."""
    t = cuda.grid(1)
    a, b, c, d = i[t % i.size], u[t % u.size], I[t % I.size], U[t % U.size]
    out[0, t] = a + b
    out[1, t] = b - 1 > a
    out[2, t] = (b << 3) + (a >> 2)
    out[3, t] = int64(d * b) ^ c
    out[4, t] = (a < c) + b
    out[5, t] = min(a, b) + max(c, b, 7)
    out[6, t] = ~b + (-a)
    out[7, t] = (b > -1) + 2 * (a < 3_000_000_000) + 4 * (b != 2**32)
    out[8, t] = uint32(a) // uint32(int64(3)) + int32(c)
    out[9, t] = uint32(c) * uint32(7) + uint32(int32(-15)) * (int32(2_147_483_647) + int32(1))
    out[10, t] = int64(uint64(a)) + int64(uint32(a)) + int64(int32(b))
    out[11, t] = abs(a >> 1) + abs(-5) + (5 if a < 0 else b)


@kernel(OF_NUMBERS)
def quotients(i, u, I, U, out):  # noqa: E741
    """Rounded down; a division by 0 gives 0."""
    t = cuda.grid(1)
    for k in range(i.size):
        a, b, c, d = i[t % i.size] >> 1, u[k % u.size], I[k % I.size] | 1, U[t % U.size]
        out[0, t] += a // i[k] - a % i[k]
        out[1, t] ^= u[t % u.size] // b + u[t % u.size] % b
        out[2, t] += (I[t % I.size] >> 1) // c - (I[t % I.size] >> 1) % c
        out[3, t] ^= int64(d // (U[k % U.size] >> uint64(k))) + int64(d % (U[k % U.size] >> uint64(k)))
        out[4, t] += a // 7 + a // -3 + a % -3 + a // 0
    q, r, none = divided(I[t % I.size] >> 1, int64(i[t % i.size]))
    out[5, t], out[6, t], out[7, t] = q, r, none


@kernel(OF_NUMBERS)
def shifts_and_bits(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    a, b, c, d = i[t % i.size], u[t % u.size], I[t % I.size], U[t % U.size]
    for k in range(64):
        out[0, t] ^= (c << k) ^ (c >> k)
        out[1, t] ^= int64(d << uint64(k)) ^ int64(d >> uint64(k))
        out[2, t] ^= (a << (k & 31)) ^ (a >> (k & 31)) ^ (b >> uint32(k & 31))
    out[3, t] = cuda.popc(a) + cuda.popc(c) * 100 + cuda.popc(d) * 10_000
    out[4, t] = cuda.clz(b) + cuda.clz(c) * 100 + cuda.ffs(a) * 10_000
    out[5, t] = cuda.ffs(d) + cuda.ffs(int64(1) << 40)
    out[6, t] = int64(d * d) + c * a
    out[7, t] = cuda.selp(a < c, a, b)


@kernel(OF_NUMBERS)
def variables_change_their_type(i, u, I, U, out):  # noqa: E741
    """On paths, around loops; where paths meet the number stays, and has the wider type."""
    t = cuda.grid(1)
    x = uint32(0)
    x -= 1  # wraps around, although x is an int64 later
    out[0, t] = x
    if i[t % i.size] < 0:
        x = I[t % I.size]
    out[1, t] = x
    y, k = uint32(7), int32(0)
    while k < 3:
        out[2, t] += y + k
        if k == 1:
            y = int64(-5)
            k += 1
            continue
        y = y + int32(2)
        k += 1
    out[3, t] = y
    z = u[0]
    for n in range(5):
        z = u[t % u.size] >> 3
        if n == t % 4:
            z = int64(-n)
            break
    out[4, t] = z
    if t % 2:
        both = uint32(t)
    else:
        both = int32(-t)
    out[10, t] = both
    flag, pair = t % 2 == 0, (1, t)
    for _ in range(3):
        flag = not flag
    out[5, t] = flag
    out[6, t] = pair[0] + pair[1]
    swapped, other = t, int64(100)
    swapped, other = other, swapped
    out[7, t], out[8, t] = swapped, other
    for late in (int64(x), int64(y), swapped):
        x = uint32(5)
        out[9, t] = out[9, t] * 3 + late


@kernel(OF_NUMBERS)
def loops(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    k_next = 5  # no name that a loop over k takes
    for k in range(uint32(t & 7), -1, -1):
        out[0, t] = out[0, t] * 3 + k
    for k in range(20, i[t % i.size] & 7, -3):
        for k in range(k & 3):  # noqa: PLW2901, B020
            out[1, t] += k
        out[1, t] += 100 * k
    for k in range(uint32(4_294_967_280), uint32(4_294_967_295), uint32(9)):
        out[2, t] += k
    for k in range(int32(2_147_483_640), int32(2_147_483_647), 3):
        out[3, t] += k
    step = int32(-2) if t % 2 else int32(3)
    for k in range(int32(9), int32(20) * (t % 2 == 0), step):
        if k == 5:
            continue
        out[4, t] = out[4, t] * 7 + k
    for _ in range(3):
        for _ in range(2):
            out[5, t] += 1
    k = 0
    while True:
        k += 1
        if k > t % 5:
            break
        if k % 2:
            continue
        out[6, t] += k
    out[7, t] = k_next + k
    for k in (3, t, LENGTHS[1] if False else 8):
        out[8, t] = out[8, t] * 5 + k
    if t % 3 == 1:
        return
    out[9, t] = t


@kernel(OF_NUMBERS)
def conditions(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    a, b, c = i[t % i.size], u[t % u.size], I[t % I.size]
    if a < b and not c or 0 <= t < 5:
        out[0, t] = 1
    elif a == 7 or (b & 1 and c > 0):
        out[0, t] = 2
    else:
        out[0, t] = 3
    out[1, t] = t < i.size and i[t % i.size] > 0
    known = True
    if known and t > 3:
        known = False
    out[2, t] = (1 if known else -1) if c else 0
    out[3, t] = (a < 0) ^ (c < 0) | (b > 9) & (t != 4)
    out[4, t] = (a < 0) < (c < 0)
    out[5, t] = -2 < a <= b != c
    if out[0, t]:
        out[6, t] = ~(a < b)


@kernel(OF_NUMBERS)
def functions(i, u, I, U, out):  # noqa: E741
    """With arrays, slices, tuples and bools; local arrays of two sizes."""
    t = cuda.grid(1)
    few, more = cuda.local.array(4, int32), cuda.local.array((8,), int32)
    out[0, t] = first_above(i, t, True) + 100 * first_above(i[2:], int32(3), t % 2 == 0)
    out[1, t] = filled(few, int32(t)) + filled(more, int32(t - 9)) + few[3] + more[1]
    out[6, t] = first_power_above(t * t)
    tail = I[3:]
    out[2, t] = sum_of(Span(t % 4, i, True), (I[1], 3)) + sum_of(Span(1, tail[2:], t > 1), (t, t))
    out[3, t] = first_above(more, I[4], True) + first_above(few[1:], t, not t)
    out[4, t] = tail.size + out.shape[1] + out.size + len(u)
    out[5, t] = -i[-1] + out[0, -1] * (t < 0)
    start = uint32(t % 2)
    tail = I[start:]
    start += 1
    out[7, t] = tail[start]


@kernel(OF_NUMBERS)
def tuples(i, u, I, U, out):  # noqa: E741
    """Variables that have tuples and change them, on paths and around loops; a row of a matrix."""
    t = cuda.grid(1)
    rest, pair, few = Rest(t, int64(1000)), (t, i[0]), (1, 2, 3)
    while rest.end - rest.begin > 1:
        rest = halved(rest, (rest.begin * 7 + rest.end) % 3 == t % 3)
        pair = pair[1], pair[0]
        if rest.end % 5 == 1:
            pair = pair[0] + 1, int32(t)
    out[0, t], out[1, t], out[2, t] = rest.begin, rest.end, pair[0] * 1000 + pair[1]
    for few in ((4, 5, 6), few):  # noqa: B020
        out[3, t] = out[3, t] * 10 + few[0] + few[2]
    out[4, t] = few[1] + uint32(7) - 9
    row = out[-8]
    row[t] += t + out[4][t]
    out[5, t] = row.size


@kernel("void(int32[:, ::1])")
def order_of_evaluation(out):
    """From left to right: an element is read before a later part changes it."""
    t = int32(cuda.grid(1))
    out[0, t] = 3
    out[1, t] = out[0, t] + cuda.atomic.add(out, (0, t), 4) + out[0, t]
    out[0, t] += cuda.atomic.add(out, (0, t), 1)
    out[2 + cuda.atomic.exch(out, (3, t), 9), t] = out[3, t]
    out[5, t], out[6, t] = t, out[5, t]
    if t < 0 and cuda.atomic.add(out, (7, t), 1) > 0:
        out[7, t] = 100
    out[8, t] = cuda.atomic.add(out, (7, t), 1) if t % 2 else t


@kernel(OF_NUMBERS)
def names(i, u, I, U, out):  # noqa: E741
    """Names that WGSL has for something else, or that the translated text uses."""
    t = cuda.grid(1)
    group_id, lid, block, product, result, mask, t1, a_1, a__b, readonly, vec2, _x = (
        1,
        2,
        3,
        4,
        5,
        6,
        7,
        8,
        9,
        10,
        11,
        12,
    )
    out[0, t] = group_id + lid * 2 + block * 3 + product * 5 + result * 7 + mask * 11 + t1 * 13 + a_1 * 17
    out[1, t] = a__b + readonly * 2 + vec2 * 3 + _x * 5
    x, x_i64 = int32(1), 2
    x = int64(x) + 5
    out[2, t] = x * 10 + x_i64


@kernel(OF_NUMBERS)
def barriers(i, u, I, U, out):  # noqa: E741
    """Shared memory of several types; barriers in loops, in functions, and under conditions of the whole block."""
    t, thread = cuda.grid(1), cuda.threadIdx.x
    kept, wide = cuda.shared.array(128, uint32), cuda.shared.array((2, 128), int64)
    low, high = cuda.shared.array(0, uint32), cuda.shared.array(0, int64)
    kept[thread] = thread * thread
    cuda.syncthreads()
    for round in range(cuda.blockIdx.x + 2):
        wide[round & 1, thread] = kept[(thread + 1) % cuda.blockDim.x] - 5 * round
        cuda.syncthreads()
        out[0, t] += wide[round & 1, cuda.blockDim.x - 1 - thread]
        cuda.syncthreads()
    if kept[0] == 0:
        out[1, t] = cuda.syncthreads_count(thread % 3 == 1) * 10 + cuda.syncthreads_or(thread == 5)
    out[2, t] = turned(wide[1:] if False else low, uint32(thread * 3))
    cuda.syncthreads()
    mine, pair, part = cuda.local.array(2, uint32), (thread, thread), kept[thread:]
    mine[0] = thread
    high[thread] = int64(-1) << thread % 50
    cuda.syncthreads()
    x = mine[0]
    cuda.syncthreads()
    y = pair[0]
    cuda.syncthreads()
    z = part[0]
    out[4, t] = x + y * 100 + z * 10_000
    out[3, t] = high[(thread + 3) % cuda.blockDim.x] + cuda.syncthreads_and(thread < 100)


@kernel(OF_NUMBERS)
def threads_that_end_early(i, u, I, U, out):  # noqa: E741
    """Those that are left wait for each other only."""
    t, thread = cuda.grid(1), cuda.threadIdx.x
    kept = cuda.shared.array(128, uint32)
    kept[thread] = thread
    if thread % 3 == 2:
        out[0, t] = 7
        return
    for round in range(3):
        cuda.syncthreads()
        mine = kept[(thread // 3 + round) % cuda.blockDim.x]
        cuda.syncthreads()
        if thread % 3 == 1 and round == 1:
            continue
        kept[thread] += 1
        out[1, t] += mine * (round + 1)
    cuda.syncthreads()
    out[2, t] = kept[0]


@kernel(OF_NUMBERS)
def warps(i, u, I, U, out):  # noqa: E741
    """Lanes tell each other numbers of all types, in whole warps and where the warps of a block part."""
    t, thread = cuda.grid(1), cuda.threadIdx.x
    warp, lane = thread >> 5, thread & 31
    lanes = min(uint32(32), cuda.blockDim.x - warp * 32)
    a, c = i[t % i.size], I[t % I.size]
    out[0, t] = cuda.shfl_sync(ALL_LANES, a, (lane * 7) % lanes) + cuda.shfl_xor_sync(ALL_LANES, uint32(t), 1)
    out[1, t] = cuda.shfl_up_sync(ALL_LANES, c, 3) ^ cuda.shfl_down_sync(ALL_LANES, c, 2)
    out[2, t] = cuda.ballot_sync(ALL_LANES, a > 0) + cuda.popc(cuda.ballot_sync(ALL_LANES, a) & cuda.lanemask_lt())
    for round in range(warp + 2):
        out[3, t] += cuda.shfl_down_sync(ALL_LANES, thread, 1) * (round + 1)
        if cuda.any_sync(ALL_LANES, t % 7 == 3):
            cuda.syncwarp(ALL_LANES)
            out[4, t] += cuda.all_sync(ALL_LANES, a != 7)
    if lane < 40 and cuda.any_sync(ALL_LANES, t % 5 == 1) or cuda.all_sync(ALL_LANES, t < 200):
        out[7, t] = 3
    if warp == 1:
        out[5, t] = cuda.shfl_sync(ALL_LANES, lane, 0) + cuda.laneid + cuda.warpsize
    odd = cuda.ballot_sync(ALL_LANES, lane % 2)
    if lane % 2:
        out[6, t] = cuda.ballot_sync(odd, lane % 3 == 0)


@kernel(OF_NUMBERS)
def repeated_conditions(i, u, I, U, out):  # noqa: E741
    """The same condition twice: what is under the first one changes it."""
    t = cuda.grid(1)
    k, n = uint32(t), uint32(t)
    if k < 40:
        k += 30
        out[0, t] = 1
    if k < 40:
        k += 30
        out[1, t] = 1
    while n < 40:
        n += 7
    while n < 40:
        out[2, t] = 1
        n += 7
    out[3, t] = k * 1000 + n


NEVER = False


@kernel(OF_NUMBERS)
def loops_that_are_left_out(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    while NEVER and t < 50:
        out[0, t] += 1
    out[1, t] = 5


@kernel(OF_NUMBERS)
def slices_that_stay(i, u, I, U, out):  # noqa: E741
    """A slice begins where it began, also when the variable goes on."""
    k = uint32(1)
    tail = I[k:]
    k += 1
    out[0, cuda.grid(1)] = tail[0] + k


@kernel(OF_NUMBERS)
def whole_blocks_that_end(i, u, I, U, out):  # noqa: E741
    """All threads of a block return: from a loop without another end, and in front of one that would have none."""
    t, block = cuda.grid(1), cuda.blockIdx.x
    k = uint32(0)
    while True:
        k += 1
        out[0, t] = out[0, t] * 3 + cuda.popc(cuda.ballot_sync(ALL_LANES, t % 5 > k))
        if block == 2 and k > 2:
            return
        if k > 4:
            break
    if block == 1:
        return
    k = uint32(0)
    while k < 10:
        k += 5 * (1 - block)
        out[1, t] += cuda.any_sync(ALL_LANES, t == k)


@kernel(OF_NUMBERS)
def lanes_that_end(i, u, I, U, out):  # noqa: E741
    """They return from a loop without another end, and none does more than its own rounds."""
    t = cuda.grid(1)
    k = uint32(0)
    while True:
        k += 1
        out[0, t] = out[0, t] * 3 + cuda.popc(cuda.ballot_sync(ALL_LANES, t % 5 > k))
        if k > t % 9:
            return


@kernel(OF_NUMBERS)
def lanes_that_end_in_the_last_statement(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    for k in range(4):
        if t % 5 == k:
            return
        out[0, t] = out[0, t] * 33 + cuda.popc(cuda.ballot_sync(ALL_LANES, t % 3 == 1))


@kernel(OF_NUMBERS)
def lanes_that_end_under_a_condition(i, u, I, U, out):  # noqa: E741
    t = cuda.grid(1)
    if u.size > 2:
        if t % 5 == 1:
            return
        out[0, t] = cuda.popc(cuda.ballot_sync(ALL_LANES, t % 3 == 1))


@cuda.jit(device=True)
def chosen(warp, x):
    if warp == 1:
        return cuda.ballot_sync(ALL_LANES, x % 3 == 1)
    else:
        return uint32(x)


@cuda.jit(device=True)
def votes_in_steps(step, x):
    """For ever, if the step is 0."""
    k, votes = uint32(0), 0
    while k < 10:
        votes = votes * 3 + cuda.popc(cuda.ballot_sync(ALL_LANES, x % 3 == k % 3))
        k += step
    return votes


@cuda.jit(device=True)
def votes_in_steps_of_a_block(steps, x):
    """For ever, if the block's step is 0; the condition is the same for all threads."""
    k, votes = uint32(0), 0
    while k < 5:
        votes = votes * 3 + cuda.popc(cuda.ballot_sync(ALL_LANES, x % 3 == k % 3))
        k += steps[cuda.blockIdx.x % 2]
    return votes


@cuda.jit(device=True)
def votes_but_one(length, x):
    """For hours, if the length is 0."""
    votes = 0
    for k in range(uint32(length - 1)):
        votes = votes * 3 + cuda.popc(cuda.ballot_sync(ALL_LANES, x % 3 == k % 3))
    return votes


@kernel(OF_NUMBERS)
def functions_for_some_warps(i, u, I, U, out):  # noqa: E741
    """A function that ends with a choice; and some with a loop, which in a block without such warps would never end."""
    t, warp = cuda.grid(1), cuda.threadIdx.x >> 5
    out[0, t] = chosen(warp, t)
    step = uint32(3 * (1 - cuda.blockIdx.x % 2))
    if warp + cuda.blockIdx.x % 2 * 100 < 3:
        out[1, t] = votes_in_steps(step, t)
    if warp < u[cuda.blockIdx.x % 2]:
        out[2, t] = votes_in_steps_of_a_block(u, t)
    if warp < step:
        out[4, t] = votes_but_one(step, t)
    if warp >= step:
        return
    out[3, t] = votes_in_steps(step, t)


@kernel(OF_NUMBERS)
def loops_with_one_end(i, u, I, U, out):  # noqa: E741
    """Threads leave it in different rounds, each with what it read in its last one."""
    t = cuda.grid(1)
    k = uint32(0)
    while True:
        x = u[k]
        if x > t % 5 * 3:
            break
        k += 1
    out[0, t] = x


@kernel("void(int32[::1], uint32[::1], int64[::1], int64[:, ::1])")
def atomics(i, u, I, out):  # noqa: E741
    """Of threads that change the same elements; and what they return to a thread that is alone with its element."""
    t, thread = cuda.grid(1), cuda.threadIdx.x
    kept, wide = cuda.shared.array(8, uint32), cuda.shared.array(4, int64)
    if thread < 8:
        kept[thread] = 3
        wide[thread & 3] = 5
    cuda.syncthreads()
    cuda.atomic.add(i, 0, -3)
    cuda.atomic.max(i, 1, int32(t * 5 % 37))
    cuda.atomic.min(i, 2, -int32(t * 5 % 37))
    cuda.atomic.xor(u, 0, uint32(1) << thread % 32)
    cuda.atomic.or_(u, 1, uint32(1) << thread % 32)
    cuda.atomic.and_(u, 2, ~(uint32(1) << thread % 32))
    cuda.atomic.max(u, 3, uint32(t) * 1_000_000_007)
    cuda.atomic.add(I, 0, 4_294_967_295 + t)
    cuda.atomic.add(I, 1, -t)
    cuda.atomic.or_(I, 2, 1 << t % 62)
    cuda.atomic.add(kept, thread % 4, 7)
    cuda.atomic.max(kept, 5, thread)
    cuda.atomic.add(wide, thread & 1, (1 << 33) - int64(thread))
    cuda.syncthreads()
    if thread < 8:
        out[0, t] = kept[thread]
        out[1, t] = wide[thread & 3]
    out[2, t] = 10
    out[3, t] = cuda.atomic.sub(u, 8 + t, uint32(3)) + cuda.atomic.inc(u, 8 + t, uint32(9))
    out[4, t] = cuda.atomic.dec(u, 8 + t, uint32(9)) + cuda.atomic.cas(u, 8 + t, uint32(9), uint32(4))
    out[5, t] = cuda.atomic.exch(i, 8 + t, 77) + cuda.atomic.cas(i, 8 + t, 77, -2)
    out[6, t] = cuda.atomic.add(out, (2, t), 5) + cuda.atomic.xor(out, (2, t), 1 << 50)


KERNELS = [
    types_of_results, quotients, shifts_and_bits, variables_change_their_type, loops, conditions, functions, tuples,
    names, barriers, threads_that_end_early, warps, repeated_conditions, loops_that_are_left_out, slices_that_stay,
    whole_blocks_that_end, lanes_that_end, lanes_that_end_in_the_last_statement, lanes_that_end_under_a_condition,
    functions_for_some_warps, loops_with_one_end,
]  # fmt: skip


@pytest.mark.parametrize(
    "kernel, blocks, threads",
    [pytest.param(each, *shape, id=f"{each.__name__} {shape}")
     for each in KERNELS for shape in share(SHAPES, each.__name__, of=2)],
)  # fmt: skip
def test_kernels_do_what_they_do_in_the_simulator(engine, kernel, blocks, threads):
    if kernel is threads_that_end_early and "llvmpipe" in engine.name:
        pytest.skip("Mesa 22.3 leaves the loop at once")
    inputs = [numbers(dtype) for dtype in (np.int32, np.uint32, np.int64, np.uint64)]
    same(engine, kernel, blocks, threads, [*inputs, np.zeros((ROWS, blocks * threads), np.int64)], shared=8 * 128)


@pytest.mark.parametrize("blocks, threads", SHAPES)
def test_atomic_operations(engine, blocks, threads):
    arrays = [np.full(8 + blocks * threads, 5, dtype) for dtype in (np.int32, np.uint32, np.int64)]
    same(engine, atomics, blocks, threads, [*arrays, np.zeros((ROWS, blocks * threads), np.int64)])


def test_evaluation_from_left_to_right(engine):
    same(engine, order_of_evaluation, 2, 3, [np.zeros((13, 6), np.int32)])


# ------------------------------------------------------------------------------------------------------- large launches


@kernel("void(int64[::1], uint32[::1])")
def sum_of_blocks(total, seen):
    if cuda.threadIdx.x == 0:
        cuda.atomic.add(total, 0, int64(cuda.blockIdx.x) * 1_000_003 + (1 << 31))
        cuda.atomic.add(total, 1, -cuda.grid(1))
        seen[cuda.blockIdx.x] += uint32(1)


@pytest.mark.parametrize("blocks", [1, 32_768, 32_769, 65_536, 131_075])
def test_many_blocks_and_sums_beyond_32_bits(engine, blocks):
    total, seen = launched(engine, sum_of_blocks, blocks, 3, [np.array([5, 5]), np.zeros(blocks, np.uint32)])
    each = blocks * (blocks - 1) // 2
    assert (seen == 1).all() and total.tolist() == [5 + each * 1_000_003 + (blocks << 31), 5 - 3 * each]


@kernel("void(int64[::1], int64)")
def add_often(total, value):
    for _ in range(100):
        cuda.atomic.add(total, cuda.threadIdx.x & 1, value)


@pytest.mark.parametrize("value", [1, 2**32 - 1, 2**32, 3**30, -1, -(3**30)])
def test_sums_carry_over_words(engine, value):
    total = engine.to_device(np.array([2**32 - 7, -3]))
    engine.launch(add_often, 8, 64, (total, value), 0, None)
    assert np.asarray(total).tolist() == [2**32 - 7 + 25_600 * value, -3 + 25_600 * value]


# ------------------------------------------------------------------------------------------------- what is not possible


@cuda.jit(device=True)
def same_ends(a, b):
    a[0] = b[-1]
    return a[0]


@cuda.jit(device=True)
def pair_of_arrays(a):
    return a, a


def spoken(body, *parameters):
    """The error's text for a kernel with this body, a function that was never called."""
    types = ", ".join(parameters or ["int32[::1]"])
    with pytest.raises(KernelError) as caught:
        kernel(f"void({types})")(body).wgsl()
    return str(caught.value)


def divides(a):
    a[0] = a[0] / 2


def powers(a):
    for k in range(3):
        a[0] = a[k] ** k


def prints(a):
    print(a[0])


def has_floats(a):
    a[0] = 0.5 * a[1]


def sleeps(a):
    cuda.nanosleep(100)


def asks_for_two_dimensions(a):
    x, y = cuda.grid(2)
    a[x] = y


def reads_y_threads(a):
    a[0] = cuda.blockIdx.w


def matches(a):
    a[0] = cuda.match_any_sync(ALL_LANES, a[0])


def waits_for_the_grid(a):
    cuda.cg.this_grid().sync()


def has_a_list(a):
    b = [1, 2]
    a[0] = b[0]


def has_a_list_comprehension(a):
    a[0] = sum(k for k in a)


def slices_with_an_end(a):
    b = a[1:3]
    a[0] = b[0]


def loops_over_an_array(a):
    for value in a:
        a[0] += value


def has_an_else(a):
    for k in range(a.size):
        if a[k] == 3:
            break
    else:
        a[0] = 1


def tries(a):
    try:
        a[0] = 1
    except IndexError:
        a[0] = 2


def asserts(a):
    assert a[0] == 1


def adds_what_does_not_fit(a):
    a[0] = uint32(a[0]) + (-1)


def mixes_signs_of_64_bits(a):
    a[0] = int64(a[0]) + uint64(a[1])


def adds_bools(a):
    a[0] = (a[0] < 1) + (a[1] < 1)


def has_arrays_of_16_bits(a):
    shared = cuda.shared.array(32, np.uint16)
    a[0] = shared[0]


def has_an_array_of_a_size_not_known(a):
    mine = cuda.local.array(a[0], int32)
    a[0] = mine[0]


def uses_what_was_never_assigned(a):
    if a[0] > 1:
        a[0] = missing  # noqa: F821


def changes_an_array_in_a_loop(a):
    b = a[1:]
    for k in range(3):
        b[0] = k
        b = a[k:]


def returns_arrays(a):
    b, c = pair_of_arrays(a)
    b[0] = c[1]


def passes_too_few(a):
    a[0] = divided(a[0])


def passes_by_name(a):
    a[0] = divided(a[0], b=1)[0]


def has_too_many_indices(a):
    a[0, 1] = 3


def reads_beyond_the_end(a):
    mine = cuda.local.array((4, 2), int32)
    a[0] = mine[3, 2]


def passes_an_array_twice(a):
    mine = cuda.local.array(4, int32)
    a[0] = same_ends(mine, mine)


def minimum_of_one(a):
    a[0] = min(a[0])


def chains_calls(a):
    a[0] = 0 < a[1] < cuda.atomic.add(a, 0, 1)


def atomic_minimum_of_64_bits(a):
    cuda.atomic.min(a, 0, 3)


def atomic_nand(a):
    cuda.atomic.nand(a, 0, 3)


def chooses_numbers_by_or(a):
    a[0] = a[1] or a[2]


def plain_numbers(a, x):
    a[0] = x


def steps_by_nothing(a):
    for k in range(1, a[0], 0):
        a[0] = k


REFUSED = {
    divides: "a[0] / 2", powers: "a[k] ** k", prints: "print", has_floats: "0.5", sleeps: "cuda.nanosleep",
    asks_for_two_dimensions: "one dimension", reads_y_threads: "cuda.blockIdx.w", matches: "cuda.match_any_sync",
    waits_for_the_grid: "cg", has_a_list: "[1, 2]", has_a_list_comprehension: "for k in a",
    slices_with_an_end: "a[1:3]", loops_over_an_array: "range(...)", has_an_else: "no else", tries: "try",
    asserts: "assert", adds_what_does_not_fit: "-1 is out of the bounds of uint32",
    mixes_signs_of_64_bits: "int64 and uint64 have no common", adds_bools: "convert one to an integer",
    has_arrays_of_16_bits: "32 or 64 bits", has_an_array_of_a_size_not_known: "a size is a constant",
    uses_what_was_never_assigned: "missing", changes_an_array_in_a_loop: "depends on the path",
    returns_arrays: "returns numbers", passes_too_few: "divided", passes_by_name: "by position",
    has_too_many_indices: "an index is 1 number", reads_beyond_the_end: "index 2 is beyond",
    passes_an_array_twice: "no aliases", minimum_of_one: "min and max", chains_calls: "`and`",
    atomic_nand: "cuda.atomic.nand", chooses_numbers_by_or: "or", steps_by_nothing: "not 0",
}  # fmt: skip


@pytest.mark.parametrize("body", REFUSED, ids=lambda body: body.__name__)
def test_what_webgpu_has_not_is_told_with_its_line(body):
    said = spoken(body)
    line = int(re.search(r'test_webgpu_language.py", line (\d+)', said)[1])
    inside = range(body.__code__.co_firstlineno, body.__code__.co_firstlineno + 6)
    assert REFUSED[body] in said and (line in inside or "in divided" in said or "in pair_of_arrays" in said), said


@pytest.mark.parametrize("of", ["float64", "uint16[::1]", "float32[::1]", "int8[::1]", "bool[::1]"])
def test_types_that_webgpu_has_not_are_named(of):
    said = spoken(plain_numbers, "int32[::1]", of)
    assert of.partition("[")[0] in said and re.search(r'test_webgpu_language.py", line \d+', said)


@kernel("void(int64[::1], int64[::1])")
def copies(given, out):
    for k in range(cuda.grid(1), out.size, cuda.gridsize(1)):
        out[k] = given[k] + uint32(MINUS_FIVE)


@kernel("void(int32[::1])")
def keeps_much(out):
    kept = cuda.shared.array(20_000, int32)
    kept[cuda.threadIdx.x] = 1
    out[0] = kept[0]


def test_what_a_launch_may_not_be(engine):
    a, b = engine.to_device(np.arange(5)), engine.to_device(np.arange(5))
    engine.launch(copies, (2, 1), (4,), (a, b), 0, None)
    assert np.asarray(b).tolist() == [2**32 - 5 + k for k in range(5)]
    for blocks, threads, args, said in (
        (2, 4, (a, a), "copies writes out, whose memory"),
        ((2, 2), 4, (a, b), "one dimension"),
        (2, (4, 4), (a, b), "one dimension"),
        (2, 5000, (a, b), "5,000 threads"),
    ):
        with pytest.raises(KernelError, match=said):
            engine.launch(copies, blocks, threads, args, 0, None)
    with pytest.raises(KernelError, match="keeps_much has 80,000 bytes of shared memory"):
        engine.launch(keeps_much, 1, 4, (engine.to_device(np.zeros(1, np.int32)),), 0, None)
    engine.launch(copies, 0, 4, (a, b), 0, None)


def test_atomic_operations_that_need_64_bits_are_named():
    assert "cuda.atomic.min of 64 bits" in spoken(atomic_minimum_of_64_bits, "int64[::1]")


@kernel("void(int32[::1], int32[::1])")
def counts_back(values, out):
    shared_words = cuda.threadIdx.x
    kept = cuda.shared.array(0, int32)
    kept[shared_words] = shared_words + values.size
    cuda.syncthreads()
    out[shared_words] = kept[cuda.blockDim.x - 1 - shared_words]


def test_a_variable_may_have_the_name_of_dynamic_shared_memory(engine):
    same(engine, counts_back, 1, 32, [np.zeros(5, np.int32), np.zeros(32, np.int32)], shared=4 * 32)


def test_arrays_of_no_and_of_odd_bytes(engine):
    values, out = engine.to_device(np.arange(64, dtype=np.int32)), engine.to_device(np.zeros(32, np.int32))
    engine.launch(counts_back, 1, 32, [values[64:], out], 4 * 32, None)
    assert np.asarray(out).tolist() == [*range(31, -1, -1)]
    for odd in (np.arange(5, dtype=np.uint8), np.array([1, -2, 3], np.int16), np.zeros((0, 3), np.int64)):
        assert np.array_equal(np.asarray(engine.to_device(odd)), odd)


def adds_too_much(a):
    cuda.atomic.add(a, 0, 10**30)


def stores_too_much(a):
    a[0] = 2**40


def keeps_too_much(a):
    most = 2**63
    a[0] = int32(most >> 60)


@pytest.mark.parametrize("body", [adds_too_much, stores_too_much, keeps_too_much])
def test_numbers_that_no_element_or_variable_can_hold_are_refused(body):
    """In the simulator they are an OverflowError, or right; they would be cut."""
    assert re.search(r"\d+ is out of the bounds of int(32|64)", spoken(body))
