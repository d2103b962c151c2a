"""Counting on a small device: exact for every cut and order of events, within its memory, resumable."""

import gc
import json
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from kernel_shapes import small_graphs
from late_device import Device, LateStream
from strategies import sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError, MethodError
from tcgpu import __main__ as command_line
from tcgpu.distributed import device_parts, stream
from tcgpu.distributed.stream import Streaming
from tcgpu.engines import runtime, staging

KERNELS = [pytest.param("sim", marks=pytest.mark.sim), pytest.param("gpu", marks=pytest.mark.gpu)]
ENGINES = ["cpu", *KERNELS]
RMAT = tcgpu.generate.rmat(scale=6, seed=1).ordered("degree")
TRIANGLES = tcgpu.count(RMAT, "cpu")
TOTAL = stream.TOTAL_BYTES
BUDGETS = [TOTAL + 700, TOTAL + 1200, RMAT.nbytes, TOTAL + 2500, 3 * RMAT.nbytes, 10**6]

pytestmark = pytest.mark.usefixtures("own_rings")


def count_by_definition(near, far, part, total, **options):
    """The result of `launch_count`, computed from what the arrays hold when it runs."""
    low, pointers, rows = far
    column = np.searchsorted(near.pointers, np.arange(near.rows.size), side="right")  # and one
    for e in range(part.first - near.first, part.last - near.first):
        i = int(near.rows[e]) - low
        if 0 <= i < pointers.size - 1:
            tail = near.rows[e + 1 : near.pointers[column[e]]]
            total[0] += np.intersect1d(tail, rows[pointers[i] : pointers[i + 1]]).size


@pytest.fixture
def quick(monkeypatch):
    """Replace the kernel by its definition in NumPy, a hundred times as fast as the simulator."""
    monkeypatch.setattr(device_parts, "launch_count", count_by_definition)


# --------------------------------------------------------------------------------------------------------------- exact


@pytest.mark.usefixtures("compiled_if_simulated")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("budget", BUDGETS)
def test_every_budget_gives_the_same_count(engine, budget):
    assert tcgpu.count(RMAT, engine=engine, device_memory=budget) == TRIANGLES


