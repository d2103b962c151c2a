"""The meter: how heavy tcgpu is. `python tests/weight.py` prints a table; `tests/test_weight.py` holds it to budgets.

Measured are lines of `tcgpu/` (.py and .js) by room, what a first count imports of tcgpu, circles of imports, and
numbers that were fitted to a machine. The budgets are in `tests/weight.toml`: they only go down.
"""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from functools import cache
from pathlib import Path

import networkx as nx

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "tcgpu"
COSTS = "cpu_costs.py", "gpu_costs.py", "kernels/order_costs.py"  # the files of numbers that were fitted to a machine
# files without any: a GPU's data sheets, defaults of knobs, which a caller can choose, and sizes on a page
DATA = "built_in.py bar.py figures.py files.py insight/gpus.py insight/pictures.py insight/web_page.py".split()
# names of limits; of units, of which microseconds are the simulator's, scaled by a trial where it runs; of hardware;
# of memory that stays free, of marks, of what a person waits for
STRUCTURE = (
    r"(MAX|MOST|LEAST)(_\w+)?|(\w+_)?(BITS|BYTES|WORDS|MASK|SHIFT|SECONDS|US)"
    "|WARP|ALL_LANES|LANES|CACHE_LINE|SECTOR|LINE|(IN_)?REGISTERS|WORD"
    "|MARGIN|IN_FRONTIER|PEELED_AT|RESTARTS|POLL|GRACE|PATIENCE|LIMIT|NOTICE|LONGEST_RUN|SHRINKING|LONGEST_WAKE|FIRST_WAKE|SECONDS_OF_TRIAL"
)
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
        "constants": sum(sum(fitted(path).values()) for path in PACKAGE.rglob("*.py")),
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


@cache
def fitted(path):
    """The numbers of a file that were fitted to a machine: name -> how many. The rule is read from the code:

    - A name in capitals that a branch compares with by < or >, in any file, is a threshold: it says which of two ways
      is faster. Where the branch raises an error, it refuses something, and the name is none.
    - A number that is not whole is a cost or a ratio; and all numbers of `COSTS` are fitted.

    A name can say that it is neither: MAX_ or MOST_ begins a limit, of a format or of memory; `STRUCTURE` lists units
    and sizes of hardware; `range` makes positions. Sizes that nothing is compared with, such as the threads of a block,
    choose nothing.
    """
    place = path.relative_to(PACKAGE).as_posix()
    if room_of(path) not in TIMED_ROOMS or place in DATA:
        return {}
    found = {}
    for node in ast.parse(path.read_text()).body:
        names, values = names_and_numbers(node)
        for name in names if values and "range(" not in ast.unparse(node) else ():
            real = any(isinstance(value, float) for value in values)
            threshold = not re.fullmatch(STRUCTURE, name) and (real or (path, name) in compared())
            if place in COSTS or threshold:
                found[names[0]] = len(values)
    return found


def names_and_numbers(node):
    """The names in capitals that a statement gives values to, and their numbers, but for 0, 1 and 2."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target] if isinstance(node, ast.AnnAssign) else []
    named = (part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name))
    names = [name for name in named if name.isupper()]
    values = (part.value for part in ast.walk(node.value) if isinstance(part, ast.Constant)) if names else ()
    return names, [value for value in values if type(value) in (int, float) and value not in (0, 1, 2)]


@cache
def compared():
    """The names that some file compares with by < or >, but to refuse something: (file that has the name, name)."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        home = {  # a name here -> the file that it is, if it is a module; the file that has it; its name there
            alias.asname or alias.name: (file_of(f"{node.module}.{alias.name}"), file_of(node.module), alias.name)
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
        }
        refusing = {
            id(part)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and any(isinstance(part, ast.Raise) for part in node.body)
            for part in ast.walk(node.test)
        }
        shifted = {  # an index, or a number that is added to one, is no threshold
            id(part)
            for node in ast.walk(tree)
            for part in ast.walk(node.slice if isinstance(node, ast.Subscript) else node)
            if isinstance(node, ast.Subscript)
            or isinstance(node, ast.BinOp)
            and isinstance(node.op, (ast.Add, ast.Sub, ast.FloorDiv))
        }
        for node in ast.walk(tree):
            by_order = isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Lt, ast.LtE, ast.Gt, ast.GtE))
            for part in ast.walk(node) if by_order and id(node) not in refusing else ():
                if id(part) in shifted:
                    continue
                if isinstance(part, ast.Name):
                    found.add(home[part.id][1:] if part.id in home else (path, part.id))
                elif isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id in home:
                    found.add((home[part.value.id][0], part.attr))
    return found


def file_of(module):
    return ROOT / (module.replace(".", "/") + ".py")


def table(found):
    limits = budgets()
    rows = (f"{name:28}{count:8,}{limits.get(name, ''):>8}" for name, count in found.items())
    return "\n".join([f"{'':28}{'now':>8}{'most':>8}", *rows])


if __name__ == "__main__":
    print(table(measured()))
    print(*(f"circle: {' '.join(circle)}" for circle in circles()), sep="\n")
