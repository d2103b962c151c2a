"""What a record of `benchmarks/reproduce.py` says of the papers' charted claims: the figures, and a verdict by RULE.

    rows = records.Rows.read_csv("reproduced/nvidia-h200.csv")
    verdicts.table(rows)

A claim has its evidence in EVIDENCE, a function of the record by suite: `suites["report"]` are its rows. Times of a
graph that has another number of edges than the published one are multiplied by what its edges lack, and the Evidence
says how small the graphs of the suites that it is from are.
"""

import math
from itertools import combinations
from typing import NamedTuple

from helpers import calibration, measured
from tcgpu.datasets import published
from tcgpu.engines import kernel_compiler
from tcgpu.errors import TcgpuError
from tcgpu.kernels.bisson_fatica import support
from tcgpu.kernels.bisson_fatica.bitmap_auto import choice
from tcgpu.lab import sweep
from tcgpu.records import Rows, Table, data_path, gpu_of

FACTOR = 1.5  # a figure here that is within this factor of the published one is of its size
APART = 1.1  # published times are in an order if they are this many times apart
HOLDS, IN_ORDER, REVERSED = "holds", "holds in order, not in size", "reversed"
MISSING = "not measurable here"
MEANING = {
    HOLDS: f"every figure here is within a factor of {FACTOR:g} of the published one, a share within {APART:g}, or "
    "within the bound that the claim names; what can be counted or computed is equal",
    IN_ORDER: "not so, but more than half of what the claim compares has the same order here: which of two is faster, "
    f"on which side of 1 a ratio is, or that it is 1 within {APART:g}. Of published times those are compared that are "
    f"{APART:g} times apart",
    REVERSED: "half of that or more has not",
    MISSING: "the record has no figure, or a single time, which alone has no order; or the paper prints none",
}
MOST, LARGE, LONG, WARP = 1200, 256, 64, 32  # vertices of Figure 10; threads of a block; a long list; lanes of a warp


class Figure(NamedTuple):
    """What is compared, what is published of it, from `low` to `high`, and what it is here. nan: not published."""

    what: str
    low: float
    high: float
    here: float


class Evidence(NamedTuple):
    """The figures of a claim; of each comparison that it makes whether it has the same result here; the factor.

    curve: what else a chart shows. least: the size of the smallest graph, as a share of the full size.
    """

    figures: list[Figure]
    order: list[bool]
    factor: float = FACTOR
    curve: tuple[Figure, ...] = ()
    least: float = 1


class Read(dict):
    """The rows of a record by suite, and the least share of the full size of those that were read."""

    least = 1

    def __getitem__(self, suite):
        rows = super().__getitem__(suite)
        self.least = min([self.least, *(row["scaled"] for row in rows if row.get("scaled", "") != "")])
        return rows


def verdict(evidence):
    """One of MEANING."""
    if evidence is None or not evidence.figures or all(math.isnan(figure.low) for figure in evidence.figures):
        return MISSING
    if all(fits(figure, evidence.factor) for figure in evidence.figures):
        return HOLDS
    if not evidence.order:
        return MISSING
    return IN_ORDER if sum(evidence.order) > len(evidence.order) / 2 else REVERSED


def fits(figure, factor):
    """Whether a figure here is as published; 1 and infinity are bounds, which nothing may pass."""
    low = figure.low if figure.high == math.inf else figure.low / factor
    high = figure.high if figure.low == 0 else figure.high * factor
    return low <= figure.here <= high


def claims(rows):
    """(row of claims.csv, Evidence or None) of each charted claim."""
    suites = {}
    for row in rows:
        if not row.get("refused") and not row.get("wrong"):
            engine = "cpu" if row.get("engine") == "cpu" else "gpu"  # as the records of a GPU have it
            suites.setdefault(row["suite"], Rows()).append(row | {"engine": engine})
    for claim in published("claims"):
        if claim["charted"] == "yes":
            yield claim, evidence_of(claim["id"], suites)


