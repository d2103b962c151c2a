"""Every number of the kernels that says which of two ways is faster on a GPU, or what something costs there.

They were fitted to one GPU, an NVIDIA H200, and change no result. The costs of the ways of `adaptive` are beside their
choice, in `kernels.order_costs`. Each group names the benchmark that measures what its choices lead to.
"""

from tcgpu.cpu_costs import SHRINK as SHRINK  # of trusses: the same as on the CPU

# Kernels of the papers (`benchmarks/papers.py`)
LONG_COLUMN = 512  # rows of a column that is taken first, so that no block begins one at the end
LONG_LIST = 4  # times the threads of a block: the whole block looks up a column with more rows

# A graph on the GPU (`benchmarks/orders.py`)
SMALL = 1 << 14  # edges, up to which choosing an order costs more than it saves
MOSTLY_NEW = 0.8  # if fewer of the raw edges are new, repeats count too much: costs are those of the columns
FEW_RAW = 1 << 21  # raw edges, up to which a count makes no columns
DENSE_RAW = 16  # if so many times the raw edges are all pairs of vertices, all pairs of rows of bits are ANDed
SHORT_COLUMN, SHORT_NEARBY = 16, 40  # rows of a column up to which a thread sorts each; where most edges are near

# Trusses (`benchmarks/truss.py`)
SMALL_TRUSS = 1 << 17  # no smaller graph is made of so few edges when SHRINK of them remain
FEW_WEAK = 0.2  # for a smaller fraction of weak edges, breaking their triangles is faster than counting all supports

# The host or the GPU, one or several (`benchmarks/motifs.py`, `streaming.py`, `divided.py`)
MANY_EDGES = 1 << 19  # from which on the GPU cleans a stream's, counts motifs and lists unasked; few below were timed
DIVIDED_EDGES = 1 << 28  # raw edges of the host from which on they are divided: the host takes seconds to clean them

# Estimated times (`benchmarks/estimates.py`)
ALL_RUNNING = 0.9  # of the warps that have a place, on average, up to the end of a launch: as if it were all of them
LEAST_DEMAND = 0.02  # of the mean demand, that a unit is expected to have
FILLING_EDGES = 1 << 23  # of all copies together, of a launch that fills the GPU
L1_USED = 0.9  # of the L1 cache
SAME_SPEED = 1.05  # a clock is up if it is no more than this number of times slower than the fastest (WebGPU)
