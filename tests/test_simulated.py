"""The simulator's time is estimated before it runs, within a factor of two; long runs are announced or refused."""

import logging
import math
import re
import time
from functools import partial

import pytest
from sampling import share

import tcgpu
from tcgpu import GraphError, built_in, registry
from tcgpu.engines import runtime
from tcgpu.kernels import simulated
from tcgpu.kernels.simulated import duration
from tcgpu.truss import peeling

SMALL = tcgpu.generate.mesh(8, 8)
PLANS = {"count": registry.Method.plan, "support": registry.Method.support_plan, "triangles": registry.triangles_plan}


def cases():
    """Each method with each verb that it has, on graphs that take the simulator about a second at most."""
    graphs = {"R-MAT": tcgpu.generate.rmat(7, 8, seed=5), "mesh": tcgpu.generate.mesh(14, 14)}
    graphs["clique"] = tcgpu.generate.clique(40)
    for method in registry.methods():
        if "sim" in method.engines:
            for name, graph in share(graphs.items(), method.name):
                yield pytest.param(method, "count", graph, id=f"{method.name} {name}")
    for name in ("bitmap_thread", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global", "adaptive"):
        for verb in share(("support", "triangles"), name, of=2):
            graph = graphs["mesh" if verb == "support" else "R-MAT"]
            yield pytest.param(registry.METHODS[name], verb, graph, id=f"{name} {verb}")


def timed(plan):
    begin = time.thread_time()
    plan.count()
    return time.thread_time() - begin


@pytest.mark.sim
@pytest.mark.parametrize("method, verb, graph", share(cases(), "cases", of=3))
def test_estimates_are_right_within_a_factor_of_two(method, verb, graph):
    """By processor time, for other work on this machine does not count; a quick run may be off by 50 ms.

    The first run of a kernel also rewrites its source. Other work, which slows this machine down, may come and go.
    """
    seconds, estimates = [], []
    with registry.on_engine(method, "sim", math.inf):
        plan = PLANS[verb](method, method.prepare(graph))
        for _ in range(2):
            simulated.slowness.cache_clear()
            estimates.append(plan.simulated_seconds)
            seconds.append(timed(plan))
    assert min(seconds) / 2 - 0.05 < max(estimates) and min(estimates) < 2 * min(seconds) + 0.05


@pytest.mark.sim
def test_an_estimate_grows_with_the_graph_and_takes_no_time():
    """Of graphs that would take hours, too."""
    for method in registry.methods():
        if "sim" not in method.engines or method.name == "levels":  # it finds its chunks before it estimates
            continue
        with registry.on_engine(method, "sim"):
            begin = time.thread_time()
            small, large = (method.plan(method.prepare(tcgpu.generate.rmat(k))).simulated_seconds for k in (8, 14))
            assert time.thread_time() - begin < 5
        assert small < 5 and large > 20 * small


@pytest.mark.sim
def test_streamed_parts_are_estimated_too(monkeypatch):
    graph, estimates, seconds = tcgpu.generate.rmat(8, seed=3), [], []
    monkeypatch.setattr(simulated, "check", lambda what, seconds, *more: estimates.append(seconds))
    for _ in range(2):
        simulated.slowness.cache_clear()
        begin = time.thread_time()
        tcgpu.count(graph, "warp_search", engine="sim", device_memory=4 * 8 * 1024)
        seconds.append(time.thread_time() - begin)
    assert len(estimates) == 2  # once a run
    assert min(seconds) / 2 - 0.1 < max(estimates) and min(estimates) < 2 * min(seconds) + 0.1


WAYS = {
    "count": lambda **more: tcgpu.count(SMALL, "naive", engine="sim", **more),
    "streamed": lambda **more: tcgpu.count(SMALL, engine="sim", device_memory="1MB", **more),
    "by workers": lambda **more: tcgpu.count(SMALL, "warp_search", engine="sim", executor="threads", **more),
    "triangles": lambda **more: tcgpu.triangles(SMALL, method="bitmap_warp", engine="sim", **more),
    "support": lambda **more: tcgpu.support(SMALL, engine="sim", **more),
    "support by workers": lambda **more: tcgpu.support(SMALL, engine="sim", executor="threads", **more),
    "measure": lambda **more: tcgpu.measure(SMALL, "naive", engine="sim", repeats=1, **more),
    "trace": lambda **more: tcgpu.trace(SMALL, "naive", **more),
    "k-truss": lambda **more: tcgpu.k_truss(SMALL, 3, engine="sim", **more),
    "truss numbers": lambda **more: tcgpu.truss_numbers(SMALL, engine="sim", **more),
}


@pytest.mark.sim
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
def test_long_runs_are_announced_once_and_refused_without_max_seconds(way, monkeypatch, caplog):
    with caplog.at_level(logging.WARNING, "tcgpu"):
        way()
        assert not caplog.records
        monkeypatch.setattr(simulated, "NOTICE", 1e-9)
        way()
    (record,) = caplog.records
    said = record.getMessage()
    assert re.search("takes about [01] seconds in the simulator; if that is too long, take ", said)
    monkeypatch.setattr(simulated, "LIMIT", 1e-9)
    with pytest.raises(GraphError, match="in the simulator: take .* or allow it by max_seconds="):
        way()
    way(max_seconds=600)
    with pytest.raises(GraphError, match="max_seconds is a number of seconds above 0, not 'long'"):
        way(max_seconds="long")


@pytest.mark.sim
@pytest.mark.parametrize("verb, named", [
    (tcgpu.count, {"method": "naive"}),
    (partial(tcgpu.count, device_memory="1MB"), {"method": "warp_search"}),
    (partial(tcgpu.count, executor="threads"), {"method": "warp_search"}),
    (tcgpu.triangles, {"method": "bitmap_warp"}),
    (partial(tcgpu.k_truss, k=3), {"method": "k_truss"}),
    (partial(tcgpu.reduce_triangles, f=lambda u, v, w: 1), {}),
    (partial(tcgpu.count_subgraphs, k=4), {}),
    (partial(tcgpu.count_subgraphs, k=3, kind="connected"), {"method": "levels"}),
    (tcgpu.motifs, {}),
    (partial(tcgpu.measure, repeats=1), {"methods": "naive"}),
])  # fmt: skip
def test_the_way_out_of_a_refusal_works(verb, named, monkeypatch):
    monkeypatch.setattr(simulated, "LIMIT", 1e-9)
    with pytest.raises(GraphError, match="take engine='cpu' without a method, or a smaller graph"):
        verb(SMALL, engine="sim", **named)
    verb(SMALL, engine="cpu")


@pytest.mark.sim
def test_the_seconds_in_a_refusal_are_enough(monkeypatch):
    monkeypatch.setattr(simulated, "LIMIT", 1e-9)
    monkeypatch.setattr(simulated, "slowness", lambda: 500.0)
    with pytest.raises(GraphError) as refusal:
        tcgpu.count(SMALL, "naive", engine="sim")
    seconds = int(str(refusal.value).rpartition("=")[2])
    assert tcgpu.count(SMALL, "naive", engine="sim", max_seconds=seconds) == 98


def test_seconds_beyond_those_that_can_be_allowed_are_not_suggested():
    with simulated.limited(5, most=100), simulated.limited(10):
        with pytest.raises(GraphError, match="or allow it by max_seconds=100$"):
            simulated.check("this", 90)
        with pytest.raises(GraphError, match="on a GPU; at most 100 seconds can be allowed$"):
            simulated.check("this", 101)


def test_other_engines_are_not_limited(monkeypatch):
    monkeypatch.setattr(simulated, "LIMIT", 1e-9)
    assert tcgpu.count(SMALL, engine="cpu") == 98
    assert tcgpu.truss_numbers(SMALL, engine="cpu", max_seconds=1).size == SMALL.m


@pytest.mark.sim
def test_a_truss_is_no_cheaper_than_its_first_round():
    with registry.on_engine(built_in.K_TRUSS, "sim"):
        rounds, once = peeling.plan(SMALL), registry.METHODS["bitmap_thread"].support_plan(SMALL)
        assert rounds.simulated_seconds > once.simulated_seconds > 0


def test_durations_in_words():
    said = [duration(seconds) for seconds in (0.4, 100, 130, 3 * 3600, 3 * 86400, 1e9)]
    assert said == ["0 seconds", "100 seconds", "2 minutes", "3 hours", "3 days", "32 years"]


# ------------------------------------------------------------------------------------------------------ out of memory


class OutOfMemoryError(MemoryError):
    """An error with the name of CuPy's."""


FAILURES = {
    "CuPy": OutOfMemoryError("Out of memory allocating 17,179,869,184 bytes (allocated so far: 2 bytes)."),
    "the driver": RuntimeError("[2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY"),
}


@pytest.mark.sim
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("verb", ("count", "triangles", "support", "k-truss", "truss numbers", "measure"))
def test_too_little_device_memory_is_reported_with_the_way_out(verb, failure, monkeypatch):
    from tcgpu.kernels import Run

    def launch(run):
        raise failure

    monkeypatch.setattr(Run, "launch", launch)
    monkeypatch.setattr(peeling.PeelingRun, "launch", launch)
    with pytest.raises(GraphError, match=r"does not fit this device, .* bytes free: .* device_memory= .* engine='cpu'"):
        WAYS[verb]()


@pytest.mark.sim
def test_too_little_host_memory_and_other_errors_are_not_changed(monkeypatch):
    from tcgpu.kernels import Run

    for failure in (MemoryError("of the host"), RuntimeError("of another kind")):

        def launch(run, failure=failure):
            raise failure

        monkeypatch.setattr(Run, "launch", launch)
        with pytest.raises(type(failure), match=str(failure)):
            WAYS["count"]()


# ------------------------------------------------------------------------------------------------------------ progress


@pytest.mark.parametrize("method", registry.methods(), ids=lambda method: method.name)
@pytest.mark.parametrize("progress", ("bar", "function"))
def test_progress_changes_nothing(method, progress, monkeypatch, capsys):
    """The same method counts the same int, with a bar and with a function."""
    planned, shares, plan = [], [], registry.Method.plan

    def watched_plan(own, graph, **knobs):
        planned.append(own.name)
        return plan(own, graph, **knobs)

    monkeypatch.setattr(registry.Method, "plan", watched_plan)
    engine, graph = method.engines[-1], tcgpu.generate.mesh(5, 5)
    display = True if progress == "bar" else lambda done, total: shares.append((done, total))
    found = tcgpu.count(graph, method.name, engine=engine, progress=display)
    assert (found, type(found), planned) == (32, int, [method.name])
    if progress == "bar":
        assert capsys.readouterr().err.startswith(f"tcgpu: counting by {method.name}")
    else:
        assert shares == sorted(shares) and shares[-1] == (1.0, 1.0)


@pytest.mark.parametrize("engine", ("cpu", "sim"))
@pytest.mark.parametrize("verb", ("triangles", "support", "truss_numbers"))
def test_progress_of_other_verbs(verb, engine, capsys):
    plain = getattr(tcgpu, verb)(SMALL, engine=engine)
    shown = getattr(tcgpu, verb)(SMALL, engine=engine, progress=True)
    assert (plain == shown).all() and plain.dtype == shown.dtype
    assert capsys.readouterr().err.startswith("tcgpu: ")


@pytest.mark.sim
def test_a_progress_function_may_end_a_count():
    def enough(done, total):
        raise InterruptedError

    with pytest.raises(InterruptedError):
        tcgpu.count(SMALL, "naive", engine="sim", progress=enough)
    assert tcgpu.count(SMALL, "naive", engine="sim") == 98


@pytest.mark.sim
@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
def test_making_a_device_graph_reports_too_little_memory_too(monkeypatch, failure):
    def fail(keys):
        raise failure

    with runtime.using("sim"):
        graph = tcgpu.DeviceGraph.from_edges([0, 0, 1], [1, 2, 2])
        monkeypatch.setattr(runtime, "sort", fail)
        anew = partial(tcgpu.DeviceGraph.from_edges, [0, 0, 1], [1, 2, 2], order="degree")
        for make in (anew, lambda: graph.ordered("degree")):
            with pytest.raises(GraphError, match=r"the graph.* does not fit this device, .* device_memory="):
                make()


def test_a_forecast_is_what_would_be_checked_and_runs_nothing_in_the_simulator():
    graph, done = tcgpu.generate.clique(30), []
    measured = simulated.forecast(lambda: done.append(tcgpu.measure(graph, "naive", engine="sim", repeats=1)))
    traced = simulated.forecast(lambda: done.append(tcgpu.trace(graph, "naive")))
    assert done == [] and traced == pytest.approx(2 * measured)  # four times as long; two runs
    with simulated.limited(measured / 2), pytest.raises(GraphError, match="measured by 2 runs, would take"):
        simulated.forecast(lambda: tcgpu.measure(graph, "naive", engine="sim", repeats=1))
    assert simulated.forecast(lambda: done.append(tcgpu.measure(graph, "cpu", repeats=1))) == 0 and len(done) == 1
    assert tcgpu.count(graph, "naive", engine="sim") == 4060  # it runs again
