"""Faults of kernels: each kind is found and reported in a sentence; our own kernels have none."""

import inspect

import numpy as np
import pytest
import sampling
from kernel_shapes import MOST_EDGES, QUICK, settings, small_graphs, well_known, with_few_blocks
from sampling import default_and_share, share
from test_adaptive import AS_IT_COMES, BY_DEGREE, roomy  # noqa: F401

import tcgpu
from tcgpu.engines import runtime
from tcgpu.engines.kernel_language import cuda, int32, int64, uint32
from tcgpu.insight.faults import CheckedRun, check_launch
from tcgpu.insight.shadow_memory import Written
from tcgpu.kernels import adaptive
from tcgpu.kernels.adaptive import layout
from tcgpu.kernels.report import naive
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
ON_GPU = [name for name, method in METHODS.items() if "sim" in method.engines]
ALL_LANES = 0xFFFFFFFF


def faults_of(function, blocks=2, threads=64, args=None, **more):
    """The faults of a launch of `function(a, out)`: 64 numbers, and 64 zeros."""
    args = [np.arange(64), np.zeros(64, np.int64)] if args is None else args
    return check_launch(function, blocks, threads, args, most_rounds=10_000, **more)


def only(function, kind, **more):
    """The only fault of a launch; it is of this kind, and names the line that ends with `# here`."""
    (fault,) = faults_of(function, **more)
    lines, first = inspect.getsourcelines(function)
    (here,) = (first + k for k, line in enumerate(lines) if line.rstrip().endswith("# here"))
    assert (fault.kind, fault.kernel, fault.line) == (kind, function.__name__, here)
    assert str(fault).startswith(f"{function.__name__}, line {here}, `{fault.source}`: ")
    return fault


# --------------------------------------------------------------------------------------------------------------- bounds


def reads_past_the_end(a, out):
    t = cuda.grid(1)
    if t <= a.size:
        cuda.atomic.add(out, 0, a[t])  # here


def reads_below_the_beginning(a, out):
    t = cuda.grid(1)
    out[t] = a[t - 1]  # here


def writes_past_shared_memory(a, out):
    words = cuda.shared.array(0, int64)
    words[cuda.threadIdx.x + 1] = 0  # here


def changes_past_the_end(a, out):
    cuda.atomic.add(out, cuda.grid(1), 1)  # here


def reads_a_row_past_the_end(a, out):
    table = cuda.local.array((3, 4), int64)
    table[0, 3] = 1
    out[0] = table[0, 4]  # here


def test_an_index_out_of_bounds_names_thread_array_and_size():
    fault = only(reads_past_the_end, "bounds")
    assert (fault.block, fault.thread, fault.lane, fault.array, fault.index) == (1, 0, 0, "a", 64)
    assert fault.says == "thread 0 of block 1 reads a[64], out of bounds: the array has 64 elements"
    assert only(changes_past_the_end, "bounds").says.startswith("thread 0 of block 1 changes out[64]")
    says = only(reads_a_row_past_the_end, "bounds", threads=1, blocks=1).says
    assert says == "thread 0 of block 0 reads table[0, 4] in local memory, out of bounds: the array has 3 x 4 elements"


def test_a_negative_index_is_no_element_counted_from_the_end():
    fault = only(reads_below_the_beginning, "bounds")
    assert fault.index == -1 and "below 0, which NumPy and Numba count from the end" in fault.says


def test_shared_memory_ends_where_the_launch_asked():
    fault = only(writes_past_shared_memory, "bounds", shared=64 * 8)
    assert (fault.thread, fault.lane, fault.index) == (63, 31, 64)
    assert fault.says.endswith("the launch asks for 512 bytes of shared memory")
    assert not faults_of(writes_past_shared_memory, shared=65 * 8)


# ------------------------------------------------------------------------------------------------------------ unwritten


def reads_shared_memory_first(a, out):
    words = cuda.shared.array(64, int32)
    if cuda.threadIdx.x > 5:
        words[cuda.threadIdx.x] = 1
    if cuda.blockIdx.x == 1:
        out[cuda.threadIdx.x] = words[cuda.threadIdx.x]  # here


def reads_local_memory_first(a, out):
    mine = cuda.local.array(4, int32)
    mine[0] = 1
    if cuda.grid(1) == 3:
        out[0] = mine[0] + mine[1]  # here


