"""Pictures of a trace: the source with a bar at each line, a warp step by step, one request, the balance of the work.

Colours as in `tcgpu.figures`: blue is what is done, orange what stands out, grey what is idle.
"""

import ast
import textwrap

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from tcgpu.engines.simulator import WARP
from tcgpu.errors import GraphError
from tcgpu.figures import BLUE, GREY, ORANGE, Picture, axes
from tcgpu.suggest import unknown
from tcgpu.tracing.events import SECTOR
from tcgpu.tracing.recorder import PLACE_BITS

DARK, PALE = "#2d3748", "#edf2f7"
ROW = 128  # bytes of a line of the cache, and of one word in each of the banks of shared memory
LEAST_ROWS, MOST_ROWS = 4, 14  # of a memory map
MOST_STEPS = 500  # of a raster
FEW = 64  # threads, warps or blocks of which each has a bar
CHARACTER = 0.064  # inches
BARS = 1.9  # inches: the bars beside a source, and the numbers at these
BY = {  # what the bars beside a source may say -> in words
    "time": "share of the time of all warps",
    "steps": "steps of warps",
    "load_requests": "requests to read global memory",
    "load_sectors": "sectors read from global memory",
    "bytes_moved": "bytes to and from global memory",
    "shared_requests": "requests for shared memory",
    "bank_conflicts": "bank conflicts",
    "atomics": "atomic operations of lanes",
}
DOES = {  # what a lane does in a step, later ones before earlier ones where several are true -> colour
    "waits": PALE,
    "computes": GREY,
    "reads shared memory": "#63b3ed",
    "writes": DARK,
    "reads global memory": BLUE,
    "changes memory atomically": ORANGE,
}


def draw_source(trace, by="time", *, stage="count", kernel=None, ax=None):
    """The source of the kernels and of what they call, with a bar at each line: how much of `by` falls to it."""
    if by not in BY:
        raise GraphError(f"by: {unknown('measure', by, BY)}")
    found = {place: row["share" if by == "time" else by] for place, row in trace.by_line(stage, kernel).items()}
    code = [line for function in dict.fromkeys(function for function, _ in found) for line in listing(function)]
    width = CHARACTER * max(len(text) for *_, text in code)
    ax = ax or axes(BARS + width + 0.1, 0.5 + 0.155 * len(code))
    most = max(found.values())
    for place, (function, line, text) in enumerate(code):
        amount = found.get((function, line), 0)
        if amount:
            ax.barh(place, amount / most, left=-1.1, height=0.85, color=ORANGE if amount == most else BLUE)
            said = f"{amount:,}" if by != "time" else f"{amount:.1%}" if amount >= 0.0005 else ""
            ax.text(-1.15, place, said, ha="right", va="center", size=7)
        ax.text(0, place, text, family="monospace", size=7.5, va="center", color=DARK if amount else "#718096")
    ax.set(xlim=(-BARS, width), ylim=(len(code) - 0.3, -0.7))
    ax.set_title(f"{trace.method}: {BY[by]}", size=10)
    ax.set_axis_off()
    return ax.figure


def listing(function):
    """A function's lines from its `def` on, without its docstring, an empty one last: [(function, number, text)]."""
    source = textwrap.dedent("".join(function.lines))
    definition = ast.parse(source).body[0]
    skipped = range(1, definition.lineno)
    if ast.get_docstring(definition) is not None:
        skipped = {*skipped, *range(definition.body[0].lineno, definition.body[0].end_lineno + 1)}
    lines = enumerate(source.splitlines(), 1)
    shown = [(function, function.first + k - 1, text) for k, text in lines if k not in skipped]
    return [*shown, (function, 0, "")]


