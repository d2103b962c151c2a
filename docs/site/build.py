"""Build the site: notebooks, README, docs/ and the reference as web pages, which need neither Python nor a network.

Every notebook is run, or those that are named, or with --stored none; of the others the pages show the stored outputs.
Steppers and traces are played by `tcgpu.player`. The pages are written by Sphinx with MyST-NB: its pages, and its
search, work when they are opened as files. (Jupyter Book 2 needs a server for both, MkDocs for its search.)

With --live the pages of the notebooks link to those that `live.py` builds, which a visitor runs in the browser.

    python docs/site/build.py [--into FOLDER] [--live] [--stored | NOTEBOOK ...]
"""

import argparse
import re
import shutil
import sys
import tempfile
from pathlib import Path

import nbformat
import networkx as nx
from docutils.utils.math import latex2mathml
from nbformat.v4 import new_markdown_cell
from sphinx.cmd.build import build_main

import tcgpu
from tcgpu.player import style
from tcgpu.registry import METHODS

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path[:0] = [str(ROOT / "docs" / "site"), str(ROOT / "notebooks")]

import players  # noqa: E402

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
INDEX = """\
---
myst:
  html_meta:
    generator: "tcgpu: docs/site/build.py"
---
# tcgpu

How do you count the triangles of a graph fast on a GPU? Notebooks answer with one kernel after another. An hour leads
through the core:

{path}

{live}
**The question of the hour:** `column_block` copies what its threads read into fast memory first, `naive` does not. On
the GPU of a report of 2019, a Tesla T4, the copy pays from about 7 nonzeros per column (edges over vertices) on. On an
H200 it does not. Why?

![How many times as fast column_block is as naive, against the nonzeros per column: estimated, measured, and published
on a T4](data/measured/sweep.svg)

## More

{more}

The package: [what it is](README.md), [quick start](docs/quick_start.md), [how to](docs/how_to.md), [all
methods](docs/methods.md), [measurements](docs/measured.md), [reference](reference.md), [glossary](docs/glossary.md),
[for teachers](docs/teaching.md).

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
# pages of docs/ in reading order; Sphinx warns of one that is not listed
GUIDES = (
    "quick_start how_to shell methods measured claims traces your_own_kernel simulator adaptive checks architecture "
    "extending compilers teaching"
).split()
PROJECT = ("README", "CHANGELOG", "CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY")
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
    for name in ("conf.py", "reference.md"):
        shutil.copy(ROOT / "docs" / "site" / name, folder)
    for page in (folder / "docs").glob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(text.replace("](site/reference.md)", "](../reference.md)"), encoding="utf-8")
    (folder / "static").mkdir()
    shutil.copy(ROOT / "docs" / "site" / "site.css", folder / "static")
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
    listed = {
        "path": [path],
        "more": [more],
        "notebooks": [f"notebooks/{name}" for name in names],
        "live": [live_link] if live else [],
        "guides": [*(f"docs/{name}" for name in GUIDES), "data/README", "data/published/README"],
    }
    (folder / "index.md").write_text(INDEX.format(**{key: "\n".join(lines) for key, lines in listed.items()}))
    add_traces(folder)


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
