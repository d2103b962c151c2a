"""Large graphs drawn on a device have the same edges as those of `tcgpu.generate`."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tcgpu import generate
from tcgpu.declarations import CUDA
from tcgpu.engines import runtime

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))
import large

pytestmark = pytest.mark.full


@pytest.mark.parametrize("engine", [pytest.param(name, marks=getattr(pytest.mark, name)) for name in CUDA])
@pytest.mark.parametrize("scale, seed", [(5, 0), (6, 3)])
def test_edges_are_those_of_generate(scale, seed, engine):
    with runtime.using(engine):
        drawn, parts = large.draw(scale, seed), [large.draw(scale, seed, part, 3) for part in range(3)]
    edges = generate.edges("rmat", scale, seed=seed)[:2]
    for found, in_parts, expected in zip(drawn, zip(*parts, strict=True), edges, strict=True):
        assert np.array_equal(runtime.to_host(found), expected)
        assert np.array_equal(np.concatenate([runtime.to_host(part) for part in in_parts]), expected)
