"""Run the examples of a page: README, a guide, the reference."""

import doctest
import os
import re
import subprocess
import sys

FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
FLAGS = doctest.ELLIPSIS | doctest.REPORT_NDIFF


def blocks(text, language):
    """The fenced blocks of a language, in order."""
    return [body for found, body in FENCE.findall(text) if found == language]


def check_python(text, name):
    """Run what stands behind >>>, in order, and compare what it prints; return how many examples there are."""
    parsed = doctest.DocTestParser().get_doctest(re.sub(r"^```.*$", "", text, flags=re.MULTILINE), {}, name, name, 0)
    assert doctest.DocTestRunner(optionflags=FLAGS).run(parsed).failed == 0
    return len(parsed.examples)


def check_console(text, root, folder):
    """Run what stands behind $ in console blocks, in a folder, and compare; `tcgpu` is the command of this Python.

    Returns how many commands there are. Of a printed line `...`, anything may stand in its place.
    """
    command = folder / "bin" / "tcgpu"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tcgpu "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(root)}
    sessions = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in blocks(text, "console")]
    steps = [step.partition("\n")[::2] for session in sessions for step in session]
    for command, expected in steps:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        pattern = re.escape(expected).replace(r"\.\.\.", ".*")
        assert done.returncode == 0 and re.fullmatch(pattern, done.stdout, re.DOTALL), (
            f"{command}\n{done.stdout}{done.stderr}"
        )
    return len(steps)
