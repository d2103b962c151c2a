"""Raw edges that the device has no memory for: it cleans them in pieces. The same columns and counts, in any memory."""

import numpy as np
import pytest
import sampling
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_shapes import raw, small_graphs
from sampling import share

import tcgpu
from tcgpu import Graph, GraphError, distributed, generate
from tcgpu.distributed import stream
from tcgpu.engines import runtime, staging
from tcgpu.kernels import columns_in_pieces
from tcgpu.kernels.columns_in_pieces import DoesNotSuit, RawEdges, ranges_of_columns

KERNELS = [pytest.param("sim", marks=pytest.mark.sim), pytest.param("gpu", marks=pytest.mark.gpu)]
RMAT = generate.rmat(7, 6, seed=2)
EDGES = raw(RMAT)  # with repeats and loops
TRIANGLES = tcgpu.count(RMAT, "cpu")
ROWS = {1: 1000, 2: 400, 5: 155}  # ranges of columns that EDGES are cleaned in -> the most rows of one
AMPLE = 10**6  # bytes: for EDGES in one range

pytestmark = pytest.mark.usefixtures("own_rings", "compiled_if_simulated")


@pytest.fixture
def ranges(monkeypatch):
    """Few edges are cleaned in pieces, too. The list gets how many ranges of columns there are, or None if pieces do
    not suit."""
    found = []

    def noted(*args):
        found.append(0)
        try:
            for some in ranges_of_columns(*args):
                found[-1] += 1
                yield some
                del some
        except DoesNotSuit:
            found[-1] = None
            raise

    monkeypatch.setattr(stream, "ranges_of_columns", noted)
    monkeypatch.setattr(stream, "MANY_EDGES", 0)
    monkeypatch.setattr(columns_in_pieces, "LEAST_PIECE", 1)
    monkeypatch.setattr(columns_in_pieces, "MOST_RANGES", 100)
    return found


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(columns_in_pieces, "PIECE", 200)


@pytest.fixture
def number(request, monkeypatch):
    """Of ranges."""
    monkeypatch.setattr(columns_in_pieces, "MAX_EDGES", ROWS[request.param])
    return request.param


# --------------------------------------------------------------------------------------------------------------- exact


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("number", ROWS, indirect=True)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_edges_are_counted_in_one_range_of_columns_or_several(engine, number, dtype, ranges, small_pieces):
    u, v, n = EDGES
    edges = u.astype(dtype), v.astype(dtype), n
    assert tcgpu.count(edges, engine=engine, device_memory=AMPLE) == TRIANGLES
    assert ranges == [number]


@pytest.mark.parametrize("engine", KERNELS)
def test_less_memory_makes_more_ranges(engine, ranges):
    u, v, n = EDGES
    for limit in (AMPLE, 13_000, 8_000, 4_000):
        assert tcgpu.count((np.tile(u, 4), np.tile(v, 4), n), engine=engine, device_memory=limit) == TRIANGLES
    assert ranges == [1, 1, 2, None]


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("name", small_graphs())
def test_hard_graphs_are_cleaned_in_pieces(engine, name, ranges, small_pieces):
    edges = raw(small_graphs()[name], seed=3)
    assert tcgpu.count(edges, engine=engine, device_memory=AMPLE) == tcgpu.count(edges, "cpu")
    assert ranges in ([0], [1])  # none if no vertex has two edges


@pytest.mark.sim
@pytest.mark.usefixtures("compiled_kernels")
@settings(max_examples=40 if sampling.full else 15)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=60),
    st.integers(0, 5),
    st.integers(300, 3000),
    st.integers(1, 40),
)
def test_any_edges_in_any_memory(pairs, unused, limit, piece):
    """Also where pieces do not suit: then the host cleans."""
    u, v = np.array(pairs, np.int32).reshape(-1, 2).T.copy()
    edges = u, v, 10 + unused
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stream, "MANY_EDGES", 0)
        patch.setattr(columns_in_pieces, "LEAST_PIECE", 1)
        patch.setattr(columns_in_pieces, "PIECE", piece)
        assert tcgpu.count(edges, engine="sim", device_memory=limit) == tcgpu.count(edges, "cpu")


