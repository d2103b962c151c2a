"""The files about the project: reviewed, valid against their schemas, spelt well. Nothing here needs a network."""

import subprocess
import sys
import sysconfig
import tomllib
from pathlib import Path

import pytest
import yaml
from repo_review.processor import process

pytestmark = pytest.mark.full
SCHEMAS = {
    "citation-file-format": "CITATION.cff",
    "dependabot": ".github/dependabot.yml",
    "github-issue-config": ".github/ISSUE_TEMPLATE/config.yml",
    "github-issue-forms": ".github/ISSUE_TEMPLATE/[!c]*.yml",
    "github-workflows": ".github/workflows/*.yml",
}
TEXTS = {".md", ".py", ".toml", ".yml", ".cff", ".c", ".js", ".css"}


def run(root, *command):
    """Run a command of this Python's environment in the checkout."""
    program = Path(sysconfig.get_path("scripts"), command[0])
    done = subprocess.run([program, *command[1:]], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_review_finds_nothing_but_what_pyproject_explains(root):
    failed = [f"{check.name}: {check.description}" for check in process(root).results if check.result is False]
    assert not failed
    assert all(tomllib.loads((root / "pyproject.toml").read_text())["tool"]["repo-review"]["ignore"].values())


@pytest.mark.parametrize("schema, pattern", SCHEMAS.items())
def test_files_for_the_code_host_are_valid(root, schema, pattern):
    files = sorted(path.relative_to(root) for path in root.glob(pattern))
    assert files
    run(root, "check-jsonschema", "--builtin-schema", f"vendor.{schema}", *files)


def test_the_workflow_gives_nothing_away(root):
    run(root, "zizmor", "--offline", "--no-progress", "--persona=pedantic", ".github")


def test_words_are_spelt_well(root):
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    names = [name for name in listed.stdout.split("\0") if Path(name).suffix in TEXTS]
    run(root, "codespell", *names)


def test_hooks_are_commands_of_this_environment(root):
    """Each hook runs a module of .venv, as `make test` does."""
    [repository] = yaml.safe_load((root / ".pre-commit-config.yaml").read_text())["repos"]
    assert repository["repo"] == "local"
    for hook in repository["hooks"]:
        python, option, module, *_ = hook["entry"].split()
        assert (python, option, hook["language"]) == (".venv/bin/python", "-m", "system")
        subprocess.run([sys.executable, "-m", module, "--version"], check=True, capture_output=True)
