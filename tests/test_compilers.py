"""docs/compilers.md shows the record of both compilers, and its verdict is that of the record."""

import pytest
from test_readme import as_table, cells

from tcgpu import records

pytestmark = pytest.mark.full
DECIDING = ("naive", "bitmap", "warp_search", "adaptive")
GRAPHS = ("rmat 16", "rmat 18", "mesh 1024", "by_nonzeros 1M")
LIMIT = 1.1


@pytest.fixture(scope="module")
def page(root):
    return (root / "docs" / "compilers.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def whole():
    """The rows of whole methods."""
    return [row for row in records.reference("compilers") if row["kernel"] == "all"]


def ratio(rows, method, graph, workarounds):
    (found,) = (row for row in rows if (row["method"], row["graph"]) == (method, graph)
                and row["workarounds"] == str(workarounds))  # fmt: skip
    return "failed" if found["error"] else f"{found['ratio']:.3f}"


def tables(page):
    """The tables of a page, as lists of rows."""
    return [cells(part.splitlines()) for part in page.split("\n\n") if part.startswith("| ")]


def test_the_verdict_is_that_of_the_record(page, whole):
    expected = [["method", *GRAPHS, "rmat 16, as it is"]]
    expected += [
        [f"`{name}`", *(ratio(whole, name, graph, True) for graph in GRAPHS), ratio(whole, name, GRAPHS[0], False)]
        for name in DECIDING
    ]
    assert expected in tables(page), f"the table should be\n{as_table(expected)}"
    times = {(row["method"], row["graph"]): row["ratio"] for row in whole if row["workarounds"] == "True"}
    slower = {name for name in DECIDING if any(times[name, graph] > LIMIT for graph in GRAPHS)}
    within = [f"`{name}` on {graph}" for name in DECIDING for graph in GRAPHS if times[name, graph] <= LIMIT]
    assert slower == set(DECIDING)
    assert f"{len(within)} of these {len(DECIDING) * len(GRAPHS)} are at most 1.1" in page
    assert "tcgpu does not use numba-cuda-mlir" in page


def test_the_table_of_methods_is_the_record(page, whole):
    expected = [["method", "graph", "numba-cuda ms", "numba-cuda-mlir ms", "ratio", "equal", "compile s"]]
    for row in whole:
        if row["workarounds"] == "True" and not row["error"]:
            times = [f"{row[key]:.3g}" for key in ("numba_cuda_ms", "mlir_ms")]
            compiled = " / ".join(f"{row[key]:.2f}" for key in ("numba_cuda_compile_s", "mlir_compile_s"))
            equal = "yes" if row["equal"] == "True" else "no"
            expected.append([row["method"], row["graph"], *times, f"{row['ratio']:.3f}", equal, compiled])
    assert expected in tables(page), f"the table should be\n{as_table(expected)}"


def test_what_failed_is_what_the_record_has(page, whole):
    failed = {(row["method"], row["workarounds"], row["error"].rpartition(" ")[2]) for row in whole if row["error"]}
    assert failed == {
        ("4-cycles", "True", "CUDA_ERROR_INVALID_VALUE"), ("adaptive", "False", "CUDA_ERROR_ILLEGAL_ADDRESS")
    }  # fmt: skip
    assert all(f"`{error}`" in page for *_, error in failed)
    assert all(row["equal"] == "True" for row in records.reference("compilers") if not row["error"])


def test_the_page_names_the_record_and_its_machine(page):
    first = records.reference("compilers")[0]
    said = " ".join(page.split())
    assert "](../data/measured/compilers-nvidia-h200.csv)" in said
    facts = [first["gpu_name"], first["date"], first["gpu_driver"], first["tcgpu"].split()[1][:7]]
    facts += [f"numba-cuda {first['gpu_numba_cuda']}", f"numba-cuda-mlir {first['gpu_numba_cuda_mlir']}"]
    assert [fact for fact in facts if str(fact) not in said] == []


def test_ratios_are_those_of_the_times():
    for row in records.reference("compilers"):
        if not row["error"]:
            rounding = 0.0006 + 0.00006 * (1 + row["ratio"]) / row["numba_cuda_ms"]
            assert row["ratio"] == pytest.approx(row["mlir_ms"] / row["numba_cuda_ms"], abs=rounding)
