"""A verb takes at most 8 times the memory of a graph's columns beside its result.

An estimate also keeps the steps that it traces, whose number depends little on the graph.
"""

import json
import os
import subprocess
import sys

import pytest
from sampling import share

import tcgpu

MOST = 8  # times the columns
MOST_IN_PIECES = 10  # of floats of both signs or a wide range: an attempt that needs more words begins them, too
MOST_TRACED = 250 << 20  # bytes
CASES = {
    "floats per edge": "tcgpu.reduce_triangles(graph, product, edge_values=weights, per='edge')",
    "floats of both signs": "tcgpu.reduce_triangles(graph, product, edge_values=signed, per='edge')",
    "whole numbers per edge": "tcgpu.reduce_triangles(graph, one, per='edge')",
    "floats that differ by 1e200": "tcgpu.reduce_triangles(graph, product, edge_values=extreme, per='edge')",
    "k_truss": "tcgpu.k_truss(graph, 4)",
    "truss_numbers": "tcgpu.truss_numbers(graph)",
    "list_triangles": "list(map(len, tcgpu.list_triangles(graph, 1 << 16)))",
    "to_scipy": "graph.to_scipy()",
    "estimate, naive": "tcgpu.estimate(graph, 'naive', lane_steps=1)",
    "estimate, adaptive": "tcgpu.estimate(graph, 'adaptive', lane_steps=1)",
    "estimate, bitmap": "tcgpu.estimate(graph, 'bitmap', lane_steps=1)",
}
# One process measures each case after the same call with a small graph, which compiles. Freed memory goes back to the
# system at once (MALLOC_MMAP_THRESHOLD_), so that what is resident is what is in use.
MEASURE = """
import json, sys
import numpy as np, tcgpu

def product(u, v, w, a, b, c):
    return a * b * c

def one(u, v, w):
    return 1

def resident(key):
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))

def bytes_of(result):
    if hasattr(result, "indptr"):
        return result.data.nbytes + result.indices.nbytes + result.indptr.nbytes
    return getattr(result, "nbytes", 0)

def measured(call, graph):
    random = np.random.default_rng(0)
    weights = random.random(graph.m)
    extreme = 10 ** random.uniform(-33, 33, graph.m)
    names = {"graph": graph, "weights": weights, "signed": weights - 0.5, "extreme": extreme}
    open("/proc/self/clear_refs", "w").write("5")
    before = resident("VmRSS")
    result = eval(call, globals(), names)
    return resident("VmHWM") - before - bytes_of(result), graph.nbytes

found = {}
# The small graph is worked on in the order that the large ones are: no code is compiled where memory is measured.
small, *large = tcgpu.generate.rmat(15), tcgpu.generate.by_nonzeros(1_000_000, 8), tcgpu.generate.rmat(16)
for name, call in json.loads(sys.argv[1]).items():
    measured(call, small)
    for graph in large:
        found[f"{name}, {graph.name}"] = measured(call, tcgpu.Graph(graph.col_ptr, graph.row_idx))
print(json.dumps(found))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells and resets the most memory of a process")
def test_memory_beside_the_results():
    cases = {name: CASES[name] for name in share(CASES, "memory", of=4)}
    command = [sys.executable, "-c", MEASURE, json.dumps(cases)]
    ran = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536"})
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    for name, (taken, columns) in found.items():
        times = MOST_IN_PIECES if "1e200" in name or "signs" in name else MOST
        assert taken <= times * columns + (MOST_TRACED if "estimate" in name else 0), (name, taken / columns)


class Large:
    """A sparse matrix that is not read; `said`: the error."""

    shape = 3, 3

    def __init__(self, said):
        self.said = said

    def tocoo(self):
        raise self.said


def calls():
    """What takes a graph, by its name."""
    more = {"cliques": (3,), "count_subgraphs": (3,), "k_truss": (3,), "reduce_triangles": (min,), "trace": ("naive",),
            "estimate": ("naive",), "write": ("unwritten.txt",)}  # fmt: skip
    names = "count triangles support clustering average_clustering transitivity is_triangle_free list_triangles motifs "
    return {name: more.get(name, ()) for name in [*names.split(), *more, "truss_numbers", "measure"]}


@pytest.mark.parametrize(
    "said", [MemoryError("Unable to allocate 4.00 GiB"), ValueError("array is too big"), MemoryError()], ids=repr
)
@pytest.mark.parametrize("name", calls())
def test_what_takes_more_memory_than_there_is_says_so_in_a_sentence(name, said):
    with pytest.raises(
        tcgpu.GraphError, match=rf"^\w+ takes more memory than there is \({said}.*: take a smaller"
    ) as e:
        getattr(tcgpu, name)(Large(said), *calls()[name])
    assert isinstance(e.value, MemoryError)
    assert e.value.__context__ is None, "a traceback would hold what was allocated"


@pytest.mark.parametrize("said", [ValueError("shape mismatch"), OverflowError("too many"), OSError(28, "no space")])
def test_other_errors_stay_what_they_are(said):
    with pytest.raises(type(said)) as caught:
        tcgpu.count(Large(said))
    assert caught.value is said


def test_memory_is_short_while_the_edges_of_a_graph_are_drawn_read_and_cleaned(monkeypatch, tmp_path):
    (tmp_path / "edges.txt").write_text("0 1\n1 2\n2 0\n")

    def starve(*args, **options):
        raise MemoryError

    monkeypatch.setattr(tcgpu.graph.clean, "min_max", starve)
    for make in (
        lambda: tcgpu.count([(0, 1)]),
        lambda: tcgpu.Graph.from_edges([0], [1]),
        lambda: tcgpu.generate.mesh(3, 3),
        lambda: tcgpu.read(tmp_path / "edges.txt"),
    ):
        with pytest.raises(tcgpu.GraphError, match="takes more memory than there is"):
            make()
    monkeypatch.setattr(tcgpu.generators, "_grid_edges", starve)
    with pytest.raises(tcgpu.GraphError, match="^mesh takes more memory than there is"):
        tcgpu.generate.edges("mesh", 3, 3)
