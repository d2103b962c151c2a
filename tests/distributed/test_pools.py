"""Counting by threads and processes: results, how they get the graph, and what happens when they die."""

import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pool_work
import pytest

import tcgpu
from tcgpu import EngineError, Graph, GraphError, TcgpuError
from tcgpu.distributed import PartResult, Share, executors, pool, shared_arrays, shares, slices, worker
from tcgpu.distributed.worker import DoesNotFit
from tcgpu.errors import WorkerLost

SPAWN = multiprocessing.get_context("spawn")
GRAPHS = {
    "R-MAT": tcgpu.generate.rmat(10),
    "clique": tcgpu.generate.clique(40),
    "star": Graph.from_edges(np.zeros(30, np.int32), np.arange(1, 31)),
    "no edge": Graph.from_edges([], [], 5),
    "no vertex": Graph.from_edges([], []),
}
COUNTS = {name: tcgpu.count(graph, "cpu") for name, graph in GRAPHS.items()}
every_graph = pytest.mark.parametrize("name", GRAPHS)


@pytest.fixture(scope="module")
def processes():
    """A user's pool of two spawned processes."""
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        yield executor


@pytest.fixture(scope="module", autouse=True)
def no_pool_is_left():
    yield
    executors.close()


@pytest.fixture
def shared_files(monkeypatch):
    """A function that returns the shared files of the test that are still open."""
    made, make = [], shared_arrays.tempfile.TemporaryFile
    monkeypatch.setattr(shared_arrays.tempfile, "TemporaryFile", lambda **where: made.append(make(**where)) or made[-1])
    return lambda: [file for file in made if not file.closed]


def large(scale=15):
    """A graph that takes a pool a while to count, and its triangles."""
    graph = tcgpu.generate.rmat(scale, seed=5)
    return graph, tcgpu.count(graph, "cpu")


# --------------------------------------------------------------------------------------------------------------- verbs


@every_graph
@pytest.mark.parametrize("parts", [None, 1, 7, 100])
def test_threads_count(name, parts):
    with ThreadPoolExecutor(2) as executor:
        assert pool.count(GRAPHS[name], executor, parts=parts, engine="cpu") == COUNTS[name]


@every_graph
def test_processes_count(name, processes):
    assert pool.count(GRAPHS[name], processes, engine="cpu") == COUNTS[name]
    assert pool.count(GRAPHS[name], processes, engine="cpu", parts=9, order="natural") == COUNTS[name]


@every_graph
@pytest.mark.parametrize("order", ["natural", "degree"])
def test_processes_count_per_edge_and_vertex(name, order, processes):
    graph = GRAPHS[name]
    options = {"engine": "cpu", "order": order, "parts": 5}
    assert np.array_equal(pool.tally("triangles", graph, processes, **options), tcgpu.triangles(graph, method="cpu"))
    assert np.array_equal(pool.tally("support", graph, processes, **options), tcgpu.support(graph, method="cpu"))


@pytest.mark.parametrize("name", ["threads", "processes"])
def test_named_pools_count_and_stay(name):
    graph = GRAPHS["R-MAT"]
    assert pool.count(graph, name, engine="cpu") == COUNTS["R-MAT"]
    kept = executors.own_pool(name)
    assert pool.count(graph, name, engine="cpu") == COUNTS["R-MAT"]
    assert executors.own_pool(name) is kept


def test_the_verbs_of_the_package_take_executors(processes):
    graph = GRAPHS["R-MAT"]
    options = {"engine": "cpu", "executor": processes, "progress": False}
    assert tcgpu.count(graph, "cpu", parts=5, **options) == COUNTS["R-MAT"]
    assert np.array_equal(tcgpu.triangles(graph, **options), tcgpu.triangles(graph, method="cpu"))
    assert np.array_equal(tcgpu.support(graph, **options), tcgpu.support(graph, method="cpu"))
    assert tcgpu.WorkerLost is WorkerLost
    with pytest.raises(GraphError, match="give one of the two"):
        tcgpu.count(graph, device_memory="1GB", **options)


def test_processes_of_the_cpu_see_no_gpu():
    assert executors.own_pool("processes").submit(worker.engine_here).result() == "sim"


