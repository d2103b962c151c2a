"""From the sorted column of every nonzero to where each column starts, the report's `findCol_ptr`, and back again.

Contract: `col_of` (int32, m) ascends; `col_ptr` (n + 1) comes filled with -1 and leaves as the column pointers.
A column starts where `col_of` changes, so `find_col_ptr` gives a thread to each nonzero and lets those that differ from
their left neighbour write. An empty column starts nowhere and keeps its -1; the report steps over these when it takes
lengths, here `fill_empty_columns` closes them once: an empty column starts where the first later nonzero lies.

`find_columns` writes all of `col_of` out of finished column pointers: on the way to the device, half of a graph's bytes
are spared. A thread searches for the column of its nonzero; neighbours read nearly the same.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, kernel, uint32
from tcgpu.kernels import Step, enough_blocks
from tcgpu.kernels.device.search import first_from, last_up_to

THREADS = 256
BLOCKS = 1024


@kernel("void(int32[::1], int64[::1])")
def find_col_ptr(col_of, col_ptr):
    for e in range(cuda.grid(1), col_of.size, cuda.gridsize(1)):
        if e == 0 or col_of[e - 1] != col_of[e]:
            col_ptr[col_of[e]] = e


@kernel("void(int32[::1], int64[::1])")
def fill_empty_columns(col_of, col_ptr):
    for j in range(cuda.grid(1), col_ptr.size, cuda.gridsize(1)):
        if col_ptr[j] < 0:
            col_ptr[j] = first_from(col_of, 0, col_of.size, j)  # the first nonzero of a later column


@cuda.jit(device=True)
def column_bounds(col_ptr, j):
    """Where column j begins and ends: two uint32."""
    return uint32(col_ptr[j]), uint32(col_ptr[j + 1])


@kernel("void(int64[::1], int32[::1])")
def find_columns(col_ptr, col_of):
    for e in range(cuda.grid(1), col_of.size, cuda.gridsize(1)):
        col_of[e] = last_up_to(col_ptr, 0, col_ptr.size - 1, e)


def steps(graph, col_of="col_of", col_ptr="col_ptr"):
    """The launches that fill the array named `col_ptr` out of the one named `col_of`."""
    return [
        Step(find_col_ptr, enough_blocks(BLOCKS, graph.m, THREADS), THREADS, (col_of, col_ptr)),
        Step(fill_empty_columns, enough_blocks(BLOCKS, graph.n + 1, THREADS), THREADS, (col_of, col_ptr)),
    ]


def created(graph):
    """The array that `steps` fills, as a plan declares it."""
    return (graph.n + 1, np.int64, -1)
