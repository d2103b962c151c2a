"""Costs computed from the columns are exactly those of the kernels in the simulator."""

import networkx as nx
import numpy as np
import pytest

import tcgpu
from helpers import costs
from tcgpu.engines import runtime
from tcgpu.kernels.report import bitmap, column_block, naive

CLUB = tcgpu.Graph.from_networkx(nx.karate_club_graph())
RMAT = tcgpu.generate.rmat(7, 8, seed=3)


class Counted(np.ndarray):
    """An array that counts how often a single element is read."""

    def __getitem__(self, place):
        self.reads = getattr(self, "reads", 0) + 1
        return super().__getitem__(place)


def reads(plan, name):
    """How often the counting kernels read the array `name` of a plan, simulated."""
    with runtime.using("sim"):
        run = plan.allocate()
        counted = run.arrays[name] = run.arrays[name].view(Counted)
        run.launch()
    return counted.reads


@pytest.mark.sim
@pytest.mark.parametrize("graph", [CLUB, RMAT, CLUB.ordered("degree")], ids=["club", "rmat", "club by degree"])
def test_merges_take_as_many_steps_as_the_kernel(graph):
    assert reads(naive.plan(graph), "row_idx") == graph.m + 2 * costs.comparisons(graph).sum()


@pytest.mark.sim
@pytest.mark.parametrize("graph", [CLUB, RMAT], ids=["club", "rmat"])
def test_lookups_are_those_of_the_kernel(graph):
    long = graph.column_lengths[graph.column_lengths > 1].sum()  # rows that are set, met and cleared
    assert reads(bitmap.plan(graph, threads=4, lanes=1), "row_idx") == 3 * long + costs.lookups(graph).sum()


def test_warps_are_32_lanes_padded_with_idle_ones():
    assert costs.warps(np.arange(33)).tolist() == [list(range(32)), [32] + [0] * 31]
    assert costs.warps([]).shape == (0, 32)


def test_a_warp_takes_as_long_as_its_busiest_lane():
    assert costs.active_share(np.full(64, 7)) == 1
    assert costs.active_share([5] + [1] * 31) == 36 / (5 * 32)
    assert costs.active_share([]) == costs.active_share([0, 0]) == 1


def test_sectors_hold_eight_elements_of_four_bytes():
    side_by_side, far_apart = np.arange(32), np.arange(32) * 100
    assert costs.sectors(np.concatenate([side_by_side, far_apart, np.zeros(32, int), [1, 2]])).tolist() == [4, 32, 1]
    assert costs.sectors(side_by_side, bytes_each=8).tolist() == [8]


@pytest.mark.parametrize("columns", [1, 2, 5, 34, 100])
def test_groups_are_consecutive_columns(columns):
    lengths = CLUB.column_lengths.tolist()
    assert costs.groups(CLUB, columns).tolist() == [sum(lengths[j : j + columns]) for j in range(0, 34, columns)]
    assert max(costs.groups(CLUB, columns)) == column_block.longest_group(CLUB.col_ptr, columns)


def test_busy_threads_have_a_nonzero():
    star = tcgpu.generate.star(129)  # one column of 128
    assert costs.busy_share(star, 1) == 1
    assert costs.busy_share(star, 1, threads=127) == 128 / (2 * 127)
    assert costs.busy_share(tcgpu.generate.path(129), 1) == 1 / 128
    assert costs.busy_share(tcgpu.generate.empty(3), 1) == 1