def evidence_of(name, suites):
    """The Evidence of a claim; None if the record lacks what it needs."""
    read = Read(suites)
    try:
        found = EVIDENCE[name](read) if name in EVIDENCE else None
        return found and found._replace(least=read.least)
    except (KeyError, IndexError, ValueError, ZeroDivisionError):  # rows or graphs that are not there
        return None


def table(rows):
    """A row for each charted claim, with its verdict."""
    found = [
        {"id": claim["id"], "claim": claim["claim"], "published": text(evidence, "published"),
         "here": text(evidence, "here"), "of full size": size(evidence), "verdict": verdict(evidence)}
        for claim, evidence in claims(rows)
    ]  # fmt: skip
    return Table(found, *found[0])


def tables():
    """Of each record of `make reproduce` that is here, others' and this machine's own: the GPU's name -> `table`."""
    folders = [path.with_name("reproduced") for path in (data_path("measured"), data_path())]
    records = (Rows.read_csv(path) for folder in folders for path in sorted(folder.glob("*.csv")))
    return {gpu_of(rows[0]) or rows[0]["gpu_name"]: table(rows) for rows in records}


def text(evidence, what):
    """What is published, or what is here, of all figures: one, or from the least to the largest."""
    if evidence is None or not evidence.figures:
        return ""
    figures = sorted(evidence.figures, key=lambda figure: figure.low if what == "published" else figure.here)
    said = [published_text(figure) if what == "published" else number(figure.here) for figure in figures]
    return said[0] if len(set(said)) == 1 else f"{said[0]} to {said[-1]}"


def size(evidence):
    """How large the smallest graph is that figures may be from, in words."""
    return "" if evidence is None or not evidence.figures else percent(evidence.least)


def percent(share):
    return f"{100 * share:.3g}\N{NO-BREAK SPACE}%"


def published_text(figure):
    """What is published of a figure, in words."""
    if math.isnan(figure.low):
        return "no number"
    if figure.high == math.inf:
        return f"above {number(figure.low)}"
    if figure.low == 0:
        return f"at most {number(figure.high)}"
    return number(figure.low) if figure.low == figure.high else f"{number(figure.low)} to {number(figure.high)}"


def number(value):
    return "none" if math.isnan(value) else f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# ------------------------------------------------------------------------------------------------------------- evidence


def ratios(here, low, high=None, *, over=1, factor=FACTOR):
    """Of ratios, each to be from `low` to `high`; in order if each is on the same side of `over`, or near it."""
    high = low if high is None else high
    figures = [Figure(str(what), low, high, value) for what, value in here.items()]
    if low == high == over:
        return Evidence(figures, [over / APART <= value <= over * APART for value in here.values()], factor)
    return Evidence(figures, [(value > over) == (low >= over) for value in here.values()], factor)


def times(theirs, here, of=None, unit="ms"):
    """Of two dicts of times: all that both have, or that of one graph beside the others."""
    both = [name for name in theirs if theirs[name] is not None and name in here]
    pairs = [pair for pair in combinations(both, 2) if of is None or of in pair]
    order = [
        (theirs[a] < theirs[b]) == (here[a] < here[b])
        for a, b in pairs
        if max(theirs[a], theirs[b]) > APART * min(theirs[a], theirs[b])
    ]
    shown = both if of is None else [of]
    return Evidence([Figure(f"{name}, {unit}", theirs[name], theirs[name], here[name]) for name in shown], order)


def equal(pairs):
    """Of what can be counted or computed: (what, published, here)."""
    figures = [Figure(what, theirs, theirs, here) for what, theirs, here in pairs]
    return Evidence(figures, [all(figure.low == figure.here for figure in figures)], 1)


def threshold(curve, place, here):
    """Of a threshold: [(x, ratio)], which is above 1 from `place` on, and where it is here."""
    points = tuple(Figure(f"ratio at {number(x)}", math.nan, math.nan, y) for x, y in sorted(curve))
    order = [(y > 1) == (x > place) for x, y in curve]
    return Evidence([Figure("threshold", place, place, here)], order, curve=points)


def above(here):
    """Of ratios that are to be above 1."""
    return ratios(here, 1, math.inf)


