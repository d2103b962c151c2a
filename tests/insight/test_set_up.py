"""Set-up kernels that one thread runs against those of the simulator, and estimates of graphs that they set up."""

import time
from dataclasses import replace
from importlib import import_module
from itertools import product

import compiled
import numpy as np
import pytest
from sampling import share

import tcgpu
from tcgpu import generate
from tcgpu.engines import runtime
from tcgpu.errors import MethodError
from tcgpu.insight import gpus, set_up
from tcgpu.kernels import device_graph, edge_sums, order_costs, simulated
from tcgpu.kernels.adaptive import bit_rows, layout, merging
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
GRAPHS = {
    "nothing": generate.empty(0),
    "no edges": generate.empty(9),
    "an edge": generate.path(2),
    "star": generate.star(70),
    "clique": generate.clique(90),
    "R-MAT": generate.rmat(8, 8, seed=3),
    "random": generate.random(300, 2500, seed=4),
}
KNOBS = {
    "default": {},
    "all near, crowds": {"crowd": 2, "heavy": 4, "short": 2},
    "all near, no hubs": {"hubs": 0, "crowd": 7},
    "few near": {"near": 40, "hubs": 9, "heavy": 8, "crowd": 5, "short": 3},
    "none near": {"near": 0, "hubs": 0, "short": 2},
    "a share": {"near": 100, "hubs": 50, "heavy": 4, "crowd": 4, "short": 2, "share": (1, 3)},
}


def in_simulator(plan, graph):
    return plan.allocate()


def arrays_after(fill, method, graph, knobs):
    """The arrays of a plan after its set-up, by a function of plan and graph."""
    device = gpus.GPUS["NVIDIA H200"]  # it has the shared memory that crowd_kernel needs
    with runtime.using("sim"), runtime.as_device(device), simulated.limited(float("inf")):
        return fill(METHODS[method].plan(graph, **knobs), graph).arrays


def assert_same(name, found, expected, arrays):
    """That an array has the same values; where atomic operations decide the order, in any order."""
    if name == "heavy_columns":
        size = arrays["list_size"][0]
        found, expected = np.sort(found[:size]), np.sort(expected[:size])
    elif name in ("in_edges", "far_edges"):
        # the last element is of no vertex
        ranges = list(zip(arrays["in_ptr"][:-1], arrays["in_end"][:-1], strict=True))
        ranges = [each for each in ranges if each[1] <= expected.size]
        found, expected = (np.concatenate([[0], *(np.sort(of[p:q]) for p, q in ranges)]) for of in (found, expected))
    elif name.endswith(("_columns", "_pieces")):
        size = arrays[f"{name.partition('_')[0]}_task_ptr"][-1]
        found, expected = found[:size], expected[:size]
    assert np.array_equal(found, expected), name


@pytest.mark.parametrize(
    "graph, knobs, sized_from, far_edges",
    share(product(GRAPHS, KNOBS, (layout.SIZED_FROM, 0), (False, True)), "arrays", of=5),  # all values of each of them
)
def test_arrays_of_adaptive(graph, knobs, sized_from, far_edges, monkeypatch):
    graph, knobs = GRAPHS[graph].ordered("degree"), KNOBS[knobs]
    if far_edges:
        monkeypatch.setattr(import_module("tcgpu.kernels.adaptive.plan"), "FAR_EDGES_FROM", 0)
    monkeypatch.setattr(layout, "SIZED_FROM", sized_from)
    monkeypatch.setattr(layout, "MAX_TASK_IN_EDGES", 7)  # so that a vertex has several tasks
    monkeypatch.setattr(set_up, "MOST_SIMULATED", -1 if far_edges else 10**6)  # compiled or not
    set_up.by_one_thread.cache_clear()  # what it has compiled has the numbers that were there
    found, expected = (arrays_after(by, "adaptive", graph, knobs) for by in (set_up.set_up, in_simulator))
    set_up.by_one_thread.cache_clear()
    unset = {"hub_rows", "hub_rows32", "queue"}  # by the set-up
    assert found.keys() == expected.keys() > unset
    for name in found.keys() - unset:
        assert_same(name, found[name], expected[name], expected)


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_column_pointers(graph):
    found, expected = (arrays_after(by, "naive", graph, {}) for by in (set_up.set_up, in_simulator))
    assert np.array_equal(found["col_ptr"], expected["col_ptr"]) and np.array_equal(found["col_ptr"], graph.col_ptr)


