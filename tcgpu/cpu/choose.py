"""Choose the design that counts a graph, by its longest column and a sample of its edges.

Costs here and in `orders` are in look-ups: 1 is the time to test one row in a bitmap.
"""

from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from tcgpu import cpu_costs as costs
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.engines.native import CACHE_LINE, I64, LANES, U64, jit, run_threads, shares

MOST_PACKED = 1 << 23  # nonzeros whose words are packed at a time
MAX_HUBS = 1 << 14  # their rows take 16 MB; those of more hubs take longer to read than they save
MAX_KEPT_HUBS = 1 << 15  # for counts in parts, which keep the rows: 64 MB, and count no edges later
SAMPLES, SAMPLE_ROWS = 64, 1 << 10  # runs of `row_idx` that are read to estimate words per nonzero
SAMPLE_EDGES = 1 << 12  # edges that are read to estimate the other shares


class Hubs(NamedTuple):
    """The columns of the last vertices, from `base` on, as rows of bits.

    Vertex w is bit w - base. All rows of hub v's column are larger than v, so the hub's row of bits begins with the
    cache line that holds bit v - base, at `bits[start[v - base]]`.
    """

    base: int
    start: np.ndarray
    bits: np.ndarray


class Design(NamedTuple):
    """How a graph is counted: "short", "words" or "hubs"; the last has Hubs, of which there may be none."""

    name: str
    hubs: Hubs | None = None


_names = WeakKeyDictionary()  # a graph -> {max_hubs: the result of `design_name`}
_words = WeakKeyDictionary()  # a graph -> the result of `words_per_nonzero`
_kept = WeakKeyDictionary()  # the graph whose parts were counted last -> its Design
_kept_lock = fork_safe_lock()


def design(graph, max_hubs=MAX_HUBS):
    """The Design for a graph."""
    name, base = design_name(graph, max_hubs)
    return Design(name, hub_rows(graph, base) if name == "hubs" else None)


def kept_design(graph):
    """The Design for the parts of a graph; kept until the parts of another graph are counted."""
    with _kept_lock:
        if graph not in _kept:
            _kept.clear()
            _kept[graph] = design(graph, MAX_KEPT_HUBS)
        return _kept[graph]


def design_name(graph, max_hubs=MAX_HUBS):
    """The name of a graph's design, and its first hub (n if there is none); kept for later calls."""
    known = _names.setdefault(graph, {})
    if max_hubs not in known:
        known[max_hubs] = _new_design_name(graph, max_hubs)
    return known[max_hubs]


def _new_design_name(graph, max_hubs):
    if graph.max_column <= costs.SHORTEST:
        return "short", graph.n
    short = graph.max_column <= costs.SHORT_COLUMN
    edges = sample_of_edges(graph)
    rows = graph.row_idx[edges]
    lengths = graph.col_ptr[rows + 1] - graph.col_ptr[rows]
    base = graph.n if short else first_hub(graph, graph.n - rows, lengths, graph.max_column, max_hubs)
    most_words = min(costs.DENSE_WORDS[0], costs.DENSE_WORDS[1] * lengths.mean()) if base == graph.n else 0
    if graph.nonzeros_per_column >= costs.WORDS_COLUMN and not short:
        most_words = costs.WORDS_PER_NONZERO
    if graph.n > hub_limit(graph, max_hubs) and words_per_nonzero(graph) < most_words:
        near = graph.m < costs.NEIGHBOURS or np.median(graph.col_ptr[rows + 1] - edges) < costs.NEIGHBOURS
        packed = graph.m <= MOST_PACKED and base == graph.n and max_hubs == MAX_HUBS  # all words at once
        if near or packed and graph.m * _words_of_all(graph) <= costs.CACHED_WORDS:
            return "words", graph.n
    return ("short" if short else "hubs"), base


def hub_limit(graph, max_hubs=MAX_HUBS):
    """The most hubs of a graph: their rows of bits take at most a byte for each edge."""
    return min(int(4 * graph.m**0.5), max_hubs)


def words_per_nonzero(graph):
    """An estimate of the non-zero 64-bit words per nonzero in the columns of v, of all edges (u, v); kept.

    It is the lesser one of all columns, and of some v if there is no gap between the words of a column.
    """
    if graph not in _words:
        v = graph.row_idx[sample_of_edges(graph)]
        first, last = graph.col_ptr[v], graph.col_ptr[v + 1] - 1
        span = (graph.row_idx[last] >> 6) - (graph.row_idx[np.minimum(first, graph.m - 1)] >> 6) + 1
        spans = np.minimum(last + 1 - first, np.maximum(span, 0)).sum() / max(1, (last + 1 - first).sum())
        _words[graph] = min(_words_of_all(graph), spans)
    return _words[graph]


