"""Bits of adjacency: how many, how large a graph fits, and that every bit is where it is said to be."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tcgpu
from tcgpu import GraphError, levels
from tcgpu.datasets import published
from tcgpu.engines import runtime
from tcgpu.levels.storage import row_of, row_start, words_needed

CARDS = {card["card"]: card for card in published("levels_cards")}
CLUB_LIKE = tcgpu.generate.barabasi_albert(40, 3, seed=5)
PARTS = tcgpu.Graph.from_edges([0, 1, 2, 5, 5, 6, 8], [1, 2, 0, 6, 7, 7, 9], 12)  # two triangles, an edge, loners


@pytest.mark.parametrize("row", published("levels_sizes"), ids=lambda row: "-".join(map(str, row.values())))
def test_table_two_to_the_digit(row):
    card = CARDS[row["card"]]
    bits = {"shared": card["shared_kb"] << 13, "global": card["global_gb"] << 33}[row["memory"]]
    assert levels.max_vertices(bits, row["layout"]) == row["vertices"]


@given(st.integers(0, 2**80), st.sampled_from(levels.LAYOUTS))
def test_one_vertex_more_does_not_fit(bits, layout):
    n = levels.max_vertices(bits, layout)
    assert levels.bits_needed(n, layout) <= bits < levels.bits_needed(n + 1, layout)


@given(st.integers(0, 2**80))
def test_without_the_diagonal_there_is_room_for_one_more(bits):
    assert levels.max_vertices(bits, "s-utm") == levels.max_vertices(bits, "utm") + 1


def test_limits_are_those_of_a_card_and_of_the_device_at_hand():
    card = SimpleNamespace(shared_per_block=16 << 10, memory_bytes=4 << 30)
    assert levels.limits(card)["shared"] == {"matrix": 362, "utm": 511, "s-utm": 512}
    assert levels.limits(card)["global"] == {"matrix": 185_363, "utm": 262_143, "s-utm": 262_144}
    facts = runtime.facts()
    assert levels.limits() == levels.limits(facts)
    here = levels.limits()["shared"]["s-utm"]
    assert here * (here - 1) // 2 <= 8 * facts.shared_per_block < here * (here + 1) // 2


@pytest.mark.parametrize("layout", levels.LAYOUTS)
@pytest.mark.parametrize("n", [1, 2, 3, 10, 33])
def test_positions_are_every_bit_once_row_after_row(layout, n):
    diagonal = {"matrix": None, "utm": 0, "s-utm": 1}[layout]
    i, j = np.indices((n, n)).reshape(2, -1) if diagonal is None else np.triu_indices(n, diagonal)
    assert levels.position(i, j, n, layout).tolist() == list(range(levels.bits_needed(n, layout)))
    kind = levels.LAYOUTS.index(layout)
    assert [row_of(row, n, kind) for row in range(n)] == [row_start(row, n, layout) for row in range(n)]


@pytest.mark.parametrize("layout", levels.LAYOUTS)
@pytest.mark.parametrize("vertices", [None, [7, 5, 6, 2, 0], []], ids=["all", "some", "none"])
@pytest.mark.parametrize("graph", [CLUB_LIKE, PARTS], ids=["connected", "parts"])
def test_packed_bits_are_the_edges(graph, vertices, layout):
    words = levels.pack(graph, vertices, layout)
    chosen = np.arange(graph.n) if vertices is None else np.array(vertices, int)
    dense = graph.to_scipy().toarray()[np.ix_(chosen, chosen)]
    assert words.dtype == np.uint32 and words.size == words_needed(levels.bits_needed(chosen.size, layout))
    i, j = np.triu_indices(chosen.size, 1)
    bit = levels.position(i, j, chosen.size, layout)
    assert (words[bit // 32] >> (bit % 32).astype(np.uint32) & 1).tolist() == dense[i, j].tolist()
    bits_set = int(dense.sum()) // (1 if layout == "matrix" else 2)
    assert sum(word.bit_count() for word in words.tolist()) == bits_set


def test_more_bits_than_memory_are_refused():
    with pytest.raises(GraphError, match=r"bytes of adjacency bits are more than this machine's memory"):
        levels.pack(tcgpu.generate.empty(5_000_000))


@pytest.mark.parametrize("layout", levels.LAYOUTS)
@pytest.mark.parametrize("arrangement", levels.ARRANGEMENTS)
@pytest.mark.parametrize("graph", [CLUB_LIKE, PARTS, tcgpu.generate.road(12, 12, seed=1), tcgpu.generate.empty(4)],
                         ids=["one component", "parts", "many chunks", "no chunk"])  # fmt: skip
def test_every_arrangement_has_every_pair_of_every_chunk(graph, arrangement, layout):
    split = levels.split(graph, shared_bits=500, machines=4, layout=layout)
    arranged = levels.arrange(graph, split, arrangement, partitions=3)
    dense = graph.to_scipy().toarray()
    for c in range(len(split)):
        vertices = split.vertices(c)
        i, j = np.triu_indices(vertices.size, 1)
        assert (arranged.neighbours(c, i, j) == dense[vertices[i], vertices[j]]).all()


def test_what_the_arrangements_cost_and_where_they_put_chunks():
    graph = tcgpu.generate.road(40, 40, seed=2)
    split = levels.split(graph, shared_bits=1 << 17, machines=30)
    one, redundant, striped = (levels.arrange(graph, split, name) for name in levels.ARRANGEMENTS)
    assert one.words.size == words_needed(levels.bits_needed(graph.n, "s-utm"))
    assert redundant.words.nbytes == sum(-(-bits // 2048) * 256 for bits in split.bits.tolist())
    assert redundant.words.nbytes <= striped.words.nbytes
    assert not (redundant.first_bit % 2048).any()
    for c in range(len(split)):
        i, j = np.triu_indices(split.size[c], 1)
        assert set(striped.bit(c, i, j) // 2048 % 8) == {c % 8}


def test_the_room_and_its_verbs_are_there_without_asking():
    assert tcgpu.levels is levels
    assert (tcgpu.count_subgraphs, tcgpu.is_triangle_free) == (levels.count_subgraphs, levels.is_triangle_free)
    assert {"levels", "count_subgraphs", "is_triangle_free"} <= set(dir(tcgpu))
    assert all(hasattr(levels, name) for name in levels.__all__)


def test_names_that_are_none_are_refused():
    split = levels.split(PARTS, shared_bits=500, machines=4)
    for call in (
        lambda: levels.max_vertices(8, "lower"),
        lambda: levels.split(PARTS, shared_bits=500, machines=4, layout="lower"),
        lambda: levels.arrange(PARTS, split, "lower"),
    ):
        with pytest.raises(GraphError, match="no (layout|arrangement) 'lower'; there are .*, "):
            call()
    with pytest.raises(GraphError, match="at least 0 bits, not -1"):
        levels.max_vertices(-1, "utm")
