"""The tables and curves of the notebooks, taken from the records in `data/measured` and `data/published`.

A table is a list of dicts with the keys of `data/published/report_matrices.csv`, so that published and measured numbers
are drawn and printed by the same functions. Times are of the kernels, in natural order, unless stated otherwise.
"""

import json
import math
from dataclasses import dataclass

import networkx as nx
import numpy as np

import tcgpu
from helpers import costs
from helpers.level_models.accesses import bank_turns, partition_turns, sums_of_accesses
from helpers.level_models.arrangement import ARRANGEMENTS, arrange, max_vertices
from helpers.level_models.coalescing import access_pattern, transactions
from helpers.level_models.limits import worst_case
from helpers.level_models.partitions import HAND_OUTS, partition_load, requests
from helpers.level_models.schedules import estimate, lower_bound, schedule
from tcgpu import records
from tcgpu.datasets import published
from tcgpu.kernels import order_costs
from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.lab import sweep
from tcgpu.markup import element
from tcgpu.records import Table, reference

SHARES, SLICES = "adaptive", "warp_search"  # the methods of the record "scaling", by how the work is divided
CLASS = " class"  # ends the name of a generated graph in the record "report", after that of the report's matrix
LADDER = {  # ideas of the record "ladder", each on top of those before it, and how a chart names them
    "degree order": "two\npointers",
    "four bitmaps": "four\nbitmaps",
    "hash tables and short merges": "adaptive,\nno near",
    "in-edges: windows of bits, 16 bits a look-up": "in-edges,\n16 bits",
    "bytes for crowds": "bytes for\ncrowds",
    "hubs: word and word": "hubs",
}
UNITS = {  # of the record "kernels"
    "instructions": "issue_percent",
    "first-level cache and shared": "l1_percent",
    "second-level": "l2_percent",
    "memory": "dram_percent",
}

STEPS = {  # from raw edges on a GPU to the count: step -> its kernels, in the record "timeline"
    "extent and costs": (
        "find_extent measure_vertices describe_vertices find_hubs cost_in_natural_order count_rows_by_degree "
        "count_ends estimate_rows cost_in_degree_order add_up_costs count_degrees"
    ),
    "ranks": "pack_degrees pack_numbered number_vertices",
    "keys and their sort": "pack_edges",
    "columns": (
        "columns_by_block count_new unpack fill_empty_columns "  # of sorted keys
        "scatter_rows sort_columns close_gaps"  # short ones
    ),
    "set-up": (
        "measure_columns count_rows count_by_degrees count_in_edges leave_out_hub_pairs lay_out count_tasks fill_tasks "
        "fill_filters try_filters list_look_ups number_hubs insert_edges list_rows"
    ),
    "counting": (
        "fill_hub_rows hub_kernel crowd_kernel window_kernel hash_kernel far_kernel fill_local_rows local_kernel "
        "restart merge_kernel merge_columns_kernel merge_short_kernel search_kernel merge_distant_kernel "
        "merge_filtered_kernel far_window_kernel look_up_kernel find_edges"
    ),
}
SORT, SCAN = ("sort",), ("sum_parts", "write_starts")  # launches of several steps
BETWEEN = "between launches"


def published_table():
    """The report's table as it is printed, with the facts of the matrices beside it."""
    return published("report_matrices")


def report_table(rows, *, order="natural", key="kernel_ms"):
    """The report's table out of the record "report": `naive` is its simple, `column_block` its shared."""
    times = method_times(rows, order=order, key=key)
    table = []
    for row in rows:
        if (row["method"], row["order"]) == ("naive", order):
            graph = row["graph"].removesuffix(CLASS)
            simple, shared = times["naive"][graph], times["column_block"][graph]
            facts = {name: row[name] for name in ("vertices", "edges", "triangles", "nonzeros_per_column")}
            facts["made"] = row.get("made", "")  # by which call; empty of the report's own matrix
            measured = {"simple_ms": simple, "shared_ms": shared, "speedup": simple / shared}
            table.append({"graph": graph, **facts, **measured})
    return table


def method_times(rows, *, order="natural", key="kernel_ms"):
    """method -> graph -> milliseconds, out of the record "report"."""
    times = {}
    for row in rows:
        if row["order"] == order:
            times.setdefault(row["method"], {})[row["graph"].removesuffix(CLASS)] = row[key]
    return times


