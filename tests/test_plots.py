"""Pictures: that each draws what it is given, judged by what is on its axes."""

import json

import networkx as nx
import numpy as np

import tcgpu
from tcgpu import levels
from tcgpu.lab import plots

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())


def parts(picture):
    """The line, polygon and dot collections of a picture's only axes, in order."""
    return picture.axes[0].collections


def test_a_picture_shows_itself_in_a_notebook():
    picture = plots.draw_graph(CLUB)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture) == "<Picture size 500x500 with 1 Axes>"


def test_a_graph_is_a_line_an_edge_a_dot_a_vertex_a_patch_a_triangle():
    triangles = np.concatenate(list(tcgpu.list_triangles(CLUB)))
    lines, patches, dots = parts(plots.draw_graph(CLUB, triangles=triangles))
    assert len(lines.get_segments()) == CLUB.m
    assert len(patches.get_paths()) == 45
    assert len(dots.get_offsets()) == CLUB.n


def test_positions_may_be_given_and_labels_need_not_be_numbers():
    named = tcgpu.Graph.from_networkx(nx.Graph([("a", "b"), ("b", "c")]))
    places = [[0, 0], [1, 0], [1, 1]]
    assert parts(plots.draw_graph(named, positions=places))[-1].get_offsets().tolist() == places
    assert plots.layout(named).shape == (3, 2)


def test_columns_are_squares_at_their_nonzeros_and_those_looked_at_stand_out():
    others, chosen = parts(plots.draw_columns(CLUB, looked_at=[0, 1]))
    assert len(others.get_offsets()) + len(chosen.get_offsets()) == CLUB.m
    assert len(chosen.get_offsets()) == len(CLUB.column(0)) + len(CLUB.column(1))
    assert {tuple(point) for point in chosen.get_offsets().tolist()} == {
        (j, i) for j in (0, 1) for i in CLUB.column(j).tolist()
    }


def test_levels_stand_side_by_side_and_each_chunk_lies_under_its_own():
    chunks = levels.split(CLUB, shared_bits=299, machines=2, roots=1)
    upper, lower = plots.draw_levels(CLUB, chunks).axes
    (dots,) = upper.collections
    at = dict(zip(chunks.order.tolist(), dots.get_offsets().tolist()))
    assert len({tuple(point) for point in at.values()}) == CLUB.n
    assert {v for v, (x, _) in at.items() if x == 1} == set(CLUB.column(0).tolist()), "the neighbours of the root"
    assert len([text for text in upper.texts if not text.get_text()]) == CLUB.m
    assert len(lower.patches) == len(chunks) and len({bar.get_facecolor() for bar in lower.patches}) == 2
    assert all(f"{tests:,} combinations" in text.get_text() for tests, text in zip(chunks.tests, lower.texts))


def test_schedules_show_every_job_on_its_machine_and_the_bound():
    schedules = {order: levels.schedule([1, 1, 4, 2], 2, order) for order in ("given", "longest")}
    given, longest = plots.draw_schedules(schedules).axes
    assert sorted((bar.get_x(), bar.get_width()) for bar in given.patches) == [(0, 1), (0, 1), (1, 2), (1, 4)]
    assert max(bar.get_x() + bar.get_width() for bar in longest.patches) == 4
    assert [list(ax.lines[0].get_xdata()) for ax in (given, longest)] == [[4, 4]] * 2
    assert "25.0% above" in given.get_title() and "0.0% above" in longest.get_title()


def test_a_timeline_shows_each_piece_where_it_began_and_ended():
    (panel,) = plots.draw_timeline({"copies": [(0, 2), (3, 4)], "kernels": [(2.5, 7)], "nothing": []}).axes
    assert [(bar.get_y() + bar.get_height() / 2, bar.get_x(), bar.get_width()) for bar in panel.patches] == [
        (0, 0, 2), (0, 3, 1), (1, 2.5, 4.5),
    ]  # fmt: skip
    assert [label.get_text() for label in panel.get_yticklabels()] == ["copies", "kernels", "nothing"]


def test_column_lengths_of_every_graph():
    lines = plots.draw_column_lengths({"club": CLUB, "star": tcgpu.generate.star(9)}).axes[0].lines
    assert sum(lines[0].get_ydata()) == CLUB.n and sum(lines[1].get_ydata()) == 9