def _words_of_all(graph):
    """An estimate of the non-zero words in all columns, per nonzero."""
    rows = min(SAMPLE_ROWS, graph.m)
    first = np.linspace(0, graph.m - rows, SAMPLES).astype(np.int64)
    words = np.lib.stride_tricks.sliding_window_view(graph.row_idx, rows)[first] >> 6
    return np.count_nonzero(np.diff(words)) / (SAMPLES * max(rows - 1, 1))


def sample_of_edges(graph):
    """The positions of SAMPLE_EDGES edges or more, one of each range of edges: as if random, to miss no pattern."""
    step = max(1, graph.m // SAMPLE_EDGES)
    first = np.arange(0, graph.m, step, np.int64)  # in a browser whole numbers have 32 bits otherwise
    return np.minimum(first + ((first + 1) * 0x9E3779B1 >> 16) % step, graph.m - 1)


def first_hub(graph, place, lengths, max_column, max_hubs):
    """The first hub, a multiple of 64, estimated from a sample of the edges; n if hubs do not pay.

    place: how many vertices there are from v on, for each edge (u, v) of `sample_of_edges`. lengths: of v's columns.
    """
    if max_column < costs.LONG_COLUMN:
        return graph.n
    saved = np.maximum(lengths - costs.HUB_WORD * (place // 64), 0)
    by_place = np.argsort(place)
    place, step = place[by_place], max(1, graph.m // SAMPLE_EDGES)
    hubs = min(hub_limit(graph, max_hubs), graph.n)
    while hubs:
        in_first_half = step * np.diff(np.searchsorted(place, [hubs // 2, hubs], side="right"))[0]
        if in_first_half >= costs.EDGES_PER_HUB * hubs // 2:
            break
        hubs = hubs * 3 // 4
    if saved[by_place[: np.searchsorted(place, hubs, side="right")]].sum() < costs.HUBS_SAVE * place.size:
        return graph.n
    return (graph.n - hubs) // 64 * 64


def hub_rows(graph, base):
    """The Hubs from vertex `base` on, a multiple of 64 or n."""
    hubs = graph.n - base
    start = np.zeros(hubs + 1, np.int64)
    np.cumsum(-(-hubs // 64) - np.arange(hubs) // 64 // CACHE_LINE * CACHE_LINE, out=start[1:])
    bits = np.zeros(int(start[-1]) + CACHE_LINE, np.uint64)
    run_threads(_fill_hub_rows, graph.col_ptr, graph.row_idx, base, start, bits, workers=shares(bits.size))
    return Hubs(base, start, bits)


def edge_work(graph, positions, rows, columns):
    """The estimated cost of edges (u, v), v in `rows`, in a count in parts: a `work` of `distributed.slices`."""
    name, base = design_name(graph, MAX_KEPT_HUBS)
    length = graph.col_ptr[rows + 1] - graph.col_ptr[rows]
    after = graph.col_ptr[columns + 1] - 1 - positions  # rows of u's column after v
    if name == "short":
        return costs.PART_EDGE + after * -(-length // LANES)
    if name == "words":
        return costs.PART_EDGE + length * max(words_per_nonzero(graph), 1 / 64)
    words = (graph.n - rows) // 64 + CACHE_LINE
    hub = costs.PART_EDGE + np.where(after * costs.AND_WORDS > words, words // 2, after)
    return np.where(rows < base, costs.BITMAP_EDGE + length, hub)


@jit
def _fill_hub_rows(worker, workers, col_ptr, row_idx, base, start, bits):
    for hub in range(worker, start.size - 1, workers):
        bits_at = start[U64(hub)] - hub // 64 // CACHE_LINE * CACHE_LINE
        put, word = hub >> 6, U64(0)
        for k in range(col_ptr[U64(base + hub)], col_ptr[U64(base + hub + 1)]):
            bit = I64(row_idx[U64(k)]) - base
            if bit >> 6 != put:
                bits[U64(bits_at + put)] = word
                put, word = bit >> 6, U64(0)
            word |= U64(1) << U64(bit & 63)
        bits[U64(bits_at + put)] = word
