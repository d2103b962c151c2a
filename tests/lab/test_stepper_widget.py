"""The pictures and the widget of the stepper: everything is inside the picture, and each step shows its frame."""

import base64
import json
import re
from itertools import product

import networkx as nx
import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from sampling import share

import tcgpu
from tcgpu import player
from tcgpu.errors import GraphError
from tcgpu.lab import stepper
from tcgpu.lab.stepper.drawing import HEIGHT, WIDTH
from tcgpu.player import shapes

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
SMALL = tcgpu.generate.rmat(4, 3, seed=1)


def some(frames, most):
    """A few of the frames from the first to the last."""
    return [frames[k] for k in np.unique(np.linspace(0, len(frames) - 1, most).astype(int))]


def text_of(picture):
    return [text for ax in picture.axes for text in ax.texts]


def texts(frame):
    return [shape.text for shape in stepper.shapes_of(frame) if shape.kind == "text"]


# ---------------------------------------------------------------------------------------------------------- the picture


@pytest.mark.parametrize("method, graph", share(product(stepper.SHOWN, [CLUB, SMALL]), "text in pictures"))
def test_all_text_is_inside_the_picture_and_labels_do_not_overlap(method, graph):
    for frame in some(list(stepper.steps(graph, method)), 5):
        picture = stepper.draw(frame)
        renderer = FigureCanvasAgg(picture).get_renderer()
        width, height = picture.get_size_inches() * picture.dpi
        boxes = {text: text.get_window_extent(renderer) for text in text_of(picture) if text.get_text()}
        for text, box in boxes.items():
            assert 0 <= box.x0 and box.x1 <= width and 0 <= box.y0 and box.y1 <= height, text.get_text()
        large = [text for text in boxes if text.get_size() > (9.9 if text.get_weight() == "bold" else 11.1)]
        for k, one in enumerate(large):
            assert not any(boxes[one].overlaps(boxes[other]) for other in large[k + 1 :]), one.get_text()


@pytest.mark.parametrize("method", stepper.SHOWN)
def test_shapes_are_inside_the_drawing_and_have_the_texts_of_the_frame(method):
    for frame in some(list(stepper.steps(SMALL, method)), 3):
        for shape in stepper.shapes_of(frame):
            xs, ys = shape.at[:2:2], shape.at[1:2]
            if shape.kind in ("line", "area"):
                xs, ys = shape.at[::2], shape.at[1::2]
            assert all(0 <= x <= WIDTH for x in xs) and all(0 <= y <= HEIGHT for y in ys), shape
            looks = shape.look.split()
            assert looks[0] in shapes.LOOKS and set(looks[1:]) <= {"start", "end", "bold", "italic"}
        said = texts(frame)
        assert {panel.label for panel in frame.panels} <= set(said)
        assert [str(v) for v in range(SMALL.n)] == [text for text in said if text.isdigit()][: SMALL.n]
        written = [text.get_text() for text in text_of(stepper.draw(frame))]
        assert method in written and frame.title in written and frame.caption in " ".join(written)
        assert any(text.startswith(frame.totals[0]) for text in written)


def test_new_triangles_stand_out_and_old_ones_stay():
    frames = list(stepper.steps(CLUB, "bitmap"))
    frame = next(frame for frame in frames if frame.new > 1 and len(frame.triangles) > frame.new)
    drawn = [shape.look for shape in stepper.shapes_of(frame) if shape.kind == "area"]
    assert drawn.count("new") == drawn.count("outline") == frame.new
    assert drawn.count("old") == len(frame.triangles) - frame.new
    assert shapes.LOOKS["new"].face != shapes.LOOKS["old"].face


def test_each_look_has_colours_for_both_themes():
    style = player.style()
    for name, look in shapes.LOOKS.items():
        assert f".drawing .{name} {{" in style and f".drawing text.{name} {{" in style
        for light, dark in (look.face, look.border, look.ink):
            assert bool(light) == bool(dark) and (not light or (f"light-dark({light}, {dark})" in style))
        assert brightness(look.ink[1]) > brightness(look.ink[0]) or look.face[0], "letters on dark paper are light"


def brightness(colour):
    return sum(int(colour[k : k + 2], 16) for k in (1, 3, 5))


# ----------------------------------------------------------------------------------------------------------- the widget


@pytest.fixture
def naive():
    return tcgpu.step(SMALL, "naive")


