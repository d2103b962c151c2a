"""Algorithm 1 of Chatterjee et al.: split a graph into chunks, each the vertices of two adjacent breadth-first levels.

An edge joins vertices of one level or of two adjacent levels. So every triangle lies in two adjacent levels. It is
counted once, in the chunk whose first level has at least one of its vertices.

The vertices of a chunk are numbered 0, 1, ... from its first level on. The combinations of three vertices with at least
one in the first level are those whose smallest number is below `first`. They are the first `tests` combinations in
lexicographic order, so a thread needs only an index below `tests`. In the last chunk of a component all combinations
are tested, as in Algorithm 2: "if this is the last set, the second level, too".

For subgraphs of k vertices instead of triangles, a chunk may have another number of levels, its `width`, and the
combinations are those of k vertices: see `combinations.py`.

The root decides how large the chunks are. Algorithm 1 tries every vertex of a component until all chunks fit shared
memory: a search for each vertex. Here at most `roots` are tried: the first vertex, one farthest from it (long trees
have narrow levels), and others at equal distances. The best root leaves the fewest chunks too large (equation 5), then
wastes the least shared memory, then has the fewest combinations. Where no root makes all chunks fit, the printed
algorithm returns the whole component, the text around it the best root's chunks; this module follows the text, and the
printed algorithm if `roots` is None: a component that fits is one chunk, else the first root whose chunks all fit is
taken, and without one the component is a chunk that is too large.

The edges of a chunk are a matrix of bits, stored row after row (section IV of the paper) in one of three layouts:

    matrix   all n x n bits
    utm      the upper triangle with the diagonal: n (n + 1) / 2 bits
    s-utm    the upper triangle without the diagonal: n (n - 1) / 2 bits
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from tcgpu.arrays import bincount, repeat
from tcgpu.built_in import LAYOUTS
from tcgpu.declarations import check_choice, check_integer
from tcgpu.engines.choice import NUMBA
from tcgpu.engines.native import jit
from tcgpu.errors import GraphError

WORD = 32  # bits in a word
ROW = 64  # words in 256 bytes, the width of a partition of memory
MAX_TESTS = 2**63 - 1


# ------------------------------------------------------------------------------------------------------------- layouts


def bits_needed(n, layout):
    """How many bits the matrix of n vertices takes (equations 1 and 2)."""
    check_choice("layout", layout, LAYOUTS)
    return {"matrix": n * n, "utm": n * (n + 1) // 2, "s-utm": n * (n - 1) // 2}[layout]


def position(i, j, n, layout):
    """The index of the bit for vertices i < j in the matrix of n vertices; numbers or int64 arrays."""
    return j + {"matrix": i * n, "utm": i * n - i * (i + 1) // 2, "s-utm": i * (n - 1) - i * (i + 1) // 2 - 1}[layout]


def words_needed(bits):
    """How many 32-bit words hold this number of bits."""
    return -(-bits // WORD)


# ------------------------------------------------------------------------------------------------------------ searches


class Search:
    """Breadth-first searches on one core; `breadth.Search` computes the scores of many roots on a GPU."""

    def __init__(self, graph):
        self.adjacency = graph.adjacency
        self.level, self.queue = np.full(graph.n, -1, np.int32), np.empty(graph.n, np.int32)

    def forest(self):
        """`(component, level)` of each vertex (int32), by a search from the first vertex of each component."""
        component, level = np.full((2, self.queue.size), -1, np.int32)
        _search_all(*self.adjacency, level, self.queue, component)
        return component, level

    def __call__(self, root):
        """The vertices that `root` reaches, level by level, and the level of each (both int32)."""
        reached = _search(*self.adjacency, root, self.level, self.queue)
        vertices = self.queue[:reached].copy()
        levels = self.level[vertices]
        self.level[vertices] = -1
        return vertices, levels

    def scores(self, roots, shared_bits, layout):
        """The `score` of each root's levels: int64, a row for each root."""
        return np.array([score(bincount(self(root)[1]), shared_bits, layout) for root in roots])


