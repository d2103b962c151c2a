"""The charts of the explorer: timings as nested bars, sweeps as curves, with recorded ones in grey."""

from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from tcgpu.figures import BLUE, GREY, ORANGE

DARK = "#2d3748"
BARS = (("total_ms", 0.86), ("process_ms", 0.62), ("kernel_ms", 0.38))  # nested: timing, height of its bar
SHADES = {  # engine -> its name, the colours of the nested bars
    "gpu": ("GPU", ("#bee3f8", "#63b3ed", BLUE)),
    "cpu": ("native threads", ("#feebc8", "#f6ad55", ORANGE)),
    "sim": ("simulator", ("#edf2f7", "#a0aec0", DARK)),
}
CURVES = ((BLUE, "o-"), (ORANGE, "s-"), (DARK, "^-"), ("#38a169", "D-"), ("#805ad5", "v-"), ("#d53f8c", "P-"))
DARK_GREY, GREY_STYLES = "#718096", ("--", ":", "-.", "x:")
POINTS = 8  # size of the letters
MAX_TITLE = 48  # letters


def draw_timings(names, rows, *, title, ax):
    """Draw a bar for each row: its total time, in it the process time, in that the kernel time."""
    for place, row in enumerate(rows):
        for (timing, height), color in zip(BARS, SHADES[row["engine"]][1]):
            ax.barh(place, row[timing], height, color=color, lw=0)
        kernel = row["kernel_ms"]
        words = f"{kernel:,.0f}" if kernel >= 1000 else f"{kernel:.3g}"
        ax.annotate(words, (kernel, place), (3, 0), textcoords="offset points", size=POINTS, va="center")
    for engine in dict.fromkeys(row["engine"] for row in rows):
        name, shades = SHADES[engine]
        ax.barh(0, 0, color=shades[-1], label=name)
    if rows:
        ax.figure.legend(frameon=False, fontsize=POINTS, loc="outside lower right", ncols=3)
    times = [row[timing] for row in rows for timing, _ in BARS if row[timing] > 0]
    low, high = (min(times) / 3, max(times) * 4) if times else (0.1, 100)
    ax.set(xscale="log", xlim=(low, high), ylim=(max(len(rows), 4) - 0.5, -0.5), yticks=range(len(rows)))
    ax.set_yticklabels(names)
    ax.set_xlabel("milliseconds: kernel (dark), process, total (light)", size=POINTS)
    _finish(ax, title, ax.xaxis)


def draw_sweep(live, recorded, published, picked, *, graph, limits, ylabel, title, ax):
    """Draw curves over nonzeros per column: of this run in colour, what was recorded or published in grey.

    live, recorded, published: name -> [(nonzeros per column, value)]. picked: the same of one graph, called `graph`:
    stars in the colours of the live curves. limits: the least and the most nonzeros per column of the curves.
    """
    looks = dict(zip(dict.fromkeys([*live, *picked]), CURVES * 5))
    curves = [(name, points, DARK_GREY, style) for (name, points), style in zip(recorded.items(), GREY_STYLES)]
    curves += [(name, points, DARK_GREY, "*-") for name, points in published.items()]
    curves += [(name, points, *looks[name]) for name, points in live.items()]
    for name, points, color, style in curves:
        if points:
            ax.plot(*zip(*points), style, color=color, lw=1.4, ms=7 if "*" in style else 4, label=name)
    for name, [point] in picked.items():
        ax.plot(*point, "*", color=looks[name][0], mec="black", mew=0.6, ms=12, zorder=4)
    if picked:
        ax.plot([], [], "*", color="white", mec="black", mew=0.6, ms=10, label=graph)
        places = [x for [(x, _)] in picked.values()]
        limits = min(limits[0], *places), max(limits[1], *places)
    if ax.lines:
        ax.figure.legend(frameon=False, fontsize=POINTS - 1, loc="outside lower center", ncols=2)
    if ylabel.startswith("speedup"):
        ax.axhline(1, color="black", lw=0.8, zorder=0)
    ax.set(xscale="log", yscale="log", xlim=(limits[0] / 1.15, limits[1] * 1.15))
    ax.set_xlabel("nonzeros per column", size=POINTS)
    ax.set_ylabel(ylabel, size=POINTS)
    ax.grid(color="#edf2f7", zorder=-1)
    _finish(ax, title, ax.xaxis, ax.yaxis)


def _finish(ax, title, *logarithmic):
    """Set the title and the looks; the ticks of logarithmic axes are plain numbers."""
    shown = title if len(title) <= MAX_TITLE else f"{title[: MAX_TITLE - 1]}…"
    ax.set_title(shown, size=POINTS + 1, loc="left")
    ax.tick_params(labelsize=POINTS)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    for axis in logarithmic:
        low, high = sorted(axis.get_view_interval())
        axis.set_major_locator(LogLocator(base=10, subs=(1,) if high / low > 300 else (1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axis.set_minor_locator(NullLocator())
