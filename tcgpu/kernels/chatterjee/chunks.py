"""Algorithm 1 of Chatterjee et al.: cut a graph into chunks, the vertices of two adjacent breadth-first levels.

An edge joins vertices of one level or of two adjacent ones. So every triangle lies in two adjacent levels. It is found
once, in the chunk whose first level is the first that it touches.

A chunk's vertices are numbered 0, 1, ... from its first level on. Then the combinations of three vertices with at least
one in the first level are those whose smallest number is below `first`, and they are the first `tests` of all
combinations in lexicographic order: an index below `tests` is all that a thread needs. In a component's last chunk any
vertex may be the smallest, which is Algorithm 2's "if this is the last set, the second level, too".

The root decides how large the chunks are. Algorithm 1 tries every vertex of a component until all chunks fit shared
memory; that is a search for each vertex. Here at most `roots` are tried: the first vertex, one farthest from it, one
farthest from that (long trees have narrow levels), then some at random. The best leaves the fewest chunks too large
(equation 5), then wastes the least shared memory. Where no root makes all chunks fit, the printed algorithm returns the
component as it is, the text around it the best root's chunks; this module follows the text.

A chunk's adjacency is a matrix of bits, stored row after row (the paper, section IV) in one of three layouts:

    matrix   all n x n bits; every edge is there twice
    utm      the upper triangle with the diagonal: n (n + 1) / 2 bits
    s-utm    the upper triangle without the diagonal: n (n - 1) / 2 bits
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from tcgpu.declarations import check_integer
from tcgpu.engines.native import jit
from tcgpu.errors import GraphError
from tcgpu.suggest import unknown

LAYOUTS = ("matrix", "utm", "s-utm")
WORD = 32  # bits in a word
ROW = 64  # words in 256 bytes, the width of a partition of memory
MOST_TESTS = 2**63 - 1


# ------------------------------------------------------------------------------------------------------------- layouts


def bits_needed(n, layout):
    """How many bits the adjacency of n vertices takes (equations 1 and 2)."""
    return {"matrix": n * n, "utm": n * (n + 1) // 2, "s-utm": n * (n - 1) // 2}[checked(layout)]


def position(i, j, n, layout):
    """Which bit tells whether i and j, i < j, are neighbours in a graph of n vertices; numbers or int64 arrays."""
    row = {"matrix": i * n, "utm": i * n - i * (i + 1) // 2, "s-utm": i * (n - 1) - i * (i + 1) // 2 - 1}
    return row[checked(layout)] + j


def words_needed(bits):
    """How many 32-bit words hold so many bits."""
    return -(-bits // WORD)


def checked(layout):
    """The layout; GraphError if there is none of that name."""
    if layout not in LAYOUTS:
        raise GraphError(unknown("layout", layout, LAYOUTS))
    return layout


# ------------------------------------------------------------------------------------------------------------ searches


class Search:
    """Breadth-first searches on one core. The search on a GPU (`breadth.Search`) has the same methods, and may find a
    level's vertices in another order: the chunks do not depend on it."""

    def __init__(self, graph):
        self.adjacency = graph.adjacency
        self.seen = np.zeros(graph.n, np.uint8)
        self.queue = np.empty(graph.n, np.int32)
        self.level_ptr = np.empty(graph.n + 1, np.int64)

    def forest(self):
        """`(component, level)` of every vertex (int32): a tree from the first vertex of each component.

        Components are numbered 0, 1, ... by their first vertices.
        """
        component, level = np.full((2, self.seen.size), -1, np.int32)
        _forest(*self.adjacency, self.queue, component, level)
        return component, level

    def __call__(self, root):
        """`(vertices, level_ptr)`: the vertices that `root` reaches, level by level (int32), and where levels begin.

        Level l is `vertices[level_ptr[l]:level_ptr[l + 1]]`, level 0 the root. It costs what it reaches, not n.
        """
        levels = _search(*self.adjacency, root, self.seen, self.queue, self.level_ptr)
        level_ptr = self.level_ptr[: levels + 1].copy()
        return self.queue[: level_ptr[-1]].copy(), level_ptr


