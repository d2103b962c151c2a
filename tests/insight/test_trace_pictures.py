"""Charts of a trace, tested by what is on their axes."""

import networkx as nx
import numpy as np
import pytest

import tcgpu
from tcgpu import GraphError
from tcgpu.insight import pictures

pytestmark = pytest.mark.sim
CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())


@pytest.fixture(scope="module")
def naive():
    return tcgpu.trace(CLUB, "naive", threads=64)


@pytest.fixture(scope="module")
def block():
    return tcgpu.trace(CLUB, "column_block", threads=64)


def bars(ax):
    return [patch for patch in ax.patches if patch.get_width()]


@pytest.mark.parametrize("by", pictures.BY)
def test_the_source_has_a_bar_at_each_line_that_did_something(block, by):
    (ax,) = block.draw_source(by).axes
    rows = block.lines()
    key = "share" if by == "time" else by
    assert len(bars(ax)) == sum(row[key] > 0 for row in rows)
    said = [text.get_text() for text in ax.texts]
    assert "def column_block_kernel(col_ptr, row_idx, columns, tile_size, total):" in said
    assert "def add_block_to(total, count):" in said
    assert not any('"""' in text for text in said), "docstrings are left out"
    most = max(row[key] for row in rows)
    written = {text.get_position()[1]: text.get_text() for text in ax.texts if text.get_position()[0] == 0}
    drawn = [(written[round(bar.get_y() + 0.425)].strip(), round(bar.get_width(), 6)) for bar in bars(ax)]
    assert sorted(drawn) == sorted((row["text"].strip(), round(row[key] / most, 6)) for row in rows if row[key])
    if most:
        assert max(bar.get_width() for bar in bars(ax)) == 1
        assert (f"{most:.1%}" if by == "time" else f"{most:,}") in said


def test_the_source_of_a_kernel_of_the_set_up(naive):
    (ax,) = naive.draw_source("load_sectors", stage=None, kernel="find_col_ptr").axes
    assert "def find_col_ptr(col_of, col_ptr):" in [text.get_text() for text in ax.texts]


def test_a_raster_has_the_lanes_of_each_step(naive):
    upper, lower = naive.draw_raster(block=1, warp=0).axes
    shown = upper.images[0].get_array()
    events = naive.main().events
    steps = (events.block == 1) & (events.warp == 0)
    assert shown.shape == (32, steps.sum())
    assert ((shown > 0).sum(axis=0) == events.active[steps]).all()
    reads = list(pictures.ACTIVITIES).index("reads global memory")
    assert (shown == reads).any(axis=0).sum() == np.unique(
        events.step[events.of_kind("load") & steps[events.step]]
    ).size
    assert sum(line.get_xdata().size for line in lower.lines) == steps.sum()
    assert {line.get_label() for line in lower.lines} == {"naive_kernel", "common_values", "add_block_to"}


def test_a_raster_shows_a_part_of_many_steps(monkeypatch, naive):
    monkeypatch.setattr(pictures, "MAX_STEPS", 20)
    upper, _ = naive.draw_raster(block=0, warp=0, begin=10).axes
    assert upper.images[0].get_array().shape == (32, 20)
    assert "10 to 29 shown" in upper.get_title()


def test_the_busiest_warp_is_shown_by_default(naive):
    steps = naive.balance("warp", "steps")
    title = naive.draw_raster().axes[0].get_title()
    block, warp = divmod(int(np.argmax(steps)), 2)
    assert title.startswith(f"warp {warp} of block {block}: {steps.max()} steps")


def test_a_request_is_drawn_at_its_addresses(naive):
    (ax,) = naive.draw_request().axes
    events = naive.main().events
    worst = events.sectors[events.of_kind("load")].max()
    shaded = [patch for patch in ax.patches if patch.get_width() == 32]
    assert len(shaded) == worst <= 32
    assert f"sectors of 32 bytes: {worst}" in ax.get_title()
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert all(label.endswith("]") and label.split("[")[0] in events.memories[1] for label in labels)


def test_a_request_of_a_line(naive):
    line = next(row["line"] for row in naive.lines() if row["text"].startswith("i, j ="))
    (ax,) = naive.draw_request(line=line).axes
    assert ax.get_title().startswith(f"line {line}: i, j = row_idx[e], col_of[e]")
    named = {text.get_text(): text.get_position()[0] for text in ax.texts}
    assert named == {str(lane): 4 * lane + 2 for lane in range(32)}, "each lane reads the element of its number"


def test_bank_conflicts_are_drawn_in_rows_of_banks(block):
    (ax,) = block.draw_request("conflicts").axes
    conflicts = block.main().events.conflicts.max()
    assert (
        f"for bank conflicts: {conflicts}" in ax.get_title() and "shared memory[" in ax.get_yticklabels()[0].get_text()
    )


def test_few_units_have_a_bar_each_and_many_a_histogram(naive, block):
    for per in ("warp", "block"):
        (ax,) = naive.draw_balance(per, "steps").axes
        assert [bar.get_height() for bar in ax.patches] == naive.balance(per, "steps").tolist()
    (ax,) = block.draw_balance("thread", "loads").axes
    assert sum(bar.get_height() for bar in ax.patches) == block.balance("thread", "loads").size > pictures.FEW


def test_all_charts_in_one_picture(naive):
    figure = naive.show()
    assert len(figure.axes) == 5 and figure._repr_png_().startswith(b"\x89PNG")
    assert len(naive.show(kernel="find_col_ptr").axes) == 5


def test_a_launch_that_reads_nothing_is_drawn():
    trace = tcgpu.trace(CLUB, "bitmap_block_shared", blocks=1, threads=32)
    assert len(trace.show(kernel="restart").axes) == 5


def test_methods_side_by_side():
    traces = tcgpu.trace(CLUB, ["naive", "bitmap"])
    panels = traces.draw(("load_requests", "lanes")).axes
    assert [[bar.get_width() for bar in panel.patches] for panel in panels] == [
        [row[key] for row in traces.totals()] for key in ("load_requests", "lanes")
    ]
    assert [label.get_text() for label in panels[0].get_yticklabels()] == ["naive", "bitmap"]


@pytest.mark.parametrize(
    "draw, said",
    [
        (lambda trace: trace.draw_source("luck"), "by: no measure .luck.; there are time, steps"),
        (lambda trace: trace.draw_raster(block=77), "no warp None of block 77"),
        (lambda trace: trace.draw_raster(begin=10**6), "begin is not 1000000"),
        (lambda trace: trace.draw_request("luck"), "of sectors or of conflicts"),
        (lambda trace: trace.draw_request(line=1), "nothing asks for global memory on line 1"),
    ],
)
def test_bad_arguments_are_refused(naive, draw, said):
    with pytest.raises(GraphError, match=said):
        draw(naive)
