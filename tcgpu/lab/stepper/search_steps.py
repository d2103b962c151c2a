"""Methods that search: rows of the shorter column are looked up in the longer one by binary search.

All searches take the same number of steps, whatever they find: a frame is a step of all searches that are under way.
"""

from tcgpu.lab.stepper.frames import Tree, are, cells, counted, listed, positions

SEARCHES = 2  # of a lane at a time, where a warp has an edge for itself


def thread_search(builder, nonzeros):
    """A thread per nonzero: one search after the other. The nonzeros are shown one after the other."""
    for e in nonzeros:
        yield from _Searches(builder, e, "thread", 1, cached=False).frames()


def warp_search(builder, nonzeros, *, lanes=4, cached=True):
    """A warp of `lanes` lanes, 32 on a GPU: as many searches at a time, the top of the tree in shared memory.

    Edges with no more look-ups than lanes share a warp; here all nonzeros are shown one after the other.
    """
    for e in nonzeros:
        yield from _Searches(builder, e, "warp", lanes, cached).frames()


class _Searches:
    """The searches for one nonzero (i, j): each of `keys`, the shorter list of rows, in `rows`, the longer one."""

    def __init__(self, builder, e, owner, lanes, cached):
        self.builder, self.graph, self.owner, self.lanes = builder, builder.graph, owner, lanes
        self.nonzero = i, j = builder.ends(e)
        col_ptr = self.graph.col_ptr.tolist()
        after = f"column {j} after row {i}", range(e + 1, col_ptr[j + 1])
        whole = f"column {i}", range(col_ptr[i], col_ptr[i + 1])
        (self.short, short), (self.long, long) = (whole, after) if len(whole[1]) < len(after[1]) else (after, whole)
        self.keys, self.rows = (self.graph.row_idx[part.start : part.stop].tolist() for part in (short, long))
        self.rows_begin = long.start
        several = len(self.keys) > lanes > 1
        self.parts = lanes if several and cached else 1
        self.at_a_time = lanes * SEARCHES if several else lanes
        self.cached = self.parts.bit_length() - 1  # steps in shared memory
        self.steps, self.ends = search_tree(len(self.rows), self.parts) if self.keys else ([], [])
        self.hits = set()

    def frames(self):
        yield self._begin()
        if self.parts > 1 and self.keys:
            yield self._cache()
        for first in range(0, len(self.keys), self.at_a_time):
            now = range(first, min(first + self.at_a_time, len(self.keys)))
            at = [0] * len(now)  # the node that each search is at, by its number in its level
            for level, nodes in enumerate(self.steps):
                yield self._step(now, at, level)
                at = [2 * node + self._goes_right(nodes[node], self.keys[k]) for node, k in zip(at, now)]
            yield self._end(now, [self.ends[node] for node in at])

    def _begin(self):
        (i, j), keys = self.nonzero, len(self.keys)
        caption = f"A {self.owner} takes nonzero ({i}, {j}): "
        if keys:
            at_a_time = "one at a time" if self.lanes == 1 else f"{min(self.at_a_time, keys)} at a time"
            steps = f"each in {counted(len(self.steps), 'step')}" if self.steps else "each at once"
            caption += (
                f"{self.short} has {counted(keys, 'row')}, {self.long} has {len(self.rows)}. The rows of the first "
                f"are looked up in the second, {at_a_time}, {steps}."
            )
        else:
            caption += f"{self.short} has no row, so there is nothing to look up."
        return self._frame(caption)

    def _cache(self):
        brought = cached_positions(len(self.rows), self.parts)
        first = "first step" if self.cached == 1 else f"first {self.cached} steps"
        caption = (
            f"The {self.lanes} lanes copy evenly spaced rows of {self.long} to shared memory, one each: all that the "
            f"{first} of any search can read. The other steps search the part after one of these rows."
        )
        return self._frame(caption, reached=brought, read=brought)

    def _goes_right(self, position, key):
        return position < len(self.rows) and self.rows[position] <= key

    def _step(self, now, at, level):
        nodes, keys = self.steps[level], [self.keys[k] for k in now]
        right = [key for key, node in zip(keys, at) if self._goes_right(nodes[node], key)]
        left = [key for key in keys if key not in right]
        moves = [f"{listed(some)} {'go' if len(some) > 1 else 'goes'} {side}"
                 for some, side in ((left, "left"), (right, "right")) if some]  # fmt: skip
        probed = sorted({nodes[node] for node in at if nodes[node] < len(self.rows)})
        against = f"row {self.rows[probed[0]]}" if len(probed) == 1 else "the middle of its part"
        shared = level < self.cached
        caption = (
            f"Step {level + 1} of {len(self.steps)}, in {'shared' if shared else 'global'} memory. "
            f"{'The' if len(keys) == 1 else 'Every'} row is compared with {against}: {', '.join(moves)}."
        )
        there = [*keys, *(self.rows[k] for k in probed)]
        at = [2**level - 1 + node for node in at]  # among the nodes of all levels
        return self._frame(caption, now, at=at, read=() if shared else probed, there=there)

    def _end(self, now, ends):
        (i, j), keys = self.nonzero, [self.keys[k] for k in now]
        here = [key for key, end in zip(keys, ends) if self.rows[end] == key]
        self.hits |= set(here)
        who = "The search for {} ends at {}: " if len(keys) == 1 else "The searches for {} end at {}: "
        caption = who.format(listed(keys), listed(self.rows[end] for end in ends))
        if here:
            caption += f"{listed(here)} {are(here)} in both columns."
        else:
            caption += "that is another row." if len(keys) == 1 else "those are other rows."
        return self._frame(caption, now, reached=ends, there=keys, edges=[(key, v) for key in here for v in (i, j)],
                           found=[(j, i, key) for key in here], lookups=len(keys))  # fmt: skip

    def _frame(self, caption, now=range(0), *, at=(), reached=(), read=(), **more):
        """now: positions of the keys that are looked up; at: the node of the tree that each search is at.

        reached: positions of highlighted rows; read: of those that are read from global memory.
        """
        (i, j), room = self.nonzero, self.graph.max_column
        marks = {k: str(number % self.lanes) if self.lanes > 1 else "▲" for number, k in enumerate(now)}
        nodes = tuple((level, position) for level, step in enumerate(self.steps) for position in step)
        lanes = [" ".join(marks[k] for n, k in zip(at, now) if n == node) for node in range(len(nodes))]
        tree = Tree(
            nodes, tuple("looked" if node in at else "there" for node in range(len(nodes))),
            tuple(lanes) if self.lanes > 1 else ("",) * len(nodes), self.cached, deepest_tree(room, self.lanes),
        )  # fmt: skip
        hit = [k for k in positions(self.keys, self.hits) if k < now.stop]
        label = f"{self.short}, and which lane looks a row up" if self.lanes > 1 else self.short
        panels = (
            cells(label, self.keys, done=range(now.start), looked=now, hit=hit, marks=marks, room=room),
            cells(f"{self.long}, and the search tree over it", self.rows, looked=reached,
                  hit=positions(self.rows, self.hits), room=room, tree=tree),
            self.builder.row_idx((j, i), [self.rows_begin + k for k in read]),
        )  # fmt: skip
        title = f"{self.owner}, nonzero ({i}, {j})"
        return self.builder.frame(title, caption, panels, nonzero=self.nonzero, **more)


