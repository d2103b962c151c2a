"""Draw the README's picture, data/measured/sweep.svg, and print what the README says about it.

python notebooks/helpers/readme_picture.py
"""

import csv
import io
import sys
from itertools import groupby
from pathlib import Path
from xml.etree import ElementTree

import matplotlib

sys.path.append(str(Path(__file__).resolve().parents[1]))

from helpers import measured  # noqa: E402
from tcgpu.lab import sweep  # noqa: E402

PICTURE = Path(__file__).resolve().parents[2] / "data" / "measured" / "sweep.svg"
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


if __name__ == "__main__":
    draw(PICTURE)
    print(*measured.describe_sweep(curves_in(PICTURE)), sep="\n")
