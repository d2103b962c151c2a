"""What a trace counts: tiny kernels whose steps, requests, sectors and conflicts are worked out by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint8
from tcgpu.insight import trace_launch
from tcgpu.kernels.device.reduction import BYTES_PER_THREAD, add_block_to

pytestmark = pytest.mark.sim
LANE = np.arange(32)


def measures(kernel, *args, blocks=1, threads=32, shared=0):
    """All measures of one launch."""
    return trace_launch(kernel, blocks, threads, *args, shared=shared).totals()


def by_line(kernel, *args, blocks=1, threads=32, shared=0):
    """The text of each line -> (steps, mean lanes)."""
    lines = trace_launch(kernel, blocks, threads, *args, shared=shared).lines
    return {
        function.lines[line - function.first].strip(): (found["steps"], found["lane_steps"] / found["steps"])
        for (function, line), found in lines.items()
        if found["steps"]
    }


# ------------------------------------------------------------------------------------------------------ global memory


@kernel("void(int32[::1], int32[::1], int32[::1])")
def gather(values, index, out):
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = values[i]


def gathered(index, kind=np.int32, size=4096):
    """Requests and sectors of the values that the lanes read, without those of the indices."""
    found = measures(gather, np.zeros(size, kind), np.asarray(index, np.int32), np.zeros(32, np.int32))
    return found["load_requests"] - 1, found["load_sectors"] - 4


@pytest.mark.parametrize(
    "kind, index, sectors",
    [
        (np.int32, LANE, 4),  # coalesced: 128 bytes
        (np.int32, LANE + 1, 5),  # one further: not aligned
        (np.int32, LANE[::-1], 4),
        (np.int32, 0 * LANE, 1),  # broadcast
        (np.int32, 2 * LANE, 8),
        (np.int32, 8 * LANE, 32),  # each lane a sector of its own
        (np.int32, 100 * LANE, 32),
        (np.int32, np.where(LANE % 2, -1, LANE), 4),  # half of the lanes, all sectors
        (np.int64, LANE, 8),
        (np.int64, LANE // 4, 2),
        (np.uint8, LANE, 1),
        (np.uint8, 33 * LANE, 32),
        (np.uint16, LANE, 2),
    ],
)
def test_a_request_moves_the_sectors_that_its_lanes_touch(kind, index, sectors):
    assert gathered(index, kind) == (1, sectors)


def test_lanes_that_read_nothing_make_no_request():
    assert gathered(np.full(32, -1)) == (0, 0)


@given(st.lists(st.integers(-1, 4095), min_size=32, max_size=32), st.sampled_from([np.uint8, np.int32, np.int64]))
def test_each_sector_is_counted_once(index, kind):
    expected = {i * np.dtype(kind).itemsize // 32 for i in index if i >= 0}
    assert gathered(index, kind) == (bool(expected), len(expected))


def test_views_share_the_memory_of_their_array():
    @kernel("void(int32[::1], int64[::1], int32[::1])")
    def read_two(one, two, out):
        if cuda.threadIdx.x % 2:
            out[cuda.threadIdx.x] = one[0]
        else:
            out[cuda.threadIdx.x] = two[0]

    memory = np.zeros(64, np.int64)
    apart = trace_launch(read_two, 1, 32, np.zeros(64, np.int32), memory, np.zeros(32, np.int32)).events
    together = trace_launch(read_two, 1, 32, memory.view(np.int32), memory, np.zeros(32, np.int32)).events
    assert apart.memories == ["shared memory", "one", "two", "out"]
    assert together.memories == ["shared memory", "one, two", "out"]
    loads = together.of_kind("load")
    assert set(together.address[loads[together.request]].tolist()) == {1 << 44}


def test_a_view_that_a_kernel_makes_has_the_name_of_its_array():
    @kernel("void(int32[::1], int32[::1])")
    def read_behind(values, out):
        behind = values[32:]
        out[cuda.threadIdx.x] = behind[cuda.threadIdx.x]

    assert trace_launch(read_behind, 1, 32, np.zeros(64, np.int32), np.zeros(32, np.int32)).events.memories == [
        "shared memory", "values", "out",
    ]  # fmt: skip


@kernel("void(int32[:, ::1], int32[::1])")
def read_table(table, out):
    out[cuda.threadIdx.x] = table[cuda.threadIdx.x, 1] + table[-1, 0]


def test_tables_have_rows_and_indices_may_count_from_the_end():
    events = trace_launch(read_table, 1, 4, np.zeros((4, 8), np.int32), np.zeros(4, np.int32)).events
    loads = events.of_kind("load")[events.request]
    assert (events.address[loads] % (1 << 44)).tolist() == [4, 36, 68, 100, 96, 96, 96, 96]
    assert events.sectors[events.of_kind("load")].tolist() == [4, 1]


@cuda.jit(device=True)
def number_of_calls(calls):
    calls[cuda.threadIdx.x + 1] += 1
    return calls[cuda.threadIdx.x + 1]


@kernel("void(int32[::1], int32[::1])")
def add_number_of_calls(calls, out):
    out[cuda.threadIdx.x + 2] += number_of_calls(calls)


def test_an_element_is_changed_by_what_a_function_returns_that_changes_another():
    calls, out = np.full(32, 6, np.int32), np.full(32, 40, np.int32)
    events = trace_launch(add_number_of_calls, 1, 1, calls, out).events
    assert (calls[:3].tolist(), out[:3].tolist()) == ([6, 7, 6], [40, 40, 47])
    stores = events.of_kind("store")[events.request]
    assert events.address[stores].tolist() == [(1 << 44) + 4, (2 << 44) + 8]


# ------------------------------------------------------------------------------------------------------ shared memory


@kernel("void(int32[::1], int32[::1])")
def gather_near(index, out):
    near = cuda.shared.array(0, int32)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = near[i]


@kernel("void(int32[::1], int64[::1])")
def gather_near_wide(index, out):
    near = cuda.shared.array(0, int64)
    i = index[cuda.threadIdx.x]
    if i >= 0:
        out[cuda.threadIdx.x] = near[i]


@kernel("void(int32[::1], int64[::1])")
def gather_near_bytes(index, out):
    near = cuda.shared.array(0, uint8)
    out[cuda.threadIdx.x] = near[index[cuda.threadIdx.x]]


def conflicts(kernel, index):
    found = measures(kernel, np.asarray(index, np.int32), np.zeros(32, np.int64), shared=8 * 1100)
    assert found["shared_loads"] == 1
    return found["shared_load_conflicts"]


@pytest.mark.parametrize(
    "index, expected",
    [
        (LANE, 0),
        (0 * LANE, 0),  # broadcast
        (LANE[::-1], 0),
        (2 * LANE, 1),  # 2-way
        (4 * LANE, 3),
        (32 * LANE, 31),  # 32-way
        (33 * LANE, 0),  # a row of 33 words: the cure
        (np.where(LANE < 16, 32 * LANE, -1), 15),
        (LANE % 2 * 32, 1),  # two words of one bank, each for 16 lanes
    ],
)
def test_words_of_one_bank_conflict(index, expected):
    assert conflicts(gather_near, index) == expected


@pytest.mark.parametrize(
    "index, expected",
    [
        (LANE, 0),  # two halves of a warp, each without a conflict
        (16 * LANE, 30),  # each half 16 deep
        (LANE % 16, 0),
        (LANE // 2 * 16, 15),  # pairs read one word: served at once, 16 deep
        (np.where(LANE % 2, LANE, -1), 1),  # so are lanes whose neighbours read nothing
    ],
)
def test_wide_elements_are_served_to_half_a_warp_at_a_time(index, expected):
    assert conflicts(gather_near_wide, index) == expected


def test_bytes_of_one_word_are_no_conflict():
    assert conflicts(gather_near_bytes, LANE) == 0
    assert conflicts(gather_near_bytes, 128 * (LANE % 8) + LANE // 8) == 7


def test_static_shared_arrays_do_not_overlap():
    events = trace_launch(swap, 1, 4, np.zeros(4, np.int32)).events
    where = set(events.address[events.shared[events.request]].tolist())
    assert len(where) == 8 and max(where) >= 128


@kernel("void(int32[::1])")
def swap(out):
    one = cuda.shared.array(4, int32)
    two = cuda.shared.array(4, int32)
    thread = cuda.threadIdx.x
    one[thread], two[thread] = thread, -int32(thread)
    cuda.syncthreads()
    out[thread] = one[3 - thread] + two[thread]


# ------------------------------------------------------------------------------------------------------------- atomics


@kernel("void(int32[::1], int32[::1])")
def scatter(values, index):
    cuda.atomic.add(values, index[cuda.threadIdx.x], 5)


@kernel("void(int32[::1])")
def scatter_near(index):
    near = cuda.shared.array(0, int32)
    cuda.atomic.max(near, index[cuda.threadIdx.x], 5)


@pytest.mark.parametrize(
    "index, sectors, meeting",
    [
        (LANE, 4, 0),
        (8 * LANE, 32, 0),
        (0 * LANE, 32, 31),  # one after the other
        (LANE // 2, 4, 16),  # two sectors, twice
        (np.where(LANE < 30, LANE, 0), 6, 2),  # three lanes at the first word
    ],
)
def test_atomics_on_one_element_take_more_sectors(index, sectors, meeting):
    values = np.zeros(1024, np.int32)
    found = measures(scatter, values, np.asarray(index, np.int32))
    assert (found["atomics"], found["atomic_requests"]) == (32, 1)
    assert (found["atomic_sectors"], found["atomics_meeting"]) == (sectors, meeting)
    assert np.array_equal(values, 5 * np.bincount(index, minlength=1024)), "what a kernel does is not changed"


@pytest.mark.parametrize("index, expected", [(LANE, 0), (0 * LANE, 31), (32 * LANE, 31), (LANE // 4, 3)])
def test_shared_atomics_on_one_word_conflict(index, expected):
    found = measures(scatter_near, np.asarray(index, np.int32), shared=4096)
    assert (found["shared_atomics"], found["shared_atomic_conflicts"]) == (1, expected)


# --------------------------------------------------------------------------------------------------------- divergence


@kernel("void(int32[::1])")
def rounds_by_lane(out):
    k = 0
    while k < cuda.threadIdx.x:
        k += 1
    out[cuda.threadIdx.x] = k


def test_a_loop_goes_on_with_the_lanes_that_have_another_round():
    found = by_line(rounds_by_lane, np.zeros(32, np.int32))
    assert found["while k < cuda.threadIdx.x:"] == (32, 16.5)  # 32 lanes, 31, ... and in the last test one
    assert found["k += 1"] == (31, 16)  # lane l takes part l times
    assert found["out[cuda.threadIdx.x] = k"] == (1, 32), "all go on together behind it"


@kernel("void(int32[::1])")
def two_ways(out):
    if cuda.threadIdx.x < 10:
        x = 1
    else:
        x = 2
    out[cuda.threadIdx.x] = x


def test_branches_run_one_after_the_other():
    found = by_line(two_ways, np.zeros(32, np.int32))
    assert (found["x = 1"], found["x = 2"], found["out[cuda.threadIdx.x] = x"]) == ((1, 10), (1, 22), (1, 32))


@cuda.jit(device=True)
def first_factor(n):
    for factor in range(2, n):
        if n % factor == 0:
            return factor
    return n


@kernel("void(int32[::1], int32[::1])")
def factors(out, again):
    out[cuda.threadIdx.x] = first_factor(cuda.threadIdx.x + 8)
    again[cuda.threadIdx.x] = first_factor(9)


def test_lanes_that_return_early_wait_after_the_call():
    found = by_line(factors, np.zeros(8, np.int32), np.zeros(8, np.int32), threads=8)
    # of 8..15 the even four and, later, 9, 12 and 15 are done by a factor up to 3; 11 and 13 try every number
    assert found["if n % factor == 0:"] == (11 + 2, (8 + 4 + 2 + 2 + 2 + 2 + 2 + 2 + 2 + 1 + 1 + 8 + 8) / 13)
    assert found["return factor"] == (2 + 1, (4 + 2 + 8) / 3)
    assert found["again[cuda.threadIdx.x] = first_factor(9)"] == (1, 8)


def test_each_warp_has_its_own_steps():
    assert by_line(two_ways, np.zeros(80, np.int32), threads=80)["out[cuda.threadIdx.x] = x"] == (3, 80 / 3)


@kernel("void(int32[::1])")
def skips_and_stops(out):
    count = 0
    for k in range(10):
        if k == cuda.threadIdx.x:
            break
        if k % 2:
            continue
        count += 1
    out[cuda.threadIdx.x] = count


def test_break_and_continue():
    out = np.zeros(4, np.int32)
    found = by_line(skips_and_stops, out, threads=4)
    assert out.tolist() == [0, 1, 1, 2]
    assert found["if k % 2:"] == (3, 2)  # rounds 0, 1 and 2 with 3, 2 and 1 lanes
    assert found["count += 1"] == (2, 2)
    assert found["out[cuda.threadIdx.x] = count"] == (1, 4)


def test_nested_calls_and_barriers():
    values = np.arange(100, dtype=np.int64)
    total = np.zeros(1, np.int64)
    launch = trace_launch(sum_up, 2, 64, values, total, shared=64 * BYTES_PER_THREAD)
    assert total[0] == values.sum()
    found = launch.totals()
    assert found["barriers"] == 2 * 2 * (2 + 6)  # blocks, warps, two and one for each halving
    assert (found["atomics"], found["loads"]) == (2, 100)
    assert launch.balance("thread", "loads").tolist() == [1] * 100 + [0] * 28
    assert launch.balance("warp", "loads").tolist() == [32, 32, 32, 4]
    assert launch.balance("block", "atomics").tolist() == [1, 1]
    steps = launch.balance("warp", "steps")
    assert steps.sum() == launch.balance("block", "steps").sum() == found["steps"]
    assert launch.balance("thread", "steps").sum() == found["lane_steps"]


@kernel("void(int64[::1])")
def does_nothing(values):
    pass


def test_a_launch_that_does_nothing_takes_no_time():
    launch = trace_launch(does_nothing, 3, 64, np.zeros(1, np.int64))
    assert launch.totals()["steps"] == 0 <= launch.estimate.ms < 1e-4


@kernel("void(int64[::1], int64[::1])")
def sum_up(values, total):
    thread, value = cuda.grid(1), int64(0)
    if thread < values.size:
        value = values[thread]
    add_block_to(total, value)


# ----------------------------------------------------------------------------------------------------------- registers


@kernel("void(int32[::1], int32[::1])")
def reads_twice(values, out):
    t = cuda.threadIdx.x
    out[t] = values[t] + values[t]


@kernel("void(int32[::1], int32[::1])")
def writes_between(values, out):
    t = cuda.threadIdx.x
    x = values[t]
    out[t] = x
    out[t] = x + values[t]


@kernel("void(int32[::1], int32[::1])")
def writes_nearby(values, out):
    near = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    near[t] = values[t]
    out[t] = values[t]


@kernel("void(int32[::1], int32[::1])")
def meets_between(values, out):
    t = cuda.threadIdx.x
    x = values[t]
    cuda.syncwarp()
    out[t] = x + values[t]


@kernel("void(int32[::1], int32[::1])")
def reads_on_one_way(values, out):
    t = cuda.threadIdx.x
    x = 0
    if t > 3:
        x = values[t]
    out[t] = x + values[t]


@kernel("void(int32[::1], int32[::1])")
def reads_in_a_test(values, out):
    t = cuda.threadIdx.x
    if t >= 0 and values[t] >= 0:
        out[t] = values[t]


@kernel("void(int32[::1], int32[::1])")
def reads_in_each_round(values, out):
    t = cuda.threadIdx.x
    x = 0
    for _ in range(2):
        x += values[t]
    out[t] = x


@kernel("void(int32[::1], int32[::1])")
def changes_in_place(values, out):
    out[cuda.threadIdx.x] += values[cuda.threadIdx.x]


@pytest.mark.parametrize(
    "kernel, loads",
    [
        (reads_twice, 1),
        (writes_between, 2),  # what was written may be what is read
        (writes_nearby, 1),  # but not in shared memory
        (meets_between, 2),
        (reads_on_one_way, 2),
        (reads_in_a_test, 1),
        (reads_in_each_round, 2),
        (changes_in_place, 2),
    ],
)
def test_a_value_in_a_register_is_not_read_again(kernel, loads):
    found = measures(kernel, np.ones(32, np.int32), np.zeros(32, np.int32), shared=128)
    assert found["load_requests"] == loads


# ------------------------------------------------------------------------------------------------------------- turns


@kernel("void(int64[::1], int32[::1], int64)")
def takes_tasks(queue, done_by, tasks):
    near = cuda.shared.array(1, int32)
    task = 0
    while task < tasks:
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            near[0] = cuda.atomic.add(queue, 0, 1)
        cuda.syncthreads()
        task = near[0]
        if task < tasks and cuda.threadIdx.x == 0:
            done_by[task] = cuda.blockIdx.x
            for _ in range(task % 3 * 10):  # some tasks take longer
                task += 0


def test_blocks_share_the_tasks_of_a_queue_evenly():
    done_by = np.zeros(400, np.int32)
    launch = trace_launch(takes_tasks, 4, 2, np.zeros(1, np.int64), done_by, 400)
    assert np.bincount(done_by).min() > 90
    steps = launch.balance("block", "steps")
    assert steps.max() < 1.02 * steps.min()


def test_threads_that_wait_forever_raise():
    with pytest.raises(RuntimeError, match="never reach"):
        trace_launch(waits_in_vain, 1, 3)


@kernel("void()")
def waits_in_vain():
    if cuda.threadIdx.x == 0:
        cuda.syncthreads()
    else:
        cuda.syncwarp()


def test_tracing_does_not_change_the_simulator():
    """Instrumented functions are copies: the simulator runs the others."""
    out, traced = np.zeros(32, np.int32), np.zeros(32, np.int32)
    trace_launch(rounds_by_lane, 1, 32, traced)
    with runtime.using("sim"):
        rounds_by_lane.launch(1, 32, out)
    assert np.array_equal(out, traced) and np.array_equal(out, LANE)
