"""A method of one's own in the stepper, the explorer, on the command line, in executors; and in a fresh notebook."""

import doctest
import json
import linecache
import os
import pickle
import re
import resource
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytest
from test_own_method import long_first, per_column, per_row, registered, with_bits  # noqa: F401  registered: a fixture

import tcgpu
from tcgpu import __main__ as command_line
from tcgpu import cuda
from tcgpu.distributed import executors
from tcgpu.errors import GraphError, MethodError
from tcgpu.kernels import method as declaring
from tcgpu.lab import stepper

CLIQUE = tcgpu.generate.clique(7)
SOURCE = '''\
import tcgpu
from tcgpu import cuda, int64

STEP = 1


@cuda.jit(device=True)
def common(row_idx, p, p_end, q, q_end):
    found = int64(0)
    while p < p_end and q < q_end:
        x, y = row_idx[p], row_idx[q]
        found += (x == y) * STEP
        p += x <= y
        q += y <= x
    return found


@tcgpu.method(threads=32, blocks=4)
def mine(col_ptr, row_idx, worker, workers, total):
    """A thread per column."""
    count = int64(0)
    for j in range(cuda.grid(1) * workers + worker, col_ptr.size - 1, cuda.gridsize(1) * workers):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
            count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[i], col_ptr[i + 1])
    cuda.atomic.add(total, 0, count)


@tcgpu.kernel
def marked(col_ptr, row_idx, vertices, total):
    count = int64(0)
    for k in range(cuda.grid(1), vertices.size, cuda.gridsize(1)):
        j = vertices[k]
        for e in range(col_ptr[j], col_ptr[j + 1]):
            count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1])
    cuda.atomic.add(total, 0, count)


def long_columns(graph):
    return (graph.column_lengths > 1).nonzero()[0]


@tcgpu.method(threads=32, blocks=4)
def planned(graph, threads, blocks):
    vertices = long_columns(graph)
    return [tcgpu.launch(marked, vertices.size, threads, blocks, vertices=vertices)]
'''


@tcgpu.kernel
def marks(pairs, marked):
    for e in range(cuda.grid(1), pairs.shape[0], cuda.gridsize(1)):
        marked[pairs[e, 1]] = 1


@tcgpu.kernel
def marked_columns(col_ptr, row_idx, marked, total):
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        if marked[j]:
            for e in range(col_ptr[j], col_ptr[j + 1]):
                for p in range(e + 1, col_ptr[j + 1]):
                    for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                        if row_idx[p] == row_idx[q]:
                            cuda.atomic.add(total, 0, 1)


@tcgpu.method(threads=32, blocks=4)
def with_set_up(graph, threads, blocks):
    """Its set-up reads an array of two dimensions, and changes one that the host made."""
    ends = np.stack([graph.row_idx, graph.col_of], axis=1)
    arrays = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "pairs": ends, "marked": np.zeros(graph.n, np.int32)}
    steps, setup = [tcgpu.launch(marked_columns, graph.n, threads, blocks)], [tcgpu.launch(marks, graph.m, threads)]
    return tcgpu.Plan("with_set_up", arrays, {}, steps, setup=setup)


# ---------------------------------------------------------------------------------------------------------- the stepper


def requests(frame):
    """The panels of a frame's requests; the array `row_idx` is below them only where they read it."""
    *panels, last = frame.panels
    reads = any(panel.label.startswith("row_idx:") for panel in frame.panels if panel is not last)
    assert (last.label == "row_idx") == reads
    return panels if reads else frame.panels