def test_forked_processes_count():
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as executor:
        assert pool.count(GRAPHS["R-MAT"], executor, engine="cpu") == COUNTS["R-MAT"]


def test_results_have_times_and_engines(processes):
    graph = GRAPHS["R-MAT"]
    parts = slices(graph, 12)
    found = list(pool.results(graph, processes, parts, engine="cpu"))
    assert {each.part for each in found} == {part for part in parts if not part.empty}
    assert sum(each.triangles for each in found) == COUNTS["R-MAT"]
    assert all(each.seconds >= 0 and each.engine == "cpu" for each in found)


def test_a_script_needs_no_main_guard(tmp_path):
    """Processes do not run the script again, which would start processes itself."""
    script = tmp_path / "script.py"
    script.write_text(
        "import tcgpu\nfrom tcgpu.distributed import pool\n"
        "print(pool.count(tcgpu.generate.clique(20), 'processes', engine='cpu'))\n"
    )
    root = Path(tcgpu.__file__).parents[1]
    ran = subprocess.run([sys.executable, script], cwd=root, capture_output=True, text=True, timeout=120)
    assert (ran.stdout, ran.stderr) == ("1140\n", "")


# ----------------------------------------------------------------------------------------------------- options, errors


@pytest.mark.parametrize("executor", ["gpu", "", 3, object, Executor])
def test_an_invalid_executor_is_refused(executor):
    with pytest.raises(EngineError, match="no executor .* there are gpus"):
        pool.count(GRAPHS["clique"], executor)


@pytest.mark.skipif(executors.ENGINE == "gpu", reason="there is a GPU")
def test_executor_gpus_is_refused_without_a_gpu():
    with pytest.raises(GraphError, match="no GPU to work with.*'processes'"):
        pool.count(GRAPHS["clique"], "gpus")


@pytest.mark.parametrize(
    "options, message",
    [
        ({"method": "naive", "engine": "sim"}, "counts whole graphs"),
        ({"method": "nothing"}, "no method"),
        ({"order": "nothing"}, "no order"),
        ({"knob": 3}, "has no knob 'knob'"),
        ({"method": "cpu", "engine": "gpu"}, "runs on cpu"),
        ({"parts": 0}, "1 part or more"),
    ],
)
def test_invalid_options_are_refused(options, message):
    with ThreadPoolExecutor(1) as executor, pytest.raises(TcgpuError, match=message):
        pool.count(GRAPHS["clique"], executor, **({"engine": "cpu"} | options))


def test_forked_processes_cannot_use_a_gpu(monkeypatch):
    monkeypatch.setattr(executors, "ENGINE", "gpu")
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as executor:
        with pytest.raises(GraphError, match="get_context\\('spawn'\\)"):
            pool.count(GRAPHS["clique"], executor)


# ---------------------------------------------------------------------------------------------------------- the graph


def test_the_graph_is_shared_with_processes_once(monkeypatch, processes, shared_files):
    graph, triangles = large(12)
    made = []
    folder = shared_arrays._folder_with_space
    monkeypatch.setattr(shared_arrays, "_folder_with_space", lambda size: (made.append(size), folder(size))[1])
    for _ in range(4):
        assert pool.count(graph, processes, engine="cpu", order="natural") == triangles
        assert not shared_files()
    assert 1 <= len(made) <= 2  # again for the second worker, if the first one was so fast that it counted all parts


def test_threads_use_the_same_graph(monkeypatch):
    monkeypatch.setattr(pool, "shared_file", None)
    graph = tcgpu.generate.rmat(8, seed=4)
    with ThreadPoolExecutor(2) as executor:
        assert pool.count(graph, executor, engine="cpu", order="natural") == tcgpu.count(graph, "cpu")
    assert worker._held[None].graph is graph


def test_a_graph_in_a_folder_is_mapped_from_there(tmp_path, monkeypatch, processes):
    tcgpu.write(GRAPHS["R-MAT"], tmp_path / "graph", "folder")
    graph = tcgpu.read(tmp_path / "graph")
    monkeypatch.setattr(pool, "shared_file", None)
    assert pool.count(graph, processes, engine="cpu", order="natural") == COUNTS["R-MAT"]


