"""Methods that merge two sorted lists of rows. A frame is a comparison of two rows; in `merge_path` one per lane.

Which rows are compared, the kernels' own functions say: they run here, and what they read is noted.
"""

from dataclasses import replace

from tcgpu.kernels.device.merge import common_values
from tcgpu.kernels.device.search import last_up_to
from tcgpu.kernels.report.column_block import longest_group
from tcgpu.kernels.tricore.merge_path import matches, steps_right
from tcgpu.lab.stepper.frames import SHARED, Matrix, RowIdx, compared_by, counted, listed, lower, run_noted


def naive(builder, e):
    """A thread per nonzero: two pointers along two columns."""
    i, j = builder.ends[e]
    question = f"Thread {e} takes nonzero ({i}, {j}): which rows do columns {j} and {i} share?"
    return merge(builder, f"thread {e}, nonzero ({i}, {j})", question, e)


def column_block(builder, nonzeros, *, columns, threads, tile):
    """A block per `columns` columns: their rows in a tile of shared memory, a thread for each of their nonzeros.

    The threads of a block, and the blocks, are shown one after the other.
    """
    n, col_ptr = builder.graph.n, builder.col_ptr
    for first in range(0, n, columns):
        group = range(first, min(first + columns, n))
        rows = range(col_ptr[group.start], col_ptr[group.stop])
        for begin in range(0, len(rows), tile):
            yield from merge_tile(builder, nonzeros, group, rows, rows[begin : begin + tile], threads,
                                  min(tile, longest_group(builder.graph.col_ptr, columns)))  # fmt: skip


def merge_tile(builder, nonzeros, group, rows, tile, threads, room):
    """A block copies part of the rows of its columns to its tile, then merges what is in the tile."""
    col_ptr, owner = builder.col_ptr, [j for _, j in builder.ends]
    merged = range(col_ptr[owner[tile.start]], tile.stop)  # the nonzeros that use this tile
    if not set(merged).intersection(nonzeros):
        return
    name = f"columns {group[0]} to {group[-1]}" if len(group) > 1 else f"column {group[0]}"
    begins = [k for k, e in enumerate(tile) if k == 0 or owner[e] != owner[e - 1]]
    names = {k: str(owner[e]) if k + 1 in (*begins, len(tile)) else f"column {owner[e]}" for k, e in enumerate(tile)}
    shown = {
        "label": "the block's tile", "span": tile, "memory": SHARED, "room": room,
        "heads": {k: names[k] for k in begins}, "gaps": tuple(k - 1 for k in begins[1:]),
    }  # fmt: skip
    part = "" if tile == rows else f" of {len(rows)}, as many as fit the tile,"
    caption = (
        f"A block takes {name}. Its {counted(threads, 'thread')} copy {counted(len(tile), 'row')}{part} into shared "
        "memory. Then they wait for each other at a barrier."
    )
    copied = replace(builder.pointed(**shown, window=tile), looks=("looked",) * len(tile))
    nothing = builder.pointed("column i", range(0), range(0))
    panels = copied, nothing, RowIdx(group, tile), lower(builder.graph, group, {})
    yield builder.frame(f"block of {name}", caption, panels, looked=group)
    for k, e in enumerate(merged):
        if e in nonzeros:
            (i, j), thread = builder.ends[e], k % threads
            steps = len(run_noted(last_up_to, col_ptr, col_ptr, group.start, group.stop, e)[1])
            caption = (
                f"Thread {thread} takes nonzero {e} and finds its column, {j}, in {counted(steps, 'step')} of binary "
                f"search in col_ptr. Its row is {i}."
            )
            title = f"block of {name}, thread {thread}, nonzero ({i}, {j})"
            yield from merge(builder, title, caption, e, tile=shown, group=group)


