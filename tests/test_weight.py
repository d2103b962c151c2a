"""tcgpu weighs no more than its budgets; see `weight.py`."""

import ast

import pytest
import weight

pytestmark = pytest.mark.full


def test_nothing_is_over_its_budget():
    found, limits = weight.measured(), weight.budgets()
    assert limits and limits.keys() <= found.keys()
    assert not [name for name, most in limits.items() if found[name] > most], "\n" + weight.table(found)


def test_a_circle_is_found_in_functions_and_texts_too():
    code = "import tcgpu.graph\ndef f():\n    from tcgpu.engines import choice\n    import_module('tcgpu.cpu.small')"
    assert [*weight.imports(ast.parse(code))] == ["tcgpu.graph", "tcgpu.engines.choice", "tcgpu.cpu.small"]
    assert not [*weight.imports(ast.parse("if TYPE_CHECKING:\n    import tcgpu.graph"))]


def test_numbers_of_capitals_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(weight, "PACKAGE", tmp_path)
    (tmp_path / "core.py").write_text("A, B = 3, (4, 2)\nC: int = 5\nd = 6\nE = 'text', 7.5\n")
    assert weight.constants(tmp_path / "core.py") == 4
