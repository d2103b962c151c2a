"""Estimates of launches: which tasks are sampled, where sectors are found, and how the result agrees with records."""

import ast
import itertools
from dataclasses import replace

import numpy as np
import pytest
from sampling import share

import tcgpu
from helpers import measured
from tcgpu import records
from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.errors import GraphError, MethodError
from tcgpu.insight import caches, estimates, gpus, recorder, sampling, task_loops, trace_launch
from tcgpu.insight.demand import Steps
from tcgpu.kernels import Step, simulated
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
STEPS = 60_000  # of lanes: a fraction of a second
H200 = gpus.GPUS["NVIDIA H200"]
# method -> how many tasks there are on a graph of n vertices and m edges, with its default knobs
TASKS = {
    "naive": lambda n, m: -(-m // 512),
    "column_block": lambda n, m: -(-n // 27),
    "bitmap": lambda n, m: n,
    "bitmap_thread": lambda n, m: -(-n // 128),
    "bitmap_warp": lambda n, m: -(-n // 4),
    "merge_path": lambda n, m: -(-m * 32 // 128),
    "thread_search": lambda n, m: -(-m // 128),
    "warp_search": lambda n, m: -(-m // 64),
    "adaptive": lambda n, m: -(-m // 256),
}


def launched(method, graph, order=None, **knobs):
    """The steps of a method's plan that are launches, their arrays and the graph in the method's order."""
    with runtime.using("sim"), runtime.as_device(H200), simulated.limited(float("inf")):
        prepared = METHODS[method].prepare(graph, order)
        plan = METHODS[method].plan(prepared, **knobs)
        run = estimates.set_up(plan, prepared)
    return plan.steps, run.arrays, prepared


@pytest.fixture(scope="module")
def skewed():
    return tcgpu.generate.rmat(9, 8, seed=3)


@pytest.mark.parametrize("method", TASKS)
def test_the_tasks_of_a_launch_are_counted(method, skewed):
    [step], arrays, _ = launched(method, skewed, "natural")
    if method == "merge_path":  # it compares its threads with the size of the grid, which has a block for every task
        assert step.blocks == TASKS[method](skewed.n, skewed.m)
    else:
        assert sampling.Units(step, arrays, skewed, STEPS).tasks == TASKS[method](skewed.n, skewed.m)


def test_tasks_are_taken_off_a_queue_by_blocks_or_by_warps():
    graph = tcgpu.generate.rmat(5, 8, seed=1)
    [by_block], arrays, prepared = launched("levels", graph)
    found = sampling.sample(by_block, arrays, prepared, lane_steps=STEPS)
    assert (found.units, found.warps, found.queued) == (arrays["tasks"].shape[0], 1, True)
    steps, arrays, prepared = launched("adaptive", tcgpu.generate.rmat(6, 8, seed=1), "degree", heavy=4)
    [by_warp] = (step for step in steps if step.kernel.__name__ == "hub_kernel")
    steps[0].run(arrays)
    found = sampling.sample(by_warp, arrays, prepared, lane_steps=STEPS)
    heavy = int(arrays["list_size"][0])
    assert found.queued and found.warps == 4 and 0 <= found.units - heavy < found.warps


@kernel("void(int64[::1], int64[::1])")
def one_task_a_thread(values, total):
    if cuda.grid(1) < values.size:
        cuda.atomic.add(total, 0, values[cuda.grid(1)])


def test_without_a_task_loop_blocks_are_the_units(skewed):
    arrays = {"values": np.arange(1000), "total": np.zeros(1, np.int64)}
    step = Step(one_task_a_thread, 16, 64, ("values", "total"))
    found = sampling.sample(step, arrays, skewed, lane_steps=STEPS)
    assert (found.units, found.warps, found.has_tasks) == (16, 1, False)
    assert sorted(found.chosen) == list(range(16)) and (found.expected == 1).all()


@kernel("void(uint16[::1], int32[::1], int64[::1])")
def look_up(keys, values, total):
    for k in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        cuda.atomic.add(total, 0, values[keys[k]])


def empty(total):
    pass


@pytest.mark.parametrize("tasks", [None, ("columns", "merge")])
def test_a_kernel_may_do_nothing(tasks, skewed):
    mine = tcgpu.method(threads=32, blocks=8, tasks=tasks)(empty)
    [found] = tcgpu.estimate(skewed, mine).kernels
    assert (found.blocks, found.sampled) == (8, 8)
    assert 0 <= found.bounds.blocks * 1e-6 <= found.ms < 0.001


def test_an_index_may_have_few_bits_in_an_array_that_is_as_long_as_they_count(skewed):
    keys, values = np.array([0, 1, 65535], np.uint16), np.zeros(1 << 16, np.int32)
    arrays = {"keys": keys, "values": values, "total": np.zeros(1, np.int64)}
    events = sampling.sample(Step(look_up, 1, 32, tuple(arrays)), arrays, skewed, lane_steps=STEPS).events
    [site] = [site for site in np.unique(events.site) if "keys[k]]" in events.sites[site].expression]
    assert site not in events.signed


@pytest.mark.parametrize("method", share(["naive", "column_block", "warp_search"], "all units"))
def test_all_units_together_do_what_the_launch_does(method, skewed):
    """A sample of every unit takes as many wavefronts of the L1 cache as the launch, traced whole."""
    steps, arrays, graph = launched(method, skewed)
    step = steps[-1]
    sample = sampling.sample(step, arrays, graph, lane_steps=10**9)
    assert sorted(sample.chosen) == list(range(sample.units)) and (sample.expected == 1).all()
    demand = Steps(sample).demand(H200, 1, step.shared, 0)
    steps, arrays, _ = launched(method, skewed)  # anew: a launch changes its arrays
    args = step.kernel.typed([arrays[arg] if isinstance(arg, str) else arg for arg in step.args])
    events = trace_launch(step.kernel, step.blocks, step.threads, *args, shared=step.shared).events
    values, beside = estimates.spread(sample, demand.l1, 0)
    whole = caches.wavefronts_of(events)[events.of_kind("load") | events.of_kind("store")].sum()
    assert values.sum() + beside * step.blocks == pytest.approx(whole, rel=0.03)


def test_a_sample_is_as_large_as_asked_for_and_the_same_again():
    graph = tcgpu.generate.by_nonzeros(200_000, 6)
    steps, arrays, prepared = launched("thread_search", graph)
    one, other = (sampling.sample(steps[0], arrays, prepared, lane_steps=STEPS) for _ in range(2))
    assert STEPS / 2 < one.events.active.sum() < 4 * STEPS and one.chosen.size < one.units / 20
    assert np.array_equal(one.chosen, other.chosen) and np.array_equal(one.events.address, other.events.address)


@pytest.mark.parametrize("method, scale", share([("thread_search", 10), ("bitmap_warp", 9)], "stands", of=2))
def test_a_sample_stands_for_all(method, scale):
    """From a few of the units, sectors are estimated within a fifth of those of all units."""
    graph = tcgpu.generate.rmat(scale, 8, seed=5)
    steps, arrays, prepared = launched(method, graph)
    found = []
    for size in (4 * STEPS, 10**9):
        sample = sampling.sample(steps[0], arrays, prepared, lane_steps=size)
        demand = Steps(sample).demand(H200, 1, steps[0].shared, 0)
        values, beside = estimates.spread(sample, demand.l1, 0)
        found.append((sample.chosen.size, values.sum() + beside * steps[0].blocks))
    (few, estimate), (many, whole) = found
    assert few < many / 3 and estimate == pytest.approx(whole, rel=0.2)


@pytest.mark.parametrize("method", share(["bitmap", "thread_search"], "rounds", of=2))
def test_rounds_that_are_left_out_change_no_sums(method, monkeypatch):
    """Of the largest tasks of a clique. Sectors are right on average over samples, times of blocks are close."""
    graph, whole = tcgpu.generate.clique(72), None
    ratios = []
    for seed, (uncut, lane_steps) in enumerate([(1 << 40, 10**9)] + 8 * [(5_000, 20_000)]):
        monkeypatch.setattr(sampling, "UNCUT", uncut)
        steps, arrays, prepared = launched(method, graph)
        tasks = METHODS[method].tasks
        sample = sampling.sample(steps[0], arrays, prepared, lane_steps=lane_steps, tasks=tasks, seed=seed)
        demand = Steps(sample).demand(H200, 1, steps[0].shared, 0)
        sums = [estimates.spread(sample, values)[0].sum() for values in (demand.l1, demand.longest(demand.times(H200)))]
        if whole is None:
            whole = np.array(sums)
            assert (sample.scale == 1).all() and (sample.weight == 1).all() and sample.chosen.size == sample.units
        else:
            ratios.append(sums / whole)
            assert (sample.weight > 2).any() and sample.chosen.size < sample.units / 3
    sectors, times = np.transpose(ratios)
    assert sectors.mean() == pytest.approx(1, abs=0.1) and abs(sectors - 1).max() < 0.3
    assert 1 / 1.7 < times.min() and times.max() < 1.7


@pytest.mark.parametrize("full, burst", [(16, 1), (1, 1), (16, 8), (1, 8)])
@pytest.mark.parametrize("rounds", [7, 33, 200])
def test_rounds_that_are_run_stand_for_all(full, burst, rounds):
    """On average over seeds; few of many are run, and those of a burst follow each other."""
    sums, most = [], 0
    for seed in range(500):
        bursts, number, run = recorder.Bursts(full, burst, seed), 0, []
        while number < rounds:
            run.append(number)
            number = bursts.after(number)
        sums.append(sum(map(bursts.weight, run)))
        most = max(most, len(run))
        assert run[: max(full, burst)] == list(range(min(rounds, max(full, burst))))
        assert all(k - 1 in run for k in run if k % burst)
    assert np.mean(sums) == pytest.approx(rounds, rel=0.1) and (most < rounds / 2 or rounds < 200)


@pytest.mark.parametrize(
    "loop, step",
    [
        ("while p < end:\n    f(p)\n    p += threads", "p += threads"),
        (
            "while q < end and end - q > three:\n    if a[q] > last:\n        break\n    q += 3 + lanes",
            "q += 3 + lanes",
        ),
        ("while p < end and q < q_end:\n    p += 1\n    q += a[q]", None),  # a merge
        ("while low < high:\n    low = (low + high) // 2", None),
        ("while k < n:\n    k += step\n    step += step", None),
        ("while p < end:\n    if p:\n        p += 1", None),
        ("for k in range(9):\n    f(k)", None),
    ],
)
def test_loops_that_count(loop, step):
    """All that decides whether there is another round changes by the same number in each."""
    found = task_loops.counting_statement(ast.parse(loop).body[0])
    assert (found and ast.unparse(found)) == step


def test_loops_that_fill_memory_run_whole():
    """Their rounds write what others read: `column_block` copies a tile, which it merges with other columns."""
    tcgpu.trace(tcgpu.generate.clique(9), "column_block")
    bursts = {
        site.function.text(site.line): site.burst
        for site in recorder.SITES.values()
        if site.kind == "loop" and site.function.name == "column_block_kernel"
    }
    assert bursts["while p < tile_end:"] == 0 < bursts["while e < tile_end:"]


def test_loads_that_need_nothing_of_each_other_wait_together():
    """In `hits`, four rows are loaded, then their bits looked up; of these, the first calls wait."""
    long_columns = [(0, 1), *((j, i) for j in (0, 1) for i in range(2, 302))]
    launch = tcgpu.trace(long_columns, "bitmap_block_shared").launches[-1]
    in_flight = {
        (site.kind, site.function.text(site.line))
        for site in launch.events.sites.values()
        if site.in_flight and site.function.name == "hits"
    }
    assert in_flight == {
        ("step", "c, d = row_idx[q + step + step], row_idx[q + three]"),
        ("step", "c, d = bit_of(bitmap, c, folded), bit_of(bitmap, d, folded)"),
    }
    steps = Steps(sampling.whole(launch.events))
    waits = steps.demand(H200, 1, launch.shared, 0).waits
    assert (waits[launch.events.in_flight == 1, :3] == 0).all() and (waits[launch.events.in_flight == 0, 0] > 0).any()


@pytest.mark.parametrize("items, units, warps, each", [(60, 4, 4, 32), (9, 12, 4, 1), (60, 3, 1, 20)])
def test_a_warp_takes_an_item_or_one_a_lane(items, units, warps, each):
    assert np.diff(sampling.shares(items, units, warps)).tolist() == [
        min(each, max(0, items - unit * each)) for unit in range(units)
    ]


def test_what_a_warp_does_beside_its_task_is_not_counted_to_the_task():
    """The first warp of a block adds the block's count to the total; its tasks take as long as those of the others."""
    steps, arrays, graph = launched("bitmap_warp", tcgpu.generate.mesh(21, 21))
    sample = sampling.sample(steps[0], arrays, graph, lane_steps=10**9)
    demand = Steps(sample).demand(H200, 1, steps[0].shared, 0)
    times, _ = estimates.spread(sample, demand.longest(demand.times(H200)), 0)
    first, second, third, fourth = (times[warp :: sample.warps].mean() for warp in range(4))
    assert first == pytest.approx(np.mean([second, third, fourth]), rel=0.1)


@pytest.mark.parametrize("lanes", sampling.LANES)
def test_the_slowest_lane_has_the_most_work_of_each_turn(lanes):
    graph = tcgpu.generate.rmat(7, 8, seed=3)
    units, columns = 5, -(-graph.n // 5)
    work, ends = np.random.default_rng(2).integers(1, 99, graph.m), np.minimum(np.arange(units + 1) * columns, graph.n)
    found = sampling.of_turns(graph, ends, units, work, lanes)
    for unit, (first, last) in enumerate(itertools.pairwise(ends)):
        parts = [work[graph.col_ptr[j] : graph.col_ptr[j + 1]] for j in range(first, last)]
        if lanes == "columns":
            turns = list(itertools.zip_longest(*parts, fillvalue=0))
        else:
            together = np.concatenate(parts)
            turns = [together[k : k + 32] for k in range(0, together.size, 32)]
        assert found[unit].tolist() == [1, len(turns), sum(map(max, turns))]


@kernel("void(int32[::1], uint32, int32[::1])")
def read_apart(values, stride, total):
    cuda.atomic.add(total, 0, values[cuda.threadIdx.x * stride])


class TestCaches:
    @pytest.mark.parametrize("stride, cycles", [(1, 1), (2, 2), (8, 8), (16, 16), (32, 32), (24, 8), (33, 8), (40, 8)])
    def test_words_of_a_bank_and_lines_take_wavefronts(self, stride, cycles):
        """About as many as an H100 takes cycles for such a load of a warp from its L1 cache."""
        args = read_apart.typed([np.zeros(32 * stride, np.int32), np.uint32(stride), np.zeros(1, np.int32)])
        events = trace_launch(read_apart, 1, 32, *args).events
        assert caches.wavefronts_of(events)[events.of_kind("load")].tolist() == [cycles]

    def test_warps_that_have_come_apart_do_not_wait_for_what_another_one_has_read(self):
        steps, arrays, graph = launched("naive", tcgpu.generate.by_nonzeros(3000, 8))
        sample = sampling.sample(steps[0], arrays, graph, lane_steps=STEPS)
        found = Steps(sample)
        first, later = (found.demand(H200, 2, 0, 0, 1.0, rounds) for rounds in (1, 64))
        assert later.waits[:, 1].sum() < 0.9 * first.waits[:, 1].sum() and np.array_equal(first.l2, later.l2)

    @pytest.mark.parametrize("gpu, blocks, shared, kb", [
        ("NVIDIA H200", 16, 0, 16), ("NVIDIA H200", 16, 1024, 32), ("NVIDIA H200", 16, 8192, 164),
        ("Tesla T4", 8, 0, 32), ("Tesla T4", 8, 4096, 40),
    ])  # fmt: skip
    def test_shared_memory_of_a_multiprocessor_is_as_large_as_its_blocks_need(self, gpu, blocks, shared, kb):
        assert gpus.GPUS[gpu].in_shared(blocks, shared) == kb << 10

    def test_a_sector_is_found_in_a_cache_that_is_large_enough(self, skewed):
        steps, arrays, graph = launched("naive", skewed)
        sectors = Steps(sampling.sample(steps[0], arrays, graph, lane_steps=STEPS))
        large = sectors.demand(replace(H200, l1_bytes=1 << 30), 1, 0, 0)
        small = sectors.demand(replace(H200, l1_bytes=0), 4, 0, 0)
        read = sectors.per_block((sectors.load | sectors.store) * sectors.sample.events.sectors)
        assert 0 < large.l2.sum() < small.l2.sum() <= read.sum() * 1.2
        assert np.array_equal(large.l1, small.l1)

    @pytest.mark.parametrize("size, least, most", [(0.5, 1, 1), (0.95, 1, 1), (1.02, 0.4, 0.7), (1.2, 0, 0), (9, 0, 0)])
    def test_a_launch_finds_what_the_last_one_left(self, size, least, most):
        assert least <= caches.left_by_last_launch(size) <= most

    def test_a_line_has_a_place_however_few_of_its_sectors_are_read(self):
        """Of five rows, 0 and 1 are on one line: rows that follow each other have fewer lines than rows."""
        since = caches.since_last(np.array([0, 1, 8, 0, 12]) // caches.LINE)
        assert since.tolist() == [0, 1, 0, 2, 0]
        assert caches.touched_in(since, np.ones(5)).tolist() == pytest.approx([0, 1, 1.8, 2.4, 3, 3.6])

    def test_which_sectors_are_loaded_with_the_other_of_two(self):
        sector, block = np.array([4, 5, 4, 5, 7]), np.array([0, 0, 1, 2, 0])
        assert caches.beside(sector, block).tolist() == [True, True, False, False, False]

    def test_what_does_not_fit_l2_is_loaded_again(self, skewed):
        steps, arrays, graph = launched("naive", skewed)
        found = Steps(sampling.sample(steps[0], arrays, graph, lane_steps=STEPS))
        small, large = (replace(H200, l1_bytes=0, l2_bytes=size) for size in (1 << 10, 1 << 30))
        assert found.demand(large, 4, 0, 1 << 40).memory.sum() < found.demand(small, 4, 0, 1 << 40).memory.sum() / 2

    def test_few_warps_that_run_find_more_in_l1(self, skewed):
        steps, arrays, graph = launched("naive", skewed)
        found = Steps(sampling.sample(steps[0], arrays, graph, lane_steps=STEPS))
        gpu = replace(H200, l1_bytes=40 << 10)
        all_running, few = (found.demand(gpu, 16, 0, 0, share).l2.sum() for share in (1, 0.01))
        assert 0 < few < all_running

    @pytest.mark.parametrize(
        "first, share", [([1] * 8, 1), ([1, 1, 1, 1, 0, 0, 0, 0], 1 / 16), ([1] * 4 + [1, 0] * 2, 1.5**4 / 16)]
    )
    def test_a_task_that_is_cut_would_touch_fewer_new_sectors_later(self, first, share, skewed):
        """A task of which a sixteenth was traced: all of its sectors are new, none after a half, fewer after a half."""
        steps, arrays, graph = launched("naive", skewed)
        sample = sampling.sample(steps[0], arrays, graph, lane_steps=STEPS)
        sample = replace(sample, chosen=np.arange(1), scale=np.array([16.0]))
        fields = dict.fromkeys(caches.Sectors._fields, np.zeros(8, int)) | {"fresh": np.array(first)}
        assert caches.share_of_first(caches.Sectors(**fields), sample) == pytest.approx([share], rel=0.01)

    @pytest.mark.parametrize(
        "visits, weights, share",
        [
            ([1, 2, 3, 4], [1, 1, 1, 1], 1),  # nothing was left out
            ([1, 2, 3, 4], [1, 1, 8, 8], 1),  # each visit finds another sector: so do those that were left out
            ([1, 2, 1, 2], [1, 1, 8, 8], 1),  # and none of the sectors that are touched first stands for others
            ([1, 1, 2, 2], [8, 8, 8, 8], 1 / 8),  # each was visited again: there are no others
            ([1, 2, 3, 3], [8, 8, 8, 8], 3 * 8 ** (2 / 3) / 24),
            ([1, 2, 3, 4], [64, 64, 64, 64], 100 / 256),  # no more than the array has
        ],
    )
    def test_rounds_that_are_left_out_touch_few_new_sectors(self, visits, weights, share):
        sector = np.array(visits)
        first = np.isin(np.arange(4), np.unique(sector, return_index=True)[1])
        found = caches.share_of_new(sector, np.arange(4), np.array(weights, float), first, {0: 32 * 100})
        assert found == pytest.approx([share] * 4, rel=0.01)

    def test_sectors_that_other_blocks_touch(self):
        """Of every fourth sector of eight, which two blocks traced: each stands for its neighbours, too."""
        block, sector = np.repeat([0, 1, 2], 2), np.array([0, 4, 1, 5, 99, 98])
        first, ones = np.ones(6, bool), np.ones(6)
        assert caches.other_blocks(sector, block, ones, first, ones).tolist() == [0] * 6
        assert caches.other_blocks(sector, block, 4 * ones, first, 4 * ones).tolist() == [1, 1, 1, 1, 0, 0]

    def test_what_does_not_fit_l2_comes_from_memory(self, skewed):
        steps, arrays, graph = launched("naive", skewed)
        found = Steps(sampling.sample(steps[0], arrays, graph, lane_steps=STEPS))
        fits, too_large = (found.demand(H200, 1, 0, size).memory.sum() for size in (1 << 20, 1 << 30))
        assert fits == 0 < too_large


class TestEstimate:
    def test_prints_a_row_per_method(self, skewed):
        found = tcgpu.estimate(skewed, ["naive", "bitmap"], lane_steps=STEPS, threads=64)
        assert [row["method"] for row in found.rows()] == ["naive", "bitmap"]
        assert [kernel.threads for estimate in found for kernel in estimate.kernels] == [64, 64]
        assert "estimated ms" in repr(found) and "this launch" in repr(found[0]) and "naive" in found._repr_html_()

    def test_says_so_if_no_gpu_of_the_generation_was_measured(self, skewed):
        measured, other = (
            tcgpu.estimate(skewed, ["naive"], gpu=gpu, lane_steps=STEPS) for gpu in ("NVIDIA H200", "Tesla T4")
        )
        assert measured.cautions() == [] and "Unverified" not in repr(measured[0])
        assert "Turing" in repr(other) and "Turing" in repr(other[0]) and "Turing" in other._repr_html_()

    def test_a_smaller_gpu_takes_longer(self):
        graph = tcgpu.generate.by_nonzeros(100_000, 8)
        fast, slow = (tcgpu.estimate(graph, "naive", gpu=gpu, lane_steps=STEPS) for gpu in ("NVIDIA H200", "Tesla T4"))
        assert slow.ms > 2 * fast.ms

    def test_bounds_name_what_limits_a_launch(self, skewed):
        [kernel] = tcgpu.estimate(skewed, "naive", lane_steps=STEPS).kernels
        assert kernel.bounds.limit == "blocks"  # so small a launch waits
        assert kernel.bounds.joined >= kernel.bounds.blocks > kernel.bounds.issue > 0

    def test_a_copy_on_a_full_gpu_takes_less_than_a_launch(self, skewed):
        alone, full = (tcgpu.estimate(skewed, "naive", fill=fill, lane_steps=STEPS).ms for fill in (False, True))
        assert full < alone / 10

    def test_refuses_what_it_cannot_estimate(self, skewed):
        with pytest.raises(GraphError, match="no GPU 'H2O'"):
            tcgpu.estimate(skewed, "naive", gpu="H2O")
        with pytest.raises(MethodError, match="no knob 'lanes'"):
            tcgpu.estimate(skewed, "naive", lanes=4)

    def test_refuses_words_for_tasks_that_it_does_not_know(self, skewed):
        @tcgpu.method(tasks=("columns", "merg"))
        def nothing_of_columns(col_ptr, total):
            for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
                cuda.atomic.add(total, 0, col_ptr[j] - col_ptr[j])

        with pytest.raises(MethodError, match=r"'merg' \(did you mean 'merge'"):
            tcgpu.estimate(skewed, nothing_of_columns, lane_steps=STEPS)

    @pytest.mark.parametrize(
        "graph", [tcgpu.generate.empty(0), tcgpu.generate.empty(9), tcgpu.generate.path(2)], ids=str
    )
    def test_of_next_to_nothing(self, graph):
        for found in tcgpu.estimate(graph, [*TASKS, "bitmap_block_global", "levels"], lane_steps=STEPS):
            assert 0.001 < found.ms < 0.1

    def test_of_a_launch_larger_than_the_simulator_could_run(self):
        """Ten million edges, in a few seconds."""
        graph = tcgpu.generate.by_nonzeros(10_000_000, 4)
        found = tcgpu.estimate(graph, "naive", lane_steps=STEPS)
        assert found.kernels[0].units > 300_000 > 1000 * found.kernels[0].sampled / 10 and 0.05 < found.ms < 0.3


@pytest.fixture(scope="module")
def scores():
    return [row for row in records.reference("estimates") if row["kernel_ms"] != ""]


class TestRecordedScores:
    """The record of `benchmarks/estimates.py score`: what the README says of it."""

    def test_there_are_both_kinds_of_gpus_and_graphs(self, scores):
        assert {row["estimated_for"] for row in scores} == {"NVIDIA H200", "NVIDIA H100"}
        assert {str(row["fitted"]) for row in scores} == {"True", "False"}

    @pytest.mark.parametrize(
        "chosen, launches, median, mean, of_long",
        [("first", 300, 0.11, 0.14, 0.25), ("later", 130, 0.105, 0.16, 0.25), ("last", 60, 0.11, 0.15, 0.25)],
    )
    def test_how_far_off_those_of_other_graphs_are(self, scores, chosen, launches, median, mean, of_long):
        """Also those of graphs that were chosen later, and of the last, scored once. Long ones take 1 to 100 ms."""
        own = [row for row in scores if (str(row["fitted"]), row["chosen"]) == ("False", chosen)]
        off = np.array([abs(row["estimated_ms"] / row["kernel_ms"] - 1) for row in own])
        long = np.array([1 <= row["kernel_ms"] <= 100 for row in own])
        assert len(off) >= launches and long.sum() > 10
        assert np.median(off) < median and np.mean(off) < mean and np.mean(off[long]) < of_long

    def test_methods_are_ranked_right(self, scores):
        pairs = [
            low["estimated_ms"] < high["estimated_ms"]
            for low, high in itertools.permutations(scores, 2)
            if (low["graph"], low["estimated_for"]) == (high["graph"], high["estimated_for"])
            and high["kernel_ms"] >= 1.2 * low["kernel_ms"]
        ]
        assert len(pairs) > 2000 and np.mean(pairs) > 0.95

    @pytest.mark.parametrize("key", ["method", "graph"])
    def test_the_page_on_checks_has_them_by_method_and_by_graph(self, scores, root, key):
        """Of the graphs that nothing was fitted to, on an H200; pairs are of methods on a graph."""
        own = [row for row in scores if (row["estimated_for"], str(row["fitted"])) == ("NVIDIA H200", "False")]
        page = (root / "docs" / "checks.md").read_text(encoding="utf-8")
        for name in dict.fromkeys(row[key] for row in own):
            rows = [row for row in own if row[key] == name]
            ratios = np.array([row["estimated_ms"] / row["kernel_ms"] for row in rows])
            off = 100 * abs(ratios - 1)
            line = f"| {name} | {off.size} | {off.mean():.1f} % | {np.median(off):.1f} % "
            line += f"| {ratios.min():.2f} to {ratios.max():.2f} |"
            if key == "graph":
                pairs = [
                    low["estimated_ms"] < high["estimated_ms"]
                    for low, high in itertools.permutations(rows, 2)
                    if high["kernel_ms"] >= 1.2 * low["kernel_ms"]
                ]
                line += f" {sum(pairs)} of {len(pairs)} |"
            assert line in page.splitlines(), f"a line should be\n{line}"


class TestTheReportsT4:
    """The record of `benchmarks/t4.py`: estimates for a T4 beside the report's times."""

    @pytest.fixture
    def rows(self):
        return records.reference("t4")

    def test_the_page_of_measurements_has_it(self, rows, root):
        page = (root / "docs" / "measured.md").read_text(encoding="utf-8").splitlines()
        for row in rows:
            estimated, published = row["estimated_ms"], row["published_ms"]
            line = f"| {row['graph']} | {row['stand_in']} | {row['kernel']} | {estimated:.3g} | {published:g} "
            line += f"| {estimated / published:.2f} |"
            assert line in page, f"a line should be\n{line}"

    @pytest.mark.parametrize("stand_in, least, most", [("class", 0.19, 0.7), ("class, in random order", 0.5, 2.1)])
    def test_how_far_off_it_is(self, rows, stand_in, least, most):
        found = [row["estimated_ms"] / row["published_ms"] for row in rows if row["stand_in"] == stand_in]
        assert len(found) == 8 and least < min(found) and max(found) < most

    @pytest.mark.parametrize("graph", ["delaunay_n22", "great-britain_osm", "auto", "coPapersCiteseer"])
    def test_the_faster_kernel_is_right_but_on_auto(self, rows, graph):
        simple, shared = (row for row in rows if (row["graph"], row["stand_in"]) == (graph, "class"))
        estimated, published = (simple[ms] < shared[ms] for ms in ("estimated_ms", "published_ms"))
        assert (estimated == published) == (graph != "auto")


@pytest.mark.parametrize("nonzeros", share([1, 4, 16], "full"))
def test_a_sweep_of_a_full_gpu_follows_the_record(nonzeros):
    """Speedup of column_block over naive: the record is of 8.4 million edges, the estimate of 10,000."""
    recorded = dict(measured.speedup_curve(records.records("sweep")["NVIDIA H200"], 27))[nonzeros]
    graph = tcgpu.generate.by_nonzeros(10_000, nonzeros)
    naive, blocks = tcgpu.estimate(graph, ["naive", "column_block"], fill=True, lane_steps=100_000)
    assert recorded / 1.5 < naive.ms / blocks.ms < recorded * 1.5


@pytest.mark.parametrize("nonzeros", share([1, 2, 4, 8, 16, 32], "bitmap"))
def test_so_does_that_of_bitmap(nonzeros):
    """Its time over that of naive, of a million edges, as the chart has it: least at two nonzeros per column."""
    recorded = {
        row["method"]: row["kernel_ms"]
        for row in records.records("sweep")["NVIDIA H200"]
        if (row["nonzeros_per_column"], row["order"]) == (nonzeros, "natural")
    }
    graph = tcgpu.generate.by_nonzeros(1_000_000, nonzeros)
    naive, bitmap = tcgpu.estimate(graph, ["naive", "bitmap"], fill=True, order="natural", lane_steps=200_000)
    assert 1 / 1.5 < (naive.ms / bitmap.ms) / (recorded["naive"] / recorded["bitmap"]) < 1.5
