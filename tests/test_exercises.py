"""The exercises of the notebooks: the answers of their solutions are right, others are told to be wrong.

An exercise is a code cell that calls `answers.verdict`; it asks for each `name = None` of its own. Its solution is the
Python in the text between the code cell before it, if that is no exercise, and the code cell after it. `WRONG` has a
wrong answer for each name.
"""

import ast
import contextlib
import io
import linecache
import re
from pathlib import Path

import nbformat
import numpy as np
import pytest
from sampling import share

import tcgpu
from helpers import answers, cases

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
IMPORTS = ast.Import | ast.ImportFrom

# by notebook: a wrong answer for each name, as a reader may write it
WRONG = {
    "00_start_here": {"in_common": "in_common = 3"},
    "01_naive": {
        "common_rows": """
@cuda.jit(device=True)
def common_rows(rows, p, p_end, q, q_end):
    found = int64(0)
    while p < p_end and q < q_end:
        found += rows[p] == rows[q]
        if rows[p] <= rows[q]:
            p += 1
        else:
            q += 1
    return found + (p < p_end)
""",
        "of_thread_0": "of_thread_0 = 1_000_000 / (512 * 256)",
        "scattered": "scattered = 'R-MAT'",
    },
    "02_column_block": {
        "waits": "waits = 4",
        "wrong": "wrong = {'threads': 32, 'blocks': 2}",
        "safe": "safe = {'threads': 32, 'blocks': 4}",
        "slower": "slower = ['naive', 'naive']",
    },
    "03_bitmap": {
        "place": "place = 75 // 8, 75 % 8",
        "gains_most": "gains_most = 'co-papers'",
        "blocks_in_cache": "blocks_in_cache = 1024 * 60 // 512 * 8",
    },
    "04_four_bitmaps": {
        "rows_past": "rows_past = {30, 32, 33}, {32}",
        "fastest": "fastest = ['thread', 'block_global', 'warp', 'block_shared', 'block_global']",  # by the paper
    },
    "05_k_truss": {
        "round_1": "round_1 = {(0, 5), (4, 5), (3, 4), (2, 4), (2, 5)}",
        "round_2": "round_2 = {(2, 4)}",
        "times_rounds": "times_rounds = 4",
        "walked": "walked = {2, 8}",
    },
    "06_warp_search": {
        "sectors": "sectors = 4",
        "steps_taken": "steps_taken = 4112, 4096 * 4",
        "thread_wins": "thread_wins = [(1, 64), (4096, 4096)]",
    },
    "07_levels": {"worst": "worst = 0", "best": "best = 0", "by_c": "by_c = 16", "minutes": "minutes = 0.05"},
    "08_adaptive": {
        "looked_up_for_100": "looked_up_for_100 = 10_000",
        "slowest_first": "slowest_first = slowest_first[1:] + slowest_first[:1]",
        "faster": "faster = 'natural'",
    },
    "09_edges_and_vertices": {
        "shared_bits": "def shared_bits(a, b):\n    return (a | b).bit_count()",
        "of_edge": "of_edge = 72",
        "of_vertex": "of_vertex = 71 * 70",
        "busy_lanes": "busy_lanes = 17.6",
        "looked_up": "looked_up = 39",
    },
    "10_your_kernel": {"busiest": "busiest = 0.008", "spared": "spared = 'both'"},
    "11_four_vertices": {
        "paths_at_edge": "paths_at_edge = 4",
        "paws_at_edge": "paws_at_edge = 4",
        "paths": "paths = 24",
        "stars": "stars = 1",
        "pairs_apart": "def pairs_apart(m, d):\n    return m * (m - 1) // 2 - d.sum()",
        "possible": "possible = {'path', 'star', 'cycle', 'paw'}",
        "fewer": "fewer = 'natural'",
    },
    "12_triangles_with_values": {
        "share": "share = 1 / 3",
        "open_days": "def open_days(u, v, w, uv, uw, vw):\n    return max(uv, uw, vw) - min(uv, uw, vw)",
    },
    "13_your_gpu": {
        "add_64": "def add_64(a, b):\n    return (a[0] + b[0]) % 2**32, (a[1] + b[1]) % 2**32",
        "by_votes": "by_votes = each_adds",
        "lies": "lies = 'lower'",
    },
}
HANDED_IN = (  # whatever a reader may write
    [], [4], [[]], (1, 2), {3}, {}, {"threads": 0}, {"threads": (1, 2)}, {"thread": 1}, lambda *given: given, lambda: 0,
    Path, Path(), cases.case_1, "nowhere", "Nowhere", "", True, -1, 10**30, float("nan"), np.arange(3), b"", ...,
)  # fmt: skip


