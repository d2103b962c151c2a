"""Frames of the stepper: triangles are exact, look-ups are as many as the kernels make, the layout does not change."""

import re
from bisect import bisect_right
from collections import Counter
from itertools import zip_longest

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import sparse_graphs
from test_costs import reads

import tcgpu
from helpers import costs
from tcgpu import TcgpuError
from tcgpu.errors import GraphError
from tcgpu.insight import trace_plan
from tcgpu.insight.events import MEMORY_SHIFT
from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.lab import stepper
from tcgpu.lab.stepper import frames, search_steps
from tcgpu.lab.stepper.frames import LOOKS, Cells, Matrix, RowIdx
from tcgpu.registry import METHODS, on_engine

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
KNOBS = {
    "column_block": [{"columns": 1}, {"tile": 3}, {"columns": 64, "threads": 1}],
    "bitmap": [{"lanes": 1, "word": 32}],
    "bitmap_thread": [{"registers": 3}],
    "bitmap_warp": [{"lanes": 1, "fold": 0}, {"lanes": 32, "word": 64}],
    "bitmap_block_global": [{"lanes": 3, "fold": 5}],
    "merge_path": [{"lanes": 1}, {"lanes": 7}, {"lanes": 32}],
    "warp_search": [{"cached": False}, {"lanes": 2}, {"lanes": 1}, {"lanes": 32}],
    "levels": [{"skip": True}],
    "adaptive": [
        {"near": 0},
        {"near": 64, "hubs": 0, "crowd": 1},
        {"near": 20, "hubs": 20, "heavy": 0},
        {"near": 5, "hubs": 2},
        {"order": "natural", "words": 4, "short": 2},
        {"order": "bfs", "words": 0},
    ],
}
EVERY = [(method, knobs) for method in stepper.SHOWN for knobs in [{}, *KNOBS.get(method, [])]]
every_method = pytest.mark.parametrize("method", stepper.SHOWN)
every_setting = pytest.mark.parametrize("method, knobs", EVERY, ids=lambda value: str(value))


def frames_of(graph, method, **knobs):
    return list(stepper.steps(graph, method, **knobs))


def triangles_of(graph):
    return sorted(tuple(triangle) for chunk in tcgpu.list_triangles(graph) for triangle in chunk.tolist())


# ------------------------------------------------------------------------------------------------ triangles and totals


@every_setting
def test_the_triangles_of_all_steps_are_those_of_the_graph(method, knobs):
    shown = frames_of(CLUB, method, **knobs)
    graph = shown[0].scene.graph
    assert sorted(shown[-1].triangles) == triangles_of(graph), "each once, and no other"
    found, lookups = 0, 0
    for frame in shown:
        found += frame.new
        assert len(frame.triangles) == found and frame.triangles == shown[-1].triangles[:found]
        assert frame.lookups >= lookups + (frame.new > 0), "a step that finds triangles makes look-ups"
        lookups = frame.lookups


@given(sparse_graphs(20), st.sampled_from(EVERY))
def test_the_triangles_of_any_graph_are_found(graph, setting):
    method, knobs = setting
    shown = frames_of(graph, method, **knobs)
    found = list(shown[-1].triangles) if shown else []
    assert sorted(found) == triangles_of(shown[0].scene.graph if shown else graph)


@every_method
def test_the_scene_names_the_method_and_vertices_do_not_overlap(method):
    scene = frames_of(CLUB, method)[0].scene
    assert scene.method == method and scene.unit in ("comparisons", "look-ups", "combinations")
    assert scene.graph.order == ("degree" if method == "adaptive" else "natural")
    assert scene.points.shape == (CLUB.n, 2)
    apart = np.hypot(*np.moveaxis(scene.points[:, None] - scene.points, -1, 0)) + 9 * np.eye(CLUB.n)
    assert apart.min() > 0.18, "inches"


