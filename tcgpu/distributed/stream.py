"""Counting a graph part by part on one device that may be smaller than the graph (`device_parts`).

The engine "cpu" counts the same parts directly in the graph's arrays. Many raw edges are cleaned by the device, which
gets them in pieces (`columns_in_pieces`). If all columns fit, they are counted where they are.
"""

import gc
import re
import traceback
from contextlib import contextmanager, suppress

import numpy as np

from tcgpu import registry
from tcgpu.arrays import locked
from tcgpu.distributed import cut, device_parts
from tcgpu.distributed.device_parts import TOTAL_BYTES, Streaming, layout
from tcgpu.distributed.journal import count_parts
from tcgpu.distributed.worker import count_part, method_of, opened
from tcgpu.engines import runtime
from tcgpu.errors import GraphError
from tcgpu.gpu_costs import MANY_EDGES
from tcgpu.graph import Graph, as_graph, checked_edges, edge_arrays
from tcgpu.kernels import simulated
from tcgpu.kernels.columns_in_pieces import LAST_STEP, DoesNotSuit, ranges_of_columns
from tcgpu.progress import part, underway

UNITS = {"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
         "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}  # fmt: skip
RAW_EDGE_US = 160  # microseconds in the simulator of a raw edge that is cleaned and counted
NATIVE_WORK = 1 << 30  # look-ups of a part on the CPU: about a second, so that the count can be interrupted


def count(graph, *, method=None, engine=None, order=None, device_memory=None, resume=None, progress=None,
          max_seconds=None, **knobs):  # fmt: skip
    """The number of triangles of a graph, counted part by part; see `tcgpu.count`."""
    limit = None if device_memory is None else byte_count(device_memory)
    chosen = method_of(method, engine, knobs)
    raw = isinstance(graph, (tuple, list))  # raw edges are sorted once, into the order that they are counted in
    plain = limit is not None and resume is None and order in (None, chosen.order) and not knobs
    if plain and isinstance(graph, tuple) and chosen.engines != ("cpu",):
        graph = checked_edges(*edge_arrays(graph))
        if graph[0].size >= MANY_EDGES:
            on_engine, bar = registry.on_engine(chosen, engine, max_seconds), underway(progress, "counting")
            with suppress(DoesNotSuit), on_engine, bar, freed_afterwards():
                return _count_in_pieces(*graph, limit)
    graph = as_graph(graph, order or chosen.order) if raw else opened(graph)
    if graph.folder is None or order is not None:
        graph = graph.ordered(order or chosen.order)
    with registry.on_engine(chosen, engine, max_seconds):
        if chosen.engines == ("cpu",):
            counted = lambda some: (count_part(graph, each, method="cpu") for each in some if not each.empty)  # noqa: E731
            return count_parts(graph, native_parts(graph, limit), counted, resume, progress)
        return Streaming(graph, limit, **knobs).count(resume, progress)


def _count_in_pieces(u, v, n, limit):
    """The number of triangles of raw edges, which the device cleans; DoesNotSuit if `limit` is too small for that.

    Columns that do not fit all together go back to the host, and are streamed.
    """
    if runtime.estimates_time:
        simulated.check("warp_search", simulated.seconds(0, RAW_EDGE_US * u.size))
    runtime.release_device_memory()
    memory = min(limit, runtime.memory_free() - device_parts.MARGIN) - TOTAL_BYTES
    kept = 0
    for some in ranges_of_columns(u, v, n, memory):
        if some.is_whole:
            with part(*LAST_STEP):
                return _count_columns(some)
        if some.begin == 0:
            pointers, rows = np.empty(some.of + 1, np.int64), np.empty(u.size, np.int32)  # what is written takes memory
        pointers[some.begin : some.end + 1] = runtime.to_host(some.pointers) + kept
        runtime.copy_to_host(some.rows, rows[kept : kept + some.rows.size])
        kept += some.rows.size
        del some  # its memory is for the next
    if not kept:
        return 0
    runtime.release_device_memory()
    with part(*LAST_STEP):
        columns = locked(pointers), locked(rows[:kept])
        return Streaming(Graph(*columns, order="degree", validate=False), limit).count(progress=False)


def _count_columns(columns):
    """The triangles of all columns of a graph, which are on the device."""
    total = runtime.device_array(1, np.int64, 0)
    held = device_parts.DeviceColumns(0, columns.end, 0, columns.pointers, columns.rows)
    whole = cut.Part(0, columns.rows.size, 0, columns.end)
    device_parts.launch_count(held, held.only(0, columns.end), whole, total)
    return int(runtime.to_host(total)[0])


def byte_count(size):
    """The bytes of "512MB", "2GiB" or a whole number."""
    if isinstance(size, (int, np.integer)) and not isinstance(size, bool) and size > 0:
        return int(size)
    match = isinstance(size, str) and re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?i?b)?\s*", size.lower())
    found = match and round(float(match[1]) * UNITS[match[2] or "b"])
    if not found:
        raise GraphError(f"device_memory= is a number of bytes, or a text such as '512MB' or '2GiB', not {size!r}")
    return found


@contextmanager
def freed_afterwards():
    """Return all device memory that is taken inside the `with`, and not kept by the caller, to the driver at its end.

    After an error, the functions that it ended, or that a compiler left to the garbage collector, lose their arrays.
    """
    try:
        yield
    except BaseException as error:
        traceback.clear_frames(error.__traceback__)
        gc.collect()
        raise
    finally:
        runtime.synchronize()
        runtime.release_device_memory()


def native_parts(graph, limit):
    """The parts that the engine "cpu" counts, with at most `limit` bytes of columns at a time."""
    if limit is None or cut.column_bytes(graph, 0, graph.n) <= limit:
        work = cut.slices(graph, 1)[0].work
        return cut.slices(graph, max(cut.MANY_PARTS, int(work / NATIVE_WORK)))
    return layout(graph, limit).parts
