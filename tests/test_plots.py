"""The charts, tested by what is on their axes."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.patches import Patch

import tcgpu
from tcgpu import figures, plots

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())


def parts(picture):
    """The collections of lines, polygons and dots on a picture's only axes."""
    return picture.axes[0].collections


def test_a_picture_shows_itself_in_a_notebook():
    picture = plots.draw_graph(CLUB)
    assert picture._repr_png_().startswith(b"\x89PNG")
    assert repr(picture) == "<Picture of 1 chart>\n- 78 segments, grey\n  34 dots, blue\n  34 texts"


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


def test_column_lengths_have_a_line_per_graph_and_a_place_for_empty_columns():
    picture = plots.draw_column_lengths({"club": CLUB, "star": tcgpu.generate.star(9)})
    (ax,) = picture.axes
    assert [sum(line.get_ydata()) for line in ax.lines] == [CLUB.n, 9]
    assert len({line.get_marker() for line in ax.lines}) == 2
    picture.draw_without_rendering()
    ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
    said = {round(place, 9): label.get_text() for place, label in ticks}
    assert said[0.5] == "0" and said[1] == "1" and said[10] == "10"


def test_a_colour_blind_reader_can_distinguish_all_series():
    """Distances in CIELAB after the matrices of Machado, Oliveira and Fernandes (2009), of severity 1."""
    matrices = {
        "all colours": np.eye(3),
        "no red": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
        "no green": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "no blue": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
    }
    colors = np.array([to_rgb(look.color) for look in figures.LOOKS])
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    for matrix in matrices.values():
        lab = cielab(np.clip(linear @ np.transpose(matrix), 0, 1))
        apart = np.linalg.norm(lab[:, None] - lab, axis=2)[np.triu_indices(len(lab), 1)]
        assert apart.min() > 15, "2.3 can just be seen"
        first = np.linalg.norm(lab[:4, None] - lab[:4], axis=2)[np.triu_indices(4, 1)]
        assert first.min() > 25
    for name in ("marker", "dashes", "hatch"):
        assert len({getattr(look, name) for look in figures.LOOKS}) == len(figures.LOOKS)


def cielab(linear):
    """CIELAB (white D65) of linear sRGB colours, a row each."""
    to_xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = linear @ np.transpose(to_xyz) / (0.9505, 1, 1.089)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116).T
    return np.stack((116 * y - 16, 500 * (x - y), 200 * (y - z)), axis=1)


# -------------------------------------------------------------------------------------------------------- the text form


def chart():
    ax = figures.axes(nrows=1)
    ax.plot([1, 2, 4], [3.0, 1.5, 0.25], color=figures.BLUE, label="measured")
    ax.axhline(1, color="black")
    ax.bar(["here", "there"], [2, 5], color=figures.ORANGE)
    ax.scatter([1, 2], [7, 9], color=[figures.BLUE, "#123456"])
    ax.imshow([[1, 2], [np.nan, 3]], cmap=LinearSegmentedColormap.from_list("", [figures.ORANGE, figures.BLUE]))
    ax.legend(handles=[Patch(color=figures.GREY, label="idle")])
    ax.set(title="a title", xlabel="place", ylabel="ms", yscale="log")
    return ax


def test_bars_without_names_have_places():
    ax = figures.axes()
    ax.barh([0, 2], [3, 4], left=[0, 1], color=figures.BLUE)
    assert "2 bars, blue: 0 to 3 at 0, 1 to 5 at 2" in repr(ax.figure)


def test_the_text_form_says_what_is_drawn():
    assert repr(chart().figure).splitlines() == [
        "<Picture of 1 chart>",
        '- "a title"',
        '  x "place" of here, there',
        '  y "ms" logarithmic reversed',
        '  line "measured", blue: (1, 3), (2, 1.5), (4, 0.25)',
        "  line, black: across, at y 1",
        "  2 bars, orange: here 2, there 5",
        "  2 dots, 1 blue and 1 #123456: x 1 to 2 (mean 1.5), y 7 to 9 (mean 8)",
        "  image of 2 x 2, orange to blue: 1 2; - 3",
        "  legend: idle in grey",
    ]


@pytest.mark.parametrize(
    "change",
    [
        lambda ax: ax.lines[0].set_data([1, 2, 4], [3.0, 1.5, 0.26]),
        lambda ax: ax.lines[0].set_data([1, 2, 4], [1.5, 3.0, 0.25]),
        lambda ax: ax.lines[0].set_color(figures.ORANGE),
        lambda ax: ax.lines[0].set_label("published"),
        lambda ax: ax.lines[0].remove(),
        lambda ax: ax.containers[0][1].set_height(6),
        lambda ax: ax.containers[0][1].set_y(1),
        lambda ax: ax.containers[0][1].set_x(-0.4),
        lambda ax: [bar.set_height(7 - bar.get_height()) for bar in ax.containers[0]],
        lambda ax: ax.images[0].set_data([[1, np.nan], [2, 3]]),
        lambda ax: ax.images[0].set_cmap(ax.images[0].cmap.reversed()),
        lambda ax: ax.legend(handles=[Patch(color=figures.BLUE, label="idle")]),
        lambda ax: ax.invert_yaxis(),
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
