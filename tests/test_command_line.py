"""The command line: what it prints, on which stream, and its exit code after an error."""

import io
import itertools
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest

import tcgpu
from tcgpu import __main__ as command_line
from tcgpu import bar, datasets, formats, generators, progress, registry, truss, warm
from tcgpu.engines import choice, runtime
from tcgpu.insight import checking
from tcgpu.kernels import device_graph, simulated
from tcgpu.records import Rows

COMMAND = [sys.executable, "-m", "tcgpu"]
# vertices 3 to 7 in a complete graph, 7 - 9 a tail; a loop, a repetition and two reversed pairs to clean
K5_AND_TAIL = """# five and a tail
3 4
3 5
3 6
3 7
4 5
4 6
4 7
5 6
5 7
6 7
7 9
3 3
3 4
4 3
9 7
"""


@pytest.fixture
def k5(tmp_path):
    path = tmp_path / "k5.txt"
    path.write_text(K5_AND_TAIL)
    return str(path)


@pytest.fixture
def run(capsys):
    """Run a command in this process: exit code, what it wrote to stdout, what to stderr."""

    def run(*argv):
        try:
            code = command_line.main([str(argument) for argument in argv])
        except SystemExit as exit:
            code = exit.code
        return code, *capsys.readouterr()

    return run


@pytest.fixture
def quick_checks(monkeypatch):
    """Checks look for more problems and for smaller graphs for a shorter time."""
    monkeypatch.setattr(checking, "SHRINKING", 0.2)
    monkeypatch.setattr(checking, "PATIENCE", 0.2)


@pytest.mark.parametrize("more", [[], ["--relabel"]])
def test_per_vertex_counts_have_the_ids_of_the_file(run, tmp_path, more):
    (tmp_path / "far.txt").write_text("5000000000 7\n7 12\n12 5000000000\n12 40\n")
    code, out, err = run("count", tmp_path / "far.txt", "--per-vertex", *more)
    assert (code, out, err) == (0, "7\t1\n12\t1\n40\t0\n5000000000\t1\n", "")


def test_numbers_of_a_file_are_the_vertices_without_relabelling(run, k5):
    assert json.loads(run("info", k5, "--json")[1])["vertices"] == 6
    assert json.loads(run("info", k5, "--relabel", "--json")[1])["vertices"] == 6
    assert json.loads(run("info", k5, "--no-relabel", "--json")[1])["vertices"] == 10
    assert json.loads(run("info", k5, "--no-relabel", "--base", "1", "--json")[1])["vertices"] == 9
    code, out, err = run("count", k5, "--relabel", "--base", "1")
    assert (code, out) == (2, "") and err.count("\n") == 1 and "goes without --base" in err


@pytest.mark.parametrize("columns", ["1,2", "i,j"])
def test_columns_of_an_edge_list_are_chosen(run, tmp_path, columns):
    (tmp_path / "x.csv").write_text("t,i,j,u,v\n1,5,6,0,0\n2,6,7,0,0\n3,7,5,0,0\n")
    assert run("count", tmp_path / "x.csv", "--columns", columns) == (0, "1\n", "")
    code, out, err = run("count", tmp_path / "x.csv")
    assert (code, out) == (2, "") and "--columns" in err


@pytest.fixture
def printed(run):
    """What a command that succeeds writes to stdout."""

    def printed(*argv):
        code, out, err = run(*argv)
        assert (code, err) == (0, "")
        return out

    return printed


@pytest.fixture
def refused(run):
    """The one line in which a command refuses its arguments or its file."""

    def refused(*argv):
        code, out, err = run(*argv)
        assert (code, out) == (2, "")
        assert err.startswith("tcgpu: ")
        assert err.count("\n") == 1
        return err.removeprefix("tcgpu: ").rstrip("\n")

    return refused


def test_count_prints_the_number(printed, k5):
    assert printed("count", k5) == "10\n"


def test_count_as_json(printed, k5):
    facts = json.loads(printed("count", k5, "--json"))
    seconds, reading = facts.pop("seconds"), facts.pop("seconds_reading")
    method = registry.fastest()
    engine = registry.engine_of(registry.METHODS[method])
    assert facts == {"triangles": 10, "vertices": 6, "edges": 11, "method": method, "engine": engine}
    assert list(seconds) == ["kernel", "process", "total"]
    assert 0 < seconds["kernel"] <= seconds["process"] <= seconds["total"]
    assert 0 < reading < seconds["total"]


def test_count_per_vertex(printed, k5):
    assert printed("count", k5, "--per-vertex") == "3\t6\n4\t6\n5\t6\n6\t6\n7\t6\n9\t0\n"
    facts = json.loads(printed("count", k5, "--per-vertex", "--json"))
    assert (facts["triangles"], facts["seconds"]["kernel"]) == (10, None)
    assert facts["per_vertex"] == {"3": 6, "4": 6, "5": 6, "6": 6, "7": 6, "9": 0}


def test_vertices_of_equal_labels_have_a_number_each(printed, tmp_path):
    tcgpu.write(tcgpu.Graph.from_edges([0, 1, 2, 2], [1, 2, 0, 3], labels=["a", "b", "a", "c"]), tmp_path / "x.npz")
    found = json.loads(printed("count", tmp_path / "x.npz", "--per-vertex", "--json"))["per_vertex"]
    assert found == [["a", 1], ["b", 1], ["a", 1], ["c", 0]]


