"""The benchmark that leaves out one idea of `adaptive` at a time."""

import pytest

import tcgpu
from tcgpu import generate, records
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.mark.sim
def test_each_idea_that_changes_the_launches_has_a_row(load_benchmark):
    benchmark = load_benchmark("ablation")
    u, v, n = generate.edges("rmat", 6, 6)
    with runtime.using("sim"):
        rows = list(benchmark.measured("small", (u, v, n), 1))
    assert {row["triangles"] for row in rows} == {tcgpu.count((u, v), "cpu")}
    for result in benchmark.PLANS:
        first, *others = (row for row in rows if row["result"] == result)
        assert first["without"] == "" and first["ratio"] == 1
        assert {f"{first['order']} order"} <= {row["without"] for row in others} and len(others) > 1


def test_no_idea_is_left_that_pays_on_no_kind_of_graph():
    """In the median of the sizes of some kind it is 3 % slower without it; without searches, if another order is asked
    for than the one that suits."""
    ratios = {}
    for row in records.reference("ablation"):
        kind = row["graph"].rpartition(", ")[0]
        ratios.setdefault(row["without"], {}).setdefault(kind, []).append(row["ratio"])
    del ratios[""], ratios["three quarters of the hubs"], ratios["searches"]
    for idea, of_kinds in ratios.items():
        assert max(sorted(each)[len(each) // 2] for each in of_kinds.values()) > 1.03, idea
