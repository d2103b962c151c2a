"""The journal of parts: what it records, resumes from and refuses; and the progress that is shown."""

import io
import json
import os
import re
import resource
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import tcgpu
from tcgpu import Graph, GraphError, progress
from tcgpu import bar as bars
from tcgpu.distributed import PartResult, count_part, pairs, slices
from tcgpu.distributed.journal import MAGIC, _line, fingerprint, open_journal
from tcgpu.engines import native

GRAPH = tcgpu.generate.rmat(scale=8, seed=1)
PARTS = slices(GRAPH, 5)


def found(k):
    return PartResult(PARTS[k], 10 + k, 0.5, "cpu")


@pytest.fixture
def path(tmp_path):
    """A journal in which two parts of five are done."""
    path = tmp_path / "journal"
    with open_journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(3))
        kept.add(found(0))
    return path


def done(path, graph=GRAPH, verb="count", parts=PARTS):
    with open_journal(path, graph, verb, parts) as kept:
        return dict(kept.done)


def test_done_parts_are_read_again(path):
    assert done(path) == {PARTS[3]: 13, PARTS[0]: 10}
    with open_journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(1))
    assert done(path) == {PARTS[3]: 13, PARTS[0]: 10, PARTS[1]: 11}
    assert len(path.read_text().splitlines()) == 4


def test_a_part_is_written_at_once(path):
    with open_journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(2))
        entry = json.loads(path.read_text().splitlines()[-1])
        assert len(entry.pop("check")) == 32 and entry == {"part": 2, "triangles": 12, "seconds": 0.5}


def test_without_a_path_there_is_no_file():
    with open_journal(None, GRAPH, "count", PARTS) as kept:
        kept.add(found(2))
        assert kept.done == {PARTS[2]: 12}


@pytest.mark.parametrize("lost", range(1, 91))
def test_an_incomplete_last_line_is_ignored(path, lost):
    text = path.read_bytes()
    path.write_bytes(text[:-lost])
    assert done(path) == {PARTS[3]: 13}
    with open_journal(path, GRAPH, "count", PARTS) as kept:
        kept.add(found(0))
    assert path.read_bytes() == text


@pytest.mark.parametrize("kept", [0, len(MAGIC), 40, -1])
def test_an_incomplete_heading_is_completed(path, kept):
    heading = path.read_bytes().splitlines(keepends=True)[0]
    path.write_bytes(heading[:kept])
    assert done(path) == {} and path.read_bytes() == heading


def test_a_journal_is_created_where_a_dangling_link_leads(path, tmp_path):
    (tmp_path / "link").symlink_to("elsewhere")
    assert done(tmp_path / "link") == {}
    assert (tmp_path / "elsewhere").read_bytes() == path.read_bytes().splitlines(keepends=True)[0]


@pytest.mark.parametrize(
    "options, message",
    [
        (
            {"graph": tcgpu.generate.rmat(scale=8, seed=2)},
            "a journal of another graph, or of the same in another order",
        ),
        ({"graph": GRAPH.ordered("degree")}, "a journal of another graph, or of the same in another order"),
        ({"verb": "triangles"}, "a journal of tcgpu count, not of this verb"),
        ({"parts": slices(GRAPH, 4)}, "a journal of this graph in 5 other parts: "),
        ({"parts": slices(GRAPH, 5, sample=7)}, "a journal of this graph in 5 other parts: "),
    ],
)
def test_a_journal_of_another_count_is_refused(path, options, message):
    before = path.read_bytes()
    with pytest.raises(GraphError, match=f"{path}: {message}"):
        done(path, **options)
    assert path.read_bytes() == before


def archive():
    stream = io.BytesIO()
    np.savez(stream, x=np.arange(9))
    return stream.getvalue()


def refused(path, message):
    """Check that a file is refused, and not changed in any byte, its mode or its time."""
    path.chmod(0o604)
    os.utime(path, ns=(10**9, 10**9))
    before = path.read_bytes()
    with pytest.raises(GraphError, match=message):
        done(path)
    state = path.stat()
    assert (path.read_bytes(), state.st_mtime_ns, state.st_mode & 0o777) == (before, 10**9, 0o604)


OTHERS = {
    "an edge list": b"1 2\n2 3\n",
    "an edge list without a last newline": b"1 2\n2 3",
    "one line without a newline": b"no end",
    "an archive": archive(),
    "an object": b"{}\n",
    "half an object": b"{",
    "a list": b"[1]\n",
    "deep": b"[" * 10**5,
    "a newline": b"\n",
    "another journal": b'{"journal": 1}\n',
    "less of a heading than tells": MAGIC[:-1],
    "more than a heading": MAGIC + b"x" * 10**4,
}


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_that_is_no_journal_is_not_changed(tmp_path, name):
    path = tmp_path / "data"
    path.write_bytes(OTHERS[name])
    refused(path, "data: not a journal of parts that are done; it is left as it is")