def test_count_by_many_workers(printed, k5):
    assert printed("count", k5, "--executor", "threads", "--engine", "cpu") == "10\n"
    facts = json.loads(printed("count", k5, "--executor", "threads", "--engine", "cpu", "--json"))
    assert (facts["triangles"], facts["method"], facts["engine"]) == (10, "cpu", "cpu")
    assert facts["seconds"]["kernel"] is None and facts["seconds"]["process"] > 0
    lines = printed("count", k5, "--executor", "threads", "--engine", "cpu", "--per-vertex").splitlines()
    assert lines == ["3\t6", "4\t6", "5\t6", "6\t6", "7\t6", "9\t0"]


def test_an_estimate_is_printed_with_its_interval(printed, tmp_path, k5):
    graph = tcgpu.generate.rmat(12, seed=1)
    tcgpu.write(graph, tmp_path / "x.npz")
    options = ["count", tmp_path / "x.npz", "--approximate", ".1", "--seed", "3", "--order", "degree"]
    found = tcgpu.count(graph, approximate=0.1, seed=3, order="degree")
    assert printed(*options) == f"{found}\t{found.low}\t{found.high}\n" and not found.exact
    facts = json.loads(printed(*options, "--json"))
    assert facts["triangles"] == found and vars(found).items() <= facts.items() and facts["edges"] == graph.m
    assert printed("count", k5, "--approximate", ".5") == "10\t10\t10\n"


@pytest.mark.parametrize("method", tcgpu.methods(), ids=lambda method: method.name)
def test_every_method_in_every_order(printed, k5, method):
    for order in tcgpu.graph.ORDERS:
        facts = json.loads(printed("count", k5, "--json", "--method", method.name, "--order", order))
        assert (facts["triangles"], facts["method"]) == (10, method.name)
        assert facts["engine"] in method.engines
    for knob, default in method.knobs.items():
        assert printed("count", k5, "--method", method.name, "--knob", f"{knob}={default}") == "10\n"


def test_truss_prints_how_many_edges_each_has(printed, k5):
    rows = [line.split() for line in printed("truss", k5).splitlines()]
    assert rows == [["K", "EDGES", "EDGES", "OF", "K-TRUSS"], ["2", "1", "11"], ["5", "10", "10"]]
    facts = json.loads(printed("truss", k5, "--json"))
    seconds = facts.pop("seconds")
    steps = [{"k": 2, "edges": 1, "truss_edges": 11}, {"k": 5, "edges": 10, "truss_edges": 10}]
    assert facts == {"vertices": 6, "edges": 11, "engine": truss.truss_engine(), "truss_numbers": steps}
    assert list(seconds) == ["process", "total"] and 0 < seconds["process"] < seconds["total"]


def test_truss_of_one_k(printed, k5, tmp_path):
    for k, edges in ((2, 11), (3, 10), (5, 10), (6, 0)):
        facts = json.loads(printed("truss", k5, "--k", k, "--json"))
        assert (facts["k"], facts["truss_edges"]) == (k, edges)
    assert printed("truss", k5, "--k", 5, "-o", tmp_path / "core.txt") == "vertices  5\nedges     10\n"
    core = tcgpu.read(tmp_path / "core.txt")
    assert (list(core.labels), core.m) == ([3, 4, 5, 6, 7], 10)
    assert printed("truss", tmp_path / "core.txt", "--k", 5, "--engine", "cpu") == "vertices  5\nedges     10\n"


def test_info(printed, k5):
    lines = dict(line.split("  ", 1) for line in printed("info", k5).splitlines())
    lines = {name: text.strip() for name, text in lines.items()}
    assert lines["vertices"] == "6"
    assert lines["edges"] == "11"
    assert lines["nonzeros per column"] == "1.83 in the mean, at most 4"
    assert lines["degree"] == "3.67 in the mean, at most 5"
    assert lines["cleaned"] == "dropped 1 loop, 1 duplicate, 2 reversed pairs"
    assert lines["memory"] == "100 bytes"
    assert [lines[f"columns of {length}"] for length in ("0", "1", "2 to 3", "4 to 7")] == ["1", "2", "2", "1"]


def test_info_as_json(printed, k5):
    facts = json.loads(printed("info", k5, "--json"))
    assert facts.pop("name")
    columns = facts.pop("nonzeros_per_column")
    assert facts == {
        "vertices": 6,
        "edges": 11,
        "degrees": {"mean": 11 / 3, "max": 5},
        "cleaned": {"loops": 1, "duplicates": 1, "reversed": 2},
        "bytes": 100,
    }
    assert (columns["mean"], columns["max"]) == (11 / 6, 4)
    assert sum(step["columns"] for step in columns["histogram"]) == 6
    assert columns["histogram"][-1] == {"from": 4, "to": 7, "columns": 1}


def test_devices(printed):
    header, *lines = printed("devices").splitlines()
    assert header.startswith("engine") and {line.split()[0] for line in lines} == {"gpu", "webgpu", "sim", "cpu"}
    rows = json.loads(printed("devices", "--json"))
    assert all(row["name"] or row["needs"] for row in rows) and rows[-1]["engine"] == "cpu"
    missing = {row["engine"] for row in rows if row["needs"] and not row["name"]}
    for engine in missing & {"gpu", "webgpu"}:
        reason = next(row["needs"] for row in rows if row["engine"] == engine)
        with pytest.raises(tcgpu.EngineError, match=re.escape(reason)):
            tcgpu.count([(0, 1)], "naive", engine=engine)


@pytest.mark.webgpu
def test_a_count_by_webgpu_names_the_device(printed, k5):
    facts = json.loads(printed("count", k5, "--engine", "webgpu", "--json"))
    assert (facts["triangles"], facts["engine"]) == (10, "webgpu")
    assert facts["device"]["name"] and facts["device"]["kind"] in ("discrete", "integrated", "other", "software")


