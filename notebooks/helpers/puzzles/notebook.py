"""Write the cells of the puzzles into notebooks/02_puzzles.ipynb; the text before and after them stays.

python notebooks/helpers/puzzles/notebook.py
"""

import sys
from pathlib import Path

import nbformat
from nbformat.v4 import new_code_cell, new_markdown_cell

NOTEBOOKS = Path(__file__).resolve().parents[2]
PATH = NOTEBOOKS / "02_puzzles.ipynb"
TAG = "puzzle"  # of the cells that are written here


def cells():
    """Two cells for each puzzle: its text with hints and solution, folded, and the kernel to fill in."""
    from helpers import puzzles

    found = []
    for number, name in enumerate(puzzles.NAMES, 1):
        title, text, hints = puzzles.text(name)
        solution = f"```python\n{puzzles.solution(name).rstrip()}\n```"
        folded = [*((f"Hint {k}", hint) for k, hint in enumerate(hints, 1)), ("Solution", solution)]
        parts = [f"<details><summary>{summary}</summary>\n\n{inside}\n\n</details>" for summary, inside in folded]
        source = "\n\n".join([f"## {number}. {title}", text, target(name), *parts])
        code = f'{puzzles.given(name)}\n\nprint(puzzles.verdict("{name}", {name}))'
        found.append(new_markdown_cell(source, metadata={"tags": [TAG]}))
        found.append(new_code_cell(code, metadata={"tags": ["exercise", TAG]}))
    return found


def target(name):
    """The target of a puzzle in a sentence."""
    from helpers import answers, puzzles

    most = [f"at most {value:,} {answers.MEASURES[what]}" for what, value in puzzles.module(name).TARGET.items()]
    return f"**Target:** right, no race, {', '.join(most)}.".replace("at most 0 ", "no ")


def write():
    notebook = nbformat.read(PATH, as_version=4)
    own = [k for k, cell in enumerate(notebook.cells) if TAG in cell.metadata.get("tags", [])]
    begin = own[0] if own else len(notebook.cells)
    rest = [cell for k, cell in enumerate(notebook.cells) if k >= begin and k not in own]
    notebook.cells = [*notebook.cells[:begin], *cells(), *rest]
    nbformat.write(notebook, PATH)


if __name__ == "__main__":
    sys.path.insert(0, str(NOTEBOOKS))
    write()