def report_times(suites):
    """The report's kernel times, published and here, scaled to the edges of its matrices: (of simple, of shared)."""
    edges = {row["graph"].removesuffix(measured.CLASS): row["edges"] for row in suites["report"]}
    here = measured.method_times(suites["report"])
    rows = {row["graph"]: row for row in measured.published_table() if row["graph"] in edges}
    return {
        key: (
            {graph: row[f"{key}_ms"] for graph, row in rows.items()},
            {graph: here[method][graph] * row["edges"] / edges[graph] for graph, row in rows.items()},
        )
        for key, method in (("simple", "naive"), ("shared", "column_block"))
    }


def report_time(graph, key):
    return lambda suites: times(*report_times(suites)[key], of=graph)


def report_speedups(suites, only=None):
    """The report's speedups, published and here."""
    here = {row["graph"]: row["speedup"] for row in measured.report_table(suites["report"])}
    rows = [row for row in measured.published_table() if row["graph"] in ((only,) if only else here)]
    figures = [Figure(row["graph"], row["speedup"], row["speedup"], here[row["graph"]]) for row in rows]
    return Evidence(figures, [(figure.here > 1) == (figure.low > 1) for figure in figures])


def both_report_times(suites):
    found = [times(*of, unit=f"{key} ms") for key, of in report_times(suites).items()]
    return Evidence([figure for each in found for figure in each.figures], found[0].order + found[1].order)


def denser(suites):
    """At the densest graph of the sweep shared is to be faster; in order it is if it gains from sparse to dense."""
    curve = measured.speedup_curve(suites["sweep"], sweep.REPORT_COLUMNS)
    (x, last), first = curve[-1], curve[0][1]
    return above({f"speedup at {x:g} nonzeros per column": last})._replace(order=[last > first])


def report_threshold(suites):
    curve = measured.speedup_curve(suites["sweep"], sweep.REPORT_COLUMNS)
    (row,) = (row for row in published("claims") if row["id"] == "I57")
    place = float(next(word for word in row["claim"].split() if word.isdigit()))
    return threshold(curve, place, next(iter(sweep.crossings(curve)), math.nan))


def bisson(half, what, rows, method, named):
    """Table I's times in milliseconds, published and here, of the graphs whose names `named` takes."""
    theirs = {
        row["graph"]: row[f"{half}{what}_seconds"] and 1e3 * row[f"{half}{what}_seconds"]
        for row in published("bisson_table1")
        if named(row["graph"])
    }
    return theirs, {row["graph"]: row[f"{what}_ms"] for row in rows if row["method"] == method}


def bisson_times(half, suite, method, graph500):
    def named(graph):
        return graph.startswith("graph500") == graph500

    return lambda suites: times(*bisson(half, "kernel", suites[suite], method, named))


def bisson_rates(half, suite, method):
    """Figure 6: edges a second."""

    def found(suites):
        edges = {row["graph"]: row["edges"] for row in published("bisson_table1")}
        rates = (
            {graph: ms and edges[graph] / ms * 1e3 for graph, ms in of.items() if graph in edges}
            for of in bisson(half, "kernel", suites[suite], method, bool)
        )
        return times(*rates, unit="edges a second")

    return found


def bisson_counts(graph500):
    def found(suites):
        here = {row["graph"]: row for row in suites["table1"]}
        rows = [row for row in published("bisson_table1") if row["graph"].startswith("graph500") == graph500]
        keys = ("triangles",) if graph500 else ("edges", "triangles")
        pairs = [(f"{key} of {row['graph']}", row[key], here[row["graph"]][key]) for row in rows for key in keys
                 if row["graph"] in here]  # fmt: skip
        return equal(pairs)._replace(factor=FACTOR if graph500 else 1)  # graph500's have other random numbers

    return found


def set_up(suites):
    """The share of the whole time that the kernels do not take."""
    kernel, total = (bisson("", what, suites["table1"], "bitmap_auto", bool) for what in ("kernel", "total"))
    shares = (
        {graph: 1 - ms / whole[graph] for graph, ms in part.items() if ms and whole[graph]}
        for part, whole in zip(kernel, total, strict=True)
    )
    return times(*shares, unit="share of the whole time")