@pytest.mark.sim
@pytest.mark.parametrize("number", ROWS, indirect=True)
def test_columns_are_those_of_the_host_in_degree_order(number, ranges, small_pieces):
    """Without the vertices that have fewer than two raw edges, and their edges."""
    u, v, n = EDGES
    whole = Graph.from_edges(u, v, n, order="degree")
    left_out = int((np.bincount(np.append(u, v), minlength=n) < 2).sum())
    assert left_out, "a part of what is tested"
    columns, kept = [], 0
    with runtime.using("sim"):
        for some in stream.ranges_of_columns(u, v, n, AMPLE):
            assert (some.begin, some.of) == (len(columns), n - left_out)
            columns += np.split(some.rows, some.pointers[1:-1])
            kept += some.rows.size
    assert ranges == [number] and len(columns) == n - left_out and 0 < kept < whole.m
    for j, rows in enumerate(columns):
        assert rows.tolist() == (whole.column(left_out + j) - left_out).tolist()


@pytest.mark.sim
def test_columns_are_sorted_some_at_a_time(ranges, monkeypatch):
    sorts = []
    monkeypatch.setattr(columns_in_pieces, "MOST_SORTED", 60)
    monkeypatch.setattr(runtime, "sort", lambda keys: (sorts.append(keys.size), keys.sort()))
    assert tcgpu.count(EDGES, engine="sim", device_memory=AMPLE) == TRIANGLES
    assert sorts[0] == RMAT.n and len(sorts) > 5 and max(sorts[1:]) <= 60


@pytest.mark.sim
def test_vertices_stay_if_their_degrees_may_be_wrong(ranges, monkeypatch):
    monkeypatch.setattr(columns_in_pieces, "MOST_COUNTED", 10)
    u, v, n = EDGES
    with runtime.using("sim"):
        (columns,) = ranges_of_columns(u, v, n, AMPLE)
    assert columns.of == n and columns.rows.size == RMAT.m


@pytest.mark.parametrize("engine", KERNELS)
def test_a_column_that_does_not_fit_is_cleaned_by_the_host(engine, ranges):
    """One edge a thousand times, and a triangle."""
    u, v = np.repeat([1, 2, 1], [1000, 1, 1]).astype(np.int32), np.repeat([2, 3, 3], [1000, 1, 1]).astype(np.int32)
    assert tcgpu.count((u, v), engine=engine, device_memory=3000) == 1
    assert tcgpu.count((u, v), engine=engine, device_memory=AMPLE) == 1
    assert ranges == [None, 1]


# -------------------------------------------------------------------------------------------------- what is cleaned so


@pytest.mark.sim
@pytest.mark.parametrize("options", [
    {"engine": "cpu"}, {"order": "natural"}, {"cached": False, "method": "warp_search"},
])  # fmt: skip
def test_other_counts_are_cleaned_by_the_host(options, ranges):
    options = {"engine": "sim", "device_memory": AMPLE} | options
    assert tcgpu.count(EDGES, **options) == TRIANGLES
    assert ranges == []


@pytest.mark.sim
@pytest.mark.parametrize("graph", [EDGES, RMAT, RMAT.edges(), np.transpose(RMAT.edges()).tolist()])
def test_only_arrays_of_edges_are_cleaned_in_pieces(graph, ranges, tmp_path):
    assert tcgpu.count(graph, engine="sim", device_memory=AMPLE) == TRIANGLES
    assert len(ranges) == isinstance(graph, tuple)
    assert tcgpu.count(graph, engine="sim", device_memory=AMPLE, resume=tmp_path / "journal") == TRIANGLES
    assert len(ranges) == isinstance(graph, tuple), "a journal has parts of a clean graph"


@pytest.mark.sim
@pytest.mark.parametrize("number", [5], indirect=True)
@pytest.mark.parametrize("constant, value, limit", [("LEAST_PIECE", 10**6, 7000), ("MOST_RANGES", 4, AMPLE)])
def test_where_pieces_would_be_slow_the_host_cleans(constant, value, limit, number, ranges, monkeypatch):
    monkeypatch.setattr(columns_in_pieces, constant, value)
    assert tcgpu.count(EDGES, engine="sim", device_memory=limit) == TRIANGLES
    assert ranges == [None]


@pytest.mark.sim
def test_without_a_limit_the_host_cleans(ranges):
    assert distributed.count(EDGES, "warp_search", engine="sim") == TRIANGLES
    assert ranges == []


