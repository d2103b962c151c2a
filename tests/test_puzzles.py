"""The puzzles: their solutions are right, and whatever else a reader may hand in is told to be wrong, with the reason.

MUTANTS is the record: each missing part of each puzzle, left out or done wrong, with what the verdict says of it.
`pytest --full` tries all of them, else a sample.
"""

import linecache
import re

import nbformat
import pytest
from sampling import share

import tcgpu
from helpers import answers, cases, puzzles
from helpers.puzzles import notebook
from tcgpu import cuda, int32, int64, uint32
from tcgpu.engines import kernel_compiler
from tcgpu.insight import checking

pytestmark = pytest.mark.sim

GIVEN = {
    "tcgpu": tcgpu, "cuda": cuda, "int32": int32, "int64": int64, "uint32": uint32,
    "common": puzzles.common, "triangles_at": puzzles.triangles_at,
}  # fmt: skip
QUICK = answers.quick_graphs  # before it is shortened here
BARRIER, MISSED = "cuda.syncthreads()", "misses the target: [0-9,.]+ {}, at most"
SERIAL = """\
    cuda.syncthreads()
    if me == 0:
        for k in range(1, cuda.blockDim.x):
            sums[0] += sums[k]
"""
TREE = puzzles.solution("block_sum").partition("    left")[2].partition("    if me == 0")[0]
SEARCH = puzzles.solution("lanes_search").partition("            while")[2].partition("            if low <")[0]

MUTANTS = [  # puzzle, source before, source after, what the verdict says
    ("my_nonzero", "cuda.grid(1)", "cuda.threadIdx.x", "it counts .* triangles"),
    ("my_nonzero", "cuda.grid(1)", "cuda.grid(1) + 1", "it counts .* triangle"),
    ("my_nonzero", "e < row_idx.size", "True", "out of bounds"),
    ("my_nonzero", "e < row_idx.size", "e <= row_idx.size", "out of bounds"),
    ("my_nonzero", "e < row_idx.size", "e < col_ptr.size", "it counts|out of bounds"),
    ("my_nonzero", "cuda.grid(1)", "cuda.threadIdx.x * cuda.gridDim.x + cuda.blockIdx.x",
     MISSED.format("sectors a request")),
    ("dot_product", "q < q_end", "q <= q_end", "out of bounds"),
    ("dot_product", "p < p_end and", "", "it counts|out of bounds"),
    ("dot_product", "p += x <= y\n        q += y <= x", "p += x < y\n        q += y < x", "gone round its loops"),
    ("dot_product", "found += x == y", "found += x <= y", "it counts"),
    ("dot_product", "q += y <= x", "q += 1", "it counts"),
    ("dot_product", "    while p < p_end and q < q_end:\n        x, y = rows[p], rows[q]\n        found += x == y\n"
     "        p += x <= y\n        q += y <= x\n",
     "    for a in range(p, p_end):\n        for b in range(q, q_end):\n            found += rows[a] == rows[b]\n",
     MISSED.format("load requests")),
    ("stride", "cuda.gridsize(1)", "1_000_000", "it counts"),
    ("stride", ", cuda.gridsize(1)", "", "it counts"),
    ("stride", "cuda.gridsize(1)", "cuda.blockDim.x", "it counts"),
    ("stride", "cuda.grid(1)", "cuda.threadIdx.x", "it counts"),
    ("stride", "row_idx.size", "row_idx.size + 1", "out of bounds"),
    ("stride", "range(cuda.grid(1), row_idx.size, cuda.gridsize(1))",
     "range(cuda.grid(1) * row_idx.size // cuda.gridsize(1), (cuda.grid(1) + 1) * row_idx.size // cuda.gridsize(1))",
     MISSED.format("sectors a request")),
    ("shared_tile", f"            {BARRIER}\n            for e", "            for e", "a race"),
    ("shared_tile", f"            {BARRIER}\n    cuda.atomic", "    cuda.atomic", "a race"),
    ("shared_tile", "range(me, size, cuda.blockDim.x)", "range(me, size)", "a race|it counts|never|misses"),
    ("shared_tile", "for k in range(me, size, cuda.blockDim.x)", "for k in range(me, min(size, cuda.blockDim.x))",
     "uninitialized|it counts|misses"),
    ("shared_tile", "range(me, size, cuda.blockDim.x)", "range(me + 1, size, cuda.blockDim.x)", "uninitialized"),
    ("shared_tile", "row_idx[first + k]", "row_idx[col_ptr[j] + k]", "it counts"),
    ("shared_tile", "range(me, size,", "range(me, size + 1,", "out of bounds"),
    ("shared_tile", "range(me, size, cuda.blockDim.x)", "range(size)", "misses"),
    ("block_sum", f"    {BARRIER}\n    while", "    while", "a race"),
    ("block_sum", f"        {BARRIER}\n        left", "        left", "a race"),
    ("block_sum", f"        {BARRIER}\n        left", f"            {BARRIER}\n        left",
     "must reach|waits for ever"),
    ("block_sum", "(left + 1) // 2", "left // 2", "it counts|a race"),
    ("block_sum", "me + half < left", "me < half", "out of bounds|it counts|a race"),
    ("block_sum", "left = half\n", "pass\n", "gone round its loops"),
    ("block_sum", f"    left{TREE}", SERIAL, MISSED.format("requests in shared memory")),
    ("warp_sum", "(16, 8, 4, 2, 1)", "(16, 8, 4, 2)", "it counts"),
    ("warp_sum", "count += cuda.shfl", "count = cuda.shfl", "it counts"),
    ("warp_sum", "shfl_down_sync(0xFFFFFFFF, count, step)", "shfl_down_sync(0xFFFFFFFF, count, 1)", "it counts"),
    ("warp_sum", "if cuda.threadIdx.x == 0:", "if True:", "it counts"),
    ("column_bits", "cuda.atomic.or_(bits, row // 32, uint32(1) << (row % 32))",
     "bits[row // 32] |= uint32(1) << (row % 32)", "a race"),
    ("column_bits", "uint32(1) << (row % 32)", "uint32(1)", "it counts"),
    ("column_bits", "bits, row // 32,", "bits, row // 64,", "it counts"),
    ("column_bits", ">> (row % 32) & 1", ">> (row % 32)", "it counts"),
    ("column_bits", "bits[row // 32] >>", "bits[row % 32] >>", "it counts|out of bounds"),
    ("own_bits", "word * cuda.blockDim.x + cuda.threadIdx.x", "word", "a race"),
    ("own_bits", "word * cuda.blockDim.x + cuda.threadIdx.x", "word * 32 + cuda.threadIdx.x", "a race|out of bounds"),
    ("own_bits", "word * cuda.blockDim.x + cuda.threadIdx.x", "cuda.threadIdx.x * words + word",
     MISSED.format("bank conflicts")),
    ("lanes_search", "e + 1 + lane", "e + 1", "it counts"),
    ("lanes_search", "e + 1 + lane", "e + lane", MISSED.format("load requests")),  # row i is not in column i
    ("lanes_search", ", cuda.blockDim.x", "", "it counts"),
    ("lanes_search", "low = middle + 1", "low = middle", "gone round its loops"),
    ("lanes_search", "< x:", "<= x:", "it counts"),
    ("lanes_search", "high = middle\n", "high = middle - 1\n", "it counts"),
    ("lanes_search", f"            while{SEARCH}",
     "            while low < high and row_idx[low] < x:\n                low += 1\n", MISSED.format("load requests")),
    ("beat_naive", "if q < q_end:\n                        y", "y", "out of bounds|invalid"),
    ("beat_naive", "if p < p_end and q < q_end:", "if p < p_end:", "out of bounds"),
    ("beat_naive", "count += x == y", "count += x <= y", "it counts"),
    ("beat_naive", "p += 1", "p += 2", "it counts"),
    ("beat_naive", "x, y = row_idx[p], row_idx[q]\n            while", "x, y = row_idx[p], 0\n            while",
     "it counts"),
]  # fmt: skip