@pytest.mark.parametrize("own", [per_column, per_row, with_bits, long_first, with_set_up], ids=lambda own: own.name)
def test_the_stepper_shows_each_access_of_a_lane(own):
    """Its frames are the requests of a trace, each element with the value that it has."""
    frames = list(stepper.steps(CLIQUE, own, threads=4, blocks=2))
    totals = tcgpu.trace(CLIQUE, own, threads=4, blocks=2).totals(stage=None)
    kinds = "load_requests", "store_requests", "atomic_requests", "shared_requests"
    assert frames[-1].lookups == sum(totals[kind] for kind in kinds) == sum(map(len, map(requests, frames)))
    read = {label: dict(zip(panel.heads.values(), panel.values, strict=True)) for f in frames for panel in requests(f)
            if (label := panel.label.partition(":")[0]) in ("row_idx", "col_idx", "pairs", "marked")}  # fmt: skip
    arrays = {"row_idx": CLIQUE.row_idx, "col_idx": CLIQUE.col_of[np.argsort(CLIQUE.row_idx, kind="stable")]}
    arrays["pairs"] = np.stack([CLIQUE.row_idx, CLIQUE.col_of], axis=1).ravel()
    assert set(read.pop("marked", {}).values()) <= {""}  # a kernel changes it
    for name, values in read.items():
        assert values and values == {place: arrays[name][int(place)] for place in values}


def test_a_frame_says_in_words_what_lanes_do(registered):  # noqa: F811
    registered(per_column)
    shown = tcgpu.step(CLIQUE, "per_column", threads=4, blocks=1)
    assert repr(shown).startswith("<Stepper per_column: ") and "triangle" not in repr(shown)
    first = shown.frames[0]
    assert re.fullmatch(r"line \d+: for e in range\(col_ptr\[j\], col_ptr\[j \+ 1\]\):", first.title)
    said = [shape.text for shape in stepper.shapes_of(first) if shape.kind == "text"]
    assert "read now" in said and "triangle" not in said and "row_idx" not in said
    assert first.caption.startswith(
        "Block 0, warp 0, in per_column. Lanes 0, 1, 2 and 3 read col_ptr at 0, 1, 2 and 3: 1 sector."
    )
    assert shown.frames[-1].caption.endswith("Lanes 0, 1, 2 and 3 change total at 0: 4 sectors.")
    assert [panel.label for panel in shown.frames[-1].panels] == ["total: position, lanes"]
    assert any(f.edges and set(f.vertices.values()) == {"looked"} for f in shown.frames)
    assert shown.frame is first and "col_ptr: position, value, lanes: 4 cells, 4 looked" in repr(shown)


def test_the_stepper_refuses_what_it_cannot_show():
    with pytest.raises(MethodError, match="per_column is shown on a whole graph"):
        tcgpu.step(CLIQUE, per_column, column=0)
    with pytest.raises(MethodError, match=r"no knob 'thread' \(did you mean 'threads'\?\)"):
        tcgpu.step(CLIQUE, per_column, thread=1)
    with pytest.raises(GraphError, match="take a smaller graph"):
        tcgpu.step(tcgpu.generate.clique(70), per_column)


# --------------------------------------------------------------------------------------------------------- the explorer


def test_the_explorer_picks_measures_and_traces_it(registered):  # noqa: F811
    explorer = tcgpu.explore(CLIQUE, [per_column, "naive"], engine="sim")
    explorer.run()
    explorer.wait()
    assert {row["method"]: row["triangles"] for row in explorer.rows} == {"per_column": 35, "naive": 35}
    page = tcgpu.explore(CLIQUE, per_column, page="Trace")
    page.run()
    page.wait()
    assert "per_column" in page.methods.chips and not page._problems
    with pytest.raises(MethodError, match="there is a built-in method 'cpu'"):
        tcgpu.explore(CLIQUE, [tcgpu.method("cpu")(per_column.function)])


# --------------------------------------------------------------------------------------------------- the command line


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with a graph and a file of methods, in which commands run."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "k7.txt").write_text("".join(f"{i} {j}\n" for i in range(7) for j in range(i)))
    (tmp_path / "mine.py").write_text(SOURCE)
    yield tmp_path
    sys.modules.pop("mine", None)
    command_line._opened.cache_clear()