def test_a_pipe_is_no_journal(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(GraphError, match="pipe: a pipe or a device, where a journal is a file"):
        done(tmp_path / "pipe")


def test_a_journal_of_an_earlier_version_is_refused(path):
    path.write_text(re.sub('"version": [0-9]+, ', "", path.read_text()))
    refused(path, "a journal of another version of tcgpu; name a new file")


def written(path, **entry):
    """Append a line with a correct checksum."""
    first = path.read_bytes().splitlines(keepends=True)[0]
    with open(path, "ab") as file:
        file.write(_line(entry, first))


@pytest.mark.parametrize(
    "line",
    [
        b"x\n",
        b"\n",
        b'{"part": 1}\n',
        b'{"part": 1, "triangles": 3, "seconds": 0.5}\n',
        b'{"part": 1, "triangles": 3, "seconds": 0.5, "check": "' + b"0" * 32 + b'"}\n',
        b"[" * 200 + b"\n",
        b"1" * 10**4 + b"\n",
        b"\xff\xfe\n",
    ],
)
@pytest.mark.parametrize("last", [b"", b'{"part": 4, "tri'])
def test_a_damaged_or_foreign_line_is_refused(path, line, last):
    with open(path, "ab") as file:
        file.write(line + last)
    refused(
        path,
        "journal(, line 4: damaged: expected one of 5 parts, once, and its triangles|: longer than)",
    )


@pytest.mark.parametrize("end", [b"7", b"3 4", b"\0" * 40, b'{"part": ' + b"1" * 300])
def test_a_damaged_last_line_is_refused(path, end):
    with open(path, "ab") as file:
        file.write(end)
    refused(path, "journal, line 4: damaged: expected one of 5 parts, once, and its triangles; found")


@pytest.mark.parametrize(
    "part, triangles", [(9, 1), (5, 1), (-1, 1), (True, 1), ("1", 1), (1, 1.5), (1, None), (1, True), (1, [2])]
)
def test_an_invalid_part_is_refused(path, part, triangles):
    written(path, part=part, triangles=triangles, seconds=0.5)
    refused(path, "journal, line 4: damaged: expected one of 5 parts, once, and its triangles; found")


@pytest.mark.parametrize("triangles", [-1, 10**6, 10**30])
def test_an_impossible_count_is_refused(path, triangles):
    written(path, part=1, triangles=triangles, seconds=0.5)
    refused(path, "journal, line 4: damaged: expected one of 5 parts, once, and its triangles; found")


@pytest.mark.parametrize("triangles", [13, 12])
def test_a_repeated_part_is_refused(path, triangles):
    written(path, part=3, triangles=triangles, seconds=0.5)
    refused(path, "journal, line 4: damaged: expected one of 5 parts, once, and its triangles; found")


@pytest.mark.parametrize("place", range(0, 500, 7))
def test_a_flipped_bit_is_detected(path, place):
    text = bytearray(path.read_bytes())
    text[place % len(text)] ^= 1 << place % 7
    path.write_bytes(text)
    if place % len(text) == len(text) - 1:
        assert done(path) == {PARTS[3]: 13}
    else:
        refused(path, "journal")


@pytest.mark.parametrize("graph", [GRAPH, tcgpu.generate.clique(30), tcgpu.generate.clique(3), tcgpu.generate.path(9)])
def test_the_bound_on_triangles_admits_every_part(graph, tmp_path):
    """In a small graph some parts are empty, and equal."""
    for order in ("natural", "degree"):
        own = graph.ordered(order)
        for number, parts in enumerate((slices(own, 1), slices(own, 64), pairs(own, 2000, 1000))):
            path = tmp_path / f"{order}{number}"
            with open_journal(path, own, "count", parts) as kept:
                for part in parts:
                    kept.add(count_part(own, part, method="cpu"))
            assert sum(done(path, own, parts=parts).values()) == tcgpu.count(graph, "cpu")


def test_a_line_that_does_not_fit_the_disk_is_removed_and_the_error_names_the_file(path):
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    with open_journal(path, GRAPH, "count", PARTS) as kept:
        resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) + 20, limits[1]))
        try:
            with pytest.raises(OSError) as failure:
                kept.add(found(1))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert failure.value.filename == str(path) and path.read_bytes() == before
        assert PARTS[1] not in kept.done
    assert done(path) == {PARTS[3]: 13, PARTS[0]: 10}


