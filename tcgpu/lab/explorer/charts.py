"""The explorer's chart of timings, as nested bars."""

from tcgpu.figures import BLUE, DARK, GREY, ORANGE, PALE, PURPLE, SKY, axes, plain_ticks
from tcgpu.lab.explorer.method_run import TIMINGS, label_of, machine_of, times_of

HEIGHTS = 0.86, 0.62, 0.38  # of the nested bars
SHADES = {  # engine -> its name, if it is not that of the device; the colours of the nested bars
    "gpu": ("GPU", ("#bee3f8", "#63b3ed", BLUE)),
    "webgpu": ("", ("#fed7e2", "#ed64a6", PURPLE)),
    "cpu": ("CPU", ("#feebc8", "#f6ad55", ORANGE)),
    "sim": ("simulator", ("#edf2f7", "#a0aec0", DARK)),
    "traced": ("", (PALE, PALE, SKY)),
}
POINTS = 8  # size of the letters
MAX_TITLE, MAX_LABEL = 48, 36  # letters


def draw_timings(rows, title):
    """Draw a bar for each row: its total time, in it the process time, in that the kernel time. Returns the figure.

    The label of a row names the order only if the rows differ in it.
    """
    several, ax = len({row["order"] for row in rows}) > 1, axes(3.4, 2.8)
    for place, row in enumerate(rows):
        kernel = times_of(row)["kernel_ms"]
        for timing, height, color in zip(TIMINGS, HEIGHTS, SHADES[row["engine"]][1], strict=True):
            ax.barh(place, times_of(row).get(timing, 0), height, color=color, lw=0)
        words = f"{kernel:,.0f}" if kernel >= 1000 else f"{kernel:.3g}"
        ax.annotate(words, (kernel, place), (3, 0), textcoords="offset points", size=POINTS, va="center")
    engines = {row["engine"]: row for row in rows}
    for engine, row in engines.items():
        name, shades = SHADES[engine]
        ax.barh(0, 0, color=shades[-1], label=name or machine_of(row))
    if rows:
        columns = 1 if engines.keys() & {"webgpu", "traced"} else 3  # the names of devices are long
        ax.figure.legend(frameon=False, fontsize=POINTS, loc="outside lower right", ncols=columns)
    times = [ms for row in rows for ms in times_of(row).values() if ms > 0]
    low, high = (min(times) / 3, max(times) * 4) if times else (0.1, 100)
    ax.set(xscale="log", xlim=(low, high), ylim=(max(len(rows), 4) - 0.5, -0.5), yticks=range(len(rows)))
    labels = (f"{label_of(row)}, {row['order']}" if several else label_of(row) for row in rows)
    ax.set_yticklabels([_cut(label, MAX_LABEL) for label in labels])
    ax.set_xlabel("milliseconds: kernel (dark), process, total (light)", size=POINTS, loc="right")
    ax.tick_params(labelsize=POINTS)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(GREY)
    plain_ticks(ax.xaxis)
    ax.set_title(_cut(title, MAX_TITLE), size=POINTS + 1, loc="left")
    return ax.figure


def _cut(text, most):
    return text if len(text) <= most else f"{text[: most - 1]}…"
