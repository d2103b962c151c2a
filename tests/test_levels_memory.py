"""Transactions by compute capability, against the guide's rules taken step by step, and the load of partitions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import costs
import tcgpu
from tcgpu import GraphError, levels
from tcgpu.datasets import published
from tcgpu.levels.partitions import Load

GRAPH = tcgpu.generate.delaunay(600, seed=3)
SPLIT = levels.split(GRAPH, shared_bits=16 << 13, machines=30)


@pytest.mark.parametrize("row", published("levels_transactions"), ids=lambda row: "-".join(map(str, row.values())))
def test_table_three_to_the_digit(row):
    request = levels.access_pattern(row["pattern"])
    assert np.ptp(request) + 4 == row["bytes"] == 4 * request.size
    assert levels.transactions(request, str(row["compute_capability"])).count.tolist() == [row["transactions"]]


def in_sequence(addresses, each):
    """1.0 and 1.1: lane k takes the k-th word of an aligned segment, or everyone goes alone."""
    active = [(lane, address) for lane, address in enumerate(addresses) if address >= 0]
    bases = {address - lane * each for lane, address in active}
    segment = min(16 * each, 128)
    if each >= 4 and len(bases) == 1 and min(bases) % segment == 0:
        return (2, 256) if each == 16 else (1, segment)
    return len(active), 32 * len(active)


def by_segment(addresses, each):
    """1.2 and 1.3: the lowest lane's segment serves all whom it holds; it is halved as long as one half will do."""
    left = [address for address in addresses if address >= 0]
    size = {1: 32, 2: 64}.get(each, 128)
    count = moved = 0
    while left:
        served = [address for address in left if address // size == left[0] // size]
        left = [address for address in left if address not in served]
        length = size
        while length > 32 and len({byte * 2 // length for a in served for byte in (a, a + each - 1)}) == 1:
            length //= 2
        count, moved = count + 1, moved + length
    return count, moved


def expected(addresses, rule, each):
    if rule in ("1.0", "1.1", "1.2", "1.3"):
        answer = in_sequence if rule < "1.2" else by_segment
        halves = [answer(half, each) for half in (addresses[:16], addresses[16:])]
        return tuple(map(sum, zip(*halves)))
    size, parts = (32, 1) if rule == "sectors" else (128, max(1, each // 4))
    part = 32 // parts
    count = sum(len({a // size for a in addresses[at : at + part] if a >= 0}) for at in range(0, 32, part))
    return count, size * count


@st.composite
def requests(draw):
    """Words of one size, near each other or far apart, in order or not; lanes at rest among them."""
    each = draw(st.sampled_from([1, 2, 4, 8, 16]))
    base = draw(st.sampled_from([0, 16, 64, 128]))
    words = draw(st.one_of(
        st.just(list(range(base, base + 32))),
        st.permutations(range(base, base + 32)),
        st.lists(st.integers(0, draw(st.sampled_from([8, 100, 5000]))), min_size=32, max_size=32),
    ))  # fmt: skip
    resting = draw(st.sets(st.integers(0, 31), max_size=32))
    return [-1 if lane in resting else word * each for lane, word in enumerate(words)], each


@given(requests(), st.sampled_from(levels.RULES))
def test_the_rules_step_by_step(asked, rule):
    addresses, each = asked
    found = levels.transactions([addresses, [-1] * 32, addresses], rule, each)
    count, moved = expected(addresses, rule, each)
    assert found.count.tolist() == [count, 0, count]
    assert found.bytes.tolist() == [moved, 0, moved]


def test_sectors_are_those_of_the_other_kernels():
    positions = np.random.default_rng(1).integers(0, 500, (20, 32))
    assert (levels.transactions(4 * positions, "sectors").count == costs.sectors(positions.ravel())).all()


def test_what_is_no_rule_or_no_word_is_refused():
    with pytest.raises(GraphError, match="no rule '3.0'.*; there are 1.0, "):
        levels.transactions(levels.access_pattern("sequential"), "3.0")
    with pytest.raises(GraphError, match="1, 2, 4, 8 or 16 bytes, not 3"):
        levels.transactions(levels.access_pattern("sequential"), "1.0", 3)
    with pytest.raises(GraphError, match="in ranges or turns, not 'rows'"):
        levels.requests(SPLIT, levels.arrange(GRAPH, SPLIT), hand_out="rows")


@pytest.mark.parametrize("arrangement", levels.ARRANGEMENTS)
@pytest.mark.parametrize("hand_out", ["ranges", "turns"])
def test_requests_are_the_words_of_the_combinations(arrangement, hand_out):
    arranged = levels.arrange(GRAPH, SPLIT, arrangement)
    addresses = levels.requests(SPLIT, arranged, steps=5, chunks=[0, 3], hand_out=hand_out)
    assert addresses.shape == (2, 15, 32)
    for at, c in enumerate((0, 3)):
        tests, n = int(SPLIT.tests[c]), int(SPLIT.size[c])
        for step, lane in np.ndindex(5, 32):
            begin, end = levels.share(tests, 32, lane)
            index = begin + step if hand_out == "ranges" else 32 * step + lane
            words = [-1] * 3
            if index < (end if hand_out == "ranges" else tests):
                i, j, k = levels.unrank(index, n, 3)
                words = [int(arranged.bit(c, *pair)) // 32 * 4 for pair in ((i, j), (i, k), (j, k))]
            assert addresses[at, 3 * step : 3 * step + 3, lane].tolist() == words


def test_neighbouring_combinations_coalesce():
    """Lanes that take turns read side by side; lanes with a range each read far apart."""
    arranged = levels.arrange(GRAPH, SPLIT)
    chunks = np.argsort(-SPLIT.tests)[:8]
    ranges, turns = (
        levels.transactions(levels.requests(SPLIT, arranged, 32, chunks, how), "sectors").count.mean()
        for how in ("ranges", "turns")
    )
    assert turns < 2 and ranges > 4 * turns


def test_load_by_hand():
    rest = [-1] * 29
    addresses = np.array([
        [[0, 4, 300, *rest], [0, 0, 0, *rest]],  # partitions 0 and 1, then 0
        [[100, 128, 2048, *rest], [512, -1, 640, *rest]],  # two segments of partition 0, one more turn later; 2, twice
    ])  # fmt: skip
    load = levels.partition_load(addresses, partitions=8)
    assert load.transactions.tolist() == [[4, 1, 0, 0, 0, 0, 0, 0], [1, 0, 2, 0, 0, 0, 0, 0]]
    assert (load.turns, load.busy, load.camping) == (4 + 2, 2.0, 6 / 2)
    nothing = Load(np.zeros((0, 8), np.int64))
    assert (nothing.turns, nothing.busy, nothing.camping) == (0, 0.0, 1.0)


def test_each_sets_own_bits_spread_the_load():
    """Chunks that begin at the same time camp least where each has a partition to itself."""
    graph = tcgpu.generate.mesh(120, 120)
    split = levels.split(graph, shared_bits=16 << 13, machines=30)
    camping = []
    for name in levels.ARRANGEMENTS:
        addresses = levels.requests(split, levels.arrange(graph, split, name), 64, range(60, 90), "turns")
        camping.append(levels.partition_load(addresses).camping)
    one, redundant, striped = camping
    assert 1 <= striped <= redundant < one