@pytest.mark.parametrize("knobs", [{}, {"near": 5000, "hubs": 2000, "crowd": 64}], ids=["default", "few near"])
def test_counts_after_it(knobs, processor):
    """The counting kernels, compiled for this machine, on 130,000 edges and arrays that one thread has filled."""
    graph = generate.rmat(17, 1).ordered("degree")  # more vertices than are near
    with processor.instead_of_the_simulator(**compiled.LARGE):
        run = set_up.set_up(METHODS["adaptive"].plan(graph, **knobs), graph)
        run.launch()
        assert run.result() == tcgpu.count(graph, "cpu") > 0


@pytest.mark.parametrize("limits", [{}, {"LONG": 30, "SHORT": 6, "HEAVY": 9, "HUBS": 20, "LAST": 50}], ids=["", "low"])
@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_sums_by_which_an_order_is_chosen(graph, limits, monkeypatch):
    for name, limit in (limits | {"DISTANT": 99}).items():
        monkeypatch.setattr(edge_sums, name, limit)
    monkeypatch.setattr(set_up, "PART", 320)  # whole warps
    with runtime.using("sim"):
        expected, *_ = edge_sums.describe_edges(graph.row_idx, graph.col_of, graph.n)
        assert set_up.prepare(METHODS["adaptive"], graph, "natural").order_costs == expected


@pytest.mark.parametrize("edges", ["few", "many"])
def test_an_estimate_counts_in_the_order_that_a_gpu_chooses(edges, monkeypatch):
    for module in (device_graph, bit_rows, merging):
        monkeypatch.setattr(module, "SMALL", 100 if edges == "many" else 10_000)
    monkeypatch.setattr(order_costs.OrderCosts, "best", lambda costs: "degree" if costs.n < 300 else "natural")
    monkeypatch.setattr(order_costs.OrderCosts, "best_words", lambda costs, room=0: 32)
    monkeypatch.setattr(order_costs.OrderCosts, "merges", lambda costs: False)
    kernels = [
        [kernel.kernel for kernel in tcgpu.estimate(graph, "adaptive", lane_steps=1000).kernels]
        for graph in (GRAPHS["R-MAT"], GRAPHS["random"])
    ]
    if edges == "few":
        assert kernels == [["merge_short_kernel"], ["merge_kernel"]]
    else:
        assert "hub_kernel" in kernels[0] and kernels[1] == ["fill_local_rows", "local_kernel", "merge_kernel"]


def test_memory_for_rows_of_bits_is_that_of_the_gpu_except_for_a_share(monkeypatch):
    """Workers that count a share each have to divide the work alike, whatever memory they have."""
    monkeypatch.setattr(bit_rows, "SMALL", 1)
    large = set_up.prepare(METHODS["adaptive"], GRAPHS["clique"], "natural")
    costs = large.order_costs
    merged = dict.fromkeys(costs.sums, 0) | {"merged": 10**12, "merged 32": 10**12, "words 32": 1}
    large.order_costs = replace(costs, n=1 << 26, sums=merged)  # rows of 32 words take 17 GB
    words = {}
    for name in ("NVIDIA H200", "Tesla T4"):
        with runtime.using("sim"), runtime.as_device(gpus.GPUS[name]):
            words[name] = bit_rows.local_words(large), bit_rows.local_words(large, (0, 2))
    assert words == {"NVIDIA H200": (32, 32), "Tesla T4": (0, 32)}


def test_kernels_whose_threads_wait_run_in_the_simulator(monkeypatch):
    graph, knobs = generate.clique(12), {"memory": "global"}
    found, expected = (arrays_after(by, "levels", graph, knobs) for by in (set_up.set_up, in_simulator))
    assert found["bits"].any() and np.array_equal(found["bits"], expected["bits"])
    monkeypatch.setattr(set_up, "MOST_SIMULATED", 65)
    with pytest.raises(MethodError, match="levels sets up its arrays with matrix_kernel, .* 65 edges, not 66"):
        arrays_after(set_up.set_up, "levels", graph, knobs)


@pytest.mark.full
def test_an_estimate_of_a_million_edges_in_degree_order_takes_seconds():
    begin = time.thread_time()
    found = tcgpu.estimate(generate.rmat(16, 16, seed=1), "adaptive", order="degree", merge=0, lane_steps=100_000)
    assert time.thread_time() - begin < 30
    assert [kernel.kernel for kernel in found.kernels] == [
        "fill_hub_rows", "hub_kernel", "crowd_kernel", "window_kernel", "far_kernel"
    ]  # fmt: skip
    assert found.edges > 900_000 and 0.03 < found.ms < 0.5  # measured on an H200: 0.11