@pytest.mark.sim
def test_few_edges_are_cleaned_by_the_host(monkeypatch):
    monkeypatch.setattr(stream, "ranges_of_columns", None)
    assert tcgpu.count(EDGES, engine="sim", device_memory=AMPLE) == TRIANGLES


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.sim
@pytest.mark.parametrize("edges, message", [
    (([0, 1], [1, -2]), "not negative"),
    (([0, 1], [1, 7], 5), r"edge 1 is \(1, 7\); with n = 5"),
    (([0, 1], [1]), "an edge needs one of each"),
    (([0, 1], [1.0, 2.0]), "whole numbers"),
    ((np.array([0, 1]), np.array([1, 2**40])), "relabel=True"),
])  # fmt: skip
def test_wrong_edges_are_refused(edges, message, ranges):
    with pytest.raises(GraphError, match=message):
        tcgpu.count(edges, engine="sim", device_memory=AMPLE)
    assert ranges == []


@pytest.mark.sim
@pytest.mark.parametrize("limit, message", [(9, "8 of them are for"), (60, "column .* alone takes")])
def test_too_little_memory_is_refused_with_the_reason(limit, message, ranges):
    with pytest.raises(GraphError, match=f"{limit} bytes of device memory are too few for this graph: {message}"):
        tcgpu.count(EDGES, engine="sim", device_memory=limit)
    assert ranges == [None]


@pytest.mark.sim
def test_the_simulator_refuses_what_takes_too_long(ranges):
    with pytest.raises(GraphError, match="in the simulator"):
        tcgpu.count(EDGES, engine="sim", device_memory=AMPLE, max_seconds=1e-3)
    assert ranges == []


# ----------------------------------------------------------------------------------- progress, interruption, memory


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("number", [1, 2], indirect=True)
def test_progress_ascends_to_the_end(engine, number, ranges, small_pieces):
    seen = []
    options = {"engine": engine, "device_memory": AMPLE}
    assert tcgpu.count(EDGES, **options, progress=lambda done, total: seen.append(done / total)) == TRIANGLES
    assert len(seen) > 10 and seen == sorted(seen) and seen[-1] == 1


class Stop(KeyboardInterrupt):
    """Raised as if by Ctrl-C."""


@pytest.mark.parametrize("engine", KERNELS)
@pytest.mark.parametrize("number", [1, 2], indirect=True)
@pytest.mark.parametrize("at", share([0.1, 0.3, 0.6, 0.8], "interrupts"))
def test_a_count_that_is_stopped_frees_the_memory_of_the_device(engine, number, at, ranges, small_pieces):
    """While the error is handled already. On the GPU it is the memory of this process: others may use the same."""

    def stop(done, total):
        if done >= at * total:
            raise Stop

    before = pool_bytes(engine)
    with pytest.raises(Stop) as error:
        tcgpu.count(EDGES, engine=engine, device_memory=AMPLE, progress=stop)
    assert pool_bytes(engine) == before and error.value.__traceback__
    assert tcgpu.count(EDGES, engine=engine, device_memory=AMPLE) == TRIANGLES
    assert pool_bytes(engine) == before


def pool_bytes(engine):
    """The bytes that CuPy's pool has of the GPU."""
    if engine == "sim":
        return 0
    return pytest.importorskip("cupy").get_default_memory_pool().total_bytes()


@pytest.mark.gpu
@pytest.mark.parametrize("limit", [22, 40, 100])
def test_no_more_gpu_memory_is_taken_than_allowed(limit, ranges, monkeypatch):
    """By all that is in CuPy's pool, also what is free there. The pool is largest when it is emptied, or at the end."""
    edges, most = generate.edges("rmat", 18, 16), []
    staging.end_rings()
    runtime.release_device_memory()
    before, gpu = pool_bytes("gpu"), runtime.named("gpu")
    release = gpu.release_device_memory
    monkeypatch.setattr(gpu, "release_device_memory", lambda: most.append(pool_bytes("gpu")) or release())
    found = tcgpu.count(edges, engine="gpu", device_memory=f"{limit}MB")
    assert found == tcgpu.count(edges, "cpu") and ranges == [2 if limit == 22 else 1]
    assert limit * 10**6 // 2 < max(most) - before <= limit * 10**6
    assert pool_bytes("gpu") == before


@pytest.mark.sim
def test_pieces_have_all_edges_in_turn():
    u = np.arange(10, dtype=np.int64)
    with runtime.using("sim"):
        found = [[ends.copy() for ends in piece] for piece in RawEdges(u, -u, 10, 4).pieces()]
    assert [piece[0].size for piece in found] == [4, 4, 2]
    for ends, whole in zip(zip(*found, strict=True), (u, -u), strict=True):
        assert np.concatenate(ends).tolist() == whole.tolist()
