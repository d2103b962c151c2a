"""One graph in parts of about equal work: streamed through a small device, or handed to many workers."""

from tcgpu.parts.cut import Deal, Part, deals, pairs, ranges, slices
from tcgpu.parts.work import Found, added, count_part, support_part, triangles_part

__all__ = [
    "Deal",
    "Found",
    "Part",
    "added",
    "count_part",
    "deals",
    "pairs",
    "ranges",
    "slices",
    "support_part",
    "triangles_part",
]