def cache_speedups(rows, percent, naive, column_block):
    """How much faster `column_block` is than `naive`, of the same times: [(nonzeros per column, speedup)]."""
    times = cache_times(rows, percent, naive, column_block)
    return [(x, ms["naive"] / ms["column_block"]) for x, ms in sorted(times.items())]


def cache_times(rows, percent, naive, column_block):
    """The milliseconds of both kernels in the record "cache": nonzeros per column -> method -> time.

    percent: of a multiprocessor's fast memory, taken from the L1 cache. The others: threads in a block of each kernel.
    """
    threads, times = {"naive": naive, "column_block": column_block}, {}
    for row in rows:
        shape = row["shared_percent"], json.loads(row["knobs"])["threads"]
        if shape == (percent, threads[row["method"]]):
            times.setdefault(row["nonzeros_per_column"], {})[row["method"]] = row["kernel_ms"]
    return times


def rates(rows, method="bitmap_auto"):
    """Edges a second out of the record "table1" or, of "bitmaps", "truss3": a dict a graph, the fastest kernel
    last, as in Figure 6."""
    found = []
    for row in rows:
        if row["method"] == method:
            times = {name: row["edges"] / row[f"{name}_ms"] * 1e3 for name in ("kernel", "process", "total")}
            found.append({"graph": row["graph"], **times})
    return sorted(found, key=lambda rate: rate["kernel"])


def bisson_table1():
    """Bisson & Fatica's Table I, whole; times in seconds, empty where our copy of the paper can't be read."""
    found = []
    for row in published("bisson_table1"):
        marks = "*" * row["suboptimal_count"] + "†" * row["suboptimal_truss"]
        line = {"graph": row["graph"] + marks, "type": row["kernel_type"]}
        line |= {name: row[name] for name in ("vertices", "edges", "triangles")}
        for half, prefix in ("count", ""), ("3-truss", "truss_"):
            for name in ("kernel", "process", "total"):
                seconds = row[f"{prefix}{name}_seconds"]
                line[f"{half} {name}"] = "" if seconds is None else f"{seconds:.6g}"
        found.append(line)
    return Folded(found, *found[0])


class Folded(Table):
    """A long table, which a notebook shows at a click, in a frame that scrolls."""

    def _repr_html_(self):
        frame = element("div", super()._repr_html_(), style="max-height: 24em; overflow: auto")
        return element("details", element("summary", f"{len(self)} rows"), frame)


def published_rates(method="bitmap_auto"):
    """The same out of Table I as it is printed; None where a time could not be read."""
    found, half = [], "truss_" if method == "k_truss" else ""
    for row in published("bisson_table1"):
        times = {name: row[f"{half}{name}_seconds"] for name in ("kernel", "process", "total")}
        found.append({"graph": row["graph"], **{name: t and row["edges"] / t for name, t in times.items()}})
    return sorted(found, key=lambda rate: rate["kernel"] or rate["process"] or 0)


def common_rates(there, here):
    """The rates of those graphs that two tables of rates both have, in the order of the second."""
    found = {rate["graph"]: rate for rate in there}
    both = [rate for rate in here if rate["graph"] in found]
    return [found[rate["graph"]] for rate in both], both


def printed(name):
    """A table of `data/published`, with all of its columns."""
    rows = [{key.replace("_", " "): value for key, value in row.items()} for row in published(name)]
    for row in rows:
        row |= {key: str(row[key]) for key in row if key == "compute capability"}  # 2.0, not 2
    return Table(rows, *rows[0])


def level_sizes():
    """Chatterjee et al.'s Table II, beside the most vertices that fit by the equations (`here`)."""
    cards, found = {row["card"]: row for row in published("levels_cards")}, []
    for row in published("levels_sizes"):
        card = cards[row["card"]]
        size = card["shared_kb"] << 10 if row["memory"] == "shared" else card["global_gb"] << 30
        found.append(row | {"here": max_vertices(8 * size, row["layout"])})
    return Table(found, "card", "memory", "layout", "vertices", "here")


def level_transactions():
    """Chatterjee et al.'s Table III, beside the transactions of the model (`here`)."""
    found = printed("levels_transactions")
    for row in found:
        row["here"] = int(transactions(access_pattern(row["pattern"]), row["compute capability"]).count[0])
    return Table(found, *found[0])