def exercises():
    """A pytest parameter for each exercise: its notebook, the code cells before it, its own source, its solution."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        cells = nbformat.read(path, as_version=4).cells
        code = [k for k, cell in enumerate(cells) if cell.cell_type == "code"]
        found = [k for k in code if "answers.verdict(" in cells[k].source]
        for number, k in enumerate(found, 1):
            begin = max((c for c in code if c < k), default=0)
            end = min((c for c in code if c > k), default=len(cells))
            text = "\n".join(cells[c].source for c in range(begin, end) if c not in code)
            solution = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
            before = [cells[c].source for c in code if c < k and c not in found]
            yield pytest.param(path.stem, before, cells[k].source, solution, id=f"{path.stem} {number}")


def needed(before, source):
    """Those statements of the cells `before` that the names in `source` come from, as a tree for each cell."""
    names = set()
    for statement in reversed(parsed(source).body):
        names = names - replaced(statement) | used(statement)
    trees = [parsed(cell) for cell in before]
    modules = {name for tree in trees for each in tree.body if isinstance(each, IMPORTS) for name in replaced(each)}
    for tree in reversed(trees):
        last = tree.body[-1]
        body = tree.body[:-1] if isinstance(last, ast.Expr) else tree.body  # the last one shows something
        tree.body = []
        for statement in reversed(body):
            if names & (defined(statement) - modules | replaced(statement)):
                tree.body.insert(0, statement)
                names = names - replaced(statement) | used(statement)
    return trees


def depending(source, name):
    """Those statements of a cell that set a name, and those that use it or what others of them set."""
    tree, names, kept = parsed(source), {name}, []
    for statement in tree.body:
        if names & (names_in(statement) | replaced(statement)):
            kept.append(statement)
            names |= defined(statement)
    tree.body = kept
    return tree


def names_in(tree, kinds=ast.expr_context):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, kinds)}


def used(statement):
    """The names of which a statement needs values."""
    nodes, names = list(ast.walk(statement)), names_in(statement, ast.Load)
    names |= {node.target.id for node in nodes if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name)}
    loops = (names_in(node.target) for node in nodes if isinstance(node, ast.For | ast.comprehension))
    return names.difference({node.arg for node in nodes if isinstance(node, ast.arg)}, *loops)


def defined(statement):
    """The names that it sets, or whose values it may change: `name[key] = value`, `name.append(x)`, `change(name)`."""
    found = names_in(statement, ast.Store) | replaced(statement)
    for node in ast.walk(statement):
        if isinstance(node, ast.Subscript | ast.Attribute) and isinstance(node.ctx, ast.Store):
            found |= names_in(node.value)
        elif isinstance(node, ast.Expr) and not ast.unparse(node).startswith("print("):
            found |= names_in(node)
    return found


def replaced(statement):
    """The names to which a statement gives new values, whatever they had before."""
    if isinstance(statement, IMPORTS):
        return {alias.asname or alias.name.partition(".")[0] for alias in statement.names}
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return {statement.name}
    targets = statement.targets if isinstance(statement, ast.Assign) else ()
    return set().union(*(names_in(target, ast.Store) for target in targets))


def asked(source):
    """The names that an exercise asks for."""
    return re.findall(r"^(\w+) = None\b", source, re.MULTILINE)


def without_questions(source):
    return re.sub(r"^\w+ = None\b.*$", "", source, flags=re.MULTILINE)


def parsed(source):
    """The tree of a cell's source, which a kernel's source can be read from again."""
    path = f"<cell {len(linecache.cache)}>"
    linecache.cache[path] = (len(source), None, source.splitlines(True), path)
    tree = ast.parse(source)
    tree.path = path
    return tree


def run(tree, names):
    """Run a cell as a notebook would, and return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(tree, tree.path, "exec"), names)
    return printed.getvalue()