def test_step_returns_a_stepper_whose_repr_counts_pictures_and_triangles(naive):
    assert isinstance(naive, stepper.Stepper)
    pictures, last = len(naive.frames), naive.frames[-1]
    found = f"{len(last.triangles)} triangles, {last.lookups} comparisons"
    assert repr(naive).startswith(f"<Stepper naive: {pictures} pictures, {found}>\n")
    alone = tcgpu.step(tcgpu.generate.clique(3), "bitmap", column=0)
    assert repr(alone).startswith("<Stepper bitmap: 4 pictures, 1 triangle, 1 look-up>\n")


def drawing_of(recording):
    return next(view for view in recording["parts"][0]["views"] if view["kind"] == "picture")


@pytest.mark.parametrize("method", stepper.SHOWN)
def test_every_step_of_the_recording_is_the_frame(method):
    frames = list(stepper.steps(SMALL, method))
    recording = json.loads(json.dumps(stepper.Stepper(frames).recording, allow_nan=False))
    (sequence,) = recording["parts"][0]["sequences"]
    assert sequence["steps"] == len(frames)
    for step, frame in enumerate(frames):
        ranges = ((shape, zip(shape[5][::2], shape[5][1::2], strict=True)) for shape in drawing_of(recording)["shapes"])
        drawn = [shape[:5] for shape, parts in ranges if any(first <= step < end for first, end in parts)]
        expected = dict.fromkeys(stepper.shapes_of(frame))
        assert sorted(map(str, drawn)) == sorted(str([*shape[:2], list(shape.at), *shape[3:5]]) for shape in expected)
        columns = {name: column[step] for name, column in sequence["columns"].items()}
        assert (columns["title"], columns["caption"]) == (frame.title, frame.caption)
        unit = frame.scene.unit if frame.lookups != 1 else frame.scene.unit.removesuffix("s")
        assert columns["totals"].startswith(f"{frame.lookups:,} {unit}, {len(frame.triangles)} triangle")


def test_shapes_of_higher_layers_are_in_front():
    one, other = shapes.Shape("dot", "hit", (1, 1, 1), layer=2), shapes.Shape("dot", "hit", (2, 2, 2), layer=1)
    found = shapes.table([[one, other], [other], [one]])
    assert [(shape[2], shape[5]) for shape in found] == [((2, 2, 2), [0, 2]), ((1, 1, 1), [0, 1, 2, 3])]


def test_a_step_past_either_end_is_the_last_or_the_first(naive):
    naive.step = 10**6
    assert naive.step == len(naive.frames) - 1 and naive.frame is naive.frames[-1]
    naive.step = -1
    assert naive.step == 0 and naive.frame is naive.frames[0]


def test_no_two_steps_look_alike(naive):
    seen = {(*stepper.shapes_of(frame), frame.caption) for frame in naive.frames}
    assert len(seen) == len(naive.frames)


def test_a_stored_notebook_has_the_first_frame_as_picture_and_text(naive):
    data, _ = naive._repr_mimebundle_()
    assert base64.b64decode(data["image/png"]).startswith(b"\x89PNG")
    assert data["text/plain"] == repr(naive)
    first = naive.frames[0]
    title, *rest = repr(naive).splitlines()[1:]
    assert title == f"Picture 1: {first.title}" and first.caption in re.sub(r"\s+", " ", " ".join(rest))
    for panel in first.panels:
        assert any(line.startswith(f"  {panel.label}: ") for line in rest)


def test_the_text_form_shows_a_change_of_the_first_frame(naive):
    first = naive.frames[0]
    cells = first.panels[1]
    other = type(cells)(**{**vars(cells), "looks": ("looked", *cells.looks[1:])})
    changed = stepper.Frame(**{**vars(first), "panels": (first.panels[0], other, *first.panels[2:])})
    assert repr(stepper.Stepper([changed, *naive.frames[1:]])) != repr(naive)


def test_steppers_do_not_disturb_each_other():
    one, other = tcgpu.step(SMALL, "naive"), tcgpu.step(SMALL, "bitmap")
    before = other.recording
    one.step = 4
    assert (other.step, other.recording) == (0, before)


def test_texts_of_a_recording_cannot_end_its_page():
    frames = list(stepper.steps(SMALL, "naive"))
    odd = stepper.Frame(**{**vars(frames[0]), "caption": "</script><b>3</b>"})
    assert "</script><b>" not in player.page(stepper.Stepper([odd]).recording)


@pytest.mark.parametrize(
    "graph, knobs, complaint",
    [
        (tcgpu.generate.empty(4), {}, "nothing to step through"),
        (CLUB, {"column": 33}, "nothing to step through"),
        (tcgpu.generate.clique(28), {"method": "thread_search"}, "more than 4,000 pictures"),
    ],
)
def test_too_few_or_too_many_steps_are_refused(graph, knobs, complaint):
    with pytest.raises(GraphError, match=complaint):
        tcgpu.step(graph, **knobs)
