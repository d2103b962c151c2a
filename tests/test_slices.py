"""A slice is a folder with all of one capability. Without the folder, all the rest works."""

import os
import shutil
import subprocess
import sys

import pytest
from sampling import share

CORE = """
import networkx as nx
import tcgpu
from tcgpu import cuda

graph = tcgpu.generate.rmat(5, 6, seed=1)

@tcgpu.method(threads=32, blocks=2)
def mine(col_ptr, row_idx, total):
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for e in range(col_ptr[j], col_ptr[j + 1]):
            for p in range(e + 1, col_ptr[j + 1]):
                for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                    if row_idx[p] == row_idx[q]:
                        cuda.atomic.add(total, 0, 1)

counts = [tcgpu.count(graph, method, engine="sim") for method in ("naive", "bitmap", "warp_search", "adaptive", mine)]
counts += [tcgpu.count(graph), tcgpu.triangles(graph).sum() // 3, tcgpu.support(graph).sum() // 3]
counts += [tcgpu.measure(graph, "naive", engine="sim", repeats=1)[0]["triangles"]]
counts += [sum(map(len, tcgpu.list_triangles(graph)))]
counts += [sum(nx.triangles(graph.to_networkx(), backend="tcgpu").values()) // 3]
assert len({int(count) for count in counts}) == 1, counts
"""
USES = {
    "distributed": 'assert tcgpu.count(graph, executor="threads", parts=3) == counts[0]',
    "formats": 'tcgpu.write(graph, "graph.txt"); assert tcgpu.count("graph.txt") == counts[0]',
    "insight": "assert not tcgpu.check(mine).problems; tcgpu.trace(graph, mine).lines(); tcgpu.estimate(graph, mine)",
    "lab": 'tcgpu.step(graph, "naive"); tcgpu.explore(graph)',
    "subgraphs": "tcgpu.motifs(graph); tcgpu.cliques(graph, 4); tcgpu.reduce_triangles(graph, lambda u, v, w: u)",
    "truss": "tcgpu.k_truss(graph, 4); tcgpu.truss_numbers(graph)",
}

SHOWS = {"lab": "insight"}  # it needs what it shows


@pytest.mark.full
@pytest.mark.parametrize("removed", share(USES, "slices", of=len(USES)))
def test_all_the_rest_works_without_a_slice(root, tmp_path, removed):
    shutil.copytree(root / "tcgpu", tmp_path / "tcgpu", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "data").symlink_to(root / "data")
    shutil.rmtree(tmp_path / "tcgpu" / removed)
    rest = [use for name, use in USES.items() if removed not in (name, SHOWS.get(name))]
    missing = f"try:\n    {USES[removed]}\nexcept ModuleNotFoundError as error:\n    print(error)"
    (tmp_path / "program.py").write_text("\n".join([CORE, *rest, missing]))  # a kernel's source is read from a file
    ran = subprocess.run(
        [sys.executable, "program.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path), "TCGPU_NUMPY": "1"},  # compiles nothing
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"No module named 'tcgpu.{removed}")


def test_the_tests_of_a_slice_lie_in_a_folder_of_its_name(root):
    folders = {path.name for path in (root / "tests").iterdir() if any(path.glob("test_*.py"))}
    assert folders == {*USES}
