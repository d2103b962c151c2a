"""Compiled code is kept on disk wherever that is possible; damaged files are replaced."""

import ctypes
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sampling import share

import tcgpu

posix = pytest.mark.skipif(os.name != "posix", reason="file modes are those of POSIX systems")

SQUARES = """
import numpy as np
from tcgpu.engines.native import jit
@jit
def square(x):
    return x * x
"""
SQUARE = """
import tcgpu
from squares import square
assert square(3) == 9 and square(0.5) == 0.25
print(sum(square.stats.cache_hits.values()), sum(square.stats.cache_misses.values()), tcgpu.__file__)
"""


ROOT = os.path.dirname(os.path.dirname(tcgpu.__file__))


def without_privileges():
    """In a child: make file modes apply to root, too (Linux: no CAP_DAC_OVERRIDE after the next exec)."""
    if os.geteuid() == 0:
        ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)


def run(code=SQUARE, *options, **environment):
    """Run a program: the words that it prints, and its lines on stderr."""
    env = {name: value for name, value in os.environ.items() if name not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [ROOT, env.get("PYTHONPATH")]))
    ran = subprocess.run(
        [sys.executable, *options, "-c", code],
        env=env | environment,
        text=True,
        capture_output=True,
        cwd=os.sep,
        preexec_fn=without_privileges if os.name == "posix" else None,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.split(), ran.stderr.splitlines()


@pytest.fixture
def read_only(root, tmp_path):
    """The environment of a read-only installation and home, and of a temporary folder that can be written to."""
    site, home, temporary = tmp_path / "site", tmp_path / "home", tmp_path / "tmp"
    shutil.copytree(root / "tcgpu", site / "tcgpu", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "squares.py").write_text(SQUARES)
    home.mkdir()
    temporary.mkdir()
    locked = [home, site, *(path for path in site.rglob("*") if path.is_dir())]
    for folder in locked:
        folder.chmod(0o555)
    yield {"PYTHONPATH": str(site), "HOME": str(home), "TMPDIR": str(temporary), "PYTHONDONTWRITEBYTECODE": "1"}
    for folder in locked:
        folder.chmod(0o755)


@posix
def test_a_read_only_installation_and_home_use_a_private_temporary_folder(read_only, tmp_path):
    out, errors = run(**read_only)
    assert out[:2] == ["0", "2"] and out[2].startswith(str(tmp_path / "site"))
    (folder,) = (tmp_path / "tmp").iterdir()
    assert folder.stat().st_mode & 0o777 == 0o700 and any(folder.rglob("*.nbc"))
    assert len(errors) == 1 and str(folder) in errors[0]  # reported once
    out, _ = run(**read_only)
    assert out[:2] == ["2", "0"]  # all of it was kept
    assert not list((tmp_path / "site").rglob("*.nb?")) and not list((tmp_path / "home").iterdir())


@posix
@pytest.mark.parametrize("trap", ["open", "link", "file", "no folder"])
def test_a_folder_that_others_may_write_to_is_not_used(read_only, tmp_path, trap):
    """Because code from there would be run."""
    folder = tmp_path / "tmp" / f"numba-tcgpu-{os.geteuid()}"
    code = SQUARE
    if trap == "open":
        folder.mkdir()
        folder.chmod(0o777)
    elif trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        folder.symlink_to(tmp_path / "elsewhere")
    elif trap == "file":
        folder.touch()
    else:
        code = f"import tempfile\ntempfile.tempdir = {str(tmp_path / 'home')!r}" + SQUARE
    out, errors = run(code, **read_only)
    assert out[:2] == ["0", "2"] and len(errors) == 1 and "every process compiles again" in errors[0]
    assert not list(tmp_path.rglob("*.nb?"))


@posix
def test_the_folder_in_numba_cache_dir_is_used(read_only, tmp_path):
    named = tmp_path / "named"
    out, errors = run(NUMBA_CACHE_DIR=str(named), **read_only)
    assert not errors and any(named.rglob("*.nbc")) and not list((tmp_path / "tmp").iterdir())


def test_no_code_is_kept_beside_the_source(squares, tmp_path):
    """It would stay there when a package is uninstalled."""
    environment = {"NUMBA_CACHE_DIR": "", "TCGPU_CACHE": str(tmp_path / "of tcgpu")}
    assert squares(**environment) == (0, 2) and squares(**environment) == (2, 0)
    assert {path.relative_to(tmp_path).parts[0] for path in tmp_path.rglob("*.nb?")} == {"cache", "of tcgpu"}


def test_functions_of_closures_are_kept_each_for_itself(tmp_path):
    """Numba's own key has what is closed over: compiled functions differ in each process there."""
    (tmp_path / "closures.py").write_text("""
from tcgpu.engines.native import inline, jit
def times(factor):
    @inline
    def once(x):
        return factor * x
    @jit
    def twice(x):
        return once(once(x))
    return twice
both = times(2), times(3)
""")
    code = """
from closures import both
assert [twice(1) for twice in both] == [4, 9]
print(*(sum(count.values()) for twice in both for count in (twice.stats.cache_hits, twice.stats.cache_misses)))
"""
    environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": os.pathsep.join([str(tmp_path), ROOT])}
    assert [run(code, **environment)[0] for _ in range(2)] == [["0", "1", "0", "1"], ["1", "0", "1", "0"]]


def damaged(path, how):
    content = path.read_bytes()
    path.write_bytes({
        "empty": b"",
        "garbage": np.random.default_rng(1).bytes(len(content)),
        "cut": content[: len(content) // 2],
        "zeros": content[: len(content) // 2] + bytes(len(content) - len(content) // 2),
    }[how])  # fmt: skip


@pytest.fixture
def squares(tmp_path):
    """A function that runs SQUARE, which compiles one function for two signatures, with a cache in `tmp_path`."""
    (tmp_path / "squares.py").write_text(SQUARES)
    path = os.pathsep.join(filter(None, [str(tmp_path), ROOT, os.environ.get("PYTHONPATH")]))

    def twice(**environment):
        environment = {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": path, **environment}
        out, errors = run(SQUARE, **environment)
        assert not errors
        return tuple(map(int, out[:2]))

    assert twice() == (0, 2)
    return twice


@pytest.mark.parametrize("how", share(("empty", "garbage", "cut", "zeros"), "damage", of=3))
def test_a_damaged_file_is_overwritten_with_new_code(how, squares, tmp_path):
    files = list(tmp_path.rglob("*.nb?"))
    assert len(files) == 2
    for path in files:
        damaged(path, how)
    with ThreadPoolExecutor(3) as pool:  # several processes find and mend it at once
        assert all(sum(found) == 2 for found in pool.map(lambda _: squares(), range(3)))
    assert squares() == (2, 0)


def test_code_under_another_name_is_not_run(squares, tmp_path):
    one, other = tmp_path.rglob("*.nbc")
    content = one.read_bytes(), other.read_bytes()
    one.write_bytes(content[1])
    other.write_bytes(content[0])
    assert squares() == (0, 2)


def test_code_of_an_older_source_is_not_run(squares, tmp_path):
    """Nor where a process was ended before it wrote its own: files of both lie side by side."""
    (tmp_path / "squares.py").write_text(SQUARES.replace("x * x", "x * x + 0"))
    assert squares() == (0, 2) and len(list(tmp_path.rglob("*.nb?"))) == 4 and squares() == (2, 0)


HELPERS = """
from llvmlite import ir
from numba import types
from numba.extending import intrinsic
from tcgpu.engines.native import inline, jit
TABLE, FIRST = (1, 2), 3
def bits(builder):
    return ir.Constant(ir.IntType(64), 4)
@intrinsic
def four(typing_context):
    return types.int64(), lambda context, builder, signature, args: bits(builder)
@jit
def linked(x):
    return 5 * x
@inline
def inlined(x):
    return 6 * x
"""
SUM = """
import helpers
from helpers import FIRST, TABLE, four, inlined, linked
from tcgpu.engines.native import jit
@jit
def add(x):
    return TABLE[1] * x + FIRST * x + helpers.FIRST * x + four() * x + linked(x) + inlined(x)
"""


def test_code_is_compiled_again_after_a_change_in_another_module(tmp_path):
    """Of a constant, a function that is linked or copied into it, or one that generates it."""
    (tmp_path / "sums.py").write_text(SUM)
    code = f"""
import importlib, pathlib, sys
sys.path.insert(0, {str(tmp_path)!r})
for change in ("", ""), ("2)", "3)"), (", 3", ", 4"), ("), 4)", "), 9)"), ("5 *", "7 *"), ("6 *", "8 *"):
    pathlib.Path({str(tmp_path / "helpers.py")!r}).write_text({HELPERS!r}.replace(*change))
    for _ in range(2):
        for name in "sums", "helpers":
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
        import sums
        print(sums.add(1), sum(sums.add.stats.cache_hits.values()))
"""
    out, _ = run(code, NUMBA_CACHE_DIR=str(tmp_path / "cache"), PYTHONDONTWRITEBYTECODE="1")
    assert out == [word for total in (23, 24, 25, 28, 25, 25) for hit in "01" for word in (str(total), hit)]


@pytest.mark.full
def test_everything_but_a_place_for_its_code_works_without_docstrings(tmp_path):
    """`python -OO`: no docstrings, no assert statements."""
    code = """
import io, sys, contextlib
import tcgpu, tcgpu.lab.explorer, tcgpu.lab.stepper
from tcgpu.__main__ import main
graph = tcgpu.generate.rmat(5, seed=1)
counts = {tcgpu.count(graph), tcgpu.count(graph, "naive", engine="sim"), tcgpu.trace(graph, "naive").triangles}
assert len(counts) == 1
if len(counts) != 1:
    sys.exit(f"{counts}")
for words in (["--help"], ["count", "--help"], ["methods"], ["generate"], ["fetch", "--list"]):
    with contextlib.suppress(SystemExit):
        main(words)
explorer = tcgpu.explore(graph)
"""
    out, errors = run(code, "-OO", NUMBA_CACHE_DIR=os.environ.get("NUMBA_CACHE_DIR", str(tmp_path)))
    assert not errors and "None" not in out[:200]
