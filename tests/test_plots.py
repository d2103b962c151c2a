"""The charts, tested by what is on their axes."""

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import figures
from tcgpu.lab import plots

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())


def parts(picture):
    """The collections of lines, polygons and dots on a picture's only axes."""
    return picture.axes[0].collections


def test_a_picture_shows_itself_in_a_notebook():
    picture = plots.draw_graph(CLUB)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture) == "<Picture of 1 chart>\n- 78 segments\n  34 dots\n  34 texts"


def test_a_graph_has_a_line_per_edge_a_dot_per_vertex_and_a_patch_per_triangle():
    triangles = np.concatenate(list(tcgpu.list_triangles(CLUB)))
    lines, patches, dots = parts(plots.draw_graph(CLUB, triangles=triangles))
    assert len(lines.get_segments()) == CLUB.m
    assert len(patches.get_paths()) == 45
    assert len(dots.get_offsets()) == CLUB.n


def test_positions_can_be_given_and_vertex_labels_can_be_text():
    named = tcgpu.Graph.from_networkx(nx.Graph([("a", "b"), ("b", "c")]))
    places = [[0, 0], [1, 0], [1, 1]]
    assert parts(plots.draw_graph(named, positions=places))[-1].get_offsets().tolist() == places
    assert plots.layout(named).shape == (3, 2)


def test_columns_are_squares_at_their_nonzeros_in_two_colours():
    others, chosen = parts(plots.draw_columns(CLUB, looked_at=[0, 1]))
    assert len(others.get_offsets()) + len(chosen.get_offsets()) == CLUB.m
    assert len(chosen.get_offsets()) == len(CLUB.column(0)) + len(CLUB.column(1))
    assert {tuple(point) for point in chosen.get_offsets().tolist()} == {
        (j, i) for j in (0, 1) for i in CLUB.column(j).tolist()
    }


def test_column_lengths_have_a_line_per_graph():
    lines = plots.draw_column_lengths({"club": CLUB, "star": tcgpu.generate.star(9)}).axes[0].lines
    assert sum(lines[0].get_ydata()) == CLUB.n and sum(lines[1].get_ydata()) == 9


# -------------------------------------------------------------------------------------------------------- the text form


def chart():
    ax = figures.axes(nrows=1)
    ax.plot([1, 2, 4], [3.0, 1.5, 0.25], label="measured")
    ax.bar(["here", "there"], [2, 5])
    ax.scatter([1, 2], [7, 9])
    ax.set(title="a title", xlabel="place", ylabel="ms", yscale="log")
    return ax


def test_the_text_form_says_what_is_drawn():
    assert repr(chart().figure).splitlines() == [
        "<Picture of 1 chart>",
        '- "a title"',
        '  x "place" of here, there',
        '  y "ms" logarithmic',
        '  line "measured": 3 points, x 1 to 4 (mean 2.333), y 0.25 to 3 (mean 1.583)',
        "  2 bars: 2 to 5 (mean 3.5)",
        "  2 dots: x 1 to 2 (mean 1.5), y 7 to 9 (mean 8)",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda ax: ax.lines[0].set_data([1, 2, 4], [3.0, 1.5, 0.26]),
        lambda ax: ax.lines[0].set_label("published"),
        lambda ax: ax.lines[0].remove(),
        lambda ax: ax.containers[0][1].set_height(6),
        lambda ax: ax.set(yscale="linear"),
        lambda ax: ax.set(ylabel="s"),
        lambda ax: ax.annotate("9", (2, 9)),
        lambda ax: ax.imshow([[1, 2]], extent=(1, 2, 1, 2)),
        lambda ax: ax.axvspan(1, 2),
        lambda ax: ax.figure.add_subplot().plot([1]),
    ],
)
def test_the_text_form_of_another_chart_differs(change):
    ax = chart()
    before = repr(ax.figure)
    change(ax)
    assert repr(ax.figure) != before
