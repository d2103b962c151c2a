"""Counts in degree order that look up listed rows, and when they are chosen."""

from importlib import import_module

import numpy as np
import pytest
from test_adaptive import GRAPHS, with_few_blocks

import tcgpu
from tcgpu import DeviceGraph, cpu, generate
from tcgpu.engines import runtime
from tcgpu.insight import set_up
from tcgpu.insight.faults import CheckedRun
from tcgpu.kernels import adaptive, device_graph, order_costs
from tcgpu.kernels.adaptive import look_ups, merging

PLAN = import_module("tcgpu.kernels.adaptive.plan")  # its name in the package is that of the method


def limited(monkeypatch, last, few):
    for name, value in (("LAST", last), ("WORDS", last // 32), ("FEW", few)):
        monkeypatch.setattr(look_ups, name, value)


@pytest.mark.sim
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_every_graph_is_counted(order, compiled_kernels):
    for name, graph in GRAPHS.items():
        plan = with_few_blocks(look_ups.plan(graph.ordered(order)), 3)
        assert plan.count() == cpu.plan(graph).count(), name


@pytest.mark.sim
@pytest.mark.parametrize("few", [0, 3, 1000], ids=["by many lanes", "by one or many", "by a thread each"])
@pytest.mark.parametrize("last", [32, 64], ids=["some", "more"])
@pytest.mark.parametrize("graph", [generate.rmat(7, 6, seed=2), generate.clique(40)], ids=["R-MAT", "clique"])
def test_there_are_no_faults(graph, last, few, monkeypatch):
    """Whether rows are looked up in rows of bits or in columns, by a thread or by several."""
    limited(monkeypatch, last, few)
    with runtime.using("sim"):
        run = CheckedRun(look_ups.plan(graph.ordered("degree")))
        assert run.run_all() == cpu.plan(graph).count() and not run.faults


@pytest.mark.sim
@pytest.mark.parametrize("few", [0, 3, 1000])
@pytest.mark.parametrize("name", GRAPHS)
def test_lists_have_every_row_that_is_looked_up_once(name, few, monkeypatch):
    limited(monkeypatch, 64, few)
    graph = GRAPHS[name].ordered("degree")
    with runtime.using("sim"):
        found = look_ups.plan(graph).allocate().arrays
        expected = set_up.set_up(look_ups.plan(graph), graph).arrays
    assert np.array_equal(found["sizes"], expected["sizes"])
    assert np.array_equal(found["last_rows"], expected["last_rows"])
    few_ones, many = (int(size) for size in found["sizes"])
    for listed in (slice(0, few_ones), slice(graph.m - many, graph.m)):
        pairs = [sorted(zip(of["pieces"][listed], of["columns"][listed], strict=True)) for of in (found, expected)]
        assert pairs[0] == pairs[1]
    lengths = np.append(found["pieces"][:few_ones], found["pieces"][graph.m - many :]) & np.uint64(2**32 - 1)
    rows = np.diff(graph.col_ptr)
    behind = graph.col_ptr[graph.col_of + 1] - np.arange(graph.m) - 1
    assert lengths.sum() == np.minimum(behind, rows[graph.row_idx]).sum()
    assert np.all(lengths[:few_ones] <= few) and np.all(lengths[few_ones:] > few)


@pytest.fixture
def large(monkeypatch):
    """Graphs of any size are taken for large ones, and look-ups for fast."""
    for module in (PLAN, device_graph, merging):
        monkeypatch.setattr(module, "SMALL", 1)
    monkeypatch.setattr(order_costs, "LOOKED_NS", dict.fromkeys(order_costs.LOOKED_NS, 0))
    monkeypatch.setattr(order_costs.OrderCosts, "suits_tiles", lambda costs: False)


@pytest.mark.sim
def test_they_are_chosen_where_they_are_fastest_and_no_knob_asks_for_something_else(large):
    graph = generate.rmat(7, 6, seed=2)
    with runtime.using("sim"):
        ordered = DeviceGraph.from_graph(graph).ordered("auto")
        plan = adaptive.plan(ordered)
        assert ordered.order == "degree" and [step.kernel for step in plan.steps] == [look_ups.look_up_kernel]
        assert plan.count() == cpu.plan(graph).count()
        natural = adaptive.plan(DeviceGraph.from_graph(graph))
        others = [adaptive.plan(ordered, **knobs) for knobs in ({"merge": 1}, {"merge": 0}, {"share": (0, 2)})]
        assert all(look_ups.look_up_kernel not in [step.kernel for step in each.steps] for each in (natural, *others))


@pytest.mark.sim
def test_they_are_not_chosen_where_memory_has_no_room_for_the_lists(large, monkeypatch):
    with runtime.using("sim"):
        ordered = DeviceGraph.from_graph(generate.rmat(7, 6, seed=2)).ordered("degree")
        monkeypatch.setattr(runtime, "fits", lambda size: size < 12 * ordered.m)
        assert look_ups.look_up_kernel not in [step.kernel for step in adaptive.plan(ordered).steps]


@pytest.mark.sim
@pytest.mark.parametrize(
    "graph, none",
    [(generate.star(50), True), (generate.path(60), True), (generate.clique(9), False), (generate.mesh(6, 6), False)],
    ids=["star", "path", "clique", "mesh"],
)
def test_nothing_is_launched_where_no_edge_has_rows_to_look_up(graph, none, large):
    with runtime.using("sim"):
        made = DeviceGraph.from_graph(graph)
        assert made.order_costs.no_triangles == none
        for order in ("natural", "degree"):
            plan = adaptive.plan(made.ordered(order))
            assert bool(plan.steps) != none and plan.count() == cpu.plan(graph).count()


@pytest.mark.gpu
@pytest.mark.parametrize("edges", [40_000, 300_000])
def test_graphs_of_all_sizes_are_counted_on_a_gpu(edges):
    graph = generate.rmat(int(np.log2(edges / 8)), 16, seed=3)
    ordered = DeviceGraph.from_graph(graph).ordered("degree")
    assert look_ups.plan(ordered).count() == tcgpu.count(graph, "cpu") > 0