def test_methods(printed):
    header, *lines = printed("methods").splitlines()
    assert header.split()[:2] == ["name", "source"]
    assert [line.split()[0] for line in lines] == [method.name for method in tcgpu.methods()]
    facts = json.loads(printed("methods", "--json"))
    assert [fact["name"] for fact in facts] == [method.name for method in tcgpu.methods()]
    for fact, method in zip(facts, tcgpu.methods(), strict=True):
        assert {name: knob["default"] for name, knob in fact["knobs"].items()} == method.knobs
        assert all(knob["help"] and knob["values"] for knob in fact["knobs"].values())


def test_clustering(printed, k5):
    lines = dict(line.split("\t") for line in printed("clustering", k5).splitlines())
    assert {vertex: float(share) for vertex, share in lines.items()} == pytest.approx(
        {"3": 1, "4": 1, "5": 1, "6": 1, "7": 0.6, "9": 0}
    )
    facts = json.loads(printed("clustering", k5, "--json"))
    assert facts["average"] == float(printed("clustering", k5, "--average")) == pytest.approx(4.6 / 6)
    assert facts["per_vertex"]["7"] == pytest.approx(0.6) and facts["edges"] == 11


def test_transitivity(printed, k5):
    assert float(printed("transitivity", k5)) == pytest.approx(30 / 34)
    assert json.loads(printed("transitivity", k5, "--json"))["transitivity"] == pytest.approx(30 / 34)


@pytest.mark.parametrize("more", [[], ["--method", "cpu", "--order", "degree"]], ids=" ".join)
def test_support(printed, k5, more):
    lines = [line.split("\t") for line in printed("support", k5, *more).splitlines()]
    assert len(lines) == 11 and ["3", "4", "3"] in lines and ["7", "9", "0"] in lines
    assert json.loads(printed("support", k5, "--json"))["per_edge"] == [[u, v, int(n)] for u, v, n in lines]


def test_motifs(printed, k5):
    lines = dict(line.split() for line in printed("motifs", k5).splitlines())
    assert lines == {"path": "0", "star": "0", "cycle": "0", "paw": "6", "diamond": "0", "clique": "5"}
    found = json.loads(printed("motifs", k5, "--all", "--json"))["motifs"]
    assert found["triangle"] == 4 and found["paw"] == 6


def test_cliques(printed, refused, k5):
    assert [printed("cliques", k5, *more) for more in ([], ["--k", "5"])] == ["10\n", "1\n"]
    found = json.loads(printed("cliques", k5, "--k", "2", "--kind", "independent", "--json"))
    assert (found["k"], found["kind"], found["subgraphs"]) == (2, "independent", 4)
    assert "no kind 'circle'; there are clique, independent, connected" in refused("cliques", k5, "--kind", "circle")


def test_list(printed, k5):
    rows = [line.split("\t") for line in printed("list", k5).splitlines()]
    assert sorted(rows) == [list(row) for row in itertools.combinations("34567", 3)]


WRONG_METHOD = """
import tcgpu
from tcgpu import cuda

@tcgpu.method(threads=32, blocks=1)
def none(col_ptr, row_idx, total):
    \"\"\"It counts nothing.\"\"\"
    if cuda.grid(1) == 0:
        total[0] = 0
"""


@pytest.mark.usefixtures("quick_checks")
def test_check_says_by_its_code_whether_a_method_is_right(run, tmp_path):
    (tmp_path / "wrong.py").write_text(WRONG_METHOD)
    code, out, err = run("check", f"{tmp_path}/wrong.py:none")
    assert (code, err) == (1, "") and "none" in out
    code, out, _ = run("check", f"{tmp_path}/wrong.py:none", "--json")
    found = json.loads(out)
    assert code == 1 and not found["right"] and found["problems"]
    code, out, err = run("check", "naive")
    assert (code, err) == (0, "") and out.startswith("naive is right.")


SQUARE = """
from tcgpu.engines.native import jit
@jit
def square(x):
    return x * x
assert square(3) == 9
"""


@pytest.fixture
def cold(tmp_path, monkeypatch):
    """A folder for compiled code that is empty, and a function: what a program writes to stderr that compiles."""
    for name in ("TCGPU_CACHE", "NUMBA_CACHE_DIR"):
        monkeypatch.setenv(name, str(tmp_path))

    def said(quiet="0", code=SQUARE):
        environment = os.environ | {"TCGPU_QUIET": quiet}
        command = [sys.executable, "-c", code]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stderr

    return tmp_path, said


def test_the_first_compilation_is_said_unless_it_is_to_be_quiet(cold):
    folder, said = cold
    assert said(quiet="1") == ""
    for path in folder.iterdir():
        path.unlink()
    assert said() == "compiling tcgpu, about 4 s, once per machine\n"
    assert said() == ""


def test_warm_says_what_it_took(run, refused, cold, monkeypatch):
    assert "no verb 'cont' (did you mean 'count'?)" in refused("warm", "cont")
    monkeypatch.setattr(warm, "PROGRAM", SQUARE)
    monkeypatch.setattr(warm, "VERBS", dict.fromkeys(["count", "read"]))
    sizes = []
    for verbs in (["count"], []):
        code, out, err = run("warm", *verbs)
        *lines, last = out.splitlines()
        assert (code, err) == (0, "")
        assert sorted(line.partition(":")[0] for line in lines) == (verbs or ["count", "read"])
        sizes.append(int(re.search(r"; ([\d,]+) bytes more in ", last)[1].replace(",", "")))
        assert last.endswith(str(cold[0]))
    assert sizes[0] > 1000 and sizes[1] == 0
    monkeypatch.setattr(warm, "PROGRAM", "raise SystemExit('no room')")
    assert "count does not compile here: no room" in refused("warm", "count")


