"""Counting one graph in parts of about equal work: on a device that is too small for it, or by many workers.

cut            graphs into parts
journal        a file of the parts that are done, for a count to resume from
worker         counts a part, alone or for an executor
device_parts   counts a part on a GPU or in the simulator
stream         counts all parts on one device, one after the other
executors      the workers of an executor; our own pools of processes and threads
shared_graph   a file through which processes share a graph
pool           counts all parts by the workers of an executor
"""

from importlib import import_module

from tcgpu.distributed.cut import Part, Share, pairs, shares, slices
from tcgpu.distributed.worker import PartResult, count_part, method_of, sum_values, support_part, triangles_part
from tcgpu.errors import GraphError

__all__ = [
    "Part",
    "PartResult",
    "Share",
    "count",
    "count_part",
    "method_of",
    "pairs",
    "shares",
    "slices",
    "sum_values",
    "support_part",
    "triangles_part",
]


def count(graph, method: str | None = None, *, executor=None, device_memory: int | str | None = None, resume=None,
          progress=None, **options) -> int:  # fmt: skip
    """The number of triangles of a graph, counted in parts: what `tcgpu.count` does with any of these parameters.

    Parameters
    ----------
    graph : Graph, or path of one
    method : str, optional
        "warp_search" or "cpu"; with an executor whose workers have GPUs, also "adaptive".
    executor : concurrent.futures.Executor or str, optional
        Whose workers count: also Dask's and MPI's; or "gpus", "processes", "threads", "dask://HOST:PORT".
    device_memory : int or str, optional
        Without an executor, the bytes of the device that the count may use, such as "512MB".
    resume : path, optional
        A journal: parts that it says are done are not counted again.
    progress : bool or function, optional
        As in `tcgpu.count`.
    **options
        engine, order, max_seconds and the method's knobs; with an executor also parts, how many.
    """
    options |= {"method": method, "resume": resume, "progress": progress}
    if executor is None:
        return import_module("tcgpu.distributed.stream").count(graph, device_memory=device_memory, **options)
    if device_memory is not None:
        raise GraphError("device_memory is for one device, and an executor for many: give one of the two")
    return import_module("tcgpu.distributed.pool").count(graph, executor, **options)
