"""Charts of a trace: the source with a bar at each line, a warp step by step, one request, the balance of the work.

Colours as in `tcgpu.figures`: blue is work, orange is the largest or the most costly, grey is idle.
"""

import ast
import textwrap

import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle
from matplotlib.ticker import MaxNLocator

from tcgpu.engines.simulator import WARP
from tcgpu.errors import GraphError
from tcgpu.figures import BLUE, DARK, DARK_GREY, GREY, ORANGE, SKY, Picture, axes
from tcgpu.insight.events import MEMORY_SHIFT, SECTOR
from tcgpu.suggest import unknown

ROW = 128  # bytes of a cache line, and of one word in each bank of shared memory
MIN_ROWS, MAX_ROWS = 4, 14  # of a memory map
MAX_STEPS = 500  # of a raster
FEW = 64  # the most threads, warps or blocks that get a bar each
CHARACTER = 0.064  # inches
BARS = 1.9  # inches of the bars beside a source, with their numbers
BY = {  # measure that the bars beside a source may show -> in words
    "time": "share of the time of all warps",
    "steps": "steps of warps",
    "idle_lanes": "idle lanes, added up over all steps",
    "load_requests": "requests to read global memory",
    "load_sectors": "sectors read from global memory",
    "bytes_moved": "bytes to and from global memory",
    "shared_requests": "requests for shared memory",
    "bank_conflicts": "bank conflicts",
    "atomics": "atomic operations of lanes",
}
ACTIVITIES = {  # of a lane in a step -> colour; where several are true, the last one counts
    "waits": "#ffffff",
    "computes": GREY,
    "reads shared memory": SKY,
    "writes": DARK,
    "reads global memory": BLUE,
    "changes memory atomically": ORANGE,
}
COMPARED = BY | {  # measure that methods are compared by -> in words
    "estimated_us": "estimated time, µs",
    "sectors_per_request": "sectors per request",
    "lanes": "active lanes of a step, of 32",
}


def clean(ax, *sides):
    """Hide these sides of the frame; small numbers."""
    ax.spines[list(sides)].set_visible(False)
    ax.tick_params(labelsize=7)


def draw_source(trace, by="time", *, stage="count", kernel=None, ax=None):
    """The source of the kernels and of what they call, with a bar at each line: its part of the measure `by`."""
    if by not in BY:
        raise GraphError(f"by: {unknown('measure', by, BY)}")
    found = {place: row["share" if by == "time" else by] for place, row in trace.by_line(stage, kernel).items()}
    code = [line for function in dict.fromkeys(function for function, _ in found) for line in listing(function)]
    width = CHARACTER * max(len(text) for *_, text in code)
    ax = ax or axes(BARS + width + 0.1, 0.5 + 0.155 * len(code))
    most = max(found.values())
    for y, (function, line, text) in enumerate(code):
        amount = found.get((function, line), 0)
        if amount:
            ax.barh(y, amount / most, left=-1.1, height=0.85, color=ORANGE if amount == most else BLUE)
            number = f"{amount:,}" if by != "time" else f"{amount:.1%}" if amount >= 0.0005 else ""
            ax.text(-1.15, y, number, ha="right", va="center", size=7)
        ax.text(0, y, text, family="monospace", size=7.5, va="center", color=DARK if amount else DARK_GREY)
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
    """The lanes of a warp, step by step, and the line of the source of each step; by default of the busiest warp.

    begin: the first step that is shown; at most 500 are. ax: two pairs of axes, one above the other.
    """
    events = trace.main(kernel).events
    block, warp = busiest(events, block, warp)
    steps = np.flatnonzero((events.block == block) & (events.warp == warp))
    if not 0 <= begin < max(1, steps.size):
        raise GraphError(f"warp {warp} of block {block} does {steps.size:,} steps, so begin is not {begin!r}")
    shown = steps[begin : begin + MAX_STEPS]
    lanes = events.mask[shown] >> np.arange(WARP, dtype=np.uint32)[:, None] & 1
    upper, lower = ax or axes(11, 5, nrows=2, sharex=True, height_ratios=(3, 1))
    edges = (begin - 0.5, begin + shown.size - 0.5)
    upper.imshow(lanes * activities(events)[shown], aspect="auto", interpolation="nearest", vmin=0,
                 vmax=len(ACTIVITIES) - 1, cmap=ListedColormap(list(ACTIVITIES.values())),
                 extent=(*edges, WARP - 0.5, -0.5))  # fmt: skip
    upper.set(ylabel="lane", yticks=(0, 8, 16, 24, 31))
    part = f", {begin:,} to {begin + shown.size - 1:,} shown" if shown.size < steps.size else ""
    mean = f"{lanes.sum(axis=0).mean():.1f} of 32 lanes active on average"
    upper.set_title(f"warp {warp} of block {block}: {steps.size:,} steps{part}; {mean}", size=9)
    colours = [Patch(fc=colour, ec=GREY, lw=0.5, label=activity) for activity, colour in ACTIVITIES.items()]
    upper.legend(handles=colours, ncols=6, loc="upper center", bbox_to_anchor=(0.5, -0.03), frameon=False, fontsize=8,
                 handlelength=1, columnspacing=1)  # fmt: skip
    sites = [events.sites[number] for number in events.step_site[shown].tolist()]
    for k, function in enumerate(dict.fromkeys(site.function for site in sites)):
        here = [(begin + step, site.line) for step, site in enumerate(sites) if site.function == function]
        look = {"ms": 2.5, "color": DARK_GREY, "lw": 0}
        lower.plot(*zip(*here, strict=True), "osD^v*P"[k % 7], label=function.name, **look)
    lower.set(xlabel="step of the warp", ylabel="line", xlim=edges)
    lower.invert_yaxis()
    lower.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1, 0.5), markerscale=2)
    clean(upper, "top", "right")
    clean(lower, "top", "right")
    upper.tick_params(labelbottom=False, bottom=False)
    return upper.figure