def level_schedules(graph, tries, *, machines, shared_bits):
    """Algorithm 1 with so many roots tried, and how far the makespans of its chunks are above the bound, in percent.

    On as many multiprocessors as there are `machines`, the chunks as they come or the longest first; by equation 6 all
    take as long as the longest.
    """
    found = []
    for roots in tries:
        chunks = split(graph, shared_bits=shared_bits, machines=machines, roots=roots)
        about = {"roots": roots, "chunks": len(chunks), "too large": chunks.too_large}
        above = {"as they come": schedule(chunks.tests, machines, "given").above_bound,
                 "longest first": schedule(chunks.tests, machines).above_bound,
                 "equation 6": estimate(len(chunks), 0, int(chunks.tests.max()), 0, machines)
                 / lower_bound(chunks.tests, machines) - 1}  # fmt: skip
        above = {f"{name} %": round(100 * share, 1) for name, share in above.items()}
        found.append(about | {"combinations": chunks.total_tests} | above)
    return Table(found, *found[0])


def camping(graph, chunks):
    """How a warp's requests and the partitions of memory fare when a count begins, by the model: a row an arrangement.

    Sectors of a request, and camping, of which 1 is an even load, for lanes that have ranges or take turns.
    """
    found = []
    for way in HAND_OUTS:
        for name in ARRANGEMENTS:
            asked = requests(chunks, arrange(graph, chunks, name), hand_out=way)
            sectors = float(transactions(asked, "sectors").count.mean())
            load = partition_load(asked).camping
            found.append({"lanes": way, "arrangement": name, "sectors": round(sectors, 1), "camping": round(load, 2)})
    return Table(found, *found[0])


def accesses(graph, chunks):
    """Equations 7 and 8 of Chatterjee et al. on all chunks, for lanes that have ranges or take turns."""
    found = sums_of_accesses(graph, chunks)
    return Table(found, *found[0])


def bank_conflicts(strides, lanes=16):
    """Half a warp reads words so far apart: the turns at the banks, and equation 9, distinct words over banks."""
    found = []
    for stride in strides:
        row = {"words apart": stride}
        for banks in 16, 32:
            elements, distinct, turns = bank_turns(stride * np.arange(lanes), banks)
            row |= {f"turns, {banks} banks": turns, f"equation 9, {banks} banks": elements / distinct}
        found.append(row)
    return Table(found, *found[0])


def partition_sums(graph, chunks):
    """When a count begins: the turns at the partitions, and equation 10 with the partitions of all warps together, or
    of each warp, a row an arrangement."""
    found = []
    for name in ARRANGEMENTS:
        asked = requests(chunks, arrange(graph, chunks, name), hand_out="turns")
        turns, together, alone = partition_turns(asked)
        about = {"arrangement": name, "turns": turns}
        found.append(about | {"equation 10": round(together, 2), "warp by warp": round(alone, 2)})
    return Table(found, *found[0])


def worst_cases(ks, *, machines=30, shared_bits=8 * 16 * 1024):
    """Of graphs that just fit the multiprocessors of a C1060 in sets of k adjacent levels: their sets and vertices."""
    found, root = [], np.array([0])
    for k in ks:
        graph = worst_case(k, shared_bits=shared_bits, machines=machines)
        sets = split(graph, shared_bits=shared_bits, machines=machines, roots=root, k=k, width=k)
        of_set = {"of a set at most": int(sets.size.max()), "too large": sets.too_large}
        found.append({"levels of a set": k, "sets": len(sets)} | of_set | {"vertices": graph.n})
    return Table(found, *found[0])


def without_triangles(graphs):
    """Whether graphs have no triangle, by `tcgpu`; the vertices of the largest clique, and the girth, by NetworkX."""
    found = []
    for graph in graphs:
        theirs = graph.to_networkx()
        about = {"graph": graph.name, "triangle-free": str(tcgpu.is_triangle_free(graph))}
        largest = max(map(len, nx.find_cliques(theirs)))
        found.append(about | {"clique number": largest, "girth": str(nx.girth(theirs))})
    return Table(found, *found[0])


def level_curves(rows):
    """Figures 10 and 11 of Chatterjee et al., on one thread and on the GPU of the record: title -> curves."""
    engines = {"one native thread": "cpu", rows[0]["gpu_name"]: "gpu"}
    return {
        f"Figure {figure}, recorded": {name: level_times(rows, figure, engine=engines[name]) for name in engines}
        for figure in ("10", "11")
    }


