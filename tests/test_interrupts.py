"""Long work stops within a second, in compiled code, too; later calls and forked children work."""

import os
import resource
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import sampling

import tcgpu
from tcgpu import cpu, generators, progress
from tcgpu.__main__ import main as shell
from tcgpu.cpu import cleaning
from tcgpu.engines import native
from tcgpu.subgraphs import of_k_vertices as subgraphs

needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")

SCREEN = 40  # lines
LONG = {  # for each phase: preparation, and work that takes many seconds on a few cores
    "draw": ("", "tcgpu.generate.rmat(23)"),
    "clean": ("u, v, n = tcgpu.generators.edges('rmat', 20)", "cleaning.clean_columns(u, v, n)"),
    "count": ("g = tcgpu.generate.rmat(16)", "cpu.count_by(cpu.Design('hubs', cpu.hub_rows(g, g.n)), g, ALL)"),
    "triangles": ("g = tcgpu.generate.rmat(17)", "cpu.triangles(g, 'natural')"),
    "support": ("g = tcgpu.generate.rmat(17)", "cpu.support(g, 'natural')"),
    "reduction": ("g, f = tcgpu.generate.rmat(17), lambda u, v, w: 1", "tcgpu.reduce_triangles(g, f, order='natural')"),
    "growth": ("g = tcgpu.generate.clique(4000)", "tcgpu.add_edges(([0], [1], g.n), g)"),
    "truss": ("g = tcgpu.generate.mesh(1500, 1500)", "tcgpu.truss_numbers(g)"),
    "breadth first": ("g = tcgpu.generate.rmat(18)", "g.__dict__.pop('_adjacency', 0); g._rank_in('bfs', 0)"),
    "attach": ("", "tcgpu.generate.barabasi_albert(5_000_000, 8)"),
    "subgraphs": ("g = tcgpu.generate.rmat(13)", "subgraphs.count_subgraphs(g, 5, 'connected')"),
    "cliques": ("g = tcgpu.generate.rmat(15)", "tcgpu.cliques(g, 6)"),
    "cliques of a small graph": ("g = tcgpu.generate.clique(300)", "tcgpu.cliques(g, 7)"),
    "motifs": ("g = tcgpu.generate.rmat(17)", "tcgpu.motifs(g)"),
    "orbits": ("g = tcgpu.generate.rmat(16)", "tcgpu.motifs(g, 'edge')"),
}  # fmt: skip


class Clock(NamedTuple):
    """The time, and the processor time of a process so far, in seconds."""

    time: float
    processor: float

    def __sub__(self, earlier):
        """The shorter of both times between: on a busy machine a process stands still most of the time."""
        return min(self.time - earlier.time, self.processor - earlier.processor)


def processor_time(process):
    """Of a process that is alive; infinite where the system does not tell."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        return -np.inf
    ticks = stat.read_text().rpartition(")")[2].split()[11:13]
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def processor_time_of_children():
    """Of all processes of this one that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def interrupted(code, *, first="", seconds=0.5, timeout=200):
    """Run Python code in a process of its own and send SIGINT while `code` runs.

    Returns its exit code, stdout and stderr, and Clocks of the signal and of the end.
    """
    heed = "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)"  # ignored in a shell's background
    program = f"{heed}\n{first}\nimport sys\nprint('ready', flush=True)\n{code}\n"
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "ready\n", process.stderr.read()
        time.sleep(seconds)
        assert process.poll() is None, "it was over too soon"
        before, sent = processor_time_of_children(), Clock(time.time(), processor_time(process))
        process.send_signal(signal.SIGINT)
        try:
            out, errors = process.communicate(timeout=timeout)
        finally:
            process.kill()  # if it did not end: the test fails, and waits for it no longer
        ended = Clock(time.time(), processor_time_of_children() - before)
        return process.returncode, out, errors, sent, ended