def verdicts(printed):
    return re.findall(r"not answered yet|not right|\bright\b", printed)


@pytest.mark.parametrize("notebook, before, source, solution", share(exercises(), "exercises", of=2))
def test_the_solution_is_right_and_wrong_answers_are_not(notebook, before, source, solution, monkeypatch):
    monkeypatch.chdir(FOLDER)
    assert asked(source), "no answer is asked for"
    answered = set().union(*map(replaced, ast.parse(solution).body))
    assert set(asked(source)) <= answered, "the solution leaves an answer out"
    names, own = {}, without_questions(source)
    for cell in needed(before, f"{solution}\n{own}"):
        run(cell, names)
    verdict, calls = answers.verdict, []
    with monkeypatch.context() as recorded:
        recorded.setattr(answers, "verdict", lambda *how, **more: calls.append((how, more)) or verdict(*how, **more))
        told = run(parsed(f"{solution}\n{own}"), names)
    assert verdicts(told) and set(verdicts(told)) == {"right"}, told
    for name in asked(source):
        wrong = WRONG.get(notebook, {}).get(name)
        assert wrong, f"WRONG has no answer for {name}"
        told = run(depending(f"{wrong}\n{own}", name), dict(names))
        assert "not right" in verdicts(told), told
        assert not re.search(r"not right$", told, re.MULTILINE), f"no reason: {told}"
    for (right, *how), more in calls:
        check_what_is_handed_in(right, how, more)


def check_what_is_handed_in(right, how, more):
    """Whatever is handed in gets a sentence; with the reason, if it is not of the kind that is expected."""
    for handed_in in HANDED_IN:
        if isinstance(handed_in, str | tcgpu.Method) and how == [tcgpu.check]:
            continue  # it takes them for methods, and is tested elsewhere
        said, expected = answers.verdict(handed_in, *how, **more), answers._kind(right)
        assert re.match("right|.* is not right", said, re.DOTALL), said
        assert answers._kind(handed_in) == expected or " is not right: " in said, said


@pytest.mark.sim
def test_whatever_is_handed_in_for_a_kernel_gets_a_sentence():
    assert cases.verdict(1, None) == "not answered yet"
    for handed_in in HANDED_IN:
        said = cases.verdict(2, handed_in)
        assert re.search(" is not right: (a kernel that you wrote is expected, not |its kernel is not yours)", said)


def test_an_answer_is_right_wrong_or_not_there():
    assert answers.verdict(None, 3) == "not answered yet"
    assert answers.verdict(3, 3) == answers.verdict(4, lambda answer: answer > 3) == "right"
    assert answers.verdict(["b", "a"], ["a", "b"]) == "['b', 'a'] is not right: 0 of 2 are right"
    assert answers.verdict(3, lambda answer: answer > 3) == "3 is not right: the hint says how to begin"
    assert answers.verdict(3, 2.5) == "3 is not right: it is less"
    assert answers.verdict([1], (1, 2)) == "[1] is not right: there are 2"
    assert answers.verdict({3, 4}, {4, 5, 6}) == "{3, 4} is not right: 1 of these 2 belong there, 2 are missing"
    assert answers.verdict({"a": 1}, {"a": 2, "b": 1}) == "{'a': 1} is not right: 0 of 2 are right"
    assert answers.verdict("a", "b", among="abc") == "a is not right: it is b or c"
    assert answers.verdict(3, 3, "2 + 1") == "right: 2 + 1"
    assert answers.verdict(4, 3, lambda answer: f"{answer - 1} and 1") == "4 is not right: 3 and 1"
    assert answers.verdict([1, [2]], (1, (2,))) == answers.verdict(" B", "b", among="ab") == "right"
    assert answers.verdict("c", "b", among="ab") == "c is not right: it is none of a, b"
    assert answers.verdict((3,), 3) == "(3,) is not right: a number is expected, not a list"
    assert answers.verdict({"threads": 0}, lambda knobs: tcgpu.trace([(0, 1)], "naive", **knobs), like={}) == (
        "{'threads': 0} is not right: threads is a whole number from 1 to 1,024, not 0"
    )
