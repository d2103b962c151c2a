"""Every notebook in a browser with nothing installed, as a visitor of the site has it: see live.py.

Without --full only the first notebooks, the one with an own kernel, and the explorer.
"""

import nbformat
import pytest

import run

pytestmark = [pytest.mark.browser, pytest.mark.sim]
NOTEBOOKS = sorted(path.stem for path in run.HERE.glob("*.ipynb"))
ALWAYS = ("00", "01", "02", "03", "10", "explorer")


def outputs(notebook):
    """Of each code cell: its first line, and what strict nbval compares of its outputs."""
    run.keep_comparable(notebook)
    return [
        (cell.source.partition("\n")[0], run.compared(cell.outputs))
        for cell in notebook.cells
        if cell.cell_type == "code" and run.IGNORED not in cell.metadata.get("tags", [])
    ]


@pytest.mark.parametrize(
    "name", [name if name.startswith(ALWAYS) else pytest.param(name, marks=pytest.mark.full) for name in NOTEBOOKS]
)
def test_a_notebook_has_the_outputs_that_are_stored(live, root, name):
    path = root / "notebooks" / f"{name}.ipynb"
    found = outputs(live.run(live.open(path.name)))
    for this, stored in zip(found, outputs(nbformat.read(path, as_version=4)), strict=True):
        assert this == stored
    assert live.elsewhere() == []
