"""Make the graphs of this folder and INDEX.tsv, which says how each was made and what is known of it.

python data/graphs/make.py
"""

import csv
from pathlib import Path

import numpy as np
from scipy.io import mmwrite

import tcgpu

FOLDER = Path(__file__).resolve().parent

# name, file, format, the graph: at least one for every way that a graph can stand in a file
GRAPHS = [
    ("mesh_16x16", "mesh_16x16.mtx", "mtx", tcgpu.generate.mesh(rows=16, cols=16)),
    ("rmat_8", "rmat_8.mtx", "mtx", tcgpu.generate.rmat(scale=8, edge_factor=6, seed=1)),
    ("road_40x40", "road_40x40.mtx.xz", "mtx", tcgpu.generate.road(rows=40, cols=40, bends=1.5, seed=2)),
    ("barabasi_albert_300", "barabasi_albert_300.txt", "edges", tcgpu.generate.barabasi_albert(n=300, k=4, seed=3)),
    ("watts_strogatz_400", "watts_strogatz_400.csv", "edges", tcgpu.generate.watts_strogatz(n=400, k=6, seed=4)),
    (
        "by_nonzeros_5",
        "by_nonzeros_5.txt.gz",
        "edges",
        tcgpu.generate.by_nonzeros(m=3000, nonzeros_per_column=5, seed=5),
    ),
    ("random_300", "random_300.el.bz2", "edges", tcgpu.generate.random(n=300, m=4000, seed=6)),
    ("delaunay_1000", "delaunay_1000.graph", "metis", tcgpu.generate.delaunay(n=1000, seed=7)),
    ("copapers_500", "copapers_500.npz", "npz", tcgpu.generate.copapers(n=500, mean_degree=24, seed=8)),
    ("mesh3d_8x8x8", "mesh3d_8x8x8", "folder", tcgpu.generate.mesh3d(planes=8, rows=8, cols=8, seed=9)),
]


def write_general_integers(graph, path):
    """A Matrix Market file as programs write that know nothing of symmetry: both directions, with values."""
    matrix = graph.to_scipy().tocoo()
    matrix.data = (matrix.row.astype(np.int64) * matrix.col) % 9 + 1
    with path.open("wb") as file:
        mmwrite(file, matrix, field="integer", symmetry="general")


def main():
    rows = []
    for name, file, format, graph in GRAPHS:
        if name == "rmat_8":
            write_general_integers(graph, FOLDER / file)
        else:
            tcgpu.write(graph, FOLDER / file, format)
        rows.append((name, file, format, graph.n, graph.m, tcgpu.count(graph), graph.name))
    with (FOLDER / "INDEX.tsv").open("w", newline="", encoding="utf-8") as index:
        writer = csv.writer(index, delimiter="\t", lineterminator="\n")
        writer.writerow(("name", "file", "format", "vertices", "edges", "triangles", "made"))
        writer.writerows(rows)


if __name__ == "__main__":
    main()
