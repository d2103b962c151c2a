"""Run the notebooks: `store` keeps their text outputs in place. (docs/site/build.py writes them as a site.)

Stored outputs are what strict nbval compares, so they hold text and execution counts, but no images and no widgets:
those differ from one machine to the next. The pages of the site show everything as this machine draws it.

A notebook ends with links to those before and after it, in the order in which the first one lists them.
Under its title a notebook links to Colab and Binder, and installs tcgpu where it is not: `store` writes
both from the address under [project.urls] in pyproject.toml, and neither while the project has no public one.

    python notebooks/run.py store [NOTEBOOK ...]
"""

import argparse
import re
import sys
import tomllib
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell

HERE = Path(__file__).resolve().parent
CELL_SECONDS = 300
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
ELSEWHERE = "elsewhere"  # the tag of the cells that are for other places than this one
CONTENTS = "00_start_here.ipynb"  # the notebook that lists all others, in reading order
FOOTER = "footer"  # the tag of the last cell
BADGES = (
    "[![Open in Colab](https://colab.research.google.com/assets/colab-badge.svg)]"
    "(https://colab.research.google.com/github/{owner}/blob/main/notebooks/{name}) "
    "[![Open in Binder](https://mybinder.org/badge_logo.svg)]"
    "(https://mybinder.org/v2/gh/{owner}/main?urlpath=lab/tree/notebooks/{name})"
)
INSTALL = """\
import importlib.util
import shutil

if importlib.util.find_spec("tcgpu") is None:  # on Colab
    cuda = "[cu12]" if shutil.which("nvidia-smi") else ""
    !git clone --quiet --depth 1 {repository} checkout
    %cd -q checkout/notebooks
    %pip install --quiet "..{{cuda}}"
"""


def address():
    """Where the repository is public, `https://github.com/OWNER/NAME`; None while it is not."""
    project = tomllib.loads((HERE.parent / "pyproject.toml").read_text())["project"]
    return project.get("urls", {}).get("Repository")


def elsewhere(name, repository):
    """The two cells by which the notebook of that name opens elsewhere; none without a public address."""
    if not repository:
        return []
    owner = repository.removeprefix("https://github.com/")
    badges, install = BADGES.format(owner=owner, name=name), INSTALL.format(repository=repository)
    tags = {"metadata": {"tags": [ELSEWHERE]}}
    return [new_markdown_cell(badges, id="badges", **tags), new_code_cell(install, id="install", **tags)]


def with_badges(notebook, name, repository):
    """Have the cells of `elsewhere`, and no others of their kind, follow the title."""
    own = [cell for cell in notebook.cells if ELSEWHERE not in cell.metadata.get("tags", [])]
    notebook.cells = [*own[:1], *elsewhere(name, repository), *own[1:]]


def reading_order():
    """The file names of all notebooks, in the order in which the first one lists them."""
    notebook = nbformat.read(HERE / CONTENTS, as_version=4)
    text = "\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [CONTENTS, *re.findall(r"^- \[[^]]+\]\((\w+\.ipynb)\)", text, re.MULTILINE)]


def with_footer(notebook, name):
    """Have links to the notebooks before and after this one, and to the contents, follow the last cell."""
    notebook.cells = [cell for cell in notebook.cells if FOOTER not in cell.metadata.get("tags", [])]
    order = reading_order()
    if name in order:
        at = order.index(name)
        near = {"Previous": order[at - 1 : at] if at else [], "Contents": [CONTENTS], "Next": order[at + 1 : at + 2]}
        links = (
            f"{what}: [{summary(nbformat.read(HERE / other, as_version=4))[0]}]({other})"
            for what, others in near.items()
            for other in others
        )
        text = "---\n\n" + " · ".join(links)
        notebook.cells.append(new_markdown_cell(text, id=FOOTER, metadata={"tags": [FOOTER]}))


def execute(notebook):
    """A notebook with every cell run, from the notebooks' folder."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    quiet = ["--IPKernelApp.log_level=ERROR"]  # a kernel of this machine warns of its unencrypted sockets
    place = {"metadata": {"path": str(HERE)}}
    NotebookClient(notebook, timeout=CELL_SECONDS, extra_arguments=quiet, resources=place).execute()
    return notebook


def keep_text(notebook):
    """Drop from an executed notebook what strict nbval cannot compare; execution counts and text stay."""
    from nbstripout import strip_output

    keys = ["metadata.widgets", "metadata.language_info", "cell.metadata.execution"]
    strip_output(notebook, keep_output=True, keep_count=True, keep_id=False, extra_keys=keys)
    notebook.metadata.kernelspec = KERNEL
    for output in (output for cell in notebook.cells for output in cell.get("outputs", [])):
        for kind in list(output.get("data", {})):
            if kind.startswith("image/") or "jupyter.widget" in kind:
                del output.data[kind]
        if "metadata" in output:
            output.metadata = {}


def store(path):
    """Run a notebook and write it back with its text outputs."""
    notebook = nbformat.read(path, as_version=4)
    with_badges(notebook, path.name, address())
    with_footer(notebook, path.name)
    notebook = execute(notebook)
    keep_text(notebook)
    nbformat.write(notebook, path)


def summary(notebook):
    """The first heading of a notebook and the first paragraph after it, as plain text."""
    text = "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    text = re.sub(r"[$`*]", "", text)
    _, _, text = f"\n{text}".partition("\n# ")
    heading, _, text = text.partition("\n")
    return heading.strip(), " ".join(text.strip().split("\n\n")[0].split())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["store"])
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: all")
    for path in parser.parse_args().notebooks or sorted(HERE.glob("*.ipynb")):
        print(f"store: {path.name}", file=sys.stderr, flush=True)
        store(path)


if __name__ == "__main__":
    main()