@pytest.mark.parametrize("phase", sampling.share(LONG, "phases"))
def test_compiled_work_is_interrupted_within_a_second(phase):
    """KeyboardInterrupt comes at once, with a traceback of one screen at most, and the next call is right."""
    ready, work = LONG[phase]
    first = f"""
import time
import tcgpu, tcgpu.generators
from tcgpu import cpu
from tcgpu.cpu import cleaning
from tcgpu.subgraphs import of_k_vertices as subgraphs
{ready}
small = tcgpu.generate.rmat(10)
expected = tcgpu.count(small), tcgpu.truss_numbers(small).tolist()
if 'g' in dir():
    ALL = cpu.Edges(0, g.m, 0, g.n)
"""
    code = f"""
try:
    while True:
        {work}
except KeyboardInterrupt:
    import traceback
    print(time.time(), time.process_time(), flush=True)
    lines = traceback.format_exc().count(chr(10))
    assert lines < {SCREEN}, lines
fresh = tcgpu.generate.rmat(10)
assert (tcgpu.count(fresh), tcgpu.truss_numbers(fresh).tolist()) == expected
print("right", flush=True)
"""
    returncode, out, errors, sent, _ = interrupted(code, first=first)
    *raised, said = out.split()
    assert (returncode, said) == (0, "right"), errors
    raised = Clock(*map(float, raised))
    assert raised - sent < 1 and sent.time < raised.time


def test_a_signal_handler_may_end_compiled_work_by_any_error():
    """TimeoutError too, which waiting for a worker raises itself."""

    def too_late(*signal):
        raise TimeoutError("of the handler")

    graph, before = tcgpu.generate.clique(300), signal.signal(signal.SIGALRM, too_late)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.5)
        with pytest.raises(TimeoutError, match="of the handler"):
            while True:
                tcgpu.cliques(graph, 7)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert tcgpu.cliques(graph, 3) == 4_455_100


def test_the_shell_ends_with_130_and_no_traceback(tmp_path):
    code = f"from tcgpu.__main__ import main\nsys.exit(main(['generate', 'rmat', 'scale=23', '-o', {str(tmp_path / 'g.npz')!r}]))"  # noqa: E501
    returncode, out, errors, sent, ended = interrupted(code, first="import tcgpu.generators", seconds=2)
    assert (returncode, out, errors) == (130, "", "")
    assert ended - sent < 3  # a process takes its time to end


def test_a_part_in_another_thread_is_stopped_too():
    """Otherwise its process would not end before the part is done."""
    first = """
from concurrent.futures import ThreadPoolExecutor
import tcgpu
from tcgpu.distributed import pool
g, executor = tcgpu.generate.rmat(20), ThreadPoolExecutor(1)
pool.tally("triangles", tcgpu.generate.rmat(8), executor, parts=1, order="natural", method="cpu")
"""
    code = "pool.tally('triangles', g, executor, parts=1, order='natural', method='cpu')"
    returncode, out, errors, sent, ended = interrupted(code, first=first, seconds=2)
    assert returncode != 0 and "KeyboardInterrupt" in errors and errors.count("\n") < SCREEN, errors
    assert ended - sent < 3


def test_an_interrupt_while_numba_compiles_is_one_screen(tmp_path, monkeypatch):
    """The compiler finishes in its thread, and the next call uses the result."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    first = "import tcgpu\nfrom tcgpu.truss import native_peeling\ng = tcgpu.generate.mesh(20, 20)\n"
    first += "native_peeling.cpu.small.serves = lambda graph, part=None: False"
    code = """
try:
    tcgpu.truss_numbers(g)
except KeyboardInterrupt:
    import traceback
    print(traceback.format_exc().count(chr(10)), flush=True)
assert tcgpu.truss_numbers(g).max() == 3
"""
    returncode, out, errors, *_ = interrupted(code, first=first, seconds=0.7)
    assert returncode == 0 and int(out.split()[-1]) < SCREEN, errors


def test_an_exception_at_any_instruction_leaves_the_pool_usable():
    """As the handler of a signal may raise one."""
    code = """
import faulthandler, sys
from tcgpu.engines import native

def work():
    done = []
    native.run_threads(lambda worker, workers: done.append(worker), workers=3)
    assert sorted(done) == [0, 1, 2]

def interrupt_at(number):
    def trace(frame, event, argument):
        nonlocal number
        frame.f_trace_opcodes = True
        number -= event == "opcode"
        if number < 0:
            raise KeyboardInterrupt
        return trace
    return trace

