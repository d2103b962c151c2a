"""The explorer: each control has its effect, runs can be stopped, and errors are reported."""

import base64
import csv
import datetime
import html
import io
import json
import re
import threading
import time
from functools import cache

import ipywidgets as widgets
import nbformat
import networkx as nx
import pytest
from sampling import share

import tcgpu
from helpers import measured
from tcgpu import datasets, records
from tcgpu.generators import GENERATORS
from tcgpu.hardware import timed_engine
from tcgpu.kernels import simulated
from tcgpu.lab.explorer import (
    Explorer,
    elements,
    graph_card,
    method_run,
    pages,
    panel,
    sweep_page,
    trace_page,
)

PAGES = "Compare", "Sweep", "Trace"
SOON = 240  # seconds that anything here may take, on a busy machine, too; less than pytest waits
KARATE = tcgpu.Graph.from_networkx(nx.karate_club_graph(), name="karate")
BUNDLED = [entry for entry in datasets.catalogue() if entry.family == "generated"]
COUNTED = [method for method in tcgpu.methods() if method.name != "cpu"]


@pytest.fixture
def drawn():
    """For tests that look at pictures: only in those, matplotlib draws them. It takes most of the time of opening."""


ESTIMATES = {}  # graph, method and settings -> what does not depend on anything else: tests need not wait for it twice


def shared_estimate(graph, method, **settings):
    key = graph.col_ptr.tobytes(), graph.row_idx.tobytes(), method, *settings.items()
    if key not in ESTIMATES:
        ESTIMATES[key] = tcgpu.estimate(graph, method, **settings)
    return ESTIMATES[key]


read_records = cache(records.records)
EMPTY = pages.draw_timings([], "no rows")


@pytest.fixture
def explore(request, monkeypatch):
    """A function that opens explorers; at the end of the test their runs are stopped."""
    opened = []
    monkeypatch.setattr(records, "records", read_records)
    monkeypatch.setattr(method_run, "estimate", shared_estimate)
    if "drawn" not in request.fixturenames:
        monkeypatch.setattr(pages, "draw_timings", lambda rows, title: EMPTY)
        for kind in ("png", "svg"):
            monkeypatch.setattr(elements.figures, kind, lambda figure, *settings: b"")

    def explore(*args, page="Compare", **settings):
        opened.append(tcgpu.explore(*args, page=page, **settings))
        assert opened[-1].wait(SOON)
        return opened[-1]

    yield explore
    for explorer in opened:
        explorer.stop()
        assert explorer.wait(SOON)


def ran(explorer):
    """Press Run and wait: the rows of the page that is shown."""
    explorer.run_button.click()
    assert explorer.wait(SOON), f"still running after {SOON} seconds: {explorer.status.value}"
    assert not explorer.busy
    if explorer.failure:
        raise explorer.failure
    return explorer.rows


def facts(explorer):
    """What the card shows of its graph, once the graph is made."""
    assert explorer.wait(SOON)
    return re.sub("<[^>]*>", " ", explorer.graphs.facts.value)


def turn_to(explorer, page):
    explorer.pages.selected_index = explorer.pages.children.index(page)


def until(condition, seconds=SOON):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not true after {seconds} seconds"
        time.sleep(0.01)


# ------------------------------------------------------------------------------------------------------------ the graph


def test_it_opens_with_a_small_graph_and_shows_its_size(explore):
    explorer = explore()
    assert "256 vertices, 705 edges, 2.75 nonzeros per column" in facts(explorer)
    assert explorer.rows == [] and explorer.message == ""
    assert repr(explorer) == "<Explorer: bundled graph, naive, column_block, cpu>"


def test_bundled_graphs_are_counted(explore):
    explorer = explore(methods=["cpu"])
    for entry in BUNDLED:
        explorer.graphs.bundled.value = entry.name
        assert f"{entry.vertices:,} vertices, {entry.edges:,} edges" in facts(explorer)
        [row] = ran(explorer)
        assert (row["graph"], row["triangles"]) == (entry.name, entry.triangles)


def test_every_file_of_an_own_folder_is_in_the_list(explore, graphs_folder, monkeypatch):
    """Also those whose names are in a paper's table; each is the graph of the folder's index."""
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    index = {row["name"]: row for row in datasets._index(graphs_folder)}
    explorer = explore("karate", ["cpu"])
    listed = {name: label for label, name in explorer.graphs.bundled.options}
    assert len(index) > 20 and {path.name for path in graphs_folder.iterdir()} == {
        "INDEX.tsv", *(row["file"] for row in index.values())
    }  # fmt: skip
    assert all(listed[name] == f"{name}: {int(row['edges']):,} edges" for name, row in index.items())
    assert (explorer.graphs.source.value, explorer.graphs.bundled.value) == ("bundled", "karate")
    for name in share(index, "own", of=8):
        explorer.graphs.bundled.value = name
        assert f"{int(index[name]['edges']):,} edges" in facts(explorer)
        assert [(row["graph"], row["triangles"]) for row in ran(explorer)] == [(name, int(index[name]["triangles"]))]


@pytest.mark.parametrize("name", share(GENERATORS, "small", of=2))
def test_a_generated_graph_is_small_at_first(explore, name):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "generated"
    explorer.graphs.generator.value = name
    [row] = ran(explorer)
    graph = eval(explorer.graphs.picked().code)
    assert row["graph"] == graph.name
    assert graph.m <= 2_000  # takes seconds in the simulator
    assert (row["vertices"], row["edges"], row["triangles"]) == (graph.n, graph.m, tcgpu.count(graph))


@pytest.mark.parametrize("card, names", [("graphs", ("mesh", "rmat")), ("methods", ("naive", "bitmap"))])
def test_controls_that_are_shown_again_hear_of_nothing(explore, card, names):
    """In a browser, a field that hears of new settings drops what is being typed into it."""
    explorer, changes = explore(KARATE, ["naive", "bitmap"]), []
    card = getattr(explorer, card)
    pick, controls = (card.generator, card.parameters) if card is explorer.graphs else (card.knobs_of, card.knobs)
    for name in names:
        pick.value = name
    for control in controls[names[0]].values():
        control.observe(changes.append)
    pick.value = names[0]
    assert changes == []
    next(iter(controls[names[0]].values())).value = "8"
    assert changes


def test_two_threads_make_the_controls_of_a_generator_once(explore, monkeypatch):
    """JupyterLab sends what is entered to two threads of a kernel, at the same time."""
    make, making = graph_card.GraphCard._make_controls, []

    def slow(card, generator):
        making.append(generator)
        time.sleep(0.2 * len(making))
        return make(card, generator)

    monkeypatch.setattr(graph_card.GraphCard, "_make_controls", slow)
    explorer = explore(KARATE, ["cpu"])
    first = threading.Thread(target=setattr, args=(explorer.graphs.source, "value", "generated"))
    first.start()
    until(lambda: making)
    explorer.max_seconds.value = "1000"  # its code names the generator's parameters
    first.join(SOON)
    [shown] = [each for each in elements.everything(explorer) if getattr(each, "description", "") == "edge factor"]
    shown.value = "100"
    assert explorer.wait(SOON) and explorer.message == "edge factor is a whole number from 1 to 64, not 100"


def test_every_generator_has_first_values_and_a_seed_if_it_uses_one():
    assert set(graph_card.FIRST_VALUES) == set(GENERATORS)
    for name, draw in GENERATORS.items():
        by_seed = {tuple(draw(**graph_card.FIRST_VALUES[name], seed=seed).row_idx) for seed in range(3)}
        assert (len(by_seed) > 1) == (name not in graph_card.WITHOUT_SEED)


def another(control):
    """Another value for a control, near its own: of a number with a slider, the one before the slider's."""
    if not isinstance(control, elements.NumberField):
        values = [value for _, value in control._options_full]
        return values[values.index(control.value) - 1]
    if control.slider is None:
        return "7"
    below = [value for _, value in control.slider._options_full if value <= control.number]
    return str(below[-2:][0])


@pytest.mark.parametrize("name", share(GENERATORS, "sliders", of=3))
def test_every_control_changes_the_graph(explore, name):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "generated"
    explorer.graphs.generator.value = name
    assert explorer.graphs.parameters[name]
    for parameter, control in explorer.graphs.parameters[name].items():
        control.value = another(control)
        values = {each: elements.value_of(control) for each, control in explorer.graphs.parameters[name].items()}
        assert str(values[parameter]) == str(control.value)
        graph = GENERATORS[name](**values)
        assert f"{graph.n:,} vertices, {graph.m:,} edges" in facts(explorer), parameter
        [row] = ran(explorer)
        assert f"{parameter}={values[parameter]}" in row["graph"]
        assert row["triangles"] == tcgpu.count(graph)


def test_a_number_between_the_steps_of_its_slider_can_be_entered(explore):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value, explorer.graphs.generator.value = "generated", "path"
    explorer.graphs.parameters["path"]["n"].value = "1,234"
    assert "1,234 vertices, 1,233 edges" in facts(explorer)
    assert ran(explorer)[0]["vertices"] == 1_234


