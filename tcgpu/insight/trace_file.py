"""Traces in files: an archive of NumPy arrays, and a description of them as JSON text.

The description has the launches, and the source of every function that ran: a trace that is read shows the lines as
they were. Nothing is unpickled, and each array is checked against the archive's own checksum.
"""

import json
import zipfile
from dataclasses import fields

import numpy as np

from tcgpu.errors import FormatError, GraphError
from tcgpu.files import replacing
from tcgpu.formats import binary
from tcgpu.graph import Graph
from tcgpu.insight.events import Events
from tcgpu.insight.gpus import gpu_of
from tcgpu.insight.recorder import COLUMNS
from tcgpu.insight.rewriting import Counts, Function, Site

MADE_BY = "tcgpu trace 3"
DESCRIPTION = "trace"  # the array that is the description, as bytes
UNUSED = 0  # a number of each site, which earlier versions wrote


def save(trace, path):
    """Write a trace; the file is replaced when all of it is written."""
    arrays = {"col_ptr": trace.graph.col_ptr, "row_idx": trace.graph.row_idx}
    functions, launches = {}, []
    for number, launch in enumerate(trace.launches):
        events = launch.events
        arrays |= {f"{name}_{number}": getattr(events, name) for name in COLUMNS}
        sites = {
            key: [site.kind, functions.setdefault(site.function, len(functions)), site.line, UNUSED, *site[3:]]
            for key, site in events.sites.items()
        }
        shape = {
            field.name: getattr(launch, field.name) for field in fields(launch) if field.name not in ("events", "gpu")
        }
        known = {"threads": int(events.threads), "memories": events.memories, "kept": events.kept}
        launches.append(shape | {"events": known | {"signed": sorted(events.signed)}, "sites": sites})
    description = {
        "made_by": MADE_BY, "method": trace.method, "knobs": trace.knobs, "triangles": trace.triangles,
        "gpu": trace.gpu, "graph": {"name": trace.graph.name, "order": trace.graph.order},
        "functions": [function[:3] for function in functions], "launches": launches,
    }  # fmt: skip
    text = np.frombuffer(json.dumps(description, default=int).encode(), np.uint8)
    with replacing(path) as stream:
        binary.write_archive({DESCRIPTION: text} | arrays, stream, zipfile.ZIP_DEFLATED)


def load(path, trace_class, launch_class):
    """The `trace_class` that a file holds, with launches of `launch_class`; FormatError if it is none, or damaged."""
    [text] = binary.read_archive(path, [DESCRIPTION], "no trace of tcgpu in it").values()
    try:
        description = json.loads(text.tobytes())
        if description["made_by"] != MADE_BY:
            raise FormatError(f"{path}: made by {description['made_by']!r}; this version reads {MADE_BY!r}")
        launches = description["launches"]
        names = ["col_ptr", "row_idx", *(f"{name}_{k}" for k in range(len(launches)) for name in COLUMNS)]
        arrays = binary.read_archive(path, names, "no events in it")
        functions = [Function(name, first, tuple(lines)) for name, first, lines in description["functions"]]
        gpu = gpu_of(description["gpu"])
        return trace_class(
            description["method"],
            Graph(arrays["col_ptr"], arrays["row_idx"], **description["graph"]),
            description["knobs"],
            [launch_class(**_fields(launch, k, arrays, functions), gpu=gpu) for k, launch in enumerate(launches)],
            description["triangles"],
            description["gpu"],
        )
    except (KeyError, ValueError, TypeError, IndexError, AttributeError, GraphError) as error:
        if isinstance(error, FormatError):
            raise
        raise FormatError(f"{path}: not a whole trace: {error}") from None


def _fields(description, number, arrays, functions):
    """The fields of the launch of this number, but for the GPU."""
    sites = {}
    for key, (kind, function, line, _, counts, barrier, text, branches, *rest) in description.pop("sites").items():
        place = kind, functions[function], line
        sites[int(key)] = Site(*place, Counts(*counts), barrier, text, tuple(branches), *rest)
    known = description.pop("events")
    columns = {name: arrays[f"{name}_{number}"] for name in COLUMNS}
    events = Events(sites=sites, **known | {"signed": set(known["signed"])}, **columns)
    if events.lane.size != events.address.size or events.lane.size != events.lanes.sum():
        raise ValueError(f"launch {number} has {events.lane.size} accesses, not {events.lanes.sum()}")
    return description | {"events": events}