def test_ratios_have_a_bar_for_each_other_library_and_say_where_one_was_not_done():
    rows = [
        {"graph": graph, "library": library, "raw_ratio": ratio}
        for graph, library, ratio in (("A", "tcgpu", 1), ("A", "slow", 12.3), ("B", "tcgpu", 1), ("B", "fast", 0.5))
    ]
    axes = plots.draw_ratios(rows).axes[0]
    assert sorted(bar.get_width() for bar in axes.patches) == [0, 0, 0.5, 12.3]
    said = [text.get_text() for text in axes.texts]
    assert said.count("not done in time") == 2 and "12x" in said and "A" in said


def measured(method, nonzeros, milliseconds, columns=None, order="natural"):
    """A row of a sweep, as far as it is drawn."""
    knobs = json.dumps({} if columns is None else {"columns": columns})
    where = {"graph": f"graph {nonzeros}", "order": order, "gpu_name": "GPU X", "edges": 1_000_000}
    return {"method": method, "nonzeros_per_column": nonzeros, "kernel_ms": milliseconds, "knobs": knobs} | where


def test_bars_stand_in_groups_with_their_numbers_and_differ_by_more_than_colour():
    picture = plots.draw_bars({"one": {"A": 1.0, "B": 2500.0}, "two": {"A": 0.125, "B": None}}, level=1)
    (ax,) = picture.axes
    assert sorted(bar.get_height() for bar in ax.patches) == [0.125, 1, 2500]
    assert {text.get_text() for text in ax.texts} == {"1", "0.125", "2,500"}
    assert [label.get_text() for label in ax.get_xticklabels()] == ["A", "B"]
    assert len({bar.get_hatch() for bar in ax.patches}) == 2
    assert [list(line.get_ydata()) for line in ax.lines] == [[1, 1]]


def test_curves_differ_by_marker_and_dash_and_their_axes_say_plain_numbers():
    picture = plots.draw_curves({name: [(1, 0.5), (k + 2, 2)] for k, name in enumerate("abcd")})
    (ax,) = picture.axes
    assert len({(line.get_marker(), line.get_linestyle()) for line in ax.lines}) == 4
    picture.draw_without_rendering()
    assert {"1", "2", "5"} <= {label.get_text() for label in ax.get_xticklabels()}
    assert plots.draw_curves({"linear": [(0, 0), (1, 1)], "none": []}, log="").axes[0].get_xscale() == "linear"


def test_the_reports_charts_show_every_machine():
    table = [
        {"graph": "auto", "vertices": 1, "edges": 7, "simple_ms": 2.0, "shared_ms": 1.0, "speedup": 2.0},
        {"graph": "coPapersCiteseer", "vertices": 1, "edges": 37, "simple_ms": 9.0, "shared_ms": 3.0, "speedup": 3.0},
    ]
    times = plots.draw_times({"X": table, "Y": table[:1]})
    assert [ax.get_title() for ax in times.axes] == ["X", "Y"]
    assert [len(ax.patches) for ax in times.axes] == [4, 2]
    speedups = plots.draw_speedups({"X": table, "Y": table[:1]}).axes[0]
    assert sorted(bar.get_height() for bar in speedups.patches) == [2, 2, 3]


def test_a_sweep_marks_where_each_line_crosses_one():
    rows = [measured("naive", 4.0, 1.0), measured("naive", 16.0, 1.0)]
    rows += [measured("column_block", 4.0, 2.0, columns=1), measured("column_block", 16.0, 0.5, columns=1)]
    rows += [measured("naive", 4.0, 1.0, order="degree"), measured("column_block", 4.0, 1.0, 1, "degree")]
    published = [{"edges": 37, "vertices": 1, "speedup": 1.5}]
    natural, degree = plots.draw_sweep(rows, published=published).axes
    assert "GPU X" in natural.get_title() and "natural" in natural.get_title() and "degree" in degree.get_title()
    assert [text.get_text() for text in natural.texts] == ["8.0"] and not degree.texts
    assert [37] in [list(line.get_xdata()) for line in natural.lines]


def test_lanes_show_the_longest_and_fill_up_with_waiting():
    mesh, even = plots.draw_lanes({"mesh": np.arange(32), "even": np.full(32, 3)}).axes
    assert sum(bar.get_height() for bar in mesh.patches) == 31 * 32
    assert mesh.get_title() == "mesh\n50% of its steps are used" and "100%" in even.get_title()


