"""The package is built of rooms on floors: none imports from above itself, and few files import a large library."""

import ast
from graphlib import TopologicalSorter

import pytest

# a library -> the files that import it
DOORS = {
    "numba.cuda": {"engines/kernel_compiler.py"},
    "numba": {"engines/native.py", "engines/code_cache.py", "engines/kernel_compiler.py"},
    "cuda": {"engines/cuda_driver.py", "engines/kernel_compiler.py"},
    "cupy": {"engines/runtime.py"},
}


@pytest.fixture(scope="module")
def imports(root):
    """room -> the full names that it imports anywhere, also inside functions; a folder of modules is one room."""
    found = {}
    for path in (root / "tcgpu").rglob("*.py"):
        room = path.relative_to(root / "tcgpu").parts[0].removesuffix(".py")
        found.setdefault(room, set()).update(names_in(ast.parse(path.read_text())))
    return found


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "rooms are imported by their full names"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_no_room_imports_from_above_itself(imports):
    rooms = {
        room: {name.split(".")[1] for name in names if name.startswith("tcgpu.")} & set(imports) - {room}
        for room, names in imports.items()
    }
    assert len(rooms) > 5 and any(rooms.values())
    list(TopologicalSorter(rooms).static_order())  # a CycleError names the rooms that import each other


def test_rooms_do_not_go_around_through_the_package(imports):
    assert {room for room, names in imports.items() if "tcgpu" in names} <= {"__main__"}


@pytest.mark.parametrize("library, files", DOORS.items())
def test_only_doors_import(root, library, files):
    users = set()
    for path in (root / "tcgpu").rglob("*.py"):
        if any(f"{name}.".startswith(f"{library}.") for name in names_in(ast.parse(path.read_text()))):
            users.add(path.relative_to(root / "tcgpu").as_posix())
    assert users == files
