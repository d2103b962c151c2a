"""Each module imports only from the modules below it, and few files import a large library."""

import ast
import re

import pytest

pytestmark = pytest.mark.full

# a library -> the files that import it
DOORS = {
    "numba.cuda": {"engines/kernel_compiler.py", "engines/integer_operations.py"},
    "numba": {
        "engines/integer_operations.py",
        "engines/compiled.py",
        "engines/by_value.py",
        "engines/code_cache.py",
        "engines/kernel_compiler.py",
    },
    "cuda": {"engines/cuda_driver.py", "engines/kernel_compiler.py"},
    "cupy": {"engines/gpu.py"},
    "wgpu": {"engines/webgpu/wgpu_native.py"},
    "js": {"engines/webgpu/browser.py"},
}


# The rooms (modules and folders of tcgpu/) from the lowest to the highest: each imports only from rooms before it.
ROOMS = (
    "worker_process cpu_costs gpu_costs bar progress networkx_info suggest markup errors files arrays draws_in_numpy "
    "engines figures player sampled_order clean foreign_graphs graph plots generators formats declarations built_in "
    "cpu kernels datasets records registry distributed hardware api measurement growth subgraphs directions "
    "coefficients truss insight networkx_graph networkx_backend warm __main__ lab"
).split()


# a room -> a higher one that has the same functions compiled, for large graphs: it is imported when they are called
HANDS_ON = {"clean": {"cpu"}, "generators": {"cpu"}}


@pytest.fixture(scope="module")
def imports(root):
    """room -> the full names that it imports, at the top, in functions, or as text for `import_module`."""
    found = {}
    for path in (root / "tcgpu").rglob("*.py"):
        room = path.relative_to(root / "tcgpu").parts[0].removesuffix(".py")
        tree = ast.parse(path.read_text())
        found.setdefault(room, set()).update(names_in(tree), names_as_text(tree))
    return found


def names_in(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "rooms are imported by their full names"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def names_as_text(tree):
    """Texts like "tcgpu.kernels.report.naive", which `import_module` takes."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return (text for text in texts if re.fullmatch(r"tcgpu(\.\w+)+", text))


def test_each_module_imports_only_from_below(imports):
    assert set(imports) - {"__init__"} == set(ROOMS)
    for place, room in enumerate(ROOMS):
        used = {name.split(".")[1] for name in imports[room] if name.startswith("tcgpu.")} & set(ROOMS)
        assert used - HANDS_ON.get(room, set()) <= set(ROOMS[: place + 1]), room


def test_file_names_are_unique(root):
    names = [path.name for path in (root / "tcgpu").rglob("*.py") if path.name != "__init__.py"]
    assert sorted(names) == sorted(set(names))


def test_modules_do_not_import_through_the_package(imports):
    assert {room for room, names in imports.items() if "tcgpu" in names} <= {"__main__"}


@pytest.mark.parametrize("library, files", DOORS.items())
def test_few_files_import_large_libraries(root, library, files):
    users = set()
    for path in (root / "tcgpu").rglob("*.py"):
        if any(f"{name}.".startswith(f"{library}.") for name in names_in(ast.parse(path.read_text()))):
            users.add(path.relative_to(root / "tcgpu").as_posix())
    assert users == files
