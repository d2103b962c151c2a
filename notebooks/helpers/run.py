"""Run the notebooks: `store` keeps their outputs in place. (docs/site/build.py writes them as a site.)

Stored outputs are text, which strict nbval compares, and pictures, which it skips: they differ from one machine to the
next. The text of a picture says what it draws. There are no widgets: their stored form is a picture and a text, too.

A JupyterLab that `make lab` opens saves the notebooks of this folder in the same form (`keep_stored`). Where an output
differs from the stored one only in what differs between machines, the stored one stays; so does that of a cell that was
not run. So to open and run a notebook changes nothing in the checkout.

A notebook ends with links to those before and after it, in the order in which the first one lists them.
Under its title a notebook links to Colab and Binder, and installs tcgpu where it is not: `store` writes
both from the address under [project.urls] in pyproject.toml, and neither while the project has no public one.

    python notebooks/helpers/run.py store [NOTEBOOK ...]
"""

import argparse
import base64
import io
import os
import re
import sys
import tomllib
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_markdown_cell

HERE = Path(__file__).resolve().parent.parent
CELL_SECONDS = 300
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
IGNORED = "nbval-ignore-output"  # the tag of the cells whose outputs nbval does not compare: times of this machine
ELSEWHERE = "elsewhere"  # the tag of the cells that are for other places than this one
CONTENTS = "00_start_here.ipynb"  # the notebook that lists all others, in reading order
LISTS = "contents"  # the tag of its cells that do
FOOTER = "footer"  # the tag of the last cell
FOLD = "answers.fold("  # how a cell begins whose outputs are an answer
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
    %pip install --quiet "..{{cuda}}" anywidget ipywidgets matplotlib scipy
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


def contents():
    """The cells of the first notebook that list all: the path of one hour, and more."""
    return [
        cell for cell in nbformat.read(HERE / CONTENTS, as_version=4).cells if LISTS in cell.metadata.get("tags", [])
    ]


def reading_order():
    """The file names of all notebooks, in the order in which the first one lists them."""
    return [name for cell in contents() for name in re.findall(r"\]\((\w+\.ipynb)\)", cell.source)]


def with_footer(notebook, name):
    """Have links to the notebooks before and after this one, and to the contents, follow the last cell."""
    notebook.cells = [cell for cell in notebook.cells if FOOTER not in cell.metadata.get("tags", [])]
    order = reading_order()
    if name in order:
        at = order.index(name)
        near = {"Previous": order[at - 1 : at] if at else [], "Contents": [CONTENTS], "Next": order[at + 1 : at + 2]}
        links = (f"{what}: [{title(other)}]({other})" for what, others in near.items() for other in others)
        text = "---\n\n" + " · ".join(links)
        notebook.cells.append(new_markdown_cell(text, id=FOOTER, metadata={"tags": [FOOTER]}))


def execute(notebook):
    """A notebook with every cell run, from the notebooks' folder."""
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    quiet = ["--IPKernelApp.log_level=ERROR"]  # a kernel of this machine warns of its unencrypted sockets
    place = {"metadata": {"path": str(HERE)}}
    # on a machine without compiled code, tcgpu would say that it compiles
    environment = os.environ | {"TCGPU_QUIET": "1"}
    NotebookClient(notebook, timeout=CELL_SECONDS, extra_arguments=quiet, resources=place).execute(env=environment)
    return notebook


def keep_comparable(notebook):
    """Drop from an executed notebook what differs between runs; execution counts, text and small pictures stay."""
    notebook.metadata = nbformat.NotebookNode(kernelspec=KERNEL)
    for number, cell in enumerate(notebook.cells):
        cell.id = str(number)
        cell.metadata = nbformat.from_dict({key: value for key, value in cell.metadata.items() if key == "tags"})
        if cell.cell_type == "code":
            cell.outputs = joined(cell.outputs)
            if cell.source.startswith(FOLD):  # JupyterLab hides them until it runs the cell, which folds them itself
                cell.metadata["jupyter"] = nbformat.NotebookNode(outputs_hidden=True)
        for output in cell.get("outputs", []):
            if "metadata" in output:
                output.metadata = nbformat.NotebookNode()
            for kind in list(output.get("data", {})):
                if "jupyter.widget" in kind:
                    del output.data[kind]
                elif kind == "image/png":
                    output.data[kind] = smaller(output.data[kind])


def joined(outputs):
    """Outputs whose neighbouring pieces of a stream are one: how many there are depends on how busy the machine is."""
    found = []
    for output in outputs:
        if found and output.output_type == "stream" and output.get("name") == found[-1].get("name"):
            found[-1].text += output.text
        else:
            found.append(output)
    return found


def smaller(png):
    """A picture, a PNG in base64, with a palette of 256 colours and without metadata."""
    from PIL import Image

    memory = io.BytesIO()
    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        image.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(memory, "png", optimize=True)
    return base64.b64encode(memory.getvalue()).decode() + "\n"


def keep_stored(model, path, contents_manager, **_):
    """Before JupyterLab saves: have a notebook of this folder in its stored form; see the top of this file."""
    file = Path(contents_manager._get_os_path(path))
    if model["type"] != "notebook" or file.resolve().parent != HERE or not file.exists():
        return
    notebook = nbformat.from_dict(model["content"])
    keep_comparable(notebook)
    stored = {cell.source: cell for cell in nbformat.read(file, as_version=4).cells if cell.cell_type == "code"}
    for cell in notebook.cells:
        before = stored.get(cell.source)
        if before and before.execution_count and cell.cell_type == "code":
            not_run = cell.execution_count is None
            ignored = IGNORED in cell.metadata.get("tags", []) and cell.outputs
            if not_run or ignored or compared(cell.outputs) == compared(before.outputs):
                cell.outputs, cell.execution_count = before.outputs, before.execution_count
    model["content"] = notebook


def compared(outputs):
    """What strict nbval compares of outputs; texts that a stream has in pieces are put together."""
    found = []
    for output in outputs:
        if output.output_type == "stream":
            before = found.pop()[1] if found and found[-1][0] == output.name else ""
            found.append((output.name, before + output.text))
        else:
            data = {kind: value for kind, value in output.get("data", {}).items() if not kind.startswith("image/")}
            found.append((output.output_type, data or output.get("ename")))
    return found


def store(path):
    """Run a notebook and write it back with its text outputs."""
    notebook = nbformat.read(path, as_version=4)
    with_badges(notebook, path.name, address())
    with_footer(notebook, path.name)
    notebook = execute(notebook)
    keep_comparable(notebook)
    nbformat.write(notebook, path)


def title(name):
    """The first heading of a notebook."""
    return nbformat.read(HERE / name, as_version=4).cells[0].source.partition("\n")[0].removeprefix("# ")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["store"])
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="default: all")
    for path in parser.parse_args().notebooks or sorted(HERE.glob("*.ipynb")):
        print(f"store: {path.name}", file=sys.stderr, flush=True)
        store(path)


if __name__ == "__main__":
    main()
