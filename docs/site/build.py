"""Build the site: notebooks, README, docs/ and the reference as web pages, which need neither Python nor a network.

Every notebook is run, or those that are named, or with --stored none; of the others the pages show the stored outputs.
Steppers and traces are played by `tcgpu.player`. The pages are written by Sphinx with MyST-NB: its pages, and its
search, work when they are opened as files. (Jupyter Book 2 needs a server for both, MkDocs for its search.)

With --live the pages of the notebooks link to those that `live.py` builds, which a visitor runs in the browser.

Each part of `reference.md` becomes a page, and so does the help of the command line.

    python docs/site/build.py [--into FOLDER] [--live] [--stored | NOTEBOOK ...]
"""

import argparse
import os
import re
import shutil
import sys
import tempfile
from importlib import import_module
from pathlib import Path

import nbformat
import networkx as nx
from docutils.utils.math import latex2mathml
from nbformat.v4 import new_markdown_cell
from sphinx.cmd.build import build_main

import tcgpu
from tcgpu.__main__ import _parser
from tcgpu.player import style
from tcgpu.records import Rows, gpu_of
from tcgpu.registry import METHODS

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / part) for part in ("docs/site", "notebooks", "benchmarks")]

import players  # noqa: E402
import verdict_page  # noqa: E402

from helpers import run  # noqa: E402

MADE = 'content="tcgpu: docs/site/build.py"'  # of the generator of index.html
WIDGET, STATE = "application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json"
FORMULA = re.compile(r"\$([^$<\s](?:[^$<]*[^$<\s])?)\$")
NO_PANEL = (
    '<p class="needs-python"><em>Here is a panel that runs kernels: it works where Python does, in Jupyter.</em></p>'
)
LIVE = """\
<a class="live" href="{to}live/lab/index.html?path={name}.ipynb">{words}</a>: change and run {what}. Nothing is
installed; Python takes about 20 seconds to start.
"""
TO_READ = """\
<a class="live" href="notebooks/{name}.html">Try it now</a>: read the first notebook. This copy of the site has no live
notebooks; `make site` builds one that has them.
"""
INDEX = """\
---
myst:
  html_meta:
    generator: "tcgpu: docs/site/build.py"
---
# tcgpu

How do you count the triangles of a graph fast on a GPU? And why is one kernel faster than another? Notebooks answer
with one kernel after another; a Python package counts, exactly, on GPUs and CPUs. You do not need a GPU.

{live}

![How many times as fast column_block is as naive, against the nonzeros per column: estimated, measured, and published
on a T4](data/measured/sweep.svg)

**The question of the first hour:** `column_block` copies what its threads read into fast memory first, `naive` does
not. On the GPU of a report of 2019, a Tesla T4, the copy pays from about 7 nonzeros per column (edges over vertices)
on. On an H200 it does not. Why?

## Install, and count

In the folder of the checkout, with Python 3.11 or newer:

```sh
pip install .            # counts, traces, estimates; the command tcgpu
pip install '.[lab]'     # and JupyterLab, widgets and pictures, for the notebooks
```

```python
{count}```

[The quick start](docs/quick_start.md) goes on from here, with graphs and files of yours, and with GPUs.

## The first hour

{path}

## More notebooks

{more}

## Guides, and where to look things up

{tasks}

[The reference](reference.md) has every function with an example, [the command line](commands.md) every option of
`tcgpu`, and [the glossary](docs/glossary.md) every term. [For teachers](docs/teaching.md) there are plans.

```{{toctree}}
:caption: Notebooks
:hidden:

{notebooks}
```

```{{toctree}}
:caption: Guides
:hidden:

The package <README>
{guides}
traces
```

```{{toctree}}
:caption: Reference
:hidden:

reference
commands
docs/glossary
```

```{{toctree}}
:caption: Project
:hidden:

CHANGELOG
CONTRIBUTING
CODE_OF_CONDUCT
SECURITY
```
"""
# pages of docs/ in reading order; all others follow
GUIDES = (
    "quick_start how_to shell methods measured claims reproduce traces your_own_kernel simulator adaptive checks "
    "architecture extending compilers teaching"
).split()
DATA = ("data/README", "data/published/README")
FIRST_CODE = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TASKS = re.compile(r"^## Read on\n\n((?:\|.*\n)+)", re.MULTILINE)  # the table of the README
NAMED = re.compile(r"^\.\. auto(?:function|class|exception):: tcgpu\.(?:\w+\.)*(\w+)$", re.MULTILINE)
MODULE = re.compile(r"^\.\. automodule:: (\S+)$", re.MULTILINE)
PROJECT = ("README", "CHANGELOG", "CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY")
COMMANDS = """\
# The command line

What `tcgpu --help` and `tcgpu COMMAND --help` print. Examples are in [{words}]({guide}).

"""
TRACES = """\
# Traces of all kernels

A trace records what each warp of a kernel does, and every address that it asks for. These are traces of Zachary's
karate club: pick a warp, and step through its kernel with the arrow keys.

"""


