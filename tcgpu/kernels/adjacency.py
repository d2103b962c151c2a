"""The neighbours of each vertex, in arrays on the device: edges sorted by their rows, beside the columns."""

import numpy as np

from tcgpu.engines import runtime
from tcgpu.engines.runtime import cuda, kernel
from tcgpu.kernels import run
from tcgpu.kernels.device.search import first_from
from tcgpu.kernels.orientation import lower, pack, pack_numbered, upper


@kernel("void(uint64[::1], int64[::1], int64[::1], int64[::1])")
def find_rows(keys, col_ptr, row_ptr, indptr):
    """A thread per vertex: how many edges have a row below it, and where its neighbours begin."""
    for v in range(cuda.grid(1), row_ptr.size, cuda.gridsize(1)):
        row_ptr[v] = first_from(keys, 0, keys.size, pack(v, 0))
        indptr[v] = col_ptr[v] + row_ptr[v]


@kernel("void(uint64[::1], int64[::1], int32[::1], int32[::1], int64[::1], int32[::1], int32[::1])")
def join_neighbours(keys, col_ptr, row_idx, col_of, row_ptr, indices, edge):
    """A thread per number k: write the lower neighbour of the edge with key k, and the upper one of edge k."""
    for k in range(cuda.grid(1), keys.size, cuda.gridsize(1)):
        e = lower(keys[k], 32)
        place = k + col_ptr[upper(keys[k], 32)]  # first the lower neighbours of each vertex, ascending
        indices[place], edge[place] = col_of[e], e
        place = k + row_ptr[col_of[k] + 1]  # then those in its column
        indices[place], edge[place] = row_idx[k], k


def adjacency(graph):
    """`(row_ptr, indptr, indices, edge)` of a graph.

    Vertex v has the neighbours indices[indptr[v]:indptr[v + 1]], ascending, over the edges of the same places in
    `edge`. row_ptr[v] edges have a row below v.
    """
    m, columns = graph.m, (graph.col_ptr, graph.row_idx, graph.col_of)
    col_ptr, row_idx, col_of = map(runtime.to_device_library, columns)
    keys = runtime.device_array(m, np.uint64)
    run(pack_numbered, m, row_idx, keys)
    keys.sort()
    row_ptr, indptr = (runtime.device_array(graph.n + 1, np.int64) for _ in range(2))
    run(find_rows, graph.n + 1, keys, col_ptr, row_ptr, indptr)
    indices, edge = (runtime.device_array(2 * m, np.int32) for _ in range(2))
    run(join_neighbours, m, keys, col_ptr, row_idx, col_of, row_ptr, indices, edge)
    return row_ptr, indptr, indices, edge
