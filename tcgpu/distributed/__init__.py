"""One graph in parts of about equal work: streamed through a small device, or handed to many workers."""

from importlib import import_module

from tcgpu.distributed.cut import Deal, Part, deals, pairs, ranges, slices
from tcgpu.distributed.work import Found, added, count_part, method_of, support_part, takes_parts, triangles_part
from tcgpu.errors import GraphError

__all__ = [
    "Deal",
    "Found",
    "Part",
    "added",
    "count",
    "count_part",
    "deals",
    "method_of",
    "pairs",
    "ranges",
    "slices",
    "support_part",
    "takes_parts",
    "triangles_part",
]


def count(graph, method=None, *, executor=None, device_memory=None, resume=None, progress=None, **wish):
    """How many triangles `graph` has, part by part: what `tcgpu.count` does with these keywords."""
    wish |= {"method": method, "resume": resume, "show": progress}
    if executor is None:
        return import_module("tcgpu.distributed.stream").count(graph, device_memory=device_memory, **wish)
    if device_memory is not None:
        raise GraphError("device_memory is for one device, and an executor for many: give one of the two")
    return import_module("tcgpu.distributed.pools").count(graph, executor, **wish)