@pytest.fixture(autouse=True)
def in_short(monkeypatch):
    """Few graphs and launches, the first problem only, and no compiler: what `check` does is tested elsewhere."""
    graphs = {name: graph for name, graph in answers.quick_graphs().items() if graph.m < 300}
    monkeypatch.setattr(answers, "quick_graphs", lambda: graphs)
    monkeypatch.setattr(checking, "SHAPES", ({"threads": 1, "blocks": 1}, {"threads": 7, "blocks": 2}))
    monkeypatch.setattr(checking, "MOST_PROBLEMS", 1)
    monkeypatch.setattr(checking, "SHRINKING", 0)
    monkeypatch.setattr(kernel_compiler, "why_missing", lambda: "not here")


def kernel(name, source):
    """The kernel of a puzzle from a source that is run as a cell of a notebook would be."""
    path = f"<cell {len(linecache.cache)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    names = {"__name__": "__main__", **GIVEN}
    exec(compile(source, path, "exec"), names)
    return names[name]


def test_the_notebook_has_the_cells_that_the_solutions_make():
    own = [cell for cell in nbformat.read(notebook.PATH, 4).cells if notebook.TAG in cell.metadata.get("tags", [])]
    assert [cell.source for cell in own] == [cell.source for cell in notebook.cells()]


@pytest.mark.parametrize("name", puzzles.NAMES)
def test_the_solution_is_right_and_scored(name):
    said = puzzles.verdict(name, kernel(name, puzzles.solution(name)))
    assert said.startswith(f"{name} is right.\n")
    assert re.search(r"yours +reference\nload requests +(\d+) +\1\n", said), said


