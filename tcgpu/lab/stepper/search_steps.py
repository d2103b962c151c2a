"""Methods that search: the rows of the shorter column are looked up in the longer one, by halving what is left of it.

All lanes take the same number of steps, whatever they find: a frame is a step of all searches that are under way.
"""

from tcgpu.lab.stepper.frames import Cells, Tree, are, counted, listed, looks, where
from tcgpu.lab.stepper.merge_steps import ends, memory

UNDER_WAY = 2  # searches of a lane, where a warp has an edge for itself


def thread_search(recorder, nonzeros):
    """A thread a nonzero: one search after the other. Nonzeros are played one after the other, too."""
    for e in nonzeros.tolist():
        yield from _Searches(recorder, e, "thread", 1, cached=False).played()


def warp_search(recorder, nonzeros, *, lanes=4, cached=True):
    """A warp of `lanes` lanes, 32 on a GPU: as many searches at a time, the top of the tree in shared memory.

    Edges with no more look-ups than lanes share a warp; here they are played one after the other, like all nonzeros.
    """
    for e in nonzeros.tolist():
        yield from _Searches(recorder, e, "warp", lanes, cached).played()


class _Searches:
    """The searches for one nonzero (i, j): of `keys` in `rows`."""

    def __init__(self, recorder, e, who, lanes, cached):
        self.recorder, self.graph, self.who, self.lanes = recorder, recorder.scene.graph, who, lanes
        self.nonzero = i, j = ends(self.graph, e)
        col_ptr = self.graph.col_ptr
        behind = f"column {j} behind row {i}", e + 1, int(col_ptr[j + 1])
        whole = f"column {i}", int(col_ptr[i]), int(col_ptr[i + 1])
        shorter, longer = (whole, behind) if whole[2] - whole[1] < behind[2] - behind[1] else (behind, whole)
        self.short, self.key_at, key_end = shorter
        self.long, self.row_at, row_end = longer
        self.keys = self.graph.row_idx[self.key_at : key_end].tolist()
        self.rows = self.graph.row_idx[self.row_at : row_end].tolist()
        many = len(self.keys) > lanes > 1
        self.parts = lanes if many and cached else 1
        self.at_a_time = lanes * UNDER_WAY if many else lanes
        self.tree, self.ends = search_tree(len(self.rows), self.parts) if self.keys else ([], [])
        self.title = f"{who}, nonzero ({i}, {j})"

    def played(self):
        yield self._begun()
        if self.parts > 1 and self.keys:
            yield self._brought()
        hits = set()
        for first in range(0, len(self.keys), self.at_a_time):
            now = range(first, min(first + self.at_a_time, len(self.keys)))
            at = [0] * len(now)  # which node of its level each search is at
            for level, nodes in enumerate(self.tree):
                yield self._step(now, at, level, hits)
                at = [2 * node + self._goes_right(nodes[node], self.keys[k]) for node, k in zip(at, now)]
            yield self._ended(now, [self.ends[node] for node in at], hits)

    def _begun(self):
        i, j = self.nonzero
        if self.keys:
            sizes = f"{self.short} has {counted(len(self.keys), 'row')}, {self.long} has {len(self.rows)}"
            at_a_time = "one at a time" if self.lanes == 1 else f"{min(self.at_a_time, len(self.keys))} at a time"
            steps = f"each in {counted(len(self.tree), 'step')}" if self.tree else "each at once"
            caption = (
                f"A {self.who} takes nonzero ({i}, {j}): {sizes}. The rows of the former are looked up in the latter, "
                f"{at_a_time}, {steps}."
            )
        else:
            caption = f"A {self.who} takes nonzero ({i}, {j}): {self.short} has no row, so there is nothing to look up."
        return self.recorder.frame(self.title, caption, self.panels(), nonzero=self.nonzero)

    def _brought(self):
        places = top(len(self.rows), self.parts)
        steps = counted(self.parts.bit_length() - 1, "step")
        caption = (
            f"The {self.lanes} lanes bring evenly spaced rows of {self.long} to shared memory, one each: all that the "
            f"first {steps} of any search can ask for. The other steps are in the part that follows one of these."
        )
        panels = self.panels(reached=places, read=places)
        return self.recorder.frame(self.title, caption, panels, nonzero=self.nonzero)

    def _goes_right(self, place, key):
        return place < len(self.rows) and self.rows[place] <= key

    def _step(self, now, at, level, hits):
        nodes = self.tree[level]
        keys = [self.keys[k] for k in now]
        sides = {False: [], True: []}
        for key, node in zip(keys, at):
            sides[self._goes_right(nodes[node], key)].append(key)
        goes = [f"{listed(some)} {'go' if len(some) > 1 else 'goes'} {'right' if side else 'left'}"
                for side, some in sides.items() if some]  # fmt: skip
        probed = sorted({nodes[node] for node in at if nodes[node] < len(self.rows)})
        against = f"row {self.rows[probed[0]]}" if len(probed) == 1 else "the middle of what is left"
        near = level < self.parts.bit_length() - 1
        who = "The row is" if len(keys) == 1 else "Every row is"
        caption = (
            f"Step {level + 1} of {len(self.tree)}, in {'shared' if near else 'global'} memory. "
            f"{who} compared with {against}: {', '.join(goes)}."
        )
        panels = self.panels(now, hits, level=level, at=at, read=() if near else probed)
        there = [*keys, *(self.rows[place] for place in probed)]
        return self.recorder.frame(self.title, caption, panels, nonzero=self.nonzero, there=there)

    def _ended(self, now, places, hits):
        (i, j), keys = self.nonzero, [self.keys[k] for k in now]
        here = [key for key, place in zip(keys, places) if self.rows[place] == key]
        hits |= set(here)
        end = "The search for {} ends at {}: " if len(keys) == 1 else "The searches for {} end at {}: "
        caption = end.format(listed(keys), listed(self.rows[place] for place in places))
        if here:
            caption += f"{listed(here)} {are(here)} in both columns."
        else:
            caption += "that is another row." if len(keys) == 1 else "those are other rows."
        panels = self.panels(now, hits, reached=places)
        return self.recorder.frame(
            self.title, caption, panels, nonzero=(i, j), there=keys, edges=[(key, v) for key in here for v in (i, j)],
            found=[(j, i, key) for key in here], lookups=len(keys),
        )  # fmt: skip

    def panels(self, now=range(0), hits=(), *, level=None, at=(), reached=(), read=()):
        """now: which keys are looked up; level, at: at which nodes of the tree; reached: rows that stand out."""
        graph, (i, j) = self.graph, self.nonzero
        lane = {k: str(place % self.lanes) if self.lanes > 1 else "▲" for place, k in enumerate(now)}
        nodes = [(depth, place) for depth, places in enumerate(self.tree) for place in places]
        first = 0 if level is None else 2**level - 1  # of the level's nodes
        there = [" ".join(lane[k] for node, k in zip(at, now) if first + node == n) for n in range(len(nodes))]
        tree = Tree(
            tuple(nodes),
            looks(len(nodes), looked=[first + node for node in at]),
            tuple(there) if self.lanes > 1 else ("",) * len(nodes),
            self.parts.bit_length() - 1,
            deepest_tree(graph.max_column, self.lanes),
        )
        keys = looks(
            len(self.keys), done=range(now.start), looked=now, hit=[k for k in where(self.keys, hits) if k < now.stop]
        )
        rows = looks(len(self.rows), looked=reached, hit=where(self.rows, hits))
        said = ", and which lane looks a row up" if self.lanes > 1 else ""
        room = graph.max_column
        return (
            Cells(f"{self.short}{said}", tuple(self.keys), keys, marks=lane, room=room),
            Cells(
                f"{self.long}, and the search tree over it", tuple(self.rows), rows, room=room, tree=tree, marked=False
            ),
            memory(graph, (j, i), [self.row_at + place for place in read]),
        )


