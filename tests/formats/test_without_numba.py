"""What most files hold is read at once, and what is found, faults too, is the same as line by line.

Edge lists are read so only without Numba, or if they are small, METIS files always.
"""

import random

import numpy as np
import pytest
import sampling

from tcgpu.errors import FormatError
from tcgpu.files import Text
from tcgpu.formats import metis, scan

CELLS = ["0", "7", "12", "345", "0.5", "-1.25e-3", "+2", "1e9", "9" * 19, "-4", "x", "", '"3"', "1.5.", "\0", "nan"]
USUAL = 5  # of the cells


def rows(text, widest):
    return scan.rows(text, 0, 0, 2**31, expected="two numbers", loose=True, widest=widest)


def lists(text, skip, weighted):
    return metis._read_lines(text, metis._Header(0, 400, 0, skip, weighted, 0))


def found(read, path, *options):
    """What is read, or the error."""
    try:
        return [each.tolist() if isinstance(each, np.ndarray) else each for each in read(Text(path), *options)]
    except FormatError as error:
        return str(error)


def lines(draw, cells, comments):
    """Lines of cells, mostly equally many and of the usual ones, with one separator and end of line."""
    mark, end, width = draw.choice("   \t,;"), draw.choice(["\n", "\n", "\r\n"]), draw.randint(1, 4)
    odd = draw.choice([0, 0, 0.02])
    for _ in range(draw.randint(1, 40)):
        count = draw.randint(0, 5) if draw.random() < odd else width
        words = [draw.choice(CELLS) if draw.random() < odd else draw.choice(cells) for _ in range(count)]
        yield (draw.choice(comments) if draw.random() < odd else "") + mark.join(words) + end


@pytest.mark.parametrize("seed", range(2000 if sampling.full else 60))
def test_text_read_at_once_is_the_same_as_line_by_line(seed, tmp_path, monkeypatch):
    draw, path = random.Random(seed), tmp_path / "some.txt"
    decimal = CELLS[: draw.choice([4, USUAL, 8])]
    cases = [(rows, widest, lines(draw, decimal, ["# ", "%", " "])) for widest in (0, 3)]
    cases = [(read, (widest,), text) for read, widest, text in cases]
    cases += [
        (lists, (skip, weighted), lines(draw, CELLS[1:4], ["%", " ", "x"])) for skip in (0, 1) for weighted in (0, 1)
    ]
    for read, options, text in cases:
        path.write_text("".join(text), newline="")
        with monkeypatch.context() as lines_only:
            lines_only.setattr(metis, "_plain_lines", lambda *given: None)
            expected = found(read, path, *options)
        with monkeypatch.context() as without:
            without.setattr(scan, "in_numpy", lambda size: True)
            without.setattr(scan, "CHUNK", 64)
            assert found(read, path, *options) == expected, path.read_text()


def test_whole_and_decimal_weights_are_read_at_once(tmp_path, monkeypatch):
    def refuse(*args):
        raise AssertionError("line by line")

    monkeypatch.setattr(scan, "in_numpy", lambda size: True)
    monkeypatch.setattr(scan, "_compiled_rows", refuse)
    monkeypatch.setattr(metis, "_any_lines", refuse)
    (tmp_path / "edges.txt").write_text("0 1 0.25\n1 2 3\n2 0 1e-3\n" * 9)
    assert found(rows, tmp_path / "edges.txt", 0)[2:] == [27, scan.LineWidths(3, 9, 0, 3)]
    (tmp_path / "mesh.graph").write_text("1 2 5 3 6 \r\n0 1 5\n\n")
    assert found(lists, tmp_path / "mesh.graph", 1, True) == [[2, 1, -1], [1, 2, 0]]