def lay_out(folder, notebooks, live):
    """Make the folder that Sphinx reads: as the checkout, so that links hold.

    notebooks: paths of those to run. live: whether there are live ones, to link to.
    """
    for part in ("data", "tcgpu", "notebooks", "benchmarks", "docs"):
        shutil.copytree(ROOT / part, folder / part, ignore=shutil.ignore_patterns("__pycache__", "*.ipynb", "site"))
    for name in (*(f"{page}.md" for page in PROJECT), "CITATION.cff", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    shutil.copy(ROOT / "docs" / "site" / "conf.py", folder)
    for page in (folder / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("](site/reference.md)", "](../reference.md)"), encoding="utf-8")
    (folder / "static").mkdir()
    for name in ("site.css", "search.js"):
        shutil.copy(ROOT / "docs" / "site" / name, folder / "static")
    (folder / "static" / "player.css").write_text(style())
    (folder / "static" / "player.js").write_text(players.code())
    for path in sorted(run.HERE.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        if path in notebooks:
            print(f"run: {path.name}", file=sys.stderr, flush=True)
            notebook = run.execute(notebook)
        notebook.cells = [cell for cell in notebook.cells if run.FOOTER not in cell.metadata.get("tags", [])]
        make_playable(notebook)
        if live:
            link = LIVE.format(to="../", name=path.stem, words="Open live", what="this notebook")
            notebook.cells.insert(1, new_markdown_cell(link))
        nbformat.write(notebook, folder / "notebooks" / path.name)
    names = [Path(name).stem for name in run.reading_order()]
    path, more = (re.sub(r"\]\((\w+\.ipynb)\)", r"](notebooks/\1)", cell.source) for cell in run.contents())
    live_link = LIVE.format(to="", name=names[0], words="Try it now in your browser", what="the notebooks")
    there = {page.stem for page in (folder / "docs").glob("*.md")} - {"glossary"}
    guides = [name for name in GUIDES if name in there]
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    listed = {
        "path": [path],
        "more": [more],
        "notebooks": [f"notebooks/{name}" for name in names],
        "live": [live_link if live else TO_READ.format(name=names[0])],
        "count": [FIRST_CODE.search(readme)[1]],
        "tasks": [TASKS.search(readme)[1]],
        "guides": [*(f"docs/{name}" for name in (*guides, *sorted(there - set(guides)))), *DATA],
    }
    (folder / "index.md").write_text(INDEX.format(**{key: "\n".join(lines) for key, lines in listed.items()}))
    add_reference(folder)
    add_commands(folder)
    add_traces(folder)
    add_reproduced(folder, sorted((ROOT / "data").glob("reproduced/*.csv")))


def make_playable(notebook):
    """Have small pictures, their texts as alternatives, players in place of widgets, and MathML in tables."""
    widgets = notebook.metadata.pop("widgets", {}).get(STATE, {}).get("state", {})
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                data["image/png"] = run.smaller(data["image/png"])
            if WIDGET in data:
                recording = widgets[data.pop(WIDGET)["model_id"]]["state"].get("recording")
                picture = data.pop("image/png", None)
                data["text/html"] = players.part(recording, picture) if recording else NO_PANEL
            elif "text/html" in data:
                data["text/html"] = FORMULA.sub(lambda found: latex2mathml.tex2mathml(found[1]), data["text/html"])
            elif "image/png" in data:
                cell.metadata.mystnb = {"image": {"alt": data["text/plain"]}}


def add_reference(folder):
    """Add a page for each part of the reference, and one that lists them with the names that they explain."""
    begin, *parts = re.split(r"^## ", (ROOT / "docs" / "site" / "reference.md").read_text(encoding="utf-8"), flags=re.M)
    (folder / "reference").mkdir()
    listed, pages = "", ""
    for part in parts:
        title, _, text = part.partition("\n")
        page = "reference/" + re.sub(r"\W+", "_", title.lower().replace("`tcgpu.", "")).strip("_")
        (folder / f"{page}.md").write_text(f"# {title}\n{text}", encoding="utf-8")
        names = ", ".join(f"`{name}`" for name in NAMED.findall(text))
        listed += (
            f"| [{title}]({page}.md) | {names or import_module(MODULE.search(text)[1]).__doc__.splitlines()[0]} |\n"
        )
        pages += f"{page}\n"
    table = f"| page | what it explains |\n|---|---|\n{listed}"
    (folder / "reference.md").write_text(
        f"{begin}\n{table}\n```{{toctree}}\n:hidden:\n\n{pages}```\n", encoding="utf-8"
    )


def add_commands(folder):
    """Add a page with the help of the command line."""
    os.environ["COLUMNS"] = "100"  # how wide argparse writes
    parser = _parser()
    commands = {"tcgpu": parser} | {f"tcgpu {name}": one for name, one in parser.commands.choices.items()}
    helps = (f"## `{name}`\n\n```text\n{one.format_help()}```\n" for name, one in commands.items())
    guides = {"docs/shell.md": "the guide to the shell", "docs/quick_start.md#in-the-shell": "the quick start"}
    guide = next(name for name in guides if (ROOT / name.partition("#")[0]).exists())
    text = COMMANDS.format(words=guides[guide], guide=guide) + "\n".join(helps)
    (folder / "commands.md").write_text(text, encoding="utf-8")


def add_traces(folder):
    """Add a page for the trace of each method, and one that lists them."""
    methods = [name for name, method in METHODS.items() if "sim" in method.engines]
    club = tcgpu.Graph.from_networkx(nx.karate_club_graph(), name="karate club")
    pages = folder / "extra" / "traces"
    pages.mkdir(parents=True)
    text = TRACES
    for name, trace in zip(methods, tcgpu.trace(club, methods), strict=True):
        trace.save_page(pages / f"{name}.html")
        text += f'- <a href="traces/{name}.html">{name}</a>\n'
    (folder / "traces.md").write_text(text)


def add_reproduced(folder, records):
    """Add the page of each record that `make reproduce` made on a machine, and a list of them to its guide."""
    pages = folder / "extra" / "reproduced"
    pages.mkdir(parents=True)
    text = "\n## Machines\n\n" if records else ""
    for path in records:
        rows = Rows.read_csv(path)
        verdict_page.write(rows, pages / f"{path.stem}.html")
        text += f'- <a href="../reproduced/{path.stem}.html">{gpu_of(rows[0])}</a>, {rows[0]["date"]}\n'
    guide = folder / "docs" / "reproduce.md"
    guide.write_text(guide.read_text(encoding="utf-8") + text, encoding="utf-8")


def check_own(folder):
    """End unless the folder has no pages, or its index shows that this script, or the one before it, wrote them."""
    index = folder / "index.html"
    if index.exists():
        found = index.read_text(encoding="utf-8", errors="replace")
        if MADE not in found and 'content="tcgpu: notebooks/run.py report"' not in found:
            sys.exit(f"{index} is not an index of these pages; it is left as it is")
    elif any(folder.glob("*.html")):
        sys.exit(f"{folder} holds pages that this script did not write; they are left as they are")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", type=Path, metavar="NOTEBOOK", help="run only these; default: all")
    parser.add_argument("--stored", action="store_true", help="run none")
    parser.add_argument("--live", action="store_true", help="link to live notebooks")
    parser.add_argument("--into", type=Path, default=ROOT / "report", metavar="FOLDER", help="default: report")
    options = parser.parse_intermixed_args()
    chosen = [path.resolve() for path in options.notebooks]
    every = sorted(run.HERE.glob("*.ipynb"))
    if not set(chosen) <= set(every):
        parser.error(f"a NOTEBOOK is one of {run.HERE}")
    check_own(options.into)
    with tempfile.TemporaryDirectory() as folder:
        source, pages, doctrees = (Path(folder, name) for name in ("source", "pages", "doctrees"))
        source.mkdir()
        lay_out(source, [] if options.stored else chosen or every, options.live)
        code = build_main(["-q", "-W", "--keep-going", "-d", str(doctrees), str(source), str(pages)])
        if code:
            sys.exit(code)
        for source_map in pages.rglob("*.map"):
            source_map.unlink()
        shutil.copytree(pages, options.into, dirs_exist_ok=True)  # MyST-NB leaves a folder beside the pages
    print(options.into / "index.html")


if __name__ == "__main__":
    main()