def test_peeling_shows_what_goes_and_leaves_it_out_of_the_next_round():
    numbers = np.zeros((2, CLUB.m), int)
    numbers[:, :10] = 2
    numbers[1, 10:15] = 3
    first, second = plots.draw_peeling(CLUB, numbers).axes
    stays, goes = (len(lines.get_segments()) for lines in first.collections[:2])
    assert (stays, goes) == (CLUB.m - 10, 10) and "10 of 78 edges go" in first.get_title()
    stays, goes = (len(lines.get_segments()) for lines in second.collections[:2])
    assert (stays, goes) == (CLUB.m - 15, 5) and "5 of 68 edges go" in second.get_title()


def test_truss_numbers_are_told_apart_and_counted():
    numbers = tcgpu.truss_numbers(CLUB)
    (ax,) = plots.draw_truss_numbers(CLUB, numbers).axes
    assert len(ax.collections[0].get_segments()) == CLUB.m
    said = [text.get_text() for text in ax.get_legend().get_texts()]
    assert said == [f"{k}: {np.count_nonzero(numbers == k)} edges" for k in np.unique(numbers)]


def test_trusses_are_a_line_a_graph():
    rows = [{"graph": name, "k": k, "total_ms": 5.0 * k, "gpu_name": "GPU X"} for name in "AB" for k in (3, 30, 100)]
    (ax,) = plots.draw_trusses(rows).axes
    assert [list(line.get_xdata()) for line in ax.lines] == [[3, 30, 100]] * 2 and "GPU X" in ax.get_title()


def test_a_roofline_has_a_dot_a_kernel_under_a_roof():
    """Two kernels: one that moves much for what it computes, one that computes."""
    facts = {"gpu_sms": 100, "cycles_per_second": 2e9, "copy_bytes_per_second": 4e12, "dram_write_bytes": 0}
    rows = [
        facts | {"kernel": "moves", "kernel_ms": 1, "instructions": 10**6, "dram_read_bytes": 10**8, "ncu_ns": 10**5},
        facts | {"kernel": "counts", "kernel_ms": 4, "instructions": 10**8, "dram_read_bytes": 10**6, "ncu_ns": 10**6},
    ]
    (ax,) = plots.draw_roofline(rows).axes
    roof, moves, counts = ax.lines
    assert max(roof.get_ydata()) == 800 and roof.get_ydata()[0] < 800
    assert [text.get_text() for text in ax.texts] == ["moves", "counts"]
    assert moves.get_xydata().round(4).tolist() == [[0.01, 10]]
    assert counts.get_ydata().tolist() == [100] and counts.get_markersize() > moves.get_markersize()


def test_lengths_are_cells_with_their_numbers_blue_where_the_first_wins():
    ratios = {"one over another": {(1, 1): 0.25, (1, 64): 8, (64, 64): 2.5}, "same": {(4, 4): 1}}
    first, second = plots.draw_lengths(ratios).axes
    numbers = {text.get_position(): text.get_text() for text in first.texts}
    assert numbers == {(0, 0): "0.25", (1, 0): "8", (1, 1): "2.5"}
    cells = first.images[0].get_array()
    assert cells[0].tolist() == [-2, 3] and np.isnan(cells.filled(np.nan)[1, 0])
    red, _, blue, _ = first.images[0].cmap(1.0)
    assert blue > red and [tick.get_text() for tick in first.get_xticklabels()] == ["1", "64"]
    assert second.get_title() == "same" and len(second.texts) == 1


def test_scaling_has_points_that_were_measured_simulated_and_published():
    """A line in one colour for what was measured and simulated of one graph."""
    measured = {"A": [(1, 1), (4, 3.7)], "B": [(1, 1), (2, 1.9)]}
    (ax,) = plots.draw_scaling(measured, {"A": [(8, 7), (64, 40)]}, {"slides": [(6, 4.4)]}, title="GPU X").axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines) == ["ideal", "A, simulated", "A, measured", "B, measured", "slides"]
    assert lines["ideal"].get_xydata().tolist() == [[1, 1], [64, 64]]
    assert lines["A, simulated"].get_color() == lines["A, measured"].get_color() != lines["B, measured"].get_color()
    assert lines["slides"].get_xydata().tolist() == [[6, 4.4]] and ax.get_title() == "GPU X"