def test_a_folder_of_another_graph_is_not_counted(tmp_path, processes):
    """As on another machine: the folder of that name holds another graph than the one that was read."""
    tcgpu.write(GRAPHS["R-MAT"], tmp_path / "graph", "folder")
    graph = tcgpu.read(tmp_path / "graph")
    tcgpu.write(GRAPHS["clique"], tmp_path / "other", "folder")
    (tmp_path / "graph").rename(tmp_path / "old")
    (tmp_path / "other").rename(tmp_path / "graph")
    assert pool.count(graph, processes, engine="cpu", order="natural") == COUNTS["R-MAT"]


def test_a_folder_that_is_written_over_in_place_is_not_counted(tmp_path, processes):
    """By a graph that differs in a single row."""
    rows = (3 * np.arange(3000)[:, None] + [1, 2, 2]).ravel()
    columns = (3 * np.arange(3000)[:, None] + [0, 0, 1]).ravel()
    graph = Graph.from_edges(rows, columns, 9001)
    rows[7] = 9
    tcgpu.write(Graph.from_edges(rows, columns, 9001), tmp_path / "other", "folder")
    tcgpu.write(graph, tmp_path / "graph", "folder")
    graph = tcgpu.read(tmp_path / "graph")
    (tmp_path / "graph" / "row_idx.npy").write_bytes((tmp_path / "other" / "row_idx.npy").read_bytes())
    assert pool.count(graph, processes, engine="cpu", order="natural") == 3000


def test_workers_on_another_machine_are_sent_the_columns(shared_files):
    with ProcessPoolExecutor(1, mp_context=SPAWN, initializer=pool_work.go_elsewhere) as executor:
        for name in ("R-MAT", "clique", "R-MAT"):
            assert pool.count(GRAPHS[name], executor, engine="cpu") == COUNTS[name]
    assert not shared_files()


def test_columns_are_sent_if_there_is_no_space_for_a_file(monkeypatch, processes):
    monkeypatch.setattr(shared_arrays, "_folder_with_space", lambda size: None)
    graph = tcgpu.generate.rmat(9, seed=8)
    assert pool.count(graph, processes, engine="cpu") == tcgpu.count(graph, "cpu")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full to write to")
def test_a_file_that_cannot_be_written_is_closed_and_the_columns_are_sent(monkeypatch, processes):
    tried = []

    def full(**where):
        tried.append(open("/dev/full", "wb"))
        return tried[-1]

    monkeypatch.setattr(shared_arrays.tempfile, "TemporaryFile", full)
    graph = tcgpu.generate.rmat(9, seed=9)
    assert pool.count(graph, processes, engine="cpu") == tcgpu.count(graph, "cpu")
    assert tried and all(file.closed for file in tried)


@every_graph
@pytest.mark.parametrize("named", [False, True])
def test_a_shared_file_can_be_mapped_while_it_is_open(name, named, monkeypatch, tmp_path):
    """With /proc it has no name; without, until it is closed."""
    if named:
        monkeypatch.setattr(shared_arrays, "OPEN_FILES", "/not/there")
    elif sys.platform != "linux":
        pytest.skip("no /proc here")
    monkeypatch.setattr(shared_arrays, "MEMORY", str(tmp_path))
    graph = GRAPHS[name]
    with shared_arrays.shared_file(graph) as source:
        assert len(os.listdir(tmp_path)) == named
        mapped = source.graph()
        assert mapped.equals(graph)
        with pytest.raises(ValueError, match="read-only"):
            mapped.col_ptr[0] += 1
        assert source.graph().equals(graph)
        assert (
            replace(source, token="0" * shared_arrays.TOKEN).graph() is replace(source, m=graph.m + 1).graph() is None
        )
    assert not os.listdir(tmp_path)
    with pytest.raises(OSError):
        source.graph()


