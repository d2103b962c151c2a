"""The benchmark of adaptive's classes: a row for each setting, of one count."""

import pytest

import tcgpu
from tcgpu.engines import runtime

pytestmark = pytest.mark.full


@pytest.mark.sim
def test_each_setting_has_a_row(load_benchmark):
    benchmark = load_benchmark("classes")
    u, v, n = benchmark.chung_lu(60, 300, 0.7, seed=1)
    assert u.max() < n and v.max() < n
    with runtime.using("sim"):
        rows = list(benchmark.measured("small", u, v, n, 1))
    assert len(rows) == len(benchmark.SETTINGS)
    assert {row["triangles"] for row in rows} == {tcgpu.count((u, v), "cpu")}
    assert (rows[0]["crowd"], rows[3]["crowd"]) == (512, benchmark.NONE)