def truss_over_count(suites):
    count = {row["graph"]: row["kernel_ms"] for row in suites["table1"] if row["method"] == "bitmap_auto"}
    truss = {row["graph"]: row["kernel_ms"] for row in suites["truss3"] if row["method"] == "bitmaps"}
    return above({graph: ms / count[graph] for graph, ms in truss.items() if graph in count})


def truss_by_k(suites):
    """graph -> k -> milliseconds."""
    found = {}
    for row in suites["trusses"]:
        if row["method"] == "bitmaps":
            found.setdefault(row["graph"], {})[row["k"]] = row["kernel_ms"]
    return found


def truss_figure(suites):
    return ratios({f"{graph}, k = {k}: milliseconds": ms for graph, each in truss_by_k(suites).items()
                   for k, ms in each.items()}, math.nan)  # fmt: skip


def truss_step(suites):
    """From k = 3 to 4 the time is to grow, and from 10 to 100 to stay within the factor."""
    each = truss_by_k(suites)
    step = above({f"{graph}: k = 4 over 3": ms[4] / ms[3] for graph, ms in each.items()})
    then = ratios({f"{graph}: k = 100 over 10": ms[100] / ms[10] for graph, ms in each.items()}, 1)
    return Evidence(step.figures + then.figures, step.order)


def samples(suites):
    """graph -> (its row, method -> milliseconds)."""
    found = {}
    for row in suites["samples"]:
        found.setdefault(row["graph"], (row, {}))[1][row["method"]] = row["kernel_ms"]
    return found


def blocks_over_warps(suites):
    """(row of a sample, the time of the better block kernel over that of the warps) of all samples that warps took."""
    blocks = "bitmap_block_shared", "bitmap_block_global"
    return [
        (row, min(ms[name] for name in blocks if name in ms) / ms["bitmap_warp"])
        for row, ms in samples(suites).values()
        if "bitmap_warp" in ms and ms.keys() & {*blocks}
    ]


def best_kernels(suites, longest, kernels):
    """Of samples with columns so long, or no longer: the share on which one of these kernels is the fastest."""
    fastest = [min(ms, key=ms.get) in kernels for row, ms in samples(suites).values() if longest(row["longest_column"])]
    return share_of(fastest, 1)


def share_of(right, theirs):
    """The share of graphs, each of which is right or not."""
    return Evidence([Figure("share of graphs", theirs, theirs, sum(right) / len(right))], right, APART)


def shared_or_global(suites):
    curve = [
        (row["vertices"], ms["bitmap_block_shared"] / ms["bitmap_block_global"])
        for row, ms in samples(suites).values()
        if {"bitmap_block_shared", "bitmap_block_global"} <= ms.keys()
    ]
    return threshold(curve, calibration.PAPER["vertices_shared"], calibration.fit(suites["samples"])["vertices_shared"])


def warp_or_block(suites):
    curve = [(row["edges"] / row["vertices"], 1 / ratio) for row, ratio in blocks_over_warps(suites)]
    return threshold(curve, calibration.PAPER["mean_warp"], calibration.fit(suites["samples"])["mean_warp"])


def heuristic(suites):
    rows = published("bisson_table1")
    right = 1 - sum(bool(row["suboptimal_count"]) for row in rows) / len(rows)
    every = [each["slowdown"] <= calibration.TIE for each in calibration.choices(suites["table1"])]
    return share_of(every, right)


def registers(suites):
    capability = tuple(map(int, str(suites["ceiling"][0]["gpu_compute_capability"]).split(".")))
    (row,) = (row for row in published("claims") if row["id"] == "B63")
    most = max(int(word) for word in row["claim"].split() if word.isdigit())
    kernel = support.support_thread
    try:
        facts = [kernel_compiler.facts(kernel.py_func, signature, capability, kernel.most_threads)
                 for signature in kernel.signatures]  # fmt: skip
    except (TcgpuError, OSError, ImportError):
        return None
    here = max(each.registers for each in facts)
    return Evidence([Figure("registers", 0, most, here)], [here <= most], 1)