@pytest.mark.skipif(sys.platform != "linux", reason="no /proc here")
def test_another_file_under_the_number_of_a_closed_one_is_not_mapped(tmp_path):
    """A late worker may find anything there: it must not wait for a pipe or map another file."""
    pipe = os.pipe()
    with open(tmp_path / "other", "w+b") as file:
        clique = GRAPHS["clique"]
        with shared_arrays.shared_file(clique) as source:
            pass
        file.write(b"7" * source.nbytes)
        file.flush()
        number = int(source.path.rpartition("/")[2])
        for put in (file.fileno(), *pipe):
            os.dup2(put, number)
            try:
                assert worker._mapped(source) is None
            finally:
                os.close(number)
    for end in pipe:
        os.close(end)


def test_nothing_else_in_the_temporary_folders_is_changed(monkeypatch, tmp_path, processes):
    """Folders of other programs and of the user, whatever their names and ages."""
    monkeypatch.setattr(shared_arrays, "MEMORY", str(tmp_path))
    for name in ("tcgpu-results", "tcgpu-x7_9a", "other"):
        (tmp_path / name / "deep").mkdir(parents=True)
        for file in ("graph.json", "col_ptr.npy", "row_idx.npy", "deep/mine.txt"):
            (tmp_path / name / file).write_text("{}")
        for path in (*(tmp_path / name).rglob("*"), tmp_path / name):
            os.utime(path, (0, 0))
    before = state(tmp_path)
    graph = tcgpu.generate.rmat(9, seed=10)
    assert pool.count(graph, processes, engine="cpu") == tcgpu.count(graph, "cpu")
    assert state(tmp_path) == before


def state(folder):
    """The mode, size, time and inode of everything in a folder."""
    facts = ((path, path.stat()) for path in folder.rglob("*"))
    return {path: (fact.st_mode, fact.st_size, fact.st_mtime_ns, fact.st_ino) for path, fact in facts}


# -------------------------------------------------------------------------------------------------------------- shares


@pytest.mark.sim
def test_shares_add_up(processes):
    graph = tcgpu.generate.rmat(6)
    for _ in range(2):
        assert pool.count(graph, processes, engine="sim") == tcgpu.count(graph, "cpu")


@pytest.mark.sim
def test_a_worker_keeps_its_plan():
    """A second count makes no new plan."""
    graph = tcgpu.generate.clique(12)
    with ThreadPoolExecutor(1) as executor:
        for _ in range(2):
            assert pool.count(graph, executor, method="adaptive", engine="sim") == 220
            plans = {id(worker._held[None].run)}
        assert len(plans) == 1
        assert pool.count(graph, executor, method="adaptive", engine="sim", parts=3) == 220
        assert worker._held[None].planned[-1].of == 3


@pytest.mark.sim
def test_a_worker_without_memory_for_a_share_reports_it(monkeypatch):
    def full(plan):
        raise MemoryError("CUDA_ERROR_OUT_OF_MEMORY")

    monkeypatch.setattr("tcgpu.kernels.Plan.allocate", full)
    with ThreadPoolExecutor(1) as executor, pytest.raises(DoesNotFit, match="OUT_OF_MEMORY"):
        pool.count(tcgpu.generate.clique(9), executor, method="adaptive", engine="sim")


class Scripted(Executor):
    """An executor of a fake worker: `answer(task, part, source)` returns or raises each result."""

    _max_workers = 3

    def __init__(self, answer):
        self.answer = answer

    def submit(self, function, *args):
        future = Future()
        if function is not worker.run:
            future.set_result(function(*args))
            return future
        try:
            future.set_result(self.answer(*args))
        except BaseException as error:
            future.set_exception(error)
        return future


def test_a_share_that_two_workers_counted_is_added_once():
    counted = []

    def answer(task, part, source):
        counted.append(part.index)
        return PartResult(Share(1 if len(counted) < 3 else part.index, 3), 10 ** len(counted), 0.0, "sim")

    found = list(pool.results(GRAPHS["clique"], Scripted(answer), shares(3)))
    assert {each.part.index: each.triangles for each in found} == {0: 10_000, 1: 10, 2: 1000}
    assert counted == [0, 1, 2, 0]