def draw_raster(trace, block=None, warp=None, *, begin=0, kernel=None, ax=None):
    """The lanes of a warp, step by step, and on which line of the source each step is; without a number, the busiest.

    begin: the first step that is shown; up to 500 are. ax: two pairs of axes, one above the other.
    """
    events = trace.main(kernel).events
    block, warp = busiest(events, block, warp)
    steps = np.flatnonzero((events.block == block) & (events.warp == warp))
    if not 0 <= begin < max(1, steps.size):
        raise GraphError(f"warp {warp} of block {block} does {steps.size:,} steps, so begin is not {begin!r}")
    shown = steps[begin : begin + MOST_STEPS]
    lanes = events.mask[shown] >> np.arange(WARP, dtype=np.uint32)[:, None] & 1
    upper, lower = ax or axes(9, 4.5, nrows=2, sharex=True, height_ratios=(3, 1))
    edges = (begin - 0.5, begin + shown.size - 0.5)
    upper.imshow(lanes * does(events)[shown], aspect="auto", interpolation="nearest", vmin=0, vmax=len(DOES) - 1,
                 cmap=ListedColormap(list(DOES.values())), extent=(*edges, WARP - 0.5, -0.5))  # fmt: skip
    upper.set(ylabel="lane", yticks=(0, 8, 16, 24, 31))
    part = f", {begin:,} to {begin + shown.size - 1:,} shown" if shown.size < steps.size else ""
    mean = f"{lanes.sum(axis=0).mean():.1f} of 32 lanes at work in the mean"
    upper.set_title(f"warp {warp} of block {block}: {steps.size:,} steps{part}; {mean}", size=9)
    look = [Patch(color=colour, label=said) for said, colour in DOES.items()]
    upper.legend(handles=look, loc="upper center", bbox_to_anchor=(0.5, -0.03), ncols=6, frameon=False, fontsize=7,
                 handlelength=1, columnspacing=1)  # fmt: skip
    sites = [events.sites[number] for number in events.step_site[shown].tolist()]
    for k, function in enumerate(dict.fromkeys(site.function for site in sites)):
        here = [(begin + step, site.line) for step, site in enumerate(sites) if site.function == function]
        lower.plot(*zip(*here), "osD^v*P"[k % 7], ms=2, color=(BLUE, ORANGE, DARK)[k % 3], label=function.name, lw=0)
    lower.set(xlabel="step of the warp", ylabel="line", xlim=edges)
    lower.invert_yaxis()
    lower.legend(fontsize=6, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    for panel in (upper, lower):
        panel.spines[["top", "right"]].set_visible(False)
        panel.tick_params(labelsize=7)
    upper.tick_params(labelbottom=False, bottom=False)
    return upper.figure


def busiest(events, block=None, warp=None):
    """The block and the warp, of those with these numbers, that did most steps; GraphError if there are none."""
    block_is = events.block == block if block is not None else True
    warp_is = events.warp == warp if warp is not None else True
    steps = np.flatnonzero(np.ones(events.block.size, bool) & block_is & warp_is)
    if not steps.size:
        raise GraphError(f"the launch has no warp {warp!r} of block {block!r}")
    unit, count = np.unique(events.block[steps].astype(np.int64) * WARP + events.warp[steps], return_counts=True)
    return (part.item() for part in np.divmod(unit[np.argmax(count)], WARP))


def does(events):
    """What the lanes of each step do: a number out of the order of DOES."""
    found = np.ones(events.step_site.size, np.int64)
    written = events.of_kind("store") | events.of_kind("store", shared=True)
    changed = events.of_kind("atomic") | events.of_kind("atomic", shared=True)
    for number, requests in enumerate(
        (events.of_kind("load", shared=True), written, events.of_kind("load"), changed), 2
    ):
        found[events.step[requests]] = number
    return found


def draw_request(trace, of="sectors", *, line=None, kernel=None, ax=None):
    """The memory that one request asks for, 128 bytes a row, with the numbers of the lanes that ask for it.

    of: "sectors" for the request that reads most sectors of global memory, "conflicts" for the one with most bank
    conflicts in shared memory. line: only requests of this line of the source, the kernel's own if it has one of that
    number.
    """
    launch = trace.main(kernel)
    events = launch.events
    request = worst(events, of, line, launch.kernel)
    accesses = slice(*events.first[request : request + 2])
    size, lanes, address = int(events.size[request]), events.lane[accesses], events.address[accesses]
    rows = np.unique(address // ROW)
    shown = rows[:MOST_ROWS].tolist()
    ax = ax or axes(9, 1.2 + 0.28 * len(shown))
    names = []
    for k, row in enumerate(shown):
        here = address // ROW == row
        _draw_row(ax, k, address[here] % ROW, lanes[here], size, of == "sectors")
        memory, begin = divmod(row * ROW, 1 << PLACE_BITS)
        names.append(f"{events.memories[memory].split(',')[0]}[{begin // size:,}:{(begin + ROW) // size:,}]")
    site = events.sites[int(events.site[request])]
    if of == "sectors":
        cost = f"{lanes.size * size} bytes; sectors of 32 bytes: {events.sectors[request]}"
    else:
        cost = f"wavefronts: {events.wavefronts[request]}; for bank conflicts: {events.conflicts[request]}"
    more = f"; {rows.size - len(shown)} more rows" if rows.size > len(shown) else ""
    ax.set_title(f"line {site.line}: {site.text}\nlanes: {lanes.size}; {cost}{more}", size=8.5)
    ax.set(xlim=(0, ROW), ylim=(max(len(shown), LEAST_ROWS), 0), xticks=range(0, ROW + 1, SECTOR))
    ax.set(xlabel="bytes of a row" if of == "sectors" else "bytes of a row: 32 banks of 4 bytes")
    ax.set_yticks(np.arange(len(shown)) + 0.5, names, family="monospace")
    ax.spines[["top", "right", "left", "bottom"]].set_visible(False)
    ax.tick_params(length=0, labelsize=7)
    return ax.figure


def _draw_row(ax, k, bytes, lanes, size, sectors):
    """Row k of a memory map: the bytes that lanes ask for, and the sectors that these lie in."""
    ax.add_patch(Rectangle((0, k + 0.05), ROW, 0.9, fc="white", ec=GREY, lw=0.5))
    for sector in np.unique(bytes // SECTOR) if sectors else ():
        ax.add_patch(Rectangle((sector * SECTOR, k + 0.05), SECTOR, 0.9, fc=ORANGE, alpha=0.35, lw=0))
    for byte in np.unique(bytes):
        ax.add_patch(Rectangle((byte, k + 0.05), size, 0.9, fc=BLUE, ec="white", lw=0.5))
        askers = lanes[bytes == byte]
        if size > 2:  # there is room for a number
            said = str(askers[0]) if askers.size == 1 else f"{askers.size}x"
            ax.text(byte + size / 2, k + 0.52, said, color="white", size=6, ha="center", va="center")


def worst(events, of, line, kernel):
    """The request of this kind that costs most, by its number; line: of this line of the kernel or of what it calls."""
    if of not in ("sectors", "conflicts"):
        raise GraphError(f"a request is drawn of sectors or of conflicts, not of {of!r}")
    shared = of == "conflicts"
    chosen = events.of_kind("load", shared)
    if not chosen.any():  # it only writes
        chosen = events.shared == shared
    cost = np.where(chosen, getattr(events, of) + 1, 0)
    if line is not None:
        sites = [events.sites[number] for number in events.site.tolist()]
        own = any(site.line == line and site.function.name == kernel for site in sites)
        cost = cost * np.array([site.line == line and (not own or site.function.name == kernel) for site in sites], int)
    if not cost.any():
        where = "shared" if shared else "global"
        raise GraphError(f"nothing asks for {where} memory" + (f" on line {line}" if line is not None else ""))
    return int(np.argmax(cost))


def draw_balance(trace, per="thread", of="loads", *, kernel=None, ax=None):
    """How much each thread, warp or block did, or if they are many, how many did how much."""
    done = trace.balance(per, of, kernel)
    ax = ax or axes(5, 3)
    most, mean = int(done.max()), done.mean()
    if done.size <= FEW:
        ax.bar(range(done.size), done, color=BLUE)
        ax.axhline(mean, color=ORANGE, lw=1.5)
        ax.text(1, mean, f"mean {mean:,.1f} ", color=ORANGE, size=8, ha="right", va="bottom",
                transform=ax.get_yaxis_transform())  # fmt: skip
        ax.set(xlabel=f"number of the {per}", ylabel=f"{of} of a {per}")
        ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    else:
        ax.hist(done, np.arange(most + 2) - 0.5 if most <= 40 else 40, color=BLUE, edgecolor="white", lw=0.5)
        ax.axvline(mean, color=ORANGE, lw=1.5)
        ax.text(mean, 1, f" mean {mean:,.1f}", color=ORANGE, size=8, va="top", transform=ax.get_xaxis_transform())
        ax.set(xlabel=f"{of} of a {per}", ylabel=f"{per}s", yscale="log" if done.size > 200 else "linear")
    above = f": the most is {most / mean:.1f} times the mean" if mean else ""
    ax.set_title(f"{done.size:,} {per}s{above}", size=9)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=7)
    return ax.figure


def draw_all(trace, by="time", *, kernel=None):
    """The source of the kernel that takes longest, or of one that is named; beside it its busiest warp, its worst
    request and the balance of its threads."""
    kernel = kernel or trace.main().kernel
    functions = dict.fromkeys(function for function, _ in trace.by_line(None, kernel))
    code = [text for function in functions for *_, text in listing(function)]
    left, right = BARS + CHARACTER * max(map(len, code)) + 0.1, 8
    figure = Picture(figsize=(left + right, max(8.5, 0.5 + 0.155 * len(code))), layout="constrained")
    grid = figure.add_gridspec(4, 2, width_ratios=(left, right), height_ratios=(3, 1, 3, 2))
    draw_source(trace, by, stage=None, kernel=kernel, ax=figure.add_subplot(grid[:, 0]))
    upper = figure.add_subplot(grid[0, 1])
    draw_raster(trace, kernel=kernel, ax=(upper, figure.add_subplot(grid[1, 1], sharex=upper)))
    draw_request(trace, kernel=kernel, ax=figure.add_subplot(grid[2, 1]))
    draw_balance(trace, kernel=kernel, ax=figure.add_subplot(grid[3, 1]))
    return figure


COMPARED = {  # what methods are compared by -> in words
    "estimated_us": "estimated time, µs",
    "load_requests": "requests to read global memory",
    "sectors_per_request": "sectors a request",
    "lanes": "lanes at work in a step, of 32",
    "shared_requests": "requests for shared memory",
    "bank_conflicts": "bank conflicts",
    "atomics": "atomic operations",
    "bytes_moved": "bytes moved",
}


def draw_comparison(traces, measures=("estimated_us", "load_requests", "sectors_per_request", "lanes")):
    """Methods side by side: a panel for each measure, a bar for each method."""
    rows = traces.totals()
    names = [row["method"] for row in rows]
    panels = axes(2.6 * len(measures) + 1, 0.8 + 0.3 * len(rows), ncols=len(measures), sharey=True, squeeze=False)[0]
    for panel, measure in zip(panels, measures):
        amounts = [row[measure] or 0 for row in rows]
        drawn = panel.barh(range(len(rows)), amounts, color=BLUE)
        panel.bar_label(drawn, [f"{amount:,.4g}" for amount in amounts], size=7, padding=2)
        panel.set_title(COMPARED.get(measure, measure.replace("_", " ")), size=9)
        panel.set(xlim=(0, 1.25 * (max(amounts) or 1)), yticks=range(len(rows)), xticks=[])
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    panels[0].set_yticklabels(names, size=8)
    panels[0].invert_yaxis()
    return panels[0].figure