def level_gains(rows):
    """How many times as fast the GPU was as one thread on the small worlds of Figures 10 and 11: vertices -> times."""
    found = {}
    for figure in ("10", "11"):
        native = dict(level_times(rows, figure, engine="cpu"))
        found |= {n: native[n] / ms for n, ms in level_times(rows, figure)}
    return found


def level_rates(rows):
    """The combinations that a GPU tested a nanosecond on each public graph in the record "levels"."""
    found = []
    for row in rows:
        if str(row["figure"]) == "11" and row["engine"] == "gpu" and not row["graph"].startswith("small world"):
            rate = round(row["tests"] / row["kernel_ms"] / 1e6)
            about = {"graph": row["graph"], "vertices": row["vertices"], "combinations": row["tests"]}
            found.append(about | {"total ms": row["total_ms"], "combinations a ns": rate})
    return Table(found, *found[0])


def level_pairs(rows):
    """What one change of a setting gains, by kernel times of the record "levels": a row a change and size."""
    bits, turns = {"memory": "global", "lanes": 32}, {"memory": "global", "lanes": 1}
    pairs = [  # the change; figure and knobs without it, and with it
        ("a matrix for each chunk", "12", {"arrangement": "one"}, "12", {"arrangement": "redundant"}),
        ("lanes that take turns", "memory", turns, "memory", bits),
        ("bits in shared memory", "memory", bits, "memory", {"memory": "auto", "lanes": 32}),
        *(("skip", figure, {}, "skip", {}) for figure in ("10", "11")),
    ]
    found = []
    for name, figure, without, other, knobs in pairs:
        before = dict(level_times(rows, figure, key="kernel_ms", **without))
        for n, ms in level_times(rows, other, key="kernel_ms", **knobs):
            if n in before:
                times = {"without ms": round(before[n], 3), "with ms": round(ms, 3), "times": round(before[n] / ms, 2)}
                found.append({"what": name, "vertices": n} | times)
    return Table(found, *found[0])


def level_waste(sizes, **memory):
    """On small worlds: combinations tested, and look-ups of the plain bitmap method in degree order, a triangle."""
    found = []
    for n in sizes:
        graph = tcgpu.generate.watts_strogatz(n, 10, 0.1)
        triangles, looks = tcgpu.count(graph), costs.lookups(graph.ordered("degree")).sum()
        chunks = split(graph, **memory)
        four = np.sort(np.diff(chunks.level_ptr))[-4:].sum() / n
        each = {"tests": round(chunks.total_tests / triangles), "look-ups": round(float(looks / triangles), 1)}
        found.append({"vertices": n} | each | {"in four levels %": round(100 * float(four))})
    return Table(found, *found[0])


def level_times(rows, figure, *, engine="gpu", key="total_ms", **knobs):
    """Times of one figure's small worlds in the record "levels": [(vertices, milliseconds)].

    Of several settings, those rows whose knobs have these values.
    """
    points = []
    for row in rows:
        of_figure = (str(row["figure"]), row["engine"]) == (figure, engine) and row["graph"].startswith("small world")
        if of_figure and knobs.items() <= json.loads(row["knobs"]).items():
            points.append((row["vertices"], row[key]))
    return sorted(points)


def length_times(rows):
    """The time of an edge in the record "lengths": method -> {(m, n): nanoseconds for each edge with look-ups}.

    `warp_search` without the top of its search tree is a method of its own here, "warp_search, no top".
    """
    times = {}
    for row in rows:
        name = row["method"] if json.loads(row["knobs"]).get("cached", True) else f"{row['method']}, no top"
        times.setdefault(name, {})[row["shorter"], row["longer"]] = row["kernel_ms"] * 1e6 / row["asking"]
    return times


def versions(method):
    """Kernel milliseconds of a method as published and of ours, and how many times as long: a row for each graph."""
    ms = {}
    for row in reference("published"):
        if row["case"].startswith(method):
            ms.setdefault(row["case"], {})[row["version"]] = row["kernel_ms"]
    shown = ({"case": case} | each | {"times": round(each["published"] / each["ours"], 1)} for case, each in ms.items())
    return Table(shown, "case", "published", "ours", "times")


def search_bars(rows):
    """Kernel times in the record "tricore": graph -> {method, its words on a line each: milliseconds or None}."""
    best = {}
    for row in rows:
        name = row["method"].replace("_", "\n") + "\nno top" * ('"cached": false' in row["knobs"])
        best.setdefault(row["graph"], {})[name] = row["kernel_ms"]
    order = ("thread\nsearch", "naive", "merge\npath", "warp\nsearch\nno top", "warp\nsearch", "adaptive")
    return {graph: {name: times.get(name) for name in order} for graph, times in best.items()}