def test_a_graph_too_large_for_a_gpu_is_counted_in_slices(monkeypatch):
    tried = []

    def answer(task, part, source):
        if part.of_tasks:
            tried.append(part)
            raise DoesNotFit("needs 9 bytes")
        return worker.count_part(GRAPHS["clique"], part)

    monkeypatch.setattr(worker, "engine_here", lambda: "gpu")
    assert pool.count(GRAPHS["clique"], Scripted(answer)) == COUNTS["clique"] and tried
    with pytest.raises(GraphError, match="needs 9 bytes"):
        pool.count(GRAPHS["clique"], Scripted(answer), method="adaptive")


def test_a_worker_is_sent_a_shared_file_and_then_the_graph(shared_files):
    sent = []

    def answer(task, part, source):
        sent.append(type(source))
        return worker.count_part(source, part) if isinstance(source, Graph) else None

    assert pool.count(GRAPHS["clique"], Scripted(answer), engine="cpu", parts=1) == COUNTS["clique"]
    assert sent == [type(None), shared_arrays.SharedFile, Graph]
    assert not shared_files()


@pytest.mark.parametrize("error", [GraphError("a bad part"), RuntimeError("a fault of ours")])
def test_an_error_in_a_worker_is_raised(error, shared_files):
    def answer(task, part, source):
        raise error

    with pytest.raises(type(error), match=str(error)):
        pool.count(GRAPHS["clique"], Scripted(answer), engine="cpu")


@pytest.mark.parametrize("error", [BrokenExecutor("killed"), CancelledError()])
def test_a_broken_executor_raises_worker_lost(error):
    def answer(task, part, source):
        raise error

    with pytest.raises(WorkerLost, match="Scripted cannot continue: 5 parts are not counted"):
        pool.count(GRAPHS["clique"], Scripted(answer), engine="cpu", parts=5)


# -------------------------------------------------------------------------------------------------------- its own GPU