@pytest.mark.parametrize("name", puzzles.NAMES)
def test_nothing_and_the_given_code_are_no_answer(name):
    assert puzzles.verdict(name, None) == "not answered yet"
    source = puzzles.given(name)
    assert "# given" not in source and "# end" not in source and puzzles.solution(name) != source
    assert re.fullmatch(r"not answered yet: `...` stands in \w+", puzzles.verdict(name, kernel(name, source)))


@pytest.mark.parametrize("name", puzzles.NAMES)
def test_a_part_of_the_answer_is_none(name):
    """One blank filled, another not."""
    source = puzzles.given(name)
    if source.count("...") > 1:
        found = re.sub(r"\.\.\.", "0", source, count=1)
        assert puzzles.verdict(name, kernel(name, found)).startswith("not answered yet: `...` stands in ")


@pytest.mark.parametrize("name", puzzles.NAMES)
def test_the_answer_of_another_puzzle_is_not_right(name):
    for other in puzzles.NAMES:
        if other != name:
            said = puzzles.verdict(name, kernel(other, puzzles.solution(other)))
            assert said == f"{other} is not right: here {name} is asked for"


def test_what_a_puzzle_asks_for_is_not_to_be_called():
    source = puzzles.given("dot_product").replace("...", "found += common(rows, p, p_end, rows, q, q_end)")
    said = puzzles.verdict("dot_product", kernel("dot_product", source))
    assert said == "dot_product is not right: common is not to be called; write here what it does"


def naive_again(graph):
    return tcgpu.methods()[0].plan(graph)


@pytest.mark.parametrize("name", puzzles.NAMES)
def test_a_kernel_that_the_reader_did_not_write_is_not_right(name):
    own = getattr(puzzles.module(name), name)
    assert puzzles.verdict(name, own) == f"{name} is not right: its kernel is not yours; write one in this notebook"
    for other in (tcgpu.methods()[0], tcgpu.method(name)(cases.case_1.function), tcgpu.method(name)(naive_again)):
        assert " is not right: " in puzzles.verdict(name, other)


HANDED_IN = 3, "naive", "", (1, 2), [], {}, int, Exception, len, lambda: 0, True, float("nan"), b"", GIVEN["common"]


@pytest.mark.parametrize("handed_in", HANDED_IN, ids=lambda value: getattr(value, "__name__", None) or repr(value))
def test_what_is_no_kernel_gets_a_reason(handed_in):
    said = puzzles.verdict("stride", handed_in)
    assert re.search(r" is not right: a kernel that you wrote is expected, not an? \w+|True or False", said), said
    assert ("decorate it" in said) == ("a function" in said)


@pytest.mark.parametrize("name, old, new, says", share(MUTANTS, "puzzles"))
def test_each_missing_part_matters(name, old, new, says):
    source = puzzles.solution(name)
    assert old in source
    said = puzzles.verdict(name, kernel(name, source.replace(old, new, 1)))
    assert re.search(says, said) and not said.startswith(f"{name} is right"), said


ENDLESS = (
    "while True:\n        pass",
    "while True:\n        cuda.syncthreads()",
    "while e < row_idx.size:\n        e += 0",
)


@pytest.mark.parametrize("loop", ENDLESS)
def test_an_endless_loop_ends_with_a_verdict(loop):
    source = "@tcgpu.method(threads=32, blocks=4)\ndef stride(row_idx, total):\n    e = cuda.grid(1)\n    " + loop
    assert "gone round its loops" in puzzles.verdict("stride", kernel("stride", source))


def test_what_a_kernel_raises_is_the_reason():
    source = "@tcgpu.method(threads=32, blocks=4)\ndef stride(row_idx, total):\n    total[0] = nonsense"
    assert "nonsense" in puzzles.verdict("stride", kernel("stride", source))
    refuses = kernel("stride", "@tcgpu.method\ndef stride(graph):\n    return []")
    assert "stride is not right" in puzzles.verdict("stride", refuses)
    assert answers.kernel_verdict(None, None, {}) == "not answered yet"


def test_the_numbers_in_the_text_are_those_of_the_graph():
    text = " ".join(cell.source for cell in nbformat.read(notebook.PATH, 4).cells)
    assert f"of one graph: {answers.GRAPH.n} vertices, {answers.GRAPH.m} nonzeros" in text
    for method in (puzzles.module("stride").stride, "naive"):
        sectors = tcgpu.trace(answers.GRAPH, method, threads=32, blocks=4).totals()["load_sectors"]
        assert f"the `stride` of puzzle 3, which is `naive`, takes {round(sectors, -3):,}." in text
    assert len(QUICK()) == 10 and "on ten graphs that" in text
