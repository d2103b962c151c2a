"""Models of Chatterjee, Radhakrishnan & Antonio's method on the hardware of its time; nothing of them runs on a GPU.

    combinations   the i-th combination of k elements (section VIII)
    approaches     four ways to generate combinations and to divide them between threads
    algorithm2     Algorithm 2 on one core
    schedules      jobs on identical machines, for chunks on multiprocessors (section VI)
    arrangement    the chunks' bits in global memory: one matrix, or one for each chunk (section X)
    coalescing     the memory transactions of a warp's request, by compute capability (section IX)
    partitions     the partitions of memory that are read at the same time (section X)
    accesses       equations 7 to 10: accesses of all chunks, turns at banks and partitions (sections IX and X)
    limits         the largest graphs for shared memory, by levels (section III)

The kernels, and Algorithm 1, are in `tcgpu.kernels.chatterjee`.
"""

from helpers.level_models.accesses import accesses, bank_turns, partition_turns, sums_of_accesses
from helpers.level_models.algorithm2 import count_triangles, printed_count
from helpers.level_models.approaches import compare, pair_ranges, ranges, share, storage_bits
from helpers.level_models.arrangement import ARRANGEMENTS, arrange, max_vertices
from helpers.level_models.coalescing import RULES, access_pattern, transactions
from helpers.level_models.combinations import unrank, unranked
from helpers.level_models.limits import worst_case
from helpers.level_models.partitions import Load, half_warp, memory_map, partition_load, queues, requests
from helpers.level_models.schedules import estimate, lower_bound, schedule
from tcgpu.kernels.chatterjee.chunks import split

__all__ = [
    "ARRANGEMENTS", "Load", "RULES", "access_pattern", "accesses", "arrange", "bank_turns", "compare",
    "count_triangles", "estimate", "half_warp", "lower_bound", "max_vertices", "memory_map", "pair_ranges",
    "partition_load", "partition_turns", "printed_count", "queues", "ranges", "requests", "schedule", "share",
    "split", "storage_bits", "sums_of_accesses", "transactions", "unrank", "unranked", "worst_case",
]  # fmt: skip
