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


def test_fitted_numbers_are_in_few_files():
    """What is fitted for `adaptive` is still beside its kernels."""
    found = {
        path.relative_to(weight.PACKAGE).as_posix() for path in weight.PACKAGE.rglob("*.py") if weight.fitted(path)
    }
    own = {"kernels/edge_sums.py", "kernels/device/merge.py"}
    assert {name for name in found if name not in own and not name.startswith("kernels/adaptive/")} == {*weight.COSTS}


def test_fitted_numbers_are_told_from_others(tmp_path, monkeypatch):
    """Thresholds, used here or elsewhere, and ratios; not limits, sizes, positions, or what is added to an index."""
    monkeypatch.setattr(weight, "PACKAGE", tmp_path)
    monkeypatch.setattr(weight, "ROOT", tmp_path)
    weight.compared.cache_clear()
    (tmp_path / "numbers.py").write_text(
        "FEW, AHEAD, CHUNK = 9, 8, 7\nSHARE = 0.5\nMOST_ROWS = 5\nEND, LAST = range(3, 5)\nKEPT: int = 6\nLARGE = 4\n"
    )
    (tmp_path / "users.py").write_text(
        "import numbers\nfrom numbers import FEW, AHEAD, CHUNK, MOST_ROWS, END, LARGE\nimport math as m\n"
        "def f(x, k):\n    if x < FEW and x[END] > k + AHEAD or x > MOST_ROWS:\n        return x + CHUNK\n"
        "    if x > LARGE:\n        raise ValueError\n"
    )
    assert weight.fitted(tmp_path / "numbers.py") == {"FEW": 3, "SHARE": 1}
    assert not weight.fitted(tmp_path / "users.py")
    weight.compared.cache_clear()
