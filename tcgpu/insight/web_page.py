"""A trace as a web page that needs no Python: a recording for `tcgpu.player`.

Of each kernel it has the bars beside the source, and the balance of the work: those are of all warps. The steps are of
the warps that did the most, as many as fit the page. The notes of the page say what was left out.
"""

import numpy as np

from tcgpu import player
from tcgpu.arrays import bincount
from tcgpu.errors import GraphError
from tcgpu.files import replacing
from tcgpu.insight.events import MEMORY_SHIFT, warps_of
from tcgpu.insight.pictures import ACTIVITIES, BY, FEW, activities, listing
from tcgpu.suggest import unknown

ROOM = 120_000  # for the steps of a page: how many numbers it may have, a few bytes each
STEP, REQUEST = 4, 8  # numbers of a step, and of a request without its addresses
BINS = 40  # of a histogram, at most


def save(trace, path, by="time"):
    """Write the page; the file is replaced when all of it is written."""
    if by not in BY:
        raise GraphError(f"by: {unknown('measure', by, BY)}")
    text = player.page(recording(trace, by))
    with replacing(path) as stream:
        stream.write(text.encode("utf-8", "xmlcharrefreplace"))


def recording(trace, by="time"):
    """The recording of a trace, its main kernel first; see `tcgpu.player` for what a recording is."""
    graph, first = trace.graph, trace.main()
    kernels = dict.fromkeys([first.kernel, *(launch.kernel for launch in trace.launches)])
    launches = [trace.main(kernel) for kernel in kernels]
    name = f" {graph.name}" if graph.name else ""
    knobs = ", ".join(f"{knob}={value}" for knob, value in trace.knobs.items())
    facts = [
        f"{trace.headline}.",
        f"Graph{name}: {graph.n:,} vertices, {graph.m:,} edges, in {graph.order} order.",
        f"Knobs: {knobs}." if knobs else "",
    ]
    rooms = shares(list(map(needs, launches)))
    return {
        "title": f"{trace.method}: a trace of its kernels",
        "facts": " ".join(filter(None, facts)),
        "words": {"part": "kernel", "sequence": "warp"},
        "parts": [part(trace, launch, room, by) for launch, room in zip(launches, rooms, strict=True)],
    }


def needs(launch):
    """How many numbers all steps of a launch take."""
    events = launch.events
    return STEP * events.block.size + REQUEST * events.lanes.size + events.lane.size