@every_setting
def test_every_cell_has_a_known_style(method, knobs):
    for frame in frames_of(CLUB, method, **knobs):
        assert frame.title and frame.caption.endswith(".") and "  " not in frame.caption
        assert set(frame.vertices) <= set(range(CLUB.n)) and set(frame.vertices.values()) <= set(LOOKS)
        for panel in frame.panels:
            if isinstance(panel, Cells):
                assert len(panel.values) == len(panel.looks) <= panel.room and set(panel.looks) <= set(LOOKS)
                assert {*panel.heads, *(panel.marks or ())} <= set(range(len(panel.values)))
            elif isinstance(panel, Matrix):
                assert [len(line) for line in panel.looks] == [len(panel.columns)] * len(panel.rows)
                assert {look for line in panel.looks for look in line} <= {*LOOKS, ""}
            else:
                assert isinstance(panel, RowIdx)
                assert all(0 <= position < frame.scene.graph.m for position in panel.read)


@every_method
def test_panels_keep_their_layout_while_a_kernel_runs(method):
    """Panels keep their kind, their size and whether they have room for heads and marks."""
    layouts = {}
    for frame in frames_of(CLUB, method):
        phase = frame.title.split()[0] if method in ("levels", "adaptive") else method
        layout = [
            (type(panel), getattr(panel, "room", 0), getattr(panel, "marks", 0) is None) for panel in frame.panels
        ]
        assert layouts.setdefault(phase, layout) == layout, frame.title


@every_method
def test_hits_are_the_corners_of_new_triangles(method):
    for frame in frames_of(CLUB, method):
        new = {v for triangle in frame.triangles[len(frame.triangles) - frame.new :] for v in triangle}
        assert {v for v, look in frame.vertices.items() if look == "hit"} <= new
        assert all(frame.vertices[v] in ("hit", "looked") for v in new)


# ------------------------------------------------------------------------------- against costs and simulated kernels


def lookups(graph, method, **knobs):
    shown = frames_of(graph, method, **knobs)
    return shown[-1].lookups if shown else 0


SMALL = {"club": CLUB, "by degree": CLUB.ordered("degree"), "rmat": tcgpu.generate.rmat(5, 6, seed=2)}
every_graph = pytest.mark.parametrize("graph", SMALL.values(), ids=SMALL)


@every_graph
def test_merges_compare_as_often_as_the_kernels(graph):
    compared = lookups(graph, "naive", order="natural")
    assert compared == costs.comparisons(graph).sum()
    assert lookups(graph, "column_block", tile=400) == compared


@pytest.mark.sim
@every_graph
@pytest.mark.parametrize("tile", [1, 5, 64])
def test_column_block_reads_as_often_as_the_kernel(graph, tile):
    shown = frames_of(graph, "column_block", columns=4, tile=tile)
    begun = sum("takes nonzero" in frame.caption for frame in shown)
    plan = METHODS["column_block"].plan(graph, columns=4, tile=tile)
    assert reads(plan, "row_idx") == graph.m + begun + shown[-1].lookups  # copied, a row a nonzero, of columns i


@pytest.mark.sim
@every_graph
@pytest.mark.parametrize("lanes", [1, 4, 32])
def test_merge_path_compares_as_often_as_the_kernel(graph, lanes):
    compared = lookups(graph, "merge_path", lanes=lanes)
    assert reads(METHODS["merge_path"].plan(graph, lanes=lanes), "row_idx") == graph.m * lanes + 2 * compared


COMPARES = {  # method -> the lines of its source that read the rows of a picture, and how many each lane reads in one
    "naive": (["x, y = a[p], b[q]"], 2),
    "merge_path": (["if a[p + middle] <= b[q", "x, y = a[p], b[q]"], 2),
    "thread_search": (["if values[place + half] <= key"], 1),
    "bitmap_thread": (["row = row_idx[q]"], 1),
}


def reads_of_threads(launch, text):
    """Thread -> the positions in `row_idx` that it reads at the line of the source with this text, in order."""
    events, found = launch.events, {}
    for request in np.argsort(events.step, kind="stable").tolist():
        site, accesses = events.sites[events.site[request]], slice(*events.first[request : request + 2])
        addresses, step = events.address[accesses], events.step[request]
        if text in site.function.text(site.line) and events.memories[addresses[0] >> MEMORY_SHIFT] == "row_idx":
            first = int(events.block[step]) * launch.threads + 32 * int(events.warp[step])
            positions = (addresses & (1 << MEMORY_SHIFT) - 1) // events.size[request]
            for lane, position in zip(events.lane[accesses].tolist(), positions.tolist(), strict=True):
                found.setdefault(first + lane, []).append(position)
    return found