def copies(a, out):
    out[cuda.grid(1)] = a[cuda.grid(1)]  # here


def test_a_read_of_memory_that_nothing_wrote():
    fault = only(reads_shared_memory_first, "unwritten")
    assert fault.says == "thread 0 of block 1 reads words[0] in shared memory, uninitialized: nothing was written to it"
    assert only(reads_local_memory_first, "unwritten").array == "mine"


def test_what_a_launch_wrote_a_later_one_may_read():
    a, out = np.zeros(64, np.int64), np.zeros(64, np.int64)
    written = Written([a])
    assert only(copies, "unwritten", blocks=1, args=[a, out], written=written).array == "a"
    assert not faults_of(copies, blocks=1, args=[out, a], written=written)
    assert not faults_of(copies, blocks=1, args=[a, out], written=written)


# ---------------------------------------------------------------------------------------------------------------- races


def loses_updates(a, out):
    for k in range(cuda.grid(1), a.size, cuda.gridsize(1)):
        out[0] += a[k]  # here


def updates_in_blocks_of_one(a, out):
    out[0] += cuda.blockIdx.x + 1  # here


def lacks_a_block_barrier(a, out):
    words = cuda.shared.array(64, int64)
    thread = cuda.threadIdx.x
    words[thread] = a[thread]  # here
    cuda.syncwarp()
    words[thread ^ 32] = 7


def lacks_a_warp_barrier(a, out):
    words = cuda.shared.array(64, int64)
    thread = cuda.threadIdx.x
    words[thread] = a[thread] + 1  # here
    other = cuda.shfl_xor_sync(ALL_LANES, thread, 1)
    if thread > other:
        out[thread] = words[other]


def writes_from_every_block(a, out):
    if cuda.threadIdx.x == 3:
        out[0] = cuda.blockIdx.x  # here


def mixes_atomic_and_plain(a, out):
    if cuda.grid(1) == 70:
        out[0] = 5
    cuda.atomic.add(out, 0, 1)  # here


def test_a_lost_update_lacks_an_atomic_operation():
    fault = only(loses_updates, "race")
    assert fault.says == (
        "a race: thread 0 of block 0 and thread 1 of block 0 both read and write out[0], so an update is lost; it "
        "lacks an atomic operation such as cuda.atomic.add"
    )
    fault = only(updates_in_blocks_of_one, "race", threads=1)
    assert "thread 0 of block 0 and thread 0 of block 1" in fault.says and "lacks an atomic" in fault.says
    assert not faults_of(updates_in_blocks_of_one, threads=1, blocks=1)


def test_races_within_a_block_a_warp_and_between_blocks():
    fault = only(lacks_a_block_barrier, "race")
    assert "words[" in fault.says and "with no cuda.syncthreads in between" in fault.says
    fault = only(lacks_a_warp_barrier, "race")
    assert "writes words[0] in shared memory, thread 1 of block 0 reads it at line" in fault.says
    assert "no cuda.syncthreads in between, or cuda.syncwarp: they are lanes of a warp" in fault.says
    fault = only(writes_from_every_block, "race")
    assert "thread 3 of block 0 writes out[0], thread 3 of block 1 writes it" in fault.says
    assert "blocks do not wait for each other" in fault.says
    assert "one of them is not atomic" in only(mixes_atomic_and_plain, "race").says


