"""Draw the README's picture, data/measured/sweep.svg, and write what docs/measured.md says of its curves.

python notebooks/helpers/readme_picture.py
"""

import csv
import io
import re
import sys
import textwrap
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import matplotlib

sys.path.append(str(Path(__file__).resolve().parents[1]))

from helpers import measured  # noqa: E402
from tcgpu.lab import sweep  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
PICTURE, PAGE = ROOT / "data" / "measured" / "sweep.svg", ROOT / "docs" / "measured.md"
NUMBERS = ".//{http://purl.org/dc/elements/1.1/}description"  # the element of the picture that contains them


def draw(path):
    """Draw the picture. The same records give the same file: no date, and constant names of its parts."""
    curves = measured.sweep_curves()
    figure = sweep.draw_sweep(curves)
    with matplotlib.rc_context({"svg.hashsalt": "tcgpu"}):
        figure.savefig(path, metadata={"Description": sweep.points_of(curves).csv(), "Date": None, "Creator": None})


def curves_in(path):
    """The curves of a picture, from the numbers that it contains."""
    rows = csv.DictReader(io.StringIO(ElementTree.parse(path).find(NUMBERS).text))
    return [
        sweep.Curve(*names, [(float(row["nonzeros_per_column"]), float(row["speedup"])) for row in points])
        for names, points in groupby(rows, key=lambda row: (row["curve"], row["of"]))
    ]


def described(page):
    """The text of a page, with the sentences about the curves after the comment that names this file."""
    sentences = " ".join(measured.describe_sweep(curves_in(PICTURE)))
    paragraph = "\n".join(textwrap.wrap(sentences, 120, break_on_hyphens=False))
    return re.sub(r"(readme_picture\.py .*?-->\n\n).*?(?=\n\n)", rf"\1{paragraph}", page, flags=re.DOTALL)


if __name__ == "__main__":
    draw(PICTURE)
    PAGE.write_text(described(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
