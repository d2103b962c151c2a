"""Cuts of any graph: every edge in exactly one part, parts of about equal work, ranges of columns that fit."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import sparse_graphs

import tcgpu
from tcgpu import Graph, GraphError, cpu
from tcgpu.distributed import cut, pairs, shares, slices

CLIQUE = tcgpu.generate.clique(40)


def times_held(graph, parts):
    """The number of parts that each edge is in."""
    held = np.zeros(graph.m, int)
    for part in parts:
        rows = graph.row_idx[part.first : part.last]
        held[part.first : part.last] += (rows >= part.low) & (rows < part.high)
    return held


def triangles_by_definition(graph, part):
    """The triangles whose edge between the two smallest vertices is the part's."""
    column = [set(graph.column(j).tolist()) for j in range(graph.n)]
    edges = zip(*(ends[part.first : part.last].tolist() for ends in graph.edges()), strict=True)
    return sum(len(column[i] & column[j]) for i, j in edges if part.low <= i < part.high)


def cuts(graph, draw):
    """A cut of every kind, as Hypothesis draws it."""
    longest = cut.column_bytes(graph, 0, 1) + 4 * graph.max_column
    move = draw(st.integers(longest, longest + 200))
    return {
        "slices": slices(graph, draw(st.integers(1, 7))),
        "pairs": pairs(graph, draw(st.integers(move, move + 300)), move),
    }


@given(sparse_graphs(), st.data())
def test_every_edge_is_in_exactly_one_part(graph, data):
    for parts in cuts(graph, data.draw).values():
        assert times_held(graph, parts).tolist() == [1] * graph.m


@given(sparse_graphs(), st.data())
def test_what_a_part_has_within_those_of_another_cut_makes_it_up(graph, data):
    part = data.draw(st.sampled_from(slices(graph, 3)))
    within = [other.within(part) for other in cuts(graph, data.draw)["pairs"]]
    assert times_held(graph, within).tolist() == times_held(graph, [part]).tolist()
    assert sum(triangles_by_definition(graph, each) for each in within) == triangles_by_definition(graph, part)


@given(sparse_graphs(), st.data())
def test_the_ranges_of_a_part_include_its_triangles(graph, data):
    """Its columns and rows include both ends of its edges; its result ranges include its triangles."""
    for part in data.draw(st.sampled_from(list(cuts(graph, data.draw).values()))):
        taken = {*range(*part.columns(graph)), *range(*part.rows(graph))}
        inside = [e for e in range(part.first, part.last) if part.low <= graph.row_idx[e] < part.high]
        assert {int(v) for e in inside for v in (graph.row_idx[e], graph.col_of[e])} <= taken
        edges, vertices = (
            {k for range_ in part.result_ranges(graph, by_edge) for k in range(*range_)} for by_edge in (True, False)
        )
        for e in inside:
            i, j = int(graph.row_idx[e]), int(graph.col_of[e])
            for k in set(graph.column(i).tolist()) & set(graph.column(j).tolist()):
                assert {i, j, k} <= vertices
                assert {e, position(graph, i, k), position(graph, j, k)} <= edges


def position(graph, j, i):
    return int(graph.col_ptr[j]) + graph.column(j).tolist().index(i)


@pytest.mark.parametrize("order", ["natural", "degree"])
def test_slices_have_about_equal_work(order):
    """By the work of all edges, not only of the sample that is examined."""
    graph = tcgpu.generate.rmat(scale=15, seed=1).ordered(order)
    assert graph.m > 10 * cut.EDGE * 1000
    lengths = graph.column_lengths
    work = cut.EDGE + np.minimum(lengths[graph.row_idx], lengths[graph.col_of])
    for sample, tolerance in ((cut.SAMPLE, 0.02), (1 << 12, 0.25)):
        each = [work[part.first : part.last].sum() for part in slices(graph, 16, sample=sample)]
        assert np.abs(np.array(each) / (work.sum() / 16) - 1).max() < tolerance
    edges = [part.last - part.first for part in slices(graph, 16)]
    assert max(edges) > 1.2 * min(edges)  # equal numbers of edges would not have been equal work


def test_slices_have_about_equal_work_on_the_cpu():
    """There, an edge between two hubs is far less work than its columns are long."""
    graph = tcgpu.generate.rmat(scale=16, seed=1).ordered("degree")
    assert cpu.design(graph).hubs.base < graph.n
    work = cpu.edge_work(graph, np.arange(graph.m), graph.row_idx, graph.col_of)

    def uneven(parts):
        each = np.array([work[part.first : part.last].sum() for part in parts])
        return np.abs(each / each.mean() - 1).max()

    assert uneven(slices(graph, 16, work=cpu.edge_work)) < 0.05 and uneven(slices(graph, 16)) > 1


@pytest.mark.parametrize("graph", [tcgpu.generate.road(30, 30), tcgpu.generate.copapers(9000), CLIQUE])
def test_every_design_estimates_the_work_of_edges(graph):
    work = cpu.edge_work(graph, np.arange(graph.m), graph.row_idx, graph.col_of)
    assert work.shape == (graph.m,) and (work > 0).all()
    assert times_held(graph, slices(graph, 5, work=cpu.edge_work)).tolist() == [1] * graph.m


def test_the_work_of_pairs_is_that_of_their_edges():
    graph = tcgpu.generate.rmat(scale=12, seed=1).ordered("degree")
    lengths = graph.column_lengths
    work = cut.EDGE + np.minimum(lengths[graph.row_idx], lengths[graph.col_of])
    parts = pairs(graph, 60_000, 20_000)
    assert len(parts) > 20
    for part in parts:
        rows = graph.row_idx[part.first : part.last]
        exact = work[part.first : part.last][(rows >= part.low) & (rows < part.high)].sum()
        assert part.work == exact  # the sample is the graph
    assert sum(part.work for part in pairs(graph, 60_000, 20_000, sample=2000)) == pytest.approx(work.sum(), rel=0.1)


@given(sparse_graphs(), st.integers(0, 60))
def test_ranges_are_as_large_as_they_may_be(graph, more):
    room = cut.column_bytes(graph, 0, 1) + 4 * graph.max_column + more
    found = cut.ranges(graph, room)
    assert found[0] == min(graph.col_of, default=0) and found[-1] == graph.n and found == sorted(set(found))
    for begin, end in pairwise(found):
        assert cut.column_bytes(graph, begin, end) <= room
        assert end == graph.n or cut.column_bytes(graph, begin, end + 1) > room


def test_a_column_that_is_too_long_is_an_error():
    with pytest.raises(GraphError, match="column 0 alone takes 172 bytes on the device, of which there are 171"):
        cut.ranges(CLIQUE, 171)
    with pytest.raises(GraphError, match="column 0 alone"):
        pairs(CLIQUE, 10_000, 100)


@pytest.mark.parametrize("parts", [0, -1])
def test_fewer_than_one_part_are_refused(parts):
    with pytest.raises(GraphError, match=f"1 part or more, not {parts}"):
        slices(CLIQUE, parts)


def test_a_graph_without_edges_can_be_cut():
    for graph in (Graph.from_edges([], [], 0), Graph.from_edges([], [], 9)):
        parts = slices(graph, 3) + pairs(graph, 100, 50)
        assert all(part.empty and part.has_no_triangles(graph) for part in parts) and len(slices(graph, 3)) == 3


def test_shares_of_a_graph():
    assert [(share.index, share.of, share.work) for share in shares(3, 6.0)] == [(0, 3, 2), (1, 3, 2), (2, 3, 2)]
    assert len(set(shares(3))) == 3 and not any(share.empty for share in shares(3))
