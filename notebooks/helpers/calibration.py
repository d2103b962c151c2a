"""Fit the constants of Bisson & Fatica's Algorithm 5 to a record: which of the four bitmap kernels suits a graph.

`python benchmarks/papers.py samples` times the four kernels on generated graphs of many mean and longest columns and
sizes. `fit` finds the constants whose choices lose least there. The paper's were found by hand, on one card, for the
graphs of one table.
"""

import itertools
import math
from itertools import pairwise

from helpers.charts import KERNELS
from tcgpu.kernels.bisson_fatica.bitmap_auto import choice

PAPER = choice.__kwdefaults__  # the constants of Algorithm 5 as printed
TIE = 1.02  # a choice counts as the best if no other kernel is faster by more than this, the noise of timings
LOST = 1000.0  # slowdown of a choice that refuses the graph, or was not timed


def fit(rows):
    """The knobs whose choices lose least time on the graphs of `rows`, as a mean of ratios; of equals, the paper's.

    rows: of the records "samples" or "table1". Thresholds are tried between any two graphs that differ.
    """
    graphs = list(_times(rows).values())
    columns = ("longest_column", "mean", "vertices")
    tried = (_between(columns[k], graphs, paper) for k, paper in enumerate(PAPER.values()))
    best = min(
        (dict(zip(PAPER, constants, strict=True)) for constants in itertools.product(*tried)),
        key=lambda knobs: (round(_loss(graphs, knobs), 9), _far_from_paper(knobs)),
    )
    return {"longest_thread": int(best["longest_thread"]), "mean_warp": best["mean_warp"],
            "vertices_shared": int(best["vertices_shared"])}  # fmt: skip


def choices(rows, **knobs):
    """For each graph of `rows` its facts, the kernel that the algorithm chooses, the fastest one, and the slowdown."""
    found = []
    for graph, facts in _times(rows).items():
        chosen, times = _chosen(facts, PAPER | knobs), facts.pop("times")
        verdict = {"chosen": chosen, "best": min(times, key=times.get), "slowdown": _slowdown(times, chosen)}
        found.append({"graph": graph} | facts | verdict)
    return found


def share_best(rows, **knobs):
    """The share of the graphs of `rows` for which the algorithm chooses the fastest kernel, or one as good as that."""
    found = choices(rows, **knobs)
    return sum(row["slowdown"] <= TIE for row in found) / len(found)


def fit_threshold(curve):
    """The `threshold` of `report_auto` whose choices lose least time, as a mean of ratios; infinite if `naive` is best.

    curve: how many times as fast as `naive` the other kernel is over nonzeros per column; see `measured.speedup_curve`.
    """

    def lost(threshold):
        return sum(max(0, math.log(faster) * (1 if x < threshold else -1)) for x, faster in curve)

    return min([*(x for x, _ in curve), math.inf], key=lost)


def _times(rows):
    """graph -> its facts, and the milliseconds of each kernel that was timed on it."""
    graphs = {}
    for row in rows:
        if row["method"] in KERNELS:
            facts = {name: row[name] for name in ("vertices", "edges", "longest_column")}
            mean = row["edges"] / max(1, row["vertices"])
            times = graphs.setdefault(row["graph"], facts | {"mean": mean, "times": {}})["times"]
            times[row["method"]] = row["kernel_ms"]
    return graphs


def _between(what, graphs, paper):
    """Thresholds that divide the graphs in every way there is; of those that do the same, one is the paper's."""
    values = sorted({facts[what] for facts in graphs})
    middles = {math.sqrt(max(low, 0.5) * high) for low, high in pairwise(values)}
    ends = {0, 2 * values[-1] + 1}
    return sorted({round(value, 3) for value in middles | ends} | {paper})


def _loss(graphs, knobs):
    return sum(math.log(_slowdown(facts["times"], _chosen(facts, knobs))) for facts in graphs)


def _chosen(facts, knobs):
    return choice(facts["vertices"], facts["edges"], facts["longest_column"], **knobs)


def _slowdown(times, chosen):
    return times[chosen] / min(times.values()) if chosen in times else LOST


def _far_from_paper(knobs):
    return sum(abs(math.log((1 + knobs[name]) / (1 + PAPER[name]))) for name in PAPER)
