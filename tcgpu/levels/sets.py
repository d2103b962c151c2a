"""Algorithm 1: a graph cut into chunks, the vertices of a few consecutive levels of a breadth-first tree.

An edge joins vertices of one level or of two adjacent ones. So a triangle, or any clique, lies in two adjacent levels,
and a connected subgraph of k vertices in k consecutive ones: to find them all, only vertices of one chunk need be put
together. Each is found once, in the chunk whose first level is the first that it touches.

A chunk's vertices are numbered 0, 1, ... from its first level on. Then the combinations with at least one vertex of the
first level are those whose smallest number is below `first`, and they are the first `tests` of all combinations in
lexicographic order: an index below `tests` is all that a thread needs. In a component's last chunk any vertex may be
the smallest, which is Algorithm 2's "if this is the last set, the second level, too".

Which vertex is the root decides how large the chunks are. Algorithm 1 tries every vertex of a component until all
chunks fit shared memory; that is a search per vertex. Here at most `roots` are tried: the first vertex, one farthest
from it, one farthest from that (long trees have narrow levels), then some at random. The best leaves the fewest chunks
too large (equation 5), then wastes the least shared memory. Where no root makes all chunks fit, the printed algorithm
returns the component as it is, the text around it the best root's chunks; here it is the text that is followed.
"""

from dataclasses import dataclass
from functools import cached_property
from math import comb
from typing import NamedTuple

import numpy as np

from tcgpu.engines.native import jit
from tcgpu.errors import GraphError
from tcgpu.levels.search import Search
from tcgpu.levels.storage import bits_needed, known

MOST_TESTS = 2**63 - 1  # indices of combinations are int64


class Chunk(NamedTuple):
    """Vertices of consecutive levels."""

    component: int
    level: int  # the number of its first level
    vertices: np.ndarray
    first: int  # so many of them may be the smallest of a combination
    bits: int
    fits: bool  # in shared memory


@dataclass(frozen=True)
class Split:
    """A graph in chunks; what is told of every chunk is an array.

    `order` lists the vertices component after component, level after level, ascending inside a level; `place` is where
    each stands. Chunk c is `order[start[c] : start[c] + size[c]]`. Chunks of fewer than k vertices are left out.
    """

    k: int  # vertices of the subgraphs that are looked for
    levels: int  # levels of a chunk
    layout: str
    shared_bits: int
    machines: int
    order: np.ndarray  # int32, n
    level_ptr: np.ndarray  # int64: where each level begins in `order`, component after component
    roots: np.ndarray  # int32, one a component
    tried: np.ndarray  # int32, one a component: how many roots were tried
    start: np.ndarray  # int64
    size: np.ndarray  # int32
    first: np.ndarray  # int32
    component: np.ndarray  # int32
    level: np.ndarray  # int32

    def __len__(self):
        return self.start.size

    def __getitem__(self, c):
        if not 0 <= c < len(self):
            raise IndexError(f"there are {len(self)} chunks, none is number {c}")
        return Chunk(int(self.component[c]), int(self.level[c]), self.vertices(c), int(self.first[c]),
                     int(self.bits[c]), bool(self.fits[c]))  # fmt: skip

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
        return [comb(n, self.k) - comb(n - first, self.k) for n, first in zip(self.size.tolist(), self.first.tolist())]