@jit
def _search(indptr, indices, root, level, queue):
    """Write the vertices reached into `queue`, their levels into `level` (-1 before); return how many there are."""
    queue[0] = root
    level[root] = 0
    done, reached = 0, 1
    while done < reached:
        v = queue[done]
        done += 1
        for k in range(indptr[v], indptr[v + 1]):
            w = indices[k]
            if level[w] < 0:
                level[w] = level[v] + 1
                queue[reached] = w
                reached += 1
    return reached


def _search_in_numpy(indptr, indices, root, level, queue):
    """As `_search`, a level at a time; within a level, vertices are in ascending order."""
    queue[0], level[root], depth, done, reached = root, 0, 0, 0, 1
    while done < reached:
        begin, depth = indptr[queue[done:reached]], depth + 1
        many = indptr[queue[done:reached] + 1] - begin
        near = indices[repeat(begin + many - np.cumsum(many), many) + np.arange(many.sum())]
        near = np.unique(near[level[near] < 0])
        level[near], queue[reached : reached + near.size] = depth, near
        done, reached = reached, reached + near.size
    return reached


if not NUMBA:
    _search = _search_in_numpy


@jit
def _search_all(indptr, indices, level, queue, component):
    components = 0
    for root in range(level.size):
        if level[root] < 0:
            for k in range(_search(indptr, indices, root, level, queue)):
                component[queue[k]] = components
            components += 1


def score(sizes, shared_bits, layout):
    """The chunks of levels of these sizes: how many are too large for shared memory, how many bits the others take, how
    many combinations there are to test, and how many levels."""
    size, second = sizes, np.zeros(1, np.int64)  # a single level is a chunk; in the last chunk all levels are the first
    if sizes.size > 1:
        size, second = sizes[:-1] + sizes[1:], np.append(sizes[1:-1], 0)
    bits = bits_needed(size, layout)
    fits = bits <= shared_bits
    tests = size * (size - 1) // 2 * (size - 2) // 3 - second * (second - 1) // 2 * (second - 2) // 3
    return np.count_nonzero(~fits), bits[fits].sum(), tests.sum(), sizes.size


