"""The web page of a trace, tested by its recording: what the player shows is what was traced."""

import base64
import json
import re
import zlib

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import GraphError
from tcgpu import __main__ as command_line
from tcgpu.insight import web_page
from tcgpu.insight.events import MEMORY_SHIFT
from tcgpu.insight.pictures import BY
from tcgpu.registry import METHODS

pytestmark = pytest.mark.sim
CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
ON_GPU = [name for name, method in METHODS.items() if "sim" in method.engines]


@pytest.fixture(scope="module")
def traces():
    return dict(zip(ON_GPU, tcgpu.trace(CLUB, ON_GPU), strict=True))


@pytest.fixture(scope="module")
def naive(traces):
    return traces["naive"]


def view(part, kind):
    return next(view for view in part["views"] if view["kind"] == kind)


@pytest.mark.parametrize("method", ON_GPU)
def test_a_recording_has_the_numbers_of_every_line(traces, method):
    trace = traces[method]
    parts = web_page.recording(trace)["parts"]
    assert parts[0]["name"] == trace.main().kernel
    for part in parts:
        kernel = part["name"].removesuffix(", set-up")
        source = view(part, "source")
        rows = {(function, line): k for k, (function, line, _) in enumerate(source["rows"])}
        for measure in source["measures"]:
            key = "share" if measure["name"] == "time" else measure["name"]
            expected = {(row["function"], row["line"]): row[key] for row in trace.lines(None, kernel)}
            assert {place: measure["amounts"][rows[place]] for place in expected} == expected
            assert sum(map(bool, measure["amounts"])) == sum(map(bool, expected.values()))


@pytest.mark.parametrize("method", ON_GPU)
def test_a_recording_has_every_access_of_the_warps_that_it_shows(traces, method):
    trace = traces[method]
    for part in web_page.recording(trace)["parts"]:
        events = trace.main(part["name"].removesuffix(", set-up")).events
        assert part["sequences"][0]["steps"] == np.unique(events.block * 32 + events.warp, return_counts=True)[1].max()
        for sequence in part["sequences"]:
            steps = np.flatnonzero((events.block == sequence["block"]) & (events.warp == sequence["warp"]))
            assert sequence["steps"] == steps.size and sequence["columns"]["active"] == events.mask[steps].tolist()
            assert accesses_of(sequence) == accesses(events, steps)


def accesses_of(sequence):
    """(Step, kind, memory, bytes of an element, lane, byte) of every access in a sequence, sorted."""
    return sorted(
        (step, kind, memory, size, lane, byte)
        for step, requests in enumerate(sequence["columns"]["requests"])
        for kind, _, memory, size, *_, lanes, addresses in requests
        for lane, byte in zip([lane for lane in range(32) if lanes >> lane & 1], addresses, strict=True)
    )


def accesses(events, steps):
    """The same of the events in these steps."""
    chosen = np.isin(events.step[events.request], steps)
    request, address = events.request[chosen], events.address[chosen]
    kinds = [events.sites[number].kind for number in events.site[request].tolist()]
    numbers = (address >> MEMORY_SHIFT, events.size[request], events.lane[chosen], address % (1 << MEMORY_SHIFT))
    of_step = np.searchsorted(steps, events.step[request])
    return sorted(zip(of_step.tolist(), kinds, *(x.tolist() for x in numbers), strict=True))


def test_costs_of_requests_are_those_of_the_trace(traces, monkeypatch):
    """Sectors and conflicts of all requests in a recording of all warps add up to the trace's totals."""
    trace = traces["bitmap_block_shared"]
    monkeypatch.setattr(web_page, "shares", lambda needed: needed)
    parts = web_page.recording(trace)["parts"]
    assert len(parts) == len(trace.launches) and all("All of its warps" in part["note"] for part in parts)
    columns = [sequence["columns"] for part in parts for sequence in part["sequences"]]
    requests = [request for column in columns for step in column["requests"] for request in step]
    totals = trace.totals(None)
    for kind in ("load", "store", "atomic"):
        assert sum(sectors for this, *_, sectors, _, _, _, _ in requests if this == kind) == totals[f"{kind}_sectors"]
    assert sum(conflicts for *_, conflicts, _, _ in requests) == totals["bank_conflicts"] > 0


