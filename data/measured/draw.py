"""Draw the README's picture, sweep.svg, from the latest record of a sweep; inside, it says from which numbers.

python data/measured/draw.py
"""

import hashlib
from pathlib import Path

import matplotlib

from tcgpu import records
from tcgpu.lab import plots

PICTURE = Path(__file__).resolve().with_name("sweep.svg")


def source():
    """What the picture is drawn from, as a digest of the numbers in it."""
    rows = records.latest("sweep")
    numbers = [(row["graph"], row["method"], row["order"], row["knobs"], row["kernel_ms"]) for row in rows]
    return f"sweep on {rows[0]['gpu_name']}, sha256 {hashlib.sha256(repr(numbers).encode()).hexdigest()}"


def draw(path):
    """The same record gives the same file: no date, and names inside that do not change."""
    figure = plots.draw_sweep(records.latest("sweep"), published=records.published_table())
    with matplotlib.rc_context({"svg.hashsalt": "tcgpu"}):
        figure.savefig(path, metadata={"Source": source(), "Date": None})


if __name__ == "__main__":
    draw(PICTURE)
