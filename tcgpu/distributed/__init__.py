"""Counting one graph in parts of about equal work: on a device that is too small for it, or by many workers."""

from typing import Any

from tcgpu.distributed.cut import Part, PartResult, Share, pairs, shares, slices
from tcgpu.distributed.worker import count_part, method_of, sum_values
from tcgpu.errors import GraphError

__all__ = [
    "Part", "PartResult", "Share", "count", "count_part", "method_of", "pairs", "shares", "slices", "sum_values",
]  # fmt: skip


def count(graph: Any, method: Any = None, *, executor: Any = None, device_memory: Any = None, **options: Any) -> int:
    """The number of triangles of a graph, counted in parts; parameters as in `tcgpu.count`."""
    if executor is None:
        from tcgpu.distributed import stream

        return stream.count(graph, method=method, device_memory=device_memory, **options)
    if device_memory is not None:
        raise GraphError("device_memory= is for one device, and executor= for many: give one of the two")
    from tcgpu.distributed import pool

    return pool.count(graph, executor, method=method, **options)
