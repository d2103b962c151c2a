"""`count(graph, approximate=...)`: intervals that hold the exact number as often as they say, and what they refuse."""

import copy
import json
import pickle
import subprocess
import sys
from functools import cache

import numpy as np
import pytest
from scipy.stats import nbinom

import tcgpu
from tcgpu.cpu import wedges
from tcgpu.cpu.neighbours import are_among

ERROR, SEEDS = 0.1, 300
RARE = 0.95 - 4 * (0.05 * 0.95 / SEEDS) ** 0.5  # a share so small is one in 30,000 if the true one is 0.95


def windmill(blades=3000):
    """Triangles that share one vertex. It comes first: few pairs of its rows are closed. If it is last, all are."""
    rim = np.arange(1, 2 * blades + 1)
    return np.append(np.zeros_like(rim), rim[::2]), np.append(rim, rim[1::2])


def cliques(number=40, size=20):
    u, v = np.triu_indices(size, 1)
    first = size * np.arange(number)[:, None]
    return (u + first).ravel(), (v + first).ravel()


GRAPHS = {
    "R-MAT": tcgpu.generate.rmat(11, seed=1),
    "R-MAT in degree order": tcgpu.generate.rmat(11, seed=1).ordered("degree"),
    "mesh": tcgpu.generate.mesh(50, 50),
    "roads": tcgpu.generate.road(70, 70, seed=2),
    "small world": tcgpu.generate.watts_strogatz(1500, 10, seed=3),
    "cliques": tcgpu.Graph.from_edges(*cliques()),
    "windmill, hub last": tcgpu.Graph.from_edges(*windmill()).ordered("degree"),
    "random": tcgpu.generate.random(300, 6000, seed=4),
}
EXACT = {name: tcgpu.count(graph) for name, graph in GRAPHS.items()}


@cache
def estimates(name):
    return [tcgpu.count(GRAPHS[name], approximate=ERROR, seed=seed, order="natural") for seed in range(SEEDS)]


@pytest.mark.parametrize("name", GRAPHS)
def test_intervals_hold_the_exact_number_as_often_as_they_say(name):
    found = estimates(name)
    assert not any(one.exact for one in found) and {one.confidence for one in found} == {0.95}
    held = np.mean([one.low <= EXACT[name] <= one.high for one in found])
    assert held >= RARE
    assert all(one.low <= one <= one.high and one.high * (1 - ERROR) <= one + 2 for one in found)
    off = np.array([abs(one - EXACT[name]) for one in found])
    assert np.mean(off <= ERROR * EXACT[name] + 1) >= RARE


def test_intervals_that_are_too_narrow_or_beside_the_number_would_be_noticed():
    """Where few wedges are closed, the intervals are no wider than they must be."""
    found, exact = np.array(estimates("random"), float), EXACT["random"]
    assert np.mean(abs(found - exact) <= 0.6 * ERROR * exact) < RARE
    assert np.mean(abs(1.06 * found - exact) <= ERROR * exact) < RARE


@pytest.mark.parametrize("name", GRAPHS)
def test_estimates_lean_to_no_side(name):
    found = np.array(estimates(name), float)
    assert abs(found.mean() / EXACT[name] - 1) < 4 * ERROR / 1.96 / SEEDS**0.5 + ERROR**2 / 2


@pytest.mark.parametrize("error", [0.001, 0.01, 0.05, 0.1, 0.3, 0.5, 0.7, 0.9, 0.999])
def test_the_confidence_is_that_of_the_distribution_of_the_draws(error):
    """For each share of closed wedges; and for small ones as few draws as that allows."""
    needed, scale = wedges.closed_wedges(error)
    for share in (1e-6, 1e-3, 0.03, 0.2, 0.5, 0.9, 0.999):
        least, most = np.ceil(scale / share / (1 + error)), np.floor(scale / share / (1 - error))
        confidence = nbinom.cdf(most - needed, needed, share) - nbinom.cdf(least - 1 - needed, needed, share)
        assert confidence > 0.94999, share
    assert error > 0.3 or needed <= (1.96 / error) ** 2


NOT_WORTH_IT = {
    "no vertices": tcgpu.generate.empty(0),
    "no edges": tcgpu.generate.empty(5),
    "a triangle": tcgpu.generate.clique(3),
    "no wedges": tcgpu.generate.star(5000).ordered("degree"),
    "a star": tcgpu.generate.star(5000),
    "no triangles": tcgpu.generate.grid(80, 80),
    "few triangles": tcgpu.generate.barabasi_albert(3000, 3, seed=1),
    "few edges": tcgpu.generate.clique(8),
    "windmill, hub first": tcgpu.Graph.from_edges(*windmill()),
}


@pytest.mark.parametrize("name", NOT_WORTH_IT)
def test_where_sampling_does_not_pay_the_count_is_exact(name):
    found, exact = tcgpu.count(NOT_WORTH_IT[name], approximate=ERROR), tcgpu.count(NOT_WORTH_IT[name])
    assert found == found.low == found.high == exact
    assert (found.exact, found.confidence, found.samples) == (True, 1.0, 0)
    assert repr(found) == f"<{exact:,} triangles: exact>"


