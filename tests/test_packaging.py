"""Dependencies, the contents of the wheel, and the installed wheel."""

import ast
import importlib
import importlib.util
import inspect
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

import tcgpu
from tcgpu.errors import FILES, LAB

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
HEAVY = {"anywidget", "numba", "numpy", "scipy", "networkx", "matplotlib", "pandas", "IPython", "ipywidgets", "tqdm"}
CONDA_NAMES = {"matplotlib-base": "matplotlib"}


def versions(requirements):
    """name -> version bounds, of requirements as text; the project's own extras are left out."""
    parsed = [Requirement(text) for text in requirements]
    return {r.name: str(r.specifier) for r in parsed if r.name != PROJECT["name"]}


def test_citation_and_changelog_name_this_version_and_its_authors():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == tcgpu.__version__ and citation["license"] == PROJECT["license"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## \[(\d.*)\] - (.*)$", changes, re.MULTILINE)[0]
    assert newest == (citation["version"], str(citation.get("date-released", "not released")))
    assert ("dev" in tcgpu.__version__) == ("date-released" not in citation)
    [author] = (author["name"] for author in citation["authors"])
    assert author.lower() in (ROOT / "LICENSE").read_text(encoding="utf-8").lower()


def test_citation_names_the_source_of_each_method():
    references = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["references"]
    cited = {name for entry in references for name in re.findall(r"\w+", entry["notes"])}
    assert cited >= {method.name for method in tcgpu.methods() if method.source != "ours"}


def test_the_core_needs_no_gpu_no_browser_and_no_notebook():
    assert set(versions(PROJECT["dependencies"])) == {"networkx", "numba", "numpy", "platformdirs", "pooch", "tqdm"}
    assert PROJECT["requires-python"] == ">=3.11"
    [numba] = [one for one in map(Requirement, PROJECT["dependencies"]) if one.name == "numba"]
    assert numba.marker.evaluate({"sys_platform": "darwin"})
    assert not numba.marker.evaluate({"sys_platform": "emscripten"})


def test_what_is_imported_is_declared():
    """The core's packages are dependencies, those of pictures and widgets are in `lab`, of files in `files`."""
    names = {name for path in (ROOT / "tcgpu").rglob("*.py") for name in imported(ast.parse(path.read_text()))}
    foreign = names - set(sys.stdlib_module_names) - {"tcgpu"}
    core, lab = set(versions(PROJECT["dependencies"])) | {"llvmlite"}, set(LAB)  # llvmlite comes with Numba
    of_extras = {"cuda", "cupy", "distributed", "wgpu"}
    of_browsers = {"js", "pyodide"}
    assert foreign == core | lab | set(FILES) | of_extras | of_browsers
    assert set(versions(EXTRAS["files"])) == set(FILES)
    assert lab - {"traitlets"} <= set(versions(EXTRAS["lab"]))  # which ipywidgets brings


def imported(tree):
    """The packages that a module imports, at its top and in functions."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module.partition(".")[0]


def test_cuda_compilers_are_for_linux_and_exclude_each_other():
    """numba-cuda has wheels for Linux only, and its extras for two toolkits exclude each other."""
    test = [Requirement(text) for text in EXTRAS["test"]]
    compiler = next(r for r in test if r.name == "numba-cuda")
    assert compiler.extras == {"cu13"} and not compiler.marker.evaluate({"sys_platform": "darwin"})
    assert compiler.marker.evaluate({"sys_platform": "linux"})
    assert "numba-cuda" not in versions(EXTRAS["tools"] + EXTRAS["lab"])
    for toolkit in ("cu12", "cu13"):
        assert any(Requirement(text).extras == {toolkit} for text in EXTRAS[toolkit])
        assert f"cupy-cuda{toolkit[2:]}x" in versions(EXTRAS[toolkit])


def test_the_numpy_that_ends_numba_cuda_is_not_installed_beside_it():
    """Its `np.timedelta64("nat")` warns of NumPy 2.5 and is an error later; it is not maintained any more."""
    for extra in ("test", "cu12", "cu13"):
        bound = SpecifierSet(versions(EXTRAS[extra])["numpy"])
        assert bound.contains("2.5.2") and not bound.contains("2.6.0")
    assert SpecifierSet(versions(PROJECT["dependencies"])["numpy"]).contains("2.6.0")  # the core has no such limit


def test_only_systems_that_tcgpu_ran_on_are_claimed():
    """The workflow with macOS and Windows has never run."""
    workflow = (ROOT / ".github" / "workflows" / "platforms.yml").read_text(encoding="utf-8")
    systems = yaml.safe_load(workflow)["jobs"]["core"]["strategy"]["matrix"]["system"]
    assert [name.partition("-")[0] for name in systems] == ["macos", "windows"] and "has never run" in workflow
    assert [one for one in PROJECT["classifiers"] if "System" in one] == ["Operating System :: POSIX :: Linux"]
    for page in ("README.md", "CONTRIBUTING.md", "docs/quick_start.md"):
        assert "Linux or macOS" not in (ROOT / page).read_text(encoding="utf-8")
    named = [part for step in yaml.safe_load(workflow)["jobs"]["core"]["steps"] for part in step.get("run", "").split()]
    assert all((ROOT / part).exists() for part in named if part.startswith("tests/"))


def test_conda_builds_the_environment_of_the_notebooks():
    """Of `make lab`; the second file adds to it what runs kernels on an NVIDIA GPU, and conda takes the CUDA."""
    whole, gpu = (yaml.safe_load((ROOT / f"environment{of}.yml").read_text()) for of in ("", "-gpu"))
    *by_conda, by_pip = whole.pop("dependencies")
    assert {"pip", f"python{PROJECT['requires-python']}"} <= set(by_conda)
    assert by_pip == {"pip": ["--editable .[webgpu]"]}
    named = versions([entry for entry in by_conda if not entry.startswith(("python>", "pip"))])
    assert named == versions(PROJECT["dependencies"] + EXTRAS["lab"])
    for toolkit in ("cu12", "cu13"):
        renamed = {name.partition("-cuda1")[0]: bounds for name, bounds in versions(EXTRAS[toolkit]).items()}
        assert versions(gpu["dependencies"]) == renamed
    del gpu["dependencies"]
    assert whole == gpu  # one environment, from the same channels


def test_the_conda_recipe_requires_what_the_wheel_does():
    recipe = yaml.safe_load((ROOT / "release" / "conda" / "recipe.yaml").read_text())
    assert recipe["context"]["version"] == tcgpu.__version__ and recipe["build"]["noarch"] == "python"
    assert f">={recipe['context']['python_min']}" == PROJECT["requires-python"]
    python, *run = recipe["requirements"]["run"]
    named = {CONDA_NAMES.get(name, name): bounds for name, bounds in versions(run).items()}
    assert named == versions(PROJECT["dependencies"]) and python == "python >=${{ python_min }}"
    build = tomllib.loads((ROOT / "pyproject.toml").read_text())["build-system"]["requires"]
    assert versions(recipe["requirements"]["host"][2:]) == versions(build)
    assert set(recipe["about"]) >= {"homepage", "repository", "documentation", "summary", "license", "license_file"}
    assert recipe["about"]["license"] == PROJECT["license"] and recipe["about"]["summary"] in PROJECT["description"]
    points = recipe["build"]["python"]["entry_points"]
    assert points == [f"{name} = {where}" for name, where in PROJECT["scripts"].items()]


def test_binder_installs_what_this_checkout_declares():
    """As repo2docker reads the folder: an editable install of the checkout, without CUDA, on a Python that will do."""
    folder = ROOT / ".binder"
    [line] = (folder / "requirements.txt").read_text().splitlines()
    extras = re.fullmatch(r"-e \.\[([\w,]+)\]", line)[1].split(",")
    assert set(extras) == {"lab", "voila"} <= set(EXTRAS)
    python = re.fullmatch(r"python-(\d\.\d+)", (folder / "runtime.txt").read_text().strip())[1]
    assert SpecifierSet(PROJECT["requires-python"]).contains(python)
    for name, first in (("postBuild", "#!/usr/bin/env python3"), ("start", "#!/bin/sh")):
        assert (folder / name).read_text().startswith(f"{first}\n") and (folder / name).stat().st_mode & 0o100
    assert {path.name for path in folder.iterdir()} == {"requirements.txt", "runtime.txt", "postBuild", "start"}


@pytest.mark.full
def test_the_steps_after_an_installation_work():
    subprocess.run([sys.executable, ROOT / ".binder" / "postBuild"], cwd=ROOT, check=True, timeout=300,
                   env={**os.environ, "PYTHONPATH": str(ROOT)})  # fmt: skip


@pytest.mark.parametrize("group", ["networkx.backends", "networkx.backend_info"])
def test_entry_points_can_be_loaded(group):
    module, _, name = PROJECT["entry-points"][group]["tcgpu"].partition(":")
    assert getattr(importlib.import_module(module), name)


def test_every_public_name_is_there_and_typed():
    """`tcgpu/py.typed` promises types: each option of a public function has one, and what it returns."""
    assert set(tcgpu.__all__) == set(tcgpu._MODULE_OF) | set(tcgpu._MODULES)
    for name in tcgpu.__all__:
        value = getattr(tcgpu, name)
        if inspect.isfunction(value):
            signature = inspect.signature(value)
            assert signature.return_annotation is not inspect.Signature.empty, name
            options = [p for p in signature.parameters.values() if p.default is not inspect.Parameter.empty]
            assert all(p.annotation is not inspect.Parameter.empty for p in options if p.name != "graph"), name


def test_dir_shows_public_names_only():
    """Also after the package has imported its modules, which Python makes attributes of it."""
    assert tcgpu.count([(0, 1), (1, 2), (0, 2)]) == 1 and hasattr(tcgpu, "api")
    assert dir(tcgpu) == sorted(tcgpu.__all__)


@pytest.mark.parametrize("old, new", tcgpu._RENAMED.items())
def test_names_of_the_version_before_warn(old, new):
    with pytest.warns(DeprecationWarning, match=f"tcgpu.{old} is tcgpu.{new} now"):
        assert getattr(tcgpu, old) is getattr(tcgpu, new)
    assert f"`tcgpu.{old}` is `tcgpu.{new}` now" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("old, new", [*tcgpu._MOVED.items(), ("tracing.result", "insight.result")])
def test_modules_of_the_version_before_warn(old, new):
    with pytest.warns(DeprecationWarning, match=f"^tcgpu.{old} is tcgpu.{new} now$"):
        sys.modules.pop(f"tcgpu.{old}", None)
        assert importlib.import_module(f"tcgpu.{old}") is importlib.import_module(f"tcgpu.{new}")


def test_a_module_that_there_is_not_is_missed_by_its_name():
    with pytest.raises(ModuleNotFoundError, match="tcgpu.trace_of_nothing"):
        importlib.import_module("tcgpu.trace_of_nothing")


def test_importing_is_quick_and_imports_nothing_heavy():
    code = (
        "import sys, time; start = time.process_time(); import tcgpu; "
        "print(time.process_time() - start, *{name.partition('.')[0] for name in sys.modules})"
    )
    runs = [subprocess.check_output([sys.executable, "-c", code], cwd=ROOT, text=True).split() for _ in range(3)]
    assert not HEAVY & set(runs[0])
    assert min(float(run[0]) for run in runs) < 0.3


def test_every_data_file_is_small():
    sizes = {path: path.stat().st_size for path in (ROOT / "data").rglob("*") if path.is_file()}
    assert sizes and max(sizes.values()) < 1_000_000 and sum(sizes.values()) < 10_000_000


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.mark.full
def test_the_wheel_holds_the_package_and_its_data(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        entry_points = archive.read(next(name for name in names if name.endswith("entry_points.txt"))).decode()
    data = {path.relative_to(ROOT).as_posix() for path in (ROOT / "data").rglob("*") if path.is_file()}
    files = (ROOT / "tcgpu").rglob("*")
    paths = [
        path for path in files if path.suffix in (".py", ".css", ".js") or path.name in ("py.typed", "completion.bash")
    ]
    package = {path.relative_to(ROOT).as_posix() for path in paths}
    packed = {name for name in names if ".dist-info/" not in name}
    assert packed == package | {f"tcgpu/{name}" for name in data}
    assert "tcgpu = tcgpu.__main__:main" in entry_points and "[networkx.backends]" in entry_points


@pytest.mark.full
def test_the_wheel_has_a_readme_without_relative_links(wheel):
    with zipfile.ZipFile(wheel) as archive:
        metadata = archive.read(next(name for name in archive.namelist() if name.endswith("METADATA"))).decode()
    assert "Description-Content-Type: text/markdown" in metadata and "## How fast" in metadata
    assert not re.findall(r"\]\((?!https?://)", metadata)


def test_links_of_the_readme_are_absolute_on_an_index():
    """Once the project has an address; pictures come as files, not as the pages that show them."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]+)\)", text)
    address = "https://github.com/OWNER/NAME"
    found = re.findall(r"\]\(([^)]+)\)", release("readme").for_index(text, address))
    where = {path.removeprefix(address) for path in found}
    expected = {link if "://" in link else f"/blob/main/{'README.md' * link.startswith('#')}{link}" for link in links}
    assert where == expected - {"/blob/main/data/measured/sweep.svg"} | {"/raw/main/data/measured/sweep.svg"}


