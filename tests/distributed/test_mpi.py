"""Counting by the ranks of an MPI job."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tcgpu

MPIEXEC = shutil.which("mpiexec", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is not installed"),
    pytest.mark.skipif(MPIEXEC is None, reason="no mpiexec: no MPI is installed"),
]
HEAD = """
import os, signal, sys
from mpi4py.futures import MPIPoolExecutor
import tcgpu
from tcgpu.distributed import pool

def options(**more):
    return {"engine": "cpu"} | more

if __name__ == "__main__":
    graph = tcgpu.generate.rmat(10, seed=2)
    with MPIPoolExecutor() as ranks:
"""
COUNTS = """
        print(ranks.num_workers)
        print(pool.count(graph, ranks, **options()), pool.count(graph, ranks, **options(parts=50, order="natural")))
        print(*(int(pool.tally(verb, graph, ranks, **options()).sum()) for verb in ("triangles", "support")))
"""
ELSEWHERE = """
        from tcgpu.distributed import shared_arrays
        shared_arrays._folder_with_space = lambda size: None  # no folder that all could see
        print(pool.count(graph, ranks, **options()))
"""
KILLED = """
        print("counting", flush=True)
        victim = ranks.submit(os.getpid).result()
        kill = lambda done, total: os.kill(victim, signal.SIGKILL) if done else None
        print("counted", pool.count(graph, ranks, **options(parts=50, progress=kill)))
"""


@pytest.fixture(scope="module")
def triangles():
    return tcgpu.count(tcgpu.generate.rmat(10, seed=2), "cpu")


@pytest.fixture
def run(tmp_path):
    """Run a script as an MPI job of three ranks: a main one and two workers."""

    def run(body):
        script = tmp_path / "script.py"
        script.write_text(HEAD + body)
        command = [MPIEXEC, "-n", "3", sys.executable, "-m", "mpi4py.futures", script]
        paths = [str(Path(tcgpu.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
        # Open MPI and PRRTE refuse to run as root, or more ranks than there are cores, unless these are set
        variables = ("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PRTE_ALLOW_RUN_AS_ROOT",
                "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM")  # fmt: skip
        allowed = dict.fromkeys(variables, "1")
        allowed |= {"OMPI_MCA_rmaps_base_oversubscribe": "1", "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
        environment = os.environ | allowed | {"PYTHONPATH": os.pathsep.join(filter(None, paths))}
        return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=200)

    return run


def test_ranks_count(run, triangles):
    ran = run(COUNTS)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split() == ["2", *[str(triangles)] * 2, *[str(3 * triangles)] * 2]


def test_ranks_are_sent_the_columns_if_there_is_no_file(run, triangles):
    ran = run(ELSEWHERE)
    assert (ran.returncode, ran.stdout) == (0, f"{triangles}\n"), ran.stderr


@pytest.fixture
def no_memory_is_left():
    """MPICH has no time to remove what its ranks shared if they are killed."""
    yield
    used = {word for maps in Path("/proc").glob("[0-9]*/maps") for word in readable(maps).split()}
    for shared in Path("/dev/shm").glob("mpich_shm_*"):
        if str(shared) not in used:
            shared.unlink(missing_ok=True)


def readable(path):
    try:
        return path.read_text()
    except OSError:  # another user's process, or one that has just ended
        return ""


@pytest.mark.usefixtures("no_memory_is_left")
def test_a_rank_that_dies_ends_the_job_without_a_result(run):
    """As MPI does: all ranks end with it, and the exit code is not 0."""
    ran = run(KILLED)
    assert ran.returncode != 0 and "counting" in ran.stdout
    assert "counted" not in ran.stdout
