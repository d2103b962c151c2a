"""The journal of parts: what it keeps, what it goes on from, what it refuses; and how far a count is shown to be."""

import io
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import tcgpu
from tcgpu import Graph, GraphError, _native, _watch
from tcgpu.parts import Found, progress, slices
from tcgpu.parts.journal import fingerprint, journal

GRAPH = tcgpu.generate.rmat(scale=8, seed=1)
PARTS = slices(GRAPH, 5)


def found(k):
    return Found(PARTS[k], 10 + k, 0.5, "cpu")


@pytest.fixture
def path(tmp_path):
    """A journal in which two parts of five are done."""
    path = tmp_path / "journal"
    with journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(3))
        kept.add(found(0))
    return path


def done(path, graph=GRAPH, verb="count", parts=PARTS):
    with journal(path, graph, verb, parts) as kept:
        return dict(kept.done)


def test_what_is_done_is_there_again(path):
    assert done(path) == {PARTS[3]: 13, PARTS[0]: 10}
    with journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(1))
    assert done(path) == {PARTS[3]: 13, PARTS[0]: 10, PARTS[1]: 11}
    assert len(path.read_text().splitlines()) == 4


def test_what_is_done_is_in_the_file_at_once(path):
    with journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(2))
        assert json.loads(path.read_text().splitlines()[-1]) == {"part": 2, "triangles": 12, "seconds": 0.5}


def test_without_a_path_there_is_no_file():
    with journal(None, GRAPH, "count", PARTS) as kept:
        kept.add(found(2))
        assert kept.done == {PARTS[2]: 12}


@pytest.mark.parametrize("lost", range(1, 45))
def test_a_line_that_was_being_written_counts_as_not_written(path, lost):
    text = path.read_bytes()
    path.write_bytes(text[:-lost])
    assert done(path) == {PARTS[3]: 13}
    with journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(0))
    assert path.read_bytes() == text


@pytest.mark.parametrize("kept", [0, 1, 40])
def test_half_a_first_line_is_written_anew(path, kept):
    text = path.read_bytes()
    path.write_bytes(text[:kept])
    assert done(path) == {} and path.read_bytes() == text.splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    "wish, said",
    [
        (
            {"graph": tcgpu.generate.rmat(scale=8, seed=2)},
            "a journal of another graph, or of the same in another order",
        ),
        ({"graph": GRAPH.ordered("degree")}, "a journal of another graph, or of the same in another order"),
        ({"verb": "triangles"}, "a journal of tcgpu count, not of tcgpu triangles"),
        ({"parts": slices(GRAPH, 4)}, "a journal of this graph in 5 other parts, not these 4"),
        ({"parts": slices(GRAPH, 5, sample=7)}, "a journal of this graph in 5 other parts, not these 5"),
    ],
)
def test_a_journal_of_something_else_is_refused_by_name(path, wish, said):
    before = path.read_bytes()
    with pytest.raises(GraphError, match=f"{path}: {said}"):
        done(path, **wish)
    assert path.read_bytes() == before


@pytest.mark.parametrize("text", ["1 2\n2 3\n", "no end", "{}\n", "[1]\n", "\n", '{"journal": 1}\n'])
def test_a_file_that_is_no_journal_is_left_as_it_is(tmp_path, text):
    path = tmp_path / "data"
    path.write_text(text)
    with pytest.raises(GraphError, match="data: not a journal of parts that are done; it is left as it is"):
        done(path)
    if text.endswith("\n"):
        assert path.read_text() == text


@pytest.mark.parametrize("line", ["x", '{"part": 9, "triangles": 1}', '{"part": 1}', '{"part": 1, "triangles": 1.5}'])
def test_a_line_that_makes_no_sense_is_named(path, line):
    with open(path, "a") as file:
        file.write(line + "\n" + '{"part": 4, "triangles": 4}\n')
    with pytest.raises(GraphError, match="journal, line 4: expected a part and its triangles; found"):
        done(path)


def test_two_counts_do_not_write_to_one_journal(path):
    with journal(path, GRAPH, "count", PARTS):
        with pytest.raises(GraphError, match="another count writes to this journal"):
            done(path)
    assert len(done(path)) == 2


def test_the_work_of_a_part_is_not_its_name(path):
    assert len(done(path, parts=[replace(part, work=1.0) for part in PARTS])) == 2


def test_a_fingerprint_tells_every_nonzero(monkeypatch):
    rows = np.array([1, 2, 3, 2, 3, 3], np.int32)
    graph = Graph(np.array([0, 3, 5, 6, 6]), rows)
    seen = {fingerprint(graph)}
    for kept in range(6):
        keep = np.arange(6) != kept
        seen.add(fingerprint(graph.kept(keep)))
    seen.add(fingerprint(Graph(np.array([0, 3, 5, 6, 6, 6]), rows)))
    assert len(seen) == 8
    alone = fingerprint(GRAPH), fingerprint(GRAPH, whole=False)
    monkeypatch.setattr(_native, "_threads", 3)
    assert (fingerprint(GRAPH), fingerprint(GRAPH, whole=False)) == alone


# ------------------------------------------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(wish, stream, monkeypatch, patience=0.0):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(progress, "BLINK", 0.0)
    with progress.progress(wish, 4.0, "counting") as bar:
        for _ in range(4):
            bar.add(1.0)
    return stream.getvalue()


def test_a_function_is_told(monkeypatch):
    told = []
    assert shown(lambda *share: told.append(share), Terminal(), monkeypatch) == ""
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("wish", [None, True])
def test_a_bar_at_a_terminal_is_gone_at_the_end(wish, monkeypatch):
    text = shown(wish, Terminal(), monkeypatch)
    assert "25%" in text and "100%" in text and "\n" not in text and text.endswith("\r\033[K")


def test_a_count_that_takes_no_time_shows_nothing(monkeypatch):
    assert shown(None, Terminal(), monkeypatch, patience=60.0) == ""


def test_elsewhere_there_are_lines_if_asked_for(monkeypatch):
    assert shown(None, io.StringIO(), monkeypatch) == shown(False, Terminal(), monkeypatch) == ""
    assert shown(True, io.StringIO(), monkeypatch).startswith("tcgpu: counting [=======                       ]  25%")


def test_a_widget_in_a_notebook_is_closed_at_the_end(monkeypatch):
    import IPython.display

    displayed = []
    monkeypatch.setattr(progress, "_in_notebook", lambda: True)
    monkeypatch.setattr(IPython.display, "display", displayed.append)
    with progress.progress(True, 4.0, "counting") as bar:
        bar.add(4.0)
        (box,) = displayed
        text, gauge = box.children
        assert gauge.value == 1.0 and "counting" in text.value
    assert box.comm is None and gauge.comm is None


def test_whoever_watches_is_told_and_may_end_it():
    shares = []
    with _watch.watched(shares.append), progress.progress(False, 4.0, "counting") as bar:
        bar.add(1.0)
        bar.add(5.0)
    assert shares == [0.25, 1.0]
    assert progress.progress(False, 0.0, "nothing").share == 1.0
