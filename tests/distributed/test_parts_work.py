"""One part: its count, its triangles at each edge and vertex, on every engine and with little memory."""

import gc
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_shapes import small_graphs
from strategies import sparse_graphs

import tcgpu
from tcgpu import EngineError, Graph, GraphError, MethodError, formats
from tcgpu.arrays import sum_exactly
from tcgpu.distributed import (
    Part,
    Share,
    count_part,
    cut,
    device_parts,
    pairs,
    shares,
    slices,
    sum_values,
    worker,
)
from tcgpu.distributed.part_tally import part_tally
from tcgpu.engines import runtime, staging
from tcgpu.engines.facts import OutOfMemory

ENGINES = ["cpu", pytest.param("sim", marks=pytest.mark.sim), pytest.param("gpu", marks=pytest.mark.gpu)]
KERNELS = ENGINES[1:]
pytestmark = pytest.mark.usefixtures("compiled_if_simulated")
GRAPHS = small_graphs()
RMAT = tcgpu.generate.rmat(scale=7, seed=1)


def some_pairs(graph):
    longest = 16 + 4 * graph.max_column
    return pairs(graph, max(longest, graph.nbytes // 3), max(longest, graph.nbytes // 6))


@pytest.fixture(autouse=True)
def no_columns_are_kept():
    """Free the columns that a test leaves on the device."""
    yield
    device_parts.forget()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("cut", [lambda graph: slices(graph, 3), some_pairs], ids=["slices", "pairs"])
def test_parts_add_up(name, cut, engine):
    graph = GRAPHS[name]
    parts = cut(graph)
    found = [count_part(graph, part, engine=engine) for part in parts]
    assert sum(part.triangles for part in found) == tcgpu.count(graph, "cpu")
    assert [part.part for part in found] == parts and {part.engine for part in found} <= {engine}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", GRAPHS)
def test_edges_and_vertices_add_up(name, engine):
    for parts in (lambda graph: slices(graph, 2), some_pairs):
        assert_edges_and_vertices_add_up(name, parts(GRAPHS[name]), engine)


def assert_edges_and_vertices_add_up(name, parts, engine):
    graph = GRAPHS[name]
    of_edges = [count_part(graph, part, "support", engine=engine) for part in parts]
    of_vertices = [count_part(graph, part, "triangles", engine=engine) for part in parts]
    assert np.array_equal(sum_values(of_edges, graph.m), tcgpu.support(graph, engine="cpu"))
    assert np.array_equal(sum_values(of_vertices, graph.n), tcgpu.triangles(graph, engine="cpu"))
    counts = [count_part(graph, part, engine="cpu").triangles for part in parts]
    assert [found.triangles for found in of_edges] == [found.triangles for found in of_vertices] == counts


@given(sparse_graphs(30), st.integers(1, 5), st.booleans())
def test_parts_of_any_graph_add_up(graph, number, by_pairs):
    parts = some_pairs(graph) if by_pairs else slices(graph, number)
    assert sum(count_part(graph, part).triangles for part in parts) == tcgpu.count(graph, "cpu")
    assert np.array_equal(
        sum_values([count_part(graph, part, "support") for part in parts], graph.m), tcgpu.support(graph)
    )
    assert np.array_equal(
        sum_values([count_part(graph, part, "triangles") for part in parts], graph.n), tcgpu.triangles(graph)
    )


@pytest.mark.parametrize("cores", [1, 3])
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_many_cores_count_what_one_does(cores, order, monkeypatch):
    """A graph with so many edges, in such long columns, that several workers count the same column."""
    graph = tcgpu.generate.rmat(scale=14, seed=2).ordered(order)
    monkeypatch.setattr("tcgpu.cpu.finding.CHUNK", (50, 100))
    parts = slices(graph, 2)
    assert min(part.last - part.first for part in parts) > 50_000 and graph.max_column > 100
    assert sum(count_part(graph, part, engine="cpu", cores=cores).triangles for part in parts) == tcgpu.count(graph)
    found = [count_part(graph, part, "support", engine="cpu", cores=cores) for part in parts]
    assert np.array_equal(sum_values(found, graph.m), tcgpu.support(graph, engine="cpu"))


@pytest.mark.parametrize("engine", KERNELS)
def test_shares_add_up(engine):
    found = [count_part(RMAT, share, engine=engine) for share in shares(3)]
    assert sum(part.triangles for part in found) == tcgpu.count(RMAT, "cpu")
    assert sum(part.triangles > 0 for part in found) > 1
    with pytest.raises(MethodError, match="'naive' counts whole graphs, not .* parameters 'worker' and 'workers'"):
        count_part(RMAT, Share(0, 2), method="naive", engine=engine)


def test_parts_and_results_can_be_pickled():
    for part in [*slices(RMAT, 2), Share(1, 3)]:
        assert pickle.loads(pickle.dumps(part)) == part
    found = count_part(RMAT, slices(RMAT, 1)[0], "support", engine="cpu")
    back = pickle.loads(pickle.dumps(found))
    assert np.array_equal(sum_values([back], RMAT.m), tcgpu.support(RMAT, engine="cpu"))


def test_values_are_compact():
    """They start and end with a triangle, in the smallest type."""
    graph = Graph.from_edges([0, 90, 90, 91, 180], [1, 91, 92, 92, 181], 200)
    (begin, values), = count_part(graph, slices(graph, 1)[0], "support", engine="cpu").values  # fmt: skip
    assert (begin, values.tolist(), values.dtype) == (1, [1, 1, 1], np.uint8)
    book = tcgpu.generate.clique(300)
    (begin, values), = count_part(book, slices(book, 1)[0], "triangles", engine="cpu").values  # fmt: skip
    assert values.dtype == np.uint16 and set(values.tolist()) == {299 * 298 // 2 % 2**16} or values.dtype == np.uint32
    assert sum_exactly(values.astype(np.int64)) == 3 * tcgpu.count(book)


def test_a_part_of_two_ranges_returns_two_short_arrays():
    graph = tcgpu.generate.mesh(40, 40)
    part = next(
        part for part in some_pairs(graph) if part.low > part.columns(graph)[1] and not part.has_no_triangles(graph)
    )
    edges = count_part(graph, part, "support", engine="cpu")
    assert sum(values.size for _, values in edges.values) < graph.m // 2


@pytest.mark.parametrize("engine", ENGINES)
def test_a_graph_may_be_a_path(tmp_path, engine):
    tcgpu.write(RMAT, tmp_path / "graph", format="folder")
    tcgpu.write(RMAT, tmp_path / "graph.npz")
    for path in (tmp_path / "graph", str(tmp_path / "graph.npz")):
        assert sum(count_part(path, part, engine=engine).triangles for part in slices(RMAT, 3)) == tcgpu.count(RMAT)


def test_a_path_is_opened_again_only_if_it_changed(tmp_path, monkeypatch):
    reads, read, path = [], formats.read, tmp_path / "graph"
    monkeypatch.setattr(formats, "read", lambda path: reads.append(path) or read(path))
    monkeypatch.setattr(worker, "SETTLED_SECONDS", 0)
    tcgpu.write(RMAT, path, format="folder")
    whole = Part(0, RMAT.m, 0, RMAT.n)
    assert [count_part(path, whole).triangles for _ in range(3)] == [tcgpu.count(RMAT)] * 3 and len(reads) == 1
    other = tcgpu.generate.rmat(scale=7, seed=2)
    tcgpu.write(other, path, format="folder")
    assert count_part(path, Part(0, other.m, 0, other.n)).triangles == tcgpu.count(other) and len(reads) == 2


@pytest.mark.parametrize("name", ["x.txt", "x/"])
@pytest.mark.parametrize("settled", [0, worker.SETTLED_SECONDS])
@pytest.mark.parametrize("options", [{"device_memory": "1GB"}, {"executor": "threads"}], ids=str)
def test_a_link_that_leads_elsewhere_is_followed_again(tmp_path, monkeypatch, name, settled, options):
    """To a file of the same size and time of modification."""
    monkeypatch.setattr(worker, "SETTLED_SECONDS", settled)
    for rows, triangles in ([1, 2, 2], 1), ([1, 2, 3], 0):
        (tmp_path / str(triangles)).mkdir()
        tcgpu.write(Graph.from_edges([0, 0, 1], rows, 4), f"{tmp_path}/{triangles}/{name}")
        for path in tmp_path.rglob("*"):
            os.utime(path, ns=(10**18, 10**18))
        (tmp_path / "link").unlink(missing_ok=True)
        (tmp_path / "link").symlink_to(tmp_path / str(triangles))
        assert tcgpu.count(f"{tmp_path}/link/{name}", engine="cpu", **options) == triangles


def test_another_process_counts_parts(tmp_path):
    """It is given only the pickled parts and a path."""
    tcgpu.write(RMAT, tmp_path / "graph", format="folder")
    work = tmp_path / "parts"
    work.write_bytes(pickle.dumps(slices(RMAT, 4)))
    code = (
        "import pickle, sys; from tcgpu.distributed import count_part\n"
        "parts = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(sum(count_part(sys.argv[2], part, engine='cpu').triangles for part in parts))"
    )
    command = [sys.executable, "-c", code, work, tmp_path / "graph"]
    assert int(subprocess.check_output(command, env=os.environ)) == tcgpu.count(RMAT)


def test_unsuitable_methods_are_refused():
    whole = slices(RMAT, 1)[0]
    with pytest.raises(
        MethodError, match="method 'naive' counts whole graphs; those that count a Part are warp_search"
    ):
        count_part(RMAT, whole, method="naive")
    with pytest.raises(MethodError, match="method 'adaptive' counts shares of a graph .*; those that count a Part are"):
        count_part(RMAT, whole, method="adaptive")
    with pytest.raises(MethodError, match="method 'cpu' has no knob 'cached'"):
        count_part(RMAT, whole, method="cpu", cached=False)
    with pytest.raises(EngineError, match="runs on cpu, not on 'sim'"):
        count_part(RMAT, whole, "support", method="cpu", engine="sim")


@pytest.mark.parametrize("engine", KERNELS)
def test_warp_search_counts_parts_with_and_without_its_cache(engine):
    for cached in (True, False):
        found = [count_part(RMAT, part, engine=engine, cached=cached) for part in some_pairs(RMAT)]
        assert sum(part.triangles for part in found) == tcgpu.count(RMAT)


# ------------------------------------------------------------------------------------------------------ little memory


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("share", [1.5, 0.7, 0.3, 0.15])
def test_a_part_that_does_not_fit_is_counted_in_pieces(engine, share, monkeypatch):
    room = int(share * cut.column_bytes(RMAT, 0, RMAT.n)) + device_parts.MARGIN
    monkeypatch.setattr(runtime, "memory_free", lambda: room)
    whole = slices(RMAT, 1)[0]
    device_parts.forget()
    found = count_part(RMAT, whole, engine=engine)
    assert found.triangles == tcgpu.count(RMAT) and (found.pieces > 1) == (share < 1)
    device_parts.forget()
    edges = count_part(RMAT, whole, "support", engine=engine)
    assert np.array_equal(sum_values([edges], RMAT.m), tcgpu.support(RMAT, engine="cpu"))
    assert (edges.pieces > 1) == (share < 1)


@pytest.mark.sim
def test_a_part_is_counted_in_pieces_if_an_allocation_fails(monkeypatch):
    """Even if enough memory seemed to be free."""
    make, largest = runtime.named("sim").device_array, RMAT.nbytes // 3

    def scarce(shape, dtype, fill=None):
        if shape * np.dtype(dtype).itemsize > largest:
            raise OutOfMemory("none left")
        return make(shape, dtype, fill)

    monkeypatch.setattr(runtime.named("sim"), "device_array", scarce)
    found = count_part(RMAT, slices(RMAT, 1)[0], engine="sim")
    assert found.triangles == tcgpu.count(RMAT, "cpu") and found.pieces > 1


@pytest.mark.sim
def test_a_column_that_does_not_fit_is_an_error(monkeypatch):
    monkeypatch.setattr(runtime, "memory_free", lambda: device_parts.MARGIN + 20)
    with pytest.raises(GraphError, match="bytes of device memory are too few for this graph"):
        count_part(RMAT, slices(RMAT, 1)[0], engine="sim")


@pytest.mark.gpu
def test_a_gpu_without_memory_raises_a_memory_error():
    with pytest.raises(MemoryError):
        runtime.device_array(1 << 50, np.uint8)


@pytest.mark.parametrize("engine", KERNELS)
def test_columns_are_kept_for_the_next_part_only(engine, monkeypatch):
    brought, request = [], staging.Feeder.request

    def noted(feeder, load):
        brought.append(load.fill.args[1:])
        return request(feeder, load)

    monkeypatch.setattr(staging.Feeder, "request", noted)
    graph = tcgpu.generate.rmat(scale=6, seed=3)
    for part in slices(graph, 4):
        count_part(graph, part, engine=engine)
    assert brought == [(0, graph.n)]
    device_parts.forget()
    brought.clear()
    room = graph.nbytes // 2 + device_parts.MARGIN
    monkeypatch.setattr(runtime, "memory_free", lambda: room)
    pieces = [count_part(graph, part, engine=engine).pieces for part in slices(graph, 4)]
    assert min(pieces) > 1 and len(brought) < 2 * sum(pieces)  # the first range of a pair stays for the next one
    kept, *_ = device_parts._thread.kept
    assert kept() is graph
    del graph
    gc.collect()
    assert kept() is None


@pytest.mark.sim
def test_the_tally_kernel_takes_any_range_of_edges():
    """Edges first..last - 1 and no other, whatever the shape of the launch."""
    graph = GRAPHS["random"]
    expected = np.zeros(graph.n, np.int64)
    first, last = 100, 517
    for e in range(first, last):
        i, j = int(graph.row_idx[e]), int(graph.col_of[e])
        for k in np.intersect1d(graph.column(i), graph.column(j)).tolist():
            expected[[i, j, k]] += 1
    assert expected.any()
    for blocks, threads in ((1, 32), (3, 64), (200, 96)):
        found = np.zeros(graph.n, np.int64)
        columns = (0, graph.col_ptr, graph.row_idx)
        with runtime.using("sim"):
            part_tally.launch(blocks, threads, first, last, *columns, *columns, False, found, 0, found, 0)
        assert np.array_equal(found, expected)
