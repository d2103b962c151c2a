"""Fixtures for all tests, and one rule: a skip has a reason."""

import contextlib
import dataclasses
import gc
import importlib.util
import os
import shutil
import sys
from pathlib import Path

import pytest
import sampling
import swiftshader
from hypothesis import HealthCheck, settings

from tcgpu.engines import choice, kernel_compiler, runtime
from tcgpu.insight.faults import check_launch

# a first call compiles, and CI machines are busy: no deadline for one example; a test may have a class for each engine
settings.register_profile("tcgpu", deadline=None, suppress_health_check=[HealthCheck.differing_executors])
settings.load_profile("tcgpu")

choice._passed = choice.MAX_IN_NUMPY_IN_ALL  # NumPy has had its share: tests are of compiled code
os.environ["TCGPU_QUIET"] = "1"  # whether code is compiled differs from one machine to the next
ROOT = Path(__file__).resolve().parent.parent
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def browser():
    """Path of the first Chromium found, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pytest_addoption(parser):
    parser.addoption(
        "--full", action="store_true", help="all combinations of knobs and graphs, not a sample, and tests marked full"
    )
    parser.addoption(
        "--faults", action="store_true", help="look for faults in every launch of a kernel in the simulator"
    )


def pytest_configure(config):
    sampling.full = config.getoption("full")
    swiftshader.offer(browser())


def pytest_generate_tests(metafunc):
    """Run what takes `compiled_kernels` in the simulator, too, with --full."""
    if "compiled_kernels" in metafunc.fixturenames:
        metafunc.parametrize(
            "compiled_kernels", ["compiled", "simulated"] if sampling.full else ["compiled"], indirect=True
        )


def pytest_collection_modifyitems(items):
    """Skip, with the reason, the tests that this machine cannot run."""
    for item in items:
        if item.get_closest_marker("gpu") and runtime.ENGINE != "gpu":
            item.add_marker(pytest.mark.skip(reason=runtime.REASON))
        if item.get_closest_marker("webgpu") and (reason := runtime.why_missing("webgpu")):
            item.add_marker(pytest.mark.skip(reason=reason))
        if item.get_closest_marker("ptx") and kernel_compiler.why_missing():
            item.add_marker(pytest.mark.skip(reason=kernel_compiler.why_missing()))
        if item.get_closest_marker("browser") and not browser():
            item.add_marker(pytest.mark.skip(reason="no Chromium on this machine"))
        if item.get_closest_marker("full") and not sampling.full:
            item.add_marker(pytest.mark.skip(reason="guards the repository: FULL=1 runs it"))


@pytest.fixture(autouse=True)
def launches_without_faults(request, monkeypatch):
    """With --faults, a launch of a plan in the simulator fails if its kernel has a fault."""
    if request.config.getoption("faults"):

        def checked(function, blocks, threads, args, *, shared=0):
            faults = check_launch(function, blocks, threads, args, shared=shared)
            assert not faults, "\n".join(map(str, faults))

        monkeypatch.setattr("tcgpu.engines.sim.simulate", checked)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip without a reason is a failure."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped:").strip()
        if reason in ("", "Skipped", "unconditional skip"):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} skips without saying why"
    return report


@pytest.fixture(scope="session")
def root():
    """The top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def load_benchmark(root):
    """A function that imports a script of `benchmarks/` as a new module; scripts there may import each other."""

    def load(name):
        spec = importlib.util.spec_from_file_location(f"benchmarks_{name}", root / "benchmarks" / f"{name}.py")
        module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # dataclasses look themselves up there
        with pytest.MonkeyPatch.context() as patch:
            patch.syspath_prepend(root / "benchmarks")
            spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture(scope="module")
def faults(load_benchmark):
    """`benchmarks/faults.py`: it starts clusters of Dask, and kills their workers."""
    yield load_benchmark("faults")
    gc.collect()  # Dask's tasks may log when they are collected: not during another test


