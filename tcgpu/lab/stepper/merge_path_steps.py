"""`merge_path`: several lanes per edge; diagonals cut the merge of its two columns into equal parts.

A merge is a path through a grid, from the upper left corner to the lower right one: to the right past a row of column
j, down past a row of column i. A frame is a step of all lanes at the same time.
"""

from tcgpu.lab.stepper.frames import Matrix, RowIdx, counted, listed
from tcgpu.lab.stepper.merge_steps import nothing_to_merge


def merge_path(builder, e, *, lanes):
    """`lanes` lanes for nonzero e = (i, j), 32 on a GPU: the rows of column j lead to the right, those of i down."""
    (i, j), hits = builder.ends[e], []
    of_j, of_i = range(e + 1, builder.col_ptr[j + 1]), builder.span(i)
    room = max(len(builder.span(row)) for row, _ in builder.ends), builder.graph.max_column - 1
    right, down = ([builder.row_idx[k] for k in span] for span in (of_j, of_i))
    steps = len(right) + len(down)
    part = -(-steps // lanes)
    cuts = [min(lane * part, steps) for lane in range(lanes)]
    low = [max(0, cut - len(down)) for cut in cuts]  # where each lane may start on its diagonal:
    high = [min(cut, len(right)) for cut in cuts]  # columns from low to high of the grid

    def frame(caption, compared=(), corners=None, paths=(), found=()):
        """compared: the cells (row, column) whose rows are compared; corners: where each lane is in the grid."""
        looks = [["empty"] * len(right) for _ in down]
        for y, x in compared:
            looks[y][x] = "looked"
        for y, x in hits:
            looks[y][x] = "hit"
        if corners is None:  # the middle of what is left of each lane's diagonal
            corners = [(cut - (a + b) // 2, (a + b) // 2) for cut, a, b in zip(cuts, low, high)]
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
        yield frame(f"Nonzero ({i}, {j}):{nothing_to_merge(i, j, right)}")
        return
    yield frame(
        f"{counted(lanes, 'lane')} take nonzero ({i}, {j}). Its merge takes {steps} steps: {len(right)} to the right, "
        f"past rows of column {j}, and {len(down)} down, past rows of column {i}. Each lane takes {part} of them, from "
        "where the merge crosses its diagonal."
    )
    step = 0
    while low != high:
        step += 1
        searching = [lane for lane in range(lanes) if low[lane] < high[lane]]
        columns = [(low[lane] + high[lane]) >> 1 for lane in searching]
        compared = [(cuts[lane] - 1 - x, x) for lane, x in zip(searching, columns)]
        for lane, (y, x) in zip(searching, compared):
            if right[x] <= down[y]:
                low[lane] = x + 1
            else:
                high[lane] = x
        caption = (
            f"Each lane searches its diagonal for the point where the merge crosses it: step {step}, of the lanes "
            f"{listed(searching)}. Each compares a row of column {j} with a row of column {i}. If the latter is "
            "smaller, the point is further left, else further right."
        )
        yield frame(caption, compared)
    at = [(cut - x, x) for cut, x in zip(cuts, low)]
    paths = [[corner] for corner in at]
    for step in range(1, part + 1):
        moving = [lane for lane, (y, x) in enumerate(at) if y < len(down) and x < len(right)]
        if not moving:
            return  # all lanes are at the end of a column
        compared = [at[lane] for lane in moving]
        equal = [(y, x) for y, x in compared if right[x] == down[y]]
        hits += equal
        for lane, (y, x) in zip(moving, compared):
            at[lane] = (y, x + 1) if right[x] <= down[y] else (y + 1, x)
            paths[lane].append(at[lane])
        pairs = listed(f"{right[x]} with {down[y]}" for y, x in compared)
        caption = (
            f"Step {step} of {part}, all lanes at the same time. Compared: {pairs}. If the row of column {i} is "
            "smaller, the lane goes down, else right."
        )
        yield frame(caption, compared, at, [tuple(path) for path in paths], [(j, i, right[x]) for _, x in equal])
