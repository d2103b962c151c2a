"""The explorer's charts: timings as nested bars, and sweeps as curves. Blue is measured now, grey was recorded."""

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from tcgpu.figures import BLUE, GREY, ORANGE

DARK, LIGHT = "#2d3748", "#e2e8f0"
# the three timings lie in each other: kernel in process, process in total
NESTED = (("total_ms", 0.86), ("process_ms", 0.62), ("kernel_ms", 0.38))
SHADES = {
    "gpu": ("#bee3f8", "#63b3ed", BLUE),
    "cpu": ("#feebc8", "#f6ad55", ORANGE),
    "sim": ("#edf2f7", "#a0aec0", DARK),
}
ENGINES = {"gpu": "GPU", "cpu": "native threads", "sim": "simulator"}
CURVES = ((BLUE, "o-"), (ORANGE, "s-"), (DARK, "^-"), ("#38a169", "D-"), ("#805ad5", "v-"), ("#d53f8c", "P-"))
SIZE = 8  # of letters, in points
LONGEST = 48  # letters of a title


def draw_timings(labels, rows, *, title, ax):
    """A bar a row: its total, in it its process, in that its kernel; all on one logarithmic axis."""
    for place, row in enumerate(rows):
        for (key, height), color in zip(NESTED, SHADES[row["engine"]]):
            ax.barh(place, row[key], height, color=color, lw=0)
        ax.annotate(_short(row["kernel_ms"]), (row["kernel_ms"], place), (3, 0), textcoords="offset points",
                    size=SIZE, va="center")  # fmt: skip
    for engine in dict.fromkeys(row["engine"] for row in rows):
        ax.barh(0, 0, color=SHADES[engine][-1], label=ENGINES[engine])
    if rows:
        ax.figure.legend(frameon=False, fontsize=SIZE, loc="outside lower right", ncols=3)
    times = [row[key] for row in rows for key, _ in NESTED if row[key] > 0]
    low, high = (min(times) / 3, max(times) * 4) if times else (0.1, 100)
    ax.set(xscale="log", xlim=(low, high), ylim=(max(len(rows), 4) - 0.5, -0.5), yticks=range(len(rows)))
    ax.set_yticklabels(labels, size=SIZE)
    ax.set_xlabel("milliseconds: kernel (dark) in process in total", size=SIZE)
    _plain(ax, title)
    _few_ticks(ax.xaxis)


def draw_sweep(live, recorded, *, reach, ylabel, title, ax):
    """Curves over nonzeros per column, those within `reach`: measured now in colour, recorded in grey and dashed."""
    for (name, points), style in zip(recorded.items(), ("--", ":", "-.")):
        shown = [point for point in points if reach[0] <= point[0] <= reach[1]]
        if shown:
            ax.plot(*zip(*shown), style, color="#718096", lw=1.4, label=name)
    for (name, points), (color, style) in zip(live.items(), CURVES * 3):
        if points:
            ax.plot(*zip(*points), style, color=color, lw=1.4, ms=4, label=name)
    if ylabel.startswith("speedup"):
        ax.axhline(1, color="black", lw=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlim=(reach[0] / 1.15, reach[1] * 1.15))
    ax.set_xlabel("nonzeros per column", size=SIZE)
    ax.set_ylabel(ylabel, size=SIZE)
    if ax.lines[ylabel.startswith("speedup") :]:
        ax.legend(frameon=False, fontsize=SIZE)
    ax.grid(color="#edf2f7", zorder=-1)
    _plain(ax, title)
    _few_ticks(ax.xaxis)
    _few_ticks(ax.yaxis)


def _short(number):
    return f"{number:,.0f}" if number >= 1000 else f"{number:.3g}"


def _plain(ax, title):
    shown = title if len(title) <= LONGEST else f"{title[: LONGEST - 1]}…"
    ax.set_title(shown, size=SIZE + 1, loc="left")
    ax.tick_params(labelsize=SIZE)
    ax.spines[["top", "right"]].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(GREY)


def _few_ticks(axis):
    """A logarithmic axis whose ticks are plain numbers."""
    low, high = sorted(axis.get_view_interval())
    axis.set_major_locator(LogLocator(base=10, subs=(1,) if high / low > 300 else (1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axis.set_minor_locator(NullLocator())