@pytest.fixture(scope="session")
def graphs_folder():
    """The folder of well-known graphs with INDEX.tsv, their counts: beside the checkout, or where TCGPU_GRAPHS says."""
    folder = Path(os.environ.get("TCGPU_GRAPHS", ROOT.parent / "shared" / "graphs"))
    if not (folder / "INDEX.tsv").is_file():
        pytest.skip("no folder of well-known graphs beside the checkout; TCGPU_GRAPHS names one")
    return folder


@pytest.fixture(scope="session")
def papers_folder():
    """The folder of the four papers' texts: beside the checkout, or where TCGPU_PAPERS says."""
    folder = Path(os.environ.get("TCGPU_PAPERS", ROOT.parent / "shared" / "papers"))
    if not folder.is_dir():
        pytest.skip("no folder of the papers' texts beside the checkout; TCGPU_PAPERS names one")
    return folder


@pytest.fixture(scope="session")
def processor(root):
    """A `compiled.Processor`: this machine's own, which runs what is compiled of kernels for it."""
    import compiled

    if compiled.missing():
        pytest.skip(compiled.missing())
    folder = root / ".pytest_cache" / "kernels"
    folder.mkdir(parents=True, exist_ok=True)
    with compiled.Processor(folder) as processor:
        yield processor


@pytest.fixture
def large(processor):
    """Engine "sim" run by the processor, as if it were a large GPU."""
    import compiled

    with processor.instead_of_the_simulator(**compiled.LARGE):
        yield processor


@pytest.fixture
def compiled_kernels(request, monkeypatch):
    """As `large`, but in the simulator if there is no compiler; with --full in both ways.

    For tests of what kernels compute, not of the simulator. Constants of kernels that a test changes stay as they are.
    """
    import compiled

    how = getattr(request, "param", "simulated" if sampling.full else "compiled")
    if how == "compiled" and not compiled.missing():
        request.getfixturevalue("large")
        yield
    else:
        with runtime.using("sim"):
            facts = dataclasses.replace(runtime.facts(), **compiled.LARGE)
            monkeypatch.setattr(runtime.current(), "facts", lambda: facts)
            yield


@pytest.fixture
def compiled_if_simulated(request):
    """`compiled_kernels`, for the tests whose parameter `engine` is "sim"."""
    callspec = getattr(request.node, "callspec", None)
    if callspec and callspec.params.get("engine") == "sim":
        request.getfixturevalue("compiled_kernels")


@pytest.fixture
def own_rings():
    """Free the pinned memory that other tests have kept, and that this test keeps."""
    from tcgpu.engines import staging

    staging.end_rings()
    runtime.release_device_memory()
    yield
    staging.end_rings()
    runtime.release_device_memory()


@pytest.fixture(scope="session")
def servers(root, tmp_path_factory):
    """`chromium.Servers`: JupyterLab starts once."""
    from chromium import Servers

    with contextlib.ExitStack() as stack:
        yield Servers(root, tmp_path_factory.mktemp("jupyter"), stack)


@pytest.fixture
def lab(servers, chromium):
    """A `chromium.Lab`: JupyterLab or Voila over a copy of the notebooks, in a real browser."""
    from chromium import Lab

    with contextlib.ExitStack() as stack:
        yield Lab(servers, chromium, stack)


@pytest.fixture(scope="session")
def live_site(root, tmp_path_factory, request, chromium):
    """The folder of a site that has live notebooks, and only them; it is for all processes of a run."""
    import live

    base = tmp_path_factory.getbasetemp()
    shared = base.parent if hasattr(request.config, "workerinput") else base
    return live.built(root, request.config.cache.mkdir("pyodide"), shared / "live")


@pytest.fixture
def live(live_site, chromium):
    """A `live.Live`: a new browser, in which the live notebooks can be opened; all that they need is on the server."""
    from live import browsing, serving

    with serving(live_site) as address, browsing(address, chromium) as live:
        yield live
        assert live.errors == [] and live.elsewhere() == []


@pytest.fixture(scope="session")
def chromium():
    """Path of a Chromium to drive; tests that use it have the mark `browser`."""
    return browser()