@pytest.mark.usefixtures("compiled_if_simulated")
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("name", small_graphs())
def test_hard_graphs_in_little_memory(engine, name):
    graph = small_graphs()[name]
    least = TOTAL + 2 * (24 + 4 * graph.max_column)
    for budget in (least + graph.nbytes // 2, least + 2 * graph.nbytes):
        assert tcgpu.count(graph, engine=engine, device_memory=budget) == tcgpu.count(graph, "cpu")


@pytest.mark.sim
@hypothesis_settings(max_examples=60)
@given(sparse_graphs(25), st.integers(0, 600), st.sampled_from(["natural", "degree"]))
def test_any_graph_in_any_memory(graph, more, order):
    own = graph.ordered(order)
    budget = TOTAL + 2 * (24 + 4 * own.max_column) + more
    with runtime.using("sim"), pytest.MonkeyPatch.context() as patch:
        patch.setattr(device_parts, "launch_count", count_by_definition)
        assert Streaming(own, budget).count() == tcgpu.count(graph, "cpu")
    assert tcgpu.count(graph, "cpu", device_memory=budget, order=order) == tcgpu.count(graph, "cpu")


@pytest.mark.sim
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("seed", range(4))
def test_copies_never_overwrite_what_a_kernel_reads(budget, seed, monkeypatch):
    """The count is right on a device that does all work as late as allowed, in random order.

    So nothing is overwritten while it is read, and nothing is read before it is copied.
    """
    late = Device(seed)
    monkeypatch.setattr(runtime.named("sim"), "Stream", late.stream)

    def launch(near, far, part, total, stream, **options):
        stream.do(lambda: count_by_definition(near, far, part, total))

    monkeypatch.setattr(device_parts, "launch_count", launch)
    monkeypatch.setattr(staging, "SLOT_WORDS", 50)
    monkeypatch.setattr(device_parts, "SLICE", 50)
    with runtime.using("sim"):
        streaming = Streaming(RMAT, budget)
        assert streaming.count() == TRIANGLES
    assert len(streaming.layout.parts) > 3 and sum(stream.done for stream in late.streams) > 20


def test_the_late_device_detects_missing_waits(monkeypatch):
    """Without the waits between streams the count is wrong, at least sometimes."""
    monkeypatch.setattr(LateStream, "wait", lambda stream, event: None)
    wrong = 0
    for seed in range(5):
        with pytest.MonkeyPatch.context() as patch:
            try:
                test_copies_never_overwrite_what_a_kernel_reads(TOTAL + 1200, seed, patch)
            except (AssertionError, IndexError):
                wrong += 1
    assert wrong


# -------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.sim
@pytest.mark.parametrize("budget", BUDGETS)
def test_no_more_device_memory_is_used_than_allowed(budget, quick, monkeypatch):
    taken, engine = [], runtime.named("sim")
    make = engine.device_array
    monkeypatch.setattr(engine, "device_array", lambda *shape: taken.append(make(*shape).nbytes) or make(*shape))
    with runtime.using("sim"):
        streaming = Streaming(RMAT, budget)
        assert streaming.count() == TRIANGLES
    assert sum(taken) == streaming.layout.device_bytes <= budget
    assert (streaming.layout.buffers == 0) == (budget > RMAT.nbytes + TOTAL)


def test_more_memory_makes_fewer_parts():
    parts = [len(stream.layout(RMAT, budget).parts) for budget in BUDGETS]
    assert parts == sorted(parts, reverse=True) and parts[0] > 20 and parts[-1] == 1


def test_too_little_memory_is_refused_with_the_reason():
    with pytest.raises(GraphError, match="300 bytes of device memory are too few for this graph: column 0 alone takes"):
        tcgpu.count(tcgpu.generate.clique(40), "cpu", device_memory=300)
    with pytest.raises(GraphError, match="9 bytes of device memory are too few for this graph: 8 of them are for"):
        tcgpu.count(RMAT, device_memory=9)


@pytest.mark.sim
def test_the_limit_is_what_the_device_has_free(quick, monkeypatch):
    monkeypatch.setattr(runtime, "memory_free", lambda: TOTAL + 2500 + device_parts.MARGIN)
    with runtime.using("sim"):
        streaming = Streaming(RMAT, 10**9)
        assert streaming.count() == TRIANGLES and streaming.layout.device_bytes <= TOTAL + 2500
        assert Streaming(RMAT).limit == TOTAL + 2500


@pytest.mark.sim
def test_columns_that_stay_are_copied_once_and_moving_ones_are_reused(quick, monkeypatch):
    """The ranges that were copied last are the first that are counted with the next range that stays."""
    requested, request = [], staging.Feeder.request

    def recorded(feeder, load):
        requested.append(load.fill.args[1:])
        return request(feeder, load)

    monkeypatch.setattr(staging.Feeder, "request", recorded)
    with runtime.using("sim"):
        streaming = Streaming(RMAT, TOTAL + 700)
        assert streaming.count() == TRIANGLES
    plan = streaming.layout
    stays = list(plan.staying.values())
    assert len(stays) > 3 and plan.buffers == 2
    assert [range_ for range_ in requested if range_ in stays] == stays
    moved = [(part.low, part.high) for part in plan.in_turn() if part.low >= plan.staying[part.first][1]]
    brought = len(requested) - len(stays)
    assert len(moved) - 2 * len(stays) <= brought <= len(moved) - 2 * (len(stays) - 3)


def test_columns_never_replace_those_that_were_used_last(quick, monkeypatch):
    """So a copy does not wait for the part that was launched just before."""
    used, request = [], Streaming._request

    def recorded(streaming, buffer, range_):
        if buffer is not streaming.staying:
            assert buffer.range in (None, range_) or buffer is not used[-1]
            used.append(buffer)
        return request(streaming, buffer, range_)

    monkeypatch.setattr(Streaming, "_request", recorded)
    with runtime.using("sim"):
        assert Streaming(RMAT, TOTAL + 700).count() == TRIANGLES
    assert len(used) > 20


@given(sparse_graphs(), st.integers(1, 9), st.data())
def test_columns_are_filled_in_pieces_of_any_size(graph, size, data):
    """And nothing beyond the piece is written."""
    begin = data.draw(st.integers(0, graph.n))
    end = data.draw(st.integers(begin, graph.n))
    first, last = int(graph.col_ptr[begin]), int(graph.col_ptr[end])
    columns = filled(lambda at, piece: device_parts.fill_columns(graph, begin, end, at, piece),
                     end - begin + 1 + (last - first + 1) // 2, size)  # fmt: skip
    assert np.array_equal(columns[: end - begin + 1], graph.col_ptr[begin : end + 1] - first)
    assert np.array_equal(columns[end - begin + 1 :].view(np.int32)[: last - first], graph.row_idx[first:last])


def filled(fill, words, size):
    """Memory that is filled in pieces of `size` words; checks that the words around each piece do not change."""
    memory = np.zeros(words, np.int64)
    for at in range(0, words, size):
        piece = memory[at : at + size]
        guarded = np.full(piece.size + 2, -7, np.int64)
        fill(at, guarded[1:-1])
        assert guarded[0] == guarded[-1] == -7
        piece[:] = guarded[1:-1]
    return memory


def test_every_second_group_of_parts_is_reversed():
    plan = stream.layout(RMAT, TOTAL + 1200)
    for k, (begin, end) in enumerate(plan.staying.values()):
        lows = [part.low for part in plan.in_turn() if plan.staying[part.first] == (begin, end)]
        assert lows[0] <= begin and lows[1:] == sorted(lows[1:], reverse=k % 2 == 1)
    assert sorted(map(repr, plan.in_turn())) == sorted(repr(part) for part in plan.parts if not part.empty)


def test_memory_is_freed_without_the_garbage_collector(monkeypatch):
    arrays, array = [], runtime.named("sim").device_array

    def noted(*args):
        made = array(*args)
        arrays.append(weakref.ref(made))
        return made

    monkeypatch.setattr(runtime.named("sim"), "device_array", noted)
    gc.disable()
    try:
        with runtime.using("sim"):
            assert Streaming(RMAT, TOTAL + 1200).count() == TRIANGLES
        assert len(arrays) > 2 and not any(array() is not None for array in arrays)
    finally:
        gc.enable()


@pytest.mark.gpu
def test_all_gpu_memory_is_freed():
    """Of this process: others may use the same GPU."""
    pool = pytest.importorskip("cupy").get_default_memory_pool()
    graph = tcgpu.generate.rmat(scale=16, seed=1)
    staging.end_rings()
    runtime.release_device_memory()
    before = pool.total_bytes()
    held = runtime.device_array(1 << 20, np.int64)
    assert pool.total_bytes() >= before + held.nbytes
    del held
    tcgpu.count(graph, engine="gpu", device_memory="3MB")
    assert pool.total_bytes() == before


@pytest.mark.gpu
def test_pinned_memory_is_unpinned_when_it_is_freed():
    """The driver refuses to pin what is pinned already."""
    cuda = pytest.importorskip("cupy").cuda.runtime
    array = runtime.pinned(1 << 16, np.int64)
    array[:] = 7
    address, size = array.ctypes.data, array.nbytes
    with pytest.raises(cuda.CUDARuntimeError, match="AlreadyRegistered"):
        cuda.hostRegister(address, size, 0)
    there, back = runtime.device_array(1 << 16, np.int64), runtime.pinned(1 << 16, np.int64)
    stream = runtime.Stream()
    stream.copy_in(there, 0, array)
    stream.copy_out(there, 0, back)
    stream.event().synchronize()
    assert np.array_equal(back, array)
    del array
    with pytest.raises(cuda.CUDARuntimeError, match="NotRegistered"):
        cuda.hostUnregister(address)


# ------------------------------------------------------------------------------------------- interruption, going on


def feeding():
    """The threads of rings; rings that are kept for large arrays may have some."""
    return {thread for thread in threading.enumerate() if "tcgpu-feeder" in thread.name}


class Stop(KeyboardInterrupt):
    """Raised as if by Ctrl-C."""


def stopping_after(parts):
    calls = []

    def stop(done, total):
        calls.append(done / total)
        if len(calls) == parts:
            raise Stop

    return stop


@pytest.mark.parametrize("engine", ENGINES)
def test_an_interrupted_count_frees_everything(engine, monkeypatch, tmp_path):
    released, before = [], feeding()
    where = runtime.named("sim" if engine == "cpu" else engine)
    release = where.release_device_memory
    monkeypatch.setattr(where, "release_device_memory", lambda: released.append(release()))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(Stop):
        tcgpu.count(RMAT, engine=engine, device_memory=TOTAL + 1200, progress=stopping_after(2))
    assert feeding() <= before
    assert list(tmp_path.iterdir()) == [] and len(released) == (engine != "cpu")
    assert tcgpu.count(RMAT, engine=engine, device_memory=TOTAL + 1200) == TRIANGLES


@pytest.mark.sim
@pytest.mark.parametrize("seconds", ["allocate", "fill", "launch"])
def test_a_failed_count_frees_everything(seconds, quick, monkeypatch):
    """Also an error before the first part, or in a thread that fills pinned memory."""
    before = feeding()

    def fail(*anything, **more):
        raise RuntimeError("a fault")

    if seconds == "allocate":
        monkeypatch.setattr(runtime.named("sim"), "pinned", fail)
    elif seconds == "fill":
        monkeypatch.setattr(device_parts, "fill_columns", fail)
    else:
        monkeypatch.setattr(device_parts, "launch_count", fail)
    with runtime.using("sim"):
        streaming = Streaming(RMAT, TOTAL + 1200)
        with pytest.raises(RuntimeError, match="a fault"):
            streaming.count()
    assert not {"staying", "moving", "total", "feeder"} & set(vars(streaming))
    assert feeding() <= before


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("budget", [TOTAL + 1200, 10**6])
def test_a_resumed_count_skips_parts_that_are_done(engine, budget, monkeypatch, tmp_path):
    monkeypatch.setattr(device_parts, "SLICE", 20)
    monkeypatch.setattr(device_parts, "MAX_PENDING", 4)
    path = tmp_path / "journal"
    options = {"engine": engine, "device_memory": budget, "resume": path}
    with pytest.raises(Stop):
        tcgpu.count(RMAT, **options, progress=stopping_after(3))
    done = [json.loads(line) for line in path.read_text().splitlines()[1:]]
    counted = []
    launch, count_part = device_parts.launch_count, stream.count_part
    monkeypatch.setattr(device_parts, "launch_count", lambda *a, **k: counted.append(a[2]) or launch(*a, **k))
    monkeypatch.setattr(stream, "count_part", lambda *a, **k: counted.append(a[1]) or count_part(*a, **k))
    assert tcgpu.count(RMAT, **options) == TRIANGLES
    limit = stream.native_parts(RMAT, budget) if engine == "cpu" else stream.layout(RMAT, budget).parts
    before = {limit[line["part"]] for line in done}
    assert len(before) >= 3 and counted and not before & set(counted)
    assert before | set(counted) >= {part for part in limit if not part.empty}
    counted.clear()
    shares = []
    assert tcgpu.count(RMAT, **options, progress=lambda done, total: shares.append(done / total)) == TRIANGLES
    assert counted == [] and shares == [1.0]  # what was done before


def test_a_journal_of_another_cut_is_refused(tmp_path):
    path = tmp_path / "journal"
    tcgpu.count(RMAT, "cpu", device_memory=TOTAL + 1200, resume=path)
    with pytest.raises(GraphError, match="journal: a journal of this graph in .* other parts"):
        tcgpu.count(RMAT, "cpu", device_memory=TOTAL + 2500, resume=path)
    with pytest.raises(GraphError, match="journal: a journal of another graph, or of the same in another order"):
        tcgpu.count(RMAT, "cpu", order="random", device_memory=TOTAL + 1200, resume=path)


@pytest.mark.parametrize("engine", ENGINES)
def test_progress_grows_to_the_total(engine):
    reported = []
    tcgpu.count(
        RMAT, engine=engine, device_memory=TOTAL + 1200, progress=lambda done, total: reported.append((done, total))
    )
    done, totals = zip(*reported, strict=True)
    assert list(done) == sorted(done) and len(done) > 10 and len(set(totals)) == 1
    assert done[0] < 0.5 * totals[0] and done[-1] == pytest.approx(totals[0])


# ---------------------------------------------------------------------------------------------------- graphs in folders


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("budget", [TOTAL + 1200, "1MB"])
def test_a_folder_stays_in_its_files_and_in_its_order(engine, budget, tmp_path, monkeypatch):
    tcgpu.write(RMAT, tmp_path / "graph", format="folder")
    graph = tcgpu.read(tmp_path / "graph")
    monkeypatch.setattr(Graph, "ordered", lambda graph, order: {"natural": graph}[order])
    for thing in (tmp_path / "graph", str(tmp_path / "graph"), graph):
        assert tcgpu.count(thing, engine=engine, device_memory=budget) == TRIANGLES


def test_a_graph_in_memory_is_counted_in_the_methods_order(monkeypatch):
    seen = []
    ordered = Graph.ordered
    monkeypatch.setattr(Graph, "ordered", lambda graph, order: seen.append(order) or ordered(graph, order))
    tcgpu.count(RMAT, "cpu", device_memory="1MB")
    tcgpu.count(RMAT, "cpu", device_memory="1MB", order="bfs")
    assert [order for order in seen if order != "natural"] == ["auto", "bfs"]


# ------------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    "text, bytes_",
    [("512MB", 512 * 10**6), ("2GiB", 2 << 30), ("1.5kb", 1500), ("100", 100), (7, 7), (" 3 MiB ", 3 << 20),
     (np.int64(9), 9), ("1TB", 10**12), ("64 B", 64)],
)  # fmt: skip
def test_sizes_are_read(text, bytes_):
    assert stream.byte_count(text) == bytes_


@pytest.mark.parametrize("text", ["", "x", "-5", "5 apples", 0, -1, True, 1.5, "0MB", "1e3MB", "MB", "1 2", b"1MB"])
def test_an_invalid_size_is_refused(text):
    with pytest.raises(GraphError, match="device_memory= is a number of bytes, or a text such as '512MB'"):
        tcgpu.count(RMAT, device_memory=text)


def test_contradictory_options_are_refused():
    with pytest.raises(MethodError, match="method 'naive' counts whole graphs"):
        tcgpu.count(RMAT, "naive", device_memory="1MB")
    with pytest.raises(GraphError, match="device_memory= is for one device, and executor= for many"):
        tcgpu.count(RMAT, device_memory="1MB", executor=ThreadPoolExecutor())
    with pytest.raises(FileNotFoundError):
        tcgpu.count("no/such/folder", device_memory="1MB")


@pytest.mark.sim
def test_the_simulator_refuses_what_would_take_too_long():
    graph = tcgpu.generate.rmat(scale=16, seed=1)
    with pytest.raises(GraphError, match="warp_search would take about .* in the simulator: take engine='cpu'"):
        tcgpu.count(graph, engine="sim", device_memory="1MB")


def test_native_parts_are_short_enough_to_be_interrupted(monkeypatch):
    monkeypatch.setattr(stream, "NATIVE_WORK", 100)
    parts = stream.native_parts(RMAT, None)
    assert len(parts) > 80 and max(part.work for part in parts) < 200
    assert len(stream.native_parts(RMAT, RMAT.nbytes + 100)) == len(parts)
    assert sum(stream.count_part(RMAT, part, method="cpu").triangles for part in parts) == TRIANGLES


# ----------------------------------------------------------------------------------------------------- the command line


def test_the_command_line_counts_in_parts(tmp_path, capsys):
    tcgpu.write(RMAT, tmp_path / "graph", format="folder")
    file, journal = str(tmp_path / "graph"), str(tmp_path / "journal")
    command = ["count", file, "--engine", "cpu", "--device-memory", str(TOTAL + 1200)]
    assert command_line.main([*command, "--resume", journal, "--json"]) == 0
    reported = json.loads(capsys.readouterr().out)
    assert reported["triangles"] == TRIANGLES and reported["method"] == reported["engine"] == "cpu"
    assert reported["seconds"]["kernel"] is None and 0 < reported["seconds"]["process"] <= reported["seconds"]["total"]
    assert len(open(journal).readlines()) > 10
    assert command_line.main([*command, "--progress"]) == 0
    out, err = capsys.readouterr()
    assert out == f"{TRIANGLES}\n" and "tcgpu: counting" in err


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--device-memory", "lots"], "--device-memory is a number of bytes"),
        (["--device-memory", "1MB", "--method", "naive"], "'naive' counts whole graphs"),
        (["--device-memory", "1MB", "--per-vertex"], "--per-vertex counts the whole graph at a time"),
        (["--resume", "."], "Is a directory"),
    ],
)
def test_the_command_line_reports_an_error_in_one_line(arguments, message, tmp_path, capsys):
    tcgpu.write(RMAT, tmp_path / "graph.mtx")
    assert command_line.main(["count", str(tmp_path / "graph.mtx"), *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == "" and message in err and err.count("\n") == 1