# ------------------------------------------------------------------------------------------------------ the search tree


def cached_positions(rows, parts):
    """The positions of the rows that are copied to shared memory: the first of each of `parts` equal parts."""
    return list(range(0, rows, -(-rows // parts)))


def search_tree(rows, parts=1):
    """The positions that a search may look at: a list for each step, from left to right; and where it may end.

    From node k of a step a search goes on to node 2k of the next, or to 2k + 1 if the row at node k is not past the
    one it looks for. The first steps, one for each halving of `parts`, look at the first rows of parts; position `rows`
    is past all rows.
    """
    part = -(-rows // parts)
    steps, begins, apart = [], [0], parts
    while apart > 1:
        apart //= 2
        steps.append([min((t + apart) * part, rows) for t in begins])
        begins = [t + more for t in begins for more in (0, apart)]
    ends, left = [min(t * part, rows - part) for t in begins], part
    while left > 1:
        half = left >> 1
        steps.append([end + half for end in ends])
        ends = [end + more for end in ends for more in (0, half)]
        left -= half
    return steps, ends


def deepest_tree(rows, lanes):
    """The most steps of a search among at most `rows` rows, with or without cached rows."""
    return max(len(search_tree(length, parts)[0]) for length in range(1, rows + 1) for parts in {1, min(lanes, length)})