@pytest.mark.parametrize("name", share(GENERATORS, "range", of=2))
def test_no_control_replaces_a_number_that_is_out_of_range(explore, name):
    explorer = explore(methods=[method.name for method in COUNTED])
    explorer.graphs.source.value, explorer.graphs.generator.value = "generated", name
    controls = [*elements.everything(explorer), *explorer.graphs.parameters[name].values()]
    controls += [control for method in COUNTED for control in explorer.methods.knobs[method.name].values()]
    bounded = widgets.widget_int._BoundedInt, widgets.widget_float._BoundedFloat  # these clip what is entered
    assert [control for control in controls if isinstance(control, bounded)] == [explorer.progress]


NUMBERS = {  # control -> an entry, and what is said of it
    "knob": ("100000", "threads is a whole number from 1 to 1,024, not 100000"),
    "no number": ("many", "threads is a whole number from 1 to 1,024, not 'many'"),
    "parameter": ("65", "edge factor is a whole number from 1 to 64, not 65"),
    "probability": ("1.5", "a is a number from 0 to 1, not 1.5"),
    "seed": ("-1", "seed is a whole number from 0 to 2,147,483,647, not -1"),
    "runs": ("1000", "runs is a whole number from 1 to 99, not 1000"),
    "limit": ("0", "max seconds is a number from 1 to 1,000,000, not 0"),
}


@pytest.mark.parametrize("page", share(PAGES, "numbers"))
def test_a_number_out_of_range_is_reported_and_nothing_runs(explore, page):
    explorer = explore(KARATE, ["naive"], page=page)
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.LAUNCH, (5, 5)
    explorer.graphs.source.value = "generated"
    rmat = explorer.graphs.parameters["rmat"]
    controls = {
        "knob": explorer.methods.knobs["naive"]["threads"],
        "no number": explorer.methods.knobs["naive"]["threads"],
        "parameter": rmat["edge_factor"],
        "probability": rmat["a"],
        "seed": rmat["seed"],
        "runs": explorer.repeats,
        "limit": explorer.max_seconds,
    }
    for what, (entry, said) in NUMBERS.items():
        control = controls[what]
        before, control.value = control.value, entry
        assert explorer.wait(SOON)
        assert explorer.message == said == html.unescape(explorer.problems.value)  # before Run
        assert ran(explorer) == [] and explorer.status.value == "not started: see below" and explorer.message == said
        assert control.value == entry  # to be corrected
        control.value = before
        assert explorer.wait(SOON) and explorer.message == ""


def test_parameters_that_contradict_each_other_are_reported(explore):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "generated"
    explorer.graphs.parameters["rmat"]["a"].value = "0.9"
    assert explorer.wait(SOON) and "a + b + c" in explorer.message
    explorer.graphs.parameters["rmat"]["a"].value = "0.5"
    assert explorer.wait(SOON) and explorer.message == ""


def test_a_file_by_its_path(explore, root):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "a file"
    assert "name a file" in facts(explorer)
    explorer.graphs.path.value = str(root / "data" / "graphs" / "rmat_8.mtx")
    assert "256 vertices, 1,061 edges" in facts(explorer)
    assert ran(explorer)[0]["triangles"] == 2487


def upload(explorer, name, content):
    """Upload a file as a browser does."""
    file = {"name": name, "type": "", "size": len(content), "content": memoryview(content)}
    explorer.graphs.upload.value = (file | {"last_modified": datetime.datetime.now(datetime.UTC)},)


@pytest.mark.parametrize("name", ["rmat_8.mtx", "by_nonzeros_5.txt.gz", "copapers_500.npz"])
def test_an_uploaded_file(explore, root, name):
    [entry] = [entry for entry in BUNDLED if entry.name == name.partition(".")[0]]
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "a file"
    upload(explorer, name, (root / "data" / "graphs" / name).read_bytes())
    assert f"{entry.vertices:,} vertices, {entry.edges:,} edges" in facts(explorer)
    assert ran(explorer)[0]["triangles"] == entry.triangles
    explorer.graphs.path.value = str(root / "data" / "graphs" / "mesh_16x16.mtx")
    assert ran(explorer)[0]["triangles"] == 450


def test_a_bad_file_is_reported_until_another_graph_is_picked(explore, tmp_path):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "a file"
    upload(explorer, "bad.mtx", b"%%MatrixMarket matrix coordinate pattern symmetric\n3 3 1\n7 1\n")
    assert explorer.wait(SOON) and explorer.message.startswith("bad.mtx, line 3: ")
    explorer.graphs.path.value = str(tmp_path / "nothing.mtx")
    assert explorer.wait(SOON) and "nothing.mtx" in explorer.message
    explorer.methods.chips["naive"].value = True  # the file is still bad
    assert "nothing.mtx" in explorer.message and "nothing.mtx" in explorer.problems.value
    assert ran(explorer) == [] and "nothing.mtx" in explorer.message
    explorer.graphs.source.value = "bundled"
    assert explorer.wait(SOON) and explorer.message == ""


@pytest.mark.parametrize("order", graph_card.ORDERS.values())
def test_an_order(explore, order):
    explorer = explore("rmat_8", ["cpu"])
    explorer.graphs.order.value = order
    [row] = ran(explorer)
    expected = None if order == graph_card.DEFAULT else order
    assert row["order"] == tcgpu.measure(tcgpu.load("rmat_8"), "cpu", order=expected, repeats=1)[0]["order"]
    assert row["triangles"] == 2487


def test_a_published_graph_is_loaded_by_its_name(explore, monkeypatch):
    monkeypatch.setattr("tcgpu.datasets.load", {"as20000102": KARATE}.__getitem__)
    explorer = explore("as20000102", ["cpu"])
    assert explorer.graphs.picked().code == "tcgpu.load('as20000102')" and "34 vertices" in facts(explorer)


@pytest.mark.parametrize("given", [KARATE, nx.karate_club_graph(), KARATE.to_scipy()], ids=["Graph", "nx", "scipy"])
def test_a_graph_that_is_passed(explore, given):
    explorer = explore(given, ["cpu"])
    assert explorer.graphs.source.value == "given" and "34 vertices, 78 edges" in facts(explorer)
    assert (getattr(given, "name", "") or "the graph that") in html.unescape(explorer.graphs.given_page.value)
    assert ran(explorer)[0]["triangles"] == 45
    explorer.graphs.source.value = "bundled"
    assert ran(explorer)[0]["triangles"] == 450


@pytest.mark.parametrize("wrong", [{"methods": ["fast"]}, {"order": "up"}, {"engine": "tpu"}, {"graph": 7}])
def test_unknown_names_are_refused(wrong):
    with pytest.raises(tcgpu.TcgpuError):
        tcgpu.explore(**wrong)


# -------------------------------------------------------------------------------------------------------------- methods


@pytest.mark.sim
@pytest.mark.parametrize("method", share(COUNTED, "runs"), ids=lambda method: method.name)
def test_a_method_runs_in_the_simulator(explore, method):
    explorer = explore(KARATE, [], engine="sim")
    explorer.methods.chips[method.name].value = True
    [row] = ran(explorer)
    assert (row["method"], row["engine"], row["triangles"]) == (method.name, "sim", 45)


@pytest.mark.sim
@pytest.mark.parametrize("method", share(COUNTED, "knobs", of=2), ids=lambda method: method.name)
def test_every_knob_is_passed_on(explore, method):
    explorer = explore(tcgpu.generate.clique(6), [method.name], engine="sim")
    assert explorer.methods.knobs_of.value == method.name
    for knob, default in method.knobs.items():
        control = explorer.methods.knobs[method.name][knob]
        declared = next(each for each in method.declared if each.name == knob)
        assert declared.help in control.tooltip and declared.values in control.tooltip
        before = control.value
        assert explorer.method_runs()[0].knobs == {}
        number = min(6, declared.high)
        control.value = another(control) if isinstance(control, widgets.Dropdown) else str(number)
        changed = control.value if isinstance(control, widgets.Dropdown) else number
        [row] = ran(explorer)
        assert json.loads(row["knobs"])[knob] == changed != default
        assert row["triangles"] == 20
        control.value = before


def test_a_knob_with_few_choices_is_a_list_of_all_of_them(explore):
    explorer = explore(KARATE, ["levels"])
    for knob in tcgpu.registry.METHODS["levels"].declared:
        control = explorer.methods.knobs["levels"][knob.name]
        assert isinstance(control, widgets.Dropdown) == bool(knob.choices)
        assert tuple(getattr(control, "_options_values", ())) == knob.choices