def costs(scores, shared_bits, machines):
    """How many chunks are too large for shared memory (equation 5), and how many bits of it the others waste.

    The paper computes the waste of `machines` chunks that run at the same time; more chunks take several rounds.
    """
    too_large, bits, _, levels = scores.T
    fitting = np.maximum(levels - 1, 1) - too_large
    return too_large, shared_bits * machines * -(-fitting // machines) - bits


# -------------------------------------------------------------------------------------------------------------- chunks


@dataclass(frozen=True)
class Split:
    """A graph in chunks: an array for each property of a chunk.

    `order` lists the vertices by component, level and number. Chunk c is `order[start[c] : start[c] + size[c]]`. Chunks
    of fewer than k vertices are left out.
    """

    layout: str
    shared_bits: int
    machines: int
    order: np.ndarray  # int32, n
    level_ptr: np.ndarray  # int64: where each level begins in `order`, component after component
    roots: np.ndarray  # int32, one a component
    tried: np.ndarray  # int32, one a component: how many roots were tried
    start: np.ndarray  # int64
    size: np.ndarray  # int64
    first: np.ndarray  # int64: how many of its vertices may be the smallest of a combination
    component: np.ndarray  # int32
    level: np.ndarray  # int32: the number of its first level
    k: int = 3  # vertices of a combination

    def __len__(self):
        return self.start.size

    def vertices(self, c):
        return self.order[self.start[c] : self.start[c] + self.size[c]]

    @property
    def n(self):
        return self.order.size

    @cached_property
    def place(self):
        """The index of each vertex in `order` (int32)."""
        place = np.empty(self.n, np.int32)
        place[self.order] = np.arange(self.n, dtype=np.int32)
        return place

    @cached_property
    def bits(self):
        """The bits of each chunk's matrix (int64)."""
        return bits_needed(self.size, self.layout)

    @property
    def fits(self):
        """Whether each chunk's matrix fits shared memory."""
        return self.bits <= self.shared_bits

    @property
    def too_large(self):
        """How many chunks do not fit shared memory (equation 5)."""
        return int(np.count_nonzero(~self.fits))

    @cached_property
    def tests(self):
        """How many combinations of each chunk are tested (int64)."""
        tests = self._tests()
        if max(tests, default=0) > MAX_TESTS:
            raise GraphError(f"a chunk has {max(tests):,} combinations to test, more than 2^63")
        return np.array(tests, np.int64)

    @property
    def total_tests(self):
        """How many combinations are tested in all (int, of any size)."""
        return sum(self._tests())

    def _tests(self):
        sizes = zip(self.size.tolist(), self.first.tolist(), strict=True)
        return [comb(n, self.k) - comb(n - first, self.k) for n, first in sizes]


def split(graph, *, shared_bits, machines, layout="s-utm", roots=8, search=None, k=3, width=2):
    """Algorithm 1: a Split of `graph`.

    shared_bits, machines: the bits of one SM's shared memory, and the number of SMs. roots: how many are tried for a
    component that does not fit as a whole; or an array of vertices, of which those in the component are tried, or its
    first vertex if there are none; None for the algorithm as printed. search: a Search of the graph. k: the vertices of
    a combination. width: the levels of a chunk; the root that is taken is the best one for two levels.
    """
    printed = roots is None
    if not printed and not isinstance(roots, np.ndarray):
        check_integer("roots", roots, 1, 2**31 - 1)
    search = search or Search(graph)
    component, level = search.forest()
    best = np.flatnonzero(np.diff(np.maximum.accumulate(component), prepend=-1)).astype(np.int32)
    tried = np.ones(best.size, np.int32)
    level = np.zeros_like(level) if printed else level  # vertices of one level are one chunk
    for large in np.flatnonzero(bits_needed(bincount(component), layout) > shared_bits):
        members = np.flatnonzero(component == large)
        candidates = members if printed else _candidates(search, members, roots)
        scores = search.scores(candidates, shared_bits, layout)
        too_large, waste = costs(scores, shared_bits, machines)
        chosen = np.argmin(too_large > 0) if printed else np.lexsort((scores[:, 2], waste, too_large))[0]
        best[large], tried[large] = root, _ = candidates[chosen], candidates.size
        if printed and too_large[chosen]:
            continue
        vertices, levels = search(root)
        level[vertices] = levels
    order = np.lexsort((level, component)).astype(np.int32)
    level_ptr, *chunks = chunks_of_levels(order, component, level, k, width)
    return Split(layout, int(shared_bits), int(machines), order, level_ptr, best, tried, *chunks, k)


def _candidates(search, members, roots):
    """The roots to try for the component with the vertices `members`."""
    if isinstance(roots, np.ndarray):
        chosen = roots[np.isin(roots, members)]
        return chosen if chosen.size else members[:1]
    if roots >= members.size:
        return members
    chosen = members[np.linspace(0, members.size - 1, roots).astype(np.int64)]
    vertices, levels = search(members[0])
    chosen[1:2] = vertices[levels == levels[-1]].min()
    return chosen


def chunks_of_levels(order, component, level, k=3, width=2):
    """Where each level begins in `order`, then start, size, first, component and level of each chunk.

    A chunk is `width` consecutive levels of a component, or all levels if there are fewer.
    """
    component, level = component[order], level[order]
    begins = np.flatnonzero(np.diff(component, prepend=-1) | np.diff(level, prepend=-1))
    level_ptr = np.append(begins, order.size)
    component, level = component[begins], level[begins]
    levels = bincount(component)[component]  # in the component of each level
    at = np.flatnonzero(level <= np.maximum(levels - width, 0))
    start, size = level_ptr[at], level_ptr[at + np.minimum(levels[at], width)] - level_ptr[at]
    first = np.where(level[at] + width >= levels[at], size, level_ptr[at + 1] - start)
    kept = size >= k
    return level_ptr, *(array[kept] for array in (start, size, first, component[at], level[at]))
