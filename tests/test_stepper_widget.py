"""The pictures and the widget of the stepper: everything is inside the picture, and all controls agree."""

import networkx as nx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

import tcgpu
from tcgpu import figures
from tcgpu.errors import GraphError
from tcgpu.lab import stepper

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
SMALL = tcgpu.generate.rmat(4, 3, seed=1)


def some(frames, most):
    """A few of the frames from the first to the last."""
    return [frames[k] for k in np.unique(np.linspace(0, len(frames) - 1, most).astype(int))]


def text_of(picture):
    return [text for ax in picture.axes for text in ax.texts]


def texts(picture):
    return [text.get_text() for text in text_of(picture)]


# ---------------------------------------------------------------------------------------------------------- the picture


@pytest.mark.parametrize("graph", [CLUB, SMALL], ids=["club", "rmat"])
@pytest.mark.parametrize("method", stepper.SHOWN)
def test_all_text_is_inside_the_picture_and_labels_do_not_overlap(method, graph):
    for frame in some(list(stepper.steps(graph, method)), 5):
        picture = stepper.draw(frame)
        renderer = FigureCanvasAgg(picture).get_renderer()
        width, height = picture.get_size_inches() * picture.dpi
        boxes = {text: text.get_window_extent(renderer) for text in text_of(picture) if text.get_text()}
        for text, box in boxes.items():
            assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height, text.get_text()
        large = [text for text in boxes if text.get_size() > (9.9 if text.get_weight() == "bold" else 11.5)]
        for k, one in enumerate(large):
            assert not any(boxes[one].overlaps(boxes[other]) for other in large[k + 1 :]), one.get_text()


@pytest.mark.parametrize("method", stepper.SHOWN)
def test_pictures_have_one_size_and_the_texts_of_the_frame(method):
    frames = list(stepper.steps(SMALL, method))
    for frame in some(frames, 3):
        picture = stepper.draw(frame)
        assert picture.get_size_inches().tolist() == stepper.draw(frames[0]).get_size_inches().tolist()
        said = texts(picture)
        assert method in said and frame.title in said
        assert any(f"{frame.lookups:,} {frame.scene.unit}" in text for text in said)
        assert frame.caption not in said, "the widget shows it below"
        assert {panel.label for panel in frame.panels} <= set(said)
        assert [str(v) for v in range(SMALL.n)] == [text for text in said if text.isdigit()][: SMALL.n]


def test_new_triangles_stand_out_and_old_ones_stay():
    frames = list(stepper.steps(CLUB, "bitmap"))
    frame = next(frame for frame in frames if frame.new > 1 and len(frame.triangles) > frame.new)
    old, new, outlines = stepper.draw(frame).axes[0].collections[:3]
    assert len(new.get_paths()) == len(outlines.get_paths()) == frame.new
    assert len(old.get_paths()) == len(frame.triangles) - frame.new
    assert len({tuple(colour) for part in (old, new) for colour in part.get_facecolor()}) == 2


# ----------------------------------------------------------------------------------------------------------- the widget


@pytest.fixture
def naive():
    return tcgpu.step(SMALL, "naive")


def test_step_returns_a_stepper_whose_repr_counts_steps_and_triangles(naive):
    assert isinstance(naive, stepper.Stepper)
    steps, last = len(naive.frames), naive.frames[-1]
    found = f"{len(last.triangles)} triangles, {last.lookups} comparisons"
    assert repr(naive) == f"<Stepper naive: {steps} steps, {found}>"
    alone = tcgpu.step(tcgpu.generate.clique(3), "bitmap", column=0)
    assert repr(alone) == "<Stepper bitmap: 4 steps, 1 triangle, 1 look-ups>"


@pytest.mark.parametrize("control", ["step", "slider", "play"])
def test_each_control_moves_the_others_the_picture_and_the_caption(naive, control):
    before = naive.picture.value
    if control == "step":
        naive.step = 5
    else:
        getattr(naive, control).value = 5
    assert naive.step == naive.slider.value == naive.play.value == 5
    assert naive.frame is naive.frames[5]
    assert naive.picture.value != before and bytes(naive.picture.value[:4]) == b"\x89PNG"
    assert naive.frame.caption in naive.caption.value
    for name, value in (("step", 5), ("steps", len(naive.frames)), ("lookups", naive.frame.lookups)):
        assert f'data-{name}="{value}"' in naive.caption.value


def test_a_step_past_either_end_is_the_last_or_the_first(naive):
    naive.step = 10**6
    assert naive.step == naive.slider.value == len(naive.frames) - 1 == naive.slider.max == naive.play.max
    naive.step = -1
    assert naive.step == naive.slider.value == 0


def test_every_step_can_be_shown(naive):
    seen = set()
    for step in range(len(naive.frames)):
        naive.step = step
        seen.add(naive.picture.value)
    assert len(seen) == len(naive.frames), "no two steps look alike"


def test_each_picture_is_drawn_once(naive, monkeypatch):
    drawn = []
    monkeypatch.setattr(figures, "png", lambda figure, dpi: drawn.append(figure) or b"picture %d" % len(drawn))
    for step in (3, 4, 3, 4, 3):
        naive.step = step
    assert len(drawn) == 2 and naive.picture.value == b"picture 1"


def test_steppers_do_not_disturb_each_other():
    one, other = tcgpu.step(SMALL, "naive"), tcgpu.step(SMALL, "bitmap")
    before = other.picture.value, other.caption.value
    one.step = 4
    assert (other.step, other.picture.value, other.caption.value) == (0, *before)


def test_captions_are_escaped():
    frames = list(stepper.steps(SMALL, "naive"))
    odd = stepper.Frame(**{**vars(frames[0]), "caption": "1 < 2 & <b>3</b>"})
    assert "1 &lt; 2 &amp; &lt;b&gt;3&lt;/b&gt;" in stepper.Stepper([odd]).caption.value


@pytest.mark.parametrize(
    "graph, knobs, complaint",
    [
        (tcgpu.generate.empty(4), {}, "nothing to step through"),
        (CLUB, {"column": 33}, "nothing to step through"),
        (tcgpu.generate.clique(28), {"method": "thread_search"}, "more than 4,000 steps"),
    ],
)
def test_too_few_or_too_many_steps_are_refused(graph, knobs, complaint):
    with pytest.raises(GraphError, match=complaint):
        tcgpu.step(graph, **knobs)