def ladder_times(rows, graph):
    """Milliseconds of each of the LADDER's steps on a graph, by its name, out of the record "ladder"."""
    found = {row["idea"]: row["kernel_ms"] for row in rows if (row["graph"], row["order"]) == (graph, "degree")}
    return {name: found[idea] for idea, name in LADDER.items()}


def busy_percent(rows):
    """How busy each unit was in each kernel of the record "kernels", in percent of its peak: unit -> kernel -> %."""
    graphs = {"overlapping cliques": "cliques\n", "mesh 2048 x 2048": "mesh\n", "road-like 2048 x 2048": "road\n"}
    labels = [graphs.get(row["graph"], "") + row["kernel"].removesuffix("_kernel") for row in rows]
    return {unit: {label: row[key] for label, row in zip(labels, rows, strict=True)} for unit, key in UNITS.items()}


def ladder_orders(rows, graph):
    """Milliseconds of the earlier methods on a graph, out of the record "ladder": order -> method -> milliseconds."""
    found = {}
    for row in rows:
        if row["graph"] == graph and row["method"] != "adaptive":
            found.setdefault(f"{row['order']} order", {})[row["method"]] = row["kernel_ms"]
    return found


def lookup_costs(rows):
    """What a look-up in a window cost the two kernels that make them: instructions, and passes through memory."""
    found = []
    for row in (row for row in rows if row["kernel"] in ("crowd_kernel", "window_kernel")):
        each, passes = (round(row[key] / row["shared_loads"], 1) for key in ("instructions", "shared_wavefronts"))
        found.append({"kernel": row["kernel"], "instructions a look-up": each, "passes a look-up": passes})
    return Table(found, *found[0])


def long_kernels(rows):
    """Of the record "kernels": those of rmat22 that take over .1 ms, and of flat graphs over .04 ms."""
    flat = [row for row in rows if row["graph"].startswith(("over", "mesh", "road")) and row["kernel_ms"] > 0.04]
    return [row for row in rows if row["graph"] == "rmat22" and row["kernel_ms"] > 0.1] + flat


def kernel_facts(rows):
    """Of kernels of the record "kernels": how full the warps are, how scattered loads are, how long warps wait."""
    found = []
    for row in rows:
        sectors = row["load_sectors"] / max(1, row["load_requests"])
        found.append({
            "graph": row["graph"], "kernel": row["kernel"], "ms": round(row["kernel_ms"], 2),
            "warps %": round(row["occupancy_percent"]), "lanes of 32": round(row["threads_per_instruction"]),
            "sectors a load": round(sectors, 1), "L2 hits %": round(row["l2_hit_percent"]),
            "cycles of waiting": round(row["waits_for_memory"]),
        })  # fmt: skip
    return Table(found, *found[0])


def whole_counts(rows):
    """Of the record "gpu": billions of look-ups a second, and what share of the time it takes to read the columns."""
    found = []
    for row in rows:
        rate, share = row["lookups_per_second"] / 1e9, row["columns_ms"] / row["kernel_ms"]
        about = {"graph": row["graph"], "look-ups a second / 1e9": round(rate)}
        found.append(about | {"reading the columns %": round(100 * share)})
    return Table(found, *found[0])


def whole_times(rows):
    """The times of counts in the record "gpu", by what they begin and end with: what -> graph -> milliseconds."""
    keys = {"kernels": "kernel_ms", "+ set-up": "process_ms", "edges there": "device_total_ms"}
    keys["on the host"] = "total_ms"
    return {what: {row["graph"].replace(" ", "\n", 1): row[key] for row in rows} for what, key in keys.items()}


def launch_steps(kernels):
    """The step of each launch, one of STEPS, of the launches of a whole count: the names of their kernels.

    A sort belongs to the step of the kernel before it, a prefix sum to that of the kernel after it. A LookupError says
    which kernel is in no step.
    """
    steps = {kernel: step for step, names in STEPS.items() for kernel in names.split()}
    found = [steps.get(kernel) for kernel in kernels]
    for k, kernel in enumerate(kernels):
        if kernel in SORT and k > 0:
            found[k] = found[k - 1]
    for k in range(len(found) - 2, -1, -1):
        if kernels[k] in SCAN:
            found[k] = found[k + 1]
    if None in found:
        raise LookupError(f"{kernels[found.index(None)]!r}, launch {found.index(None)}, is in no step of a count")
    return found


