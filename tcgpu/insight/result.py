"""A trace: what the launches of one count did, by launch, by line of the source, and by thread."""

import os
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, get_args

import numpy as np

from tcgpu import cpu
from tcgpu.arrays import bincount
from tcgpu.engines.simulator import WARP
from tcgpu.errors import GraphError, needing
from tcgpu.graph import Graph
from tcgpu.insight.demand import Steps
from tcgpu.insight.estimates import KernelEstimate, of_launch, total_ms
from tcgpu.insight.events import SECTOR, Events
from tcgpu.insight.faults import Fault
from tcgpu.insight.gpus import Gpu, gpu_of, registers_of
from tcgpu.insight.sampling import whole
from tcgpu.markup import element, joined
from tcgpu.records import Table

Stage = Literal["setup", "count"]  # of a launch
STAGES = get_args(Stage)
Unit, Work = Literal["thread", "warp", "block"], Literal["steps", "loads", "atomics"]
ByLine = dict[tuple[Any, int], dict[str, Any]]  # (function, line) -> measures
LANES = np.arange(WARP, dtype=np.uint32)
REQUEST_MEASURES = {  # measure -> kind of request, whether for shared memory, which column of Events is added up
    "loads": ("load", False, "lanes"),
    "load_requests": ("load", False, None),
    "load_sectors": ("load", False, "sectors"),
    "store_requests": ("store", False, None),
    "store_sectors": ("store", False, "sectors"),
    "atomics": ("atomic", False, "lanes"),
    "atomic_requests": ("atomic", False, None),
    "atomic_sectors": ("atomic", False, "sectors"),
    "atomics_meeting": ("atomic", False, "meeting"),
    "shared_loads": ("load", True, None),
    "shared_load_conflicts": ("load", True, "conflicts"),
    "shared_stores": ("store", True, None),
    "shared_store_conflicts": ("store", True, "conflicts"),
    "shared_atomics": ("atomic", True, None),
    "shared_atomic_conflicts": ("atomic", True, "conflicts"),
}
MEASURES = ("steps", "lane_steps", "barriers", *REQUEST_MEASURES, "bytes_asked", "warp_ns")  # that can be added up
SHOWN = ("steps", "lanes", "load_requests", "sectors_per_request", "shared_requests", "bank_conflicts", "atomics")