@pytest.mark.full
@pytest.mark.parametrize("engine, used", [("gpu", {"cpu", "gpu"}), ("sim", {"cpu"})])
def test_warm_compiles_what_a_gpu_does_with_many_edges(monkeypatch, engine, used):
    found = set()
    monkeypatch.setattr(device_graph, "MANY_EDGES", device_graph.MANY_EDGES)
    monkeypatch.setattr(choice, "MAX_IN_NUMPY", choice.MAX_IN_NUMPY)
    monkeypatch.setattr(runtime, "ENGINE", engine)
    verb = SimpleNamespace(list_triangles=lambda graph: found.add(device_graph.engine_for(graph)) or ())
    monkeypatch.setattr(warm.importlib, "import_module", lambda name: verb)
    warm.compile_verb("list_triangles")
    assert found == used


def test_warm_compiles_for_the_next_process(run, cold):
    count = "import tcgpu; print(tcgpu.count(tcgpu.generate.rmat(15, 8, seed=3)))"
    assert run("warm", "count")[0] == 0
    assert cold[1](code=count) == ""


def test_the_script_of_completion_is_that_of_the_commands(root, printed):
    """If not, write it again: python release/completion.py"""
    expected = subprocess.check_output(
        [sys.executable, "-c", "import completion; print(completion.script(), end='')"], cwd=root / "release", text=True
    )
    assert printed("completion") == expected


