"""The Makefile and .ci/run, as far as they can be tested from inside a test run: choices, messages and dry runs."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chromium import SETTINGS

pytestmark = [pytest.mark.full, pytest.mark.skipif(not shutil.which("make"), reason="no make on this machine")]
TARGETS = ("help", "lab", "test", "reproduce", "report", "site", "notebooks", "dist", "clean")


@pytest.fixture
def checkout(root, tmp_path):
    """A folder with the Makefile alone, under a path with spaces; nothing is installed there."""
    folder = tmp_path / "a path with spaces"
    folder.mkdir()
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy(root / name, folder)
    return folder


def make(folder, *arguments, **environment):
    """Run make there, without the environment variables of an outer make."""
    inherited = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    given = ("PYTHON", "CUDA", "LAB", "PARTS", "PYODIDE", "REPORT", "REPRODUCE")
    inherited = {key: value for key, value in inherited.items() if key not in given}
    environment = {**inherited, **environment}
    return subprocess.run(["make", *arguments], cwd=folder, env=environment, capture_output=True, text=True)


def script(path, text):
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_help_is_the_default_and_lists_every_target(checkout):
    result = make(checkout)
    assert result.returncode == 0 and result.stdout == make(checkout, "help").stdout
    listed = [line.split()[1] for line in result.stdout.splitlines()]
    assert tuple(listed) == TARGETS


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_can_be_planned(checkout, target):
    result = make(checkout, "--dry-run", target)
    assert result.returncode == 0 and not result.stderr


def test_the_browser_tests_open_jupyterlab_as_make_does(checkout):
    planned = make(checkout, "--dry-run", "lab").stdout
    assert f'JUPYTER_CONFIG_PATH="{checkout}/notebooks/{SETTINGS}:' in planned and 'PYTHONPATH="notebooks:' in planned


@pytest.mark.parametrize(
    "cuda, lab, test",
    [
        ("", "lab,webgpu", "files,lab,webgpu,site,test"),
        ("11", "lab,webgpu", "files,lab,webgpu,site,test"),
        ("12", "lab,webgpu,cu12", "files,lab,webgpu,site,tools,cu12"),
        ("13", "lab,webgpu,cu13", "files,lab,webgpu,site,test,cu13"),
        ("14", "lab,webgpu,cu13", "files,lab,webgpu,site,test,cu13"),
    ],
)
def test_the_driver_chooses_the_extras(checkout, cuda, lab, test):
    for target, extras in (("lab", lab), ("report", f"site,{lab}"), ("site", f"site,{lab}"), ("test", test)):
        assert f"--editable '.[{extras}]'" in make(checkout, "--dry-run", target, f"CUDA={cuda}").stdout


@pytest.mark.parametrize(
    "version, extras", [(11080, "lab,webgpu"), (12090, "lab,webgpu,cu12"), (13010, "lab,webgpu,cu13")]
)
def test_the_drivers_cuda_version_is_read(checkout, tmp_path, version, extras):
    compiler = shutil.which("cc")
    if not compiler or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler, to build a driver that answers")
    source = tmp_path / "driver.c"
    source.write_text(f"int cuDriverGetVersion(int *version) {{ *version = {version}; return 0; }}\n")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", tmp_path / "libcuda.so.1", source], check=True)
    planned = make(checkout, "--dry-run", "lab", LD_LIBRARY_PATH=str(tmp_path)).stdout
    assert f"--editable '.[{extras}]'" in planned


PYTHONS = ("python3", "python3.14", "python3.13", "python3.12", "python3.11")  # in the order in which make tries them


@pytest.mark.parametrize("chosen", PYTHONS)
def test_the_first_new_enough_python_is_taken(checkout, tmp_path, chosen):
    """Each name before it is a Python that is too old."""
    tools = tmp_path / "tools"
    for name in PYTHONS[: PYTHONS.index(chosen)]:
        script(tools / name, "exit 1  # the answer of an old Python to the question whether it is new enough")
    script(tools / chosen, f'exec "{sys.executable}" "$@"')
    planned = make(checkout, "--dry-run", "lab", PATH=f"{tools}:{os.environ['PATH']}").stdout
    assert f'"{chosen}" -m venv' in planned


def test_without_a_python_there_is_one_line(checkout):
    result = make(checkout, "lab", "PYTHON=")
    assert result.returncode != 0 and not (checkout / ".venv").exists()
    assert [line for line in result.stderr.splitlines() if not line.startswith("make")] == [
        "tcgpu needs Python 3.11 or newer and found none; PYTHON=/path/to/python3 names one"
    ]


def test_without_ensurepip_one_line_names_the_package(checkout, tmp_path):
    bare = script(tmp_path / "python", f'case "$*" in *ensurepip) exit 1;; esac; exec "{sys.executable}" "$@"')
    result = make(checkout, "lab", f"PYTHON={bare}")
    assert result.returncode != 0 and not (checkout / ".venv").exists()
    package = "python{}.{}-venv".format(*sys.version_info)
    assert [line for line in result.stderr.splitlines() if not line.startswith("make")] == [
        f"to make a virtual environment: apt-get install {package}"
    ]


def test_a_failed_install_is_reported(checkout, tmp_path):
    """pip's exit code survives the filter that shortens what it prints."""
    fake = script(checkout / ".venv" / "bin" / "python", 'case "$*" in *install*) echo Collecting numba; exit 3;; esac')
    fake.parent.parent.joinpath("installed").touch()
    result = make(checkout, "lab", f"PYTHON={sys.executable}")
    assert result.returncode != 0 and "numba" in result.stdout
    assert not (checkout / ".venv" / "lab").exists()