def test_a_tiny_error_is_an_exact_count():
    for error in (1e-3, 1e-9, 5e-324):
        assert tcgpu.count(GRAPHS["mesh"], approximate=error).exact


def test_a_seed_makes_an_estimate():
    graph = GRAPHS["R-MAT"]
    first, again, other = (tcgpu.count(graph, approximate=np.float32(ERROR), seed=seed) for seed in (0, 0, 1))
    assert vars(first) == vars(again) and first == again == tcgpu.count(graph, approximate=float(np.float32(ERROR)))
    assert first != other


def test_it_is_an_int_that_keeps_its_interval():
    found = tcgpu.count(GRAPHS["R-MAT"], approximate=ERROR)
    assert isinstance(found, int) and type(found + 1) is int
    assert str(found) == f"{found}" == json.dumps(found) == f"{int(found)}"
    assert repr(found) == f"<{found:,} triangles: {found.low:,} to {found.high:,} with a confidence of 95%>"
    for same in (pickle.loads(pickle.dumps(found)), copy.deepcopy(found)):
        assert same == found and vars(same) == vars(found) and repr(same) == repr(found)
    assert np.isclose(
        tcgpu.transitivity(GRAPHS["R-MAT"], approximate=ERROR), tcgpu.transitivity(GRAPHS["R-MAT"]), rtol=0.2
    )


def test_every_kind_of_graph_is_taken(tmp_path):
    graph, exact = GRAPHS["R-MAT"], EXACT["R-MAT"]
    tcgpu.write(graph, tmp_path / "graph.mtx")
    for given in (tmp_path / "graph.mtx", graph.edges(), graph.to_scipy(), graph.to_networkx()):
        found = tcgpu.count(given, approximate=0.05)
        assert not found.exact and abs(found - exact) < 0.1 * exact


def test_degree_order_takes_fewer_draws_on_a_skewed_graph():
    graph = GRAPHS["R-MAT"]
    natural, by_degree = (tcgpu.count(graph, approximate=ERROR, order=order) for order in ("natural", "degree"))
    assert by_degree.samples < natural.samples / 2
    assert tcgpu.count(graph, approximate=ERROR).samples == natural.samples
    assert tcgpu.count(graph.edges(), approximate=ERROR).samples < natural.samples / 2  # sorted by degree at once


def test_progress_goes_from_nothing_to_all():
    seen = []
    graph = tcgpu.generate.rmat(15, seed=1)
    found = tcgpu.count(graph, approximate=0.02, progress=lambda done, total: seen.append(done / total))
    assert found.samples > 2 * wedges.DRAWS and len(seen) > 2 and seen == sorted(seen) and seen[-1] == 1


def test_nothing_is_compiled_for_it(tmp_path):
    tcgpu.write(tcgpu.generate.rmat(15, seed=1), tmp_path / "graph.npz")
    program = "import sys, tcgpu; print(tcgpu.count('graph.npz', approximate=.02).exact, 'numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "False"], done.stderr


@pytest.mark.parametrize(
    "options, says",
    [
        *[
            ({"approximate": wrong}, "approximate must be a relative error")
            for wrong in (0, 1, 2, -0.1, "x", True, [0.1])
        ],
        ({"approximate": float("nan")}, "above 0 and below 1, not nan"),
        ({"approximate": 0.1, "method": "naive"}, "leave method= out"),
        ({"approximate": 0.1, "engine": "sim"}, "leave engine= out"),
        ({"approximate": 0.1, "executor": "threads", "parts": 3}, "leave executor=, parts= out"),
        ({"approximate": 0.1, "device_memory": "1MB", "resume": "x"}, "leave device_memory=, resume= out"),
        ({"approximate": 0.1, "max_seconds": 3, "threads": 64}, "leave max_seconds=, threads= out"),
        ({"approximate": 0.1, "order": "degre"}, "did you mean 'degree'"),
        ({"approximate": 0.1, "seed": "x"}, "seed is a whole number from 0"),
        ({"approximate": 0.1, "seed": -1}, "seed is a whole number from 0"),
        ({"seed": 3}, "no knob 'seed'"),
    ],
)
def test_refusals_name_what_is_wrong(options, says):
    with pytest.raises(tcgpu.MethodError, match=says):
        tcgpu.count(GRAPHS["mesh"], **options)


def test_sorted_lists_are_searched():
    indices, random = np.array([1, 3, 4, 7, 8, 9]), np.random.default_rng(0)
    at = random.integers(0, 7, 2000)
    length = random.integers(0, 7 - at)
    wanted = random.integers(0, 11, 2000)
    expected = [w in indices[a : a + k] for a, k, w in zip(at, length, wanted, strict=True)]
    assert are_among(indices, at.copy(), length.copy(), wanted).tolist() == expected and any(expected)
