"""What every test may ask for, and the rule that holds them all: a skip says why.

Numba decides at import whether `numba.cuda` is the simulator, so a process runs kernels of one kind only. `make test`
starts one process for each kind (tests/suite.py); in any other process such a test skips and says what would run it.
"""

import ctypes
import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)


def simulating():
    """Whether this process was started with Numba's CUDA simulator."""
    return os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0")


def gpus():
    """How many NVIDIA GPUs the driver reports, 0 without one; asked without importing what would choose an engine."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    ok = driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
    return count.value if ok else 0


def browser():
    """Path of the first Chromium found, or None."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


def pytest_collection_modifyitems(items):
    """Skip, with the reason, the tests that this process cannot run."""
    cannot = {
        "sim": not simulating() and "needs a process with NUMBA_ENABLE_CUDASIM=1",
        "ptx": simulating() and "needs a process without the simulator",
        "gpu": (simulating() and "needs a process without the simulator")
        or (not gpus() and "no NVIDIA GPU on this machine"),
        "browser": not browser() and "no Chromium on this machine",
    }
    for item in items:
        for kind, reason in cannot.items():
            if reason and item.get_closest_marker(kind):
                item.add_marker(pytest.mark.skip(reason=reason))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    """A skip without a reason is a failure."""
    report = yield
    if report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2].removeprefix("Skipped:").strip()
        if reason in ("", "unconditional skip"):
            report.outcome = "failed"
            report.longrepr = f"{item.nodeid} skips without saying why"
    return report


@pytest.fixture(scope="session")
def root():
    """The top folder of the checkout."""
    return ROOT


@pytest.fixture(scope="session")
def graphs_folder():
    """The folder of well-known graphs with INDEX.tsv, their counts: beside the checkout, or where TCGPU_GRAPHS says."""
    folder = Path(os.environ.get("TCGPU_GRAPHS", ROOT.parent / "shared" / "graphs"))
    if not (folder / "INDEX.tsv").is_file():
        pytest.skip("no folder of well-known graphs beside the checkout; TCGPU_GRAPHS names one")
    return folder


@pytest.fixture(scope="session")
def chromium():
    """Path of a Chromium to drive; tests that ask for it carry the mark `browser`."""
    return browser()