@pytest.mark.sim
@pytest.mark.parametrize("method", COMPARES)
def test_pictures_read_what_the_kernel_is_recorded_to_read(method):
    """Position by position, for each nonzero, or each column that a thread has, in the order of a simulated launch."""
    lines, each = COMPARES[method]
    lanes = {"lanes": 4} if method == "merge_path" else {}
    by_column = method == "bitmap_thread"
    with on_engine(METHODS[method], "sim"):
        launch = trace_plan(METHODS[method].plan(CLUB, **lanes))[0][-1]
    expected, shown = {}, {}
    for line in lines:
        read = reads_of_threads(launch, line)
        for task in range(CLUB.n if by_column else CLUB.m):
            threads = range(task * lanes.get("lanes", 1), (task + 1) * lanes.get("lanes", 1))
            by_lane = [[*zip(*[iter(read.get(thread, ()))] * each, strict=True)] for thread in threads]
            steps = zip_longest(*by_lane, fillvalue=())
            expected.setdefault(task, []).extend([k for positions in step for k in positions] for step in steps)
    numbers = {ends: e for e, ends in enumerate(zip(CLUB.row_idx.tolist(), CLUB.col_of.tolist(), strict=True))}
    for frame in frames_of(CLUB, method, **lanes):
        if ends := re.search(r"nonzero \((\d+), (\d+)\)", frame.title):
            i, j = map(int, ends.groups())
            (panel,) = (panel for panel in frame.panels if isinstance(panel, RowIdx))
            task = j if by_column else numbers[i, j]
            shown.setdefault(task, []).extend([list(panel.read)] if panel.read else [])
    with_reads = {task: read for task, read in expected.items() if read}
    assert {task: read for task, read in shown.items() if read} == with_reads and len(with_reads) > 9


@pytest.mark.sim
@pytest.mark.parametrize("method", ["bitmap", "bitmap_warp", "bitmap_block_shared", "bitmap_block_global"])
def test_pictures_of_bitmaps_read_the_rows_that_the_kernel_is_recorded_to_read(method):
    """Also those that are loaded behind the last row of a column, where a lane stops."""
    with on_engine(METHODS[method], "sim"):
        launch = trace_plan(METHODS[method].plan(CLUB, lanes=2))[0][-1]
    loads = ["row = row_idx[q]"] if method == "bitmap" else ["a, b = row_idx[q]", "c, d = row_idx[q", "a = row_idx[q]"]
    recorded, shown = Counter(), Counter()
    for line in loads:
        for read in reads_of_threads(launch, line).values():
            recorded.update(read)
    for frame in frames_of(CLUB, method, lanes=2):
        if "nonzero" in frame.title:
            shown.update(k for panel in frame.panels if isinstance(panel, RowIdx) for k in panel.read)
    assert shown == recorded and shown.total() > CLUB.m


@every_graph
def test_bitmap_looks_up_as_often_as_the_kernel(graph):
    assert lookups(graph, "bitmap") == costs.lookups(graph).sum() == lookups(graph, "bitmap", lanes=1)


@pytest.mark.sim
@every_graph
@pytest.mark.parametrize("lanes", [1, 2, 8])
@pytest.mark.parametrize("method", ["bitmap_warp", "bitmap_block_global"])
def test_bitmaps_with_a_fold_look_up_as_often_as_the_kernels(graph, method, lanes):
    plan = METHODS[method].plan(graph, lanes=lanes, fold=5, threads=32)
    looked_up = lookups(graph, method, lanes=lanes)
    written = graph.column_lengths[graph.column_lengths > 1].sum()  # each by an atomic, which reads it too
    assert reads(plan, "bits") - written == looked_up == lookups(graph, "bitmap_block_shared", lanes=lanes)


@pytest.mark.sim
@every_graph
def test_bitmap_thread_reads_as_often_as_the_kernel(graph):
    shown = frames_of(graph, "bitmap_thread")
    captions = [frame.caption for frame in shown]
    stopped = sum("is skipped" in caption for caption in captions)
    steps = [int(steps) for steps in re.findall(r"searched for, in (\d+) step", " ".join(captions))]
    long = graph.column_lengths[graph.column_lengths > 1]
    rows = long[long <= 12].sum()  # to registers
    around = long.size + 2 * (long - 1).sum()  # a column's last row; where each list begins and ends
    searched = sum(steps) + len(steps)  # and whether it is the row
    plan = METHODS["bitmap_thread"].plan(graph)
    assert reads(plan, "row_idx") == rows + around + searched + shown[-1].lookups + stopped