@pytest.mark.skipif(not shutil.which("bash"), reason="there is no bash")
@pytest.mark.parametrize(
    "words, completed",
    [
        (["tr"], ["transitivity", "truss", "trace"]),
        (["count", "--per"], ["--per-vertex"]),
        (["count", "--order", "de"], ["degree"]),
        (["support", "graph.txt", "--method", "nai"], ["naive"]),
        (["support", "gra"], []),
    ],
)
def test_bash_completes(printed, words, completed):
    script = printed("completion")
    line = shlex.join(["tcgpu", *words])
    ask = f'COMP_WORDS=({line}); COMP_CWORD={len(words)}; _tcgpu; echo "${{COMPREPLY[@]}}"'
    found = subprocess.run(["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True).stdout
    assert found.split() == completed


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["convert", "K5", "out.xyz"], "say which with --to, or"),
        (["generate", "clique", "n=3", "-o", "out.xyz"], "say which with --to, or"),
        (["count", "K5", "--n", "-1"], "--n must be a whole number"),
        (["truss", "K5", "--k", "1"], "--k must be a whole number"),
        (["count", "K5", "--executor", "x"], "dask://HOST:PORT"),
    ],
)
def test_messages_are_in_words_of_the_shell(refused, k5, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    message = refused(*(k5 if word == "K5" else word for word in arguments))
    assert said in message and not re.search(r"\w=|Python|None", message)


def test_generate(printed, tmp_path):
    def make(seed, file):
        printed("generate", "rmat", "scale=6", "--seed", seed, "-o", tmp_path / file, "edge_factor=8")
        return tcgpu.read(tmp_path / file)

    first, again, other = make(1, "a.mtx"), make(1, "b.npz"), make(2, "c.mtx")
    assert first.equals(tcgpu.generate.rmat(6, edge_factor=8, seed=1))
    assert first.equals(again)
    assert not first.equals(other)


def test_generate_lists_the_generators(printed):
    header, *lines = printed("generate").splitlines()
    assert header.split()[:2] == ["GENERATOR", "PARAMETERS"]
    assert [line.split()[0] for line in lines] == list(generators.GENERATORS)
    assert any(line.startswith("rmat ") and " scale edge_factor=16 " in line for line in lines)


def test_convert_round_trip(printed, k5, tmp_path):
    original = tcgpu.read(k5)
    for name in ("a.mtx", "b.graph", "c.npz", "d.txt.gz", "e.mtx.xz"):
        assert printed("convert", k5, tmp_path / name) == ""
        assert printed("count", tmp_path / name) == "10\n"
        assert tcgpu.read(tmp_path / name).m == original.m
    assert printed("convert", k5, tmp_path / "folder", "--to", "folder") == ""
    assert printed("count", tmp_path / "folder") == "10\n"
    assert printed("convert", tmp_path / "folder", tmp_path / "plain", "--from", "folder", "--to", "edges") == ""
    assert printed("count", tmp_path / "plain", "--format", "edges") == "10\n"


def test_fetch_lists_the_catalogue(printed):
    entries = datasets.catalogue()
    header, *lines = printed("fetch").splitlines()
    assert header.split()[:2] == ["GRAPH", "FAMILY"]
    assert [line.split()[0] for line in lines] == [entry.name for entry in entries]
    assert printed("fetch", "--list").splitlines() == [header, *lines]
    facts = json.loads(printed("fetch", "--json"))
    assert [(fact["name"], fact["triangles"]) for fact in facts] == [(e.name, e.triangles) for e in entries]


def test_fetch_prints_a_path_to_count(printed):
    here = [entry for entry in datasets.catalogue() if entry.family == "generated"]
    assert here
    for entry in here:
        path = printed("fetch", entry.name).removesuffix("\n")
        assert printed("count", path) == f"{entry.triangles}\n"


def test_fetch_says_what_to_do_without_a_network(refused, tmp_path, monkeypatch):
    entry = next(entry for entry in datasets.catalogue() if entry.url)
    monkeypatch.setenv("TCGPU_CACHE", str(tmp_path))
    monkeypatch.setenv("TCGPU_GRAPHS", str(tmp_path))
    for proxy in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(proxy, "http://127.0.0.1:9")
    said = refused("fetch", entry.name)
    assert said.startswith(f"{entry.name} could not be downloaded from {entry.url}")
    assert "TCGPU_GRAPHS" in said


def test_the_help_lists_the_formats():
    named = command_line.FORMATS.split(" (")[0].replace(" or ", ", ").split(", ")
    assert sorted(named) == sorted(formats.FORMATS)


@pytest.mark.parametrize(
    "arguments, said",
    [
        (["count", "K5", "--method", "guess"], "no method 'guess'; there are naive, "),
        (["count", "K5", "--method", "naiv"], "no method 'naiv' (did you mean 'naive'?); there are naive, "),
        (["count", "K5", "--method", ""], "no method ''; there are naive, "),
        (["count", "K5", "--engine", "abacus"], "no engine 'abacus'; there are gpu, webgpu, sim, cpu"),
        (["count", "K5", "--engine", "cpuu"], "no engine 'cpuu' (did you mean 'cpu'?)"),
        (["count", "K5", "--order", "degre"], "no order 'degre' (did you mean 'degree'?)"),
        (["count", "K5", "--order", "upwards"], "no order 'upwards'; there are natural, degree"),
        (["count", "K5", "--method", "cpu", "--knob", "threads=3"], "method 'cpu' has no knob 'threads'"),
        (["count", "K5", "--knob", "threads"], "'threads' is not NAME=VALUE"),
        (["count", "K5", "--knob", "a=1", "--knob", "a=2"], "a is given twice"),
        (["count", "K5", "--method", "naive", "--knob", "thread=3"], "no knob 'thread' (did you mean 'threads'?)"),
        (["count", "K5", "--per-vertex", "--method", "naive"], "method 'naive' does not tell edge from edge"),
        (
            ["count", "K5", "--per-vertex", "--method", "cpu", "--engine", "sim"],
            "method 'cpu' runs on cpu, not on 'sim'",
        ),
        (["count", "K5", "--per-vertex", "--method", "adaptive", "--knob", "short=3"], "leave --knob, "),
        (["count", "K5", "--per-vertex", "--approximate", ".1"], "leave --knob, --approximate and --seed out"),
        (["count", "K5", "--approximate", "2"], "--approximate must be a relative error above 0 and below 1, not 2"),
        (["count", "K5", "--approximate", ".1", "--method", "naive", "--resume", "x"], "leave --method, --resume out"),
        (["count", "K5", "--approximate", ".1", "--seed", "x"], "seed is a whole number from 0 to"),
        (["count", "K5", "--seed", "1"], "no knob 'seed'"),
        (["count", "K5", "--max-seconds", "0"], "argument --max-seconds: 0 is no number of seconds above 0"),
        (["count", "K5", "--max-seconds", "long"], "argument --max-seconds: long is no number of seconds above 0"),
        (["count", "K5", "--executor", "helpers"], "no executor 'helpers'; there are gpus, "),
        (["count", "K5", "--executor", "threads", "--method", "naive", "--engine", "sim"], "counts whole graphs"),
        (["count", "K5", "--executor", "threads", "--device-memory", "1MB", "--engine", "cpu"], "give one of the two"),
        (["count", "K5", "--executor", "threads", "--per-vertex", "--resume", "x"], "the whole graph at a time"),
        (["truss", "K5", "-o", "out.txt"], "-o FILE takes a k-truss: --k says which"),
        (["truss", "K5", "--k", "1"], "k must be a whole number of at least 2, not 1"),
        (["truss", "K5", "--k", "1.5"], "argument --k: invalid int value: '1.5'; see tcgpu truss --help"),
        (
            ["truss", "K5", "--engine", "cpuu"],
            "no engine 'cpuu' (did you mean 'cpu'?); there are gpu, webgpu, sim, cpu",
        ),
        (["count", "K5", "--format", "pdf"], "pdf"),
        (["count", "K5", "--base", "x"], "argument --base: invalid int value: 'x'; see tcgpu count --help"),
        (["count", "K5", "--base", "7"], "base"),
        (["count", "nowhere.txt"], "nowhere.txt: No such file or directory"),
        (["info", "nowhere.txt"], "nowhere.txt: No such file or directory"),
        (["count", "nofile"], "nofile: No such file or directory"),
        (["truss", "nofile"], "nofile: No such file or directory"),
        (["convert", "nofile", "out.mtx"], "nofile: No such file or directory"),
        (["trace", "nofile", "--method", "naive"], "nofile: No such file or directory"),
        (["bench", "nofile"], "nofile: No such file or directory"),
        (["bench", "K5", "--methods", "naiv"], "no method 'naiv' (did you mean 'naive'?)"),
        (["bench", "K5", "--engine", "cpuu"], "no engine 'cpuu' (did you mean 'cpu'?)"),
        (["bench", "K5", "--repeats", "0"], "repeats must be at least 1, not 0"),
        (["bench", "K5", "--share", "0.5"], "unrecognized arguments: --share"),
        (["bench", "K5", "--methods", ""], "no method ''"),
        (["trace", "K5", "--method", "naive", "--by", "tim"], "no measure 'tim' (did you mean 'time'?)"),
        (["trace", "K5", "--method", "naiv"], "(did you mean 'naive'?)"),
        (["estimate", "K5", "--method", "naive", "--gpu", "Tesla T5"], "no GPU 'Tesla T5' (did you mean 'Tesla T4'?)"),
        (["convert", "K5", "nowhere/out.mtx"], "No such file or directory"),
        (["convert", "K5", "out.mtx", "--to", "pdf"], "pdf"),
        (["convert", "K5", "out.mtx", "--to", "metiss"], "(did you mean 'metis'?)"),
        (["count"], "the following arguments are required: FILE; see tcgpu count --help"),
        (["count", "K5", "--threds"], "arguments: --threds; see tcgpu count --help"),
        (["count", "K5", "--ordr", "bfs"], "--ordr bfs (did you mean '--order'?); see tcgpu count --help"),
        (["count", "K5", "K5"], "; see tcgpu count --help"),
        ([], "the following arguments are required: COMMAND; see tcgpu --help"),
        (["abacus"], "no command 'abacus'; there are count, clustering, "),
        (["cuont"], "no command 'cuont' (did you mean 'count'?); there are count, "),
        (["fetch", "nothing"], "no dataset 'nothing'; there are "),
        (["fetch", "mesh_16x61"], "no dataset 'mesh_16x61' (did you mean 'mesh_16x16'?)"),
        (["generate", "guess", "-o", "out.mtx"], "no generator 'guess'; there are "),
        (["generate", "rmatt", "-o", "out.mtx"], "no generator 'rmatt' (did you mean 'rmat'?)"),
        (["generate", "rmat", "scale=3", "a=much", "-o", "out.mtx"], "a must be a number in 0..1, not 'much'"),
        (["generate", "rmat", "scale=3"], "-o FILE says where the graph goes"),
        (
            ["generate", "rmat", "speed=3", "-o", "out.mtx"],
            "rmat: missing a required argument: 'scale'; it takes scale ",
        ),
        (["generate", "rmat", "scale=3", "speed=3", "-o", "out.mtx"], "unexpected keyword argument 'speed'"),
        (
            ["generate", "rmat", "scale=3", "-o", "out.mtx", "--speed"],
            "unrecognized arguments: --speed (did you mean '--seed'?); see tcgpu generate --help",
        ),
        (["generate", "rmat", "scale=3", "--seed", "1", "-o", "out.mtx", "seed=2"], "seed is given twice"),
        (["generate", "rmat", "scale=high", "-o", "out.mtx"], "scale"),
        (["generate", "rmat", "scale=-3", "-o", "out.mtx"], "scale"),
    ],
    ids=lambda part: " ".join(part) if isinstance(part, list) else "",
)
def test_bad_arguments_are_refused_in_one_line(refused, k5, tmp_path, monkeypatch, arguments, said):
    monkeypatch.chdir(tmp_path)
    assert said in refused(*(k5 if argument == "K5" else argument for argument in arguments))
    assert os.listdir(tmp_path) == ["k5.txt"], "something was written"


WRONG = ("word", "-1", "0", "33.5", "nan", "1e30", "", "none", "true")


@pytest.mark.parametrize("method", tcgpu.methods(), ids=lambda method: method.name)
def test_no_value_of_a_knob_makes_a_traceback(run, k5, method):
    """It counts, or prints an error in one line."""
    for knob in method.knobs:
        for value in WRONG:
            code, out, err = run("count", k5, "--method", method.name, "--engine", "sim", "--knob", f"{knob}={value}")
            right = (code, out) == (0, "10\n")
            assert right or (code, out, err.count("\n"), err[:7]) == (2, "", 1, "tcgpu: "), (knob, value)
        assert code == 0 or knob in err, (knob, err)


@pytest.mark.parametrize("command", ("count", "truss", "info", "convert", "bench", "trace", "estimate"))
def test_no_file_makes_a_traceback(refused, tmp_path, command, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("empty.npz").touch()
    Path("words.txt").write_text("to be or\n")
    Path("bytes.txt").write_bytes(bytes(range(256)))
    Path("folder").mkdir()
    more = {"convert": ["out.npz"], "trace": ["--method", "naive"], "estimate": ["--method", "naive"]}.get(command, [])
    for path in ("nofile", "", ".", "folder", "empty.npz", "words.txt", "bytes.txt", "words.txt/x", "n" * 300):
        refused(command, path, *more)
    assert not Path("out.npz").exists()


def test_each_help_has_an_example_that_runs(run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("graph.txt").write_text(K5_AND_TAIL)
    commands = command_line._parser().commands.choices
    for name, parser in commands.items():
        program, *words = shlex.split(parser.epilog.removeprefix("example: "))
        assert (program, words[0]) == ("tcgpu", name)
        assert " ".join(words) in " ".join(parser.format_help().split())
        if name == "reproduce":  # it would measure for minutes
            assert command_line._parsed(words).minutes == "15"
            continue
        code, _, err = run(*words)
        assert (code, err) == (0, ""), words
    assert {"truss.txt", "rmat.npz", "graph.npz", "trace.html"} <= set(os.listdir())


def test_a_name_of_any_bytes_is_printed(tmp_path):
    path = os.fsencode(tmp_path) + b"/g\xff.txt"
    Path(os.fsdecode(path)).write_text(K5_AND_TAIL)
    done = subprocess.run([*COMMAND, "info", path], capture_output=True, text=True)
    assert done.returncode == 0 and done.stderr == "" and r"g\udcff" in done.stdout


def test_truss_reports_its_engine(printed, k5, monkeypatch):
    help = " ".join(command_line._parser().commands.choices["truss"].format_help().split())
    assert "gpu, sim or cpu (default: gpu if there is one, else cpu)" in help
    monkeypatch.setattr(truss, "ENGINE", "sim")
    assert truss.truss_engine() == "cpu"
    monkeypatch.setattr(truss, "ENGINE", "gpu")
    monkeypatch.setattr(truss, "engine_of", lambda method, engine: "gpu")
    assert truss.truss_engine() == "gpu"


def test_long_simulator_runs_are_announced_or_refused(run, refused, k5, monkeypatch):
    monkeypatch.setattr(simulated, "NOTICE", 1e-9)
    count = "count", k5, "--method", "naive", "--engine", "sim"
    code, out, err = run(*count)
    assert (code, out) == (0, "10\n")
    assert err.startswith("tcgpu: naive takes about 0 seconds in the simulator; if that is too long, take --engine cpu")
    assert err.count("\n") == 1
    monkeypatch.setattr(simulated, "LIMIT", 1e-9)
    commands = (count, (*count[:2], "--per-vertex", "--engine", "sim"), ("truss", k5, "--engine", "sim"),
                ("trace", k5, "--method", "naive"), ("bench", k5, "--methods", "naive", "--engine", "sim"))  # fmt: skip
    for command in commands:
        allowed = re.search(r"allow it by (--max-seconds) (\d+)$", refused(*command))
        assert run(*command, *allowed.groups())[0] == 0
    assert "take --engine cpu without a method, or" in refused(*count)
    assert run("count", k5, "--engine", "cpu")[:2] == (0, "10\n")


@pytest.mark.parametrize(
    "lines, given, said, advised",
    [
        (
            "0 100000000",
            ["--base", "0"],
            "read it with --n 100000001, else with --relabel and without --base",
            ["--relabel"],
        ),
        ("0 1", ["--base", "0", "--relabel"], "it goes without --base and --n", ["--base", "0"]),
        ("# nothing", [], "if that is meant, read it with --n, the number of vertices", ["--n", "3"]),
        (
            "%%MatrixMarket matrix coordinate pattern symmetric\n2 2 1\n2 1",
            [],
            "read it with --format mtx,",
            ["--format", "mtx"],
        ),
        ("0 1", ["--format", "mtx"], "under this name is read with --format edges; found", ["--format", "edges"]),
        ("id,a,b\n1,2,3", ["--format", "edges"], "or say --columns NAME,NAME; found", ["--columns", "a,b"]),
        (
            "0 1",
            ["--device-memory", "lots"],
            "--device-memory is a number of bytes, or a text such as '512MB'",
            ["--device-memory", "512MB"],
        ),
    ],
)
def test_advice_is_in_options_of_the_command_and_helps(run, refused, tmp_path, lines, given, said, advised):
    (tmp_path / "some.txt").write_text(f"{lines}\n")
    assert said in refused("count", tmp_path / "some.txt", *given)
    assert run("count", tmp_path / "some.txt", *advised)[:2] == (0, "0\n")


def test_names_of_published_graphs_are_for_fetch(run, refused):
    assert refused("count", "rmat_8").endswith("published graphs are loaded by name: `tcgpu fetch rmat_8`")
    code, path, _ = run("fetch", "rmat_8")
    assert code == 0 and run("info", path.rstrip("\n"))[0] == 0
    assert refused("fetch", "rmat9").endswith("and more: `tcgpu fetch` lists all")
    assert "rmat_8" in run("fetch")[1]


def test_what_looks_like_a_keyword_may_be_a_path(refused, tmp_path):
    (tmp_path / "n=3").mkdir()
    (tmp_path / "n=3" / "base=1.txt").write_text("0 x\n")
    path = tmp_path / "n=3" / "base=1.txt"
    assert refused("count", path).startswith(f"{path}, line 1: ")


def test_a_broken_file_is_refused_with_its_line(refused, tmp_path):
    path = tmp_path / "broken.txt"
    path.write_text("0 1\n1 2\n2 x\n")
    said = refused("count", path)
    assert str(path) in said
    assert "3" in said.replace(str(path), "")


def test_a_folder_that_is_no_graph(refused, tmp_path):
    (tmp_path / "letter.txt").write_text("dear reader")
    assert str(tmp_path) in refused("count", tmp_path)


@pytest.mark.parametrize(
    "error, said",
    [
        (PermissionError(13, "Permission denied", "secret.txt"), "secret.txt: Permission denied"),
        (OSError("the line\n is dead"), "the line is dead"),
        (MemoryError(), "out of memory"),
    ],
    ids=["permission", "other", "memory"],
)
def test_errors_of_the_system_are_one_line(refused, monkeypatch, error, said):
    def read(*args, **kwargs):
        raise error

    monkeypatch.setattr(formats, "read", read)
    assert refused("info", "secret.txt") == said


def test_unexpected_errors_are_not_hidden(run, monkeypatch):
    monkeypatch.setattr(formats, "read", lambda *args, **kwargs: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        run("info", "any.txt")


def test_progress_is_shown_with_the_option(run, k5):
    code, out, err = run("count", k5, "--progress")
    assert (code, out) == (0, "10\n")
    said = dict.fromkeys(re.sub(r": .{4}%?.*$", "", line[7:]) for line in err.splitlines())
    assert list(said) == [f"reading {k5}", "counting 11 edges by cpu on cpu"]
    assert "\r" not in err and err.endswith("\n"), "frames are for a terminal"


@pytest.mark.parametrize("more", ([], ["--per-vertex"], ["--executor", "threads"]), ids=" ".join)
def test_progress_changes_nothing(run, k5, more):
    for method in ["cpu"] if more else ["cpu", "naive"]:
        plain = run("count", k5, "--method", method, "--json", *more)
        code, out, err = run("count", k5, "--method", method, "--json", "--progress", *more)
        facts, others = json.loads(plain[1]), json.loads(out)
        assert {"triangles", "vertices", "edges", "method", "engine", "seconds"} <= set(facts)
        for each in (facts, others):
            del each["seconds"], each["seconds_reading"]
        assert (code, others) == (0, facts) and facts["method"] == method and err and not plain[2]


def test_per_vertex_takes_the_best_engine(printed, k5, monkeypatch):
    """On a GPU the GPU's best method, as the other verbs do; here the simulator replaces the GPU."""
    with runtime.using("sim"):
        monkeypatch.setattr(registry, "fastest", lambda engine=None: "adaptive")
        facts = json.loads(printed("count", k5, "--per-vertex", "--json"))
    assert (facts["method"], facts["engine"]) == ("adaptive", "sim")
    assert facts["per_vertex"] == {"3": 6, "4": 6, "5": 6, "6": 6, "7": 6, "9": 0}


def test_progress_at_a_terminal(k5, capsys, monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    def slow_text(*args, own=formats.edge_list.Text, **kwargs):
        until = time.monotonic() + 60
        while sys.stderr.getvalue().count("\rtcgpu: reading ") <= 3 and time.monotonic() < until:
            time.sleep(0.01)
        return own(*args, **kwargs)

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(progress, "PATIENCE", 60)
    assert command_line.main(["count", k5]) == 0
    assert "reading" not in sys.stderr.getvalue(), "a quick read is no news"
    monkeypatch.setattr(formats.edge_list, "Text", slow_text)
    monkeypatch.setattr(progress, "PATIENCE", 0.01)
    monkeypatch.setattr(bar, "REFRESH", 0.01)
    assert command_line.main(["count", k5]) == 0
    shown = sys.stderr.getvalue()
    assert shown.count("\rtcgpu: reading ") > 3
    assert "\n" not in shown and shown.endswith("\r")
    assert capsys.readouterr().out == "10\n10\n"


def test_help_and_version_are_quick():
    """They import neither NumPy nor Numba, which take most of the time that a command does."""
    code = "import sys, tcgpu.__main__ as m; m.main(sys.argv[1:])"
    watch = f"import atexit, sys; atexit.register(lambda: print({{'numpy', 'numba'}} & set(sys.modules))); {code}"
    for argument, said in (("--help", "COMMAND"), ("--version", f"tcgpu {tcgpu.__version__}")):
        out = subprocess.run([sys.executable, "-c", watch, argument], capture_output=True, text=True, check=True).stdout
        assert said in out
        assert out.endswith("set()\n")


def test_an_edge_list_on_stdin():
    done = subprocess.run([*COMMAND, "count", "-"], input=K5_AND_TAIL, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "10\n", "")
    done = subprocess.run([*COMMAND, "count", "-"], input="0 1\nx\n", capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("tcgpu: /dev/stdin")


def test_a_closed_pipe_is_no_error(tmp_path):
    path = tmp_path / "path.txt"
    path.write_text("".join(f"{v} {v + 1}\n" for v in range(200_000)))
    running = subprocess.Popen(
        [*COMMAND, "count", str(path), "--per-vertex"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert running.stdout.readline() == b"0\t0\n"
    running.stdout.close()
    assert running.stderr.read() == b""
    assert running.wait() == 141


def test_ctrl_c_ends_quietly():
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    heed = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # what runs in the background may be deaf to Ctrl-C
    running = subprocess.Popen([*COMMAND, "count", "-", "--progress"], **pipes, preexec_fn=heed)
    assert b"tcgpu: reading /dev/stdin: 00:00\n".startswith(running.stderr.read1(100))
    running.send_signal(signal.SIGINT)
    assert running.wait(60) == 130
    assert running.stdout.read() == b""
    assert b"Traceback" not in running.stderr.read()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full to write to")
def test_a_full_disk_is_reported_once():
    with open("/dev/full", "w") as full:
        done = subprocess.run([*COMMAND, "methods"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (done.returncode, done.stderr) == (2, "tcgpu: No space left on device\n")


def test_bench_measures_a_file(run, k5, tmp_path):
    record = tmp_path / "record.csv"
    code, out, err = run("bench", k5, "--methods", "cpu,naive", "--repeats", "1", "-o", record)
    assert (code, err) == (0, f"tcgpu: written to {record}\n")
    heading, *body = (line.split() for line in out.splitlines())
    assert heading[:2] == ["graph", "method"] and [line[1] for line in body] == ["cpu", "naive"]
    assert [row["triangles"] for row in Rows.read_csv(record)] == [10, 10]


def test_bench_writes_a_name_of_any_bytes(run, tmp_path):
    path = tmp_path / os.fsdecode(b"g\xff.txt")
    path.write_text(K5_AND_TAIL)
    assert run("bench", path, "--methods", "cpu", "--repeats", "1", "-o", tmp_path / "x.csv")[0] == 0
    assert Rows.read_csv(tmp_path / "x.csv")[0]["graph"] == r"g\udcff"


def test_bench_refuses_unknown_names(refused, k5):
    assert "no method 'magic'" in refused("bench", k5, "--methods", "magic")
    assert "nowhere.mtx" in refused("bench", "nowhere.mtx")
    assert "repeats must be at least 1" in refused("bench", k5, "--repeats", "0")