@pytest.mark.parametrize("method", ON_GPU)
def test_the_page_of_a_small_graph_is_small(traces, method, tmp_path):
    path = tmp_path / "page.html"
    traces[method].save_page(path)
    assert 20_000 < path.stat().st_size < 700_000


def test_what_is_left_out_is_said(naive, monkeypatch):
    events = naive.main().events
    every = np.unique(events.block * 32 + events.warp, return_counts=True)[1]
    monkeypatch.setattr(web_page, "shares", lambda needed: [5000 for _ in needed])
    part = web_page.recording(naive)["parts"][0]
    shown = len(part["sequences"])
    assert 1 < shown < every.size
    assert [sequence["steps"] for sequence in part["sequences"]] == sorted(every.tolist(), reverse=True)[:shown]
    assert f"{shown} of its {every.size} warps can be stepped through: those with the most steps." in part["note"]
    monkeypatch.setattr(web_page, "shares", lambda needed: [300 for _ in needed])
    part = web_page.recording(naive)["parts"][0]
    (sequence,) = part["sequences"]
    assert 1 < sequence["steps"] < every.max()
    cut = f"its first {sequence['steps']} steps of {every.max()}"
    assert cut in sequence["name"] and cut in part["note"]


@pytest.mark.parametrize("needed", [[5], [10, 90, 900], [400, 400, 10], [10**6] * 7, []])
def test_the_room_of_a_page_is_shared(needed):
    given = web_page.shares(needed, 600)
    assert all(0 < one <= most for one, most in zip(given, needed, strict=True))
    assert sum(given) >= min(600, sum(needed)) - len(needed) and sum(given) <= 600


@pytest.mark.parametrize("graph", ["nothing", "one edge"])
def test_graphs_with_nothing_to_count_have_a_page(graph):
    from kernel_shapes import small_graphs

    for trace in tcgpu.trace(small_graphs()[graph], ON_GPU):
        assert json.loads(json.dumps(web_page.recording(trace), allow_nan=False))["parts"]


def packed(text):
    return json.loads(zlib.decompress(base64.b64decode(text)))


def test_a_page_is_one_file_that_loads_nothing(naive, tmp_path):
    naive.save_page(tmp_path / "page.html", by="load_sectors")
    text = (tmp_path / "page.html").read_text()
    assert "default-src 'none'" in text
    addresses = re.findall(r"https?://[^\s\"']+", text)
    assert set(addresses) <= {"http://www.w3.org/2000/svg", "http://www.w3.org/1999/xhtml"}, "names, not links"
    assert not re.search(r"<(link|img|iframe)|\bsrc=|\bimport\b", text)
    recording = packed(text.partition('id="recording">')[2].partition("</script>")[0])
    assert recording == json.loads(json.dumps(web_page.recording(naive, "load_sectors")))
    assert {view(part, "source")["first"] for part in recording["parts"]} == {"load_sectors"}


def test_an_unknown_measure_is_refused(naive, tmp_path):
    with pytest.raises(GraphError, match="no measure 'luck'"):
        naive.save_page(tmp_path / "page.html", by="luck")
    assert not list(tmp_path.iterdir())


def test_the_shell_writes_pages(tmp_path, capsys):
    tcgpu.write(tcgpu.generate.clique(6), tmp_path / "k6.txt")
    kept, page, same = (str(tmp_path / name) for name in ("k6.trace", "k6.html", "same.html"))
    graph = [str(tmp_path / "k6.txt"), "--method", "naive"]
    assert command_line.main(["trace", *graph, "-o", page, "--by", "steps"]) == 0
    assert command_line.main(["trace", *graph, "-o", kept]) == 0
    assert command_line.main(["trace", kept, "--open", "-o", same, "--by", "steps"]) == 0
    capsys.readouterr()
    first, second = (
        packed(open(path).read().partition('id="recording">')[2].partition("<")[0]) for path in (page, same)
    )
    for recording in first, second:
        recording["facts"] = re.sub(r"Graph \S+:", "Graph:", recording["facts"])
    assert first == second and "20 triangles" in first["facts"]


def test_idle_lanes_are_those_that_take_no_part(naive):
    for row in naive.lines():
        assert row["idle_lanes"] == 32 * row["steps"] - row["lane_steps"]
    assert "idle_lanes" in BY
