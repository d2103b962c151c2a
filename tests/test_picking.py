"""Marks, marked elements and neighbours, which the device makes by kernels of its own: against NumPy."""

import numpy as np
import pytest

from tcgpu import DeviceGraph, generate
from tcgpu.engines import runtime
from tcgpu.kernels.adjacency import adjacency
from tcgpu.kernels.picking import Marked, between, picked

GRAPHS = {
    "R-MAT": generate.rmat(7, 6, seed=3),
    "a vertex without edges at either end": generate.star(40).kept(np.arange(39) % 3 == 1),
    "no edges": generate.mesh(1, 3).kept(np.zeros(2, bool)),
}


@pytest.fixture(params=[pytest.param("sim", marks=pytest.mark.sim), pytest.param("gpu", marks=pytest.mark.gpu)])
def engine(request):
    with runtime.using(request.param):
        yield


@pytest.mark.parametrize("size", [0, 1, 255, 3000])
def test_marked_elements_are_those_of_numpy(size, engine):
    values = np.random.default_rng(size).integers(-9, 9, size).astype(np.int32)
    on_device = runtime.to_device(values)
    marks = between(on_device, -4, 5)
    expected = (values >= -4) & (values <= 5)
    assert marks.dtype == bool and np.array_equal(runtime.to_host(marks), expected)
    marked = Marked(marks)
    assert marked.size == expected.sum()
    assert np.array_equal(runtime.to_host(marked.places), np.append(0, np.cumsum(expected)))
    for dtype in (np.int32, np.int64):
        found = runtime.to_host(marked.of(runtime.to_device(values.astype(dtype))))
        assert found.dtype == dtype and np.array_equal(found, values[expected])
    if size:
        at = np.random.default_rng(0).integers(0, size, 500).astype(np.int32)
        of_places = runtime.to_host(picked(marked.places, runtime.to_device(at)))
        assert of_places.dtype == np.int32 and np.array_equal(of_places, np.cumsum(expected)[at] - expected[at])


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_neighbours_ascend_and_have_their_edges(graph, engine):
    row_ptr, indptr, indices, edge = map(runtime.to_host, adjacency(DeviceGraph.from_graph(graph)))
    assert np.array_equal(row_ptr, np.searchsorted(np.sort(graph.row_idx), np.arange(graph.n + 1)))
    for expected, found in zip(graph.adjacency, (indptr, indices), strict=True):
        assert np.array_equal(expected, found)
    of = np.repeat(np.arange(graph.n), np.diff(indptr))
    rows, columns = graph.edges()
    assert np.array_equal(np.sort([of, indices], axis=0), np.sort([rows[edge], columns[edge]], axis=0))


@pytest.mark.parametrize("graph", GRAPHS.values(), ids=GRAPHS)
def test_vertices_that_have_an_edge_get_new_numbers(graph, engine):
    joined, starts, rows = map(runtime.to_host, DeviceGraph.from_graph(graph).joined())
    assert np.array_equal(joined, graph.degrees > 0)
    assert np.array_equal(starts, graph.col_ptr[:-1][joined])
    assert np.array_equal(np.flatnonzero(joined)[rows], graph.row_idx)
