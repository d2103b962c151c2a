"""Combinations by number, and the four approaches that hand them out."""

import itertools
from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tcgpu import GraphError, levels
from tcgpu.levels.combinations import binomial, count_parts, numbered, successor, unrank_into


@pytest.mark.parametrize("n", range(10))
@pytest.mark.parametrize("k", range(1, 7))
def test_unranking_is_lexicographic(n, k):
    expected = list(itertools.combinations(range(n), k))
    assert [tuple(row) for row in levels.unranked(np.arange(len(expected)), n, k).tolist()] == expected
    assert [levels.rank(combination, n) for combination in expected] == list(range(len(expected)))


@given(st.data())
def test_ranking_takes_back_unranking(data):
    k = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(k, {1: 2**31, 2: 10**9, 3: 2_000_000, 4: 50_000, 5: 7_000, 6: 1_500}[k]))
    index = data.draw(st.integers(0, comb(n, k) - 1))
    combination = levels.unrank(index, n, k)
    assert sorted(set(combination)) == list(combination) and 0 <= combination[0] and combination[-1] < n
    assert levels.rank(combination, n) == index


@given(st.integers(0, 60), st.integers(1, 8))
def test_binomials(n, k):
    assert binomial(n, k) == comb(n, k)


@given(st.integers(1, 9), st.integers(1, 9), st.data())
def test_the_next_combination(n, k, data):
    if k > n:
        return
    index = data.draw(st.integers(0, comb(n, k) - 1))
    found = np.empty(k, np.int64)
    unrank_into(index, n, k, found)
    before = tuple(found.tolist())
    assert before == levels.unrank(index, n, k)
    more = successor(found, n, k)
    assert more == (index + 1 < comb(n, k))
    assert tuple(found.tolist()) == (levels.unrank(index + 1, n, k) if more else before)


def test_the_largest_indices_that_can_be_numbered():
    n = 2_000_000
    last = comb(n, 3) - 1
    assert levels.unrank(last, n, 3) == (n - 3, n - 2, n - 1)
    assert levels.unrank(last - 1, n, 3) == (n - 4, n - 2, n - 1)
    with pytest.raises(GraphError, match="too many to be numbered with 63 bits"):
        levels.unrank(0, 4_000_000, 3)


@pytest.mark.parametrize("call", [
    lambda: levels.unrank(4, 4, 3), lambda: levels.unrank(-1, 4, 3), lambda: levels.unranked([0, 4], 4, 3),
    lambda: levels.unrank_parts(6, (3, 2), (2, 1)),
])  # fmt: skip
def test_indices_past_the_last_are_refused(call):
    with pytest.raises(GraphError, match="there are [46] .*combinations.*; an index is from 0 to [35]"):
        call()


def test_none_of_nothing_are_not_combinations():
    for n, k in ((3, 0), (-1, 2)):
        with pytest.raises(GraphError, match="at least 1 of at least 0 elements"):
            numbered(n, k)


@given(st.integers(1, 9), st.integers(1, 4), st.data())
def test_those_with_one_of_the_first_are_the_first_indices(n, k, data):
    first = data.draw(st.integers(0, n))
    wanted = [c for c in itertools.combinations(range(n), k) if c[0] < first]
    assert [levels.unrank(index, n, k) for index in range(comb(n, k) - comb(n - first, k))] == wanted


@pytest.mark.parametrize("sizes", [(4,), (3, 4), (2, 3, 2), (1, 1, 5), (0, 3)])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_parts_are_the_combinations_with_so_many_of_each_set(sizes, k):
    owner = np.repeat(np.arange(len(sizes)), sizes)
    for takes in itertools.product(range(k + 1), repeat=len(sizes)):
        if sum(takes) == k:
            found = [levels.unrank_parts(index, sizes, takes) for index in range(count_parts(sizes, takes))]
            expected = [
                c for c in itertools.combinations(range(sum(sizes)), k)
                if np.bincount(owner[list(c)], minlength=len(sizes)).tolist() == list(takes)
            ]  # fmt: skip
            assert found == expected  # in their order, too


@pytest.mark.parametrize("sizes", [(3, 4), (2, 3, 2), (1, 4, 1, 2)])
def test_ways_to_spread_over_levels_make_up_the_constrained_form(sizes):
    n = sum(sizes)
    for k in (1, 2, 3, 4):
        spread = list(levels.takes(k, len(sizes), contiguous=False))
        assert len(set(spread)) == len(spread) and all(sum(takes) == k and takes[0] for takes in spread)
        total = sum(count_parts(sizes, takes) for takes in spread)
        assert total == comb(n, k) - comb(n - sizes[0], k)


def test_connected_subgraphs_leave_no_level_out():
    assert list(levels.takes(3, 3)) == [(3, 0, 0), (2, 1, 0), (1, 2, 0), (1, 1, 1)]
    assert set(levels.takes(3, 3, contiguous=False)) - set(levels.takes(3, 3)) == {(2, 0, 1), (1, 0, 2)}


@given(st.integers(0, 10**30), st.integers(1, 5000))
def test_equal_division(total, threads):
    ends = [levels.share(total, threads, thread) for thread in range(min(threads, 50))]
    assert ends[0][0] == 0 and levels.share(total, threads, threads - 1)[1] == total
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))
    assert {last - first for first, last in ends} <= {total // threads, total // threads + 1}


@pytest.mark.parametrize("approach", levels.APPROACHES)
@pytest.mark.parametrize("n, k, first", [(9, 3, None), (9, 3, 4), (9, 3, 0), (5, 4, 2), (2, 3, None), (6, 1, 6)])
@pytest.mark.parametrize("threads", [1, 3, 100])
def test_every_approach_hands_out_everything_once(approach, n, k, first, threads):
    bounds = levels.ranges(approach, n, k, threads, first)
    wanted = [c for c in itertools.combinations(range(n), k) if first is None or c[0] < first]
    assert bounds[0] == 0 and bounds[-1] == len(wanted) and (np.diff(bounds) >= 0).all()
    if approach == "B":
        assert bounds.size == 2
    elif approach == "C":
        for smallest, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
            assert {c[0] for c in wanted[begin:end]} == {smallest}
    else:
        assert bounds.size == threads + 1 and np.ptp(np.diff(bounds)) <= 1


def test_storage_is_what_the_paper_says():
    n, k, log = 1000, 3, 10
    assert levels.storage_bits("A", n, k, 8) == comb(n, k) * k * log
    assert levels.storage_bits("B", n, k, 8) == 2 * k * log
    assert levels.storage_bits("C", n, k, 8) == (n - k + 1) * 2 * k * log
    assert levels.storage_bits("D", n, k, 8) == 8 * 2 * k * log


def test_approaches_compared():
    rows = {row["approach"]: row for row in levels.compare(1000, 3, 2048)}
    total = comb(1000, 3)
    assert rows["B"]["threads"] == rows["B"]["speedup"] == 1
    assert (rows["C"]["threads"], rows["C"]["longest"]) == (998, comb(999, 2))
    assert rows["C"]["imbalance"] == pytest.approx(998 * comb(999, 2) / total)
    assert 1 <= rows["D"]["imbalance"] < 1.0001 and rows["D"]["speedup"] > 2047
    assert rows["A"] == rows["D"] | {"approach": "A", "storage_bits": total * 30}
    assert [row["speedup"] for row in levels.compare(2, 3, 4)] == [1.0] * 4


def test_approaches_that_are_none_are_refused():
    for call in levels.ranges, levels.storage_bits:
        with pytest.raises(GraphError, match="no approach 'E'; there are A, B, C, D"):
            call("E", 5, 3, 1)
