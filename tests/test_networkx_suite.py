"""NetworkX's own tests, with every function that this backend can run dispatched to it."""

import os
import re
import subprocess
import sys
from collections import Counter

from tcgpu import networkx_info

SUITES = [f"networkx.algorithms.tests.test_{name}" for name in ("cluster", "core", "triads")]


def test_networkx_own_tests_pass(root, tmp_path):
    log = tmp_path / "log"
    record = ["--log-file", log, "--log-file-level", "DEBUG", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", *record, "--pyargs", *SUITES],
        cwd=tmp_path,  # away from this repository's own settings of pytest
        env={**os.environ, "NETWORKX_TEST_BACKEND": "tcgpu", "NETWORKX_FALLBACK_TO_NX": "True"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    summary = done.stdout.splitlines()[-1]
    assert re.fullmatch(r"\d+ passed(, \d+ warnings?)? in .*", summary), summary  # warnings: of older matplotlibs

    calls = Counter(re.findall(r"Using backend 'tcgpu' for call to '(\w+)'", log.read_text()))
    assert set(calls) == set(networkx_info.FUNCTIONS)
    assert min(calls.values()) >= 5, calls
    assert "because: " not in log.read_text(), "a call was left to NetworkX"
