"""Programs of users, in tests/programs/: each runs, prints what its comments `# prints ...` say, and type-checks."""

import re
import runpy
import subprocess
import sys
from inspect import cleandoc, getdoc, signature
from pathlib import Path

import pytest

import tcgpu

PROGRAMS = sorted((Path(__file__).parent / "programs").glob("*.py"))
STRICT = "[mypy]\nstrict = true\n[mypy-networkx.*,scipy.*]\nignore_missing_imports = true\n"
# expressions that a type checker refuses; all raise an error that names the function, or what it knows
MISTAKES = {
    "tcgpu.triangles(graph, engin='cpu')": (TypeError, "triangles.* 'engin'"),
    "tcgpu.support(graph, methods='cpu')": (TypeError, "support.* 'methods'"),
    "tcgpu.k_truss(graph, 3, device='cpu')": (TypeError, "k_truss.* 'device'"),
    "tcgpu.motifs(graph, by='edge')": (TypeError, "motifs.* 'by'"),
    "tcgpu.cliques(graph, 3, device='cpu')": (TypeError, "cliques.* 'device'"),
    "tcgpu.generate.clique(4, sed=1)": (TypeError, "clique.* 'sed'"),
    "tcgpu.count(graph, 'naive', approximate=0.1)": (tcgpu.MethodError, "leave method= out"),
    "tcgpu.count(graph, approximate='0.1')": (tcgpu.MethodError, "not '0.1'"),
    "tcgpu.count(graph, engine='cuda')": (tcgpu.EngineError, "no engine 'cuda'"),
    "tcgpu.triangles(graph, order='degrees')": (tcgpu.MethodError, "no order 'degrees'"),
    "tcgpu.motifs(graph, per='node')": (tcgpu.GraphError, "per 'node'"),
    "tcgpu.cont(graph)": (AttributeError, "'cont'"),
}


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_programs_print_what_they_say(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert capsys.readouterr().out.splitlines() == re.findall(r"# prints (.*)", path.read_text())


def test_mypy_accepts_the_programs_and_refuses_mistakes(tmp_path):
    """An `ignore` of a line without an error is an error: so each of the mistakes is one."""
    lines = [f"{mistake}  # type: ignore" for mistake in MISTAKES]
    (tmp_path / "mistakes.py").write_text("\n".join(["import tcgpu", "graph = tcgpu.generate.clique(4)", *lines]))
    (tmp_path / "mypy.ini").write_text(STRICT)
    command = [sys.executable, "-m", "mypy", "--config-file", tmp_path / "mypy.ini", "--cache-dir", tmp_path / "cache"]
    done = subprocess.run([*command, tmp_path / "mistakes.py", *PROGRAMS], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.full
def test_pyright_accepts_the_programs(root):
    pytest.importorskip("pyright", reason="pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, *PROGRAMS]
    done = subprocess.run(command, capture_output=True, text=True, cwd=root)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistakes_name_the_function(mistake):
    error, says = MISTAKES[mistake]
    with pytest.raises(error, match=says):
        eval(mistake, {"tcgpu": tcgpu, "graph": tcgpu.generate.clique(4)})


def test_a_mistyped_keyword_of_count_names_it():
    with pytest.raises(tcgpu.MethodError, match=r"^count\(\): .*'ordr' \(did you mean 'order'\?\)"):
        tcgpu.count([(0, 1)], ordr="degree")


@pytest.mark.parametrize(
    "verb", [tcgpu.triangles, tcgpu.list_triangles, tcgpu.motifs, tcgpu.k_truss], ids=lambda v: v.__name__
)
def test_the_help_of_a_verb_describes_the_keywords_that_all_have(verb):
    described = getdoc(verb)
    assert described == cleandoc(described)
    for name in signature(verb).parameters:
        assert re.search(rf"^ *(- )?({name}\b|\w.*, {name}\b)", described, re.MULTILINE), name
    assert "False none" in described and "`tcgpu.api`" not in described


def test_lists_are_tables():
    methods = tcgpu.methods()
    assert isinstance(methods, list) and len(repr(methods).splitlines()) == len(methods) + 1
    assert methods._repr_html_().count("<tr>") == len(methods) + 1
    graph = tcgpu.Graph.from_edges([0, 1, 1], [1, 2, 1], name="<mine>")
    assert "<th>graph</th><td>&lt;mine&gt;</td>" in graph._repr_html_() and "1 loop" in graph._repr_html_()


def test_the_generators_list_only_what_is_public():
    assert {"rmat", "edges", "GENERATORS"} <= {*dir(tcgpu.generate)} and not {"np", "os"} & {*dir(tcgpu.generate)}
    assert all(hasattr(tcgpu.generate, name) for name in dir(tcgpu.generate))