def lengths(over, under, which):
    """The time of a method over that of another, by the lengths (m, n) of the two lists that `which` takes."""

    def found(suites):
        each = measured.length_times(suites["lengths"])
        return {f"{m} among {n}": each[over][m, n] / ms for (m, n), ms in each[under].items()
                if which(m, n) and (m, n) in each[over]}  # fmt: skip

    return found


SMALL_LISTS = lengths("warp_search", "thread_search", lambda m, n: n <= 4)
UNEQUAL_LISTS = lengths("merge_path", "thread_search", lambda m, n: m <= 4 and n >= LARGE)
BIG_LISTS = lengths("merge_path", "warp_search", lambda m, n: m >= LARGE)
LONG_LISTS = lengths("thread_search", "warp_search", lambda m, n: m >= LONG)


def merges(suites):
    """The time of merges over that of searches, on whole graphs."""
    best = measured.search_bars(suites["tricore"])
    return above({graph: ms["merge\npath"] / ms["warp\nsearch"] for graph, ms in best.items()})


def buffers(suites):
    """The time with the smallest buffer over that with the largest."""
    ms = {row["share"]: row["process_ms"] for row in suites["streaming"] if str(row["way"]).startswith("streamed")}
    return above({f"{min(ms):.0%} of the graph over {max(ms):.0%}": ms[min(ms)] / ms[max(ms)]})


def results(figure):
    """What Chatterjee et al. print of a figure: (low, high)."""
    (row,) = (row for row in published("levels_results") if row["figure"] == figure)
    return row["low"], row["high"]


def gains(which, *between, **options):
    """How many times as fast as one thread, of graphs with so many vertices."""

    def found(suites):
        each = measured.level_gains(suites["levels"])
        return ratios({f"{n} vertices": x for n, x in each.items() if which(n)}, *between, **options)

    return found


def small_gains(suites):
    """On the smallest graph the times are to be similar; in order they are if a larger graph gains more."""
    each = measured.level_gains(suites["levels"])
    first, *_, last = sorted(each)
    return ratios({f"{first} vertices": each[first]}, 1)._replace(order=[each[first] < each[last]])


def layouts(*between, percent=False, **options):
    """What the redundant layout gains, as a ratio or in percent."""

    def found(suites):
        pairs = {f"{row['vertices']} vertices": row["without ms"] / row["with ms"] for row in
                 measured.level_pairs(suites["levels"]) if row["what"] == "a matrix for each chunk"}  # fmt: skip
        here = {n: 100 * (x - 1) for n, x in pairs.items()} if percent else pairs
        return ratios(here, *between, over=0 if percent else 1, **options)

    return found


def shared_bits(suites):
    pairs = measured.level_pairs(suites["levels"])
    here = {f"{row['vertices']} vertices": row["times"] for row in pairs if row["what"] == "bits in shared memory"}
    return ratios(here, FACTOR, math.inf)._replace(order=[x > 1 for x in here.values()])


def approaches(over, under):
    """The kernel time of one approach over that of another, on the graph that both ran on."""

    def found(suites):
        rows = suites["levels"]
        slow, fast = (
            dict(measured.level_times(rows, "approaches", key="kernel_ms", approach=x)) for x in (over, under)
        )
        return above({f"{n} vertices: {over} over {under}": slow[n] / fast[n] for n in slow})

    return found


def sizes(card, memory, only=("matrix", "s-utm")):
    """Table II: the vertices that fit, by the equations."""
    return lambda _: equal([(row["layout"], row["vertices"], row["here"]) for row in measured.level_sizes()
                            if (row["card"], row["memory"]) == (card, memory) and row["layout"] in only])  # fmt: skip


def transactions(capabilities, pattern):
    """Table III, by the model of NVIDIA's rules."""
    return lambda _: equal([(f"compute capability {row['compute capability']}", row["transactions"], row["here"])
                            for row in measured.level_transactions()
                            if row["compute capability"] in capabilities and row["pattern"] == pattern])  # fmt: skip