def clears_together(a, out):
    out[cuda.grid(1) // 64] = 0
    out[5] = 1


def waits_for_pairs(a, out):
    words = cuda.shared.array(64, int64)
    thread = cuda.threadIdx.x
    pair = 3 << (thread & 30)
    words[thread] = a[thread]
    cuda.syncwarp(pair)
    found = words[thread ^ 1]
    cuda.syncwarp(pair)
    words[thread ^ 1] = found
    cuda.syncthreads()
    if thread < 32:
        out[thread] = words[thread + 32]


def reads_pairs_of_others(a, out):
    words = cuda.shared.array(64, int64)
    thread = cuda.threadIdx.x
    words[thread] = a[thread] + 1  # here
    cuda.syncwarp(3 << (thread & 30))
    if thread > 1:
        out[thread] = words[thread - 2]


def views_as_bytes(words, out):
    narrow = words.view(int32)
    narrow[cuda.grid(1)] = 1


def reads_the_other_half(a, out):
    wide, narrow = cuda.shared.array(0, int64), cuda.shared.array(0, int32)
    thread = cuda.threadIdx.x
    narrow[thread] = thread + 1  # here
    cuda.syncwarp()
    if thread == 0:
        out[0] = wide[31]


def spares_atomics(a, out):
    if out[0] < a[cuda.grid(1) % 64]:
        cuda.atomic.max(out, 0, a[cuda.grid(1) % 64])


def spares_atomics_by_a_variable(a, out):
    largest = out[0]
    if largest < a[cuda.grid(1) % 64]:
        largest = cuda.atomic.max(out, 0, a[cuda.grid(1) % 64])


def reads_beside_atomics(a, out):
    largest = out[0]
    if a[cuda.grid(1) % 64]:
        cuda.atomic.max(out, 0, a[cuda.grid(1) % 64] + 0 * largest)  # here


def last_block_adds_up(a, out):
    words, last = cuda.shared.array(64, int64), cuda.shared.array(1, int64)
    thread = cuda.threadIdx.x
    words[thread] = a[thread]
    cuda.syncthreads()
    if thread == 0:
        out[cuda.blockIdx.x + 2] = words[0] + words[63]
        cuda.threadfence()
        last[0] = cuda.atomic.add(out, 0, 1) == cuda.gridDim.x - 1
    cuda.syncthreads()
    if last[0] and thread == 40:
        for block in range(cuda.gridDim.x):
            out[1] += out[block + 2]


def last_block_adds_up_without_a_fence(a, out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x + 2] = 7  # here
        if cuda.atomic.add(out, 0, 1) == cuda.gridDim.x - 1:
            out[1] = out[2]


def fence_of_the_block_alone(a, out):
    if cuda.threadIdx.x == 0:
        out[cuda.blockIdx.x + 2] = 7  # here
        cuda.threadfence_block()
        if cuda.atomic.add(out, 0, 1) == cuda.gridDim.x - 1:
            out[1] = out[2]


def fence_before_the_write(a, out):
    if cuda.threadIdx.x == 0:
        cuda.threadfence()
        out[cuda.blockIdx.x + 2] = 7  # here
        if cuda.atomic.add(out, 0, 1) == cuda.gridDim.x - 1:
            out[1] = out[2]


def message_within_a_block(a, out):
    flag, words = cuda.shared.array(1, int32), cuda.shared.array(64, int64)
    thread = cuda.threadIdx.x
    if thread == 0:
        flag[0] = 0
    cuda.syncthreads()
    if thread < 32:
        words[thread] = a[thread]
        cuda.syncwarp()
        if thread == 5:
            cuda.threadfence_block()
            cuda.atomic.exch(flag, 0, 1)
    elif cuda.atomic.add(flag, 0, 0) == 1:
        a[thread] = words[thread - 32]


def test_a_message_by_a_fence_and_an_atomic_operation_orders_memory():
    a, out = np.arange(64), np.zeros(64, np.int64)
    assert not faults_of(last_block_adds_up, blocks=4, args=[a, out])
    assert out[1] == 4 * 63
    assert not faults_of(message_within_a_block, blocks=1)
    for function in (last_block_adds_up_without_a_fence, fence_of_the_block_alone, fence_before_the_write):
        assert "blocks do not wait for each other" in only(function, "race").says


def test_an_order_that_makes_no_difference_is_no_race():
    assert not faults_of(spares_atomics) and not faults_of(spares_atomics_by_a_variable)
    assert only(reads_beside_atomics, "race").array == "out"
    assert not faults_of(clears_together)


def test_lanes_may_wait_for_some_others():
    assert not faults_of(waits_for_pairs, blocks=1)
    only(reads_pairs_of_others, "race", blocks=1)


def test_elements_of_different_sizes_in_one_memory():
    fault = next(f for f in faults_of(reads_the_other_half, blocks=1, shared=8 * 32) if f.kind == "race")
    assert fault.array == "narrow" and fault.index in (62, 63)


# ------------------------------------------------------------------------------------------------------------- barriers


def half_of_them_wait(a, out):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()  # here


def two_barriers(a, out):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()  # here
    else:
        cuda.syncthreads()


def some_wait_for_ever(a, out):
    if cuda.threadIdx.x < 40:
        cuda.syncthreads()  # here
    else:
        cuda.syncwarp()


def not_in_its_mask(a, out):
    cuda.syncwarp(0xFFFF)  # here


def returns_early(a, out):
    if cuda.threadIdx.x % 2:
        return
    cuda.syncwarp()


def test_barriers_that_not_all_threads_reach():
    fault = only(half_of_them_wait, "barrier")
    assert "thread 0 of block 0 waits here, but thread 40 of block 0 has returned" in fault.says and not fault.ends
    assert "thread 40 of block 0 waits at line" in only(two_barriers, "barrier").says
    fault = only(some_wait_for_ever, "barrier")
    assert "waits for ever at cuda.syncthreads" in fault.says and fault.ends
    assert "in which its own lane 16 is not" in only(not_in_its_mask, "barrier").says
    assert not faults_of(returns_early), "a warp's barrier waits for lanes that have not returned"


# ------------------------------------------------------------------------------------------ overflow, endless, an error


def multiplies_in_32_bits(a, out):
    row = int32(cuda.grid(1)) + 60_000
    out[cuda.grid(1)] = row * int32(70_000)  # here


def adds_in_32_bits(a, out):
    last = int32(2**31 - 1)
    if cuda.grid(1) == 0:
        out[0] = last + int32(1)  # here


def wraps_around(a, out):
    low = uint32(cuda.grid(1)) - 5
    if cuda.grid(1) == 0:
        out[0] = low < 10


def hashes(a, out):
    key = uint32(cuda.grid(1)) + 3
    out[cuda.grid(1)] = (key * 2_654_435_769) >> 28


def stands_still(a, out):
    t = cuda.grid(1)
    while t < a.size:  # here
        a[t] += 0


def stands_still_in_a_try(a, out):
    try:
        while a[0] == 0:  # here
            out[cuda.grid(1)] = 1
    finally:
        out[0] = 2


def names_nothing(a, out):
    out[0] = missing[0]  # noqa: F821  # here


def divides_for_an_index(a, out):
    out[cuda.grid(1) / 2] = 0  # here


@cuda.jit(device=True)
def second_of(a):
    return a[1]


def calls(a, out):
    cuda.atomic.add(out, 0, second_of(a))


def adds_with_an_unsigned_index(a, out):
    narrow, third = cuda.shared.array(64, int32), uint32(3)
    narrow[cuda.threadIdx.x] = 2**31 - 2
    if cuda.grid(1) == 3:
        out[uint32(0)] = narrow[third] + int32(cuda.grid(1))  # here


def adds_to_an_element_with_an_unsigned_index(a, out):
    narrow = cuda.shared.array(64, int32)
    narrow[cuda.threadIdx.x] = 2**31 - 2
    narrow[cuda.threadIdx.x] += cuda.laneid & 3  # here


def wraps_an_index(a, out):
    first = uint32(cuda.grid(1)) - uint32(1)
    out[cuda.grid(1)] = a[(first + uint32(2)) & 63] + int64(1)


def adds_too_much(a, out):
    if out.size:
        cuda.atomic.add(out, 0, 2**62)
        cuda.atomic.add(out, 0, 2**62)  # here


def test_results_that_do_not_fit_their_type():
    assert only(adds_too_much, "overflow", blocks=1, threads=1).thread == 0
    assert only(multiplies_in_32_bits, "overflow", blocks=1).thread == 0
    assert "does not fit its integer type" in only(adds_in_32_bits, "overflow").says
    assert not faults_of(wraps_around), "a difference of unsigned numbers may wrap around"
    assert not faults_of(hashes, blocks=1), "so may a product that becomes a hash"


def test_a_sum_of_signed_numbers_is_told_beside_unsigned_ones():
    only(adds_with_an_unsigned_index, "overflow", blocks=1)
    fault = only(adds_to_an_element_with_an_unsigned_index, "overflow", blocks=1)
    assert "does not fit the type that it is written as: 2147483648 out of bounds for int32" in fault.says
    assert not faults_of(wraps_an_index, blocks=1), "the sum that wraps is of unsigned numbers"


@pytest.mark.parametrize("kernel", [stands_still, stands_still_in_a_try])
def test_an_endless_loop_ends(kernel):
    assert "gone round its loops 10,000 times" in only(kernel, "endless").says


def test_an_exception_is_told_with_the_line():
    assert "thread 0 of block 0: there is no name 'missing'" in only(names_nothing, "error").says
    assert "a number of type float64 where a whole number is needed" in only(divides_for_an_index, "error").says


def test_a_fault_in_a_device_function_names_the_callers_array():
    (fault,) = faults_of(calls, args=[np.arange(1), np.zeros(1, np.int64)])
    assert (fault.kernel, fault.function, fault.array) == ("calls", "second_of", "a") and fault.source == "return a[1]"
    assert "(in second_of)" in str(fault)


# ----------------------------------------------------------------------------------------------------- plans and traces


def run_checked(plan):
    checked = CheckedRun(plan)
    return checked.run_all(), checked.faults


@pytest.mark.parametrize("method", ON_GPU)
def test_our_own_kernels_have_no_faults(method):
    graphs = [*(small_graphs()[name] for name in ("nothing", "one triangle")), tcgpu.generate.rmat(5, 4, seed=2)]
    with runtime.using("sim"):
        for graph in map(METHODS[method].prepare, graphs):
            for knobs in default_and_share(settings(method, graph), method, of=3):
                found = run_checked(METHODS[method].plan(graph, **knobs))
                assert found == (METHODS["cpu"].plan(graph).count(), []), knobs


@pytest.mark.parametrize("method", share(ON_GPU, "well known", of=2))
def test_our_own_kernels_have_no_faults_on_well_known_graphs(method, graphs_folder):
    """On those of up to 5,000 edges; without --full, on the smallest."""
    graphs = list(well_known(graphs_folder, MOST_EDGES["sim"].get(method, 5000)))
    for name, graph, triangles in graphs if sampling.full else graphs[:1]:
        graph = METHODS[method].prepare(graph)
        with runtime.using("sim"):
            knobs = QUICK.get(method, {}) | ({"blocks": 20} if "blocks" in METHODS[method].knobs else {})
            assert run_checked(METHODS[method].plan(graph, **knobs)) == (triangles, []), name
            if "edges" in METHODS[method].tallies:
                support, faults = run_checked(METHODS[method].support_plan(graph))
                assert (support.sum(), faults) == (3 * triangles, []), name


@pytest.mark.parametrize("sized_from", [layout.SIZED_FROM, 0], ids=["", "memory sized"])
@pytest.mark.parametrize("knobs", share([*BY_DEGREE.values(), *AS_IT_COMES.values()], "adaptive", of=5))
def test_no_class_of_adaptive_has_faults(knobs, sized_from, roomy, monkeypatch):  # noqa: F811
    monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
    order = "degree" if knobs in BY_DEGREE.values() else "natural"
    graph = tcgpu.generate.barabasi_albert(90, 6, seed=1).ordered(order)
    with runtime.using("sim"):
        plan = with_few_blocks(adaptive.plan(graph, **knobs))
        assert run_checked(plan) == (METHODS["cpu"].plan(graph).count(), [])


@runtime.kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def adds_plainly(col_ptr, row_idx, col_of, total):
    total[0] += 1


@runtime.kernel("void(int64[::1], int32[::1], int32[::1], int64[::1])")
def reads_too_far(col_ptr, row_idx, col_of, total):
    total[0] = col_ptr[col_ptr.size]


def test_traces_tell_faults_by_a_keyword(monkeypatch):
    graph = tcgpu.generate.clique(6)
    assert tcgpu.trace(graph, "naive").faults is None
    trace = tcgpu.trace(graph, "naive", faults=True)
    assert (trace.triangles, trace.faults) == (20, [])
    assert trace.totals(None) == tcgpu.trace(graph, "naive").totals(None)
    monkeypatch.setattr(naive, "naive_kernel", adds_plainly)
    (fault,) = tcgpu.trace(graph, "naive", threads=4, faults=True).faults
    assert (fault.kind, fault.kernel, fault.array) == ("race", "adds_plainly", "total")
    monkeypatch.setattr(naive, "naive_kernel", reads_too_far)
    with pytest.raises(tcgpu.KernelError, match=r"reads_too_far, line .* reads col_ptr\[7\], out of bounds: the array"):
        tcgpu.trace(graph, "naive", faults=True)
