"""The chart of speedup against nonzeros per column: where its curves come from, and what is on its axes."""

import re
from itertools import combinations, pairwise

import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.text import Text
from recorded import SWEEP

from helpers import measured
from tcgpu import records
from tcgpu.figures import LOOKS
from tcgpu.insight.pictures import ACTIVITIES
from tcgpu.lab import sweep
from tcgpu.lab.explorer.pages import SHADES
from tcgpu.lab.sweep import ESTIMATED, MEASURED, NOW, PICKED, PUBLISHED, Curve, crossings

CURVES = [
    Curve("ACME 1", ESTIMATED, [(4, 0.5), (16, 2.0)]),
    Curve("ACME 2", PUBLISHED, [(2, 0.25), (8, 0.5)]),
    Curve("ACME 1", MEASURED, [(4, 0.4), (16, 0.5)]),
]


def curves_on(ax):
    """The drawn curves: the name and kind of each -> the line."""
    return {line.get_gid(): line for line in ax.lines if line.get_gid()}


def test_curves_cross_where_a_straight_line_between_logarithms_does():
    assert crossings([(1, 0.5), (4, 2.0)]) == pytest.approx([2.0])
    assert crossings([(1, 0.5), (2, 1.0), (4, 2.0), (8, 0.5)]) == pytest.approx([2.0, 4 * 2**0.5])
    assert crossings([(1, 2.0), (2, 3.0)]) == crossings([(1, 0.5)]) == crossings([]) == []


def test_the_report_gained_with_nonzeros_per_column():
    points = sweep.published_speedups()
    assert points == [
        (pytest.approx(x, abs=0.01), y) for x, y in ((1.05, 0.22), (3, 0.41), (7.39, 1.13), (36.94, 1.53))
    ]


def test_curves_are_of_one_number_of_columns():
    assert measured.speedup_curve(SWEEP, 1) == [(4.0, 0.25)]
    assert measured.speedup_curve(SWEEP, 27) == [(4.0, 0.5)]
    assert measured.speedup_curve(SWEEP, "fitting") == [(4.0, 1.0), (64.0, 3.0)]
    assert measured.speedup_curve(SWEEP, 1, order="degree") == []
    assert measured.edge_times(SWEEP, "naive") == [(4.0, 10_000.0), (64.0, 90_000.0)]
    assert measured.edge_times(SWEEP, "column_block", 27) == [(4.0, 20_000.0)]


def test_the_curves_are_the_estimate_the_report_and_every_record(monkeypatch):
    estimated = [row | {"gpu_name": "ACME 3", "estimated_ms": row["kernel_ms"], "kernel_ms": 1} for row in SWEEP]
    found = {"sweep": {"ACME 1": SWEEP, "ACME 2": SWEEP}, "curve": {"ACME 3": estimated}}
    monkeypatch.setattr(records, "records", found.__getitem__)
    points = [(4.0, 0.5)]
    assert measured.sweep_curves() == [
        ("ACME 3", ESTIMATED, points),
        ("Tesla T4", PUBLISHED, sweep.published_speedups()),
        ("ACME 1", MEASURED, points),
        ("ACME 2", MEASURED, points),
    ]


def test_the_recorded_estimate_agrees_with_what_was_measured():
    """Of the same launches of the same graphs."""
    rows = records.reference("curve")
    took, found = (dict(measured.speedup_curve(rows, 27, key=key)) for key in ("kernel_ms", "estimated_ms"))
    assert took == dict(measured.speedup_curve(records.records("sweep")[rows[0]["gpu_name"]], 27))
    assert crossings(list(found.items())) == crossings(list(took.items())) == []
    assert all(1 / 1.2 < found[x] / took[x] < 1.2 for x in took)


@pytest.mark.full
@pytest.mark.sim
def test_the_recorded_estimate_is_what_is_estimated(load_benchmark, monkeypatch):
    (row,) = [row for row in records.reference("curve") if (row["nonzeros_per_column"], row["method"]) == (1, "naive")]
    benchmark = load_benchmark("estimates")
    recorded = records.reference
    monkeypatch.setattr(records, "reference", lambda suite: [row] if suite == "sweep" else recorded(suite))
    assert next(benchmark.curve())["estimated_ms"] == pytest.approx(row["estimated_ms"], rel=0.01)