def worst_case(_):
    (row,) = (row for row in published("claims") if row["id"] == "C08")
    (most,) = (int(word) for word in row["claim"].split() if word.isdigit())
    found = measured.worst_cases((2, 3))
    return equal([(f"{each['levels of a set']} levels", most, each["vertices"]) for each in found])


EVIDENCE = {
    "I42": report_time("delaunay_n22", "simple"), "I43": report_time("delaunay_n22", "shared"),
    "I45": report_time("great-britain_osm", "simple"), "I46": report_time("great-britain_osm", "shared"),
    "I48": report_time("auto", "simple"), "I49": report_time("auto", "shared"),
    "I51": report_time("coPapersCiteseer", "simple"), "I52": report_time("coPapersCiteseer", "shared"),
    "I44": lambda suites: report_speedups(suites, "delaunay_n22"),
    "I47": lambda suites: report_speedups(suites, "great-britain_osm"),
    "I50": lambda suites: report_speedups(suites, "auto"),
    "I53": lambda suites: report_speedups(suites, "coPapersCiteseer"),
    "I54": both_report_times, "I55": report_speedups, "I56": denser, "I57": report_threshold,
    "B05": truss_over_count,
    "B54": lambda suites: best_kernels(suites, lambda n: n > LARGE, ("bitmap_block_shared", "bitmap_block_global")),
    "B55": lambda suites: above({row["graph"]: ratio for row, ratio in blocks_over_warps(suites)
                                 if row["longest_column"] <= WARP}),
    "B56": lambda suites: best_kernels(
        suites, lambda n: n <= choice.__kwdefaults__["longest_thread"], ("bitmap_thread",)),
    "B59": heuristic, "B63": registers, "B64": warp_or_block, "B65": shared_or_global,
    "B69": bisson_counts(False), "B72": bisson_counts(True),
    "B70": bisson_times("", "table1", "bitmap_auto", False), "B71": bisson_times("truss_", "truss3", "bitmaps", False),
    "B73": bisson_times("", "table1", "bitmap_auto", True), "B74": bisson_times("truss_", "truss3", "bitmaps", True),
    "B78": bisson_rates("", "table1", "bitmap_auto"), "B79": bisson_rates("truss_", "truss3", "bitmaps"),
    "B80": set_up, "B81": truss_figure, "B82": truss_step,
    "T11": merges, "T16": lambda suites: above(LONG_LISTS(suites)),
    "T19": lambda suites: ratios(SMALL_LISTS(suites), 1),
    "T20": lambda suites: above(UNEQUAL_LISTS(suites)), "T21": lambda suites: above(BIG_LISTS(suites)), "T25": buffers,
    "C01": gains(lambda n: True, 10, math.inf), "C02": layouts(*results(12), percent=True),
    "C07": sizes("C1060", "shared", ("s-utm",)), "C08": worst_case,
    "C18": sizes("C1060", "shared"), "C19": sizes("C1060", "global"), "C20": sizes("C2050", "shared"),
    "C21": sizes("C2050", "global"), "C22": sizes("C2070", "shared"), "C23": sizes("C2070", "global"),
    "C50": approaches("B", "D"), "C53": approaches("C", "D"), "C54": approaches("C", "D"), "C57": shared_bits,
    "C75": layouts(1, factor=APART),
    "C87": gains(lambda n: n <= MOST, math.nan), "C90": gains(lambda n: n > MOST, math.nan),
    "C88": small_gains, "C89": gains(lambda n: 1000 <= n <= MOST, *results(10)),
    "C91": gains(lambda n: n > MOST, *results(11)),
    "C93": layouts(math.nan), "C94": layouts(*results(12), percent=True),
    "C96": gains(lambda n: n >= 1000, FACTOR, math.inf),
}  # fmt: skip
for _name, _place in {
    "C65": (("1.0", "1.1", "1.2", "1.3"), "sequential"), "C66": (("2.0",), "sequential"),
    "C67": (("1.0", "1.1"), "non-sequential"), "C68": (("1.2", "1.3"), "non-sequential"),
    "C69": (("2.0",), "non-sequential"),
}.items():  # fmt: skip
    EVIDENCE[_name] = transactions(*_place)