@jit
def _search(indptr, indices, root, seen, queue, level_ptr):
    """Fill the queue and where its levels begin; returns how many there are. `seen` comes and leaves as zeros."""
    queue[0] = root
    seen[root] = 1
    levels, begin, end = 0, 0, 1
    while begin < end:
        level_ptr[levels] = begin
        levels += 1
        put = end
        for at in range(begin, end):
            for k in range(indptr[queue[at]], indptr[queue[at] + 1]):
                w = indices[k]
                if not seen[w]:
                    seen[w] = 1
                    queue[put] = w
                    put += 1
        begin, end = end, put
    level_ptr[levels] = end
    for at in range(end):
        seen[queue[at]] = 0
    return levels


@jit
def _forest(indptr, indices, queue, component, level):
    found = 0
    for root in range(component.size):
        if component[root] >= 0:
            continue
        queue[0] = root
        component[root] = found
        level[root] = 0
        done, seen = 0, 1
        while done < seen:
            v = queue[done]
            done += 1
            for k in range(indptr[v], indptr[v + 1]):
                w = indices[k]
                if component[w] < 0:
                    component[w] = found
                    level[w] = level[v] + 1
                    queue[seen] = w
                    seen += 1
        found += 1


# -------------------------------------------------------------------------------------------------------------- chunks


@dataclass(frozen=True)
class Split:
    """A graph in chunks: an array for each property of a chunk.

    `order` lists the vertices component after component, level after level, ascending inside a level; `place` is where
    each stands in it. Chunk c is `order[start[c] : start[c] + size[c]]`. Chunks of fewer than 3 vertices are left out.
    """

    layout: str
    shared_bits: int
    machines: int
    order: np.ndarray  # int32, n
    level_ptr: np.ndarray  # int64: where each level begins in `order`, component after component
    roots: np.ndarray  # int32, one a component
    tried: np.ndarray  # int32, one a component: how many roots were tried
    start: np.ndarray  # int64
    size: np.ndarray  # int32
    first: np.ndarray  # int32: so many of its vertices may be the smallest of a combination
    component: np.ndarray  # int32
    level: np.ndarray  # int32: the number of its first level

    def __len__(self):
        return self.start.size

    def vertices(self, c):
        return self.order[self.start[c] : self.start[c] + self.size[c]]

    @property
    def n(self):
        return self.order.size

    @cached_property
    def place(self):
        """Where each vertex stands in `order` (int32)."""
        place = np.empty(self.n, np.int32)
        place[self.order] = np.arange(self.n, dtype=np.int32)
        return place

    @cached_property
    def bits(self):
        """The size of each chunk's adjacency (int64)."""
        return bits_needed(self.size.astype(np.int64), self.layout)

    @property
    def fits(self):
        """Whether each chunk's adjacency fits shared memory."""
        return self.bits <= self.shared_bits

    @cached_property
    def tests(self):
        """How many combinations each chunk has to test (int64)."""
        tests = self._tests()
        if max(tests, default=0) > MOST_TESTS:
            raise GraphError(f"a chunk has {max(tests):,} combinations to test, more than 2^63")
        return np.array(tests, np.int64)

    @property
    def total_tests(self):
        """How many combinations there are to test in all, however many."""
        return sum(self._tests())

    @property
    def too_large(self):
        """How many chunks do not fit shared memory (equation 5)."""
        return int(np.count_nonzero(~self.fits))

    def _tests(self):
        return [comb(n, 3) - comb(n - first, 3) for n, first in zip(self.size.tolist(), self.first.tolist())]