faulthandler.dump_traceback_later(60, exit=True)
native.set_threads(2)
work()
for number in range(10_000):
    try:
        sys.settrace(interrupt_at(number))
        work()
        break
    except KeyboardInterrupt:
        sys.settrace(None)
    work()
sys.settrace(None)
print(number)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.returncode == 0 and int(ran.stdout) > 100, ran.stderr


def test_interrupts_at_random_moments_neither_hang_nor_break_anything(tmp_path, root):
    """Calls last about as long as their Python part. With --full, 20,000 interrupts."""
    code = f"""
import faulthandler, random, signal, time
import tcgpu
from tcgpu.engines import native

graph, file = tcgpu.generate.rmat(8, seed=1), {str(tmp_path / "edges.txt")!r}
tcgpu.write(graph, file)
tcgpu.generate.rmat(8, seed=1)
options = [{{}}, {{"progress": True}}, {{"executor": "threads", "parts": 3, "engine": "cpu"}}]
verbs = [lambda verb=verb, more=more: verb(fresh(), **more)
         for verb in (tcgpu.count, tcgpu.triangles, tcgpu.support) for more in options]
verbs += [lambda: tcgpu.read(file), lambda: tcgpu.generate.rmat(8)]
native.set_threads(3)
native.MANY = 0

def fresh():
    return tcgpu.Graph(graph.col_ptr, graph.row_idx, validate=False)

def interrupt(*_):
    if armed:
        signal.raise_signal(signal.SIGINT)

armed = False
expected = [str(verb()) for verb in verbs]
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGALRM, interrupt)
draw, most = random.Random(1), 0
for number in range({20_000 if sampling.full else 200}):
    faulthandler.dump_traceback_later(30, exit=True)
    seconds = draw.random() * 0.005 + 1e-6
    begin = time.monotonic()
    try:
        armed = True
        signal.setitimer(signal.ITIMER_REAL, seconds)
        while time.monotonic() - begin < 2:  # Python swallows those that come while it frees an object
            verbs[draw.randrange(len(verbs))]()
    except KeyboardInterrupt:
        armed = False
        most = max(most, time.monotonic() - begin - seconds)
    armed = False
assert [str(verb()) for verb in verbs] == expected
print(most)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=root)
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert float(ran.stdout) < 1


@pytest.mark.parametrize(
    "module, statement", [("numpy.linalg", "tcgpu.count"), ("numba.core.typing", "import tcgpu.cpu.counting")]
)
def test_an_import_is_not_interrupted(module, statement):
    """The rest of a library whose import is interrupted may not be imported any more."""
    code = f"""
import signal, sys, tcgpu

class Interrupting:
    def find_spec(self, name, *_):
        if name == {module!r}:
            signal.raise_signal(signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupting())
try:
    {statement}
except KeyboardInterrupt:
    {statement}
    print(tcgpu.count([(0, 1), (1, 2), (2, 0)]))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "1\n", ran.stderr


class Ended(Exception):
    """Raised by a callback of `progress`."""


@pytest.mark.parametrize(
    "work",
    [
        lambda: generators.edges("rmat", 22),
        lambda: subgraphs.count_subgraphs(tcgpu.generate.rmat(13), 5, "connected"),
        lambda: tcgpu.motifs(tcgpu.generate.rmat(16), "vertex"),
        lambda: tcgpu.truss_numbers(tcgpu.generate.mesh(1000, 1000)),
    ],
)
def test_a_progress_callback_stops_compiled_work_within_a_second(work):
    """As the explorer stops work."""
    begin, ended = time.monotonic(), []

    def callback(share):
        if time.monotonic() - begin > 0.5:
            ended.append(Clock(time.time(), time.process_time()))
            raise Ended

    with pytest.raises(Ended), progress.watched(callback):
        while True:
            work()
    assert Clock(time.time(), time.process_time()) - ended[0] < 1


def test_waiting_workers_are_not_started_after_one_fails():
    done = []

    def fail(worker, workers):
        done.append(worker)
        if worker == 3:
            raise ValueError("worker 3")

    with pytest.raises(ValueError, match="worker 3"):
        native.run_threads(fail, workers=1000)
    assert 3 in done and len(done) < 1000