# ------------------------------------------------------------------------------------------------------ the search tree


def part_of(rows, parts):
    """How many rows a part has, if the rows are cut into so many; the last ones may have fewer, or none."""
    return -(-rows // parts)


def top(rows, parts):
    """The places of the rows that are brought to shared memory: where each part begins."""
    return list(range(0, rows, part_of(rows, parts)))


def search_tree(rows, parts=1):
    """The places that a search may look at: a list for each step, from left to right; and where it may end.

    From node k of a step it goes on to node 2k of the next, or to 2k + 1 if the row there is not past its own.
    The first steps, one for each halving of `parts`, look at where parts begin; a place of `rows` is past all rows.
    """
    part = part_of(rows, parts)
    steps, begins, apart = [], [0], parts
    while apart > 1:
        apart //= 2
        steps.append([min((t + apart) * part, rows) for t in begins])
        begins = [t + more for t in begins for more in (0, apart)]
    places, left = [min(t * part, rows - part) for t in begins], part
    while left > 1:
        half = left >> 1
        steps.append([place + half for place in places])
        places = [place + more for place in places for more in (0, half)]
        left -= half
    return steps, places


def deepest_tree(rows, lanes):
    """The most steps that a search among up to so many rows takes, with or without a cache."""
    return max(len(search_tree(length, parts)[0]) for length in range(1, rows + 1) for parts in {1, min(lanes, length)})
