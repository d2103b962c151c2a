"""How well traces agree with a GPU: the record of launches that were traced, and counted and timed on a GPU.

`benchmarks/trace.py` makes it. The stage "pattern" is one request of a kind, to test the rules of requests; "chain" is
a loop of dependent requests, to fit the constants of the model; "setup" and "count" are the launches of methods.
"""

import numpy as np

from tcgpu import records
from tcgpu.figures import BLUE, ORANGE, axes
from tcgpu.records import Table

OF_METHODS = ("setup", "count")
COMPARED = ("load_requests", "load_sectors", "shared_loads", "shared_stores", "atomic_requests")


def by_kernel(rows=None, *names):
    """The ratio of traced to counted numbers for each kernel of the methods, or for the named ones.

    It is 1 where both agree, and empty where there is nothing to count; launches of a kernel are added up. `lanes`
    compares the active lanes of a step with those of an instruction; `time` is the geometric mean over launches.
    rows: of the record, by default the latest.
    """
    rows = [row for row in rows or records.latest("trace") if row["stage"] in OF_METHODS]
    found = []
    for kernel in names or dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        ratios = {name: _ratio(*(sum(row[f"{side}_{name}"] for row in own) for side in ("traced", "counted")))
                  for name in COMPARED}  # fmt: skip
        lanes = sum(row["steps"] * row["lanes"] for row in own) / sum(row["steps"] for row in own)
        counted = [sum(row[f"counted_{name}"] for row in own) for name in ("lane_instructions", "instructions")]
        ratios["lanes"] = round(lanes * counted[1] / counted[0], 3)
        off = float(np.exp(np.mean(np.log([row["estimated_us"] / row["counted_us"] for row in own]))))
        found.append({"kernel": kernel, "launches": len(own), **ratios, "time": round(off, 3)})
    return Table(found, "kernel", "launches", *COMPARED, "lanes", "time")


def _ratio(traced, counted):
    return round(traced / counted, 3) if counted else "" if not traced else float("inf")


def times_off(rows=None):
    """By which factors the estimated times are off: the median of all launches, and the 90th percentile."""
    both = _times(rows or records.latest("trace"))
    factors = np.exp(np.abs(np.log(both[:, 0] / both[:, 1])))
    return tuple(np.quantile(factors, (0.5, 0.9)).tolist())


def draw_times(rows=None, *, ax=None):
    """Estimated against measured time, a point per launch; on the line they are equal."""
    rows = rows or records.latest("trace")
    ax = ax or axes(4.5, 4.2)
    for stages, color, marker, said in ((OF_METHODS, BLUE, "o", "methods"), (("chain",), ORANGE, "s", "chains")):
        ax.plot(*_times(rows, stages).T[::-1], marker, color=color, ms=4, lw=0, alpha=0.7, label=said)
    ends = [_times(rows).min(), _times(rows).max()]
    ax.plot(ends, ends, color="black", lw=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="measured, µs", ylabel="estimated by the trace, µs")
    ax.set_title(f"launches on one {rows[0]['gpu_name']}", size=10)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


def _times(rows, stages=(*OF_METHODS, "chain")):
    """Estimated and measured microseconds of the launches of these stages, a row each."""
    return np.array([[row["estimated_us"], row["counted_us"]] for row in rows if row["stage"] in stages])
