"""The meter: how heavy tcgpu is. `python tests/weight.py` prints a table; `tests/test_weight.py` holds it to budgets.

Measured are lines of `tcgpu/` (.py and .js) by room, what a first count imports of tcgpu, circles of imports, and
constants that were fitted to a machine. The budgets are in `tests/weight.toml`: they only go down.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tcgpu"
# the rooms whose constants decide how fast something is; those of other rooms are sizes on a page, limits, formats
TIMED_ROOMS = "core", "cpu", "distributed", "engines", "insight", "kernels", "subgraphs", "truss"
FIRST_COUNT = "import tcgpu; tcgpu.count(tcgpu.generate.mesh(5, 5), 'naive', engine='sim')"
LOADED = "import sys; [print(m.__file__) for k, m in list(sys.modules.items()) if k.split('.')[0] == 'tcgpu']"


def budgets():
    """What may be at most: name -> number."""
    return tomllib.loads((ROOT / "tests" / "weight.toml").read_text())


def measured():
    """Each number that has a budget, and the lines of each room: name -> number."""
    rooms = Counter()
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.js")]:
        rooms[room_of(path)] += lines(path)
    command = [sys.executable, "-c", f"{FIRST_COUNT}; {LOADED}"]
    imported = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    imported = {*map(Path, imported)}  # a module may have two names
    return {
        "lines": rooms.total(),
        "first count: modules": len(imported),
        "first count: lines": sum(map(lines, imported)),
        "circles": len(circles()),
        "constants": sum(map(constants, PACKAGE.rglob("*.py"))),
        **{f"lines of {room}": count for room, count in sorted(rooms.items())},
    }


def lines(path):
    return len(path.read_text().splitlines())


def room_of(path):
    """The folder of `tcgpu/` that a file is in; "core" for the files that are in none."""
    first = path.relative_to(PACKAGE).parts[0]
    return "core" if first.endswith(".py") else first


def circles():
    """Sets of files that import each other in a circle, at their tops, in functions, or by a name as text."""
    name_of = {path: ".".join(path.relative_to(ROOT).with_suffix("").parts) for path in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for path, name in name_of.items()}
    graph = nx.DiGraph()
    for name, path in modules.items():
        for used in imports(ast.parse(path.read_text())):
            target = used if used in modules else used.rpartition(".")[0]
            if target in modules and target not in (name, "tcgpu"):
                graph.add_edge(name, target)
    return [sorted(found) for found in nx.strongly_connected_components(graph) if len(found) > 1]


def imports(tree):
    """The full names that a module imports, but for those of type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.fullmatch(r"tcgpu(\.\w+)+", node.value)
        ):
            yield node.value
        yield from imports(node)


def constants(path):
    """How many numbers, but for 0, 1 and 2, a file of `TIMED_ROOMS` gives to names in capitals."""
    if room_of(path) not in TIMED_ROOMS:
        return 0
    count = 0
    for node in ast.parse(path.read_text()).body:
        targets = (
            node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
        )
        if any(isinstance(name, ast.Name) and name.id.isupper() for target in targets for name in ast.walk(target)):
            values = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant))
            count += sum(type(value) in (int, float) and value not in (0, 1, 2) for value in values)
    return count


def table(found):
    limits = budgets()
    rows = (f"{name:28}{count:8,}{limits.get(name, ''):>8}" for name, count in found.items())
    return "\n".join([f"{'':28}{'now':>8}{'most':>8}", *rows])


if __name__ == "__main__":
    print(table(measured()))
    print(*(f"circle: {' '.join(circle)}" for circle in circles()), sep="\n")