@pytest.mark.parametrize("name", ["mine", "planned"])
def test_every_command_takes_a_method_of_a_file(folder, capsys, name):
    def printed(*argv):
        assert command_line.main([*argv]) == 0
        return json.loads(capsys.readouterr().out)

    own = f"mine.py:{name}"
    found = printed("count", "k7.txt", "--json", "--method", own, "--engine", "sim", "--knob", "threads=16")
    assert (found["triangles"], found["method"], found["engine"]) == (35, name, "sim")
    rows = printed("bench", "k7.txt", "--json", "--methods", f"{own},naive", "--engine", "sim", "--repeats", "1")
    assert [(row["method"], row["triangles"]) for row in rows] == [(name, 35), ("naive", 35)]
    assert [row["method"] for row in printed("trace", "k7.txt", "--json", "--method", f"{own},naive")] == [
        name,
        "naive",
    ]
    assert [row["method"] for row in printed("estimate", "k7.txt", "--json", "--method", own)] == [name]


@pytest.mark.parametrize(
    "method, words",
    [
        ("mine.py:min", "mine.py: no method 'min' (did you mean 'mine'?); there are mine, planned"),
        ("other.py:mine", "other.py: No such file or directory"),
        ("broken.py:mine", "broken.py: NameError: name 'nothing' is not defined"),
        ("wrong.py:mine", "mine has a parameter 'row_ix' (did you mean 'row_idx'?)"),
        ("mine.txt:mine", "no method 'mine.txt:mine'"),
    ],
)
def test_a_file_that_will_not_do_is_refused_in_one_line(folder, capsys, method, words):
    (folder / "broken.py").write_text("nothing\n")
    (folder / "wrong.py").write_text("import tcgpu\n\n@tcgpu.method\ndef mine(row_ix, total):\n    total[0] = 1\n")
    assert command_line.main(["count", "k7.txt", "--method", method]) == 2
    said = capsys.readouterr().err
    assert said.startswith("tcgpu: ") and words in said and said.count("\n") == 1


# -------------------------------------------------------------------------------------------------------- the executors


@pytest.fixture(scope="module")
def graph():
    return tcgpu.generate.rmat(6, seed=3)


def test_it_is_sent_to_other_processes_with_its_source(folder, graph, capsys):
    """The workers have neither the file nor the module; device functions, kernels and helpers go along."""
    assert command_line.main(["count", "k7.txt", "--method", "mine.py:mine"]) == 0
    module = sys.modules["mine"]
    linecache.getlines(str(folder / "mine.py"))
    sent = pickle.dumps([module.mine, module.planned])
    (folder / "mine.py").unlink()
    code = (
        "import pickle, sys, tcgpu; own = pickle.load(sys.stdin.buffer); "
        "print(*(tcgpu.count(tcgpu.generate.clique(7), each, engine='sim') for each in own), own[0].summary)"
    )
    out = subprocess.run([sys.executable, "-c", code], input=sent, capture_output=True, check=True, cwd="/")
    assert out.stdout.decode() == "35 35 A thread per column.\n"


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor, "processes"])
def test_executors_count_by_it(folder, graph, kind):
    sys.path.insert(0, str(folder))
    try:
        import mine
    finally:
        sys.path.remove(str(folder))
    expected = tcgpu.count(graph, "cpu")
    executor = kind if isinstance(kind, str) else kind(2)
    assert tcgpu.count(graph, mine.planned, executor=executor, engine="sim") == expected
    assert tcgpu.count(graph, mine.mine, executor=executor, engine="sim", parts=3, order="degree") == expected
    with pytest.raises(MethodError, match="'planned' counts whole graphs, not 3 parts of one"):
        tcgpu.count(graph, mine.planned, executor=executor, engine="sim", parts=3)
    with pytest.raises(MethodError, match="method 'mine' counts shares of a graph"):
        tcgpu.count(graph, mine.mine, device_memory="1MB")
    executors.close() if isinstance(kind, str) else executor.shutdown()