def split(graph, *, shared_bits, machines, layout="s-utm", roots=8, search=None, seed=0):
    """Algorithm 1: a Split of `graph`.

    shared_bits, machines: the bits of one multiprocessor's shared memory, and how many multiprocessors there are.
    roots: the most that are tried for a component that does not fit as a whole, or an array of vertices: those of them
    that lie in it, else its first. search: what finds the levels; a native Search, unless a GPU's is given. The result
    does not depend on it.
    """
    if not isinstance(roots, np.ndarray):
        check_integer("roots", roots, 1, 2**31 - 1)
    checked(layout)
    search = search or Search(graph)
    component, level = search.forest()
    bits = bits_needed(np.bincount(component).astype(np.int64), layout)
    root = np.flatnonzero(np.diff(np.maximum.accumulate(component), prepend=-1)).astype(np.int32)
    tried = np.ones(root.size, np.int32)
    for large in np.flatnonzero(bits > shared_bits):
        members = np.flatnonzero(component == large)
        trials = _Trials(search, lambda sizes: cost(sizes, shared_bits, machines, layout))
        if isinstance(roots, np.ndarray):
            for vertex in [v for v in roots if component[v] == large] or members[:1]:
                trials.attempt(vertex)
        else:
            trials.explore(members, roots, np.random.default_rng([seed, int(large)]))
        root[large], tried[large] = trials.root, trials.tried
        level[trials.vertices] = np.repeat(np.arange(trials.level_ptr.size - 1), np.diff(trials.level_ptr))
    order, level_ptr, depth = in_levels(component, level, root.size)
    return Split(layout, int(shared_bits), int(machines), order, level_ptr, root, tried, *_chunks(level_ptr, depth))


def cost(sizes, shared_bits, machines, layout="s-utm"):
    """The cost of a root from which the levels have these sizes: of two roots, the one with less is better.

    How many chunks are too large for shared memory (equation 5), then how many bits of it the others waste. The paper's
    waste is that of `machines` chunks side by side; more chunks than that take several rounds of as many.
    """
    ends = np.concatenate(([0], np.cumsum(sizes)))
    span = min(2, ends.size - 1)
    bits = bits_needed(ends[span:] - ends[: ends.size - span], layout)
    fitting = bits[bits <= shared_bits]
    rounds = -(-fitting.size // machines)
    return bits.size - fitting.size, shared_bits * machines * rounds - int(fitting.sum())


class _Trials:
    """The roots of one component that were tried, and the best of them."""

    def __init__(self, search, rate):
        self.search, self.rate = search, rate
        self.tried, self.lowest = 0, None

    def attempt(self, root):
        """Search from a root and keep it if it is better; returns a vertex of its last level."""
        vertices, level_ptr = self.search(int(root))
        self.tried += 1
        cost = self.rate(np.diff(level_ptr))
        if self.lowest is None or cost < self.lowest:
            self.lowest, self.root, self.vertices, self.level_ptr = cost, root, vertices, level_ptr
        return vertices[level_ptr[-2] :].min()

    def explore(self, members, most, random):
        """Up to `most` of the component's members: the first, one at either end of it, others at random."""
        left = np.ones(members.size, bool)
        root = members[0]
        while self.tried < min(most, members.size):
            left[np.searchsorted(members, root)] = False
            farthest = np.searchsorted(members, self.attempt(root))
            if self.tried < 3 and left[farthest]:
                root = members[farthest]
            elif left.any():
                root = random.choice(members[left])


def in_levels(component, level, components):
    """The vertices by component and level, where each level begins, and how many levels each component has."""
    order = np.lexsort((level, component))
    begins = np.flatnonzero(np.diff(component[order], prepend=-1) | np.diff(level[order], prepend=-1))
    depth = np.bincount(component[order[begins]], minlength=components)
    return order.astype(np.int32), np.append(begins, order.size), depth


def _chunks(level_ptr, depth):
    """start, size, first, component and level of every chunk of at least 3 vertices.

    A chunk begins at each level of a component but the last, and at the only level of a component of one. In the last
    chunk of a component every vertex counts as one of the first level.
    """
    component = np.repeat(np.arange(depth.size, dtype=np.int32), depth)
    begins = np.cumsum(depth) - depth
    level = np.arange(component.size) - begins[component]
    last = np.maximum(depth - 2, 0)[component]
    at = np.flatnonzero(level <= last)
    owner = component[at]
    end = np.minimum(at + 2, begins[owner] + depth[owner])
    size = level_ptr[end] - level_ptr[at]
    first = np.where(level[at] == last[at], size, level_ptr[at + 1] - level_ptr[at])
    kept = size >= 3
    return (level_ptr[at][kept], size[kept].astype(np.int32), first[kept].astype(np.int32), owner[kept],
            level[at][kept].astype(np.int32))  # fmt: skip