def timelines(rows):
    """The record "timeline": graph -> step -> rows of begin and end in milliseconds; a step may have none.

    BETWEEN: the times before the first launch, between any two, and after the last.
    """
    launches, found = {}, {}
    for row in sorted(rows, key=lambda row: row["place"]):
        launches.setdefault(row["graph"], []).append(row)
    for graph in dict.fromkeys(row["graph"] for row in rows):
        own = launches[graph]
        found[graph] = {step: [] for step in (*STEPS, BETWEEN)}
        for step, row in zip(launch_steps([row["kernel"] for row in own]), own, strict=True):
            found[graph][step].append((row["begin_ms"], row["end_ms"]))
        ends, begins = (row["end_ms"] for row in own), (row["begin_ms"] for row in own)
        found[graph][BETWEEN] = list(zip((0, *ends), (*begins, own[0]["whole_ms"]), strict=True))
    return found


def step_times(lanes):
    """The milliseconds of each step, of all launches, and of the whole: a row each, a column for each graph.

    lanes: those of `timelines`.
    """
    times = {graph: {step: _sum_ms(pieces) for step, pieces in own.items()} for graph, own in lanes.items()}
    for own in times.values():
        between, launches = own.pop(BETWEEN), sum(own.values())
        own |= {"all launches": launches, BETWEEN: between, "whole": launches + between}
    steps = list(next(iter(times.values())))
    table = [{"step": step} | {graph: round(own[step], 2) for graph, own in times.items()} for step in steps]
    return Table(table, *table[0])


def describe_timelines(rows, counts):
    """Of the record "timeline": on which GPU, what the longest step of each graph is, and how long its gaps are.

    counts: the GPU's name -> the record "gpu", in which no event is between launches.
    """
    gpu = rows[0]["gpu_name"]
    alone, said = {row["graph"]: row["device_total_ms"] for row in counts[gpu]}, [f"On one {gpu}:"]
    for graph, own in timelines(rows).items():
        ms = {step: _sum_ms(pieces) for step, pieces in own.items() if step != BETWEEN}
        gaps, launches = np.diff(own[BETWEEN]).ravel(), sum(ms.values())
        whole, longest = launches + gaps.sum(), max(ms, key=ms.get)
        said.append(
            f"{graph}: the launches alone take {launches:.2f} of {whole:.2f} ms, {launches / whole:.0%}. "
            f"The longest step: {longest}, {ms[longest]:.2f} ms.\n"
            f"    Of {gaps.size} gaps, half are at most {1e3 * np.median(gaps):.1f} µs long. "
            f"Without events the whole takes {alone[graph]:.2f} ms."
        )
    return said


def _sum_ms(pieces):
    return float(sum(end - begin for begin, end in pieces))


def order_sums(rows, kinds):
    """What the costs of some graphs in the record "orders" add up from: a row for each sum that takes .01 ms.

    A sum's `count`, the nanoseconds of each, and the milliseconds of all.
    """
    found = []
    for row in sorted((row for row in rows if row["kind"] in kinds), key=lambda row: kinds.index(row["kind"])):
        for way, (counts, ns, _) in _ways(row).items():
            for name, each in ns.items():
                if counts[name] * each >= 1e4:
                    about = {"kind": row["kind"], "way": way, "sum": name, "count": f"{counts[name]:,.0f}"}
                    found.append(about | {"ns each": each, "ms": counts[name] * each / 1e6})
    return Table(found, "kind", "way", "sum", "count", "ns each", "ms")


def order_times(rows):
    """The record "orders" beside the estimated costs: a dict a graph.

    `estimated` and `measured`: milliseconds by way. `wrong`: the chosen way is not the fastest.
    `slower`: how many times as long as the best count the chosen one takes; rows of bits may have any width there.
    """
    found = []
    for row in rows:
        ways = _ways(row)
        estimated = {way: sum(each * counts[name] for name, each in ns.items()) / 1e6
                     for way, (counts, ns, _) in ways.items()}  # fmt: skip
        times = {way: ms for way, (*_, ms) in ways.items()}
        chosen = min(set(estimated) - {"natural"}, key=estimated.get)
        if estimated["natural"] <= order_costs.LITTLE * estimated[chosen] + order_costs.LITTLE_NS / 1e6:
            chosen = "natural"
        widths = [row.get(f"natural {words} ms", "") for words in (0, *order_costs.WORDS)]
        best = min(*times.values(), *(ms for ms in widths if ms != ""))
        about = {"kind": row["kind"], "wrong": times[chosen] > min(times.values()), "slower": times[chosen] / best}
        found.append(about | {"estimated": estimated, "measured": times})
    return found


