"""The frames of a method of one's own, from its trace: a frame is a step of a warp that accesses memory."""

import inspect

import numpy as np

from tcgpu.insight import trace_plan
from tcgpu.insight.events import MEMORY_SHIFT
from tcgpu.insight.events import SHARED as SHARED_MEMORY
from tcgpu.kernels import Step
from tcgpu.lab.stepper.frames import GLOBAL, SHARED, Frame, RowIdx, cells, counted, listed
from tcgpu.registry import on_engine

VERBS = {"load": "read", "store": "write", "atomic": "change"}
NAMED = 6  # lanes that a caption names
TITLE = 44  # letters of a line of source in a title


def traced(scene, method, knobs):
    """Yield the frames of all launches of a method: block after block, warp after warp."""
    graph, requests = scene.graph, 0
    with on_engine(method, "sim"):
        plan = method.plan(graph, **knobs)
        launches, _ = trace_plan(plan)
    steps = [step for step in (*plan.setup, *plan.steps) if isinstance(step, Step)]
    unchanged = dict(plan.copied)  # array -> its elements as the host made them
    for step, launch in zip(steps, launches, strict=True):
        events, values = launch.events, values_of(step, launch.events, unchanged)
        of_step = np.searchsorted(events.step, np.arange(events.step_site.size + 1))
        with_requests = np.flatnonzero(np.diff(of_step))
        order = np.lexsort((with_requests, events.warp[with_requests], events.block[with_requests]))
        for number in with_requests[order].tolist():
            here = range(of_step[number], of_step[number + 1])
            requests += len(here)
            yield frame(scene, launch, number, here, values, requests)


def values_of(step, events, unchanged):
    """Parameter -> elements, of the arrays in `unchanged`; those that this kernel changes are removed from it."""
    memory, changes = events.address[events.first[:-1]] >> MEMORY_SHIFT, ~events.is_kind("load")
    numbers = np.unique(memory[changes]).tolist()
    changed = {name for number in numbers for name in events.memories[number].split(", ")}
    names = [*inspect.signature(step.kernel.py_func).parameters]
    arrays = {name: arg for name, arg in zip(names, step.args, strict=True) if isinstance(arg, str)}
    for name in changed & arrays.keys():
        unchanged.pop(arrays[name], None)
    return {name: unchanged[array].ravel() for name, array in arrays.items() if array in unchanged}


def frame(scene, launch, number, requests, values, so_far):
    """The frame of one step: a panel for each of its requests and, if it reads `row_idx`, that array."""
    events, graph = launch.events, scene.graph
    panels, read, words, vertices, edges = [], [], [], set(), []
    for request in requests:
        site, size = events.sites[int(events.site[request])], int(events.size[request])
        span = slice(events.first[request], events.first[request + 1])
        lanes, address = events.lane[span].tolist(), events.address[span]
        memory, places = int(address[0]) >> MEMORY_SHIFT, ((address & (1 << MEMORY_SHIFT) - 1) // size).tolist()
        name, shared = events.memories[memory], memory == SHARED_MEMORY
        panels.append(panel(name, shared, site.kind, places, lanes, values.get(name)))
        costs, unit = (events.wavefronts, "wavefront") if shared else (events.sectors, "sector")
        cost = counted(int(costs[request]), unit)
        words.append(f"{who(lanes)} {VERBS[site.kind]}{'s' * (len(lanes) == 1)} {name} at {where(places)}: {cost}.")
        if name == "row_idx" and np.array_equal(values.get(name, ()), graph.row_idx):
            read += places
            edges += [(int(graph.row_idx[p]), int(graph.col_of[p])) for p in places]
        elif name in ("col_ptr", "row_ptr", "degree") and name in values:
            vertices |= {v for v in places if v < graph.n}
    step = events.sites[int(events.step_site[number])]
    text = step.function.text(step.line)
    title = f"line {step.line}: {text if len(text) <= TITLE else text[: TITLE - 1] + '…'}"
    place = f"Block {events.block[number]}, warp {events.warp[number]}, in {step.function.name}."
    looked = dict.fromkeys(vertices | {v for edge in edges for v in edge}, "looked")
    caption = " ".join([place, *words])
    if read:
        panels.append(RowIdx((), tuple(read)))
    return Frame(scene, title, caption, tuple(panels), (), 0, so_far, looked, tuple(edges))


def panel(name, shared, kind, places, lanes, values):
    """The elements that a request accesses, each once, with its position above and its lanes below."""
    distinct = sorted(set(places))
    at = [*zip(lanes, places, strict=True)]
    below = {k: joined(lane for lane, there in at if there == place) for k, place in enumerate(distinct)}
    look = "looked" if kind == "load" else "there"
    shown = ["" if values is None else values[place] for place in distinct]
    heads = {k: str(place) for k, place in enumerate(distinct)}
    memory = SHARED if shared else GLOBAL
    parts = "position, lanes" if values is None else "position, value, lanes"
    return cells(f"{name}: {parts}", shown, look, heads=heads, marks=below, memory=memory)


def joined(lanes):
    """Lanes below a cell: "3", "3 4"; of more than two their number, "×5"."""
    lanes = list(lanes)
    return " ".join(map(str, lanes)) if len(lanes) < 3 else f"×{len(lanes)}"


def who(lanes):
    """Lanes at the beginning of a sentence."""
    if len(lanes) > NAMED:
        return f"{len(lanes)} lanes"
    return f"Lane{'s' * (len(lanes) > 1)} {listed(lanes)}"


def where(places):
    """Positions, those that many lanes access once."""
    distinct = list(dict.fromkeys(places))
    if len(distinct) > NAMED:
        return f"{len(distinct)} positions from {min(distinct):,} to {max(distinct):,}"
    return listed(distinct)
