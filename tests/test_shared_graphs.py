"""Well-known graphs as published: they are read unchanged, and counts are those of the index."""

import csv

import pytest

import tcgpu

HEADERLESS = "luxembourg_osm"  # entries of a Matrix Market file without their header
NAMES = [
    "as20000102", "ca-AstroPh", "ca-CondMat", "ca-GrQc", "ca-GrQc_mtx", "ca-HepPh", "dblp-2010", "delaunay_n10",
    "delaunay_n13", "delaunay_n16", "email-Enron", "facebook_combined", "karate", "luxembourg_osm", "p2p-Gnutella04",
    "polblogs", "polbooks", "soc-Epinions1", "wave", "wiki-Vote", "wing",
]  # fmt: skip


@pytest.fixture(scope="module")
def index(graphs_folder):
    with open(graphs_folder / "INDEX.tsv", newline="") as file:
        return {row["name"]: row for row in csv.DictReader(file, delimiter="\t")}


def test_the_index_names_no_other_graph(index):
    assert sorted(index) == sorted(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_counts_are_those_of_the_index(graphs_folder, index, name):
    figures = index[name]
    graph = tcgpu.read(graphs_folder / figures["file"], format="edges" if name == HEADERLESS else None)
    assert (graph.n, graph.m) == (int(figures["vertices"]), int(figures["edges"]))
    assert graph.max_degree == int(figures["max_degree"])
    assert graph.nonzeros_per_column == pytest.approx(float(figures["nnz_per_column"]), abs=5e-4)
    assert tcgpu.count(graph) == int(figures["triangles"])


def test_a_matrix_without_its_header_is_refused_with_the_way_out(graphs_folder, index):
    file = index[HEADERLESS]["file"]
    with pytest.raises(tcgpu.GraphError, match=rf'{file}, line 1: .* is read with format="edges"'):
        tcgpu.read(graphs_folder / file)