def test_damaged_journals_are_counted_right_or_refused_by_the_shell(load_benchmark):
    benchmark = load_benchmark("journals")
    rows = list(benchmark.trials(6 * len(benchmark.DAMAGES), scale=7, seed=2))
    assert [row for row in rows if row["outcome"] not in ("right", "refused")] == []
    assert {row["outcome"] for row in rows} == {"right", "refused"}


def test_the_shell_does_not_change_an_edge_list(tmp_path):
    """In another process: also not when that ends."""
    edges = tmp_path / "edges.txt"
    edges.write_bytes(b"0 1\n1 2\n0 2")
    command = [sys.executable, "-m", "tcgpu", "count", edges, "--engine", "cpu", "--resume", edges]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=Path(tcgpu.__file__).parents[1])
    message = f"tcgpu: {edges}: not a journal of parts that are done; it is left as it is\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", message)
    assert edges.read_bytes() == b"0 1\n1 2\n0 2"


def test_two_counts_cannot_use_one_journal(path):
    with open_journal(path, GRAPH, "count", PARTS):
        with pytest.raises(GraphError, match="another count writes to this journal"):
            done(path)
    assert len(done(path)) == 2


def test_estimates_of_work_do_not_identify_a_cut(path):
    assert len(done(path, parts=[replace(part, work=1.0) for part in PARTS])) == 2


def test_a_fingerprint_depends_on_every_nonzero(monkeypatch):
    rows = np.array([1, 2, 3, 2, 3, 3], np.int32)
    graph = Graph(np.array([0, 3, 5, 6, 6]), rows)
    seen = {fingerprint(graph)}
    for kept in range(6):
        keep = np.arange(6) != kept
        seen.add(fingerprint(graph.kept(keep)))
    seen.add(fingerprint(Graph(np.array([0, 3, 5, 6, 6, 6]), rows)))
    assert len(seen) == 8
    alone = fingerprint(GRAPH)
    monkeypatch.setattr(native, "_threads", 3)
    assert fingerprint(GRAPH) == alone


# ------------------------------------------------------------------------------------------------------------- progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(options, stream, monkeypatch, patience=0.0):
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(progress, "PATIENCE", patience)
    for name in ("REFRESH", "REFRESH_ELSEWHERE"):
        monkeypatch.setattr(bars, name, 0.001)
    with progress.progress(options, 4.0, "counting") as bar:
        for _ in range(4):
            time.sleep(0.02)
            bar.add(1.0)
    return stream.getvalue()


def test_a_function_is_called_with_the_progress(monkeypatch):
    reported = []
    assert shown(lambda *share: reported.append(share), Terminal(), monkeypatch) == ""
    assert reported == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.parametrize("options", [None, True])
def test_a_bar_at_a_terminal_is_removed_at_the_end(options, monkeypatch):
    text = shown(options, Terminal(), monkeypatch)
    assert "\rtcgpu: counting:  25%|" in text and "100%|" in text and "\n" not in text
    *_, wiped, nothing = text.split("\r")
    assert not wiped.strip() and not nothing


def test_a_count_that_takes_no_time_shows_nothing(monkeypatch):
    assert shown(None, Terminal(), monkeypatch, patience=60.0) == ""


def test_without_a_terminal_there_is_a_bar_only_with_progress_true(monkeypatch):
    assert shown(None, io.StringIO(), monkeypatch) == shown(False, Terminal(), monkeypatch) == ""
    text = shown(True, io.StringIO(), monkeypatch)
    assert "\ntcgpu: counting:  50%|" in text and "\r" not in text


def test_a_bar_begins_where_an_earlier_count_ended(monkeypatch):
    reported = []
    with progress.progress(lambda *share: reported.append(share), 4.0, "counting", done=3.0) as bar:
        bar.add(0.5)
    assert reported == [(3.5, 4.0)]


def test_a_widget_in_a_notebook_is_closed_at_the_end(monkeypatch):
    from tqdm import notebook

    displayed = []
    monkeypatch.setattr(bars, "_in_notebook", lambda: True)
    monkeypatch.setattr(notebook, "display", displayed.append)
    monkeypatch.setattr(bars, "REFRESH", 0.0)
    with progress.progress(True, 4.0, "counting") as bar:
        bar.add(4.0)
        (box,) = displayed
        text, gauge, _ = box.children
        assert gauge.value == gauge.max == 4.0 and "counting" in text.value
    assert box.comm is None


def test_a_callback_is_called_and_may_end_the_work():
    shares = []
    with progress.watched(shares.append), progress.progress(False, 4.0, "counting") as bar:
        bar.add(1.0)
        bar.add(5.0)
    assert shares == [0.25, 1.0]


def test_an_empty_count_is_complete():
    shares = []
    with progress.watched(shares.append), progress.progress(False, 0.0, "counting") as bar:
        bar.add(0.0)
    assert shares == [1.0]