def test_no_more_workers_run_at_a_time_than_there_are_threads():
    running, most = [], []

    def work(worker, workers):
        running.append(worker)
        most.append(len(running))
        time.sleep(0.002)
        running.remove(worker)

    native.set_threads(2)
    try:
        native.run_threads(work, workers=20)
    finally:
        native.set_threads(None)
    assert len(most) == 20 and max(most) <= 2


def test_without_threads_the_calling_thread_works(monkeypatch):
    def full(*args):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(native._Pool, "submit", full)
    done = []
    native.run_threads(lambda worker, workers: done.append(worker), workers=4)
    assert done == [0, 1, 2, 3]


def test_without_threads_a_stopped_call_does_no_work(monkeypatch):
    """As in a thread of a process that ends after an interrupt."""

    def full(*args):
        raise RuntimeError("can't create new thread at interpreter shutdown")

    def callback(share):
        raise Ended

    monkeypatch.setattr(native._Pool, "submit", full)
    with pytest.raises(Ended), progress.watched(callback):
        native.run_threads(lambda worker, workers: pytest.fail("it worked"), workers=4)


@pytest.mark.parametrize("share", [1 << 8, 1 << 20])
def test_any_number_of_shares_gives_the_same(share, monkeypatch):
    u, v, n = generators.edges("rmat", 12, seed=3)
    expected = cleaning.clean_columns(u, v, n)
    monkeypatch.setattr(native, "SHARE", share)
    monkeypatch.setattr(native, "MANY", 0)
    assert native.shares(u.size) > 1
    assert all(np.array_equal(a, b) for a, b in zip(generators.edges("rmat", 12, seed=3)[:2], (u, v), strict=True))
    found = cleaning.clean_columns(u, v, n)
    assert all(np.array_equal(a, b) for a, b in zip(found, expected, strict=True))
    graph = tcgpu.Graph(found.col_ptr, found.row_idx)
    assert cpu.count(graph) == cpu.count(tcgpu.Graph(expected.col_ptr, expected.row_idx))


@needs_fork
def test_a_child_forked_while_a_thread_counts_in_parts_counts_too():
    """Locks that the thread holds are free in the child, which does not have the thread."""
    code = """
        import os, signal, threading, time, tcgpu
        graphs = [tcgpu.generate.rmat(12, seed=seed).ordered("degree") for seed in range(2)]
        expected = [tcgpu.count(graph) for graph in graphs]
        for graph in graphs:  # Python's own locks of imports are not ours to mend
            tcgpu.count(graph, "cpu", device_memory=1 << 30)
            tcgpu.count(graph, executor="threads", parts=2)
        over = threading.Event()

        def count():
            while not over.is_set():
                for graph in graphs:  # the cache of the last graph is filled again each time
                    tcgpu.count(graph, "cpu", device_memory=1 << 30)
                    tcgpu.count(graph, executor="threads", parts=2)

        thread = threading.Thread(target=count)
        thread.start()
        for _ in range(30):
            time.sleep(0.01)
            child = os.fork()
            if child == 0:
                signal.alarm(30)
                right = tcgpu.count(graphs[0], "cpu", device_memory=1 << 30) == expected[0]
                right &= tcgpu.count(graphs[1], executor="threads", parts=2) == expected[1]
                os._exit(0 if right else 1)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        over.set()
        thread.join()
    """
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(code)], check=True, timeout=200)


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        MemoryError("Unable to allocate 14.5 MiB"),
        RuntimeError("can't start new thread"),
        ImportError("libx.so: failed to map segment from shared object"),
    ],
)
def test_too_little_memory_is_one_line_in_the_shell(error, monkeypatch, capsys):
    def starve():
        raise error

    monkeypatch.setattr(tcgpu, "methods", starve)
    assert shell(["methods"]) == 2
    out, errors = capsys.readouterr()
    assert errors.startswith("tcgpu: out of memory") and errors.count("\n") == 1 and not out


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of a process's address space is Linux's")
def test_the_shell_under_a_memory_limit_prints_one_line(tmp_path):
    code = "import resource\nresource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))\n"
    code += "import sys\nfrom tcgpu.__main__ import main\n"
    code += f"sys.exit(main(['generate', 'rmat', 'scale=23', '-o', {str(tmp_path / 'g.npz')!r}]))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 2 and ran.stderr.count("\n") == 1, ran.stderr