def test_a_name_has_a_colour_and_a_kind_has_dashes_or_stars():
    (ax,) = sweep.draw_sweep(CURVES).axes
    lines = curves_on(ax)
    assert {name: line.get_xydata().tolist() for name, line in lines.items()} == {
        f"{curve.name} {curve.kind}".replace(" ", "-"): [list(point) for point in curve.points] for curve in CURVES
    }
    estimate, published, measured = lines.values()
    assert estimate.get_color() == measured.get_color() != published.get_color()
    assert [line.get_linestyle() for line in lines.values()] == ["--", "-", "-"]
    assert published.get_marker() == "*" != estimate.get_marker() == measured.get_marker()


def test_a_circle_shows_where_a_speedup_passes_one():
    (ax,) = sweep.draw_sweep(CURVES).axes
    [circle] = [line for line in ax.lines if not line.get_gid() and line.get_marker() == "o"]
    assert circle.get_xydata()[0] == pytest.approx([8, 1]) and "8.0" in [text.get_text() for text in ax.texts]
    (ax,) = sweep.draw_sweep(CURVES, ylabel="nanoseconds per edge").axes
    assert "8.0" not in [text.get_text() for text in ax.texts] and len(ax.lines) == 3


def test_curves_are_named_at_their_ends_and_no_name_covers_another():
    curves = [Curve(f"ACME {k}", MEASURED, [(1, 0.1), (8, 0.5 + k / 1000)]) for k in range(4)]
    picture = sweep.draw_sweep(curves)
    (ax,) = picture.axes
    assert [text.get_text() for text in ax.texts] == [f"ACME {k}\nmeasured" for k in range(4)]
    picture.draw_without_rendering()
    boxes = [Text.get_window_extent(text) for text in ax.texts]  # without their lines
    assert all(lower.y1 <= upper.y0 for lower, upper in pairwise(boxes))
    assert all(ax.bbox.x1 <= box.x0 and box.x1 <= picture.bbox.x1 for box in boxes)


def test_a_picked_graph_is_a_star_in_the_colour_of_its_curve_and_named_beside_it():
    curves = [
        Curve("27 columns", MEASURED, [(2, 0.5), (4, 0.7)]), Curve("1 column", MEASURED, [(2, 0.1), (4, 0.2)]),
        Curve("A", NOW, [(2, 3.0), (4, 4.0)]), Curve("B", NOW, [(2, 5.0), (4, 6.0)]),
        Curve("B", PICKED, [(30, 2.0)]),
    ]  # fmt: skip
    picture = sweep.draw_sweep(curves, graph="mine", limits=(1, 16), legend=True)
    (ax,) = picture.axes
    lines = curves_on(ax).values()
    assert len({line.get_color() for line in lines}) == len({line.get_marker() for line in lines}) == 4
    *_, second = lines
    [star] = [line for line in ax.lines if line.get_xydata().tolist() == [[30, 2]]]
    assert star.get_color() == second.get_color() and ax.get_xlim() == pytest.approx((1 / 1.15, 30 * 1.15))
    (legend,) = picture.legends
    assert [text.get_text() for text in legend.get_texts()] == ["27 columns", "1 column", "A", "B", "mine: B"]


def test_its_points_are_rows():
    rows = sweep.points_of(CURVES[:1])
    assert rows[1] == {"curve": "ACME 1", "of": "estimated", "nonzeros_per_column": 16, "speedup": 2.0}
    assert set(sweep.points_of(CURVES, "time")[0]) == {"curve", "of", "nonzeros_per_column", "time"} and len(rows) == 2


SEEN = {  # by whom -> linear RGB to what is seen, Machado, Oliveira & Fernandes 2009
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
}


def as_lab(color, matrix):
    """A colour as somebody sees it who sees neither red nor green, in CIE L*a*b*, where 2 is hardly to be seen."""
    rgb = np.array(to_rgb(color))
    seen = np.clip(matrix @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4), 0, 1)
    xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]) @ seen
    x, y, z = (np.cbrt(v) if v > 0.008856 else 7.787 * v + 16 / 116 for v in xyz / np.array([0.9505, 1, 1.089]))
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("eyes", SEEN)
def test_colours_can_be_told_apart_without_red_and_green(root, eyes):
    css = (root / "tcgpu" / "player" / "player.css").read_text()
    light, dark = zip(*re.findall(r"--activity-\d: light-dark\((#\w+), (#\w+)\)", css), strict=True)
    series, bars = [look.color for look in LOOKS], [shades[-1] for _, shades in SHADES.values()]
    assert [len(light), len(series), len(bars)] == [6, 6, 5]
    for colors in (light, dark, series, bars, ACTIVITIES.values()):
        seen = [as_lab(color, np.array(SEEN[eyes])) for color in colors]
        assert min(np.linalg.norm(one - other) for one, other in combinations(seen, 2)) > 15