def _ways(row):
    """The ways to count in a row of the record "orders": way -> (counts, nanoseconds of each, milliseconds)."""
    costs = order_costs.OrderCosts(row["vertices"], row["edges"], row["max_column"], json.loads(row["sums"]))
    measured = (words for words in (0, *order_costs.WORDS) if row.get(f"natural {words} ms", "") != "")
    words = min(measured, key=lambda words: costs.natural_ns.get(words, np.inf))
    return {
        "natural": (costs.natural_counts(words), order_costs.NATURAL_NS, row[f"natural {words} ms"]),
        "merged": (costs.merged_counts(), order_costs.MERGED_NS, row["merged ms"]),
        "looked": (costs.looked_counts(), order_costs.LOOKED_NS, row["looked ms"]),
        "degree": (costs.degree_counts(), order_costs.DEGREE_NS, row["degree ms"]),
    }


def per_dollar():
    """Speed and price in TriCore's slides: for each comparison whose processors they name, how
    many times faster theirs was, how many times dearer, and how many times faster for the same money."""
    price = {row["processor"]: row["dollars"] for row in published("tricore_prices")}
    found = []
    for row in published("tricore_speedups"):
        if row["ours"]:
            dearer = row["ours_count"] * price[row["ours"]] / (row["theirs_count"] * price[row["theirs"]])
            machines = f"{row['ours_count']} x {row['ours']} over {row['theirs_count']} x {row['theirs']}"
            found.append({"against": row["against"], "machines": machines, "faster": row["times_faster"],
                          "dearer": dearer, "per_dollar": row["times_faster"] / dearer})  # fmt: skip
    return found


def sweep_curves() -> list[sweep.Curve]:
    """Return the chart's curves: of the estimates for a GPU of what was recorded on it, of the report, of each GPU."""
    estimated = reference("curve")
    gpu = estimated[0]["gpu_name"]
    return [
        sweep.Curve(gpu, sweep.ESTIMATED, speedup_curve(estimated, sweep.REPORT_COLUMNS, key="estimated_ms")),
        sweep.Curve("Tesla T4", sweep.PUBLISHED, sweep.published_speedups()),
        *(
            sweep.Curve(gpu, sweep.MEASURED, speedup_curve(rows, sweep.REPORT_COLUMNS))
            for gpu, rows in records.records("sweep").items()
        ),
    ]


def speedup_curve(rows, columns, *, order="natural", key="kernel_ms"):
    """How much faster `column_block` is than `naive` in the record "sweep": [(nonzeros per column, speedup)].

    columns: how many it takes at a time: 1, 27, or "fitting", as many as give every thread a nonzero.
    """
    shared = dict(edge_times(rows, "column_block", columns, order=order, key=key))
    return [(x, simple / shared[x]) for x, simple in edge_times(rows, "naive", order=order, key=key) if x in shared]


def edge_times(rows, method, columns=None, *, order="natural", key="kernel_ms"):
    """The time of a method for each edge in the record "sweep": [(nonzeros per column, nanoseconds an edge)]."""
    points = []
    for row in rows:
        knob = records.fitting_columns(row["nonzeros_per_column"]) if columns == "fitting" else columns
        if (row["method"], row["order"]) == (method, order) and json.loads(row["knobs"]).get("columns") == knob:
            points.append((row["nonzeros_per_column"], row[key] * 1e6 / row["edges"]))
    return sorted(points)


