"""How well traces and estimates agree with a GPU: the records of `benchmarks/trace.py` and `benchmarks/estimates.py`.

The record "trace" has launches that were traced, and counted on a GPU. Its stage "pattern" is one request of a kind, to
test the rules of requests; "setup" and "count" are the launches of methods. The record "estimates" has the times.
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
    compares the active lanes of a step with those of an instruction.
    rows: of the record "trace", by default the latest.
    """
    rows = [row for row in rows or records.reference("trace") if row["stage"] in OF_METHODS]
    found = []
    for kernel in names or dict.fromkeys(row["kernel"] for row in rows):
        own = [row for row in rows if row["kernel"] == kernel]
        ratios = {name: _ratio(*(sum(row[f"{side}_{name}"] for row in own) for side in ("traced", "counted")))
                  for name in COMPARED}  # fmt: skip
        lanes = sum(row["steps"] * row["lanes"] for row in own) / sum(row["steps"] for row in own)
        counted = [sum(row[f"counted_{name}"] for row in own) for name in ("lane_instructions", "instructions")]
        ratios["lanes"] = round(lanes * counted[1] / counted[0], 3)
        found.append({"kernel": kernel, "launches": len(own), **ratios})
    return Table(found, "kernel", "launches", *COMPARED, "lanes")


def _ratio(traced, counted):
    return round(traced / counted, 3) if counted else "" if not traced else float("inf")


def times(gpu, fitted):
    """Estimated and measured milliseconds of the record "estimates" on a GPU, a row for each method and graph.

    fitted: True for graphs that constants were fitted to, False for the others.
    """
    rows = [row for row in records.reference("estimates") if row["estimated_for"] == gpu and row["kernel_ms"] != ""]
    return np.array([[row["estimated_ms"], row["kernel_ms"]] for row in rows if (row["fitted"] == "True") == fitted])


def times_off(gpu):
    """By which factors the times of launches not fitted to are off: the median, and the 90th percentile."""
    factors = np.exp(np.abs(np.log(np.divide(*times(gpu, False).T))))
    return tuple(np.quantile(factors, (0.5, 0.9)).tolist())


def draw_times(gpu, *, ax=None):
    """Estimated against measured time, a point for each method and graph; on the line they are equal."""
    ax = ax or axes(4.5, 4.2)
    for fitted, color, marker, said in ((False, BLUE, "o", "graphs not fitted to"), (True, ORANGE, "s", "fitted to")):
        ax.plot(*times(gpu, fitted).T[::-1], marker, color=color, ms=4, lw=0, alpha=0.7, label=said)
    ends = [times(gpu, False).min(), times(gpu, False).max()]
    ax.plot(ends, ends, color="black", lw=1, zorder=0)
    ax.set(xscale="log", yscale="log", xlabel="measured, ms", ylabel="estimated, ms")
    ax.set_title(f"kernels on one {gpu}", size=10)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure
