"""NumPy is enough for graphs, counts, and kernels in the simulator; both paths give the same results."""

import re
import subprocess
import sys

import numpy as np
import pytest
import sampling
import scipy.optimize

import tcgpu
from tcgpu import Graph, clean
from tcgpu.cpu import cleaning, compact, counting, draws, per_vertex, small
from tcgpu.distributed import Part
from tcgpu.engines import choice
from tcgpu.insight import sampling as sampling_of_tracing
from tcgpu.subgraphs import four_at_edges, of_k_vertices

BARE = """
import sys, threading
for name in ("numba", "llvmlite", "scipy", "cupy", "lzma", "_lzma", "matplotlib", "ipywidgets", "pandas"):
    sys.modules[name] = None
def refused(*args, **options):
    raise RuntimeError("can't start new thread")
import _thread
_thread.start_new_thread = threading._start_new_thread = refused
import numpy as np, networkx as nx, tcgpu
"""
USES = {
    "graphs": """
g = tcgpu.Graph.from_edges([5, 3, 9, 5, 5], [3, 9, 5, 3, 5], relabel=True)
assert (g.n, g.m, g.ids.tolist(), tcgpu.count(g)) == (3, 3, [3, 5, 9], 1)
club = tcgpu.Graph.from_networkx(nx.karate_club_graph())
for order in ("natural", "degree", "bfs", "random", "auto"):
    assert tcgpu.count(club.ordered(order)) == 45
assert tcgpu.count(tcgpu.generate.rmat(7)) and tcgpu.count(tcgpu.generate.barabasi_albert(200, 3))
assert tcgpu.count(tcgpu.load("rmat_8")) == 2487
""",
    "verbs": """
club = nx.karate_club_graph()
assert tcgpu.triangles(club).tolist() == list(nx.triangles(club).values())
assert np.allclose(tcgpu.clustering(club), list(nx.clustering(club).values()))
assert tcgpu.support(club).sum() == 3 * 45 and abs(tcgpu.transitivity(club) - nx.transitivity(club)) < 1e-9
assert tcgpu.add_edges(club, [(0, 33), (4, 33)])[1] == 5
assert not tcgpu.is_triangle_free(club) and sum(map(len, tcgpu.list_triangles(club))) == 45
""",
    "compiled elsewhere": """
club = tcgpu.Graph.from_networkx(nx.karate_club_graph())
assert tcgpu.k_truss(club, 4).m == nx.k_truss(nx.karate_club_graph(), 4).size()
assert tcgpu.cliques(club, 4) == 11 and tcgpu.motifs(club)["clique"] == 11
rows = np.concatenate([*tcgpu.list_triangles(club)])
assert tcgpu.reduce_triangles(club, lambda u, v, w: w - u) == (rows[:, 2] - rows[:, 0]).sum()
assert tcgpu.reduce_triangles(club, lambda u, v, w: 0.5) == 22.5
from tcgpu.subgraphs import reductions
reductions.FEW_SUMS, weights = 0, (-2.0) ** np.arange(-195, 195, 5)
weights[[3, 5]] = np.inf, -np.inf
sums = tcgpu.reduce_triangles(club, lambda u, v, w, x, y, z: (x, y, z), edge_values=weights, per="edge")
assert np.array_equal(sums, [k * weight if k else 0 for k, weight in zip(tcgpu.support(club), weights)])
""",
    "kernels": """
club = tcgpu.Graph.from_networkx(nx.karate_club_graph())
for method in tcgpu.methods():
    knobs = {key: min(32, value) for key, value in method.knobs.items() if key in ("threads", "blocks") and value}
    if "sim" in method.engines:
        assert tcgpu.count(club, method, engine="sim", max_seconds=600, **knobs) == 45, method
""",
    "insight": """
club = tcgpu.Graph.from_networkx(nx.karate_club_graph())
assert tcgpu.trace(club, "naive", threads=32, blocks=2).totals()["steps"]
row = tcgpu.measure(club, ["naive", "cpu"], engine=None, repeats=1)
assert {found["triangles"] for found in row} == {45}
""",
    "errors": """
club, path = tcgpu.Graph.from_networkx(nx.karate_club_graph()), "unwritten.html"
trace = tcgpu.trace(club, "naive", threads=32, blocks=2)
for use, needs in [
    (lambda: tcgpu.generate.delaunay(20), "scipy"), (club.lower, "scipy"), (club.to_scipy, "scipy"),
    (lambda: tcgpu.explore, "ipywidgets"), (lambda: tcgpu.step, "matplotlib"), (lambda: tcgpu.plots, "matplotlib"),
    (trace.show, "matplotlib"), (lambda: trace.save_page(path), "matplotlib"), (trace.play, "matplotlib"),
]:
    try:
        use()
    except tcgpu.TcgpuError as error:
        assert f"needs {needs}, which is not installed: pip install 'tcgpu[lab]'" in str(error), error
    else:
        raise AssertionError(needs)
from tcgpu.insight import checking
assert tcgpu.check("naive") and "too many" in checking._in_html(checking.Problem("count", "too many", smallest=club))
""",
}