def describe_sweep(curves, near=1.5):
    """How well the estimated curve of `sweep_curves` agrees with the measured one of its GPU: sentences.

    near: the factor up to which they agree.
    """
    estimate = next(curve for curve in curves if curve.kind == sweep.ESTIMATED)
    found = dict(estimate.points)
    took = dict(next(curve for curve in curves if curve[:2] == (estimate.name, sweep.MEASURED)).points)
    off = {x: abs(math.log(found[x] / took[x])) for x in found if x in took}
    differ = [f"{x:g}" for x in off if off[x] > math.log(near)]
    worst = max(off, key=off.get)
    passed = [
        f"{', '.join(f'{x:.1f}' for x in sweep.crossings(curve.points)) or 'none'} ({curve.name}, {curve.kind})"
        for curve in curves
    ]
    return [
        f"The estimate for an {estimate.name} is within a factor of {near} of the measured speedup at "
        f"{len(off) - len(differ)} of {len(off)} places from {min(off):g} to {max(off):g} nonzeros per column"
        f"{', not at ' * bool(differ)}{', '.join(differ)}.",
        f"It is furthest off at {worst:g}: {found[worst]:.2f} instead of {took[worst]:.2f}.",
        f"The estimate is largest at {max(found, key=found.get):g}, "
        f"the measured speedup at {max(took, key=took.get):g}.",
        f"Nonzeros per column at which a speedup passes 1: {'; '.join(passed)}.",
    ]


# -------------------------------------------------------------------------------------------------------------- WebGPU


def kernel_times(rows):
    """Kernel times in the record "webgpu": method -> graph -> (milliseconds by CUDA, by WebGPU)."""
    found = {}
    for row in rows:
        graphs = found.setdefault(row["method"], {})
        graphs.setdefault(row["graph"].removesuffix(" nonzeros per column"), {})[row["engine"]] = row["kernel_ms"]
    return {
        method: {graph: (ms["gpu"], ms["webgpu"]) for graph, ms in graphs.items()} for method, graphs in found.items()
    }


def webgpu_over_cuda(rows):
    """How many times as long a kernel takes by WebGPU as by CUDA: method -> graph -> times."""
    times = kernel_times(rows)
    return {method: {graph: b / a for graph, (a, b) in graphs.items()} for method, graphs in times.items()}


def ratio_table(ratios):
    """The ratios of `webgpu_over_cuda`: a row a method, a column a graph."""
    graphs = dict.fromkeys(graph for of in ratios.values() for graph in of)
    rows = [
        {"kernel": method} | {graph: f"{of[graph]:.2f}" if graph in of else "" for graph in graphs}
        for method, of in ratios.items()
    ]
    return Table(rows, "kernel", *graphs)


# ------------------------------------------------------------------------------------------------------- many workers


def speedups(rows, method=SHARES, key="wall_ms"):
    """How many times as fast a count is on several GPUs as on one: graph -> [(GPUs, speedup)]."""
    found = {}
    for row in rows:
        if row["method"] == method and row.get(key, "") != "":
            found.setdefault(row["graph"], []).append((row["gpus"], row[key]))
    return {graph: [(gpus, dict(points)[1] / ms) for gpus, ms in sorted(points)] for graph, points in found.items()}


def part_times(rows, graph, method):
    """Number of parts -> milliseconds of each, in the order of the cut."""
    own = (row for row in rows if (row["graph"], row["method"]) == (graph, method) and row.get("parts_ms"))
    return {row["parts"]: np.array(json.loads(row["parts_ms"])) for row in own}


def projected_speedups(rows, graph):
    """[(GPUs, speedup)] of the kernels alone, one share for each GPU: the longest share determines the time."""
    times = part_times(rows, graph, SHARES)
    return [(gpus, float(times[1].max() / shares.max())) for gpus, shares in sorted(times.items())]


def above_ideal(times, workers):
    """The time of parts on this many workers, over the ideal: the sum of all divided evenly.

    times: of the parts, in the order of the queue from which each worker takes the next when it is free.
    """
    ideal = times.sum() / workers
    return float(schedule(times, workers, "given").makespan / ideal) if ideal else 1.0


@dataclass(frozen=True)
class Overlap:
    """When a device copied and when it counted: rows of begin and end in milliseconds, ascending."""

    copies: np.ndarray
    kernels: np.ndarray

    @property
    def copies_ms(self):
        return float(np.diff(self.copies).sum())

    @property
    def kernels_ms(self):
        return float(np.diff(self.kernels).sum())

    @property
    def whole_ms(self):
        """From the first begin to the last end."""
        both = np.concatenate((self.copies, self.kernels))
        return float(np.ptp(both)) if both.size else 0.0

    @property
    def hidden(self):
        """The share of the copies' time in which a kernel ran; 0 without copies."""
        if not self.copies_ms or not self.kernels.size:
            return 0.0
        counted = np.stack((np.zeros(len(self.kernels)), np.diff(self.kernels).ravel()), 1).ravel().cumsum()
        return float(np.diff(np.interp(self.copies, self.kernels.ravel(), counted)).sum() / self.copies_ms)