def bound(monkeypatch, gpus, visible=None, home=(0, None), **environment):
    """The GPU that a worker chooses out of `gpus`."""
    monkeypatch.setattr(worker, "visible_gpus", lambda: gpus)
    for name in (*worker.LOCAL_RANKS, "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)
    for name, value in (environment | ({"CUDA_VISIBLE_DEVICES": visible} if visible else {})).items():
        monkeypatch.setenv(name, value)
    return worker._choose_gpu(home)


def test_a_worker_with_its_own_gpus_takes_the_first(monkeypatch):
    """Dask-CUDA shows every worker all GPUs, its own one first."""
    assert bound(monkeypatch, 4, visible="2,3,0,1", OMPI_COMM_WORLD_LOCAL_RANK="2") == 0
    assert bound(monkeypatch, 1, visible="3", home=(0, "0,1,2,3")) == 0


@pytest.mark.parametrize("name", worker.LOCAL_RANKS)
def test_ranks_of_a_machine_take_its_gpus_in_turn(name, monkeypatch):
    assert [bound(monkeypatch, 4, **{name: str(rank)}) for rank in range(6)] == [0, 1, 2, 3, 0, 1]


def test_threads_of_a_process_take_its_gpus_in_turn(monkeypatch):
    monkeypatch.setattr(worker, "_threads_on", worker.Counter())
    taken = [bound(monkeypatch, 3, home=worker.process_and_gpus()) for _ in range(7)]
    assert taken == [0, 1, 2, 0, 1, 2, 0]


def test_processes_of_a_pool_have_numbers(processes, tmp_path):
    both = [processes.submit(pool_work.number, tmp_path, 2) for _ in range(2)]
    first, second = sorted(each.result() for each in both)
    assert second == first + 1


def test_processes_of_a_named_pool_have_an_environment_each(tmp_path):
    """It is set before the process imports anything: so each sees only its own GPU."""
    with executors.process_pool([{"TCGPU_TEST_VALUE": name} for name in "ab"]) as executor:
        both = [executor.submit(pool_work.environment, tmp_path, 2) for _ in range(2)]
        assert {each.result() for each in both} == {("a", True), ("b", True)}


def test_a_process_of_a_named_pool_chooses_its_engine_by_its_own_environment():
    """So one whose environment hides the GPUs does not take them for its engine."""
    with executors.process_pool([{"NUMBA_ENABLE_CUDASIM": "1"}]) as executor:
        assert executor.submit(pool_work.why_this_engine).result() == "NUMBA_ENABLE_CUDASIM selects the simulator"


# ---------------------------------------------------------------------------------------------------------- the deaths


def killing(executor, at_share, many=None):
    """A progress function that kills the processes of a pool, or `many` of them, when a share of the work is done."""
    killed = []

    def tell(done, total):
        if not killed and done >= at_share * total:
            killed.extend(list(executor._processes)[:many])
            for process in killed:
                os.kill(process, signal.SIGKILL)

    return tell, killed


@pytest.mark.parametrize("at_share", [0.1, 0.6])
def test_a_named_pool_is_restarted_when_a_worker_dies(at_share):
    graph, triangles = large()
    pool.count(graph, "processes", engine="cpu", parts=2)
    before = executors.own_pool("processes")
    tell, killed = killing(before, at_share)  # all of them: a single one that is left could do the rest in time
    assert pool.count(graph, "processes", engine="cpu", parts=60, progress=tell) == triangles
    assert killed and executors.own_pool("processes") is not before


def test_a_count_is_right_if_one_of_several_workers_dies():
    graph, triangles = large()
    pool.count(graph, "processes", engine="cpu", parts=2)
    tell, killed = killing(executors.own_pool("processes"), 0.3, many=1)
    assert pool.count(graph, "processes", engine="cpu", parts=60, progress=tell) == triangles
    assert len(killed) == 1


def test_a_named_pool_is_not_restarted_forever(monkeypatch):
    """Every restarted pool breaks again."""
    started = []

    def broken(task, part, source):
        raise BrokenExecutor("killed")

    monkeypatch.setitem(executors.POOLS, "processes", lambda: (started.append(1), Scripted(broken))[1])
    executors.terminate("processes")
    with pytest.raises(WorkerLost):
        pool.count(GRAPHS["clique"], "processes", engine="cpu")
    assert len(started) == 1 + pool.RESTARTS
    executors.terminate("processes")


def test_a_restart_ends_the_processes_of_its_own_pool_alone():
    first, second = (executors.Workers(executors.own_pool("processes"), "processes") for _ in range(2))
    process = first.executor.submit(os.getpid).result()
    assert first.restart()
    with pytest.raises(ProcessLookupError):  # it has ended
        os.kill(process, 0)
    assert second.executor is not first.executor  # as in a thread that has not noticed
    assert second.restart() and second.executor is first.executor is executors.own_pool("processes")


def test_any_other_pool_raises_worker_lost_and_a_new_one_resumes(tmp_path, shared_files):
    graph, triangles = large(18)
    options = {"engine": "cpu", "parts": 40, "resume": tmp_path / "journal"}
    with ProcessPoolExecutor(2, mp_context=SPAWN) as executor:
        pool.count(graph, executor, engine="cpu", parts=2)
        tell, killed = killing(executor, 0.4)
        with pytest.raises(WorkerLost, match="a worker died.*ProcessPoolExecutor cannot continue"):
            pool.count(graph, executor, progress=tell, **options)
    assert killed and not shared_files()
    done = len((tmp_path / "journal").read_text().splitlines()) - 1
    assert 0 < done < 40
    again = []
    with ThreadPoolExecutor(2) as executor:
        assert pool.count(graph, executor, progress=lambda done, total: again.append(done), **options) == triangles
    assert len(again) == 1 + 40 - done  # first what was done before


@pytest.mark.parametrize("name, dying", [("threads", False), ("processes", False), ("processes", True)])
def test_an_interrupted_count_stops_its_workers(name, dying, shared_files, monkeypatch):
    """Also if they die of the interrupt themselves."""
    graph, triangles = large(13)
    failed, terminate = [], executors.terminate
    monkeypatch.setattr(threading, "excepthook", failed.append)
    monkeypatch.setattr(executors, "terminate", lambda *which: (time.sleep(0.3 * dying), terminate(*which))[1])

    def interrupt(done, total):
        if done:
            for process in interrupted._processes if dying else ():
                os.kill(process, signal.SIGKILL)
            raise KeyboardInterrupt

    pool.count(GRAPHS["clique"], name, engine="cpu")
    interrupted = executors.own_pool(name)
    with pytest.raises(KeyboardInterrupt):
        pool.count(graph, name, engine="cpu", parts=50, progress=interrupt)
    assert not shared_files()
    for process in list((getattr(interrupted, "_processes", None) or {}).values()):
        process.join(10)
        assert not process.is_alive()
    assert pool.count(graph, name, engine="cpu") == triangles and not failed


def test_processes_that_start_ignore_ctrl_c():
    """A terminal sends it to them, too."""
    with executors.processes(2) as executor:
        number = executor.submit(os.getpid)
        for process in executor._processes:
            os.kill(process, signal.SIGINT)
        assert number.result() in executor._processes


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_a_pool_ends_with_its_process(ending):
    """Even if that is killed."""
    script = (
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"  # ignored in a shell's background
        "import tcgpu\nfrom tcgpu.distributed import executors, pool\n"
        "graph = tcgpu.generate.rmat(10)\npool.count(graph, 'processes', engine='cpu', parts=2)\n"
        "print(*executors.own_pool('processes')._processes, flush=True)\n"
        "while True:\n"
        "    pool.count(graph, 'processes', engine='cpu', parts=200)\n"
    )
    root, command = Path(tcgpu.__file__).parents[1], [sys.executable, "-c", script]
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        workers = [int(number) for number in process.stdout.readline().split()]
        time.sleep(0.2)
        process.send_signal(ending)
        assert process.wait(30) != 0 and workers
    deadline = time.monotonic() + 60
    while (running := [number for number in workers if runs(number)]) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running


def runs(process):
    """Whether there is a process of this number that is not a zombie."""
    try:
        os.kill(process, 0)
        stat = Path(f"/proc/{process}/stat")
        return not stat.parent.is_dir() or stat.read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


# ------------------------------------------------------------------------------------------------------- on real GPUs


@pytest.mark.gpu
def test_gpus_count():
    for name, graph in GRAPHS.items():
        assert pool.count(graph, "gpus") == COUNTS[name]
        assert np.array_equal(pool.tally("triangles", graph, "gpus"), tcgpu.triangles(graph, method="cpu"))
        assert np.array_equal(pool.tally("support", graph, "gpus"), tcgpu.support(graph, method="cpu"))
        assert pool.count(graph, "gpus", method="warp_search", parts=5) == COUNTS[name]
    executors.close()


@pytest.mark.gpu
def test_threads_share_the_gpus_of_a_process():
    with ThreadPoolExecutor(2) as executor:
        for name, graph in GRAPHS.items():
            assert pool.count(graph, executor) == pool.count(graph, executor, parts=3) == COUNTS[name]


@pytest.mark.gpu
def test_a_gpu_worker_that_is_killed_is_replaced():
    graph, triangles = large()
    assert pool.count(graph, "gpus") == triangles
    os.kill(next(iter(executors.own_pool("gpus")._processes)), signal.SIGKILL)
    assert pool.count(graph, "gpus") == triangles
    executors.close()


@pytest.mark.parametrize("name", ["threads", "processes"])
def test_in_a_browser_parts_are_counted_in_turn(name, monkeypatch):
    monkeypatch.setattr("sys.platform", "emscripten")
    monkeypatch.setitem(executors.POOLS, name, None)
    graph = tcgpu.generate.rmat(7, 4, seed=1)
    assert tcgpu.count(graph, executor=name, engine="cpu", parts=9) == tcgpu.count(graph)
    assert tcgpu.triangles(graph, executor=name, engine="cpu").tolist() == tcgpu.triangles(graph).tolist()
    with pytest.raises(TcgpuError, match="fastest"):
        tcgpu.count(graph, "fastest", executor=name)
    failed = executors.own_pool(name).submit(divmod, 1, 0)
    assert isinstance(failed.exception(), ZeroDivisionError)


def test_a_browser_has_no_gpus(monkeypatch):
    monkeypatch.setattr("sys.platform", "emscripten")
    with pytest.raises(GraphError, match="executor 'gpus' has no GPU to work with"):
        tcgpu.count(tcgpu.generate.clique(5), executor="gpus")