def test_shares_of_a_plan_add_up(graph):
    @tcgpu.method(threads=32, blocks=2)
    def shared(graph, share, threads, blocks):
        index, of = share
        vertices = np.arange(index, graph.n, of, dtype=np.int32)
        lengths = graph.column_lengths.astype(np.int32)
        kernel = long_first.function.__globals__["count_sorted"]
        return [tcgpu.launch(kernel, vertices.size, threads, blocks, vertices=vertices, lengths=lengths, least=2)]

    assert shared.shares and not long_first.shares
    parts = [shared.plan(graph, share=(k, 3)).count() for k in range(3)]
    assert sum(parts) == tcgpu.count(graph, "cpu") and max(parts) < sum(parts)
    with pytest.raises(MethodError, match="share"):
        shared.plan(graph, share=(3, 3))


# -------------------------------------------------------------------------------------------------------- what is said


@pytest.mark.full
def test_the_examples_of_the_page_print_what_it_shows(root, registered):  # noqa: F811
    page = (root / "docs" / "your_own_kernel.md").read_text()
    code = "\n".join(re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL))
    examples = doctest.DocTestParser().get_doctest(code, {}, "page", "your_own_kernel.md", 0)
    assert len(examples.examples) > 15
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.REPORT_NDIFF).run(examples).failed == 0


def test_the_page_names_every_array_and_argument(root):
    page = (root / "docs" / "your_own_kernel.md").read_text()
    for name in (*declaring.ARRAYS, *declaring.SIZES, *declaring.SHARE, "total", "threads", "blocks"):
        assert f"`{name}`" in page, name


# ----------------------------------------------------------------------------------------------------- a fresh notebook

CELLS = [
    "import tcgpu\nfrom tcgpu import cuda, int64, uint32\ngraph = tcgpu.load('rmat_8')\n"
    "small = tcgpu.generate.clique(8)",
    '''@tcgpu.method(threads=64, blocks=32)
def per_column(col_ptr, row_idx, total):
    """A thread per column."""
    count = int64(0)
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            p, q = e + 1, col_ptr[row_idx[e]]
            end, q_end = col_ptr[j + 1], col_ptr[row_idx[e] + 1]
            while p < end and q < q_end:
                x, y = row_idx[p], row_idx[q]
                count += x == y
                p += x <= y
                q += y <= x
    cuda.atomic.add(total, 0, count)''',
    "assert tcgpu.count(graph, per_column, engine='sim') == tcgpu.count(graph) == 2487",
    "rows = tcgpu.measure(graph, [per_column, 'naive'], engine='sim', repeats=1)\n"
    "assert rows[0]['method'] == 'per_column'",
    "traces = tcgpu.trace(graph, [per_column, 'naive'])\nassert 'x, y = row_idx[p]' in repr(traces[0].lines())",
    "assert tcgpu.estimate(graph, per_column).ms > 0",
    "assert len(tcgpu.step(small, per_column, threads=4, blocks=1).frames) > 9",
    "explorer = tcgpu.explore(small, methods=[per_column], engine='sim')\nexplorer.run()\nexplorer.wait()\n"
    "assert explorer.rows[0]['triangles'] == 56",
    "assert tcgpu.count(graph, per_column, executor='processes', engine='sim') == 2487",
]
RUN = """
import json, sys
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
for cell in json.load(sys.stdin):
    if not shell.run_cell(cell).success:
        sys.exit(1)
"""


def test_a_kernel_of_15_lines_works_everywhere_in_a_fresh_notebook(tmp_path):
    """With no import but tcgpu, in less than half a minute of processor time; cells have no file."""
    pytest.importorskip("IPython")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    out = subprocess.run([sys.executable, "-c", RUN], input=json.dumps(CELLS), capture_output=True, text=True,
                         cwd=tmp_path, env={**os.environ, "IPYTHONDIR": str(tmp_path)})  # fmt: skip
    assert out.returncode == 0, out.stdout + out.stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 30
    kernel = CELLS[1].splitlines()
    assert len(kernel) <= 15