def merge(builder, title, beginning, e, *, tile=None, group=None, front=(), below=None):
    """The frames of a merge of column i and the rows after nonzero e = (i, j): an initial one, then one a comparison.

    tile, group: arguments of the panel with the rows of column j, and its columns, if it shows more than that column.
    front: panels that are shown above, instead of L. below: only rows below this one are merged.
    """
    (i, j), row_idx = builder.ends[e], builder.row_idx
    rows = "" if below is None else "'s far rows"
    tile = tile or {"label": f"column {j}{rows}, merged from after row {i} on", "span": builder.span(j, below)}
    of_j = range(max(e + 1, tile["span"].start), min(builder.col_ptr[j + 1], tile["span"].stop))
    of_i = builder.span(i, below)
    columns = (*(group or (j,)), i)

    def panels(p=None, q=None, hits=()):
        read = () if p is None else (q,) if group else (p, q)
        yield from front
        yield builder.pointed(**tile, window=of_j, at=p, mark="p", hits=hits)
        yield builder.pointed(f"column {i}{rows}", of_i, of_i, q, "q", hits)
        yield RowIdx(columns, read)
        if not front:
            looked = [(i, j)] if p is None else [(i, j), (row_idx[p], j), (row_idx[q], i)]
            hit = [(k, v) for k in hits for v in (i, j)]
            yield lower(builder.graph, group or columns, dict.fromkeys(looked, "looked") | dict.fromkeys(hit, "hit"))

    if of_j and of_i:
        beginning += f" Pointer p begins at row {row_idx[of_j[0]]}, the first after row {i} in column {j}; "
        beginning += f"q at row {row_idx[of_i[0]]}, the first of column {i}."
    else:
        beginning += nothing_to_merge(i, j, of_j)
    yield builder.frame(title, beginning, panels(), nonzero=(i, j))
    hits, both = set(), (row_idx, of_j.start, of_j.stop, row_idx, of_i.start, of_i.stop)
    for p, q in compared_by(common_values, row_idx, *both)[1]:
        x, y = row_idx[p], row_idx[q]
        if x == y:
            hits.add(x)
            caption = f"p and q are both at row {x}: columns {j} and {i} share it. Both advance."
        else:
            caption = f"p is at row {x}, q at row {y}. {min(x, y)} is smaller, so {'p' if x < y else 'q'} advances."
        ended = [j] * (x <= y and p + 1 == of_j.stop) + [i] * (y <= x and q + 1 == of_i.stop)
        if ended:
            caption += f" That is the end of column {listed(ended)}: nothing more can be shared."
        yield builder.frame(title, caption, panels(p, q, hits), nonzero=(i, j), there=(x, y), edges=((x, j), (y, i)),
                            found=[(j, i, x)] if x == y else [], lookups=1)  # fmt: skip


def nothing_to_merge(i, j, of_j):
    """Why there is nothing to merge for nonzero (i, j): no row in column i, or none in the range `of_j`."""
    return f" {f'Column {i} is empty' if of_j else f'Nothing follows row {i} in column {j}'}: there is nothing to do."