def release(name):
    """A module of the folder `release`."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "release" / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def check_dist():
    return release("check_dist")


@pytest.mark.full
def test_the_source_archive_builds_the_same_wheel(check_dist, wheel, tmp_path):
    command = [sys.executable, "-m", "hatchling", "build", "--target", "sdist", "--directory", tmp_path / "dist"]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (tmp_path / "source").mkdir()
    check_dist.check_source(next((tmp_path / "dist").glob("*.tar.gz")), wheel, tmp_path / "source")


@pytest.mark.full
def test_the_wheel_alone_is_enough_until_it_says_what_is_missing(check_dist, wheel, tmp_path):
    """In an environment of its own, for which pip needs a network; `make dist` does the same."""
    try:
        check_dist.check_install(wheel, tmp_path)
    except subprocess.CalledProcessError as error:
        if "No matching distribution found" in error.stderr and "install" in error.cmd:
            pytest.skip("pip finds no packages here")
        raise AssertionError(error.stderr) from error


@pytest.mark.full
def test_the_installed_wheel_counts_and_caches_its_kernels(wheel, tmp_path):
    """Installed elsewhere, run from elsewhere: its data are found, and a second process need not compile.

    What it compiles is not beside it, where it would stay when the package is uninstalled, as a package without code.
    """
    site = tmp_path / "site"
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target", site, wheel]
    subprocess.run(install, check=True)
    environment = {**os.environ, "PYTHONPATH": str(site), "TCGPU_CACHE": str(tmp_path / "cache")}
    environment.pop("NUMBA_CACHE_DIR", None)
    code = "import tcgpu; print(tcgpu.__file__); print(tcgpu.count(tcgpu.generate.clique(300)))"
    for _ in range(2):
        out = subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment, text=True)
        assert out.split() == [str(site / "tcgpu" / "__init__.py"), "4455100"]
        kernels = {path: path.stat().st_mtime_ns for path in (tmp_path / "cache" / "native").rglob("*.nbc")}
    assert kernels and not list(site.rglob("*.nb?"))
    subprocess.check_output([sys.executable, "-c", code], cwd=tmp_path, env=environment)
    assert {path: path.stat().st_mtime_ns for path in kernels} == kernels


def test_every_module_has_a_docstring():
    for path in (ROOT / "tcgpu").rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


def test_the_repository_names_no_machine_and_no_package_registry():
    """Paths of one machine and index addresses break elsewhere; installing is left to the user's own settings."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    private = re.compile(r"--(extra-)?index-url|/(bash_jobs|home/\w+|Users/\w+)/")
    for name in filter(None, listed.stdout.split("\0")):
        text = (ROOT / name).read_text(encoding="utf-8", errors="replace")
        assert not private.search(text) or name == Path(__file__).relative_to(ROOT).as_posix(), name