def busiest(events, block=None, warp=None):
    """Block and warp that did the most steps, of those with these numbers; GraphError if there are none."""
    steps = np.ones(events.block.size, bool)
    steps &= True if block is None else events.block == block
    steps &= True if warp is None else events.warp == warp
    if not steps.any():
        raise GraphError(f"the launch has no warp {warp!r} of block {block!r}")
    number = events.block[steps].astype(np.int64) * WARP + events.warp[steps]
    numbers, count = np.unique(number, return_counts=True)
    return divmod(int(numbers[np.argmax(count)]), WARP)


def activities(events):
    """What the lanes of each step do: a number in the order of ACTIVITIES."""
    found = np.ones(events.step_site.size, np.int64)
    stored = events.of_kind("store") | events.of_kind("store", shared=True)
    requests = events.of_kind("load", shared=True), stored, events.of_kind("load"), events.atomic
    for number, chosen in enumerate(requests, 2):
        found[events.step[chosen]] = number
    return found


def draw_request(trace, of="sectors", *, line=None, kernel=None, ax=None):
    """The memory that one request asks for, 128 bytes a row, with the numbers of the lanes that ask for it.

    of: "sectors" for the request that reads the most sectors of global memory, "conflicts" for the one with the most
    bank conflicts in shared memory. line: only requests of this line of the source, the kernel's own if it has it.
    """
    launch = trace.main(kernel)
    events = launch.events
    request = worst_request(events, of, line, launch.kernel)
    accesses = slice(*events.first[request : request + 2])
    size, lanes, address = int(events.size[request]), events.lane[accesses], events.address[accesses]
    rows = np.unique(address // ROW)
    shown = rows[:MAX_ROWS].tolist()
    ax = ax or axes(9, 1.2 + 0.28 * len(shown))
    names = []
    for k, row in enumerate(shown):
        here = address // ROW == row
        draw_row(ax, k, address[here] % ROW, lanes[here], size, of == "sectors")
        memory, begin = divmod(row * ROW, 1 << MEMORY_SHIFT)
        names.append(f"{events.memories[memory].split(',')[0]}[{begin // size:,}:{(begin + ROW) // size:,}]")
    site = events.sites[int(events.site[request])]
    if of == "sectors":
        cost = f"{lanes.size * size} bytes; sectors of 32 bytes: {events.sectors[request]}"
    else:
        cost = f"wavefronts: {events.wavefronts[request]}; for bank conflicts: {events.conflicts[request]}"
    more = f"; {rows.size - len(shown)} more rows" if rows.size > len(shown) else ""
    ax.set_title(f"line {site.line}: {site.function.text(site.line)}\nlanes: {lanes.size}; {cost}{more}", size=8.5)
    ax.set(xlim=(0, ROW), ylim=(max(len(shown), MIN_ROWS), 0), xticks=range(0, ROW + 1, SECTOR))
    ax.set(xlabel="bytes of a row" if of == "sectors" else "bytes of a row: 32 banks of 4 bytes")
    ax.set_yticks(np.arange(len(shown)) + 0.5, names, family="monospace")
    clean(ax, "top", "right", "left", "bottom")
    ax.tick_params(length=0)
    return ax.figure


def draw_row(ax, k, offsets, lanes, size, sectors):
    """Row k of a memory map: the elements of `size` bytes that lanes ask for and, if wanted, the sectors of these."""
    ax.add_patch(Rectangle((0, k + 0.05), ROW, 0.9, fc="white", ec=GREY, lw=0.5))
    for sector in np.unique(offsets // SECTOR) if sectors else ():
        ax.add_patch(Rectangle((sector * SECTOR, k + 0.05), SECTOR, 0.9, fc=ORANGE, alpha=0.35, lw=0))
    for offset in np.unique(offsets):
        ax.add_patch(Rectangle((offset, k + 0.05), size, 0.9, fc=BLUE, ec="white", lw=0.5))
        here = lanes[offsets == offset]
        if size > 2:  # there is room for a number
            text = str(here[0]) if here.size == 1 else f"{here.size}x"
            ax.text(offset + size / 2, k + 0.52, text, color="white", size=6, ha="center", va="center")


def worst_request(events, of, line, kernel):
    """The number of the request with the most sectors or conflicts; `line`: of this line of the kernel or its calls."""
    if of not in ("sectors", "conflicts"):
        raise GraphError(f"a request is drawn of sectors or of conflicts, not of {of!r}")
    shared = of == "conflicts"
    chosen = events.of_kind("load", shared)
    if not chosen.any():  # it only writes
        chosen = events.shared == shared
    if line is not None:
        here = events.of_sites(events.site, lambda site: site.line == line, bool)
        own = here & events.of_sites(events.site, lambda site: site.function.name == kernel, bool)
        chosen &= own if own.any() else here
    if not chosen.any():
        where = "shared" if shared else "global"
        raise GraphError(f"nothing asks for {where} memory" + (f" on line {line}" if line is not None else ""))
    return int(np.argmax(np.where(chosen, getattr(events, of), -1)))


def draw_balance(trace, per="thread", of="loads", *, kernel=None, ax=None):
    """How much each thread, warp or block did; if there are many, how many did how much."""
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
    above = f": the maximum is {most / mean:.1f} times the mean" if mean else ""
    ax.set_title(f"{done.size:,} {per}s{above}", size=9)
    clean(ax, "top", "right")
    return ax.figure


def draw_all(trace, by="time", *, kernel=None):
    """The source of a kernel, by default the one that takes longest; beside it its busiest warp, its worst request and
    the balance of its threads."""
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


def draw_comparison(traces, measures=("estimated_us", "load_requests", "sectors_per_request", "lanes")):
    """Methods side by side: a panel for each measure, a bar for each method."""
    rows = traces.totals()
    panels = axes(2.6 * len(measures) + 1, 0.8 + 0.3 * len(rows), ncols=len(measures), sharey=True, squeeze=False)[0]
    for panel, measure in zip(panels, measures, strict=True):
        amounts = [row[measure] or 0 for row in rows]
        bars = panel.barh(range(len(rows)), amounts, color=BLUE)
        panel.bar_label(bars, [f"{amount:,.4g}" for amount in amounts], size=7, padding=2)
        panel.set_title(COMPARED.get(measure, measure.replace("_", " ")), size=9)
        panel.set(xlim=(0, 1.25 * (max(amounts) or 1)), yticks=range(len(rows)), xticks=[])
        panel.spines[["top", "right", "bottom"]].set_visible(False)
    panels[0].set_yticklabels([row["method"] for row in rows], size=8)
    panels[0].invert_yaxis()
    return panels[0].figure
