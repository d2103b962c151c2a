"""Draw the README's picture, data/measured/sweep.svg, from the latest record of a sweep, whose digest it contains.

python notebooks/readme_picture.py
"""

import hashlib
from pathlib import Path

import matplotlib

import charts
import measured
from tcgpu import records

PICTURE = Path(__file__).resolve().parents[1] / "data" / "measured" / "sweep.svg"


def source():
    """The record that the picture shows, and a digest of its numbers."""
    rows = records.latest("sweep")
    numbers = [(row["graph"], row["method"], row["order"], row["knobs"], row["kernel_ms"]) for row in rows]
    return f"sweep on {rows[0]['gpu_name']}, sha256 {hashlib.sha256(repr(numbers).encode()).hexdigest()}"


def draw(path):
    """Write the picture. The same record gives the same file: without a date, and with constant names of its parts."""
    figure = charts.draw_sweep(records.latest("sweep"), published=measured.published_table())
    with matplotlib.rc_context({"svg.hashsalt": "tcgpu"}):
        figure.savefig(path, metadata={"Source": source(), "Date": None})


if __name__ == "__main__":
    draw(PICTURE)
