"""The models of Chatterjee et al.'s method beside the notebooks: combinations, schedules, memory, Algorithm 2."""

import itertools
from math import comb

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from kernel_shapes import small_graphs, well_known
from strategies import sparse_graphs

import tcgpu
from helpers import costs
from helpers import level_models as models
from helpers.level_models.arrangement import empty_words, row_of
from helpers.level_models.combinations import binomial, numbered
from tcgpu import GraphError, MethodError
from tcgpu.built_in import APPROACHES
from tcgpu.datasets import published
from tcgpu.kernels.chatterjee.chunks import LAYOUTS, bits_needed, position, words_needed

GRAPHS = small_graphs()
CARD = {"shared_bits": 16 << 13, "machines": 30}  # a C1060
CARDS = {card["card"]: card for card in published("levels_cards")}
DELAUNAY = tcgpu.generate.delaunay(600, seed=3)
SPLIT = models.split(DELAUNAY, **CARD)
CLUB_LIKE = tcgpu.generate.barabasi_albert(40, 3, seed=5)
PARTS = tcgpu.Graph.from_edges([0, 1, 2, 5, 5, 6, 8], [1, 2, 0, 6, 7, 7, 9], 12)  # two triangles, an edge, loners


# --------------------------------------------------------------------------------------------------------- combinations


@pytest.mark.parametrize("n", range(10))
@pytest.mark.parametrize("k", range(1, 7))
def test_unranking_is_lexicographic(n, k):
    expected = list(itertools.combinations(range(n), k))
    assert [tuple(row) for row in models.unranked(np.arange(len(expected)), n, k).tolist()] == expected


@given(st.data())
def test_as_many_combinations_lie_before_one_as_its_index_says(data):
    k = data.draw(st.integers(1, 6))
    n = data.draw(st.integers(k, {1: 2**31, 2: 10**9, 3: 2_000_000, 4: 50_000, 5: 7_000, 6: 1_500}[k]))
    index = data.draw(st.integers(0, comb(n, k) - 1))
    combination = models.unrank(index, n, k)
    assert sorted(set(combination)) == list(combination) and 0 <= combination[0] and combination[-1] < n
    behind = sum(comb(n - 1 - element, k - place) for place, element in enumerate(combination))
    assert comb(n, k) - 1 - behind == index


@given(st.integers(0, 60), st.integers(1, 8))
def test_binomials(n, k):
    assert binomial(n, k) == comb(n, k)


def test_the_largest_indices_that_can_be_numbered():
    n = 2_000_000
    last = comb(n, 3) - 1
    assert models.unrank(last, n, 3) == (n - 3, n - 2, n - 1)
    assert models.unrank(last - 1, n, 3) == (n - 4, n - 2, n - 1)
    with pytest.raises(GraphError, match="too many to be numbered with 63 bits"):
        models.unrank(0, 4_000_000, 3)


@pytest.mark.parametrize("call", [
    lambda: models.unrank(4, 4, 3), lambda: models.unrank(-1, 4, 3), lambda: models.unranked([0, 4], 4, 3),
])  # fmt: skip
def test_indices_past_the_last_are_refused(call):
    with pytest.raises(GraphError, match="there are 4 combinations.*; an index is from 0 to 3"):
        call()


def test_empty_combinations_are_refused():
    for n, k in ((3, 0), (-1, 2)):
        with pytest.raises(GraphError, match="at least 1 of at least 0 elements"):
            numbered(n, k)


@given(st.integers(1, 9), st.integers(1, 4), st.data())
def test_combinations_with_a_small_first_element_have_the_first_indices(n, k, data):
    first = data.draw(st.integers(0, n))
    combinations = [c for c in itertools.combinations(range(n), k) if c[0] < first]
    assert [models.unrank(index, n, k) for index in range(comb(n, k) - comb(n - first, k))] == combinations