def test_an_install_is_made_once_until_pyproject_changes(checkout):
    script(checkout / ".venv" / "bin" / "python", 'case "$*" in *"pip install"*) echo Collecting numba;; esac')
    runs = [make(checkout, "lab", f"PYTHON={sys.executable}") for _ in range(2)]
    newer = (checkout / ".venv" / "lab").stat().st_mtime + 10
    os.utime(checkout / "pyproject.toml", (newer, newer))
    runs.append(make(checkout, "lab", f"PYTHON={sys.executable}"))
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert ["Installing" in run.stdout for run in runs] == [True, False, True]


def test_clean_removes_only_what_make_made(checkout):
    kept = {checkout / "Makefile", checkout / "pyproject.toml", checkout / "tcgpu" / "graph.py"}
    pages = ("report/index.html", "site/index.html")
    made = (".venv/bin/python", *pages, "dist/tcgpu-1.whl", "tcgpu/__pycache__/graph.nbi")
    for path in (*made, "tcgpu/graph.py"):
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).touch()
    assert [make(checkout, "clean").returncode for _ in range(2)] == [0, 0]
    assert {path for path in checkout.rglob("*") if path.is_file()} == kept


def test_ci_installs_what_is_not_there_and_runs_the_tests(root, tmp_path):
    """.ci/run with apt-get and make replaced by scripts that record how they were called."""
    bash = shutil.which("bash")
    if not bash:
        pytest.skip("no bash on this machine")
    ci = tmp_path / "a checkout" / ".ci"
    ci.mkdir(parents=True)
    shutil.copy(root / ".ci" / "run", ci)
    tools, calls = tmp_path / "tools", tmp_path / "calls"
    for tool in ("apt-get", "make"):
        script(tools / tool, f'echo "{tool} $* in $PWD" >> "{calls}"')
    script(tools / "python3", "exit 0")
    os.symlink(shutil.which("dirname"), tools / "dirname")
    subprocess.run([bash, ci / "run"], env={"PATH": str(tools)}, check=True, stdin=subprocess.DEVNULL)
    update, install, test = calls.read_text().splitlines()
    assert "apt-get update" in update and "python3-venv" not in install
    assert {"gcc", "chromium"} <= set(install.split())
    assert test == f"make test in {ci.parent}"
    assert Path(root / ".ci" / "run").stat().st_mode & 0o100