def split(graph, k=3, *, levels=2, shared_bits=None, machines=None, layout="s-utm", roots=8, whole=False,
          search=None, seed=0):  # fmt: skip
    """Algorithm 1: a Split of `graph`, for subgraphs of k vertices that lie in `levels` consecutive levels.

    shared_bits, machines: what one multiprocessor's shared memory holds, and how many there are; those of the GPU at
    hand if not given. roots: the most that are tried for a component that does not fit as a whole, or an array of
    vertices: those of them that lie in it, else its first. whole: a component that fits stays one chunk, as
    Algorithm 1 has it; else it is cut, too, which leaves fewer combinations. search: what finds the levels; native,
    unless a GPU's is given (see `Search`). The result does not depend on it.
    """
    _check(k=k, levels=levels, **({} if isinstance(roots, np.ndarray) else {"roots": roots}))
    if shared_bits is None or machines is None:
        shared_bits, machines = _at_hand(shared_bits, machines)
    known(layout)
    search = search or Search(graph)
    component, level = search.forest()
    bits = bits_needed(np.bincount(component).astype(np.int64), layout)
    root = np.flatnonzero(np.diff(np.maximum.accumulate(component), prepend=-1)).astype(np.int32)
    tried = np.ones(root.size, np.int32)
    for large in np.flatnonzero(bits > shared_bits):
        members = np.flatnonzero(component == large)
        trials = _Trials(search, lambda sizes: cost(sizes, levels, shared_bits, machines, layout))
        if isinstance(roots, np.ndarray):
            for vertex in [v for v in roots if component[v] == large] or members[:1]:
                trials.attempt(vertex)
        else:
            trials.explore(members, roots, np.random.default_rng([seed, int(large)]))
        root[large], tried[large] = trials.root, trials.tried
        level[trials.vertices] = np.repeat(np.arange(trials.level_ptr.size - 1), np.diff(trials.level_ptr))
    order, level_ptr, depth = in_levels(component, level, root.size)
    chunks = _chunks(level_ptr, depth, np.where(whole & (bits <= shared_bits), depth, levels), k)
    return Split(k, levels, layout, int(shared_bits), int(machines), order, level_ptr, root, tried, *chunks)


def cost(sizes, levels, shared_bits, machines, layout="s-utm"):
    """What is against a root from which the levels have these sizes: of two roots, the one with less is better.

    How many chunks are too large for shared memory (equation 5), then how many bits of it the others waste. The paper's
    waste is that of `machines` chunks side by side; more chunks than that take several rounds of as many.
    """
    ends = np.concatenate(([0], np.cumsum(sizes)))
    span = min(levels, ends.size - 1)
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
    depth = np.zeros(components, np.int64)
    _depths(component, level, depth)
    base = np.concatenate(([0], np.cumsum(depth)))
    level_ptr = np.zeros(base[-1] + 1, np.int64)
    order = np.empty(component.size, np.int32)
    _order(component, level, base, level_ptr, order)
    return order, level_ptr, depth


def _chunks(level_ptr, depth, span, k):
    """start, size, first, component and level of every chunk of at least k vertices.

    A chunk begins at each level of a component from which `span` levels follow; in the last one of a component every
    vertex counts as one of the first level.
    """
    component = np.repeat(np.arange(depth.size, dtype=np.int32), depth)
    begins = np.cumsum(depth) - depth
    level = np.arange(component.size) - begins[component]
    last = np.maximum(depth - span, 0)[component]
    at = np.flatnonzero(level <= last)
    owner = component[at]
    end = np.minimum(at + span[owner], begins[owner] + depth[owner])
    size = level_ptr[end] - level_ptr[at]
    first = np.where(level[at] == last[at], size, level_ptr[at + 1] - level_ptr[at])
    kept = size >= k
    return (level_ptr[at][kept], size[kept].astype(np.int32), first[kept].astype(np.int32), owner[kept],
            level[at][kept].astype(np.int32))  # fmt: skip


def _check(**numbers):
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 1:
            raise GraphError(f"{name} is a whole number of at least 1, not {value!r}")


def _at_hand(shared_bits, machines):
    """What was not given, of the device at hand."""
    from tcgpu.engines import runtime

    facts = runtime.facts()
    return 8 * facts.shared_per_block if shared_bits is None else shared_bits, machines or facts.sms


@jit
def _depths(component, level, depth):
    for v in range(component.size):
        depth[component[v]] = max(depth[component[v]], level[v] + 1)


@jit
def _order(component, level, base, level_ptr, order):
    """Counting sort of the vertices by component and level."""
    for v in range(component.size):
        level_ptr[base[component[v]] + level[v] + 1] += 1
    for at in range(1, level_ptr.size):
        level_ptr[at] += level_ptr[at - 1]
    put = level_ptr[:-1].copy()
    for v in range(component.size):
        at = base[component[v]] + level[v]
        order[put[at]] = v
        put[at] += 1
