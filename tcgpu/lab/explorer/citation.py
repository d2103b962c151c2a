"""What to cite for a figure or for rows: tcgpu, and the papers whose methods they show."""

from tcgpu import __version__
from tcgpu.records import Rows
from tcgpu.registry import METHODS

TCGPU = f"The tcgpu authors: tcgpu {__version__}, counting the triangles of a graph on a GPU."
REPORT = "I. Iakovidis: Finding the number of triangles in a Graph, 2019."
TRICORE = "Y. Hu, H. Liu, H. H. Huang: TriCore: Parallel Triangle Counting on GPUs, SC 2018."
PAPERS = {  # the source of a method -> its paper
    "report": REPORT,
    "Bisson & Fatica": "M. Bisson, M. Fatica: Static Graph Challenge on GPU, HPEC 2017.",
    "TriCore": TRICORE,
    "TriCore's baseline": TRICORE,
    "Chatterjee et al.": "A. Chatterjee, S. Radhakrishnan, J. K. Antonio: On Analyzing Large Graphs Using GPUs, "
    "IPDPSW 2013.",
}


def citation(methods) -> str:
    """Return what to cite for these methods."""
    sources = {METHODS[name].source for name in methods if name in METHODS}
    return " ".join(dict.fromkeys([TCGPU, *(paper for source, paper in PAPERS.items() if source in sources)]))


def cited(rows) -> Rows:
    """Return rows with what to cite for the method of each."""
    return Rows(row | {"cite": citation([row["method"]])} for row in rows)