def test_methods_are_picked_by_their_buttons(explore):
    explorer = explore()
    assert explorer.methods.chosen == ["naive", "column_block", "cpu"]
    explorer.methods.chips["column_block"].value = False
    explorer.methods.chips["bitmap"].value = True
    assert explorer.methods.chosen == ["naive", "bitmap", "cpu"] == list(explorer.methods.knobs_of.options)
    explorer.methods.knobs_of.value = "bitmap"
    shown = [row.children[0].description for row in explorer.methods.shown_knobs.children]
    assert shown == ["threads", "blocks", "lanes"]
    explorer.methods.choose()
    assert explorer.message == "pick a method"
    assert ran(explorer) == [] and explorer.status.value == "not started: see below"


@pytest.mark.parametrize("said, because", [("many", "1 to 1,024, not 'many'"), ("5000", "1 to 1,024")])
def test_a_bad_value_of_a_knob_is_reported(explore, said, because):
    explorer = explore(KARATE, ["naive", "cpu"], engine=None)
    explorer.methods.knobs["naive"]["threads"].value = said
    assert ran(explorer) == [] and because in explorer.message
    explorer.methods.knobs["naive"]["threads"].value = " 32 "
    assert [row["triangles"] for row in ran(explorer)] == [45, 45] and explorer.message == ""


def test_a_run_that_does_not_start_shows_no_progress(explore):
    explorer = explore(KARATE, ["cpu"])
    ran(explorer)
    assert explorer.progress.value == 1
    explorer.methods.choose("naive")
    explorer.methods.knobs["naive"]["threads"].value = "many"
    ran(explorer)
    assert explorer.progress.value == 0 and explorer.status.value == "not started: see below"
    explorer.methods.knobs["naive"]["threads"].value = "512"
    explorer.engine.value = "cpu"
    ran(explorer)
    assert explorer.progress.value == 0 and explorer.status.value.startswith("refused after")


def test_a_refused_method_is_reported_and_the_others_run(explore):
    explorer = explore(KARATE, ["naive", "cpu"], engine="cpu")
    assert [row["method"] for row in ran(explorer)] == ["cpu"]
    assert explorer.message == "naive was refused: method 'naive' runs on gpu or sim or webgpu, not on 'cpu'"
    assert re.fullmatch(r"done after \d+\.\d s: 1 row; refused: naive", explorer.status.value)
    assert explorer.progress.value == 0.5
    explorer.engine.value = "sim"
    assert [row["method"] for row in ran(explorer)] == ["naive"]
    assert explorer.message == "cpu was refused: method 'cpu' runs on cpu, not on 'sim'"


def test_the_engine_gpu_is_refused_without_a_gpu(explore, monkeypatch):
    from tcgpu.engines import runtime

    monkeypatch.setattr(runtime, "ENGINE", "sim")
    explorer = explore(KARATE, ["naive"], engine="gpu")
    assert ran(explorer) == [] and explorer.message.startswith("naive was refused: no engine 'gpu' here: ")


def test_a_graph_too_large_for_the_simulator_is_refused(explore):
    explorer = explore(tcgpu.generate.rmat(18, seed=1), ["naive"], engine="sim")
    assert ran(explorer) == []
    reason = "naive was refused: .* would take about .* in the simulator: take engine='cpu' without a method"
    assert re.match(reason, explorer.message)
    assert re.fullmatch(r"refused after \d+\.\d s: 0 rows", explorer.status.value)
    assert explorer.progress.value == 0


@pytest.fixture
def slow(monkeypatch):
    """A simulator that seems a hundred times as slow as it is."""
    real = simulated.slowness()
    monkeypatch.setattr(simulated, "slowness", lambda: 100 * real)


def statuses(explorer):
    """All that the status says from now on, in a list that grows."""
    said = []
    explorer.status.observe(lambda change: said.append(change.new), "value")
    return said


@pytest.mark.sim
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("page", share(PAGES, "forecast"))
def test_a_long_simulated_run_is_forecast_before_it_begins(explore, monkeypatch, page):
    monkeypatch.setattr(simulated, "LIMIT", 1e6)
    monkeypatch.setattr(panel, "RUN_LIMIT", 1e6)
    explorer = explore("mesh_16x16", ["naive", "column_block"], engine="sim", page=page)
    explorer.sweep.way.value, explorer.sweep.edges.value, explorer.sweep.limits.value = sweep_page.RUN, 500, (3, 5)
    said = statuses(explorer)
    ran(explorer)
    first = next(words for words in said if "naive" in words)
    assert re.search(r": 0.\d s of about [\d,]+ (seconds|minutes)$", first)
    assert explorer.status.value.startswith("done after")
    said.clear()
    ran(explorer)  # the rows of a sweep are kept, and take no time
    assert any("of about" in words for words in said) == (page != "Sweep")


@pytest.mark.sim
def test_a_short_run_or_one_without_the_simulator_has_no_forecast(explore):
    for engine in ("sim", "cpu"):
        explorer = explore(KARATE, ["naive" if engine == "sim" else "cpu"], engine=engine)
        said = statuses(explorer)
        ran(explorer)
        assert len(said) > 1 and not any("of about" in words for words in said)


@pytest.mark.sim
@pytest.mark.usefixtures("slow")
@pytest.mark.parametrize("page", share(PAGES, "too long"))
def test_a_run_that_would_take_too_long_is_refused_with_a_way_out(explore, page):
    explorer = explore("mesh_16x16", ["naive", "column_block"], engine="sim", page=page)
    explorer.sweep.way.value, explorer.sweep.edges.value, explorer.sweep.limits.value = sweep_page.RUN, 500, (3, 4)
    sources, runs = explorer.page.begin(explorer.graphs, explorer.method_runs())
    with simulated.limited(1e6):
        seconds = [explorer.page.forecast(source, source.make(), run) for source in sources for run in runs]
    assert all(each > 0 for each in seconds) and len(seconds) == len(sources) * 2
    limit = (max(seconds) + sum(seconds)) / 2  # each measurement is allowed, but not all of them
    explorer.max_seconds.value = f"{limit}"
    assert ran(explorer) == []
    total, allowed = simulated.duration(sum(seconds)), re.search(r"max_seconds=(\d+)$", explorer.message)[1]
    assert explorer.message == (
        f"this run would take about {total} in the simulator: take fewer methods or a smaller graph, "
        f"or allow it by max_seconds={allowed}"
    )
    assert explorer.status.value.startswith("refused after") and explorer.progress.value == 0
    explorer.max_seconds.value = allowed
    rows = ran(explorer)
    assert len(rows) == len(seconds) and explorer.message == ""
    assert f"max_seconds={allowed})" in explorer.python.value


@pytest.mark.sim
@pytest.mark.parametrize("page", share(PAGES, "no seconds"))
def test_no_seconds_are_suggested_that_cannot_be_entered(explore, monkeypatch, page):
    monkeypatch.setattr(simulated, "slowness", lambda: 1e12)
    explorer = explore("mesh_16x16", ["naive"], engine="sim", page=page)
    explorer.sweep.way.value, explorer.sweep.edges.value, explorer.sweep.limits.value = sweep_page.RUN, 500, (3, 4)
    assert ran(explorer) == [] and explorer.message.endswith("; at most 1,000,000 seconds can be allowed")


def test_a_long_sweep_of_estimates_is_forecast_and_refused(explore, monkeypatch):
    explorer = explore("mesh_16x16", ["naive", "bitmap"], page="Sweep")
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.LAUNCH, (4, 5)
    explorer.sweep.edges.value = 1_000
    assert explorer.wait(SOON)
    seconds = 4 * explorer.method_runs()[0].estimate_seconds  # the graphs of the range; the picked one has its star
    explorer.max_seconds.value = f"{max(1, 0.9 * seconds)}"
    assert ran(explorer) == [] and explorer.message.startswith("this run would take about ")
    explorer.max_seconds.value = ""
    said = statuses(explorer)
    assert len(ran(explorer)) == 6
    assert any(words.endswith(f" of about {simulated.duration(seconds)}") for words in said)


def test_medians_are_of_the_selected_number_of_runs(explore):
    explorer = explore(KARATE, ["naive", "cpu"], engine=None)
    explorer.repeats.value = "3"
    runs = {row["engine"]: row.get("repeats") for row in ran(explorer)}
    assert runs["cpu"] == 3 and runs.get("sim", 1) == 1