def shares(needed, room=ROOM):
    """How much of the room each gets: what it needs, or as much as the others that do not get all that they need."""
    given = [0] * len(needed)
    for left, k in zip(range(len(needed), 0, -1), sorted(range(len(needed)), key=needed.__getitem__), strict=True):
        given[k] = min(needed[k], room // left)
        room -= given[k]
    return given


def part(trace, launch, room, by):
    """The part of a kernel, by its launch that takes longest, with steps for so many numbers."""
    kernel, events = launch.kernel, launch.events
    places = trace.by_line(None, kernel)
    rows = [row for function in dict.fromkeys(function for function, _ in places) for row in listing(function)]
    position = {(function, line): k for k, (function, line, _) in enumerate(rows)}
    sequences, note = chosen_warps(events, room, position)
    many = sum(other.kernel == kernel for other in trace.launches)
    setup = ", set-up" if launch.stage == "setup" else ""
    shape = f"Blocks: {launch.blocks:,}; threads in each: {launch.threads:,}"
    if many > 1:
        note = f"{many} launches: bars are of all of them, the rest is of the one that takes longest. {note}"
    return {
        "name": f"{kernel}{setup}",
        "note": f"{shape}. {note}",
        "views": [
            {
                "kind": "source",
                "side": "left",
                "rows": [[function.name, line, text] for function, line, text in rows],
                "first": by,
                "measures": [
                    {"name": name, "words": words, "amounts": amounts(places, rows, name)}
                    for name, words in BY.items()
                ],
            },
            {"kind": "warp", "activities": list(ACTIVITIES)},
            {"kind": "requests", "memories": events.memories},
            {"kind": "balance", "charts": [
                balance(trace, kernel, per, of)
                for per in ("block", "warp", "thread") for of in ("steps", "loads", "atomics")
            ]},
        ],
        "sequences": sequences,
    }  # fmt: skip


def amounts(places, rows, by):
    """The measure `by` of each row of the source; 0 where nothing ran."""
    return [places.get(row[:2], {}).get("share" if by == "time" else by, 0) for row in rows]


def chosen_warps(events, room, position):
    """The sequences of the warps with the most steps that fit the room, and a sentence that says what is left out."""
    steps, order = events.block.size, np.argsort(events.step, kind="stable")
    begins = np.flatnonzero(np.diff(warps_of(events), prepend=-1))
    ends = np.append(begins[1:], steps)
    needed = np.cumsum(STEP + bincount(events.step, REQUEST + events.lanes, steps))
    row = events.of_sites(events.step_site, lambda site: position[site.function, site.line])
    columns = {"row": row, "active": events.mask, "activity": activities(events)}
    found, cut = [], ""
    for k in np.argsort(begins - ends, kind="stable").tolist():
        begin, end = int(begins[k]), int(ends[k])
        before = int(needed[begin - 1]) if begin else 0
        fit = min(end, int(np.searchsorted(needed, room + before, side="right")))
        many = f"{fit - begin:,} steps"
        if fit < end:
            if found:
                break
            cut = many = f"its first {many} of {end - begin:,}"
        room -= int(needed[fit - 1]) - before
        block, warp = int(events.block[begin]), int(events.warp[begin])
        found.append({
            "name": f"warp {warp} of block {block}, {many}", "block": block, "warp": warp, "steps": fit - begin,
            "columns": {name: column[begin:fit].tolist() for name, column in columns.items()}
            | {"requests": requests(events, begin, fit, order)},
        })  # fmt: skip
        if cut:
            break
    if len(found) == begins.size and not cut:
        return found, "All of its warps can be stepped through."
    which = f"the one with the most steps, {cut}" if cut else "those with the most steps"
    return found, f"{len(found):,} of its {begins.size:,} warps can be stepped through: {which}."


def requests(events, begin, end, order):
    """The requests of each of these steps, in lists that player.js names in `named`: "lanes" are bits, "bytes" are the
    offsets in the memory, by lane. `order` sorts all requests by their step."""
    found = [[] for _ in range(begin, end)]
    first, last = np.searchsorted(events.step, [begin, end], sorter=order)
    for number in order[first:last].tolist():
        accesses = slice(*events.first[number : number + 2])
        by_lane = np.argsort(events.lane[accesses])
        addresses = events.address[accesses][by_lane]
        site, shared = events.sites[int(events.site[number])], bool(events.shared[number])
        found[int(events.step[number]) - begin].append([
            site.kind, site.expression, int(addresses[0]) >> MEMORY_SHIFT, int(events.size[number]),
            0 if shared else int(events.sectors[number]), int(events.wavefronts[number]),
            int(events.conflicts[number]), int((1 << events.lane[accesses].astype(np.int64)).sum()),
            (addresses & (1 << MEMORY_SHIFT) - 1).tolist(),
        ])  # fmt: skip
    return found


def balance(trace, kernel, per, of):
    """A chart of how much each block, warp or thread did: a bar each, or if there are many, how many did how much."""
    done = trace.balance(per, of, kernel)
    chart = {"per": per, "of": of, "number": done.size, "mean": float(done.mean()), "most": int(done.max())}
    if done.size <= FEW:
        return chart | {"each": done.tolist()}
    edges = np.arange(chart["most"] + 2) - 0.5 if chart["most"] < BINS else np.linspace(0, chart["most"], BINS + 1)
    return chart | {"bars": np.histogram(done, edges)[0].tolist(), "edges": edges.tolist()}
