"""Level sets, combinations and bits, after Chatterjee, Radhakrishnan & Antonio: everything that is not a GPU kernel.

    storage         adjacency as bits: the whole matrix, or a triangle of it; how large a graph fits
    search, sets    breadth first; Algorithm 1: the graph as chunks of consecutive levels
    combinations    the i-th combination, and the next
    approaches      four ways to generate and share out combinations
    triangles       Algorithm 2 on one core
    subgraphs       cliques, independent sets, connected subgraphs of k vertices; is there any triangle?
    makespan        chunks over multiprocessors
    arrangement     the chunks' bits in memory: one matrix, or one each
    coalescing      what a warp's request costs by compute capability
    partitions      which partitions of memory are asked at the same time

Nothing of it launches a kernel: those are in `tcgpu.kernels`, built on this.
"""

from tcgpu.levels.approaches import APPROACHES, compare, ranges, share, storage_bits
from tcgpu.levels.arrangement import ARRANGEMENTS, Arrangement, arrange
from tcgpu.levels.coalescing import RULES, Transactions, access_pattern, transactions
from tcgpu.levels.combinations import rank, takes, unrank, unrank_parts, unranked
from tcgpu.levels.makespan import Schedule, estimate, lower_bound, schedule
from tcgpu.levels.partitions import Load, partition_load, requests
from tcgpu.levels.search import Search
from tcgpu.levels.sets import Chunk, Split, split
from tcgpu.levels.storage import LAYOUTS, bits_needed, limits, max_vertices, pack, position
from tcgpu.levels.subgraphs import KINDS, count_subgraphs, is_triangle_free
from tcgpu.levels.triangles import count_triangles

__all__ = [
    "APPROACHES", "ARRANGEMENTS", "KINDS", "LAYOUTS", "RULES", "Arrangement", "Chunk", "Load", "Schedule", "Search",
    "Split", "Transactions", "access_pattern", "arrange", "bits_needed", "compare", "count_subgraphs",
    "count_triangles", "estimate", "is_triangle_free", "limits", "lower_bound", "max_vertices", "pack",
    "partition_load", "position", "rank", "ranges", "requests", "schedule", "share", "split", "storage_bits", "takes",
    "transactions", "unrank", "unrank_parts", "unranked",
]  # fmt: skip