def merge_path(builder, e, *, lanes):
    """`lanes` lanes for nonzero e = (i, j), 32 on a GPU: diagonals cut its merge into equal parts.

    A merge is a path through a grid, from the upper left corner to the lower right one: to the right past a row of
    column j, down past a row of column i. A frame is a step of all lanes at the same time.
    """
    (i, j), hits = builder.ends[e], []
    of_j, of_i = range(e + 1, builder.col_ptr[j + 1]), builder.span(i)
    room = max(len(builder.span(row)) for row, _ in builder.ends), builder.graph.max_column - 1
    right, down = ([builder.row_idx[k] for k in span] for span in (of_j, of_i))
    steps = len(right) + len(down)
    part = -(-steps // lanes)
    cuts = [min(lane * part, steps) for lane in range(lanes)]

    def frame(caption, corners, compared=(), paths=(), found=()):
        """compared: the cells (row, column) whose rows are compared; corners: where each lane is in the grid."""
        looks = [["empty"] * len(right) for _ in down]
        for y, x in compared:
            looks[y][x] = "looked"
        for y, x in hits:
            looks[y][x] = "hit"
        dots = {}
        for lane, corner in enumerate(corners):
            dots[corner] = f"{dots[corner]} {lane}" if corner in dots else str(lane)
        grid = Matrix(
            f"column {j} after row {i}, to the right, and column {i}, down", tuple(down), tuple(right), looks,
            paths=paths, dots=dots, room=room, cuts=cuts if right and down else (),
        )  # fmt: skip
        read = [position for y, x in compared for position in (of_j[x], of_i[y])]
        there = {row for y, x in compared for row in (right[x], down[y])}
        title = f"{counted(lanes, 'lane')}, nonzero ({i}, {j})"
        return builder.frame(title, caption, (grid, RowIdx((j, i), read)), nonzero=(i, j), there=there, found=found,
                             lookups=len(compared))  # fmt: skip

    if not right or not down:
        yield frame(f"Nonzero ({i}, {j}):{nothing_to_merge(i, j, right)}", ())
        return

    def at(corners_of, step):
        """Where the lanes are after this number of steps, or after all of their own."""
        return [corners[min(step, len(corners) - 1)] for corners in corners_of]

    searched, merged = zip(*(ways(builder.row_idx, of_j, of_i, cut, part) for cut in cuts), strict=True)
    yield frame(
        f"{counted(lanes, 'lane')} take nonzero ({i}, {j}). Its merge takes {steps} steps: {len(right)} to the right, "
        f"past rows of column {j}, and {len(down)} down, past rows of column {i}. Each lane takes {part} of them, from "
        "where the merge crosses its diagonal.", at(searched, 0),
    )  # fmt: skip
    for step in range(1, max(map(len, searched))):
        searching = [lane for lane, corners in enumerate(searched) if step < len(corners)]
        compared = [(y - 1, x) for y, x in (searched[lane][step - 1] for lane in searching)]
        caption = (
            f"Each lane searches its diagonal for the point where the merge crosses it: step {step}, of the lanes "
            f"{listed(searching)}. Each compares a row of column {j} with a row of column {i}. If the latter is "
            "smaller, the point is further left, else further right."
        )
        yield frame(caption, at(searched, step), compared)
    for step in range(1, max(map(len, merged))):
        compared = [corners[step - 1] for corners in merged if step < len(corners)]
        equal = [(y, x) for y, x in compared if right[x] == down[y]]
        hits += equal
        pairs = listed(f"{right[x]} with {down[y]}" for y, x in compared)
        caption = (
            f"Step {step} of {part}, all lanes at the same time. Compared: {pairs}. If the row of column {i} is "
            "smaller, the lane goes down, else right."
        )
        paths = [corners[: step + 1] for corners in merged]
        yield frame(caption, at(merged, step), compared, paths, [(j, i, right[x]) for _, x in equal])


def ways(row_idx, of_j, of_i, cut, part):
    """The corners (row, column) of the grid that a lane passes: in the search on its diagonal, then in its merge.

    of_j, of_i: the positions in `row_idx` of the rows to merge. cut: steps before the lane's. part: how many it takes.
    """

    def cells_of(function, *args):
        """What this function of the kernel returns, and the cells that it compares."""
        found, both = compared_by(function, row_idx, *args)
        return found, [(q - of_i.start, p - of_j.start) for p, q in both]

    x, probed = cells_of(steps_right, row_idx, of_j.start, len(of_j), row_idx, of_i.start, len(of_i), cut)
    begin = cut - x, x
    p, q = of_j.start + x, of_i.start + cut - x
    _, passed = cells_of(matches, row_idx, p, of_j.stop, row_idx, q, of_i.stop, part)
    merged = ((y, x + 1) if row_idx[of_j[x]] <= row_idx[of_i[y]] else (y + 1, x) for y, x in passed)
    return [*((y + 1, x) for y, x in probed), begin], [begin, *merged]
