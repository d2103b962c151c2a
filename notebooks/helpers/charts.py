"""The charts of the notebooks, each drawn on the axes given or on a figure of its own.

Colours have the same meaning in every picture, and series the same looks in the same order: see `tcgpu.figures`.
"""

import re

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, LogNorm
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from tcgpu import list_triangles
from tcgpu.arrays import bincount, repeat
from tcgpu.figures import BLUE, DARK, DARK_GREY, GREY, ORANGE, PALE, PURPLE, SKY, axes, looks, plain_ticks
from tcgpu.plots import draw_graph, layout

LANES = 32  # of a warp
TIMINGS = "kernel", "process", "total"
DIGIT = 0.053  # inches, of the numbers above bars


# ----------------------------------------------------------------------------------------------------------- any series


def draw_bars(values, *, ylabel="", log=False, level=None, title="", ax=None):
    """Bars in groups: a dict of series -> group -> number, each with its number above; None is an empty place.

    level: where to draw a line across, to compare the bars with.
    """
    groups = list(dict.fromkeys(group for bars in values.values() for group in bars))
    ax = ax or axes(max(5, 1.6 * len(groups)), 3.5)
    width = 0.8 / len(values)
    for place, ((series, bars), look) in enumerate(looks(values.items())):
        known = [(k, bars[group]) for k, group in enumerate(groups) if bars.get(group) is not None]
        left = [k + (place - (len(values) - 1) / 2) * width for k, _ in known]
        heights = [height for _, height in known]
        drawn = ax.bar(
            left, heights, width, label=series, color=look.color, hatch=look.hatch, edgecolor="white", lw=0.5
        )
        said = [_short(height) for height in heights]
        room = ax.figure.get_figwidth() * ax.get_position().width * width / len(groups)
        upright = max(map(len, said), default=0) * DIGIT > room
        ax.bar_label(drawn, said, size=7, padding=2, rotation=90 if upright else 0)
    if level is not None:
        ax.axhline(level, color="black", lw=1, zorder=0)
    ax.set(ylabel=ylabel, title=title, yscale="log" if log else "linear", xticks=range(len(groups)))
    ax.set_xticklabels(groups, size=8)
    ax.margins(y=0.1 + 0.06 * len(values))  # room for the legend
    if log:
        plain_ticks(ax.yaxis)
    else:
        ax.yaxis.set_major_formatter(_commas)
    ax.legend(frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


def draw_curves(curves, *, xlabel="", ylabel="", log="xy", level=None, title="", ax=None):
    """A line a series: a dict of series -> [(x, y), ...]. log: which axes are logarithmic; level: a line across."""
    ax = ax or axes(6, 3.5)
    for (series, points), look in looks(curves.items()):
        if points:
            ax.plot(*zip(*points, strict=True), **look.line, ms=4, lw=1.3, label=series)
    if level is not None:
        ax.axhline(level, color="black", lw=1, zorder=1)
    for letter, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        if letter in log:
            getattr(ax, f"set_{letter}scale")("log")
            plain_ticks(axis)
    ax.set(xlabel=xlabel, ylabel=ylabel, title=title)
    ax.legend(frameon=False, fontsize=8)
    ax.grid(color=PALE)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


def draw_lanes(warps, *, unit="steps"):
    """The steps of the 32 lanes of a warp, and how long each waits: name -> steps of each lane, a panel per warp; those
    with the most are orange."""
    panels = np.atleast_1d(axes(3.4 * len(warps), 2.6, ncols=len(warps)))
    for panel, (name, steps) in zip(panels, warps.items(), strict=True):
        steps = np.asarray(steps)
        lanes, longest = np.arange(steps.size), steps.max(initial=0)
        panel.bar(lanes, longest - steps, 0.8, steps, color="white", edgecolor=GREY, hatch="////", lw=0.5)
        panel.bar(lanes, steps, 0.8, color=np.where(steps == longest, ORANGE, BLUE))
        panel.set_title(f"{name}\n{steps.sum() / max(1, longest * steps.size):.0%} of its {unit} are used", size=9)
        panel.set(xlabel="lane", xticks=[0, 8, 16, 24, 31])
        panel.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        panel.yaxis.set_major_formatter(_commas)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(f"{unit} (hatched: waiting)")
    return panels[0].figure


def draw_timeline(lanes, *, unit="milliseconds", title=""):
    """Pieces of work over time: a dict of name -> rows of two times, when each piece began and ended."""
    panel = axes(9, 0.7 * len(lanes) + 0.8)
    _draw_lanes_over_time(panel, dict(zip(lanes, (ORANGE, BLUE, GREY), strict=False)), lanes, edge="white")
    panel.set(xlabel=unit, title=title)
    return panel.figure


def draw_timelines(timelines, *, orange, unit="milliseconds"):
    """The same of several things, which have the same lanes: a dict of title -> lanes, a panel each with a scale of its
    own. orange: the name of the lane in orange; all others are blue."""
    rows = -(-len(timelines) // 2)
    lanes = next(iter(timelines.values()))
    panels = axes(9.5, rows * (0.22 * len(lanes) + 0.9), nrows=rows, ncols=2, sharey=True, squeeze=False)
    for panel, (title, own) in zip(panels.flat, timelines.items(), strict=False):
        colors = {name: ORANGE if name == orange else BLUE for name in own}
        _draw_lanes_over_time(panel, colors, own, edge=None)
        panel.set_title(title, size=10)
        panel.set_xlim(left=0)
        panel.grid(axis="x", color=PALE)
        panel.set_axisbelow(True)
    for panel in panels.flat[len(timelines) :]:
        panel.set_axis_off()
    for panel in panels[-1]:
        panel.set_xlabel(unit)
    return panels[0, 0].figure


def _draw_lanes_over_time(panel, colors, lanes, edge):
    """A lane for each of `colors`; edge: the colour of the pieces' edges, None for their own, so that the shortest are
    seen."""
    for k, (name, color) in enumerate(colors.items()):
        begin, end = np.asarray(lanes[name], float).reshape(-1, 2).T
        places = np.full(begin.size, k)
        panel.barh(places, end - begin, 0.7, begin, color=color, edgecolor=edge or color, lw=0.3, label=name)
    panel.set(yticks=range(len(lanes)), yticklabels=list(lanes))
    if not panel.yaxis_inverted():  # panels that share the axis invert it once
        panel.invert_yaxis()
    panel.spines[["top", "right"]].set_visible(False)


def draw_schedules(schedules, *, unit="combinations", machine="multiprocessor"):
    """The jobs of each machine over time: a dict of name -> Schedule, a panel each. The line is the mean of all loads,
    where the last job would end if the work could be divided evenly."""
    panels = axes(8, 1.9 * len(schedules), nrows=len(schedules), sharex=True, squeeze=False)[:, 0]
    for panel, (name, schedule) in zip(panels, schedules.items(), strict=True):
        panel.barh(schedule.machine, schedule.weights, 0.8, schedule.begin, color=BLUE, edgecolor="white", lw=0.7)
        jobs = zip(schedule.machine, schedule.begin, schedule.weights, strict=True)
        for job, (place, begin, weight) in enumerate(jobs):
            if weight > 0.04 * schedule.makespan:
                panel.text(begin + weight / 2, place, str(job), color="white", ha="center", va="center", size=7)
        mean = schedule.loads.mean()
        panel.axvline(mean, color=ORANGE)
        panel.set_title(f"{name}: {schedule.makespan / mean - 1:.1%} above the mean", size=9)
        panel.set(ylabel=machine, yticks=range(schedule.loads.size))
        panel.invert_yaxis()
        panel.spines[["top", "right"]].set_visible(False)
    panels[-1].set_xlabel(unit)
    panels[-1].xaxis.set_major_formatter(_commas)
    return panels[0].figure


def draw_scaling(measured, simulated=None, published=None, *, title="", ax=None):
    """How many times as fast many GPUs are as one: dicts of series -> [(GPUs, times), ...], on a line that is ideal.

    What is simulated has the colour of what was measured under the same name; of what is published there are points.
    """
    simulated, published = simulated or {}, published or {}
    ax = ax or axes(6.5, 4.5)
    most = max(gpus for series in (measured, simulated, published) for points in series.values() for gpus, _ in points)
    ax.plot([1, most], [1, most], color="#a0aec0", lw=1, label="ideal")
    for (name, points), look in looks(measured.items()):
        if name in simulated:
            dotted = {"ls": ":", "mfc": "white", "ms": 5, "lw": 1.2, "label": f"{name}, simulated"}
            ax.plot(*zip(*simulated[name], strict=True), color=look.color, marker=look.marker, **dotted)
        solid = {"ls": "-", "ms": 6, "lw": 1.6, "label": f"{name}, measured"}
        ax.plot(*zip(*points, strict=True), color=look.color, marker=look.marker, **solid)
    for (name, points), marker in zip(published.items(), "*P", strict=False):
        ax.plot(*zip(*points, strict=True), marker, color="black", ms=10, label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log", base=2)
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.set(xlabel="GPUs", ylabel="times as fast as one", title=title)
    ax.legend(frameon=False, fontsize=8)
    ax.grid(color=PALE, zorder=-1)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


def _short(number):
    """A number of two or three digits, as text."""
    return f"{number:,.0f}" if number >= 99.5 else f"{number:.3g}" if number >= 1 else f"{number:.2g}"


_commas = FuncFormatter(lambda value, _: f"{value:,.10g}")


# ---------------------------------------------------------------------------------------------------------- the machine


def draw_gpu(gpu, *, ax=None):
    """A GPU (one of `tcgpu.insight.gpus.GPUS`) from its lanes to its memory; in orange, a request of one warp.

    Two of its multiprocessors are drawn, the first with two blocks of two warps; memory as sectors of eight words.
    """
    ax = ax or axes(9, 5.2)

    def box(x, y, width, height, text="", *, color=BLUE, fill="white", size=8, at="top"):
        ax.add_patch(Rectangle((x, y), width, height, facecolor=fill, edgecolor=color, lw=1.2))
        ax.text(
            x + width / 2, y + height - 0.12 if at == "top" else y + height / 2, text, ha="center", va=at, size=size
        )

    answer = {place: f"{gpu.ns(place):.0f} ns" for place in ("shared", "L1", "L2", "memory")}
    nearby = f"shared memory and L1 cache: {gpu.l1_bytes >> 10} KB together\n"
    nearby += f"shared memory answers in {answer['shared']}, L1 in {answer['L1']}"
    for sm, left in enumerate((0, 9.2)):
        box(left, 3.6, 8.8, 4.8, f"SM {sm}, a multiprocessor", size=9)
        for block, x in enumerate((left + 0.3, left + 4.5)):
            box(x, 5.3, 4, 2.4, f"block: {2 * LANES} threads", color=DARK)
            for warp, y in enumerate((6.45, 5.5)):
                asks = (sm, block, warp) == (0, 0, 1)
                ax.text(x + 0.15, y + 0.42, f"warp {warp}: {LANES} lanes", size=7, color=ORANGE if asks else "black")
                for lane in range(LANES):
                    cell = (x + 0.15 + lane * 0.116, y), 0.09, 0.3
                    ax.add_patch(Rectangle(*cell, color=ORANGE if asks else BLUE, lw=0))
        box(left + 0.3, 3.9, 8.2, 0.9, nearby, fill=PALE, at="center")
    ax.text(18.2, 6.2, f"… {gpu.sms} SMs", va="center", size=9)
    l2 = f"L2 cache of all SMs: {gpu.l2_bytes >> 20} MB, answers in {answer['L2']}"
    box(0, 2.2, 18, 0.9, l2, fill=PALE, at="center")
    memory = f"global memory: {gpu.memory_bytes >> 30} GB, {gpu.bandwidth:,.0f} GB/s, answers in {answer['memory']}"
    memory += ", in sectors of 32 bytes"
    box(0, 0, 18, 1.7, memory, fill=PALE)
    for sector in range(14):
        asked = 2 <= sector < 6
        for word in range(8):
            cell = (0.4 + sector * 1.23 + word * 0.14, 0.35), 0.12, 0.5
            ax.add_patch(Rectangle(*cell, color=ORANGE if asked else BLUE, lw=0))
    way = {"arrowstyle": "->", "color": ORANGE, "lw": 1.6}
    ax.annotate("", (2.9, 0.9), (0.5, 5.45), arrowprops=way)
    ax.text(2.2, 3.35, "a request: 32 neighbouring words, 4 sectors", color=ORANGE, size=8, va="center")
    ax.set(xlim=(-0.2, 20.2), ylim=(-0.2, 8.6))
    ax.set_axis_off()
    return ax.figure


# ----------------------------------------------------------------------------------------------------------- the report


def draw_times(tables, *, log=True):
    """The report's first chart: the times of its two methods by graph. A dict of machine -> table, a panel each."""
    panels = np.atleast_1d(axes(4.8 * len(tables), 3.6, ncols=len(tables), sharey=True))
    for panel, (machine, table) in zip(panels, tables.items(), strict=True):
        values = {
            name: {_two_lines(row["graph"]): row[f"{key}_ms"] for row in table}
            for name, key in (("simple (naive)", "simple"), ("shared (column_block)", "shared"))
        }
        draw_bars(values, ylabel="milliseconds" if panel is panels[0] else "", log=log, title=machine, ax=panel)
    return panels[0].figure


def draw_speedups(tables):
    """The report's second chart: how many times faster shared is than simple, by graph; machine -> table."""
    values = {machine: {row["graph"]: row["speedup"] for row in table} for machine, table in tables.items()}
    return draw_bars(values, ylabel="speedup, shared over simple", level=1)


def _two_lines(name):
    """A long name broken once, where words begin, so that names stand side by side."""
    return re.sub(r"[-_]|(?<=[a-z])(?=[A-Z])", lambda found: f"{found.group()}\n", name, count=1)


# ------------------------------------------------------------------------------------------------------ Bisson & Fatica


# the colour and marker of each of the four kernels
KERNELS = {
    "bitmap_thread": (SKY, "o"),
    "bitmap_warp": (BLUE, "s"),
    "bitmap_block_shared": (ORANGE, "^"),
    "bitmap_block_global": (DARK, "D"),
}


def draw_regions(found, *, longest_thread, mean_warp, vertices_shared):
    """Algorithm 5 as regions over the mean and the longest column, and on them each graph as its fastest kernel.

    found: the rows of `calibration.choices`. A panel for the graphs of fewer vertices than `vertices_shared`, one for
    the others. A graph on the colour of another kernel is one where the algorithm chooses wrongly.
    """
    panels = axes(11, 4.2, ncols=2, sharex=True, sharey=True)
    means, longest = [row["mean"] for row in found], [row["longest_column"] for row in found]
    left, right, bottom, top = min(means) / 1.6, max(means) * 1.6, max(1, min(longest) / 1.6), max(longest) * 1.6
    edge, corner = longest_thread + 0.5, max(left, mean_warp)
    for panel, small in zip(panels, (True, False), strict=True):
        block = "bitmap_block_shared" if small else "bitmap_block_global"
        for kernel, x, y, x_end, y_end in (
            ("bitmap_thread", left, bottom, right, edge),
            ("bitmap_warp", left, edge, corner, top),
            (block, corner, edge, right, top),
        ):
            panel.fill_between([x, x_end], y, y_end, color=KERNELS[kernel][0], alpha=0.25, lw=0)
        for kernel, (color, marker) in KERNELS.items():
            here = [row for row in found if (row["vertices"] < vertices_shared) == small and row["best"] == kernel]
            places = [(row["mean"], row["longest_column"]) for row in here] or [(None, None)]
            panel.plot(*zip(*places, strict=True), marker, color=color, mec="black", ms=7, ls="", label=kernel)
        sign = "fewer than" if small else "at least"
        panel.set(xscale="log", yscale="log", xlim=(left, right), ylim=(bottom, top), xlabel="mean column",
                  title=f"{sign} {vertices_shared:,} vertices")  # fmt: skip
        plain_ticks(panel.xaxis, panel.yaxis)
    panels[0].set_ylabel("longest column")
    handles, labels = panels[1].get_legend_handles_labels()
    panels[0].figure.legend(handles, labels, title="marker: the fastest; area: what is chosen", ncols=4,
                            loc="outside lower center", frameon=False)  # fmt: skip
    return panels[0].figure


def draw_rates(tables):
    """Figure 6 of Bisson & Fatica: edges a second on each graph, by the kernel's speed. machine -> `measured.rates`.

    A row a graph, a panel a machine, so that all names can be read; a grey line joins the three rates of a graph.
    """
    rows = max(map(len, tables.values()))
    panels = np.atleast_1d(axes(5.8 * len(tables), 1 + 0.145 * rows, ncols=len(tables), sharex=True))
    for panel, (machine, rates) in zip(panels, tables.items(), strict=True):
        known = [(k, [rate[name] for name in TIMINGS if rate[name]]) for k, rate in enumerate(rates)]
        spans = ((k, min(each), max(each)) for k, each in known if each)
        panel.hlines(*zip(*spans, strict=True), color=GREY, lw=1, zorder=0)
        for name, look in looks(TIMINGS):
            points = [(rate[name], k) for k, rate in enumerate(rates) if rate[name]]
            panel.plot(*zip(*points, strict=True), look.marker, color=look.color, ms=4, label=name)
        panel.set(
            xscale="log", title=machine, xlabel="edges a second", ylim=(len(rates) - rows - 0.7, len(rates) - 0.3)
        )
        panel.set_yticks(range(len(rates)), [rate["graph"] for rate in rates], size=7)
        panel.spines[["top", "right"]].set_visible(False)
        panel.grid(axis="x", color=PALE, zorder=-1)
    panels[0].legend(frameon=False, fontsize=8, loc="lower right")
    return panels[0].figure


def draw_peeling(graph, numbers, *, positions=None):
    """A truss peeled round by round, a panel each: the edges that a round removes stand out, and are then missing.

    numbers: of each round the array of edges, as a `TrussRun` has it: 0 where an edge is still there.
    """
    from matplotlib.collections import LineCollection

    points = layout(graph) if positions is None else np.asarray(positions)
    lines = points[np.stack(graph.edges(), axis=1)]
    panels = np.atleast_1d(axes(3.4 * len(numbers), 3.4, ncols=len(numbers)))
    before = np.zeros(graph.m, bool)
    for round, (panel, number) in enumerate(zip(panels, numbers, strict=True), 1):
        gone = number != 0
        goes, stays = gone & ~before, ~gone
        for chosen, colour, width in ((stays, BLUE, 1.2), (goes, ORANGE, 1.6)):
            panel.add_collection(LineCollection(lines[chosen], colors=colour, linewidths=width, zorder=1))
        inside = np.unique(np.concatenate([ends[~before] for ends in graph.edges()]))
        panel.scatter(*points[inside].T, s=14, color=DARK, zorder=2)
        panel.set_title(f"round {round}: {goes.sum()} of {(~before).sum()} edges go", size=10)
        panel.set(xlim=_around(points[:, 0]), ylim=_around(points[:, 1]), aspect="equal")
        panel.set_axis_off()
        before = gone
    return panels[0].figure


def draw_truss_numbers(graph, numbers, *, positions=None, ax=None):
    """The graph with each edge the wider and darker the larger the k of the last truss that has it."""
    from matplotlib.collections import LineCollection

    ax = ax or axes(5.5, 5)
    points = layout(graph) if positions is None else np.asarray(positions)
    order = np.argsort(numbers, kind="stable")
    lines = points[np.stack(graph.edges(), axis=1)][order]
    levels = np.unique(numbers)
    shades = {k: (GREY, SKY, BLUE, ORANGE)[min(place, 3)] for place, k in enumerate(levels)}
    width = [0.8 + 0.8 * np.searchsorted(levels, k) for k in numbers[order]]
    ax.add_collection(LineCollection(lines, colors=[shades[k] for k in numbers[order]], linewidths=width, zorder=1))
    ax.scatter(*points.T, s=22, color=DARK, zorder=2)
    for k in levels:
        ax.plot([], [], color=shades[k], lw=2, label=f"{k}: {np.count_nonzero(numbers == k)} edges")
    ax.legend(title="largest k", frameon=False, fontsize=8)
    ax.set(xlim=_around(points[:, 0]), ylim=_around(points[:, 1]), aspect="equal")
    ax.set_axis_off()
    return ax.figure


def draw_trusses(rows, *, key="total_ms"):
    """Bisson and Fatica's Figure 5: the time of a truss against k, a line a graph; rows of the record "trusses"."""
    names = dict.fromkeys(row["graph"] for row in rows)
    curves = {name: [(row["k"], row[key]) for row in rows if row["graph"] == name] for name in names}
    title = f"k-trusses on {rows[0]['gpu_name']}, from raw edges"
    return draw_curves(curves, xlabel="k", ylabel="milliseconds", title=title, ax=axes(7, 4.2))


def _around(values):
    """Limits of an axis with a margin on both sides."""
    margin = 0.06 * (values.max() - values.min())
    return values.min() - margin, values.max() + margin


# ------------------------------------------------------------------------------------------------------- four vertices


CORNERS = np.array([(0, 0), (0, 1), (1, 1), (1, 0)])  # where vertices 0 to 3 are drawn
BY_DEGREE = GREY, SKY, BLUE, DARK  # the colour of a vertex, by its number of neighbours


def draw_motifs(shapes):
    """Graphs on four vertices side by side, with the degree of each vertex: a dict of name -> pairs of vertices."""
    from matplotlib.collections import LineCollection

    panels = axes(1.6 * len(shapes), 1.9, ncols=len(shapes))
    for panel, (name, pairs) in zip(panels, shapes.items(), strict=True):
        ends = np.array(pairs, int).reshape(-1, 2)
        degrees = bincount(ends.ravel(), minlength=4)
        panel.add_collection(LineCollection(CORNERS[ends], colors=DARK_GREY, linewidths=1.5, zorder=1))
        panel.scatter(*CORNERS.T, s=200, color=[BY_DEGREE[degree] for degree in degrees], zorder=2)
        for degree, corner in zip(degrees, CORNERS, strict=True):
            color = "black" if degree < 2 else "white"
            panel.annotate(str(degree), corner, color=color, ha="center", va="center_baseline", size=9, zorder=3)
        panel.set_title(name, size=10)
        panel.set(xlim=(-0.3, 1.3), ylim=(-0.3, 1.3), aspect="equal")
        panel.set_axis_off()
    return panels[0].figure


def draw_side_by_side(graphs, positions, *, edge=None):
    """Graphs on the same places, and the triangles at an `edge` of all of them: a dict of name -> graph."""
    panels = axes(4.2 * len(graphs), 4.2, ncols=len(graphs))
    for panel, (name, graph) in zip(panels, graphs.items(), strict=True):
        triangles = np.concatenate([np.empty((0, 3), int), *list_triangles(graph)])
        at_edge = np.isin(triangles, edge).sum(axis=1) == 2 if edge else slice(0)
        draw_graph(graph, triangles=triangles[at_edge], positions=positions, ax=panel)
        panel.set_title(name)
    return panels[0].figure


# ---------------------------------------------------------------------------------------------------- Chatterjee et al.


def draw_levels(graph, chunks):
    """A graph by the levels of a Split, left to right, and under it which levels each chunk takes and how large it is.

    Edges inside a level are arcs in orange, edges to the next level grey lines.
    """
    sizes = np.diff(chunks.level_ptr)
    level = repeat(np.arange(sizes.size), sizes)
    height = np.concatenate([(size - 1) / 2 - np.arange(size) for size in sizes.tolist()] or [[]])
    tall = 0.25 * sizes.max(initial=4), 0.4 * len(chunks)
    panels = axes(1.6 * sizes.size + 1, 1 + sum(tall), nrows=2, sharex=True, height_ratios=tall)
    one, two = (chunks.place[ends] for ends in graph.edges())
    for p, q in zip(one.tolist(), two.tolist(), strict=True):
        inside = level[p] == level[q]
        bend = {"arrowstyle": "-", "connectionstyle": f"arc3,rad={0.3 if inside else 0}"}
        look = {"color": ORANGE if inside else GREY, "lw": 1}
        panels[0].annotate("", (level[p], height[p]), (level[q], height[q]), arrowprops=bend | look, zorder=1)
    panels[0].scatter(level, height, s=160, color=BLUE, zorder=2)
    for v, x, y in zip(chunks.order, level, height, strict=True):
        panels[0].annotate(str(v), (x, y), color="white", ha="center", va="center", size=7, zorder=3)
    for c, (size, tests, fits) in enumerate(zip(chunks.size, chunks.tests, chunks.fits, strict=True)):
        first, last = level[chunks.start[c] + [0, size - 1]]
        panels[1].barh(c, last - first + 0.6, left=first - 0.3, color=BLUE if fits else ORANGE)
        panels[1].text((first + last) / 2, c, f"{size} vertices, {tests:,} combinations",
                       color="white", ha="center", va="center", size=7)  # fmt: skip
    panels[1].invert_yaxis()
    panels[1].set(xticks=range(sizes.size), xlabel="level", ylabel="chunk")
    panels[1].yaxis.set_major_locator(MaxNLocator(integer=True))
    for panel in panels:
        panel.spines[["top", "right", "left"]].set_visible(False)
    panels[0].set(yticks=[])
    panels[0].spines["bottom"].set_visible(False)
    panels[0].tick_params(bottom=False)
    return panels[0].figure


def draw_layouts(layouts, position, n=6):
    """Where each layout has the bits of the pairs of n vertices: a panel a layout, the index of the bit in each cell.

    position: the function that returns it (see `chunks.position`). What is blank is not stored.
    """
    panels = axes(2.6 * len(layouts), 2.7, ncols=len(layouts))
    for panel, name in zip(panels, layouts, strict=True):
        for i, j in np.ndindex(n, n):
            first = {"matrix": 0, "utm": i, "s-utm": i + 1}[name]
            if j >= first:
                color = BLUE if i < j else GREY
                panel.add_patch(Rectangle((j, i), 1, 1, facecolor=color, edgecolor="white"))
                at = position(i, j, n, name)
                panel.text(j + 0.5, i + 0.5, at, color="white" if i < j else "black", ha="center", va="center", size=8)
        panel.set(title=name, xlim=(0, n), ylim=(n, 0), aspect="equal", xlabel="vertex j")
        panel.set(xticks=np.arange(n) + 0.5, yticks=np.arange(n) + 0.5)
        panel.set_xticklabels(range(n), size=8)
        panel.set_yticklabels(range(n), size=8)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
    panels[0].set_ylabel("vertex i")
    return panels[0].figure


def draw_half_warps(requests, *, segment=128, bytes_each=4):
    """Which words the lanes of half a warp read, and in which segments of memory: name -> byte addresses, a panel each.

    Segments that no lane reads are left out. Those that are read come in the order of their addresses.
    """
    panels = np.atleast_1d(axes(9, 1.8 * len(requests), nrows=len(requests)))
    most = max(len(np.unique(np.asarray(addresses) // segment)) for addresses in requests.values())
    words = segment // bytes_each
    width = most * (words + 6)
    for panel, (name, addresses) in zip(panels, requests.items(), strict=True):
        touched, of_lane = np.unique(np.asarray(addresses) // segment, return_inverse=True)
        left = (width - touched.size * (words + 6)) / 2 + np.arange(touched.size) * (words + 6) + 3
        lanes = (np.arange(len(addresses)) + 0.5) * width / len(addresses)
        read = left[of_lane] + np.asarray(addresses) % segment // bytes_each
        for x in left:
            panel.add_patch(Rectangle((x, 0), words, 0.5, facecolor=GREY, edgecolor=DARK, lw=0.8))
        for lane, (x, word) in enumerate(zip(lanes, read, strict=True)):
            panel.add_patch(Rectangle((word, 0), 1, 0.5, color=ORANGE, lw=0.5))
            panel.plot([x, word + 0.5], [1.75, 0.5], color=BLUE, lw=0.8)
            panel.text(x, 1.95, str(lane), ha="center", va="center", size=8, color="white", zorder=3)
        panel.scatter(lanes, np.full(lanes.size, 1.95), s=150, color=BLUE, zorder=2)
        panel.set_title(f"{name}: {touched.size} segment{'s' * (touched.size > 1)} of {segment} bytes", size=9)
        panel.set(xlim=(0, width), ylim=(-0.1, 2.3))
        panel.set_axis_off()
    return panels[0].figure


def draw_memory(arrangements, partitions):
    """Figures 8 and 9: which chunks have bits in which 256 bytes of memory. name -> {row of 256 bytes: chunks}.

    A row of cells is one turn of the partitions. Orange: several chunks have bits there.
    """
    turns = {name: max(rows) // partitions + 1 for name, rows in arrangements.items()}
    tall = list(turns.values())
    panels = axes(8, 0.5 * len(tall) + 0.35 * sum(tall), nrows=len(tall), height_ratios=tall, sharex=True)
    for panel, (name, rows) in zip(panels, arrangements.items(), strict=True):
        for at in range(turns[name] * partitions):
            y, x = divmod(at, partitions)
            chunks = rows.get(at, [])
            color = ORANGE if len(chunks) > 1 else BLUE if chunks else "white"
            panel.add_patch(Rectangle((x - 0.48, y - 0.46), 0.96, 0.92, facecolor=color, edgecolor=GREY))
            panel.text(x, y, ", ".join(map(str, chunks)), ha="center", va="center", color="white", size=8)
        panel.set(xlim=(-0.5, partitions - 0.5), ylim=(turns[name] - 0.5, -0.5), yticks=[], xticks=range(partitions))
        panel.set_title(name, size=9)
        panel.tick_params(length=0)
        panel.spines[:].set_visible(False)
    panels[-1].set_xlabel("partition, 256 bytes wide (in the cells: the chunks that have bits there)")
    return panels[0].figure


def draw_queues(queues, partitions):
    """Figures 6 and 7: who waits at which partition of memory. name -> {partition: chunks}, a panel each.

    A square is a transaction, with the number of the chunk whose warp asks for it.
    """
    panels = np.atleast_1d(axes(3.4 * len(queues), 3.4, ncols=len(queues), sharey=True))
    for panel, (name, waiting) in zip(panels, queues.items(), strict=True):
        asked = sum(map(len, waiting.values()))
        even = -(-asked // partitions)
        for partition, chunks in waiting.items():
            for place, chunk in enumerate(chunks):
                color = BLUE if place < even else ORANGE
                panel.add_patch(Rectangle((partition - 0.46, place + 0.04), 0.92, 0.92, color=color))
                panel.text(partition, place + 0.5, str(chunk), color="white", ha="center", va="center", size=7)
        longest = max(map(len, waiting.values()))
        panel.axhline(asked / partitions, color=DARK, lw=1, ls="--")
        panel.set_title(f"{name}: {asked} transactions, the longest queue {longest}", size=9)
        panel.set(xlabel="partition", xticks=range(partitions), xlim=(-0.6, partitions - 0.4))
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set(
        ylabel="transactions (line: mean)", ylim=(0, 0.5 + max(len(c) for q in queues.values() for c in q.values()))
    )
    return panels[0].figure


# -------------------------------------------------------------------------------------------------------------- TriCore


def draw_lengths(ratios):
    """How much faster one method is than another, by the lengths of an edge's two columns: name -> {(m, n): times}.

    A panel each; blue where the first one wins, orange where it loses, the number in every cell.
    """
    panels = np.atleast_1d(axes(4.4 * len(ratios), 4.2, ncols=len(ratios), sharey=True))
    shades = LinearSegmentedColormap.from_list("", [ORANGE, "white", BLUE])
    for panel, (name, times) in zip(panels, ratios.items(), strict=True):
        lengths = sorted({length for pair in times for length in pair})
        cells = np.full((len(lengths), len(lengths)), np.nan)
        for (m, n), ratio in times.items():
            y, x = lengths.index(m), lengths.index(n)
            cells[y, x] = ratio
            panel.text(x, y, f"{ratio:.0f}" if ratio >= 9.95 else f"{ratio:.2g}", ha="center", va="center", size=9,
                       color="white" if ratio > 6 else "black")  # fmt: skip
        panel.imshow(cells, cmap=shades, norm=LogNorm(1 / 16, 16), origin="lower")
        panel.set(title=name, xlabel="rows of the longer column")
        panel.set_xticks(range(len(lengths)), [f"{length:,}" for length in lengths], size=8)
        panel.set_yticks(range(len(lengths)), [f"{length:,}" for length in lengths], size=8)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("rows of the shorter column")
    return panels[0].figure


# ------------------------------------------------------------------------------------------------------------- adaptive


def draw_roofline(rows, *, ax=None):
    """How many instructions a second kernels run, against how many they run for each byte that memory moves.

    rows: those of benchmarks/gpu.py, a kernel each, with counters. The roofs: an instruction a cycle in each quarter of
    a multiprocessor, and the bandwidth of a copy, measured. The larger a dot, the longer its kernel takes.
    """
    ax = ax or axes(6.5, 4.2)
    moved = [max(1, row["dram_read_bytes"] + row["dram_write_bytes"]) for row in rows]
    pairs = zip(rows, moved, strict=True)
    points = [(row["instructions"] / bytes, row["instructions"] / row["ncu_ns"]) for row, bytes in pairs]
    flat = max(4 * row["gpu_sms"] * row["cycles_per_second"] for row in rows) / 1e9
    slope = rows[0]["copy_bytes_per_second"] / 1e9
    x = np.geomspace(min(min(x for x, _ in points) / 3, flat / slope / 3), max(x for x, _ in points) * 3, 200)
    ax.plot(x, np.minimum(slope * x, flat), color=ORANGE, label=f"{flat:,.0f} instructions a ns, {slope:,.0f} bytes")
    longest = max(row["kernel_ms"] for row in rows)
    for row, point in zip(rows, points, strict=True):
        size = 4 + 16 * (row["kernel_ms"] / longest) ** 0.5
        ax.plot(*point, "o", color=BLUE, ms=size, alpha=0.7)
        ax.annotate(row["kernel"], point, (size / 2 + 3, 0), textcoords="offset points", size=8, va="center")
    ax.set(xscale="log", yscale="log", xlabel="warp instructions a byte from memory", ylabel="warp instructions a ns")
    ax.set_ylim(min(y for _, y in points) / 2, 1.5 * flat)
    plain_ticks(ax.xaxis, ax.yaxis)
    ax.legend(loc="lower right", frameon=False, fontsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    return ax.figure


WAYS = {"natural": ("natural order", BLUE, "o"), "merged": ("by degree, merged", SKY, "s"),
        "looked": ("by degree, look-ups", PURPLE, "D"), "degree": ("by degree, classes", DARK, "^")}  # fmt: skip


def draw_orders(times):
    """Estimated against measured times of counts in four ways, and of natural order over the best other way; of
    `order_times`.

    A choice is wrong if the way with the smallest estimate is not the fastest: such graphs are orange, and listed.
    """
    left, right = axes(11, 4.8, ncols=2)
    for row in times:
        estimated, measured = row["estimated"], row["measured"]
        x, y = (ms["natural"] / min(ms["merged"], ms["looked"], ms["degree"]) for ms in (estimated, measured))
        for way, (_, color, marker) in WAYS.items():
            color, level = (ORANGE, 3) if row["wrong"] else (color, 2)
            left.plot(estimated[way], measured[way], marker, color=color, ms=5, alpha=0.7, zorder=level)
        label = {"label": row["kind"]} if row["wrong"] else {}
        right.plot(x, y, "s" if label else "o", color=ORANGE if label else BLUE, ms=5, alpha=0.7, **label)
    for panel in (left, right):
        panel.set(xscale="log", yscale="log", aspect="equal")
        ends = [*panel.get_xlim(), *panel.get_ylim()]
        low, high = min(ends), max(ends)
        panel.plot([low, high], [low, high], color=GREY, lw=1, zorder=0)
        panel.set(xlim=(low, high), ylim=(low, high))
        plain_ticks(panel.xaxis, panel.yaxis)
        panel.spines[["top", "right"]].set_visible(False)
    right.axhline(1, color=GREY, lw=1, zorder=0)
    right.axvline(1, color=GREY, lw=1, zorder=0)
    for label, color, marker in WAYS.values():
        left.plot([], [], marker, color=color, label=label)
    left.set(xlabel="estimated milliseconds", ylabel="measured milliseconds", title="each way")
    right.set(xlabel="estimated", ylabel="measured", title="natural order's time over the better one by degree")
    left.legend(frameon=False, fontsize=8)
    if right.get_legend_handles_labels()[0]:
        right.legend(title="chosen wrong", loc="upper left", frameon=False, fontsize=8)
    return left.figure
