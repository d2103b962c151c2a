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


def shell(root, folder):
    """The environment of a shell in which `tcgpu` is the command of this Python and this checkout."""
    command = folder / "bin" / "tcgpu"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tcgpu "$@"\n')
    command.chmod(0o755)
    path = f"{command.parent}:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(root)}


def check_console(text, root, folder):
    """Run what stands behind $ in console blocks, in a folder, and compare; return how many commands there are."""
    environment = shell(root, folder)
    sessions = [re.split(r"^\$ ", block, flags=re.MULTILINE)[1:] for block in blocks(text, "console")]
    steps = [step.partition("\n")[::2] for session in sessions for step in session]
    for command, printed in steps:
        done = subprocess.run(command, shell=True, cwd=folder, env=environment, capture_output=True, text=True)
        assert (done.returncode, done.stdout) == (0, printed), f"{command}\n{done.stderr}"
    return len(steps)