@pytest.mark.sim
@pytest.mark.parametrize("engine", ["sim", "cpu", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_the_three_timings_of_a_row_are_nested_and_the_page_says_what_they_are(explore, engine):
    methods = [method.name for method in tcgpu.methods() if engine in method.engines]
    explorer = explore(KARATE, methods, engine=engine)
    rows = ran(explorer)
    assert [row["method"] for row in rows] == methods
    for row in (*rows, *explorer.compare.recorded):
        assert 0 < row["kernel_ms"] <= row["process_ms"] <= row["total_ms"]
    for words in (
        "Kernel: from the first to the last",
        "Process: with allocation",
        "Total: with cleaning",
        "same runs",
    ):
        assert words in explorer.compare.note.value
    assert ("simulator" in explorer.compare.note.value) == (engine == "sim")


def test_the_timings_of_every_record_on_the_page_are_nested():
    rows = [row for graphs in records.counts().values() for rows in graphs.values() for row in rows]
    assert len(rows) > 100
    assert [row for row in rows if not 0 < row["kernel_ms"] <= row["process_ms"] <= row["total_ms"]] == []


# -------------------------------------------------------------------------------------------------------- run and stop


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_run_measures_and_shows(explore):
    explorer = explore(engine=None)
    before = bytes(explorer.compare.live_chart.value)
    explorer.run_button.click()
    assert explorer.busy  # it runs in the background
    assert explorer.wait(SOON)
    rows = explorer.rows
    assert [row["method"] for row in rows] == ["naive", "column_block", "cpu"]
    assert {row["triangles"] for row in rows} == {450}
    after = bytes(explorer.compare.live_chart.value)
    assert after.startswith(b"\x89PNG") and after != before
    assert all(f"<td>{row['method']}</td>" in explorer.compare.table.value for row in rows)
    assert explorer.progress.value == 1 and re.fullmatch(r"done after \d+\.\d s: 3 rows", explorer.status.value)
    assert not explorer.run_button.disabled and explorer.stop_button.disabled


LONG = {"graph": tcgpu.generate.clique(300), "methods": ["naive"], "engine": "sim"}  # takes more than half a minute


@pytest.fixture
def patient(monkeypatch):
    """No simulated run is refused because it takes long, as LONG would be on a slow machine."""
    monkeypatch.setattr("tcgpu.kernels.simulated.LIMIT", float("inf"))
    monkeypatch.setattr(panel, "RUN_LIMIT", float("inf"))


@pytest.mark.sim
@pytest.mark.usefixtures("patient")
def test_a_long_run_is_stopped_in_the_middle_and_earlier_rows_stay(explore):
    explorer = explore(**LONG)
    explorer.compare.keep.value = True
    explorer.graphs.source.value = "bundled"
    ran(explorer)
    explorer.graphs.source.value = "given"
    assert explorer.wait(SOON)
    explorer.run_button.click()
    until(lambda: "naive: " in explorer.status.value)
    assert explorer.busy and explorer.run_button.disabled and not explorer.stop_button.disabled
    explorer.run()  # does nothing while a run is in progress
    shown = explorer.compare.table.value
    explorer.compare.graph.value = explorer.compare.graph.options[1]  # the panel still works
    assert explorer.compare.table.value != shown
    begin = time.process_time()
    explorer.stop_button.click()
    assert explorer.wait(SOON) and time.process_time() - begin < 5
    assert explorer.status.value.startswith("stopped after") and explorer.message == ""
    assert [row["triangles"] for row in explorer.rows] == [450]
    assert not explorer.busy and explorer.stop_button.disabled
    explorer.graphs.source.value = "bundled"
    assert [row["triangles"] for row in ran(explorer)] == [450, 450]


@pytest.mark.sim
@pytest.mark.usefixtures("patient")
def test_progress_grows(explore):
    explorer = explore(**LONG)
    explorer.run()
    until(lambda: explorer.progress.value > 0)
    first = explorer.progress.value
    until(lambda: explorer.progress.value > first)
    assert explorer.progress.value < 1


@pytest.mark.sim
@pytest.mark.usefixtures("patient")
def test_explorers_are_independent(explore):
    one, two = explore(**LONG), explore("rmat_8", ["cpu"])
    one.run()
    until(lambda: one.busy and "naive: " in one.status.value)
    assert [row["triangles"] for row in ran(two)] == [2487]
    assert one.busy and one.rows == [] and one.message == ""
    two.engine.value = "sim"
    ran(two)
    assert two.message and not one.message
    two.stop()
    assert one.busy
    one.stop()
    assert one.wait(5)


@pytest.mark.parametrize("module, name", [(method_run, "measure"), (pages, "draw_timings")])
def test_an_unexpected_error_is_reported_and_the_panel_still_works(explore, monkeypatch, module, name):
    explorer = explore(KARATE, ["cpu"])
    with monkeypatch.context() as broken:
        broken.setattr(module, name, lambda *args, **more: 1 / 0)
        explorer.run()
        assert explorer.wait(SOON)
    assert explorer.message == "ZeroDivisionError: division by zero" and not explorer.busy
    assert isinstance(explorer.failure, ZeroDivisionError) and explorer.status.value.startswith("failed after")
    assert ran(explorer)[0]["triangles"] == 45 and explorer.failure is None


def test_methods_that_disagree_are_named(explore, monkeypatch):
    def wrong(graph, method, **settings):
        return tcgpu.measure(graph, "cpu", repeats=1)[:0] + [{**ROW, "method": method, "triangles": len(method)}]

    ROW = tcgpu.measure(KARATE, "cpu", repeats=1)[0]
    monkeypatch.setattr(method_run, "measure", wrong)
    monkeypatch.setattr(method_run, "timed_engine", lambda: "gpu")  # so that nothing is traced
    explorer = explore(KARATE, ["naive", "cpu"])
    explorer.run()
    assert explorer.wait(SOON)
    assert explorer.message == "RuntimeError: methods disagree on karate: naive 5, cpu 3"


def test_a_queued_run_can_be_stopped(explore):
    explorer, made = explore(KARATE, ["cpu"]), threading.Event()
    explorer._thread.submit("describe", lambda: made.wait(SOON))
    explorer.run()
    assert explorer.busy
    explorer.stop()
    assert not explorer.busy and explorer.status.value == "stopped before it began"
    made.set()
    assert explorer.wait(SOON) and explorer.rows == []
    assert ran(explorer)[0]["triangles"] == 45


def test_the_thread_ends_with_the_last_job_and_another_one_starts(explore):
    explorer = explore(KARATE, ["cpu"])
    until(lambda: all(thread.name != "tcgpu explorer" for thread in threading.enumerate()))
    assert ran(explorer)[0]["triangles"] == 45


def test_nothing_is_printed_into_the_notebook(explore):
    kinds = {type(widget) for widget in elements.everything(explore())}
    assert widgets.Output not in kinds and len(kinds) > 10
    assert issubclass(Explorer, widgets.VBox)


# ------------------------------------------------------------------------------------------------ rows, code, records


def test_rows_are_saved_as_csv(explore):
    explorer = explore(KARATE, ["cpu"])
    assert explorer.csv.value == ""
    rows = ran(explorer)
    [name] = re.findall('download="([^"]*)"', explorer.csv.value)
    [data] = re.findall('href="data:text/csv;base64,([^"]*)"', explorer.csv.value)
    [saved] = csv.DictReader(io.StringIO(base64.b64decode(data).decode()))
    assert name == "tcgpu-compare.csv" and saved.pop("cite") == elements.TCGPU
    assert saved == {key: str(value) for key, value in rows[0].items()}
    assert ">1 row as CSV<" in explorer.csv.value


def test_rows_of_earlier_runs_are_kept_on_request(explore):
    explorer = explore("rmat_8", ["cpu"])
    explorer.compare.keep.value = True
    ran(explorer)
    explorer.graphs.order.value = "degree"
    explorer.graphs.bundled.value = "random_300"
    assert [(row["graph"], row["order"]) for row in ran(explorer)][1:] == [("random_300", "degree")]
    explorer.compare.keep.value = False
    assert [row["graph"] for row in ran(explorer)] == ["random_300"]


@pytest.mark.sim
def test_the_code_that_is_shown_does_the_same(explore):
    explorer = explore("rmat_8", ["naive", "cpu"], order="degree", engine=None)
    explorer.methods.knobs["naive"]["threads"].value = "64"
    rows = ran(explorer)
    shown = re.sub("<[^>]*>", "", explorer.python.value).replace("&#x27;", "'")
    lines = shown.strip().splitlines()
    names = {"tcgpu": tcgpu}
    exec(lines[0], names)
    same = ("graph", "triangles", "method", "engine", "order", "knobs")
    for row, line in zip(rows, lines[1:], strict=True):
        found = eval(line, names)
        if row["engine"] == "traced":  # there is no GPU
            assert (found.triangles, found.graph.order) == (row["triangles"], row["order"])
            assert found.totals().items() <= row.items() and "order='degree', threads=64" in line
        else:
            assert [found[0][key] for key in same] == [row[key] for key in same]
            assert row["method"] == "cpu" or "knobs={'threads': 64}, order='degree'" in line


def notebook(root):
    """The text of the explorer's notebook."""
    cells = nbformat.read(root / "notebooks" / "explorer.ipynb", as_version=4).cells
    return "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")


def test_what_the_notebook_names_is_on_the_page(explore, root):
    explorer = explore()
    names = [*explorer.pages.titles, *explorer.methods.chips, *explorer.graphs.bundled._options_values]
    for control in elements.everything(explorer):
        names += [getattr(control, "description", ""), *map(str, getattr(control, "_options_labels", ()))]
    text = notebook(root)
    for name in re.findall(r"(?<!\*)\*([\w ]+)\*(?!\*)", text):  # in italics
        assert any(each == name or each.startswith(f"{name}, ") for each in names), name
    assert {"save", "max seconds", "Trace", "a full GPU", "this launch"} <= set(re.findall(r"\*([\w ]+)\*", text))
    assert "rmat_8" in names and "`rmat_8`" in text


def test_the_defaults_are_those_that_the_notebook_speaks_of(explore, root):
    explorer, text = explore(), notebook(root)
    assert "On the mesh, trace `column_block` with one column at a time, then with 27. With three nonzeros" in text
    assert (
        explorer.graphs.bundled.value.startswith("mesh")
        and round(explorer.graphs.picked().make().nonzeros_per_column) == 3
    )
    assert explorer.methods.chosen == ["naive", "column_block", "cpu"]
    assert explorer.methods.knobs["column_block"]["columns"].value == "27"
    assert "On the right are methods on a real GPU and a large graph" in text and explorer.page is explorer.compare
    assert explorer.compare.recorded[0]["engine"] == "gpu" and explorer.compare.recorded[0]["edges"] > 10**6
    assert "Without a GPU, times are estimated for *a full GPU*" in text
    assert explorer.sweep.way.value == (sweep_page.FULL if timed_engine() == "sim" else sweep_page.RUN)
    assert explorer.sweep.baseline.value == "naive"
    assert {row["edges"] > 10**6 for row in records.reference("sweep")} == {True}  # the grey lines
    assert "what takes too long: *max seconds*" in text and explorer.max_seconds.value == ""


@pytest.mark.sim
def test_what_the_notebook_says_of_traces_is_so(root):
    text, mesh = notebook(root), tcgpu.load("mesh_16x16")
    one, many = (tcgpu.trace(mesh, "column_block", columns=columns).totals() for columns in (1, 27))
    assert "compare the `steps`. Yet the estimated time is no longer." in text
    assert one["steps"] > 10 * many["steps"] and one["estimated_us"] <= many["estimated_us"]
    natural, degree = (tcgpu.trace(tcgpu.load("rmat_8"), "naive", order=order) for order in ("natural", "degree"))
    assert "differ in length, so some lanes of a warp work long after the others are done" in text
    assert natural.totals()["lanes"] < degree.totals()["lanes"] < 32


def lines_of_code(explorer):
    return html.unescape(re.sub("<[^>]*>", "", explorer.python.value)).strip().splitlines()


def test_the_code_stays_that_of_the_run_that_is_shown(explore):
    explorer = explore("rmat_8", ["cpu"])
    ran(explorer)
    before = lines_of_code(explorer)
    assert before == ["graph = tcgpu.load('rmat_8')", "tcgpu.measure(graph, 'cpu', repeats=5)"]
    explorer.graphs.bundled.value = "random_300"
    following = ["graph = tcgpu.load('random_300')", before[1]]
    assert lines_of_code(explorer) == ["# the run above", *before, "", "# the next run", *following]
    assert ran(explorer)[0]["graph"] == "random_300" and lines_of_code(explorer) == following


@pytest.mark.sim
@pytest.mark.usefixtures("patient")
def test_another_graph_may_be_picked_while_a_run_is_in_progress(explore):
    explorer = explore(**LONG)
    explorer.run()
    until(lambda: explorer.progress.value > 0)
    explorer.graphs.source.value = "bundled"
    assert lines_of_code(explorer)[:2] == ["# the run above", "graph = graph"]
    explorer.stop()
    assert explorer.wait(5)
    assert explorer.status.value.startswith("stopped after") and explorer.progress.value == 0
    assert lines_of_code(explorer)[:2] == ["# the run above", "graph = graph"]
    assert "256 vertices, 705 edges" in facts(explorer)


@pytest.mark.parametrize("page", share(PAGES, "rows"))
def test_rows_print_the_numbers_of_their_page(explore, page):
    explorer = explore(KARATE, ["naive"], engine="sim", page=page)
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.LAUNCH, (5, 5)
    [row, *_] = ran(explorer)
    heading, first, *_ = str(explorer.rows).splitlines()
    assert ("kernel ms" in heading) == (page == "Compare")
    assert ("estimated us" in heading) == (page != "Compare")
    assert ("load requests" in heading) == (page == "Trace")
    key = "kernel_ms" if page == "Compare" else "estimated_us"
    assert f"{row[key]:,.4g}" in first


def saved(chart):
    """Click the button that saves a chart: the names and contents of the files."""
    chart.save.click()
    found = re.findall('download="([^"]*)" href="data:[^;]*;base64,([^"]*)"', chart.links.value)
    return {name: base64.b64decode(data) for name, data in found}


@pytest.mark.usefixtures("drawn")
def test_a_sweep_is_saved_with_its_grey_curves(explore):
    explorer = explore("mesh_16x16", ["naive", "column_block"], page="Sweep")
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.LAUNCH, (2, 4)
    explorer.sweep.edges.value = 1_000
    ran(explorer)
    files = saved(explorer.sweep.chart)
    assert list(files) == [f"tcgpu-sweep-curves.{kind}" for kind in ("png", "svg", "csv")]
    assert files["tcgpu-sweep-curves.png"] == bytes(explorer.sweep.chart.value)
    assert b"<svg" in files["tcgpu-sweep-curves.svg"]
    points = list(csv.DictReader(io.StringIO(files["tcgpu-sweep-curves.csv"].decode())))
    assert {point["of"] for point in points} == {"estimated", "measured", "published", "the picked graph"}
    drawn = {(point["of"], float(point["nonzeros_per_column"])): point for point in points}
    [(x, y)] = explorer.sweep.picked_points()["column_block"]
    assert float(drawn["the picked graph", x]["speedup"]) == y
    x, y = explorer.sweep.recorded_curves()["column_block"][0]
    assert float(drawn["measured", x]["speedup"]) == y
    explorer.sweep.limits.value = (3, 4)  # draws another chart
    assert explorer.sweep.chart.links.value == ""


def test_charts_of_times_and_traces_are_saved(explore):
    explorer = explore(KARATE, ["cpu"])
    [row] = ran(explorer)
    [times] = csv.DictReader(io.StringIO(saved(explorer.compare.live_chart)["tcgpu-times.csv"].decode()))
    assert float(times["kernel_ms"]) == row["kernel_ms"]
    recorded = saved(explorer.compare.recorded_chart)["tcgpu-recorded-times.csv"].decode()
    assert len(list(csv.DictReader(io.StringIO(recorded)))) == len(explorer.compare.recorded)
    turn_to(explorer, explorer.traces)
    assert list(saved(explorer.traces.chart)) == ["tcgpu-trace.png", "tcgpu-trace.svg"]


def test_every_button_and_list_has_a_tooltip(explore):
    kinds = (widgets.Button, widgets.ToggleButton, widgets.FileUpload, widgets.Dropdown, widgets.Checkbox)
    controls = list(elements.everything(explore(KARATE)))
    assert [each.description for each in controls if isinstance(each, kinds) and not each.tooltip] == []
    [source] = [each for each in controls if isinstance(each, widgets.ToggleButtons)]
    assert len(source.tooltips) == len(source.options) == 4


@pytest.mark.usefixtures("drawn")
def test_records_of_gpus_are_shown_beside_what_is_measured(explore):
    explorer, known = explore(), records.counts()
    compare = explorer.compare
    assert list(compare.machine.options) == list(known)
    for machine in known:
        compare.machine.value = machine
        assert list(compare.graph.options) == list(known[machine])
        for graph in list(known[machine])[:3]:
            before = bytes(compare.recorded_chart.value)
            compare.graph.value = graph
            assert compare.recorded == known[machine][graph]
            assert compare.table.value.count('<tr class="recorded">') == len(known[machine][graph])
            after = bytes(compare.recorded_chart.value)
            assert after.startswith(b"\x89PNG")
            assert graph == list(known[machine])[0] or after != before
    assert machine in compare.table.value and known[machine][graph][0]["date"] in compare.table.value
    assert explorer.rows == []  # recorded rows are not among those that are saved


def test_without_records_only_measurements_are_shown(explore, monkeypatch):
    monkeypatch.setattr(records, "records", lambda suite: {})
    explorer = explore(KARATE, ["cpu"])
    assert explorer.compare.recorded == [] and ran(explorer)[0]["triangles"] == 45
    turn_to(explorer, explorer.sweep)
    assert explorer.sweep.recorded_curves() == {}


# ---------------------------------------------------------------------------------------------------------------- sweep


@pytest.fixture
def sweeping(explore):
    explorer = explore(KARATE, ["naive", "column_block"], engine="sim")
    turn_to(explorer, explorer.sweep)
    explorer.sweep.way.value = sweep_page.RUN
    explorer.sweep.edges.value = 200
    explorer.sweep.limits.value = (2, 4)
    return explorer


@pytest.mark.sim
def test_a_sweep_measures_the_graphs_in_its_range(sweeping):
    rows = ran(sweeping)
    assert [(row["nonzeros"], row["method"]) for row in rows] == [
        (k, method) for k in (2, 3, 4) for method in ("naive", "column_block")
    ]
    for row in rows:
        graph = tcgpu.generate.by_nonzeros(200, row["nonzeros"])
        assert (row["vertices"], row["edges"], row["triangles"]) == (graph.n, graph.m, tcgpu.count(graph))
    [(name, points)] = sweeping.sweep.curves().items()
    times = {(row["nonzeros"], row["method"]): row["kernel_ms"] for row in rows}
    assert name == "column_block"
    assert dict(points) == pytest.approx({k: times[k, "naive"] / times[k, "column_block"] for k in (2, 3, 4)})
    assert 'download="tcgpu-sweep.csv"' in sweeping.csv.value


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_a_wider_range_measures_only_what_is_new(sweeping, monkeypatch):
    first = list(ran(sweeping))
    measured = []

    def measure(graph, *rest, **more):
        rows = tcgpu.measure(graph, *rest, **more)
        measured.append(graph)
        return rows

    monkeypatch.setattr(method_run, "measure", measure)
    sweeping.sweep.limits.value = (1.5, 5)
    assert sorted({row["nonzeros"] for row in ran(sweeping)}) == [1.5, 2, 3, 4, 5]
    assert len(measured) == 4 and all(row in sweeping.rows for row in first)
    chart = bytes(sweeping.sweep.chart.value)
    sweeping.sweep.limits.value = (3, 5)  # a narrower range shows less of the same rows
    assert [x for x, _ in sweeping.sweep.curves()["column_block"]] == [3, 4, 5]
    assert bytes(sweeping.sweep.chart.value) != chart
    sweeping.methods.knobs["naive"]["threads"].value = "32"
    ran(sweeping)
    assert len(measured) == 4 + 3  # naive again


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_curves_are_speedups_or_times_per_edge(sweeping):
    rows = ran(sweeping)
    sweeping.sweep.baseline.value = "column_block"
    assert list(sweeping.sweep.curves()) == ["naive"]
    chart = bytes(sweeping.sweep.chart.value)
    sweeping.sweep.quantity.value = sweep_page.EDGE_TIME
    curves = sweeping.sweep.curves()
    assert bytes(sweeping.sweep.chart.value) != chart and set(curves) == {"naive", "column_block"}
    assert curves["naive"][0] == (2, pytest.approx(rows[0]["kernel_ms"] * 1e6 / rows[0]["edges"]))


@pytest.mark.sim
def test_only_methods_that_the_same_engine_ran_are_compared(sweeping):
    sweeping.engine.value = graph_card.DEFAULT
    sweeping.methods.choose("naive", "cpu")
    sweeping.engine.value = "sim"
    sweeping.methods.chips["cpu"].value = True
    ran(sweeping)
    assert sweeping.message == "cpu was refused: method 'cpu' runs on cpu, not on 'sim'"
    assert sweeping.sweep.curves() == {}


@pytest.mark.usefixtures("no_gpu")
def test_a_recorded_sweep_is_drawn_in_the_picked_order(explore):
    explorer = explore()
    turn_to(explorer, explorer.sweep)
    rows = records.records("sweep")[explorer.sweep.machine.value]
    assert explorer.sweep.machine.value == records.REFERENCE_GPU
    assert explorer.sweep.recorded_curves() == {"column_block": measured.speedup_curve(rows, 27)}
    explorer.engine.value, explorer.sweep.way.value = "gpu", sweep_page.RUN
    explorer.sweep.limits.value = (1, 64)  # fewer were set for the simulator
    both = explorer.sweep.recorded_curves()
    assert both.pop("column_block columns=fitting") == measured.speedup_curve(rows, "fitting") and len(both) == 1
    explorer.methods.knobs["column_block"]["columns"].value = "1"  # the record is of the launch that is picked
    assert list(explorer.sweep.recorded_curves().values()) == [measured.speedup_curve(rows, 1)]
    explorer.graphs.order.value = "degree"
    assert list(explorer.sweep.recorded_curves().values()) == [measured.speedup_curve(rows, 1, order="degree")]
    explorer.sweep.quantity.value = sweep_page.EDGE_TIME
    assert explorer.sweep.recorded_curves()["naive"] == measured.edge_times(rows, "naive", order="degree")
    explorer.sweep.machine.value = "none"
    assert explorer.sweep.recorded_curves() == {}


@pytest.mark.sim
def test_a_sweep_ends_where_no_graph_can_be_made(sweeping):
    sweeping.sweep.limits.value = (8, 16)
    rows = ran(sweeping)
    assert {row["nonzeros"] for row in rows} == {8}
    assert sweeping.message == "200 edges at 10 nonzeros per column leave 20 vertices, too few"


@pytest.mark.sim
def test_a_sweep_is_stopped_and_keeps_its_points(sweeping):
    sweeping.sweep.edges.value = 5_000
    sweeping.sweep.limits.value = (1, 64)
    sweeping.run()
    until(lambda: len(sweeping.rows) >= 2)
    sweeping.stop()
    assert sweeping.wait(5)
    assert 2 <= len(sweeping.rows) < 36 and sweeping.status.value.startswith("stopped after")


@pytest.mark.sim
@pytest.mark.parametrize("way", share([sweep_page.FULL, sweep_page.LAUNCH], "ways"))
def test_a_sweep_can_be_estimated(sweeping, way):
    sweeping.sweep.way.value, sweeping.sweep.gpu.value, sweeping.sweep.edges.value = way, "Tesla T4", 1_000
    sweeping.methods.chips["cpu"].value = True
    rows = ran(sweeping)
    methods, own = ("naive", "column_block"), round(KARATE.nonzeros_per_column, 3)
    assert [(row["nonzeros"], row["method"]) for row in rows] == [(k, name) for k in (2, 3, 4, own) for name in methods]
    times = {(row["nonzeros"], row["method"]): row["estimated_us"] for row in rows}
    estimate = tcgpu.estimate(KARATE, "naive", gpu="Tesla T4", fill=way == sweep_page.FULL, order="natural",
                              lane_steps=method_run.LANE_STEPS)  # fmt: skip
    assert times[own, "naive"] == pytest.approx(estimate.ms * 1e3)
    ratios = {k: times[k, "naive"] / times[k, "column_block"] for k in (2, 3, 4, own)}
    points = dict(sweeping.sweep.picked_points()["column_block"])
    assert dict(sweeping.sweep.curves()["column_block"]) | points == pytest.approx(ratios)
    assert set(points) == {own} and rows[-1]["graph"] == "karate"
    name = f"{'a full ' if way == sweep_page.FULL else ''}Tesla T4, estimated"
    assert "runs no kernel: cpu" in sweeping.sweep.note.value and f"<td>{name}</td>" in sweeping.sweep.table.value
    assert "Unverified: no GPU of the Turing generation was measured" in sweeping.sweep.note.value
    ran_on_t4 = sweeping.sweep.curves()
    sweeping.sweep.gpu.value = "NVIDIA H200"
    assert sweeping.sweep.curves() != ran_on_t4  # but what is on record
    sweeping.sweep.gpu.value, sweeping.sweep.edges.value = "Tesla T4", 1_000
    assert sweeping.sweep.curves() == ran_on_t4
    sweeping.methods.choose("cpu")
    ran(sweeping)
    assert sweeping.message.startswith("pick a method that runs kernels")


@pytest.mark.sim
def test_the_code_of_an_estimated_sweep_does_the_same(explore):
    explorer = explore("mesh_16x16", ["naive"])
    turn_to(explorer, explorer.sweep)
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.FULL, (5, 5)
    explorer.sweep.edges.value = 1_000
    rows = ran(explorer)
    shown = html.unescape(re.sub("<[^>]*>", "", explorer.python.value)).strip().splitlines()
    assert shown[0] == "for k in [5]:" and len(shown) == 5
    names = {"tcgpu": tcgpu, "k": 5}
    for make, estimate, row in zip(shown[1::2], shown[2::2], rows, strict=True):
        exec(make.strip(), names)
        assert eval(estimate, names).ms * 1e3 == pytest.approx(row["estimated_us"])


@pytest.fixture
def recorded(explore):
    """An explorer at its sweep, as it opens without a GPU."""
    explorer = explore("mesh_16x16", ["naive", "column_block", "cpu"], page="Sweep")
    explorer.sweep.way.value = sweep_page.FULL
    return explorer


def test_a_sweep_opens_with_the_estimates_on_record(recorded):
    page = recorded.sweep
    estimated = dict(measured.speedup_curve(records.records("curve")[page.gpu.value], 27, key="estimated_ms"))
    assert page.edges.value == 8_388_608 and recorded.rows == []
    assert dict(page.curves()["column_block"]) == pytest.approx(estimated) and max(estimated) == 64
    points = csv.DictReader(io.StringIO(saved(page.chart)["tcgpu-sweep-curves.csv"].decode()))
    assert {point["curve"] for point in points if point["of"] == "estimated"} == {"NVIDIA H200, estimated"}
    assert "and is on record" in page.note.value and "Unverified" not in page.note.value
    recorded.methods.chips["bitmap"].value = True
    assert list(page.curves()) == ["column_block", "bitmap"]
    for control, other in ((page.gpu, "Tesla T4"), (page.way, sweep_page.RUN), (recorded.graphs.order, "degree")):
        before, control.value = control.value, other
        assert page.curves() == {}, f"nothing is on record of {other}"
        control.value = before
        assert list(page.curves()) == ["column_block", "bitmap"] and page.edges.value == 8_388_608
    recorded.methods.knobs["naive"]["threads"].value = "32"
    assert page.curves() == {}
    recorded.methods.choose("cpu")
    assert page.curves() == {} and recorded.message == ""


@pytest.mark.sim
def test_a_picked_graph_is_a_star_on_the_curve_and_no_graph_of_the_sweep_is_made(recorded, monkeypatch):
    monkeypatch.setitem(GENERATORS, "by_nonzeros", None)
    opened = recorded.sweep.curves()
    rows = ran(recorded)
    assert recorded.message == "" and recorded.sweep.curves() == opened
    assert [row["method"] for row in rows if row["picked"]] == ["naive", "column_block"]
    [(x, y)] = recorded.sweep.picked_points()["column_block"]
    points = dict(opened["column_block"])
    assert 2 < x < 3 and points[2] / 1.2 < y < 1.2 * points[3]
    first, *code = lines_of_code(recorded)
    assert "benchmarks/estimates.py curve" in first and code[0] == "graph = tcgpu.load('mesh_16x16')" and len(code) == 3


@pytest.mark.usefixtures("drawn")
def test_the_report_is_drawn_where_it_compares_the_same(explore):
    explorer = explore()
    turn_to(explorer, explorer.sweep)
    [points] = explorer.sweep.published_curve().values()
    assert points == [
        (pytest.approx(x, abs=0.01), y) for x, y in ((1.05, 0.22), (3, 0.41), (7.39, 1.13), (36.94, 1.53))
    ]
    drawn = bytes(explorer.sweep.chart.value)
    explorer.graphs.order.value = "degree"
    assert explorer.sweep.published_curve() == {} and bytes(explorer.sweep.chart.value) != drawn
    explorer.graphs.order.value = "natural"
    for control, other in ((explorer.sweep.quantity, sweep_page.EDGE_TIME), (explorer.sweep.machine, "none")):
        before, control.value = control.value, other
        assert explorer.sweep.published_curve() == {}
        control.value = before
    assert explorer.sweep.published_curve()


def test_a_sweep_is_estimated_though_no_file_is_named_yet(explore):
    explorer = explore("mesh_16x16", ["naive"])
    turn_to(explorer, explorer.sweep)
    explorer.sweep.way.value, explorer.sweep.limits.value = sweep_page.LAUNCH, (5, 5)
    explorer.graphs.source.value = "a file"
    assert [row["nonzeros"] for row in ran(explorer)] == [5]


# ---------------------------------------------------------------------------- the first sight, and one kernel by itself


@pytest.mark.usefixtures("no_gpu")
def test_it_opens_on_the_curve_with_the_picked_graph_on_it(explore):
    explorer = explore(page=None)
    page = explorer.sweep
    assert explorer.page is page and explorer.rows == [] and explorer.status.value == "" and not explorer.busy
    points = list(csv.DictReader(io.StringIO(saved(page.chart)["tcgpu-sweep-curves.csv"].decode())))
    assert [(each, max(float(point["nonzeros_per_column"]) for point in points if point["of"] == each))
            for each in dict.fromkeys(point["of"] for point in points)] == [
        ("estimated", 64), ("the picked graph", pytest.approx(705 / 256, abs=0.01)), ("measured", 64),
        ("published", pytest.approx(36.94, abs=0.01)),
    ]  # fmt: skip
    assert dict.fromkeys(point["curve"] for point in points) == dict.fromkeys(
        ["NVIDIA H200, estimated", "NVIDIA H200, measured", "Tesla T4, published"]
    )
    assert "The star: mesh_16x16, 2.75 nonzeros per column; by estimate, column_block 0." in page.note.value


@pytest.mark.usefixtures("drawn")
def test_a_click_on_a_graph_moves_its_star(explore):
    explorer, seen = explore(page=None), set()
    for name in ("rmat_8", "by_nonzeros_5"):
        explorer.graphs.bundled.value = name
        assert explorer.wait(SOON) and explorer.rows == [] and explorer.message == ""
        [(x, y)] = explorer.sweep.picked_points()["column_block"]
        assert x == pytest.approx(tcgpu.load(name).nonzeros_per_column, abs=0.001) and name in explorer.sweep.note.value
        seen.add(bytes(explorer.sweep.chart.value))
    assert len(seen) == 2
    explorer.sweep.gpu.value = "Tesla T4"
    assert explorer.wait(SOON) and explorer.sweep.picked_points()["column_block"][0][1] != y
    explorer.graphs.source.value = "a file"  # none is named yet
    assert "The star" not in explorer.sweep.note.value
    explorer.graphs.source.value = "bundled"
    turn_to(explorer, explorer.compare)
    explorer.graphs.bundled.value = "rmat_8"
    assert explorer.wait(SOON) and explorer.sweep.picked_points() == {}  # not before the page is shown
    turn_to(explorer, explorer.sweep)
    assert explorer.wait(SOON) and explorer.sweep.picked_points()


def test_methods_that_are_given_are_compared():
    assert tcgpu.explore(KARATE, ["naive"]).page.title == "Compare"


@pytest.mark.sim
@pytest.mark.parametrize("kernel", share(["naive", "column_block", "bitmap", "bitmap_warp", "warp_search"], "kernels"))
def test_a_small_explorer_runs_one_kernel(explore, kernel):
    explorer = explore("rmat_8", page=None, kernel=kernel)
    assert repr(explorer) == f"<Explorer of {kernel}: bundled graph>"
    assert set(explorer.sweep.picked_points()) == {"column_block", kernel} - {"naive"}
    [row, *timed] = ran(explorer)
    traced = tcgpu.trace(tcgpu.load("rmat_8"), kernel)
    assert (row["engine"], row["triangles"]) == ("traced", 2487) and row["load_requests"] == traced.totals()[
        "load_requests"
    ]
    assert [each["engine"] for each in timed] == ([timed_engine()] if timed_engine() != "sim" else [])
    assert f"<td>{row['machine']}, estimated</td>" in explorer.sweep.table.value
    assert lines_of_code(explorer)[1] == f"tcgpu.trace(graph, {kernel!r})"
    assert explorer.code == f"tcgpu.explore('rmat_8', kernel={kernel!r})" == eval(explorer.code).code


def test_a_small_explorer_is_of_a_kernel():
    with pytest.raises(tcgpu.MethodError, match="no method 'cpu'"):
        tcgpu.explore(kernel="cpu")


# ---------------------------------------------------------------------------------------- times that may be compared


@pytest.fixture
def no_gpu(monkeypatch):
    for module in (method_run, sweep_page):
        monkeypatch.setattr(module, "timed_engine", lambda: "sim")


@pytest.mark.sim
@pytest.mark.usefixtures("no_gpu")
def test_without_a_gpu_kernels_are_traced_and_their_times_estimated(explore):
    explorer = explore(KARATE, ["naive", "cpu"])
    explorer.compare.gpu.value = "Tesla T4"
    traced, native = ran(explorer)
    assert (traced["engine"], traced["machine"], traced["triangles"]) == ("traced", "Tesla T4", 45)
    assert native["engine"] == "cpu" and "kernel_ms" not in traced and traced["load_requests"] > 0
    assert "Tesla T4, estimated" in explorer.compare.table.value and "Unverified" in explorer.compare.note.value
    assert lines_of_code(explorer)[1] == "tcgpu.trace(graph, 'naive', gpu='Tesla T4')"
    assert traced["estimated_us"] == tcgpu.trace(KARATE, "naive", gpu="Tesla T4").totals()["estimated_us"]


@pytest.mark.sim
@pytest.mark.parametrize("page", ["Compare", "Sweep"])
def test_times_of_the_simulator_are_never_beside_those_of_a_processor(explore, page):
    explorer = explore(KARATE, ["naive", "column_block", "cpu"], engine="sim", page=page)
    explorer.compare.keep.value = True
    explorer.sweep.way.value, explorer.sweep.edges.value, explorer.sweep.limits.value = sweep_page.RUN, 200, (2, 3)
    explorer.sweep.quantity.value = sweep_page.EDGE_TIME
    rows = list(ran(explorer))
    assert {row["engine"] for row in rows} == {"sim"}
    lines = [line for line in explorer.page.table.value.split("<tr") if "recorded" not in line]  # these have many times
    assert len(lines) > 2 and not any(f"{row['kernel_ms']:.4g}" in line for row in rows for line in lines)
    if page == "Sweep":
        points = csv.DictReader(io.StringIO(saved(explorer.sweep.chart)["tcgpu-sweep-curves.csv"].decode()))
        assert {point["of"] for point in points} == {"this run"}
        return
    explorer.engine.value = graph_card.DEFAULT
    explorer.methods.choose("cpu")
    assert [row["engine"] for row in ran(explorer)] == ["sim", "sim", "cpu"]
    drawn = csv.DictReader(io.StringIO(saved(explorer.compare.live_chart)["tcgpu-times.csv"].decode()))
    assert [row["method"] for row in drawn] == ["cpu"]


# ------------------------------------------------------------------------------------------- to share, to cite, to run


def test_a_line_opens_the_explorer_as_it_is(explore):
    explorer = explore("mesh_16x16", ["naive", "column_block"], order="degree", page="Sweep")
    explorer.methods.knobs["column_block"]["columns"].value = "4"
    page, explorer.max_seconds.value = explorer.sweep, "77"
    page.way.value, page.limits.value = sweep_page.LAUNCH, (2, 8)
    page.edges.value, page.quantity.value = 2_000, sweep_page.EDGE_TIME
    [share_button] = [each for each in elements.everything(explorer) if getattr(each, "description", "") == "share"]
    share_button.click()
    line = html.unescape(re.sub("<[^>]*>", "", explorer.view.value))
    assert line == explorer.code and "'column_block.columns': 4" in line and "'sweep.limits': (2, 8)" in line
    again = eval(line)
    assert again.wait(SOON) and again.code == line and again.message == ""
    assert again.sweep.edges.value == 2_000 and again.method_runs() == explorer.method_runs()
    explorer.graphs.source.value = "generated"
    assert explorer.code.startswith("tcgpu.explore(tcgpu.generate.rmat(scale=8, edge_factor=6), ")
    assert explorer.wait(SOON)
    with pytest.raises(tcgpu.MethodError, match="no setting 'sweep.wy'"):
        tcgpu.explore(settings={"sweep.wy": 1})


@pytest.mark.usefixtures("drawn")
def test_what_is_saved_says_what_to_cite(explore, root):
    explorer = explore(KARATE, ["cpu"])
    [row] = ran(explorer)
    [data] = re.findall('href="data:text/csv;base64,([^"]*)"', explorer.csv.value)
    [line] = csv.DictReader(io.StringIO(base64.b64decode(data).decode()))
    assert line["cite"] == elements.TCGPU and tcgpu.__version__ in elements.TCGPU
    turn_to(explorer, explorer.sweep)
    explorer.methods.choose("naive", "warp_search")
    explorer.methods.knobs["warp_search"]["threads"].value = "64"
    assert explorer.wait(SOON)
    files, cite = saved(explorer.sweep.chart), elements.citation(["naive", "warp_search"])
    assert "Iakovidis" in cite and "TriCore" in cite and html.escape(cite) in explorer.sweep.chart.links.value
    assert cite.encode() in files["tcgpu-sweep-curves.png"] and cite.encode() in files["tcgpu-sweep-curves.svg"]
    assert {point["cite"] for point in csv.DictReader(io.StringIO(files["tcgpu-sweep-curves.csv"].decode()))} == {cite}
    known = " ".join((root / "CITATION.cff").read_text().split())
    for paper in elements.PAPERS.values():
        assert re.search(r": (.*), [\w ]*\d{4}\.$", paper)[1] in known
    assert {method.source for method in COUNTED} - {"ours"} == set(elements.PAPERS)


def test_the_code_of_an_uploaded_file_runs(explore, root):
    explorer = explore(methods=["cpu"])
    explorer.graphs.source.value = "a file"
    upload(explorer, "mine.mtx", (root / "data" / "graphs" / "rmat_8.mtx").read_bytes())
    [row] = ran(explorer)
    names = {"tcgpu": tcgpu}
    make, count = lines_of_code(explorer)
    exec(make, names)
    assert eval(count, names)[0]["triangles"] == row["triangles"] == 2487


# --------------------------------------------------------------------------------------------------------------- traces


@pytest.fixture
def tracing(explore):
    explorer = explore(KARATE, ["naive", "column_block", "cpu"])
    turn_to(explorer, explorer.traces)
    return explorer


@pytest.mark.sim
def test_methods_are_traced(tracing):
    rows = ran(tracing)
    expected = tcgpu.trace(KARATE, ["naive", "column_block"]).totals()
    assert [(row["method"], row["triangles"]) for row in rows] == [("naive", 45), ("column_block", 45)]
    assert [row["load_sectors"] for row in rows] == [row["load_sectors"] for row in expected]
    assert list(tracing.traces.traces) == list(tracing.traces.of.options) == ["naive", "column_block"]
    assert (
        "runs no kernel: cpu" in tracing.traces.note.value and "estimated from the trace" in tracing.traces.note.value
    )
    assert "<td>column_block</td>" in tracing.traces.table.value and 'download="tcgpu-trace.csv"' in tracing.csv.value
    assert "tcgpu.trace(graph, &#x27;naive&#x27;)" in tracing.python.value


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_every_picture_of_a_trace_is_drawn(tracing):
    empty = bytes(tracing.traces.chart.value)
    ran(tracing)
    seen = {empty}
    tracing.traces.of.value = "column_block"
    for picture in tracing.traces.picture.options:
        tracing.traces.picture.value = picture
        seen.add(bytes(tracing.traces.chart.value))
    assert len(seen) == 1 + len(tracing.traces.picture.options)
    tracing.traces.picture.value = trace_page.SOURCE
    for by in tracing.traces.by.options[:3]:
        tracing.traces.by.value = by
        seen.add(bytes(tracing.traces.chart.value))
    assert len(seen) == 3 + len(tracing.traces.picture.options)  # the first is by time, as before


def test_lists_that_change_nothing_are_switched_off(tracing):
    page = tracing.traces
    on = {picture: [not control.disabled for control in (page.of, page.kernel, page.by)]
          for picture in page.picture.options if not setattr(page.picture, "value", picture)}  # fmt: skip
    assert on.pop(trace_page.SOURCE) == [True, True, True] and on.pop(trace_page.ALL_METHODS) == [False, False, False]
    assert set(map(tuple, on.values())) == {(True, True, False)}


@pytest.mark.sim
def test_a_trace_is_drawn_once(tracing, monkeypatch):
    drawn, page = [], tracing.traces
    monkeypatch.setattr(page, "draw_charts", drawn.append)
    monkeypatch.setattr(panel, "DRAW_EVERY", float("inf"))
    ran(tracing)
    assert [len(rows) for rows in drawn] == [2]  # where it takes a second, after each method, too
    monkeypatch.setattr(panel, "DRAW_EVERY", -1.0)
    ran(tracing)
    assert [len(rows) for rows in drawn] == [2, 1, 2]
    for k, method in enumerate(("column_block", "naive"), 4):
        page.of.value = method
        assert len(drawn) == k and page.kernel.value in page.kernel.options


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_the_kernel_of_a_trace_can_be_picked(explore):
    explorer = explore(tcgpu.generate.rmat(6, edge_factor=6, seed=1), ["adaptive"], order="degree")
    turn_to(explorer, explorer.traces)
    ran(explorer)
    kernels = explorer.traces.kernel.options
    assert len(kernels) > 2 and explorer.traces.kernel.value in kernels
    pictures = set()
    for kernel in kernels:
        explorer.traces.kernel.value = kernel
        pictures.add(bytes(explorer.traces.chart.value))
    assert len(pictures) == len(kernels)


@pytest.mark.sim
@pytest.mark.usefixtures("drawn")
def test_a_picture_that_a_trace_cannot_show_is_no_error(explore):
    explorer = explore(tcgpu.generate.path(3), ["naive"])
    turn_to(explorer, explorer.traces)
    ran(explorer)
    for picture in explorer.traces.picture.options:
        explorer.traces.picture.value = picture
    assert explorer.message == ""


@pytest.mark.sim
@pytest.mark.usefixtures("patient")
def test_a_long_trace_is_stopped(explore):
    explorer = explore(tcgpu.generate.clique(200), ["naive"])
    turn_to(explorer, explorer.traces)
    explorer.run()
    until(lambda: "tracing naive: " in explorer.status.value)
    explorer.stop()
    assert explorer.wait(5) and explorer.rows == [] and explorer.status.value.startswith("stopped after")


@pytest.mark.sim
def test_a_graph_that_is_too_large_to_trace_is_refused(explore):
    explorer = explore(tcgpu.generate.rmat(16, seed=1), ["naive"])
    turn_to(explorer, explorer.traces)
    assert ran(explorer) == [] and "in the simulator: take a smaller graph" in explorer.message