@given(st.integers(0, 10**30), st.integers(1, 5000))
def test_equal_division(total, threads):
    ends = [models.share(total, threads, thread) for thread in range(min(threads, 50))]
    assert ends[0][0] == 0 and models.share(total, threads, threads - 1)[1] == total
    assert all(before[1] == after[0] for before, after in itertools.pairwise(ends))
    assert {last - first for first, last in ends} <= {total // threads, total // threads + 1}


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("n, k, first", [(9, 3, None), (9, 3, 4), (9, 3, 0), (5, 4, 2), (2, 3, None), (6, 1, 6)])
@pytest.mark.parametrize("threads", [1, 3, 100])
def test_every_approach_assigns_each_combination_once(approach, n, k, first, threads):
    bounds = models.ranges(approach, n, k, threads, first)
    combinations = [c for c in itertools.combinations(range(n), k) if first is None or c[0] < first]
    assert bounds[0] == 0 and bounds[-1] == len(combinations) and (np.diff(bounds) >= 0).all()
    if approach == "B":
        assert bounds.size == 2
    elif approach == "C":
        for smallest, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
            assert {c[0] for c in combinations[begin:end]} == {smallest}
    else:
        assert bounds.size == threads + 1 and np.ptp(np.diff(bounds)) <= 1


@pytest.mark.parametrize("n, k, first", [(9, 3, None), (9, 3, 4), (5, 4, 2), (6, 2, None), (2, 3, None)])
def test_two_first_vertices_are_of_more_threads(n, k, first):
    combinations = [c for c in itertools.combinations(range(n), k) if first is None or c[0] < first]
    bounds = models.pair_ranges(n, k, first)
    of_threads = [{c[:2] for c in combinations[begin:end]} for begin, end in itertools.pairwise(bounds.tolist())]
    assert bounds[-1] == len(combinations) and all(len(pairs) == 1 for pairs in of_threads)
    assert len(of_threads) == len(set().union(*of_threads)) <= comb(n, 2)


def test_storage_is_that_of_the_paper():
    n, k, log = 1000, 3, 10
    assert models.storage_bits("A", n, k, 8) == comb(n, k) * k * log
    assert models.storage_bits("B", n, k, 8) == 2 * k * log
    assert models.storage_bits("C", n, k, 8) == (n - k + 1) * 2 * k * log
    assert models.storage_bits("D", n, k, 8) == 8 * 2 * k * log


def test_approaches_compared():
    rows = {row["approach"]: row for row in models.compare(1000, 3, 2048)}
    total = comb(1000, 3)
    assert rows["B"]["threads"] == rows["B"]["speedup"] == 1
    assert (rows["C"]["threads"], rows["C"]["longest"]) == (998, comb(999, 2))
    assert rows["C"]["imbalance"] == pytest.approx(998 * comb(999, 2) / total)
    assert 1 <= rows["D"]["imbalance"] < 1.0001 and rows["D"]["speedup"] > 2047
    assert rows["A"] == rows["D"] | {"approach": "A", "storage_bits": total * 30}
    assert [row["speedup"] for row in models.compare(2, 3, 4)] == [1.0] * 4


def test_unknown_approaches_are_refused():
    for call in models.ranges, models.storage_bits:
        with pytest.raises(GraphError, match="no approach 'E'; there are A, B, C, D"):
            call("E", 5, 3, 1)


# ---------------------------------------------------------------------------------------------------------- Algorithm 2


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shared_bits", [0, 300, 10**6])
def test_algorithm_two_is_exact(name, layout, shared_bits):
    graph = GRAPHS[name]
    split = models.split(graph, shared_bits=shared_bits, machines=4, layout=layout)
    assert models.count_triangles(graph, split) == tcgpu.count(graph)
    assert models.count_triangles(graph, split, skip=True) == tcgpu.count(graph)


@given(sparse_graphs(), st.integers(0, 40))
def test_algorithm_two_on_any_graph(graph, shared_bits):
    split = models.split(graph, shared_bits=shared_bits, machines=2)
    assert models.count_triangles(graph, split) == sum(nx.triangles(graph.to_networkx()).values()) // 3


@given(sparse_graphs())
def test_a_component_that_fits_comes_out_whole(graph):
    whole = models.split(graph, **CARD, width=max(graph.n, 1))
    components = nx.connected_components(graph.to_networkx())
    assert sorted(whole.size.tolist()) == sorted(size for size in map(len, components) if size >= 3)
    assert whole.total_tests == sum(comb(size, 3) for size in whole.size.tolist())
    assert models.count_triangles(graph, whole) == tcgpu.count(graph)


@given(sparse_graphs())
def test_no_triangle_means_girth_four_and_clique_number_two(graph):
    theirs = graph.to_networkx()
    largest = max(map(len, nx.find_cliques(theirs)), default=0)
    assert tcgpu.is_triangle_free(graph) == (nx.girth(theirs) >= 4) == (largest <= 2)


@pytest.mark.parametrize("k", [2, 3, 4, 7])
def test_the_worst_case_of_k_levels_has_as_many_vertices_as_printed(k):
    graph = models.worst_case(k, **CARD)
    sets = models.split(graph, **CARD, roots=np.array([0]), k=k, width=k)
    assert (graph.n, len(sets), sets.size.max(), sets.too_large) == (541, 30, 512, 0)
    larger = models.worst_case(k, shared_bits=CARD["shared_bits"] + 512, machines=30)
    assert larger.n == 542 and models.split(larger, **CARD, roots=np.array([0]), k=k, width=k).too_large > 0


@pytest.mark.parametrize("approach", APPROACHES)
@pytest.mark.parametrize("skip", [False, True])
def test_every_approach_counts_the_same(approach, skip):
    clustered = tcgpu.generate.watts_strogatz(70, 6, 0.1, seed=1)
    for graph in (clustered, GRAPHS["wheel"], GRAPHS["one edge"], GRAPHS["empty columns between"]):
        split = models.split(graph, **CARD)
        options = {"approach": approach, "threads": 7, "skip": skip}
        assert models.count_triangles(graph, split, **options) == tcgpu.count(graph)
        sizes = zip(split.size, split.first, strict=True)
        most = max((models.ranges(approach, n, 3, 7, f).size for n, f in sizes), default=1)
        parts = [models.count_triangles(graph, split, only=thread, **options) for thread in range(most)]
        assert sum(parts) == tcgpu.count(graph)


def test_well_known_graphs(graphs_folder):
    for name, graph, triangles in well_known(graphs_folder, most_edges=40_000):
        split = models.split(graph, **CARD)
        assert models.count_triangles(graph, split, skip=True) == triangles, name
        if split.total_tests < 10**9:
            assert models.count_triangles(graph, split) == triangles, name


# ------------------------------------------------------------------------------------------------------------ schedules


def best_makespan(weights, machines):
    """The shortest there is, by trying every assignment."""
    loads = (
        np.bincount(assignment, weights=weights, minlength=machines).max()
        for assignment in itertools.product(range(machines), repeat=len(weights))
    )
    return min(loads, default=0)


@given(st.lists(st.integers(0, 20), max_size=6), st.integers(1, 3))
def test_the_bound_is_one_and_longest_first_within_a_third(weights, machines):
    best = best_makespan(weights, machines)
    longest = models.schedule(weights, machines)
    assert longest.bound <= best <= longest.makespan <= best * (4 / 3 - 1 / (3 * machines)) + 1e-9
    given_order = models.schedule(weights, machines, order="given")
    assert best <= given_order.makespan <= best * (2 - 1 / machines) + 1e-9
    assert longest.bound == models.lower_bound(weights, machines)


@given(st.lists(st.integers(1, 50), max_size=40), st.integers(1, 9), st.sampled_from(["longest", "given"]))
def test_a_machine_works_without_a_break_on_one_job_at_a_time(weights, machines, order):
    plan = models.schedule(weights, machines, order)
    for machine in range(machines):
        jobs = np.flatnonzero(plan.machine == machine)
        jobs = jobs[np.argsort(plan.begin[jobs])]
        ends = np.concatenate(([0], np.cumsum(plan.weights[jobs])))
        assert plan.begin[jobs].tolist() == ends[:-1].tolist()
        assert plan.loads[machine] == ends[-1]


def test_the_bound_by_hand():
    assert models.lower_bound([7, 1, 1], 3) == 7
    assert models.lower_bound([5, 5, 5, 5], 3) == 10  # two of them share a machine
    assert models.lower_bound([3, 3, 3], 2) == 6
    assert models.lower_bound([1, 2, 3], 1) == 6
    assert models.lower_bound([], 4) == 0
    assert models.schedule([], 4).above_bound == models.schedule([], 4).makespan == 0


@pytest.mark.parametrize("graph", [
    tcgpu.generate.road(150, 150, 0.7, 1.5, seed=1), tcgpu.generate.mesh(220, 260), tcgpu.generate.path(4000),
    tcgpu.generate.watts_strogatz(20_000, 6, 0.0005, seed=1),
], ids=["road", "mesh", "path", "small world"])  # fmt: skip
def test_longest_first_is_within_five_percent_of_the_bound(graph):
    split = models.split(graph, **CARD)
    assert len(split) >= 200
    for weights in split.bits, split.tests:
        assert models.schedule(weights, split.machines).above_bound < 0.05


def test_the_order_given_may_be_further_from_the_bound():
    """A chunk that is long and comes late keeps one machine at work when all others are done."""
    graph = tcgpu.generate.watts_strogatz(20_000, 6, 0.0005, seed=1)
    split = models.split(graph, shared_bits=227 << 13, machines=132)
    longest, given_order = (models.schedule(split.bits, 132, order).above_bound for order in ("longest", "given"))
    assert len(split) >= 200 and longest < 0.01 < 0.05 < given_order


def test_equation_six():
    assert models.estimate(31, 4, 2.0, 10.0) == 2 * 2.0 + 4 * 10.0
    assert models.estimate(30, 0, 2.0, 10.0) == 2.0
    assert models.estimate(5, 1, 1.0, 3.0, machines=2) == 3 + 3


def test_both_kinds_at_once_never_take_longer_than_one_after_the_other():
    split = models.split(tcgpu.generate.rmat(12, 4, seed=1), **CARD)
    road = models.split(tcgpu.generate.delaunay(20_000, seed=1), **CARD)
    for each in split, road:
        shared = int(each.fits.sum())
        at_once = models.schedule(np.where(each.fits, 2, 9), each.machines).makespan
        assert at_once <= models.estimate(shared, len(each) - shared, 2, 9, each.machines)


def test_invalid_schedules_are_refused():
    with pytest.raises(GraphError, match="no order 'shortest'; there are longest, given"):
        models.schedule([1], 1, order="shortest")
    for call in (models.schedule, models.lower_bound):
        with pytest.raises(GraphError, match="at least 1 machine, not 0"):
            call([1], 0)


# --------------------------------------------------------------------------------------------------------------- memory


@pytest.mark.parametrize("row", published("levels_transactions"), ids=lambda row: "-".join(map(str, row.values())))
def test_table_three_to_the_digit(row):
    request = models.access_pattern(row["pattern"])
    assert np.ptp(request) + 4 == row["bytes"] == 4 * request.size
    assert models.transactions(request, str(row["compute_capability"])).count.tolist() == [row["transactions"]]


def in_sequence(addresses, each):
    """1.0 and 1.1: lane k reads the k-th word of an aligned segment, or each lane has a request of its own."""
    active = [(lane, address) for lane, address in enumerate(addresses) if address >= 0]
    bases = {address - lane * each for lane, address in active}
    segment = min(16 * each, 128)
    if each >= 4 and len(bases) == 1 and min(bases) % segment == 0:
        return (2, 256) if each == 16 else (1, segment)
    return len(active), 32 * len(active)


def by_segment(addresses, each):
    """1.2 and 1.3: the lowest lane's segment serves all lanes in it; it is halved while one half holds them all."""
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
        return tuple(map(sum, zip(*halves, strict=True)))
    size, parts = (32, 1) if rule == "sectors" else (128, max(1, each // 4))
    part = 32 // parts
    count = sum(len({a // size for a in addresses[at : at + part] if a >= 0}) for at in range(0, 32, part))
    return count, size * count


@st.composite
def requests(draw):
    """Words of one size, near each other or far apart, in order or not; some lanes are idle."""
    each = draw(st.sampled_from([1, 2, 4, 8, 16]))
    base = draw(st.sampled_from([0, 16, 64, 128]))
    words = draw(st.one_of(
        st.just(list(range(base, base + 32))),
        st.permutations(range(base, base + 32)),
        st.lists(st.integers(0, draw(st.sampled_from([8, 100, 5000]))), min_size=32, max_size=32),
    ))  # fmt: skip
    resting = draw(st.sets(st.integers(0, 31), max_size=32))
    return [-1 if lane in resting else word * each for lane, word in enumerate(words)], each


@given(requests(), st.sampled_from(models.RULES))
def test_the_rules_step_by_step(asked, rule):
    addresses, each = asked
    found = models.transactions([addresses, [-1] * 32, addresses], rule, each)
    count, moved = expected(addresses, rule, each)
    assert found.count.tolist() == [count, 0, count]
    assert found.bytes.tolist() == [moved, 0, moved]


def test_sectors_are_those_of_the_other_kernels():
    positions = np.random.default_rng(1).integers(0, 500, (20, 32))
    assert (models.transactions(4 * positions, "sectors").count == costs.sectors(positions.ravel())).all()


def test_unknown_rules_and_words_are_refused():
    with pytest.raises(GraphError, match="no rule '3.0'.*; there are 1.0, "):
        models.transactions(models.access_pattern("sequential"), "3.0")
    with pytest.raises(GraphError, match="1, 2, 4, 8 or 16 bytes, not 3"):
        models.transactions(models.access_pattern("sequential"), "1.0", 3)
    with pytest.raises(GraphError, match="in ranges or turns, not 'rows'"):
        models.requests(SPLIT, models.arrange(DELAUNAY, SPLIT), hand_out="rows")


@pytest.mark.parametrize("arrangement", models.ARRANGEMENTS)
@pytest.mark.parametrize("hand_out", ["ranges", "turns"])
def test_requests_are_the_words_of_the_combinations(arrangement, hand_out):
    arranged = models.arrange(DELAUNAY, SPLIT, arrangement)
    addresses = models.requests(SPLIT, arranged, steps=5, chunks=[0, 3], hand_out=hand_out)
    assert addresses.shape == (2, 15, 32)
    for at, c in enumerate((0, 3)):
        tests, n = int(SPLIT.tests[c]), int(SPLIT.size[c])
        for step, lane in np.ndindex(5, 32):
            begin, end = models.share(tests, 32, lane)
            index = begin + step if hand_out == "ranges" else 32 * step + lane
            words = [-1] * 3
            if index < (end if hand_out == "ranges" else tests):
                i, j, k = models.unrank(index, n, 3)
                words = [int(arranged.bit(c, *pair)) // 32 * 4 for pair in ((i, j), (i, k), (j, k))]
            assert addresses[at, 3 * step : 3 * step + 3, lane].tolist() == words


@pytest.mark.parametrize("hand_out", ["ranges", "turns"])
def test_accesses_are_those_of_every_request(hand_out):
    graph = tcgpu.generate.mesh(7, 7)
    split = models.split(graph, shared_bits=500, machines=4, roots=np.array([0]))
    arranged = models.arrange(graph, split)
    operations, accesses = models.accesses(split, arranged, hand_out, "sectors")
    assert operations.sum() == split.total_tests
    for c, (tests, n) in enumerate(zip(split.tests.tolist(), split.size.tolist(), strict=True)):
        words = {}  # of each request: the sectors of its lanes
        shares = [models.share(tests, 32, lane) for lane in range(32)]
        for index in range(tests):
            lane = index % 32 if hand_out == "turns" else next(k for k, (_, end) in enumerate(shares) if index < end)
            step = index // 32 if hand_out == "turns" else index - shares[lane][0]
            i, j, k = models.unrank(index, n, 3)
            for edge, pair in enumerate(((i, j), (i, k), (j, k))):
                words.setdefault((step, edge), set()).add(int(arranged.bit(c, *pair)) // 256)
        assert accesses[c] == sum(map(len, words.values()))


def test_contiguous_bytes_in_two_segments_take_two_transactions():
    half = np.full(32, -1)
    half[:16] = np.arange(16)
    assert models.transactions(4 * half, "1.3").count.tolist() == [1], "64 bytes in one segment"
    apart = np.where(half < 0, half, 124 + 4 * half)
    assert models.transactions(apart, "1.3").count.tolist() == [2], "as many bytes across two segments"
    fewer = np.where(half < 13, apart, -1)
    assert models.transactions(fewer, "1.3").count.tolist() == [2], "52 bytes across two segments"


def test_banks_by_hand():
    lanes = np.arange(16)
    assert models.bank_turns(lanes) == (16, 16, 1)
    assert models.bank_turns(2 * lanes) == (16, 8, 2) and models.bank_turns(2 * lanes, banks=32) == (16, 16, 1)
    assert models.bank_turns(16 * lanes) == (16, 1, 16), "all at one bank"
    assert models.bank_turns(0 * lanes) == (1, 1, 1), "one word goes to all"
    assert models.bank_turns([0, 0, 16, 32, 1]) == (4, 2, 3), "uneven: more turns than 4 words over 2 banks"


@given(st.lists(st.integers(0, 500), min_size=1, max_size=16), st.sampled_from([16, 32]))
def test_equation_nine_is_a_lower_bound(words, banks):
    elements, distinct, turns = models.bank_turns(words, banks)
    assert elements / distinct <= turns <= elements


def test_equation_ten_tells_the_arrangements_apart():
    """If all warps' partitions are counted together. Warp by warp, it is the same for figures 6 and 7."""
    one_partition = np.repeat([[[0] * 32]], 8, axis=0)
    even = 256 * np.arange(8).reshape(8, 1, 1) + one_partition
    assert models.partition_turns(one_partition) == (8, 8, 1) and models.partition_turns(even) == (1, 1, 1)
    square = tcgpu.generate.mesh(40, 40)
    split = models.split(square, **CARD, roots=np.array([0]))
    one, redundant, striped = (
        models.partition_turns(models.requests(split, models.arrange(square, split, name), hand_out="turns"))
        for name in models.ARRANGEMENTS
    )
    assert one[0] > 1.5 * redundant[0] > striped[0] and one[1] > 1.3 * redundant[1] >= striped[1]
    assert one[2] < 1.1 * redundant[2]


def test_neighbouring_combinations_coalesce():
    """Lanes that take combinations in turn read neighbouring words; lanes with a range each read far apart."""
    arranged = models.arrange(DELAUNAY, SPLIT)
    chunks = np.argsort(-SPLIT.tests)[:8]
    ranges, turns = (
        models.transactions(models.requests(SPLIT, arranged, 32, chunks, how), "sectors").count.mean()
        for how in ("ranges", "turns")
    )
    assert turns < 2 and ranges > 4 * turns


def test_load_by_hand():
    rest = [-1] * 29
    addresses = np.array([
        [[0, 4, 300, *rest], [0, 0, 0, *rest]],  # partitions 0 and 1, then 0
        [[100, 128, 2048, *rest], [512, -1, 640, *rest]],  # two segments of partition 0, one more turn later; 2, twice
    ])  # fmt: skip
    load = models.partition_load(addresses, partitions=8)
    assert load.transactions.tolist() == [[4, 1, 0, 0, 0, 0, 0, 0], [1, 0, 2, 0, 0, 0, 0, 0]]
    assert (load.turns, load.busy, load.camping) == (4 + 2, 2.0, 6 / 2)
    nothing = models.Load(np.zeros((0, 8), np.int64))
    assert (nothing.turns, nothing.busy, nothing.camping) == (0, 0.0, 1.0)


def test_each_sets_own_bits_spread_the_load():
    """Chunks that begin at the same time camp least where each has a partition to itself."""
    graph = tcgpu.generate.mesh(120, 120)
    split = models.split(graph, shared_bits=16 << 13, machines=30)
    camping = []
    for name in models.ARRANGEMENTS:
        addresses = models.requests(split, models.arrange(graph, split, name), 64, range(60, 90), "turns")
        camping.append(models.partition_load(addresses).camping)
    one, redundant, striped = camping
    assert 1 <= striped <= redundant < one


@pytest.mark.parametrize("row", published("levels_sizes"), ids=lambda row: "-".join(map(str, row.values())))
def test_table_two_to_the_digit(row):
    card = CARDS[row["card"]]
    bits = {"shared": card["shared_kb"] << 13, "global": card["global_gb"] << 33}[row["memory"]]
    assert models.max_vertices(bits, row["layout"]) == row["vertices"]


@given(st.integers(0, 2**80), st.sampled_from(LAYOUTS))
def test_one_vertex_more_does_not_fit(bits, layout):
    n = models.max_vertices(bits, layout)
    assert bits_needed(n, layout) <= bits < bits_needed(n + 1, layout)


@given(st.integers(0, 2**80))
def test_without_the_diagonal_there_is_room_for_one_more(bits):
    assert models.max_vertices(bits, "s-utm") == models.max_vertices(bits, "utm") + 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arrangement", models.ARRANGEMENTS)
@pytest.mark.parametrize("graph", [CLUB_LIKE, PARTS, tcgpu.generate.road(12, 12, seed=1), tcgpu.generate.empty(4)],
                         ids=["one component", "parts", "many chunks", "no chunk"])  # fmt: skip
def test_every_arrangement_has_every_pair_of_every_chunk(graph, arrangement, layout):
    split = models.split(graph, shared_bits=500, machines=4, layout=layout)
    arranged = models.arrange(graph, split, arrangement, partitions=3)
    dense = graph.to_scipy().toarray()
    for c in range(len(split)):
        vertices = split.vertices(c)
        i, j = np.triu_indices(vertices.size, 1)
        assert (arranged.neighbours(c, i, j) == dense[vertices[i], vertices[j]]).all()


def test_what_the_arrangements_cost_and_where_they_put_chunks():
    graph = tcgpu.generate.road(40, 40, seed=2)
    split = models.split(graph, shared_bits=1 << 17, machines=30)
    one, redundant, striped = (models.arrange(graph, split, name) for name in models.ARRANGEMENTS)
    assert one.words.size == words_needed(bits_needed(graph.n, "s-utm"))
    assert redundant.words.nbytes == sum(-(-bits // 2048) * 256 for bits in split.bits.tolist())
    assert redundant.words.nbytes <= striped.words.nbytes
    assert not (redundant.first_bit % 2048).any()
    for c in range(len(split)):
        i, j = np.triu_indices(split.size[c], 1)
        assert set(striped.bit(c, i, j) // 2048 % 8) == {c % 8}


def test_unknown_names_are_refused():
    split = models.split(PARTS, shared_bits=500, machines=4)
    for call in (
        lambda: models.max_vertices(8, "lower"),
        lambda: models.split(PARTS, shared_bits=500, machines=4, layout="lower"),
    ):
        with pytest.raises(MethodError, match="layout is one of 'matrix', 'utm', 's-utm', not 'lower'"):
            call()
    with pytest.raises(GraphError, match="no arrangement 'lower'; there are .*, "):
        models.arrange(PARTS, split, "lower")
    with pytest.raises(GraphError, match="at least 0 bits, not -1"):
        models.max_vertices(-1, "utm")


def test_more_bits_than_memory_are_refused():
    with pytest.raises(GraphError, match=r"bytes of adjacency bits are more than this machine's memory"):
        empty_words(bits_needed(5_000_000, "s-utm"))


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
def test_rows_begin_where_their_first_bit_would_be(layout, n):
    assert [row_of(row, n, LAYOUTS.index(layout)) for row in range(n)] == [position(r, 0, n, layout) for r in range(n)]


# -------------------------------------------------------------------------------------- what notebook 07 draws of them


def test_algorithm_two_as_printed_counts_twice_what_lies_inside_a_first_level():
    triangle_inside = tcgpu.Graph.from_edges([0, 0, 0, 1, 2, 1, 3], [1, 2, 3, 2, 3, 3, 4], 5)  # levels 0, 123, 4
    chunks = models.split(triangle_inside, shared_bits=8, machines=1, roots=np.array([0]))
    assert models.count_triangles(triangle_inside, chunks) == tcgpu.count(triangle_inside) == 4
    assert models.printed_count(triangle_inside, chunks) == 5


def test_what_asks_for_the_same_memory_shares_it():
    maps = {name: models.memory_map(SPLIT, models.arrange(DELAUNAY, SPLIT, name)) for name in models.ARRANGEMENTS}
    assert any(len(chunks) > 1 for chunks in maps["one"].values())
    for name in ("redundant", "striped"):
        assert all(len(chunks) == 1 for chunks in maps[name].values())
    assert all(row % 8 == chunk % 8 for row, (chunk,) in maps["striped"].items())


def test_queues_are_the_load_of_the_partitions():
    asked = models.requests(SPLIT, models.arrange(DELAUNAY, SPLIT, "one"), hand_out="turns")
    load = models.partition_load(asked).transactions
    for moment in (0, 5):
        waiting = models.queues(asked, moment)
        assert [len(waiting[partition]) for partition in range(8)] == load[moment].tolist()


def test_a_half_warp_that_takes_turns_asks_for_fewer_segments():
    mesh = tcgpu.generate.mesh(40, 40)
    split = models.split(mesh, **CARD, roots=np.array([0]))
    asked = models.half_warp(split, models.arrange(mesh, split, "one"), chunk=20)
    segments = {way: np.unique(addresses // 128).size for way, addresses in asked.items()}
    assert all(addresses.shape == (16,) for addresses in asked.values())
    assert segments["ranges"] > 10 > segments["turns"]