@pytest.mark.sim
@every_graph
def test_searches_take_as_many_steps_as_the_kernels(graph):
    """Also those of warps, if no edge has more than 32 look-ups, so that edges share a warp."""
    shown = frames_of(graph, "thread_search")
    steps = sum(frame.caption.startswith("Step") for frame in shown)
    read = graph.m + 2 * shown[-1].lookups + steps  # a row i an edge; of each look-up the key and the row it ends at
    assert reads(METHODS["thread_search"].plan(graph), "row_idx") == read
    assert reads(METHODS["warp_search"].plan(graph), "row_idx") == read


@every_graph
@pytest.mark.parametrize("knobs", [{}, {"lanes": 32}, {"cached": False}], ids=str)
def test_the_shorter_column_is_looked_up_in_the_longer(graph, knobs):
    behind = graph.col_ptr[graph.col_of + 1] - np.arange(graph.m) - 1
    shorter = np.minimum(behind, graph.column_lengths[graph.row_idx])
    assert lookups(graph, "warp_search", **knobs) == lookups(graph, "thread_search") == shorter.sum()


@every_graph
def test_levels_test_every_combination_of_every_chunk(graph):
    chunks = split(graph, shared_bits=10**6, machines=1)
    assert lookups(graph, "levels") == chunks.total_tests > lookups(graph, "levels", skip=True)


@pytest.mark.sim
@pytest.mark.parametrize("name", ["club", "rmat"])
@pytest.mark.parametrize("crowd", [1, 4, 10**6])
def test_windows_look_up_as_often_as_the_kernels(name, crowd):
    graph = SMALL[name].ordered("degree")
    knobs = {"near": 64, "hubs": 0, "crowd": crowd}
    plan = METHODS["adaptive"].plan(graph, near=graph.n, hubs=0, crowd=crowd)
    assert 4 * reads(plan, "quads") == lookups(graph, "adaptive", **knobs) > 0


@pytest.mark.sim
def test_hubs_read_as_many_rows_of_bits_as_the_kernel():
    """All vertices are hubs and all columns heavy; a row of bits is a word for each of 32 lanes."""
    graph = CLUB.ordered("degree")
    plan = METHODS["adaptive"].plan(graph, near=graph.n, hubs=graph.n, heavy=0)
    assert reads(plan, "hub_rows") == 32 * lookups(graph, "adaptive", near=64, hubs=64, heavy=0) > 0


@pytest.mark.sim
def test_a_trace_counts_as_many_loads_as_the_steps_show():
    def loads(method, what, **knobs):
        return sum(line["loads"] for line in tcgpu.trace(CLUB, method, **knobs).lines() if what in line["text"])

    assert loads("naive", "x, y = a[p], b[q]") == 2 * lookups(CLUB, "naive")
    assert loads("levels", "& joined", memory="global", threads=64) == 2 * lookups(CLUB, "levels")


def test_windows_look_up_the_rows_after_i_of_each_column():
    """Without those that fill up four: d (d - 1) / 2 for a column with d rows, where column i has a row."""
    graph = CLUB.ordered("degree")
    looked_up = [
        frame.panels[2].values[k]
        for frame in frames_of(CLUB, "adaptive", near=64, hubs=0)
        if "look-ups at a time" in frame.caption
        for k, look in enumerate(frame.panels[2].looks)
        if look in ("looked", "hit")
        if frame.panels[2].values[k] != "pad" and frame.panels[2].values[k] > int(frame.title.split()[-1])
    ]
    i, j = graph.edges()
    after = graph.col_ptr[j + 1] - np.arange(graph.m) - 1
    assert len(looked_up) == after[graph.column_lengths[i] > 0].sum()


# -------------------------------------------------------------------------------------------------------------- pieces