@dataclass(frozen=True, eq=False)
class Launch:
    """One kernel launch of a traced count."""

    stage: str  # "setup", or "count" for what is timed as the kernel
    kernel: str
    blocks: int
    threads: int
    shared: int  # bytes of dynamic shared memory of a block
    events: Events = field(repr=False)
    gpu: Gpu = field(repr=False)  # whose times are estimated

    @cached_property
    def steps(self) -> Steps:
        return Steps(whole(self.events))

    @cached_property
    def estimate(self) -> KernelEstimate:
        """The KernelEstimate of the launch: its time without that for launching."""
        return of_launch(self, self.steps, self.gpu, self.touched_bytes)

    @property
    def touched_bytes(self) -> int:
        """Bytes of the sectors of global memory that it reads or writes."""
        in_global = ~self.events.shared[self.events.request]
        return SECTOR * np.unique(self.events.address[in_global] // SECTOR).size

    @property
    def warp_ns(self) -> np.ndarray:
        """Nanoseconds of each step, if no other warp is in the way."""
        fit = self.gpu.resident_blocks(self.threads, self.shared, registers_of(self.kernel))
        resident = min(fit, -(-self.blocks // self.gpu.sms))
        return self.steps.demand(self.gpu, resident, self.shared, self.touched_bytes).times(self.gpu)

    @cached_property
    def lines(self) -> ByLine:
        """(Function, line) -> measures, in the order in which the functions are first reached."""
        events = self.events
        sites = [events.sites[number] for number in np.concatenate([events.step_site, events.site]).tolist()]
        places = {}
        group = np.array([places.setdefault((site.function, site.line), len(places)) for site in sites], int)
        of_step, of_request = group[: events.step_site.size], group[events.step_site.size :]

        def added(groups, values):
            return bincount(groups, values, len(places)).astype(np.int64)

        found = {
            "steps": added(of_step, None),
            "lane_steps": added(of_step, events.active),
            "barriers": added(of_step, self.steps.barrier),
        }
        for name, (kind, shared, column) in REQUEST_MEASURES.items():
            values = 1 if column is None else getattr(events, column)
            found[name] = added(of_request, np.where(events.of_kind(kind, shared), values, 0))
        asked = events.lanes * events.size.astype(np.int64)
        found["bytes_asked"] = added(of_request, np.where(events.shared, 0, asked))
        found["warp_ns"] = bincount(of_step, self.warp_ns, len(places))
        return {place: {name: values[k].item() for name, values in found.items()} for place, k in places.items()}

    def totals(self) -> dict[str, Any]:
        """All measures of the launch."""
        return added(self.lines.values())

    def balance(self, per: str, of: str) -> np.ndarray:
        """How many steps, loads or atomic operations each thread, warp or block did."""
        events, warps = self.events, -(-self.threads // WARP)
        warp = events.block.astype(np.int64) * warps + events.warp  # of each step
        if of == "steps":
            parts = [bincount(warp, events.mask >> lane & 1, self.blocks * warps) for lane in LANES]
            lanes = np.stack(parts, axis=1).astype(np.int64)
        else:
            chosen = events.of_kind(of.removesuffix("s"))[events.request]
            thread = warp[events.step[events.request[chosen]]] * WARP + events.lane[chosen]
            lanes = bincount(thread, minlength=self.blocks * warps * WARP).reshape(-1, WARP)
        if per == "thread":
            return lanes.reshape(self.blocks, -1)[:, : self.threads].ravel()
        of_warp = bincount(warp, minlength=lanes.shape[0]) if of == "steps" else lanes.sum(axis=1)
        return of_warp if per == "warp" else of_warp.reshape(self.blocks, warps).sum(axis=1)


def added(many):
    """The sum of dicts of measures; of none, all are 0."""
    total = dict.fromkeys(MEASURES, 0)
    for measures in many:
        for name, value in measures.items():
            total[name] += value
    return total


def finish(measures):
    """Measures that were added up, and those that follow from them."""
    requests, steps = measures["load_requests"], measures["steps"]
    kinds = ("load", "store", "atomic")
    return measures | {
        "lanes": round(measures["lane_steps"] / steps, 2) if steps else "",
        "idle_lanes": WARP * steps - measures["lane_steps"],
        "sectors_per_request": round(measures["load_sectors"] / requests, 2) if requests else "",
        "bytes_moved": SECTOR * sum(measures[f"{kind}_sectors"] for kind in kinds),
        "shared_requests": sum(measures[f"shared_{kind}s"] for kind in kinds),
        "bank_conflicts": sum(measures[f"shared_{kind}_conflicts"] for kind in kinds),
    }


@dataclass(eq=False, repr=False)
class Trace:
    """One traced count. Prints as the table of its lines."""

    method: str
    graph: Graph  #: in the order in which it was counted
    knobs: dict[str, Any]
    launches: list[Launch]
    triangles: int
    gpu: str  #: whose times are estimated, by the model of `tcgpu.estimate`: those of the launches as they were traced
    #: what its kernels must not do; None if that was not looked for. A trace that was saved and loaded has none
    faults: list[Fault] | None = None

    def chosen(self, stage: Stage | None = None, kernel: str | None = None) -> list[Launch]:
        """Return the launches of a stage, "setup" or "count", or of both; with `kernel`, only those of that kernel."""
        if stage not in (*STAGES, None):
            raise GraphError(f"stage is 'setup', 'count' or None for both, not {stage!r}")
        found = [launch for launch in self.launches if stage in (None, launch.stage)]
        found = [launch for launch in found if kernel in (None, launch.kernel)]
        if kernel is not None and not found:
            names = ", ".join(dict.fromkeys(launch.kernel for launch in self.launches))
            raise GraphError(f"no kernel {kernel!r} in this trace; there are {names}")
        return found

    def main(self, kernel: str | None = None) -> Launch:
        """Return the counting launch that takes longest; with `kernel`, the longest launch of that kernel."""
        found = self.chosen(None if kernel else "count", kernel)
        return max(found, key=lambda launch: launch.estimate.ms)

    def totals(self, stage: Stage | None = "count", kernel: str | None = None) -> dict[str, Any]:
        """Return all measures of these launches together; `estimated_us` is in microseconds, launching included."""
        launches = self.chosen(stage, kernel)
        ms = total_ms([launch.estimate for launch in launches], gpu_of(self.gpu)) if launches else 0
        return finish(added(launch.totals() for launch in launches)) | {"estimated_us": 1e3 * ms}

    def kernels(self, stage: Stage | None = None) -> Table:
        """Return a row per launch; `estimated_us` is its time without that for launching."""
        rows = []
        for launch in self.chosen(stage):
            shape = {"stage": launch.stage, "kernel": launch.kernel, "blocks": launch.blocks, "threads": launch.threads}
            rows.append(shape | finish(launch.totals()) | {"estimated_us": 1e3 * launch.estimate.ms})
        return Table(rows, "stage", "kernel", "blocks", "threads", *SHOWN, "estimated_us")

    def lines(self, stage: Stage | None = "count", kernel: str | None = None) -> Table:
        """Return a row per line of the source that did something, of kernels and of the functions that they call.

        `share` is the line's part of the time of all warps, from 0 to 1.
        """
        rows = [
            {"function": function.name, "line": line, "text": function.text(line)} | measures
            for (function, line), measures in self.by_line(stage, kernel).items()
        ]
        return Table(rows, "function", "line", *SHOWN, "share", "text")

    def by_line(self, stage: Stage | None = "count", kernel: str | None = None) -> ByLine:
        """(Function, line) -> measures; functions in the order in which they are reached, lines from top to bottom."""
        many = {}
        for launch in self.chosen(stage, kernel):
            for place, measures in launch.lines.items():
                many.setdefault(place, []).append(measures)
        order = {function: k for k, function in enumerate(dict.fromkeys(function for function, _ in many))}
        found = {place: added(many[place]) for place in sorted(many, key=lambda place: (order[place[0]], place[1]))}
        time = sum(measures["warp_ns"] for measures in found.values())
        for measures in found.values():
            measures["share"] = round(measures["warp_ns"] / time, 4) if time else 0
        return {place: finish(measures) for place, measures in found.items()}

    def balance(self, per: Unit = "thread", of: Work = "loads", kernel: str | None = None) -> np.ndarray:
        """Return how many "steps", "loads" or "atomics" each "thread", "warp" or "block" of the main launch did."""
        if per not in ("thread", "warp", "block") or of not in ("steps", "loads", "atomics"):
            raise GraphError(f"balance is per thread, warp or block, of steps, loads or atomics, not per {per} of {of}")
        return self.main(kernel).balance(per, of)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the trace to a file, which `tcgpu.load_trace` reads."""
        from tcgpu.insight import trace_file

        trace_file.save(self, path)

    def save_page(self, path: str | os.PathLike[str], by: str = "time") -> None:
        """Write a web page that shows the trace without Python: its source, warps step by step, their requests.

        It is one HTML file, which needs no network. It has the warps with the most steps, as many as fit. `by` names
        the measure that it shows first beside the source.
        """
        with needing("a page of a trace"):
            from tcgpu.insight import web_page

        web_page.save(self, path, by)

    def play(self, by: str = "time") -> Any:
        """Return a widget that shows in a notebook what the page of `save_page` shows."""
        with needing("a player"):
            from tcgpu.insight import web_page
            from tcgpu.player.widget import Player

        return Player(web_page.recording(self, by), still=lambda: self.show(by), words=f"<Player {self.headline}>")

    def show(self, by: str = "time", kernel: str | None = None) -> Any:
        """Draw all charts of the kernel that takes longest, or of `kernel`, in one picture."""
        return _pictures().draw_all(self, by, kernel=kernel)

    def draw_source(self, *args: Any, **options: Any) -> Any:
        """Draw the kernel's source with a bar at each line; see `tcgpu.insight.pictures.draw_source`."""
        return _pictures().draw_source(self, *args, **options)

    def draw_raster(self, *args: Any, **options: Any) -> Any:
        """Draw the lanes of a warp, step by step; see `tcgpu.insight.pictures.draw_raster`."""
        return _pictures().draw_raster(self, *args, **options)

    def draw_request(self, *args: Any, **options: Any) -> Any:
        """Draw the addresses of one memory request; see `tcgpu.insight.pictures.draw_request`."""
        return _pictures().draw_request(self, *args, **options)

    def draw_balance(self, *args: Any, **options: Any) -> Any:
        """Draw how evenly the work is spread; see `tcgpu.insight.pictures.draw_balance`."""
        return _pictures().draw_balance(self, *args, **options)

    def __repr__(self):
        return f"{self.headline}\n{self.lines()!r}"

    def _repr_html_(self):
        return joined(element("p", self.headline), self.lines()._repr_html_())

    @property
    def headline(self) -> str:
        """The triangles, whether they are those of the graph, and the estimated time, in a sentence."""
        time = self.totals()["estimated_us"]
        return (
            f"{self.method} traced on {self.graph.m:,} edges: {self.triangles:,} triangles{self.mistake}; its counting "
            f"kernels would take about {time:.3g} µs on one {self.gpu}"
        )

    @cached_property
    def mistake(self) -> str:
        """What is wrong with the count, in words; empty if it is right."""
        found = cpu.count(self.graph)
        return "" if found == self.triangles else f", which is wrong: the graph has {found:,}"


class Traces(list[Trace]):
    """Traces of one graph, one per method. Prints as a table with a row for each."""

    def totals(self, stage: Stage | None = "count") -> Table:
        """Return a row per method."""
        rows = [{"method": trace.method, "triangles": trace.triangles} | trace.totals(stage) for trace in self]
        return Table(rows, "method", "triangles", *SHOWN, "bytes_moved", "estimated_us")

    def draw(self, *args: Any, **options: Any) -> Any:
        """Draw the methods side by side; see `tcgpu.insight.pictures.draw_comparison`."""
        return _pictures().draw_comparison(self, *args, **options)

    @property
    def mistakes(self) -> list[str]:
        """A sentence for each method whose count is wrong."""
        return [f"{trace.method}: {trace.triangles:,} triangles{trace.mistake}." for trace in self if trace.mistake]

    def __repr__(self):
        return "\n".join([repr(self.totals()), *self.mistakes])

    def _repr_html_(self):
        return joined(self.totals()._repr_html_(), *(element("p", each) for each in self.mistakes))


def load_trace(path: str | os.PathLike[str]) -> Trace:
    """Read a trace that `Trace.save` wrote; FormatError if the file is none, or damaged."""
    from tcgpu.insight import trace_file

    return trace_file.load(path, Trace, Launch)


def _pictures():
    """The module that draws traces, imported only when something is drawn: a trace needs no matplotlib."""
    with needing("a picture of a trace"):
        from tcgpu.insight import pictures

    return pictures