@pytest.mark.parametrize("use", USES)
def test_numpy_is_enough(use, tmp_path):
    run = subprocess.run([sys.executable, "-c", BARE + USES[use]], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_a_first_small_count_loads_no_compiler(tmp_path):
    code = "import sys, tcgpu; assert tcgpu.count(tcgpu.generate.clique(9)) == 84; assert 'numba' not in sys.modules"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("ending", ["txt", "csv", "mtx", "graph"])
def test_the_shell_reads_and_counts_a_small_file_without_a_compiler(ending, tmp_path):
    tcgpu.write(tcgpu.generate.clique(9), path := str(tmp_path / f"small.{ending}"))
    for command in (["count", path], ["count", path, "--per-vertex"], ["support", path], ["truss", path]):
        code = f"from tcgpu.__main__ import main; main({command}); import sys; assert 'numba' not in sys.modules"
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert run.returncode == 0 and run.stdout, run.stderr


def same(one, other):
    """Whether two results are equal, their types, too."""
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return np.array_equal(one, other) and np.asarray(one).dtype == np.asarray(other).dtype


def triangles_of(module, graph):
    """What the module's `list_triangles` lists, in ascending order."""
    rows = np.concatenate([np.empty((0, 3), np.int32), *module.list_triangles(graph)])
    return rows[np.lexsort(rows.T)]


def test_both_paths_give_the_same(monkeypatch):
    """On random graphs: sizes from none on, loops and repeats, both types of numbers, any ids."""
    monkeypatch.setattr(clean, "in_numpy", lambda elements, compiled: True)
    random = np.random.default_rng(12)
    for _ in range(10_000 if sampling.full else 300):
        n = int(random.integers(0, 40))
        m = int(random.integers(0, 5 * n + 1)) if n else 0
        u, v = random.integers(0, max(n, 1), (2, m)).astype(random.choice([np.int32, np.int64]))
        rank, wide = random.permutation(n).astype(np.int32), random.integers(-(2**62), 2**62, n)
        columns = clean.clean_columns(u, v, n)
        pointers, rows = columns.col_ptr, columns.row_idx
        degree = clean.degrees(pointers, rows)
        broken = rows.copy()
        broken[random.integers(0, rows.size) if rows.size else slice(0)] = random.integers(-1, n + 2)
        for function, *arguments in (
            ("min_max", u, v),
            ("clean_columns", u, v, n),
            ("clean_columns", u, v, n, rank),
            ("moved_columns", pointers, rows, rank),
            ("column_of_each", pointers, rows.size),
            ("occurrences", n, u, v),
            ("degrees", pointers, rows),
            ("adjacency", pointers, rows, degree),
            ("rank_by_degree", degree),
            ("rank_by_bfs", *clean.adjacency(pointers, rows, degree)),
            ("first_invalid_column", pointers, broken),
        ):
            assert same(getattr(clean, function)(*arguments), getattr(cleaning, function)(*arguments)), function
        for ends in ((u, v), (wide[u], wide[v]) if n else (u, v)):
            assert same(clean.compact(*ends), compact.compact(*ends))
        graph = Graph(pointers, rows)
        assert small.count(graph) == counting.count(graph)
        assert same(small.triangles(graph), per_vertex.triangles(graph))
        assert same(small.support(graph), per_vertex.support(graph))
        assert small.cycles(graph) == four_at_edges.count_cycles(graph)
        for k in range(4, 7):
            assert small.cliques(graph, k) == of_k_vertices.cliques(graph, k)
        (first, last), (low, high) = np.sort(random.integers(0, (graph.m + 1, n + 1), (2, 2)), axis=0).T.tolist()
        part = Part(first, last, low, high)
        assert small.count(graph, part) == counting.count(graph, part)
        for by_edge in (True, False):
            found = np.zeros(graph.m if by_edge else n, np.int64)
            for place, values in per_vertex.tally(graph, by_edge, part):
                found[place : place + values.size] += values
            with monkeypatch.context() as without:
                without.setattr(per_vertex, "NUMBA", False)
                assert same(per_vertex.tally(graph, by_edge, part)[0][1], found)
        lists = (
            np.concatenate([np.empty((0, 3), np.int32), *found.list_triangles(graph)]) for found in (small, per_vertex)
        )
        one, other = (found[np.lexsort(found.T)] for found in lists)
        assert same(one, other)


@pytest.mark.parametrize("name, sizes", [
    ("rmat", (8,)), ("rmat", (7, 3, 0.4, 0.3, 0.1, False)), ("rmat", (0,)), ("barabasi_albert", (300, 4)),
    ("gap_kron", (3, 40_000)), ("gap_kron", (0,)), ("gap_urand", (16, 5)),
    ("barabasi_albert", (3, 5)), ("barabasi_albert", (5, 0)), ("copapers", (500,)), ("random", (90, 300)),
])  # fmt: skip
def test_both_paths_draw_the_same_edges(monkeypatch, name, sizes):
    found = []
    for numpy in (True, False):
        monkeypatch.setattr(tcgpu.generate, "in_numpy", lambda elements, numpy=numpy: numpy)
        found.append(tcgpu.generate.edges(name, *sizes, seed=5))
    assert same(*found)


def test_weights_that_are_not_negative_are_those_of_scipy():
    random = np.random.default_rng(3)
    for _ in range(300):
        features = random.random((random.integers(1, 40), random.integers(1, 7)))
        features[:, 0] = features[:, -1] * random.choice([1, 1, 0.5])  # two may say the same
        found = random.normal(size=len(features)) * 10.0 ** random.integers(-3, 6)
        weights, off = sampling_of_tracing.nnls(features, found)
        assert (weights >= 0).all() and off <= scipy.optimize.nnls(features, found)[1] + 1e-9 * np.linalg.norm(found)


def test_numpy_works_until_a_compiler_is_worth_its_loading(monkeypatch):
    monkeypatch.setattr(choice, "NUMBA", True)
    monkeypatch.setattr(choice, "_passed", 0)
    monkeypatch.setattr(choice, "has_compiled", False)
    most, of_all = choice.MAX_IN_NUMPY, choice.MAX_IN_NUMPY_IN_ALL
    assert not choice.in_numpy(most + 1)
    assert sum(choice.in_numpy(most) for _ in range(100)) == of_all // (most + 1000)
    assert 100 < sum(choice.in_numpy(10) for _ in range(10_000)) < 1000
    monkeypatch.setattr(choice, "_passed", 0)
    monkeypatch.setattr(choice, "has_compiled", True)
    assert choice.in_numpy(most, compiled=False) and not choice.in_numpy(10)
    assert draws is not None


def test_numbers_to_repeat_and_to_count_may_be_wider_than_a_pointer(root):
    """With pointers of 32 bits, as in a browser, NumPy refuses those of 64: `tcgpu.arrays` converts them."""
    for path in [*(root / "tcgpu").rglob("*.py"), *(root / "notebooks").rglob("*.py")]:
        assert path.name == "arrays.py" or not re.findall(r"np\.(?:repeat|bincount)\(", path.read_text()), path
        places = re.findall(r"reduceat\(.*(?:ptr|ends|begins)\[\w+\](.{6})", path.read_text())
        assert set(places) <= {".astyp"}, path