@given(st.sets(st.integers(0, 60), min_size=1, max_size=40), st.sampled_from([1, 2, 4, 8, 32]), st.integers(0, 60))
def test_a_search_ends_at_the_last_row_not_past_its_key(rows, parts, key):
    rows = sorted(rows)
    parts = parts if len(rows) > parts else 1
    steps, ends = search_steps.search_tree(len(rows), parts)
    assert [len(places) for places in steps] == [2**level for level in range(len(steps))]
    assert len(ends) == 2 ** len(steps)
    node = 0
    for places in steps:
        node = 2 * node + (places[node] < len(rows) and rows[places[node]] <= key)
    assert (rows[ends[node]] == key) == (key in rows)
    if key >= rows[0]:
        assert rows[ends[node]] == rows[bisect_right(rows, key) - 1]
    probed = {place for places in steps[: parts.bit_length() - 1] for place in places} - {len(rows)}
    assert probed <= set(search_steps.cached_positions(len(rows), parts)) and len(probed) < parts


def test_words_for_captions():
    assert [frames.listed(range(1, n)) for n in (1, 2, 3, 4)] == ["none", "1", "1 and 2", "1, 2 and 3"]
    assert frames.counted(1, "row") == "1 row" and frames.counted(1200, "row") == "1,200 rows"


# ----------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize("method", [method for method, shown in stepper.SHOWN.items() if shown.each != "graph"])
def test_one_column_or_one_edge_can_be_shown(method):
    whole = set(frames_of(CLUB, method)[-1].triangles)
    assert set(frames_of(CLUB, method, column=0)[-1].triangles) == {t for t in whole if t[0] == 0}
    for edge in ((2, 0), (0, 2)):
        assert set(frames_of(CLUB, method, edge=edge)[-1].triangles) == {t for t in whole if t[:2] == (0, 2)}


def test_automatic_methods_are_shown_as_the_method_they_choose():
    assert frames_of(CLUB, "report_auto")[0].scene.method == "naive"
    assert frames_of(tcgpu.generate.clique(20), "report_auto")[0].scene.method == "column_block"
    assert frames_of(CLUB, "bitmap_auto")[0].scene.method == METHODS["bitmap_auto"].plan(CLUB).method


def test_any_kind_of_graph_is_shown():
    assert len(frames_of(nx.karate_club_graph(), "naive")[-1].triangles) == 45
    assert len(frames_of((np.array([0, 0, 1]), np.array([1, 2, 2])), "naive")[-1].triangles) == 1


@pytest.mark.parametrize(
    "method, knobs, complaint",
    [
        ("cpu", {}, "'cpu' runs on cores, not on a GPU; the stepper shows naive, "),
        ("nave", {}, "'nave' is not a method"),
        ("naive", {"lanes": 4}, "the stepper shows naive without a knob 'lanes'; it has none"),
        ("bitmap", {"fold": 4}, "its knobs are lanes, word"),
        ("bitmap", {"lanes": 0}, "lanes is a whole number from 1 to 32"),
        ("warp_search", {"lanes": 3}, "lanes is one of 1, 2, 4"),
        ("warp_search", {"cached": "yes"}, "cached is one of False, True"),
        ("naive", {"order": "odd"}, "no order 'odd'"),
        ("naive", {"column": 34}, "column is a whole number from 0 to 33"),
        ("naive", {"edge": (0, 9)}, "vertices 9 and 0 are not joined"),
        ("naive", {"edge": (0, 1), "column": 0}, "a column or an edge, not both"),
        ("levels", {"column": 0}, "levels is shown on a whole graph"),
        ("adaptive", {"edge": (0, 1)}, "adaptive is shown on a whole graph"),
    ],
)
def test_bad_arguments_are_refused(method, knobs, complaint):
    with pytest.raises(TcgpuError) as error:
        stepper.steps(CLUB, method, **knobs)
    assert complaint in str(error.value)


def test_a_graph_too_large_for_a_picture_is_refused():
    with pytest.raises(GraphError, match="room for 64 vertices and 400 edges, not for 65 and 64"):
        stepper.steps(tcgpu.generate.path(65), "naive")
    with pytest.raises(GraphError, match="not for 40 and 780"):
        stepper.steps(tcgpu.generate.clique(40), "naive")


def test_every_method_that_runs_kernels_is_shown():
    assert set(METHODS) == {*stepper.SHOWN, "report_auto", "bitmap_auto", "cpu"}
