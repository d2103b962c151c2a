"""Methods that search: rows of the shorter column are looked up in the longer one by binary search.

All searches take the same number of steps, whatever they find: a frame is a step of all searches in progress.
"""

import math

from tcgpu.lab.stepper.frames import RowIdx, Tree, counted, listed, positions

SEARCHES = 2  # of a lane at a time, if the whole warp works on one edge


def search(builder, e, owner, *, lanes=1, cached=False):
    """The searches for nonzero e = (i, j): each of `keys`, the shorter list of rows, in `rows`, the longer one.

    A thread does one search after the other. The lanes of a warp (32 on a GPU) search at the same time, with the top of
    the tree in shared memory if `cached`. On a GPU, edges with no more look-ups than lanes share a warp; here not.
    """
    i, j = builder.ends[e]
    after = f"column {j} after row {i}", range(e + 1, builder.col_ptr[j + 1])
    whole = f"column {i}", builder.span(i)
    (short, key_span), (long, span) = (whole, after) if len(whole[1]) < len(after[1]) else (after, whole)
    keys, rows = ([builder.row_idx[k] for k in part] for part in (key_span, span))
    several, hits = len(keys) > lanes > 1, set()
    parts = lanes if several and cached else 1
    at_a_time = lanes * SEARCHES if several else lanes
    cached_levels = parts.bit_length() - 1
    levels, ends = search_tree(len(rows), parts) if keys else ([], [])

    def frame(caption, now=range(0), *, at=(), reached=(), read=(), **more):
        """now: positions of the keys that are looked up; at: the node of the tree that each search is at.

        reached: positions of highlighted rows; read: of those that are read from global memory.
        """
        label = short
        marks, here = dict.fromkeys(now, "▲"), dict.fromkeys(at, "")
        if lanes > 1:
            label = f"{short}, and which lane looks a row up"
            marks = {k: str(number % lanes) for number, k in enumerate(now)}
            here = {node: " ".join(marks[k] for n, k in zip(at, now, strict=True) if n == node) for node in at}
        panels = (
            builder.cells(label, keys, done=range(now.start), looked=now, marks=marks,
                          hit=[k for k in positions(keys, hits) if k < now.stop]),
            builder.cells(f"{long}, and the search tree over it", rows, looked=reached, hit=positions(rows, hits),
                          tree=Tree(levels, here, cached_levels, (builder.graph.max_column - 1).bit_length())),
            RowIdx((j, i), [span.start + k for k in read]),
        )  # fmt: skip
        return builder.frame(f"{owner}, nonzero ({i}, {j})", caption, panels, nonzero=(i, j), **more)

    if not keys:
        yield frame(f"A {owner} takes nonzero ({i}, {j}): {short} has no row, so there is nothing to look up.")
        return
    yield frame(
        f"A {owner} takes nonzero ({i}, {j}): {short} has {counted(len(keys), 'row')}, {long} has {len(rows)}. The "
        f"rows of the first are looked up in the second, {min(at_a_time, len(keys))} at a time, each in "
        f"{counted(len(levels), 'step')}."
    )
    if parts > 1:
        copied = cached_positions(len(rows), parts)
        yield frame(
            f"The {lanes} lanes copy evenly spaced rows of {long} to shared memory, one each: all that the first "
            f"{counted(cached_levels, 'step')} of any search can read. The other steps search the part after one of "
            "these rows.", reached=copied, read=copied,
        )  # fmt: skip
    for first in range(0, len(keys), at_a_time):
        now = range(first, min(first + at_a_time, len(keys)))
        looked_up = [keys[k] for k in now]
        at = [0] * len(now)  # the node that each search is at, by its number in its level
        for level, nodes in enumerate(levels):
            probed = sorted({nodes[node] for node in at if nodes[node] < len(rows)})
            right = [key for key, node in zip(looked_up, at, strict=True) if [*rows, math.inf][nodes[node]] <= key]
            shared = level < cached_levels
            caption = (
                f"Step {level + 1} of {len(levels)}, in {'shared' if shared else 'global'} memory: comparisons with "
                f"{listed(rows[k] for k in probed)}. To the left: {listed(k for k in looked_up if k not in right)}. To "
                f"the right: {listed(right)}."
            )
            yield frame(caption, now, at=[2**level - 1 + node for node in at], read=() if shared else probed,
                        there=[*looked_up, *(rows[k] for k in probed)])  # fmt: skip
            at = [2 * node + (key in right) for node, key in zip(at, looked_up, strict=True)]
        reached = [ends[node] for node in at]
        here = [key for key, end in zip(looked_up, reached, strict=True) if rows[end] == key]
        hits.update(here)
        caption = (
            f"Keys: {listed(looked_up)}. Rows where their searches end: {listed(rows[end] for end in reached)}. In "
            f"both columns: {listed(here)}."
        )
        yield frame(caption, now, reached=reached, there=looked_up, edges=[(key, v) for key in here for v in (i, j)],
                    found=[(j, i, key) for key in here], lookups=len(now))  # fmt: skip


# ------------------------------------------------------------------------------------------------------ the search tree


def cached_positions(rows, parts):
    """The positions of the rows that are copied to shared memory: the first of each of `parts` equal parts."""
    return list(range(0, rows, -(-rows // parts)))


def search_tree(rows, parts=1):
    """The positions that a search may read: a list for each step, from left to right; and where it may end.

    From node k of a step a search continues at node 2k of the next, or at 2k + 1 if the row at node k is at most the
    key. The first steps, one for each halving of `parts`, read the first rows of parts; position `rows` is past all
    rows.
    """
    part = -(-rows // parts)
    among_parts = [part * parts >> step for step in range(1, parts.bit_length())]
    inside, left = [], part
    while left > 1:
        inside.append(left >> 1)
        left -= left >> 1
    steps, ends = [], [0]
    for halves in (among_parts, inside):
        ends = [min(end, rows - part) for end in ends]  # so that the last part is as long as the others
        for half in halves:
            steps.append([min(end + half, rows) for end in ends])
            ends = [end + more for end in ends for more in (0, half)]
    return steps, ends
