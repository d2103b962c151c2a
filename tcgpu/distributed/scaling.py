"""What `benchmarks/scaling.py` has recorded, and what it foretells: parts as long as they took, on more workers than
there are."""

import json

import numpy as np

from tcgpu.levels import makespan

HANDS, SLICES = "adaptive", "warp_search"  # the methods that the record has: dealt out, and cut


def speedups(rows, method=HANDS, key="wall_ms"):
    """How many times as fast a count was on several GPUs as on one: graph -> [(GPUs, times)]."""
    found = {}
    for row in rows:
        if row["method"] == method and row.get(key, "") != "":
            found.setdefault(row["graph"], []).append((row["gpus"], row[key]))
    return {graph: [(gpus, dict(points)[1] / ms) for gpus, ms in sorted(points)] for graph, points in found.items()}


def part_times(rows, graph, method):
    """What each part took: number of parts -> milliseconds in the order of the cut."""
    own = (row for row in rows if (row["graph"], row["method"]) == (graph, method) and row.get("parts_ms"))
    return {row["parts"]: np.array(json.loads(row["parts_ms"])) for row in own}


def beyond(rows, graph):
    """How many times as fast the kernels of so many GPUs would be as those of one, a hand each: [(GPUs, times)].

    All begin at once, so the longest hand is what takes the time.
    """
    times = part_times(rows, graph, HANDS)
    return [(gpus, float(times[1].max() / hands.max())) for gpus, hands in sorted(times.items())]


def above_ideal(times, workers):
    """How many times as long as ideal it takes so many workers to do parts that take these times, in this order.

    Ideal is the sum of all shared out evenly. A worker that is free takes the next part, as from an executor's queue.
    """
    ideal = times.sum() / workers
    return float(makespan.schedule(times, workers, "given").makespan / ideal) if ideal else 1.0
