"""What a graph looks like, by its longest column and a sample of its edges: by which design it is counted."""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu.engines.forking import fork_safe_lock
from tcgpu.engines.native import LANES, jit, run_threads, shares

SHORT_COLUMN = 32  # where none is longer, comparing beats marking
DENSE = 12  # nonzeros per column from which packed words beat bits,
CLOSE = 0.5  # if there are no more words than this for each nonzero,
WITHIN = 0.75  # and of the edges (u, v) so many have no more than
NEIGHBOURS = 1 << 18  # nonzeros between them and the end of v's column
LONG_COLUMN = 64  # hubs pay where some column is as long,
HUB_ROWS = 16  # each is the row of so many edges,
HUB_SHARE = 0.25  # and together they are of so many
MOST_HUBS = 1 << 16
MOST_KEPT = 1 << 15  # with parts: 64 MB
STRETCHES, STRETCH = 64, 1 << 10  # of the edges that are looked at to tell words
SAMPLE = 1 << 12  # edges that are looked at to tell hubs
AND_WORDS = 4  # are as much work as a look-up of one bit
SHORT_EDGE, WORDS_EDGE, HUB_EDGE, MARKS_EDGE = 16, 16, 16, 40  # what an edge costs beside its look-ups, in look-ups
LINE = 8  # 64-bit words in a cache line: rows of bits start at whole lines

I64 = np.int64
U64 = np.uint64


class Hubs(NamedTuple):
    """The last vertices, from `base` on: their columns as bits.

    Vertex w is bit w - base; the row of a hub v starts at the line of words that holds v, since all of its column lies
    behind v: at `bits[start[v - base]]`.
    """

    base: int
    start: np.ndarray
    bits: np.ndarray


class Design(NamedTuple):
    """How a graph is counted: "short", "words" or "hubs", with hubs, of which there may be none."""

    name: str
    hubs: Hubs | None = None


_kept = WeakKeyDictionary()  # the graph that parts were counted of last -> its Design
_keeping = fork_safe_lock()


def design(graph, most_hubs=MOST_HUBS):
    """The Design for a graph."""
    name, base = chosen(graph, most_hubs)
    return Design(name, hub_rows(graph, base) if name == "hubs" else None)


def chosen(graph, most_hubs=MOST_HUBS):
    """The name of the design, and the first hub, by the longest column and some stretches of the edges."""
    if graph.max_column <= SHORT_COLUMN:
        return "short", graph.n
    if graph.n > hub_limit(graph, most_hubs) and graph.nonzeros_per_column >= DENSE:
        if words_per_nonzero(graph) <= CLOSE and _share_close(graph) >= WITHIN:
            return "words", graph.n
    return "hubs", _first_hub(graph, most_hubs)


def kept_design(graph):
    """The same for the parts of a graph, with rows of fewer hubs, which are kept until those of another are counted."""
    with _keeping:
        if graph not in _kept:
            _kept.clear()
            _kept[graph] = design(graph, MOST_KEPT)
        return _kept[graph]


def hub_rows(graph, base):
    """The Hubs from vertex `base` on, a multiple of 64 or n."""
    hubs = graph.n - base
    start = np.zeros(hubs + 1, np.int64)
    np.cumsum(-(-hubs // 64) - np.arange(hubs) // 64 // LINE * LINE, out=start[1:])
    bits = np.zeros(int(start[-1]) + LINE, np.uint64)
    run_threads(_fill_hub_rows, graph.col_ptr, graph.row_idx, base, start, bits, workers=shares(bits.size))
    return Hubs(base, start, bits)


def edge_work(graph, positions, rows, columns):
    """The work that single edges are in a part of a graph, by the design that it is counted by, in look-ups.

    Given where each is in the list, its v, and its u.
    """
    name, base = chosen(graph, MOST_KEPT)
    length = graph.col_ptr[rows + 1] - graph.col_ptr[rows]
    behind = graph.col_ptr[columns + 1] - 1 - positions
    if name == "short":
        return SHORT_EDGE + behind * -(-length // LANES)
    if name == "words":
        return WORDS_EDGE + length * max(words_per_nonzero(graph), 1 / 64)
    words = (graph.n - rows) // 64 + LINE
    hub = HUB_EDGE + np.where(behind * AND_WORDS > words, words // 2, behind)
    return np.where(rows < base, MARKS_EDGE + length, hub)


def words_per_nonzero(graph):
    """How many 64-bit words hold a column's rows, for each of them: by some stretches of `row_idx`."""
    return _changes_of_word(graph.row_idx, STRETCHES, STRETCH)


def _share_close(graph):
    """Of how many edges (u, v) the columns of u and v lie so close that a window of `counts` holds both."""
    if graph.m < NEIGHBOURS:
        return 1.0
    edges = np.linspace(0, graph.m - 1, SAMPLE, dtype=np.int64)
    return np.mean(graph.col_ptr[graph.row_idx[edges] + 1] - edges < NEIGHBOURS)


def hub_limit(graph, most=MOST_HUBS):
    return min(int(4 * graph.m**0.5), most)  # so many rows take a byte an edge


def _first_hub(graph, most):
    """From which vertex on they are hubs, by a sample of the edges; n if there are none worth it."""
    if graph.max_column < LONG_COLUMN:
        return graph.n
    step = max(1, graph.m // SAMPLE)
    place = np.sort(graph.n - graph.row_idx[step // 2 :: step])  # 1 is the last vertex
    hubs = min(hub_limit(graph, most), graph.n)
    while hubs and step * np.diff(np.searchsorted(place, [hubs // 2, hubs], side="right"))[0] < HUB_ROWS * hubs // 2:
        hubs = hubs * 3 // 4
    if np.searchsorted(place, hubs, side="right") < HUB_SHARE * place.size:
        return graph.n
    return (graph.n - hubs) // 64 * 64


@jit
def _fill_hub_rows(worker, workers, col_ptr, row_idx, base, start, bits):
    for hub in range(worker, start.size - 1, workers):
        row_at = start[U64(hub)] - hub // 64 // LINE * LINE
        put, word = hub >> 6, U64(0)
        for k in range(col_ptr[U64(base + hub)], col_ptr[U64(base + hub + 1)]):
            bit = I64(row_idx[U64(k)]) - base
            if bit >> 6 != put:
                bits[U64(row_at + put)] = word
                put, word = bit >> 6, U64(0)
            word |= U64(1) << U64(bit & 63)
        bits[U64(row_at + put)] = word


@jit
def _changes_of_word(row_idx, stretches, stretch):
    """How often a row lies in another 64-bit word than the one before it, as a share, in some stretches of the list."""
    changes = pairs = 0
    for number in range(stretches):
        first = max(row_idx.size - stretch, 0) * number // max(stretches - 1, 1)
        last = min(row_idx.size, first + stretch)
        for k in range(first + 1, last):
            changes += row_idx[U64(k)] >> 6 != row_idx[U64(k - 1)] >> 6
        pairs += last - first - 1
    return changes / max(pairs, 1)
