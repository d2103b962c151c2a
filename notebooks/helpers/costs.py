"""The work of the report's methods on a graph, computed from its columns: no kernel runs, so any size will do.

`traced`, `print_reads` and `compare` alone run kernels, in the simulator.

Each has its own unit: iterations of a loop, look-ups, loads. The 32 lanes of a warp take neighbouring nonzeros and run
in step, so the work of a warp is that of its busiest lane.
"""

import numpy as np

import tcgpu
from tcgpu.arrays import bincount
from tcgpu.cpu import small

LANES = 32
SECTOR = 32  # bytes that a GPU fetches from memory at a time


def comparisons(graph):
    """Iterations of the loop of `naive` for each nonzero: int64, in the order of `graph.edges()`.

    A merge ends where one list does: by then it has passed the rows up to its last one, common rows in one iteration.
    """
    rows, ends = graph.row_idx.astype(np.int64), graph.col_ptr[1:]
    place = graph.col_of.astype(np.int64) * graph.n + rows  # ascending: nonzeros by column, then by row
    after, begin, end = np.arange(1, graph.m + 1), graph.col_ptr[rows], ends[rows]
    both = (after < ends[graph.col_of]) & (begin < end)
    last = np.minimum(rows[ends[graph.col_of] - 1], rows[np.maximum(end, 1) - 1])
    passed = (
        place.searchsorted(place - rows + last, "right") - after,
        place.searchsorted(rows * graph.n + last, "right") - begin,
    )
    common = np.zeros(graph.m, np.int64)
    for found in small.list_triangles(graph):
        j, i, _ = found.astype(np.int64).T
        common += bincount(place.searchsorted(j * graph.n + i), minlength=graph.m)
    return np.where(both, passed[0] + passed[1] - common, 0)


def lookups(graph):
    """How many bits `bitmap` looks up for each nonzero: int64, in the order of `graph.edges()`.

    Those are the rows of column i, and none where column j has but the one nonzero.
    """
    return np.where(graph.column_lengths[graph.col_of] > 1, graph.column_lengths[graph.row_idx], 0)


def warps(values, lanes=LANES):
    """One value per thread as rows of 32 lanes, or as many as are given, the last row filled up with 0."""
    values = np.asarray(values)
    padded = np.zeros(-(-values.size // lanes) * lanes, values.dtype)
    padded[: values.size] = values
    return padded.reshape(-1, lanes)


def active_share(steps, lanes=LANES):
    """The share of all steps of the lanes of all warps in which the lane works; 1 if there are none."""
    longest = warps(steps, lanes).max(axis=1, initial=0)
    return float(np.sum(steps) / (lanes * longest.sum())) if longest.any() else 1.0


def sectors(positions, bytes_each=4):
    """How many sectors each warp fetches when every lane loads one element: lane t the one at `positions[t]`.

    32 neighbouring elements of 4 bytes take 4 sectors, scattered ones up to 32. An incomplete last warp is left out.
    """
    positions = np.asarray(positions)
    touched = np.sort(warps(positions[: positions.size // LANES * LANES] * bytes_each // SECTOR), axis=1)
    return 1 + np.count_nonzero(np.diff(touched, axis=1), axis=1)


def groups(graph, columns):
    """How many nonzeros each group of `columns` consecutive columns holds: what a block of `column_block` takes."""
    first = np.arange(0, graph.n, columns)
    return graph.col_ptr[np.minimum(first + columns, graph.n)] - graph.col_ptr[first]


def busy_share(graph, columns, threads=128):
    """The share of the threads of `column_block`, in all its rounds, that have a nonzero to count."""
    rounds = -(-groups(graph, columns) // threads)
    return float(graph.m / (threads * rounds.sum())) if graph.m else 1.0


def printed_count(graph, columns, blocks):
    """What the report's computeCol counts as it is printed: a block never sets its sum s back to 0.

    After each group of `columns` columns the block adds s to its result, with all that earlier groups left in it.
    """
    lower = graph.lower()
    found = np.asarray((lower.T @ lower).multiply(lower).sum(axis=0)).ravel()  # triangles of each column
    group = np.add.reduceat(found, np.arange(0, graph.n, columns))
    return int(sum(group[block::blocks].cumsum().sum() for block in range(blocks)))


def traced(graph, method, *, max_seconds=60, **options):
    """What `tcgpu.trace` counts in all, in natural order, for every 32 nonzeros: name -> number."""
    totals = tcgpu.trace(graph, method, order="natural", max_seconds=max_seconds, **options).totals()
    return {name: LANES * count / graph.m for name, count in totals.items()}


def print_reads(graph, method, *functions, **knobs):
    """Print the load requests of some functions of a method, and the sectors that they take, in a trace."""
    lines = tcgpu.trace(graph, method, order="natural", max_seconds=60, **knobs).lines()
    rows = [row for row in lines if row["function"] in functions and row["load_requests"]]
    requests, sectors = (sum(row[f"load_{what}"] for row in rows) for what in ("requests", "sectors"))
    told = ", ".join(f"{key} {value}" for key, value in knobs.items() if key not in ("threads", "blocks"))
    each = f"{sectors / requests:4.1f} sectors each: {sectors:7,} sectors"
    print(f"{method:13} {told:12} {requests:6,} requests, {each}")


def compare(graphs, method, **options):
    """Print how many requests a method and `naive` make on each graph, and which takes less time, by the estimate.

    Returns (requests, estimated time) of each graph, as parts of those of `naive`. options: those of `tcgpu.trace`.
    """
    parts = {}
    for name, graph in graphs.items():
        mine, naive = (trace.totals() for trace in tcgpu.trace(graph, [method, "naive"], max_seconds=60, **options))
        requests, time = (mine[key] / naive[key] for key in ("load_requests", "estimated_us"))
        words = "less" if time < 0.9 else "more" if time > 1.2 else "about as much"
        counted = f"{mine['load_requests']:5} requests, naive {naive['load_requests']:5}"
        print(f"{name:6} {counted}; estimated time: {words}")
        parts[name] = requests, time
    return parts
